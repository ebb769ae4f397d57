/* SPDX-License-Identifier: Apache-2.0
 *
 * Crash points and built-in bugs: only in test builds (WB_TEST_HOOKS).
 *
 * WAYBILL_CRASH=NAME:N ends the process with SIGKILL when the crash point NAME is
 * passed for the Nth time (N is 1 when absent); NAME:N:stop stops it there until SIGCONT,
 * so that something can happen to its servers. Within a scope, names of a thread's points begin with its prefix:
 * a transport passes its own for workers and poller alike. WAYBILL_BUG=NAME switches on a bug
 * that the crash suite must catch: a suite that cannot see these proves nothing. (lots_of_one is none: with it the
 * poller works with few messages as it otherwise does under load.) WAYBILL_PERIOD=MILLISECONDS makes shorter what
 * wb_test_period() is asked for.
 */
#ifndef WB_BASE_CRASH_H
#define WB_BASE_CRASH_H

#include <stdint.h>

#ifdef WB_WITHOUT_CRASH_POINTS
#error "this file is compiled once, and its crash points would be in no test: it belongs to hooked_sources"
#endif

#ifdef WB_TEST_HOOKS
int64_t wb_test_period(int64_t period); /* nanoseconds */
void wb_crash_point(const char *name);
void wb_crash_scope(const char *prefix); /* "" ends it */
int wb_bug(const char *name);
#else
static inline int64_t wb_test_period(int64_t period)
{
    return period;
}
static inline void wb_crash_point(const char *name)
{
    (void)name;
}
static inline void wb_crash_scope(const char *prefix)
{
    (void)prefix;
}
static inline int wb_bug(const char *name)
{
    (void)name;
    return 0;
}
#endif

#endif

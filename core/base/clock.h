/* SPDX-License-Identifier: Apache-2.0
 *
 * Three clocks: the monotonic one for deadlines and budgets, the wall clock for what
 * leaves the process (headers, the log), the steady one to keep another's time.
 */
#ifndef WB_BASE_CLOCK_H
#define WB_BASE_CLOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WB_MILLISECOND INT64_C(1000000)
#define WB_SECOND INT64_C(1000000000)
#define WB_NEVER INT64_MAX

/** Monotonic nanoseconds; deadlines are on this clock. */
int64_t wb_clock_monotonic(void);
/** Nanoseconds since 1970, UTC. */
int64_t wb_clock_wall(void);
/** Nanoseconds since the machine was started, the time it was suspended included: what the
 *  distance to another machine's clock is measured from, as nobody sets it. */
int64_t wb_clock_steady(void);

/** Size of a wire timestamp with its NUL byte. */
#define WB_TIMESTAMP_SIZE 29
/** "yyyy-MM-dd HH:mm:ss:ffffff Z", the format of NServiceBus headers. */
void wb_clock_format_wire(int64_t wall, char text[WB_TIMESTAMP_SIZE]);
/** @return 1 and the time (the first or last there is, where it does not fit), or 0: it is not that format, or a
 *  day that no calendar has. */
int wb_clock_parse_wire(const char *text, int64_t *ret_wall);

/** "yyyy-MM-dd HH:mm:ss", with `separator` in the place of the blank: seconds since 1970, UTC. Moves on to what
 *  follows. @return 0: that is not there, or no calendar has it. */
int wb_clock_read_date(const char **text, char separator, int64_t *ret_seconds);

/** Size of a span of time with its NUL byte. */
#define WB_SPAN_SIZE 32
/** "[d.]hh:mm:ss[.fffffff]", as .NET writes a TimeSpan; rounded up to its 100 ns. Not negative. */
void wb_clock_format_span(int64_t span, char text[WB_SPAN_SIZE]);

/** Size of a log timestamp with its NUL byte. */
#define WB_LOG_TIMESTAMP_SIZE 25
/** "yyyy-MM-ddTHH:mm:ss.fffZ" */
void wb_clock_format_log(int64_t wall, char text[WB_LOG_TIMESTAMP_SIZE]);

/** A pause that grows: `first`, doubled so many times, at most `longest`. */
int64_t wb_clock_backoff(int64_t first, unsigned times, int64_t longest);

/** Sleep for a while, or until `*stop` is set (looked at every few milliseconds). */
void wb_clock_pause(int64_t duration, const atomic_int *stop);

#endif

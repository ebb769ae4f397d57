/* SPDX-License-Identifier: Apache-2.0
 *
 * The guard of a process that runs endpoints: a thread that takes its signals and watches
 * the time, whatever the main thread waits for meanwhile (a server that does not answer while
 * the endpoints start, a plugin that hangs while it is closed).
 *
 * The first signal asks to stop and gives `patience`; a second one, or the end of the time, ends
 * the process with 75, as kill -9 would: nothing is lost, and it runs again.
 *
 *   SIGTERM, SIGINT    the above
 *   SIGHUP, SIGUSR1    kept until the main thread asks what was asked for (cli_guard_take)
 *   SIGUSR2            is taken, and nothing follows
 *
 * SIGPIPE and SIGXFSZ are ignored: who writes to what is closed, or full, is told by the call.
 */
#ifndef WB_CLI_GUARD_H
#define WB_CLI_GUARD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/* What signals ask for. */
#define CLI_ASKED_TO_READ (1u << 0)   /* the configuration: SIGHUP */
#define CLI_ASKED_FOR_COUNTS (1u << 1) /* SIGUSR1 */

typedef struct cli_guard {
    sigset_t signals;
    int64_t patience; /* ns from the first signal to the end */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    int is_told; /* to stop */
    int is_over; /* the guard is to end */
    unsigned asked; /* CLI_ASKED_x */
    int64_t deadline;
} cli_guard;

/** Block the signals, for this thread and all it starts: before any other thread. So a handler's thread gets none of
 *  them, and one that comes before the guard runs is taken when it does. */
void cli_guard_block(cli_guard *guard);
/** Start the thread. @return 0 or an errno. */
int cli_guard_start(cli_guard *guard, int64_t patience);
/** Whether a signal told to stop. */
int cli_guard_is_told(cli_guard *guard);
/** What was asked for since the last call: a mask of CLI_ASKED_x. */
unsigned cli_guard_take(cli_guard *guard);
/** Sleep for so long (nanoseconds), or until the first signal that tells to stop. */
void cli_guard_sleep(cli_guard *guard, int64_t duration);
/** The process ends at this time (monotonic) if it is still there; a deadline that a signal set
 *  stands unless it is later. */
void cli_guard_limit(cli_guard *guard, int64_t until);
/** What is in flight has ended: closing gets so long (nanoseconds) from now at the least. */
void cli_guard_allow(cli_guard *guard, int64_t duration);
/** End the process, with a line that says why. */
_Noreturn void cli_guard_leave(cli_guard *guard, const char *reason);
/** Join the thread. */
void cli_guard_end(cli_guard *guard);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Repeats of one reason: a destination that is missing fails a thousand messages a second, each of
 * them some times, and one line says as much as six thousand.
 *
 * The first WB_REPEATS_BURST lines of one text in a second are written at once: enough for all tries
 * of one message. Those behind them are counted, and told once a second for as long as they come. A
 * text is never counted that was not written before, and no count is dropped: when there is no place
 * for a further text, its lines are written.
 *
 * Times are monotonic nanoseconds, and the caller's: nothing here waits. Any thread.
 */
#ifndef WB_BASE_REPEATS_H
#define WB_BASE_REPEATS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WB_REPEATS_BURST 5
/** Texts that are known at once. */
#define WB_REPEATS_MAX 32
/** A longer text is never counted. */
#define WB_REPEATS_TEXT_MAX 4096

typedef struct wb_repeated {
    int64_t until; /* the end of its second */
    unsigned long began; /* which one it is */
    unsigned written;
    unsigned long more; /* since the last line that told how many */
    int level;
    size_t size; /* 0: free */
    char text[WB_REPEATS_TEXT_MAX];
} wb_repeated;

typedef struct wb_repeats {
    pthread_mutex_t lock; /* guards the texts; held for no longer than it takes to compare them */
    atomic_llong due;     /* when the first count is due; WB_NEVER: there is none */
    unsigned long begun;
    wb_repeated texts[WB_REPEATS_MAX];
} wb_repeats;

#define WB_REPEATS_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .due = INT64_MAX }

/** @return whether a line that says `text` is to be written; else it is counted. */
int wb_repeats_admit(wb_repeats *repeats, int level, const char *text, size_t size, int64_t now);

/** Take a count that is due by `now` (WB_NEVER: any), with its text and level. @return 0: there is none. */
int wb_repeats_take(wb_repeats *repeats, int64_t now, wb_repeated *ret_text);

/** In a child process, where nobody else may hold the lock: as if nothing had come yet. */
void wb_repeats_forget(wb_repeats *repeats);

#endif

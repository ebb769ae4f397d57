/* SPDX-License-Identifier: Apache-2.0
 *
 * The pace of a clean-up: how much it deletes at once, and how long it rests. Pure.
 *
 * A step is as large as fits into some milliseconds, for whoever waits behind it (SQLite has one
 * writer), and after it the clean-up rests many times as long as it took: a machine that is slow
 * because it is busy is left alone for longer. Where that is too little, so that round after round
 * ends with old records left, it rests a little less each time, down to a bound.
 */
#ifndef WB_ENDPOINT_CLEANER_PACE_H
#define WB_ENDPOINT_CLEANER_PACE_H

#include <stddef.h>
#include <stdint.h>

typedef struct wb_cleaner_pace {
    size_t step;   /* records to delete at most */
    unsigned rest; /* so many times as long as a step took */
} wb_cleaner_pace;

/** Its beginning: a fortieth of the time. */
wb_cleaner_pace wb_cleaner_pace_init(void);
/** A step took so long, in nanoseconds. One that was not full, because there is no more or because the store deletes no
 *  more at once, says nothing of how large steps may be. @return how long to rest. */
int64_t wb_cleaner_pace_step(wb_cleaner_pace *pace, int64_t took, int is_full);
/** A round ended, `is_behind` if its time was over before the work was. */
void wb_cleaner_pace_round(wb_cleaner_pace *pace, int is_behind);

#endif

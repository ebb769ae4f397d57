/* SPDX-License-Identifier: Apache-2.0
 *
 * When the table is looked at, and how much of it. Pure.
 *
 * A look at all rows also reads those that may not go: what waits, what stands behind that with its key, removed ones
 * that a snapshot keeps. Where that is dear it is made seldom, and between two such looks only what is
 * behind the numbers that the last one has read is looked at. Of that goes what has no key. A row with a key
 * may have another before it that turned up below since: it waits for the next look at all.
 */
#ifndef WB_WRITTEN_LOOKS_H
#define WB_WRITTEN_LOOKS_H

#include <stddef.h>
#include <stdint.h>

/** How long looks take, less what rows that go may take: the last two, since one slow one may be the machine's. */
typedef struct wb_written_cost {
    int64_t last, before;
} wb_written_cost;

/** What is known of the table; all zero: nothing. Times in nanoseconds, of the monotonic clock. */
typedef struct wb_written_looks {
    wb_written_cost of_all, of_rest; /* at all rows, behind a number */
    int64_t all_ended;               /* the last look at all */
    uint64_t reached; /* what may go up to here takes a look at all; 0: not known */
    int wants_all;    /* something is there, or may be, that another does not give; a caller may set it */
} wb_written_looks;

/** A look that was made. */
typedef struct wb_written_look {
    uint64_t behind; /* only at what has a higher number; 0: at all */
    uint64_t last;   /* the highest number there was, asked for where wb_written_looks_are_dear(); 0: not known */
    uint64_t highest; /* of what was given; 0: nothing was */
    int has_keys; /* something with a key was there */
    size_t count, size; /* of what was there, rows and bytes */
    int64_t took, ended;
} wb_written_look;

/** Behind which number to look now; 0: at all. */
uint64_t wb_written_looks_next(const wb_written_looks *looks, int64_t now);
/** Whether the next look at all is to ask for the highest number. */
int wb_written_looks_are_dear(const wb_written_looks *looks);
void wb_written_looks_note(wb_written_looks *looks, const wb_written_look *look);
/** How long to wait before the next. */
int64_t wb_written_looks_pause(const wb_written_looks *looks, int64_t now);

#endif

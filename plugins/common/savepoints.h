/* SPDX-License-Identifier: Apache-2.0
 *
 * Savepoints that handlers set. Messages of a batch share one transaction, and so the names in it: a handler that rolls
 * back to one which another message's left undoes what was done in between, also others' work, and nothing fails. So it is
 * noted which statements set, release and roll back; who went back without one of his own has the batch run again, in
 * parts, until each of the two is alone, where neither harms anybody.
 */
#ifndef WB_COMMON_SAVEPOINTS_H
#define WB_COMMON_SAVEPOINTS_H

#include <stddef.h>

#define WB_COMMON_WENT_BACK "a handler rolled back to a savepoint that another message's left"

/** All zero: a transaction began. */
typedef struct wb_common_savepoints {
    int has_item;
    size_t item;   /* whose handler has the connection, or had it last */
    int count;     /* that were set and not released, as far as statements tell */
    int inherited; /* so many of them when the handler got the connection */
    int went_back; /* a handler may have rolled back to one that was set for another message */
} wb_common_savepoints;

/** The handler of this message gets the connection. */
void wb_common_savepoints_hand_out(wb_common_savepoints *of, size_t item);

/** What it did. */
void wb_common_savepoints_set(wb_common_savepoints *of);
void wb_common_savepoints_release(wb_common_savepoints *of);
void wb_common_savepoints_roll_back(wb_common_savepoints *of);

/** The same of a text of SQL, with one statement or several. */
void wb_common_savepoints_hear(wb_common_savepoints *of, const char *text, size_t size);

/** @return where the next statement begins from there on: behind comments, and what stands between statements; or `end`. */
const char *wb_common_sql_skip(const char *at, const char *end);

#endif

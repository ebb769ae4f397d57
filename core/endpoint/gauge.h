/* SPDX-License-Identifier: Apache-2.0
 *
 * The gauge of the backlog: what stays pending, for how long and why, as of the housekeeper's last
 * round, or of its start; and the line that says so, once, and once when it is over.
 *
 * A row that is pending is nothing: it lives for milliseconds, and the sweeper takes what it finds
 * twice. Late is what several rounds of it have not got rid of: a row older than that, or one that was
 * parked so often.
 */
#ifndef WB_ENDPOINT_GAUGE_H
#define WB_ENDPOINT_GAUGE_H

#include <stdatomic.h>

#include "core/endpoint/backlog.h"

/** Rounds of the sweeper after which what is pending is late; so many tries of a parked row, which
 *  take longer with each, are as many. */
#define WB_GAUGE_ROUNDS 3

/** All zero at first. The housekeeper writes; any thread reads. */
typedef struct wb_gauge {
    atomic_int is_known;     /* somebody has looked, and goes on doing so: the next three are true */
    _Atomic uint64_t rows;   /* with operations of batches, dispatched ones excepted */
    _Atomic uint64_t parked;
    _Atomic int64_t age;     /* ns: of the oldest of those rows; 0: there is none */
    atomic_int is_late;
    int64_t late_since;      /* the housekeeper's: monotonic */
} wb_gauge;

/** This is there, of which no round has seen anything: nobody calls it late. */
void wb_gauge_note(wb_gauge *gauge, const wb_pipeline *p, const wb_backlog *backlog);

/** A round is over and left this backlog; `reason` (may be empty) is what it met last, `interval` the
 *  time between two of them. Reads the reason of a parked row where that is what is late. */
void wb_gauge_take(wb_gauge *gauge, const wb_pipeline *p, wb_storage_session *storage, const wb_backlog *backlog,
                   int64_t interval, const char *reason);

/** What is late in words: "operations stay pending: 3 rows, the oldest for 5 min, and 1 parked"; "" when
 *  nothing is. */
void wb_gauge_describe(const wb_gauge *gauge, char *text, size_t size);

#endif

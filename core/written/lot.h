/* SPDX-License-Identifier: Apache-2.0
 *
 * A lot: the rows of one fetch, and what became of each. They leave in windows: the first holds all rows
 * without a key and the first of each key, the next the second of each key whose first is out, and so on:
 * whatever becomes of a row, none with its key overtakes it.
 */
#ifndef WB_WRITTEN_LOT_H
#define WB_WRITTEN_LOT_H

#include <waybill/sys/written.h>

#include "core/delayed/silence.h"
#include "core/pipeline/window.h"
#include "core/written/looks.h"
#include "core/written/message.h"

/** Rows of a lot, at most. */
#define WB_WRITTEN_LOT_MAX 1000

typedef struct wb_written_entry {
    uint64_t number;
    uint64_t tries;
    wb_operation *operation; /* NULL: it can be no message */
    wb_written_failed *failed; /* it is refused for good, or there is no operation */
    wb_operation *copy;        /* for the error queue; NULL: there is none, or it is not refused */
    wb_written_text key;
    size_t before; /* the entry before with the same key, or WB_WRITTEN_LOT_MAX */
    int is_held;   /* for a destination that confirms nothing: not sent now */
    int is_probe;  /* for one of these, whose time is over: sent behind all others */
} wb_written_entry;

typedef struct wb_written_lot {
    wb_pipeline *pipeline;
    wb_origin origin;
    unsigned retries; /* of a refused message, before it goes to the error queue */
    wb_written_entry *entries; /* WB_WRITTEN_LOT_MAX */
    size_t count;
    wb_written_look look; /* which filled it */
    wb_silences silences;
    int is_error_queue_silent;
    wb_arena arena;
    wb_window window;
    uint64_t *removed; /* WB_WRITTEN_LOT_MAX: numbers of rows that are out */
    size_t removed_count;
    wb_written_rest *rests; /* WB_WRITTEN_LOT_MAX */
    size_t rest_count;
    size_t done_count; /* of either */
} wb_written_lot;

void wb_written_lot_init(wb_written_lot *lot, wb_pipeline *pipeline, unsigned retries);
void wb_written_lot_free(wb_written_lot *lot);

/** Empty it, and take what is there, if the session has or gets the turn: all, or, behind a number, what has no
 *  key. Fills lot->look; its time is the caller's. @return the store's class. */
int wb_written_lot_fetch(wb_written_lot *lot, wb_storage_session *storage, uint64_t behind, int wants_last,
                         int *ret_has_turn, wb_error *error);
/** Send it, and to the error queue what is refused for good. @return as wb_window_send(). */
int wb_written_lot_dispatch(wb_written_lot *lot, wb_outlet *outlet, wb_error *error);
/** Whether something is to be sent to destinations that confirmed nothing before, behind the rest: so that nobody
 *  waits for them. */
int wb_written_lot_has_probes(const wb_written_lot *lot);
/** Send that, in a window of its own. @return as wb_window_send(). */
int wb_written_lot_probe(wb_written_lot *lot, wb_outlet *outlet, wb_error *error);
/** Tell the store what became of it; once more with what it was told before, if that failed. Until then
 *  nothing else is fetched. @return the store's class. */
int wb_written_lot_settle(wb_written_lot *lot, wb_storage_session *storage, wb_error *error);
/** Whether more is there than it holds, or may go now that it is settled. */
int wb_written_lot_is_followed(const wb_written_lot *lot);
/** Whether something is to be settled. */
int wb_written_lot_is_open(const wb_written_lot *lot);
/** Whether something of it is neither out nor postponed. */
int wb_written_lot_has_left(const wb_written_lot *lot);

#endif

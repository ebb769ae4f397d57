/* SPDX-License-Identifier: Apache-2.0
 *
 * A lot: the delayed messages of one fetch, from the store's rows to what became of each.
 */
#ifndef WB_DELAYED_LOT_H
#define WB_DELAYED_LOT_H

#include "core/delayed/silence.h"
#include "core/pipeline/window.h"

/** Messages of a lot, at most. */
#define WB_LOT_MAX 1000
/** How long fetched messages are ours. A window is over before that. */
#define WB_LOT_LEASE (30 * WB_SECOND)

/** The result of an operation that no transport was given. */
#define WB_LOT_UNTRIED (-1)

/** How forwarding is tried, and by whom. */
typedef struct wb_lot_policy {
    const char *owner;      /* WB_DELAYED_OWNER_SIZE bytes */
    unsigned retries;       /* number_of_retries */
    int64_t failure_pause;  /* ns before a refused message is tried again */
    size_t limit;           /* messages of a lot; 0: WB_LOT_MAX */
} wb_lot_policy;

typedef struct wb_lot_entry {
    wb_delayed_key key;
    uint32_t failures;
    wb_operation *operation; /* NULL: a later version's, which this one cannot read */
    wb_operation *copy;      /* for the error queue, once it was refused for good */
    int is_held;             /* for a destination that confirms nothing: not sent now */
    int64_t due;
} wb_lot_entry;

/** Keys that outlive the lot they are of. */
typedef struct wb_lot_keys {
    wb_delayed_key *keys; /* WB_LOT_MAX */
    size_t count;
    wb_arena arena;
} wb_lot_keys;

typedef struct wb_lot {
    wb_pipeline *pipeline;
    const wb_lot_policy *policy;
    wb_lot_entry *entries; /* WB_LOT_MAX */
    size_t count;
    size_t refused; /* moved to the error queue, or postponed */
    int is_stuck;   /* some were sent, and could not be removed */
    wb_silences silences;
    wb_arena arena;
    wb_window window;
    wb_delayed_key *keys; /* WB_LOT_MAX, for calls of the store */
    /* Sent, and not known to be removed: what goes with the next fetch that begins, and what went with the
     * one that has begun. */
    wb_lot_keys riding, leaving;
    wb_lot_keys recalled; /* taken by a fetch that nobody wants any more */
    int is_flowing;       /* the lot before was full, and all of it was sent */
    int has_begun;        /* the next fetch */
    int64_t asked;        /* monotonic: when this lot's fetch was, or the next one's that has begun */
} wb_lot;

void wb_lot_init(wb_lot *lot, wb_pipeline *pipeline, const wb_lot_policy *policy);
void wb_lot_free(wb_lot *lot);

/** Take what is due, or what the fetch that has begun took. The lot is emptied before, and stays empty where
 *  the answer took so long that the lease may end before the window does. @return the store's class. */
int wb_lot_fetch(wb_lot *lot, wb_storage_session *storage, wb_error *error);
/** Before this lot is dispatched, remove what the one before has sent. While much is due that goes with the
 *  next fetch, which begins here, so that the store works while the broker confirms this lot; whoever needs the
 *  store before that fetch ends it, and gives back what it took. @return the store's class. */
int wb_lot_begin_next(wb_lot *lot, wb_storage_session *storage, wb_error *error);
/** Send it in one window, and to the error queue what is refused for good.
 *  @return as wb_window_send(). */
int wb_lot_dispatch(wb_lot *lot, wb_outlet *outlet, wb_error *error);
/** Whether as many were due as a lot holds: more will be. */
int wb_lot_is_full(const wb_lot *lot);
/** Tell the store: what was confirmed is removed, by the next fetch where the lot is full; what was refused is due again later, what was not
 *  sent is given back. What has no outcome stays taken until the lease ends. @return the store's
 *  class. */
int wb_lot_conclude(wb_lot *lot, wb_storage_session *storage, wb_error *error);
/** Add a copy of a key; and drop all of them. */
void wb_lot_keep(wb_lot_keys *list, const wb_delayed_key *key);
void wb_lot_forget(wb_lot_keys *list);
/** End the fetch that has begun, if one has, and give back what it took. @return the store's class. */
int wb_lot_recall(wb_lot *lot, wb_storage_session *storage, wb_error *error);
/** There is no next fetch: end the one that has begun, and remove what was sent. What cannot
 *  be removed is kept for the next call. @return the store's class. */
int wb_lot_settle(wb_lot *lot, wb_storage_session *storage, wb_error *error);
/** Give back what was not sent, and is still taken. @return the store's class. */
int wb_lot_give_back(wb_lot *lot, wb_storage_session *storage, wb_error *error);

/** A built-in bug, see core/base/crash.h: what was fetched is removed before it was sent. */
void wb_lot_misbehave(wb_lot *lot, wb_storage_session *storage);

#endif

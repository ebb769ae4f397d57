/* SPDX-License-Identifier: Apache-2.0
 *
 * An item: a message in a worker's hands, from receive to acknowledge. Two things are known of
 * it and never mixed up:
 *
 *   its verdict    open, or failed for good: it goes to the error queue;
 *   its progress   one state, how far the running batch has come with it.
 *
 * All changes of both are here. A change that item.c's table does not allow ends the process:
 * the broker delivers again what it had in hand, and nothing wrong is committed.
 */
#ifndef WB_PIPELINE_ITEM_H
#define WB_PIPELINE_ITEM_H

#include <waybill/sys/transport.h>

#include "core/message/operations.h"
#include "core/message/session_control.h"
#include "core/message/trace.h"
#include "core/plugin/handlers.h"
#include "core/recover/recoverability.h"

typedef enum {
    WB_ITEM_READY,     /* nothing of it has happened that counts */
    WB_ITEM_HANDLED,   /* its handlers returned WB_OK in the open transaction */
    WB_ITEM_KEPT,      /* claimed, not handled: the batch's time was up */
    WB_ITEM_DUPLICATE, /* a record of its id was there first */
    WB_ITEM_COPY,      /* same id as an earlier one of this batch: shares its fate */
    WB_ITEM_COMMITTED, /* its effect is durable; its operations leave now */
    WB_ITEM_MOVING,    /* failed for good; its copy for the error queue leaves now */
    WB_ITEM_SENT,      /* in a transport transaction: whatever it sends is sent, not committed */
    WB_ITEM_SETTLED,   /* nothing left but to mark and acknowledge */
    WB_ITEM_STATES
} wb_item_state;

typedef enum {
    WB_VERDICT_OPEN,
    WB_VERDICT_FAILED
} wb_verdict;

/** So many handlers a message may have: one for each type it says it is. */
#define WB_ITEM_HANDLERS_MAX 16
#define WB_ITEM_HANDLERS_TEXT "16"

typedef struct wb_item {
    const wb_incoming *incoming;
    /* Of its types, the most derived first; they run in this order. */
    const wb_handler_entry *handlers[WB_ITEM_HANDLERS_MAX];
    size_t handler_count;
    wb_message message; /* what its handlers see; its id outlives `incoming` */
    /* What it is known by: its id; of a failed message what its failure is (core/message/failed_id.h). As long as `incoming`. */
    const char *id;
    size_t id_size;
    char *own_id; /* malloc'ed; NULL: that is the message's */
    wb_item_state state;             /* changed by wb_item_change() alone */
    wb_verdict verdict;              /* changed by wb_item_condemn() alone */
    wb_failure failure;
    char *error_queue; /* where it goes when it failed; malloc'ed; NULL: where its type's do */
    char *type;        /* the first it names, of one that the handler of all other types gets, or none; malloc'ed; NULL:
                        * its handlers' types are its own, or it names none */
    int is_control;    /* a session's control message (session.c), and what it says */
    wb_session_control control;
    int is_discarded;  /* no handler gets it any more: it is recorded and acknowledged */

    /* Of the running batch. */
    size_t handlers_done;
    size_t place; /* in the batch: what persistences know it by */
    unsigned turn; /* number of the call that handled it */
    struct wb_item *leader; /* of a copy */
    uint64_t duplicate_of;  /* of a duplicate: the batch that handled it */
    int is_passed;          /* known by its position alone: its id is to have no record, for it may have failed */
    int64_t started;        /* when its handling began, by the wall clock */
    int has_begun;          /* in this run: `started` and `ended` are of the last that did */
    int64_t ended;          /* and when its handlers had returned, where an observer wants to know */
    wb_trace trace;         /* its place in a trace, where there is an observer; outlives `incoming` */
    int64_t sent;           /* when it was sent, or due, as it says; 0: it does not */
    wb_operation_list operations; /* in the batch's arena */
    uint32_t asked;           /* ordinal of the next operation */
    uint32_t asked_immediate; /* and of the next immediate one */

    /* Until it is settled. */
    int alone;            /* runs as a batch of its own */
    int is_tallied;       /* as handled, or discarded: found as a duplicate it is none of another message */
    uint64_t doubted_in;  /* the batch that handled it, and whose commit was in doubt: found as its duplicate it was handled here */
    int64_t paused_until; /* set aside: does not run before; 0 */
    unsigned pauses;      /* how often it was set aside */
    unsigned trim;        /* how far its copy for the error queue is cut */
    int64_t delay;        /* its move is a delayed retry, after so long; 0: to the error queue */
    uint32_t retry;       /* and which one it is: its headers may be gone when that is told */
    unsigned aborts;        /* how often it was rolled back while it ran alone */
    uint64_t fault_seen;  /* successes + 1 when it last met the server's trouble or lost a connection */
    uint64_t arrivals_seen; /* the same of arrivals, when what it sends was last refused for want of a privilege */
    int is_doubted;       /* a connection broke while it was handled: its doing, or the server's? */
    uint32_t noted;       /* a suspect's attempt is written down, and is that one; 0: it is not */
    uint32_t noting;      /* what of that was written last, whether the reply came or not */
    uint32_t unfinished;  /* attempts written down before and never finished: all it gets */
    int has_lost_session; /* the session it was handled on was lost before */
    int is_counted_out;   /* the broker would drop it after one more delivery, or two: it is not handled */
} wb_item;

/** A message that was just received, and its handler, if that is known. */
void wb_item_init(wb_item *item, const wb_incoming *incoming, const wb_handler_entry *handler);
/** It is known by that, not by its id, which may come again and be another's. */
void wb_item_know_by(wb_item *item, const char *id);
/** A further handler; one it has already is not added. @return 0 when there is no place. */
int wb_item_add_handler(wb_item *item, const wb_handler_entry *handler);
/** It has none: that of all other types gets it. `type` is the first it names, or "". */
void wb_item_give_other(wb_item *item, const wb_handler_entry *other, const char *type);
/** It has none: that is the first it names, for lines about it alone. */
void wb_item_name_type(wb_item *item, const char *type);
void wb_item_clear(wb_item *item);

void wb_item_change(wb_item *item, wb_item_state to);
/** Whatever the batch did with it counts no more: it is ready to run again. */
void wb_item_rerun(wb_item *item);
/** It failed for good. The failure says why. */
void wb_item_condemn(wb_item *item, const char *kind, const char *reason);
/** It is to be forgotten: it has no handlers any more, and is handled with that. */
void wb_item_discard(wb_item *item);
/** When it has failed it goes to that queue. */
void wb_item_send_to(wb_item *item, const char *error_queue);
/** Set aside for a while; what can run, runs. */
void wb_item_pause(wb_item *item, int64_t until);

/** The handler that is to run next, or NULL: all have run. */
static inline const wb_handler_entry *wb_item_handler(const wb_item *item)
{
    return item->handlers_done < item->handler_count ? item->handlers[item->handlers_done] : NULL;
}

/** What type lines about it tell; NULL: it names none. */
static inline const char *wb_item_type(const wb_item *item)
{
    return item->message.type ? item->message.type : item->type;
}

/** What it is to that handler. */
static inline const char *wb_item_type_for(const wb_item *item, const wb_handler_entry *handler)
{
    return item->type ? item->type : handler->type;
}

/** Whether its handlers are to run. */
static inline int wb_item_is_open(const wb_item *item)
{
    return item->state == WB_ITEM_READY && item->verdict == WB_VERDICT_OPEN;
}

/** Whether it is a control message that session.c is to look after: nothing claims its id, which is a
 *  session's. */
static inline int wb_item_is_control(const wb_item *item)
{
    return item->is_control && item->verdict == WB_VERDICT_OPEN;
}

/** Whether two messages have the same id. Messages without id have none in common. */
int wb_item_is_same(const wb_item *a, const wb_item *b);
/** Whether they have the same key, which keeps them in order where the transport does. */
int wb_item_has_key_of(const wb_item *a, const wb_item *b);

#endif

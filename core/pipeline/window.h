/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way out: operations that leave together, with one window of confirmations. Workers
 * dispatch their batches and what others left pending with it, the sweeper its rows. When it
 * returns WB_OK every operation has an outcome: confirmed (WB_OK), or refused for good
 * (WB_REJECT) with a reason that lives in the window's arena.
 *
 * Whose fault a refusal is: the operation's alone. A broker that refuses for now (a nack) is
 * asked again a few times, with growing pauses; one that cannot for now (memory alarm, no
 * leader) is waited for. An operation that makes the broker close the connection is found by
 * sending what was under way one by one (core/recover/suspicions.h).
 */
#ifndef WB_PIPELINE_WINDOW_H
#define WB_PIPELINE_WINDOW_H

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/message/operations.h"
#include "core/pipeline/pipeline.h"

/** How long a window may wait for its confirmations. */
#define WB_DISPATCH_TIMEOUT INT64_C(30000000000)

/** Where operations leave: a transport session, and what is known of it. */
typedef struct wb_outlet {
    wb_pipeline *pipeline;
    wb_transport_session *session;
    wb_storage_session *storage; /* for what is to wait in a store; NULL: the endpoint has none */
    int storage_failed; /* what wb_window_send() returned is the store's word, not the transport's */
    int64_t patience;   /* ns: how long one window of confirmations is waited for; 0: the usual time */
    size_t confirmed; /* operations, since the session was opened */
    int64_t until;    /* a broker that takes nothing is waited for no longer; 0: for ever. Who has a
                       * limit is told of silence (WB_IN_DOUBT) on the first way out already */
    _Atomic int64_t *beat; /* set at each try; NULL: nobody looks (worker.h) */
    wb_tally *tally;       /* the worker's; NULL: it is another thread's, and the endpoint's counts */
    int is_apart;     /* beside the transport's transaction, where the mode has one */
} wb_outlet;

typedef struct wb_window {
    wb_operation **operations;
    size_t count;
    size_t max;
    wb_arena *arena; /* for reasons */
} wb_window;

void wb_window_free(wb_window *window);
void wb_window_clear(wb_window *window, wb_arena *arena);
void wb_window_add(wb_window *window, wb_operation *operation);
void wb_window_add_list(wb_window *window, const wb_operation_list *list);
void wb_window_add_groups(wb_window *window, const wb_operation_group *groups);
/** Leave in it what is neither confirmed nor refused for good. */
void wb_window_keep_undone(wb_window *window);

/** One call of the transport's send(). It is told when operations are due by this host's clock as that is now: they are
 *  as they were when it returns, but for their outcomes. */
int wb_window_hand_over(const wb_pipeline *p, wb_transport_session *session, wb_operation *const *operations, size_t count,
                        int64_t deadline, wb_error *error);

/** Send until every operation has an outcome; those that are due later are stored, where a store
 *  keeps them (defer.h), and a failure of that is told by outlet->storage_failed.
 *  @return WB_OK; WB_IN_DOUBT: what is neither WB_OK nor WB_REJECT is not confirmed, on a second
 *  way out either, and the session lives; WB_RETRY: the broker took it not `until` then, and the session
 *  lives; WB_ABORT or WB_RETRY inside a transport transaction that must be rolled back; WB_FATAL;
 *  WB_NOT_CONNECTED when the session is lost, or the endpoint stops: what is not WB_OK then was
 *  not confirmed. */
int wb_window_send(wb_window *window, wb_outlet *outlet, wb_error *error);
/** What has no outcome yet is refused, for the reason in `error`, which was the server's state
 *  (a full queue) and nothing in the messages: WB_CAUSE_SERVER. */
void wb_window_refuse(wb_window *window, const wb_error *error);

/** The first refused operation of a list, or NULL. */
const wb_operation *wb_find_refused(const wb_operation_list *list);
/** "could not dispatch to ...: ..." */
void wb_describe_refusal(const wb_operation *operation, char *text, size_t size);

/** The mark that leaves in the row of `batch` what of `groups` is not done. Points into
 *  `bytes`, which is emptied. */
wb_mark wb_groups_mark(uint64_t batch, const wb_operation_group *groups, wb_buffer *bytes);

#endif

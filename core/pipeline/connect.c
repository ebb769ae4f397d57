/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's connections: opened when needed, closed when broken, with back-off between
 * tries. A broken storage session leaves the messages in hand: they wait for the database. A
 * broken transport session takes them along: the broker delivers them again.
 */
#include "config.h"

#include "core/pipeline/apart.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/stages.h"
#include "core/plugin/instance.h"

static void close_transport(wb_worker *w)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    wb_transport_session *session;

    pthread_mutex_lock(&w->transport_lock);
    session = w->transport;
    w->transport = NULL;
    pthread_mutex_unlock(&w->transport_lock);
    wb_batch_drop_all(w);
    if (session)
        ops->close(session);
    if (w->immediate.session)
        ops->close(w->immediate.session);
    w->immediate.session = NULL;
    w->transport_broken = 0;
    w->hindered = 0;
    if (!w->pipeline->recoverability.delivery_limit)
        return;
    w->take = 1; /* who broke it may do so again, and each time counts for all that is in hand */
    w->is_at_ease = 0;
}

static void close_storage(wb_worker *w)
{
    if (w->storage)
        w->pipeline->persistence_ops->close(w->storage);
    wb_underway_drop(&w->pipeline->underway, w);
    w->storage = w->outlet.storage = NULL;
    w->storage_broken = 0;
    w->in_transaction = 0;
}

/* Where it cannot be changed later it is what a worker may ever want. */
static unsigned choose_prefetch(const wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    if (WB_HAS(p->transport_ops, wb_transport_ops, set_prefetch))
        return wb_batch_prefetch(w);
    return 2 * p->batch_max + WB_ASIDE_MAX + (p->minds_sessions ? WB_CONTROLS_ASIDE_MAX : 0);
}

static int open_transport(wb_worker *w, wb_error *error)
{
    wb_pipeline *p = w->pipeline;
    wb_transport_session *session = NULL;

    w->prefetch = choose_prefetch(w);
    int r = wb_transport_open(p->transport_ops, p->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, w->prefetch,
                              &session, error);
    if (r != WB_OK)
        return r;
    pthread_mutex_lock(&w->transport_lock);
    w->transport = session;
    pthread_mutex_unlock(&w->transport_lock);
    wb_tally_note(&w->tally, WB_TALLY_OPENED_BROKER, 1);
    w->outlet = (wb_outlet){ .pipeline = p, .session = session, .storage = w->storage, .beat = &w->beat,
                             .tally = &w->tally };
    return WB_OK;
}

static int open_storage(wb_worker *w, wb_error *error)
{
    wb_pipeline *p = w->pipeline;
    w->storage_used = 0;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &w->storage, error);
    if (r == WB_OK && (r = wb_pipeline_ask_time(p, w->storage, error)) != WB_OK)
        close_storage(w);
    wb_tally_note(&w->tally, WB_TALLY_OPENED_DATABASE, r == WB_OK);
    w->outlet.storage = w->storage;
    return r;
}

/* The worker is about to give up: others may have its turn. */
static int give_way(wb_waiter *waiter)
{
    wb_waiter_leave(waiter);
    return WB_NOT_CONNECTED;
}

int wb_stage_connect_storage(wb_worker *w, wb_error *error)
{
    if (w->storage_broken)
        close_storage(w);
    if (w->storage)
        return WB_OK;
    wb_pace_take_turn(w, &w->database);
    if (w->pipeline->is_critical)
        return give_way(&w->database);
    int r = open_storage(w, error);
    if (r == WB_OK && w->storage_lacked)
        wb_distrust_found(w); /* what an open missed; a plugin may look for its tables later */
    w->storage_lacked = wb_distrust_waits(w, r, error);
    if (w->storage_lacked)
        r = WB_NOT_CONNECTED;
    return wb_pace_wait_for_server(&w->database, r, error);
}

static int connect_transport(wb_worker *w, wb_error *error)
{
    if (w->transport)
        return WB_OK;
    wb_pace_take_turn(w, &w->broker);
    if (w->pipeline->is_critical)
        return give_way(&w->broker);
    return wb_pace_wait_for_server(&w->broker, open_transport(w, error), error);
}

int wb_stage_connect(wb_worker *w, wb_error *error)
{
    if (w->transport_broken)
        close_transport(w);
    int r = connect_transport(w, error);
    if (r == WB_OK && w->pipeline->persistence_ops)
        r = wb_stage_connect_storage(w, error);
    return r == WB_OK ? wb_apart_connect(w, error) : r;
}

/* A suspect in hand ended well as far as this process goes: its record is deleted. */
static void make_last_marks(wb_worker *w)
{
    wb_error ignored;
    if (w->mark_count && w->storage && !w->storage_broken && !w->in_transaction)
        (void)w->pipeline->persistence_ops->mark(w->storage, w->marks, w->mark_count, &ignored);
}

void wb_stage_disconnect(wb_worker *w)
{
    close_transport(w);
    make_last_marks(w);
    close_storage(w);
    wb_apart_disconnect(w);
}

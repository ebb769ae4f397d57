/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's connections: opened when needed, closed when broken, with back-off between
 * tries. A broken storage session leaves the messages in hand: they wait for the database. A
 * broken transport session takes them along: the broker delivers them again.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/pipeline/stages.h"

#define PAUSE_MIN (50 * WB_MILLISECOND)
#define PAUSE_MAX (5 * WB_SECOND)
#define COMPLAIN_EVERY (30 * WB_SECOND)

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
    if (w->immediate)
        ops->close(w->immediate);
    w->immediate = NULL;
    w->transport_broken = 0;
}

static void close_storage(wb_worker *w)
{
    if (w->storage)
        w->pipeline->persistence_ops->close(w->storage);
    w->storage = NULL;
    w->storage_broken = 0;
    w->in_transaction = 0;
}

static int open_transport(wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    wb_transport_session *session = NULL;

    w->prefetch = 2 * w->take;
    int r = p->transport_ops->open(p->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, w->prefetch,
                                   &session, &w->error);
    if (r != WB_OK)
        return r;
    pthread_mutex_lock(&w->transport_lock);
    w->transport = session;
    pthread_mutex_unlock(&w->transport_lock);
    return WB_OK;
}

/* One line when it starts, one each half minute, one when it is over: no flood. */
void wb_worker_complain(wb_worker *w, const char *text)
{
    int64_t now = wb_clock_monotonic();
    char number[12];
    if (w->complained && now - w->complained < COMPLAIN_EVERY)
        return;
    w->complained = now;
    (void)snprintf(number, sizeof number, "%u", w->number);
    wb_log_event(WB_LOG_ERROR, text, { "endpoint", w->pipeline->endpoint },
                 { "worker", number }, { "class", wb_result_name(w->error.result) },
                 { "reason", w->error.text });
}

/* Doubles up to its maximum, with a quarter of jitter so that workers do not move in step. */
static void back_off(wb_worker *w)
{
    static _Thread_local unsigned seed;
    if (!seed)
        seed = (unsigned)wb_clock_wall() ^ w->number;
    if (w->pause) {
        int64_t jitter = w->pause / 4 * (int64_t)(rand_r(&seed) % 1000) / 1000;
        wb_clock_pause(w->pause - jitter, &w->pipeline->stop);
    }
    w->pause = w->pause ? w->pause * 2 : PAUSE_MIN;
    if (w->pause > PAUSE_MAX)
        w->pause = PAUSE_MAX;
}

int wb_worker_connect(wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    int r = WB_OK;

    if (w->transport_broken)
        close_transport(w);
    if (w->storage_broken)
        close_storage(w);
    if (w->transport && (w->storage || !p->persistence_ops))
        return WB_OK;
    back_off(w);
    if (!w->transport)
        r = open_transport(w);
    if (r == WB_OK && p->persistence_ops && !w->storage)
        r = p->persistence_ops->open(p->persistence, &w->storage, &w->error);
    if (r == WB_OK)
        return WB_OK;
    wb_worker_complain(w, "waiting for a server");
    /* The endpoint was verified when it started. A server that refuses us now is restarting,
     * failing over, or being changed by somebody: that is waited for, too. */
    return WB_NOT_CONNECTED;
}

void wb_worker_disconnect(wb_worker *w)
{
    close_transport(w);
    close_storage(w);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Isolation: a batch that failed was rolled back whole. Its messages run again one by one, so
 * that one poison message harms no other; a deadlock halves the batch first. Only the message
 * at fault counts an attempt.
 */
#include "config.h"

#include <stdio.h>

#include "core/base/log.h"
#include "core/pipeline/stages.h"

void wb_item_fail(wb_worker *w, wb_item *item, const char *kind, const char *reason, int recoverable)
{
    const wb_pipeline *p = w->pipeline;
    char attempt[12];

    wb_failure_set(&item->failure, kind, reason, 1);
    if (!recoverable || wb_recover_is_exhausted(&p->recoverability, &item->failure)) {
        item->state = WB_ITEM_FAILED;
        return;
    }
    item->state = WB_ITEM_READY;
    (void)snprintf(attempt, sizeof attempt, "%u", item->failure.attempts);
    wb_log_event(WB_LOG_INFO, "message failed and is retried", { "endpoint", p->endpoint },
                 { "message_id", item->incoming->id }, { "type", item->message.type },
                 { "attempt", attempt }, { "reason", reason });
}

static void blame(wb_worker *w, int result, size_t culprit)
{
    wb_item_fail(w, &w->held[culprit],
                 result == WB_REJECT ? WB_FAILURE_UNRECOVERABLE : WB_FAILURE_HANDLER, w->error.text,
                 result != WB_REJECT);
}

/* With a single message to handle there is no doubt whose failure it is. */
static size_t find_only_one(const wb_worker *w)
{
    size_t found = WB_NOBODY;
    for (size_t i = 0; i < w->batch_size; i++) {
        if (w->held[i].state != WB_ITEM_READY)
            continue;
        if (found != WB_NOBODY)
            return WB_NOBODY;
        found = i;
    }
    return found;
}

static void run_alone(wb_worker *w)
{
    if (w->batch_size > w->solo)
        w->solo = (unsigned)w->batch_size;
}

int wb_halve_after_abort(wb_worker *w, int result)
{
    if (result != WB_ABORT || w->batch_size < 2)
        return 0;
    w->take = (unsigned)(w->batch_size + 1) / 2;
    return 1;
}

/* A server that restarts breaks the connection of whoever is being handled; a message whose
 * statements end its server process does so each time. Alone, it cannot hide. */
static void note_loss(wb_worker *w, size_t culprit)
{
    if (!w->storage_broken || w->transport_broken)
        return;
    if (culprit == WB_NOBODY)
        culprit = find_only_one(w);
    if (culprit != WB_NOBODY) {
        wb_failure *failure = &w->held[culprit].failure;
        wb_failure_set(failure, WB_FAILURE_HANDLER, w->error.text, 0);
        failure->losses++;
        wb_log_event(WB_LOG_WARNING, "connection to the database lost while a message was handled",
                     { "endpoint", w->pipeline->endpoint },
                     { "message_id", w->held[culprit].incoming->id }, { "reason", w->error.text });
    }
    run_alone(w);
}

int wb_isolate(wb_worker *w, int result, size_t culprit)
{
    wb_batch_reset(w);
    if (result == WB_NOT_CONNECTED || result == WB_IN_DOUBT)
        note_loss(w, culprit);
    if (result == WB_NOT_CONNECTED || result == WB_IN_DOUBT || result == WB_FATAL)
        return result;
    if (wb_halve_after_abort(w, result))
        return WB_OK;
    if (culprit == WB_NOBODY)
        culprit = find_only_one(w);
    if (culprit != WB_NOBODY)
        blame(w, result, culprit);
    if (w->batch_size > 1)
        run_alone(w);
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/observer/otlp/otlp-exporter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/thread.h"

#define SECOND INT64_C(1000000000)
#define PAUSE_FIRST (1 * SECOND)
#define PAUSE_LONGEST (30 * SECOND)
/* Losses are told of no more often. */
#define TELL_EVERY (30 * SECOND)

/* ---- what is told ------------------------------------------------------------------- */

static void tell(const wb_otlp_exporter *x, int level, const char *text, const char *name, const char *value)
{
    const wb_field field = { name, value };
    x->host->log(x->host, level, text, &field, 1);
}

static void tell_losses(wb_otlp_exporter *x, int is_last)
{
    char count[24];
    const int64_t now = x->host->now();
    if (!is_last && x->told && now - x->told < TELL_EVERY)
        return;
    x->lost += wb_otlp_queue_dropped(&x->queue);
    if (!x->lost)
        return;
    (void)snprintf(count, sizeof count, "%" PRIu64, x->lost);
    tell(x, WB_LOG_WARNING, "spans were dropped: traces have gaps", "spans", count);
    x->told = now;
    x->lost = 0;
}

static void note_away(wb_otlp_exporter *x, const char *reason)
{
    if (!x->is_away)
        tell(x, WB_LOG_WARNING, "spans are not taken, and wait", "reason", reason);
    x->is_away = 1;
}

/* Whoever takes nothing more says so of himself: the next one that is away is told of again. */
static void note_answer(wb_otlp_exporter *x)
{
    x->is_away = 0;
    x->pause = 0;
}

static void note_taken(wb_otlp_exporter *x, const wb_otlp_outcome *outcome, size_t count)
{
    if (x->is_away)
        x->host->log(x->host, WB_LOG_INFO, "spans are taken again", NULL, 0);
    note_answer(x);
    if (outcome->rejected && !x->lost)
        tell(x, WB_LOG_WARNING, "the receiver refused some of the spans", "reason",
             *outcome->reason ? outcome->reason : "it does not say");
    x->lost += outcome->rejected < count ? outcome->rejected : count;
}

/* ---- a batch ------------------------------------------------------------------------ */

/* The same spans are asked to be taken in pauses that grow, or that the receiver asks for; the end of the endpoint cuts one short,
 * and is worth one try more. @return whether there is to be one. */
static int wait_to_retry(wb_otlp_exporter *x, const wb_otlp_outcome *outcome)
{
    if (wb_otlp_queue_closing(&x->queue))
        return 0;
    note_away(x, outcome->reason);
    x->pause = x->pause ? x->pause * 2 : PAUSE_FIRST;
    if (x->pause > PAUSE_LONGEST)
        x->pause = PAUSE_LONGEST;
    wb_otlp_queue_pause(&x->queue, x->host->now() + (outcome->pause ? outcome->pause : x->pause));
    tell_losses(x, 0);
    return 1;
}

static void deliver(wb_otlp_exporter *x, const char *body, size_t count)
{
    wb_otlp_outcome outcome;
    do
        wb_otlp_post(&x->poster, body, &outcome);
    while (outcome.verdict == WB_OTLP_LATER && wait_to_retry(x, &outcome));
    if (outcome.verdict == WB_OTLP_TAKEN) {
        note_taken(x, &outcome, count);
        return;
    }
    if (outcome.verdict == WB_OTLP_REFUSED) {
        note_answer(x);
        if (!x->lost)
            tell(x, WB_LOG_WARNING, "the receiver refused the spans", "reason", outcome.reason);
    }
    x->lost += count;
}

static void export(wb_otlp_exporter *x, wb_otlp_chain *chain)
{
    const size_t count = chain->count;
    char *body = wb_otlp_encode(&x->resource, chain);
    wb_otlp_chain_free(chain);
    if (body)
        deliver(x, body, count);
    else
        x->lost += count;
    free(body);
}

/* What waits when the endpoint ends has until the deadline, all of it together. */
static int is_over(wb_otlp_exporter *x, const wb_otlp_chain *chain)
{
    const int64_t deadline = wb_otlp_queue_closing(&x->queue);
    return deadline && (!chain->count || x->host->now() >= deadline);
}

static void *run(void *argument)
{
    wb_otlp_exporter *x = argument;
    wb_otlp_chain chain;
    for (;;) {
        wb_otlp_queue_take(&x->queue, x->host->now() + x->config->interval, &chain);
        if (is_over(x, &chain))
            break;
        if (chain.count)
            export(x, &chain);
        tell_losses(x, 0);
    }
    x->lost += chain.count + x->queue.chain.count; /* nobody adds any more */
    wb_otlp_chain_free(&chain);
    tell_losses(x, 1);
    return NULL;
}

/* ---- life --------------------------------------------------------------------------- */

static int start(wb_otlp_exporter *x, wb_error *error)
{
    int code = wb_otlp_queue_init(&x->queue, (size_t)x->config->queue_max, (size_t)x->config->batch_max);
    if (code)
        return x->host->fail(x->host, error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start: %s", strerror(code));
    if (wb_otlp_poster_init(&x->poster, x->config, x->host->now) == WB_OK)
        code = wb_common_thread_start(&x->thread, 0, run, x);
    else
        code = ENOMEM;
    if (!code)
        return WB_OK;
    wb_otlp_poster_free(&x->poster);
    wb_otlp_queue_free(&x->queue);
    return x->host->fail(x->host, error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start: %s", strerror(code));
}

int wb_otlp_exporter_start(wb_otlp_exporter *x, wb_error *error)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) /* for good: others in the process may not be counted */
        return x->host->fail(x->host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "could not start: libcurl does not");
    return start(x, error);
}

void wb_otlp_exporter_stop(wb_otlp_exporter *x, int64_t deadline)
{
    wb_otlp_queue_close(&x->queue, deadline);
    wb_otlp_poster_hurry(&x->poster, deadline);
    (void)pthread_join(x->thread, NULL);
    wb_otlp_poster_free(&x->poster);
    wb_otlp_queue_free(&x->queue);
}

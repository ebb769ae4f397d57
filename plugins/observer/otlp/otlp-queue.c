/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/observer/otlp/otlp-queue.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
/* A reason may quote what a server said; a span is no place for all of it. */
#define TEXT_MAX ((size_t)1024)
/* Long texts make a batch of fewer: receivers have limits, often of 4 MiB, and a byte may take six in JSON. */
#define BATCH_BYTES ((size_t)512 << 10)

/* ---- a span ------------------------------------------------------------------------ */

static size_t size_of(const char *text)
{
    const size_t size = text ? strlen(text) : 0;
    return size < TEXT_MAX ? size : TEXT_MAX;
}

static const char *keep(char **at, const char *text, size_t size)
{
    char *kept = *at;
    if (!text)
        return NULL;
    memcpy(kept, text, size);
    kept[size] = '\0';
    *at += size + 1;
    return kept;
}

/* @return NULL: there is no memory. */
static wb_otlp_span *copy(int is, const wb_observation *from)
{
    wb_otlp_span *span;
    const size_t id = from->id_size < TEXT_MAX ? from->id_size : TEXT_MAX, type = size_of(from->type),
                 destination = size_of(from->destination), reason = size_of(from->reason);
    const size_t size = sizeof *span + id + type + destination + reason + 4;
    span = malloc(size);
    if (!span)
        return NULL;
    char *at = span->texts;
    *span = (wb_otlp_span){ .size = size,
                            .is = is,
                            .kind = from->kind,
                            .attempt = from->attempt,
                            .trace = from->trace,
                            .begin = from->begin,
                            .end = from->end,
                            .body_size = from->body_size };
    span->id = keep(&at, from->id, id);
    span->type = keep(&at, from->type, type);
    span->destination = keep(&at, from->destination, destination);
    span->reason = keep(&at, from->reason, reason);
    return span;
}

/* ---- chains ------------------------------------------------------------------------ */

static void clear(wb_otlp_chain *chain)
{
    chain->first = NULL;
    chain->end = &chain->first;
    chain->count = 0;
}

static void append(wb_otlp_chain *chain, wb_otlp_span *span)
{
    *chain->end = span;
    chain->end = &span->next;
    chain->count++;
}

static wb_otlp_span *take_first(wb_otlp_chain *chain)
{
    wb_otlp_span *span = chain->first;
    chain->first = span->next;
    if (!--chain->count)
        chain->end = &chain->first;
    span->next = NULL;
    return span;
}

static void move(wb_otlp_chain *to, wb_otlp_chain *from, size_t count)
{
    while (from->count && count--)
        append(to, take_first(from));
}

/* One at least. */
static void move_bytes(wb_otlp_chain *to, wb_otlp_chain *from, size_t count, size_t bytes)
{
    for (size_t taken = 0; from->count && count-- && (!taken || taken + from->first->size <= bytes);) {
        taken += from->first->size;
        append(to, take_first(from));
    }
}

void wb_otlp_chain_free(wb_otlp_chain *chain)
{
    while (chain->count)
        free(take_first(chain));
}

/* ---- the queue ---------------------------------------------------------------------- */

static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int code = pthread_condattr_init(&attributes);
    if (code)
        return code;
    code = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (!code)
        code = pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return code;
}

int wb_otlp_queue_init(wb_otlp_queue *queue, size_t limit, size_t enough)
{
    memset(queue, 0, sizeof *queue);
    clear(&queue->chain);
    queue->limit = limit;
    queue->enough = enough;
    int code = pthread_mutex_init(&queue->lock, NULL);
    if (!code && (code = init_condition(&queue->filled)))
        (void)pthread_mutex_destroy(&queue->lock);
    return code;
}

void wb_otlp_queue_free(wb_otlp_queue *queue)
{
    wb_otlp_chain_free(&queue->chain);
    (void)pthread_cond_destroy(&queue->filled);
    (void)pthread_mutex_destroy(&queue->lock);
}

static int is_wanted(const wb_observation *one)
{
    return (one->trace.flags & WB_TRACE_SAMPLED) != 0;
}

static uint64_t copy_all(int is, const wb_observation *const *observations, size_t count, wb_otlp_chain *chain)
{
    uint64_t lost = 0;
    clear(chain);
    for (size_t i = 0; i < count; i++) {
        wb_otlp_span *span = is_wanted(observations[i]) ? copy(is, observations[i]) : NULL;
        lost += is_wanted(observations[i]) && !span;
        if (span)
            append(chain, span);
    }
    return lost;
}

void wb_otlp_queue_add(wb_otlp_queue *queue, int is, const wb_observation *const *observations, size_t count)
{
    wb_otlp_chain chain;
    const uint64_t lost = copy_all(is, observations, count, &chain);
    if (!chain.count && !lost)
        return;
    (void)pthread_mutex_lock(&queue->lock);
    const int was_enough = queue->chain.count >= queue->enough;
    move(&queue->chain, &chain, queue->limit - queue->chain.count);
    queue->dropped += lost + chain.count;
    if (!was_enough && queue->chain.count >= queue->enough)
        (void)pthread_cond_signal(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
    wb_otlp_chain_free(&chain);
}

/* With the lock. @return whether it was until then. */
static int wait_until(wb_otlp_queue *queue, int64_t until)
{
    const struct timespec time = { .tv_sec = until / SECOND, .tv_nsec = until % SECOND };
    return pthread_cond_timedwait(&queue->filled, &queue->lock, &time) != 0;
}

void wb_otlp_queue_take(wb_otlp_queue *queue, int64_t until, wb_otlp_chain *ret_chain)
{
    clear(ret_chain);
    (void)pthread_mutex_lock(&queue->lock);
    while (!queue->is_closing && queue->chain.count < queue->enough && !wait_until(queue, until))
        ;
    move_bytes(ret_chain, &queue->chain, queue->enough, BATCH_BYTES);
    (void)pthread_mutex_unlock(&queue->lock);
}

void wb_otlp_queue_pause(wb_otlp_queue *queue, int64_t until)
{
    (void)pthread_mutex_lock(&queue->lock);
    while (!queue->is_closing && !wait_until(queue, until))
        ;
    (void)pthread_mutex_unlock(&queue->lock);
}

uint64_t wb_otlp_queue_dropped(wb_otlp_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    const uint64_t dropped = queue->dropped;
    queue->dropped = 0;
    (void)pthread_mutex_unlock(&queue->lock);
    return dropped;
}

void wb_otlp_queue_close(wb_otlp_queue *queue, int64_t deadline)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->is_closing = 1;
    queue->deadline = deadline;
    (void)pthread_cond_broadcast(&queue->filled);
    (void)pthread_mutex_unlock(&queue->lock);
}

int64_t wb_otlp_queue_closing(wb_otlp_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    const int64_t deadline = queue->is_closing ? queue->deadline : 0;
    (void)pthread_mutex_unlock(&queue->lock);
    return deadline;
}

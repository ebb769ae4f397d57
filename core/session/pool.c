/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/session/pool.h"

#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/plugin/instance.h"

/* Whoever would wait longer would wait for ever. */
#define LONGEST (24 * 3600 * WB_SECOND)

void wb_pool_init(wb_pool *pool, wb_pipeline *pipeline, unsigned count)
{
    pthread_condattr_t attributes;
    *pool = (wb_pool){ .pipeline = pipeline, .count = count };
    pool->places = wb_alloc_zero(count, sizeof *pool->places);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->freed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (unsigned i = 0; i < count; i++) {
        pool->places[i].next = pool->free;
        pool->free = &pool->places[i];
    }
}

void wb_pool_free(wb_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        wb_place_drop_storage(pool, &pool->places[i]);
        wb_place_drop_outlet(pool, &pool->places[i]);
    }
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
    free(pool->places);
}

wb_place *wb_pool_take(wb_pool *pool, int64_t patience)
{
    const int64_t until = wb_clock_monotonic() + (patience < 0 ? 0 : patience < LONGEST ? patience : LONGEST);
    const struct timespec at = { .tv_sec = until / WB_SECOND, .tv_nsec = until % WB_SECOND };
    int code = 0;
    pthread_mutex_lock(&pool->lock);
    while (!pool->free && code == 0)
        code = pthread_cond_timedwait(&pool->freed, &pool->lock, &at);
    wb_place *place = pool->free;
    if (place)
        pool->free = place->next;
    pthread_mutex_unlock(&pool->lock);
    return place;
}

void wb_pool_give(wb_pool *pool, wb_place *place)
{
    pthread_mutex_lock(&pool->lock);
    place->next = pool->free;
    pool->free = place;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

int wb_place_open_storage(wb_pool *pool, wb_place *place, wb_error *error)
{
    wb_pipeline *p = pool->pipeline;
    if (place->storage)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &place->storage, error);
    if (r == WB_OK)
        r = wb_pipeline_ask_time(p, place->storage, error);
    if (r != WB_OK)
        wb_place_drop_storage(pool, place);
    return r;
}

int wb_place_open_outlet(wb_pool *pool, wb_place *place, wb_error *error)
{
    wb_pipeline *p = pool->pipeline;
    if (place->outlet.session)
        return WB_OK;
    place->outlet = (wb_outlet){ .pipeline = p };
    return wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &place->outlet.session, error);
}

void wb_place_drop_storage(wb_pool *pool, wb_place *place)
{
    if (place->storage)
        pool->pipeline->persistence_ops->close(place->storage);
    place->storage = NULL;
}

void wb_place_drop_outlet(wb_pool *pool, wb_place *place)
{
    if (place->outlet.session)
        pool->pipeline->transport_ops->close(place->outlet.session);
    place->outlet.session = NULL;
}

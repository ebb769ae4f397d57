/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool: places where sessions work, each used by one session at a time. Connections are opened
 * when a place is used first, and kept for the next session.
 */
#ifndef WB_SESSION_POOL_H
#define WB_SESSION_POOL_H

#include <pthread.h>

#include "core/pipeline/window.h"

typedef struct wb_place {
    wb_storage_session *storage; /* NULL: not open */
    wb_outlet outlet;            /* session NULL: not open */
    struct wb_place *next;       /* of the free ones */
} wb_place;

typedef struct wb_pool {
    wb_pipeline *pipeline;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t freed;
    wb_place *places;
    wb_place *free; /* used last first: its connections live most likely */
    unsigned count;
} wb_pool;

void wb_pool_init(wb_pool *pool, wb_pipeline *pipeline, unsigned count);
/** Every place was given back. */
void wb_pool_free(wb_pool *pool);

/** @return a place, or NULL: none was free for so long. */
wb_place *wb_pool_take(wb_pool *pool, int64_t patience);
void wb_pool_give(wb_pool *pool, wb_place *place);

/** Open what is not. @return as the plugin's open(). */
int wb_place_open_storage(wb_pool *pool, wb_place *place, wb_error *error);
int wb_place_open_outlet(wb_pool *pool, wb_place *place, wb_error *error);
/** It is broken, or its state is not known: the next one opens another. */
void wb_place_drop_storage(wb_pool *pool, wb_place *place);
void wb_place_drop_outlet(wb_pool *pool, wb_place *place);

#endif

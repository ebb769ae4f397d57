/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/contexts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/log.h"

typedef struct place {
    wb_context context; /* first: the handler's pointer is ours */
    wb_contexts *ring;
    _Atomic(const char *) name; /* of what it was handed to: a type or a hook; NULL: not known any more */
    atomic_int is_hook;
    atomic_int is_running;
    atomic_int is_told;
} place;

struct wb_contexts {
    wb_contexts *next; /* of all rings of the process */
    int is_taken;
    size_t at; /* the next one */
    place places[WB_CONTEXTS_KEPT];
    char endpoint[];
};

/* Guards the list, and types while a line is made of one. */
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
static wb_contexts *rings;

static place *place_of(wb_context *context)
{
    return (place *)context;
}

static wb_contexts *make_ring(const char *endpoint)
{
    const size_t size = strlen(endpoint) + 1;
    wb_contexts *ring = wb_alloc_zero(1, sizeof *ring + size);
    memcpy(ring->endpoint, endpoint, size);
    for (size_t i = 0; i < WB_CONTEXTS_KEPT; i++)
        ring->places[i].ring = ring;
    return ring;
}

static wb_contexts *find_free(const char *endpoint)
{
    wb_contexts *ring = rings;
    while (ring && (ring->is_taken || strcmp(ring->endpoint, endpoint) != 0))
        ring = ring->next;
    if (ring)
        ring->is_taken = 1;
    return ring;
}

wb_contexts *wb_contexts_take(const char *endpoint)
{
    pthread_mutex_lock(&rings_lock);
    wb_contexts *ring = find_free(endpoint);
    pthread_mutex_unlock(&rings_lock);
    if (ring)
        return ring;
    ring = make_ring(endpoint); /* without the lock: who finds memory out may not come back */
    ring->is_taken = 1;
    pthread_mutex_lock(&rings_lock);
    ring->next = rings;
    rings = ring;
    pthread_mutex_unlock(&rings_lock);
    return ring;
}

/* The names of types are the configuration's, which may go. */
void wb_contexts_give_back(wb_contexts *contexts)
{
    if (!contexts)
        return;
    pthread_mutex_lock(&rings_lock);
    for (size_t i = 0; i < WB_CONTEXTS_KEPT; i++) {
        atomic_store(&contexts->places[i].name, NULL);
        atomic_store(&contexts->places[i].is_running, 0);
    }
    contexts->is_taken = 0;
    pthread_mutex_unlock(&rings_lock);
}

wb_context *wb_contexts_begin(wb_contexts *contexts, const wb_handler_api *api, const char *name, int is_hook)
{
    place *p = &contexts->places[contexts->at++ % WB_CONTEXTS_KEPT];
    p->context.api = api;
    atomic_store_explicit(&p->name, name, memory_order_relaxed);
    atomic_store_explicit(&p->is_hook, is_hook, memory_order_relaxed);
    atomic_store_explicit(&p->is_told, 0, memory_order_relaxed);
    atomic_store_explicit(&p->is_running, 1, memory_order_release);
    return &p->context;
}

void wb_contexts_end(wb_context *context)
{
    atomic_store_explicit(&place_of(context)->is_running, 0, memory_order_release);
}

static void tell(const place *p, const char *function, const char *of_handler, const char *of_hook)
{
    const int is_hook = atomic_load(&p->is_hook);
    wb_log_event(WB_LOG_ERROR, is_hook ? of_hook : of_handler, { "endpoint", p->ring->endpoint },
                 { is_hook ? "hook" : "type", atomic_load(&p->name) }, { "call", function });
}

/* Whoever held the lock is not there. */
void wb_contexts_after_fork(void)
{
    pthread_mutex_init(&rings_lock, NULL);
}

/* A child has no other thread, but what the lock guards may have been in the middle of a change. */
void wb_contexts_refuse(wb_context *context, const char *function, int in_child)
{
    place *p = place_of(context);
    if (atomic_exchange(&p->is_told, 1))
        return;
    if (in_child) {
        tell(p, function, "a handler's context is used in a child process: refused",
             "a hook's context is used in a child process: refused");
        return;
    }
    pthread_mutex_lock(&rings_lock);
    if (atomic_load(&p->is_running))
        tell(p, function, "a handler's context is used by another thread than its own: refused",
             "a hook's context is used by another thread than its own: refused");
    else
        tell(p, function, "a handler's context is used after the handler has returned: refused",
             "a hook's context is used after the hook has returned: refused");
    pthread_mutex_unlock(&rings_lock);
}

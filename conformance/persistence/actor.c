/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/persistence/actor.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"

/* Longer than the plugins' own default timeouts for a lock. */
#define DEADLINE (90 * WB_SECOND)

static void *actor_main(void *argument)
{
    wb_actor *actor = argument;
    pthread_mutex_lock(&actor->lock);
    for (;;) {
        while (!actor->call && !actor->is_over)
            pthread_cond_wait(&actor->changed, &actor->lock);
        if (!actor->call)
            break;
        pthread_mutex_unlock(&actor->lock);
        actor->call(actor->argument);
        pthread_mutex_lock(&actor->lock);
        actor->call = NULL;
        pthread_cond_broadcast(&actor->changed);
    }
    pthread_mutex_unlock(&actor->lock);
    return NULL;
}

void wb_actor_start(wb_actor *actor)
{
    pthread_condattr_t attributes;
    actor->call = NULL;
    actor->is_over = 0;
    pthread_mutex_init(&actor->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&actor->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&actor->thread, NULL, actor_main, actor) != 0)
        abort();
}

void wb_actor_do(wb_actor *actor, void (*call)(void *), void *argument)
{
    pthread_mutex_lock(&actor->lock);
    actor->argument = argument;
    actor->call = call;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->lock);
}

int wb_actor_is_idle(wb_actor *actor, int64_t within)
{
    int64_t at = wb_clock_monotonic() + within;
    const struct timespec until = { .tv_sec = at / WB_SECOND, .tv_nsec = at % WB_SECOND };
    pthread_mutex_lock(&actor->lock);
    while (actor->call && pthread_cond_timedwait(&actor->changed, &actor->lock, &until) != ETIMEDOUT)
        ;
    int is_idle = !actor->call;
    pthread_mutex_unlock(&actor->lock);
    return is_idle;
}

void wb_actor_await(wb_kit *kit, wb_actor *actor)
{
    if (wb_actor_is_idle(actor, DEADLINE))
        return;
    wb_kit_abandon(kit, "a call has not returned within %d s", (int)(DEADLINE / WB_SECOND));
}

void wb_actor_stop(wb_actor *actor)
{
    pthread_mutex_lock(&actor->lock);
    actor->is_over = 1;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->lock);
    pthread_join(actor->thread, NULL);
    pthread_cond_destroy(&actor->changed);
    pthread_mutex_destroy(&actor->lock);
}

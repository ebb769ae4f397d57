/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors: threads that make one call at a time for a case, so that the case can go on while
 * the call waits. The case's thread hands over calls and looks whether they have returned.
 */
#ifndef WB_CONFORMANCE_ACTOR_H
#define WB_CONFORMANCE_ACTOR_H

#include <stdint.h>

#include "conformance/kit.h"

typedef struct wb_actor {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*call)(void *argument); /* NULL: idle */
    void *argument;
    int is_over;
} wb_actor;

void wb_actor_start(wb_actor *actor);
/** Hand over a call; the actor must be idle. */
void wb_actor_do(wb_actor *actor, void (*call)(void *), void *argument);
/** @return whether the call has returned within so many nanoseconds; 0 of them: by now. */
int wb_actor_is_idle(wb_actor *actor, int64_t within);
/** Wait until the call returns. One that never does ends the run: nothing that it holds can
 *  be used or freed any more. */
void wb_actor_await(wb_kit *kit, wb_actor *actor);
/** The actor must be idle. */
void wb_actor_stop(wb_actor *actor);

#endif

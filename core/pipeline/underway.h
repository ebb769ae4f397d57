/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers of this process have underway: batches whose rows in the outbox others may meet although nobody has died. One
 * that is committed is being dispatched; one that is out is dispatched, and its mark is on its way, in a transaction that lasts
 * as long as the handlers of the next batch. A second copy of a message waits for them, and the sweeper leaves them alone: what is
 * sent twice without need is sent by another process (resume.c, core/endpoint/sweeper.c), which cannot know.
 *
 * Any thread. An entry is its worker's, which drops it when its row is gone or its session is.
 */
#ifndef WB_PIPELINE_UNDERWAY_H
#define WB_PIPELINE_UNDERWAY_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wb_underway_entry {
    uint64_t batch;
    const void *worker;
    int is_out; /* all of it is confirmed */
    int rides;  /* its mark is in the worker's transaction */
} wb_underway_entry;

typedef struct wb_underway {
    pthread_mutex_t lock;
    wb_underway_entry *entries;
    size_t count, max;
} wb_underway;

void wb_underway_init(wb_underway *u);
void wb_underway_free(wb_underway *u);

/** A worker commits a batch with a row; it has no other one in hand. */
void wb_underway_begin(wb_underway *u, const void *worker, uint64_t batch);
/** The one that it has in hand is dispatched; or it is not, or only a part: whoever meets the row sends what is in it. */
void wb_underway_is_out(wb_underway *u, const void *worker);
void wb_underway_give_up(wb_underway *u, const void *worker);
/** Marks of what is out are in its transaction now; it has ended with them; they were made by themselves. */
void wb_underway_ride(wb_underway *u, const void *worker);
void wb_underway_landed(wb_underway *u, const void *worker);
void wb_underway_marked(wb_underway *u, const void *worker);
/** Its session is gone, and with it marks that were on their way. */
void wb_underway_drop(wb_underway *u, const void *worker);

/** Whether another one than `worker` (NULL: any) has it underway. */
int wb_underway_has(wb_underway *u, const void *worker, uint64_t batch);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspicions: ids in whose company a connection died. An operation that makes the broker close
 * the connection takes everything sent beside it along, each time; so what was under way when
 * a connection died is sent one by one next time, and the message that caused it is handled by
 * itself. What is confirmed is forgotten. What kills the connection alone, time after time, is
 * given up.
 *
 * One table an endpoint, of a fixed size: when it is full the oldest go. Empty nearly always,
 * and asking an empty table costs one load. Any thread.
 */
#ifndef WB_RECOVER_SUSPICIONS_H
#define WB_RECOVER_SUSPICIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WB_SUSPICIONS_MAX 4096

/** So many deaths alone end the tries, on connections that had just confirmed something else;
 *  and so many where there was nothing else to confirm. */
#define WB_DEATHS_MAX 3
#define WB_DEATHS_UNPROVED_MAX 10

typedef struct wb_suspicion {
    uint64_t hash; /* of the id; 0: free */
    unsigned deaths;
    unsigned unproved;
} wb_suspicion;

typedef struct wb_suspicions {
    pthread_mutex_t lock;
    atomic_size_t count;
    size_t next; /* where the next one goes when all are taken */
    wb_suspicion table[WB_SUSPICIONS_MAX];
} wb_suspicions;

void wb_suspicions_init(wb_suspicions *suspicions);
void wb_suspicions_free(wb_suspicions *suspicions);

/** Remember an id; deaths stay as they are when it is there. */
void wb_suspicions_add(wb_suspicions *suspicions, const void *id, size_t size);
void wb_suspicions_forget(wb_suspicions *suspicions, const void *id, size_t size);
int wb_suspicions_has(wb_suspicions *suspicions, const void *id, size_t size);

/** A connection died while this one was sent alone. `proved`: it had confirmed another. */
void wb_suspicions_count_death(wb_suspicions *suspicions, const void *id, size_t size, int proved);
/** Whether it died often enough. */
int wb_suspicions_is_deadly(wb_suspicions *suspicions, const void *id, size_t size);
/** How often it died, for putting the harmless first. */
unsigned wb_suspicions_deaths(wb_suspicions *suspicions, const void *id, size_t size);

#endif

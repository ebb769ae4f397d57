/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspicions: ids in whose company a connection died. An operation that makes the broker close
 * the connection takes everything sent beside it along, each time; so what was under way when
 * a connection died is sent one by one next time, and the message that caused it is handled by
 * itself. What is confirmed is forgotten. What kills the connection alone, time after time, is
 * given up for a while, longer each time: the broker may have been ill, or may learn to take it.
 *
 * One table an endpoint, of a fixed size: when it is full the oldest go, and what nobody asked
 * for in a day is forgotten: others finished it. Empty nearly always, and asking an empty table
 * costs one load. Any thread.
 */
#ifndef WB_RECOVER_SUSPICIONS_H
#define WB_RECOVER_SUSPICIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/clock.h"

#define WB_SUSPICIONS_MAX 4096

/** So many deaths alone end the tries, on connections that had just confirmed something else;
 *  and so many where there was nothing else to confirm. */
#define WB_DEATHS_MAX 3
#define WB_DEATHS_UNPROVED_MAX 10
/** Then it rests: so long at first (ns), doubled with each further death, at most so long. */
#define WB_DEADLY_REST_FIRST (60 * WB_SECOND)
#define WB_DEADLY_REST_LONGEST (3600 * WB_SECOND)
/** What nobody asks for is forgotten after this time (ns). */
#define WB_SUSPICIONS_KEPT (24 * 3600 * WB_SECOND)

typedef struct wb_suspicion {
    uint64_t hash; /* of the id; 0: free */
    unsigned deaths;
    unsigned unproved;
    int64_t died;  /* when it died last; 0 */
    int64_t asked; /* when somebody wanted to know last */
} wb_suspicion;

typedef struct wb_suspicions {
    pthread_mutex_t lock;
    atomic_size_t count;
    size_t next; /* where the next one goes when all are taken */
    int64_t swept; /* when what is too old was forgotten last */
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
/** Whether it died often enough, and rests. When it has rested it may be tried, alone, once more;
 *  with `for_ever` it never has: where each death counts a delivery of what is in hand, and the
 *  broker drops what it delivered too often. */
int wb_suspicions_is_deadly(wb_suspicions *suspicions, const void *id, size_t size, int for_ever);
/** How often it died, for putting the harmless first. */
unsigned wb_suspicions_deaths(wb_suspicions *suspicions, const void *id, size_t size);

#endif

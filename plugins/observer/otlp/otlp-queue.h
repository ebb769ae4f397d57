/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans on their way from workers to the exporter: copies of what was observed, in a list that has a limit. Whoever adds
 * holds the lock for as long as it takes to hang a chain into a list, and never waits for the exporter.
 */
#ifndef WB_OTLP_QUEUE_H
#define WB_OTLP_QUEUE_H

#include <pthread.h>
#include <waybill/sys/observer.h>

/* What a span is of. */
#define WB_OTLP_HANDLED 1
#define WB_OTLP_FAILED 2
#define WB_OTLP_SENT 3

/** One that happened: as wb_observation, with texts of its own, which are never NULL where that has one. One piece of memory. */
typedef struct wb_otlp_span {
    struct wb_otlp_span *next;
    size_t size; /* bytes, all of it */
    int is; /* WB_OTLP_x */
    int32_t kind;
    uint32_t attempt;
    wb_trace trace;
    int64_t begin, end;
    size_t body_size;
    const char *id, *type, *destination, *reason;
    char texts[];
} wb_otlp_span;

/** In the order they were added. */
typedef struct wb_otlp_chain {
    wb_otlp_span *first, **end;
    size_t count;
} wb_otlp_chain;

typedef struct wb_otlp_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    wb_otlp_chain chain;
    size_t limit, enough; /* most that wait; so many wake the exporter */
    uint64_t dropped;     /* since somebody asked */
    int is_closing;
    int64_t deadline; /* of closing */
} wb_otlp_queue;

/** @return 0, or an errno. */
int wb_otlp_queue_init(wb_otlp_queue *queue, size_t limit, size_t enough);
void wb_otlp_queue_free(wb_otlp_queue *queue);

/** Copy those that are sampled, and add them; of what finds no place, or no memory, the number is kept. Any thread. */
void wb_otlp_queue_add(wb_otlp_queue *queue, int is, const wb_observation *const *observations, size_t count);
/** Wait until there are enough, until `until` (monotonic) or until it is closed, and take so many at most; fewer of those whose
 *  texts are long. */
void wb_otlp_queue_take(wb_otlp_queue *queue, int64_t until, wb_otlp_chain *ret_chain);
/** What was dropped since the last call, and these. */
uint64_t wb_otlp_queue_dropped(wb_otlp_queue *queue);
/** Nothing is to wait any more. */
void wb_otlp_queue_close(wb_otlp_queue *queue, int64_t deadline);
/** @return the deadline, or 0: it is open. */
int64_t wb_otlp_queue_closing(wb_otlp_queue *queue);
/** Wait, until it is closed at most. */
void wb_otlp_queue_pause(wb_otlp_queue *queue, int64_t until);

void wb_otlp_chain_free(wb_otlp_chain *chain);

#endif

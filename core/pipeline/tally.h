/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of an endpoint's messages, in numbers, since it was made: for who operates it.
 *
 * A message is handled when its effect is durable, that is once, and moved, or to be retried later, when its copy has
 * left. What came again after that is a duplicate, also where this process handled it and could not send at once what it
 * asked for; and so is a copy of the same id beside it. Attempts fail, messages do not: one that is handled in the end may have made some.
 *
 * Each worker counts in numbers of its own, so that nobody waits for anybody: only its thread writes them, any thread may read.
 * What other threads count, seldom, is in the endpoint's (wb_pipeline.tally). Who reads sums up. Most is counted once a batch.
 */
#ifndef WB_PIPELINE_TALLY_H
#define WB_PIPELINE_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

/** What a worker spends its time with. */
typedef enum {
    WB_TIME_RECEIVE, /* waiting for messages, or for servers, too */
    WB_TIME_CLAIM,
    WB_TIME_HANDLE,
    WB_TIME_COMMIT,
    WB_TIME_DISPATCH,
    WB_TIME_ACKNOWLEDGE, /* marks that go alone, too */
    WB_TIMES
} wb_time;

/** What is counted by how large it is. Times are observed in ns. */
typedef enum {
    WB_HISTOGRAM_HANDLER,  /* the time of a call; a batch handler's is one */
    WB_HISTOGRAM_CRITICAL, /* the time from when a message was sent, or due, to the commit of its effect */
    WB_HISTOGRAM_LATENESS, /* the time from when a message in a store was due to its confirmation */
    WB_HISTOGRAM_BATCH,    /* messages in a batch that was committed */
    WB_HISTOGRAMS
} wb_histogram;

/** So many bounds a histogram has at most; behind them is one more number, and the sum of what was observed. */
#define WB_HISTOGRAM_BOUNDS 18
#define WB_HISTOGRAM_SIZE (WB_HISTOGRAM_BOUNDS + 2)

typedef enum {
    WB_TALLY_HANDLED,
    WB_TALLY_FAILED, /* attempts */
    WB_TALLY_MOVED,  /* to the error queue */
    WB_TALLY_DUPLICATES,
    WB_TALLY_RETRIED_LATER, /* by a delayed retry */
    WB_TALLY_DISCARDED,     /* as a handler wished */
    WB_TALLY_PARKED,        /* for the error queue, which does not take them: in the database */
    WB_TALLY_TOLD,          /* so many are on lines of the log; the others are for metrics alone */
    WB_TALLY_FAILED_HANDLER = WB_TALLY_TOLD, /* attempts that failed, by their class */
    WB_TALLY_FAILED_UNRECOVERABLE,
    WB_TALLY_FAILED_DISPATCH,
    WB_TALLY_FAILED_CRASH,
    WB_TALLY_SENT,           /* operations that a transport took, whoever sent them */
    WB_TALLY_ROLLED_BACK,    /* batches */
    WB_TALLY_OPENED_BROKER,  /* sessions of workers, by their server: WB_DEPENDENCY_x behind it */
    WB_TALLY_OPENED_DATABASE,
    WB_TALLY_OPENED_STORE,
    WB_TALLY_SWEPT,          /* pending rows that the sweeper dispatched */
    WB_TALLY_SWEEP_PARKED,   /* those that it could not, each time */
    WB_TALLY_CLEANED,        /* deduplication records */
    WB_TALLY_TIME,           /* ns, a number a wb_time */
    WB_TALLY_LAPS = WB_TALLY_TIME + WB_TIMES,     /* how often */
    WB_TALLY_HISTOGRAMS = WB_TALLY_LAPS + WB_TIMES, /* WB_HISTOGRAM_SIZE numbers each */
    WB_TALLY_KINDS = WB_TALLY_HISTOGRAMS + WB_HISTOGRAMS * WB_HISTOGRAM_SIZE
} wb_tally_kind;

typedef struct wb_tally {
    _Atomic uint64_t of[WB_TALLY_KINDS];
} wb_tally; /* all zero is the beginning */

/** The same, read; and what is known beside it. */
typedef struct wb_counts {
    uint64_t of[WB_TALLY_KINDS];
    uint64_t expired; /* dropped by the transport before they were received */
    uint64_t waiting; /* now: received by workers, and neither done nor given back. What is set aside is among them */
} wb_counts;

/** What a field of the log calls it, of those before WB_TALLY_TOLD. */
const char *wb_tally_name(wb_tally_kind kind);

/** Any thread, in the endpoint's numbers. */
static inline void wb_tally_add(wb_tally *tally, unsigned kind, uint64_t count)
{
    if (count)
        atomic_fetch_add_explicit(&tally->of[kind], count, memory_order_relaxed);
}

/** The one thread that writes it: a worker, in its own. */
static inline void wb_tally_note(wb_tally *tally, unsigned kind, uint64_t count)
{
    const uint64_t before = atomic_load_explicit(&tally->of[kind], memory_order_relaxed);
    atomic_store_explicit(&tally->of[kind], before + count, memory_order_relaxed);
}

/** The same of a wb_time that took so long (ns). */
static inline void wb_tally_lap(wb_tally *tally, wb_time time, int64_t spent)
{
    wb_tally_note(tally, WB_TALLY_TIME + (unsigned)time, spent > 0 ? (uint64_t)spent : 0);
    wb_tally_note(tally, WB_TALLY_LAPS + (unsigned)time, 1);
}

/** A time beyond this is a clock that is wrong, or a message that lay forgotten; it counts as this: nobody makes a sum of
 *  times, which anybody's headers begin, useless by a few messages. */
#define WB_TALLY_LONGEST (INT64_C(7) * 86400 * 1000000000)

/** The same of a value; one that is negative, because clocks differ, is 0, and a time is WB_TALLY_LONGEST at most. */
void wb_tally_observe(wb_tally *tally, wb_histogram histogram, int64_t value);

/** The bounds of a histogram, ascending: a value is counted at the first that it does not exceed, or behind the last. */
const int64_t *wb_histogram_bounds(wb_histogram histogram, unsigned *ret_count);
/** The number of the first of its WB_HISTOGRAM_SIZE: as many as bounds, the rest behind them, and last the sum, in
 *  its unit. */
static inline unsigned wb_histogram_first(wb_histogram histogram)
{
    return WB_TALLY_HISTOGRAMS + (unsigned)histogram * WB_HISTOGRAM_SIZE;
}

/** What a sum of times counts, in ns. What may be days each is in microseconds: in ns the sum would not fit after 30,000. */
int64_t wb_histogram_unit(wb_histogram histogram);

/** Add what it has to what was read of others. */
void wb_tally_read(const wb_tally *tally, wb_counts *counts);
/** A worker's are the endpoint's from now on: it has ended. */
void wb_tally_fold(wb_tally *into, const wb_tally *tally);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint's pipeline: what all its workers and its housekeeper share. Filled by the
 * endpoint, constant while they run, but for the fields marked so.
 */
#ifndef WB_PIPELINE_PIPELINE_H
#define WB_PIPELINE_PIPELINE_H

#include <stdatomic.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/base/alarm.h"
#include "core/base/type_policy.h"
#include "core/message/outgoing.h"
#include "core/pipeline/breaker.h"
#include "core/pipeline/dependency.h"
#include "core/pipeline/hooks.h"
#include "core/pipeline/rate.h"
#include "core/pipeline/tally.h"
#include "core/pipeline/underway.h"
#include "core/plugin/handlers.h"
#include "core/recover/parked.h"
#include "core/recover/recoverability.h"
#include "core/recover/suspicions.h"

/* How messages that came before are known, with the outbox. */
#define WB_POSITIONS_NONE 0  /* by their ids */
#define WB_POSITIONS_BESIDE 1 /* by their positions, too */
#define WB_POSITIONS_ALONE 2 /* by their positions */

typedef struct wb_pipeline {
    const char *endpoint;
    int mode;    /* WB_MODE_x */
    int outbox;  /* deduplicate and store; only with WB_MODE_RECEIVE_ONLY */
    int positions; /* WB_POSITIONS_x */
    int stores_with_commit; /* what is due later goes into the store with its batch, not behind it */
    int minds_sessions; /* control messages of transactional sessions are for it: it has their records */
    int failures; /* it keeps what comes from an error queue: a message is known by its failure, not by its id */
    int64_t failures_retention; /* ns: how long such messages are kept that nobody waits for */
    int64_t failures_compress_over; /* larger bodies of theirs are kept compressed; 0: none is */
    int ordered; /* the transport keeps the order of messages with one key */
    const wb_transport_ops *transport_ops;
    wb_transport *transport;
    const wb_persistence_ops *persistence_ops; /* NULL: the endpoint has no persistence */
    wb_persistence *persistence;
    const wb_persistence_ops *apart_ops; /* what ids are remembered in when they are done with; NULL: in the outbox */
    wb_persistence *apart;
    wb_origin origin;
    const wb_handler_set *handlers;
    wb_hooks hooks; /* opened and closed by the main thread while no worker runs */
    wb_recoverability recoverability;
    const wb_type_policy *type_policies; /* what is different for some types */
    size_t type_policy_count;
    const char *audit_queue; /* NULL: nothing is audited */
    unsigned batch_max;
    int64_t batch_time; /* ns */
    int64_t body_max;
    int64_t sweep_after; /* ns: younger pending rows are left to their workers */
    int64_t park_time;   /* ns: how long parked operations wait at first */
    int64_t drain_time;  /* ns: how long a stop may go on handling what is in hand */
    int stops_on_critical; /* a circuit breaker that opens stops the endpoint */
    /* ns; 0: none (overtime.h) */
    int64_t slow_handler, handler_time_limit, handler_timeout;
    int64_t missing_patience; /* ns: so long a table that is not there any more is waited for (distrust.h) */

    atomic_int stop; /* set once; workers finish what is in flight */
    atomic_int is_critical; /* a circuit breaker opened, and workers are to give up */
    atomic_int is_down; /* every worker gave up and none is started yet: nobody keeps a session open */
    /* Told of each message that is stored to wait; the poller sleeps by it. */
    wb_alarm alarm;
    wb_breaker store_breaker, fetch_breaker, dispatch_breaker;
    /* When a table was first seen not to be there, monotonic; 0: all are. The deduplication store has its own: what one
     * of the two databases answers says nothing of the other. */
    _Atomic int64_t missing_since, apart_missing_since;
    /* Set when a message came back whose operations are parked: the sweeper tries them all. */
    atomic_int sweep_parked;
    /* The database's time is wb_clock_steady() plus the first at most, and plus the second at least: many
     * threads ask, and either holds whoever told the other. 0: not known, the wall clock is. */
    _Atomic int64_t time_offset;
    _Atomic int64_t due_offset;
    /* Batches with handled messages that were committed: what a server's trouble is measured by. */
    _Atomic uint64_t successes;
    /* Messages whose operations the broker took, all of them. */
    _Atomic uint64_t arrivals;
    /* Control messages that were for nothing here, and when the next line may say so. */
    _Atomic uint64_t control_messages;
    _Atomic int64_t control_messages_due;
    wb_tally tally; /* what other threads than workers count; and workers that have ended */
    wb_rate_limit rate; /* after and wait are constant */
    wb_suspicions *suspicions;
    wb_underway underway;
    wb_dependency broker, database, apart_server; /* with locks of their own */
    int returns_first; /* the transport's WB_LIMITS_RETURNS_FIRST */
    /* When the scout is alone no longer (scout.h), monotonic; 0: it has not begun. */
    _Atomic int64_t scouting_until;
    /* worker 0's: at the latest; when something came back last; whether anything was new */
    int64_t scouting_ends, scouting_returns;
    int scouting_has_fresh;
} wb_pipeline;

/** Prepare what has to be; the other fields are set by the caller, before or after. */
void wb_pipeline_init(wb_pipeline *p);
void wb_pipeline_free(wb_pipeline *p);

/** Whether sends and acknowledgements are part of a transport transaction. */
static inline int wb_has_transport_transaction(const wb_pipeline *p)
{
    return p->mode >= WB_MODE_SENDS_ATOMIC;
}

/** What becomes of messages of that type (NULL: it is not known) that fail. */
wb_recoverability wb_pipeline_policy(const wb_pipeline *p, const char *type);
/** How long the delayed retries of a message last at most, of the type that has most. 0: there are none. */
int64_t wb_pipeline_retry_span(const wb_pipeline *p);

/** Now, by the clock that records are aged and delays are counted by: the database's where it has told. */
int64_t wb_pipeline_now(const wb_pipeline *p);
/** The same for what was due: a time that has come by that clock for sure. (What is to be due later counts
 *  from wb_pipeline_now(), which is not behind it: neither makes a delay shorter.) */
int64_t wb_pipeline_due_now(const wb_pipeline *p);
/** How far this host's clock is ahead of wb_pipeline_due_now(). A transport that delays compares with the host's, which may be
 *  wrong, and be set while what is due later waits to be sent. */
int64_t wb_pipeline_host_ahead(const wb_pipeline *p);
/** The database has told its time. It counts from when it was `asked` (wb_clock_steady()): a slow answer makes
 *  ours later than the database's, never earlier, so that no delay becomes shorter. */
void wb_pipeline_set_time(wb_pipeline *p, int64_t wall, int64_t asked);
/** Ask the database for its time. A persistence that cannot tell leaves things as they are.
 *  @return the class of what the persistence says. */
int wb_pipeline_ask_time(wb_pipeline *p, wb_storage_session *storage, wb_error *error);

/** A new batch number, by that clock. */
uint64_t wb_pipeline_batch_number(const wb_pipeline *p);

/** Store a pending row in a transaction of its own. */
int wb_pipeline_store_row(const wb_pipeline *p, wb_storage_session *storage, uint64_t number,
                          const void *bytes, size_t size, wb_error *error);

/** What became of operations that were to be parked. */
typedef struct wb_parking {
    uint64_t number; /* of the new row, if there is one */
    int was_done;    /* by another process: nothing was stored */
} wb_parking;

/** Park operations (see core/recover/parked.h): they are due again after a pause that follows
 *  from how often they were tried. `row` is the pending row they come from, which the caller then
 *  deletes; a row is parked once, whoever else has read it. 0: they come from none.
 *  `ret_parking` may be NULL. */
int wb_pipeline_park(const wb_pipeline *p, wb_storage_session *storage, const wb_parked *parked, uint64_t row,
                     wb_parking *ret_parking, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint's life: create -> (install) -> verify -> start -> (look -> restart) -> stop ->
 * join -> destroy. All of it on the main thread; only the workers and the housekeeper run
 * beside it. From start to stop no call waits for a server or for a handler.
 */
#ifndef WB_ENDPOINT_ENDPOINT_H
#define WB_ENDPOINT_ENDPOINT_H

#include "core/base/error.h"
#include "core/endpoint/gauge.h"
#include "core/endpoint/health.h"
#include "core/endpoint/setup.h"
#include "core/message/outgoing.h"
#include "core/pipeline/tally.h"
#include "core/pipeline/window.h"

typedef struct wb_endpoint wb_endpoint;

/** Make the plugin instances; connects to nothing. `setup` must outlive the endpoint. */
int wb_endpoint_create(const wb_endpoint_setup *setup, wb_endpoint **ret_endpoint, wb_error *error);
/** What an observer may take to pass on what it keeps, when its endpoint ends. */
#define WB_OBSERVER_PATIENCE (1 * WB_SECOND)

/** NULL is allowed. The endpoint is not running. Its observer has WB_OBSERVER_PATIENCE, unless it was stopped before, as the program
 *  does: all endpoints share that time. */
void wb_endpoint_destroy(wb_endpoint *endpoint);
/** Stop its observer, which has until then (monotonic). NULL is allowed. The endpoint is not running. */
void wb_endpoint_stop_observing(wb_endpoint *endpoint, int64_t deadline);

/** Make queues, subscriptions and tables. Idempotent. */
int wb_endpoint_install(wb_endpoint *endpoint, wb_error *error);
/** Forget how far partitions are done with: they were made anew. Nothing where positions are not looked at.
 *  Main thread, while no instance runs. */
int wb_endpoint_reset_positions(wb_endpoint *endpoint, size_t *ret_count, wb_error *error);
/** Refuse partitions that were made anew; with `all`, also when it cannot be found out of one (positions.h). Nothing
 *  where positions are not looked at. Main thread. */
int wb_endpoint_check_positions(wb_endpoint *endpoint, int all, wb_error *error);
/** The SQL install would run on an empty database, or NULL without persistence. */
const char *wb_endpoint_schema(wb_endpoint *endpoint);
/** The same in its deduplication store, or NULL without one. */
const char *wb_endpoint_dedup_store_schema(wb_endpoint *endpoint);
/** A session of its deduplication store, for an endpoint that has one. */
int wb_endpoint_open_dedup_store(wb_endpoint *endpoint, wb_storage_session **ret_session, wb_error *error);
/** Connect and check that queues and tables are there and usable, and that the broker hands
 *  a message out often enough for its retries (limits.h). */
int wb_endpoint_verify(wb_endpoint *endpoint, wb_error *error);

/** Have handler modules check the endpoint's settings, where wb_setup_rehearse() was not called. */
int wb_endpoint_check_modules(wb_endpoint *endpoint, wb_error *error);
/** Open the endpoint's handler modules (core/pipeline/hooks.h), for whoever wants to know that they open before
 *  others start: wb_endpoint_start() does it, too. wb_endpoint_join() closes them, also when it was never started. */
int wb_endpoint_open_modules(wb_endpoint *endpoint, wb_error *error);
/** Start the endpoint's observer, if it has one: what is sent from now on begins or continues traces. Nothing when it
 *  runs. wb_endpoint_start() does it, too; wb_endpoint_destroy() stops it. */
int wb_endpoint_observe(wb_endpoint *endpoint, wb_error *error);
/** Start workers and housekeeper. A send-only endpoint has none. After an error some may run:
 *  stop and join. */
int wb_endpoint_start(wb_endpoint *endpoint, wb_error *error);

/** Look after the workers, some ten times a second: whether handlers take long (what was prefetched
 *  behind them is given to others), whether the broker or the database is away or back (a line says
 *  so), and whether workers gave up: something failed that waiting does not cure. Their threads are
 *  joined; the others go on.
 *  @return WB_OK, or WB_FATAL with the reason of the first, until wb_endpoint_restart(). */
int wb_endpoint_look(wb_endpoint *endpoint, wb_error *error);
/** How many workers do not run. */
unsigned wb_endpoint_missing(const wb_endpoint *endpoint);
/** How many workers are at work, idle ones too; *ret_overdue: of these, in a handler for longer than handler_timeout.
 *  Where there is one the process is to end (core/pipeline/overtime.h). */
unsigned wb_endpoint_working(const wb_endpoint *endpoint, unsigned *ret_overdue);
/** Since when no worker has had a message in hand or received one, all of them, while its servers were there; 0: that is
 *  not so, or not known. What waits in tables is for wb_rest_ask() (rest.h) to see. */
int64_t wb_endpoint_empty_since(wb_endpoint *endpoint);
/** Whether its persistence may hold delayed messages. */
int wb_endpoint_keeps_delayed(const wb_endpoint *endpoint);
/** What there is to say of its health: all but whether it starts, stops or gave up. */
void wb_endpoint_facts(wb_endpoint *endpoint, wb_health_facts *ret_facts);
/** What stays pending in its outbox; NULL: it has none, or does not run. */
const wb_gauge *wb_endpoint_gauge(const wb_endpoint *endpoint);
/** What became of its messages since it was made, and how many its workers have in hand. */
void wb_endpoint_counts(wb_endpoint *endpoint, wb_counts *ret_counts);
/** Start new workers in the place of those that gave up, with sessions of their own, on the
 *  same plugin instances. The endpoint was not told to stop.
 *  @return WB_OK, or WB_FATAL when a thread could not be started: wb_endpoint_look() says so. */
int wb_endpoint_restart(wb_endpoint *endpoint);

/** Ask workers and housekeeper to finish what is in flight; returns at once. Any time after
 *  create, also when start failed or was never called. */
void wb_endpoint_stop(wb_endpoint *endpoint);
/** Whether nobody is at work: every worker and the housekeeper have ended, or never ran. Then
 *  wb_endpoint_join() waits for nothing. */
int wb_endpoint_has_ended(const wb_endpoint *endpoint);
/** Wait for workers and housekeeper, and close the modules. @return WB_OK, or WB_FATAL with the reason for which the
 *  first of the workers gave up that were not started again. */
int wb_endpoint_join(wb_endpoint *endpoint, wb_error *error);

/** What a program that uses the library keeps with its endpoint (core/library); NULL at first. */
void wb_endpoint_set_owner(wb_endpoint *endpoint, void *owner);
void *wb_endpoint_owner(const wb_endpoint *endpoint);
wb_pipeline *wb_endpoint_pipeline(wb_endpoint *endpoint);
/** Whether the tables of the outbox are its own, and not those of the processor of its sessions. */
int wb_endpoint_owns_tables(const wb_endpoint *endpoint);
const wb_endpoint_setup *wb_endpoint_setup_of(const wb_endpoint *endpoint);
const wb_endpoint_config *wb_endpoint_config_of(const wb_endpoint *endpoint);
/** Whether there is anything that wb_endpoint_start() would run. */
int wb_endpoint_has_handlers(const wb_endpoint *endpoint);
/** Start the housekeeper alone, for who commits what it may have to sweep and handles nothing yet. */
int wb_endpoint_keep(wb_endpoint *endpoint, wb_error *error);

/** For programs that send without an incoming message. */
const wb_origin *wb_endpoint_origin(const wb_endpoint *endpoint);
int wb_endpoint_open_sender(wb_endpoint *endpoint, wb_transport_session **ret_session, wb_error *error);
/** A session of the persistence, and the database's time by it. *ret_storage is to be closed in any
 *  case, if it is not NULL. */
int wb_endpoint_open_storage(wb_endpoint *endpoint, wb_storage_session **ret_storage, wb_error *error);

/** Sessions that such a program has; the storage is needed where a store keeps delayed messages. */
typedef struct wb_sender {
    wb_transport_session *transport;
    wb_storage_session *storage;
} wb_sender;

/** Store what is due later, send the rest; of the window, which is used up, each operation's result
 *  is set. @return as wb_transport_ops.send, or as wb_delayed_ops.store. */
int wb_endpoint_send(wb_endpoint *endpoint, const wb_sender *sender, wb_window *window, int64_t deadline,
                     wb_error *error);

#endif

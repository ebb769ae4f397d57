/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint's life: create -> (install) -> verify -> start -> stop -> join -> destroy.
 * All of it on the main thread; only the workers and the housekeeper run beside it.
 */
#ifndef WB_ENDPOINT_ENDPOINT_H
#define WB_ENDPOINT_ENDPOINT_H

#include "core/base/error.h"
#include "core/endpoint/setup.h"
#include "core/message/outgoing.h"

typedef struct wb_endpoint wb_endpoint;

/** Make the plugin instances; connects to nothing. `setup` must outlive the endpoint. */
int wb_endpoint_create(const wb_endpoint_setup *setup, wb_endpoint **ret_endpoint, wb_error *error);
/** NULL is allowed. The endpoint is not running. */
void wb_endpoint_destroy(wb_endpoint *endpoint);

/** Make queues, subscriptions and tables. Idempotent. */
int wb_endpoint_install(wb_endpoint *endpoint, wb_error *error);
/** The SQL install would run on an empty database, or NULL without persistence. */
const char *wb_endpoint_schema(wb_endpoint *endpoint);
/** Connect and check that queues and tables are there and usable. */
int wb_endpoint_verify(wb_endpoint *endpoint, wb_error *error);

/** Start workers and housekeeper. A send-only endpoint has none. */
int wb_endpoint_start(wb_endpoint *endpoint, wb_error *error);
/** Ask the workers to finish what is in flight; returns at once. */
void wb_endpoint_stop(wb_endpoint *endpoint);
/** Whether every worker has ended, by wb_endpoint_stop() or because it gave up. */
int wb_endpoint_has_ended(const wb_endpoint *endpoint);
/** Wait for the workers. @return WB_OK, or WB_FATAL with the first reason for which a
 *  worker gave up. */
int wb_endpoint_join(wb_endpoint *endpoint, wb_error *error);

/** For programs that send without an incoming message. */
const wb_origin *wb_endpoint_origin(const wb_endpoint *endpoint);
int wb_endpoint_open_sender(wb_endpoint *endpoint, wb_transport_session **ret_session, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The broker's limits against the endpoint's: a message is given up by us before the broker
 * drops it.
 */
#ifndef WB_ENDPOINT_LIMITS_H
#define WB_ENDPOINT_LIMITS_H

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"

/** A message that ends its process is tried as often as one that fails; one attempt more, so
 *  that the last of them does not end at the broker. */
#define WB_DELIVERIES_BESIDE_RETRIES 2
/** Where nobody can tell: the default of RabbitMQ 4. */
#define WB_DELIVERY_LIMIT_ASSUMED 20

/** Ask the transport what the broker does to the endpoint's messages: its delivery_limit is 0 (it never drops one), a number,
 *  or WB_LIMIT_UNKNOWN. Main thread; may connect.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_MISMATCH when the limit is too low for the endpoint's retries. */
int wb_limits_ask(const wb_pipeline *pipeline, wb_transport_limits *ret_limits, wb_error *error);

/** The same, and set recoverability.delivery_limit and returns_first. After verify. A limit that nobody can tell is warned of, and
 *  taken for WB_DELIVERY_LIMIT_ASSUMED. */
int wb_limits_apply(wb_pipeline *pipeline, wb_error *error);

#endif

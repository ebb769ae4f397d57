/* SPDX-License-Identifier: Apache-2.0
 *
 * The probe: a message that no queue gets, published to learn whether the broker takes any.
 *
 * RabbitMQ tells a connection that publishing is blocked (an alarm of memory or disk) only once
 * that connection publishes. After a window that was not confirmed in time the next one would
 * go the same way, and what the broker had read of it would be delivered twice. So a probe goes
 * first, and the window when the probe is confirmed.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_PROBE_H
#define WB_AMQP_PROBE_H

#include "plugins/transport/amqp/amqp-send.h"

/** Put a probe on the sender's open channel; `sender->probe` is its number. */
void wb_amqp_probe_put(wb_amqp_sender *sender);
/** A confirm came: the probe's, perhaps. */
void wb_amqp_probe_confirmed(wb_amqp_sender *sender, uint64_t sequence, int multiple);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The exchanges a session knows to exist. Publishing to one that does not exist closes
 * the channel and takes a whole window with it, so a destination is asked for once,
 * before its first use; only what was found is remembered.
 */
#ifndef WB_AMQP_DESTINATIONS_H
#define WB_AMQP_DESTINATIONS_H

#include "plugins/common/known.h"
#include "plugins/transport/amqp/amqp-topology.h"

typedef wb_common_known wb_amqp_destinations;

/** Make sure of an exchange: sends ask for it, events declare it. On the scratch
 *  channel.
 *  @return WB_OK; WB_REJECT: it does not exist or must not be used, and the scratch
 *  channel says why; or the failure's result. */
int wb_amqp_destination_ensure(wb_amqp_destinations *destinations, wb_amqp_connection *connection,
                               const char *name, int is_event);

/** Whether a name was added. */
int wb_amqp_destinations_has(const wb_amqp_destinations *destinations, const char *name);
/** Remember one; not twice. Without memory it is not. */
void wb_amqp_destinations_add(wb_amqp_destinations *destinations, const char *name);

/** Make sure of an event's exchange. On the scratch channel. Results as wb_amqp_rpc(). */
int wb_amqp_event_declare(wb_amqp_connection *connection, const char *name);

/** Forget everything: something was deleted. Also frees. */
void wb_amqp_destinations_clear(wb_amqp_destinations *destinations);

#endif

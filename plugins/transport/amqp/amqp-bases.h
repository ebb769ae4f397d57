/* SPDX-License-Identifier: Apache-2.0
 *
 * What an event is derived from: its exchange is bound to that of each of its bases, so that
 * whoever subscribed to a base gets it, too.
 */
#ifndef WB_AMQP_BASES_H
#define WB_AMQP_BASES_H

#include "plugins/transport/amqp/amqp-destinations.h"

/** Declare and bind the exchanges of all bases that a list of types ("Type;Base;Base", the header
 *  NServiceBus.EnclosedMessageTypes) names, to that of the type in front. What `known` holds is
 *  not done again, what was refused not for half a minute; it may be NULL. On the scratch channel. With
 *  `known`, what the account may not do is logged, once an instance, and is no failure.
 *  @return WB_OK; WB_REJECT, and the scratch channel says why; or the failure's result. */
int wb_amqp_bases_bind(wb_amqp_destinations *known, wb_amqp_connection *connection, const char *types);

/** The same for an event that is sent, whose exchange is `child`. */
int wb_amqp_bases_ensure(wb_amqp_destinations *known, wb_amqp_connection *connection,
                         const wb_operation *operation, const char *child);

#endif

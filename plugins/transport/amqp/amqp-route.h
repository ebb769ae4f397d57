/* SPDX-License-Identifier: Apache-2.0
 *
 * Where messages go, in both topologies of NServiceBus: an exchange and a routing key. Pure.
 *
 *                 conventional                              direct
 *   a queue       exchange of its name, no key              default exchange, its name
 *   queue:NAME    default exchange, NAME                    the same
 *   an event      exchange "Namespace:Name", no key         amq.topic, "Base.Type": the names of
 *                                                           all types with '-' for their dots
 */
#ifndef WB_AMQP_ROUTE_H
#define WB_AMQP_ROUTE_H

#include <waybill/sys/transport.h>

#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-options.h"

/** The exchange of all events in the direct topology; every broker has it. */
#define WB_AMQP_EVENTS "amq.topic"

typedef struct wb_amqp_route {
    char exchange[WB_AMQP_NAME_SIZE]; /* "": the default exchange, whose keys are names of queues */
    char key[WB_AMQP_NAME_SIZE];
} wb_amqp_route;

/** The route of an operation in the topology that is configured.
 *  @return NULL, or why the broker could have none, to follow "its destination cannot name a
 *  queue: ", or "its type cannot name an exchange: ". */
const char *wb_amqp_route_make(const wb_amqp_config *config, const wb_operation *operation,
                               wb_amqp_route *ret_route);

/** The queue that an address names: what follows "queue:", if that is how it begins. */
const char *wb_amqp_address_queue(const char *address);

/** The exchange of an event type in the conventional topology, as .NET names it: the namespace,
 *  ':', and the type's own name, without the types around it, its assembly and its arguments.
 *  @return 0 when the name is empty or longer than 255 bytes. */
int wb_amqp_event_exchange(const char *type, char ret_name[WB_AMQP_NAME_SIZE]);

/** The routing key of an event type in the direct topology: what the option routing_keys says, or made
 *  of names. `types` lists it with its bases, the
 *  nearest first, as NServiceBus.EnclosedMessageTypes does, or is NULL. Names that no key can
 *  hold are passed over, unless it is the type's own.
 *  @return NULL, or why there can be none. */
const char *wb_amqp_event_key(const wb_amqp_config *config, const char *type, const char *types,
                              char ret_key[WB_AMQP_NAME_SIZE]);

/** Refuse routing keys that are none. @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_amqp_route_check(const wb_host *host, const wb_amqp_config *config, wb_error *error);

/** What follows the key of a type in a binding: types derived from it, too. */
#define WB_AMQP_AND_DERIVED ".#"

/** The list "Type;Base;Base" that the configuration has of a type, or NULL. */
const char *wb_amqp_bases_configured(const wb_endpoint_info *endpoint, const char *type);

#endif

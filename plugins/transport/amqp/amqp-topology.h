/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues, exchanges and bindings, as NServiceBus has them. Conventional: an address
 * is a durable queue and a durable fanout exchange of the same name, bound together;
 * an event type "Ns.Name" is a durable fanout exchange "Ns:Name", bound to the
 * exchange of every subscriber. Direct: an address is a durable queue; a subscriber's is
 * bound to amq.topic with the names of a type and its bases (amqp-route.h). Where the broker delays:
 * the levels (amqp-levels.h), from which the endpoint gets what waited for it.
 */
#ifndef WB_AMQP_TOPOLOGY_H
#define WB_AMQP_TOPOLOGY_H

#include "plugins/transport/amqp/amqp-connection.h"
#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-route.h"

/** What a subscription to a type is named by, with its NUL byte. */
#define WB_AMQP_SUBSCRIPTION_SIZE (WB_AMQP_NAME_SIZE + sizeof WB_AMQP_AND_DERIVED)

/** Declare a durable fanout exchange, or with `passive` ask whether there is one of
 *  that name. On the scratch channel. Results as wb_amqp_rpc(). */
int wb_amqp_exchange_declare(wb_amqp_connection *connection, const char *name, int passive);

/** What goes to `source` by that key, "" where a key means nothing, goes to `destination`, too. On
 *  the scratch channel; results the same. */
int wb_amqp_exchange_bind(wb_amqp_connection *connection, const char *source, const char *key,
                          const char *destination);
/** The same for a queue. */
int wb_amqp_queue_bind(wb_amqp_connection *connection, const char *exchange, const char *key,
                       const char *queue);

/** Whether the endpoint's types can name what it subscribes to: known without a broker. */
int wb_amqp_topology_check(const wb_transport *transport, wb_error *error);

/** Whether addresses have no exchanges. */
int wb_amqp_topology_is_direct(const wb_amqp_connection *connection);

/** The exchange of an event type or, in the direct topology, the key under which the endpoint's queue is bound.
 *  @return 0: it can have none. */
int wb_amqp_subscription_name(const wb_amqp_connection *connection, const char *type,
                              char ret_name[WB_AMQP_SUBSCRIPTION_SIZE]);

/** Report what became of a call about `what` ("queue") of that name. @return WB_OK, or the class. */
int wb_amqp_topology_outcome(const wb_amqp_connection *connection, int result, const char *what, const char *name,
                             wb_error *error);

/** Make a queue and, where an address has one, its exchange. */
int wb_amqp_topology_install_address(wb_amqp_connection *connection, const char *address, wb_error *error);

/** Work on a connection of its own; `role` is its name at the broker. */
typedef int (*wb_amqp_work_fn)(wb_amqp_connection *connection, const void *argument, wb_error *error);
int wb_amqp_topology_work(wb_transport *transport, const char *role, wb_amqp_work_fn work, const void *argument,
                          wb_error *error);

/** wb_transport_ops.install and verify. */
int wb_amqp_install(wb_transport *transport, wb_error *error);
int wb_amqp_verify(wb_transport *transport, wb_error *error);

#endif

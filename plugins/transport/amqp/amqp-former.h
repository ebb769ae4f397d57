/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that no endpoint has any more, and what the broker still delays to them: messages are in the levels, whose
 * keys hold the name. Behind level 0 what no queue takes would stay, and 32 of such messages stop it for everybody. So it is led on by
 * durable fanout exchanges of ours, internal to the broker's bindings:
 *
 *     nsb.v2.delay-delivery --#.orders--> waybill.removed.orders --> the error queue
 *     nsb.v2.delay-delivery --#.orders--> waybill.renamed.orders --> waybill.heir-1.billing --> billing
 *
 * Either stands for as long as nobody installs `orders` again. The heir of an endpoint gets what is for its former
 * names, and goes on to lead there when the endpoint is itself renamed (to the next heir) or removed (to the error
 * queue); who is installed under that name afterwards is another endpoint, whose heir has the next number. The binding
 * of the name itself to its own queue ends before the other is made: a message that is due in between is tried again
 * by the broker, and nothing arrives twice.
 *
 * All of it on the scratch channel. What can be repeated at any time, however far it had come.
 */
#ifndef WB_AMQP_FORMER_H
#define WB_AMQP_FORMER_H

#include "plugins/transport/amqp/amqp-connection.h"

/** install(): the name is an endpoint's. What is delayed to it is its own again. */
int wb_amqp_former_end(wb_amqp_connection *connection, wb_error *error);

/* uninstall(), in this order. They do nothing where nothing can be delayed to the endpoint, and when it was renamed. */

/** Make what leads to the error queue. Nothing uses it yet. */
int wb_amqp_former_prepare(wb_amqp_connection *connection, wb_error *error);
/** Deliver nothing to the endpoint from now on: what is due waits. */
int wb_amqp_former_release(wb_amqp_connection *connection, wb_error *error);
/** Undo both. */
int wb_amqp_former_restore(wb_amqp_connection *connection, wb_error *error);
/** Deliver to the error queue, which the log tells when anything is delayed. */
int wb_amqp_former_lead(wb_amqp_connection *connection, wb_error *error);

/** take_over(): deliver what is for `former`, and for its own former names, to the endpoint. */
int wb_amqp_former_take_over(wb_amqp_connection *connection, const char *former, wb_error *error);

/** How many messages are delayed, for whomever; as far as the broker tells. 0 where it has no levels. */
int wb_amqp_former_count(wb_amqp_connection *connection, uint64_t *ret_count, wb_error *error);

#endif

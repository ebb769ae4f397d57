/* SPDX-License-Identifier: Apache-2.0
 *
 * The single steps that undo what install() makes. All of it on the scratch channel, and what is not there is as it
 * should be: WB_OK, else results as wb_amqp_rpc().
 */
#ifndef WB_AMQP_UNDO_H
#define WB_AMQP_UNDO_H

#include "plugins/transport/amqp/amqp-connection.h"

/** Whether the broker said that there is no such thing. */
int wb_amqp_was_missing(const wb_amqp_connection *connection, int result);

/** Ask whether there is an exchange of that name, of whatever type. */
int wb_amqp_exchange_look(wb_amqp_connection *connection, const char *name, int *ret_is_there);
int wb_amqp_exchange_delete(wb_amqp_connection *connection, const char *name);
int wb_amqp_exchange_unbind(wb_amqp_connection *connection, const char *source, const char *key, const char *destination);
int wb_amqp_queue_unbind(wb_amqp_connection *connection, const char *exchange, const char *key, const char *queue);

/* On which conditions a queue is deleted. A quorum queue can be deleted on none: the broker would end the connection. */
#define WB_AMQP_IF_UNUSED 1u
#define WB_AMQP_IF_EMPTY 2u
/** WB_REJECT with AMQP_PRECONDITION_FAILED: they do not hold. */
int wb_amqp_queue_delete(wb_amqp_connection *connection, const char *name, unsigned conditions);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues in which delayed messages wait, as NServiceBus declares them, so that endpoints of
 * both kinds share them. All of it on the scratch channel.
 */
#ifndef WB_AMQP_LEVELS_H
#define WB_AMQP_LEVELS_H

#include "plugins/transport/amqp/amqp-connection.h"
#include "plugins/transport/amqp/amqp-names.h"

/** The part that could not be used. */
typedef struct wb_amqp_level_part {
    const char *what; /* "queue", "exchange" */
    char name[WB_AMQP_NAME_SIZE];
} wb_amqp_level_part;

/** Make all levels and what leads from one to the next; who may not declare them takes those that
 *  are there as they are. Results as wb_amqp_rpc(), with the part that was refused. */
int wb_amqp_levels_declare(wb_amqp_connection *connection, wb_amqp_level_part *ret_part);

/** Ask whether all of them are there; their arguments are not compared. Results the same. */
int wb_amqp_levels_exist(wb_amqp_connection *connection, wb_amqp_level_part *ret_part);

/** Have what waited for an address delivered to it: the exchange of that name, or the queue where it
 *  has none. Results as wb_amqp_rpc(). */
int wb_amqp_levels_bind(wb_amqp_connection *connection, const char *address);

#endif

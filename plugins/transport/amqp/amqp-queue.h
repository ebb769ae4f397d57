/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues and the limit a broker sets to how often it delivers a message.
 *
 * A quorum queue drops what was delivered more often than its limit, before our own limit
 * could move it to the error queue. From RabbitMQ 4.0 on there is one of 20 unless the
 * queue is declared otherwise, so new queues are declared without any. A queue that exists
 * keeps what it has: declared with another limit the broker refuses, and says in the
 * refusal which one there is.
 */
#ifndef WB_AMQP_QUEUE_H
#define WB_AMQP_QUEUE_H

#include "plugins/transport/amqp/amqp-arguments.h"
#include "plugins/transport/amqp/amqp-connection.h"

/* What is known of a limit in one place. */
#define WB_AMQP_LIMIT_NONE 0
#define WB_AMQP_LIMIT_SET 1
#define WB_AMQP_LIMIT_UNREADABLE 2 /* there is one, and the broker did not say which */

typedef struct wb_amqp_limit {
    int is;        /* WB_AMQP_LIMIT_x */
    int64_t value; /* when set; below 0: without limit */
} wb_amqp_limit;

/** First number of the version of a RabbitMQ; 0: it does not say, or is none. */
int wb_amqp_broker_major(const wb_amqp_connection *connection);
/** The same of its server properties; pure. */
int wb_amqp_major_of(const amqp_table_t *properties);

/** Ask whether there is a queue. Results as wb_amqp_rpc(). */
int wb_amqp_queue_exists(wb_amqp_connection *connection, const char *name);

/** Ask whether we may receive from a queue, without receiving. RabbitMQ looks at permissions
 *  first and refuses the arguments then; others are not asked. Results as wb_amqp_rpc(),
 *  WB_REJECT for want of permission alone. */
int wb_amqp_queue_may_read(wb_amqp_connection *connection, const char *name);

/** What an existing queue turned out to have. */
typedef struct wb_amqp_found {
    wb_amqp_limit limit;         /* x-delivery-limit */
    wb_amqp_arguments arguments; /* the others, beyond what we declare */
    int incomplete;              /* the broker's words were cut off: there may be more */
    int differs;                 /* it is not as we declare it: the broker refused, and logged that */
} wb_amqp_found;

/** Declare a durable queue of a type, WB_AMQP_QUEUE_x, with a dead-letter exchange unless
 *  NULL, and `without_limit` of deliveries if the broker has one by default. One that is there
 *  may have any other arguments: *ret_found. Results as wb_amqp_rpc(). */
int wb_amqp_queue_declare(wb_amqp_connection *connection, const char *name, int type, int without_limit,
                          const char *dead_letter, wb_amqp_found *ret_found);

/** Read the limit a queue has out of the broker's refusal; pure.
 *  @return 0 when it refuses something else. */
int wb_amqp_limit_read(const char *text, wb_amqp_limit *ret_limit);

/** What follows from a queue's argument, the policies that apply to it and the broker's
 *  version: how often a message is delivered again at most, as in wb_transport_limits.
 *  Pure. */
uint32_t wb_amqp_limit_resolve(int major, wb_amqp_limit argument, wb_amqp_limit policy);

#endif

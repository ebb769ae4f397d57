/* SPDX-License-Identifier: Apache-2.0
 *
 * A message as the host sees it, made of what librdkafka received. The body is librdkafka's
 * memory, and so are the headers while they are within the endpoint's limits. Of a message
 * with more, those that fit are copied, and librdkafka's are freed before the next message is
 * looked at: thousands of empty headers cost memory once, not once a message.
 */
#ifndef WB_KAFKA_MESSAGE_H
#define WB_KAFKA_MESSAGE_H

#include <librdkafka/rdkafka.h>
#include <waybill/sys/transport.h>

typedef struct wb_kafka_partition wb_kafka_partition;
typedef struct wb_kafka_message wb_kafka_message;

/** A message in the worker's hands, or given back by it. */
struct wb_kafka_message {
    wb_incoming incoming; /* first: the host's pointer is ours */
    rd_kafka_message_t *raw;
    wb_kafka_partition *partition;
    wb_kafka_message *next, *previous;
    int settled;  /* acknowledged in the open transaction */
    int is_large; /* over a limit: the process holds one of them at a time */
    uint64_t turn; /* of the consumer, when it was handed out */
    wb_header headers[];
};

/** Make a message; takes `raw` over. NULL when memory is out, and it is still the caller's. */
wb_kafka_message *wb_kafka_message_make(const wb_endpoint_info *endpoint, rd_kafka_message_t *raw);
void wb_kafka_message_free(wb_kafka_message *message);

#endif

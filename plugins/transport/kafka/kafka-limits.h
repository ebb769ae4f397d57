/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what an endpoint reads can be moved to its error topic and copied to its audit topic:
 * the size of messages that topics take (max.message.bytes) compared with one another and with
 * what we send.
 */
#ifndef WB_KAFKA_LIMITS_H
#define WB_KAFKA_LIMITS_H

#include "plugins/transport/kafka/kafka-client.h"

/** Say in the log which topics take messages that may not fit the error or the audit topic. Where
 *  it cannot be found out, a line at info level says so: nothing depends on it. */
void wb_kafka_limits_compare(wb_kafka_client *client, int64_t deadline);

/** The configurations of all topics of an endpoint with an error queue, to be asked for and released with
 *  rd_kafka_ConfigResource_destroy_array() and free(). NULL: no memory. */
rd_kafka_ConfigResource_t **wb_kafka_configs_of_topics(const wb_transport *transport, size_t *ret_count);
/** Ask the brokers; `timeout` in milliseconds. The answer is the caller's; NULL: none came. */
rd_kafka_event_t *wb_kafka_configs_ask(wb_kafka_client *client, rd_kafka_ConfigResource_t **wanted, size_t count,
                                       int timeout);
/** Whether messages are only copied to the topic (an error or audit topic). */
int wb_kafka_is_for_copies(const wb_transport *transport, const char *topic);

#endif

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

#endif

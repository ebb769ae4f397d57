/* SPDX-License-Identifier: Apache-2.0
 *
 * wb_transport_ops.examine: what topics keep, for how long, and how many brokers have it.
 */
#ifndef WB_KAFKA_EXAMINE_H
#define WB_KAFKA_EXAMINE_H

#include "plugins/transport/kafka/kafka-client.h"

int wb_kafka_examine(wb_transport *transport, const wb_examination *examination, wb_error *error);

/** A topic. */
typedef struct wb_kafka_examined {
    const wb_transport *transport;
    const char *topic;
    int is_read; /* messages are handled from it; otherwise they are copied to it */
    int replicas; /* 0: not known */
} wb_kafka_examined;

/** What one property of a topic would do; others are passed over. Pure. */
void wb_kafka_examine_property(const wb_kafka_examined *it, const char *name, const char *value,
                               const wb_examination *examination);
/** What its number of replicas would. Pure. */
void wb_kafka_examine_replicas(const wb_kafka_examined *it, const wb_examination *examination);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The suite's own way to Kafka, independent of the transport under test. The brokers are
 * those in KAFKA_BROKERS.
 *
 * Single-threaded. What fails says why on stderr and ends the program: a tool that could
 * not look has nothing to say.
 */
#ifndef WB_TESTS_CRASH_CLUSTER_H
#define WB_TESTS_CRASH_CLUSTER_H

#include <librdkafka/rdkafka.h>

/** For how long a request is tried again: a broker that was killed starts again. */
#define CLUSTER_PATIENCE_MS 60000

/** A client. `properties` are names and values in turn, ended by NULL. */
rd_kafka_t *cluster_open(rd_kafka_type_t type, const char *const *properties,
                         void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *));

/** End the program unless `error` is 0; says what failed, and on what. */
void cluster_check(rd_kafka_resp_err_t error, const char *what, const char *where);

/** All partitions of a topic, without offsets. */
rd_kafka_topic_partition_list_t *cluster_partitions(rd_kafka_t *client, const char *topic);

#endif

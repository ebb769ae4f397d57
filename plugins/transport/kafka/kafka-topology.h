/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics: an address is a topic of that name, and so is an event type, "Ns.Name" without
 * its assembly. What a topic's name cannot hold stands there as '-' and its number, in an event
 * type's: "Shop.Outer-2BInner" is Shop.Outer+Inner. The group of an endpoint, named like it, reads its own topic and those of
 * the types it has handlers for.
 */
#ifndef WB_KAFKA_TOPOLOGY_H
#define WB_KAFKA_TOPOLOGY_H

#include "plugins/transport/kafka/kafka-client.h"

/** Size of a topic's name with its NUL byte. */
#define WB_KAFKA_TOPIC_SIZE 250

/** The topic of an address or, with `is_event`, of an event type. Pure. @return NULL, or
 *  why there can be none of that name. */
const char *wb_kafka_topic_name(const char *name, int is_event, char ret_topic[WB_KAFKA_TOPIC_SIZE]);

/** Topics that an endpoint reads and that are no events': the one of its name, which is number 0, and its further queues.
 *  All are read by the group of its name. */
size_t wb_kafka_topology_count_own(const wb_endpoint_info *endpoint);
const char *wb_kafka_topology_own(const wb_endpoint_info *endpoint, size_t number);
int wb_kafka_topology_is_own(const wb_endpoint_info *endpoint, const char *topic);

/** The topics an endpoint reads, without repetitions, its own first; to be released with
 *  rd_kafka_topic_partition_list_destroy(). The configuration was checked. */
rd_kafka_topic_partition_list_t *wb_kafka_topics_read(const wb_transport *transport);

/** What tells one set of topics from another, whatever their order. */
unsigned wb_kafka_topics_hash(const wb_transport *transport);

/** Refuse names no topic can have. @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_kafka_topology_check(const wb_transport *transport, wb_error *error);

/** Make a topic that takes messages up to `message_max`; one that is there already is fine
 *  (*ret_existed). @return WB_OK, or failure->result. */
int wb_kafka_topic_create(wb_kafka_client *client, const char *topic, int64_t message_max,
                          int64_t deadline, int *ret_existed, wb_kafka_failure *failure);

/** Wait until the brokers know a topic that was just made. */
int wb_kafka_topic_await(wb_kafka_client *client, const char *topic, int64_t deadline,
                         wb_kafka_failure *failure);

/** Whether there is a topic of that name, in one round trip that never makes it: WB_OK,
 *  WB_REJECT with *ret_code saying why not, or failure->result. The number of partitions
 *  and replicas if wanted. */
int wb_kafka_topic_find(wb_kafka_client *client, const char *topic, int64_t deadline,
                        rd_kafka_resp_err_t *ret_code, int *ret_partitions, int *ret_replicas,
                        wb_kafka_failure *failure);

/** Work with a client of its own, once the brokers answer. @return what `work` does, reported. */
typedef int (*wb_kafka_work_fn)(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure);
int wb_kafka_topology_work(wb_transport *transport, wb_kafka_work_fn work, const void *argument, wb_error *error);

/** wb_transport_ops.install and verify. */
int wb_kafka_install(wb_transport *transport, wb_error *error);
int wb_kafka_verify(wb_transport *transport, wb_error *error);

#endif

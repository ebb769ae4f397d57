/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/crash/cluster.h"

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *where, const char *why)
{
    fprintf(stderr, "%s %s: %s\n", what, where, why);
    exit(1);
}

void cluster_check(rd_kafka_resp_err_t error, const char *what, const char *where)
{
    if (error)
        fail(what, where, rd_kafka_err2str(error));
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail("property", name, why);
}

rd_kafka_t *cluster_open(rd_kafka_type_t type, const char *const *properties,
                         void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *))
{
    const char *brokers = getenv("KAFKA_BROKERS");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    set(conf, "bootstrap.servers", brokers ? brokers : "127.0.0.1:9092");
    set(conf, "log_level", "2"); /* a broker that is down is no news here */
    set(conf, "reconnect.backoff.max.ms", "500");
    set(conf, "allow.auto.create.topics", "false");
    for (; properties && properties[0]; properties += 2)
        set(conf, properties[0], properties[1]);
    if (delivered)
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (!client)
        fail("client of", brokers ? brokers : "", why);
    return client;
}

rd_kafka_topic_partition_list_t *cluster_partitions(rd_kafka_t *client, const char *topic)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);

    cluster_check(rd_kafka_metadata(client, 0, handle, &metadata, CLUSTER_PATIENCE_MS),
                  "metadata of", topic);
    cluster_check(metadata->topics[0].err, "topic", topic);
    int count = metadata->topics[0].partition_cnt;
    rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(count);
    rd_kafka_topic_partition_list_add_range(partitions, topic, 0, count - 1);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
    return partitions;
}

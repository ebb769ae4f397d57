/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-examine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/finding.h"
#include "plugins/transport/kafka/kafka-limits.h"
#include "plugins/transport/kafka/kafka-topology.h"

#define MILLISECOND INT64_C(1000000)
#define REMEDY_SIZE 1024
#define REPLICAS 3

/* ---- one topic --------------------------------------------------------------------- */

/* A danger where messages are handled; where only copies are, a warning. */
static void find(const wb_kafka_examined *it, const char *finding, const char *property, const char *value, const char *wanted,
                 const char *what, const wb_examination *examination)
{
    char remedy[REMEDY_SIZE];
    (void)snprintf(remedy, sizeof remedy,
                   "kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config %s=%s",
                   it->transport->config->brokers, it->topic, property, wanted);
    wb_common_find(examination, it->is_read ? WB_FINDING_DANGER : WB_FINDING_WARNING, finding, remedy,
                   "topic \"%s\" has %s = %s: %s", it->topic, property, value, what);
}

static void examine_retention(const wb_kafka_examined *it, const char *name, const char *value,
                              const wb_examination *examination)
{
    char wanted[24];
    const int64_t kept = strtoll(value, NULL, 10), needed = examination->outage / MILLISECOND;
    if (kept < 0 || kept >= needed)
        return;
    (void)snprintf(wanted, sizeof wanted, "%" PRId64, needed);
    find(it, "topic-retention", name, value, wanted,
         it->is_read ? "what waits longer is deleted without being handled" : "what failed is gone after that, looked at or not",
         examination);
}

static void examine_size(const wb_kafka_examined *it, const char *name, const char *value, const wb_examination *examination)
{
    if (strtoll(value, NULL, 10) >= 0)
        find(it, "topic-size", name, value, "-1", "beyond that the oldest messages of a partition are deleted, handled or not",
             examination);
}

static void examine_cleanup(const wb_kafka_examined *it, const char *name, const char *value, const wb_examination *examination)
{
    if (strstr(value, "compact"))
        find(it, "topic-compaction", name, value, "delete", "of messages with the same key only the last one is kept",
             examination);
}

static void examine_election(const wb_kafka_examined *it, const char *name, const char *value, const wb_examination *examination)
{
    if (strcmp(value, "true") == 0)
        find(it, "topic-unclean-election", name, value, "false",
             "a broker that lacks confirmed messages may become the leader, and they are lost", examination);
}

/* With one replica the number of replicas is what is wrong. */
static void examine_insync(const wb_kafka_examined *it, const char *name, const char *value, const wb_examination *examination)
{
    if (it->replicas > 1 && strtoll(value, NULL, 10) < 2)
        find(it, "topic-min-insync", name, value, "2", "a message counts as sent when one broker has it, and is lost with that",
             examination);
}

void wb_kafka_examine_property(const wb_kafka_examined *it, const char *name, const char *value,
                               const wb_examination *examination)
{
    static const struct {
        const char *name;
        void (*examine)(const wb_kafka_examined *it, const char *name, const char *value, const wb_examination *examination);
    } rules[] = {
        { "retention.ms", examine_retention },
        { "retention.bytes", examine_size },
        { "cleanup.policy", examine_cleanup },
        { "unclean.leader.election.enable", examine_election },
        { "min.insync.replicas", examine_insync },
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].name, name) == 0)
            rules[i].examine(it, name, value, examination);
}

void wb_kafka_examine_replicas(const wb_kafka_examined *it, const wb_examination *examination)
{
    char remedy[REMEDY_SIZE];
    if (it->replicas == 0 || it->replicas >= REPLICAS)
        return;
    (void)snprintf(remedy, sizeof remedy,
                   "kafka-reassign-partitions.sh --bootstrap-server %s with %d replicas for topic %s, on as many brokers",
                   it->transport->config->brokers, REPLICAS, it->topic);
    wb_common_find(examination, it->replicas == 1 ? WB_FINDING_DANGER : WB_FINDING_WARNING, "topic-replicas", remedy,
                   "topic \"%s\" is on %d of the brokers: %s", it->topic, it->replicas,
                   it->replicas == 1 ? "its messages are lost with that one, and wait while it is away"
                                     : "while one is away nothing can be sent safely");
}

/* ---- all of them --------------------------------------------------------------------- */

static void examine_topic(wb_kafka_client *client, const rd_kafka_ConfigResource_t *resource, const wb_examination *examination)
{
    size_t count = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
    wb_kafka_examined it = { .transport = client->transport, .topic = rd_kafka_ConfigResource_name(resource) };
    wb_kafka_failure ignored = { 0 };
    rd_kafka_resp_err_t code;
    int partitions = 0;
    const int64_t deadline = it.transport->host->now() + it.transport->config->connect_timeout;
    it.is_read = !wb_kafka_is_for_copies(it.transport, it.topic);
    if (wb_kafka_topic_find(client, it.topic, deadline, &code, &partitions, &it.replicas, &ignored) != WB_OK)
        return; /* verify() says what is wrong with it */
    wb_kafka_examine_replicas(&it, examination);
    for (size_t i = 0; i < count; i++)
        if (rd_kafka_ConfigEntry_value(entries[i]))
            wb_kafka_examine_property(&it, rd_kafka_ConfigEntry_name(entries[i]), rd_kafka_ConfigEntry_value(entries[i]),
                                      examination);
}

static void note_untold(const wb_examination *examination, const char *why)
{
    wb_common_find(examination, WB_FINDING_NOTE, "topics-unknown", NULL,
                   "the brokers do not tell what is configured for the endpoint's topics: %s", why);
}

static void examine_answer(wb_kafka_client *client, rd_kafka_event_t *event, const wb_examination *examination)
{
    size_t count = 0;
    const rd_kafka_ConfigResource_t **resources =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
    for (size_t i = 0; i < count; i++)
        examine_topic(client, resources[i], examination);
}

static int examine_all(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    const wb_transport *transport = client->transport;
    const wb_examination *examination = argument;
    const int64_t deadline = transport->host->now() + transport->config->connect_timeout;
    size_t count = 0;
    rd_kafka_ConfigResource_t **wanted = wb_kafka_configs_of_topics(transport, &count);
    if (!wanted)
        return wb_kafka_failure_set(failure, WB_RETRY, WB_CAUSE_OTHER, 0, "out of memory");
    rd_kafka_event_t *event = wb_kafka_configs_ask(client, wanted, count, wb_kafka_until(transport, deadline));
    if (!event || rd_kafka_event_error(event))
        note_untold(examination, event ? rd_kafka_event_error_string(event) : "no answer");
    else
        examine_answer(client, event, examination);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy_array(wanted, count);
    free(wanted);
    return WB_OK;
}

int wb_kafka_examine(wb_transport *transport, const wb_examination *examination, wb_error *error)
{
    if (!transport->endpoint->error_queue) /* it only sends */
        return WB_OK;
    return wb_kafka_topology_work(transport, examine_all, examination, error);
}

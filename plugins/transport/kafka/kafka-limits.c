/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-topology.h"

#define PROPERTY "max.message.bytes"
#define UNKNOWN INT64_C(-1)

static void log_unknown(const wb_transport *transport, const char *topic, const char *reason)
{
    wb_field fields[] = { { "topic", topic },
                          { "reason", reason } };
    transport->host->log(transport->host, WB_LOG_INFO,
                         "whether the error topic takes messages as large as this topic could not "
                         "be found out",
                         fields, 2);
}

/* ---- asking ---------------------------------------------------------------------- */

static int64_t find_limit(const rd_kafka_ConfigResource_t *resource)
{
    size_t count = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
    for (size_t i = 0; i < count; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        if (value && strcmp(rd_kafka_ConfigEntry_name(entries[i]), PROPERTY) == 0)
            return strtoll(value, NULL, 10);
    }
    return UNKNOWN;
}

static int64_t limit_of(const wb_transport *transport, const rd_kafka_ConfigResource_t *resource)
{
    const char *topic = rd_kafka_ConfigResource_name(resource);
    rd_kafka_resp_err_t code = rd_kafka_ConfigResource_error(resource);
    const char *text = rd_kafka_ConfigResource_error_string(resource);
    int64_t limit = code ? UNKNOWN : find_limit(resource);
    if (limit == UNKNOWN)
        log_unknown(transport, topic, text ? text : rd_kafka_err2str(code));
    return limit;
}

rd_kafka_event_t *wb_kafka_configs_ask(wb_kafka_client *client, rd_kafka_ConfigResource_t **wanted, size_t count,
                                       int timeout)
{
    char text[200];
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(client->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client->rk);
    if (timeout < 1)
        timeout = 1;
    (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout, text, sizeof text);
    rd_kafka_DescribeConfigs(client->rk, wanted, count, options, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, timeout + 500);
    rd_kafka_queue_destroy(answers);
    rd_kafka_AdminOptions_destroy(options);
    return event;
}

/* ---- comparing ------------------------------------------------------------------- */

static const char *audit_topic(const wb_transport *transport)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    return WB_HAS(endpoint, wb_endpoint_info, audit_queue) ? endpoint->audit_queue : NULL;
}

/* The endpoint's own, then those of single types. */
static size_t count_error_topics(const wb_transport *transport)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    return 1 + (WB_HAS(endpoint, wb_endpoint_info, error_queue_count) ? endpoint->error_queue_count : 0);
}

static const char *error_topic(const wb_transport *transport, size_t number)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    return number ? endpoint->error_queues[number - 1] : endpoint->error_queue;
}

static int is_same(const char *topic, const char *other)
{
    return other && strcmp(topic, other) == 0;
}

/* Copies go there, and nothing of the endpoint's comes from there. */
int wb_kafka_is_for_copies(const wb_transport *transport, const char *topic)
{
    for (size_t i = 0; i < count_error_topics(transport); i++)
        if (is_same(topic, error_topic(transport, i)))
            return 1;
    return is_same(topic, audit_topic(transport));
}

/* Fields and text of a warning; `other` names the topic or the limit that is in the way. */
static void warn(const wb_transport *transport, const char *text, const char *topic, int64_t limit,
                 wb_field other, const char *other_limit_name, int64_t other_limit)
{
    char its[24], others[24];
    (void)snprintf(its, sizeof its, "%" PRId64, limit);
    (void)snprintf(others, sizeof others, "%" PRId64, other_limit);
    wb_field fields[] = { { "topic", topic },
                          { "its_limit", its },
                          other,
                          { other_limit_name, others } };
    transport->host->log(transport->host, WB_LOG_WARNING, text, fields, 4);
}

static void compare_error(const wb_transport *transport, const char *topic, int64_t limit,
                          const char *error_name, int64_t error_limit)
{
    const wb_field error_topic = { "error_topic", error_name };
    if (error_limit != UNKNOWN && error_limit < limit)
        warn(transport,
             "the error topic takes smaller messages than the topic: what is larger cannot be "
             "moved there; raise " PROPERTY " of the error topic",
             topic, limit, error_topic, "error_topic_limit", error_limit);
}

static void compare_sent(const wb_transport *transport, const char *topic, int64_t limit)
{
    int64_t sent = transport->message_max + WB_KAFKA_ERROR_ROOM;
    const wb_field error_topic = { "error_topic", transport->endpoint->error_queue };
    if (sent < limit)
        warn(transport,
             "the topic takes larger messages than this endpoint sends: what is larger cannot be "
             "moved to the error topic; raise the option message_max",
             topic, limit, error_topic, "sends_up_to", sent);
}

static void compare_audit(const wb_transport *transport, const char *topic, int64_t limit,
                          int64_t audit_limit)
{
    if (audit_limit != UNKNOWN && audit_limit < limit)
        warn(transport,
             "the audit topic takes smaller messages than the topic: what is larger fails once it "
             "was handled; raise " PROPERTY " of the audit topic",
             topic, limit, (wb_field){ "audit_topic", audit_topic(transport) }, "audit_topic_limit",
             audit_limit);
}

static int64_t find_limit_of(const wb_transport *transport, const rd_kafka_ConfigResource_t **resources,
                             size_t count, const char *topic)
{
    for (size_t i = 0; i < count; i++)
        if (is_same(rd_kafka_ConfigResource_name(resources[i]), topic))
            return limit_of(transport, resources[i]);
    return UNKNOWN;
}

static void compare_one(const wb_transport *transport, const rd_kafka_ConfigResource_t **resources, size_t count,
                        size_t at)
{
    const char *topic = rd_kafka_ConfigResource_name(resources[at]);
    int64_t limit = limit_of(transport, resources[at]);
    if (limit == UNKNOWN)
        return;
    for (size_t i = 0; i < count_error_topics(transport); i++)
        compare_error(transport, topic, limit, error_topic(transport, i),
                      find_limit_of(transport, resources, count, error_topic(transport, i)));
    compare_sent(transport, topic, limit);
    compare_audit(transport, topic, limit, find_limit_of(transport, resources, count, audit_topic(transport)));
}

static void compare_all(const wb_transport *transport, rd_kafka_event_t *event)
{
    size_t count = 0;
    const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    for (size_t i = 0; i < count; i++)
        if (!wb_kafka_is_for_copies(transport, rd_kafka_ConfigResource_name(resources[i])))
            compare_one(transport, resources, count, i);
}

static void conclude(const wb_transport *transport, rd_kafka_event_t *event)
{
    if (!event)
        log_unknown(transport, transport->endpoint->name, "no answer");
    else if (rd_kafka_event_error(event))
        log_unknown(transport, transport->endpoint->name, rd_kafka_event_error_string(event));
    else
        compare_all(transport, event);
}

rd_kafka_ConfigResource_t **wb_kafka_configs_of_topics(const wb_transport *transport, size_t *ret_count)
{
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(transport);
    size_t count = 0;
    rd_kafka_ConfigResource_t **wanted = calloc((size_t)topics->cnt + count_error_topics(transport) + 1, sizeof *wanted);
    for (int i = 0; wanted && i < topics->cnt; i++)
        wanted[count++] =
            rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topics->elems[i].topic);
    rd_kafka_topic_partition_list_destroy(topics);
    for (size_t i = 0; wanted && i < count_error_topics(transport); i++)
        wanted[count++] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, error_topic(transport, i));
    if (wanted && audit_topic(transport))
        wanted[count++] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, audit_topic(transport));
    *ret_count = count;
    return wanted;
}

void wb_kafka_limits_compare(wb_kafka_client *client, int64_t deadline)
{
    const wb_transport *transport = client->transport;
    size_t count = 0;
    if (!transport->endpoint->error_queue)
        return;
    rd_kafka_ConfigResource_t **wanted = wb_kafka_configs_of_topics(transport, &count);
    if (!wanted)
        return;
    rd_kafka_event_t *event = wb_kafka_configs_ask(client, wanted, count, wb_kafka_until(transport, deadline));
    conclude(transport, event);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy_array(wanted, count);
    free(wanted);
}

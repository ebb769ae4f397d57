/* SPDX-License-Identifier: Apache-2.0
 *
 * The broker looks whether a topic may be read when somebody fetches from it: so each is
 * fetched from at its end, where nothing is. It looks whether a group may be used when
 * somebody asks for its offsets. What may be written cannot be asked with librdkafka 2.0.
 */
#include "config.h"

#include "plugins/transport/kafka/kafka-rights.h"

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-topology.h"

#define STEP 50

static wb_kafka_client *start_probe(wb_transport *transport)
{
    wb_kafka_failure ignored = { 0 };
    char text[100];
    rd_kafka_conf_t *conf = wb_kafka_conf_make(transport, WB_KAFKA_ROLE_CONSUMER, NULL, NULL);
    if (!conf)
        return NULL;
    (void)rd_kafka_conf_set(conf, "enable.partition.eof", "true", text, sizeof text);
    /* At the end of a topic the broker waits for so long before it says so. */
    (void)rd_kafka_conf_set(conf, "fetch.wait.max.ms", "10", text, sizeof text);
    wb_kafka_client *probe =
        wb_kafka_client_start(transport, RD_KAFKA_CONSUMER, conf, NULL, &ignored);
    if (probe)
        (void)rd_kafka_poll_set_consumer(probe->rk);
    return probe;
}

static int refuse(const wb_kafka_client *probe, const char *topic, rd_kafka_resp_err_t code,
                  wb_kafka_failure *failure)
{
    const char *group = probe->transport->endpoint->name;
    if (code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, code,
                                    "the user may not use the group \"%s\": grant READ on the group "
                                    "(kafka-acls)",
                                    group);
    return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, code,
                                "the user may not read topic \"%s\": grant READ on the topic "
                                "(kafka-acls)",
                                topic);
}

/* @return WB_OK, also when there is nothing to hear or it tells nothing. */
static int hear(const wb_kafka_client *probe, int *ends, wb_kafka_failure *failure)
{
    rd_kafka_message_t *message = rd_kafka_consumer_poll(probe->rk, STEP);
    int result = WB_OK;
    if (!message)
        return WB_OK;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        (*ends)++;
    else if (message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
             message->err == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
        result = refuse(probe, message->rkt ? rd_kafka_topic_name(message->rkt) : "", message->err,
                        failure);
    rd_kafka_message_destroy(message);
    return result;
}

/* One partition of each topic will do. */
static rd_kafka_topic_partition_list_t *places_of(const wb_transport *transport)
{
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(transport);
    for (int i = 0; i < topics->cnt; i++) {
        topics->elems[i].partition = 0;
        topics->elems[i].offset = RD_KAFKA_OFFSET_END;
    }
    return topics;
}

static int ask_topics(const wb_kafka_client *probe, rd_kafka_topic_partition_list_t *places,
                      int64_t deadline, wb_kafka_failure *failure)
{
    int result = WB_OK, ends = 0;
    if (rd_kafka_assign(probe->rk, places) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return WB_OK;
    while (result == WB_OK && ends < places->cnt && wb_kafka_until(probe->transport, deadline))
        result = hear(probe, &ends, failure);
    (void)rd_kafka_assign(probe->rk, NULL);
    return result;
}

/* A refusal to find the group's coordinator is heard by who polls, and an answer that comes later than
 * it is waited for is lost: so it is asked again and again, each time with twice the patience. */
static int ask_group(const wb_kafka_client *probe, rd_kafka_topic_partition_list_t *places,
                     int64_t deadline, wb_kafka_failure *failure)
{
    int result = WB_OK, ignored = 0, left;
    for (int step = STEP; result == WB_OK && (left = wb_kafka_until(probe->transport, deadline)); step *= 2) {
        rd_kafka_resp_err_t code = rd_kafka_committed(probe->rk, places, step < left ? step : left);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        if (code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED)
            return refuse(probe, "", code, failure);
        result = hear(probe, &ignored, failure);
    }
    return result;
}

int wb_kafka_rights_verify(wb_transport *transport, int64_t deadline, wb_kafka_failure *failure)
{
    wb_kafka_client *probe = start_probe(transport);
    if (!probe)
        return WB_OK; /* a session will say why */
    rd_kafka_topic_partition_list_t *places = places_of(transport);
    int result = ask_topics(probe, places, deadline, failure);
    if (result == WB_OK)
        result = ask_group(probe, places, deadline, failure);
    rd_kafka_topic_partition_list_destroy(places);
    wb_kafka_client_end(probe);
    return result;
}

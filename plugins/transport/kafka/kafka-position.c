/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the partitions end, as their leaders say: whether one is still what it was.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-session.h"

#define MILLISECOND INT64_C(1000000)

/* "topic/number"; a topic's name has no slash. @return 0 when it is none. */
static int read_name(const char *name, size_t size, char topic[WB_KAFKA_TOPIC_SIZE], int32_t *ret_number)
{
    char text[WB_KAFKA_TOPIC_SIZE + 12], *end;
    if (size >= sizeof text)
        return 0;
    memcpy(text, name, size);
    text[size] = '\0';
    char *slash = strrchr(text, '/');
    if (!slash || slash == text || slash - text >= WB_KAFKA_TOPIC_SIZE || slash[1] < '0' || slash[1] > '9')
        return 0;
    *slash = '\0';
    long number = strtol(slash + 1, &end, 10);
    if (*end || number > INT32_MAX)
        return 0;
    memcpy(topic, text, (size_t)(slash - text) + 1);
    *ret_number = (int32_t)number;
    return 1;
}

static int is_absent(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* The producer's where there is one: behind the fetch that waits on a consumer's connection an answer takes as long
 * as that does. */
static rd_kafka_t *client_of(const wb_transport_session *session)
{
    return wb_kafka_producer_is_open(&session->producer) ? session->producer.client->rk
                                                         : session->receiver.consumer->client->rk;
}

static int report(const wb_transport_session *session, const char *topic, int32_t number, rd_kafka_resp_err_t code,
                  wb_error *error)
{
    wb_kafka_failure failure = { 0 };
    char doing[WB_KAFKA_TOPIC_SIZE + 80];
    (void)snprintf(doing, sizeof doing, "ask where partition %" PRId32 " of topic \"%s\" ends", number, topic);
    (void)wb_kafka_failure_map(&failure, code, doing, NULL);
    if (failure.result != WB_FATAL)
        failure.result = WB_NOT_CONNECTED;
    return wb_kafka_failure_report(session->transport->host, &failure, error);
}

/* Of one that has none librdkafka waits for one, for the whole of the time. What else there is to say of it, it says. */
static int has_leader(rd_kafka_t *rk, const char *topic, int32_t number, int timeout)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 0, handle, &metadata, timeout);
    int has = 1;
    rd_kafka_topic_destroy(handle);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 1;
    for (int i = 0; metadata->topic_cnt == 1 && i < metadata->topics[0].partition_cnt; i++)
        if (metadata->topics[0].partitions[i].id == number)
            has = metadata->topics[0].partitions[i].leader >= 0;
    rd_kafka_metadata_destroy(metadata);
    return has;
}

/* Of one that is received from no longer nobody has to know. */
static int is_read(const wb_transport_session *session, const char *topic)
{
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(session->transport);
    const int is = rd_kafka_topic_partition_list_find(topics, topic, RD_KAFKA_PARTITION_UA) != NULL;
    rd_kafka_topic_partition_list_destroy(topics);
    return is;
}

int wb_kafka_session_position_end(wb_transport_session *session, const char *partition, size_t partition_size,
                                  uint64_t *ret_end, wb_error *error)
{
    const wb_host *host = session->transport->host;
    char topic[WB_KAFKA_TOPIC_SIZE];
    int64_t low = 0, high = 0;
    int32_t number;
    if (!read_name(partition, partition_size, topic, &number))
        return host->fail(host, error, WB_REJECT, WB_CAUSE_MISSING, 0, "\"%.*s\" is no partition of Kafka's",
                          (int)partition_size, partition);
    if (!is_read(session, topic))
        return host->fail(host, error, WB_REJECT, WB_CAUSE_MISSING, 0, "nothing is received from topic \"%s\"", topic);
    int timeout = (int)(session->transport->config->confirm_timeout / MILLISECOND);
    if (!has_leader(client_of(session), topic, number, timeout))
        return report(session, topic, number, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, error);
    rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(client_of(session), topic, number, &low, &high, timeout);
    if (is_absent(code))
        return host->fail(host, error, WB_REJECT, WB_CAUSE_MISSING, code, "topic \"%s\" has no partition %" PRId32,
                          topic, number);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return report(session, topic, number, code, error);
    *ret_end = (uint64_t)high;
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-topology.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <waybill/sys/types.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-limits.h"
#include "plugins/transport/kafka/kafka-rights.h"

#define MILLISECOND INT64_C(1000000)

/* ---- names ----------------------------------------------------------------------- */

static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
static const char digits[] = "0123456789ABCDEF";

static const char *address_topic(const char *name, char ret_topic[WB_KAFKA_TOPIC_SIZE])
{
    size_t size = strlen(name);
    if (size == 0 || size >= WB_KAFKA_TOPIC_SIZE)
        return "it cannot name a topic: 1 to 249 characters";
    memcpy(ret_topic, name, size + 1);
    if (strspn(ret_topic, legal) != size)
        return "it cannot name a topic: only letters, digits, '.', '_' and '-'";
    return NULL;
}

static int is_digit(char byte)
{
    return byte && strchr(digits, byte) != NULL;
}

/* Also of a '-' that would be read as the beginning of another one's number. */
static int must_be_number(const char *at)
{
    return !strchr(legal, *at) || (*at == '-' && is_digit(at[1]) && is_digit(at[2]));
}

/* Two types never share a topic: who handles one of them would get the other's events. */
static const char *event_topic(const char *type, char ret_topic[WB_KAFKA_TOPIC_SIZE])
{
    char name[WB_TYPE_SIZE];
    size_t length, size = 0;
    if (!wb_type_next(&type, name, &length))
        return "it cannot name a topic: 1 to 249 characters";
    for (const char *at = name; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte > 0x7e)
            return "it cannot name a topic: it holds a control character, or one that is not in ASCII";
        int as_number = must_be_number(at);
        if (size + (as_number ? 3 : 1) >= WB_KAFKA_TOPIC_SIZE)
            return "it cannot name a topic: 1 to 249 characters, each counting three that is no letter, "
                   "digit, '.', '_' or '-'";
        if (!as_number) {
            ret_topic[size++] = *at;
            continue;
        }
        ret_topic[size++] = '-';
        ret_topic[size++] = digits[byte >> 4];
        ret_topic[size++] = digits[byte & 15];
    }
    ret_topic[size] = '\0';
    return NULL;
}

const char *wb_kafka_topic_name(const char *name, int is_event, char ret_topic[WB_KAFKA_TOPIC_SIZE])
{
    const char *reason = is_event ? event_topic(name, ret_topic) : address_topic(name, ret_topic);
    if (!reason && (strcmp(ret_topic, ".") == 0 || strcmp(ret_topic, "..") == 0))
        reason = "it cannot name a topic";
    return reason;
}

static int check_name(const wb_transport *transport, const char *what, const char *name,
                      int is_event, wb_error *error)
{
    char topic[WB_KAFKA_TOPIC_SIZE];
    const char *reason = wb_kafka_topic_name(name, is_event, topic);
    if (!reason)
        return WB_OK;
    return transport->host->fail(transport->host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s \"%s\": %s",
                                 what, name, reason);
}

size_t wb_kafka_topology_count_own(const wb_endpoint_info *endpoint)
{
    return 1 + (WB_HAS(endpoint, wb_endpoint_info, queue_count) ? endpoint->queue_count : 0);
}

const char *wb_kafka_topology_own(const wb_endpoint_info *endpoint, size_t number)
{
    return number ? endpoint->queues[number - 1] : endpoint->name;
}

int wb_kafka_topology_is_own(const wb_endpoint_info *endpoint, const char *topic)
{
    int is_own = 0;
    for (size_t i = 0; !is_own && i < wb_kafka_topology_count_own(endpoint); i++)
        is_own = strcmp(topic, wb_kafka_topology_own(endpoint, i)) == 0;
    return is_own;
}

/* Those of single types. */
static size_t count_error_queues(const wb_endpoint_info *endpoint)
{
    return WB_HAS(endpoint, wb_endpoint_info, error_queue_count) ? endpoint->error_queue_count : 0;
}

int wb_kafka_topology_check(const wb_transport *transport, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int result = check_name(transport, "endpoint", endpoint->name, 0, error);
    for (size_t i = 1; i < wb_kafka_topology_count_own(endpoint) && result == WB_OK; i++)
        result = check_name(transport, "queue", wb_kafka_topology_own(endpoint, i), 0, error);
    if (result == WB_OK && endpoint->error_queue)
        result = check_name(transport, "error queue", endpoint->error_queue, 0, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = check_name(transport, "audit queue", endpoint->audit_queue, 0, error);
    for (size_t i = 0; i < count_error_queues(endpoint) && result == WB_OK; i++)
        result = check_name(transport, "error queue", endpoint->error_queues[i], 0, error);
    for (size_t i = 0; i < endpoint->type_count && result == WB_OK; i++)
        result = check_name(transport, "type", endpoint->types[i], 1, error);
    return result;
}

rd_kafka_topic_partition_list_t *wb_kafka_topics_read(const wb_transport *transport)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new((int)(endpoint->type_count + wb_kafka_topology_count_own(endpoint)));
    char topic[WB_KAFKA_TOPIC_SIZE];
    for (size_t i = 0; i < wb_kafka_topology_count_own(endpoint); i++)
        (void)rd_kafka_topic_partition_list_add(topics, wb_kafka_topology_own(endpoint, i), RD_KAFKA_PARTITION_UA);
    for (size_t i = 0; i < endpoint->type_count; i++)
        if (!wb_kafka_topic_name(endpoint->types[i], 1, topic) &&
            !rd_kafka_topic_partition_list_find(topics, topic, RD_KAFKA_PARTITION_UA))
            (void)rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    return topics;
}

unsigned wb_kafka_topics_hash(const wb_transport *transport)
{
    unsigned all = 0;
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(transport);
    for (int i = 0; i < topics->cnt; i++)
        all ^= wb_kafka_hash(topics->elems[i].topic);
    rd_kafka_topic_partition_list_destroy(topics);
    return all;
}

/* ---- looking --------------------------------------------------------------------- */

static int replicas_of(const struct rd_kafka_metadata_topic *topic)
{
    return topic->partition_cnt > 0 ? topic->partitions[0].replica_cnt : 0;
}

int wb_kafka_topic_find(wb_kafka_client *client, const char *topic, int64_t deadline,
                        rd_kafka_resp_err_t *ret_code, int *ret_partitions, int *ret_replicas,
                        wb_kafka_failure *failure)
{
    const struct rd_kafka_metadata *metadata;
    int result = wb_kafka_client_ask(client, topic, deadline, &metadata, failure);
    if (result != WB_OK)
        return result;
    *ret_code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (metadata->topic_cnt == 1) {
        const struct rd_kafka_metadata_topic *found = &metadata->topics[0];
        *ret_code = found->err;
        if (ret_partitions)
            *ret_partitions = found->partition_cnt;
        if (ret_replicas)
            *ret_replicas = replicas_of(found);
    }
    rd_kafka_metadata_destroy(metadata);
    /* One whose leader is being elected is there. */
    if (*ret_code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
        *ret_code = RD_KAFKA_RESP_ERR_NO_ERROR;
    return *ret_code == RD_KAFKA_RESP_ERR_NO_ERROR ? WB_OK : WB_REJECT;
}

int wb_kafka_topic_await(wb_kafka_client *client, const char *topic, int64_t deadline,
                         wb_kafka_failure *failure)
{
    static const struct timespec pause = { 0, 20 * MILLISECOND };
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    int partitions, result;
    for (;;) {
        result = wb_kafka_topic_find(client, topic, deadline, &code, &partitions, NULL, failure);
        if (result == WB_OK && partitions > 0)
            return WB_OK;
        if (result != WB_OK && result != WB_REJECT)
            return result;
        if (!wb_kafka_until(client->transport, deadline))
            return wb_kafka_failure_set(failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, code,
                                        "topic \"%s\" was made, but the brokers do not know it yet",
                                        topic);
        (void)nanosleep(&pause, NULL);
    }
}

/* ---- making ---------------------------------------------------------------------- */

/* The error and audit topics and those of events are others', too. @return what is asked for, or -1. */
static int64_t partitions_of(const wb_transport *transport, const char *topic)
{
    return wb_kafka_topology_is_own(transport->endpoint, topic) ? transport->config->partitions : -1;
}

static rd_kafka_NewTopic_t *describe(const wb_transport *transport, const char *topic,
                                     int64_t message_max, char *text, size_t size)
{
    const wb_kafka_config *config = transport->config;
    char limit[24];
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, (int)partitions_of(transport, topic),
                                                        (int)config->replication, text, size);
    (void)snprintf(limit, sizeof limit, "%" PRId64, message_max);
    if (wanted)
        (void)rd_kafka_NewTopic_set_config(wanted, "max.message.bytes", limit);
    return wanted;
}

static rd_kafka_resp_err_t outcome(rd_kafka_event_t *event, char *text, size_t size)
{
    size_t count = 0;
    rd_kafka_resp_err_t code = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)snprintf(text, size, "%s", event ? rd_kafka_event_error_string(event)
                                              : rd_kafka_err2str(code));
        return code;
    }
    const rd_kafka_topic_result_t **topics =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (count == 0)
        return RD_KAFKA_RESP_ERR__BAD_MSG;
    const char *reason = rd_kafka_topic_result_error_string(topics[0]);
    code = rd_kafka_topic_result_error(topics[0]);
    (void)snprintf(text, size, "%s", reason ? reason : rd_kafka_err2str(code));
    return code;
}

static rd_kafka_resp_err_t create_topic(wb_kafka_client *client, rd_kafka_NewTopic_t *wanted,
                                        int timeout, char *text, size_t size)
{
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(client->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client->rk);
    if (timeout < 1)
        timeout = 1;
    (void)rd_kafka_AdminOptions_set_request_timeout(options, timeout, text, size);
    (void)rd_kafka_AdminOptions_set_operation_timeout(options, timeout, text, size);
    rd_kafka_CreateTopics(client->rk, &wanted, 1, options, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, timeout + 500);
    rd_kafka_resp_err_t code = outcome(event, text, size);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_AdminOptions_destroy(options);
    return code;
}

int wb_kafka_topic_create(wb_kafka_client *client, const char *topic, int64_t message_max,
                          int64_t deadline, int *ret_existed, wb_kafka_failure *failure)
{
    char text[300] = "";
    char doing[WB_KAFKA_TOPIC_SIZE + 32];
    (void)snprintf(doing, sizeof doing, "make topic \"%s\"", topic);
    rd_kafka_NewTopic_t *wanted =
        describe(client->transport, topic, message_max, text, sizeof text);
    if (!wanted)
        return wb_kafka_failure_map(failure, RD_KAFKA_RESP_ERR__INVALID_ARG, doing, text);
    rd_kafka_resp_err_t code = create_topic(
        client, wanted, wb_kafka_until(client->transport, deadline), text, sizeof text);
    rd_kafka_NewTopic_destroy(wanted);
    *ret_existed = code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || *ret_existed)
        return WB_OK;
    if (wb_kafka_map_cause(code) == WB_CAUSE_REFUSED)
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_REFUSED, code, "could not %s: %s%s", doing,
                                    text, wb_kafka_map_remedy(code, WB_KAFKA_CREATE));
    return wb_kafka_failure_map(failure, code, doing, text);
}

/* ---- install --------------------------------------------------------------------- */

static int compare(const char *topic, const char *what, int64_t wanted, int found,
                   wb_kafka_failure *failure)
{
    if (wanted == -1 || wanted == found)
        return WB_OK;
    return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                                "topic \"%s\" exists with %s = %d, and %s = %" PRId64
                                " is asked for: set %s to what it is, or change the topic",
                                topic, what, found, what, wanted, what);
}

static int operation_on(const wb_transport *transport, const char *topic)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int is_written = (endpoint->error_queue && strcmp(topic, endpoint->error_queue) == 0) ||
                     (WB_HAS(endpoint, wb_endpoint_info, audit_queue) && strcmp(topic, endpoint->audit_queue) == 0);
    for (size_t i = 0; i < count_error_queues(endpoint); i++)
        is_written |= strcmp(topic, endpoint->error_queues[i]) == 0;
    return is_written ? WB_KAFKA_WRITE : WB_KAFKA_READ;
}

static int check_topic(wb_kafka_client *client, const char *topic, int64_t deadline,
                       wb_kafka_failure *failure)
{
    const wb_kafka_config *config = client->transport->config;
    rd_kafka_resp_err_t code;
    int partitions = 0, replicas = 0;
    int result =
        wb_kafka_topic_find(client, topic, deadline, &code, &partitions, &replicas, failure);
    if (result == WB_REJECT && code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        return wb_kafka_failure_set(failure, WB_FATAL, WB_CAUSE_MISSING, code,
                                    "topic \"%s\" does not exist: run waybill install", topic);
    if (result == WB_REJECT)
        return wb_kafka_failure_set(failure, WB_FATAL, wb_kafka_map_cause(code), code,
                                    "could not use topic \"%s\": %s%s", topic, rd_kafka_err2str(code),
                                    wb_kafka_map_remedy(code, operation_on(client->transport, topic)));
    if (result == WB_OK)
        result = compare(topic, "partitions", partitions_of(client->transport, topic), partitions,
                         failure);
    if (result == WB_OK && replicas)
        result = compare(topic, "replication", config->replication, replicas, failure);
    return result;
}

static int install_topic(wb_kafka_client *client, const char *topic, int64_t message_max,
                         int64_t deadline, wb_kafka_failure *failure)
{
    int existed;
    int result = wb_kafka_topic_create(client, topic, message_max, deadline, &existed, failure);
    if (result == WB_OK) /* somebody else may have made it just now */
        result = wb_kafka_topic_await(client, topic, deadline, failure);
    if (result == WB_OK && existed)
        result = check_topic(client, topic, deadline, failure);
    return result;
}

static int64_t in(const wb_transport *transport, int64_t duration)
{
    return transport->host->now() + duration;
}

/* A message on its way to the error or the audit queue has more headers than before. */
static int install_copies(wb_kafka_client *client, const char *topic, wb_kafka_failure *failure)
{
    const wb_transport *transport = client->transport;
    return install_topic(client, topic, transport->message_max + WB_KAFKA_ERROR_ROOM,
                         in(transport, transport->config->connect_timeout), failure);
}

static int install_all(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    (void)argument;
    const wb_transport *transport = client->transport;
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(transport);
    int64_t timeout = transport->config->connect_timeout;
    int result = WB_OK;
    for (int i = 0; i < topics->cnt && result == WB_OK; i++)
        result = install_topic(client, topics->elems[i].topic, transport->message_max,
                               in(transport, timeout), failure);
    if (result == WB_OK && transport->endpoint->error_queue)
        result = install_copies(client, transport->endpoint->error_queue, failure);
    if (result == WB_OK && WB_HAS(transport->endpoint, wb_endpoint_info, audit_queue))
        result = install_copies(client, transport->endpoint->audit_queue, failure);
    for (size_t i = 0; i < count_error_queues(transport->endpoint) && result == WB_OK; i++)
        result = install_copies(client, transport->endpoint->error_queues[i], failure);
    if (result == WB_OK)
        wb_kafka_limits_compare(client, in(transport, timeout));
    rd_kafka_topic_partition_list_destroy(topics);
    return result;
}

/* ---- verify ---------------------------------------------------------------------- */

static void warn_of_idle_workers(const wb_transport *transport, int partitions)
{
    char workers[16], found[16];
    if ((uint32_t)partitions >= transport->endpoint->concurrency)
        return;
    (void)snprintf(workers, sizeof workers, "%u", transport->endpoint->concurrency);
    (void)snprintf(found, sizeof found, "%d", partitions);
    wb_field fields[] = { { "topic", transport->endpoint->name },
                          { "partitions", found },
                          { "concurrency", workers } };
    transport->host->log(transport->host, WB_LOG_WARNING,
                         "the topic has fewer partitions than there are workers: some will have "
                         "nothing to do",
                         fields, 3);
}

static int count_own_partitions(wb_kafka_client *client, int *ret_partitions, wb_kafka_failure *failure)
{
    const wb_transport *transport = client->transport;
    int result = WB_OK;
    *ret_partitions = 0;
    for (size_t i = 0; i < wb_kafka_topology_count_own(transport->endpoint) && result == WB_OK; i++) {
        rd_kafka_resp_err_t code;
        int partitions = 0;
        result = wb_kafka_topic_find(client, wb_kafka_topology_own(transport->endpoint, i),
                                     in(transport, transport->config->connect_timeout), &code, &partitions, NULL, failure);
        *ret_partitions += partitions;
    }
    return result;
}

static int verify_all(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    (void)argument;
    const wb_transport *transport = client->transport;
    int64_t timeout = transport->config->connect_timeout;
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(transport);
    int result = WB_OK, partitions = 0;
    for (int i = 0; i < topics->cnt && result == WB_OK; i++)
        result = check_topic(client, topics->elems[i].topic, in(transport, timeout), failure);
    if (result == WB_OK && transport->endpoint->error_queue)
        result =
            check_topic(client, transport->endpoint->error_queue, in(transport, timeout), failure);
    if (result == WB_OK && WB_HAS(transport->endpoint, wb_endpoint_info, audit_queue))
        result =
            check_topic(client, transport->endpoint->audit_queue, in(transport, timeout), failure);
    for (size_t i = 0; i < count_error_queues(transport->endpoint) && result == WB_OK; i++)
        result =
            check_topic(client, transport->endpoint->error_queues[i], in(transport, timeout), failure);
    if (result == WB_OK)
        result = count_own_partitions(client, &partitions, failure);
    if (result == WB_OK)
        warn_of_idle_workers(transport, partitions);
    if (result == WB_OK)
        result = wb_kafka_rights_verify(client->transport, in(transport, timeout), failure);
    if (result == WB_OK)
        wb_kafka_limits_compare(client, in(transport, timeout));
    rd_kafka_topic_partition_list_destroy(topics);
    return result;
}

/* ---- with a client of their own -------------------------------------------------- */

int wb_kafka_topology_work(wb_transport *transport, wb_kafka_work_fn work, const void *argument, wb_error *error)
{
    wb_kafka_failure failure = { 0 };
    rd_kafka_conf_t *conf = wb_kafka_conf_make(transport, WB_KAFKA_ROLE_ADMIN, NULL, error);
    if (!conf)
        return WB_FATAL;
    wb_kafka_client *client =
        wb_kafka_client_start(transport, RD_KAFKA_PRODUCER, conf, NULL, &failure);
    if (!client)
        return wb_kafka_failure_report(transport->host, &failure, error);
    const struct rd_kafka_metadata *metadata;
    int result = wb_kafka_client_ask(client, NULL, in(transport, transport->config->connect_timeout),
                                     &metadata, &failure);
    if (result == WB_OK) {
        rd_kafka_metadata_destroy(metadata);
        result = work(client, argument, &failure);
    }
    if (result != WB_OK)
        (void)wb_kafka_failure_report(transport->host, &failure, error);
    wb_kafka_client_end(client);
    return result;
}

int wb_kafka_install(wb_transport *transport, wb_error *error)
{
    return wb_kafka_topology_work(transport, install_all, NULL, error);
}

int wb_kafka_verify(wb_transport *transport, wb_error *error)
{
    return wb_kafka_topology_work(transport, verify_all, NULL, error);
}

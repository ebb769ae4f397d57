/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-removal.h"

#include <stdio.h>
#include <time.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-topology.h"

#define MILLISECOND INT64_C(1000000)

/* Before the same is asked again. */
static const struct timespec look_pause = { 0, 50 * MILLISECOND };

static int64_t deadline_of(const wb_transport *transport)
{
    return transport->host->now() + transport->config->connect_timeout;
}

static int until(const wb_kafka_client *client)
{
    const int left = wb_kafka_until(client->transport, deadline_of(client->transport));
    return left > 0 ? left : 1;
}

/* ---- a member that never joins ----------------------------------------------------- */

/* Reads and writes the offsets of a group, which is empty. NULL with `failure` or, for want of memory, `error` filled. */
static wb_kafka_client *start(wb_transport *transport, const char *group, wb_kafka_failure *failure, wb_error *error)
{
    char text[100];
    rd_kafka_conf_t *conf = wb_kafka_conf_make(transport, WB_KAFKA_ROLE_CONSUMER, NULL, error);
    if (!conf)
        return NULL;
    (void)rd_kafka_conf_set(conf, "group.id", group, text, sizeof text);
    wb_kafka_client *client = wb_kafka_client_start(transport, RD_KAFKA_CONSUMER, conf, NULL, failure);
    if (client)
        (void)rd_kafka_poll_set_consumer(client->rk);
    return client;
}

typedef int (*work_fn)(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure);

static int work_as(wb_transport *transport, const char *group, work_fn work, const void *argument, wb_error *error)
{
    const struct rd_kafka_metadata *metadata;
    wb_kafka_failure failure = { 0 };
    wb_kafka_client *client = start(transport, group, &failure, error);
    if (!client)
        return failure.result ? wb_kafka_failure_report(transport->host, &failure, error) : WB_FATAL;
    int result = wb_kafka_client_ask(client, NULL, deadline_of(transport), &metadata, &failure);
    if (result == WB_OK) {
        rd_kafka_metadata_destroy(metadata);
        result = work(client, argument, &failure);
    }
    if (result != WB_OK)
        (void)wb_kafka_failure_report(transport->host, &failure, error);
    wb_kafka_client_end(client);
    return result;
}

/* ---- depth ------------------------------------------------------------------------- */

/* The partitions of a topic, or an empty list where there is none. NULL with `failure` filled. */
static rd_kafka_topic_partition_list_t *list_partitions(wb_kafka_client *client, const char *topic, wb_kafka_failure *failure)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    int count = 0;
    int result = wb_kafka_topic_find(client, topic, deadline_of(client->transport), &code, &count, NULL, failure);
    if (result == WB_REJECT && code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        (void)wb_kafka_failure_map(failure, code, "look at a topic", NULL);
    if (result != WB_OK && !(result == WB_REJECT && code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART))
        return NULL;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count + 1);
    for (int i = 0; result == WB_OK && i < count; i++)
        (void)rd_kafka_topic_partition_list_add(list, topic, i);
    return list;
}

/* Who leads a partition that was just made is not known at once. */
static rd_kafka_resp_err_t ask_ends(wb_kafka_client *client, const rd_kafka_topic_partition_t *at, int64_t *ret_low,
                                    int64_t *ret_high)
{
    const int64_t deadline = deadline_of(client->transport);
    for (;;) {
        rd_kafka_resp_err_t code =
            rd_kafka_query_watermark_offsets(client->rk, at->topic, at->partition, ret_low, ret_high, until(client));
        if ((code != RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION && code != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) ||
            wb_kafka_until(client->transport, deadline) <= 0)
            return code;
        (void)nanosleep(&look_pause, NULL);
    }
}

static int add_lag(wb_kafka_client *client, const rd_kafka_topic_partition_t *at, uint64_t *count, wb_kafka_failure *failure)
{
    int64_t low = 0, high = 0;
    rd_kafka_resp_err_t code = ask_ends(client, at, &low, &high);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return wb_kafka_client_failure(client, code, "ask where a partition ends", failure);
    const int64_t done = at->offset > low ? at->offset : low; /* nothing committed is a negative number */
    *count += high > done ? (uint64_t)(high - done) : 0;
    return WB_OK;
}

/* Of `committed`: what the group did not commit; else all that is there. */
static int count_messages(wb_kafka_client *client, const char *topic, int committed, int *ret_is_there, uint64_t *ret_count,
                          wb_kafka_failure *failure)
{
    rd_kafka_topic_partition_list_t *list = list_partitions(client, topic, failure);
    int result = WB_OK;
    *ret_count = 0;
    if (!list)
        return failure->result;
    *ret_is_there = list->cnt > 0;
    if (committed && list->cnt) {
        rd_kafka_resp_err_t code = rd_kafka_committed(client->rk, list, until(client));
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
            result = wb_kafka_client_failure(client, code, "ask for committed offsets", failure);
    }
    for (int i = 0; i < list->cnt && result == WB_OK; i++)
        result = add_lag(client, &list->elems[i], ret_count, failure);
    rd_kafka_topic_partition_list_destroy(list);
    return result;
}

/* A coordinator that does not answer, or still reads its log, says nothing of members. */
static rd_kafka_resp_err_t ask_members(const wb_kafka_client *client, uint32_t *ret_count)
{
    const struct rd_kafka_group_list *groups = NULL;
    rd_kafka_resp_err_t code = rd_kafka_list_groups(client->rk, client->transport->endpoint->name, &groups, until(client));
    *ret_count = 0;
    for (int i = 0; groups && i < groups->group_cnt; i++) {
        const struct rd_kafka_group_info *group = &groups->groups[i];
        *ret_count += (uint32_t)group->member_cnt;
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR && group->err != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
            code = group->err;
    }
    if (groups)
        rd_kafka_group_list_destroy(groups);
    return code;
}

/* Half an answer is asked for again: who is not seen may receive. */
static int count_members(wb_kafka_client *client, uint32_t *ret_count, wb_kafka_failure *failure)
{
    const int64_t deadline = deadline_of(client->transport);
    for (;;) {
        const rd_kafka_resp_err_t code = ask_members(client, ret_count);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            return WB_OK;
        if (wb_kafka_map_cause(code) != WB_CAUSE_SERVER || wb_kafka_until(client->transport, deadline) <= 0)
            return wb_kafka_client_failure(client, code, "ask for the members of the group", failure);
        (void)nanosleep(&look_pause, NULL);
    }
}

/* Of the endpoint's first `topics` topics. */
static int look(wb_kafka_client *client, size_t topics, wb_transport_depth *depth, wb_kafka_failure *failure)
{
    int result = WB_OK;
    depth->is_installed = 1;
    for (size_t i = 0; i < topics && result == WB_OK; i++) {
        uint64_t count = 0;
        int is_there = 0;
        result = count_messages(client, wb_kafka_topology_own(client->transport->endpoint, i), 1, &is_there, &count, failure);
        depth->is_installed &= is_there;
        depth->messages += count;
    }
    return result == WB_OK ? count_members(client, &depth->readers, failure) : result;
}

typedef struct looking {
    wb_transport_depth *depth;
} looking;

static int fill_depth(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    return look(client, wb_kafka_topology_count_own(client->transport->endpoint), ((const looking *)argument)->depth, failure);
}

int wb_kafka_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error)
{
    return work_as(transport, transport->endpoint->name, fill_depth, &(looking){ depth }, error);
}

/* ---- uninstall --------------------------------------------------------------------- */

/* What the brokers answer to one request about one thing. */
static rd_kafka_resp_err_t answer_of(rd_kafka_event_t *answer)
{
    size_t count = 0;
    if (!answer)
        return RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (rd_kafka_event_error(answer) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return rd_kafka_event_error(answer);
    const rd_kafka_DeleteTopics_result_t *of_topics = rd_kafka_event_DeleteTopics_result(answer);
    if (of_topics) {
        const rd_kafka_topic_result_t **topics = rd_kafka_DeleteTopics_result_topics(of_topics, &count);
        return count ? rd_kafka_topic_result_error(topics[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    }
    const rd_kafka_group_result_t **groups =
        rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(answer), &count);
    if (!count)
        return RD_KAFKA_RESP_ERR__BAD_MSG;
    const rd_kafka_error_t *error = rd_kafka_group_result_error(groups[0]);
    return error ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t delete_by(wb_kafka_client *client, const char *name, int is_group)
{
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client->rk);
    const int timeout = until(client);
    if (is_group) {
        rd_kafka_DeleteGroup_t *group = rd_kafka_DeleteGroup_new(name);
        rd_kafka_DeleteGroups(client->rk, &group, 1, NULL, answers);
        rd_kafka_DeleteGroup_destroy(group);
    } else {
        rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
        rd_kafka_DeleteTopics(client->rk, &topic, 1, NULL, answers);
        rd_kafka_DeleteTopic_destroy(topic);
    }
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, timeout);
    rd_kafka_resp_err_t code = answer_of(event);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    return code;
}

/* What is not there any more is as it should be. */
static int delete(wb_kafka_client *client, const char *name, int is_group, wb_kafka_failure *failure)
{
    char doing[WB_KAFKA_TOPIC_SIZE + 32];
    rd_kafka_resp_err_t code = delete_by(client, name, is_group);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
        code == RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
        return WB_OK;
    (void)snprintf(doing, sizeof doing, "delete %s \"%.249s\"", is_group ? "group" : "topic", name);
    return wb_kafka_failure_map(failure, code, doing, NULL);
}

static int refuse(const wb_kafka_client *client, const wb_transport_depth *depth, wb_kafka_failure *failure)
{
    const char *name = client->transport->endpoint->name;
    if (depth->readers)
        return wb_kafka_failure_set(failure, WB_REJECT, WB_CAUSE_OTHER, 0, "group \"%s\" has %u members", name,
                                    (unsigned)depth->readers);
    return wb_kafka_failure_set(failure, WB_REJECT, WB_CAUSE_OTHER, 0, "topic \"%s\" holds %llu messages", name,
                                (unsigned long long)depth->messages);
}

static int remove_if_empty(wb_kafka_client *client, const char *topic, wb_kafka_failure *failure)
{
    uint64_t count;
    int is_there = 0;
    int result = count_messages(client, topic, 0, &is_there, &count, failure);
    return result == WB_OK && is_there && !count ? delete(client, topic, 0, failure) : result;
}

static int remove_error_topics(wb_kafka_client *client, wb_kafka_failure *failure)
{
    const wb_endpoint_info *endpoint = client->transport->endpoint;
    int result = endpoint->error_queue ? remove_if_empty(client, endpoint->error_queue, failure) : WB_OK;
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = remove_if_empty(client, endpoint->error_queues[i], failure);
    return result;
}

/* The topic first: without the group's offsets all that is in it would be new. */
static int remove_all(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    const uint32_t flags = *(const uint32_t *)argument;
    wb_transport_depth depth = { .struct_size = sizeof depth };
    int result = look(client, 1, &depth, failure);
    if (result == WB_OK && (depth.readers || (depth.messages && !(flags & WB_UNINSTALL_MESSAGES))))
        return refuse(client, &depth, failure);
    if (result == WB_OK)
        result = delete(client, client->transport->endpoint->name, 0, failure);
    if (result == WB_OK)
        result = delete(client, client->transport->endpoint->name, 1, failure);
    return result == WB_OK && (flags & WB_UNINSTALL_ERROR_QUEUES) ? remove_error_topics(client, failure) : result;
}

int wb_kafka_uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    return work_as(transport, transport->endpoint->name, remove_all, &flags, error);
}

/* ---- take over --------------------------------------------------------------------- */

typedef struct offsets {
    rd_kafka_topic_partition_list_t *all;
} offsets;

/* Into the list: how far the group has come with the topics of events, notes included. */
static int read_offsets(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    rd_kafka_topic_partition_list_t *all = ((const offsets *)argument)->all;
    rd_kafka_topic_partition_list_t *topics = wb_kafka_topics_read(client->transport);
    rd_kafka_topic_partition_list_t *one = NULL;
    int result = WB_OK;
    for (int i = 0; i < topics->cnt && result == WB_OK; i++) {
        if (wb_kafka_topology_is_own(client->transport->endpoint, topics->elems[i].topic))
            continue;
        if (!(one = list_partitions(client, topics->elems[i].topic, failure)))
            result = failure->result;
        for (int at = 0; one && at < one->cnt; at++)
            (void)rd_kafka_topic_partition_list_add(all, one->elems[at].topic, one->elems[at].partition);
        if (one)
            rd_kafka_topic_partition_list_destroy(one);
    }
    rd_kafka_topic_partition_list_destroy(topics);
    if (result != WB_OK || !all->cnt)
        return result;
    rd_kafka_resp_err_t code = rd_kafka_committed(client->rk, all, until(client));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? WB_OK
                                              : wb_kafka_client_failure(client, code, "ask for committed offsets", failure);
}

/* Of the partitions of which nothing is committed yet: whoever has run since has come further. */
static int commit_missing(wb_kafka_client *client, const void *argument, wb_kafka_failure *failure)
{
    rd_kafka_topic_partition_list_t *theirs = ((const offsets *)argument)->all;
    rd_kafka_topic_partition_list_t *own = rd_kafka_topic_partition_list_copy(theirs);
    rd_kafka_resp_err_t code = rd_kafka_committed(client->rk, own, until(client));
    for (int i = own->cnt; i-- > 0 && code == RD_KAFKA_RESP_ERR_NO_ERROR;)
        if (own->elems[i].offset >= 0 || theirs->elems[i].offset < 0)
            (void)rd_kafka_topic_partition_list_del_by_idx(theirs, i);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && theirs->cnt)
        code = rd_kafka_commit(client->rk, theirs, 0);
    rd_kafka_topic_partition_list_destroy(own);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? WB_OK
               : wb_kafka_client_failure(client, code, "take over how far the topics of events were read", failure);
}

int wb_kafka_take_over(wb_transport *transport, const char *former, wb_error *error)
{
    const offsets found = { rd_kafka_topic_partition_list_new(16) };
    int result = work_as(transport, former, read_offsets, &found, error);
    if (result == WB_OK && found.all->cnt)
        result = work_as(transport, transport->endpoint->name, commit_missing, &found, error);
    rd_kafka_topic_partition_list_destroy(found.all);
    return result;
}

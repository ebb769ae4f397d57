/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle's eyes on Kafka. A consumer group's place in a topic is its committed offset;
 * what lies behind it is "in the queue" of that group.
 *
 *   sink-kafka drain GROUP TOPIC ...   print it, and commit the end
 *   sink-kafka peek GROUP TOPIC ...    print it; nothing changes
 *   sink-kafka skip GROUP TOPIC ...    commit the end
 *   sink-kafka rewind GROUP TOPIC ...  commit the beginning
 *   sink-kafka depth GROUP TOPIC ...   print "topic <TAB> offsets behind"
 *   sink-kafka members GROUP TOPIC     print the ids of the group's members
 *   sink-kafka create PARTITIONS TOPIC ...
 *   sink-kafka delete - TOPIC ...
 *
 * drain reads what is committed only, as every consumer does that cares; the others must
 * not wait for transactions that a killed process left open, and look at all. Offsets can
 * be committed for a group only when no process is in it.
 *
 * A message is printed as "topic <TAB> id <TAB> digest <TAB> body <TAB> reason": the digest
 * is over its key, headers in their order, and body; id and reason are the headers
 * NServiceBus.MessageId and NServiceBus.ExceptionInfo.Message. Control characters are
 * printed as spaces. Messages of a partition come in their order.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/cluster.h"
#include "tests/crash/digest.h"

/* ---- printing ------------------------------------------------------------- */

static uint64_t digest_message(const rd_kafka_message_t *message,
                               const rd_kafka_headers_t *headers)
{
    const char *name;
    const void *value;
    size_t size;
    uint64_t digest = digest_add(DIGEST_START, message->key, message->key_len);
    for (size_t i = 0;
         headers && !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
        digest = digest_add(digest, name, strlen(name));
        digest = digest_add(digest, value, size);
    }
    return digest_add(digest, message->payload, message->len);
}

static void print_text(const void *text, size_t size)
{
    const unsigned char *bytes = text;
    for (size_t i = 0; i < size; i++)
        putchar(bytes[i] < ' ' ? ' ' : bytes[i]);
}

static void print_header(const rd_kafka_headers_t *headers, const char *name)
{
    const void *value;
    size_t size;
    if (headers && !rd_kafka_header_get_last(headers, name, &value, &size))
        print_text(value, size);
}

static void print_message(const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers = NULL;
    (void)rd_kafka_message_headers(message, &headers);
    printf("%s\t", rd_kafka_topic_name(message->rkt));
    print_header(headers, "NServiceBus.MessageId");
    printf("\t%016" PRIx64 "\t", digest_message(message, headers));
    print_text(message->payload, message->len);
    putchar('\t');
    print_header(headers, "NServiceBus.ExceptionInfo.Message");
    putchar('\n');
}

/* ---- a group's place ------------------------------------------------------ */

/* Where the group is in each partition of the topic: where it starts if it was never there. */
static rd_kafka_topic_partition_list_t *places_of(rd_kafka_t *client, const char *topic)
{
    rd_kafka_topic_partition_list_t *places = cluster_partitions(client, topic);
    cluster_check(rd_kafka_committed(client, places, CLUSTER_PATIENCE_MS), "offsets in", topic);
    for (int i = 0; i < places->cnt; i++)
        if (places->elems[i].offset < 0)
            places->elems[i].offset = 0;
    return places;
}

static int64_t end_of(rd_kafka_t *client, const rd_kafka_topic_partition_t *place)
{
    int64_t low, high;
    cluster_check(rd_kafka_query_watermark_offsets(client, place->topic, place->partition, &low,
                                                   &high, CLUSTER_PATIENCE_MS),
                  "end of", place->topic);
    return high;
}

static void commit(rd_kafka_t *client, const rd_kafka_topic_partition_list_t *places)
{
    if (places->cnt > 0)
        cluster_check(rd_kafka_commit(client, places, 0), "commit of offsets in",
                      places->elems[0].topic);
}

static void forget_empty(rd_kafka_t *client, rd_kafka_topic_partition_list_t *places)
{
    for (int i = places->cnt - 1; i >= 0; i--)
        if (places->elems[i].offset >= end_of(client, &places->elems[i]))
            rd_kafka_topic_partition_list_del_by_idx(places, i);
}

/* The end of a partition as it is now is enough: what comes later is not looked at. */
static void finish(rd_kafka_t *client, rd_kafka_topic_partition_list_t *places,
                   const rd_kafka_message_t *end)
{
    const char *topic = rd_kafka_topic_name(end->rkt);
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, topic, end->partition);
    cluster_check(rd_kafka_pause_partitions(client, one), "pause of", topic);
    rd_kafka_topic_partition_list_destroy(one);
    rd_kafka_topic_partition_list_find(places, topic, end->partition)->offset = end->offset;
}

/* Print up to the end of each partition; the places are then there. */
static void print_all(rd_kafka_t *client, rd_kafka_topic_partition_list_t *places)
{
    int open = places->cnt;
    cluster_check(rd_kafka_assign(client, places), "assignment", "");
    while (open > 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, CLUSTER_PATIENCE_MS);
        if (!message)
            cluster_check(RD_KAFKA_RESP_ERR__TIMED_OUT, "reading", places->elems[0].topic);
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            finish(client, places, message);
            open--;
        } else if (!message->err) {
            print_message(message);
        } else if (message->err != RD_KAFKA_RESP_ERR__TRANSPORT &&
                   message->err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
            cluster_check(message->err, "reading", places->elems[0].topic);
        }
        rd_kafka_message_destroy(message);
    }
    cluster_check(rd_kafka_assign(client, NULL), "assignment", "");
}

/* ---- verbs ---------------------------------------------------------------- */

static void read_all(rd_kafka_t *client, const char *topic, int keep)
{
    rd_kafka_topic_partition_list_t *places = places_of(client, topic);
    forget_empty(client, places);
    if (places->cnt > 0)
        print_all(client, places);
    if (!keep)
        commit(client, places);
    rd_kafka_topic_partition_list_destroy(places);
}

static void drain(rd_kafka_t *client, const char *group, const char *topic)
{
    (void)group;
    read_all(client, topic, 0);
}

static void peek(rd_kafka_t *client, const char *group, const char *topic)
{
    (void)group;
    read_all(client, topic, 1);
}

static void skip(rd_kafka_t *client, const char *group, const char *topic)
{
    (void)group;
    rd_kafka_topic_partition_list_t *places = cluster_partitions(client, topic);
    for (int i = 0; i < places->cnt; i++)
        places->elems[i].offset = end_of(client, &places->elems[i]);
    commit(client, places);
    rd_kafka_topic_partition_list_destroy(places);
}

/* All that was ever there, and still is, comes again. */
static void rewind_group(rd_kafka_t *client, const char *group, const char *topic)
{
    (void)group;
    rd_kafka_topic_partition_list_t *places = cluster_partitions(client, topic);
    for (int i = 0; i < places->cnt; i++)
        places->elems[i].offset = 0;
    commit(client, places);
    rd_kafka_topic_partition_list_destroy(places);
}

static void depth(rd_kafka_t *client, const char *group, const char *topic)
{
    (void)group;
    rd_kafka_topic_partition_list_t *places = places_of(client, topic);
    int64_t behind = 0;
    for (int i = 0; i < places->cnt; i++)
        behind += end_of(client, &places->elems[i]) - places->elems[i].offset;
    printf("%s\t%" PRId64 "\n", topic, behind);
    rd_kafka_topic_partition_list_destroy(places);
}

static void members(rd_kafka_t *client, const char *group, const char *topic)
{
    const struct rd_kafka_group_list *groups;
    rd_kafka_resp_err_t error;
    (void)topic;
    for (int tries = 0; tries < 100; tries++) { /* a broker that has just started is not ready */
        error = rd_kafka_list_groups(client, group, &groups, CLUSTER_PATIENCE_MS);
        if (error != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS &&
            error != RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE &&
            error != RD_KAFKA_RESP_ERR_NOT_COORDINATOR)
            break;
        rd_kafka_poll(client, 100);
    }
    cluster_check(error, "group", group);
    for (int i = 0; i < groups->group_cnt; i++)
        for (int j = 0; j < groups->groups[i].member_cnt; j++)
            printf("%s\n", groups->groups[i].members[j].member_id);
    rd_kafka_group_list_destroy(groups);
}

/* A broker answers that a topic is made before it knows it itself. */
static void await_topic(rd_kafka_t *client, const char *topic)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    for (int known = 0, tries = 0; !known && tries < CLUSTER_PATIENCE_MS / 50; tries++) {
        cluster_check(rd_kafka_metadata(client, 0, handle, &metadata, CLUSTER_PATIENCE_MS), "metadata of", topic);
        known = !metadata->topics[0].err && metadata->topics[0].partition_cnt > 0;
        rd_kafka_metadata_destroy(metadata);
        if (!known)
            (void)usleep(50000);
    }
    rd_kafka_topic_destroy(handle);
}

static void create(rd_kafka_t *client, const char *partitions, const char *topic)
{
    char why[256];
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, atoi(partitions), -1, why, sizeof why);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client);
    size_t count;
    if (!wanted) {
        fprintf(stderr, "topic %s: %s\n", topic, why);
        exit(1);
    }
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, CLUSTER_PATIENCE_MS);
    const rd_kafka_CreateTopics_result_t *result = rd_kafka_event_CreateTopics_result(event);
    cluster_check(result ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT, "making",
                  topic);
    const rd_kafka_topic_result_t **topics = rd_kafka_CreateTopics_result_topics(result, &count);
    if (rd_kafka_topic_result_error(topics[0]) != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
        cluster_check(rd_kafka_topic_result_error(topics[0]), "making", topic);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_NewTopic_destroy(wanted);
    await_topic(client, topic);
}

/* A broker answers that a topic is deleted before it has forgotten it. */
static void await_absence(rd_kafka_t *client, const char *topic)
{
    const rd_kafka_metadata_t *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    for (int known = 1, tries = 0; known && tries < CLUSTER_PATIENCE_MS / 50; tries++) {
        cluster_check(rd_kafka_metadata(client, 0, handle, &metadata, CLUSTER_PATIENCE_MS), "metadata of", topic);
        known = metadata->topics[0].err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        rd_kafka_metadata_destroy(metadata);
        if (known)
            (void)usleep(50000);
    }
    rd_kafka_topic_destroy(handle);
}

static void delete_topic(rd_kafka_t *client, const char *group, const char *topic)
{
    rd_kafka_DeleteTopic_t *unwanted = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client);
    size_t count;
    (void)group;
    rd_kafka_DeleteTopics(client, &unwanted, 1, NULL, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, CLUSTER_PATIENCE_MS);
    const rd_kafka_DeleteTopics_result_t *result = rd_kafka_event_DeleteTopics_result(event);
    cluster_check(result ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT, "deleting", topic);
    const rd_kafka_topic_result_t **topics = rd_kafka_DeleteTopics_result_topics(result, &count);
    cluster_check(rd_kafka_topic_result_error(topics[0]), "deleting", topic);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_DeleteTopic_destroy(unwanted);
    await_absence(client, topic);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(rd_kafka_t *client, const char *group, const char *topic);
    } verbs[] = {
        { "drain", drain }, { "peek", peek },       { "skip", skip },
        { "depth", depth }, { "members", members }, { "create", create },
        { "rewind", rewind_group }, { "delete", delete_topic },
    };
    size_t verb = 0, count = sizeof verbs / sizeof verbs[0];

    while (verb < count && (argc < 4 || strcmp(argv[1], verbs[verb].name) != 0))
        verb++;
    if (verb == count) {
        fprintf(stderr, "usage: sink-kafka drain|peek|skip|rewind|depth|members GROUP TOPIC ...\n"
                        "       sink-kafka create PARTITIONS TOPIC ...\n"
                        "       sink-kafka delete - TOPIC ...\n");
        return 64;
    }
    const char *const properties[] = {
        "group.id", argv[2],
        "enable.auto.commit", "false",
        "enable.auto.offset.store", "false",
        "auto.offset.reset", "error",
        "enable.partition.eof", "true",
        "isolation.level", verbs[verb].run == drain ? "read_committed" : "read_uncommitted",
        "fetch.wait.max.ms", "10",
        NULL
    };
    rd_kafka_t *client = cluster_open(RD_KAFKA_CONSUMER, properties, NULL);
    rd_kafka_poll_set_consumer(client);
    for (int i = 3; i < argc; i++)
        verbs[verb].run(client, argv[2], argv[i]);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return 0;
}

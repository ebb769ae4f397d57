/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics for the benchmark, from the command line: declare, purge, load with messages, wait
 * until so many are there, say how fast they came.
 */
#include "config.h"

#include "tests/bench/kafka-link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW 1000
#define PARTITIONS_MAX 64

/* ---- topics --------------------------------------------------------------- */

static rd_kafka_event_t *await_answer(rd_kafka_queue_t *queue, const char *what)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, BENCH_KAFKA_TIMEOUT_MS);
    if (!event)
        bench_die("%s: no answer", what);
    bench_kafka_check(rd_kafka_event_error(event), what);
    return event;
}

static void check_created(rd_kafka_event_t *event)
{
    size_t count = 0;
    const rd_kafka_topic_result_t **topics =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    for (size_t i = 0; i < count; i++)
        if (rd_kafka_topic_result_error(topics[i]) != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
            bench_kafka_check(rd_kafka_topic_result_error(topics[i]),
                              rd_kafka_topic_result_name(topics[i]));
}

/* The broker's time, because the time at which messages became visible is measured. */
static void declare(rd_kafka_t *client, const char *topic, int partitions)
{
    char text[BENCH_KAFKA_ERROR_SIZE];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_NewTopic_t *new_topic =
        rd_kafka_NewTopic_new(topic, partitions, 1, text, sizeof text);
    if (!new_topic)
        bench_die("%s: %s", topic, text);
    rd_kafka_NewTopic_set_config(new_topic, "message.timestamp.type", "LogAppendTime");
    rd_kafka_CreateTopics(client, &new_topic, 1, NULL, queue);
    rd_kafka_event_t *event = await_answer(queue, topic);
    check_created(event);
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(new_topic);
    rd_kafka_queue_destroy(queue);
}

struct range {
    int64_t low, high;
};

static int count_partitions(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    bench_kafka_check(rd_kafka_metadata(client, 0, handle, &metadata, BENCH_KAFKA_TIMEOUT_MS),
                      topic);
    bench_kafka_check(metadata->topics[0].err, topic);
    int count = metadata->topics[0].partition_cnt;
    if (count > PARTITIONS_MAX)
        bench_die("%s has more than %d partitions", topic, PARTITIONS_MAX);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
    return count;
}

static struct range range_of(rd_kafka_t *client, const char *topic, int partition)
{
    struct range range;
    bench_kafka_check(rd_kafka_query_watermark_offsets(client, topic, partition, &range.low,
                                                       &range.high, BENCH_KAFKA_TIMEOUT_MS),
                      topic);
    return range;
}

static rd_kafka_topic_partition_list_t *all_partitions(rd_kafka_t *client, const char *topic)
{
    int count = count_partitions(client, topic);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    rd_kafka_topic_partition_list_add_range(list, topic, 0, count - 1);
    return list;
}

static void purge(rd_kafka_t *client, const char *topic)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_topic_partition_list_t *list = all_partitions(client, topic);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    rd_kafka_DeleteRecords_t *request = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(client, &request, 1, NULL, queue);
    rd_kafka_event_destroy(await_answer(queue, topic));
    rd_kafka_DeleteRecords_destroy(request);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
}

/* ---- messages ------------------------------------------------------------- */

static void put_message(struct bench_bytes *window, const char *queue, uint64_t salt,
                        uint64_t number, size_t body_size)
{
    static char body[BENCH_BODY_MAX];
    char id[BENCH_ID_SIZE + 1], conversation_id[BENCH_ID_SIZE + 1];
    bench_message_id(id, salt, number);
    bench_message_id(conversation_id, ~salt, number);
    bench_message_body(body, body_size, number);
    struct bench_envelope envelope = { .id = id,
                                       .conversation_id = conversation_id,
                                       .type = BENCH_INPUT_TYPE,
                                       .endpoint = "bench.loader" };
    bench_kafka_encode(window, queue, &envelope, body, body_size);
}

static void load(const char *queue, uint64_t count, size_t body_size)
{
    struct bench_producer producer;
    struct bench_bytes window = { 0 };
    uint64_t salt = bench_wall_ms();
    bench_producer_open(&producer, NULL);
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < WINDOW ? (size_t)(count - sent) : WINDOW;
        window.size = 0;
        for (size_t i = 0; i < now; i++)
            put_message(&window, queue, salt, sent + i, body_size);
        bench_producer_dispatch(&producer, window.data, window.size);
        sent += now;
    }
    bench_producer_close(&producer);
    free(window.data);
}

/* Offsets: what a transaction adds at its end is among them. */
static int64_t count_offsets(rd_kafka_t *client, const char *topic)
{
    int64_t total = 0;
    for (int i = count_partitions(client, topic); i-- > 0;) {
        struct range range = range_of(client, topic, i);
        total += range.high - range.low;
    }
    return total;
}

/* When each committed message of the topic was written, in milliseconds, one int64_t each. */
static void read_times(const char *topic, struct bench_bytes *times)
{
    rd_kafka_t *client = bench_kafka_new(
        RD_KAFKA_CONSUMER,
        bench_kafka_conf((const char *const[]){ "group.id", "bench.reader", "enable.auto.commit",
                                                "false", "enable.partition.eof", "true", NULL }));
    rd_kafka_topic_partition_list_t *list = all_partitions(client, topic);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_BEGINNING;
    bench_kafka_check(rd_kafka_assign(client, list), topic);
    times->size = 0;
    for (int ended = 0; ended < list->cnt;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, BENCH_KAFKA_TIMEOUT_MS);
        if (!message)
            bench_die("%s: nothing to read", topic);
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            ended++;
        } else {
            bench_kafka_check(message->err, topic);
            int64_t time = rd_kafka_message_timestamp(message, NULL);
            bench_bytes_put(times, &time, sizeof time);
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
}

static size_t count_messages(const char *topic)
{
    struct bench_bytes times = { 0 };
    read_times(topic, &times);
    free(times.data);
    return times.size / sizeof(int64_t);
}

static int compare_times(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* From the moment a tenth was written to the last one. Those that came together with the
 * first ones counted are not: they say nothing of the time after. */
static void report(const char *topic)
{
    struct bench_bytes bytes = { 0 };
    read_times(topic, &bytes);
    int64_t *times = (int64_t *)(void *)bytes.data;
    size_t count = bytes.size / sizeof *times, first = count / 10;
    if (count)
        qsort(times, count, sizeof *times, compare_times);
    while (first + 1 < count && times[first + 1] == times[first])
        first++;
    int64_t spent = count ? times[count - 1] - times[first] : 0;
    printf("%zu %.0f\n", count, spent ? 1000.0 * (double)(count - 1 - first) / (double)spent : 0);
    free(times);
}

/* ---- watching ------------------------------------------------------------- */

static void pause_20ms(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* Watermarks while little is there, because what watches must not weigh; then the messages,
 * because only they tell those of an open transaction. */
static int wait_messages(rd_kafka_t *client, const char *topic, uint64_t wanted, int64_t deadline)
{
    int64_t offsets = 0;
    size_t messages = 0;
    while (bench_now() < deadline) {
        offsets = count_offsets(client, topic);
        if (offsets >= (int64_t)wanted && (messages = count_messages(topic)) >= wanted)
            return 0;
        pause_20ms();
    }
    fprintf(stderr, "load-kafka: %s has %zu messages (%lld offsets) at the end of the wait\n",
            topic, messages, (long long)offsets);
    return 1;
}

static int wait_consumers(rd_kafka_t *client, const char *group, uint64_t wanted, int64_t deadline)
{
    const struct rd_kafka_group_list *list;
    while (bench_now() < deadline) {
        bench_kafka_check(rd_kafka_list_groups(client, group, &list, BENCH_KAFKA_TIMEOUT_MS),
                          group);
        int found = list->group_cnt == 1 && strcmp(list->groups[0].state, "Stable") == 0
                    && list->groups[0].member_cnt >= (int)wanted;
        rd_kafka_group_list_destroy(list);
        if (found)
            return 0;
        pause_20ms();
    }
    fprintf(stderr, "load-kafka: group %s does not get %llu consumers\n", group,
            (unsigned long long)wanted);
    return 1;
}

/* Offsets of the queue that its group has not committed. */
static int64_t count_left(const char *queue)
{
    rd_kafka_t *client = bench_kafka_new(
        RD_KAFKA_CONSUMER, bench_kafka_conf((const char *const[]){ "group.id", queue, NULL }));
    rd_kafka_topic_partition_list_t *list = all_partitions(client, queue);
    int64_t left = 0;
    bench_kafka_check(rd_kafka_committed(client, list, BENCH_KAFKA_TIMEOUT_MS), queue);
    for (int i = 0; i < list->cnt; i++) {
        struct range range = range_of(client, queue, i);
        int64_t committed = list->elems[i].offset;
        left += range.high - (committed > range.low ? committed : range.low);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return left;
}

/* ---- the command line ----------------------------------------------------- */

static int usage(int status)
{
    fputs("usage: load-kafka declare QUEUE [PARTITIONS]\n"
          "       load-kafka purge|count|left|report QUEUE\n"
          "       load-kafka load QUEUE MESSAGES [BODY-BYTES]\n"
          "       load-kafka wait-messages|wait-consumers QUEUE COUNT SECONDS\n"
          "left: what the queue's group has not committed; report: count, messages a second\n",
          status ? stderr : stdout);
    return status;
}

static int watch(rd_kafka_t *client, const char *verb, const char *queue, char **arguments)
{
    uint64_t wanted = bench_number("count", arguments[0], 0);
    int64_t deadline = bench_now() + (int64_t)bench_number("seconds", arguments[1], 1) * 1000000000;
    return strcmp(verb, "wait-messages") == 0 ? wait_messages(client, queue, wanted, deadline)
                                              : wait_consumers(client, queue, wanted, deadline);
}

static int control(const char *verb, const char *queue, char **arguments, int count)
{
    int status = 0;
    rd_kafka_t *client =
        bench_kafka_new(RD_KAFKA_PRODUCER, bench_kafka_conf((const char *const[]){ NULL }));
    if (strcmp(verb, "declare") == 0)
        declare(client, queue, count ? (int)bench_number("partitions", arguments[0], 1) : 1);
    else if (strcmp(verb, "purge") == 0)
        purge(client, queue);
    else if (strcmp(verb, "count") == 0)
        printf("%zu\n", count_messages(queue));
    else if (strcmp(verb, "left") == 0)
        printf("%lld\n", (long long)count_left(queue));
    else if (strcmp(verb, "report") == 0)
        report(queue);
    else if (strncmp(verb, "wait-", 5) == 0 && count == 2)
        status = watch(client, verb, queue, arguments);
    else
        status = usage(64);
    rd_kafka_destroy(client);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(0);
    if (argc < 3)
        return usage(64);
    if (strcmp(argv[1], "load") != 0)
        return control(argv[1], argv[2], argv + 3, argc - 3);
    if (argc < 4)
        return usage(64);
    size_t body_size = argc > 4 ? bench_number("body", argv[4], 64) : 1024;
    if (body_size > BENCH_BODY_MAX)
        bench_die("bodies of at most %u bytes", BENCH_BODY_MAX);
    load(argv[2], bench_number("messages", argv[3], 1), body_size);
    return 0;
}

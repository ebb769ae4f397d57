/* SPDX-License-Identifier: Apache-2.0
 *
 * What a peer that means harm can put into Kafka, and every byte of what comes out.
 *
 *   kafka-peer inject TOPIC                        records from stdin; see below
 *   kafka-peer read TOPIC [PARTITION=OFFSET ...]   print what is there from these offsets on
 *   kafka-peer config TOPIC NAME VALUE             change the topic's configuration
 *
 * A record on stdin, numbers in the machine's byte order: codec (byte: 0 none, 1 gzip, 2 snappy,
 * 3 lz4, 4 zstd, 5 in a transaction that commits, 6 in one that is aborted), partition (i32),
 * timestamp (i64, 0: now), key, value, count of headers (u32), then name and value of each. A
 * string is its size (i32, -1: null) and its bytes. Each record is there, or the exit code is 2
 * and stderr says why: the broker refused one.
 *
 * A record is printed as a line of fields with tabs between them: partition, offset, key, value,
 * then name and value of each header. A string is ":" and hexadecimal digits, or "-" for null.
 * What aborted transactions left is not printed.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/cluster.h"

#define MESSAGE_MAX "20000000"

enum { CODEC_COMMIT = 5, CODEC_ABORT = 6 };

/* ---- injecting -------------------------------------------------------------------- */

typedef struct {
    char *at;
    char *end;
} input;

typedef struct {
    const char *data;
    int32_t size; /* -1: null */
} text;

static input read_stdin(void)
{
    size_t size = 0, capacity = 1 << 20;
    char *data = malloc(capacity);
    size_t got;
    while (data && (got = fread(data + size, 1, capacity - size, stdin)) > 0) {
        size += got;
        if (size == capacity)
            data = realloc(data, capacity *= 2);
    }
    if (!data)
        exit(1);
    return (input){ data, data + size };
}

static void take(input *in, void *to, size_t size)
{
    if ((size_t)(in->end - in->at) < size) {
        fprintf(stderr, "a record ends too early\n");
        exit(1);
    }
    memcpy(to, in->at, size);
    in->at += size;
}

static text take_text(input *in)
{
    text taken = { NULL, -1 };
    take(in, &taken.size, sizeof taken.size);
    if (taken.size < 0)
        return taken;
    taken.data = in->at;
    if (in->end - in->at < taken.size)
        exit(1);
    in->at += taken.size;
    return taken;
}

static rd_kafka_headers_t *take_headers(input *in)
{
    uint32_t count;
    take(in, &count, sizeof count);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(count + 1);
    for (uint32_t i = 0; i < count; i++) {
        text name = take_text(in), value = take_text(in);
        cluster_check(rd_kafka_header_add(headers, name.data, name.size, value.data,
                                          value.size < 0 ? 0 : value.size),
                      "a header of", "a record");
    }
    return headers;
}

static int refused;
static int64_t delivered; /* the offset of the newest */

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    (void)client;
    (void)opaque;
    delivered = message->offset;
    if (message->err && message->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE) {
        fprintf(stderr, "refused: %s\n", rd_kafka_err2str(message->err));
        refused = 1;
    }
}

/* A client for each way of sending: the codec is its own property. */
static rd_kafka_t *client_for(uint8_t codec)
{
    static const char *const codecs[] = { "none", "gzip", "snappy", "lz4", "zstd", "none", "none" };
    static rd_kafka_t *clients[sizeof codecs / sizeof codecs[0]];
    char id[64];
    if (codec >= sizeof codecs / sizeof codecs[0])
        exit(1);
    if (clients[codec])
        return clients[codec];
    (void)snprintf(id, sizeof id, "kafka-peer-%d-%d", (int)getpid(), codec);
    const char *const properties[] = { "compression.type", codecs[codec],
                                       "message.max.bytes", MESSAGE_MAX,
                                       codec < CODEC_COMMIT ? NULL : "transactional.id", id,
                                       NULL };
    clients[codec] = cluster_open(RD_KAFKA_PRODUCER, properties, on_delivery);
    return clients[codec];
}

static void check_error(rd_kafka_error_t *error, const char *what)
{
    if (error)
        cluster_check(rd_kafka_error_code(error), what, "a transaction");
}

static void produce(rd_kafka_t *client, const char *topic, int32_t partition, int64_t timestamp,
                    text key, text value, rd_kafka_headers_t *headers)
{
    rd_kafka_resp_err_t error;
    /* Without the macros that check types: they are no ISO C. */
    do {
        error = rd_kafka_producev(client, RD_KAFKA_VTYPE_TOPIC, topic, RD_KAFKA_VTYPE_PARTITION,
                                  partition, RD_KAFKA_VTYPE_MSGFLAGS, RD_KAFKA_MSG_F_COPY,
                                  RD_KAFKA_VTYPE_TIMESTAMP, timestamp, RD_KAFKA_VTYPE_KEY, key.data,
                                  (size_t)(key.size < 0 ? 0 : key.size), RD_KAFKA_VTYPE_VALUE,
                                  value.data, (size_t)(value.size < 0 ? 0 : value.size),
                                  RD_KAFKA_VTYPE_HEADERS, headers, RD_KAFKA_VTYPE_END);
        rd_kafka_poll(client, error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
    } while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    if (error) {
        fprintf(stderr, "refused: %s\n", rd_kafka_err2str(error));
        rd_kafka_headers_destroy(headers);
        refused = 1;
    }
}

/* The coordinator answers before it has the marker of a transaction's end written. It takes an
 * offset as a message does: behind the last one it would look like one that nobody handles. Up to
 * then the end that others are shown is before the transaction. */
static void wait_for_marker(rd_kafka_t *client, const char *topic, int32_t partition)
{
    int64_t low, high = 0;
    for (int tries = 0; high < delivered + 2; tries++) {
        if (tries == CLUSTER_PATIENCE_MS)
            cluster_check(RD_KAFKA_RESP_ERR__TIMED_OUT, "the marker in", topic);
        (void)usleep(tries ? 1000 : 0);
        cluster_check(rd_kafka_query_watermark_offsets(client, topic, partition, &low, &high,
                                                       CLUSTER_PATIENCE_MS),
                      "end of", topic);
    }
}

static void inject_one(const char *topic, input *in, uint8_t codec)
{
    static int ready[CODEC_ABORT + 1];
    int32_t partition;
    int64_t timestamp;
    rd_kafka_t *client = client_for(codec);
    take(in, &partition, sizeof partition);
    take(in, &timestamp, sizeof timestamp);
    text key = take_text(in), value = take_text(in);
    if (codec >= CODEC_COMMIT) {
        if (!ready[codec]++)
            check_error(rd_kafka_init_transactions(client, CLUSTER_PATIENCE_MS), "preparing");
        check_error(rd_kafka_begin_transaction(client), "beginning");
    }
    produce(client, topic, partition, timestamp, key, value, take_headers(in));
    if (codec >= CODEC_COMMIT)
        cluster_check(rd_kafka_flush(client, CLUSTER_PATIENCE_MS), "flushing to", topic);
    if (codec == CODEC_COMMIT)
        check_error(rd_kafka_commit_transaction(client, CLUSTER_PATIENCE_MS), "committing");
    else if (codec == CODEC_ABORT)
        check_error(rd_kafka_abort_transaction(client, CLUSTER_PATIENCE_MS), "aborting");
    if (codec >= CODEC_COMMIT)
        wait_for_marker(client, topic, partition);
}

static int inject(const char *topic)
{
    input in = read_stdin();
    uint8_t before = 0, codec;
    while (in.at < in.end) {
        take(&in, &codec, sizeof codec);
        if (codec != before) /* one after the other, in the order of the input */
            cluster_check(rd_kafka_flush(client_for(before), CLUSTER_PATIENCE_MS), "flushing to",
                          topic);
        inject_one(topic, &in, codec);
        before = codec;
    }
    cluster_check(rd_kafka_flush(client_for(before), CLUSTER_PATIENCE_MS), "flushing to", topic);
    return refused ? 2 : 0;
}

/* ---- reading ---------------------------------------------------------------------- */

static void print_text(const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;
    fputs(bytes ? "\t:" : "\t-", stdout);
    for (size_t i = 0; bytes && i < size; i++) {
        putchar(digits[bytes[i] >> 4]);
        putchar(digits[bytes[i] & 15]);
    }
}

static void print_record(const rd_kafka_message_t *record)
{
    rd_kafka_headers_t *headers = NULL;
    const char *name;
    const void *value;
    size_t size;
    printf("%" PRId32 "\t%" PRId64, record->partition, record->offset);
    print_text(record->key, record->key_len);
    print_text(record->payload, record->len);
    (void)rd_kafka_message_headers(record, &headers);
    for (size_t i = 0; headers && !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
        print_text(name, strlen(name));
        print_text(value, size);
    }
    putchar('\n');
}

/* Where to begin; partitions that hold nothing from there on are left out. */
static rd_kafka_topic_partition_list_t *places_of(rd_kafka_t *client, const char *topic, int count,
                                                  char **wanted)
{
    rd_kafka_topic_partition_list_t *places = cluster_partitions(client, topic);
    for (int i = places->cnt - 1; i >= 0; i--) {
        int64_t low, high;
        rd_kafka_topic_partition_t *place = &places->elems[i];
        cluster_check(rd_kafka_query_watermark_offsets(client, topic, place->partition, &low, &high,
                                                       CLUSTER_PATIENCE_MS),
                      "end of", topic);
        place->offset = 0;
        for (int j = 0; j < count; j++)
            if (atoi(wanted[j]) == place->partition && strchr(wanted[j], '='))
                place->offset = strtoll(strchr(wanted[j], '=') + 1, NULL, 10);
        if (place->offset >= high)
            rd_kafka_topic_partition_list_del_by_idx(places, i);
    }
    return places;
}

static int read_topic(const char *topic, int count, char **wanted)
{
    const char *const properties[] = { "group.id", "kafka-peer", "enable.auto.commit", "false",
                                       "auto.offset.reset", "error", "enable.partition.eof", "true",
                                       "isolation.level", "read_committed", "fetch.wait.max.ms", "10",
                                       "fetch.message.max.bytes", MESSAGE_MAX, NULL };
    rd_kafka_t *client = cluster_open(RD_KAFKA_CONSUMER, properties, NULL);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *places = places_of(client, topic, count, wanted);
    cluster_check(rd_kafka_assign(client, places), "assignment of", topic);
    for (int open = places->cnt; open > 0;) {
        rd_kafka_message_t *record = rd_kafka_consumer_poll(client, CLUSTER_PATIENCE_MS);
        if (!record)
            cluster_check(RD_KAFKA_RESP_ERR__TIMED_OUT, "reading", topic);
        else if (record->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            open--;
        else if (!record->err)
            print_record(record);
        else
            cluster_check(record->err, "reading", topic);
        rd_kafka_message_destroy(record);
    }
    rd_kafka_topic_partition_list_destroy(places);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return 0;
}

/* ---- a topic's configuration ------------------------------------------------------- */

static int configure(const char *topic, const char *name, const char *value)
{
    rd_kafka_t *client = cluster_open(RD_KAFKA_PRODUCER, NULL, NULL);
    rd_kafka_ConfigResource_t *wanted =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_queue_t *answers = rd_kafka_queue_new(client);
    cluster_check(rd_kafka_ConfigResource_set_config(wanted, name, value), "setting", name);
    rd_kafka_AlterConfigs(client, &wanted, 1, NULL, answers);
    rd_kafka_event_t *event = rd_kafka_queue_poll(answers, CLUSTER_PATIENCE_MS);
    cluster_check(event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT, "configuring",
                  topic);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_ConfigResource_destroy(wanted);
    rd_kafka_destroy(client);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "inject") == 0)
        return inject(argv[2]);
    if (argc >= 3 && strcmp(argv[1], "read") == 0)
        return read_topic(argv[2], argc - 3, argv + 3);
    if (argc == 5 && strcmp(argv[1], "config") == 0)
        return configure(argv[2], argv[3], argv[4]);
    fprintf(stderr, "usage: kafka-peer inject TOPIC | read TOPIC [PARTITION=OFFSET ...] | "
                    "config TOPIC NAME VALUE\n");
    return 64;
}

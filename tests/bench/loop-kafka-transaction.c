/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-written ceiling for a Kafka transaction without a database: consume what is
 * there, produce as much, and commit both offsets and messages at once. Failure ends the
 * process: the next start fences it and aborts what it left open, and reads again from the
 * committed offsets.
 */
#include "config.h"

#include "tests/bench/kafka-link.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH_MAX 10000

struct settings {
    size_t batch_max;
    const char *input;
    const char *output;
};

struct worker {
    const struct settings *settings;
    rd_kafka_t *consumer;
    struct bench_producer producer;
    struct bench_kafka_position position;
    struct bench_bytes window;
    rd_kafka_message_t *messages[BATCH_MAX];
};

static const char *copy_text(char *buffer, size_t size, struct bench_text text)
{
    snprintf(buffer, size, "%.*s", (int)text.size, text.data);
    return buffer;
}

static void handle(struct worker *worker, const rd_kafka_message_t *message)
{
    char outgoing_id[BENCH_ID_SIZE + 1], related_to[256], conversation_id[256];
    struct bench_text id = bench_kafka_header(message, "NServiceBus.MessageId");
    if (id.size == 0)
        bench_die("a message without id");
    bench_caused_id(outgoing_id, id.data, id.size);
    struct bench_envelope envelope = {
        .id = outgoing_id,
        .conversation_id = copy_text(conversation_id, sizeof conversation_id,
                                     bench_kafka_header(message, "NServiceBus.ConversationId")),
        .related_to = copy_text(related_to, sizeof related_to, id),
        .type = BENCH_OUTPUT_TYPE,
        .endpoint = worker->settings->input,
    };
    bench_kafka_encode(&worker->window, worker->settings->output, &envelope, message->payload,
                       message->len);
}

/* Before the messages. The coordinator refuses both until the markers of the transaction
 * before are written; the library tries offsets again after retry.backoff.ms, and a first
 * message only after 20 ms. */
static void send_offsets(struct worker *worker)
{
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata(worker->consumer);
    bench_kafka_check_error(
        rd_kafka_send_offsets_to_transaction(worker->producer.client, worker->position.offsets,
                                             group, BENCH_KAFKA_TIMEOUT_MS),
        "offsets");
    rd_kafka_consumer_group_metadata_destroy(group);
}

/* The commit flushes. */
static void run_batch(struct worker *worker, size_t count)
{
    rd_kafka_t *client = worker->producer.client;
    worker->window.size = 0;
    worker->producer.confirmed = 0;
    bench_kafka_check_error(rd_kafka_begin_transaction(client), "begin");
    send_offsets(worker);
    for (size_t i = 0; i < count; i++)
        handle(worker, worker->messages[i]);
    bench_producer_send(&worker->producer, worker->window.data, worker->window.size);
    bench_kafka_check_error(rd_kafka_commit_transaction(client, -1), "commit");
    if (worker->producer.confirmed != count)
        bench_die("%zu messages sent, %zu confirmed", count, worker->producer.confirmed);
    for (size_t i = 0; i < count; i++)
        rd_kafka_message_destroy(worker->messages[i]);
}

static void parse(struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = { { "batch-max", required_argument, NULL, 'b' },
                                             { "in", required_argument, NULL, 'i' },
                                             { "out", required_argument, NULL, 'o' },
                                             { "help", no_argument, NULL, 'h' },
                                             { NULL, 0, NULL, 0 } };
    for (int choice; (choice = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (choice) {
        case 'b': settings->batch_max = bench_number("batch-max", optarg, 1); break;
        case 'i': settings->input = optarg; break;
        case 'o': settings->output = optarg; break;
        case 'h':
            puts("usage: loop-kafka-transaction [--batch-max N] [--in QUEUE] [--out QUEUE]\n"
                 "Runs until SIGTERM. Server: KAFKA_BROKERS");
            exit(0);
        default: exit(64);
        }
    }
    if (settings->batch_max > BATCH_MAX)
        bench_die("at most %d messages a transaction", BATCH_MAX);
}

int main(int argc, char **argv)
{
    static struct worker worker;
    struct settings settings = { .batch_max = 100, .input = "bench.loop", .output = "bench.sink" };
    parse(&settings, argc, argv);
    bench_stop_on_signal();
    worker.settings = &settings;
    bench_producer_open(&worker.producer, settings.input);
    worker.consumer = bench_kafka_consumer(settings.input);
    while (!bench_stopping) {
        size_t count = bench_kafka_receive(worker.consumer, worker.messages, settings.batch_max,
                                           50, &worker.position);
        if (count > 0)
            run_batch(&worker, count);
    }
    bench_kafka_consumer_close(worker.consumer);
    bench_producer_close(&worker.producer);
    rd_kafka_topic_partition_list_destroy(worker.position.offsets);
    free(worker.window.data);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * inject-kafka TOPIC: put the messages on stdin into a topic.
 *
 * A line is "id <TAB> type <TAB> body"; a body with "key=K " gives the message that key.
 * Exit code 0 says that the broker confirmed each of them. The producer is idempotent: what
 * a broken connection or a killed broker left open is sent again, and is there once.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/cluster.h"

#define LINE_MAX_SIZE 70000

static size_t unconfirmed;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    (void)client;
    (void)opaque;
    cluster_check(message->err, "delivery to", rd_kafka_topic_name(message->rkt));
    unconfirmed--;
}

static const char *key_of(const char *body, size_t *ret_size)
{
    const char *key = strstr(body, "key=");
    *ret_size = key ? strcspn(key + 4, " ") : 0;
    return key ? key + 4 : NULL;
}

static void send_line(rd_kafka_t *client, const char *topic, char *line)
{
    char *type = strchr(line, '\t');
    char *body = type ? strchr(type + 1, '\t') : NULL;
    if (!body) {
        fprintf(stderr, "not a message: %s\n", line);
        exit(1);
    }
    *type++ = '\0';
    *body++ = '\0';
    size_t key_size;
    const char *key = key_of(body, &key_size);
    rd_kafka_resp_err_t error;
    do {
        /* Without the macros that check types: they are no ISO C. */
        error = rd_kafka_producev(
            client, RD_KAFKA_VTYPE_TOPIC, topic, RD_KAFKA_VTYPE_MSGFLAGS, RD_KAFKA_MSG_F_COPY,
            RD_KAFKA_VTYPE_KEY, key, key_size,
            RD_KAFKA_VTYPE_HEADER, "NServiceBus.MessageId", line, (ssize_t)-1,
            RD_KAFKA_VTYPE_HEADER, "NServiceBus.EnclosedMessageTypes", type, (ssize_t)-1,
            RD_KAFKA_VTYPE_VALUE, body, strlen(body), RD_KAFKA_VTYPE_END);
        rd_kafka_poll(client, error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
    } while (error == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    cluster_check(error, "sending to", topic);
    unconfirmed++;
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_SIZE];
    static const char *const properties[] = {
        "enable.idempotence", "true", "linger.ms",          "5",
        "partitioner",        "murmur2_random", "message.timeout.ms", "60000",
        NULL
    };
    if (argc != 2) {
        fprintf(stderr, "usage: inject-kafka TOPIC <messages\n");
        return 64;
    }
    rd_kafka_t *client = cluster_open(RD_KAFKA_PRODUCER, properties, on_delivery);
    rd_kafka_topic_partition_list_destroy(cluster_partitions(client, argv[1])); /* is it there? */
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        send_line(client, argv[1], line);
    }
    cluster_check(rd_kafka_flush(client, CLUSTER_PATIENCE_MS + 5000), "flush to", argv[1]);
    rd_kafka_destroy(client);
    if (unconfirmed > 0)
        fprintf(stderr, "%zu messages were not confirmed\n", unconfirmed);
    return unconfirmed > 0;
}

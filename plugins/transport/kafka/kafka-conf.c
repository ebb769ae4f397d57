/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-conf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugins/transport/kafka/kafka-properties.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define REQUEST_TIMEOUT_LEAST (6 * SECOND)
#define REQUEST_TIMEOUT_MOST (60 * SECOND)
#define KIB 1024
#define MIB (1024 * KIB)
/* One answer comes on top of what the buffer holds. */
#define FETCH_MOST (16 * MIB)
/* librdkafka's own receive.message.max.bytes. A partition whose next message is larger stands
 * still (kafka-oversize.c), and a topic may take more than message_max. */
#define RECEIVE_USUAL 100000000

/* Its own max.poll.interval.ms. */
#define POLL_USUAL (300 * SECOND)

/* One configuration in the making; the first failure ends it. */
typedef struct maker {
    const wb_transport *transport;
    rd_kafka_conf_t *conf;
    wb_error *error;
    int result;
} maker;

static void set(maker *m, const char *name, const char *value)
{
    const wb_host *host = m->transport->host;
    char text[300];
    if (m->result != WB_OK || !value)
        return;
    /* The text may quote the value, which may be a secret: it is not passed on. */
    if (rd_kafka_conf_set(m->conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK)
        m->result = host->fail(host, m->error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                               "librdkafka does not accept the value of \"%s\"", name);
}

static void set_number(maker *m, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    set(m, name, text);
}

static void set_milliseconds(maker *m, const char *name, int64_t duration)
{
    set_number(m, name, duration / MILLISECOND);
}

int64_t wb_kafka_conf_number(const rd_kafka_conf_t *conf, const char *property, int64_t otherwise)
{
    char text[32];
    size_t size = sizeof text;
    if (rd_kafka_conf_get(conf, property, text, &size) != RD_KAFKA_CONF_OK)
        return otherwise;
    return strtoll(text, NULL, 10);
}

/* ---- for every client ------------------------------------------------------------ */

static void set_connection(maker *m)
{
    const wb_kafka_config *config = m->transport->config;
    int tls = wb_kafka_config_uses_tls(config);
    const char *mechanism = wb_kafka_config_mechanism(config);

    set(m, "bootstrap.servers", config->brokers);
    if (mechanism) {
        set(m, "security.protocol", tls ? "SASL_SSL" : "SASL_PLAINTEXT");
        set(m, "sasl.mechanism", mechanism);
        set(m, "sasl.username", config->user);
        set(m, "sasl.password", config->password);
    } else {
        set(m, "security.protocol", tls ? "SSL" : "PLAINTEXT");
    }
    if (tls) {
        set(m, "ssl.ca.location", config->tls_ca_file);
        set(m, "ssl.certificate.location", config->tls_cert_file);
        set(m, "ssl.key.location", config->tls_key_file);
        set(m, "ssl.key.password", config->tls_key_password);
    }
}

/* A request to a broker that is gone holds back all others to it until it times out, as
 * shipped after 60 s. No broker takes longer than 5 s for a commit (offsets.commit.timeout.ms);
 * one that waits longer for its replicas is asked again, which does no harm. */
static int64_t request_timeout(const maker *m)
{
    const wb_kafka_config *config = m->transport->config;
    int64_t timeout = config->connect_timeout;
    if (timeout < REQUEST_TIMEOUT_LEAST)
        timeout = REQUEST_TIMEOUT_LEAST;
    if (timeout > REQUEST_TIMEOUT_MOST)
        timeout = REQUEST_TIMEOUT_MOST;
    /* librdkafka refuses more. */
    return timeout < config->transaction_timeout ? timeout : config->transaction_timeout;
}

static int is_known(const maker *m, const char *name)
{
    size_t size = 0;
    return rd_kafka_conf_get(m->conf, name, NULL, &size) == RD_KAFKA_CONF_OK;
}

/* What the user may change. */
static void set_defaults(maker *m)
{
    char id[128];
    (void)snprintf(id, sizeof id, "waybill-%.100s", m->transport->endpoint->name);
    set(m, "client.id", id);
    /* A batch is written as soon as it is complete: nothing is gained by waiting for the
     * acknowledgement of the packet before. */
    set(m, "socket.nagle.disable", "true");
    set(m, "socket.keepalive.enable", "true");
    set_milliseconds(m, "socket.timeout.ms", request_timeout(m));
    /* A broker that restarts is found again soon, not after 10 s. */
    set(m, "reconnect.backoff.max.ms", "2000");
    set(m, "log.connection.close", "false");
    /* From 2.5 on a client offers the broker its metrics (KIP-714), and for that waits a second when it ends, asked
     * for or not: a second for each client that a start tries, and for each one of a stop. */
    if (is_known(m, "enable.metrics.push"))
        set(m, "enable.metrics.push", "false");
}

/* ---- roles ----------------------------------------------------------------------- */

size_t wb_kafka_conf_workers(const wb_transport *transport)
{
    return transport->endpoint->concurrency ? transport->endpoint->concurrency : 1;
}

/* Of the fetch buffer, librdkafka counts for each queue that it fills: that of a lane. */
int64_t wb_kafka_conf_share_of_buffer(const wb_transport *transport)
{
    return transport->config->fetch_buffer / (int64_t)wb_kafka_conf_workers(transport);
}

static void set_consumer_defaults(maker *m)
{
    const wb_transport *transport = m->transport;
    int64_t most = transport->endpoint->mode == WB_MODE_SENDS_ATOMIC ? wb_kafka_conf_share_of_buffer(transport)
                                                                    : transport->config->fetch_buffer;
    if (most > FETCH_MOST)
        most = FETCH_MOST;
    if (most < transport->message_max)
        most = transport->message_max;
    set_number(m, "fetch.max.bytes", most > MIB ? most : MIB);
    /* How soon it is seen that a full queue has room again; for older ones see kafka-hunger.c. */
    if (wb_kafka_conf_number(m->conf, "fetch.queue.backoff.ms", -1) >= 0)
        set(m, "fetch.queue.backoff.ms", "20");
    /* As shipped it is 3 s, whatever the session: a shorter one would time out again and again. */
    int64_t heartbeat = transport->config->session_timeout / 5 / MILLISECOND;
    set_number(m, "heartbeat.interval.ms", heartbeat < 3000 ? heartbeat : 3000);
    /* As shipped, who waits for messages finds partitions that were added after five minutes. */
    set(m, "topic.metadata.refresh.interval.ms", "60000");
    /* librdkafka takes no session that is longer. */
    if (transport->config->session_timeout > POLL_USUAL)
        set_milliseconds(m, "max.poll.interval.ms", transport->config->session_timeout);
}

static void promise_consumer(maker *m, const char *name)
{
    const wb_transport *transport = m->transport;
    const wb_kafka_config *config = transport->config;
    int64_t fetch_max = wb_kafka_conf_number(m->conf, "fetch.max.bytes", 50 * MIB);
    /* A response may exceed fetch.max.bytes by one message, however large. */
    int64_t receive_least = fetch_max + transport->message_max + 2 * WB_KAFKA_ERROR_ROOM;
    int64_t receive_max = wb_kafka_conf_number(m->conf, "receive.message.max.bytes", RECEIVE_USUAL);

    set(m, "group.id", transport->endpoint->name);
    set(m, "group.instance.id", name);
    /* By range, topics of few partitions would all go to the first workers. It stays second, for
     * groups with members that know nothing else yet. librdkafka's cooperative assignment
     * hangs and crashes before 2.6. */
    set(m, "partition.assignment.strategy", "roundrobin,range");
    set_milliseconds(m, "session.timeout.ms", config->session_timeout);
    set(m, "enable.auto.commit", "false");
    set(m, "enable.auto.offset.store", "false");
    /* What stands behind the last message and is none: kafka-receive.c. */
    set(m, "enable.partition.eof", "true");
    /* Never a silent jump: before 2.2 even a torn TLS connection could reset offsets. */
    set(m, "auto.offset.reset", "error");
    set(m, "isolation.level", "read_committed");
    set(m, "allow.auto.create.topics", "false");
    int64_t share = wb_kafka_conf_share_of_buffer(transport) / KIB;
    set_number(m, "queued.max.messages.kbytes", share > 1 ? share : 1);
    set_number(m, "receive.message.max.bytes",
               receive_max > receive_least ? receive_max : receive_least);
}

static void set_producer_defaults(maker *m)
{
    /* While it waits for confirmations (flush), librdkafka does not linger; until then it may
     * gather what a window holds into one request a partition. */
    set(m, "linger.ms", "5");
    /* A transaction begins with refusals until the markers of the one before are written, and
     * that takes milliseconds: with librdkafka's 100 ms most of its time would be waiting. */
    if (m->transport->endpoint->mode == WB_MODE_SENDS_ATOMIC)
        set(m, "retry.backoff.ms", "2");
}

static void promise_producer(maker *m, const char *name)
{
    const wb_transport *transport = m->transport;
    int64_t timeout = transport->config->transaction_timeout;

    set(m, "enable.idempotence", "true");
    set(m, "acks", "all");
    /* The same partition for a key as Java's clients: librdkafka's default is CRC32. */
    set(m, "partitioner", "murmur2_random");
    set_number(m, "message.max.bytes", transport->message_max + WB_KAFKA_ERROR_ROOM);
    if (name) {
        set(m, "transactional.id", name);
        set_milliseconds(m, "transaction.timeout.ms", timeout);
        /* Must be less than that of the transaction. */
        set_milliseconds(m, "message.timeout.ms", timeout - timeout / 10);
    } else {
        /* Our own deadline decides, and then what was not confirmed is called unknown. */
        set(m, "message.timeout.ms", "0");
    }
}

rd_kafka_conf_t *wb_kafka_conf_make(const wb_transport *transport, int role, const char *name,
                                    wb_error *error)
{
    maker m = { transport, rd_kafka_conf_new(), error, WB_OK };
    set_connection(&m);
    set_defaults(&m);
    if (role == WB_KAFKA_ROLE_CONSUMER)
        set_consumer_defaults(&m);
    else if (role == WB_KAFKA_ROLE_PRODUCER)
        set_producer_defaults(&m);
    if (m.result == WB_OK)
        m.result = wb_kafka_properties_apply(transport->host, transport->config, m.conf, error);
    if (role == WB_KAFKA_ROLE_CONSUMER)
        promise_consumer(&m, name);
    else if (role == WB_KAFKA_ROLE_PRODUCER)
        promise_producer(&m, name);
    /* Of the consumer by its description, but it keeps a producer's questions from making
     * the topic they are about. */
    set(&m, "allow.auto.create.topics", "false");
    if (m.result == WB_OK)
        return m.conf;
    rd_kafka_conf_destroy(m.conf);
    return NULL;
}

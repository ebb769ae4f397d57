/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-options.h"

#include <inttypes.h>
#include <string.h>

#include "plugins/common/certificate.h"
#include "plugins/common/loopback.h"
#include "plugins/common/servers.h"

#define SECONDS INT64_C(1000000000)
#define HOUR (3600 * SECONDS)
#define MIB (INT64_C(1) << 20)

static const char *const tls_choices[] = { "auto", "on", "off", NULL };
static const char *const sasl_choices[] = { "none", "plain", "scram-sha-256", "scram-sha-512",
                                            NULL };
static const char *const start_choices[] = { "earliest", "latest", NULL };

#define AT(field) offsetof(wb_kafka_config, field)

const wb_option wb_kafka_options[WB_KAFKA_OPTION_COUNT] = {
    { "brokers", WB_OPTION_STRING, WB_OPTION_REQUIRED, AT(brokers), NULL, 0, 0, NULL, "0.1",
      "brokers to ask first: \"host:port,host:port\"",
      "The others of the cluster are learned from them. The port may be left out: 9092." },
    { "tls", WB_OPTION_CHOICE, 0, AT(tls), "auto", 0, 0, tls_choices, "0.1",
      "encrypt connections",
      "auto: yes, unless every broker is on this machine (localhost, 127.x.x.x, ::1)." },
    { "tls_ca_file", WB_OPTION_PATH, 0, AT(tls_ca_file), "/etc/ssl/certs/ca-certificates.crt", 0,
      0, NULL, "0.1", "certificates of the authorities that are trusted (PEM)", NULL },
    { "tls_cert_file", WB_OPTION_PATH, 0, AT(tls_cert_file), NULL, 0, 0, NULL, "0.1",
      "certificate to show to the brokers (PEM)", NULL },
    { "tls_key_file", WB_OPTION_PATH, 0, AT(tls_key_file), NULL, 0, 0, NULL, "0.1",
      "private key of tls_cert_file (PEM)", NULL },
    { "tls_key_password", WB_OPTION_STRING, WB_OPTION_SECRET, AT(tls_key_password), NULL, 0, 0,
      NULL, "0.1", "password of tls_key_file, usually env:NAME or file:PATH", NULL },
    { "sasl_mechanism", WB_OPTION_CHOICE, 0, AT(sasl_mechanism), "none", 0, 0, sasl_choices, "0.1",
      "how to log in", "librdkafka before 2.6.1 (Debian 12) cannot log in by SCRAM to Kafka 4.0 and later. plain "
      "shows the password to the broker, so it should come with tls." },
    { "user", WB_OPTION_STRING, 0, AT(user), NULL, 0, 0, NULL, "0.1", "user name", NULL },
    { "password", WB_OPTION_STRING, WB_OPTION_SECRET, AT(password), NULL, 0, 0, NULL, "0.1",
      "password, usually env:NAME or file:PATH", NULL },
    { "allow_insecure", WB_OPTION_BOOLEAN, 0, AT(allow_insecure), "false", 0, 0, NULL, "0.1",
      "permit tls = \"off\" with a broker on another machine",
      "Passwords and messages then cross the network in clear text." },
    { "connect_timeout", WB_OPTION_DURATION, 0, AT(connect_timeout), "10s", SECONDS / 10, HOUR,
      NULL, "0.1", "longest wait for a connection, and for each answer of the cluster", NULL },
    { "confirm_timeout", WB_OPTION_DURATION, 0, AT(confirm_timeout), "30s", SECONDS / 10, HOUR,
      NULL, "0.1", "longest wait for the confirmations of a batch",
      "Messages not confirmed by then are sent again on a new connection, with the same ids." },
    { "session_timeout", WB_OPTION_DURATION, 0, AT(session_timeout), "10s", SECONDS, HOUR, NULL,
      "0.1", "how long a worker may be silent before others take its partitions",
      "Within the broker's group.min.session.timeout.ms (6 s) and group.max.session.timeout.ms. A "
      "process that is killed and started again in time gets its partitions back without a wait." },
    { "transaction_timeout", WB_OPTION_DURATION, 0, AT(transaction_timeout), "60s", SECONDS,
      HOUR / 4, NULL, "0.1", "the broker aborts a transaction that is open for longer",
      "With sends_atomic_with_receive. Handlers of a batch must be done by then." },
    { "partitions", WB_OPTION_INTEGER, 0, AT(partitions), "-1", -1, 100000, NULL, "0.1",
      "partitions of the endpoint's own topic, if waybill install makes it; -1: the broker's default",
      "Topics of events and the error topic, which belong to others, too, get the broker's default. No "
      "more workers than partitions receive at a time, over all processes of the endpoint. "
      "Adding partitions later breaks the order of messages with the same key; running processes find "
      "them within a minute. Where the number is given it must be changed here, too: a topic that has "
      "another one ends the start with 72." },
    { "replication", WB_OPTION_INTEGER, 0, AT(replication), "-1", -1, 1000, NULL, "0.1",
      "replicas of the topics that waybill install makes; -1: the broker's default", NULL },
    { "message_max", WB_OPTION_SIZE, 0, AT(message_max), "0", 0, 90 * MIB, NULL, "0.1",
      "largest message with its headers; 0 means body_max and 1 MiB",
      "waybill install gives the topics it makes this limit (max.message.bytes)." },
    { "fetch_buffer", WB_OPTION_SIZE, 0, AT(fetch_buffer), "12MiB", MIB / 4, 2047 * MIB, NULL,
      "0.1", "how many bytes of messages the endpoint's workers in a process hold ahead, together",
      "Each of them holds its part. Headers are not counted, nor what librdkafka needs for a message; and "
      "one answer comes on top: up to 16 MiB, or the largest message." },
    { "event_start", WB_OPTION_CHOICE, 0, AT(event_start), "earliest", 0, 0, start_choices, "0.1",
      "where a new subscriber begins to read an event's topic",
      "earliest: with everything the topic still holds. latest: with what is published from the first "
      "run on, when a worker gets the topic's partitions (waybill install commits nothing); "
      "that place is committed at once, and partitions that are added later are read from their "
      "beginning. Where the endpoint has read before, and in its own topic, this has no effect." },
    { "instance", WB_OPTION_STRING, 0, AT(instance), NULL, 0, 0, NULL, "0.1",
      "name of this process among those of the endpoint; by default host name and number",
      "It is part of group.instance.id and transactional.id: a process that is started again under "
      "the same name takes the place of the one before, and fences it. No two processes may have "
      "the same at a time. A process with a name that stops in order keeps its partitions for "
      "session_timeout: in a rolling restart nothing moves." },
    { "properties", WB_OPTION_MAP, 0, AT(properties), NULL, 0, 0, NULL, "0.1",
      "properties for librdkafka, as its CONFIGURATION.md names them: [ \"linger.ms=5\" ]",
      "Those that would break a promise of Waybill are refused with the reason, and so are those that "
      "librdkafka does not take, by themselves or beside the other options: waybill check says so, too." },
};

/* ---- where the brokers are ------------------------------------------------------- */

/* One of the list, without protocol and port. */
static int is_loopback(const char *broker, size_t size)
{
    const char *scheme = memmem(broker, size, "://", 3);
    if (scheme) {
        size -= (size_t)(scheme + 3 - broker);
        broker = scheme + 3;
    }
    const char *bracket = size && *broker == '[' ? memchr(broker, ']', size) : NULL;
    if (bracket)
        return wb_common_is_loopback(broker, (size_t)(bracket + 1 - broker));
    const char *colon = memrchr(broker, ':', size);
    if (colon)
        size = (size_t)(colon - broker);
    return wb_common_is_loopback(broker, size);
}

int wb_kafka_config_is_local(const wb_kafka_config *config)
{
    const char *at = config->brokers;
    while (*at) {
        at += strspn(at, ", ");
        size_t size = strcspn(at, ", ");
        if (size && !is_loopback(at, size))
            return 0;
        at += size;
    }
    return 1;
}

int wb_kafka_config_uses_tls(const wb_kafka_config *config)
{
    if (config->tls == WB_KAFKA_TLS_AUTO)
        return !wb_kafka_config_is_local(config);
    return config->tls == WB_KAFKA_TLS_ON;
}

int64_t wb_kafka_config_message_max(const wb_kafka_config *config, int64_t body_max)
{
    int64_t largest = 90 * MIB;
    if (config->message_max)
        return config->message_max;
    return body_max + MIB < largest ? body_max + MIB : largest;
}

const char *wb_kafka_config_mechanism(const wb_kafka_config *config)
{
    static const char *const names[] = { NULL, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512" };
    return names[config->sasl_mechanism];
}

/* Behind the name: librdkafka makes 0 of what is no number, and another port of one that is too large. An
 * address of version 6 has one behind a bracket only. */
static int has_port_or_none(const char *broker, size_t size)
{
    const char *colon = memrchr(broker, ':', size);
    if (!colon || (memchr(broker, ':', size) != colon && colon[-1] != ']'))
        return 1;
    const size_t digits = (size_t)(broker + size - colon - 1);
    int64_t port = 0;
    for (size_t i = 1; i <= digits && i <= 6; i++)
        port = colon[i] >= '0' && colon[i] <= '9' ? port * 10 + (colon[i] - '0') : INT32_MAX;
    return digits && port >= 1 && port <= 65535;
}

/* ---- combinations ---------------------------------------------------------------- */

#define REFUSE(...) host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, __VA_ARGS__)

static int check_brokers(const wb_host *host, const wb_kafka_config *config, wb_error *error)
{
    int result = wb_common_servers_check(host, "brokers", config->brokers, error);
    if (result != WB_OK)
        return result;
    if (config->brokers[strspn(config->brokers, ", ")] == '\0')
        return REFUSE("brokers names no broker: \"host:port,host:port\"");
    if (strstr(config->brokers, "://"))
        return REFUSE("brokers = \"%s\" names a protocol: leave it out and use tls and "
                      "sasl_mechanism",
                      config->brokers);
    for (const char *at = config->brokers; *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        if (!has_port_or_none(at, strcspn(at, ", ")))
            return REFUSE("brokers holds \"%.*s\": a port is a number from 1 to 65535", (int)strcspn(at, ", "), at);
    }
    if (!wb_kafka_config_is_local(config) && !wb_kafka_config_uses_tls(config) &&
        !config->allow_insecure)
        return REFUSE("tls = \"off\" with brokers \"%s\", which are not all on this machine: use "
                      "TLS, or set allow_insecure = true",
                      config->brokers);
    return WB_OK;
}

static int check_files(const wb_host *host, const wb_kafka_config *config, wb_error *error)
{
    if (!wb_kafka_config_uses_tls(config))
        return WB_OK;
    int result = wb_common_file_check(host, "tls_ca_file", config->tls_ca_file, error);
    if (result == WB_OK)
        result = wb_common_file_check(host, "tls_cert_file", config->tls_cert_file, error);
    return result == WB_OK ? wb_common_file_check(host, "tls_key_file", config->tls_key_file, error) : result;
}

static int check_login(const wb_host *host, const wb_kafka_config *config, wb_error *error)
{
    int result = wb_common_certificate_check(host, config->tls_cert_file, config->tls_key_file, error);
    if (result != WB_OK)
        return result;
    if (config->sasl_mechanism && (!config->user || !config->password))
        return REFUSE("sasl_mechanism is set without %s", config->user ? "password" : "user");
    if (!config->sasl_mechanism && (config->user || config->password))
        return REFUSE("%s is set without sasl_mechanism: it would not be used",
                      config->user ? "user" : "password");
    return WB_OK;
}

static int check_sizes(const wb_host *host, const wb_kafka_config *config, int64_t body_max,
                       wb_error *error)
{
    int64_t message_max = wb_kafka_config_message_max(config, body_max);
    if (body_max >= message_max)
        return REFUSE("message_max = %" PRId64 " bytes is not more than body_max = %" PRId64
                      ": headers need room, too",
                      message_max, body_max);
    if (config->partitions == 0 || config->replication == 0)
        return REFUSE("%s = 0: use a positive number, or -1 for the broker's default",
                      config->partitions == 0 ? "partitions" : "replication");
    return WB_OK;
}

/* Cut, two processes could have one name, and fence each other. */
static int check_instance(const wb_host *host, const wb_kafka_config *config, wb_error *error)
{
    const size_t size = config->instance ? strlen(config->instance) : 1;
    if (size >= 1 && size <= WB_KAFKA_INSTANCE_MAX)
        return WB_OK;
    return REFUSE("instance = \"%s\" is not a name of 1 to %d bytes", config->instance, WB_KAFKA_INSTANCE_MAX);
}

int wb_kafka_config_check(const wb_host *host, const wb_kafka_config *config, int64_t body_max,
                          wb_error *error)
{
    int result = check_brokers(host, config, error);
    if (result == WB_OK)
        result = check_login(host, config, error);
    if (result == WB_OK)
        result = check_files(host, config, error);
    if (result == WB_OK)
        result = check_sizes(host, config, body_max, error);
    return result == WB_OK ? check_instance(host, config, error) : result;
}

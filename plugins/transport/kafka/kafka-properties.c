/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-properties.h"

#include <stdlib.h>
#include <string.h>

/* A name ending in '*' stands for all that begin so, one beginning with it for all that end
 * so. librdkafka knows some properties by two names. */
static const struct {
    const char *name;
    const char *reason;
} refusals[] = {
    /* there is an option */
    { "bootstrap.servers", "set the option brokers" },
    { "metadata.broker.list", "set the option brokers" },
    { "security.protocol", "set the options tls and sasl_mechanism" },
    { "sasl.mechanism", "set the option sasl_mechanism" },
    { "sasl.mechanisms", "set the option sasl_mechanism" },
    { "sasl.username", "set the option user" },
    { "sasl.password", "set the option password, which keeps it secret" },
    { "ssl.ca.location", "set the option tls_ca_file" },
    { "ssl.certificate.location", "set the option tls_cert_file" },
    { "ssl.key.location", "set the option tls_key_file" },
    { "ssl.key.password", "set the option tls_key_password, which keeps it secret" },
    { "ssl.key.pem", "a private key does not belong here: set the option tls_key_file" },
    { "ssl.keystore.*", "set the options tls_cert_file and tls_key_file" },
    { "session.timeout.ms", "set the option session_timeout" },
    { "transaction.timeout.ms", "set the option transaction_timeout" },
    { "message.max.bytes", "set the option message_max" },
    { "queued.max.messages.kbytes", "set the option fetch_buffer" },
    { "group.instance.id", "set the option instance" },
    { "transactional.id", "set the option instance" },
    /* promises */
    { "group.id", "it is the endpoint's name, or its processes would not share their work" },
    { "group.protocol.type", "it decides how the processes of the endpoint share their work" },
    { "enable.auto.commit", "messages would be acknowledged before they are handled, and lost" },
    { "auto.commit.*", "messages would be acknowledged before they are handled, and lost" },
    { "enable.auto.offset.store",
      "messages would be acknowledged before they are handled, and lost" },
    { "offset.store.*", "the transport itself decides when a message is acknowledged" },
    { "auto.offset.reset", "messages could be skipped without anybody hearing of it" },
    { "isolation.level", "messages of aborted transactions would be handled" },
    { "partition.assignment.strategy",
      "it is round-robin: cooperative assignment hangs with librdkafka before 2.6, and others must "
      "agree" },
    { "queuing.strategy", "the order of messages would be lost" },
    { "enable.partition.eof", "the transport commits what is behind the last message" },
    { "enable.idempotence", "messages could be sent twice and out of order" },
    { "acks", "a confirmed message could be lost with one broker" },
    { "request.required.acks", "a confirmed message could be lost with one broker" },
    { "partitioner", "messages with the same key must go where every other client puts them" },
    { "partitioner_cb", "messages with the same key must go where every other client puts them" },
    { "message.timeout.ms", "set the option confirm_timeout" },
    { "delivery.timeout.ms", "set the option confirm_timeout" },
    { "delivery.report.only.error", "messages would not be confirmed" },
    { "topic.blacklist", "topics would be as if they were not there, the endpoint's own too" },
    { "group.protocol", "the processes of an endpoint share partitions by the classic protocol" },
    { "api.version.*", "a version without headers could be taken, and they would be lost" },
    { "broker.version.fallback", "a version without headers could be taken, and they would be lost" },
    { "allow.auto.create.topics", "a send to a topic that does not exist would not be noticed" },
    /* what runs or loads something */
    { "sasl.kerberos.*", "it runs a shell command" },
    { "sasl.oauthbearer.*", "this mechanism is not supported" },
    { "enable.sasl.oauthbearer.unsecure.jwt", "anybody could make such a token" },
    { "plugin.library.paths", "it loads a shared object" },
    { "ssl.providers", "it loads a shared object" },
    { "ssl.engine.*", "it loads a shared object" },
    { "internal.termination.signal", "signals belong to the program" },
    { "test.mock.*", "messages would go to a broker that is not real" },
    { "*_cb", "it is not a text" },
    { "opaque", "it is not a text" },
    { "*_opaque", "it is not a text" },
    { "interceptors", "it is not a text" },
    { "enabled_events", "it would take the transport's events away" },
    { "log.queue", "the transport's log lines go where the program's go" },
};

static int matches(const char *pattern, const char *name)
{
    size_t size = strlen(pattern);
    size_t name_size = strlen(name);
    if (*pattern == '*')
        return name_size >= size - 1 && strcmp(name + name_size - (size - 1), pattern + 1) == 0;
    if (pattern[size - 1] == '*')
        return strncmp(name, pattern, size - 1) == 0;
    return strcmp(name, pattern) == 0;
}

static int is_false(const char *value)
{
    return strcasecmp(value, "false") == 0 || strcasecmp(value, "f") == 0 ||
           strcmp(value, "0") == 0;
}

const char *wb_kafka_property_refusal(const char *name, const char *value, int is_local)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (matches(refusals[i].name, name))
            return refusals[i].reason;
    if (strncmp(name, "max.in.flight", 13) == 0 && strtol(value, NULL, 10) > 5)
        return "with more than 5 the order of messages would be lost";
    if (!is_local && strcmp(name, "enable.ssl.certificate.verification") == 0 && is_false(value))
        return "anybody could pass for a broker that is not on this machine";
    if (!is_local && strcmp(name, "ssl.endpoint.identification.algorithm") == 0 &&
        strcasecmp(value, "none") == 0)
        return "anybody with a certificate could pass for a broker that is not on this machine";
    return NULL;
}

int wb_kafka_properties_apply(const wb_host *host, const wb_kafka_config *config,
                              rd_kafka_conf_t *conf, wb_error *error)
{
    const wb_option_map *map = config->properties;
    int is_local = wb_kafka_config_is_local(config);
    char text[400];
    for (size_t i = 0; map && i < map->count; i++) {
        const char *reason = wb_kafka_property_refusal(map->names[i], map->values[i], is_local);
        if (reason)
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                              "properties: \"%s\" is refused: %s", map->names[i], reason);
        if (rd_kafka_conf_set(conf, map->names[i], map->values[i], text, sizeof text) !=
            RD_KAFKA_CONF_OK)
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "properties: \"%s\": %s",
                              map->names[i], text);
    }
    return WB_OK;
}

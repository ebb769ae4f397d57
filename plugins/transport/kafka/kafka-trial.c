/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-trial.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-client.h"
#include "plugins/transport/kafka/kafka-conf.h"

#define TEXT_SIZE 400

/* Nobody's name: it is never seen by a broker. */
static const char *name_for(const wb_transport *transport, int role)
{
    int has_name = role == WB_KAFKA_ROLE_CONSUMER ||
                   (role == WB_KAFKA_ROLE_PRODUCER && transport->endpoint->mode == WB_MODE_SENDS_ATOMIC);
    return has_name ? "trial" : NULL;
}

/* @return 0 with librdkafka's reason in `text`, or with `error` filled and no text when a single value
 *  is wrong already. */
static int is_accepted(const wb_transport *transport, int role, const wb_option_map *properties,
                       char text[TEXT_SIZE], wb_error *error)
{
    wb_kafka_config config = *transport->config;
    config.properties = properties;
    wb_transport view = { .host = transport->host,
                          .endpoint = transport->endpoint,
                          .config = &config,
                          .message_max = transport->message_max };
    *text = '\0';
    rd_kafka_conf_t *conf = wb_kafka_conf_make(&view, role, name_for(transport, role), error);
    return conf && wb_kafka_client_try(role == WB_KAFKA_ROLE_CONSUMER ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER,
                                       conf, text, TEXT_SIZE);
}

/* The first property without which it would be accepted; NULL: there is none. `error` is filled with
 * nothing of use. */
static const char *find_culprit(const wb_transport *transport, int role, wb_error *error)
{
    const wb_option_map *all = transport->config->properties;
    const char *culprit = NULL;
    char text[TEXT_SIZE];
    const char **rest = all && all->count ? calloc(all->count, 2 * sizeof *rest) : NULL;
    for (size_t i = 0; rest && i < all->count && !culprit; i++) {
        const char **values = rest + all->count;
        wb_option_map others = { 0, rest, values };
        for (size_t j = 0; j < all->count; j++) {
            rest[others.count] = all->names[j];
            values[others.count] = all->values[j];
            others.count += j != i;
        }
        if (is_accepted(transport, role, &others, text, error))
            culprit = all->names[i];
    }
    free(rest);
    return culprit;
}

/* Those whose files librdkafka reads by itself, and what it calls them. */
static const char *option_of(const char *text)
{
    static const struct {
        const char *property, *option;
    } options[] = { { "ssl.ca.location", "tls_ca_file" },
                    { "ssl.certificate.location", "tls_cert_file" },
                    { "ssl.key.location", "tls_key_file" } };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strncmp(text, options[i].property, strlen(options[i].property)) == 0)
            return options[i].option;
    return NULL;
}

static int try_role(const wb_transport *transport, int role, wb_error *error)
{
    const wb_host *host = transport->host;
    char text[TEXT_SIZE];
    if (is_accepted(transport, role, transport->config->properties, text, error))
        return WB_OK;
    if (!*text)
        return WB_FATAL;
    const char *culprit = option_of(text);
    if (culprit)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s cannot be used: %s", culprit, text);
    culprit = find_culprit(transport, role, error);
    if (culprit)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "properties: \"%s\" does not go with the rest: %s", culprit, text);
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "librdkafka refuses its configuration: %s",
                      text);
}

int wb_kafka_trial(const wb_transport *transport, wb_error *error)
{
    int result = WB_OK;
    for (int role = WB_KAFKA_ROLE_ADMIN; role <= WB_KAFKA_ROLE_PRODUCER && result == WB_OK; role++)
        result = try_role(transport, role, error);
    return result;
}

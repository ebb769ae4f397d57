/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-options.h"

#include <string.h>

#include "plugins/common/certificate.h"
#include "plugins/common/servers.h"
#include "plugins/transport/amqp/amqp-hosts.h"
#include "plugins/transport/amqp/amqp-names.h"

#define SECONDS INT64_C(1000000000)
#define HOUR (3600 * SECONDS)

static const char *const queue_types[] = { "quorum", "classic", NULL };
static const char *const error_queue_types[] = { "same", "quorum", "classic", NULL };
static const char *const topologies[] = { "conventional", "direct", NULL };
static const char *const tls_choices[] = { "auto", "on", "off", NULL };
static const char *const sasl_choices[] = { "plain", "external", NULL };

#define AT(field) offsetof(wb_amqp_config, field)

const wb_option wb_amqp_options[WB_AMQP_OPTION_COUNT] = {
    { "host", WB_OPTION_STRING, 0, AT(host), "localhost", 0, 0, NULL, "0.1",
      "name or address of the broker",
      "With TLS this must be a DNS name that stands in the broker's certificate: addresses in "
      "certificates are not recognised." },
    { "hosts", WB_OPTION_STRING, 0, AT(hosts), NULL, 0, 0, NULL, "0.1",
      "nodes of a cluster, instead of host: \"a,b,c:5673\"",
      "At most 16. They are tried in random order until one takes the connection, each for as long "
      "as connect_timeout. While one of them may come back the endpoint waits, whatever is wrong with "
      "the certificates of others." },
    { "port", WB_OPTION_INTEGER, 0, AT(port), "0", 0, 65535, NULL, "0.1",
      "TCP port of the broker; 0 means 5672, or 5671 with TLS", NULL },
    { "vhost", WB_OPTION_STRING, 0, AT(vhost), "/", 0, 0, NULL, "0.1", "virtual host", NULL },
    { "user", WB_OPTION_STRING, 0, AT(user), "guest", 0, 0, NULL, "0.1", "user name",
      "The pair guest, guest is refused unless the broker is on this machine." },
    { "password", WB_OPTION_STRING, WB_OPTION_SECRET, AT(password), "guest", 0, 0, NULL, "0.1",
      "password, usually env:NAME or file:PATH", NULL },
    { "heartbeat", WB_OPTION_DURATION, 0, AT(heartbeat), "10s", SECONDS, HOUR, NULL, "0.1",
      "a connection silent for twice as long is given up",
      "Whole seconds; the broker may ask for less. Heartbeats go on while a handler runs. A worker "
      "to which nothing came for six of them asks whether its queue is still the same." },
    { "queue_type", WB_OPTION_CHOICE, 0, AT(queue_type), "quorum", 0, 0, queue_types, "0.1",
      "type of the queues that are declared",
      "Quorum queues count deliveries across crashes, and are faster with batches. An existing "
      "queue keeps its type: delete it, or name its type here." },
    { "error_queue_type", WB_OPTION_CHOICE, 0, AT(error_queue_type), "same", 0, 0,
      error_queue_types, "0.1", "type of error queues and the audit queue; same means that of queue_type",
      "Often they are shared, and another endpoint has made them." },
    { "topology", WB_OPTION_CHOICE, 0, AT(topology), "conventional", 0, 0, topologies, "0.1",
      "how messages find their queues: as all endpoints of the system do it",
      "The two routing topologies of NServiceBus. conventional: an exchange for each queue and each "
      "type of event. direct: the default exchange, and amq.topic with the names of an event's types "
      "for a routing key; who handles an event that has bases names them in types, in the order of "
      "who publishes it. In either, queue:NAME as a destination, reply address or error queue "
      "is a queue that needs no exchange. A change leaves the old bindings where they are." },
    { "routing_keys", WB_OPTION_LIST, 0, AT(routing_keys), NULL, 0, 0, NULL, "0.1",
      "routing keys of events for which types do not give that of .NET: [ \"TYPE=KEY\" ]",
      "With topology = \"direct\", for who publishes and who handles the type. The key of .NET has, for a "
      "class, that of its base class, that of its first interface, and its name. So an event Shop.Placed of "
      "a base class Shop.Event that has an interface Shop.IEvent needs "
      "\"Shop.Placed=Shop-IEvent.Shop-Event.Shop-IEvent.Shop-Placed\"; and a generic one its name with assemblies." },
    { "dead_letter_exchange", WB_OPTION_STRING, 0, AT(dead_letter_exchange), NULL, 0, 0, NULL,
      "0.1", "exchange that gets what the endpoint's queue drops",
      "Messages that cannot be decoded, and what a limit on the queue drops. It must exist; the "
      "name of the error queue will do in the conventional topology. Without it, or a policy that sets one, such messages are gone." },
    { "connect_timeout", WB_OPTION_DURATION, 0, AT(connect_timeout), "10s", SECONDS / 10, HOUR,
      NULL, "0.1", "longest wait for a connection, and for each answer of the broker", NULL },
    { "confirm_timeout", WB_OPTION_DURATION, 0, AT(confirm_timeout), "30s", SECONDS / 10, HOUR,
      NULL, "0.1", "longest wait for the confirmations of a batch",
      "Messages not confirmed by then are sent again on a new connection, with the same ids." },
    { "tls", WB_OPTION_CHOICE, 0, AT(tls), "auto", 0, 0, tls_choices, "0.1",
      "encrypt the connection; auto does so unless the broker is on this machine",
      "TLS 1.2 or later. The broker's certificate and name are always verified." },
    { "tls_ca_file", WB_OPTION_PATH, 0, AT(tls_ca_file), "/etc/ssl/certs/ca-certificates.crt", 0,
      0, NULL, "0.1", "certificates of the authorities that are trusted", NULL },
    { "tls_cert_file", WB_OPTION_PATH, 0, AT(tls_cert_file), NULL, 0, 0, NULL, "0.1",
      "certificate to show to the broker", NULL },
    { "tls_key_file", WB_OPTION_PATH, 0, AT(tls_key_file), NULL, 0, 0, NULL, "0.1",
      "private key of tls_cert_file", NULL },
    { "sasl", WB_OPTION_CHOICE, 0, AT(sasl), "plain", 0, 0, sasl_choices, "0.1",
      "how to log in: with user and password, or external, by tls_cert_file",
      "With external the broker takes the user's name from the certificate: it needs the plugin "
      "rabbitmq_auth_mechanism_ssl, and EXTERNAL among its auth_mechanisms. The files of certificates "
      "are read again for every connection." },
    { "allow_insecure", WB_OPTION_BOOLEAN, 0, AT(allow_insecure), "false", 0, 0, NULL, "0.1",
      "permit tls = \"off\" with a broker on another machine",
      "Passwords and messages then cross the network in clear text." },
    { "management", WB_OPTION_STRING, WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET, AT(management),
      NULL, 0, 0, NULL, "0.1", "URL of RabbitMQ's management interface, to know policies",
      "For example http://localhost:15672. A quorum queue drops what is delivered more often "
      "than its limit, which a policy may set, as it may let messages expire or drop the oldest; "
      "only this interface tells policies. Name and "
      "password are those of the connection, unless the URL holds others; the user needs the tag "
      "management. Needs a plugin built with libcurl." },
};

int wb_amqp_config_uses_tls(const wb_amqp_config *config)
{
    wb_amqp_hosts hosts;
    if (config->tls == WB_AMQP_TLS_AUTO)
        return wb_amqp_hosts_find_remote(config, &hosts) != NULL;
    return config->tls == WB_AMQP_TLS_ON;
}

static int check_hosts(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    wb_amqp_hosts hosts;
    int result = wb_common_servers_check(host, "host", config->host, error);
    if (result == WB_OK)
        result = wb_common_servers_check(host, "hosts", config->hosts, error);
    if (result != WB_OK)
        return result;
    if (strchr(config->host, ','))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "host = \"%s\" is several names: write hosts = \"%s\"", config->host,
                          config->host);
    if (config->hosts && strcmp(config->host, "localhost") != 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "host and hosts are both set: keep one of them");
    const char *problem = wb_amqp_hosts_read(config, &hosts);
    if (problem)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s = \"%s\" cannot be used: %s",
                          config->hosts ? "hosts" : "host", config->hosts ? config->hosts : config->host, problem);
    return WB_OK;
}

/* The protocol has a byte for its length. */
static int check_vhost(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    const char *problem = config->vhost[0] ? wb_amqp_name_problem(config->vhost) : NULL;
    if (!problem)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "vhost = \"%s\" cannot name a virtual host: %s",
                      config->vhost, problem);
}

static int check_remote(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    wb_amqp_hosts hosts;
    const char *remote = wb_amqp_hosts_find_remote(config, &hosts);
    if (remote && !wb_amqp_config_uses_tls(config) && !config->allow_insecure)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "tls = \"off\" with broker \"%s\", which is not on this machine: use "
                          "TLS, or set allow_insecure = true",
                          remote);
    if (remote && config->sasl == WB_AMQP_SASL_PLAIN && strcmp(config->user, "guest") == 0 &&
        strcmp(config->password, "guest") == 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "user \"guest\" with its default password is refused for broker \"%s\", "
                          "which is not on this machine: set user and password",
                          remote);
    return WB_OK;
}

static int check_files(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    if (!wb_amqp_config_uses_tls(config))
        return WB_OK;
    int result = wb_common_file_check(host, "tls_ca_file", config->tls_ca_file, error);
    if (result == WB_OK)
        result = wb_common_file_check(host, "tls_cert_file", config->tls_cert_file, error);
    return result == WB_OK ? wb_common_file_check(host, "tls_key_file", config->tls_key_file, error) : result;
}

static int check_certificate(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    int result = wb_common_certificate_check(host, config->tls_cert_file, config->tls_key_file, error);
    if (result == WB_OK && config->sasl == WB_AMQP_SASL_EXTERNAL &&
        (!config->tls_cert_file || !wb_amqp_config_uses_tls(config)))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "sasl = \"external\" logs in by a certificate: set tls_cert_file and "
                          "tls_key_file, and tls = \"on\" with a broker on this machine");
    return result;
}

int wb_amqp_config_error_queue_type(const wb_amqp_config *config)
{
    if (config->error_queue_type == WB_AMQP_ERROR_QUEUE_SAME)
        return config->queue_type;
    return config->error_queue_type == WB_AMQP_ERROR_QUEUE_QUORUM ? WB_AMQP_QUEUE_QUORUM
                                                                  : WB_AMQP_QUEUE_CLASSIC;
}

int wb_amqp_config_check(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    int result = check_hosts(host, config, error);
    if (result == WB_OK)
        result = check_vhost(host, config, error);
    if (result == WB_OK)
        result = check_remote(host, config, error);
    if (result == WB_OK)
        result = check_certificate(host, config, error);
    return result == WB_OK ? check_files(host, config, error) : result;
}

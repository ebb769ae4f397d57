/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <waybill/sys/transport.h>

#include "plugins/transport/kafka/kafka-examine.h"
#include "plugins/transport/kafka/kafka-removal.h"
#include "plugins/transport/kafka/kafka-session.h"
#include "plugins/transport/kafka/kafka-trial.h"

/* Whether librdkafka accepts the configuration is known without a network. */
static int check(const wb_transport *transport, wb_error *error)
{
    int result = wb_kafka_config_check(transport->host, transport->config,
                                       transport->endpoint->body_max, error);
    if (result == WB_OK)
        result = wb_kafka_topology_check(transport, error);
    return result == WB_OK ? wb_kafka_trial(transport, error) : result;
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    wb_transport *transport = calloc(1, sizeof *transport);
    if (!transport)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    transport->host = host;
    transport->endpoint = endpoint;
    transport->config = config;
    transport->message_max = wb_kafka_config_message_max(config, endpoint->body_max);
    int result = check(transport, error);
    if (result != WB_OK) {
        free(transport);
        return result;
    }
    wb_kafka_identity_init(&transport->identity);
    wb_kafka_large_init(&transport->large);
    wb_kafka_absent_init(&transport->absent);
    wb_kafka_done_init(&transport->done);
    wb_kafka_share_init(&transport->consumers);
    wb_kafka_share_init(&transport->outlets);
    *ret_transport = transport;
    return WB_OK;
}

static void destroy(wb_transport *transport)
{
    wb_kafka_share_destroy(&transport->consumers);
    wb_kafka_share_destroy(&transport->outlets);
    wb_kafka_done_destroy(&transport->done);
    wb_kafka_absent_destroy(&transport->absent);
    wb_kafka_large_destroy(&transport->large);
    wb_kafka_identity_destroy(&transport->identity);
    free(transport);
}

/* Without limits(): Kafka counts no deliveries, and drops nothing for being delivered often. */
static const wb_transport_ops operations = {
    .struct_size = sizeof(wb_transport_ops),
    .create = create,
    .destroy = destroy,
    .install = wb_kafka_install,
    .verify = wb_kafka_verify,
    .open = wb_kafka_session_open,
    .close = wb_kafka_session_close,
    .set_prefetch = wb_kafka_session_set_prefetch,
    .receive = wb_kafka_session_receive,
    .acknowledge = wb_kafka_session_acknowledge,
    .give_back = wb_kafka_session_give_back,
    .send = wb_kafka_session_send,
    .begin = wb_kafka_session_begin,
    .commit = wb_kafka_session_commit,
    .rollback = wb_kafka_session_rollback,
    .interrupt = wb_kafka_session_interrupt,
    .stop_receiving = wb_kafka_session_stop_receiving,
    .position_end = wb_kafka_session_position_end,
    .depth = wb_kafka_depth,
    .uninstall = wb_kafka_uninstall,
    .take_over = wb_kafka_take_over,
    .examine = wb_kafka_examine,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof(wb_plugin),
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .abi_minor_needed = 0,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "kafka",
    .version = PACKAGE_VERSION,
    .summary = "Apache Kafka",
    .capabilities = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC |
                    WB_CAP_DELIVERY_COUNT | WB_CAP_ORDER_PER_KEY | WB_CAP_PUBLISH |
                    WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_POSITION | WB_CAP_UNINSTALL |
                    WB_CAP_QUEUES,
    .options = wb_kafka_options,
    .option_count = WB_KAFKA_OPTION_COUNT,
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(wb_kafka_config),
    .ops = &operations,
    .client_library = NULL,
};

WB_PLUGIN(kafka, descriptor)

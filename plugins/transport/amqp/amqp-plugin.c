/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <waybill/sys/transport.h>

#include "plugins/transport/amqp/amqp-connection.h"
#include "plugins/transport/amqp/amqp-examine.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-limits.h"
#include "plugins/transport/amqp/amqp-management.h"
#include "plugins/transport/amqp/amqp-removal.h"
#include "plugins/transport/amqp/amqp-route.h"
#include "plugins/transport/amqp/amqp-session.h"
#include "plugins/transport/amqp/amqp-topology.h"

/* Names the broker would answer by closing the connection, at every try. */
static int check_name(const wb_host *host, const char *what, const char *address, wb_error *error)
{
    const char *problem = address ? wb_amqp_name_problem(wb_amqp_address_queue(address)) : NULL;
    return problem ? host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s \"%s\" cannot name a queue: %s", what, address,
                                problem)
                   : WB_OK;
}

static int check_names(const wb_host *host, const wb_endpoint_info *endpoint, wb_error *error)
{
    for (size_t i = 1; i < wb_amqp_judge_count_own_queues(endpoint); i++)
        if (wb_amqp_address_queue(wb_amqp_judge_own_queue(endpoint, i)) != wb_amqp_judge_own_queue(endpoint, i))
            return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "queue \"%s\": write its name alone, \"%s\"",
                              wb_amqp_judge_own_queue(endpoint, i),
                              wb_amqp_address_queue(wb_amqp_judge_own_queue(endpoint, i)));
    if (wb_amqp_address_queue(endpoint->name) != endpoint->name)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "an endpoint cannot be named \"%s\": as a destination this is the queue "
                          "\"%s\"",
                          endpoint->name, wb_amqp_address_queue(endpoint->name));
    int result = check_name(host, "endpoint", endpoint->name, error);
    for (size_t i = 1; result == WB_OK && i < wb_amqp_judge_count_own_queues(endpoint); i++)
        result = check_name(host, "queue", wb_amqp_judge_own_queue(endpoint, i), error);
    if (result == WB_OK)
        result = check_name(host, "error queue", endpoint->error_queue, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = check_name(host, "audit queue", endpoint->audit_queue, error);
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = check_name(host, "error queue", endpoint->error_queues[i], error);
    return result;
}

static int check_dead_letters(const wb_host *host, const wb_amqp_config *config, wb_error *error)
{
    const char *name = config->dead_letter_exchange;
    const char *problem = name ? wb_amqp_name_problem(name) : NULL;
    if (!problem)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                      "dead_letter_exchange \"%s\" cannot name an exchange: %s", name, problem);
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    int result = wb_amqp_config_check(host, config, error);
    if (result == WB_OK)
        result = check_names(host, endpoint, error);
    if (result == WB_OK)
        result = check_dead_letters(host, config, error);
    if (result == WB_OK)
        result = wb_amqp_route_check(host, config, error);
    if (result == WB_OK && ((const wb_amqp_config *)config)->management)
        result = wb_amqp_management_check(host, config, error);
    if (result != WB_OK)
        return result;
    wb_transport *transport = calloc(1, sizeof *transport);
    if (!transport)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    transport->host = host;
    transport->endpoint = endpoint;
    transport->config = config;
    result = wb_amqp_topology_check(transport, error);
    if (result == WB_OK && wb_amqp_config_uses_tls(config))
        result = wb_amqp_connection_try_tls(transport, error);
    if (result != WB_OK) {
        free(transport);
        return result;
    }
    (void)pthread_mutex_init(&transport->unbound_lock, NULL);
    *ret_transport = transport;
    return WB_OK;
}

static void destroy(wb_transport *transport)
{
    wb_common_known_clear(&transport->unbound);
    (void)pthread_mutex_destroy(&transport->unbound_lock);
    free(transport);
}

static const wb_transport_ops operations = {
    .struct_size = sizeof(wb_transport_ops),
    .create = create,
    .destroy = destroy,
    .install = wb_amqp_install,
    .verify = wb_amqp_verify,
    .open = wb_amqp_session_open,
    .close = wb_amqp_session_close,
    .set_prefetch = wb_amqp_session_set_prefetch,
    .receive = wb_amqp_session_receive,
    .acknowledge = wb_amqp_session_acknowledge,
    .give_back = wb_amqp_session_give_back,
    .send = wb_amqp_session_send,
    .interrupt = wb_amqp_session_interrupt,
    .limits = wb_amqp_limits_of_queue,
    .stop_receiving = wb_amqp_session_stop_receiving,
    .release_prefetched = wb_amqp_session_release_prefetched,
    .depth = wb_amqp_depth,
    .uninstall = wb_amqp_uninstall,
    .unsubscribe = wb_amqp_unsubscribe,
    .take_over = wb_amqp_take_over,
    .examine = wb_amqp_examine,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof(wb_plugin),
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .abi_minor_needed = 0,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "amqp",
    .version = PACKAGE_VERSION,
    .summary = "RabbitMQ (AMQP 0-9-1)",
    .capabilities = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_DELIVERY_COUNT |
                    WB_CAP_PUBLISH | WB_CAP_DELAY | WB_CAP_EXPIRY | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE |
                    WB_CAP_QUEUES,
    .options = wb_amqp_options,
    .option_count = WB_AMQP_OPTION_COUNT,
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(wb_amqp_config),
    .ops = &operations,
    .client_library = NULL,
};

WB_PLUGIN(amqp, descriptor)

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-topology.h"

#include <string.h>

#include "plugins/transport/amqp/amqp-bases.h"
#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-former.h"
#include "plugins/transport/amqp/amqp-levels.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-removal.h"
#include "plugins/transport/amqp/amqp-route.h"

/* ---- single steps ---------------------------------------------------------------- */

int wb_amqp_exchange_declare(wb_amqp_connection *connection, const char *name, int passive)
{
    amqp_exchange_declare_t declare = { .exchange = amqp_cstring_bytes(name),
                                        .type = amqp_cstring_bytes("fanout"),
                                        .passive = passive,
                                        .durable = 1 };
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_EXCHANGE_DECLARE_METHOD, &declare,
                             AMQP_EXCHANGE_DECLARE_OK_METHOD);
    return result;
}

int wb_amqp_queue_bind(wb_amqp_connection *connection, const char *exchange, const char *key,
                       const char *queue)
{
    amqp_queue_bind_t bind = { .queue = amqp_cstring_bytes(queue),
                               .exchange = amqp_cstring_bytes(exchange),
                               .routing_key = amqp_cstring_bytes(key) };
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_QUEUE_BIND_METHOD, &bind,
                             AMQP_QUEUE_BIND_OK_METHOD);
    return result;
}

int wb_amqp_exchange_bind(wb_amqp_connection *connection, const char *source, const char *key,
                          const char *destination)
{
    amqp_exchange_bind_t bind = { .destination = amqp_cstring_bytes(destination),
                                  .source = amqp_cstring_bytes(source),
                                  .routing_key = amqp_cstring_bytes(key) };
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_EXCHANGE_BIND_METHOD, &bind,
                             AMQP_EXCHANGE_BIND_OK_METHOD);
    return result;
}

int wb_amqp_topology_is_direct(const wb_amqp_connection *connection)
{
    return connection->transport->config->topology == WB_AMQP_TOPOLOGY_DIRECT;
}

int wb_amqp_topology_outcome(const wb_amqp_connection *connection, int result, const char *what, const char *name,
                             wb_error *error)
{
    wb_amqp_failure why;
    if (result == WB_OK)
        return WB_OK;
    (void)wb_amqp_judge_outcome(connection, result, what, name, &why);
    return wb_amqp_failure_report(connection->transport->host, &why, error);
}

/* ---- install --------------------------------------------------------------------- */

/* Whether an address is an exchange, too, through which its queue is reached. */
static int has_exchange(const wb_amqp_connection *connection, const char *address)
{
    return !wb_amqp_topology_is_direct(connection) && wb_amqp_address_queue(address) == address;
}

int wb_amqp_topology_install_address(wb_amqp_connection *connection, const char *address, wb_error *error)
{
    const char *name = wb_amqp_address_queue(address);
    wb_amqp_failure why;
    int result = wb_amqp_judge_declare(connection, name, &why);
    if (result != WB_OK)
        return wb_amqp_failure_report(connection->transport->host, &why, error);
    if (!has_exchange(connection, address))
        return WB_OK;
    result = wb_amqp_topology_outcome(connection, wb_amqp_exchange_declare(connection, name, 0), "exchange", name, error);
    if (result == WB_OK)
        result = wb_amqp_topology_outcome(connection, wb_amqp_queue_bind(connection, name, "", name), "exchange", name, error);
    return result;
}

/* By the names of the type and of what it is derived from. @return NULL, or what is wrong with it. */
static const char *subscription_key(const wb_transport *transport, const char *type,
                                    char ret_key[WB_AMQP_NAME_SIZE + sizeof WB_AMQP_AND_DERIVED])
{
    const char *problem =
        wb_amqp_event_key(transport->config, type, wb_amqp_bases_configured(transport->endpoint, type), ret_key);
    if (!problem && strlen(ret_key) + sizeof WB_AMQP_AND_DERIVED > WB_AMQP_NAME_SIZE)
        problem = "with its bases it is longer than 253 bytes";
    return problem;
}

static const char *subscription_exchange(const char *type, char ret_name[WB_AMQP_NAME_SIZE])
{
    return wb_amqp_event_exchange(type, ret_name) ? wb_amqp_name_problem(ret_name) : "1 to 254 bytes";
}

static int check_type(const wb_transport *transport, const char *type, wb_error *error)
{
    const int is_direct = transport->config->topology == WB_AMQP_TOPOLOGY_DIRECT;
    const wb_host *host = transport->host;
    char name[WB_AMQP_NAME_SIZE + sizeof WB_AMQP_AND_DERIVED];
    const char *problem = is_direct ? subscription_key(transport, type, name) : subscription_exchange(type, name);
    if (!problem)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "type \"%s\" cannot name %s: %s", type,
                      is_direct ? "a routing key" : "an exchange", problem);
}

int wb_amqp_topology_check(const wb_transport *transport, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int result = WB_OK;
    for (size_t i = 0; i < endpoint->type_count && result == WB_OK; i++)
        result = check_type(transport, endpoint->types[i], error);
    return result;
}

int wb_amqp_subscription_name(const wb_amqp_connection *connection, const char *type,
                              char ret_name[WB_AMQP_SUBSCRIPTION_SIZE])
{
    const int is_direct = wb_amqp_topology_is_direct(connection);
    if (is_direct ? subscription_key(connection->transport, type, ret_name) != NULL
                  : subscription_exchange(type, ret_name) != NULL)
        return 0;
    if (is_direct)
        memcpy(ret_name + strlen(ret_name), WB_AMQP_AND_DERIVED, sizeof WB_AMQP_AND_DERIVED);
    return 1;
}

/* The queue itself. */
static int subscribe_direct(wb_amqp_connection *connection, const char *type, wb_error *error)
{
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    char key[WB_AMQP_SUBSCRIPTION_SIZE];
    if (!wb_amqp_subscription_name(connection, type, key))
        return check_type(connection->transport, type, error);
    int result = wb_amqp_queue_bind(connection, WB_AMQP_EVENTS, key, endpoint->name);
    return wb_amqp_topology_outcome(connection, result, "exchange", WB_AMQP_EVENTS, error);
}

static int subscribe_conventional(wb_amqp_connection *connection, const char *type, wb_error *error)
{
    const char *subscriber = connection->transport->endpoint->name;
    char name[WB_AMQP_SUBSCRIPTION_SIZE];
    if (!wb_amqp_subscription_name(connection, type, name))
        return check_type(connection->transport, type, error);
    int result =
        wb_amqp_topology_outcome(connection, wb_amqp_exchange_declare(connection, name, 0), "exchange", name, error);
    if (result == WB_OK)
        result = wb_amqp_topology_outcome(connection, wb_amqp_exchange_bind(connection, name, "", subscriber), "exchange",
                         name, error);
    return result;
}

/* In the direct topology nothing is made for what is published. */
static int bind_published(wb_amqp_connection *connection, wb_error *error)
{
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    int result = WB_OK;
    if (wb_amqp_topology_is_direct(connection) || !WB_HAS(endpoint, wb_endpoint_info, derived_count))
        return WB_OK;
    for (size_t i = 0; i < endpoint->derived_count && result == WB_OK; i++)
        result = wb_amqp_topology_outcome(connection, wb_amqp_bases_bind(NULL, connection, endpoint->derived[i]),
                         "exchange of", endpoint->derived[i], error);
    return result;
}

static int verify_dead_letters(wb_amqp_connection *connection, wb_error *error)
{
    const wb_host *host = connection->transport->host;
    const char *name = connection->transport->config->dead_letter_exchange;
    if (!name)
        return WB_OK;
    int result = wb_amqp_exchange_declare(connection, name, 1);
    if (result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_NOT_FOUND)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISSING, AMQP_NOT_FOUND,
                          "dead_letter_exchange \"%s\" does not exist: make it, or name the error "
                          "queue's",
                          name);
    return wb_amqp_topology_outcome(connection, result, "exchange", name, error);
}

/* ---- delays ---------------------------------------------------------------------- */

static int delays(const wb_transport *transport)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    return WB_HAS(endpoint, wb_endpoint_info, delays) && endpoint->delays == WB_DELAYS_BY_TRANSPORT;
}

/* It can do all else. */
static int can_be_delayed_to(const wb_transport *transport)
{
    const wb_host *host = transport->host;
    const char *name = transport->endpoint->name;
    int cause;
    const char *problem = wb_amqp_delay_problem(name, &cause);
    if (problem)
        host->log(host, WB_LOG_WARNING, "no message to this endpoint can be delayed by the broker",
                  (const wb_field[]){ { "queue", name }, { "reason", problem } }, 2);
    return !problem;
}

static int install_delays(wb_amqp_connection *connection, wb_error *error)
{
    const char *name = connection->transport->endpoint->name;
    wb_amqp_level_part part = { "queue", "" };
    if (!delays(connection->transport))
        return WB_OK;
    int result = wb_amqp_levels_declare(connection, &part);
    result = wb_amqp_topology_outcome(connection, result, part.what, part.name, error);
    if (result != WB_OK || !can_be_delayed_to(connection->transport))
        return result;
    return wb_amqp_topology_outcome(connection, wb_amqp_levels_bind(connection, name), "exchange", WB_AMQP_DELIVERY, error);
}

static int verify_delays(wb_amqp_connection *connection, wb_error *error)
{
    wb_amqp_level_part part = { "queue", "" };
    if (!delays(connection->transport))
        return WB_OK;
    (void)can_be_delayed_to(connection->transport);
    int result = wb_amqp_levels_exist(connection, &part);
    return wb_amqp_topology_outcome(connection, result, part.what, part.name, error);
}

/* ---- all of it ------------------------------------------------------------------- */

/* An older host has nobody to show it to. */
static void tell_progress(const wb_host *host, size_t done, size_t total)
{
    if (WB_HAS(host, wb_host, progress))
        host->progress(host, done, total);
}

static int install_all(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    (void)argument;
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    int result = WB_OK;
    for (size_t i = 0; i < wb_amqp_judge_count_own_queues(endpoint) && result == WB_OK; i++)
        result = wb_amqp_topology_install_address(connection, wb_amqp_judge_own_queue(endpoint, i), error);
    if (result == WB_OK && endpoint->error_queue)
        result = wb_amqp_topology_install_address(connection, endpoint->error_queue, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = wb_amqp_topology_install_address(connection, endpoint->audit_queue, error);
    for (size_t i = 0; i < wb_amqp_judge_count_error_queues(endpoint) && result == WB_OK; i++)
        result = wb_amqp_topology_install_address(connection, endpoint->error_queues[i], error);
    if (result == WB_OK)
        result = verify_dead_letters(connection, error);
    if (result == WB_OK)
        result = wb_amqp_former_end(connection, error);
    if (result == WB_OK)
        result = install_delays(connection, error);
    for (size_t i = 0; i < endpoint->type_count && result == WB_OK; i++) {
        result = wb_amqp_topology_is_direct(connection) ? subscribe_direct(connection, endpoint->types[i], error)
                                       : subscribe_conventional(connection, endpoint->types[i], error);
        tell_progress(connection->transport->host, i + 1, endpoint->type_count);
    }
    if (result == WB_OK)
        result = bind_published(connection, error);
    return result == WB_OK ? wb_amqp_removal_end(connection, error) : result;
}

/* ---- verify ---------------------------------------------------------------------- */

static int verify_queue(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    wb_amqp_failure why;
    int result =
        wb_amqp_topology_outcome(connection, wb_amqp_queue_exists(connection, name), "queue", name, error);
    if (result == WB_OK && (wb_amqp_judge_arguments(connection, name, &why) != WB_OK ||
                            wb_amqp_judge_policies(connection->transport, name, &why) != WB_OK))
        result = wb_amqp_failure_report(connection->transport->host, &why, error);
    return result;
}

static int verify_exchange(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    return wb_amqp_topology_outcome(connection, wb_amqp_exchange_declare(connection, name, 1), "exchange", name,
                   error);
}

static int verify_address(wb_amqp_connection *connection, const char *address, wb_error *error)
{
    int result = verify_queue(connection, wb_amqp_address_queue(address), error);
    if (result == WB_OK && has_exchange(connection, address))
        result = verify_exchange(connection, address, error);
    return result;
}

static int verify_own_queue(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    int result = verify_address(connection, name, error);
    return result == WB_OK
               ? wb_amqp_topology_outcome(connection, wb_amqp_queue_may_read(connection, name), "queue", name, error)
               : result;
}

static int verify_all(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    (void)argument;
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    char name[WB_AMQP_NAME_SIZE];
    int result = verify_own_queue(connection, endpoint->name, error);
    if (result == WB_OK)
        result = wb_amqp_removal_verify(connection, error);
    for (size_t i = 1; i < wb_amqp_judge_count_own_queues(endpoint) && result == WB_OK; i++)
        result = verify_own_queue(connection, wb_amqp_judge_own_queue(endpoint, i), error);
    if (result == WB_OK && endpoint->error_queue)
        result = verify_address(connection, endpoint->error_queue, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = verify_address(connection, endpoint->audit_queue, error);
    for (size_t i = 0; i < wb_amqp_judge_count_error_queues(endpoint) && result == WB_OK; i++)
        result = verify_address(connection, endpoint->error_queues[i], error);
    if (result == WB_OK)
        result = verify_dead_letters(connection, error);
    if (result == WB_OK)
        result = verify_delays(connection, error);
    for (size_t i = 0; i < endpoint->type_count && result == WB_OK && !wb_amqp_topology_is_direct(connection); i++) {
        if (wb_amqp_event_exchange(endpoint->types[i], name))
            result = verify_exchange(connection, name, error);
    }
    return result;
}

/* ---- on a connection of their own ------------------------------------------------ */

int wb_amqp_topology_work(wb_transport *transport, const char *role, wb_amqp_work_fn work, const void *argument,
                          wb_error *error)
{
    wb_amqp_connection connection = { 0 };
    wb_amqp_group group = { .members = { &connection }, .count = 1, .wake = -1 };
    int result = wb_amqp_connection_open(&connection, transport, &group, role);
    if (result != WB_OK)
        (void)wb_amqp_failure_report(transport->host, &connection.failure, error);
    else
        result = work(&connection, argument, error);
    wb_amqp_connection_close(&connection);
    return result;
}

int wb_amqp_install(wb_transport *transport, wb_error *error)
{
    return wb_amqp_topology_work(transport, "install", install_all, NULL, error);
}

int wb_amqp_verify(wb_transport *transport, wb_error *error)
{
    return wb_amqp_topology_work(transport, "verify", verify_all, NULL, error);
}

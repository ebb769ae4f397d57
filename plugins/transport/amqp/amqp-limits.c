/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-limits.h"

#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-management.h"
#include "plugins/transport/amqp/amqp-queue.h"

/* The host warns; only we know why, and an operator can do something about it. */
static uint32_t unknown(const wb_transport *transport, const char *name, const char *why)
{
    transport->host->log(transport->host, WB_LOG_INFO,
                         "why the delivery limit of the queue is not known",
                         (const wb_field[]){ { "queue", name },
                                             { "reason", why } },
                         2);
    return WB_LIMIT_UNKNOWN;
}

/* Only asks: a queue that is not there is not made. */
static int ask_broker(wb_amqp_connection *connection, const char *name, wb_amqp_found *ret_found)
{
    const wb_transport *transport = connection->transport;
    int result = wb_amqp_queue_exists(connection, name);
    if (result == WB_OK)
        result = wb_amqp_queue_declare(connection, name, transport->config->queue_type, 1,
                                       transport->config->dead_letter_exchange, ret_found);
    return result;
}

static uint32_t limit_by_amqp(const wb_transport *transport, wb_amqp_connection *connection, const char *name)
{
    wb_amqp_limit no_policy = { .is = WB_AMQP_LIMIT_NONE };
    wb_amqp_found found;
    int result = ask_broker(connection, name, &found);
    if (result == WB_REJECT)
        return unknown(transport, name, connection->channels[WB_AMQP_SCRATCH].text);
    if (result != WB_OK)
        return unknown(transport, name, connection->failure.text);
    int major = wb_amqp_broker_major(connection);
    uint32_t limit = wb_amqp_limit_resolve(major, found.limit, no_policy);
    if (limit != WB_LIMIT_UNKNOWN)
        return limit;
    return unknown(transport, name, found.limit.is == WB_AMQP_LIMIT_UNREADABLE
                                  ? "the broker's answer is cut off"
                                  : "the broker is no RabbitMQ that tells its version");
}

static uint32_t limit_by_management(const wb_transport *transport, const char *name, int major,
                                    const wb_amqp_managed_queue *queue)
{
    uint32_t limit = wb_amqp_limit_resolve(major, queue->argument, queue->policy);
    if (limit != WB_LIMIT_UNKNOWN)
        return limit;
    return unknown(transport, name, major ? "a policy's limit below 0 is not reliable"
                                    : "the broker is no RabbitMQ that tells its version");
}

static void log_unmanaged(const wb_transport *transport, const char *name, int level, const char *why)
{
    transport->host->log(transport->host, level,
                         "the management interface does not tell the queue's delivery limit: "
                         "policies are not known",
                         (const wb_field[]){ { "queue", name },
                                             { "reason", why } },
                         2);
}

/* With no limit at all the host warns: one warning is enough. */
static uint32_t limit_unmanaged(const wb_transport *transport, wb_amqp_connection *connection, const char *name,
                                const char *why)
{
    uint32_t limit = limit_by_amqp(transport, connection, name);
    log_unmanaged(transport, name, limit == WB_LIMIT_UNKNOWN ? WB_LOG_INFO : WB_LOG_WARNING, why);
    return limit;
}

static uint32_t limit_of(const wb_transport *transport, wb_amqp_connection *connection, const char *name)
{
    wb_amqp_managed_queue queue;
    if (!transport->config->management)
        return limit_by_amqp(transport, connection, name);
    if (!wb_amqp_management_ask(transport, name, &queue))
        return limit_unmanaged(transport, connection, name, queue.problem);
    return limit_by_management(transport, name, wb_amqp_broker_major(connection), &queue);
}

/* Of all the endpoint's queues. What is unknown is above all that is known, and no limit, 0, is above both. */
static uint32_t lowest_limit(const wb_transport *transport, wb_amqp_connection *connection)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    uint32_t lowest = 0;
    for (size_t i = 0; i < wb_amqp_judge_count_own_queues(endpoint); i++) {
        const uint32_t limit = limit_of(transport, connection, wb_amqp_judge_own_queue(endpoint, i));
        if (limit && (!lowest || limit < lowest))
            lowest = limit;
    }
    return lowest;
}

int wb_amqp_limits_of_queue(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    wb_amqp_connection connection = { 0 };
    wb_amqp_group group = { .members = { &connection }, .count = 1, .wake = -1 };
    (void)error;
    if (transport->config->queue_type == WB_AMQP_QUEUE_CLASSIC) {
        limits->delivery_limit = 0;
        return WB_OK;
    }
    if (wb_amqp_connection_open(&connection, transport, &group, "limits") == WB_OK)
        limits->delivery_limit = lowest_limit(transport, &connection);
    else
        limits->delivery_limit = unknown(transport, transport->endpoint->name, connection.failure.text);
    wb_amqp_connection_close(&connection);
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-removal.h"

#include <string.h>

#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-levels.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-topology.h"

typedef struct subscriptions {
    const char *const *types;
    size_t count;
} subscriptions;

/* ---- single steps ---------------------------------------------------------------- */

static int call(wb_amqp_connection *connection, amqp_method_number_t id, void *fields, amqp_method_number_t answer)
{
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    return result == WB_OK ? wb_amqp_rpc(connection, WB_AMQP_SCRATCH, id, fields, answer) : result;
}

static int was_missing(const wb_amqp_connection *connection, int result)
{
    return result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_NOT_FOUND;
}

/* What is not there any more is as it should be. */
static int report(const wb_amqp_connection *connection, int result, const char *what, const char *name, wb_error *error)
{
    return was_missing(connection, result) ? WB_OK : wb_amqp_topology_outcome(connection, result, what, name, error);
}

static int delete_exchange(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    amqp_exchange_delete_t delete = { .exchange = amqp_cstring_bytes(name) };
    return report(connection, call(connection, AMQP_EXCHANGE_DELETE_METHOD, &delete, AMQP_EXCHANGE_DELETE_OK_METHOD),
                  "exchange", name, error);
}

/* A quorum queue cannot be deleted on a condition. */
static int delete_queue(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    amqp_queue_delete_t delete = { .queue = amqp_cstring_bytes(name) };
    return report(connection, call(connection, AMQP_QUEUE_DELETE_METHOD, &delete, AMQP_QUEUE_DELETE_OK_METHOD), "queue",
                  name, error);
}

/* ---- depth ----------------------------------------------------------------------- */

/* *ret_is_there: the connection knows then what is in the queue. */
static int look_at(wb_amqp_connection *connection, const char *name, int *ret_is_there, wb_error *error)
{
    int result = wb_amqp_queue_exists(connection, name);
    *ret_is_there = result == WB_OK;
    return report(connection, result, "queue", name, error);
}

typedef struct looking {
    wb_transport_depth *depth;
} looking;

static int fill_depth(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    wb_transport_depth *depth = ((const looking *)argument)->depth;
    int is_there;
    int result = look_at(connection, connection->transport->endpoint->name, &is_there, error);
    if (result != WB_OK || !is_there)
        return result;
    depth->is_installed = 1;
    depth->messages = connection->declared_messages;
    depth->readers = connection->declared_consumers;
    return WB_OK;
}

int wb_amqp_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error)
{
    return wb_amqp_topology_work(transport, "depth", fill_depth, &(looking){ depth }, error);
}

/* ---- uninstall ------------------------------------------------------------------- */

static int refuse(const wb_amqp_connection *connection, wb_error *error)
{
    const wb_transport *transport = connection->transport;
    const uint32_t readers = connection->declared_consumers;
    if (readers)
        return transport->host->fail(transport->host, error, WB_REJECT, WB_CAUSE_OTHER, readers,
                                     "%u sessions receive from queue \"%s\"", (unsigned)readers, transport->endpoint->name);
    return transport->host->fail(transport->host, error, WB_REJECT, WB_CAUSE_OTHER, connection->declared_messages,
                                 "queue \"%s\" holds %u messages", transport->endpoint->name,
                                 (unsigned)connection->declared_messages);
}

static int is_in_use(const wb_amqp_connection *connection, uint32_t flags)
{
    return connection->declared_consumers || (connection->declared_messages && !(flags & WB_UNINSTALL_MESSAGES));
}

/* First the exchange: whoever sends from then on is told that there is no such destination, and what was sent is in
 * the queue when its messages are counted. Who writes to the queue by its name alone (direct) must have stopped. */
static int remove_own(wb_amqp_connection *connection, uint32_t flags, wb_error *error)
{
    const char *name = connection->transport->endpoint->name;
    int is_there;
    int result = look_at(connection, name, &is_there, error);
    if (result == WB_OK && is_there && is_in_use(connection, flags))
        return refuse(connection, error);
    if (result == WB_OK && !wb_amqp_topology_is_direct(connection))
        result = delete_exchange(connection, name, error);
    if (result == WB_OK)
        result = look_at(connection, name, &is_there, error);
    if (result != WB_OK || !is_there)
        return result;
    return is_in_use(connection, flags) ? refuse(connection, error) : delete_queue(connection, name, error);
}

static int remove_if_empty(wb_amqp_connection *connection, const char *address, wb_error *error)
{
    const char *name = wb_amqp_address_queue(address);
    int is_there;
    int result = look_at(connection, name, &is_there, error);
    if (result != WB_OK || (is_there && (connection->declared_messages || connection->declared_consumers)))
        return result;
    if (is_there)
        result = delete_queue(connection, name, error);
    if (result == WB_OK && name == address && !wb_amqp_topology_is_direct(connection))
        result = delete_exchange(connection, name, error);
    return result;
}

static int remove_error_queues(wb_amqp_connection *connection, wb_error *error)
{
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    int result = endpoint->error_queue ? remove_if_empty(connection, endpoint->error_queue, error) : WB_OK;
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = remove_if_empty(connection, endpoint->error_queues[i], error);
    return result;
}

static int remove_all(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    const uint32_t flags = *(const uint32_t *)argument;
    int result = remove_own(connection, flags, error);
    return result == WB_OK && (flags & WB_UNINSTALL_ERROR_QUEUES) ? remove_error_queues(connection, error) : result;
}

int wb_amqp_uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    return wb_amqp_topology_work(transport, "uninstall", remove_all, &flags, error);
}

/* ---- subscriptions --------------------------------------------------------------- */

static int unbind_queue(wb_amqp_connection *connection, const char *key)
{
    amqp_queue_unbind_t unbind = { .queue = amqp_cstring_bytes(connection->transport->endpoint->name),
                                   .exchange = amqp_cstring_bytes(WB_AMQP_EVENTS),
                                   .routing_key = amqp_cstring_bytes(key) };
    return call(connection, AMQP_QUEUE_UNBIND_METHOD, &unbind, AMQP_QUEUE_UNBIND_OK_METHOD);
}

static int unbind_exchange(wb_amqp_connection *connection, const char *source)
{
    amqp_exchange_unbind_t unbind = { .destination = amqp_cstring_bytes(connection->transport->endpoint->name),
                                      .source = amqp_cstring_bytes(source),
                                      .routing_key = amqp_cstring_bytes("") };
    return call(connection, AMQP_EXCHANGE_UNBIND_METHOD, &unbind, AMQP_EXCHANGE_UNBIND_OK_METHOD);
}

/* What can name nothing was never bound. */
static int unsubscribe(wb_amqp_connection *connection, const char *type, wb_error *error)
{
    char name[WB_AMQP_SUBSCRIPTION_SIZE];
    if (!wb_amqp_subscription_name(connection, type, name))
        return WB_OK;
    const int is_direct = wb_amqp_topology_is_direct(connection);
    return report(connection, is_direct ? unbind_queue(connection, name) : unbind_exchange(connection, name), "exchange",
                  is_direct ? WB_AMQP_EVENTS : name, error);
}

static int unsubscribe_all(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    const subscriptions *s = argument;
    int result = WB_OK;
    for (size_t i = 0; i < s->count && result == WB_OK; i++)
        result = unsubscribe(connection, s->types[i], error);
    return result;
}

int wb_amqp_unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error)
{
    return wb_amqp_topology_work(transport, "unsubscribe", unsubscribe_all, &(subscriptions){ types, count }, error);
}

/* ---- take over ------------------------------------------------------------------- */

/* What the broker still delays is for the former address; the binding stays for as long as the queue. */
static int take_delays_over(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    const wb_transport *transport = connection->transport;
    const char *name = transport->endpoint->name;
    char key[WB_AMQP_NAME_SIZE];
    int cause;
    if (wb_amqp_delay_problem(argument, &cause))
        return WB_OK; /* nothing could be delayed to it */
    wb_amqp_delay_pattern(argument, key);
    int result = wb_amqp_topology_is_direct(connection)
                     ? wb_amqp_queue_bind(connection, WB_AMQP_DELIVERY, key, name)
                     : wb_amqp_exchange_bind(connection, WB_AMQP_DELIVERY, key, name);
    return wb_amqp_topology_outcome(connection, result, "exchange", WB_AMQP_DELIVERY, error);
}

int wb_amqp_take_over(wb_transport *transport, const char *former, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    if (!WB_HAS(endpoint, wb_endpoint_info, delays) || endpoint->delays != WB_DELAYS_BY_TRANSPORT)
        return WB_OK;
    return wb_amqp_topology_work(transport, "take over", take_delays_over, former, error);
}

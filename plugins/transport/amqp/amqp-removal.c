/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-removal.h"

#include <stdio.h>

#include "plugins/transport/amqp/amqp-former.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-topology.h"
#include "plugins/transport/amqp/amqp-undo.h"

typedef struct subscriptions {
    const char *const *types;
    size_t count;
} subscriptions;

/* ---- single steps ---------------------------------------------------------------- */

/* One that install() would not take for the endpoint's is somebody else's. */
static int delete_exchange(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    const wb_host *host = connection->transport->host;
    int result = wb_amqp_exchange_declare(connection, name, 0);
    if (result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_PRECONDITION_FAILED) {
        host->log(host, WB_LOG_WARNING, "an exchange of the queue's name is not as endpoints have it: it stays",
                  (const wb_field[]){ { "exchange", name }, { "reason", connection->channels[WB_AMQP_SCRATCH].text } }, 2);
        return WB_OK;
    }
    if (result == WB_OK)
        result = wb_amqp_exchange_delete(connection, name);
    return wb_amqp_topology_outcome(connection, result, "exchange", name, error);
}

/* ---- depth ----------------------------------------------------------------------- */

/* *ret_is_there: the connection knows then what is in the queue. */
static int look_at(wb_amqp_connection *connection, const char *name, int *ret_is_there, wb_error *error)
{
    int result = wb_amqp_queue_exists(connection, name);
    *ret_is_there = result == WB_OK;
    return wb_amqp_was_missing(connection, result) ? WB_OK : wb_amqp_topology_outcome(connection, result, "queue", name, error);
}

typedef struct looking {
    wb_transport_depth *depth;
} looking;

/* Who receives from one of the endpoint's queues receives from all of them: counted once. */
static int fill_depth(wb_amqp_connection *connection, const void *argument, wb_error *error)
{
    wb_transport_depth *depth = ((const looking *)argument)->depth;
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    int result = WB_OK, are_there = 1;
    for (size_t i = 0; i < wb_amqp_judge_count_own_queues(endpoint) && result == WB_OK; i++) {
        int is_there;
        result = look_at(connection, wb_amqp_judge_own_queue(endpoint, i), &is_there, error);
        are_there &= is_there;
        if (result != WB_OK || !is_there)
            continue;
        depth->messages += connection->declared_messages;
        if (connection->declared_consumers > depth->readers)
            depth->readers = connection->declared_consumers;
    }
    depth->is_installed = result == WB_OK && are_there;
    return result;
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

/* The mark of a removal that has begun: an exchange that nothing is bound to. With it the rest can be told from what
 * others made under the endpoint's name, however often the removal dies. A name that leaves no room has none. */
static int name_mark(const char *name, char ret_mark[WB_AMQP_NAME_SIZE])
{
    int size = snprintf(ret_mark, WB_AMQP_NAME_SIZE, "waybill.removing.%s", name);
    return size > 0 && size < WB_AMQP_NAME_SIZE;
}

static int look_for_mark(wb_amqp_connection *connection, const char *name, int *ret_is_there, wb_error *error)
{
    char mark[WB_AMQP_NAME_SIZE];
    *ret_is_there = 0;
    if (!name_mark(name, mark))
        return WB_OK;
    return wb_amqp_topology_outcome(connection, wb_amqp_exchange_look(connection, mark, ret_is_there), "exchange", mark, error);
}

static int put_mark(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    char mark[WB_AMQP_NAME_SIZE];
    if (!name_mark(name, mark))
        return WB_OK;
    return wb_amqp_topology_outcome(connection, wb_amqp_exchange_declare(connection, mark, 0), "exchange", mark, error);
}

static int take_mark(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    char mark[WB_AMQP_NAME_SIZE];
    int is_there;
    int result = look_for_mark(connection, name, &is_there, error);
    if (result != WB_OK || !is_there || !name_mark(name, mark))
        return result;
    return wb_amqp_topology_outcome(connection, wb_amqp_exchange_delete(connection, mark), "exchange", mark, error);
}

/* Whoever sends from now on is told that there is no such destination, and what was sent is in the queue when its
 * messages are counted. Who writes to the queue by its name alone (direct) must have stopped. */
static int cut_off(wb_amqp_connection *connection, wb_error *error)
{
    const char *name = connection->transport->endpoint->name;
    int result = put_mark(connection, name, error);
    if (result == WB_OK)
        result = wb_amqp_former_prepare(connection, error);
    if (result == WB_OK && !wb_amqp_topology_is_direct(connection))
        result = wb_amqp_topology_outcome(connection, wb_amqp_queue_unbind(connection, name, "", name), "exchange", name, error);
    return result == WB_OK ? wb_amqp_former_release(connection, error) : result;
}

/* As it was, when it cannot be removed after all. */
static int restore(wb_amqp_connection *connection, wb_error *error)
{
    const char *name = connection->transport->endpoint->name;
    int result = WB_OK;
    if (!wb_amqp_topology_is_direct(connection))
        result = wb_amqp_queue_bind(connection, name, "", name);
    result = wb_amqp_was_missing(connection, result) ? WB_OK
                                                     : wb_amqp_topology_outcome(connection, result, "exchange", name, error);
    if (result == WB_OK)
        result = wb_amqp_former_restore(connection, error);
    return result == WB_OK ? take_mark(connection, name, error) : result;
}

/* Counted anew: what is asked for with the deletion is refused without a number. */
static int restore_and_refuse(wb_amqp_connection *connection, wb_error *error)
{
    int is_there;
    int result = look_at(connection, connection->transport->endpoint->name, &is_there, error);
    if (result == WB_OK)
        result = restore(connection, error);
    return result == WB_OK ? refuse(connection, error) : result;
}

/* The queue is gone: what led to it. */
static int complete(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    int result = WB_OK;
    if (!wb_amqp_topology_is_direct(connection))
        result = delete_exchange(connection, name, error);
    if (result == WB_OK && name == connection->transport->endpoint->name)
        result = wb_amqp_former_lead(connection, error);
    return result == WB_OK ? take_mark(connection, name, error) : result;
}

static int complete_begun(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    int has_begun;
    int result = look_for_mark(connection, name, &has_begun, error);
    return result == WB_OK && has_begun ? complete(connection, name, error) : result;
}

/* What a classic queue can be asked for with its deletion. */
static unsigned conditions_of(const wb_transport *transport, uint32_t flags)
{
    if (transport->config->queue_type != WB_AMQP_QUEUE_CLASSIC)
        return 0;
    return WB_AMQP_IF_UNUSED | (flags & WB_UNINSTALL_MESSAGES ? 0 : WB_AMQP_IF_EMPTY);
}

/* Nothing was touched, unless an earlier one died. */
static int refuse_at_once(wb_amqp_connection *connection, wb_error *error)
{
    int has_begun;
    int result = look_for_mark(connection, connection->transport->endpoint->name, &has_begun, error);
    if (result == WB_OK && has_begun)
        result = restore(connection, error);
    return result == WB_OK ? refuse(connection, error) : result;
}

static int remove_cut_off(wb_amqp_connection *connection, uint32_t flags, wb_error *error)
{
    const wb_transport *transport = connection->transport;
    const char *name = transport->endpoint->name;
    int is_there;
    int result = look_at(connection, name, &is_there, error);
    if (result != WB_OK)
        return result;
    if (is_there && is_in_use(connection, flags))
        return restore_and_refuse(connection, error);
    result = wb_amqp_queue_delete(connection, name, conditions_of(transport, flags));
    if (result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_PRECONDITION_FAILED)
        return restore_and_refuse(connection, error);
    result = wb_amqp_topology_outcome(connection, result, "queue", name, error);
    transport->host->crash_point("queue_deleted");
    return result == WB_OK ? complete(connection, name, error) : result;
}

/* The queue before its exchange, and with it the subscriptions: as long as the queue is there all can be made again. */
static int remove_own(wb_amqp_connection *connection, uint32_t flags, wb_error *error)
{
    const char *name = connection->transport->endpoint->name;
    int is_there;
    int result = look_at(connection, name, &is_there, error);
    if (result != WB_OK)
        return result;
    if (!is_there)
        return complete_begun(connection, name, error);
    if (is_in_use(connection, flags))
        return refuse_at_once(connection, error);
    result = cut_off(connection, error);
    connection->transport->host->crash_point("queue_cut_off");
    return result == WB_OK ? remove_cut_off(connection, flags, error) : result;
}

int wb_amqp_removal_end(wb_amqp_connection *connection, wb_error *error)
{
    return take_mark(connection, connection->transport->endpoint->name, error);
}

int wb_amqp_removal_verify(wb_amqp_connection *connection, wb_error *error)
{
    const wb_transport *transport = connection->transport;
    const char *name = transport->endpoint->name;
    int has_begun;
    int result = look_for_mark(connection, name, &has_begun, error);
    if (result != WB_OK || !has_begun)
        return result;
    return transport->host->fail(transport->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                                 "queue \"%s\" was being removed, and what leads to it is missing: complete that, or run "
                                 "waybill install", name);
}

/* ---- error queues ---------------------------------------------------------------- */

/* An exchange that is left behind, when this dies in between, is one of no use. */
static int remove_if_empty(wb_amqp_connection *connection, const char *address, wb_error *error)
{
    const char *name = wb_amqp_address_queue(address);
    int is_there;
    int result = look_at(connection, name, &is_there, error);
    if (result != WB_OK || !is_there || connection->declared_messages || connection->declared_consumers)
        return result;
    result = wb_amqp_topology_outcome(connection, wb_amqp_queue_delete(connection, name, 0), "queue", name, error);
    if (result == WB_OK && name == address && !wb_amqp_topology_is_direct(connection))
        result = delete_exchange(connection, name, error);
    return result;
}

/* What is delayed to endpoints that are gone comes there. */
static int remove_error_queue(wb_amqp_connection *connection, const char *address, wb_error *error)
{
    const wb_host *host = connection->transport->host;
    uint64_t delayed;
    int result = wb_amqp_former_count(connection, &delayed, error);
    if (result != WB_OK || !delayed)
        return result == WB_OK ? remove_if_empty(connection, address, error) : result;
    host->log(host, WB_LOG_WARNING, "the error queue stays: the broker delays messages, which may have to go there",
              (const wb_field[]){ { "error_queue", address } }, 1);
    return WB_OK;
}

static int remove_error_queues(wb_amqp_connection *connection, wb_error *error)
{
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    int result = endpoint->error_queue ? remove_error_queue(connection, endpoint->error_queue, error) : WB_OK;
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

/* What can name nothing was never bound. */
static int unsubscribe(wb_amqp_connection *connection, const char *type, wb_error *error)
{
    char name[WB_AMQP_SUBSCRIPTION_SIZE];
    if (!wb_amqp_subscription_name(connection, type, name))
        return WB_OK;
    const char *own = connection->transport->endpoint->name;
    const int is_direct = wb_amqp_topology_is_direct(connection);
    int result = is_direct ? wb_amqp_queue_unbind(connection, WB_AMQP_EVENTS, name, own)
                           : wb_amqp_exchange_unbind(connection, name, "", own);
    return wb_amqp_topology_outcome(connection, result, "exchange", is_direct ? WB_AMQP_EVENTS : name, error);
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

/* A rename that died while it removed the former queue does not come there again. */
static int take_all_over(wb_amqp_connection *connection, const void *former, wb_error *error)
{
    int is_there;
    int result = wb_amqp_former_take_over(connection, former, error);
    if (result == WB_OK)
        result = look_at(connection, former, &is_there, error);
    return result == WB_OK && !is_there ? complete_begun(connection, former, error) : result;
}

int wb_amqp_take_over(wb_transport *transport, const char *former, wb_error *error)
{
    return wb_amqp_topology_work(transport, "take over", take_all_over, former, error);
}

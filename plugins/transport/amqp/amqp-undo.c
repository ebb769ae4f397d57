/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-undo.h"

#include "plugins/transport/amqp/amqp-topology.h"

int wb_amqp_was_missing(const wb_amqp_connection *connection, int result)
{
    return result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_NOT_FOUND;
}

static int call(wb_amqp_connection *connection, amqp_method_number_t id, void *fields, amqp_method_number_t answer)
{
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, id, fields, answer);
    return wb_amqp_was_missing(connection, result) ? WB_OK : result;
}

int wb_amqp_exchange_look(wb_amqp_connection *connection, const char *name, int *ret_is_there)
{
    int result = wb_amqp_exchange_declare(connection, name, 1);
    *ret_is_there = result == WB_OK;
    return wb_amqp_was_missing(connection, result) ? WB_OK : result;
}

int wb_amqp_exchange_delete(wb_amqp_connection *connection, const char *name)
{
    amqp_exchange_delete_t delete = { .exchange = amqp_cstring_bytes(name) };
    return call(connection, AMQP_EXCHANGE_DELETE_METHOD, &delete, AMQP_EXCHANGE_DELETE_OK_METHOD);
}

int wb_amqp_exchange_unbind(wb_amqp_connection *connection, const char *source, const char *key, const char *destination)
{
    amqp_exchange_unbind_t unbind = { .destination = amqp_cstring_bytes(destination),
                                      .source = amqp_cstring_bytes(source),
                                      .routing_key = amqp_cstring_bytes(key) };
    return call(connection, AMQP_EXCHANGE_UNBIND_METHOD, &unbind, AMQP_EXCHANGE_UNBIND_OK_METHOD);
}

int wb_amqp_queue_unbind(wb_amqp_connection *connection, const char *exchange, const char *key, const char *queue)
{
    amqp_queue_unbind_t unbind = { .queue = amqp_cstring_bytes(queue),
                                   .exchange = amqp_cstring_bytes(exchange),
                                   .routing_key = amqp_cstring_bytes(key) };
    return call(connection, AMQP_QUEUE_UNBIND_METHOD, &unbind, AMQP_QUEUE_UNBIND_OK_METHOD);
}

int wb_amqp_queue_delete(wb_amqp_connection *connection, const char *name, unsigned conditions)
{
    amqp_queue_delete_t delete = { .queue = amqp_cstring_bytes(name),
                                   .if_unused = (conditions & WB_AMQP_IF_UNUSED) != 0,
                                   .if_empty = (conditions & WB_AMQP_IF_EMPTY) != 0 };
    return call(connection, AMQP_QUEUE_DELETE_METHOD, &delete, AMQP_QUEUE_DELETE_OK_METHOD);
}

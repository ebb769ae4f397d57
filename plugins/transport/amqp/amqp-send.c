/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-check.h"
#include "plugins/transport/amqp/amqp-probe.h"
#include "plugins/transport/amqp/amqp-properties.h"

static const wb_host *host_of(const wb_amqp_sender *sender)
{
    return sender->connection.transport->host;
}

static int is_open(const wb_amqp_sender *sender)
{
    return sender->connection.channels[WB_AMQP_MAIN].open;
}

static int is_late(const wb_amqp_sender *sender)
{
    return host_of(sender)->now() >= sender->connection.deadline;
}

static int failure_of(const wb_amqp_sender *sender)
{
    return sender->connection.failure.result;
}

/* ---- frames ---------------------------------------------------------------------- */

static void on_confirm(wb_amqp_sender *sender, uint64_t tag, int multiple, int nack)
{
    wb_amqp_probe_confirmed(sender, tag, multiple);
    wb_amqp_window_confirm(&sender->window, tag, multiple, nack);
    if (sender->confirms_seen++ == 0 && sender->window.outstanding)
        host_of(sender)->crash_point("half_confirmed");
}

static int copy_name(amqp_bytes_t from, char ret_name[WB_AMQP_NAME_SIZE])
{
    if (from.len >= WB_AMQP_NAME_SIZE)
        return 0;
    if (from.len)
        memcpy(ret_name, from.bytes, from.len);
    ret_name[from.len] = '\0';
    return 1;
}

static void on_return(wb_amqp_sender *sender, const amqp_basic_return_t *method)
{
    sender->in_return = copy_name(method->exchange, sender->returned.exchange) &&
                        copy_name(method->routing_key, sender->returned.key);
}

/* Its body follows and is of no interest. */
static void on_return_header(wb_amqp_sender *sender, const amqp_basic_properties_t *properties)
{
    amqp_bytes_t id = amqp_empty_bytes;
    if (properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG)
        id = properties->message_id;
    if (sender->in_return)
        wb_amqp_window_return(&sender->window, amqp_cstring_bytes(sender->returned.exchange),
                              amqp_cstring_bytes(sender->returned.key), id);
    sender->in_return = 0;
}

static void on_method(wb_amqp_sender *sender, const amqp_method_t *method)
{
    if (method->id == AMQP_BASIC_ACK_METHOD) {
        const amqp_basic_ack_t *ack = method->decoded;
        on_confirm(sender, ack->delivery_tag, ack->multiple, 0);
    } else if (method->id == AMQP_BASIC_NACK_METHOD) {
        const amqp_basic_nack_t *nack = method->decoded;
        on_confirm(sender, nack->delivery_tag, nack->multiple, 1);
    } else if (method->id == AMQP_BASIC_RETURN_METHOD) {
        on_return(sender, method->decoded);
    }
}

static void on_frame(void *owner, const amqp_frame_t *frame)
{
    wb_amqp_sender *sender = owner;
    if (frame->frame_type == AMQP_FRAME_METHOD)
        on_method(sender, &frame->payload.method);
    else if (frame->frame_type == AMQP_FRAME_HEADER)
        on_return_header(sender, frame->payload.properties.decoded);
}

/* ---- before publishing ----------------------------------------------------------- */

static int await_unblocked(wb_amqp_sender *sender)
{
    wb_amqp_connection *connection = &sender->connection;
    while (failure_of(sender) == WB_OK && connection->blocked) {
        if (is_late(sender))
            return WB_RETRY;
        wb_amqp_wait(connection->group, connection->deadline, 0);
    }
    return failure_of(sender);
}

static int prepare_channel(wb_amqp_sender *sender)
{
    wb_amqp_connection *connection = &sender->connection;
    amqp_confirm_select_t select = { 0 };
    if (is_open(sender))
        return WB_OK;
    sender->in_return = 0;
    sender->probe = 0;
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_MAIN);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_MAIN, AMQP_CONFIRM_SELECT_METHOD, &select,
                             AMQP_CONFIRM_SELECT_OK_METHOD);
    if (result == WB_REJECT)
        result = wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_OTHER,
                                         "the broker opens no channel to publish on: %s",
                                         connection->channels[WB_AMQP_MAIN].text);
    wb_amqp_window_new_channel(&sender->window);
    return result;
}

/* After a window that was not confirmed: whether the broker takes anything. What closes the
 * channel instead is an answer, too. */
static int ask_first(wb_amqp_sender *sender)
{
    wb_amqp_connection *connection = &sender->connection;
    atomic_int *unconfirmed = &connection->transport->unconfirmed;
    if (atomic_load(unconfirmed) && !sender->probe)
        wb_amqp_probe_put(sender);
    (void)wb_amqp_flush(connection);
    while (failure_of(sender) == WB_OK && is_open(sender) &&
           (connection->blocked || (sender->probe && atomic_load(unconfirmed)))) {
        if (is_late(sender))
            return connection->blocked ? WB_RETRY : WB_IN_DOUBT;
        wb_amqp_wait(connection->group, connection->deadline, 0);
    }
    if (failure_of(sender) == WB_OK)
        atomic_store(unconfirmed, 0);
    return failure_of(sender) == WB_OK ? prepare_channel(sender) : failure_of(sender);
}

/* ---- publishing ------------------------------------------------------------------ */

static int make_entries(wb_amqp_sender *sender, size_t count)
{
    if (count <= sender->entry_capacity)
        return 1;
    amqp_table_entry_t *entries = realloc(sender->entries, count * sizeof *entries);
    if (!entries)
        return 0;
    sender->entries = entries;
    sender->entry_capacity = count;
    return 1;
}

static void put_publish(wb_amqp_sender *sender, size_t slot, const wb_amqp_route *route)
{
    amqp_basic_publish_t publish = { .exchange = amqp_cstring_bytes(route->exchange),
                                     .routing_key = amqp_cstring_bytes(route->key),
                                     .mandatory = wb_amqp_window_is_mandatory(&sender->window, slot) };
    wb_amqp_put_method(&sender->connection, WB_AMQP_MAIN, AMQP_BASIC_PUBLISH_METHOD, &publish);
}

/* Everything that can be wrong with a message is found before its first frame. */
static int publish_with(wb_amqp_sender *sender, size_t slot, const wb_amqp_route *route,
                        wb_amqp_more *more)
{
    wb_amqp_connection *connection = &sender->connection;
    const wb_operation *operation = sender->window.slots[slot].operation;
    int64_t delay = sender->window.slots[slot].delay;
    amqp_basic_properties_t properties;
    char expiration[WB_AMQP_EXPIRATION_SIZE];
    size_t size = 0;
    if (!make_entries(sender, 3 * operation->header_count + 1))
        return wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_SERVER,
                                       "out of memory for the headers of a message");
    const char *problem =
        wb_amqp_properties_make(operation, more, sender->entries, &properties, &size);
    if (!problem && delay)
        wb_amqp_properties_delay(&properties, (int32_t)delay, &size);
    if (!problem)
        wb_amqp_properties_expire(&properties, operation, expiration);
    if (!problem && size + 32 > connection->frame_max)
        problem = "its headers do not fit the broker's largest frame";
    if (problem) {
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_TOO_LARGE, "%s", problem);
        return WB_OK;
    }
    wb_amqp_window_publish(&sender->window, slot);
    put_publish(sender, slot, route);
    int result = wb_amqp_put_content(connection, WB_AMQP_MAIN, &properties, size, operation->body,
                                     operation->body_size);
    /* With TLS nothing has read so far, and both sides could end up only writing. */
    if (connection->tls)
        wb_amqp_wait(connection->group, 0, 0);
    return result;
}

static int publish_one(wb_amqp_sender *sender, size_t slot)
{
    const wb_operation *operation = sender->window.slots[slot].operation;
    wb_amqp_route route;
    wb_amqp_more more;
    (void)wb_amqp_window_route(&sender->window, slot, &route); /* checked before */
    int is_keyed = operation->kind == WB_OPERATION_PUBLISH && route.key[0];
    if (is_keyed)
        wb_amqp_more_make(sender->connection.transport->endpoint, sender->window.config, operation, route.key,
                          &more);
    return publish_with(sender, slot, &route, is_keyed ? &more : NULL);
}

/* @return WB_OK, also when the channel is closed meanwhile; or the failure's result. */
static int publish_all(wb_amqp_sender *sender, int isolate)
{
    wb_amqp_window *window = &sender->window;
    size_t half = window->unsettled / 2;
    int result = WB_OK;
    wb_amqp_window_new_round(window);
    sender->confirms_seen = 0;
    for (size_t i = 0; i < window->count && result == WB_OK && is_open(sender); i++) {
        if (window->slots[i].settled)
            continue;
        result = publish_one(sender, i);
        if (isolate && window->published_count)
            break;
        if (result == WB_OK && half && window->published_count == half) {
            half = 0;
            result = wb_amqp_flush(&sender->connection);
            host_of(sender)->crash_point("half_dispatched");
        }
    }
    if (result == WB_OK)
        result = wb_amqp_flush(&sender->connection);
    host_of(sender)->crash_point("dispatch_unconfirmed");
    return result;
}

/* @return WB_OK; WB_REJECT: the channel is closed; WB_IN_DOUBT: the deadline passed;
 * or the failure's result. */
static int await_confirms(wb_amqp_sender *sender)
{
    wb_amqp_connection *connection = &sender->connection;
    int late = 0;
    connection->group->awaited = connection;
    while (!late && failure_of(sender) == WB_OK && is_open(sender) && sender->window.outstanding) {
        late = is_late(sender);
        if (!late)
            wb_amqp_wait(connection->group, connection->deadline, 0);
    }
    connection->group->awaited = NULL;
    if (failure_of(sender) != WB_OK)
        return failure_of(sender);
    if (late)
        return WB_IN_DOUBT;
    return is_open(sender) ? WB_OK : WB_REJECT;
}

/* ---- after the broker closed the channel ----------------------------------------- */

/* "message size 2000 is larger than configured max size 1000" */
static size_t reject_larger(wb_amqp_sender *sender, const char *text)
{
    wb_amqp_window *window = &sender->window;
    const char *at = strstr(text, "max size ");
    unsigned long long most = 0;
    size_t before = window->unsettled;
    if (!at || sscanf(at, "max size %llu", &most) != 1)
        return 0;
    for (size_t i = 0; i < window->count; i++) {
        if (!window->slots[i].settled && window->slots[i].operation->body_size > most)
            wb_amqp_window_settle(window, i, WB_REJECT, WB_CAUSE_TOO_LARGE,
                                  "its body of %zu bytes is over the broker's limit of %llu",
                                  window->slots[i].operation->body_size, most);
    }
    return before - window->unsettled;
}

static void reject_isolated(wb_amqp_sender *sender, const wb_amqp_channel *channel)
{
    wb_amqp_window *window = &sender->window;
    int cause = channel->code == AMQP_NOT_FOUND ? WB_CAUSE_UNROUTABLE
                                                : wb_amqp_map_cause(channel->code);
    if (channel->code == AMQP_PRECONDITION_FAILED)
        cause = strstr(channel->text, "size") ? WB_CAUSE_TOO_LARGE : WB_CAUSE_OTHER;
    if (window->published_count)
        wb_amqp_window_settle(window, window->published[0], WB_REJECT, cause,
                              "the broker says: %s", channel->text);
}

/* Find out whom the broker meant. @return 1 when only sending one by one will tell. */
static int blame(wb_amqp_sender *sender, int isolated, unsigned round)
{
    const wb_amqp_channel *channel = &sender->connection.channels[WB_AMQP_MAIN];
    if (isolated) {
        reject_isolated(sender, channel);
        return 1;
    }
    if (channel->code == AMQP_NOT_FOUND && round == 0) {
        wb_amqp_destinations_clear(&sender->destinations);
        return 0;
    }
    return !(channel->code == AMQP_PRECONDITION_FAILED && reject_larger(sender, channel->text));
}

/* ---- the window ------------------------------------------------------------------ */

static int send_round(wb_amqp_sender *sender, int isolate)
{
    int result = await_unblocked(sender);
    if (result == WB_OK)
        result = prepare_channel(sender);
    if (result == WB_OK && atomic_load(&sender->connection.transport->unconfirmed))
        result = ask_first(sender);
    if (result == WB_OK)
        result = wb_amqp_check_destinations(sender);
    if (result == WB_OK)
        result = publish_all(sender, isolate);
    if (result == WB_OK)
        result = await_confirms(sender);
    return result;
}

static int report_settled(wb_amqp_sender *sender, wb_error *error)
{
    const wb_amqp_window *window = &sender->window;
    const wb_host *host = host_of(sender);
    size_t refused = 0;
    for (size_t i = 0; i < window->count; i++)
        refused += window->slots[i].operation->result == WB_RETRY;
    if (refused < window->count && atomic_load(&sender->connection.transport->blocked_logged))
        wb_amqp_log_unblocked(sender->connection.transport);
    if (!refused)
        return WB_OK;
    return host->fail(host, error, WB_RETRY, WB_CAUSE_OTHER, 0,
                      "the broker took no responsibility for %zu of %zu messages (basic.nack)",
                      refused, window->count);
}

static int report_unsettled(wb_amqp_sender *sender, int result, wb_error *error)
{
    const wb_amqp_window *window = &sender->window;
    const wb_host *host = host_of(sender);
    for (size_t i = 0; i < window->count; i++) {
        if (!window->slots[i].settled)
            window->slots[i].operation->result = result == WB_RETRY ? WB_RETRY : WB_NOT_CONNECTED;
    }
    for (size_t at = window->lowest; at < window->published_count; at++) {
        if (window->published[at] != SIZE_MAX)
            window->slots[window->published[at]].operation->result = WB_IN_DOUBT;
    }
    if (failure_of(sender) != WB_OK && !sender->connection.stuck)
        return wb_amqp_failure_report(host, &sender->connection.failure, error);
    if (result == WB_RETRY)
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                          "the broker blocks publishing: %zu messages wait", window->unsettled);
    return host->fail(host, error, WB_IN_DOUBT, WB_CAUSE_SENDING, 0, "%zu of %zu messages were not confirmed in time%s",
                      window->unsettled, window->count,
                      sender->connection.blocked ? ": the broker blocks publishing" : "");
}

int wb_amqp_sender_send(wb_amqp_sender *sender, wb_operation *const *operations, size_t count,
                        wb_error *error)
{
    const wb_host *host = host_of(sender);
    int isolate = 0;
    int result = WB_OK;
    if (!wb_amqp_window_begin(&sender->window, operations, count))
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                          "out of memory for a window of %zu messages", count);
    for (unsigned round = 0; sender->window.unsettled && result == WB_OK; round++) {
        result = send_round(sender, isolate);
        if (result == WB_REJECT) {
            result = wb_amqp_check_server(sender, WB_AMQP_MAIN);
            if (result == WB_OK)
                isolate = blame(sender, isolate, round);
        }
    }
    wb_amqp_check_missing(sender);
    if (result == WB_OK)
        return report_settled(sender, error);
    return report_unsettled(sender, result, error);
}

/* ---- life ------------------------------------------------------------------------ */

static int connect(wb_amqp_sender *sender, wb_transport *transport, wb_amqp_group *group)
{
    sender->connection.on_frame = on_frame;
    sender->connection.owner = sender;
    sender->window.config = transport->config;
    return wb_amqp_connection_open(&sender->connection, transport, group, "send");
}

int wb_amqp_sender_open(wb_amqp_sender *sender, wb_transport *transport, wb_amqp_group *group)
{
    if (connect(sender, transport, group) == WB_OK)
        (void)prepare_channel(sender);
    return failure_of(sender);
}

int wb_amqp_sender_reconnect(wb_amqp_sender *sender, wb_transport *transport, wb_amqp_group *group,
                             int64_t deadline)
{
    sender->connection.deadline = deadline;
    int result = connect(sender, transport, group);
    sender->connection.renews = 0;
    return result;
}

void wb_amqp_sender_drop(wb_amqp_sender *sender)
{
    /* one that has failed says no goodbye */
    (void)wb_amqp_connection_fail(&sender->connection, WB_NOT_CONNECTED, WB_CAUSE_SENDING, "%s", "");
    wb_amqp_connection_close(&sender->connection);
}

void wb_amqp_sender_close(wb_amqp_sender *sender)
{
    wb_amqp_connection_close(&sender->connection);
    wb_amqp_window_free(&sender->window);
    wb_amqp_destinations_clear(&sender->destinations);
    wb_amqp_check_forget(sender);
    free(sender->entries);
    memset(sender, 0, sizeof *sender);
}

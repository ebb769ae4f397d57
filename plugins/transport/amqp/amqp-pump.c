/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "plugins/transport/amqp/amqp-connection.h"

#define SECONDS INT64_C(1000000000)
/* What "soon" is, and how long others may lie unread while one is awaited. */
#define SOON (SECONDS / 50)

static int has_failed(const wb_amqp_connection *connection)
{
    return connection->failure.result != WB_OK;
}

/* ---- frames that are the connection's own ---------------------------------------- */

static void log_blocked(wb_amqp_connection *connection, amqp_bytes_t reason)
{
    char text[200];
    size_t size = reason.len < sizeof text - 1 ? reason.len : sizeof text - 1;
    wb_transport *transport = connection->transport;
    if (atomic_exchange(&transport->blocked_logged, 1))
        return;
    if (size)
        memcpy(text, reason.bytes, size);
    text[size] = '\0';
    transport->host->log(transport->host, WB_LOG_WARNING,
                         "the broker blocks publishing: waiting until it is well again",
                         (const wb_field[]){ { "reason", text } }, 1);
}

void wb_amqp_log_unblocked(wb_transport *transport)
{
    if (atomic_exchange(&transport->blocked_logged, 0))
        transport->host->log(transport->host, WB_LOG_INFO, "the broker accepts messages again",
                             NULL, 0);
}

static void on_connection_method(wb_amqp_connection *connection, const amqp_method_t *method)
{
    if (method->id == AMQP_CONNECTION_BLOCKED_METHOD) {
        const amqp_connection_blocked_t *blocked = method->decoded;
        connection->blocked = 1;
        log_blocked(connection, blocked->reason);
    } else if (method->id == AMQP_CONNECTION_UNBLOCKED_METHOD) {
        connection->blocked = 0;
        wb_amqp_log_unblocked(connection->transport);
    } else if (method->id == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = method->decoded;
        amqp_connection_close_ok_t ok = { 0 };
        wb_amqp_put_method(connection, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
        wb_amqp_flush_some(connection);
        if (!has_failed(connection))
            (void)wb_amqp_map_connection_close(&connection->failure, close->reply_code,
                                               close->reply_text);
    }
}

static void on_channel_close(wb_amqp_connection *connection, amqp_channel_t number,
                             const amqp_channel_close_t *close)
{
    wb_amqp_channel *channel = &connection->channels[number];
    amqp_channel_close_ok_t ok = { 0 };
    channel->open = 0;
    channel->code = close->reply_code;
    (void)snprintf(channel->text, sizeof channel->text, "%.*s%s", (int)close->reply_text.len,
                   close->reply_text.len ? (const char *)close->reply_text.bytes : "",
                   wb_amqp_map_remedy(close));
    wb_amqp_put_method(connection, number, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    wb_amqp_flush_some(connection);
}

static void note_answer(wb_amqp_connection *connection, const amqp_method_t *method)
{
    if (method->id == AMQP_QUEUE_DECLARE_OK_METHOD) {
        const amqp_queue_declare_ok_t *declared = method->decoded;
        connection->declared_messages = declared->message_count;
        connection->declared_consumers = declared->consumer_count;
    }
    connection->rpc_expected = 0;
}

static void on_frame(wb_amqp_connection *connection, const amqp_frame_t *frame)
{
    int is_method = frame->frame_type == AMQP_FRAME_METHOD;
    if (frame->channel >= WB_AMQP_CHANNELS)
        return;
    if (is_method && frame->channel == connection->rpc_channel &&
        frame->payload.method.id == connection->rpc_expected) {
        note_answer(connection, &frame->payload.method);
        return;
    }
    if (frame->channel == 0) {
        if (is_method)
            on_connection_method(connection, &frame->payload.method);
        return;
    }
    if (is_method && frame->payload.method.id == AMQP_CHANNEL_CLOSE_METHOD)
        on_channel_close(connection, frame->channel, frame->payload.method.decoded);
    if (frame->channel == WB_AMQP_MAIN && connection->on_frame)
        connection->on_frame(connection->owner, frame);
}

/* ---- reading --------------------------------------------------------------------- */

/* An answer somebody waits for may stand behind what the owner does not want yet. */
static int wants_input(const wb_amqp_connection *connection)
{
    return !has_failed(connection) && !connection->gated && !connection->deaf &&
           (!connection->paused || connection->rpc_expected);
}

/* Without TLS the socket says itself when more has come: to ask it once more costs two calls of the system for
 * each confirmation. Part of a frame is in the library's hands, and the next bytes of it show at the socket. */
static int may_have_more(const wb_amqp_connection *connection)
{
    return connection->tls || amqp_frames_enqueued(connection->state) || amqp_data_in_buffer(connection->state);
}

/* Afterwards nothing is left in the library, or `leftover` says so. What a frame
 * points to is the library's until the next one: everybody copies. */
static void pump(wb_amqp_connection *connection)
{
    while (wants_input(connection)) {
        amqp_frame_t frame;
        struct timeval none = { 0, 0 };
        int status = amqp_simple_wait_frame_noblock(connection->state, &frame, &none);
        if (status == AMQP_STATUS_TIMEOUT) {
            connection->leftover = 0;
            return;
        }
        if (status == AMQP_STATUS_BAD_AMQP_DATA && connection->on_unreadable &&
            connection->on_unreadable(connection->owner)) {
            connection->deaf = 1;
            connection->leftover = 0;
            return;
        }
        if (status != AMQP_STATUS_OK) {
            (void)wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                          "the connection to the broker is lost: %s",
                                          amqp_error_string2(status));
            return;
        }
        on_frame(connection, &frame);
        amqp_maybe_release_buffers_on_channel(connection->state, frame.channel);
        if (!may_have_more(connection)) {
            connection->leftover = !wants_input(connection);
            return;
        }
    }
    connection->leftover = 1;
}

/* ---- waiting --------------------------------------------------------------------- */

/* @return whether somebody wants to be called again soon. */
static int call_owners(wb_amqp_group *group)
{
    int soon = 0;
    for (size_t i = 0; i < group->count; i++) {
        wb_amqp_connection *connection = group->members[i];
        if (connection && connection->before_wait && !has_failed(connection))
            soon |= connection->before_wait(connection->owner);
    }
    return soon;
}

static int pump_leftovers(wb_amqp_group *group)
{
    int found = 0;
    for (size_t i = 0; i < group->count; i++) {
        wb_amqp_connection *connection = group->members[i];
        if (connection && connection->leftover && wants_input(connection)) {
            /* While it was paused, nobody listened for signs of life. */
            connection->received_at = connection->transport->host->now();
            pump(connection);
            found = 1;
        }
    }
    return found;
}

static int is_alone(const wb_amqp_group *group, int64_t now)
{
    return group->awaited && now < group->all_read_at + SOON;
}

static int may_be_read(const wb_amqp_group *group, const wb_amqp_connection *connection, int64_t now)
{
    return wants_input(connection) && (connection == group->awaited || !is_alone(group, now));
}

static int64_t earliest(const wb_amqp_group *group, int64_t deadline, int64_t now)
{
    if (is_alone(group, now) && group->all_read_at + SOON < deadline)
        deadline = group->all_read_at + SOON;
    for (size_t i = 0; i < group->count; i++) {
        const wb_amqp_connection *connection = group->members[i];
        if (!connection || has_failed(connection) || !connection->heartbeat)
            continue;
        int64_t send = connection->sent_at + connection->heartbeat / 2;
        int64_t expire = connection->received_at + 2 * connection->heartbeat;
        /* What is about to leave counts as a heartbeat. */
        if (!connection->out_size && send < deadline)
            deadline = send;
        if (may_be_read(group, connection, now) && expire < deadline)
            deadline = expire;
    }
    return deadline;
}

static void poll_group(const wb_amqp_group *group, struct pollfd fds[WB_AMQP_MEMBERS_MAX + 1], int64_t deadline,
                       int interruptible, int64_t now)
{
    for (size_t i = 0; i < group->count; i++) {
        const wb_amqp_connection *connection = group->members[i];
        fds[i] = (struct pollfd){ .fd = -1 };
        if (!connection || has_failed(connection))
            continue;
        fds[i].events = (short)((may_be_read(group, connection, now) ? POLLIN : 0) |
                                (connection->out_size ? POLLOUT : 0));
        /* Without an event to wait for, a hang-up would be reported again and again. */
        fds[i].fd = fds[i].events ? connection->fd : -1;
    }
    fds[group->count] = (struct pollfd){ .fd = interruptible ? group->wake : -1, .events = POLLIN };
    int64_t wait = earliest(group, deadline, now) - now;
    if (wait < 0)
        wait = 0;
    struct timespec timeout = { .tv_sec = (time_t)(wait / SECONDS),
                                .tv_nsec = (long)(wait % SECONDS) };
    if (ppoll(fds, group->count + 1, &timeout, NULL) <= 0) {
        for (size_t i = 0; i <= group->count; i++)
            fds[i].revents = 0;
    }
}

static void expire(wb_amqp_connection *connection, int64_t now)
{
    if (connection->heartbeat && wants_input(connection) &&
        now - connection->received_at > 2 * connection->heartbeat)
        (void)wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                      "no sign of life from the broker for %lld s",
                                      (long long)(2 * connection->heartbeat / SECONDS));
}

static void serve(wb_amqp_connection *connection, const struct pollfd *fd, int64_t now)
{
    if (fd->revents & POLLOUT)
        wb_amqp_flush_some(connection);
    if (fd->revents & ~POLLOUT) {
        connection->received_at = now;
        pump(connection);
    }
    if (fd->events & POLLIN) /* else nobody has listened */
        expire(connection, now);
    wb_amqp_put_heartbeat(connection);
}

void wb_amqp_wait(wb_amqp_group *group, int64_t deadline, int interruptible)
{
    struct pollfd fds[WB_AMQP_MEMBERS_MAX + 1];
    int64_t (*now)(void) = NULL;
    for (size_t i = 0; i < group->count && !now; i++) {
        if (group->members[i])
            now = group->members[i]->transport->host->now;
    }
    if (!now)
        return;
    int soon = call_owners(group);
    if (pump_leftovers(group))
        return;
    if (soon && deadline > now() + SOON)
        deadline = now() + SOON;
    const int64_t since = now();
    poll_group(group, fds, deadline, interruptible, since);
    const int64_t then = now();
    for (size_t i = 0; i < group->count; i++) {
        if (group->members[i] && !has_failed(group->members[i]))
            serve(group->members[i], &fds[i], then);
    }
    if (!is_alone(group, since))
        group->all_read_at = then;
}

/* ---- asking ---------------------------------------------------------------------- */

int wb_amqp_rpc(wb_amqp_connection *connection, amqp_channel_t channel, amqp_method_number_t id,
                void *fields, amqp_method_number_t expected)
{
    const wb_transport *transport = connection->transport;
    if (connection->renews)
        connection->deadline = transport->host->now() + transport->config->connect_timeout;
    connection->rpc_channel = channel;
    connection->rpc_expected = expected;
    wb_amqp_put_method(connection, channel, id, fields);
    (void)wb_amqp_flush(connection);
    while (!has_failed(connection) && connection->rpc_expected &&
           (channel == 0 || connection->channels[channel].open)) {
        if (transport->host->now() >= connection->deadline) {
            (void)wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                          "the broker did not answer in time");
            break;
        }
        wb_amqp_wait(connection->group, connection->deadline, 0);
    }
    int answered = connection->rpc_expected == 0;
    connection->rpc_expected = 0;
    if (answered)
        return WB_OK;
    return has_failed(connection) ? connection->failure.result : WB_REJECT;
}

int wb_amqp_channel_ensure(wb_amqp_connection *connection, amqp_channel_t number)
{
    wb_amqp_channel *channel = &connection->channels[number];
    amqp_channel_open_t open = { 0 };
    if (channel->open)
        return WB_OK;
    *channel = (wb_amqp_channel){ .open = 1 };
    return wb_amqp_rpc(connection, number, AMQP_CHANNEL_OPEN_METHOD, &open,
                       AMQP_CHANNEL_OPEN_OK_METHOD);
}

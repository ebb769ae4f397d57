/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "plugins/transport/amqp/amqp-connection.h"

#define FRAME_HEADER 7 /* type, channel, size */
#define FRAME_EXTRA 8  /* with the end mark */
#define METHOD_MAX 4096 /* of the methods we send, whose strings are short ones */
#define CHUNK 262144    /* written once this much is gathered */

static void put_u8(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)value;
}

static void put_u16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
}

static void put_u32(unsigned char *at, uint32_t value)
{
    put_u16(at, value >> 16);
    put_u16(at + 2, value & 0xffff);
}

static void put_u64(unsigned char *at, uint64_t value)
{
    put_u32(at, (uint32_t)(value >> 32));
    put_u32(at + 4, (uint32_t)value);
}

static int has_failed(const wb_amqp_connection *connection)
{
    return connection->failure.result != WB_OK;
}

/* ---- the buffer ------------------------------------------------------------------ */

static unsigned char *reserve(wb_amqp_connection *connection, size_t size)
{
    size_t needed = connection->out_size + size;
    if (needed > connection->out_capacity) {
        size_t capacity = connection->out_capacity ? connection->out_capacity : 16384;
        while (capacity < needed)
            capacity *= 2;
        unsigned char *out = realloc(connection->out, capacity);
        if (!out) {
            (void)wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_SERVER,
                                          "out of memory for %zu bytes to send", capacity);
            return NULL;
        }
        connection->out = out;
        connection->out_capacity = capacity;
    }
    return connection->out + connection->out_size;
}

/* The payload stands behind the place for the frame's header. */
static void finish_frame(wb_amqp_connection *connection, unsigned type, amqp_channel_t channel,
                         size_t payload_size)
{
    unsigned char *frame = connection->out + connection->out_size;
    put_u8(frame, type);
    put_u16(frame + 1, channel);
    put_u32(frame + 3, (uint32_t)payload_size);
    put_u8(frame + FRAME_HEADER + payload_size, AMQP_FRAME_END);
    connection->out_size += payload_size + FRAME_EXTRA;
}

/* ---- through the library, with TLS ----------------------------------------------- */

static int is_writable(const wb_amqp_connection *connection)
{
    struct pollfd fd = { .fd = connection->fd, .events = POLLOUT };
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT);
}

int wb_amqp_can_put(const wb_amqp_connection *connection)
{
    return !has_failed(connection) && (!connection->tls || is_writable(connection));
}

/* The library waits without limit. A worker is freed by the keeper, at the deadline.
 * The keeper, and an answer put while the worker is away, have nobody to free them:
 * their deadline has passed, and they write only what is sure to fit. */
static int send_frame(wb_amqp_connection *connection, const amqp_frame_t *frame)
{
    if (has_failed(connection))
        return connection->failure.result;
    int64_t now = connection->transport->host->now();
    if (connection->deadline <= now && !is_writable(connection))
        return wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                       "the broker took no data in time");
    int64_t until = connection->deadline > now ? connection->deadline : 0;
    atomic_store(&connection->write_deadline, until);
    int status = amqp_send_frame(connection->state, frame);
    atomic_store(&connection->write_deadline, 0);
    connection->sent_at = now;
    if (status == AMQP_STATUS_OK)
        return WB_OK;
    connection->stuck = until && connection->transport->host->now() >= until;
    return wb_amqp_map_status(&connection->failure, status, "send");
}

/* ---- frames ---------------------------------------------------------------------- */

void wb_amqp_put_method(wb_amqp_connection *connection, amqp_channel_t channel,
                        amqp_method_number_t id, void *fields)
{
    if (has_failed(connection))
        return;
    if (connection->tls) {
        amqp_frame_t frame = { .frame_type = AMQP_FRAME_METHOD, .channel = channel };
        frame.payload.method.id = id;
        frame.payload.method.decoded = fields;
        (void)send_frame(connection, &frame);
        return;
    }
    unsigned char *frame = reserve(connection, METHOD_MAX + FRAME_EXTRA);
    if (!frame)
        return;
    put_u32(frame + FRAME_HEADER, id);
    amqp_bytes_t rest = { METHOD_MAX - 4, frame + FRAME_HEADER + 4 };
    int size = amqp_encode_method(id, fields, rest);
    if (size < 0)
        (void)wb_amqp_map_status(&connection->failure, size, "encode a method");
    else
        finish_frame(connection, AMQP_FRAME_METHOD, channel, (size_t)size + 4);
}

static int put_header(wb_amqp_connection *connection, amqp_channel_t channel,
                      amqp_basic_properties_t *properties, size_t properties_size, size_t body_size)
{
    enum { FIXED = 12 };
    if (connection->tls) {
        amqp_frame_t frame = { .frame_type = AMQP_FRAME_HEADER, .channel = channel };
        frame.payload.properties.class_id = AMQP_BASIC_CLASS;
        frame.payload.properties.body_size = body_size;
        frame.payload.properties.decoded = properties;
        return send_frame(connection, &frame);
    }
    unsigned char *frame = reserve(connection, properties_size + FIXED + FRAME_EXTRA);
    if (!frame)
        return connection->failure.result;
    put_u16(frame + FRAME_HEADER, AMQP_BASIC_CLASS);
    put_u16(frame + FRAME_HEADER + 2, 0);
    put_u64(frame + FRAME_HEADER + 4, body_size);
    amqp_bytes_t rest = { properties_size, frame + FRAME_HEADER + FIXED };
    int size = amqp_encode_properties(AMQP_BASIC_CLASS, properties, rest);
    if (size < 0)
        return wb_amqp_map_status(&connection->failure, size, "encode the properties of a message");
    finish_frame(connection, AMQP_FRAME_HEADER, channel, (size_t)size + FIXED);
    return WB_OK;
}

static int put_body_frame(wb_amqp_connection *connection, amqp_channel_t channel,
                          const unsigned char *data, size_t size)
{
    if (connection->tls) {
        amqp_frame_t frame = { .frame_type = AMQP_FRAME_BODY, .channel = channel };
        frame.payload.body_fragment.len = size;
        frame.payload.body_fragment.bytes = (void *)(uintptr_t)data;
        return send_frame(connection, &frame);
    }
    unsigned char *frame = reserve(connection, size + FRAME_EXTRA);
    if (!frame)
        return connection->failure.result;
    memcpy(frame + FRAME_HEADER, data, size);
    finish_frame(connection, AMQP_FRAME_BODY, channel, size);
    return WB_OK;
}

int wb_amqp_put_content(wb_amqp_connection *connection, amqp_channel_t channel,
                        amqp_basic_properties_t *properties, size_t properties_size,
                        const void *body, size_t body_size)
{
    const unsigned char *data = body;
    size_t most = connection->frame_max - FRAME_EXTRA;
    if (properties_size + 12 > most)
        return WB_REJECT;
    int result = has_failed(connection)
                     ? connection->failure.result
                     : put_header(connection, channel, properties, properties_size, body_size);
    for (size_t at = 0; at < body_size && result == WB_OK; at += most) {
        size_t size = body_size - at < most ? body_size - at : most;
        result = put_body_frame(connection, channel, data + at, size);
        if (result == WB_OK && connection->out_size - connection->out_at >= CHUNK)
            result = wb_amqp_flush(connection);
        /* Closed meanwhile, and answered: one more frame would be an error of ours. */
        if (!connection->channels[channel].open)
            break;
    }
    return result;
}

void wb_amqp_put_heartbeat(wb_amqp_connection *connection)
{
    int64_t now = connection->transport->host->now();
    if (has_failed(connection) || !connection->heartbeat || connection->out_size ||
        now - connection->sent_at < connection->heartbeat / 2)
        return;
    if (connection->tls) {
        amqp_frame_t frame = { .frame_type = AMQP_FRAME_HEARTBEAT, .channel = 0 };
        /* Not writable: something else is on its way, which does as well. */
        if (is_writable(connection))
            (void)send_frame(connection, &frame);
        connection->sent_at = now;
        return;
    }
    if (reserve(connection, FRAME_EXTRA))
        finish_frame(connection, AMQP_FRAME_HEARTBEAT, 0, 0);
    wb_amqp_flush_some(connection);
}

/* ---- flushing -------------------------------------------------------------------- */

void wb_amqp_flush_some(wb_amqp_connection *connection)
{
    while (!has_failed(connection) && connection->out_at < connection->out_size) {
        ssize_t size = send(connection->fd, connection->out + connection->out_at,
                            connection->out_size - connection->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size > 0) {
            connection->out_at += (size_t)size;
            connection->sent_at = connection->transport->host->now();
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            (void)wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                          "the connection to the broker is lost: %s",
                                          strerror(errno));
        }
    }
    connection->out_at = connection->out_size = 0;
}

int wb_amqp_flush(wb_amqp_connection *connection)
{
    wb_amqp_flush_some(connection);
    while (!has_failed(connection) && connection->out_size) {
        if (connection->transport->host->now() >= connection->deadline) {
            connection->stuck = 1;
            return wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                                           "the broker took no data in time%s",
                                           connection->blocked ? ": it blocks publishing" : "");
        }
        wb_amqp_wait(connection->group, connection->deadline, 0);
    }
    return connection->failure.result;
}

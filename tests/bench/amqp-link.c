/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/amqp-link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define FRAME_MAX 131072
#define FRAME_OVERHEAD 8 /* type, channel, size before the payload and the end mark after */
#define FRAME_END 0xCE

static void check_reply(amqp_rpc_reply_t reply, const char *what)
{
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return;
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        bench_die("%s: %s", what, amqp_error_string2(reply.library_error));
    const amqp_channel_close_t *close = reply.reply.decoded;
    if (close && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD)
        bench_die("%s: %.*s", what, (int)close->reply_text.len, (char *)close->reply_text.bytes);
    bench_die("%s: refused by the broker", what);
}

static void check(amqp_connection_state_t connection, const char *what)
{
    check_reply(amqp_get_rpc_reply(connection), what);
}

amqp_connection_state_t bench_amqp_connect(void)
{
    amqp_connection_state_t connection = amqp_new_connection();
    amqp_socket_t *socket = connection ? amqp_tcp_socket_new(connection) : NULL;
    int port = (int)bench_number("AMQP_PORT", bench_setting("AMQP_PORT", "5672"), 1);
    if (!socket)
        bench_die("out of memory");
    int status = amqp_socket_open(socket, bench_setting("AMQP_HOST", "127.0.0.1"), port);
    if (status)
        bench_die("cannot connect to port %d: %s", port, amqp_error_string2(status));
    check_reply(amqp_login(connection, bench_setting("AMQP_VHOST", "/"), 0, FRAME_MAX, 0,
                           AMQP_SASL_METHOD_PLAIN, bench_setting("AMQP_USER", "guest"),
                           bench_setting("AMQP_PASSWORD", "guest")),
                "login");
    amqp_channel_open(connection, BENCH_CHANNEL);
    check(connection, "channel");
    return connection;
}

void bench_amqp_close(amqp_connection_state_t connection)
{
    amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(connection);
}

void bench_amqp_declare(amqp_connection_state_t connection, const char *queue)
{
    amqp_bytes_t name = amqp_cstring_bytes(queue);
    amqp_table_entry_t quorum = { .key = amqp_cstring_bytes("x-queue-type"),
                                  .value = { .kind = AMQP_FIELD_KIND_UTF8,
                                             .value.bytes = amqp_cstring_bytes("quorum") } };
    amqp_table_t arguments = { .num_entries = 1, .entries = &quorum };
    amqp_queue_declare(connection, BENCH_CHANNEL, name, 0, 1, 0, 0, arguments);
    check(connection, queue);
    amqp_exchange_declare(connection, BENCH_CHANNEL, name, amqp_cstring_bytes("fanout"), 0, 1, 0,
                          0, amqp_empty_table);
    check(connection, queue);
    amqp_queue_bind(connection, BENCH_CHANNEL, name, name, amqp_empty_bytes, amqp_empty_table);
    check(connection, queue);
}

void bench_amqp_purge(amqp_connection_state_t connection, const char *queue)
{
    amqp_queue_purge(connection, BENCH_CHANNEL, amqp_cstring_bytes(queue));
    check(connection, queue);
}

uint32_t bench_amqp_count(amqp_connection_state_t connection, const char *queue,
                          uint32_t *ret_consumers)
{
    const amqp_queue_declare_ok_t *found =
        amqp_queue_declare(connection, BENCH_CHANNEL, amqp_cstring_bytes(queue), 1, 0, 0, 0,
                           amqp_empty_table);
    check(connection, queue);
    uint32_t count = found->message_count;
    if (ret_consumers)
        *ret_consumers = found->consumer_count;
    amqp_maybe_release_buffers(connection);
    return count;
}

void bench_amqp_consume(amqp_connection_state_t connection, const char *queue, uint16_t prefetch)
{
    amqp_basic_qos(connection, BENCH_CHANNEL, 0, prefetch, 0);
    check(connection, "prefetch");
    amqp_basic_consume(connection, BENCH_CHANNEL, amqp_cstring_bytes(queue), amqp_empty_bytes, 0,
                       prefetch == 0, 0, amqp_empty_table);
    check(connection, queue);
}

/* ---- receiving ------------------------------------------------------------ */

/* The library would copy each message into allocations of its own; frames are read as
 * they are instead and stay in the channel's pool until the batch is done. */
static int read_frame(amqp_connection_state_t connection, amqp_frame_t *frame, int timeout_ms)
{
    struct timeval timeout = { .tv_sec = timeout_ms / 1000,
                               .tv_usec = timeout_ms % 1000 * 1000 };
    int status =
        amqp_simple_wait_frame_noblock(connection, frame, timeout_ms < 0 ? NULL : &timeout);
    if (status == AMQP_STATUS_TIMEOUT)
        return 0;
    if (status != AMQP_STATUS_OK)
        bench_die("connection: %s", amqp_error_string2(status));
    if (frame->frame_type == AMQP_FRAME_METHOD
        && (frame->payload.method.id == AMQP_CHANNEL_CLOSE_METHOD
            || frame->payload.method.id == AMQP_CONNECTION_CLOSE_METHOD
            || frame->payload.method.id == AMQP_BASIC_CANCEL_METHOD))
        bench_die("the broker closed the channel");
    return 1;
}

static void read_content(amqp_connection_state_t connection, amqp_frame_t *header,
                         amqp_bytes_t *ret_body)
{
    amqp_frame_t frame;
    read_frame(connection, header, -1);
    if (header->frame_type != AMQP_FRAME_HEADER)
        bench_die("expected a header frame");
    *ret_body = amqp_empty_bytes;
    if (header->payload.properties.body_size == 0)
        return;
    read_frame(connection, &frame, -1);
    if (frame.payload.body_fragment.len != header->payload.properties.body_size)
        bench_die("bodies of more than a frame are not measured");
    *ret_body = frame.payload.body_fragment;
}

static amqp_bytes_t find_header(const amqp_table_t *table, const char *name)
{
    size_t size = strlen(name);
    for (int i = 0; i < table->num_entries; i++) {
        const amqp_table_entry_t *entry = &table->entries[i];
        if (entry->key.len == size && memcmp(entry->key.bytes, name, size) == 0
            && entry->value.kind == AMQP_FIELD_KIND_UTF8)
            return entry->value.value.bytes;
    }
    return amqp_empty_bytes;
}

static int receive_one(amqp_connection_state_t connection, struct bench_incoming *message,
                       int timeout_ms)
{
    amqp_frame_t frame, header;
    if (!read_frame(connection, &frame, timeout_ms))
        return 0;
    if (frame.frame_type != AMQP_FRAME_METHOD
        || frame.payload.method.id != AMQP_BASIC_DELIVER_METHOD)
        bench_die("expected a delivery");
    const amqp_basic_deliver_t *delivery = frame.payload.method.decoded;
    read_content(connection, &header, &message->body);
    const amqp_basic_properties_t *properties = header.payload.properties.decoded;
    message->tag = delivery->delivery_tag;
    message->id = properties->message_id;
    message->conversation_id = amqp_empty_bytes;
    if (properties->_flags & AMQP_BASIC_HEADERS_FLAG)
        message->conversation_id = find_header(&properties->headers, "NServiceBus.ConversationId");
    if (!(properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) || message->id.len == 0)
        bench_die("a message without id");
    return 1;
}

size_t bench_amqp_receive(amqp_connection_state_t connection, struct bench_incoming *messages,
                          size_t max, int timeout_ms)
{
    size_t count = 0;
    while (count < max && receive_one(connection, &messages[count], count ? 0 : timeout_ms))
        count++;
    return count;
}

void bench_amqp_release(amqp_connection_state_t connection)
{
    amqp_maybe_release_buffers(connection);
}

void bench_amqp_acknowledge(amqp_connection_state_t connection, uint64_t tag)
{
    int status = amqp_basic_ack(connection, BENCH_CHANNEL, tag, 1);
    if (status)
        bench_die("acknowledge: %s", amqp_error_string2(status));
}

/* ---- encoding ------------------------------------------------------------- */

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

/* The payload lies at `frame` + 7 already. */
static void close_frame(struct bench_bytes *window, unsigned char *frame, int type, size_t payload)
{
    frame[0] = (unsigned char)type;
    put_u16(frame + 1, BENCH_CHANNEL);
    put_u32(frame + 3, (uint32_t)payload);
    frame[7 + payload] = FRAME_END;
    window->size += payload + FRAME_OVERHEAD;
}

static void put_publish(struct bench_bytes *window, const char *destination)
{
    unsigned char *frame = bench_bytes_room(window, 512);
    amqp_basic_publish_t publish = { .exchange = amqp_cstring_bytes(destination),
                                     .routing_key = amqp_empty_bytes,
                                     .mandatory = 1 };
    put_u32(frame + 7, AMQP_BASIC_PUBLISH_METHOD);
    int size = amqp_encode_method(AMQP_BASIC_PUBLISH_METHOD, &publish,
                                  (amqp_bytes_t){ .len = 400, .bytes = frame + 11 });
    if (size < 0)
        bench_die("encode: %s", amqp_error_string2(size));
    close_frame(window, frame, AMQP_FRAME_METHOD, 4 + (size_t)size);
}

static void fill_headers(amqp_table_entry_t *entries, const struct bench_envelope *envelope,
                         char *time_sent)
{
    const char *values[BENCH_HEADER_COUNT];
    bench_header_values(envelope, time_sent, values);
    for (int i = 0; i < BENCH_HEADER_COUNT; i++)
        entries[i] = (amqp_table_entry_t){
            .key = amqp_cstring_bytes(bench_header_names[i]),
            .value = { .kind = AMQP_FIELD_KIND_UTF8,
                       .value.bytes = amqp_cstring_bytes(values[i]) }
        };
}

static void put_properties(struct bench_bytes *window, const struct bench_envelope *envelope,
                           size_t body_size)
{
    enum { room = 4096 };
    unsigned char *frame = bench_bytes_room(window, room);
    amqp_table_entry_t entries[BENCH_HEADER_COUNT];
    char time_sent[32];
    fill_headers(entries, envelope, time_sent);
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG
                  | AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_REPLY_TO_FLAG
                  | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_HEADERS_FLAG,
        .message_id = amqp_cstring_bytes(envelope->id),
        .correlation_id =
            amqp_cstring_bytes(envelope->related_to ? envelope->related_to : envelope->id),
        .type = amqp_cstring_bytes(envelope->type),
        .content_type = amqp_cstring_bytes("application/json"),
        .reply_to = amqp_cstring_bytes(envelope->endpoint),
        .delivery_mode = AMQP_DELIVERY_PERSISTENT,
        .headers = { .num_entries = BENCH_HEADER_COUNT, .entries = entries }
    };
    put_u16(frame + 7, AMQP_BASIC_CLASS);
    put_u16(frame + 9, 0);
    put_u32(frame + 11, 0);
    put_u32(frame + 15, (uint32_t)body_size);
    int size = amqp_encode_properties(AMQP_BASIC_CLASS, &properties,
                                      (amqp_bytes_t){ .len = room - 32, .bytes = frame + 19 });
    if (size < 0)
        bench_die("encode: %s", amqp_error_string2(size));
    close_frame(window, frame, AMQP_FRAME_HEADER, 12 + (size_t)size);
}

void bench_amqp_encode(struct bench_bytes *window, const char *destination,
                       const struct bench_envelope *envelope, const void *body, size_t body_size)
{
    put_publish(window, destination);
    put_properties(window, envelope, body_size);
    if (!body_size)
        return;
    unsigned char *frame = bench_bytes_room(window, body_size + FRAME_OVERHEAD);
    memcpy(frame + 7, body, body_size);
    close_frame(window, frame, AMQP_FRAME_BODY, body_size);
}

/* ---- sending -------------------------------------------------------------- */

void bench_sender_open(struct bench_sender *sender)
{
    memset(sender, 0, sizeof *sender);
    sender->connection = bench_amqp_connect();
    sender->first_tag = 1;
    amqp_confirm_select(sender->connection, BENCH_CHANNEL);
    check(sender->connection, "confirms");
}

static void write_all(int fd, const unsigned char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = send(fd, data, size, MSG_NOSIGNAL);
        if (done >= 0) {
            data += done;
            size -= (size_t)done;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd ready = { .fd = fd, .events = POLLOUT };
            poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            bench_die("send: %s", strerror(errno));
        }
    }
}

static size_t confirm(struct bench_sender *sender, uint64_t tag, int multiple, size_t count)
{
    if (tag < sender->first_tag || tag >= sender->first_tag + count)
        bench_die("a confirm for a message that was not sent");
    size_t last = (size_t)(tag - sender->first_tag);
    size_t fresh = 0;
    for (size_t i = multiple ? 0 : last; i <= last; i++) {
        fresh += !sender->confirmed[i];
        sender->confirmed[i] = 1;
    }
    return fresh;
}

static void await_confirms(struct bench_sender *sender, size_t count)
{
    for (size_t missing = count; missing > 0;) {
        amqp_frame_t frame;
        read_frame(sender->connection, &frame, -1);
        if (frame.frame_type != AMQP_FRAME_METHOD
            || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
            bench_die("a message was returned or refused");
        const amqp_basic_ack_t *ack = frame.payload.method.decoded;
        missing -= confirm(sender, ack->delivery_tag, ack->multiple, count);
    }
}

void bench_sender_dispatch(struct bench_sender *sender, const void *window, size_t size,
                           size_t count)
{
    if (sender->confirmed_capacity < count) {
        sender->confirmed = realloc(sender->confirmed, count);
        if (!sender->confirmed)
            bench_die("out of memory");
        sender->confirmed_capacity = count;
    }
    memset(sender->confirmed, 0, count);
    write_all(amqp_get_sockfd(sender->connection), window, size);
    await_confirms(sender, count);
    sender->first_tag += count;
    amqp_maybe_release_buffers(sender->connection);
}

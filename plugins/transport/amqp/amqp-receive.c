/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-receive.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-consume.h"
#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-silence.h"

/* Once bodies of this size wait to be taken, the socket is left alone. */
#define READY_SIZE_MAX ((size_t)32 << 20)
/* After one frame that cannot be decoded there may be others. */
#define CAREFUL_FOR INT64_C(10000000000)

/* ---- the list -------------------------------------------------------------------- */

static void pause_or_go_on(wb_amqp_receiver *receiver)
{
    receiver->connection.paused = receiver->ready_size > READY_SIZE_MAX;
}

static void append(wb_amqp_receiver *receiver, wb_amqp_message *message)
{
    message->previous = receiver->last;
    if (receiver->last)
        receiver->last->next = message;
    else
        receiver->first = message;
    receiver->last = message;
    if (!receiver->ready)
        receiver->ready = message;
    receiver->count++;
    receiver->ready_size += message->incoming.body_size;
    pause_or_go_on(receiver);
}

/* It leaves the consumer's window, and the next one may come. */
static void free_message(wb_amqp_receiver *receiver, wb_amqp_message *message)
{
    if (message->consumer == receiver->consumer && receiver->window)
        receiver->window--;
    receiver->active = 1;
    wb_amqp_message_free(message);
}

static void unlink_and_free(wb_amqp_receiver *receiver, wb_amqp_message *message)
{
    if (message->previous)
        message->previous->next = message->next;
    else
        receiver->first = message->next;
    if (message->next)
        message->next->previous = message->previous;
    else
        receiver->last = message->previous;
    receiver->count--;
    free_message(receiver, message);
}

size_t wb_amqp_receiver_take(wb_amqp_receiver *receiver, const wb_incoming **ret_messages,
                             size_t max)
{
    size_t count = 0;
    for (; count < max && receiver->ready; count++) {
        ret_messages[count] = &receiver->ready->incoming;
        receiver->ready_size -= receiver->ready->incoming.body_size;
        receiver->ready = receiver->ready->next;
    }
    pause_or_go_on(receiver);
    return count;
}

/* ---- frames ---------------------------------------------------------------------- */

/* A classic queue counts nothing: what looks like its count was the sender's. */
static uint32_t delivery_count(const wb_amqp_receiver *receiver,
                               const amqp_basic_properties_t *properties)
{
    if (receiver->connection.transport->config->queue_type == WB_AMQP_QUEUE_CLASSIC)
        return receiver->redelivered ? 1 : 0;
    return wb_amqp_delivery_count(properties, receiver->redelivered);
}

static void complete(wb_amqp_receiver *receiver)
{
    if (receiver->partial)
        append(receiver, receiver->partial);
    receiver->partial = NULL;
    receiver->skipping = 0;
}

/* Rejected at once, because on the next connection it would be the same again, and again. */
static int on_unreadable(void *owner)
{
    wb_amqp_receiver *receiver = owner;
    wb_amqp_connection *connection = &receiver->connection;
    wb_transport *transport = connection->transport;
    amqp_basic_nack_t reject = { .delivery_tag = receiver->tag };
    if (!receiver->awaits_header)
        return 0;
    connection->deaf = 1;
    atomic_store(&transport->careful_until, transport->host->now() + CAREFUL_FOR);
    wb_amqp_consume_leave(receiver);
    wb_amqp_put_method(connection, WB_AMQP_MAIN, AMQP_BASIC_NACK_METHOD, &reject);
    wb_amqp_flush_some(connection);
    transport->host->log(transport->host, WB_LOG_ERROR,
                         "the client library refuses to decode the headers of a message: it was "
                         "rejected, and is gone unless the queue has a dead-letter exchange",
                         (const wb_field[]){ { "queue", receiver->queue },
                                             { "exchange", receiver->exchange } },
                         2);
    return 1;
}

static void on_header(wb_amqp_receiver *receiver, const amqp_frame_t *frame)
{
    const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
    uint64_t body_size = frame->payload.properties.body_size;
    wb_amqp_message *message =
        wb_amqp_message_new(receiver->connection.transport, properties, body_size);
    if (!message) {
        (void)wb_amqp_connection_fail(&receiver->connection, WB_NOT_CONNECTED, WB_CAUSE_SERVER,
                                      "out of memory for a message");
        return;
    }
    receiver->awaits_header = 0;
    message->receiver = receiver;
    message->tag = receiver->tag;
    message->consumer = receiver->tag_consumer;
    message->incoming.delivery_count = delivery_count(receiver, properties);
    if (message->incoming.delivery_count)
        wb_amqp_silence_came_again(receiver);
    receiver->partial = message;
    receiver->body_left = body_size;
    receiver->connection.gated = !wb_amqp_message_may_read(message);
    if (body_size == 0)
        complete(receiver);
}

static void on_body(wb_amqp_receiver *receiver, amqp_bytes_t data)
{
    if ((!receiver->partial && !receiver->skipping) || data.len > receiver->body_left) {
        (void)wb_amqp_connection_fail(&receiver->connection, WB_NOT_CONNECTED, WB_CAUSE_OTHER,
                                      "the broker sent a body that no message asked for");
        return;
    }
    if (receiver->partial)
        wb_amqp_message_add(receiver->partial, data);
    receiver->body_left -= data.len;
    if (receiver->body_left == 0)
        complete(receiver);
}

static void on_channel_close(wb_amqp_receiver *receiver)
{
    const wb_amqp_channel *channel = &receiver->connection.channels[WB_AMQP_MAIN];
    const char *name = receiver->queue;
    int cause = wb_amqp_map_cause(channel->code);
    if (channel->code == AMQP_NOT_FOUND)
        (void)wb_amqp_connection_fail(&receiver->connection, WB_NOT_CONNECTED, cause,
                                      "queue \"%s\" does not exist or its node is down: run "
                                      "waybill install (the broker says: %s)",
                                      name, channel->text);
    else
        (void)wb_amqp_connection_fail(
            &receiver->connection,
            channel->code == AMQP_ACCESS_REFUSED ? WB_FATAL : WB_NOT_CONNECTED,
            channel->code == AMQP_ACCESS_REFUSED ? cause : WB_CAUSE_OTHER,
            "the broker closed the channel that receives from \"%s\": %s", name, channel->text);
}

static void copy_text(char *to, size_t size, amqp_bytes_t text)
{
    size_t length = text.len < size ? text.len : size - 1;
    if (length)
        memcpy(to, text.bytes, length);
    to[length] = '\0';
}

static void on_method(wb_amqp_receiver *receiver, const amqp_method_t *method)
{
    const amqp_basic_deliver_t *deliver = method->decoded;
    wb_transport *transport = receiver->connection.transport;
    switch (method->id) {
    case AMQP_BASIC_DELIVER_METHOD:
        transport->host->crash_point("received_frame");
        receiver->tag = deliver->delivery_tag;
        receiver->redelivered = deliver->redelivered;
        receiver->awaits_header = 1;
        copy_text(receiver->exchange, sizeof receiver->exchange, deliver->exchange);
        receiver->tag_consumer = wb_amqp_consumer_of(deliver->consumer_tag);
        receiver->window += receiver->tag_consumer == receiver->consumer;
        receiver->active = 1;
        break;
    case AMQP_BASIC_CONSUME_OK_METHOD: wb_amqp_consume_confirmed(receiver); break;
    case AMQP_BASIC_CANCEL_OK_METHOD: receiver->cancels--; break;
    case AMQP_CHANNEL_FLOW_OK_METHOD: receiver->asked -= receiver->asked > 0; break;
    case AMQP_BASIC_CANCEL_METHOD:
        (void)wb_amqp_connection_fail(&receiver->connection, WB_NOT_CONNECTED, WB_CAUSE_MISSING,
                                      "queue \"%s\" was deleted or has moved: the broker cancelled "
                                      "the consumer",
                                      receiver->queue);
        break;
    case AMQP_CHANNEL_CLOSE_METHOD: on_channel_close(receiver); break;
    default: break;
    }
}

static void on_frame(void *owner, const amqp_frame_t *frame)
{
    wb_amqp_receiver *receiver = owner;
    if (frame->frame_type == AMQP_FRAME_METHOD)
        on_method(receiver, &frame->payload.method);
    else if (frame->frame_type == AMQP_FRAME_HEADER && !receiver->partial && !receiver->skipping)
        on_header(receiver, frame);
    else if (frame->frame_type == AMQP_FRAME_BODY)
        on_body(receiver, frame->payload.body_fragment);
}

/* ---- life ------------------------------------------------------------------------ */

/* Whatever closed the channel has failed the connection as well, with the reason. */
static int result_of(const wb_amqp_receiver *receiver)
{
    return receiver->connection.failure.result;
}

int wb_amqp_receiver_open(wb_amqp_receiver *receiver, wb_transport *transport,
                          wb_amqp_group *group, const char *queue, uint32_t prefetch)
{
    receiver->queue = queue;
    receiver->connection.on_frame = on_frame;
    receiver->connection.on_unreadable = on_unreadable;
    receiver->connection.before_wait = wb_amqp_consume_before_wait;
    receiver->connection.owner = receiver;
    if (wb_amqp_connection_open(&receiver->connection, transport, group, "receive") == WB_OK &&
        wb_amqp_channel_ensure(&receiver->connection, WB_AMQP_MAIN) == WB_OK &&
        wb_amqp_judge_look_again(&receiver->connection) == WB_OK)
        (void)wb_amqp_consume_first(receiver, prefetch);
    wb_amqp_silence_begin(receiver);
    return result_of(receiver);
}

int wb_amqp_receiver_end_deaf(wb_amqp_receiver *receiver)
{
    if (result_of(receiver) == WB_OK)
        wb_amqp_connection_part(&receiver->connection);
    return wb_amqp_connection_fail(&receiver->connection, WB_NOT_CONNECTED, WB_CAUSE_OTHER,
                                   "a message that the client library refuses to decode was "
                                   "rejected: connecting again");
}

void wb_amqp_receiver_close(wb_amqp_receiver *receiver)
{
    wb_amqp_connection_close(&receiver->connection);
    while (receiver->first)
        unlink_and_free(receiver, receiver->first);
    wb_amqp_message_free(receiver->partial);
    memset(receiver, 0, sizeof *receiver);
}

/* ---- settling -------------------------------------------------------------------- */

static void put_settlement(wb_amqp_receiver *receiver, uint64_t tag, int multiple, int requeue)
{
    amqp_basic_ack_t ack = { .delivery_tag = tag, .multiple = multiple };
    amqp_basic_nack_t nack = { .delivery_tag = tag, .multiple = multiple, .requeue = 1 };
    if (requeue)
        wb_amqp_put_method(&receiver->connection, WB_AMQP_MAIN, AMQP_BASIC_NACK_METHOD, &nack);
    else
        wb_amqp_put_method(&receiver->connection, WB_AMQP_MAIN, AMQP_BASIC_ACK_METHOD, &ack);
}

/* "Multiple" settles every tag up to the given one: only right for the oldest
 * messages without a gap. Messages not handed out yet are in the list too, so a gap
 * cannot be overlooked. Returns how many were settled. */
static size_t settle_oldest(wb_amqp_receiver *receiver, int requeue)
{
    uint64_t tag = 0;
    size_t count = 0;
    while (receiver->first && receiver->first->settling) {
        tag = receiver->first->tag;
        unlink_and_free(receiver, receiver->first);
        count++;
    }
    if (count)
        put_settlement(receiver, tag, count > 1, requeue);
    return count;
}

static int is_forgetful(const wb_amqp_receiver *receiver)
{
    return receiver->connection.transport->endpoint->mode == WB_MODE_NONE;
}

/* Everything before it was acknowledged when it was taken. */
int wb_amqp_receiver_forget(wb_amqp_receiver *receiver, const wb_incoming *last)
{
    if (!is_forgetful(receiver))
        return WB_OK;
    put_settlement(receiver, ((const wb_amqp_message *)last)->tag, 1, 0);
    return wb_amqp_flush(&receiver->connection);
}

void wb_amqp_receiver_choose(const wb_incoming *const *messages, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wb_amqp_message *message = (wb_amqp_message *)(uintptr_t)messages[i];
        message->settling = 1;
        message->receiver->settling++;
    }
}

/* What is chosen and not the oldest, each by itself. */
static void settle_rest(wb_amqp_receiver *receiver, size_t left, int requeue)
{
    wb_amqp_message *next = receiver->first;
    for (wb_amqp_message *message = next; message && left; message = next) {
        next = message->next;
        if (!message->settling)
            continue;
        if (!is_forgetful(receiver))
            put_settlement(receiver, message->tag, 0, requeue);
        unlink_and_free(receiver, message);
        left--;
    }
}

int wb_amqp_receiver_settle(wb_amqp_receiver *receiver, int requeue)
{
    size_t left = receiver->settling;
    if (!left || result_of(receiver) != WB_OK)
        return result_of(receiver);
    receiver->settling = 0;
    wb_amqp_consume_step(receiver); /* while the window is full */
    if (!is_forgetful(receiver))
        left -= settle_oldest(receiver, requeue);
    settle_rest(receiver, left, requeue);
    wb_amqp_consume_step(receiver);
    return wb_amqp_flush(&receiver->connection);
}

/* Methods of a channel are done in their order, and this one is answered and changes nothing. An acknowledgement
 * that lies in a socket when its process ends is lost where the broker meets the end first. */
int wb_amqp_receiver_ask(wb_amqp_receiver *receiver)
{
    amqp_channel_flow_t flow = { .active = 1 };
    if (result_of(receiver) != WB_OK)
        return result_of(receiver);
    receiver->asked++;
    wb_amqp_put_method(&receiver->connection, WB_AMQP_MAIN, AMQP_CHANNEL_FLOW_METHOD, &flow);
    return wb_amqp_flush(&receiver->connection);
}

/* ---- what nobody has taken ------------------------------------------------------- */

void wb_amqp_receiver_give_back_gated(wb_amqp_receiver *receiver)
{
    if (!receiver->connection.gated || !wb_amqp_can_put(&receiver->connection))
        return;
    put_settlement(receiver, receiver->partial->tag, 0, 1);
    free_message(receiver, receiver->partial);
    receiver->partial = NULL;
    receiver->skipping = 1;
    receiver->connection.gated = 0;
}

void wb_amqp_receiver_give_back_ready(wb_amqp_receiver *receiver)
{
    wb_amqp_connection *connection = &receiver->connection;
    wb_amqp_receiver_give_back_gated(receiver);
    while (receiver->ready && wb_amqp_can_put(connection)) {
        wb_amqp_message *message = receiver->ready;
        receiver->ready = message->next;
        receiver->ready_size -= message->incoming.body_size;
        put_settlement(receiver, message->tag, 0, 1);
        unlink_and_free(receiver, message);
    }
    pause_or_go_on(receiver);
}

void wb_amqp_receiver_drop_ready(wb_amqp_receiver *receiver)
{
    wb_amqp_message *next;
    for (wb_amqp_message *message = receiver->ready; message; message = next) {
        next = message->next;
        unlink_and_free(receiver, message);
    }
    receiver->ready = NULL;
    receiver->ready_size = 0;
    wb_amqp_message_free(receiver->partial);
    receiver->partial = NULL;
}

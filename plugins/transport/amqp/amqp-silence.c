/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-silence.h"

#include "plugins/transport/amqp/amqp-consume.h"
#include "plugins/transport/amqp/amqp-judge.h"

/* In heartbeats: a minute, unless somebody wants to know of other trouble sooner or later than that. */
#define LONG 6
#define LOOKS 5
#define LOOK_EVERY INT64_C(20000000)

static int has_nothing(const wb_amqp_receiver *receiver)
{
    return !receiver->count && !receiver->partial && !receiver->skipping && !receiver->awaits_header;
}

int wb_amqp_silence_is_long(const wb_amqp_receiver *receiver)
{
    const wb_transport *transport = receiver->connection.transport;
    return has_nothing(receiver) && !receiver->active && receiver->consuming == WB_AMQP_CONSUMER_RUNNING &&
           !receiver->stopping && !receiver->asked && !receiver->connection.deaf &&
           transport->host->now() - receiver->active_at >= LONG * transport->config->heartbeat;
}

/* On the channel that consumes: a queue that is gone closes it, and fails the connection with that reason. */
static int count_consumers(wb_amqp_receiver *receiver, uint32_t *ret_count)
{
    wb_amqp_connection *connection = &receiver->connection;
    amqp_queue_declare_t passive = { .queue = amqp_cstring_bytes(connection->transport->endpoint->name),
                                     .passive = 1,
                                     .durable = 1 };
    int result = wb_amqp_rpc(connection, WB_AMQP_MAIN, AMQP_QUEUE_DECLARE_METHOD, &passive,
                             AMQP_QUEUE_DECLARE_OK_METHOD);
    *ret_count = connection->declared_consumers;
    return result;
}

static int leave(wb_amqp_receiver *receiver)
{
    wb_amqp_connection *connection = &receiver->connection;
    int64_t until = connection->transport->host->now() + connection->transport->config->connect_timeout;
    wb_amqp_consume_leave(receiver);
    while (connection->failure.result == WB_OK && receiver->cancels && connection->transport->host->now() < until)
        wb_amqp_wait(connection->group, until, 0);
    return connection->failure.result;
}

/* @return in *ret_is_gone 0 when something may have been delivered to it that did not arrive. Others that begin in
 * between look the same. */
static int end_consumer(wb_amqp_receiver *receiver, int *ret_is_gone)
{
    uint32_t before = 0, after = 0;
    int result = count_consumers(receiver, &before);
    if (result == WB_OK)
        result = leave(receiver);
    if (result == WB_OK)
        result = count_consumers(receiver, &after);
    *ret_is_gone = after < before;
    return result;
}

/* Whatever was delivered on it goes back to its queue. Nothing is in hand that has a tag of the old one. */
static int renew_channel(wb_amqp_receiver *receiver)
{
    wb_amqp_connection *connection = &receiver->connection;
    amqp_channel_close_t close = { .reply_code = AMQP_REPLY_SUCCESS };
    int result = wb_amqp_rpc(connection, WB_AMQP_MAIN, AMQP_CHANNEL_CLOSE_METHOD, &close, AMQP_CHANNEL_CLOSE_OK_METHOD);
    if (result == WB_OK)
        connection->channels[WB_AMQP_MAIN].open = 0;
    return result == WB_OK ? wb_amqp_channel_ensure(connection, WB_AMQP_MAIN) : result;
}

/* Where queues are not as we declare them the broker logs each question. */
static int look_at_queues(wb_amqp_receiver *receiver, int is_renewed)
{
    wb_transport *transport = receiver->connection.transport;
    if (atomic_load(&transport->differs) && !is_renewed)
        return WB_OK;
    wb_amqp_judge_doubt(transport);
    return wb_amqp_judge_look_again(&receiver->connection);
}

/* The queue hears of the channel's end a moment after we do. */
static int await_returned(wb_amqp_receiver *receiver)
{
    wb_amqp_connection *connection = &receiver->connection;
    uint32_t ignored;
    int result = count_consumers(receiver, &ignored);
    for (int i = 0; i < LOOKS && result == WB_OK && !connection->declared_messages; i++) {
        wb_amqp_wait(connection->group, connection->transport->host->now() + LOOK_EVERY, 0);
        result = count_consumers(receiver, &ignored);
    }
    return result;
}

/* Consumers in line (x-single-active-consumer) may leave messages to the first of them. */
static int tell_returned(wb_amqp_receiver *receiver)
{
    wb_transport *transport = receiver->connection.transport;
    int result = await_returned(receiver);
    if (result == WB_OK && receiver->connection.declared_messages && !atomic_load(&transport->single_active))
        transport->host->log(transport->host, WB_LOG_WARNING,
                             "the queue was deleted and declared anew, and what it then delivered did not arrive: "
                             "consuming again",
                             (const wb_field[]){ { "queue", transport->endpoint->name } }, 1);
    return result;
}

static int exchange(wb_amqp_receiver *receiver)
{
    int is_gone = 1;
    int result = end_consumer(receiver, &is_gone);
    int renews = !is_gone && has_nothing(receiver);
    if (result == WB_OK && renews)
        result = renew_channel(receiver);
    if (result == WB_OK)
        result = look_at_queues(receiver, renews);
    return result == WB_OK && renews ? tell_returned(receiver) : result;
}

void wb_amqp_silence_end(wb_amqp_receiver *receiver)
{
    receiver->connection.renews = 1;
    receiver->silent = 1;
    (void)exchange(receiver);
    receiver->silent = 0;
    receiver->active = 1;
    receiver->connection.renews = 0;
    wb_amqp_consume_step(receiver);
    wb_amqp_flush_some(&receiver->connection);
}

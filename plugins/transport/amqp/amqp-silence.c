/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-silence.h"

#include "plugins/transport/amqp/amqp-consume.h"
#include "plugins/transport/amqp/amqp-judge.h"

#define MILLISECONDS INT64_C(1000000)
#define SECONDS (1000 * MILLISECONDS)
/* In heartbeats: a minute, unless somebody wants to know of other trouble sooner or later than that. */
#define LONG 6
/* When another session is at it, or something came in between. */
#define LATER (2 * SECONDS)
/* Who exchanges its consumer has two for less. */
#define MOMENT (50 * MILLISECONDS)
/* The queue hears of the channel's end a moment after we do. */
#define RETURNED_MAX (5 * SECONDS)

static int64_t now_of(const wb_amqp_receiver *receiver)
{
    return receiver->connection.transport->host->now();
}

static int has_nothing(const wb_amqp_receiver *receiver)
{
    return !receiver->count && !receiver->partial && !receiver->skipping && !receiver->awaits_header;
}

static int may_exchange(const wb_amqp_receiver *receiver)
{
    return has_nothing(receiver) && receiver->consuming == WB_AMQP_CONSUMER_RUNNING && !receiver->stopping &&
           !receiver->asked && !receiver->connection.deaf;
}

/* Hosts that were started together should not do it together: up to a heartbeat more, by the clock's last digits. */
void wb_amqp_silence_begin(wb_amqp_receiver *receiver)
{
    const int64_t heartbeat = receiver->connection.transport->config->heartbeat;
    const int64_t now = now_of(receiver);
    receiver->exchange_at = now + LONG * heartbeat + now % MILLISECONDS * (heartbeat / MILLISECONDS);
}

int wb_amqp_silence_is_long(const wb_amqp_receiver *receiver)
{
    const int64_t heartbeat = receiver->connection.transport->config->heartbeat;
    const int64_t now = now_of(receiver);
    if (!may_exchange(receiver) || now < receiver->exchange_at)
        return 0;
    return receiver->lost || (!receiver->active && now - receiver->active_at >= LONG * heartbeat);
}

/* ---- who consumes ---------------------------------------------------------------- */

/* On the channel that consumes: a queue that is gone closes it, and fails the connection with that reason. */
static int count_consumers(wb_amqp_receiver *receiver, uint32_t *ret_count)
{
    wb_amqp_connection *connection = &receiver->connection;
    amqp_queue_declare_t passive = { .queue = amqp_cstring_bytes(receiver->queue),
                                     .passive = 1,
                                     .durable = 1 };
    int result = wb_amqp_rpc(connection, WB_AMQP_MAIN, AMQP_QUEUE_DECLARE_METHOD, &passive,
                             AMQP_QUEUE_DECLARE_OK_METHOD);
    *ret_count = connection->declared_consumers;
    return result;
}

static int count_twice(wb_amqp_receiver *receiver, uint32_t *ret_lower)
{
    uint32_t first = 0, second = 0;
    int result = count_consumers(receiver, &first);
    if (result == WB_OK) {
        wb_amqp_wait(receiver->connection.group, now_of(receiver) + MOMENT, 0);
        result = count_consumers(receiver, &second);
    }
    *ret_lower = first < second ? first : second;
    return result;
}

/* A consumer that waits in line (x-single-active-consumer) is not counted at all: then one stays one. */
static int exchange_consumer(wb_amqp_receiver *receiver)
{
    uint32_t before = 0, after = 0;
    int result = count_twice(receiver, &before);
    if (result != WB_OK || !may_exchange(receiver))
        return result;
    result = wb_amqp_consume_exchange(receiver);
    if (result == WB_OK)
        result = count_twice(receiver, &after);
    receiver->lost = after > before;
    return result;
}

/* ---- the channel ----------------------------------------------------------------- */

/* Nothing is in hand that has a tag of the old one, and no answer of it will come. */
static int reopen_channel(wb_amqp_receiver *receiver)
{
    wb_amqp_connection *connection = &receiver->connection;
    amqp_channel_close_t close = { .reply_code = AMQP_REPLY_SUCCESS };
    atomic_store(&connection->transport->renewed_until, now_of(receiver) + RETURNED_MAX);
    int result = wb_amqp_rpc(connection, WB_AMQP_MAIN, AMQP_CHANNEL_CLOSE_METHOD, &close, AMQP_CHANNEL_CLOSE_OK_METHOD);
    if (result != WB_OK)
        return result;
    connection->channels[WB_AMQP_MAIN].open = 0;
    receiver->cancels = 0;
    receiver->lost = 0;
    return wb_amqp_channel_ensure(connection, WB_AMQP_MAIN);
}

/* Whatever was delivered on it goes back to its queue: what came to the consumer before its end has to be settled
 * first. */
static int renew_channel(wb_amqp_receiver *receiver)
{
    int result = wb_amqp_consume_end(receiver);
    if (result == WB_OK && has_nothing(receiver))
        result = reopen_channel(receiver);
    wb_amqp_consume_anew(receiver);
    return result;
}

void wb_amqp_silence_came_again(const wb_amqp_receiver *receiver)
{
    wb_transport *transport = receiver->connection.transport;
    int64_t until = atomic_load(&transport->renewed_until);
    if (!until || now_of(receiver) > until || !atomic_compare_exchange_strong(&transport->renewed_until, &until, 0))
        return;
    transport->host->log(transport->host, WB_LOG_WARNING,
                         "the queue was deleted and declared anew, and what it then delivered did not arrive: "
                         "consuming again",
                         (const wb_field[]){ { "queue", receiver->queue } }, 1);
}

/* ---- all of it ------------------------------------------------------------------- */

/* Where queues are not as we declare them the broker logs each question. */
static int look_at_queues(wb_amqp_receiver *receiver, int is_renewed)
{
    wb_transport *transport = receiver->connection.transport;
    if (atomic_load(&transport->differs) && !is_renewed)
        return WB_OK;
    wb_amqp_judge_doubt(transport);
    return wb_amqp_judge_look_again(&receiver->connection);
}

static void exchange(wb_amqp_receiver *receiver)
{
    int result = receiver->lost ? WB_OK : exchange_consumer(receiver);
    int was_lost = receiver->lost;
    if (result == WB_OK && was_lost && may_exchange(receiver))
        result = renew_channel(receiver);
    if (result == WB_OK)
        (void)look_at_queues(receiver, was_lost && !receiver->lost);
}

void wb_amqp_silence_end(wb_amqp_receiver *receiver)
{
    wb_transport *transport = receiver->connection.transport;
    const int64_t deadline = receiver->connection.deadline;
    if (atomic_exchange(&transport->exchanging, 1)) {
        receiver->exchange_at = now_of(receiver) + LATER;
        return;
    }
    receiver->connection.deadline = now_of(receiver) + transport->config->connect_timeout;
    exchange(receiver);
    atomic_store(&transport->exchanging, 0);
    receiver->connection.deadline = deadline;
    receiver->active = 1;
    wb_amqp_silence_begin(receiver);
    if (receiver->lost)
        receiver->exchange_at = now_of(receiver) + LATER;
    wb_amqp_consume_step(receiver);
    wb_amqp_flush_some(&receiver->connection);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-consume.h"

#include <stdio.h>

#include "plugins/transport/amqp/amqp-gate.h"

/* How long a broker is left with what it wants to send: a third of its own patience. */
#define UNREAD_MAX INT64_C(10000000000)

/* Nothing is on its way to a consumer that has been left alone for so long. */
#define QUIET INT64_C(50000000)
#define CANCEL_MAX INT64_C(1000000000)

#define TAG "waybill-"

static amqp_bytes_t consumer_tag(const wb_amqp_receiver *receiver, char tag[32])
{
    (void)snprintf(tag, 32, TAG "%u", receiver->consumer);
    return amqp_cstring_bytes(tag);
}

unsigned wb_amqp_consumer_of(amqp_bytes_t tag)
{
    const char *digits = tag.bytes;
    unsigned number = 0;
    for (size_t i = sizeof TAG - 1; i < tag.len && digits[i] >= '0' && digits[i] <= '9'; i++)
        number = number * 10 + (unsigned)(digits[i] - '0');
    return number;
}

/* None before the first consumer is wanted. */
static uint32_t wanted_prefetch(const wb_amqp_receiver *receiver)
{
    wb_transport *transport = receiver->connection.transport;
    int64_t careful = atomic_load(&transport->careful_until);
    if (receiver->prefetch > 1 && careful && transport->host->now() < careful)
        return 1;
    return receiver->prefetch;
}

/* Per consumer, not per channel: quorum queues know nothing else. It applies to
 * consumers that come after it. */
static amqp_basic_qos_t make_qos(const wb_amqp_receiver *receiver)
{
    uint32_t prefetch = receiver->consumer_prefetch;
    return (amqp_basic_qos_t){
        .prefetch_count = (uint16_t)(prefetch < UINT16_MAX ? prefetch : UINT16_MAX)
    };
}

static amqp_basic_consume_t make_consume(const wb_amqp_receiver *receiver, char tag[32])
{
    return (amqp_basic_consume_t){ .queue = amqp_cstring_bytes(receiver->queue),
                                   .consumer_tag = consumer_tag(receiver, tag) };
}

static void put(wb_amqp_receiver *receiver, amqp_method_number_t id, void *fields)
{
    wb_amqp_put_method(&receiver->connection, WB_AMQP_MAIN, id, fields);
}

static void count_another(wb_amqp_receiver *receiver)
{
    receiver->consumer++;
    receiver->consumer_prefetch = wanted_prefetch(receiver);
    receiver->consuming = WB_AMQP_CONSUMER_ASKED;
    receiver->window = 0;
}

static int consume_another(wb_amqp_receiver *receiver)
{
    char tag[32];
    count_another(receiver);
    amqp_basic_qos_t qos = make_qos(receiver);
    amqp_basic_consume_t consume = make_consume(receiver, tag);
    int result = wb_amqp_rpc(&receiver->connection, WB_AMQP_MAIN, AMQP_BASIC_QOS_METHOD, &qos,
                             AMQP_BASIC_QOS_OK_METHOD);
    if (result == WB_OK)
        result = wb_amqp_rpc(&receiver->connection, WB_AMQP_MAIN, AMQP_BASIC_CONSUME_METHOD,
                             &consume, AMQP_BASIC_CONSUME_OK_METHOD);
    if (result == WB_OK)
        receiver->consuming = WB_AMQP_CONSUMER_RUNNING;
    receiver->active = 1;
    return result;
}

int wb_amqp_consume_first(wb_amqp_receiver *receiver, uint32_t prefetch)
{
    receiver->prefetch = prefetch ? prefetch : 1;
    return consume_another(receiver);
}

static int end_consumer(wb_amqp_receiver *receiver, const char *tag)
{
    amqp_basic_cancel_t cancel = { .consumer_tag = amqp_cstring_bytes(tag) };
    return wb_amqp_rpc(&receiver->connection, WB_AMQP_MAIN, AMQP_BASIC_CANCEL_METHOD, &cancel,
                       AMQP_BASIC_CANCEL_OK_METHOD);
}

int wb_amqp_consume_exchange(wb_amqp_receiver *receiver)
{
    char former[32];
    (void)consumer_tag(receiver, former);
    int result = consume_another(receiver);
    return result == WB_OK ? end_consumer(receiver, former) : result;
}

int wb_amqp_consume_end(wb_amqp_receiver *receiver)
{
    char tag[32];
    (void)consumer_tag(receiver, tag);
    receiver->silent = 1;
    receiver->consuming = WB_AMQP_CONSUMER_NONE;
    return end_consumer(receiver, tag);
}

void wb_amqp_consume_anew(wb_amqp_receiver *receiver)
{
    receiver->silent = 0;
    wb_amqp_consume_step(receiver);
}

/* ---- one step -------------------------------------------------------------------- */

static void begin(wb_amqp_receiver *receiver)
{
    char tag[32];
    count_another(receiver);
    amqp_basic_qos_t qos = make_qos(receiver);
    amqp_basic_consume_t consume = make_consume(receiver, tag);
    put(receiver, AMQP_BASIC_QOS_METHOD, &qos);
    put(receiver, AMQP_BASIC_CONSUME_METHOD, &consume);
}

static void cancel(wb_amqp_receiver *receiver)
{
    char tag[32];
    amqp_basic_cancel_t cancel = { .consumer_tag = consumer_tag(receiver, tag) };
    receiver->consuming = WB_AMQP_CONSUMER_NONE;
    receiver->cancels++;
    receiver->cancel_since = 0;
    put(receiver, AMQP_BASIC_CANCEL_METHOD, &cancel);
}

/* With mode none messages leave the broker's window before they leave ours. */
static int is_window_full(const wb_amqp_receiver *receiver)
{
    return receiver->connection.transport->endpoint->mode != WB_MODE_NONE &&
           receiver->window >= receiver->consumer_prefetch;
}

/* Every wait begins with a step, so this is when something happened, or soon after. */
static void note_activity(wb_amqp_receiver *receiver)
{
    if (receiver->active)
        receiver->active_at = receiver->connection.transport->host->now();
    receiver->active = 0;
}

static int may_cancel(wb_amqp_receiver *receiver)
{
    int64_t now = receiver->connection.transport->host->now();
    if (receiver->cancel_since == 0)
        receiver->cancel_since = now;
    return is_window_full(receiver) || now - receiver->active_at >= QUIET ||
           now - receiver->cancel_since >= CANCEL_MAX;
}

void wb_amqp_consume_step(wb_amqp_receiver *receiver)
{
    if (receiver->held && wb_amqp_gate_is_free())
        receiver->held = 0;
    note_activity(receiver);
    int wanted = !receiver->stopping && !receiver->released && !receiver->held && !receiver->silent;
    uint32_t prefetch = wanted_prefetch(receiver);
    int has_other = receiver->consumer_prefetch != prefetch;
    if (receiver->connection.deaf || !wb_amqp_can_put(&receiver->connection))
        return;
    if (wanted && !has_other)
        receiver->cancel_since = 0;
    else if (receiver->consuming == WB_AMQP_CONSUMER_RUNNING && may_cancel(receiver))
        cancel(receiver);
    if (receiver->consuming == WB_AMQP_CONSUMER_NONE && wanted &&
        receiver->count < prefetch)
        begin(receiver);
}

/* A quorum queue delivers before the consumer is confirmed, and what is rejected makes room for the next:
 * so who has asked only leaves as well. */
void wb_amqp_consume_leave(wb_amqp_receiver *receiver)
{
    if (receiver->consuming != WB_AMQP_CONSUMER_NONE)
        cancel(receiver);
}

void wb_amqp_consume_confirmed(wb_amqp_receiver *receiver)
{
    receiver->consuming = WB_AMQP_CONSUMER_RUNNING;
    receiver->active = 1;
    wb_amqp_consume_step(receiver);
}

/* ---- what is wanted -------------------------------------------------------------- */

void wb_amqp_consume_prefetch(wb_amqp_receiver *receiver, uint32_t prefetch)
{
    receiver->prefetch = prefetch ? prefetch : 1;
    wb_amqp_consume_step(receiver);
}

int wb_amqp_consume_is_on(const wb_amqp_receiver *receiver)
{
    return receiver->consuming != WB_AMQP_CONSUMER_NONE || receiver->cancels;
}

void wb_amqp_consume_stop(wb_amqp_receiver *receiver)
{
    receiver->stopping = 1;
    wb_amqp_consume_step(receiver);
}

int wb_amqp_consume_is_drained(const wb_amqp_receiver *receiver)
{
    const wb_amqp_connection *connection = &receiver->connection;
    return !receiver->ready &&
           (!wb_amqp_consume_is_on(receiver) || connection->gated || connection->deaf);
}

/* What is given back while a consumer is there may come back to it, with one more delivery: so
 * not before it is cancelled. One that is not confirmed cannot be, and when its confirmation
 * stands behind what is not being read, that has to go first all the same. */
static int may_give_back(const wb_amqp_receiver *receiver)
{
    const wb_amqp_connection *connection = &receiver->connection;
    return receiver->consuming == WB_AMQP_CONSUMER_NONE ||
           (receiver->consuming == WB_AMQP_CONSUMER_ASKED &&
            (connection->gated || connection->paused));
}

int wb_amqp_consume_release(wb_amqp_receiver *receiver)
{
    if (receiver->connection.failure.result != WB_OK)
        return 0;
    receiver->released = 1;
    wb_amqp_consume_step(receiver);
    if (may_give_back(receiver))
        wb_amqp_receiver_give_back_ready(receiver);
    wb_amqp_flush_some(&receiver->connection);
    return wb_amqp_consume_is_on(receiver) || receiver->ready || receiver->partial;
}

void wb_amqp_consume_again(wb_amqp_receiver *receiver)
{
    receiver->released = 0;
    wb_amqp_consume_step(receiver);
}

/* ---- reading is left alone ------------------------------------------------------- */

static int is_unread_for_long(wb_amqp_receiver *receiver)
{
    const wb_amqp_connection *connection = &receiver->connection;
    int64_t now = connection->transport->host->now();
    if (!connection->gated && !connection->paused)
        receiver->unread_since = 0;
    else if (receiver->unread_since == 0)
        receiver->unread_since = now;
    return receiver->unread_since && now - receiver->unread_since > UNREAD_MAX;
}

static void hold(wb_amqp_receiver *receiver)
{
    receiver->held = 1;
    wb_amqp_consume_step(receiver);
    wb_amqp_receiver_give_back_gated(receiver);
}

int wb_amqp_consume_before_wait(void *owner)
{
    wb_amqp_receiver *receiver = owner;
    wb_amqp_connection *connection = &receiver->connection;
    if (connection->gated)
        connection->gated = !wb_amqp_message_may_read(receiver->partial);
    int long_unread = is_unread_for_long(receiver);
    if (connection->gated && (long_unread || receiver->held))
        hold(receiver);
    else if (receiver->released || (connection->paused && long_unread))
        (void)wb_amqp_consume_release(receiver);
    wb_amqp_consume_step(receiver);
    return connection->gated || receiver->held || receiver->cancel_since;
}

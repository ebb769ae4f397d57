/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in a worker's hands: acknowledged, given back, settled in a transaction.
 */
#include "config.h"

#include "plugins/transport/kafka/kafka-consumer.h"

#define SECOND INT64_C(1000000000)
/* A coordinator that answers late holds up the worker no longer. */
#define COMMIT_WAIT (1 * SECOND)

/* ---- lists ----------------------------------------------------------------------- */

void wb_kafka_list_insert(wb_kafka_list *list, wb_kafka_message *message, wb_kafka_message *next)
{
    message->next = next;
    message->previous = next ? next->previous : list->last;
    if (message->previous)
        message->previous->next = message;
    else
        list->first = message;
    if (next)
        next->previous = message;
    else
        list->last = message;
    list->count++;
}

void wb_kafka_list_remove(wb_kafka_list *list, wb_kafka_message *message)
{
    if (message->previous)
        message->previous->next = message->next;
    else
        list->first = message->next;
    if (message->next)
        message->next->previous = message->previous;
    else
        list->last = message->previous;
    list->count--;
}

void wb_kafka_message_forget(wb_kafka_consumer *consumer, wb_kafka_message *message)
{
    wb_kafka_partition *partition = message->partition;
    if (message->is_large)
        wb_kafka_large_release(consumer, partition);
    wb_kafka_message_free(message);
    wb_kafka_partition_release(consumer, partition);
}

/* ---- in hand --------------------------------------------------------------------- */

void wb_kafka_receiver_hold(wb_kafka_receiver *receiver, wb_kafka_message *message)
{
    message->turn = receiver->turns;
    message->partition->lane->in_hand++;
    wb_kafka_list_insert(&receiver->in_hand, message, NULL);
}

static void take_out(wb_kafka_receiver *receiver, wb_kafka_message *message)
{
    message->partition->lane->in_hand--;
    wb_kafka_list_remove(&receiver->in_hand, message);
}

void wb_kafka_messages_drop(wb_kafka_consumer *consumer, int all)
{
    for (size_t i = 0; i < consumer->lane_count; i++) {
        wb_kafka_list *list = &consumer->lanes[i].returned;
        wb_kafka_message *next;
        for (wb_kafka_message *m = list->first; m; m = next) {
            next = m->next;
            if (!all && !m->partition->lost)
                continue;
            wb_kafka_list_remove(list, m);
            wb_kafka_message_forget(consumer, m);
        }
    }
}

static int is_handling(const wb_kafka_receiver *receiver)
{
    for (const wb_kafka_message *m = receiver->in_hand.last; m; m = m->previous)
        if (receiver->turns - m->turn < WB_KAFKA_KEPT_TURNS)
            return 1;
    return 0;
}

int wb_kafka_consumer_is_busy(const wb_kafka_consumer *consumer)
{
    for (const wb_kafka_receiver *r = consumer->receivers; r; r = r->next)
        if (is_handling(r))
            return 1;
    return 0;
}

/* ---- settling -------------------------------------------------------------------- */

static wb_kafka_message *ours(const wb_incoming *incoming)
{
    return (wb_kafka_message *)(uintptr_t)incoming;
}

/* Somebody may wait for it: partitions that go, lanes that would move. */
static void leave_hands(wb_kafka_consumer *consumer)
{
    if (consumer->draining && !wb_kafka_consumer_is_busy(consumer))
        (void)pthread_cond_broadcast(&consumer->settled);
    if (consumer->is_uneven)
        wb_kafka_lanes_spread(consumer);
}

/* It does not answer in time: work goes on as if all had ended well. */
static void be_careful_no_more(wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        p->careful_until = 0;
}

/* @locks lock held, released while it waits */
static void commit(wb_kafka_consumer *consumer, int wait)
{
    wb_kafka_commit_serve(consumer);
    if (!wait)
        wb_kafka_commit_start(consumer);
    else if (!wb_kafka_commit_flush(consumer, consumer->transport->host->now() + COMMIT_WAIT, 0))
        be_careful_no_more(consumer);
}

void wb_kafka_receiver_acknowledge(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                                   size_t count)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    int wait = count == 0; /* who acknowledges nothing wants to know that what it did is committed */
    (void)pthread_mutex_lock(&consumer->lock);
    for (size_t i = 0; i < count; i++) {
        wb_kafka_message *message = ours(messages[i]);
        wb_kafka_partition *partition = message->partition;
        wait |= message->raw->offset < partition->careful_until;
        wb_kafka_offsets_set(&partition->offsets, message->raw->offset, 1);
        wb_kafka_offsets_trim(&partition->offsets);
        take_out(receiver, message);
        wb_kafka_message_forget(consumer, message);
    }
    wb_kafka_consumer_follow_gaps(consumer);
    commit(consumer, wait);
    leave_hands(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* Before the first newer one of the same partition. */
static wb_kafka_message *place_of(const wb_kafka_list *list, const wb_kafka_message *message)
{
    for (wb_kafka_message *m = list->first; m; m = m->next)
        if (m->partition == message->partition && m->raw->offset > message->raw->offset)
            return m;
    return NULL;
}

/* @locks lock held */
static void give_back(wb_kafka_receiver *receiver, wb_kafka_message *message, int counts)
{
    wb_kafka_list *list = &message->partition->lane->returned;
    take_out(receiver, message);
    if (message->partition->lost) {
        wb_kafka_message_forget(receiver->consumer, message);
        return;
    }
    message->settled = 0;
    if (counts)
        message->incoming.delivery_count++;
    else
        wb_kafka_offsets_recount(&message->partition->offsets, message->raw->offset,
                                 message->incoming.delivery_count);
    wb_kafka_list_insert(list, message, place_of(list, message));
}

void wb_kafka_receiver_give_back(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                                 size_t count)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    for (size_t i = 0; i < count; i++)
        give_back(receiver, ours(messages[i]), 1);
    leave_hands(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* With WB_MODE_NONE they have left the queue. */
void wb_kafka_receiver_let_go(wb_kafka_receiver *receiver, int counts)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    while (receiver->in_hand.first) {
        wb_kafka_message *message = receiver->in_hand.first;
        if (consumer->transport->endpoint->mode == WB_MODE_NONE || consumer->has_left) {
            take_out(receiver, message);
            wb_kafka_message_forget(consumer, message);
        } else {
            give_back(receiver, message, counts);
        }
    }
    if (consumer->draining)
        (void)pthread_cond_broadcast(&consumer->settled);
}

/* What was fetched and not handed out is as if it had never been fetched. */
void wb_kafka_receiver_stop(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    receiver->stopped = 1;
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        if (p->lane->home != receiver)
            continue;
        wb_kafka_partition_pause(consumer, p, WB_KAFKA_PAUSED_STOP);
        wb_kafka_large_forget(consumer, p);
    }
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* ---- settling inside a transaction ------------------------------------------------ */

int wb_kafka_receiver_settle(wb_kafka_receiver *receiver, const wb_incoming *const *messages,
                             size_t count)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    int all = 1;
    (void)pthread_mutex_lock(&consumer->lock);
    for (size_t i = 0; i < count; i++) {
        wb_kafka_message *message = ours(messages[i]);
        message->settled = 1;
        wb_kafka_offsets_set(&message->partition->offsets, message->raw->offset, 1);
        all = all && !message->partition->lost;
    }
    (void)pthread_mutex_unlock(&consumer->lock);
    return all;
}

void wb_kafka_receiver_settle_commit(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    wb_kafka_message *next;
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->ending = 0;
    for (wb_kafka_message *m = receiver->in_hand.first; m; m = next) {
        wb_kafka_partition *partition = m->partition;
        next = m->next;
        if (!m->settled)
            continue;
        wb_kafka_offsets_trim(&partition->offsets);
        partition->sent = partition->committed = wb_kafka_offsets_low(&partition->offsets);
        partition->sent_note = wb_kafka_offsets_note(&partition->offsets);
        take_out(receiver, m);
        wb_kafka_message_forget(consumer, m);
    }
    wb_kafka_consumer_follow_gaps(consumer);
    leave_hands(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

void wb_kafka_receiver_settle_undo(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->ending = 0;
    for (wb_kafka_message *m = receiver->in_hand.first; m; m = m->next) {
        if (m->settled)
            wb_kafka_offsets_set(&m->partition->offsets, m->raw->offset, 0);
        m->settled = 0;
    }
    (void)pthread_mutex_unlock(&consumer->lock);
}

void wb_kafka_consumer_freeze(wb_kafka_consumer *consumer)
{
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->frozen = 1;
    (void)pthread_mutex_unlock(&consumer->lock);
}

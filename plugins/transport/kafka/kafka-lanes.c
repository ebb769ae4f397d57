/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes, and whose they are. There are as many as the endpoint has workers, so that each has one when
 * all are at work; while some are not, the others have theirs as well. A lane moves when nothing of it
 * is in hand, with the queue librdkafka fills for it: nothing is fetched again.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "plugins/transport/kafka/kafka-consumer.h"

/* ---- lanes ----------------------------------------------------------------------- */

int wb_kafka_lanes_make(wb_kafka_consumer *consumer, size_t count)
{
    consumer->lanes = calloc(count, sizeof *consumer->lanes);
    if (!consumer->lanes)
        return 0;
    consumer->lane_count = count;
    for (size_t i = 0; i < count; i++)
        consumer->lanes[i].messages = rd_kafka_queue_new(consumer->client->rk);
    return 1;
}

void wb_kafka_lanes_free(wb_kafka_consumer *consumer)
{
    for (size_t i = 0; i < consumer->lane_count; i++) {
        rd_kafka_queue_io_event_enable(consumer->lanes[i].messages, -1, NULL, 0);
        rd_kafka_queue_destroy(consumer->lanes[i].messages);
    }
    free(consumer->lanes);
    consumer->lanes = NULL;
    consumer->lane_count = 0;
}

/* Whose worker has the fewest partitions; of his lanes, the one that has. */
static int is_better(const wb_kafka_lane *lane, const wb_kafka_lane *than)
{
    if (!lane->home != !than->home)
        return lane->home != NULL;
    if (lane->home && lane->home->partitions != than->home->partitions)
        return lane->home->partitions < than->home->partitions;
    return lane->partitions < than->partitions;
}

wb_kafka_lane *wb_kafka_lane_choose(const wb_kafka_consumer *consumer)
{
    wb_kafka_lane *best = &consumer->lanes[0];
    for (size_t i = 1; i < consumer->lane_count; i++)
        if (is_better(&consumer->lanes[i], best))
            best = &consumer->lanes[i];
    return best;
}

void wb_kafka_lane_count(wb_kafka_lane *lane, int change)
{
    lane->partitions += (size_t)change;
    if (lane->home)
        lane->home->partitions += (size_t)change;
    lane->recent = NULL;
}

/* ---- homes ----------------------------------------------------------------------- */

/* A stopped worker takes nothing of what comes to it. */
static void follow_stop(wb_kafka_consumer *consumer, const wb_kafka_lane *lane)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        if (p->lane != lane)
            continue;
        if (lane->home->stopped)
            wb_kafka_partition_pause(consumer, p, WB_KAFKA_PAUSED_STOP);
        else
            wb_kafka_partition_resume(consumer, p, WB_KAFKA_PAUSED_STOP);
    }
}

static void leave_home(wb_kafka_lane *lane)
{
    if (!lane->home)
        return;
    lane->home->lanes--;
    lane->home->partitions -= lane->partitions;
    lane->home = NULL;
    rd_kafka_queue_io_event_enable(lane->messages, -1, NULL, 0);
}

/* What is there already woke somebody else. */
static void move(wb_kafka_consumer *consumer, wb_kafka_lane *lane, wb_kafka_receiver *to)
{
    static const uint64_t one = 1;
    leave_home(lane);
    lane->home = to;
    to->lanes++;
    to->partitions += lane->partitions;
    rd_kafka_queue_io_event_enable(lane->messages, to->wake, &one, sizeof one);
    follow_stop(consumer, lane);
    wb_kafka_receiver_wake(to);
}

static int has_less(const wb_kafka_receiver *one, const wb_kafka_receiver *other)
{
    if (one->stopped != other->stopped)
        return other->stopped;
    if (one->partitions != other->partitions)
        return one->partitions < other->partitions;
    return one->lanes < other->lanes;
}

/* NULL when there is none. */
static wb_kafka_receiver *find_least(const wb_kafka_consumer *consumer)
{
    wb_kafka_receiver *least = consumer->receivers;
    for (wb_kafka_receiver *r = least; r; r = r->next)
        if (has_less(r, least))
            least = r;
    return least;
}

/* Whether the two have more alike when a lane has moved; a stopped worker needs none. */
static int evens_out(const wb_kafka_lane *lane, const wb_kafka_receiver *to)
{
    const wb_kafka_receiver *from = lane->home;
    if (from == to || from->stopped)
        return from != to;
    if (lane->partitions)
        return from->partitions > to->partitions &&
               lane->partitions < from->partitions - to->partitions;
    return from->partitions >= to->partitions && from->lanes > to->lanes + 1;
}

static wb_kafka_lane *find_movable(wb_kafka_consumer *consumer, const wb_kafka_receiver *to)
{
    wb_kafka_lane *best = NULL;
    for (size_t i = 0; i < consumer->lane_count; i++) {
        wb_kafka_lane *lane = &consumer->lanes[i];
        if (!evens_out(lane, to))
            continue;
        if (lane->in_hand)
            consumer->is_uneven = 1;
        else if (!best || lane->home->partitions > best->home->partitions)
            best = lane;
    }
    return best;
}

void wb_kafka_lanes_spread(wb_kafka_consumer *consumer)
{
    wb_kafka_receiver *least;
    wb_kafka_lane *lane;
    consumer->is_uneven = 0;
    for (size_t i = 0; i < consumer->lane_count; i++)
        if (!consumer->lanes[i].home && (least = find_least(consumer)))
            move(consumer, &consumer->lanes[i], least);
    while ((least = find_least(consumer)) && !least->stopped && (lane = find_movable(consumer, least)))
        move(consumer, lane, least);
}

/* ---- receivers ------------------------------------------------------------------- */

void wb_kafka_receiver_wake(wb_kafka_receiver *receiver)
{
    (void)eventfd_write(receiver->wake, 1);
}

void wb_kafka_receivers_wake(const wb_kafka_consumer *consumer)
{
    for (wb_kafka_receiver *r = consumer->receivers; r; r = r->next)
        wb_kafka_receiver_wake(r);
}

int wb_kafka_receiver_is_open(const wb_kafka_receiver *receiver)
{
    return receiver->consumer != NULL;
}

int wb_kafka_receiver_attach(wb_kafka_receiver *receiver, wb_kafka_consumer *consumer,
                             uint32_t prefetch)
{
    receiver->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (receiver->wake < 0)
        return errno;
    receiver->prefetch = prefetch ? prefetch : 1;
    receiver->consumer = consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    receiver->next = consumer->receivers;
    consumer->receivers = receiver;
    wb_kafka_lanes_spread(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
    return 0;
}

static void unlink_receiver(wb_kafka_consumer *consumer, const wb_kafka_receiver *receiver)
{
    wb_kafka_receiver **at = &consumer->receivers;
    while (*at != receiver)
        at = &(*at)->next;
    *at = receiver->next;
}

void wb_kafka_receiver_detach(wb_kafka_receiver *receiver, int counts)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    if (!consumer)
        return;
    (void)pthread_mutex_lock(&consumer->lock);
    wb_kafka_receiver_let_go(receiver, counts);
    for (size_t i = 0; i < consumer->lane_count; i++)
        if (consumer->lanes[i].home == receiver)
            leave_home(&consumer->lanes[i]);
    unlink_receiver(consumer, receiver);
    wb_kafka_lanes_spread(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
    (void)close(receiver->wake);
    memset(receiver, 0, sizeof *receiver);
}

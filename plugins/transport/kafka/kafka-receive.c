/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages taken: from librdkafka, or among those given back.
 */
#include "config.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <waybill/sys/expiry.h>

#include "plugins/transport/kafka/kafka-consumer.h"

#define SECOND INT64_C(1000000000)
/* Longest wait until it is written down that a partition's messages are handed out. */
#define NOTE_WAIT (5 * SECOND)

/* ---- errors ---------------------------------------------------------------------- */

static void keep_error(wb_kafka_consumer *consumer, const rd_kafka_message_t *message)
{
    rd_kafka_resp_err_t code = message->err;
    char text[400], doing[WB_KAFKA_TOPIC_SIZE + 40] = "go on receiving";
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        code = rd_kafka_fatal_error(consumer->client->rk, text, sizeof text);
    else
        (void)snprintf(text, sizeof text, "%s", rd_kafka_message_errstr(message));
    if (message->rkt)
        (void)snprintf(doing, sizeof doing, "receive from topic \"%s\", partition %" PRId32,
                       rd_kafka_topic_name(message->rkt), message->partition);
    if (code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
        code == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE)
        atomic_store(&consumer->transport->out_of_range, 1);
    (void)pthread_mutex_lock(&consumer->lock);
    wb_kafka_failure_map_fence(&consumer->failure, consumer->transport, consumer->slot, code, doing);
    (void)wb_kafka_failure_map(&consumer->failure, code, doing, text);
    /* The worker goes on when somebody has repaired it; only a twin of ours ends it. */
    if (!wb_kafka_map_is_fenced(code))
        consumer->failure.result = WB_NOT_CONNECTED;
    wb_kafka_receivers_wake(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

void wb_kafka_consumer_note_error(wb_kafka_consumer *consumer, const rd_kafka_message_t *message)
{
    const wb_host *host = consumer->transport->host;
    wb_field fields[] = { { "reason", rd_kafka_message_errstr(message) } };
    if (wb_kafka_map_ends_consumer(message->err))
        keep_error(consumer, message);
    else
        host->log(host, WB_LOG_INFO, "librdkafka reports a passing error", fields, 1);
}

/* ---- what expired ---------------------------------------------------------------- */

/* By the time of its record: the sender's clock, or the broker's where a topic is set so. */
static int has_expired(const wb_kafka_message *message)
{
    struct timespec now;
    rd_kafka_timestamp_type_t type;
    int64_t sent = rd_kafka_message_timestamp(message->raw, &type);
    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || sent < 0 || sent > INT64_MAX / WB_MILLISECONDS)
        sent = 0; /* whoever sent it may have written anything */
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return wb_has_expired(message->incoming.headers, message->incoming.header_count,
                          sent * WB_MILLISECONDS, now.tv_sec * SECOND + now.tv_nsec);
}

/* Its place is passed over, as that of what is no message. The poll thread commits that, or the next
 * transaction; at the end of a partition the poll thread in any case. */
static void drop_expired(wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                         wb_kafka_message *message)
{
    const wb_host *host = consumer->transport->host;
    (void)wb_kafka_offsets_skip(&partition->offsets, message->raw->offset + 1);
    wb_kafka_message_free(message);
    if (WB_HAS(host, wb_host, expired))
        host->expired(host, 1);
}

/* ---- taking ---------------------------------------------------------------------- */

/* As far as the note found with the assignment tells. */
static uint32_t deliveries_of(const wb_kafka_partition *partition, int64_t offset)
{
    return offset - partition->start < partition->found.span ? partition->found.deliveries : 0;
}

/* Handing out the next would skip this one. */
static void fail_without_memory(wb_kafka_consumer *consumer)
{
    wb_kafka_receivers_wake(consumer);
    (void)wb_kafka_failure_set(&consumer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                               "out of memory for a message");
}

/* Of a partition that is ours. Consumes `raw`. @return NULL when it is not handed out (now). */
static wb_kafka_message *make(wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                              rd_kafka_message_t *raw)
{
    uint32_t deliveries = deliveries_of(partition, raw->offset);
    wb_kafka_message *message = wb_kafka_message_make(consumer->transport->endpoint, raw);
    if (!message) {
        rd_kafka_message_destroy(raw);
        fail_without_memory(consumer);
        return NULL;
    }
    message->incoming.delivery_count = deliveries;
    if (has_expired(message)) {
        drop_expired(consumer, partition, message);
        return NULL;
    }
    if (message->is_large && !wb_kafka_large_admit(consumer, partition, raw)) {
        wb_kafka_message_free(message);
        return NULL;
    }
    if (wb_kafka_offsets_add(&partition->offsets, raw->offset, deliveries + 1))
        return message;
    if (message->is_large)
        wb_kafka_large_release(consumer, partition);
    wb_kafka_message_free(message);
    fail_without_memory(consumer);
    return NULL;
}

/* Messages come in runs of one partition. NULL when it is not ours (any more). */
static wb_kafka_partition *partition_of(wb_kafka_consumer *consumer, wb_kafka_lane *lane,
                                        const rd_kafka_message_t *raw)
{
    const char *topic = rd_kafka_topic_name(raw->rkt);
    wb_kafka_partition *recent = lane->recent;
    if (!recent || recent->number != raw->partition || strcmp(recent->topic, topic) != 0)
        lane->recent = recent = wb_kafka_partition_find(consumer, topic, raw->partition);
    return recent;
}

/* Consumes `raw`. @return NULL when it is not ours (any more), or not handed out. */
static wb_kafka_message *adopt(wb_kafka_consumer *consumer, wb_kafka_lane *lane,
                               rd_kafka_message_t *raw)
{
    wb_kafka_partition *partition = partition_of(consumer, lane, raw);
    if (partition)
        wb_kafka_partition_begin(partition, raw->offset);
    if (!partition || raw->offset < partition->offsets.next) {
        rd_kafka_message_destroy(raw);
        return NULL;
    }
    lane->taken += raw->len;
    wb_kafka_message *message = make(consumer, partition, raw);
    if (!message)
        return NULL;
    message->partition = partition;
    message->incoming.partition = partition->name;
    message->incoming.partition_size = partition->name_size;
    message->incoming.position = (uint64_t)raw->offset;
    partition->held++;
    partition->met_end = 0;
    /* That the first is handed out must be known before its handler ends the process; of later
     * ones it is noted with the commits of those before. */
    partition->note_due |= !partition->noted;
    partition->noted = 1;
    return message;
}

static wb_kafka_message *take_returned(wb_kafka_lane *lane)
{
    wb_kafka_message *message = lane->returned.first;
    wb_kafka_list_remove(&lane->returned, message);
    wb_kafka_offsets_recount(&message->partition->offsets, message->raw->offset,
                             message->incoming.delivery_count + 1);
    return message;
}

/* The end of a transaction takes an offset as a message does, and nobody is handed it: behind the
 * last message it would look like one that waits, for ever. With transactions the offset goes with
 * the next one, unless there is nothing that one could be about. */
static void take_end(wb_kafka_consumer *consumer, rd_kafka_message_t *raw)
{
    wb_kafka_partition *partition =
        wb_kafka_partition_find(consumer, rd_kafka_topic_name(raw->rkt), raw->partition);
    if (partition) {
        partition->met_end = 1;
        wb_kafka_partition_begin(partition, raw->offset);
    }
    if (partition && wb_kafka_offsets_skip(&partition->offsets, raw->offset))
        wb_kafka_commit_start(consumer);
    rd_kafka_message_destroy(raw);
}

/* @locks lock held, but not while it is noted */
static void take_error(wb_kafka_consumer *consumer, const wb_kafka_lane *lane, rd_kafka_message_t *raw)
{
    (void)pthread_mutex_unlock(&consumer->lock);
    wb_kafka_consumer_note_error(consumer, raw);
    (void)pthread_mutex_lock(&consumer->lock);
    rd_kafka_message_destroy(raw);
    if (lane->home) /* maybe another by now */
        wb_kafka_receiver_wake(lane->home);
}

/* One message, or NULL when there is none now. Errors come this way, too.
 * @locks lock held, but not while an error is noted */
static wb_kafka_message *take_one(wb_kafka_consumer *consumer, wb_kafka_lane *lane)
{
    wb_kafka_message *message = NULL;
    rd_kafka_message_t *raw;
    if (lane->returned.first)
        return take_returned(lane);
    /* One by one: taking several at once loses messages before 2.1 when partitions move. */
    while (!message && consumer->failure.result == WB_OK &&
           (raw = rd_kafka_consume_queue(lane->messages, 0))) {
        if (raw->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            take_end(consumer, raw);
        else if (!raw->err)
            message = adopt(consumer, lane, raw);
        else {
            take_error(consumer, lane, raw);
            break;
        }
    }
    if (message)
        consumer->transport->host->crash_point("received_frame");
    else
        wb_kafka_lane_ran_empty(consumer, lane);
    return message;
}

static size_t take_from(wb_kafka_receiver *receiver, wb_kafka_lane *lane,
                        const wb_incoming **ret_messages, size_t max)
{
    size_t count = 0;
    while (count < max && receiver->in_hand.count < receiver->prefetch) {
        wb_kafka_message *message = take_one(receiver->consumer, lane);
        if (!message)
            break;
        wb_kafka_receiver_hold(receiver, message);
        ret_messages[count++] = &message->incoming;
    }
    return count;
}

/* Beginning with another lane each time, where there are several. */
static size_t take(wb_kafka_receiver *receiver, const wb_incoming **ret_messages, size_t max)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    size_t count = 0;
    if (consumer->draining || receiver->stopped)
        return 0;
    wb_kafka_consumer_follow_turns(consumer);
    for (size_t i = 0; i < consumer->lane_count && count < max; i++) {
        wb_kafka_lane *lane = &consumer->lanes[(receiver->turns + i) % consumer->lane_count];
        if (lane->home == receiver)
            count += take_from(receiver, lane, ret_messages + count, max - count);
    }
    return count;
}

static int is_forgetful(const wb_kafka_consumer *consumer)
{
    return consumer->transport->endpoint->mode == WB_MODE_NONE;
}

/* A partition may be lost while its commit waits for the one before: that of others says nothing of it then.
 * @return how many have left the queue; they are in front. */
static size_t keep_committed(const wb_incoming **messages, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const wb_kafka_message *message = (const wb_kafka_message *)messages[i];
        if (message->partition->committed > message->raw->offset)
            messages[kept++] = messages[i];
    }
    return kept;
}

/* With WB_MODE_NONE they leave the queue before the worker sees them. Those that did not are for whoever gets their
 * partition, and the session ends; those that did are nobody else's any more, and it ends with the next call. */
static int commit_taken(wb_kafka_consumer *consumer, const wb_incoming **messages, size_t *count)
{
    const size_t taken = *count;
    const wb_transport *transport = consumer->transport;
    for (size_t i = 0; i < taken; i++) {
        const wb_kafka_message *message = (const wb_kafka_message *)messages[i];
        wb_kafka_offsets_set(&message->partition->offsets, message->raw->offset, 1);
        wb_kafka_offsets_trim(&message->partition->offsets);
    }
    (void)wb_kafka_commit_flush(consumer, transport->host->now() + transport->config->confirm_timeout, 0);
    *count = keep_committed(messages, taken);
    if (*count == taken)
        return WB_OK;
    int result = wb_kafka_failure_set(&consumer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                                      "offsets could not be committed before the messages are handled");
    return *count ? WB_OK : result;
}

/* Before a transaction begins the commit of an end must have been answered, too. */
static int has_notes(const wb_kafka_consumer *consumer)
{
    if (consumer->committing && consumer->transport->endpoint->mode == WB_MODE_SENDS_ATOMIC)
        return 1;
    for (const wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        if (p->note_due && !p->lost)
            return 1;
    return 0;
}

/* A handler may end the process at once: the note must be there before. Where it cannot be
 * written, messages are handled all the same; but one that may yet arrive would set back what
 * a transaction commits meanwhile. */
static int write_notes(wb_kafka_consumer *consumer)
{
    const wb_transport *transport = consumer->transport;
    if (wb_kafka_commit_flush(consumer, transport->host->now() + NOTE_WAIT, 0) ||
        transport->endpoint->mode != WB_MODE_SENDS_ATOMIC)
        return WB_OK;
    if (!consumer->committing && !consumer->commit_unknown)
        return WB_OK;
    return wb_kafka_failure_set(&consumer->failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                                "the coordinator of the group does not answer");
}

static int before_handing_out(wb_kafka_consumer *consumer, const wb_incoming **messages, size_t *count)
{
    if (is_forgetful(consumer))
        return commit_taken(consumer, messages, count);
    return has_notes(consumer) ? write_notes(consumer) : WB_OK;
}

static int take_locked(wb_kafka_receiver *receiver, const wb_incoming **ret_messages, size_t max,
                       size_t *ret_count)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    int result = consumer->failure.result;
    if (result == WB_OK)
        *ret_count = take(receiver, ret_messages, max);
    if (*ret_count)
        result = before_handing_out(consumer, ret_messages, ret_count);
    else
        result = consumer->failure.result;
    if (result != WB_OK)
        *ret_count = 0;
    (void)pthread_mutex_unlock(&consumer->lock);
    return result;
}

static void wait_for_more(wb_kafka_receiver *receiver, int64_t deadline)
{
    struct pollfd wait = { .fd = receiver->wake, .events = POLLIN };
    eventfd_t ignored;
    (void)poll(&wait, 1, wb_kafka_until(receiver->consumer->transport, deadline));
    (void)eventfd_read(receiver->wake, &ignored);
}

/* The poll thread may be waiting for what is in hand. */
static void begin_turn(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    receiver->turns++;
    if (consumer->draining)
        (void)pthread_cond_broadcast(&consumer->settled);
    (void)pthread_mutex_unlock(&consumer->lock);
}

int wb_kafka_receiver_receive(wb_kafka_receiver *receiver, int64_t deadline,
                              const wb_incoming **ret_messages, size_t max, size_t *ret_count)
{
    begin_turn(receiver);
    for (;;) {
        int result = take_locked(receiver, ret_messages, max, ret_count);
        if (result != WB_OK || *ret_count)
            return result;
        if (atomic_exchange(&receiver->interrupted, 0) || receiver->stopped ||
            receiver->consumer->transport->host->now() >= deadline)
            return WB_OK;
        wait_for_more(receiver, deadline);
    }
}

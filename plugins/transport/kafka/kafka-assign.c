/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions come and go. When they come, reading begins at an offset we name (kafka-start.c).
 * When they go, what the worker has in hand is finished first, if
 * that does not take long, and committed; only then may somebody else begin.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/transport/kafka/kafka-consumer.h"

#define SECOND INT64_C(1000000000)

/* ---- partitions ------------------------------------------------------------------ */

wb_kafka_partition *wb_kafka_partition_find(const wb_kafka_consumer *consumer, const char *topic,
                                            int32_t number)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        if (!p->lost && p->number == number && strcmp(p->topic, topic) == 0)
            return p;
    return NULL;
}

static void unlink_and_free(wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    wb_kafka_partition **at = &consumer->partitions;
    while (*at != partition)
        at = &(*at)->next;
    *at = partition->next;
    wb_kafka_offsets_free(&partition->offsets);
    free(partition);
}

void wb_kafka_partition_begin(wb_kafka_partition *partition, int64_t offset)
{
    if (!partition->begins_unknown)
        return;
    partition->begins_unknown = 0;
    partition->start = partition->sent = partition->committed = offset;
    wb_kafka_offsets_init(&partition->offsets, offset);
}

void wb_kafka_partition_release(wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    if (--partition->held == 0 && partition->lost)
        unlink_and_free(consumer, partition);
}

/* Its messages that nobody has taken are dropped with it: by librdkafka, which knows those of
 * earlier assignments, and because none is looked up here any more. */
static void lose(wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    partition->lost = 1;
    wb_kafka_lane_count(partition->lane, -1);
    wb_kafka_large_forget(consumer, partition);
    consumer->promise_broken |= partition->promised != WB_KAFKA_NOT_PROMISED;
    rd_kafka_queue_forward(partition->queue, NULL);
    rd_kafka_queue_destroy(partition->queue);
    partition->queue = NULL;
    if (partition->held == 0)
        unlink_and_free(consumer, partition);
}

void wb_kafka_partitions_lose(wb_kafka_consumer *consumer)
{
    wb_kafka_partition *next;
    for (wb_kafka_partition *p = consumer->partitions; p; p = next) {
        next = p->next;
        if (!p->lost)
            lose(consumer, p);
    }
    wb_kafka_messages_drop(consumer, 0);
}

/* ---- assigned -------------------------------------------------------------------- */

/* The host takes a message that was delivered so often for one that may end the process.
 * What was handed out after the note was written is then under suspicion, too: all that a
 * worker can have in hand. */
#define DELIVERIES_ALARMING 3
/* So many are quick enough to be done while one commit is on its way. */
#define CAREFUL_MIN 1000

static uint32_t most_in_hand(const wb_kafka_consumer *consumer)
{
    return 2 * consumer->transport->endpoint->batch_max;
}

static wb_kafka_note read_note(const wb_kafka_consumer *consumer,
                               const rd_kafka_topic_partition_t *committed)
{
    wb_kafka_note note = wb_kafka_note_read(committed->metadata, committed->metadata_size);
    uint32_t most = most_in_hand(consumer);
    if (note.deliveries >= DELIVERIES_ALARMING && note.span < most)
        note.span = most;
    return note;
}

/* After a session that did not end in order. Who ended it is among the next ones, and comes first
 * next time only when it is known of those before that they are done: if they are as quick as
 * commits are slow, each death would else bring us a single message nearer to it. */
static void be_careful(const wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    uint32_t most = most_in_hand(consumer);
    if (partition->found.is_there)
        partition->careful_until = partition->start + (most > CAREFUL_MIN ? most : CAREFUL_MIN);
}

static wb_kafka_partition *make_partition(wb_kafka_consumer *consumer,
                                          const rd_kafka_topic_partition_t *committed, int64_t start)
{
    wb_kafka_partition *partition = calloc(1, sizeof *partition);
    if (!partition)
        return NULL;
    (void)snprintf(partition->topic, sizeof partition->topic, "%s", committed->topic);
    partition->number = committed->partition;
    partition->name_size = (size_t)snprintf(partition->name, sizeof partition->name, "%s/%" PRId32,
                                            committed->topic, committed->partition);
    partition->begins_unknown = 1;
    wb_kafka_partition_begin(partition, start < 0 ? 0 : start);
    partition->begins_unknown = start < 0;
    partition->promised = WB_KAFKA_NOT_PROMISED;
    if (committed->offset == start)
        partition->found = partition->sent_note = read_note(consumer, committed);
    be_careful(consumer, partition);
    partition->lane = wb_kafka_lane_choose(consumer);
    wb_kafka_lane_count(partition->lane, 1);
    /* Before it is assigned: a queue forwarded by us stays so, librdkafka leaves it alone. */
    partition->queue =
        rd_kafka_queue_get_partition(consumer->client->rk, partition->topic, partition->number);
    if (partition->queue)
        rd_kafka_queue_forward(partition->queue, partition->lane->messages);
    /* Whether it waited is librdkafka's own knowledge, and outlives an assignment. */
    partition->paused = WB_KAFKA_PAUSED_GAP;
    wb_kafka_partition_resume(consumer, partition, WB_KAFKA_PAUSED_GAP);
    return partition;
}

static int add_partitions(wb_kafka_consumer *consumer,
                          const rd_kafka_topic_partition_list_t *committed,
                          const rd_kafka_topic_partition_list_t *starts)
{
    for (int i = 0; i < committed->cnt; i++) {
        wb_kafka_partition *partition =
            make_partition(consumer, &committed->elems[i], starts->elems[i].offset);
        if (!partition)
            return 0;
        partition->next = consumer->partitions;
        consumer->partitions = partition;
        if (!partition->queue)
            return 0;
    }
    wb_kafka_lanes_spread(consumer);
    return 1;
}

static rd_kafka_resp_err_t locate(wb_kafka_consumer *consumer,
                                  rd_kafka_topic_partition_list_t *assigned)
{
    if (assigned->cnt == 0) /* more sessions than partitions: librdkafka refuses to ask */
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(assigned);
    rd_kafka_resp_err_t code = wb_kafka_start_find(consumer, committed, assigned);
    if (!code) {
        (void)pthread_mutex_lock(&consumer->lock);
        if (!add_partitions(consumer, committed, assigned))
            code = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
        (void)pthread_mutex_unlock(&consumer->lock);
        atomic_store(&consumer->transport->out_of_range, 0);
    }
    rd_kafka_topic_partition_list_destroy(committed);
    return code;
}

static void fail(wb_kafka_consumer *consumer, rd_kafka_resp_err_t code, const char *doing)
{
    (void)pthread_mutex_lock(&consumer->lock);
    (void)wb_kafka_failure_map(&consumer->failure, code, doing, NULL);
    wb_kafka_partitions_lose(consumer);
    wb_kafka_receivers_wake(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
}

/* The group has moved on meanwhile: librdkafka joins again, and brings other partitions. */
static int is_assigned_again(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
           code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID;
}

/* With NULL the client would wait for another answer: it would never join again, nor leave. */
static void assign_none(rd_kafka_t *rk)
{
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);
    (void)rd_kafka_assign(rk, none);
    rd_kafka_topic_partition_list_destroy(none);
}

static void reject_assignment(wb_kafka_consumer *consumer, rd_kafka_resp_err_t code)
{
    if (!is_assigned_again(code))
        fail(consumer, code, "learn where to begin");
    assign_none(consumer->client->rk);
}

static void on_assigned(wb_kafka_consumer *consumer, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_t *rk = consumer->client->rk;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (partitions->cnt) /* there may be fewer partitions than members */
        code = locate(consumer, partitions);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        reject_assignment(consumer, code);
        return;
    }
    code = rd_kafka_assign(rk, partitions);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail(consumer, code, "take its partitions");
    else
        atomic_store(&consumer->transport->unreachable_logged, 0);
}

/* ---- revoked --------------------------------------------------------------------- */

static void log_undrained(const wb_kafka_consumer *consumer)
{
    const wb_host *host = consumer->transport->host;
    char count[24];
    size_t in_hand = 0;
    for (size_t i = 0; i < consumer->lane_count; i++)
        in_hand += consumer->lanes[i].in_hand;
    (void)snprintf(count, sizeof count, "%zu", in_hand);
    wb_field fields[] = { { "messages", count } };
    host->log(host, WB_LOG_WARNING,
              "partitions are taken away while messages are handled: others receive them again",
              fields, 1);
}

/* Nothing new is handed out from here on. @locks lock held, released while it waits */
static void drain(wb_kafka_consumer *consumer)
{
    struct timespec latest;
    (void)clock_gettime(CLOCK_MONOTONIC, &latest);
    latest.tv_sec += (time_t)(consumer->drain_max / SECOND);
    consumer->draining = 1;
    while (wb_kafka_consumer_is_busy(consumer) && !consumer->closing)
        if (pthread_cond_timedwait(&consumer->settled, &consumer->lock, &latest) == ETIMEDOUT) {
            log_undrained(consumer);
            break;
        }
}

static void on_revoked(wb_kafka_consumer *consumer)
{
    rd_kafka_t *rk = consumer->client->rk;
    int lost = rd_kafka_assignment_lost(rk);
    (void)pthread_mutex_lock(&consumer->lock);
    /* Lost means that others have them already: what we would commit is not ours to say. */
    if (!lost && !consumer->closing) {
        drain(consumer);
        if (!consumer->closing)
            (void)wb_kafka_commit_flush(consumer,
                                        consumer->transport->host->now() +
                                            consumer->transport->config->connect_timeout,
                                        1);
    }
    /* When it closes, who closes it commits, and forgets them itself. */
    if (!consumer->closing || lost)
        wb_kafka_partitions_lose(consumer);
    consumer->draining = 0;
    (void)pthread_mutex_unlock(&consumer->lock);
    (void)rd_kafka_assign(rk, NULL);
}

void wb_kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                           rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    wb_kafka_consumer *consumer = ((wb_kafka_client *)opaque)->owner;
    switch (code) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
        if (consumer->closing)
            assign_none(rk);
        else
            on_assigned(consumer, partitions);
        break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: on_revoked(consumer); break;
    default: (void)rd_kafka_assign(rk, NULL); break;
    }
}

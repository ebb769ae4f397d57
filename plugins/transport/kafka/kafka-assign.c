/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions come and go. When they come, reading begins at an offset we name, never at one
 * a reset policy chooses. When they go, what the worker has in hand is finished first, if
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
/* A broker looks for transactions to abort only so often
 * (transaction.abort.timed.out.transaction.cleanup.interval.ms). */
#define ABORT_DELAY (10 * SECOND)

/* Timestamps that mean an end of the log (ListOffsets). */
#define FIRST_OFFSET RD_KAFKA_OFFSET_BEGINNING
#define LAST_OFFSET RD_KAFKA_OFFSET_END

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
    wb_kafka_messages_drop_lost(consumer);
}

/* ---- where to begin -------------------------------------------------------------- */

static int query_ends(wb_kafka_consumer *consumer, const rd_kafka_topic_partition_list_t *committed,
                      int64_t end, int64_t deadline, rd_kafka_topic_partition_list_t **ret_ends,
                      rd_kafka_resp_err_t *ret_code)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(committed->cnt);
    for (int i = 0; i < committed->cnt; i++)
        rd_kafka_topic_partition_list_add(list, committed->elems[i].topic,
                                          committed->elems[i].partition)
            ->offset = end;
    *ret_code = rd_kafka_offsets_for_times(consumer->client->rk, list,
                                           wb_kafka_until(consumer->transport, deadline));
    for (int i = 0; i < list->cnt && !*ret_code; i++)
        *ret_code = list->elems[i].err;
    *ret_ends = list;
    return *ret_code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int64_t offset_of(const rd_kafka_topic_partition_list_t *list,
                         const rd_kafka_topic_partition_t *wanted)
{
    const rd_kafka_topic_partition_t *found =
        rd_kafka_topic_partition_list_find((rd_kafka_topic_partition_list_t *)(uintptr_t)list,
                                           wanted->topic, wanted->partition);
    return found ? found->offset : RD_KAFKA_OFFSET_INVALID;
}

static void log_gone(const wb_kafka_consumer *consumer, const rd_kafka_topic_partition_t *committed,
                     int64_t first, int64_t last)
{
    const wb_host *host = consumer->transport->host;
    char number[16], from[24], to[24], count[24];
    int gone = committed->offset < first;
    (void)snprintf(number, sizeof number, "%" PRId32, committed->partition);
    (void)snprintf(from, sizeof from, "%" PRId64, committed->offset);
    (void)snprintf(to, sizeof to, "%" PRId64, first);
    (void)snprintf(count, sizeof count, "%" PRId64,
                   gone ? first - committed->offset : committed->offset - last);
    wb_field fields[] = { { "endpoint", consumer->transport->endpoint->name },
                          { "topic", committed->topic },
                          { "partition", number },
                          { "committed", from },
                          { "going_on_at", to },
                          { "messages", count } };
    host->log(host, WB_LOG_ERROR,
              gone ? "messages are lost: the topic's retention deleted them before they were read"
                   : "the log is shorter than what was read of it: messages are lost, others are "
                     "delivered again",
              fields, 6);
}

/* A committed offset is beyond the end for a moment when a broker restarts, because the end
 * others may see lags behind. Only what a broker said to be out of range is taken for it. */
static int is_out_of_range(const wb_kafka_consumer *consumer, int64_t committed, int64_t first,
                           int64_t last)
{
    return committed < first ||
           (committed > last && atomic_load(&consumer->transport->out_of_range));
}

static int64_t choose_start(const wb_kafka_consumer *consumer,
                            const rd_kafka_topic_partition_t *committed, int64_t first, int64_t last)
{
    const wb_transport *transport = consumer->transport;
    if (committed->offset < 0)
        return transport->config->event_start == WB_KAFKA_START_LATEST &&
                       strcmp(committed->topic, transport->endpoint->name) != 0
                   ? last
                   : first;
    if (!is_out_of_range(consumer, committed->offset, first, last))
        return committed->offset;
    log_gone(consumer, committed, first, last);
    return first;
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
    partition->start = partition->sent = partition->committed = start;
    partition->promised = WB_KAFKA_NOT_PROMISED;
    wb_kafka_offsets_init(&partition->offsets, start);
    if (committed->offset == start)
        partition->found = partition->sent_note = read_note(consumer, committed);
    be_careful(consumer, partition);
    /* Before it is assigned: a queue forwarded by us stays so, librdkafka leaves it alone. */
    partition->queue =
        rd_kafka_queue_get_partition(consumer->client->rk, partition->topic, partition->number);
    if (partition->queue)
        rd_kafka_queue_forward(partition->queue, consumer->messages);
    /* Whether it waited is librdkafka's own knowledge, and outlives an assignment. */
    partition->paused = WB_KAFKA_PAUSED_GAP;
    wb_kafka_partition_resume(consumer, partition, WB_KAFKA_PAUSED_GAP);
    return partition;
}

static int add_partitions(wb_kafka_consumer *consumer,
                          const rd_kafka_topic_partition_list_t *committed,
                          const rd_kafka_topic_partition_list_t *firsts,
                          const rd_kafka_topic_partition_list_t *lasts,
                          rd_kafka_topic_partition_list_t *assigned)
{
    for (int i = 0; i < committed->cnt; i++) {
        const rd_kafka_topic_partition_t *entry = &committed->elems[i];
        int64_t start = choose_start(consumer, entry, offset_of(firsts, entry),
                                     offset_of(lasts, entry));
        wb_kafka_partition *partition = make_partition(consumer, entry, start);
        if (!partition)
            return 0;
        (void)rd_kafka_topic_partition_list_set_offset(assigned, entry->topic, entry->partition,
                                                       start);
        partition->next = consumer->partitions;
        consumer->partitions = partition;
        if (!partition->queue)
            return 0;
    }
    return 1;
}

static int is_closing(wb_kafka_consumer *consumer)
{
    (void)pthread_mutex_lock(&consumer->lock);
    int answer = consumer->closing;
    (void)pthread_mutex_unlock(&consumer->lock);
    return answer;
}

static rd_kafka_resp_err_t ask_committed(const wb_kafka_consumer *consumer,
                                         rd_kafka_topic_partition_list_t *list, int64_t deadline)
{
    rd_kafka_resp_err_t code = rd_kafka_committed(consumer->client->rk, list,
                                                  wb_kafka_until(consumer->transport, deadline));
    for (int i = 0; i < list->cnt && !code; i++)
        code = list->elems[i].err;
    return code;
}

/* While a transaction over them is open, maybe of a process that died, nobody is told; but it
 * has an end. Joining again would disturb the others and bring nothing. */
static rd_kafka_resp_err_t find_committed(wb_kafka_consumer *consumer,
                                          rd_kafka_topic_partition_list_t *list)
{
    const wb_transport *transport = consumer->transport;
    int64_t start = transport->host->now(), step = transport->config->connect_timeout;
    int64_t most = transport->endpoint->mode == WB_MODE_SENDS_ATOMIC
                       ? transport->config->transaction_timeout + ABORT_DELAY
                       : 0;
    rd_kafka_resp_err_t code;
    do
        code = ask_committed(consumer, list, transport->host->now() + step);
    while ((code == RD_KAFKA_RESP_ERR__TIMED_OUT ||
            code == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT) &&
           transport->host->now() - start < most && !is_closing(consumer));
    return code;
}

static rd_kafka_resp_err_t locate(wb_kafka_consumer *consumer,
                                  rd_kafka_topic_partition_list_t *assigned)
{
    if (assigned->cnt == 0) /* more sessions than partitions: librdkafka refuses to ask */
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_t *committed = rd_kafka_topic_partition_list_copy(assigned);
    rd_kafka_topic_partition_list_t *firsts = NULL, *lasts = NULL;
    rd_kafka_resp_err_t code = find_committed(consumer, committed);
    int64_t deadline =
        consumer->transport->host->now() + consumer->transport->config->connect_timeout;
    if (!code && query_ends(consumer, committed, FIRST_OFFSET, deadline, &firsts, &code) &&
        query_ends(consumer, committed, LAST_OFFSET, deadline, &lasts, &code)) {
        (void)pthread_mutex_lock(&consumer->lock);
        if (!add_partitions(consumer, committed, firsts, lasts, assigned))
            code = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
        (void)pthread_mutex_unlock(&consumer->lock);
        atomic_store(&consumer->transport->out_of_range, 0);
    }
    rd_kafka_topic_partition_list_destroy(committed);
    if (firsts)
        rd_kafka_topic_partition_list_destroy(firsts);
    if (lasts)
        rd_kafka_topic_partition_list_destroy(lasts);
    return code;
}

static void fail(wb_kafka_consumer *consumer, rd_kafka_resp_err_t code, const char *doing)
{
    (void)pthread_mutex_lock(&consumer->lock);
    (void)wb_kafka_failure_map(&consumer->failure, code, doing, NULL);
    wb_kafka_partitions_lose(consumer);
    (void)pthread_mutex_unlock(&consumer->lock);
    wb_kafka_consumer_wake(consumer);
}

static void on_assigned(wb_kafka_consumer *consumer, rd_kafka_topic_partition_list_t *partitions)
{
    rd_kafka_t *rk = consumer->client->rk;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (partitions->cnt) /* there may be fewer partitions than members */
        code = locate(consumer, partitions);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        fail(consumer, code, "learn where to begin");
        (void)rd_kafka_assign(rk, NULL);
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
    (void)snprintf(count, sizeof count, "%zu", consumer->in_hand.count);
    wb_field fields[] = { { "endpoint", consumer->transport->endpoint->name },
                          { "messages", count } };
    host->log(host, WB_LOG_WARNING,
              "partitions are taken away while messages are handled: others receive them again",
              fields, 2);
}

/* Nothing new is handed out meanwhile. @locks lock held, released while it waits */
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
    consumer->draining = 0;
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
    /* When it closes, the worker commits, and forgets them itself. */
    if (!consumer->closing || lost)
        wb_kafka_partitions_lose(consumer);
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
            (void)rd_kafka_assign(rk, NULL);
        else
            on_assigned(consumer, partitions);
        break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: on_revoked(consumer); break;
    default: (void)rd_kafka_assign(rk, NULL); break;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits: at most one on its way, of all that changed since the last. Waiting for each would
 * cost a round trip to the coordinator a batch (6 ms); what a crash in between brings again is
 * a duplicate, which the deduplication record knows.
 */
#include "config.h"

#include <string.h>

#include "plugins/transport/kafka/kafka-consumer.h"

/* One that failed is not tried again at once: a refusal is there after a millisecond, and what the
 * library itself says, of a member that was fenced, before we have let go of the lock. */
#define RETRY_PAUSE (INT64_C(500) * 1000000)

/* Inside a transaction offsets go with it; only notes, and ends of partitions, are committed here. */
static int has_transactions(const wb_kafka_consumer *consumer)
{
    return consumer->transport->endpoint->mode == WB_MODE_SENDS_ATOMIC;
}

static int is_at_end(const wb_kafka_partition *partition)
{
    return partition->met_end && partition->offsets.count == 0;
}

static int is_due(const wb_kafka_consumer *consumer, const wb_kafka_partition *partition)
{
    if (partition->lost || consumer->ending)
        return 0;
    if (partition->note_due)
        return 1;
    return (!has_transactions(consumer) || is_at_end(partition)) &&
           wb_kafka_offsets_low(&partition->offsets) != partition->sent;
}

/* What was found stays true until something is handed out. */
static wb_kafka_note note_of(const wb_kafka_consumer *consumer, const wb_kafka_partition *partition)
{
    if (partition->offsets.next == partition->start)
        return partition->found;
    wb_kafka_note note = wb_kafka_offsets_note(&partition->offsets);
    note.is_there |= !consumer->ends && !has_transactions(consumer);
    return note;
}

void wb_kafka_commit_list_add(rd_kafka_topic_partition_list_t *list,
                              const wb_kafka_partition *partition, int64_t offset,
                              wb_kafka_note note)
{
    char text[WB_KAFKA_NOTE_SIZE];
    rd_kafka_topic_partition_t *entry =
        rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    entry->offset = offset;
    if (!note.is_there)
        return;
    wb_kafka_note_write(text, note);
    entry->metadata = strdup(text);
    entry->metadata_size = entry->metadata ? strlen(text) : 0;
}

static void add(const wb_kafka_consumer *consumer, rd_kafka_topic_partition_list_t *list,
                wb_kafka_partition *partition)
{
    wb_kafka_note note = note_of(consumer, partition);
    int64_t offset = has_transactions(consumer) && !is_at_end(partition)
                         ? partition->committed
                         : wb_kafka_offsets_low(&partition->offsets);
    wb_kafka_commit_list_add(list, partition, offset, note);
    partition->sent = offset;
    partition->sent_note = note;
    partition->note_due = 0;
}

static rd_kafka_topic_partition_list_t *collect(wb_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list = NULL;
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        if (!is_due(consumer, p))
            continue;
        if (!list)
            list = rd_kafka_topic_partition_list_new(8);
        add(consumer, list, p);
    }
    return list;
}

/* What was sent is not committed: the next commit takes it along. */
static void forget_sent(wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        p->sent = p->committed;
}

static void begin(wb_kafka_consumer *consumer)
{
    if (consumer->committing || consumer->frozen)
        return;
    rd_kafka_topic_partition_list_t *list = collect(consumer);
    if (!list)
        return;
    if (rd_kafka_commit_queue(consumer->client->rk, list, consumer->commits, NULL, NULL) ==
        RD_KAFKA_RESP_ERR_NO_ERROR)
        consumer->committing = 1;
    else
        forget_sent(consumer);
    consumer->commits_begun += (uint64_t)consumer->committing;
    rd_kafka_topic_partition_list_destroy(list);
}

void wb_kafka_commit_start(wb_kafka_consumer *consumer)
{
    if (consumer->commit_refused && consumer->transport->host->now() < consumer->commit_next)
        return;
    begin(consumer);
}

/* Once a reason, until one succeeds. What ends the consumer its session reports: after an outage that is
 * mostly its own successor, which has its place in the group. */
static void log_failure(wb_kafka_consumer *consumer, rd_kafka_resp_err_t code)
{
    const wb_host *host = consumer->transport->host;
    if (consumer->commit_refused == code || wb_kafka_map_ends_consumer(code))
        return;
    wb_field fields[] = { { "reason", rd_kafka_err2str(code) } };
    host->log(host, WB_LOG_INFO,
              "offsets could not be committed: messages may be delivered again", fields, 1);
}

/* @return 0 when the answer is a failure. */
static int read_answer(wb_kafka_consumer *consumer, rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *entry = &list->elems[i];
        wb_kafka_partition *partition =
            wb_kafka_partition_find(consumer, entry->topic, entry->partition);
        if (entry->err && !code)
            code = entry->err;
        if (partition && !code && entry->offset > partition->committed)
            partition->committed = entry->offset;
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        consumer->commit_refused = code;
        return 1;
    }
    /* The library's own errors say nothing of what the coordinator did, or will do. */
    consumer->commit_unknown |= code < RD_KAFKA_RESP_ERR__END;
    forget_sent(consumer);
    log_failure(consumer, code);
    consumer->commit_refused = code;
    consumer->commit_next = consumer->transport->host->now() + RETRY_PAUSE;
    return 0;
}

/* Consumes `event`; NULL does nothing. */
static void take_answer(wb_kafka_consumer *consumer, rd_kafka_event_t *event)
{
    if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT) {
        consumer->committing = 0;
        if (!read_answer(consumer, event))
            consumer->commits_failed = consumer->commits_begun;
    }
    if (event)
        rd_kafka_event_destroy(event);
}

void wb_kafka_commit_serve(wb_kafka_consumer *consumer)
{
    rd_kafka_event_t *event;
    while (!consumer->serving && (event = rd_kafka_queue_poll(consumer->commits, 0)))
        take_answer(consumer, event);
}

/* ---- waiting --------------------------------------------------------------------- */

/* One of those that wait serves the answer for all. */
static void wait_for_answer(wb_kafka_consumer *consumer, int milliseconds)
{
    struct timespec until = wb_kafka_condition_time(milliseconds);
    if (consumer->serving) {
        (void)pthread_cond_timedwait(&consumer->answered, &consumer->lock, &until);
        return;
    }
    consumer->serving = 1;
    (void)pthread_mutex_unlock(&consumer->lock);
    rd_kafka_event_t *event = rd_kafka_queue_poll(consumer->commits, milliseconds);
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->serving = 0;
    take_answer(consumer, event);
    wb_kafka_commit_start(consumer);
    (void)pthread_cond_broadcast(&consumer->answered);
}

static int has_due(const wb_kafka_consumer *consumer)
{
    for (const wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        if (is_due(consumer, p))
            return 1;
    return 0;
}

static void check_notes(wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        wb_kafka_note note = note_of(consumer, p);
        p->note_due |= note.deliveries != p->sent_note.deliveries || note.is_there != p->sent_note.is_there;
    }
}

/* What is due now goes with this one, or with the one after that which is on its way: at once,
 * whatever became of the one before. There may never be one: the partition is lost meanwhile, or the
 * library takes none. */
static int flush(wb_kafka_consumer *consumer, int64_t deadline)
{
    uint64_t number = consumer->commits_begun + (uint64_t)has_due(consumer);
    for (;;) {
        if (consumer->commits_begun < number)
            begin(consumer);
        if (!consumer->committing || consumer->commits_begun > number)
            return !consumer->frozen && consumer->commits_begun >= number && consumer->commits_failed < number;
        int left = wb_kafka_until(consumer->transport, deadline);
        if (left == 0)
            return 0;
        wait_for_answer(consumer, left);
    }
}

int wb_kafka_commit_flush(wb_kafka_consumer *consumer, int64_t deadline, int last)
{
    consumer->ends = last;
    if (last)
        check_notes(consumer);
    int ok = flush(consumer, deadline);
    consumer->ends = 0;
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Commits: at most one on its way, of all that changed since the last. Waiting for each would
 * cost a round trip to the coordinator a batch (6 ms); what a crash in between brings again is
 * a duplicate, which the deduplication record knows.
 */
#include "config.h"

#include <string.h>

#include "plugins/transport/kafka/kafka-consumer.h"

/* Inside a transaction offsets go with it; only notes are committed here. */
static int has_transactions(const wb_kafka_consumer *consumer)
{
    return consumer->transport->endpoint->mode == WB_MODE_SENDS_ATOMIC;
}

static int is_due(const wb_kafka_consumer *consumer, const wb_kafka_partition *partition)
{
    if (partition->lost)
        return 0;
    if (partition->note_due)
        return 1;
    return !has_transactions(consumer) &&
           wb_kafka_offsets_low(&partition->offsets) != partition->sent;
}

static void add(rd_kafka_topic_partition_list_t *list, wb_kafka_partition *partition)
{
    char note[WB_KAFKA_NOTE_SIZE];
    rd_kafka_topic_partition_t *entry =
        rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    entry->offset = partition->committed;
    uint32_t deliveries = partition->deliveries + (partition->noted ? 1 : 0);
    int64_t low = wb_kafka_offsets_low(&partition->offsets);
    if (low > entry->offset)
        entry->offset = low;
    if (entry->offset == partition->start && deliveries) {
        wb_kafka_note_write(note, deliveries);
        entry->metadata = strdup(note);
        entry->metadata_size = entry->metadata ? strlen(note) : 0;
    }
    partition->sent = entry->offset;
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
        add(list, p);
    }
    return list;
}

/* What was sent is not committed: the next commit takes it along. */
static void forget_sent(wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        p->sent = p->committed;
}

void wb_kafka_commit_start(wb_kafka_consumer *consumer)
{
    if (consumer->committing || consumer->failure.result != WB_OK)
        return;
    rd_kafka_topic_partition_list_t *list = collect(consumer);
    if (!list)
        return;
    if (rd_kafka_commit_queue(consumer->client->rk, list, consumer->commits, NULL, NULL) ==
        RD_KAFKA_RESP_ERR_NO_ERROR)
        consumer->committing = 1;
    else
        forget_sent(consumer);
    rd_kafka_topic_partition_list_destroy(list);
}

static void log_failure(const wb_kafka_consumer *consumer, rd_kafka_resp_err_t code)
{
    const wb_host *host = consumer->transport->host;
    wb_field fields[] = { { "endpoint", consumer->transport->endpoint->name },
                          { "reason", rd_kafka_err2str(code) } };
    host->log(host, WB_LOG_INFO,
              "offsets could not be committed: messages may be delivered again", fields, 2);
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
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return 1;
    forget_sent(consumer);
    log_failure(consumer, code);
    return 0;
}

int wb_kafka_commit_serve(wb_kafka_consumer *consumer, int milliseconds)
{
    rd_kafka_event_t *event;
    int ok = 1;
    while ((event = rd_kafka_queue_poll(consumer->commits, milliseconds))) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT) {
            consumer->committing = 0;
            ok = read_answer(consumer, event) && ok;
        }
        rd_kafka_event_destroy(event);
        milliseconds = 0;
    }
    return ok;
}

static void take_notes_back(wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        if (!p->noted || p->lost || wb_kafka_offsets_low(&p->offsets) != p->start ||
            p->sent != p->start)
            continue;
        p->noted = 0;
        p->note_due = 1;
    }
}

int wb_kafka_commit_flush(wb_kafka_consumer *consumer, int64_t deadline, int clean)
{
    if (clean)
        take_notes_back(consumer);
    for (;;) {
        wb_kafka_commit_start(consumer);
        if (!consumer->committing)
            return consumer->failure.result == WB_OK;
        int left = wb_kafka_until(consumer->transport, deadline);
        if (left == 0 || !wb_kafka_commit_serve(consumer, left))
            return 0;
    }
}

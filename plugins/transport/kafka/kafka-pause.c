/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitions that wait: nothing is fetched of them, what librdkafka held ahead is freed, and
 * the other partitions go on. When they go on, librdkafka fetches from the message after the
 * last we took, or from where we sought.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/transport/kafka/kafka-consumer.h"

#define SECOND INT64_C(1000000000)
/* A turn to hold a large message that nobody takes (its worker is in a handler, or the message
 * is no longer in the log) goes to the next. */
#define TURN_MAX (10 * SECOND)
/* librdkafka's own thread answers, without the network. */
#define SEEK_WAIT 5000

typedef rd_kafka_resp_err_t change(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list);

static void apply(const wb_kafka_consumer *consumer, const wb_kafka_partition *partition,
                  change *function)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    (void)function(consumer->client->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
}

void wb_kafka_partition_pause(const wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                              unsigned reason)
{
    if (partition->lost)
        return;
    if (!partition->paused)
        apply(consumer, partition, rd_kafka_pause_partitions);
    partition->paused |= reason;
}

void wb_kafka_partition_resume(const wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                               unsigned reason)
{
    if (partition->lost || !(partition->paused & reason))
        return;
    partition->paused &= ~reason;
    if (!partition->paused)
        apply(consumer, partition, rd_kafka_resume_partitions);
}

/* ---- behind a message that is not acknowledged ------------------------------------- */

static void log_gap(const wb_kafka_consumer *consumer, const wb_kafka_partition *partition)
{
    const wb_host *host = consumer->transport->host;
    int waits = (partition->paused & WB_KAFKA_PAUSED_GAP) != 0;
    char number[16], offset[24], done[24];
    (void)snprintf(number, sizeof number, "%" PRId32, partition->number);
    (void)snprintf(offset, sizeof offset, "%" PRId64, wb_kafka_offsets_low(&partition->offsets));
    (void)snprintf(done, sizeof done, "%zu", partition->offsets.done);
    wb_field fields[] = { { "topic", partition->topic },
                          { "partition", number },
                          { "offset", offset },
                          { "handled_behind", done } };
    if (waits)
        host->log(host, WB_LOG_WARNING,
                  "a partition waits: too many messages are handled behind one that is not "
                  "acknowledged",
                  fields, 4);
    else
        host->log(host, WB_LOG_INFO, "the partition goes on", fields, 2);
}

static void follow_gap(const wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    int waited = (partition->paused & WB_KAFKA_PAUSED_GAP) != 0;
    int waits = partition->offsets.done > WB_KAFKA_GAP_MAX;
    if (waits == waited || partition->lost)
        return;
    if (waits)
        wb_kafka_partition_pause(consumer, partition, WB_KAFKA_PAUSED_GAP);
    else
        wb_kafka_partition_resume(consumer, partition, WB_KAFKA_PAUSED_GAP);
    log_gap(consumer, partition);
}

void wb_kafka_consumer_follow_gaps(const wb_kafka_consumer *consumer)
{
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        follow_gap(consumer, p);
}

/* ---- messages over the limits ------------------------------------------------------ */

static wb_kafka_large_line *line_of(const wb_kafka_consumer *consumer)
{
    return &consumer->transport->large;
}

int wb_kafka_large_admit(wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                         const rd_kafka_message_t *raw)
{
    if (!partition->large_held && wb_kafka_large_ask(line_of(consumer), &partition->large)) {
        partition->large_held = 1;
        return 1;
    }
    rd_kafka_resp_err_t code =
        rd_kafka_seek(raw->rkt, raw->partition, raw->offset, SEEK_WAIT);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        (void)wb_kafka_failure_set(&consumer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, code,
                                   "could not go back to a message: %s", rd_kafka_err2str(code));
    wb_kafka_partition_pause(consumer, partition, WB_KAFKA_PAUSED_LARGE);
    return 0;
}

void wb_kafka_large_release(const wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    partition->large_held = 0;
    wb_kafka_large_leave(line_of(consumer), &partition->large);
}

void wb_kafka_large_forget(const wb_kafka_consumer *consumer, wb_kafka_partition *partition)
{
    if (!partition->large_held)
        wb_kafka_large_leave(line_of(consumer), &partition->large);
}

static void follow_turn(const wb_kafka_consumer *consumer, wb_kafka_partition *partition,
                        int64_t now)
{
    if (partition->lost || partition->large_held)
        return;
    if (partition->paused & WB_KAFKA_PAUSED_LARGE) {
        if (!wb_kafka_large_ask(line_of(consumer), &partition->large))
            return;
        partition->turn_ends = now + TURN_MAX;
        wb_kafka_partition_resume(consumer, partition, WB_KAFKA_PAUSED_LARGE);
    } else if (partition->large.in_line && now >= partition->turn_ends) {
        wb_kafka_large_leave(line_of(consumer), &partition->large);
    }
}

void wb_kafka_consumer_follow_turns(const wb_kafka_consumer *consumer)
{
    int64_t now = consumer->transport->host->now();
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        if (!(p->paused & WB_KAFKA_PAUSED_STOP))
            follow_turn(consumer, p, now);
}

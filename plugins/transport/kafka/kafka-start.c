/* SPDX-License-Identifier: Apache-2.0
 *
 * Where reading begins is always an offset we name, never one a reset policy chooses: the
 * committed one, or the first.
 *
 * With event_start = "latest" the topic of an event that the endpoint has never read begins at
 * its end. That place is committed at once, of all partitions in one request, by the member
 * that got partition 0; the others wait for it. So a partition without a committed offset, in a
 * topic where others have one, can only be younger than the subscription: it begins with its
 * first message, and whoever comes back begins where the endpoint came first.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "plugins/transport/kafka/kafka-consumer.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
/* A broker looks for transactions to abort only so often
 * (transaction.abort.timed.out.transaction.cleanup.interval.ms). */
#define ABORT_DELAY (10 * SECOND)

/* Timestamps that mean an end of the log (ListOffsets). */
#define FIRST_OFFSET RD_KAFKA_OFFSET_BEGINNING
#define LAST_OFFSET RD_KAFKA_OFFSET_END

static const struct timespec a_while = { 0, 20 * MILLISECOND };

typedef rd_kafka_topic_partition_list_t partition_list;
typedef rd_kafka_topic_partition_t partition_entry;

static int64_t deadline_of(const wb_kafka_consumer *consumer)
{
    return consumer->transport->host->now() + consumer->transport->config->connect_timeout;
}

/* ---- what is committed ----------------------------------------------------------- */

static int is_closing(wb_kafka_consumer *consumer)
{
    (void)pthread_mutex_lock(&consumer->lock);
    int answer = consumer->closing;
    (void)pthread_mutex_unlock(&consumer->lock);
    return answer;
}

static rd_kafka_resp_err_t ask_committed(const wb_kafka_consumer *consumer,
                                         partition_list *list, int64_t deadline)
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
                                          partition_list *list)
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

/* ---- the leaders ------------------------------------------------------------------- */

/* In the place of an offset. */
#define NO_LEADER INT64_C(-1)
#define ANY_LEADER INT64_C(-2)

static int64_t offset_of(const partition_list *list, const partition_entry *wanted)
{
    const partition_entry *found =
        rd_kafka_topic_partition_list_find((partition_list *)(uintptr_t)list,
                                           wanted->topic, wanted->partition);
    return found ? found->offset : RD_KAFKA_OFFSET_INVALID;
}

static partition_list *copy_names(const partition_list *of, int64_t offset)
{
    partition_list *list = rd_kafka_topic_partition_list_new(of->cnt);
    for (int i = 0; i < of->cnt; i++)
        rd_kafka_topic_partition_list_add(list, of->elems[i].topic, of->elems[i].partition)->offset = offset;
    return list;
}

static rd_kafka_resp_err_t ask_topic(const wb_kafka_consumer *consumer, const char *topic, int64_t deadline,
                                     const struct rd_kafka_metadata **ret_metadata)
{
    rd_kafka_t *rk = consumer->client->rk;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, NULL);
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(rk, 0, handle, ret_metadata, wb_kafka_until(consumer->transport, deadline));
    rd_kafka_topic_destroy(handle);
    return code;
}

static void note_leaders(partition_list *list, const struct rd_kafka_metadata_topic *topic)
{
    for (int i = 0; i < topic->partition_cnt; i++) {
        partition_entry *entry =
            rd_kafka_topic_partition_list_find(list, topic->topic, topic->partitions[i].id);
        if (entry)
            entry->offset = topic->partitions[i].leader < 0 ? NO_LEADER : topic->partitions[i].leader;
    }
}

/* Where nobody tells in good time any will do: librdkafka knows some itself. `of` is sorted. */
static partition_list *find_leaders(const wb_kafka_consumer *consumer, const partition_list *of, int64_t deadline)
{
    int64_t now = consumer->transport->host->now();
    const struct rd_kafka_metadata *metadata;
    partition_list *list = copy_names(of, ANY_LEADER);
    const char *topic = "";
    for (int i = 0; i < list->cnt; i++) {
        if (strcmp(list->elems[i].topic, topic) == 0)
            continue;
        topic = list->elems[i].topic;
        if (ask_topic(consumer, topic, now + (deadline - now) / 4, &metadata))
            continue;
        if (metadata->topic_cnt == 1)
            note_leaders(list, &metadata->topics[0]);
        rd_kafka_metadata_destroy(metadata);
    }
    return list;
}

/* ---- the ends of the log ----------------------------------------------------------- */

/* Of the same partitions each; RD_KAFKA_OFFSET_INVALID where it is not known. */
typedef struct log_ends {
    partition_list *firsts, *lasts;
} log_ends;

static rd_kafka_resp_err_t ask_ends(const wb_kafka_consumer *consumer, partition_list *list,
                                    int64_t end, int64_t deadline)
{
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = end;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(
        consumer->client->rk, list, wb_kafka_until(consumer->transport, deadline));
    for (int i = 0; i < list->cnt && !code; i++)
        code = list->elems[i].err;
    return code;
}

/* A topic that was just made, or a leader that moves: librdkafka asks whom it knows, once. */
static int is_leader_elsewhere(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
           code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
           code == RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH ||
           code == RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH;
}

static int may_go_on(wb_kafka_consumer *consumer, int64_t deadline)
{
    return wb_kafka_until(consumer->transport, deadline) && !is_closing(consumer);
}

static void take_answers(partition_list *ends, const partition_list *answers)
{
    for (int i = 0; i < answers->cnt; i++)
        rd_kafka_topic_partition_list_find(ends, answers->elems[i].topic, answers->elems[i].partition)->offset =
            answers->elems[i].offset;
}

static int are_known(const partition_list *ends, const partition_list *led)
{
    int are = 1;
    for (int i = 0; i < led->cnt; i++)
        are &= offset_of(ends, &led->elems[i]) >= 0;
    return are;
}

/* @return the last error that passes when it is asked again; 0: all are known. */
static rd_kafka_resp_err_t ask_each(wb_kafka_consumer *consumer, const partition_list *led, int64_t end,
                                    int64_t deadline, partition_list *ends)
{
    rd_kafka_resp_err_t passing = RD_KAFKA_RESP_ERR_NO_ERROR, last = passing;
    for (int i = 0; i < led->cnt && may_go_on(consumer, deadline); i++) {
        if (offset_of(ends, &led->elems[i]) >= 0)
            continue;
        partition_list *one = rd_kafka_topic_partition_list_new(1);
        (void)rd_kafka_topic_partition_list_add(one, led->elems[i].topic, led->elems[i].partition);
        rd_kafka_resp_err_t code = ask_ends(consumer, one, end, deadline);
        if (!code)
            take_answers(ends, one);
        passing = is_leader_elsewhere(code) ? code : passing;
        last = code ? code : last;
        rd_kafka_topic_partition_list_destroy(one);
    }
    if (!last && !are_known(ends, led))
        last = RD_KAFKA_RESP_ERR__TIMED_OUT; /* of what there was no time left for */
    return passing ? passing : last;
}

/* All in one request; one that fails, fails it, so each alone then. */
static rd_kafka_resp_err_t ask_end(wb_kafka_consumer *consumer, const partition_list *led, int64_t end,
                                   int64_t deadline, partition_list *ends)
{
    partition_list *all = copy_names(led, end);
    rd_kafka_resp_err_t code = ask_ends(consumer, all, end, deadline);
    if (!code)
        take_answers(ends, all);
    rd_kafka_topic_partition_list_destroy(all);
    if (!code || !may_go_on(consumer, deadline))
        return code;
    while (is_leader_elsewhere(code = ask_each(consumer, led, end, deadline, ends)) &&
           may_go_on(consumer, deadline))
        (void)nanosleep(&a_while, NULL);
    return code;
}

/* Of one leader, who is then asked for no more. */
static partition_list *take_led(partition_list *leaders, int64_t leader)
{
    partition_list *led = rd_kafka_topic_partition_list_new(leaders->cnt);
    for (int i = 0; i < leaders->cnt; i++) {
        partition_entry *entry = &leaders->elems[i];
        if (entry->offset != leader)
            continue;
        (void)rd_kafka_topic_partition_list_add(led, entry->topic, entry->partition);
        entry->offset = NO_LEADER;
    }
    return led;
}

/* How many there are from here on. */
static int count_leaders(const partition_list *leaders, int from)
{
    int count = 0;
    for (int i = from; i < leaders->cnt; i++) {
        int is_new = leaders->elems[i].offset != NO_LEADER;
        for (int j = from; j < i && is_new; j++)
            is_new = leaders->elems[j].offset != leaders->elems[i].offset;
        count += is_new;
    }
    return count;
}

/* Leader by leader: one that does not answer hides the ends of its own partitions alone, and takes its
 * share of the time. @return 0 when all are known, or an error; the lists are made in any case. */
static rd_kafka_resp_err_t query_ends(wb_kafka_consumer *consumer, const partition_list *of, int64_t deadline,
                                      log_ends *ret_ends)
{
    const wb_host *host = consumer->transport->host;
    rd_kafka_resp_err_t code, failed = RD_KAFKA_RESP_ERR_NO_ERROR;
    partition_list *leaders = find_leaders(consumer, of, deadline);
    *ret_ends = (log_ends){ copy_names(of, RD_KAFKA_OFFSET_INVALID), copy_names(of, RD_KAFKA_OFFSET_INVALID) };
    for (int i = 0; i < leaders->cnt; i++)
        if (leaders->elems[i].offset == NO_LEADER)
            failed = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    for (int i = 0; i < leaders->cnt; i++) {
        int64_t now = host->now();
        if (leaders->elems[i].offset == NO_LEADER)
            continue;
        int64_t share = now + (deadline - now) / count_leaders(leaders, i);
        partition_list *led = take_led(leaders, leaders->elems[i].offset);
        if ((code = ask_end(consumer, led, FIRST_OFFSET, share, ret_ends->firsts)) ||
            (code = ask_end(consumer, led, LAST_OFFSET, share, ret_ends->lasts)))
            failed = code;
        rd_kafka_topic_partition_list_destroy(led);
    }
    rd_kafka_topic_partition_list_destroy(leaders);
    return failed;
}

static void free_ends(const log_ends *ends)
{
    rd_kafka_topic_partition_list_destroy(ends->firsts);
    rd_kafka_topic_partition_list_destroy(ends->lasts);
}

static void log_gone(const wb_kafka_consumer *consumer, const partition_entry *committed,
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
    wb_field fields[] = { { "topic", committed->topic },
                          { "partition", number },
                          { "committed", from },
                          { "going_on_at", to },
                          { "messages", count } };
    host->log(host, WB_LOG_ERROR,
              gone ? "messages are lost: the topic's retention deleted them before they were read"
                   : "the log is shorter than what was read of it: messages are lost, others are "
                     "delivered again",
              fields, 5);
}

/* A committed offset is beyond the end for a moment when a broker restarts, because the end
 * others may see lags behind. Only what a broker said to be out of range is taken for it. */
static int is_out_of_range(const wb_kafka_consumer *consumer, int64_t committed, int64_t first,
                           int64_t last)
{
    return committed < first ||
           (committed > last && atomic_load(&consumer->transport->out_of_range));
}

/* ---- a topic that was never read ---------------------------------------------------- */

/* What a list says of a partition; NULL when it is not in it. */
static const partition_entry *find(const partition_list *in, const char *topic, int32_t partition)
{
    return rd_kafka_topic_partition_list_find((partition_list *)(uintptr_t)in, topic, partition);
}

static rd_kafka_resp_err_t list_partitions(const wb_kafka_consumer *consumer, const char *topic,
                                           partition_list **ret_all)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code = ask_topic(consumer, topic, deadline_of(consumer), &metadata);
    if (code)
        return code;
    int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    code = count ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (count) {
        *ret_all = rd_kafka_topic_partition_list_new(count);
        rd_kafka_topic_partition_list_add_range(*ret_all, topic, 0, count - 1);
    }
    rd_kafka_metadata_destroy(metadata);
    return code;
}

static int is_known(const partition_list *all)
{
    for (int i = 0; i < all->cnt; i++)
        if (all->elems[i].offset >= 0)
            return 1;
    return 0;
}

/* Partitions of others may be among them: the coordinator asks only who is of the group. */
static rd_kafka_resp_err_t commit_and_wait(const wb_kafka_consumer *consumer,
                                           const partition_list *starts)
{
    rd_kafka_t *rk = consumer->client->rk;
    rd_kafka_queue_t *answers = rd_kafka_queue_new(rk);
    rd_kafka_event_t *event = NULL;
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(rk, starts, answers, NULL, NULL);
    if (!code) {
        event = rd_kafka_queue_poll(answers,
                                    wb_kafka_until(consumer->transport, deadline_of(consumer)));
        code = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    }
    const partition_list *answer =
        event && !code ? rd_kafka_event_topic_partition_list(event) : NULL;
    for (int i = 0; answer && i < answer->cnt && !code; i++)
        code = answer->elems[i].err;
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    return code;
}

/* All of them: one left out would pass for younger than the subscription afterwards, and be read from
 * its first message. */
static rd_kafka_resp_err_t await_ends(wb_kafka_consumer *consumer, const partition_list *of, log_ends *ret_ends)
{
    int64_t deadline = deadline_of(consumer);
    rd_kafka_resp_err_t code = query_ends(consumer, of, deadline, ret_ends);
    while (code && may_go_on(consumer, deadline)) {
        (void)nanosleep(&a_while, NULL);
        free_ends(ret_ends);
        code = query_ends(consumer, of, deadline, ret_ends);
    }
    return code;
}

/* What somebody has committed meanwhile, who waited for us no longer and has begun: he is further. */
static rd_kafka_resp_err_t leave_out_known(wb_kafka_consumer *consumer, partition_list *all, partition_list *starts)
{
    rd_kafka_resp_err_t code = find_committed(consumer, all);
    for (int i = 0; i < all->cnt && !code; i++)
        if (all->elems[i].offset >= 0)
            (void)rd_kafka_topic_partition_list_del(starts, all->elems[i].topic, all->elems[i].partition);
    return code;
}

static rd_kafka_resp_err_t begin_at_end(wb_kafka_consumer *consumer, partition_list *all)
{
    log_ends ends;
    rd_kafka_resp_err_t code = await_ends(consumer, all, &ends);
    if (!code)
        code = leave_out_known(consumer, all, ends.lasts);
    if (!code && ends.lasts->cnt)
        code = commit_and_wait(consumer, ends.lasts);
    for (int i = 0; i < all->cnt && !code; i++)
        if (find(ends.lasts, all->elems[i].topic, all->elems[i].partition))
            all->elems[i].offset = offset_of(ends.lasts, &all->elems[i]);
    free_ends(&ends);
    return code;
}

/* The member with partition 0 may be gone, or older than this way of beginning. */
static rd_kafka_resp_err_t await_start(wb_kafka_consumer *consumer, partition_list *all)
{
    int64_t deadline = deadline_of(consumer);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    while (!code && !is_known(all) && wb_kafka_until(consumer->transport, deadline) &&
           !is_closing(consumer)) {
        (void)nanosleep(&a_while, NULL);
        code = find_committed(consumer, all);
    }
    return code;
}

static void keep_assigned(partition_list *all, const partition_list *assigned)
{
    for (int i = all->cnt - 1; i >= 0; i--)
        if (!find(assigned, all->elems[i].topic, all->elems[i].partition))
            (void)rd_kafka_topic_partition_list_del_by_idx(all, i);
}

/* What is committed of the topic of `wanted`, afterwards: of nothing only where a partition is
 * younger than the subscription. */
static rd_kafka_resp_err_t begin_topic(wb_kafka_consumer *consumer, const partition_list *assigned,
                                       const partition_entry *wanted, partition_list *all)
{
    rd_kafka_resp_err_t code = find_committed(consumer, all);
    if (code || is_known(all))
        return code;
    if (find(assigned, wanted->topic, 0))
        return begin_at_end(consumer, all);
    code = await_start(consumer, all);
    if (code || is_known(all))
        return code;
    keep_assigned(all, assigned);
    return begin_at_end(consumer, all);
}

static int needs_end(const wb_kafka_consumer *consumer, const partition_entry *committed)
{
    const wb_transport *transport = consumer->transport;
    return committed->offset < 0 && transport->config->event_start == WB_KAFKA_START_LATEST &&
           !wb_kafka_topology_is_own(transport->endpoint, committed->topic);
}

static void take_over(partition_list *committed, const partition_list *all)
{
    for (int i = 0; i < committed->cnt; i++) {
        partition_entry *entry = &committed->elems[i];
        if (entry->offset < 0 && find(all, entry->topic, entry->partition))
            entry->offset = offset_of(all, entry);
    }
}

static rd_kafka_resp_err_t begin_topics(wb_kafka_consumer *consumer, partition_list *committed)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    const char *topic = "";
    for (int i = 0; i < committed->cnt && !code; i++) {
        partition_list *all = NULL;
        const partition_entry *wanted = &committed->elems[i];
        if (!needs_end(consumer, wanted) || strcmp(wanted->topic, topic) == 0)
            continue;
        topic = wanted->topic;
        code = list_partitions(consumer, topic, &all);
        if (!code)
            code = begin_topic(consumer, committed, wanted, all);
        if (!code)
            take_over(committed, all);
        if (all)
            rd_kafka_topic_partition_list_destroy(all);
    }
    return code;
}

/* ---- choosing ---------------------------------------------------------------------- */

/* One without a leader is nobody's reason to wait. What is committed was right when it was, and a place that is
 * not there any more the leader will say, once there is one. */
static int64_t choose_start(const wb_kafka_consumer *consumer, const partition_entry *committed,
                            int64_t first, int64_t last)
{
    if (committed->offset < 0)
        return first < 0 ? RD_KAFKA_OFFSET_BEGINNING : first;
    if (first < 0 || last < 0 || !is_out_of_range(consumer, committed->offset, first, last))
        return committed->offset;
    log_gone(consumer, committed, first, last);
    return first;
}

static void log_silent(const wb_kafka_consumer *consumer, const partition_entry *one, int count,
                       rd_kafka_resp_err_t code)
{
    const wb_host *host = consumer->transport->host;
    char number[16], partitions[16];
    (void)snprintf(number, sizeof number, "%" PRId32, one->partition);
    (void)snprintf(partitions, sizeof partitions, "%d", count);
    wb_field fields[] = { { "topic", one->topic },
                          { "partition", number },
                          { "partitions", partitions },
                          { "reason", rd_kafka_err2str(code) } };
    host->log(host, WB_LOG_WARNING,
              "partitions wait for a leader that answers, this one among them: the others go on", fields, 4);
}

static void choose_starts(wb_kafka_consumer *consumer, const partition_list *committed, partition_list *starts)
{
    log_ends ends;
    const partition_entry *silent = NULL;
    int count = 0;
    rd_kafka_resp_err_t code = query_ends(consumer, committed, deadline_of(consumer), &ends);
    for (int i = 0; i < starts->cnt; i++) {
        const partition_entry *entry = &committed->elems[i];
        int64_t first = offset_of(ends.firsts, entry), last = offset_of(ends.lasts, entry);
        starts->elems[i].offset = choose_start(consumer, entry, first, last);
        if (last >= 0)
            continue;
        silent = silent ? silent : entry;
        count++;
    }
    if (silent)
        log_silent(consumer, silent, count, code);
    free_ends(&ends);
}

/* Both are sorted, so that the topic of one is looked at once. */
rd_kafka_resp_err_t wb_kafka_start_find(wb_kafka_consumer *consumer, partition_list *committed,
                                        partition_list *starts)
{
    rd_kafka_topic_partition_list_sort(committed, NULL, NULL);
    rd_kafka_topic_partition_list_sort(starts, NULL, NULL);
    rd_kafka_resp_err_t code = find_committed(consumer, committed);
    if (!code)
        code = begin_topics(consumer, committed);
    if (!code)
        choose_starts(consumer, committed, starts);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors come in three classes. Retriable: the same call again, it resumes where it was.
 * Abortable: the transaction is rolled back and run again. Fatal, and all others: this
 * producer is done for; the next one under its name ends the transaction.
 */
#include "config.h"

#include "plugins/transport/kafka/kafka-transaction.h"

#define SECOND INT64_C(1000000000)
#define ABANDON_WAIT (2 * SECOND)

typedef struct offsets_call {
    const rd_kafka_topic_partition_list_t *offsets;
    const rd_kafka_consumer_group_metadata_t *group;
} offsets_call;

typedef rd_kafka_error_t *call(rd_kafka_t *rk, int timeout, const offsets_call *arguments);

static rd_kafka_error_t *call_init(rd_kafka_t *rk, int timeout, const offsets_call *arguments)
{
    (void)arguments;
    return rd_kafka_init_transactions(rk, timeout);
}

static rd_kafka_error_t *call_offsets(rd_kafka_t *rk, int timeout, const offsets_call *arguments)
{
    return rd_kafka_send_offsets_to_transaction(rk, arguments->offsets, arguments->group, timeout);
}

static rd_kafka_error_t *call_commit(rd_kafka_t *rk, int timeout, const offsets_call *arguments)
{
    (void)arguments;
    return rd_kafka_commit_transaction(rk, timeout);
}

static rd_kafka_error_t *call_abort(rd_kafka_t *rk, int timeout, const offsets_call *arguments)
{
    (void)arguments;
    return rd_kafka_abort_transaction(rk, timeout);
}

/* Again while it is worth it. NULL: done. */
static rd_kafka_error_t *persist(wb_kafka_producer *producer, call *function,
                                 const offsets_call *arguments, int64_t deadline)
{
    for (;;) {
        int left = wb_kafka_until(producer->transport, deadline);
        rd_kafka_error_t *failed = function(producer->client->rk, left ? left : 1, arguments);
        if (!failed || !rd_kafka_error_is_retriable(failed) || left == 0)
            return failed;
        rd_kafka_error_destroy(failed);
    }
}

static int64_t latest(const wb_kafka_producer *producer)
{
    return producer->transport->host->now() + producer->transport->config->confirm_timeout;
}

/* ---- failures -------------------------------------------------------------------- */

/* This producer is of no more use. Consumes `failed`. */
static int end_with(wb_kafka_producer *producer, rd_kafka_error_t *failed, const char *doing,
                    wb_error *error)
{
    rd_kafka_resp_err_t code = rd_kafka_error_code(failed);
    char text[300];
    /* What it fell for first says more. */
    rd_kafka_resp_err_t first = rd_kafka_fatal_error(producer->client->rk, text, sizeof text);
    if (first && wb_kafka_map_is_fenced(first))
        code = first;
    wb_kafka_failure_map_fence(&producer->failure, producer->transport, producer->slot, code,
                               doing);
    (void)wb_kafka_failure_map(&producer->failure, code, doing, rd_kafka_error_string(failed));
    rd_kafka_error_destroy(failed);
    return wb_kafka_failure_report(producer->transport->host, &producer->failure, error);
}

/* Nothing of the transaction happened; it can be run again, if it can be rolled back, and if
 * that is of any use. */
static int abort_with(wb_kafka_producer *producer, rd_kafka_error_t *failed, const char *doing,
                      wb_error *error)
{
    const wb_host *host = producer->transport->host;
    wb_kafka_code row = wb_kafka_map_code(rd_kafka_error_code(failed));
    if (row.delivery == WB_FATAL)
        return end_with(producer, failed, doing, error);
    int result = host->fail(host, error, WB_ABORT, row.cause, row.code,
                            "could not %s: %s", doing, rd_kafka_error_string(failed));
    rd_kafka_error_destroy(failed);
    return result;
}

/* ---- life ------------------------------------------------------------------------ */

int wb_kafka_transaction_init(wb_kafka_producer *producer, wb_error *error)
{
    const wb_transport *transport = producer->transport;
    int64_t deadline = transport->host->now() + transport->config->connect_timeout;
    rd_kafka_error_t *failed = persist(producer, call_init, NULL, deadline);
    if (!failed)
        return WB_OK;
    return end_with(producer, failed, "begin to use transactions", error);
}

/* ---- begin ----------------------------------------------------------------------- */

/* What others have already must not be done by us, too. */
static int refuse_lost(const wb_kafka_producer *producer, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                      "partitions were taken away before the transaction was committed");
}

static int send_offsets(wb_kafka_producer *producer, const offsets_call *arguments,
                        int64_t deadline, wb_error *error)
{
    if (arguments->offsets->cnt == 0)
        return WB_OK;
    rd_kafka_error_t *failed = persist(producer, call_offsets, arguments, deadline);
    if (!failed)
        return WB_OK;
    if (rd_kafka_error_txn_requires_abort(failed))
        return abort_with(producer, failed, "commit offsets", error);
    return end_with(producer, failed, "commit offsets", error);
}

/* Before the messages. The coordinator refuses both until the markers of the transaction before
 * are written; librdkafka tries offsets again after retry.backoff.ms, and a first message only
 * after 20 ms. */
static int promise(wb_kafka_producer *producer, wb_kafka_receiver *receiver, wb_error *error)
{
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata(receiver->consumer->client->rk);
    rd_kafka_topic_partition_list_t *offsets = wb_kafka_receiver_promise(receiver);
    offsets_call arguments = { offsets, group };
    int result = group ? send_offsets(producer, &arguments, latest(producer), error)
                       : refuse_lost(producer, error);
    rd_kafka_topic_partition_list_destroy(offsets);
    if (group)
        rd_kafka_consumer_group_metadata_destroy(group);
    return result;
}

int wb_kafka_transaction_begin(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                               wb_error *error)
{
    if (producer->failure.result != WB_OK)
        return wb_kafka_failure_report(producer->transport->host, &producer->failure, error);
    rd_kafka_error_t *failed = rd_kafka_begin_transaction(producer->client->rk);
    if (failed)
        return end_with(producer, failed, "begin a transaction", error);
    producer->in_transaction = 1;
    return promise(producer, receiver, error);
}

/* ---- commit ---------------------------------------------------------------------- */

/* The coordinator may have heard of it, or not. Nothing may be committed after it by this
 * session: it could set offsets back that the transaction has moved. */
static int doubt(wb_kafka_producer *producer, wb_kafka_receiver *receiver, rd_kafka_error_t *failed,
                 wb_error *error)
{
    const wb_host *host = producer->transport->host;
    wb_kafka_consumer_freeze(receiver->consumer);
    int result = end_with(producer, failed, "commit the transaction", error);
    if (result == WB_FATAL)
        return result;
    return host->fail(host, error, WB_IN_DOUBT, producer->failure.cause, producer->failure.code,
                      "%s", producer->failure.text);
}

static int end_transaction(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                           int64_t deadline, wb_error *error)
{
    rd_kafka_error_t *failed = persist(producer, call_commit, NULL, deadline);
    if (failed && rd_kafka_error_txn_requires_abort(failed))
        return abort_with(producer, failed, "commit the transaction", error);
    if (failed)
        return doubt(producer, receiver, failed, error);
    producer->transport->host->crash_point("transport_commit_sent");
    producer->in_transaction = 0;
    wb_kafka_receiver_settle_commit(receiver);
    return WB_OK;
}

int wb_kafka_transaction_commit(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                                wb_error *error)
{
    int64_t deadline = latest(producer);
    if (producer->failure.result != WB_OK)
        return wb_kafka_failure_report(producer->transport->host, &producer->failure, error);
    /* First of all: it holds the generation of the group, and the coordinator refuses one that
     * has passed. So what we find to be ours now is still ours when that is accepted. What was
     * accepted before stays ours: nobody is told where to begin while a transaction is open. */
    rd_kafka_consumer_group_metadata_t *group =
        rd_kafka_consumer_group_metadata(receiver->consumer->client->rk);
    rd_kafka_topic_partition_list_t *offsets = wb_kafka_receiver_progress(receiver);
    int result = WB_OK;
    if (!offsets || !group)
        result = refuse_lost(producer, error);
    if (result == WB_OK) {
        offsets_call arguments = { offsets, group };
        result = send_offsets(producer, &arguments, deadline, error);
    }
    if (result == WB_OK) {
        producer->transport->host->crash_point("offsets_sent");
        result = end_transaction(producer, receiver, deadline, error);
    }
    if (offsets)
        rd_kafka_topic_partition_list_destroy(offsets);
    if (group)
        rd_kafka_consumer_group_metadata_destroy(group);
    return result;
}

/* ---- rollback -------------------------------------------------------------------- */

/* What the broker refused leaves a gap in the numbers of the messages, which ends the next
 * transaction, too; and where it refused the first, it knows of no transaction to end, which is
 * fatal. One that begins anew under the name ends it, and begins to count anew. */
static int renew(wb_kafka_producer *producer, wb_error *error)
{
    int result = wb_kafka_producer_renew(producer, error);
    return result == WB_OK ? wb_kafka_transaction_init(producer, error) : result;
}

int wb_kafka_transaction_rollback(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                                  wb_error *error)
{
    wb_kafka_receiver_settle_undo(receiver);
    if (!producer->in_transaction)
        return WB_OK;
    if (producer->failure.result != WB_OK)
        return wb_kafka_failure_report(producer->transport->host, &producer->failure, error);
    if (producer->is_spoiled)
        return renew(producer, error);
    rd_kafka_error_t *failed = persist(producer, call_abort, NULL, latest(producer));
    if (failed)
        return end_with(producer, failed, "roll the transaction back", error);
    producer->in_transaction = 0;
    return WB_OK;
}

void wb_kafka_transaction_abandon(wb_kafka_producer *producer)
{
    if (rd_kafka_fatal_error(producer->client->rk, NULL, 0) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    rd_kafka_error_t *failed =
        persist(producer, call_abort, NULL, producer->transport->host->now() + ABANDON_WAIT);
    if (failed)
        rd_kafka_error_destroy(failed);
}

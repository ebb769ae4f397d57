/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-headers.h"

/* librdkafka's queue is full: serve deliveries for so long before the next try. */
#define FULL_PAUSE 20
/* So long are operations sent one by one after one of several ended their transaction. */
#define CAREFUL INT64_C(30000000000)
/* So often do we look whether the transaction is over. */
#define STEP 100
/* After purging, deliveries are reported at once. */
#define PURGE_WAIT 2000

/* ---- life ------------------------------------------------------------------------ */

int wb_kafka_producer_is_open(const wb_kafka_producer *producer)
{
    return producer->transport != NULL;
}

static int connect_brokers(wb_kafka_producer *producer)
{
    const wb_transport *transport = producer->transport;
    const struct rd_kafka_metadata *metadata;
    int result = wb_kafka_client_ask(producer->client, NULL,
                                     transport->host->now() + transport->config->connect_timeout,
                                     &metadata, &producer->failure);
    if (result == WB_OK)
        rd_kafka_metadata_destroy(metadata);
    return result;
}

static int start(wb_kafka_producer *producer, wb_error *error)
{
    wb_transport *transport = producer->transport;
    rd_kafka_conf_t *conf =
        wb_kafka_conf_make(transport, WB_KAFKA_ROLE_PRODUCER, producer->name, error);
    if (!conf)
        return WB_FATAL;
    rd_kafka_conf_set_dr_msg_cb(conf, wb_kafka_on_delivery);
    producer->client = wb_kafka_client_start(transport, RD_KAFKA_PRODUCER, conf, producer, error);
    if (!producer->client)
        return WB_FATAL;
    int result = connect_brokers(producer);
    if (result != WB_OK)
        (void)wb_kafka_failure_report(transport->host, &producer->failure, error);
    return result;
}

static void end(wb_kafka_producer *producer)
{
    if (producer->client)
        (void)rd_kafka_purge(producer->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    wb_kafka_client_end(producer->client);
    producer->client = NULL;
}

int wb_kafka_producer_open(wb_kafka_producer *producer, wb_transport *transport, const char *name,
                           wb_error *error)
{
    producer->transport = transport;
    producer->name = name;
    producer->has_transactions = name != NULL;
    int result = start(producer, error);
    if (result != WB_OK)
        wb_kafka_producer_close(producer);
    return result;
}

int wb_kafka_producer_renew(wb_kafka_producer *producer, wb_error *error)
{
    end(producer);
    producer->outstanding = 0;
    producer->in_transaction = producer->is_spoiled = 0;
    int result = start(producer, error);
    if (result != WB_OK)
        (void)wb_kafka_failure_set(&producer->failure, result, WB_CAUSE_OTHER, 0,
                                   "the producer could not be started again");
    return result;
}

void wb_kafka_producer_close(wb_kafka_producer *producer)
{
    end(producer);
    wb_kafka_destinations_clear(&producer->destinations);
    for (size_t i = 0; i < producer->capacity; i++)
        free(producer->slots[i].reason);
    free(producer->slots);
    memset(producer, 0, sizeof *producer);
}

/* ---- destinations ---------------------------------------------------------------- */

static int ensure_destination(wb_kafka_producer *producer, wb_kafka_slot *slot, int64_t deadline)
{
    const wb_operation *operation = slot->operation;
    int is_event = operation->kind == WB_OPERATION_PUBLISH;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    const char *reason = wb_kafka_topic_name(operation->destination ? operation->destination : "",
                                             is_event, slot->topic);
    if (reason) {
        wb_kafka_slot_refuse(slot, WB_CAUSE_UNROUTABLE, "destination \"%.200s\": %s",
               operation->destination ? operation->destination : "", reason);
        return WB_OK;
    }
    int result = wb_kafka_destination_ensure(&producer->destinations, producer->client, slot->topic,
                                             is_event, deadline, &code, &producer->failure);
    if (result == WB_REJECT) {
        wb_kafka_slot_reject(slot, code);
        return WB_OK;
    }
    return result;
}

/* What ended a transaction does not get into the next. */
static void refuse_again(wb_kafka_slot *slot)
{
    wb_kafka_producer *producer = slot->producer;
    if (slot->settled || !producer->in_transaction)
        return;
    rd_kafka_resp_err_t code =
        wb_kafka_refusals_find(&producer->refusals, slot->topic, slot->operation,
                               producer->transport->host->now());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        wb_kafka_slot_reject(slot, code);
}

/* All of them before the first message goes out: if nobody answers, nothing happened. */
static int ensure_destinations(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++) {
        result = ensure_destination(producer, &producer->slots[i], deadline);
        if (result == WB_OK)
            refuse_again(&producer->slots[i]);
    }
    return result;
}

/* ---- producing ------------------------------------------------------------------- */

/* The body is copied: when we give up waiting, it is the caller's again. */
static rd_kafka_resp_err_t produce(wb_kafka_slot *slot, rd_kafka_headers_t *headers)
{
    const wb_operation *operation = slot->operation;
    void *key = (void *)(uintptr_t)(operation->key_size ? operation->key : NULL);
    void *body = (void *)(uintptr_t)(operation->body ? operation->body : "");
    const rd_kafka_vu_t fields[] = {
        { .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = slot->topic },
        { .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
        { .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { key, operation->key_size } },
        { .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { body, operation->body_size } },
        { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
        { .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = slot },
    };
    rd_kafka_error_t *failed = rd_kafka_produceva(slot->producer->client->rk, fields,
                                                  sizeof fields / sizeof *fields);
    rd_kafka_resp_err_t code = rd_kafka_error_code(failed);
    if (failed)
        rd_kafka_error_destroy(failed);
    return code;
}

static rd_kafka_resp_err_t produce_when_there_is_room(wb_kafka_slot *slot,
                                                      rd_kafka_headers_t *headers, int64_t deadline)
{
    wb_kafka_producer *producer = slot->producer;
    for (;;) {
        rd_kafka_resp_err_t code = produce(slot, headers);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL ||
            !wb_kafka_until(producer->transport, deadline))
            return code;
        (void)rd_kafka_flush(producer->client->rk, FULL_PAUSE);
    }
}

/* @return WB_OK when it is produced or refused for good, or failure.result. */
static int produce_slot(wb_kafka_slot *slot, int64_t deadline)
{
    wb_kafka_producer *producer = slot->producer;
    const char *reason;
    int cause;
    rd_kafka_headers_t *headers = wb_kafka_headers_make(slot->operation, &reason, &cause);
    if (!headers && reason) {
        wb_kafka_slot_refuse(slot, cause, "%s", reason);
        return WB_OK;
    }
    if (!headers)
        return wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, ENOMEM,
                                    "out of memory");
    slot->outstanding = 1;
    producer->outstanding++;
    rd_kafka_resp_err_t code = produce_when_there_is_room(slot, headers, deadline);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return WB_OK;
    slot->outstanding = 0;
    producer->outstanding--;
    rd_kafka_headers_destroy(headers);
    if (wb_kafka_map_delivery(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED) == WB_REJECT) {
        wb_kafka_slot_reject(slot, code);
        return WB_OK;
    }
    /* The transaction is over: which message ended it is found out when all are reported. */
    if (code == RD_KAFKA_RESP_ERR__STATE && producer->in_transaction)
        return WB_ABORT;
    return wb_kafka_failure_map(&producer->failure, code, "produce", NULL);
}

/* ---- waiting --------------------------------------------------------------------- */

rd_kafka_resp_err_t wb_kafka_producer_broken(const wb_kafka_producer *producer, char *text,
                                             size_t size)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (!producer->in_transaction)
        return code;
    /* There is no question for it. This is refused while a transaction is open, with what it
     * fell for when it did. */
    rd_kafka_error_t *refused = rd_kafka_begin_transaction(producer->client->rk);
    if (refused && rd_kafka_error_txn_requires_abort(refused)) {
        code = rd_kafka_error_code(refused);
        (void)snprintf(text, size, "%s", rd_kafka_error_string(refused));
    }
    if (refused)
        rd_kafka_error_destroy(refused);
    return code;
}

static int is_broken(const wb_kafka_producer *producer)
{
    char ignored[8];
    return wb_kafka_producer_broken(producer, ignored, sizeof ignored) !=
           RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* While it flushes, librdkafka does not linger. What is on its way when the transaction is over
 * is reported only when it times out. */
static void flush(wb_kafka_producer *producer, int64_t deadline)
{
    rd_kafka_t *rk = producer->client->rk;
    while (producer->outstanding && rd_kafka_fatal_error(rk, NULL, 0) == 0) {
        int left = wb_kafka_until(producer->transport, deadline);
        if (left == 0 || is_broken(producer))
            return;
        (void)rd_kafka_flush(rk, producer->in_transaction && left > STEP ? STEP : left);
    }
}

static void await(wb_kafka_producer *producer, int64_t deadline)
{
    rd_kafka_t *rk = producer->client->rk;
    flush(producer, deadline);
    if (!producer->outstanding)
        return;
    (void)rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    (void)rd_kafka_flush(rk, PURGE_WAIT);
    for (size_t i = 0; i < producer->count; i++)
        if (producer->slots[i].outstanding) {
            producer->slots[i].operation->result = WB_IN_DOUBT;
            producer->in_doubt = 1;
        }
}

/* ---- the window ------------------------------------------------------------------ */

/* By itself in its request, so that a refusal is its own. */
static int produce_alone(wb_kafka_slot *slot, int64_t deadline)
{
    wb_kafka_producer *producer = slot->producer;
    producer->alone = 1;
    slot->again = 0;
    int result = produce_slot(slot, deadline);
    await(producer, deadline);
    return result;
}

static int produce_again(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++)
        if (producer->slots[i].again && !producer->slots[i].settled)
            result = produce_alone(&producer->slots[i], deadline);
    return result;
}

static int produce_all(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++) {
        if (i == producer->count / 2 && i)
            producer->transport->host->crash_point("half_dispatched");
        if (!producer->slots[i].settled)
            result = produce_slot(&producer->slots[i], deadline);
    }
    return result;
}

/* One by one, until one ends the transaction. */
static int produce_carefully(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++) {
        wb_kafka_slot *slot = &producer->slots[i];
        if (slot->settled)
            continue;
        result = produce_alone(slot, deadline);
        if (slot->settled && slot->operation->result == WB_OK)
            continue;
        if (is_broken(producer))
            producer->suspect = slot;
        if (producer->suspect || !slot->settled)
            break;
    }
    return result;
}

static int send_window(wb_kafka_producer *producer, int64_t deadline)
{
    const wb_host *host = producer->transport->host;
    int result = ensure_destinations(producer, deadline);
    if (result != WB_OK)
        return result;
    if (producer->in_transaction && host->now() < producer->careful_until)
        return produce_carefully(producer, deadline);
    result = produce_all(producer, deadline);
    if (result == WB_OK)
        host->crash_point("dispatch_unconfirmed");
    await(producer, deadline);
    if (producer->count == 1)
        producer->suspect = producer->slots;
    if (result == WB_OK && !producer->in_doubt && !producer->in_transaction)
        result = produce_again(producer, deadline);
    return result;
}

/* ---- the end of it --------------------------------------------------------------- */

/* Whatever it was, the host sends again what is not settled, with a new producer: with this
 * one it could be in the log twice or out of order. */
static void find_reason(wb_kafka_producer *producer, size_t unsettled)
{
    char text[300] = "";
    rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(producer->client->rk, text, sizeof text);
    wb_kafka_failure_map_fence(&producer->failure, producer->transport, producer->slot, fatal,
                               "send");
    if (fatal && wb_kafka_map_code(fatal).session == WB_FATAL)
        (void)wb_kafka_failure_map(&producer->failure, fatal, "send", text);
    else if (fatal)
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, fatal,
                                   "the producer cannot go on: %s", text);
    else if (producer->failure.result == WB_OK && producer->delivery_failure.result != WB_OK)
        producer->failure = producer->delivery_failure;
    else
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                                   "%zu of %zu messages were not confirmed in time", unsettled,
                                   producer->count);
}

static int end_session(wb_kafka_producer *producer, size_t unsettled, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    find_reason(producer, unsettled);
    (void)wb_kafka_failure_report(host, &producer->failure, error);
    if (producer->in_doubt && producer->failure.result != WB_FATAL)
        return host->fail(host, error, WB_IN_DOUBT, producer->failure.cause, producer->failure.code,
                          "%s", producer->failure.text);
    return producer->failure.result;
}

/* The transaction fell for `code`; the session lives. One operation to blame is blamed; where
 * there are several, they are sent one by one when it is run again. */
static int end_transaction(wb_kafka_producer *producer, rd_kafka_resp_err_t code, const char *text,
                           wb_error *error)
{
    const wb_host *host = producer->transport->host;
    wb_kafka_slot *suspect = producer->suspect;
    int is_an_operations = wb_kafka_map_code(code).delivery == WB_REJECT;
    if (is_an_operations && suspect && !suspect->settled)
        wb_kafka_window_blame(suspect, code);
    producer->is_spoiled |= is_an_operations;
    if (is_an_operations)
        producer->careful_until = suspect ? 0 : host->now() + CAREFUL;
    for (size_t i = 0; i < producer->count; i++)
        if (!producer->slots[i].settled)
            producer->slots[i].operation->result = WB_ABORT;
    if (wb_kafka_window_unsettled(producer) == 0)
        return WB_OK;
    return host->fail(host, error, WB_ABORT, wb_kafka_map_cause(code), code,
                      "the transaction cannot be committed: %s", text);
}

static int conclude(wb_kafka_producer *producer, wb_error *error)
{
    char text[300];
    size_t unsettled = wb_kafka_window_unsettled(producer);
    if (unsettled == 0)
        return WB_OK;
    rd_kafka_resp_err_t code = wb_kafka_producer_broken(producer, text, sizeof text);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || wb_kafka_map_code(code).delivery == WB_FATAL)
        return end_session(producer, unsettled, error);
    return end_transaction(producer, code, text, error);
}

int wb_kafka_producer_send(wb_kafka_producer *producer, wb_operation *const *operations,
                           size_t count, int64_t deadline, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    if (producer->failure.result != WB_OK)
        return wb_kafka_failure_report(host, &producer->failure, error);
    if (producer->has_transactions && !producer->in_transaction)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                          "send outside of a transaction");
    if (!wb_kafka_window_begin(producer, operations, count))
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory");
    producer->suspect = NULL;
    (void)send_window(producer, deadline);
    return conclude(producer, error);
}

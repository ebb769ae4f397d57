/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-send.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-headers.h"

#define REASON_SIZE 400
/* librdkafka's queue is full: serve deliveries for so long before the next try. */
#define FULL_PAUSE 20
/* After purging, deliveries are reported at once. */
#define PURGE_WAIT 2000

/* ---- slots ----------------------------------------------------------------------- */

static void settle(wb_kafka_slot *slot, int result, int cause, const char *format, ...)
    WB_PRINTF(4, 5);
static void settle(wb_kafka_slot *slot, int result, int cause, const char *format, ...)
{
    va_list arguments;
    slot->settled = 1;
    slot->operation->result = result;
    slot->operation->cause = cause;
    if (!slot->reason)
        slot->reason = malloc(REASON_SIZE);
    if (slot->reason) {
        va_start(arguments, format);
        (void)vsnprintf(slot->reason, REASON_SIZE, format, arguments);
        va_end(arguments);
    }
    slot->operation->reason = slot->reason;
}

static void confirm(wb_kafka_slot *slot)
{
    slot->settled = 1;
    slot->operation->result = WB_OK;
}

static void reject(wb_kafka_slot *slot, rd_kafka_resp_err_t code)
{
    const wb_transport *transport = slot->producer->transport;
    int cause = wb_kafka_map_cause(code);
    if (cause == WB_CAUSE_TOO_LARGE)
        settle(slot, WB_REJECT, cause,
               "the message with its headers is larger than topic \"%s\" (max.message.bytes) or "
               "message_max = %lld permits",
               slot->topic, (long long)transport->message_max);
    else if (cause == WB_CAUSE_MISSING || cause == WB_CAUSE_CONFIG)
        settle(slot, WB_REJECT, WB_CAUSE_UNROUTABLE, "topic \"%s\": %s", slot->topic,
               cause == WB_CAUSE_MISSING ? "there is no such topic" : rd_kafka_err2str(code));
    else
        settle(slot, WB_REJECT, cause, "topic \"%s\": %s", slot->topic, rd_kafka_err2str(code));
}

static int begin_window(wb_kafka_producer *producer, wb_operation *const *operations, size_t count)
{
    if (count > producer->capacity) {
        wb_kafka_slot *slots = realloc(producer->slots, count * sizeof *slots);
        if (!slots)
            return 0;
        memset(slots + producer->capacity, 0, (count - producer->capacity) * sizeof *slots);
        producer->slots = slots;
        producer->capacity = count;
    }
    for (size_t i = 0; i < count; i++) {
        char *reason = producer->slots[i].reason;
        producer->slots[i] = (wb_kafka_slot){ .operation = operations[i],
                                              .producer = producer,
                                              .reason = reason };
        operations[i]->result = WB_NOT_CONNECTED;
        operations[i]->cause = 0;
        operations[i]->reason = NULL;
    }
    producer->count = count;
    producer->reported = 0;
    producer->alone = count == 1;
    producer->half_passed = 0;
    producer->in_doubt = 0;
    return 1;
}

/* ---- deliveries ------------------------------------------------------------------ */

static void note_half(wb_kafka_producer *producer)
{
    producer->reported++;
    if (producer->half_passed || producer->count < 2 || producer->reported * 2 < producer->count)
        return;
    producer->half_passed = 1;
    producer->transport->host->crash_point("half_confirmed");
}

/* A request with many messages is refused whole where one of them, or their sum, is too
 * large: none of them is in the log, and each is tried by itself. */
static int may_be_innocent(const wb_kafka_producer *producer, rd_kafka_resp_err_t code, int result)
{
    return result == WB_REJECT && wb_kafka_map_cause(code) == WB_CAUSE_TOO_LARGE &&
           !producer->alone && !producer->in_transaction;
}

/* @locality worker, while it waits */
static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *report, void *opaque)
{
    wb_kafka_slot *slot = report->_private;
    wb_kafka_producer *producer = slot->producer;
    (void)rk;
    (void)opaque;
    slot->outstanding = 0;
    producer->outstanding--;
    int result = wb_kafka_map_delivery(report->err, rd_kafka_message_status(report));
    if (result == WB_OK)
        confirm(slot);
    else if (may_be_innocent(producer, report->err, result))
        slot->again = 1;
    else if (result == WB_REJECT) {
        if (wb_kafka_map_cause(report->err) == WB_CAUSE_MISSING)
            wb_kafka_destination_forget(&producer->destinations, slot->topic);
        reject(slot, report->err);
    } else {
        slot->operation->result = result;
        producer->in_doubt |= result == WB_IN_DOUBT;
    }
    note_half(producer);
}

/* ---- life ------------------------------------------------------------------------ */

int wb_kafka_producer_is_open(const wb_kafka_producer *producer)
{
    return producer->client != NULL;
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

int wb_kafka_producer_open(wb_kafka_producer *producer, wb_transport *transport, const char *name,
                           wb_error *error)
{
    producer->transport = transport;
    producer->has_transactions = name != NULL;
    rd_kafka_conf_t *conf = wb_kafka_conf_make(transport, WB_KAFKA_ROLE_PRODUCER, name, error);
    if (!conf)
        return WB_FATAL;
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    producer->client = wb_kafka_client_start(transport, RD_KAFKA_PRODUCER, conf, producer, error);
    if (!producer->client)
        return WB_FATAL;
    int result = connect_brokers(producer);
    if (result != WB_OK) {
        (void)wb_kafka_failure_report(transport->host, &producer->failure, error);
        wb_kafka_producer_close(producer);
    }
    return result;
}

void wb_kafka_producer_close(wb_kafka_producer *producer)
{
    if (producer->client)
        (void)rd_kafka_purge(producer->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    wb_kafka_client_end(producer->client);
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
        settle(slot, WB_REJECT, WB_CAUSE_UNROUTABLE, "destination \"%.200s\": %s",
               operation->destination ? operation->destination : "", reason);
        return WB_OK;
    }
    int result = wb_kafka_destination_ensure(&producer->destinations, producer->client, slot->topic,
                                             is_event, deadline, &code, &producer->failure);
    if (result == WB_REJECT) {
        reject(slot, code);
        return WB_OK;
    }
    return result;
}

/* All of them before the first message goes out: if nobody answers, nothing happened. */
static int ensure_destinations(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++)
        result = ensure_destination(producer, &producer->slots[i], deadline);
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
    rd_kafka_headers_t *headers = wb_kafka_headers_make(slot->operation, &reason);
    if (!headers && reason) {
        settle(slot, WB_REJECT, WB_CAUSE_OTHER, "%s", reason);
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
        reject(slot, code);
        return WB_OK;
    }
    return wb_kafka_failure_map(&producer->failure, code, "produce", NULL);
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

/* ---- waiting --------------------------------------------------------------------- */

/* While it flushes, librdkafka does not linger. */
static void await(wb_kafka_producer *producer, int64_t deadline)
{
    rd_kafka_t *rk = producer->client->rk;
    while (producer->outstanding && wb_kafka_until(producer->transport, deadline) &&
           rd_kafka_fatal_error(rk, NULL, 0) == RD_KAFKA_RESP_ERR_NO_ERROR)
        (void)rd_kafka_flush(rk, wb_kafka_until(producer->transport, deadline));
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

static int produce_again(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    producer->alone = 1;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++) {
        wb_kafka_slot *slot = &producer->slots[i];
        if (!slot->again || slot->settled)
            continue;
        slot->again = 0;
        result = produce_slot(slot, deadline);
        await(producer, deadline);
    }
    return result;
}

static size_t count_unsettled(const wb_kafka_producer *producer)
{
    size_t count = 0;
    for (size_t i = 0; i < producer->count; i++)
        count += !producer->slots[i].settled;
    return count;
}

/* Whatever it was, the host sends again what is not settled, with a new producer: with this
 * one it could be in the log twice or out of order. */
static int conclude(wb_kafka_producer *producer, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    char text[300] = "";
    size_t unsettled = count_unsettled(producer);
    if (unsettled == 0)
        return WB_OK;
    rd_kafka_resp_err_t fatal =
        rd_kafka_fatal_error(producer->client->rk, text, sizeof text);
    wb_kafka_failure_map_fence(&producer->failure, producer->transport, producer->slot, fatal,
                               "send");
    if (fatal && wb_kafka_map_is_fenced(fatal))
        (void)wb_kafka_failure_map(&producer->failure, fatal, "send", text);
    else if (fatal)
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_OTHER, fatal,
                                   "the producer cannot go on: %s", text);
    else
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                                   "%zu of %zu messages were not confirmed in time", unsettled,
                                   producer->count);
    (void)wb_kafka_failure_report(host, &producer->failure, error);
    if (producer->in_doubt && producer->failure.result != WB_FATAL)
        return host->fail(host, error, WB_IN_DOUBT, producer->failure.cause, producer->failure.code,
                          "%s", producer->failure.text);
    return producer->failure.result;
}

static int send_window(wb_kafka_producer *producer, int64_t deadline)
{
    const wb_host *host = producer->transport->host;
    int result = ensure_destinations(producer, deadline);
    if (result != WB_OK)
        return result;
    result = produce_all(producer, deadline);
    if (result == WB_OK)
        host->crash_point("dispatch_unconfirmed");
    await(producer, deadline);
    if (result == WB_OK && !producer->in_doubt)
        result = produce_again(producer, deadline);
    return result;
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
    if (!begin_window(producer, operations, count))
        return host->fail(host, error, WB_RETRY, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    (void)send_window(producer, deadline);
    return conclude(producer, error);
}

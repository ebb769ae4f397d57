/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-send.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-headers.h"

/* librdkafka's queue is full: serve deliveries for so long before the next try. */
#define FULL_PAUSE 20
/* So long are operations sent one by one after one of several ended their transaction. */
#define CAREFUL INT64_C(30000000000)
/* After purging, deliveries are reported at once. */
#define PURGE_WAIT 2000
#define MILLISECOND INT64_C(1000000)

/* ---- life ------------------------------------------------------------------------ */

int wb_kafka_producer_is_open(const wb_kafka_producer *producer)
{
    return producer->transport != NULL;
}

static void use(wb_kafka_producer *producer, wb_kafka_outlet *outlet)
{
    producer->outlet = outlet;
    producer->client = outlet ? outlet->client : NULL;
}

static wb_kafka_outlet *get_outlet(const wb_kafka_producer *producer, wb_kafka_failure *failure)
{
    return producer->has_transactions
               ? wb_kafka_outlet_open(producer->transport, producer->name, failure)
               : wb_kafka_outlet_take(producer->transport, failure);
}

static void drop_outlet(wb_kafka_producer *producer)
{
    wb_kafka_outlet *outlet = producer->outlet;
    use(producer, NULL);
    if (producer->has_transactions)
        wb_kafka_outlet_close(outlet);
    else if (outlet)
        wb_kafka_outlet_give_back(outlet);
}

int wb_kafka_producer_open(wb_kafka_producer *producer, wb_transport *transport, const char *name,
                           wb_error *error)
{
    producer->transport = transport;
    producer->name = name;
    producer->has_transactions = name != NULL;
    wb_kafka_waiter_init(&producer->waiter);
    use(producer, get_outlet(producer, &producer->failure));
    if (producer->outlet)
        return WB_OK;
    int result = wb_kafka_failure_report(transport->host, &producer->failure, error);
    wb_kafka_producer_close(producer);
    return result;
}

int wb_kafka_producer_renew(wb_kafka_producer *producer, wb_error *error)
{
    wb_kafka_window_free(producer);
    drop_outlet(producer);
    producer->in_transaction = producer->is_spoiled = 0;
    use(producer, get_outlet(producer, &producer->failure));
    return producer->outlet
               ? WB_OK
               : wb_kafka_failure_report(producer->transport->host, &producer->failure, error);
}

void wb_kafka_producer_close(wb_kafka_producer *producer)
{
    if (!producer->transport)
        return;
    wb_kafka_window_free(producer);
    drop_outlet(producer);
    wb_kafka_destinations_clear(&producer->destinations);
    wb_kafka_waiter_destroy(&producer->waiter);
    memset(producer, 0, sizeof *producer);
}

/* Something failed for somebody, or here; nothing of ours is on its way with it that was not given up. */
static int follow_outlet(wb_kafka_producer *producer)
{
    if (producer->has_transactions || wb_kafka_outlet_is_usable(producer->outlet))
        return WB_OK;
    wb_kafka_outlet *outlet = wb_kafka_outlet_take(producer->transport, &producer->failure);
    if (!outlet)
        return producer->failure.result;
    if (producer->has_orphans)
        wb_kafka_window_free(producer); /* the old one's */
    drop_outlet(producer);
    use(producer, outlet);
    return WB_OK;
}

int wb_kafka_producer_follow(wb_kafka_producer *producer)
{
    if (producer->failure.result == WB_OK && producer->is_silent && follow_outlet(producer) == WB_OK)
        producer->is_silent = 0;
    return producer->failure.result;
}

/* ---- destinations ---------------------------------------------------------------- */

/* Nobody has subscribed to it. */
static int pass_over(wb_kafka_slot *slot)
{
    wb_transport *transport = slot->producer->transport;
    if (!slot->record || !slot->record->is_base ||
        !wb_kafka_absent_has(&transport->absent, slot->topic, transport->host->now()))
        return 0;
    wb_kafka_slot_confirm(slot);
    return 1;
}

static int ensure_topic(wb_kafka_producer *producer, wb_kafka_slot *slot, int is_event,
                        int64_t deadline)
{
    wb_transport *transport = producer->transport;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    int is_absent;
    if (pass_over(slot))
        return WB_OK;
    int result = wb_kafka_destination_ensure(&producer->destinations, producer->client, slot->topic,
                                             is_event, deadline, &code, &is_absent, &producer->failure);
    if (result != WB_REJECT)
        return result;
    if (is_absent && slot->record && slot->record->is_base)
        wb_kafka_absent_add(&transport->absent, slot->topic, code, transport->host);
    if (!pass_over(slot))
        wb_kafka_slot_reject(slot, code);
    return WB_OK;
}

static int ensure_destination(wb_kafka_producer *producer, wb_kafka_slot *slot, int64_t deadline)
{
    const wb_operation *operation = slot->operation;
    int is_event = operation->kind == WB_OPERATION_PUBLISH;
    const char *reason = wb_kafka_topic_name(operation->destination ? operation->destination : "",
                                             is_event, slot->topic);
    if (reason) {
        wb_kafka_slot_refuse(slot, WB_CAUSE_UNROUTABLE, "destination \"%.200s\": %s",
               operation->destination ? operation->destination : "", reason);
        return WB_OK;
    }
    return ensure_topic(producer, slot, is_event, deadline);
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

/* An event that one of its topics does not take is sent again: it is not to be in the others yet. */
static void refuse_event(wb_kafka_producer *producer, const wb_kafka_slot *refused)
{
    for (size_t i = 0; i < producer->count; i++) {
        wb_kafka_slot *slot = &producer->slots[i];
        if (slot->record && slot->record->event == refused->record->event && !slot->settled)
            wb_kafka_slot_refuse(slot, refused->operation->cause, "%s",
                                 refused->reason ? refused->reason : "");
    }
}

static void refuse_events(wb_kafka_producer *producer)
{
    for (size_t i = 0; i < producer->count; i++) {
        const wb_kafka_slot *slot = &producer->slots[i];
        if (slot->record && slot->settled && slot->operation->result == WB_REJECT)
            refuse_event(producer, slot);
    }
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
    refuse_events(producer);
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

/* Nothing goes out behind what was purged before it: its keys would lose their order. */
static rd_kafka_resp_err_t produce_unless_purged(wb_kafka_slot *slot, rd_kafka_headers_t *headers)
{
    wb_kafka_producer *producer = slot->producer;
    (void)pthread_mutex_lock(&producer->outlet->lock);
    rd_kafka_resp_err_t code =
        producer->outlet->is_purged ? RD_KAFKA_RESP_ERR__PURGE_QUEUE : produce(slot, headers);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        slot->outstanding = 1;
        producer->outstanding++;
    } else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        wb_kafka_outlet_serve(producer->outlet, &producer->waiter, FULL_PAUSE);
    }
    (void)pthread_mutex_unlock(&producer->outlet->lock);
    return code;
}

static rd_kafka_resp_err_t produce_when_there_is_room(wb_kafka_slot *slot,
                                                      rd_kafka_headers_t *headers, int64_t deadline)
{
    rd_kafka_resp_err_t code;
    do
        code = produce_unless_purged(slot, headers);
    while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL &&
           wb_kafka_until(slot->producer->transport, deadline));
    return code;
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
    rd_kafka_resp_err_t code = produce_when_there_is_room(slot, headers, deadline);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return WB_OK;
    rd_kafka_headers_destroy(headers);
    if (wb_kafka_map_delivery(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED) == WB_REJECT) {
        wb_kafka_slot_reject(slot, code);
        return WB_OK;
    }
    /* The transaction is over: which message ended it is found out when all are reported. */
    if (code == RD_KAFKA_RESP_ERR__STATE && producer->in_transaction)
        return WB_ABORT;
    if (code == RD_KAFKA_RESP_ERR__PURGE_QUEUE) {
        producer->was_purged = 1;
        return WB_NOT_CONNECTED;
    }
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

/* What is on its way when the transaction is over is reported only when it times out.
 * @locks the outlet's, released while it waits */
static void flush(wb_kafka_producer *producer, int64_t deadline)
{
    while (producer->outstanding && rd_kafka_fatal_error(producer->client->rk, NULL, 0) == 0) {
        int left = wb_kafka_until(producer->transport, deadline);
        if (left == 0 || is_broken(producer))
            break;
        wb_kafka_outlet_serve(producer->outlet, &producer->waiter, left);
    }
}

/* What others have on its way goes, too: there is no telling apart.
 * @locks the outlet's, released while it waits */
static void purge(wb_kafka_producer *producer)
{
    wb_kafka_outlet *outlet = producer->outlet;
    int left = PURGE_WAIT;
    int64_t latest = producer->transport->host->now() + PURGE_WAIT * MILLISECOND;
    outlet->is_over = outlet->is_purged = !producer->has_transactions;
    (void)rd_kafka_purge(outlet->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    for (; producer->outstanding && left; left = wb_kafka_until(producer->transport, latest))
        wb_kafka_outlet_serve(outlet, &producer->waiter, left);
}

static void await(wb_kafka_producer *producer, int64_t deadline)
{
    (void)pthread_mutex_lock(&producer->outlet->lock);
    flush(producer, deadline);
    if (producer->outstanding)
        purge(producer);
    (void)pthread_mutex_unlock(&producer->outlet->lock);
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

static int has_again(const wb_kafka_producer *producer)
{
    for (size_t i = 0; i < producer->count; i++)
        if (producer->slots[i].again && !producer->slots[i].settled)
            return 1;
    return 0;
}

static int produce_each(wb_kafka_producer *producer, int64_t deadline)
{
    int result = WB_OK;
    for (size_t i = 0; i < producer->count && result == WB_OK; i++)
        if (producer->slots[i].again && !producer->slots[i].settled)
            result = produce_alone(&producer->slots[i], deadline);
    return result;
}

/* Through a client of its own, for with that of the process others might be in the same request. */
static int produce_again(wb_kafka_producer *producer, int64_t deadline)
{
    wb_kafka_outlet *shared = producer->outlet;
    if (!has_again(producer))
        return WB_OK;
    wb_kafka_outlet *own = wb_kafka_outlet_open(producer->transport, NULL, &producer->failure);
    if (!own)
        return producer->failure.result;
    wb_kafka_window_end(producer);
    use(producer, own);
    wb_kafka_window_enter(producer);
    int result = produce_each(producer, deadline);
    wb_kafka_window_end(producer);
    use(producer, shared);
    wb_kafka_window_enter(producer);
    wb_kafka_outlet_close(own);
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

static const char *first_unsettled(const wb_kafka_producer *producer)
{
    for (size_t i = 0; i < producer->count; i++)
        if (!producer->slots[i].settled)
            return producer->slots[i].topic;
    return "";
}

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
    else if (producer->failure.result == WB_OK && producer->was_purged)
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                                   "what another worker of the process sent was not confirmed in "
                                   "time: those in the middle of sending begin anew");
    else
        (void)wb_kafka_failure_set(&producer->failure, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                                   "%zu of %zu messages were not confirmed in time, the first for "
                                   "topic \"%s\"",
                                   unsettled, producer->count, first_unsettled(producer));
}

/* Nobody says why: the way out alone begins anew. In a transaction there is no such way. */
static int is_silence(const wb_kafka_producer *producer)
{
    return !producer->has_transactions && producer->failure.result == WB_OK &&
           producer->delivery_failure.result == WB_OK &&
           rd_kafka_fatal_error(producer->client->rk, NULL, 0) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* What is received stays in hand. Whether the brokers are there at all, who sends or receives next
 * finds out. */
static int end_outlet(wb_kafka_producer *producer, size_t unsettled, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    find_reason(producer, unsettled);
    int result = host->fail(host, error, WB_IN_DOUBT, WB_CAUSE_SENDING, 0, "%s", producer->failure.text);
    producer->failure = (wb_kafka_failure){ 0 };
    producer->is_silent = 1;
    return result;
}

static int end_session(wb_kafka_producer *producer, size_t unsettled, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    wb_kafka_outlet_end(producer->outlet);
    if (is_silence(producer))
        return end_outlet(producer, unsettled, error);
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
    if (follow_outlet(producer) != WB_OK)
        return wb_kafka_failure_report(host, &producer->failure, error);
    if (!wb_kafka_window_begin(producer, operations, count))
        return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory");
    producer->suspect = NULL;
    (void)send_window(producer, deadline);
    wb_kafka_window_end(producer);
    return conclude(producer, error);
}

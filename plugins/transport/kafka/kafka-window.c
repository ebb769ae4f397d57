/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of one window and what becomes of each.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-send.h"

#define REASON_SIZE 400

/* ---- slots ----------------------------------------------------------------------- */

void wb_kafka_slot_refuse(wb_kafka_slot *slot, int cause, const char *format, ...)
{
    va_list arguments;
    slot->settled = 1;
    slot->operation->result = WB_REJECT;
    slot->operation->cause = cause;
    slot->operation->reason = "it cannot be sent";
    if (!slot->reason)
        slot->reason = malloc(REASON_SIZE);
    if (slot->reason) {
        va_start(arguments, format);
        (void)vsnprintf(slot->reason, REASON_SIZE, format, arguments);
        va_end(arguments);
        slot->operation->reason = slot->reason;
    }
}

void wb_kafka_slot_confirm(wb_kafka_slot *slot)
{
    slot->settled = 1;
    slot->operation->result = WB_OK;
}

void wb_kafka_slot_reject(wb_kafka_slot *slot, rd_kafka_resp_err_t code)
{
    const wb_transport *transport = slot->producer->transport;
    int cause = wb_kafka_map_cause(code);
    int is_event = slot->operation->kind == WB_OPERATION_PUBLISH;
    if (cause == WB_CAUSE_TOO_LARGE)
        wb_kafka_slot_refuse(slot, cause,
               "the message with its headers is larger than topic \"%s\" (max.message.bytes) or "
               "message_max = %lld permits",
               slot->topic, (long long)transport->message_max);
    else if (cause == WB_CAUSE_MISSING || cause == WB_CAUSE_CONFIG)
        wb_kafka_slot_refuse(slot, WB_CAUSE_UNROUTABLE, "topic \"%s\": %s", slot->topic,
               cause == WB_CAUSE_MISSING ? "there is no such topic" : rd_kafka_err2str(code));
    else
        wb_kafka_slot_refuse(slot, cause, "topic \"%s\": %s%s", slot->topic, rd_kafka_err2str(code),
                             wb_kafka_map_remedy(code, is_event ? WB_KAFKA_PUBLISH : WB_KAFKA_WRITE));
}

/* Whatever happens, none is taken for sent that is not. */
void wb_kafka_window_unsend(wb_operation *const *operations, size_t count, int result)
{
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = result;
        operations[i]->cause = 0;
        operations[i]->reason = NULL;
    }
}

/* Late reports point to slots that were given up. */
void wb_kafka_window_free(wb_kafka_producer *producer)
{
    for (size_t i = 0; i < producer->capacity; i++)
        free(producer->slots[i].reason);
    if (producer->has_orphans)
        wb_kafka_outlet_adopt(producer->outlet, producer->slots);
    else
        free(producer->slots);
    producer->slots = NULL;
    producer->capacity = producer->count = 0;
    producer->has_orphans = 0;
}

static int make_room(wb_kafka_producer *producer, size_t count)
{
    if (producer->has_orphans)
        wb_kafka_window_free(producer);
    if (count <= producer->capacity)
        return 1;
    wb_kafka_slot *slots = realloc(producer->slots, count * sizeof *slots);
    if (!slots)
        return 0;
    memset(slots + producer->capacity, 0, (count - producer->capacity) * sizeof *slots);
    producer->slots = slots;
    producer->capacity = count;
    return 1;
}

/* Requests hold what is there for a partition, of all windows on their way. */
void wb_kafka_window_enter(wb_kafka_producer *producer)
{
    wb_kafka_outlet *outlet = producer->outlet;
    (void)pthread_mutex_lock(&outlet->lock);
    producer->mixes = outlet->mixes;
    outlet->mixes += outlet->windows++ > 0;
    (void)pthread_mutex_unlock(&outlet->lock);
}

int wb_kafka_window_begin(wb_kafka_producer *producer, wb_operation *const *operations,
                          size_t count)
{
    if (!make_room(producer, count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        char *reason = producer->slots[i].reason;
        producer->slots[i] = (wb_kafka_slot){ .operation = operations[i],
                                              .producer = producer,
                                              .record = producer->records ? &producer->records[i] : NULL,
                                              .reason = reason };
    }
    wb_kafka_window_enter(producer);
    producer->count = count;
    producer->reported = 0;
    producer->alone = count == 1;
    producer->half_passed = 0;
    producer->in_doubt = producer->is_silent = producer->was_purged = 0;
    producer->delivery_failure = (wb_kafka_failure){ 0 };
    return 1;
}

size_t wb_kafka_window_unsettled(const wb_kafka_producer *producer)
{
    size_t count = 0;
    for (size_t i = 0; i < producer->count; i++)
        count += !producer->slots[i].settled;
    return count;
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
 * large, or one is no valid record: none of them is in the log, and each is tried by itself. */
static int may_be_innocent(const wb_kafka_producer *producer, rd_kafka_resp_err_t code)
{
    return wb_kafka_map_is_shared(code) &&
           !(producer->alone && producer->mixes == producer->outlet->mixes);
}

/* For good. In a transaction it is over with that, and run again. */
static void refuse(wb_kafka_slot *slot, rd_kafka_resp_err_t code)
{
    wb_kafka_producer *producer = slot->producer;
    if (wb_kafka_map_cause(code) == WB_CAUSE_MISSING)
        wb_kafka_destination_forget(&producer->destinations, slot->topic);
    wb_kafka_window_blame(slot, code);
}

void wb_kafka_window_blame(wb_kafka_slot *slot, rd_kafka_resp_err_t code)
{
    wb_kafka_producer *producer = slot->producer;
    if (producer->in_transaction)
        wb_kafka_refusals_add(&producer->refusals, slot->topic, slot->operation, code,
                              producer->transport->host->now());
    wb_kafka_slot_reject(slot, code);
}

/* Purged and fatal are not reasons; whoever purged, or fell, has one. */
static void note_failure(wb_kafka_producer *producer, const wb_kafka_slot *slot,
                         rd_kafka_resp_err_t code)
{
    char doing[WB_KAFKA_TOPIC_SIZE + 32];
    if (code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
        code == RD_KAFKA_RESP_ERR__FATAL || wb_kafka_map_is_fenced(code))
        return;
    (void)snprintf(doing, sizeof doing, "send to topic \"%s\"", slot->topic);
    (void)wb_kafka_failure_map(&producer->delivery_failure, code, doing, NULL);
}

static void fail(wb_kafka_slot *slot, rd_kafka_resp_err_t code, int result)
{
    wb_kafka_producer *producer = slot->producer;
    producer->is_spoiled |= producer->in_transaction && result == WB_REJECT;
    if (result == WB_REJECT && may_be_innocent(producer, code)) {
        slot->again = 1;
    } else if (result == WB_REJECT) {
        refuse(slot, code);
    } else {
        slot->operation->result = result;
        producer->in_doubt |= result == WB_IN_DOUBT;
        note_failure(producer, slot, code);
    }
}

static void report(wb_kafka_slot *slot, const rd_kafka_message_t *message)
{
    wb_kafka_producer *producer = slot->producer;
    slot->outstanding = 0;
    producer->outstanding--;
    int result = wb_kafka_map_delivery(message->err, rd_kafka_message_status(message));
    if (result == WB_OK)
        wb_kafka_slot_confirm(slot);
    else
        fail(slot, message->err, result);
    note_half(producer);
    if (!producer->outstanding)
        wb_kafka_outlet_wake(producer->outlet, &producer->waiter);
}

void wb_kafka_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    wb_kafka_outlet *outlet = ((wb_kafka_client *)opaque)->owner;
    wb_kafka_slot *slot = message->_private;
    (void)rk;
    (void)pthread_mutex_lock(&outlet->lock);
    if (slot->outstanding) /* else it was given up, and who sent it may be gone */
        report(slot, message);
    (void)pthread_mutex_unlock(&outlet->lock);
}

void wb_kafka_window_end(wb_kafka_producer *producer)
{
    wb_kafka_outlet *outlet = producer->outlet;
    (void)pthread_mutex_lock(&outlet->lock);
    outlet->windows--;
    for (size_t i = 0; i < producer->count && producer->outstanding; i++) {
        wb_kafka_slot *slot = &producer->slots[i];
        if (!slot->outstanding)
            continue;
        slot->operation->result = WB_IN_DOUBT;
        slot->outstanding = 0;
        producer->in_doubt = producer->has_orphans = 1;
    }
    producer->outstanding = 0;
    (void)pthread_mutex_unlock(&outlet->lock);
}

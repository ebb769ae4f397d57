/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-bases.h"

#include <stdlib.h>
#include <string.h>
#include <waybill/sys/types.h>

#include "plugins/common/types_of.h"
#include "plugins/transport/kafka/kafka-topology.h"

/* A window with a record for each base beside the operations themselves. */
typedef struct {
    wb_operation *copies;
    wb_operation **all;
    wb_kafka_record *records;    /* of all */
    size_t sent;                 /* of all */
    char (*types)[WB_TYPE_SIZE]; /* of the copies */
    size_t *of;                  /* of the copies: whose they are */
    size_t count, room;          /* of the copies */
} window;

static const char *types_of(const wb_operation *operation)
{
    return operation->kind == WB_OPERATION_PUBLISH ? wb_common_types_of(operation) : "";
}

/* At most so many; most have none. */
static size_t count_bases(const wb_operation *operation)
{
    const char *types = types_of(operation);
    size_t count = 0;
    while ((types = strchr(types, ';'))) {
        types++;
        count++;
    }
    return count ? count + 1 : 0;
}

static int has_topic(const window *w, size_t at, const char *destination, const char *type)
{
    char topic[WB_KAFKA_TOPIC_SIZE];
    if (strcmp(type, destination) == 0 || wb_kafka_topic_name(type, 1, topic))
        return 1;
    for (size_t i = 0; i < w->count; i++)
        if (w->of[i] == at && strcmp(w->types[i], type) == 0)
            return 1;
    return 0;
}

/* A name that can be no topic's has no subscribers. */
static void add_bases(window *w, wb_operation *const *operations, size_t at)
{
    const wb_operation *operation = operations[at];
    const char *types = types_of(operation);
    char type[WB_TYPE_SIZE];
    size_t size;
    while (w->count < w->room && wb_type_next(&types, type, &size)) {
        if (has_topic(w, at, operation->destination ? operation->destination : "", type))
            continue;
        memcpy(w->types[w->count], type, size + 1);
        WB_COPY(&w->copies[w->count], operation);
        w->copies[w->count].destination = w->types[w->count];
        w->of[w->count] = at;
        w->count++;
    }
}

static int make(window *w, size_t room, size_t count)
{
    w->room = room;
    w->copies = calloc(room, sizeof *w->copies);
    w->types = calloc(room, sizeof *w->types);
    w->of = calloc(room, sizeof *w->of);
    w->all = calloc(room + count, sizeof *w->all);
    w->records = calloc(room + count, sizeof *w->records);
    return w->copies && w->types && w->of && w->all && w->records;
}

static void free_window(window *w)
{
    free(w->copies);
    free(w->types);
    free(w->of);
    free(w->all);
    free(w->records);
}

/* An operation is sent when all of its records are; one that is refused for good refuses it. */
static void fold(const window *w, wb_operation *const *operations)
{
    for (size_t i = 0; i < w->count; i++) {
        wb_operation *operation = operations[w->of[i]];
        const wb_operation *copy = &w->copies[i];
        if (copy->result == WB_OK || operation->result == WB_REJECT)
            continue;
        if (operation->result == WB_OK || copy->result == WB_REJECT) {
            operation->result = copy->result;
            operation->cause = copy->cause;
            operation->reason = copy->reason;
        }
    }
}

/* ---- what is in some topics already ----------------------------------------------- */

/* Without an id it cannot be told from others. A transaction is in all topics or none. */
static int is_remembered(const wb_kafka_producer *producer, const wb_operation *operation)
{
    return !producer->has_transactions && operation->id_size && operation->destination;
}

static uint64_t name(const wb_operation *operation)
{
    return wb_kafka_refusals_name(operation->destination, operation);
}

static int is_done(wb_kafka_producer *producer, const wb_operation *operation)
{
    return is_remembered(producer, operation) &&
           wb_kafka_done_has(&producer->transport->done, name(operation));
}

/* One that was passed over was not sent. */
static int is_passed_over(wb_kafka_producer *producer, const wb_operation *copy)
{
    char topic[WB_KAFKA_TOPIC_SIZE];
    wb_transport *transport = producer->transport;
    return !wb_kafka_topic_name(copy->destination, 1, topic) &&
           wb_kafka_absent_has(&transport->absent, topic, transport->host->now());
}

static void remember(wb_kafka_producer *producer, const wb_operation *operation, int whole)
{
    if (!is_remembered(producer, operation))
        return;
    if (whole)
        wb_kafka_done_drop(&producer->transport->done, name(operation));
    else if (operation->result == WB_OK && !is_passed_over(producer, operation))
        wb_kafka_done_add(&producer->transport->done, name(operation));
}

static void remember_event(wb_kafka_producer *producer, const wb_operation *operation,
                           const wb_operation *copies, size_t count)
{
    int whole = operation->result == WB_OK;
    for (size_t i = 0; i < count; i++)
        whole = whole && copies[i].result == WB_OK;
    remember(producer, operation, whole);
    for (size_t i = 0; i < count; i++)
        remember(producer, &copies[i], whole);
}

static void remember_all(const window *w, wb_kafka_producer *producer, wb_operation *const *operations)
{
    for (size_t from = 0, to; from < w->count; from = to) {
        for (to = from; to < w->count && w->of[to] == w->of[from];)
            to++;
        remember_event(producer, operations[w->of[from]], w->copies + from, to - from);
    }
}

/* ---- refused, and sent in part ----------------------------------------------------- */

static int is_refused(const wb_operation *operation, const wb_operation *copies, size_t count)
{
    int is = operation->result == WB_REJECT;
    for (size_t i = 0; i < count && !is; i++)
        is = copies[i].result == WB_REJECT;
    return is;
}

/* What nobody has confirmed may be there, too. */
static int may_be_in_some(wb_kafka_producer *producer, const wb_operation *operation, const wb_operation *copies,
                          size_t count)
{
    int may = operation->result != WB_REJECT;
    for (size_t i = 0; i < count && !may; i++)
        may = copies[i].result != WB_REJECT && !is_passed_over(producer, &copies[i]);
    return may;
}

static void note_partly_sent(const window *w, wb_kafka_producer *producer, wb_operation *const *operations)
{
    for (size_t from = 0, to; from < w->count && !producer->has_transactions; from = to) {
        wb_operation *operation = operations[w->of[from]];
        for (to = from; to < w->count && w->of[to] == w->of[from];)
            to++;
        if (is_refused(operation, w->copies + from, to - from) &&
            may_be_in_some(producer, operation, w->copies + from, to - from))
            operation->flags |= WB_OPERATION_PARTLY_SENT;
    }
}

/* ---- sending ---------------------------------------------------------------------- */

static void put(window *w, wb_operation *operation, size_t event, int is_base)
{
    w->records[w->sent] = (wb_kafka_record){ event, is_base };
    w->all[w->sent++] = operation;
}

static void put_event(window *w, wb_kafka_producer *producer, wb_operation *operation, size_t event,
                      size_t from)
{
    int is_alone = from == w->count;
    if (is_alone || !is_done(producer, operation))
        put(w, operation, event, 0);
    else
        operation->result = WB_OK;
    for (size_t k = from; k < w->count; k++) { /* here, for the order in a base's topic */
        if (is_done(producer, &w->copies[k]))
            w->copies[k].result = WB_OK;
        else
            put(w, &w->copies[k], event, 1);
    }
}

static int send_all(window *w, wb_kafka_producer *producer, wb_operation *const *operations,
                    size_t count, int64_t deadline, wb_error *error)
{
    for (size_t i = 0; i < count; i++) {
        size_t from = w->count;
        add_bases(w, operations, i);
        put_event(w, producer, operations[i], i, from);
    }
    producer->records = w->records;
    int result = wb_kafka_producer_send(producer, w->all, w->sent, deadline, error);
    producer->records = NULL;
    remember_all(w, producer, operations);
    note_partly_sent(w, producer, operations);
    fold(w, operations);
    return result;
}

int wb_kafka_bases_send(wb_kafka_producer *producer, wb_operation *const *operations, size_t count,
                        int64_t deadline, wb_error *error)
{
    const wb_host *host = producer->transport->host;
    window w = { 0 };
    size_t bases = 0;
    for (size_t i = 0; i < count; i++)
        bases += count_bases(operations[i]);
    if (!bases)
        return wb_kafka_producer_send(producer, operations, count, deadline, error);
    int result;
    if (make(&w, bases, count)) {
        result = send_all(&w, producer, operations, count, deadline, error);
    } else {
        wb_kafka_window_unsend(operations, count, WB_RETRY);
        result = host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory for %zu events", bases);
    }
    free_window(&w);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of an operation at the broker, and the broker's transactions.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/waiting.h"

static int later_is_there;

void sim_broker_open_later(void)
{
    later_is_there = 1;
}

static int is_healed;

void sim_broker_heal(void)
{
    is_healed = 1;
}

static int refuse(wb_operation *operation, int cause, const char *reason)
{
    operation->cause = cause;
    operation->reason = reason;
    return WB_REJECT;
}

static size_t size_of(const wb_operation *operation)
{
    size_t size = operation->body_size;
    for (size_t i = 0; i < operation->header_count; i++)
        size += operation->headers[i].name_size + operation->headers[i].value_size;
    return size;
}

static int judge_move(wb_operation *operation)
{
    const sim_message *m = sim_ledger_cause(operation);
    if (m->fate == SIM_UNMOVABLE)
        return refuse(operation, WB_CAUSE_TOO_LARGE, "the queue takes nothing like it");
    if (m->fate == SIM_POISON_MOVE && !is_healed)
        return WB_NOT_CONNECTED;
    if (the_shape.error_size_max && size_of(operation) > the_shape.error_size_max)
        return refuse(operation, WB_CAUSE_TOO_LARGE, "the queue takes no message as large");
    return WB_OK;
}

static int is_own_queue(const char *destination)
{
    return strncmp(destination, "endpoint-", 9) == 0;
}

/* Some brokers cannot delay all that they take: too long, or to an address that is too long. */
static int is_undelayable(const wb_operation *operation)
{
    return the_shape.refuses_delays && operation->deliver_at && is_own_queue(operation->destination) &&
           sim_never_delays(sim_ledger_cause(operation));
}

int sim_broker_judge(wb_operation *operation)
{
    static const char *const open[] = { SIM_SINK, SIM_REPLIES_QUEUE, SIM_AUDIT_QUEUE, SIM_REVIEW_QUEUE, "endpoint-0", "endpoint-1" };
    const char *destination = operation->destination;
    if (strcmp(destination, SIM_BAD_BYTES) == 0 || strcmp(destination, SIM_KILLS) == 0 ||
        strcmp(destination, SIM_KILLS_LATE) == 0)
        return WB_NOT_CONNECTED;
    if (operation->kind == WB_OPERATION_PUBLISH)
        return WB_OK;
    if (strcmp(destination, SIM_ERROR_QUEUE) == 0)
        return judge_move(operation);
    if (is_undelayable(operation))
        return refuse(operation, WB_CAUSE_OTHER, "the broker cannot delay it");
    if (strcmp(destination, SIM_NACKS) == 0)
        return WB_RETRY;
    if (strcmp(destination, SIM_NARROW) == 0)
        return refuse(operation, WB_CAUSE_TOO_LARGE, "the queue takes no message as large");
    if (strncmp(destination, SIM_SILENT, strlen(SIM_SILENT)) == 0)
        return is_healed ? WB_OK : WB_IN_DOUBT;
    if (strcmp(destination, SIM_LEADERLESS) == 0)
        return is_healed ? WB_OK : WB_ABORT;
    if (strcmp(destination, SIM_FATAL_QUEUE) == 0)
        return WB_FATAL;
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        if (strcmp(destination, open[i]) == 0)
            return WB_OK;
    if (strcmp(destination, SIM_LATER) == 0 && later_is_there)
        return WB_OK;
    if (!(operation->flags & WB_OPERATION_MANDATORY))
        return WB_OK; /* and nobody hears of it again */
    return refuse(operation, WB_CAUSE_UNROUTABLE, "no such queue");
}

/* ---- transactions ---- */

static void *copy(const void *data, size_t size)
{
    char *to = malloc(size + 1);
    if (!to)
        abort();
    if (size)
        memcpy(to, data, size);
    to[size] = '\0';
    return to;
}

static wb_header *copy_headers(const wb_operation *from)
{
    wb_header *headers = calloc(from->header_count + 1, sizeof *headers);
    for (size_t i = 0; headers && i < from->header_count; i++) {
        headers[i] = from->headers[i];
        headers[i].name = copy(from->headers[i].name, from->headers[i].name_size);
        headers[i].value = copy(from->headers[i].value, from->headers[i].value_size);
    }
    return headers;
}

wb_operation sim_operation_copy(const wb_operation *from)
{
    wb_operation to = *from;
    to.destination = copy(from->destination, strlen(from->destination));
    to.id = copy(from->id, from->id_size);
    to.headers = copy_headers(from);
    to.body = copy(from->body, from->body_size);
    return to;
}

void sim_operation_free(wb_operation *operation)
{
    for (size_t i = 0; i < operation->header_count; i++) {
        free((void *)(uintptr_t)operation->headers[i].name);
        free((void *)(uintptr_t)operation->headers[i].value);
    }
    free((void *)(uintptr_t)operation->headers);
    free((void *)(uintptr_t)operation->destination);
    free((void *)(uintptr_t)operation->id);
    free((void *)(uintptr_t)operation->body);
}

static void stage(wb_transport_session *s, const wb_operation *from)
{
    sim_staged *staged = calloc(1, sizeof *staged), **at = &s->staged;
    if (!staged)
        abort();
    staged->operation = sim_operation_copy(from);
    while (*at)
        at = &(*at)->next;
    *at = staged;
}

static void drop_staged(wb_transport_session *s)
{
    while (s->staged) {
        sim_staged *staged = s->staged;
        s->staged = staged->next;
        sim_operation_free(&staged->operation);
        free(staged);
    }
}

/* What is left to wait is told by the clock of the host that sends. */
static void arrive(const wb_operation *operation)
{
    const int64_t wall = sim_true_wall() + sim_wall_offset(sim_process());
    if (operation->deliver_at && !the_shape.native)
        sim_violation("a broker that delays nothing is handed a delay");
    if (operation->deliver_at > wall)
        sim_waiting_add(operation, operation->deliver_at - wall);
    else
        sim_ledger_send(operation);
}

void sim_broker_send(wb_transport_session *s, const wb_operation *operation)
{
    const char *destination = operation->destination;
    if (strcmp(destination, SIM_NOWHERE) == 0 || (strcmp(destination, SIM_LATER) == 0 && !later_is_there))
        return; /* it was not mandatory */
    if (s->has_transaction)
        stage(s, operation);
    else
        arrive(operation);
}

static int is_moved(const wb_transport_session *s, const sim_message *m)
{
    for (const sim_staged *staged = s->staged; staged; staged = staged->next)
        if ((strcmp(staged->operation.destination, SIM_ERROR_QUEUE) == 0 ||
             is_own_queue(staged->operation.destination)) &&
            sim_ledger_parse(staged->operation.body, staged->operation.body_size) == &sim_messages[m->twin])
            return 1;
    return sim_delayed_has_retry(m);
}

sim_message *sim_broker_find_objection(const wb_transport_session *s)
{
    for (const sim_delivery *d = s->deliveries; d; d = d->next)
        if (d->is_staged && d->message->fate == SIM_COMMIT_ABORTS && !is_moved(s, d->message))
            return d->message;
    return NULL;
}

void sim_broker_commit(wb_transport_session *s)
{
    s->has_transaction = 0;
    for (const sim_staged *staged = s->staged; staged; staged = staged->next)
        arrive(&staged->operation);
    drop_staged(s);
    sim_transaction_commit(&s->shared, s->endpoint, NULL);
    for (sim_delivery *d = s->deliveries, *next; d; d = next) {
        next = d->next;
        if (d->is_staged)
            sim_broker_acknowledge(s, &d->incoming);
    }
    sim_broker_pump();
}

void sim_broker_roll_back(wb_transport_session *s)
{
    s->has_transaction = 0;
    drop_staged(s);
    sim_transaction_roll_back(&s->shared);
    for (sim_delivery *d = s->deliveries; d; d = d->next)
        d->is_staged = 0;
}

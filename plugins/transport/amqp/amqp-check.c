/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/transport/amqp/amqp-bases.h"
#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-judge.h"
#include "plugins/transport/amqp/amqp-levels.h"

#define SECOND INT64_C(1000000000)
/* How long a binding counts as made: a queue that is deleted takes it along, and what then comes from
 * a level stays there and holds up the rest. */
#define BOUND_FOR (30 * SECOND)
/* A binding as a name to remember: no name of an exchange holds a line end. */
#define BINDING_SIZE (WB_AMQP_NAME_SIZE + 8)
/* How long an error queue counts as what it was found to be. Where asking costs the broker a line in its log,
 * longer. */
#define LOOKED_AT_FOR (30 * SECOND)
#define LOOKED_AT_LONG (600 * SECOND)
/* How long one that was refused stays so: all of a storm of failures is to be moved there. */
#define REFUSED_FOR (10 * SECOND)
#define LOOKED_AT_SIZE (WB_AMQP_NAME_SIZE + 12)

static const wb_amqp_channel *scratch_of(const wb_amqp_sender *sender)
{
    return &sender->connection.channels[WB_AMQP_SCRATCH];
}

int wb_amqp_check_server(wb_amqp_sender *sender, amqp_channel_t channel)
{
    const wb_amqp_channel *closed = &sender->connection.channels[channel];
    if (wb_amqp_map_cause(closed->code) != WB_CAUSE_SERVER)
        return WB_OK;
    return wb_amqp_connection_fail(&sender->connection, WB_NOT_CONNECTED, WB_CAUSE_SERVER,
                                   "the broker says: %s", closed->text);
}

/* ---- refusals -------------------------------------------------------------------- */

static void reject_exchange(wb_amqp_sender *sender, size_t slot, const char *name, const char *remedy)
{
    const wb_amqp_channel *scratch = scratch_of(sender);
    if (scratch->code == AMQP_NOT_FOUND)
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                              "there is no exchange \"%s\": %s", name, remedy);
    else
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, wb_amqp_map_cause(scratch->code),
                              "exchange \"%s\" cannot be used: the broker says: %s", name,
                              scratch->text);
}

static void reject_destination(wb_amqp_sender *sender, size_t slot, const char *name)
{
    reject_exchange(sender, slot, name, "is the receiving endpoint installed?");
}

static void reject_name(wb_amqp_sender *sender, size_t slot, const char *problem)
{
    int is_event = sender->window.slots[slot].operation->kind == WB_OPERATION_PUBLISH;
    int is_direct = sender->window.config->topology == WB_AMQP_TOPOLOGY_DIRECT;
    const char *what = is_direct ? "a routing key" : "an exchange";
    wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                          "its %s cannot name %s: %s", is_event ? "type" : "destination",
                          is_event ? what : "a queue", problem);
}

/* ---- at once --------------------------------------------------------------------- */

static int ensure_exchange(wb_amqp_sender *sender, const wb_operation *operation, const char *name)
{
    int is_event = operation->kind == WB_OPERATION_PUBLISH;
    int result =
        wb_amqp_destination_ensure(&sender->destinations, &sender->connection, name, is_event);
    if (result == WB_OK && is_event)
        result = wb_amqp_bases_ensure(&sender->destinations, &sender->connection, operation, name);
    return result;
}

/* Where there is a key, it is an exchange that every broker has: a queue that is not there comes
 * back. */
static int check_exchange(wb_amqp_sender *sender, size_t slot, const wb_amqp_route *route)
{
    const wb_operation *operation = sender->window.slots[slot].operation;
    if (route->key[0])
        return WB_OK;
    int result = ensure_exchange(sender, operation, route->exchange);
    if (result != WB_REJECT)
        return result;
    result = wb_amqp_check_server(sender, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        reject_destination(sender, slot, route->exchange);
    return result;
}

/* ---- error queues ----------------------------------------------------------------- */

static void name_look(const char *queue, char ret_name[LOOKED_AT_SIZE])
{
    (void)snprintf(ret_name, LOOKED_AT_SIZE, "arguments\n%.*s", WB_AMQP_NAME_SIZE, queue);
}

struct wb_amqp_refusal {
    wb_amqp_refusal *next;
    int64_t until;
    char queue[WB_AMQP_NAME_SIZE];
    char why[sizeof ((wb_amqp_failure *)0)->text];
};

static wb_amqp_refusal *find_refusal(const wb_amqp_sender *sender, const char *queue)
{
    wb_amqp_refusal *refusal = sender->refusals;
    while (refusal && strcmp(refusal->queue, queue) != 0)
        refusal = refusal->next;
    return refusal;
}

/* One for each error queue that was ever refused. Out of memory it is asked again. */
static wb_amqp_refusal *make_refusal(wb_amqp_sender *sender, const char *queue)
{
    wb_amqp_refusal *refusal = calloc(1, sizeof *refusal);
    if (!refusal)
        return NULL;
    (void)snprintf(refusal->queue, sizeof refusal->queue, "%s", queue);
    refusal->next = sender->refusals;
    sender->refusals = refusal;
    return refusal;
}

void wb_amqp_check_forget(wb_amqp_sender *sender)
{
    wb_amqp_refusal *next;
    for (wb_amqp_refusal *refusal = sender->refusals; refusal; refusal = next) {
        next = refusal->next;
        free(refusal);
    }
    sender->refusals = NULL;
}

static void refuse(wb_amqp_sender *sender, size_t slot, const char *why)
{
    wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_REFUSED, "%s", why);
}

static void refuse_for_a_while(wb_amqp_sender *sender, size_t slot, const char *queue, const char *why)
{
    wb_amqp_refusal *refusal = find_refusal(sender, queue);
    refuse(sender, slot, why);
    if (!refusal)
        refusal = make_refusal(sender, queue);
    if (!refusal)
        return;
    refusal->until = sender->connection.transport->host->now() + REFUSED_FOR;
    (void)snprintf(refusal->why, sizeof refusal->why, "%s", why);
}

static int look_at(wb_amqp_sender *sender, size_t slot, const char *queue, int *ret_is_there)
{
    wb_amqp_failure why;
    if (wb_amqp_judge_look_at(&sender->connection, queue, ret_is_there, &why) == WB_OK)
        return WB_OK;
    int result = sender->connection.failure.result;
    if (result == WB_OK)
        result = wb_amqp_check_server(sender, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        refuse_for_a_while(sender, slot, queue, why.text);
    return result;
}

/* One that was made anew since, with a limit, would confirm what it drops. */
static int check_error_queue(wb_amqp_sender *sender, size_t slot)
{
    const wb_operation *operation = sender->window.slots[slot].operation;
    wb_transport *transport = sender->connection.transport;
    char name[LOOKED_AT_SIZE];
    int is_there = 0;
    if (operation->kind == WB_OPERATION_PUBLISH)
        return WB_OK;
    const char *queue = wb_amqp_address_queue(operation->destination);
    if (!wb_amqp_judge_is_error_queue(transport, queue))
        return WB_OK;
    int64_t now = transport->host->now();
    const wb_amqp_refusal *refusal = find_refusal(sender, queue);
    if (refusal && now < refusal->until) {
        refuse(sender, slot, refusal->why);
        return WB_OK;
    }
    name_look(queue, name);
    if (wb_common_known_has(&sender->destinations, name, now))
        return WB_OK;
    int result = look_at(sender, slot, queue, &is_there);
    if (result == WB_OK && is_there && !sender->window.slots[slot].settled)
        wb_common_known_add(&sender->destinations, name,
                            now + (atomic_load(&transport->differs) ? LOOKED_AT_LONG : LOOKED_AT_FOR));
    return result;
}

void wb_amqp_check_missing(wb_amqp_sender *sender)
{
    char name[LOOKED_AT_SIZE];
    for (size_t i = 0; i < sender->window.count; i++) {
        const wb_operation *operation = sender->window.slots[i].operation;
        if (operation->result != WB_REJECT || operation->kind == WB_OPERATION_PUBLISH)
            continue;
        name_look(wb_amqp_address_queue(operation->destination), name);
        wb_common_known_drop(&sender->destinations, name);
    }
}

/* ---- delayed --------------------------------------------------------------------- */

/* By this machine's clock, as the host says it (transport.h). */
static int64_t delay_of(const wb_operation *operation)
{
    struct timespec now;
    if (!WB_HAS(operation, wb_operation, deliver_at) || operation->deliver_at == 0)
        return 0;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return wb_amqp_delay_seconds(operation->deliver_at, (int64_t)now.tv_sec * SECOND + now.tv_nsec);
}

/* The levels know queues by their addresses, and nothing of events: an event that nobody subscribed
 * to would stay there and hold up the rest.
 * @return whether it can be delayed; if not, it is settled. */
static int can_wait(wb_amqp_sender *sender, size_t slot)
{
    const wb_amqp_slot *it = &sender->window.slots[slot];
    int cause = WB_CAUSE_OTHER;
    const char *problem = NULL;
    if (it->operation->kind == WB_OPERATION_PUBLISH)
        problem = "an event cannot be delayed by the broker: delay a send, and have who gets it publish";
    else
        problem = wb_amqp_delay_problem(wb_amqp_address_queue(it->operation->destination), &cause);
    if (problem)
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, cause, "%s", problem);
    else if (it->delay > WB_AMQP_DELAY_MAX)
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_OTHER,
                              "it is due in %" PRId64 " s; the broker delays for %" PRId64 " s at most",
                              it->delay, WB_AMQP_DELAY_MAX);
    return !it->settled;
}

/* What is missing, of the two that a binding joins. */
static int reject_binding(wb_amqp_sender *sender, size_t slot)
{
    const char *queue = wb_amqp_address_queue(sender->window.slots[slot].operation->destination);
    const wb_amqp_channel refused = *scratch_of(sender);
    int result = wb_amqp_check_server(sender, WB_AMQP_SCRATCH);
    if (result != WB_OK)
        return result;
    if (refused.code != AMQP_NOT_FOUND) {
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, wb_amqp_map_cause(refused.code),
                              "delayed messages cannot be led to \"%s\": the broker says: %s", queue,
                              refused.text);
        return WB_OK;
    }
    result = wb_amqp_exchange_declare(&sender->connection, WB_AMQP_DELIVERY, 1);
    if (result == WB_REJECT)
        reject_exchange(sender, slot, WB_AMQP_DELIVERY, "run waybill install");
    else if (result == WB_OK)
        wb_amqp_window_settle(&sender->window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                              "there is no queue \"%s\": is the receiving endpoint installed?", queue);
    return result == WB_REJECT ? wb_amqp_check_server(sender, WB_AMQP_SCRATCH) : result;
}

/* Who sends makes the binding, as .NET does: an endpoint that was never told to wait for delayed
 * messages has none, and a destination that is not there is found now, not when it is due. */
static int check_binding(wb_amqp_sender *sender, size_t slot)
{
    const char *address = sender->window.slots[slot].operation->destination;
    int64_t now = sender->connection.transport->host->now();
    char binding[BINDING_SIZE];
    (void)snprintf(binding, sizeof binding, "delay\n%s", address);
    if (wb_common_known_has(&sender->destinations, binding, now))
        return WB_OK;
    int result = wb_amqp_levels_bind(&sender->connection, address);
    if (result == WB_OK)
        wb_common_known_add(&sender->destinations, binding, now + BOUND_FOR);
    return result == WB_REJECT ? reject_binding(sender, slot) : result;
}

static int check_level(wb_amqp_sender *sender, size_t slot, const char *level)
{
    int result = wb_amqp_destination_ensure(&sender->destinations, &sender->connection, level, 0);
    if (result != WB_REJECT)
        return result;
    result = wb_amqp_check_server(sender, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        reject_exchange(sender, slot, level, "run waybill install");
    return result;
}

static int check_delayed(wb_amqp_sender *sender, size_t slot, const wb_amqp_route *route)
{
    int result = check_binding(sender, slot);
    if (result == WB_OK && !sender->window.slots[slot].settled)
        result = check_level(sender, slot, route->exchange);
    return result;
}

/* ---- the window ------------------------------------------------------------------ */

static int check_destination(wb_amqp_sender *sender, size_t slot)
{
    wb_amqp_slot *it = &sender->window.slots[slot];
    wb_amqp_route route;
    it->delay = delay_of(it->operation);
    const char *problem = wb_amqp_route_make(sender->window.config, it->operation, &route);
    if (problem)
        reject_name(sender, slot, problem);
    if (problem || (it->delay && !can_wait(sender, slot)))
        return WB_OK;
    int result = check_error_queue(sender, slot);
    if (result != WB_OK || it->settled)
        return result;
    if (!it->delay)
        return check_exchange(sender, slot, &route);
    (void)wb_amqp_window_route(&sender->window, slot, &route);
    return check_delayed(sender, slot, &route);
}

int wb_amqp_check_destinations(wb_amqp_sender *sender)
{
    int result = WB_OK;
    for (size_t i = 0; i < sender->window.count && result == WB_OK; i++) {
        if (!sender->window.slots[i].settled)
            result = check_destination(sender, i);
    }
    return result;
}

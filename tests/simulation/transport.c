/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/transport.h"

#include <string.h>

#include "core/base/error.h"
#include "core/pipeline/window.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

#define SLOW_SEND (300 * WB_MILLISECOND)
/* After which the death of a connection is no longer what was sent's. */
#define LATE (8 * WB_SECOND)
/* What an open that fails leaves behind: whoever closes it, or uses it, dies. */
#define NOBODYS ((wb_transport_session *)UINTPTR_MAX)

static const sim_fault loss = { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 };

/* What a fault does to the session. */
static void suffer(wb_transport_session *s, sim_fault fault)
{
    int is_silence = fault.cause == WB_CAUSE_SENDING && !s->has_transaction;
    if (fault.result == WB_NOT_CONNECTED || (fault.result == WB_IN_DOUBT && !is_silence))
        sim_broker_lose(s);
}

/* Every call: a scheduling point, then what goes wrong. */
static sim_fault enter(wb_transport_session *s, sim_call call, const char *where)
{
    if (s->purpose == WB_SESSION_SEND) /* a pool's go from thread to thread */
        s->thread = sim_current();
    if (s->thread != sim_current())
        sim_violation("%s() on a session of another thread", where);
    sim_step(where);
    return s->is_dead ? loss : sim_fault_draw(call);
}

static int leave(wb_transport_session *s, sim_fault fault, const char *where, wb_error *error)
{
    suffer(s, fault);
    return fault.result == WB_OK ? WB_OK : sim_fault_fail(error, fault, where);
}

static int transport_open(wb_transport *t, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret, wb_error *error)
{
    sim_step("transport.open");
    sim_fault fault = sim_fault_draw(SIM_CALL_OPEN_TRANSPORT);
    *ret = NOBODYS;
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "transport.open");
    *ret = sim_broker_open(t->endpoint, purpose, prefetch);
    return WB_OK;
}

static void transport_close(wb_transport_session *s)
{
    sim_step("transport.close");
    sim_broker_close(s);
}

static int transport_set_prefetch(wb_transport_session *s, uint32_t prefetch, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_OTHER, "set_prefetch");
    s->prefetch = prefetch;
    return leave(s, fault, "set_prefetch", error);
}

static int need_not_wait(void *argument)
{
    const wb_transport_session *s = argument;
    return s->is_dead || s->is_interrupted || s->is_stopped || sim_broker_has_some(s);
}

static int transport_receive(wb_transport_session *s, int64_t deadline, const wb_incoming **messages,
                             size_t max, size_t *ret_count, wb_error *error)
{
    *ret_count = 0;
    sim_fault fault = enter(s, SIM_CALL_RECEIVE, "receive");
    if (fault.result != WB_OK)
        return leave(s, fault, "receive", error);
    if (!max)
        sim_violation("receive() of no messages");
    s->is_paused = 0;
    sim_broker_settle(s);
    if (sim_has_partitions())
        sim_partition_rebalance();
    sim_broker_pump();
    if (!need_not_wait(s) && deadline > sim_now())
        (void)sim_wait("receive", deadline, need_not_wait, s);
    s->is_interrupted = 0;
    if (s->is_dead)
        return leave(s, loss, "receive", error);
    *ret_count = sim_broker_take(s, messages, max);
    return WB_OK;
}

static int transport_acknowledge(wb_transport_session *s, const wb_incoming *const *messages,
                                 size_t count, wb_error *error)
{
    sim_fault fault = enter(s, s->has_transaction ? SIM_CALL_ACKNOWLEDGE_INSIDE : SIM_CALL_ACKNOWLEDGE, "acknowledge");
    s->hides_success = fault.result != WB_OK;
    if (!count && !s->is_dead && fault.result == WB_OK)
        sim_broker_settle(s);
    for (size_t i = 0; !s->is_dead && (fault.result == WB_OK || fault.done) && i < count; i++)
        sim_broker_acknowledge(s, messages[i]);
    sim_broker_pump();
    if (fault.result != WB_OK)
        return leave(s, fault, "acknowledge", error);
    sim_step("acknowledged");
    return WB_OK;
}

static int transport_give_back(wb_transport_session *s, const wb_incoming *const *messages, size_t count,
                               wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_OTHER, "give_back");
    for (size_t i = 0; !s->is_dead && fault.result == WB_OK && i < count; i++)
        sim_broker_give_back(s, messages[i]);
    sim_broker_pump();
    return leave(s, fault, "give_back", error);
}

/* ---- sending ---- */

static sim_message *cause_of(const wb_operation *operation)
{
    return sim_ledger_cause(operation);
}

/* The connection dies at this operation: what went out before may be there or not, confirmed or
 * not; its neighbours are innocent of that. */
static int die_sending(wb_transport_session *s, wb_operation *operation, wb_error *error)
{
    sim_tell("the connection dies at an operation for \"%s\" of message %u", operation->destination,
             cause_of(operation)->number);
    sim_broker_excuse_hand(cause_of(operation), 0);
    if (strcmp(operation->destination, SIM_KILLS_LATE) == 0)
        sim_sleep(LATE);
    return leave(s, loss, "send", error);
}

static int send_one(wb_transport_session *s, wb_operation *operation)
{
    int r = sim_broker_judge(operation);
    if (sim_outage_is_on(SIM_BROKER_NACKS) && r == WB_OK) {
        cause_of(operation)->strikes++;
        cause_of(operation)->excuses++;
        cause_of(operation)->control_nacks += !operation->body_size;
        r = WB_RETRY;
    }
    if (sim_outage_is_on(SIM_BROKER_FORBIDS) && r == WB_OK) {
        cause_of(operation)->excuses++; /* without outbox it runs again */
        operation->cause = WB_CAUSE_REFUSED;
        operation->reason = "the user may not write there";
        r = WB_REJECT;
    }
    operation->result = r == WB_OK || r == WB_REJECT ? r : WB_RETRY;
    if (r == WB_OK)
        sim_broker_send(s, operation);
    if (r == WB_RETRY || (r != WB_OK && s->has_transaction))
        sim_broker_excuse_hand(cause_of(operation), 0); /* all in a transaction run again */
    return r;
}

static int send_all(wb_transport_session *s, wb_operation *const *operations, size_t count, wb_error *error)
{
    int all = WB_OK;
    for (size_t i = 0; i < count && all != WB_ABORT; i++) {
        int r = send_one(s, operations[i]);
        if (r == WB_NOT_CONNECTED)
            return die_sending(s, operations[i], error);
        if (r == WB_FATAL)
            return wb_error_set(error, WB_FATAL, WB_CAUSE_REFUSED, 0, "sending to it is forbidden");
        if (r == WB_RETRY)
            all = wb_error_set(error, WB_RETRY, WB_CAUSE_OTHER, 0, "the queue takes nothing now");
        if (r == WB_ABORT || r == WB_IN_DOUBT)
            all = r;
    }
    return all;
}

typedef struct {
    int process;
    int64_t deadline;
} deadline_wait;

/* It was given before the process was told to stop. */
static int is_overtaken(void *argument)
{
    const deadline_wait *wait = argument;
    int64_t stopped = sim_broker_stopped_at(wait->process);
    return stopped && wait->deadline < stopped + WB_DISPATCH_TIMEOUT;
}

/* No confirmation comes. What began before the process was told to stop ends with that: it is
 * what begins later that must leave time. */
static void wait_for_deadline(int64_t deadline)
{
    deadline_wait wait = { sim_process(), deadline };
    if (deadline > sim_now())
        (void)sim_wait("send until the deadline", deadline, is_overtaken, &wait);
}

/* The loss of a connection, or of confirmations, in the middle of a window. */
static int send_some(wb_transport_session *s, wb_operation *const *operations, size_t count,
                     sim_fault fault, int64_t deadline, wb_error *error)
{
    size_t some = fault.done ? count : sim_random((unsigned)count + 1);
    wb_error ignored;
    int r = send_all(s, operations, some, &ignored);
    for (size_t i = 0; i < count; i++)
        if (i >= some || sim_random(2))
            operations[i]->result = WB_RETRY;
    if (r == WB_NOT_CONNECTED || r == WB_FATAL)
        return r;
    if ((fault.result == WB_RETRY || fault.cause == WB_CAUSE_SENDING) && sim_random(4) == 0)
        wait_for_deadline(deadline);
    return leave(s, fault, "send", error);
}

static int transport_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                          int64_t deadline, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_SEND, "send");
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_RETRY;
    if (sim_outage_is_on(SIM_BROKER_SLOW))
        sim_sleep(SLOW_SEND);
    if (s->is_dead)
        return leave(s, loss, "send", error);
    if (fault.result == WB_FATAL)
        return leave(s, fault, "send", error);
    if (fault.result != WB_OK)
        return send_some(s, operations, count, fault, deadline, error);
    int r = send_all(s, operations, count, error);
    if (r == WB_ABORT)
        return wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0, "nobody leads there now");
    if (r == WB_IN_DOUBT) {
        wait_for_deadline(deadline);
        return wb_error_set(error, r, WB_CAUSE_SENDING, 0, "no confirmation came");
    }
    if (r == WB_OK)
        sim_step("sent");
    return r;
}

/* ---- transactions ---- */

static int transport_begin(wb_transport_session *s, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_BEGIN, "transport.begin");
    if (fault.result != WB_OK)
        return leave(s, fault, "transport.begin", error);
    if (s->has_transaction)
        sim_violation("transport.begin() inside a transaction");
    s->has_transaction = 1;
    sim_transaction_start(&s->shared);
    return WB_OK;
}

/* What the database part of it cannot do, none of it does. */
static int refuse_commit(wb_transport_session *s, wb_error *error)
{
    const sim_transaction t = s->shared;
    sim_message *objection = sim_broker_find_objection(s);
    if (!objection && !t.is_broken && t.deferred_by == SIM_ITEM_NOBODY)
        return WB_OK;
    sim_broker_excuse_hand(objection, 0);
    sim_broker_roll_back(s);
    if (objection || t.is_deadlock)
        return wb_error_set(error, WB_ABORT, WB_CAUSE_OTHER, 0, "the transaction is aborted");
    return wb_error_set(error, WB_RETRY, t.is_servers ? WB_CAUSE_SERVER : WB_CAUSE_OTHER, 0,
                        "the transaction cannot be committed");
}

static int transport_commit(wb_transport_session *s, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_COMMIT, "transport.commit");
    if (!s->is_dead && !s->has_transaction)
        sim_violation("transport.commit() without a transaction");
    int r = s->is_dead ? WB_OK : refuse_commit(s, error);
    if (r != WB_OK)
        return r;
    s->hides_success = fault.result != WB_OK;
    if (!s->is_dead && (fault.result == WB_OK || fault.done))
        sim_broker_commit(s);
    else
        sim_broker_roll_back(s);
    /* what it did to a database of its own stays done: an attempt of each, chance or not */
    if (fault.result == WB_ABORT && the_shape.mode == WB_MODE_SENDS_ATOMIC)
        sim_broker_excuse_hand(NULL, 1);
    if (fault.result != WB_OK)
        return leave(s, fault, fault.done ? "transport.commit (done)" : "transport.commit", error);
    sim_step("transport committed");
    return WB_OK;
}

static int transport_rollback(wb_transport_session *s, wb_error *error)
{
    if (!s->has_transaction) { /* nothing is asked of the broker, and whether the session is lost does not show */
        sim_step("transport.rollback");
        return WB_OK;
    }
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_OTHER, "transport.rollback");
    sim_broker_roll_back(s);
    return leave(s, fault, "transport.rollback", error);
}

static void *transport_native(wb_transport_session *s)
{
    return s->shared.is_closed ? NULL : s;
}

static int transport_position_end(wb_transport_session *s, const char *partition, size_t size, uint64_t *ret_end,
                                  wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_OTHER, "position_end");
    *ret_end = sim_partition_end(s->endpoint, sim_partition_find(partition, size));
    return leave(s, fault, "position_end", error);
}

/* ---- beside the worker ---- */

static void transport_interrupt(wb_transport_session *s)
{
    s->is_interrupted = 1;
}

static int transport_stop_receiving(wb_transport_session *s, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_TRANSPORT_OTHER, "stop_receiving");
    s->is_stopped = 1;
    return leave(s, fault, "stop_receiving", error);
}

static void transport_release(wb_transport_session *s)
{
    sim_broker_release(s);
}

wb_transport_ops sim_transport_ops(void)
{
    const sim_shape *shape = &the_shape;
    int transactions = shape->mode >= WB_MODE_SENDS_ATOMIC;
    return (wb_transport_ops){
        .struct_size = sizeof(wb_transport_ops),
        .open = transport_open,
        .close = transport_close,
        .set_prefetch = shape->has_prefetch ? transport_set_prefetch : NULL,
        .receive = transport_receive,
        .acknowledge = transport_acknowledge,
        .give_back = transport_give_back,
        .send = transport_send,
        .begin = transactions ? transport_begin : NULL,
        .commit = transactions ? transport_commit : NULL,
        .rollback = transactions ? transport_rollback : NULL,
        .native = shape->mode == WB_MODE_TRANSACTION_SCOPE ? transport_native : NULL,
        .interrupt = transport_interrupt,
        .stop_receiving = shape->has_stop_receiving ? transport_stop_receiving : NULL,
        .release_prefetched = shape->has_release ? transport_release : NULL,
        .position_end = shape->positions ? transport_position_end : NULL,
    };
}

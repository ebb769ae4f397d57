/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/broker.h"

#include <stdlib.h>
#include <string.h>
#include <waybill/sys/expiry.h>

#include "core/message/session_control.h"
#include "core/pipeline/pipeline.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/waiting.h"

/* What a worker may have in hand: a batch, one that waits for its marks, one that it takes next,
 * and what it cannot move; with positions what is behind that fills its hands. */
#define IN_HAND_MAX (3 * the_shape.batch_max + 20 + (sim_has_partitions() ? 80u : 0u))

static wb_transport_session *sessions;
static unsigned first_queued[SIM_ENDPOINTS_MAX]; /* no message before it is in a queue */
static int64_t stopped_at[SIM_PROCESSES_MAX];
static const sim_message *the_killer;
static unsigned most_in_hand;

void sim_broker_note_stop(int process, int stops)
{
    stopped_at[process] = stops ? sim_now() : 0;
}

int64_t sim_broker_stopped_at(int process)
{
    return stopped_at[process];
}

void sim_broker_note_killer(const sim_message *killer)
{
    the_killer = killer;
}

unsigned sim_broker_most_in_hand(void)
{
    return most_in_hand;
}

/* ---- queues ---- */

static void put_in_queue(sim_message *m)
{
    m->place = SIM_QUEUED;
    if (sim_has_partitions() && !m->queued_at)
        sim_partition_place(m);
    m->queued_at = m->queued_at ? m->queued_at : sim_true_wall();
    if (m->number < first_queued[m->endpoint])
        first_queued[m->endpoint] = m->number;
}

void sim_broker_publish(unsigned first)
{
    for (unsigned i = first; i < sim_message_count; i++)
        if (sim_messages[i].place == SIM_AWAY && sim_messages[i].fate != SIM_SESSION &&
            sim_messages[i].fate != SIM_WRITTEN)
            put_in_queue(&sim_messages[i]);
    sim_broker_pump();
}

/* Nobody has received it in time, or it came back too late. @return whether it is dropped. */
static int drop_late(sim_message *m)
{
    if (!the_shape.expires ||
        !wb_has_expired(m->headers, m->header_count, m->queued_at, sim_true_wall()))
        return 0;
    if (m->level)
        sim_violation("message %u: a delayed retry expires", m->number);
    sim_tell("message %u (%s) expires", m->number, sim_fates[m->fate].name);
    m->place = SIM_EXPIRED;
    return 1;
}

static sim_message *find_queued(unsigned endpoint)
{
    if (sim_has_partitions())
        return NULL; /* nobody's until somebody asks */
    unsigned *at = &first_queued[endpoint];
    for (; *at < sim_message_count; (*at)++)
        if (sim_messages[*at].place == SIM_QUEUED && sim_messages[*at].endpoint == endpoint &&
            !drop_late(&sim_messages[*at]))
            return &sim_messages[*at];
    return NULL;
}

/* It comes back from a session that did not acknowledge it. */
static void requeue(sim_delivery *d)
{
    sim_message *m = d->message;
    m->excuses += m->failures - d->failures_before; /* who counted them has forgotten */
    if (d->is_away)
        return;
    if (the_shape.mode == WB_MODE_NONE && d->is_returned)
        return;
    m->delivery_count++;
    if (the_shape.delivery_limit && m->delivery_count > the_shape.delivery_limit) {
        sim_tell("the broker drops message %u: it came back too often", m->number);
        m->place = SIM_DROPPED;
        return;
    }
    put_in_queue(m);
}

/* ---- deliveries ---- */

static sim_delivery *deliver(wb_transport_session *s, sim_message *m)
{
    sim_delivery *d = calloc(1, sizeof *d);
    if (!d)
        abort();
    d->message = m;
    d->failures_before = m->failures;
    d->incoming = (wb_incoming){
        .struct_size = sizeof d->incoming,
        .id = m->id_size ? m->id : NULL,
        .id_size = m->id_size,
        .headers = m->headers,
        .header_count = m->header_count,
        .body = m->body,
        .body_size = m->body_size,
        .delivery_count = m->delivery_count,
        .problem = m->problem,
        .partition = sim_partition_name(m->partition),
        .partition_size = strlen(sim_partition_name(m->partition)),
        .position = m->position,
    };
    d->incoming.key = sim_partition_key(m);
    d->incoming.key_size = strlen(d->incoming.key);
    m->place = SIM_IN_HAND;
    m->deliveries++;
    sim_delivery **at = &s->deliveries; /* in order of receipt */
    while (*at)
        at = &(*at)->next;
    *at = d;
    s->count++;
    return d;
}

static int wants_more(const wb_transport_session *s, unsigned endpoint)
{
    return s->purpose & WB_SESSION_RECEIVE && s->endpoint == endpoint && !s->is_dead && !s->is_stopped &&
           !s->is_paused && (!s->prefetch || s->count < s->prefetch);
}

static wb_transport_session *choose_session(unsigned endpoint)
{
    wb_transport_session *found = NULL;
    unsigned seen = 0;
    for (wb_transport_session *s = sessions; s; s = s->next)
        if (wants_more(s, endpoint) && sim_random(++seen) == 0)
            found = s;
    return found;
}

static void pump_partitions(void)
{
    sim_message *m;
    for (wb_transport_session *s = sessions; s; s = s->next)
        while (wants_more(s, s->endpoint) && (m = sim_partition_next(s)))
            (void)deliver(s, m);
}

void sim_broker_pump(void)
{
    sim_message *m;
    wb_transport_session *s;
    if (sim_has_partitions() && the_shape.pushes)
        pump_partitions();
    for (unsigned endpoint = 0; the_shape.pushes && endpoint < the_shape.endpoints; endpoint++)
        while ((m = find_queued(endpoint)) && (s = choose_session(endpoint)))
            (void)deliver(s, m);
}

static void notice_the_dead(void);

static sim_message *next_of(const wb_transport_session *s)
{
    return sim_has_partitions() ? sim_partition_next(s) : find_queued(s->endpoint);
}

int sim_broker_has_some(const wb_transport_session *s)
{
    notice_the_dead();
    return s->count > s->returned || (!the_shape.pushes && !s->is_stopped && next_of(s));
}

static void hand_out(wb_transport_session *s, sim_delivery *d, const wb_incoming **to)
{
    d->is_returned = 1;
    s->returned++;
    if (the_shape.mode == WB_MODE_NONE)
        d->message->place = SIM_GONE;
    *to = &d->incoming;
}

static void note_in_hand(const wb_transport_session *s)
{
    if (s->returned > most_in_hand)
        most_in_hand = s->returned;
    if (s->returned > IN_HAND_MAX)
        sim_violation("a worker has %u messages in hand with batch_max = %u", s->returned,
                      the_shape.batch_max);
}

size_t sim_broker_take(wb_transport_session *s, const wb_incoming **messages, size_t max)
{
    size_t count = 0;
    sim_message *m;
    for (sim_delivery *d = s->deliveries; d && count < max; d = d->next)
        if (!d->is_returned)
            hand_out(s, d, &messages[count++]);
    while (!the_shape.pushes && !s->is_stopped && count < max && (m = next_of(s)))
        hand_out(s, deliver(s, m), &messages[count++]);
    note_in_hand(s);
    return count;
}

static sim_delivery *unlink_delivery(wb_transport_session *s, const wb_incoming *incoming)
{
    for (sim_delivery **at = &s->deliveries; *at; at = &(*at)->next) {
        sim_delivery *d = *at;
        if (&d->incoming != incoming || !d->is_returned)
            continue;
        *at = d->next;
        s->count--;
        s->returned--;
        return d;
    }
    sim_violation("a message that is not in hand is acknowledged or given back");
}

/* Whoever still looks at it sees no message, nor for a while the next one. */
static void destroy(sim_delivery *d)
{
    static sim_delivery *late[256];
    static unsigned next;
    memset(d, 0xdd, sizeof *d);
    free(late[next]);
    late[next] = d;
    next = (next + 1) % 256;
}

static int has_copies(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (i != m->number && sim_messages[i].id_size == m->id_size &&
            memcmp(sim_messages[i].id, m->id, m->id_size) == 0)
            return 1;
    return 0;
}

/* Whether it may have been moved, or parked to be moved. */
static int may_have_failed(const sim_message *m)
{
    return sim_fates[m->fate].flags & SIM_MAY_FAIL || sim_messages[m->twin].moved ||
           m->failures + m->strikes > the_shape.retries;
}

/* Of a closed id: the record that its session may still replace by its commit. */
static uint64_t replaced_by(const sim_message *m)
{
    wb_session_control control = { 0 };
    (void)wb_session_control_read(m->headers, m->header_count, &control);
    return control.replaces;
}

/* Its session is recorded, or shut out, or it comes again. */
static void check_control(const sim_message *m)
{
    const uint64_t record = sim_database_find(m->endpoint, m->id, m->id_size);
    int comes_again = sim_delayed_has_id(m) || sim_waiting_has_id(m);
    for (unsigned i = m->number + 1; i < sim_message_count && !comes_again; i++)
        comes_again = sim_messages[i].fate == SIM_SESSION_CONTROL && sim_messages[i].id_size == m->id_size &&
                      memcmp(sim_messages[i].id, m->id, m->id_size) == 0;
    if (comes_again || (record && record != replaced_by(m)))
        return;
    sim_message *session = sim_ledger_session(m->id, m->id_size);
    /* it could not be delayed, or was nacked too often */
    session->control_is_lost |= (the_shape.refuses_delays && sim_never_delays(session)) || session->control_nacks;
    if (!session->control_is_lost)
        sim_violation("the control message %u is acknowledged, its session is open, and it does not come again",
                      m->number);
}

/* With an outbox: only what is recorded and marked, or moved, may leave the queue. */
static void check_acknowledge(const sim_message *m)
{
    if (m->fate == SIM_SESSION_CONTROL) {
        check_control(m);
        return;
    }
    if (!the_shape.outbox || may_have_failed(m) || has_copies(m))
        return;
    const int is_alone = the_shape.positions == WB_POSITIONS_ALONE;
    uint64_t batch = is_alone ? sim_database_passed(m->endpoint, m->partition, m->position)
                              : sim_database_find(m->endpoint, m->id, m->id_size);
    if (the_shape.positions && !batch && sim_database_passed(m->endpoint, m->partition, m->position))
        return; /* its id is forgotten, its position is not */
    if (the_shape.apart && !batch)
        batch = sim_database_find(sim_apart(m->endpoint), m->id, m->id_size);
    const sim_row *row = batch ? sim_database_row(m->endpoint, is_alone ? m->batch : batch) : NULL;
    if (!batch)
        sim_violation("message %u is acknowledged and not recorded", m->number);
    if (row && !row->is_marked && !row->is_foreign)
        sim_violation("message %u is acknowledged and its operations are not marked", m->number);
}

static void acknowledge(wb_transport_session *s, const wb_incoming *incoming)
{
    sim_delivery *d = unlink_delivery(s, incoming);
    sim_message *m = d->message;
    if (the_shape.mode == WB_MODE_RECEIVE_ONLY && !d->is_put_off)
        check_acknowledge(m);
    sim_tell("message %u (%s) is done", m->number, sim_fates[m->fate].name);
    if (!d->is_away)
        m->place = SIM_GONE;
    if (!s->hides_success) {
        destroy(d);
        return;
    }
    d->next = s->lost;
    s->lost = d;
}

static sim_delivery *find_delivery(wb_transport_session *s, const wb_incoming *incoming)
{
    for (sim_delivery *d = s->deliveries; d; d = d->next)
        if (&d->incoming == incoming && !d->is_put_off)
            return d;
    sim_violation("a message that is not in hand is acknowledged");
}

static void put_off(sim_delivery *d)
{
    check_acknowledge(d->message);
    d->is_put_off = 1;
}

void sim_broker_acknowledge(wb_transport_session *s, const wb_incoming *incoming)
{
    if (s->has_transaction)
        find_delivery(s, incoming)->is_staged = 1;
    else if (the_shape.puts_off && the_shape.mode == WB_MODE_RECEIVE_ONLY && !s->hides_success)
        put_off(find_delivery(s, incoming));
    else
        acknowledge(s, incoming);
}

void sim_broker_settle(wb_transport_session *s)
{
    for (sim_delivery *d = s->deliveries, *next; d; d = next) {
        next = d->next;
        if (d->is_put_off)
            acknowledge(s, &d->incoming);
    }
}

void sim_broker_give_back(wb_transport_session *s, const wb_incoming *incoming)
{
    sim_delivery *d = unlink_delivery(s, incoming);
    requeue(d);
    destroy(d);
}

static unsigned released;

unsigned sim_broker_released(void)
{
    return released;
}

void sim_broker_release(wb_transport_session *s)
{
    s->is_paused = 1;
    for (sim_delivery **at = &s->deliveries; *at;) {
        sim_delivery *d = *at;
        if (d->is_returned) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        s->count--;
        released++;
        requeue(d);
        destroy(d);
    }
    sim_broker_pump();
}

void sim_broker_take_away(unsigned endpoint, unsigned partition)
{
    for (wb_transport_session *s = sessions; s; s = s->next)
        for (sim_delivery **at = &s->deliveries; *at;) {
            sim_delivery *d = *at;
            int is_it = s->endpoint == endpoint && d->message->partition == partition && !d->is_away;
            if (is_it) {
                requeue(d);
                d->message->excuses++;
                d->is_away = 1;
            }
            if (!is_it || d->is_returned) {
                at = &d->next;
                continue;
            }
            *at = d->next;
            s->count--;
            destroy(d);
        }
}

/* ---- sessions ---- */

wb_transport_session *sim_broker_open(unsigned endpoint, uint32_t purpose, unsigned prefetch)
{
    wb_transport_session *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->endpoint = endpoint;
    s->process = sim_process();
    s->thread = sim_current();
    s->purpose = purpose;
    s->prefetch = prefetch;
    s->next = sessions;
    sessions = s;
    sim_broker_pump();
    return s;
}

static int was_stopping(const wb_transport_session *s)
{
    return s->noticed_at ? s->was_stopping : stopped_at[s->process] != 0;
}

/* With mode none nobody delivers again what is in hand. An orderly stop finishes it, unless it was
 * just then in trouble. */
static void vanish(const wb_transport_session *s, const sim_delivery *d, int is_no_wonder)
{
    sim_message *m = d->message;
    if (the_shape.mode != WB_MODE_NONE || !d->is_returned)
        return;
    if (is_no_wonder || !was_stopping(s) || sim_faults_are_on() || m->excuses ||
        sim_fates[m->fate].flags & SIM_LEAVES_ROWS)
        m->vanished++;
    else
        m->abandoned++;
}

/* All that is in hand goes back to the queue; the memory stays the core's until it closes. */
static void return_all(wb_transport_session *s, int is_no_wonder)
{
    while (s->deliveries) {
        sim_delivery *d = s->deliveries;
        s->deliveries = d->next;
        vanish(s, d, is_no_wonder);
        if (was_stopping(s))
            d->message->excuses++;
        requeue(d);
        d->next = s->lost;
        s->lost = d;
    }
    s->count = s->returned = 0;
}

void sim_broker_lose(wb_transport_session *s)
{
    if (s->is_dead)
        return;
    s->is_dead = 1;
    sim_partition_leave(s);
    for (sim_delivery *d = s->deliveries; d; d = d->next)
        d->message->losses += sim_faults_are_on() != 0;
    sim_broker_roll_back(s);
    return_all(s, 1);
    sim_broker_pump();
}

static void unlink_session(const wb_transport_session *s)
{
    wb_transport_session **at = &sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

void sim_broker_close(wb_transport_session *s)
{
    if (!s->is_dead)
        sim_broker_settle(s);
    sim_broker_roll_back(s);
    sim_partition_leave(s);
    return_all(s, 0);
    unlink_session(s);
    while (s->lost) {
        sim_delivery *d = s->lost;
        s->lost = d->next;
        destroy(d);
    }
    memset(s, 0xdd, sizeof *s);
    free(s);
    sim_broker_pump();
}

/* The sessions of processes that are no more. */
static void notice_the_dead(void)
{
    int some = 0;
    for (wb_transport_session **at = &sessions; *at;) {
        wb_transport_session *s = *at;
        if (!s->noticed_at || s->noticed_at > sim_now()) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        sim_partition_leave(s);
        return_all(s, 1);
        some = 1;
    }
    if (some)
        sim_broker_pump();
}

static void excuse_the_dead(const wb_transport_session *s)
{
    for (sim_delivery *d = s->deliveries; d; d = d->next)
        if (d->is_returned) {
            d->message->deaths += the_killer == NULL;
            d->message->excuses += d->message != the_killer;
        }
}

/* With mode none nothing that was in hand comes back, late or not. */
static int64_t notice_time(void)
{
    int64_t latest = the_shape.mode == WB_MODE_NONE ? 0 : the_shape.notices_late;
    return sim_now() + (latest ? (int64_t)sim_random((unsigned)(latest / WB_MILLISECOND)) * WB_MILLISECOND : 0);
}

void sim_broker_bury(int process)
{
    for (wb_transport_session *s = sessions; s; s = s->next) {
        if (s->process != process || s->noticed_at)
            continue;
        excuse_the_dead(s);
        sim_broker_roll_back(s);
        s->is_dead = 1;
        s->was_stopping = stopped_at[process] != 0;
        s->noticed_at = notice_time();
    }
    the_killer = NULL;
    notice_the_dead();
    sim_broker_pump();
}

void sim_broker_excuse_hand(const sim_message *except, unsigned strikes)
{
    for (wb_transport_session *s = sessions; s; s = s->next)
        for (sim_delivery *d = s->deliveries; d && s->thread == sim_current(); d = d->next)
            if (d->is_returned && d->message != except) {
                d->message->excuses++;
                d->message->strikes += strikes;
            }
}

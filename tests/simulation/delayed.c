/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/delayed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/message/operations.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/persistence.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Looks at one endpoint's store in a second: more is a loop that never sleeps. */
#define LOOKS_A_SECOND 400
/* How long somebody else's change is waited for. */
#define LOCK_TIMEOUT (10 * WB_SECOND)

typedef struct {
    char destination[WB_DELAYED_DESTINATION_MAX];
    char id[WB_DELAYED_ID_MAX];
    size_t destination_size, id_size;
    uint32_t retries, failures;
    int64_t due, leased_until;
    char owner[WB_DELAYED_OWNER_SIZE];
    int doubtful; /* a lease of it ended: it may have been sent */
    void *operation;
    size_t operation_size;
} row;

typedef struct {
    row *rows;
    size_t count, max;
    /* A transaction that joined a transport's changes it: nobody else can, or sees it, until it ends. */
    const sim_transaction *changed_by;
    row *before; /* what was there */
    size_t before_count;
    int64_t second; /* in which looks are counted */
    unsigned looks;
} table;

static table tables[SIM_ENDPOINTS_MAX];
/* What was cancelled, with the answer that it was not sent. */
static table cancelled;
static int64_t clock_offset, clock_jumped;

/* ---- the clock --------------------------------------------------------------------- */

int64_t sim_database_wall(void)
{
    return sim_true_wall() + clock_offset;
}

void sim_database_set_clock(int64_t offset)
{
    clock_jumped += llabs(offset - clock_offset);
    clock_offset = offset;
}

int64_t sim_database_jumped(void)
{
    return clock_jumped;
}

/* ---- rows -------------------------------------------------------------------------- */

size_t sim_delayed_count(unsigned endpoint)
{
    return tables[endpoint].count + (tables[endpoint].changed_by != NULL);
}

static int has_id(const row *r, const sim_message *m)
{
    return r->id_size == m->id_size && memcmp(r->id, m->id, m->id_size) == 0;
}

int sim_delayed_has_id(const sim_message *m)
{
    const table *t = &tables[m->endpoint];
    for (size_t i = 0; i < t->count; i++)
        if (has_id(&t->rows[i], m))
            return 1;
    return 0;
}

int sim_delayed_has_retry(const sim_message *m)
{
    const table *t = &tables[m->endpoint];
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].retries == m->level + 1 && has_id(&t->rows[i], m))
            return 1;
    return 0;
}

/* Whose handler delayed it. */
static sim_message *sender_of(const row *r, int *ret_label)
{
    char text[24] = "";
    unsigned number;
    wb_arena arena;
    int failed;
    wb_arena_init(&arena, 4096);
    const wb_operation_group *group = wb_operations_decode(r->operation, r->operation_size, &arena, &failed);
    const wb_operation *operation = &group->operations.first->operation;
    memcpy(text, operation->body,
           operation->body_size < sizeof text ? operation->body_size : sizeof text - 1);
    *ret_label = -1; /* a delayed retry */
    (void)sscanf(text, "%u/%d/", &number, ret_label);
    sim_message *m = sim_ledger_parse(operation->body, operation->body_size);
    wb_arena_free(&arena);
    return m;
}

int sim_delayed_holds(const sim_message *m, int label)
{
    const table *t = &tables[m->endpoint];
    int own;
    for (size_t i = 0; i < t->count; i++)
        if (sender_of(&t->rows[i], &own) == &sim_messages[m->twin] && own == label)
            return 1;
    return 0;
}

static void *copy(const void *bytes, size_t size)
{
    void *to = malloc(size + 1);
    if (!to)
        abort();
    memcpy(to, bytes, size);
    return to;
}

static row *find(table *t, const wb_delayed_key *key)
{
    for (size_t i = 0; i < t->count; i++) {
        row *r = &t->rows[i];
        if (r->retries == key->retries && r->id_size == key->id_size &&
            r->destination_size == key->destination_size && memcmp(r->id, key->id, key->id_size) == 0 &&
            memcmp(r->destination, key->destination, key->destination_size) == 0)
            return r;
    }
    return NULL;
}

static void add(table *t, const wb_delayed *message)
{
    if (t->count == t->max) {
        t->max = t->max ? t->max * 2 : 64;
        t->rows = realloc(t->rows, t->max * sizeof *t->rows);
        if (!t->rows)
            abort();
    }
    row *r = &t->rows[t->count++];
    *r = (row){ .destination_size = message->destination_size,
                .id_size = message->id_size,
                .retries = message->retries,
                .due = message->due,
                .operation = copy(message->operation, message->operation_size),
                .operation_size = message->operation_size };
    memcpy(r->destination, message->destination, message->destination_size);
    memcpy(r->id, message->id, message->id_size);
}

/* Its bytes stay: what was there before a transaction may come back. */
static void drop(table *t, row *r)
{
    *r = t->rows[--t->count];
}

static int is_taken(const row *r)
{
    return r->leased_until > sim_database_wall();
}

static int is_owners(const row *r, const char *owner)
{
    return is_taken(r) && memcmp(r->owner, owner, sizeof r->owner) == 0;
}

/* ---- transactions that are joined --------------------------------------------------- */

typedef struct {
    const table *table;
    const sim_transaction *transaction; /* or NULL */
} change_wait;

static int may_change(void *argument)
{
    const change_wait *wait = argument;
    return !wait->table->changed_by || wait->table->changed_by == wait->transaction;
}

static void remember(table *t, const sim_transaction *transaction)
{
    t->changed_by = transaction;
    t->before = t->count ? copy(t->rows, t->count * sizeof *t->rows) : NULL;
    t->before_count = t->count;
}

/* @return whether it may be changed: not while another transaction does. */
static int begin_change(const wb_storage_session *s)
{
    table *t = &tables[s->endpoint];
    change_wait wait = { t, s->joined };
    if (!may_change(&wait) && !sim_wait("delayed: locked", sim_now() + LOCK_TIMEOUT, may_change, &wait))
        return 0;
    if (s->joined && !s->joined->is_open)
        sim_violation("the store is changed in a transaction that is over");
    if (s->joined && !t->changed_by)
        remember(t, s->joined);
    return 1;
}

static void end_change(table *t, int commits)
{
    if (!commits) {
        t->count = t->before_count;
        for (size_t i = 0; i < t->count; i++)
            t->rows[i] = t->before[i];
    }
    free(t->before);
    t->before = NULL;
    t->changed_by = NULL;
}

void sim_delayed_end(const sim_transaction *transaction, int commits)
{
    for (unsigned i = 0; i < SIM_ENDPOINTS_MAX; i++)
        if (tables[i].changed_by == transaction)
            end_change(&tables[i], commits);
}

/* ---- the SPI ----------------------------------------------------------------------- */

static sim_fault enter(wb_storage_session *s, sim_call call, const char *where)
{
    sim_fault fault = sim_persistence_enter(s, call, where);
    if (s->own.is_open)
        sim_violation("%s() inside a transaction", where);
    if (fault.result == WB_OK && sim_outage_is_on(SIM_DELAYED_RENAMED))
        return (sim_fault){ WB_FATAL, WB_CAUSE_MISSING, 0 };
    return fault;
}

static sim_fault enter_to_change(wb_storage_session *s, const char *where)
{
    static const sim_fault busy = { WB_RETRY, WB_CAUSE_SERVER, 0 };
    sim_fault fault = enter(s, SIM_CALL_DELAYED, where);
    if (s->is_dead && s->joined) /* one connection: the transaction is gone with it */
        s->joined->is_broken = s->joined->is_servers = 1;
    if ((fault.result == WB_OK || fault.done) && !begin_change(s)) {
        sim_broker_excuse_hand(NULL, 0);
        return busy;
    }
    return fault;
}

static int leave(sim_fault fault, const char *where, wb_error *error)
{
    return fault.result == WB_OK ? WB_OK : sim_fault_fail(error, fault, where);
}

static int delayed_initialize(wb_persistence *p, int32_t mode, wb_error *error)
{
    (void)p;
    (void)mode;
    (void)error;
    return WB_OK;
}

void sim_delayed_add(unsigned endpoint, const wb_delayed *messages, size_t count)
{
    table *t = &tables[endpoint];
    for (size_t i = 0; i < count; i++) {
        const wb_delayed *m = &messages[i];
        const wb_delayed_key key = { .destination = m->destination,
                                     .destination_size = m->destination_size,
                                     .id = m->id,
                                     .id_size = m->id_size,
                                     .retries = m->retries };
        if (!find(t, &key))
            add(t, m);
    }
}

static int delayed_store(wb_storage_session *s, const wb_delayed *messages, size_t count, wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.store");
    if (fault.result == WB_OK || fault.done)
        sim_delayed_add(s->endpoint, messages, count);
    return leave(fault, "delayed.store", error);
}

static void count_look(table *t)
{
    int64_t second = sim_now() / WB_SECOND;
    t->looks = second == t->second ? t->looks + 1 : 1;
    t->second = second;
    if (t->looks > LOOKS_A_SECOND)
        sim_violation("a poller looks %u times in a second", t->looks);
}

static int delayed_next(wb_storage_session *s, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    table *t = &tables[s->endpoint];
    sim_fault fault = enter(s, SIM_CALL_LOOK, "delayed.next");
    int is_old = t->changed_by && t->changed_by != s->joined;
    count_look(t);
    *ret_due = WB_NEVER_DUE;
    *ret_now = sim_database_wall();
    for (size_t i = 0; i < (is_old ? t->before_count : t->count); i++) {
        const row *r = is_old ? &t->before[i] : &t->rows[i];
        int64_t at = is_taken(r) && r->leased_until > r->due ? r->leased_until : r->due;
        *ret_due = at < *ret_due ? at : *ret_due;
    }
    return leave(fault, "delayed.next", error);
}

static row *find_due(table *t, int64_t at)
{
    row *first = NULL;
    for (size_t i = 0; i < t->count; i++) {
        row *r = &t->rows[i];
        if (r->due <= at && !is_taken(r) && (!first || r->due < first->due))
            first = r;
    }
    return first;
}

static int visit_row(row *r, wb_delayed_fn visit, void *argument)
{
    return visit(argument, &(wb_delayed){ .struct_size = sizeof(wb_delayed),
                                          .destination = r->destination,
                                          .destination_size = r->destination_size,
                                          .id = r->id,
                                          .id_size = r->id_size,
                                          .retries = r->retries,
                                          .failures = r->failures,
                                          .due = r->due,
                                          .operation = r->operation,
                                          .operation_size = r->operation_size });
}

/* A reply that is lost leaves it taken. Copied, since others go on before it is visited. */
static void take_due(wb_storage_session *s, sim_fault fault, const wb_delayed_fetch *fetch)
{
    table *t = &tables[s->endpoint];
    const int64_t now = sim_database_wall(), at = fetch->at ? fetch->at : now;
    row *r;
    s->taken_count = 0;
    s->taken = realloc(s->taken, (t->count + 1) * sizeof(row));
    if (!s->taken)
        abort();
    while ((fault.result == WB_OK || fault.done) && s->taken_count < fetch->limit && (r = find_due(t, at))) {
        memcpy(r->owner, fetch->owner, sizeof r->owner);
        r->doubtful |= r->leased_until != 0;
        r->leased_until = now + fetch->lease;
        ((row *)s->taken)[s->taken_count++] = *r;
    }
}

static void visit_taken(wb_storage_session *s, wb_delayed_fn visit, void *argument)
{
    for (size_t i = 0; i < s->taken_count; i++)
        if (visit_row((row *)s->taken + i, visit, argument) != WB_OK)
            break;
}

static int delayed_fetch(wb_storage_session *s, const wb_delayed_fetch *fetch, wb_delayed_fn visit,
                         void *argument, wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.fetch");
    take_due(s, fault, fetch);
    if (fault.result == WB_OK)
        visit_taken(s, visit, argument);
    return leave(fault, "delayed.fetch", error);
}

static void remove_rows(wb_storage_session *s, sim_fault fault, const char *owner, wb_delayed_key *keys, size_t count)
{
    for (size_t i = 0; (fault.result == WB_OK || fault.done) && i < count; i++) {
        row *r = find(&tables[s->endpoint], &keys[i]);
        keys[i].was_there = r && (!owner || is_owners(r, owner));
        if (keys[i].was_there)
            drop(&tables[s->endpoint], r);
    }
}

static int delayed_remove(wb_storage_session *s, const char *owner, wb_delayed_key *keys, size_t count,
                          wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.remove");
    remove_rows(s, fault, owner, keys, count);
    return leave(fault, "delayed.remove", error);
}

/* Done when it is sent, or when the answer is read: a server does it somewhere between. */
static int delayed_begin_fetch(wb_storage_session *s, wb_delayed_key *keys, size_t count,
                               const wb_delayed_fetch *fetch, wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.begin_fetch");
    s->is_late = sim_chance(30) && fault.result == WB_OK;
    s->begun_keys = keys;
    s->begun_count = count;
    s->begun = *fetch;
    if (!s->is_late) {
        remove_rows(s, fault, fetch->owner, keys, count);
        take_due(s, fault, fetch);
    }
    s->has_begun = fault.result == WB_OK;
    return leave(fault, "delayed.begin_fetch", error);
}

static int delayed_end_fetch(wb_storage_session *s, wb_delayed_fn visit, void *argument, wb_error *error)
{
    if (!s->has_begun)
        sim_violation("a fetch is ended that was not begun");
    s->has_begun = 0;
    sim_fault fault = enter_to_change(s, "delayed.end_fetch");
    if (s->is_late) {
        remove_rows(s, fault, s->begun.owner, s->begun_keys, s->begun_count);
        take_due(s, fault, &s->begun);
    }
    if (fault.result == WB_OK)
        visit_taken(s, visit, argument);
    return leave(fault, "delayed.end_fetch", error);
}

static int delayed_increment(wb_storage_session *s, const char *owner, wb_delayed_key *keys, size_t count,
                             int64_t due, wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.increment");
    for (size_t i = 0; (fault.result == WB_OK || fault.done) && i < count; i++) {
        row *r = find(&tables[s->endpoint], &keys[i]);
        keys[i].was_there = r && is_owners(r, owner);
        if (!keys[i].was_there)
            continue;
        r->failures++;
        r->due = due;
        r->leased_until = 0;
    }
    return leave(fault, "delayed.increment", error);
}

static int delayed_release(wb_storage_session *s, const char *owner, wb_delayed_key *keys, size_t count,
                           int64_t due, wb_error *error)
{
    sim_fault fault = enter_to_change(s, "delayed.release");
    for (size_t i = 0; (fault.result == WB_OK || fault.done) && i < count; i++) {
        row *r = find(&tables[s->endpoint], &keys[i]);
        keys[i].was_there = r && is_owners(r, owner);
        if (!keys[i].was_there)
            continue;
        r->due = due ? due : r->due;
        r->leased_until = 0;
    }
    return leave(fault, "delayed.release", error);
}

/* ---- somebody who cancels ------------------------------------------------------------ */

static wb_delayed_key key_of(const row *r)
{
    return (wb_delayed_key){ .destination = r->destination, .destination_size = r->destination_size,
                             .id = r->id, .id_size = r->id_size, .retries = r->retries };
}

/* The sender's message is done without what it delayed. */
static void excuse(const row *r)
{
    int label;
    sim_message *sender = sender_of(r, &label);
    if (sender)
        sender->sent |= 1u << SIM_LABEL_DELAYED;
}

static int has_arrived(const row *r)
{
    for (size_t i = 0; i < sim_sent_count; i++)
        if (sim_sents[i].id_size == r->id_size && memcmp(sim_sents[i].id, r->id, r->id_size) == 0 &&
            strncmp(sim_sents[i].destination, r->destination, r->destination_size) == 0)
            return 1;
    return 0;
}

/* Where it is stored behind the commit: who has not marked that it is stores it again if he dies. */
static int is_pending(unsigned endpoint, const row *r)
{
    const sim_table *t = &sim_tables[endpoint];
    for (size_t i = 0; i < t->row_count; i++)
        if (memmem(t->rows[i].bytes, t->rows[i].size, r->id, r->id_size))
            return 1;
    return 0;
}

int sim_delayed_cancel(unsigned endpoint)
{
    table *t = &tables[endpoint];
    row *r = t->count ? &t->rows[sim_chance(50) ? t->count - 1 : sim_random((unsigned)t->count)] : NULL;
    if (!r || r->leased_until || r->doubtful || r->retries ||
        (!the_shape.with_commit && is_pending(endpoint, r)))
        return 0;
    if (has_arrived(r))
        sim_violation("what was sent already is cancelled: %.*s", (int)r->id_size, r->id);
    sim_tell("%.*s is cancelled", (int)r->id_size, r->id);
    excuse(r);
    const wb_delayed_key key = key_of(r);
    add(&cancelled, &(wb_delayed){ .destination = key.destination, .destination_size = key.destination_size,
                                   .id = key.id, .id_size = key.id_size, .operation = "" });
    drop(t, r);
    return 1;
}

void sim_delayed_audit(void)
{
    for (size_t i = 0; i < cancelled.count; i++)
        if (has_arrived(&cancelled.rows[i]))
            sim_violation("what was cancelled arrives: %.*s", (int)cancelled.rows[i].id_size, cancelled.rows[i].id);
}

const wb_delayed_ops *sim_delayed_ops(void)
{
    static const wb_delayed_ops ops = { .struct_size = sizeof ops,
                                        .initialize = delayed_initialize,
                                        .store = delayed_store,
                                        .next = delayed_next,
                                        .fetch = delayed_fetch,
                                        .remove = delayed_remove,
                                        .increment_failure_count = delayed_increment,
                                        .release = delayed_release,
                                        .begin_fetch = delayed_begin_fetch,
                                        .end_fetch = delayed_end_fetch };
    return &ops;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/persistence.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/crash.h"
#include "core/base/error.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/random.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/written.h"

/* How long a claim held by somebody else is waited for. */
#define LOCK_TIMEOUT (10 * WB_SECOND)
/* What an open that fails leaves behind: whoever closes it, or uses it, dies. */
#define NOBODYS ((wb_storage_session *)UINTPTR_MAX)

static int is_loss(int result)
{
    return result == WB_NOT_CONNECTED || result == WB_IN_DOUBT;
}

static int lost(wb_error *error)
{
    return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0, "the database's connection is lost");
}

static int is_renamed(const wb_storage_session *s, sim_call call)
{
    if (s->endpoint >= SIM_ENDPOINTS_MAX)
        return sim_outage_is_on(SIM_STORE_RENAMED);
    return (call == SIM_CALL_BEGIN || call == SIM_CALL_MARK) && sim_outage_is_on(SIM_TABLE_RENAMED);
}

/* Every call: a scheduling point, then what goes wrong. */
sim_fault sim_persistence_enter(wb_storage_session *s, sim_call call, const char *where)
{
    if (the_shape.programs && !s->own.is_open) /* a pool's go from thread to thread */
        s->thread = sim_current();
    if (s->thread != sim_current())
        sim_violation("%s() on a session of another thread", where);
    sim_step(where);
    if (s->has_begun)
        sim_violation("%s() before a fetch that was begun is ended", where);
    if (s->is_dead)
        return (sim_fault){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 };
    if (s->endpoint >= SIM_ENDPOINTS_MAX && sim_outage_is_on(SIM_STORE_DOWN)) {
        s->is_dead = 1;
        sim_broker_excuse_hand(NULL, 0);
        return (sim_fault){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 };
    }
    if (is_renamed(s, call))
        return (sim_fault){ WB_FATAL, WB_CAUSE_MISSING, 0 };
    if (s->is_forbidden && call != SIM_CALL_ROLLBACK) {
        sim_broker_excuse_hand(NULL, sim_fault_strikes(call, 0));
        return (sim_fault){ WB_FATAL, WB_CAUSE_REFUSED, 0 };
    }
    sim_fault fault = sim_fault_draw(call);
    s->is_dead |= is_loss(fault.result);
    if (s->is_dead)
        sim_transaction_roll_back(&s->own);
    return fault;
}

static void refuse_inside(const wb_storage_session *s, const char *where)
{
    if (s->own.is_open)
        sim_violation("%s() inside a transaction", where);
}

static int persistence_open(wb_persistence *p, wb_storage_session **ret, wb_error *error)
{
    sim_step("persistence.open");
    sim_fault fault = sim_fault_draw(SIM_CALL_OPEN_STORAGE);
    if (p->endpoint >= SIM_ENDPOINTS_MAX && sim_outage_is_on(SIM_STORE_DOWN))
        fault = (sim_fault){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 };
    *ret = NOBODYS;
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "persistence.open");
    *ret = sim_database_open(p->endpoint);
    return WB_OK;
}

static void persistence_close(wb_storage_session *s)
{
    sim_step("persistence.close");
    sim_database_close(s);
}

/* ---- transactions ---- */

typedef struct {
    const wb_storage_session *session;
    const wb_claim *claim;
} claim_wait;

static int is_free(void *argument)
{
    const claim_wait *wait = argument;
    return !sim_database_is_claimed(wait->session, wait->claim->id, wait->claim->id_size);
}

static void expect_ascending(const wb_claim *a, const wb_claim *b, const char *where)
{
    int order = memcmp(a->id, b->id, a->id_size < b->id_size ? a->id_size : b->id_size);
    if (order > 0 || (order == 0 && a->id_size >= b->id_size))
        sim_violation("%s() gets ids in no order, or one twice", where);
}

static int claim_all(wb_storage_session *s, wb_begin *begin)
{
    for (size_t i = 1; i < begin->claim_count; i++)
        expect_ascending(&begin->claims[i - 1], &begin->claims[i], "begin");
    for (size_t i = 0; i < begin->claim_count; i++) {
        wb_claim *claim = &begin->claims[i];
        claim_wait wait = { s, claim };
        if (!is_free(&wait) && !sim_wait("claim", sim_now() + LOCK_TIMEOUT, is_free, &wait))
            return 0;
        claim->duplicate_of = sim_database_find(s->endpoint, claim->id, claim->id_size);
        if (!claim->duplicate_of)
            sim_database_claim(s, begin->batch, claim);
    }
    return 1;
}

typedef struct {
    const wb_storage_session *session;
    unsigned place;
} place_wait;

static int is_unlocked(void *argument)
{
    const place_wait *wait = argument;
    return !sim_database_has_place(wait->session, wait->place);
}

static int move_all(wb_storage_session *s, wb_begin *begin)
{
    for (size_t i = 0; i < begin->position_count; i++) {
        wb_position *position = &begin->positions[i];
        place_wait wait = { s, sim_partition_find(position->partition, position->partition_size) };
        if (wait.place == SIM_PARTITIONS || (i && memcmp(begin->positions[i - 1].partition, position->partition, 7) >= 0))
            sim_violation("begin() moves partitions in no order, or none");
        if (!is_unlocked(&wait) && !wb_bug("position_unfenced") &&
            !sim_wait("position", sim_now() + LOCK_TIMEOUT, is_unlocked, &wait))
            return 0;
        sim_database_move_on(s, wait.place, position, begin->batch);
    }
    return 1;
}

static sim_fault fail_next(wb_storage_session *s, int *next)
{
    static const sim_fault faults[] = { { WB_OK, 0, 0 },
                                        { WB_ABORT, WB_CAUSE_OTHER, 0 },
                                        { WB_RETRY, WB_CAUSE_SERVER, 0 },
                                        { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 } };
    sim_fault fault = faults[*next];
    *next = 0;
    s->is_dead |= is_loss(fault.result);
    if (fault.result != WB_OK)
        sim_broker_excuse_hand(NULL, 0);
    return fault;
}

/* All of one batch stand together. */
static void forget_all(wb_storage_session *s, const wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i; j-- && claims[i - 1].duplicate_of != claims[i].duplicate_of;)
            if (claims[j].duplicate_of == claims[i].duplicate_of)
                sim_violation("records to forget are in no order");
        sim_database_forget(s->endpoint, &claims[i]);
    }
}

static int persistence_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_BEGIN, "begin");
    if (fault.result == WB_OK)
        fault = fail_next(s, &s->begin_fails);
    refuse_inside(s, "begin");
    if (fault.result == WB_OK || sim_random(2))
        for (size_t i = 0; i < begin->mark_count; i++)
            sim_database_mark(s->endpoint, &begin->marks[i]);
    if (fault.result == WB_OK || sim_random(2))
        forget_all(s, begin->forgotten, begin->forgotten_count);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "begin");
    if (the_shape.lonely && begin->claim_count > 1)
        return sim_fault_fail(error, (sim_fault){ WB_ABORT, WB_CAUSE_OTHER, 0 }, "deadlock");
    sim_transaction_start(&s->own);
    if (!move_all(s, begin) || !claim_all(s, begin)) {
        sim_transaction_roll_back(&s->own);
        sim_broker_excuse_hand(NULL, 0);
        return sim_fault_fail(error, (sim_fault){ WB_RETRY, WB_CAUSE_SERVER, 0 }, "a neighbour holds a claim");
    }
    if (s->has_looked)
        s->commit_fails = 0;
    s->has_looked = 1;
    sim_step("begun");
    return WB_OK;
}

static int persistence_join(wb_storage_session *s, void *native, wb_error *error)
{
    wb_transport_session *transport = native;
    s->joined = transport ? &transport->shared : NULL;
    return s->is_dead ? lost(error) : WB_OK;
}

static const void *persistence_interface(wb_storage_session *s, const char *name)
{
    (void)name;
    return s;
}

static int persistence_check(wb_storage_session *s, size_t item, wb_error *error)
{
    sim_transaction *t = sim_database_transaction(s);
    if (s->is_dead)
        return lost(error);
    if (t->is_closed)
        sim_violation("check() of a connection that is closed");
    if (t->is_ended && !t->is_anew) {
        sim_transaction_name(t);
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "the handler ended the transaction");
    }
    if (!t->is_broken)
        return WB_OK;
    if (t->is_servers)
        return wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0, "the disk is full");
    if (t->is_deadlock || t->broken_by != item)
        return wb_error_set(error, WB_ABORT, WB_CAUSE_OTHER, 0, "the transaction was broken before");
    return wb_error_set(error, WB_RETRY, WB_CAUSE_OTHER, 0, "a statement failed");
}

/* Ids that a session claims with its commit: whoever holds one is waited for. */
static int claim_late(wb_storage_session *s, const wb_commit *commit, wb_error *error)
{
    static const int results[] = { WB_ABORT, WB_RETRY, WB_REJECT };
    for (size_t i = 0; i < commit->claim_count; i++) {
        wb_claim claim = commit->claims[i];
        claim_wait wait = { s, &claim };
        if (!is_free(&wait) && !sim_wait("claim with the commit", sim_now() + LOCK_TIMEOUT, is_free, &wait))
            return wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0, "a neighbour holds a claim");
        uint64_t owner = sim_database_find(s->endpoint, claim.id, claim.id_size);
        if (owner && owner != claim.duplicate_of)
            return wb_error_set(error, results[sim_random(3)], WB_CAUSE_OTHER, 0, "an id is recorded");
        sim_database_claim(s, commit->batch, &claim);
    }
    return WB_OK;
}

/* A deferred statement, or an earlier one that nobody looked after. */
static int fail_broken(sim_transaction *t, wb_commit *commit, wb_error *error)
{
    if (t->deferred_by != SIM_ITEM_NOBODY && !t->is_broken) {
        t->is_broken = 1;
        t->broken_by = t->deferred_by;
        if (sim_chance(70))
            commit->failed_item = t->deferred_by;
    }
    if (t->is_ended) {
        if (!t->is_guessed) {
            commit->failed_item = t->ended_by;
            sim_transaction_name(t);
        }
        for (size_t i = 0; t->is_guessed && the_shape.mode == WB_MODE_NONE && i < t->run_count; i++)
            t->runs[i]->message->strikes++;
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "it is not the transaction that was begun");
    }
    if (!t->is_broken)
        return WB_OK;
    if (t->is_deadlock)
        return wb_error_set(error, WB_ABORT, WB_CAUSE_OTHER, 0, "deadlock");
    return wb_error_set(error, WB_RETRY, t->is_servers ? WB_CAUSE_SERVER : WB_CAUSE_OTHER, 0,
                        "a statement failed");
}

static void make_durable(wb_storage_session *s, const wb_commit *commit)
{
    for (size_t i = 0; i < s->own.run_count; i++)
        s->own.runs[i]->message->batch = commit->batch;
    sim_transaction_commit(&s->own, s->endpoint, commit);
    if (commit->operations)
        (void)sim_database_store(s->endpoint, commit->batch, commit->operations, commit->operations_size, 0);
    sim_delayed_add(s->endpoint, commit->delayed, commit->delayed_count);
}

/* Messages that were beside the one whose statement failed run again. */
static void excuse_neighbours(const sim_transaction *t)
{
    for (size_t i = 0; i < t->run_count; i++)
        if (!(sim_fates[t->runs[i]->message->fate].flags & SIM_MUST_FAIL))
            t->runs[i]->message->excuses++;
}

/* ---- a commit that is on its way ---- */

typedef struct {
    unsigned endpoint;
    sim_run *runs[4];
    size_t run_count;
    char id[256];
    wb_claim claim;
    wb_commit commit;
} straggler;

/* It comes, and the server does what it says, if the id is still nobody's. */
static void *arrive_late(void *argument)
{
    straggler *late = argument;
    wb_error error;
    sim_sleep(sim_random_between(0, 2 * the_shape.commit_duration));
    wb_storage_session *s = sim_database_open(late->endpoint);
    sim_transaction_start(&s->own);
    for (size_t i = 0; i < late->run_count; i++)
        sim_transaction_add(&s->own, late->runs[i]);
    if (claim_late(s, &late->commit, &error) == WB_OK)
        make_durable(s, &late->commit);
    sim_database_close(s);
    return NULL;
}

/* Of one claim and few runs, without what is delayed: as sessions are. */
static void send_late(const wb_storage_session *s, const wb_commit *commit)
{
    straggler *late = calloc(1, sizeof *late);
    void *bytes = malloc(commit->operations_size + 1);
    if (!late || !bytes)
        abort();
    late->endpoint = s->endpoint;
    late->run_count = s->own.run_count < 4 ? s->own.run_count : 4;
    memcpy(late->runs, s->own.runs, late->run_count * sizeof late->runs[0]);
    memcpy(late->id, commit->claims->id, commit->claims->id_size);
    memcpy(bytes, commit->operations, commit->operations_size);
    late->claim = (wb_claim){ late->id, commit->claims->id_size, commit->claims->duplicate_of };
    late->commit = (wb_commit){ .struct_size = sizeof late->commit, .batch = commit->batch, .operations = bytes,
                                .operations_size = commit->operations_size, .claims = &late->claim, .claim_count = 1 };
    (void)sim_spawn(SIM_NO_PROCESS, "late commit", arrive_late, late);
}

static int may_be_late(const wb_storage_session *s, const wb_commit *commit)
{
    return commit->claim_count == 1 && commit->operations && !commit->delayed_count && !s->joined;
}

static int persistence_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    if (commit->claim_count && sim_chance(the_shape.late_percent))
        sim_sleep(sim_random_between(0, 2 * the_shape.commit_duration));
    if (!s->is_dead && !s->own.is_open && !s->own.is_ended)
        sim_violation("commit() without a transaction");
    sim_step("before commit");
    int r = s->is_dead ? lost(error) : fail_broken(&s->own, commit, error);
    if (r == WB_OK && commit->operations && sim_database_row(s->endpoint, commit->batch))
        r = wb_error_set(error, WB_RETRY, WB_CAUSE_OTHER, 0, "there is such a row");
    if (r == WB_OK && s->own.forbidden_by)
        r = wb_error_set(error, WB_FATAL, WB_CAUSE_REFUSED, 0, "permission denied");
    if (r == WB_OK)
        r = claim_late(s, commit, error);
    s->is_forbidden |= s->forbids_behind;
    if (r != WB_OK) {
        excuse_neighbours(&s->own);
        sim_transaction_roll_back(&s->own);
        return r;
    }
    sim_fault fault = sim_fault_draw(SIM_CALL_COMMIT);
    if (fault.result == WB_OK)
        fault = fail_next(s, &s->commit_fails);
    if (sim_outage_is_on(SIM_WRITES_BREAK) && (commit->operations || s->own.claim_count || s->own.run_count)) {
        sim_broker_excuse_hand(NULL, 0);
        fault = (sim_fault){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 };
    }
    if (sim_outage_is_on(SIM_WRITES_FORBIDDEN) && commit->operations) {
        sim_broker_excuse_hand(NULL, 0);
        fault = (sim_fault){ WB_FATAL, WB_CAUSE_REFUSED, 0 };
    }
    if (s->own.cut_by) {
        sim_broker_excuse_hand(s->own.cut_by, 0);
        fault = (sim_fault){ WB_IN_DOUBT, WB_CAUSE_OTHER, 0 };
    }
    if (fault.result == WB_OK || fault.done)
        make_durable(s, commit);
    else if (fault.result == WB_IN_DOUBT && may_be_late(s, commit) && sim_chance(50))
        send_late(s, commit);
    sim_transaction_roll_back(&s->own);
    s->is_dead |= is_loss(fault.result);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, fault.done ? "commit (done)" : "commit");
    sim_step("committed");
    return WB_OK;
}

static int persistence_rollback(wb_storage_session *s, wb_error *error)
{
    s->is_dead |= s->own.is_spoilt;
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_ROLLBACK, "rollback");
    s->is_forbidden |= s->forbids_behind;
    sim_transaction_roll_back(&s->own);
    return fault.result == WB_OK ? WB_OK : sim_fault_fail(error, fault, "rollback");
}

/* ---- outside of transactions ---- */

static int persistence_mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_MARK, "mark");
    refuse_inside(s, "mark");
    for (size_t i = 0; (fault.result == WB_OK || fault.done) && i < count; i++)
        sim_database_mark(s->endpoint, &marks[i]);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "mark");
    sim_step("marked");
    return WB_OK;
}

static int visit_row(unsigned endpoint, uint64_t batch, wb_pending_fn visit, void *argument)
{
    const sim_row *row = sim_database_row(endpoint, batch);
    if (!row)
        return WB_OK;
    char bytes[row->size + 1]; /* who visits may take long, and the row may change */
    wb_pending pending = { sizeof pending, batch, bytes, row->size };
    for (size_t i = 0; i < row->size; i++)
        bytes[i] = ((const char *)row->bytes)[i];
    return visit(argument, &pending);
}

static int persistence_pending(wb_storage_session *s, const uint64_t *batches, size_t count,
                               wb_pending_fn visit, void *argument, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "pending");
    int r = WB_OK;
    refuse_inside(s, "pending");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "pending");
    for (size_t i = 0; r == WB_OK && i < count; i++)
        r = visit_row(s->endpoint, batches[i], visit, argument);
    return r;
}

static int take_sweep(wb_storage_session *s)
{
    sim_table *t = &sim_tables[s->endpoint];
    if (t->sweeper)
        return 0;
    t->sweeper = s;
    return 1;
}

static int persistence_sweep(wb_storage_session *s, uint64_t before, size_t limit, wb_pending_fn visit,
                             void *argument, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "sweep");
    int r = WB_OK;
    refuse_inside(s, "sweep");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "sweep");
    if (!take_sweep(s))
        return WB_OK;
    uint64_t at = 0;
    for (size_t i = 0; r == WB_OK && i < limit && (at = sim_database_next_row(s->endpoint, at, before)); i++)
        r = visit_row(s->endpoint, at, visit, argument);
    sim_tables[s->endpoint].sweeper = NULL;
    return r;
}

static int persistence_next(wb_storage_session *s, uint64_t after, uint64_t before, wb_pending_fn visit,
                            void *argument, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "next_pending");
    int r = WB_OK;
    refuse_inside(s, "next_pending");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "next_pending");
    if (!take_sweep(s))
        return WB_OK;
    uint64_t at = sim_database_next_row(s->endpoint, after, before);
    if (at)
        r = visit_row(s->endpoint, at, visit, argument);
    sim_tables[s->endpoint].sweeper = NULL;
    return r;
}

static int persistence_take(wb_storage_session *s, uint64_t batch, int *ret_taken, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "take_pending");
    *ret_taken = WB_TAKEN_BY_OTHERS;
    refuse_inside(s, "take_pending");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "take_pending");
    *ret_taken = sim_database_take(s, batch);
    return WB_OK;
}

static int persistence_clean_up(wb_storage_session *s, uint64_t before, size_t limit,
                                size_t *ret_deleted, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "clean_up");
    *ret_deleted = 0;
    refuse_inside(s, "clean_up");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "clean_up");
    *ret_deleted = sim_database_clean_up(s->endpoint, before, limit);
    return WB_OK;
}

static int persistence_clock(wb_storage_session *s, int64_t *ret_wall, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "clock");
    refuse_inside(s, "clock");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "clock");
    *ret_wall = sim_database_wall();
    return WB_OK;
}

static int persistence_find(wb_storage_session *s, wb_claim *claims, size_t count, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_LOOK, "find");
    refuse_inside(s, "find");
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "find");
    for (size_t i = 0; i < count; i++)
        claims[i].duplicate_of = sim_database_find(s->endpoint, claims[i].id, claims[i].id_size);
    return WB_OK;
}

/* ---- deduplication in another store ---- */

static int persistence_forget(wb_storage_session *s, const wb_claim *claims, size_t count, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_MARK, "forget");
    refuse_inside(s, "forget");
    if (fault.result == WB_OK || fault.done)
        forget_all(s, claims, count);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "forget");
    sim_step("forgotten");
    return WB_OK;
}

static int persistence_remember(wb_storage_session *s, const wb_claim *claims, size_t count, wb_error *error)
{
    sim_fault fault = sim_persistence_enter(s, SIM_CALL_REMEMBER, "remember");
    for (size_t i = 0; (fault.result == WB_OK || fault.done) && i < count; i++) {
        if (i)
            expect_ascending(&claims[i - 1], &claims[i], "remember");
        sim_database_remember(s->endpoint, &claims[i]);
    }
    s->is_dead |= is_loss(fault.result);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, fault.done ? "remember (done)" : "remember");
    sim_step("remembered");
    return WB_OK;
}

/* What a plugin that is nothing else has. */
wb_persistence_ops sim_store_ops(void)
{
    return (wb_persistence_ops){
        .struct_size = sizeof(wb_persistence_ops),
        .open = persistence_open,
        .close = persistence_close,
        .clean_up = persistence_clean_up,
        .find = persistence_find,
        .remember = persistence_remember,
    };
}

wb_persistence_ops sim_persistence_ops(void)
{
    const sim_shape *shape = &the_shape;
    return (wb_persistence_ops){
        .struct_size = sizeof(wb_persistence_ops),
        .open = persistence_open,
        .close = persistence_close,
        .begin = persistence_begin,
        .join = shape->mode == WB_MODE_TRANSACTION_SCOPE ? persistence_join : NULL,
        .interface = persistence_interface,
        .check = shape->has_check ? persistence_check : NULL,
        .commit = persistence_commit,
        .rollback = persistence_rollback,
        .mark = persistence_mark,
        .pending = persistence_pending,
        .sweep = persistence_sweep,
        .clean_up = persistence_clean_up,
        .clock = shape->has_clock ? persistence_clock : NULL,
        .next_pending = shape->has_next_pending ? persistence_next : NULL,
        .delayed = shape->store || shape->drains ? sim_delayed_ops() : NULL,
        .find = shape->programs ? persistence_find : NULL,
        .take_pending = shape->has_take ? persistence_take : NULL,
        .forget = shape->apart ? persistence_forget : NULL,
        .written = shape->writers ? sim_written_ops() : NULL,
    };
}

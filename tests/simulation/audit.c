/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/audit.h"

#include <stdio.h>
#include <string.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/observer.h"
#include "tests/simulation/process.h"
#include "tests/simulation/programs.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/waiting.h"
#include "tests/simulation/written.h"

/* What fails by its own fault may run so often more than its retries: halved batches, a few tries
 * of a nacked window, deaths before it is a suspect. */
#define RUNS_OF_THE_GUILTY 25
/* Broken connections that a message is forgiven; deaths before a suspect is given up. */
#define LOSSES_FORGIVEN 3
#define DEATHS_FORGIVEN 3
/* So many deliveries are never the end of an innocent. */
#define DELIVERIES 10

#define NAME(m) (m)->number, sim_fates[(m)->fate].name

static unsigned flags_of(const sim_message *m)
{
    return sim_fates[m->fate].flags;
}

static int have_one_id(const sim_message *a, const sim_message *b)
{
    return a->endpoint == b->endpoint && a->id_size && a->id_size == b->id_size &&
           memcmp(a->id, b->id, a->id_size) == 0;
}

static unsigned moved(const sim_message *m)
{
    return sim_messages[m->twin].moved;
}

/* ---- rows ---- */

static int row_contains(const sim_row *row, const void *text, size_t size)
{
    return size && memmem(row->bytes, row->size, text, size) != NULL;
}

static int is_in_a_row(const sim_message *m)
{
    const sim_table *t = &sim_tables[m->endpoint];
    for (size_t i = 0; i < t->row_count; i++)
        if (row_contains(&t->rows[i], m->id, m->id_size) ||
            row_contains(&t->rows[i], m->body, m->body_size))
            return 1;
    return 0;
}

static int is_whole_in_a_row(const sim_message *m)
{
    const sim_table *t = &sim_tables[m->endpoint];
    for (size_t i = 0; i < t->row_count; i++)
        if (row_contains(&t->rows[i], m->body, m->body_size))
            return 1;
    return 0;
}

int sim_audit_is_parked(const sim_message *m)
{
    return is_whole_in_a_row(m);
}

/* Whether it holds what nobody can dispatch, or read. */
static int may_stay(const sim_row *row)
{
    static const char *const good[] = { SIM_SINK, SIM_REPLIES_QUEUE, SIM_ERROR_QUEUE, SIM_AUDIT_QUEUE,
                                        SIM_REVIEW_QUEUE };
    static const char *const bad[] = { SIM_NOWHERE, SIM_NACKS, SIM_NARROW, SIM_KILLS,
                                       SIM_BAD_BYTES, SIM_FATAL_QUEUE, SIM_SILENT, SIM_LEADERLESS };
    if (row->is_foreign || row_contains(row, "WBA", 3))
        return 1;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (flags_of(&sim_messages[i]) & SIM_STAYS &&
            row_contains(row, sim_messages[i].body, sim_messages[i].body_size))
            return 1;
    /* a copy for the error queue has what its message had, bad addresses, too */
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (row_contains(row, good[i], strlen(good[i]) + 1)) /* its NUL included: a destination */
            return 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (row_contains(row, bad[i], strlen(bad[i])))
            return 1;
    return 0;
}

/* ---- while it runs ---- */

/* Without outbox there is nowhere to park; and what meets the server's trouble is the server's as long
 * as nobody else's success says that it is not. */
static int may_wait(const sim_message *m)
{
    return (!the_shape.outbox && flags_of(m) & SIM_STAYS) || m->fate == SIM_QUOTA ||
           (m->fate == SIM_ENDS && sim_then_of(m->number) == SIM_THEN_SERVER);
}

static int is_settled(const sim_message *m)
{
    return m->place == SIM_GONE || m->place == SIM_DROPPED || m->place == SIM_EXPIRED || may_wait(m);
}

static int rows_are_settled(void)
{
    for (unsigned e = 0; the_shape.keepers && e < the_shape.endpoints; e++)
        for (size_t i = 0; i < sim_tables[e].row_count; i++)
            if (!may_stay(&sim_tables[e].rows[i]))
                return 0;
    return 1;
}

static int stores_are_empty(void)
{
    for (unsigned e = 0; e < the_shape.endpoints; e++)
        if (sim_delayed_count(e) || sim_written_count(e))
            return 0;
    return !sim_waiting_count();
}

int sim_audit_is_finished(char *what, size_t size)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (!is_settled(&sim_messages[i])) {
            (void)snprintf(what, size, "message %u (%s) is never done", NAME(&sim_messages[i]));
            return 0;
        }
    (void)snprintf(what, size, "operations stay pending, delayed messages wait, or what programs wrote does");
    return rows_are_settled() && stores_are_empty();
}

/* ---- one message ---- */

static int are_copies(const sim_message *a, const sim_message *b)
{
    return a == b || a->twin == b->twin || have_one_id(a, b);
}

/* Where nothing is written down, whoever is in hand each time a killer kills looks like one; and
 * so does whatever a broker pushes ahead that nobody can tell to push less. */
static int deliveries_tell_nothing(void)
{
    if (the_shape.pushes && !the_shape.has_prefetch)
        return 1;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].fate == SIM_KILLER)
            return 1;
    return 0;
}

/* Faults and neighbours may have cost it what no core could spare it. */
static int is_struck(const sim_message *m)
{
    if (!the_shape.outbox && m->delivery_count > DELIVERIES && deliveries_tell_nothing())
        return 1;
    if (m->strikes >= LOSSES_FORGIVEN && m->excuses > m->strikes)
        return 1; /* and a trouble of the server's, which others did not have */
    return m->failures + m->strikes > the_shape.retries || m->strikes > LOSSES_FORGIVEN ||
           m->losses > LOSSES_FORGIVEN || m->deaths >= DEATHS_FORGIVEN;
}

/* Copies in one hand share the fate of the first. */
static int is_excusable(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (are_copies(&sim_messages[i], m) &&
            (is_struck(&sim_messages[i]) || flags_of(&sim_messages[i]) & SIM_MAY_FAIL))
            return 1;
    return 0;
}

/* Its next delayed retry is there, or will be: that is the one to be looked at. */
static int has_come_back(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].twin == m->twin && sim_messages[i].level == m->level + 1)
            return 1;
    return sim_delayed_has_retry(m) || sim_waiting_has_retry(m);
}

static unsigned commits_of_id(const sim_message *m)
{
    unsigned commits = 0;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (&sim_messages[i] == m || have_one_id(&sim_messages[i], m))
            commits += the_shape.persistence ? sim_messages[i].commits : sim_messages[i].returned;
    return commits;
}

static unsigned effects(const sim_message *m)
{
    if (the_shape.outbox)
        return commits_of_id(m);
    return the_shape.persistence ? m->commits : m->returned;
}

/* What kills connections is told by its id: a copy of it that fails, too, is parked in its stead. */
static int is_parked_for_a_copy(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (are_copies(&sim_messages[i], m) && flags_of(&sim_messages[i]) & SIM_STAYS)
            return is_whole_in_a_row(m);
    return 0;
}

/* Whose effect a neighbour committed that nobody could name. */
static unsigned doubts(const sim_message *m)
{
    unsigned count = 0;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (&sim_messages[i] == m || have_one_id(&sim_messages[i], m))
            count += sim_messages[i].doubts;
    return count;
}

static int has_copies(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (&sim_messages[i] != m && are_copies(&sim_messages[i], m))
            return 1;
    return 0;
}

static void audit_loss(const sim_message *m)
{
    if (m->place == SIM_DROPPED)
        sim_violation("message %u (%s) is dropped by the broker: it came back %u times", NAME(m),
                      m->delivery_count);
    if (m->abandoned && !(flags_of(m) & SIM_STAYS))
        sim_violation("message %u (%s) is lost by an orderly stop", NAME(m));
    if (effects(m) || moved(m) || m->vanished || m->abandoned)
        return;
    if (m->fate == SIM_SESSION && !sim_session_insists(m))
        return; /* its program knows, or died */
    if (m->fate == SIM_WRITTEN)
        return; /* it was rolled back */
    if (has_come_back(m) || m->place == SIM_EXPIRED)
        return;
    if (flags_of(m) & SIM_IGNORED && m->place == SIM_GONE && (m->fate != SIM_DISCARDED || m->runs || has_copies(m)))
        return;
    if (may_wait(m) ? m->place != SIM_GONE : flags_of(m) & SIM_STAYS && is_in_a_row(m))
        return;
    if (is_parked_for_a_copy(m) || (!the_shape.keepers && is_whole_in_a_row(m)))
        return;
    sim_violation("message %u (%s) is lost", NAME(m));
}

static void audit_effects(const sim_message *m)
{
    int once = the_shape.outbox || the_shape.mode == WB_MODE_TRANSACTION_SCOPE || the_shape.mode == WB_MODE_NONE;
    if (once && m->fate != SIM_ENDS && effects(m) > 1 + doubts(m))
        sim_violation("message %u (%s) has %u effects", NAME(m), effects(m));
    /* a neighbour that ended their transaction may have committed it before it could fail */
    if (flags_of(m) & (SIM_MUST_FAIL | SIM_IGNORED) && the_shape.persistence && m->commits && !m->was_taken_along)
        sim_violation("message %u (%s) has an effect", NAME(m));
    if (flags_of(m) & SIM_MUST_FAIL && !effects(m) && !moved(m) && !m->vanished &&
        !(flags_of(m) & SIM_STAYS) && m->place == SIM_GONE && !is_parked_for_a_copy(m) &&
        !(!the_shape.keepers && is_whole_in_a_row(m)) && !has_come_back(m))
        sim_violation("message %u (%s) is not in the error queue", NAME(m));
    if (moved(m) && effects(m) && !(flags_of(m) & SIM_EFFECT_ANYWAY) && !has_copies(m) &&
        the_shape.persistence && !is_excusable(m))
        sim_violation("message %u (%s) has its effect and is in the error queue", NAME(m));
}

static void audit_blame(const sim_message *m)
{
    if (moved(m) && !(flags_of(m) & SIM_MAY_FAIL) && !is_excusable(m))
        sim_violation("message %u (%s) is innocent and in the error queue", NAME(m));
    if (the_shape.delayed_retries && !(flags_of(m) & SIM_MAY_FAIL) && !is_excusable(m) &&
        has_come_back(m))
        sim_violation("message %u (%s) is innocent and had a delayed retry", NAME(m));
}

/* With mode none it may have been in hand when all seemed done, and its process was told to stop. */
static int is_not_due(const sim_message *m, int label)
{
    return the_shape.mode == WB_MODE_NONE &&
           (sim_delayed_holds(m, label) || sim_waiting_holds(m, label));
}

/* What a committed run asked for must have arrived, but for what cannot. */
static void audit_zombie(const sim_message *m)
{
    unsigned missing = m->asked & ~sim_messages[m->twin].sent;
    if (m->fate != SIM_LATE_ROUTE && m->fate != SIM_SESSION)
        missing &= ~(1u << SIM_LABEL_BAD);
    if (!missing || m->vanished || m->fate == SIM_ENDS || (flags_of(m) & SIM_MUST_FAIL))
        return;
    if (moved(m) && (!the_shape.outbox || is_in_a_row(m) || !the_shape.keepers))
        return;
    if (m->place != SIM_GONE && !the_shape.outbox)
        return;
    if (the_shape.outbox && !the_shape.keepers && is_whole_in_a_row(m))
        return; /* parked, and nobody sweeps */
    if ((m->control_is_lost || (m->fate == SIM_SESSION && m->strikes)) && !the_shape.keepers)
        return; /* what was nacked too often, itself or its control message, is for who sweeps */
    if (missing == 1u << SIM_LABEL_EVENT && m->place == SIM_EXPIRED && is_in_a_row(m))
        return; /* may_stay() does not see an event beside what cannot be sent: it is swept later */
    if (m->place == SIM_EXPIRED && m->doubts)
        return; /* who ended its transaction committed its effect, and it was late to run again */
    if (missing == 1u << SIM_LABEL_DELAYED && is_not_due(m, SIM_LABEL_DELAYED))
        return;
    sim_violation("message %u (%s) has its effect without what it sends (%x)", NAME(m), missing);
}

static void audit_bad_send(const sim_message *m)
{
    if (m->place == SIM_EXPIRED && !the_shape.outbox)
        return; /* before it ran again */
    if (!(m->asked & 1u << SIM_LABEL_BAD) || moved(m) || is_in_a_row(m) || m->vanished ||
        is_not_due(m, SIM_LABEL_BAD) ||
        sim_messages[m->twin].sent & 1u << SIM_LABEL_BAD)
        return;
    sim_violation("message %u (%s): nobody hears of what could not be sent", NAME(m));
}

static void audit_runs(const sim_message *m)
{
    unsigned allowed = the_shape.retries + 1 + m->excuses;
    if (flags_of(m) & SIM_MAY_FAIL)
        allowed += RUNS_OF_THE_GUILTY + the_shape.retries * m->deliveries;
    if (is_struck(m))
        allowed += RUNS_OF_THE_GUILTY;
    if (m->runs > allowed && !may_wait(m) && m->fate != SIM_SESSION)
        sim_violation("message %u (%s) ran %u times, %u were excused", NAME(m), m->runs, m->excuses);
}

/* A copy may have met the server's trouble, or the end of a process, before its handler's verdict. */
static int is_excused_retry(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (are_copies(&sim_messages[i], m) && is_struck(&sim_messages[i]))
            return 1;
    return 0;
}

/* Where nothing goes wrong what fails has all its delayed retries before it is moved; what says that
 * it fails for good has none. */
static void audit_tries(const sim_message *m)
{
    if (m->fate == SIM_POISON && m->level && !is_excused_retry(m))
        sim_violation("message %u is unrecoverable and had a delayed retry", m->number);
    int is_calm = !the_shape.fault_permille && !the_shape.outages && !the_shape.deaths &&
                  !the_shape.stops && !sim_process_deaths();
    unsigned wanted = the_shape.refuses_delays && sim_never_delays(m) ? 0 : the_shape.delayed_retries;
    if (!is_calm || (m->fate != SIM_FAILING && m->fate != SIM_RECOVERS) || !moved(m))
        return;
    if (m->fate == SIM_RECOVERS && wanted >= SIM_RECOVERY)
        sim_violation("message %u is in the error queue, and would have recovered", m->number);
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].twin == m->twin && sim_messages[i].level == wanted)
            return;
    sim_violation("message %u is in the error queue before its delayed retries are over", m->number);
}

/* And each message is handled, or fails, once: what it was retried as, too. */
static void audit_shares(const sim_message *m)
{
    unsigned count = 0, ends = m->moved;
    if (the_shape.mode != WB_MODE_TRANSACTION_SCOPE || m->twin != m->number)
        return;
    for (unsigned i = 0; i < sim_message_count; i++) {
        const sim_message *one = &sim_messages[i];
        count += one->twin == m->number && !one->level;
        ends += one->twin == m->number ? one->commits : 0;
    }
    if (ends > count)
        sim_violation("message %u was there %u times, and was handled or moved %u times", m->number,
                      count, ends);
}

static void audit_foreigns(const sim_message *m)
{
    if (m->runs || m->place != SIM_GONE || moved(m))
        sim_violation("message %u was handled by a later version and is not let alone", m->number);
}

static void audit_message(const sim_message *m)
{
    if (m->is_foreigns) {
        audit_foreigns(m);
        return;
    }
    audit_loss(m);
    audit_blame(m);
    audit_effects(m);
    audit_zombie(m);
    audit_bad_send(m);
    audit_runs(m);
    audit_shares(m);
    audit_tries(m);
}

/* ---- what was sent ---- */

static void audit_ghost(const sim_sent *sent)
{
    const sim_run *run = sim_run_find(sent->run);
    if (sent->label < 0 || sent->label == SIM_LABEL_IMMEDIATE || !run)
        return;
    if (the_shape.persistence ? !run->committed : run->failed)
        sim_violation("message %u sent %d without an effect", sent->number, sent->label);
}

/* Where nothing goes wrong whoever has a lease sends what it is for, and nobody else. */
static void audit_once(const sim_sent *sent)
{
    if (the_shape.fault_permille || the_shape.outages || sim_process_deaths() || sim_database_jumped() || !sent->due)
        return;
    if (!the_shape.outbox || !the_shape.store)
        return; /* each copy of an incoming message sends it; a broker that delays knows no keys */
    for (const sim_sent *other = sim_sents; other < sent; other++)
        if (other->id_size == sent->id_size && memcmp(other->id, sent->id, sent->id_size) == 0)
            sim_violation("message %u: what it delayed arrives twice, and nothing went wrong", sent->number);
}

/* Where store, queues and effects are one transaction each run that was committed sends once,
 * whatever dies. */
static void audit_exactly_once(const sim_sent *sent)
{
    if (the_shape.mode != WB_MODE_TRANSACTION_SCOPE || !sent->run)
        return;
    for (const sim_sent *other = sim_sents; other < sent; other++)
        if (other->run == sent->run && other->label == sent->label && other->ordinal == sent->ordinal)
            sim_violation("message %u: what one run sends (%d) arrives twice", sent->number, sent->label);
}

/* Those of one body are one message to the audit queue. */
static void audit_copy(const sim_sent *sent)
{
    if (sent->label != SIM_LABEL_AUDIT)
        return;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].twin == sent->number && effects(&sim_messages[i]))
            return;
    sim_violation("message %u is in the audit queue and has no effect", sent->number);
}

/* Of what was delayed, or written in SQL, and refused: it tells when it failed. Beside it there may be the message, or
 * another copy. */
static int is_stored_copy(const sim_sent *sent)
{
    return (sent->due || sim_messages[sent->number].fate == SIM_WRITTEN) &&
           strcmp(sent->destination, SIM_ERROR_QUEUE) == 0;
}

static void audit_pair(const sim_sent *a, const sim_sent *b)
{
    if (a->id_size != b->id_size || memcmp(a->id, b->id, a->id_size) != 0 || a->label < 0 || b->label < 0)
        return;
    int has_copy = is_stored_copy(a) || is_stored_copy(b);
    if (a->number != b->number || a->label != b->label || a->ordinal != b->ordinal ||
        (!has_copy && strcmp(a->destination, b->destination) != 0))
        sim_violation("two different messages have the id %s: %u/%d/%u and %u/%d/%u", a->id, a->number,
                      a->label, a->ordinal, b->number, b->label, b->ordinal);
    int same = the_shape.outbox && a->label != SIM_LABEL_IMMEDIATE ? a->hash == b->hash
                                                                  : a->hash_steady == b->hash_steady;
    if (!same && !has_copy && sim_messages[a->number].fate != SIM_ENDS)
        sim_violation("duplicates of what message %u sent differ (%d)", a->number, a->label);
}

static void audit_sent(void)
{
    for (size_t i = 0; i < sim_sent_count; i++) {
        audit_ghost(&sim_sents[i]);
        audit_copy(&sim_sents[i]);
        audit_once(&sim_sents[i]);
        audit_exactly_once(&sim_sents[i]);
        for (size_t k = 0; k < i; k++)
            if (sim_sents[i].label >= 0)
                audit_pair(&sim_sents[i], &sim_sents[k]);
    }
}

/* A process may have ended between storing the new row and deleting the old one. */
static void audit_rows(void)
{
    for (unsigned e = 0; e < the_shape.endpoints; e++)
        if (sim_process_most_rows(e) > 2)
            sim_violation("%u pending rows hold one operation", sim_process_most_rows(e));
}

void sim_audit(void)
{
    audit_rows();
    for (unsigned i = 0; i < sim_message_count; i++)
        audit_message(&sim_messages[i]);
    audit_sent();
    sim_observer_audit();
}

/* Then its attempts stay written down. */
int sim_audit_somebody_waits(void)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (may_wait(&sim_messages[i]) && sim_messages[i].place != SIM_GONE)
            return 1;
    return 0;
}

/* Who parks a row anew makes a record of that, each time. */
static int is_of_parking(const sim_record *record)
{
    return record->id_size > 1 && record->id[0] == '\0' &&
           sim_true_wall() - record->born < the_shape.retention + 2 * the_shape.keeper_interval;
}

/* What is kept beyond its time, or NULL. */
static const char *find_old(void)
{
    for (unsigned e = 0; e < SIM_TABLES; e++) {
        const sim_table *t = &sim_tables[e];
        for (size_t i = 0; i < t->record_count; i++)
            if (!sim_database_row(e, t->records[i].batch) && !is_of_parking(&t->records[i]))
                return "a deduplication record";
        for (size_t i = 0; i < t->row_count; i++)
            if (row_contains(&t->rows[i], "WBA", 3) && !sim_audit_somebody_waits())
                return "a record of attempts";
    }
    return NULL;
}

int sim_audit_is_clean(void)
{
    return !find_old();
}

void sim_audit_old(void)
{
    const char *old = find_old();
    if (old)
        sim_violation("%s is kept beyond its time", old);
}

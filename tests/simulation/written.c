/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/written.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/handlers.h"
#include "tests/simulation/persistence.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/verdict.h"

#define KEYS_MAX 4
#define NO_KEY KEYS_MAX
/* Rows of one transaction, at most. */
#define LOT 3
#define ROLLBACKS_PERCENT 15
/* Of the transactions so many take so long: what others wrote later is committed before. */
#define SLOW_PERCENT 30
#define SLOW (2 * WB_SECOND)
/* What a look at all rows takes where it is dear. */
#define DEAR (5 * WB_MILLISECOND)

typedef struct {
    uint64_t number, tries;
    unsigned message;
    int64_t written, due;
    int is_committed;
} row;

typedef struct {
    row *rows; /* by number */
    size_t count, max;
    uint64_t last; /* number that was drawn */
    const wb_storage_session *turn;
    int is_locked[KEYS_MAX]; /* by a transaction that wrote it */
} table;

typedef struct {
    unsigned endpoint;
    sim_message *messages[LOT];
    sim_run *runs[LOT];
    size_t count;
} transaction;

static table tables[SIM_TABLES];
static unsigned commits[SIM_MESSAGES_MAX]; /* the how manieth commit each was; 0: none */
static unsigned commit_count;

static unsigned key_of(const sim_message *m)
{
    return m->number % 6 < the_shape.keys ? m->number % 6 : NO_KEY;
}

/* What a program writes: some events, some for a queue that refuses it. */
static sim_label label_of(const sim_message *m)
{
    return m->number % 10 == 9 ? SIM_LABEL_EVENT : m->number % 7 == 3 ? SIM_LABEL_BAD : SIM_LABEL_FIRST;
}

static const char *destination_of(const sim_message *m)
{
    static const char *const bad[] = { SIM_NOWHERE, SIM_NARROW };
    const sim_label label = label_of(m);
    return label == SIM_LABEL_EVENT ? NULL : label == SIM_LABEL_BAD ? bad[m->number % 2] : SIM_SINK;
}

size_t sim_written_count(unsigned endpoint)
{
    return tables[endpoint].count;
}

/* ---- writers --------------------------------------------------------------------------- */

static sim_message *take_one(unsigned endpoint, int without_key)
{
    sim_message *found = NULL;
    unsigned seen = 0;
    for (unsigned i = 0; i < sim_message_count; i++) {
        sim_message *m = &sim_messages[i];
        if (m->fate == SIM_WRITTEN && m->endpoint == endpoint && m->place == SIM_AWAY &&
            (!without_key || key_of(m) == NO_KEY) && sim_random(++seen) == 0)
            found = m;
    }
    if (found)
        found->place = SIM_IN_HAND;
    return found;
}

static int is_free(void *argument)
{
    return !*(const int *)argument;
}

/* A number is drawn once the key is had. */
static void insert(transaction *t, sim_message *m)
{
    table *to = &tables[m->endpoint];
    if (key_of(m) != NO_KEY) {
        (void)sim_wait("write a key", WB_NEVER, is_free, &to->is_locked[key_of(m)]);
        to->is_locked[key_of(m)] = 1;
    }
    if (to->count == to->max) {
        to->max = to->max ? to->max * 2 : 64;
        to->rows = realloc(to->rows, to->max * sizeof *to->rows);
        if (!to->rows)
            abort();
    }
    to->rows[to->count++] = (row){ .number = ++to->last, .message = m->number, .written = sim_true_wall() };
    t->runs[t->count] = sim_run_begin(m);
    t->runs[t->count]->asked = 1u << label_of(m);
    t->messages[t->count++] = m;
}

static row *find_row(table *in, unsigned message)
{
    for (size_t i = 0; i < in->count; i++)
        if (in->rows[i].message == message)
            return &in->rows[i];
    sim_violation("row %u is gone before its transaction ends", message);
}

static void drop(table *from, row *r)
{
    memmove(r, r + 1, (size_t)(from->rows + --from->count - r) * sizeof *r);
}

static void end(transaction *t, int commits_it)
{
    table *in = &tables[t->endpoint];
    for (size_t i = 0; i < t->count; i++) {
        sim_message *m = t->messages[i];
        row *r = find_row(in, m->number);
        sim_tell("row %llu (message %u) is %s", (unsigned long long)r->number, m->number,
                 commits_it ? "committed" : "rolled back");
        if (commits_it) {
            r->is_committed = 1;
            commits[m->number] = ++commit_count;
            sim_run_commit(t->runs[i]);
        } else
            drop(in, r);
        m->place = SIM_GONE;
        if (key_of(m) != NO_KEY)
            in->is_locked[key_of(m)] = 0;
    }
}

/* Whether it is committed; where the database is away the program does not know, and nor do we. */
static int is_to_be_committed(void)
{
    if (sim_outage_is_on(SIM_DATABASE_DOWN) || sim_outage_is_on(SIM_COMMITS_BREAK))
        return (int)sim_random(2);
    return !sim_chance(ROLLBACKS_PERCENT);
}

static void *write_rows(void *argument)
{
    const unsigned endpoint = *(const unsigned *)argument;
    sim_message *m;
    while ((m = take_one(endpoint, 0))) {
        transaction t = { .endpoint = endpoint };
        insert(&t, m);
        while (t.count < LOT && sim_chance(40) && (m = take_one(endpoint, 1)))
            insert(&t, m);
        sim_sleep(sim_random_between(0, sim_chance(SLOW_PERCENT) ? SLOW : 20 * WB_MILLISECOND));
        end(&t, is_to_be_committed());
        sim_sleep(sim_random_between(0, 200 * WB_MILLISECOND));
    }
    return NULL;
}

void sim_written_start(void)
{
    static int has_started;
    static unsigned numbers[SIM_ENDPOINTS_MAX];
    char name[24];
    for (unsigned e = 0; !has_started && e < the_shape.endpoints; e++) {
        numbers[e] = e;
        for (unsigned i = 0; i < the_shape.writers; i++) {
            (void)snprintf(name, sizeof name, "e%u/writer%u", e, i);
            (void)sim_spawn(SIM_NO_PROCESS, name, write_rows, &numbers[e]);
        }
    }
    has_started = 1;
}

/* ---- what arrives ------------------------------------------------------------------------ */

/* Each has one label: at its destination, or in the error queue. */
static int is_out(const sim_message *m)
{
    return m->sent != 0;
}

static void check_order(const sim_message *m)
{
    for (unsigned i = 0; i < sim_message_count; i++) {
        const sim_message *one = &sim_messages[i];
        if (one->fate == SIM_WRITTEN && one->endpoint == m->endpoint && key_of(one) == key_of(m) && commits[i] &&
            commits[i] < commits[m->number] && !is_out(one))
            sim_violation("row of message %u arrives before that of %u, which has its key and was committed earlier",
                          m->number, i);
    }
}

void sim_written_arrives(const sim_message *m, const sim_sent *sent)
{
    if (!commits[m->number])
        sim_violation("a row that is not committed arrives: message %u", m->number);
    if (sent->id_size != m->id_size || memcmp(sent->id, m->id, m->id_size) != 0)
        sim_violation("the row of message %u arrives under the id %s", m->number, sent->id);
    if (!is_out(m) && key_of(m) != NO_KEY)
        check_order(m);
}

/* ---- the SPI ----------------------------------------------------------------------------- */

void sim_written_leave(const wb_storage_session *s)
{
    if (tables[s->endpoint].turn == s)
        tables[s->endpoint].turn = NULL;
}

/* The server knows before the host does that a connection is lost. */
static sim_fault enter(wb_storage_session *s, sim_call call, const char *where)
{
    sim_fault fault = sim_persistence_enter(s, call, where);
    if (s->is_dead)
        sim_written_leave(s);
    return fault;
}

static int is_installed(wb_storage_session *s, int *ret_installed, wb_error *error)
{
    sim_fault fault = enter(s, SIM_CALL_LOOK, "is_installed");
    *ret_installed = fault.result == WB_OK;
    return fault.result == WB_OK ? WB_OK : sim_fault_fail(error, fault, "is_installed");
}

static int may_go(const table *in, const row *r)
{
    const sim_message *m = &sim_messages[r->message];
    const int64_t now = sim_database_wall();
    if (!r->is_committed || r->due > now)
        return 0;
    for (const row *one = in->rows; one < r && key_of(m) != NO_KEY; one++)
        if (one->is_committed && one->due > now && key_of(&sim_messages[one->message]) == key_of(m))
            return 0;
    return 1;
}

static wb_written_text text_of(const char *text)
{
    return (wb_written_text){ text, text ? strlen(text) : 0 };
}

static int visit_row(const row *r, wb_written_fn visit, void *argument)
{
    const sim_message *m = &sim_messages[r->message];
    char key[8], body[32], headers[48];
    (void)snprintf(key, sizeof key, "key-%u", key_of(m));
    (void)snprintf(body, sizeof body, "%u/%d/0", m->number, (int)label_of(m));
    (void)snprintf(headers, sizeof headers, "{\"Sim.Run\": \"%zu\"}", m->run->serial);
    const wb_written as_read = { .struct_size = sizeof as_read, .number = r->number, .form = WB_WRITTEN_FORM, .tries = r->tries,
                             .written = r->written, .id = { m->id, m->id_size },
                             .destination = text_of(destination_of(m)), .type = text_of(SIM_TYPE_SENT),
                             .headers = text_of(headers), .key = text_of(key_of(m) == NO_KEY ? NULL : key),
                             .body = text_of(body) };
    return visit(argument, &as_read);
}

/* A copy: rows come while somebody visits. */
static int visit_rows(const table *in, const wb_written_fetch *fetch, wb_written_fn visit, void *argument)
{
    row chosen[fetch->limit < in->count ? fetch->limit + 1 : in->count + 1];
    size_t count = 0;
    int r = WB_OK;
    for (size_t i = 0; i < in->count && count < fetch->limit; i++)
        if (in->rows[i].number > fetch->behind && may_go(in, &in->rows[i]))
            chosen[count++] = in->rows[i];
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = visit_row(&chosen[i], visit, argument);
    return r;
}

static uint64_t last_of(const table *in)
{
    uint64_t last = 0;
    for (size_t i = 0; i < in->count; i++)
        if (in->rows[i].is_committed)
            last = in->rows[i].number;
    return last;
}

static int fetch(wb_storage_session *s, wb_written_fetch *fetch, wb_written_fn visit, void *argument, wb_error *error)
{
    table *in = &tables[s->endpoint];
    sim_fault fault = enter(s, SIM_CALL_LOOK, "fetch what programs wrote");
    fetch->has_turn = 0;
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "fetch what programs wrote");
    if (in->turn && in->turn != s)
        return WB_OK;
    in->turn = s;
    fetch->has_turn = 1;
    if (fetch->behind)
        sim_tell("a look behind %llu of %llu", (unsigned long long)fetch->behind, (unsigned long long)in->last);
    if (fetch->wants_last)
        fetch->last = last_of(in);
    if (the_shape.dear_looks && !fetch->behind)
        sim_sleep(DEAR);
    return visit_rows(in, fetch, visit, argument);
}

static void remove_row(table *from, uint64_t number)
{
    for (size_t i = 0; i < from->count; i++) {
        row *r = &from->rows[i];
        if (r->number != number)
            continue;
        if (!is_out(&sim_messages[r->message]))
            sim_violation("row %llu (message %u) is removed before it is sent", (unsigned long long)number, r->message);
        drop(from, r);
        return;
    }
}

static void postpone_row(table *in, const wb_written_rest *rest)
{
    for (size_t i = 0; i < in->count; i++)
        if (in->rows[i].number == rest->number) {
            in->rows[i].due = sim_database_wall() + rest->pause;
            in->rows[i].tries += rest->is_tried != 0;
        }
}

static int settle(wb_storage_session *s, const uint64_t *removed, size_t removed_count, const wb_written_rest *rests,
                  size_t rest_count, wb_error *error)
{
    table *in = &tables[s->endpoint];
    sim_fault fault = enter(s, SIM_CALL_MARK, "settle what programs wrote");
    const int is_done = fault.result == WB_OK || fault.done;
    for (size_t i = 0; is_done && i < removed_count; i++)
        remove_row(in, removed[i]);
    for (size_t i = 0; is_done && i < rest_count; i++)
        postpone_row(in, &rests[i]);
    if (fault.result != WB_OK)
        return sim_fault_fail(error, fault, "settle what programs wrote");
    sim_step("settled");
    return WB_OK;
}

const wb_written_ops *sim_written_ops(void)
{
    static const wb_written_ops ops = { .struct_size = sizeof ops, .is_installed = is_installed, .fetch = fetch,
                                        .settle = settle };
    return &ops;
}

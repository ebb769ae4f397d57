/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger of a spec: whether all answers, and what is there at the end, can be true
 * together. Of two steps that overlapped either may have been first; what did not return ok
 * did not happen.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/specs.h"

/* A transaction: from its begin to what ended it. */
typedef struct {
    const wb_event *begin;
    const wb_event *end; /* commit or rollback, NULL: left open */
    int is_committed;
} transaction;

typedef struct {
    const wb_ledger *ledger;
    wb_client *look;
    transaction transactions[3 * WB_STEPS_MAX];
    size_t count;
} check;

/* ---- steps ------------------------------------------------------------------------------ */

size_t wb_steps_count(const wb_step *steps)
{
    size_t count = 0;
    while (count < WB_STEPS_MAX && steps[count].kind)
        count++;
    return count;
}

void wb_step_describe(const wb_step *step, char *text, size_t size)
{
    static const char *const names[] = { "", "begin", "commit", "rollback", "mark", "sweep", "clean up" };
    if (step->batch)
        (void)snprintf(text, size, "%s %u %s", names[step->kind], step->batch, step->ids);
    else
        (void)snprintf(text, size, "%s", names[step->kind]);
}

static int is_done(const wb_event *event, wb_step_kind kind)
{
    return event->step->kind == kind && event->result == WB_OK;
}

static int may_precede(const wb_event *a, const wb_event *b)
{
    return a->started < b->ended;
}

static int precedes(const wb_event *a, const wb_event *b)
{
    return a->ended < b->started;
}

/* ---- transactions ---------------------------------------------------------------------- */

static const wb_event *find_end(const wb_ledger *ledger, const wb_event *begin)
{
    const wb_event *end = ledger->events + ledger->count;
    for (const wb_event *event = begin + 1; event < end; event++)
        if (event->session == begin->session &&
            (event->step->kind == WB_STEP_COMMIT || event->step->kind == WB_STEP_ROLLBACK))
            return event;
    return NULL;
}

static void find_transactions(check *c)
{
    for (size_t i = 0; i < c->ledger->count; i++) {
        const wb_event *event = &c->ledger->events[i];
        if (!is_done(event, WB_STEP_BEGIN))
            continue;
        const wb_event *end = find_end(c->ledger, event);
        c->transactions[c->count++] =
            (transaction){ event, end, end && is_done(end, WB_STEP_COMMIT) };
    }
}

static const wb_claim *find_claim(const wb_event *event, char id)
{
    for (size_t i = 0; i < event->claim_count; i++)
        if (*(const char *)event->claims[i].id == id)
            return &event->claims[i];
    return NULL;
}

/* Whether the id was answered as ours; and whether it stayed so with the commit. */
static int has_claimed(const transaction *t, char id)
{
    const wb_claim *claim = find_claim(t->begin, id);
    return claim && claim->duplicate_of == 0;
}

static int has_kept(const transaction *t, char id)
{
    return t->is_committed && has_claimed(t, id) && !find_claim(t->end, id);
}

static const transaction *find_batch(const check *c, uint64_t batch)
{
    for (size_t i = 0; i < c->count; i++)
        if (WB_BATCH(c->transactions[i].begin->step->batch) == batch)
            return &c->transactions[i];
    return NULL;
}

/* Whether its pending row may have been marked, and its record deleted, before `by` (NULL:
 * the end). */
static int may_be_cleaned_up(const check *c, const transaction *t, const wb_event *by)
{
    for (size_t i = 0; i < c->ledger->count; i++) {
        const wb_event *clean_up = &c->ledger->events[i];
        if (!is_done(clean_up, WB_STEP_CLEAN_UP) || !may_precede(t->end, clean_up) ||
            (by && !may_precede(clean_up, by)))
            continue;
        for (size_t j = 0; j < c->ledger->count; j++) {
            const wb_event *mark = &c->ledger->events[j];
            if (is_done(mark, WB_STEP_MARK) && mark->step->batch == t->begin->step->batch &&
                may_precede(t->end, mark) && may_precede(mark, clean_up))
                return 1;
        }
    }
    return 0;
}

/* ---- what was answered ----------------------------------------------------------------- */

static int check_results(const check *c)
{
    int good = 1;
    for (size_t i = 0; i < c->ledger->count; i++) {
        const wb_event *event = &c->ledger->events[i];
        int is_batch = event->step->kind == WB_STEP_BEGIN || event->step->kind == WB_STEP_COMMIT;
        int is_end = is_batch || event->step->kind == WB_STEP_ROLLBACK;
        good &= event->result == WB_OK || event->result == WB_RETRY ||
                (is_end && event->result == WB_ABORT);
    }
    return wb_kit_check(c->look->kit, good, "a step failed other than for want of a lock");
}

/* Somebody else's id: that transaction has kept it, and may have committed before. */
static int check_duplicate(const check *c, const wb_event *begin, const wb_claim *claim)
{
    const transaction *owner = find_batch(c, claim->duplicate_of);
    return wb_kit_check(c->look->kit,
                        owner && has_kept(owner, *(const char *)claim->id) &&
                            may_precede(owner->end, begin),
                        "id %c is a duplicate of a batch that has not committed it",
                        *(const char *)claim->id);
}

/* Whether both certainly had it at one moment. */
static int overlap(const transaction *a, const transaction *b)
{
    return (!a->end || precedes(b->begin, a->end)) && (!b->end || precedes(a->begin, b->end));
}

/* Two transactions cannot both have an id while they are open, nor both keep it, unless the
 * record of one was cleaned up before the other claimed it. */
static int check_exclusive(const check *c, const transaction *a, const transaction *b, char id)
{
    wb_kit *kit = c->look->kit;
    if (a == b || !has_claimed(b, id))
        return 1;
    if (!wb_kit_check(kit, !overlap(a, b), "id %c belonged to two open transactions", id))
        return 0;
    if (!has_kept(a, id) || may_be_cleaned_up(c, a, b->begin))
        return 1;
    if (!wb_kit_check(kit, !precedes(a->end, b->begin), "id %c was handed out after its commit", id))
        return 0;
    return wb_kit_check(kit, !has_kept(b, id) || may_be_cleaned_up(c, b, a->begin),
                        "id %c was committed twice", id);
}

static int check_answers(const check *c)
{
    int good = 1;
    for (size_t i = 0; i < c->count; i++) {
        const wb_event *begin = c->transactions[i].begin;
        for (size_t n = 0; n < begin->claim_count; n++) {
            if (begin->claims[n].duplicate_of) {
                good &= check_duplicate(c, begin, &begin->claims[n]);
                continue;
            }
            for (size_t j = 0; j < c->count; j++)
                good &= check_exclusive(c, &c->transactions[i], &c->transactions[j],
                                        *(const char *)begin->claims[n].id);
        }
    }
    return good;
}

/* ---- pending rows ---------------------------------------------------------------------- */

typedef enum { IS_ABSENT, MAY_BE_THERE, IS_THERE } presence;

/* Of a pending row: what the commits and marks say that may have happened before `by`, or at
 * the end. */
static presence find_presence(const check *c, uint64_t batch, const wb_event *by)
{
    const transaction *t = find_batch(c, batch);
    if (!t || !t->is_committed || (by && !may_precede(t->end, by)))
        return IS_ABSENT;
    presence is = by && !precedes(t->end, by) ? MAY_BE_THERE : IS_THERE;
    for (size_t i = 0; i < c->ledger->count; i++) {
        const wb_event *mark = &c->ledger->events[i];
        if (!is_done(mark, WB_STEP_MARK) || WB_BATCH(mark->step->batch) != batch ||
            !may_precede(t->end, mark) || (by && !may_precede(mark, by)))
            continue;
        if (precedes(t->end, mark) && (!by || precedes(mark, by)))
            return IS_ABSENT;
        is = MAY_BE_THERE;
    }
    return is;
}

static int is_alone(const check *c, const wb_event *sweep)
{
    for (size_t i = 0; i < c->ledger->count; i++) {
        const wb_event *other = &c->ledger->events[i];
        if (other != sweep && other->step->kind == WB_STEP_SWEEP && may_precede(other, sweep) &&
            may_precede(sweep, other))
            return 0;
    }
    return 1;
}

static int check_sweep(const check *c, const wb_event *sweep)
{
    int good = 1;
    for (size_t i = 1; i < sweep->visited_count; i++)
        good &= wb_kit_check(c->look->kit, sweep->visited[i - 1] < sweep->visited[i],
                             "a sweep went back, or visited a row twice");
    for (uint64_t n = 1; n < WB_STEP_BATCHES; n++) {
        int was_visited = 0;
        for (size_t i = 0; i < sweep->visited_count; i++)
            was_visited |= sweep->visited[i] == WB_BATCH(n);
        presence is = find_presence(c, WB_BATCH(n), sweep);
        good &= wb_kit_check(c->look->kit, is != IS_ABSENT || !was_visited,
                             "a sweep visited batch %u, which had no row", (unsigned)n);
        good &= wb_kit_check(c->look->kit, is != IS_THERE || was_visited || !is_alone(c, sweep),
                             "a sweep passed over batch %u", (unsigned)n);
    }
    return good;
}

static int check_sweeps(const check *c)
{
    int good = 1;
    for (size_t i = 0; i < c->ledger->count; i++)
        if (is_done(&c->ledger->events[i], WB_STEP_SWEEP))
            good &= check_sweep(c, &c->ledger->events[i]);
    return good;
}

/* ---- what is there at the end ---------------------------------------------------------- */

static int check_row(const check *c, uint64_t batch)
{
    wb_found found;
    int r = wb_client_pending(c->look, &batch, 1, &found);
    presence is = find_presence(c, batch, NULL);
    int has_bytes = found.count == 0 ||
                    (found.operations_size == 10 && memcmp(found.operations, "operations", 10) == 0);
    free(found.operations);
    return wb_client_check(c->look, r, WB_OK, "read a pending row") &&
           wb_kit_check(c->look->kit, has_bytes, "a pending row has other bytes") &&
           wb_kit_check(c->look->kit, is == MAY_BE_THERE || (is == IS_THERE) == (found.count == 1),
                        "the pending row of batch %u is %s", (unsigned)(batch - WB_BATCH(0)),
                        found.count ? "there although it was marked or never committed" : "missing");
}

/* The last batch that kept an id has it; it may have been cleaned up. */
static int check_owner(const check *c, char id)
{
    const transaction *owner = NULL;
    for (size_t i = 0; i < c->count; i++)
        if (has_kept(&c->transactions[i], id) &&
            (!owner || owner->end->ended < c->transactions[i].end->ended))
            owner = &c->transactions[i];
    if (owner && may_be_cleaned_up(c, owner, NULL))
        return 1;
    return wb_client_finds_owner(c->look, &id, 1,
                                 owner ? WB_BATCH(owner->begin->step->batch) : 0);
}

int wb_ledger_check(const wb_ledger *ledger, wb_client *look)
{
    check c = { .ledger = ledger, .look = look };
    find_transactions(&c);
    int good = check_results(&c) & check_answers(&c) & check_sweeps(&c);
    for (uint64_t n = 1; n < WB_STEP_BATCHES; n++)
        good &= check_row(&c, WB_BATCH(n));
    for (char id = 'a'; id <= 'c'; id++)
        good &= check_owner(&c, id);
    return good;
}

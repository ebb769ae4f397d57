/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers do in the database: plain changes, and such as break the transaction they are
 * in at once, later, for a reason of the server's, or by ending it.
 */
#include "config.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/shape.h"

static void break_it(sim_transaction *t, size_t item)
{
    if (t->is_broken)
        return;
    t->is_broken = 1;
    t->broken_by = item;
}

/* Deferred statements go out with the next one that is not. */
static void flush(sim_transaction *t)
{
    if (t->deferred_by != SIM_ITEM_NOBODY)
        break_it(t, t->deferred_by);
}

static int meet_fault(wb_storage_session *s, sim_transaction *t, size_t item)
{
    sim_fault fault = sim_fault_draw(SIM_CALL_STATEMENT);
    switch (fault.result) {
    case WB_OK: return 0;
    case WB_NOT_CONNECTED: s->is_dead = 1; break;
    case WB_ABORT: t->is_deadlock = 1; break;
    default: t->is_servers = 1; break;
    }
    break_it(t, item);
    return 1;
}

/* With mode none nobody knows what became of them, and none may run again. */
static void strike_company(const sim_transaction *t)
{
    for (size_t i = 0; the_shape.mode == WB_MODE_NONE && i < t->run_count; i++)
        t->runs[i]->message->strikes++;
}

/* Each message has its own way: a commit or a rollback; a session that is good for nothing
 * afterwards or is not; and another transaction or none. Who ended it by a rollback may be
 * unknown then. Of several in one batch the first is the one that counts, and the others roll
 * back: of two commits that nobody sees, nobody could say who was before which. */
static void end_by_hand(wb_storage_session *s, size_t item, sim_run *run)
{
    sim_transaction *t = sim_database_transaction(s);
    unsigned way = run->message->number;
    size_t first = t->is_ended ? t->ended_by : item;
    size_t ended_count = t->ended_count; /* those of the first stay in doubt */
    int is_rolled_back = way & 1 || t->is_ended;
    int is_guessed = t->is_ended ? t->is_guessed : (way & 9) == 9;
    int is_anew = t->is_ended || way & 4;
    strike_company(t);
    sim_transaction_add(t, run);
    for (size_t i = 0; !is_rolled_back && i < t->run_count; i++)
        t->runs[i]->message->was_taken_along = t->runs[i] != run;
    if (is_rolled_back)
        sim_transaction_roll_back(t);
    else
        sim_transaction_end(t, s->endpoint);
    t->ended_count += ended_count;
    if (the_shape.ends_trouble && the_shape.outbox) { /* else nothing is made good */
        s->begin_fails = (int)(run->message->number / 8 % 4);
        s->commit_fails = (int)(run->message->number / 3 % 4);
        s->has_looked = 0;
    }
    t->is_ended = 1;
    t->is_spoilt = (way & 2) != 0;
    t->is_anew = t->is_open = is_anew;
    t->ended_by = first;
    t->is_guessed = is_guessed;
}

static int cut(wb_storage_session *s, const sim_message *m)
{
    sim_broker_excuse_hand(m, 0);
    s->is_dead = 1;
    return WB_NOT_CONNECTED;
}

/* Of some it ends with the transaction, of others it stays. */
static void forbid(wb_storage_session *s, sim_transaction *t, sim_message *m)
{
    sim_broker_excuse_hand(m, 0);
    t->forbidden_by = m;
    s->forbids_behind |= (int)(m->number % 2);
}

static int execute(wb_storage_session *s, sim_transaction *t, size_t item, sim_run *run,
                   sim_statement statement)
{
    switch (statement) {
    case SIM_STATEMENT_FAILING: break_it(t, item); return WB_RETRY;
    case SIM_STATEMENT_QUOTA:
        t->is_servers |= !t->is_broken;
        break_it(t, item);
        return WB_RETRY;
    case SIM_STATEMENT_DEADLOCK:
        t->is_deadlock |= !t->is_broken;
        break_it(t, item);
        return WB_RETRY;
    case SIM_STATEMENT_CUTTING: return cut(s, run->message);
    case SIM_STATEMENT_CUTTING_LATE:
        if (s->joined) /* its commit is the transport's */
            return cut(s, run->message);
        t->cut_by = run->message;
        break;
    case SIM_STATEMENT_FORBIDDING:
        if (s->joined) { /* its commit is the transport's */
            break_it(t, item);
            return WB_RETRY;
        }
        forbid(s, t, run->message);
        break;
    case SIM_STATEMENT_FORBIDDING_LATER: s->forbids_behind = !s->joined; return WB_OK;
    case SIM_STATEMENT_COMMIT: end_by_hand(s, item, run); return WB_OK;
    case SIM_STATEMENT_CLOSE: t->is_closed = 1; return WB_OK;
    case SIM_STATEMENT_DEFERRED_FAILING: t->deferred_by = item; break;
    case SIM_STATEMENT_PLAIN: break;
    }
    sim_transaction_add(t, run);
    return WB_OK;
}

int sim_database_execute(wb_storage_session *s, size_t item, sim_run *run, sim_statement statement)
{
    sim_transaction *t = sim_database_transaction(s);
    sim_step("statement");
    if (s->is_dead)
        return WB_NOT_CONNECTED;
    if ((t->is_ended && !t->is_anew) || t->is_closed)
        return WB_RETRY;
    flush(t);
    if (t->is_broken || meet_fault(s, t, item))
        return WB_RETRY;
    return execute(s, t, item, run, statement);
}

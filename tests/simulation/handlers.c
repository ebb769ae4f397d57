/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/handlers.h"

#include <stdio.h>
#include <string.h>

#include <waybill/sys/plugin.h>

#include "core/recover/retry_copy.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/persistence.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Somebody stops the process before, or it is over. */
#define HANG (180 * WB_SECOND)
#define HANGS_TWICE 2

typedef struct {
    wb_context *ctx;
    const wb_message *message;
    sim_message *m;
    sim_run *run;
    int own; /* a failure is the message's own */
} call;

/* ---- what handlers do ---- */

static int ask(call *c, int kind, sim_label label, const char *destination, unsigned ordinal)
{
    char body[48], run[16];
    int size = snprintf(body, sizeof body, "%u/%d/%u", c->m->twin, (int)label, ordinal);
    (void)snprintf(run, sizeof run, "%zu", c->run->serial);
    const wb_header header = WB_HEADER("Sim.Run", run);
    wb_outgoing outgoing = {
        .type = SIM_TYPE_SENT,
        .destination = kind == WB_KIND_SEND ? destination : NULL,
        .body = body,
        .body_size = (size_t)size,
        .headers = &header,
        .header_count = label != SIM_LABEL_IMMEDIATE,
        .flags = label == SIM_LABEL_IMMEDIATE ? WB_IMMEDIATE : 0,
        .time_to_be_received = label == SIM_LABEL_SECOND && the_shape.expires ? SIM_SPAN : 0,
        .cause = c->message,
    };
    int r = c->ctx->api->outgoing(c->ctx, kind, &outgoing, sizeof outgoing);
    if (r == WB_OK && label != SIM_LABEL_IMMEDIATE)
        c->run->asked |= 1u << label;
    return r;
}

static int ask_send(call *c, sim_label label, const char *destination)
{
    return ask(c, WB_KIND_SEND, label, destination, 0);
}

/* Without check() nobody can tell the server's fault from the handler's; nor, where there is but
 * one attempt, a neighbour's. */
static void note_unexplained(const call *c, wb_storage_session *session, int result)
{
    const sim_transaction *t = sim_database_transaction(session);
    if (result == WB_OK || the_shape.has_check || c->m->fate == SIM_CUTS || c->m->fate == SIM_QUOTA)
        return;
    if (t->is_servers || t->is_deadlock || session->is_dead || the_shape.mode == WB_MODE_NONE)
        c->m->strikes += c->m->fate == SIM_TOUCHY ? the_shape.retries + 1 : 1;
}

static int execute(call *c, sim_statement statement)
{
    void *session;
    size_t item;
    if (!the_shape.persistence || !c->ctx->api->storage(c->ctx, SIM_INTERFACE, &session, &item))
        return WB_OK;
    if (statement != SIM_STATEMENT_PLAIN)
        sim_broker_excuse_hand(c->m, 0);
    int r = sim_database_execute(session, item, c->run, statement);
    note_unexplained(c, session, r);
    return r;
}

static int fail(call *c, int result, const char *reason)
{
    c->own = 1;
    return wb_fail(c->ctx, result, "%s", reason);
}

/* When it is due is told by the clock that counts. */
static int ask_delayed(call *c, sim_label label, const char *destination)
{
    int64_t delay = sim_random_between(50 * WB_MILLISECOND, 20 * WB_SECOND);
    char body[48], run[16], due[24];
    int size = snprintf(body, sizeof body, "%u/%d/0", c->m->twin, (int)label);
    (void)snprintf(run, sizeof run, "%zu", c->run->serial);
    (void)snprintf(due, sizeof due, "%lld", (long long)(sim_database_wall() + delay));
    const wb_header headers[] = { WB_HEADER("Sim.Run", run), WB_HEADER(SIM_HEADER_DUE, due) };
    int r = wb_send(c->ctx, &(wb_outgoing){ .type = SIM_TYPE_SENT, .destination = destination, .body = body,
                                            .body_size = (size_t)size, .headers = headers, .header_count = 2,
                                            .delay = delay, .cause = c->message });
    if (r == WB_OK)
        c->run->asked |= 1u << label;
    return r;
}

/* ---- one function a fate, where a plain one will not do ---- */

static int handle_good(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r != WB_OK)
        return wb_fail(c->ctx, WB_RETRY, "a statement failed");
    r = ask_send(c, SIM_LABEL_FIRST, SIM_SINK);
    if (r == WB_OK && c->m->twin % 3 == 0)
        r = ask_send(c, SIM_LABEL_SECOND, SIM_SINK);
    if (r == WB_OK && c->m->twin % 4 == 0)
        r = ask(c, WB_KIND_PUBLISH, SIM_LABEL_EVENT, NULL, 0);
    return r;
}

static int handle_flaky(call *c)
{
    if (c->m->failures < 1 + c->m->twin % the_shape.retries)
        return fail(c, WB_RETRY, "fails at first");
    return handle_good(c);
}

static int handle_replies(call *c)
{
    int r = handle_good(c);
    return r == WB_OK ? ask(c, WB_KIND_REPLY, SIM_LABEL_REPLY, NULL, 0) : r;
}

static int handle_immediate(call *c)
{
    if (c->m->failures || c->m->twin % 2) {
        int r = handle_good(c);
        if (r != WB_OK || c->m->failures)
            return r;
    }
    int r = ask_send(c, SIM_LABEL_IMMEDIATE, SIM_SINK);
    return r == WB_OK ? fail(c, WB_RETRY, "fails after it sent at once") : r;
}

static int handle_slow(call *c)
{
    sim_sleep(sim_random_between(100 * WB_MILLISECOND, 1500 * WB_MILLISECOND));
    return handle_good(c);
}

static int handle_hangs(call *c)
{
    if (c->m->runs <= HANGS_TWICE)
        sim_process_hang(sim_now() + HANG);
    return handle_good(c);
}

static int handle_touchy(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r != WB_OK)
        return wb_fail(c->ctx, c->m->fate == SIM_TOUCHY ? WB_UNRECOVERABLE : WB_RETRY,
                       "what should be there is not");
    return ask_send(c, SIM_LABEL_FIRST, SIM_SINK);
}

static int handle_talkative(call *c)
{
    int r = handle_good(c);
    for (unsigned i = 0; r == WB_OK && i < 30; i++)
        r = ask(c, WB_KIND_SEND, SIM_LABEL_MORE, SIM_SINK, i);
    return r;
}

static int handle_delays(call *c)
{
    int r = handle_good(c);
    if (r != WB_OK)
        return r;
    if (c->m->fate == SIM_DELAYS)
        return ask_delayed(c, SIM_LABEL_DELAYED, SIM_SINK);
    sim_broker_excuse_hand(c->m, 0); /* in a transport transaction all run again */
    return ask_delayed(c, SIM_LABEL_BAD, c->m->fate == SIM_DELAYS_SILENT    ? SIM_SILENT
                                         : c->m->fate == SIM_DELAYS_REFUSED ? SIM_NARROW
                                                                            : SIM_NOWHERE);
}

static int handle_forbidding_later(call *c)
{
    int r = handle_good(c);
    if (r != WB_OK)
        return r;
    r = execute(c, SIM_STATEMENT_FORBIDDING_LATER);
    return r == WB_OK ? WB_OK : wb_fail(c->ctx, WB_RETRY, "a statement failed");
}

static int handle_bad_send(call *c)
{
    static const char *const destinations[SIM_FATES] = {
        [SIM_UNROUTABLE] = SIM_NOWHERE, [SIM_LATE_ROUTE] = SIM_LATER,   [SIM_NACKED] = SIM_NACKS,
        [SIM_TOO_LARGE_SEND] = SIM_NARROW, [SIM_POISON_SEND] = SIM_KILLS, [SIM_FATAL_SEND] = SIM_FATAL_QUEUE,
    };
    int r = handle_good(c);
    sim_broker_excuse_hand(c->m, 0); /* in a transport transaction all run again */
    return r == WB_OK ? ask_send(c, SIM_LABEL_BAD, destinations[c->m->fate]) : r;
}

static int handle_bad_reply(call *c)
{
    int r = handle_good(c);
    if (r != WB_OK)
        return r;
    c->own = 1;
    return ask(c, WB_KIND_REPLY, SIM_LABEL_BAD, NULL, 0);
}

static int handle_no_reply(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r != WB_OK)
        return r;
    c->own = 1;
    r = ask(c, WB_KIND_REPLY, SIM_LABEL_REPLY, NULL, 0);
    if (r == WB_OK)
        sim_violation("message %u has no reply address and is replied to", c->m->number);
    return r;
}

static int handle_bad_immediate(call *c)
{
    const char *nowhere = c->m->fate == SIM_DEADLY_IMMEDIATE ? SIM_KILLS
                          : c->m->fate == SIM_LATE_IMMEDIATE ? SIM_KILLS_LATE
                                                             : SIM_NOWHERE;
    char body[16];
    int size = snprintf(body, sizeof body, "%u/%d/0", c->m->twin, (int)SIM_LABEL_BAD);
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r != WB_OK)
        return r;
    r = wb_send(c->ctx, &(wb_outgoing){ .type = SIM_TYPE_SENT, .destination = nowhere, .body = body,
                                        .body_size = (size_t)size, .flags = WB_IMMEDIATE,
                                        .cause = c->message });
    c->own = r == WB_REJECT;
    return r == WB_OK ? fail(c, WB_RETRY, "sent to nowhere") : r;
}

static int handle_failing(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r != WB_OK)
        return r;
    return fail(c, c->m->fate == SIM_FAILING || c->m->fate == SIM_RECOVERS || c->m->twin % 2 ? WB_RETRY : WB_UNRECOVERABLE,
                "it is in its nature, and that is a reason of some length, as reasons are");
}

static int handle_recovering(call *c)
{
    return wb_recover_retries(c->message->headers, c->message->header_count) < SIM_RECOVERY ? handle_failing(c)
                                                                                           : handle_good(c);
}

static int handle_poison(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    return r == WB_OK ? fail(c, WB_UNRECOVERABLE, "poison") : r;
}

static int handle_giving_up(call *c)
{
    int r = execute(c, SIM_STATEMENT_PLAIN);
    if (r == WB_OK)
        r = ask_send(c, SIM_LABEL_FIRST, SIM_SINK);
    if (r != WB_OK)
        return r;
    c->own = 1;
    if (c->m->fate == SIM_DISCARDED)
        return wb_discard(c->ctx, "it is old");
    return wb_move_to(c->ctx, c->m->twin % 2 ? SIM_NOWHERE : SIM_REVIEW_QUEUE, "it is odd");
}

static int handle_killer(call *c)
{
    (void)execute(c, SIM_STATEMENT_PLAIN);
    sim_broker_note_killer(c->m);
    sim_kill(sim_process());
    return WB_RETRY;
}

/* Where the session was left without transaction, each statement is refused. */
static int go_on_after_end(call *c)
{
    static const sim_statement statements[SIM_THENS] = {
        [SIM_THEN_LOST] = SIM_STATEMENT_CUTTING,
        [SIM_THEN_ABORT] = SIM_STATEMENT_DEADLOCK,
        [SIM_THEN_SERVER] = SIM_STATEMENT_QUOTA,
    };
    sim_then then = sim_then_of(c->m->number);
    if (then == SIM_THEN_FAILS)
        return fail(c, c->m->number & 1 ? WB_RETRY : WB_UNRECOVERABLE, "fails after it ended the transaction");
    if (then == SIM_THEN_SLOW)
        sim_sleep(the_shape.batch_time + WB_MILLISECOND);
    else if (then != SIM_THEN_NOTHING && execute(c, statements[then]) != WB_OK)
        return wb_fail(c->ctx, WB_RETRY, "a statement failed after the transaction was ended");
    return ask_send(c, SIM_LABEL_FIRST, SIM_SINK);
}

static int handle_breaking(call *c)
{
    static const sim_statement statements[SIM_FATES] = {
        [SIM_BREAKS] = SIM_STATEMENT_FAILING,
        [SIM_DEFERRED] = SIM_STATEMENT_DEFERRED_FAILING,
        [SIM_ENDS] = SIM_STATEMENT_COMMIT,
        [SIM_QUOTA] = SIM_STATEMENT_QUOTA,
        [SIM_CUTS] = SIM_STATEMENT_CUTTING,
        [SIM_CUTS_LATE] = SIM_STATEMENT_CUTTING_LATE,
        [SIM_CLOSES] = SIM_STATEMENT_CLOSE,
        [SIM_FORBIDS] = SIM_STATEMENT_FORBIDDING,
    };
    int r = execute(c, statements[c->m->fate]);
    if (r == WB_OK && c->m->fate == SIM_ENDS)
        return go_on_after_end(c);
    if (r != WB_OK && c->m->twin % 2 && c->m->fate != SIM_BREAKS)
        return wb_fail(c->ctx, WB_RETRY, "a statement failed");
    return ask_send(c, SIM_LABEL_FIRST, SIM_SINK);
}

typedef int (*fate_fn)(call *c);

static const fate_fn functions[SIM_FATES] = {
    [SIM_GOOD] = handle_good,
    [SIM_FLAKY] = handle_flaky,
    [SIM_REPLIES] = handle_replies,
    [SIM_IMMEDIATE] = handle_immediate,
    [SIM_SLOW] = handle_slow,
    [SIM_HANGS] = handle_hangs,
    [SIM_TOUCHY] = handle_touchy,
    [SIM_TOUCHY_RETRY] = handle_touchy,
    [SIM_TALKATIVE] = handle_talkative,
    [SIM_FORBIDS_LATER] = handle_forbidding_later,
    [SIM_DELAYS] = handle_delays,
    [SIM_RECOVERS] = handle_recovering,
    [SIM_DELAYS_NOWHERE] = handle_delays,
    [SIM_DELAYS_SILENT] = handle_delays,
    [SIM_DELAYS_REFUSED] = handle_delays,
    [SIM_UNROUTABLE] = handle_bad_send,
    [SIM_LATE_ROUTE] = handle_bad_send,
    [SIM_NACKED] = handle_bad_send,
    [SIM_TOO_LARGE_SEND] = handle_bad_send,
    [SIM_POISON_SEND] = handle_bad_send,
    [SIM_FATAL_SEND] = handle_bad_send,
    [SIM_BAD_REPLY] = handle_bad_reply,
    [SIM_COMMIT_ABORTS] = handle_good,
    [SIM_POISON] = handle_poison,
    [SIM_ELSEWHERE] = handle_giving_up,
    [SIM_DISCARDED] = handle_giving_up,
    [SIM_FAILING] = handle_failing,
    [SIM_NO_REPLY] = handle_no_reply,
    [SIM_BAD_IMMEDIATE] = handle_bad_immediate,
    [SIM_DEADLY_IMMEDIATE] = handle_bad_immediate,
    [SIM_LATE_IMMEDIATE] = handle_bad_immediate,
    [SIM_KILLER] = handle_killer,
    [SIM_BREAKS] = handle_breaking,
    [SIM_DEFERRED] = handle_breaking,
    [SIM_ENDS] = handle_breaking,
    [SIM_QUOTA] = handle_breaking,
    [SIM_CUTS] = handle_breaking,
    [SIM_CUTS_LATE] = handle_breaking,
    [SIM_CLOSES] = handle_breaking,
    [SIM_FORBIDS] = handle_breaking,
    [SIM_UNMOVABLE] = handle_failing,
    [SIM_BULKY] = handle_failing,
    [SIM_POISON_MOVE] = handle_failing,
};

static int handle(wb_context *ctx, const wb_message *message, int alone)
{
    call c = { ctx, message, sim_ledger_find(message->body), NULL, 0 };
    fate_fn function = functions[c.m->fate];
    sim_tell("message %u (%s) is handled, run %u", c.m->number, sim_fates[c.m->fate].name, c.m->runs + 1);
    if (!function)
        sim_violation("message %u (%s) reaches a handler", c.m->number, sim_fates[c.m->fate].name);
    c.run = sim_run_begin(c.m);
    sim_step("handler");
    int r = function(&c);
    sim_run_end(c.run, r, c.own && alone);
    if (r != WB_OK)
        sim_broker_excuse_hand(c.m, 0);
    return r;
}

int sim_handle_one(wb_context *ctx, const wb_message *message)
{
    return handle(ctx, message, 1);
}

/* Fails once for some, so that what the first handler did is undone with it. */
int sim_handle_base(wb_context *ctx, const wb_message *message)
{
    call c = { ctx, message, sim_ledger_find(message->body), NULL, 0 };
    c.run = c.m->run;
    sim_tell("message %u (%s) is handled as its base", c.m->number, sim_fates[c.m->fate].name);
    if (!c.run || !c.m->has_base)
        sim_violation("message %u reaches the handler of its base, and no other before", c.m->number);
    sim_step("handler");
    int is_good = c.m->fate != SIM_GOOD || c.m->twin % 2 || c.m->failures || !the_shape.retries;
    int r = is_good ? ask_send(&c, SIM_LABEL_BASE, SIM_SINK) : fail(&c, WB_RETRY, "its base fails at first");
    sim_run_end_base(c.run, r, c.own);
    if (r != WB_OK)
        sim_broker_excuse_hand(c.m, 0);
    return r;
}

int sim_handle_other(wb_context *ctx, const wb_message *message)
{
    const sim_message *m = sim_ledger_find(message->body);
    if (!m->is_other)
        sim_violation("message %u has a handler, and reaches that of all other types", m->number);
    if (strcmp(message->type, m->twin % 8 == 1 ? "" : SIM_TYPE_OTHER) != 0)
        sim_violation("message %u is of another type than \"%s\"", m->number, message->type);
    return handle(ctx, message, 1);
}

int sim_handle_session(wb_context *ctx, sim_message *session, sim_run **ret_run)
{
    call c = { ctx, NULL, session, sim_run_begin(session), 0 };
    *ret_run = c.run;
    sim_tell("session %u begins, run %u", session->number, session->runs);
    int r = handle_good(&c);
    if (r == WB_OK && (the_shape.store || the_shape.native) && session->twin % 5 == 0)
        r = ask_delayed(&c, SIM_LABEL_DELAYED, SIM_SINK);
    if (r == WB_OK && the_shape.keepers && session->twin % 7 == 2)
        r = ask_send(&c, SIM_LABEL_BAD, SIM_LATER);
    sim_run_end(c.run, r, 1);
    return r;
}

/* Where no database undoes what it did for those in front it does so by itself: it is called again for each. */
int sim_handle_batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    size_t done = 0;
    while (done < count && r == WB_OK && (r = handle(ctx, messages[done], count == 1)) == WB_OK)
        done++;
    for (size_t i = 0; r != WB_OK && !the_shape.persistence && i < done; i++)
        sim_ledger_find(messages[i]->body)->returned--;
    return r;
}

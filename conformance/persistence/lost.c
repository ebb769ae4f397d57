/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: connections that break, and servers that die, at the worst moment.
 *
 * Each call of a session is tried. A relay lets its first requests pass and loses the next
 * one, or the reply to it; the failing place moves on until the call needs no more of them.
 * Whatever is reported must be true for what a new session finds.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/lost.h"
#include "core/base/arena.h"

/* A call that needs more round trips than this is no batch of round trips any more. */
#define SPARED_MAX 12

/* ---- calls ------------------------------------------------------------------------------ */

/* Batch 1 waits to be dispatched and batch 2 to be cleaned up. */
static int store_two(wb_client *client)
{
    return wb_client_stores(client, WB_BATCH(1), "order-1", "operations") &&
           wb_client_stores(client, WB_BATCH(2), "order-2", NULL);
}

static int begin_three(wb_client *client)
{
    wb_claim claims[] = { WB_CLAIM("order-3"), WB_CLAIM("order-4") };
    return store_two(client) && wb_client_takes(client, WB_BATCH(3), claims, 2);
}

static int call_begin(wb_client *client)
{
    const wb_mark mark = { WB_BATCH(1), NULL, 0 };
    wb_claim claims[] = { WB_CLAIM("order-2"), WB_CLAIM("order-3") };
    return wb_client_begin_marking(client, WB_BATCH(3), claims, 2, &mark, 1);
}

static int call_commit(wb_client *client)
{
    const wb_claim released = WB_CLAIM("order-4");
    return wb_client_commit_releasing(client, WB_BATCH(3), "third", 5, &released, 1);
}

static int call_mark(wb_client *client)
{
    return wb_client_mark(client, WB_BATCH(1), NULL, 0);
}

static int call_pending(wb_client *client)
{
    const uint64_t batch = WB_BATCH(1);
    wb_found found;
    int r = wb_client_pending(client, &batch, 1, &found);
    free(found.operations);
    return r;
}

static int call_sweep(wb_client *client)
{
    wb_found found;
    int r = wb_client_sweep(client, WB_BATCH_END, 10, &found);
    free(found.operations);
    wb_kit_check(client->kit, r != WB_OK || found.count == 1, "a sweep was ok and visited %zu rows of 1",
                 found.count);
    return r;
}

static int call_next(wb_client *client)
{
    wb_found found;
    int r = wb_client_next(client, 0, WB_BATCH_END, &found);
    free(found.operations);
    return r;
}

static int call_clock(wb_client *client)
{
    int64_t wall;
    wb_error_clear(&client->error);
    return client->ops->clock(client->session, &wall, &client->error);
}

static int pass_over(void *argument, const wb_pending *row)
{
    (void)argument, (void)row;
    return WB_OK;
}

static int call_looks(wb_client *client)
{
    const wb_pending_filter heads = { .struct_size = sizeof heads, .before = UINT64_MAX, .head = 4 };
    wb_outbox_stats stats = { .struct_size = sizeof stats };
    uint64_t count;
    wb_error_clear(&client->error);
    int r = client->ops->stats(client->session, &stats, &client->error);
    if (r == WB_OK)
        r = client->ops->count_records(client->session, 0, UINT64_MAX, 10, &count, &client->error);
    return r == WB_OK ? client->ops->list_pending(client->session, &heads, pass_over, NULL, &client->error) : r;
}

static int lacks_looks(wb_kit *kit)
{
    return WB_LACKS(kit, stats) || WB_LACKS(kit, count_records) || WB_LACKS(kit, list_pending);
}

static int call_clean_up(wb_client *client)
{
    size_t deleted;
    return wb_client_clean_up(client, WB_BATCH_END, 10, &deleted);
}

/* ---- what must be true afterwards ------------------------------------------------------- */

static void check_nothing_of_three(wb_client *look, int result, int is_sent)
{
    (void)result, (void)is_sent;
    wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner_soon(look, "order-3", 7, 0);
    wb_client_finds_owner_soon(look, "order-4", 7, 0);
    wb_client_finds_pending(look, WB_BATCH(3), NULL, 0);
}

/* The claim decides: it waits while the server still works on the lost transaction. */
static int was_committed(wb_client *look)
{
    wb_claim claim = WB_CLAIM("order-3");
    int r = wb_client_begin_patiently(look, WB_BATCH_OF_LOOKS, &claim, 1);
    if (wb_client_check(look, r, WB_OK, "claim again") &&
        wb_client_check(look, wb_client_rollback(look), WB_OK, "roll back"))
        return claim.duplicate_of != 0;
    return -1;
}

static void check_commit(wb_client *look, int result, int is_sent)
{
    int is_there = was_committed(look);
    if (is_there < 0)
        return;
    wb_kit_check(look->kit, !is_there || result == WB_IN_DOUBT || result == WB_OK,
                 "a commit that was said to be %s has happened", wb_result_name(result));
    wb_kit_check(look->kit, is_there || result != WB_OK, "a commit that was said to be ok is lost");
    wb_kit_check(look->kit, !is_there || is_sent, "a commit that was never sent has happened");
    wb_client_finds_owner_soon(look, "order-3", 7, is_there ? WB_BATCH(3) : 0);
    wb_client_finds_owner_soon(look, "order-4", 7, 0);
    wb_client_finds_pending(look, WB_BATCH(3), is_there ? "third" : NULL, 5);
}

/* Lost or not, it can be made again. */
static void check_mark(wb_client *look, int result, int is_sent)
{
    (void)result;
    if (!is_sent)
        wb_client_finds_pending(look, WB_BATCH(1), "operations", 10);
    wb_client_check(look, wb_client_mark(look, WB_BATCH(1), NULL, 0), WB_OK, "mark again");
    wb_client_finds_pending(look, WB_BATCH(1), NULL, 0);
    wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
}

static void check_untouched(wb_client *look, int result, int is_sent)
{
    (void)result, (void)is_sent;
    wb_client_finds_pending(look, WB_BATCH(1), "operations", 10);
    wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner_soon(look, "order-2", 7, WB_BATCH(2));
}

/* The lost session's lock must not keep others from it for ever. */
static void check_sweep(wb_client *look, int result, int is_sent)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    wb_found found;
    check_untouched(look, result, is_sent);
    do {
        if (!wb_client_check(look, wb_client_sweep(look, WB_BATCH_END, 10, &found), WB_OK, "sweep"))
            return;
        free(found.operations);
    } while (!found.count && wb_clock_monotonic() < deadline);
    wb_kit_check(look->kit, found.count == 1, "%zu rows are swept afterwards instead of 1", found.count);
}

static void check_next(wb_client *look, int result, int is_sent)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    wb_found found;
    check_untouched(look, result, is_sent);
    do {
        int r = wb_client_next(look, 0, WB_BATCH_END, &found);
        if (!wb_client_check(look, r, WB_OK, "visit the next row"))
            return;
        free(found.operations);
    } while (!found.count && wb_clock_monotonic() < deadline);
    wb_kit_check(look->kit, found.count == 1, "no row is visited afterwards");
}

static void check_clean_up(wb_client *look, int result, int is_sent)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    wb_claim claim = WB_CLAIM("order-2");
    size_t deleted;
    if (!is_sent || result == WB_OK)
        wb_client_finds_owner_soon(look, "order-2", 7, is_sent ? 0 : WB_BATCH(2));
    do {
        int r = wb_client_clean_up(look, WB_BATCH_END, 10, &deleted);
        if (!wb_client_check(look, r, WB_OK, "clean up again") ||
            !wb_client_check(look, wb_client_begin_patiently(look, WB_BATCH(5), &claim, 1), WB_OK, "begin") ||
            !wb_client_check(look, wb_client_rollback(look), WB_OK, "roll back"))
            return;
    } while (claim.duplicate_of && wb_clock_monotonic() < deadline);
    wb_kit_check(look->kit, !claim.duplicate_of, "what was to be cleaned up never is");
    wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
}

static const wb_lost_call of_begin = { store_two, call_begin, WB_GONE, check_nothing_of_three };
static const wb_lost_call of_commit = { begin_three, call_commit, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK),
                                    check_commit };
static const wb_lost_call of_rollback = { begin_three, wb_client_rollback, WB_GONE_OR_DONE,
                                      check_nothing_of_three };
static const wb_lost_call of_mark = { store_two, call_mark, WB_GONE_OR_UNKNOWN, check_mark };
static const wb_lost_call of_pending = { store_two, call_pending, WB_GONE, check_untouched };
static const wb_lost_call of_sweep = { store_two, call_sweep, WB_GONE_OR_DONE, check_sweep };
static const wb_lost_call of_next = { store_two, call_next, WB_GONE_OR_DONE, check_next };
static const wb_lost_call of_clock = { store_two, call_clock, WB_GONE, check_untouched };
static const wb_lost_call of_looks = { store_two, call_looks, WB_GONE, check_untouched };
static const wb_lost_call of_clean_up = { store_two, call_clean_up, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK),
                                      check_clean_up };

/* ---- one attempt ------------------------------------------------------------------------ */

typedef struct {
    wb_kit *kit;
    const wb_lost_call *trial;
    wb_client *client;
    wb_wires before;
    int result;
    unsigned in_doubt_and_there; /* commits */
} attempt;

static void make_call(void *argument)
{
    attempt *one = argument;
    one->result = one->trial->call(one->client);
}

/* On a thread, so that a call which never returns is noticed. */
static void call(attempt *one)
{
    wb_actor actor;
    wb_actor_start(&actor);
    wb_actor_do(&actor, make_call, one);
    wb_actor_await(one->kit, &actor);
    wb_actor_stop(&actor);
}

static int skips_unwired(wb_kit *kit)
{
    wb_kit_skip(kit, "%s has no connection to a server", kit->plugin->name);
    return 0;
}

/* @return whether there is a connection that can break. */
static int connect_client(attempt *one)
{
    wb_store *store = &((wb_stores_kit *)one->kit)->stores[0];
    const wb_wires *first = &((wb_stores_kit *)one->kit)->wires;
    wb_client *look = wb_client_open(one->kit, 0);
    if (!look)
        return 0;
    if (!wb_wires_find(first, NULL, 0)) /* who has none now will have none below, where a store would be opened twice more */
        return skips_unwired(one->kit);
    wb_client_close(look);
    look = wb_client_open_patiently(one->kit, store);
    if (!look || !wb_client_empties(look))
        return 0;
    wb_client_close(look);
    wb_wires_remember(&one->before);
    one->client = wb_client_open_patiently(one->kit, store);
    if (!one->client)
        return 0;
    if (!wb_wires_settle(&one->before, first))
        return skips_unwired(one->kit);
    return one->trial->prepare(one->client);
}

static int call_again(wb_client *client)
{
    wb_claim claim = WB_CLAIM("order-9");
    if (client->kit->plugin->capabilities & WB_CAP_OUTBOX)
        return wb_client_begin(client, WB_BATCH(9), &claim, 1);
    wb_error_clear(&client->error);
    return client->ops->find(client->session, &claim, 1, &client->error);
}

/* What is lost stays lost, until the session is opened anew. */
static void check_after_loss(attempt *one, int is_sent)
{
    wb_kit *kit = one->kit;
    wb_kit_check(kit, one->trial->allowed & WB_ONE_OF(one->result), "the connection broke and the call was %s: %s",
                 wb_result_name(one->result), one->client->error.text);
    int r = call_again(one->client);
    wb_kit_check(kit, r == WB_NOT_CONNECTED, "the next call on the lost session is %s: %s",
                 wb_result_name(r), one->client->error.text);
    wb_client_close(one->client);
    wb_client *look = wb_client_open_patiently(kit, one->client->store);
    if (look) {
        one->trial->check(look, one->result, is_sent);
        one->in_doubt_and_there += one->result == WB_IN_DOUBT && one->trial == &of_commit &&
                                   was_committed(look) == 1;
        wb_client_close(look);
    }
}

void wb_lost_cut(wb_kit *kit, const wb_lost_call *trial)
{
    attempt one = { .kit = kit, .trial = trial };
    if (!connect_client(&one))
        return;
    wb_wires_cut(&one.before);
    call(&one);
    check_after_loss(&one, 0);
}

static void stop_relay(void *argument)
{
    wb_relay_stop(argument);
}

/* @return whether the call got as far as the loss. */
static int lose_one(attempt *one, wb_loss loss, unsigned spared)
{
    if (!connect_client(one))
        return 0;
    wb_relay *relay = wb_relay_start(&one->before);
    if (!wb_kit_check(one->kit, relay != NULL, "a relay cannot take the connection's place"))
        return 0;
    wb_relay_arm(relay, loss, spared, one->kit->options->crash_server);
    call(one);
    int has_struck = wb_relay_has_struck(relay);
    if (has_struck)
        check_after_loss(one, loss != WB_LOSE_REQUEST || spared > 0);
    else
        wb_client_check(one->client, one->result, WB_OK, "go on without a loss");
    wb_client_close(one->client);
    stop_relay(relay);
    return has_struck;
}

void wb_lost_lose(wb_kit *kit, const wb_lost_call *trial, wb_loss loss)
{
    attempt one = { .kit = kit, .trial = trial };
    unsigned spared = 0;
    while (spared < SPARED_MAX && !kit->is_failed && lose_one(&one, loss, spared))
        spared++;
    if (kit->skip_reason[0] || kit->is_failed)
        return;
    wb_kit_check(kit, spared > 0, "the call asks the server nothing");
    wb_kit_check(kit, trial != &of_commit || loss != WB_LOSE_REPLY || one.in_doubt_and_there,
                 "no commit happened whose reply was lost");
}

/* ---- crashes ---------------------------------------------------------------------------- */

static int needs_crash(wb_kit *kit)
{
    if (!kit->options->crash_server)
        wb_kit_skip(kit, "no --crash-server");
    return kit->options->crash_server != NULL;
}

void wb_lost_in_crash(wb_kit *kit, const wb_lost_call *trial, wb_loss loss)
{
    attempt one = { .kit = kit, .trial = trial };
    if (needs_crash(kit))
        (void)lose_one(&one, loss, 0);
}

/* A pooler keeps the connection while the server behind it dies and comes back: what is called
 * outside of a transaction may find nothing lost. Then it has happened. */
static int has_lost_nothing(const attempt *one)
{
    int wire;
    return one->trial == &of_mark && one->result == WB_OK && wb_wires_find(&one->before, &wire, 1);
}

/* Between two calls. */
static void crash_before(wb_kit *kit, const wb_lost_call *trial)
{
    attempt one = { .kit = kit, .trial = trial };
    if (!needs_crash(kit) || !connect_client(&one))
        return;
    WB_KIT_REQUIRE(kit, wb_relay_run(kit->options->crash_server), "the server could not be crashed");
    call(&one);
    if (has_lost_nothing(&one))
        wb_client_finds_pending(one.client, WB_BATCH(1), NULL, 0);
    else
        check_after_loss(&one, 0);
}

static void commits_survive(wb_kit *kit)
{
    attempt one = { .kit = kit, .trial = &of_pending };
    if (!needs_crash(kit) || !connect_client(&one))
        return;
    WB_KIT_REQUIRE(kit, wb_relay_run(kit->options->crash_server), "the server could not be crashed");
    wb_client *look = wb_client_open_patiently(kit, one.client->store);
    if (look)
        check_untouched(look, WB_OK, 1);
}

/* ---- the cases -------------------------------------------------------------------------- */

#define CASE(function, ...)                                                                        \
    static void function(wb_kit *kit)                                                              \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

CASE(cut_begin, wb_lost_cut(kit, &of_begin))
CASE(cut_commit, wb_lost_cut(kit, &of_commit))
CASE(cut_rollback, wb_lost_cut(kit, &of_rollback))
CASE(cut_mark, wb_lost_cut(kit, &of_mark))
CASE(cut_pending, wb_lost_cut(kit, &of_pending))
CASE(cut_sweep, wb_lost_cut(kit, &of_sweep))
CASE(cut_clean_up, wb_lost_cut(kit, &of_clean_up))
CASE(cut_next, if (!WB_LACKS(kit, next_pending)) wb_lost_cut(kit, &of_next))
CASE(cut_clock, if (!WB_LACKS(kit, clock)) wb_lost_cut(kit, &of_clock))
CASE(cut_looks, if (!lacks_looks(kit)) wb_lost_cut(kit, &of_looks))
CASE(begin_request, wb_lost_lose(kit, &of_begin, WB_LOSE_REQUEST))
CASE(begin_reply, wb_lost_lose(kit, &of_begin, WB_LOSE_REPLY))
CASE(commit_request, wb_lost_lose(kit, &of_commit, WB_LOSE_REQUEST))
CASE(commit_reply, wb_lost_lose(kit, &of_commit, WB_LOSE_REPLY))
CASE(mark_request, wb_lost_lose(kit, &of_mark, WB_LOSE_REQUEST))
CASE(mark_reply, wb_lost_lose(kit, &of_mark, WB_LOSE_REPLY))
CASE(rollback_reply, wb_lost_lose(kit, &of_rollback, WB_LOSE_REPLY))
CASE(pending_reply, wb_lost_lose(kit, &of_pending, WB_LOSE_REPLY))
CASE(sweep_reply, wb_lost_lose(kit, &of_sweep, WB_LOSE_REPLY))
CASE(clean_up_reply, wb_lost_lose(kit, &of_clean_up, WB_LOSE_REPLY))
CASE(next_reply, if (!WB_LACKS(kit, next_pending)) wb_lost_lose(kit, &of_next, WB_LOSE_REPLY))
CASE(clock_reply, if (!WB_LACKS(kit, clock)) wb_lost_lose(kit, &of_clock, WB_LOSE_REPLY))
CASE(looks_reply, if (!lacks_looks(kit)) wb_lost_lose(kit, &of_looks, WB_LOSE_REPLY))
CASE(crash_at_request, wb_lost_in_crash(kit, &of_commit, WB_CRASH_AT_REQUEST))
CASE(crash_at_reply, wb_lost_in_crash(kit, &of_commit, WB_CRASH_AT_REPLY))
CASE(crash_in_begin, wb_lost_in_crash(kit, &of_begin, WB_CRASH_AT_REPLY))
CASE(crash_before_commit, crash_before(kit, &of_commit))
CASE(crash_before_mark, crash_before(kit, &of_mark))

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "cut before begin(): not connected", OUTBOX, cut_begin },
    { "cut before commit(): nothing happened", OUTBOX, cut_commit },
    { "cut before rollback(): nothing happened", OUTBOX, cut_rollback },
    { "cut before mark(): not connected, the row is there", OUTBOX, cut_mark },
    { "cut before pending(): not connected", OUTBOX, cut_pending },
    { "cut before sweep(): not connected, others may sweep", OUTBOX, cut_sweep },
    { "cut before clean_up(): not connected, others may clean up", OUTBOX, cut_clean_up },
    { "cut before next_pending(): not connected, others may visit", OUTBOX, cut_next },
    { "cut before clock(): not connected", OUTBOX, cut_clock },
    { "cut before a look at the outbox: not connected", OUTBOX, cut_looks },
    { "a begin whose request is lost leaves nothing", OUTBOX, begin_request },
    { "a begin whose reply is lost leaves nothing", OUTBOX, begin_reply },
    { "a commit whose request is lost has not happened", OUTBOX, commit_request },
    { "a commit whose reply is lost is in doubt, and the record decides", OUTBOX, commit_reply },
    { "a mark whose request is lost can be made again", OUTBOX, mark_request },
    { "a mark whose reply is lost can be made again", OUTBOX, mark_reply },
    { "a rollback whose reply is lost has rolled back", OUTBOX, rollback_reply },
    { "a look at pending rows whose reply is lost changes nothing", OUTBOX, pending_reply },
    { "a sweep whose reply is lost keeps nobody from sweeping", OUTBOX, sweep_reply },
    { "a clean-up whose reply is lost keeps nobody from cleaning up", OUTBOX, clean_up_reply },
    { "a visit of the next row whose reply is lost keeps nobody from visiting", OUTBOX, next_reply },
    { "a look at the clock whose reply is lost changes nothing", OUTBOX, clock_reply },
    { "a look at the outbox whose reply is lost changes nothing", OUTBOX, looks_reply },
    { "crash: a commit that was reported survives", OUTBOX, commits_survive },
    { "crash: while a commit is on its way, all or nothing", OUTBOX, crash_at_request },
    { "crash: between a commit and its reply, all or nothing", OUTBOX, crash_at_reply },
    { "crash: in begin(), nothing is left", OUTBOX, crash_in_begin },
    { "crash: before a commit, nothing happened", OUTBOX, crash_before_commit },
    { "crash: before a mark, the row is there", OUTBOX, crash_before_mark },
};
const wb_kit_group wb_cases_lost = WB_KIT_GROUP(cases);

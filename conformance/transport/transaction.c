/* SPDX-License-Identifier: Apache-2.0
 *
 * Transactions over sends and acknowledgements: all or nothing, and known which.
 *
 * Each case runs once for each of the two modes. In a transaction messages go from MAIN to
 * OTHER; a session of OTHER, in the mode of all other cases, sees what became of it.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/transport/setting.h"

/* ---- the outcomes ---------------------------------------------------------------------- */

static void committed(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (wb_tk_settle_in(&in, kit, mode, 1) && wb_tk_begin(&in) && wb_tk_send_in(&in) && wb_tk_acknowledge_first(&in) &&
        wb_tk_commit(&in) && wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

/* All in one transaction, or as many as there is room for at once. */
static void committed_with_many(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 0))
        return;
    in.s->prefetch = WB_TK_BATCH_MAX;
    if (!wb_tk_reopen(in.s) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), in.tk->queues[WB_TK_MAIN], "k", 1, WB_TK_BATCH_MAX))
        return;
    for (size_t left = WB_TK_BATCH_MAX, got; left; left -= got) {
        got = wb_tk_collect_some(in.s, left);
        if (!got || !wb_tk_begin(&in) || (left == WB_TK_BATCH_MAX && !wb_tk_send_in(&in)) || !wb_tk_finish(in.s) ||
            !wb_tk_commit(&in))
            return;
    }
    if (wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

static void not_visible_before(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in) ||
        !wb_tk_expect_quiet(in.watch, WB_TK_QUIET) || !wb_tk_acknowledge_first(&in) || !wb_tk_commit(&in) ||
        !wb_tk_expect_at_other(&in))
        return;
    wb_tk_expect_main_empty(&in);
}

/* The message is still in hand: it is what the next transaction acknowledges. */
static void rolled_back(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in) || !wb_tk_acknowledge_first(&in) ||
        !wb_tk_roll_back(&in) || !wb_tk_expect_nothing_at_other(&in))
        return;
    wb_kit_check(kit, wb_tk_is_ours(in.tk, in.s->in_hand[0]) &&
                          wb_tk_number(in.s->in_hand[0]) == 1,
                 "the message in hand has changed");
    if (wb_tk_begin(&in) && wb_tk_send_in(&in) && wb_tk_acknowledge_first(&in) && wb_tk_commit(&in) && wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

static void rolled_back_and_given_back(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in) || !wb_tk_roll_back(&in) ||
        !wb_tk_give_back(in.s, 0, 1) || !wb_tk_collect(in.s, 1) ||
        !wb_tk_expect_nothing_at_other(&in))
        return;
    if (wb_tk_begin(&in) && wb_tk_acknowledge_first(&in) && wb_tk_commit(&in))
        wb_tk_expect_main_empty(&in);
}

static void closed(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in) || !wb_tk_acknowledge_first(&in) ||
        !wb_tk_reopen(in.s) || !wb_tk_collect(in.s, 1) || !wb_tk_expect_nothing_at_other(&in))
        return;
    if (wb_tk_begin(&in) && wb_tk_acknowledge_first(&in) && wb_tk_commit(&in))
        wb_tk_expect_main_empty(&in);
}

/* A host that fails before its begin() rolls back all the same. */
static void without_anything(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (wb_tk_settle_in(&in, kit, mode, 1) && wb_tk_roll_back(&in) && wb_tk_begin(&in) && wb_tk_commit(&in) &&
        wb_tk_begin(&in) && wb_tk_roll_back(&in) && wb_tk_roll_back(&in) && wb_tk_begin(&in) &&
        wb_tk_acknowledge_first(&in) && wb_tk_commit(&in))
        wb_tk_expect_main_empty(&in);
}

static void refused_inside(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    wb_tk_letter lost;
    wb_error error = { 0 };
    char nowhere[WB_TK_NAME_SIZE + 16];
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in))
        return;
    (void)snprintf(nowhere, sizeof nowhere, "%.220s.nowhere", in.tk->queues[WB_TK_MAIN]);
    wb_tk_write(kit, &lost, nowhere, "k", 8);
    wb_operation *operations[] = { &lost.operation, &in.letter.operation };
    int result = in.tk->ops->send(in.s->session, operations, 2, wb_tk_in(in.tk, in.tk->patience),
                                  &error);
    if (!wb_tk_is_ok(kit, result, &error, "send"))
        return;
    wb_kit_check(kit, lost.operation.result == WB_REJECT &&
                          lost.operation.cause == WB_CAUSE_UNROUTABLE,
                 "an unroutable send: %s, cause %d", wb_result_name(lost.operation.result),
                 lost.operation.cause);
    wb_kit_check(kit, in.letter.operation.result == WB_OK, "its neighbour: %s",
                 wb_result_name(in.letter.operation.result));
    if (wb_tk_acknowledge_first(&in) && wb_tk_commit(&in) && wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

/* Sent at once by a session of its own: neither outcome of the transaction concerns it. */
static void isolated(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1))
        return;
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, mode);
    wb_tk_session *sender = instance ? wb_tk_open_for(instance, WB_SESSION_SEND, 1) : NULL;
    wb_operation *operation = &in.letter.operation;
    wb_error error = { 0 };
    if (!sender || !wb_tk_begin(&in))
        return;
    int result = in.tk->ops->send(sender->session, &operation, 1,
                                  wb_tk_in(in.tk, in.tk->patience), &error);
    if (!wb_tk_is_ok(kit, result, &error, "send at once") || !wb_tk_acknowledge_first(&in) ||
        !wb_tk_roll_back(&in))
        return;
    int is_sent = operation->result == WB_OK;
    wb_kit_check(kit, is_sent || (operation->result == WB_REJECT && operation->reason),
                 "a send at once: %s", wb_result_name(operation->result));
    if (!is_sent && operation->reason)
        wb_kit_skip(kit, "refused: %.200s", operation->reason);
    if ((is_sent ? wb_tk_expect_at_other(&in) : wb_tk_expect_nothing_at_other(&in)) && wb_tk_begin(&in) &&
        wb_tk_acknowledge_first(&in) && wb_tk_commit(&in))
        wb_tk_expect_main_empty(&in);
}

/* ---- two at once ----------------------------------------------------------------------- */

#define MOVED 60
#define MOVERS 2

typedef struct mover {
    wb_tk_session *s;
    const atomic_int *stop;
    pthread_t thread;
} mover;

/* One transaction: all that came goes to OTHER with the same numbers. */
static int move(wb_tk_session *s, wb_error *error)
{
    wb_tk *tk = s->tk;
    wb_tk_letter letters[5];
    wb_operation *operations[5];
    for (size_t i = 0; i < s->count; i++) {
        wb_tk_write(&tk->kit, &letters[i], tk->queues[WB_TK_OTHER], "k",
                    wb_tk_number(s->in_hand[i]));
        operations[i] = &letters[i].operation;
    }
    int result = tk->ops->begin(s->session, error);
    if (result == WB_OK)
        result = tk->ops->send(s->session, operations, s->count, wb_tk_in(tk, tk->patience), error);
    if (result == WB_OK)
        result = tk->ops->acknowledge(s->session, s->in_hand, s->count, error);
    return result == WB_OK ? tk->ops->commit(s->session, error) : result;
}

static void *move_all(void *argument)
{
    const mover *self = argument;
    wb_tk_session *s = self->s;
    wb_tk *tk = s->tk;
    wb_error error = { 0 };
    while (!atomic_load(self->stop)) {
        int result = WB_OK;
        if (s->count == 0)
            result = wb_tk_take(s, 5, wb_tk_in(tk, WB_TK_QUIET / 3), &error);
        if (result == WB_OK && s->count)
            result = move(s, &error);
        if (result == WB_RETRY || result == WB_ABORT)
            (void)tk->ops->rollback(s->session, &error); /* and once more */
        else if (result == WB_OK)
            s->count = 0;
        else if (!wb_tk_reopen(s))
            return NULL;
    }
    return NULL;
}

static int send_to_move(wb_kit *kit)
{
    char key[16];
    for (size_t i = 0; i < MOVED; i += 5) {
        (void)snprintf(key, sizeof key, "key-%zu", i);
        if (!wb_tk_send_numbers(wb_tk_sender(kit), wb_tk_of(kit)->queues[WB_TK_MAIN], key, i, 5))
            return 0;
    }
    return 1;
}

static void two_at_once(wb_kit *kit, int mode)
{
    wb_tk *tk = wb_tk_of(kit);
    mover movers[MOVERS];
    atomic_int stop = 0;
    size_t started = 0;
    wb_tk_session *watch = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 100);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, mode);
    if (!watch || !instance || !wb_tk_sender(kit))
        return;
    for (size_t i = 0; i < MOVERS; i++) {
        movers[i].s = wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, 5);
        if (!movers[i].s)
            return;
    }
    if (!send_to_move(kit))
        return;
    for (; started < MOVERS; started++) {
        movers[started].stop = &stop;
        if (pthread_create(&movers[started].thread, NULL, move_all, &movers[started]) != 0)
            break;
    }
    int is_moved = wb_tk_collect(watch, MOVED);
    atomic_store(&stop, 1);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(movers[i].thread, NULL);
    if (!is_moved)
        return;
    size_t numbers[MOVED];
    for (size_t i = 0; i < MOVED; i++)
        numbers[i] = i;
    if (wb_tk_expect_set(watch, numbers, MOVED) && wb_tk_finish(watch))
        wb_tk_expect_empty(watch);
}

/* ---- a lost connection ----------------------------------------------------------------- */

static void lost_before_commit(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    wb_wires before;
    wb_error error = { 0 };
    if (!wb_tk_settle_in(&in, kit, mode, 1))
        return;
    wb_tk_close(in.s);
    wb_wires_remember(&before);
    if (!wb_tk_reopen(in.s) || !wb_tk_collect(in.s, 1) || !wb_tk_begin(&in) || !wb_tk_send_in(&in) ||
        !wb_tk_acknowledge_first(&in))
        return;
    if (!wb_wires_settle(&before, &in.tk->wires)) {
        wb_kit_skip(kit, "%s has no connections that could break", kit->plugin->name);
        (void)(wb_tk_commit(&in) && wb_tk_expect_at_other(&in));
        return;
    }
    (void)wb_wires_cut(&before);
    int result = in.tk->ops->commit(in.s->session, &error);
    const int are_kept = memcmp(&before, &in.tk->wires, sizeof before) == 0;
    if (are_kept) /* the other sessions' may be among them */
        wb_tk_end(in.tk);
    if (are_kept && (!wb_tk_reopen(in.s) || !wb_tk_reopen(in.watch)))
        return;
    wb_tk_expect_truth(&in, result);
}

/* ---- a death ---------------------------------------------------------------------------- */

/* Before commit() has done much, in the middle of it, and about when it returns. */
static const int64_t killed_after[] = { 0, WB_MILLISECOND, 10 * WB_MILLISECOND };

static void killed_in_commit(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY) {
        wb_kit_skip(kit, "who keeps the order per key waits behind what a dead process has begun");
        return;
    }
    if (!wb_tk_settle_in(&in, kit, mode, 0))
        return;
    for (size_t i = 0; i < sizeof killed_after / sizeof *killed_after; i++) {
        wb_tk_close(in.s);
        if (!wb_tk_send_numbers(wb_tk_sender(kit), in.tk->queues[WB_TK_MAIN], "k", 1, 1) ||
            !wb_tk_victim_commits(kit, mode, killed_after[i]) || !wb_tk_reopen(in.s) ||
            !wb_tk_expect_all_or_nothing(&in))
            return;
    }
}

/* ---- the shared transaction ------------------------------------------------------------ */

static void has_a_handle(wb_kit *kit, int mode)
{
    wb_tk_setting in;
    if (!wb_tk_settle_in(&in, kit, mode, 1) || !wb_tk_begin(&in))
        return;
    void *handle = in.tk->ops->native(in.s->session);
    wb_kit_check(kit, handle != NULL, "there is no handle inside a transaction");
    if (!wb_tk_send_in(&in) || !wb_tk_acknowledge_first(&in))
        return;
    wb_kit_check(kit, in.tk->ops->native(in.s->session) == handle,
                 "the handle changes within a transaction");
    if (wb_tk_commit(&in) && wb_tk_expect_at_other(&in))
        wb_tk_expect_main_empty(&in);
}

/* ---- each in both modes ---------------------------------------------------------------- */

WB_TK_IN_BOTH_MODES(committed)
WB_TK_IN_BOTH_MODES(committed_with_many)
WB_TK_IN_BOTH_MODES(not_visible_before)
WB_TK_IN_BOTH_MODES(rolled_back)
WB_TK_IN_BOTH_MODES(rolled_back_and_given_back)
WB_TK_IN_BOTH_MODES(closed)
WB_TK_IN_BOTH_MODES(without_anything)
WB_TK_IN_BOTH_MODES(refused_inside)
WB_TK_IN_BOTH_MODES(isolated)
WB_TK_IN_BOTH_MODES(two_at_once)
WB_TK_IN_BOTH_MODES(lost_before_commit)
WB_TK_IN_BOTH_MODES(killed_in_commit)

static void has_a_handle_scope(wb_kit *kit)
{
    has_a_handle(kit, WB_MODE_TRANSACTION_SCOPE);
}

const wb_kit_case wb_tk_transaction_cases[] = {
    WB_TK_BOTH("after commit sends are there and the message is gone", committed),
    WB_TK_BOTH("many messages acknowledged in one transaction are gone", committed_with_many),
    WB_TK_BOTH("before commit nothing is visible", not_visible_before),
    WB_TK_BOTH("after rollback nothing is sent and the message is in hand", rolled_back),
    WB_TK_BOTH("after rollback the message can be given back", rolled_back_and_given_back),
    WB_TK_BOTH("close without commit undoes all", closed),
    WB_TK_BOTH("a transaction over nothing", without_anything),
    WB_TK_BOTH("a send that nobody can receive is refused, the rest is committed", refused_inside),
    WB_TK_BOTH("what another session sends at once survives a rollback", isolated),
    WB_TK_BOTH("two transactions side by side", two_at_once),
    WB_TK_BOTH("a connection lost before commit: all or nothing", lost_before_commit),
    WB_TK_BOTH("a process that is killed in its commit: all or nothing", killed_in_commit),
    { "transaction_scope: a transaction has a handle to share", WB_TK_SCOPE, has_a_handle_scope },
};
WB_TK_CASES(transaction);

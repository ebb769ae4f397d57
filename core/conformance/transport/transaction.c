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

#include "core/conformance/transport/steps.h"

/* A session of MAIN with one message in hand, and one that looks at OTHER. */
typedef struct setting {
    wb_kit *kit;
    wb_tk *tk;
    int mode;
    wb_tk_session *s;
    wb_tk_session *watch;
    wb_tk_letter letter; /* to OTHER, number 7 */
} setting;

static int settle_in(setting *in, wb_kit *kit, int mode)
{
    wb_tk *tk = wb_tk_of(kit);
    *in = (setting){ .kit = kit, .tk = tk, .mode = mode };
    in->watch = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 10);
    in->s = wb_tk_open(kit, WB_TK_MAIN, mode, 10);
    wb_tk_write(kit, &in->letter, tk->queues[WB_TK_OTHER], "k", 7);
    return in->watch && in->s && wb_tk_sender(kit) &&
           wb_tk_send_numbers(wb_tk_sender(kit), tk->queues[WB_TK_MAIN], "k", 1, 1) &&
           wb_tk_collect(in->s, 1);
}

typedef int transaction_step(wb_transport_session *session, wb_error *error);

static int take_step(wb_tk_session *s, transaction_step *step, const char *doing)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(&s->tk->kit, step(s->session, &error), &error, doing);
}

static int begin(const setting *in)
{
    return take_step(in->s, in->tk->ops->begin, "begin");
}

static int commit(const setting *in)
{
    return take_step(in->s, in->tk->ops->commit, "commit");
}

static int roll_back(const setting *in)
{
    return take_step(in->s, in->tk->ops->rollback, "rollback");
}

/* In a transaction the message stays in hand as far as the case knows: it may be undone. */
static int acknowledge(const setting *in)
{
    wb_error error = { 0 };
    int result = in->tk->ops->acknowledge(in->s->session, in->s->in_hand, 1, &error);
    return wb_tk_is_ok(in->kit, result, &error, "acknowledge");
}

static int send_in(setting *in)
{
    return wb_tk_send_letter(in->s, &in->letter);
}

static int expect_at_other(const setting *in)
{
    return wb_tk_collect(in->watch, 1) && wb_tk_expect_numbers(in->watch, 0, 7, 1) &&
           wb_tk_finish(in->watch) && wb_tk_expect_empty(in->watch);
}

static int expect_nothing_at_other(const setting *in)
{
    return wb_tk_expect_empty(in->watch);
}

/* The queue is empty for whoever comes next. */
static void expect_main_empty(setting *in)
{
    in->s->count = 0;
    if (wb_tk_reopen(in->s))
        wb_tk_expect_empty(in->s);
}

/* ---- the outcomes ---------------------------------------------------------------------- */

static void committed(wb_kit *kit, int mode)
{
    setting in;
    if (settle_in(&in, kit, mode) && begin(&in) && send_in(&in) && acknowledge(&in) &&
        commit(&in) && expect_at_other(&in))
        expect_main_empty(&in);
}

static void not_visible_before(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode) || !begin(&in) || !send_in(&in) ||
        !wb_tk_expect_quiet(in.watch, WB_TK_QUIET) || !acknowledge(&in) || !commit(&in) ||
        !expect_at_other(&in))
        return;
    expect_main_empty(&in);
}

/* The message is still in hand: it is what the next transaction acknowledges. */
static void rolled_back(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode) || !begin(&in) || !send_in(&in) || !acknowledge(&in) ||
        !roll_back(&in) || !expect_nothing_at_other(&in))
        return;
    wb_kit_check(kit, wb_tk_is_ours(in.tk, in.s->in_hand[0]) &&
                          wb_tk_number(in.s->in_hand[0]) == 1,
                 "the message in hand has changed");
    if (begin(&in) && send_in(&in) && acknowledge(&in) && commit(&in) && expect_at_other(&in))
        expect_main_empty(&in);
}

static void rolled_back_and_given_back(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode) || !begin(&in) || !send_in(&in) || !roll_back(&in) ||
        !wb_tk_give_back(in.s, 0, 1) || !wb_tk_collect(in.s, 1) ||
        !expect_nothing_at_other(&in))
        return;
    if (begin(&in) && acknowledge(&in) && commit(&in))
        expect_main_empty(&in);
}

static void closed(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode) || !begin(&in) || !send_in(&in) || !acknowledge(&in) ||
        !wb_tk_reopen(in.s) || !wb_tk_collect(in.s, 1) || !expect_nothing_at_other(&in))
        return;
    if (begin(&in) && acknowledge(&in) && commit(&in))
        expect_main_empty(&in);
}

static void without_anything(wb_kit *kit, int mode)
{
    setting in;
    if (settle_in(&in, kit, mode) && begin(&in) && commit(&in) && begin(&in) && roll_back(&in) &&
        begin(&in) && acknowledge(&in) && commit(&in))
        expect_main_empty(&in);
}

static void refused_inside(wb_kit *kit, int mode)
{
    setting in;
    wb_tk_letter lost;
    wb_error error = { 0 };
    char nowhere[WB_TK_NAME_SIZE + 16];
    if (!settle_in(&in, kit, mode) || !begin(&in))
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
    if (acknowledge(&in) && commit(&in) && expect_at_other(&in))
        expect_main_empty(&in);
}

/* Sent at once by a session of its own: neither outcome of the transaction concerns it. */
static void isolated(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode))
        return;
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, mode);
    wb_tk_session *sender = instance ? wb_tk_open_for(instance, WB_SESSION_SEND, 1) : NULL;
    wb_operation *operation = &in.letter.operation;
    wb_error error = { 0 };
    if (!sender || !begin(&in))
        return;
    int result = in.tk->ops->send(sender->session, &operation, 1,
                                  wb_tk_in(in.tk, in.tk->patience), &error);
    if (!wb_tk_is_ok(kit, result, &error, "send at once") || !acknowledge(&in) ||
        !roll_back(&in))
        return;
    int is_sent = operation->result == WB_OK;
    wb_kit_check(kit, is_sent || (operation->result == WB_REJECT && operation->reason),
                 "a send at once: %s", wb_result_name(operation->result));
    if (!is_sent && operation->reason)
        wb_kit_skip(kit, "refused: %.200s", operation->reason);
    if ((is_sent ? expect_at_other(&in) : expect_nothing_at_other(&in)) && begin(&in) &&
        acknowledge(&in) && commit(&in))
        expect_main_empty(&in);
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

/* Whatever commit() says: either the message is there again and nothing was sent, or it is
 * gone and what it sent is there. */
static void lost_before_commit(wb_kit *kit, int mode)
{
    setting in;
    wb_wires before;
    int fds[1];
    wb_error error = { 0 };
    if (!settle_in(&in, kit, mode))
        return;
    wb_tk_close(in.s);
    wb_wires_remember(&before);
    if (!wb_tk_reopen(in.s) || !wb_tk_collect(in.s, 1) || !begin(&in) || !send_in(&in) ||
        !acknowledge(&in))
        return;
    if (wb_wires_find(&before, fds, 1) == 0) {
        wb_kit_skip(kit, "%s has no connections that could break", kit->plugin->name);
        (void)(commit(&in) && expect_at_other(&in));
        return;
    }
    (void)wb_wires_cut(&before);
    int result = in.tk->ops->commit(in.s->session, &error);
    int is_redelivered, is_sent;
    in.s->count = 0;
    if (!wb_tk_reopen(in.s))
        return;
    (void)wb_tk_take(in.s, 1, wb_tk_in(in.tk, in.tk->patience / 4), &error);
    is_redelivered = in.s->count != 0;
    (void)wb_tk_take(in.watch, 1, wb_tk_in(in.tk, is_redelivered ? WB_TK_QUIET : in.tk->patience),
                     &error);
    is_sent = in.watch->count != 0;
    wb_kit_check(kit, is_redelivered != is_sent, "commit: %s; %s, %s", wb_result_name(result),
                 is_redelivered ? "delivered again" : "not delivered again",
                 is_sent ? "sent" : "not sent");
    wb_kit_check(kit, result != WB_OK || is_sent, "committed, and not sent");
    wb_kit_check(kit, (result != WB_NOT_CONNECTED && result != WB_ABORT) || !is_sent,
                 "commit: %s, and it was committed", wb_result_name(result));
    (void)(wb_tk_finish(in.watch) && (!is_redelivered || (begin(&in) && acknowledge(&in) &&
                                                          commit(&in))));
}

/* ---- the shared transaction ------------------------------------------------------------ */

static void has_a_handle(wb_kit *kit, int mode)
{
    setting in;
    if (!settle_in(&in, kit, mode) || !begin(&in))
        return;
    void *handle = in.tk->ops->native(in.s->session);
    wb_kit_check(kit, handle != NULL, "there is no handle inside a transaction");
    if (!send_in(&in) || !acknowledge(&in))
        return;
    wb_kit_check(kit, in.tk->ops->native(in.s->session) == handle,
                 "the handle changes within a transaction");
    if (commit(&in) && expect_at_other(&in))
        expect_main_empty(&in);
}

/* ---- each in both modes ---------------------------------------------------------------- */

#define IN_BOTH_MODES(what)                                                                        \
    static void what##_atomic(wb_kit *kit)                                                         \
    {                                                                                              \
        what(kit, WB_MODE_SENDS_ATOMIC);                                                           \
    }                                                                                              \
    static void what##_scope(wb_kit *kit)                                                          \
    {                                                                                              \
        what(kit, WB_MODE_TRANSACTION_SCOPE);                                                      \
    }
IN_BOTH_MODES(committed)
IN_BOTH_MODES(not_visible_before)
IN_BOTH_MODES(rolled_back)
IN_BOTH_MODES(rolled_back_and_given_back)
IN_BOTH_MODES(closed)
IN_BOTH_MODES(without_anything)
IN_BOTH_MODES(refused_inside)
IN_BOTH_MODES(isolated)
IN_BOTH_MODES(two_at_once)
IN_BOTH_MODES(lost_before_commit)

static void has_a_handle_scope(wb_kit *kit)
{
    has_a_handle(kit, WB_MODE_TRANSACTION_SCOPE);
}

#define ATOMIC (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC)
#define SCOPE (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_TRANSACTION_SCOPE)
#define BOTH(text, what)                                                                           \
    { "sends_atomic_with_receive: " text, ATOMIC, what##_atomic },                                 \
    { "transaction_scope: " text, SCOPE, what##_scope }

const wb_kit_case wb_tk_transaction_cases[] = {
    BOTH("after commit sends are there and the message is gone", committed),
    BOTH("before commit nothing is visible", not_visible_before),
    BOTH("after rollback nothing is sent and the message is in hand", rolled_back),
    BOTH("after rollback the message can be given back", rolled_back_and_given_back),
    BOTH("close without commit undoes all", closed),
    BOTH("a transaction over nothing", without_anything),
    BOTH("a send that nobody can receive is refused, the rest is committed", refused_inside),
    BOTH("what another session sends at once survives a rollback", isolated),
    BOTH("two transactions side by side", two_at_once),
    BOTH("a connection lost before commit: all or nothing", lost_before_commit),
    { "transaction_scope: a transaction has a handle to share", SCOPE, has_a_handle_scope },
};
WB_TK_CASES(transaction);

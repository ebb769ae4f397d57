/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies: requests that are lost on their way, and replies to what the server has done.
 *
 * A call is made through a relay that loses its first request, or the reply to it; then the
 * second one, and so on, until the call needs no more, or time is up. While the call goes on
 * nobody connects anew. Whatever is said then must be true for what is found afterwards: what
 * was confirmed is there, what was not committed is not. Not to know is always right.
 */
#include "config.h"

#include <string.h>

#include "conformance/relay.h"
#include "conformance/transport/setting.h"

/* No more rounds begin after this; but so many in any case, however slow the machine: a commit of a client that has
 * offsets to send is its third request, and what it sends by itself (heartbeats) comes in between. */
#define ENOUGH (8 * WB_SECOND)
#define ROUNDS_MIN 6
#define ROUNDS_MAX 8
/* How long the server is out of reach, if the call waits for it; and how long a window may take. */
#define AWAY (3 * WB_SECOND)
#define WINDOW_TIME (2 * WB_SECOND)

#define PRIMER 90

/* One round: a session whose connections lead through a relay. */
typedef struct round {
    wb_kit *kit;
    wb_loss loss;
    unsigned spared;
    unsigned lost; /* rounds in which something was */
    wb_tk_session *s;
    wb_wires before;
    wb_relay *relay;
} round;

/* @return 0: failed, or skipped for want of connections. */
static int open_anew(round *one)
{
    int fd;
    wb_tk_close(one->s);
    wb_wires_remember(&one->before);
    if (!wb_tk_reopen(one->s))
        return 0;
    if (wb_wires_find(&one->before, &fd, 1) > 0)
        return 1;
    wb_kit_skip(one->kit, "%s has no connections that could break", one->kit->plugin->name);
    return 0;
}

static int arm(round *one)
{
    one->relay = wb_relay_start(&one->before);
    if (!wb_kit_check(one->kit, one->relay != NULL, "a relay cannot take the connections' place"))
        return 0;
    wb_relay_keep_away(one->relay, AWAY);
    wb_relay_arm(one->relay, one->loss, one->spared, NULL);
    return 1;
}

/* Closes the session; what it says on its way out may be lost, too. `*ret_in_call`: it was in the
 * call, or in what was on its way when the call returned. @return whether anything was lost. */
static int disarm(round *one, int *ret_in_call)
{
    const int64_t until = wb_clock_monotonic() + WB_TK_QUIET;
    while (!wb_relay_has_struck(one->relay) && wb_clock_monotonic() < until)
        wb_clock_pause(5 * WB_MILLISECOND, NULL);
    *ret_in_call = wb_relay_has_struck(one->relay);
    one->lost += *ret_in_call;
    wb_tk_close(one->s);
    const int has_struck = wb_relay_has_struck(one->relay);
    wb_relay_stop(one->relay);
    return has_struck;
}

/* @return whether the loss was in the call: then there is another round. */
typedef int trial(round *one, void *argument);

static void lose_one_by_one(round *one, trial *function, void *argument)
{
    const int64_t enough = wb_clock_monotonic() + ENOUGH;
    wb_tk_of(one->kit)->is_swept = 0; /* what was in doubt is in the queue, or is not */
    while (one->spared < ROUNDS_MAX && (one->spared < ROUNDS_MIN || wb_clock_monotonic() < enough) &&
           function(one, argument) && !one->kit->is_failed)
        one->spared++;
}

static void skip_if_untouched(const round *one, const char *call)
{
    if (!one->lost && !one->kit->is_failed && !one->kit->skip_reason[0])
        wb_kit_skip(one->kit, "no %s of %s() goes over the connections that were open before",
                    one->loss == WB_LOSE_REQUEST ? "request" : "reply", call);
}

static int is_loss(int result, const wb_error *error)
{
    return result == WB_OK || wb_kit_is_servers_fault(result, error);
}

/* ---- send ------------------------------------------------------------------------------ */

#define WINDOW 5

typedef struct window {
    wb_tk_letter letters[WINDOW];
    wb_operation *operations[WINDOW];
    wb_tk_session *receiver;
} window;

/* @return how many are said to be there. */
static size_t check_window(const round *one, const window *w, int result, const wb_error *error)
{
    size_t confirmed = 0;
    wb_kit_check(one->kit, is_loss(result, error), "send: %s: %s", wb_result_name(result), error->text);
    for (size_t i = 0; i < WINDOW; i++) {
        const int of_one = w->operations[i]->result;
        confirmed += of_one == WB_OK;
        wb_kit_check(one->kit, of_one == WB_RETRY || is_loss(of_one, error), "operation %zu: %s", i,
                     wb_result_name(of_one));
    }
    wb_kit_check(one->kit, (result == WB_OK) == (confirmed == WINDOW), "send returned %s, %zu of %d were confirmed",
                 wb_result_name(result), confirmed, WINDOW);
    return confirmed;
}

/* What was confirmed comes; what was not may. */
static void expect_confirmed(const round *one, const window *w, size_t confirmed)
{
    wb_tk_session *receiver = w->receiver;
    unsigned char seen[WINDOW] = { 0 };
    while (confirmed) {
        if (!wb_tk_collect(receiver, 1)) {
            wb_kit_check(one->kit, 0, "%zu messages were confirmed and are not there; request %u was lost", confirmed,
                         one->spared + 1);
            return;
        }
        for (size_t i = 0; i < receiver->count; i++) {
            const size_t number = wb_tk_number(receiver->in_hand[i]) - WINDOW * one->spared;
            if (number < WINDOW && w->operations[number]->result == WB_OK)
                confirmed -= seen[number]++ == 0;
        }
        if (!wb_tk_finish(receiver))
            return;
    }
}

/* One message before, so that what follows is the window and not the search for its way. */
static int send_primer(const round *one, const window *w)
{
    return wb_tk_send_numbers(one->s, wb_tk_of(one->kit)->queues[WB_TK_MAIN], "k", PRIMER, 1) &&
           wb_tk_collect(w->receiver, 1) && wb_tk_finish(w->receiver);
}

static int try_send(round *one, void *argument)
{
    window *w = argument;
    wb_tk *tk = wb_tk_of(one->kit);
    wb_error error = { 0 };
    int is_in_call;
    for (size_t i = 0; i < WINDOW; i++) {
        wb_tk_write(one->kit, &w->letters[i], tk->queues[WB_TK_MAIN], "k", WINDOW * one->spared + i);
        w->operations[i] = &w->letters[i].operation;
    }
    if (!open_anew(one) || !send_primer(one, w) || !arm(one))
        return 0;
    const int result = tk->ops->send(one->s->session, w->operations, WINDOW, wb_tk_in(tk, WINDOW_TIME), &error);
    const size_t confirmed = check_window(one, w, result, &error);
    (void)disarm(one, &is_in_call);
    wb_kit_check(one->kit, is_in_call || result == WB_OK, "nothing was lost, and send: %s: %s",
                 wb_result_name(result), error.text);
    expect_confirmed(one, w, confirmed);
    return is_in_call;
}

static void lose_send(wb_kit *kit, wb_loss loss)
{
    window w = { .receiver = wb_tk_receiver(kit) };
    wb_tk_instance *instance = w.receiver ? wb_tk_instance_make(kit, WB_TK_MAIN, wb_tk_of(kit)->mode) : NULL;
    round one = { .kit = kit, .loss = loss, .s = instance ? wb_tk_open_for(instance, WB_SESSION_SEND, 1) : NULL };
    if (!one.s)
        return;
    lose_one_by_one(&one, try_send, &w);
    skip_if_untouched(&one, "send");
}

static void send_request(wb_kit *kit)
{
    lose_send(kit, WB_LOSE_REQUEST);
}

static void send_reply(wb_kit *kit)
{
    lose_send(kit, WB_LOSE_REPLY);
}

/* ---- acknowledge ----------------------------------------------------------------------- */

#define TAKEN 10
#define SETTLED 5

/* A protocol need not confirm an acknowledgement: it may be said to be done, and lost. What was not
 * acknowledged comes in any case. */
static int try_acknowledge(round *one, void *argument)
{
    wb_tk *tk = wb_tk_of(one->kit);
    wb_error error = { 0 };
    int is_in_call;
    (void)argument;
    if (!open_anew(one) || !wb_tk_send_numbers(wb_tk_sender(one->kit), tk->queues[WB_TK_MAIN], "k", 0, TAKEN) ||
        !wb_tk_collect(one->s, TAKEN) || !arm(one))
        return 0;
    const int result = tk->ops->acknowledge(one->s->session, one->s->in_hand, SETTLED, &error);
    wb_kit_check(one->kit, is_loss(result, &error), "acknowledge: %s: %s", wb_result_name(result), error.text);
    const int is_lost = disarm(one, &is_in_call);
    wb_kit_check(one->kit, is_in_call || result == WB_OK, "nothing was lost, and acknowledge: %s: %s",
                 wb_result_name(result), error.text);
    if (wb_tk_reopen(one->s))
        wb_tk_expect_back(one->s, TAKEN, SETTLED, is_lost ? 0 : SETTLED);
    return is_in_call;
}

static void lose_acknowledge(wb_kit *kit, wb_loss loss)
{
    wb_tk_session *sender = wb_tk_sender(kit); /* before: it is to be spared */
    round one = { .kit = kit, .loss = loss,
                  .s = sender ? wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, TAKEN) : NULL };
    if (one.s)
        lose_one_by_one(&one, try_acknowledge, NULL);
}

static void acknowledge_request(wb_kit *kit)
{
    lose_acknowledge(kit, WB_LOSE_REQUEST);
}

static void acknowledge_reply(wb_kit *kit)
{
    lose_acknowledge(kit, WB_LOSE_REPLY);
}

/* ---- commit ---------------------------------------------------------------------------- */

static int try_commit(round *one, void *argument)
{
    wb_tk_setting *in = argument;
    wb_error error = { 0 };
    int is_in_call;
    if (!open_anew(one) || !wb_tk_collect(in->s, 1) || !wb_tk_begin(in) || !wb_tk_send_in(in) ||
        !wb_tk_acknowledge_first(in) || !arm(one))
        return 0;
    const int result = in->tk->ops->commit(in->s->session, &error);
    wb_kit_check(one->kit, is_loss(result, &error) || result == WB_ABORT, "commit: %s: %s", wb_result_name(result),
                 error.text);
    (void)disarm(one, &is_in_call);
    wb_kit_check(one->kit, is_in_call || result == WB_OK, "nothing was lost, and commit: %s: %s",
                 wb_result_name(result), error.text);
    wb_tk_expect_truth(in, result);
    return is_in_call && wb_tk_send_numbers(wb_tk_sender(one->kit), in->tk->queues[WB_TK_MAIN], "k", 1, 1);
}

static void lose_commit(wb_kit *kit, int mode, wb_loss loss)
{
    wb_tk_setting in;
    round one = { .kit = kit, .loss = loss };
    if (!wb_tk_settle_in(&in, kit, mode, 1))
        return;
    one.s = in.s;
    lose_one_by_one(&one, try_commit, &in);
    skip_if_untouched(&one, "commit");
}

static void commit_request(wb_kit *kit, int mode)
{
    lose_commit(kit, mode, WB_LOSE_REQUEST);
}

static void commit_reply(wb_kit *kit, int mode)
{
    lose_commit(kit, mode, WB_LOSE_REPLY);
}

WB_TK_IN_BOTH_MODES(commit_request)
WB_TK_IN_BOTH_MODES(commit_reply)

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_replies_cases[] = {
    { "a send whose request is lost is not said to be confirmed", RO, send_request },
    { "a send whose reply is lost: what is said to be confirmed is there", RO, send_reply },
    { "an acknowledgement whose request is lost: what was not acknowledged comes back", RO, acknowledge_request },
    { "an acknowledgement whose reply is lost: what was not acknowledged comes back", RO, acknowledge_reply },
    WB_TK_BOTH("a commit whose request is lost: all or nothing, and what is said is true", commit_request),
    WB_TK_BOTH("a commit whose reply is lost: all or nothing, and what is said is true", commit_reply),
};
WB_TK_CASES(replies);

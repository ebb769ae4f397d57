/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/transport/setting.h"

int wb_tk_settle_in(wb_tk_setting *in, wb_kit *kit, int mode, size_t count)
{
    wb_tk *tk = wb_tk_of(kit);
    *in = (wb_tk_setting){ .kit = kit, .tk = tk, .mode = mode };
    in->watch = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 10);
    in->s = wb_tk_open(kit, WB_TK_MAIN, mode, 10);
    wb_tk_write(kit, &in->letter, tk->queues[WB_TK_OTHER], "k", 7);
    return in->watch && in->s && wb_tk_sender(kit) &&
           wb_tk_send_numbers(wb_tk_sender(kit), tk->queues[WB_TK_MAIN], "k", 1, count) &&
           wb_tk_collect(in->s, count);
}

typedef int transaction_step(wb_transport_session *session, wb_error *error);

static int take_step(wb_tk_session *s, transaction_step *step, const char *doing)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(&s->tk->kit, step(s->session, &error), &error, doing);
}

int wb_tk_begin(const wb_tk_setting *in)
{
    return take_step(in->s, in->tk->ops->begin, "begin");
}

int wb_tk_commit(const wb_tk_setting *in)
{
    return take_step(in->s, in->tk->ops->commit, "commit");
}

int wb_tk_roll_back(const wb_tk_setting *in)
{
    return take_step(in->s, in->tk->ops->rollback, "rollback");
}

int wb_tk_send_in(wb_tk_setting *in)
{
    return wb_tk_send_letter(in->s, &in->letter);
}

int wb_tk_acknowledge_first(const wb_tk_setting *in)
{
    wb_error error = { 0 };
    int result = in->tk->ops->acknowledge(in->s->session, in->s->in_hand, 1, &error);
    return wb_tk_is_ok(in->kit, result, &error, "acknowledge");
}

int wb_tk_expect_at_other(const wb_tk_setting *in)
{
    return wb_tk_collect(in->watch, 1) && wb_tk_expect_numbers(in->watch, 0, 7, 1) &&
           wb_tk_finish(in->watch) && wb_tk_expect_empty(in->watch);
}

int wb_tk_expect_nothing_at_other(const wb_tk_setting *in)
{
    return wb_tk_expect_empty(in->watch);
}

void wb_tk_expect_main_empty(wb_tk_setting *in)
{
    in->s->count = 0;
    if (wb_tk_reopen(in->s))
        wb_tk_expect_empty(in->s);
}

/* The one or the other comes, however long it takes to join. */
static void await_either(const wb_tk_setting *in)
{
    wb_error error = { 0 };
    const int64_t until = wb_tk_in(in->tk, in->tk->patience);
    while (!in->s->count && !in->watch->count && wb_clock_monotonic() < until)
        if (wb_tk_take(in->s, 1, wb_tk_in(in->tk, WB_TK_QUIET), &error) != WB_OK ||
            wb_tk_take(in->watch, 1, wb_tk_in(in->tk, WB_TK_QUIET / 3), &error) != WB_OK)
            return;
}

int wb_tk_expect_all_or_nothing(wb_tk_setting *in)
{
    await_either(in);
    const int is_redelivered = in->s->count != 0, is_sent = in->watch->count != 0;
    if (!wb_kit_check(in->kit, is_redelivered != is_sent, "after a process died in its commit: %s, %s",
                      is_redelivered ? "delivered again" : "not delivered again", is_sent ? "sent" : "not sent"))
        return 0;
    if (is_sent)
        return wb_tk_finish(in->watch) && wb_tk_expect_empty(in->s);
    if (!wb_tk_begin(in) || !wb_tk_acknowledge_first(in) || !wb_tk_commit(in))
        return 0;
    in->s->count = 0;
    return wb_tk_expect_empty(in->watch);
}

void wb_tk_expect_truth(wb_tk_setting *in, int result)
{
    wb_error error = { 0 };
    int is_redelivered, is_sent;
    in->s->count = 0;
    if (!wb_tk_reopen(in->s))
        return;
    await_either(in);
    if (!in->s->count)
        (void)wb_tk_take(in->s, 1, wb_tk_in(in->tk, in->tk->patience / 4), &error);
    if (!in->watch->count)
        (void)wb_tk_take(in->watch, 1, wb_tk_in(in->tk, WB_TK_QUIET), &error);
    is_redelivered = in->s->count != 0;
    is_sent = in->watch->count != 0;
    wb_kit_check(in->kit, is_redelivered != is_sent, "commit: %s; %s, %s", wb_result_name(result),
                 is_redelivered ? "delivered again" : "not delivered again",
                 is_sent ? "sent" : "not sent");
    wb_kit_check(in->kit, result != WB_OK || is_sent, "committed, and not sent");
    wb_kit_check(in->kit, result == WB_OK || result == WB_IN_DOUBT || !is_sent,
                 "commit: %s, and it was committed", wb_result_name(result));
    (void)(wb_tk_finish(in->watch) && (!is_redelivered || (wb_tk_begin(in) && wb_tk_acknowledge_first(in) &&
                                                          wb_tk_commit(in))));
}

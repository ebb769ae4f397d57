/* SPDX-License-Identifier: Apache-2.0
 *
 * Orderly stops: a session that asks for no more hands out what it has, and leaves the rest
 * to others as if it had never been there.
 */
#include "config.h"

#include "conformance/transport/steps.h"

/* A receive that is to return at once has this long to be wrong in, and this long to be late. */
#define LONG (8 * WB_SECOND)
#define AT_ONCE (4 * WB_SECOND)
#define ALL 100

static const char *main_queue(wb_kit *kit)
{
    return wb_tk_of(kit)->queues[WB_TK_MAIN];
}

static int stop(wb_tk_session *s)
{
    wb_error error = { 0 };
    int result = s->tk->ops->stop_receiving(s->session, &error);
    return wb_tk_is_ok(&s->tk->kit, result, &error, "stop_receiving");
}

/* Receive until nothing comes: none of these calls may wait. */
static int take_what_came(wb_tk_session *s)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    for (size_t before = s->count, is_first = 1; is_first || s->count > before; is_first = 0) {
        before = s->count;
        int64_t start = wb_clock_monotonic();
        int result = wb_tk_take(s, ALL, start + LONG, &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive after stop_receiving") ||
            !wb_kit_check(kit, wb_clock_monotonic() - start < AT_ONCE,
                          "receive waited although the session had stopped receiving"))
            return 0;
    }
    return 1;
}

/* Note each message in hand as seen. */
static void count_in(const wb_tk_session *s, unsigned char *seen)
{
    for (size_t i = 0; i < s->count; i++)
        seen[wb_tk_number(s->in_hand[i]) % ALL]++;
}

static void expect_each_once(wb_kit *kit, const unsigned char *seen, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wb_kit_check(kit, seen[i] == 1, "message %zu came %d times, not once", i, seen[i]);
}

static void expect_first_deliveries(const wb_tk_session *s)
{
    for (size_t i = 0; i < s->count; i++)
        wb_kit_check(&s->tk->kit, s->in_hand[i]->delivery_count == 0,
                     "message %zu has a delivery count of %u after an orderly stop",
                     wb_tk_number(s->in_hand[i]), s->in_hand[i]->delivery_count);
}

/* Another session of the endpoint. What gives each key to one session gives it to this one
 * when the other is closed. */
static wb_tk_session *open_after(wb_tk_session *s)
{
    if (s->tk->kit.plugin->capabilities & WB_CAP_ORDER_PER_KEY)
        wb_tk_close(s);
    return wb_tk_open_for(s->instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, ALL);
}

static int finish_all(wb_tk_session *other, wb_tk_session *s)
{
    if (!wb_tk_finish(other))
        return 0;
    wb_tk_close(s);
    return wb_tk_expect_empty(other);
}

/* ---- the rest -------------------------------------------------------------------------- */

/* The rest of what was sent goes to another session, each message as if for the first time. */
static void hands_out_what_came(wb_kit *kit)
{
    unsigned char seen[ALL] = { 0 };
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 20);
    if (!s || !wb_tk_sender(kit) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, ALL) ||
        !wb_tk_collect(s, 5) || !stop(s) || !take_what_came(s))
        return;
    size_t left = ALL - s->count;
    count_in(s, seen);
    expect_first_deliveries(s);
    if (!wb_tk_finish(s))
        return;
    wb_tk_session *other = open_after(s);
    if (!other || !wb_tk_collect(other, left))
        return;
    count_in(other, seen);
    expect_each_once(kit, seen, ALL);
    expect_first_deliveries(other);
    finish_all(other, s);
}

static void stays_stopped(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 20);
    if (!s || !wb_tk_sender(kit) || !stop(s) || !take_what_came(s) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, 3) ||
        !take_what_came(s) ||
        !wb_kit_check(kit, s->count == 0, "a message came after stop_receiving"))
        return;
    wb_clock_pause(WB_TK_QUIET, NULL);
    if (!take_what_came(s) ||
        !wb_kit_check(kit, s->count == 0, "a message came after stop_receiving"))
        return;
    wb_tk_session *other = open_after(s);
    if (!other || !wb_tk_collect(other, 3) || !wb_tk_expect_numbers(other, 0, 0, 3))
        return;
    expect_first_deliveries(other);
    finish_all(other, s);
}

static void opened_again(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 20);
    if (!s || !wb_tk_sender(kit) || !stop(s) || !take_what_came(s) || !wb_tk_reopen(s) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, 3) ||
        !wb_tk_collect(s, 3) || !wb_tk_expect_numbers(s, 0, 0, 3) || !wb_tk_finish(s))
        return;
    wb_tk_expect_empty(s);
}

/* ---- what is in hand ------------------------------------------------------------------- */

/* Of four messages one is answered and acknowledged, one acknowledged, one given back and one
 * left when the session ends. */
static void settles_what_is_in_hand(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letter;
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *watch = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 10);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 4);
    wb_tk_write(kit, &letter, tk->queues[WB_TK_OTHER], "k", 7);
    if (!watch || !s || !wb_tk_sender(kit) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, 4) ||
        !wb_tk_collect(s, 4) || !stop(s) || !wb_tk_send_letter(s, &letter) ||
        !wb_tk_acknowledge(s, 0, 1) || !wb_tk_acknowledge(s, 0, 1) ||
        !wb_tk_give_back(s, 0, 1) || !take_what_came(s))
        return;
    wb_kit_check(kit, s->count == 1, "a message came after stop_receiving");
    wb_tk_close(s);
    wb_tk_session *other = wb_tk_open_for(s->instance, WB_SESSION_RECEIVE, 10);
    if (!other || !wb_tk_collect(other, 2) ||
        !wb_tk_expect_set(other, (const size_t[]){ 2, 3 }, 2) || !wb_tk_finish(other) ||
        !wb_tk_expect_empty(other) || !wb_tk_collect(watch, 1) ||
        !wb_tk_expect_numbers(watch, 0, 7, 1))
        return;
    wb_tk_finish(watch);
}

/* What this mode hands out is gone: what it does not hand out may not be. */
static void loses_nothing_in_mode_none(wb_kit *kit)
{
    unsigned char seen[ALL] = { 0 };
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, WB_MODE_NONE, 20);
    if (!s || !wb_tk_sender(kit) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, ALL) ||
        !wb_tk_collect(s, 5) || !stop(s) || !take_what_came(s))
        return;
    size_t left = ALL - s->count;
    count_in(s, seen);
    if (!wb_tk_finish(s))
        return;
    wb_tk_session *other = open_after(s);
    if (!other || !wb_tk_collect(other, left))
        return;
    count_in(other, seen);
    expect_each_once(kit, seen, ALL);
    finish_all(other, s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_stop_cases[] = {
    { "after stop_receiving() what had come is handed out, and others get the rest", RO,
      hands_out_what_came },
    { "after stop_receiving() nothing more comes, and no receive waits", RO, stays_stopped },
    { "after stop_receiving() what is in hand can be settled, and answered", RO,
      settles_what_is_in_hand },
    { "a session that stopped receiving is opened again and receives", RO, opened_again },
    { "mode none: stop_receiving() loses nothing", RO | WB_CAP_MODE_NONE,
      loses_nothing_in_mode_none },
};
WB_TK_CASES(stop);

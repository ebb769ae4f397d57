/* SPDX-License-Identifier: Apache-2.0
 *
 * Settling: what is acknowledged never comes back, all else does.
 */
#include "config.h"

#include <string.h>

#include "conformance/transport/steps.h"

/* What is to be there within seconds; machines may be slow. */
#define SECONDS (10 * WB_SECOND)

static const char *main_queue(wb_kit *kit)
{
    return wb_tk_of(kit)->queues[WB_TK_MAIN];
}

/* A session of MAIN with that many messages, all in hand. */
static wb_tk_session *open_with(wb_kit *kit, size_t count)
{
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, (uint32_t)count);
    return s && sender && wb_tk_send_numbers(sender, main_queue(kit), "k", 0, count) &&
                   wb_tk_collect(s, count) && wb_tk_expect_numbers(s, 0, 0, count)
               ? s
               : NULL;
}

/* ---- close ----------------------------------------------------------------------------- */

static void acknowledged_stays_away(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 20);
    if (s && wb_tk_finish(s) && wb_tk_reopen(s))
        wb_tk_expect_empty(s);
}

static void unacknowledged_comes_back(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 20);
    if (s && wb_tk_reopen(s) && wb_tk_collect(s, 20) && wb_tk_expect_numbers(s, 0, 0, 20) &&
        wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* Those messages, in one call. They stay in the list. */
static int acknowledge_these(wb_tk_session *s, const size_t *numbers, size_t count)
{
    const wb_incoming *messages[16];
    wb_error error = { 0 };
    for (size_t i = 0; i < count; i++)
        messages[i] = s->in_hand[numbers[i]];
    int result = s->tk->ops->acknowledge(s->session, messages, count, &error);
    return wb_tk_is_ok(&s->tk->kit, result, &error, "acknowledge");
}

static void any_order_and_number(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 12);
    if (!s || !acknowledge_these(s, (const size_t[]){ 5 }, 1) ||
        !acknowledge_these(s, (const size_t[]){ 6, 1, 4 }, 3) ||
        !acknowledge_these(s, (const size_t[]){ 3 }, 1) ||
        !acknowledge_these(s, (const size_t[]){ 0, 2 }, 2) || !wb_tk_reopen(s) ||
        !wb_tk_collect(s, 5) || !wb_tk_expect_numbers(s, 0, 7, 5) || !wb_tk_finish(s))
        return;
    wb_tk_expect_empty(s);
}

/* What keeps the order per key may remember only how far it has come without a gap. */
static void with_gaps(wb_kit *kit)
{
    static const size_t open[] = { 0, 3, 6, 9, 11 };
    int is_log = (kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY) != 0;
    wb_tk_session *s = open_with(kit, 12);
    if (!s || !acknowledge_these(s, (const size_t[]){ 10 }, 1) ||
        !acknowledge_these(s, (const size_t[]){ 8, 2, 5 }, 3) ||
        !acknowledge_these(s, (const size_t[]){ 7, 4, 1 }, 3) || !wb_tk_reopen(s))
        return;
    if (is_log ? !wb_tk_collect(s, 1) : !wb_tk_collect(s, 5) || !wb_tk_expect_set(s, open, 5))
        return;
    while (wb_tk_number(s->in_hand[s->count - 1]) != 11)
        if (!wb_tk_collect(s, 1))
            return;
    for (size_t i = 0; i < 5; i++) {
        size_t times = 0;
        for (size_t k = 0; k < s->count; k++)
            times += wb_tk_number(s->in_hand[k]) == open[i];
        wb_kit_check(kit, times == 1, "message %zu came %zu times, not once", open[i], times);
    }
    if (wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static int is_each_new(const wb_tk_session *s, unsigned char *seen, size_t count)
{
    int is_new = 1;
    for (size_t i = 0; i < s->count; i++) {
        const size_t number = wb_tk_number(s->in_hand[i]) % count;
        is_new &= wb_kit_check(&s->tk->kit, seen[number]++ == 0, "message %zu came twice", number);
    }
    return is_new;
}

/* As many as a batch may hold, in one call each, or as many as there is room for at once: those that came last count
 * like the first. */
static void many_in_one_call(wb_kit *kit)
{
    unsigned char seen[WB_TK_BATCH_MAX] = { 0 };
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, WB_TK_BATCH_MAX);
    if (!s || !sender || !wb_tk_send_numbers(sender, main_queue(kit), "k", 0, WB_TK_BATCH_MAX) ||
        !wb_tk_collect_some(s, WB_TK_BATCH_MAX) || !wb_tk_give_back(s, 0, s->count))
        return;
    for (size_t left = WB_TK_BATCH_MAX; left;) {
        const size_t got = wb_tk_collect_some(s, left);
        if (!got || !is_each_new(s, seen, WB_TK_BATCH_MAX) || !wb_tk_finish(s))
            return;
        left -= got;
    }
    if (wb_tk_reopen(s))
        wb_tk_expect_empty(s);
}

static void nothing_to_settle(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    const wb_incoming *none = NULL;
    wb_error error = { 0 };
    if (s && wb_tk_is_ok(kit, s->tk->ops->acknowledge(s->session, &none, 0, &error), &error,
                         "acknowledge nothing"))
        wb_tk_is_ok(kit, s->tk->ops->give_back(s->session, &none, 0, &error), &error,
                    "give nothing back");
}

/* Whoever stops receiving after the last acknowledgement has acknowledged all the same. */
static void acknowledged_then_idle(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 3);
    if (!s || !wb_tk_finish(s) || !wb_tk_expect_quiet(s, WB_TK_QUIET) || !wb_tk_reopen(s))
        return;
    wb_tk_expect_empty(s);
}

/* ---- somebody else --------------------------------------------------------------------- */

static wb_tk_session *who_has(wb_tk_session *const pair[2])
{
    return pair[0]->count ? pair[0] : pair[1];
}

/* Look into both by turns until that many are in hand altogether. */
static int collect_from(wb_tk_session *const pair[2], size_t count)
{
    wb_tk *tk = pair[0]->tk;
    wb_error error = { 0 };
    int64_t deadline = wb_tk_in(tk, tk->patience);
    for (size_t i = 0; pair[0]->count + pair[1]->count < count; i++) {
        if (!wb_kit_check(&tk->kit, wb_clock_monotonic() < deadline, "%zu of %zu messages came",
                          pair[0]->count + pair[1]->count, count))
            return 0;
        int result = wb_tk_take(pair[i % 2], 1, wb_tk_in(tk, 50 * WB_MILLISECOND), &error);
        if (!wb_tk_is_ok(&tk->kit, result, &error, "receive"))
            return 0;
    }
    return 1;
}

/* Where keys are shared out, a key may still move from one session to another, with what is
 * in hand: that happens now and then, not each time. @return 1: it did not, 0: it did. */
static int stays_with(wb_tk_session *holder, wb_tk_session *other)
{
    wb_kit *kit = &holder->tk->kit;
    wb_error error = { 0 };
    int result = wb_tk_take(other, 1, wb_tk_in(other->tk, WB_TK_QUIET), &error);
    if (!wb_tk_is_ok(kit, result, &error, "receive") || other->count == 0)
        return 1;
    holder->count = 0;
    (void)wb_tk_finish(other);
    return 0;
}

static void nobody_else_sees_it(wb_kit *kit)
{
    int tries = kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY ? 3 : 1;
    wb_tk_session *pair[2], *holder, *other;
    if (!wb_tk_open_pair(kit, 1, pair))
        return;
    do {
        if (!wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 1, 1) ||
            !collect_from(pair, 1))
            return;
        holder = who_has(pair);
        other = pair[holder == pair[0]];
    } while (!stays_with(holder, other) && --tries);
    if (!wb_kit_check(kit, tries > 0, "a message in hand was somebody else's, too"))
        return;
    wb_tk_close(holder);
    if (wb_tk_collect(other, 1) && wb_tk_finish(other))
        wb_tk_expect_empty(other);
}

/* Neither who comes later nor who waits for long gets what a living session holds. */
#define LOOKS 8

static void nobody_takes_it_away(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    if (wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *holder = open_with(kit, 2);
    wb_tk_session *other = holder ? wb_tk_open_for(holder->instance, WB_SESSION_RECEIVE, 10) : NULL;
    if (!other)
        return;
    for (int i = 0; i < LOOKS; i++) {
        int result = wb_tk_take(other, 10, wb_tk_in(tk, tk->patience / 4 / LOOKS), &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive") ||
            !wb_kit_check(kit, other->count == 0, "a message in hand became somebody else's"))
            return;
    }
    wb_tk_close(other); /* or it may get what is sent to see whether there is more */
    if (wb_tk_finish(holder))
        wb_tk_expect_empty(holder);
}

static void acknowledged_for_all(wb_kit *kit)
{
    wb_tk_session *pair[2];
    if (!wb_tk_open_pair(kit, 1, pair) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 1, 1) ||
        !collect_from(pair, 1))
        return;
    wb_tk_session *holder = who_has(pair);
    if (!wb_tk_finish(holder))
        return;
    wb_tk_close(holder);
    wb_tk_expect_empty(pair[holder == pair[0]]);
}

static void given_back_to_anybody(wb_kit *kit)
{
    wb_tk_session *pair[2];
    if (!wb_tk_open_pair(kit, 1, pair) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 1, 1))
        return;
    for (int i = 0; i < 3; i++)
        if (!collect_from(pair, 1) || !wb_tk_give_back(who_has(pair), 0, 1))
            return;
    if (collect_from(pair, 1) && wb_tk_expect_numbers(who_has(pair), 0, 1, 1))
        wb_tk_finish(who_has(pair));
}

/* The one that gave back makes no further call: its worker pauses, or waits for a server. */
static void given_back_while_idle(wb_kit *kit)
{
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, stop_receiving) || wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *holder = open_with(kit, 3);
    if (!holder || /* or it might come to the same session again */
        !wb_tk_is_ok(kit, holder->tk->ops->stop_receiving(holder->session, &error), &error, "stop_receiving") ||
        !wb_tk_give_back(holder, 0, 3))
        return;
    wb_tk_session *other = wb_tk_open_for(holder->instance, WB_SESSION_RECEIVE, 10);
    int64_t start = wb_clock_monotonic();
    if (!other || !wb_tk_collect(other, 3))
        return;
    wb_kit_check(kit, wb_clock_monotonic() - start < SECONDS, "what was given back came after %lld ms",
                 (long long)((wb_clock_monotonic() - start) / WB_MILLISECOND));
    wb_tk_close(holder);
    if (wb_tk_finish(other))
        wb_tk_expect_empty(other);
}

/* ---- give back ------------------------------------------------------------------------- */

static void given_back_comes_at_once(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, 10) || !wb_tk_collect(s, 10) ||
        !wb_tk_give_back(s, 0, 10) || !wb_tk_collect(s, 10))
        return;
    wb_tk_expect_set(s, (const size_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, 10);
    if (wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* The last six of ten; the first four stay in hand, and are acknowledged before the others
 * come again, or between them. */
static void a_part_is_given_back(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, 10) || !wb_tk_collect(s, 10) ||
        !wb_tk_give_back(s, 4, 6) || !wb_tk_acknowledge(s, 0, 2) || !wb_tk_collect(s, 6))
        return;
    wb_tk_expect_set(s, (const size_t[]){ 2, 3, 4, 5, 6, 7, 8, 9 }, 8);
    if (wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static void some_in_the_middle_are_given_back(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 8);
    wb_error error = { 0 };
    if (!s)
        return;
    const wb_incoming *returned[] = { s->in_hand[5], s->in_hand[2] };
    const wb_incoming *kept[] = { s->in_hand[0], s->in_hand[1], s->in_hand[3],
                                  s->in_hand[4], s->in_hand[6], s->in_hand[7] };
    s->count = 0;
    if (!wb_tk_is_ok(kit, s->tk->ops->give_back(s->session, returned, 2, &error), &error,
                     "give back") ||
        !wb_tk_is_ok(kit, s->tk->ops->acknowledge(s->session, kept, 6, &error), &error,
                     "acknowledge the rest") ||
        !wb_tk_collect(s, 2))
        return;
    wb_tk_expect_set(s, (const size_t[]){ 2, 5 }, 2);
    if (wb_tk_finish(s) && wb_tk_reopen(s))
        wb_tk_expect_empty(s);
}

/* ---- delivery counts ------------------------------------------------------------------- */

static int expect_count(wb_tk_session *s, uint32_t count)
{
    return wb_kit_check(&s->tk->kit, s->count && s->in_hand[0]->delivery_count == count,
                        "a delivery count of %u, not %u",
                        s->count ? s->in_hand[0]->delivery_count : 0, count);
}

static void counts_what_is_given_back(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 1);
    if (!s || !expect_count(s, 0))
        return;
    for (uint32_t count = 1; count <= 4; count++)
        if (!wb_tk_give_back(s, 0, 1) || !wb_tk_collect(s, 1) || !expect_count(s, count))
            return;
    wb_tk_finish(s);
}

/* An orderly close is no evidence against a message: it may count, but once. */
static void counts_what_is_closed(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 1);
    for (uint32_t count = 1; s && count <= 3; count++) {
        if (!wb_tk_reopen(s) || !wb_tk_collect(s, 1))
            return;
        wb_kit_check(kit, s->in_hand[0]->delivery_count <= count,
                     "a delivery count of %u after %u deliveries", s->in_hand[0]->delivery_count,
                     count);
    }
    if (s)
        wb_tk_finish(s);
}

/* Others' deliveries are not counted for a message. */
static void counts_each_for_itself(wb_kit *kit)
{
    wb_tk_session *s = open_with(kit, 1);
    if (!s || !wb_tk_give_back(s, 0, 1) || !wb_tk_collect(s, 1) || !expect_count(s, 1) ||
        !wb_tk_finish(s) || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, 1) ||
        !wb_tk_collect(s, 1) || !expect_count(s, 0))
        return;
    wb_tk_finish(s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_acknowledge_cases[] = {
    { "settling nothing is no error", RO, nothing_to_settle },
    { "what was given back comes again at once", RO, given_back_comes_at_once },
    { "a part of a batch is given back", RO, a_part_is_given_back },
    { "messages from the middle of a batch are given back", RO,
      some_in_the_middle_are_given_back },
    { "what was given back is for anybody", RO, given_back_to_anybody },
    { "what was given back comes to others while its session does nothing", RO, given_back_while_idle },
    { "acknowledged messages do not come back after close", RO, acknowledged_stays_away },
    { "unacknowledged messages come back after close", RO, unacknowledged_comes_back },
    { "messages are acknowledged in any order and number", RO, any_order_and_number },
    { "messages are acknowledged with gaps", RO, with_gaps },
    { "many messages are given back, and acknowledged, in one call", RO, many_in_one_call },
    { "who acknowledged and then found nothing has acknowledged", RO, acknowledged_then_idle },
    { "a message in hand is nobody else's before it is acknowledged", RO, nobody_else_sees_it },
    { "what a session holds stays with it when another one is opened, and waits", RO, nobody_takes_it_away },
    { "an acknowledged message is nobody's", RO, acknowledged_for_all },
    { "deliveries are counted: given back", RO | WB_CAP_DELIVERY_COUNT,
      counts_what_is_given_back },
    { "deliveries are counted once at most: closed", RO | WB_CAP_DELIVERY_COUNT,
      counts_what_is_closed },
    { "deliveries are counted for each message", RO | WB_CAP_DELIVERY_COUNT,
      counts_each_for_itself },
};
WB_TK_CASES(acknowledge);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that are held back while all around them are acknowledged: a host keeps those that
 * it can neither handle nor move. They stay what they were, and come back when the session ends.
 */
#include "config.h"

#include <string.h>

#include "conformance/transport/setting.h"

#define ALL 100
#define BATCH 10
#define HELD (ALL / BATCH)

/* Acknowledge all but the first of what came last, the newest first. */
static int acknowledge_all_but_first(wb_tk_session *s, size_t held)
{
    while (s->count > held + 1)
        if (!wb_tk_acknowledge(s, s->count - 1, 1))
            return 0;
    return 1;
}

static int step(wb_tk_session *s, int (*of_transaction)(wb_transport_session *, wb_error *),
                const char *doing)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(&s->tk->kit, of_transaction(s->session, &error), &error, doing);
}

/* Batch after batch, each in a transaction where the mode has them. */
static int handle_batches(wb_tk_session *s, int mode)
{
    const wb_transport_ops *ops = s->tk->ops;
    int has_transactions = mode == WB_MODE_SENDS_ATOMIC || mode == WB_MODE_TRANSACTION_SCOPE;
    for (size_t held = 0; held < HELD; held++)
        if (!wb_tk_collect(s, BATCH) || (has_transactions && !step(s, ops->begin, "begin")) ||
            !acknowledge_all_but_first(s, held) ||
            (has_transactions && !step(s, ops->commit, "commit")))
            return 0;
    return 1;
}

/* What was held: its bytes are still there. */
static void check_held(const wb_tk_session *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const wb_incoming *message = s->in_hand[i];
        char body[16];
        int size = snprintf(body, sizeof body, "%zu", i * BATCH);
        wb_kit_check(&s->tk->kit,
                     wb_tk_is_ours(s->tk, message) && message->body_size == (size_t)size &&
                         memcmp(message->body, body, (size_t)size) == 0,
                     "a message that was held back has changed");
    }
}

/* Those that were held come, each once. Where keys have an order, those behind them may. */
static int expect_held(wb_tk_session *s)
{
    wb_kit *kit = &s->tk->kit;
    int is_log = (kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY) != 0;
    unsigned char seen[ALL] = { 0 };
    for (size_t missing = HELD; missing;) {
        if (!wb_tk_collect(s, 1))
            return 0;
        size_t number = wb_tk_number(s->in_hand[0]) % ALL;
        missing -= number % BATCH == 0 && seen[number] == 0;
        wb_kit_check(kit, seen[number]++ == 0, "message %zu came twice", number);
        wb_kit_check(kit, is_log || number % BATCH == 0,
                     "message %zu was acknowledged and came again", number);
        if (!wb_tk_finish(s))
            return 0;
    }
    return 1;
}

static void held_back(wb_kit *kit, int mode)
{
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, mode, 3 * BATCH);
    if (!s || !sender || !wb_tk_send_numbers(sender, s->instance->info.name, "k", 0, ALL) ||
        !handle_batches(s, mode) || !wb_tk_expect_quiet(s, WB_SECOND))
        return;
    check_held(s);
    if (!wb_tk_reopen(s) || !expect_held(s))
        return;
    if (kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY) { /* what came behind the last */
        wb_error error = { 0 };
        (void)wb_tk_take(s, ALL, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        (void)wb_tk_finish(s);
    } else
        wb_tk_expect_empty(s);
}

static void held_back_receive_only(wb_kit *kit)
{
    held_back(kit, WB_MODE_RECEIVE_ONLY);
}

/* One that is acknowledged in the end is gone, as if it had been so in its turn. */
static void settled_late(wb_kit *kit)
{
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 3 * BATCH);
    if (s && sender && wb_tk_send_numbers(sender, s->instance->info.name, "k", 0, ALL) &&
        handle_batches(s, WB_MODE_RECEIVE_ONLY) && wb_tk_finish(s) && wb_tk_reopen(s))
        wb_tk_expect_empty(s);
}

WB_TK_IN_BOTH_MODES(held_back)

const wb_kit_case wb_tk_held_cases[] = {
    { "messages held back while others are acknowledged come back after close",
      WB_CAP_MODE_RECEIVE_ONLY, held_back_receive_only },
    { "messages held back and acknowledged in the end do not come back",
      WB_CAP_MODE_RECEIVE_ONLY, settled_late },
    WB_TK_BOTH("messages held back while others are committed come back after close", held_back),
};
WB_TK_CASES(held);

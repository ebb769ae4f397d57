/* SPDX-License-Identifier: Apache-2.0
 *
 * Order per key: messages with one key are handled in the order they were sent, whoever
 * receives them and whatever becomes of the sessions.
 */
#include "config.h"

#include <string.h>

#include "conformance/transport/steps.h"

#define KEYS 5
#define EACH 20
#define ALL (KEYS * EACH)

static const char *const key_names[KEYS] = { "one", "two", "three", "four", "five" };

/* Number n has key n % KEYS and is the (n / KEYS)-th of it. */
static int send_all(wb_kit *kit)
{
    wb_tk_letter letters[ALL];
    wb_operation *operations[ALL];
    wb_tk_session *sender = wb_tk_sender(kit);
    for (size_t i = 0; i < ALL; i++) {
        wb_tk_write(kit, &letters[i], wb_tk_of(kit)->queues[WB_TK_MAIN], key_names[i % KEYS], i);
        operations[i] = &letters[i].operation;
    }
    return sender && wb_tk_send(sender, operations, ALL);
}

/* What is next of each key. */
typedef struct progress {
    size_t next[KEYS];
    size_t done;
} progress;

/* The messages in hand from `at` on are those next. */
static int advance(progress *at, const wb_tk_session *s, size_t from, size_t to)
{
    wb_kit *kit = &s->tk->kit;
    for (size_t i = from; i < to; i++) {
        size_t number = wb_tk_number(s->in_hand[i]);
        size_t key = number % KEYS;
        if (!wb_kit_check(kit, number / KEYS == at->next[key],
                          "key %zu: message %zu came where %zu was to come", key, number / KEYS,
                          at->next[key]))
            return 0;
        at->next[key]++;
        at->done++;
    }
    return 1;
}

/* Some at once, and as much as comes: never more than there is. */
static int take_some(wb_tk_session *s, const progress *at)
{
    size_t left = ALL - at->done;
    return wb_tk_collect(s, left < 7 ? left : 7);
}

static void in_one_session(wb_kit *kit)
{
    progress at = { 0 };
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !send_all(kit))
        return;
    while (at.done < ALL)
        if (!take_some(s, &at) || !advance(&at, s, 0, s->count) || !wb_tk_finish(s))
            return;
    wb_tk_expect_empty(s);
}

/* Of each batch the first two are acknowledged and the rest is given back. */
static void through_give_back(wb_kit *kit)
{
    progress at = { 0 };
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !send_all(kit))
        return;
    while (at.done < ALL) {
        if (!take_some(s, &at))
            return;
        size_t kept = s->count < 2 ? s->count : 2;
        if (!advance(&at, s, 0, kept) || !wb_tk_give_back(s, kept, s->count - kept) ||
            !wb_tk_finish(s))
            return;
    }
    wb_tk_expect_empty(s);
}

static void through_close(wb_kit *kit)
{
    progress at = { 0 };
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 10);
    if (!s || !send_all(kit))
        return;
    while (at.done < ALL) {
        if (!take_some(s, &at))
            return;
        size_t kept = at.done < 3 * ALL / 4 ? s->count - 2 : s->count;
        if (!advance(&at, s, 0, kept) || !wb_tk_acknowledge(s, 0, kept) ||
            (s->count && !wb_tk_reopen(s)))
            return;
        if (at.done == 0)
            return;
        if (at.done < ALL / 2) { /* one without a loss in between */
            if (!take_some(s, &at) || !advance(&at, s, 0, s->count) || !wb_tk_finish(s))
                return;
        }
    }
    wb_tk_expect_empty(s);
}

static void of_two_sessions(wb_kit *kit)
{
    progress at = { 0 };
    wb_tk_session *pair[2];
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    int64_t deadline = wb_tk_in(tk, 2 * tk->patience);
    if (!wb_tk_open_pair(kit, 10, pair) || !send_all(kit))
        return;
    for (size_t i = 0; at.done < ALL; i++) {
        wb_tk_session *s = pair[i % 2];
        int result = wb_tk_take(s, 5, wb_tk_in(tk, 50 * WB_MILLISECOND), &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive") || !advance(&at, s, 0, s->count) ||
            !wb_tk_finish(s) ||
            !wb_kit_check(kit, wb_clock_monotonic() < deadline, "%zu of %d came", at.done, ALL))
            return;
    }
}

static size_t keys_in_hand(const wb_tk_session *s)
{
    size_t keys = 0;
    for (size_t i = 0; i < s->count; i++)
        keys |= (size_t)1 << wb_tk_number(s->in_hand[i]) % KEYS;
    return keys;
}

/* Both hold what they take: no key may be in the hands of both. */
static void not_in_work_twice(wb_kit *kit)
{
    wb_tk_session *pair[2];
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    if (!wb_tk_open_pair(kit, 10, pair) || !send_all(kit))
        return;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 2; i++) {
            int result = wb_tk_take(pair[i], 5, wb_tk_in(tk, WB_TK_QUIET / 3), &error);
            if (!wb_tk_is_ok(kit, result, &error, "receive"))
                return;
        }
    wb_kit_check(kit, (keys_in_hand(pair[0]) & keys_in_hand(pair[1])) == 0,
                 "two sessions have messages of one key in hand");
    wb_tk_close(pair[0]);
    wb_tk_close(pair[1]);
    progress at = { 0 };
    wb_tk_session *s = kit->is_failed ? NULL : wb_tk_open(kit, WB_TK_MAIN, tk->mode, 10);
    while (s && at.done < ALL)
        if (!take_some(s, &at) || !advance(&at, s, 0, s->count) || !wb_tk_finish(s))
            return;
}

/* Or a copy that is sent later, a retry, would have lost its place. */
static void keys_come(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !send_all(kit) || !wb_tk_collect(s, ALL))
        return;
    for (size_t i = 0; i < s->count; i++) {
        const char *sent = key_names[wb_tk_number(s->in_hand[i]) % KEYS];
        if (!wb_kit_check(kit, s->in_hand[i]->key && s->in_hand[i]->key_size == strlen(sent) &&
                                   memcmp(s->in_hand[i]->key, sent, strlen(sent)) == 0,
                          "message %zu came without its key", wb_tk_number(s->in_hand[i])))
            break;
    }
    wb_tk_finish(s);
}

#define ORDERED (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_ORDER_PER_KEY)

const wb_kit_case wb_tk_order_cases[] = {
    { "order per key: in one session", ORDERED, in_one_session },
    { "order per key: through give back", ORDERED, through_give_back },
    { "order per key: through close and open", ORDERED, through_close },
    { "order per key: in the hands of two sessions", ORDERED, of_two_sessions },
    { "order per key: the key comes with its message", ORDERED, keys_come },
    { "order per key: nobody else gets a key that is in work", ORDERED, not_in_work_twice },
};
WB_TK_CASES(order);

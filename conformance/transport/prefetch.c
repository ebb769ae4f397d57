/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetch: how much a session takes ahead, and how it gives that up for others.
 */
#include "config.h"

#include "conformance/transport/steps.h"

/* What is to be there within seconds; machines may be slow. */
#define SECONDS (10 * WB_SECOND)
/* A call that does not wait for the network has returned by then. */
#define AT_ONCE (5 * WB_SECOND)

static const char *main_queue(wb_kit *kit)
{
    return wb_tk_of(kit)->queues[WB_TK_MAIN];
}

static int set_prefetch(wb_tk_session *s, uint32_t prefetch)
{
    wb_error error = { 0 };
    int result = s->tk->ops->set_prefetch(s->session, prefetch, &error);
    return wb_tk_is_ok(&s->tk->kit, result, &error, "set_prefetch");
}

static void prefetch_leaves_the_rest(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *greedy = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 3);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!greedy || !sender || !wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 0, 10) ||
        !wb_tk_collect(greedy, 1))
        return;
    wb_tk_session *other = wb_tk_open_for(greedy->instance, WB_SESSION_RECEIVE, 100);
    if (!other || !wb_tk_collect(other, 7) || !wb_tk_finish(other))
        return;
    wb_tk_close(other);
    if (wb_tk_collect(greedy, 2))
        wb_tk_finish(greedy);
}

static void prefetch_is_room(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 3);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (s && sender && wb_tk_send_numbers(sender, s->instance->info.name, "k", 0, 3) &&
        wb_tk_collect(s, 3))
        wb_tk_finish(s);
}

/* However many it would take at once. */
static void has_no_more_in_hand(wb_kit *kit)
{
    enum { PREFETCH = 3, ALL = 10 };
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, set_prefetch) || wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, PREFETCH);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender || !wb_tk_send_numbers(sender, main_queue(kit), "k", 0, ALL) || !wb_tk_collect(s, PREFETCH))
        return;
    for (int i = 0; i < 3; i++) {
        int result = wb_tk_take(s, 100, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive") ||
            !wb_kit_check(kit, s->count <= PREFETCH, "with a prefetch of %d it has %zu messages in hand", PREFETCH,
                          s->count))
            return;
    }
    for (size_t left = ALL - s->count; left; left -= s->count)
        if (!wb_tk_finish(s) || !wb_tk_collect(s, 1))
            return;
    wb_tk_finish(s);
}

/* More, less, and less than is in hand. */
static void prefetch_changes(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (WB_TK_LACKS(kit, set_prefetch))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 2);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender || !wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 0, 10) ||
        !wb_tk_collect(s, 2) || !set_prefetch(s, 6) || !wb_tk_collect(s, 4) ||
        !wb_tk_acknowledge(s, 0, 3) || !set_prefetch(s, 3) || !wb_tk_finish(s) ||
        !set_prefetch(s, 1))
        return;
    size_t seen = 0;
    for (size_t i = 0; i < 4; i++) { /* in any order: a new prefetch may be a new consumer */
        if (!wb_tk_collect(s, 1))
            return;
        seen |= (size_t)1 << wb_tk_number(s->in_hand[0]) % 10;
        if (!wb_tk_finish(s))
            return;
    }
    wb_kit_check(kit, seen == 0x3c0, "of messages 6 to 9 not each came once");
    wb_tk_expect_empty(s);
}

/* Hosts begin like this: one message ahead, until it is known how long handlers take. */
static void one_after_the_other(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 1);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender || !wb_tk_send_numbers(sender, main_queue(kit), "k", 0, 10))
        return;
    for (size_t i = 0; i < 10; i++)
        if (!wb_tk_collect(s, 1) || !wb_tk_expect_numbers(s, 0, i, 1) || !wb_tk_finish(s))
            return;
}

static void grows_from_one(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    if (WB_TK_LACKS(kit, set_prefetch))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 1);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender || !wb_tk_send_numbers(sender, main_queue(kit), "k", 0, 111))
        return;
    for (uint32_t prefetch = 1; prefetch <= 100; prefetch *= 10)
        if (!set_prefetch(s, prefetch) || !wb_tk_collect(s, prefetch) || !wb_tk_finish(s))
            return;
    wb_tk_expect_empty(s);
}

/* All that comes by itself while nothing is settled. */
static int take_until_quiet(wb_tk_session *s)
{
    wb_error error = { 0 };
    size_t before;
    do {
        before = s->count;
        int result = wb_tk_take(s, 100, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        if (!wb_tk_is_ok(&s->tk->kit, result, &error, "receive"))
            return 0;
    } while (s->count > before);
    return 1;
}

/* What was asked for before it shrank may still bring what there was room for then: four go by. Afterwards more is in
 * hand than the new prefetch, though some is settled. That may be a new consumer's, which takes the place of the other:
 * then one more comes at once, and no second. */
static void shrinks_to_one(wb_kit *kit)
{
    enum { IN_HAND = 6, ROOM = 4, ALL = IN_HAND + 2 * ROOM };
    wb_tk *tk = wb_tk_of(kit);
    if (WB_TK_LACKS(kit, set_prefetch) || wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, IN_HAND + ROOM);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender || !wb_tk_send_numbers(sender, main_queue(kit), "k", 0, IN_HAND) ||
        !wb_tk_collect(s, IN_HAND) || !set_prefetch(s, 1) || !wb_tk_expect_quiet(s, WB_TK_QUIET) ||
        !wb_tk_send_numbers(sender, main_queue(kit), "k", IN_HAND, ROOM) || !take_until_quiet(s) ||
        !wb_tk_acknowledge(s, 0, ROOM))
        return;
    const size_t before = s->count;
    if (!wb_tk_send_numbers(sender, main_queue(kit), "k", IN_HAND + ROOM, ROOM) || !take_until_quiet(s) ||
        !wb_kit_check(kit, s->count <= before + 1, "with a prefetch of 1 it took %zu more", s->count - before))
        return;
    const size_t left = ALL - ROOM - s->count; /* of them it may have one ahead */
    wb_tk_session *other = wb_tk_open_for(s->instance, WB_SESSION_RECEIVE, 100);
    if (!other || !wb_tk_collect(other, left - 1) || !wb_tk_finish(other))
        return;
    wb_tk_close(other);
    if (wb_tk_expect_numbers(s, 0, ROOM, IN_HAND - ROOM) && wb_tk_finish(s) && wb_tk_collect(s, 1) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* ---- given up -------------------------------------------------------------------------- */

typedef struct releaser {
    wb_tk_session *s;
    int times;
    int64_t every; /* before each */
    int64_t longest;
    pthread_t thread;
} releaser;

static void *release(void *argument)
{
    releaser *self = argument;
    for (int i = 0; i < self->times; i++) {
        wb_clock_pause(self->every, NULL);
        int64_t start = wb_clock_monotonic();
        self->s->tk->ops->release_prefetched(self->s->session);
        int64_t took = wb_clock_monotonic() - start;
        if (took > self->longest)
            self->longest = took;
    }
    return NULL;
}

static int start_release(releaser *self)
{
    return wb_kit_check(&self->s->tk->kit,
                        pthread_create(&self->thread, NULL, release, self) == 0,
                        "could not start a thread");
}

static void end_release(releaser *self)
{
    (void)pthread_join(self->thread, NULL);
    wb_kit_check(&self->s->tk->kit, self->longest < AT_ONCE,
                 "release_prefetched took %lld ms: it may not wait for the network",
                 (long long)(self->longest / WB_MILLISECOND));
}

/* Its worker is in a handler, with one message in hand and the rest ahead. */
static wb_tk_session *open_greedy(wb_kit *kit, int mode, size_t count)
{
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, mode, 20);
    return s && sender && wb_tk_send_numbers(sender, main_queue(kit), "k", 0, count) &&
                   wb_tk_collect(s, 1)
               ? s
               : NULL;
}

/* Of messages 0 to 9 those that are not in hand come to `other` while `s` does nothing. */
static int others_get_the_rest(wb_tk_session *s, wb_tk_session *other, int times)
{
    wb_kit *kit = &s->tk->kit;
    releaser helper = { .s = s, .times = times, .every = 200 * WB_MILLISECOND };
    int64_t start = wb_clock_monotonic();
    if (!start_release(&helper))
        return 0;
    int is_ok = wb_tk_collect(other, 9);
    end_release(&helper);
    int64_t took = wb_clock_monotonic() - start;
    is_ok = is_ok && wb_kit_check(kit, took < SECONDS, "the rest came after %lld ms",
                                  (long long)(took / WB_MILLISECOND));
    for (size_t i = 0; is_ok && i < other->count; i++)
        is_ok = wb_kit_check(kit, wb_tk_number(other->in_hand[i]) != wb_tk_number(s->in_hand[0]),
                             "a message in hand was somebody else's, too") &&
                wb_kit_check(kit, other->in_hand[i]->delivery_count <= 1,
                             "a delivery count of %u", other->in_hand[i]->delivery_count);
    return is_ok;
}

static void released_for_others(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, release_prefetched) || wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *s = open_greedy(kit, wb_tk_of(kit)->mode, 10);
    wb_tk_session *other = s ? wb_tk_open_for(s->instance, WB_SESSION_RECEIVE, 100) : NULL;
    if (!other || !others_get_the_rest(s, other, 1) || !wb_tk_finish(other))
        return;
    wb_tk_close(other);
    if (wb_tk_expect_numbers(s, 0, 0, 1) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* The next receive() begins to prefetch again, and is not short of anything. */
static void goes_on_after_release(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, release_prefetched))
        return;
    wb_tk_session *s = open_greedy(kit, wb_tk_of(kit)->mode, 10);
    releaser helper = { .s = s, .times = 3, .every = 100 * WB_MILLISECOND };
    if (!s || !start_release(&helper))
        return;
    end_release(&helper);
    if (!wb_tk_collect(s, 9) ||
        !wb_tk_expect_set(s, (const size_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, 10) ||
        !wb_tk_finish(s) || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, 20) ||
        !wb_tk_collect(s, 20) || !wb_tk_expect_numbers(s, 0, 0, 20) || !wb_tk_finish(s))
        return;
    wb_tk_expect_empty(s);
}

static void nothing_to_release(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, release_prefetched))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 20);
    releaser helper = { .s = s, .times = 2, .every = 0 };
    if (!s || !start_release(&helper))
        return;
    end_release(&helper);
    wb_tk_expect_empty(s);
}

/* While it receives and acknowledges in its own thread. */
static void released_in_the_middle(wb_kit *kit)
{
    enum { COUNT = 100 };
    unsigned char seen[COUNT] = { 0 };
    if (WB_TK_LACKS(kit, release_prefetched))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 20);
    releaser helper = { .s = s, .times = 15, .every = 3 * WB_MILLISECOND };
    if (!s || !wb_tk_sender(kit) || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, COUNT) ||
        !start_release(&helper))
        return;
    int is_ok = 1;
    for (size_t left = COUNT; is_ok && left;) {
        is_ok = wb_tk_collect(s, 1);
        if (is_ok)
            left -= seen[wb_tk_number(s->in_hand[0]) % COUNT]++ == 0;
        is_ok = is_ok && wb_tk_finish(s);
        wb_clock_pause(WB_MILLISECOND, NULL); /* a handler, or all is done before it begins */
    }
    end_release(&helper);
    for (size_t i = 0; is_ok && i < COUNT; i++)
        wb_kit_check(kit, seen[i] == 1, "message %zu came %d times", i, seen[i]);
    if (is_ok)
        wb_tk_expect_empty(s);
}

/* What it had ahead in this mode must not be taken for handed out. */
static void released_in_mode_none(wb_kit *kit)
{
    if (WB_TK_LACKS(kit, release_prefetched) || wb_tk_skips_for_order(kit))
        return;
    wb_tk_session *s = open_greedy(kit, WB_MODE_NONE, 10);
    wb_tk_session *other = s ? wb_tk_open_for(s->instance, WB_SESSION_RECEIVE, 100) : NULL;
    if (!other || !others_get_the_rest(s, other, 1) || !wb_tk_finish(other) || !wb_tk_finish(s))
        return;
    wb_tk_close(s);
    wb_tk_expect_empty(other);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_prefetch_cases[] = {
    { "a session takes no more than its prefetch from others", RO, prefetch_leaves_the_rest },
    { "as many as the prefetch can be in hand", RO, prefetch_is_room },
    { "no more than the prefetch are in hand", RO, has_no_more_in_hand },
    { "with a prefetch of 1 messages come one after the other", RO, one_after_the_other },
    { "the prefetch may grow from 1 to 100", RO, grows_from_one },
    { "the prefetch may change while messages are in hand", RO, prefetch_changes },
    { "the prefetch may shrink to 1 while more is in hand", RO, shrinks_to_one },
    { "release_prefetched() gives others what was not received yet", RO, released_for_others },
    { "a session goes on receiving after release_prefetched()", RO, goes_on_after_release },
    { "release_prefetched() of nothing harms nothing", RO, nothing_to_release },
    { "release_prefetched() while the session works loses and doubles nothing", RO,
      released_in_the_middle },
    { "mode none: release_prefetched() gives others what was not received yet",
      RO | WB_CAP_MODE_NONE, released_in_mode_none },
};
WB_TK_CASES(prefetch);

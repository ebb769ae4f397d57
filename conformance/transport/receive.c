/* SPDX-License-Identifier: Apache-2.0
 *
 * Receiving: waiting, limits, several sessions.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/steps.h"
#include "core/base/arena.h"

/* A wait that is to end early has this long; machines may be slow. */
#define LONG (20 * WB_SECOND)
#define EARLY (10 * WB_SECOND)

/* ---- deadlines ------------------------------------------------------------------------- */

static int64_t time_receive(wb_tk_session *s, size_t max, int64_t wait)
{
    wb_error error = { 0 };
    int64_t start = wb_clock_monotonic();
    int result = wb_tk_take(s, max, start + wait, &error);
    wb_tk_is_ok(&s->tk->kit, result, &error, "receive");
    return wb_clock_monotonic() - start;
}

static void waits_until_its_deadline(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s)
        return;
    int64_t took = time_receive(s, 10, 400 * WB_MILLISECOND);
    wb_kit_check(kit, s->count == 0, "a message came, none was sent");
    wb_kit_check(kit, took >= 390 * WB_MILLISECOND, "it waited %lld of 400 ms",
                 (long long)(took / WB_MILLISECOND));
    wb_kit_check(kit, took < EARLY, "it waited %lld ms instead of 400",
                 (long long)(took / WB_MILLISECOND));
}

static void does_not_wait_after_its_deadline(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    for (int i = 0; s && i < 3; i++)
        wb_kit_check(kit, time_receive(s, 10, -WB_SECOND) < EARLY,
                     "it waited although its deadline had passed");
}

/* Late is whoever is late each time: a machine may be slow, but not always just then. */
#define IN_TIME WB_SECOND
#define TRIES 5

static void is_in_time_at_its_deadline(wb_kit *kit)
{
    const int64_t wait = 100 * WB_MILLISECOND;
    wb_tk_session *s = wb_tk_receiver(kit);
    int64_t best = INT64_MAX;
    for (int i = 0; s && i < TRIES && best >= wait + IN_TIME; i++) {
        int64_t took = time_receive(s, 10, wait);
        best = took < best ? took : best;
    }
    wb_kit_check(kit, !s || best < wait + IN_TIME, "of %d that were to wait 100 ms none took less than %lld ms", TRIES,
                 (long long)(best / WB_MILLISECOND));
}

static void is_in_time_with_a_message(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    int64_t best = INT64_MAX;
    for (int i = 0; s && i < TRIES && best >= 2 * IN_TIME; i++) {
        if (!wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1, 1))
            return;
        int64_t took = time_receive(s, 10, LONG);
        best = took < best ? took : best;
        if ((!s->count && !wb_tk_collect(s, 1)) || !wb_tk_finish(s))
            return;
    }
    wb_kit_check(kit, !s || best < 2 * IN_TIME, "of %d messages that were there none came within %lld ms", TRIES,
                 (long long)(best / WB_MILLISECOND));
}

static void takes_what_is_there(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1, 1))
        return;
    int64_t took = time_receive(s, 100, LONG);
    wb_kit_check(kit, took < EARLY, "with one message there it waited for a second");
    if (wb_tk_expect_numbers(s, 0, 1, 1))
        wb_tk_finish(s);
}

static void hands_out_at_most_max(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_error error = { 0 };
    int64_t deadline = wb_tk_in(wb_tk_of(kit), wb_tk_of(kit)->patience);
    if (!s || !wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 0, 10))
        return;
    while (s->count < 10 && wb_clock_monotonic() < deadline)
        if (!wb_tk_is_ok(kit, wb_tk_take(s, 3, deadline, &error), &error, "receive"))
            return;
    if (wb_tk_expect_numbers(s, 0, 0, 10))
        wb_tk_finish(s);
}

/* ---- other threads --------------------------------------------------------------------- */

typedef struct helper {
    wb_tk_session *s; /* what it does something to */
    int64_t after;
    pthread_t thread;
} helper;

static void *interrupt_later(void *argument)
{
    const helper *self = argument;
    wb_clock_pause(self->after, NULL);
    self->s->tk->ops->interrupt(self->s->session);
    return NULL;
}

static void *send_later(void *argument)
{
    const helper *self = argument;
    wb_clock_pause(self->after, NULL);
    (void)wb_tk_send_numbers(self->s, self->s->tk->queues[WB_TK_MAIN], "k", 1, 1);
    return NULL;
}

static int64_t receive_while(wb_tk_session *s, void *(*does)(void *), wb_tk_session *to)
{
    helper other = { .s = to, .after = 200 * WB_MILLISECOND };
    if (!wb_kit_check(&s->tk->kit, pthread_create(&other.thread, NULL, does, &other) == 0,
                      "could not start a thread"))
        return 0;
    int64_t took = time_receive(s, 10, LONG);
    (void)pthread_join(other.thread, NULL);
    return took;
}

static void is_interrupted(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s)
        return;
    wb_kit_check(kit, receive_while(s, interrupt_later, s) < EARLY,
                 "an interrupt did not end the wait");
    wb_kit_check(kit, s->count == 0, "a message came, none was sent");
}

static void is_interrupted_in_advance(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s)
        return;
    s->tk->ops->interrupt(s->session);
    wb_kit_check(kit, time_receive(s, 10, LONG) < EARLY,
                 "an interrupt did not end the next receive");
    wb_kit_check(kit, time_receive(s, 10, 300 * WB_MILLISECOND) >= 290 * WB_MILLISECOND,
                 "one interrupt ended two waits");
}

static void a_send_wakes_it(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!s || !sender)
        return;
    wb_kit_check(kit, receive_while(s, send_later, sender) < EARLY,
                 "a message that was sent meanwhile did not end the wait");
    if (s->count || wb_tk_collect(s, 1))
        wb_tk_finish(s);
}

static void *interrupt_often(void *argument)
{
    const helper *self = argument;
    for (int i = 0; i < 100; i++) {
        self->s->tk->ops->interrupt(self->s->session);
        wb_clock_pause(WB_MILLISECOND, NULL);
    }
    return NULL;
}

static void interrupts_lose_nothing(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    helper others[2];
    size_t started = 0;
    if (!s || !wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 0, 100))
        return;
    for (; started < 2; started++) {
        others[started].s = s;
        if (pthread_create(&others[started].thread, NULL, interrupt_often, &others[started]) != 0)
            break;
    }
    int is_ok = wb_tk_collect(s, 100) && wb_tk_expect_numbers(s, 0, 0, 100) && wb_tk_finish(s);
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(others[i].thread, NULL);
    if (is_ok)
        (void)time_receive(s, 1, 0); /* an interrupt may be left over */
}

/* ---- mode none ------------------------------------------------------------------------- */

/* A transport that promises delivery in another mode delivers in this one, too. */
static void mode_none_removes(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    size_t got[10] = { 0 };
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, WB_MODE_NONE, 4);
    if (!s || !wb_tk_send_numbers(s, tk->queues[WB_TK_MAIN], "k", 0, 10))
        return;
    if (kit->plugin->capabilities & WB_CAP_MODE_RECEIVE_ONLY) {
        if (!wb_tk_collect(s, 4))
            return;
    } else if (!wb_tk_is_ok(kit, wb_tk_take(s, 4, wb_tk_in(tk, WB_TK_QUIET), &error), &error,
                            "receive"))
        return;
    for (size_t i = 0; i < s->count; i++)
        got[wb_tk_number(s->in_hand[i]) % 10]++;
    if (!wb_tk_reopen(s)) /* nothing was acknowledged */
        return;
    size_t quiet = 0;
    while (quiet < 2) {
        if (!wb_tk_is_ok(kit, wb_tk_take(s, 10, wb_tk_in(tk, WB_TK_QUIET), &error), &error,
                         "receive"))
            return;
        quiet = s->count ? 0 : quiet + 1;
        for (size_t i = 0; i < s->count; i++)
            got[wb_tk_number(s->in_hand[i]) % 10]++;
        if (!wb_tk_finish(s))
            return;
    }
    for (size_t i = 0; i < 10; i++)
        wb_kit_check(kit, got[i] <= 1, "message %zu came %zu times", i, got[i]);
}

/* With enough room nothing is lost that nobody held. */
static void mode_none_delivers(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, WB_MODE_NONE, 100);
    if (s && wb_tk_send_numbers(s, tk->queues[WB_TK_MAIN], "k", 0, 50) && wb_tk_collect(s, 50) &&
        wb_tk_expect_numbers(s, 0, 0, 50) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

/* ---- several sessions ------------------------------------------------------------------ */

#define WORKERS 4
#define SHARE 100

typedef struct worker {
    wb_tk_session *s;
    pthread_mutex_t *lock;
    unsigned char *seen; /* by number; guarded by lock, as is *left */
    size_t *left;
    int64_t deadline;
    pthread_t thread;
} worker;

static int count_in(worker *self)
{
    wb_tk_session *s = self->s;
    (void)pthread_mutex_lock(self->lock);
    for (size_t i = 0; i < s->count; i++) {
        size_t number = wb_tk_number(s->in_hand[i]) % (WORKERS * SHARE);
        *self->left -= self->seen[number] == 0;
        self->seen[number] += self->seen[number] < 255;
    }
    int is_done = *self->left == 0;
    (void)pthread_mutex_unlock(self->lock);
    return is_done;
}

static void *work(void *argument)
{
    worker *self = argument;
    wb_tk_session *s = self->s;
    wb_error error = { 0 };
    for (int is_done = 0; !is_done && wb_clock_monotonic() < self->deadline;) {
        int result = wb_tk_take(s, 7, wb_tk_in(s->tk, 50 * WB_MILLISECOND), &error);
        if (!wb_tk_is_ok(&s->tk->kit, result, &error, "receive"))
            return NULL;
        is_done = count_in(self);
        if (!wb_tk_finish(s))
            return NULL;
    }
    return NULL;
}

/* With many keys: where keys are shared out, each session has some. */
static int send_many_keys(wb_kit *kit)
{
    char key[16];
    for (size_t i = 0; i < SHARE / 4; i++) {
        (void)snprintf(key, sizeof key, "key-%zu", i);
        if (!wb_tk_send_numbers(wb_tk_sender(kit), wb_tk_of(kit)->queues[WB_TK_MAIN], key,
                                i * 4 * WORKERS, 4 * WORKERS))
            return 0;
    }
    return 1;
}

static void side_by_side(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    worker workers[WORKERS];
    unsigned char seen[WORKERS * SHARE] = { 0 };
    size_t left = WORKERS * SHARE, started = 0;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    if (!instance || !wb_tk_sender(kit))
        return;
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (worker){ .lock = &lock, .seen = seen, .left = &left };
        workers[i].s = wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, 10);
        if (!workers[i].s)
            return;
    }
    if (!send_many_keys(kit))
        return;
    for (; started < WORKERS; started++) {
        workers[started].deadline = wb_tk_in(tk, 2 * tk->patience);
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < WORKERS * SHARE; i++)
        wb_kit_check(kit, seen[i] == 1, "message %zu came %d times", i, seen[i]);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_receive_cases[] = {
    { "receive waits until its deadline, no longer", 0, waits_until_its_deadline },
    { "receive comes back in time when nothing came", 0, is_in_time_at_its_deadline },
    { "receive comes back in time with what is there", RO, is_in_time_with_a_message },
    { "receive does not wait when its deadline has passed", 0, does_not_wait_after_its_deadline },
    { "receive takes what is there and waits for no second message", RO, takes_what_is_there },
    { "receive hands out at most as many as asked for", RO, hands_out_at_most_max },
    { "interrupt ends a receive that waits", 0, is_interrupted },
    { "interrupt ends the next receive, and only that", 0, is_interrupted_in_advance },
    { "a message ends a receive that waits", RO, a_send_wakes_it },
    { "interrupts from two threads lose no message", RO, interrupts_lose_nothing },
    { "mode none removes messages before they are handed out", WB_CAP_MODE_NONE,
      mode_none_removes },
    { "mode none delivers each message once", RO | WB_CAP_MODE_NONE, mode_none_delivers },
    { "four sessions in four threads get each message once", RO, side_by_side },
};
WB_TK_CASES(receive);

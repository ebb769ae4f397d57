/* SPDX-License-Identifier: Apache-2.0
 *
 * Sending: windows, destinations, subscribers.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/same.h"
#include "core/base/arena.h"

#define WINDOW 1000

/* ---- windows --------------------------------------------------------------------------- */

static void an_empty_window(wb_kit *kit)
{
    wb_operation *none = NULL;
    wb_tk_session *s = wb_tk_sender(kit);
    if (s)
        (void)wb_tk_send(s, &none, 0);
}

/* wb_tk_write() set them to something that is no result. */
static void results_are_set(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_sender(kit);
    wb_tk_session *receiver =
        kit->plugin->capabilities & WB_CAP_MODE_RECEIVE_ONLY ? wb_tk_receiver(kit) : NULL;
    if (!s || !wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 0, 10))
        return;
    if (receiver && wb_tk_collect(receiver, 10))
        wb_tk_finish(receiver);
}

static void a_window_of(wb_kit *kit, size_t count)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (s && wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 0, count) &&
        wb_tk_collect(s, count) && wb_tk_expect_numbers(s, 0, 0, count))
        wb_tk_finish(s);
}

static void a_window_of_one(wb_kit *kit)
{
    a_window_of(kit, 1);
}

/* More than the shared receiver prefetches: acknowledged on the way. */
static void a_large_window(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 0, WINDOW))
        return;
    for (size_t first = 0; first < WINDOW; first += 100)
        if (!wb_tk_collect(s, 100) || !wb_tk_expect_numbers(s, 0, first, 100) || !wb_tk_finish(s))
            return;
    wb_tk_expect_empty(s);
}

static void windows_in_order(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; s && i < 20; i++)
        if (!wb_tk_send_numbers(s, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", i * 5, 5))
            return;
    if (s && wb_tk_collect(s, 100) && wb_tk_expect_numbers(s, 0, 0, 100))
        wb_tk_finish(s);
}

/* ---- destinations nobody has ----------------------------------------------------------- */

static int send_window(wb_tk_session *s, wb_operation *const *operations, size_t count)
{
    wb_error error = { 0 };
    int result = s->tk->ops->send(s->session, operations, count, wb_tk_in(s->tk, s->tk->patience),
                                  &error);
    return wb_tk_is_ok(&s->tk->kit, result, &error, "send");
}

static void expect_refused(wb_kit *kit, const wb_operation *operation, int is_cause_known)
{
    wb_kit_check(kit, operation->result == WB_REJECT, "a send to \"%.40s\": %s, not a reject",
                 operation->destination, wb_result_name(operation->result));
    if (operation->result != WB_REJECT)
        return;
    wb_kit_check(kit, !is_cause_known || operation->cause == WB_CAUSE_UNROUTABLE,
                 "a send to \"%.40s\": cause %d, not \"unroutable\"", operation->destination,
                 operation->cause);
    wb_kit_check(kit, operation->reason && operation->reason[0],
                 "a send to \"%.40s\" was refused without a reason", operation->destination);
}

/* Of each three the middle one has no destination; twice, because a second window may be
 * treated by what the first has learned. */
static void unroutable_among_others(wb_kit *kit)
{
    enum { COUNT = 30 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    wb_tk_session *s = wb_tk_receiver(kit);
    char nowhere[WB_TK_NAME_SIZE + 16];
    (void)snprintf(nowhere, sizeof nowhere, "%.220s.nowhere", tk->queues[WB_TK_MAIN]);
    for (int round = 0; s && round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            wb_tk_write(kit, &letters[i], i % 3 == 1 ? nowhere : tk->queues[WB_TK_MAIN], "k", i);
            operations[i] = &letters[i].operation;
        }
        if (!send_window(s, operations, COUNT) || !wb_tk_collect(s, 20))
            return;
        for (size_t i = 0, at = 0; i < COUNT; i++)
            if (i % 3 == 1)
                expect_refused(kit, operations[i], 1);
            else
                wb_kit_check(kit, operations[i]->result == WB_OK &&
                                      wb_tk_number(s->in_hand[at++]) == i,
                             "message %zu was not sent in its turn", i);
        if (!wb_tk_finish(s))
            return;
    }
    if (s)
        wb_tk_expect_empty(s);
}

/* Names that no queue could have, or only with luck: for the message, not for the session. */
static void strange_destinations(wb_kit *kit)
{
    static char long_name[301];
    static const char *const names[] = { "", "no such queue", "a/b", "'; drop table x; --",
                                         "%s%n", "..", "\xf0\x9f\x98\x80", "a\nb", long_name };
    enum { COUNT = sizeof names / sizeof *names };
    wb_tk_letter letters[COUNT + 1];
    wb_operation *operations[COUNT + 1];
    wb_tk_session *s = wb_tk_receiver(kit);
    memset(long_name, 'q', sizeof long_name - 1);
    for (size_t i = 0; i <= COUNT; i++) {
        const char *name = i < COUNT ? names[i] : wb_tk_of(kit)->queues[WB_TK_MAIN];
        wb_tk_write(kit, &letters[i], name, "k", i);
        operations[i] = &letters[i].operation;
    }
    if (!s || !send_window(s, operations, COUNT + 1))
        return;
    for (size_t i = 0; i < COUNT; i++)
        expect_refused(kit, operations[i], 0);
    if (wb_kit_check(kit, operations[COUNT]->result == WB_OK, "the good one was not sent") &&
        wb_tk_collect(s, 1))
        wb_tk_finish(s);
}

/* ---- the error queue ------------------------------------------------------------------- */

static void the_error_queue(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_ERROR, tk->mode, 10);
    if (s && wb_tk_sender(kit) &&
        wb_tk_send_numbers(wb_tk_sender(kit), tk->queues[WB_TK_ERROR], "k", 1, 3) &&
        wb_tk_collect(s, 3) && wb_tk_expect_numbers(s, 0, 1, 3))
        wb_tk_finish(s);
}

/* ---- purposes -------------------------------------------------------------------------- */

/* It sends and takes nothing, not even ahead. */
static void a_session_that_only_sends(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *receiver = wb_tk_receiver(kit);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    wb_tk_session *sender = instance ? wb_tk_open_for(instance, WB_SESSION_SEND, 10) : NULL;
    if (receiver && sender && wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 1, 20) &&
        wb_tk_collect(receiver, 20) && wb_tk_expect_numbers(receiver, 0, 1, 20))
        wb_tk_finish(receiver);
}

static void a_session_that_only_receives(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_OTHER, tk->mode);
    wb_tk_session *s = instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10) : NULL;
    if (s && sender && wb_tk_send_numbers(sender, tk->queues[WB_TK_OTHER], "k", 1, 5) &&
        wb_tk_collect(s, 5) && wb_tk_expect_numbers(s, 0, 1, 5))
        wb_tk_finish(s);
}

/* ---- publishing ------------------------------------------------------------------------ */

static wb_operation *write_event(wb_kit *kit, wb_tk_letter *letter, const char *type, size_t number)
{
    wb_tk_write(kit, letter, type, "k", number);
    letter->operation.kind = WB_OPERATION_PUBLISH;
    letter->operation.flags = 0;
    return &letter->operation;
}

static void each_subscriber_once(wb_kit *kit)
{
    enum { COUNT = 20 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    wb_tk_session *other = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 100);
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; i < COUNT; i++)
        operations[i] = write_event(kit, &letters[i], tk->event, i);
    if (!s || !other || !wb_tk_send(s, operations, COUNT) || !wb_tk_collect(s, COUNT) ||
        !wb_tk_collect(other, COUNT))
        return;
    wb_tk_expect_numbers(s, 0, 0, COUNT);
    wb_tk_expect_numbers(other, 0, 0, COUNT);
    if (wb_tk_finish(s) && wb_tk_finish(other) && wb_tk_expect_empty(s))
        wb_tk_expect_empty(other);
}

/* Of a type nobody subscribed to, which says that it is derived from one with subscribers: twice,
 * and from one that nobody heard of, and from one that cannot be subscribed to. In one window with
 * events of that base itself, whose order they keep. */
static void bases(wb_kit *kit)
{
    enum { COUNT = 6 };
    wb_tk *tk = wb_tk_of(kit);
    char derived[WB_TK_NAME_SIZE + 16], types[6 * WB_TK_NAME_SIZE], long_name[400];
    wb_tk_letter letters[COUNT];
    wb_header headers[COUNT][3];
    wb_operation *operations[COUNT];
    wb_tk_session *other = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 100);
    wb_tk_session *s = wb_tk_receiver(kit);
    memset(long_name, 'x', sizeof long_name);
    (void)snprintf(derived, sizeof derived, "%s.Derived", tk->event);
    (void)snprintf(types, sizeof types, "%s, Lib, Version=1.0;%s.More;%.300s;a\r\nb;%s, Lib;%s", derived,
                   derived, long_name, tk->event, tk->event);
    for (size_t i = 0; i < COUNT; i++) {
        operations[i] = write_event(kit, &letters[i], i % 2 ? derived : tk->event, i);
        memcpy(headers[i], letters[i].headers, sizeof letters[i].headers);
        headers[i][2] = wb_tk_header("NServiceBus.EnclosedMessageTypes", i % 2 ? types : tk->event);
        operations[i]->headers = headers[i];
        operations[i]->header_count = 3;
    }
    if (!s || !other || !wb_tk_send(s, operations, COUNT) || !wb_tk_collect(s, COUNT) ||
        !wb_tk_collect(other, COUNT))
        return;
    wb_tk_expect_numbers(s, 0, 0, COUNT);
    wb_tk_expect_numbers(other, 0, 0, COUNT);
    if (wb_tk_finish(s) && wb_tk_finish(other) && wb_tk_expect_empty(s))
        wb_tk_expect_empty(other);
}

static void without_subscribers(wb_kit *kit)
{
    wb_tk_letter letters[3];
    wb_operation *operations[3];
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; i < 3; i++)
        operations[i] = write_event(kit, &letters[i], wb_tk_of(kit)->unheard, i);
    if (s && wb_tk_send(s, operations, 3))
        wb_tk_expect_empty(s);
}

static void events_and_commands(wb_kit *kit)
{
    enum { COUNT = 9 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    wb_tk_session *other = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 100);
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; i < COUNT; i++) {
        wb_tk_write(kit, &letters[i], tk->queues[WB_TK_MAIN], "k", i);
        operations[i] = i % 3 == 0   ? write_event(kit, &letters[i], tk->event, i)
                        : i % 3 == 1 ? write_event(kit, &letters[i], tk->unheard, i)
                                     : &letters[i].operation;
    }
    if (!s || !other || !wb_tk_send(s, operations, COUNT) || !wb_tk_collect(s, 6) ||
        !wb_tk_collect(other, 3))
        return;
    wb_tk_expect_set(s, (const size_t[]){ 0, 2, 3, 5, 6, 8 }, 6);
    wb_tk_expect_set(other, (const size_t[]){ 0, 3, 6 }, 3);
    if (wb_tk_finish(s))
        wb_tk_finish(other);
}

/* ---- two at once ----------------------------------------------------------------------- */

#define SENDERS 2
#define EACH 100
#define AT_ONCE 5

typedef struct sender {
    wb_tk_session *s;
    size_t first; /* its messages have numbers from there on */
    pthread_t thread;
} sender;

static void *send_all(void *argument)
{
    const sender *self = argument;
    for (size_t i = 0; i < EACH; i += AT_ONCE)
        if (!wb_tk_send_numbers(self->s, self->s->tk->queues[WB_TK_MAIN], "k", self->first + i, AT_ONCE))
            break;
    return NULL;
}

/* What is in hand goes on where `next` is, of each sender in its order, each with its own body. */
static int goes_on(wb_kit *kit, const wb_tk_session *s, size_t next[SENDERS])
{
    char body[24];
    for (size_t i = 0; i < s->count; i++) {
        const wb_incoming *got = s->in_hand[i];
        const size_t number = wb_tk_number(got), who = number / EACH % SENDERS;
        const int size = snprintf(body, sizeof body, "%zu", number);
        if (!wb_kit_check(kit, number % EACH == next[who], "sender %zu: message %zu came where %zu was to come", who,
                          number % EACH, next[who]) ||
            !wb_tk_expect_bytes(kit, "the body", got->body, got->body_size, body, (size_t)size))
            return 0;
        next[who]++;
    }
    return 1;
}

/* Of each sender all came, and nothing else: taken as there is room for them. */
static void expect_all_of_each(wb_kit *kit, wb_tk_session *s)
{
    size_t next[SENDERS] = { 0 };
    for (size_t left = SENDERS * EACH, got; left; left -= got) {
        got = wb_tk_collect_some(s, left < WB_TK_BATCH_MAX ? left : WB_TK_BATCH_MAX);
        if (!got || !goes_on(kit, s, next) || !wb_tk_finish(s))
            return;
    }
    wb_tk_expect_empty(s);
}

static void senders_in_threads(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    sender senders[SENDERS];
    size_t started = 0;
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_OTHER, tk->mode);
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i] = (sender){ .first = i * EACH };
        senders[i].s = s && instance ? wb_tk_open_for(instance, WB_SESSION_SEND, 0) : NULL;
        if (!senders[i].s)
            return;
    }
    while (started < SENDERS &&
           pthread_create(&senders[started].thread, NULL, send_all, &senders[started]) == 0)
        started++;
    for (size_t i = 0; i < started; i++)
        (void)pthread_join(senders[i].thread, NULL);
    if (wb_kit_check(kit, started == SENDERS, "could not start a thread"))
        expect_all_of_each(kit, s);
}

/* ---- time ------------------------------------------------------------------------------ */

/* Too late: whatever it says must be true, and it may not take long to say it. */
static void after_the_deadline(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letter;
    wb_error error = { 0 };
    wb_operation *operation = &letter.operation;
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_session *late = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 1);
    wb_tk_write(kit, &letter, tk->queues[WB_TK_MAIN], "k", 1);
    if (!s || !late)
        return;
    int64_t start = wb_clock_monotonic();
    int result = tk->ops->send(late->session, &operation, 1, start, &error);
    wb_kit_check(kit, wb_clock_monotonic() - start < tk->patience / 2,
                 "send waited beyond its deadline");
    wb_kit_check(kit, operation->result >= WB_OK && operation->result <= WB_FATAL,
                 "the result was not set");
    wb_kit_check(kit, (result == WB_OK) == (operation->result == WB_OK ||
                                            operation->result == WB_REJECT),
                 "send returned %s, the result is %s", wb_result_name(result),
                 wb_result_name(operation->result));
    wb_tk_close(late);
    if (operation->result == WB_OK && wb_tk_collect(s, 1))
        wb_tk_finish(s);
    else if (operation->result == WB_RETRY) /* nothing happened */
        wb_tk_expect_empty(s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_send_cases[] = {
    { "a window without operations is sent", 0, an_empty_window },
    { "the result of each operation is set", 0, results_are_set },
    { "a window of one operation", RO, a_window_of_one },
    { "a window of a thousand operations keeps its order", RO, a_large_window },
    { "window after window keeps its order", RO, windows_in_order },
    { "a send that nobody can receive is refused, the rest of its window is sent", RO,
      unroutable_among_others },
    { "a destination that cannot be is refused, and is not the session's failure", RO,
      strange_destinations },
    { "the error queue takes messages", RO, the_error_queue },
    { "a session that only sends takes nothing", RO, a_session_that_only_sends },
    { "a session that only receives", RO, a_session_that_only_receives },
    { "an event reaches each subscriber once", RO | WB_CAP_PUBLISH, each_subscriber_once },
    { "an event reaches subscribers of its bases once", RO | WB_CAP_PUBLISH, bases },
    { "an event that nobody subscribed to is no error", RO | WB_CAP_PUBLISH, without_subscribers },
    { "events and commands in one window", RO | WB_CAP_PUBLISH, events_and_commands },
    { "two sessions that send at once in two threads lose and mix nothing", RO, senders_in_threads },
    { "a send whose deadline has passed returns, and says the truth", RO, after_the_deadline },
};
WB_TK_CASES(send);

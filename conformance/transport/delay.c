/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays by the transport: nothing before it is due, and then what was sent. How late it may be is
 * no promise, but for the patience of the kit; nor is the order of what is due at different times.
 */
#include "config.h"

#include <string.h>

#include "conformance/transport/same.h"
#include "conformance/transport/steps.h"

/* A broker may count in whole seconds. */
#define SHORT WB_SECOND
#define LONG (3 * WB_SECOND / 2)

/* Due so long from now; below 0: it was. */
static void write_due(wb_kit *kit, wb_tk_letter *letter, size_t number, int64_t from_now)
{
    wb_tk_write(kit, letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", number);
    letter->operation.deliver_at = wb_clock_wall() + from_now;
}

/* The next one that comes, with the time it came at. @return NULL: none did, which is noted. */
static const wb_incoming *take_next(wb_tk_session *s, int64_t *ret_at)
{
    if (!wb_tk_collect(s, 1))
        return NULL;
    *ret_at = wb_clock_wall();
    return s->in_hand[s->count - 1];
}

static void expect_due(wb_kit *kit, const wb_incoming *got, const wb_operation *sent, int64_t at)
{
    wb_kit_check(kit, at >= sent->deliver_at, "message %zu came %.3f s before it was due",
                 wb_tk_number(got), (double)(sent->deliver_at - at) / (double)WB_SECOND);
}

/* Receive all of them, each when it is due and as it was sent. */
static void expect_all(wb_tk_session *s, wb_operation *const *sent, size_t count)
{
    wb_kit *kit = &s->tk->kit;
    for (size_t i = 0; i < count; i++) {
        int64_t at;
        const wb_incoming *got = take_next(s, &at);
        if (!got)
            return;
        size_t number = wb_tk_number(got);
        if (!wb_kit_check(kit, number < count, "message %zu came, which was not sent", number))
            return;
        expect_due(kit, got, sent[number], at);
        wb_tk_expect_same(kit, got, sent[number]);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t other = 0; other < i; other++)
            wb_kit_check(kit, wb_tk_number(s->in_hand[i]) != wb_tk_number(s->in_hand[other]),
                         "message %zu came twice", wb_tk_number(s->in_hand[i]));
    if (wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static void when_it_is_due(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_operation *operation = &letter.operation;
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s)
        return;
    write_due(kit, &letter, 0, LONG);
    letter.operation.body = "\0a body\xff";
    letter.operation.body_size = 8;
    if (wb_tk_send_letter(s, &letter))
        expect_all(s, &operation, 1);
}

/* By turns without a delay, due already, and with delays of different lengths. */
static void several_in_one_window(wb_kit *kit)
{
    enum { COUNT = 12 };
    static const int64_t delays[] = { 0, SHORT, -SHORT, LONG };
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; i < COUNT; i++) {
        write_due(kit, &letters[i], i, delays[i % 4]);
        if (i % 4 == 0)
            letters[i].operation.deliver_at = 0;
        operations[i] = &letters[i].operation;
    }
    if (s && wb_tk_send(s, operations, COUNT))
        expect_all(s, operations, COUNT);
}

/* It stands behind one that has to wait, and may not wait for it. */
static void due_already(wb_kit *kit)
{
    wb_tk_letter letters[2];
    wb_operation *operations[] = { &letters[0].operation, &letters[1].operation };
    wb_tk_session *s = wb_tk_receiver(kit);
    int64_t at;
    write_due(kit, &letters[0], 0, LONG);
    write_due(kit, &letters[1], 1, -SHORT);
    if (!s || !wb_tk_send(s, operations, 2))
        return;
    const wb_incoming *first = take_next(s, &at);
    if (!first || !wb_kit_check(kit, wb_tk_number(first) == 1, "what is due waits for what is not"))
        return;
    const wb_incoming *second = take_next(s, &at);
    if (!second)
        return;
    expect_due(kit, second, operations[0], at);
    wb_tk_finish(s);
}

/* The session that sent it is gone when it is due. */
static void without_its_sender(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_operation *operation = &letter.operation;
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_instance *other = wb_tk_instance_make(kit, WB_TK_OTHER, wb_tk_of(kit)->mode);
    wb_tk_session *sender = s && other ? wb_tk_open_for(other, WB_SESSION_SEND, 0) : NULL;
    if (!sender)
        return;
    write_due(kit, &letter, 0, SHORT);
    if (!wb_tk_send_letter(sender, &letter))
        return;
    wb_tk_close(sender);
    expect_all(s, &operation, 1);
}

/* Found out when it is sent, not when it is due; and the rest of the window waits. */
static void to_nobody(wb_kit *kit)
{
    wb_tk_letter letters[2];
    wb_operation *operations[] = { &letters[0].operation, &letters[1].operation };
    wb_error error = { 0 };
    wb_tk_session *s = wb_tk_receiver(kit);
    char nowhere[WB_TK_NAME_SIZE + 16];
    (void)snprintf(nowhere, sizeof nowhere, "%.180s.nowhere", wb_tk_of(kit)->queues[WB_TK_MAIN]);
    write_due(kit, &letters[0], 0, SHORT);
    write_due(kit, &letters[1], 1, SHORT);
    letters[1].operation.destination = nowhere;
    if (!s)
        return;
    int result = s->tk->ops->send(s->session, operations, 2, wb_tk_in(s->tk, s->tk->patience), &error);
    if (!wb_tk_is_ok(kit, result, &error, "send"))
        return;
    wb_kit_check(kit, operations[1]->result == WB_REJECT && operations[1]->cause == WB_CAUSE_UNROUTABLE,
                 "a delayed send to nobody: %s, cause %d", wb_result_name(operations[1]->result),
                 operations[1]->cause);
    if (wb_kit_check(kit, operations[0]->result == WB_OK, "the rest of its window was not sent"))
        expect_all(s, operations, 1);
}

/* A transport may have no way to delay events: then it says so. */
static void an_event(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_operation *operation = &letter.operation;
    wb_error error = { 0 };
    wb_tk_session *s = wb_tk_receiver(kit);
    write_due(kit, &letter, 0, SHORT);
    operation->kind = WB_OPERATION_PUBLISH;
    operation->flags = 0;
    operation->destination = wb_tk_of(kit)->event;
    if (!s)
        return;
    int result = s->tk->ops->send(s->session, &operation, 1, wb_tk_in(s->tk, s->tk->patience), &error);
    if (!wb_tk_is_ok(kit, result, &error, "send"))
        return;
    if (operation->result == WB_REJECT)
        wb_kit_check(kit, operation->reason && operation->reason[0], "it was refused without a reason");
    else if (wb_kit_check(kit, operation->result == WB_OK, "%s", wb_result_name(operation->result)))
        expect_all(s, &operation, 1);
}

#define DELAYS (WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_DELAY)

const wb_kit_case wb_tk_delay_cases[] = {
    { "a delayed message comes when it is due, as it was sent", DELAYS, when_it_is_due },
    { "delays of all kinds in one window", DELAYS, several_in_one_window },
    { "what is due already does not wait", DELAYS, due_already },
    { "a delayed message does not need the session that sent it", DELAYS, without_its_sender },
    { "a delayed send that nobody can receive is refused at once", DELAYS, to_nobody },
    { "a delayed event is refused, or comes when it is due", DELAYS | WB_CAP_PUBLISH, an_event },
};
WB_TK_CASES(delay);

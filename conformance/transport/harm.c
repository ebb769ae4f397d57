/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations that could do harm: what a peer gave (a reply address, a header, an id) becomes
 * an argument of a protocol. Whatever it is, it is this operation that is refused: those beside
 * it are sent, and the session lives on.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/steps.h"
#include "core/base/arena.h"

#define LARGE ((size_t)2 << 20)
#define HUNDREDS 2000

static const char *main_queue(wb_kit *kit)
{
    return wb_tk_of(kit)->queues[WB_TK_MAIN];
}

/* ---- a window with neighbours ---------------------------------------------------------- */

static void expect_result(wb_kit *kit, const wb_operation *operation, const char *what)
{
    wb_kit_check(kit, operation->result == WB_OK || operation->result == WB_REJECT,
                 "%s: the result is %d, neither sent nor refused", what, operation->result);
    if (operation->result != WB_REJECT)
        return;
    wb_kit_check(kit, operation->cause >= WB_CAUSE_OTHER && operation->cause <= WB_CAUSE_SERVER,
                 "%s: refused with cause %d", what, operation->cause);
    wb_kit_check(kit, operation->reason && operation->reason[0], "%s: refused without a reason",
                 what);
}

/* Send one between two good ones, take what comes. @return whether the session goes on. */
static int send_between(wb_tk_session *s, wb_tk_letter *bad, const char *what)
{
    wb_kit *kit = &s->tk->kit;
    wb_tk_letter good[2];
    wb_operation *operations[] = { &good[0].operation, &bad->operation, &good[1].operation };
    wb_error error = { 0 };
    wb_tk_write(kit, &good[0], main_queue(kit), "k", 1);
    wb_tk_write(kit, &good[1], main_queue(kit), "k", 3);
    int result = s->tk->ops->send(s->session, operations, 3, wb_tk_in(s->tk, s->tk->patience),
                                  &error);
    if (!wb_kit_check(kit, result == WB_OK, "%s: send: %s: %s", what, wb_result_name(result),
                      error.text))
        return 0;
    expect_result(kit, &bad->operation, what);
    for (int i = 0; i < 2; i++)
        if (!wb_kit_check(kit, good[i].operation.result == WB_OK,
                          "%s: the result of its neighbour is %d", what,
                          good[i].operation.result))
            return 0;
    int is_ours = bad->operation.kind == WB_OPERATION_SEND && bad->operation.result == WB_OK;
    return wb_kit_check(kit, wb_tk_collect(s, is_ours ? 3 : 2), "%s: not all came", what) &&
           wb_tk_finish(s);
}

/* ---- destinations ---------------------------------------------------------------------- */

#define NAMES 12

/* Longer than any protocol's short and long strings. */
static const char **bad_names(wb_kit *kit)
{
    static const char *const constant[] = { "\xff\xfe", "a\xc3", "\xc0\xaf", "\xed\xa0\x80",
                                            "\x01", "a\x7f", "a\r\nb", "\x1b[31mred", " \t " };
    static const size_t sizes[] = { 256, 1000, 70000 };
    enum { CONSTANT = sizeof constant / sizeof *constant };
    const char **names = wb_alloc_zero(NAMES, sizeof *names);
    wb_kit_defer(kit, free, (void *)names);
    memcpy((void *)names, constant, sizeof constant);
    for (size_t i = CONSTANT; i < NAMES; i++) {
        char *name = wb_alloc_zero(1, sizes[i - CONSTANT] + 1);
        wb_kit_defer(kit, free, name);
        memset(name, 'q', sizes[i - CONSTANT]);
        names[i] = name;
    }
    return names;
}

static void bad_destinations(wb_kit *kit)
{
    char what[64];
    const char **names = bad_names(kit);
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; s && i < NAMES; i++) {
        wb_tk_letter bad;
        wb_tk_write(kit, &bad, names[i], "k", 2);
        (void)snprintf(what, sizeof what, "destination %zu of %d", i + 1, NAMES);
        if (!send_between(s, &bad, what))
            return;
        wb_kit_check(kit, bad.operation.result == WB_REJECT, "%s: not refused", what);
    }
}

/* Nobody can have subscribed to them: refused, or sent to nobody. */
static void bad_events(wb_kit *kit)
{
    char what[64];
    const char **names = bad_names(kit);
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; s && i < NAMES; i++) {
        wb_tk_letter bad;
        wb_tk_write(kit, &bad, names[i], "k", 2);
        bad.operation.kind = WB_OPERATION_PUBLISH;
        bad.operation.flags = 0;
        (void)snprintf(what, sizeof what, "event type %zu of %d", i + 1, NAMES);
        if (!send_between(s, &bad, what))
            return;
    }
}

/* ---- headers, ids, keys ---------------------------------------------------------------- */

/* Headers that brokers take for something, and values that are not it. */
static const wb_header bad_headers[] = {
    WB_TK_HEADER("", "nameless"),
    WB_TK_HEADER("\xff\xfe", "no UTF-8"),
    WB_TK_HEADER("a\0b", "NUL in its name"),
    WB_TK_HEADER("a\r\nb", "lines in its name"),
    WB_TK_HEADER("no UTF-8", "\xff\xfe"),
    WB_TK_HEADER("NServiceBus.ReplyToAddress", "\xff\xfe"),
    WB_TK_HEADER("NServiceBus.ReplyToAddress", "a\0b"),
    WB_TK_HEADER("NServiceBus.CorrelationId", "\xff\xfe"),
    WB_TK_HEADER("NServiceBus.ContentType", "\xff\xfe"),
    WB_TK_HEADER("NServiceBus.EnclosedMessageTypes", "\xff\xfe"),
    WB_TK_HEADER("NServiceBus.MessageId", "another"),
    WB_TK_HEADER("NServiceBus.TimeToBeReceived", "soon"),
    WB_TK_HEADER("NServiceBus.NonDurableMessage", "perhaps"),
    WB_TK_HEADER("CC", "copies"),
    WB_TK_HEADER("BCC", "copies"),
    WB_TK_HEADER("x-death", "never"),
    WB_TK_HEADER("x-delivery-count", "many"),
    WB_TK_HEADER("x-match", "neither"),
    WB_TK_HEADER("x-delay", "-1"),
};
#define BAD_HEADERS (sizeof bad_headers / sizeof *bad_headers)

static int send_with_header(wb_tk_session *s, const wb_header *header, const char *what)
{
    wb_tk_letter bad;
    wb_tk_write(&s->tk->kit, &bad, main_queue(&s->tk->kit), "k", 2);
    const wb_header headers[] = { bad.headers[0], *header };
    bad.operation.headers = headers;
    bad.operation.header_count = 2;
    return send_between(s, &bad, what);
}

static void strange_headers(wb_kit *kit)
{
    char what[64];
    wb_tk_session *s = wb_tk_receiver(kit);
    for (size_t i = 0; s && i < BAD_HEADERS; i++) {
        (void)snprintf(what, sizeof what, "header %zu, \"%.30s\"", i + 1, bad_headers[i].name);
        if (!send_with_header(s, &bad_headers[i], what))
            return;
    }
}

/* Each longer than a short string: 300 bytes where a protocol has room for 255. */
static void long_headers(wb_kit *kit)
{
    static const char *const names[] = { NULL, "NServiceBus.ReplyToAddress",
                                         "NServiceBus.CorrelationId", "NServiceBus.ContentType",
                                         "NServiceBus.EnclosedMessageTypes",
                                         "NServiceBus.MessageId" };
    char text[301];
    char what[64];
    wb_tk_session *s = wb_tk_receiver(kit);
    memset(text, 'n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; s && i < sizeof names / sizeof *names; i++) {
        const wb_header header = wb_tk_header(names[i] ? names[i] : text, names[i] ? text : "value");
        (void)snprintf(what, sizeof what, "300 bytes in %s", names[i] ? names[i] : "a name");
        if (!send_with_header(s, &header, what))
            return;
    }
}

static void strange_keys(wb_kit *kit)
{
    static char key[70000];
    static const size_t sizes[] = { 1, 255, 256, sizeof key };
    char what[64];
    wb_tk_session *s = wb_tk_receiver(kit);
    memset(key, '\xff', sizeof key);
    for (size_t i = 0; s && i < sizeof sizes / sizeof *sizes; i++) {
        wb_tk_letter bad;
        wb_tk_write(kit, &bad, main_queue(kit), NULL, 2);
        bad.operation.key = key;
        bad.operation.key_size = sizes[i];
        (void)snprintf(what, sizeof what, "a key of %zu bytes", sizes[i]);
        if (!send_between(s, &bad, what))
            return;
    }
}

/* ---- all kinds in one window ------------------------------------------------------------ */

typedef struct mixture {
    wb_tk_letter letters[7];
    wb_operation *operations[7];
    wb_header headers[HUNDREDS];
    char nowhere[WB_TK_NAME_SIZE + 16];
    char bytes[LARGE];
} mixture;

/* Good ones at 0, 2, 4, 6; between them headers of 2 MB, no destination, a body of 2 MiB. */
static mixture *mix(wb_kit *kit)
{
    mixture *all = wb_alloc_zero(1, sizeof *all);
    wb_kit_defer(kit, free, all);
    memset(all->bytes, 'b', sizeof all->bytes);
    (void)snprintf(all->nowhere, sizeof all->nowhere, "%.220s.nowhere", main_queue(kit));
    for (size_t i = 0; i < 7; i++) {
        wb_tk_write(kit, &all->letters[i], i == 3 ? all->nowhere : main_queue(kit), "k", i);
        all->operations[i] = &all->letters[i].operation;
    }
    all->headers[0] = all->letters[1].headers[0];
    for (size_t i = 1; i < HUNDREDS; i++)
        all->headers[i] =
            (wb_header){ .name = "large", .value = all->bytes, .name_size = 5, .value_size = 1024 };
    all->operations[1]->headers = all->headers;
    all->operations[1]->header_count = HUNDREDS;
    all->operations[5]->body = all->bytes;
    all->operations[5]->body_size = LARGE;
    return all;
}

static void refused_among_good_ones(wb_kit *kit)
{
    static const char *const names[] = { "a good one",         "headers of 2 MB", "a good one",
                                         "an unroutable one",  "a good one",
                                         "a body of 2 MiB",    "a good one" };
    wb_error error = { 0 };
    size_t wanted = 0;
    size_t numbers[7];
    wb_tk_session *s = wb_tk_receiver(kit);
    mixture *all = mix(kit);
    if (!s || !wb_tk_is_ok(kit, s->tk->ops->send(s->session, all->operations, 7,
                                                 wb_tk_in(s->tk, s->tk->patience), &error),
                           &error, "send"))
        return;
    for (size_t i = 0; i < 7; i++) {
        const wb_operation *operation = all->operations[i];
        int cause = i == 3 ? WB_CAUSE_UNROUTABLE : WB_CAUSE_TOO_LARGE;
        expect_result(kit, operation, names[i]);
        wb_kit_check(kit, i % 2 || operation->result == WB_OK, "%s was refused", names[i]);
        wb_kit_check(kit, operation->result == WB_OK || operation->cause == cause,
                     "%s: cause %d, not %d", names[i], operation->cause, cause);
        if (operation->result == WB_OK)
            numbers[wanted++] = i;
    }
    wb_kit_check(kit, all->operations[3]->result == WB_REJECT, "an unroutable one was sent");
    if (wb_tk_collect(s, wanted) && wb_tk_expect_set(s, numbers, wanted) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_harm_cases[] = {
    { "refused operations of all kinds in one window, each with its result", RO,
      refused_among_good_ones },
    { "destinations that no protocol can carry are refused, and harm nobody", RO,
      bad_destinations },
    { "event types that no protocol can carry harm nobody", RO | WB_CAP_PUBLISH, bad_events },
    { "headers that a broker could take for something else harm nobody", RO, strange_headers },
    { "headers longer than a protocol's short strings harm nobody", RO, long_headers },
    { "keys of any length harm nobody", RO, strange_keys },
};
WB_TK_CASES(harm);

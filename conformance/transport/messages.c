/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages with numbers: sent, received, expected.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/steps.h"
#include "core/base/arena.h"

#define MARK_HEADER "Waybill.Conformance"
#define MARKER 999999
#define TAKE_MAX 256

/* ---- sent ------------------------------------------------------------------------------ */

void wb_tk_mark(const wb_tk *tk, char mark[WB_TK_MARK_SIZE])
{
    (void)snprintf(mark, WB_TK_MARK_SIZE, "%s.%zu", tk->token, tk->kit.number);
}

wb_header wb_tk_header(const char *name, const char *value)
{
    return (wb_header){ name, value, strlen(name), strlen(value) };
}

/* With a content type, because a transport may add one. */
void wb_tk_write(wb_kit *kit, wb_tk_letter *letter, const char *destination, const char *key,
                 size_t number)
{
    memset(letter, 0, sizeof *letter);
    wb_tk_mark(wb_tk_of(kit), letter->mark);
    (void)snprintf(letter->id, sizeof letter->id, "%s.%zu", letter->mark, number);
    (void)snprintf(letter->body, sizeof letter->body, "%zu", number);
    letter->headers[0] = wb_tk_header(MARK_HEADER, letter->mark);
    letter->headers[1] = wb_tk_header("NServiceBus.ContentType", "text/plain");
    letter->operation = (wb_operation){ .struct_size = sizeof letter->operation,
                                        .kind = WB_OPERATION_SEND,
                                        .flags = WB_OPERATION_MANDATORY,
                                        .destination = destination,
                                        .id = letter->id,
                                        .id_size = strlen(letter->id),
                                        .headers = letter->headers,
                                        .header_count = 2,
                                        .body = letter->body,
                                        .body_size = strlen(letter->body),
                                        .key = key,
                                        .key_size = key ? strlen(key) : 0,
                                        .result = -1,
                                        .cause = -1 };
}

int wb_tk_send(wb_tk_session *s, wb_operation *const *operations, size_t count)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    int result = s->tk->ops->send(s->session, operations, count, wb_tk_in(s->tk, s->tk->patience),
                                  &error);
    int is_ok = wb_tk_is_ok(kit, result, &error, "send");
    for (size_t i = 0; is_ok && i < count; i++)
        is_ok = wb_kit_check(kit, operations[i]->result == WB_OK,
                             "operation %zu of %zu: %s: %s", i + 1, count,
                             wb_result_name(operations[i]->result),
                             operations[i]->result == WB_REJECT && operations[i]->reason
                                 ? operations[i]->reason
                                 : "no reason");
    return is_ok;
}

int wb_tk_send_letter(wb_tk_session *s, wb_tk_letter *letter)
{
    wb_operation *operation = &letter->operation;
    return wb_tk_send(s, &operation, 1);
}

int wb_tk_send_large(wb_tk_session *s, wb_tk_letter *letter, const char *what, size_t size)
{
    wb_tk *tk = s->tk;
    wb_kit *kit = &tk->kit;
    wb_error error = { 0 };
    wb_operation *operation = &letter->operation;
    int result = tk->ops->send(s->session, &operation, 1, wb_tk_in(tk, tk->patience), &error);
    if (!wb_tk_is_ok(kit, result, &error, "send") || operation->result == WB_OK)
        return operation->result == WB_OK;
    wb_kit_check(kit, operation->result == WB_REJECT && operation->cause == WB_CAUSE_TOO_LARGE,
                 "%s of %zu bytes: %s, cause %d", what, size, wb_result_name(operation->result),
                 operation->cause);
    wb_kit_check(kit, operation->reason && operation->reason[0], "it was refused without a reason");
    wb_kit_check(kit, size > WB_TK_BODY_SURE, "%s of %zu bytes was refused", what, size);
    wb_kit_note(kit, "%s of %zu bytes is refused: %s", what, size,
                operation->reason ? operation->reason : "");
    return 0;
}

int wb_tk_send_numbers(wb_tk_session *s, const char *destination, const char *key, size_t first,
                       size_t count)
{
    wb_tk_letter *letters = wb_alloc((count + 1) * sizeof *letters);
    wb_operation **operations = wb_alloc((count + 1) * sizeof *operations);
    for (size_t i = 0; i < count; i++) {
        wb_tk_write(&s->tk->kit, &letters[i], destination, key, first + i);
        operations[i] = &letters[i].operation;
    }
    int is_ok = wb_tk_send(s, operations, count);
    free(operations);
    free(letters);
    return is_ok;
}

/* ---- recognised ------------------------------------------------------------------------ */

static int has_mark(const wb_incoming *message, const char *mark)
{
    size_t size = strlen(mark);
    for (size_t i = 0; i < message->header_count; i++) {
        const wb_header *header = &message->headers[i];
        if (header->name_size == sizeof MARK_HEADER - 1 &&
            memcmp(header->name, MARK_HEADER, header->name_size) == 0)
            return header->value_size == size && memcmp(header->value, mark, size) == 0;
    }
    return message->id && message->id_size > size && memcmp(message->id, mark, size) == 0 &&
           message->id[size] == '.';
}

int wb_tk_is_ours(const wb_tk *tk, const wb_incoming *message)
{
    char mark[WB_TK_MARK_SIZE];
    wb_tk_mark(tk, mark);
    return has_mark(message, mark);
}

size_t wb_tk_number(const wb_incoming *message)
{
    const char *dot = message->id ? memrchr(message->id, '.', message->id_size) : NULL;
    return dot ? strtoul(dot + 1, NULL, 10) : 0;
}

/* ---- received -------------------------------------------------------------------------- */

static void hold(wb_tk_session *s, const wb_incoming *message)
{
    if (s->count == s->capacity) {
        s->capacity = s->capacity * 2 + 64;
        s->in_hand = wb_realloc((void *)s->in_hand, s->capacity * sizeof *s->in_hand);
    }
    s->in_hand[s->count++] = message;
}

static int receive(wb_tk_session *s, size_t max, int64_t deadline, const wb_incoming **messages,
                   size_t *ret_count, wb_error *error)
{
    wb_kit *kit = &s->tk->kit;
    *ret_count = 0;
    int result = s->tk->ops->receive(s->session, deadline, messages, max, ret_count, error);
    wb_kit_check(kit, result == WB_OK || *ret_count == 0, "receive failed and handed out %zu",
                 *ret_count);
    if (!wb_kit_check(kit, *ret_count <= max, "receive handed out %zu of at most %zu", *ret_count,
                      max))
        *ret_count = max;
    return result;
}

int wb_tk_take(wb_tk_session *s, size_t max, int64_t deadline, wb_error *error)
{
    const wb_incoming *messages[TAKE_MAX];
    size_t count;
    int result = receive(s, max < TAKE_MAX ? max : TAKE_MAX, deadline, messages, &count, error);
    if (result != WB_OK)
        return result;
    for (size_t i = 0; i < count; i++) {
        wb_kit_check(&s->tk->kit, WB_HAS(messages[i], wb_incoming, struct_size) &&
                                      messages[i]->struct_size >= offsetof(wb_incoming, position) + sizeof messages[i]->position,
                     "an incoming message with a size of %zu", messages[i]->struct_size);
        if (wb_tk_is_ours(s->tk, messages[i]))
            hold(s, messages[i]);
        else if (result == WB_OK)
            result = s->tk->ops->acknowledge(s->session, &messages[i], 1, error);
    }
    return result;
}

int wb_tk_collect(wb_tk_session *s, size_t count)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    size_t wanted = s->count + count;
    int64_t deadline = wb_tk_in(s->tk, s->tk->patience);
    while (s->count < wanted && wb_clock_monotonic() < deadline) {
        int result = wb_tk_take(s, wanted - s->count, deadline, &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive"))
            return 0;
    }
    return wb_kit_check(kit, s->count == wanted, "%zu of %zu messages did not come",
                        wanted - s->count, count);
}

size_t wb_tk_collect_some(wb_tk_session *s, size_t count)
{
    wb_error error = { 0 };
    const size_t before = s->count, wanted = before + count;
    size_t last = before;
    if (!wb_tk_collect(s, 1))
        return 0;
    while (s->count > last && s->count < wanted) {
        last = s->count;
        int result = wb_tk_take(s, wanted - last, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        if (!wb_tk_is_ok(&s->tk->kit, result, &error, "receive"))
            return 0;
    }
    return s->count - before;
}

int wb_tk_expect_quiet(wb_tk_session *s, int64_t duration)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    size_t before = s->count;
    int64_t deadline = wb_tk_in(s->tk, duration);
    do {
        int result = wb_tk_take(s, 1, deadline, &error);
        if (!wb_tk_is_ok(kit, result, &error, "receive"))
            return 0;
    } while (s->count == before && wb_clock_monotonic() < deadline);
    return wb_kit_check(kit, s->count == before, "message %zu came, none was to come",
                        s->count == before ? 0 : wb_tk_number(s->in_hand[before]));
}

/* With the key most cases use: where keys decide the way, it is the same way. */
int wb_tk_expect_empty(wb_tk_session *s)
{
    wb_kit *kit = &s->tk->kit;
    wb_tk_session *sender = wb_tk_sender(kit);
    size_t before = s->count;
    if (!sender || !wb_tk_send_numbers(sender, s->instance->info.name, "k", MARKER, 1) ||
        !wb_tk_collect(s, 1))
        return 0;
    int is_ok = wb_kit_check(kit, wb_tk_number(s->in_hand[before]) == MARKER,
                             "message %zu came, none was to come",
                             wb_tk_number(s->in_hand[before]));
    return wb_tk_acknowledge(s, before, 1) && is_ok && wb_tk_expect_quiet(s, WB_TK_QUIET / 3);
}

/* ---- expected -------------------------------------------------------------------------- */

int wb_tk_expect_numbers(wb_tk_session *s, size_t at, size_t first, size_t count)
{
    wb_kit *kit = &s->tk->kit;
    if (!wb_kit_check(kit, s->count >= at + count, "%zu messages in hand, not %zu", s->count,
                      at + count))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (!wb_kit_check(kit, wb_tk_number(s->in_hand[at + i]) == first + i,
                          "message %zu came where %zu was to come",
                          wb_tk_number(s->in_hand[at + i]), first + i))
            return 0;
    return 1;
}

static size_t times_in_hand(const wb_tk_session *s, size_t number)
{
    size_t times = 0;
    for (size_t i = 0; i < s->count; i++)
        times += wb_tk_number(s->in_hand[i]) == number;
    return times;
}

int wb_tk_expect_set(wb_tk_session *s, const size_t *numbers, size_t count)
{
    wb_kit *kit = &s->tk->kit;
    int is_ok = wb_kit_check(kit, s->count == count, "%zu messages in hand, not %zu", s->count,
                             count);
    for (size_t i = 0; i < count; i++)
        is_ok &= wb_kit_check(kit, times_in_hand(s, numbers[i]) == 1,
                              "message %zu came %zu times, not once", numbers[i],
                              times_in_hand(s, numbers[i])) != 0;
    return is_ok;
}

/* ---- settled --------------------------------------------------------------------------- */

static int settle(wb_tk_session *s, size_t at, size_t count,
                  int (*settle_them)(wb_transport_session *session,
                                     const wb_incoming *const *messages, size_t count,
                                     wb_error *error),
                  const char *doing)
{
    wb_error error = { 0 };
    if (count == 0)
        return 1;
    int result = settle_them(s->session, s->in_hand + at, count, &error);
    memmove((void *)(s->in_hand + at), (const void *)(s->in_hand + at + count),
            (s->count - at - count) * sizeof *s->in_hand);
    s->count -= count;
    return wb_tk_is_ok(&s->tk->kit, result, &error, doing);
}

int wb_tk_acknowledge(wb_tk_session *s, size_t at, size_t count)
{
    return settle(s, at, count, s->tk->ops->acknowledge, "acknowledge");
}

int wb_tk_give_back(wb_tk_session *s, size_t at, size_t count)
{
    return settle(s, at, count, s->tk->ops->give_back, "give back");
}

int wb_tk_finish(wb_tk_session *s)
{
    return wb_tk_acknowledge(s, 0, s->count);
}

void wb_tk_expect_back(wb_tk_session *s, size_t count, size_t sure, size_t gone)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    size_t missing = count - sure;
    unsigned char seen[256] = { 0 };
    for (int is_quiet = 0; missing || !is_quiet;) {
        if (missing ? !wb_tk_collect(s, 1)
                    : !wb_tk_is_ok(kit, wb_tk_take(s, 1, wb_tk_in(s->tk, WB_TK_QUIET), &error),
                                   &error, "receive"))
            return;
        is_quiet = s->count == 0;
        for (size_t i = 0; i < s->count; i++) {
            size_t number = wb_tk_number(s->in_hand[i]) % count;
            missing -= number >= sure && seen[number] == 0;
            wb_kit_check(kit, seen[number]++ == 0, "message %zu came twice", number);
            wb_kit_check(kit, number >= gone, "message %zu was acknowledged, it is said, and came again", number);
        }
        if (!wb_tk_finish(s))
            return;
    }
}

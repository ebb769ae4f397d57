/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers by which peers steer an endpoint: control messages of sessions, counts and times of
 * retries, where a retried failure is to be acknowledged; and the copies that are made of such
 * messages, for later, for the error queue, for the audit queue.
 */
#include "config.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/session_control.h"
#include "core/message/text.h"
#include "core/recover/audit.h"
#include "core/recover/retried.h"
#include "core/recover/retry_copy.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "control";

#define HEADERS_MAX 40
/* What copies may add. */
#define ADDED_MAX 16

typedef struct {
    wb_incoming incoming;
    wb_origin origin;
    wb_arena arena;
    wb_operation_list list;
} message;

static size_t count_of(const wb_operation *operation, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < operation->header_count; i++)
        count += fuzz_is_same(operation->headers[i].name, operation->headers[i].name_size, name, strlen(name));
    return count;
}

static const wb_header *header_of(const wb_operation *operation, const char *name)
{
    return wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
}

/* As transports and stores want them: complete, each text with its NUL byte. */
static void check_operation(const message *m, const wb_operation *operation)
{
    FUZZ_CHECK(operation->destination && operation->destination[0]);
    FUZZ_CHECK(operation->header_count <= m->incoming.header_count + ADDED_MAX);
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        FUZZ_CHECK(header->name[header->name_size] == '\0' && header->value[header->value_size] == '\0');
    }
}

static void check_copy(const message *m, const wb_operation *operation)
{
    check_operation(m, operation);
    FUZZ_CHECK(fuzz_is_same(operation->id, operation->id_size, m->incoming.id, m->incoming.id_size));
    FUZZ_CHECK(fuzz_is_same(operation->body, operation->body_size, m->incoming.body, m->incoming.body_size));
    FUZZ_CHECK(fuzz_is_same(operation->key, operation->key_size, m->incoming.key, m->incoming.key_size));
}

/* ---- sessions ----------------------------------------------------------------------------- */

static void check_read(const wb_operation *operation, const wb_session_control *control)
{
    wb_session_control again = { 0 };
    if (control->attempt == UINT32_MAX)
        return;
    FUZZ_CHECK(wb_session_control_read(operation->headers, operation->header_count, &again) == 1);
    FUZZ_CHECK(again.remaining == control->remaining && again.increment == control->increment);
    FUZZ_CHECK(again.attempt == control->attempt && again.replaces == control->replaces);
}

/* Each is later than the one before, and there is a last one. */
static void follow(message *m, wb_session_control control)
{
    wb_session_control next;
    for (int i = 0; wb_session_control_next(&control, &next); i++, control = next) {
        FUZZ_CHECK(i < 100 && next.increment > 0 && next.remaining >= 0);
        FUZZ_CHECK(next.remaining == control.remaining - next.increment);
        const wb_operation *again = wb_session_control_again("self", &m->incoming, &next, &m->arena, &m->list);
        check_operation(m, again);
        check_read(again, &next);
    }
}

static void try_session(message *m)
{
    wb_session_control control = { 0 };
    int answer = wb_session_control_read(m->incoming.headers, m->incoming.header_count, &control);
    FUZZ_CHECK(answer >= -1 && answer <= 1);
    if (answer != 1)
        return;
    FUZZ_CHECK(control.remaining >= 0 && control.remaining <= WB_SESSION_SPAN_MAX);
    FUZZ_CHECK(control.increment >= 0 && control.increment <= WB_SESSION_SPAN_MAX && control.attempt >= 1);
    (void)wb_session_control_key(&control);
    check_read(wb_session_control_operation("self", m->incoming.id, m->incoming.id_size, &control, &m->arena, &m->list),
               &control);
    follow(m, control);
}

/* ---- retries ------------------------------------------------------------------------------ */

static void try_retry(message *m, int64_t now)
{
    const wb_recoverability policy = { .delayed_retries = 1000, .delay_increment = 365 * WB_DAYS, .delay_jitter = 100 };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .may_wait = 1 };
    const wb_retry_question question = { &m->incoming, &failure, 0, now };
    const uint32_t before = wb_recover_retries(m->incoming.headers, m->incoming.header_count);
    const int64_t delay = wb_recover_delay(&policy, &question);
    FUZZ_CHECK(delay >= 0 && delay <= WB_OUTGOING_DELAY_MAX && (before < 1000 || delay == 0));
    if (!delay)
        return;
    const wb_operation *copy = wb_recover_retry_operation(&m->origin, &m->incoming, now, &m->arena, &m->list);
    check_copy(m, copy);
    FUZZ_CHECK(wb_recover_retries(copy->headers, copy->header_count) == before + 1);
    FUZZ_CHECK(count_of(copy, WB_HEADER_RETRIES) == 1 && count_of(copy, WB_HEADER_RETRIES_TIMESTAMP) == 1);
}

static void try_acknowledgement(message *m, int64_t now)
{
    wb_operation_list list = { 0 };
    if (!wb_recover_acknowledge(&m->origin, &m->incoming, now, &m->arena, &list))
        return;
    const wb_operation *one = &list.first->operation;
    FUZZ_CHECK(list.count == 1 && one->id_size == 36 && header_of(one, WB_HEADER_RETRY_UNIQUE_ID));
    FUZZ_CHECK(wb_text_is_plain(one->destination, strlen(one->destination)));
    check_operation(m, one);
    FUZZ_CHECK(wb_recover_acknowledge_duplicate(&m->incoming, now, &m->arena, &list) && list.count == 2);
}

/* ---- copies ------------------------------------------------------------------------------- */

static void check_error_copy(message *m, const wb_operation *copy)
{
    static const char *const once[] = { WB_HEADER_FAILED_QUEUE, WB_HEADER_TIME_OF_FAILURE, WB_HEADER_EXCEPTION_TYPE,
                                        WB_HEADER_EXCEPTION_MESSAGE };
    const wb_header *id = header_of(copy, WB_HEADER_MESSAGE_ID);
    check_copy(m, copy);
    FUZZ_CHECK(id && id->value_size);
    FUZZ_CHECK(count_of(copy, WB_HEADER_RETRIES) == 0);
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        FUZZ_CHECK(count_of(copy, once[i]) == 1);
}

/* What comes back from the error queue and fails once more has as many headers. */
static void try_error(message *m, unsigned trim, const char *reason)
{
    const wb_recoverability policy = { .error_queue = "error" };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .reason = (char *)(uintptr_t)reason, .attempts = 1 };
    wb_failed_message failed = { .incoming = &m->incoming, .failure = &failure, .trim = trim };
    const wb_operation *copy = wb_recover_error_operation(&policy, &m->origin, &failed, &m->arena, &m->list);
    check_error_copy(m, copy);
    const wb_incoming back = wb_recover_incoming(copy);
    failed.incoming = &back;
    const wb_operation *again = wb_recover_error_operation(&policy, &m->origin, &failed, &m->arena, &m->list);
    check_error_copy(m, again);
    FUZZ_CHECK(again->header_count <= copy->header_count);
}

static void try_audit(message *m, int64_t now)
{
    const wb_handled_message handled = { &m->incoming, now, now, 1 };
    const wb_operation *copy = wb_recover_audit_operation("audit", &m->origin, &handled, &m->arena, &m->list);
    check_copy(m, copy);
    FUZZ_CHECK(count_of(copy, WB_HEADER_PROCESSING_ENDED) == 1 && count_of(copy, WB_HEADER_RETRY_ACKNOWLEDGED) == 1);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    wb_header *headers = fuzz_alloc(HEADERS_MAX * sizeof *headers);
    size_t ignored;
    message m = { .incoming = { .struct_size = sizeof m.incoming, .headers = headers },
                  .origin = wb_origin_make("self", 1, 1 << 20) };
    const unsigned trim = fuzz_byte(&input) % (WB_TRIM_MAX + 1);
    const int64_t now = (int64_t)(fuzz_large(&input) >> 1);
    const char *reason = fuzz_text(&input, &ignored);
    m.incoming.id = fuzz_text(&input, &m.incoming.id_size);
    m.incoming.key = fuzz_text(&input, &m.incoming.key_size);
    m.incoming.header_count = fuzz_headers(&input, headers, HEADERS_MAX);
    m.incoming.body = fuzz_rest(&input, &m.incoming.body_size);
    wb_arena_init(&m.arena, 4096);
    try_session(&m);
    try_retry(&m, now);
    try_acknowledgement(&m, now);
    try_error(&m, trim, reason);
    try_audit(&m, now);
    wb_arena_free(&m.arena);
}

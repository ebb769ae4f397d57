/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that are due later: what a handler may ask for, their form in the outbox, who keeps
 * them, the poller, circuit breakers, delayed retries. Over a store and a transport in this
 * process (fake_delays.h).
 */
#include "config.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/config/units.h"
#include "core/delayed/poller.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/pipeline/defer.h"
#include "core/recover/retry_copy.h"
#include "fake_delays.h"

static wb_pipeline pipeline;
static wb_poller poller;
static wb_arena arena;

static int set_up(void **state)
{
    (void)state;
    fake_delays_reset(&pipeline);
    pipeline.store_breaker.after = pipeline.fetch_breaker.after = pipeline.dispatch_breaker.after = WB_SECOND;
    poller = (wb_poller){ .pipeline = &pipeline, .policy = { .failure_pause = WB_MILLISECOND } };
    wb_poller_init(&poller);
    wb_arena_init(&arena, 4096);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_poller_finish(&poller);
    wb_pipeline_free(&pipeline);
    wb_arena_free(&arena);
    assert_int_equal(fake_store.storage_open, 0);
    assert_int_equal(fake_store.transport_open, 0);
    return 0;
}

/* ---- what may be asked for ------------------------------------------------------------- */

static int add(wb_outgoing outgoing, wb_operation_list *list, wb_error *error)
{
    outgoing.type = "T";
    outgoing.destination = "q";
    return wb_outgoing_add(&pipeline.origin, WB_KIND_SEND, &outgoing, sizeof outgoing, NULL, 0, &arena, list,
                           error);
}

static void expect_due(wb_outgoing outgoing, int64_t due)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    assert_int_equal(add(outgoing, &list, &error), WB_OK);
    const wb_operation *operation = &list.first->operation;
    assert_in_range(operation->deliver_at, due, due + (due ? WB_SECOND : 0));
    assert_int_equal(WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_DELIVER_AT) != NULL,
                     due != 0);
}

static void expect_refused(wb_outgoing outgoing, const char *why)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    assert_int_equal(add(outgoing, &list, &error), WB_REJECT);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" is not in: %s", why, error.text);
    assert_int_equal(list.count, 0);
}

static void test_what_may_be_asked(void **state)
{
    const int64_t now = fake_store.now;
    (void)state;
    expect_due((wb_outgoing){ 0 }, 0);
    expect_due((wb_outgoing){ .delay = 5 * WB_SECONDS }, now + 5 * WB_SECOND);
    expect_due((wb_outgoing){ .deliver_at = 7 }, 7);
    expect_due((wb_outgoing){ .delay = 3650 * WB_DAYS }, now + 3650 * WB_DAYS);
    expect_refused((wb_outgoing){ .delay = 1, .deliver_at = 1 }, "both");
    expect_refused((wb_outgoing){ .delay = -1 }, "negative");
    expect_refused((wb_outgoing){ .deliver_at = -1 }, "negative");
    expect_refused((wb_outgoing){ .delay = 3650 * WB_DAYS + 1 }, "3650 days");
    expect_refused((wb_outgoing){ .deliver_at = now + 3651 * WB_DAYS }, "3650 days");
    expect_refused((wb_outgoing){ .delay = 1, .flags = WB_IMMEDIATE }, "immediate");
    pipeline.origin.delays = WB_DELAYS_BY_TRANSPORT;
    expect_due((wb_outgoing){ .delay = WB_SECONDS, .flags = WB_IMMEDIATE }, now + WB_SECOND);
    pipeline.origin.delays = WB_DELAYS_BY_NOBODY;
    expect_refused((wb_outgoing){ .delay = 1 }, "nobody");
    expect_due((wb_outgoing){ 0 }, 0);
}

/* The broker delays what goes to a queue. */
static void test_delayed_events(void **state)
{
    const wb_outgoing event = { .type = "T", .delay = WB_SECONDS };
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    (void)state;
    assert_int_equal(wb_outgoing_add(&pipeline.origin, WB_KIND_PUBLISH, &event, sizeof event, NULL, 0, &arena,
                                     &list, &error), WB_OK);
    pipeline.origin.delays = WB_DELAYS_BY_TRANSPORT;
    assert_int_equal(wb_outgoing_add(&pipeline.origin, WB_KIND_PUBLISH, &event, sizeof event, NULL, 0, &arena,
                                     &list, &error), WB_REJECT);
    assert_non_null(strstr(error.text, "by = \"store\""));
    assert_int_equal(list.count, 1);
}

/* No version has less than 1.0: what is not there is not guessed. Nor is a kind of a later one. */
static void test_what_no_version_has(void **state)
{
    wb_outgoing outgoing = { .type = "T", .destination = "q", .delay = WB_SECONDS };
    wb_operation_list list = { 0 };
    wb_error error;
    (void)state;
    for (size_t size = 0; size < sizeof outgoing; size += 8)
        assert_int_equal(wb_outgoing_add(&pipeline.origin, WB_KIND_SEND, &outgoing, size, NULL, 0, &arena, &list, &error),
                         WB_REJECT);
    assert_non_null(strstr(error.text, "fewer than any version's"));
    static const int kinds[] = { INT_MIN, -1, 0, 4, 9, INT_MAX };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(wb_outgoing_add(&pipeline.origin, kinds[i], &outgoing, sizeof outgoing, NULL, 0, &arena, &list, &error),
                         WB_REJECT);
    assert_non_null(strstr(error.text, "is of kind 2147483647, which this version does not know"));
    assert_int_equal(list.count, 0);
}

static void test_times_of_people(void **state)
{
    static const struct {
        const char *text;
        int result;
        int64_t time;
    } cases[] = {
        { "1970-01-01T00:00:00Z", WB_UNIT_OK, 0 },
        { "2026-12-31T08:00:00Z", WB_UNIT_OK, INT64_C(1798704000) * WB_SECOND },
        { "2026-12-31 08:00:00.25Z", WB_UNIT_OK, INT64_C(1798704000) * WB_SECOND + 250 * WB_MILLISECOND },
        { "2026-12-31T08:00:00", WB_UNIT_MALFORMED, 0 },
        { "2026-12-31T08:00:00+01:00", WB_UNIT_MALFORMED, 0 },
        { "2026-02-31T08:00:00Z", WB_UNIT_MALFORMED, 0 },
        { "2026-13-01T08:00:00Z", WB_UNIT_MALFORMED, 0 },
        { "2026-12-31T24:00:00Z", WB_UNIT_MALFORMED, 0 },
        { "2026-12-31T08:60:00Z", WB_UNIT_MALFORMED, 0 },
        { "1969-12-31T08:00:00Z", WB_UNIT_MALFORMED, 0 },
        { "2026-12-31T08:00:-1Z", WB_UNIT_MALFORMED, 0 },
        { "2026- 1-31T08:00:00Z", WB_UNIT_MALFORMED, 0 },
        { "2262-04-11T23:47:16Z", WB_UNIT_OK, INT64_C(9223372036) * WB_SECOND },
        { "2262-04-11T23:47:16.9Z", WB_UNIT_OVERFLOW, 0 },
        { "9999-12-31T23:59:59Z", WB_UNIT_OVERFLOW, 0 },
        { "tomorrow", WB_UNIT_MALFORMED, 0 },
        { "", WB_UNIT_MALFORMED, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t time = 0;
        if (wb_time_parse(cases[i].text, &time) != cases[i].result || time != cases[i].time)
            fail_msg("\"%s\" is %lld", cases[i].text, (long long)time);
    }
}

/* ---- the form in the outbox ------------------------------------------------------------ */

static wb_operation *append(wb_operation_list *list, const char *destination, const char *id, int64_t due)
{
    wb_operation *operation = wb_operation_append(list, &arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY | WB_OPERATION_PARTLY_SENT; /* of which the latter is nothing to be kept */
    operation->destination = destination;
    operation->id = id;
    operation->id_size = strlen(id);
    operation->body = "body";
    operation->body_size = 4;
    operation->deliver_at = due;
    return operation;
}

static void test_formats(void **state)
{
    wb_operation_list list = { 0 }, plain = { 0 };
    wb_buffer bytes = { 0 };
    int failed;
    (void)state;
    append(&plain, "q", "plain", 0);
    wb_operations_encode_start(&bytes);
    (void)wb_operations_encode_group(&bytes, "m", 1, &plain);
    assert_memory_equal(bytes.data, "WBO1", 4);
    append(&list, "q", "at once", 0);
    append(&list, "r", "later", INT64_C(1) << 60);
    (void)wb_operations_encode_group(&bytes, "n", 1, &list);
    assert_memory_equal(bytes.data, "WBO2", 4);
    wb_operation_group *group = wb_operations_decode(bytes.data, bytes.size, &arena, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(group->operations.first->operation.deliver_at, 0);
    const wb_operation_node *node = group->next->operations.first;
    assert_int_equal(node->operation.deliver_at, 0);
    assert_int_equal(node->next->operation.deliver_at, INT64_C(1) << 60);
    assert_int_equal(node->next->operation.flags, WB_OPERATION_MANDATORY);
    assert_string_equal(node->next->operation.body, "body");
    /* what remains has nothing delayed: earlier versions can read it */
    list.last->operation.result = WB_OK;
    wb_operations_encode_start(&bytes);
    (void)wb_operations_encode_group(&bytes, "n", 1, &list);
    assert_memory_equal(bytes.data, "WBO1", 4);
    wb_buffer_free(&bytes);
}

/* Cut anywhere it is refused, or has fewer groups; nothing is read beyond its end. */
static void test_format_2_damaged(void **state)
{
    wb_operation_list list = { 0 };
    wb_buffer bytes = { 0 };
    int failed;
    (void)state;
    append(&list, "r", "later", 1);
    wb_operations_encode_start(&bytes);
    (void)wb_operations_encode_group(&bytes, "n", 1, &list);
    for (size_t size = 5; size < bytes.size; size++) {
        unsigned char *part = malloc(size);
        memcpy(part, bytes.data, size);
        wb_operations_decode(part, size, &arena, &failed);
        assert_int_equal(failed, 1);
        free(part);
    }
    wb_buffer_free(&bytes);
}

/* ---- deferring ------------------------------------------------------------------------- */

typedef struct sending {
    wb_operation_list list;
    wb_window window;
    wb_outlet outlet;
    wb_error error;
} sending;

static int send_list(sending *s)
{
    s->outlet = (wb_outlet){ .pipeline = &pipeline,
                             .session = (wb_transport_session *)&fake_store,
                             .storage = (wb_storage_session *)&fake_store,
                             .until = s->outlet.until,
                             .beat = s->outlet.beat };
    wb_window_clear(&s->window, &arena);
    wb_window_add_list(&s->window, &s->list);
    int r = wb_window_send(&s->window, &s->outlet, &s->error);
    wb_window_free(&s->window);
    return r;
}

static void test_store_keeps_what_is_due_later(void **state)
{
    sending s = { 0 };
    (void)state;
    append(&s.list, "q", "at once", 0);
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    append(&s.list, "q", "due", fake_store.now - WB_SECOND);
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.sent_count, 2);
    assert_int_equal(fake_store.sent[1].deliver_at, 0);
    assert_int_equal(fake_store.row_count, 1);
    assert_string_equal(fake_store.rows[0].id, "later");
    assert_int_equal(fake_store.rows[0].due, fake_store.now + 60 * WB_SECOND);
    assert_memory_equal(fake_store.rows[0].operation, "WBO1", 4); /* that it is due is a column */
    for (const wb_operation_node *node = s.list.first; node; node = node->next)
        assert_int_equal(node->operation.result, WB_OK);
}

/* Nor is it sent where one of them may have ended a session, so that each goes by itself. */
static void test_what_is_stored_is_not_sent_beside_suspects(void **state)
{
    sending s = { 0 };
    (void)state;
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    append(&s.list, "q", "at once", 0);
    wb_suspicions_add(pipeline.suspicions, "at once", strlen("at once"));
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.sent_count, 1);
    assert_string_equal(fake_store.sent[0].id, "at once");
    assert_int_equal(fake_store.row_count, 1);
    for (const wb_operation_node *node = s.list.first; node; node = node->next)
        assert_int_equal(node->operation.result, WB_OK);
}

/* A delayed retry waits beside the one before, should that still be there. */
static void test_store_is_told_the_retries(void **state)
{
    const wb_header header = { WB_HEADER_RETRIES, "2", sizeof WB_HEADER_RETRIES - 1, 1 };
    sending s = { 0 };
    (void)state;
    append(&s.list, "q", "again", fake_store.now + 60 * WB_SECOND)->headers = &header;
    s.list.first->operation.header_count = 1;
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.rows[0].retries, 2);
}

/* It is told by the host's clock as that is then; what is pending is as it was: the next to send it has another clock. */
static void test_transport_is_told(void **state)
{
    static const int64_t aheads[] = { 3600 * WB_SECOND, -3600 * WB_SECOND };
    wb_error error = { 0 };
    (void)state;
    pipeline.origin.delays = WB_DELAYS_BY_TRANSPORT;
    for (int i = 0; i < 2; i++) {
        sending s = { 0 };
        fake_store.now = wb_clock_wall() - aheads[i];
        assert_int_equal(wb_pipeline_ask_time(&pipeline, NULL, &error), WB_OK);
        const int64_t due = fake_store.now + 7200 * WB_SECOND, told = due + aheads[i];
        append(&s.list, "q", "later", due);
        append(&s.list, "q", "at once", 0);
        fake_store.send_answers[0] = WB_RETRY; /* it is handed over twice */
        assert_int_equal(send_list(&s), WB_OK);
        assert_int_equal(fake_store.row_count, 0);
        assert_int_equal(fake_store.sent_count, 2 * i + 2);
        assert_in_range(fake_store.sent[2 * i].deliver_at, told - WB_SECOND, told + WB_SECOND);
        assert_int_equal(fake_store.sent[2 * i + 1].deliver_at, 0);
        for (const wb_operation_node *node = s.list.first; node; node = node->next)
            assert_int_equal(node->operation.deliver_at, node == s.list.first ? due : 0);
    }
}

/* The configuration was changed while it was pending: nothing is sent early. */
static void test_nobody_delays_any_more(void **state)
{
    sending s = { 0 };
    (void)state;
    pipeline.origin.delays = WB_DELAYS_BY_NOBODY;
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    append(&s.list, "q", "due", fake_store.now - WB_SECOND);
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(s.list.first->operation.result, WB_REJECT);
    assert_non_null(strstr(s.list.first->operation.reason, "nobody"));
    assert_int_equal(fake_store.sent_count, 1);
    assert_string_equal(fake_store.sent[0].id, "due");
}

static void test_one_is_too_large(void **state)
{
    sending s = { 0 };
    char body[600];
    (void)state;
    memset(body, 'b', sizeof body);
    fake_store.row_max = 512;
    append(&s.list, "q", "small", fake_store.now + WB_SECOND * 60);
    wb_operation *large = append(&s.list, "q", "large", fake_store.now + WB_SECOND * 60);
    large->body = body;
    large->body_size = sizeof body;
    append(&s.list, "q", "small too", fake_store.now + WB_SECOND * 60);
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.row_count, 2);
    assert_int_equal(large->result, WB_REJECT);
    assert_int_equal(large->cause, WB_CAUSE_TOO_LARGE);
    assert_int_equal(s.list.last->operation.result, WB_OK);
}

/* With nobody beside it to be stored, either. */
static void test_the_only_one_is_too_large(void **state)
{
    sending s = { 0 };
    char body[600];
    (void)state;
    memset(body, 'b', sizeof body);
    fake_store.row_max = 512;
    wb_operation *large = append(&s.list, "q", "large", fake_store.now + WB_SECOND * 60);
    large->body = body;
    large->body_size = sizeof body;
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(large->result, WB_REJECT);
    assert_int_equal(large->cause, WB_CAUSE_TOO_LARGE);
    assert_false(s.outlet.storage_failed);
}

static void test_store_is_waited_for(void **state)
{
    sending s = { 0 };
    (void)state;
    fake_store.store_answers[0] = WB_RETRY;
    fake_store.store_answers[1] = WB_ABORT;
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    assert_int_equal(send_list(&s), WB_OK);
    assert_int_equal(fake_store.store_calls, 3);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(pipeline.store_breaker.armed, 0);
}

/* Not by whose time is up. */
static void test_store_is_not_waited_for(void **state)
{
    sending s = { .outlet.until = wb_clock_monotonic() };
    (void)state;
    fake_store.store_answers[0] = WB_RETRY;
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    assert_int_equal(send_list(&s), WB_RETRY);
    assert_true(s.outlet.storage_failed);
    assert_int_equal(fake_store.store_calls, 1);
    assert_int_equal(fake_store.row_count, 0);
}

/* Nor by who stops, and in a transaction that is shared it is over. */
static void test_store_is_waited_for_by_nobody_else(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        sending s = { 0 };
        fake_store.store_calls = 0;
        fake_store.store_answers[0] = WB_RETRY;
        pipeline.stop = !is_shared;
        pipeline.mode = is_shared ? WB_MODE_TRANSACTION_SCOPE : WB_MODE_RECEIVE_ONLY;
        append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
        assert_int_equal(send_list(&s), WB_RETRY);
        assert_int_equal(fake_store.store_calls, 1);
        assert_int_equal(fake_store.row_count, 0);
    }
}

/* Who waits for a store lives, and says so. */
static void test_store_is_waited_for_alive(void **state)
{
    sending s = { 0 };
    _Atomic int64_t beat = 0;
    (void)state;
    s.outlet.beat = &beat;
    fake_store.store_answers[0] = WB_RETRY;
    append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
    assert_int_equal(send_list(&s), WB_OK);
    assert_true(beat > 0);
}

/* Whatever it was, the session is lost, nothing is sent, and what is done again is harmless. */
static void test_store_is_lost(void **state)
{
    static const int answers[] = { WB_NOT_CONNECTED, WB_IN_DOUBT, WB_FATAL };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        sending s = { 0 };
        fake_store.store_answers[0] = answers[i];
        append(&s.list, "q", "at once", 0);
        append(&s.list, "q", "later", fake_store.now + 60 * WB_SECOND);
        assert_int_equal(send_list(&s), answers[i] == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED);
        assert_true(s.outlet.storage_failed);
        assert_int_equal(fake_store.sent_count, 0);
        assert_true(pipeline.store_breaker.armed);
    }
}

/* ---- the poller ------------------------------------------------------------------------ */

static int64_t poll_until, poll_sleep;

static void poll_once(void)
{
    wb_poller_round(&poller, &poll_until, &poll_sleep);
}

static void test_poller_sends_what_is_due(void **state)
{
    (void)state;
    fake_delays_add("q", "now", fake_store.now);
    fake_delays_add("q", "before", fake_store.now - WB_SECOND);
    fake_delays_add("q", "soon", fake_store.now + 200 * WB_MILLISECOND);
    poll_once();
    assert_int_equal(fake_store.sent_count, 2);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.send_windows, 1);
    assert_int_equal(fake_store.remove_calls, 1);
    assert_string_equal(fake_store.sent[0].body, "body");
    assert_int_equal(poll_sleep, 200 * WB_MILLISECOND);
    assert_int_equal(poll_until, fake_store.now + 200 * WB_MILLISECOND);
    fake_store.now += 200 * WB_MILLISECOND;
    poll_once();
    assert_int_equal(fake_store.sent_count, 3);
    assert_int_equal(poll_until, WB_NEVER_DUE);
    assert_int_equal(poll_sleep, WB_SECOND); /* others may store */
}

static void test_poller_drains_in_lots(void **state)
{
    char id[16];
    (void)state;
    for (int i = 0; i < 2 * WB_LOT_MAX + 7; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        fake_delays_add("q", id, fake_store.now);
    }
    poll_once();
    assert_int_equal(fake_store.sent_count, 2 * WB_LOT_MAX + 7);
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.send_windows, 3);
}

/* How the poller's pauses are taken: how many, how long together, and how much workers handle in each. */
static struct {
    unsigned count;
    int64_t time;
    unsigned handled;
} pauses;

void __real_wb_clock_pause(int64_t duration, const atomic_int *stop);
void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop);

void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop)
{
    pauses.count++;
    pauses.time += duration;
    atomic_fetch_add(&pipeline.successes, pauses.handled);
    __real_wb_clock_pause(duration, stop);
}

static void poll_beside(unsigned handled)
{
    pauses.count = 0;
    pauses.time = 0;
    pauses.handled = handled;
    fake_delays_add("q", "1", fake_store.now);
    fake_delays_add("q", "2", fake_store.now);
    poll_once();
    pauses.handled = 0;
}

/* More may come due meanwhile, and are sent together. */
static void test_several_are_gathered(void **state)
{
    (void)state;
    poll_beside(0);
    assert_int_equal(pauses.count, 1);
    assert_int_equal(pauses.time, 20 * WB_MILLISECOND);
    assert_int_equal(fake_store.sent_count, 2);
}

/* As long as workers have much to do: 50 messages in each pause. */
static void test_more_are_gathered_beside_work(void **state)
{
    (void)state;
    poll_beside(50);
    assert_int_equal(pauses.count, 5);
    assert_int_equal(pauses.time, 100 * WB_MILLISECOND);
    poll_beside(49);
    assert_int_equal(pauses.count, 1);
}

static const fake_sent *find_sent(const char *destination)
{
    for (size_t i = 0; i < fake_store.sent_count; i++)
        if (strcmp(fake_store.sent[i].destination, destination) == 0)
            return &fake_store.sent[i];
    return NULL;
}

static void test_unknown_destination(void **state)
{
    (void)state;
    poller.policy.retries = 5; /* which it gets none of */
    fake_store.refused = "nowhere";
    fake_store.refused_cause = WB_CAUSE_UNROUTABLE;
    fake_delays_add("nowhere", "lost", fake_store.now);
    fake_delays_add("q", "good", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_non_null(find_sent("q"));
    const fake_sent *moved = find_sent("error");
    assert_non_null(moved);
    assert_string_equal(moved->id, "lost");
    assert_string_equal(moved->failed_queue, "nowhere");
    assert_string_equal(moved->body, "body");
}

static void test_refused_is_tried_again(void **state)
{
    (void)state;
    poller.policy.retries = 2;
    fake_store.picky = "picky";
    fake_store.picky_for = 2;
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add("picky", "patient", fake_store.now);
    for (int i = 0; i < 3; i++, fake_store.now += WB_SECOND)
        poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_non_null(find_sent("picky"));
    assert_null(find_sent("error"));
}

static void test_refused_too_often(void **state)
{
    (void)state;
    poller.policy.retries = 2;
    fake_store.refused = "picky";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add("picky", "hopeless", fake_store.now);
    for (int i = 0; i < 2; i++) {
        poll_once();
        assert_int_equal(fake_store.rows[0].failures, i + 1);
        assert_null(find_sent("error"));
        fake_store.now = fake_store.rows[0].due;
    }
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_string_equal(find_sent("error")->id, "hopeless");
}

/* What an event is refused for is nobody's queue. */
static void test_refused_event(void **state)
{
    (void)state;
    fake_store.refused = "Type";
    fake_store.refused_cause = WB_CAUSE_UNROUTABLE;
    fake_delays_add_event("Type", "event", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_string_equal(find_sent("error")->id, "event");
    assert_string_not_equal(find_sent("error")->failed_queue, "Type");
}

/* A pause before the next lot, however full this one was. */
static void test_refused_keep_the_next_lot_waiting(void **state)
{
    (void)state;
    poller.policy.retries = 5;
    poller.policy.limit = 1;
    poller.policy.failure_pause = 100 * WB_MILLISECOND;
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add("full", "a", fake_store.now);
    fake_delays_add("full", "b", fake_store.now);
    fake_delays_add("full", "c", fake_store.now);
    int64_t started = wb_clock_monotonic();
    poll_once();
    assert_int_equal(fake_store.send_windows, 3);
    assert_true(wb_clock_monotonic() - started >= 300 * WB_MILLISECOND);
}

/* A privilege is somebody else's to grant: it waits as long as it takes. */
static void test_privilege_is_waited_for(void **state)
{
    (void)state;
    fake_store.refused = "secret";
    fake_store.refused_cause = WB_CAUSE_REFUSED;
    fake_delays_add("secret", "forbidden", fake_store.now);
    for (int i = 0; i < 5; i++, fake_store.now += 60 * WB_SECOND)
        poll_once();
    assert_int_equal(fake_store.row_count, 1);
    assert_null(find_sent("error"));
    fake_store.refused = NULL;
    poll_once();
    assert_non_null(find_sent("secret"));
}

/* What is in one of its topics keeps its lease, so that nobody is told that it was not sent; also where its copy for the error
 * queue has no time, or is refused. */
static void test_partly_sent_is_not_given_back(void **state)
{
    static const int causes[] = { WB_CAUSE_REFUSED, WB_CAUSE_TOO_LARGE };
    (void)state;
    poller.policy.retries = 5;
    fake_store.refused = "Type";
    fake_store.refused_in_part = 1;
    fake_store.picky = "error";
    fake_store.picky_for = 1;
    fake_delays_add_event("Type", "event", fake_store.now);
    for (size_t i = 0; i < 2; i++) {
        fake_store.refused_cause = causes[i];
        poll_once();
        assert_int_equal(fake_store.row_count, 1);
        assert_true(fake_store.rows[0].leased_until > fake_store.now + 20 * WB_SECOND);
        assert_int_equal(fake_store.rows[0].failures, 0);
        assert_null(find_sent("error"));
        fake_store.now += 60 * WB_SECOND;
    }
    assert_int_equal(fake_store.picky_for, 0);
    assert_int_equal(fake_store.release_calls, 0);
}

/* Its failures are not counted, so there is one. */
static void test_partly_sent_is_not_tried_for_ever(void **state)
{
    (void)state;
    poller.policy.retries = 5;
    fake_store.refused = "Type";
    fake_store.refused_in_part = 1;
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add_event("Type", "event", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_string_equal(find_sent("error")->id, "event");
}

/* The lease would end before its copy is sent: nor is it given back as if it were untried. */
static void test_partly_sent_and_late(void **state)
{
    wb_storage_session *storage = (wb_storage_session *)&fake_store;
    wb_outlet outlet = { .pipeline = &pipeline, .session = (wb_transport_session *)&fake_store,
                         .patience = WB_SECOND, .until = wb_clock_monotonic() };
    wb_error error = { 0 };
    (void)state;
    fake_store.refused = "Type";
    fake_store.refused_in_part = 1;
    fake_store.refused_cause = WB_CAUSE_TOO_LARGE;
    fake_delays_add_event("Type", "event", fake_store.now);
    assert_int_equal(wb_lot_fetch(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(wb_lot_dispatch(&poller.lot, &outlet, &error), WB_OK);
    wb_operation copy = { .struct_size = sizeof copy, .result = WB_LOT_UNTRIED };
    for (int has_copy = 0; has_copy < 2; has_copy++) { /* there is none, or the session was lost in front of it */
        poller.lot.entries[0].copy = has_copy ? &copy : NULL;
        assert_int_equal(wb_lot_conclude(&poller.lot, storage, &error), WB_OK);
        assert_int_equal(wb_lot_give_back(&poller.lot, storage, &error), WB_OK);
    }
    assert_int_equal(fake_store.sent_count, 0);
    assert_int_equal(fake_store.row_count, 1);
    assert_true(fake_store.rows[0].leased_until > fake_store.now);
}

/* Nor does the error queue take it: nothing is lost. */
static void test_error_queue_refuses(void **state)
{
    (void)state;
    fake_store.refused = "nowhere";
    fake_store.refused_cause = WB_CAUSE_UNROUTABLE;
    fake_store.picky = "error";
    fake_store.picky_for = 1;
    fake_delays_add("nowhere", "lost", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.rows[0].leased_until, 0);
    assert_true(fake_store.rows[0].due > fake_store.now + 30 * WB_SECOND);
    fake_store.now += 120 * WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_string_equal(find_sent("error")->id, "lost");
}

/* The lease would end before the error queue has confirmed: what was refused waits for the next lot. */
static void test_late_for_the_error_queue(void **state)
{
    wb_storage_session *storage = (wb_storage_session *)&fake_store;
    wb_outlet outlet = { .pipeline = &pipeline, .session = (wb_transport_session *)&fake_store,
                         .patience = WB_SECOND, .until = wb_clock_monotonic() };
    wb_error error = { 0 };
    (void)state;
    fake_store.refused = "nowhere";
    fake_store.refused_cause = WB_CAUSE_UNROUTABLE;
    fake_delays_add("nowhere", "lost", fake_store.now);
    assert_int_equal(wb_lot_fetch(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(wb_lot_dispatch(&poller.lot, &outlet, &error), WB_OK);
    assert_int_equal(fake_store.send_windows, 1);
    assert_int_equal(wb_lot_conclude(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(fake_store.sent_count, 0);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.rows[0].leased_until, 0);
}

static void test_silent_destination_keeps_nobody(void **state)
{
    (void)state;
    fake_store.silent = "silent";
    fake_delays_add("silent", "unheard", fake_store.now);
    fake_delays_add("q", "good", fake_store.now);
    poll_once();
    assert_non_null(find_sent("q"));
    assert_int_equal(fake_store.row_count, 1);
    assert_string_equal(fake_store.rows[0].id, "unheard");
    assert_null(find_sent("error"));
    /* it may be there: nobody is to be told that it was not sent, and it is no failure */
    assert_true(fake_store.rows[0].leased_until > fake_store.now + 20 * WB_SECOND);
    assert_int_equal(fake_store.rows[0].failures, 0);
}

static void add_five(void)
{
    static const char *const ids[] = { "a", "b", "c", "d", "e" };
    poller.policy.limit = 2;
    for (size_t i = 0; i < 5; i++)
        fake_delays_add("q", ids[i], fake_store.now);
}

/* While much is due, what was sent is removed by the call that asks for more. */
static void test_removals_ride(void **state)
{
    (void)state;
    add_five();
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 5);
    assert_int_equal(fake_store.ride_calls, 1);
    assert_int_equal(fake_store.remove_calls, 2); /* the last lot, which is not full, and the one before */
}

static int count_taken(void)
{
    int taken = 0;
    for (size_t i = 0; i < fake_store.row_count; i++)
        taken += fake_store.rows[i].leased_until > fake_store.now;
    return taken;
}

static void add_five_more(void)
{
    static const char *const ids[] = { "f", "g", "h", "i", "j" };
    for (size_t i = 0; i < 5; i++)
        fake_delays_add("q", ids[i], fake_store.now);
}

static void add_nine(void)
{
    add_five();
    add_five_more();
    fake_store.row_count--;
}

/* The store works while the broker confirms: from the second full lot on, and not behind the last. */
static void test_next_is_begun_beside(void **state)
{
    (void)state;
    add_nine();
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 9);
    assert_int_equal(fake_store.send_windows, 5);
    assert_int_equal(fake_store.sent_beside, 3);
    assert_int_equal(fake_store.begin_calls, 4);
    assert_int_equal(fake_store.ride_calls, 3);
    assert_int_equal(fake_store.remove_calls, 2);
}

/* What was taken beside a lot of which one is refused is free again before the pause, which may be long. */
static void test_begun_is_given_back(void **state)
{
    (void)state;
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    add_five();
    fake_store.row_count = 3;
    fake_delays_add("full", "refused", fake_store.now);
    add_five_more();
    poller.policy.retries = 3;
    poll_once();
    assert_int_equal(fake_store.sent_beside, 2); /* beside that lot, and again beside one behind it */
    assert_int_equal(fake_store.release_calls, 1);
    assert_int_equal(fake_store.sent_count, 8);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(count_taken(), 0);
}

/* Twice: each time what was taken then, and nothing of before. */
static void test_begun_is_given_back_each_time(void **state)
{
    (void)state;
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    add_five();
    fake_store.row_count = 3;
    fake_delays_add("full", "refused", fake_store.now);
    add_five_more();
    fake_delays_add("full", "refused, too", fake_store.now);
    fake_delays_add("q", "k", fake_store.now);
    poller.policy.retries = 3;
    poll_once();
    assert_int_equal(fake_store.sent_count, 9);
    assert_int_equal(fake_store.row_count, 2);
    assert_int_equal(fake_store.release_calls, 2);
    assert_int_equal(fake_store.released, 2 + 1);
}

/* Where all is one transaction, lots go one by one. */
static void test_scope_does_not_flow(void **state)
{
    (void)state;
    add_nine();
    pipeline.mode = WB_MODE_TRANSACTION_SCOPE;
    wb_storage_session *storage = (wb_storage_session *)&fake_store;
    wb_outlet outlet = { .pipeline = &pipeline, .session = (wb_transport_session *)&fake_store,
                         .patience = WB_SECOND, .until = wb_clock_monotonic() + WB_SECOND };
    wb_error error = { 0 };
    assert_int_equal(wb_lot_fetch(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(wb_lot_dispatch(&poller.lot, &outlet, &error), WB_OK);
    assert_int_equal(wb_lot_conclude(&poller.lot, storage, &error), WB_OK);
    assert_false(poller.lot.is_flowing);
    assert_int_equal(fake_store.remove_calls, 1);
    pipeline.mode = WB_MODE_RECEIVE_ONLY;
}

/* Somebody stops before the next one is begun: it is not. */
static void test_nothing_is_begun_at_a_stop(void **state)
{
    (void)state;
    add_nine();
    fake_store.stop_in_fetch = 2;
    fake_store.stop = &pipeline.stop;
    poll_once();
    assert_int_equal(fake_store.sent_beside, 0);
    assert_int_equal(fake_store.release_calls, 0);
    assert_int_equal(count_taken(), 0);
}

/* Somebody stops meanwhile: the same, and what was sent is removed. */
static void test_begun_is_given_back_at_a_stop(void **state)
{
    (void)state;
    add_nine();
    fake_store.stop_in_window = 3;
    fake_store.stop = &pipeline.stop;
    poll_once();
    assert_int_equal(fake_store.sent_count, 6);
    assert_int_equal(fake_store.row_count, 3);
    assert_int_equal(count_taken(), 0);
    assert_int_equal(fake_store.release_calls, 1);
}

/* Nobody knows what became of it: what went with it is removed by itself, and so is what was sent since. Where
 * the session is lost with it, by the next one; and by whom it was done in vain, too. */
static void lose_the_answer(int works_late)
{
    fake_store.works_late = works_late;
    add_nine();
    fake_store.end_answers[2] = WB_NOT_CONNECTED; /* the fourth lot: after the third was sent */
    fake_store.remove_answers[0] = fake_store.remove_answers[1] = WB_NOT_CONNECTED;
    poll_once();
    assert_int_equal(fake_store.sent_count, 6);
    assert_int_equal(fake_store.remove_calls, 2);
    assert_int_equal(fake_store.storage_open, 0);
    poll_once();
    assert_int_equal(fake_store.remove_calls, 5); /* these two, and the last one, which is sent now */
    fake_store.now += WB_LOT_LEASE + WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 9);
}

static void test_begun_has_no_answer(void **state)
{
    (void)state;
    lose_the_answer(0);
}

static void test_begun_was_not_done(void **state)
{
    (void)state;
    lose_the_answer(1);
}

/* What was sent is removed before the window behind the next one: the lease is three windows long. */
static void test_removed_within_two_windows(void **state)
{
    (void)state;
    add_nine();
    fake_store.window_takes = 9 * WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 9);
    assert_int_equal(fake_store.oldest_removed, 18 * WB_SECOND);
}

/* The answer comes when the lease is half over: all of it is given back, and asked for again. */
static void test_late_answer(void **state)
{
    wb_storage_session *storage = (wb_storage_session *)&fake_store;
    wb_error error = { 0 };
    (void)state;
    add_five();
    poller.lot.is_flowing = 1;
    assert_int_equal(wb_lot_fetch(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(wb_lot_begin_next(&poller.lot, storage, &error), WB_OK);
    assert_true(fake_store.has_begun);
    poller.lot.asked -= WB_LOT_LEASE / 2;
    assert_int_equal(wb_lot_fetch(&poller.lot, storage, &error), WB_OK);
    assert_int_equal(poller.lot.count, 0);
    assert_int_equal(count_taken(), 2); /* of the first */
    fake_store.now += WB_LOT_LEASE + WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.sent_count, 5);
}

/* A refused lot, and the fetch that began beside it has no answer: what went with it is not forgotten. */
static void test_recall_has_no_answer(void **state)
{
    (void)state;
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_store.works_late = 1;
    add_five();
    fake_store.row_count = 3;
    fake_delays_add("full", "refused", fake_store.now);
    poller.policy.retries = 3;
    fake_store.end_answers[1] = WB_RETRY;
    poll_once();
    assert_int_equal(fake_store.sent_count, 3);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(count_taken(), 0);
}

/* It cannot be begun: the lot in hand, of which nothing was sent, is given back. */
static void test_next_cannot_be_begun(void **state)
{
    (void)state;
    add_nine();
    fake_store.fetch_answers[2] = WB_RETRY;
    poll_once();
    assert_true(pipeline.fetch_breaker.armed);
    assert_int_equal(fake_store.sent_count, 2);
    assert_int_equal(fake_store.row_count, 7);
    assert_int_equal(count_taken(), 0);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
}

/* That call fails: they are removed by themselves, and not sent again. */
static void test_ride_fails(void **state)
{
    (void)state;
    add_five();
    fake_store.fetch_answers[1] = WB_RETRY;
    poll_once();
    assert_int_equal(fake_store.row_count, 3);
    assert_int_equal(fake_store.remove_calls, 1);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 5);
}

/* A full lot is the last one, since there is no more, or somebody stops: nothing stays behind. */
static void test_ride_has_no_next(void **state)
{
    (void)state;
    add_five();
    fake_store.row_count = 2;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.ride_calls, 1);
    assert_int_equal(fake_store.remove_calls, 0);
}

/* One of a full lot is refused: nothing waits for the next one then, which has a pause before it. */
static void test_refused_do_not_ride(void **state)
{
    (void)state;
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add("full", "f", fake_store.now);
    add_five();
    poller.policy.retries = 3;
    poll_once();
    assert_int_equal(fake_store.sent_count, 5);
    assert_int_equal(fake_store.row_count, 1);
    assert_true(fake_store.remove_calls > 0);
}

/* As if the time had passed for which silent destinations are left alone. */
static void let_silence_pass(void)
{
    for (size_t i = 0; i < poller.lot.silences.count; i++)
        poller.lot.silences.of[i].until = 0;
    fake_store.now += WB_LOT_LEASE + WB_SECOND;
}

static void test_silent_destination_is_left_alone(void **state)
{
    (void)state;
    fake_store.silent = "silent";
    fake_delays_add("silent", "a", fake_store.now);
    fake_delays_add("silent", "b", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.unheard, 2);
    fake_delays_add("silent", "c", fake_store.now);
    fake_delays_add("q", "good", fake_store.now);
    poll_once();
    assert_non_null(find_sent("q"));
    assert_int_equal(fake_store.unheard, 2); /* nobody waited for "c" */
    assert_int_equal(fake_store.rows[2].leased_until, 0);
    assert_int_equal(fake_store.rows[2].failures, 0);
    assert_true(fake_store.rows[2].due > fake_store.now + 20 * WB_SECOND);
    let_silence_pass();
    poll_once(); /* one tries for all of them */
    assert_int_equal(fake_store.unheard, 3);
    assert_int_equal(fake_store.row_count, 3);
    fake_store.silent = NULL;
    let_silence_pass();
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(poller.lot.silences.count, 0);
}

/* A session that is lost says nothing of a destination, and the next may try. */
static void test_try_that_is_lost(void **state)
{
    (void)state;
    fake_store.silent = "silent";
    fake_delays_add("silent", "a", fake_store.now);
    poll_once();
    fake_store.silent = NULL;
    let_silence_pass();
    fake_delays_add("silent", "b", fake_store.now);
    fake_store.send_answers[0] = WB_NOT_CONNECTED;
    poll_once();
    assert_int_equal(fake_store.row_count, 2);
    assert_int_equal(poller.lot.silences.count, 1);
    fake_store.now += WB_LOT_LEASE;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
}

/* More than can be remembered: the first are forgotten, and tried again. */
static void test_many_silences(void **state)
{
    static wb_silences silences;
    char names[WB_SILENCES_MAX + 1][8];
    wb_delayed_key keys[WB_SILENCES_MAX + 1];
    (void)state;
    for (size_t i = 0; i <= WB_SILENCES_MAX; i++) {
        int size = snprintf(names[i], sizeof names[i], "q%zu", i);
        keys[i] = (wb_delayed_key){ .destination = names[i], .destination_size = (size_t)size };
        assert_int_equal(wb_silences_note(&silences, &keys[i], 100), 1);
        assert_int_equal(wb_silences_note(&silences, &keys[i], 100), 0);
    }
    assert_null(wb_silences_find(&silences, &keys[0]));
    assert_int_equal(wb_silences_hold(&silences, &keys[0], 200), 0);
    assert_int_equal(wb_silences_hold(&silences, &keys[1], 200), 1);
    assert_int_equal(wb_silences_forget(&silences, &keys[1]), 1);
    assert_int_equal(wb_silences_forget(&silences, &keys[1]), 0);
    assert_int_equal(wb_silences_hold(&silences, &keys[2], 200), 1);
    assert_int_equal(wb_silences_hold(&silences, &keys[2], 100 * WB_SECOND), 0);
    assert_int_equal(wb_silences_hold(&silences, &keys[2], 100 * WB_SECOND), 1);
    wb_silences_start(&silences);
    assert_int_equal(wb_silences_hold(&silences, &keys[2], 100 * WB_SECOND), 0);
    assert_int_equal(silences.count, WB_SILENCES_MAX - 1);
}

/* What may be there is not given back with the next lot, which fails. */
static void test_what_is_kept(void **state)
{
    (void)state;
    fake_store.silent = "silent";
    fake_delays_add("silent", "unheard", fake_store.now);
    poll_once();
    fake_delays_add("q", "removable", fake_store.now);
    fake_store.remove_answers[0] = fake_store.remove_answers[1] = WB_NOT_CONNECTED;
    poll_once();
    wb_poller_finish(&poller);
    assert_int_equal(fake_store.row_count, 2);
    assert_true(fake_store.rows[0].leased_until > fake_store.now);
    assert_true(fake_store.rows[1].leased_until > fake_store.now);
    wb_poller_init(&poller);
}

static void test_broker_is_away(void **state)
{
    (void)state;
    fake_store.send_answers[0] = WB_NOT_CONNECTED;
    fake_delays_add("q", "waits", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.release_calls, 0); /* it may be there */
    assert_true(fake_store.rows[0].leased_until > fake_store.now);
    assert_int_equal(fake_store.rows[0].failures, 0);
    assert_true(poll_sleep >= 100 * WB_MILLISECOND && poll_sleep <= 30 * WB_SECOND);
    assert_true(pipeline.dispatch_breaker.armed);
    fake_store.now += WB_LOT_LEASE;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.transport_opened, 2);
    assert_false(pipeline.dispatch_breaker.armed);
}

/* What begins or commits in vain, and loses its session, begins on another one; else it goes on with its own. */
static void test_session_of_a_transaction_is_lost(void **state)
{
    static const int answers[] = { WB_NOT_CONNECTED, WB_IN_DOUBT, WB_FATAL, WB_RETRY, WB_ABORT };
    (void)state;
    pipeline.mode = WB_MODE_TRANSACTION_SCOPE;
    for (int is_commit = 0; is_commit < 2; is_commit++)
        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
            const int opened = fake_store.transport_opened, was_open = fake_store.transport_open;
            (is_commit ? fake_store.commit_answers : fake_store.begin_answers)[0] = answers[i];
            fake_delays_add("q", "a", fake_store.now);
            poll_once();
            assert_int_equal(poller.failures, 1);
            assert_int_equal(fake_store.transport_open, i >= 3);
            fake_delays_add("q", "b", fake_store.now);
            poll_once();
            assert_int_equal(poller.failures, 0);
            assert_int_equal(fake_store.row_count, 0);
            assert_int_equal(fake_store.transport_opened, opened + !was_open + (i < 3));
        }
}

static void test_database_is_away(void **state)
{
    int64_t first;
    (void)state;
    fake_store.fetch_answers[0] = fake_store.fetch_answers[1] = WB_NOT_CONNECTED;
    fake_delays_add("q", "waits", fake_store.now);
    poll_once();
    first = poll_sleep;
    poll_once();
    assert_true(poll_sleep > first); /* grows */
    assert_int_equal(poll_until, INT64_MIN); /* nothing wakes it earlier */
    assert_true(pipeline.fetch_breaker.armed);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.storage_opened, 3);
    assert_false(pipeline.fetch_breaker.armed);
}

/* Sent, and that it was could not be told: that is told later. */
static void test_remove_fails(void **state)
{
    (void)state;
    fake_store.remove_answers[0] = WB_IN_DOUBT;
    fake_delays_add("q", "once", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.release_calls, 0); /* not at once */
    assert_true(pipeline.dispatch_breaker.armed);
    fake_store.now += WB_LOT_LEASE;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 1);
}

/* A process that dies before has its rows sent again, the same. */
static void test_remove_fails_and_nobody_remembers(void **state)
{
    (void)state;
    fake_store.remove_answers[0] = fake_store.remove_answers[1] = WB_IN_DOUBT;
    fake_delays_add("q", "twice", fake_store.now);
    poll_once();
    wb_poller_finish(&poller);
    wb_poller_init(&poller);
    fake_store.now += WB_LOT_LEASE;
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 2);
    assert_memory_equal(&fake_store.sent[0], &fake_store.sent[1], sizeof fake_store.sent[0]);
}

/* As where somebody took the privilege away: nothing is sent again and again, and the breaker opens. */
static void test_nothing_can_be_removed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++)
        fake_store.remove_answers[i] = WB_FATAL;
    fake_delays_add("q", "once", fake_store.now);
    fake_delays_add("q", "later", fake_store.now + WB_LOT_LEASE);
    poll_once();
    assert_true(pipeline.dispatch_breaker.armed);
    for (int i = 0; i < 3; i++) {
        fake_store.now += WB_LOT_LEASE;
        pipeline.dispatch_breaker.armed -= WB_SECOND;
        pipeline.dispatch_breaker.failed -= WB_MILLISECOND;
        poll_once();
        assert_int_equal(fake_store.sent_count, 1);
        assert_true(pipeline.dispatch_breaker.is_open);
    }
    poll_once(); /* it was given back */
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 2);
    assert_false(pipeline.dispatch_breaker.is_open);
}

/* And what was refused beside it was not sent: others may have it at once. */
static void test_remove_fails_beside_a_refused_one(void **state)
{
    (void)state;
    fake_store.refused = "nowhere";
    fake_store.refused_cause = WB_CAUSE_REFUSED;
    fake_store.remove_answers[0] = fake_store.remove_answers[1] = WB_IN_DOUBT;
    fake_delays_add("nowhere", "refused", fake_store.now);
    fake_delays_add("q", "sent", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 2);
    assert_int_equal(fake_store.rows[0].leased_until, 0);
    assert_int_equal(fake_store.rows[0].failures, 0);
    assert_true(fake_store.rows[1].leased_until > fake_store.now);
}

/* That one could not be removed is no trouble of the lots behind it. */
static void test_remove_failed_once(void **state)
{
    (void)state;
    poller.policy.retries = 5;
    fake_store.remove_answers[0] = fake_store.remove_answers[1] = WB_IN_DOUBT;
    fake_delays_add("q", "sent", fake_store.now);
    poll_once();
    assert_true(pipeline.dispatch_breaker.armed);
    fake_store.refused = "full";
    fake_store.refused_cause = WB_CAUSE_OTHER;
    fake_delays_add("full", "refused", fake_store.now);
    poll_once(); /* and it is removed by now */
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.rows[0].failures, 1);
    assert_false(pipeline.dispatch_breaker.armed);
}

/* Retries of one message wait beside each other, and each is removed when it was sent. */
static void test_keys_have_retries(void **state)
{
    (void)state;
    fake_delays_add("q", "m", fake_store.now + WB_SECOND);
    fake_store.rows[0].retries = 1;
    fake_delays_add("q", "m", fake_store.now);
    fake_store.rows[1].retries = 2;
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(fake_store.row_count, 1);
    assert_int_equal(fake_store.rows[0].retries, 1);
}

/* Two with one owner would remove what the other is sending, or give it back. */
static void test_each_has_an_owner(void **state)
{
    static wb_poller others[32];
    (void)state;
    for (size_t i = 0; i < 32; i++) {
        others[i] = (wb_poller){ .pipeline = &pipeline };
        wb_poller_init(&others[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(others[i].owner, others[j].owner, WB_DELAYED_OWNER_SIZE);
    }
    for (size_t i = 0; i < 32; i++)
        wb_poller_finish(&others[i]);
}

/* What passes is waited for: it was sent, and is not to be sent again. */
static void test_remove_is_tried_again(void **state)
{
    (void)state;
    fake_store.remove_answers[0] = WB_ABORT;
    fake_store.remove_answers[1] = WB_RETRY;
    fake_delays_add("q", "once", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.row_count, 0);
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(fake_store.remove_calls, 3);
}

/* A failure of hours ago is no part of one now. */
static void test_breaker_forgets(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "away" };
    (void)state;
    wb_breaker_failed(&pipeline.fetch_breaker, &pipeline, &error);
    poll_once(); /* nothing is due, and the database answers */
    assert_int_equal(pipeline.fetch_breaker.armed, 0);
    wb_breaker_failed(&pipeline.store_breaker, &pipeline, &error);
    pipeline.store_breaker.armed -= 7200 * WB_SECOND;
    pipeline.store_breaker.failed -= 7200 * WB_SECOND;
    wb_breaker_failed(&pipeline.store_breaker, &pipeline, &error);
    assert_false(pipeline.store_breaker.is_open);
}

/* Nor is one of a moment ago, if a lot was fetched since, however many wait. */
static void test_breaker_forgets_between_lots(void **state)
{
    char id[16];
    (void)state;
    for (int i = 0; i <= WB_LOT_MAX; i++) {
        (void)snprintf(id, sizeof id, "%d", i);
        fake_delays_add("q", id, fake_store.now);
    }
    fake_store.fetch_answers[0] = fake_store.fetch_answers[2] = WB_NOT_CONNECTED;
    poll_once();
    assert_true(pipeline.fetch_breaker.armed);
    pipeline.fetch_breaker.armed -= 10 * WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.fetch_calls + fake_store.begin_calls, 3);
    assert_true(pipeline.fetch_breaker.armed);
    assert_false(pipeline.fetch_breaker.is_open);
}

/* A store that is only drained is no reason to stop: the endpoint does without. */
static void test_breaker_of_a_store_that_is_drained(void **state)
{
    (void)state;
    fake_store.next_answers[0] = fake_store.next_answers[1] = WB_NOT_CONNECTED;
    poller.only_drains = 1;
    poll_once();
    assert_false(pipeline.fetch_breaker.armed);
    poller.only_drains = 0;
    poll_once();
    assert_true(pipeline.fetch_breaker.armed);
}

static char said[4000]; /* the log, since it was looked at last */

static void note_said(void *argument, int level, const char *line, size_t size)
{
    const size_t used = strlen(said);
    (void)argument, (void)level, (void)size;
    (void)snprintf(said + used, sizeof said - used, "%s\n", line);
}

static unsigned count_said(const char *text)
{
    unsigned count = 0;
    for (const char *at = said; (at = strstr(at, text)); at++)
        count++;
    said[0] = '\0';
    return count;
}

static void begin_draining(void)
{
    said[0] = '\0';
    wb_log_set_writer(note_said, NULL);
    poller.only_drains = 1;
}

#define CANNOT "level=warning msg=\"what may wait in the delayed message store cannot be sent, and is looked for again\""
#define CAN_AGAIN "msg=\"what waits in the delayed message store can be sent again\""

static void expect_refusal(int cause, int64_t sleep, unsigned lines)
{
    fake_store.cause = cause;
    fake_store.next_answers[0] = WB_FATAL;
    poll_once();
    assert_int_equal(poll_sleep, sleep);
    assert_int_equal(count_said(CANNOT), lines);
}

/* Most have never had one: it is looked for ever more seldom, and nothing is said. It is there one day all the same: somebody renamed
 * it for the moment in which it was looked for first. */
static void test_a_store_that_is_absent(void **state)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
    (void)state;
    begin_draining();
    for (size_t i = 0; i < sizeof minutes / sizeof *minutes; i++)
        expect_refusal(WB_CAUSE_MISSING, minutes[i] * 60 * WB_SECOND, 0);
    assert_int_equal(fake_store.storage_open, 0);
    fake_delays_add("q", "kept", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    expect_refusal(WB_CAUSE_MISSING, 60 * WB_SECOND, 0); /* it was empty: whoever removed it may */
    expect_refusal(WB_CAUSE_REFUSED, 60 * WB_SECOND, 1);
    expect_refusal(WB_CAUSE_REFUSED, 60 * WB_SECOND, 0);
    expect_refusal(WB_CAUSE_MISSING, 60 * WB_SECOND, 0); /* whatever it was before */
    wb_log_set_writer(NULL, NULL);
}

/* What is seen to wait is owed, and nobody else sends it. */
static void test_a_store_with_rows_is_not_given_up(void **state)
{
    static const int causes[] = { WB_CAUSE_MISSING, WB_CAUSE_REFUSED };
    (void)state;
    begin_draining();
    fake_delays_add("q", "owed", fake_store.now + 3600 * WB_SECOND);
    for (size_t i = 0; i < 2; i++) {
        poll_once();
        assert_int_equal(poll_sleep, 60 * WB_SECOND);
        expect_refusal(causes[i], 500 * WB_MILLISECOND, 1);
        expect_refusal(causes[i], 1000 * WB_MILLISECOND, 0);
        for (int more = 0; more < 10; more++)
            expect_refusal(causes[i], poll_sleep < 16 * WB_SECOND ? 2 * poll_sleep : 30 * WB_SECOND, 0);
        poll_once();
        assert_int_equal(count_said(CAN_AGAIN), 1);
    }
    fake_store.now += 3600 * WB_SECOND;
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(count_said(CAN_AGAIN), 0);
    wb_log_set_writer(NULL, NULL);
}

/* A privilege that is missing from the beginning: something may wait there, and a line says so. */
static void test_a_store_that_refuses_is_asked_again(void **state)
{
    (void)state;
    begin_draining();
    for (int i = 0; i < 3; i++)
        expect_refusal(WB_CAUSE_REFUSED, 60 * WB_SECOND, i == 0);
    fake_delays_add("q", "kept", fake_store.now);
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(count_said(CAN_AGAIN), 1);
    wb_log_set_writer(NULL, NULL);
}

/* It may look, and not take: that is one affair, whatever looking says in between. */
static void test_a_store_that_gives_nothing(void **state)
{
    (void)state;
    begin_draining();
    fake_store.cause = WB_CAUSE_REFUSED;
    fake_delays_add("q", "kept", fake_store.now);
    for (int i = 0; i < 3; i++) {
        fake_store.fetch_answers[0] = WB_FATAL;
        poll_once();
        assert_int_equal(count_said("delayed message store"), i == 0);
    }
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(count_said(CAN_AGAIN), 1);
    wb_log_set_writer(NULL, NULL);
}

/* A store that is used is looked for as ever, and so is one that is drained when it is the broker that refuses. */
static void test_other_refusals_have_other_pauses(void **state)
{
    (void)state;
    fake_store.cause = WB_CAUSE_MISSING;
    fake_store.next_answers[0] = WB_FATAL;
    poll_once();
    assert_int_equal(poll_sleep, 500 * WB_MILLISECOND);
    assert_true(pipeline.fetch_breaker.armed);
    begin_draining();
    fake_delays_add("q", "now", fake_store.now);
    fake_store.send_answers[0] = WB_FATAL;
    poll_once();
    assert_int_equal(poll_sleep, WB_SECOND);
    assert_int_equal(count_said("delayed message store"), 0);
    wb_log_set_writer(NULL, NULL);
}

/* What is due is locked by somebody: it is not asked for without a pause. */
static void test_locked_rows_are_waited_for(void **state)
{
    (void)state;
    fake_delays_add("q", "locked", fake_store.now);
    fake_store.locked_for = 3;
    int64_t started = wb_clock_monotonic();
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(fake_store.fetch_calls, 4);
    assert_true(wb_clock_monotonic() - started >= 100 * WB_MILLISECOND);
}

/* Whoever delays: the host's clock may be wrong, and be set before they are sent. */
static void test_clock_of_delays(void **state)
{
    wb_error error = { 0 };
    (void)state;
    fake_store.now = 1000 * WB_SECOND; /* the database's time is not the host's */
    assert_int_equal(wb_pipeline_ask_time(&pipeline, NULL, &error), WB_OK);
    for (int delays = WB_DELAYS_BY_STORE; delays <= WB_DELAYS_BY_TRANSPORT; delays++) {
        pipeline.origin.delays = delays;
        expect_due((wb_outgoing){ .delay = 5 * WB_SECONDS }, 1005 * WB_SECOND);
    }
}

/* The database's clock was set: what is stored from then on is due by the new one. */
static void test_database_sets_its_clock(void **state)
{
    (void)state;
    poll_once();
    fake_store.now += 3600 * WB_SECOND;
    poll_once();
    expect_due((wb_outgoing){ .delay = 5 * WB_SECONDS }, fake_store.now + 5 * WB_SECOND);
}

/* By the clock that made it due, the database's, wherever that stands, and whoever delays by now: a store may only be drained. */
static void test_how_late_it_is(void **state)
{
    const _Atomic uint64_t *sum = &pipeline.tally.of[wb_histogram_first(WB_HISTOGRAM_LATENESS) + WB_HISTOGRAM_SIZE - 1];
    const int64_t clocks[] = { 1000 * WB_SECOND, wb_clock_wall() + 86400 * WB_SECOND };
    (void)state;
    for (int i = 0; i < 4; i++) {
        const uint64_t before = *sum;
        fake_store.now = clocks[i % 2];
        poller.only_drains = i / 2;
        pipeline.origin.delays = poller.only_drains ? WB_DELAYS_BY_TRANSPORT : WB_DELAYS_BY_STORE;
        fake_delays_add("q", "late", fake_store.now - 5 * WB_SECOND);
        poll_once();
        assert_int_equal(fake_store.sent_count, i + 1);
        assert_in_range(*sum - before, 5000000, 65000000);
    }
}

static void test_unreadable_is_left_alone(void **state)
{
    (void)state;
    fake_delays_add("q", "newer", fake_store.now);
    fake_delays_add("q", "known", fake_store.now);
    memcpy(fake_store.rows[0].operation, "WBO9", 4);
    poll_once();
    assert_int_equal(fake_store.sent_count, 1);
    assert_int_equal(fake_store.row_count, 1);
    assert_string_equal(fake_store.rows[0].id, "newer");
    assert_true(fake_store.rows[0].due > fake_store.now + 60 * WB_SECOND);
}

static void test_others_leases_are_waited_for(void **state)
{
    (void)state;
    fake_delays_add("q", "theirs", fake_store.now);
    fake_store.rows[0].leased_until = fake_store.now + 500 * WB_MILLISECOND;
    poll_once();
    assert_int_equal(fake_store.sent_count, 0);
    assert_int_equal(poll_sleep, 500 * WB_MILLISECOND);
}

/* Somebody must act: nothing is held open meanwhile. */
static void test_rests_while_the_endpoint_is_down(void **state)
{
    (void)state;
    fake_delays_add("q", "now", fake_store.now);
    fake_delays_add("q", "later", fake_store.now + WB_SECOND);
    poll_once();
    assert_int_equal(fake_store.storage_open + fake_store.transport_open, 2);
    fake_store.now += WB_SECOND;
    pipeline.is_down = 1;
    poll_once();
    assert_int_equal(fake_store.storage_open + fake_store.transport_open, 0);
    assert_int_equal(fake_store.sent_count, 1);
    assert_true(poll_sleep <= WB_SECOND);
    pipeline.is_down = 0;
    poll_once();
    assert_int_equal(fake_store.sent_count, 2);
}

static void *give_up(void *argument)
{
    wb_clock_pause(100 * WB_MILLISECOND, NULL);
    pipeline.is_down = 1;
    return argument;
}

/* Nor does it go on with what it has begun. */
static void test_stops_when_the_endpoint_goes_down(void **state)
{
    pthread_t thread;
    (void)state;
    fake_delays_add("q", "locked", fake_store.now);
    fake_store.locked_for = 20;
    assert_int_equal(pthread_create(&thread, NULL, give_up, NULL), 0);
    poll_once();
    pthread_join(thread, NULL);
    assert_int_equal(fake_store.sent_count, 0);
    assert_int_equal(fake_store.row_count, 1);
}

/* ---- its sleep ------------------------------------------------------------------------- */

static void *tell(void *argument)
{
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    wb_alarm_tell(&pipeline.alarm, *(int64_t *)argument);
    return NULL;
}

static int64_t sleep_with(int64_t told, int64_t until, int64_t duration)
{
    pthread_t thread;
    int64_t started = wb_clock_monotonic();
    wb_alarm_clear(&pipeline.alarm);
    assert_int_equal(pthread_create(&thread, NULL, tell, &told), 0);
    wb_alarm_sleep(&pipeline.alarm, until, duration);
    int64_t slept = wb_clock_monotonic() - started;
    pthread_join(thread, NULL);
    return slept;
}

static void test_alarm(void **state)
{
    (void)state;
    assert_true(sleep_with(5, 10, 20 * WB_SECOND) < 10 * WB_SECOND);
    assert_true(sleep_with(15, 10, 200 * WB_MILLISECOND) >= 200 * WB_MILLISECOND);
    /* told after it was cleared and before the sleep */
    wb_alarm_clear(&pipeline.alarm);
    wb_alarm_tell(&pipeline.alarm, 5);
    int64_t started = wb_clock_monotonic();
    wb_alarm_sleep(&pipeline.alarm, 10, 20 * WB_SECOND);
    wb_alarm_ring(&pipeline.alarm);
    wb_alarm_sleep(&pipeline.alarm, INT64_MIN, 20 * WB_SECOND);
    assert_true(wb_clock_monotonic() - started < 10 * WB_SECOND);
}

/* Stored behind the look, before it sleeps: it is not missed. */
static void test_told_while_looking(void **state)
{
    (void)state;
    fake_store.told_while_looking = fake_store.now + 10 * WB_MILLISECOND;
    poll_once();
    assert_int_equal(poll_until, WB_NEVER_DUE);
    int64_t started = wb_clock_monotonic();
    wb_alarm_sleep(&pipeline.alarm, poll_until, 20 * WB_SECOND);
    assert_true(wb_clock_monotonic() - started < 10 * WB_SECOND);
}

/* ---- circuit breakers ------------------------------------------------------------------ */

static void test_breaker(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "away" };
    wb_breaker *breaker = &pipeline.fetch_breaker;
    (void)state;
    breaker->after = 30 * WB_MILLISECOND;
    pipeline.stops_on_critical = 1;
    wb_breaker_failed(breaker, &pipeline, &error);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_false(pipeline.is_critical);
    wb_clock_pause(40 * WB_MILLISECOND, NULL);
    wb_breaker_succeeded(breaker, &pipeline);
    wb_breaker_failed(breaker, &pipeline, &error); /* arms anew */
    assert_false(breaker->is_open);
    wb_clock_pause(40 * WB_MILLISECOND, NULL);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_true(breaker->is_open);
    assert_true(pipeline.is_critical);
    wb_breaker_succeeded(breaker, &pipeline);
    assert_false(breaker->is_open);
}

static void test_breaker_goes_on(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "away" };
    (void)state;
    pipeline.fetch_breaker.after = 0;
    wb_breaker_failed(&pipeline.fetch_breaker, &pipeline, &error);
    wb_breaker_failed(&pipeline.fetch_breaker, &pipeline, &error);
    assert_true(pipeline.fetch_breaker.is_open);
    assert_false(pipeline.is_critical);
}

/* Who is started again has not met what was met before, and tells it again. */
static void test_breaker_is_reset(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "away" };
    wb_breaker *breaker = &pipeline.fetch_breaker;
    (void)state;
    breaker->after = 0;
    pipeline.stops_on_critical = 1;
    wb_breaker_failed(breaker, &pipeline, &error);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_true(breaker->is_open);
    pipeline.is_critical = 0;
    wb_breaker_reset(breaker);
    assert_false(breaker->is_open);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_false(pipeline.is_critical);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_true(pipeline.is_critical);
}

/* What fails while it stops is no trouble. */
static void test_breaker_of_who_stops(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "closing" };
    (void)state;
    pipeline.fetch_breaker.after = 0;
    pipeline.stops_on_critical = 1;
    pipeline.stop = 1;
    for (int i = 0; i < 3; i++)
        wb_breaker_failed(&pipeline.fetch_breaker, &pipeline, &error);
    assert_int_equal(pipeline.fetch_breaker.armed, 0);
    assert_false(pipeline.fetch_breaker.is_open);
    assert_false(pipeline.is_critical);
}

/* Open, it is one affair until something succeeds, however rarely it is tried. */
static void test_breaker_that_is_open_remembers(void **state)
{
    wb_error error = { .result = WB_NOT_CONNECTED, .text = "away" };
    wb_breaker *breaker = &pipeline.fetch_breaker;
    (void)state;
    breaker->after = 0;
    wb_breaker_failed(breaker, &pipeline, &error);
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_true(breaker->is_open);
    breaker->failed -= 7200 * WB_SECOND;
    breaker->armed -= 7200 * WB_SECOND;
    const int64_t since = breaker->armed;
    wb_breaker_failed(breaker, &pipeline, &error);
    assert_int_equal(breaker->armed, since);
    assert_true(breaker->is_open);
}

/* ---- delayed retries ------------------------------------------------------------------- */

static const wb_recoverability policy = { .delayed_retries = 3, .delay_increment = 10 * WB_SECOND };

static int64_t delay_of(wb_recoverability with, int may_wait, const char *retries, const char *since, int has_key)
{
    const wb_header headers[] = {
        { WB_HEADER_RETRIES, retries, sizeof WB_HEADER_RETRIES - 1, strlen(retries) },
        { WB_HEADER_RETRIES_TIMESTAMP, since, sizeof WB_HEADER_RETRIES_TIMESTAMP - 1, strlen(since) },
    };
    const wb_incoming incoming = { .id = "id", .id_size = 2, .headers = headers,
                                   .header_count = *since ? 2 : *retries ? 1 : 0 };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .may_wait = may_wait };
    const int64_t now = INT64_C(1800000000) * WB_SECOND; /* 2027-01-15 08:00:00 */
    return wb_recover_delay(&with, &(wb_retry_question){ &incoming, &failure, has_key, now });
}

static void test_delays_of_retries(void **state)
{
    wb_recoverability with = policy;
    (void)state;
    assert_int_equal(delay_of(policy, 1, "", "", 0), 10 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "1", "", 0), 20 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "2", "", 0), 30 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "3", "", 0), 0);
    assert_int_equal(delay_of(policy, 1, "99999999999999999999", "", 0), 0);
    assert_int_equal(delay_of(policy, 1, "nonsense", "", 0), 10 * WB_SECOND);
    assert_int_equal(delay_of(policy, 0, "", "", 0), 0);
    assert_int_equal(delay_of(policy, 1, "1", "2027-01-14 08:00:00:000000 Z", 0), 0); /* a day ago */
    assert_int_equal(delay_of(policy, 1, "1", "2027-01-14 08:00:01:000000 Z", 0), 20 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "1", "some day", 0), 20 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "0", "2020-01-01 08:00:00:000000 Z", 0), 10 * WB_SECOND);
    assert_int_equal(delay_of(policy, 1, "", "", 1), 0); /* its key keeps its order */
    with.on_failure = WB_ON_MESSAGE_FAILURE_DELAY;
    assert_int_equal(delay_of(with, 1, "", "", 1), 10 * WB_SECOND);
    with.on_failure = WB_ON_MESSAGE_FAILURE_BLOCK;
    assert_int_equal(delay_of(with, 1, "", "", 0), 0);
    with = policy;
    with.delay_jitter = 50;
    assert_in_range(delay_of(with, 1, "", "", 0), 10 * WB_SECOND, 15 * WB_SECOND - 1);
    with.delay_jitter = 0;
    with.delay_increment = INT64_MAX / 2;
    assert_true(delay_of(with, 1, "2", "", 0) > 0);
}

/* Not only what the delays add up to: after a day there are no more. */
static void test_span_of_retries(void **state)
{
    (void)state;
    assert_int_equal(wb_recover_span(0, 10 * WB_SECOND, 20), 0);
    assert_int_equal(wb_recover_span(3, 10 * WB_SECOND, 0), 60 * WB_SECOND);
    assert_int_equal(wb_recover_span(3, 10 * WB_SECOND, 50), 90 * WB_SECOND);
    assert_int_equal(wb_recover_span(1000, 8 * WB_HOURS, 0), (8 + 16) * WB_HOURS);
    assert_int_equal(wb_recover_span(1000, 365 * 24 * WB_HOURS, 100), 2 * 365 * 24 * WB_HOURS);
}

/* What failed at once does not come back at once; each attempt at a message asks for the same. */
static void test_jitter_spreads(void **state)
{
    const wb_recoverability with = { .delayed_retries = 3, .delay_increment = 10 * WB_SECOND, .delay_jitter = 50 };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .may_wait = 1 };
    int64_t least = INT64_MAX, most = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        char id[8];
        int size = snprintf(id, sizeof id, "id %d", i);
        const wb_incoming incoming = { .id = id, .id_size = (size_t)size };
        const wb_retry_question question = { &incoming, &failure, 0, fake_store.now };
        int64_t delay = wb_recover_delay(&with, &question);
        assert_int_equal(wb_recover_delay(&with, &question), delay);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_in_range(least, 10 * WB_SECOND, 11 * WB_SECOND);
    assert_in_range(most, 14 * WB_SECOND, 15 * WB_SECOND);
}

static int64_t wished(int on_failure, const char *since, int has_key)
{
    const wb_recoverability with = { .delayed_retries = 3, .delay_increment = 10 * WB_SECOND, .on_failure = on_failure };
    const wb_header headers[] = {
        { WB_HEADER_RETRIES, "1", sizeof WB_HEADER_RETRIES - 1, 1 },
        { WB_HEADER_RETRIES_TIMESTAMP, since, sizeof WB_HEADER_RETRIES_TIMESTAMP - 1, strlen(since) },
    };
    const wb_incoming incoming = { .id = "id", .id_size = 2, .headers = headers, .header_count = 2 };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .may_wait = 1, .delay = 7 * WB_SECOND };
    const int64_t now = INT64_C(1800000000) * WB_SECOND; /* 2027-01-15 08:00:00 */
    return wb_recover_delay(&with, &(wb_retry_question){ &incoming, &failure, has_key, now });
}

/* A handler says how long, not whether: the day and the order of keys hold for it as well. */
static void test_delays_that_are_wished(void **state)
{
    (void)state;
    assert_int_equal(wished(WB_ON_MESSAGE_FAILURE_BY_KEY, "2027-01-15 07:00:00:000000 Z", 0), 7 * WB_SECOND);
    assert_int_equal(wished(WB_ON_MESSAGE_FAILURE_BY_KEY, "2027-01-14 08:00:00:000000 Z", 0), 0);
    assert_int_equal(wished(WB_ON_MESSAGE_FAILURE_BY_KEY, "2027-01-15 07:00:00:000000 Z", 1), 0);
    assert_int_equal(wished(WB_ON_MESSAGE_FAILURE_DELAY, "2027-01-15 07:00:00:000000 Z", 1), 7 * WB_SECOND);
    assert_int_equal(wished(WB_ON_MESSAGE_FAILURE_BLOCK, "2027-01-15 07:00:00:000000 Z", 0), 0);
}

static void test_copy_that_is_retried(void **state)
{
    const wb_header headers[] = {
        { "a", "1", 1, 1 },
        { WB_HEADER_RETRIES, "1", sizeof WB_HEADER_RETRIES - 1, 1 },
        { WB_HEADER_RETRIES_TIMESTAMP, "2027-01-14 08:00:00:000000 Z", sizeof WB_HEADER_RETRIES_TIMESTAMP - 1, 28 },
        { "b", "2", 1, 1 },
    };
    const wb_incoming incoming = { .id = "id", .id_size = 2, .headers = headers, .header_count = 4,
                                   .body = "body", .body_size = 4, .key = "k", .key_size = 1 };
    wb_operation_list list = { 0 };
    (void)state;
    const wb_operation *copy = wb_recover_retry_operation(&pipeline.origin, &incoming, 77, &arena, &list);
    assert_string_equal(copy->destination, "e");
    assert_int_equal(copy->deliver_at, 77);
    assert_int_equal(copy->flags, WB_OPERATION_MANDATORY); /* who deleted the queue is not to lose it */
    assert_memory_equal(copy->id, "id", 2);
    assert_memory_equal(copy->body, "body", 4);
    assert_memory_equal(copy->key, "k", 1);
    assert_int_equal(copy->header_count, 4);
    assert_string_equal(WB_HEADERS_FIND(copy->headers, 4, WB_HEADER_RETRIES)->value, "2");
    assert_string_equal(WB_HEADERS_FIND(copy->headers, 4, WB_HEADER_RETRIES_TIMESTAMP)->value, headers[2].value);
    assert_non_null(WB_HEADERS_FIND(copy->headers, 4, "a"));
    assert_non_null(WB_HEADERS_FIND(copy->headers, 4, "b"));
    /* in the error queue it has the time alone, as .NET's has, and from there it begins anew */
    assert_true(wb_recover_is_failure_header(&headers[1]));
    const wb_header of_old = { WB_HEADER_FL_RETRIES, "5", sizeof WB_HEADER_FL_RETRIES - 1, 1 };
    assert_true(wb_recover_is_failure_header(&of_old));
    assert_false(wb_recover_is_failure_header(&headers[2]));
    const wb_incoming returned = { .id = "id", .id_size = 2, .headers = headers + 2, .header_count = 2 };
    copy = wb_recover_retry_operation(&pipeline.origin, &returned, 77, &arena, &list);
    assert_int_equal(copy->header_count, 3);
    /* by the clock that they are due by: it ends them after a day */
    assert_int_equal(strncmp(WB_HEADERS_FIND(copy->headers, 3, WB_HEADER_RETRIES_TIMESTAMP)->value, "1970-01-01 00:16:4", 18), 0);
}

/* Its workers have nothing to ask the database for. */
static void test_an_idle_endpoint_knows_that_its_database_is_away(void **state)
{
    int64_t until, sleep;
    (void)state;
    for (int is_away = 1; is_away >= 0; is_away--) {
        fake_store.is_away = is_away;
        wb_poller_round(&poller, &until, &sleep);
        assert_int_equal(wb_dependency_is_away(&pipeline.database), is_away);
    }
    fake_store.is_away = 1;
    poller.storage = (pipeline.persistence_ops->close(poller.storage), NULL);
    poller.only_drains = 1;
    wb_poller_round(&poller, &until, &sleep);
    assert_false(wb_dependency_is_away(&pipeline.database));
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        EACH(test_what_may_be_asked),
        EACH(test_delayed_events),
        EACH(test_what_no_version_has),
        EACH(test_times_of_people),
        EACH(test_formats),
        EACH(test_format_2_damaged),
        EACH(test_store_keeps_what_is_due_later),
        EACH(test_what_is_stored_is_not_sent_beside_suspects),
        EACH(test_store_is_told_the_retries),
        EACH(test_transport_is_told),
        EACH(test_nobody_delays_any_more),
        EACH(test_one_is_too_large),
        EACH(test_the_only_one_is_too_large),
        EACH(test_store_is_waited_for),
        EACH(test_store_is_not_waited_for),
        EACH(test_store_is_waited_for_by_nobody_else),
        EACH(test_store_is_waited_for_alive),
        EACH(test_store_is_lost),
        EACH(test_poller_sends_what_is_due),
        EACH(test_poller_drains_in_lots),
        EACH(test_several_are_gathered),
        EACH(test_more_are_gathered_beside_work),
        EACH(test_unknown_destination),
        EACH(test_refused_is_tried_again),
        EACH(test_refused_too_often),
        EACH(test_refused_event),
        EACH(test_refused_keep_the_next_lot_waiting),
        EACH(test_privilege_is_waited_for),
        EACH(test_partly_sent_is_not_given_back),
        EACH(test_partly_sent_is_not_tried_for_ever),
        EACH(test_partly_sent_and_late),
        EACH(test_error_queue_refuses),
        EACH(test_late_for_the_error_queue),
        EACH(test_silent_destination_keeps_nobody),
        EACH(test_removals_ride),
        EACH(test_ride_fails),
        EACH(test_next_is_begun_beside),
        EACH(test_begun_is_given_back),
        EACH(test_begun_is_given_back_each_time),
        EACH(test_scope_does_not_flow),
        EACH(test_nothing_is_begun_at_a_stop),
        EACH(test_begun_is_given_back_at_a_stop),
        EACH(test_begun_has_no_answer),
        EACH(test_begun_was_not_done),
        EACH(test_removed_within_two_windows),
        EACH(test_late_answer),
        EACH(test_recall_has_no_answer),
        EACH(test_next_cannot_be_begun),
        EACH(test_ride_has_no_next),
        EACH(test_refused_do_not_ride),
        EACH(test_silent_destination_is_left_alone),
        EACH(test_try_that_is_lost),
        EACH(test_many_silences),
        EACH(test_what_is_kept),
        EACH(test_broker_is_away),
        EACH(test_session_of_a_transaction_is_lost),
        EACH(test_database_is_away),
        EACH(test_remove_fails),
        EACH(test_remove_fails_and_nobody_remembers),
        EACH(test_nothing_can_be_removed),
        EACH(test_remove_fails_beside_a_refused_one),
        EACH(test_remove_failed_once),
        EACH(test_keys_have_retries),
        EACH(test_each_has_an_owner),
        EACH(test_remove_is_tried_again),
        EACH(test_breaker_forgets),
        EACH(test_breaker_forgets_between_lots),
        EACH(test_breaker_of_a_store_that_is_drained),
        EACH(test_a_store_that_is_absent),
        EACH(test_a_store_with_rows_is_not_given_up),
        EACH(test_a_store_that_refuses_is_asked_again),
        EACH(test_a_store_that_gives_nothing),
        EACH(test_other_refusals_have_other_pauses),
        EACH(test_locked_rows_are_waited_for),
        EACH(test_clock_of_delays),
        EACH(test_database_sets_its_clock),
        EACH(test_how_late_it_is),
        EACH(test_unreadable_is_left_alone),
        EACH(test_others_leases_are_waited_for),
        EACH(test_rests_while_the_endpoint_is_down),
        EACH(test_stops_when_the_endpoint_goes_down),
        EACH(test_alarm),
        EACH(test_told_while_looking),
        EACH(test_breaker),
        EACH(test_breaker_goes_on),
        EACH(test_breaker_is_reset),
        EACH(test_breaker_of_who_stops),
        EACH(test_breaker_that_is_open_remembers),
        EACH(test_delays_of_retries),
        EACH(test_jitter_spreads),
        EACH(test_span_of_retries),
        EACH(test_delays_that_are_wished),
        EACH(test_copy_that_is_retried),
        EACH(test_an_idle_endpoint_knows_that_its_database_is_away),
    };
    return cmocka_run_group_tests_name("delayed", tests, NULL, NULL);
}

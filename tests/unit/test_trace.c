/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces: what is a traceparent, which ids follow from which, and what an outgoing message says of its own.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <stdio.h>
#include <string.h>

#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/outgoing.h"
#include "core/message/trace.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define H(name, value) { name, value, sizeof(name) - 1, sizeof(value) - 1 }

static int keep_some(wb_observer *observer, const unsigned char trace_id[WB_TRACE_ID_SIZE])
{
    (void)trace_id;
    return observer == NULL;
}

static const wb_observer_ops all_ops = { .struct_size = sizeof all_ops };
static const wb_observer_ops some_ops = { .struct_size = sizeof some_ops, .samples = keep_some };
static const wb_tracing keeps_all = { &all_ops, (wb_observer *)"", };
static const wb_tracing keeps_none = { &some_ops, (wb_observer *)"" };
static const wb_tracing asks = { &some_ops, NULL };
static const wb_text orders = { "orders", 6 }, billing = { "billing", 7 };

/* ---- traceparent ------------------------------------------------------------------ */

static void test_read(void **state)
{
    static const struct {
        const char *text;
        int is_one;
        uint32_t flags;
    } cases[] = {
        { PARENT, 1, 1 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 1, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", 1, 1 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", 1, 0 },
        { "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1, 1 },
        { "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes", 1, 1 },
        { "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what-comes", 0, 0 },
        { PARENT "-more", 0, 0 },
        { PARENT "0", 0, 0 },
        { "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0, 0 },
        { "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x", 0, 0 },
        { "x0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0, 0 },
        { "00.0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c.b7ad6b7169203331-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331.01", 0, 0 },
        { "00-00000000000000000000000000000000-b7ad6b7169203331-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", 0, 0 },
        { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", 0, 0 },
        { "", 0, 0 },
    };
    static const wb_trace none;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wb_trace trace;
        memset(&trace, 1, sizeof trace);
        if (wb_trace_read(cases[i].text, strlen(cases[i].text), &trace) != cases[i].is_one)
            fail_msg("%s: should %s be one", cases[i].text, cases[i].is_one ? "" : "not");
        assert_int_equal(trace.flags, cases[i].flags);
        assert_int_equal(wb_trace_is_set(&trace), cases[i].is_one);
        if (!cases[i].is_one)
            assert_memory_equal(&trace, &none, sizeof none);
    }
}

static void test_write(void **state)
{
    char text[WB_TRACE_PARENT_SIZE];
    wb_trace trace;
    (void)state;
    assert_int_equal(wb_trace_read(PARENT, sizeof PARENT - 1, &trace), 1);
    wb_trace_write(&trace, text);
    assert_string_equal(text, PARENT);
    trace.flags = 0xfe; /* of which none is known */
    wb_trace_write(&trace, text);
    assert_string_equal(text + 53, "00");
}

/* ---- ids that follow from ids -------------------------------------------------------- */

static int is_same_span(const wb_trace *a, const wb_trace *b)
{
    return memcmp(a->span_id, b->span_id, WB_SPAN_ID_SIZE) == 0;
}

static int is_same_trace(const wb_trace *a, const wb_trace *b)
{
    return memcmp(a->trace_id, b->trace_id, WB_TRACE_ID_SIZE) == 0;
}

static void test_handle(void **state)
{
    static const wb_header named[] = { H(WB_HEADER_TRACE_PARENT, PARENT) };
    char text[WB_TRACE_PARENT_SIZE];
    wb_trace a, b;
    (void)state;
    assert_int_equal(wb_trace_handle(&keeps_none, &orders, named, 1, "m", 1, &a), 1);
    wb_trace_write(&a, text);
    assert_memory_equal(text, PARENT, 36);            /* its trace, whatever the observer would say */
    assert_string_equal(text + 52, "-01");
    assert_memory_equal(a.parent_id, "\xb7\xad\x6b\x71\x69\x20\x33\x31", WB_SPAN_ID_SIZE);
    assert_int_equal(wb_trace_handle(&keeps_none, &orders, named, 1, "m", 1, &b), 1);
    assert_true(is_same_span(&a, &b)); /* every attempt, every process */
    assert_int_equal(wb_trace_handle(&keeps_all, &billing, named, 1, "m", 1, &b), 1);
    assert_false(is_same_span(&a, &b)); /* another endpoint handles the same event */
    assert_int_equal(wb_trace_handle(&keeps_all, &orders, named, 1, "n", 1, &b), 1);
    assert_false(is_same_span(&a, &b));
    assert_int_equal(wb_trace_handle(&keeps_all, &orders, named, 1, NULL, 0, &b), 1);
    assert_true(is_same_trace(&a, &b));
    wb_trace_fail(&b);
    assert_true(is_same_trace(&a, &b));
    assert_memory_equal(a.parent_id, b.parent_id, WB_SPAN_ID_SIZE);
    a = b;
    wb_trace_fail(&b);
    assert_false(is_same_span(&a, &b));
}

static void test_begin(void **state)
{
    static const wb_header wrong[] = { H(WB_HEADER_TRACE_PARENT, PARENT "-more") };
    static const wb_trace none;
    wb_trace a, b;
    (void)state;
    assert_int_equal(wb_trace_handle(&keeps_all, &orders, wrong, 1, "m", 1, &a), 0);
    assert_true(wb_trace_is_set(&a));
    assert_int_equal(a.flags, WB_TRACE_SAMPLED);
    assert_memory_equal(a.parent_id, none.parent_id, WB_SPAN_ID_SIZE);
    assert_int_equal(wb_trace_handle(&keeps_none, &orders, NULL, 0, "m", 1, &b), 0);
    assert_true(is_same_trace(&a, &b) && is_same_span(&a, &b));
    assert_int_equal(b.flags, 0);
    (void)wb_trace_handle(&asks, &orders, NULL, 0, "m", 1, &b);
    assert_int_equal(b.flags, WB_TRACE_SAMPLED);
    (void)wb_trace_handle(&keeps_all, &billing, NULL, 0, "m", 1, &b);
    assert_false(is_same_trace(&a, &b));
    (void)wb_trace_handle(&keeps_all, &orders, NULL, 0, "m\0", 2, &b);
    assert_false(is_same_trace(&a, &b));
    assert_int_equal(wb_trace_handle(&keeps_all, &orders, NULL, 0, NULL, 0, &b), 0);
    assert_memory_equal(&b, &none, sizeof none); /* nothing tells it from others */
    wb_trace_fail(&b);
    assert_memory_equal(&b, &none, sizeof none);
}

/* A rolling upgrade has two versions at work: these never change. */
static void test_never_changes(void **state)
{
    static const wb_operation operation = { .struct_size = sizeof operation, .id = "out", .id_size = 3, .destination = "q" };
    static const wb_message cause = { .struct_size = sizeof cause, .id = "m", .id_size = 1 };
    char text[WB_TRACE_PARENT_SIZE];
    wb_trace trace;
    (void)state;
    (void)wb_trace_handle(&keeps_all, &orders, NULL, 0, "m", 1, &trace);
    wb_trace_write(&trace, text);
    assert_string_equal(text, "00-2d5004ca235b2b48f8b238115e93765f-31dbeb0123c21347-01");
    (void)wb_trace_send(&keeps_all, &orders, &operation, &cause, 1, &trace);
    wb_trace_write(&trace, text);
    assert_string_equal(text, "00-2d5004ca235b2b48f8b238115e93765f-ac794b3eda92fe68-01");
}

/* ---- outgoing messages ------------------------------------------------------------------ */

typedef struct {
    wb_arena arena;
    wb_origin origin;
    wb_operation_list list;
    wb_header headers[4];
    wb_message cause;
} fixture;

static void set_up(fixture *f, const wb_tracing *tracing)
{
    memset(f, 0, sizeof *f);
    wb_arena_init(&f->arena, 4096);
    f->origin = wb_origin_make("orders", 1, 1000);
    f->origin.tracing = tracing;
    f->cause = (wb_message){ .struct_size = sizeof f->cause, .id = "m", .id_size = 1, .headers = f->headers };
}

static const wb_operation *send(fixture *f, const wb_message *cause, const wb_outgoing *more)
{
    wb_outgoing outgoing = more ? *more : (wb_outgoing){ 0 };
    wb_error error;
    outgoing.destination = "q";
    outgoing.type = "T";
    assert_int_equal(wb_outgoing_add(&f->origin, WB_KIND_SEND, &outgoing, sizeof outgoing, cause, (uint32_t)f->list.count,
                                     &f->arena, &f->list, &error), WB_OK);
    return &f->list.last->operation;
}

static const char *header_of(const wb_operation *operation, const char *name)
{
    const wb_header *header = wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
    return header ? header->value : NULL;
}

static void test_send(void **state)
{
    fixture f;
    wb_trace handling, sending;
    (void)state;
    set_up(&f, &keeps_all);
    f.headers[0] = (wb_header)H(WB_HEADER_TRACE_PARENT, PARENT);
    f.headers[1] = (wb_header)H(WB_HEADER_TRACE_STATE, "x=1");
    f.headers[2] = (wb_header)H(WB_HEADER_BAGGAGE, "b=2");
    f.cause.header_count = 3;
    const wb_operation *operation = send(&f, &f.cause, NULL);
    (void)wb_trace_handle(&keeps_all, &orders, f.headers, 3, "m", 1, &handling);
    assert_int_equal(wb_trace_sent(&orders, operation, &sending), 1);
    assert_true(is_same_trace(&handling, &sending));
    assert_memory_equal(sending.parent_id, handling.span_id, WB_SPAN_ID_SIZE);
    assert_string_equal(header_of(operation, WB_HEADER_TRACE_STATE), "x=1");
    assert_string_equal(header_of(operation, WB_HEADER_BAGGAGE), "b=2");
    assert_int_equal(wb_trace_sent(&billing, operation, &sending), 0); /* another endpoint passes it on */
    wb_operation moved = *operation;
    moved.destination = "error";
    assert_int_equal(wb_trace_sent(&orders, &moved, &sending), 0); /* its copy, in another queue */
    assert_true(header_of(send(&f, &f.cause, NULL), WB_HEADER_TRACE_PARENT) != NULL);
    assert_string_not_equal(header_of(send(&f, &f.cause, NULL), WB_HEADER_TRACE_PARENT), header_of(operation, WB_HEADER_TRACE_PARENT));
    f.headers[0].value = "nonsense";
    f.headers[0].value_size = 8;
    operation = send(&f, &f.cause, NULL);
    assert_int_equal(wb_trace_sent(&orders, operation, &sending), 1);
    assert_false(is_same_trace(&handling, &sending));
    assert_null(header_of(operation, WB_HEADER_TRACE_STATE)); /* that of another trace, if of any */
    assert_string_equal(header_of(operation, WB_HEADER_BAGGAGE), "b=2");
    wb_arena_free(&f.arena);
}

/* Whose handling asked for it cannot be told from what a program says of it: then nobody's did. */
static void test_send_related_to_another(void **state)
{
    static const wb_header own[] = { H(WB_HEADER_RELATED_TO, "other") };
    static const wb_outgoing with = { .headers = own, .header_count = 1 };
    static const wb_trace none;
    fixture f;
    wb_trace handling, sending;
    (void)state;
    set_up(&f, &keeps_all);
    (void)wb_trace_handle(&keeps_all, &orders, NULL, 0, "m", 1, &handling);
    assert_int_equal(wb_trace_sent(&orders, send(&f, &f.cause, &with), &sending), 1);
    assert_true(is_same_trace(&handling, &sending));
    assert_memory_equal(sending.parent_id, none.parent_id, WB_SPAN_ID_SIZE);
    assert_int_equal(wb_trace_sent(&orders, send(&f, NULL, &with), &sending), 1);
    assert_memory_equal(sending.parent_id, none.parent_id, WB_SPAN_ID_SIZE);
    wb_arena_free(&f.arena);
}

static void test_send_without_cause(void **state)
{
    static const wb_header own[] = { H(WB_HEADER_TRACE_PARENT, PARENT) };
    static const wb_outgoing with = { .headers = own, .header_count = 1 };
    static const wb_trace none;
    fixture f;
    wb_trace sending;
    (void)state;
    set_up(&f, &keeps_all);
    assert_int_equal(wb_trace_sent(&orders, send(&f, NULL, NULL), &sending), 1);
    assert_memory_equal(sending.parent_id, none.parent_id, WB_SPAN_ID_SIZE);
    f.cause.id = NULL; /* a message that tells nothing: what it causes begins a trace */
    f.cause.id_size = 0;
    f.cause.header_count = 0;
    const wb_operation *operation = send(&f, NULL, &with);
    assert_string_equal(header_of(operation, WB_HEADER_TRACE_PARENT), PARENT); /* what a caller says counts */
    assert_int_equal(wb_trace_sent(&orders, operation, &sending), 0);
    wb_arena_free(&f.arena);
}

static void test_nobody_traces(void **state)
{
    fixture f;
    (void)state;
    set_up(&f, NULL);
    assert_null(header_of(send(&f, &f.cause, NULL), WB_HEADER_TRACE_PARENT));
    f.headers[0] = (wb_header)H(WB_HEADER_TRACE_PARENT, PARENT);
    f.cause.header_count = 1;
    assert_string_equal(header_of(send(&f, &f.cause, NULL), WB_HEADER_TRACE_PARENT), PARENT);
    wb_arena_free(&f.arena);
}

/* Where a message has headers up to the limit, it goes without. */
static void test_no_room(void **state)
{
    static char value[30 * 1024];
    fixture f;
    wb_header own[2] = { { "a", value, 1, sizeof value - 1 }, { "b", value, 1, sizeof value - 1 } };
    const wb_outgoing full = { .headers = own, .header_count = 2 };
    (void)state;
    memset(value, 'v', sizeof value - 1);
    set_up(&f, &keeps_all);
    assert_null(header_of(send(&f, NULL, &full), WB_HEADER_TRACE_PARENT));
    own[1].value_size -= sizeof WB_HEADER_TRACE_PARENT - 1 + WB_TRACE_PARENT_SIZE - 1;
    assert_non_null(header_of(send(&f, NULL, &full), WB_HEADER_TRACE_PARENT));
    own[1].value_size++;
    assert_null(header_of(send(&f, NULL, &full), WB_HEADER_TRACE_PARENT));
    wb_arena_free(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_handle),
        cmocka_unit_test(test_begin),
        cmocka_unit_test(test_never_changes),
        cmocka_unit_test(test_send),
        cmocka_unit_test(test_send_related_to_another),
        cmocka_unit_test(test_send_without_cause),
        cmocka_unit_test(test_nobody_traces),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

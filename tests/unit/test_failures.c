/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages: what they are known by, what is kept of them, and which of them an endpoint that
 * keeps failures takes for its own.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <waybill/handler.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/failures/edit.h"
#include "core/failures/ingest.h"
#include "core/failures/record.h"
#include "core/message/failed_id.h"
#include "core/message/header_names.h"
#include "core/message/text.h"
#include "core/pipeline/admit.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/follow.h"

#define HEADER(name, value) { (name), (value), sizeof(name) - 1, sizeof(value) - 1 }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const wb_header failed[] = {
    HEADER(WB_HEADER_FAILED_QUEUE, "orders"),
    HEADER(WB_HEADER_PROCESSING_ENDPOINT, "Orders"),
    HEADER(WB_HEADER_TIME_OF_FAILURE, "2026-01-01 00:00:01:000000 Z"),
    HEADER(WB_HEADER_TYPES, "Sales.PlaceOrder, Sales;Sales.ICommand"),
    HEADER(WB_HEADER_EXCEPTION_TYPE, "Waybill.HandlerFailed"),
    HEADER(WB_HEADER_EXCEPTION_MESSAGE, "amount 17 of order 4711 is odd"),
};

/* ---- ids ---------------------------------------------------------------------------------- */

typedef void (*id_of)(const wb_header *headers, size_t count, const void *id, size_t id_size, char *ret);

/* Whether it changes when one header does. */
static int depends_on(id_of make, size_t header)
{
    wb_header headers[COUNT(failed)];
    char before[WB_GENERATED_ID_SIZE], after[WB_GENERATED_ID_SIZE];
    memcpy(headers, failed, sizeof failed);
    make(failed, COUNT(failed), "m", 1, before);
    headers[header].value_size--;
    make(headers, COUNT(failed), "m", 1, after);
    return strcmp(before, after) != 0;
}

static void test_ids(void **state)
{
    char one[WB_GENERATED_ID_SIZE], other[WB_GENERATED_ID_SIZE];
    (void)state;
    for (size_t i = 0; i < COUNT(failed); i++) {
        assert_int_equal(depends_on(wb_failed_key, i), i == 1);
        assert_int_equal(depends_on(wb_failed_claim, i), i < 3);
    }
    wb_failed_key(failed, COUNT(failed), "m", 1, one);
    wb_failed_key(failed, COUNT(failed), "n", 1, other);
    assert_string_not_equal(one, other);
    assert_int_equal(strlen(one), WB_GENERATED_ID_SIZE - 1);
    assert_int_equal(one[14], '8');
    wb_failed_claim(failed, COUNT(failed), "m", 1, other);
    assert_string_not_equal(one, other);
}

/* Without an endpoint the queue says whose it is; without a time each copy is a failure. */
static void test_ids_of_little(void **state)
{
    static const wb_header few[] = { HEADER(WB_HEADER_FAILED_QUEUE, "orders") };
    static const wb_header others[] = { HEADER(WB_HEADER_FAILED_QUEUE, "others") };
    char one[WB_GENERATED_ID_SIZE], other[WB_GENERATED_ID_SIZE];
    (void)state;
    wb_failed_key(few, 1, "m", 1, one);
    wb_failed_key(others, 1, "m", 1, other);
    assert_string_not_equal(one, other);
    wb_failed_claim(few, 1, "m", 1, one);
    wb_failed_claim(few, 1, "m", 1, other);
    assert_string_not_equal(one, other);
}

static void test_answers(void **state)
{
    static const wb_header answer[] = { HEADER(WB_HEADER_RETRY_SUCCESSFUL, "2026-01-01 00:00:01:000000 Z"),
                                        HEADER(WB_HEADER_RETRY_UNIQUE_ID, "u"), HEADER(WB_HEADER_FAILED_QUEUE, "q") };
    (void)state;
    assert_ptr_equal(wb_failed_answer(answer, 2), &answer[1]);
    assert_null(wb_failed_answer(answer, 3)); /* an answer that failed elsewhere */
    assert_null(wb_failed_answer(answer, 1));
    assert_null(wb_failed_answer(answer + 1, 1)); /* a message that was sent back */
}

/* Retried again, a message is answered for with the id of the first time. */
static void test_ids_of_answers(void **state)
{
    wb_header answer[] = { HEADER(WB_HEADER_RETRY_SUCCESSFUL, "2026-01-01 00:00:01:000000 Z"), HEADER(WB_HEADER_RETRY_UNIQUE_ID, "u") };
    char one[WB_GENERATED_ID_SIZE], copy[WB_GENERATED_ID_SIZE], next[WB_GENERATED_ID_SIZE];
    (void)state;
    wb_failed_claim(answer, 2, "m", 1, one);
    wb_failed_claim(answer, 2, "m", 1, copy);
    answer[0] = (wb_header)HEADER(WB_HEADER_RETRY_SUCCESSFUL, "2026-01-01 00:00:02:000000 Z");
    wb_failed_claim(answer, 2, "m", 1, next);
    assert_string_equal(one, copy);
    assert_string_not_equal(one, next);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static wb_message make_message(const wb_header *headers, size_t count)
{
    return (wb_message){ .struct_size = sizeof(wb_message), .id = "m", .id_size = 1, .body = "b\0dy", .body_size = 4,
                         .headers = headers, .header_count = count, .key = "k", .key_size = 1 };
}

static void expect_text(wb_text text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.value, expected, text.size);
}

static void test_a_record(void **state)
{
    const wb_message message = make_message(failed, COUNT(failed));
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_arena arena;
    wb_failed_record record, few;
    (void)state;
    wb_arena_init(&arena, 1024);
    wb_failed_encode(&message, 0, &summary, &whole);
    assert_int_equal(wb_failed_decode(whole.data, whole.size, &arena, &record), 0);
    assert_int_equal(wb_failed_decode(summary.data, summary.size, &arena, &few), 0);
    for (const wb_failed_record *r = &record; r; r = r == &record ? &few : NULL) {
        expect_text(r->id, "m");
        expect_text(r->queue, "orders");
        expect_text(r->endpoint, "Orders");
        expect_text(r->type, "Sales.PlaceOrder");
        expect_text(r->kind, "Waybill.HandlerFailed");
        expect_text(r->reason, "amount 17 of order 4711 is odd");
    }
    assert_string_equal(record.group, few.group);
    assert_int_equal(record.operation->header_count, COUNT(failed));
    assert_int_equal(record.operation->body_size, 4);
    assert_memory_equal(record.operation->body, "b\0dy", 4);
    assert_string_equal(record.operation->key, "k");
    assert_int_equal(few.operation->body_size, 0);
    assert_int_equal(wb_failed_decode("WBO9", 4, &arena, &record), WB_UNREAD_LATER);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    wb_arena_free(&arena);
}

static void group_of(const char *type, const char *reason, char group[WB_FAILED_GROUP_SIZE])
{
    const wb_header headers[] = { HEADER(WB_HEADER_FAILED_QUEUE, "orders"),
                                  { WB_HEADER_TYPES, type, sizeof WB_HEADER_TYPES - 1, strlen(type) },
                                  { WB_HEADER_EXCEPTION_MESSAGE, reason, sizeof WB_HEADER_EXCEPTION_MESSAGE - 1, strlen(reason) } };
    const wb_message message = make_message(headers, COUNT(headers));
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_arena arena;
    wb_failed_record record;
    wb_arena_init(&arena, 1024);
    wb_failed_encode(&message, 0, &summary, &whole);
    assert_int_equal(wb_failed_decode(summary.data, summary.size, &arena, &record), 0);
    memcpy(group, record.group, WB_FAILED_GROUP_SIZE);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    wb_arena_free(&arena);
}

static void expect_same(int is_same, const char *type, const char *reason)
{
    char first[WB_FAILED_GROUP_SIZE], second[WB_FAILED_GROUP_SIZE];
    group_of("A.B", "order 17 is late", first);
    group_of(type, reason, second);
    assert_int_equal(strcmp(first, second) == 0, is_same);
}

static void test_groups(void **state)
{
    char long_one[2 * WB_FAILED_REASON_MAX], group[WB_FAILED_GROUP_SIZE];
    (void)state;
    expect_same(1, "A.B", "order 4 is late");
    expect_same(1, "A.B, Assembly", "order 170000 is late");
    expect_same(0, "A.B", "order is late");
    expect_same(0, "A.C", "order 17 is late");
    expect_same(0, "A.B", "order 17 is early");
    memset(long_one, 'x', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = '\0';
    group_of("A.B", long_one, group);
    assert_int_equal(strlen(group), WB_FAILED_GROUP_SIZE - 1);
}

/* What lists show of texts that may be long, and what a group is made of. */
static const char *const texts[] = { WB_HEADER_EXCEPTION_MESSAGE, WB_HEADER_EXCEPTION_TYPE, WB_HEADER_PROCESSING_ENDPOINT };

/* One of so many bytes, that character, and more. */
static void check_long_text(size_t which, size_t before, const char *character)
{
    char text[WB_FAILED_REASON_MAX + 20], cut[sizeof text];
    const size_t end = before + strlen(character), wanted = end > WB_FAILED_REASON_MAX ? before : WB_FAILED_REASON_MAX;
    memset(text, 'x', sizeof text);
    memcpy(text + before, character, strlen(character));
    const wb_header headers[] = { HEADER(WB_HEADER_FAILED_QUEUE, "orders"), { texts[which], text, strlen(texts[which]), sizeof text } };
    const wb_message message = make_message(headers, COUNT(headers));
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_arena arena;
    wb_failed_record few, all;
    wb_arena_init(&arena, 4096);
    wb_failed_encode(&message, 0, &summary, &whole);
    assert_int_equal(wb_failed_decode(summary.data, summary.size, &arena, &few), 0);
    assert_int_equal(wb_failed_decode(whole.data, whole.size, &arena, &all), 0);
    const wb_text shown[] = { few.reason, few.kind, few.endpoint };
    assert_int_equal(shown[which].size, wanted);
    memcpy(cut, shown[which].value, wanted);
    assert_memory_equal(wb_text_mend(cut, wanted), text, wanted); /* nothing is to be mended */
    assert_string_equal(few.group, all.group);
    assert_int_equal(all.operation->headers[1].value_size, sizeof text);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    wb_arena_free(&arena);
}

/* Wherever a character of any size is at the end of what is kept of them. */
static void test_long_texts(void **state)
{
    static const char *const characters[] = { "y", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t k = 0; k < COUNT(characters); k++)
            for (size_t before = WB_FAILED_REASON_MAX - 5; before <= WB_FAILED_REASON_MAX; before++)
                check_long_text(i, before, characters[k]);
}

/* ---- edited ------------------------------------------------------------------------------------ */

static const wb_header *find_only(const wb_operation *operation, const char *name)
{
    const wb_header *found = NULL;
    for (size_t i = 0; i < operation->header_count; i++)
        if (operation->headers[i].name_size == strlen(name) && memcmp(operation->headers[i].name, name, strlen(name)) == 0) {
            assert_null(found);
            found = &operation->headers[i];
        }
    return found;
}

static void expect_header(const wb_operation *operation, const char *name, const char *value)
{
    const wb_header *found = find_only(operation, name);
    assert_int_equal(found != NULL, value != NULL);
    if (value)
        expect_text((wb_text){ found->value, found->value_size }, value);
}

static void test_edit(void **state)
{
    static const wb_header headers[] = { HEADER(WB_HEADER_MESSAGE_ID, "m"), HEADER("mine", "1"), HEADER("mine", "2"),
                                         HEADER("spare", "x"), HEADER("stays", "y") };
    static const wb_header set[] = { HEADER("mine", "3"), HEADER("new", "") }, removed[] = { HEADER("spare", ""), HEADER("none", "") };
    wb_failed_edit edit = { .headers = set, .header_count = 2, .removed = removed, .removed_count = 2 };
    wb_operation first = { .id = "m", .id_size = 1, .headers = headers, .header_count = COUNT(headers), .body = "b", .body_size = 1 };
    wb_operation second = first;
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 1024);
    wb_failed_edit_apply(&edit, "key", 3, &first, &arena);
    assert_int_equal(first.id_size, WB_GENERATED_ID_SIZE - 1);
    expect_header(&first, WB_HEADER_MESSAGE_ID, first.id);
    expect_header(&first, "mine", "3");
    expect_header(&first, "new", "");
    expect_header(&first, "spare", NULL);
    expect_header(&first, "stays", "y");
    expect_header(&first, WB_HEADER_EDIT_OF, "key");
    expect_text((wb_text){ first.body, first.body_size }, "b");
    edit = (wb_failed_edit){ .has_body = 1, .body = "", .body_size = 0 };
    wb_failed_edit_apply(&edit, "key", 3, &second, &arena);
    assert_int_equal(second.body_size, 0);
    assert_string_not_equal(first.id, second.id);
    wb_arena_free(&arena);
}

static int check_edit(const wb_header *set, const wb_header *removed)
{
    wb_error error = { 0 };
    const wb_failed_edit edit = { .headers = set, .header_count = set != NULL, .removed = removed, .removed_count = removed != NULL };
    const int result = wb_failed_edit_check(&edit, &error);
    assert_int_equal(result != WB_OK, *error.text != '\0');
    return result;
}

static void test_what_is_not_edited(void **state)
{
    static const wb_header refused[] = { HEADER(WB_HEADER_MESSAGE_ID, "x"), HEADER(WB_HEADER_FAILED_QUEUE, "x"),
                                         HEADER(WB_HEADER_EXCEPTION_MESSAGE, "x"), HEADER(WB_HEADER_RETRIES, "1"),
                                         HEADER(WB_HEADER_RETRY_UNIQUE_ID, "x"), HEADER(WB_HEADER_EDIT_OF, "x"), HEADER("", "x"),
                                         HEADER("a\n", "x") };
    static const wb_header odd = HEADER("a", "\001"), types = HEADER(WB_HEADER_TYPES, "A.B"), twice[] = { HEADER("a", "1"), HEADER("a", "2") };
    const wb_failed_edit edit = { .headers = twice, .header_count = 2 };
    wb_error error = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_int_equal(check_edit(&refused[i], NULL), WB_REJECT);
        assert_int_equal(check_edit(NULL, &refused[i]), WB_REJECT);
    }
    assert_int_equal(check_edit(&odd, NULL), WB_REJECT);
    assert_int_equal(check_edit(NULL, &odd), WB_OK);
    assert_int_equal(check_edit(&types, &types), WB_OK);
    assert_int_equal(wb_failed_edit_check(&edit, &error), WB_REJECT);
}

/* ---- the pipeline ------------------------------------------------------------------------------ */

static wb_handler_entry entry = { .type = "*", .module = "test" };
static const wb_handler_set handlers = { .entries = &entry, .count = 1, .other = &entry };
static wb_pipeline pipeline;
static wb_worker worker;

static int set_up(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "kept", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers, .failures = 1,
                              .batch_max = 8, .batch_time = WB_SECOND, .transport_ops = &ops, .body_max = 1024,
                              .recoverability = { .immediate_retries = 5, .error_queue = "kept.error" },
                              .origin = wb_origin_make("kept", 1, 1024) };
    wb_pipeline_init(&pipeline);
    wb_worker_init(&worker, &pipeline, 0);
    entry.one = wb_failures_module.handlers[0].one;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_batch_drop_all(&worker);
    wb_worker_free(&worker);
    wb_pipeline_free(&pipeline);
    return 0;
}

static wb_item *admit(wb_incoming *incoming, const wb_header *headers, size_t count)
{
    *incoming = (wb_incoming){ .struct_size = sizeof *incoming, .id = "m", .id_size = 1, .headers = headers,
                               .header_count = count, .body = "body", .body_size = 4 };
    wb_item *item = wb_batch_hold(&worker, incoming, NULL);
    wb_admit(&worker, item);
    return item;
}

/* Two copies of one failure are one, the next failure of that message is another; its own id is what handlers see. */
static void test_what_is_claimed(void **state)
{
    wb_header later[COUNT(failed)];
    wb_incoming incoming[3];
    (void)state;
    memcpy(later, failed, sizeof failed);
    later[2] = (wb_header)HEADER(WB_HEADER_TIME_OF_FAILURE, "2026-01-01 00:00:02:000000 Z");
    const wb_item *first = admit(&incoming[0], failed, COUNT(failed)), *copy = admit(&incoming[1], failed, COUNT(failed));
    const wb_item *second = admit(&incoming[2], later, COUNT(later));
    assert_true(wb_item_is_same(first, copy));
    assert_false(wb_item_is_same(first, second));
    assert_string_equal(first->message.id, "m");
    assert_string_not_equal(first->id, "m");
}

/* A control message that failed elsewhere, and an answer, are for the handler; one that is neither is not. */
static void test_control_messages(void **state)
{
    static const wb_header control[] = { HEADER(WB_HEADER_CONTROL_MESSAGE, "True"), HEADER(WB_HEADER_FAILED_QUEUE, "q") };
    static const wb_header answer[] = { HEADER(WB_HEADER_CONTROL_MESSAGE, "True"), HEADER(WB_HEADER_RETRY_SUCCESSFUL, "now"),
                                        HEADER(WB_HEADER_RETRY_UNIQUE_ID, "u") };
    wb_incoming incoming[3];
    (void)state;
    assert_int_equal(admit(&incoming[0], control, 2)->handler_count, 1);
    assert_int_equal(admit(&incoming[1], control, 1)->handler_count, 0);
    const wb_item *item = admit(&incoming[2], answer, 3);
    assert_int_equal(item->handler_count, 1);
    assert_string_not_equal(item->id, "m");
    assert_string_equal(item->message.id, "m");
}

/* What an endpoint that keeps failures takes may have more headers than what others take. */
static void test_long_failures(void **state)
{
    char trace[WB_INCOMING_HEADERS_SIZE_MAX + 1000];
    wb_header headers[COUNT(failed) + 1];
    wb_incoming incoming[3];
    (void)state;
    memset(trace, 'x', sizeof trace);
    memcpy(headers, failed, sizeof failed);
    headers[COUNT(failed)] = (wb_header)HEADER(WB_HEADER_EXCEPTION_STACK_TRACE, "");
    headers[COUNT(failed)].value = trace;
    headers[COUNT(failed)].value_size = sizeof trace - 1;
    assert_int_equal(admit(&incoming[0], headers, COUNT(headers))->verdict, WB_VERDICT_OPEN);
    headers[COUNT(failed)].value_size = WB_INCOMING_HEADERS_SIZE_MAX;
    pipeline.failures = 0;
    assert_int_equal(admit(&incoming[1], headers, COUNT(headers))->verdict, WB_VERDICT_FAILED);
}

/* It may be kept by another, and sent back from there: where it failed, and why, is what it was. */
static void test_what_cannot_be_kept(void **state)
{
    static const wb_header more[] = { HEADER(WB_HEADER_TRIMMED, "large"), HEADER(WB_HEADER_NOT_KEPT, "before"), HEADER("mine", "1") };
    wb_header headers[COUNT(failed) + COUNT(more)];
    char reason[] = "the body has 17 bytes";
    const wb_failure failure = { .kind = WB_FAILURE_TOO_LARGE, .reason = reason };
    wb_incoming incoming = { .struct_size = sizeof incoming, .id = "m", .id_size = 1, .headers = headers, .header_count = COUNT(headers) };
    wb_failed_message message = { .incoming = &incoming, .failure = &failure, .keeps_failure = 1 };
    wb_operation_list list = { 0 };
    wb_arena arena;
    (void)state;
    memcpy(headers, failed, sizeof failed);
    memcpy(headers + COUNT(failed), more, sizeof more);
    wb_arena_init(&arena, 4096);
    const wb_operation *moved = wb_recover_error_operation(&pipeline.recoverability, &pipeline.origin, &message, &arena, &list);
    for (size_t i = 0; i < COUNT(failed); i++)
        expect_header(moved, failed[i].name, failed[i].value);
    expect_header(moved, WB_HEADER_NOT_KEPT, "the body has 17 bytes");
    expect_header(moved, WB_HEADER_TRIMMED, "large");
    expect_header(moved, "mine", "1");
    message.trim = WB_TRIM_MAX;
    moved = wb_recover_error_operation(&pipeline.recoverability, &pipeline.origin, &message, &arena, &list);
    expect_header(moved, WB_HEADER_FAILED_QUEUE, "orders");
    wb_arena_free(&arena);
}

/* What was sent back and failed again still says where it wants to be told that it was handled; who keeps it has not. */
static void test_no_answers(void **state)
{
    static const wb_header again[] = { HEADER(WB_HEADER_FAILED_QUEUE, "q"), HEADER(WB_HEADER_RETRY_UNIQUE_ID, "u"),
                                       HEADER(WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE, "error") };
    wb_incoming incoming[2];
    (void)state;
    wb_item *item = admit(&incoming[0], again, 3), *copy = admit(&incoming[1], again, 3);
    wb_follow_handled(&worker, item);
    assert_int_equal(item->operations.count, 0);
    assert_int_equal(wb_follow_duplicate(&worker, copy), 0);
    assert_int_equal(copy->operations.count, 0);
    pipeline.failures = 0;
    wb_follow_handled(&worker, item);
    assert_int_equal(item->operations.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_ids_of_little),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_ids_of_answers),
        cmocka_unit_test(test_a_record),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_edit),
        cmocka_unit_test(test_what_is_not_edited),
        cmocka_unit_test_setup_teardown(test_what_is_claimed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_control_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_answers, set_up, tear_down),
    };
    wb_log_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from a message being handled: the audit copy, and the acknowledgement that
 * ServiceControl waits for.
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
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/stages.h"
#include "core/recover/audit.h"
#include "core/recover/retried.h"

#define HEADER(name, value) { (name), (value), sizeof(name) - 1, sizeof(value) - 1 }

static wb_handler_entry entries[2];
static const wb_handler_set handlers = { .entries = entries, .count = 2 };
static wb_pipeline pipeline;
static wb_worker worker;
static wb_incoming incoming[3];
static wb_header headers[8];

static int send_one(wb_context *ctx, const wb_message *message)
{
    return wb_send(ctx, &(wb_outgoing){ .type = "T.T", .destination = "d", .body = message->id, .body_size = 1 });
}

static int handle_batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    (void)ctx, (void)messages, (void)count;
    return WB_OK;
}

static int set_up(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    static const char ids[] = "a\0b\0c";
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "e", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers,
                              .batch_max = 8, .batch_time = WB_SECOND, .transport_ops = &ops,
                              .audit_queue = "audit", .recoverability = { .immediate_retries = 5, .error_queue = "error" } };
    pipeline.origin = wb_origin_make("e", 1, 1024);
    entries[0] = (wb_handler_entry){ .type = "One", .one = send_one, .module = "test" };
    entries[1] = (wb_handler_entry){ .type = "Two", .batch = handle_batch, .module = "test" };
    wb_pipeline_init(&pipeline);
    wb_worker_init(&worker, &pipeline, 0);
    worker.take = 8;
    worker.costs[0] = worker.costs[1] = WB_MILLISECOND;
    for (size_t i = 0; i < 3; i++)
        incoming[i] = (wb_incoming){ .struct_size = sizeof incoming[i], .id = &ids[2 * i], .id_size = 1,
                                     .body = "body", .body_size = 4 };
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

/* Messages in hand are handled in one batch. */
static void run_handlers(void)
{
    wb_item *culprit;
    wb_error error = { 0 };
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(wb_stage_handle(&worker, &culprit, &error), WB_OK);
}

static const wb_operation *operation_at(const wb_item *item, size_t at)
{
    const wb_operation_node *node = item->operations.first;
    while (node && at--)
        node = node->next;
    return node ? &node->operation : NULL;
}

static const char *value_of(const wb_operation *operation, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < operation->header_count; i++) {
        if (strcmp(operation->headers[i].name, name) != 0)
            continue;
        if (found)
            fail_msg("two of %s", name);
        assert_int_equal(strlen(operation->headers[i].value), operation->headers[i].value_size);
        found = operation->headers[i].value;
    }
    return found ? found : "(none)";
}

/* ---- the copy ------------------------------------------------------------------------- */

static wb_operation *make_copy(size_t header_count, int is_acknowledged)
{
    static wb_operation_list list;
    memset(&list, 0, sizeof list);
    incoming[0].headers = headers;
    incoming[0].header_count = header_count;
    const wb_handled_message handled = { &incoming[0], 0, 1500 * WB_MILLISECOND, is_acknowledged };
    return wb_recover_audit_operation("audit", &pipeline.origin, &handled, &worker.arena, &list);
}

static void test_a_copy(void **state)
{
    (void)state;
    headers[0] = (wb_header)HEADER(WB_HEADER_MESSAGE_ID, "a");
    headers[1] = (wb_header)HEADER("mine", "1");
    headers[2] = (wb_header)HEADER("mine", "2");
    incoming[0].key = "k";
    incoming[0].key_size = 1;
    const wb_operation *copy = make_copy(3, 0);
    assert_int_equal(copy->kind, WB_OPERATION_SEND);
    assert_int_equal(copy->flags, WB_OPERATION_MANDATORY);
    assert_string_equal(copy->destination, "audit");
    assert_ptr_equal(copy->id, incoming[0].id);
    assert_ptr_equal(copy->body, incoming[0].body);
    assert_int_equal(copy->body_size, 4);
    assert_ptr_equal(copy->key, incoming[0].key);
    assert_int_equal(copy->header_count, 9);
    assert_memory_equal(copy->headers, headers, 3 * sizeof *headers);
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_STARTED), "1970-01-01 00:00:00:000000 Z");
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_ENDED), "1970-01-01 00:00:01:500000 Z");
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_ENDPOINT), "e");
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_MACHINE), pipeline.origin.machine.value);
    assert_string_equal(value_of(copy, WB_HEADER_HOST_NAME), pipeline.origin.machine.value);
    assert_string_equal(value_of(copy, WB_HEADER_HOST_ID), pipeline.origin.host_id.value);
    assert_string_equal(value_of(copy, WB_HEADER_RETRY_ACKNOWLEDGED), "(none)");
}

/* It failed before, elsewhere, and was audited there: who handled it now is what counts; why it
 * failed is history, and stays. */
static void test_what_a_copy_replaces(void **state)
{
    (void)state;
    headers[0] = (wb_header)HEADER(WB_HEADER_PROCESSING_ENDPOINT, "other");
    headers[1] = (wb_header)HEADER(WB_HEADER_PROCESSING_STARTED, "before");
    headers[2] = (wb_header)HEADER(WB_HEADER_HOST_ID, "other");
    headers[3] = (wb_header)HEADER(WB_HEADER_RETRY_ACKNOWLEDGED, "true");
    headers[4] = (wb_header)HEADER(WB_HEADER_FAILED_QUEUE, "e");
    const wb_operation *copy = make_copy(5, 0);
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_ENDPOINT), "e");
    assert_string_equal(value_of(copy, WB_HEADER_PROCESSING_STARTED), "1970-01-01 00:00:00:000000 Z");
    assert_string_equal(value_of(copy, WB_HEADER_HOST_ID), pipeline.origin.host_id.value);
    assert_string_equal(value_of(copy, WB_HEADER_RETRY_ACKNOWLEDGED), "(none)");
    assert_string_equal(value_of(copy, WB_HEADER_FAILED_QUEUE), "e");
    assert_string_equal(value_of(copy, WB_HEADER_MESSAGE_ID), "a"); /* a sender without our headers */
    assert_string_equal(value_of(make_copy(5, 1), WB_HEADER_RETRY_ACKNOWLEDGED), "true");
}

/* ---- in the batch --------------------------------------------------------------------- */

/* Behind what the handler sends, whose ids are those without it. */
static void test_ids_stay(void **state)
{
    char id[64];
    (void)state;
    for (int audited = 1; audited >= 0; audited--) {
        pipeline.audit_queue = audited ? "audit" : NULL;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        run_handlers();
        assert_int_equal(item->operations.count, 1 + audited);
        assert_int_equal(item->asked, 1);
        const wb_operation *sent = operation_at(item, 0);
        assert_string_equal(sent->destination, "d");
        if (audited)
            memcpy(id, sent->id, sent->id_size + 1);
        else
            assert_string_equal(sent->id, id);
        if (audited)
            assert_string_equal(operation_at(item, 1)->id, "a");
        wb_item_rerun(item); /* undone: nothing remains */
        assert_int_equal(item->operations.count, 0);
        wb_batch_drop_all(&worker);
    }
}

/* One copy each, whatever number of handlers it has, and however many share a call. */
static void test_one_copy_each(void **state)
{
    wb_item *items[3];
    (void)state;
    for (size_t i = 0; i < 3; i++)
        items[i] = wb_batch_hold(&worker, &incoming[i], &entries[1]);
    assert_true(wb_item_add_handler(items[2], &entries[0]));
    int64_t before = wb_clock_wall();
    run_handlers();
    for (size_t i = 0; i < 3; i++) {
        size_t at = i == 2; /* behind what its second handler sends */
        assert_int_equal(items[i]->operations.count, at + 1);
        assert_string_equal(operation_at(items[i], at)->destination, "audit");
        assert_memory_equal(operation_at(items[i], at)->id, incoming[i].id, 1);
        assert_in_range(items[i]->started, before, wb_clock_wall());
    }
}

static void test_who_is_not_audited(void **state)
{
    (void)state;
    headers[0] = (wb_header)HEADER(WB_HEADER_CONTROL_MESSAGE, "True");
    incoming[0].headers = headers;
    incoming[0].header_count = 1;
    wb_item *control = wb_batch_hold(&worker, &incoming[0], NULL);
    wb_item *failed = wb_batch_hold(&worker, &incoming[1], &entries[0]);
    wb_item_condemn(failed, WB_FAILURE_HANDLER, "no");
    run_handlers();
    assert_int_equal(control->state, WB_ITEM_HANDLED);
    assert_int_equal(control->operations.count, 0);
    assert_int_equal(failed->operations.count, 0);
}

/* Nor is one that was discarded, and nobody is told that it was handled. */
static void test_what_is_discarded(void **state)
{
    (void)state;
    headers[0] = (wb_header)HEADER(WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE, "sc.error");
    headers[1] = (wb_header)HEADER(WB_HEADER_RETRY_UNIQUE_ID, "unique");
    incoming[0].headers = headers;
    incoming[0].header_count = 2;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    wb_item_discard(item);
    run_handlers();
    assert_int_equal(item->state, WB_ITEM_HANDLED);
    assert_int_equal(item->operations.count, 0);
}

static int refuse_audit(wb_transport_session *s, wb_operation *const *operations, size_t count, int64_t deadline,
                        wb_error *error)
{
    (void)s, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        int is_audit = strcmp(operations[i]->destination, "audit") == 0;
        operations[i]->result = is_audit ? WB_REJECT : WB_OK;
        operations[i]->cause = WB_CAUSE_UNROUTABLE;
        operations[i]->reason = "there is no such queue";
    }
    return WB_OK;
}

/* An audit queue that is not there is what any missing destination is. */
static void test_a_copy_that_is_refused(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refuse_audit };
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &ops;
    worker.outlet.pipeline = &pipeline;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    for (unsigned tries = 1; tries <= 6; tries++) {
        run_handlers();
        wb_item_change(item, WB_ITEM_COMMITTED);
        assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
        assert_int_equal(item->failure.attempts, tries);
        assert_int_equal(item->state, WB_ITEM_READY);
    }
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    assert_string_equal(item->failure.kind, WB_FAILURE_DISPATCH);
    assert_string_equal(item->failure.reason, "could not dispatch to \"audit\": there is no such queue");
}

/* ---- retried by ServiceControl ------------------------------------------------------------ */

static void set_retry_headers(const char *queue, size_t queue_size, const char *unique_id)
{
    headers[0] = (wb_header){ WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE, queue,
                              sizeof WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE - 1, queue_size };
    headers[1] = (wb_header){ WB_HEADER_RETRY_UNIQUE_ID, unique_id, sizeof WB_HEADER_RETRY_UNIQUE_ID - 1,
                              strlen(unique_id) };
    incoming[0].headers = headers;
    incoming[0].header_count = 2;
}

static const wb_operation *acknowledge(void)
{
    static wb_operation_list list;
    memset(&list, 0, sizeof list);
    return wb_recover_acknowledge(&pipeline.origin, &incoming[0], 1500 * WB_MILLISECOND, &worker.arena, &list)
               ? &list.first->operation
               : NULL;
}

static void test_an_acknowledgement(void **state)
{
    char id[64];
    (void)state;
    set_retry_headers("sc.error", 8, "unique");
    const wb_operation *told = acknowledge();
    assert_int_equal(told->kind, WB_OPERATION_SEND);
    assert_int_equal(told->flags, WB_OPERATION_MANDATORY);
    assert_string_equal(told->destination, "sc.error");
    assert_int_equal(told->body_size, 0);
    assert_int_equal(told->header_count, 4);
    assert_string_equal(value_of(told, WB_HEADER_MESSAGE_ID), told->id);
    assert_string_equal(value_of(told, WB_HEADER_RETRY_SUCCESSFUL), "1970-01-01 00:00:01:500000 Z");
    assert_string_equal(value_of(told, WB_HEADER_RETRY_UNIQUE_ID), "unique");
    assert_string_equal(value_of(told, WB_HEADER_CONTROL_MESSAGE), "True");
    memcpy(id, told->id, told->id_size + 1);
    assert_string_equal(acknowledge()->id, id); /* of each attempt */
    set_retry_headers("sc.error", 8, "another");
    assert_string_not_equal(acknowledge()->id, id);
}

static void test_who_is_not_acknowledged(void **state)
{
    static char longest[300];
    (void)state;
    memset(longest, 'q', sizeof longest);
    set_retry_headers("", 0, "unique");
    assert_null(acknowledge());
    set_retry_headers("a\nb", 3, "unique");
    assert_null(acknowledge());
    set_retry_headers(longest, 256, "unique");
    assert_null(acknowledge());
    set_retry_headers(longest, 255, "unique");
    assert_non_null(acknowledge());
    for (size_t at = 0; at < 2; at++) {
        set_retry_headers("sc.error", 8, "unique");
        headers[at] = (wb_header)HEADER("other", "x");
        assert_null(acknowledge());
    }
}

/* Before the copy, which says so; control messages are acknowledged, too; without audit as well. */
static void test_acknowledged_in_the_batch(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        int is_control = kind == 1, is_audited = kind == 0;
        pipeline.audit_queue = kind == 2 ? NULL : "audit";
        set_retry_headers("sc.error", 8, "unique");
        wb_item *item = wb_batch_hold(&worker, &incoming[0], is_control ? NULL : &entries[1]);
        run_handlers();
        assert_int_equal(item->operations.count, is_audited ? 2 : 1);
        assert_string_equal(operation_at(item, 0)->destination, "sc.error");
        if (is_audited)
            assert_string_equal(value_of(operation_at(item, 1), WB_HEADER_RETRY_ACKNOWLEDGED), "true");
        wb_batch_drop_all(&worker);
    }
}

static int no_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                      void *argument, wb_error *error)
{
    (void)s, (void)batches, (void)count, (void)visit, (void)argument, (void)error;
    return WB_OK;
}

/* It was handled before, and failed only to send: what it is here for is to be told as well. One that
 * nobody sent back says nothing. */
static void test_a_duplicate_is_acknowledged(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refuse_audit };
    static const wb_persistence_ops storage = { .struct_size = sizeof storage, .pending = no_pending };
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &ops;
    pipeline.persistence_ops = &storage;
    worker.outlet.pipeline = &pipeline;
    for (int is_retry = 0; is_retry < 2; is_retry++) {
        set_retry_headers("sc.error", 8, "unique");
        incoming[0].header_count = is_retry ? 2 : 0;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(item, WB_ITEM_DUPLICATE);
        item->duplicate_of = 7;
        assert_int_equal(wb_stage_resume(&worker, &error), WB_OK);
        assert_int_equal(item->operations.count, is_retry);
        assert_int_equal(item->state, is_retry ? WB_ITEM_COMMITTED : WB_ITEM_SETTLED);
        assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
        assert_int_equal(item->state, WB_ITEM_SETTLED);
        wb_batch_drop_all(&worker);
    }
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_copy),
        TEST(test_what_a_copy_replaces),
        TEST(test_ids_stay),
        TEST(test_one_copy_each),
        TEST(test_who_is_not_audited),
        TEST(test_what_is_discarded),
        TEST(test_a_copy_that_is_refused),
        TEST(test_an_acknowledgement),
        TEST(test_who_is_not_acknowledged),
        TEST(test_acknowledged_in_the_batch),
        TEST(test_a_duplicate_is_acknowledged),
    };
    wb_log_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

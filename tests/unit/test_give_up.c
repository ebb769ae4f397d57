/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler may want for its message instead of what the policy says: to have it
 * forgotten, moved elsewhere, or tried again after a time of its choice.
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
#include "core/pipeline/batch.h"
#include "core/pipeline/move.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/verdict.h"
#include "core/recover/retry_copy.h"

static wb_handler_entry entries[2];
static const wb_handler_set handlers = { .entries = entries, .count = 2 };
static wb_pipeline pipeline;
static wb_worker worker;
static wb_incoming incoming[2];
static unsigned calls;

static int discards(wb_context *ctx, const wb_message *message)
{
    (void)message;
    calls++;
    return wb_discard(ctx, "it is old");
}

static int moves(wb_context *ctx, const wb_message *message)
{
    (void)message;
    return wb_move_to(ctx, "review", "it is odd");
}

static int succeeds(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_OK;
}

static int set_up(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    static const char ids[] = "a\0b";
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "e", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers,
                              .batch_max = 8, .batch_time = WB_SECOND, .transport_ops = &ops,
                              .audit_queue = "audit", .recoverability = { .immediate_retries = 5, .error_queue = "error" } };
    pipeline.origin = wb_origin_make("e", 1, 1024);
    entries[0] = (wb_handler_entry){ .type = "One", .one = discards, .module = "test" };
    entries[1] = (wb_handler_entry){ .type = "Two", .one = succeeds, .module = "test" };
    wb_pipeline_init(&pipeline);
    wb_worker_init(&worker, &pipeline, 0);
    worker.take = 8;
    worker.outlet.pipeline = &pipeline;
    worker.costs[0] = worker.costs[1] = WB_MILLISECOND;
    for (size_t i = 0; i < 2; i++)
        incoming[i] = (wb_incoming){ .struct_size = sizeof incoming[i], .id = &ids[2 * i], .id_size = 1,
                                     .body = "body", .body_size = 4 };
    calls = 0;
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

/* A batch of what is in hand, up to what becomes of a failure. */
static int run_handlers(void)
{
    wb_item *culprit;
    wb_error error = { 0 };
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    int r = wb_stage_handle(&worker, &culprit, &error);
    if (r != WB_OK)
        assert_int_equal(wb_stage_isolate(&worker, r, culprit, &error), WB_OK);
    return r;
}

/* Rolled back, and then handled by nobody: claimed and recorded as any other, without audit copy. */
static void test_discarded(void **state)
{
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    (void)state;
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_true(item->is_discarded);
    assert_int_equal(item->verdict, WB_VERDICT_OPEN);
    assert_int_equal(item->state, WB_ITEM_READY);
    assert_int_equal(run_handlers(), WB_OK);
    assert_int_equal(item->state, WB_ITEM_HANDLED);
    assert_int_equal(item->operations.count, 0);
    assert_int_equal(calls, 1);
}

/* It has not failed: it is no reason to make one attempt at a time. */
static void test_discarded_is_no_failure_in_a_row(void **state)
{
    (void)state;
    pipeline.rate.after = 1;
    (void)wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_false(wb_rate_is_limited(&pipeline.rate));
    wb_batch_drop_all(&worker);
    entries[0].one = moves;
    (void)wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_true(wb_rate_is_limited(&pipeline.rate));
}

/* Behind others it is asked once more, alone: they may have broken the transaction. */
static void test_discarded_behind_others(void **state)
{
    (void)state;
    worker.storage = (wb_storage_session *)&worker; /* there is one; nobody calls it */
    wb_item *first = wb_batch_hold(&worker, &incoming[0], &entries[1]);
    wb_item *item = wb_batch_hold(&worker, &incoming[1], &entries[0]);
    static const wb_persistence_ops ops = { .struct_size = sizeof ops };
    pipeline.persistence_ops = &ops;
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_false(item->is_discarded);
    assert_int_equal(first->verdict, WB_VERDICT_OPEN);
    wb_item_pause(first, WB_NEVER);
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_true(item->is_discarded);
    assert_int_equal(calls, 2);
    worker.storage = NULL;
}

/* What is said last counts: a wish does not outlive another reason, nor success. */
static int changes_its_mind(wb_context *ctx, const wb_message *message)
{
    (void)wb_discard(ctx, "it is old");
    return message->id[0] == 'a' ? wb_fail(ctx, WB_UNRECOVERABLE, "it is not") : WB_OK;
}

static void test_what_is_said_last(void **state)
{
    (void)state;
    entries[0].one = changes_its_mind;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_false(item->is_discarded);
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    assert_string_equal(item->failure.reason, "it is not");
    wb_batch_drop_all(&worker);
    item = wb_batch_hold(&worker, &incoming[1], &entries[0]);
    assert_int_equal(run_handlers(), WB_OK);
    assert_int_equal(worker.wish.kind, WB_WISH_NOTHING);
    assert_int_equal(item->operations.count, 1); /* for the audit queue */
}

static int refuse_review(wb_transport_session *s, wb_operation *const *operations, size_t count, int64_t deadline,
                         wb_error *error)
{
    (void)s, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        int is_missing = strcmp(operations[i]->destination, "review") == 0;
        operations[i]->result = is_missing ? WB_REJECT : WB_OK;
        operations[i]->cause = WB_CAUSE_UNROUTABLE;
        operations[i]->reason = "there is no such queue";
    }
    return WB_OK;
}

static const char *moved_to(const wb_item *item)
{
    return item->operations.first->operation.destination;
}

/* To the queue it wants; where that is not there, to the ordinary one, with the reason. */
static void test_moved(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refuse_review };
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &ops;
    entries[0].one = moves;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
    assert_int_equal(item->state, WB_ITEM_MOVING);
    assert_string_equal(moved_to(item), "review");
    assert_string_equal(item->error_queue, "error");
    assert_int_equal(item->paused_until, 0);
    wb_item_rerun(item);
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
    assert_string_equal(moved_to(item), "error");
    assert_int_equal(item->state, WB_ITEM_SETTLED);
    assert_string_equal(item->failure.reason,
                        "it is odd (could not dispatch to \"review\": there is no such queue)");
    assert_string_equal(item->failure.kind, WB_FAILURE_UNRECOVERABLE);
}

/* A name that a broker could take amiss never gets there. */
static int moves_nowhere(wb_context *ctx, const wb_message *message)
{
    static char longest[257];
    memset(longest, 'q', sizeof longest - 1);
    return wb_move_to(ctx, message->id[0] == 'a' ? "re\nview" : longest, "it is odd");
}

static void test_moved_to_no_name(void **state)
{
    (void)state;
    entries[0].one = moves_nowhere;
    for (size_t i = 0; i < 2; i++) {
        wb_item *item = wb_batch_hold(&worker, &incoming[i], &entries[0]);
        assert_int_equal(run_handlers(), WB_REJECT);
        assert_int_equal(item->verdict, WB_VERDICT_FAILED);
        assert_null(item->error_queue);
        assert_string_equal(item->failure.reason,
                            "it is odd (it was to go to a queue whose name is no text of 1 to 255 bytes)");
        wb_batch_drop_all(&worker);
    }
}

/* What is different for a type: how often it is tried, and where it goes. */
static int fails(wb_context *ctx, const wb_message *message)
{
    (void)message;
    return wb_fail(ctx, WB_RETRY, "no");
}

static void test_policy_of_a_type(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refuse_review };
    static const wb_type_policy policies[] = { { "One", 1, -1, "one.error" }, { "Two", -1, 0, "review" } };
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &ops;
    pipeline.type_policies = policies;
    pipeline.type_policy_count = 2;
    entries[0].one = entries[1].one = fails;
    for (size_t i = 0; i < 2; i++) {
        wb_item *item = wb_batch_hold(&worker, &incoming[i], &entries[i]);
        unsigned tries = 0;
        for (; item->verdict == WB_VERDICT_OPEN; tries++)
            assert_int_equal(run_handlers(), WB_RETRY);
        assert_int_equal(tries, i ? 6 : 2);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
        assert_string_equal(moved_to(item), i ? "review" : "one.error");
        assert_int_equal(item->state, i ? WB_ITEM_MOVING : WB_ITEM_SETTLED);
        if (i) /* it is not there */
            assert_string_equal(item->error_queue, "error");
        wb_batch_drop_all(&worker);
    }
    pipeline.recoverability.delayed_retries = 3;
    assert_int_equal(wb_pipeline_policy(&pipeline, "One").delayed_retries, 3);
    assert_int_equal(wb_pipeline_policy(&pipeline, "Two").delayed_retries, 0);
    assert_string_equal(wb_pipeline_policy(&pipeline, NULL).error_queue, "error");
    assert_string_equal(wb_pipeline_policy(&pipeline, "Other").error_queue, "error");
}

/* ---- tried again after a time ---------------------------------------------------------- */

static int waits(wb_context *ctx, const wb_message *message)
{
    calls++;
    return wb_retry_after(ctx, message->id[0] == 'a' ? 90 * WB_SECONDS : 0, "the bank is closed");
}

static void delay_retries(unsigned number)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refuse_review };
    pipeline.transport_ops = &ops;
    pipeline.origin.delays = WB_DELAYS_BY_TRANSPORT;
    pipeline.recoverability.delayed_retries = number;
    pipeline.recoverability.delay_increment = 10 * WB_SECOND;
    entries[0].one = waits;
}

/* One message up to where its copy goes. */
static wb_item *fail_and_move(wb_incoming *message, int said)
{
    wb_error error = { 0 };
    wb_item *item = wb_batch_hold(&worker, message, &entries[0]);
    while (item->verdict == WB_VERDICT_OPEN)
        assert_int_equal(run_handlers(), said);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
    assert_int_equal(item->state, WB_ITEM_SETTLED);
    return item;
}

static void test_retried_after(void **state)
{
    (void)state;
    delay_retries(3);
    int64_t before = wb_clock_wall();
    wb_item *item = fail_and_move(&incoming[0], WB_RETRY);
    assert_int_equal(calls, 1); /* no immediate retry */
    assert_int_equal(item->delay, 90 * WB_SECOND);
    assert_in_range(item->operations.first->operation.deliver_at, before + 90 * WB_SECOND,
                    wb_clock_wall() + 90 * WB_SECOND);
    assert_string_equal(moved_to(item), "e");
    assert_int_equal(wb_recover_retries(item->operations.first->operation.headers,
                                        item->operations.first->operation.header_count),
                     1);
}

/* Where the store delays it is due by the database's clock, wherever the host's stands. */
static void test_retried_by_the_clock_of_the_store(void **state)
{
    (void)state;
    delay_retries(3);
    pipeline.origin.delays = WB_DELAYS_BY_STORE;
    wb_pipeline_set_time(&pipeline, 5000 * WB_SECOND, wb_clock_steady());
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_RETRY);
    wb_move_prepare(&worker, item);
    assert_in_range(item->operations.first->operation.deliver_at, 5090 * WB_SECOND, 5100 * WB_SECOND);
}

/* It is one of the delayed retries: when these are over it is in the error queue, with its reason. */
/* A server that restarts is no message's fault, with however few retries. */
static void test_faults_that_are_forgiven(void **state)
{
    const wb_recoverability impatient = { .immediate_retries = 0 }, patient = { .immediate_retries = 5 };
    wb_failure failure = { .faults = WB_FAULTS_MIN };
    (void)state;
    assert_false(wb_recover_is_faulty(&impatient, &failure));
    failure.faults++;
    assert_true(wb_recover_is_faulty(&impatient, &failure));
    failure.faults = 5;
    assert_false(wb_recover_is_faulty(&patient, &failure));
    failure.faults++;
    assert_true(wb_recover_is_faulty(&patient, &failure));
}

/* One that struck too often is not handled once more. */
static void test_faults_have_an_end(void **state)
{
    (void)state;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    wb_failure_set(&item->failure, WB_FAILURE_HANDLER, "the connection was lost", 0);
    item->failure.faults = pipeline.recoverability.immediate_retries + WB_FAULTS_MIN;
    assert_int_equal(run_handlers(), WB_REJECT);
    assert_int_equal(calls, 0);
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
}

static void test_retried_after_too_often(void **state)
{
    static const wb_header third = { "NServiceBus.Retries", "3", 19, 1 };
    (void)state;
    delay_retries(3);
    incoming[0].headers = &third;
    incoming[0].header_count = 1;
    wb_item *item = fail_and_move(&incoming[0], WB_RETRY);
    assert_int_equal(calls, 1);
    assert_string_equal(moved_to(item), "error");
    assert_string_equal(item->failure.reason, "the bank is closed");
    assert_string_equal(item->failure.kind, WB_FAILURE_HANDLER);
}

static void test_retried_after_where_nobody_delays(void **state)
{
    (void)state;
    delay_retries(0);
    assert_string_equal(moved_to(fail_and_move(&incoming[0], WB_RETRY)), "error");
    assert_int_equal(calls, 1);
}

/* It is tried as the policy says, and the reason tells. */
static void test_retried_after_no_time(void **state)
{
    (void)state;
    delay_retries(3);
    wb_item *item = fail_and_move(&incoming[1], WB_RETRY);
    assert_int_equal(calls, 6);
    assert_in_range(item->delay, 10 * WB_SECOND, 12 * WB_SECOND);
    assert_non_null(strstr(item->failure.reason, "(it was to be retried after no time, or more than 3650 days)"));
}

/* What the handler returns counts, and what it says last. */
static int says_and_does(wb_context *ctx, const wb_message *message)
{
    int said = wb_retry_after(ctx, 90 * WB_SECONDS, "the bank is closed");
    return message->id[0] == 'a' ? wb_fail(ctx, WB_RETRY, "no") : said == WB_RETRY ? WB_UNRECOVERABLE : WB_OK;
}

static void test_retried_after_all(void **state)
{
    (void)state;
    delay_retries(3);
    entries[0].one = says_and_does;
    wb_item *item = fail_and_move(&incoming[0], WB_RETRY);
    assert_in_range(item->delay, 10 * WB_SECOND, 12 * WB_SECOND);
    wb_batch_drop_all(&worker);
    item = fail_and_move(&incoming[1], WB_REJECT);
    assert_string_equal(moved_to(item), "error");
    assert_string_equal(item->failure.kind, WB_FAILURE_UNRECOVERABLE);
}

/* Behind others it is asked once more, alone, as with what is discarded. */
static void test_retried_after_behind_others(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops };
    (void)state;
    delay_retries(3);
    worker.storage = (wb_storage_session *)&worker; /* there is one; nobody calls it */
    pipeline.persistence_ops = &ops;
    wb_item *first = wb_batch_hold(&worker, &incoming[1], &entries[1]);
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_int_equal(run_handlers(), WB_RETRY);
    assert_int_equal(item->verdict, WB_VERDICT_OPEN);
    wb_item_pause(first, WB_NEVER);
    assert_int_equal(run_handlers(), WB_RETRY);
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    assert_int_equal(item->failure.delay, 90 * WB_SECOND);
    assert_int_equal(calls, 2);
    worker.storage = NULL;
}

/* Copies of an id fail together. One with other bytes has no place of its own among what is retried later. */
static void test_copies_of_what_is_retried(void **state)
{
    const wb_attempt last = { .kind = WB_FAILURE_HANDLER, .reason = "no", .is_sure = 1, .counts = 1 };
    (void)state;
    delay_retries(3);
    pipeline.outbox = 1;
    pipeline.recoverability.immediate_retries = 0;
    for (int other = 0; other < 2; other++) {
        incoming[1] = incoming[0];
        incoming[1].body = other ? "abcd" : "body";
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        wb_item *copy = wb_batch_hold(&worker, &incoming[1], &entries[0]);
        wb_verdict_attempt_failed(&worker, item, &last);
        assert_int_equal(copy->verdict, WB_VERDICT_FAILED);
        assert_true(item->failure.may_wait);
        assert_int_equal(copy->failure.may_wait, !other);
        wb_batch_drop_all(&worker);
    }
}

/* When the handler says when, that is said of its copies, too. */
static void test_copies_of_what_is_retried_after(void **state)
{
    (void)state;
    delay_retries(3);
    pipeline.outbox = 1;
    incoming[1] = incoming[0];
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    wb_item *copy = wb_batch_hold(&worker, &incoming[1], &entries[0]);
    const wb_wish wish = { .kind = WB_WISH_RETRY_AFTER, .delay = 90 * WB_SECOND };
    wb_verdict_attempt_failed(&worker, item, &(wb_attempt){ .kind = WB_FAILURE_HANDLER, .reason = "no",
                                                            .is_sure = 1, .counts = 1, .final = 1,
                                                            .wish = &wish });
    assert_int_equal(copy->verdict, WB_VERDICT_FAILED);
    assert_true(copy->failure.may_wait);
    assert_int_equal(copy->failure.delay, 90 * WB_SECOND);
}

/* A copy on its way before a redelivery, and one that came back later: each has the tries it has left. */
static void test_copies_with_other_retries(void **state)
{
    static const wb_header once = { WB_HEADER_RETRIES, "1", sizeof WB_HEADER_RETRIES - 1, 1 };
    static const wb_header twice = { WB_HEADER_RETRIES, "2", sizeof WB_HEADER_RETRIES - 1, 1 };
    const wb_attempt last = { .kind = WB_FAILURE_HANDLER, .reason = "no", .is_sure = 1, .counts = 1 };
    (void)state;
    delay_retries(2);
    pipeline.outbox = 1;
    pipeline.recoverability.immediate_retries = 0;
    for (int later = 0; later < 2; later++) {
        incoming[0].headers = &once;
        incoming[1] = incoming[0];
        incoming[1].headers = later ? &twice : &once;
        incoming[0].header_count = incoming[1].header_count = 1;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        wb_item *copy = wb_batch_hold(&worker, &incoming[1], &entries[0]);
        wb_verdict_attempt_failed(&worker, item, &last);
        assert_int_equal(item->verdict, WB_VERDICT_FAILED);
        assert_int_equal(copy->verdict, later ? WB_VERDICT_OPEN : WB_VERDICT_FAILED);
        wb_batch_drop_all(&worker);
    }
}

/* ---- mode none ------------------------------------------------------------------------- */

static int sends_later(wb_context *ctx, const wb_message *message)
{
    (void)message;
    calls++;
    return wb_send(ctx, &(wb_outgoing){ .type = "T.T", .destination = "d", .delay = WB_MINUTES });
}

static int lose_connection(wb_storage_session *session, const wb_delayed *messages, size_t count, wb_error *error)
{
    (void)session, (void)messages, (void)count;
    return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0, "it is gone");
}

/* The store that was to keep what it sends is lost. It was handled, and mode none does that once. */
static void test_store_is_lost_in_none(void **state)
{
    static const wb_delayed_ops delayed = { .struct_size = sizeof delayed, .store = lose_connection };
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .delayed = &delayed };
    wb_error error = { 0 };
    (void)state;
    delay_retries(0);
    pipeline.mode = WB_MODE_NONE;
    pipeline.persistence_ops = &ops;
    pipeline.origin.delays = WB_DELAYS_BY_STORE;
    entries[0].one = sends_later;
    worker.storage = worker.outlet.storage = (wb_storage_session *)&worker; /* there is one */
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    wb_item *silent = wb_batch_hold(&worker, &incoming[1], &entries[1]);
    pipeline.audit_queue = NULL;
    assert_int_equal(run_handlers(), WB_OK);
    wb_item_change(item, WB_ITEM_COMMITTED);
    wb_item_change(silent, WB_ITEM_COMMITTED);
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_NOT_CONNECTED);
    assert_true(worker.storage_broken);
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    assert_int_equal(silent->state, WB_ITEM_SETTLED);
    wb_batch_finish(&worker);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
    assert_string_equal(moved_to(item), "error");
    assert_non_null(strstr(item->failure.reason, "was handled"));
    assert_int_equal(calls, 1);
    worker.storage = worker.outlet.storage = NULL;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_discarded),     TEST(test_discarded_behind_others), TEST(test_what_is_said_last),
        TEST(test_discarded_is_no_failure_in_a_row),
        TEST(test_moved),         TEST(test_moved_to_no_name),        TEST(test_policy_of_a_type),
        TEST(test_retried_after),
        TEST(test_retried_by_the_clock_of_the_store),
        TEST(test_faults_that_are_forgiven),
        TEST(test_faults_have_an_end),
        TEST(test_retried_after_too_often),
        TEST(test_retried_after_where_nobody_delays),
        TEST(test_retried_after_no_time),
        TEST(test_retried_after_all),
        TEST(test_retried_after_behind_others),
        TEST(test_copies_of_what_is_retried),
        TEST(test_copies_of_what_is_retried_after),
        TEST(test_copies_with_other_retries),
        TEST(test_store_is_lost_in_none),
    };
    wb_log_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

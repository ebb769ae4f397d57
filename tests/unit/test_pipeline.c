/* SPDX-License-Identifier: Apache-2.0
 *
 * Rooms of the pipeline by themselves, over plugins of a few lines: what the simulation cannot
 * tell from the outside, because it only takes longer or only sends more.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <waybill/sys/failed.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/endpoint/cleaner.h"
#include "core/endpoint/silences.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/pipeline/admit.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/move.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/scout.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/suspect.h"
#include "core/pipeline/verdict.h"
#include "core/pipeline/window.h"
#include "core/recover/attempts.h"

static int handle(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_OK;
}

static wb_handler_entry entries[2];
static const wb_handler_set handlers = { .entries = entries, .count = 2 };
static wb_pipeline pipeline;
static wb_worker worker;
static wb_incoming incoming[3];

/* Three messages: two of key k, one of key l. Both handlers are known and quick. */
static int set_up(void **state)
{
    static const wb_transport_ops no_limits = { .struct_size = sizeof no_limits };
    static const char ids[] = "a\0b\0c", keys[] = "k\0k\0l";
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "e", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers,
                              .batch_max = 8, .batch_time = WB_SECOND,
                              .transport_ops = &no_limits,
                              .recoverability = { .immediate_retries = 5, .error_queue = "error" } };
    entries[0] = (wb_handler_entry){ .type = "One", .one = handle, .module = "test" };
    entries[1] = (wb_handler_entry){ .type = "Two", .one = handle, .module = "test" };
    wb_pipeline_init(&pipeline);
    wb_worker_init(&worker, &pipeline, 0);
    worker.take = 8;
    worker.costs[0] = worker.costs[1] = WB_MILLISECOND;
    for (size_t i = 0; i < 3; i++)
        incoming[i] = (wb_incoming){ .struct_size = sizeof incoming[i], .id = &ids[2 * i], .id_size = 1,
                                     .key = &keys[2 * i], .key_size = 1 };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_worker_free(&worker);
    wb_pipeline_free(&pipeline);
    return 0;
}

/* ---- admission ----------------------------------------------------------------------- */

/* Whatever the transport has of it, to a handler an empty body is no NULL. */
static void test_a_body_is_there(void **state)
{
    wb_item item;
    (void)state;
    incoming[0].body = NULL;
    incoming[0].body_size = 0;
    wb_item_init(&item, &incoming[0], &entries[0]);
    assert_non_null(item.message.body);
    assert_int_equal(*(const char *)item.message.body, '\0');
    assert_int_equal(item.message.body_size, 0);
}

/* A transport that keeps the limits has both kinds in mind together. */
static void test_headers_of_the_platform(void **state)
{
    wb_header headers[WB_PLATFORM_HEADERS_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        headers[i] = (wb_header){ "NServiceBus.X", "", sizeof "NServiceBus.X" - 1, 0 };
    incoming[0].headers = headers;
    for (size_t more = 0; more < 2; more++) {
        incoming[0].header_count = WB_PLATFORM_HEADERS_MAX + more;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], NULL);
        wb_admit(&worker, item);
        assert_string_equal(item->failure.kind, more ? WB_FAILURE_TOO_LARGE : WB_FAILURE_NO_HANDLER);
    }
    wb_batch_drop_all(&worker);
}

/* As many as a sender may set, beside as many as the platform does. */
static void test_headers_of_both_kinds(void **state)
{
    wb_header headers[WB_PLATFORM_HEADERS_MAX + WB_INCOMING_HEADERS_MAX + 1];
    const size_t most = sizeof headers / sizeof headers[0] - 1;
    (void)state;
    for (size_t i = 0; i <= most; i++)
        headers[i] = i < WB_PLATFORM_HEADERS_MAX ? (wb_header){ "NServiceBus.X", "", sizeof "NServiceBus.X" - 1, 0 }
                                                 : (wb_header){ "mine", "", 4, 0 };
    incoming[0].headers = headers;
    for (size_t more = 0; more < 2; more++) {
        incoming[0].header_count = most + more;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], NULL);
        wb_admit(&worker, item);
        assert_string_equal(item->failure.kind, more ? WB_FAILURE_TOO_LARGE : WB_FAILURE_NO_HANDLER);
    }
    wb_batch_drop_all(&worker);
}

static void test_body_at_the_limit(void **state)
{
    (void)state;
    pipeline.body_max = 10;
    for (size_t more = 0; more < 2; more++) {
        incoming[0].body_size = 10 + more;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], NULL);
        wb_admit(&worker, item);
        assert_string_equal(item->failure.kind, more ? WB_FAILURE_TOO_LARGE : WB_FAILURE_NO_HANDLER);
    }
    wb_batch_drop_all(&worker);
}

/* ---- the batch ----------------------------------------------------------------------- */

static void test_a_key_waits(void **state)
{
    (void)state;
    pipeline.ordered = 1;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0])->paused_until = i ? 0 : WB_NEVER;
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 1);
    assert_ptr_equal(worker.batch[0]->incoming, &incoming[2]);
    assert_true(wb_batch_can_run(&worker));
    pipeline.ordered = 0; /* nobody promised an order */
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2);
}

/* Nothing can run behind a paused key: a stop need not wait for it. */
static void test_nothing_can_run(void **state)
{
    (void)state;
    pipeline.ordered = 1;
    for (size_t i = 0; i < 2; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0])->paused_until = i ? 0 : WB_NEVER;
    assert_false(wb_batch_can_run(&worker));
    assert_false(wb_batch_choose(&worker, WB_BATCH_ANY));
}

/* Those behind a paused key take nobody's place: others are fetched beside them. */
static void test_behind_a_key_is_room(void **state)
{
    (void)state;
    worker.take = 1;
    pipeline.ordered = 1;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0])->paused_until = i ? 0 : WB_NEVER;
    assert_int_equal(wb_batch_prefetch(&worker), 1 + 2);
    worker.held[0]->paused_until = wb_clock_monotonic() + 60 * WB_SECOND;
    worker.held[1]->paused_until = 1; /* it is due, and may not pass */
    assert_int_equal(wb_batch_next_time(&worker), worker.held[0]->paused_until);
    pipeline.ordered = 0;
    assert_int_equal(wb_batch_next_time(&worker), 1);
    worker.held[0]->paused_until = WB_NEVER;
    worker.held[1]->paused_until = 0;
    pipeline.ordered = 0; /* nobody is behind anybody */
    assert_int_equal(wb_batch_prefetch(&worker), 1 + 1);
    pipeline.ordered = 1;
    worker.held[0]->paused_until = 0;
    assert_int_equal(wb_batch_prefetch(&worker), 1);
}

static void test_unknown_types_run_alone(void **state)
{
    (void)state;
    worker.costs[1] = -1;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[i == 1]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 1);
}

static void test_redeliveries_do_not_grow(void **state)
{
    (void)state;
    worker.take = 1;
    wb_scout_end(&worker);
    incoming[0].delivery_count = 1;
    wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    wb_batch_finish(&worker);
    assert_int_equal(worker.take, 1);
    incoming[0].delivery_count = 0;
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    wb_batch_finish(&worker);
    assert_int_equal(worker.take, 2);
}

static uint64_t counted(wb_tally_kind kind)
{
    return atomic_load(&worker.tally.of[kind]);
}

/* What cannot be sent runs again, in the same hands: that is one message, handled once, and no duplicate. */
static void test_each_message_is_counted_once(void **state)
{
    wb_error error = { 0 };
    wb_item *items[3], *culprit;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        items[i] = wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_int_equal(worker.in_hand, 3);
    for (int run = 0; run < 2; run++) {
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(items[0], WB_ITEM_HANDLED);
        wb_item_change(items[1], WB_ITEM_DUPLICATE);
        assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_OK);
        assert_int_equal(counted(WB_TALLY_HANDLED), 1);
        if (run == 0)
            for (size_t i = 0; i < 2; i++)
                wb_item_rerun(items[i]);
    }
    wb_item_change(items[0], WB_ITEM_SETTLED);
    wb_item_change(items[1], WB_ITEM_SETTLED);
    wb_batch_finish(&worker);
    assert_int_equal(counted(WB_TALLY_HANDLED), 1);
    assert_int_equal(counted(WB_TALLY_DUPLICATES), 1);
    assert_int_equal(worker.in_hand, 1);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    wb_item_condemn(items[2], WB_FAILURE_HANDLER, "no");
    wb_item_change(items[2], WB_ITEM_MOVING);
    wb_move_note_done(&worker, items[2]);
    wb_item_change(items[2], WB_ITEM_SETTLED);
    wb_batch_finish(&worker);
    assert_int_equal(counted(WB_TALLY_MOVED), 1);
    assert_int_equal(counted(WB_TALLY_DUPLICATES), 1);
    assert_int_equal(worker.in_hand, 0);
}

/* Others first, then whoever has waited longest. */
static void test_turns(void **state)
{
    static const int64_t due[] = { 3, 2, 0 };
    (void)state;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0])->paused_until = due[i];
    assert_true(wb_batch_choose(&worker, WB_BATCH_FRESH));
    assert_ptr_equal(worker.batch[0]->incoming, &incoming[2]);
    assert_int_equal(worker.batch_size, 1);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_ptr_equal(worker.batch[0]->incoming, &incoming[1]);
}

/* Whoever waited longest does not pass an earlier one of its key. */
static void test_turns_of_a_key(void **state)
{
    static const int64_t due[] = { 3, 2, 4 };
    (void)state;
    pipeline.ordered = 1;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0])->paused_until = due[i];
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_ptr_equal(worker.batch[0]->incoming, &incoming[0]);
}

/* Whoever waited longest takes nobody along who would pass an earlier one of its key, which is due as well; nor does the
 * first one, past what cannot be in its batch. */
static void test_company_passes_no_key(void **state)
{
    static const int64_t due[] = { 3, 2, 0 };
    wb_item *items[3];
    (void)state;
    incoming[1].key = "l";
    incoming[2].key = "k";
    for (size_t i = 0; i < 3; i++) {
        items[i] = wb_batch_hold(&worker, &incoming[i], &entries[0]);
        items[i]->paused_until = due[i];
    }
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2); /* nobody promised an order */
    pipeline.ordered = 1;
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 1);
    assert_ptr_equal(worker.batch[0], items[1]);
    items[1]->paused_until = 0;
    items[1]->is_control = 1; /* left out */
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2);
    assert_ptr_equal(worker.batch[1], items[2]); /* behind its own, which is in the batch */
    items[0]->message.key = "j";
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2);
    items[2]->message.key = "l";
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 1);
    assert_ptr_equal(worker.batch[0], items[0]);
    items[1]->message.key_size = items[2]->message.key_size = 0; /* no key is nobody's */
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2);
}

static char handled[8];

static int handle_some(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    size_t used = strlen(handled);
    (void)ctx;
    for (size_t i = 0; i < count; i++)
        handled[used++] = messages[i]->id[0];
    memcpy(handled + used, ";", 2);
    return WB_OK;
}

static int handle_one(wb_context *ctx, const wb_message *message)
{
    return handle_some(ctx, &message, 1);
}

/* What goes to a batch handler in one call is not taken past another handler's of its key. */
static void test_a_call_passes_no_key(void **state)
{
    wb_item *culprit;
    wb_error error = { 0 };
    (void)state;
    entries[0] = (wb_handler_entry){ .type = "One", .batch = handle_some, .module = "test" };
    entries[1].one = handle_one;
    for (int same = 0; same < 2; same++) {
        handled[0] = '\0';
        incoming[2].key = same ? "k" : "l";
        for (size_t i = 0; i < 3; i++)
            wb_batch_hold(&worker, &incoming[i], &entries[i == 1]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(wb_stage_handle(&worker, &culprit, &error), WB_OK);
        assert_string_equal(handled, same ? "a;b;c;" : "ac;b;");
        wb_batch_drop_all(&worker);
    }
}

/* ---- over plugins of a few lines ------------------------------------------------------- */

static int64_t wall;
static unsigned cleaned;
static uint64_t stored, begun, claimed_by;
static size_t claims;
static wb_error death;
static char sent[8];

static int fake_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    (void)s, (void)error;
    claims = begin->claim_count;
    begun = begin->batch;
    if (claims)
        begin->claims[0].duplicate_of = claimed_by;
    return WB_OK;
}

static int fake_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)error;
    stored = commit->batch;
    return WB_OK;
}

static int fake_rollback(wb_storage_session *s, wb_error *error)
{
    (void)s, (void)error;
    return WB_OK;
}

static int64_t answer_time; /* how long the database takes to tell */

static int fake_clock(wb_storage_session *s, int64_t *ret_wall, wb_error *error)
{
    (void)s, (void)error;
    *ret_wall = wall;
    if (answer_time)
        wb_clock_pause(answer_time, NULL);
    return WB_OK;
}

static int fake_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted,
                         wb_error *error)
{
    (void)s, (void)before, (void)limit, (void)error;
    *ret_deleted = 0;
    cleaned++;
    return WB_OK;
}

static int fake_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                        void *argument, wb_error *error)
{
    (void)s, (void)batches, (void)count, (void)visit, (void)argument, (void)error;
    return WB_OK;
}

static const wb_persistence_ops storage_ops = { .struct_size = sizeof storage_ops, .begin = fake_begin,
                                                .commit = fake_commit, .rollback = fake_rollback,
                                                .pending = fake_pending,
                                                .clean_up = fake_clean_up, .clock = fake_clock };

static int dying_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                      int64_t deadline, wb_error *error)
{
    (void)s, (void)operations, (void)count, (void)deadline;
    *error = death;
    return WB_NOT_CONNECTED;
}

static int noting_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                       int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        strncat(sent, operations[i]->id, sizeof sent - strlen(sent) - 1);
        operations[i]->result = WB_OK;
    }
    return WB_OK;
}

static int fake_open(wb_transport *t, uint32_t purpose, uint32_t prefetch,
                     wb_transport_session **ret_session, wb_error *error)
{
    (void)t, (void)purpose, (void)prefetch, (void)error;
    *ret_session = (wb_transport_session *)&death;
    return WB_OK;
}

static void fake_close(wb_transport_session *s)
{
    (void)s;
}

static const wb_transport_ops dying_ops = { .struct_size = sizeof dying_ops, .open = fake_open,
                                            .close = fake_close, .send = dying_send };
static const wb_transport_ops noting_ops = { .struct_size = sizeof noting_ops, .send = noting_send };

static int doubtful_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)commit;
    return wb_error_set(error, WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, 0, "no reply");
}

/* A record of the batch whose commit got no reply says that it was made: its message was handled. Another's record
 * says that somebody else did it. */
static void test_a_commit_in_doubt_is_counted(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = fake_begin,
                                            .commit = doubtful_commit, .rollback = fake_rollback };
    wb_error error = { 0 };
    wb_item *culprit;
    (void)state;
    pipeline.persistence_ops = &ops;
    pipeline.outbox = 1;
    for (uint64_t another = 0; another < 2; another++) {
        wb_item *item = wb_batch_hold(&worker, &incoming[another], &entries[0]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(item, WB_ITEM_HANDLED);
        worker.in_transaction = 1;
        const uint64_t batch = worker.batch_number;
        assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_IN_DOUBT);
        wb_batch_rerun(&worker);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(item, WB_ITEM_DUPLICATE);
        item->duplicate_of = batch + another;
        wb_item_change(item, WB_ITEM_SETTLED);
        wb_batch_finish(&worker);
        assert_int_equal(counted(WB_TALLY_HANDLED), 1);
        assert_int_equal(counted(WB_TALLY_DUPLICATES), another);
    }
}

/* The round that sees the jump deletes nothing, whichever way it went, and whoever else asked for
 * the time in between. */
static void test_the_clock_jumps(void **state)
{
    static const int64_t days[] = { 0, 8, 8, 0, 0 };
    static const unsigned wanted[] = { 1, 1, 2, 2, 3 };
    wb_error error = { 0 };
    wb_cleaning cleaning = { .pace = wb_cleaner_pace_init(), .store_pace = wb_cleaner_pace_init() };
    const wb_records records = { &storage_ops, NULL };
    int64_t start = INT64_C(1700000000) * WB_SECOND;
    (void)state;
    pipeline.persistence_ops = &storage_ops;
    cleaned = 0;
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        wall = start + days[i] * 24 * 3600 * WB_SECOND;
        assert_int_equal(wb_pipeline_ask_time(&pipeline, NULL, &error), WB_OK); /* a worker reconnects */
        assert_int_equal(wb_clean_up(&pipeline, &records, WB_SECOND, &cleaning, WB_NEVER, &error), WB_OK);
        assert_int_equal(cleaned, wanted[i]);
        const unsigned before = cleaned;
        assert_int_equal(wb_clean_up_store(&pipeline, &records, WB_SECOND, &cleaning, WB_NEVER, &error), WB_OK);
        assert_int_equal(cleaned - before, i && days[i] != days[i - 1] ? 0 : 1);
        cleaned = before;
    }
}

#define CAP 10
static size_t old;

/* Servers have limits of their own. */
static size_t delete_few(void)
{
    const size_t deleted = old < CAP ? old : CAP;
    old -= deleted;
    cleaned++;
    return deleted;
}

static int capped_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    (void)s, (void)before, (void)error;
    assert_true(limit > CAP);
    *ret_deleted = delete_few();
    return WB_OK;
}

static int capped_clean_up_failures(wb_storage_session *s, int64_t before, size_t limit, size_t *ret_deleted,
                                    wb_error *error)
{
    (void)s, (void)before, (void)error;
    assert_true(limit > CAP);
    *ret_deleted = delete_few();
    return WB_OK;
}

static const void *capped_interface(wb_storage_session *s, const char *name)
{
    static const wb_failed_ops ops = { .struct_size = sizeof ops, .clean_up = capped_clean_up_failures };
    (void)s;
    return strcmp(name, WB_FAILED_INTERFACE) == 0 ? &ops : NULL;
}

/* A store that deletes fewer at once than it may is not done: one is that has deleted nothing. */
static void test_all_that_is_old_goes(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .clean_up = capped_clean_up, .clock = fake_clock,
                                            .interface = capped_interface };
    const wb_records records = { &ops, NULL };
    wb_error error = { 0 };
    wb_cleaning cleaning = { .pace = wb_cleaner_pace_init(), .store_pace = wb_cleaner_pace_init() };
    (void)state;
    pipeline.persistence_ops = &ops;
    for (int what = 0; what < 3; what++) {
        old = 2 * CAP + 5;
        cleaned = 0;
        int r = what == 0   ? wb_clean_up(&pipeline, &records, WB_SECOND, &cleaning, WB_NEVER, &error)
                : what == 1 ? wb_clean_up_store(&pipeline, &records, WB_SECOND, &cleaning, WB_NEVER, &error)
                            : wb_clean_up_failures(&pipeline, NULL, WB_NEVER, &error);
        assert_int_equal(r, WB_OK);
        assert_int_equal(old, 0);
        assert_int_equal(cleaned, 4); /* and no more */
    }
    assert_int_equal(atomic_load(&pipeline.tally.of[WB_TALLY_CLEANED]), 2 * (2 * CAP + 5));
}

/* Else a delay would be shorter by the time that the answer took. */
static void test_a_slow_answer_makes_nothing_early(void **state)
{
    wb_error error = { 0 };
    (void)state;
    pipeline.persistence_ops = &storage_ops;
    wall = INT64_C(1700000000) * WB_SECOND;
    answer_time = 50 * WB_MILLISECOND;
    int64_t before = wb_clock_steady();
    assert_int_equal(wb_pipeline_ask_time(&pipeline, NULL, &error), WB_OK);
    answer_time = 0;
    int64_t now = wb_pipeline_now(&pipeline), since = wb_clock_steady() - before;
    assert_true(now >= wall + 50 * WB_MILLISECOND);
    assert_true(now <= wall + since);
    /* nor is anything due before it is: the answer may have been as late */
    assert_true(wb_pipeline_due_now(&pipeline) <= wall + since - 50 * WB_MILLISECOND);
}

static void test_the_number_of_a_parked_row(void **state)
{
    const wb_parked parked = { 1, "because", "x", 1 };
    wb_error error = { 0 };
    wb_parking parking = { 0 };
    (void)state;
    pipeline.persistence_ops = &storage_ops;
    pipeline.park_time = 60 * WB_SECOND;
    pipeline.sweep_after = 20 * WB_SECOND;
    uint64_t from = wb_batch_number_at(wb_pipeline_now(&pipeline) + 40 * WB_SECOND);
    assert_int_equal(wb_pipeline_park(&pipeline, NULL, &parked, 0, &parking, &error), WB_OK);
    assert_int_equal(claims, 0);
    assert_int_equal(parking.number, stored);
    assert_true(stored >= from);
    assert_true(stored < wb_batch_number_at(wb_pipeline_now(&pipeline) + 41 * WB_SECOND));
}

/* The record says today's time, the row when it is due; and what is parked already is not stored. */
static void test_a_row_is_parked_once(void **state)
{
    const wb_parked parked = { 2, "because", "x", 1 };
    wb_error error = { 0 };
    wb_parking parking = { 0 };
    (void)state;
    pipeline.persistence_ops = &storage_ops;
    pipeline.park_time = 60 * WB_SECOND;
    pipeline.sweep_after = 20 * WB_SECOND;
    assert_int_equal(wb_pipeline_park(&pipeline, NULL, &parked, 4711, &parking, &error), WB_OK);
    assert_int_equal(claims, 1);
    assert_false(parking.was_done);
    assert_true(begun < wb_batch_number_at(wb_pipeline_now(&pipeline) + WB_SECOND));
    assert_true(stored > wb_batch_number_at(wb_pipeline_now(&pipeline) + 99 * WB_SECOND));
    claimed_by = begun;
    stored = 0;
    assert_int_equal(wb_pipeline_park(&pipeline, NULL, &parked, 4711, &parking, &error), WB_OK);
    assert_true(parking.was_done);
    assert_int_equal(stored, 0);
    claimed_by = 0;
}

/* ---- what is due later, with the commit ------------------------------------------------ */

static size_t delayed_count;
static char delayed_ids[8];
static size_t pending_count;

static int delaying_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    int failed = 0;
    const wb_operation_group *group =
        wb_operations_decode(commit->operations, commit->operations_size, &worker.arena, &failed);
    (void)s, (void)error;
    assert_false(failed);
    delayed_count = commit->delayed_count;
    for (size_t i = 0; i < delayed_count; i++)
        delayed_ids[i] = commit->delayed[i].id[0];
    for (pending_count = 0; group; group = group->next)
        pending_count += group->operations.count;
    return WB_OK;
}

static void ask_for(wb_item *item, const char *id, int64_t due)
{
    wb_operation *operation = wb_operation_append(&item->operations, &worker.arena);
    operation->destination = "q";
    operation->id = id;
    operation->id_size = 1;
    operation->deliver_at = due;
}

/* It is stored there, in no pending row, and the first that is due wakes the poller, whoever asked for it. */
static void test_delayed_with_the_commit(void **state)
{
    wb_persistence_ops ops = storage_ops;
    wb_error error = { 0 };
    wb_item *items[3], *culprit;
    (void)state;
    ops.commit = delaying_commit;
    pipeline.persistence_ops = &ops;
    pipeline.outbox = pipeline.stores_with_commit = 1;
    pipeline.origin.delays = WB_DELAYS_BY_STORE;
    wall = INT64_C(1700000000) * WB_SECOND;
    assert_int_equal(wb_pipeline_ask_time(&pipeline, NULL, &error), WB_OK);
    for (size_t i = 0; i < 3; i++)
        items[i] = wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 3);
    ask_for(items[0], "a", wall + 60 * WB_SECOND);
    ask_for(items[0], "b", 0);
    ask_for(items[0], "c", wall - WB_SECOND); /* it is due by now */
    ask_for(items[1], "d", wall + 30 * WB_SECOND);
    ask_for(items[2], "e", wall + 10 * WB_SECOND); /* what is not handled asks for nothing */
    wb_item_change(items[0], WB_ITEM_HANDLED);
    wb_item_change(items[1], WB_ITEM_HANDLED);
    worker.in_transaction = 1;
    wb_alarm_clear(&pipeline.alarm);
    assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_OK);
    assert_int_equal(delayed_count, 2);
    assert_memory_equal(delayed_ids, "ad", 2);
    assert_int_equal(pending_count, 2);
    assert_int_equal(pipeline.alarm.earliest, wall + 30 * WB_SECOND);
    wb_batch_drop_all(&worker);
}

/* Destinations that confirm nothing in a round of the sweeper: those, by their whole name, and no others. */
static void test_silences_of_a_round(void **state)
{
    wb_silences silences = { 0 };
    char name[16];
    (void)state;
    wb_silences_add(&silences, "orders");
    wb_silences_add(&silences, "billing");
    wb_silences_add(&silences, "orders");
    assert_int_equal(silences.count, 2);
    assert_true(wb_silences_has(&silences, "orders") && wb_silences_has(&silences, "billing"));
    assert_false(wb_silences_has(&silences, "order") || wb_silences_has(&silences, "orders.eu"));
    for (size_t i = 0; i <= WB_SILENCES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%zu", i);
        wb_silences_add(&silences, name);
    }
    assert_int_equal(silences.count, WB_SILENCES_MAX);
    wb_silences_free(&silences);
    assert_int_equal(silences.count, 0);
}

static unsigned deaths_after(int cause, int code)
{
    wb_operation operation = { .id = "o", .id_size = 1, .destination = "d", .result = WB_RETRY };
    wb_operation *list = &operation;
    wb_arena arena;
    wb_error error = { 0 };
    wb_outlet outlet = { .pipeline = &pipeline, .confirmed = 1 };
    wb_arena_init(&arena, 4096);
    wb_window window = { &list, 1, 1, &arena };
    death = (wb_error){ .result = WB_NOT_CONNECTED, .cause = cause, .native_code = code };
    pipeline.transport_ops = &dying_ops;
    wb_suspicions_forget(pipeline.suspicions, "o", 1);
    wb_suspicions_add(pipeline.suspicions, "o", 1);
    assert_int_equal(wb_window_send(&window, &outlet, &error), WB_NOT_CONNECTED);
    wb_arena_free(&arena);
    return wb_suspicions_deaths(pipeline.suspicions, "o", 1);
}

static void test_deaths_that_count(void **state)
{
    (void)state;
    assert_int_equal(deaths_after(WB_CAUSE_OTHER, 501), 1);
    assert_int_equal(deaths_after(WB_CAUSE_UNREACHABLE, 0), 1);
    assert_int_equal(deaths_after(WB_CAUSE_UNREACHABLE, 320), 0); /* CONNECTION_FORCED */
    assert_int_equal(deaths_after(WB_CAUSE_SERVER, 0), 0);
}

static void test_the_harmless_first(void **state)
{
    wb_operation bad = { .id = "b", .id_size = 1, .result = WB_RETRY };
    wb_operation good = { .id = "g", .id_size = 1, .result = WB_RETRY };
    wb_operation *list[] = { &bad, &good };
    wb_error error = { 0 };
    wb_arena arena;
    wb_outlet outlet = { .pipeline = &pipeline };
    (void)state;
    pipeline.transport_ops = &noting_ops;
    sent[0] = '\0';
    wb_arena_init(&arena, 4096);
    wb_window window = { list, 2, 2, &arena };
    wb_suspicions_count_death(pipeline.suspicions, "b", 1, 0);
    assert_int_equal(wb_window_send(&window, &outlet, &error), WB_OK);
    assert_string_equal(sent, "gb");
    assert_false(wb_suspicions_has(pipeline.suspicions, "b", 1)); /* it was confirmed after all */
    wb_arena_free(&arena);
}

/* One destination confirms nothing so often, whoever asks. */
static int silences;

static int silent_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                       int64_t deadline, wb_error *error)
{
    int silent = 0;
    (void)s, (void)deadline;
    for (size_t i = 0; i < count; i++) {
        int is_silent = operations[i]->id[0] == 's' && silences;
        silences -= is_silent;
        (void)strncat(sent, operations[i]->id, 1);
        operations[i]->result = is_silent ? WB_IN_DOUBT : WB_OK;
        silent |= is_silent;
    }
    error->result = silent ? WB_IN_DOUBT : WB_OK;
    error->cause = WB_CAUSE_SENDING;
    return error->result;
}

static const wb_transport_ops silent_ops = { .struct_size = sizeof silent_ops, .send = silent_send };

static void send_silently(int result, const char *expected)
{
    wb_operation silent = { .id = "s", .id_size = 1, .result = WB_RETRY };
    wb_operation good = { .id = "g", .id_size = 1, .result = WB_RETRY };
    wb_operation *list[] = { &silent, &good };
    wb_error error = { 0 };
    wb_arena arena;
    wb_outlet outlet = { .pipeline = &pipeline };
    pipeline.transport_ops = &silent_ops;
    sent[0] = '\0';
    wb_arena_init(&arena, 4096);
    wb_window window = { list, 2, 2, &arena };
    assert_int_equal(wb_window_send(&window, &outlet, &error), result);
    assert_string_equal(sent, expected);
    assert_int_equal(good.result, WB_OK);
    assert_int_equal(silent.result, result);
    wb_arena_free(&arena);
}

/* What is not confirmed is sent once more, by itself, and keeps nobody else; nobody is suspected. */
static void test_silence(void **state)
{
    (void)state;
    pipeline.mode = WB_MODE_RECEIVE_ONLY;
    silences = 100;
    send_silently(WB_IN_DOUBT, "sgs");
    assert_false(wb_suspicions_has(pipeline.suspicions, "s", 1));
    wb_suspicions_add(pipeline.suspicions, "s", 1);
    send_silently(WB_IN_DOUBT, "ssg");
    assert_int_equal(wb_suspicions_deaths(pipeline.suspicions, "s", 1), 0);
}

/* That mode runs nothing twice: it goes on until all is confirmed. */
static void test_silence_with_mode_none(void **state)
{
    (void)state;
    pipeline.mode = WB_MODE_NONE;
    silences = 2;
    send_silently(WB_OK, "sgss");
}

/* A queue that is full and refuses what it gets does so for ever: its message fails, and waits for nothing. */
static unsigned refusals;

static int refusing_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                         int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline;
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_RETRY;
    if (++refusals > 6)
        operations[0]->result = WB_OK;
    return wb_error_set(error, refusals > 6 ? WB_OK : WB_RETRY, WB_CAUSE_OTHER, 0, "the queue is full");
}

static void test_refusals_have_an_end(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = refusing_send };
    wb_operation operation = { .id = "o", .id_size = 1, .destination = "full", .result = WB_RETRY };
    wb_operation *list[] = { &operation };
    wb_error error = { 0 };
    wb_arena arena;
    wb_outlet outlet = { .pipeline = &pipeline };
    (void)state;
    pipeline.transport_ops = &ops;
    wb_arena_init(&arena, 4096);
    wb_window window = { list, 1, 1, &arena };
    assert_int_equal(wb_window_send(&window, &outlet, &error), WB_OK);
    assert_int_equal(refusals, 6);
    assert_int_equal(operation.result, WB_REJECT);
    assert_string_equal(operation.reason, "the broker refused it: the queue is full");
    wb_arena_free(&arena);
}

static void test_marks_outlive_a_session(void **state)
{
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &dying_ops;
    assert_int_equal(wb_stage_connect(&worker, &error), WB_OK);
    wb_marks_add(&worker, (wb_mark){ 7, NULL, 0 });
    worker.transport_broken = 1;
    assert_int_equal(wb_stage_connect(&worker, &error), WB_OK);
    assert_int_equal(worker.mark_count, 1);
}

/* A message that comes back from the error queue, whose operations are in no batch's row. */
static void test_parked_rows_are_asked_for(void **state)
{
    static const wb_header came_back = { WB_HEADER_FAILED_QUEUE, "e", sizeof WB_HEADER_FAILED_QUEUE - 1, 1 };
    wb_error error = { 0 };
    pipeline.persistence_ops = &storage_ops;
    (void)state;
    for (int back = 0; back < 2; back++) {
        incoming[back].headers = back ? &came_back : NULL;
        incoming[back].header_count = (size_t)back;
        wb_item *item = wb_batch_hold(&worker, &incoming[back], &entries[0]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(item, WB_ITEM_DUPLICATE);
        item->duplicate_of = 7;
        assert_int_equal(wb_stage_resume(&worker, &error), WB_OK);
        assert_int_equal(item->state, WB_ITEM_SETTLED);
        assert_int_equal(pipeline.sweep_parked, back);
        wb_batch_finish(&worker);
    }
}

/* ---- handlers that end the transaction --------------------------------------------------- */

static size_t failed_item;
static uint64_t owners[2];
static unsigned commits;

static int refusing_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)error;
    commit->failed_item = failed_item;
    return WB_REJECT;
}

static int claiming_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    (void)s, (void)error;
    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = owners[i];
    return WB_OK;
}

static int counting_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)commit, (void)error;
    commits++;
    return WB_OK;
}

/* Only the commit has shown it: who did it, and who came after it, was not handled. */
static void test_who_was_handled(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .commit = refusing_commit };
    static const struct {
        size_t item;
        int cause;
        size_t handled;
    } cases[] = { { 0, WB_CAUSE_OTHER, 0 }, { 1, WB_CAUSE_OTHER, 1 }, { SIZE_MAX, WB_CAUSE_OTHER, 0 },
                  { SIZE_MAX, WB_CAUSE_TOO_LARGE, 3 } };
    wb_item *culprit;
    (void)state;
    pipeline.persistence_ops = &ops;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0]);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        wb_error error = { .cause = cases[c].cause };
        failed_item = cases[c].item;
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        for (unsigned i = 0; i < 3; i++) {
            wb_item_change(worker.batch[i], WB_ITEM_HANDLED);
            worker.batch[i]->turn = i + 1;
        }
        worker.in_transaction = 1;
        assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_REJECT);
        assert_int_equal(worker.transaction_ended, cases[c].cause == WB_CAUSE_OTHER);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(worker.batch[i]->state,
                             i < cases[c].handled ? WB_ITEM_HANDLED : WB_ITEM_READY);
        wb_batch_rerun(&worker);
    }
}

/* A single claim that is free says that it was rolled back, or made good before; making it good
 * again would record whoever is free as handled. */
static void test_what_is_made_good(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = claiming_begin,
                                            .commit = counting_commit, .rollback = fake_rollback };
    static const struct {
        uint64_t owners[2];
        unsigned commits;
    } cases[] = { { { 0, 0 }, 0 }, { { 0, 7 }, 0 }, { { 7, 0 }, 0 }, { { 7, 7 }, 1 } };
    wb_error error = { 0 };
    (void)state;
    pipeline.persistence_ops = &ops;
    for (size_t i = 0; i < 2; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    worker.batch_number = 7;
    worker.claim_count = 2;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        memcpy(owners, cases[c].owners, sizeof owners);
        for (size_t i = 0; i < 2; i++)
            worker.claimed[i] = worker.batch[i];
        commits = 0;
        assert_int_equal(wb_stage_repair(&worker, &error), WB_OK);
        assert_int_equal(commits, cases[c].commits);
    }
}

/* One is due later; whoever came behind ended the transaction, and only the commit has shown it. */
static int repairing_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    assert_int_equal(commit->delayed_count, commits == 0);
    assert_int_equal(commit->operations_size > 0, commits == 1);
    return commits++ ? WB_OK : refusing_commit(s, commit, error);
}

static void test_what_is_due_later_is_made_good(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = claiming_begin,
                                            .commit = repairing_commit, .rollback = fake_rollback };
    wb_error error = { 0 };
    wb_item *culprit;
    (void)state;
    pipeline.persistence_ops = &ops;
    pipeline.outbox = pipeline.stores_with_commit = 1;
    for (size_t i = 0; i < 2; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    for (unsigned i = 0; i < 2; i++) {
        wb_item_change(worker.batch[i], WB_ITEM_HANDLED);
        worker.batch[i]->turn = i + 1;
        worker.claimed[i] = worker.batch[i];
        owners[i] = 7;
    }
    *wb_operation_append(&worker.batch[0]->operations, &worker.arena) = (wb_operation){
        .id = "x", .id_size = 1, .destination = "d", .result = WB_RETRY, .deliver_at = wb_clock_wall() + WB_SECOND * 3600
    };
    worker.in_transaction = 1;
    worker.batch_number = 7;
    worker.claim_count = 2;
    failed_item = 1;
    commits = 0;
    assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_REJECT);
    assert_int_equal(wb_stage_repair(&worker, &error), WB_OK);
    assert_int_equal(commits, 2);
}

static int lacking_next(wb_storage_session *s, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    (void)s, (void)ret_due, (void)ret_now;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0, "no table");
}

/* A commit failed that stores what is due later: not its handler's doing where a new session has no such table. */
static void test_a_store_that_is_missing_is_no_handlers_fault(void **state)
{
    static const wb_delayed_ops delayed = { .struct_size = sizeof delayed, .next = lacking_next };
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = claiming_begin,
                                            .commit = counting_commit, .rollback = fake_rollback, .delayed = &delayed };
    wb_error error = { 0 };
    (void)state;
    pipeline.persistence_ops = &ops;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    for (int stores = 0; stores < 2; stores++) {
        item->is_doubted = 1;
        item->failure.faults = 0;
        pipeline.stores_with_commit = stores;
        assert_int_equal(wb_stage_witness(&worker, &error), stores ? WB_FATAL : WB_OK);
        assert_int_equal(item->failure.faults, !stores);
    }
    wb_failure_clear(&item->failure);
}

/* Two rows, the later one first. */
static int unordered_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                             void *argument, wb_error *error)
{
    wb_arena arena;
    wb_buffer bytes = { 0 };
    (void)s, (void)batches, (void)error;
    assert_int_equal(count, 2);
    wb_arena_init(&arena, 4096);
    for (size_t i = 2; i-- > 0;) {
        wb_operation_list list = { 0 };
        wb_operation *operation = wb_operation_append(&list, &arena);
        *operation = (wb_operation){ .id = i ? "y" : "x", .id_size = 1, .destination = "d",
                                     .result = WB_RETRY };
        wb_operations_encode_start(&bytes);
        assert_int_equal(wb_operations_encode_group(&bytes, incoming[i].id, 1, &list), 1);
        const wb_pending row = { sizeof row, 7 + i, bytes.data, bytes.size };
        assert_int_equal(visit(argument, &row), WB_OK);
    }
    wb_buffer_free(&bytes);
    wb_arena_free(&arena);
    return WB_OK;
}

static int rejecting_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                          int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = WB_REJECT;
        operations[i]->cause = WB_CAUSE_UNROUTABLE;
    }
    return WB_OK;
}

static void resume_with(__typeof__(&unordered_pending) pending, const wb_transport_ops *transport_ops, int result)
{
    static wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = fake_begin, .commit = fake_commit };
    ops.pending = pending;
    wb_error error = { 0 };
    pipeline.persistence_ops = &ops;
    pipeline.transport_ops = transport_ops;
    worker.outlet = (wb_outlet){ .pipeline = &pipeline };
    for (size_t i = 0; i < 2; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    for (size_t i = 0; i < 2; i++) {
        wb_item_change(worker.batch[i], WB_ITEM_DUPLICATE);
        worker.batch[i]->duplicate_of = 7 + i;
    }
    assert_int_equal(wb_stage_resume(&worker, &error), result);
}

static void resume_two(const wb_transport_ops *transport_ops, int result)
{
    resume_with(unordered_pending, transport_ops, result);
}

/* What was committed first leaves first, whatever the order of the rows. */
static void test_resumed_in_the_order_of_commits(void **state)
{
    (void)state;
    sent[0] = '\0';
    resume_two(&noting_ops, WB_OK);
    assert_string_equal(sent, "xy");
    wb_batch_finish(&worker);
}

/* What is refused then is the failure of the message that caused it, as it would have been at first. */
static void test_refused_when_resumed(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = rejecting_send };
    (void)state;
    resume_two(&ops, WB_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(worker.batch[i]->state, WB_ITEM_READY);
        assert_int_equal(worker.batch[i]->failure.attempts, 1);
        wb_item_clear(worker.batch[i]);
    }
}

/* ---- what other workers have underway ------------------------------------------------------ */

static int another_worker; /* somebody else's worker */
static int reads, finish_at; /* the other one is done while rows are read for that time */

/* A row for each that is asked for. */
static int pending_of_asked(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                            void *argument, wb_error *error)
{
    wb_arena arena;
    wb_buffer bytes = { 0 };
    (void)s, (void)error;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < count; i++) {
        wb_operation_list list = { 0 };
        wb_operation *operation = wb_operation_append(&list, &arena);
        *operation = (wb_operation){ .id = batches[i] == 7 ? "x" : "y", .id_size = 1, .destination = "d", .result = WB_RETRY };
        wb_operations_encode_start(&bytes);
        assert_int_equal(wb_operations_encode_group(&bytes, incoming[batches[i] - 7].id, 1, &list), 1);
        const wb_pending row = { sizeof row, batches[i], bytes.data, bytes.size };
        assert_int_equal(visit(argument, &row), WB_OK);
    }
    wb_buffer_free(&bytes);
    wb_arena_free(&arena);
    if (++reads == finish_at)
        wb_underway_give_up(&pipeline.underway, &another_worker);
    return WB_OK;
}

static void check_states(int first, int second)
{
    assert_int_equal(worker.batch[0]->state, first);
    assert_int_equal(worker.batch[1]->state, second);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(worker.batch[i]->paused_until > wb_clock_monotonic(), worker.batch[i]->state == WB_ITEM_READY);
}

/* What another worker sends is not sent beside it, nor what it has sent and not marked for good: the copies wait, and ask anew. */
static void test_others_have_it_underway(void **state)
{
    (void)state;
    for (int is_first = 0; is_first < 2; is_first++) {
        sent[0] = '\0';
        reads = finish_at = 0;
        wb_underway_begin(&pipeline.underway, &another_worker, is_first ? 7 : 8);
        if (is_first)
            wb_underway_is_out(&pipeline.underway, &another_worker);
        resume_with(pending_of_asked, &noting_ops, WB_OK);
        check_states(WB_ITEM_READY, WB_ITEM_READY);
        assert_int_equal(reads, 1); /* nobody stands still for it */
        assert_string_equal(sent, "");
        assert_int_equal(worker.mark_count, 0);
        wb_batch_drop_all(&worker);
        wb_underway_drop(&pipeline.underway, &another_worker);
    }
}

/* What was read while another worker finished is old. */
static void test_others_finish_meanwhile(void **state)
{
    (void)state;
    sent[0] = '\0';
    reads = 0;
    finish_at = 1;
    wb_underway_begin(&pipeline.underway, &another_worker, 8);
    resume_with(pending_of_asked, &noting_ops, WB_OK);
    check_states(WB_ITEM_READY, WB_ITEM_READY);
    assert_string_equal(sent, "");
    wb_batch_drop_all(&worker);
}

/* An own one, or one of another number, keeps nobody. */
static void test_nobody_has_it_underway(void **state)
{
    (void)state;
    sent[0] = '\0';
    finish_at = 0;
    wb_underway_begin(&pipeline.underway, &worker, 7);
    wb_underway_begin(&pipeline.underway, &another_worker, 9);
    resume_with(pending_of_asked, &noting_ops, WB_OK);
    check_states(WB_ITEM_SETTLED, WB_ITEM_SETTLED);
    assert_string_equal(sent, "xy");
    wb_batch_drop_all(&worker);
}

/* From its commit to the end of the transaction that has its mark; no longer than its session lives. */
static void test_how_long_it_is_underway(void **state)
{
    wb_underway *u = &pipeline.underway;
    (void)state;
    wb_underway_begin(u, &worker, 7);
    assert_true(wb_underway_has(u, NULL, 7));
    wb_underway_is_out(u, &worker);
    wb_underway_give_up(u, &worker);
    wb_underway_landed(u, &worker); /* a transaction without it */
    assert_true(wb_underway_has(u, NULL, 7));
    wb_underway_ride(u, &worker);
    wb_underway_begin(u, &worker, 8);
    wb_underway_ride(u, &worker); /* which is not out */
    wb_underway_landed(u, &worker);
    assert_false(wb_underway_has(u, NULL, 7));
    assert_true(wb_underway_has(u, NULL, 8));
    wb_underway_give_up(u, &another_worker);
    wb_underway_is_out(u, &worker);
    wb_underway_marked(u, &another_worker);
    wb_underway_drop(u, &another_worker);
    assert_true(wb_underway_has(u, NULL, 8));
    wb_underway_marked(u, &worker);
    assert_false(wb_underway_has(u, NULL, 8));
    wb_underway_begin(u, &worker, 9);
    wb_underway_begin(u, &worker, 10);
    assert_false(wb_underway_has(u, NULL, 9));
    wb_underway_is_out(u, &worker);
    wb_underway_drop(u, &worker);
    assert_false(wb_underway_has(u, NULL, 10));
}

/* ---- whose fault it is ------------------------------------------------------------------- */

static int half_result; /* what becomes of a window of which the first operation is out */

static int half_send(wb_transport_session *s, wb_operation *const *operations, size_t count, int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline;
    for (size_t i = 0; i < count; i++)
        operations[i]->result = operations[i]->id[0] == 'x' ? WB_OK : WB_IN_DOUBT;
    return wb_error_set(error, half_result, WB_CAUSE_SENDING, 0, "no confirmation came");
}

static const wb_transport_ops half_ops = { .struct_size = sizeof half_ops, .send = half_send };

/* The row goes, or keeps what is not known to be out. */
static void check_mark(size_t at, uint64_t batch, const char *remaining_cause)
{
    int failed = 0;
    wb_arena arena;
    assert_true(at < worker.mark_count);
    const wb_mark *mark = &worker.marks[at];
    assert_int_equal(mark->batch, batch);
    assert_int_equal(mark->remaining != NULL, remaining_cause != NULL);
    if (!remaining_cause)
        return;
    wb_arena_init(&arena, 4096);
    const wb_operation_group *group = wb_operations_decode(mark->remaining, mark->remaining_size, &arena, &failed);
    assert_false(failed);
    assert_memory_equal(group->cause, remaining_cause, 1);
    assert_int_equal(group->operations.count, 1);
    assert_null(group->next);
    wb_arena_free(&arena);
}

/* What was resumed is sent once: nobody resumes it again. */
static void test_what_is_resumed_is_marked(void **state)
{
    (void)state;
    resume_two(&noting_ops, WB_OK);
    assert_int_equal(worker.mark_count, 2);
    check_mark(0, 7, NULL);
    check_mark(1, 8, NULL);
    assert_false(worker.transport_broken);
    wb_batch_finish(&worker);
}

/* What was confirmed before the session was lost is not sent again, and nothing more is asked of that session. */
static void test_session_is_lost_while_resuming(void **state)
{
    (void)state;
    half_result = WB_NOT_CONNECTED;
    resume_two(&half_ops, WB_NOT_CONNECTED);
    check_mark(0, 7, NULL);
    check_mark(1, 8, "b");
    assert_true(worker.transport_broken);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(worker.batch[i]->state, WB_ITEM_DUPLICATE);
    wb_batch_drop_all(&worker);
}

/* A message waits for what it caused to be confirmed; others are done. */
static void test_unconfirmed_when_resumed(void **state)
{
    (void)state;
    half_result = WB_IN_DOUBT;
    resume_two(&half_ops, WB_OK);
    check_mark(0, 7, NULL);
    check_mark(1, 8, "b");
    assert_int_equal(worker.batch[0]->state, WB_ITEM_SETTLED);
    assert_int_equal(worker.batch[1]->state, WB_ITEM_READY);
    assert_true(worker.batch[1]->paused_until > wb_clock_monotonic());
    assert_true(worker.batch[1]->alone);
    wb_batch_drop_all(&worker);
}

static void dispatch_two(const char *first_id)
{
    wb_error error = { 0 };
    pipeline.outbox = 1;
    pipeline.transport_ops = &half_ops;
    worker.outlet = (wb_outlet){ .pipeline = &pipeline };
    worker.transport_broken = 0;
    for (size_t i = 0; i < 2; i++)
        (void)wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    worker.stored = 1;
    for (size_t i = 0; i < worker.batch_size; i++) {
        wb_item_change(worker.batch[i], WB_ITEM_HANDLED);
        ask_for(worker.batch[i], i ? "y" : first_id, 0);
        wb_item_change(worker.batch[i], WB_ITEM_COMMITTED);
    }
    half_result = WB_NOT_CONNECTED;
    assert_int_equal(wb_stage_dispatch(&worker, &error), WB_NOT_CONNECTED);
    assert_true(worker.transport_broken);
}

static void forget_two(void)
{
    for (size_t i = 0; i < 2; i++)
        wb_suspicions_forget(pipeline.suspicions, incoming[i].id, 1);
    wb_marks_clear(&worker);
    wb_batch_drop_all(&worker);
}

/* What was confirmed before need not go out again; and whose operations were on their way is handled by itself when
 * it comes again, for one of them may have done it. A stop that ends the session is nobody's doing. */
static void test_session_is_lost_while_sending(void **state)
{
    (void)state;
    dispatch_two("x");
    assert_int_equal(worker.mark_count, 1);
    check_mark(0, worker.batch_number, "b");
    for (size_t i = 0; i < 2; i++)
        assert_true(wb_suspicions_has(pipeline.suspicions, incoming[i].id, 1));
    forget_two();
    dispatch_two("z");
    assert_int_equal(worker.mark_count, 0); /* the row is as it was */
    forget_two();
    pipeline.stop = 1;
    dispatch_two("x");
    for (size_t i = 0; i < 2; i++)
        assert_false(wb_suspicions_has(pipeline.suspicions, incoming[i].id, 1));
    forget_two();
}

static unsigned marked;

static int count_marks(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)s, (void)marks, (void)error;
    marked += (unsigned)count;
    return WB_OK;
}

static void close_nothing(wb_storage_session *s)
{
    (void)s;
}

/* The last thing a worker does, whatever became of the broker: what it sent is not sent again. */
static void test_marks_of_who_ends(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .mark = count_marks, .close = close_nothing };
    (void)state;
    pipeline.persistence_ops = &ops;
    for (int broken = 0; broken < 2; broken++) {
        marked = 0;
        worker.storage = (wb_storage_session *)&worker; /* nobody looks inside */
        worker.storage_broken = broken;
        worker.transport_broken = 1;
        wb_marks_add(&worker, (wb_mark){ 7, NULL, 0 });
        wb_stage_disconnect(&worker);
        assert_int_equal(marked, !broken);
        assert_null(worker.storage);
        wb_marks_clear(&worker);
    }
}

static int refusing_handler(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_REJECT;
}

static int aborted(wb_storage_session *s, size_t place, wb_error *error)
{
    (void)s, (void)place, (void)error;
    return WB_ABORT;
}

/* A deadlock is nobody's fault, whatever the handler makes of it. */
static void test_a_deadlock_is_no_verdict(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .check = aborted };
    wb_item *culprit;
    wb_error error = { 0 };
    (void)state;
    pipeline.persistence_ops = &ops;
    entries[0].one = refusing_handler;
    wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    worker.storage = (wb_storage_session *)&death;
    assert_int_equal(wb_stage_handle(&worker, &culprit, &error), WB_ABORT);
    worker.storage = NULL;
}

/* One that never ends is the message's own, which runs alone. */
static void test_a_deadlock_that_never_ends(void **state)
{
    wb_error error = { .result = WB_ABORT, .text = "deadlock" };
    (void)state;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(item->failure.attempts, 0);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(wb_stage_isolate(&worker, WB_ABORT, item, &error), WB_ABORT);
    }
    assert_int_equal(item->failure.attempts, 1);
    wb_item_clear(item);
}

static void test_a_deadlock_halves(void **state)
{
    wb_error error = { .result = WB_ABORT };
    (void)state;
    for (size_t i = 0; i < 3; i++)
        wb_batch_hold(&worker, &incoming[i], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 3);
    assert_int_equal(wb_stage_isolate(&worker, WB_ABORT, NULL, &error), WB_OK);
    assert_int_equal(worker.take, 2);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(worker.batch_size, 2);
    wb_batch_drop_all(&worker);
}

static int failing_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s;
    commit->failed_item = failed_item;
    *error = death;
    return death.result;
}

/* A deferred statement that failed is its message's. Where a batch handler got several it is nobody's in particular, nor is the
 * server's trouble anybody's: then nobody has failed, and each runs by itself. */
static void test_whose_the_commit_was(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .commit = failing_commit };
    static const struct {
        size_t batched; /* so many go to the batch handler, in one call */
        size_t item;
        int result, cause, is_known;
    } rows[] = {
        { 0, 0, WB_RETRY, WB_CAUSE_OTHER, 1 },  { 0, 2, WB_RETRY, WB_CAUSE_OTHER, 1 },  { 1, 0, WB_RETRY, WB_CAUSE_OTHER, 1 },
        { 1, 2, WB_RETRY, WB_CAUSE_OTHER, 1 },  { 2, 0, WB_RETRY, WB_CAUSE_OTHER, 0 },  { 2, 1, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { 2, 2, WB_RETRY, WB_CAUSE_OTHER, 0 },  { 3, 0, WB_RETRY, WB_CAUSE_OTHER, 0 },  { 3, 2, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { 3, 0, WB_REJECT, WB_CAUSE_TOO_LARGE, 0 }, { 0, 1, WB_REJECT, WB_CAUSE_TOO_LARGE, 1 },
        { 0, 0, WB_RETRY, WB_CAUSE_SERVER, 0 }, { 0, SIZE_MAX, WB_RETRY, WB_CAUSE_OTHER, 0 }, { 0, 3, WB_RETRY, WB_CAUSE_OTHER, 0 },
    };
    (void)state;
    pipeline.persistence_ops = &ops;
    entries[0] = (wb_handler_entry){ .type = "One", .batch = handle_some, .module = "test" };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_item *culprit;
        wb_error error = { 0 };
        handled[0] = '\0';
        worker.take = 8;
        for (size_t k = 0; k < 3; k++)
            wb_batch_hold(&worker, &incoming[k], &entries[k >= rows[i].batched]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(wb_stage_handle(&worker, &culprit, &error), WB_OK);
        worker.in_transaction = 1;
        failed_item = rows[i].item;
        death = (wb_error){ .result = rows[i].result, .cause = rows[i].cause };
        assert_int_equal(wb_stage_commit(&worker, &culprit, &error), rows[i].result);
        if (culprit != (rows[i].is_known ? worker.batch[rows[i].item] : NULL))
            fail_msg("row %zu: %s", i, culprit ? culprit->message.id : "nobody");
        (void)wb_stage_isolate(&worker, rows[i].result, culprit, &error);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(worker.held[k]->failure.attempts + worker.held[k]->failure.faults, rows[i].is_known && k == rows[i].item);
        wb_batch_drop_all(&worker);
    }
}

/* With mode none, which promises at most once, who may be committed does not run again; what had no handler may. */
static void test_a_commit_in_doubt_with_mode_none(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .commit = doubtful_commit };
    (void)state;
    pipeline.persistence_ops = &ops;
    for (int mode = WB_MODE_NONE; mode <= WB_MODE_RECEIVE_ONLY; mode++) {
        wb_item *culprit;
        wb_error error = { 0 };
        pipeline.mode = mode;
        for (size_t i = 0; i < 3; i++)
            wb_batch_hold(&worker, &incoming[i], i < 2 ? &entries[0] : NULL);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        for (size_t i = 1; i < 3; i++)
            wb_item_change(worker.batch[i], WB_ITEM_HANDLED);
        worker.in_transaction = 1;
        assert_int_equal(wb_stage_commit(&worker, &culprit, &error), WB_IN_DOUBT);
        assert_int_equal(wb_stage_isolate(&worker, WB_IN_DOUBT, culprit, &error), WB_IN_DOUBT);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(worker.held[i]->state, WB_ITEM_READY);
            assert_int_equal(worker.held[i]->verdict, mode == WB_MODE_NONE && i == 1 ? WB_VERDICT_FAILED : WB_VERDICT_OPEN);
        }
        worker.storage_broken = 0;
        wb_batch_drop_all(&worker);
    }
}

static int failing_transport_commit(wb_transport_session *s, wb_error *error)
{
    (void)s;
    *error = death;
    return WB_RETRY;
}

/* The transport's transaction beside a database's: not committed is an attempt, unless the server
 * could not for now. */
static void test_a_transaction_that_is_not_committed(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .commit = failing_transport_commit };
    static const int causes[] = { WB_CAUSE_SERVER, WB_CAUSE_OTHER };
    wb_error error = { 0 };
    (void)state;
    pipeline.mode = WB_MODE_SENDS_ATOMIC;
    pipeline.transport_ops = &ops;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        wb_item_change(item, WB_ITEM_HANDLED);
        wb_item_change(item, WB_ITEM_SENT);
        death = (wb_error){ .result = WB_RETRY, .cause = causes[i] };
        worker.storage = (wb_storage_session *)&death;
        assert_int_equal(wb_stage_commit_transport(&worker, &error), WB_RETRY);
        worker.storage = NULL;
        assert_int_equal(item->failure.attempts, i);
        wb_batch_rerun(&worker);
    }
    wb_batch_drop_all(&worker);
}

/* ---- what is refused -------------------------------------------------------------------- */

static wb_operation refuse(int cause)
{
    return (wb_operation){ .id = "o", .id_size = 1, .destination = "d", .result = WB_REJECT, .cause = cause };
}

/* Who may not send waits, whatever arrived before: only what arrives meanwhile says that it is
 * this message's own. */
static void test_a_privilege_is_waited_for(void **state)
{
    const wb_operation refused = refuse(WB_CAUSE_REFUSED);
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    (void)state;
    atomic_fetch_add(&pipeline.arrivals, 1);
    for (int i = 0; i < 20; i++)
        wb_verdict_was_refused(&worker, item, &refused);
    assert_int_equal(item->verdict, WB_VERDICT_OPEN);
    assert_int_equal(item->failure.faults, 0);
    for (int i = 0; i < 20 && item->verdict == WB_VERDICT_OPEN; i++) {
        atomic_fetch_add(&pipeline.arrivals, 1);
        wb_verdict_was_refused(&worker, item, &refused);
    }
    assert_int_equal(item->verdict, WB_VERDICT_FAILED);
    wb_batch_drop_all(&worker);
}

/* An error queue that is full, is not there or may not be written takes no smaller copy either. */
static void test_what_is_not_cut(void **state)
{
    static const int causes[] = { WB_CAUSE_SERVER, WB_CAUSE_REFUSED, WB_CAUSE_UNROUTABLE };
    const wb_operation too_large = refuse(WB_CAUSE_TOO_LARGE);
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    (void)state;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        const wb_operation refused = refuse(causes[i]);
        wb_move_refused(&worker, item, &too_large);
        assert_int_equal(item->trim, 1);
        wb_move_refused(&worker, item, &refused);
        assert_int_equal(item->trim, 0);
    }
}

/* ---- the scout -------------------------------------------------------------------------- */

static int large_send(wb_transport_session *s, wb_operation *const *operations, size_t count, int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline, (void)error;
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = WB_REJECT;
        operations[i]->cause = WB_CAUSE_TOO_LARGE;
    }
    return WB_OK;
}

static wb_buffer kept_row;

static int keeping_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)error;
    kept_row.size = 0;
    wb_buffer_put(&kept_row, commit->operations, commit->operations_size);
    return WB_OK;
}

/* However little of it the error queue was offered last: when that takes more again, it gets all. */
static void test_what_is_parked_is_whole(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = fake_begin, .commit = keeping_commit };
    static const wb_transport_ops transport = { .struct_size = sizeof transport, .send = large_send };
    char reason[2000];
    wb_error error = { 0 };
    wb_parked parked;
    wb_arena arena;
    int tries = 0, failed;
    (void)state;
    memset(reason, 'r', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    pipeline.origin = wb_origin_make("e", 1, 1024);
    pipeline.outbox = 1;
    pipeline.persistence_ops = &ops;
    pipeline.transport_ops = &transport;
    worker.outlet = (wb_outlet){ .pipeline = &pipeline };
    wb_item_condemn(wb_batch_hold(&worker, &incoming[0], &entries[0]), WB_FAILURE_HANDLER, reason);
    for (; worker.held_count && tries < 20; tries++) {
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(wb_stage_dispatch(&worker, &error), WB_OK);
        wb_batch_finish(&worker);
    }
    assert_int_equal(tries, WB_TRIM_MAX + 1);
    assert_true(wb_parked_decode(kept_row.data, kept_row.size, &parked));
    wb_arena_init(&arena, 4096);
    const wb_operation_group *group = wb_operations_decode(parked.operations, parked.operations_size, &arena, &failed);
    assert_false(failed);
    const wb_operation *copy = &group->operations.first->operation;
    const wb_header *told = WB_HEADERS_FIND(copy->headers, copy->header_count, WB_HEADER_EXCEPTION_MESSAGE);
    assert_non_null(told);
    assert_int_equal(told->value_size, sizeof reason - 1);
    wb_arena_free(&arena);
    wb_buffer_free(&kept_row);
}

/* Who waits for the first worker: nobody where deliveries do not matter. */
static void test_who_waits_for_the_scout(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    static const struct {
        uint32_t limit;
        int outbox, ordered, mode, waits;
    } cases[] = {
        { 5, 1, 0, WB_MODE_RECEIVE_ONLY, 1 }, { 5, 0, 0, WB_MODE_RECEIVE_ONLY, 1 },
        { 0, 0, 0, WB_MODE_RECEIVE_ONLY, 1 }, { 0, 1, 0, WB_MODE_RECEIVE_ONLY, 0 },
        { 0, 0, 1, WB_MODE_RECEIVE_ONLY, 0 }, { 0, 0, 0, WB_MODE_TRANSACTION_SCOPE, 1 },
        { 5, 0, 0, WB_MODE_NONE, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pipeline.transport_ops = &ops;
        pipeline.recoverability.delivery_limit = cases[i].limit;
        pipeline.outbox = cases[i].outbox;
        pipeline.ordered = cases[i].ordered;
        pipeline.mode = cases[i].mode;
        worker.number = 0;
        assert_true(wb_scout_lets_receive(&worker));
        worker.number = 1;
        if (wb_scout_lets_receive(&worker) == cases[i].waits)
            fail_msg("case %zu", i);
    }
}

/* What the broker would drop waits for no other suspect, what leaves does; and no suspect begins while something leaves. */
static void test_who_waits_for_a_suspect(void **state)
{
    static const struct {
        uint32_t limit, deliveries;
        int outbox, mode, is_condemned, waits, keeps;
    } cases[] = {
        { 5, 1, 1, WB_MODE_RECEIVE_ONLY, 0, 0, 0 },  { 5, 2, 1, WB_MODE_RECEIVE_ONLY, 0, 1, 1 },
        { 5, 4, 1, WB_MODE_RECEIVE_ONLY, 0, 1, 1 },  { 5, 5, 1, WB_MODE_RECEIVE_ONLY, 0, 0, 1 },
        { 5, 3, 0, WB_MODE_RECEIVE_ONLY, 0, 1, 1 },  { 5, 4, 0, WB_MODE_RECEIVE_ONLY, 0, 0, 1 },
        { 5, 4, 1, WB_MODE_RECEIVE_ONLY, 1, 1, 1 },  { 5, 5, 1, WB_MODE_RECEIVE_ONLY, 1, 0, 1 },
        { 5, 1, 1, WB_MODE_RECEIVE_ONLY, 1, 0, 0 },  { 0, 19, 0, WB_MODE_RECEIVE_ONLY, 1, 1, 1 },
        { 0, 18, 0, WB_MODE_RECEIVE_ONLY, 0, 1, 1 }, { 0, 19, 0, WB_MODE_RECEIVE_ONLY, 0, 0, 1 },
        { 0, 100, 1, WB_MODE_RECEIVE_ONLY, 0, 1, 1 }, { 20, 19, 1, WB_MODE_RECEIVE_ONLY, 0, 1, 1 },
        { 20, 20, 1, WB_MODE_RECEIVE_ONLY, 0, 0, 1 }, { 5, 5, 0, WB_MODE_NONE, 0, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pipeline.outbox = cases[i].outbox;
        pipeline.recoverability.delivery_limit = cases[i].limit;
        incoming[0].delivery_count = cases[i].deliveries;
        pipeline.mode = cases[i].mode;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        if (cases[i].is_condemned)
            wb_item_condemn(item, WB_FAILURE_HANDLER, "it fails");
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        if (worker.has_suspect_lock != cases[i].keeps || wb_suspect_try_lock() == cases[i].keeps)
            fail_msg("case %zu: others wait: %d", i, worker.has_suspect_lock);
        worker.has_suspect_lock = 0; /* the lock is somebody's */
        if (wb_batch_choose(&worker, WB_BATCH_ANY) == cases[i].waits)
            fail_msg("case %zu: waits: %d", i, !cases[i].waits);
        wb_suspect_unlock();
        pipeline.outbox = 0; /* nothing to write down */
        wb_batch_drop_all(&worker);
    }
}

static void *enter_once(void *argument)
{
    atomic_int *has_entered = argument;
    wb_suspect_enter();
    atomic_store(has_entered, 1);
    wb_suspect_exit();
    return NULL;
}

/* One after the other has the place, and is done with before a second is over. */
static void test_a_row_of_suspects_lets_others_in(void **state)
{
    atomic_int has_entered = 0;
    pthread_t other;
    int rounds = 0;
    (void)state;
    assert_true(wb_suspect_try_lock());
    assert_int_equal(pthread_create(&other, NULL, enter_once, &has_entered), 0);
    for (; !atomic_load(&has_entered) && rounds < 400; rounds++) {
        wb_clock_pause(5 * WB_MILLISECOND, NULL);
        wb_suspect_unlock();
        while (!wb_suspect_try_lock())
            wb_clock_pause(1 * WB_MILLISECOND, NULL);
    }
    wb_suspect_unlock();
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_in_range(rounds, 1, 100);
}

static void test_what_may_have_ended_a_process_runs_alone(void **state)
{
    static const struct {
        uint32_t deliveries;
        int is_condemned;
        size_t together;
    } cases[] = { { 2, 0, 2 }, { 3, 0, 1 }, { 2, 1, 2 }, { 3, 1, 1 } };
    (void)state;
    worker.take = 4;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        incoming[0].delivery_count = cases[i].deliveries;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        (void)wb_batch_hold(&worker, &incoming[1], &entries[0]);
        if (cases[i].is_condemned)
            wb_item_condemn(item, WB_FAILURE_HANDLER, "it fails");
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        if (worker.batch_size != cases[i].together)
            fail_msg("case %zu: %zu of them", i, worker.batch_size);
        if (worker.has_suspect_lock)
            wb_suspect_unlock();
        worker.has_suspect_lock = 0;
        wb_batch_drop_all(&worker);
    }
}

/* What ended the session of its transport when its operations were sent: beside others nobody would know whose doing
 * it is the next time. */
static void test_what_may_have_ended_a_session_runs_alone(void **state)
{
    (void)state;
    for (size_t place = 0; place < 2; place++) {
        for (size_t i = 0; i < 2; i++)
            (void)wb_batch_hold(&worker, &incoming[i], &entries[0]);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(worker.batch_size, 2);
        wb_suspicions_add(pipeline.suspicions, incoming[place].id, 1);
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        assert_int_equal(worker.batch_size, 1);
        wb_suspicions_forget(pipeline.suspicions, incoming[place].id, 1);
        wb_batch_drop_all(&worker);
    }
}

/* It goes before what may end the process, and by itself. */
static void test_the_last_delivery_goes_first(void **state)
{
    static const struct {
        uint32_t limit, deliveries;
        const char *key; /* of both */
        size_t first;
    } cases[] = { { 5, 4, NULL, 0 }, { 5, 5, NULL, 1 }, { 5, 6, NULL, 1 }, { 0, 5, NULL, 0 }, { 5, 5, "k", 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pipeline.ordered = cases[i].key != NULL;
        pipeline.recoverability.delivery_limit = cases[i].limit;
        worker.take = 4;
        for (size_t k = 0; k < 3; k++) {
            incoming[k].key = cases[i].key;
            incoming[k].key_size = cases[i].key ? 1 : 0;
            incoming[k].delivery_count = (uint32_t[]){ 3, cases[i].deliveries, 0 }[k];
            (void)wb_batch_hold(&worker, &incoming[k], &entries[0]);
        }
        wb_item_condemn(worker.held[1], WB_FAILURE_HANDLER, "it fails");
        assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
        if (worker.batch[0] != worker.held[cases[i].first] || worker.batch_size != 1)
            fail_msg("case %zu: %zu of them, the first is %s", i, worker.batch_size, worker.batch[0]->message.id);
        wb_batch_drop_all(&worker);
        wb_suspect_unlock();
        worker.has_suspect_lock = 0;
    }
}

static int64_t recorded; /* attempts; -1: no record */

static int recorded_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                            void *argument, wb_error *error)
{
    wb_buffer bytes = { 0 };
    (void)s, (void)count, (void)error;
    if (recorded < 0)
        return WB_OK;
    wb_attempts_encode(&bytes, "a", 1, (uint32_t)recorded, 1);
    const wb_pending row = { sizeof row, batches[0], bytes.data, bytes.size };
    int r = visit(argument, &row);
    wb_buffer_free(&bytes);
    return r;
}

static int fake_mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)s, (void)marks, (void)count, (void)error;
    return WB_OK;
}

/* The broker would drop it when it comes back: it is not handled. One delivery earlier, if it was handled
 * by itself before. */
static void test_counted_out(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = fake_begin,
                                            .commit = fake_commit, .mark = fake_mark,
                                            .pending = recorded_pending };
    static const struct {
        uint32_t limit, deliveries;
        int64_t recorded;
        const char *why; /* NULL: it is handled */
    } cases[] = {
        { 5, 3, 1, NULL },
        { 5, 3, WB_ATTEMPTS_LOST_SESSION, NULL },
        { 5, 4, -1, NULL },
        { 5, 4, 0, NULL },
        { 5, 4, 1, "delivered 4 times, and 1 of them handled by itself, without being finished: its handler "
                   "seems to end the process" },
        { 1000, 18, WB_ATTEMPTS_LOST_SESSION, NULL },
        { 1000, 19, WB_ATTEMPTS_LOST_SESSION, "delivered 19 times without being finished: handled by itself, it "
                                              "lost its session with the broker" },
        { 1000, 19, 1, NULL },
        { 1000, 19, -1, NULL },
        { 5, 4, WB_ATTEMPTS_LOST_SESSION, "delivered 4 times without being finished: handled by itself, it lost "
                                          "its session with the broker" },
        { 5, 5, -1, "delivered 5 times without being finished, and the broker may drop it when it comes back more "
                    "than 5 times: processes or sessions ended while it was in hand, and whose doing that was is "
                    "not known" },
        { 0, 100, 1, NULL },
        { 0, 100, WB_ATTEMPTS_LOST_SESSION, NULL },
    };
    (void)state;
    pipeline.outbox = 1;
    pipeline.persistence_ops = &ops;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wb_error error = { 0 };
        char reason[400];
        recorded = cases[i].recorded;
        pipeline.recoverability.delivery_limit = cases[i].limit;
        incoming[0].delivery_count = cases[i].deliveries;
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        worker.batch[0] = item;
        worker.batch_size = 1;
        assert_int_equal(wb_stage_suspect(&worker, &error), WB_OK);
        const char *why = wb_suspect_why_given_up(&pipeline, item, reason, sizeof reason);
        if (cases[i].why ? !why || strcmp(why, cases[i].why) != 0 : why != NULL)
            fail_msg("case %zu: %s", i, why ? why : "is handled");
        assert_int_equal(item->noted != 0, cases[i].why == NULL);
        item->noted = 0;
        wb_batch_drop_all(&worker);
    }
}

/* What is written down stays so: attempts that ended the process when the session is lost, and that a session was
 * lost when another attempt begins. */
static void test_attempts_and_lost_sessions(void **state)
{
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .mark = fake_mark, .pending = recorded_pending };
    static const uint32_t noted[] = { 2, 2 | WB_ATTEMPTS_LOST_SESSION };
    (void)state;
    pipeline.outbox = 1;
    pipeline.persistence_ops = &ops;
    incoming[0].delivery_count = 4;
    for (size_t i = 0; i < 2; i++) {
        wb_error error = { 0 };
        recorded = noted[i] - 1;
        worker.batch[0] = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        worker.batch_size = 1;
        assert_int_equal(wb_stage_suspect(&worker, &error), WB_OK);
        assert_int_equal(worker.batch[0]->noted, noted[i]);
        worker.transport_broken = 1;
        wb_batch_drop_all(&worker);
        assert_int_equal(worker.mark_count, 1);
        const wb_mark *mark = &worker.marks[0];
        assert_int_equal(mark->batch, wb_attempts_number("a", 1));
        assert_int_equal(wb_attempts_decode(mark->remaining, mark->remaining_size, "a", 1), 1 | WB_ATTEMPTS_LOST_SESSION);
        wb_marks_clear(&worker);
    }
}

/* ---- what is done with ------------------------------------------------------------------- */

static unsigned confirmations;

static int acknowledge_loosely(wb_transport_session *s, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    (void)s, (void)messages;
    if (count || ++confirmations > 1)
        return WB_OK;
    return wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0, "not now");
}

/* That what was acknowledged is so for good is asked until the transport says it, and then no more: it is a round trip. */
static void test_what_is_for_good_is_asked_once(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .acknowledge = acknowledge_loosely };
    static const unsigned asked[] = { 1, 2, 2 };
    wb_error error = { 0 };
    (void)state;
    confirmations = 0;
    pipeline.transport_ops = &ops;
    assert_int_equal(wb_stage_settle_for_good(&worker, &error), WB_OK);
    assert_int_equal(confirmations, 0); /* nothing was acknowledged */
    wb_marks_add_message(&worker, &incoming[0]);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_int_equal(wb_stage_settle_for_good(&worker, &error), i ? WB_OK : WB_RETRY);
        assert_int_equal(confirmations, asked[i]);
    }
    wb_marks_add_message(&worker, &incoming[1]);
    assert_int_equal(wb_stage_settle_for_good(&worker, &error), WB_OK);
    assert_int_equal(confirmations, 3);
}

static int refuse_to_acknowledge(wb_transport_session *s, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    (void)s, (void)messages, (void)count;
    return wb_error_set(error, WB_RETRY, WB_CAUSE_SERVER, 0, "not now");
}

/* Whatever the reason: what the worker has forgotten is the session's until that ends, and comes again then. */
static void test_a_failed_acknowledgement_ends_the_session(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .acknowledge = refuse_to_acknowledge };
    wb_error error = { 0 };
    (void)state;
    pipeline.transport_ops = &ops;
    wb_marks_add_message(&worker, &incoming[0]);
    assert_int_equal(wb_stage_settle(&worker, &error), WB_RETRY);
    assert_true(worker.transport_broken);
    assert_int_equal(worker.settled_count, 0);
    assert_false(worker.is_loose);
}

/* ---- from commit to mark ------------------------------------------------------------------- */

/* Through the stages: how a batch comes to be underway, and by what it ends. */
enum { ENDS_BY_COMMIT, ENDS_BY_ROLLBACK, ENDS_BY_MARK, ENDS_BY_CLOSE, NOT_COMMITTED, NOT_SENT, PARTLY_SENT, ENDS };

static int underway_when_committed;

static int noting_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s, (void)error;
    underway_when_committed = wb_underway_has(&pipeline.underway, NULL, commit->batch);
    return WB_OK;
}

static int is_underway(uint64_t batch)
{
    return wb_underway_has(&pipeline.underway, NULL, batch);
}

/* @return the batch of one message that sent x, and y. */
static uint64_t commit_and_send(int way)
{
    wb_error error = { 0 };
    wb_item *culprit;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    ask_for(item, "x", 0);
    ask_for(item, "y", 0);
    wb_item_change(item, WB_ITEM_HANDLED);
    worker.in_transaction = 1;
    underway_when_committed = 0;
    assert_int_equal(wb_stage_commit(&worker, &culprit, &error), way == NOT_COMMITTED ? WB_IN_DOUBT : WB_OK);
    assert_int_equal(is_underway(worker.batch_number), way != NOT_COMMITTED);
    assert_int_equal(underway_when_committed, way != NOT_COMMITTED); /* whoever sees the row finds it here */
    half_result = way == NOT_SENT ? WB_NOT_CONNECTED : WB_IN_DOUBT;
    if (way != NOT_COMMITTED)
        assert_int_equal(wb_stage_dispatch(&worker, &error), way == NOT_SENT ? WB_NOT_CONNECTED : WB_OK);
    return worker.batch_number;
}

static void end_underway(int way)
{
    wb_error error = { 0 };
    wb_item *culprit;
    if (way == ENDS_BY_MARK)
        assert_int_equal(wb_stage_settle(&worker, &error), WB_OK);
    if (way == ENDS_BY_CLOSE)
        wb_stage_disconnect(&worker);
    if (way != ENDS_BY_COMMIT && way != ENDS_BY_ROLLBACK)
        return;
    (void)wb_batch_hold(&worker, &incoming[1], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    assert_int_equal(wb_stage_claim(&worker, &error), WB_OK); /* with the mark */
    assert_int_equal(worker.mark_count, 0);
    assert_true(is_underway(stored));
    assert_int_equal(way == ENDS_BY_COMMIT ? wb_stage_commit(&worker, &culprit, &error) : wb_stage_rollback(&worker), WB_OK);
}

static void test_a_batch_is_underway(void **state)
{
    static wb_persistence_ops ops = { .struct_size = sizeof ops, .begin = fake_begin, .rollback = fake_rollback,
                                      .mark = count_marks, .close = close_nothing };
    (void)state;
    for (int way = 0; way < ENDS; way++) {
        set_up(NULL);
        ops.commit = way == NOT_COMMITTED ? doubtful_commit : noting_commit;
        pipeline.persistence_ops = &ops;
        pipeline.transport_ops = way == NOT_SENT || way == PARTLY_SENT ? &half_ops : &noting_ops;
        pipeline.outbox = 1;
        worker.storage = (wb_storage_session *)&worker; /* nobody looks inside */
        worker.outlet = (wb_outlet){ .pipeline = &pipeline };
        stored = commit_and_send(way);
        assert_int_equal(is_underway(stored), way < NOT_COMMITTED);
        wb_batch_drop_all(&worker);
        end_underway(way);
        assert_false(is_underway(stored));
        worker.storage = NULL;
        wb_batch_drop_all(&worker);
        tear_down(NULL);
    }
}

/* ---- ids that go to another store -------------------------------------------------------- */

static int takes_ids; /* the other store does */
static int has_no_table; /* it has not, for now */

static int take_ids(wb_error *error)
{
    if (has_no_table)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0, "no such table");
    return takes_ids ? WB_OK : wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "not this one");
}

static int apart_find(wb_storage_session *s, wb_claim *asked, size_t count, wb_error *error)
{
    (void)s, (void)asked, (void)count;
    return take_ids(error);
}

static int apart_remember(wb_storage_session *s, const wb_claim *done, size_t count, wb_error *error)
{
    (void)s, (void)done, (void)count;
    return take_ids(error);
}

static int outbox_forget(wb_storage_session *s, const wb_claim *done, size_t count, wb_error *error)
{
    (void)s, (void)done, (void)count;
    return wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "not this one");
}

static int apart_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    (void)persistence;
    int r = take_ids(error);
    if (r == WB_OK)
        *ret_session = (wb_storage_session *)&worker;
    return r;
}

static const wb_persistence_ops other_store = { .struct_size = sizeof other_store, .open = apart_open, .find = apart_find,
                                                .remember = apart_remember };
static const wb_persistence_ops outbox_of_ids = { .struct_size = sizeof outbox_of_ids, .forget = outbox_forget };

static void use_another_store(void)
{
    pipeline.outbox = 1;
    pipeline.apart_ops = &other_store;
    pipeline.persistence_ops = &outbox_of_ids;
    worker.storage = worker.apart.session = (wb_storage_session *)&worker; /* nobody looks inside */
}

static void forget_another_store(void)
{
    worker.storage = worker.apart.session = NULL;
    pipeline.apart_ops = NULL;
}

/* Whatever it refuses: what is asked or told concerns many messages, and others than are in hand. */
static void test_a_store_apart_blames_nobody(void **state)
{
    wb_error error = { 0 };
    (void)state;
    use_another_store();
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    takes_ids = 0;
    worker.claimed[0] = item;
    worker.claims[0] = (wb_claim){ item->id, item->id_size, 0 };
    worker.claim_count = 1;
    assert_int_equal(wb_apart_ask(&worker, &error), WB_RETRY);
    wb_apart_add(&worker, item);
    assert_int_equal(worker.apart.done.count, 1);
    assert_int_equal(wb_apart_ask(&worker, &error), WB_RETRY);
    assert_int_equal(wb_apart_settle(&worker, &error), WB_RETRY);
    assert_int_equal(worker.apart.done.count, 1);
    takes_ids = 1; /* and the outbox lets none go */
    assert_int_equal(wb_apart_settle(&worker, &error), WB_RETRY);
    assert_int_equal(worker.apart.done.count, 0);
    assert_int_equal(worker.apart.remembered.count, 1);
    forget_another_store();
    wb_batch_drop_all(&worker);
}

/* One id to be asked for, and one to be told. */
static void ask_and_tell(void)
{
    wb_item *asked = wb_batch_hold(&worker, &incoming[0], &entries[0]), *told = wb_batch_hold(&worker, &incoming[1], &entries[0]);
    worker.claimed[0] = asked;
    worker.claims[0] = (wb_claim){ asked->id, asked->id_size, 0 };
    worker.claim_count = 1;
    wb_apart_add(&worker, told);
}

static void expect_table(int is_there, int asked, int settled, int connected)
{
    wb_error error = { 0 };
    has_no_table = !is_there;
    assert_int_equal(wb_apart_ask(&worker, &error), asked);
    assert_int_equal(wb_apart_settle(&worker, &error), settled);
    worker.apart.session = NULL;
    assert_int_equal(wb_apart_connect(&worker, &error), connected);
    worker.apart.session = (wb_storage_session *)&worker;
}

/* A migration renames it for some seconds: who gave up at once would end an endpoint for good that exits then. */
static void test_a_table_apart_is_waited_for(void **state)
{
    (void)state;
    use_another_store();
    takes_ids = 1;
    ask_and_tell();
    expect_table(0, WB_FATAL, WB_FATAL, WB_FATAL); /* nobody waits for any table */
    pipeline.missing_patience = 10 * WB_SECOND;
    expect_table(0, WB_RETRY, WB_RETRY, WB_NOT_CONNECTED);
    assert_true(wb_dependency_is_away(&pipeline.apart_server));
    assert_int_equal(worker.apart.done.count, 1);

    /* nor for ever, whatever the other database has; a session that opens has not seen the table, either */
    pipeline.apart_missing_since -= 10 * WB_SECOND;
    wb_distrust_found(&worker);
    expect_table(0, WB_FATAL, WB_FATAL, WB_FATAL);
    has_no_table = 0;
    worker.apart.session = NULL;
    assert_int_equal(wb_apart_connect(&worker, &(wb_error){ 0 }), WB_OK);
    assert_int_not_equal(pipeline.apart_missing_since, 0);

    /* once it has answered it is waited for anew */
    worker.apart.done.count = 0;
    assert_int_equal(wb_apart_ask(&worker, &(wb_error){ 0 }), WB_OK);
    assert_int_equal(pipeline.apart_missing_since, 0);
    expect_table(0, WB_RETRY, WB_OK, WB_NOT_CONNECTED);
    wb_waiter_leave(&worker.apart.server);
    has_no_table = 0;
    forget_another_store();
    wb_batch_drop_all(&worker);
}

static int opens_without_table;

static int lazy_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    (void)persistence;
    *ret_session = (wb_storage_session *)&worker; /* nobody looks inside */
    error->cause = WB_CAUSE_MISSING;
    return opens_without_table ? WB_OK : WB_FATAL;
}

static void lazy_close(wb_storage_session *session)
{
    (void)session;
}

static void open_again(int expected)
{
    worker.storage_broken = 1;
    assert_int_equal(wb_stage_connect_storage(&worker, &(wb_error){ 0 }), expected);
    wb_waiter_leave(&worker.database);
}

/* A session that opens has not seen the table where its plugin looks for it later: one worker after the other would wait
 * from the beginning. Where none opened without it, it has. */
static void test_a_new_session_may_not_know(void **state)
{
    static const wb_persistence_ops lazy = { .struct_size = sizeof lazy, .open = lazy_open, .close = lazy_close };
    wb_error error = { .cause = WB_CAUSE_MISSING };
    (void)state;
    pipeline.persistence_ops = &lazy;
    pipeline.missing_patience = 10 * WB_SECOND;
    opens_without_table = 1;
    open_again(WB_OK);
    assert_true(wb_distrust_waits(&worker, WB_FATAL, &error));
    pipeline.missing_since -= 10 * WB_SECOND;
    open_again(WB_OK);
    assert_false(wb_distrust_waits(&worker, WB_FATAL, &error));

    opens_without_table = 0;
    open_again(WB_FATAL);
    pipeline.missing_since = 0;
    open_again(WB_NOT_CONNECTED);
    pipeline.missing_since -= 10 * WB_SECOND;
    opens_without_table = 1;
    open_again(WB_OK);
    assert_true(wb_distrust_waits(&worker, WB_FATAL, &error));
    worker.storage = NULL;
}

/* What the store is asked does not depend on which of the two is without its table. */
static void test_a_table_of_the_other_database(void **state)
{
    wb_error error = { .cause = WB_CAUSE_MISSING };
    (void)state;
    pipeline.missing_patience = 10 * WB_SECOND;
    assert_true(wb_distrust_waits(&worker, WB_FATAL, &error));
    pipeline.missing_since -= 10 * WB_SECOND;
    wb_distrust_apart_found(&worker);
    assert_false(wb_distrust_waits(&worker, WB_FATAL, &error));
    assert_true(wb_distrust_apart_waits(&worker, WB_FATAL, &error));
    error.cause = WB_CAUSE_REFUSED;
    assert_false(wb_distrust_apart_waits(&worker, WB_FATAL, &error));
}

/* Only what has a record of its own that says that it was handled. */
static void test_whose_id_goes_to_the_store_apart(void **state)
{
    static const struct {
        int is_failed, is_control, is_passed, is_copy;
        uint64_t duplicate_of;
        size_t goes;
    } cases[] = { { .goes = 1 }, { .is_failed = 1 }, { .is_control = 1 }, { .is_passed = 1 }, { .is_copy = 1 },
                  { .duplicate_of = 7 } };
    (void)state;
    use_another_store();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
        if (cases[i].is_failed)
            wb_item_condemn(item, WB_FAILURE_HANDLER, "no");
        item->is_control = cases[i].is_control;
        item->is_passed = cases[i].is_passed;
        item->leader = cases[i].is_copy ? item : NULL;
        item->duplicate_of = cases[i].duplicate_of;
        wb_apart_add(&worker, item);
        if (worker.apart.done.count != cases[i].goes)
            fail_msg("case %zu", i);
        worker.apart.done.count = 0;
        wb_batch_drop_all(&worker);
    }
    forget_another_store();
}

/* Until it gets a message that was never delivered before, and half a second after one that came back;
 * or gives up. */
static void test_how_long_the_scout_is_alone(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    const wb_incoming *again = &incoming[0], *fresh = &incoming[1];
    wb_worker other = { .pipeline = &pipeline, .number = 1 };
    (void)state;
    incoming[0].delivery_count = 1;
    pipeline.transport_ops = &ops;
    pipeline.recoverability.delivery_limit = 5;
    wb_scout_look(&worker, NULL, 0);
    wb_scout_look(&worker, &again, 1);
    wb_scout_look(&other, &fresh, 1);
    assert_false(wb_scout_lets_receive(&other));
    wb_scout_look(&worker, &fresh, 1);
    assert_false(wb_scout_lets_receive(&other));
    assert_in_range(atomic_load(&pipeline.scouting_until), pipeline.scouting_returns + 1,
                    wb_clock_monotonic() + 500 * WB_MILLISECOND);
    int64_t last = atomic_load(&pipeline.scouting_until);
    wb_clock_pause(5 * WB_MILLISECOND, &pipeline.stop);
    wb_scout_look(&worker, &again, 1);
    wb_scout_look(&worker, &fresh, 1);
    assert_true(atomic_load(&pipeline.scouting_until) >= last + 5 * WB_MILLISECOND);
    last = atomic_load(&pipeline.scouting_until);
    wb_clock_pause(5 * WB_MILLISECOND, &pipeline.stop);
    wb_scout_look(&worker, &again, 1);
    assert_true(atomic_load(&pipeline.scouting_until) >= last + 5 * WB_MILLISECOND);
    assert_false(wb_scout_lets_grow(&worker));
    assert_true(wb_scout_lets_grow(&other));
    atomic_store(&pipeline.scouting_until, wb_clock_monotonic());
    assert_true(wb_scout_lets_receive(&other));
    assert_true(wb_scout_lets_grow(&worker));
    wb_scout_look(&worker, &again, 1);
    assert_true(wb_scout_lets_receive(&other));
    /* what comes back without end does not keep it alone for ever */
    atomic_store(&pipeline.scouting_until, 0);
    wb_scout_look(&worker, NULL, 0);
    pipeline.scouting_ends = wb_clock_monotonic() + 2 * WB_MILLISECOND;
    wb_scout_look(&worker, &again, 1);
    wb_scout_look(&worker, &fresh, 1);
    assert_int_equal(atomic_load(&pipeline.scouting_until), pipeline.scouting_ends);
    atomic_store(&pipeline.scouting_until, 0);
    wb_scout_end(&other);
    assert_false(wb_scout_lets_receive(&other));
    wb_scout_end(&worker);
    assert_true(wb_scout_lets_receive(&other));
}

/* Where nothing new is handed out before what comes back, the first that is new ends it. */
static void test_the_scout_of_who_returns_first(void **state)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops };
    const wb_incoming *again = &incoming[0], *fresh = &incoming[1];
    (void)state;
    incoming[0].delivery_count = 1;
    pipeline.transport_ops = &ops;
    pipeline.recoverability.delivery_limit = 5;
    pipeline.returns_first = 1;
    wb_scout_look(&worker, NULL, 0);
    wb_scout_look(&worker, &again, 1);
    wb_clock_pause(1 * WB_MILLISECOND, &pipeline.stop);
    assert_false(wb_scout_lets_grow(&worker));
    wb_scout_look(&worker, &fresh, 1);
    assert_true(wb_scout_lets_grow(&worker));
    worker.number = 1;
    assert_true(wb_scout_lets_receive(&worker));
}

/* ---- partitions whose end nobody can say ---------------------------------------------- */

static int ends_asked;

/* "t/1" has no leader, "t/3" was made anew, and of "t/4" nobody answers. */
static int ask_end(wb_transport_session *session, const char *partition, size_t size, uint64_t *ret_end,
                   wb_error *error)
{
    (void)session;
    ends_asked++;
    assert_int_equal(size, 3);
    if (partition[2] == '1')
        return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_SERVER, 0, "no leader");
    if (partition[2] == '4')
        return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0, "nobody answers");
    *ret_end = partition[2] == '3' ? 1 : 10;
    return WB_OK;
}

static const char *rows;

static int list_rows(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error)
{
    int r = WB_OK;
    (void)session, (void)error;
    for (const char *row = rows; *row && r == WB_OK; row += 3) {
        const wb_position position = { .partition = row, .partition_size = 3, .found = 10 };
        r = visit(argument, &position);
    }
    return r;
}

static int check_rows(const char *names, int all, wb_error *error)
{
    static const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops, .position_end = ask_end };
    static const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops,
                                                        .positions = list_rows };
    pipeline.transport_ops = &transport_ops;
    pipeline.persistence_ops = &persistence_ops;
    rows = names;
    ends_asked = 0;
    return wb_positions_check(&pipeline, NULL, NULL, all, error);
}

/* One without a leader keeps nobody from the others, and hides none that was made anew. */
static void test_end_unknown(void **state)
{
    wb_error error = { 0 };
    (void)state;
    assert_int_equal(check_rows("t/0t/1t/2", 0, &error), WB_OK);
    assert_int_equal(ends_asked, 3);
    assert_int_equal(error.result, WB_OK);
    assert_int_equal(check_rows("t/1t/3", 0, &error), WB_FATAL);
    assert_non_null(strstr(error.text, "\"t/3\""));
    assert_int_equal(check_rows("t/0t/1t/2", 1, &error), WB_NOT_CONNECTED);
    assert_int_equal(check_rows("t/4t/0", 0, &error), WB_NOT_CONNECTED);
}

static int know_all(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    (void)session, (void)error;
    for (size_t i = 0; i < begin->position_count; i++)
        begin->positions[i].found = 10, begin->positions[i].batch = 7;
    return WB_OK;
}

static int claim_known(const char *partition)
{
    static const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops, .position_end = ask_end };
    static const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops, .begin = know_all,
                                                        .rollback = fake_rollback };
    wb_error error = { 0 };
    pipeline.transport_ops = &transport_ops;
    pipeline.persistence_ops = &persistence_ops;
    pipeline.outbox = 1;
    pipeline.positions = WB_POSITIONS_ALONE;
    incoming[0].partition = partition;
    incoming[0].partition_size = 3;
    incoming[0].position = 1;
    (void)wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    worker.storage = (wb_storage_session *)&death;
    worker.transport_broken = 0;
    int r = wb_stage_claim(&worker, &error);
    (void)wb_stage_rollback(&worker);
    worker.storage = NULL;
    wb_batch_drop_all(&worker);
    return r;
}

/* Of one partition alone nobody can say it now: what is in hand waits for that. A session that is lost is opened again. */
static void test_end_unknown_of_what_came_before(void **state)
{
    (void)state;
    assert_int_equal(claim_known("t/0"), WB_OK);
    assert_false(worker.transport_broken);
    assert_int_equal(claim_known("t/1"), WB_RETRY);
    assert_false(worker.transport_broken);
    assert_int_equal(claim_known("t/4"), WB_NOT_CONNECTED);
    assert_true(worker.transport_broken);
    worker.transport_broken = 0;
}

/* ---- what a transaction of the transport's does not do ----------------------------------- */

static unsigned acknowledged;
static int acknowledge_result;

static int acknowledge_inside(wb_transport_session *s, const wb_incoming *const *messages, size_t count, wb_error *error)
{
    (void)s, (void)messages;
    acknowledged += (unsigned)count;
    return wb_error_set(error, acknowledge_result, WB_CAUSE_OTHER, 0, "not now");
}

/* @return what became of a message that sends these: what begins with "x" is confirmed, and send() says that all is well. */
static int dispatch_inside(const char *first, const char *second, int is_failed, wb_error *error)
{
    static const wb_transport_ops ops = { .struct_size = sizeof ops, .send = half_send, .acknowledge = acknowledge_inside };
    wb_item *culprit;
    pipeline.mode = WB_MODE_SENDS_ATOMIC;
    pipeline.transport_ops = &ops;
    worker.outlet = (wb_outlet){ .pipeline = &pipeline };
    worker.transport_broken = 0;
    half_result = WB_OK;
    acknowledged = 0;
    wb_item *item = wb_batch_hold(&worker, &incoming[0], &entries[0]);
    assert_true(wb_batch_choose(&worker, WB_BATCH_ANY));
    ask_for(item, first, 0);
    ask_for(item, second, 0);
    wb_item_change(item, is_failed ? WB_ITEM_MOVING : WB_ITEM_HANDLED);
    item->verdict = is_failed ? WB_VERDICT_FAILED : WB_VERDICT_OPEN;
    worker.may_have_ended = !is_failed;
    int r = wb_stage_dispatch_inside(&worker, &culprit, error);
    assert_null(culprit);
    return r;
}

/* It is not committed as if it were sent: its message waits, as it does outside of transactions. */
static void test_what_is_unconfirmed_in_a_transaction(void **state)
{
    wb_error error = { 0 };
    (void)state;
    acknowledge_result = WB_OK;
    for (int is_failed = 0; is_failed < 2; is_failed++) {
        assert_int_equal(dispatch_inside("x", "y", is_failed, &error), WB_RETRY);
        assert_int_equal(acknowledged, 0);
        assert_false(worker.transport_broken);
        assert_non_null(strstr(error.text, "\"q\""));
        wb_item *item = worker.batch[0];
        assert_int_equal(wb_stage_isolate(&worker, WB_RETRY, NULL, &error), WB_OK);
        assert_true(item->paused_until > wb_clock_monotonic());
        assert_int_equal(item->failure.attempts + item->failure.faults, 0);
        wb_batch_drop_all(&worker);
        assert_int_equal(dispatch_inside("x", "x", is_failed, &error), WB_OK);
        assert_int_equal(acknowledged, 1);
        wb_batch_drop_all(&worker);
    }
}

/* It is rolled back and done again, whether a handler ran or not; whatever else is said costs the session. */
static void test_an_acknowledgement_that_is_refused_in_a_transaction(void **state)
{
    static const int results[] = { WB_RETRY, WB_NOT_CONNECTED, WB_ABORT, WB_REJECT, WB_FATAL };
    wb_error error = { 0 };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof results / sizeof *results; i++) {
        acknowledge_result = results[i / 2];
        assert_int_equal(dispatch_inside("x", "x", i % 2, &error), acknowledge_result);
        assert_int_equal(worker.transport_broken, acknowledge_result != WB_RETRY);
        wb_batch_drop_all(&worker);
    }
    worker.transport_broken = 0;
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_body_is_there),
        TEST(test_end_unknown),
        TEST(test_end_unknown_of_what_came_before),
        TEST(test_what_is_unconfirmed_in_a_transaction),
        TEST(test_an_acknowledgement_that_is_refused_in_a_transaction),
        TEST(test_headers_of_the_platform),
        TEST(test_headers_of_both_kinds),
        TEST(test_body_at_the_limit),
        TEST(test_a_key_waits),
        TEST(test_nothing_can_run),
        TEST(test_behind_a_key_is_room),
        TEST(test_unknown_types_run_alone),
        TEST(test_redeliveries_do_not_grow),
        TEST(test_each_message_is_counted_once),
        TEST(test_a_commit_in_doubt_is_counted),
        TEST(test_who_waits_for_a_suspect),
        TEST(test_a_row_of_suspects_lets_others_in),
        TEST(test_what_may_have_ended_a_process_runs_alone),
        TEST(test_what_may_have_ended_a_session_runs_alone),
        TEST(test_the_last_delivery_goes_first),
        TEST(test_counted_out),
        TEST(test_attempts_and_lost_sessions),
        TEST(test_what_is_for_good_is_asked_once),
        TEST(test_a_failed_acknowledgement_ends_the_session),
        TEST(test_a_store_apart_blames_nobody),
        TEST(test_a_table_apart_is_waited_for),
        TEST(test_a_new_session_may_not_know),
        TEST(test_a_table_of_the_other_database),
        TEST(test_whose_id_goes_to_the_store_apart),
        TEST(test_turns),
        TEST(test_turns_of_a_key),
        TEST(test_company_passes_no_key),
        TEST(test_a_call_passes_no_key),
        TEST(test_the_clock_jumps),
        TEST(test_all_that_is_old_goes),
        TEST(test_a_slow_answer_makes_nothing_early),
        TEST(test_the_number_of_a_parked_row),
        TEST(test_a_row_is_parked_once),
        TEST(test_delayed_with_the_commit),
        TEST(test_silences_of_a_round),
        TEST(test_deaths_that_count),
        TEST(test_the_harmless_first),
        TEST(test_silence),
        TEST(test_silence_with_mode_none),
        TEST(test_refusals_have_an_end),
        TEST(test_marks_outlive_a_session),
        TEST(test_parked_rows_are_asked_for),
        TEST(test_who_was_handled),
        TEST(test_what_is_made_good),
        TEST(test_what_is_due_later_is_made_good),
        TEST(test_a_store_that_is_missing_is_no_handlers_fault),
        TEST(test_resumed_in_the_order_of_commits),
        TEST(test_refused_when_resumed),
        TEST(test_others_have_it_underway),
        TEST(test_others_finish_meanwhile),
        TEST(test_nobody_has_it_underway),
        TEST(test_how_long_it_is_underway),
        cmocka_unit_test(test_a_batch_is_underway),
        TEST(test_what_is_resumed_is_marked),
        TEST(test_session_is_lost_while_resuming),
        TEST(test_unconfirmed_when_resumed),
        TEST(test_session_is_lost_while_sending),
        TEST(test_marks_of_who_ends),
        TEST(test_a_deadlock_is_no_verdict),
        TEST(test_a_deadlock_that_never_ends),
        TEST(test_a_deadlock_halves),
        TEST(test_whose_the_commit_was),
        TEST(test_a_commit_in_doubt_with_mode_none),
        TEST(test_a_transaction_that_is_not_committed),
        TEST(test_a_privilege_is_waited_for),
        TEST(test_what_is_not_cut),
        TEST(test_what_is_parked_is_whole),
        TEST(test_who_waits_for_the_scout),
        TEST(test_how_long_the_scout_is_alone),
        TEST(test_the_scout_of_who_returns_first),
    };
    wb_log_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

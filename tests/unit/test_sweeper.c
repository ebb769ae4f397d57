/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of the sweeper over a table of a few rows: which it sends, parks, removes, leaves alone.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/endpoint/housekeeper.h"
#include "core/endpoint/sweeper.h"
#include "core/message/ids.h"
#include "core/message/operations.h"
#include "core/recover/attempts.h"
#include "core/recover/parked.h"

#define HOUR (3600 * WB_SECOND)

typedef struct row {
    uint64_t number; /* 0: none */
    wb_buffer bytes;
} row;

static row rows[8];
static wb_pipeline pipeline;
static wb_sweep_memory memory;
static wb_sweep_result done;
static char sent[16]; /* first letters of the ids */
static const char *deadly; /* first letters of the ids that end the session */
static int opened, closed; /* sessions */
static int64_t put_due, told; /* when what is put is due; what the transport heard last */
static int64_t database_behind; /* its clock */
static uint64_t refused_row; /* has to be there until what it holds is parked */
static size_t row_max;  /* the store takes no larger ones; 0: it takes all */
static size_t mark_max; /* nor leaves it one that is larger */

static row *find(uint64_t number)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

static void put(uint64_t number, const void *data, size_t size)
{
    row *place = find(0);
    assert_non_null(place);
    place->number = number;
    place->bytes.size = 0;
    wb_buffer_put(&place->bytes, data, size);
}

/* ---- the store ------------------------------------------------------------------------- */

static int next_pending(wb_storage_session *s, uint64_t after, uint64_t before, wb_pending_fn visit, void *argument,
                        wb_error *error)
{
    const row *next = NULL;
    (void)s, (void)error;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number > after && rows[i].number < before && (!next || rows[i].number < next->number))
            next = &rows[i];
    if (!next)
        return WB_OK;
    return visit(argument, &(wb_pending){ .struct_size = sizeof(wb_pending), .batch = next->number,
                                          .operations = next->bytes.data, .operations_size = next->bytes.size });
}

static int mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)s;
    for (size_t i = 0; i < count; i++) {
        row *marked = find(marks[i].batch);
        assert_non_null(marked);
        if (mark_max && marks[i].remaining_size > mark_max)
            return wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "not of %zu bytes", marks[i].remaining_size);
        marked->bytes.size = 0;
        if (marks[i].remaining)
            wb_buffer_put(&marked->bytes, marks[i].remaining, marks[i].remaining_size);
        else
            marked->number = 0;
    }
    return WB_OK;
}

static int begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    (void)s, (void)begin, (void)error;
    return WB_OK;
}

static int commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s;
    assert_non_null(find(refused_row)); /* a crash here must lose nothing */
    if (row_max && commit->operations_size > row_max)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "no row of %zu bytes", commit->operations_size);
    put(commit->batch, commit->operations, commit->operations_size);
    return WB_OK;
}

static int open_storage(wb_persistence *p, wb_storage_session **ret_session, wb_error *error)
{
    static char session;
    (void)p, (void)error;
    opened++;
    *ret_session = (wb_storage_session *)&session;
    return WB_OK;
}

static void close_storage(wb_storage_session *s)
{
    (void)s;
    closed++;
}

static int tell_time(wb_storage_session *s, int64_t *ret_wall, wb_error *error)
{
    (void)s;
    *ret_wall = wb_clock_wall() - database_behind;
    return database_behind ? WB_OK : wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0, "it is away");
}

static const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops, .open = open_storage,
                                                    .close = close_storage, .clock = tell_time, .begin = begin,
                                                    .commit = commit, .mark = mark, .next_pending = next_pending };

/* ---- the broker ------------------------------------------------------------------------ */

static int open_session(wb_transport *t, uint32_t purpose, uint32_t prefetch, wb_transport_session **ret_session,
                        wb_error *error)
{
    static char session;
    (void)t, (void)purpose, (void)prefetch, (void)error;
    opened++;
    *ret_session = (wb_transport_session *)&session;
    return WB_OK;
}

static void close_session(wb_transport_session *s)
{
    (void)s;
    closed++;
}

static int send_all(wb_transport_session *s, wb_operation *const *operations, size_t count, int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline;
    for (size_t i = 0; i < count; i++) {
        const int is_nowhere = strcmp(operations[i]->destination, "nowhere") == 0;
        operations[i]->result = is_nowhere ? WB_REJECT : WB_OK;
        operations[i]->cause = WB_CAUSE_UNROUTABLE;
        operations[i]->reason = "no such queue";
        (void)strncat(sent, operations[i]->id, 1);
        told = operations[i]->deliver_at;
        if (strchr(deadly, operations[i]->id[0])) {
            operations[i]->result = WB_IN_DOUBT;
            return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0, "the session is lost");
        }
    }
    return WB_OK;
}

static const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops, .open = open_session,
                                                .close = close_session, .send = send_all };

/* ---- rows and rounds ------------------------------------------------------------------- */

static uint64_t number_of(int64_t age)
{
    return wb_batch_number(wb_clock_wall() - age);
}

static void add(wb_operation_list *list, const char *id, const char *destination, wb_arena *arena)
{
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->destination = destination;
    operation->id = id;
    operation->id_size = 1;
    operation->body = "";
    operation->deliver_at = put_due;
}

/* One operation, and one more for the queue where `second` is not NULL. */
static void encode_two(const char *id, const char *destination, const char *second, wb_buffer *bytes)
{
    wb_operation_list list = { 0 };
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    add(&list, id, destination, &arena);
    if (second)
        add(&list, second, "queue", &arena);
    wb_operations_encode_start(bytes);
    assert_int_equal(wb_operations_encode_group(bytes, "cause", 5, &list), 1 + (second != NULL));
    wb_arena_free(&arena);
}

static void encode(const char *id, const char *destination, wb_buffer *bytes)
{
    encode_two(id, destination, NULL, bytes);
}

static uint64_t put_operation(const char *id, const char *destination, int64_t age)
{
    wb_buffer bytes = { 0 };
    const uint64_t number = number_of(age);
    encode(id, destination, &bytes);
    put(number, bytes.data, bytes.size);
    wb_buffer_free(&bytes);
    return number;
}

static uint64_t put_parked(const char *id, uint32_t tries, int64_t age)
{
    wb_buffer operations = { 0 }, bytes = { 0 };
    const uint64_t number = number_of(age);
    encode(id, "queue", &operations);
    const wb_parked parked = { tries, "because", operations.data, operations.size };
    wb_parked_encode(&bytes, &parked);
    put(number, bytes.data, bytes.size);
    wb_buffer_free(&operations);
    wb_buffer_free(&bytes);
    return number;
}

static void sweep_with(int result, const char *expected)
{
    const wb_sweep_order order = { .until = wb_clock_monotonic() + HOUR, .older_than = pipeline.sweep_after };
    wb_error error = { 0 };
    sent[0] = '\0';
    assert_int_equal(wb_sweep(&pipeline, NULL, &memory, &order, &done, &error), result);
    assert_string_equal(sent, expected);
    assert_int_equal(opened, closed);
}

static void sweep(const char *expected)
{
    sweep_with(WB_OK, expected);
}

static int set_up(void **state)
{
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "e", .mode = WB_MODE_RECEIVE_ONLY, .outbox = 1, .persistence_ops = &persistence_ops,
                              .transport_ops = &transport_ops, .sweep_after = 60 * WB_SECOND, .park_time = 60 * WB_SECOND };
    wb_pipeline_init(&pipeline);
    refused_row = row_max = mark_max = 0;
    deadly = "";
    opened = closed = 0;
    put_due = told = database_behind = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_pipeline_free(&pipeline);
    wb_sweep_forget(&memory);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_buffer_free(&rows[i].bytes);
        rows[i] = (row){ 0 };
    }
    return 0;
}

/* However long ago its transaction began, a row may be a moment old: who committed it is about to send it. */
static void test_an_old_row_is_seen_twice(void **state)
{
    (void)state;
    const uint64_t old = put_operation("o", "queue", HOUR), young = put_operation("y", "queue", WB_SECOND);
    sweep("");
    assert_true(find(old) && find(young));
    sweep("o");
    assert_int_equal(done.sent, 1);
    assert_true(!find(old) && find(young));
    for (int i = 0; i < 2; i++) {
        atomic_store(&pipeline.sweep_parked, 1); /* then the walk comes to the young ones, too */
        sweep("");
    }
    assert_non_null(find(young));
}

/* A slow handler's transaction may have its mark for longer than a row is left alone. */
static void test_what_workers_have_underway_is_theirs(void **state)
{
    static int a_worker;
    (void)state;
    const uint64_t out = put_operation("o", "queue", HOUR), in_hand = put_operation("h", "queue", HOUR + WB_SECOND);
    wb_underway_begin(&pipeline.underway, &a_worker, out);
    wb_underway_is_out(&pipeline.underway, &a_worker);
    wb_underway_begin(&pipeline.underway, &a_worker, in_hand);
    for (int i = 0; i < 3; i++)
        sweep("");
    assert_true(find(out) && find(in_hand));
    wb_underway_drop(&pipeline.underway, &a_worker); /* its session was lost */
    sweep("ho");
    assert_int_equal(done.sent, 2);
}

static void test_what_is_refused_is_parked(void **state)
{
    wb_parked parked;
    (void)state;
    refused_row = put_operation("r", "nowhere", HOUR);
    sweep("");
    sweep("r");
    assert_int_equal(done.parked, 1);
    assert_null(find(refused_row));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number) {
            assert_true(wb_parked_decode(rows[i].bytes.data, rows[i].bytes.size, &parked));
            assert_int_equal(parked.tries, 1);
            assert_non_null(strstr(parked.reason, "no such queue"));
        }
    sweep(""); /* it waits now */
}

static char said[4000]; /* errors in the log */

static void note_errors(void *argument, int level, const char *line, size_t size)
{
    const size_t used = strlen(said);
    (void)argument;
    if (level == WB_LOG_ERROR)
        (void)snprintf(said + used, sizeof said - used, "%.*s\n", (int)size, line);
}

/* What was there fits, whatever is to be said of it. */
static void test_a_reason_that_does_not_fit(void **state)
{
    wb_parked parked;
    wb_buffer alone = { 0 };
    (void)state;
    encode("r", "nowhere", &alone);
    row_max = alone.size + 20;
    wb_buffer_free(&alone);
    refused_row = put_operation("r", "nowhere", HOUR);
    put_operation("g", "queue", HOUR - WB_SECOND);
    sweep("");
    sweep("rg");
    assert_int_equal(done.parked, 1);
    assert_int_equal(done.sent, 1);
    assert_null(find(refused_row));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number) {
            assert_true(wb_parked_decode(rows[i].bytes.data, rows[i].bytes.size, &parked));
            assert_string_equal(parked.reason, "");
        }
}

/* One that cannot be parked at all stays, and keeps no other; what of it was confirmed is not sent again. */
static void test_what_cannot_be_parked_keeps_nobody(void **state)
{
    wb_buffer both = { 0 };
    (void)state;
    encode_two("r", "nowhere", "c", &both);
    refused_row = number_of(HOUR);
    put(refused_row, both.data, both.size);
    wb_buffer_free(&both);
    put_operation("g", "queue", HOUR - WB_SECOND);
    sweep("");
    row_max = 1;
    said[0] = '\0';
    wb_log_set_writer(note_errors, NULL);
    sweep("rcg");
    assert_int_equal(done.parked, 0);
    assert_int_equal(done.sent, 1);
    assert_non_null(find(refused_row));
    assert_non_null(strstr(said, "the store refuses to park them"));
    assert_non_null(strstr(said, "no row of "));
    assert_non_null(strstr(said, "no such queue"));
    assert_string_equal(strchr(said, '\n'), "\n"); /* one line */
    put_operation("h", "queue", HOUR - 2 * WB_SECOND);
    sweep("r");
    sweep("rh");
    row_max = 0;
    sweep("r");
    assert_int_equal(done.parked, 1);
    assert_null(find(refused_row));
    wb_log_set_writer(NULL, NULL);
}

/* Nor one that was parked before, and is refused again. */
static void test_what_cannot_be_parked_again_keeps_nobody(void **state)
{
    (void)state;
    wb_buffer operations = { 0 }, bytes = { 0 };
    refused_row = number_of(HOUR);
    encode("r", "nowhere", &operations);
    wb_parked_encode(&bytes, &(wb_parked){ 3, "because", operations.data, operations.size });
    put(refused_row, bytes.data, bytes.size);
    put_parked("g", 1, HOUR - WB_SECOND);
    row_max = 1;
    sweep("rg");
    assert_int_equal(done.sent, 1);
    assert_int_equal(find(refused_row)->bytes.size, bytes.size);
    assert_memory_equal(find(refused_row)->bytes.data, bytes.data, bytes.size);
    wb_buffer_free(&operations);
    wb_buffer_free(&bytes);
}

/* Of what was confirmed it is rid: it goes once. */
static void test_what_cannot_be_parked_again_shrinks(void **state)
{
    wb_buffer both = { 0 }, bytes = { 0 };
    wb_parked left;
    (void)state;
    refused_row = number_of(HOUR);
    encode_two("r", "nowhere", "c", &both);
    wb_parked_encode(&bytes, &(wb_parked){ 3, "because", both.data, both.size });
    put(refused_row, bytes.data, bytes.size);
    row_max = 1;
    sweep("rc");
    assert_true(wb_parked_decode(find(refused_row)->bytes.data, find(refused_row)->bytes.size, &left));
    assert_int_equal(left.tries, 3);
    sweep("r");
    wb_buffer_free(&both);
    wb_buffer_free(&bytes);
}

/* Where the store does not take it back either, since its limit is lower than it was: both go once more, and no other row waits. */
static void test_what_cannot_be_marked_keeps_nobody(void **state)
{
    wb_buffer both = { 0 };
    (void)state;
    encode_two("r", "nowhere", "c", &both);
    refused_row = number_of(HOUR);
    put(refused_row, both.data, both.size);
    wb_buffer_free(&both);
    put_operation("g", "queue", HOUR - WB_SECOND);
    sweep("");
    row_max = mark_max = 1;
    sweep("rcg");
    assert_int_equal(done.sent, 1);
    put_operation("h", "queue", HOUR - 2 * WB_SECOND);
    sweep("rc");
    sweep("rch");
}

/* Once it is due, at first sight. */
static void test_parked_rows_wait(void **state)
{
    (void)state;
    const uint64_t due = put_parked("d", 1, 61 * WB_SECOND), later = put_parked("l", 3, -WB_SECOND);
    sweep("d");
    assert_true(!find(due) && find(later));
    atomic_store(&pipeline.sweep_parked, 1); /* somebody has mended something */
    sweep("l");
    assert_null(find(later));
}

static void put_attempts(const char *id, int64_t age)
{
    wb_buffer bytes = { 0 };
    wb_attempts_encode(&bytes, id, 1, 2, wb_batch_number_at(wb_clock_wall() - age));
    put(wb_attempts_number(id, 1), bytes.data, bytes.size);
    wb_buffer_free(&bytes);
}

/* What ends processes does it sooner, or never again. */
static void test_old_attempts_are_removed(void **state)
{
    (void)state;
    put_attempts("a", 25 * HOUR);
    put_attempts("b", HOUR);
    sweep("");
    assert_null(find(wb_attempts_number("a", 1)));
    assert_non_null(find(wb_attempts_number("b", 1)));
}

static void test_rows_of_a_later_version_stay(void **state)
{
    (void)state;
    const uint64_t later = number_of(HOUR);
    put(later, "WBO9 of another form", 20);
    sweep("");
    sweep("");
    assert_int_equal(done.unreadable, 1);
    assert_non_null(find(later));
}

static void put_parked_rows(const char *ids)
{
    for (size_t i = 0; ids[i]; i++)
        (void)put_parked(&ids[i], 1, HOUR - (int64_t)i * WB_SECOND);
}

/* So many broken sessions in a row are the broker's affair: the next round has the rest. */
static void test_sessions_that_break(void **state)
{
    (void)state;
    deadly = "abcdef";
    put_parked_rows("abcdef");
    sweep_with(WB_RETRY, "abcde");
    assert_int_equal(opened, 5); /* one session for each */
    assert_int_equal(done.sent, 0);
    deadly = "";
    sweep("abcdef");
    assert_int_equal(done.sent, 6);
}

/* Fewer are the rows', and keep no others: with one that is sent between it is counted anew. */
static void test_rows_that_break_sessions(void **state)
{
    (void)state;
    deadly = "abcdfgh";
    put_parked_rows("abcdefgh");
    sweep("abcdefgh");
    assert_int_equal(done.sent, 1);
    assert_int_equal(opened, 7); /* that of "e" went on */
}

/* Of an endpoint that only sends, whose sessions nobody opens: nobody else has asked the database. */
static void test_a_round_goes_by_the_databases_clock(void **state)
{
    wb_housekeeper keeper;
    (void)state;
    pipeline.origin.delays = WB_DELAYS_BY_TRANSPORT;
    wb_housekeeper_init(&keeper, &pipeline, HOUR, 0);
    put_due = wb_clock_wall() - HOUR + 600 * WB_SECOND;
    put_operation("a", "queue", HOUR + 90 * WB_SECOND);
    sent[0] = '\0';
    for (int rounds = 0; rounds < 3; rounds++)
        wb_housekeeper_round(&keeper); /* it does not say */
    assert_string_equal(sent, "");
    database_behind = HOUR;
    for (int rounds = 0; rounds < 2; rounds++) /* a row is seen twice first */
        wb_housekeeper_round(&keeper);
    assert_string_equal(sent, "a");
    assert_in_range(told, put_due + HOUR, put_due + HOUR + WB_SECOND);
    assert_int_equal(opened, closed);
    wb_sweep_forget(&keeper.memory);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_old_row_is_seen_twice),
        TEST(test_what_is_refused_is_parked),
        TEST(test_a_reason_that_does_not_fit),
        TEST(test_what_cannot_be_parked_keeps_nobody),
        TEST(test_what_cannot_be_parked_again_keeps_nobody),
        TEST(test_what_cannot_be_parked_again_shrinks),
        TEST(test_what_cannot_be_marked_keeps_nobody),
        TEST(test_parked_rows_wait),
        TEST(test_what_workers_have_underway_is_theirs),
        TEST(test_old_attempts_are_removed),
        TEST(test_rows_of_a_later_version_stay),
        TEST(test_sessions_that_break),
        TEST(test_rows_that_break_sessions),
        TEST(test_a_round_goes_by_the_databases_clock),
    };
    return cmocka_run_group_tests_name("sweeper", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite persistence and time: its clock, the walk over pending rows, and records that
 * claim to be from the future.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/integration/sqlite_fixture.h"

/* The number of a batch that begins in so many seconds. */
static uint64_t batch_in(int64_t seconds)
{
    return (uint64_t)((time(NULL) - 1577836800 + seconds) * 1000) << 22;
}

static void store(const fixture *with, wb_storage_session *session, uint64_t batch, const char *id,
                  const char *operations)
{
    wb_claim claim = { .id = id, .id_size = strlen(id) };
    begin(with, session, batch, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit(with, session, batch, operations), WB_OK);
}

static void the_clock_is_the_hosts(void **state)
{
    fixture *with = *state;
    int64_t wall = 0;
    wb_storage_session *session = place_storage(&with->at);
    assert_true(WB_HAS(with->ops, wb_persistence_ops, clock));
    int64_t before = (int64_t)time(NULL) * WB_SECOND;
    assert_int_equal(with->ops->clock(session, &wall, NULL), WB_OK);
    assert_in_range(wall - before, 0, 5 * WB_SECOND);
    with->ops->close(session);
}

/* ---- the walk ---------------------------------------------------------------------- */

typedef struct walk {
    const fixture *with;
    wb_storage_session *session;
    wb_storage_session *other;
    uint64_t batch;
    size_t size;
    char first;
} walk;

static int visit_alone(void *argument, const wb_pending *pending)
{
    walk *walking = argument;
    walk theirs = { 0 };
    const wb_persistence_ops *ops = walking->with->ops;
    walking->batch = pending->batch;
    walking->size = pending->operations_size;
    walking->first = *(const char *)pending->operations;
    if (!walking->other)
        return WB_OK;
    assert_int_equal(ops->next_pending(walking->other, 0, UINT64_MAX, visit_alone, &theirs, NULL),
                     WB_OK);
    assert_int_equal(theirs.batch, 0);
    return WB_RETRY; /* what the visitor says is handed on */
}

static uint64_t next(walk *walking, uint64_t after, uint64_t before, int expected)
{
    walking->batch = 0;
    assert_int_equal(walking->with->ops->next_pending(walking->session, after, before, visit_alone,
                                                      walking, NULL),
                     expected);
    return walking->batch;
}

static void a_walk_passes_rows_that_stay(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    walk walking = { .with = with, .session = session };
    static char large[3 << 20];
    memset(large, 'L', sizeof large - 1);
    assert_true(WB_HAS(with->ops, wb_persistence_ops, next_pending));
    assert_int_equal(next(&walking, 0, UINT64_MAX, WB_OK), 0);
    store(with, session, 3, "a", "three");
    store(with, session, 5, "b", large);
    store(with, session, UINT64_C(1) << 63, "c", "late");
    assert_int_equal(next(&walking, 0, UINT64_MAX, WB_OK), 3);
    assert_int_equal(walking.first, 't');
    assert_int_equal(next(&walking, 3, UINT64_MAX, WB_OK), 5);
    assert_int_equal(walking.size, sizeof large - 1);
    assert_int_equal(walking.first, 'L');
    assert_true(next(&walking, 5, UINT64_MAX, WB_OK) == UINT64_C(1) << 63);
    assert_int_equal(next(&walking, 5, UINT64_C(1) << 63, WB_OK), 0);
    assert_int_equal(next(&walking, UINT64_C(1) << 63, UINT64_MAX, WB_OK), 0);
    assert_int_equal(next(&walking, 4, 6, WB_OK), 5);
    assert_int_equal(next(&walking, 4, 5, WB_OK), 0);
    walking.other = place_storage(&with->at);
    assert_int_equal(next(&walking, 0, UINT64_MAX, WB_RETRY), 3);
    with->ops->close(walking.other);
    with->ops->close(session);
}

/* ---- the future -------------------------------------------------------------------- */

static int told;
static char told_text[400];

static void count_lines(const wb_host *host, int level, const char *text, const wb_field *fields,
                        size_t count)
{
    (void)host;
    if (level != WB_LOG_WARNING || !strstr(text, "future"))
        return;
    told++;
    told_text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        (void)snprintf(told_text + strlen(told_text), sizeof told_text - strlen(told_text), " %s=%s",
                       fields[i].name, fields[i].value);
}

static int told_by(fixture *with, int cleanups)
{
    size_t deleted = 0;
    wb_storage_session *session = place_storage(&with->at);
    with->at.host.host.log = count_lines;
    told = 0;
    for (int i = 0; i < cleanups; i++)
        assert_int_equal(with->ops->clean_up(session, batch_in(-3600), 10, &deleted, NULL), WB_OK);
    with->ops->close(session);
    return told;
}

static void records_from_the_future_are_left_alone_and_told(void **state)
{
    fixture *with = *state;
    static const char parked[] = "WBK1 tried twice";
    wb_storage_session *session = place_storage(&with->at);
    assert_int_equal(told_by(with, 2), 0);
    store(with, session, batch_in(-7200), "old", NULL);
    store(with, session, batch_in(0), "now", NULL);
    store(with, session, batch_in(30), "skewed", "unparked");
    begin(with, session, 0, NULL, 0);
    assert_int_equal(commit(with, session, batch_in(7200), parked), WB_OK);
    assert_int_equal(told_by(with, 2), 0);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 2);
    store(with, session, batch_in(86400), "future", NULL);
    assert_int_equal(told_by(with, 3), 1); /* once a session */
    assert_non_null(strstr(told_text, " records=1 pending=0 seconds_ahead=86"));
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 3);
    test_execute(with->data, "delete from waybill_orders_dedup where key=x'667574757265'");
    assert_int_equal(told_by(with, 1), 0);
    begin(with, session, 0, NULL, 0);
    assert_int_equal(commit(with, session, batch_in(3600), "operations"), WB_OK);
    assert_int_equal(told_by(with, 1), 1);
    assert_non_null(strstr(told_text, " records=0 pending=1"));
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), 3);
    with->ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_clock_is_the_hosts),
        CASE(a_walk_passes_rows_that_stay),
        CASE(records_from_the_future_are_left_alone_and_told),
    };
    return cmocka_run_group_tests_name("sqlite time", tests, NULL, NULL);
}

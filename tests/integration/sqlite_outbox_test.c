/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite persistence: claims, pending operations, cleanup, what a handler may not do, how many
 * records there are.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/integration/sqlite_fixture.h"

/* One claim of a text; @return the batch it is a duplicate of, 0 when it is ours. */
static uint64_t claim(const fixture *with, wb_storage_session *session, uint64_t batch,
                      const char *id)
{
    wb_claim one = { .id = id, .id_size = strlen(id) };
    begin(with, session, batch, &one, 1);
    return one.duplicate_of;
}

/* ---- claims ---------------------------------------------------------------------------- */

static void a_claim_is_made_once(void **state)
{
    fixture *with = *state;
    wb_claim claims[] = { { "a", 1, 9 }, { "a\0", 2, 9 }, { "a\0b", 3, 9 }, { "a\0c", 3, 9 } };
    wb_claim again[] = { { "A", 1, 9 }, { "a\0b", 3, 9 }, { "b", 1, 9 } };
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 7, claims, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(claims[i].duplicate_of, 0);
    assert_int_equal(run(handle(with, session), "insert into business values(1,1)"), SQLITE_OK);
    assert_int_equal(with->ops->check(session, 0, NULL), WB_OK);
    assert_int_equal(commit(with, session, 7, "operations"), WB_OK);
    begin(with, session, 8, again, 3);
    assert_int_equal(again[0].duplicate_of, 0);
    assert_int_equal(again[1].duplicate_of, 7);
    assert_int_equal(again[2].duplicate_of, 0);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    begin(with, session, 9, again, 3);
    assert_int_equal(again[2].duplicate_of, 0);
    assert_int_equal(commit(with, session, 9, NULL), WB_OK);
    assert_int_equal(claim(with, session, 10, "b"), 9);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 1);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 6);
    with->ops->close(session);
}

static void a_claim_given_back_is_free(void **state)
{
    fixture *with = *state;
    wb_claim claims[] = { { "a", 1, 0 }, { "b", 1, 0 } };
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 7, claims, 2);
    wb_commit asked = { .struct_size = sizeof asked,
                        .batch = 7,
                        .released = &claims[1],
                        .released_count = 1 };
    assert_int_equal(with->ops->commit(session, &asked, NULL), WB_OK);
    assert_int_equal(claim(with, session, 8, "a"), 7);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    assert_int_equal(claim(with, session, 8, "b"), 0);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    with->ops->close(session);
}

static void names_that_differ_in_case_are_two_endpoints(void **state)
{
    fixture *with = *state;
    place other;
    static const char name[] = "Orders\"; drop table x;--\xc3\xa9";
    wb_storage_session *session = place_storage(&with->at);
    assert_int_equal(claim(with, session, 7, "a"), 0);
    assert_int_equal(commit(with, session, 7, NULL), WB_OK);
    place_open(&other, name, NULL, with->queues, with->data);
    assert_int_equal(other.persistence_ops->verify(other.persistence, &other.error), WB_FATAL);
    assert_int_equal(other.error.cause, WB_CAUSE_MISSING);
    place_install(&other);
    wb_storage_session *theirs = place_storage(&other);
    assert_int_equal(claim(with, theirs, 8, "a"), 0);
    assert_int_equal(commit(with, theirs, 8, NULL), WB_OK);
    with->ops->close(theirs);
    with->ops->close(session);
    place_close(&other);
}

typedef struct holder {
    const fixture *with;
    wb_storage_session *session;
    uint64_t batch;
} holder;

static void *commit_soon(void *argument)
{
    const holder *held = argument;
    (void)usleep(60000);
    assert_int_equal(commit(held->with, held->session, held->batch, NULL), WB_OK);
    return NULL;
}

static void a_claim_in_flight_is_waited_for(void **state)
{
    fixture *with = *state;
    pthread_t thread;
    wb_storage_session *one = place_storage(&with->at);
    wb_storage_session *two = place_storage(&with->at);
    holder held = { with, one, 7 };
    assert_int_equal(claim(with, one, 7, "a"), 0);
    /* the commit happens on another thread: nobody else uses the session then */
    assert_int_equal(pthread_create(&thread, NULL, commit_soon, &held), 0);
    assert_int_equal(claim(with, two, 8, "a"), 7);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(with->ops->rollback(two, NULL), WB_OK);
    with->ops->close(one);
    with->ops->close(two);
}

static void a_busy_file_is_retried_later(void **state)
{
    fixture *with = *state;
    wb_begin asked = { .struct_size = sizeof asked };
    test_config_set(test_plugin("persistence"), with->at.persistence_config, "busy_timeout",
                    50 * WB_MILLISECOND);
    wb_storage_session *one = place_storage(&with->at);
    wb_storage_session *two = place_storage(&with->at);
    begin(with, one, 0, NULL, 0);
    int64_t start = test_now();
    assert_int_equal(with->ops->begin(two, &asked, &with->at.error), WB_RETRY);
    assert_in_range(test_now() - start, 50 * WB_MILLISECOND, 2 * WB_SECOND);
    size_t deleted = 1; /* the housekeeper comes again, and has nothing to report */
    assert_int_equal(with->ops->clean_up(two, UINT64_MAX, 10, &deleted, &with->at.error), WB_OK);
    assert_int_equal(deleted, 0);
    assert_int_equal(with->ops->rollback(one, NULL), WB_OK);
    begin(with, two, 0, NULL, 0);
    assert_int_equal(commit(with, two, 0, NULL), WB_OK);
    with->ops->close(one);
    with->ops->close(two);
}

/* ---- what is flushed to disk ------------------------------------------------------------- */

static int flushes;

/* for SQLite, too */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    flushes++;
    return (int)syscall(SYS_fdatasync, file);
}

/* An id that is remembered, and then forgotten. */
static void assert_flushes_apart(fixture *with, wb_storage_session *session, int of_remembered)
{
    const wb_claim id = { "r", 1, 5 };
    const wb_begin forgetting = { .struct_size = sizeof forgetting, .forgotten = &id, .forgotten_count = 1 };
    for (int in_begin = 0; in_begin < 2; in_begin++) {
        wb_begin asked = forgetting;
        flushes = 0;
        assert_int_equal(with->ops->remember(session, &id, 1, NULL), WB_OK);
        assert_int_equal(flushes != 0, of_remembered);
        flushes = 0;
        assert_int_equal(in_begin ? with->ops->begin(session, &asked, NULL) : with->ops->forget(session, &id, 1, NULL),
                         WB_OK);
        assert_int_equal(flushes, 0);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 0);
    }
}

/* Of a batch, and of a mark behind it, each time again. */
static void assert_flushes(fixture *with, int of_batch)
{
    wb_storage_session *session = place_storage(&with->at);
    for (uint64_t batch = 7; batch < 10; batch++) {
        wb_mark before = { .batch = batch - 1 };
        wb_begin asked = { .struct_size = sizeof asked, .marks = &before, .mark_count = 1,
                           .batch = batch };
        assert_int_equal(with->ops->begin(session, &asked, NULL), WB_OK);
        flushes = 0;
        assert_int_equal(commit(with, session, batch, "operations"), WB_OK);
        if (batch > 7) /* the first begins the log */
            assert_int_equal(flushes != 0, of_batch);
        flushes = 0;
        mark(with, session, batch, "rest");
        assert_int_equal(flushes, 0);
    }
    assert_flushes_apart(with, session, of_batch);
    with->ops->close(session);
}

static void a_batch_survives_a_power_loss(void **state)
{
    assert_flushes(*state, 1);
}

static void unless_that_is_not_wanted(void **state)
{
    fixture *with = *state;
    test_config_set(test_plugin("persistence"), with->at.persistence_config, "synchronous", 1);
    assert_flushes(with, 0);
}

/* ---- what a handler may not do ----------------------------------------------------------- */

static void a_handler_cannot_end_the_transaction(void **state)
{
    fixture *with = *state;
    static const char *const endings[] = { "insert into business values(2,2); commit",
                                           "rollback", "rollback; begin immediate" };
    wb_storage_session *session = place_storage(&with->at);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(claim(with, session, 7, "a"), 0);
        (void)run(handle(with, session), endings[i]);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_REJECT);
        assert_int_equal(commit(with, session, 7, "x"), WB_ABORT);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    }
    assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
    assert_int_equal(claim(with, session, 7, "a"), 0);
    assert_int_equal(commit(with, session, 7, NULL), WB_OK);
    with->ops->close(session);
}

static int allow(void *argument)
{
    (void)argument;
    return 0;
}

static void overlook(void *argument)
{
    (void)argument;
}

/* Without our hooks a COMMIT is made, and nobody sees a transaction that another follows. */
static void a_handler_cannot_replace_the_hooks(void **state)
{
    fixture *with = *state;
    static const char *const endings[] = { "insert into business values(2,2); commit; "
                                           "begin immediate",
                                           "rollback; begin immediate" };
    wb_storage_session *session = place_storage(&with->at);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(claim(with, session, 7, "a"), 0);
        (void)sqlite3_commit_hook(handle(with, session), allow, NULL);
        (void)sqlite3_rollback_hook(handle(with, session), overlook, NULL);
        assert_int_equal(run(handle(with, session), endings[i]), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_REJECT);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        assert_int_equal(claim(with, session, 8, "a"), i ? 0 : 7); /* and ours are there again */
        assert_int_not_equal(run(handle(with, session), "commit"), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_REJECT);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        test_execute(with->data, "delete from waybill_orders_dedup");
    }
    with->ops->close(session);
}

/* Messages share a transaction, and its names: who goes back to what another left undoes what is between. */
static void a_savepoint_is_its_messages_own(void **state)
{
    fixture *with = *state;
    static const char *const ways[] = { "rollback to mine", " /* mine */ ROLLBACK TO SAVEPOINT mine; release mine", "-- mine\nrollback to mine" };
    const wb_sqlite_api *api;
    wb_storage_session *session = place_storage(&with->at);
    api = with->ops->interface(session, WB_SQLITE_INTERFACE);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        assert_int_equal(claim(with, session, 7, "a"), 0);
        assert_int_equal(run(api->connection(session, 1), "savepoint mine"), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 1, NULL), WB_OK);
        assert_int_equal(run(api->connection(session, 2), "insert into business(n) values(1)"), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 2, NULL), WB_OK);
        assert_int_equal(run(api->connection(session, 3), ways[i]), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 3, NULL), WB_ABORT);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    }
    assert_int_equal(claim(with, session, 7, "a"), 0); /* released, or one's own, it harms nobody */
    assert_int_equal(run(api->connection(session, 1), "savepoint mine; release mine"), SQLITE_OK);
    assert_int_equal(with->ops->check(session, 1, NULL), WB_OK);
    assert_int_equal(run(api->connection(session, 2), "insert into business(n) values(1)"), SQLITE_OK);
    assert_int_equal(with->ops->check(session, 2, NULL), WB_OK);
    assert_int_equal(run(api->connection(session, 3), "savepoint mine"), SQLITE_OK);
    assert_int_equal(run(api->connection(session, 3), "rollback to mine"), SQLITE_OK);
    assert_int_equal(with->ops->check(session, 3, NULL), WB_OK);
    assert_int_equal(commit(with, session, 7, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 1);
    with->ops->close(session);
}

/* The next message's statements are not refused, nor ours, in this transaction or the next. */
static void what_a_handler_leaves_ends_with_its_call(void **state)
{
    fixture *with = *state;
    char text[100], more[100];
    wb_storage_session *session = place_storage(&with->at);
    for (int i = 0; i < LEAVINGS; i++) {
        (void)snprintf(more, sizeof more, "create table large(n); insert into large values(zeroblob(%d)); drop table large", 100000 * (i + 1));
        (void)snprintf(text, sizeof text, "insert into business(n) values(%d),(length(printf('%%.9000c', 'x')) + %d)", i, i);
        assert_int_equal(claim(with, session, (uint64_t)i + 1, "a"), 0);
        leave_behind(handle(with, session), i);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        assert_int_equal(run(handle(with, session), text), SQLITE_OK);
        assert_int_equal(run(handle(with, session), more), SQLITE_OK);
        assert_int_equal(run(handle(with, session), text), SQLITE_CONSTRAINT);
        assert_int_equal(sqlite3_errcode(handle(with, session)), SQLITE_CONSTRAINT_UNIQUE);
        leave_behind(handle(with, session), i);
        assert_int_equal(with->ops->check(session, 1, &with->at.error), WB_OK);
        assert_int_equal(commit(with, session, (uint64_t)i + 1, "operations"), WB_OK);
        begin(with, session, 0, NULL, 0); /* with this one a file is locked */
        assert_int_equal(commit(with, session, 0, NULL), WB_OK);
        assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), i + 1);
        test_execute(with->data, "delete from waybill_orders_dedup");
        assert_int_equal(claim(with, session, (uint64_t)i + 1, "a"), 0);
        leave_behind(handle(with, session), i);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    }
    assert_int_equal(test_query(with->data, "select count(*) from business"), 2 * LEAVINGS);
    with->ops->close(session);
}

/* Nor does it stay when the handler ended the transaction as well, and nothing is left to be rolled back. */
static void what_a_handler_leaves_ends_with_a_transaction_it_ended(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    for (int i = 0; i < LEAVINGS; i++) {
        assert_int_equal(claim(with, session, 7, "a"), 0);
        assert_int_equal(run(handle(with, session), "rollback"), SQLITE_OK);
        leave_behind(handle(with, session), i);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_REJECT);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        test_execute(with->data, "insert into business(n) values(null)");
        assert_int_equal(claim(with, session, 8 + (uint64_t)i, "a"), 0);
        assert_int_equal(run(handle(with, session), "insert into business(n) values(null)"), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        assert_int_equal(commit(with, session, 8 + (uint64_t)i, "operations"), WB_OK);
        assert_int_equal(test_query(with->data, "select count(*) from business"), 2 * i + 2);
        assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), i + 1);
        test_execute(with->data, "delete from waybill_orders_dedup");
    }
    with->ops->close(session);
}

/* Nobody asks check() of a program's session that is closed: the next one has the connection as it was, and the file is free. */
static void what_a_session_leaves_ends_with_its_rollback(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    for (int i = 0; i <= LEAVINGS; i++) {
        assert_int_equal(claim(with, session, 7, "a"), 0);
        if (i == LEAVINGS)
            (void)sqlite3_set_authorizer(handle(with, session), deny, NULL);
        else
            leave_behind(handle(with, session), i);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        test_execute(with->data, "insert into business(n) values(null)");
        assert_int_equal(claim(with, session, 8, "a"), 0);
        assert_int_equal(run(handle(with, session), "insert into business(n) values(length(printf('%.9000c', 'x')))"), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        assert_int_equal(claim(with, session, 9, "a"), 0); /* and what is left before a session is closed in its midst */
        leave_behind(handle(with, session), i % LEAVINGS);
        with->ops->close(session);
        session = place_storage(&with->at);
    }
    assert_int_equal(test_query(with->data, "select count(*) from business"), LEAVINGS + 1);
    with->ops->close(session);
}

/* A handler's PRAGMA busy_timeout takes the place of our busy wait. */
static void a_handlers_busy_timeout_ends_with_its_batch(void **state)
{
    fixture *with = *state;
    sqlite3 *other = NULL;
    pthread_t thread;
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    (void)sqlite3_busy_timeout(handle(with, session), 0);
    assert_int_equal(with->ops->check(session, 0, NULL), WB_OK);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    assert_int_equal(sqlite3_open(with->data, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "begin immediate", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(pthread_create(&thread, NULL, let_go, other), 0);
    begin(with, session, 0, NULL, 0);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    pthread_join(thread, NULL);
    (void)sqlite3_close(other);
    with->ops->close(session);
}

/* SQLite ends the transaction then: the message may be tried again. */
static void an_interrupted_statement_is_retried(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    sqlite3_progress_handler(handle(with, session), 1, stop, NULL);
    assert_int_equal(run(handle(with, session), "insert into business with recursive n(i) as (select 1 "
                                                "union all select i + 1 from n limit 999) "
                                                "select i, i from n"),
                     SQLITE_INTERRUPT);
    sqlite3_progress_handler(handle(with, session), 0, NULL, NULL);
    assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_RETRY);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    with->ops->close(session);
}

static void a_failed_statement_leaves_the_transaction(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    assert_int_equal(run(handle(with, session), "insert into business values(1,1)"), SQLITE_OK);
    assert_int_equal(run(handle(with, session), "insert into business values(1,1)"),
                     SQLITE_CONSTRAINT);
    assert_int_equal(with->ops->check(session, 0, NULL), WB_OK);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 1);
    with->ops->close(session);
}

static void a_forgotten_cursor_does_no_harm(void **state)
{
    fixture *with = *state;
    sqlite3_stmt *cursor = NULL;
    test_execute(with->data, "insert into business values(1,1),(2,2),(3,3)");
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    sqlite3 *db = handle(with, session);
    assert_int_equal(sqlite3_prepare_v2(db, "select * from business", -1, &cursor, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(cursor), SQLITE_ROW);
    assert_int_equal(with->ops->check(session, 0, NULL), WB_OK);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    test_execute(with->data, "insert into business values(4,4)");
    begin(with, session, 0, NULL, 0);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    with->ops->close(session); /* finalizes what the handler kept */
}

static void a_constraint_that_fails_at_commit_rolls_back(void **state)
{
    fixture *with = *state;
    test_execute(with->data, "create table child(p integer references business(id)"
                             " deferrable initially deferred)");
    wb_storage_session *session = place_storage(&with->at);
    assert_int_equal(run(handle(with, session), "pragma foreign_keys=on"), SQLITE_OK);
    assert_int_equal(claim(with, session, 7, "a"), 0);
    assert_int_equal(run(handle(with, session), "insert into child values(5)"), SQLITE_OK);
    wb_commit asked = { .struct_size = sizeof asked, .batch = 7 };
    assert_int_equal(with->ops->commit(session, &asked, NULL), WB_RETRY);
    assert_true(asked.failed_item == SIZE_MAX);
    assert_int_equal(claim(with, session, 8, "a"), 0);
    assert_int_equal(commit(with, session, 8, NULL), WB_OK);
    with->ops->close(session);
}

/* ---- pending operations -------------------------------------------------------------------- */

typedef struct visits {
    const fixture *with;
    wb_storage_session *session;
    char text[256];
    int stop_after;
} visits;

static int visit(void *argument, const wb_pending *pending)
{
    visits *made = argument;
    size_t used = strlen(made->text);
    (void)snprintf(made->text + used, sizeof made->text - used, "%llu=%.*s ",
                   (unsigned long long)pending->batch, (int)pending->operations_size,
                   (const char *)pending->operations);
    return --made->stop_after == 0 ? WB_RETRY : WB_OK;
}

static void store(const fixture *with, wb_storage_session *session, uint64_t batch, const char *id,
                  const char *operations)
{
    assert_int_equal(claim(with, session, batch, id), 0);
    assert_int_equal(commit(with, session, batch, operations), WB_OK);
}

static void pending_operations_last_until_they_are_marked(void **state)
{
    fixture *with = *state;
    visits made = { .with = with };
    static const uint64_t batches[] = { 9, 7, 4, 8 };
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, 7, "a", "seven");
    store(with, session, 8, "b", NULL);
    store(with, session, 9, "c", "nine");
    assert_int_equal(with->ops->pending(session, batches, 4, visit, &made, NULL), WB_OK);
    assert_string_equal(made.text, "9=nine 7=seven ");
    mark(with, session, 9, "ni");
    mark(with, session, 7, NULL);
    mark(with, session, 7, NULL);
    mark(with, session, 1234, "never stored");
    made.text[0] = '\0';
    assert_int_equal(with->ops->pending(session, batches, 4, visit, &made, NULL), WB_OK);
    assert_string_equal(made.text, "9=ni ");
    /* a mark that rides along stands, whatever becomes of the transaction */
    wb_mark last = { .batch = 9 };
    wb_begin asked = { .struct_size = sizeof asked, .marks = &last, .mark_count = 1 };
    assert_int_equal(with->ops->begin(session, &asked, NULL), WB_OK);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), 0);
    with->ops->close(session);
}

static int visit_while_another_sweeps(void *argument, const wb_pending *pending)
{
    visits *made = argument;
    const fixture *with = made->with;
    visits theirs = { .with = with };
    assert_int_equal(with->ops->sweep(made->session, UINT64_MAX, 10, visit, &theirs, NULL), WB_OK);
    assert_string_equal(theirs.text, "");
    mark(with, made->session, pending->batch, NULL); /* the file is not locked meanwhile */
    return WB_OK;
}

static void a_sweep_is_oldest_first_and_alone(void **state)
{
    fixture *with = *state;
    visits made = { .with = with };
    wb_storage_session *session = place_storage(&with->at);
    wb_storage_session *other = place_storage(&with->at);
    store(with, session, UINT64_C(1) << 63, "a", "late");
    store(with, session, 5, "b", "five");
    store(with, session, 3, "c", "three");
    store(with, session, 9, "d", "nine");
    assert_int_equal(with->ops->sweep(session, 9, 10, visit, &made, NULL), WB_OK);
    assert_string_equal(made.text, "3=three 5=five ");
    made.text[0] = '\0';
    assert_int_equal(with->ops->sweep(session, UINT64_MAX, 3, visit, &made, NULL), WB_OK);
    assert_string_equal(made.text, "3=three 5=five 9=nine ");
    made = (visits){ .with = with, .stop_after = 2 };
    assert_int_equal(with->ops->sweep(session, UINT64_MAX, 9, visit, &made, NULL), WB_RETRY);
    assert_string_equal(made.text, "3=three 5=five ");
    visits both = { .with = with, .session = other };
    assert_int_equal(
        with->ops->sweep(session, UINT64_MAX, 10, visit_while_another_sweeps, &both, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), 0);
    with->ops->close(session);
    with->ops->close(other);
}

static void cleanup_takes_only_what_is_old_and_dispatched(void **state)
{
    fixture *with = *state;
    size_t deleted = 0;
    wb_claim claims[5] = { { "b1", 2, 0 }, { "b2", 2, 0 }, { "b3", 2, 0 }, { "b4", 2, 0 },
                           { "b5", 2, 0 } };
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, 1, "a", "still pending");
    begin(with, session, 2, claims, 5);
    assert_int_equal(commit(with, session, 2, NULL), WB_OK);
    store(with, session, 9, "c", NULL);
    assert_int_equal(with->ops->clean_up(session, 9, 3, &deleted, NULL), WB_OK);
    assert_int_equal(deleted, 3);
    assert_int_equal(with->ops->clean_up(session, 9, 3, &deleted, NULL), WB_OK);
    assert_int_equal(deleted, 2);
    assert_int_equal(with->ops->clean_up(session, 9, 3, &deleted, NULL), WB_OK);
    assert_int_equal(deleted, 0);
    mark(with, session, 1, NULL);
    assert_int_equal(with->ops->clean_up(session, 9, 3, &deleted, NULL), WB_OK);
    assert_int_equal(deleted, 1);
    assert_int_equal(claim(with, session, 10, "c"), 9);
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    with->ops->close(session);
}

static void the_printed_schema_is_what_install_makes(void **state)
{
    fixture *with = *state;
    place other;
    char *path = test_file(with->directory, "printed.db");
    test_execute(path, "pragma journal_mode=wal");
    test_execute(path, with->ops->schema(with->at.persistence));
    place_open(&other, "orders", NULL, with->queues, path);
    assert_int_equal(with->ops->verify(other.persistence, NULL), WB_OK);
    test_execute(path, "update waybill_schema set version=99");
    assert_int_equal(with->ops->install(other.persistence, &other.error), WB_FATAL);
    assert_int_equal(other.error.cause, WB_CAUSE_MISMATCH);
    place_close(&other);
    free(path);
}

/* ---- keys ------------------------------------------------------------------------------- */

#define UUID(number) "c0ffee00-1234-7abc-8def-00000000000" #number

static int64_t count_keys(const fixture *with, int size)
{
    char query[96];
    (void)snprintf(query, sizeof query, "select count(*) from waybill_orders_dedup where length(key)=%d", size);
    return test_query(with->data, query);
}

static void keys_of_uuids_are_compact(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, 1, UUID(1), NULL);
    store(with, session, 2, "a", NULL);
    assert_int_equal(count_keys(with, 17), 1);
    assert_int_equal(count_keys(with, 1), 1);
    with->ops->close(session);
}

/* Those of a version that kept ids as they are, and may run beside this one: it finds ours, we find
 * its, and no installation changes that. */
static void tables_of_version_1_keep_ids_as_they_are(void **state)
{
    fixture *with = *state;
    wb_claim claims[] = { { UUID(1), 36, 0 }, { UUID(2), 36, 0 }, { UUID(3), 36, 0 } };
    wb_commit asked = { .struct_size = sizeof asked, .batch = 5, .released = claims + 2, .released_count = 1 };
    test_execute(with->data, "update waybill_schema set version=1 where part='persistence:orders'");
    place_install(&with->at);
    assert_int_equal(test_query(with->data, "select version from waybill_schema where part='persistence:orders'"), 1);
    assert_int_equal(with->ops->verify(with->at.persistence, NULL), WB_OK);
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, 4, UUID(1), NULL);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup where key=cast('" UUID(1)
                                            "' as blob)"), 1);
    begin(with, session, 5, claims, 3);
    assert_int_equal(claims[0].duplicate_of, 4);
    assert_int_equal(claims[1].duplicate_of, 0);
    assert_int_equal(with->ops->commit(session, &asked, NULL), WB_OK);
    assert_int_equal(count_keys(with, 36), 2);
    assert_int_equal(with->ops->find(session, claims, 3, NULL), WB_OK);
    assert_int_equal(claims[1].duplicate_of, 5);
    assert_int_equal(claims[2].duplicate_of, 0);
    claims[2].duplicate_of = 6;
    assert_int_equal(with->ops->remember(session, claims, 3, NULL), WB_OK);
    assert_int_equal(count_keys(with, 36), 3);
    assert_int_equal(with->ops->forget(session, claims, 2, NULL), WB_OK);
    assert_int_equal(count_keys(with, 36), 1);
    with->ops->close(session);
}

/* ---- how many records --------------------------------------------------------------------- */

static void assert_counted(const fixture *with, wb_storage_session *session, int is_exact, uint64_t records, int are)
{
    wb_outbox_stats stats = { .struct_size = sizeof stats, .is_exact = is_exact };
    assert_int_equal(with->ops->stats(session, &stats, NULL), WB_OK);
    assert_int_equal(stats.records, records);
    assert_int_equal(stats.records_are, are);
}

static void a_million_records_are_counted_and_no_more(void **state)
{
    fixture *with = *state;
    wb_storage_session *session = place_storage(&with->at);
    assert_counted(with, session, 0, 0, WB_COUNT_EXACT);
    /* without keys, and so soon there */
    test_execute(with->data, "drop table waybill_orders_dedup; create table waybill_orders_dedup(batch integer primary key); "
                             "create table numbers(n integer primary key); "
                             "insert into numbers with recursive up(n) as "
                             "(select 0 union all select n + 1 from up limit 1000) select n from up; "
                             "insert into waybill_orders_dedup select a.n * 1000 + b.n from numbers a, numbers b");
    assert_counted(with, session, 0, 1000000, WB_COUNT_EXACT);
    test_execute(with->data, "insert into waybill_orders_dedup values (1000000)");
    assert_counted(with, session, 0, 1000001, WB_COUNT_AT_LEAST);
    assert_counted(with, session, 1, 1000001, WB_COUNT_EXACT);
    with->ops->close(session);
}

/* ---- crash points ------------------------------------------------------------------------- */

static void crash_in_a_batch(void *argument)
{
    const fixture *with = argument;
    place at;
    (void)setenv("WAYBILL_CRASH", with->crash, 1);
    place_open(&at, "orders", NULL, with->queues, with->data);
    wb_storage_session *session = place_storage(&at);
    if (claim(with, session, 7, "a") != 0)
        _exit(1);
    (void)run(handle(with, session), "insert into business values(1,1)");
    (void)commit(with, session, 7, "operations");
    mark(with, session, 7, NULL);
}

static void crash(fixture *with, const char *point)
{
    with->crash = point;
    assert_int_equal(test_wait(test_child(crash_in_a_batch, with)), -SIGKILL);
}

static void a_crash_before_the_commit_leaves_nothing(void **state)
{
    fixture *with = *state;
    static const char *const points[] = { "claim_sent", "commit_sent" };
    for (size_t i = 0; i < 2; i++) {
        crash(with, points[i]);
        assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
        assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 0);
    }
    crash(with, "mark_sent");
    assert_int_equal(test_query(with->data, "select count(*) from business"), 1);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_dedup"), 1);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_pending"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_claim_is_made_once),
        CASE(a_claim_given_back_is_free),
        CASE(names_that_differ_in_case_are_two_endpoints),
        CASE(a_claim_in_flight_is_waited_for),
        CASE(a_busy_file_is_retried_later),
        CASE(a_batch_survives_a_power_loss),
        CASE(unless_that_is_not_wanted),
        CASE(a_handler_cannot_end_the_transaction),
        CASE(a_handler_cannot_replace_the_hooks),
        CASE(a_savepoint_is_its_messages_own),
        CASE(what_a_handler_leaves_ends_with_its_call),
        CASE(what_a_handler_leaves_ends_with_a_transaction_it_ended),
        CASE(what_a_session_leaves_ends_with_its_rollback),
        CASE(a_handlers_busy_timeout_ends_with_its_batch),
        CASE(an_interrupted_statement_is_retried),
        CASE(a_failed_statement_leaves_the_transaction),
        CASE(a_forgotten_cursor_does_no_harm),
        CASE(a_constraint_that_fails_at_commit_rolls_back),
        CASE(pending_operations_last_until_they_are_marked),
        CASE(a_sweep_is_oldest_first_and_alone),
        CASE(cleanup_takes_only_what_is_old_and_dispatched),
        CASE(the_printed_schema_is_what_install_makes),
        CASE(keys_of_uuids_are_compact),
        CASE(tables_of_version_1_keep_ids_as_they_are),
        CASE(a_million_records_are_counted_and_no_more),
        CASE(a_crash_before_the_commit_leaves_nothing),
    };
    return cmocka_run_group_tests_name("sqlite outbox", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of the tests that write through the sqlite persistence, and its operations
 * with a test's usual arguments. A failure of anything here ends the test.
 */
#ifndef WB_TESTS_SQLITE_FIXTURE_H
#define WB_TESTS_SQLITE_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/sqlite_support.h"

/** Both plugins on two files, installed, with a table for business data. */
typedef struct fixture {
    char *directory;
    char *queues;
    char *data;
    const char *crash;
    place at;
    const wb_persistence_ops *ops;
} fixture;

static inline int set_up(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    made->directory = test_directory();
    made->queues = test_file(made->directory, "queues.db");
    made->data = test_file(made->directory, "data.db");
    place_open(&made->at, "orders", NULL, made->queues, made->data);
    place_install(&made->at);
    test_execute(made->data, "create table business(id integer primary key, n integer unique)");
    made->ops = made->at.persistence_ops;
    *state = made;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture *made = *state;
    place_close(&made->at);
    free(made->queues);
    free(made->data);
    test_remove(made->directory);
    free(made);
    return 0;
}

static inline sqlite3 *handle(const fixture *with, wb_storage_session *session)
{
    const wb_sqlite_api *api = with->ops->interface(session, WB_SQLITE_INTERFACE);
    assert_non_null(api);
    assert_null(with->ops->interface(session, "pgsql.1"));
    return api->connection(session, 0);
}

static inline int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) & 0xff;
}

static inline int deny(void *argument, int action, const char *one, const char *two, const char *database, const char *trigger)
{
    (void)argument, (void)action, (void)one, (void)two, (void)database, (void)trigger;
    return SQLITE_DENY;
}

static inline void *let_go(void *argument)
{
    (void)usleep(200000);
    assert_int_equal(sqlite3_exec(argument, "commit", NULL, NULL, NULL), SQLITE_OK);
    return NULL;
}

static inline int stop(void *argument)
{
    (void)argument;
    return 1;
}

/* Whatever is written is written nowhere, and a COMMIT is none; nothing fails. */
static inline int ignore(void *argument, int action, const char *one, const char *two, const char *database, const char *trigger)
{
    (void)argument, (void)one, (void)two, (void)database, (void)trigger;
    return action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_READ || action == SQLITE_TRANSACTION
               ? SQLITE_IGNORE
               : SQLITE_OK;
}

/* What stands in front of the tables of both plugins; those that are not in this file it does not find. */
static inline void leave_in_front(sqlite3 *db, int is_trigger)
{
    static const char *const tables[] = { "waybill_orders_dedup", "waybill_orders_pending", "waybill_orders_delayed",
                                          "waybill_message_1", "waybill_message_2", "waybill_claim" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char *sql = sqlite3_mprintf(is_trigger ? "create temp trigger \"it's %s\" before insert on main.%s begin select raise(ignore); end"
                                               : "create temp table %s as select * from main.%s where 0",
                                    tables[i], tables[i]);
        (void)run(db, sql);
        sqlite3_free(sql);
    }
}

/* What a handler may leave on the connection, and any statement behind it would be refused for, or do nothing. */
enum { LEAVINGS = 10 };
static inline void leave_behind(sqlite3 *db, int which)
{
    static const char *const texts[LEAVINGS] = { [6] = "pragma query_only=1", [7] = "PRAGMA main.locking_mode=exclusive",
                                                 [8] = " pragma max_page_count(1)", [9] = "pragma count_changes=1" };
    if (which == 0)
        sqlite3_progress_handler(db, 1, stop, NULL);
    else if (which == 1)
        (void)sqlite3_extended_result_codes(db, 0);
    else if (which == 3)
        (void)sqlite3_set_authorizer(db, ignore, NULL);
    else if (which == 4 || which == 5)
        leave_in_front(db, which == 5);
    else if (which > 5)
        assert_int_equal(run(db, texts[which]), SQLITE_OK);
    for (int limit = 0; which == 2 && sqlite3_limit(db, limit, 0) >= 0; limit++)
        continue;
}

static inline void begin(const fixture *with, wb_storage_session *session, uint64_t batch,
                  wb_claim *claims, size_t count)
{
    wb_begin asked = {
        .struct_size = sizeof asked, .batch = batch, .claims = claims, .claim_count = count
    };
    assert_int_equal(with->ops->begin(session, &asked, NULL), WB_OK);
}

static inline int commit(const fixture *with, wb_storage_session *session, uint64_t batch,
                  const char *operations)
{
    wb_commit asked = { .struct_size = sizeof asked,
                        .batch = batch,
                        .operations = operations,
                        .operations_size = operations ? strlen(operations) : 0 };
    return with->ops->commit(session, &asked, NULL);
}

static inline void mark(const fixture *with, wb_storage_session *session, uint64_t batch,
                 const char *remaining)
{
    wb_mark one = { .batch = batch,
                    .remaining = remaining,
                    .remaining_size = remaining ? strlen(remaining) : 0 };
    assert_int_equal(with->ops->mark(session, &one, 1, NULL), WB_OK);
}

#endif

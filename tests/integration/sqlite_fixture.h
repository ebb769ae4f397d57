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

/* What a handler may leave on the connection, and any statement behind it would be refused for. */
enum { LEAVINGS = 3 };
static inline void leave_behind(sqlite3 *db, int which)
{
    if (which == 0)
        sqlite3_progress_handler(db, 1, stop, NULL);
    else if (which == 1)
        (void)sqlite3_extended_result_codes(db, 0);
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

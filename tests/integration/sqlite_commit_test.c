/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport's commit, with each of its writes failing in turn, on a full disk and on
 * a broken one. What it reports is what is there: for this process, for others, and for whoever
 * opens the file after all of them died. After WB_IN_DOUBT it is all or nothing.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/sqlite_fixture.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)
#define BODY_SIZE 20000
/* Of the log that one page of its index describes; the next page is written by a commit. */
#define FRAMES_OF_PAGE 4062

/* ---- writes that fail ---------------------------------------------------------------- */

/* The write from which on all fail: 1 is the next. 0: none. */
static int failing;
static int has_failed;
static int trouble;

/* The first that fails is torn. */
static ssize_t write_at(int file, const void *data, size_t size, off_t at)
{
    if (failing > 1)
        failing--;
    else if (failing == 1) {
        if (!has_failed)
            (void)!pwrite(file, data, size / 2, at);
        has_failed = 1;
        errno = trouble;
        return -1;
    }
    return pwrite(file, data, size, at);
}

static int replace_writes(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    union {
        ssize_t (*ours)(int, const void *, size_t, off_t);
        sqlite3_syscall_ptr call;
    } as = { write_at };
    (void)state;
    assert_non_null(vfs);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", as.call), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", as.call), SQLITE_OK);
    return 0;
}

static void fail_from(int write, int number)
{
    has_failed = 0;
    trouble = number;
    failing = write;
}

/* ---- what is there ------------------------------------------------------------------- */

typedef enum outcome { NOTHING, ALL } outcome;

static outcome outcome_in(const char *file)
{
    int64_t received = test_messages(file, "orders");
    int64_t sent = test_messages(file, "error");
    if (received == 2 && sent == 0)
        return NOTHING;
    if (received != 0 || sent != 2)
        fail_msg("half: %lld left to receive, %lld sent", (long long)received, (long long)sent);
    return ALL;
}

/* As after the death of every process: the index of the log is made anew. Another process
 * copies, since closing a file would free the locks that SQLite has on it here. */
static outcome outcome_after_crash(const fixture *with)
{
    char command[2000];
    char *copy = test_file(with->directory, "copy.db");
    (void)snprintf(command, sizeof command, "rm -f '%s'*; cp '%s' '%s' && cp '%s-wal' '%s-wal'",
                   copy, with->queues, copy, with->queues, copy);
    assert_int_equal(system(command), 0);
    outcome there = outcome_in(copy);
    (void)snprintf(command, sizeof command, "rm -f '%s'*", copy);
    assert_int_equal(system(command), 0);
    free(copy);
    return there;
}

/* ---- one attempt --------------------------------------------------------------------- */

typedef struct attempts {
    fixture *with;
    wb_transport_session *session;
    const wb_incoming *messages[2];
    int seen[WB_FATAL + 1]; /* how often commit() said what */
    int risen;              /* how often a crash would have brought back what was not there */
} attempts;

static void open_session(attempts *of)
{
    of->session = place_session(&of->with->at, BOTH);
    assert_int_equal(place_receive(&of->with->at, of->session, of->messages, 2, 1000), 2);
}

static int commit_failing(attempts *of, int write, int number)
{
    static char body[BODY_SIZE];
    const wb_transport_ops *ops = of->with->at.transport_ops;
    wb_error *error = &of->with->at.error;
    wb_operation operations[] = { test_send("error", "e", 1, body, sizeof body),
                                  test_send("error", "f", 1, body, sizeof body) };
    wb_operation *window[] = { &operations[0], &operations[1] };
    assert_int_equal(ops->begin(of->session, error), WB_OK);
    assert_int_equal(ops->send(of->session, window, 2, WB_NEVER, error), WB_OK);
    assert_int_equal(ops->acknowledge(of->session, of->messages, 2, error), WB_OK);
    fail_from(write, number);
    int result = ops->commit(of->session, error);
    failing = 0;
    of->seen[result]++;
    return result;
}

/* They are in hand, of this session and of no other. */
static void check_in_hand(const attempts *of)
{
    const wb_incoming *message;
    wb_transport_session *other = place_session(&of->with->at, WB_SESSION_RECEIVE);
    assert_int_equal(test_number(of->messages[0]), 0);
    assert_int_equal(test_number(of->messages[1]), 1);
    assert_int_equal(place_receive(&of->with->at, other, &message, 1, 0), 0);
    of->with->at.transport_ops->close(other);
}

static void check(attempts *of, int result)
{
    fixture *with = of->with;
    outcome there = outcome_in(with->queues);
    outcome recovered = outcome_after_crash(with);
    if (result == WB_OK) {
        assert_int_equal(there, ALL);
        assert_int_equal(recovered, ALL);
    } else if (result == WB_IN_DOUBT) {
        with->at.transport_ops->close(of->session);
        assert_int_equal(outcome_in(with->queues), there);
        of->session = NULL;
        of->risen += there == NOTHING && recovered == ALL;
    } else {
        if (result != WB_RETRY || with->at.error.cause != WB_CAUSE_SERVER)
            fail_msg("%d, cause %d: %s", result, with->at.error.cause, with->at.error.text);
        assert_int_equal(there, NOTHING);
        assert_int_equal(recovered, NOTHING);
        check_in_hand(of);
    }
}

/* What a successful commit moved is there again, for the next attempt. */
static void begin_anew(attempts *of)
{
    if (of->session && outcome_in(of->with->queues) == NOTHING)
        return;
    if (of->session)
        of->with->at.transport_ops->close(of->session);
    if (outcome_in(of->with->queues) == ALL) {
        wb_transport_session *filler = place_session(&of->with->at, WB_SESSION_SEND);
        place_send_numbers(&of->with->at, filler, "orders", 0, 2);
        of->with->at.transport_ops->close(filler);
        char *queues = of->with->queues;
        char sql[100];
        (void)snprintf(sql, sizeof sql, "delete from waybill_message_%lld",
                       (long long)test_query(queues, "select number from waybill_queue where "
                                                     "name='error'"));
        test_execute(queues, sql);
    }
    open_session(of);
}

/* Until no write is left to fail. @return how many did. */
static int fail_each_write(attempts *of, int number)
{
    int write = 0;
    do {
        begin_anew(of);
        check(of, commit_failing(of, ++write, number));
    } while (has_failed);
    return write - 1;
}

static attempts start(fixture *with)
{
    attempts of = { .with = with };
    with->at.info.mode = WB_MODE_SENDS_ATOMIC;
    wb_transport_session *filler = place_session(&with->at, WB_SESSION_SEND);
    place_send_numbers(&with->at, filler, "orders", 0, 2);
    with->at.transport_ops->close(filler);
    return of;
}

static void end(attempts *of)
{
    if (of->session)
        of->with->at.transport_ops->close(of->session);
}

/* ---- cases --------------------------------------------------------------------------- */

static void a_full_disk_commits_nothing(void **state)
{
    attempts of = start(*state);
    int writes = fail_each_write(&of, ENOSPC);
    assert_true(writes > 10);
    assert_int_equal(of.seen[WB_RETRY], writes);
    assert_int_equal(of.seen[WB_IN_DOUBT], 0);
    end(&of);
}

static void a_broken_disk_leaves_all_or_nothing(void **state)
{
    attempts of = start(*state);
    int writes = fail_each_write(&of, EIO);
    assert_true(writes > 10);
    assert_int_equal(of.seen[WB_IN_DOUBT], writes);
    end(&of);
}

/* Fill the log up to a few frames before its index needs another page; whoever reads keeps it
 * from being begun anew. */
static sqlite3 *lengthen_log(const fixture *with)
{
    sqlite3 *reader = NULL;
    test_execute(with->queues, "create table if not exists padding(b)");
    test_execute(with->queues, "pragma wal_checkpoint(truncate)");
    assert_int_equal(sqlite3_open(with->queues, &reader), SQLITE_OK);
    assert_int_equal(run(reader, "begin; select count(*) from padding"), SQLITE_OK);
    char sql[200];
    (void)snprintf(sql, sizeof sql,
                   "pragma wal_autocheckpoint=0; insert into padding values(zeroblob(%d * 4092))",
                   FRAMES_OF_PAGE - 12);
    test_execute(with->queues, sql);
    return reader;
}

/* The log has the whole transaction then, and its index has not. */
static void a_log_that_cannot_be_indexed_leaves_it_in_doubt(void **state)
{
    fixture *with = *state;
    attempts of = start(with);
    begin_anew(&of);
    sqlite3 *reader = lengthen_log(with);
    int writes = fail_each_write(&of, ENOSPC);
    assert_true(of.seen[WB_RETRY] > 10);
    assert_int_equal(of.seen[WB_RETRY] + of.seen[WB_IN_DOUBT], writes);
    assert_int_not_equal(of.risen, 0);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    end(&of);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_full_disk_commits_nothing),
        CASE(a_broken_disk_leaves_all_or_nothing),
        CASE(a_log_that_cannot_be_indexed_leaves_it_in_doubt),
    };
    return cmocka_run_group_tests(tests, replace_writes, NULL);
}

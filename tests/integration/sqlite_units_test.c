/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the sqlite plugins that need no database of theirs: whose fault a result code is,
 * headers as a blob, what a handler leaves on a connection, and locks that are counted.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/sys/plugin.h>

#include "plugins/common/sqlite/leavings.h"
#include "plugins/common/sqlite/lockfile.h"
#include "plugins/common/sqlite/map.h"
#include "plugins/transport/sqlite/codec.h"

#include <cmocka.h>

/* ---- whose fault ------------------------------------------------------------------- */

/* The table of plugins/common/sqlite/README.md. */
static void test_every_code_has_its_culprit(void **state)
{
    static const struct {
        int code, result, cause, is_servers;
    } rows[] = {
        { SQLITE_BUSY, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_BUSY_SNAPSHOT, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_BUSY_RECOVERY, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_PROTOCOL, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_NOMEM, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_FULL, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_SCHEMA, WB_RETRY, WB_CAUSE_SERVER, 1 },
        { SQLITE_IOERR, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 },
        { SQLITE_IOERR_WRITE, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 },
        { SQLITE_IOERR_FSYNC, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 },
        { SQLITE_IOERR_SHMSIZE, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 },
        { SQLITE_IOERR_NOMEM, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 1 },
        { SQLITE_CANTOPEN, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0 },
        { SQLITE_LOCKED, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { SQLITE_INTERRUPT, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { SQLITE_ABORT_ROLLBACK, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { SQLITE_CONSTRAINT_UNIQUE, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { SQLITE_CONSTRAINT_FOREIGNKEY, WB_RETRY, WB_CAUSE_OTHER, 0 },
        { SQLITE_TOOBIG, WB_REJECT, WB_CAUSE_TOO_LARGE, 0 },
        { SQLITE_NOLFS, WB_FATAL, WB_CAUSE_OTHER, 0 },
        { SQLITE_PERM, WB_FATAL, WB_CAUSE_REFUSED, 0 },
        { SQLITE_AUTH, WB_FATAL, WB_CAUSE_REFUSED, 0 },
        { SQLITE_READONLY, WB_FATAL, WB_CAUSE_REFUSED, 0 },
        { SQLITE_CORRUPT, WB_FATAL, WB_CAUSE_MISMATCH, 1 },
        { SQLITE_NOTADB, WB_FATAL, WB_CAUSE_MISMATCH, 1 },
        { SQLITE_FORMAT, WB_FATAL, WB_CAUSE_MISMATCH, 0 },
        { SQLITE_ERROR, WB_FATAL, WB_CAUSE_OTHER, 0 },
        { SQLITE_MISUSE, WB_FATAL, WB_CAUSE_OTHER, 0 },
        { SQLITE_OK, WB_FATAL, WB_CAUSE_OTHER, 0 }, /* of a handler: nothing happened */
        { SQLITE_DONE, WB_FATAL, WB_CAUSE_OTHER, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wb_sqlite_db_meaning *got = wb_sqlite_db_meaning_of(rows[i].code);
        if (got->result != rows[i].result || got->cause != rows[i].cause ||
            got->is_servers != rows[i].is_servers)
            fail_msg("%d: class %d, cause %d, the server's: %d", rows[i].code, got->result,
                     got->cause, got->is_servers);
    }
}

static void test_every_errno_has_its_culprit(void **state)
{
    static const struct {
        int number, result, cause;
    } rows[] = {
        { ENOSPC, WB_RETRY, WB_CAUSE_SERVER }, { EDQUOT, WB_RETRY, WB_CAUSE_SERVER },
        { EMFILE, WB_RETRY, WB_CAUSE_SERVER }, { ENFILE, WB_RETRY, WB_CAUSE_SERVER },
        { ENOMEM, WB_RETRY, WB_CAUSE_SERVER }, { ENOLCK, WB_RETRY, WB_CAUSE_SERVER },
        { EIO, WB_RETRY, WB_CAUSE_SERVER },    { ENOENT, WB_FATAL, WB_CAUSE_MISSING },
        { EACCES, WB_FATAL, WB_CAUSE_REFUSED }, { EROFS, WB_FATAL, WB_CAUSE_REFUSED },
        { EINVAL, WB_FATAL, WB_CAUSE_OTHER },  { ENOTDIR, WB_FATAL, WB_CAUSE_OTHER },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wb_sqlite_db_meaning got = wb_sqlite_db_meaning_of_errno(rows[i].number);
        if (got.result != rows[i].result || got.cause != rows[i].cause)
            fail_msg("%s: class %d, cause %d", strerror(rows[i].number), got.result, got.cause);
    }
}

/* ---- headers as a blob ------------------------------------------------------------- */

/* Decode with limits, of a blob of which `size` bytes were read. @return how many headers,
 * -1 when it is damaged. */
static int decode(const wb_sqlite_codec_buffer *blob, size_t size, wb_sqlite_codec_limits limits,
                  int *ret_is_over)
{
    wb_header headers[16];
    size_t count = 0;
    const wb_sqlite_codec_summary summary = wb_sqlite_codec_summarize(blob->data, size, blob->size,
                                                                      &limits);
    assert_in_range(summary.kept, 0, 16);
    *ret_is_over = summary.is_over;
    if (summary.is_damaged ||
        wb_sqlite_codec_decode(blob->data, size, &summary, &limits, headers, &count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(headers[i].name, "name", 4);
    return (int)count;
}

static void test_the_first_headers_that_fit_are_kept(void **state)
{
    wb_sqlite_codec_buffer blob = { 0 };
    wb_header headers[10];
    int is_over;
    (void)state;
    for (size_t i = 0; i < 10; i++)
        headers[i] = (wb_header){ "name", "value!", 4, 6 };
    assert_int_equal(wb_sqlite_codec_encode(&blob, headers, 10), 0);
    static const struct {
        wb_sqlite_codec_limits limits;
        int count, is_over;
    } rows[] = {
        { { 0, 0 }, 10, 0 },  { { 10, 100 }, 10, 0 }, { { 11, 101 }, 10, 0 }, { { 9, 100 }, 9, 1 },
        { { 10, 99 }, 9, 1 }, { { 3, 0 }, 3, 1 },     { { 0, 25 }, 2, 1 },    { { 1, 9 }, 0, 1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t within = wb_sqlite_codec_bytes_within(&rows[i].limits);
        size_t size = blob.size < within ? blob.size : within;
        assert_int_equal(decode(&blob, size, rows[i].limits, &is_over), rows[i].count);
        assert_int_equal(is_over, rows[i].is_over);
    }
    wb_sqlite_codec_free(&blob);
}

static void test_a_blob_that_lies_is_damaged(void **state)
{
    wb_sqlite_codec_buffer blob = { 0 };
    wb_header header = { "name", "value!", 4, 6 };
    int is_over;
    (void)state;
    assert_int_equal(wb_sqlite_codec_encode(&blob, &header, 1), 0);
    for (size_t at = 0; at < blob.size; at++) {
        unsigned char before = blob.data[at];
        if ((at >= 8 && at < 12) || (at >= 17 && at < 23))
            continue; /* text */
        blob.data[at] ^= 0x55;
        assert_int_equal(decode(&blob, blob.size, (wb_sqlite_codec_limits){ 0 }, &is_over), -1);
        blob.data[at] = before;
    }
    for (size_t size = 0; size < blob.size; size++) {
        wb_sqlite_codec_buffer part = { blob.data, size, size };
        assert_int_equal(decode(&part, size, (wb_sqlite_codec_limits){ 4, 100 }, &is_over), -1);
    }
    wb_sqlite_codec_free(&blob);
}

/* ---- leavings ---------------------------------------------------------------------- */

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    return statement;
}

/* A handler who finalizes it may have got its memory for a statement of his own, which nobody is to run. */
static void test_the_sentinel_is_nobody_elses_statement(void **state)
{
    sqlite3 *db = NULL;
    uintptr_t where = 0;
    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "create table business (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_stmt *sentinel = prepare(db, WB_SQLITE_LEAVINGS_SENTINEL), *theirs = prepare(db, "insert into business values (1)");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_sqlite_leavings_end(db, &where, 0), SQLITE_OK);
        assert_ptr_equal((sqlite3_stmt *)where, sentinel);
        where = (uintptr_t)(i ? sentinel : theirs);
    }
    (void)sqlite3_finalize(sentinel);
    assert_int_equal(wb_sqlite_leavings_end(db, &where, 0), SQLITE_OK);
    assert_int_equal(where, 0);
    assert_int_equal(sqlite3_total_changes(db), 0);
    (void)sqlite3_finalize(theirs);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- locks ------------------------------------------------------------------------- */

/* Each of a descriptor of its own, in no order, neighbours too. */
static void test_locks_are_counted(void **state)
{
    static const int64_t bytes[] = { 500, 3, 499, 999, 1000, 0, 1001 };
    char path[] = "/tmp/waybill-locks-XXXXXX";
    int fds[sizeof bytes / sizeof *bytes], own = mkstemp(path);
    (void)state;
    assert_true(own >= 0);
    assert_int_equal(wb_sqlite_lockfile_count(own, 0, 2000), 0);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        fds[i] = wb_sqlite_lockfile_find(path);
        assert_int_equal(wb_sqlite_lockfile_try(fds[i], bytes[i]), 1);
        assert_int_equal(wb_sqlite_lockfile_count(own, 0, 2000), i + 1);
    }
    assert_int_equal(wb_sqlite_lockfile_count(own, 1, 1000), 4);
    assert_int_equal(wb_sqlite_lockfile_try_all(own, 500, 2), 0);
    assert_int_equal(wb_sqlite_lockfile_try_all(own, 4, 495), 1);
    assert_int_equal(wb_sqlite_lockfile_try(fds[0], 498), 0);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        (void)close(fds[i]);
    assert_int_equal(wb_sqlite_lockfile_count(own, 0, 2000), 0);
    (void)close(own);
    (void)unlink(path);
    assert_int_equal(wb_sqlite_lockfile_find(path), -1);
    assert_int_equal(errno, ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_its_culprit),
        cmocka_unit_test(test_every_errno_has_its_culprit),
        cmocka_unit_test(test_the_first_headers_that_fit_are_kept),
        cmocka_unit_test(test_a_blob_that_lies_is_damaged),
        cmocka_unit_test(test_the_sentinel_is_nobody_elses_statement),
        cmocka_unit_test(test_locks_are_counted),
    };
    return cmocka_run_group_tests_name("sqlite units", tests, NULL, NULL);
}

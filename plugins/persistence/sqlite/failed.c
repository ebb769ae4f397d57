/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages (waybill/sys/failed.h). A call is part of the transaction that is open on the
 * session's connection, or one of its own.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/sqlite/delayed.h"

#define COLUMNS "select id, status, attempts, failed_at, changed_at, summary, "

/* Rows that a list copies at a time, so that no read stays open while somebody visits them. */
#define PAGE 100

/* ---- changes ---------------------------------------------------------------------------- */

typedef struct change {
    const char *format;
    const char *doing;
    void (*bind)(sqlite3_stmt *statement, const void *what);
    const void *what;
} change;

static int run(wb_sqlite_delayed_call *call, const change *how, int *ret_changes)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_delayed_prepare(call, &statement, how->format);
    if (result == WB_OK) {
        how->bind(statement, how->what);
        result = wb_sqlite_db_run(call->db, statement, how->doing, call->error);
    }
    *ret_changes = result == WB_OK ? sqlite3_changes(call->db->handle) : 0;
    (void)sqlite3_finalize(statement);
    return result;
}

static int apply(wb_storage_session *session, const change *how, int *ret_changes, wb_error *error)
{
    wb_sqlite_delayed_call call;
    *ret_changes = 0;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result != WB_OK)
        return result;
    if (wb_sqlite_db_in_transaction(call.db))
        return run(&call, how, ret_changes);
    result = wb_sqlite_delayed_begin(&call, WB_SQLITE_DB_POWER_LOSS);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_delayed_end(&call, run(&call, how, ret_changes), NULL);
    if (result != WB_OK)
        *ret_changes = 0; /* undone, or nobody knows */
    return result;
}

static void bind_failed(sqlite3_stmt *statement, const void *what)
{
    const wb_failed *failed = what;
    (void)sqlite3_bind_blob64(statement, 1, failed->key, failed->key_size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, wb_sqlite_delayed_to_column(failed->failed_at));
    (void)sqlite3_bind_int64(statement, 3, wb_sqlite_delayed_to_column(failed->changed_at));
    (void)sqlite3_bind_blob64(statement, 4, failed->summary, failed->summary_size, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(statement, 5, failed->message, failed->message_size, SQLITE_STATIC);
}

static int put(wb_storage_session *session, const wb_failed *failed, wb_error *error)
{
    int ignored;
    const change how = { "insert into \"waybill_%w_failed\""
                         "(id, status, attempts, failed_at, changed_at, summary, message) values(?1, 1, 1, ?2, ?3, ?4, ?5)"
                         " on conflict(id) do update set status=1, attempts=attempts+1, failed_at=excluded.failed_at,"
                         " changed_at=excluded.changed_at, summary=excluded.summary, message=excluded.message"
                         " where failed_at<>excluded.failed_at",
                         "keep a failed message", bind_failed, failed };
    return apply(session, &how, &ignored, error);
}

static void bind_turn(sqlite3_stmt *statement, const void *what)
{
    const wb_failed_turn *turn = what;
    (void)sqlite3_bind_blob64(statement, 1, turn->key, turn->key_size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, turn->from);
    (void)sqlite3_bind_int64(statement, 3, turn->to);
    (void)sqlite3_bind_int64(statement, 4, wb_sqlite_delayed_to_column(turn->now));
}

static int turn(wb_storage_session *session, const wb_failed_turn *turn, int *ret_was, wb_error *error)
{
    const change how = { "update \"waybill_%w_failed\" set status=?3, changed_at=?4 where id=?1 and status=?2",
                         "change a failed message", bind_turn, turn };
    return apply(session, &how, ret_was, error);
}

static int discard(wb_storage_session *session, const char *key, size_t key_size, int32_t status, int *ret_was,
                   wb_error *error)
{
    const wb_failed_turn what = { .struct_size = sizeof what, .key = key, .key_size = key_size, .from = status };
    const change how = { "delete from \"waybill_%w_failed\" where id=?1 and status=?2", "change a failed message",
                         bind_turn, &what };
    return apply(session, &how, ret_was, error);
}

typedef struct old {
    int64_t before;
    size_t limit;
} old;

static void bind_old(sqlite3_stmt *statement, const void *what)
{
    const old *o = what;
    (void)sqlite3_bind_int64(statement, 1, wb_sqlite_delayed_to_column(o->before));
    (void)sqlite3_bind_int64(statement, 2, o->limit < INT64_MAX ? (int64_t)o->limit : INT64_MAX);
}

static int clean_up(wb_storage_session *session, int64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    int changes;
    const old what = { before, limit };
    const change how = { "delete from \"waybill_%w_failed\" where row in (select row from \"waybill_%w_failed\""
                         " where status<>1 and changed_at<?1 order by changed_at limit ?2)",
                         "remove failed messages", bind_old, &what };
    const int result = apply(session, &how, &changes, error);
    *ret_deleted = (size_t)changes;
    return result;
}

/* ---- what is there -------------------------------------------------------------------------- */

/* A row that nobody reads any more; its bytes are malloc'ed. */
typedef struct copied {
    wb_failed failed;
    void *bytes;
} copied;

static size_t column_size(sqlite3_stmt *statement, int column)
{
    return (size_t)sqlite3_column_bytes(statement, column);
}

static const char *copy_column(char **at, sqlite3_stmt *statement, int column)
{
    const void *from = sqlite3_column_blob(statement, column);
    const size_t size = column_size(statement, column);
    char *to = *at;
    if (size)
        memcpy(to, from, size);
    *at += size;
    return to;
}

/* @return 0, or -1: no memory. */
static int copy_row(sqlite3_stmt *statement, int has_message, copied *ret_row)
{
    char *at = malloc(column_size(statement, 0) + column_size(statement, 5) + column_size(statement, 6) + 1);
    ret_row->bytes = at;
    if (!at)
        return -1;
    ret_row->failed = (wb_failed){ .struct_size = sizeof(wb_failed),
                                   .key_size = column_size(statement, 0),
                                   .status = sqlite3_column_int(statement, 1),
                                   .attempts = (uint32_t)sqlite3_column_int64(statement, 2),
                                   .failed_at = wb_sqlite_delayed_from_column(sqlite3_column_int64(statement, 3)),
                                   .changed_at = wb_sqlite_delayed_from_column(sqlite3_column_int64(statement, 4)),
                                   .summary_size = column_size(statement, 5),
                                   .message_size = has_message ? column_size(statement, 6) : 0 };
    ret_row->failed.key = copy_column(&at, statement, 0);
    ret_row->failed.summary = copy_column(&at, statement, 5);
    ret_row->failed.message = has_message ? copy_column(&at, statement, 6) : NULL;
    return 0;
}

/* Rows of a bound statement, which is reset. */
static int copy_rows(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, int has_message, copied *rows, size_t max,
                     size_t *ret_count)
{
    int code = SQLITE_DONE, is_out = 0;
    *ret_count = 0;
    while (!is_out && *ret_count < max && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        is_out = copy_row(statement, has_message, &rows[*ret_count]) != 0;
        *ret_count += !is_out;
    }
    const int result = is_out                                         ? wb_sqlite_db_out_of_memory(call->db, call->error)
                       : code == SQLITE_ROW || code == SQLITE_DONE ? WB_OK
                                                                      : wb_sqlite_db_fail(call->db, code, "read failed messages",
                                                                                          call->error);
    (void)sqlite3_reset(statement);
    return result;
}

static int visit_copies(copied *rows, size_t count, int result, wb_failed_fn visit, void *argument)
{
    for (size_t i = 0; i < count; i++) {
        if (result == WB_OK)
            result = visit(argument, &rows[i].failed);
        free(rows[i].bytes);
    }
    return result;
}

static int get(wb_storage_session *session, const char *key, size_t key_size, wb_failed_fn visit, void *argument,
               wb_error *error)
{
    wb_sqlite_delayed_call call;
    sqlite3_stmt *statement = NULL;
    copied row;
    size_t count = 0;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result == WB_OK)
        result = wb_sqlite_delayed_prepare(&call, &statement, COLUMNS "message from \"waybill_%w_failed\" where id=?1");
    if (result == WB_OK) {
        (void)sqlite3_bind_blob64(statement, 1, key, key_size, SQLITE_STATIC);
        result = copy_rows(&call, statement, 1, &row, 1, &count);
    }
    (void)sqlite3_finalize(statement);
    return visit_copies(&row, count, result, visit, argument);
}

/* Behind the last row that was visited. */
typedef struct place {
    int64_t failed_at;
    char key[WB_FAILED_KEY_MAX];
    size_t key_size;
} place;

static void bind_place(sqlite3_stmt *statement, const wb_failed_filter *filter, const place *at)
{
    (void)sqlite3_bind_int64(statement, 1, at->failed_at);
    (void)sqlite3_bind_blob64(statement, 2, at->key, at->key_size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 3, filter->before ? wb_sqlite_delayed_to_column(filter->before) : INT64_MAX);
    (void)sqlite3_bind_int64(statement, 4, filter->status);
    (void)sqlite3_bind_int64(statement, 5, PAGE);
}

static void move_on(place *at, const wb_failed *last)
{
    at->failed_at = wb_sqlite_delayed_to_column(last->failed_at);
    at->key_size = last->key_size < sizeof at->key ? last->key_size : sizeof at->key;
    memcpy(at->key, last->key, at->key_size);
}

static int visit_pages(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, const wb_failed_filter *filter,
                       wb_failed_fn visit, void *argument)
{
    copied rows[PAGE];
    place at = { .failed_at = wb_sqlite_delayed_to_column(filter->from) };
    size_t count = PAGE;
    int result = WB_OK;
    while (result == WB_OK && count == PAGE) {
        bind_place(statement, filter, &at);
        result = copy_rows(call, statement, 0, rows, PAGE, &count);
        if (count)
            move_on(&at, &rows[count - 1].failed);
        result = visit_copies(rows, count, result, visit, argument);
    }
    return result;
}

static int list(wb_storage_session *session, const wb_failed_filter *filter, wb_failed_fn visit, void *argument,
                wb_error *error)
{
    wb_sqlite_delayed_call call;
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result == WB_OK)
        result = wb_sqlite_delayed_prepare(&call, &statement,
                                           COLUMNS "x'' from \"waybill_%w_failed\" where (failed_at, id)>(?1, ?2)"
                                                   " and failed_at<?3 and (?4=0 or status=?4) order by failed_at, id limit ?5");
    if (result == WB_OK)
        result = visit_pages(&call, statement, filter, visit, argument);
    (void)sqlite3_finalize(statement);
    return result;
}

const wb_failed_ops wb_sqlite_failed_ops = {
    .struct_size = sizeof wb_sqlite_failed_ops,
    .put = put,
    .turn = turn,
    .discard = discard,
    .get = get,
    .list = list,
    .clean_up = clean_up,
};

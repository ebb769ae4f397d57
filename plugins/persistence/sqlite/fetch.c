/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store: looking for messages, and taking those that are due.
 *
 * No read stays open while somebody visits: rows are copied, those of a fetch all at once, those of a
 * list one by one. So a log does not grow, and a visitor may use the session and the file.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/sqlite/delayed.h"

/* ---- rows ------------------------------------------------------------------------------ */

#define COLUMNS " row, destination, id, retries, failures, due, max(leased_until, doubtful)"

/* A copy of a row; `message` points into it. */
typedef struct copied {
    wb_delayed message; /* its place is the row's number */
    int64_t due; /* microseconds */
    char destination[WB_DELAYED_DESTINATION_MAX];
    char id[WB_DELAYED_ID_MAX];
    void *operation;
    size_t capacity;
} copied;

static size_t copy_text(sqlite3_stmt *statement, int column, char *text, size_t max)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    size_t size = bytes ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    if (size > max)
        size = max;
    if (size)
        memcpy(text, bytes, size);
    return size;
}

/* One byte more than needed: an operation of no bytes has an address, too. */
static int copy_operation(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, int column,
                          copied *row)
{
    if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
        row->message.operation = NULL;
        return WB_OK;
    }
    const void *bytes = sqlite3_column_blob(statement, column);
    size_t size = bytes ? (size_t)sqlite3_column_bytes(statement, column) : 0;
    if (size >= row->capacity) {
        void *grown = realloc(row->operation, size + 1);
        if (!grown)
            return wb_sqlite_db_out_of_memory(call->db, call->error);
        row->operation = grown;
        row->capacity = size + 1;
    }
    if (size)
        memcpy(row->operation, bytes, size);
    row->message.operation = row->operation;
    row->message.operation_size = size;
    return WB_OK;
}

static int copy(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, copied *row)
{
    wb_delayed *message = &row->message;
    const int64_t leased_until = sqlite3_column_int64(statement, 6);
    *message = (wb_delayed){ .struct_size = sizeof *message,
                             .destination = row->destination,
                             .id = row->id };
    message->place = (uint64_t)sqlite3_column_int64(statement, 0);
    row->due = sqlite3_column_int64(statement, 5);
    message->destination_size =
        copy_text(statement, 1, row->destination, sizeof row->destination);
    message->id_size = copy_text(statement, 2, row->id, sizeof row->id);
    message->retries = (uint32_t)sqlite3_column_int64(statement, 3);
    message->failures = (uint32_t)sqlite3_column_int64(statement, 4);
    message->due = wb_sqlite_delayed_from_column(row->due);
    if (leased_until)
        message->leased_until = wb_sqlite_delayed_from_column(leased_until);
    return copy_operation(call, statement, 7, row);
}

/* Run a bound statement that yields one row or none, and copy it. */
static int read_row(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, copied *row,
                    int *ret_found)
{
    int result = WB_OK;
    int code = sqlite3_step(statement);
    *ret_found = code == SQLITE_ROW;
    if (code == SQLITE_ROW)
        result = copy(call, statement, row);
    else if (code != SQLITE_DONE)
        result = wb_sqlite_db_fail(call->db, code, "read delayed messages", call->error);
    (void)sqlite3_reset(statement);
    return result;
}

/* ---- next ------------------------------------------------------------------------------ */

/* Of those in front that are taken, the lease that ends first may come before the first that
 * is free; behind that one nothing can. */
static int find_next(wb_sqlite_delayed_call *call, sqlite3_stmt *statement, int64_t now,
                     int64_t *ret_due)
{
    int64_t first = INT64_MAX;
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const int64_t due = sqlite3_column_int64(statement, 0);
        const int64_t leased_until = sqlite3_column_int64(statement, 1);
        const int64_t at = leased_until > due && leased_until > now ? leased_until : due;
        if (at < first)
            first = at;
        if (leased_until <= now || due >= first)
            break;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return wb_sqlite_db_fail(call->db, code, "look for the next delayed message", call->error);
    *ret_due = wb_sqlite_delayed_from_column(first);
    return WB_OK;
}

int wb_sqlite_delayed_next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now,
                           wb_error *error)
{
    wb_sqlite_delayed_call call;
    sqlite3_stmt *statement = NULL;
    (void)wb_sqlite_storage_clock(session, ret_now, NULL);
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result == WB_OK)
        result = wb_sqlite_delayed_prepare(&call, &statement,
                                           "select due, leased_until from \"waybill_%w_delayed\""
                                           " order by due");
    if (result == WB_OK)
        result = find_next(&call, statement, wb_sqlite_delayed_now(session), ret_due);
    (void)sqlite3_finalize(statement);
    return result;
}

/* ---- fetch ----------------------------------------------------------------------------- */

struct wb_sqlite_taken {
    copied **rows; /* earliest due first */
    size_t count;
    size_t capacity;
};

typedef struct wb_sqlite_taken taken;

static void free_taken(taken *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->rows[i]->operation);
        free(all->rows[i]);
    }
    free(all->rows);
    free(all);
}

/* @return NULL: memory is out. */
static copied *add(taken *all)
{
    if (all->count == all->capacity) {
        const size_t capacity = all->capacity ? 2 * all->capacity : 64;
        copied **grown = realloc(all->rows, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        all->rows = grown;
        all->capacity = capacity;
    }
    copied *row = calloc(1, sizeof *row);
    if (row)
        all->rows[all->count++] = row;
    return row;
}

#define WITH_OPERATIONS " left join \"waybill_%w_delayed_operation\" using(row)"
#define FREE_AND_DUE " where due<=?1 and leased_until<=?2 order by due, row limit ?3"

static void bind_due(sqlite3_stmt *statement, const wb_delayed_fetch *fetch, int64_t now, size_t limit)
{
    (void)sqlite3_bind_int64(statement, 1, fetch->at ? fetch->at / 1000 : now);
    (void)sqlite3_bind_int64(statement, 2, now);
    (void)sqlite3_bind_int64(statement, 3, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
}

/* Copied as they are found, so that each is read once. */
static int copy_due(wb_sqlite_delayed_call *call, const wb_delayed_fetch *fetch, int64_t now, taken *all)
{
    sqlite3_stmt *statement = NULL;
    size_t bytes = 0;
    int code = SQLITE_DONE;
    int result = wb_sqlite_delayed_prepare(call, &statement,
                                           "select" COLUMNS ", operation from \"waybill_%w_delayed\""
                                           WITH_OPERATIONS FREE_AND_DUE);
    bind_due(statement, fetch, now, fetch->limit);
    while (result == WB_OK && bytes < WB_DELAYED_FETCH_BYTES && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        copied *row = add(all);
        result = row ? copy(call, statement, row) : wb_sqlite_db_out_of_memory(call->db, call->error);
        bytes += row ? row->message.operation_size : 0;
    }
    if (result == WB_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        result = wb_sqlite_db_fail(call->db, code, "look for what is due", call->error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* The same rows: nobody else writes meanwhile. */
static int take(wb_sqlite_delayed_call *call, const wb_delayed_fetch *fetch, int64_t now, size_t count)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_delayed_prepare(call, &statement,
                                           "update \"waybill_%w_delayed\" set"
                                           " doubtful=doubtful or leased_until>0, owner=?4,"
                                           " leased_until=?5 where row in"
                                           " (select row from \"waybill_%w_delayed\"" FREE_AND_DUE ")");
    bind_due(statement, fetch, now, count);
    (void)sqlite3_bind_blob(statement, 4, fetch->owner, WB_DELAYED_OWNER_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 5, now + wb_sqlite_delayed_to_column(fetch->lease));
    if (result == WB_OK)
        result = wb_sqlite_db_run(call->db, statement, "take what is due", call->error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* In a short transaction of its own, flushed: a lease that a power loss took away would have cancel()
 * say of what was sent that it was not. */
static int take_due(wb_sqlite_delayed_call *call, const wb_delayed_fetch *fetch, wb_delayed_key *keys,
                    size_t count, taken *all)
{
    int result = wb_sqlite_delayed_begin(call, WB_SQLITE_DB_POWER_LOSS);
    if (result != WB_OK)
        return result;
    const int64_t now = wb_sqlite_delayed_now(call->session);
    if (count)
        result = wb_sqlite_delayed_drop(call, fetch->owner, keys, count);
    if (result == WB_OK)
        result = copy_due(call, fetch, now, all);
    if (result == WB_OK && all->count)
        result = take(call, fetch, now, all->count);
    return wb_sqlite_delayed_end(call, result, "fetch_sent");
}

/* All of it is done here: who waits for the disk has nothing else to do. */
int wb_sqlite_delayed_begin_fetch(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                                  const wb_delayed_fetch *fetch, wb_error *error)
{
    wb_sqlite_delayed_call call;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result != WB_OK)
        return result;
    if (session->taken)
        return call.db->host->fail(call.db->host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                                   "could not fetch delayed messages: the fetch before is not ended");
    taken *all = calloc(1, sizeof *all);
    if (!all)
        return wb_sqlite_db_out_of_memory(call.db, error);
    result = take_due(&call, fetch, keys, count, all);
    if (result == WB_OK)
        session->taken = all;
    else
        free_taken(all);
    return result;
}

int wb_sqlite_delayed_end_fetch(wb_storage_session *session, wb_delayed_fn visit, void *argument,
                                wb_error *error)
{
    const wb_host *host = session->db.host;
    taken *all = session->taken;
    int result = WB_OK;
    if (!all)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                          "could not fetch delayed messages: no fetch was begun");
    session->taken = NULL;
    for (size_t i = 0; result == WB_OK && i < all->count; i++)
        result = visit(argument, &all->rows[i]->message);
    free_taken(all);
    return result;
}

int wb_sqlite_delayed_fetch(wb_storage_session *session, const wb_delayed_fetch *fetch,
                            wb_delayed_fn visit, void *argument, wb_error *error)
{
    const int result = wb_sqlite_delayed_begin_fetch(session, NULL, 0, fetch, error);
    return result == WB_OK ? wb_sqlite_delayed_end_fetch(session, visit, argument, error) : result;
}

void wb_sqlite_delayed_forget(wb_storage_session *session)
{
    if (session->taken)
        free_taken(session->taken);
    session->taken = NULL;
}

/* ---- list ------------------------------------------------------------------------------ */

static void bind_text(sqlite3_stmt *statement, int parameter, const char *text, size_t size)
{
    if (text && size)
        (void)sqlite3_bind_blob64(statement, parameter, text, size, SQLITE_STATIC);
}

static void bind_filter(sqlite3_stmt *statement, const wb_delayed_filter *filter)
{
    const int64_t before = filter->due_before ? wb_sqlite_delayed_to_column(filter->due_before)
                                              : INT64_MAX;
    (void)sqlite3_bind_int64(statement, 3, before);
    bind_text(statement, 4, filter->destination, filter->destination_size);
    bind_text(statement, 5, filter->id, filter->id_size);
}

/* From row to row: each look begins behind the one before. */
static int visit_list(wb_sqlite_delayed_call *call, sqlite3_stmt *statement,
                      const wb_delayed_filter *filter, wb_delayed_fn visit, void *argument)
{
    copied row = { .due = filter->due_from ? wb_sqlite_delayed_to_column(filter->due_from)
                                           : INT64_MIN };
    int result = WB_OK, found = 1;
    bind_filter(statement, filter);
    for (size_t i = 0; filter->limit == 0 || i < filter->limit; i++) {
        (void)sqlite3_bind_int64(statement, 1, row.due);
        (void)sqlite3_bind_int64(statement, 2, (int64_t)row.message.place);
        result = read_row(call, statement, &row, &found);
        if (result == WB_OK && found)
            result = visit(argument, &row.message);
        if (result != WB_OK || !found)
            break;
    }
    free(row.operation);
    return result;
}

#define FILTERED " and due<?3 and (?4 is null or destination=?4)"

/* Two looks, since SQLite does not use the index for the order of equal times in one. */
static const char all_of_them[] =
    "select" COLUMNS ", null from \"waybill_%w_delayed\" where row=coalesce("
    "(select row from \"waybill_%w_delayed\" where due=?1 and row>?2" FILTERED
    " order by row limit 1),"
    "(select row from \"waybill_%w_delayed\" where due>?1" FILTERED
    " order by due, row limit 1))";

/* Those with an id are few; they are found by it, however many wait. */
static const char of_one_id[] =
    "select" COLUMNS ", operation from \"waybill_%w_delayed\"" WITH_OPERATIONS " where row="
    "(select row from \"waybill_%w_delayed\" where id=?5 and (due,row)>(?1,?2)" FILTERED
    " order by due, row limit 1)";

int wb_sqlite_delayed_list(wb_storage_session *session, const wb_delayed_filter *filter,
                           wb_delayed_fn visit, void *argument, wb_error *error)
{
    wb_sqlite_delayed_call call;
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result == WB_OK)
        result = wb_sqlite_delayed_prepare(&call, &statement, filter->id ? of_one_id : all_of_them);
    if (result == WB_OK)
        result = visit_list(&call, statement, filter, visit, argument);
    (void)sqlite3_finalize(statement);
    return result;
}

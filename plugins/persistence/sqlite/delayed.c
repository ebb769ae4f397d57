/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store: what changes messages by their keys. What looks for them is in
 * fetch.c.
 */
#include "config.h"

#include "plugins/persistence/sqlite/delayed.h"

#define MICROSECOND 1000

/* ---- times ---------------------------------------------------------------------------- */

int64_t wb_sqlite_delayed_to_column(int64_t time)
{
    return time / MICROSECOND + (time % MICROSECOND > 0);
}

int64_t wb_sqlite_delayed_from_column(int64_t column)
{
    return column > INT64_MAX / MICROSECOND ? INT64_MAX : column * MICROSECOND;
}

int64_t wb_sqlite_delayed_now(wb_storage_session *session)
{
    int64_t now = 0;
    (void)wb_sqlite_storage_clock(session, &now, NULL);
    return now / MICROSECOND;
}

/* ---- calls ---------------------------------------------------------------------------- */

int wb_sqlite_delayed_enter(wb_sqlite_delayed_call *call, wb_storage_session *session,
                            wb_error *error)
{
    call->session = session;
    call->error = error;
    call->db = &session->db;
    if (!session->joined)
        return WB_OK;
    call->joined = session->db;
    call->joined.handle = session->joined;
    call->db = &call->joined;
    return wb_sqlite_storage_check_intact(session, error);
}

int wb_sqlite_delayed_begin(wb_sqlite_delayed_call *call, wb_sqlite_db_durability durability)
{
    return call->session->joined ? WB_OK : wb_sqlite_db_begin(call->db, durability, call->error);
}

int wb_sqlite_delayed_end(wb_sqlite_delayed_call *call, int result, const char *point)
{
    if (result == WB_OK && point)
        call->db->host->crash_point(point);
    if (call->session->joined)
        return result;
    if (result == WB_OK)
        result = wb_sqlite_db_commit(call->db, call->error);
    wb_sqlite_db_rollback(call->db);
    return result;
}

int wb_sqlite_delayed_prepare(wb_sqlite_delayed_call *call, sqlite3_stmt **ret_statement,
                              const char *format)
{
    char *sql = wb_sqlite_names_format(format, call->session->persistence->tables);
    if (!sql)
        return wb_sqlite_db_out_of_memory(call->db, call->error);
    int result = wb_sqlite_db_prepare(call->db, ret_statement, sql, call->error);
    sqlite3_free(sql);
    return result;
}

/* ---- modes ---------------------------------------------------------------------------- */

/* A send that is atomic with its receive is the transport's transaction's; a file cannot be
 * part of that but with the whole of transaction_scope. */
static int initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    if (mode == WB_MODE_NONE || mode == WB_MODE_RECEIVE_ONLY || mode == WB_MODE_TRANSACTION_SCOPE)
        return WB_OK;
    return persistence->host->fail(persistence->host, error, WB_FATAL, WB_CAUSE_CONFIG, mode,
                                   "the delayed message store of sqlite works with the transaction "
                                   "modes none, receive_only and transaction_scope, with no other");
}

/* ---- store ---------------------------------------------------------------------------- */

/* A newer host's messages may be larger than ours. */
static const wb_delayed *message_at(const wb_delayed *messages, size_t index)
{
    return (const wb_delayed *)((const char *)messages + index * messages->struct_size);
}

static void bind_key(sqlite3_stmt *statement, const char *destination, size_t destination_size,
                     const char *id, size_t id_size, uint32_t retries)
{
    (void)sqlite3_bind_blob64(statement, 1, destination, destination_size, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(statement, 2, id, id_size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 3, retries);
}

#define STORE "store a delayed message"

/* The row, and what is dispatched: in place of what another program left there when it took a row away
 * without the trigger. */
typedef struct insertion {
    sqlite3_stmt *row;
    sqlite3_stmt *operation;
} insertion;

static int insert(wb_sqlite_delayed_call *call, const insertion *statements, const wb_delayed *message)
{
    const void *operation = message->operation_size ? message->operation : "";
    bind_key(statements->row, message->destination, message->destination_size, message->id,
             message->id_size, message->retries);
    (void)sqlite3_bind_int64(statements->row, 4, wb_sqlite_delayed_to_column(message->due));
    int result = wb_sqlite_db_run(call->db, statements->row, STORE, call->error);
    if (result != WB_OK || sqlite3_changes(call->db->handle) == 0)
        return result;
    if (sqlite3_bind_blob64(statements->operation, 1, operation, message->operation_size,
                            SQLITE_STATIC) != SQLITE_OK)
        return wb_sqlite_db_fail(call->db, SQLITE_TOOBIG, STORE, call->error);
    return wb_sqlite_db_run(call->db, statements->operation, STORE, call->error);
}

static int insert_all(wb_sqlite_delayed_call *call, const wb_delayed *messages, size_t count)
{
    insertion statements = { NULL, NULL };
    int result = wb_sqlite_delayed_prepare(
        call, &statements.row,
        "insert into \"waybill_%w_delayed\"(destination,id,retries,due)"
        " values(?1,?2,?3,?4) on conflict(destination,id,retries) do nothing");
    if (result == WB_OK)
        result = wb_sqlite_delayed_prepare(
            call, &statements.operation,
            "insert or replace into \"waybill_%w_delayed_operation\"(row,operation)"
            " values(last_insert_rowid(),?1)");
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = insert(call, &statements, message_at(messages, i));
    (void)sqlite3_finalize(statements.row);
    (void)sqlite3_finalize(statements.operation);
    return result;
}

int wb_sqlite_delayed_insert(wb_storage_session *session, const wb_delayed *messages, size_t count,
                             wb_error *error)
{
    wb_sqlite_delayed_call call = { .session = session, .db = &session->db, .error = error };
    return insert_all(&call, messages, count);
}

static int store(wb_storage_session *session, const wb_delayed *messages, size_t count,
                 wb_error *error)
{
    wb_sqlite_delayed_call call;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    if (result != WB_OK || count == 0)
        return result;
    result = wb_sqlite_delayed_begin(&call, WB_SQLITE_DB_POWER_LOSS);
    if (result != WB_OK)
        return result;
    return wb_sqlite_delayed_end(&call, insert_all(&call, messages, count), "store_sent");
}

/* ---- changes by key -------------------------------------------------------------------- */

/* What happens to messages whose keys are given. */
typedef struct change {
    const char *format;
    const char *doing;
    const char *point; /* crash point, or NULL */
    const char *owner; /* ?4 unless NULL */
    int64_t due;       /* ?5, microseconds, if `format` has it */
} change;

#define BY_KEY " where destination=?1 and id=?2 and retries=?3"
#define GIVEN_BACK "owner=null, leased_until=0"
/* Nobody has it, and everybody who had it gave it back himself. */
#define NEVER_SENT "owner is null and not doubtful"

/* Parameters that the statement does not have are refused, and that is no matter. */
static int change_all(wb_sqlite_delayed_call *call, const change *how, wb_delayed_key *keys,
                      size_t count)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_delayed_prepare(call, &statement, how->format);
    if (result == WB_OK && how->owner)
        (void)sqlite3_bind_blob(statement, 4, how->owner, WB_DELAYED_OWNER_SIZE, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 5, how->due);
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        wb_delayed_key *key = &keys[i];
        bind_key(statement, key->destination, key->destination_size, key->id, key->id_size,
                 key->retries);
        (void)sqlite3_bind_int64(statement, 6, (int64_t)key->place);
        result = wb_sqlite_db_run(call->db, statement, how->doing, call->error);
        key->was_there = result == WB_OK && sqlite3_changes(call->db->handle) > 0;
    }
    (void)sqlite3_finalize(statement);
    return result;
}

static int apply(wb_storage_session *session, const change *how, wb_delayed_key *keys,
                 size_t count, wb_error *error)
{
    wb_sqlite_delayed_call call;
    int result = wb_sqlite_delayed_enter(&call, session, error);
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = 0;
    if (result != WB_OK || count == 0)
        return result;
    result = wb_sqlite_delayed_begin(&call, WB_SQLITE_DB_POWER_LOSS);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_delayed_end(&call, change_all(&call, how, keys, count), how->point);
    for (size_t i = 0; result != WB_OK && i < count; i++)
        keys[i].was_there = 0; /* all is undone, or nobody knows */
    return result;
}

#define REMOVED "delete from \"waybill_%w_delayed\"" BY_KEY " and (?4 is null or owner=?4)"

/* A row stays in its place, so one that is elsewhere is not what was fetched. */
static int have_places(const wb_delayed_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!keys[i].place)
            return 0;
    return 1;
}

static change removal(const char *owner, const wb_delayed_key *keys, size_t count)
{
    return (change){ .format = owner && have_places(keys, count) ? REMOVED " and row=?6" : REMOVED,
                     .doing = "remove a delayed message",
                     .point = "remove_sent",
                     .owner = owner };
}

int wb_sqlite_delayed_drop(wb_sqlite_delayed_call *call, const char *owner, wb_delayed_key *keys,
                           size_t count)
{
    const change how = removal(owner, keys, count);
    return change_all(call, &how, keys, count);
}

/* A lease that has ended counts as his until somebody else has the message: it was dispatched,
 * and taking it away spares a duplicate. */
static int remove_messages(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                           size_t count, wb_error *error)
{
    const change how = removal(owner, keys, count);
    return apply(session, &how, keys, count, error);
}

static int increment_failure_count(wb_storage_session *session, const char *owner,
                                   wb_delayed_key *keys, size_t count, int64_t due,
                                   wb_error *error)
{
    const change how = { .format = "update \"waybill_%w_delayed\" set failures=failures+1, due=?5,"
                                   " " GIVEN_BACK BY_KEY " and owner=?4",
                         .doing = "count a failure of a delayed message",
                         .owner = owner,
                         .due = wb_sqlite_delayed_to_column(due) };
    return apply(session, &how, keys, count, error);
}

static int release(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                   size_t count, int64_t due, wb_error *error)
{
    const change how = { .format = "update \"waybill_%w_delayed\" set due=coalesce(nullif(?5,0),due),"
                                   " " GIVEN_BACK BY_KEY " and owner=?4",
                         .doing = "give a delayed message back",
                         .owner = owner,
                         .due = wb_sqlite_delayed_to_column(due) };
    return apply(session, &how, keys, count, error);
}

static int cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                  wb_error *error)
{
    const change how = { .format = "delete from \"waybill_%w_delayed\"" BY_KEY
                                   " and " NEVER_SENT,
                         .doing = "cancel a delayed message" };
    return apply(session, &how, keys, count, error);
}

static int reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count, int64_t due,
                      wb_error *error)
{
    const change how = { .format = "update \"waybill_%w_delayed\" set due=?5, " GIVEN_BACK BY_KEY
                                   " and " NEVER_SENT,
                         .doing = "reschedule a delayed message",
                         .due = wb_sqlite_delayed_to_column(due) };
    return apply(session, &how, keys, count, error);
}

const wb_delayed_ops wb_sqlite_delayed_ops = {
    .struct_size = sizeof wb_sqlite_delayed_ops,
    .initialize = initialize,
    .store = store,
    .next = wb_sqlite_delayed_next,
    .fetch = wb_sqlite_delayed_fetch,
    .remove = remove_messages,
    .increment_failure_count = increment_failure_count,
    .release = release,
    .list = wb_sqlite_delayed_list,
    .cancel = cancel,
    .reschedule = reschedule,
    .begin_fetch = wb_sqlite_delayed_begin_fetch,
    .end_fetch = wb_sqlite_delayed_end_fetch,
};

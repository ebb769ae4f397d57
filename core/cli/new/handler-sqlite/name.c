/* Handles @NAME@.Requested: a row in @TABLE@, and the event @NAME@.Done. */
#include <waybill/handler.h>
#include <waybill/sqlite.h>

static int insert(sqlite3 *db, const wb_message *msg)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db, "insert into @TABLE@ (message_id, body) values (?, ?)", -1, &statement, NULL) != SQLITE_OK)
        return 0;
    sqlite3_bind_text(statement, 1, msg->id, (int)msg->id_size, SQLITE_STATIC);
    sqlite3_bind_blob(statement, 2, msg->body, (int)msg->body_size, SQLITE_STATIC);
    const int is_done = sqlite3_step(statement) == SQLITE_DONE;
    sqlite3_finalize(statement);
    return is_done;
}

static int handle(wb_context *ctx, const wb_message *msg)
{
    sqlite3 *db = wb_sqlite(ctx); /* in the transaction that Waybill commits */
    if (!db || !insert(db, msg))
        return wb_fail(ctx, WB_RETRY, "could not write the row: %s", db ? sqlite3_errmsg(db) : "no database");
    const wb_outgoing done = { .type = "@NAME@.Done", .body = msg->body, .body_size = msg->body_size };
    return wb_publish(ctx, &done);
}

WB_HANDLERS(WB_HANDLER("@NAME@.Requested", handle))

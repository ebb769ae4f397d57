/* Handles @NAME@.Requested: a row in @TABLE@, and the event @NAME@.Done. */
#include <waybill/handler.h>
#include <waybill/pgsql.h>

/* The server's message may quote the row, and what a handler says of a failure is logged. */
static int fail(wb_context *ctx, const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return wb_fail(ctx, WB_RETRY, "could not write the row: SQLSTATE %s", code ? code : "unknown");
}

static int insert(wb_context *ctx, PGconn *db, const wb_message *msg)
{
    const char *const values[] = { msg->id, (const char *)msg->body };
    const int sizes[] = { (int)msg->id_size, (int)msg->body_size };
    const int formats[] = { 1, 1 }; /* an id has any bytes */
    PGresult *result = PQexecParams(db, "insert into @TABLE@ (message_id, body) values ($1, $2)", 2, NULL, values, sizes, formats, 0);
    const int code = PQresultStatus(result) == PGRES_COMMAND_OK ? WB_OK : fail(ctx, result);
    PQclear(result);
    return code;
}

static int handle(wb_context *ctx, const wb_message *msg)
{
    PGconn *db = wb_pgsql(ctx); /* in the transaction that Waybill commits */
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection to PostgreSQL");
    const int code = insert(ctx, db, msg);
    if (code != WB_OK)
        return code;
    const wb_outgoing done = { .type = "@NAME@.Done", .body = msg->body, .body_size = msg->body_size };
    return wb_publish(ctx, &done);
}

WB_HANDLERS(WB_HANDLER("@NAME@.Requested", handle))

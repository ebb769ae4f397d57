/* Handles @NAME@.Requested: a row in @TABLE@, and the event @NAME@.Done. */
#include <string.h>
#include <waybill/handler.h>
#include <waybill/mysql.h>

static int insert(MYSQL_STMT *statement, const wb_message *msg)
{
    static const char text[] = "insert into @TABLE@ (message_id, body) values (?, ?)";
    MYSQL_BIND values[2];
    memset(values, 0, sizeof values);
    values[0].buffer_type = MYSQL_TYPE_STRING;
    values[0].buffer = (void *)msg->id;
    values[0].buffer_length = msg->id_size;
    values[1].buffer_type = MYSQL_TYPE_BLOB;
    values[1].buffer = (void *)msg->body;
    values[1].buffer_length = msg->body_size;
    return !mysql_stmt_prepare(statement, text, sizeof text - 1) && !mysql_stmt_bind_param(statement, values) &&
           !mysql_stmt_execute(statement);
}

static int handle(wb_context *ctx, const wb_message *msg)
{
    MYSQL *db = wb_mysql(ctx); /* in the transaction that Waybill commits */
    MYSQL_STMT *statement = db ? mysql_stmt_init(db) : NULL;
    int code = WB_OK;
    if (!statement)
        return wb_fail(ctx, WB_RETRY, "no connection to MySQL");
    if (!insert(statement, msg)) /* the server's message may quote the row, and this is logged */
        code = wb_fail(ctx, WB_RETRY, "could not write the row: error %u", mysql_stmt_errno(statement));
    mysql_stmt_close(statement);
    if (code != WB_OK)
        return code;
    const wb_outgoing done = { .type = "@NAME@.Done", .body = msg->body, .body_size = msg->body_size };
    return wb_publish(ctx, &done);
}

WB_HANDLERS(WB_HANDLER("@NAME@.Requested", handle))

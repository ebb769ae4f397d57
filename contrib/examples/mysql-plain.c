/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data through the plain connection to MySQL or MariaDB: any statement, any result,
 * two round trips here, because the statement is prepared each time (text a statement is
 * made of would have to be escaped). It is part of the framework's transaction.
 *
 *     cc -shared -fPIC -Wl,-z,defs mysql-plain.c $(pkg-config --cflags --libs waybill libmariadb) -o orders.so
 */
#include <string.h>
#include <waybill/handler.h>
#include <waybill/mysql.h>

static int insert_order(MYSQL_STMT *statement, const char *order, const wb_message *msg)
{
    static const char text[] = "insert into orders (order_id, message_id, body) values (?, ?, ?)";
    MYSQL_BIND values[3] = {
        { .buffer_type = MYSQL_TYPE_STRING, .buffer = (void *)order,
          .buffer_length = strlen(order) },
        { .buffer_type = MYSQL_TYPE_STRING, .buffer = (void *)msg->id,
          .buffer_length = msg->id_size },
        { .buffer_type = MYSQL_TYPE_BLOB, .buffer = (void *)msg->body,
          .buffer_length = msg->body_size },
    };
    return mysql_stmt_prepare(statement, text, sizeof text - 1) ||
           mysql_stmt_bind_param(statement, values) || mysql_stmt_execute(statement);
}

static int place_order(wb_context *ctx, const wb_message *msg)
{
    MYSQL *db = wb_mysql(ctx);
    const char *order = wb_message_header(msg, "Order");
    MYSQL_STMT *statement;
    int result = WB_OK;
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection to MySQL");
    if (!order)
        return wb_fail(ctx, WB_UNRECOVERABLE, "header \"Order\" is missing");
    statement = mysql_stmt_init(db);
    if (!statement)
        return wb_fail(ctx, WB_RETRY, "out of memory");
    if (insert_order(statement, order, msg) != 0)
        result = wb_fail(ctx, WB_RETRY, "could not write the order: error %u", /* the message may quote it */
                         mysql_stmt_errno(statement));
    mysql_stmt_close(statement);
    if (result != WB_OK)
        return result;
    return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                           .body = msg->body,
                                           .body_size = msg->body_size });
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))

/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data through the plain connection: any SQL, any result, one round trip a
 * statement. The statement is part of the framework's transaction.
 *
 *     cc -shared -fPIC -Wl,-z,defs pgsql-plain.c $(pkg-config --cflags --libs waybill libpq) -o orders.so
 */
#include <waybill/handler.h>
#include <waybill/pgsql.h>

/* The message of the server may quote the order, and what a handler says of a failure is logged. */
static int fail(wb_context *ctx, const PGresult *result)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return wb_fail(ctx, WB_RETRY, "could not write the order: SQLSTATE %s", code ? code : "unknown");
}

static int place_order(wb_context *ctx, const wb_message *msg)
{
    PGconn *db = wb_pgsql(ctx);
    const char *order = wb_message_header(msg, "Order");
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection to PostgreSQL");
    if (!order)
        return wb_fail(ctx, WB_UNRECOVERABLE, "header \"Order\" is missing");
    PGresult *result = PQexecParams(
        db, "insert into orders (order_id, message_id, body) values ($1, $2, $3)", 3, NULL,
        (const char *const[]){ order, msg->id, (const char *)msg->body },
        (const int[]){ 0, 0, (int)msg->body_size }, (const int[]){ 0, 0, 1 }, 0);
    int failed = PQresultStatus(result) == PGRES_COMMAND_OK ? WB_OK : fail(ctx, result);
    PQclear(result);
    if (failed)
        return failed;
    return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                           .body = msg->body,
                                           .body_size = msg->body_size });
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))

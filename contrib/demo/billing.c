/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module of the endpoint "billing": writes an invoice for each order placed.
 *
 *     cc -shared -fPIC -Wl,-z,defs billing.c $(pkg-config --cflags --libs waybill sqlite3) -o billing.so
 */
#include <waybill/handler.h>
#include <waybill/sqlite.h>

static int order_placed(wb_context *ctx, const wb_message *msg)
{
    static const char insert[] = "insert into invoices (order_id, cents, event_id)"
                                 " values (json_extract(?1, '$.order'),"
                                 " json_extract(?1, '$.cents'), ?2)";
    sqlite3 *db = wb_sqlite(ctx);
    sqlite3_stmt *statement = NULL;
    int result = WB_OK;
    if (!db)
        return wb_fail(ctx, WB_UNRECOVERABLE, "this handler needs the sqlite persistence");
    if (sqlite3_prepare_v2(db, insert, -1, &statement, NULL) != SQLITE_OK)
        return wb_fail(ctx, WB_RETRY, "could not prepare the insert: %s", sqlite3_errmsg(db));
    sqlite3_bind_text(statement, 1, (const char *)msg->body, (int)msg->body_size, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, msg->id, (int)msg->id_size, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE)
        result = wb_fail(ctx, WB_RETRY, "could not write the invoice: %s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return result;
}

WB_HANDLERS(WB_HANDLER("Sales.OrderPlaced", order_placed))

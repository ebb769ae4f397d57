/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-plain.c on SQLite.
 */
#include <waybill/sqlite.h>

/* Prepared once a connection; the connection is a worker's for as long as it runs. */
static sqlite3_stmt *prepare(sqlite3 *db)
{
    static _Thread_local sqlite3 *prepared_on;
    static _Thread_local sqlite3_stmt *statement;
    if (prepared_on == db)
        return statement;
    if (sqlite3_prepare_v3(db, "insert into bench_order (order_id, amount) values (?, ?)", -1,
                           SQLITE_PREPARE_PERSISTENT, &statement, NULL)
        != SQLITE_OK)
        return NULL;
    prepared_on = db;
    return statement;
}

static int place_order(wb_context *ctx, const wb_message *message)
{
    sqlite3 *db = wb_sqlite(ctx);
    sqlite3_stmt *insert = db ? prepare(db) : NULL;
    if (!insert)
        return wb_fail(ctx, WB_RETRY, "could not prepare: %s",
                       db ? sqlite3_errmsg(db) : "no database connection");
    sqlite3_bind_text(insert, 1, message->id, (int)message->id_size, SQLITE_STATIC);
    sqlite3_bind_int64(insert, 2, (sqlite3_int64)message->body_size);
    int status = sqlite3_step(insert);
    sqlite3_reset(insert);
    if (status != SQLITE_DONE)
        return wb_fail(ctx, WB_RETRY, "could not write the order: %s", sqlite3_errmsg(db));
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))

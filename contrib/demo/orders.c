/* SPDX-License-Identifier: Apache-2.0
 *
 * Handler module of the endpoint "orders": writes the order and publishes
 * Sales.OrderPlaced. Both happen or neither does.
 *
 *     cc -shared -fPIC -Wl,-z,defs orders.c $(pkg-config --cflags --libs waybill sqlite3) -o orders.so
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>
#include <waybill/handler.h>
#include <waybill/sqlite.h>

/* The demo kills the host while it works; DEMO_PAUSE_US makes the work last long enough
 * to be hit. */
static void demo_pause(void)
{
    const char *pause = getenv("DEMO_PAUSE_US");
    long us = pause ? strtol(pause, NULL, 10) : 0;
    if (us <= 0 || us >= 1000000)
        return;
    struct timespec span = { .tv_nsec = us * 1000 };
    nanosleep(&span, NULL);
}

static int insert_order(wb_context *ctx, sqlite3 *db, const wb_message *msg)
{
    static const char insert[] = "insert into orders (order_id, customer, cents, message_id)"
                                 " values (json_extract(?1, '$.order'),"
                                 " json_extract(?1, '$.customer'),"
                                 " json_extract(?1, '$.cents'), ?2)";
    sqlite3_stmt *statement = NULL;
    int result = WB_OK;
    if (sqlite3_prepare_v2(db, insert, -1, &statement, NULL) != SQLITE_OK)
        return wb_fail(ctx, WB_RETRY, "could not prepare the insert: %s", sqlite3_errmsg(db));
    sqlite3_bind_text(statement, 1, (const char *)msg->body, (int)msg->body_size, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, msg->id, (int)msg->id_size, SQLITE_STATIC);
    if (sqlite3_step(statement) != SQLITE_DONE)
        result = wb_fail(ctx, WB_RETRY, "could not write the order: %s", sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return result;
}

static int place_order(wb_context *ctx, const wb_message *msg)
{
    sqlite3 *db = wb_sqlite(ctx);
    if (!db)
        return wb_fail(ctx, WB_UNRECOVERABLE, "this handler needs the sqlite persistence");
    int result = insert_order(ctx, db, msg);
    if (result != WB_OK)
        return result;
    demo_pause();
    return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                           .body = msg->body,
                                           .body_size = msg->body_size });
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))

/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-plain.c on MariaDB.
 */
#include <waybill/mysql.h>

/* Prepared once a connection; a connection is known by its server thread as well, because a
 * new one may lie at an old one's address. */
static MYSQL_STMT *prepare(MYSQL *db)
{
    static const char text[] = "insert into bench_order (order_id, amount) values (?, ?)";
    static _Thread_local MYSQL *prepared_on;
    static _Thread_local unsigned long prepared_in;
    static _Thread_local MYSQL_STMT *statement;
    if (prepared_on == db && prepared_in == mysql_thread_id(db))
        return statement;
    if (statement)
        mysql_stmt_close(statement);
    prepared_on = NULL;
    statement = mysql_stmt_init(db);
    if (!statement || mysql_stmt_prepare(statement, text, sizeof text - 1))
        return NULL;
    prepared_on = db;
    prepared_in = mysql_thread_id(db);
    return statement;
}

static int insert_order(MYSQL_STMT *insert, const wb_message *message)
{
    unsigned long size = (unsigned long)message->id_size;
    int amount = (int)message->body_size;
    MYSQL_BIND parameters[2] = {
        { .buffer_type = MYSQL_TYPE_STRING, .buffer = (void *)(uintptr_t)message->id,
          .buffer_length = size, .length = &size },
        { .buffer_type = MYSQL_TYPE_LONG, .buffer = &amount },
    };
    return mysql_stmt_bind_param(insert, parameters) == 0 && mysql_stmt_execute(insert) == 0;
}

static int place_order(wb_context *ctx, const wb_message *message)
{
    MYSQL *db = wb_mysql(ctx);
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no database connection");
    MYSQL_STMT *insert = prepare(db);
    if (!insert)
        return wb_fail(ctx, WB_RETRY, "could not prepare: %s", mysql_error(db));
    if (!insert_order(insert, message))
        return wb_fail(ctx, WB_RETRY, "could not write the order: %s", mysql_stmt_error(insert));
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))

/* SPDX-License-Identifier: Apache-2.0
 *
 * The benchmark's business work, a round trip a row: one row and one outgoing message of
 * the incoming message's body. The other handler-*.c do the same in other ways.
 */
#include <arpa/inet.h>
#include <waybill/pgsql.h>

#define STATEMENT "bench_order"

/* Prepared once a connection; a connection is known by its server process as well,
 * because a new one may lie at an old one's address. */
static int prepare(PGconn *db)
{
    static _Thread_local PGconn *prepared_on;
    static _Thread_local int prepared_in;
    if (prepared_on == db && prepared_in == PQbackendPID(db))
        return 1;
    PGresult *result = PQprepare(
        db, STATEMENT,
        "insert into bench_order (order_id, amount) values ($1::text, $2::int4)", 0, NULL);
    int prepared = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (prepared) {
        prepared_on = db;
        prepared_in = PQbackendPID(db);
    }
    return prepared;
}

static int insert_order(PGconn *db, const wb_message *message)
{
    static const int binary[] = { 1, 1 };
    uint32_t amount = htonl((uint32_t)message->body_size);
    const char *values[] = { message->id, (const char *)&amount };
    int sizes[] = { (int)message->id_size, sizeof amount };
    PGresult *result = PQexecPrepared(db, STATEMENT, 2, values, sizes, binary, 1);
    int inserted = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    return inserted;
}

static int place_order(wb_context *ctx, const wb_message *message)
{
    PGconn *db = wb_pgsql(ctx);
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no database connection");
    if (!prepare(db) || !insert_order(db, message))
        return wb_fail(ctx, WB_RETRY, "could not write the order: %s", PQerrorMessage(db));
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))

/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data from a batch handler: all messages of one type of a batch in one call and
 * one statement. When the call fails, the batch is rolled back and the same function is
 * called for one message at a time, so that only the message at fault fails.
 *
 *     cc -shared -fPIC -Wl,-z,defs pgsql-batch.c $(pkg-config --cflags --libs waybill libpq) -o orders.so
 */
#include <stdlib.h>
#include <waybill/handler.h>
#include <waybill/pgsql.h>

#define COLUMNS 3

/* insert into orders values ($1,$2,$3),($4,$5,$6),... for count rows */
static char *insert_text(size_t count)
{
    static const char head[] = "insert into orders (order_id, message_id, body) values ";
    size_t room = sizeof head + count * 64;
    char *text = malloc(room);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, room, "%s", head);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, "%s($%zu,$%zu,$%zu)", i ? "," : "",
                               i * COLUMNS + 1, i * COLUMNS + 2, i * COLUMNS + 3);
    return text;
}

#define CODE_SIZE 6

/* Of an error the SQLSTATE is told: the message may quote the orders. */
static int run_insert(PGconn *db, const char *text, const wb_message *const *messages,
                      size_t count, char ret_code[CODE_SIZE])
{
    const char **values = calloc(count * COLUMNS, sizeof *values);
    int *lengths = calloc(count * COLUMNS, sizeof *lengths);
    int *formats = calloc(count * COLUMNS, sizeof *formats);
    int ok = 0;
    if (!values || !lengths || !formats)
        goto out;
    for (size_t i = 0; i < count; i++) {
        values[i * COLUMNS] = wb_message_header(messages[i], "Order");
        values[i * COLUMNS + 1] = messages[i]->id;
        values[i * COLUMNS + 2] = (const char *)messages[i]->body;
        lengths[i * COLUMNS + 2] = (int)messages[i]->body_size;
        formats[i * COLUMNS + 2] = 1;
    }
    PGresult *result = PQexecParams(db, text, (int)(count * COLUMNS), NULL, values, lengths,
                                    formats, 0);
    ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    (void)snprintf(ret_code, CODE_SIZE, "%s", code ? code : "");
    PQclear(result);
out:
    free(values);
    free(lengths);
    free(formats);
    return ok;
}

static int insert_orders(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    PGconn *db = wb_pgsql(ctx);
    char *text = insert_text(count);
    char code[CODE_SIZE] = "";
    int result = WB_OK;
    if (!db || !text)
        result = wb_fail(ctx, WB_RETRY, "no connection to PostgreSQL, or out of memory");
    else if (!run_insert(db, text, messages, count, code))
        result = wb_fail(ctx, WB_RETRY, "could not write %zu orders: SQLSTATE %s", count, code);
    free(text);
    return result;
}

static int place_orders(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int result = insert_orders(ctx, messages, count);
    /* `cause` says which message an event belongs to: its id derives from that one's */
    for (size_t i = 0; i < count && result == WB_OK; i++)
        result = wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                                 .body = messages[i]->body,
                                                 .body_size = messages[i]->body_size,
                                                 .cause = messages[i] });
    return result;
}

WB_HANDLERS(WB_BATCH_HANDLER("Sales.PlaceOrder", place_orders))

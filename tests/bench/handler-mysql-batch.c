/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-batch.c on MariaDB: one statement with as many parameters as it takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/mysql.h>

#define START "insert into bench_order (order_id, amount) values "
#define ROW "(?,?),"

struct rows {
    char *text;
    int *types;
    size_t *lengths;
    const char **values;
    char (*amounts)[24];
};

static int rows_begin(struct rows *rows, size_t count)
{
    rows->text = malloc(sizeof START + count * strlen(ROW));
    rows->types = malloc(2 * count * sizeof *rows->types);
    rows->lengths = malloc(2 * count * sizeof *rows->lengths);
    rows->values = malloc(2 * count * sizeof *rows->values);
    rows->amounts = malloc(count * sizeof *rows->amounts);
    return rows->text && rows->types && rows->lengths && rows->values && rows->amounts;
}

static void rows_free(struct rows *rows)
{
    free(rows->text);
    free(rows->types);
    free(rows->lengths);
    free(rows->values);
    free(rows->amounts);
}

static void rows_fill(struct rows *rows, const wb_message *const *messages, size_t count)
{
    char *at = rows->text + strlen(START);
    memcpy(rows->text, START, strlen(START));
    for (size_t i = 0; i < count; i++, at += strlen(ROW)) {
        memcpy(at, ROW, strlen(ROW));
        rows->types[2 * i] = WB_MYSQL_TYPE_TEXT;
        rows->values[2 * i] = messages[i]->id;
        rows->lengths[2 * i] = messages[i]->id_size;
        rows->types[2 * i + 1] = WB_MYSQL_TYPE_NUMBER;
        rows->values[2 * i + 1] = rows->amounts[i];
        rows->lengths[2 * i + 1] = (size_t)snprintf(rows->amounts[i], sizeof rows->amounts[i],
                                                    "%zu", messages[i]->body_size);
    }
    at[-1] = '\0'; /* the last comma */
}

static int insert_orders(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    struct rows rows = { 0 };
    int result = WB_RETRY;
    if (rows_begin(&rows, count)) {
        rows_fill(&rows, messages, count);
        result = wb_mysql_defer(ctx, rows.text,
                                &(wb_mysql_params){ .count = (int)(2 * count),
                                                    .types = rows.types,
                                                    .lengths = rows.lengths,
                                                    .values = rows.values });
    }
    rows_free(&rows);
    return result;
}

static int place_orders(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int result = insert_orders(ctx, messages, count);
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                              .destination = "bench.sink",
                                              .body = messages[i]->body,
                                              .body_size = messages[i]->body_size,
                                              .cause = messages[i] });
    return result;
}

WB_HANDLERS(WB_BATCH_HANDLER("Bench.PlaceOrder", place_orders))

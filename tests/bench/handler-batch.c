/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-plain.c as a batch handler: one statement writes the rows of all messages.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <waybill/pgsql.h>

#define OID_INT4 23u
#define OID_TEXT 25u

/* PostgreSQL's binary form of an array of one dimension. */
struct array {
    char *data;
    size_t size;
};

static void put_u32(struct array *array, uint32_t value)
{
    uint32_t wire = htonl(value);
    memcpy(array->data + array->size, &wire, sizeof wire);
    array->size += sizeof wire;
}

static void put_element(struct array *array, const void *data, size_t size)
{
    put_u32(array, (uint32_t)size);
    memcpy(array->data + array->size, data, size);
    array->size += size;
}

static int array_begin(struct array *array, uint32_t type, size_t count, size_t element_max)
{
    *array = (struct array){ .data = malloc(20 + count * (4 + element_max)) };
    if (!array->data)
        return 0;
    put_u32(array, 1); /* dimensions */
    put_u32(array, 0); /* no nulls */
    put_u32(array, type);
    put_u32(array, (uint32_t)count);
    put_u32(array, 1); /* lower bound */
    return 1;
}

static int insert_orders(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    struct array ids = { 0 }, amounts = { 0 };
    int result = WB_RETRY;
    if (!array_begin(&ids, OID_TEXT, count, 255)
        || !array_begin(&amounts, OID_INT4, count, sizeof(uint32_t)))
        goto out;
    for (size_t i = 0; i < count; i++) {
        uint32_t amount = htonl((uint32_t)messages[i]->body_size);
        put_element(&ids, messages[i]->id, messages[i]->id_size);
        put_element(&amounts, &amount, sizeof amount);
    }
    result = wb_pgsql_defer(
        ctx,
        "insert into bench_order (order_id, amount) select * from unnest($1::text[], $2::int4[])",
        &(wb_pgsql_params){ .count = 2,
                            .formats = (const int[]){ 1, 1 },
                            .lengths = (const int[]){ (int)ids.size, (int)amounts.size },
                            .values = (const char *const[]){ ids.data, amounts.data } });
out:
    free(ids.data);
    free(amounts.data);
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

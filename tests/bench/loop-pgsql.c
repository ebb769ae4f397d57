/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL for the hand-written loops: prepared statements, binary parameters, pipeline
 * mode. The mark is a transaction of its own that is not flushed.
 */
#include "config.h"

#include "tests/bench/loop-store.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OID_BYTEA 17u
#define OID_INT8 20u
#define OID_INT4 23u
#define OID_TEXT 25u

struct bench_store {
    PGconn *db;
    enum bench_sql sql;
    struct bench_bytes keys;   /* bytea[] of the claim */
    struct bench_bytes orders; /* text[] and int4[] of --sql batch */
    struct bench_bytes amounts;
    uint32_t order_count;
};

static const char *const schema[] = {
    "set client_min_messages = warning",
    "drop table if exists loop_dedup, loop_pending, bench_order",
    "create table loop_dedup (key bytea primary key, batch int8 not null)",
    /* so that records can be dropped by age; they are inserted in its order */
    "create index loop_dedup_age on loop_dedup using brin (batch)",
    "create table loop_pending (batch int8 primary key, operations bytea compression lz4 not null)",
    ("create table bench_order (order_id text primary key, amount int4 not null,"
     " at timestamptz not null default clock_timestamp())"),
};

static const struct {
    const char *name;
    const char *text;
} statements[] = {
    /* A transaction of its own: a lost mark means a duplicate with the same id. */
    { "mark", "with loose as (select set_config('synchronous_commit', 'off', true))"
              " delete from loop_pending using loose where batch = $1" },
    { "begin", "begin" },
    { "claim", "insert into loop_dedup (key, batch) select key, $2::int8"
               " from unnest($1::bytea[]) as key on conflict do nothing returning key" },
    { "order", "insert into bench_order (order_id, amount) values ($1::text, $2::int4)" },
    { "orders", "insert into bench_order (order_id, amount)"
                " select * from unnest($1::text[], $2::int4[])" },
    { "store", "insert into loop_pending (batch, operations) values ($1::int8, $2::bytea)" },
    { "commit", "commit" },
};

static void check(const struct bench_store *store, PGresult *result, ExecStatusType expected)
{
    if (PQresultStatus(result) != expected)
        bench_die("database: %s", PQerrorMessage(store->db));
    PQclear(result);
}

static void check_sent(const struct bench_store *store, int sent)
{
    if (!sent)
        bench_die("database: %s", PQerrorMessage(store->db));
}

static struct bench_store *connect_database(enum bench_sql sql)
{
    struct bench_store *store = bench_zeroed(sizeof *store);
    store->sql = sql;
    store->db = PQconnectdb("");
    if (PQstatus(store->db) != CONNECTION_OK)
        bench_die("database: %s", PQerrorMessage(store->db));
    return store;
}

void bench_store_install(void)
{
    struct bench_store *store = connect_database(BENCH_SQL_PLAIN);
    for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++)
        check(store, PQexec(store->db, schema[i]), PGRES_COMMAND_OK);
    bench_store_close(store);
}

struct bench_store *bench_store_open(enum bench_sql sql)
{
    struct bench_store *store = connect_database(sql);
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        check(store, PQprepare(store->db, statements[i].name, statements[i].text, 0, NULL),
              PGRES_COMMAND_OK);
    return store;
}

void bench_store_close(struct bench_store *store)
{
    PQfinish(store->db);
    free(store->keys.data);
    free(store->orders.data);
    free(store->amounts.data);
    free(store);
}

/* ---- parameters ----------------------------------------------------------- */

static void put_u32(struct bench_bytes *bytes, uint32_t value)
{
    uint32_t wire = htonl(value);
    bench_bytes_put(bytes, &wire, sizeof wire);
}

static void put_u64(unsigned char *wire, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        wire[i] = (unsigned char)(value >> (56 - 8 * i));
}

static void put_element(struct bench_bytes *array, const void *data, size_t size)
{
    put_u32(array, (uint32_t)size);
    bench_bytes_put(array, data, size);
}

/* The count is filled in by end_array(). */
static void begin_array(struct bench_bytes *array, uint32_t type)
{
    array->size = 0;
    put_u32(array, 1); /* dimensions */
    put_u32(array, 0); /* no nulls */
    put_u32(array, type);
    put_u32(array, 0);
    put_u32(array, 1); /* lower bound */
}

static void end_array(struct bench_bytes *array, uint32_t count)
{
    uint32_t wire = htonl(count);
    memcpy(array->data + 12, &wire, sizeof wire);
}

static void send_binary(struct bench_store *store, const char *name, int count,
                        const void *const *values, const int *sizes)
{
    static const int binary[] = { 1, 1 };
    check_sent(store, PQsendQueryPrepared(store->db, name, count, (const char *const *)values,
                                          sizes, binary, 1));
}

static void send_batch_number(struct bench_store *store, const char *name, uint64_t batch)
{
    unsigned char wire[8];
    put_u64(wire, batch);
    send_binary(store, name, 1, (const void *[]){ wire }, (int[]){ sizeof wire });
}

/* ---- results -------------------------------------------------------------- */

static PGresult *take(struct bench_store *store, ExecStatusType expected)
{
    PGresult *result = PQgetResult(store->db);
    if (PQresultStatus(result) != expected)
        bench_die("database: %s", PQerrorMessage(store->db));
    PGresult *end = expected == PGRES_PIPELINE_SYNC ? NULL : PQgetResult(store->db);
    if (end)
        bench_die("database: a second result");
    return result;
}

static void expect(struct bench_store *store, ExecStatusType expected)
{
    PQclear(take(store, expected));
}

/* RETURNING answers in the order of the array: a merge finds what is missing. */
static void take_claims(struct bench_store *store, const struct bench_text *ids, size_t count,
                        unsigned char *fresh)
{
    PGresult *claimed = take(store, PGRES_TUPLES_OK);
    int rows = PQntuples(claimed);
    int row = 0;
    for (size_t i = 0; i < count; i++) {
        fresh[i] = row < rows && (size_t)PQgetlength(claimed, row, 0) == ids[i].size
                   && memcmp(PQgetvalue(claimed, row, 0), ids[i].data, ids[i].size) == 0;
        row += fresh[i];
    }
    if (row != rows)
        bench_die("database: claims in another order");
    PQclear(claimed);
}

/* ---- the transaction ------------------------------------------------------ */

static void send_claim(struct bench_store *store, uint64_t batch, const struct bench_text *ids,
                       size_t count)
{
    unsigned char wire[8];
    put_u64(wire, batch);
    begin_array(&store->keys, OID_BYTEA);
    for (size_t i = 0; i < count; i++)
        put_element(&store->keys, ids[i].data, ids[i].size);
    end_array(&store->keys, (uint32_t)count);
    send_binary(store, "claim", 2, (const void *[]){ store->keys.data, wire },
                (int[]){ (int)store->keys.size, sizeof wire });
}

static void start_orders(struct bench_store *store)
{
    store->order_count = 0;
    if (store->sql == BENCH_SQL_PLAIN)
        check_sent(store, PQexitPipelineMode(store->db));
    if (store->sql == BENCH_SQL_BATCH) {
        begin_array(&store->orders, OID_TEXT);
        begin_array(&store->amounts, OID_INT4);
    }
}

int bench_store_begin(struct bench_store *store, uint64_t done_batch, uint64_t batch,
                      const struct bench_text *ids, size_t count, unsigned char *fresh)
{
    check_sent(store, PQenterPipelineMode(store->db));
    if (done_batch) {
        send_batch_number(store, "mark", done_batch);
        check_sent(store, PQpipelineSync(store->db));
    }
    send_binary(store, "begin", 0, NULL, NULL);
    send_claim(store, batch, ids, count);
    check_sent(store, PQpipelineSync(store->db));
    if (done_batch) {
        expect(store, PGRES_COMMAND_OK);
        expect(store, PGRES_PIPELINE_SYNC);
    }
    expect(store, PGRES_COMMAND_OK);
    take_claims(store, ids, count, fresh);
    expect(store, PGRES_PIPELINE_SYNC);
    start_orders(store);
    return 1;
}

void bench_store_order(struct bench_store *store, const struct bench_text *id, size_t amount)
{
    uint32_t wire = htonl((uint32_t)amount);
    const void *values[] = { id->data, &wire };
    int sizes[] = { (int)id->size, sizeof wire };
    static const int binary[] = { 1, 1 };
    store->order_count++;
    switch (store->sql) {
    case BENCH_SQL_PLAIN:
        check(store,
              PQexecPrepared(store->db, "order", 2, (const char *const *)values, sizes, binary, 1),
              PGRES_COMMAND_OK);
        break;
    case BENCH_SQL_DEFERRED:
        send_binary(store, "order", 2, values, sizes);
        break;
    case BENCH_SQL_BATCH:
        put_element(&store->orders, id->data, id->size);
        put_element(&store->amounts, &wire, sizeof wire);
        break;
    }
}

/* @return the number of results to read. */
static uint32_t finish_orders(struct bench_store *store)
{
    if (store->sql == BENCH_SQL_PLAIN) {
        check_sent(store, PQenterPipelineMode(store->db));
        return 0;
    }
    if (store->sql == BENCH_SQL_DEFERRED || store->order_count == 0)
        return store->order_count;
    end_array(&store->orders, store->order_count);
    end_array(&store->amounts, store->order_count);
    send_binary(store, "orders", 2, (const void *[]){ store->orders.data, store->amounts.data },
                (int[]){ (int)store->orders.size, (int)store->amounts.size });
    return 1;
}

void bench_store_commit(struct bench_store *store, uint64_t batch, const void *operations,
                        size_t size)
{
    unsigned char wire[8];
    put_u64(wire, batch);
    uint32_t results = finish_orders(store);
    if (size > 0) {
        send_binary(store, "store", 2, (const void *[]){ wire, operations },
                    (int[]){ sizeof wire, (int)size });
        results++;
    }
    send_binary(store, "commit", 0, NULL, NULL);
    check_sent(store, PQpipelineSync(store->db));
    for (results++; results > 0; results--)
        expect(store, PGRES_COMMAND_OK);
    expect(store, PGRES_PIPELINE_SYNC);
    check_sent(store, PQexitPipelineMode(store->db));
}

void bench_store_mark(struct bench_store *store, uint64_t batch)
{
    send_batch_number(store, "mark", batch);
    expect(store, PGRES_COMMAND_OK);
}

void bench_store_resume(struct bench_store *store,
                        void (*send)(void *argument, const void *operations, size_t size),
                        void *argument)
{
    PGresult *found = PQexecParams(store->db, "select batch, operations from loop_pending", 0,
                                   NULL, NULL, NULL, NULL, 1);
    if (PQresultStatus(found) != PGRES_TUPLES_OK)
        bench_die("database: %s", PQerrorMessage(store->db));
    for (int i = 0; i < PQntuples(found); i++) {
        send(argument, PQgetvalue(found, i, 1), (size_t)PQgetlength(found, i, 1));
        const void *batch = PQgetvalue(found, i, 0);
        send_binary(store, "mark", 1, &batch, (int[]){ 8 });
        expect(store, PGRES_COMMAND_OK);
    }
    PQclear(found);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * PostgreSQL for drain.c: one statement takes and deletes, by the rows' places, so that no plan
 * depends on statistics.
 */
#include "config.h"

#include "tests/bench/drain.h"

#include <libpq-fe.h>
#include <stdlib.h>

struct drain_store {
    PGconn *db;
    PGresult *taken;
};

static const char take[] =
    "delete from drain_delayed where ctid = any (array(select ctid from drain_delayed"
    " where due <= clock_timestamp() order by due limit $1::int8 for update skip locked)) returning operation";

static PGresult *check(const struct drain_store *store, PGresult *result, ExecStatusType expected)
{
    if (PQresultStatus(result) != expected)
        bench_die("database: %s", PQerrorMessage(store->db));
    return result;
}

static void execute(const struct drain_store *store, const char *statement)
{
    PQclear(check(store, PQexec(store->db, statement), PGRES_COMMAND_OK));
}

struct drain_store *drain_open(void)
{
    struct drain_store *store = bench_zeroed(sizeof *store);
    store->db = PQconnectdb("");
    if (PQstatus(store->db) != CONNECTION_OK)
        bench_die("database: %s", PQerrorMessage(store->db));
    return store;
}

void drain_close(struct drain_store *store)
{
    PQclear(store->taken);
    PQfinish(store->db);
    free(store);
}

void drain_install(void)
{
    struct drain_store *store = drain_open();
    execute(store, "set client_min_messages = warning");
    execute(store, "drop table if exists drain_delayed");
    execute(store, "create table drain_delayed (due timestamptz not null default now(), id bytea not null,"
                   " destination bytea not null default 'bench.sink', retries int4 not null default 0,"
                   " operation bytea compression lz4 not null, primary key (id, destination, retries))");
    execute(store, "create index on drain_delayed (due)");
    drain_close(store);
}

void drain_put(struct drain_store *store, const struct bench_text *ids, const struct bench_text *operations,
               size_t count)
{
    static const int binary[] = { 1, 1 };
    execute(store, "begin");
    for (size_t i = 0; i < count; i++) {
        const char *values[] = { ids[i].data, operations[i].data };
        const int sizes[] = { (int)ids[i].size, (int)operations[i].size };
        PQclear(check(store, PQexecParams(store->db,
                                          "insert into drain_delayed (id, operation) values ($1::bytea, $2::bytea)",
                                          2, NULL, values, sizes, binary, 1),
                      PGRES_COMMAND_OK));
    }
    execute(store, "commit");
}

size_t drain_take(struct drain_store *store, struct bench_text *operations, size_t max)
{
    const char *values[] = { max == 1000 ? "1000" : "1" };
    execute(store, "begin");
    store->taken = check(store, PQexecParams(store->db, take, 1, NULL, values, NULL, NULL, 1), PGRES_TUPLES_OK);
    size_t count = (size_t)PQntuples(store->taken);
    for (size_t i = 0; i < count; i++)
        operations[i] = (struct bench_text){ PQgetvalue(store->taken, (int)i, 0),
                                             (size_t)PQgetlength(store->taken, (int)i, 0) };
    if (!count)
        drain_done(store);
    return count;
}

void drain_done(struct drain_store *store)
{
    PQclear(store->taken);
    store->taken = NULL;
    execute(store, "commit");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/pgsql_fixture.h"

#include <stdlib.h>

#include "core/base/clock.h"

/* Of a plugin that is compiled for the tests. */
#if !defined PLUGIN_NAME
#define PLUGIN_NAME "pgsql"
#define PLUGIN_DIRECTORY "plugins/persistence/pgsql"
#define PLUGIN_GRANTS
#endif

const sql_words words = {
    .name = PLUGIN_NAME,
    .directory = PLUGIN_DIRECTORY,
    .library = "libpq.so.5",
    .interface = WB_PGSQL_INTERFACE,
    .container = "schema",
    .quote = '"',
    .make_container = "create schema %s",
    .drop_container = "drop schema if exists %s cascade",
    .no_user = "SQLSTATE 28000",
    .no_database = "SQLSTATE 3D000",
    .key = "key",
    .nothing = "create table if not exists anything (t text)",
    .hundreds = "n / 100",
    .time_zone = "set time zone 'Asia/Kathmandu'",
    .sleep = "select pg_sleep(60)",
    .suicide = "select pg_terminate_backend(pg_backend_pid())",
    .connect_timeout = "connect_timeout",
    .silence = "reply_timeout",
    .deferred = 100,
    .session_trips = 1,
    .tells_its_end = 1,
    .batch_max = (uint64_t)INT64_MAX,
    .operations = (size_t)20 * 1024 * 1024,
    .lock_timeout = 8663763, /* 55P03 */
};

static PGconn *observer;

void connect_observer(void)
{
    observer = PQconnectdb("");
    if (PQstatus(observer) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(observer));
    PQclear(PQexec(observer, "set client_min_messages = warning"));
}

void server_defaults(pgsql_config *config)
{
    *config = (pgsql_config){
        .schema = "public",
        .prepare = 1,
        .connect_timeout = 10 * WB_SECOND,
        .tcp_user_timeout = 30 * WB_SECOND,
        .reply_timeout = 300 * WB_SECOND,
        .lock_timeout = 30 * WB_SECOND,
    };
}

static PGresult *ask(const char *statement)
{
    PGresult *result = PQexec(observer, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", statement, PQresultErrorMessage(result));
    return result;
}

void observe(const char *statement)
{
    PQclear(ask(statement));
}

long long observe_number(const char *query)
{
    PGresult *result = ask(query);
    assert_int_equal(PQntuples(result), 1);
    long long number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

void await_waiting(long long wanted)
{
    await_number("select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                 "and application_name like 'waybill/%' and datname = current_database()",
                 wanted);
}

/* ---- containers and privileges ------------------------------------------------------- */

const char *spare_container(void)
{
    return "empty";
}

void use_container(pgsql_config *config, const char *name)
{
    config->schema = name;
}

const char *container_of(const pgsql_config *config)
{
    return config->schema;
}

void alter_role(const char *change)
{
    char statement[256];
    (void)snprintf(statement, sizeof statement,
                   "do $$ begin execute format($f$alter role current_user in database %%I %s$f$, "
                   "current_database()); end $$",
                   change);
    observe(statement);
}

void make_clerk(pgsql_config *config)
{
    observe("do $$ begin create role waybill_clerk login; "
            "exception when duplicate_object then end $$");
    config->user = "waybill_clerk";
}

const char *const clerk_grants[] = {
    "grant usage on schema %s to waybill_clerk",
    "grant select on %s.waybill_endpoints to waybill_clerk",
    "grant select, insert, delete on %s.orders_dedup to waybill_clerk",
    "grant select, insert, delete on %s.orders_pending to waybill_clerk",
    "grant update on %s.orders_pending to waybill_clerk",
    "grant select, insert, delete on %s.orders_delayed to waybill_clerk",
    "grant update on %s.orders_delayed to waybill_clerk",
    PLUGIN_GRANTS
    NULL,
};

/* ---- sessions ------------------------------------------------------------------------ */

#define SESSIONS "from pg_stat_activity where application_name like 'waybill/%' " \
                 "and datname = current_database()"

void end_sessions(void)
{
    observe("select pg_terminate_backend(pid) " SESSIONS);
    await_number("select count(*) " SESSIONS, 0);
}

void await_sleeper(void)
{
    await_number("select count(*) " SESSIONS " and wait_event = 'PgSleep'", 1);
}

proxy *put_proxy(pgsql_config *config)
{
    proxy *p = proxy_start(getenv("PGHOST"), atoi(getenv("PGPORT")));
    config->port = proxy_port(p);
    config->sslmode = 1; /* disable: the proxy sees whole messages */
    return p;
}

int query_plain(wb_storage_session *session, size_t item, const char *statement)
{
    PGresult *result = PQexec(api->connection(session, item), statement);
    const ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK;
}

const char *batch_at(int seconds)
{
    static char texts[3][128];
    static int next;
    char *text = texts[next++ % 3];
    (void)snprintf(text, sizeof texts[0],
                   "(((extract(epoch from clock_timestamp()) - 1577836800 + %d) * 1000)::bigint "
                   "<< 22)",
                   seconds);
    return text;
}

void fill_records(int count, const char *batch)
{
    char statement[256];
    (void)snprintf(statement, sizeof statement,
                   "insert into orders_dedup select int8send(n), %s from generate_series(1, %d) n",
                   batch, count);
    observe(statement);
    observe("analyze orders_dedup"); /* or plans are those of an empty table for a while */
}

void hold_record(void)
{
    observe("create or replace function slow() returns trigger language plpgsql as $$ begin "
            "perform pg_advisory_xact_lock(1); return old; end $$");
    observe("create trigger slow before delete on orders_dedup "
            "for each row execute function slow()");
    observe("select pg_advisory_lock(1)");
}

void await_deleter(void)
{
    await_number("select count(*) " SESSIONS " and wait_event = 'advisory'", 1);
}

void release_record(void)
{
    observe("select pg_advisory_unlock(1)");
    await_waiting(0);
    observe("drop trigger slow on orders_dedup");
}

static PGconn *onlooker;

void hold_snapshot(void)
{
    onlooker = PQconnectdb("");
    PQclear(PQexec(onlooker, "begin isolation level repeatable read"));
    PGresult *rows = PQexec(onlooker, "select count(*) from orders_dedup");
    assert_int_equal(PQntuples(rows), 1);
    PQclear(rows);
}

void release_snapshot(void)
{
    PQfinish(onlooker); /* NULL: it is released */
    onlooker = NULL;
}

void fill_pending(int count)
{
    char statement[128];
    (void)snprintf(statement, sizeof statement,
                   "insert into orders_pending select n, 'x' from generate_series(1, %d) n", count);
    observe(statement);
}

void make_large_rows(void)
{
    observe("alter table orders_pending alter operations set storage external");
    observe("insert into orders_pending select n, "
            "convert_to(repeat('x', 32 * 1024 * 1024), 'UTF8') from generate_series(1, 8) n");
}

void drop_large_rows(void)
{
    observe("delete from orders_pending");
    observe("alter table orders_pending alter operations set storage extended");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/mysql_fixture.h"

#include <stdlib.h>

#include "core/base/clock.h"

const sql_words words = {
    .name = "mysql",
    .directory = "plugins/persistence/mysql",
    .library = "libmariadb.so.3",
    .interface = WB_MYSQL_INTERFACE,
    .container = "database",
    .quote = '`',
    .make_container = "create database %s character set latin1",
    .drop_container = "drop database if exists %s",
    .no_user = "error 1045",
    .no_database = "create it",
    .key = "id",
    .nothing = "do 1",
    .hundreds = "n div 100",
    .time_zone = "set time_zone = '+05:45'",
    .sleep = "do sleep(60)",
    .suicide = "kill connection_id()",
    .connect_timeout = "could not connect",
    .silence = "Lost connection",
    .deferred = 30, /* each answer comes by itself */
    .session_trips = 2,
    .batch_max = UINT64_MAX - 1,
    /* twice as long as hexadecimal digits, which the server's 16 MiB must hold */
    .operations = (size_t)7 * 1024 * 1024,
    .lock_timeout = 1205,
    .may_deadlock = 1,
    .waits_for_deletion = 1,
    .marks_wait = 1,
};

static MYSQL *observer;

static MYSQL *connect_one(void)
{
    const char *port = getenv("MYSQL_PORT");
    MYSQL *one = mysql_init(NULL);
    if (!port || !mysql_real_connect(one, getenv("MYSQL_HOST"), getenv("MYSQL_USER"),
                                     getenv("MYSQL_PASSWORD"), getenv("MYSQL_DATABASE"),
                                     (unsigned)atoi(port), NULL, 0))
        fail_msg("%s", port ? mysql_error(one) : "no server");
    return one;
}

void connect_observer(void)
{
    if (observer)
        mysql_close(observer);
    observer = connect_one();
}

void server_defaults(mys_config *config)
{
    *config = (mys_config){
        .host = getenv("MYSQL_HOST"),
        .port = atoi(getenv("MYSQL_PORT")),
        .database = getenv("MYSQL_DATABASE"),
        .user = getenv("MYSQL_USER"),
        .password = getenv("MYSQL_PASSWORD"),
        .connect_timeout = 10 * WB_SECOND,
        .reply_timeout = 300 * WB_SECOND,
        .lock_timeout = 30 * WB_SECOND,
    };
}

void observe(const char *statement)
{
    if (mysql_query(observer, statement) != 0)
        fail_msg("%s: %s", statement, mysql_error(observer));
    mysql_free_result(mysql_store_result(observer));
}

long long observe_number(const char *query)
{
    if (mysql_query(observer, query) != 0)
        fail_msg("%s: %s", query, mysql_error(observer));
    MYSQL_RES *rows = mysql_store_result(observer);
    assert_non_null(rows);
    assert_int_equal(mysql_num_rows(rows), 1);
    MYSQL_ROW row = mysql_fetch_row(rows);
    long long number = row[0] ? strtoll(row[0], NULL, 10) : -1;
    mysql_free_result(rows);
    return number;
}

/* What InnoDB tells of transactions is renewed only if nobody has asked for 0.1 s. */
void await_waiting(long long wanted)
{
    long long got = -1;
    for (int64_t waited = 0; waited < 20 * WB_SECOND; waited += 120 * WB_MILLISECOND) {
        got = observe_number("select count(*) from information_schema.innodb_trx "
                             "join information_schema.processlist on id = trx_mysql_thread_id "
                             "where trx_state = 'LOCK WAIT' and db = database()");
        if (got == wanted)
            return;
        wb_clock_pause(120 * WB_MILLISECOND, NULL);
    }
    fail_msg("%lld wait for a lock, wanted %lld", got, wanted);
}

/* ---- containers and privileges ------------------------------------------------------- */

#define CLERK "waybill_clerk"

const char *spare_container(void)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "%s_b", getenv("MYSQL_DATABASE"));
    return name;
}

void use_container(mys_config *config, const char *name)
{
    config->database = name;
}

const char *container_of(const mys_config *config)
{
    return config->database;
}

void make_clerk(mys_config *config)
{
    observe("create or replace user " CLERK " identified by 'secret'");
    config->user = CLERK;
    config->password = "secret";
}

const char *const clerk_grants[] = {
    "grant select on %s.waybill_endpoints to " CLERK,
    "grant select, insert, update, delete on %s.orders_dedup to " CLERK,
    "grant select, insert, delete on %s.orders_pending to " CLERK,
    "grant update on %s.orders_pending to " CLERK,
    "grant select, insert, delete on %s.orders_delayed to " CLERK,
    "grant update on %s.orders_delayed to " CLERK,
    NULL,
};

/* ---- sessions ------------------------------------------------------------------------ */

#define SESSIONS "from information_schema.processlist where db = database() and id <> connection_id()"

#define GONE 1094 /* it ended by itself meanwhile */

void end_sessions(void)
{
    char statement[64];
    long long id;
    while ((id = observe_number("select coalesce(max(id), 0) " SESSIONS))) {
        (void)snprintf(statement, sizeof statement, "kill %lld", id);
        if (mysql_query(observer, statement) != 0 && mysql_errno(observer) != GONE)
            fail_msg("%s: %s", statement, mysql_error(observer));
        await_number("select count(*) " SESSIONS " and command <> 'Killed'", 0);
    }
}

void await_sleeper(void)
{
    await_number("select count(*) " SESSIONS " and state = 'User sleep'", 1);
}

proxy *put_proxy(mys_config *config)
{
    proxy *p = proxy_start(getenv("MYSQL_HOST"), atoi(getenv("MYSQL_PORT")));
    config->port = proxy_port(p);
    return p;
}

int query_plain(wb_storage_session *session, size_t item, const char *statement)
{
    MYSQL *db = api->connection(session, item);
    const int result = mysql_query(db, statement);
    mysql_free_result(mysql_store_result(db));
    return result;
}

const char *batch_at(int seconds)
{
    static char texts[3][128];
    static int next;
    char *text = texts[next++ % 3];
    (void)snprintf(text, sizeof texts[0],
                   "(((timestampdiff(second, '2020-01-01', utc_timestamp()) + %d) * 1000) << 22)",
                   seconds);
    return text;
}

void fill_records(int count, const char *batch)
{
    char statement[320];
    (void)snprintf(statement, sizeof statement,
                   "insert into orders_dedup select lpad(n * 7919 %% 1000003, 8, '0'), %s "
                   "from (select seq as n from seq_1_to_%d) numbers",
                   batch, count);
    observe(statement);
}

void hold_record(void)
{
    observe("begin");
    observe("select * from orders_dedup where id = 'a' for update");
}

void await_deleter(void)
{
    await_waiting(1);
}

void release_record(void)
{
    observe("commit");
}

static MYSQL *onlooker;

void hold_snapshot(void)
{
    onlooker = connect_one();
    assert_int_equal(mysql_query(onlooker, "start transaction with consistent snapshot"), 0);
}

void release_snapshot(void)
{
    mysql_close(onlooker); /* NULL: it is released */
    onlooker = NULL;
}

void fill_pending(int count)
{
    char statement[128];
    (void)snprintf(statement, sizeof statement,
                   "insert into orders_pending select seq, 'x' from seq_1_to_%d", count);
    observe(statement);
}

void make_large_rows(void)
{
    observe("set global max_allowed_packet = 67108864"); /* of sessions to come */
    connect_observer();
    observe("insert into orders_pending select seq, repeat('x', 32 * 1024 * 1024) from seq_1_to_8");
}

void drop_large_rows(void)
{
    observe("delete from orders_pending");
    observe("set global max_allowed_packet = default");
    connect_observer();
}

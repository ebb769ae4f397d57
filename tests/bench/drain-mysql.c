/* SPDX-License-Identifier: Apache-2.0
 *
 * MariaDB for drain.c: rows are locked and read, then deleted by their numbers in one statement,
 * which goes with the commit.
 */
#include "config.h"

#include "tests/bench/drain.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drain_store {
    MYSQL *db;
    MYSQL_RES *taken;
    struct bench_bytes text; /* of the next statement */
};

static void fail(const struct drain_store *store)
{
    bench_die("database: %s", mysql_error(store->db));
}

static void execute(struct drain_store *store, const char *statement)
{
    if (mysql_query(store->db, statement))
        fail(store);
}

struct drain_store *drain_open(void)
{
    struct drain_store *store = bench_zeroed(sizeof *store);
    store->db = mysql_init(NULL);
    if (!store->db)
        bench_die("out of memory");
    mysql_options(store->db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!mysql_real_connect(store->db, bench_setting("MYSQL_HOST", "127.0.0.1"),
                            bench_setting("MYSQL_USER", "root"), getenv("MYSQL_PASSWORD"),
                            bench_setting("MYSQL_DATABASE", "test"),
                            (unsigned)bench_number("MYSQL_PORT", bench_setting("MYSQL_PORT", "3306"), 1), NULL,
                            CLIENT_MULTI_STATEMENTS))
        fail(store);
    execute(store, "set session transaction isolation level read committed");
    return store;
}

void drain_close(struct drain_store *store)
{
    if (store->taken)
        mysql_free_result(store->taken);
    mysql_close(store->db);
    free(store->text.data);
    free(store);
}

void drain_install(void)
{
    struct drain_store *store = drain_open();
    execute(store, "drop table if exists drain_delayed");
    execute(store, "create table drain_delayed (number bigint unsigned not null auto_increment primary key,"
                   " due timestamp(6) not null default current_timestamp(6), id varbinary(255) not null,"
                   " destination varbinary(255) not null default 'bench.sink', retries int not null default 0,"
                   " operation longblob not null, unique key message (id, destination, retries), key due (due))"
                   " engine = InnoDB");
    drain_close(store);
}

static void put(struct drain_store *store, const char *text)
{
    bench_bytes_put(&store->text, text, strlen(text));
}

static void put_bytes(struct drain_store *store, const struct bench_text *bytes)
{
    put(store, "_binary'");
    char *to = (char *)bench_bytes_room(&store->text, 2 * bytes->size + 1);
    store->text.size += mysql_real_escape_string(store->db, to, bytes->data, bytes->size);
    put(store, "'");
}

void drain_put(struct drain_store *store, const struct bench_text *ids, const struct bench_text *operations,
               size_t count)
{
    store->text.size = 0;
    put(store, "insert into drain_delayed (id, operation) values ");
    for (size_t i = 0; i < count; i++) {
        put(store, i ? ",(" : "(");
        put_bytes(store, &ids[i]);
        put(store, ",");
        put_bytes(store, &operations[i]);
        put(store, ")");
    }
    if (mysql_real_query(store->db, (const char *)store->text.data, store->text.size))
        fail(store);
}

/* The numbers go into the statement that deletes them. */
static size_t read_taken(struct drain_store *store, struct bench_text *operations)
{
    size_t count = 0;
    store->text.size = 0;
    put(store, "delete from drain_delayed where number in (");
    for (MYSQL_ROW row; (row = mysql_fetch_row(store->taken)) != NULL; count++) {
        put(store, count ? "," : "");
        put(store, row[0]);
        operations[count] = (struct bench_text){ row[1], mysql_fetch_lengths(store->taken)[1] };
    }
    put(store, ");commit");
    return count;
}

size_t drain_take(struct drain_store *store, struct bench_text *operations, size_t max)
{
    char text[300];
    (void)snprintf(text, sizeof text,
                   "select number, operation from drain_delayed force index (due)"
                   " where due <= current_timestamp(6) order by due limit %zu for update skip locked", max);
    execute(store, "begin");
    execute(store, text);
    store->taken = mysql_store_result(store->db);
    if (!store->taken)
        fail(store);
    size_t count = read_taken(store, operations);
    if (count)
        return count;
    mysql_free_result(store->taken);
    store->taken = NULL;
    execute(store, "commit");
    return 0;
}

void drain_done(struct drain_store *store)
{
    if (mysql_real_query(store->db, (const char *)store->text.data, store->text.size) ||
        mysql_next_result(store->db) != 0)
        fail(store);
    mysql_free_result(store->taken);
    store->taken = NULL;
}

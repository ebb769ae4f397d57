/* SPDX-License-Identifier: Apache-2.0
 *
 * MariaDB for the hand-written loops: several statements in one text, as there is no other
 * way to send them in one round trip; only a plain business row is a prepared statement.
 * The mark rides in the next batch's transaction, because there is no commit that is not
 * flushed for one transaction alone.
 */
#include "config.h"

#include "tests/bench/loop-store.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_store {
    MYSQL *db;
    enum bench_sql sql;
    MYSQL_STMT *order;
    struct bench_bytes text; /* the statements of the next round trip */
    unsigned statements;
};

static const char *const schema[] = {
    "drop table if exists loop_dedup, loop_pending, bench_order",
    "create table loop_dedup (id varbinary(255) primary key, batch bigint not null,"
    " key age (batch)) engine = InnoDB",
    "create table loop_pending (batch bigint primary key, operations longblob not null)"
    " engine = InnoDB",
    "create table bench_order (order_id varchar(255) character set ascii primary key,"
    " amount int not null, at timestamp(6) not null default current_timestamp(6))"
    " engine = InnoDB",
};

static void fail(const struct bench_store *store)
{
    bench_die("database: %s", mysql_error(store->db));
}

static struct bench_store *connect_database(enum bench_sql sql)
{
    struct bench_store *store = bench_zeroed(sizeof *store);
    store->sql = sql;
    store->db = mysql_init(NULL);
    if (!store->db)
        bench_die("out of memory");
    mysql_options(store->db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!mysql_real_connect(store->db, bench_setting("MYSQL_HOST", "127.0.0.1"),
                            bench_setting("MYSQL_USER", "root"), getenv("MYSQL_PASSWORD"),
                            bench_setting("MYSQL_DATABASE", "test"),
                            (unsigned)bench_number("MYSQL_PORT",
                                                   bench_setting("MYSQL_PORT", "3306"), 1),
                            NULL, CLIENT_MULTI_STATEMENTS))
        fail(store);
    return store;
}

static void execute(struct bench_store *store, const char *statement)
{
    if (mysql_query(store->db, statement))
        fail(store);
}

void bench_store_install(void)
{
    struct bench_store *store = connect_database(BENCH_SQL_DEFERRED);
    for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++)
        execute(store, schema[i]);
    bench_store_close(store);
}

struct bench_store *bench_store_open(enum bench_sql sql)
{
    static const char insert[] = "insert into bench_order (order_id, amount) values (?, ?)";
    struct bench_store *store = connect_database(sql);
    execute(store, "set session transaction isolation level read committed");
    if (sql != BENCH_SQL_PLAIN)
        return store;
    store->order = mysql_stmt_init(store->db);
    if (!store->order || mysql_stmt_prepare(store->order, insert, sizeof insert - 1))
        fail(store);
    return store;
}

void bench_store_close(struct bench_store *store)
{
    if (store->order)
        mysql_stmt_close(store->order);
    mysql_close(store->db);
    free(store->text.data);
    free(store);
}

/* ---- statements ----------------------------------------------------------- */

static void put(struct bench_store *store, const char *text)
{
    bench_bytes_put(&store->text, text, strlen(text));
}

static void put_number(struct bench_store *store, uint64_t number)
{
    char text[24];
    bench_bytes_put(&store->text, text,
                    (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)number));
}

/* A literal of bytes. Only quote and backslash end or change one, and in utf8mb4 neither is
 * a part of a longer character. Twice as fast as hexadecimal digits. */
static void put_bytes(struct bench_store *store, const void *data, size_t size)
{
    const char *from = data;
    put(store, "_binary'");
    char *start = (char *)bench_bytes_room(&store->text, 2 * size + 1), *to = start;
    for (const char *end = from + size; from < end; *to++ = *from++)
        if (*from == '\'' || *from == '\\')
            *to++ = '\\';
    *to++ = '\'';
    store->text.size += (size_t)(to - start);
}

static void end_statement(struct bench_store *store)
{
    put(store, ";");
    store->statements++;
}

static void put_statement(struct bench_store *store, const char *text)
{
    put(store, text);
    end_statement(store);
}

static void put_mark(struct bench_store *store, uint64_t batch)
{
    put(store, "delete from loop_pending where batch=");
    put_number(store, batch);
    end_statement(store);
}

/* Send what was put together and read every answer.
 * @return the rows that the last statement affected. */
static uint64_t exchange(struct bench_store *store)
{
    if (mysql_real_query(store->db, (const char *)store->text.data, store->text.size - 1))
        fail(store);
    for (unsigned i = 1; i < store->statements; i++)
        if (mysql_next_result(store->db) != 0)
            fail(store);
    store->text.size = 0;
    store->statements = 0;
    return mysql_affected_rows(store->db);
}

/* ---- the transaction ------------------------------------------------------ */

static void put_ids(struct bench_store *store, const struct bench_text *ids, size_t count,
                    const char *before, const char *after)
{
    for (size_t i = 0; i < count; i++) {
        put(store, i ? "," : "");
        put(store, before);
        put_bytes(store, ids[i].data, ids[i].size);
        put(store, after);
    }
}

/* Only when there are duplicates: which ids the batch got. */
static void find_fresh(struct bench_store *store, uint64_t batch, const struct bench_text *ids,
                       size_t count, unsigned char *fresh)
{
    size_t next = 0;
    put(store, "select id from loop_dedup where batch=");
    put_number(store, batch);
    put(store, " and id in (");
    put_ids(store, ids, count, "", "");
    put(store, ") order by id");
    if (mysql_real_query(store->db, (const char *)store->text.data, store->text.size))
        fail(store);
    store->text.size = 0;
    MYSQL_RES *found = mysql_store_result(store->db);
    if (!found)
        fail(store);
    memset(fresh, 0, count);
    for (MYSQL_ROW row; (row = mysql_fetch_row(found)) != NULL;) {
        size_t size = mysql_fetch_lengths(found)[0];
        while (next < count
               && (ids[next].size != size || memcmp(ids[next].data, row[0], size) != 0))
            next++;
        if (next == count)
            bench_die("database: claims in another order");
        fresh[next++] = 1;
    }
    mysql_free_result(found);
}

int bench_store_begin(struct bench_store *store, uint64_t done_batch, uint64_t batch,
                      const struct bench_text *ids, size_t count, unsigned char *fresh)
{
    char after[32];
    snprintf(after, sizeof after, ",%llu)", (unsigned long long)batch);
    put_statement(store, "begin");
    if (done_batch)
        put_mark(store, done_batch);
    put(store, "insert into loop_dedup (id,batch) values ");
    put_ids(store, ids, count, "(", after);
    put(store, " on duplicate key update batch=batch");
    end_statement(store);
    memset(fresh, 1, count);
    if (exchange(store) != count)
        find_fresh(store, batch, ids, count, fresh);
    return 0;
}

static void insert_order(struct bench_store *store, const struct bench_text *id, size_t amount)
{
    unsigned long size = id->size;
    int number = (int)amount;
    MYSQL_BIND parameters[2] = {
        { .buffer_type = MYSQL_TYPE_STRING, .buffer = (void *)(uintptr_t)id->data,
          .buffer_length = size, .length = &size },
        { .buffer_type = MYSQL_TYPE_LONG, .buffer = &number },
    };
    if (mysql_stmt_bind_param(store->order, parameters) || mysql_stmt_execute(store->order))
        bench_die("database: %s", mysql_stmt_error(store->order));
}

void bench_store_order(struct bench_store *store, const struct bench_text *id, size_t amount)
{
    if (store->sql == BENCH_SQL_PLAIN) {
        insert_order(store, id, amount);
        return;
    }
    if (store->sql == BENCH_SQL_BATCH && store->text.size)
        put(store, ",(");
    else
        put(store, "insert into bench_order (order_id,amount) values (");
    put_bytes(store, id->data, id->size);
    put(store, ",");
    put_number(store, amount);
    put(store, ")");
    if (store->sql == BENCH_SQL_DEFERRED)
        end_statement(store);
}

void bench_store_commit(struct bench_store *store, uint64_t batch, const void *operations,
                        size_t size)
{
    if (store->sql == BENCH_SQL_BATCH && store->text.size)
        end_statement(store);
    if (size > 0) {
        put(store, "insert into loop_pending (batch,operations) values (");
        put_number(store, batch);
        put(store, ",");
        put_bytes(store, operations, size);
        put(store, ")");
        end_statement(store);
    }
    put_statement(store, "commit");
    exchange(store);
}

void bench_store_mark(struct bench_store *store, uint64_t batch)
{
    put_mark(store, batch);
    exchange(store);
}

void bench_store_resume(struct bench_store *store,
                        void (*send)(void *argument, const void *operations, size_t size),
                        void *argument)
{
    execute(store, "select batch, operations from loop_pending");
    MYSQL_RES *found = mysql_store_result(store->db);
    if (!found)
        fail(store);
    for (MYSQL_ROW row; (row = mysql_fetch_row(found)) != NULL;) {
        send(argument, row[1], mysql_fetch_lengths(found)[1]);
        bench_store_mark(store, bench_number("batch", row[0], 0));
    }
    mysql_free_result(found);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceiling of a delayed message store for sqlite + sqlite: a file with what waits, a file with the
 * queue. What is due is deleted as it is read, goes into the queue, which commits, and then the first
 * file does: a message is there twice rather than not at all.
 *
 * The pragmas are those of loop-sqlite.c.
 */
#include "config.h"

#include "tests/bench/common.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOT "1000"
#define BODY_SIZE 1024
#define IDLE_NS 10000000

static void check(sqlite3 *db, int status, int expected)
{
    if (status != expected)
        bench_die("sqlite: %s", sqlite3_errmsg(db));
}

static void execute(sqlite3 *db, const char *sql)
{
    check(db, sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), SQLITE_OK);
    return statement;
}

static sqlite3 *open_file(const char *path, const char *schema)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        bench_die("\"%s\": %s", path, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 10000);
    execute(db, "pragma journal_mode = wal");
    execute(db, "pragma synchronous = full");
    execute(db, "pragma secure_delete = off");
    execute(db, "pragma wal_autocheckpoint = 4000");
    execute(db, schema);
    return db;
}

static sqlite3 *open_queue(const char *path)
{
    return open_file(path, "create table if not exists sink (seq integer primary key, id blob not null,"
                           " headers blob not null, body blob not null)");
}

static sqlite3 *open_store(const char *path)
{
    return open_file(path, "create table if not exists delayed (row integer primary key, destination blob not null,"
                           " id blob not null, retries integer not null, due integer not null, headers blob not null,"
                           " body blob not null, unique (destination, id, retries));"
                           "create index if not exists delayed_due on delayed (due)");
}

/* "name\0value\0" thirteen times. */
static void put_headers(struct bench_bytes *headers, const char *id)
{
    char time_sent[32];
    const char *values[BENCH_HEADER_COUNT];
    bench_header_values(&(struct bench_envelope){ .id = id, .conversation_id = id, .type = BENCH_OUTPUT_TYPE,
                                                  .endpoint = "bench.loop" },
                        time_sent, values);
    headers->size = 0;
    for (int i = 0; i < BENCH_HEADER_COUNT; i++) {
        bench_bytes_put(headers, bench_header_names[i], strlen(bench_header_names[i]) + 1);
        bench_bytes_put(headers, values[i], strlen(values[i]) + 1);
    }
}

static void load(const char *path, uint64_t count)
{
    char id[BENCH_ID_SIZE + 1], body[BODY_SIZE];
    struct bench_bytes headers = { 0 };
    uint64_t salt = bench_wall_ms();
    sqlite3 *store = open_store(path);
    sqlite3_stmt *insert = prepare(store, "insert into delayed (destination, id, retries, due, headers, body)"
                                          " values ('bench.sink', ?, 0, 0, ?, ?)");
    execute(store, "begin");
    for (uint64_t i = 0; i < count; i++) {
        bench_message_id(id, salt, i);
        bench_message_body(body, sizeof body, i);
        put_headers(&headers, id);
        sqlite3_bind_blob64(insert, 1, id, BENCH_ID_SIZE, SQLITE_STATIC);
        sqlite3_bind_blob64(insert, 2, headers.data, headers.size, SQLITE_STATIC);
        sqlite3_bind_blob64(insert, 3, body, sizeof body, SQLITE_STATIC);
        check(store, sqlite3_step(insert), SQLITE_DONE);
        sqlite3_reset(insert);
    }
    execute(store, "commit");
    execute(store, "pragma wal_checkpoint(truncate)");
    sqlite3_finalize(insert);
    sqlite3_close(store);
}

static size_t move_lot(sqlite3 *store, sqlite3 *queue, sqlite3_stmt *take, sqlite3_stmt *put)
{
    size_t count = 0;
    int status;
    execute(store, "begin immediate");
    execute(queue, "begin immediate");
    sqlite3_bind_int64(take, 1, (sqlite3_int64)bench_wall_ms() * 1000);
    for (; (status = sqlite3_step(take)) == SQLITE_ROW; count++) {
        for (int i = 0; i < 3; i++)
            sqlite3_bind_value(put, i + 1, sqlite3_column_value(take, i));
        check(queue, sqlite3_step(put), SQLITE_DONE);
        sqlite3_reset(put);
    }
    check(store, status, SQLITE_DONE);
    sqlite3_reset(take);
    execute(queue, "commit");
    execute(store, "commit");
    return count;
}

static void drain(const char *queue_path, const char *store_path)
{
    sqlite3 *queue = open_queue(queue_path), *store = open_store(store_path);
    sqlite3_stmt *take = prepare(store, "delete from delayed where row in (select row from delayed where due <= ?"
                                        " order by due, row limit " LOT ") returning id, headers, body");
    sqlite3_stmt *put = prepare(queue, "insert into sink (id, headers, body) values (?, ?, ?)");
    while (!bench_stopping)
        if (!move_lot(store, queue, take, put))
            nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS }, NULL);
    sqlite3_finalize(take);
    sqlite3_finalize(put);
    sqlite3_close(queue);
    sqlite3_close(store);
}

int main(int argc, char **argv)
{
    bench_stop_on_signal();
    if (argc == 4 && strcmp(argv[1], "load") == 0)
        load(argv[2], bench_number("messages", argv[3], 1));
    else if (argc == 4 && strcmp(argv[1], "run") == 0)
        drain(argv[2], argv[3]);
    else {
        fputs("usage: drain-sqlite load FILE MESSAGES | run QUEUE-FILE FILE\n", stderr);
        return 64;
    }
    return 0;
}

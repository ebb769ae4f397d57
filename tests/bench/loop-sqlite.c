/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-written ceilings for sqlite + sqlite, with queues of their own: a table a
 * queue, one row a message, headers and body as bytes.
 *
 *  --mode scope   one file, one transaction a batch: select, business rows, outgoing
 *                 rows, delete, commit.
 *  --mode outbox  queue file and data file: claim rows | deduplicate, business rows,
 *                 pending row, commit | outgoing rows, commit | mark | acknowledge (rides
 *                 with the next claim).
 *
 * WAL; synchronous = FULL where a promise hangs on the commit, NORMAL for claims, marks
 * and acknowledgements: losing one of these means doing it again. Failure ends the
 * program; the next start frees what was claimed and sends what is pending.
 *
 * The same program makes the files, loads the queue, and reads the business table of any
 * file, so that the driver needs no other client of SQLite.
 */
#include "config.h"

#include "tests/bench/common.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_MAX 500
#define BODY_SIZE 1024

/* Offsets, because the arena moves while it grows. */
struct part {
    size_t at;
    size_t size;
};

struct message {
    sqlite3_int64 seq;
    struct part id, headers, body;
};

struct loop {
    sqlite3 *queue;
    sqlite3 *data; /* the same connection with --mode scope */
    sqlite3_stmt *select, *claim, *unclaim, *delete, *send;
    sqlite3_stmt *dedup, *order, *store, *mark;
    size_t batch_max;
    size_t count;
    uint64_t batch;
    struct message messages[BATCH_MAX];
    struct bench_bytes arena;  /* what messages point into */
    struct bench_bytes window; /* outgoing operations, as stored */
    size_t handled;
    sqlite3_int64 done[BATCH_MAX]; /* marked, not acknowledged */
    size_t done_count;
};

static const char queue_schema[] =
    "create table if not exists input (seq integer primary key, id blob not null,"
    " headers blob not null, body blob not null);"
    "create table if not exists sink (seq integer primary key, id blob not null,"
    " headers blob not null, body blob not null);"
    "create table if not exists claimed (seq integer primary key)";
static const char data_schema[] =
    "create table if not exists dedup (key blob primary key, batch integer not null)"
    " without rowid;"
    "create table if not exists pending (batch integer primary key, operations blob not null);"
    "create table if not exists bench_order (order_id text primary key, amount integer not null,"
    " at real not null default (julianday('now')))";

/* ---- statements ----------------------------------------------------------- */

static void check(sqlite3 *db, int status, int expected)
{
    if (status != expected)
        bench_die("sqlite: %s", sqlite3_errmsg(db));
}

static void run(sqlite3 *db, const char *sql)
{
    check(db, sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL),
          SQLITE_OK);
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    check(sqlite3_db_handle(statement), sqlite3_step(statement), SQLITE_DONE);
    sqlite3_reset(statement);
}

static void bind_blob(sqlite3_stmt *statement, int at, const void *data, size_t size)
{
    sqlite3_bind_blob64(statement, at, data, size, SQLITE_STATIC);
}

static void bind_part(sqlite3_stmt *statement, int at, const struct bench_bytes *bytes,
                      struct part part)
{
    bind_blob(statement, at, bytes->data + part.at, part.size);
}

static sqlite3 *open_file(const char *path, const char *schema)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        bench_die("\"%s\": %s", path, sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, 10000);
    run(db, "pragma journal_mode = wal");
    run(db, "pragma synchronous = full");
    /* Measured at batches of 100: together 1.4x. Debian's library overwrites what is
     * deleted, and checkpoints each 4 MB of log write the same pages again and again. */
    run(db, "pragma secure_delete = off");
    run(db, "pragma wal_autocheckpoint = 4000");
    if (schema)
        run(db, schema);
    return db;
}

static void open_loop(struct loop *loop, const char *queue_path, const char *data_path)
{
    loop->queue = open_file(queue_path, queue_schema);
    loop->data = data_path ? open_file(data_path, data_schema) : loop->queue;
    if (!data_path)
        run(loop->queue, data_schema);
    loop->select = prepare(loop->queue, "select seq, id, headers, body from input"
                                        " where seq not in (select seq from claimed)"
                                        " order by seq limit ?");
    loop->claim = prepare(loop->queue, "insert into claimed values (?)");
    loop->unclaim = prepare(loop->queue, "delete from claimed where seq = ?");
    loop->delete = prepare(loop->queue, "delete from input where seq = ?");
    loop->send = prepare(loop->queue, "insert into sink (id, headers, body) values (?, ?, ?)");
    loop->dedup = prepare(loop->data, "insert into dedup values (?, ?) on conflict do nothing");
    loop->order = prepare(loop->data, "insert into bench_order (order_id, amount) values (?, ?)");
    loop->store = prepare(loop->data, "insert into pending values (?, ?)");
    loop->mark = prepare(loop->data, "delete from pending where batch = ?");
}

static void close_loop(struct loop *loop)
{
    sqlite3_stmt *all[] = { loop->select, loop->claim, loop->unclaim, loop->delete, loop->send,
                            loop->dedup,  loop->order, loop->store,   loop->mark };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sqlite3_finalize(all[i]);
    if (loop->data != loop->queue)
        sqlite3_close(loop->data);
    sqlite3_close(loop->queue);
    free(loop->arena.data);
    free(loop->window.data);
}

/* ---- messages as bytes ---------------------------------------------------- */

static void put_string(struct bench_bytes *bytes, const void *data, size_t size)
{
    uint32_t wire = (uint32_t)size;
    bench_bytes_put(bytes, &wire, sizeof wire);
    bench_bytes_put(bytes, data, size);
}

static struct part get_string(const unsigned char *data, size_t *at)
{
    uint32_t size;
    memcpy(&size, data + *at, sizeof size);
    struct part part = { *at + sizeof size, size };
    *at = part.at + size;
    return part;
}

static void put_headers(struct bench_bytes *bytes, const struct bench_envelope *envelope)
{
    char time_sent[32];
    const char *values[BENCH_HEADER_COUNT];
    bench_header_values(envelope, time_sent, values);
    for (int i = 0; i < BENCH_HEADER_COUNT; i++) {
        put_string(bytes, bench_header_names[i], strlen(bench_header_names[i]));
        put_string(bytes, values[i], strlen(values[i]));
    }
}

/* Finds the conversation id by name, as whoever did not write the headers must. */
static void copy_conversation(const struct loop *loop, const struct message *message,
                              char *buffer, size_t size)
{
    static const char name[] = "NServiceBus.ConversationId";
    const unsigned char *data = loop->arena.data + message->headers.at;
    buffer[0] = '\0';
    for (size_t at = 0; at < message->headers.size;) {
        struct part key = get_string(data, &at), value = get_string(data, &at);
        if (key.size != sizeof name - 1 || memcmp(data + key.at, name, key.size) != 0)
            continue;
        size_t length = value.size < size - 1 ? value.size : size - 1;
        memcpy(buffer, data + value.at, length);
        buffer[length] = '\0';
        return;
    }
}

/* ---- steps of a batch ----------------------------------------------------- */

static struct part keep_column(struct loop *loop, int column)
{
    struct part part = { loop->arena.size, (size_t)sqlite3_column_bytes(loop->select, column) };
    bench_bytes_put(&loop->arena, sqlite3_column_blob(loop->select, column), part.size);
    return part;
}

static void select_batch(struct loop *loop)
{
    int status;
    loop->count = 0;
    loop->arena.size = 0;
    sqlite3_bind_int64(loop->select, 1, (sqlite3_int64)loop->batch_max);
    while ((status = sqlite3_step(loop->select)) == SQLITE_ROW) {
        struct message *message = &loop->messages[loop->count++];
        message->seq = sqlite3_column_int64(loop->select, 0);
        message->id = keep_column(loop, 1);
        message->headers = keep_column(loop, 2);
        message->body = keep_column(loop, 3);
    }
    check(loop->queue, status, SQLITE_DONE);
    sqlite3_reset(loop->select);
}

static void run_seq(sqlite3_stmt *statement, sqlite3_int64 seq)
{
    sqlite3_bind_int64(statement, 1, seq);
    step(statement);
}

static void insert_order(struct loop *loop, const struct message *message)
{
    sqlite3_bind_text(loop->order, 1, (const char *)loop->arena.data + message->id.at,
                      (int)message->id.size, SQLITE_STATIC);
    sqlite3_bind_int64(loop->order, 2, (sqlite3_int64)message->body.size);
    step(loop->order);
}

/* One outgoing message: id, headers, body, each with its size before it. */
static void encode_outgoing(struct loop *loop, const struct message *message)
{
    static struct bench_bytes headers;
    char id[BENCH_ID_SIZE + 1], related_to[256], conversation_id[256];
    const unsigned char *cause = loop->arena.data + message->id.at;
    snprintf(related_to, sizeof related_to, "%.*s", (int)message->id.size, (const char *)cause);
    bench_caused_id(id, cause, message->id.size);
    copy_conversation(loop, message, conversation_id, sizeof conversation_id);
    struct bench_envelope envelope = { .id = id,
                                       .conversation_id = conversation_id,
                                       .related_to = related_to,
                                       .type = BENCH_OUTPUT_TYPE,
                                       .endpoint = "bench.loop" };
    headers.size = 0;
    put_headers(&headers, &envelope);
    put_string(&loop->window, id, BENCH_ID_SIZE);
    put_string(&loop->window, headers.data, headers.size);
    put_string(&loop->window, loop->arena.data + message->body.at, message->body.size);
}

static void send_window(struct loop *loop)
{
    for (size_t at = 0; at < loop->window.size;) {
        for (int column = 1; column <= 3; column++)
            bind_part(loop->send, column, &loop->window, get_string(loop->window.data, &at));
        step(loop->send);
    }
}

static void handle(struct loop *loop, const struct message *message)
{
    insert_order(loop, message);
    encode_outgoing(loop, message);
    loop->handled++;
}

/* ---- one transaction a batch ---------------------------------------------- */

static int run_scope(struct loop *loop)
{
    run(loop->queue, "begin immediate");
    select_batch(loop);
    loop->window.size = 0;
    for (size_t i = 0; i < loop->count; i++)
        handle(loop, &loop->messages[i]);
    send_window(loop);
    for (size_t i = 0; i < loop->count; i++)
        run_seq(loop->delete, loop->messages[i].seq);
    run(loop->queue, "commit");
    return loop->count > 0;
}

/* ---- two files with the outbox between ------------------------------------ */

static void receive(struct loop *loop)
{
    run(loop->queue, "pragma synchronous = normal");
    run(loop->queue, "begin immediate");
    for (size_t i = 0; i < loop->done_count; i++) {
        run_seq(loop->delete, loop->done[i]);
        run_seq(loop->unclaim, loop->done[i]);
    }
    select_batch(loop);
    for (size_t i = 0; i < loop->count; i++)
        run_seq(loop->claim, loop->messages[i].seq);
    run(loop->queue, "commit");
    run(loop->queue, "pragma synchronous = full");
    loop->done_count = 0;
}

static int claim_id(struct loop *loop, const struct message *message)
{
    bind_part(loop->dedup, 1, &loop->arena, message->id);
    sqlite3_bind_int64(loop->dedup, 2, (sqlite3_int64)loop->batch);
    step(loop->dedup);
    return sqlite3_changes(loop->data) > 0;
}

static void commit_batch(struct loop *loop)
{
    loop->window.size = 0;
    loop->handled = 0;
    run(loop->data, "begin immediate");
    for (size_t i = 0; i < loop->count; i++)
        if (claim_id(loop, &loop->messages[i]))
            handle(loop, &loop->messages[i]);
    if (loop->handled) {
        sqlite3_bind_int64(loop->store, 1, (sqlite3_int64)loop->batch);
        bind_blob(loop->store, 2, loop->window.data, loop->window.size);
        step(loop->store);
    }
    run(loop->data, "commit");
}

static void dispatch(struct loop *loop)
{
    run(loop->queue, "begin immediate");
    send_window(loop);
    run(loop->queue, "commit");
}

static void mark(struct loop *loop, uint64_t batch)
{
    run(loop->data, "pragma synchronous = normal");
    run_seq(loop->mark, (sqlite3_int64)batch);
    run(loop->data, "pragma synchronous = full");
}

static int run_outbox(struct loop *loop)
{
    receive(loop);
    if (loop->count == 0)
        return 0;
    uint64_t batch = bench_wall_ms() << 22;
    loop->batch = batch > loop->batch ? batch : loop->batch + 1;
    commit_batch(loop);
    dispatch(loop);
    mark(loop, loop->batch);
    for (size_t i = 0; i < loop->count; i++)
        loop->done[loop->done_count++] = loop->messages[i].seq;
    return 1;
}

static void resume(struct loop *loop)
{
    sqlite3_stmt *pending = prepare(loop->data, "select batch, operations from pending limit 1");
    run(loop->queue, "delete from claimed");
    while (sqlite3_step(pending) == SQLITE_ROW) {
        uint64_t batch = (uint64_t)sqlite3_column_int64(pending, 0);
        loop->window.size = 0;
        bench_bytes_put(&loop->window, sqlite3_column_blob(pending, 1),
                        (size_t)sqlite3_column_bytes(pending, 1));
        sqlite3_reset(pending);
        dispatch(loop);
        mark(loop, batch);
    }
    sqlite3_finalize(pending);
}

/* ---- files, load, report -------------------------------------------------- */

static void load(sqlite3 *queue, uint64_t count)
{
    struct bench_bytes headers = { 0 };
    char body[BODY_SIZE], id[BENCH_ID_SIZE + 1], conversation_id[BENCH_ID_SIZE + 1];
    uint64_t salt = bench_wall_ms();
    sqlite3_stmt *insert =
        prepare(queue, "insert into input (id, headers, body) values (?, ?, ?)");
    run(queue, "begin immediate");
    for (uint64_t i = 0; i < count; i++) {
        bench_message_id(id, salt, i);
        bench_message_id(conversation_id, ~salt, i);
        bench_message_body(body, sizeof body, i);
        headers.size = 0;
        put_headers(&headers, &(struct bench_envelope){ .id = id,
                                                        .conversation_id = conversation_id,
                                                        .type = BENCH_INPUT_TYPE,
                                                        .endpoint = "bench.loader" });
        bind_blob(insert, 1, id, BENCH_ID_SIZE);
        bind_blob(insert, 2, headers.data, headers.size);
        bind_blob(insert, 3, body, sizeof body);
        step(insert);
    }
    run(queue, "commit");
    sqlite3_finalize(insert);
    free(headers.data);
}

static int64_t count_orders(sqlite3 *data)
{
    sqlite3_stmt *last = prepare(data, "select max(rowid) from bench_order");
    int64_t count = sqlite3_step(last) == SQLITE_ROW ? sqlite3_column_int64(last, 0) : 0;
    sqlite3_finalize(last);
    return count;
}

static int wait_for_orders(const char *path, uint64_t count, uint64_t timeout_s)
{
    sqlite3 *data = open_file(path, NULL);
    int64_t deadline = bench_now() + (int64_t)timeout_s * 1000000000;
    while (count_orders(data) < (int64_t)count && bench_now() < deadline)
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    int64_t seen = count_orders(data);
    sqlite3_close(data);
    if (seen < (int64_t)count)
        bench_die("%lld orders after %llu s", (long long)seen, (unsigned long long)timeout_s);
    return 0;
}

/* Prints "<orders> <orders a second>": the first tenth is warming up. */
static int report(const char *path)
{
    sqlite3 *data = open_file(path, NULL);
    sqlite3_stmt *rate = prepare(
        data, "select count(*), 0.9 * count(*) / (86400 * (max(at) - (select at from bench_order"
              " where rowid = (select max(rowid) / 10 from bench_order)))) from bench_order");
    check(data, sqlite3_step(rate), SQLITE_ROW);
    printf("%lld %.0f\n", (long long)sqlite3_column_int64(rate, 0),
           sqlite3_column_double(rate, 1));
    sqlite3_finalize(rate);
    sqlite3_close(data);
    return 0;
}

/* The business table alone, for a file that an endpoint will use. */
static int make_orders(const char *path)
{
    sqlite3_close(open_file(path, strstr(data_schema, "create table if not exists bench_order")));
    return 0;
}

static int usage(int status)
{
    fputs("usage: loop-sqlite load FILE MESSAGES\n"
          "       loop-sqlite orders|report FILE\n"
          "       loop-sqlite wait FILE ORDERS SECONDS\n"
          "       loop-sqlite run FILE BATCH-MAX [DATA-FILE]\n"
          "run goes on until SIGTERM; with DATA-FILE through the outbox, else in one "
          "transaction a batch\n",
          status ? stderr : stdout);
    return status;
}

static int run_loop(const char *queue_path, const char *batch_max, const char *data_path)
{
    static struct loop loop;
    loop.batch_max = bench_number("batch-max", batch_max, 1);
    if (loop.batch_max > BATCH_MAX)
        bench_die("at most %d messages a batch", BATCH_MAX);
    bench_stop_on_signal();
    open_loop(&loop, queue_path, data_path);
    resume(&loop);
    while (!bench_stopping)
        if (!(data_path ? run_outbox(&loop) : run_scope(&loop)))
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    if (loop.done_count)
        receive(&loop);
    close_loop(&loop);
    return 0;
}

static int load_file(const char *path, const char *count)
{
    sqlite3 *queue = open_file(path, queue_schema);
    load(queue, bench_number("messages", count, 1));
    run(queue, "pragma wal_checkpoint(truncate)");
    sqlite3_close(queue);
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "load") == 0 && argc == 4)
        return load_file(argv[2], argv[3]);
    if (strcmp(verb, "orders") == 0 && argc == 3)
        return make_orders(argv[2]);
    if (strcmp(verb, "report") == 0 && argc == 3)
        return report(argv[2]);
    if (strcmp(verb, "wait") == 0 && argc == 5)
        return wait_for_orders(argv[2], bench_number("orders", argv[3], 0),
                               bench_number("seconds", argv[4], 1));
    if (strcmp(verb, "run") == 0 && (argc == 4 || argc == 5))
        return run_loop(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
    return usage(strcmp(verb, "--help") == 0 ? 0 : 64);
}

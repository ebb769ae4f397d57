/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the sqlite plugins are, against a hand-written loop that does the same work
 * with the same batches on tables of its own. Not a test: prints figures.
 *
 *     sqlite_rate scope|outbox BATCH MESSAGES [ROUNDS]
 *
 * One business row and one outgoing message a message, 1 KB bodies, everything flushed
 * that must be. Rounds are interleaved, medians are printed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/integration/sqlite_support.h"
#include "tests/support/text_header.h"

#define BODY_SIZE 1024
#define BATCH_MAX 1000
#define ROUNDS_MAX 31

typedef struct setting {
    int scope;
    size_t batch;
    int messages;
    char *directory;
    char *queues;
    char *data;
} setting;

static const wb_header headers[] = {
    TEXT_HEADER("NServiceBus.MessageId", "5f1c9b62-7b1c-4a71-9d5c-3b0a1f0d9d11"),
    TEXT_HEADER("NServiceBus.EnclosedMessageTypes", "Sales.OrderPlaced"),
    TEXT_HEADER("NServiceBus.ContentType", "application/json"),
    TEXT_HEADER("NServiceBus.CorrelationId", "5f1c9b62-7b1c-4a71-9d5c-3b0a1f0d9d11"),
    TEXT_HEADER("NServiceBus.TimeSent", "2026-01-01 12:00:00:000000 Z"),
    TEXT_HEADER("NServiceBus.OriginatingEndpoint", "orders"),
};
#define HEADER_COUNT (sizeof headers / sizeof headers[0])

static void must(int code, sqlite3 *db)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static void sql(sqlite3 *db, const char *text)
{
    must(sqlite3_exec(db, text, NULL, NULL, NULL), db);
}

static sqlite3_stmt *statement(sqlite3 *db, const char *text)
{
    sqlite3_stmt *made = NULL;
    must(sqlite3_prepare_v2(db, text, -1, &made, NULL), db);
    return made;
}

static void once(sqlite3_stmt *run)
{
    must(sqlite3_step(run), sqlite3_db_handle(run));
    must(sqlite3_reset(run), sqlite3_db_handle(run));
}

/* What a round took: messages a second, and microseconds of CPU a message. */
typedef struct figures {
    double rate;
    double cpu;
} figures;

typedef struct stopwatch {
    int64_t start;
    int64_t cpu;
} stopwatch;

static int64_t cpu_time(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) +
           usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static stopwatch start_watch(void)
{
    return (stopwatch){ test_now(), cpu_time() };
}

static figures read_watch(stopwatch watch, int messages)
{
    return (figures){ messages * 1e9 / (double)(test_now() - watch.start),
                      (double)(cpu_time() - watch.cpu) / messages };
}

/* ---- by hand --------------------------------------------------------------------------- */

typedef struct by_hand {
    sqlite3 *queues;
    sqlite3 *data;
    sqlite3_stmt *fetch, *send, *erase, *business, *claim, *store, *mark;
    unsigned char ids[BATCH_MAX][32];
    int id_sizes[BATCH_MAX];
    unsigned char *bodies;
    int64_t last;
} by_hand;

static sqlite3 *open_tuned(const char *path)
{
    sqlite3 *db = NULL;
    must(sqlite3_open(path, &db), db);
    sql(db, "pragma journal_mode=wal; pragma synchronous=full; pragma wal_autocheckpoint=4000;"
            "pragma secure_delete=fast");
    return db;
}

static void hand_open(by_hand *hand, const setting *with)
{
    hand->queues = open_tuned(with->queues);
    hand->data = with->scope ? hand->queues : open_tuned(with->data);
    sql(hand->queues, "create table inq(seq integer primary key, id blob, headers blob, body blob);"
                      "create table outq(seq integer primary key, id blob, headers blob,"
                      " body blob)");
    sql(hand->data, "create table business(id integer primary key, message blob, body blob);"
                    "create table dedup(key blob primary key, batch integer) without rowid;"
                    "create table pending(batch integer primary key, operations blob)");
    hand->fetch = statement(hand->queues, "select seq, id, headers, body from inq order by seq"
                                          " limit ?1");
    hand->send = statement(hand->queues, "insert into outq(id,headers,body) values(?1,?2,?3)");
    hand->erase = statement(hand->queues, "delete from inq where seq<=?1");
    hand->business = statement(hand->data, "insert into business(message,body) values(?1,?2)");
    hand->claim = statement(hand->data, "insert into dedup(key,batch) values(?1,1)");
    hand->store = statement(hand->data, "insert into pending values(1,?1)");
    hand->mark = statement(hand->data, "delete from pending where batch=1");
    hand->bodies = malloc(BATCH_MAX * BODY_SIZE);
}

static void hand_close(by_hand *hand)
{
    sqlite3_stmt *each;
    while ((each = sqlite3_next_stmt(hand->queues, NULL)))
        (void)sqlite3_finalize(each);
    while ((each = sqlite3_next_stmt(hand->data, NULL)))
        (void)sqlite3_finalize(each);
    if (hand->data != hand->queues)
        (void)sqlite3_close(hand->data);
    (void)sqlite3_close(hand->queues);
    free(hand->bodies);
}

static void hand_fill(by_hand *hand, const setting *with)
{
    static char body[BODY_SIZE];
    static char blob[380];
    sqlite3_stmt *put = statement(hand->queues, "insert into inq(id,headers,body)"
                                                " values(?1,?2,?3)");
    sql(hand->queues, "begin immediate");
    for (int i = 0; i < with->messages; i++) {
        char id[32];
        int size = snprintf(id, sizeof id, "%d", i);
        (void)sqlite3_bind_blob(put, 1, id, size, SQLITE_TRANSIENT);
        (void)sqlite3_bind_blob(put, 2, blob, sizeof blob, SQLITE_STATIC);
        (void)sqlite3_bind_blob(put, 3, body, sizeof body, SQLITE_STATIC);
        once(put);
    }
    sql(hand->queues, "commit");
    (void)sqlite3_finalize(put);
}

static int hand_receive(by_hand *hand, size_t batch)
{
    int count = 0;
    (void)sqlite3_bind_int64(hand->fetch, 1, (int64_t)batch);
    while (sqlite3_step(hand->fetch) == SQLITE_ROW) {
        hand->last = sqlite3_column_int64(hand->fetch, 0);
        hand->id_sizes[count] = sqlite3_column_bytes(hand->fetch, 1);
        memcpy(hand->ids[count], sqlite3_column_blob(hand->fetch, 1),
               (size_t)hand->id_sizes[count]);
        memcpy(hand->bodies + count * BODY_SIZE, sqlite3_column_blob(hand->fetch, 3), BODY_SIZE);
        count++;
    }
    must(sqlite3_reset(hand->fetch), hand->queues);
    return count;
}

static void hand_rows(by_hand *hand, sqlite3_stmt *row, int count, int columns)
{
    static char blob[380];
    for (int i = 0; i < count; i++) {
        (void)sqlite3_bind_blob(row, 1, hand->ids[i], hand->id_sizes[i], SQLITE_STATIC);
        if (columns == 3)
            (void)sqlite3_bind_blob(row, 2, blob, sizeof blob, SQLITE_STATIC);
        if (columns > 1)
            (void)sqlite3_bind_blob(row, columns, hand->bodies + i * BODY_SIZE, BODY_SIZE,
                                    SQLITE_STATIC);
        once(row);
    }
}

static int hand_scope(by_hand *hand, size_t batch)
{
    sql(hand->queues, "begin immediate");
    int count = hand_receive(hand, batch);
    hand_rows(hand, hand->business, count, 2);
    hand_rows(hand, hand->send, count, 3);
    (void)sqlite3_bind_int64(hand->erase, 1, hand->last);
    once(hand->erase);
    sql(hand->queues, "commit");
    return count;
}

static int hand_outbox(by_hand *hand, size_t batch)
{
    int count = hand_receive(hand, batch);
    sql(hand->data, "begin immediate");
    hand_rows(hand, hand->claim, count, 1);
    hand_rows(hand, hand->business, count, 2);
    (void)sqlite3_bind_blob(hand->store, 1, hand->bodies, count * BODY_SIZE, SQLITE_STATIC);
    once(hand->store);
    sql(hand->data, "commit");
    sql(hand->queues, "begin immediate");
    hand_rows(hand, hand->send, count, 3);
    sql(hand->queues, "commit");
    sql(hand->data, "pragma synchronous=normal");
    once(hand->mark);
    sql(hand->data, "pragma synchronous=full");
    sql(hand->queues, "pragma synchronous=normal");
    (void)sqlite3_bind_int64(hand->erase, 1, hand->last);
    once(hand->erase);
    sql(hand->queues, "pragma synchronous=full");
    return count;
}

static figures hand_round(const setting *with)
{
    static by_hand hand;
    hand_open(&hand, with);
    hand_fill(&hand, with);
    stopwatch watch = start_watch();
    for (int done = 0; done < with->messages;)
        done += with->scope ? hand_scope(&hand, with->batch) : hand_outbox(&hand, with->batch);
    figures made = read_watch(watch, with->messages);
    hand_close(&hand);
    return made;
}

/* ---- through the plugins ------------------------------------------------------------------ */

typedef struct by_plugin {
    place at;
    wb_transport_session *session;
    wb_storage_session *storage;
    sqlite3_stmt *business;
    const wb_incoming *messages[BATCH_MAX];
    wb_operation operations[BATCH_MAX];
    wb_operation *window[BATCH_MAX];
    wb_claim claims[BATCH_MAX];
    unsigned char *stored;
    wb_mark mark;
    size_t marks;
} by_plugin;

static void check(by_plugin *with, int result)
{
    if (result != WB_OK) {
        (void)fprintf(stderr, "%s\n", with->at.error.text);
        exit(1);
    }
}

static void handle(by_plugin *with, size_t count)
{
    const wb_sqlite_api *api = with->at.persistence_ops->interface(with->storage, "sqlite.1");
    sqlite3 *db = api->connection(with->storage, 0);
    if (!with->business)
        with->business = statement(db, "insert into business(message,body) values(?1,?2)");
    for (size_t i = 0; i < count; i++) {
        const wb_incoming *message = with->messages[i];
        (void)sqlite3_bind_blob(with->business, 1, message->id, (int)message->id_size,
                                SQLITE_STATIC);
        (void)sqlite3_bind_blob(with->business, 2, message->body, (int)message->body_size,
                                SQLITE_STATIC);
        once(with->business);
        check(with, with->at.persistence_ops->check(with->storage, i, &with->at.error));
        with->operations[i] = test_send("error", message->id, message->id_size, message->body,
                                        message->body_size);
        with->operations[i].headers = headers;
        with->operations[i].header_count = HEADER_COUNT;
        with->window[i] = &with->operations[i];
    }
}

static size_t plugin_scope(by_plugin *with, size_t batch)
{
    const wb_transport_ops *transport = with->at.transport_ops;
    const wb_persistence_ops *persistence = with->at.persistence_ops;
    wb_error *error = &with->at.error;
    size_t count = place_receive(&with->at, with->session, with->messages, batch, 1000);
    check(with, transport->begin(with->session, error));
    check(with, persistence->join(with->storage, transport->native(with->session), error));
    handle(with, count);
    check(with, transport->send(with->session, with->window, count, WB_NEVER, error));
    check(with, transport->acknowledge(with->session, with->messages, count, error));
    check(with, transport->commit(with->session, error));
    check(with, persistence->join(with->storage, NULL, error));
    return count;
}

static size_t plugin_outbox(by_plugin *with, size_t batch, uint64_t number)
{
    const wb_transport_ops *transport = with->at.transport_ops;
    const wb_persistence_ops *persistence = with->at.persistence_ops;
    wb_error *error = &with->at.error;
    size_t count = place_receive(&with->at, with->session, with->messages, batch, 1000);
    for (size_t i = 0; i < count; i++)
        with->claims[i] = (wb_claim){ .id = with->messages[i]->id,
                                      .id_size = with->messages[i]->id_size };
    wb_begin begin = { .struct_size = sizeof begin,
                       .marks = &with->mark,
                       .mark_count = with->marks,
                       .batch = number,
                       .claims = with->claims,
                       .claim_count = count };
    check(with, persistence->begin(with->storage, &begin, error));
    handle(with, count);
    for (size_t i = 0; i < count; i++)
        memcpy(with->stored + i * BODY_SIZE, with->messages[i]->body, BODY_SIZE);
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = number,
                         .operations = with->stored,
                         .operations_size = count * BODY_SIZE };
    check(with, persistence->commit(with->storage, &commit, error));
    check(with, transport->send(with->session, with->window, count, WB_NEVER, error));
    with->mark = (wb_mark){ .batch = number };
    with->marks = 1;
    check(with, transport->acknowledge(with->session, with->messages, count, error));
    return count;
}

static void plugin_fill(by_plugin *with, int messages)
{
    static char body[BODY_SIZE];
    char ids[100][16];
    for (int i = 0; i < messages; i += 100) {
        int count = messages - i < 100 ? messages - i : 100;
        for (int k = 0; k < count; k++) {
            int size = snprintf(ids[k], sizeof ids[k], "%d", i + k);
            with->operations[k] = test_send("orders", ids[k], (size_t)size, body, sizeof body);
            with->operations[k].headers = headers;
            with->operations[k].header_count = HEADER_COUNT;
        }
        place_send(&with->at, with->session, with->operations, (size_t)count);
    }
}

static figures plugin_round(const setting *with)
{
    static by_plugin plugin;
    memset(&plugin, 0, sizeof plugin);
    plugin.stored = malloc(BATCH_MAX * BODY_SIZE);
    const char *data = with->scope ? with->queues : with->data;
    place_open(&plugin.at, "orders", NULL, with->queues, data);
    place_install(&plugin.at);
    test_execute(data, "create table business(id integer primary key, message blob, body blob)");
    plugin.session = place_session(&plugin.at, WB_SESSION_RECEIVE | WB_SESSION_SEND);
    plugin.storage = place_storage(&plugin.at);
    plugin_fill(&plugin, with->messages);
    stopwatch watch = start_watch();
    uint64_t batch = 1;
    for (int done = 0; done < with->messages; batch++)
        done += (int)(with->scope ? plugin_scope(&plugin, with->batch)
                                  : plugin_outbox(&plugin, with->batch, batch));
    figures made = read_watch(watch, with->messages);
    plugin.at.persistence_ops->close(plugin.storage);
    plugin.at.transport_ops->close(plugin.session);
    place_close(&plugin.at);
    free(plugin.stored);
    return made;
}

/* ---- rounds -------------------------------------------------------------------------------- */

static figures one_round(setting *with, figures (*run)(const setting *with))
{
    with->directory = test_directory();
    with->queues = test_file(with->directory, "queues.db");
    with->data = test_file(with->directory, "data.db");
    figures made = run(with);
    free(with->queues);
    free(with->data);
    test_remove(with->directory);
    return made;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static figures median(const figures *rounds, int count)
{
    double rates[ROUNDS_MAX];
    double cpu[ROUNDS_MAX];
    for (int i = 0; i < count; i++) {
        rates[i] = rounds[i].rate;
        cpu[i] = rounds[i].cpu;
    }
    qsort(rates, (size_t)count, sizeof rates[0], compare);
    qsort(cpu, (size_t)count, sizeof cpu[0], compare);
    return (figures){ rates[count / 2], cpu[count / 2] };
}

int main(int argc, char **argv)
{
    figures plugin[ROUNDS_MAX];
    figures hand[ROUNDS_MAX];
    if (argc < 4) {
        (void)fprintf(stderr, "usage: %s scope|outbox BATCH MESSAGES [ROUNDS]\n", argv[0]);
        return 64;
    }
    setting with = { .scope = strcmp(argv[1], "scope") == 0,
                     .batch = (size_t)atoi(argv[2]),
                     .messages = atoi(argv[3]) };
    int rounds = argc > 4 ? atoi(argv[4]) : 5;
    if (with.batch < 1 || with.batch > BATCH_MAX || rounds < 1 || rounds > ROUNDS_MAX)
        return 64;
    for (int i = 0; i < rounds; i++) {
        plugin[i] = one_round(&with, plugin_round);
        hand[i] = one_round(&with, hand_round);
    }
    figures ours = median(plugin, rounds);
    figures theirs = median(hand, rounds);
    (void)printf("%s, batch %zu: plugins %.0f/s, by hand %.0f/s, ratio %.2f; "
                 "CPU a message %.1f us, by hand %.1f us\n",
                 argv[1], with.batch, ours.rate, theirs.rate, ours.rate / theirs.rate, ours.cpu,
                 theirs.cpu);
    return 0;
}

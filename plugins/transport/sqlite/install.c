/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

/* A table a queue: appended to at one end and deleted from at the other, without an
 * index to keep. Numbers in the tables' names, because SQLite compares names without
 * regard to case. */
static const char schema[] =
    "create table if not exists waybill_queue("
    " number integer primary key, name text not null unique);"
    "create table if not exists waybill_subscription("
    " type text not null, queue integer not null, primary key(type, queue)) without rowid;"
    "create table if not exists waybill_claim("
    " queue integer not null, first integer not null, last integer not null,"
    " session integer not null, primary key(queue, first)) without rowid;"
    "create table if not exists waybill_redelivered("
    " queue integer not null, seq integer not null, count integer not null,"
    " primary key(queue, seq)) without rowid;";

int wb_sqlite_transport_find_queue(wb_sqlite_database *db, const char *name, int64_t *ret_number, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result =
        wb_sqlite_db_prepare(db, &statement, "select number from waybill_queue where name=?1",
                             error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "look up a queue", error);
    (void)sqlite3_finalize(statement);
    return result;
}

static int insert_queue(wb_sqlite_database *db, const char *name, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result =
        wb_sqlite_db_prepare(db, &statement,
                             "insert into waybill_queue(name) values(?1) on conflict do nothing",
                             error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    result = wb_sqlite_db_run(db, statement, "make a queue", error);
    (void)sqlite3_finalize(statement);
    return result;
}

static int make_queue(wb_sqlite_database *db, const char *name, int64_t *ret_number,
                      wb_error *error)
{
    char sql[256];
    int result = insert_queue(db, name, error);
    if (result == WB_OK)
        result = wb_sqlite_transport_find_queue(db, name, ret_number, error);
    if (result != WB_OK)
        return result;
    (void)snprintf(sql, sizeof sql,
                   "create table if not exists waybill_message_%lld("
                   " seq integer primary key, id blob, key blob,"
                   " headers blob not null, body blob not null)",
                   (long long)*ret_number);
    return wb_sqlite_db_execute(db, sql, "make a queue", error);
}

static int subscribe(wb_sqlite_database *db, const char *type, int64_t queue, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_db_prepare(db, &statement,
                                      "insert into waybill_subscription(type,queue) values(?1,?2)"
                                      " on conflict do nothing",
                                      error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, type, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, queue);
    result = wb_sqlite_db_run(db, statement, "subscribe", error);
    (void)sqlite3_finalize(statement);
    return result;
}

size_t wb_sqlite_transport_count_queues(const wb_endpoint_info *endpoint)
{
    const size_t further = WB_HAS(endpoint, wb_endpoint_info, queue_count) ? endpoint->queue_count : 0;
    return 1 + (further < WB_QUEUES_MAX ? further : WB_QUEUES_MAX);
}

const char *wb_sqlite_transport_queue(const wb_endpoint_info *endpoint, size_t number)
{
    return number ? endpoint->queues[number - 1] : endpoint->name;
}

int wb_sqlite_transport_version(wb_transport *transport, wb_sqlite_database *db, int *ret_version, wb_error *error)
{
    int result = wb_sqlite_db_schema_version(db, WB_SQLITE_TRANSPORT_SCHEMA_PART, ret_version,
                                             error);
    if (result == WB_OK && *ret_version > WB_SQLITE_TRANSPORT_SCHEMA_VERSION)
        result = transport->host->fail(
            transport->host, error, WB_FATAL, WB_CAUSE_MISMATCH, *ret_version,
            "the queues in \"%s\" have version %d, this is version %d: use a newer waybill",
            db->path, *ret_version, WB_SQLITE_TRANSPORT_SCHEMA_VERSION);
    return result;
}

static int install_tables(wb_transport *transport, wb_sqlite_database *db, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int version = 0;
    int64_t queue = 0;
    int64_t others = 0;
    int result = wb_sqlite_transport_version(transport, db, &version, error);
    if (result == WB_OK)
        result = wb_sqlite_db_execute(db, schema, "make the tables", error);
    if (result == WB_OK)
        result = wb_sqlite_db_set_schema_version(db, WB_SQLITE_TRANSPORT_SCHEMA_PART,
                                                 WB_SQLITE_TRANSPORT_SCHEMA_VERSION, error);
    if (result == WB_OK)
        result = make_queue(db, endpoint->name, &queue, error);
    for (size_t i = 1; result == WB_OK && i < wb_sqlite_transport_count_queues(endpoint); i++)
        result = make_queue(db, wb_sqlite_transport_queue(endpoint, i), &others, error);
    if (result == WB_OK && endpoint->error_queue)
        result = make_queue(db, endpoint->error_queue, &others, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = make_queue(db, endpoint->audit_queue, &others, error);
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = make_queue(db, endpoint->error_queues[i], &others, error);
    for (size_t i = 0; result == WB_OK && i < endpoint->type_count; i++)
        result = subscribe(db, endpoint->types[i], queue, error);
    return result;
}

static int open_sessions_file(wb_transport *transport, wb_error *error)
{
    int fd = wb_sqlite_lockfile_open(transport->sessions_path);
    if (fd < 0)
        return wb_sqlite_db_fail_file(transport->host, errno, "open", transport->sessions_path,
                                      error);
    (void)close(fd);
    return WB_OK;
}

int wb_sqlite_transport_install(wb_transport *transport, wb_error *error)
{
    wb_sqlite_database db;
    int result = wb_sqlite_db_create(&db, transport->host, transport->config, transport->path,
                                     error);
    if (result != WB_OK)
        return result;
    result = open_sessions_file(transport, error);
    if (result == WB_OK)
        result = wb_sqlite_db_begin(&db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = install_tables(transport, &db, error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&db, error);
    wb_sqlite_db_rollback(&db);
    wb_sqlite_db_close(&db);
    return result;
}

/* ---- verify ----------------------------------------------------------------- */

static int missing(wb_transport *transport, const char *what, const char *name, wb_error *error)
{
    return transport->host->fail(transport->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                                 "no %s \"%s\" in \"%s\": run `waybill install`", what, name,
                                 transport->path);
}

static int verify_queue(wb_transport *transport, wb_sqlite_database *db, const char *name,
                        int64_t *ret_number, wb_error *error)
{
    int result = wb_sqlite_transport_find_queue(db, name, ret_number, error);
    return result == WB_OK && *ret_number == 0 ? missing(transport, "queue", name, error) : result;
}

static int verify_subscription(wb_transport *transport, wb_sqlite_database *db, const char *type,
                               int64_t queue, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_db_prepare(
        db, &statement, "select 1 from waybill_subscription where type=?1 and queue=?2", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, type, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, queue);
    int code = sqlite3_step(statement);
    if (code == SQLITE_DONE)
        result = missing(transport, "subscription to", type, error);
    else if (code != SQLITE_ROW)
        result = wb_sqlite_db_fail(db, code, "read the subscriptions", error);
    (void)sqlite3_finalize(statement);
    return result;
}

static int verify_tables(wb_transport *transport, wb_sqlite_database *db, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int version = 0;
    int64_t queue = 0;
    int64_t others = 0;
    int result = wb_sqlite_transport_version(transport, db, &version, error);
    if (result == WB_OK && version == 0)
        return missing(transport, "table", "waybill_queue", error);
    if (result == WB_OK)
        result = verify_queue(transport, db, endpoint->name, &queue, error);
    for (size_t i = 1; result == WB_OK && i < wb_sqlite_transport_count_queues(endpoint); i++)
        result = verify_queue(transport, db, wb_sqlite_transport_queue(endpoint, i), &others, error);
    if (result == WB_OK && endpoint->error_queue)
        result = verify_queue(transport, db, endpoint->error_queue, &others, error);
    if (result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, audit_queue))
        result = verify_queue(transport, db, endpoint->audit_queue, &others, error);
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = verify_queue(transport, db, endpoint->error_queues[i], &others, error);
    for (size_t i = 0; result == WB_OK && i < endpoint->type_count; i++)
        result = verify_subscription(transport, db, endpoint->types[i], queue, error);
    return result;
}

int wb_sqlite_transport_verify(wb_transport *transport, wb_error *error)
{
    wb_sqlite_database db;
    int result = wb_sqlite_db_open(&db, transport->host, transport->config, transport->path, error);
    if (result != WB_OK)
        return result;
    result = verify_tables(transport, &db, error);
    wb_sqlite_db_close(&db);
    return result;
}

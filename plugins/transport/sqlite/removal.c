/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: subscriptions, and a queue with all that belongs to it. Each is one transaction.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

/* Of a file that is not there nothing is left. *ret_queue is 0 where there is no such queue. */
static int open_file(wb_transport *transport, wb_sqlite_database *db, int64_t *ret_queue, int *ret_is_open, wb_error *error)
{
    int version = 0;
    *ret_queue = 0;
    *ret_is_open = 0;
    if (access(transport->path, F_OK) != 0 && errno == ENOENT)
        return WB_OK;
    int result = wb_sqlite_db_open(db, transport->host, transport->config, transport->path, error);
    *ret_is_open = result == WB_OK;
    if (result == WB_OK)
        result = wb_sqlite_transport_version(transport, db, &version, error);
    return result == WB_OK && version ? wb_sqlite_transport_find_queue(db, transport->endpoint->name, ret_queue, error)
                                      : result;
}

static int count_messages(wb_sqlite_database *db, int64_t queue, int64_t *ret_count, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    char sql[80];
    (void)snprintf(sql, sizeof sql, "select count(*) from waybill_message_%lld", (long long)queue);
    int result = wb_sqlite_db_prepare(db, &statement, sql, error);
    if (result != WB_OK)
        return result;
    const int code = sqlite3_step(statement);
    *ret_count = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (code != SQLITE_ROW)
        result = wb_sqlite_db_fail(db, code, "count messages", error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* *ret_fd is -1 where the file is not there: then nobody receives. It is not made, which would be as whoever calls. */
static int open_sessions_file(const wb_transport *transport, int *ret_fd, wb_error *error)
{
    *ret_fd = wb_sqlite_lockfile_find(transport->sessions_path);
    return *ret_fd >= 0 || errno == ENOENT
               ? WB_OK
               : wb_sqlite_db_fail_file(transport->host, errno, "open", transport->sessions_path, error);
}

static uint32_t count_readers(int sessions_fd, int64_t queue)
{
    const int64_t first = wb_sqlite_reader_locks(queue);
    return sessions_fd >= 0 ? wb_sqlite_lockfile_count(sessions_fd, first, first + WB_SQLITE_SESSIONS_MAX + 1) : 0;
}

static int find_readers(const wb_transport *transport, int64_t queue, uint32_t *ret_count, wb_error *error)
{
    int fd;
    const int result = open_sessions_file(transport, &fd, error);
    *ret_count = count_readers(fd, queue);
    if (fd >= 0)
        (void)close(fd);
    return result;
}

/* Who receives from one of the endpoint's queues receives from all of them: counted once. */
static int add_queue(wb_transport *transport, wb_sqlite_database *db, int64_t queue, wb_transport_depth *depth,
                     wb_error *error)
{
    int64_t count = 0;
    uint32_t readers = 0;
    depth->is_installed &= queue != 0;
    if (!queue)
        return WB_OK;
    int result = count_messages(db, queue, &count, error);
    if (result == WB_OK)
        result = find_readers(transport, queue, &readers, error);
    depth->messages += (uint64_t)count;
    if (readers > depth->readers)
        depth->readers = readers;
    return result;
}

static int add_further(wb_transport *transport, wb_sqlite_database *db, wb_transport_depth *depth, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 1; result == WB_OK && i < wb_sqlite_transport_count_queues(transport->endpoint); i++) {
        int64_t queue = 0;
        result = wb_sqlite_transport_find_queue(db, wb_sqlite_transport_queue(transport->endpoint, i), &queue, error);
        if (result == WB_OK)
            result = add_queue(transport, db, queue, depth, error);
    }
    return result;
}

int wb_sqlite_transport_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error)
{
    wb_sqlite_database db;
    int64_t queue;
    int is_open;
    int result = open_file(transport, &db, &queue, &is_open, error);
    depth->is_installed = result == WB_OK;
    if (result == WB_OK)
        result = add_queue(transport, &db, queue, depth, error);
    if (result == WB_OK && queue)
        result = add_further(transport, &db, depth, error);
    if (is_open)
        wb_sqlite_db_close(&db);
    return result;
}

/* ---- queues ------------------------------------------------------------------------------- */

/* A sender may remember the number: it must not become another queue's. So the row of the highest one stays, under a
 * name that no endpoint can have. */
static const char removal[] =
    "drop table if exists waybill_message_%lld;"
    "delete from waybill_subscription where queue=%lld;"
    "delete from waybill_claim where queue=%lld;"
    "delete from waybill_redelivered where queue=%lld;"
    "update waybill_queue set name=' removed '||number where number=%lld"
    " and number=(select max(number) from waybill_queue);"
    "delete from waybill_queue where number=%lld and name not like ' removed %%';";

static int remove_queue(wb_sqlite_database *db, int64_t queue, wb_error *error)
{
    const long long number = queue;
    char sql[sizeof removal + 6 * 20];
    (void)snprintf(sql, sizeof sql, removal, number, number, number, number, number, number);
    return wb_sqlite_db_execute(db, sql, "remove a queue", error);
}

/* Nobody begins to receive from it before the file is closed. @return 1; 0: somebody receives; -1: see errno. */
static int close_to_readers(int sessions_fd, int64_t queue)
{
    return sessions_fd >= 0
               ? wb_sqlite_lockfile_try_all(sessions_fd, wb_sqlite_reader_locks(queue), WB_SQLITE_SESSIONS_MAX + 1)
               : 1;
}

static int refuse_readers(const wb_transport *transport, int sessions_fd, int64_t queue, wb_error *error)
{
    const uint32_t count = count_readers(sessions_fd, queue);
    return transport->host->fail(transport->host, error, WB_REJECT, WB_CAUSE_OTHER, count,
                                 "%u sessions receive from queue \"%s\" in \"%s\"", (unsigned)count,
                                 transport->endpoint->name, transport->path);
}

static int refuse(const wb_transport *transport, int64_t count, wb_error *error)
{
    return transport->host->fail(transport->host, error, WB_REJECT, WB_CAUSE_OTHER, count,
                                 "queue \"%s\" in \"%s\" holds %lld messages", transport->endpoint->name, transport->path,
                                 (long long)count);
}

static int remove_own(wb_transport *transport, wb_sqlite_database *db, int sessions_fd, uint32_t flags, wb_error *error)
{
    int64_t queue, count = 0;
    int result = wb_sqlite_transport_find_queue(db, transport->endpoint->name, &queue, error);
    if (result != WB_OK || !queue)
        return result;
    const int closed = close_to_readers(sessions_fd, queue);
    if (closed < 0)
        return wb_sqlite_db_fail_file(transport->host, errno, "lock", transport->sessions_path, error);
    if (!closed)
        return refuse_readers(transport, sessions_fd, queue, error);
    result = count_messages(db, queue, &count, error);
    if (result == WB_OK && count && !(flags & WB_UNINSTALL_MESSAGES))
        result = refuse(transport, count, error);
    return result == WB_OK ? remove_queue(db, queue, error) : result;
}

/* Who receives from it has a use for it. */
static int remove_if_empty(wb_sqlite_database *db, int sessions_fd, const char *name, wb_error *error)
{
    int64_t queue, count = 0;
    int result = wb_sqlite_transport_find_queue(db, name, &queue, error);
    if (result != WB_OK || !queue || close_to_readers(sessions_fd, queue) <= 0)
        return result;
    result = count_messages(db, queue, &count, error);
    return result == WB_OK && !count ? remove_queue(db, queue, error) : result;
}

static int remove_error_queues(wb_transport *transport, wb_sqlite_database *db, int sessions_fd, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int result = endpoint->error_queue ? remove_if_empty(db, sessions_fd, endpoint->error_queue, error) : WB_OK;
    for (size_t i = 0; result == WB_OK && WB_HAS(endpoint, wb_endpoint_info, error_queue_count) &&
                       i < endpoint->error_queue_count; i++)
        result = remove_if_empty(db, sessions_fd, endpoint->error_queues[i], error);
    return result;
}

static int remove_in_transaction(wb_transport *transport, wb_sqlite_database *db, int sessions_fd, uint32_t flags,
                                 wb_error *error)
{
    int result = wb_sqlite_db_begin(db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = remove_own(transport, db, sessions_fd, flags, error);
    if (result == WB_OK && (flags & WB_UNINSTALL_ERROR_QUEUES))
        result = remove_error_queues(transport, db, sessions_fd, error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(db, error);
    wb_sqlite_db_rollback(db);
    return result;
}

int wb_sqlite_transport_uninstall(wb_transport *transport, uint32_t flags, wb_error *error)
{
    wb_sqlite_database db;
    int64_t queue;
    int is_open, version = 0, sessions_fd = -1;
    int result = open_file(transport, &db, &queue, &is_open, error);
    if (result == WB_OK && is_open)
        result = wb_sqlite_transport_version(transport, &db, &version, error);
    if (result == WB_OK && version)
        result = open_sessions_file(transport, &sessions_fd, error);
    if (result == WB_OK && version)
        result = remove_in_transaction(transport, &db, sessions_fd, flags, error);
    if (sessions_fd >= 0)
        (void)close(sessions_fd);
    if (is_open)
        wb_sqlite_db_close(&db);
    return result;
}

/* ---- subscriptions ------------------------------------------------------------------------ */

static int remove_subscription(wb_sqlite_database *db, const char *type, int64_t queue, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_db_prepare(db, &statement, "delete from waybill_subscription where type=?1 and queue=?2", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, type, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(statement, 2, queue);
    result = wb_sqlite_db_run(db, statement, "unsubscribe", error);
    (void)sqlite3_finalize(statement);
    return result;
}

static int remove_subscriptions(wb_sqlite_database *db, const char *const *types, size_t count, int64_t queue,
                                wb_error *error)
{
    int result = wb_sqlite_db_begin(db, WB_SQLITE_DB_POWER_LOSS, error);
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = remove_subscription(db, types[i], queue, error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(db, error);
    wb_sqlite_db_rollback(db);
    return result;
}

int wb_sqlite_transport_unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error)
{
    wb_sqlite_database db;
    int64_t queue;
    int is_open;
    int result = open_file(transport, &db, &queue, &is_open, error);
    if (result == WB_OK && queue)
        result = remove_subscriptions(&db, types, count, queue, error);
    if (is_open)
        wb_sqlite_db_close(&db);
    return result;
}

static int visit_subscriptions(wb_sqlite_database *db, int64_t queue, wb_subscription_fn visit, void *argument,
                               wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = SQLITE_DONE;
    int result = wb_sqlite_db_prepare(db, &statement, "select type from waybill_subscription where queue=?1 order by type",
                                      error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(statement, 1, queue);
    while (result == WB_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        result = visit(argument, (const char *)sqlite3_column_text(statement, 0));
    if (result == WB_OK && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "read subscriptions", error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* Nobody else writes them. */
int wb_sqlite_transport_subscriptions(wb_transport *transport, wb_subscription_fn visit, void *argument, wb_error *error)
{
    wb_sqlite_database db;
    int64_t queue;
    int is_open;
    int result = open_file(transport, &db, &queue, &is_open, error);
    if (result == WB_OK && queue)
        result = visit_subscriptions(&db, queue, visit, argument, error);
    if (is_open)
        wb_sqlite_db_close(&db);
    return result;
}

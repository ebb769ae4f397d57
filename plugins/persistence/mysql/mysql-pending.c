/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-pending.h"

#include <stdlib.h>

#include "plugins/persistence/mysql/mysql-clock.h"
#include "plugins/persistence/mysql/mysql-transaction.h"

static int visit_rows(MYSQL_RES *rows, wb_pending_fn visit, void *argument)
{
    int result = WB_OK;
    MYSQL_ROW row;
    while (result == WB_OK && (row = mysql_fetch_row(rows)) != NULL) {
        const wb_pending pending = {
            .batch = strtoull(row[0], NULL, 10),
            .operations = row[1],
            .operations_size = mysql_fetch_lengths(rows)[1],
        };
        result = visit(argument, &pending);
    }
    return result;
}

int mys_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                void *argument, wb_error *error)
{
    MYSQL_RES *rows = NULL;

    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "read pending operations", error);
    if (!count)
        return WB_OK;
    mys_exchange_start(s);
    mys_put(s, MYS_SQL_PENDING);
    for (size_t i = 0; i < count; i++) {
        if (i)
            mys_put_text(s, ",");
        mys_put_number(s, batches[i]);
    }
    mys_put(s, MYS_SQL_LIST_END);
    mys_exchange_end_rows(s, &rows);
    mys_queue_end(s);
    int result = mys_run_outside(s);
    if (result != WB_OK)
        result = wb_sql_report(s, "read pending operations", error);
    else
        result = visit_rows(rows, visit, argument);
    mysql_free_result(rows);
    return result;
}

/* ---- one instance at a time -------------------------------------------------------- */

static void queue_lock(wb_storage_session *s, const char *call, const char *purpose,
                       MYSQL_RES **ret_answer)
{
    char name[MYS_LOCK_NAME_SIZE];
    const wb_sql_names *names = &s->persistence->sql.names;
    mys_names_lock(names, purpose, names->prefix, name);
    mys_put_text(s, call);
    mys_put_text(s, "('");
    mys_put_text(s, name);
    mys_put_text(s, ret_answer ? "', 0)" : "')");
    if (ret_answer)
        mys_exchange_end_rows(s, ret_answer);
    else
        mys_exchange_end(s);
}

static int is_ours(MYSQL_RES *answer)
{
    MYSQL_ROW row = answer ? mysql_fetch_row(answer) : NULL;
    const int ours = row && row[0] && *row[0] == '1';
    mysql_free_result(answer);
    return ours;
}

/* The connection's end would free it, too; a session whose lock is in doubt is given up. */
static int unlock(wb_storage_session *s, const char *purpose)
{
    mys_exchange_start(s);
    queue_lock(s, "DO RELEASE_LOCK", purpose, NULL);
    mys_queue_end(s);
    return mys_run_outside(s);
}

static void queue_next(wb_storage_session *s, uint64_t from, uint64_t before,
                       MYSQL_RES **ret_row)
{
    mys_put(s, MYS_SQL_NEXT);
    mys_put_number(s, from);
    mys_put(s, MYS_SQL_NEXT_BEFORE);
    mys_put_number(s, before);
    mys_put(s, MYS_SQL_NEXT_END);
    mys_exchange_end_rows(s, ret_row);
    mys_queue_end(s);
}

/* A walk along the pending rows, one in memory. */
typedef struct walk {
    uint64_t from; /* the next row's number, at least */
    uint64_t before;
    int ended;
    wb_pending_fn visit;
    void *argument;
} walk;

/* The walk goes on behind the row, whatever becomes of it. */
static int note_and_visit(void *argument, const wb_pending *pending)
{
    walk *w = argument;
    w->from = pending->batch + 1;
    w->ended = w->from == 0;
    return w->visit(w->argument, pending);
}

static int visit_next(walk *w, MYSQL_RES *row)
{
    w->ended = 1;
    return visit_rows(row, note_and_visit, w);
}

/* The first row comes in the round trip that takes the lock. */
static int walk_first(wb_storage_session *s, walk *w, int *ret_ours, wb_error *error)
{
    MYSQL_RES *answer = NULL;
    MYSQL_RES *row = NULL;

    mys_exchange_start(s);
    queue_lock(s, "SELECT GET_LOCK", "sweep", &answer);
    queue_next(s, w->from, w->before, &row);
    int result = mys_run_outside(s);
    *ret_ours = is_ours(answer);
    if (result != WB_OK)
        result = wb_sql_report(s, "sweep pending operations", error);
    else if (*ret_ours)
        result = visit_next(w, row);
    mysql_free_result(row);
    return result;
}

static int walk_on(wb_storage_session *s, walk *w, wb_error *error)
{
    MYSQL_RES *row = NULL;

    mys_exchange_start(s);
    queue_next(s, w->from, w->before, &row);
    int result = mys_run_outside(s);
    if (result != WB_OK)
        result = wb_sql_report(s, "sweep pending operations", error);
    else
        result = visit_next(w, row);
    mysql_free_result(row);
    return result;
}

static int walk_along(wb_storage_session *s, walk *w, size_t limit, wb_error *error)
{
    int ours = 0;

    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "sweep pending operations", error);
    if (limit == 0 || w->from >= w->before)
        return WB_OK;
    int result = walk_first(s, w, &ours, error);
    for (size_t i = 1; i < limit && ours && !w->ended && result == WB_OK; i++)
        result = walk_on(s, w, error);
    if (ours && s->sql.state == WB_SQL_IDLE && unlock(s, "sweep") != WB_OK && result == WB_OK)
        result = wb_sql_report(s, "sweep pending operations", error);
    return result;
}

int mys_sweep(wb_storage_session *s, uint64_t before, size_t limit, wb_pending_fn visit,
              void *argument, wb_error *error)
{
    walk w = { 0, before, 0, visit, argument };
    return walk_along(s, &w, limit, error);
}

int mys_next_pending(wb_storage_session *s, uint64_t after, uint64_t before, wb_pending_fn visit,
                     void *argument, wb_error *error)
{
    walk w = { after + 1, after < before ? before : 0, 0, visit, argument };
    return walk_along(s, &w, 1, error);
}

/* The DELETE goes once the lock is known to be ours. */
static int delete_old(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted)
{
    uint64_t deleted = 0;

    mys_exchange_start(s);
    mys_put(s, MYS_SQL_CLEAN_UP);
    mys_put_number(s, before);
    mys_put(s, MYS_SQL_CLEAN_UP_LIMIT);
    mys_put_number(s, limit);
    mys_exchange_end_affected(s, &deleted);
    mys_queue_end(s);
    queue_lock(s, "DO RELEASE_LOCK", "cleanup", NULL);
    mys_queue_end(s);
    int result = mys_run_outside(s);
    *ret_deleted = (size_t)deleted;
    return result;
}

int mys_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted,
                 wb_error *error)
{
    MYSQL_RES *answer = NULL;

    *ret_deleted = 0;
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "clean up", error);
    if (mys_clock_look_ahead(s) != WB_OK)
        return wb_sql_report(s, "clean up", error);
    mys_exchange_start(s);
    queue_lock(s, "SELECT GET_LOCK", "cleanup", &answer);
    mys_queue_end(s);
    int result = mys_run_outside(s);
    if (!is_ours(answer))
        return result == WB_OK ? WB_OK : wb_sql_report(s, "clean up", error);
    result = delete_old(s, before, limit, ret_deleted);
    if (result == WB_OK)
        return WB_OK;
    const wb_sql_failure failure = s->sql.failure;
    if (s->sql.state == WB_SQL_IDLE)
        (void)unlock(s, "cleanup");
    s->sql.failure = failure;
    return wb_sql_report(s, "clean up", error);
}

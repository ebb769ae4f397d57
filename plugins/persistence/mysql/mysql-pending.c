/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-pending.h"

#include <stdlib.h>

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

/* Run what was queued. Autocommit is off: even a SELECT has begun a transaction. */
static int run(wb_storage_session *s)
{
    s->state = MYS_OPEN;
    int result = mys_exchange_run(s, NULL);
    if (result == WB_OK)
        s->state = MYS_IDLE;
    else
        mys_undo(s);
    return result;
}

int mys_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                void *argument, wb_error *error)
{
    MYSQL_RES *rows = NULL;

    if (s->state != MYS_IDLE)
        return mys_session_unusable(s, "read pending operations", error);
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
    int result = run(s);
    if (result != WB_OK)
        result = mys_report(s, "read pending operations", error);
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
    const mys_names *names = &s->persistence->names;
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
    return run(s);
}

int mys_sweep(wb_storage_session *s, uint64_t before, size_t limit, wb_pending_fn visit,
              void *argument, wb_error *error)
{
    MYSQL_RES *answer = NULL;
    MYSQL_RES *rows = NULL;

    if (s->state != MYS_IDLE)
        return mys_session_unusable(s, "sweep pending operations", error);
    mys_exchange_start(s);
    queue_lock(s, "SELECT GET_LOCK", "sweep", &answer);
    mys_put(s, MYS_SQL_SWEEP);
    mys_put_number(s, before);
    mys_put(s, MYS_SQL_SWEEP_LIMIT);
    mys_put_number(s, limit);
    mys_exchange_end_rows(s, &rows);
    mys_queue_end(s);
    int result = run(s);
    const int ours = is_ours(answer);
    if (result != WB_OK)
        result = mys_report(s, "sweep pending operations", error);
    else if (ours)
        result = visit_rows(rows, visit, argument);
    mysql_free_result(rows);
    if (ours && s->state == MYS_IDLE && unlock(s, "sweep") != WB_OK && result == WB_OK)
        result = mys_report(s, "sweep pending operations", error);
    return result;
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
    int result = run(s);
    *ret_deleted = (size_t)deleted;
    return result;
}

int mys_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted,
                 wb_error *error)
{
    MYSQL_RES *answer = NULL;

    *ret_deleted = 0;
    if (s->state != MYS_IDLE)
        return mys_session_unusable(s, "clean up", error);
    mys_exchange_start(s);
    queue_lock(s, "SELECT GET_LOCK", "cleanup", &answer);
    mys_queue_end(s);
    int result = run(s);
    if (!is_ours(answer))
        return result == WB_OK ? WB_OK : mys_report(s, "clean up", error);
    result = delete_old(s, before, limit, ret_deleted);
    if (result == WB_OK)
        return WB_OK;
    const mys_failure failure = s->failure;
    if (s->state == MYS_IDLE)
        (void)unlock(s, "cleanup");
    s->failure = failure;
    return mys_report(s, "clean up", error);
}

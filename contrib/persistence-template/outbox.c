/* SPDX-License-Identifier: Apache-2.0
 *
 * Pending rows and the age of records. A row is copied before it is visited: a visitor sends, which
 * may take long, and an open reader keeps the file growing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* ---- marks ---------------------------------------------------------------------------------------- */

/* A row that is gone stays gone. */
static int mark_one(wb_storage_session *session, MDB_txn *txn, const wb_mark *mark)
{
    store_key key;
    MDB_val k = store_batch_key(&key, 'p', mark->batch, NULL, 0);
    MDB_val v = store_value(mark->remaining, mark->remaining_size), before;
    int code = mdb_get(txn, session->records, &k, &before);
    if (code == 0)
        code = mark->remaining ? mdb_put(txn, session->records, &k, &v, 0) : mdb_del(txn, session->records, &k, NULL);
    return code == MDB_NOTFOUND ? 0 : code;
}

int store_make_marks(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    MDB_txn *txn = NULL;
    int code = mdb_txn_begin(session->env, NULL, 0, &txn);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = mark_one(session, txn, &marks[i]);
    if (code == 0) {
        code = mdb_txn_commit(txn);
        txn = NULL;
    }
    if (txn)
        mdb_txn_abort(txn);
    if (code != 0)
        return store_fail(session->persistence, code, "mark what was dispatched", error);
    session->persistence->host->crash_point("mark_sent");
    return WB_OK;
}

int store_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    int result = store_lock_writer(session, session->persistence->config->busy_timeout, error);
    if (result != WB_OK)
        return result;
    result = store_make_marks(session, marks, count, error);
    store_unlock_writer(session);
    return result;
}

/* ---- visits --------------------------------------------------------------------------------------- */

/* The first row from `batch` on; *ret_copy NULL: there is none below `before`. */
static int read_row(wb_storage_session *session, uint64_t batch, uint64_t before, wb_pending *row, void **ret_copy)
{
    store_key key;
    MDB_txn *txn;
    MDB_cursor *cursor = NULL;
    MDB_val k = store_batch_key(&key, 'p', batch, NULL, 0), v = { 0, NULL };
    int code = mdb_txn_begin(session->env, NULL, MDB_RDONLY, &txn);
    *ret_copy = NULL;
    if (code != 0)
        return code;
    code = mdb_cursor_open(txn, session->records, &cursor);
    if (code == 0)
        code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    if (code == 0 && *(const char *)k.mv_data == 'p') {
        row->batch = store_batch_of((const char *)k.mv_data + 1);
        row->operations_size = v.mv_size;
        if (row->batch < before) {
            *ret_copy = malloc(v.mv_size + 1);
            code = *ret_copy ? 0 : ENOMEM;
        }
        if (*ret_copy && v.mv_size)
            memcpy(*ret_copy, v.mv_data, v.mv_size);
        row->operations = *ret_copy;
    }
    if (cursor)
        mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return code == MDB_NOTFOUND ? 0 : code;
}

/* What the visitor answers, or WB_OK where there is no row. */
static int visit_from(wb_storage_session *session, uint64_t *batch, uint64_t before, int *ret_found,
                      wb_pending_fn visit, void *argument, wb_error *error)
{
    wb_pending row = { sizeof row, 0, NULL, 0 };
    void *copy;
    int code = read_row(session, *batch, before, &row, &copy);
    *ret_found = copy != NULL;
    if (code != 0)
        return store_fail(session->persistence, code, "read pending operations", error);
    if (!copy)
        return WB_OK;
    *batch = row.batch;
    int result = visit(argument, &row);
    free(copy);
    return result;
}

int store_pending(wb_storage_session *session, const uint64_t *batches, size_t count, wb_pending_fn visit,
                  void *argument, wb_error *error)
{
    int result = WB_OK, found;
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        uint64_t batch = batches[i];
        if (batch < UINT64_MAX)
            result = visit_from(session, &batch, batch + 1, &found, visit, argument, error);
    }
    return result;
}

static int walk(wb_storage_session *session, uint64_t after, uint64_t before, size_t limit, wb_pending_fn visit,
                void *argument, wb_error *error)
{
    int result = WB_OK, found = 1;
    if (!store_try_visitor(session))
        return WB_OK;
    for (size_t i = 0; result == WB_OK && found && i < limit && after < UINT64_MAX; i++) {
        after++;
        result = visit_from(session, &after, before, &found, visit, argument, error);
    }
    store_unlock_visitor(session);
    return result;
}

int store_sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit, void *argument,
                wb_error *error)
{
    return walk(session, 0, before, limit, visit, argument, error);
}

int store_next_pending(wb_storage_session *session, uint64_t after, uint64_t before, wb_pending_fn visit,
                       void *argument, wb_error *error)
{
    return walk(session, after, before, 1, visit, argument, error);
}

/* ---- clean-up -------------------------------------------------------------------------------------- */

/* The first record by age from a key on, which becomes its key. */
static int find_record(MDB_txn *txn, MDB_dbi records, store_key *key)
{
    MDB_cursor *cursor;
    MDB_val k = store_value(key->bytes, key->size), v;
    int code = mdb_cursor_open(txn, records, &cursor);
    if (code != 0)
        return code;
    code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    if (code == 0 && *(const char *)k.mv_data != 'b')
        code = MDB_NOTFOUND;
    if (code == 0) {
        memcpy(key->bytes, k.mv_data, k.mv_size);
        key->size = k.mv_size;
    }
    mdb_cursor_close(cursor);
    return code;
}

/* Batches with a pending row are passed over. */
static int delete_old(wb_storage_session *session, MDB_txn *txn, uint64_t before, size_t limit, size_t *ret_deleted)
{
    store_key key, row;
    int code = 0;
    (void)store_batch_key(&key, 'b', 0, NULL, 0);
    while (*ret_deleted < limit && (code = find_record(txn, session->records, &key)) == 0) {
        const uint64_t batch = store_batch_of(key.bytes + 1);
        MDB_val k = store_batch_key(&row, 'p', batch, NULL, 0), v;
        if (batch >= before)
            break;
        code = mdb_get(txn, session->records, &k, &v);
        if (code == 0) {
            (void)store_batch_key(&key, 'b', batch + 1, NULL, 0);
            continue;
        }
        if (code != MDB_NOTFOUND || (code = store_remove_record(txn, session->records, batch, key.bytes + 9, key.size - 9)) != 0)
            break;
        ++*ret_deleted;
    }
    return code == MDB_NOTFOUND ? 0 : code;
}

/* While somebody writes there is no hurry: the host comes again. */
int store_clean_up(wb_storage_session *session, uint64_t before, size_t limit, size_t *ret_deleted,
                   wb_error *error)
{
    MDB_txn *txn = NULL;
    *ret_deleted = 0;
    int result = store_lock_writer(session, 0, error);
    if (result != WB_OK)
        return result == WB_RETRY ? WB_OK : result;
    size_t deleted = 0;
    int code = mdb_txn_begin(session->env, NULL, 0, &txn);
    if (code == 0)
        code = delete_old(session, txn, before, limit, &deleted);
    if (code == 0) {
        code = mdb_txn_commit(txn);
        txn = NULL;
    }
    if (txn)
        mdb_txn_abort(txn);
    store_unlock_writer(session);
    if (code != 0)
        return store_fail(session->persistence, code, "clean up", error);
    *ret_deleted = deleted;
    return WB_OK;
}

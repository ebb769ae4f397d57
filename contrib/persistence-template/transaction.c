/* SPDX-License-Identifier: Apache-2.0
 *
 * The transaction that a batch and its handlers share. LMDB has one writer a file, so whoever has
 * begun has all ids for itself.
 */
#include <errno.h>
#include <string.h>

#include "store.h"
#include "waybill-lmdb.h"

/* ---- keys --------------------------------------------------------------------------------------- */

MDB_val store_value(const void *data, size_t size)
{
    MDB_val value = { size, (void *)(uintptr_t)data }; /* LMDB's type for what it does not change, too */
    return value;
}

static void put_batch(unsigned char *at, uint64_t batch)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(batch >> (56 - 8 * i));
}

uint64_t store_batch_of(const void *eight_bytes)
{
    const unsigned char *at = (const unsigned char *)eight_bytes;
    uint64_t batch = 0;
    for (int i = 0; i < 8; i++)
        batch = batch << 8 | at[i];
    return batch;
}

MDB_val store_batch_key(store_key *key, char kind, uint64_t batch, const void *id, size_t id_size)
{
    key->bytes[0] = (unsigned char)kind;
    put_batch(key->bytes + 1, batch);
    if (id_size)
        memcpy(key->bytes + 9, id, id_size);
    key->size = 9 + id_size;
    return store_value(key->bytes, key->size);
}

static MDB_val id_key(store_key *key, const void *id, size_t id_size)
{
    key->bytes[0] = 'r';
    memcpy(key->bytes + 1, id, id_size);
    key->size = 1 + id_size;
    return store_value(key->bytes, key->size);
}

/* ---- records ------------------------------------------------------------------------------------ */

/* The record is the check: a key that is there already is kept, and says whose it is. */
static int claim(wb_storage_session *session, uint64_t batch, wb_claim *one)
{
    unsigned char number[8];
    store_key key;
    MDB_val k = id_key(&key, one->id, one->id_size), v = store_value(number, sizeof number);
    put_batch(number, batch);
    int code = mdb_put(session->txn, session->records, &k, &v, MDB_NOOVERWRITE);
    one->duplicate_of = 0;
    if (code == MDB_KEYEXIST) {
        one->duplicate_of = store_batch_of(v.mv_data);
        return 0;
    }
    if (code != 0)
        return code;
    k = store_batch_key(&key, 'b', batch, one->id, one->id_size);
    v = store_value(NULL, 0);
    return mdb_put(session->txn, session->records, &k, &v, 0);
}

int store_remove_record(MDB_txn *txn, MDB_dbi records, uint64_t batch, const void *id, size_t id_size)
{
    store_key key;
    MDB_val k = store_batch_key(&key, 'b', batch, id, id_size);
    int code = mdb_del(txn, records, &k, NULL);
    if (code != 0)
        return code == MDB_NOTFOUND ? 0 : code; /* the id is not that batch's */
    k = id_key(&key, id, id_size);
    return mdb_del(txn, records, &k, NULL);
}

/* ---- begin -------------------------------------------------------------------------------------- */

static void leave(wb_storage_session *session)
{
    if (session->txn)
        mdb_txn_abort(session->txn);
    session->txn = NULL;
    store_unlock_writer(session);
}

static int fail(wb_storage_session *session, int code, const char *doing, wb_error *error)
{
    leave(session);
    return store_fail(session->persistence, code, doing, error);
}

/* Each transaction is flushed; marks as part of the claims' (LMDB nests them) would save that. */
int store_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    int result = store_lock_writer(session, session->persistence->config->busy_timeout, error);
    if (result != WB_OK)
        return result;
    if (begin->mark_count)
        result = store_make_marks(session, begin->marks, begin->mark_count, error);
    if (result != WB_OK) {
        leave(session);
        return result;
    }
    session->spoilt = 0;
    int code = mdb_txn_begin(session->env, NULL, 0, &session->txn);
    for (size_t i = 0; code == 0 && begin->batch && i < begin->claim_count; i++)
        code = claim(session, begin->batch, &begin->claims[i]);
    if (code != 0)
        return fail(session, code, "claim message ids", error);
    session->persistence->host->crash_point("claim_sent");
    return WB_OK;
}

/* ---- what handlers do --------------------------------------------------------------------------- */

/* What is an answer leaves the transaction as it was; anything else may have spoilt it. The first says why: what
 * follows fails because of it. */
static int note(wb_storage_session *session, int code)
{
    if (!session->spoilt && code != 0 && code != MDB_NOTFOUND && code != MDB_KEYEXIST && code != MDB_BAD_VALSIZE && code != EINVAL)
        session->spoilt = code;
    return code;
}

static int get(void *argument, size_t item, const MDB_val *key, MDB_val *ret_value)
{
    wb_storage_session *session = (wb_storage_session *)argument;
    MDB_val k = *key;
    (void)item;
    return session->txn ? note(session, mdb_get(session->txn, session->data, &k, ret_value)) : EINVAL;
}

static int put(void *argument, size_t item, const MDB_val *key, const MDB_val *value, unsigned flags)
{
    wb_storage_session *session = (wb_storage_session *)argument;
    MDB_val k = *key, v = *value;
    (void)item;
    if (!session->txn || (flags & ~(unsigned)MDB_NOOVERWRITE))
        return EINVAL;
    return note(session, mdb_put(session->txn, session->data, &k, &v, flags));
}

static int remove_key(void *argument, size_t item, const MDB_val *key)
{
    wb_storage_session *session = (wb_storage_session *)argument;
    MDB_val k = *key;
    (void)item;
    return session->txn ? note(session, mdb_del(session->txn, session->data, &k, NULL)) : EINVAL;
}

const void *store_interface(wb_storage_session *session, const char *name)
{
    static const wb_lmdb_api api = { sizeof api, get, put, remove_key };
    (void)session;
    return strcmp(name, WB_LMDB_INTERFACE) == 0 ? &api : NULL;
}

/* Whatever the handler made of it: a full file is the file's trouble, not the message's. */
int store_check(wb_storage_session *session, size_t item, wb_error *error)
{
    (void)item;
    return session->spoilt ? store_fail(session->persistence, session->spoilt, "do what a handler asked for", error)
                           : WB_OK;
}

/* ---- commit ------------------------------------------------------------------------------------- */

static int store_row(wb_storage_session *session, const wb_commit *commit)
{
    store_key key;
    MDB_val k = store_batch_key(&key, 'p', commit->batch, NULL, 0);
    MDB_val v = store_value(commit->operations, commit->operations_size);
    return commit->operations ? mdb_put(session->txn, session->records, &k, &v, MDB_NOOVERWRITE) : 0;
}

static int commit_transaction(wb_storage_session *session, wb_error *error)
{
    const wb_host *host = session->persistence->host;
    MDB_txn *txn = session->txn;
    session->txn = NULL; /* it ends with the call, however that ends */
    host->crash_point("commit_sent");
    int code = mdb_txn_commit(txn);
    if (code == EIO) { /* of the last page, perhaps, which makes it all valid */
        leave(session);
        return host->fail(host, error, WB_IN_DOUBT, WB_CAUSE_SERVER, code, "could not tell whether a commit is in \"%s\"",
                          session->persistence->path);
    }
    if (code != 0)
        return fail(session, code, "commit", error);
    leave(session);
    return WB_OK;
}

int store_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    const wb_host *host = session->persistence->host;
    commit->failed_item = SIZE_MAX; /* nothing is deferred here */
    if (session->spoilt)
        return fail(session, session->spoilt, "do what a handler asked for", error);
    int code = store_row(session, commit);
    if (code == MDB_KEYEXIST) {
        leave(session);
        return host->fail(host, error, WB_ABORT, WB_CAUSE_OTHER, 0, "a batch of this number has a pending row");
    }
    for (size_t i = 0; code == 0 && i < commit->released_count; i++)
        code = store_remove_record(session->txn, session->records, commit->batch, commit->released[i].id,
                                   commit->released[i].id_size);
    return code == 0 ? commit_transaction(session, error) : fail(session, code, "store operations", error);
}

int store_rollback(wb_storage_session *session, wb_error *error)
{
    (void)error;
    leave(session);
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the plugin share.
 *
 * In an LMDB file: a database "data" with what handlers write, and one for each endpoint, whose keys are
 *
 *     r ID          -> batch       a deduplication record
 *     b BATCH ID    -> nothing     the same by age
 *     p BATCH       -> operations  a pending row
 *
 * with a batch as 8 bytes, the highest first: in the order of keys.
 */
#ifndef STORE_H
#define STORE_H

#include <lmdb.h>
#include <waybill/sys/persistence.h>

#define STORE_KEY_SIZE (1 + 8 + 255)

typedef struct store_config {
    const char *file;
    int64_t map_size;
    int64_t busy_timeout;
} store_config;

struct wb_persistence {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const store_config *config;
    char *path;     /* absolute: a handler may change the directory */
    char *locks;    /* the file beside it that is locked */
    char *database; /* of the endpoint */
    char *schema;
};

/* An open file: LMDB allows it once a process. */
typedef struct store_file store_file;

struct wb_storage_session {
    wb_persistence *persistence;
    store_file *file;
    MDB_env *env;
    MDB_dbi records, data;
    int lock;     /* a descriptor of its own: its locks exclude those of other sessions */
    MDB_txn *txn; /* between begin() and commit() */
    int spoilt;   /* LMDB's code: what a handler's call did to the transaction */
};

typedef struct store_key {
    unsigned char bytes[STORE_KEY_SIZE];
    size_t size;
} store_key;

/* ---- file.c: the file, its locks, its errors --------------------------------------------------- */

/* Fail with the class of LMDB's code, which may be an errno. */
int store_fail(const wb_persistence *persistence, int code, const char *doing, wb_error *error);

/* @return WB_FATAL with WB_CAUSE_MISSING where the databases are not there. */
int store_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error);
int store_install(wb_persistence *persistence, wb_error *error);
void store_close(wb_storage_session *session);

/* Lock for the only writer of the file, or return WB_RETRY when others have been at it for too long. */
int store_lock_writer(wb_storage_session *session, int64_t patience, wb_error *error);
void store_unlock_writer(wb_storage_session *session);
/* Whether this session alone visits pending rows of its endpoint. */
int store_try_visitor(wb_storage_session *session);
void store_unlock_visitor(wb_storage_session *session);

/* ---- transaction.c ------------------------------------------------------------------------------ */

MDB_val store_value(const void *data, size_t size);
MDB_val store_batch_key(store_key *key, char kind, uint64_t batch, const void *id, size_t id_size);
uint64_t store_batch_of(const void *eight_bytes);
/* Both keys of a record. LMDB's code. */
int store_remove_record(MDB_txn *txn, MDB_dbi records, uint64_t batch, const void *id, size_t id_size);

int store_begin(wb_storage_session *session, wb_begin *begin, wb_error *error);
int store_check(wb_storage_session *session, size_t item, wb_error *error);
int store_commit(wb_storage_session *session, wb_commit *commit, wb_error *error);
int store_rollback(wb_storage_session *session, wb_error *error);
const void *store_interface(wb_storage_session *session, const char *name);

/* ---- outbox.c ------------------------------------------------------------------------------------ */

/* Inside the writer's lock. */
int store_make_marks(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);
int store_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);
int store_pending(wb_storage_session *session, const uint64_t *batches, size_t count, wb_pending_fn visit,
                  void *argument, wb_error *error);
int store_sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit, void *argument,
                wb_error *error);
int store_next_pending(wb_storage_session *session, uint64_t after, uint64_t before, wb_pending_fn visit,
                       void *argument, wb_error *error);
int store_clean_up(wb_storage_session *session, uint64_t before, size_t limit, size_t *ret_deleted,
                   wb_error *error);

#endif

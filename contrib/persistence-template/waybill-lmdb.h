/* SPDX-License-Identifier: Apache-2.0
 *
 * The storage session of a handler over LMDB: keys and values, in the transaction of the batch.
 *
 *     int code = wb_lmdb_put(ctx, msg->id, msg->id_size, msg->body, msg->body_size, 0);
 *     if (code != 0)
 *         return wb_fail(ctx, WB_RETRY, "could not write the order: %s", mdb_strerror(code));
 *
 * All endpoints of a file share one set of keys. A handler is not handed the transaction: LMDB
 * gives no sign of one that somebody has ended, so that nobody could find it out.
 *
 * Change log: 1.0 first version.
 */
#ifndef WAYBILL_LMDB_H
#define WAYBILL_LMDB_H

#include <errno.h>
#include <lmdb.h>
#include <waybill/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the persistence offers through wb_handler_api.storage(). Results are 0, LMDB's codes, or an
 *  errno. Size first, append-only. */
#define WB_LMDB_INTERFACE "lmdb.1"
typedef struct wb_lmdb_api {
    size_t struct_size;
    /** *ret_value is valid until the next write of the handler's, and not after its return. */
    int (*get)(void *session, size_t item, const MDB_val *key, MDB_val *ret_value);
    /** `flags` of mdb_put(): 0 or MDB_NOOVERWRITE. */
    int (*put)(void *session, size_t item, const MDB_val *key, const MDB_val *value, unsigned flags);
    int (*remove)(void *session, size_t item, const MDB_val *key);
} wb_lmdb_api;

/** NULL when the endpoint's persistence is another one. */
static inline const wb_lmdb_api *wb_lmdb(wb_context *ctx, void **ret_session, size_t *ret_item)
{
    return (const wb_lmdb_api *)ctx->api->storage(ctx, WB_LMDB_INTERFACE, ret_session, ret_item);
}

/** Keys have 1 to 511 bytes. @return 0, MDB_NOTFOUND, or what went wrong; ENOTSUP without this persistence. */
static inline int wb_lmdb_get(wb_context *ctx, const void *key, size_t key_size, MDB_val *ret_value)
{
    void *session = NULL;
    size_t item = 0;
    const wb_lmdb_api *api = wb_lmdb(ctx, &session, &item);
    MDB_val k = { key_size, (void *)(uintptr_t)key };
    return api ? api->get(session, item, &k, ret_value) : ENOTSUP;
}

/** @return 0, MDB_KEYEXIST with MDB_NOOVERWRITE, or as above. */
static inline int wb_lmdb_put(wb_context *ctx, const void *key, size_t key_size, const void *value,
                              size_t value_size, unsigned flags)
{
    void *session = NULL;
    size_t item = 0;
    const wb_lmdb_api *api = wb_lmdb(ctx, &session, &item);
    MDB_val k = { key_size, (void *)(uintptr_t)key }, v = { value_size, (void *)(uintptr_t)value };
    return api ? api->put(session, item, &k, &v, flags) : ENOTSUP;
}

/** @return 0, MDB_NOTFOUND, or as above. */
static inline int wb_lmdb_remove(wb_context *ctx, const void *key, size_t key_size)
{
    void *session = NULL;
    size_t item = 0;
    const wb_lmdb_api *api = wb_lmdb(ctx, &session, &item);
    MDB_val k = { key_size, (void *)(uintptr_t)key };
    return api ? api->remove(session, item, &k) : ENOTSUP;
}

#ifdef __cplusplus
}
#endif
#endif

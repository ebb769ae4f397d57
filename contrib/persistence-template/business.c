/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data of this persistence, for `waybill conformance persistence --business`.
 */
#include <string.h>
#include <waybill/sys/business.h>

#include "waybill-lmdb.h"

static MDB_val value_of(const char *key)
{
    MDB_val value = { strlen(key), (void *)(uintptr_t)key };
    return value;
}

static const char *write_key(const void *interface, void *session, size_t item, const char *key)
{
    const wb_lmdb_api *api = (const wb_lmdb_api *)interface;
    MDB_val k = value_of(key), v = value_of("");
    const int code = api->put(session, item, &k, &v, 0);
    return code == 0 ? NULL : mdb_strerror(code);
}

static const char *read_key(const void *interface, void *session, size_t item, const char *key, int *ret_is_there)
{
    const wb_lmdb_api *api = (const wb_lmdb_api *)interface;
    MDB_val k = value_of(key), v;
    const int code = api->get(session, item, &k, &v);
    *ret_is_there = code == 0;
    return code == 0 || code == MDB_NOTFOUND ? NULL : mdb_strerror(code);
}

static const char *remove_key(const void *interface, void *session, size_t item, const char *key)
{
    const wb_lmdb_api *api = (const wb_lmdb_api *)interface;
    MDB_val k = value_of(key);
    const int code = api->remove(session, item, &k);
    return code == 0 ? NULL : mdb_strerror(code);
}

/* There is no place to make, and no way to end the transaction. */
static const wb_business business = { sizeof business, WB_LMDB_INTERFACE, NULL, write_key, read_key, NULL, remove_key };
WB_BUSINESS(business)

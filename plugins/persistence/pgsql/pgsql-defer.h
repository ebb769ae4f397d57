/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers get to write business data with: the plain connection and deferred
 * statements (waybill/pgsql.h), and the check of what they did with it.
 */
#ifndef PGSQL_DEFER_H
#define PGSQL_DEFER_H

#include <waybill/pgsql.h>
#include <waybill/sys/persistence.h>

#include "plugins/persistence/pgsql/pgsql-cache.h"
#include "plugins/persistence/pgsql/pgsql-guard.h"
#include "plugins/persistence/pgsql/pgsql-memory.h"

/** A statement that waits for the next round trip. */
typedef struct pgsql_deferred {
    struct pgsql_deferred *next;
    size_t item;
    pgsql_cached *cached; /* NULL: not worth preparing */
    const char *text;
    pgsql_leaves leaves;
    int count;
    const char *const *values;
    const int *lengths; /* NULL: all text */
    const int *formats; /* NULL: all text */
    const Oid *types;   /* NULL: all inferred */
} pgsql_deferred;

/** All zero is empty. */
typedef struct pgsql_defer {
    pgsql_arena arena;
    pgsql_deferred *first;
    pgsql_deferred *last;
    pgsql_cache cache;
} pgsql_defer;

/** The table behind WB_PGSQL_INTERFACE. */
extern const wb_pgsql_api pgsql_api;

/** Queue everything that was deferred, into a started exchange. */
void pgsql_defer_queue(wb_storage_session *session);
/** Forget what was deferred; after the exchange, or instead of it. */
void pgsql_defer_reset(wb_storage_session *session);
void pgsql_defer_free(pgsql_defer *defer);

/** wb_persistence_ops.interface. */
const void *pgsql_interface(wb_storage_session *session, const char *name);

/** Is the transaction still as it must be, as far as this side knows? Records what is
 *  wrong in session->sql.failure. */
int pgsql_defer_inspect(wb_storage_session *session);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * From an SQLSTATE to Waybill's result class and cause, and so to whose fault it is
 * (waybill/sys/plugin.h).
 *
 * The same code means different things for a handler's statement and for ours: a table
 * the handler misspelt is that message's failure, a missing outbox table is the
 * endpoint's. COMMIT counts as the handler's: what fails there was deferred to it, a
 * constraint or a trigger, or is the server's trouble.
 */
#ifndef PGSQL_MAP_H
#define PGSQL_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct pgsql_mapping {
    const char *sqlstate; /* five characters, or the first two for the whole class */
    int handler;          /* WB_x class when a handler's statement, or COMMIT, failed */
    int handler_cause;    /* WB_CAUSE_x for it */
    int own;              /* WB_x class when ours, or the connecting, failed */
    int own_cause;        /* WB_CAUSE_x for it */
} pgsql_mapping;

/** The row for an SQLSTATE: the one for the code, else the one for its class, else the
 *  last, which stands for all others. Never NULL. */
const pgsql_mapping *pgsql_map(const char *sqlstate);

/** The SQLSTATE as a number: its five characters are digits of base 36. */
int64_t pgsql_native_code(const char *sqlstate);

#endif

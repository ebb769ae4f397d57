/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-map.h"

#include <stdlib.h>
#include <string.h>

#include <waybill/sys/plugin.h>

/* A handler's statement. Data errors are retried, not rejected: 23505 may be a serialization
 * failure in disguise, and what a later attempt reads may differ; the host's limit of attempts
 * leads to the error queue either way. */
#define MESSAGE WB_RETRY, WB_CAUSE_OTHER
#define SERVER WB_RETRY, WB_CAUSE_SERVER
#define NOBODY WB_ABORT, WB_CAUSE_OTHER
/* Ours: what is no message's doing waits for the server. */
#define AWAY WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE
#define CROWDED WB_NOT_CONNECTED, WB_CAUSE_SERVER
#define RENEW WB_NOT_CONNECTED, WB_CAUSE_OTHER
#define ENDPOINT(cause) WB_FATAL, cause

/* A code stands before its class. A server that ends the session (severity FATAL) is
 * WB_NOT_CONNECTED whatever the code: the handler's column is for sessions that live, as after an
 * error that a foreign server's wrapper passed on. */
static const pgsql_mapping mappings[] = {
    /* connection: in a handler's statement that of a foreign table, say. A pooler that has too many
     * connections, or no server, answers with this one */
    { "08P01", MESSAGE, CROWDED },
    { "08", MESSAGE, AWAY },
    /* behind a pooler, or after DISCARD ALL, a prepared statement of ours may be gone */
    { "26000", MESSAGE, RENEW },
    { "26", MESSAGE, ENDPOINT(WB_CAUSE_OTHER) },
    /* "cached plan must not change result type": prepared again, it works */
    { "0A000", MESSAGE, RENEW },
    { "0A", MESSAGE, ENDPOINT(WB_CAUSE_OTHER) },
    { "22", MESSAGE, ENDPOINT(WB_CAUSE_CONFIG) },
    /* the batch's number was used before */
    { "23505", MESSAGE, NOBODY },
    /* a standby, or a primary that became one: another server must be found. Not in a handler's
     * statement: begin has asked already, so that transaction is read only by its own will; nor in
     * ours behind a handler's (pgsql_guard_met_read_only()) */
    { "25006", MESSAGE, AWAY },
    { "25P03", MESSAGE, RENEW },
    { "28", MESSAGE, ENDPOINT(WB_CAUSE_REFUSED) },
    { "3D000", MESSAGE, ENDPOINT(WB_CAUSE_MISSING) },
    { "3F000", MESSAGE, ENDPOINT(WB_CAUSE_MISSING) },
    { "40003", NOBODY, WB_IN_DOUBT, WB_CAUSE_OTHER },
    { "40", NOBODY, NOBODY },
    { "42501", MESSAGE, ENDPOINT(WB_CAUSE_REFUSED) },
    { "42P01", MESSAGE, ENDPOINT(WB_CAUSE_MISSING) },
    { "42", MESSAGE, ENDPOINT(WB_CAUSE_MISMATCH) },
    /* disk full, out of memory, too many connections, a configured limit */
    { "53300", SERVER, CROWDED },
    { "53", SERVER, SERVER },
    { "54", MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE },
    /* a neighbour holds the lock */
    { "55P03", SERVER, SERVER },
    /* canceled: by an operator, by statement_timeout, by a standby's recovery. The code does not
     * say which, and a statement's time is its server's, its neighbours' and its own; whether
     * others get through meanwhile is for the host to see */
    { "57014", SERVER, SERVER },
    { "57P04", SERVER, WB_NOT_CONNECTED, WB_CAUSE_MISSING },
    { "57", SERVER, AWAY },
    /* the server's files and memory */
    { "58", SERVER, SERVER },
    { "", MESSAGE, SERVER },
};

const pgsql_mapping *pgsql_map(const char *sqlstate)
{
    const pgsql_mapping *mapping = mappings;
    while (strncmp(sqlstate, mapping->sqlstate, strlen(mapping->sqlstate)) != 0)
        mapping++;
    return mapping;
}

int64_t pgsql_native_code(const char *sqlstate)
{
    return strtoll(sqlstate, NULL, 36);
}

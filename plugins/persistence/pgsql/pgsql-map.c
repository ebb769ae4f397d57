/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-map.h"

#include <stdlib.h>
#include <string.h>

#include <waybill/sys/plugin.h>

/* A code stands before its class. Data errors of a handler are retried, not rejected:
 * 23505 may be a serialization failure in disguise, and what a later attempt reads may
 * differ; the host's limit of attempts leads to the error queue either way. */
static const pgsql_mapping mappings[] = {
    /* connection */
    { "08", WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
    /* behind a pooler, or after DISCARD ALL, a prepared statement may be gone */
    { "26000", WB_ABORT, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { "26", WB_RETRY, WB_FATAL, WB_CAUSE_OTHER },
    /* "cached plan must not change result type": prepared again, it works */
    { "0A000", WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { "0A", WB_RETRY, WB_FATAL, WB_CAUSE_OTHER },
    { "21", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "22", WB_RETRY, WB_FATAL, WB_CAUSE_CONFIG },
    { "23505", WB_RETRY, WB_ABORT, WB_CAUSE_OTHER },
    { "23", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    /* a standby, or a primary that became one: another server must be found */
    { "25006", WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
    { "25P03", WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { "25", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "28", WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED },
    { "3D000", WB_RETRY, WB_FATAL, WB_CAUSE_MISSING },
    { "3F000", WB_RETRY, WB_FATAL, WB_CAUSE_MISSING },
    { "40003", WB_ABORT, WB_IN_DOUBT, WB_CAUSE_OTHER },
    { "40", WB_ABORT, WB_ABORT, WB_CAUSE_OTHER },
    { "42501", WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED },
    { "42P01", WB_RETRY, WB_FATAL, WB_CAUSE_MISSING },
    { "42", WB_RETRY, WB_FATAL, WB_CAUSE_MISMATCH },
    { "53300", WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
    { "53", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "54", WB_RETRY, WB_REJECT, WB_CAUSE_TOO_LARGE },
    { "55P03", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "55", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "57014", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "57P04", WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_MISSING },
    { "57", WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
    { "58", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "XX", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
    { "", WB_RETRY, WB_RETRY, WB_CAUSE_OTHER },
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-map.h"

#include <waybill/sys/plugin.h>

#define IN_DOUBT 0

/* Data errors of a handler are retried, not rejected: what a later attempt reads may
 * differ; the host's limit of attempts leads to the error queue either way. */
static const mys_mapping mappings[] = {
    /* the server is full, or goes down, or a KILL hit the session */
    { 1040, WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* all taken */
    { 1203, WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* this user's */
    { 1226, WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* this user's */
    { 1053, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* shutdown */
    { 1927, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* killed */
    { 1129, WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* host blocked */
    { 4031, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* was idle */
    /* locks. A lock wait that ended rolls back its statement only, a deadlock everything:
     * either way the batch is run again from its start */
    { 1205, WB_ABORT, WB_RETRY, WB_CAUSE_OTHER, WB_RETRY },
    { 1213, WB_ABORT, WB_ABORT, WB_CAUSE_OTHER, WB_ABORT },
    { 1020, WB_ABORT, WB_ABORT, WB_CAUSE_OTHER, WB_ABORT }, /* record changed since last read */
    { 1206, WB_ABORT, WB_ABORT, WB_CAUSE_OTHER, WB_ABORT }, /* lock table is full */
    { 1614, WB_ABORT, WB_ABORT, WB_CAUSE_OTHER, WB_ABORT }, /* rolled back by the server */
    { 3572, WB_RETRY, WB_RETRY, WB_CAUSE_OTHER, IN_DOUBT }, /* NOWAIT */
    /* a replica, or a primary that became one: another server must be found */
    { 1290, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, WB_NOT_CONNECTED },
    { 1836, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, WB_NOT_CONNECTED },
    { 1792, WB_RETRY, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, WB_NOT_CONNECTED },
    { 1047, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, IN_DOUBT }, /* no quorum */
    /* who may what */
    { 1045, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1698, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1044, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1130, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1142, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1143, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1227, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1370, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 3118, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT }, /* account locked */
    { 4151, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    { 1820, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT }, /* password expired */
    { 1862, WB_RETRY, WB_FATAL, WB_CAUSE_REFUSED, IN_DOUBT },
    /* what is there */
    { 1049, WB_RETRY, WB_FATAL, WB_CAUSE_MISSING, IN_DOUBT },
    { 1146, WB_RETRY, WB_FATAL, WB_CAUSE_MISSING, IN_DOUBT },
    { 1054, WB_RETRY, WB_FATAL, WB_CAUSE_MISMATCH, IN_DOUBT },
    { 1136, WB_RETRY, WB_FATAL, WB_CAUSE_MISMATCH, IN_DOUBT },
    { 1364, WB_RETRY, WB_FATAL, WB_CAUSE_MISMATCH, IN_DOUBT },
    { 1406, WB_RETRY, WB_FATAL, WB_CAUSE_MISMATCH, IN_DOUBT }, /* too long for the column */
    { 1665, WB_RETRY, WB_FATAL, WB_CAUSE_CONFIG, IN_DOUBT },   /* binlog_format is STATEMENT */
    { 1064, WB_RETRY, WB_FATAL, WB_CAUSE_OTHER, IN_DOUBT },
    { 1153, WB_RETRY, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1301, WB_RETRY, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1118, WB_RETRY, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1062, WB_RETRY, WB_ABORT, WB_CAUSE_OTHER, IN_DOUBT },
    { 0, WB_RETRY, WB_RETRY, WB_CAUSE_OTHER, IN_DOUBT },
};

const mys_mapping *mys_map(unsigned code)
{
    const mys_mapping *mapping = mappings;
    while (mapping->code && mapping->code != code)
        mapping++;
    return mapping;
}

int mys_is_client_error(unsigned code)
{
    return (code >= 2000 && code < 3000) || (code >= 5000 && code < 6000);
}

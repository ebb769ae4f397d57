/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-map.h"

#include <string.h>
#include <waybill/sys/plugin.h>

#define IN_DOUBT 0

/* A handler's statement. Data errors are retried, not rejected: what a later attempt reads may
 * differ; the host's limit of attempts leads to the error queue either way. */
#define MESSAGE WB_RETRY, WB_CAUSE_OTHER
#define SERVER WB_RETRY, WB_CAUSE_SERVER
#define NOBODY WB_ABORT, WB_CAUSE_OTHER
/* Ours: what is no message's doing waits for the server. */
#define AWAY WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE
#define CROWDED WB_NOT_CONNECTED, WB_CAUSE_SERVER
#define ENDPOINT(cause) WB_FATAL, cause

static const mys_mapping mappings[] = {
    /* disk, files and memory; below 1000 are those of the server's file layer */
    { 2, SERVER, SERVER, IN_DOUBT },    /* reading a file */
    { 3, SERVER, SERVER, IN_DOUBT },    /* writing one: errno 28, no space left */
    { 5, SERVER, SERVER, IN_DOUBT },    /* out of memory */
    { 20, SERVER, SERVER, IN_DOUBT },   /* disk full */
    { 23, SERVER, SERVER, IN_DOUBT },   /* out of file descriptors */
    { 1016, SERVER, SERVER, IN_DOUBT }, /* opening a file */
    { 1021, SERVER, SERVER, IN_DOUBT }, /* disk full */
    { 1024, SERVER, SERVER, IN_DOUBT }, /* reading a file */
    { 1026, SERVER, SERVER, IN_DOUBT }, /* writing one: temporary, or the binary log's */
    { 1030, SERVER, SERVER, IN_DOUBT }, /* "Got error 28 from storage engine" and the like */
    { 1034, SERVER, SERVER, IN_DOUBT }, /* what a full disk leaves of a temporary table */
    { 1037, SERVER, SERVER, IN_DOUBT }, /* out of memory */
    { 1038, SERVER, SERVER, IN_DOUBT }, /* of memory to sort in */
    { 1041, SERVER, SERVER, IN_DOUBT }, /* of memory */
    { 1114, SERVER, SERVER, IN_DOUBT }, /* the table is full: disk, or the files' limit */
    { 1135, SERVER, AWAY, IN_DOUBT },   /* no more threads */
    { 1598, SERVER, SERVER, IN_DOUBT }, /* the binary log cannot be written */
    { 1637, SERVER, SERVER, IN_DOUBT }, /* too many transactions */
    { 3019, SERVER, SERVER, IN_DOUBT }, /* the undo log is full */
    /* all connections are taken, the server goes down, or a KILL hit the session */
    { 1040, SERVER, CROWDED, IN_DOUBT }, /* all */
    { 1203, SERVER, CROWDED, IN_DOUBT }, /* this user's */
    { 1226, SERVER, CROWDED, IN_DOUBT }, /* this user's, of an hour */
    { 1053, AWAY, AWAY, IN_DOUBT },   /* shutdown */
    { 1927, AWAY, AWAY, IN_DOUBT },   /* killed */
    { 3169, AWAY, AWAY, IN_DOUBT },   /* killed */
    { 1129, MESSAGE, AWAY, IN_DOUBT }, /* host blocked */
    { 4031, AWAY, AWAY, IN_DOUBT },   /* was idle */
    /* canceled: by an operator, or by a time limit. A statement's time is its server's, its
     * neighbours' and its own; whether others get through meanwhile is for the host to see */
    { 1317, SERVER, SERVER, IN_DOUBT },
    { 1969, SERVER, SERVER, IN_DOUBT }, /* max_statement_time */
    { 3024, SERVER, SERVER, IN_DOUBT }, /* max_execution_time */
    /* locks of a neighbour. A wait that ended rolls back its statement only, so that what is left
     * is half: the batch is run again from its start */
    { 1205, SERVER, SERVER, WB_RETRY },
    { 1206, SERVER, SERVER, WB_RETRY }, /* the table of locks is full */
    { 3572, SERVER, SERVER, IN_DOUBT }, /* NOWAIT */
    { 1213, NOBODY, NOBODY, WB_ABORT },
    { 1020, NOBODY, NOBODY, WB_ABORT }, /* record changed since last read */
    { 1614, NOBODY, NOBODY, WB_ABORT }, /* rolled back by the server */
    { 3101, NOBODY, NOBODY, WB_ABORT }, /* certification failed in the group */
    /* a replica, or a primary that became one: another server must be found. For a handler's
     * statement the next begin finds out: the numbers also stand for other options */
    { 1290, SERVER, AWAY, WB_NOT_CONNECTED },
    { 1836, SERVER, AWAY, WB_NOT_CONNECTED },
    { 1792, MESSAGE, AWAY, WB_NOT_CONNECTED },
    { 1047, AWAY, AWAY, IN_DOUBT }, /* no quorum */
    /* who may what */
    { 1045, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1698, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1044, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1130, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1142, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1143, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1227, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1370, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 3118, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT }, /* account locked */
    { 4151, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    { 1820, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT }, /* password expired */
    { 1862, MESSAGE, ENDPOINT(WB_CAUSE_REFUSED), IN_DOUBT },
    /* what is there */
    { 1049, MESSAGE, ENDPOINT(WB_CAUSE_MISSING), IN_DOUBT },
    { 1146, MESSAGE, ENDPOINT(WB_CAUSE_MISSING), IN_DOUBT },
    { 1054, MESSAGE, ENDPOINT(WB_CAUSE_MISMATCH), IN_DOUBT },
    { 1136, MESSAGE, ENDPOINT(WB_CAUSE_MISMATCH), IN_DOUBT },
    { 1364, MESSAGE, ENDPOINT(WB_CAUSE_MISMATCH), IN_DOUBT },
    { 1406, MESSAGE, ENDPOINT(WB_CAUSE_MISMATCH), IN_DOUBT }, /* too long for the column */
    { 1665, MESSAGE, ENDPOINT(WB_CAUSE_CONFIG), IN_DOUBT },   /* binlog_format is STATEMENT */
    { 1064, MESSAGE, ENDPOINT(WB_CAUSE_OTHER), IN_DOUBT },
    { 1153, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1301, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1118, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, IN_DOUBT },
    { 1062, MESSAGE, NOBODY, IN_DOUBT }, /* the batch's number was used before */
    { 0, MESSAGE, SERVER, IN_DOUBT },
};

const mys_mapping *mys_map(unsigned code)
{
    const mys_mapping *mapping = mappings;
    while (mapping->code && mapping->code != code)
        mapping++;
    return mapping;
}

#define OPTION_PREVENTS_STATEMENT 1290

/* The option's name stands in the text whatever its language: --read-only and --super-read-only
 * are the server's affair; --secure-file-priv and such are the statement's. */
const mys_mapping *mys_map_error(unsigned code, const char *text)
{
    static const mys_mapping of_the_statement = { OPTION_PREVENTS_STATEMENT, MESSAGE, AWAY,
                                                  WB_NOT_CONNECTED };
    if (code != OPTION_PREVENTS_STATEMENT || strstr(text, "read-only") || strstr(text, "read_only"))
        return mys_map(code);
    return &of_the_statement;
}

int mys_is_client_error(unsigned code)
{
    return (code >= 2000 && code < 3000) || (code >= 5000 && code < 6000);
}

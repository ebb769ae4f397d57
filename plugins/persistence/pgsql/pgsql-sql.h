/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements of the outbox. Parameters and results are in binary format.
 */
#ifndef PGSQL_SQL_H
#define PGSQL_SQL_H

#include "plugins/persistence/pgsql/pgsql-names.h"

typedef enum pgsql_sql {
    /* prepared once a session: one batch after the other uses them */
    PGSQL_SQL_BEGIN,
    PGSQL_SQL_CLAIM,  /* keys bytea[], batch bigint -> key of each claim made, in order */
    PGSQL_SQL_STORE,  /* batch bigint, operations bytea */
    PGSQL_SQL_MARK,   /* batches bigint[] */
    PGSQL_SQL_COMMIT,
    PGSQL_SQL_PREPARED, /* number of the above */
    /* rare */
    PGSQL_SQL_ROLLBACK = PGSQL_SQL_PREPARED,
    PGSQL_SQL_SETTINGS, /* lock_timeout, statement_timeout text (milliseconds; NULL: leave),
                           whether for the transaction only boolean */
    PGSQL_SQL_LOOKUP,   /* keys bytea[] -> position from 1 bigint, batch bigint */
    PGSQL_SQL_RELEASE,  /* keys bytea[], batch bigint */
    PGSQL_SQL_SHRINK,   /* batch bigint, operations bytea */
    PGSQL_SQL_PENDING,  /* batches bigint[] -> batch bigint, operations bytea */
    PGSQL_SQL_NEXT,     /* from bigint, before bigint, lock bigint -> as PENDING, one at most */
    PGSQL_SQL_CLEAN_UP, /* before bigint, limit bigint, lock bigint */
    PGSQL_SQL_CLOCK,    /* -> now timestamptz */
    PGSQL_SQL_FUTURE,   /* from bigint, limit bigint -> records, rows (the limit at most), newest:
                           all bigint */
    PGSQL_SQL_COUNT
} pgsql_sql;

/** The statement with its tables' names in it, in memory of malloc(), or NULL. */
char *pgsql_sql_text(const wb_sql_names *names, pgsql_sql which);

#endif

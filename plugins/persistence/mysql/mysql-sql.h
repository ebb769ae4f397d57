/* SPDX-License-Identifier: Apache-2.0
 *
 * The statements of the outbox: their fixed parts. Values are written between them as
 * literals (mysql-memory.h).
 */
#ifndef MYSQL_SQL_H
#define MYSQL_SQL_H

#include "plugins/persistence/mysql/mysql-names.h"

typedef enum mys_sql {
    MYS_SQL_BEGIN,
    MYS_SQL_COMMIT,
    MYS_SQL_ROLLBACK,
    MYS_SQL_CLAIM,      /* (id, batch), ... CLAIM_END */
    MYS_SQL_CLAIM_END,
    MYS_SQL_LOOKUP,     /* id, ... LIST_END -> id, batch */
    MYS_SQL_STORE,      /* batch, operations LIST_END */
    MYS_SQL_RELEASE,    /* batch RELEASE_IDS id, ... LIST_END */
    MYS_SQL_RELEASE_IDS,
    MYS_SQL_MARK,       /* batch, ... LIST_END */
    MYS_SQL_SHRINK,     /* operations SHRINK_BATCH batch */
    MYS_SQL_SHRINK_BATCH,
    MYS_SQL_PENDING,    /* batch, ... LIST_END -> batch, operations */
    MYS_SQL_NEXT,       /* from NEXT_BEFORE before NEXT_END -> as PENDING, one at most */
    MYS_SQL_NEXT_BEFORE,
    MYS_SQL_NEXT_END,
    MYS_SQL_CLEAN_UP,   /* before CLEAN_UP_LIMIT limit */
    MYS_SQL_CLEAN_UP_LIMIT,
    MYS_SQL_CLOCK,      /* -> microseconds since 1970 UTC */
    MYS_SQL_FUTURE,     /* from FUTURE_PENDING from FUTURE_END -> records, rows, newest */
    MYS_SQL_FUTURE_PENDING,
    MYS_SQL_FUTURE_END,
    MYS_SQL_LIST_END,
    MYS_SQL_COUNT
} mys_sql;

/** The text with its tables' names in it, in memory of malloc(), or NULL. */
char *mys_sql_text(const wb_sql_names *names, mys_sql which);

#endif

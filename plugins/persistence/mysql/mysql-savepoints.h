/* SPDX-License-Identifier: Apache-2.0
 *
 * Which savepoints handlers set (plugins/common/savepoints.h). No answer of the server tells, so their statements are read on
 * their way: while a handler has the connection the library calls a method of ours. Not seen is what a procedure does inside, or
 * a statement that is prepared when it is executed; nor anything where the library is not of the version (3.3, 3.4) that we were built with.
 */
#ifndef MYSQL_SAVEPOINTS_H
#define MYSQL_SAVEPOINTS_H

#include <mysql.h>

#include "plugins/common/savepoints.h"

/** All zero: no handler had the connection yet. */
typedef struct mys_savepoints {
    wb_common_savepoints seen;
    const struct st_mariadb_methods *library;
    struct st_mariadb_methods listening; /* the library's but for one */
} mys_savepoints;

/** Statements are the handler's of this message from now on. `of` stays where it is until mys_savepoints_ignore(). */
void mys_savepoints_listen(mys_savepoints *of, MYSQL *connection, size_t item);
/** They are ours again. Any number of times. */
void mys_savepoints_ignore(mys_savepoints *of, MYSQL *connection);
/** The transaction is over. */
void mys_savepoints_forget(mys_savepoints *of);

#endif

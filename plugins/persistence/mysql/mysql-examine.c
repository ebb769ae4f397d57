/* SPDX-License-Identifier: Apache-2.0
 *
 * What examine() asks MySQL and MariaDB. Of settings that lose commits verify() warns (mysql-verify.c).
 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-driver.h"

#define CONNECTIONS(allowed, what, remedy)                                                                    \
    "SELECT 2, 'connections', CONCAT('a process of this endpoint has up to {sessions} connections, and " what " ', " allowed \
    ", ': workers that get none wait, and their messages with them'), " remedy " FROM DUAL WHERE " allowed " < {sessions}"

static const char connections[] =
    CONNECTIONS("@@GLOBAL.max_connections", "the server allows",
                "CONCAT('SET GLOBAL max_connections = ', 2 * {sessions} + 20, ', and the same in my.cnf; or a lower "
                "concurrency')");

/* 0 is no limit; that of an account counts in the session. */
static const char user_connections[] =
    CONNECTIONS("@@SESSION.max_user_connections", "its user may have",
                "CONCAT('ALTER USER ''', REPLACE(CURRENT_USER(), '@', '''@'''), ''' WITH MAX_USER_CONNECTIONS ', "
                "2 * {sessions})")
    " AND @@SESSION.max_user_connections > 0";

#define TIMEOUT(name)                                                                                        \
    "SELECT 2, 'transaction-timeout', CONCAT('" name " is ', @@GLOBAL." name ", ' s: the server ends the connection of a " \
    "handler that works longer between two statements, and its message begins anew each time'), "            \
    "'SET GLOBAL " name " = 0, and the same in my.cnf' FROM DUAL WHERE @@GLOBAL." name " BETWEEN 1 AND 60"

/* MariaDB's. */
static const char idle[] = TIMEOUT("idle_transaction_timeout");
static const char idle_write[] = TIMEOUT("idle_write_transaction_timeout");

const char *const mys_questions[] = { connections, user_connections, idle, idle_write, NULL };

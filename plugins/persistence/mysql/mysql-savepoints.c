/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-savepoints.h"

#include <stddef.h>

static mys_savepoints *of_connection(MYSQL *c)
{
    return (mys_savepoints *)((char *)c->methods - offsetof(mys_savepoints, listening));
}

/* Called for whatever goes to the server. */
static int on_command(MYSQL *c, enum enum_server_command command, const char *text, size_t size, my_bool skip_check,
                      void *argument)
{
    mys_savepoints *of = of_connection(c);
    if (command == COM_QUERY || command == COM_STMT_PREPARE)
        wb_common_savepoints_hear(&of->seen, text, size);
    return of->library->db_command(c, command, text, size, skip_check, argument);
}

/* A later library may have more methods than the header we were built with, and would call what stands behind ours. */
static int is_table_known(void)
{
    return mysql_get_client_version() / 100 == MARIADB_PACKAGE_VERSION_ID / 100;
}

void mys_savepoints_listen(mys_savepoints *of, MYSQL *c, size_t item)
{
    wb_common_savepoints_hand_out(&of->seen, item);
    if (!is_table_known())
        return;
    mys_savepoints_ignore(of, c);
    of->library = c->methods;
    of->listening = *c->methods;
    of->listening.db_command = on_command;
    c->methods = &of->listening;
}

void mys_savepoints_ignore(mys_savepoints *of, MYSQL *c)
{
    if (c->methods == &of->listening)
        c->methods = of->library;
}

void mys_savepoints_forget(mys_savepoints *of)
{
    of->seen = (wb_common_savepoints){ 0 };
}

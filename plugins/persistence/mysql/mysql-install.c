/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>

#include "plugins/common/sql/schema.h"
#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-driver.h"

#define INSTALL_LOCK_SECONDS "60"

/* Of two installations one waits. The lock goes with the connection. */
int mys_prepare_install(wb_storage_session *s, unsigned *ret_holds)
{
    char name[MYS_LOCK_NAME_SIZE];
    char text[128];
    wb_sql_answer answer = { 0 };
    wb_sql_cell cell;

    *ret_holds = 0;
    mys_lock_name(&wb_sql_of(s)->outbox->names, "install", "", name);
    (void)snprintf(text, sizeof text, "SELECT GET_LOCK('%s', " INSTALL_LOCK_SECONDS ")", name);
    int result = wb_sql_schema_run(s, text, &answer);
    if (result == WB_OK && (!mys_fetch(&answer, &cell, 1) || mys_number(&cell) != 1))
        result = wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM,
                             "another installation has run for " INSTALL_LOCK_SECONDS " seconds");
    mys_clear(&answer);
    return result;
}

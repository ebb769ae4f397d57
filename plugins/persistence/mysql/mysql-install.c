/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/common/sql/removal.h"
#include "plugins/common/sql/schema.h"
#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-driver.h"
#include "plugins/persistence/mysql/mysql-session.h"

#define INSTALL_LOCK_SECONDS "60"

/* Of an earlier or later version: what is there is not replaced by IF NOT EXISTS. */
#define IS_OTHER(name)                                                                             \
    "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {database} "          \
    "AND ROUTINE_NAME = CONCAT({prefix}, '_" name "') AND ROUTINE_COMMENT <> '" MYS_PROCEDURES "'"

static const struct procedure {
    const char *name, *is_other, *drop;
} procedures[] = {
    { "write", IS_OTHER("write"), "DROP PROCEDURE {write}" },
    { "send", IS_OTHER("send"), "DROP PROCEDURE {send}" },
    { "publish", IS_OTHER("publish"), "DROP PROCEDURE {publish}" },
    { "claim", IS_OTHER("claim"), "DROP PROCEDURE {claim}" },
};

static int drop_if_other(wb_storage_session *s, const struct procedure *procedure)
{
    const wb_host *host = s->host;
    wb_sql_answer answer = { 0 };
    wb_sql_cell cell;
    int result = wb_sql_schema_run(s, procedure->is_other, &answer);
    const int is_other = result == WB_OK && mys_fetch(&answer, &cell, 1) && mys_number(&cell) > 0;
    mys_clear(&answer);
    if (!is_other)
        return result;
    result = wb_sql_schema_run(s, procedure->drop, NULL);
    if (result == WB_OK)
        host->log(host, WB_LOG_WARNING, "a procedure is made anew: users that may call it need a grant again",
                  (const wb_field[]){ { "endpoint", wb_sql_of(s)->outbox->names.endpoint }, { "procedure", procedure->name } }, 2);
    return result;
}

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
    for (size_t i = 0; result == WB_OK && wb_sql_of(s)->outbox->sql_api && i < sizeof procedures / sizeof *procedures; i++)
        result = drop_if_other(s, &procedures[i]);
    return result;
}

/* ---- another name ---------------------------------------------------------------------- */

#define IS_THERE(name)                                                                             \
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {database} "              \
    "AND TABLE_NAME = CONCAT(|{prefix}|, '_" name "')"
#define TABLE(name) { IS_THERE(name), "|{" name "}| TO {" name "}" }

static const struct renamed {
    const char *is_there, *renaming;
} tables[] = {
    TABLE("dedup"), TABLE("pending"), TABLE("delayed"), TABLE("written"), TABLE("lanes"), TABLE("positions"),
    TABLE("subscribed"), TABLE("failed"),
};
#define TABLES (sizeof tables / sizeof *tables)

static int is_there(wb_storage_session *s, const wb_sql_names *former, const struct renamed *table, int *ret_is_there)
{
    wb_sql_answer answer = { 0 };
    wb_sql_cell cell;
    int result = wb_sql_rename_run(s, former, table->is_there, &answer);
    *ret_is_there = result == WB_OK && mys_fetch(&answer, &cell, 1) && mys_number(&cell) > 0;
    mys_clear(&answer);
    return result;
}

int mys_has_tables(wb_storage_session *s, const wb_sql_names *names, int *ret_has)
{
    return is_there(s, names, &tables[0], ret_has);
}

/* One statement, which is done whole or not at all; but what says whose they are are others. Whoever died between them
 * finds the tables renamed, and goes on. */
int mys_rename_tables(wb_storage_session *s, const wb_sql_names *former)
{
    char text[TABLES * 48 + 16] = "RENAME TABLE ";
    size_t count = 0;
    int result = WB_OK, found;
    for (size_t i = 0; i < TABLES && result == WB_OK; i++) {
        result = is_there(s, former, &tables[i], &found);
        if (result == WB_OK && found) {
            (void)strcat(strcat(text, count ? ", " : ""), tables[i].renaming);
            count++;
        }
    }
    return result == WB_OK && count ? wb_sql_rename_run(s, former, text, NULL) : result;
}

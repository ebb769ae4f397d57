/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/common/sql/schema.h"
#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"

#define SELECT_CONDITIONS                                                                          \
    "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = {database}), "         \
    "EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression' "         \
    "AND 'lz4' = ANY (enumvals)), "                                                                \
    "(SELECT pg_catalog.format('user \"%s\" may make no tables in schema %I: grant CREATE', "       \
    "current_user, nspname) FROM pg_catalog.pg_namespace WHERE nspname = {database} "              \
    "AND NOT pg_catalog.has_schema_privilege(oid, 'CREATE'))"

/* IF NOT EXISTS alone fails when two installations create the same table at once. */
static int lock_out_others(wb_storage_session *session)
{
    char text[96];
    (void)snprintf(text, sizeof text, "SELECT pg_catalog.pg_advisory_xact_lock(%" PRId64 ")",
                   pgsql_lock_key(&wb_sql_of(session)->outbox->names, "install", ""));
    return wb_sql_schema_run(session, text, NULL);
}

int pgsql_prepare_install(wb_storage_session *session, unsigned *ret_holds)
{
    wb_sql_answer row = { 0 };
    wb_sql_cell cells[3];
    int result = wb_sql_schema_run(session, "BEGIN", NULL);

    if (result == WB_OK) {
        wb_sql_of(session)->state = WB_SQL_OPEN;
        result = lock_out_others(session);
    }
    if (result == WB_OK)
        result = wb_sql_schema_run(session, "SET LOCAL client_min_messages = warning", NULL);
    if (result == WB_OK)
        result = wb_sql_schema_run(session, SELECT_CONDITIONS, &row);
    int found = result == WB_OK && pgsql_fetch(&row, cells, 3);
    if (found)
        *ret_holds = (unsigned)(*cells[0].data == 't') << PGSQL_SCHEMA_ABSENT |
                     (unsigned)(*cells[1].data == 't') << PGSQL_HAS_LZ4;
    if (found && cells[2].data)
        result = wb_sql_note(session, WB_FATAL, WB_CAUSE_REFUSED, WB_SQL_NO_ITEM, cells[2].data);
    pgsql_clear(&row);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/common/sql/schema.h"
#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"

#define ENTRY_OF(name)                                                                             \
    "FROM pg_catalog.pg_class AS entry JOIN pg_catalog.pg_namespace AS space "                     \
    "ON space.oid = entry.relnamespace WHERE space.nspname = {database} "                          \
    "AND entry.relname = {prefix} || '" name "'"
#define IS_ABSENT(name) "NOT EXISTS (SELECT " ENTRY_OF(name) "), "
/* A column has the attribute from PostgreSQL 14 on, as the setting. */
#define LACKS_LZ4(name, column)                                                                    \
    "EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression' "         \
    "AND 'lz4' = ANY (enumvals)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS attribute " \
    "WHERE attribute.attname = '" column "' AND pg_catalog.to_jsonb(attribute) ->> 'attcompression' = 'l' " \
    "AND attribute.attrelid = (SELECT entry.oid " ENTRY_OF(name) ")), "
/* In the order of their numbers (pgsql-dialect.h), and what is in the way. */
#define CONDITIONS 7
#define SELECT_CONDITIONS                                                                          \
    "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = {database}), "         \
    IS_ABSENT("_dedup_batch") IS_ABSENT("_delayed_due") IS_ABSENT("_written_held")                 \
    LACKS_LZ4("_pending", "operations") LACKS_LZ4("_delayed", "operation") LACKS_LZ4("_written", "body") \
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
    wb_sql_cell cells[CONDITIONS + 1];
    int result = wb_sql_schema_run(session, "BEGIN", NULL);

    if (result == WB_OK) {
        wb_sql_of(session)->state = WB_SQL_OPEN;
        result = lock_out_others(session);
    }
    if (result == WB_OK)
        result = wb_sql_schema_run(session, "SET LOCAL client_min_messages = warning", NULL);
    if (result == WB_OK) /* who waits for a table keeps all others from it */
        result = wb_sql_schema_run(session, "SET LOCAL lock_timeout = '5s'", NULL);
    if (result == WB_OK)
        result = wb_sql_schema_run(session, SELECT_CONDITIONS, &row);
    int found = result == WB_OK && pgsql_fetch(&row, cells, CONDITIONS + 1);
    for (unsigned i = 0; found && i < CONDITIONS; i++)
        *ret_holds |= (unsigned)(*cells[i].data == 't') << (i + 1);
    if (found && cells[CONDITIONS].data)
        result = wb_sql_note(session, WB_FATAL, WB_CAUSE_REFUSED, WB_SQL_NO_ITEM, cells[CONDITIONS].data);
    pgsql_clear(&row);
    return result;
}

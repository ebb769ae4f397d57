/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/common/sql/schema.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

/* A schema that may not be entered hides its tables. Absent, it has no row. */
#define SELECT_SCHEMA                                                                              \
    "SELECT pg_catalog.format('user \"%s\" lacks a privilege on schema %I: grant USAGE', "         \
    "current_user, nspname) FROM pg_catalog.pg_namespace "                                         \
    "WHERE nspname = {database} AND NOT pg_catalog.has_schema_privilege(oid, 'USAGE')"

/* One row for each table: is it there, what may we not do that we will do with it.
 * to_regclass() yields NULL, instead of failing, for what is absent. */
#define SELECT_TABLES(tables)                                                                      \
    "SELECT name, pg_catalog.to_regclass(name) IS NOT NULL, "                                      \
    "(SELECT pg_catalog.string_agg(privilege, ', ') "                                              \
    "FROM pg_catalog.unnest(privileges) AS privilege "                                             \
    "WHERE NOT pg_catalog.has_table_privilege(pg_catalog.to_regclass(name), privilege)), "         \
    "current_user "                                                                                \
    "FROM (VALUES " tables ") AS tables (unqualified, privileges), "                               \
    "LATERAL (SELECT pg_catalog.format('%I.%I', {database}, unqualified) AS name) AS qualified"

#define OUTBOX_TABLES                                                                              \
    "('waybill_endpoints', ARRAY['SELECT']), "                                                     \
    "({prefix} || '_dedup', ARRAY['SELECT', 'INSERT', 'DELETE']), "                                \
    "({prefix} || '_pending', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])"
#define DELAYED_TABLE                                                                              \
    "({prefix} || '_delayed', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])"

#define POSITIONS_TABLE                                                                            \
    "({prefix} || '_positions', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])"

#define SELECT_FAILED SELECT_TABLES("({prefix} || '_failed', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])")

/* Without the SQL interface there is none. */
#define WRITTEN_TABLE                                                                              \
    "SELECT pg_catalog.to_regclass(pg_catalog.format('%I.%I', {database}, {prefix} || '_written')) IS NOT NULL"
#define SELECT_WRITTEN SELECT_TABLES("({prefix} || '_written', ARRAY['SELECT', 'UPDATE', 'DELETE'])")

/* Where it is off is where it is set. */
#define REMEDY                                                                                     \
    "CASE source WHEN 'user' THEN pg_catalog.format('ALTER ROLE %I RESET %s', current_user, name) " \
    "WHEN 'database' THEN pg_catalog.format('ALTER DATABASE %I RESET %s', "                        \
    "pg_catalog.current_database(), name) "                                                        \
    "WHEN 'database user' THEN pg_catalog.format('ALTER ROLE %I IN DATABASE %I RESET %s', "        \
    "current_user, pg_catalog.current_database(), name) "                                          \
    "WHEN 'client' THEN pg_catalog.format('leave %s out of the connection''s options', name) "     \
    "WHEN 'command line' THEN pg_catalog.format('start the server without -c %s', name) "          \
    "ELSE pg_catalog.format('ALTER SYSTEM SET %s = on; SELECT pg_reload_conf()', name) END"

#define SELECT_SETTINGS                                                                            \
    "SELECT name, setting, pg_catalog.pg_is_in_recovery(), "                                       \
    "pg_catalog.current_setting('transaction_read_only'), " REMEDY " FROM pg_catalog.pg_settings " \
    "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"

static int check_table(const wb_persistence *p, const wb_sql_cell *cells, wb_error *error)
{
    const char *name = cells[0].data;

    if (*cells[1].data != 't')
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                             "the table %s of endpoint \"%s\" does not exist: run \"waybill "
                             "install\"",
                             name, p->sql.names.endpoint);
    if (cells[2].data)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_REFUSED, 0,
                             "user \"%s\" lacks privileges on the table %s: grant %s",
                             cells[3].data, name, cells[2].data);
    return WB_OK;
}

static int check_schema(wb_storage_session *s, wb_error *error)
{
    wb_sql_answer rows = { 0 };
    wb_sql_cell cell;
    int result = wb_sql_schema_run(s, SELECT_SCHEMA, &rows);

    if (result != WB_OK)
        result = wb_sql_report(s, "look for the schema", error);
    else if (pgsql_fetch(&rows, &cell, 1))
        result = s->host->fail(s->host, error, WB_FATAL, WB_CAUSE_REFUSED, 0, "%s", cell.data);
    pgsql_clear(&rows);
    return result;
}

static int check_these(wb_storage_session *s, const char *statement, wb_error *error)
{
    wb_sql_answer rows = { 0 };
    wb_sql_cell cells[4];
    int result = wb_sql_schema_run(s, statement, &rows);

    if (result != WB_OK)
        result = wb_sql_report(s, "look for the endpoint's tables", error);
    while (result == WB_OK && pgsql_fetch(&rows, cells, 4))
        result = check_table(s->persistence, cells, error);
    pgsql_clear(&rows);
    return result;
}

static const char *select_tables(const wb_sql_outbox *outbox)
{
    if (outbox->positions)
        return outbox->delays ? SELECT_TABLES(OUTBOX_TABLES ", " DELAYED_TABLE ", " POSITIONS_TABLE)
                              : SELECT_TABLES(OUTBOX_TABLES ", " POSITIONS_TABLE);
    return outbox->delays ? SELECT_TABLES(OUTBOX_TABLES ", " DELAYED_TABLE) : SELECT_TABLES(OUTBOX_TABLES);
}

static int check_tables(wb_storage_session *s, wb_error *error)
{
    const int result = check_these(s, select_tables(s->sql.outbox), error);
    return result == WB_OK && s->sql.outbox->failures ? check_these(s, SELECT_FAILED, error) : result;
}

static int check_written(wb_storage_session *s, wb_error *error)
{
    wb_sql_answer row = { 0 };
    wb_sql_cell is_there;
    int result = wb_sql_schema_run(s, WRITTEN_TABLE, &row);

    if (result != WB_OK)
        result = wb_sql_report(s, "look for the SQL interface", error);
    else if (pgsql_fetch(&row, &is_there, 1) && *is_there.data == 't')
        result = check_these(s, SELECT_WRITTEN, error);
    pgsql_clear(&row);
    return result;
}

/* Said, but not refused: some people test on such servers. */
static int check_settings(wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    wb_sql_answer rows = { 0 };
    wb_sql_cell cells[5];
    int standby = 0;
    int read_only = 0;

    if (wb_sql_schema_run(s, SELECT_SETTINGS, &rows) != WB_OK)
        return wb_sql_report(s, "read the server's settings", error);
    while (pgsql_fetch(&rows, cells, 5)) {
        const wb_field fields[] = { { "setting", cells[0].data }, { "remedy", cells[4].data } };
        if (strcmp(cells[1].data, "off") == 0)
            host->log(host, WB_LOG_WARNING,
                      "a setting of PostgreSQL is off: commits can be lost when the machine fails",
                      fields, 2);
        standby = *cells[2].data == 't';
        read_only = strcmp(cells[3].data, "on") == 0;
    }
    pgsql_clear(&rows);
    if (standby)
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                          "the PostgreSQL server is a standby and takes no writes: name its "
                          "primary in option \"host\"");
    if (read_only)
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                          "the PostgreSQL server takes no writes of user \"%s\": "
                          "default_transaction_read_only is on",
                          PQuser(s->connection));
    return WB_OK;
}

/* A pooler in statement mode has none. */
static int check_transactions(wb_storage_session *s, wb_error *error)
{
    if (wb_sql_schema_run(s, "BEGIN", NULL) != WB_OK ||
        wb_sql_schema_run(s, "ROLLBACK", NULL) != WB_OK)
        return wb_sql_report(s, "open a transaction", error);
    return WB_OK;
}

int (*const pgsql_checks[])(wb_storage_session *, wb_error *) = {
    check_schema,
    check_tables,
    check_written,
    wb_sql_check_version,
    check_settings,
    check_transactions,
    NULL,
};

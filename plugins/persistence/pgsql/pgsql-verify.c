/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/persistence/pgsql/pgsql-schema.h"

/* One row for each table: is it there, may we do what we will do with it. to_regclass()
 * yields NULL, instead of failing, for what is absent. */
#define SELECT_TABLES                                                                              \
    "SELECT name, pg_catalog.to_regclass(name) IS NOT NULL, "                                      \
    "(SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege("                                  \
    "pg_catalog.to_regclass(name), privilege)) "                                                   \
    "FROM pg_catalog.unnest(privileges) AS privilege), "                                           \
    "pg_catalog.array_to_string(privileges, ', '), current_user "                                  \
    "FROM (VALUES ('waybill_endpoints', ARRAY['SELECT']), "                                        \
    "($2::text || '_dedup', ARRAY['SELECT', 'INSERT', 'DELETE']), "                                \
    "($2::text || '_pending', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])) "                    \
    "AS tables (unqualified, privileges), "                                                        \
    "LATERAL (SELECT pg_catalog.format('%I.%I', $1::text, unqualified) AS name) AS qualified"

#define SELECT_SETTINGS                                                                            \
    "SELECT name, setting, pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_settings "            \
    "WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"

static int check_table(const wb_persistence *p, const PGresult *rows, int row, wb_error *error)
{
    const char *name = PQgetvalue(rows, row, 0);

    if (*PQgetvalue(rows, row, 1) != 't')
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                             "the outbox table %s of endpoint \"%s\" does not exist: run \"waybill "
                             "install\"",
                             name, p->sql.names.endpoint);
    if (*PQgetvalue(rows, row, 2) != 't')
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_REFUSED, 0,
                             "user \"%s\" lacks privileges on the outbox table %s: grant %s",
                             PQgetvalue(rows, row, 4), name, PQgetvalue(rows, row, 3));
    return WB_OK;
}

static int check_tables(wb_storage_session *s, wb_error *error)
{
    const wb_sql_names *names = &s->persistence->sql.names;
    const char *const values[] = { names->container, names->prefix };
    PGresult *rows = NULL;

    if (pgsql_schema_run(s, SELECT_TABLES, values, 2, &rows) != WB_OK)
        return wb_sql_report(s, "look for the outbox tables", error);
    int result = WB_OK;
    for (int row = 0; row < PQntuples(rows) && result == WB_OK; row++)
        result = check_table(s->persistence, rows, row, error);
    PQclear(rows);
    return result;
}

static int check_version(wb_storage_session *s, wb_error *error)
{
    const wb_persistence *p = s->persistence;
    PGresult *row = NULL;
    int version = 0;

    if (pgsql_schema_run(s, PGSQL_SCHEMA_SELECT_VERSION, NULL, 0, &row) != WB_OK)
        return wb_sql_report(s, "read the version of the outbox tables", error);
    int result = pgsql_schema_compare(s->persistence, row, &version, error);
    PQclear(row);
    if (result != WB_OK || version == PGSQL_SCHEMA_VERSION)
        return result;
    return p->host->fail(p->host, error, WB_FATAL, version ? WB_CAUSE_MISMATCH : WB_CAUSE_MISSING,
                         version,
                         "the outbox tables of endpoint \"%s\" in schema \"%s\" have version %d, "
                         "not %d: run \"waybill install\"",
                         p->sql.names.endpoint, p->sql.names.container, version, PGSQL_SCHEMA_VERSION);
}

/* Said, but not refused: some people test on such servers. */
static int check_settings(wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    PGresult *rows = NULL;
    int result = WB_OK;

    if (pgsql_schema_run(s, SELECT_SETTINGS, NULL, 0, &rows) != WB_OK)
        return wb_sql_report(s, "read the server's settings", error);
    for (int row = 0; row < PQntuples(rows); row++) {
        const char *name = PQgetvalue(rows, row, 0);
        const wb_field field = { "setting", name };
        if (strcmp(PQgetvalue(rows, row, 1), "off") == 0)
            host->log(host, WB_LOG_WARNING,
                      "a setting of PostgreSQL is off: commits can be lost when the machine fails",
                      &field, 1);
    }
    if (PQntuples(rows) && *PQgetvalue(rows, 0, 2) == 't')
        result = host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                            "the PostgreSQL server is a standby and takes no writes: name its "
                            "primary in option \"host\"");
    PQclear(rows);
    return result;
}

int pgsql_verify(wb_persistence *p, wb_error *error)
{
    wb_storage_session *s = NULL;
    int result = pgsql_session_start(p, &s, error);

    if (result != WB_OK)
        return result;
    result = check_tables(s, error);
    if (result == WB_OK)
        result = check_version(s, error);
    if (result == WB_OK)
        result = check_settings(s, error);
    pgsql_session_close(s);
    return result;
}

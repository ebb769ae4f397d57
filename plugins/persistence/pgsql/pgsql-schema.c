/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum condition {
    ALWAYS,
    SCHEMA_ABSENT, /* creating it needs a privilege that an existing one does not */
    SERVER_HAS_LZ4
} condition;

typedef struct statement {
    int version; /* of the schema that needs it */
    condition when;
    const char *comment;
    const char *template;
} statement;

/* Every name of a table, index or constraint holds the endpoint's prefix: PostgreSQL wants
 * index names unique in a schema, and IF NOT EXISTS would pass over a second endpoint's.
 * A later version appends its statements here. */
static const statement statements[] = {
    { 1, SCHEMA_ABSENT, NULL, "CREATE SCHEMA IF NOT EXISTS {schema}" },
    { 1, ALWAYS, "which endpoints have tables here, and in which version",
      "CREATE TABLE IF NOT EXISTS {endpoints} (\n"
      "    prefix text PRIMARY KEY,\n"
      "    endpoint text NOT NULL,\n"
      "    version integer NOT NULL,\n"
      "    installed timestamptz NOT NULL DEFAULT now()\n)" },
    { 1, ALWAYS, "ids that were processed; only ever inserted, and deleted by age",
      "CREATE TABLE IF NOT EXISTS {dedup} (\n"
      "    key bytea NOT NULL CONSTRAINT {dedup_pkey} PRIMARY KEY,\n"
      "    batch bigint NOT NULL\n"
      ") WITH (autovacuum_vacuum_scale_factor = 0.05,\n"
      "        autovacuum_vacuum_insert_scale_factor = 0.1)" },
    { 1, ALWAYS, "milliseconds since 2020 are batch >> 22, so this is an index on age",
      "CREATE INDEX IF NOT EXISTS {dedup_batch} ON {dedup} (batch)" },
    { 1, ALWAYS, "outgoing operations of a batch, from its commit until they are dispatched",
      "CREATE TABLE IF NOT EXISTS {pending} (\n"
      "    batch bigint NOT NULL CONSTRAINT {pending_pkey} PRIMARY KEY,\n"
      "    operations bytea NOT NULL\n"
      ") WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,\n"
      "        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,\n"
      "        toast.vacuum_truncate = off, toast.autovacuum_vacuum_scale_factor = 0,\n"
      "        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_delay = 0)" },
    { 1, SERVER_HAS_LZ4, "leave this out where the server was built without lz4",
      "ALTER TABLE {pending} ALTER COLUMN operations SET COMPRESSION lz4" },
};
#define STATEMENT_COUNT (sizeof statements / sizeof statements[0])

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define RECORD_VERSION                                                                             \
    "INSERT INTO {endpoints} AS known (prefix, endpoint, version)\n"                               \
    "    VALUES ({prefix}, {endpoint}, " TEXT_OF(PGSQL_SCHEMA_VERSION) ")\n"                       \
    "    ON CONFLICT (prefix) DO UPDATE SET version = EXCLUDED.version, installed = now()\n"       \
    "    WHERE known.version < EXCLUDED.version"

static void put_text(wb_sql_buffer *text, const char *part)
{
    wb_sql_buffer_put(text, part, strlen(part));
}

char *pgsql_schema_text(const wb_sql_names *names)
{
    wb_sql_buffer text = { 0 };

    put_text(&text, "BEGIN;\n");
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        if (statements[i].when == SCHEMA_ABSENT && strcmp(names->container, "public") == 0)
            continue;
        if (statements[i].comment) {
            put_text(&text, "-- ");
            put_text(&text, statements[i].comment);
            put_text(&text, "\n");
        }
        wb_sql_names_expand(names, statements[i].template, &text);
        put_text(&text, ";\n");
    }
    wb_sql_names_expand(names, RECORD_VERSION ";\nCOMMIT;\n", &text);
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed) {
        wb_sql_buffer_free(&text);
        return NULL;
    }
    return text.data;
}

int pgsql_schema_run(wb_storage_session *s, const char *template, const char *const *values,
                     int value_count, PGresult **ret_result)
{
    wb_sql_buffer text = { 0 };

    wb_sql_names_expand(&s->persistence->sql.names, template, &text);
    wb_sql_buffer_put(&text, "", 1);
    pgsql_exchange_start(s);
    if (text.failed)
        s->exchange.broken = s->exchange.out_of_memory = 1;
    else
        pgsql_queue_text(s, text.data, values, value_count, ret_result);
    int result = pgsql_exchange_run(s, NULL);
    wb_sql_buffer_free(&text);
    return result;
}

int pgsql_schema_compare(wb_persistence *p, const PGresult *row, int *ret_version, wb_error *error)
{
    if (PQntuples(row) == 0) {
        *ret_version = 0;
        return WB_OK;
    }
    const char *endpoint = PQgetvalue(row, 0, 0);
    int version = atoi(PQgetvalue(row, 0, 1));
    if (strcmp(endpoint, p->sql.names.endpoint) != 0)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                             "the outbox tables \"%s_...\" in schema \"%s\" belong to endpoint "
                             "\"%s\": set another option \"schema\" for endpoint \"%s\"",
                             p->sql.names.prefix, p->sql.names.container, endpoint, p->sql.names.endpoint);
    if (version > PGSQL_SCHEMA_VERSION)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_MISMATCH, version,
                             "the outbox tables of endpoint \"%s\" in schema \"%s\" have version "
                             "%d, this plugin knows version %d: use a newer Waybill",
                             endpoint, p->sql.names.container, version, PGSQL_SCHEMA_VERSION);
    *ret_version = version;
    return WB_OK;
}

/* ---- install ------------------------------------------------------------------ */

/* What the server says about the conditions. The lock keeps two installations apart:
 * IF NOT EXISTS alone fails when both create the same table at once. */
static int look_around(wb_storage_session *s, int holds[3])
{
    const wb_sql_names *names = &s->persistence->sql.names;
    const char *const schema[] = { names->container };
    char key[24];
    const char *const lock[] = { key };
    PGresult *row = NULL;

    (void)snprintf(key, sizeof key, "%lld",
                   (long long)pgsql_names_lock(names, "waybill install", ""));
    int result = pgsql_schema_run(s, "BEGIN", NULL, 0, NULL);
    if (result == WB_OK) {
        s->sql.state = WB_SQL_OPEN;
        result = pgsql_schema_run(s, "SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)", lock, 1,
                                  NULL);
    }
    if (result == WB_OK)
        result = pgsql_schema_run(s, "SET LOCAL client_min_messages = warning", NULL, 0, NULL);
    if (result == WB_OK)
        result = pgsql_schema_run(
            s,
            "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1::text), "
            "EXISTS (SELECT FROM pg_catalog.pg_settings WHERE name = 'default_toast_compression' "
            "AND 'lz4' = ANY (enumvals))",
            schema, 1, &row);
    if (result == WB_OK) {
        holds[ALWAYS] = 1;
        holds[SCHEMA_ABSENT] = *PQgetvalue(row, 0, 0) == 't';
        holds[SERVER_HAS_LZ4] = *PQgetvalue(row, 0, 1) == 't';
    }
    PQclear(row);
    return result;
}

/* The table of versions must be there before it can be asked; all statements are
 * harmless where they were run before. */
static int make_tables(wb_storage_session *s, const int holds[3])
{
    int result = WB_OK;
    for (size_t i = 0; i < STATEMENT_COUNT && result == WB_OK; i++)
        if (holds[statements[i].when])
            result = pgsql_schema_run(s, statements[i].template, NULL, 0, NULL);
    return result;
}

static int check_owner(wb_storage_session *s, wb_error *error)
{
    PGresult *row = NULL;
    int version = 0;

    if (pgsql_schema_run(s, PGSQL_SCHEMA_SELECT_VERSION, NULL, 0, &row) != WB_OK)
        return wb_sql_report(s, "read the version of the outbox tables", error);
    int result = pgsql_schema_compare(s->persistence, row, &version, error);
    PQclear(row);
    return result;
}

static int commit_tables(wb_storage_session *s)
{
    int result = pgsql_schema_run(s, RECORD_VERSION, NULL, 0, NULL);
    if (result == WB_OK)
        result = pgsql_schema_run(s, "COMMIT", NULL, 0, NULL);
    if (result == WB_OK)
        s->sql.state = WB_SQL_IDLE;
    return result;
}

int pgsql_install(wb_persistence *p, wb_error *error)
{
    wb_storage_session *s = NULL;
    int holds[3] = { 0 };
    int result = pgsql_session_start(p, &s, error);

    if (result != WB_OK)
        return result;
    result = look_around(s, holds);
    if (result == WB_OK)
        result = make_tables(s, holds);
    if (result != WB_OK) {
        result = wb_sql_report(s, "install the outbox tables", error);
        goto out;
    }
    result = check_owner(s, error);
    if (result == WB_OK && commit_tables(s) != WB_OK)
        result = wb_sql_report(s, "install the outbox tables", error);
out:
    pgsql_session_close(s); /* rolls back what did not commit */
    return result;
}

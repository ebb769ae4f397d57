/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/sqlite/persistence.h"

/* Two trees hold a deduplication record: the table, in the order of batches, so that
 * claims are appended and cleanup takes from the other end without searching; and the
 * index, which is the check. */
static const char tables_format[] =
    "create table if not exists waybill_schema(\n"
    "  part text primary key,\n"
    "  version integer not null) without rowid;\n"
    "create table if not exists \"waybill_%w_dedup\"(\n"
    "  batch integer not null,\n"
    "  key blob not null unique,\n"
    "  primary key(batch, key)) without rowid;\n"
    "create table if not exists \"waybill_%w_pending\"(\n"
    "  batch integer primary key,\n"
    "  operations blob not null);\n";

static const char version_format[] =
    "insert into waybill_schema(part, version) values(%Q, %d)\n"
    "  on conflict(part) do update set version=excluded.version;\n";

char *wb_sqlite_schema_text(const char *tables, const char *part)
{
    char *text = NULL;
    char *made = wb_sqlite_names_format(tables_format, tables);
    char *version = sqlite3_mprintf(version_format, part, WB_SQLITE_PERSISTENCE_SCHEMA_VERSION);
    if (made && version)
        text = sqlite3_mprintf("%s%s", made, version);
    sqlite3_free(made);
    sqlite3_free(version);
    return text;
}

static int check_version(wb_persistence *persistence, wb_sqlite_database *db, int *ret_version,
                         wb_error *error)
{
    int result = wb_sqlite_db_schema_version(db, persistence->part, ret_version, error);
    if (result == WB_OK && *ret_version > WB_SQLITE_PERSISTENCE_SCHEMA_VERSION)
        result = persistence->host->fail(
            persistence->host, error, WB_FATAL, WB_CAUSE_MISMATCH, *ret_version,
            "the tables of endpoint \"%s\" in \"%s\" have version %d, this is version %d: use a "
            "newer waybill",
            persistence->endpoint->name, db->path, *ret_version,
            WB_SQLITE_PERSISTENCE_SCHEMA_VERSION);
    return result;
}

int wb_sqlite_schema_install(wb_persistence *persistence, wb_error *error)
{
    wb_sqlite_database db;
    int version = 0;
    int result = wb_sqlite_db_create(&db, persistence->host, persistence->config, persistence->path,
                                     error);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_db_begin(&db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = check_version(persistence, &db, &version, error);
    if (result == WB_OK)
        result = wb_sqlite_db_execute(&db, persistence->schema, "make the tables", error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&db, error);
    wb_sqlite_db_rollback(&db);
    wb_sqlite_db_close(&db);
    return result;
}

static int verify_tables(wb_persistence *persistence, wb_sqlite_database *db, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int version = 0;
    int result = check_version(persistence, db, &version, error);
    if (result == WB_OK && version == 0)
        return persistence->host->fail(persistence->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                                       "no tables of endpoint \"%s\" in \"%s\": run `waybill "
                                       "install`",
                                       persistence->endpoint->name, db->path);
    if (result != WB_OK)
        return result;
    char *sql =
        wb_sqlite_names_format("select d.batch, d.key, p.operations from \"waybill_%w_dedup\" d,"
                               " \"waybill_%w_pending\" p limit 0", persistence->tables);
    if (!sql)
        return wb_sqlite_db_out_of_memory(db, error);
    result = wb_sqlite_db_prepare(db, &statement, sql, error);
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

int wb_sqlite_schema_verify(wb_persistence *persistence, wb_error *error)
{
    wb_sqlite_database db;
    const wb_host *host = persistence->host;
    int result = wb_sqlite_db_open(&db, host, persistence->config, persistence->path, error);
    if (result != WB_OK)
        return result;
    result = verify_tables(persistence, &db, error);
    if (result == WB_OK && persistence->config->synchronous != 0)
        host->log(host, WB_LOG_WARNING, "synchronous = normal: a power loss may undo commits",
                  (const wb_field[]){ { "file", persistence->path } }, 1);
    wb_sqlite_db_close(&db);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions of the parts of a schema: the table waybill_schema.
 */
#include "config.h"

#include "plugins/common/sqlite/database.h"

static int table_exists(wb_sqlite_database *db, const char *name, int *ret_exists, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_db_prepare(db, &statement,
                                      "select 1 from sqlite_schema where type='table' and name=?1",
                                      error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    *ret_exists = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "read the schema", error);
    (void)sqlite3_finalize(statement);
    return result;
}

int wb_sqlite_db_schema_version(wb_sqlite_database *db, const char *part, int *ret_version,
                                wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int exists = 0;
    *ret_version = 0;
    int result = table_exists(db, "waybill_schema", &exists, error);
    if (result != WB_OK || !exists)
        return result;
    result = wb_sqlite_db_prepare(db, &statement,
                                  "select version from waybill_schema where part=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, part, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_version = sqlite3_column_int(statement, 0);
    else if (code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "read the schema's version", error);
    (void)sqlite3_finalize(statement);
    return result;
}

int wb_sqlite_db_set_schema_version(wb_sqlite_database *db, const char *part, int version,
                                    wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result =
        wb_sqlite_db_execute(db, "create table if not exists waybill_schema(part text primary key,"
                             " version integer not null) without rowid",
                             "create the table of versions", error);
    if (result == WB_OK)
        result = wb_sqlite_db_prepare(db, &statement,
                                      "insert into waybill_schema(part,version) values(?1,?2)"
                                      " on conflict(part) do update set version=excluded.version",
                                      error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, part, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(statement, 2, version);
    result = wb_sqlite_db_run(db, statement, "record the schema's version", error);
    (void)sqlite3_finalize(statement);
    return result;
}

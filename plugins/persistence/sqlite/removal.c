/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: an endpoint's tables go, or become another name's, in one transaction; what was begun of that;
 * and what its transport was subscribed to.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/persistence/sqlite/persistence.h"

/* Views first: a table that one of them reads is not renamed without it. */
static const char drop_views_format[] =
    "drop view if exists \"waybill_%w_send\";"
    "drop view if exists \"waybill_%w_publish\";"
    "drop view if exists \"waybill_%w_claim\";";
static const char drop_tables_format[] =
    "drop table if exists \"waybill_%w_failed\";"
    "drop table if exists \"waybill_%w_written\";"
    "drop table if exists \"waybill_%w_subscribed\";"
    "drop table if exists \"waybill_%w_positions\";"
    "drop table if exists \"waybill_%w_delayed\";"
    "drop table if exists \"waybill_%w_delayed_operation\";"
    "drop table if exists \"waybill_%w_pending\";"
    "drop table if exists \"waybill_%w_dedup\";";
/* What has a name of its own beside a table's; it is made anew under the new name. */
static const char drop_names_format[] =
    "drop index if exists \"waybill_%w_failed_listed\";"
    "drop index if exists \"waybill_%w_failed_changed\";"
    "drop index if exists \"waybill_%w_written_held\";"
    "drop index if exists \"waybill_%w_delayed_due\";"
    "drop trigger if exists \"waybill_%w_delayed_removed\";";
static const char *const tables[] = { "failed", "written", "subscribed", "positions", "delayed", "delayed_operation", "pending", "dedup" };
static const char *const parts[] = { "persistence:", "delayed:", "positions:" };

/* Of a file that is not there nothing is left: *ret_is_open is 0 then. A transaction is begun. */
static int begin(wb_persistence *persistence, wb_sqlite_database *db, int *ret_is_open, wb_error *error)
{
    *ret_is_open = 0;
    if (access(persistence->path, F_OK) != 0 && errno == ENOENT)
        return WB_OK;
    int result = wb_sqlite_db_open(db, persistence->host, persistence->config, persistence->path, error);
    *ret_is_open = result == WB_OK;
    return result == WB_OK ? wb_sqlite_db_begin(db, WB_SQLITE_DB_POWER_LOSS, error) : result;
}

static int end(wb_sqlite_database *db, int is_open, int result, wb_error *error)
{
    if (!is_open)
        return result;
    if (result == WB_OK)
        result = wb_sqlite_db_commit(db, error);
    wb_sqlite_db_rollback(db);
    wb_sqlite_db_close(db);
    return result;
}

/* Text of sqlite3_mprintf(), which is given up; NULL: no memory. */
static int run(wb_sqlite_database *db, char *text, const char *doing, wb_error *error)
{
    int result = text ? wb_sqlite_db_execute(db, text, doing, error) : wb_sqlite_db_out_of_memory(db, error);
    sqlite3_free(text);
    return result;
}

static int run_format(wb_sqlite_database *db, const char *format, const char *encoded, const char *doing, wb_error *error)
{
    return run(db, wb_sqlite_names_format(format, encoded), doing, error);
}

static int has_tables(wb_sqlite_database *db, const char *endpoint, int *ret_has, wb_error *error)
{
    int version = 0;
    char *part = sqlite3_mprintf("%s%s", parts[0], endpoint);
    int result = part ? wb_sqlite_db_schema_version(db, part, &version, error) : wb_sqlite_db_out_of_memory(db, error);
    sqlite3_free(part);
    *ret_has = version != 0;
    return result;
}

/* Of an endpoint all; its name has no blank. */
static int forget_notes(wb_sqlite_database *db, const char *endpoint, wb_error *error)
{
    return run(db, sqlite3_mprintf("delete from waybill_schema where instr(part, 'note:%q ') = 1", endpoint), "forget notes", error);
}

/* ---- uninstall ---------------------------------------------------------------------------- */

static int remove_tables(wb_sqlite_database *db, const wb_persistence *persistence, wb_error *error)
{
    static const char doing[] = "remove the tables";
    int result = run_format(db, drop_views_format, persistence->tables, doing, error);
    if (result == WB_OK)
        result = run_format(db, drop_tables_format, persistence->tables, doing, error);
    for (size_t i = 0; result == WB_OK && i < sizeof parts / sizeof *parts; i++)
        result = run(db, sqlite3_mprintf("delete from waybill_schema where part='%s%q'", parts[i], persistence->endpoint->name),
                     doing, error);
    return result == WB_OK ? forget_notes(db, persistence->endpoint->name, error) : result;
}

int wb_sqlite_removal_uninstall(wb_persistence *persistence, wb_error *error)
{
    wb_sqlite_database db;
    int is_open, has = 0;
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = has_tables(&db, persistence->endpoint->name, &has, error);
    if (result == WB_OK && has)
        result = remove_tables(&db, persistence, error);
    return end(&db, is_open, result, error);
}

/* ---- rename ------------------------------------------------------------------------------- */

/* Text of sqlite3_mprintf(), which is given up, as in run(). */
static int has_row(wb_sqlite_database *db, char *sql, int *ret_has, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = sql ? wb_sqlite_db_prepare(db, &statement, sql, error) : wb_sqlite_db_out_of_memory(db, error);
    const int code = result == WB_OK ? sqlite3_step(statement) : SQLITE_DONE;
    *ret_has = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "look at the tables", error);
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

static int table_exists(wb_sqlite_database *db, const char *encoded, const char *table, int *ret_exists, wb_error *error)
{
    return has_row(db, sqlite3_mprintf("select 1 from sqlite_schema where type='table' and name='waybill_%q_%q'", encoded, table),
                   ret_exists, error);
}

/* What ANALYZE wrote of a table is by its name, and SQLite leaves it there: who is installed under that would be planned by it.
 * The index of a key is called after its table, too. */
static int rename_statistics(wb_sqlite_database *db, const char *former, const char *encoded, const char *table, wb_error *error)
{
    static const char *const statistics[] = { "sqlite_stat1", "sqlite_stat4" };
    int result = WB_OK, exists;
    for (size_t i = 0; result == WB_OK && i < sizeof statistics / sizeof *statistics; i++) {
        result = has_row(db, sqlite3_mprintf("select 1 from sqlite_schema where name=%Q", statistics[i]), &exists, error);
        if (result == WB_OK && exists)
            result = run(db, sqlite3_mprintf("update %s set tbl='waybill_%q_%q', idx=replace(idx, tbl, 'waybill_%q_%q') "
                                             "where tbl='waybill_%q_%q'",
                                             statistics[i], encoded, table, encoded, table, former, table),
                         "rename statistics", error);
    }
    return result;
}

static int rename_table(wb_sqlite_database *db, const char *former, const char *encoded, const char *table, wb_error *error)
{
    int exists;
    int result = table_exists(db, former, table, &exists, error);
    if (result != WB_OK || !exists)
        return result;
    result = run(db, sqlite3_mprintf("alter table \"waybill_%w_%w\" rename to \"waybill_%w_%w\"", former, table, encoded, table),
                 "rename a table", error);
    return result == WB_OK ? rename_statistics(db, former, encoded, table, error) : result;
}

static int rename_parts(wb_sqlite_database *db, const char *former, const char *name, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < sizeof parts / sizeof *parts; i++)
        result = run(db, sqlite3_mprintf("update waybill_schema set part='%s%q' where part='%s%q'", parts[i], name, parts[i],
                                         former),
                     "rename the tables", error);
    return result;
}

static int rename_tables(wb_persistence *persistence, wb_sqlite_database *db, const char *former, wb_error *error)
{
    char *encoded = wb_sqlite_names_encode(former);
    if (!encoded)
        return wb_sqlite_db_out_of_memory(db, error);
    int result = run_format(db, drop_views_format, encoded, "rename the tables", error);
    if (result == WB_OK)
        result = run_format(db, drop_names_format, encoded, "rename the tables", error);
    for (size_t i = 0; result == WB_OK && i < sizeof tables / sizeof *tables; i++)
        result = rename_table(db, encoded, persistence->tables, tables[i], error);
    if (result == WB_OK)
        result = rename_parts(db, former, persistence->endpoint->name, error);
    if (result == WB_OK)
        result = forget_notes(db, former, error);
    if (result == WB_OK) /* what was dropped above */
        result = wb_sqlite_db_execute(db, persistence->schema, "rename the tables", error);
    free(encoded);
    return result;
}

static int refuse_both(const wb_persistence *persistence, const char *former, wb_error *error)
{
    return persistence->host->fail(persistence->host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                                   "\"%s\" has tables of endpoint \"%s\" and of \"%s\": uninstall one of them",
                                   persistence->path, former, persistence->endpoint->name);
}

int wb_sqlite_removal_rename(wb_persistence *persistence, const char *former, wb_error *error)
{
    wb_sqlite_database db;
    int is_open, has_former = 0, has_own = 0;
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = has_tables(&db, former, &has_former, error);
    if (result == WB_OK && has_former)
        result = has_tables(&db, persistence->endpoint->name, &has_own, error);
    if (result == WB_OK && has_former)
        result = has_own ? refuse_both(persistence, former, error) : rename_tables(persistence, &db, former, error);
    return end(&db, is_open, result, error);
}

/* ---- notes -------------------------------------------------------------------------------- */

static char *name_note(const wb_persistence *persistence, const char *name)
{
    return sqlite3_mprintf("note:%s %s", persistence->endpoint->name, name);
}

static int keep(wb_sqlite_database *db, const char *part, int32_t number, wb_error *error)
{
    int kept = 0;
    if (number)
        return wb_sqlite_db_set_schema_version(db, part, number, error);
    int result = wb_sqlite_db_schema_version(db, part, &kept, error);
    if (result != WB_OK || !kept)
        return result;
    return run(db, sqlite3_mprintf("delete from waybill_schema where part=%Q", part), "forget a note", error);
}

int wb_sqlite_removal_keep_note(wb_persistence *persistence, const char *name, int32_t number, wb_error *error)
{
    wb_sqlite_database db;
    int is_open;
    char *part = name_note(persistence, name);
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = part ? keep(&db, part, number, error) : wb_sqlite_db_out_of_memory(&db, error);
    sqlite3_free(part);
    return end(&db, is_open, result, error);
}

int wb_sqlite_removal_look_up_note(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error)
{
    wb_sqlite_database db;
    int is_open, number = 0;
    char *part = name_note(persistence, name);
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = part ? wb_sqlite_db_schema_version(&db, part, &number, error) : wb_sqlite_db_out_of_memory(&db, error);
    sqlite3_free(part);
    *ret_number = number;
    return end(&db, is_open, result, error);
}

/* ---- subscriptions ------------------------------------------------------------------------ */

static int note_all(wb_persistence *persistence, wb_sqlite_database *db, const char *const *types, size_t count, int is_over,
                    wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    char *sql = wb_sqlite_names_format(is_over ? "delete from \"waybill_%w_subscribed\" where type=?1"
                                               : "insert into \"waybill_%w_subscribed\"(type) values(?1) on conflict do nothing",
                                       persistence->tables);
    int result = sql ? wb_sqlite_db_prepare(db, &statement, sql, error) : wb_sqlite_db_out_of_memory(db, error);
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        (void)sqlite3_bind_text(statement, 1, types[i], -1, SQLITE_STATIC);
        result = wb_sqlite_db_run(db, statement, "note subscriptions", error);
    }
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

int wb_sqlite_removal_note(wb_persistence *persistence, const char *const *types, size_t count, int is_over, wb_error *error)
{
    wb_sqlite_database db;
    int is_open, exists = 0;
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = table_exists(&db, persistence->tables, "subscribed", &exists, error);
    if (result == WB_OK && is_open && (exists || !is_over))
        result = note_all(persistence, &db, types, count, is_over, error);
    return end(&db, is_open, result, error);
}

static int visit_all(wb_persistence *persistence, wb_sqlite_database *db, wb_subscription_fn visit, void *argument,
                     wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = SQLITE_DONE;
    char *sql = wb_sqlite_names_format("select type from \"waybill_%w_subscribed\" order by type", persistence->tables);
    int result = sql ? wb_sqlite_db_prepare(db, &statement, sql, error) : wb_sqlite_db_out_of_memory(db, error);
    while (result == WB_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        result = visit(argument, (const char *)sqlite3_column_text(statement, 0));
    if (result == WB_OK && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "read the subscriptions", error);
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

int wb_sqlite_removal_subscriptions(wb_persistence *persistence, wb_subscription_fn visit, void *argument, wb_error *error)
{
    wb_sqlite_database db;
    int is_open, exists = 0;
    int result = begin(persistence, &db, &is_open, error);
    if (result == WB_OK && is_open)
        result = table_exists(&db, persistence->tables, "subscribed", &exists, error);
    if (result == WB_OK && exists)
        result = visit_all(persistence, &db, visit, argument, error);
    return end(&db, is_open, result, error);
}

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

/* Rows have a number of their own, so that each tree but the first holds the key alone: what is due is
 * looked for among small entries, however large the messages are. What is dispatched has a table of
 * its own, since a lease rewrites its row, and the page that it is on. */
static const char delayed_format[] =
    "create table if not exists \"waybill_%w_delayed\"(\n"
    "  row integer primary key,\n"
    "  destination blob not null,\n"
    "  id blob not null,\n"
    "  retries integer not null,\n"
    "  due integer not null,\n"
    "  failures integer not null default 0,\n"
    "  owner blob,\n"
    "  leased_until integer not null default 0,\n"
    "  doubtful integer not null default 0,\n"
    "  unique(id, destination, retries));\n"
    "create index if not exists \"waybill_%w_delayed_due\" on \"waybill_%w_delayed\"(due);\n"
    "create table if not exists \"waybill_%w_delayed_operation\"(\n"
    "  row integer primary key,\n"
    "  operation blob not null);\n"
    "create trigger if not exists \"waybill_%w_delayed_removed\" after delete on \"waybill_%w_delayed\"\n"
    "begin\n"
    "  delete from \"waybill_%w_delayed_operation\" where row=old.row;\n"
    "end;\n";

/* Version 1 had them in one table. */
static const char delayed_from_1_format[] =
    "insert into \"waybill_%w_delayed_operation\" select row, operation from \"waybill_%w_delayed\";\n"
    "alter table \"waybill_%w_delayed\" drop column operation;\n";

static const char positions_format[] =
    "create table if not exists \"waybill_%w_positions\"(\n"
    "  partition blob primary key,\n"
    "  position integer not null,\n"
    "  batch integer not null) without rowid;\n";

static const char subscriptions_format[] =
    "create table if not exists \"waybill_%w_subscribed\"(\n"
    "  type text primary key) without rowid;\n";

/* The message stands last: a list does not read as far, and what does not fit beside it is on pages of its own. */
static const char failures_format[] =
    "create table if not exists \"waybill_%w_failed\"(\n"
    "  row integer primary key,\n"
    "  id blob not null unique,\n"
    "  status integer not null,\n"
    "  attempts integer not null,\n"
    "  failed_at integer not null,\n"
    "  changed_at integer not null,\n"
    "  summary blob not null,\n"
    "  message blob not null);\n"
    "create index if not exists \"waybill_%w_failed_listed\" on \"waybill_%w_failed\"(failed_at, id);\n"
    "create index if not exists \"waybill_%w_failed_changed\" on \"waybill_%w_failed\"(changed_at) where status<>1;\n";

static const char version_format[] =
    "insert into waybill_schema(part, version) values(%Q, %d)\n"
    "  on conflict(part) do update set version=excluded.version;\n";
/* The outbox's: what is there already stays as it is, and so do its keys. */
static const char first_version_format[] =
    "insert into waybill_schema(part, version) values(%Q, %d)\n"
    "  on conflict(part) do nothing;\n";

static int has_delayed(const wb_persistence *persistence)
{
    return WB_HAS(persistence->endpoint, wb_endpoint_info, delays) &&
           persistence->endpoint->delays == WB_DELAYS_BY_STORE;
}

static int has_positions(const wb_persistence *persistence)
{
    return WB_HAS(persistence->endpoint, wb_endpoint_info, positions) && persistence->endpoint->positions;
}

static int has_failures(const wb_persistence *persistence)
{
    return WB_HAS(persistence->endpoint, wb_endpoint_info, failures) && persistence->endpoint->failures;
}

/* One part of the schema: its tables and its version. */
static char *part_text(const char *format, const char *tables, const char *recording,
                       const char *part, int number)
{
    char *text = NULL;
    char *made = wb_sqlite_names_format(format, tables);
    char *version = sqlite3_mprintf(recording, part, number);
    if (made && version)
        text = sqlite3_mprintf("%s%s", made, version);
    sqlite3_free(made);
    sqlite3_free(version);
    return text;
}

/* Both belong to sqlite3_free(), and are gone. NULL: no memory. */
static char *append(char *text, char *more)
{
    char *both = text && more ? sqlite3_mprintf("%s%s", text, more) : NULL;
    sqlite3_free(text);
    sqlite3_free(more);
    return both;
}

char *wb_sqlite_schema_text(const wb_persistence *persistence)
{
    char *text = part_text(tables_format, persistence->tables, first_version_format, persistence->part,
                           WB_SQLITE_PERSISTENCE_SCHEMA_VERSION);
    if (text && has_delayed(persistence))
        text = append(text, part_text(delayed_format, persistence->tables, version_format, persistence->delayed_part,
                                      WB_SQLITE_DELAYED_SCHEMA_VERSION));
    if (text && WB_HAS(persistence->endpoint, wb_endpoint_info, sql_api))
        text = append(text, wb_sqlite_written_schema(persistence->tables));
    if (text && has_positions(persistence))
        text = append(text, part_text(positions_format, persistence->tables, version_format, persistence->positions_part,
                                      WB_SQLITE_POSITIONS_SCHEMA_VERSION));
    if (text && WB_HAS(persistence->endpoint, wb_endpoint_info, subscriptions) && persistence->endpoint->subscriptions)
        text = append(text, wb_sqlite_names_format(subscriptions_format, persistence->tables));
    if (text && has_failures(persistence))
        text = append(text, wb_sqlite_names_format(failures_format, persistence->tables));
    return text;
}

/* Version of a part, 0 when it is not there; not a later one than ours. */
static int check_part(wb_persistence *persistence, wb_sqlite_database *db, const char *part,
                      int known, int *ret_version, wb_error *error)
{
    int result = wb_sqlite_db_schema_version(db, part, ret_version, error);
    if (result == WB_OK && *ret_version > known)
        result = persistence->host->fail(
            persistence->host, error, WB_FATAL, WB_CAUSE_MISMATCH, *ret_version,
            "the tables of endpoint \"%s\" in \"%s\" have version %d, this is version %d: use a "
            "newer waybill",
            persistence->endpoint->name, db->path, *ret_version, known);
    return result;
}

/* Versions of the parts; 0 where one is not there, or not needed. */
typedef struct {
    int outbox, delayed, positions;
} versions;

static int check_versions(wb_persistence *persistence, wb_sqlite_database *db, versions *ret, wb_error *error)
{
    *ret = (versions){ 0 };
    int result = check_part(persistence, db, persistence->part,
                            WB_SQLITE_PERSISTENCE_SCHEMA_VERSION, &ret->outbox, error);
    if (result == WB_OK && has_delayed(persistence))
        result = check_part(persistence, db, persistence->delayed_part,
                            WB_SQLITE_DELAYED_SCHEMA_VERSION, &ret->delayed, error);
    if (result == WB_OK && has_positions(persistence))
        result = check_part(persistence, db, persistence->positions_part,
                            WB_SQLITE_POSITIONS_SCHEMA_VERSION, &ret->positions, error);
    return result;
}

/* What of it is missing, or NULL. */
static const char *find_missing(const wb_persistence *persistence, const versions *found)
{
    if (!found->outbox)
        return "of";
    if (has_delayed(persistence) && !found->delayed)
        return "for the delayed messages of";
    return has_positions(persistence) && !found->positions ? "for the positions of" : NULL;
}

/* Whether the delayed messages are in the table of version 1, whatever number is recorded: somebody may
 * have run the printed schema on it. */
static int are_of_version_1(wb_persistence *persistence, wb_sqlite_database *db, int *ret_are, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    char *sql = wb_sqlite_names_format(
        "select 1 from pragma_table_info('waybill_%w_delayed') where name='operation'", persistence->tables);
    int result = sql ? wb_sqlite_db_prepare(db, &statement, sql, error) : wb_sqlite_db_out_of_memory(db, error);
    const int code = result == WB_OK ? sqlite3_step(statement) : SQLITE_DONE;
    *ret_are = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(db, code, "look at the tables", error);
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

static int upgrade(wb_persistence *persistence, wb_sqlite_database *db, wb_error *error)
{
    char *made = part_text(delayed_format, persistence->tables, version_format, persistence->delayed_part,
                           WB_SQLITE_DELAYED_SCHEMA_VERSION);
    char *moved = wb_sqlite_names_format(delayed_from_1_format, persistence->tables);
    int result = made && moved ? wb_sqlite_db_execute(db, made, "make the tables", error)
                               : wb_sqlite_db_out_of_memory(db, error);
    if (result == WB_OK)
        result = wb_sqlite_db_execute(db, moved, "bring the tables to this version", error);
    sqlite3_free(made);
    sqlite3_free(moved);
    return result;
}

/* Whatever is there already stays. A store that is only drained is upgraded, too. */
static int make_tables(wb_persistence *persistence, wb_sqlite_database *db, wb_error *error)
{
    int are_old = 0;
    int result = wb_sqlite_db_execute(db, persistence->schema, "make the tables", error);
    if (result == WB_OK)
        result = are_of_version_1(persistence, db, &are_old, error);
    return result == WB_OK && are_old ? upgrade(persistence, db, error) : result;
}

int wb_sqlite_schema_install(wb_persistence *persistence, wb_error *error)
{
    wb_sqlite_database db;
    versions found;
    int result = wb_sqlite_db_create(&db, persistence->host, persistence->config, persistence->path,
                                     error);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_db_begin(&db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = check_versions(persistence, &db, &found, error);
    if (result == WB_OK)
        result = make_tables(persistence, &db, error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&db, error);
    wb_sqlite_db_rollback(&db);
    wb_sqlite_db_close(&db);
    return result;
}

/* Whether a statement that names all columns can be made. */
static int verify_columns(wb_persistence *persistence, wb_sqlite_database *db, const char *format,
                          wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    char *sql = wb_sqlite_names_format(format, persistence->tables);
    if (!sql)
        return wb_sqlite_db_out_of_memory(db, error);
    int result = wb_sqlite_db_prepare(db, &statement, sql, error);
    (void)sqlite3_finalize(statement);
    sqlite3_free(sql);
    return result;
}

static int fail_missing(wb_persistence *persistence, const wb_sqlite_database *db, const char *which,
                        wb_error *error)
{
    return persistence->host->fail(persistence->host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                                   "no tables %s endpoint \"%s\" in \"%s\": run `waybill install`",
                                   which, persistence->endpoint->name, db->path);
}

int wb_sqlite_schema_check_keys(wb_persistence *persistence, wb_sqlite_database *db,
                                int *ret_are_compact, wb_error *error)
{
    int version = 0;
    int result = check_part(persistence, db, persistence->part,
                            WB_SQLITE_PERSISTENCE_SCHEMA_VERSION, &version, error);
    *ret_are_compact = version >= WB_SQLITE_COMPACT_VERSION;
    return result == WB_OK && !version ? fail_missing(persistence, db, "of", error) : result;
}

/* It has no version of its own yet: what is there has the columns that are named, or is none of ours. */
static int verify_failures(wb_persistence *persistence, wb_sqlite_database *db, wb_error *error)
{
    const int result = verify_columns(persistence, db,
                                      "select id, status, attempts, failed_at, changed_at, summary, message"
                                      " from \"waybill_%w_failed\" limit 0", error);
    return result == WB_FATAL ? fail_missing(persistence, db, "for the failed messages of", error) : result;
}

static int verify_tables(wb_persistence *persistence, wb_sqlite_database *db, wb_error *error)
{
    versions found;
    int are_old = 0;
    int result = check_versions(persistence, db, &found, error);
    if (result == WB_OK)
        result = are_of_version_1(persistence, db, &are_old, error);
    if (result != WB_OK)
        return result;
    if (are_old)
        return persistence->host->fail(persistence->host, error, WB_FATAL, WB_CAUSE_MISSING, 1,
                                       "the delayed messages of endpoint \"%s\" in \"%s\" are in the table of "
                                       "an earlier version: run `waybill install`",
                                       persistence->endpoint->name, db->path);
    const char *missing = find_missing(persistence, &found);
    if (missing)
        return fail_missing(persistence, db, missing, error);
    result = verify_columns(persistence, db,
                            "select d.batch, d.key, p.operations from \"waybill_%w_dedup\" d,"
                            " \"waybill_%w_pending\" p limit 0", error);
    if (result == WB_OK && has_delayed(persistence))
        result = verify_columns(persistence, db,
                                "select row, destination, id, retries, due, failures, owner,"
                                " leased_until, doubtful, operation from \"waybill_%w_delayed\""
                                " left join \"waybill_%w_delayed_operation\" using(row) limit 0",
                                error);
    if (result == WB_OK && has_positions(persistence))
        result = verify_columns(persistence, db,
                                "select partition, position, batch from \"waybill_%w_positions\" limit 0", error);
    if (result == WB_OK && has_failures(persistence))
        result = verify_failures(persistence, db, error);
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

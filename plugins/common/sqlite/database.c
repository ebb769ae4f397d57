/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/database.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugins/common/sqlite/map.h"
#include "plugins/common/sqlite/path.h"

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)

/* 16 MiB of log before a writer carries it into the file: pages of a busy queue are
 * written many times over and reach the file once. The log is cut back to this size. */
#define CHECKPOINT_PAGES "4000"
#define LOG_BYTES_KEPT "16777216"

int db_fail(database *db, int code, const char *doing, wb_error *error)
{
    const db_meaning *meaning = db_meaning_of(code);
    const char *text = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
    int native = db->handle ? sqlite3_extended_errcode(db->handle) : code;
    db->failure = code & 0xff;
    return db->host->fail(db->host, error, meaning->result, meaning->cause, native,
                          "could not %s in \"%s\": %s%s", doing, db->path, text, meaning->remedy);
}

int db_was_busy(const database *db, int result)
{
    return result == WB_RETRY && db->failure == SQLITE_BUSY;
}

int db_out_of_memory(database *db, wb_error *error)
{
    db->failure = SQLITE_NOMEM;
    return db->host->fail(db->host, error, WB_RETRY, WB_CAUSE_OTHER, SQLITE_NOMEM, "out of memory");
}

/* ---- waiting for the other writers --------------------------------------- */

static void pause_for(int64_t duration)
{
    struct timespec time = { .tv_sec = duration / (1000 * MILLISECOND),
                             .tv_nsec = duration % (1000 * MILLISECOND) };
    (void)nanosleep(&time, NULL);
}

/* Random waits of the same distribution for old and new waiters: SQLite's lock has no
 * queue, and growing waits would starve whoever waited longest. Only a lock held for
 * long (a slow handler in a shared transaction) is looked at less often. */
static int64_t busy_pause(database *db, int count)
{
    db->jitter = db->jitter * 1664525u + 1013904223u;
    int64_t share = (int64_t)(db->jitter >> 22); /* 0 to 1023 */
    int64_t longest = count < 200 ? MILLISECOND / 2 : 8 * MILLISECOND;
    return 50 * MICROSECOND + longest * share / 1024;
}

static int on_busy(void *argument, int count)
{
    database *db = argument;
    int64_t now = db->host->now();
    if (count == 0) {
        db->busy_until = now + db->busy_timeout;
        if (db->deadline && db->deadline < db->busy_until)
            db->busy_until = db->deadline;
    }
    if (now >= db->busy_until || (db->interrupted && atomic_load(db->interrupted)))
        return 0;
    pause_for(busy_pause(db, count));
    return 1;
}

/* A handler shares this connection; its COMMIT would tear the batch apart. */
static int on_commit(void *argument)
{
    const database *db = argument;
    return !db->committing;
}

/* ---- open and close ------------------------------------------------------- */

static int check_present(database *db, wb_error *error)
{
    if (access(db->path, R_OK | W_OK) == 0) /* never open(): see lockfile.h */
        return WB_OK;
    if (!path_has_directory(db->path))
        return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_MISSING, errno,
                              "the directory of \"%s\" does not exist: create it", db->path);
    int cause = errno == ENOENT ? WB_CAUSE_MISSING : WB_CAUSE_REFUSED;
    return db->host->fail(db->host, error, WB_FATAL, cause, errno, "cannot use \"%s\": %s%s",
                          db->path, strerror(errno),
                          cause == WB_CAUSE_MISSING ? "; run `waybill install`"
                                                    : ": it must be readable and writable");
}

static int open_handle(database *db, wb_error *error)
{
    int code = sqlite3_open_v2(db->path, &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                               NULL);
    if (code != SQLITE_OK)
        return db_fail(db, code, "open a connection", error);
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_handler(db->handle, on_busy, db);
    (void)sqlite3_commit_hook(db->handle, on_commit, db);
    /* secure_delete is on in some distributions and would write every freed page */
    return db_execute(db,
                      "pragma wal_autocheckpoint=" CHECKPOINT_PAGES ";"
                      "pragma journal_size_limit=" LOG_BYTES_KEPT ";"
                      "pragma secure_delete=fast; pragma temp_store=memory;"
                      "pragma synchronous=full",
                      "set up a connection", error);
}

static void init(database *db, const wb_host *host, const db_config *config, const char *path)
{
    memset(db, 0, sizeof *db);
    db->host = host;
    db->path = path;
    db->busy_timeout = config->busy_timeout;
    db->strongest = config->synchronous == 0 ? DB_POWER_LOSS : DB_PROCESS_CRASH;
    db->level = DB_POWER_LOSS;
    db->jitter = (uint32_t)host->now() ^ (uint32_t)(uintptr_t)db;
}

/* PRAGMA journal_mode, with or without asking for another; *ret_wal says what it is. */
static int journal_mode(database *db, const char *sql, int *ret_wal, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    db->committing = 1; /* the change is a transaction of its own */
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    int wal = code == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    int result = code == SQLITE_ROW ? WB_OK : db_fail(db, code, "read the journal mode", error);
    (void)sqlite3_finalize(statement);
    db->committing = 0;
    *ret_wal = wal;
    return result;
}

int db_open(database *db, const wb_host *host, const db_config *config, const char *path,
            wb_error *error)
{
    int wal = 0;
    init(db, host, config, path);
    int result = check_present(db, error);
    if (result == WB_OK)
        result = open_handle(db, error);
    if (result == WB_OK)
        result = journal_mode(db, "pragma journal_mode", &wal, error);
    if (result == WB_OK && !wal)
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                            "\"%s\" is not in wal mode: run `waybill install`", path);
    if (result != WB_OK)
        db_close(db);
    return result;
}

void db_close(database *db)
{
    if (!db->handle)
        return;
    sqlite3_stmt *statement;
    while ((statement = sqlite3_next_stmt(db->handle, NULL)))
        (void)sqlite3_finalize(statement);
    (void)sqlite3_close_v2(db->handle);
    db->handle = NULL;
    db->begin = db->commit = db->rollback = NULL;
}

/* Exclusive creation: a descriptor of a file that SQLite has open in this process must
 * never be closed. */
static int create_file(database *db, wb_error *error)
{
    int fd = open(db->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)close(fd);
        return WB_OK;
    }
    if (errno == EEXIST)
        return WB_OK;
    if (!path_has_directory(db->path))
        return check_present(db, error);
    int cause = errno == EACCES || errno == EPERM || errno == EROFS ? WB_CAUSE_REFUSED
                                                                     : WB_CAUSE_OTHER;
    return db->host->fail(db->host, error, WB_FATAL, cause, errno, "could not create \"%s\": %s",
                          db->path, strerror(errno));
}

/* The change to WAL needs the file alone, and SQLite does not always call the busy
 * handler for it: a second installer is waited for here. */
static int enter_wal(database *db, wb_error *error)
{
    int64_t until = db->host->now() + db->busy_timeout;
    for (;;) {
        int wal = 0;
        int result = journal_mode(db, "pragma journal_mode=wal", &wal, error);
        if (result == WB_OK && wal)
            return WB_OK;
        if (result == WB_OK)
            return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                                  "\"%s\" cannot be put into wal mode: use a local file system",
                                  db->path);
        if (result != WB_RETRY || db->host->now() >= until)
            return result;
        pause_for(5 * MILLISECOND);
    }
}

int db_create(database *db, const wb_host *host, const db_config *config, const char *path,
              wb_error *error)
{
    init(db, host, config, path);
    int result = create_file(db, error);
    if (result == WB_OK)
        result = open_handle(db, error);
    if (result == WB_OK)
        result = enter_wal(db, error);
    if (result != WB_OK)
        db_close(db);
    return result;
}

/* ---- statements ------------------------------------------------------------ */

int db_prepare(database *db, sqlite3_stmt **statement, const char *sql, wb_error *error)
{
    if (*statement)
        return WB_OK;
    int code = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    if (code == SQLITE_OK)
        return WB_OK;
    if ((code & 0xff) == SQLITE_ERROR) /* our SQL is right, so a table is missing */
        return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_MISSING, code,
                              "\"%s\" lacks its tables: %s; run `waybill install`", db->path,
                              sqlite3_errmsg(db->handle));
    return db_fail(db, code, "prepare a statement", error);
}

int db_run(database *db, sqlite3_stmt *statement, const char *doing, wb_error *error)
{
    int code = sqlite3_step(statement);
    int result = code == SQLITE_DONE ? WB_OK : db_fail(db, code, doing, error);
    (void)sqlite3_reset(statement);
    return result;
}

int db_execute(database *db, const char *sql, const char *doing, wb_error *error)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? WB_OK : db_fail(db, code, doing, error);
}

/* ---- transactions ---------------------------------------------------------- */

static int set_level(database *db, db_durability level, wb_error *error)
{
    if (db->level == level)
        return WB_OK;
    const char *sql = level == DB_POWER_LOSS ? "pragma synchronous=full"
                                             : "pragma synchronous=normal";
    int result = db_execute(db, sql, "choose the durability", error);
    if (result == WB_OK)
        db->level = level;
    return result;
}

int db_begin(database *db, db_durability durability, wb_error *error)
{
    db_durability level = durability < db->strongest ? durability : db->strongest;
    int result = set_level(db, level, error);
    if (result == WB_OK)
        result = db_prepare(db, &db->begin, "begin immediate", error);
    return result == WB_OK ? db_run(db, db->begin, "begin a transaction", error) : result;
}

int db_commit(database *db, wb_error *error)
{
    int result = db_prepare(db, &db->commit, "commit", error);
    if (result != WB_OK) {
        db_rollback(db);
        return result;
    }
    db->committing = 1;
    int code = sqlite3_step(db->commit);
    if (code != SQLITE_DONE) {
        result = db_fail(db, code, "commit", error);
        if (result == WB_NOT_CONNECTED)
            result = db->host->fail(db->host, error, WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, code,
                                    "the disk failed during a commit in \"%s\": %s", db->path,
                                    sqlite3_errmsg(db->handle));
    }
    (void)sqlite3_reset(db->commit);
    db->committing = 0;
    if (result != WB_OK)
        db_rollback(db);
    return result;
}

void db_rollback(database *db)
{
    if (!db_in_transaction(db))
        return;
    if (db_prepare(db, &db->rollback, "rollback", NULL) == WB_OK)
        (void)db_run(db, db->rollback, "roll back", NULL);
}

int db_in_transaction(const database *db)
{
    return !sqlite3_get_autocommit(db->handle);
}

/* ---- schema versions ------------------------------------------------------- */

static int table_exists(database *db, const char *name, int *ret_exists, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = db_prepare(db, &statement,
                            "select 1 from sqlite_schema where type='table' and name=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    *ret_exists = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = db_fail(db, code, "read the schema", error);
    (void)sqlite3_finalize(statement);
    return result;
}

int db_schema_version(database *db, const char *part, int *ret_version, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int exists = 0;
    *ret_version = 0;
    int result = table_exists(db, "waybill_schema", &exists, error);
    if (result != WB_OK || !exists)
        return result;
    result = db_prepare(db, &statement, "select version from waybill_schema where part=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, part, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *ret_version = sqlite3_column_int(statement, 0);
    else if (code != SQLITE_DONE)
        result = db_fail(db, code, "read the schema's version", error);
    (void)sqlite3_finalize(statement);
    return result;
}

int db_set_schema_version(database *db, const char *part, int version, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = db_execute(db,
                            "create table if not exists waybill_schema(part text primary key,"
                            " version integer not null) without rowid",
                            "create the table of versions", error);
    if (result == WB_OK)
        result = db_prepare(db, &statement,
                            "insert into waybill_schema(part,version) values(?1,?2)"
                            " on conflict(part) do update set version=excluded.version",
                            error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(statement, 1, part, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(statement, 2, version);
    result = db_run(db, statement, "record the schema's version", error);
    (void)sqlite3_finalize(statement);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/database.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugins/common/sqlite/disk.h"
#include "plugins/common/sqlite/leavings.h"
#include "plugins/common/sqlite/map.h"
#include "plugins/common/sqlite/path.h"
#include "plugins/common/sqlite/wal.h"

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)

/* SQLite has no number for it. */
static int is_missing(int code, const char *text)
{
    return (code & 0xff) == SQLITE_ERROR && strncmp(text, "no such table", sizeof "no such table" - 1) == 0;
}

/* No room for a log, or for its index, is an I/O error to SQLite, or a file that cannot be opened. It is called a full disk;
 * the class stays, since who met it in a commit does not know what was done. */
static int is_for_room(const wb_sqlite_database *db, int native)
{
    return db->handle && native != SQLITE_OK && wb_sqlite_disk_trouble_of(db->handle).no_room == native;
}

int wb_sqlite_db_fail(wb_sqlite_database *db, int code, const char *doing, wb_error *error)
{
    static const wb_sqlite_db_meaning missing = { SQLITE_ERROR, WB_FATAL, WB_CAUSE_MISSING, 0,
                                                  ": run waybill install" };
    const char *text = db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code);
    const wb_sqlite_db_meaning *meaning = is_missing(code, text) ? &missing : wb_sqlite_db_meaning_of(code);
    int native = db->handle ? sqlite3_extended_errcode(db->handle) : code;
    const int is_full = is_for_room(db, native);
    db->failure = code & 0xff;
    db->lacks_table = meaning == &missing;
    return db->host->fail(db->host, error, meaning->result, meaning->cause, native, "could not %s in \"%s\": %s%s", doing,
                          db->path, is_full ? sqlite3_errstr(SQLITE_FULL) : text,
                          is_full ? wb_sqlite_db_meaning_of(SQLITE_FULL)->remedy : meaning->remedy);
}

int wb_sqlite_db_fail_file(const wb_host *host, int number, const char *doing, const char *path,
                           wb_error *error)
{
    const wb_sqlite_db_meaning meaning = wb_sqlite_db_meaning_of_errno(number);
    return host->fail(host, error, meaning.result, meaning.cause, number,
                      "could not %s \"%s\": %s%s", doing, path, strerror(number), meaning.remedy);
}

int wb_sqlite_db_was_busy(const wb_sqlite_database *db, int result)
{
    return result == WB_RETRY && db->failure == SQLITE_BUSY;
}

int wb_sqlite_db_out_of_memory(wb_sqlite_database *db, wb_error *error)
{
    db->failure = SQLITE_NOMEM;
    return db->host->fail(db->host, error, WB_RETRY, WB_CAUSE_SERVER, SQLITE_NOMEM,
                          "out of memory");
}

/* ---- whose fault --------------------------------------------------------- */

uint64_t wb_sqlite_db_watch(sqlite3 *handle)
{
    return wb_sqlite_disk_trouble_of(handle).count;
}

/* SQLITE_BUSY also says that a savepoint cannot end while a statement runs; then it comes
 * with a text of its own, and it is the handler's. A lock has none. */
static int is_servers(sqlite3 *handle, int code)
{
    if (!wb_sqlite_db_meaning_of(code)->is_servers)
        return 0;
    return (code & 0xff) != SQLITE_BUSY ||
           strcmp(sqlite3_errmsg(handle), sqlite3_errstr(SQLITE_BUSY)) == 0;
}

int wb_sqlite_db_check_server(const wb_host *host, sqlite3 *handle, uint64_t watched,
                              wb_error *error)
{
    int code = sqlite3_extended_errcode(handle);
    wb_sqlite_disk_trouble met = wb_sqlite_disk_trouble_of(handle);
    if (met.count != watched)
        code = met.code;
    else if (!is_servers(handle, code))
        return WB_OK;
    return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, code,
                      "a statement failed in \"%s\": %s%s", sqlite3_db_filename(handle, "main"),
                      sqlite3_errstr(code), wb_sqlite_db_meaning_of(code)->remedy);
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
static int64_t busy_pause(wb_sqlite_database *db, int count)
{
    db->jitter = db->jitter * 1664525u + 1013904223u;
    int64_t share = (int64_t)(db->jitter >> 22); /* 0 to 1023 */
    int64_t longest = count < 200 ? MILLISECOND / 2 : 8 * MILLISECOND;
    return 50 * MICROSECOND + longest * share / 1024;
}

void wb_sqlite_db_pause(wb_sqlite_database *db, int count)
{
    pause_for(busy_pause(db, count));
}

static int on_busy(void *argument, int count)
{
    wb_sqlite_database *db = argument;
    int64_t now = db->host->now();
    if (count == 0) {
        db->busy_until = now + db->busy_timeout;
        if (db->deadline && db->deadline < db->busy_until)
            db->busy_until = db->deadline;
    }
    if (now >= db->busy_until || (db->interrupted && atomic_load(db->interrupted)))
        return 0;
    wb_sqlite_db_pause(db, count);
    return 1;
}

/* A handler shares this connection; its COMMIT would tear the batch apart. */
static int on_commit(void *argument)
{
    const wb_sqlite_database *db = argument;
    return !db->committing;
}

int wb_sqlite_db_hook(wb_sqlite_database *db)
{
    wb_sqlite_leavings_end_settings(db->handle);
    (void)sqlite3_busy_handler(db->handle, on_busy, db);
    return sqlite3_commit_hook(db->handle, on_commit, db) == db;
}

/* ---- open and close ------------------------------------------------------- */

static int check_present(wb_sqlite_database *db, wb_error *error)
{
    if (access(db->path, R_OK | W_OK) == 0) /* never open(): see lockfile.h */
        return WB_OK;
    int number = errno;
    if (!wb_sqlite_path_has_directory(db->path))
        return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_MISSING, number,
                              "the directory of \"%s\" does not exist: create it", db->path);
    if (number != ENOENT)
        return wb_sqlite_db_fail_file(db->host, number, "use", db->path, error);
    return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_MISSING, number,
                          "cannot use \"%s\": %s; run `waybill install`", db->path,
                          strerror(number));
}

static void do_nothing(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)context, (void)count, (void)values;
}

/* SQLite is done with the connection, whoever closed it. */
static void on_freed(void *argument)
{
    wb_sqlite_database *db = argument;
    db->handle = NULL;
    db->begin = db->commit = db->rollback = db->sentinel = NULL;
}

/* A function nobody calls, for its destructor. */
static int watch_for_end(wb_sqlite_database *db)
{
    sqlite3 *handle = db->handle;
    int code = sqlite3_create_function_v2(handle, "waybill_connection", 0, SQLITE_UTF8, db, do_nothing, NULL, NULL,
                                          on_freed);
    db->handle = handle; /* the destructor ran if it failed */
    return code;
}

static int open_handle(wb_sqlite_database *db, wb_error *error)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int code = sqlite3_open_v2(db->path, &db->handle, flags, wb_sqlite_disk_vfs());
    if (code == SQLITE_OK)
        code = watch_for_end(db);
    if (code != SQLITE_OK)
        return wb_sqlite_db_fail(db, code, "open a connection", error);
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)wb_sqlite_db_hook(db);
    /* secure_delete is on in some distributions and would write every freed page */
    const int result = wb_sqlite_db_execute(db,
                                            "pragma wal_autocheckpoint=0;" /* wal.c */
                                            "pragma journal_size_limit=" WB_SQLITE_WAL_BYTES_KEPT ";"
                                            "pragma secure_delete=fast; pragma temp_store=memory;"
                                            "pragma synchronous=full",
                                            "set up a connection", error);
    return result == WB_OK ? wb_sqlite_db_prepare(db, &db->sentinel, WB_SQLITE_LEAVINGS_SENTINEL, error) : result;
}

static void init(wb_sqlite_database *db, const wb_host *host, const wb_sqlite_db_config *config,
                 const char *path)
{
    memset(db, 0, sizeof *db);
    db->host = host;
    db->path = path;
    db->busy_timeout = config->busy_timeout;
    db->strongest = config->synchronous == 0 ? WB_SQLITE_DB_POWER_LOSS : WB_SQLITE_DB_PROCESS_CRASH;
    db->level = WB_SQLITE_DB_POWER_LOSS;
    db->jitter = (uint32_t)host->now() ^ (uint32_t)(uintptr_t)db;
}

/* PRAGMA journal_mode, with or without asking for another; *ret_wal says what it is. */
static int journal_mode(wb_sqlite_database *db, const char *sql, int *ret_wal, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    db->committing = 1; /* the change is a transaction of its own */
    int code = sqlite3_prepare_v2(db->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    int wal = code == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    int result = code == SQLITE_ROW ? WB_OK : wb_sqlite_db_fail(db, code, "read the journal mode",
                                                                error);
    (void)sqlite3_finalize(statement);
    db->committing = 0;
    *ret_wal = wal;
    return result;
}

int wb_sqlite_db_open(wb_sqlite_database *db, const wb_host *host,
                      const wb_sqlite_db_config *config, const char *path, wb_error *error)
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
        wb_sqlite_db_close(db);
    return result;
}

/* The last statement of one that somebody closed before takes it along. One that outlives us, over a
 * handler's open blob, does not call our destructor. */
void wb_sqlite_db_close(wb_sqlite_database *db)
{
    sqlite3_stmt *statement;
    while (db->handle && (statement = sqlite3_next_stmt(db->handle, NULL)))
        (void)sqlite3_finalize(statement);
    sqlite3 *handle = db->handle;
    if (!handle)
        return;
    (void)sqlite3_create_function_v2(handle, "waybill_connection", 0, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
    on_freed(db);
    (void)sqlite3_close_v2(handle);
}

int wb_sqlite_db_was_closed(const wb_sqlite_database *db)
{
    return !db->handle || wb_sqlite_db_is_zombie(db->handle);
}

int wb_sqlite_db_is_zombie(sqlite3 *handle)
{
    sqlite3_stmt *probe = NULL;
    return sqlite3_errcode(handle) == SQLITE_MISUSE && sqlite3_prepare_v2(handle, "", -1, &probe, NULL) == SQLITE_MISUSE;
}

/* Exclusive creation: a descriptor of a file that SQLite has open in this process must
 * never be closed. */
static int create_file(wb_sqlite_database *db, wb_error *error)
{
    int fd = open(db->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)close(fd);
        return WB_OK;
    }
    int number = errno;
    if (number == EEXIST)
        return WB_OK;
    if (!wb_sqlite_path_has_directory(db->path))
        return check_present(db, error);
    return wb_sqlite_db_fail_file(db->host, number, "create", db->path, error);
}

/* The change to WAL needs the file alone, and SQLite does not always call the busy
 * handler for it: a second installer is waited for here. */
static int enter_wal(wb_sqlite_database *db, wb_error *error)
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

int wb_sqlite_db_create(wb_sqlite_database *db, const wb_host *host,
                        const wb_sqlite_db_config *config, const char *path, wb_error *error)
{
    init(db, host, config, path);
    int result = create_file(db, error);
    if (result == WB_OK)
        result = open_handle(db, error);
    if (result == WB_OK)
        result = enter_wal(db, error);
    if (result != WB_OK)
        wb_sqlite_db_close(db);
    return result;
}

/* ---- statements ------------------------------------------------------------ */

int wb_sqlite_db_prepare(wb_sqlite_database *db, sqlite3_stmt **statement, const char *sql,
                         wb_error *error)
{
    if (*statement)
        return WB_OK;
    int code = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    db->lacks_table = (code & 0xff) == SQLITE_ERROR;
    if (code == SQLITE_OK)
        return WB_OK;
    if (db->lacks_table) /* our SQL is right, so a table is missing */
        return db->host->fail(db->host, error, WB_FATAL, WB_CAUSE_MISSING, code,
                              "\"%s\" lacks its tables: %s; run `waybill install`", db->path,
                              sqlite3_errmsg(db->handle));
    return wb_sqlite_db_fail(db, code, "prepare a statement", error);
}

int wb_sqlite_db_run(wb_sqlite_database *db, sqlite3_stmt *statement, const char *doing,
                     wb_error *error)
{
    int code = sqlite3_step(statement);
    int result = code == SQLITE_DONE ? WB_OK : wb_sqlite_db_fail(db, code, doing, error);
    (void)sqlite3_reset(statement);
    return result;
}

int wb_sqlite_db_execute(wb_sqlite_database *db, const char *sql, const char *doing,
                         wb_error *error)
{
    int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? WB_OK : wb_sqlite_db_fail(db, code, doing, error);
}

/* ---- transactions ---------------------------------------------------------- */

static int set_level(wb_sqlite_database *db, wb_sqlite_db_durability level, wb_error *error)
{
    if (db->level == level)
        return WB_OK;
    const char *sql = level == WB_SQLITE_DB_POWER_LOSS ? "pragma synchronous=full"
                                             : "pragma synchronous=normal";
    int result = wb_sqlite_db_execute(db, sql, "choose the durability", error);
    if (result == WB_OK)
        db->level = level;
    return result;
}

int wb_sqlite_db_begin(wb_sqlite_database *db, wb_sqlite_db_durability durability, wb_error *error)
{
    wb_sqlite_db_durability level = durability < db->strongest ? durability : db->strongest;
    if (db->handle) /* else a handler closed it */
        (void)wb_sqlite_db_hook(db);
    int result = set_level(db, level, error);
    if (result == WB_OK)
        result = wb_sqlite_db_prepare(db, &db->begin, "begin immediate", error);
    if (result == WB_OK) /* now, since nothing may fail once it is needed */
        result = wb_sqlite_db_prepare(db, &db->rollback, "rollback", error);
    return result == WB_OK ? wb_sqlite_db_run(db, db->begin, "begin a transaction", error) : result;
}

int wb_sqlite_db_commit(wb_sqlite_database *db, wb_error *error)
{
    int result = wb_sqlite_db_prepare(db, &db->commit, "commit", error);
    if (result != WB_OK) {
        wb_sqlite_db_rollback(db);
        return result;
    }
    db->committing = 1;
    wb_sqlite_wal_watch(db);
    int code = sqlite3_step(db->commit);
    if (code != SQLITE_DONE) {
        result = wb_sqlite_db_fail(db, code, "commit", error);
        if (result == WB_NOT_CONNECTED)
            result = db->host->fail(db->host, error, WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, code,
                                    "the disk failed during a commit in \"%s\": %s", db->path,
                                    sqlite3_errmsg(db->handle));
    }
    (void)sqlite3_reset(db->commit);
    db->committing = 0;
    if (result == WB_OK)
        wb_sqlite_wal_bound(db);
    else
        wb_sqlite_db_rollback(db);
    db->shared = 0;
    return result;
}

/* Who shared it may have ended the transaction before. What he left is ended twice: the ROLLBACK must not be refused for it, and
 * what can only be ended in no transaction goes behind it. */
void wb_sqlite_db_rollback(wb_sqlite_database *db)
{
    const int is_open = wb_sqlite_db_in_transaction(db);
    if (!db->handle || (!is_open && !db->shared))
        return;
    wb_sqlite_leavings_end_settings(db->handle);
    (void)sqlite3_set_authorizer(db->handle, NULL, NULL);
    if (is_open && wb_sqlite_db_prepare(db, &db->rollback, "rollback", NULL) == WB_OK)
        (void)wb_sqlite_db_run(db, db->rollback, "roll back", NULL);
    db->committing = 1;
    (void)wb_sqlite_leavings_end_all(db->handle);
    db->committing = 0;
    db->shared = 0;
}

int wb_sqlite_db_in_transaction(const wb_sqlite_database *db)
{
    return db->handle && !sqlite3_get_autocommit(db->handle);
}

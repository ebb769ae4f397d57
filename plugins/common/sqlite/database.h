/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection to a SQLite file, as both sqlite plugins use it: WAL, always BEGIN
 * IMMEDIATE, a busy wait that can be ended from outside, and transactions that are
 * flushed to disk or not, one by one.
 *
 * Threads: a database belongs to one thread at a time; `interrupted` may be set by any.
 * Errors: functions that take a wb_error return a WB_x class and fill it.
 */
#ifndef WB_SQLITE_DATABASE_H
#define WB_SQLITE_DATABASE_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <waybill/sys/plugin.h>

/** What a commit survives. A later flushed commit also flushes all earlier ones: the
 *  log is a sequence, power loss cuts its end and nothing else. */
typedef enum db_durability {
    DB_PROCESS_CRASH = 1, /* SIGKILL; the values are those of PRAGMA synchronous */
    DB_POWER_LOSS = 2,
} db_durability;

/** The options both plugins share; their configuration structs begin with it. */
typedef struct db_config {
    const char *file;
    int64_t busy_timeout; /* nanoseconds */
    int32_t synchronous;  /* index: 0 full, 1 normal */
} db_config;

typedef struct database {
    const wb_host *host;
    sqlite3 *handle;
    const char *path; /* canonical; owned by whoever opened */
    int64_t busy_timeout;
    /** Absolute; a busy wait ends here if that is sooner than busy_timeout. 0: none. */
    int64_t deadline;
    /** NULL, or set to non-zero to end a busy wait. */
    const atomic_int *interrupted;
    db_durability strongest; /* what DB_POWER_LOSS means here, by the options */
    db_durability level;     /* what PRAGMA synchronous is now */
    int64_t busy_until;
    uint32_t jitter;
    int failure;    /* the result code that db_fail() saw last */
    int committing; /* a COMMIT that is not ours is refused */
    int log_pages;  /* in the log after the last commit */
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *rollback;
} database;

/** Open the existing file at `path`, which is kept, not copied. On failure nothing is
 *  open. WB_CAUSE_MISSING when it is not there. */
int db_open(database *db, const wb_host *host, const db_config *config, const char *path,
            wb_error *error);
/** Finalizes every statement of the connection, so that none can be forgotten. */
void db_close(database *db);

/** Make the file when it is absent, readable by its owner only, open it, and put it into
 *  WAL mode. Safe to run from two processes. */
int db_create(database *db, const wb_host *host, const db_config *config, const char *path,
              wb_error *error);

/** Put our hooks on the connection: its busy wait, and the one that refuses a COMMIT which is
 *  not ours. @return whether the latter was there, and not a handler's in its place. */
int db_hook(database *db);

/** BEGIN IMMEDIATE. WB_RETRY when other writers kept the file longer than allowed. */
int db_begin(database *db, db_durability durability, wb_error *error);
/** COMMIT; a long log is then carried into the file (wal.h). On failure the transaction is rolled back; WB_IN_DOUBT when the disk failed
 *  while the log was flushed: after a power loss the transaction may be there. */
int db_commit(database *db, wb_error *error);
/** ROLLBACK, if a transaction is open. */
void db_rollback(database *db);
int db_in_transaction(const database *db);

/** Prepare a statement that lives as long as the connection, once. */
int db_prepare(database *db, sqlite3_stmt **statement, const char *sql, wb_error *error);
/** Run a bound statement that returns no rows, and reset it. */
int db_run(database *db, sqlite3_stmt *statement, const char *doing, wb_error *error);
/** Run SQL text without parameters. */
int db_execute(database *db, const char *sql, const char *doing, wb_error *error);

/** Fill `error` from a SQLite result code: "could not DOING in "FILE": ...".
 *  @return the class, see map.c. */
int db_fail(database *db, int code, const char *doing, wb_error *error);
/** Whether a call just failed because others kept the file busy. */
int db_was_busy(const database *db, int result);
/** The same from the errno of a file beside the database: "could not DOING "PATH": ...". */
int db_fail_file(const wb_host *host, int number, const char *doing, const char *path,
                 wb_error *error);

/** What db_check_server() compares with: call it when the transaction has begun. */
uint64_t db_watch(sqlite3 *handle);
/** Whether a trouble of the server's (a full or failing disk, no memory, a lock held by
 *  others) met a statement of this thread since db_watch(), whoever made it and whatever
 *  became of its result. What the disk refused is always seen; anything else only if no
 *  later call on the connection succeeded. @return WB_OK for none, else WB_RETRY with
 *  WB_CAUSE_SERVER. */
int db_check_server(const wb_host *host, sqlite3 *handle, uint64_t watched, wb_error *error);

/** WB_RETRY with WB_CAUSE_SERVER for want of memory. */
int db_out_of_memory(database *db, wb_error *error);

/** Version of a part of the schema, 0 when it is not there. */
int db_schema_version(database *db, const char *part, int *ret_version, wb_error *error);
/** Record it; inside a transaction. Makes the table when it is absent. */
int db_set_schema_version(database *db, const char *part, int version, wb_error *error);

#endif

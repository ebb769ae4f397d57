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
typedef enum wb_sqlite_db_durability {
    WB_SQLITE_DB_PROCESS_CRASH = 1, /* SIGKILL; the values are those of PRAGMA synchronous */
    WB_SQLITE_DB_POWER_LOSS = 2,
} wb_sqlite_db_durability;

/** The options both plugins share; their configuration structs begin with it. */
typedef struct wb_sqlite_db_config {
    const char *file;
    int64_t busy_timeout; /* nanoseconds */
    int32_t synchronous;  /* index: 0 full, 1 normal */
} wb_sqlite_db_config;

typedef struct wb_sqlite_database {
    const wb_host *host;
    sqlite3 *handle; /* NULL: not open, or a handler closed it and SQLite has freed it */
    const char *path; /* canonical; owned by whoever opened */
    int64_t busy_timeout;
    /** Absolute; a busy wait ends here if that is sooner than busy_timeout. 0: none. */
    int64_t deadline;
    /** NULL, or set to non-zero to end a busy wait. */
    const atomic_int *interrupted;
    wb_sqlite_db_durability strongest; /* what WB_SQLITE_DB_POWER_LOSS means here, by the options */
    wb_sqlite_db_durability level;     /* what PRAGMA synchronous is now */
    int64_t busy_until;
    uint32_t jitter;
    int failure;    /* the result code that wb_sqlite_db_fail() saw last */
    int committing; /* a COMMIT that is not ours is refused */
    /** Others may run statements in the transaction that is open, on this connection: a rollback puts it back also where they
     *  ended that. Ends with the transaction. */
    int shared;
    int lacks_table; /* what failed last did so because a table is not there */
    int log_pages;  /* in the log after the last commit */
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *rollback;
    sqlite3_stmt *sentinel; /* leavings.h finds it */
} wb_sqlite_database;

/** Open the existing file at `path`, which is kept, not copied. On failure nothing is
 *  open. WB_CAUSE_MISSING when it is not there. */
int wb_sqlite_db_open(wb_sqlite_database *db, const wb_host *host,
                      const wb_sqlite_db_config *config, const char *path, wb_error *error);
/** Finalizes every statement of the connection, so that none can be forgotten. */
void wb_sqlite_db_close(wb_sqlite_database *db);

/** Whether it is not open, or a handler closed it: only wb_sqlite_db_close() may follow, which ends
 *  its transaction. */
int wb_sqlite_db_was_closed(const wb_sqlite_database *db);
/** The same of a connection that is somebody else's, whose statements are still there: SQLite keeps such
 *  a connection as a zombie. */
int wb_sqlite_db_is_zombie(sqlite3 *handle);

/** Make the file when it is absent, readable by its owner only, open it, and put it into
 *  WAL mode. Safe to run from two processes. */
int wb_sqlite_db_create(wb_sqlite_database *db, const wb_host *host,
                        const wb_sqlite_db_config *config, const char *path, wb_error *error);

/** Sleep as one more of those who wait for the file do, who have slept `count` times. */
void wb_sqlite_db_pause(wb_sqlite_database *db, int count);

/** End settings that others left (leavings.h), and put our hooks on the connection: its busy wait, and the one that refuses a COMMIT which is
 *  not ours. @return whether the latter was there, and not a handler's in its place. */
int wb_sqlite_db_hook(wb_sqlite_database *db);

/** BEGIN IMMEDIATE, with our hooks. WB_RETRY when other writers kept the file longer than allowed. */
int wb_sqlite_db_begin(wb_sqlite_database *db, wb_sqlite_db_durability durability, wb_error *error);
/** COMMIT; a long log is then carried into the file (wal.h). On failure the transaction is rolled back; WB_IN_DOUBT when the disk failed
 *  while the log was flushed: after a power loss the transaction may be there. */
int wb_sqlite_db_commit(wb_sqlite_database *db, wb_error *error);
/** ROLLBACK, if a transaction is open; it is not refused for what somebody left on the connection, and the next transaction is not
 *  either. */
void wb_sqlite_db_rollback(wb_sqlite_database *db);
int wb_sqlite_db_in_transaction(const wb_sqlite_database *db);

/** Prepare a statement that lives as long as the connection, once. */
int wb_sqlite_db_prepare(wb_sqlite_database *db, sqlite3_stmt **statement, const char *sql,
                         wb_error *error);
/** Run a bound statement that returns no rows, and reset it. */
int wb_sqlite_db_run(wb_sqlite_database *db, sqlite3_stmt *statement, const char *doing,
                     wb_error *error);
/** Run SQL text without parameters. */
int wb_sqlite_db_execute(wb_sqlite_database *db, const char *sql, const char *doing,
                         wb_error *error);

/** Fill `error` from a SQLite result code: "could not DOING in "FILE": ...".
 *  @return the class, see map.c. */
int wb_sqlite_db_fail(wb_sqlite_database *db, int code, const char *doing, wb_error *error);
/** Whether a call just failed because others kept the file busy. */
int wb_sqlite_db_was_busy(const wb_sqlite_database *db, int result);
/** The same from the errno of a file beside the database: "could not DOING "PATH": ...". */
int wb_sqlite_db_fail_file(const wb_host *host, int number, const char *doing, const char *path,
                           wb_error *error);

/** What wb_sqlite_db_check_server() compares with: call it when the transaction has begun. */
uint64_t wb_sqlite_db_watch(sqlite3 *handle);
/** Whether a trouble of the server's (a full or failing disk, no memory, a lock held by
 *  others) met a statement of this thread since wb_sqlite_db_watch(), whoever made it and whatever
 *  became of its result. What the disk refused is always seen; anything else only if no
 *  later call on the connection succeeded. @return WB_OK for none, else WB_RETRY with
 *  WB_CAUSE_SERVER. */
int wb_sqlite_db_check_server(const wb_host *host, sqlite3 *handle, uint64_t watched,
                              wb_error *error);

/** WB_RETRY with WB_CAUSE_SERVER for want of memory. */
int wb_sqlite_db_out_of_memory(wb_sqlite_database *db, wb_error *error);

/** Version of a part of the schema, 0 when it is not there. */
int wb_sqlite_db_schema_version(wb_sqlite_database *db, const char *part, int *ret_version,
                                wb_error *error);
/** Record it; inside a transaction. Makes the table when it is absent. */
int wb_sqlite_db_set_schema_version(wb_sqlite_database *db, const char *part, int version,
                                    wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite persistence's inside: what its files share. README.md has the argument.
 */
#ifndef WB_SQLITE_PERSISTENCE_H
#define WB_SQLITE_PERSISTENCE_H

#include <stdint.h>
#include <waybill/sqlite.h>
#include <waybill/sys/failed.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/keys.h"
#include "plugins/common/sqlite/database.h"
#include "plugins/persistence/sqlite/heard.h"

#define WB_SQLITE_PERSISTENCE_SCHEMA_VERSION 2
#define WB_SQLITE_COMPACT_VERSION 2 /* the first whose deduplication table has compact keys */
#define WB_SQLITE_DELAYED_SCHEMA_VERSION 2
#define WB_SQLITE_POSITIONS_SCHEMA_VERSION 1

struct wb_persistence {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const wb_sqlite_db_config *config;
    char *path;          /* canonical path of the file */
    char *sessions_path; /* where the sweeper's lock is */
    char *part;          /* of the schema: "persistence:" and the endpoint's name */
    char *delayed_part;  /* the same with "delayed:" */
    char *positions_part; /* and with "positions:" */
    char *tables;        /* the endpoint's name as a part of table names */
    char *schema;
};

struct wb_storage_session {
    wb_persistence *persistence;
    wb_sqlite_database db;
    sqlite3 *joined;           /* a transport's connection, or NULL */
    uint64_t rollbacks;        /* of our own connection, counted */
    wb_sqlite_heard heard;
    uint64_t rollbacks_before; /* when the transaction began */
    uint64_t watched;          /* the same of what the disk refused */
    uintptr_t sentinel_was;    /* leavings.h */
    int told_future;           /* that there are records from the future */
    int has_compact_keys;      /* the deduplication table */
    int sweep_fd;              /* -1: not open */
    int64_t row_lock;          /* the byte of the pending row it has; 0: none */
    int turn_fd;               /* the same; of the turn to be given what programs wrote */
    int has_turn;
    void *operations;   /* a copy of one pending row */
    size_t operations_size;
    size_t operations_capacity;
    sqlite3_stmt *insert_claim;
    sqlite3_stmt *find_claim;
    sqlite3_stmt *release_claim;
    sqlite3_stmt *insert_pending;
    sqlite3_stmt *delete_pending;
    sqlite3_stmt *update_pending;
    sqlite3_stmt *find_pending;
    sqlite3_stmt *oldest_pending;
    sqlite3_stmt *has_pending;
    sqlite3_stmt *clean_up;
    sqlite3_stmt *newest;
    sqlite3_stmt *list_heads;
    sqlite3_stmt *count_records;
    sqlite3_stmt *fetch_written;
    sqlite3_stmt *last_written;
    sqlite3_stmt *remove_written;
    sqlite3_stmt *postpone_written;
    sqlite3_stmt *find_position;
    sqlite3_stmt *move_position;
    sqlite3_stmt *set_position_back;
    struct wb_sqlite_taken *taken; /* what was begun to fetch (fetch.c), or NULL */
};

/* names.c */

/* The endpoint's name as it stands in table names: lower case letters, digits, '_', '-'
 * and '.' as they are, any other byte as %XX. SQLite compares table names without regard
 * to case, so two names that differ must differ in more than case. NULL: no memory. */
char *wb_sqlite_names_encode(const char *endpoint);
/* sqlite3_mprintf() with the encoded name for every "%w", at most eight. */
char *wb_sqlite_names_format(const char *format, const char *tables);

/* removal.c: what wb_persistence_ops says */
int wb_sqlite_removal_uninstall(wb_persistence *persistence, wb_error *error);
int wb_sqlite_removal_rename(wb_persistence *persistence, const char *former, wb_error *error);
int wb_sqlite_removal_keep_note(wb_persistence *persistence, const char *name, int32_t number, wb_error *error);
int wb_sqlite_removal_look_up_note(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error);
int wb_sqlite_removal_note(wb_persistence *persistence, const char *const *types, size_t count, int is_over, wb_error *error);
int wb_sqlite_removal_subscriptions(wb_persistence *persistence, wb_subscription_fn visit, void *argument, wb_error *error);

/* schema.c */
/* What install() runs. NULL: no memory. */
char *wb_sqlite_schema_text(const wb_persistence *persistence);
int wb_sqlite_schema_install(wb_persistence *persistence, wb_error *error);
int wb_sqlite_schema_verify(wb_persistence *persistence, wb_error *error);
/* Whether there are tables for the outbox, of a version that is known, and with which keys. */
int wb_sqlite_schema_check_keys(wb_persistence *persistence, wb_sqlite_database *db,
                                int *ret_are_compact, wb_error *error);

/* session.c */
int wb_sqlite_storage_open(wb_persistence *persistence, wb_storage_session **ret_session,
                           wb_error *error);
void wb_sqlite_storage_close(wb_storage_session *session);
int wb_sqlite_storage_join(wb_storage_session *session, void *native, wb_error *error);
const void *wb_sqlite_storage_interface(wb_storage_session *session, const char *name);
int wb_sqlite_storage_check(wb_storage_session *session, size_t item, wb_error *error);
/* Whether the server's trouble met the transaction: WB_RETRY with WB_CAUSE_SERVER. */
int wb_sqlite_storage_check_server(wb_storage_session *session, wb_error *error);
/* Count rollbacks of the handlers' connection, and its troubles, from here on. */
void wb_sqlite_storage_watch(wb_storage_session *session);
/* Whether the transaction that wb_sqlite_storage_watch() began to watch is still the one open. */
int wb_sqlite_storage_is_intact(const wb_storage_session *session);
/* wb_sqlite_db_prepare() with table names filled in, see wb_sqlite_names_format(). */
int wb_sqlite_storage_prepare(wb_storage_session *session, sqlite3_stmt **statement,
                              const char *format, wb_error *error);
/* A batch number as SQLite stores it: its integers are signed, the order must not be. */
int64_t wb_sqlite_storage_batch_to_column(uint64_t batch);
uint64_t wb_sqlite_storage_batch_from_column(int64_t column);

/* transaction.c */
int wb_sqlite_storage_begin(wb_storage_session *session, wb_begin *begin, wb_error *error);
int wb_sqlite_storage_commit(wb_storage_session *session, wb_commit *commit, wb_error *error);
int wb_sqlite_storage_rollback(wb_storage_session *session, wb_error *error);
int wb_sqlite_storage_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error);
/* In the open transaction. */
int wb_sqlite_storage_claim(wb_storage_session *session, uint64_t batch, const wb_claim *claim, int *ret_is_new,
                            wb_error *error);
int wb_sqlite_storage_release(wb_storage_session *session, uint64_t batch, const wb_claim *claims, size_t count,
                              wb_error *error);
/* Whether the transaction is still open: WB_OK, or what became of it. */
int wb_sqlite_storage_check_intact(wb_storage_session *session, wb_error *error);

/* pending.c */
int wb_sqlite_storage_mark(wb_storage_session *session, const wb_mark *marks, size_t count,
                           wb_error *error);
/* In the open transaction. */
int wb_sqlite_storage_mark_each(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);
int wb_sqlite_storage_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                              wb_pending_fn visit, void *argument, wb_error *error);
int wb_sqlite_storage_sweep(wb_storage_session *session, uint64_t before, size_t limit,
                            wb_pending_fn visit, void *argument, wb_error *error);
int wb_sqlite_storage_next_pending(wb_storage_session *session, uint64_t after, uint64_t before,
                                   wb_pending_fn visit, void *argument, wb_error *error);
int wb_sqlite_storage_take_pending(wb_storage_session *session, uint64_t batch, int *ret_taken,
                                   wb_error *error);
/* Run a bound statement that yields one (batch, operations) or nothing, and copy it: a
 * visitor may use this session, or write the file through a transport. */
int wb_sqlite_storage_read_row(wb_storage_session *session, sqlite3_stmt *statement, int *ret_found,
                               uint64_t *ret_batch, wb_error *error);
/* The row that was read, and its memory afterwards. */
int wb_sqlite_storage_visit_row(wb_storage_session *session, uint64_t batch, wb_pending_fn visit,
                                void *argument);

/* look.c */
int wb_sqlite_storage_stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error);
int wb_sqlite_storage_count_records(wb_storage_session *session, uint64_t from, uint64_t before,
                                    size_t limit, uint64_t *ret_count, wb_error *error);
int wb_sqlite_storage_list_pending(wb_storage_session *session, const wb_pending_filter *filter,
                                   wb_pending_fn visit, void *argument, wb_error *error);

/* Where locks of the operating system are, each of an endpoint: one byte of the file of sessions, above all
 * numbers of sessions. */
#define WB_SQLITE_SWEEP_LOCKS (INT64_C(1) << 32)
#define WB_SQLITE_ROW_LOCKS (INT64_C(2) << 32)
#define WB_SQLITE_TURN_LOCKS (INT64_C(3) << 32)
/* Endpoints that share one only work in turns. */
int64_t wb_sqlite_storage_lock_of(int64_t locks, const char *endpoint);

/* cleanup.c */
int wb_sqlite_storage_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error);
int wb_sqlite_storage_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                               size_t *ret_deleted, wb_error *error);

/* positions.c */
/* In the open transaction. */
int wb_sqlite_positions_claim(wb_storage_session *session, wb_begin *begin, wb_error *error);
int wb_sqlite_positions_set_back(wb_storage_session *session, const wb_commit *commit, wb_error *error);
int wb_sqlite_positions_visit(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error);
int wb_sqlite_positions_forget(wb_storage_session *session, size_t *ret_count, wb_error *error);

/* apart.c */
/* What a transaction makes first, in one of its own: its marks, and what it is to forget. */
int wb_sqlite_apart_settle(wb_storage_session *session, const wb_begin *begin, wb_error *error);
int wb_sqlite_apart_forget(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);
int wb_sqlite_apart_remember(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);

/* delayed.c */
extern const wb_delayed_ops wb_sqlite_delayed_ops;

/* failed.c */
extern const wb_failed_ops wb_sqlite_failed_ops;

/* written.c */
extern const wb_written_ops wb_sqlite_written_ops;
/* What programs insert into, as SQL; `tables` is the encoded name. NULL: no memory. */
char *wb_sqlite_written_schema(const char *tables);

#endif

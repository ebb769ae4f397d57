/* SPDX-License-Identifier: Apache-2.0
 *
 * An outbox: one endpoint's tables on one server, what a kind of server is asked with
 * (wb_sql_dialect), and how it is asked (wb_sql_driver, in driver.h).
 */
#ifndef WB_COMMON_SQL_OUTBOX_H
#define WB_COMMON_SQL_OUTBOX_H

#include <waybill/sys/persistence.h>

#include "plugins/common/sql/gap.h"
#include "plugins/common/sql/names.h"

/** The statements of an outbox, and their parameters. How those are written into a template is
 *  the driver's affair. */
typedef enum wb_sql_which {
    /* one batch after the other uses these */
    WB_SQL_BEGIN,
    WB_SQL_CLAIM, /* keys, batch; affects the new ones */
    WB_SQL_STORE, /* batch, operations */
    WB_SQL_MARK,  /* batches; need not be flushed to disk */
    WB_SQL_MARK_ONE, /* batch; the same; NULL: MARK will do */
    WB_SQL_FORGET,   /* keys, batch; the same */
    WB_SQL_REMEMBER, /* keys, their batches; what has a record keeps it */
    WB_SQL_CLAIM_LATE, /* key, batch; fails if it is there */
    WB_SQL_COMMIT,
    WB_SQL_FREQUENT, /* number of the above */
    /* rare */
    WB_SQL_ROLLBACK = WB_SQL_FREQUENT,
    WB_SQL_LOOKUP,   /* keys -> key, batch; in the order of the keys */
    WB_SQL_RELEASE,  /* keys, batch */
    WB_SQL_SHRINK,   /* batch, operations */
    WB_SQL_MARK_MANY, /* as MARK, of more than one; NULL where MARK serves */
    WB_SQL_PENDING,  /* batches -> batch, operations */
    WB_SQL_LOCK,     /* lock -> 1: it is ours until UNLOCK. Does not wait. */
    WB_SQL_LOCK_IN_TRANSACTION, /* lock -> 1: it is ours until the transaction ends; instead of
                                 * LOCK and UNLOCK, which may be NULL if the driver knows such locks
                                 * (wb_sql_driver.locks_in_transaction), which then needs this */
    WB_SQL_UNLOCK,   /* lock */
    WB_SQL_NEXT,     /* from, before -> as PENDING, the lowest batch only */
    /* from, before, limit -> the highest batch whose records CLEAN_UP will delete. NULL where
     * CLEAN_UP says it: -> the batch of each record that it deleted */
    WB_SQL_REACH,
    WB_SQL_CLEAN_UP, /* from, before, limit, lock; affects the records it deletes, oldest first */
    WB_SQL_CLOCK,    /* -> microseconds since 1970 UTC */
    WB_SQL_FUTURE,   /* from -> records, rows (WB_SQL_FUTURE_MAX at most), newest record */
    /* limit -> records, counted up to the limit; the same as the server estimates it, or NULL; oldest,
     * newest record; bytes of the tables of records and of pending rows with their indexes, or NULL */
    WB_SQL_STATS,
    WB_SQL_COUNT_RECORDS, /* from, before, limit -> how many records CLEAN_UP would delete */
    WB_SQL_HEADS,    /* from, before, limit, bytes -> as PENDING, the first bytes only; lowest first */
    /* the delayed message store. Times are microseconds since 1970 UTC, by the server's clock;
     * "keys" are three parameters: ids, destinations, retries; a "row" is id, destination,
     * retries, failures, due, operation */
    WB_SQL_PLAN,     /* goes before those of the store, in their transaction; NULL: no need */
    WB_SQL_DELAY,    /* keys, due, operations; what is there already stays as it is */
    WB_SQL_NEXT_DUE, /* -> when, or WB_SQL_NEVER; now */
    /* at (0: now), limit, owner, lease, bytes: takes rows, earliest due first, until they have so
     * many bytes -> the rows with their numbers, in any order. Where FIND_DUE is there: numbers, owner, lease */
    WB_SQL_TAKE,
    WB_SQL_FIND_DUE, /* NULL where TAKE finds them; at, limit -> number, bytes; locks, never waits */
    WB_SQL_TAKEN,    /* beside it: numbers -> rows with their numbers, in any order */
    /* keys, owner ('': whoever has them), 1 if nobody may have them, or have sent them -> the keys of
     * the rows that it deletes. Where FIND is there: numbers, owner; affects what it deletes */
    WB_SQL_DROP,
    /* keys, owner, numbers: the same where rows have the numbers that TAKE said, quicker; affects what it
     * deletes. A row may have another number since. NULL where FIND is there, or nothing is quicker */
    WB_SQL_DROP_THERE,
    /* as DROP, due or WB_SQL_AS_IT_WAS, failures to add; they are nobody's then. Where FIND is there:
     * numbers, due, failures */
    WB_SQL_PUT_BACK,
    WB_SQL_FIND,     /* NULL where those two answer; as DROP -> keys, numbers; locks them */
    /* behind due, id, destination, rank; due before; destination, id ('': any); limit -> rows, of
     * LIST without an operation, with until when each is taken and its rank: in the order of the
     * first four, or of due and rank */
    WB_SQL_LIST,
    WB_SQL_SHOW, /* the same with operations, and there is an id */
    /* what programs write; all NULL where the dialect has no such interface. Times as above */
    WB_SQL_WRITTEN_LOOK,     /* -> 1: it is installed */
    WB_SQL_WRITTEN_LAST,     /* -> the highest number, or NULL */
    WB_SQL_WRITTEN_COUNT,    /* limit -> how many rows there are */
    WB_SQL_WRITTEN_FETCH,    /* limit, bytes, highest form, behind which number -> number, form, tries, when it was written, id, destination, type,
                              * headers, key, body; by number, until they have so many bytes */
    WB_SQL_WRITTEN_REMOVE,   /* numbers */
    WB_SQL_WRITTEN_POSTPONE, /* number, for how long, tries to add, reason */
    WB_SQL_WRITTEN_SEND,     /* destination, type, body, headers, key: as a program does */
    WB_SQL_WRITTEN_PUBLISH,  /* type, body, headers, key */
    WB_SQL_WRITTEN_CLAIM,    /* id -> 1: it is new */
    WB_SQL_WRITTEN_CLAIMED,  /* NULL where CLAIM answers; else it goes behind it, and does */
    /* how far partitions are done with */
    WB_SQL_POSITION_LOCK, /* partition -> position, batch; locks the row, waiting for it */
    WB_SQL_POSITION_MOVE, /* partition, position, batch; where the row's position is lower */
    WB_SQL_POSITION_MAKE, /* partition; a row with position and batch 0, if there is none */
    WB_SQL_POSITION_BACK, /* partition, position, batch, batch of before; where that is the row's */
    WB_SQL_POSITIONS,     /* -> partition, position, batch */
    WB_SQL_POSITIONS_FORGET, /* affects all rows */
    /* failed messages; all NULL where the dialect keeps none. Times as above; a "message" is id, status, attempts, when it
     * failed, when its status changed, summary, and itself */
    WB_SQL_FAILED_PUT,      /* id, when it failed, now, summary, message; nothing if it is there and failed at that time */
    WB_SQL_FAILED_TURN,     /* id, status, the new one, now; affects it if that was its status */
    WB_SQL_FAILED_DISCARD,  /* id, status; likewise */
    WB_SQL_FAILED_GET,      /* id -> the message */
    WB_SQL_FAILED_LIST,     /* status (0: any); behind time and id; failed before; limit -> messages, '' in place of themselves */
    WB_SQL_FAILED_CLEAN_UP, /* changed before, limit; affects those that it deletes, of which none has status 1 */
    WB_SQL_COUNT
} wb_sql_which;

/** Most parameters of a statement. */
#define WB_SQL_VALUES_MAX 8

/** A time that does not come. */
#define WB_SQL_NEVER INT64_MAX
/** The due time of WB_SQL_PUT_BACK that leaves a row's own. */
#define WB_SQL_AS_IT_WAS WB_SQL_NEVER

/** Added to a definition's condition: only where the endpoint's delays wait in a table. */
#define WB_SQL_FOR_DELAYS 16
/** The same: only where programs are to write messages. */
#define WB_SQL_FOR_PROGRAMS 32
/** The same: only where the endpoint knows messages by their positions. */
#define WB_SQL_FOR_POSITIONS 48
/** The same: only where what the transport subscribes to is noted here. */
#define WB_SQL_FOR_SUBSCRIPTIONS 64
/** The same: only where failed messages are kept. */
#define WB_SQL_FOR_FAILURES 80

/** Tables of this version and later hold compact keys (keys.h), those of before the ids as they are. */
#define WB_SQL_COMPACT_VERSION 2

/** A statement of an installation. Each must be harmless where it was run before. */
typedef struct wb_sql_definition {
    int when; /* 0: always; else a condition of the dialect's own, 1 to 15; or that and more:
               * WB_SQL_FOR_DELAYS, _PROGRAMS, _POSITIONS, _SUBSCRIPTIONS or _FAILURES */
    const char *comment; /* or NULL */
    const char *template;
} wb_sql_definition;

/** What one kind of server is asked with. Templates have {names} (names.h). It is not all: what a
 *  driver asks of its own (the session's settings, the guard against what handlers do) is in the
 *  words of the server it was written for; its README says which. What is missing here is refused
 *  by wb_sql_outbox_init(). */
typedef struct wb_sql_dialect {
    const wb_sql_quoting *quoting;
    const char *const *templates; /* WB_SQL_COUNT of them; NULL only where it says so above */

    const wb_sql_definition *definitions;
    size_t definition_count;
    size_t first_count;         /* the first ones, up to the table {endpoints} */
    int schema_version; /* of the tables that it makes; those of any version before work as well */
    const char *record_version; /* statement that writes it into {endpoints}; a version that is there
                                 * already stays, since tables and their keys do */
    const char *schema_start;   /* around the text of an installation */
    const char *schema_end;
    /** Around a definition that holds lines with semicolons at their ends, in that text; NULL: it may stand
     *  there as it is. */
    const char *compound_start;
    const char *compound_end;
    /** Whether the text of an installation has definitions of a condition; NULL: it has all. */
    int (*is_written)(const wb_sql_names *names, int when);

    size_t keys_max;       /* of one statement */
    uint64_t batch_max;    /* the highest batch number a table holds */
    size_t operations_max; /* bytes a row holds; what a statement holds is the driver's affair */
    /** CLEAN_UP takes the lock by itself, and deletes nothing if it is another's. Must be where
     *  the driver knows locks of transactions. */
    int clean_up_locks;
    /** Instead of a lock's name statements get its purpose, "sweep", "cleanup", or "sweep" and a
     *  batch number, as text: whose it is, they know. */
    int locks_by_purpose;

    /** Keep other installations out; bit n of *ret_holds says that condition n holds.
     *  @return WB_OK, or the class in the session's failure. */
    int (*prepare_install)(wb_storage_session *session, unsigned *ret_holds);
    /** What verify looks at, one after the other, up to NULL. */
    int (*const *checks)(wb_storage_session *session, wb_error *error);
    /** What examine asks, up to NULL; NULL: nothing. Each answers with findings: severity, name, text, remedy (or
     *  NULL). Beside the names of names.h {sessions} is the number that is asked for. */
    const char *const *questions;
    /** What tables of what programs write must answer to, up to NULL: some of that name may have been there. */
    const char *const *written_probes;

    /* removal.h; statements up to NULL. Each must be harmless where there is nothing to remove or rename */
    const char *const *removal;  /* but for the row in {endpoints} */
    const char *const *renaming; /* the same; |{names}| between bars are the former ones */
    /** NULL, or behind `renaming`: give all tables that are there under the former names the new ones, at once. */
    int (*rename_tables)(wb_storage_session *session, const wb_sql_names *former);
    /** NULL where all of a rename is one transaction: whether tables have these names. */
    int (*has_tables)(wb_storage_session *session, const wb_sql_names *names, int *ret_has);
    /** What stands around a type's literal to note that it is subscribed to, and that it is so no more. */
    const char *note_subscription[2];
    const char *forget_subscription[2];
} wb_sql_dialect;

struct wb_sql_driver;

/** The first member of each plugin's struct wb_persistence. */
typedef struct wb_sql_outbox {
    const wb_host *host;
    const wb_sql_dialect *dialect;
    const struct wb_sql_driver *driver;
    wb_sql_names names;
    char *statements[WB_SQL_COUNT];
    char *schema; /* SQL text of an installation */
    int delays;    /* delayed messages wait in a table here */
    int sql_api;   /* an installation makes what programs write messages with */
    int positions; /* how far partitions are done with is in a table here */
    int subscriptions; /* what the transport subscribes to is noted in a table here */
    int failures;  /* failed messages are kept in a table here */
    /** Below the lowest pending row, and below the oldest record: sessions come and go. */
    wb_sql_gap swept;
    wb_sql_gap cleaned;
} wb_sql_outbox;

/** Fill all of it, which is zero. @return WB_OK, or WB_FATAL: the dialect lacks what the driver
 *  needs, or out of memory; to be freed either way. */
int wb_sql_outbox_init(wb_sql_outbox *outbox, const wb_host *host, const wb_sql_dialect *dialect,
                       const struct wb_sql_driver *driver, const wb_endpoint_info *endpoint,
                       const char *container, wb_error *error);
void wb_sql_outbox_free(wb_sql_outbox *outbox);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How a server is asked, through its client library. An exchange is one round trip, as far as
 * what is queued fits into one:
 *
 *     start -> queue..., queue_... -> run
 *
 * Queueing reports nothing: what cannot be queued is run()'s failure. What follows a statement
 * that failed is not executed; a COMMIT above all. Values are bound, or written so that they
 * cannot end their literal.
 */
#ifndef WB_COMMON_SQL_DRIVER_H
#define WB_COMMON_SQL_DRIVER_H

#include "plugins/common/sql/keys.h"
#include "plugins/common/sql/session.h"

typedef struct wb_sql_cell {
    const char *data; /* NULL: SQL NULL */
    size_t size;
} wb_sql_cell;

/** A parameter of a statement. */
typedef struct wb_sql_value {
    enum {
        WB_SQL_A_NUMBER,
        WB_SQL_A_TEXT,         /* `size` bytes at `data` */
        WB_SQL_A_LOCK,         /* the endpoint's lock for the purpose `data`, a string */
        WB_SQL_SOME_NUMBERS,   /* `size` uint64_t */
        WB_SQL_SOME_BYTES,     /* `size` wb_sql_cell, none of them NULL */
        WB_SQL_SOME_KEYS,      /* the ids of `size` wb_claim */
        WB_SQL_UNSETTLED_KEYS, /* of those with duplicate_of == WB_SQL_UNSETTLED */
        WB_SQL_OWNERS,         /* the batches that `size` wb_claim say, in duplicate_of */
        WB_SQL_GONE_BATCHES    /* those of `size` wb_mark of which nothing remains */
    } kind; /* several lists of one statement are of the same size */
    uint64_t number;
    const void *data;
    size_t size;
    int compact; /* ids go as compact keys */
} wb_sql_value;

#define WB_SQL_NUMBER(value) ((wb_sql_value){ WB_SQL_A_NUMBER, (value), NULL, 0, 0 })
#define WB_SQL_BYTES(data, size) ((wb_sql_value){ WB_SQL_A_TEXT, 0, (data), (size), 0 })
#define WB_SQL_LOCK_FOR(purpose) ((wb_sql_value){ WB_SQL_A_LOCK, 0, (purpose), 0, 0 })
#define WB_SQL_LIST(kind, data, size) ((wb_sql_value){ (kind), 0, (data), (size), 0 })
/** SOME_KEYS or UNSETTLED_KEYS, as the session's table holds them. */
#define WB_SQL_KEYS(kind, session, claims, count)                                                  \
    ((wb_sql_value){ (kind), 0, (claims), (count), wb_sql_of(session)->has_compact_keys })

/** A claim whose standing is not known yet: what duplicate_of is until then. */
#define WB_SQL_UNSETTLED UINT64_MAX

/** Whether element `i` of a list is meant. */
int wb_sql_is_listed(const wb_sql_value *list, size_t i);
size_t wb_sql_count_listed(const wb_sql_value *list);
/** Element `i` of a list of keys, as it is stored; in `room`, or the id itself. */
wb_sql_key wb_sql_listed_key(const wb_sql_value *list, size_t i,
                             unsigned char room[WB_SQL_KEY_ROOM]);

/** What statements answered. All zero is nothing yet. */
typedef struct wb_sql_answer {
    void *rows;        /* the client library's, or NULL: none came */
    int row;           /* the next to fetch, for drivers that number them */
    uint64_t affected; /* sum over all statements with this answer */
} wb_sql_answer;

/** What stands on the server, before a rollback. */
typedef enum wb_sql_standing {
    WB_SQL_NOTHING,     /* no transaction */
    WB_SQL_TRANSACTION, /* one that ROLLBACK ends */
    WB_SQL_UNUSABLE     /* nothing can be asked; the loss is recorded */
} wb_sql_standing;

typedef struct wb_sql_driver {
    /** It knows sessions whose locks are the transaction's (wb_sql_session.locks_in_transaction): a
     *  dialect without LOCK, and a server behind a pooler. Others want LOCK and UNLOCK. */
    int locks_in_transaction;
    /** NULL: never. May a transaction of an outbox that begins with no claim, mark or position begin with its
     *  first statement? Not on a connection that may be dead unnoticed, nor if something has to go before BEGIN: that
     *  would be another transaction in the exchange of the COMMIT. Whatever sends the first statement calls
     *  wb_sql_queue_due_begin() before. */
    int (*may_begin_late)(wb_storage_session *session);
    /** Forgets the failure of before. */
    void (*start)(wb_storage_session *session);
    /** One of the outbox' statements. `ret_answer` may be NULL. With locks_in_transaction, LOCK
     *  is a BEGIN and LOCK_IN_TRANSACTION. */
    void (*queue)(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values,
                  size_t count, wb_sql_answer *ret_answer);
    /** Any other statement; {names} are replaced already. Its rows are text. */
    void (*queue_text)(wb_storage_session *session, const char *statement,
                       wb_sql_answer *ret_answer);
    /** Outside of the framework's transactions: what was queued stands by itself. */
    void (*queue_end)(wb_storage_session *session);
    /** BEGIN and what belongs to it; what was dispatched, too (wb_sql_queue_dispatched), in the transaction or
     *  before it. NULL: the transaction of before again, after a ROLLBACK, with what it had of that. */
    void (*queue_begin)(wb_storage_session *session, const wb_begin *begin);
    /** ROLLBACK, and what was dispatched by itself if that was in the transaction. */
    void (*queue_rollback)(wb_storage_session *session);
    /** What handlers deferred. */
    void (*queue_deferred)(wb_storage_session *session);
    /** Send, pass `crash_point` (may be NULL) when all is sent, read all answers. @return WB_OK,
     *  or the class in the session's failure. It is lost if the connection is. */
    int (*run)(wb_storage_session *session, const char *crash_point);
    /** Its two halves, for who has something else to do before the answers come. NULL: it has none. */
    void (*send)(wb_storage_session *session, const char *crash_point);
    int (*receive)(wb_storage_session *session);

    /** Drop what handlers deferred, and what the transaction has of what was dispatched. */
    void (*forget)(wb_storage_session *session);
    /** Is the transaction still as it must be, as far as this side knows? Records what is wrong
     *  as the session's failure. @return its class. */
    int (*inspect)(wb_storage_session *session);
    /** Record it if the connection broke while handlers ran. Costs no round trip. */
    void (*look_for_loss)(wb_storage_session *session);
    wb_sql_standing (*standing)(wb_storage_session *session);
    /** Record that the connection is gone, and why (NULL: the client library knows). */
    void (*lose)(wb_storage_session *session, const char *reason);

    /** The next row. @return 0: there is none. Cells last until the answer is cleared. */
    int (*fetch)(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count);
    /** Of a cell of one of the outbox' statements. NULL is 0. */
    uint64_t (*number)(const wb_sql_cell *cell);
    void (*clear)(wb_sql_answer *answer);

    /** A session for install and verify. */
    int (*connect)(wb_persistence *persistence, wb_storage_session **ret_session,
                   wb_error *error);
    void (*close)(wb_storage_session *session);
} wb_sql_driver;

#endif

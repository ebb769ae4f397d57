/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange: several statements in one round trip, with libpq's pipeline mode.
 *
 *     pgsql_exchange_start -> pgsql_queue_... -> pgsql_exchange_run
 *
 * Queueing never blocks and reports nothing; run() sends the rest, reads while it
 * writes (so that neither side can wait for the other for ever), and looks at every
 * result. After the first failure the server skips what follows up to the next
 * synchronization point: a COMMIT queued behind a statement that fails is not executed.
 * Outside of an exchange the connection is in libpq's ordinary, blocking mode.
 */
#ifndef PGSQL_EXCHANGE_H
#define PGSQL_EXCHANGE_H

#include <libpq-fe.h>
#include <stddef.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/driver.h"

struct pgsql_cached;
struct pgsql_value;

/** What a result belongs to, in the order of sending. */
typedef enum pgsql_step_kind {
    PGSQL_STEP_OWN,
    PGSQL_STEP_COMMIT,
    PGSQL_STEP_GUARD,    /* fails if the transaction is not the one that was begun */
    PGSQL_STEP_DEFERRED, /* a handler's statement */
    PGSQL_STEP_PREPARE,  /* the parsing of one */
    PGSQL_STEP_SYNC
} pgsql_step_kind;

typedef struct pgsql_step {
    pgsql_step_kind kind;
    int is_prepared; /* before this exchange began */
    size_t item;
    struct pgsql_cached *cached; /* PGSQL_STEP_PREPARE: what becomes ready */
    wb_sql_answer *ret_answer;   /* who wants to know, or NULL */
} pgsql_step;

typedef struct pgsql_exchange {
    pgsql_step *steps;
    size_t count;
    size_t capacity;
    int is_outside; /* a BEGIN was put in front, of which the COMMIT is due */
    int commits;    /* a COMMIT is among the steps */
    int committed;  /* and the server said that it did */
    int puts_back;  /* what handlers left in the session: a transaction in front */
    int broken;     /* queueing failed: nothing after that was queued */
    int out_of_memory;
} pgsql_exchange;

/** Leaves libpq's ordinary mode. Forgets the failure of before. */
void pgsql_exchange_start(wb_storage_session *session);

/** wb_sql_driver.queue and queue_text. */
void pgsql_queue(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values,
                 size_t count, wb_sql_answer *ret_answer);
void pgsql_queue_text(wb_storage_session *session, const char *statement,
                      wb_sql_answer *ret_answer);
/** Any statement with values: prepared under the name `what`, or the text `what`. */
void pgsql_queue_values(wb_storage_session *session, const pgsql_step *step, const char *what,
                        const struct pgsql_value *values, int count);
/** Queue the preparing of our statements. */
void pgsql_queue_preparations(wb_storage_session *session);
/** wb_sql_driver.queue_end: what precedes it, back to the one before, is a transaction of its own. */
void pgsql_queue_end(wb_storage_session *session);
/** Begin such a transaction with the isolation, access and settings of ours, where the session
 *  does not have them. pgsql_queue() does, if nothing is open. */
void pgsql_queue_outside(wb_storage_session *session);
/** Queue a synchronization point: what precedes it is a transaction of its own, unless
 *  a BEGIN is open. run() sees to the last one. */
void pgsql_queue_sync(wb_storage_session *session);

/** Take a step that the caller has sent to libpq; `sent` is what libpq said. */
void pgsql_exchange_note(wb_storage_session *session, const pgsql_step *step, int sent);

/** Send, then pass `crash_point` (may be NULL), then read all results.
 *  @return WB_OK, or the class in session->sql.failure. The session is lost if the
 *  connection is. A transaction that was open still is, in failed state. */
int pgsql_exchange_run(wb_storage_session *session, const char *crash_point);
/** The two halves of that. Between them the server works, and the connection is libpq's pipeline's. */
void pgsql_exchange_send(wb_storage_session *session, const char *crash_point);
int pgsql_exchange_receive(wb_storage_session *session);

/** Record the failure an error result stands for, unless there is one already. */
void pgsql_failure_record(wb_storage_session *session, const pgsql_step *step,
                          const PGresult *result);
/** Record that the connection is gone, and why; ends in WB_SQL_LOST. */
void pgsql_failure_lost(wb_storage_session *session, const char *reason);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The database: deduplication records, pending rows and the handlers' effects, of each
 * endpoint; it outlives every process. persistence.c puts the SPI and the faults on top.
 */
#ifndef WB_SIMULATION_DATABASE_H
#define WB_SIMULATION_DATABASE_H

#include <waybill/sys/persistence.h>

#include "tests/simulation/ledger.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"

typedef struct sim_record {
    char id[256];
    size_t id_size;
    uint64_t batch;
    int64_t born; /* by the true clock */
} sim_record;

typedef struct sim_row {
    uint64_t batch;
    void *bytes;
    size_t size;
    int is_foreign; /* of a version to come: nobody may touch it */
    int is_marked;
    int64_t born;
} sim_row;

/* As many as a queue has partitions. */
#define SIM_PLACES 3

/* How far one of them is done with, by which batch. */
typedef struct sim_place_row {
    uint64_t position, batch;
} sim_place_row;

typedef struct sim_table {
    sim_place_row places[SIM_PLACES];
    sim_record *records;
    size_t record_count, record_max;
    sim_row *rows; /* by batch; most come last and leave first, so there is room in front of them, too */
    size_t row_count, row_max, row_room;
    const void *sweeper; /* who sweeps */
} sim_table;

#define SIM_ITEM_NOBODY SIZE_MAX

/** What an open transaction did. */
typedef struct sim_transaction {
    int is_open;
    int is_broken;         /* a statement failed */
    size_t broken_by;      /* the item */
    int is_servers;        /* by a trouble of the server's */
    int is_deadlock;
    int is_ended;          /* by a handler */
    int is_anew;           /* and begun anew by it: only the commit can tell */
    size_t ended_by;       /* the item */
    int is_guessed;        /* that it was this one nobody can tell */
    sim_run **ended;       /* what the handler that ended it committed of others' */
    size_t ended_count, ended_max;
    int is_closed;         /* the transport's connection, by a handler: nobody else may ask about it */
    int is_spoilt;         /* and it left the session in a state that rollback() cannot mend */
    size_t deferred_by;    /* an item's deferred statement will fail; or nobody's */
    sim_message *cut_by;   /* whose commit ends the connection; or NULL */
    sim_message *forbidden_by; /* whose commit is forbidden; or NULL */
    sim_run **runs;
    size_t run_count, run_max;
    sim_record *claims;
    size_t claim_count, claim_max;
    int has_place[SIM_PLACES]; /* locked, and what it is to say */
    sim_place_row places[SIM_PLACES];
} sim_transaction;

struct wb_storage_session {
    unsigned endpoint;
    int process;
    sim_thread *thread;
    int is_dead;
    int begin_fails, commit_fails; /* the next one, once: 1 rolled back, 2 refused for now, 3 lost */
    int has_looked;     /* the begin behind an ending has succeeded: those that follow are no repair's */
    int is_forbidden;   /* everything, by what a handler did to it */
    int forbids_behind; /* the same once the open transaction is over */
    sim_transaction own;
    sim_transaction *joined; /* a transport's, or NULL */
    /* A fetch that has begun (delayed.c): done already, or when its answer is read. */
    int has_begun, is_late;
    wb_delayed_fetch begun;
    wb_delayed_key *begun_keys;
    size_t begun_count;
    void *taken; /* copies of rows */
    size_t taken_count;
    uint64_t row; /* the pending row it has; 0: none */
    struct wb_storage_session *next;
};

/** Each endpoint has one, and one in the deduplication store: a database of its own. */
#define SIM_TABLES (2 * SIM_ENDPOINTS_MAX)
extern sim_table sim_tables[SIM_TABLES];
/** That of the store. */
static inline unsigned sim_apart(unsigned endpoint)
{
    return endpoint + SIM_ENDPOINTS_MAX;
}

wb_storage_session *sim_database_open(unsigned endpoint);
void sim_database_close(wb_storage_session *session);
void sim_database_bury(int process);
/** Give up the pending row that the session has, and take this one, unless it is gone or another
 *  session's. @return WB_TAKEN_x. */
int sim_database_take(wb_storage_session *session, uint64_t batch);

/** The batch that recorded an id, or 0. */
uint64_t sim_database_find(unsigned endpoint, const void *id, size_t id_size);
/** Whether another open transaction has claimed it. */
int sim_database_is_claimed(const wb_storage_session *session, const void *id, size_t id_size);
void sim_database_claim(wb_storage_session *session, uint64_t batch, const wb_claim *claim);
/** Whether another open transaction has locked that partition's row. */
int sim_database_has_place(const wb_storage_session *session, unsigned place);
/** Lock it, and move it on. */
void sim_database_move_on(wb_storage_session *session, unsigned place, wb_position *position, uint64_t batch);
/** The batch that brought that partition behind that position, or 0. */
uint64_t sim_database_passed(unsigned endpoint, unsigned place, uint64_t position);
void sim_database_forget_positions(unsigned endpoint);
sim_row *sim_database_row(unsigned endpoint, uint64_t batch);
/** The batch of the oldest row above `after` and below `before`, or 0. */
uint64_t sim_database_next_row(unsigned endpoint, uint64_t after, uint64_t before);
/** @return 0 when there is one of that number. */
int sim_database_store(unsigned endpoint, uint64_t batch, const void *bytes, size_t size, int is_foreign);
void sim_database_mark(unsigned endpoint, const wb_mark *mark);
/** Its record goes, if it is of that batch; a violation if the store has not its id. */
void sim_database_forget(unsigned endpoint, const wb_claim *claim);
/** In a store: make a record as old as the endpoint's, unless there is one. */
void sim_database_remember(unsigned store, const wb_claim *claim);
size_t sim_database_clean_up(unsigned endpoint, uint64_t before, size_t limit);

/** The transaction a session works in. */
sim_transaction *sim_database_transaction(wb_storage_session *session);
void sim_transaction_start(sim_transaction *transaction);
void sim_transaction_add(sim_transaction *transaction, sim_run *run);
/** Make it durable; `commit` may be NULL. */
void sim_transaction_commit(sim_transaction *transaction, unsigned endpoint, const wb_commit *commit);
void sim_transaction_roll_back(sim_transaction *transaction);
/** A handler commits it. Until it is known who it was, what it committed of others may be done
 *  once more: better than not at all. */
void sim_transaction_end(sim_transaction *transaction, unsigned endpoint);
/** And it is known. */
void sim_transaction_name(sim_transaction *transaction);

/* ---- what handlers do ---- */

typedef enum {
    SIM_STATEMENT_PLAIN,
    SIM_STATEMENT_FAILING,
    SIM_STATEMENT_DEFERRED_FAILING,
    SIM_STATEMENT_QUOTA,
    SIM_STATEMENT_DEADLOCK,
    SIM_STATEMENT_CUTTING,
    SIM_STATEMENT_CUTTING_LATE,
    SIM_STATEMENT_FORBIDDING,
    SIM_STATEMENT_FORBIDDING_LATER,
    SIM_STATEMENT_COMMIT,
    SIM_STATEMENT_CLOSE /* the connection */
} sim_statement;

/** A business change on behalf of a run. @return WB_OK, or what the handler sees. */
int sim_database_execute(wb_storage_session *session, size_t item, sim_run *run, sim_statement statement);

#endif

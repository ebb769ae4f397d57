/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong by chance, and what follows from it in the ledger: a fault excuses one more
 * run of the messages at hand, and may count as an attempt of theirs.
 */
#ifndef WB_SIMULATION_FAULTS_H
#define WB_SIMULATION_FAULTS_H

#include <stdint.h>
#include <waybill/sys/plugin.h>

/** The plugins' functions that can fail, by what their failure can look like. */
typedef enum {
    SIM_CALL_OPEN_TRANSPORT,
    SIM_CALL_RECEIVE,
    SIM_CALL_ACKNOWLEDGE,
    SIM_CALL_ACKNOWLEDGE_INSIDE, /* a transaction */
    SIM_CALL_SEND,
    SIM_CALL_TRANSPORT_BEGIN,
    SIM_CALL_TRANSPORT_COMMIT,
    SIM_CALL_TRANSPORT_OTHER, /* set_prefetch, give_back, stop_receiving, rollback */
    SIM_CALL_OPEN_STORAGE,
    SIM_CALL_BEGIN,
    SIM_CALL_STATEMENT, /* a handler's */
    SIM_CALL_COMMIT,
    SIM_CALL_ROLLBACK,
    SIM_CALL_MARK,
    SIM_CALL_LOOK, /* pending, sweep, next_pending, clean_up, clock */
    SIM_CALL_REMEMBER, /* in a deduplication store */
    SIM_CALL_DELAYED, /* of the delayed message store, what changes it */
    SIM_CALLS
} sim_call;

typedef struct sim_fault {
    int result; /* WB_OK: none */
    int cause;
    int done; /* what was asked happened all the same */
} sim_fault;

/** Whether a fault strikes here; notes in the ledger what it excuses. */
sim_fault sim_fault_draw(sim_call call);
/** What a failure of it costs the messages at hand. With mode none what cannot be stored does not run
 *  again: it goes to the error queue, and somebody is told. */
unsigned sim_fault_strikes(sim_call call, unsigned usual);
/** Fill `error`. @return the fault's result. */
int sim_fault_fail(wb_error *error, sim_fault fault, const char *text);

/** Faults by chance on or off. */
void sim_faults_storm(int on);
int sim_faults_are_on(void);

/* Outages: until a point in time everybody meets them. */
typedef enum {
    SIM_DISK_FULL,
    SIM_STATEMENTS_FULL, /* what handlers ask for meets it; the outbox's own tables have room */
    SIM_STATEMENTS_BREAK, /* what handlers ask for ends the connection, and nothing else does */
    SIM_WRITES_FORBIDDEN, /* an operator took a privilege: commits that store are WB_FATAL */
    SIM_WRITES_BREAK,    /* so do commits, but for empty ones */
    SIM_COMMITS_BREAK,   /* the server takes connections, and each commit ends it */
    SIM_DELAYED_BREAKS,  /* what changes the store of delayed messages ends the connection */
    SIM_ACKNOWLEDGE_REFUSED, /* in a transport's transaction, of what has failed, too */
    SIM_ACKNOWLEDGE_FORBIDDEN, /* the same, for want of a privilege */
    SIM_TRANSPORT_COMMIT_REFUSED,
    SIM_MARKS_LOST,      /* marks are made, and the reply ends with the connection */
    SIM_DATABASE_DOWN,
    SIM_STORE_DOWN, /* that of deduplication */
    SIM_TABLE_RENAMED,   /* by a migration, for a while: what begins, and marks */
    SIM_STORE_RENAMED,   /* the table of the deduplication store */
    SIM_DELAYED_RENAMED, /* and that of delayed messages */
    SIM_BROKER_DOWN,
    SIM_BROKER_NACKS,
    SIM_BROKER_FORBIDS, /* sending, for want of a privilege */
    SIM_SENDS_BREAK,   /* what is sent ends the connection, and nothing else does */
    SIM_BROKER_SLOW,
    SIM_BROKER_SILENT, /* it confirms nothing: sending begins anew, and receiving lives */
    SIM_OUTAGES
} sim_outage;
void sim_outage_start(sim_outage outage, int64_t until);
int sim_outage_is_on(sim_outage outage);

#endif

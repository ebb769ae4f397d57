/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger: every message that was ever put into the world, and what happened to it. Kept
 * by the world, from what it sees; nothing in it comes from the core.
 */
#ifndef WB_SIMULATION_LEDGER_H
#define WB_SIMULATION_LEDGER_H

#include <waybill/message.h>
#include <waybill/sys/transport.h>

#include "tests/simulation/fate.h"

#define SIM_MESSAGES_MAX 4096

/* What a handler may send. A bit each in `asked` and `sent`. */
typedef enum {
    SIM_LABEL_FIRST,
    SIM_LABEL_SECOND,
    SIM_LABEL_EVENT,
    SIM_LABEL_REPLY,
    SIM_LABEL_BAD, /* to where it cannot go */
    SIM_LABEL_IMMEDIATE,
    SIM_LABEL_MORE, /* thirty of these */
    SIM_LABEL_BASE, /* by the handler of the type it is derived from */
    SIM_LABEL_AUDIT, /* by nobody: the copy for the audit queue, of each that was handled */
    SIM_LABEL_DELAYED,
    SIM_LABELS
} sim_label;

typedef enum { SIM_AWAY, SIM_QUEUED, SIM_IN_HAND, SIM_GONE, SIM_DROPPED, SIM_EXPIRED } sim_place;

/* The time to be received of what handlers send with one. */
#define SIM_SPAN (INT64_C(90500) * 1000 * 1000)

typedef struct sim_message {
    unsigned number;
    unsigned twin; /* whose body it has: its own number, or that of the message it copies */
    unsigned endpoint;
    sim_fate fate;
    /* as it is in the broker */
    char id[320];
    size_t id_size; /* 0: none */
    wb_header *headers;
    size_t header_count;
    char *body;
    size_t body_size;
    const char *problem;
    int is_other;         /* of no type that has a handler, or of none: that of all others gets it */
    int has_base;         /* it names a type that its own is derived from, and that has a handler too */
    uint32_t level;       /* the delayed retries it has had */
    int is_foreigns;      /* a process of a later version handled it, and its row is of that version */
    sim_place place;
    int64_t queued_at;    /* when it came into its queue first; 0: never */
    uint32_t delivery_count;
    unsigned partition; /* where its queue has such */
    uint64_t position;
    uint64_t batch; /* whose commit had its effect; 0: a handler's, or none */
    /* what was seen */
    unsigned runs;      /* calls of its handler */
    struct sim_run *run; /* the latest */
    unsigned returned;  /* of them, so many with WB_OK */
    unsigned commits;   /* effects in the database */
    unsigned doubts;    /* of them, so many by a neighbour that committed and was not found out */
    int64_t first_run_at; /* by the database's clock; 0: it never ran */
    unsigned failures;  /* runs that failed by its own fault */
    unsigned strikes;   /* faults of servers that may be taken for its own */
    unsigned control_nacks; /* of a session: how often its control message was nacked */
    int control_is_lost;  /* a session's control message went to the error queue, or could not be delayed */
    int was_taken_along;  /* a neighbour committed what it had done before it could fail */
    unsigned excuses;   /* what makes one more run no wonder */
    unsigned deaths;    /* processes that died with it in hand, and by no message */
    unsigned losses;    /* times it came back because its session was lost by chance */
    unsigned vanished;  /* with mode none: it was in hand when nobody could hold it */
    unsigned abandoned; /* the same, and nothing was the matter */
    unsigned moved;     /* copies in the error queue; counted at the twin */
    unsigned deliveries;
    unsigned asked;     /* labels of a committed run, or, without database, of one that returned */
    unsigned sent;      /* labels that reached their destination */
} sim_message;

typedef struct sim_run {
    sim_message *message;
    size_t serial; /* from 1 */
    unsigned asked;
    int failed;
    int committed;
    int is_refused; /* a session: its program was told that nothing is committed */
    int based; /* the handler of its base ran, after that of its own type */
} sim_run;

extern sim_message sim_messages[SIM_MESSAGES_MAX];
extern unsigned sim_message_count;

/** The one whose body that is (a pointer handed out by the broker). */
sim_message *sim_ledger_find(const void *body);
/** Whether it is one of those whose delayed retries the broker refuses, where it refuses some. */
static inline int sim_never_delays(const sim_message *message)
{
    return message->twin % 4 == 3;
}
/** What follows when the message of that number has ended the transaction. */
sim_then sim_then_of(unsigned number);
/** The one whose body has that text, or NULL. */
sim_message *sim_ledger_parse(const void *body, size_t size);

/** The session of that id, or NULL. */
sim_message *sim_ledger_session(const void *id, size_t size);
/** Who sent it, or whose copy it is: of a session's control message the session. */
sim_message *sim_ledger_cause(const wb_operation *operation);

/** A handler begins. Valid until the end of all. */
sim_run *sim_run_begin(sim_message *message);
/** It returned. `own`: a failure is its message's, and not a neighbour's. */
void sim_run_end(sim_run *run, int result, int own);
/** The handler of its base returned. */
void sim_run_end_base(sim_run *run, int result, int own);
void sim_run_commit(sim_run *run);
/** The one of that serial, or NULL. */
const sim_run *sim_run_find(size_t serial);

/* ---- what was sent ---- */

/* Of what is delayed: when it is due, by the database's clock. */
#define SIM_HEADER_DUE "Sim.Due"

typedef struct sim_sent {
    char id[256];
    size_t id_size;
    char destination[256];
    unsigned number; /* from its body */
    int label;       /* -1: a copy of an incoming message that failed */
    unsigned ordinal; /* among those of its label */
    size_t run;       /* the serial; 0: none is told */
    uint64_t hash, hash_steady; /* of headers and body; without what differs from run to run */
    int64_t due; /* by the database's clock; 0: at once */
    int kind;
    int given_up;
    int is_traced; /* it says where it stands in a trace */
} sim_sent;

extern sim_sent *sim_sents;
extern size_t sim_sent_count;

/** An operation became visible at its destination. */
void sim_ledger_send(const wb_operation *operation);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Fates: what becomes of a message in the hands of its handler, of the database and of the
 * broker, and what may become of it in the end. One table.
 */
#ifndef WB_SIMULATION_FATE_H
#define WB_SIMULATION_FATE_H

typedef enum {
    SIM_GOOD,
    SIM_FLAKY,          /* fails at first */
    SIM_REPLIES,        /* replies to a good address */
    SIM_IMMEDIATE,      /* sends at once, fails, and the next time does not */
    SIM_SLOW,           /* its handler takes a while */
    SIM_HANGS,          /* its handler takes so long that somebody stops the process, or gives up */
    SIM_TOUCHY,         /* unrecoverable when a neighbour broke the transaction */
    SIM_TOUCHY_RETRY,   /* the same, but wants to be tried again */
    SIM_TALKATIVE,      /* thirty sends */
    SIM_RECOVERS,       /* fails until it has come back twice */
    SIM_DELAYS,         /* a delayed send beside one that is not */
    SIM_DELAYS_NOWHERE, /* the same, to a destination that is not there: its copy goes to the error queue */
    SIM_DELAYS_SILENT,  /* the same, to one that confirms nothing until it is healed */
    SIM_FORBIDS_LATER,  /* after its commit its session is forbidden everything */
    /* it can fail, and then its operations stay behind */
    SIM_UNROUTABLE,     /* sends to a destination that is not there */
    SIM_LATE_ROUTE,     /* the same, but one day it is there */
    SIM_NACKED,         /* sends to one that nacks for ever */
    SIM_DELAYS_REFUSED, /* delays what the broker refuses */
    SIM_TOO_LARGE_SEND, /* sends to one that refuses what is large */
    SIM_POISON_SEND,    /* its send ends the connection */
    SIM_FATAL_SEND,     /* its send is WB_FATAL */
    SIM_BAD_REPLY,      /* replies to an address of bytes that end the connection */
    SIM_COMMIT_ABORTS,  /* the transport's transaction it is in does not commit */
    /* it fails */
    SIM_POISON,         /* unrecoverable */
    SIM_ELSEWHERE,      /* wants another error queue; every other one is not there */
    SIM_DISCARDED,      /* wants to be forgotten */
    SIM_FAILING,        /* WB_RETRY each time */
    SIM_NO_REPLY,       /* replies, and there is no address */
    SIM_BAD_IMMEDIATE,  /* sends at once to a destination that is not there */
    SIM_DEADLY_IMMEDIATE, /* sends at once what ends the connection */
    SIM_LATE_IMMEDIATE, /* the same, after a while: nobody can tell whose doing it is */
    SIM_KILLER,         /* ends the process */
    SIM_BREAKS,         /* a statement fails, and it ignores that */
    SIM_DEFERRED,       /* a deferred statement fails at the next statement, or at the commit */
    SIM_ENDS,           /* ends the transaction */
    SIM_QUOTA,          /* its statement meets a full disk, each time, and nobody else's does */
    SIM_CUTS,           /* its statement ends the database's connection, each time */
    SIM_CUTS_LATE,      /* the same at the commit */
    SIM_CLOSES,         /* closes the connection, which is the transport's */
    SIM_FORBIDS,        /* its statement makes the commit WB_FATAL on its session, each time */
    SIM_UNMOVABLE,      /* fails, and the error queue refuses it for ever */
    SIM_BULKY,          /* fails, and the error queue refuses it until its copy is trimmed */
    SIM_POISON_MOVE,    /* fails, and its move ends the connection */
    SIM_CONTROL,        /* a control message for nobody here: acknowledged */
    /* it cannot be handled */
    SIM_NO_HANDLER,
    SIM_NO_TYPE,
    SIM_NO_ID,
    SIM_LONG_ID,
    SIM_MANY_HEADERS,
    SIM_LARGE_HEADERS,
    SIM_LARGE_BODY,
    SIM_UNREADABLE,
    /* beside the messages of a queue */
    SIM_SESSION,         /* no message: a session of a program */
    SIM_SESSION_CONTROL, /* the control message of one */
    SIM_WRITTEN,         /* no message of a queue: a row that a program writes in SQL */
    SIM_FATES
} sim_fate;

/* The delayed retry that SIM_RECOVERS waits for. */
#define SIM_RECOVERY 2

/* What follows when SIM_ENDS has ended the transaction: a second failure hides the first. */
typedef enum {
    SIM_THEN_NOTHING,
    SIM_THEN_FAILS, /* the handler's own error */
    SIM_THEN_LOST,  /* the connection */
    SIM_THEN_SLOW,  /* the batch's time runs out: who comes next is kept */
    SIM_THEN_ABORT,
    SIM_THEN_SERVER,
    SIM_THENS
} sim_then;

/* What a fate is. */
#define SIM_MAY_FAIL 1u       /* the error queue is a right place for it */
#define SIM_MUST_FAIL 2u      /* and the only one: it has no effect */
#define SIM_LEAVES_ROWS 4u    /* operations of it may stay pending for ever */
#define SIM_STAYS 8u          /* it may stay in the queue for ever when there is no outbox */
#define SIM_NEEDS_STORAGE 16u /* means nothing without a database */
#define SIM_NEEDS_CHECK 32u   /* nobody can know without persistence.check() */
#define SIM_NEEDS_RETRIES 64u
#define SIM_NEEDS_TRANSPORT_TRANSACTION 128u
#define SIM_ENDS_PROCESS 256u
#define SIM_HARMS_OTHERS 512u /* what it does may cost others an attempt no core can spare them */
#define SIM_EFFECT_ANYWAY 1024u /* its effect may stay though it fails */
#define SIM_CUTS_BROKER 2048u   /* it ends connections to the broker, or the worker */
#define SIM_IGNORED 4096u       /* it has no effect, and it is done */
#define SIM_NEEDS_STORE 8192u   /* of delayed messages */
#define SIM_NEEDS_DELAYED_RETRIES 16384u
#define SIM_NEEDS_DELAYS 32768u /* by whom ever */

typedef struct sim_fate_entry {
    const char *name;
    unsigned flags;
} sim_fate_entry;

extern const sim_fate_entry sim_fates[SIM_FATES];

#endif

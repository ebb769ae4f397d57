/* SPDX-License-Identifier: Apache-2.0
 *
 * The broker: queues, sessions, who has which message in hand. It outlives every process. Its
 * functions are those of a transport, but cannot fail; transport.c puts the SPI and the faults
 * on top.
 */
#ifndef WB_SIMULATION_BROKER_H
#define WB_SIMULATION_BROKER_H

#include <waybill/sys/transport.h>

#include "tests/simulation/database.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/scheduler.h"

/* Destinations that are not simply there. */
#define SIM_SINK "sink"
#define SIM_REPLIES_QUEUE "replies"
#define SIM_ERROR_QUEUE "error"
#define SIM_AUDIT_QUEUE "audit"
#define SIM_REVIEW_QUEUE "review" /* an error queue of some messages */
#define SIM_NOWHERE "nowhere"     /* is never there */
#define SIM_LATER "later"         /* is there one day */
#define SIM_NACKS "nacks"         /* refuses for now, for ever */
#define SIM_NARROW "narrow"       /* takes nothing: too large */
#define SIM_KILLS "kills"         /* ends the connection */
#define SIM_KILLS_LATE "kills-late" /* the same, after a while */
#define SIM_BAD_BYTES "\xff\xfe"  /* the same: no UTF-8 */
#define SIM_FATAL_QUEUE "fatal"
#define SIM_SILENT "mute"         /* what begins so confirms nothing, until the broker is healed */
#define SIM_LEADERLESS "leaderless" /* takes nothing for now, which is the server's; the same */

/** A message on its way through one session. */
typedef struct sim_delivery {
    wb_incoming incoming; /* first: the core's pointer is ours */
    sim_message *message;
    int is_returned; /* by receive() */
    int is_staged;   /* acknowledged in the open transaction */
    int is_put_off;  /* acknowledged, and that takes effect with the next call */
    int is_away;     /* its partition was taken away: another session may have it, too */
    unsigned failures_before;
    struct sim_delivery *next;
} sim_delivery;

typedef struct sim_staged {
    wb_operation operation;
    struct sim_staged *next;
} sim_staged;

struct wb_transport_session {
    unsigned endpoint;
    int process;
    sim_thread *thread;
    uint32_t purpose;
    unsigned prefetch;
    int is_dead;        /* the connection is lost; the core may not know yet */
    int was_stopping;   /* its process, when it died */
    int64_t noticed_at; /* its process is no more: the broker notices it then; 0: there is one */
    int hides_success;  /* what is done now is not told: the core keeps what it has in hand */
    int is_interrupted;
    int is_stopped;     /* stop_receiving() */
    int is_paused;      /* release_prefetched() */
    sim_delivery *deliveries, *lost; /* in hand; in hand when the connection was lost */
    unsigned count, returned;
    int has_transaction;
    sim_staged *staged;
    sim_transaction shared; /* what a storage session joins */
    struct wb_transport_session *next;
};

/** Messages from sim_messages[first] on are in their queues now. */
void sim_broker_publish(unsigned first);
wb_transport_session *sim_broker_open(unsigned endpoint, uint32_t purpose, unsigned prefetch);
/** What is in hand goes back to the queue; the core must not touch it any more. */
void sim_broker_close(wb_transport_session *session);
/** The connection is lost: the broker delivers to others what was in hand. */
void sim_broker_lose(wb_transport_session *session);
/** A process is no more; of each of its sessions the broker notices it up to the_shape.notices_late later. */
void sim_broker_bury(int process);

/** Hand out what there is room for. */
void sim_broker_pump(void);
/** Whether receive() would return something. */
int sim_broker_has_some(const wb_transport_session *session);
size_t sim_broker_take(wb_transport_session *session, const wb_incoming **messages, size_t max);
void sim_broker_acknowledge(wb_transport_session *session, const wb_incoming *incoming);
/** What was acknowledged and put off is gone. */
void sim_broker_settle(wb_transport_session *session);
void sim_broker_give_back(wb_transport_session *session, const wb_incoming *incoming);
void sim_broker_release(wb_transport_session *session);
/** A partition is taken away from who has it: what was handed out stays in hand, and comes again. */
void sim_broker_take_away(unsigned endpoint, unsigned partition);
/** So many messages were, ever. */
unsigned sim_broker_released(void);

/** What the broker does to an operation: WB_OK (it is there), WB_REJECT, WB_RETRY (nack),
 *  WB_NOT_CONNECTED (it ends the connection), WB_FATAL, WB_IN_DOUBT (no confirmation comes),
 *  WB_ABORT (it is the server that cannot). */
int sim_broker_judge(wb_operation *operation);
/** It has arrived, or does with the commit. */
void sim_broker_send(wb_transport_session *session, const wb_operation *operation);
/** A copy of it, and its end. */
wb_operation sim_operation_copy(const wb_operation *from);
void sim_operation_free(wb_operation *operation);
/** @return the message whose presence keeps the transaction from committing, or NULL. */
sim_message *sim_broker_find_objection(const wb_transport_session *session);
void sim_broker_commit(wb_transport_session *session);
void sim_broker_roll_back(wb_transport_session *session);

/** Every message the running thread has in hand, but for one, is excused one more run; `strikes`
 *  of it may count as attempts. */
void sim_broker_excuse_hand(const sim_message *except, unsigned strikes);
/** A process was told to stop, or begins anew: what comes back from it then is no wonder. */
void sim_broker_note_stop(int process, int stops);
/** When it was; 0: it was not. */
int64_t sim_broker_stopped_at(int process);
/** The message whose handler ends the process now; NULL: none. */
void sim_broker_note_killer(const sim_message *killer);
/** From now on SIM_LATER is there. */
void sim_broker_open_later(void);
/** From now on it takes moves that ended its connections before, and confirms all. */
void sim_broker_heal(void);
/** Most messages a session had in hand. */
unsigned sim_broker_most_in_hand(void);

#endif

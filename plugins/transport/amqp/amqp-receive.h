/* SPDX-License-Identifier: Apache-2.0
 *
 * The receiving connection of a session: keeps what arrived until it is acknowledged or
 * given back. Who asks the broker for messages, and when, is in amqp-consume.h.
 *
 * Messages form one list in the order of their delivery tags: those handed out and
 * not settled, then those nobody has asked for yet (from `ready` on). A receiver lives
 * on one channel of one connection: when that ends, so do the receiver, its messages
 * and their tags, and no tag can reach another channel.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_RECEIVE_H
#define WB_AMQP_RECEIVE_H

#include "plugins/transport/amqp/amqp-connection.h"
#include "plugins/transport/amqp/amqp-message.h"

struct wb_amqp_receiver {
    wb_amqp_connection connection;
    const char *queue; /* that it receives from */
    /* consuming: see amqp-consume.h */
    uint32_t prefetch;          /* as the host wants it */
    uint32_t consumer_prefetch; /* as the consumer has it */
    unsigned consumer;          /* the consumer's tag ends in it */
    int consuming;              /* WB_AMQP_CONSUMER_x */
    unsigned cancels;           /* not answered yet */
    uint32_t window;            /* messages in hand that are the consumer's */
    int active;                 /* messages came or went since active_at was looked at */
    int64_t active_at;
    int64_t cancel_since; /* when it should have been cancelled; 0: it need not be */
    int released;     /* until the next receive(): nothing is prefetched */
    int held;         /* until the gate is free: the same */
    int silent;       /* while the channel is exchanged (amqp-silence.h): the same */
    int lost;         /* a consumer that was cancelled still has messages, which did not arrive */
    int64_t exchange_at; /* not before that */
    int stopping;     /* for good */
    unsigned asked;   /* requests not answered yet that stand behind what was settled */
    /* what is there */
    wb_amqp_message *first, *last;
    wb_amqp_message *ready; /* the first not handed out; NULL: none */
    size_t count;
    size_t settling; /* of these are about to be settled */
    size_t ready_size; /* bytes of bodies from `ready` on */
    /* the message being read */
    uint64_t tag;
    unsigned tag_consumer;
    int redelivered;
    int awaits_header; /* of the message with that tag */
    char exchange[256]; /* it came through */
    wb_amqp_message *partial;
    int skipping; /* it has been given back: its body is of no interest */
    uint64_t body_left;
    int64_t unread_since; /* when reading was paused or gated; 0: neither */
};

/** The connection is deaf and nobody waits to be taken: close it, and fail with the reason. */
int wb_amqp_receiver_end_deaf(wb_amqp_receiver *receiver);

/** Connect and consume from a queue. On failure the connection says why. */
int wb_amqp_receiver_open(wb_amqp_receiver *receiver, wb_transport *transport,
                          wb_amqp_group *group, const char *queue, uint32_t prefetch);
/** Also of one that is all zero. */
void wb_amqp_receiver_close(wb_amqp_receiver *receiver);

/** Hand out at most `max` messages; returns how many. */
size_t wb_amqp_receiver_take(wb_amqp_receiver *receiver, const wb_incoming **ret_messages,
                             size_t max);

/** With WB_MODE_NONE: acknowledge what was just taken. Settling frees it later. */
int wb_amqp_receiver_forget(wb_amqp_receiver *receiver, const wb_incoming *last);

/** Choose messages, of whatever receivers, that each of these is to settle. */
void wb_amqp_receiver_choose(const wb_incoming *const *messages, size_t count);
/** Acknowledge, or with `requeue` give back, those of the chosen that are this receiver's: one write, and one method where
 *  the messages are the oldest ones. The messages are freed. Nothing is done to the
 *  messages when the connection has failed before. */
int wb_amqp_receiver_settle(wb_amqp_receiver *receiver, int requeue);

/** Have the broker answer when it has read all that was settled (receiver->asked). What it answers may
 *  stand behind a body that must not be read yet. */
int wb_amqp_receiver_ask(wb_amqp_receiver *receiver);

/** Put "give back" for the message that waits for the gate; its body is read over. */
void wb_amqp_receiver_give_back_gated(wb_amqp_receiver *receiver);
/** The same for everything that nobody has taken. Both as far as they can be written
 *  without waiting. */
void wb_amqp_receiver_give_back_ready(wb_amqp_receiver *receiver);
/** The connection has failed: free what nobody can take any more. */
void wb_amqp_receiver_drop_ready(wb_amqp_receiver *receiver);

#endif

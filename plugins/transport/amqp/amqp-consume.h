/* SPDX-License-Identifier: Apache-2.0
 *
 * When a receiver asks the broker for messages. A prefetch belongs to a consumer from its
 * start, so another prefetch is another consumer, and so is going on after a pause.
 *
 * Nothing here waits for an answer: what is wanted is written down, and whenever something
 * changes, one function takes the next step from what there is. Methods of one channel are
 * done in the order they are sent, and a refusal closes the channel, which fails the
 * connection with its reason. So a change costs no round trip, it can be made by the
 * keeper, and an answer that stands behind a body which must not be read yet stops nobody.
 * One answer counts: a consumer that is cancelled before the broker has confirmed it
 * crashes the channel (RabbitMQ 3.10, quorum queues: 541). And a message that is on its way
 * to a consumer inside the broker when that is cancelled goes back to its queue, with one
 * more delivery: so a consumer is cancelled when nothing can be on its way, because its
 * window is full or nothing has happened for a moment; or after a second all the same.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_CONSUME_H
#define WB_AMQP_CONSUME_H

#include "plugins/transport/amqp/amqp-receive.h"

/** The first consumer of a new channel, waiting for the answers: the queue may not exist. */
int wb_amqp_consume_first(wb_amqp_receiver *receiver, uint32_t prefetch);

/** Another consumer, then the end of the former one, waiting for the answers: there always is one. Of one that runs. */
int wb_amqp_consume_exchange(wb_amqp_receiver *receiver);
/** The end of one that runs, waiting for the answer; none begins until wb_amqp_consume_anew(). */
int wb_amqp_consume_end(wb_amqp_receiver *receiver);
void wb_amqp_consume_anew(wb_amqp_receiver *receiver);

/* What there is of a consumer. */
#define WB_AMQP_CONSUMER_NONE 0
#define WB_AMQP_CONSUMER_ASKED 1 /* not confirmed yet */
#define WB_AMQP_CONSUMER_RUNNING 2

/** Take the next step: cancel a consumer that should not be or has another prefetch;
 *  begin one when fewer messages are in hand than are to be prefetched. Puts methods, does
 *  not flush. Called after every change, and before every wait. */
void wb_amqp_consume_step(wb_amqp_receiver *receiver);
/** No more, at once: the connection is about to end. */
void wb_amqp_consume_leave(wb_amqp_receiver *receiver);
/** The number of the consumer that has this tag; 0: none of ours. */
unsigned wb_amqp_consumer_of(amqp_bytes_t tag);
/** The broker confirmed the consumer. */
void wb_amqp_consume_confirmed(wb_amqp_receiver *receiver);

/** Consume with another prefetch; what arrives in between is kept. */
void wb_amqp_consume_prefetch(wb_amqp_receiver *receiver, uint32_t prefetch);

/** Whether messages can still arrive. */
int wb_amqp_consume_is_on(const wb_amqp_receiver *receiver);

/** For good: ask for no more. */
void wb_amqp_consume_stop(wb_amqp_receiver *receiver);
/** After that: whether everything that was on its way is there. One that stands behind a
 *  body which may not be read yet does not count, closing gives it back. */
int wb_amqp_consume_is_drained(const wb_amqp_receiver *receiver);

/** Until wb_amqp_consume_again(): prefetch nothing, and give back what nobody has taken, once
 *  the consumer is cancelled. Does not wait. To be called again as long as it returns 1:
 *  something may still be on its way. */
int wb_amqp_consume_release(wb_amqp_receiver *receiver);
void wb_amqp_consume_again(wb_amqp_receiver *receiver);

/** The connection's before_wait. Reads on when the gate lets the message in. A broker
 *  hangs up when nobody reads for 30 seconds, and every message in hand would count as
 *  delivered: before that, what is not being read is given back, and consuming goes on
 *  when the gate is free or the host receives. */
int wb_amqp_consume_before_wait(void *receiver);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A consumer to which nothing comes. Mostly nothing is sent. But RabbitMQ (3.10) tells nobody when a quorum
 * queue is deleted and declared anew before its channel has noticed: it consumes from the new one by itself,
 * and forgets on that channel what it then gets. Such messages are delivered as far as the queue knows, and
 * arrive nowhere until the channel ends.
 *
 * So who got nothing for long exchanges its consumer for another one, which the channel does know. The other one
 * comes first: who counts consumers finds one all the time. Whether messages arrived nowhere shows in that: a
 * consumer that is cancelled and has some is still counted. Then, and only then without a consumer for a moment,
 * the channel is exchanged, too, as soon as nothing is in hand that belongs to it, and they come again. And what
 * the queues have is looked at, for they may be others.
 *
 * Others come and go, and are counted as well. The lower one of two answers counts, and one session of the
 * transport does it at a time; what is left costs a channel, and is no reason to warn.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_SILENCE_H
#define WB_AMQP_SILENCE_H

#include "plugins/transport/amqp/amqp-receive.h"

/** Of a session that was opened. */
void wb_amqp_silence_begin(wb_amqp_receiver *receiver);

/** Whether nothing came for six heartbeats to a consumer that has nothing in hand, or what had come did not
 *  arrive. */
int wb_amqp_silence_is_long(const wb_amqp_receiver *receiver);

/** Then: another consumer. Waits for the broker's answers, for connect_timeout in all. The connection has failed
 *  when it is not that queue any more, or not what it was. When another session does it, some seconds later. */
void wb_amqp_silence_end(wb_amqp_receiver *receiver);

/** A message has been delivered before: soon after a channel was exchanged it is of those that did not arrive,
 *  and a warning says so, once for each channel. */
void wb_amqp_silence_came_again(const wb_amqp_receiver *receiver);

#endif

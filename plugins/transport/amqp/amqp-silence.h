/* SPDX-License-Identifier: Apache-2.0
 *
 * A consumer to which nothing comes. Mostly nothing is sent. But RabbitMQ (3.10) tells nobody when a quorum
 * queue is deleted and declared anew before its channel has noticed: it consumes from the new one by itself,
 * and forgets on that channel what it then gets. Such messages are delivered as far as the queue knows, and
 * arrive nowhere until the channel ends.
 *
 * So who got nothing for long exchanges its consumer for another one, which the channel does know. Whether messages
 * arrived nowhere shows in that: a consumer that is cancelled and has some is still counted. Then the channel
 * is exchanged, too, and they come again. And what the queues have is looked at, for they may be others.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_SILENCE_H
#define WB_AMQP_SILENCE_H

#include "plugins/transport/amqp/amqp-receive.h"

/** Whether nothing came for six heartbeats to a consumer that has nothing in hand. */
int wb_amqp_silence_is_long(const wb_amqp_receiver *receiver);

/** Then: another consumer. Waits for the broker's answers. The connection has failed when it is not that
 *  queue any more, or not what it was. */
void wb_amqp_silence_end(wb_amqp_receiver *receiver);

#endif

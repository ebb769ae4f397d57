/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a window is published: whether each of its operations has where to go, and how long it
 * waits first. What the broker would answer by closing the channel, or find out too late, is
 * settled here.
 */
#ifndef WB_AMQP_CHECK_H
#define WB_AMQP_CHECK_H

#include "plugins/transport/amqp/amqp-send.h"

/** All that are not settled. @return WB_OK, or the failure's result. */
int wb_amqp_check_destinations(wb_amqp_sender *sender);

/** After it: error queues that were missing may be others when they are back. */
void wb_amqp_check_missing(wb_amqp_sender *sender);

/** Frees what is remembered of error queues that were refused. */
void wb_amqp_check_forget(wb_amqp_sender *sender);

/** A channel was closed: if no message gave the reason, the session starts anew. @return WB_OK, or
 *  the failure's result. */
int wb_amqp_check_server(wb_amqp_sender *sender, amqp_channel_t channel);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * RabbitMQ's management interface (HTTP, JSON), asked for one thing: what a queue is
 * declared with and which policies apply to it. Needs libcurl; without it the option is
 * refused.
 */
#ifndef WB_AMQP_MANAGEMENT_H
#define WB_AMQP_MANAGEMENT_H

#include "plugins/transport/amqp/amqp-queue.h"

typedef struct wb_amqp_managed_queue {
    wb_amqp_limit argument;
    wb_amqp_limit policy; /* the lower one of what policy and operator policy say */
    wb_amqp_arguments effective; /* arguments, and policies as if they were some */
    size_t argument_count;       /* so many of these are arguments, and come first */
    char policy_name[128];       /* of the one that applies, cut where it is longer; "" for none */
    char problem[300];
} wb_amqp_managed_queue;

/** Refuse an option that could not be used: a build without libcurl, no URL, plain text
 *  to another machine. @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_amqp_management_check(const wb_host *host, const wb_amqp_config *config, wb_error *error);

/** Ask for a queue. Its policies are told by statistics, which come some
 *  seconds after the queue was made: waits for them, up to connect_timeout.
 *  @return 1; 0 when it does not tell, and `problem` says why. Main thread. */
int wb_amqp_management_ask(const wb_transport *transport, const char *name,
                           wb_amqp_managed_queue *ret_queue);

/** Read its answer; pure. @return 1; 0: it is none, and `problem` says so; -1: the
 *  policies are not told yet. */
int wb_amqp_management_read(const char *json, size_t size, wb_amqp_managed_queue *ret_queue);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What queues have, and whether that breaks a promise: when an endpoint is installed, when it
 * starts, and while it runs, for an operator may delete a queue and declare it anew.
 *
 * All of it on the scratch channel. A refusal is a failure of its own, not the connection's.
 */
#ifndef WB_AMQP_JUDGE_H
#define WB_AMQP_JUDGE_H

#include "plugins/transport/amqp/amqp-connection.h"

/** Queues that the endpoint receives from: the one of its name, which is number 0, and its further ones. */
size_t wb_amqp_judge_count_own_queues(const wb_endpoint_info *endpoint);
const char *wb_amqp_judge_own_queue(const wb_endpoint_info *endpoint, size_t number);
/** Error queues of single types. */
size_t wb_amqp_judge_count_error_queues(const wb_endpoint_info *endpoint);
/** Whether it is one of the endpoint's error queues, and not its own queue. */
int wb_amqp_judge_is_error_queue(const wb_transport *transport, const char *queue);

/** What became of a call about `what` ("queue") of that name. @return WB_OK, or the class, and why. */
int wb_amqp_judge_outcome(const wb_amqp_connection *connection, int result, const char *what, const char *name,
                          wb_amqp_failure *ret_why);

/** Declare a queue, and judge what it has if it was there. @return WB_OK, or the class, and why. */
int wb_amqp_judge_declare(wb_amqp_connection *connection, const char *name, wb_amqp_failure *ret_why);
/** The same of one that is there; whoever may not declare it is told nothing of it. */
int wb_amqp_judge_arguments(wb_amqp_connection *connection, const char *name, wb_amqp_failure *ret_why);
/** Its policies, by the management interface if that is configured. Waits for it, and no connection lives
 *  meanwhile: for the start alone. */
int wb_amqp_judge_policies(const wb_transport *transport, const char *name, wb_amqp_failure *ret_why);

/** The arguments of one that may be missing, which is no refusal. */
int wb_amqp_judge_look_at(wb_amqp_connection *connection, const char *queue, int *ret_is_there,
                          wb_amqp_failure *ret_why);

/** Queues may have been made anew since they were looked at: a session failed. */
void wb_amqp_judge_doubt(wb_transport *transport);
/** Then look at the input queue and the error queues, as far as they are there. A refusal fails the connection,
 *  and is not fatal: the endpoint waits until somebody has mended it. @return WB_OK, or the failure's result. */
int wb_amqp_judge_look_again(wb_amqp_connection *connection);

#endif

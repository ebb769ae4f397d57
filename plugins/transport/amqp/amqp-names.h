/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of queues and exchanges. The broker closes the whole connection over a name
 * that is no UTF-8, and cuts line ends out of the names it is asked for, but not out of
 * those that are published to: both are found here, before they leave.
 */
#ifndef WB_AMQP_NAMES_H
#define WB_AMQP_NAMES_H

/** Longest name, and longest string of a message's properties. */
#define WB_AMQP_SHORT_MAX 255
/** Size of a name with its NUL byte. */
#define WB_AMQP_NAME_SIZE (WB_AMQP_SHORT_MAX + 1)

/** Whether a name can be put into a method. @return NULL, or what is wrong with it, to
 *  follow "its destination cannot name a queue: ". */
const char *wb_amqp_name_problem(const char *name);

#endif

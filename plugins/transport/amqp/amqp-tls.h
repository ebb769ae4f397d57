/* SPDX-License-Identifier: Apache-2.0
 *
 * What the TLS library said, where rabbitmq-c tells no more than that something is wrong. OpenSSL keeps it in a queue of the thread,
 * and is in the process because rabbitmq-c needs it: the plugin itself does not link it, and does without where it is not found.
 */
#ifndef WB_AMQP_TLS_H
#define WB_AMQP_TLS_H

#include <stddef.h>

/** What is in this thread's queue is of something else. */
void wb_amqp_tls_forget(void);
/** The first thing that was said since ("wrong version number", "certificate verify failed"). @return whether there is one. */
int wb_amqp_tls_reason(char *ret_reason, size_t size);

#endif

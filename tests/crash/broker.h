/* SPDX-License-Identifier: Apache-2.0
 *
 * The suite's own way to RabbitMQ, independent of the transport under test. The broker is
 * the one in AMQP_HOST, AMQP_PORT, AMQP_USER, AMQP_PASSWORD, AMQP_VHOST.
 *
 * Single-threaded. A failed call prints why to stderr.
 */
#ifndef WB_TESTS_CRASH_BROKER_H
#define WB_TESTS_CRASH_BROKER_H

#include "plugins/common/rabbitmq.h"

/** All use this channel. */
#define BROKER_CHANNEL 1

/** Connect and open the channel. @return NULL when it fails. */
amqp_connection_state_t broker_open(void);
void broker_close(amqp_connection_state_t broker);

/** Whether the last synchronous call succeeded; says why not, with `what`. */
int broker_ok(amqp_connection_state_t broker, const char *what);

/** Connect, trying again until `seconds` have passed: a broker that was killed starts
 *  again. Ends the program when time is up. */
amqp_connection_state_t broker_open_within(int seconds);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The names and routing keys of delays, those of NServiceBus. Pure.
 *
 * A message waits in up to 28 queues, one for each bit that is set in the number of seconds: level n
 * holds it for 2^n s and hands it down. The routing key says where: 28 bits, the highest first,
 * each followed by a dot, then the address. It enters at its highest bit; each exchange looks at
 * the bit of its level, and behind level 0 the address chooses the queue.
 */
#ifndef WB_AMQP_DELAY_H
#define WB_AMQP_DELAY_H

#include <waybill/sys/transport.h>

#include "plugins/transport/amqp/amqp-options.h"
#include "plugins/transport/amqp/amqp-route.h"

#define WB_AMQP_LEVELS 28
/** About 8.5 years. */
#define WB_AMQP_DELAY_MAX ((INT64_C(1) << WB_AMQP_LEVELS) - 1)
/** Behind level 0: knows by the address which queue it is. */
#define WB_AMQP_DELIVERY "nsb.v2.delay-delivery"
/** Longest address that a message can wait for: the key holds the bits as well. */
#define WB_AMQP_DELAYED_ADDRESS_MAX (WB_AMQP_SHORT_MAX - 2 * WB_AMQP_LEVELS)

/** How many whole seconds until then, never too few; 0: the time has come. Both are nanoseconds
 *  since 1970. */
int64_t wb_amqp_delay_seconds(int64_t deliver_at, int64_t now);

/** The exchange of a level, and its queue. */
void wb_amqp_level_name(unsigned level, char ret_name[WB_AMQP_NAME_SIZE]);
/** By which key the exchange of a level hands on: to its queue where the bit is set, else down. */
void wb_amqp_level_pattern(unsigned level, int is_set, char ret_key[WB_AMQP_NAME_SIZE]);
/** By which key WB_AMQP_DELIVERY knows an address that has no problem. */
void wb_amqp_delay_pattern(const char *address, char ret_key[WB_AMQP_NAME_SIZE]);

/** Why no message can be delayed to an address that can name a queue; NULL: one can. *ret_cause
 *  is the cause of the refusal. */
const char *wb_amqp_delay_problem(const char *address, int *ret_cause);

/** Exchange and key of a message that waits for so many seconds, at most WB_AMQP_DELAY_MAX, for an
 *  address without a problem; below 0 as 0. */
void wb_amqp_delay_route(int64_t seconds, const char *address, wb_amqp_route *ret_route);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * AMQP properties and header table of what is sent, from headers of NServiceBus. Pure;
 * amqp-headers.h is the other way.
 */
#ifndef WB_AMQP_PROPERTIES_H
#define WB_AMQP_PROPERTIES_H

#include <waybill/sys/transport.h>

#include "plugins/transport/amqp/amqp-more.h"

/** Make the properties of an operation. Everything points into the operation, to `more`, and to
 *  `entries`, which has room for three times header_count and one. `more` are routing keys beside
 *  the message's own, or NULL. *ret_size is an upper bound of the encoded size. Whatever the broker
 *  would refuse is put so that it does not, and no header of the operation is a route: CC is a list
 *  that holds none, BCC, which the broker takes out, is not sent; the reply address of a consumer
 *  that the broker does not know stands in its header alone.
 *  @return NULL, or why the message can never be sent: it is too large. */
const char *wb_amqp_properties_make(const wb_operation *operation, wb_amqp_more *more,
                                    amqp_table_entry_t *entries,
                                    amqp_basic_properties_t *ret_properties, size_t *ret_size);

/** Size of the milliseconds after which a message expires, with a NUL byte. */
#define WB_AMQP_EXPIRATION_SIZE 16

/** Have the message expire in the broker's queue, if its headers say so and it is not delayed, which
 *  counts otherwise. The properties point to `text`. */
void wb_amqp_properties_expire(amqp_basic_properties_t *properties, const wb_operation *operation,
                               char text[WB_AMQP_EXPIRATION_SIZE]);

/** Say how long it waits, in properties made without `more`: there is room for one header more. */
void wb_amqp_properties_delay(amqp_basic_properties_t *properties, int32_t seconds, size_t *size);

#endif

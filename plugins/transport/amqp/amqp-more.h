/* SPDX-License-Identifier: Apache-2.0
 *
 * More routing keys for an event, in the direct topology. The key that .NET gives an event with
 * several bases reaches the subscribers of the first word and of all words together; those of
 * what stands between, and those that do not know the bases, would get nothing. The header BCC
 * names their keys as well: a queue that is found by several gets the message once, and the
 * broker takes the header out. Pure.
 */
#ifndef WB_AMQP_MORE_H
#define WB_AMQP_MORE_H

#include "plugins/common/rabbitmq.h"
#include "plugins/transport/amqp/amqp-route.h"

/* A key of 255 bytes has 128 words at most; each begins a key, and may have another of its own. */
#define WB_AMQP_MORE_MAX 256

/** Large, and not to be filled with zeros: wb_amqp_more_make() does what is needed. */
typedef struct wb_amqp_more {
    size_t count;
    amqp_field_value_t keys[WB_AMQP_MORE_MAX];
    char text[WB_AMQP_MORE_MAX / 2][WB_AMQP_NAME_SIZE];
    size_t text_count;
} wb_amqp_more;

/** The keys an event has beside its own, `key`, which they point into: what is left of it behind
 *  each dot, and the keys of its types as the endpoint would bind them (it may know the bases of
 *  a base), unless one of those meets them already. */
void wb_amqp_more_make(const wb_endpoint_info *endpoint, const wb_amqp_config *config,
                       const wb_operation *operation, const char *key, wb_amqp_more *ret_more);

#endif

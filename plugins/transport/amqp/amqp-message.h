/* SPDX-License-Identifier: Apache-2.0
 *
 * One received message: struct, headers, strings and body in one allocation, which is never too
 * small for them and mostly a little too large: they are looked at once. Limits hold
 * before memory is used: of headers beyond the endpoint's limits only the first that fit
 * are copied, and a body over the limit stands in an allocation of its own, which grows as
 * the body arrives, and only while the message holds the process's gate.
 */
#ifndef WB_AMQP_MESSAGE_H
#define WB_AMQP_MESSAGE_H

#include "plugins/common/rabbitmq.h"
#include "plugins/transport/amqp/amqp-transport.h"

typedef struct wb_amqp_receiver wb_amqp_receiver;
typedef struct wb_amqp_message wb_amqp_message;

struct wb_amqp_message {
    wb_incoming incoming; /* first: the host's pointer is ours */
    wb_amqp_receiver *receiver;
    wb_amqp_message *next, *previous;
    uint64_t tag;
    unsigned consumer; /* to which it was delivered */
    int settling;
    int large;     /* its body is over the limit: `body` holds it */
    int holds_gate;
    int bodiless;  /* its body cannot be held: it is read and dropped */
    char *problem; /* with its headers, or NULL */
    char *body;
    size_t body_size, body_capacity; /* of what has arrived */
};

/** Make one for these properties and a body of that size, none of which is there yet.
 *  @return NULL when memory is out; but a body of more than 1 MiB is what is left out then, and the message's problem. */
wb_amqp_message *wb_amqp_message_new(const wb_transport *transport,
                                     const amqp_basic_properties_t *properties,
                                     uint64_t body_size);
/** Leaves the gate, too. NULL is none. */
void wb_amqp_message_free(wb_amqp_message *message);

/** Whether its body may be read now: 1, also when it entered the gate for that; 0: ask
 *  again later. */
int wb_amqp_message_may_read(wb_amqp_message *message);
/** The next part of its body, which must not be more than was announced. When there is
 *  no memory for it the message goes without its body, and says so. */
void wb_amqp_message_add(wb_amqp_message *message, amqp_bytes_t data);

#endif

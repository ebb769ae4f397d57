/* SPDX-License-Identifier: Apache-2.0
 *
 * The sending connection of a session: a window of operations goes out in two writes
 * (the broker is at work on the first half while the second is encoded), then all
 * confirms are awaited together.
 *
 * The broker answers a publish it cannot accept by closing the channel, and says
 * nothing of the rest of the window. Then: what is confirmed is done; whoever can be
 * told from the broker's words is rejected; everything else goes out again on a new
 * channel, one at a time if there is no other way to tell. Messages may thus be
 * duplicated, with the same id and bytes, and are never lost.
 *
 * The session's mutex is held by every caller.
 */
#ifndef WB_AMQP_SEND_H
#define WB_AMQP_SEND_H

#include "plugins/transport/amqp/amqp-connection.h"
#include "plugins/transport/amqp/amqp-destinations.h"
#include "plugins/transport/amqp/amqp-route.h"
#include "plugins/transport/amqp/amqp-window.h"

typedef struct wb_amqp_refusal wb_amqp_refusal;

typedef struct wb_amqp_sender {
    wb_amqp_connection connection;
    wb_amqp_window window;
    wb_amqp_destinations destinations;
    wb_amqp_refusal *refusals; /* of error queues, for a while (amqp-check.c) */
    amqp_table_entry_t *entries; /* of the message being encoded */
    size_t entry_capacity;
    int confirms_seen; /* in this round */
    uint64_t probe;    /* sequence number of the probe that is under way; 0: none */
    /* the basic.return being read */
    int in_return;
    wb_amqp_route returned;
} wb_amqp_sender;

/** Connect. On failure the connection says why. */
int wb_amqp_sender_open(wb_amqp_sender *sender, wb_transport *transport, wb_amqp_group *group);
/** Connect again, until `deadline`, after wb_amqp_sender_drop(). Touches nothing of the group:
 *  the caller need not hold the session's mutex, and fills the group's slot afterwards. */
int wb_amqp_sender_reconnect(wb_amqp_sender *sender, wb_transport *transport, wb_amqp_group *group,
                             int64_t deadline);
/** Close the connection at once; reasons of refusals stay valid. Does not wait. */
void wb_amqp_sender_drop(wb_amqp_sender *sender);
/** Also of one that is all zero. */
void wb_amqp_sender_close(wb_amqp_sender *sender);

/** wb_transport_ops.send, until the connection's deadline. After WB_IN_DOUBT the connection is
 *  of no more use. */
int wb_amqp_sender_send(wb_amqp_sender *sender, wb_operation *const *operations, size_t count,
                        wb_error *error);

#endif

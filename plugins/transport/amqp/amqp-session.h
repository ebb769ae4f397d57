/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: receiving connections, one for each queue, and a sending one, as its purpose asks for, the mutex
 * that guards them, and the keeper that looks after them while the worker is busy with
 * handlers. Every function of the SPI takes the mutex, but for interrupt() and
 * release_prefetched(), which leaves its work to the keeper.
 */
#ifndef WB_AMQP_SESSION_H
#define WB_AMQP_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugins/transport/amqp/amqp-receive.h"
#include "plugins/transport/amqp/amqp-send.h"

#define WB_AMQP_SENDER 0 /* its place in the group */

/** Runs while a session is open. */
typedef struct wb_amqp_keeper {
    pthread_t thread;
    int running;
    int wake; /* an eventfd: look at the flags */
    atomic_int stop;
    atomic_int release; /* give back what nobody has taken, and go on until it is so */
    int64_t period;
    /** While the keeper runs, a descriptor is closed with this held: it may be shutting one
     *  down without the session's mutex. Taken after that one. */
    pthread_mutex_t closing;
} wb_amqp_keeper;

struct wb_transport_session {
    wb_transport *transport;
    uint32_t purpose;
    pthread_mutex_t lock;
    /** Members: the connection of the sender at WB_AMQP_SENDER, those of the receivers behind it. The sender's is
     *  missing after a window was not confirmed, until the next send(). */
    wb_amqp_group group;
    wb_amqp_receiver *receivers; /* NULL: it does not receive */
    size_t receiver_count;
    size_t turn; /* whose messages are handed out first */
    wb_amqp_sender sender;
    wb_amqp_keeper keeper;
};

/* The functions of wb_transport_ops. */
int wb_amqp_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                         wb_transport_session **ret_session, wb_error *error);
void wb_amqp_session_close(wb_transport_session *session);
int wb_amqp_session_set_prefetch(wb_transport_session *session, uint32_t prefetch, wb_error *error);
int wb_amqp_session_receive(wb_transport_session *session, int64_t deadline,
                            const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                            wb_error *error);
int wb_amqp_session_stop_receiving(wb_transport_session *session, wb_error *error);
void wb_amqp_session_release_prefetched(wb_transport_session *session);
int wb_amqp_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                size_t count, wb_error *error);
int wb_amqp_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                              size_t count, wb_error *error);
int wb_amqp_session_send(wb_transport_session *session, wb_operation *const *operations,
                         size_t count, int64_t deadline, wb_error *error);
void wb_amqp_session_interrupt(wb_transport_session *session);

#endif

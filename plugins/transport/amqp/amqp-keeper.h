/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper: a thread a session, which keeps its connections alive while the worker
 * runs handlers, for ten minutes if need be.
 *
 * It takes the session's mutex only when it is free (a worker inside the plugin keeps
 * heartbeats itself), reads what has arrived, which changes the connections' state and
 * loses nothing, and sends heartbeats. When release_prefetched() asked for it, it also
 * gives back what the worker has not taken. Without the mutex it does one thing: with TLS
 * it shuts down a socket to which the worker has been writing for longer than its
 * deadline.
 */
#ifndef WB_AMQP_KEEPER_H
#define WB_AMQP_KEEPER_H

#include "plugins/transport/amqp/amqp-session.h"

/** Begin, once the connections are open. @return 0, or an errno. */
int wb_amqp_keeper_start(wb_transport_session *session);
/** End and join. The mutex must not be held. */
void wb_amqp_keeper_stop(wb_transport_session *session);

#endif

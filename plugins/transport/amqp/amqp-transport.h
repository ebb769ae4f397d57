/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's instance: what create() was told. Read-only once made, but for what the
 * sessions know of the broker together: some flags, and what the log says already.
 */
#ifndef WB_AMQP_TRANSPORT_H
#define WB_AMQP_TRANSPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <waybill/sys/transport.h>

#include "plugins/common/known.h"
#include "plugins/transport/amqp/amqp-options.h"

struct wb_transport {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const wb_amqp_config *config;
    /** 1 while the log already says that the broker blocks publishing: sessions
     *  come and go during an alarm, the line does not. */
    atomic_int blocked_logged;
    /** 1 after a window was not confirmed in time, until something is: who publishes next
     *  sends a probe first (amqp-probe.h). */
    atomic_int unconfirmed;
    /** Until then consumers prefetch one message: a frame could not be decoded, which
     *  costs the connection, and what else is in hand one delivery. */
    _Atomic int64_t careful_until;
    /** What is known of the queues' arguments; 1 while asking again would cost the broker a line in its log,
     *  because they are not what we declare or we may not declare. */
    atomic_int differs;
    /** 1 while a session exchanges its consumer (amqp-silence.h). */
    atomic_int exchanging;
    /** Until then what comes again came from a channel that had forgotten it. */
    _Atomic int64_t renewed_until;
    /** How often somebody had a reason to think that queues were made anew; and how many of these are
     *  settled, for they were looked at since. */
    atomic_uint doubts, settled;
    /** Pairs of exchanges (amqp-bases.c) of which the log already says that they cannot be
     *  bound; under the lock. */
    wb_common_known unbound;
    pthread_mutex_t unbound_lock;
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's instance: what create() was told, and who this process is among those of
 * the endpoint.
 */
#ifndef WB_KAFKA_TRANSPORT_H
#define WB_KAFKA_TRANSPORT_H

#include <stdatomic.h>
#include <waybill/sys/transport.h>

#include "plugins/transport/kafka/kafka-absent.h"
#include "plugins/transport/kafka/kafka-done.h"
#include "plugins/transport/kafka/kafka-identity.h"
#include "plugins/transport/kafka/kafka-large.h"
#include "plugins/transport/kafka/kafka-options.h"
#include "plugins/transport/kafka/kafka-share.h"

struct wb_transport {
    const wb_host *host;
    const wb_endpoint_info *endpoint;
    const wb_kafka_config *config;
    int64_t message_max;
    wb_kafka_identity identity;
    /** 1 while the log already says that no broker can be reached: one line, not one a
     *  session and try. */
    atomic_int unreachable_logged;
    /** 1 when a broker said that a committed offset is not in the log. */
    atomic_int out_of_range;
    /** Messages over the limits, of all sessions. */
    wb_kafka_large_line large;
    /** Of events that go to several topics. */
    wb_kafka_absent absent;
    wb_kafka_done done;
    /** The consumer and the producer of all sessions without transactions. */
    wb_kafka_share consumers, outlets;
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether librdkafka would make clients of the configuration. Each value may be right, and still
 * they may not go together; it says so only when it makes one.
 */
#ifndef WB_KAFKA_TRIAL_H
#define WB_KAFKA_TRIAL_H

#include "plugins/transport/kafka/kafka-transport.h"

/** Make a client of each role, without a broker, and destroy it. Where a property of the user's is
 *  to blame it is named. Of the transport host, endpoint, config and message_max are used.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_kafka_trial(const wb_transport *transport, wb_error *error);

#endif

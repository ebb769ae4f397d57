/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user of the brokers may do, as far as that can be asked without doing it: reading
 * the endpoint's topics, and keeping offsets for its group.
 */
#ifndef WB_KAFKA_RIGHTS_H
#define WB_KAFKA_RIGHTS_H

#include "plugins/transport/kafka/kafka-client.h"

/** Ask, with a client of its own that reads nothing and joins no group. An answer that does not
 *  come in time refuses nobody.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_REFUSED. */
int wb_kafka_rights_verify(wb_transport *transport, int64_t deadline, wb_kafka_failure *failure);

#endif

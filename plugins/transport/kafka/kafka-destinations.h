/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics known to exist, for half a minute each. Producing to one that does not exist must
 * never be tried: the broker may make it, with one partition and nobody to read it.
 */
#ifndef WB_KAFKA_DESTINATIONS_H
#define WB_KAFKA_DESTINATIONS_H

#include "plugins/common/known.h"
#include "plugins/transport/kafka/kafka-topology.h"

typedef wb_common_known wb_kafka_destinations;

/** Whether a topic is there; an event's is made when it is not, so that no event is lost
 *  because nobody has subscribed yet. @return WB_OK; WB_REJECT with *ret_code, and whether it is
 *  known that there is no such topic, which cannot be made either; or failure->result. */
int wb_kafka_destination_ensure(wb_kafka_destinations *destinations, wb_kafka_client *client,
                                const char *topic, int is_event, int64_t deadline,
                                rd_kafka_resp_err_t *ret_code, int *ret_is_absent,
                                wb_kafka_failure *failure);
/** It turned out that one is not there after all. */
void wb_kafka_destination_forget(wb_kafka_destinations *destinations, const char *topic);
void wb_kafka_destinations_clear(wb_kafka_destinations *destinations);

#endif

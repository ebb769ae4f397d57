/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user may pass on to librdkafka, and what not.
 */
#ifndef WB_KAFKA_PROPERTIES_H
#define WB_KAFKA_PROPERTIES_H

#include <librdkafka/rdkafka.h>

#include "plugins/transport/kafka/kafka-options.h"

/** Why a property is not passed on, or NULL when it is. `is_local`: all brokers are on
 *  this machine. Pure. */
const char *wb_kafka_property_refusal(const char *name, const char *value, int is_local);

/** Set the user's properties. @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG. */
int wb_kafka_properties_apply(const wb_host *host, const wb_kafka_config *config,
                              rd_kafka_conf_t *conf, wb_error *error);

#endif

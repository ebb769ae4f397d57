/* SPDX-License-Identifier: Apache-2.0
 *
 * Topics of bases that are not there and cannot be made: nobody has subscribed to them. Each is asked
 * for again after half a minute, and told of once. Any thread.
 */
#ifndef WB_KAFKA_ABSENT_H
#define WB_KAFKA_ABSENT_H

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#include "plugins/common/known.h"
#include <waybill/sys/transport.h>

typedef struct wb_kafka_absent {
    pthread_mutex_t lock;
    wb_common_known topics;
    wb_common_known told;
} wb_kafka_absent;

void wb_kafka_absent_init(wb_kafka_absent *absent);
void wb_kafka_absent_destroy(wb_kafka_absent *absent);

/** Whether it was found to be absent a short while ago. */
int wb_kafka_absent_has(wb_kafka_absent *absent, const char *topic, int64_t now);
/** It cannot be made, for that reason; the first time there is a warning. */
void wb_kafka_absent_add(wb_kafka_absent *absent, const char *topic, rd_kafka_resp_err_t code,
                         const wb_host *host);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-absent.h"

#define SECOND INT64_C(1000000000)
/* Somebody may have made it meanwhile, or permitted it to us. */
#define LIFE (30 * SECOND)

void wb_kafka_absent_init(wb_kafka_absent *absent)
{
    (void)pthread_mutex_init(&absent->lock, NULL);
}

void wb_kafka_absent_destroy(wb_kafka_absent *absent)
{
    wb_common_known_clear(&absent->topics);
    wb_common_known_clear(&absent->told);
    (void)pthread_mutex_destroy(&absent->lock);
}

int wb_kafka_absent_has(wb_kafka_absent *absent, const char *topic, int64_t now)
{
    (void)pthread_mutex_lock(&absent->lock);
    int answer = wb_common_known_has(&absent->topics, topic, now);
    (void)pthread_mutex_unlock(&absent->lock);
    return answer;
}

void wb_kafka_absent_add(wb_kafka_absent *absent, const char *topic, rd_kafka_resp_err_t code,
                         const wb_host *host)
{
    const wb_field fields[] = { { "topic", topic }, { "reason", rd_kafka_err2str(code) } };
    int64_t now = host->now();
    (void)pthread_mutex_lock(&absent->lock);
    int is_told = wb_common_known_has(&absent->told, topic, now);
    wb_common_known_add(&absent->topics, topic, now + LIFE);
    wb_common_known_add(&absent->told, topic, WB_COMMON_FOR_EVER);
    (void)pthread_mutex_unlock(&absent->lock);
    if (!is_told)
        host->log(host, WB_LOG_WARNING,
                  "an event's base has no topic, and it cannot be made: who subscribes to the base gets "
                  "what is published after its topic was made, by waybill install for instance",
                  fields, sizeof fields / sizeof fields[0]);
}

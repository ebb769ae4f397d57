/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-destinations.h"

#define SECOND INT64_C(1000000000)
/* A topic that is deleted is noticed after this time, if the broker does not say so before. */
#define LIFE (30 * SECOND)

static int make_event(wb_kafka_client *client, const char *topic, int64_t deadline,
                      rd_kafka_resp_err_t *ret_code, wb_kafka_failure *failure)
{
    wb_kafka_failure refused = { 0 };
    int existed;
    int result = wb_kafka_topic_create(client, topic, client->transport->message_max, deadline,
                                       &existed, &refused);
    if (result == WB_OK)
        return wb_kafka_topic_await(client, topic, deadline, failure);
    *ret_code = (rd_kafka_resp_err_t)refused.code;
    /* Forbidden, or impossible: nothing that waiting helps against. */
    if (refused.result == WB_FATAL)
        return WB_REJECT;
    *failure = refused;
    return result;
}

int wb_kafka_destination_ensure(wb_kafka_destinations *destinations, wb_kafka_client *client,
                                const char *topic, int is_event, int64_t deadline,
                                rd_kafka_resp_err_t *ret_code, int *ret_is_absent,
                                wb_kafka_failure *failure)
{
    int64_t now = client->transport->host->now();
    *ret_is_absent = 0;
    if (wb_common_known_has(destinations, topic, now))
        return WB_OK;
    int result = wb_kafka_topic_find(client, topic, deadline, ret_code, NULL, NULL, failure);
    if (result == WB_REJECT && is_event && *ret_code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
        result = make_event(client, topic, deadline, ret_code, failure);
        *ret_is_absent = result == WB_REJECT;
    }
    if (result == WB_OK)
        wb_common_known_add(destinations, topic, now + LIFE);
    return result;
}

void wb_kafka_destination_forget(wb_kafka_destinations *destinations, const char *topic)
{
    wb_common_known_drop(destinations, topic);
}

void wb_kafka_destinations_clear(wb_kafka_destinations *destinations)
{
    wb_common_known_clear(destinations);
}

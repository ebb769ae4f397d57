/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-refusals.h"

#include <string.h>

#define SECOND INT64_C(1000000000)
/* Somebody may have changed the topic meanwhile. */
#define LIFE (30 * SECOND)

static uint64_t mix(uint64_t value, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        value = (value ^ at[i]) * UINT64_C(1099511628211); /* FNV-1a */
    return value;
}

static uint64_t mix_sizes(uint64_t value, const wb_operation *operation)
{
    size_t sizes[] = { operation->body_size, operation->key_size, operation->header_count };
    return mix(value, sizes, sizeof sizes);
}

/* One with an id is sent again with the same bytes; a copy that was trimmed has another size. */
uint64_t wb_kafka_refusals_name(const char *topic, const wb_operation *operation)
{
    uint64_t value = mix(UINT64_C(14695981039346656037), topic, strlen(topic) + 1);
    value = mix_sizes(value, operation);
    for (size_t i = 0; i < operation->header_count; i++)
        value = mix(value, &operation->headers[i].value_size,
                    sizeof operation->headers[i].value_size);
    if (operation->id_size)
        return mix(value, operation->id, operation->id_size);
    return mix(value, operation->body, operation->body_size);
}

void wb_kafka_refusals_add(wb_kafka_refusals *refusals, const char *topic,
                           const wb_operation *operation, rd_kafka_resp_err_t code, int64_t now)
{
    size_t at = refusals->next++ % WB_KAFKA_REFUSALS;
    refusals->known[at].operation = wb_kafka_refusals_name(topic, operation);
    refusals->known[at].code = code;
    refusals->known[at].until = refusals->until = now + LIFE;
}

rd_kafka_resp_err_t wb_kafka_refusals_find(const wb_kafka_refusals *refusals, const char *topic,
                                           const wb_operation *operation, int64_t now)
{
    if (now >= refusals->until)
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    uint64_t wanted = wb_kafka_refusals_name(topic, operation);
    for (size_t i = 0; i < WB_KAFKA_REFUSALS; i++)
        if (refusals->known[i].operation == wanted && now < refusals->known[i].until)
            return refusals->known[i].code;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-destinations.h"

#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
/* A topic that is deleted is noticed after this time, if the broker does not say so before. */
#define LIFE (30 * SECOND)
/* Replies may go to very many topics; asking again costs a round trip, no more. */
#define KNOWN_MAX 4096

/* The place of a name, or where it belongs; *ret_found says which. */
static size_t find(const wb_kafka_destinations *destinations, const char *name, int *ret_found)
{
    size_t low = 0, high = destinations->count;
    *ret_found = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, destinations->known[middle].name);
        if (order == 0) {
            *ret_found = 1;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Out of memory: it is asked for again, that is all. */
static void remember(wb_kafka_destinations *destinations, const char *name, int64_t until)
{
    int found;
    if (destinations->count >= KNOWN_MAX)
        wb_kafka_destinations_clear(destinations);
    size_t at = find(destinations, name, &found);
    if (found) {
        destinations->known[at].until = until;
        return;
    }
    if (destinations->count == destinations->capacity) {
        size_t capacity = destinations->capacity ? destinations->capacity * 2 : 16;
        wb_kafka_destination *known =
            realloc(destinations->known, capacity * sizeof *known);
        if (!known)
            return;
        destinations->known = known;
        destinations->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy)
        return;
    memmove(destinations->known + at + 1, destinations->known + at,
            (destinations->count - at) * sizeof *destinations->known);
    destinations->known[at] = (wb_kafka_destination){ copy, until };
    destinations->count++;
}

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
                                rd_kafka_resp_err_t *ret_code, wb_kafka_failure *failure)
{
    int64_t now = client->transport->host->now();
    int found;
    size_t at = find(destinations, topic, &found);
    if (found && destinations->known[at].until > now)
        return WB_OK;
    int result = wb_kafka_topic_find(client, topic, deadline, ret_code, NULL, NULL, failure);
    if (result == WB_REJECT && is_event && *ret_code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        result = make_event(client, topic, deadline, ret_code, failure);
    if (result == WB_OK)
        remember(destinations, topic, now + LIFE);
    return result;
}

void wb_kafka_destination_forget(wb_kafka_destinations *destinations, const char *topic)
{
    int found;
    size_t at = find(destinations, topic, &found);
    if (found)
        destinations->known[at].until = 0;
}

void wb_kafka_destinations_clear(wb_kafka_destinations *destinations)
{
    for (size_t i = 0; i < destinations->count; i++)
        free(destinations->known[i].name);
    free(destinations->known);
    *destinations = (wb_kafka_destinations){ 0 };
}

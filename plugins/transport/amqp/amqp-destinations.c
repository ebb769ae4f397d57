/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-destinations.h"

#include <stdlib.h>
#include <string.h>

/* Replies may go to very many queues; asking again costs a round trip, no more. */
#define REMEMBERED_MAX 4096

/* The place of a name, or where it belongs; *ret_found says which. */
static size_t find(const wb_amqp_destinations *destinations, const char *name, int *ret_found)
{
    size_t low = 0, high = destinations->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, destinations->names[middle]);
        if (order == 0) {
            *ret_found = 1;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_found = 0;
    return low;
}

/* Out of memory: it is asked for again, that is all. */
static void remember(wb_amqp_destinations *destinations, const char *name)
{
    int found;
    if (destinations->count >= REMEMBERED_MAX)
        wb_amqp_destinations_clear(destinations);
    if (destinations->count == destinations->capacity) {
        size_t capacity = destinations->capacity ? destinations->capacity * 2 : 16;
        char **names = realloc(destinations->names, capacity * sizeof *names);
        if (!names)
            return;
        destinations->names = names;
        destinations->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy)
        return;
    size_t at = find(destinations, name, &found);
    memmove(destinations->names + at + 1, destinations->names + at,
            (destinations->count - at) * sizeof *destinations->names);
    destinations->names[at] = copy;
    destinations->count++;
}

/* An event's exchange that is there with another type, or that we may not declare,
 * is good enough to publish to. If it is not there, what is missing is the permission. */
int wb_amqp_event_declare(wb_amqp_connection *connection, const char *name)
{
    wb_amqp_channel *channel = &connection->channels[WB_AMQP_SCRATCH];
    int result = wb_amqp_exchange_declare(connection, name, 0);
    if (result != WB_REJECT ||
        (channel->code != AMQP_PRECONDITION_FAILED && channel->code != AMQP_ACCESS_REFUSED))
        return result;
    const wb_amqp_channel refused = *channel;
    result = wb_amqp_exchange_declare(connection, name, 1);
    if (result == WB_REJECT && channel->code == AMQP_NOT_FOUND && refused.code == AMQP_ACCESS_REFUSED) {
        channel->code = refused.code;
        memcpy(channel->text, refused.text, sizeof channel->text);
    }
    return result;
}

int wb_amqp_destinations_has(const wb_amqp_destinations *destinations, const char *name)
{
    int found;
    (void)find(destinations, name, &found);
    return found;
}

void wb_amqp_destinations_add(wb_amqp_destinations *destinations, const char *name)
{
    remember(destinations, name);
}

int wb_amqp_destination_ensure(wb_amqp_destinations *destinations, wb_amqp_connection *connection,
                               const char *name, int is_event)
{
    int found;
    (void)find(destinations, name, &found);
    if (found)
        return WB_OK;
    int result = is_event ? wb_amqp_event_declare(connection, name)
                          : wb_amqp_exchange_declare(connection, name, 1);
    if (result == WB_OK)
        remember(destinations, name);
    return result;
}

void wb_amqp_destinations_clear(wb_amqp_destinations *destinations)
{
    for (size_t i = 0; i < destinations->count; i++)
        free(destinations->names[i]);
    free(destinations->names);
    *destinations = (wb_amqp_destinations){ 0 };
}

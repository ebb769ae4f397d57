/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-destinations.h"

#include <string.h>

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
    return wb_common_known_has(destinations, name, 0);
}

void wb_amqp_destinations_add(wb_amqp_destinations *destinations, const char *name)
{
    wb_common_known_add(destinations, name, WB_COMMON_FOR_EVER);
}

int wb_amqp_destination_ensure(wb_amqp_destinations *destinations, wb_amqp_connection *connection,
                               const char *name, int is_event)
{
    if (wb_amqp_destinations_has(destinations, name))
        return WB_OK;
    int result = is_event ? wb_amqp_event_declare(connection, name)
                          : wb_amqp_exchange_declare(connection, name, 1);
    if (result == WB_OK)
        wb_amqp_destinations_add(destinations, name);
    return result;
}

void wb_amqp_destinations_clear(wb_amqp_destinations *destinations)
{
    wb_common_known_clear(destinations);
}

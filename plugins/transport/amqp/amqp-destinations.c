/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-destinations.h"

#include <string.h>

const char *wb_amqp_destination_exchange(const wb_operation *operation,
                                         char ret_name[WB_AMQP_NAME_SIZE])
{
    const char *destination = operation->destination ? operation->destination : "";
    size_t size = strlen(destination);
    if (operation->kind == WB_OPERATION_PUBLISH)
        return wb_amqp_event_exchange(destination, ret_name)
                   ? NULL
                   : "1 to 254 bytes";
    /* The empty name would be the default exchange, where addresses mean nothing. */
    if (size == 0 || size >= WB_AMQP_NAME_SIZE)
        return "1 to 255 bytes";
    memcpy(ret_name, destination, size + 1);
    return NULL;
}

/* An event's exchange that is there with another type, or that we may not declare,
 * is good enough to publish to. */
int wb_amqp_event_declare(wb_amqp_connection *connection, const char *name)
{
    int result = wb_amqp_exchange_declare(connection, name, 0);
    if (result != WB_REJECT)
        return result;
    int code = connection->channels[WB_AMQP_SCRATCH].code;
    if (code != AMQP_PRECONDITION_FAILED && code != AMQP_ACCESS_REFUSED)
        return result;
    return wb_amqp_exchange_declare(connection, name, 1);
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

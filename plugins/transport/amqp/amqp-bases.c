/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-bases.h"

#include <stdio.h>
#include <string.h>
#include <waybill/sys/types.h>

#include "plugins/common/types_of.h"
#include "plugins/transport/amqp/amqp-route.h"

/* Two exchanges as one name to remember: no name holds a line end. */
#define PAIR_SIZE (2 * WB_AMQP_NAME_SIZE)
/* How long a refusal counts; nanoseconds. */
#define REFUSED_FOR (30 * INT64_C(1000000000))

static int was_refused(const wb_amqp_connection *connection, int result)
{
    int code = connection->channels[WB_AMQP_SCRATCH].code;
    return result == WB_REJECT && (code == AMQP_ACCESS_REFUSED || code == AMQP_NOT_FOUND);
}

/* Whether the log does not say so yet, of all sessions of the instance. */
static int is_news(wb_transport *transport, const char *pair, int is_refused)
{
    (void)pthread_mutex_lock(&transport->unbound_lock);
    int was_refused = wb_common_known_has(&transport->unbound, pair, 0);
    if (is_refused)
        wb_common_known_add(&transport->unbound, pair, WB_COMMON_FOR_EVER);
    else
        wb_common_known_drop(&transport->unbound, pair);
    (void)pthread_mutex_unlock(&transport->unbound_lock);
    return was_refused != is_refused;
}

static void tell(const wb_amqp_connection *connection, const char *child, const char *base, int is_refused)
{
    const wb_host *host = connection->transport->host;
    const wb_field fields[] = { { "exchange", child }, { "base", base },
                                { "reason", connection->channels[WB_AMQP_SCRATCH].text } };
    const size_t count = sizeof fields / sizeof fields[0];
    if (is_refused)
        host->log(host, WB_LOG_WARNING,
                  "an event's exchange cannot be bound to that of its base: who subscribed to the base gets "
                  "the event only if waybill install, or somebody else, bound them",
                  fields, count);
    else
        host->log(host, WB_LOG_INFO, "an event's exchange is bound to that of its base now", fields, count - 1);
}

/* A base that is not there, and that we may not make, has no subscribers. What was refused is asked
 * for again after a while: somebody may have granted it. */
static int remember(wb_amqp_destinations *known, wb_amqp_connection *connection, const char *child,
                    const char *base, const char *pair, int result)
{
    wb_transport *transport = connection->transport;
    int is_refused = was_refused(connection, result);
    if (result != WB_OK && !is_refused)
        return result;
    wb_common_known_add(known, pair,
                        is_refused ? transport->host->now() + REFUSED_FOR : WB_COMMON_FOR_EVER);
    if (is_news(transport, pair, is_refused))
        tell(connection, child, base, is_refused);
    return WB_OK;
}

static int bind_base(wb_amqp_destinations *known, wb_amqp_connection *connection, const char *child,
                     const char *base)
{
    char pair[PAIR_SIZE];
    (void)snprintf(pair, sizeof pair, "%s\n%s", child, base);
    if (known && wb_common_known_has(known, pair, connection->transport->host->now()))
        return WB_OK;
    int result = wb_amqp_event_declare(connection, base);
    if (result == WB_OK)
        result = wb_amqp_exchange_bind(connection, child, "", base);
    return known ? remember(known, connection, child, base, pair, result) : result;
}

static int bind_bases(wb_amqp_destinations *known, wb_amqp_connection *connection, const char *types,
                      const char *child)
{
    char type[WB_TYPE_SIZE], base[WB_AMQP_NAME_SIZE];
    size_t size;
    int result = WB_OK;
    while (result == WB_OK && wb_type_next(&types, type, &size)) {
        if (wb_amqp_event_exchange(type, base) && !wb_amqp_name_problem(base) && strcmp(base, child) != 0)
            result = bind_base(known, connection, child, base);
    }
    return result;
}

int wb_amqp_bases_bind(wb_amqp_destinations *known, wb_amqp_connection *connection, const char *types)
{
    char type[WB_TYPE_SIZE], child[WB_AMQP_NAME_SIZE];
    size_t size;
    if (!wb_type_next(&types, type, &size) || !wb_amqp_event_exchange(type, child))
        return WB_OK;
    int result = wb_amqp_event_declare(connection, child);
    return result == WB_OK ? bind_bases(known, connection, types, child) : result;
}

int wb_amqp_bases_ensure(wb_amqp_destinations *known, wb_amqp_connection *connection,
                         const wb_operation *operation, const char *child)
{
    const char *types = wb_common_types_of(operation);
    return strchr(types, ';') ? bind_bases(known, connection, types, child) : WB_OK;
}

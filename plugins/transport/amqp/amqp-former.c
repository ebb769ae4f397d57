/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-former.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-levels.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-topology.h"
#include "plugins/transport/amqp/amqp-undo.h"

#define REMOVED "waybill.removed."
#define RENAMED "waybill.renamed."

static const char *own_name(const wb_amqp_connection *connection)
{
    return connection->transport->endpoint->name;
}

/* ---- names: all fit, of what can be delayed to ------------------------------------------------ */

static void name_former(const char *kind, const char *name, char ret_name[WB_AMQP_NAME_SIZE])
{
    (void)snprintf(ret_name, WB_AMQP_NAME_SIZE, "%s%s", kind, name);
}

static void name_heir(unsigned number, const char *name, char ret_name[WB_AMQP_NAME_SIZE])
{
    (void)snprintf(ret_name, WB_AMQP_NAME_SIZE, "waybill.heir-%u.%s", number, name);
}

/* ---- single steps ---------------------------------------------------------------------------- */

static int outcome(const wb_amqp_connection *connection, int result, const char *exchange, wb_error *error)
{
    return wb_amqp_topology_outcome(connection, result, "exchange", exchange, error);
}

static int look(wb_amqp_connection *connection, const char *exchange, int *ret_is_there, wb_error *error)
{
    return outcome(connection, wb_amqp_exchange_look(connection, exchange, ret_is_there), exchange, error);
}

static int look_for(wb_amqp_connection *connection, const char *kind, const char *name, int *ret_is_there, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    name_former(kind, name, exchange);
    return look(connection, exchange, ret_is_there, error);
}

/* Only what is there: who may not delete learns nothing from asking. */
static int delete_former(wb_amqp_connection *connection, const char *kind, const char *name, int *is_there, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    name_former(kind, name, exchange);
    int result = look(connection, exchange, is_there, error);
    if (result == WB_OK && *is_there)
        result = outcome(connection, wb_amqp_exchange_delete(connection, exchange), exchange, error);
    return result;
}

static int declare(wb_amqp_connection *connection, const char *exchange, wb_error *error)
{
    return outcome(connection, wb_amqp_exchange_declare(connection, exchange, 0), exchange, error);
}

static int join(wb_amqp_connection *connection, const char *source, const char *destination, wb_error *error)
{
    return outcome(connection, wb_amqp_exchange_bind(connection, source, "", destination), destination, error);
}

/* From an exchange to where an endpoint's messages come in. */
static int bind_endpoint(wb_amqp_connection *connection, const char *source, const char *name, wb_error *error)
{
    int result = wb_amqp_topology_is_direct(connection) ? wb_amqp_queue_bind(connection, source, "", name)
                                                        : wb_amqp_exchange_bind(connection, source, "", name);
    return outcome(connection, result, source, error);
}

static int unbind_endpoint(wb_amqp_connection *connection, const char *source, const char *key, const char *name,
                           wb_error *error)
{
    int result = wb_amqp_topology_is_direct(connection) ? wb_amqp_queue_unbind(connection, source, key, name)
                                                        : wb_amqp_exchange_unbind(connection, source, key, name);
    return outcome(connection, result, source, error);
}

/* What is delayed to a name: to where its messages come in, or not. */
static int unbind_delays(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    char key[WB_AMQP_NAME_SIZE];
    wb_amqp_delay_pattern(name, key);
    return unbind_endpoint(connection, WB_AMQP_DELIVERY, key, name, error);
}

static int bind_delays(wb_amqp_connection *connection, const char *kind, const char *name, wb_error *error)
{
    char key[WB_AMQP_NAME_SIZE], exchange[WB_AMQP_NAME_SIZE];
    wb_amqp_delay_pattern(name, key);
    name_former(kind, name, exchange);
    return outcome(connection, wb_amqp_exchange_bind(connection, WB_AMQP_DELIVERY, key, exchange), exchange, error);
}

/* Whether anything can have been delayed to a name. */
static int can_wait_for(wb_amqp_connection *connection, const char *name, int *ret_can, wb_error *error)
{
    int cause;
    *ret_can = 0;
    return wb_amqp_delay_problem(name, &cause) ? WB_OK : look(connection, WB_AMQP_DELIVERY, ret_can, error);
}

/* ---- heirs ----------------------------------------------------------------------------------- */

/* The heir of the last endpoint of that name: 1 when there was none. */
static int find_heir(wb_amqp_connection *connection, const char *name, unsigned *ret_number, int *ret_is_there, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    int has_next = 1, result = WB_OK;
    for (*ret_number = 0; result == WB_OK && has_next; ++*ret_number) {
        name_heir(*ret_number + 2, name, exchange);
        result = look(connection, exchange, &has_next, error);
    }
    if (result != WB_OK)
        return result;
    name_heir(*ret_number, name, exchange);
    return look(connection, exchange, ret_is_there, error);
}

/* What an earlier endpoint of that name inherited is not for this one. */
static int begin_next_heir(wb_amqp_connection *connection, const char *name, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    unsigned number;
    int is_there;
    int result = find_heir(connection, name, &number, &is_there, error);
    if (result != WB_OK || !is_there)
        return result;
    name_heir(number + 1, name, exchange);
    return declare(connection, exchange, error);
}

/* What an endpoint inherited goes on to `next`. */
static int pass_heir_on(wb_amqp_connection *connection, const char *name, const char *next, int is_queue, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    unsigned number;
    int is_there;
    int result = find_heir(connection, name, &number, &is_there, error);
    if (result != WB_OK || !is_there)
        return result;
    name_heir(number, name, exchange);
    result = unbind_endpoint(connection, exchange, "", name, error);
    if (result != WB_OK)
        return result;
    return is_queue ? outcome(connection, wb_amqp_queue_bind(connection, exchange, "", next), exchange, error)
                    : join(connection, exchange, next, error);
}

static int make_heir(wb_amqp_connection *connection, char ret_heir[WB_AMQP_NAME_SIZE], wb_error *error)
{
    unsigned number;
    int is_there;
    int result = find_heir(connection, own_name(connection), &number, &is_there, error);
    if (result != WB_OK)
        return result;
    name_heir(number, own_name(connection), ret_heir);
    result = declare(connection, ret_heir, error);
    return result == WB_OK ? bind_endpoint(connection, ret_heir, own_name(connection), error) : result;
}

/* ---- install --------------------------------------------------------------------------------- */

static int bind_own_delays(wb_amqp_connection *connection, wb_error *error)
{
    int result = wb_amqp_levels_bind(connection, own_name(connection));
    return wb_amqp_was_missing(connection, result) ? WB_OK : outcome(connection, result, WB_AMQP_DELIVERY, error);
}

int wb_amqp_former_end(wb_amqp_connection *connection, wb_error *error)
{
    const char *name = own_name(connection);
    int was_removed = 0, was_renamed = 0, cause;
    if (wb_amqp_delay_problem(name, &cause))
        return WB_OK;
    int result = look_for(connection, REMOVED, name, &was_removed, error);
    if (result == WB_OK)
        result = look_for(connection, RENAMED, name, &was_renamed, error);
    if (result != WB_OK || (!was_removed && !was_renamed))
        return result;
    result = begin_next_heir(connection, name, error);
    if (result == WB_OK)
        result = delete_former(connection, REMOVED, name, &was_removed, error);
    if (result == WB_OK)
        result = delete_former(connection, RENAMED, name, &was_renamed, error);
    return result == WB_OK ? bind_own_delays(connection, error) : result;
}

/* ---- uninstall ------------------------------------------------------------------------------- */

/* From level to level down, as messages go. */
int wb_amqp_former_count(wb_amqp_connection *connection, uint64_t *ret_count, wb_error *error)
{
    char name[WB_AMQP_NAME_SIZE];
    int result = WB_OK;
    *ret_count = 0;
    for (unsigned level = WB_AMQP_LEVELS; level-- > 0 && result == WB_OK;) {
        wb_amqp_level_name(level, name);
        result = wb_amqp_queue_exists(connection, name);
        if (result == WB_OK)
            *ret_count += connection->declared_messages;
        else if (wb_amqp_was_missing(connection, result))
            result = WB_OK;
    }
    return wb_amqp_topology_outcome(connection, result, "queue", name, error);
}

/* An error queue that is not there, removed with another endpoint, is made only for what may come. */
static int ensure_error_queue(wb_amqp_connection *connection, int *ret_is_there, wb_error *error)
{
    const char *address = connection->transport->endpoint->error_queue;
    uint64_t delayed = 0;
    int result = wb_amqp_queue_exists(connection, wb_amqp_address_queue(address));
    *ret_is_there = result == WB_OK;
    if (!wb_amqp_was_missing(connection, result))
        return wb_amqp_topology_outcome(connection, result, "queue", address, error);
    result = wb_amqp_former_count(connection, &delayed, error);
    if (result == WB_OK && delayed)
        result = wb_amqp_topology_install_address(connection, address, error);
    *ret_is_there = result == WB_OK && delayed;
    return result;
}

/* Whether what is delayed to the endpoint is to be led elsewhere: a new name has it already. */
static int must_lead(wb_amqp_connection *connection, int *ret_must, wb_error *error)
{
    int was_renamed = 0;
    int result = can_wait_for(connection, own_name(connection), ret_must, error);
    if (result == WB_OK && *ret_must)
        result = look_for(connection, RENAMED, own_name(connection), &was_renamed, error);
    *ret_must = *ret_must && !was_renamed && connection->transport->endpoint->error_queue;
    return result;
}

int wb_amqp_former_prepare(wb_amqp_connection *connection, wb_error *error)
{
    char exchange[WB_AMQP_NAME_SIZE];
    int must = 0;
    int result = must_lead(connection, &must, error);
    if (result == WB_OK && must)
        result = ensure_error_queue(connection, &must, error);
    if (result != WB_OK || !must)
        return result;
    name_former(REMOVED, own_name(connection), exchange);
    result = declare(connection, exchange, error);
    if (result != WB_OK)
        return result;
    return outcome(connection,
                   wb_amqp_queue_bind(connection, exchange, "",
                                      wb_amqp_address_queue(connection->transport->endpoint->error_queue)),
                   exchange, error);
}

int wb_amqp_former_release(wb_amqp_connection *connection, wb_error *error)
{
    int must = 0;
    int result = must_lead(connection, &must, error);
    return result == WB_OK && must ? unbind_delays(connection, own_name(connection), error) : result;
}

int wb_amqp_former_restore(wb_amqp_connection *connection, wb_error *error)
{
    int must = 0, is_there;
    int result = must_lead(connection, &must, error);
    if (result == WB_OK && must)
        result = delete_former(connection, REMOVED, own_name(connection), &is_there, error);
    return result == WB_OK && must ? bind_own_delays(connection, error) : result;
}

static int tell(wb_amqp_connection *connection, wb_error *error)
{
    const wb_transport *transport = connection->transport;
    char number[24];
    uint64_t count;
    int result = wb_amqp_former_count(connection, &count, error);
    (void)snprintf(number, sizeof number, "%" PRIu64, count);
    if (result == WB_OK && count)
        transport->host->log(transport->host, WB_LOG_WARNING,
                             "the broker delays messages: those to this endpoint go to the error queue when they are due",
                             (const wb_field[]){ { "queue", own_name(connection) },
                                                 { "error_queue", transport->endpoint->error_queue },
                                                 { "delayed_for_all", number } }, 3);
    return result;
}

int wb_amqp_former_lead(wb_amqp_connection *connection, wb_error *error)
{
    const char *name = own_name(connection);
    int must = 0;
    int result = must_lead(connection, &must, error);
    if (result == WB_OK && must) /* prepared */
        result = look_for(connection, REMOVED, name, &must, error);
    if (result != WB_OK || !must)
        return result;
    result = bind_delays(connection, REMOVED, name, error);
    if (result == WB_OK)
        result = pass_heir_on(connection, name, wb_amqp_address_queue(connection->transport->endpoint->error_queue), 1, error);
    return result == WB_OK ? tell(connection, error) : result;
}

/* ---- take over ------------------------------------------------------------------------------- */

/* A new name that is too long for an heir is led to itself, and its own next name does not get it. */
static int make_way(wb_amqp_connection *connection, const char *former, wb_error *error)
{
    char renamed[WB_AMQP_NAME_SIZE], heir[WB_AMQP_NAME_SIZE];
    const int fits = strlen(own_name(connection)) <= WB_AMQP_DELAYED_ADDRESS_MAX;
    name_former(RENAMED, former, renamed);
    int result = declare(connection, renamed, error);
    if (result != WB_OK || !fits)
        return result == WB_OK ? bind_endpoint(connection, renamed, own_name(connection), error) : result;
    result = make_heir(connection, heir, error);
    if (result == WB_OK)
        result = join(connection, renamed, heir, error);
    return result == WB_OK ? pass_heir_on(connection, former, heir, 0, error) : result;
}

int wb_amqp_former_take_over(wb_amqp_connection *connection, const char *former, wb_error *error)
{
    int can = 0, is_there;
    int result = can_wait_for(connection, former, &can, error);
    if (result != WB_OK || !can)
        return result;
    result = make_way(connection, former, error);
    if (result == WB_OK)
        result = delete_former(connection, REMOVED, former, &is_there, error);
    if (result == WB_OK)
        result = unbind_delays(connection, former, error);
    return result == WB_OK ? bind_delays(connection, RENAMED, former, error) : result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-judge.h"

#include <string.h>

#include "plugins/transport/amqp/amqp-management.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-route.h"

/* ---- whose queue it is ----------------------------------------------------------- */

static int is_audit_queue(const wb_transport *transport, const char *name)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    return WB_HAS(endpoint, wb_endpoint_info, audit_queue) &&
           strcmp(name, wb_amqp_address_queue(endpoint->audit_queue)) == 0;
}

size_t wb_amqp_judge_count_error_queues(const wb_endpoint_info *endpoint)
{
    return WB_HAS(endpoint, wb_endpoint_info, error_queue_count) ? endpoint->error_queue_count : 0;
}

size_t wb_amqp_judge_count_own_queues(const wb_endpoint_info *endpoint)
{
    const size_t further = WB_HAS(endpoint, wb_endpoint_info, queue_count) ? endpoint->queue_count : 0;
    return 1 + (further < WB_QUEUES_MAX ? further : WB_QUEUES_MAX);
}

const char *wb_amqp_judge_own_queue(const wb_endpoint_info *endpoint, size_t number)
{
    return number ? endpoint->queues[number - 1] : endpoint->name;
}

static int is_own_queue(const wb_endpoint_info *endpoint, const char *name)
{
    int is_own = 0;
    for (size_t i = 0; !is_own && i < wb_amqp_judge_count_own_queues(endpoint); i++)
        is_own = strcmp(name, wb_amqp_judge_own_queue(endpoint, i)) == 0;
    return is_own;
}

int wb_amqp_judge_is_error_queue(const wb_transport *transport, const char *name)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    int is_error_queue = endpoint->error_queue && strcmp(name, wb_amqp_address_queue(endpoint->error_queue)) == 0;
    for (size_t i = 0; !is_error_queue && i < wb_amqp_judge_count_error_queues(endpoint); i++)
        is_error_queue = strcmp(name, wb_amqp_address_queue(endpoint->error_queues[i])) == 0;
    return is_error_queue && !is_own_queue(endpoint, name);
}

/* Error queues and the audit queue are others', too. */
static int is_shared(const wb_transport *transport, const char *name)
{
    return wb_amqp_judge_is_error_queue(transport, name) ||
           (is_audit_queue(transport, name) && !is_own_queue(transport->endpoint, name));
}

static int type_of(const wb_transport *transport, const char *name)
{
    return is_shared(transport, name) ? wb_amqp_config_error_queue_type(transport->config)
                                      : transport->config->queue_type;
}

/* ---- what a refusal means -------------------------------------------------------- */

/* The broker names the argument between quotes: "inequivalent arg 'x-queue-type' for
 * queue ...". */
static void argument_name(const char *text, char ret_name[64])
{
    static const char before[] = "inequivalent arg '";
    const char *at = strstr(text, before);
    size_t size = at ? strcspn(at + sizeof before - 1, "'") : 0;
    if (size == 0 || size >= 64)
        at = "arguments", size = strlen(at);
    else
        at += sizeof before - 1;
    memcpy(ret_name, at, size);
    ret_name[size] = '\0';
}

/* What an operator can set to what is there. */
static const char *remedy_for(const wb_transport *transport, const char *name,
                              const char *argument)
{
    if (strcmp(argument, "x-queue-type") == 0)
        return is_shared(transport, name) ? "set error_queue_type to what it is, or delete it"
                                          : "set queue_type to what it is, or delete it";
    if (strcmp(argument, "x-dead-letter-exchange") == 0)
        return "set dead_letter_exchange to what it is or leave it out, or delete the queue";
    return "delete it";
}

static int refused(const wb_amqp_connection *connection, const char *what, const char *name,
                   wb_amqp_failure *ret_why)
{
    const wb_amqp_channel *channel = &connection->channels[WB_AMQP_SCRATCH];
    char argument[64];
    switch (channel->code) {
    case AMQP_NOT_FOUND:
        return wb_amqp_failure_set(ret_why, WB_FATAL, WB_CAUSE_MISSING, channel->code,
                                   "%s \"%s\" does not exist: run waybill install", what, name);
    case AMQP_PRECONDITION_FAILED:
        argument_name(channel->text, argument);
        return wb_amqp_failure_set(ret_why, WB_FATAL, WB_CAUSE_MISMATCH, channel->code,
                                   "%s \"%s\" exists with another %s: %s (the broker says: %s)", what,
                                   name, argument, remedy_for(connection->transport, name, argument),
                                   channel->text);
    default:
        return wb_amqp_failure_set(ret_why, WB_FATAL, wb_amqp_map_cause(channel->code), channel->code,
                                   "could not use %s \"%s\": the broker says: %s", what, name,
                                   channel->text);
    }
}

int wb_amqp_judge_outcome(const wb_amqp_connection *connection, int result, const char *what, const char *name,
                          wb_amqp_failure *ret_why)
{
    if (result == WB_REJECT)
        return refused(connection, what, name, ret_why);
    if (result != WB_OK)
        *ret_why = connection->failure;
    return result;
}

/* ---- queues of others ------------------------------------------------------------ */

static int refuse_broken(const wb_transport *transport, const char *name,
                         const wb_amqp_arguments *arguments, wb_amqp_failure *ret_why)
{
    const char *why;
    const wb_amqp_argument *broken =
        wb_amqp_arguments_broken(arguments, !is_shared(transport, name), &why);
    if (!broken || is_audit_queue(transport, name)) /* how much is kept there is its owner's affair */
        return WB_OK;
    return wb_amqp_failure_set(ret_why, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                               "queue \"%s\" has %s = %s: %s; take that argument or policy away, or use "
                               "another queue",
                               name, broken->name, broken->text[0] ? broken->text : "something", why);
}

static void note_found(wb_transport *transport, const char *name, int result, const wb_amqp_found *found)
{
    if ((result == WB_REJECT || found->differs) && !is_audit_queue(transport, name))
        atomic_store(&transport->differs, 1);
}

static void log_incomplete(const wb_transport *transport, const char *name)
{
    transport->host->log(transport->host, WB_LOG_INFO,
                         "not every argument of the queue is known: the broker's answer is cut off",
                         (const wb_field[]){ { "queue", name } }, 1);
}

/* An error or audit queue is others', too: declared with an argument that NServiceBus does not give it, it would keep
 * their endpoints from starting.
 * Declares it, and judges what it has if it was there. Whoever may not declare is told
 * nothing, and gets WB_REJECT with the code. */
static int declare_queue(wb_amqp_connection *connection, const char *name, int *ret_result,
                         wb_amqp_failure *ret_why)
{
    wb_transport *transport = connection->transport;
    int own = !is_shared(transport, name);
    wb_amqp_found found;
    *ret_result = wb_amqp_queue_declare(connection, name, type_of(transport, name), own,
                                        own ? transport->config->dead_letter_exchange : NULL,
                                        &found);
    note_found(transport, name, *ret_result, &found);
    if (*ret_result != WB_OK)
        return WB_OK;
    if (found.incomplete)
        log_incomplete(transport, name);
    return refuse_broken(transport, name, &found.arguments, ret_why);
}

int wb_amqp_judge_declare(wb_amqp_connection *connection, const char *name, wb_amqp_failure *ret_why)
{
    int declared;
    int result = declare_queue(connection, name, &declared, ret_why);
    return result == WB_OK ? wb_amqp_judge_outcome(connection, declared, "queue", name, ret_why) : result;
}

/* A passive declaration does not compare arguments. One that does creates nothing
 * where the queue is there already; whoever may not declare is not told. */
int wb_amqp_judge_arguments(wb_amqp_connection *connection, const char *name, wb_amqp_failure *ret_why)
{
    int declared;
    int result = declare_queue(connection, name, &declared, ret_why);
    if (result != WB_OK)
        return result;
    if (declared != WB_REJECT || connection->channels[WB_AMQP_SCRATCH].code != AMQP_ACCESS_REFUSED)
        result = wb_amqp_judge_outcome(connection, declared, "queue", name, ret_why);
    return result;
}

/* What the interface does not tell is no reason to refuse: limits() says why. */
int wb_amqp_judge_policies(const wb_transport *transport, const char *name, wb_amqp_failure *ret_why)
{
    wb_amqp_managed_queue queue;
    if (!transport->config->management || !wb_amqp_management_ask(transport, name, &queue))
        return WB_OK;
    return refuse_broken(transport, name, &queue.effective, ret_why);
}

/* ---- while it runs ---------------------------------------------------------------- */

/* That it is missing is said by the broker to whoever receives from it or sends to it. */
int wb_amqp_judge_look_at(wb_amqp_connection *connection, const char *queue, int *ret_is_there,
                          wb_amqp_failure *ret_why)
{
    int result = wb_amqp_queue_exists(connection, queue);
    *ret_is_there = result == WB_OK;
    if (result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code == AMQP_NOT_FOUND)
        return WB_OK;
    result = wb_amqp_judge_outcome(connection, result, "queue", queue, ret_why);
    return result == WB_OK ? wb_amqp_judge_arguments(connection, queue, ret_why) : result;
}

static int look_at_address(wb_amqp_connection *connection, const char *address, int *are_there, wb_amqp_failure *ret_why)
{
    int is_there;
    int result = wb_amqp_judge_look_at(connection, wb_amqp_address_queue(address), &is_there, ret_why);
    *are_there &= is_there;
    return result;
}

static int look_at_all(wb_amqp_connection *connection, int *are_there, wb_amqp_failure *ret_why)
{
    const wb_endpoint_info *endpoint = connection->transport->endpoint;
    atomic_store(&connection->transport->differs, 0);
    int result = WB_OK;
    for (size_t i = 0; i < wb_amqp_judge_count_own_queues(endpoint) && result == WB_OK; i++)
        result = look_at_address(connection, wb_amqp_judge_own_queue(endpoint, i), are_there, ret_why);
    if (result == WB_OK && endpoint->error_queue)
        result = look_at_address(connection, endpoint->error_queue, are_there, ret_why);
    for (size_t i = 0; i < wb_amqp_judge_count_error_queues(endpoint) && result == WB_OK; i++)
        result = look_at_address(connection, endpoint->error_queues[i], are_there, ret_why);
    return result;
}

void wb_amqp_judge_doubt(wb_transport *transport)
{
    (void)atomic_fetch_add(&transport->doubts, 1);
}

int wb_amqp_judge_look_again(wb_amqp_connection *connection)
{
    wb_transport *transport = connection->transport;
    const unsigned doubts = atomic_load(&transport->doubts);
    int are_there = 1;
    wb_amqp_failure why = { 0 };
    if (doubts == atomic_load(&transport->settled))
        return WB_OK;
    if (look_at_all(connection, &are_there, &why) != WB_OK)
        return wb_amqp_connection_fail(connection, WB_NOT_CONNECTED, why.cause, "%s", why.text);
    if (are_there)
        atomic_store(&transport->settled, doubts);
    return WB_OK;
}

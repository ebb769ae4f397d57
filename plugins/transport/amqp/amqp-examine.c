/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-examine.h"

#include <stdio.h>

#include "plugins/common/finding.h"
#include "plugins/transport/amqp/amqp-judge.h"

#define REMEDY_SIZE 1024

/* A policy goes at once; an argument stays as long as its queue. */
static void say_remedy(const char *vhost, const char *name, const wb_amqp_managed_queue *queue,
                       const wb_amqp_argument *argument, char remedy[REMEDY_SIZE])
{
    const int is_argument = (size_t)(argument - queue->effective.list) < queue->argument_count;
    if (is_argument)
        (void)snprintf(remedy, REMEDY_SIZE, "delete the queue \"%s\" when it is empty, and run waybill install", name);
    else
        (void)snprintf(remedy, REMEDY_SIZE, "rabbitmqctl clear_policy -p '%s' '%s', or leave that queue out of its pattern",
                       vhost, queue->policy_name);
}

static void examine_length(const char *vhost, const char *name, const char *limit, const wb_amqp_managed_queue *queue,
                           const wb_examination *examination)
{
    char remedy[REMEDY_SIZE];
    const wb_amqp_argument *found = wb_amqp_arguments_find(&queue->effective, limit);
    if (!found)
        return;
    say_remedy(vhost, name, queue, found, remedy);
    wb_common_find(examination, WB_FINDING_WARNING, "queue-length", remedy,
                   "queue \"%s\" has %s = %s: when it is full, whoever sends to it is refused, and waits with what he has", name,
                   limit, found->text);
}

/* Of an input queue verify() refuses it. */
static void examine_age(const char *vhost, const char *name, const wb_amqp_managed_queue *queue,
                        const wb_examination *examination)
{
    char remedy[REMEDY_SIZE];
    const wb_amqp_argument *found = wb_amqp_arguments_find(&queue->effective, "x-message-ttl");
    if (!found)
        return;
    say_remedy(vhost, name, queue, found, remedy);
    wb_common_find(examination, WB_FINDING_WARNING, "failed-messages-expire", remedy,
                   "queue \"%s\" has x-message-ttl = %s (milliseconds): messages that failed are gone after that, looked at "
                   "or not",
                   name, found->text);
}

void wb_amqp_examine_queue(const char *vhost, const char *name, int is_own, const wb_amqp_managed_queue *queue,
                           const wb_examination *examination)
{
    if (!is_own)
        examine_age(vhost, name, queue, examination);
    examine_length(vhost, name, "x-max-length", queue, examination);
    examine_length(vhost, name, "x-max-length-bytes", queue, examination);
}

static void find_unknown(const wb_examination *examination, const char *name, const char *why)
{
    wb_common_find(examination, WB_FINDING_NOTE, "policies-unknown", "management = \"http://HOST:15672\"",
                   "which policies apply to queue \"%s\" is not known: %s", name, why);
}

static void ask(const wb_transport *transport, const char *name, int is_own, const wb_examination *examination)
{
    wb_amqp_managed_queue queue;
    if (!transport->config->management)
        find_unknown(examination, name, "the option management is not set");
    else if (!wb_amqp_management_ask(transport, name, &queue))
        find_unknown(examination, name, queue.problem);
    else
        wb_amqp_examine_queue(transport->config->vhost, name, is_own, &queue, examination);
}

int wb_amqp_examine(wb_transport *transport, const wb_examination *examination, wb_error *error)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    (void)error;
    if (!endpoint->error_queue) /* it only sends */
        return WB_OK;
    for (size_t i = 0; i < wb_amqp_judge_count_own_queues(endpoint); i++)
        ask(transport, wb_amqp_judge_own_queue(endpoint, i), 1, examination);
    if (!transport->config->management) /* said once */
        return WB_OK;
    ask(transport, endpoint->error_queue, 0, examination);
    for (size_t i = 0; WB_HAS(endpoint, wb_endpoint_info, error_queue_count) && i < endpoint->error_queue_count; i++)
        ask(transport, endpoint->error_queues[i], 0, examination);
    return WB_OK;
}

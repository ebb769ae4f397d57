/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "core/config/config_policies.h"

#define EXAMPLE "write types = ( { type = \"NAME\"; immediate_retries = 1; delayed_retries = 0; " \
                "error_queue = \"NAME\"; } );"

enum { TYPE, RETRIES, DELAYED, QUEUE, OPTIONS };

static const wb_option options[OPTIONS] = {
    [TYPE] = { .name = "type",
               .type = WB_OPTION_STRING,
               .flags = WB_OPTION_REQUIRED,
               .offset = offsetof(wb_type_policy, type) },
    [RETRIES] = { .name = "immediate_retries",
                  .type = WB_OPTION_INTEGER,
                  .offset = offsetof(wb_type_policy, immediate_retries),
                  .minimum = 0,
                  .maximum = 1000 },
    [DELAYED] = { .name = "delayed_retries",
                  .type = WB_OPTION_INTEGER,
                  .offset = offsetof(wb_type_policy, delayed_retries),
                  .minimum = 0,
                  .maximum = 1000 },
    [QUEUE] = { .name = "error_queue",
                .type = WB_OPTION_STRING,
                .offset = offsetof(wb_type_policy, error_queue) },
};

static void complain(const wb_option_scope *scope, wb_conf_origin at, const char *what)
{
    wb_problems_add(scope->problems, WB_LOG_ERROR, at, "%san element of \"recoverability.types\" %s; " EXAMPLE,
                    scope->subject, what);
}

static int is_known(const wb_type_policy *policies, size_t count, const char *type)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(policies[i].type, type) == 0)
            return 1;
    return 0;
}

/* @return whether there is an entry. */
static int read_entry(const wb_option_scope *scope, const wb_conf_node *group, const wb_type_policy *before,
                      size_t count, wb_type_policy *ret_policy)
{
    wb_conf_origin origins[OPTIONS];
    if (group->type != WB_CONF_GROUP) {
        complain(scope, group->at, "is not a group");
        return 0;
    }
    memset(ret_policy, 0, sizeof *ret_policy);
    if (wb_options_parse(scope, options, OPTIONS, sizeof *options, group, group->at, ret_policy, origins) != WB_OK ||
        !ret_policy->type)
        return 0;
    if (!origins[RETRIES].is_set)
        ret_policy->immediate_retries = -1;
    if (!origins[DELAYED].is_set)
        ret_policy->delayed_retries = -1;
    if (is_known(before, count, ret_policy->type))
        complain(scope, group->at, "names a type for the second time");
    if (!origins[RETRIES].is_set && !origins[DELAYED].is_set && !origins[QUEUE].is_set)
        complain(scope, group->at, "says nothing of its type");
    return 1;
}

void wb_config_read_policies(const wb_option_scope *scope, const wb_conf_node *node,
                             wb_endpoint_config *endpoint)
{
    if (!node)
        return;
    if (node->type != WB_CONF_LIST) {
        wb_problems_add(scope->problems, WB_LOG_ERROR, node->at, "%s\"recoverability.types\" is not a list; " EXAMPLE,
                        scope->subject);
        return;
    }
    size_t count = 0;
    wb_type_policy *policies = wb_arena_alloc(scope->arena, (node->child_count + 1) * sizeof *policies);
    wb_conf_origin *places = wb_arena_alloc(scope->arena, (node->child_count + 1) * sizeof *places);
    for (size_t i = 0; i < node->child_count; i++) {
        places[count] = node->children[i].at;
        count += (size_t)read_entry(scope, &node->children[i], policies, count, &policies[count]);
    }
    endpoint->recoverability.types = policies;
    endpoint->recoverability.types_at = places;
    endpoint->recoverability.type_count = count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/subscriptions.h"

#include <string.h>
#include <waybill/sys/types.h>

static int is_type(const char *written, const char *type)
{
    char name[WB_TYPE_SIZE];
    size_t size;
    return wb_type_next(&written, name, &size) && strcmp(name, type) == 0;
}

static int is_command(const wb_option_list *commands, const char *type)
{
    for (size_t i = 0; commands && i < commands->count; i++)
        if (is_type(commands->values[i], type))
            return 1;
    return 0;
}

static int is_handled(const wb_handler_set *handlers, const char *written)
{
    for (size_t i = 0; i < handlers->count; i++)
        if (&handlers->entries[i] != handlers->other && is_type(written, handlers->entries[i].type))
            return 1;
    return 0;
}

static void check(const wb_endpoint_config *config, const wb_handler_set *handlers,
                  wb_problems *problems)
{
    const wb_option_list *commands = config->commands;
    for (size_t i = 0; commands && i < commands->count; i++)
        if (!is_handled(handlers, commands->values[i]))
            wb_problems_add(problems, WB_LOG_ERROR, WB_CONFIG_ORIGIN(config, commands),
                            "endpoint \"%s\": \"commands\" names \"%s\", for which there is no handler",
                            config->name, commands->values[i]);
}

void wb_subscriptions_make(wb_arena *arena, const wb_endpoint_config *config,
                           const wb_handler_set *handlers, wb_problems *problems,
                           const char *const **ret_types, size_t *ret_count)
{
    const char **types = wb_arena_alloc(arena, (handlers->count + 1) * sizeof *types);
    size_t count = 0;
    for (size_t i = 0; i < handlers->count; i++)
        if (&handlers->entries[i] != handlers->other && !is_command(config->commands, handlers->types[i]))
            types[count++] = handlers->types[i];
    if (problems)
        check(config, handlers, problems);
    *ret_types = types;
    *ret_count = count;
}

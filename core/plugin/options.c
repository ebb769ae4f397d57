/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "core/plugin/abi.h"
#include "core/plugin/loader.h"

#define SUBJECT_SIZE 640

int wb_plugin_configure(wb_config *config, const wb_endpoint_config *endpoint,
                        const wb_plugin_choice *choice, const wb_plugin *plugin,
                        wb_problems *problems, const void **ret_config)
{
    static const char *const elsewhere[] = { "plugin", NULL };
    char subject[SUBJECT_SIZE];
    wb_option_scope scope = { &config->arena, &config->secrets, problems, subject, elsewhere };
    void *values = wb_arena_alloc(&config->arena, plugin->config_size + 1);

    (void)snprintf(subject, sizeof subject, "endpoint \"%.400s\": %s \"%s\": ", endpoint->name,
                   wb_plugin_kind_name(plugin->kind), plugin->name);
    memset(values, 0, plugin->config_size + 1);
    int result = wb_options_parse(&scope, plugin->options, plugin->option_count,
                                  plugin->option_stride, choice->node, choice->at, values, NULL);
    if (result == WB_OK)
        *ret_config = values;
    return result;
}

wb_conf_origin wb_plugin_place(const wb_plugin_choice *choice, const char *text)
{
    static const char word[] = "option \"";
    const wb_conf_node *group = choice->node;
    if (strncmp(text, word, sizeof word - 1) == 0)
        text += sizeof word - 1;
    const size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    for (size_t i = 0; group && i < group->child_count; i++)
        if (strlen(group->children[i].name) == size && memcmp(group->children[i].name, text, size) == 0)
            return group->children[i].at;
    return choice->at;
}

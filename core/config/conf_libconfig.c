/* SPDX-License-Identifier: Apache-2.0
 *
 * The only file that knows libconfig.
 */
#include "config.h"

#include <libconfig.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/conf_text.h"

typedef struct {
    wb_arena *arena;
    const wb_conf_source *source;
} builder;

static const char *copy(const builder *b, const char *text)
{
    return text ? wb_arena_copy(b->arena, text, strlen(text)) : NULL;
}

static int node_type(const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_GROUP: return WB_CONF_GROUP;
    case CONFIG_TYPE_ARRAY:
    case CONFIG_TYPE_LIST: return WB_CONF_LIST;
    case CONFIG_TYPE_BOOL: return WB_CONF_BOOLEAN;
    case CONFIG_TYPE_FLOAT: return WB_CONF_FLOAT;
    case CONFIG_TYPE_STRING: return WB_CONF_STRING;
    default: return WB_CONF_INTEGER;
    }
}

static void fill_value(const builder *b, const config_setting_t *setting, wb_conf_node *node)
{
    const char *text;
    switch (node->type) {
    case WB_CONF_STRING:
        text = config_setting_get_string(setting);
        node->string = copy(b, text ? text : "");
        break;
    case WB_CONF_BOOLEAN: node->integer = config_setting_get_bool(setting) != 0; break;
    case WB_CONF_INTEGER: node->integer = config_setting_get_int64(setting); break;
    case WB_CONF_FLOAT: node->number = config_setting_get_float(setting); break;
    default: break;
    }
}

/* Recursion is bounded by the nesting limit of conf_text.c. */
static void build(const builder *b, const config_setting_t *setting, wb_conf_node *node)
{
    memset(node, 0, sizeof *node);
    node->name = copy(b, config_setting_name(setting));
    node->type = node_type(setting);
    node->at = wb_conf_source_origin(b->source, setting->line);
    fill_value(b, setting, node);
    if (!config_setting_is_aggregate(setting))
        return;
    int count = config_setting_length(setting);
    node->child_count = count > 0 ? (size_t)count : 0;
    node->children = wb_arena_alloc(b->arena, (node->child_count + 1) * sizeof *node->children);
    for (size_t i = 0; i < node->child_count; i++)
        build(b, config_setting_get_elem(setting, (unsigned)i), &node->children[i]);
}

static void report(const wb_conf_source *source, const config_t *config, wb_problems *problems)
{
    const char *text = config_error_text(config);
    const char *remedy = "";
    if (!text)
        text = "not readable";
    if (strcmp(text, "syntax error") == 0)
        remedy = "; look here and just before for a missing quote (text has them; on and yes are written true), "
                 "a missing bracket or '=', or a comma after the last element of a list";
    else if (strcmp(text, "duplicate setting name") == 0)
        remedy = ": the group has this setting already; remove one of the two";
    wb_problems_add(problems, WB_LOG_ERROR,
                    wb_conf_source_origin(source, (unsigned)config_error_line(config)), "%s%s",
                    text, remedy);
}

static void release_config(void *config)
{
    config_destroy(config);
}

const wb_conf_node *wb_conf_read_value(wb_arena *arena, const char *text, wb_conf_origin at)
{
    static const char before[] = "value = ", after[] = ";";
    const size_t size = strlen(text);
    const wb_conf_source source = { .lines = &at, .line_count = 1 };
    wb_conf_node *value = NULL;
    char *setting = wb_arena_alloc(arena, sizeof before + size + sizeof after);
    config_t config;
    wb_memory_held held;

    memcpy(setting, before, sizeof before - 1);
    memcpy(setting + sizeof before - 1, text, size);
    memcpy(setting + sizeof before - 1 + size, after, sizeof after);
    config_init(&config);
    wb_memory_hold(&held, release_config, &config);
    if (config_read_string(&config, setting) && config_setting_length(config_root_setting(&config)) == 1) {
        value = wb_arena_alloc(arena, sizeof *value);
        build(&(builder){ arena, &source }, config_setting_get_elem(config_root_setting(&config), 0), value);
    }
    wb_memory_let_go(&held);
    config_destroy(&config);
    return value;
}

static void release_source(void *source)
{
    wb_conf_source_free(source);
}

const wb_conf_node *wb_conf_read(wb_arena *arena, const char *path, wb_problems *problems)
{
    wb_conf_source source = { 0 };
    wb_conf_node *root = NULL;
    config_t config;
    wb_memory_held held_source, held_config;

    config_init(&config);
    wb_memory_hold(&held_source, release_source, &source);
    wb_memory_hold(&held_config, release_config, &config);
    if (wb_conf_source_read(&source, arena, path, problems) != WB_OK)
        goto out;
    if (!config_read_string(&config, (const char *)source.text.data)) {
        report(&source, &config, problems);
        goto out;
    }
    root = wb_arena_alloc(arena, sizeof *root);
    build(&(builder){ arena, &source }, config_root_setting(&config), root);
    root->at = (wb_conf_origin){ source.lines[0].file, 0, 1 };
out:
    wb_memory_let_go(&held_config);
    wb_memory_let_go(&held_source);
    config_destroy(&config);
    wb_conf_source_free(&source);
    return root;
}

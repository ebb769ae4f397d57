/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/option.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/config/option_value.h"
#include "core/config/suggest.h"
#include "core/config/units.h"

#define DEFAULT_ARENA_SIZE 1024

/* The options of one group while they are read. */
typedef struct {
    const wb_option_scope *scope;
    const wb_option *options;
    size_t count;
    size_t stride;
    const wb_conf_node *group;
    wb_conf_origin group_at;
} reading;

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [WB_OPTION_STRING] = { "string", sizeof(const char *) },
    [WB_OPTION_INTEGER] = { "integer", sizeof(int64_t) },
    [WB_OPTION_BOOLEAN] = { "boolean", sizeof(int32_t) },
    [WB_OPTION_DURATION] = { "duration", sizeof(int64_t) },
    [WB_OPTION_SIZE] = { "size", sizeof(int64_t) },
    [WB_OPTION_CHOICE] = { "choice", sizeof(int32_t) },
    [WB_OPTION_MAP] = { "map", sizeof(const wb_option_map *) },
    [WB_OPTION_LIST] = { "list", sizeof(const wb_option_list *) },
    [WB_OPTION_PATH] = { "path", sizeof(const char *) },
};

const char *wb_option_type_name(uint32_t type)
{
    return wb_option_field_size(type) ? types[type].name : "unknown";
}

size_t wb_option_field_size(uint32_t type)
{
    return type < sizeof types / sizeof types[0] ? types[type].size : 0;
}

const char *wb_option_format(uint32_t type, int64_t value, char *text, size_t size)
{
    char number[WB_UNIT_TEXT_SIZE];
    if (type == WB_OPTION_DURATION)
        (void)snprintf(text, size, "%s", wb_duration_format(value, number));
    else if (type == WB_OPTION_SIZE)
        (void)snprintf(text, size, "%s", wb_size_format(value, number));
    else
        (void)snprintf(text, size, "%" PRId64, value);
    return text;
}

wb_option wb_option_at(const wb_option *options, size_t stride, size_t index)
{
    wb_option option;
    memset(&option, 0, sizeof option);
    memcpy(&option, (const char *)options + index * stride,
           stride < sizeof option ? stride : sizeof option);
    return option;
}

int wb_option_check_default(const wb_option *option, char *reason, size_t reason_size)
{
    union {
        int64_t number;
        const char *text;
    } field;
    wb_arena arena;
    wb_secrets secrets = { 0 };
    wb_problems problems = { 0 };
    const wb_option_scope scope = { &arena, &secrets, &problems, "", NULL };

    wb_arena_init(&arena, DEFAULT_ARENA_SIZE);
    wb_option_default_parse(&scope, option, (wb_conf_origin){ 0 }, &field);
    const int result = problems.error_count ? WB_FATAL : WB_OK;
    if (result != WB_OK)
        (void)snprintf(reason, reason_size, "%s", problems.items[0].text);
    wb_secrets_wipe(&secrets);
    wb_problems_free(&problems);
    wb_arena_free(&arena);
    return result;
}

static int is_elsewhere(const reading *r, const char *name)
{
    for (const char *const *known = r->scope->elsewhere; known && *known; known++)
        if (strcmp(*known, name) == 0)
            return 1;
    return 0;
}

static int is_known(const reading *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (strcmp(wb_option_at(r->options, r->stride, i).name, name) == 0)
            return 1;
    return is_elsewhere(r, name);
}

static const char *nearest_name(const reading *r, const char *name)
{
    const char *best = NULL;
    for (size_t i = 0; i < r->count; i++)
        wb_suggest(name, wb_option_at(r->options, r->stride, i).name, &best);
    for (const char *const *known = r->scope->elsewhere; known && *known; known++)
        wb_suggest(name, *known, &best);
    return best;
}

static void report_unknown(const reading *r)
{
    for (size_t i = 0; r->group && i < r->group->child_count; i++) {
        const wb_conf_node *child = &r->group->children[i];
        if (is_known(r, child->name))
            continue;
        const char *near = nearest_name(r, child->name);
        wb_problems_add(r->scope->problems, WB_LOG_ERROR, child->at,
                        "%sunknown option \"%s\"%s%s%s", r->scope->subject, child->name,
                        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
}

/* What is refused is not set: the default stays, and nobody is to quote that as a value of the file. */
static void read_option(const reading *r, const wb_option *option, void *target,
                        wb_conf_origin *origin)
{
    void *field = (char *)target + option->offset;
    const wb_conf_node *node = r->group ? wb_conf_child(r->group, option->name) : NULL;
    const size_t errors_before = r->scope->problems->error_count;

    wb_option_default_parse(r->scope, option, r->group_at, field);
    if (node)
        wb_option_value_parse(r->scope, option, node, field);
    else if (option->flags & WB_OPTION_REQUIRED)
        wb_problems_add(r->scope->problems, WB_LOG_ERROR, r->group_at,
                        "%soption \"%s\" is missing: %s", r->scope->subject, option->name,
                        option->summary ? option->summary : "it is required");
    if (origin) {
        *origin = node ? node->at : r->group_at;
        origin->is_set = node && r->scope->problems->error_count == errors_before;
    }
}

int wb_options_parse(const wb_option_scope *scope, const wb_option *options, size_t count,
                     size_t stride, const wb_conf_node *group, wb_conf_origin group_at,
                     void *target, wb_conf_origin *origins)
{
    reading r = { scope, options, count, stride, group, group_at };
    size_t errors_before = scope->problems->error_count;

    if (group && group->type != WB_CONF_GROUP) {
        wb_problems_add(scope->problems, WB_LOG_ERROR, group->at,
                        "%s\"%s\" is not a group: write %s = { name = value; ... };",
                        scope->subject, group->name ? group->name : "element",
                        group->name ? group->name : "element");
        r.group = NULL;
    }
    report_unknown(&r);
    for (size_t i = 0; i < count; i++) {
        wb_option option = wb_option_at(options, stride, i);
        read_option(&r, &option, target, origins ? &origins[i] : NULL);
    }
    return scope->problems->error_count == errors_before ? WB_OK : WB_FATAL;
}

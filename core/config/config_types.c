/* SPDX-License-Identifier: Apache-2.0
 *
 * The list `types` of an endpoint: what its types are derived from.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <waybill/sys/types.h>

#include "core/config/configuration.h"
#include "core/config/config_types.h"

#define EXAMPLE "write types = ( { type = \"NAME\"; bases = [ \"NAME\" ]; } );"

typedef struct {
    wb_arena *arena;
    wb_problems *problems;
    const char *subject;
    const wb_type_bases *before; /* the entries read so far */
    size_t before_count;
} reading;

static void complain(const reading *r, const wb_conf_node *node, const char *what)
{
    char text[80];
    wb_problems_add(r->problems, WB_LOG_ERROR, node->at, "%s%s in \"types\": %s; " EXAMPLE, r->subject,
                    wb_conf_text(node, text, sizeof text), what);
}

/* @return the name without assemblies, or NULL with a problem added. */
static const char *read_name(const reading *r, const wb_conf_node *node)
{
    char name[WB_TYPE_SIZE];
    size_t size;
    const char *position = node->type == WB_CONF_STRING ? node->string : "";
    if (wb_type_next(&position, name, &size) && !*position)
        return wb_arena_copy(r->arena, name, size);
    complain(r, node, "this is not the name of one type, 1 to 255 bytes long");
    return NULL;
}

/* Whether a list of names holds that one. */
static int holds(const char *list, const char *wanted)
{
    char name[WB_TYPE_SIZE];
    size_t size;
    while (wb_type_next(&list, name, &size))
        if (strcmp(name, wanted) == 0)
            return 1;
    return 0;
}

static void add_base(const reading *r, const wb_conf_node *node, char list[WB_TYPE_LIST_MAX + 1])
{
    const char *name = read_name(r, node);
    size_t used = strlen(list);
    if (!name)
        return;
    if (holds(list, name))
        complain(r, node, "this is the type itself, or a base for the second time");
    else if (used + 1 + strlen(name) > WB_TYPE_LIST_MAX)
        complain(r, node, "the names of this type and its bases are longer than 2048 bytes");
    else
        (void)snprintf(list + used, WB_TYPE_LIST_MAX + 1 - used, ";%s", name);
}

static int is_known(const reading *r, const char *type)
{
    for (size_t i = 0; i < r->before_count; i++)
        if (strcmp(r->before[i].type, type) == 0)
            return 1;
    return 0;
}

static void check_options(const reading *r, const wb_conf_node *group)
{
    for (size_t i = 0; i < group->child_count; i++)
        if (strcmp(group->children[i].name, "type") != 0 && strcmp(group->children[i].name, "bases") != 0)
            wb_problems_add(r->problems, WB_LOG_ERROR, group->children[i].at,
                            "%sunknown option \"%.80s\" in \"types\"; " EXAMPLE, r->subject,
                            group->children[i].name);
}

/* @return whether there is an entry. */
static int read_entry(const reading *r, const wb_conf_node *group, wb_type_bases *entry)
{
    char list[WB_TYPE_LIST_MAX + 1];
    const wb_conf_node *type = group->type == WB_CONF_GROUP ? wb_conf_child(group, "type") : NULL;
    const wb_conf_node *bases = type ? wb_conf_child(group, "bases") : NULL;
    if (!bases || bases->type != WB_CONF_LIST || !bases->child_count) {
        wb_problems_add(r->problems, WB_LOG_ERROR, group->at,
                        "%san element of \"types\" has no type or no bases; " EXAMPLE, r->subject);
        return 0;
    }
    check_options(r, group);
    entry->type = read_name(r, type);
    if (!entry->type)
        return 0;
    if (is_known(r, entry->type))
        complain(r, type, "this type stands there twice");
    (void)snprintf(list, sizeof list, "%s", entry->type);
    for (size_t i = 0; i < bases->child_count; i++)
        add_base(r, &bases->children[i], list);
    entry->list = wb_arena_copy(r->arena, list, strlen(list));
    return 1;
}

void wb_config_read_types(wb_arena *arena, wb_problems *problems, const char *subject,
                          const wb_conf_node *node, const wb_type_bases **ret_types, size_t *ret_count)
{
    reading r = { .arena = arena, .problems = problems, .subject = subject };
    *ret_types = NULL;
    *ret_count = 0;
    if (!node)
        return;
    if (node->type != WB_CONF_LIST) {
        complain(&r, node, "this is not a list");
        return;
    }
    wb_type_bases *types = wb_arena_alloc(arena, (node->child_count + 1) * sizeof *types);
    r.before = types;
    for (size_t i = 0; i < node->child_count; i++)
        r.before_count += (size_t)read_entry(&r, &node->children[i], &types[r.before_count]);
    *ret_types = types;
    *ret_count = r.before_count;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/conf_node.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const wb_conf_node *wb_conf_child(const wb_conf_node *group, const char *name)
{
    for (size_t i = 0; i < group->child_count; i++)
        if (group->children[i].name && strcmp(group->children[i].name, name) == 0)
            return &group->children[i];
    return NULL;
}

const char *wb_conf_path(wb_arena *arena, wb_conf_origin at, const char *path)
{
    const char *slash = at.file ? strrchr(at.file, '/') : NULL;
    size_t directory = path[0] == '/' || !slash ? 0 : (size_t)(slash - at.file) + 1;
    size_t size = strlen(path);
    char *joined = wb_arena_alloc(arena, directory + size + 1);
    if (directory)
        memcpy(joined, at.file, directory);
    memcpy(joined + directory, path, size + 1);
    return joined;
}

const char *wb_conf_absolute(wb_arena *arena, wb_conf_origin at, const char *path)
{
    char directory[PATH_MAX];
    const char *place = wb_conf_path(arena, at, path);
    if (*place == '/' || !getcwd(directory, sizeof directory))
        return place;
    const size_t size = strlen(directory) + 1 + strlen(place) + 1;
    char *joined = wb_arena_alloc(arena, size);
    (void)snprintf(joined, size, "%s/%s", directory, place);
    return joined;
}

const char *wb_conf_text(const wb_conf_node *node, char *text, size_t size)
{
    switch (node->type) {
    case WB_CONF_STRING: (void)snprintf(text, size, "\"%.*s\"", (int)size - 3, node->string); break;
    case WB_CONF_INTEGER: (void)snprintf(text, size, "%" PRId64, node->integer); break;
    case WB_CONF_BOOLEAN: (void)snprintf(text, size, node->integer ? "true" : "false"); break;
    case WB_CONF_FLOAT: (void)snprintf(text, size, "%g", node->number); break;
    case WB_CONF_GROUP: (void)snprintf(text, size, "{ ... }"); break;
    default: (void)snprintf(text, size, "( ... )"); break;
    }
    return text;
}

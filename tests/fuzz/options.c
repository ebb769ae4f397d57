/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of options, by a table with one of each type, as plugins have them: values of any type,
 * references, names that are near to others. What is accepted is what was written, and a secret
 * is never told.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "core/config/option.h"
#include "core/config/suggest.h"
#include "core/config/units.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "options";

#define CHILDREN_MAX 6
/* Each text of a secret begins with it, and no words of ours hold it. */
#define MARK "Xq7"

typedef struct {
    const char *string;
    int64_t integer;
    int32_t boolean;
    int64_t duration;
    int64_t size;
    int32_t choice;
    const wb_option_map *map;
    const wb_option_list *list;
    const char *secret;
    const wb_option_list *secrets;
    const wb_option_map *secret_map;
    const char *path;
} values;

static const char *const choices[] = { "plain", "external", "none", NULL };

static const wb_option options[] = {
    { .name = "string", .type = WB_OPTION_STRING, .offset = offsetof(values, string) },
    { .name = "integer", .type = WB_OPTION_INTEGER, .offset = offsetof(values, integer), .minimum = -5, .maximum = 1000 },
    { .name = "boolean", .type = WB_OPTION_BOOLEAN, .offset = offsetof(values, boolean), .default_text = "true" },
    { .name = "duration", .type = WB_OPTION_DURATION, .offset = offsetof(values, duration), .default_text = "20ms",
      .minimum = 1, .maximum = INT64_MAX },
    { .name = "size", .type = WB_OPTION_SIZE, .offset = offsetof(values, size) },
    { .name = "choice", .type = WB_OPTION_CHOICE, .offset = offsetof(values, choice), .default_text = "none",
      .choices = choices },
    { .name = "map", .type = WB_OPTION_MAP, .offset = offsetof(values, map) },
    { .name = "list", .type = WB_OPTION_LIST, .offset = offsetof(values, list) },
    { .name = "secret", .type = WB_OPTION_STRING, .flags = WB_OPTION_SECRET, .offset = offsetof(values, secret) },
    { .name = "secrets", .type = WB_OPTION_LIST, .flags = WB_OPTION_SECRET, .offset = offsetof(values, secrets) },
    { .name = "secret_map", .type = WB_OPTION_MAP, .flags = WB_OPTION_SECRET, .offset = offsetof(values, secret_map) },
    { .name = "path", .type = WB_OPTION_PATH, .offset = offsetof(values, path) },
};
#define OPTIONS (sizeof options / sizeof options[0])

/* ---- a value ------------------------------------------------------------------------------ */

/* No NUL is in a file; and no file is opened but one that is not there. */
static const char *make_text(fuzz_input *input, int is_secret)
{
    size_t size;
    char *text = fuzz_text(input, &size);
    for (size_t i = 0; i < size; i++)
        if (!text[i] || (text[i] == '/' && strncmp(text, "file:", 5) == 0))
            text[i] = '_';
    if (!is_secret)
        return text;
    char *marked = fuzz_alloc(size + sizeof MARK);
    memcpy(marked, MARK, sizeof MARK - 1);
    memcpy(marked + sizeof MARK - 1, text, size + 1);
    return marked;
}

/* As the reader of files makes them: a group's children have names, all different. */
static void make_node(fuzz_input *input, const char *name, int is_secret, int depth, wb_conf_node *node)
{
    const unsigned type = fuzz_byte(input) % (depth ? 4 : 6);
    static const int types[] = { WB_CONF_STRING, WB_CONF_INTEGER, WB_CONF_BOOLEAN, WB_CONF_FLOAT, WB_CONF_LIST, WB_CONF_GROUP };
    static const char *const names[CHILDREN_MAX] = { "a", "b", "c", "d", "e", "f" };
    *node = (wb_conf_node){ .name = name, .type = types[type], .at = { "/nowhere/fuzz.conf", 7, 1 } };
    switch (node->type) {
    case WB_CONF_STRING: node->string = make_text(input, is_secret); break;
    case WB_CONF_BOOLEAN: node->integer = (int64_t)(fuzz_byte(input) & 1); break;
    case WB_CONF_LIST:
    case WB_CONF_GROUP:
        node->child_count = fuzz_byte(input) % (CHILDREN_MAX + 1);
        node->children = fuzz_alloc((node->child_count + 1) * sizeof *node->children);
        for (size_t i = 0; i < node->child_count; i++)
            make_node(input, node->type == WB_CONF_GROUP ? names[i] : NULL, is_secret, depth + 1, &node->children[i]);
        break;
    default: node->integer = (int64_t)fuzz_large(input);
    }
}

/* ---- what became of it --------------------------------------------------------------------- */

static void check_secrets(const wb_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        FUZZ_CHECK(strstr(problems->items[i].text, MARK) == NULL);
}

static void check_map(const wb_option_map *map)
{
    for (size_t i = 0; map && i < map->count; i++) {
        FUZZ_CHECK(map->names[i][0] && map->values[i]);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(map->names[i], map->names[k]) != 0);
    }
}

static void check_list(const wb_option_list *list)
{
    for (size_t i = 0; list && i < list->count; i++)
        FUZZ_CHECK(list->values[i] != NULL);
}

/* Also where something is refused: then they hold their defaults. */
static void check_values(const values *v)
{
    FUZZ_CHECK((v->integer >= -5 && v->integer <= 1000) && (v->boolean == 0 || v->boolean == 1));
    FUZZ_CHECK(v->duration >= 1 && v->size >= 0 && v->choice >= 0 && v->choice <= 2);
    check_map(v->map);
    check_map(v->secret_map);
    check_list(v->list);
    check_list(v->secrets);
}

static int is_literal(const char *text)
{
    return strncmp(text, "env:", 4) != 0 && strncmp(text, "file:", 5) != 0;
}

static void check_text(const wb_conf_node *node, const values *v)
{
    if (node->type != WB_CONF_STRING)
        return;
    if (strcmp(node->name, "string") == 0 && is_literal(node->string))
        FUZZ_CHECK(strcmp(v->string, node->string) == 0);
    if (strcmp(node->name, "choice") == 0)
        FUZZ_CHECK(strcmp(choices[v->choice], node->string) == 0);
    if (strcmp(node->name, "secret") == 0 && is_literal(node->string))
        FUZZ_CHECK(strcmp(v->secret, node->string) == 0);
}

/* The directory of the file, unless it is handed over as it is: then it has no directory in front. */
static void check_path(const wb_conf_node *node, const values *v)
{
    if (node->type != WB_CONF_STRING || strcmp(node->name, "path") != 0 || !is_literal(node->string) ||
        strcmp(v->path, node->string) == 0)
        return;
    FUZZ_CHECK(strncmp(v->path, "/nowhere/", 9) == 0 && strcmp(v->path + 9, node->string) == 0);
    FUZZ_CHECK(node->string[0] != '/' && node->string[0] != ':');
}

static void try_names(const char *one, const char *other)
{
    const size_t distance = wb_edit_distance(one, other);
    FUZZ_CHECK(distance == wb_edit_distance(other, one));
    FUZZ_CHECK((distance == 0) == (strcmp(one, other) == 0) || strlen(one) > 64);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    wb_arena arena;
    wb_secrets secrets = { 0 };
    wb_problems problems = { 0 };
    values *v = fuzz_alloc(sizeof *v);
    const wb_option_scope scope = { &arena, &secrets, &problems, "fuzz: ", NULL };
    const unsigned which = fuzz_byte(&input) % (OPTIONS + 1);
    const char *name = which < OPTIONS ? options[which].name : make_text(&input, 0);
    wb_conf_node child, group = { .type = WB_CONF_GROUP, .children = &child, .child_count = 1 };
    const int is_secret = which < OPTIONS && (options[which].flags & WB_OPTION_SECRET);
    make_node(&input, name, is_secret, 0, &child);
    wb_arena_init(&arena, 4096);
    const int result = wb_options_parse(&scope, options, OPTIONS, sizeof *options, &group, child.at, v, NULL);
    FUZZ_CHECK((result == WB_OK) == (problems.error_count == 0));
    if (is_secret)
        check_secrets(&problems);
    check_values(v);
    if (result == WB_OK) {
        check_text(&child, v);
        check_path(&child, v);
    }
    try_names(name, options[size % OPTIONS].name);
    wb_secrets_wipe(&secrets);
    wb_problems_free(&problems);
    wb_arena_free(&arena);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/option_value.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config/suggest.h"
#include "core/config/units.h"

#define VALUE_TEXT_SIZE 128
#define REASON_SIZE 4400
#define CHOICES_TEXT_SIZE 512

typedef struct {
    const wb_option_scope *scope;
    const wb_option *option;
    const wb_conf_node *node;
    int is_default;
    void *field;
} parsing;

/* Lists and maps come with their elements: their problems name the element's line. */
static void complain(const parsing *p, const wb_conf_node *node, const char *what)
{
    char value[VALUE_TEXT_SIZE] = "(hidden)";
    if (!(p->option->flags & WB_OPTION_SECRET))
        wb_conf_text(node, value, sizeof value);
    wb_problems_add(p->scope->problems, WB_LOG_ERROR, node->at, "%soption \"%s\" = %s %s",
                    p->scope->subject, p->option->name, value, what);
}

static const char *resolve(const parsing *p, const wb_conf_node *node, const char *text)
{
    char reason[REASON_SIZE];
    const char *value;

    if (p->is_default && wb_secret_is_reference(text)) {
        complain(p, node, "refers to the environment or to a file, which no default can");
        return NULL;
    }
    if (!wb_secret_is_reference(text)) {
        if ((p->option->flags & (WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET)) == WB_OPTION_SECRET &&
            !p->is_default)
            wb_problems_add(p->scope->problems, WB_LOG_WARNING, node->at,
                            "%soption \"%s\" holds a secret in clear text; use \"env:NAME\" or "
                            "\"file:PATH\"",
                            p->scope->subject, p->option->name);
        char *copy = wb_arena_copy(p->scope->arena, text, strlen(text));
        if (p->option->flags & WB_OPTION_SECRET)
            wb_secrets_remember(p->scope->secrets, copy);
        return copy;
    }
    value = wb_secret_resolve(p->scope->secrets, p->scope->arena, node->at, text, reason,
                              sizeof reason);
    if (!value)
        wb_problems_add(p->scope->problems, WB_LOG_ERROR, node->at, "%soption \"%s\": %s",
                        p->scope->subject, p->option->name, reason);
    return value;
}

static void parse_string(const parsing *p)
{
    if (p->node->type != WB_CONF_STRING) {
        complain(p, p->node, "is not a string (write it in double quotes)");
        return;
    }
    const char *value = resolve(p, p->node, p->node->string);
    if (value)
        *(const char **)p->field = value;
}

/* "file:data.db?mode=rw", "https://..." */
static int has_scheme(const char *text)
{
    const size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-");
    return size > 1 && text[size] == ':' && text[0] >= 'a';
}

static int is_path(const parsing *p, const char *text)
{
    for (const char *const *word = p->option->choices; word && *word; word++)
        if (strcmp(text, *word) == 0)
            return 0;
    return *text && *text != ':' && !has_scheme(text);
}

/* Paths started at the directory of the process once: whoever relied on that must not find an empty database. */
static void complain_of_old_place(const parsing *p, const char *written, const char *path)
{
    char directory[PATH_MAX], what[3 * PATH_MAX];
    if (p->is_default || *written == '/' || access(path, F_OK) == 0 || access(written, F_OK) != 0 ||
        !getcwd(directory, sizeof directory))
        return;
    (void)snprintf(what, sizeof what,
                   "starts at the directory of the configuration file: there is no \"%s\", but there is \"%s/%s\"; "
                   "write that whole path, or move the file",
                   path, directory, written);
    complain(p, p->node, what);
}

static void parse_path(const parsing *p)
{
    const char **field = p->field;
    parse_string(p);
    if (!*field || !is_path(p, *field))
        return;
    const char *written = *field;
    *field = wb_conf_absolute(p->scope->arena, p->node->at, written);
    complain_of_old_place(p, written, *field);
}

static void store_number(const parsing *p, int64_t value)
{
    const wb_option *option = p->option;
    if ((option->minimum || option->maximum) &&
        (value < option->minimum || value > option->maximum)) {
        char low[WB_UNIT_TEXT_SIZE], high[WB_UNIT_TEXT_SIZE], what[VALUE_TEXT_SIZE];
        wb_option_format(option->type, option->minimum, low, sizeof low);
        wb_option_format(option->type, option->maximum, high, sizeof high);
        if (option->maximum == INT64_MAX)
            (void)snprintf(what, sizeof what, "is out of range (at least %s)", low);
        else
            (void)snprintf(what, sizeof what, "is out of range (%s to %s)", low, high);
        complain(p, p->node, what);
        return;
    }
    *(int64_t *)p->field = value;
}

/* Decimal digits, perhaps with a sign, and nothing else. */
static int read_integer(const char *text, int64_t *ret_value)
{
    char *end;
    errno = 0;
    *ret_value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && (*text == '-' || (*text >= '0' && *text <= '9'));
}

static void parse_integer(const parsing *p)
{
    int64_t value;
    if (p->is_default && read_integer(p->node->string, &value))
        store_number(p, value);
    else if (p->is_default)
        complain(p, p->node, "is not an integer");
    else if (p->node->type == WB_CONF_INTEGER)
        store_number(p, p->node->integer);
    else if (p->node->type == WB_CONF_STRING)
        complain(p, p->node, "is not an integer (write a whole number without quotes)");
    else
        complain(p, p->node, "is not an integer");
}

static void parse_with_unit(const parsing *p)
{
    int is_duration = p->option->type == WB_OPTION_DURATION;
    int64_t value = 0;
    int result = WB_UNIT_MALFORMED;

    if (p->node->type == WB_CONF_STRING)
        result = is_duration ? wb_duration_parse(p->node->string, &value)
                             : wb_size_parse(p->node->string, &value);
    else if (p->node->type == WB_CONF_INTEGER && p->node->integer == 0)
        result = WB_UNIT_OK;
    if (result == WB_UNIT_OK)
        store_number(p, value);
    else if (result == WB_UNIT_OVERFLOW)
        complain(p, p->node, "is too large");
    else if (is_duration)
        complain(p, p->node, "is not a duration (use e.g. \"20ms\", \"10s\", \"7d\")");
    else
        complain(p, p->node, "is not a size (use e.g. \"512KiB\", \"16MiB\", \"1GiB\")");
}

static void parse_boolean(const parsing *p)
{
    if (p->is_default && strcmp(p->node->string, "true") == 0)
        *(int32_t *)p->field = 1;
    else if (p->is_default && strcmp(p->node->string, "false") == 0)
        *(int32_t *)p->field = 0;
    else if (p->node->type == WB_CONF_BOOLEAN)
        *(int32_t *)p->field = (int32_t)p->node->integer;
    else
        complain(p, p->node, "is not a boolean (use true or false, without quotes)");
}

static void complain_choice(const parsing *p)
{
    char what[CHOICES_TEXT_SIZE] = "is none of: ";
    const char *near = NULL;
    size_t used = strlen(what);

    for (const char *const *choice = p->option->choices; *choice; choice++) {
        if (used < sizeof what)
            used += (size_t)snprintf(what + used, sizeof what - used, "%s\"%s\"",
                                     choice == p->option->choices ? "" : ", ", *choice);
        if (p->node->type == WB_CONF_STRING)
            wb_suggest(p->node->string, *choice, &near);
    }
    if (near && used < sizeof what)
        (void)snprintf(what + used, sizeof what - used, "; did you mean \"%s\"?", near);
    complain(p, p->node, what);
}

static void parse_choice(const parsing *p)
{
    if (p->node->type == WB_CONF_STRING) {
        for (int32_t i = 0; p->option->choices[i]; i++) {
            if (strcmp(p->option->choices[i], p->node->string) == 0) {
                *(int32_t *)p->field = i;
                return;
            }
        }
    }
    complain_choice(p);
}

static void parse_list(const parsing *p)
{
    const wb_conf_node *node = p->node;
    if (node->type != WB_CONF_LIST) {
        complain(p, node, "is not a list (use e.g. [\"first\", \"second\"])");
        return;
    }
    wb_option_list *list = wb_arena_alloc(p->scope->arena, sizeof *list);
    const char **values =
        wb_arena_alloc(p->scope->arena, (node->child_count + 1) * sizeof *values);
    list->count = 0;
    list->values = values;
    for (size_t i = 0; i < node->child_count; i++) {
        const wb_conf_node *child = &node->children[i];
        if (child->type != WB_CONF_STRING) {
            complain(p, child, "is not a string (write it in double quotes)");
            continue;
        }
        const char *value = resolve(p, child, child->string);
        if (value)
            values[list->count++] = value;
    }
    *(const wb_option_list **)p->field = list;
}

/* An element of a map: `name = "value"` in a group, "name=value" in a list (the parser
 * takes no dots in names, and client libraries have many). */
static int map_element(const parsing *p, const wb_conf_node *child, const char **ret_name,
                       const char **ret_value)
{
    const char *text = child->string;
    if (child->type != WB_CONF_STRING) {
        complain(p, child, "is not a string (write it in double quotes)");
        return 0;
    }
    *ret_name = child->name;
    if (!child->name) {
        const char *equals = strchr(text, '=');
        if (!equals || equals == text) {
            complain(p, child, "is not of the form \"name=value\"");
            return 0;
        }
        *ret_name = wb_arena_copy(p->scope->arena, text, (size_t)(equals - text));
        text = equals + 1;
    }
    *ret_value = resolve(p, child, text);
    return *ret_value != NULL;
}

static int is_among(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static void parse_map(const parsing *p)
{
    const wb_conf_node *node = p->node;
    if (node->type != WB_CONF_GROUP && node->type != WB_CONF_LIST) {
        complain(p, node, "is not a group (use { name = \"value\"; } or [\"name=value\"])");
        return;
    }
    size_t size = (node->child_count + 1) * sizeof(const char *);
    wb_option_map *map = wb_arena_alloc(p->scope->arena, sizeof *map);
    const char **names = wb_arena_alloc(p->scope->arena, size);
    const char **values = wb_arena_alloc(p->scope->arena, size);
    *map = (wb_option_map){ 0, names, values };
    for (size_t i = 0; i < node->child_count; i++) {
        if (!map_element(p, &node->children[i], &names[map->count], &values[map->count]))
            continue;
        if (is_among(names, map->count, names[map->count]))
            complain(p, &node->children[i], "gives a name a second time");
        else
            map->count++;
    }
    *(const wb_option_map **)p->field = map;
}

static void parse(const parsing *p)
{
    switch (p->option->type) {
    case WB_OPTION_STRING: parse_string(p); break;
    case WB_OPTION_INTEGER: parse_integer(p); break;
    case WB_OPTION_BOOLEAN: parse_boolean(p); break;
    case WB_OPTION_CHOICE: parse_choice(p); break;
    case WB_OPTION_LIST: parse_list(p); break;
    case WB_OPTION_MAP: parse_map(p); break;
    case WB_OPTION_PATH: parse_path(p); break;
    default: parse_with_unit(p); break;
    }
}

void wb_option_value_parse(const wb_option_scope *scope, const wb_option *option,
                           const wb_conf_node *node, void *field)
{
    parse(&(parsing){ scope, option, node, 0, field });
}

void wb_option_default_parse(const wb_option_scope *scope, const wb_option *option, wb_conf_origin at,
                             void *field)
{
    wb_conf_node single = { .name = option->name, .type = WB_CONF_STRING, .at = at };
    parsing p = { scope, option, &single, 1, field };

    memset(field, 0, wb_option_field_size(option->type));
    if (!option->default_text)
        return;
    single.string = option->default_text;
    if (option->type == WB_OPTION_LIST || option->type == WB_OPTION_MAP)
        p.node = wb_conf_read_value(scope->arena, option->default_text, at);
    if (!p.node)
        complain(&p, &single, option->type == WB_OPTION_LIST ? "cannot be read (use e.g. [\"first\", \"second\"])"
                                                             : "cannot be read (use e.g. { name = \"value\"; })");
    else
        parse(&p);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/json_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/plugin.h>

#include "core/config/suggest.h"

typedef struct {
    cli_json_line *line;
    char *problem;
} reading;

static int refuse(const reading *r, const char *format, ...) WB_PRINTF(2, 3);
static int refuse(const reading *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(r->problem, CLI_PROBLEM_SIZE, format, arguments);
    va_end(arguments);
    return -1;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = { "an object", "an array", "a string", "a number", "a number",
                                         "true", "false", "null" };
    return names[json_typeof(value)];
}

/* ---- fields ------------------------------------------------------------------------------ */

static int take_text(const reading *r, const char *field, const json_t *value, const char **ret_text, size_t *ret_size)
{
    if (!json_is_string(value))
        return refuse(r, "field \"%s\" is %s: write a string, or leave it out", field, type_name(value));
    if (!json_string_length(value))
        return refuse(r, "field \"%s\" is empty: leave it out", field);
    *ret_text = json_string_value(value);
    *ret_size = json_string_length(value);
    return 0;
}

static int take_id(const reading *r, const json_t *value)
{
    return take_text(r, "id", value, &r->line->outgoing.id, &r->line->outgoing.id_size);
}

static int take_key(const reading *r, const json_t *value)
{
    return take_text(r, "key", value, &r->line->outgoing.key, &r->line->outgoing.key_size);
}

static int take_body(const reading *r, const json_t *value)
{
    wb_outgoing *outgoing = &r->line->outgoing;
    if (json_is_string(value)) {
        outgoing->body = json_string_value(value);
        outgoing->body_size = json_string_length(value);
        return 0;
    }
    r->line->body = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!r->line->body)
        return refuse(r, "field \"body\" cannot be written as JSON");
    outgoing->body = r->line->body;
    outgoing->body_size = strlen(r->line->body);
    return 0;
}

static int take_header(const reading *r, const char *name, const json_t *value)
{
    wb_outgoing *outgoing = &r->line->outgoing;
    if (!*name)
        return refuse(r, "field \"headers\" has a header without a name");
    if (!json_is_string(value))
        return refuse(r, "field \"headers.%.200s\" is %s: a header's value is a string", name, type_name(value));
    if (outgoing->header_count == CLI_HEADERS_MAX)
        return refuse(r, "field \"headers\" has more than %d headers; \"%.200s\" is one too many", CLI_HEADERS_MAX, name);
    r->line->headers[outgoing->header_count++] =
        (wb_header){ name, json_string_value(value), strlen(name), json_string_length(value) };
    return 0;
}

static int take_headers(const reading *r, const json_t *value)
{
    const char *name;
    json_t *one;
    if (!json_is_object(value))
        return refuse(r, "field \"headers\" is %s: write {\"NAME\": \"VALUE\", ..}", type_name(value));
    json_object_foreach((json_t *)(uintptr_t)value, name, one)
        if (take_header(r, name, one) != 0)
            return -1;
    return 0;
}

static const struct {
    const char *name;
    int (*take)(const reading *r, const json_t *value);
} fields[] = { { "id", take_id }, { "key", take_key }, { "body", take_body }, { "headers", take_headers } };
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static int refuse_unknown(const reading *r, const char *name)
{
    const char *near = NULL;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        wb_suggest(name, fields[i].name, &near);
    return refuse(r, "field \"%.200s\" is unknown%s%s%s; there are id, key, body and headers", name,
                  near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static int take_field(const reading *r, const char *name, const json_t *value)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return fields[i].take(r, value);
    return refuse_unknown(r, name);
}

static int take_fields(const reading *r)
{
    const char *name;
    json_t *value;
    json_object_foreach(r->line->message, name, value)
        if (take_field(r, name, value) != 0)
            return -1;
    return 0;
}

/* ---- a line ------------------------------------------------------------------------------ */

int cli_json_line_read(const char *line, size_t size, cli_json_line *ret_line, char problem[CLI_PROBLEM_SIZE])
{
    const reading r = { ret_line, problem };
    json_error_t error;
    memset(ret_line, 0, sizeof *ret_line);
    ret_line->outgoing.headers = ret_line->headers;
    ret_line->message = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
    int result = json_is_object(ret_line->message) ? take_fields(&r)
                 : ret_line->message ? refuse(&r, "not a JSON object: it is %s", type_name(ret_line->message))
                                     : refuse(&r, "not a JSON object: %s", error.text);
    if (result != 0)
        cli_json_line_free(ret_line);
    return result;
}

void cli_json_line_free(cli_json_line *line)
{
    json_decref(line->message);
    free(line->body);
    memset(line, 0, sizeof *line);
}

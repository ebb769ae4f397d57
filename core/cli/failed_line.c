/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/failed_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/base64.h"
#include "core/base/clock.h"
#include "core/cli/failed.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"

/* ---- writing ------------------------------------------------------------------------------ */

static json_t *make_bytes(const void *bytes, size_t size)
{
    wb_buffer text = { 0 };
    const char *given = size ? bytes : "";
    json_t *string = memchr(given, '\0', size) ? NULL : json_stringn(given, size);
    if (string)
        return string;
    wb_base64_encode(bytes, size, &text);
    json_t *object = json_object();
    json_object_set_new(object, "base64", json_stringn((const char *)text.data, text.size));
    wb_buffer_free(&text);
    return object;
}

static json_t *make_headers(const wb_operation *operation)
{
    json_t *array = json_array();
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        json_t *pair = json_array();
        json_array_append_new(pair, make_bytes(header->name, header->name_size));
        json_array_append_new(pair, make_bytes(header->value, header->value_size));
        json_array_append_new(array, pair);
    }
    return array;
}

json_t *cli_failed_line_make(const wb_failed *failed, const wb_failed_record *record)
{
    char time[WB_TIMESTAMP_SIZE];
    json_t *object = json_object();
    wb_clock_format_wire(failed->failed_at, time);
    json_object_set_new(object, "failure", make_bytes(failed->key, failed->key_size));
    json_object_set_new(object, "status", json_string(cli_failed_status_name(failed->status)));
    json_object_set_new(object, "attempts", json_integer(failed->attempts));
    json_object_set_new(object, "failed_at", json_string(time));
    json_object_set_new(object, "id", make_bytes(record->id.value, record->id.size));
    if (record->operation->key)
        json_object_set_new(object, "key", make_bytes(record->operation->key, record->operation->key_size));
    json_object_set_new(object, "headers", make_headers(record->operation));
    json_object_set_new(object, "body", make_bytes(record->operation->body, record->operation->body_size));
    return object;
}

/* ---- reading ------------------------------------------------------------------------------ */

typedef struct reading {
    cli_failed_line *line;
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

static int take_bytes(const reading *r, const char *field, const json_t *value, const char **ret_bytes, size_t *ret_size)
{
    wb_buffer bytes = { 0 };
    const json_t *coded = json_is_object(value) && json_object_size(value) == 1 ? json_object_get(value, "base64") : NULL;
    *ret_bytes = json_string_value(value);
    *ret_size = json_string_length(value);
    if (*ret_bytes)
        return 0;
    const int result = coded && json_is_string(coded)
                           ? wb_base64_decode(json_string_value(coded), json_string_length(coded), &bytes)
                           : -1;
    if (result == 0)
        *ret_bytes = wb_arena_copy(&r->line->arena, bytes.size ? bytes.data : (const void *)"", bytes.size);
    *ret_size = bytes.size;
    wb_buffer_free(&bytes);
    return result == 0 ? 0 : refuse(r, "field \"%s\" is no text, and no {\"base64\": \"TEXT\"}", field);
}

static int take_headers(const reading *r, const json_t *value)
{
    const size_t count = json_array_size(value);
    wb_header *headers = wb_arena_alloc(&r->line->arena, (count + 1) * sizeof *headers);
    if (!json_is_array(value))
        return refuse(r, "field \"headers\" is no array of [\"NAME\", \"VALUE\"]");
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(value, i);
        wb_header *h = &headers[i];
        memset(h, 0, sizeof *h);
        if (json_array_size(pair) != 2 || take_bytes(r, "headers", json_array_get(pair, 0), &h->name, &h->name_size) != 0 ||
            take_bytes(r, "headers", json_array_get(pair, 1), &h->value, &h->value_size) != 0 || !h->name_size)
            return refuse(r, "field \"headers\" is no array of [\"NAME\", \"VALUE\"]");
    }
    r->line->message.headers = headers;
    r->line->message.header_count = count;
    return 0;
}

static int take_time(const reading *r, const json_t *value)
{
    const char *text = json_string_value(value);
    return text && wb_clock_parse_wire(text, &r->line->failed_at) && r->line->failed_at > 0
               ? 0
               : refuse(r, "field \"failed_at\" is no time like 2026-12-31 08:00:00:000000 Z");
}

static int take_status(const reading *r, const json_t *value)
{
    r->line->status = json_is_string(value) ? cli_failed_status(json_string_value(value)) : -1;
    return r->line->status > 0 ? 0 : refuse(r, "field \"status\" is not failed, retrying, resolved or archived");
}

static int take_field(const reading *r, const char *name, const json_t *value)
{
    wb_message *m = &r->line->message;
    const char *body;
    if (strcmp(name, "id") == 0)
        return take_bytes(r, name, value, &m->id, &m->id_size);
    if (strcmp(name, "key") == 0)
        return take_bytes(r, name, value, &m->key, &m->key_size);
    if (strcmp(name, "body") == 0) {
        const int result = take_bytes(r, name, value, &body, &m->body_size);
        m->body = body;
        return result;
    }
    if (strcmp(name, "headers") == 0)
        return take_headers(r, value);
    if (strcmp(name, "failed_at") == 0)
        return take_time(r, value);
    if (strcmp(name, "status") == 0)
        return take_status(r, value);
    return strcmp(name, "failure") == 0 || strcmp(name, "attempts") == 0 ? 0 : refuse(r, "field \"%.200s\" is unknown", name);
}

static int take_fields(const reading *r)
{
    const char *name;
    json_t *value;
    const wb_message *m = &r->line->message;
    json_object_foreach(r->line->line, name, value)
        if (take_field(r, name, value) != 0)
            return -1;
    if (!m->id_size || m->id_size > WB_ID_MAX)
        return refuse(r, "field \"id\" is not 1 to %d bytes", WB_ID_MAX);
    if (!m->body)
        return refuse(r, "field \"body\" is missing");
    const wb_header *queue = WB_HEADERS_FIND(m->headers, m->header_count, WB_HEADER_FAILED_QUEUE);
    return queue && queue->value_size ? 0 : refuse(r, "it has no header " WB_HEADER_FAILED_QUEUE ": nobody knows where it failed");
}

int cli_failed_line_read(const char *text, size_t size, cli_failed_line *ret_line, char problem[CLI_PROBLEM_SIZE])
{
    const reading r = { ret_line, problem };
    json_error_t error;
    *ret_line = (cli_failed_line){ .message = { .struct_size = sizeof(wb_message) }, .status = WB_FAILED_WAITS };
    wb_arena_init(&ret_line->arena, 4096);
    ret_line->line = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const int result = json_is_object(ret_line->line) ? take_fields(&r)
                       : ret_line->line               ? refuse(&r, "not a JSON object")
                                                      : refuse(&r, "not a JSON object: %s", error.text);
    if (result != 0)
        cli_failed_line_free(ret_line);
    return result;
}

void cli_failed_line_free(cli_failed_line *line)
{
    json_decref(line->line);
    line->line = NULL;
    wb_arena_free(&line->arena);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/log_line.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/printable.h"

/* Behind the last value of an object. */
#define JSON_END "}}"

static void put(wb_log_line *line, const char *text, size_t size)
{
    size_t room = line->limit - line->used;
    if (size > room)
        size = room;
    memcpy(line->text + line->used, text, size);
    line->used += size;
}

static void put_text(wb_log_line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* A line is cut in front of a character, not within. */
static void put_piece(wb_log_line *line, const char *piece)
{
    if (strlen(piece) > line->limit - line->used)
        line->limit = line->used;
    put_text(line, piece);
}

/* ---- values ------------------------------------------------------------------------------ */

static int is_plain(const char *value)
{
    if (!*value)
        return 0;
    for (const unsigned char *c = (const unsigned char *)value; *c; c++)
        if (*c <= ' ' || *c == '"' || *c == '=' || *c == '\\' || *c >= 0x7f)
            return 0;
    return 1;
}

/* The character of a value that stands at `at`, as it stands between quotes. @return the bytes of it; 0: there are none. */
typedef size_t next_piece(const char *at, size_t left, char ret_piece[1 + WB_PRINTABLE_SIZE]);

static size_t next_of_text(const char *at, size_t left, char ret_piece[1 + WB_PRINTABLE_SIZE])
{
    char *piece = ret_piece;
    if (left && (*at == '"' || *at == '\\'))
        *piece++ = '\\';
    return wb_printable_next(at, left, piece);
}

/* What is shown as it is stays so. */
static size_t next_of_json(const char *at, size_t left, char ret_piece[1 + WB_PRINTABLE_SIZE])
{
    uint32_t code = 0xfffd;
    const size_t step = next_of_text(at, left, ret_piece);
    if (step && strncmp(ret_piece, at, step) != 0 && *at != '"' && *at != '\\') {
        (void)wb_utf8_size((const unsigned char *)at, left, &code);
        (void)snprintf(ret_piece, 1 + WB_PRINTABLE_SIZE, "\\u%04x", (unsigned)code & 0xffff);
    }
    return step;
}

/* One that is cut has its second quote all the same: what stands behind it is not in it. */
static void put_quoted(wb_log_line *line, const char *value, next_piece *next)
{
    char piece[1 + WB_PRINTABLE_SIZE];
    size_t left = strlen(value), step;
    if (line->limit - line->used < 2)
        line->limit = line->used;
    if (line->limit == line->used)
        return;
    put(line, "\"", 1);
    line->limit--;
    for (; (step = next(value, left, piece)) != 0; value += step, left -= step)
        put_piece(line, piece);
    line->limit++;
    put(line, "\"", 1);
}

/* ---- text -------------------------------------------------------------------------------- */

static void put_text_field(wb_log_line *line, const char *name, const char *value)
{
    put(line, " ", 1);
    put_text(line, name);
    put(line, "=", 1);
    if (is_plain(value))
        put_text(line, value);
    else
        put_quoted(line, value, next_of_text);
}

/* ---- JSON -------------------------------------------------------------------------------- */

/* One that has no room is left out, and all behind it. */
static void put_member(wb_log_line *line, const char *name, const char *value)
{
    const size_t start = line->used;
    if (line->text[start - 1] != '{')
        put(line, ",", 1);
    put_quoted(line, name, next_of_json);
    put(line, ":", 1);
    if (line->limit - line->used < 2)
        line->used = line->limit = start;
    else
        put_quoted(line, value, next_of_json);
}

/* ---- a line ------------------------------------------------------------------------------ */

static void begin(wb_log_line *line, int format)
{
    line->used = 0;
    line->limit = sizeof line->text - 1; /* for the line break */
    if (format == WB_LOG_JSON)
        line->limit -= sizeof JSON_END - 1;
    line->format = format;
}

void wb_log_line_begin(wb_log_line *line, int format, int64_t wall)
{
    char now[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(wall, now);
    begin(line, format);
    if (format == WB_LOG_JSON)
        put_text(line, "{\"time\":\"");
    put_text(line, now);
    if (format == WB_LOG_JSON)
        put_text(line, "\"");
}

void wb_log_line_begin_rest(wb_log_line *line, int format)
{
    begin(line, format);
    line->limit -= WB_LOG_LINE_SPARE;
}

int wb_log_line_format_of(const char *rest)
{
    return *rest == ',' ? WB_LOG_JSON : WB_LOG_TEXT;
}

void wb_log_line_put_rest(wb_log_line *line, const char *rest, size_t size)
{
    put(line, rest, size);
}

void wb_log_line_put_field(wb_log_line *line, const char *name, const char *value)
{
    if (line->format == WB_LOG_JSON)
        put_member(line, name, value);
    else
        put_text_field(line, name, value);
}

static int is_endpoint(const wb_field *field)
{
    return strcmp(field->name, "endpoint") == 0;
}

static void put_text_head(wb_log_line *line, const char *level, const char *text)
{
    put_text_field(line, "level", level);
    put_text_field(line, "msg", text);
}

/* However long the text is, its end and the beginning of the fields are there. */
static void put_json_head(wb_log_line *line, const char *level, const char *text, const wb_field *fields, size_t count)
{
    static const char behind[] = ",\"fields\":{";
    const size_t limit = line->limit;
    line->limit -= sizeof behind - 1;
    put_text(line, ","); /* what begins with it is JSON */
    put_text(line, "\"level\":\"");
    put_text(line, level);
    put_text(line, "\"");
    for (size_t i = 0; i < count; i++)
        if (fields[i].value && is_endpoint(&fields[i]))
            put_member(line, "endpoint", fields[i].value);
    put_member(line, "text", text);
    line->limit = limit;
    put_text(line, behind);
}

void wb_log_line_describe(wb_log_line *line, int level, const char *text, const wb_field *fields, size_t count,
                          int (*is_left_out)(const char *name))
{
    static const char *const levels[] = { "error", "warning", "info", "debug" };
    const int is_json = line->format == WB_LOG_JSON;
    if (is_json)
        put_json_head(line, levels[level & 3], text, fields, count);
    else
        put_text_head(line, levels[level & 3], text);
    for (size_t i = 0; i < count; i++)
        if (fields[i].value && !(is_json && is_endpoint(&fields[i])) && !(is_left_out && is_left_out(fields[i].name)))
            wb_log_line_put_field(line, fields[i].name, fields[i].value);
}

void wb_fields_describe(const wb_field *fields, size_t count, const char *without, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        if (fields[i].value && !(without && strcmp(fields[i].name, without) == 0))
            used += (size_t)snprintf(text + used, size - used, "%s%s=\"%s\"", used ? ", " : " (", fields[i].name,
                                     fields[i].value);
    if (used && used < size)
        (void)snprintf(text + used, size - used, ")");
}

void wb_log_line_end(wb_log_line *line)
{
    line->limit = sizeof line->text - 1;
    if (line->format == WB_LOG_JSON)
        put_text(line, JSON_END);
    line->text[line->used] = '\0';
}

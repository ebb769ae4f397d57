/* SPDX-License-Identifier: Apache-2.0
 *
 * One line of the log, in one of two forms:
 *
 *   2026-01-01T12:00:00.000Z level=info msg="endpoint starts" endpoint=orders workers=4
 *   {"time":"2026-01-01T12:00:00.000Z","level":"info","endpoint":"orders","text":"endpoint starts","fields":{"workers":"4"}}
 *
 * In both, what a terminal would obey is escaped: as printable.h has it in text; in JSON as \uNNNN, and a byte that
 * belongs to no character of UTF-8 is U+FFFD. So a line is text in one piece, whatever a message holds. One that is too long is cut within a value, in
 * front of a character, and still ends as its form wants it.
 *
 * The time stands in front of what says the same each time (the rest, which repeats.h compares), and a field may follow behind.
 */
#ifndef WB_BASE_LOG_LINE_H
#define WB_BASE_LOG_LINE_H

#include <waybill/sys/plugin.h>

/** A line is cut at this size, its line break included: long enough for any error text, short enough for the stack. */
#define WB_LOG_LINE_SIZE 4096
/** What time, end and one number more take at the most. */
#define WB_LOG_LINE_SPARE 96

/* wb_config.log_format */
#define WB_LOG_TEXT 0
#define WB_LOG_JSON 1

typedef struct wb_log_line {
    char text[WB_LOG_LINE_SIZE];
    size_t used;
    size_t limit; /* room is kept for what ends the line */
    int format;   /* WB_LOG_TEXT or WB_LOG_JSON */
} wb_log_line;

/** Begin a line with the time, nanoseconds since 1970. */
void wb_log_line_begin(wb_log_line *line, int format, int64_t wall);
/** Begin a line without its time, for wb_log_line_put_rest(): it has room for that. */
void wb_log_line_begin_rest(wb_log_line *line, int format);
/** A rest that was made before. @return its form: a line is to be begun in that. */
int wb_log_line_format_of(const char *rest);
void wb_log_line_put_rest(wb_log_line *line, const char *rest, size_t size);

/** What the line says. Fields with a NULL value are left out, as are those that `is_left_out` names (NULL: none). */
void wb_log_line_describe(wb_log_line *line, int level, const char *text, const wb_field *fields, size_t count,
                          int (*is_left_out)(const char *name));
/** One field more. */
void wb_log_line_put_field(wb_log_line *line, const char *name, const char *value);
/** The fields alone, as a sentence has them: ` (host="db1", sslmode="require")`, or nothing; without those that have no
 *  value, and the one of that name (NULL: none). Cut where it does not fit. */
void wb_fields_describe(const wb_field *fields, size_t count, const char *without, char *text, size_t size);
/** What the form wants at the end, and a NUL byte, which is not counted: there is room for a line break in its place. */
void wb_log_line_end(wb_log_line *line);

#endif

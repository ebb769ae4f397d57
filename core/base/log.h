/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one line an event, a constant text and fields (log_line.h has the two forms), on stderr or in a file (log_sink.h):
 *
 *   2026-01-01T12:00:00.000Z level=info msg="endpoint starts" endpoint=orders workers=4
 *
 * What a terminal would obey is escaped, so that a message's content cannot forge a line. Bodies and
 * secrets are never logged. Any thread may log; a line is written with one call of the system.
 *
 * Lines with a field "reason" that differ only in the message and in its tries are repeats: beyond
 * the first few of a second they are counted (repeats.h), and summed up once a second in a line
 * without the message's fields:
 *
 *   ... level=error msg="message moved to the error queue" endpoint=orders ... more_like_this=1423
 *
 * Debug lines are all written.
 */
#ifndef WB_BASE_LOG_H
#define WB_BASE_LOG_H

#include <waybill/sys/plugin.h>

/** Lines above this level are dropped. WB_LOG_INFO at start. */
void wb_log_set_level(int level);

/** WB_LOG_TEXT or WB_LOG_JSON (log_line.h). WB_LOG_TEXT at start. */
void wb_log_set_format(int format);

/** In a child of fork(): whoever held the log's locks is not there, nor those of a writer, which is not called any more. */
void wb_log_after_fork(void);

/** Who gets lines, without their line break but with a NUL byte behind: one at a time. NULL, as at first: they are written. */
void wb_log_set_writer(void (*write)(void *argument, int level, const char *line, size_t size), void *argument);

/** Write one line. A field with a NULL value is left out. */
void wb_log_write(int level, const char *text, const wb_field *fields, size_t count);

/** Write one line that somebody asked for: it says that it is of `level`, and is written at any. */
void wb_log_answer(int level, const char *text, const wb_field *fields, size_t count);

/** Write the sums that are due. Cheap when none is; whatever writes a line does it, and the threads that
 *  look at the time do, so that a flood that ends is summed up as well. */
void wb_log_sum_up(void);

/** Write all sums now: the process ends. */
void wb_log_settle(void);

/** `wb_log_event(WB_LOG_INFO, "endpoint started", {"endpoint", name})` */
#define wb_log_event(level, text, ...)                                                             \
    wb_log_write((level), (text), (const wb_field[]){ __VA_ARGS__ },                               \
                 sizeof((const wb_field[]){ __VA_ARGS__ }) / sizeof(wb_field))

#endif

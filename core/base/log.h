/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: one line an event on stderr, constant text and key=value fields:
 *
 *   2026-01-01T12:00:00.000Z level=info endpoint=orders msg="endpoint started" workers=4
 *
 * Values are quoted when they hold anything but plain characters; what a terminal would obey
 * is escaped (printable.h), so that a message's content cannot forge a line. Bodies and
 * secrets are never logged. Any thread may log; a line is written with one write(2).
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

/** Lines go to where stderr leads now, whoever closes descriptor 2 or puts something else there: what is
 *  opened next may be a connection to a server. Nothing is written to what has come into the place of either: where
 *  both are gone, lines are lost. Before there are other threads. */
void wb_log_keep_stderr(void);

/** In a child of fork(): whoever held the log's locks is not there, nor those of a writer, which is not called any more. */
void wb_log_after_fork(void);

/** Where lines go, without their line break but with a NUL byte behind: one at a time. At first to stderr. */
void wb_log_set_writer(void (*write)(void *argument, int level, const char *line, size_t size), void *argument);

/** Write one line. A field with a NULL value is left out. */
void wb_log_write(int level, const char *text, const wb_field *fields, size_t count);

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

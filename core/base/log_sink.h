/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the log's lines go: to where standard error led at the start, or to a file of the log's own.
 *
 * The descriptor is looked at before each line. A handler that closes descriptors closes this one as well, and the next to
 * have its number may be a database's file: nothing is written to what has come into its place. A file is opened anew by its
 * name then, and where that cannot be, lines go to standard error.
 *
 * Any thread. A line is written with one call, while a lock is held that renewing the file takes, too: whoever writes waits for
 * who reads, for ever or as long as patience.h says.
 */
#ifndef WB_BASE_LOG_SINK_H
#define WB_BASE_LOG_SINK_H

#include <stddef.h>

/** Lines go to where standard error leads now, whoever closes descriptor 2 or puts something else there. Before there are
 *  other threads. */
void wb_log_sink_keep_stderr(void);
/** Open a file to append to, made with mode 0640 where there is none, and have lines go there from now on; the one before is closed.
 *  To be called again when it was renamed. A pipe without a reader is not waited for.
 *  @return 0, or an errno and lines go to where they went; EBUSY: somebody has waited too long for who reads (patience.h). */
int wb_log_sink_open(const char *path);
/** Lines go to where standard error led again. */
void wb_log_sink_close(void);
/** Whether, since it was asked last, somebody closed that file; looks now. *ret_code: 0, it was opened anew, or the errno with which
 *  it cannot be, and lines go to where standard error led. Said once, and again when that changes. */
int wb_log_sink_was_closed(int *ret_code);
/** Whether that file could be opened; makes none. @return 0, or an errno. */
int wb_log_sink_try(const char *path);

/** Write a line with its line break. What cannot be written is lost: nobody is left to be told. A line that was cut by that
 *  (the disk was full) ends before the next one begins. @return 0: nobody took it in the time that this thread has (patience.h). */
int wb_log_sink_write(const char *line, size_t size);
/** How many lines that happened to since it was asked last. */
unsigned long wb_log_sink_take_lost(void);
/** In a child of fork(): whoever held the lock is not there. */
void wb_log_sink_after_fork(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler that does what its message says (endpoint_script.c) needs of the endpoint's
 * database: a file for each client library. They return what a handler returns.
 */
#ifndef ENDPOINT_SCRIPT_H
#define ENDPOINT_SCRIPT_H

#include <waybill/handler.h>

/** On the plain connection; nothing if the endpoint has no database. */
int script_sql(wb_context *ctx, const char *sql);
/** The same without asking for the connection again. */
int script_sql_again(wb_context *ctx, const char *sql);
int script_defer(wb_context *ctx, const char *sql);
/** What a handler must not leave behind. */
int script_leave_unread(wb_context *ctx, const char *sql);
int script_leave_pipeline(wb_context *ctx);
/** Sent, and its answer not waited for. */
int script_send_unread(wb_context *ctx, const char *sql);
/** Close the connection, which is not its own; on SQLite, if told so, after everybody's statements. */
int script_close(wb_context *ctx, int with_statements);
/** Or have it made anew. */
int script_reset(wb_context *ctx);
/** On SQLite, for which any statement behind it would be refused: a progress handler and limits, or what is named, an
 *  "authorizer"; or an "ignorer", for which they would do nothing. */
int script_leave_behind(wb_context *ctx, const char *what);
/** Whether the context gives a connection. */
int script_has_storage(wb_context *ctx);

/** A line in the file WB_TRACE. */
void script_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** endpoint_misdeeds.c */
int script_misdo(wb_context *ctx, const wb_message *message, const char *name, const char *argument);

#endif

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

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The error object: class, cause, native code, text. Callers branch on the class,
 * the program's exit code comes from the cause, people read the text.
 */
#ifndef WB_BASE_ERROR_H
#define WB_BASE_ERROR_H

#include <stdarg.h>
#include <waybill/sys/plugin.h>

struct wb_error {
    int result;          /* WB_x class; WB_OK when nothing failed */
    int cause;           /* WB_CAUSE_x */
    int64_t native_code; /* errno, SQLSTATE as a number, AMQP reply code, ... */
    char text[1024];     /* lower case, no period; cut when longer */
};

/** Forget what an error said. */
void wb_error_clear(wb_error *error);

/** Fill `error` (which may be NULL) and return `result`. */
int wb_error_set(wb_error *error, int result, int cause, int64_t native_code, const char *format,
                 ...) WB_PRINTF(5, 6);
int wb_error_set_v(wb_error *error, int result, int cause, int64_t native_code, const char *format,
                   va_list arguments) WB_PRINTF(5, 0);

/** Whether it is the server's trouble (see sys/plugin.h): every message would have met it. */
int wb_error_is_servers(const wb_error *error);

/** The class in words, for logs: "in doubt". */
const char *wb_result_name(int result);

/** The program's exit code for a failure while starting (sysexits.h). */
int wb_error_exit_code(const wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/error.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/crash.h"

void wb_error_clear(wb_error *error)
{
    memset(error, 0, sizeof *error);
}

int wb_error_set_v(wb_error *error, int result, int cause, int64_t native_code, const char *format,
                   va_list arguments)
{
    if (error) {
        error->result = result;
        error->cause = cause;
        error->native_code = native_code;
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    }
    return result;
}

int wb_error_set(wb_error *error, int result, int cause, int64_t native_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    wb_error_set_v(error, result, cause, native_code, format, arguments);
    va_end(arguments);
    return result;
}

int wb_error_is_servers(const wb_error *error)
{
    if (error->result == WB_NOT_CONNECTED || error->result == WB_IN_DOUBT)
        return 1;
    return error->result == WB_RETRY && !wb_bug("wrong_fault") &&
           (error->cause == WB_CAUSE_SERVER || error->cause == WB_CAUSE_UNREACHABLE ||
            error->cause == WB_CAUSE_SENDING);
}

const char *wb_result_name(int result)
{
    static const char *const names[] = { "ok",       "retry",         "abort", "reject",
                                         "in doubt", "not connected", "fatal" };
    if (result < 0 || (size_t)result >= sizeof names / sizeof names[0])
        return "unknown";
    return names[result];
}

int wb_error_exit_code(const wb_error *error)
{
    switch (error->cause) {
    case WB_CAUSE_UNREACHABLE:
    case WB_CAUSE_SENDING: return EX_UNAVAILABLE;
    case WB_CAUSE_REFUSED: return EX_NOPERM;
    case WB_CAUSE_MISSING:
    case WB_CAUSE_MISMATCH: return EX_OSFILE;
    case WB_CAUSE_CONFIG: return EX_CONFIG;
    case WB_CAUSE_SERVER: return EX_TEMPFAIL;
    default: return error->result == WB_NOT_CONNECTED ? EX_UNAVAILABLE : EX_SOFTWARE;
    }
}

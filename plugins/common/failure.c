/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/failure.h"

#include <stdarg.h>
#include <stdio.h>

static void fill(wb_common_failure *failure, int result, int cause, int64_t code,
                 const char *format, va_list arguments) WB_PRINTF(5, 0);
static void fill(wb_common_failure *failure, int result, int cause, int64_t code,
                 const char *format, va_list arguments)
{
    failure->result = result;
    failure->cause = cause;
    failure->code = code;
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
}

int wb_common_failure_set(wb_common_failure *failure, int result, int cause, int64_t code,
                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(failure, result, cause, code, format, arguments);
    va_end(arguments);
    return result;
}

int wb_common_failure_note(wb_common_failure *failure, int result, int cause, int64_t code,
                           const char *format, ...)
{
    va_list arguments;
    if (failure->result != WB_OK)
        return failure->result;
    va_start(arguments, format);
    fill(failure, result, cause, code, format, arguments);
    va_end(arguments);
    return result;
}

int wb_common_failure_report(const wb_host *host, const wb_common_failure *failure,
                             wb_error *error)
{
    return host->fail(host, error, failure->result, failure->cause, failure->code, "%s",
                      failure->text);
}

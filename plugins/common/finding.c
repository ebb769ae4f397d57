/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/finding.h"

#include <stdarg.h>
#include <stdio.h>

#define TEXT_SIZE 2048

void wb_common_find(const wb_examination *examination, int severity, const char *name, const char *remedy,
                    const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const wb_finding finding = {
        .struct_size = sizeof finding, .severity = severity, .name = name, .text = text, .remedy = remedy
    };
    examination->found(examination->argument, &finding);
}

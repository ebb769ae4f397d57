/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/content.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

int cli_content_read(const char *path, wb_buffer *ret_body)
{
    char part[65536];
    size_t size;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file)
        return cli_fail(EX_NOINPUT, "cannot open \"%s\": %s", path, strerror(errno));
    while ((size = fread(part, 1, sizeof part, file)) > 0)
        wb_buffer_put(ret_body, part, size);
    int failed = ferror(file);
    if (file != stdin)
        (void)fclose(file);
    return failed ? cli_fail(EX_NOINPUT, "cannot read \"%s\"", path) : EX_OK;
}

int cli_content_headers(const cli_values *values, char letter, wb_header headers[CLI_HEADERS_MAX], size_t *ret_count)
{
    *ret_count = 0;
    for (int i = 0; i < values->given_count; i++) {
        const char *text = values->given[i].value;
        if (values->given[i].letter != letter)
            continue;
        const char *equals = strchr(text, '=');
        if (!equals || equals == text || *ret_count == CLI_HEADERS_MAX)
            return cli_fail(EX_USAGE, "a header is NAME=VALUE, and there are at most %d: \"%s\"",
                            CLI_HEADERS_MAX, text);
        headers[(*ret_count)++] = (wb_header){ text, equals + 1, (size_t)(equals - text), strlen(equals + 1) };
    }
    return EX_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command line says of a message: headers, and a body that lies in a file.
 */
#ifndef WB_CLI_CONTENT_H
#define WB_CLI_CONTENT_H

#include <waybill/message.h>

#include "core/base/buffer.h"
#include "core/cli/cli.h"

#define CLI_HEADERS_MAX 256

/** The whole of a file; "-" is standard input. @return EX_OK, or EX_NOINPUT with a message. */
int cli_content_read(const char *path, wb_buffer *ret_body);

/** Options NAME=VALUE with that letter, in their order. Sizes of values are theirs. @return EX_OK, or EX_USAGE with a message. */
int cli_content_headers(const cli_values *values, char letter, wb_header headers[CLI_HEADERS_MAX], size_t *ret_count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A message as `send --json-lines` reads it, one a line:
 *
 *   {"id": "a-1", "key": "customer-7", "body": {"n": 1}, "headers": {"name": "value"}}
 *
 * Each field may be left out; none may be of another type, and there are no others: a message that is
 * not what its author wrote is worse than none. A body that is no string is sent as its JSON.
 */
#ifndef WB_CLI_JSON_LINE_H
#define WB_CLI_JSON_LINE_H

#include <jansson.h>
#include <waybill/message.h>

#include "core/cli/content.h"

#define CLI_PROBLEM_SIZE 512

typedef struct cli_json_line {
    json_t *message;
    char *body; /* of JSON; NULL: it is a string */
    wb_header headers[CLI_HEADERS_MAX];
    wb_outgoing outgoing; /* points into the rest */
} cli_json_line;

/** @return 0 and a message to free with cli_json_line_free(), or -1 and what is wrong, which names the field. */
int cli_json_line_read(const char *line, size_t size, cli_json_line *ret_line, char problem[CLI_PROBLEM_SIZE]);
void cli_json_line_free(cli_json_line *line);

#endif

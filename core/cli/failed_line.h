/* SPDX-License-Identifier: Apache-2.0
 *
 * A failed message as `failures export` writes it, and `failures import` reads it, one a line:
 *
 *   {"failure": "..", "status": "failed", "attempts": 1, "failed_at": "2026-12-31 08:00:00:000000 Z",
 *    "id": "a-1", "key": "customer-7", "headers": [["name", "value"], ..], "body": "text"}
 *
 * What is no UTF-8, or has a NUL in it, is {"base64": ".."} in place of the text. Headers are in their order. "key" is left out where there
 * is none. Of what is read "failure" and "attempts" count for nothing: a message is known by id and endpoint.
 */
#ifndef WB_CLI_FAILED_LINE_H
#define WB_CLI_FAILED_LINE_H

#include <jansson.h>
#include <waybill/sys/failed.h>

#include "core/base/arena.h"
#include "core/cli/json_line.h"
#include "core/failures/record.h"

json_t *cli_failed_line_make(const wb_failed *failed, const wb_failed_record *record);

typedef struct cli_failed_line {
    json_t *line;
    wb_arena arena; /* what stands in base64 there */
    wb_message message; /* points into both */
    int32_t status;
    int64_t failed_at; /* 0: it does not say */
} cli_failed_line;

/** @return 0 and a line to free with cli_failed_line_free(), or -1 and what is wrong. */
int cli_failed_line_read(const char *text, size_t size, cli_failed_line *ret_line, char problem[CLI_PROBLEM_SIZE]);
void cli_failed_line_free(cli_failed_line *line);

#endif

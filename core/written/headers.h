/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers as programs write them in SQL: a JSON object (RFC 8259) whose values are strings.
 */
#ifndef WB_WRITTEN_HEADERS_H
#define WB_WRITTEN_HEADERS_H

#include <waybill/sys/transport.h>

#include "core/base/arena.h"
#include "core/base/error.h"

/** Room for that many is wanted by wb_written_headers_parse(). */
#define WB_WRITTEN_HEADERS_MAX 256

/** Parse into `headers`, whose strings live in the arena. No text at all is no headers.
 *  @return WB_OK, or WB_REJECT with what is wrong, and where. */
int wb_written_headers_parse(const char *text, size_t size, wb_arena *arena, wb_header *headers,
                             size_t *ret_count, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a configuration file with its includes put in, and a map from its lines
 * back to the files they come from.
 *
 * This is a pass of its own, before the parser, because libconfig 1.5 resolves includes
 * against one directory only, cuts integers to 32 bits in silence, and has no limit on
 * nesting: here includes become relative to the including file, plain integers get the
 * "L" that makes the parser keep them, and all limits are enforced.
 */
#ifndef WB_CONFIG_CONF_TEXT_H
#define WB_CONFIG_CONF_TEXT_H

#include "core/base/buffer.h"
#include "core/config/conf_node.h"

typedef struct wb_conf_source {
    wb_buffer text;        /* NUL-terminated once read */
    wb_conf_origin *lines; /* lines[i]: where line i + 1 of the text comes from */
    size_t line_count;
    size_t line_capacity;
} wb_conf_source; /* all zero is empty */

/** Read and expand. File names are allocated in `arena`.
 *  @return WB_OK, or WB_FATAL with one problem added. */
int wb_conf_source_read(wb_conf_source *source, wb_arena *arena, const char *path,
                        wb_problems *problems);

/** Where a line of the expanded text (from 1) comes from; the last line for any beyond. */
wb_conf_origin wb_conf_source_origin(const wb_conf_source *source, unsigned line);

/** Wipes the text, which may hold literal secrets. */
void wb_conf_source_free(wb_conf_source *source);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the page, which are part of the program: made of those in core/console/page by core/console/embed, when it is built.
 */
#ifndef WB_CONSOLE_ASSETS_H
#define WB_CONSOLE_ASSETS_H

#include <stddef.h>

typedef struct wb_asset {
    const char *path; /* "/", "/console.css" */
    const char *type;
    const void *data;
    size_t size;
} wb_asset;

extern const wb_asset wb_assets[];
extern const size_t wb_asset_count;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of capabilities: those of the modes are what the configuration calls them.
 */
#ifndef WB_PLUGIN_CAPABILITY_H
#define WB_PLUGIN_CAPABILITY_H

#include <waybill/sys/plugin.h>

typedef struct wb_capability_name {
    uint64_t bit;
    const char *name;
} wb_capability_name;

/** All that are known, in the order of their bits; ends with bit 0. */
extern const wb_capability_name wb_capability_names[];

/** The names of a mask's bits, with a separator between. @return `text`. */
const char *wb_capabilities_text(uint64_t capabilities, const char *separator, char *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Where plugins are looked for. See loader.h for the places.
 */
#ifndef WB_PLUGIN_SEARCH_H
#define WB_PLUGIN_SEARCH_H

#include <limits.h>

#include "core/plugin/loader.h"

/** Whether a name is [a-z0-9_-]{1,64}: no path can be smuggled in. */
int wb_plugin_is_name(const char *name);

/** The name of what a plugin exports: "late_night_LTX_wb_plugin". */
#define WB_PLUGIN_ENTRY_SIZE 96
void wb_plugin_entry_name(const char *name, char entry[WB_PLUGIN_ENTRY_SIZE]);

/** The first file of that kind and name. @return WB_OK, or WB_FATAL with a sentence that
 *  names the directories and a plugin with a similar name or, if there is none, all there are. */
int wb_plugin_find(const wb_config *config, uint32_t kind, const char *name, char path[PATH_MAX],
                   wb_error *error);

#endif

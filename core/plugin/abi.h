/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a descriptor is one this host can work with. Pure.
 */
#ifndef WB_PLUGIN_ABI_H
#define WB_PLUGIN_ABI_H

#include "core/base/error.h"

/** For wb_plugin_check(): of whichever kind it is. */
#define WB_PLUGIN_ANY_KIND 0u

/** "transport", "persistence", "unknown kind". */
const char *wb_plugin_kind_name(uint32_t kind);

/** Check magic, versions, kind, name, sizes, options with their defaults, and that every operation
 *  which the capabilities promise is there, and none that they do not. `path` is for the sentence only.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG and one sentence that says path,
 *  reason, and wanted and offered versions. */
int wb_plugin_check(const wb_plugin *plugin, uint32_t kind, const char *name, const char *path,
                    wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin loader: finds a plugin by kind and name, checks who could have written it
 * (trust.h), loads it, checks its descriptor (abi.h), and reads its options.
 *
 * Places, in this order, each with transport/NAME.so, persistence/NAME.so and observer/NAME.so in it
 * (and, for a build tree, transport/NAME/.libs/NAME.so), or NAME.so of any kind:
 *   1. the installed plugin directory, or WAYBILL_PLUGIN_DIR from the environment instead,
 *      unless the process runs with more rights than its caller (AT_SECURE);
 *   2. the directories of `plugin_path`.
 *
 * A plugin is bound now, local, and never unloaded. Main thread only, before any other
 * thread starts: libltdl is not safe with several.
 */
#ifndef WB_PLUGIN_LOADER_H
#define WB_PLUGIN_LOADER_H

#include "core/base/error.h"
#include "core/config/configuration.h"

/** Load a plugin, or find it loaded. `config` gives `plugin_path`; NULL: the first place
 *  only. The descriptor is valid until the process ends. `ret_path` may be NULL; the path
 *  is valid until the process ends.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG and one sentence with path, reason,
 *  wanted and offered versions. */
int wb_plugin_load(const wb_config *config, uint32_t kind, const char *name,
                   const wb_plugin **ret_plugin, const char **ret_path, wb_error *error);

/** Read a plugin's options from its group of an endpoint (its "plugin" entry aside) into
 *  a struct of the descriptor's config_size, owned by `config`. All errors are added to
 *  `problems`. @return WB_OK, or WB_FATAL when there was one. */
int wb_plugin_configure(wb_config *config, const wb_endpoint_config *endpoint,
                        const wb_plugin_choice *choice, const wb_plugin *plugin,
                        wb_problems *problems, const void **ret_config);

/** Where in the file a plugin's refusal belongs: to the line of the option that `text` begins with ("port = ...", or
 *  "option \"port\" ..."), if that stands in the plugin's group; otherwise to the group's. */
wb_conf_origin wb_plugin_place(const wb_plugin_choice *choice, const char *text);

/** A file that looks like a plugin; nothing was loaded or checked yet. */
typedef struct wb_plugin_file {
    uint32_t kind; /* WB_PLUGIN_ANY_KIND: in no folder of a kind; it says itself what it is */
    char name[65];
    char *path;
} wb_plugin_file;

typedef struct wb_plugin_files {
    wb_plugin_file *items;
    size_t count;
} wb_plugin_files;

/** List the plugins there are, by kind, then by name; of two with the same kind and name
 *  the one that would be loaded. Of what lies in no folder of a kind, those files that hold the name
 *  of a plugin's entry: handler modules may lie there, too. Free with wb_plugin_files_free(). */
void wb_plugin_files_list(const wb_config *config, wb_plugin_files *files);
/** Whether the loader, asked for that kind, comes to this file: none of that name is found before it. */
int wb_plugin_file_is_first(const wb_config *config, uint32_t kind, const wb_plugin_file *file);
/** Load one of them: as wb_plugin_load(). */
int wb_plugin_load_file(const wb_plugin_file *file, const wb_plugin **ret_plugin, const char **ret_path,
                        wb_error *error);
void wb_plugin_files_free(wb_plugin_files *files);

#endif

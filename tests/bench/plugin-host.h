/* SPDX-License-Identifier: Apache-2.0
 *
 * A host of the smallest kind, for benchmarks that drive a plugin by itself: it fills the plugin's
 * options from their table, and ends the program when something is wrong.
 */
#ifndef WB_BENCH_PLUGIN_HOST_H
#define WB_BENCH_PLUGIN_HOST_H

#include <waybill/sys/plugin.h>

struct wb_error {
    char text[1000];
};

extern const wb_host bench_host;

/** From a file NAME.so, for good. */
const wb_plugin *bench_load_plugin(const char *path);

/** Its options: `settings` is "NAME=VALUE,...", which is cut up and kept, the others have their
 *  defaults. A secret may be "env:NAME". The caller frees it. */
void *bench_plugin_config(const wb_plugin *plugin, char *settings);

#endif

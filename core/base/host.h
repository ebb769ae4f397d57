/* SPDX-License-Identifier: Apache-2.0
 *
 * The host table a plugin instance calls back through. Its log lines carry the
 * endpoint's and the plugin's name.
 */
#ifndef WB_BASE_HOST_H
#define WB_BASE_HOST_H

#include <stdatomic.h>

#include "core/base/error.h"

typedef struct wb_host_instance {
    wb_host host; /* first: the plugin's pointer is ours */
    const char *endpoint_name;
    const char *plugin_name;
    atomic_uint_least64_t expired; /* messages, since it was made */
    atomic_uint_least64_t expired_said;
    _Atomic(int64_t) expired_due; /* when the next line may be written */
} wb_host_instance;

/** Fill an instance; both names are kept, not copied. */
void wb_host_init(wb_host_instance *instance, const char *endpoint_name, const char *plugin_name);
/** Who is told of the progress of long calls (wb_host.progress), on their thread; NULL: nobody. Main thread, before any other. */
void wb_host_watch_progress(void (*watch)(uint64_t done, uint64_t total));
/** The plugin's instance is gone: what was counted and not said yet is said. */
void wb_host_end(wb_host_instance *instance);

#endif

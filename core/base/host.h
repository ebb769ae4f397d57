/* SPDX-License-Identifier: Apache-2.0
 *
 * The host table a plugin instance calls back through. Its log lines carry the
 * endpoint's and the plugin's name.
 */
#ifndef WB_BASE_HOST_H
#define WB_BASE_HOST_H

#include "core/base/error.h"

typedef struct wb_host_instance {
    wb_host host; /* first: the plugin's pointer is ours */
    const char *endpoint_name;
    const char *plugin_name;
} wb_host_instance;

/** Fill an instance; both names are kept, not copied. */
void wb_host_init(wb_host_instance *instance, const char *endpoint_name, const char *plugin_name);

#endif

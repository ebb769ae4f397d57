/* SPDX-License-Identifier: Apache-2.0
 *
 * Wires: the connections a plugin has opened in this process, found among its file
 * descriptors, so that a kit can break them without knowing the plugin.
 */
#ifndef WB_CONFORMANCE_WIRES_H
#define WB_CONFORMANCE_WIRES_H

#include <stddef.h>

#define WB_WIRES_MAX 1024

/** Which descriptors were there before the plugin opened its own. */
typedef struct wb_wires {
    unsigned char there[WB_WIRES_MAX];
} wb_wires;

void wb_wires_remember(wb_wires *before);

/** Connected stream sockets opened since. Writes at most `max`. @return how many there are. */
size_t wb_wires_find(const wb_wires *before, int *fds, size_t max);

/** Where none was opened since `before`, but some were since `first`, the plugin keeps connections, and any of them
 *  may be in use: then those count, and `before` becomes `first`. @return whether there are any. */
int wb_wires_settle(wb_wires *before, const wb_wires *first);

/** Break them, in both directions. @return how many. */
size_t wb_wires_cut(const wb_wires *before);

#endif

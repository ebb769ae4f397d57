/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a server is on this machine. By name only: resolving would ask the network, and trust
 * the answer.
 */
#ifndef WB_COMMON_LOOPBACK_H
#define WB_COMMON_LOOPBACK_H

#include <stddef.h>

/** "localhost", an address 127.x, "::1" or "[::1]"; `size` bytes at `name`. */
int wb_common_is_loopback(const char *name, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a server cannot be reached, in the system's own words, where a client's library keeps them to itself ("a socket error
 * occurred"). It is asked when the library has failed, so a healthy server never notices.
 */
#ifndef WB_COMMON_DIAL_H
#define WB_COMMON_DIAL_H

#include <stddef.h>
#include <stdint.h>

/** Resolve the name, and connect once more: `patience` (nanoseconds) to each of its addresses at the most. Blocks as
 *  resolving does.
 *  @return whether that failed, with the reason of the last address ("Connection refused", "Name or service not known"). */
int wb_common_dial(const char *host, int port, int64_t patience, char *ret_reason, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a file could be opened, or made, without opening it: a descriptor that is closed again would
 * take SQLite's locks along (lockfile.h).
 */
#ifndef WB_SQLITE_USABLE_H
#define WB_SQLITE_USABLE_H

#include <waybill/sys/plugin.h>

/** `file` is what the option says, `path` the canonical path of it. A file that is not there yet is one that
 *  `install` makes, in a directory that is there and may be written. What may pass by itself (no memory, no
 *  descriptors) is left to the opening.
 *  @return WB_OK, or WB_FATAL: WB_CAUSE_MISSING for a directory, WB_CAUSE_REFUSED for rights, WB_CAUSE_CONFIG
 *  for what is no file. */
int wb_sqlite_usable(const wb_host *host, const char *file, const char *path, wb_error *error);

#endif

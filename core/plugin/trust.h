/* SPDX-License-Identifier: Apache-2.0
 *
 * Who could have changed a file that is about to become code in this process?
 *
 * Trusted is a file when it is a regular file, not a symbolic link, and the file and every
 * directory above it, up to /, belong to root or the effective user and can be written by
 * nobody else: neither by a group nor by others.
 *
 * Two things are allowed on purpose:
 *  - directories on the way may be symbolic links (/lib is one on most systems): the
 *    canonical path is checked and loaded, so a link only chooses among trusted files;
 *  - a directory that everybody may write but that is sticky, such as /tmp, may stand
 *    further above, as over a build tree: nobody but its owner (root or us) and the owner of
 *    the next component, a directory (root or us, as that is checked too), can rename or
 *    replace that one. The directory that holds the file may not be one: there anybody may
 *    put a hard link to some other file of ours under the name that is loaded, and what a
 *    library finds beside itself ($ORIGIN) may be anybody's.
 *
 * Between check and load nobody else can exchange anything, because all of it is writable
 * by root and us only.
 */
#ifndef WB_PLUGIN_TRUST_H
#define WB_PLUGIN_TRUST_H

#include <limits.h>

#include "core/base/error.h"

/** Check a file by its path. @return WB_OK and the canonical absolute path to load, or
 *  WB_FATAL with WB_CAUSE_CONFIG (absent or not trusted) and one sentence in `error`. */
int wb_trust_check(const char *path, char ret_canonical[PATH_MAX], wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One name for one file. Processes that open the same database through different paths
 * must agree on the files beside it, or their locks would not meet.
 */
#ifndef WB_SQLITE_PATH_H
#define WB_SQLITE_PATH_H

#include <stddef.h>

/** Write the canonical path of `file`, which need not exist, to `buffer`; that of its
 *  directory, as it is, when that does not exist. @return 0, or -1 when it does not fit or is no
 *  absolute path: the host makes all of them absolute, and leaves what is none (":memory:", a URI) as it is. */
int wb_sqlite_path_canonical(const char *file, char *buffer, size_t size);

/** Whether the directory of a canonical path exists. */
int wb_sqlite_path_has_directory(const char *path);

/** A copy of the two, joined; to be freed. NULL when memory is out. */
char *wb_sqlite_path_join(const char *path, const char *suffix);

#endif

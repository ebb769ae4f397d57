/* SPDX-License-Identifier: Apache-2.0
 *
 * A small disk of a test's own that can be filled: a file system in memory where mounting is
 * permitted, else writes of SQLite that are told that there is no room.
 */
#ifndef WB_TESTS_SQLITE_DISK_H
#define WB_TESTS_SQLITE_DISK_H

#include <stddef.h>

/** Mount at a directory. Once a process; when it dies the mount goes with it. */
void disk_mount(const char *directory, size_t bytes);
void disk_unmount(const char *directory);
/** Leave no room at all, and make room again. */
void disk_fill(const char *directory);
void disk_free(const char *directory);

#endif

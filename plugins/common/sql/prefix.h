/* SPDX-License-Identifier: Apache-2.0
 *
 * From an endpoint's name to the prefix of its tables, the same in every SQL database: so
 * that a name is safe to read in any client, and two names never share tables unseen.
 */
#ifndef WB_COMMON_SQL_PREFIX_H
#define WB_COMMON_SQL_PREFIX_H

#include <stdint.h>

/** Leaves room for the longest suffix within PostgreSQL's 63 and MySQL's 64 bytes. */
#define WB_SQL_PREFIX_MAX 50

/** Names out of a-z, 0-9 and _ up to that length are kept; of all others the nearest
 *  characters, then "$" and a hash. */
void wb_sql_prefix(const char *endpoint, char ret_prefix[WB_SQL_PREFIX_MAX + 1]);

/** Where a hash begins. */
#define WB_SQL_HASH_START UINT64_C(0xcbf29ce484222325)
/** FNV-1a, for names of locks and texts of statements as well: what is hashed comes from the
 *  operator's file and from programs, not from an adversary. Part of what is stored: it must never
 *  change. */
uint64_t wb_sql_hash(uint64_t state, const char *text);

#endif

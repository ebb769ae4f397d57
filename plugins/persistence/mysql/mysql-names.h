/* SPDX-License-Identifier: Apache-2.0
 *
 * From an endpoint's name to the names of its tables and locks.
 *
 * A name of at most 50 characters out of a-z, 0-9 and _ is the prefix itself. Any
 * other name is made of what can be kept of it, "$", and 16 digits of its hash: "$"
 * never occurs in a name that is kept, so the two kinds cannot meet. Two names with the
 * same hash would, which is why the prefix is stored together with the name it stands
 * for, and compared when the endpoint starts. Lower case only: what case means in a
 * table's name depends on the server (lower_case_table_names).
 */
#ifndef MYSQL_NAMES_H
#define MYSQL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/sql/prefix.h"
#include "plugins/persistence/mysql/mysql-memory.h"

/** MySQL's identifiers have 64 characters; our longest suffix is "_pending". */
#define MYS_IDENTIFIER_MAX 64
/** GET_LOCK() takes names of 64 characters. */
#define MYS_LOCK_NAME_SIZE 64

typedef struct mys_names {
    const char *endpoint; /* kept, not copied */
    const char *database; /* kept, not copied */
    char prefix[WB_SQL_PREFIX_MAX + 1];
} mys_names;

void mys_names_init(mys_names *names, const char *endpoint, const char *database);

/** Append `template` to `ret_text` with every {name} replaced:
 *  {dedup}, {pending}, {endpoints}: quoted and qualified identifiers;
 *  {endpoint}, {prefix}, {database}: literals. */
void mys_names_expand(const mys_names *names, const char *template, mys_buffer *ret_text);

/** The name of an advisory lock: the same in every process for the same purpose, database
 *  and, unless `prefix` is "", endpoint; a server has one space of names for all its
 *  databases. Out of letters, digits, blanks: needs no quoting inside of '...'. */
void mys_names_lock(const mys_names *names, const char *purpose, const char *prefix,
                    char ret_name[MYS_LOCK_NAME_SIZE]);

#endif

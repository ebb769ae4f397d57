/* SPDX-License-Identifier: Apache-2.0
 *
 * From an endpoint's name to the names of its tables, indexes and locks.
 *
 * A name of at most 50 characters out of a-z, 0-9 and _ is the prefix itself. Any
 * other name is made of what can be kept of it, "$", and 16 digits of its hash: "$"
 * never occurs in a name that is kept, so the two kinds cannot meet. Two names with the
 * same hash would, which is why the prefix is stored together with the name it stands
 * for, and compared when the endpoint starts.
 */
#ifndef PGSQL_NAMES_H
#define PGSQL_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/sql/prefix.h"
#include "plugins/persistence/pgsql/pgsql-memory.h"

/** PostgreSQL cuts identifiers at 63 bytes; our longest suffix is "_pending_pkey". */
#define PGSQL_IDENTIFIER_MAX 63

typedef struct pgsql_names {
    const char *endpoint; /* kept, not copied */
    const char *schema;   /* kept, not copied */
    char prefix[WB_SQL_PREFIX_MAX + 1];
} pgsql_names;

void pgsql_names_init(pgsql_names *names, const char *endpoint, const char *schema);

/** Append `template` to `ret_text` with every {name} replaced:
 *  {schema}, {dedup}, {pending}, {endpoints}: quoted and qualified identifiers;
 *  {dedup_batch}, {dedup_pkey}, {pending_pkey}: quoted identifiers;
 *  {endpoint}, {prefix}: string literals. */
void pgsql_names_expand(const pgsql_names *names, const char *template, pgsql_buffer *ret_text);

/** The key of an advisory lock: the same in every process for the same purpose, schema
 *  and, unless `prefix` is "", endpoint. */
int64_t pgsql_names_lock(const pgsql_names *names, const char *purpose, const char *prefix);

#endif

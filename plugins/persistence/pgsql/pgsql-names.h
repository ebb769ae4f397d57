/* SPDX-License-Identifier: Apache-2.0
 *
 * How PostgreSQL writes names and values, and its advisory locks.
 */
#ifndef PGSQL_NAMES_H
#define PGSQL_NAMES_H

#include <stdint.h>

#include "plugins/common/sql/names.h"

/** PostgreSQL cuts identifiers at 63 bytes; our longest suffix is "_pending_pkey". */
#define PGSQL_IDENTIFIER_MAX 63

extern const wb_sql_quoting pgsql_quoting;

/** The key of an advisory lock: the same in every process for the same purpose, schema
 *  and, unless `prefix` is "", endpoint. */
int64_t pgsql_names_lock(const wb_sql_names *names, const char *purpose, const char *prefix);

#endif

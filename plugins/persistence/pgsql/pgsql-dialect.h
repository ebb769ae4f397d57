/* SPDX-License-Identifier: Apache-2.0
 *
 * What PostgreSQL is asked with: the statements of the outbox and of its installation, all in
 * pgsql-dialect.c. A plugin for another server that libpq talks to has a file of its own in its
 * place, with a pgsql_dialect and PGSQL_PLUGIN (pgsql-persistence.h), and is made of the others; the
 * README says what these take for granted of a server.
 */
#ifndef PGSQL_DIALECT_H
#define PGSQL_DIALECT_H

#include "plugins/common/sql/outbox.h"

/** PostgreSQL cuts identifiers at 63 bytes; our longest suffixes are "_pending_pkey" and
 * its like. */
#define PGSQL_IDENTIFIER_MAX 63

/** Conditions of definitions. */
#define PGSQL_SCHEMA_ABSENT 1 /* creating it needs a privilege that an existing one does not */
/* Done already, CREATE INDEX IF NOT EXISTS and SET COMPRESSION would wait for whoever writes, and others for
 * them; where the server has no lz4 a column lacks nothing. */
#define PGSQL_DEDUP_BATCH_ABSENT 2
#define PGSQL_DELAYED_DUE_ABSENT 3
#define PGSQL_WRITTEN_HELD_ABSENT 4
#define PGSQL_PENDING_LACKS_LZ4 5
#define PGSQL_DELAYED_LACKS_LZ4 6
#define PGSQL_WRITTEN_LACKS_LZ4 7

extern const wb_sql_quoting pgsql_quoting;
/** Parameters are $1 and so on, and results are in binary format: numbers are bigint. */
extern const wb_sql_dialect pgsql_dialect;

/** The key of an advisory lock: the same in every process for the same purpose, schema
 *  and, unless `prefix` is "", endpoint. */
int64_t pgsql_lock_key(const wb_sql_names *names, const char *purpose, const char *prefix);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-sql.h"

#include <string.h>

#include "plugins/common/sql/ages.h"

/* A lost mark means a duplicate with the same id and bytes: not worth a flush to disk.
 * set_config() in the statement itself makes it one statement instead of four; being in
 * a subquery it runs once, and not at all when no row is there to be written. */
#define NOT_FLUSHED "(SELECT pg_catalog.set_config('synchronous_commit', 'off', true)) IS NOT NULL"

/* Taken until the end of the transaction, or not at all: another instance has it. */
#define WITH_LOCK                                                                                  \
    "WITH lock AS MATERIALIZED "                                                                   \
    "(SELECT pg_catalog.pg_try_advisory_xact_lock($3::bigint) AS ours) "

static const char *const templates[PGSQL_SQL_COUNT] = {
    /* READ COMMITTED, because under REPEATABLE READ a claim may skip a record that it
     * cannot see; READ WRITE, so that a standby says so now and not in a handler */
    [PGSQL_SQL_BEGIN] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    /* unnest() yields the array's order and nothing here sorts: two batches that share
     * ids meet them in the same order and never deadlock */
    [PGSQL_SQL_CLAIM] = "INSERT INTO {dedup} (key, batch) "
                        "SELECT key, $2::bigint "
                        "FROM pg_catalog.unnest($1::bytea[]) AS claims (key) "
                        "ON CONFLICT DO NOTHING RETURNING key",
    [PGSQL_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES ($1::bigint, $2::bytea)",
    [PGSQL_SQL_MARK] = "DELETE FROM {pending} WHERE batch = ANY ($1::bigint[]) AND " NOT_FLUSHED,
    [PGSQL_SQL_COMMIT] = "COMMIT",
    [PGSQL_SQL_ROLLBACK] = "ROLLBACK",
    [PGSQL_SQL_SETTINGS] =
        "SELECT pg_catalog.set_config(name, value, $3::boolean) FROM (VALUES "
        "('lock_timeout', $1::text), ('statement_timeout', $2::text)) AS settings (name, value) "
        "WHERE value IS NOT NULL",
    [PGSQL_SQL_LOOKUP] = "SELECT claims.position, dedup.batch "
                         "FROM pg_catalog.unnest($1::bytea[]) WITH ORDINALITY "
                         "AS claims (key, position) "
                         "JOIN {dedup} AS dedup ON dedup.key = claims.key "
                         "ORDER BY claims.position",
    [PGSQL_SQL_RELEASE] =
        "DELETE FROM {dedup} WHERE key = ANY ($1::bytea[]) AND batch = $2::bigint",
    [PGSQL_SQL_SHRINK] = "UPDATE {pending} SET operations = $2::bytea "
                         "WHERE batch = $1::bigint AND " NOT_FLUSHED,
    [PGSQL_SQL_PENDING] =
        "SELECT batch, operations FROM {pending} WHERE batch = ANY ($1::bigint[])",
    [PGSQL_SQL_NEXT] =
        WITH_LOCK
        "SELECT batch, operations FROM {pending} WHERE (SELECT ours FROM lock) "
        "AND batch >= $1::bigint AND batch < $2::bigint ORDER BY batch LIMIT 1",
    /* rows are found by the index on batch, oldest first, and deleted by their place. Not
     * FOR UPDATE SKIP LOCKED: the advisory lock keeps rivals out, nobody else touches old
     * records, and row locks would need a privilege and write 1.4 times the WAL */
    [PGSQL_SQL_CLEAN_UP] =
        WITH_LOCK
        "DELETE FROM {dedup} WHERE ctid = ANY (ARRAY("
        "SELECT old.ctid FROM {dedup} AS old "
        "WHERE (SELECT ours FROM lock) AND old.batch < $1::bigint AND NOT EXISTS "
        "(SELECT FROM {pending} AS pending WHERE pending.batch = old.batch) "
        "ORDER BY old.batch LIMIT $2::bigint))",
    [PGSQL_SQL_CLOCK] = "SELECT pg_catalog.clock_timestamp()",
    /* each by the right end of an index, and counted no further than the limit */
    [PGSQL_SQL_FUTURE] =
        "SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM {dedup} WHERE batch >= $1::bigint "
        "LIMIT $2::bigint) AS records), "
        "(SELECT pg_catalog.count(*) FROM (SELECT FROM {pending} WHERE batch >= $1::bigint AND "
        "pg_catalog.substr(operations, 1, 4) <> '" WB_SQL_PARKED "'::bytea LIMIT $2::bigint) "
        "AS pending), "
        "(SELECT pg_catalog.max(batch) FROM {dedup})",
};

char *pgsql_sql_text(const wb_sql_names *names, pgsql_sql which)
{
    return wb_sql_names_text(names, templates[which]);
}

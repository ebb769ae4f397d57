/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up server that libpq talks to: PostgreSQL's protocol without advisory locks and without
 * places of rows (ctid), and at most 1,000 keys a statement. Locks are rows, held until the
 * transaction ends. Tested on PostgreSQL, which has all that this uses.
 *
 * Everything that a plugin for one more server on a known client library needs is in this file.
 */
#include "config.h"

#include "plugins/common/sql/ages.h"
#include "plugins/common/sql/schema.h"
#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-persistence.h"

#define SCHEMA_VERSION 2
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define LIMITED "LIMIT " TEXT_OF(WB_SQL_FUTURE_MAX) ")"

/* Does not wait: no row is no lock. */
#define LOCK(purpose)                                                                              \
    "SELECT 1::bigint AS ours FROM {schema}.waybill_locks "                                        \
    "WHERE prefix = {prefix} AND purpose = " purpose " FOR UPDATE SKIP LOCKED"

#define NOW "(SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint)"
#define NEVER "9223372036854775807"
#define OF_KEYS                                                                                    \
    "WHERE delayed.id = keys.id AND delayed.destination = keys.destination "                       \
    "AND delayed.retries = keys.retries "                                                          \
    "AND ($4::bytea = ''::bytea OR delayed.taken_by = $4::bytea) "                                 \
    "AND ($5::bigint = 0 OR (delayed.taken_by IS NULL AND NOT delayed.doubtful)) "                 \
    "RETURNING delayed.id, delayed.destination, delayed.retries"
#define KEYS                                                                                       \
    "unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS keys (id, destination, retries) "
#define WAITING(operation)                                                                         \
    "SELECT id, destination, retries, failures, due, " operation ", "                              \
    "GREATEST(taken_until, doubtful::integer), retries "                                           \
    "FROM {delayed} WHERE due >= $1::bigint AND due < $5::bigint "                                 \
    "AND (due > $1::bigint OR (id, destination, retries) > ($2::bytea, $3::bytea, $4::bigint)) "   \
    "AND ($6::bytea = ''::bytea OR destination = $6::bytea) "                                      \
    "AND ($7::bytea = ''::bytea OR id = $7::bytea) "                                               \
    "ORDER BY due, id, destination, retries LIMIT $8::bigint"

static const char *const templates[WB_SQL_COUNT] = {
    [WB_SQL_BEGIN] = "BEGIN ISOLATION LEVEL READ COMMITTED",
    [WB_SQL_CLAIM] = "INSERT INTO {dedup} (key, batch) SELECT key, $2::bigint "
                     "FROM unnest($1::bytea[]) AS claims (key) ON CONFLICT (key) DO NOTHING",
    [WB_SQL_CLAIM_LATE] = "INSERT INTO {dedup} (key, batch) VALUES ($1::bytea, $2::bigint)",
    [WB_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES ($1::bigint, $2::bytea)",
    [WB_SQL_MARK] = "DELETE FROM {pending} WHERE batch = ANY ($1::bigint[])",
    [WB_SQL_COMMIT] = "COMMIT",
    [WB_SQL_ROLLBACK] = "ROLLBACK",
    [WB_SQL_LOOKUP] = "SELECT key, batch FROM {dedup} WHERE key = ANY ($1::bytea[]) ORDER BY key",
    [WB_SQL_RELEASE] = "DELETE FROM {dedup} WHERE key = ANY ($1::bytea[]) AND batch = $2::bigint",
    [WB_SQL_FORGET] = "DELETE FROM {dedup} WHERE key = ANY ($1::bytea[]) AND batch = $2::bigint",
    [WB_SQL_REMEMBER] = "INSERT INTO {dedup} (key, batch) "
                        "SELECT * FROM unnest($1::bytea[], $2::bigint[]) ON CONFLICT (key) DO NOTHING",
    [WB_SQL_SHRINK] = "UPDATE {pending} SET operations = $2::bytea WHERE batch = $1::bigint",
    [WB_SQL_PENDING] = "SELECT batch, operations FROM {pending} WHERE batch = ANY ($1::bigint[])",
    [WB_SQL_LOCK_IN_TRANSACTION] = LOCK("$1::text"),
    [WB_SQL_NEXT] = "SELECT batch, operations FROM {pending} "
                    "WHERE batch >= $1::bigint AND batch < $2::bigint ORDER BY batch LIMIT 1",
    [WB_SQL_CLEAN_UP] =
        "WITH lock AS MATERIALIZED (" LOCK("$4::text") ") "
        "DELETE FROM {dedup} WHERE key IN (SELECT old.key FROM lock, {dedup} AS old "
        "WHERE old.batch >= $1::bigint AND old.batch < $2::bigint AND NOT EXISTS "
        "(SELECT 1 FROM {pending} AS pending WHERE pending.batch = old.batch) "
        "ORDER BY old.batch LIMIT $3::bigint) RETURNING batch",
    [WB_SQL_CLOCK] = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint",
    [WB_SQL_FUTURE] =
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM {dedup} WHERE batch >= $1::bigint "
        LIMITED " AS records), "
        "(SELECT count(*) FROM (SELECT 1 FROM {pending} WHERE batch >= $1::bigint AND "
        "substr(operations, 1, 4) <> '" WB_SQL_PARKED "'::bytea " LIMITED " AS pending), "
        "(SELECT max(batch) FROM {dedup})",
    [WB_SQL_STATS] = "SELECT (SELECT count(*) FROM (SELECT 1 FROM {dedup} LIMIT $1::bigint) AS counted), "
                     "NULL::bigint, (SELECT min(batch) FROM {dedup}), "
                     "(SELECT max(batch) FROM {dedup}), NULL::bigint, NULL::bigint",
    [WB_SQL_COUNT_RECORDS] =
        "SELECT count(*) FROM (SELECT 1 FROM {dedup} AS old WHERE old.batch >= $1::bigint "
        "AND old.batch < $2::bigint AND NOT EXISTS "
        "(SELECT 1 FROM {pending} AS pending WHERE pending.batch = old.batch) "
        "ORDER BY old.batch LIMIT $3::bigint) AS records",
    [WB_SQL_HEADS] = "SELECT batch, substr(operations, 1, $4::bigint::integer) FROM {pending} "
                     "WHERE batch >= $1::bigint AND batch < $2::bigint ORDER BY batch LIMIT $3::bigint",
    [WB_SQL_DELAY] = "INSERT INTO {delayed} (id, destination, retries, due, operation) "
                     "SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], "
                     "$5::bytea[]) ON CONFLICT (id, destination, retries) DO NOTHING",
    [WB_SQL_NEXT_DUE] =
        "SELECT LEAST((SELECT min(due) FROM {delayed} WHERE taken_until <= " NOW "), "
        "(SELECT min(taken_until) FROM {delayed} WHERE taken_until > " NOW "), "
        NEVER "::bigint), " NOW,
    /* finds, and then takes: two round trips, as where a server does not answer with rows that it
     * changes */
    [WB_SQL_FIND_DUE] = "SELECT number, octet_length(operation)::bigint "
                        "FROM {delayed} WHERE due <= COALESCE(NULLIF($1::bigint, 0), " NOW ") "
                        "AND taken_until <= " NOW " ORDER BY due LIMIT $2::bigint "
                        "FOR UPDATE SKIP LOCKED",
    [WB_SQL_TAKE] = "UPDATE {delayed} SET doubtful = doubtful OR taken_until > 0, "
                    "taken_by = $2::bytea, taken_until = " NOW " + $3::bigint "
                    "WHERE number = ANY ($1::bigint[])",
    [WB_SQL_TAKEN] = "SELECT id, destination, retries, failures, due, operation, number "
                     "FROM {delayed} WHERE number = ANY ($1::bigint[])",
    [WB_SQL_DROP] = "DELETE FROM {delayed} AS delayed USING " KEYS OF_KEYS,
    [WB_SQL_PUT_BACK] = "UPDATE {delayed} AS delayed SET taken_by = NULL, taken_until = 0, "
                        "due = COALESCE(NULLIF($6::bigint, " NEVER "), due), "
                        "failures = failures + $7::bigint FROM " KEYS OF_KEYS,
    [WB_SQL_LIST] = WAITING("''::bytea"),
    [WB_SQL_SHOW] = WAITING("operation"),
    [WB_SQL_POSITION_LOCK] = "SELECT position, batch FROM {positions} WHERE partition = $1::bytea FOR UPDATE",
    [WB_SQL_POSITION_MOVE] = "UPDATE {positions} SET position = $2::bigint, batch = $3::bigint "
                             "WHERE partition = $1::bytea AND position < $2::bigint",
    [WB_SQL_POSITION_MAKE] = "INSERT INTO {positions} (partition, position, batch) VALUES ($1::bytea, 0, 0) "
                             "ON CONFLICT (partition) DO NOTHING",
    [WB_SQL_POSITION_BACK] = "UPDATE {positions} SET position = $2::bigint, batch = $4::bigint "
                             "WHERE partition = $1::bytea AND batch = $3::bigint",
    [WB_SQL_POSITIONS] = "SELECT partition, position, batch FROM {positions}",
    [WB_SQL_POSITIONS_FORGET] = "DELETE FROM {positions}",
};

static const wb_sql_definition definitions[] = {
    { 0, NULL,
      "CREATE TABLE IF NOT EXISTS {endpoints} (prefix varchar(50) PRIMARY KEY, "
      "endpoint varchar(255) NOT NULL, version integer NOT NULL)" },
    { 0, "one row for each thing that one instance at a time does",
      "CREATE TABLE IF NOT EXISTS {schema}.waybill_locks (prefix varchar(50) NOT NULL, "
      "purpose varchar(20) NOT NULL, PRIMARY KEY (prefix, purpose))" },
    { 0, NULL,
      "INSERT INTO {schema}.waybill_locks VALUES ({prefix}, 'sweep'), ({prefix}, 'cleanup') "
      "ON CONFLICT (prefix, purpose) DO NOTHING" },
    { 0, NULL,
      "CREATE TABLE IF NOT EXISTS {dedup} (key bytea PRIMARY KEY, batch bigint NOT NULL)" },
    { 0, NULL, "CREATE INDEX IF NOT EXISTS {dedup_batch} ON {dedup} (batch)" },
    { 0, NULL,
      "CREATE TABLE IF NOT EXISTS {pending} (batch bigint PRIMARY KEY, "
      "operations bytea NOT NULL)" },
    { WB_SQL_FOR_DELAYS, NULL,
      "CREATE TABLE IF NOT EXISTS {delayed} (number bigint GENERATED ALWAYS AS IDENTITY, "
      "id bytea, destination bytea, retries bigint, due bigint NOT NULL, taken_by bytea, taken_until bigint NOT NULL DEFAULT 0, "
      "doubtful boolean NOT NULL DEFAULT false, "
      "failures bigint NOT NULL DEFAULT 0, operation bytea NOT NULL, "
      "PRIMARY KEY (id, destination, retries))" },
    { WB_SQL_FOR_DELAYS, NULL, "CREATE INDEX IF NOT EXISTS {delayed_due} ON {delayed} (due)" },
    { WB_SQL_FOR_POSITIONS, NULL,
      "CREATE TABLE IF NOT EXISTS {positions} (partition bytea PRIMARY KEY, position bigint NOT NULL, "
      "batch bigint NOT NULL)" },
    { WB_SQL_FOR_SUBSCRIPTIONS, NULL, "CREATE TABLE IF NOT EXISTS {subscribed} (type text PRIMARY KEY)" },
};

/* One installation at a time, by a table that nothing else locks: pg_class is what a vacuum of our tables
 * waits for while an index is not made because of it. */
static int prepare_install(wb_storage_session *session, unsigned *ret_holds)
{
    *ret_holds = 0;
    const int result = wb_sql_schema_run(session, "BEGIN", NULL);
    if (result != WB_OK)
        return result;
    wb_sql_of(session)->state = WB_SQL_OPEN;
    return wb_sql_schema_run(session, "LOCK TABLE pg_catalog.pg_language IN SHARE ROW EXCLUSIVE MODE", NULL);
}

/* Explained, a statement is refused to whoever may not run it. */
static const char *const rights[] = {
    "EXPLAIN SELECT key, batch FROM {dedup}",
    "EXPLAIN INSERT INTO {dedup} (key, batch) VALUES ('', 0)",
    "EXPLAIN DELETE FROM {dedup}",
    "EXPLAIN SELECT batch, operations FROM {pending}",
    "EXPLAIN INSERT INTO {pending} (batch, operations) VALUES (0, '')",
    "EXPLAIN UPDATE {pending} SET operations = ''",
    "EXPLAIN DELETE FROM {pending}",
    "EXPLAIN SELECT prefix FROM {schema}.waybill_locks FOR UPDATE",
};

static const char *const delayed_rights[] = {
    "EXPLAIN SELECT due FROM {delayed}",
    "EXPLAIN INSERT INTO {delayed} (id, due) VALUES ('', 0)",
    "EXPLAIN UPDATE {delayed} SET taken_by = NULL, taken_until = 0",
    "EXPLAIN DELETE FROM {delayed}",
};

static const char *const position_rights[] = {
    "EXPLAIN SELECT partition, position, batch FROM {positions} FOR UPDATE",
    "EXPLAIN INSERT INTO {positions} (partition, position, batch) VALUES ('', 0, 0)",
    "EXPLAIN DELETE FROM {positions}",
};

static int check_rights(wb_storage_session *session, wb_error *error)
{
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        if (wb_sql_schema_run(session, rights[i], NULL) != WB_OK)
            return wb_sql_report(session, "use the outbox tables", error);
    for (size_t i = 0; i < sizeof delayed_rights / sizeof delayed_rights[0]; i++)
        if (wb_sql_of(session)->outbox->delays &&
            wb_sql_schema_run(session, delayed_rights[i], NULL) != WB_OK)
            return wb_sql_report(session, "use the table of delayed messages", error);
    for (size_t i = 0; i < sizeof position_rights / sizeof position_rights[0]; i++)
        if (wb_sql_of(session)->outbox->positions && wb_sql_schema_run(session, position_rights[i], NULL) != WB_OK)
            return wb_sql_report(session, "use the table of positions", error);
    return WB_OK;
}

static int (*const checks[])(wb_storage_session *, wb_error *) = { wb_sql_check_version,
                                                                   check_rights, NULL };

static const char *const removal[] = { "DROP TABLE IF EXISTS {subscribed}", "DROP TABLE IF EXISTS {positions}",
                                       "DROP TABLE IF EXISTS {delayed}", "DROP TABLE IF EXISTS {pending}",
                                       "DROP TABLE IF EXISTS {dedup}",
                                       "DELETE FROM {schema}.waybill_locks WHERE prefix = {prefix}", NULL };
#define RENAME_TABLE(name) "ALTER TABLE IF EXISTS |{" name "}| RENAME TO {" name "_name}"
static const char *const renaming[] = { RENAME_TABLE("subscribed"), RENAME_TABLE("positions"), RENAME_TABLE("delayed"),
                                        RENAME_TABLE("pending"), RENAME_TABLE("dedup"),
                                        "ALTER INDEX IF EXISTS {schema}.|{dedup_batch}| RENAME TO {dedup_batch}",
                                        "ALTER INDEX IF EXISTS {schema}.|{delayed_due}| RENAME TO {delayed_due}",
                                        "UPDATE {schema}.waybill_locks SET prefix = {prefix} WHERE prefix = |{prefix}|", NULL };

const wb_sql_dialect pgsql_dialect = {
    .quoting = &pgsql_quoting,
    .templates = templates,
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
    .first_count = 1,
    .schema_version = SCHEMA_VERSION,
    .record_version = "INSERT INTO {endpoints} (prefix, endpoint, version) VALUES "
                      "({prefix}, {endpoint}, " TEXT_OF(SCHEMA_VERSION) ") "
                      "ON CONFLICT (prefix) DO NOTHING",
    .schema_start = "",
    .schema_end = "",
    .keys_max = 1000,
    .batch_max = INT64_MAX,
    .operations_max = (size_t)64 * 1024 * 1024,
    .clean_up_locks = 1,
    .locks_by_purpose = 1,
    .prepare_install = prepare_install,
    .checks = checks,
    .removal = removal,
    .renaming = renaming,
    .note_subscription = { "INSERT INTO {subscribed} (type) VALUES (", ") ON CONFLICT DO NOTHING" },
    .forget_subscription = { "DELETE FROM {subscribed} WHERE type = ", "" },
};

PGSQL_PLUGIN(rowlocks, "rowlocks", "outbox in a made-up server", 0)

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-dialect.h"

#include "plugins/common/sql/ages.h"
#include "plugins/persistence/mysql/mysql-driver.h"

#define SCHEMA_VERSION 2
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* ---- the outbox ------------------------------------------------------------------ */

#define OLD_RECORDS                                                                                \
    "WHERE batch >= $1 AND batch < $2 AND NOT EXISTS "                                             \
    "(SELECT 1 FROM {pending} WHERE {pending}.batch = {dedup}.batch) ORDER BY batch LIMIT $3"
#define OF_TABLE(column, table)                                                                    \
    "(SELECT " column " FROM information_schema.TABLES "                                           \
    "WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = CONCAT({prefix}, '_" table "'))"
#define LIMITED " LIMIT " TEXT_OF(WB_SQL_FUTURE_MAX) ")"

/* ---- the delayed message store --------------------------------------------------------- */

#define NOW "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
#define NEVER "9223372036854775807"
/* Of a fixed size, and never NULL: a lease is written where it stands. A row that grows is written
 * anew, which takes four times as long. */
#define NOBODY "x'00000000000000000000000000000000'"
/* Rows are found by nothing but their keys, however few there are: who read all of them would wait
 * for those that others have locked. */
#define BY_KEY "{delayed} FORCE INDEX (message) WHERE (id, destination, retries) IN ([($1,$2,$3)]) "
/* Of many numbers MariaDB would rather read, and lock, the whole table. */
#define BY_NUMBER "FORCE INDEX (PRIMARY) "
#define OF_NUMBERS "WHERE number IN ([$1])"
/* The owner's, or nobody's, as it is asked. */
#define ALLOWED                                                                                    \
    "AND ($4 = _binary x'' OR taken_by = $4) "                                                     \
    "AND ($5 = 0 OR (taken_by = " NOBODY " AND NOT doubtful))"
#define FIRST_FREE                                                                                 \
    "COALESCE((SELECT due FROM {delayed} FORCE INDEX (due) WHERE taken_until <= " NOW              \
    " ORDER BY due LIMIT 1), " NEVER ")"

/* FROM, with the index to be used, and WHERE of that id */
#define WAITING(operation, from, of_id)                                                            \
    "SELECT id, destination, retries, failures, due, " operation ", "                              \
    "GREATEST(taken_until, doubtful), number "                                                     \
    "FROM " from "WHERE " of_id "due >= $1 AND due < $5 AND (due > $1 OR number > $4) "            \
    "AND ($6 = _binary x'' OR destination = $6) ORDER BY due, number LIMIT $8"

static const char *const templates[WB_SQL_COUNT] = {
    /* READ WRITE, so that a server that takes no writes says so now and not in a handler */
    [WB_SQL_BEGIN] = "START TRANSACTION READ WRITE",
    /* whatever completion_type says */
    [WB_SQL_COMMIT] = "COMMIT AND NO CHAIN NO RELEASE",
    [WB_SQL_ROLLBACK] = "ROLLBACK AND NO CHAIN NO RELEASE",
    /* not INSERT IGNORE, which would hide other errors; an assignment of what is there
     * already counts no affected row, so that their number says how many ids are new */
    [WB_SQL_CLAIM] = "INSERT INTO {dedup} (id, batch) VALUES [($1,$2)] "
                     "ON DUPLICATE KEY UPDATE batch = batch",
    [WB_SQL_CLAIM_LATE] = "INSERT INTO {dedup} (id, batch) VALUES [($1,$2)]",
    [WB_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES ($1,$2)",
    [WB_SQL_MARK] = "DELETE FROM {pending} WHERE batch IN ([$1])",
    [WB_SQL_LOOKUP] = "SELECT id, batch FROM {dedup} WHERE id IN ([$1]) ORDER BY id",
    [WB_SQL_RELEASE] = "DELETE FROM {dedup} WHERE batch = $2 AND id IN ([$1])",
    [WB_SQL_SHRINK] = "UPDATE {pending} SET operations = $2 WHERE batch = $1",
    [WB_SQL_PENDING] = "SELECT batch, operations FROM {pending} WHERE batch IN ([$1])",
    [WB_SQL_LOCK] = "SELECT GET_LOCK($1, 0)",
    [WB_SQL_UNLOCK] = "DO RELEASE_LOCK($1)",
    [WB_SQL_NEXT] = "SELECT batch, operations FROM {pending} WHERE batch >= $1 AND batch < $2 "
                    "ORDER BY batch LIMIT 1",
    [WB_SQL_REACH] = "SELECT MAX(batch) FROM (SELECT batch FROM {dedup} " OLD_RECORDS ") AS old",
    [WB_SQL_CLEAN_UP] = "DELETE FROM {dedup} " OLD_RECORDS,
    /* in UTC, whatever the session's time zone, and without a hole or a double hour. A handler
     * that sets the session variable `timestamp` sets this clock, too */
    [WB_SQL_CLOCK] =
        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
    /* each by the right end of an index, and counted no further than the limit */
    [WB_SQL_FUTURE] =
        "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM {dedup} WHERE batch >= $1" LIMITED
        " AS records), (SELECT COUNT(*) FROM (SELECT 1 FROM {pending} WHERE "
        "SUBSTRING(operations, 1, 4) <> _binary '" WB_SQL_PARKED "' AND batch >= $1" LIMITED
        " AS pending), (SELECT MAX(batch) FROM {dedup})",
    /* MySQL remembers its estimates for a day unless told otherwise; to MariaDB that is a comment */
    [WB_SQL_STATS] =
        "SELECT /*+ SET_VAR(information_schema_stats_expiry = 0) */ "
        "(SELECT COUNT(*) FROM (SELECT 1 FROM {dedup} LIMIT $1) AS counted), "
        OF_TABLE("TABLE_ROWS", "dedup") ", "
        "(SELECT MIN(batch) FROM {dedup}), (SELECT MAX(batch) FROM {dedup}), "
        OF_TABLE("DATA_LENGTH + INDEX_LENGTH", "dedup") ", "
        OF_TABLE("DATA_LENGTH + INDEX_LENGTH", "pending"),
    [WB_SQL_COUNT_RECORDS] = "SELECT COUNT(*) FROM (SELECT batch FROM {dedup} " OLD_RECORDS ") AS records",
    [WB_SQL_HEADS] = "SELECT batch, SUBSTRING(operations, 1, $4) FROM {pending} "
                     "WHERE batch >= $1 AND batch < $2 ORDER BY batch LIMIT $3",
    [WB_SQL_DELAY] = "INSERT INTO {delayed} (id, destination, retries, due, operation) VALUES "
                     "[($1,$2,$3,$4,$5)] ON DUPLICATE KEY UPDATE failures = failures",
    /* rows that are taken stand before the first free one in the index, and only if that is not
     * due yet it matters when their leases end */
    [WB_SQL_NEXT_DUE] =
        "SELECT IF(free.due <= " NOW ", free.due, LEAST(free.due, COALESCE("
        "(SELECT MIN(taken_until) FROM {delayed} FORCE INDEX (due) "
        "WHERE taken_until > " NOW " AND due <= free.due), " NEVER "))), " NOW
        " FROM (SELECT " FIRST_FREE " AS due) AS free",
    /* an UPDATE with a LIMIT would wait for rows that another takes */
    [WB_SQL_FIND_DUE] =
        "SELECT number, LENGTH(operation) FROM {delayed} FORCE INDEX (due) "
        "WHERE due <= IF($1 = 0, " NOW ", $1) AND taken_until <= " NOW " "
        "ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED",
    /* assigned from left to right: of whom took it before, the lease has ended */
    [WB_SQL_TAKE] = "UPDATE {delayed} " BY_NUMBER "SET doubtful = doubtful OR taken_until > 0, taken_by = $2, "
                    "taken_until = " NOW " + $3 " OF_NUMBERS,
    [WB_SQL_TAKEN] = "SELECT id, destination, retries, failures, due, operation, number "
                     "FROM {delayed} " BY_NUMBER OF_NUMBERS,
    /* MySQL does not answer with what it deletes */
    [WB_SQL_FIND] =
        "SELECT id, destination, retries, number FROM " BY_KEY ALLOWED " FOR UPDATE",
    [WB_SQL_DROP] = "DELETE waiting FROM {delayed} AS waiting " BY_NUMBER OF_NUMBERS
                    " AND ($2 = _binary x'' OR taken_by = $2)",
    [WB_SQL_PUT_BACK] = "UPDATE {delayed} " BY_NUMBER "SET taken_by = " NOBODY ", taken_until = 0, "
                        "due = IF($2 = " NEVER ", due, $2), failures = failures + $3 " OF_NUMBERS,
    [WB_SQL_LIST] = WAITING("_binary x''", "{delayed} ", ""),
    [WB_SQL_SHOW] = WAITING("operation", "{delayed} FORCE INDEX (message) ", "id = $7 AND "),
};

/* ---- its tables -------------------------------------------------------------------- */

/* A later version appends its statements here. Each must be harmless where it was run
 * before: MySQL commits DDL at once, so that an installation that dies is repeated. */
static const wb_sql_definition definitions[] = {
    { 0, "which endpoints have tables here, and in which version",
      "CREATE TABLE IF NOT EXISTS {endpoints} (\n"
      "    prefix varchar(50) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,\n"
      "    endpoint varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n"
      "    version int NOT NULL,\n"
      "    installed timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP\n) ENGINE = InnoDB" },
    { 0,
      "ids that were processed, until they are deleted by age: batch >> 22 is in milliseconds "
      "since 2020",
      "CREATE TABLE IF NOT EXISTS {dedup} (\n"
      "    id varbinary(255) NOT NULL PRIMARY KEY,\n"
      "    batch bigint unsigned NOT NULL,\n"
      "    KEY batch (batch)\n) ENGINE = InnoDB" },
    { 0, "outgoing operations of a batch, from its commit until they are dispatched",
      "CREATE TABLE IF NOT EXISTS {pending} (\n"
      "    batch bigint unsigned NOT NULL PRIMARY KEY,\n"
      "    operations longblob NOT NULL\n) ENGINE = InnoDB" },
    /* rows that are due together mostly came together, and are near each other: in the order of
     * their ids, which are random, each would be a page by itself. So is the order of rows that
     * are due at the same time that of their numbers */
    { WB_SQL_FOR_DELAYS, "messages until they are due; times are microseconds since 1970",
      "CREATE TABLE IF NOT EXISTS {delayed} (\n"
      "    number bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
      "    id varbinary(255) NOT NULL,\n"
      "    destination varbinary(255) NOT NULL,\n"
      "    retries int unsigned NOT NULL,\n"
      "    due bigint NOT NULL,\n"
      "    taken_by binary(16) NOT NULL DEFAULT x'00000000000000000000000000000000',\n"
      "    taken_until bigint NOT NULL DEFAULT 0,\n"
      "    doubtful tinyint NOT NULL DEFAULT 0,\n"
      "    failures int unsigned NOT NULL DEFAULT 0,\n"
      "    operation longblob NOT NULL,\n"
      "    UNIQUE KEY message (id, destination, retries),\n"
      "    KEY due (due)\n) ENGINE = InnoDB" },
};

#define RECORD_VERSION                                                                             \
    "INSERT INTO {endpoints} (prefix, endpoint, version)\n"                                        \
    "    VALUES ({prefix}, {endpoint}, " TEXT_OF(SCHEMA_VERSION) ")\n"                         \
    "    ON DUPLICATE KEY UPDATE version = version"

const wb_sql_dialect mys_dialect = {
    .quoting = &mys_quoting,
    .templates = templates,
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
    .first_count = 1,
    .schema_version = SCHEMA_VERSION,
    .record_version = RECORD_VERSION,
    .schema_start = "",
    .schema_end = "",
    /* 270 KB of text at most, whatever the size of the batch */
    .keys_max = 500,
    .batch_max = UINT64_MAX,
    .operations_max = SIZE_MAX,
    .prepare_install = mys_prepare_install,
    .checks = mys_checks,
};

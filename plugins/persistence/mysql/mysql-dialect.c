/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-dialect.h"

#include "plugins/common/sql/ages.h"
#include "plugins/persistence/mysql/mysql-driver.h"

#define SCHEMA_VERSION 2
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* ---- the outbox ------------------------------------------------------------------ */

#define NEW_RECORDS                                                                                \
    "INSERT INTO {dedup} (id, batch) VALUES [($1,$2)] ON DUPLICATE KEY UPDATE batch = batch"
#define RECORDS_GO "DELETE gone FROM {dedup} AS gone FORCE INDEX (PRIMARY) WHERE gone.batch = $2 AND gone.id IN ([$1])"
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
/* Of many numbers MariaDB would rather read, and lock, the whole table. A DELETE of which nothing but its numbers
 * is said does so whatever index is forced (10.11, 2 of 6 rows): it joins them, or says something of another column. */
#define BY_NUMBER "FORCE INDEX (PRIMARY) "
#define OF_NUMBERS "WHERE number IN ([$1])"
/* Row by row, by primary key: who reads all waits for whoever has a transaction open. */
#define NUMBERS_JOIN(table, column)                                                                \
    "JSON_TABLE(JSON_ARRAY([$1]), '$[*]' COLUMNS (number bigint unsigned PATH '$')) AS gone "      \
    "STRAIGHT_JOIN " table " FORCE INDEX (PRIMARY) ON " column " = gone.number"
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

/* ---- what programs write ---------------------------------------------------------------- */

/* WB_WRITTEN_HEADERS_SIZE_MAX, WB_WRITTEN_BODY_MAX */
#define WRITTEN_HEADERS_MAX "65536"
#define WRITTEN_BODY_MAX "67108864"
/* What an answer holds beside headers and body. */
#define ROW_BESIDE "4096"
/* Behind a row that waits, or is of a later form, nothing with its key may go. Such rows are found by their time, and
 * their form, once: looked for from each other row they were read thousands of times. */
#define HELD_KEYS                                                                                  \
    "SELECT `key`, MIN(number) AS number FROM "                                                    \
    "(SELECT `key`, number FROM {written} FORCE INDEX (held) WHERE due > " NOW " UNION ALL "        \
    "SELECT `key`, number FROM {written} FORCE INDEX (later) WHERE form > $3) AS waiting "         \
    "WHERE `key` IS NOT NULL GROUP BY `key`"
#define WRITTEN_ROWS                                                                               \
    "SELECT written.number, written.size FROM {written} AS written FORCE INDEX (PRIMARY) "         \
    "LEFT JOIN (" HELD_KEYS ") AS held ON held.`key` = written.`key` AND held.number < written.number " \
    "WHERE written.number > $4 AND written.due <= " NOW " AND written.form <= $3 AND held.number IS NULL " \
    "ORDER BY written.number LIMIT $1"

static const char *const templates[WB_SQL_COUNT] = {
    /* READ WRITE, so that a server that takes no writes says so now and not in a handler */
    [WB_SQL_BEGIN] = "START TRANSACTION READ WRITE",
    /* whatever completion_type says */
    [WB_SQL_COMMIT] = "COMMIT AND NO CHAIN NO RELEASE",
    [WB_SQL_ROLLBACK] = "ROLLBACK AND NO CHAIN NO RELEASE",
    /* not INSERT IGNORE, which would hide other errors; an assignment of what is there
     * already counts no affected row, so that their number says how many ids are new */
    [WB_SQL_CLAIM] = NEW_RECORDS,
    [WB_SQL_REMEMBER] = NEW_RECORDS, /* its numbers are a list, too */
    [WB_SQL_CLAIM_LATE] = "INSERT INTO {dedup} (id, batch) VALUES ($1,$2)",
    [WB_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES ($1,$2)",
    [WB_SQL_MARK] = "DELETE FROM {pending} WHERE batch IN ([$1])",
    [WB_SQL_LOOKUP] = "SELECT id, batch FROM {dedup} WHERE id IN ([$1]) ORDER BY id",
    [WB_SQL_RELEASE] = RECORDS_GO,
    [WB_SQL_FORGET] = RECORDS_GO,
    /* a join costs 30 us more than one number does */
    [WB_SQL_MARK_MANY] = "DELETE sent FROM " NUMBERS_JOIN("{pending} AS sent", "sent.batch"),
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
    [WB_SQL_WRITTEN_LOOK] = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = {database} "
                            "AND table_name = CONCAT({prefix}, '_written')",
    [WB_SQL_WRITTEN_LAST] = "SELECT MAX(number) FROM {written}",
    [WB_SQL_WRITTEN_COUNT] = "SELECT COUNT(*) FROM (SELECT 1 FROM {written} LIMIT $1) AS counted",
    /* bodies are not carried through the sum */
    [WB_SQL_WRITTEN_FETCH] =
        "SELECT number, form, tries, written, id, destination, type, headers, `key`, body FROM "
        "(SELECT number AS found, SUM(size) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) - size AS ahead "
        "FROM (" WRITTEN_ROWS ") AS due) AS sizes "
        "JOIN {written} ON number = found WHERE ahead < $2 ORDER BY number",
    [WB_SQL_WRITTEN_REMOVE] = "DELETE sent FROM " NUMBERS_JOIN("{written} AS sent", "sent.number"),
    [WB_SQL_WRITTEN_POSTPONE] =
        "UPDATE {written} SET due = " NOW " + $2, tries = tries + $3, reason = $4 WHERE number = $1",
    [WB_SQL_WRITTEN_SEND] = "CALL {send}($1, $2, $3, $4, $5, @waybill_answer)",
    [WB_SQL_WRITTEN_PUBLISH] = "CALL {publish}($1, $2, $3, $4, @waybill_answer)",
    [WB_SQL_WRITTEN_CLAIM] = "CALL {claim}($1, @waybill_answer)",
    [WB_SQL_WRITTEN_CLAIMED] = "SELECT @waybill_answer",
    [WB_SQL_POSITION_LOCK] =
        "SELECT position, batch FROM {positions} WHERE `partition` = $1 FOR UPDATE",
    [WB_SQL_POSITION_MOVE] = "UPDATE {positions} SET position = $2, batch = $3 "
                             "WHERE `partition` = $1 AND position < $2",
    [WB_SQL_POSITION_MAKE] = "INSERT INTO {positions} (`partition`, position, batch) "
                             "VALUES ($1, 0, 0) ON DUPLICATE KEY UPDATE batch = batch",
    [WB_SQL_POSITION_BACK] = "UPDATE {positions} SET position = $2, batch = $4 "
                             "WHERE `partition` = $1 AND batch = $3",
    [WB_SQL_POSITIONS] = "SELECT `partition`, position, batch FROM {positions}",
    [WB_SQL_POSITIONS_FORGET] = "DELETE FROM {positions}",
    /* assigned from left to right: when it failed last of all */
    [WB_SQL_FAILED_PUT] =
        "INSERT INTO {failed} (id, status, attempts, failed_at, changed_at, summary, message) "
        "VALUES ($1, 1, 1, $2, $3, $4, $5) ON DUPLICATE KEY UPDATE "
        "status = IF(failed_at = $2, status, 1), attempts = attempts + (failed_at <> $2), "
        "changed_at = IF(failed_at = $2, changed_at, $3), summary = IF(failed_at = $2, summary, $4), "
        "message = IF(failed_at = $2, message, VALUES(message)), failed_at = $2",
    [WB_SQL_FAILED_TURN] = "UPDATE {failed} SET status = $3, changed_at = $4 WHERE id = $1 AND status = $2",
    [WB_SQL_FAILED_DISCARD] = "DELETE FROM {failed} WHERE id = $1 AND status = $2",
    [WB_SQL_FAILED_GET] = "SELECT id, status, attempts, failed_at, changed_at, summary, message FROM {failed} WHERE id = $1",
    [WB_SQL_FAILED_LIST] =
        "SELECT id, status, attempts, failed_at, changed_at, summary, _binary x'' FROM {failed} FORCE INDEX (listed) "
        "WHERE failed_at >= $2 AND (failed_at > $2 OR id > $3) AND failed_at < $4 AND ($1 = 0 OR status = $1) "
        "ORDER BY failed_at, id LIMIT $5",
    [WB_SQL_FAILED_CLEAN_UP] =
        "DELETE FROM {failed} WHERE status <> 1 AND changed_at < $1 ORDER BY changed_at LIMIT $2",
};

/* ---- its tables -------------------------------------------------------------------- */

/* Programs call these with the rights of whoever installed them; a user needs EXECUTE. Procedures, since
 * to make a function takes a privilege of the server where the binary log is on. */
#define PROCEDURE(name, parameters)                                                                \
    "CREATE PROCEDURE IF NOT EXISTS " name "(" parameters ")\n"                                   \
    "    MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT '" MYS_PROCEDURES "'\nBEGIN\n"
#define TEXT_IN(name) "IN " name " longtext CHARACTER SET utf8mb4"
#define REFUSE(text) "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '" text "';\n"
#define REFUSE_UNLESS(condition, text)                                                             \
    "    IF (" condition ") IS NOT TRUE THEN\n        " REFUSE(text) "    END IF;\n"
#define IS_NAME(name) "LENGTH(" name ") BETWEEN 1 AND 255 AND " name " NOT REGEXP '[[:cntrl:]]'"
#define COMMON_PARAMETERS                                                                          \
    TEXT_IN("p_type") ", IN p_body longblob, " TEXT_IN("p_headers") ", " TEXT_IN("p_key") ", OUT p_id varchar(36)"

/* Keys wait for each other by rows that are locked until the commit, of which there are so many. A number is
 * drawn once that is had, so that of rows with one key the numbers are in the order of their commits. */
#define LANES "1024" /* 32 times 32 */
#define WRITE_PROCEDURE                                                                            \
    PROCEDURE("{write}", TEXT_IN("p_destination") ", " COMMON_PARAMETERS)                          \
    "    DECLARE v_lane, v_at int DEFAULT 0;\n"                                                   \
    "    DECLARE v_values longtext CHARACTER SET utf8mb4;\n"                                      \
    REFUSE_UNLESS(IS_NAME("p_type"), "a type has 1 to 255 bytes and no control characters")        \
    REFUSE_UNLESS("p_key IS NULL OR LENGTH(p_key) BETWEEN 1 AND 255", "a key is NULL, or has 1 to 255 bytes") \
    "    IF p_headers IS NOT NULL THEN\n"                                                         \
    "    " REFUSE_UNLESS("JSON_VALID(p_headers)", "headers are a JSON object of strings")          \
    "    " REFUSE_UNLESS("JSON_TYPE(p_headers) = 'OBJECT'", "headers are a JSON object of strings") \
    "    " REFUSE_UNLESS("LENGTH(p_headers) <= " WRITTEN_HEADERS_MAX, "headers have 64 KiB at most") \
    "    " REFUSE_UNLESS("JSON_LENGTH(p_headers) <= 256", "there are 256 headers at most")         \
    "        SET v_values = JSON_EXTRACT(p_headers, '$.*');\n"                                    \
    "        WHILE v_at < COALESCE(JSON_LENGTH(v_values), 0) DO\n"                                \
    "        " REFUSE_UNLESS("JSON_TYPE(JSON_EXTRACT(v_values, CONCAT('$[', v_at, ']'))) = 'STRING'", \
                             "headers are a JSON object of strings")                               \
    "            SET v_at = v_at + 1;\n"                                                          \
    "        END WHILE;\n"                                                                        \
    "    END IF;\n"                                                                               \
    REFUSE_UNLESS("COALESCE(LENGTH(p_body), 0) <= " WRITTEN_BODY_MAX, "a body has 64 MiB at most")  \
    REFUSE_UNLESS("COALESCE(LENGTH(p_body), 0) + COALESCE(LENGTH(p_headers), 0) <= @@max_allowed_packet - " ROW_BESIDE, \
                  "headers and body have max_allowed_packet less 4 KiB at most")                   \
    "    IF p_key IS NOT NULL THEN\n"                                                             \
    "        SELECT lane INTO v_lane FROM {lanes} WHERE lane = CRC32(p_key) MOD " LANES " FOR UPDATE;\n" \
    "    END IF;\n"                                                                               \
    "    SET p_id = UUID();\n"                                                                    \
    "    INSERT INTO {written} (written, id, destination, type, headers, `key`, body)\n"          \
    "        VALUES (" NOW ", p_id, p_destination, p_type, p_headers, p_key, COALESCE(p_body, ''));\n" \
    "END"

#define SEND_PROCEDURE                                                                             \
    PROCEDURE("{send}", TEXT_IN("p_destination") ", " COMMON_PARAMETERS)                           \
    REFUSE_UNLESS(IS_NAME("p_destination"), "a destination has 1 to 255 bytes and no control characters") \
    "    CALL {write}(p_destination, p_type, p_body, p_headers, p_key, p_id);\n"                  \
    "END"
#define PUBLISH_PROCEDURE                                                                          \
    PROCEDURE("{publish}", COMMON_PARAMETERS)                                                      \
    "    CALL {write}(NULL, p_type, p_body, p_headers, p_key, p_id);\n"                           \
    "END"

/* A record beside the endpoint's own, under a key that none of these has: what the endpoint handled a program may
 * have to handle, too. Its batch number is the time, and 22 bits of which some are set. It is
 * ours if the number is: how many rows were changed, a client may have asked to count in another way. */
#define CLAIM_PROCEDURE                                                                            \
    PROCEDURE("{claim}", TEXT_IN("p_message_id") ", OUT p_is_new tinyint")                         \
    "    DECLARE v_batch bigint unsigned DEFAULT ((" NOW " DIV 1000 - 1577836800000) << 22) + 1 + FLOOR(RAND() * 4194303);\n" \
    "    DECLARE v_id varbinary(255);\n"                                                          \
    REFUSE_UNLESS("LENGTH(p_message_id) BETWEEN 1 AND 248", "a message id has 1 to 248 bytes")     \
    "    SET v_id = CAST(CONCAT('claim/', p_message_id) AS BINARY);\n"                                              \
    "    INSERT INTO {dedup} (id, batch) VALUES (v_id, v_batch) ON DUPLICATE KEY UPDATE batch = batch;\n" \
    "    SELECT batch = v_batch INTO p_is_new FROM {dedup} WHERE id = v_id FOR UPDATE;\n"         \
    "END"

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
    { WB_SQL_FOR_PROGRAMS, "messages that programs wrote, from their commit until they are sent",
      "CREATE TABLE IF NOT EXISTS {written} (\n"
      "    number bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,\n"
      "    form int unsigned NOT NULL DEFAULT 1,\n"
      "    written bigint NOT NULL,\n"
      "    due bigint NOT NULL DEFAULT 0,\n"
      "    tries bigint unsigned NOT NULL DEFAULT 0,\n"
      "    size bigint unsigned AS (LENGTH(body) + COALESCE(LENGTH(headers), 0)) STORED,\n"
      "    id varbinary(255) NOT NULL,\n"
      "    destination varbinary(255),\n"
      "    type varbinary(255) NOT NULL,\n"
      "    headers longblob,\n"
      "    `key` varbinary(255),\n"
      "    reason longblob,\n"
      "    body longblob NOT NULL,\n"
      "    CHECK (LENGTH(id) > 0 AND LENGTH(type) > 0 AND LENGTH(destination) > 0 AND LENGTH(`key`) > 0),\n"
      "    CHECK (LENGTH(headers) <= " WRITTEN_HEADERS_MAX " AND LENGTH(body) <= " WRITTEN_BODY_MAX "),\n"
      "    KEY held (due, `key`, number),\n"
      "    KEY later (form)\n) ENGINE = InnoDB" },
    { WB_SQL_FOR_PROGRAMS, "what writers of one key wait for",
      "CREATE TABLE IF NOT EXISTS {lanes} (lane int NOT NULL PRIMARY KEY) ENGINE = InnoDB" },
    { WB_SQL_FOR_PROGRAMS, NULL,
      "INSERT INTO {lanes} (lane)\n"
      "    WITH RECURSIVE digits (digit) AS (SELECT 0 UNION ALL SELECT digit + 1 FROM digits WHERE digit < 31)\n"
      "    SELECT 32 * high.digit + low.digit FROM digits AS high, digits AS low\n"
      "    ON DUPLICATE KEY UPDATE {lanes}.lane = {lanes}.lane" },
    { WB_SQL_FOR_PROGRAMS, "not for programs: what the next two call", WRITE_PROCEDURE },
    { WB_SQL_FOR_PROGRAMS, "users that may call these three need EXECUTE on them; the last parameter tells the message's id",
      SEND_PROCEDURE },
    { WB_SQL_FOR_PROGRAMS, NULL, PUBLISH_PROCEDURE },
    { WB_SQL_FOR_PROGRAMS, "and of this one whether the message is new", CLAIM_PROCEDURE },
    { WB_SQL_FOR_POSITIONS, "how far each partition of the transport is done with, and by which batch",
      "CREATE TABLE IF NOT EXISTS {positions} (\n"
      "    `partition` varbinary(300) NOT NULL PRIMARY KEY,\n"
      "    position bigint NOT NULL,\n"
      "    batch bigint unsigned NOT NULL\n) ENGINE = InnoDB" },
    { WB_SQL_FOR_SUBSCRIPTIONS, "event types that an installation subscribed to",
      "CREATE TABLE IF NOT EXISTS {subscribed} (type varbinary(255) NOT NULL PRIMARY KEY) ENGINE = InnoDB" },
    { WB_SQL_FOR_FAILURES, "messages of an error queue; times are microseconds since 1970",
      "CREATE TABLE IF NOT EXISTS {failed} (\n"
      "    id varbinary(64) NOT NULL PRIMARY KEY,\n"
      "    status int unsigned NOT NULL,\n"
      "    attempts int unsigned NOT NULL,\n"
      "    failed_at bigint NOT NULL,\n"
      "    changed_at bigint NOT NULL,\n"
      "    summary mediumblob NOT NULL,\n"
      "    message longblob NOT NULL,\n"
      "    KEY listed (failed_at, id),\n"
      "    KEY changed (changed_at)\n) ENGINE = InnoDB" },
};

static const char *const removal[] = {
    "DROP PROCEDURE IF EXISTS {send}", "DROP PROCEDURE IF EXISTS {publish}", "DROP PROCEDURE IF EXISTS {claim}",
    "DROP PROCEDURE IF EXISTS {write}", "DROP TABLE IF EXISTS {failed}", "DROP TABLE IF EXISTS {written}", "DROP TABLE IF EXISTS {lanes}",
    "DROP TABLE IF EXISTS {subscribed}", "DROP TABLE IF EXISTS {positions}", "DROP TABLE IF EXISTS {delayed}",
    "DROP TABLE IF EXISTS {pending}", "DROP TABLE IF EXISTS {dedup}", NULL,
};
static const char *const renaming[] = {
    "DROP PROCEDURE IF EXISTS |{send}|", "DROP PROCEDURE IF EXISTS |{publish}|", "DROP PROCEDURE IF EXISTS |{claim}|",
    "DROP PROCEDURE IF EXISTS |{write}|", NULL,
};

static const char *const written_probes[] = {
    "SELECT number, form, written, due, tries, size, id, destination, type, headers, `key`, reason, body FROM {written} "
    "WHERE 1 = 0",
    "SELECT lane FROM {lanes} WHERE 1 = 0",
    NULL,
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
    .compound_start = "DELIMITER //\n",
    .compound_end = "//\nDELIMITER ;\n",
    /* 270 KB of text at most, whatever the size of the batch */
    .keys_max = 500,
    .batch_max = UINT64_MAX,
    .operations_max = SIZE_MAX,
    .prepare_install = mys_prepare_install,
    .checks = mys_checks,
    .questions = mys_questions,
    .written_probes = written_probes,
    .removal = removal,
    .renaming = renaming,
    .rename_tables = mys_rename_tables,
    .has_tables = mys_has_tables,
    .note_subscription = { "INSERT IGNORE INTO {subscribed} (type) VALUES (", ")" },
    .forget_subscription = { "DELETE FROM {subscribed} WHERE type = ", "" },
};

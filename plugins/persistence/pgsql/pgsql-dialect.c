/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-dialect.h"

#include <string.h>

#include "plugins/common/sql/ages.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"

#define SCHEMA_VERSION 2
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* ---- the outbox ------------------------------------------------------------------ */

/* A lost mark means a duplicate with the same id and bytes: not worth a flush to disk.
 * set_config() in the statement itself makes it one statement instead of four; being in
 * a subquery it runs once, and not at all when no row is there to be written. */
#define NOT_FLUSHED "(SELECT pg_catalog.set_config('synchronous_commit', 'off', true)) IS NOT NULL"

/* Taken until the end of the transaction, or not at all: another instance has it. */
#define WITH_LOCK                                                                                  \
    "WITH lock AS MATERIALIZED "                                                                   \
    "(SELECT pg_catalog.pg_try_advisory_xact_lock($4::bigint) AS ours) "

/* A table's entry in the catalog. */
#define ENTRY_OF(table)                                                                            \
    "FROM pg_catalog.pg_class AS entry JOIN pg_catalog.pg_namespace AS space "                     \
    "ON space.oid = entry.relnamespace "                                                           \
    "WHERE space.nspname = {database} AND entry.relname = {prefix} || '_" table "'"

/* WB_WRITTEN_HEADERS_SIZE_MAX, WB_WRITTEN_BODY_MAX */
#define WRITTEN_HEADERS_MAX "65536"
#define WRITTEN_BODY_MAX "67108864"

#define LIMITED "LIMIT " TEXT_OF(WB_SQL_FUTURE_MAX) ")"

/* ---- the delayed message store --------------------------------------------------------- */

#define NOW "(SELECT now FROM clock)"
#define NEVER TEXT_OF_BIGINT(9223372036854775807)
#define TEXT_OF_BIGINT(number) "'" #number "'::bigint"

#define KEYS                                                                                       \
    "ROWS FROM (pg_catalog.unnest($1::bytea[]), pg_catalog.unnest($2::bytea[]), "                  \
    "pg_catalog.unnest($3::bigint[])) AS keys (id, destination, retries) "
/* The row of a key, if it is the owner's, or nobody's, as it is asked. */
#define OF_KEYS                                                                                    \
    "WHERE delayed.id = keys.id AND delayed.destination = keys.destination "                       \
    "AND delayed.retries = keys.retries "                                                          \
    "AND ($4::bytea = ''::bytea OR delayed.taken_by = $4::bytea) "                                 \
    "AND ($5::bigint = 0 OR (delayed.taken_by IS NULL AND NOT delayed.doubtful)) "                 \
    "RETURNING delayed.id, delayed.destination, delayed.retries"

/* Where a row is: block and line in one number. It stays there as long as nobody changes it, and the
 * table is not written anew (VACUUM FULL). */
#define PLACE "('x' || pg_catalog.encode(pg_catalog.tidsend(ctid), 'hex'))::bit(48)::bigint"
#define OF_PLACE "pg_catalog.format('(%s,%s)', keys.place >> 16, keys.place & 65535)::tid"

#define WAITING(operation)                                                                         \
    "SELECT id, destination, retries, failures, due, " operation ", "                              \
    "GREATEST(taken_until, doubtful::integer), retries "                                           \
    "FROM {delayed} WHERE due >= $1::bigint AND due < $5::bigint "                                 \
    "AND (due > $1::bigint OR (id, destination, retries) > ($2::bytea, $3::bytea, $4::bigint)) "   \
    "AND ($6::bytea = ''::bytea OR destination = $6::bytea) "                                      \
    "AND ($7::bytea = ''::bytea OR id = $7::bytea) "                                               \
    "ORDER BY due, id, destination, retries LIMIT $8::bigint"

/* ---- what programs write ---------------------------------------------------------------- */

/* As the index {written_held} says it, word for word. */
#define MAY_BE_HELD "due > 0 OR form > 1"
/* Behind a row that waits, or is of a later form, nothing with its key may go. */
#define WRITTEN_ROWS                                                                               \
    "SELECT number, form, tries, written, id, destination, type, headers, key, body, "             \
    "pg_catalog.octet_length(type) + COALESCE(pg_catalog.octet_length(headers), 0) "               \
    "+ COALESCE(pg_catalog.octet_length(key), 0) + pg_catalog.octet_length(body) AS size "         \
    "FROM {written} AS written WHERE number > $4::bigint AND due <= " NOW " AND form <= $3::bigint AND (key IS NULL OR NOT EXISTS " \
    "(SELECT FROM (SELECT * FROM {written} WHERE " MAY_BE_HELD ") AS held "                        \
    "WHERE (held.due > " NOW " OR held.form > $3::bigint) "                                        \
    "AND held.key = written.key AND held.number < written.number)) "                               \
    "ORDER BY number LIMIT $1::bigint"

static const char *const templates[WB_SQL_COUNT] = {
    /* READ COMMITTED, because under REPEATABLE READ a claim may skip a record that it
     * cannot see; READ WRITE, so that a standby says so now and not in a handler */
    [WB_SQL_BEGIN] = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    /* unnest() yields the array's order and nothing here sorts: two batches that share
     * ids meet them in the same order and never deadlock */
    [WB_SQL_CLAIM] = "INSERT INTO {dedup} (key, batch) "
                     "SELECT key, $2::bigint "
                     "FROM pg_catalog.unnest($1::bytea[]) AS claims (key) "
                     "ON CONFLICT DO NOTHING",
    [WB_SQL_CLAIM_LATE] = "INSERT INTO {dedup} (key, batch) VALUES ($1::bytea, $2::bigint)",
    [WB_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES ($1::bigint, $2::bytea)",
    [WB_SQL_MARK] = "DELETE FROM {pending} WHERE batch = ANY ($1::bigint[]) AND " NOT_FLUSHED,
    [WB_SQL_MARK_ONE] = "DELETE FROM {pending} WHERE batch = $1::bigint AND " NOT_FLUSHED,
    [WB_SQL_FORGET] = "DELETE FROM {dedup} WHERE key = ANY ($1::bytea[]) AND batch = $2::bigint AND " NOT_FLUSHED,
    /* in the order of the arrays, as CLAIM */
    [WB_SQL_REMEMBER] = "INSERT INTO {dedup} (key, batch) SELECT key, batch FROM ROWS FROM "
                        "(pg_catalog.unnest($1::bytea[]), pg_catalog.unnest($2::bigint[])) "
                        "AS remembered (key, batch) ON CONFLICT DO NOTHING",
    [WB_SQL_COMMIT] = "COMMIT",
    [WB_SQL_ROLLBACK] = "ROLLBACK",
    [WB_SQL_LOOKUP] = "SELECT dedup.key, dedup.batch "
                      "FROM pg_catalog.unnest($1::bytea[]) WITH ORDINALITY "
                      "AS claims (key, position) "
                      "JOIN {dedup} AS dedup ON dedup.key = claims.key "
                      "ORDER BY claims.position",
    [WB_SQL_RELEASE] =
        "DELETE FROM {dedup} WHERE key = ANY ($1::bytea[]) AND batch = $2::bigint",
    [WB_SQL_SHRINK] = "UPDATE {pending} SET operations = $2::bytea "
                      "WHERE batch = $1::bigint AND " NOT_FLUSHED,
    [WB_SQL_PENDING] =
        "SELECT batch, operations FROM {pending} WHERE batch = ANY ($1::bigint[])",
    /* the session's, so that no transaction is open while rows are visited */
    [WB_SQL_LOCK] = "SELECT pg_catalog.pg_try_advisory_lock($1::bigint)::integer::bigint",
    /* a time limit for transactions, idle or not, would end this one while its rows are
     * dispatched. Only those that the server knows can be set aside: one is new in version 17 */
    [WB_SQL_LOCK_IN_TRANSACTION] =
        "SELECT (pg_catalog.pg_try_advisory_xact_lock($1::bigint) AND "
        "(SELECT pg_catalog.count(pg_catalog.set_config(name, '0', true)) "
        "FROM pg_catalog.pg_settings WHERE name IN "
        "('idle_in_transaction_session_timeout', 'transaction_timeout')) > 0)::integer::bigint",
    [WB_SQL_UNLOCK] = "SELECT pg_catalog.pg_advisory_unlock($1::bigint)",
    [WB_SQL_NEXT] = "SELECT batch, operations FROM {pending} "
                    "WHERE batch >= $1::bigint AND batch < $2::bigint ORDER BY batch LIMIT 1",
    /* rows are found by the index on batch, oldest first, and deleted by their place. Pending
     * rows in the range of the records only, or a plan may read all that some snapshot keeps of
     * them. Not FOR UPDATE SKIP LOCKED: the advisory lock keeps rivals out, nobody else touches
     * old records, and row locks would need a privilege and write 1.4 times the WAL */
    [WB_SQL_CLEAN_UP] =
        WITH_LOCK
        "DELETE FROM {dedup} WHERE ctid = ANY (ARRAY("
        "SELECT old.ctid FROM {dedup} AS old "
        "WHERE (SELECT ours FROM lock) AND old.batch >= $1::bigint AND old.batch < $2::bigint "
        "AND NOT EXISTS (SELECT FROM {pending} AS pending WHERE pending.batch = old.batch AND "
        "pending.batch >= $1::bigint AND pending.batch < $2::bigint) "
        "ORDER BY old.batch LIMIT $3::bigint)) RETURNING batch",
    [WB_SQL_CLOCK] =
        "SELECT (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::bigint",
    /* each by the right end of an index, and counted no further than the limit */
    [WB_SQL_FUTURE] =
        "SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM {dedup} WHERE batch >= $1::bigint "
        LIMITED " AS records), "
        "(SELECT pg_catalog.count(*) FROM (SELECT FROM {pending} WHERE batch >= $1::bigint AND "
        "pg_catalog.substr(operations, 1, 4) <> '" WB_SQL_PARKED "'::bytea " LIMITED
        " AS pending), "
        "(SELECT pg_catalog.max(batch) FROM {dedup})",
    /* the estimate is the planner's: records a page when it was analyzed, and the pages of today */
    [WB_SQL_STATS] =
        "SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM {dedup} LIMIT $1::bigint) AS counted), "
        "(SELECT (entry.reltuples::float8 / entry.relpages * pg_catalog.pg_relation_size(entry.oid) / "
        "pg_catalog.current_setting('block_size')::bigint)::bigint " ENTRY_OF("dedup")
        " AND entry.reltuples > 0 AND entry.relpages > 0), "
        "(SELECT pg_catalog.min(batch) FROM {dedup}), (SELECT pg_catalog.max(batch) FROM {dedup}), "
        "(SELECT pg_catalog.pg_total_relation_size(entry.oid) " ENTRY_OF("dedup") "), "
        "(SELECT pg_catalog.pg_total_relation_size(entry.oid) " ENTRY_OF("pending") ")",
    [WB_SQL_COUNT_RECORDS] =
        "SELECT pg_catalog.count(*) FROM (SELECT FROM {dedup} AS old "
        "WHERE old.batch >= $1::bigint AND old.batch < $2::bigint "
        "AND NOT EXISTS (SELECT FROM {pending} AS pending WHERE pending.batch = old.batch AND "
        "pending.batch >= $1::bigint AND pending.batch < $2::bigint) "
        "ORDER BY old.batch LIMIT $3::bigint) AS records",
    [WB_SQL_HEADS] = "SELECT batch, pg_catalog.substr(operations, 1, $4::bigint::integer) FROM {pending} "
                     "WHERE batch >= $1::bigint AND batch < $2::bigint ORDER BY batch LIMIT $3::bigint",
    /* statistics are always those of a while ago, when nothing or everything was due; that an
     * index is better is known without them */
    [WB_SQL_PLAN] = "SELECT pg_catalog.set_config('enable_seqscan', 'off', true)",
    [WB_SQL_DELAY] = "INSERT INTO {delayed} (id, destination, retries, due, operation) "
                     "SELECT id, destination, retries, due, operation "
                     "FROM ROWS FROM (pg_catalog.unnest($1::bytea[]), "
                     "pg_catalog.unnest($2::bytea[]), pg_catalog.unnest($3::bigint[]), "
                     "pg_catalog.unnest($4::bigint[]), pg_catalog.unnest($5::bytea[])) "
                     "AS messages (id, destination, retries, due, operation) "
                     "ON CONFLICT DO NOTHING",
    /* rows that are taken stand before the first free one in the index, and only if that is not
     * due yet it matters when their leases end */
    [WB_SQL_NEXT_DUE] =
        "WITH clock AS MATERIALIZED (SELECT "
        "(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now), "
        "free AS MATERIALIZED (SELECT COALESCE((SELECT due FROM {delayed} "
        "WHERE taken_until <= " NOW " ORDER BY due LIMIT 1), " NEVER ") AS due) "
        "SELECT CASE WHEN (SELECT due FROM free) <= " NOW " THEN (SELECT due FROM free) "
        "ELSE LEAST((SELECT due FROM free), (SELECT pg_catalog.min(taken_until) FROM {delayed} "
        "WHERE taken_until > " NOW " AND due <= (SELECT due FROM free))) END, " NOW,
    /* locked, so that nobody waits for anybody; flushed, since a lease that a crashed server forgot
     * would have cancel() say of what was sent that it was not */
    [WB_SQL_TAKE] =
        "WITH clock AS MATERIALIZED (SELECT "
        "(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now), "
        "found AS MATERIALIZED (SELECT ctid AS place, due, "
        "pg_catalog.octet_length(operation) AS size FROM {delayed} "
        "WHERE due <= COALESCE(NULLIF($1::bigint, 0), " NOW ") AND taken_until <= " NOW " "
        "ORDER BY due LIMIT $2::bigint FOR UPDATE SKIP LOCKED), "
        "fitting AS (SELECT place FROM (SELECT place, pg_catalog.sum(size) "
        "OVER (ORDER BY due ROWS UNBOUNDED PRECEDING) - size AS before FROM found) AS sizes "
        "WHERE before < $5::bigint) "
        "UPDATE {delayed} SET doubtful = doubtful OR taken_until > 0, taken_by = $3::bytea, "
        "taken_until = " NOW " + $4::bigint "
        "WHERE ctid = ANY (ARRAY(SELECT place FROM fitting)) "
        "RETURNING id, destination, retries, failures, due, operation, " PLACE,
    [WB_SQL_DROP_THERE] =
        "DELETE FROM {delayed} AS delayed USING ROWS FROM (pg_catalog.unnest($1::bytea[]), "
        "pg_catalog.unnest($2::bytea[]), pg_catalog.unnest($3::bigint[]), "
        "pg_catalog.unnest($5::bigint[])) AS keys (id, destination, retries, place) "
        "WHERE delayed.ctid = " OF_PLACE " AND delayed.id = keys.id "
        "AND delayed.destination = keys.destination AND delayed.retries = keys.retries "
        "AND delayed.taken_by = $4::bytea",
    [WB_SQL_DROP] = "DELETE FROM {delayed} AS delayed USING " KEYS OF_KEYS,
    [WB_SQL_PUT_BACK] = "UPDATE {delayed} AS delayed SET taken_by = NULL, taken_until = 0, "
                        "due = COALESCE(NULLIF($6::bigint, " NEVER "), delayed.due), "
                        "failures = delayed.failures + $7::bigint "
                        "FROM " KEYS OF_KEYS,
    [WB_SQL_LIST] = WAITING("''::bytea"),
    [WB_SQL_SHOW] = WAITING("operation"),
    /* to_regclass() says NULL, instead of failing, for what is absent */
    [WB_SQL_WRITTEN_LOOK] =
        "SELECT (pg_catalog.to_regclass(pg_catalog.format('%I.%I', {database}, {prefix} || '_written')) "
        "IS NOT NULL)::integer::bigint",
    [WB_SQL_WRITTEN_LAST] = "SELECT pg_catalog.max(number) FROM {written}",
    [WB_SQL_WRITTEN_COUNT] = "SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {written} LIMIT $1::bigint) AS counted",
    [WB_SQL_WRITTEN_FETCH] =
        "WITH clock AS MATERIALIZED (SELECT "
        "(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now), "
        "found AS (" WRITTEN_ROWS ") "
        "SELECT number, form, tries, written, id, destination, type, headers, key, body FROM "
        "(SELECT *, pg_catalog.sum(size) OVER (ORDER BY number ROWS UNBOUNDED PRECEDING) - size AS before "
        "FROM found) AS sizes WHERE before < $2::bigint ORDER BY number",
    [WB_SQL_WRITTEN_REMOVE] =
        "DELETE FROM {written} WHERE number = ANY ($1::bigint[]) AND " NOT_FLUSHED,
    [WB_SQL_WRITTEN_POSTPONE] =
        "UPDATE {written} SET due = (EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000)::bigint "
        "+ $2::bigint, tries = tries + $3::bigint, reason = $4::text "
        "WHERE number = $1::bigint AND " NOT_FLUSHED,
    [WB_SQL_WRITTEN_SEND] = "SELECT {send}($1::text, $2::text, $3::bytea, $4::text::jsonb, $5::text)",
    [WB_SQL_WRITTEN_PUBLISH] = "SELECT {publish}($1::text, $2::bytea, $3::text::jsonb, $4::text)",
    [WB_SQL_WRITTEN_CLAIM] = "SELECT {claim}($1::text)::integer::bigint",
    [WB_SQL_POSITION_LOCK] =
        "SELECT position, batch FROM {positions} WHERE partition = $1::bytea FOR UPDATE",
    [WB_SQL_POSITION_MOVE] = "UPDATE {positions} SET position = $2::bigint, batch = $3::bigint "
                             "WHERE partition = $1::bytea AND position < $2::bigint",
    [WB_SQL_POSITION_MAKE] = "INSERT INTO {positions} (partition, position, batch) "
                             "VALUES ($1::bytea, 0, 0) ON CONFLICT DO NOTHING",
    [WB_SQL_POSITION_BACK] = "UPDATE {positions} SET position = $2::bigint, batch = $4::bigint "
                             "WHERE partition = $1::bytea AND batch = $3::bigint",
    [WB_SQL_POSITIONS] = "SELECT partition, position, batch FROM {positions}",
    [WB_SQL_POSITIONS_FORGET] = "DELETE FROM {positions}",
    [WB_SQL_FAILED_PUT] =
        "INSERT INTO {failed} AS failed (id, status, attempts, failed_at, changed_at, summary, message) "
        "VALUES ($1::bytea, 1, 1, $2::bigint, $3::bigint, $4::bytea, $5::bytea) "
        "ON CONFLICT (id) DO UPDATE SET status = 1, attempts = failed.attempts + 1, failed_at = excluded.failed_at, "
        "changed_at = excluded.changed_at, summary = excluded.summary, message = excluded.message "
        "WHERE failed.failed_at <> excluded.failed_at",
    [WB_SQL_FAILED_TURN] = "UPDATE {failed} SET status = $3::bigint, changed_at = $4::bigint "
                           "WHERE id = $1::bytea AND status = $2::bigint",
    [WB_SQL_FAILED_DISCARD] = "DELETE FROM {failed} WHERE id = $1::bytea AND status = $2::bigint",
    [WB_SQL_FAILED_GET] = "SELECT id, status, attempts, failed_at, changed_at, summary, message "
                          "FROM {failed} WHERE id = $1::bytea",
    [WB_SQL_FAILED_LIST] =
        "SELECT id, status, attempts, failed_at, changed_at, summary, ''::bytea FROM {failed} "
        "WHERE (failed_at, id) > ($2::bigint, $3::bytea) AND failed_at < $4::bigint "
        "AND ($1::bigint = 0 OR status = $1::bigint) ORDER BY failed_at, id LIMIT $5::bigint",
    /* Twice: what waits for a row that another transaction changes looks at what it says of the row itself again, and not at
     * what the rows were chosen by. One that failed again meanwhile stays. */
    [WB_SQL_FAILED_CLEAN_UP] =
        "DELETE FROM {failed} WHERE id IN (SELECT id FROM {failed} WHERE status <> 1 AND changed_at < $1::bigint "
        "ORDER BY changed_at LIMIT $2::bigint) AND status <> 1 AND changed_at < $1::bigint",
};

/* ---- its tables -------------------------------------------------------------------- */

/* Programs call these with the rights of whoever installed them, so that no name in them is looked
 * for along the caller's search_path. A role needs USAGE on the schema, and EXECUTE. */
#define FUNCTION(name_and_parameters, type)                                                        \
    "CREATE OR REPLACE FUNCTION " name_and_parameters " RETURNS " type "\n"                       \
    "    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $waybill$\n"  \
    "#variable_conflict use_variable\n"
#define END_FUNCTION "$waybill$"
#define REFUSE_UNLESS(condition, text)                                                             \
    "    IF (" condition ") IS NOT TRUE THEN\n"                                                   \
    "        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = " text ";\n"    \
    "    END IF;\n"
/* Behind CREATE OR REPLACE, which gives what is new to everybody. */
#define NOBODY_MAY_CALL(functions) "REVOKE ALL ON FUNCTION " functions " FROM PUBLIC"

#define WRITE_PARAMETERS "(destination text, type text, body bytea, headers jsonb, key text)"
#define SEND_PARAMETERS(body)                                                                      \
    "(destination text, type text, body " body ", headers jsonb DEFAULT NULL, key text DEFAULT NULL)"
#define PUBLISH_PARAMETERS(body)                                                                   \
    "(type text, body " body ", headers jsonb DEFAULT NULL, key text DEFAULT NULL)"

/* A number is drawn once the key's lock is had, so that of rows with one key the numbers are in the
 * order of their commits: the lock goes after the commit can be seen. There are 1,024 for all keys, since the
 * server's table of locks is small. The commit is flushed, whatever the caller asked for: what is sent has to be
 * there after a crash. The id is a UUID of version 7. */
#define WRITE_FUNCTION                                                                             \
    FUNCTION("{write}" WRITE_PARAMETERS, "text")                                                   \
    "DECLARE\n"                                                                                   \
    "    now_is bigint := EXTRACT(EPOCH FROM clock_timestamp()) * 1000000;\n"                     \
    "    message_id text;\n"                                                                      \
    "BEGIN\n"                                                                                     \
    REFUSE_UNLESS("octet_length(type) BETWEEN 1 AND 255 AND type COLLATE \"C\" !~ '[[:cntrl:]]'",                \
                  "'a type has 1 to 255 bytes and no control characters'")                         \
    REFUSE_UNLESS("key IS NULL OR octet_length(key) BETWEEN 1 AND 255",                            \
                  "'a key is NULL, or has 1 to 255 bytes'")                                        \
    "    IF headers IS NOT NULL THEN\n" /* each question of a set costs 4 us, and most have none */ \
    REFUSE_UNLESS("jsonb_typeof(headers) = 'object'", "'headers are a JSON object of strings'")    \
    REFUSE_UNLESS("octet_length(headers::text) <= " WRITTEN_HEADERS_MAX, "'headers have 64 KiB at most'") \
    REFUSE_UNLESS("(SELECT count(*) <= 256 FROM jsonb_object_keys(headers))", "'there are 256 headers at most'") \
    REFUSE_UNLESS("NOT EXISTS (SELECT FROM jsonb_each(headers) AS header WHERE jsonb_typeof(header.value) <> 'string')", \
                  "'headers are a JSON object of strings'")                                        \
    REFUSE_UNLESS("NOT EXISTS (SELECT FROM jsonb_object_keys(headers) AS name WHERE octet_length(name) NOT BETWEEN 1 AND 255)", \
                  "'a header''s name has 1 to 255 bytes'")                                         \
    "    END IF;\n"                                                                               \
    REFUSE_UNLESS("body IS NULL OR octet_length(body) <= " WRITTEN_BODY_MAX, "'a body has 64 MiB at most'") \
    "    IF key IS NOT NULL THEN\n"                                                               \
    "        PERFORM pg_advisory_xact_lock(hashtextextended('waybill key ' || {database} || '/' || {prefix} || '/' ||\n" \
    "            (hashtextextended(key COLLATE \"C\", 0) & 1023)::text COLLATE \"C\", 0));\n"            \
    "    END IF;\n"                                                                               \
    "    IF current_setting('synchronous_commit') = 'off' THEN\n"                                 \
    "        PERFORM set_config('synchronous_commit', 'on', true);\n"                             \
    "    END IF;\n"                                                                               \
    "    message_id := encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING "        \
    "substring(int8send(now_is / 1000) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid::text;\n" \
    "    INSERT INTO {written} (written, id, destination, type, headers, key, body)\n"            \
    "        VALUES (now_is, message_id, destination, type, headers::text, key, coalesce(body, ''));\n" \
    "    RETURN message_id;\n"                                                                    \
    "END;\n" END_FUNCTION

#define SEND_FUNCTION(type_of_body, body)                                                          \
    FUNCTION("{send}" SEND_PARAMETERS(type_of_body), "text")                                       \
    "BEGIN\n"                                                                                     \
    REFUSE_UNLESS("octet_length(destination) BETWEEN 1 AND 255 AND destination COLLATE \"C\" !~ '[[:cntrl:]]'",  \
                  "'a destination has 1 to 255 bytes and no control characters'")                  \
    "    RETURN {write}(destination, type, " body ", headers, key);\n"                            \
    "END;\n" END_FUNCTION
#define PUBLISH_FUNCTION(type_of_body, body)                                                       \
    FUNCTION("{publish}" PUBLISH_PARAMETERS(type_of_body), "text")                                 \
    "BEGIN\n"                                                                                     \
    "    RETURN {write}(NULL, type, " body ", headers, key);\n"                                   \
    "END;\n" END_FUNCTION

/* A record beside the endpoint's own, under a key that none of these has: what the endpoint handled a program may
 * have to handle, too. Its batch number is the time, and 22 bits of which some are set. */
#define CLAIM_FUNCTION                                                                             \
    FUNCTION("{claim}(message_id text)", "boolean")                                                \
    "BEGIN\n"                                                                                     \
    REFUSE_UNLESS("octet_length(message_id) BETWEEN 1 AND 248", "'a message id has 1 to 248 bytes'") \
    "    INSERT INTO {dedup} (key, batch)\n"                                                      \
    "        VALUES (convert_to('claim/' || message_id, 'UTF8'),\n"                                           \
    "                (((EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 22)\n" \
    "                + 1 + floor(random() * 4194303)::bigint)\n"                                  \
    "        ON CONFLICT DO NOTHING;\n"                                                           \
    "    RETURN FOUND;\n"                                                                         \
    "END;\n" END_FUNCTION

/* IF NOT EXISTS asks for a name alone, and OR REPLACE leaves a function its owner. */
#define ONE_OWNER                                                                                  \
    "DO $waybill$\n"                                                                              \
    "BEGIN\n"                                                                                    \
    "    IF EXISTS (SELECT FROM pg_catalog.pg_class AS entry\n"                                   \
    "        JOIN pg_catalog.pg_namespace AS space ON space.oid = entry.relnamespace\n"           \
    "        JOIN pg_catalog.pg_proc AS function ON function.pronamespace = space.oid\n"          \
    "        WHERE space.nspname = {database} AND entry.relname IN ({prefix} || '_written', {prefix} || '_dedup')\n" \
    "        AND function.proname IN ({prefix} || '_write', {prefix} || '_send', {prefix} || '_publish', {prefix} || '_claim')\n" \
    "        AND function.proowner <> entry.relowner) THEN\n"                                     \
    "        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',\n"                              \
    "            MESSAGE = 'a table and the functions belong to different roles: install as the owner of the tables';\n" \
    "    END IF;\n"                                                                               \
    "END;\n"                                                                                     \
    "$waybill$"

/* Every name of a table, index or constraint holds the endpoint's prefix: PostgreSQL wants
 * index names unique in a schema, and IF NOT EXISTS would pass over a second endpoint's.
 * A later version appends its statements here. */
static const wb_sql_definition definitions[] = {
    { PGSQL_SCHEMA_ABSENT, NULL, "CREATE SCHEMA IF NOT EXISTS {schema}" },
    { 0, "which endpoints have tables here, and in which version",
      "CREATE TABLE IF NOT EXISTS {endpoints} (\n"
      "    prefix text PRIMARY KEY,\n"
      "    endpoint text NOT NULL,\n"
      "    version integer NOT NULL,\n"
      "    installed timestamptz NOT NULL DEFAULT now()\n)" },
    { 0, "ids that were processed; only ever inserted, and deleted by age",
      "CREATE TABLE IF NOT EXISTS {dedup} (\n"
      "    key bytea NOT NULL CONSTRAINT {dedup_pkey} PRIMARY KEY,\n"
      "    batch bigint NOT NULL\n"
      ") WITH (autovacuum_vacuum_scale_factor = 0.05,\n"
      "        autovacuum_vacuum_insert_scale_factor = 0.1)" },
    /* its pages are filled in the order of time: no room is left in them */
    { PGSQL_DEDUP_BATCH_ABSENT, "milliseconds since 2020 are batch >> 22, so this is an index on age",
      "CREATE INDEX IF NOT EXISTS {dedup_batch} ON {dedup} (batch) WITH (fillfactor = 100)" },
    { 0, "outgoing operations of a batch, from its commit until they are dispatched",
      "CREATE TABLE IF NOT EXISTS {pending} (\n"
      "    batch bigint NOT NULL CONSTRAINT {pending_pkey} PRIMARY KEY,\n"
      "    operations bytea NOT NULL\n"
      ") WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,\n"
      "        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,\n"
      "        toast.vacuum_truncate = off, toast.autovacuum_vacuum_scale_factor = 0,\n"
      "        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_delay = 0)" },
    { PGSQL_PENDING_LACKS_LZ4, "leave this out where the server was built without lz4",
      "ALTER TABLE {pending} ALTER COLUMN operations SET COMPRESSION lz4" },
    /* half of a page is left free: a row is taken in its place, with no new entry in an index */
    { WB_SQL_FOR_DELAYS, "messages until they are due; times are microseconds since 1970",
      "CREATE TABLE IF NOT EXISTS {delayed} (\n"
      "    due bigint NOT NULL,\n"
      "    taken_until bigint NOT NULL DEFAULT 0,\n"
      "    retries bigint NOT NULL,\n"
      "    failures bigint NOT NULL DEFAULT 0,\n"
      "    id bytea NOT NULL,\n"
      "    destination bytea NOT NULL,\n"
      "    taken_by bytea,\n"
      "    doubtful boolean NOT NULL DEFAULT false,\n"
      "    operation bytea NOT NULL,\n"
      "    CONSTRAINT {delayed_pkey} PRIMARY KEY (id, destination, retries)\n"
      ") WITH (fillfactor = 50, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.02,\n"
      "        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,\n"
      "        toast.vacuum_truncate = off, toast.autovacuum_vacuum_scale_factor = 0.02,\n"
      "        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_delay = 0)" },
    { WB_SQL_FOR_DELAYS + PGSQL_DELAYED_DUE_ABSENT, NULL, "CREATE INDEX IF NOT EXISTS {delayed_due} ON {delayed} (due)" },
    { WB_SQL_FOR_DELAYS + PGSQL_DELAYED_LACKS_LZ4, "leave this out where the server was built without lz4",
      "ALTER TABLE {delayed} ALTER COLUMN operation SET COMPRESSION lz4" },
    /* a row is written by each batch, in its place */
    { WB_SQL_FOR_POSITIONS, "how far each partition of the transport is done with, and by which batch",
      "CREATE TABLE IF NOT EXISTS {positions} (\n"
      "    partition bytea NOT NULL CONSTRAINT {position_key} PRIMARY KEY,\n"
      "    position bigint NOT NULL,\n"
      "    batch bigint NOT NULL\n"
      ") WITH (fillfactor = 10, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,\n"
      "        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)" },
    { WB_SQL_FOR_SUBSCRIPTIONS, "event types that an installation subscribed to",
      "CREATE TABLE IF NOT EXISTS {subscribed} (type text PRIMARY KEY)" },
    { WB_SQL_FOR_PROGRAMS, "messages that programs wrote, from their commit until they are sent",
      "CREATE TABLE IF NOT EXISTS {written} (\n"
      "    number bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT {written_pkey} PRIMARY KEY,\n"
      "    form bigint NOT NULL DEFAULT 1,\n"
      "    written bigint NOT NULL,\n"
      "    due bigint NOT NULL DEFAULT 0,\n"
      "    tries bigint NOT NULL DEFAULT 0,\n"
      "    id text NOT NULL CONSTRAINT id_size CHECK (octet_length(id) BETWEEN 1 AND 255),\n"
      "    destination text CONSTRAINT destination_size CHECK (octet_length(destination) BETWEEN 1 AND 255),\n"
      "    type text NOT NULL CONSTRAINT type_size CHECK (octet_length(type) BETWEEN 1 AND 255),\n"
      "    headers text CONSTRAINT headers_size CHECK (octet_length(headers) <= " WRITTEN_HEADERS_MAX "),\n"
      "    key text CONSTRAINT key_size CHECK (octet_length(key) BETWEEN 1 AND 255),\n"
      "    reason text,\n"
      "    body bytea NOT NULL CONSTRAINT body_size CHECK (octet_length(body) <= " WRITTEN_BODY_MAX ")\n"
      ") WITH (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0,\n"
      "        autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,\n"
      "        toast.vacuum_truncate = off, toast.autovacuum_vacuum_scale_factor = 0,\n"
      "        toast.autovacuum_vacuum_threshold = 1000, toast.autovacuum_vacuum_cost_delay = 0)" },
    { WB_SQL_FOR_PROGRAMS + PGSQL_WRITTEN_HELD_ABSENT, "keys with a message that waits",
      "CREATE INDEX IF NOT EXISTS {written_held} ON {written} (key, number) WHERE " MAY_BE_HELD },
    { WB_SQL_FOR_PROGRAMS + PGSQL_WRITTEN_LACKS_LZ4, "leave this out where the server was built without lz4",
      "ALTER TABLE {written} ALTER COLUMN body SET COMPRESSION lz4" },
    { WB_SQL_FOR_PROGRAMS, "not for programs: what the next four call", WRITE_FUNCTION },
    { WB_SQL_FOR_PROGRAMS, NULL, NOBODY_MAY_CALL("{write}" WRITE_PARAMETERS) },
    { WB_SQL_FOR_PROGRAMS, "they return the message's id", SEND_FUNCTION("bytea", "body") },
    { WB_SQL_FOR_PROGRAMS, NULL, SEND_FUNCTION("text", "convert_to(body, 'UTF8')") },
    { WB_SQL_FOR_PROGRAMS, NULL, PUBLISH_FUNCTION("bytea", "body") },
    { WB_SQL_FOR_PROGRAMS, NULL, PUBLISH_FUNCTION("text", "convert_to(body, 'UTF8')") },
    { WB_SQL_FOR_PROGRAMS, "whether the message with this id is new", CLAIM_FUNCTION },
    { WB_SQL_FOR_PROGRAMS, "roles that may call them need USAGE on the schema and EXECUTE on these",
      NOBODY_MAY_CALL("{send}(text, text, bytea, jsonb, text), {send}(text, text, text, jsonb, text), "
                      "{publish}(text, bytea, jsonb, text), {publish}(text, text, jsonb, text), {claim}(text)") },
    { WB_SQL_FOR_PROGRAMS, "tables that somebody else made would run his triggers with the functions' rights", ONE_OWNER },
    { WB_SQL_FOR_FAILURES, "messages of an error queue; times are microseconds since 1970",
      "CREATE TABLE IF NOT EXISTS {failed} (\n"
      "    id bytea NOT NULL CONSTRAINT {failed_pkey} PRIMARY KEY,\n"
      "    status bigint NOT NULL,\n"
      "    attempts bigint NOT NULL,\n"
      "    failed_at bigint NOT NULL,\n"
      "    changed_at bigint NOT NULL,\n"
      "    summary bytea NOT NULL,\n"
      "    message bytea NOT NULL\n)" },
    { WB_SQL_FOR_FAILURES, NULL, "CREATE INDEX IF NOT EXISTS {failed_listed} ON {failed} (failed_at, id)" },
    { WB_SQL_FOR_FAILURES, NULL, "CREATE INDEX IF NOT EXISTS {failed_changed} ON {failed} (changed_at) WHERE status <> 1" },
};

/* No statement of these fails for a table that is not there. */
#define RENAME_TABLE(name) "ALTER TABLE IF EXISTS |{" name "}| RENAME TO {" name "_name}"
/* What has a name that begins like its table's, and keeps it when that is renamed: indexes, with the constraints that they are
 * of, sequences, other constraints. Some names are PostgreSQL's choice, so they are looked for. No bars that are not ours:
 * concat(). A name that gets too long is cut off, as any name is. */
#define NEW_NAME(name) "pg_catalog.concat({prefix}, pg_catalog.substr(" name ", pg_catalog.length(|{prefix}|) + 1))"
#define HAS_FORMER_NAME(name) "pg_catalog.starts_with(" name ", pg_catalog.concat(|{prefix}|, '_'))"
#define RENAME_PARTS                                                                               \
    "DO $waybill$\n"                                                                              \
    "DECLARE\n"                                                                                   \
    "    ours oid[] := ARRAY(SELECT entry.oid FROM pg_catalog.pg_class AS entry\n"                \
    "        JOIN pg_catalog.pg_namespace AS space ON space.oid = entry.relnamespace\n"           \
    "        WHERE space.nspname = {database} AND entry.relname IN (SELECT pg_catalog.concat({prefix}, suffix)\n"  \
    "            FROM pg_catalog.unnest(pg_catalog.string_to_array('_dedup,_pending,_delayed,_written,_positions,_subscribed,_failed', ',')) AS suffix));\n" \
    "    renaming text;\n"                                                                        \
    "BEGIN\n"                                                                                     \
    "    FOR renaming IN\n"                                                                       \
    "        SELECT pg_catalog.format('ALTER TABLE %s RENAME TO %I', part.oid::regclass, " NEW_NAME("part.relname") ")\n" \
    "            FROM pg_catalog.pg_class AS part WHERE " HAS_FORMER_NAME("part.relname") " AND part.relkind IN ('i', 'I', 'S')\n" \
    "            AND (part.oid IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = ANY (ours))\n" \
    "                OR part.oid IN (SELECT objid FROM pg_catalog.pg_depend WHERE classid = 'pg_catalog.pg_class'::regclass\n" \
    "                    AND refclassid = 'pg_catalog.pg_class'::regclass AND refobjid = ANY (ours)))\n" \
    "        UNION ALL SELECT pg_catalog.format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', conrelid::regclass, conname,\n" \
    "                " NEW_NAME("conname") ")\n"                                                  \
    "            FROM pg_catalog.pg_constraint WHERE " HAS_FORMER_NAME("conname") " AND conrelid = ANY (ours)\n" \
    "            AND contype IN ('c', 'f', 'n')\n"                                                \
    "    LOOP\n"                                                                                  \
    "        EXECUTE renaming;\n"                                                                 \
    "    END LOOP;\n"                                                                             \
    "END;\n"                                                                                     \
    "$waybill$"
#define DROP_FUNCTIONS(bar)                                                                        \
    "DROP FUNCTION IF EXISTS " bar "{send}" bar "(text, text, bytea, jsonb, text)",                \
    "DROP FUNCTION IF EXISTS " bar "{send}" bar "(text, text, text, jsonb, text)",                 \
    "DROP FUNCTION IF EXISTS " bar "{publish}" bar "(text, bytea, jsonb, text)",                   \
    "DROP FUNCTION IF EXISTS " bar "{publish}" bar "(text, text, jsonb, text)",                    \
    "DROP FUNCTION IF EXISTS " bar "{claim}" bar "(text)",                                         \
    "DROP FUNCTION IF EXISTS " bar "{write}" bar WRITE_PARAMETERS
static const char *const removal[] = {
    DROP_FUNCTIONS(""), "DROP TABLE IF EXISTS {failed}", "DROP TABLE IF EXISTS {written}", "DROP TABLE IF EXISTS {subscribed}",
    "DROP TABLE IF EXISTS {positions}", "DROP TABLE IF EXISTS {delayed}", "DROP TABLE IF EXISTS {pending}",
    "DROP TABLE IF EXISTS {dedup}", NULL,
};
static const char *const renaming[] = {
    DROP_FUNCTIONS("|"), RENAME_TABLE("written"), RENAME_TABLE("subscribed"), RENAME_TABLE("positions"), RENAME_TABLE("delayed"),
    RENAME_TABLE("pending"), RENAME_TABLE("failed"), RENAME_TABLE("dedup"), RENAME_PARTS, NULL,
};

static const char *const written_probes[] = {
    "SELECT number, form, written, due, tries, id, destination, type, headers, key, reason, body FROM {written} WHERE 1 = 0",
    NULL,
};

#define RECORD_VERSION                                                                             \
    "INSERT INTO {endpoints} (prefix, endpoint, version)\n"                               \
    "    VALUES ({prefix}, {endpoint}, " TEXT_OF(SCHEMA_VERSION) ")\n"                       \
    "    ON CONFLICT (prefix) DO NOTHING"

static int is_written(const wb_sql_names *names, int when)
{
    return when != PGSQL_SCHEMA_ABSENT || strcmp(names->container, "public") != 0;
}

const wb_sql_dialect pgsql_dialect = {
    .quoting = &pgsql_quoting,
    .templates = templates,
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
    .first_count = 2,
    .schema_version = SCHEMA_VERSION,
    .record_version = RECORD_VERSION,
    .schema_start = "BEGIN;\n",
    .schema_end = "COMMIT;\n",
    .is_written = is_written,
    .keys_max = SIZE_MAX,
    /* what a bigint holds: the milliseconds in a batch number reach it in the year 2089 */
    .batch_max = INT64_MAX,
    /* a field holds at most 1 GB, a message of the protocol a little more */
    .operations_max = (size_t)1000 * 1000 * 1000,
    .clean_up_locks = 1,
    .prepare_install = pgsql_prepare_install,
    .checks = pgsql_checks,
    .questions = pgsql_questions,
    .written_probes = written_probes,
    .removal = removal,
    .renaming = renaming,
    .note_subscription = { "INSERT INTO {subscribed} (type) VALUES (", ") ON CONFLICT DO NOTHING" },
    .forget_subscription = { "DELETE FROM {subscribed} WHERE type = ", "" },
};

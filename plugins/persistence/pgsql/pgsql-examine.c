/* SPDX-License-Identifier: Apache-2.0
 *
 * What examine() asks PostgreSQL. Of settings that lose commits verify() warns (pgsql-verify.c).
 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-driver.h"

/* Below it handlers that only work slowly lose their transaction; milliseconds. */
#define PATIENCE "60000"

#define SETTING(name) "(SELECT setting::bigint FROM pg_catalog.pg_settings WHERE name = '" name "')"

/* Who is asked for more connections than may be open; only an ordinary user is limited by the last two. */
static const char connections[] =
    "SELECT 2, 'connections', pg_catalog.format('a process of this endpoint has up to %s connections, and %s: workers that "
    "get none wait, and their messages with them', {sessions}, what), remedy "
    "FROM (SELECT " SETTING("max_connections") " - " SETTING("superuser_reserved_connections") ", "
    "pg_catalog.format('the server allows %s (max_connections, without those that are reserved)', "
    SETTING("max_connections") " - " SETTING("superuser_reserved_connections") "), "
    "pg_catalog.format('ALTER SYSTEM SET max_connections = %s, and restart the server; or a lower concurrency', "
    "GREATEST(100, 2 * {sessions} + 20)) "
    "UNION ALL SELECT rolconnlimit, pg_catalog.format('its user may have %s', rolconnlimit), "
    "pg_catalog.format('ALTER ROLE %I CONNECTION LIMIT %s', rolname, 2 * {sessions}) "
    "FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolconnlimit >= 0 AND NOT rolsuper "
    "UNION ALL SELECT datconnlimit, pg_catalog.format('its database may have %s', datconnlimit), "
    "pg_catalog.format('ALTER DATABASE %I CONNECTION LIMIT %s', datname, 2 * {sessions}) "
    "FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database() AND datconnlimit >= 0 "
    "AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)) "
    "AS limits (allowed, what, remedy) WHERE allowed < {sessions}";

static const char timeouts[] =
    "SELECT 2, 'transaction-timeout', pg_catalog.format('%s is %s ms: the server ends the transaction of a handler that is "
    "slower, and its message begins anew each time', name, setting), "
    "pg_catalog.format('ALTER ROLE %I SET %s = 0', current_user, name) "
    "FROM pg_catalog.pg_settings WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout') "
    "AND setting::bigint BETWEEN 1 AND " PATIENCE;

static const char autovacuum[] =
    "SELECT 2, 'autovacuum', 'autovacuum is off: the tables of the outbox grow with every message that was ever in them, and "
    "become slow', 'ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()' "
    "FROM pg_catalog.pg_settings WHERE name = 'autovacuum' AND setting = 'off'";

static const char slots[] =
    "SELECT 2, 'replication-slot', pg_catalog.format('nobody reads replication slot \"%s\", and the server keeps its log for "
    "it until the disk is full', slot_name), pg_catalog.format('SELECT pg_drop_replication_slot(%L), if nobody comes back to "
    "it; or a limit, ALTER SYSTEM SET max_slot_wal_keep_size = ''10GB''; SELECT pg_reload_conf()', slot_name) "
    "FROM pg_catalog.pg_replication_slots WHERE NOT active AND restart_lsn IS NOT NULL AND " SETTING("max_slot_wal_keep_size") " < 0";

const char *const pgsql_questions[] = { connections, timeouts, autovacuum, slots, NULL };

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-options.h"

#define AT(field) offsetof(pgsql_config, field)
#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

const char *const pgsql_sslmodes[] = { "auto",    "disable",   "allow",       "prefer",
                                       "require", "verify-ca", "verify-full", NULL };

/* What libpq 16 and later take for the authorities of the system. */
static const char *const authorities_elsewhere[] = { "system", NULL };

const wb_option pgsql_options[PGSQL_OPTION_COUNT] = {
    { "conninfo", WB_OPTION_STRING, WB_OPTION_SECRET | WB_OPTION_MAYBE_SECRET, AT(conninfo), NULL, 0, 0, NULL, "0.1",
      "libpq connection string or URI",
      "Anything libpq accepts, for instance \"service=orders\" or "
      "\"host=db1,db2 dbname=shop\". In a URI only the @ in front of the server is written as it is, "
      "others as %40. The options below win over what it says; what neither "
      "says comes from the service, the PG... environment variables, and libpq." },
    { "host", WB_OPTION_STRING, 0, AT(host), NULL, 0, 0, NULL, "0.1",
      "server name, address, or directory of its Unix socket",
      "Several, with commas between them: the first that takes writes is used." },
    { "port", WB_OPTION_INTEGER, 0, AT(port), NULL, 1, 65535, NULL, "0.1", "server port", NULL },
    { "database", WB_OPTION_STRING, 0, AT(database), NULL, 0, 0, NULL, "0.1", "database name",
      NULL },
    { "user", WB_OPTION_STRING, 0, AT(user), NULL, 0, 0, NULL, "0.1", "role to connect as", NULL },
    { "password", WB_OPTION_STRING, WB_OPTION_SECRET, AT(password), NULL, 0, 0, NULL, "0.1",
      "password of the role", NULL },
    { "schema", WB_OPTION_STRING, 0, AT(schema), "public", 0, 0, NULL, "0.1",
      "schema of the outbox tables",
      "The tables are always named with their schema; the search path of handlers' statements "
      "is left alone." },
    { "prepare", WB_OPTION_BOOLEAN, 0, AT(prepare), "true", 0, 0, NULL, "0.1",
      "use prepared statements and session settings",
      "Off, nothing is kept in the server's session from one transaction to the next, as a pooler "
      "in transaction mode wants it. A pooler that gives connections numbers of its own "
      "(PgBouncer) is seen, and counts as off; for others switch it off." },
    { "connect_timeout", WB_OPTION_DURATION, 0, AT(connect_timeout), "10s", SECOND / 10, DAY, NULL,
      "0.1", "longest wait for a connection, for each host and each address of its name", NULL },
    { "tcp_user_timeout", WB_OPTION_DURATION, 0, AT(tcp_user_timeout), "30s", 0, DAY, NULL, "0.1",
      "give up a connection whose peer does not acknowledge data for so long",
      "0 leaves it to the operating system: about 15 minutes." },
    { "reply_timeout", WB_OPTION_DURATION, 0, AT(reply_timeout), "5min", 0, DAY, NULL, "0.1",
      "give up a connection whose server answers nothing for so long",
      "Counts only while the plugin waits (claims, deferred statements, commits), not for "
      "statements a handler runs on the plain connection. Longer than lock_timeout. 0: never." },
    { "lock_timeout", WB_OPTION_DURATION, 0, AT(lock_timeout), "30s", 0, DAY, NULL, "0.1",
      "longest wait for a lock, also of a claim for the transaction that holds the same id",
      "0: for ever." },
    { "statement_timeout", WB_OPTION_DURATION, 0, AT(statement_timeout), "0s", 0, DAY, NULL, "0.1",
      "longest run of one statement", "0 leaves the server's setting." },
    { "sslmode", WB_OPTION_CHOICE, 0, AT(sslmode), "auto", 0, 0, pgsql_sslmodes, "0.1",
      "TLS and how much of it is verified",
      "auto: verify-full, or for a Unix socket or a loopback address what libpq does. What "
      "conninfo or the service it names says wins over auto; the environment (PGSSLMODE) does not, "
      "unless the server is on this machine. For a server on another machine disable, allow and "
      "prefer are refused unless allow_insecure is set, and require and verify-ca are warned of. "
      "This is judged with each connection: a service may move." },
    { "sslrootcert", WB_OPTION_PATH, 0, AT(sslrootcert), NULL, 0, 0, authorities_elsewhere, "0.1",
      "file with the certificate authorities to trust",
      "libpq looks into ~/.postgresql/root.crt when nobody says." },
    { "allow_insecure", WB_OPTION_BOOLEAN, 0, AT(allow_insecure), "false", 0, 0, NULL, "0.1",
      "permit plain text with a server on another machine: sslmode disable, allow, prefer",
      "Passwords and what is stored and read may then cross the network in clear text." },
};

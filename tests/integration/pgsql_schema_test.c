/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting, installing, verifying: what only PostgreSQL has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/sql_schema.h"

/* A session is prepared for the tables as it is opened. */
static void test_missing_tables_are_said_at_open(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    endpoint_create(&e);
    assert_fails(ops->open(e.persistence, &s, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
}

static void test_install_makes_the_schema(void **state)
{
    (void)state;
    observe("drop schema empty");
    endpoint_create(&e);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
}

/* Names of indexes are unique in a schema: the second endpoint must have its own. */
static void test_endpoints_share_a_schema(void **state)
{
    endpoint other;
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_init(&other, "billing");
    other.config.schema = "empty";
    endpoint_create(&other);
    install(&other);
    verify(&other);
    verify(&e);
    assert_int_equal(observe_number("select count(*) from pg_indexes where schemaname = 'empty' "
                                    "and indexdef like '%(batch) WITH (fillfactor=''100'')' and tablename like '%_dedup'"),
                     2);
    endpoint_destroy(&other);
}

static void test_printed_schema_is_what_install_does(void **state)
{
    static const char *const columns =
        "select count(*) from (select format('%s %s %s %s %s', c.relname, c.reloptions, a.attname, "
        "a.atttypid, a.attcompression) as line, n.nspname as schema from pg_attribute a "
        "join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname in ('empty', 'printed') and a.attnum > 0) t "
        "group by line having count(distinct schema) = 1";
    endpoint printed;
    (void)state;
    observe("drop schema if exists printed cascade");
    endpoint_create(&e);
    install(&e);
    endpoint_init(&printed, "orders");
    printed.config.schema = "printed";
    endpoint_create(&printed);
    observe(ops->schema(printed.persistence));
    verify(&printed);
    char query[1024];
    (void)snprintf(query, sizeof query, "select count(*) from (%s) differences", columns);
    assert_int_equal(observe_number(query), 0);
    endpoint_destroy(&printed);
}

static void test_missing_privileges_are_named(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    make_clerk(&e.config);
    endpoint_create(&e);
    observe_in("grant usage on schema %s to waybill_clerk");
    observe_in("grant select on %s.waybill_endpoints to waybill_clerk");
    observe_in("grant select, insert, delete on %s.orders_dedup to waybill_clerk");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED,
                 "lacks privileges");
    observe_in("grant select, insert, delete on %s.orders_pending to waybill_clerk");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED,
                 "orders_pending: grant UPDATE");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "grant CREATE");
}

static void test_settings_that_lose_commits(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    verify(&e);
    assert_int_equal(warnings, 0);
    alter_role("set synchronous_commit = off");
    verify(&e);
    alter_role("reset synchronous_commit");
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "synchronous_commit"));
}

/* ---- connecting ------------------------------------------------------------------- */

static void test_no_such_service(void **state)
{
    (void)state;
    e.config.conninfo = "service=none_of_that_name";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "none_of_that_name");
}

static void test_tls_is_not_given_up(void **state)
{
    (void)state;
    e.config.sslmode = 6; /* verify-full */
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "");
}

static void test_malformed_conninfo(void **state)
{
    (void)state;
    e.config.conninfo = "host=x bogus=y";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "conninfo");
}

static void test_application_name_and_encoding(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    wb_storage_session *s = open_session(&e);
    begin_batch(s, 1);
    PGresult *row = PQexec(api->connection(s, 0),
                           "select current_setting('application_name'), "
                           "current_setting('client_encoding'), current_setting('lock_timeout'), "
                           "current_setting('transaction_isolation')");
    assert_string_equal(PQgetvalue(row, 0, 0), "waybill/orders");
    assert_string_equal(PQgetvalue(row, 0, 1), "UTF8");
    assert_string_equal(PQgetvalue(row, 0, 2), "30s");
    assert_string_equal(PQgetvalue(row, 0, 3), "read committed");
    PQclear(row);
    ops->close(s);
}

const struct CMUnitTest own_tests[] = {
    TEST_SCHEMA(test_missing_tables_are_said_at_open),
    TEST_SCHEMA(test_install_makes_the_schema),
    TEST_SCHEMA(test_endpoints_share_a_schema),
    TEST_SCHEMA(test_printed_schema_is_what_install_does),
    TEST_SCHEMA(test_missing_privileges_are_named),
    TEST_SCHEMA(test_settings_that_lose_commits),
    TEST_SCHEMA(test_no_such_service),
    TEST_SCHEMA(test_tls_is_not_given_up),
    TEST_SCHEMA(test_malformed_conninfo),
    TEST_SCHEMA(test_application_name_and_encoding),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];

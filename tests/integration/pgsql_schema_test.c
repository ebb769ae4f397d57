/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting, installing, verifying: what is there, what is said when it is not. */
#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

static endpoint e;

static int set_up(void **state)
{
    (void)state;
    observe("drop schema if exists empty cascade");
    observe("create schema empty");
    endpoint_init(&e, "orders");
    e.config.schema = "empty";
    warnings = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (e.persistence)
        endpoint_destroy(&e);
    return 0;
}

static void assert_fails(int result, int wanted, int cause, const char *text)
{
    if (result != wanted || failure.cause != cause || !strstr(failure.text, text))
        fail_msg("got %d, cause %d: %s", result, failure.cause, failure.text);
}

static void install(endpoint *which)
{
    if (ops->install(which->persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

static void verify(endpoint *which)
{
    if (ops->verify(which->persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

static void test_descriptor(void **state)
{
    (void)state;
    assert_int_equal(plugin->struct_size, sizeof(wb_plugin));
    assert_int_equal(plugin->magic, WB_PLUGIN_MAGIC);
    assert_int_equal(plugin->kind, WB_PLUGIN_PERSISTENCE);
    assert_string_equal(plugin->name, "pgsql");
    assert_string_equal(plugin->client_library, "libpq.so.5");
    assert_true((plugin->capabilities & WB_CAP_OUTBOX) != 0);
    for (size_t i = 0; i < plugin->option_count; i++) {
        const wb_option *option = &plugin->options[i];
        assert_non_null(option->name);
        assert_non_null(option->summary);
        assert_true(option->offset < plugin->config_size);
        if (strcmp(option->name, "password") == 0 || strcmp(option->name, "conninfo") == 0)
            assert_true((option->flags & WB_OPTION_SECRET) != 0);
    }
}

static void test_missing_tables_are_said_once(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    endpoint_create(&e);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    assert_fails(ops->open(e.persistence, &s, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
    observe("drop table empty.orders_pending");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "empty.orders_pending");
    install(&e);
    verify(&e);
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

static void *install_once(void *argument)
{
    wb_error error;
    int *result = argument;
    *result = ops->install(e.persistence, &error);
    return NULL;
}

static void test_install_again_and_at_once(void **state)
{
    pthread_t threads[8];
    int results[8];
    (void)state;
    endpoint_create(&e);
    for (int round = 0; round < 5; round++) {
        observe("drop schema if exists empty cascade");
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, install_once, &results[i]);
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(results[i], WB_OK);
        }
        verify(&e);
    }
    observe("insert into empty.orders_dedup values ('a', 1)");
    install(&e); /* keeps what is there */
    assert_int_equal(observe_number("select count(*) from empty.orders_dedup"), 1);
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
                                    "and indexdef like '%(batch)' and tablename like '%_dedup'"),
                     2);
    endpoint_destroy(&other);
}

static void test_odd_names(void **state)
{
    static const char *const names[] = { "Sales.Orders", "o'r\\d\"ers {dedup}", "b\xc3\xbc" "cher",
                                         "a rather long name of an endpoint, longer than what "
                                         "PostgreSQL keeps of an identifier" };
    (void)state;
    observe("drop schema if exists \"odd \"\"schema'\" cascade");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        endpoint odd;
        wb_claim claim = claim_of("a");
        endpoint_init(&odd, names[i]);
        odd.config.schema = "odd \"schema'";
        endpoint_create(&odd);
        install(&odd);
        verify(&odd);
        wb_storage_session *s = open_session(&odd);
        begin_claims(s, 1, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(commit_batch(s, 1, "x", NULL), WB_OK);
        ops->close(s);
        endpoint_destroy(&odd);
    }
    assert_int_equal(observe_number("select count(*) from \"odd \"\"schema'\".waybill_endpoints"),
                     4);
    observe("drop schema \"odd \"\"schema'\" cascade");
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

static void test_other_versions_and_owners(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    observe("update empty.waybill_endpoints set version = 2");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "version 2");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "newer");
    observe("update empty.waybill_endpoints set version = 0");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
    observe("update empty.waybill_endpoints set endpoint = 'another'");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
}

static void test_privileges(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    observe("do $$ begin create role waybill_clerk login; "
            "exception when duplicate_object then end $$");
    e.config.user = "waybill_clerk";
    endpoint_create(&e);
    assert_int_not_equal(ops->verify(e.persistence, &failure), WB_OK);
    assert_int_equal(failure.cause, WB_CAUSE_REFUSED);
    observe("grant usage on schema empty to waybill_clerk");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED,
                 "lacks privileges");
    observe("grant select on empty.waybill_endpoints to waybill_clerk");
    observe("grant select, insert, delete on empty.orders_dedup to waybill_clerk");
    observe("grant select, insert, delete on empty.orders_pending to waybill_clerk");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED,
                 "orders_pending: grant UPDATE");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "grant CREATE");
    observe("grant update on empty.orders_pending to waybill_clerk");
    verify(&e); /* and that is enough to work */
    wb_storage_session *s = open_session(&e);
    wb_claim claim = claim_of("a");
    const wb_mark mark = { .batch = 1 };
    size_t deleted = 0;
    begin_claims(s, 1, &claim, 1);
    assert_int_equal(commit_batch(s, 1, "x", NULL), WB_OK);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    if (ops->clean_up(s, 9, 9, &deleted, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(deleted, 1);
    ops->close(s);
}

static void test_settings_that_lose_commits(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    verify(&e);
    assert_int_equal(warnings, 0);
    observe("alter role postgres set synchronous_commit = off");
    verify(&e);
    observe("alter role postgres reset synchronous_commit");
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "synchronous_commit"));
}

/* ---- connecting ------------------------------------------------------------------- */

static void assert_open_fails(int wanted, int cause, const char *text)
{
    wb_storage_session *s = NULL;
    endpoint_create(&e);
    assert_fails(ops->open(e.persistence, &s, &failure), wanted, cause, text);
    assert_fails(ops->verify(e.persistence, &failure), wanted, cause, text);
    assert_fails(ops->install(e.persistence, &failure), wanted, cause, text);
}

static void test_no_server(void **state)
{
    (void)state;
    e.config.port = 1;
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "refused");
}

static void test_no_such_role(void **state)
{
    (void)state;
    e.config.user = "nobody_of_that_name";
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "SQLSTATE 28000");
}

static void test_no_such_database(void **state)
{
    (void)state;
    e.config.conninfo = "dbname=none_of_that_name";
    assert_open_fails(WB_FATAL, WB_CAUSE_MISSING, "SQLSTATE 3D000");
}

static void test_no_such_service(void **state)
{
    (void)state;
    e.config.conninfo = "service=none_of_that_name";
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "none_of_that_name");
}

static void test_tls_is_not_given_up(void **state)
{
    (void)state;
    e.config.sslmode = 6; /* verify-full */
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "");
}

static void test_malformed_options(void **state)
{
    (void)state;
    e.config.conninfo = "host=x bogus=y";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "conninfo");
    e.config.conninfo = NULL;
    e.config.schema = "";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "schema");
}

static void test_connect_timeout(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int silent = socket(AF_INET, SOCK_STREAM, 0);
    (void)state;
    assert_int_equal(bind(silent, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(silent, 8), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&address, &size), 0);
    e.config.port = ntohs(address.sin_port);
    e.config.connect_timeout = 200 * WB_MILLISECOND;
    int64_t start = wb_clock_monotonic();
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "connect_timeout");
    assert_true(wb_clock_monotonic() - start < 5 * WB_SECOND);
    close(silent);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_descriptor),
        TEST(test_missing_tables_are_said_once),
        TEST(test_install_makes_the_schema),
        TEST(test_install_again_and_at_once),
        TEST(test_endpoints_share_a_schema),
        TEST(test_odd_names),
        TEST(test_printed_schema_is_what_install_does),
        TEST(test_other_versions_and_owners),
        TEST(test_privileges),
        TEST(test_settings_that_lose_commits),
        TEST(test_no_server),
        TEST(test_no_such_role),
        TEST(test_no_such_database),
        TEST(test_no_such_service),
        TEST(test_tls_is_not_given_up),
        TEST(test_malformed_options),
        TEST(test_connect_timeout),
        TEST(test_application_name_and_encoding),
    };
    return cmocka_run_group_tests_name("pgsql schema and connecting", tests, load_plugin, NULL);
}

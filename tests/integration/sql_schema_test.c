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
#include "tests/integration/sql_schema.h"

static void test_descriptor(void **state)
{
    (void)state;
    assert_int_equal(plugin->struct_size, sizeof(wb_plugin));
    assert_int_equal(plugin->magic, WB_PLUGIN_MAGIC);
    assert_int_equal(plugin->kind, WB_PLUGIN_PERSISTENCE);
    assert_string_equal(plugin->name, words.name);
    assert_string_equal(plugin->client_library, words.library);
    assert_true((plugin->capabilities & WB_CAP_OUTBOX) != 0);
    assert_true((plugin->capabilities & WB_CAP_DELAY_STORE) != 0);
    assert_non_null(ops->delayed);
    for (size_t i = 0; i < plugin->option_count; i++) {
        const wb_option *option = &plugin->options[i];
        assert_non_null(option->name);
        assert_non_null(option->summary);
        assert_true(option->offset < plugin->config_size);
        if (strcmp(option->name, "password") == 0 || strcmp(option->name, "conninfo") == 0)
            assert_true((option->flags & WB_OPTION_SECRET) != 0);
    }
}

static void test_missing_tables(void **state)
{
    (void)state;
    endpoint_create(&e);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
    observe_in("drop table %s.orders_pending");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "orders_pending");
    install(&e);
    verify(&e);
}

static void assert_table(const char *table, int wanted)
{
    assert_int_equal(strstr(ops->schema(e.persistence), table) != NULL, wanted);
}

/* An installation of before, or of an endpoint whose delays are the broker's or nobody's, has no
 * table of delayed messages, and goes on working; install adds it where it is wanted. */
static void test_delays(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    assert_table("orders_delayed", 0);
    for (int32_t delays = WB_DELAYS_BY_NOBODY; delays <= WB_DELAYS_BY_TRANSPORT; delays++) {
        endpoint_destroy(&e);
        e.info.delays = delays;
        endpoint_create(&e);
        assert_table("orders_delayed", 0);
        verify(&e);
    }
    endpoint_destroy(&e);
    e.info.delays = WB_DELAYS_BY_STORE;
    endpoint_create(&e);
    assert_table("orders_delayed", 1);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "orders_delayed");
    assert_non_null(strstr(failure.text, "run \"waybill install\""));
    install(&e);
    verify(&e);
    observe_in("insert into %s.orders_delayed (id, destination, retries, due, operation) "
               "values ('a', 'b', 0, 1, 'c')");
    install(&e);
    assert_int_equal(count_in("orders_delayed"), 1);
    /* a host that does not know the field: what lies there is not looked at */
    endpoint_destroy(&e);
    e.info.struct_size = offsetof(wb_endpoint_info, delays);
    endpoint_create(&e);
    assert_table("orders_delayed", 0);
    install(&e);
    verify(&e);
    assert_int_equal(count_in("orders_delayed"), 1);
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
    for (int round = 0; round < 3; round++) {
        make_container(spare_container());
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, install_once, &results[i]);
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(results[i], WB_OK);
        }
        verify(&e);
    }
    observe_in("insert into %s.orders_dedup values ('a', 1)");
    install(&e); /* keeps what is there */
    assert_int_equal(count_in("orders_dedup"), 1);
}

static void test_endpoints_share_a_container(void **state)
{
    endpoint other;
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_init(&other, "billing");
    use_container(&other.config, spare_container());
    endpoint_create(&other);
    install(&other);
    verify(&other);
    verify(&e);
    assert_int_equal(count_in("waybill_endpoints"), 2);
    endpoint_destroy(&other);
}

static void use_once(endpoint *odd)
{
    wb_claim claim = claim_of("a");
    const wb_mark mark = { .batch = 1 };
    install(odd);
    verify(odd);
    wb_storage_session *s = open_session(odd);
    begin_claims(s, 1, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit_batch(s, 1, "x", NULL), WB_OK);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    ops->close(s);
}

/* Quotes of either kind, a backslash, braces, no ASCII, and more than an identifier holds; in a
 * container with a quote and a semicolon in its name. */
static void test_odd_names(void **state)
{
    static const char *const names[] = { "Sales.Orders", "o'r\\d`e\"rs {dedup}", "b\xc3\xbc" "cher",
                                         "a rather long name of an endpoint, longer than what "
                                         "most servers keep of an identifier" };
    char odd_container[80];
    (void)state;
    (void)snprintf(odd_container, sizeof odd_container, "%s o%c'd;d", spare_container(), words.quote);
    make_container(odd_container);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        endpoint odd;
        endpoint_init(&odd, names[i]);
        use_container(&odd.config, odd_container);
        endpoint_create(&odd);
        use_once(&odd);
        endpoint_destroy(&odd);
    }
    use_container(&e.config, odd_container);
    assert_int_equal(count_in("waybill_endpoints"), 4);
    drop_container(odd_container);
}

/* Names that are the same but for case, or for what is beyond a limit, or that another endpoint's tables
 * and indexes have: none sees what another has. */
static void test_names_that_nearly_meet(void **state)
{
    static const char digits[] = "0123456789";
    static const char *const names[] = { "orders", "Orders", "ORDERS", "orders_dedup", "orders_pending",
                                         "orders_delayed", "orders_dedup_batch", "waybill", "waybill_endpoints" };
    enum { NAMED = sizeof names / sizeof names[0], LONG = 8, ALL = NAMED + LONG };
    static const size_t sizes[] = { 50, 51, 63, 200 };
    char longer[LONG][201] = { "" };
    endpoint all[ALL];
    (void)state;
    for (size_t i = 0; i < LONG; i++) {
        for (size_t at = 0; at < sizes[i / 2]; at++)
            longer[i][at] = digits[at % 10];
        longer[i][strlen(longer[i]) - 1] = (char)('a' + i);
    }
    for (size_t i = 0; i < ALL; i++) {
        endpoint_init(&all[i], i < NAMED ? names[i] : longer[i - NAMED]);
        all[i].info.delays = WB_DELAYS_BY_STORE;
        use_container(&all[i].config, spare_container());
        endpoint_create(&all[i]);
        install(&all[i]);
    }
    for (size_t i = 0; i < ALL; i++) {
        wb_claim claim = claim_of("a");
        verify(&all[i]);
        wb_storage_session *s = open_session(&all[i]);
        begin_claims(s, i + 1, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(commit_batch(s, i + 1, "x", NULL), WB_OK);
        ops->close(s);
        endpoint_destroy(&all[i]);
    }
    assert_int_equal(count_in("waybill_endpoints"), ALL);
}

/* The name is taken by a table of the business: it is neither used nor changed. */
static void test_foreign_tables(void **state)
{
    (void)state;
    endpoint_create(&e);
    observe_in("create table %s.orders_pending (id integer)");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "is not one of an outbox");
    assert_non_null(strstr(failure.text, "rename it, or set another option"));
    observe_in("insert into %s.orders_pending values (1)");
    observe_in("drop table %s.orders_pending");
    install(&e);
    verify(&e);
}

/* What an administrator runs by hand is what install does. */
static void test_printed_schema(void **state)
{
    (void)state;
    e.info.delays = WB_DELAYS_BY_STORE;
    endpoint_create(&e);
    char *text = strdup(ops->schema(e.persistence));
    for (char *statement = text, *end; (end = strstr(statement, ";\n")); statement = end + 2) {
        *end = '\0';
        observe(statement);
    }
    free(text);
    verify(&e);
    install(&e);
    verify(&e);
}

static void test_other_versions_and_owners(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    observe_in("update %s.waybill_endpoints set version = 3");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "version 3");
    wb_storage_session *s = NULL;
    assert_fails(ops->open(e.persistence, &s, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "version 3");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "newer");
    observe_in("delete from %s.waybill_endpoints");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
    observe_in("update %s.waybill_endpoints set endpoint = 'another'");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
}

/* ---- keys --------------------------------------------------------------------------- */

#define UUID(number) "c0ffee00-1234-7abc-8def-00000000000" #number

static long long count_keys(size_t size)
{
    char rows[64];
    (void)snprintf(rows, sizeof rows, "orders_dedup where length(%s) = %zu", words.key, size);
    return count_in(rows);
}

/* Those of a version that kept ids as they are, and may run beside this one: it finds ours, we find
 * its, and no installation changes that. */
static void test_tables_of_version_1(void **state)
{
    wb_claim claims[] = { claim_of(UUID(1)), claim_of(UUID(2)), claim_of(UUID(3)) };
    wb_commit commit = { .struct_size = sizeof commit, .batch = 5, .released = claims + 2,
                         .released_count = 1 };
    char insertion[128];
    (void)state;
    endpoint_create(&e);
    install(&e);
    observe_in("update %s.waybill_endpoints set version = 1");
    (void)snprintf(insertion, sizeof insertion, "insert into %%s.orders_dedup values ('%s', 4)", UUID(1));
    observe_in(insertion);
    install(&e);
    verify(&e);
    wb_storage_session *s = open_session(&e);
    begin_claims(s, 5, claims, 3);
    assert_int_equal(claims[0].duplicate_of, 4);
    assert_int_equal(claims[1].duplicate_of, 0);
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    assert_int_equal(count_keys(36), 2);
    assert_int_equal(count_in("orders_dedup"), 2);
    assert_int_equal(ops->find(s, claims, 3, &failure), WB_OK);
    assert_int_equal(claims[0].duplicate_of, 4);
    assert_int_equal(claims[1].duplicate_of, 5);
    assert_int_equal(claims[2].duplicate_of, 0);
    ops->close(s);
}

static void test_keys_are_compact(void **state)
{
    wb_claim claims[] = { claim_of("a"), claim_of(UUID(1)), claim_of(UUID(2)) };
    (void)state;
    endpoint_create(&e);
    install(&e);
    wb_storage_session *s = open_session(&e);
    begin_claims(s, 5, claims, 3);
    assert_int_equal(commit_batch(s, 5, NULL, NULL), WB_OK);
    assert_int_equal(count_keys(17), 2);
    assert_int_equal(count_keys(1), 1);
    ops->close(s);
}

static int see(void *argument, const wb_delayed *message)
{
    (void)message;
    ++*(int *)argument;
    return WB_OK;
}

static void delay_as_clerk(wb_storage_session *s)
{
    const wb_delayed_ops *store = ops->delayed;
    const wb_delayed message = { .struct_size = sizeof message, .destination = "b",
                                 .destination_size = 1, .id = "a", .id_size = 1, .due = 1 };
    wb_delayed_key key = { .destination = "b", .destination_size = 1, .id = "a", .id_size = 1 };
    const char owner[WB_DELAYED_OWNER_SIZE] = "clerk";
    const wb_delayed_fetch fetch = { .struct_size = sizeof fetch, .limit = 9, .owner = owner,
                                     .lease = WB_SECOND };
    int seen = 0;
    if (store->store(s, &message, 1, &failure) != WB_OK ||
        store->fetch(s, &fetch, see, &seen, &failure) != WB_OK ||
        store->increment_failure_count(s, owner, &key, 1, 1, &failure) != WB_OK ||
        store->remove(s, NULL, &key, 1, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(seen, 1);
    assert_int_equal(key.was_there, 1);
}

static void work_as_clerk(void)
{
    wb_storage_session *s = open_session(&e);
    delay_as_clerk(s);
    wb_claim claims[] = { claim_of("a"), claim_of("b") };
    const wb_mark marks[] = { { .batch = 1 }, { .batch = 2, .remaining = "x",
                                               .remaining_size = 1 } };
    size_t deleted = 0;
    begin_claims(s, 1, claims, 1);
    assert_int_equal(commit_batch(s, 1, "x", NULL), WB_OK);
    begin_claims(s, 2, claims, 2);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_int_equal(ops->mark(s, marks, 2, &failure), WB_OK);
    if (ops->clean_up(s, 9, 9, &deleted, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(deleted, 1);
    ops->close(s);
}

static void test_privileges(void **state)
{
    (void)state;
    e.info.delays = WB_DELAYS_BY_STORE;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    make_clerk(&e.config);
    endpoint_create(&e);
    for (size_t i = 0; clerk_grants[i]; i++) {
        assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "");
        observe_in(clerk_grants[i]);
    }
    verify(&e); /* and that is enough to work */
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "");
    work_as_clerk();
}

/* ---- connecting ------------------------------------------------------------------- */

static void test_no_server(void **state)
{
    (void)state;
    e.config.port = 1;
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "could not connect");
}

static void test_no_such_user(void **state)
{
    (void)state;
    e.config.user = "nobody_of_that_name";
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, words.no_user);
}

static void test_no_such_database(void **state)
{
    (void)state;
    drop_container(spare_container());
    e.config.database = spare_container();
    assert_open_fails(WB_FATAL, WB_CAUSE_MISSING, words.no_database);
}

static void test_container_without_a_name(void **state)
{
    (void)state;
    use_container(&e.config, "");
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, words.container);
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
    e.config.connect_timeout = WB_SECOND;
    int64_t start = wb_clock_monotonic();
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, words.connect_timeout);
    assert_true(wb_clock_monotonic() - start < 15 * WB_SECOND); /* it tried three times */
    close(silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_SCHEMA(test_descriptor),
        TEST_SCHEMA(test_missing_tables),
        TEST_SCHEMA(test_delays),
        TEST_SCHEMA(test_install_again_and_at_once),
        TEST_SCHEMA(test_endpoints_share_a_container),
        TEST_SCHEMA(test_odd_names),
        TEST_SCHEMA(test_names_that_nearly_meet),
        TEST_SCHEMA(test_foreign_tables),
        TEST_SCHEMA(test_printed_schema),
        TEST_SCHEMA(test_other_versions_and_owners),
        TEST_SCHEMA(test_tables_of_version_1),
        TEST_SCHEMA(test_keys_are_compact),
        TEST_SCHEMA(test_privileges),
        TEST_SCHEMA(test_no_server),
        TEST_SCHEMA(test_no_such_user),
        TEST_SCHEMA(test_no_such_database),
        TEST_SCHEMA(test_container_without_a_name),
        TEST_SCHEMA(test_connect_timeout),
    };
    return run_sql_tests("schema and connecting", tests, sizeof tests / sizeof tests[0]);
}

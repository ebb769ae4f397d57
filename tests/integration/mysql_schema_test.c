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
#include "tests/integration/mysql_fixture.h"

#define CLERK "waybill_clerk"

static endpoint e;
static char empty[64]; /* a database beside the test's own */

/* A statement with the name of that database in the place of %s. */
static void observe_in(const char *format)
{
    char statement[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(statement, sizeof statement, format, empty);
#pragma GCC diagnostic pop
    observe(statement);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(empty, sizeof empty, "%s_b", getenv("MYSQL_DATABASE"));
    observe_in("drop database if exists %s");
    observe_in("create database %s character set latin1");
    endpoint_init(&e, "orders");
    e.config.database = empty;
    warnings = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (e.persistence)
        endpoint_destroy(&e);
    observe_in("drop database if exists %s");
    return 0;
}

static void assert_fails(int result, int wanted, int cause, const char *text)
{
    if (result != wanted || failure.cause != cause || !strstr(failure.text, text))
        fail_msg("got %d, cause %d: %s", result, failure.cause, failure.text);
    const char *password = getenv("MYSQL_PASSWORD");
    assert_true(!password || !*password || !strstr(failure.text, password));
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
    assert_string_equal(plugin->name, "mysql");
    assert_string_equal(plugin->client_library, "libmariadb.so.3");
    assert_true((plugin->capabilities & WB_CAP_OUTBOX) != 0);
    for (size_t i = 0; i < plugin->option_count; i++) {
        const wb_option *option = &plugin->options[i];
        assert_true(option->offset < plugin->config_size);
        if (strcmp(option->name, "password") == 0)
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
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, install_once, &results[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(results[i], WB_OK);
    }
    verify(&e);
    observe_in("insert into %s.orders_dedup values ('a', 1)");
    install(&e); /* keeps what is there */
    observe_in("delete from %s.orders_dedup");
    assert_int_equal(observe_number("select row_count()"), 1);
}

static void test_odd_names(void **state)
{
    static const char *const names[] = { "Sales.Orders", "o'r\\d`ers {dedup}", "b\xc3\xbc" "cher",
                                         "a rather long name of an endpoint, longer than what "
                                         "MySQL takes as an identifier" };
    char odd_database[64];
    char statement[160];
    (void)state;
    (void)snprintf(odd_database, sizeof odd_database, "%s o`d;d", getenv("MYSQL_DATABASE"));
    (void)snprintf(statement, sizeof statement, "create database `%s o``d;d`",
                   getenv("MYSQL_DATABASE"));
    observe(statement);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        endpoint odd;
        wb_claim claim = claim_of("a");
        const wb_mark mark = { .batch = 1 };
        endpoint_init(&odd, names[i]);
        odd.config.database = odd_database;
        endpoint_create(&odd);
        install(&odd);
        verify(&odd);
        wb_storage_session *s = open_session(&odd);
        begin_claims(s, 1, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(commit_batch(s, 1, "x", NULL), WB_OK);
        assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
        ops->close(s);
        endpoint_destroy(&odd);
    }
    (void)snprintf(statement, sizeof statement,
                   "select count(*) from `%s o``d;d`.waybill_endpoints", getenv("MYSQL_DATABASE"));
    assert_int_equal(observe_number(statement), 4);
    (void)snprintf(statement, sizeof statement, "drop database `%s o``d;d`",
                   getenv("MYSQL_DATABASE"));
    observe(statement);
}

/* What an administrator runs by hand is what install does. */
static void test_printed_schema(void **state)
{
    (void)state;
    endpoint_create(&e);
    char *text = strdup(ops->schema(e.persistence));
    for (char *rest = text, *statement; (statement = strsep(&rest, ";")) && rest;)
        observe(statement);
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
    observe_in("update %s.waybill_endpoints set version = 2");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "version 2");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "newer");
    observe_in("update %s.waybill_endpoints set version = 0");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISSING,
                 "run \"waybill install\"");
    install(&e);
    verify(&e);
    observe_in("update %s.waybill_endpoints set endpoint = 'another'");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "another");
}

static void test_other_engine(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    observe_in("alter table %s.orders_dedup engine = MyISAM");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "MyISAM");
}

static void test_privileges(void **state)
{
    static const char *const grants[] = {
        "grant select on %s.waybill_endpoints to " CLERK,
        "grant select, insert, update, delete on %s.orders_dedup to " CLERK,
        "grant select, insert, delete on %s.orders_pending to " CLERK,
        "grant update on %s.orders_pending to " CLERK,
    };
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    e.persistence = NULL;
    observe("create or replace user " CLERK " identified by 'secret'");
    e.config.user = CLERK;
    e.config.password = "wrong";
    endpoint_create(&e);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "1045");
    e.config.password = "secret";
    for (size_t i = 0; i < sizeof grants / sizeof grants[0]; i++) {
        assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "denied");
        observe_in(grants[i]);
    }
    verify(&e); /* and that is enough to work */
    assert_fails(ops->install(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "denied");
    wb_storage_session *s = open_session(&e);
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
    observe("drop user " CLERK);
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
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "could not connect");
}

static void test_no_such_user(void **state)
{
    (void)state;
    e.config.user = "nobody_of_that_name";
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "error 1045");
}

static void test_no_such_database(void **state)
{
    (void)state;
    observe_in("drop database %s");
    assert_open_fails(WB_FATAL, WB_CAUSE_MISSING, "create it");
}

static void test_socket(void **state)
{
    (void)state;
    e.config.socket = getenv("MYSQL_SOCKET");
    e.config.port = 1;
    endpoint_create(&e);
    install(&e);
    verify(&e);
    endpoint_destroy(&e);
    e.config.socket = "/nonexistent";
    assert_open_fails(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "nonexistent");
}

static void assert_encrypted(int wanted)
{
    endpoint_create(&e);
    wb_storage_session *s = open_session(&e);
    begin_batch(s, 0);
    MYSQL *db = api->connection(s, 0);
    assert_int_equal(mysql_query(db, "show session status like 'ssl_cipher'"), 0);
    MYSQL_RES *rows = mysql_store_result(db);
    assert_int_equal(*mysql_fetch_row(rows)[1] != '\0', wanted);
    mysql_free_result(rows);
    /* nothing of TLS's own is taken for the end of the connection */
    assert_int_equal(commit_batch(s, 0, NULL, NULL), WB_OK);
    for (uint64_t batch = 1; batch < 4; batch++) {
        begin_batch(s, batch);
        if (commit_batch(s, batch, "x", NULL) != WB_OK)
            fail_msg("%s", failure.text);
    }
    ops->close(s);
    observe_in("delete from %s.orders_pending");
    endpoint_destroy(&e);
    e.persistence = NULL;
}

static void test_tls(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    assert_encrypted(0); /* auto, on this machine */
    e.config.ssl_mode = MYS_SSL_REQUIRED;
    assert_encrypted(1);
    e.config.ssl_mode = MYS_SSL_VERIFY;
    e.config.ssl_ca = getenv("MYSQL_CA");
    assert_encrypted(1);
}

static void test_tls_of_an_unknown_authority(void **state)
{
    (void)state;
    e.config.ssl_mode = MYS_SSL_VERIFY;
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "check ssl_ca");
    endpoint_destroy(&e);
    e.config.ssl_ca = getenv("OTHER_CA");
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "check ssl_ca");
}

/* Without ssl_ca: whom the system trusts, wherever OpenSSL was told to look for that. */
static void test_tls_of_the_systems_authorities(void **state)
{
    char place[] = "/tmp/waybill-ca.XXXXXX", command[400];
    (void)state;
    endpoint_create(&e);
    install(&e);
    endpoint_destroy(&e);
    e.config.ssl_mode = MYS_SSL_VERIFY;
    setenv("SSL_CERT_FILE", getenv("MYSQL_CA"), 1);
    assert_encrypted(1);
    unsetenv("SSL_CERT_FILE");
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "check ssl_ca");
    endpoint_destroy(&e);
    assert_non_null(mkdtemp(place));
    (void)snprintf(command, sizeof command, "cp '%s' %s/ca.pem && openssl rehash %s", getenv("MYSQL_CA"),
                   place, place);
    assert_int_equal(system(command), 0);
    setenv("SSL_CERT_DIR", place, 1);
    assert_encrypted(1);
    unsetenv("SSL_CERT_DIR");
    (void)snprintf(command, sizeof command, "rm -r %s", place);
    assert_int_equal(system(command), 0);
}

/* Another name for the address, which the certificate does not hold. */
static void test_tls_of_another_host(void **state)
{
    (void)state;
    e.config.host = "127.1";
    e.config.ssl_mode = MYS_SSL_VERIFY;
    e.config.ssl_ca = getenv("MYSQL_CA");
    assert_open_fails(WB_FATAL, WB_CAUSE_REFUSED, "is a name in it");
}

static void test_malformed_options(void **state)
{
    (void)state;
    e.config.database = "";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "database");
    e.config.database = empty;
    e.config.ssl_mode = MYS_SSL_DISABLED;
    e.config.ssl_ca = "x";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "ssl_mode");
}

static void test_connect_timeout(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int silent = socket(AF_INET, SOCK_STREAM, 0);
    wb_storage_session *s = NULL;
    (void)state;
    assert_int_equal(bind(silent, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(silent, 8), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&address, &size), 0);
    e.config.port = ntohs(address.sin_port);
    e.config.connect_timeout = WB_SECOND;
    int64_t start = wb_clock_monotonic();
    endpoint_create(&e);
    assert_fails(ops->open(e.persistence, &s, &failure), WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                 "could not connect");
    assert_true(wb_clock_monotonic() - start < 10 * WB_SECOND);
    close(silent);
}

/* ---- a server without TLS, which writes down what it is told -------------------------- */

typedef struct peer {
    int listener;
    int knows_methods; /* of authentication */
    ssize_t heard;
} peer;

static size_t greet(const peer *p, unsigned char *packet)
{
    static const unsigned char without[] = "\12" "5.5.5-10.11.6-MariaDB\0" "\1\0\0\0" "saltsalt\0"
                                           "\x0f\xa2" "\x2d" "\2\0" "\0\0" "\0" "\0\0\0\0\0\0\0\0\0\0"
                                           "saltsaltsalt";
    static const unsigned char with[] = "\12" "5.5.5-10.11.6-MariaDB\0" "\1\0\0\0" "saltsalt\0"
                                        "\x0f\xa2" "\x2d" "\2\0" "\x09\0" "\25" "\0\0\0\0\0\0\0\0\0\0"
                                        "saltsaltsalt\0" "mysql_native_password";
    size_t size = p->knows_methods ? sizeof with : sizeof without;
    packet[0] = (unsigned char)size;
    packet[1] = packet[2] = packet[3] = 0;
    memcpy(packet + 4, p->knows_methods ? with : without, size);
    return size + 4;
}

static void *listen_to_one(void *argument)
{
    peer *p = argument;
    unsigned char bytes[512];
    struct timeval patience = { .tv_sec = 5 };
    int connection = accept(p->listener, NULL, NULL);
    size_t size = greet(p, bytes);
    (void)setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (write(connection, bytes, size) == (ssize_t)size)
        p->heard = read(connection, bytes, sizeof bytes);
    close(connection);
    return NULL;
}

static void hears_nothing(int32_t mode, int knows_methods)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    peer p = { socket(AF_INET, SOCK_STREAM, 0), knows_methods, -1 };
    wb_storage_session *s = NULL;
    pthread_t thread;
    assert_int_equal(bind(p.listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(p.listener, 8), 0);
    assert_int_equal(getsockname(p.listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pthread_create(&thread, NULL, listen_to_one, &p), 0);
    e.config.host = "127.0.0.1";
    e.config.port = ntohs(address.sin_port);
    e.config.ssl_mode = mode;
    endpoint_create(&e);
    int result = ops->open(e.persistence, &s, &failure);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(p.heard, 0); /* the end, and not one byte before it */
    assert_fails(result, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "does not support it");
    endpoint_destroy(&e);
    close(p.listener);
}

static void test_no_user_name_before_tls(void **state)
{
    (void)state;
    for (int knows_methods = 0; knows_methods < 2; knows_methods++) {
        hears_nothing(MYS_SSL_VERIFY, knows_methods);
        hears_nothing(MYS_SSL_REQUIRED, knows_methods);
    }
    endpoint_init(&e, "orders");
    endpoint_create(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_descriptor),
        TEST(test_missing_tables),
        TEST(test_install_again_and_at_once),
        TEST(test_odd_names),
        TEST(test_printed_schema),
        TEST(test_other_versions_and_owners),
        TEST(test_other_engine),
        TEST(test_privileges),
        TEST(test_no_server),
        TEST(test_no_such_user),
        TEST(test_no_such_database),
        TEST(test_socket),
        TEST(test_tls),
        TEST(test_tls_of_an_unknown_authority),
        TEST(test_tls_of_the_systems_authorities),
        TEST(test_tls_of_another_host),
        TEST(test_malformed_options),
        TEST(test_connect_timeout),
        TEST(test_no_user_name_before_tls),
    };
    return cmocka_run_group_tests_name("mysql schema and connecting", tests, load_plugin, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport's connections: their name, limits, several hosts, logging in by a
 * certificate, and certificates that change.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

static void assert_failed(const fixture *f, int got, int result, int cause, const char *text)
{
    if (got != result || f->error.cause != cause || !strstr(f->error.text, text))
        fail_msg("result %d cause %d: %s", got, f->error.cause, f->error.text);
}

static int open_session(fixture *f)
{
    return f->ops->open(f->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, 1, &f->session, &f->error);
}

/* How many of the broker's connections say that of themselves; -1: one of them ended while they were listed. */
static int count_connections(const char *columns, const char *text)
{
    char command[1024];
    static char line[65536];
    int count = 0;
    (void)snprintf(command, sizeof command, "%s/tests/integration/amqp-broker ctl %s list_connections %s",
                   getenv("top_srcdir"), fixture_directory(), columns);
    FILE *list = popen(command, "r");
    assert_non_null(list);
    while (fgets(line, sizeof line, list))
        count += strstr(line, text) != NULL;
    return pclose(list) == 0 ? count : -1;
}

/* The broker lists one that was closed for a moment more. */
static void assert_connections(const char *columns, const char *text, int count)
{
    int found = -1;
    for (int tries = 0; tries < 100 && found != count; tries++) {
        if (tries)
            usleep(100000);
        found = count_connections(columns, text);
    }
    assert_int_equal(found, count);
}

static void test_name(void **state)
{
    fixture f;
    char name[200];
    (void)state;
    fixture_begin(&f, 1);
    (void)snprintf(name, sizeof name, "{\"connection_name\",\"waybill %s (send)\"}", f.queue);
    assert_connections("client_properties", name, 1);
    (void)snprintf(name, sizeof name, "{\"connection_name\",\"waybill %s (receive)\"}", f.queue);
    assert_connections("client_properties", name, 1);
    fixture_end(&f);
}

/* A broker that just ended somebody's connections may end this one, too, before it says why. */
static void assert_refused_login(fixture *f, const char *text)
{
    int result = WB_NOT_CONNECTED;
    for (int tries = 0; tries < 10 && result == WB_NOT_CONNECTED; tries++)
        result = open_session(f);
    assert_failed(f, result, WB_FATAL, WB_CAUSE_REFUSED, text);
}

/* Somebody else's connections are in the way: the same works when there are fewer. */
static void test_limits(void **state)
{
    static const char *const limits[][2] = {
        { "set_vhost_limits '{\"max-connections\": 1}'", "clear_vhost_limits" },
        { "set_user_limits guest '{\"max-connections\": 1}'", "clear_user_limits guest all" },
        { "set_user_limits guest '{\"max-channels\": 1}'", "clear_user_limits guest all" },
    };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    for (size_t i = 0; i < 3; i++) {
        fixture_broker("ctl", limits[i][0]);
        assert_failed(&f, open_session(&f), WB_NOT_CONNECTED, WB_CAUSE_SERVER, "reached");
        fixture_broker("ctl", limits[i][1]);
        fixture_open(&f, 1);
        fixture_close(&f);
    }
    fixture_end(&f);
}

/* ---- several hosts ----------------------------------------------------------------- */

static void assert_refused(fixture *f, const char *text)
{
    assert_failed(f, f->ops->create(&f->host.host, &f->endpoint, &f->config, &f->transport, &f->error),
                  WB_FATAL, WB_CAUSE_CONFIG, text);
}

static void test_refused_hosts(void **state)
{
    static const char *const wrong[] = { "",       "a,,b",  "a,",       "a:",    "a:x", "a:70000",
                                         "a:0",    ":5672", "[::1]5672", "[]:1", "[",   "a:123456" };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.host = "a,b";
    assert_refused(&f, "write hosts = \"a,b\"");
    f.config.host = "a";
    f.config.hosts = "b,c";
    assert_refused(&f, "keep one of them");
    f.config.host = "localhost";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        f.config.hosts = wrong[i];
        assert_refused(&f, "cannot be used");
    }
    /* one that is elsewhere is enough to ask for what is safe */
    f.config.hosts = "localhost, broker.example";
    assert_refused(&f, "\"broker.example\"");
    f.config.tls = WB_AMQP_TLS_OFF;
    f.config.user = "clerk";
    assert_refused(&f, "allow_insecure");
}

/* A port where nobody listens is found within ten tries, if the order is by chance. */
static void test_hosts(void **state)
{
    fixture f;
    char hosts[200];
    (void)state;
    fixture_prepare(&f);
    (void)snprintf(hosts, sizeof hosts, "localhost:1, 127.0.0.1:%d,[::1]:1", fixture_port("AMQP_PORT"));
    f.config.hosts = hosts;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    for (int i = 0; i < 10; i++) {
        fixture_open(&f, 1);
        fixture_fill(&f, 1);
        fixture_close(&f);
    }
    fixture_end(&f);
}

static void test_no_host(void **state)
{
    fixture f;
    int first = 0, second = 0;
    (void)state;
    fixture_prepare(&f);
    f.config.hosts = "localhost:1,127.0.0.1:2";
    fixture_create(&f);
    for (int i = 0; i < 64; i++) {
        assert_failed(&f, open_session(&f), WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "could not connect");
        first += strstr(f.error.text, "\"127.0.0.1\" port 2") != NULL;
        second += strstr(f.error.text, "\"localhost\" port 1") != NULL;
    }
    assert_int_equal(first + second, 64);
    assert_in_range(first, 1, 63); /* the last one tried, by chance */
    fixture_end(&f);
}

/* What one node says of the user, all say. */
static void test_refusal_ends_the_round(void **state)
{
    fixture f;
    char hosts[200];
    (void)state;
    fixture_prepare(&f);
    int port = fixture_port("AMQP_PORT");
    (void)snprintf(hosts, sizeof hosts, "localhost:%d,127.0.0.1:%d", port, port);
    f.config.hosts = hosts;
    f.config.password = "wrong";
    fixture_create(&f);
    assert_failed(&f, open_session(&f), WB_FATAL, WB_CAUSE_REFUSED, "check user, password");
    fixture_end(&f);
}

/* ---- certificates ------------------------------------------------------------------ */

static void install_pair(const char *certificate, const char *key)
{
    char command[2048];
    const char *dir = fixture_directory();
    (void)snprintf(command, sizeof command, "cp %s/%s.pem %s/current.pem && cp %s/%s.key %s/current.key",
                   dir, certificate, dir, dir, key, dir);
    assert_int_equal(system(command), 0);
}

static void install_certificate(const char *name)
{
    install_pair(name, name);
}

static void use_certificate(fixture *f)
{
    static char ca[512], certificate[512], key[512];
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    (void)snprintf(certificate, sizeof certificate, "%s/current.pem", fixture_directory());
    (void)snprintf(key, sizeof key, "%s/current.key", fixture_directory());
    fixture_prepare(f);
    f->config.port = fixture_port("AMQPS_PORT");
    f->config.tls = WB_AMQP_TLS_ON;
    f->config.tls_ca_file = ca;
    f->config.tls_cert_file = certificate;
    f->config.tls_key_file = key;
    f->config.sasl = WB_AMQP_SASL_EXTERNAL;
    f->config.user = "nobody";
    f->config.password = "wrong";
}

/* One node's certificate has another name, the other node is away: in whatever order they are asked, the
 * endpoint waits for that one, and says both. */
static void test_untrusted_beside_away(void **state)
{
    fixture f;
    char hosts[200];
    int port = fixture_port("AMQPS_PORT");
    (void)state;
    use_certificate(&f);
    f.config.sasl = WB_AMQP_SASL_PLAIN;
    f.config.tls_cert_file = f.config.tls_key_file = NULL;
    (void)snprintf(hosts, sizeof hosts, "localhost:1,127.0.0.1:%d,localhost:2", port);
    f.config.hosts = hosts;
    fixture_create(&f);
    for (int i = 0; i < 32; i++) {
        assert_failed(&f, open_session(&f), WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "\"localhost\" port");
        assert_non_null(strstr(f.error.text, "certificate"));
    }
    fixture_end(&f);
    use_certificate(&f);
    f.config.sasl = WB_AMQP_SASL_PLAIN;
    f.config.tls_cert_file = f.config.tls_key_file = NULL;
    (void)snprintf(hosts, sizeof hosts, "127.0.0.1:%d,127.0.0.1:%d", port, port);
    f.config.hosts = hosts;
    fixture_create(&f);
    assert_failed(&f, open_session(&f), WB_FATAL, WB_CAUSE_REFUSED, "certificate");
    fixture_end(&f);
}

/* Who logs in stands in the certificate; another certificate counts from the next connection on. */
static void test_external(void **state)
{
    fixture f;
    (void)state;
    fixture_broker("ctl", "add_user clerk unused");
    fixture_broker("ctl", "set_permissions clerk '.*' '.*' '.*'");
    use_certificate(&f);
    install_certificate("stranger"); /* its files are there when the instance is made */
    fixture_create(&f);
    assert_failed(&f, f.ops->install(f.transport, &f.error), WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                  "could not");
    install_certificate("clerk");
    if (f.ops->install(f.transport, &f.error) != WB_OK)
        fail_msg("install: %s", f.error.text);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    assert_connections("user", "clerk", 2);
    install_certificate("stranger");
    fixture_fill(&f, 1); /* what is open stays so */
    fixture_close(&f);
    assert_failed(&f, open_session(&f), WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "could not");
    install_certificate("clerk");
    fixture_open(&f, 1);
    fixture_broker("ctl", "delete_user clerk");
    fixture_close(&f);
    assert_refused_login(&f, "permissions");
    fixture_end(&f);
}

static void test_external_needs_a_certificate(void **state)
{
    fixture f;
    (void)state;
    use_certificate(&f);
    f.config.tls_cert_file = f.config.tls_key_file = NULL;
    assert_refused(&f, "set tls_cert_file");
    use_certificate(&f);
    f.config.tls = WB_AMQP_TLS_OFF;
    assert_refused(&f, "tls = \"on\"");
    use_certificate(&f);
    install_pair("stranger", "clerk");
    assert_refused(&f, "tls_cert_file = ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refused_hosts),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_no_host),
        cmocka_unit_test(test_untrusted_beside_away),
        cmocka_unit_test(test_refusal_ends_the_round),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_external_needs_a_certificate),
    };
    return cmocka_run_group_tests_name("amqp connections", tests, NULL, NULL);
}

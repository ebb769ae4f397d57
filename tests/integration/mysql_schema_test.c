/* SPDX-License-Identifier: Apache-2.0
 *
 * Connecting, installing, verifying: what only MySQL has. */
#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/integration/sql_schema.h"

static void test_other_engine(void **state)
{
    (void)state;
    endpoint_create(&e);
    install(&e);
    observe_in("alter table %s.orders_dedup engine = MyISAM");
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_MISMATCH, "MyISAM");
}

static void test_wrong_password(void **state)
{
    (void)state;
    make_clerk(&e.config);
    e.config.password = "wrong";
    endpoint_create(&e);
    assert_fails(ops->verify(e.persistence, &failure), WB_FATAL, WB_CAUSE_REFUSED, "1045");
}

/* ---- connecting ------------------------------------------------------------------- */

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

static void test_tls_options_contradict(void **state)
{
    (void)state;
    e.config.ssl_mode = MYS_SSL_DISABLED;
    e.config.ssl_ca = "x";
    assert_fails(endpoint_try(&e), WB_FATAL, WB_CAUSE_CONFIG, "ssl_mode");
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

const struct CMUnitTest own_tests[] = {
    TEST_SCHEMA(test_other_engine),
    TEST_SCHEMA(test_wrong_password),
    TEST_SCHEMA(test_socket),
    TEST_SCHEMA(test_tls),
    TEST_SCHEMA(test_tls_of_an_unknown_authority),
    TEST_SCHEMA(test_tls_of_the_systems_authorities),
    TEST_SCHEMA(test_tls_of_another_host),
    TEST_SCHEMA(test_tls_options_contradict),
    TEST_SCHEMA(test_no_user_name_before_tls),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];

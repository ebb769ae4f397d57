/* SPDX-License-Identifier: Apache-2.0
 *
 * Several hosts: each has its own deadline, and what is wrong with one leads to the next. */
#include "config.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

#define TIMEOUT (2 * WB_SECOND)

/* ---- hosts that are no servers -------------------------------------------------------- */

typedef struct stub {
    int listener;
    int port;
    int closes; /* each connection as soon as it is there; else nobody answers */
    pthread_t thread;
} stub;

static void *close_all(void *argument)
{
    const stub *h = argument;
    int client;
    while ((client = accept(h->listener, NULL, NULL)) >= 0)
        close(client);
    return NULL;
}

/* Port 0: a free one. */
static void stub_start(stub *h, const char *address, int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    socklen_t size = sizeof at;
    const int on = 1;
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(h->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(h->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(h->listener, 32), 0);
    assert_int_equal(getsockname(h->listener, (struct sockaddr *)&at, &size), 0);
    h->port = ntohs(at.sin_port);
    if (h->closes)
        assert_int_equal(pthread_create(&h->thread, NULL, close_all, h), 0);
}

static void stub_stop(stub *h)
{
    shutdown(h->listener, SHUT_RDWR);
    if (h->closes)
        pthread_join(h->thread, NULL);
    close(h->listener);
}

/* A name that stands for two addresses, as the resolver of a cluster says it. */
#define TWO "two.waybill.test"

static struct addrinfo *resolve(const char *address, const char *service,
                                const struct addrinfo *hints)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    struct addrinfo *found = NULL;
    memcpy(&real, &symbol, sizeof real);
    return real(address, service, hints, &found) == 0 ? found : NULL;
}

/* for the plugin and libpq, too */
__attribute__((visibility("default"))) int getaddrinfo(const char *restrict name,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict ret_found)
{
    const int is_two = name && strcmp(name, TWO) == 0;
    *ret_found = resolve(is_two ? "127.0.0.2" : name, service, hints);
    if (*ret_found && is_two)
        (*ret_found)->ai_next = resolve("127.0.0.1", service, hints);
    return *ret_found ? 0 : EAI_NONAME;
}

/* ---- connecting ------------------------------------------------------------------------ */

static char conninfo[256];

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    return 0;
}

/* Two ports are for two hosts. */
static void look_at(const char *hosts, int first_port, int second_port)
{
    char second[16] = "";
    endpoint_destroy(&orders);
    if (second_port)
        (void)snprintf(second, sizeof second, ",%d", second_port);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s port=%d%s", hosts, first_port, second);
    orders.config.conninfo = conninfo;
    orders.config.connect_timeout = TIMEOUT;
    orders.config.allow_insecure = 1;
    orders.config.sslmode = 1; /* disable: nobody here has certificates */
    endpoint_create(&orders);
}

static int server_port(void)
{
    return atoi(getenv("PGPORT"));
}

/* Open a session that works. @return how long it took, in timeouts. */
static double time_opening(void)
{
    const int64_t start = wb_clock_monotonic();
    wb_storage_session *s = open_session(&orders);
    const double took = (double)(wb_clock_monotonic() - start) / (double)TIMEOUT;
    begin_batch(s, 10);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
    return took;
}

#define BOTH "127.0.0.1,127.0.0.1"

static void test_silent_first_host(void **state)
{
    stub silent = { .closes = 0 };
    (void)state;
    stub_start(&silent, "127.0.0.1", 0);
    look_at(BOTH, silent.port, server_port());
    const double took = time_opening();
    if (took < 1 || took > 1.9)
        fail_msg("it took %.2f timeouts", took);
    const double again = time_opening(); /* it is known where the server is */
    if (again > 0.9)
        fail_msg("the next took %.2f timeouts", again);
    stub_stop(&silent);
}

static void test_first_host_closes(void **state)
{
    stub in_front = { .closes = 1 }; /* one in front of a server that is not there */
    (void)state;
    stub_start(&in_front, "127.0.0.1", 0);
    look_at(BOTH, in_front.port, server_port());
    assert_true(time_opening() < 0.9);
    stub_stop(&in_front);
}

static void test_nobody_listens_first(void **state)
{
    stub gone = { .closes = 0 };
    (void)state;
    stub_start(&gone, "127.0.0.1", 0);
    stub_stop(&gone);
    look_at(BOTH, gone.port, server_port());
    assert_true(time_opening() < 0.9);
}

static void test_first_address_of_a_name_is_silent(void **state)
{
    stub silent = { .closes = 0 };
    (void)state;
    stub_start(&silent, "127.0.0.2", server_port());
    look_at(TWO, server_port(), 0);
    const double took = time_opening();
    if (took < 1 || took > 1.9)
        fail_msg("it took %.2f timeouts", took);
    stub_stop(&silent);
}

static void test_all_fail(void **state)
{
    wb_storage_session *s = NULL;
    stub silent = { .closes = 0 };
    stub in_front = { .closes = 1 };
    char port[32];
    (void)state;
    stub_start(&silent, "127.0.0.1", 0);
    stub_start(&in_front, "127.0.0.1", 0);
    look_at(BOTH, silent.port, in_front.port);
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_NOT_CONNECTED);
    assert_int_equal(failure.cause, WB_CAUSE_UNREACHABLE);
    (void)snprintf(port, sizeof port, "port %d", silent.port);
    assert_non_null(strstr(failure.text, port)); /* each with its reason */
    assert_non_null(strstr(failure.text, "connect_timeout"));
    (void)snprintf(port, sizeof port, "port %d", in_front.port);
    assert_non_null(strstr(failure.text, port));
    stub_stop(&silent);
    stub_stop(&in_front);
}

/* A wrong password at one, and silence at the other: waiting may help. Wrong everywhere, it is
 * the configuration's. */
static void test_refused_by_one_and_by_all(void **state)
{
    wb_storage_session *s = NULL;
    stub in_front = { .closes = 1 };
    (void)state;
    stub_start(&in_front, "127.0.0.1", 0);
    look_at(BOTH, server_port(), in_front.port);
    orders.config.database = "no such database";
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_NOT_CONNECTED);
    assert_non_null(strstr(failure.text, "3D000"));
    look_at(BOTH, server_port(), server_port());
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISSING);
    stub_stop(&in_front);
}

/* Nobody listens at the first address of its name: the server is the same. */
static void test_refused_at_one_address(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    look_at(TWO, server_port(), 0);
    orders.config.database = "no such database";
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(failure.text, "refused"));
    assert_non_null(strstr(failure.text, "3D000"));
}

/* ---- a service that names another server now and then ---------------------------------- */

static char services[] = "/tmp/waybill-services.XXXXXX";

/* NULL: no such service. */
static void write_service(const char *name, const char *more)
{
    FILE *file = fopen(services, "w");
    assert_non_null(file);
    if (name)
        assert_true(fprintf(file, "[orders]\nhost=%s\nport=%d\n%s", name, server_port(), more) > 0);
    assert_int_equal(fclose(file), 0);
}

static int set_up_service(void **state)
{
    const int file = mkstemp(services);
    assert_true(file >= 0);
    close(file);
    setenv("PGSERVICEFILE", services, 1);
    return set_up(state);
}

static int tear_down_service(void **state)
{
    unlink(services);
    (void)snprintf(services, sizeof services, "/tmp/waybill-services.XXXXXX");
    unsetenv("PGSERVICEFILE");
    return tear_down(state);
}

/* The service as it is when the endpoint starts. */
static void start_with_service(const char *name, int allow_insecure)
{
    write_service(name, "");
    endpoint_destroy(&orders);
    orders.config.conninfo = "service=orders";
    orders.config.connect_timeout = TIMEOUT;
    orders.config.allow_insecure = allow_insecure;
    orders.config.sslmode = 0; /* auto */
    endpoint_create(&orders);
}

/* What becomes of a service whose server is on another machine now: the one that a process which
 * starts now would meet. Nobody here has TLS. */
static void check_moved(const char *more, int result, int cause, const char *reason)
{
    wb_storage_session *s = NULL;
    write_service(TWO, more);
    const int opened = ops->open(orders.persistence, &s, &failure);
    if (opened == WB_OK)
        ops->close(s);
    if (opened != result || (int)failure.cause != cause || !strstr(failure.text, reason))
        fail_msg("%s: %d, cause %d: %s", more, opened, (int)failure.cause, failure.text);
}

static void test_tls_when_a_service_moves_away(void **state)
{
    (void)state;
    start_with_service("127.0.0.1", 0);
    ops->close(open_session(&orders));
    check_moved("", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "is verify-full because");
    check_moved("sslmode=prefer\n", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "is verify-full because");
    check_moved("sslmode=disable\n", WB_FATAL, WB_CAUSE_CONFIG, "allow_insecure");
    check_moved("sslmode=require\n", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "does not support SSL");
    write_service("127.0.0.1", ""); /* and back */
    ops->close(open_session(&orders));
}

/* Its file is written anew. */
static void test_tls_when_a_service_is_gone_for_a_while(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    start_with_service("127.0.0.1", 0);
    write_service(NULL, "");
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_NOT_CONNECTED);
    check_moved("", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "is verify-full because");
}

/* At the start that is refused; later it is a server that is away, and libpq says what is wrong. */
static void test_lists_that_do_not_fit_any_more(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    start_with_service("127.0.0.1", 0);
    write_service("127.0.0.1,127.0.0.1,127.0.0.1\nport=1,2", "");
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_NOT_CONNECTED);
    assert_non_null(strstr(failure.text, "could not match 2 port numbers to 3 hosts"));
}

/* Whoever allows it gets it: the service is followed. */
static void test_plain_text_that_was_allowed(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    start_with_service("127.0.0.1", 1);
    write_service(TWO, "sslmode=disable\n");
    assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_OK);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_silent_first_host),
        TEST(test_first_host_closes),
        TEST(test_nobody_listens_first),
        TEST(test_first_address_of_a_name_is_silent),
        TEST(test_all_fail),
        TEST(test_refused_by_one_and_by_all),
        TEST(test_refused_at_one_address),
#undef TEST
#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, set_up_service, tear_down_service)
        TEST(test_tls_when_a_service_moves_away),
        TEST(test_tls_when_a_service_is_gone_for_a_while),
        TEST(test_lists_that_do_not_fit_any_more),
        TEST(test_plain_text_that_was_allowed),
    };
    return cmocka_run_group_tests_name("pgsql hosts", tests, load_plugin, NULL);
}

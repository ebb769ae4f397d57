/* SPDX-License-Identifier: Apache-2.0
 *
 * What plugins share: names of this machine, certificates, names that are known, savepoints, threads, failures.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plugins/common/certificate.h"
#include "plugins/common/dial.h"
#include "plugins/common/failure.h"
#include "plugins/common/known.h"
#include "plugins/common/loopback.h"
#include "plugins/common/savepoints.h"
#include "plugins/common/servers.h"
#include "plugins/common/thread.h"
#include "plugins/common/types_of.h"

static char said[480];

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host, (void)error, (void)cause, (void)native_code;
    va_start(arguments, format);
    (void)vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    return result;
}

static const wb_host host = { .struct_size = sizeof host, .fail = host_fail };

/* here: its macro "fail" would hide the host's member */
#include <cmocka.h>

static void test_names_of_this_machine(void **state)
{
    static const char *const here[] = { "localhost", "127.0.0.1", "127.1", "::1", "[::1]" };
    static const char *const away[] = { "",          "127.",        "127.example.org", "localhost.org",
                                        "localhos",  "::10",        "[::1",            "128.0.0.1",
                                        "127.0.0.x", "db.localhost" };
    (void)state;
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        assert_true(wb_common_is_loopback(here[i], strlen(here[i])));
    for (size_t i = 0; i < sizeof away / sizeof *away; i++)
        assert_false(wb_common_is_loopback(away[i], strlen(away[i])));
    assert_true(wb_common_is_loopback("localhost:5672", 9)); /* no more than its bytes */
    assert_false(wb_common_is_loopback("127.0.0.1\0x", 11));
}

/* A port of ours, at which somebody listens or not. */
static int take_port(int *ret_port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int taken = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(taken, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return taken;
}

static void test_why_nobody_is_there(void **state)
{
    const int64_t second = 1000000000;
    char label[80], reason[160] = "";
    int port, taken = take_port(&port);
    (void)state;
    assert_true(wb_common_dial("127.0.0.1", port, second, reason, sizeof reason));
    assert_string_equal(reason, "Connection refused");
    assert_int_equal(listen(taken, 8), 0);
    assert_false(wb_common_dial("127.0.0.1", port, second, reason, sizeof reason));
    (void)close(taken);
    memset(label, 'x', sizeof label - 1); /* no name has such a label, so nobody is asked */
    label[sizeof label - 1] = '\0';
    assert_true(wb_common_dial(label, port, second, reason, sizeof reason));
    assert_non_null(strstr(reason, "ame")); /* "Name or service not known", "Temporary failure in name resolution" */
}

static void test_servers_that_may_be_quoted(void **state)
{
    static const char *const good[] = { "", "db", "db1,db2:5432", "/run/postgresql", "/run/a@b", "@abstract", "::1", " , " };
    static const char *const bad[] = { "u:hunter2@db", "ter2@db", "db1,ter2@db2", "db1, ter2@db2", "postgresql://u:hunter2@db/x" };
    (void)state;
    assert_int_equal(wb_common_servers_check(&host, "host", NULL, NULL), WB_OK);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(wb_common_servers_check(&host, "host", good[i], NULL), WB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wb_common_servers_check(&host, "hosts", bad[i], NULL), WB_FATAL);
        assert_non_null(strstr(said, "hosts holds \"@\""));
        assert_non_null(strstr(said, "as %40 and / as %2F"));
        assert_null(strstr(said, "ter2"));
    }
}

static void test_certificates_come_in_pairs(void **state)
{
    (void)state;
    assert_int_equal(wb_common_certificate_check(&host, NULL, NULL, NULL), WB_OK);
    assert_int_equal(wb_common_certificate_check(&host, "c", "k", NULL), WB_OK);
    assert_int_equal(wb_common_certificate_check(&host, "c", NULL, NULL), WB_FATAL);
    assert_string_equal(said, "tls_cert_file is set without tls_key_file: a client certificate "
                              "needs both");
    assert_int_equal(wb_common_certificate_check(&host, NULL, "k", NULL), WB_FATAL);
    assert_non_null(strstr(said, "tls_key_file is set without tls_cert_file"));
}

static void test_files_can_be_read(void **state)
{
    (void)state;
    assert_int_equal(wb_common_file_check(&host, "ssl_ca", NULL, NULL), WB_OK);
    assert_int_equal(wb_common_file_check(&host, "ssl_ca", "/dev/null", NULL), WB_OK);
    assert_int_equal(wb_common_file_check(&host, "ssl_ca", "/nonexistent/ca.pem", NULL), WB_FATAL);
    assert_string_equal(said, "ssl_ca = \"/nonexistent/ca.pem\" cannot be read: No such file or directory");
}

static void test_known_names(void **state)
{
    wb_common_known known = { 0 };
    char name[16];
    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "n%d", i * 37 % 100);
        wb_common_known_add(&known, name, i % 2 ? WB_COMMON_FOR_EVER : 5);
    }
    wb_common_known_add(&known, "n37", WB_COMMON_FOR_EVER); /* again, and not twice */
    assert_int_equal(known.count, 100);
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "n%d", i * 37 % 100);
        assert_true(wb_common_known_has(&known, name, 4));
        assert_int_equal(wb_common_known_has(&known, name, 5), i % 2);
    }
    assert_false(wb_common_known_has(&known, "n", 0));
    wb_common_known_drop(&known, "n50");
    wb_common_known_drop(&known, "never there");
    assert_false(wb_common_known_has(&known, "n50", 0));
    assert_true(wb_common_known_has(&known, "n51", 0) && wb_common_known_has(&known, "n5", 0));
    assert_int_equal(known.count, 99);
    wb_common_known_clear(&known);
    assert_false(wb_common_known_has(&known, "n51", 0));
}

static void test_known_names_are_bounded(void **state)
{
    wb_common_known known = { 0 };
    char name[16];
    (void)state;
    for (int i = 0; i <= WB_COMMON_KNOWN_MAX; i++) {
        assert_true(known.count <= WB_COMMON_KNOWN_MAX);
        (void)snprintf(name, sizeof name, "%d", i);
        wb_common_known_add(&known, name, WB_COMMON_FOR_EVER);
        assert_true(wb_common_known_has(&known, name, 0));
    }
    assert_int_equal(known.count, 1);
    wb_common_known_clear(&known);
}

typedef struct seen {
    sigset_t mask;
    size_t stack;
} seen;

static void *look_around(void *argument)
{
    seen *s = argument;
    pthread_attr_t attributes;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &s->stack);
        (void)pthread_attr_destroy(&attributes);
    }
    return NULL;
}

static void test_threads_take_no_signals(void **state)
{
    const size_t stack = (size_t)3 * 1024 * 1024;
    pthread_t thread;
    sigset_t mine;
    (void)state;
    for (int own_stack = 1; own_stack >= 0; own_stack--) { /* a larger one may be used again */
        seen s = { .stack = 0 };
        assert_int_equal(wb_common_thread_start(&thread, own_stack ? stack : 0, look_around, &s), 0);
        (void)pthread_join(thread, NULL);
        assert_true(sigismember(&s.mask, SIGTERM) && sigismember(&s.mask, SIGUSR1));
        assert_true(s.stack >= stack);
        assert_int_equal(s.stack < 2 * stack, own_stack);
        (void)pthread_sigmask(SIG_SETMASK, NULL, &mine);
        assert_false(sigismember(&mine, SIGTERM));
    }
    assert_int_not_equal(wb_common_thread_start(&thread, 1, look_around, NULL), 0);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mine);
    assert_false(sigismember(&mine, SIGTERM));
}

static void test_failures(void **state)
{
    wb_common_failure failure = { 0 };
    (void)state;
    assert_int_equal(wb_common_failure_note(&failure, WB_RETRY, WB_CAUSE_SERVER, 7, "%s", "first"),
                     WB_RETRY);
    assert_int_equal(wb_common_failure_note(&failure, WB_FATAL, WB_CAUSE_OTHER, 8, "second"),
                     WB_RETRY);
    assert_int_equal(wb_common_failure_report(&host, &failure, NULL), WB_RETRY);
    assert_string_equal(said, "first");
    assert_int_equal(wb_common_failure_set(&failure, WB_FATAL, WB_CAUSE_OTHER, 9, "%% third"),
                     WB_FATAL);
    assert_int_equal(wb_common_failure_report(&host, &failure, NULL), WB_FATAL);
    assert_string_equal(said, "% third");
    assert_int_equal(failure.code, 9);
}

/* The name as it is, the first of several, and nothing but "" for none. */
static void test_types_of_an_operation(void **state)
{
    const wb_header headers[] = { { NULL, "v", 0, 1 },
                                  { "nservicebus.enclosedmessagetypes", "Other", 32, 5 },
                                  { "NServiceBus.EnclosedMessageTypes", NULL, 32, 0 },
                                  { "NServiceBus.EnclosedMessageTypes", "Sales.Placed;Sales.Any", 32, 22 },
                                  { "NServiceBus.EnclosedMessageTypes", "Other", 32, 5 } };
    wb_operation operation = { .struct_size = sizeof operation, .headers = headers, .header_count = 3 };
    (void)state;
    assert_string_equal(wb_common_types_of(&operation), "");
    operation.header_count = 5;
    assert_string_equal(wb_common_types_of(&operation), "Sales.Placed;Sales.Any");
    operation.header_count = 0;
    operation.headers = NULL;
    assert_string_equal(wb_common_types_of(&operation), "");
}

/* Of a handler behind another one that left so many savepoints; whoever reads behind the text is told of by a sanitizer. */
static int goes_back(int inherited, const char *text)
{
    wb_common_savepoints of = { .count = inherited };
    const size_t size = strlen(text);
    char *copy = malloc(size + !size);
    assert_non_null(copy);
    memcpy(copy, text, size);
    wb_common_savepoints_hand_out(&of, 1);
    wb_common_savepoints_hear(&of, copy, size);
    free(copy);
    return of.went_back;
}

static void test_savepoints_in_any_text(void **state)
{
    static const char *const back[] = {
        "rollback to a", "ROLLBACK TO SAVEPOINT a", " \t\r\n; rollback to a", "/* a */ rollback to a", "-- a\nrollback to a",
        "# a\nrollback to a", "/*!rollback to a */", "/*!50701 rollback to a*/", "select 1; rollback to a", "select ';'; rollback to a",
        "select ''';savepoint b'; rollback to a", "select \";savepoint b\"; rollback to a", "select `;savepoint b`; rollback to a",
        "savepoint b; release b; rollback to a", "release a; rollback to a",
    };
    static const char *const harmless[] = {
        "", ";", "rollbac", "/* rollback to a", "-- rollback to a", "/", "/*!", "/*!50701", "select 'x; rollback to a'",
        "select \"x; rollback to a", "savepoint b; rollback to b", "insert into rollback values (1)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof back / sizeof back[0]; i++)
        if (!goes_back(1, back[i]) || goes_back(0, back[i]))
            fail_msg("%s", back[i]);
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (goes_back(1, harmless[i]))
            fail_msg("%s", harmless[i]);
}

/* Two calls for the connection are one handler's: what the first set is its own. */
static void test_savepoints_of_ones_own(void **state)
{
    wb_common_savepoints of = { 0 };
    (void)state;
    wb_common_savepoints_hand_out(&of, 0);
    wb_common_savepoints_set(&of);
    wb_common_savepoints_hand_out(&of, 0);
    wb_common_savepoints_roll_back(&of);
    assert_false(of.went_back);
    wb_common_savepoints_release(&of);
    wb_common_savepoints_release(&of); /* one more than were set: a statement that failed */
    wb_common_savepoints_set(&of);
    wb_common_savepoints_hand_out(&of, 1);
    wb_common_savepoints_set(&of);
    wb_common_savepoints_roll_back(&of);
    assert_false(of.went_back);
    wb_common_savepoints_release(&of);
    wb_common_savepoints_roll_back(&of);
    assert_true(of.went_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_this_machine),
        cmocka_unit_test(test_servers_that_may_be_quoted),
        cmocka_unit_test(test_certificates_come_in_pairs),
        cmocka_unit_test(test_files_can_be_read),
        cmocka_unit_test(test_why_nobody_is_there),
        cmocka_unit_test(test_known_names),
        cmocka_unit_test(test_known_names_are_bounded),
        cmocka_unit_test(test_threads_take_no_signals),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_savepoints_in_any_text),
        cmocka_unit_test(test_savepoints_of_ones_own),
        cmocka_unit_test(test_types_of_an_operation),
    };
    return cmocka_run_group_tests_name("what plugins share", tests, NULL, NULL);
}

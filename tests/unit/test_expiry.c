/* SPDX-License-Identifier: Apache-2.0
 *
 * Time to be received: what may be asked for, the header, what of it a transport reads, and that
 * what was received once expires no more.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/sys/expiry.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/host.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/outgoing.h"
#include "core/recover/audit.h"
#include "core/recover/recoverability.h"
#include "core/recover/retry_copy.h"

#define HOUR (60 * WB_MINUTES)

static wb_origin origin;
static wb_arena arena;

static int set_up(void **state)
{
    (void)state;
    wb_arena_init(&arena, 4096);
    origin = wb_origin_make("orders", 1, 1024);
    origin.expires = 1;
    origin.delays = WB_DELAYS_BY_TRANSPORT;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_arena_free(&arena);
    return 0;
}

static int add(int kind, wb_outgoing outgoing, wb_operation_list *list, wb_error *error)
{
    outgoing.type = "T";
    outgoing.destination = kind == WB_KIND_SEND ? "q" : NULL;
    return wb_outgoing_add(&origin, kind, &outgoing, sizeof outgoing, NULL, 0, &arena, list, error);
}

static void expect_refused(wb_outgoing outgoing, const char *why)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    assert_int_equal(add(WB_KIND_SEND, outgoing, &list, &error), WB_REJECT);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" is not in: %s", why, error.text);
    assert_int_equal(list.count, 0);
}

/* @return the header's value, or NULL. */
static const char *header_of(wb_outgoing outgoing, int64_t span)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    assert_int_equal(add(WB_KIND_SEND, outgoing, &list, &error), WB_OK);
    const wb_operation *operation = &list.first->operation;
    assert_int_equal(wb_time_to_be_received(operation->headers, operation->header_count), span);
    const wb_header *found =
        WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_TIME_TO_BE_RECEIVED);
    return found ? found->value : NULL;
}

static void test_header(void **state)
{
    (void)state;
    assert_null(header_of((wb_outgoing){ 0 }, 0));
    assert_string_equal(header_of((wb_outgoing){ .time_to_be_received = 30 * WB_SECONDS }, 30 * WB_SECONDS),
                        "00:00:30");
    assert_string_equal(header_of((wb_outgoing){ .time_to_be_received = 1 }, 100), "00:00:00.0000001");
    assert_string_equal(header_of((wb_outgoing){ .time_to_be_received = 25 * HOUR + 1500 * WB_MILLISECONDS },
                                  25 * HOUR + 1500 * WB_MILLISECONDS), "1.01:00:01.5000000");
    assert_string_equal(header_of((wb_outgoing){ .time_to_be_received = WB_EXPIRY_MAX }, WB_EXPIRY_MAX), "49.00:00:00");
    assert_string_equal(header_of((wb_outgoing){ .time_to_be_received = WB_SECONDS, .flags = WB_IMMEDIATE },
                                  WB_SECONDS), "00:00:01");
}

static void test_what_may_be_asked(void **state)
{
    const wb_outgoing expiring = { .time_to_be_received = WB_SECONDS };
    wb_outgoing delayed = expiring;
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    (void)state;
    assert_int_equal(add(WB_KIND_PUBLISH, expiring, &list, &error), WB_OK);
    expect_refused((wb_outgoing){ .time_to_be_received = -1 }, "negative");
    expect_refused((wb_outgoing){ .time_to_be_received = WB_EXPIRY_MAX + 1 }, "49 days");
    delayed.delay = WB_SECONDS;
    expect_refused(delayed, "both a delay and a time to be received");
    delayed = expiring;
    delayed.deliver_at = 1;
    expect_refused(delayed, "both a delay and a time to be received");
    origin.expires = 0;
    expect_refused(expiring, "the transport cannot honour");
}

/* The header of a handler's own says the same, and wins; what it cannot mean is a header like any. */
static void test_own_header(void **state)
{
    const wb_header own = WB_HEADER(WB_HEADER_TIME_TO_BE_RECEIVED, "00:01:00");
    const wb_header odd = WB_HEADER(WB_HEADER_TIME_TO_BE_RECEIVED, "soon");
    const wb_outgoing outgoing = { .headers = &own, .header_count = 1, .time_to_be_received = WB_SECONDS };
    (void)state;
    assert_string_equal(header_of(outgoing, WB_MINUTES), "00:01:00");
    expect_refused((wb_outgoing){ .headers = &own, .header_count = 1, .delay = 1 }, "both a delay");
    assert_string_equal(header_of((wb_outgoing){ .headers = &odd, .header_count = 1, .deliver_at = 1 }, 0), "soon");
    origin.expires = 0;
    expect_refused((wb_outgoing){ .headers = &own, .header_count = 1 }, "the transport cannot honour");
    assert_string_equal(header_of((wb_outgoing){ .headers = &odd, .header_count = 1 }, 0), "soon");
}

/* What is stored is what earlier versions read. */
static void test_stored(void **state)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    wb_buffer stored = { 0 };
    int failed;
    (void)state;
    assert_int_equal(add(WB_KIND_SEND, (wb_outgoing){ .time_to_be_received = WB_MINUTES }, &list, &error), WB_OK);
    wb_operations_encode_start(&stored);
    assert_int_equal(wb_operations_encode_group(&stored, "m", 1, &list), 1);
    assert_memory_equal(stored.data, "WBO1", 4);
    const wb_operation_group *group = wb_operations_decode(stored.data, stored.size, &arena, &failed);
    assert_non_null(group);
    const wb_operation *operation = &group->operations.first->operation;
    assert_int_equal(wb_time_to_be_received(operation->headers, operation->header_count), WB_MINUTES);
    wb_buffer_free(&stored);
}

static void test_spans(void **state)
{
    static const struct {
        const char *text;
        int64_t span; /* -1: none */
    } cases[] = {
        { "00:00:00", 0 },
        { "00:00:30", 30 * WB_SECONDS },
        { "23:59:59.9999999", 24 * HOUR - 100 },
        { "7.00:00:00", 7 * WB_DAYS },
        { "99999.00:00:00", 99999 * WB_DAYS },
        { "10675199.02:48:05.4775807", -1 },
        { "-00:00:30", -1 },
        { "24:00:00", -1 },
        { "00:60:00", -1 },
        { "00:00:60", -1 },
        { "00:00:30.5", -1 },
        { "00:00:30.12345678", -1 },
        { "00:00:30 ", -1 },
        { " 00:00:30", -1 },
        { ".00:00:30", -1 },
        { "7.", -1 },
        { "7", -1 },
        { "x.00:00:30", -1 },
        { "00:00", -1 },
        { "0:0:30", -1 },
        { "", -1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t span = -1;
        int is_one = wb_expiry_parse(cases[i].text, strlen(cases[i].text), &span);
        if (is_one != (cases[i].span >= 0) || (is_one && span != cases[i].span))
            fail_msg("\"%s\" is read as %lld", cases[i].text, (long long)span);
    }
}

/* The same as the core reads, at leap days and turns of centuries, too. */
static void test_time_sent(void **state)
{
    static const int64_t seconds[] = { 0,          951782399,  951782400,  951868799, 951868800,
                                       1709164800, 1735689599, 1735689600, 1798761600, 4107542400 };
    (void)state;
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        int64_t wall = seconds[i] * WB_SECOND + 123456 * INT64_C(1000);
        char text[WB_TIMESTAMP_SIZE];
        const wb_header sent = { WB_HEADER_TIME_SENT, text, sizeof WB_HEADER_TIME_SENT - 1, WB_TIMESTAMP_SIZE - 1 };
        wb_clock_format_wire(wall, text);
        assert_int_equal(wb_time_sent(&sent, 1), wall);
        text[20] = 'x';
        assert_int_equal(wb_time_sent(&sent, 1), 0);
    }
    wb_header far = { WB_HEADER_TIME_SENT, "9999-99-99 99:99:99:999999 Z", sizeof WB_HEADER_TIME_SENT - 1, 28 };
    assert_int_equal(wb_time_sent(&far, 1), 0); /* more than 64 bits hold */
    far.value = "2200-99-99 99:99:99:999999 Z";
    assert_true(wb_time_sent(&far, 1) > 0);
    far.value = "0000-00-00 00:00:00:000000 Z";
    assert_int_equal(wb_time_sent(&far, 1), 0);
    assert_int_equal(wb_time_sent(NULL, 0), 0);
}

static void test_when_it_expires(void **state)
{
    const int64_t sent = 1700000000 * WB_SECOND;
    char text[WB_TIMESTAMP_SIZE];
    wb_header headers[] = {
        { WB_HEADER_TIME_TO_BE_RECEIVED, "00:00:10", sizeof WB_HEADER_TIME_TO_BE_RECEIVED - 1, 8 },
        { WB_HEADER_TIME_SENT, text, sizeof WB_HEADER_TIME_SENT - 1, WB_TIMESTAMP_SIZE - 1 },
    };
    (void)state;
    wb_clock_format_wire(sent, text);
    assert_false(wb_has_expired(headers, 2, 0, sent + 10 * WB_SECOND - 1));
    assert_true(wb_has_expired(headers, 2, 0, sent + 10 * WB_SECOND));
    assert_false(wb_has_expired(headers, 2, 0, sent - HOUR)); /* a clock that is behind */
    /* Where the transport knows when it came in, that counts. */
    assert_false(wb_has_expired(headers, 2, sent + 1, sent + 10 * WB_SECOND));
    assert_true(wb_has_expired(headers, 2, sent + 1, sent + 10 * WB_SECOND + 1));
    assert_false(wb_has_expired(headers, 1, 0, sent + HOUR)); /* sent nobody knows when */
    headers[0].value = "soonsoon";
    assert_false(wb_has_expired(headers, 2, 0, sent + HOUR));
}

/* ---- what was received once ------------------------------------------------------------ */

static wb_incoming received(wb_header headers[2])
{
    headers[0] = (wb_header){ WB_HEADER_TIME_TO_BE_RECEIVED, "00:00:10", sizeof WB_HEADER_TIME_TO_BE_RECEIVED - 1, 8 };
    headers[1] = (wb_header){ "mine", "kept", 4, 4 };
    return (wb_incoming){ .struct_size = sizeof(wb_incoming), .id = "m", .id_size = 1, .headers = headers,
                          .header_count = 2 };
}

/* The header stays, as .NET's does, and asks for nothing. */
static void expect_no_expiry(const wb_operation *copy)
{
    assert_non_null(WB_HEADERS_FIND(copy->headers, copy->header_count, WB_HEADER_TIME_TO_BE_RECEIVED));
    assert_int_equal(wb_time_to_be_received(copy->headers, copy->header_count), 0);
}

static void test_copies(void **state)
{
    const wb_recoverability policy = { .error_queue = "error" };
    char reason[] = "r";
    const wb_failure failure = { .kind = "K", .reason = reason };
    wb_header headers[2];
    wb_incoming incoming = received(headers);
    const wb_failed_message failed = { .incoming = &incoming, .failure = &failure };
    const wb_handled_message handled = { .incoming = &incoming, .started = 1, .ended = 2 };
    wb_operation_list list = { 0 };
    (void)state;
    assert_int_equal(wb_time_to_be_received(incoming.headers, incoming.header_count), 10 * WB_SECOND);
    expect_no_expiry(wb_recover_error_operation(&policy, &origin, &failed, &arena, &list));
    expect_no_expiry(wb_recover_retry_operation(&origin, &incoming, 1, &arena, &list));
    expect_no_expiry(wb_recover_audit_operation("audit", &origin, &handled, &arena, &list));
    /* nor does what somebody sent back from an error queue, where it lay for days */
    headers[1] = (wb_header){ WB_HEADER_RETRY_UNIQUE_ID, "unique", sizeof WB_HEADER_RETRY_UNIQUE_ID - 1, 6 };
    assert_int_equal(wb_time_to_be_received(incoming.headers, incoming.header_count), 0);
}

/* ---- counted --------------------------------------------------------------------------- */

/* How many lines about expired messages a file has; *ret_count is what the last says. */
static size_t read_lines(FILE *file, unsigned *ret_count)
{
    char line[1024];
    size_t lines = 0;
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        const char *count = strstr(line, "count=");
        if (strstr(line, "messages expired") && count && ++lines)
            *ret_count = (unsigned)strtoul(count + 6, NULL, 10);
    }
    return lines;
}

/* The first is told at once, what follows with the next line, and all of it in the end. */
static void test_counted(void **state)
{
    wb_host_instance instance;
    unsigned count = 0;
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    (void)state;
    assert_non_null(file);
    (void)dup2(fileno(file), STDERR_FILENO);
    wb_host_init(&instance, "orders", "fake");
    for (int i = 0; i < 100; i++)
        instance.host.expired(&instance.host, 3);
    size_t told = read_lines(file, &count);
    unsigned at_first = count;
    wb_host_end(&instance);
    wb_host_end(&instance);
    size_t at_last = read_lines(file, &count);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)fclose(file);
    assert_int_equal(told, 1);
    assert_int_equal(at_first, 3);
    assert_int_equal(atomic_load(&instance.expired), 300);
    assert_int_equal(at_last, 2);
    assert_int_equal(count, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_header, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_may_be_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_header, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_time_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_when_it_expires, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of long work: a bar on a terminal, a line now and then elsewhere, nothing of what is short. The clock is the test's.
 */
#include <config.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/cli/progress.h"

static int64_t now = 1000 * WB_SECOND;

int64_t wb_clock_monotonic(void)
{
    return now;
}

/* Where standard error goes, or standard output, and what was written there. */
static int saved[3], reader;

static void divert(int number, int writer)
{
    (void)fflush(NULL);
    saved[number] = dup(number);
    assert_int_equal(dup2(writer, number), number);
    (void)close(writer);
}

static void restore(int number)
{
    (void)fflush(NULL);
    assert_int_equal(dup2(saved[number], number), number);
    (void)close(saved[number]);
}

static void divert_to_pipe(int number)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    reader = ends[0];
    divert(number, ends[1]);
}

static void divert_to_terminal(int number)
{
    int master, slave;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    reader = master;
    divert(number, slave);
}

/* A terminal passes on what was written in pieces, when it likes. */
static const char *written(void)
{
    static char text[4096];
    struct pollfd ready = { .fd = reader, .events = POLLIN };
    size_t size = 0;
    (void)fflush(NULL);
    while (poll(&ready, 1, 100) > 0 && (ready.revents & POLLIN)) {
        const ssize_t more = read(reader, text + size, sizeof text - 1 - size);
        size += more > 0 ? (size_t)more : 0;
        if (more <= 0)
            break;
    }
    text[size] = '\0';
    return text;
}

static void after(int64_t nanoseconds, uint64_t done)
{
    now += nanoseconds;
    cli_progress_set(done);
}

static void test_lines(void **state)
{
    (void)state;
    divert_to_pipe(STDERR_FILENO);
    cli_progress_begin("exporting", "things", 300, 0);
    after(9 * WB_SECOND, 10);
    assert_string_equal(written(), "");
    after(1 * WB_SECOND, 20);
    assert_string_equal(written(), "waybill: exporting: 20 of 300 things so far\n");
    after(9 * WB_SECOND, 30);
    assert_string_equal(written(), "");
    after(1 * WB_SECOND, 40);
    assert_string_equal(written(), "waybill: exporting: 40 of 300 things so far\n");
    cli_progress_end();
    after(100 * WB_SECOND, 50);
    cli_progress_begin("removing", "records", 0, 0);
    after(10 * WB_SECOND, 7);
    assert_string_equal(written(), "waybill: removing: 7 records so far\n");
    now += 10 * WB_SECOND;
    cli_progress_tell(8, 9);
    assert_string_equal(written(), "waybill: removing: 8 of 9 records so far\n");
    cli_progress_end();
    restore(STDERR_FILENO);
    (void)close(reader);
}

static void test_bar(void **state)
{
    (void)state;
    (void)setenv("TERM", "xterm", 1);
    divert_to_terminal(STDERR_FILENO);
    cli_progress_begin("exporting", "things", 300, 0);
    after(999 * WB_MILLISECOND, 100);
    assert_string_equal(written(), "");
    after(1 * WB_MILLISECOND, 100);
    assert_string_equal(written(), "\r\033[Kexporting [##########--------------------]  33 %  100 of 300 things");
    after(99 * WB_MILLISECOND, 200);
    assert_string_equal(written(), "");
    after(1 * WB_MILLISECOND, 400); /* more than there were when it began */
    assert_string_equal(written(), "\r\033[Kexporting [##############################] 100 %  400 of 300 things");
    cli_progress_end();
    assert_string_equal(written(), "\r\033[K");
    cli_progress_begin("short", "things", 3, 0);
    cli_progress_end();
    assert_string_equal(written(), "");
    cli_progress_begin("removing", "records", 0, 0);
    after(2 * WB_SECOND, 5);
    assert_string_equal(written(), "\r\033[Kremoving 5 records");
    cli_progress_end();
    (void)written();
    (void)setenv("TERM", "dumb", 1);
    cli_progress_begin("exporting", "things", 300, 0);
    after(5 * WB_SECOND, 100);
    assert_string_equal(written(), "");
    cli_progress_end();
    restore(STDERR_FILENO);
    (void)close(reader);
}

/* A line for each on the same terminal is progress enough. */
static void test_prints(void **state)
{
    int output;
    (void)state;
    (void)setenv("TERM", "xterm", 1);
    divert_to_terminal(STDOUT_FILENO);
    output = reader;
    divert_to_terminal(STDERR_FILENO);
    cli_progress_begin("retrying", "things", 300, 1);
    after(5 * WB_SECOND, 100);
    const int is_silent = !*written();
    cli_progress_end();
    restore(STDERR_FILENO);
    restore(STDOUT_FILENO);
    (void)close(reader);
    (void)close(output);
    assert_true(is_silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bar),
        cmocka_unit_test(test_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The run of the conformance kits, with cases of its own: one line a case, whenever a runner dies,
 * and no more work than there is.
 */
#include "config.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conformance/kit.h"
#include "conformance/report.h"
#include "core/base/clock.h"

/* ---- the linker puts ours in place of theirs (--wrap) --------------------------------------- */

int __real_poll(struct pollfd *all, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *all, nfds_t count, int milliseconds);
void __real_wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text);
void __wrap_wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text);

static unsigned hung_up; /* so often poll() said at once that the reports' other end is closed */

int __wrap_poll(struct pollfd *all, nfds_t count, int milliseconds)
{
    const int found = __real_poll(all, count, milliseconds);
    if (found > 0 && (all->revents & POLLHUP))
        hung_up++;
    return found;
}

static int dies_between; /* two cases, as when a thread of the plugin's does something wrong there */

void __wrap_wb_report_send(int reporting, wb_report_kind kind, size_t place, int is_last, const char *text)
{
    __real_wb_report_send(reporting, kind, place, is_last, text);
    if (dies_between && (kind == WB_REPORT_PASSED || kind == WB_REPORT_SKIPPED) && !is_last)
        (void)raise(SIGKILL);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void passes(wb_kit *kit)
{
    (void)kit;
}

static void skips(wb_kit *kit)
{
    wb_kit_skip(kit, "no reason");
}

static void fails(wb_kit *kit)
{
    (void)wb_kit_check(kit, 0, "a check");
}

static void dies(wb_kit *kit)
{
    (void)kit;
    (void)raise(SIGKILL);
}

static void closes_all_and_stays(wb_kit *kit)
{
    (void)kit;
    closefrom(0);
    (void)sleep(1);
    _exit(0);
}

static void close_nothing(wb_kit *kit)
{
    (void)kit;
}

/* So many fail, and that is printed. */
static void run_chosen(const wb_kit_case *cases, size_t count, const char *const *only, const char *const *except, size_t failed,
                       const char *expected)
{
    const wb_plugin plugin = { .struct_size = sizeof plugin, .name = "some", .version = "1" };
    const wb_kit_options options = { .only = only, .except = except, .time_limit = 60 * WB_SECOND };
    const wb_kit_book book = { .cases = cases, .count = count, .close = close_nothing };
    wb_kit kit = { .plugin = &plugin, .options = &options };
    char *printed = NULL;
    size_t size = 0;
    kit.out = open_memstream(&printed, &size);
    assert_non_null(kit.out);
    hung_up = 0;
    assert_int_equal(wb_kit_run(&kit, &book), failed);
    assert_int_equal(fclose(kit.out), 0);
    assert_string_equal(printed, expected);
    free(printed);
}

static void run(const wb_kit_case *cases, size_t count, size_t failed, const char *expected)
{
    run_chosen(cases, count, NULL, NULL, failed, expected);
}

#define COUNT(cases) (sizeof(cases) / sizeof *(cases))

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_ends(void **state)
{
    static const wb_kit_case cases[] = {
        { .name = "passes", .run = passes }, { .name = "dies", .run = dies },       { .name = "skips", .run = skips },
        { .name = "fails", .run = fails },   { .name = "passes too", .run = passes },
    };
    (void)state;
    dies_between = 0;
    run(cases, COUNT(cases), 2,
        "1..5\n"
        "ok 1 - passes\n"
        "# the process died: signal 9, SIGKILL\n"
        "not ok 2 - dies\n"
        "ok 3 - skips # SKIP no reason\n"
        "# a check\n"
        "not ok 4 - fails\n"
        "ok 5 - passes too\n"
        "# some 1: 5 cases, 2 failed, 1 skipped\n");
}

/* Who dies between two cases was at the one that was to come: the other has its line. */
static void test_death_between(void **state)
{
    static const wb_kit_case cases[] = {
        { .name = "wanted: passes", .run = passes }, { .name = "another", .run = fails },
        { .name = "wanted: second", .run = passes }, { .name = "wanted: skips", .run = skips },
        { .name = "wanted: fourth", .run = passes }, { .name = "another one", .run = fails },
        { .name = "wanted: last", .run = passes },   { .name = "another at the end", .run = fails },
    };
    static const char *const only[] = { "wanted", NULL };
    (void)state;
    dies_between = 1;
    run_chosen(cases, COUNT(cases), only, NULL, 2,
        "1..5\n"
        "ok 1 - wanted: passes\n"
        "# the process died before this case began: signal 9, SIGKILL\n"
        "not ok 2 - wanted: second\n"
        "ok 3 - wanted: skips # SKIP no reason\n"
        "# the process died before this case began: signal 9, SIGKILL\n"
        "not ok 4 - wanted: fourth\n"
        "ok 5 - wanted: last\n"
        "# some 1: 5 cases, 2 failed, 1 skipped\n");
}

/* Of several texts one is enough to be chosen, or to be left out; one that nobody has was mistyped. */
static void test_chosen(void **state)
{
    static const wb_kit_case cases[] = {
        { .name = "red: one", .run = passes },  { .name = "blue: one", .run = fails },
        { .name = "green: one", .run = passes }, { .name = "red: two", .run = fails },
        { .name = "red: three", .run = fails },  { .name = "green: four", .run = skips },
    };
    static const char *const colours[] = { "red", "green", NULL }, *const numbers[] = { "two", "three", NULL };
    static const char *const mistyped[] = { "red", "gren", NULL }, *const all[] = { ":", NULL };
    (void)state;
    dies_between = 0;
    run_chosen(cases, COUNT(cases), colours, numbers, 0,
               "1..3\n"
               "ok 1 - red: one\n"
               "ok 2 - green: one\n"
               "ok 3 - green: four # SKIP no reason\n"
               "# some 1: 3 cases, 0 failed, 1 skipped\n");
    run_chosen(cases, COUNT(cases), NULL, colours, 1,
               "1..1\n"
               "# a check\n"
               "not ok 1 - blue: one\n"
               "# some 1: 1 cases, 1 failed, 0 skipped\n");
    run_chosen(cases, COUNT(cases), mistyped, NULL, 1, "Bail out! no case has \"gren\" in its name\n");
    run_chosen(cases, COUNT(cases), NULL, mistyped, 1, "Bail out! no case has \"gren\" in its name\n");
    run_chosen(cases, COUNT(cases), colours, all, 1, "Bail out! no case is left\n");
}

/* Nothing can be heard of it any more; until it ends nobody looks all the time. */
static void test_all_closed(void **state)
{
    static const wb_kit_case cases[] = {
        { .name = "closes all and stays", .run = closes_all_and_stays },
        { .name = "passes", .run = passes },
    };
    (void)state;
    dies_between = 0;
    run(cases, COUNT(cases), 1,
        "1..2\n"
        "# the process ended, with exit status 0\n"
        "not ok 1 - closes all and stays\n"
        "ok 2 - passes\n"
        "# some 1: 2 cases, 1 failed, 0 skipped\n");
    assert_in_range(hung_up, 1, 4); /* two a runner: with its last reports, and without one */
}

static void *stay(void *argument)
{
    (void)pthread_barrier_wait(argument); /* it runs: one that still begins may hold a sanitizer's lock in the fork */
    (void)pthread_barrier_wait(argument); /* the test is over */
    return NULL;
}

/* As a library has them that starts some when it is loaded. */
static void test_threads(void **state)
{
    static const wb_kit_case cases[] = { { .name = "passes", .run = passes } };
    pthread_barrier_t both;
    pthread_t thread;
    (void)state;
    dies_between = 0;
    assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, stay, &both), 0);
    (void)pthread_barrier_wait(&both);
    run(cases, COUNT(cases), 0,
        "1..1\n"
        "# loading the plugin has started threads, which the processes that run cases do not have: "
        "start them in create() or open()\n"
        "ok 1 - passes\n"
        "# some 1: 1 cases, 0 failed, 0 skipped\n");
    (void)pthread_barrier_wait(&both);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_death_between),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_all_closed),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("kit", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kafka transport knows of deliveries by processes that did not end in order, and what
 * becomes of the messages of one that stood still.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

/* ---- processes --------------------------------------------------------------------- */

/* Run `work` in a process of its own, which ends with _exit(0) or is killed. */
static pid_t start(void (*work)(fixture *f), fixture *f)
{
    (void)fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work(f);
        (void)fflush(stdout);
        _exit(0);
    }
    return child;
}

/* Start it and wait for its end. */
static int in_process(void (*work)(fixture *f), fixture *f)
{
    int status = 0;
    pid_t child = start(work, f);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* ---- deliveries that come to nothing ----------------------------------------------- */

static int survivor_pipe[2];

static void receive_and_die(fixture *f)
{
    const wb_incoming *message;
    fixture_create(f);
    fixture_open(f, 10);
    fixture_receive(f, &message, 1);
    (void)!write(survivor_pipe[1], &message->delivery_count, sizeof message->delivery_count);
    (void)raise(SIGKILL);
}

/* How often a message that ends the process was delivered when it ends it, behind so many quick ones
 * that are done: not when it will be committed that they are. */
enum { QUICK = 30 };

static void handle_until_it_dies(fixture *f)
{
    const wb_incoming *message;
    fixture_create(f);
    fixture_open(f, 10);
    for (;;) {
        fixture_receive(f, &message, 1);
        if (strcmp(message->id, "m-30") == 0) {
            (void)!write(survivor_pipe[1], &message->delivery_count, sizeof message->delivery_count);
            (void)raise(SIGKILL);
        }
        fixture_acknowledge(f, &message, 1);
    }
}

static void count_behind_others(unsigned batch_max)
{
    fixture f;
    uint32_t deliveries[6];
    fixture_prepare(&f);
    f.endpoint.batch_max = batch_max;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, QUICK + 1);
    fixture_end(&f);
    assert_int_equal(pipe(survivor_pipe), 0);
    for (size_t death = 0; death < 6; death++) {
        assert_true(WIFSIGNALED(in_process(handle_until_it_dies, &f)));
        assert_int_equal(read(survivor_pipe[0], &deliveries[death], sizeof *deliveries), sizeof *deliveries);
        printf("# death %zu: delivered %u times before\n", death, deliveries[death]);
    }
    assert_true(deliveries[5] >= 3);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), QUICK);
}

static void test_delivery_count_behind_others(void **state)
{
    (void)state;
    count_behind_others(100);
}

/* What runs ahead of a commit has nothing to do with batches. */
static void test_delivery_count_in_small_batches(void **state)
{
    (void)state;
    count_behind_others(1);
}

/* A session at work says so beside the offset; one that ends in order takes it back. */
static void test_note_of_a_session_at_work(void **state)
{
    fixture f;
    const wb_incoming *message;
    char note[64];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 1);
    fixture_receive(&f, &message, 1);
    fixture_acknowledge(&f, &message, 1);
    for (int i = 0; i < 100 && client_committed(f.queue, f.queue, 0, note, sizeof note) < 1; i++)
        wb_clock_pause(SECONDS(1) / 10, NULL);
    assert_string_equal(note, "waybill/1 0 0");
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 1);
    assert_string_equal(note, "");
    fixture_end(&f);
}

static void test_delivery_count(void **state)
{
    fixture f;
    const wb_incoming *messages[3];
    char note[64];
    uint32_t deliveries;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 3);
    fixture_receive(&f, messages, 1);
    fixture_acknowledge(&f, messages, 1);
    fixture_end(&f);
    assert_int_equal(pipe(survivor_pipe), 0);
    for (uint32_t death = 0; death < 3; death++) {
        assert_true(WIFSIGNALED(in_process(receive_and_die, &f)));
        assert_int_equal(read(survivor_pipe[0], &deliveries, sizeof deliveries), sizeof deliveries);
        assert_int_equal(deliveries, death);
    }
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 1);
    assert_string_equal(note, "waybill/1 3 1");
    /* Now what was in hand with it is suspected, too. A session that ends counts as well. */
    fixture_create(&f);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->delivery_count, 3);
    assert_int_equal(messages[1]->delivery_count, 3);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 1);
    assert_string_equal(note, "waybill/1 4 2");
    /* One in which nobody asks for messages does not. */
    fixture_open(&f, 10);
    fixture_close(&f);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->delivery_count, 4);
    fixture_acknowledge(&f, messages, 2);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 3);
    assert_string_equal(note, "");
    fixture_open(&f, 10);
    fixture_fill(&f, 1);
    fixture_receive(&f, messages, 1);
    assert_int_equal(messages[0]->delivery_count, 0);
    fixture_acknowledge(&f, messages, 1);
    fixture_end(&f);
}

/* A process that is killed and started again has its partitions back at once. */
static void test_restart(void **state)
{
    fixture f;
    const wb_incoming *message;
    uint32_t deliveries;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 1);
    fixture_end(&f);
    f.config.session_timeout = SECONDS(25);
    assert_int_equal(pipe(survivor_pipe), 0);
    assert_true(WIFSIGNALED(in_process(receive_and_die, &f)));
    assert_int_equal(read(survivor_pipe[0], &deliveries, sizeof deliveries), sizeof deliveries);
    int64_t started = wb_clock_monotonic();
    fixture_create(&f);
    fixture_open(&f, 10);
    fixture_receive(&f, &message, 1);
    assert_true(wb_clock_monotonic() - started < SECONDS(20));
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* ---- a process that stands still -------------------------------------------------- */

static void handle_some(fixture *f)
{
    const wb_incoming *messages[10];
    size_t count = 0;
    if (f->ops->receive(f->session, fixture_in(SECONDS(1) / 5), messages, 10, &count, &f->error) == WB_OK) {
        fixture_acknowledge(f, messages, count);
    } else {
        fixture_close(f);
        fixture_open(f, 10);
    }
}

/* Stops itself with five messages in hand, and acknowledges them whoever had them meanwhile. */
static void stand_still(fixture *f)
{
    const wb_incoming *messages[10];
    fixture_create(f);
    fixture_open(f, 10);
    fixture_receive(f, messages, 10);
    fixture_acknowledge(f, messages, 5);
    (void)raise(SIGSTOP);
    fixture_acknowledge(f, messages + 5, 5);
    for (int i = 0; i < 200 && client_committed(f->queue, f->queue, 0, NULL, 0) < 20; i++)
        handle_some(f);
    fixture_end(f);
}

/* It is no member of its group any more when it goes on: it comes back, and nothing is missing. */
static void test_standstill(void **state)
{
    fixture f;
    int status;
    (void)state;
    fixture_prepare(&f);
    f.config.session_timeout = SECONDS(6);
    fixture_start(&f, 10);
    fixture_fill(&f, 20);
    fixture_end(&f);
    pid_t child = start(stand_still, &f);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_true(WIFSTOPPED(status));
    (void)sleep(8); /* nothing to await: it is about time that passes */
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delivery_count),
        cmocka_unit_test(test_delivery_count_behind_others),
        cmocka_unit_test(test_delivery_count_in_small_batches),
        cmocka_unit_test(test_note_of_a_session_at_work),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_standstill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

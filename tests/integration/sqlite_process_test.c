/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport between processes: waking up, dying with messages in hand, and
 * the crash points. Children are forked while this process has no file open.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/integration/sqlite_support.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)

typedef struct fixture {
    char *directory;
    char *file;
    char *log;
    int pipe[2]; /* from children */
    int to_child[2];
    int first;   /* of the numbers a child sends, or the count it receives */
    const char *crash;
} fixture;

static void open_place(const fixture *with, place *at)
{
    place_open(at, "orders", NULL, with->file, NULL);
}

static int set_up(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    place at;
    made->directory = test_directory();
    made->file = test_file(made->directory, "queues.db");
    made->log = test_file(made->directory, "log");
    assert_int_equal(pipe(made->pipe), 0);
    assert_int_equal(pipe(made->to_child), 0);
    open_place(made, &at);
    place_install(&at);
    place_close(&at);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    fixture *made = *state;
    for (int i = 0; i < 2; i++) {
        (void)close(made->pipe[i]);
        (void)close(made->to_child[i]);
    }
    free(made->file);
    free(made->log);
    test_remove(made->directory);
    free(made);
    return 0;
}

static void tell(const fixture *with, int64_t value)
{
    assert_int_equal(write(with->pipe[1], &value, sizeof value), sizeof value);
}

static int64_t hear(const fixture *with)
{
    int64_t value = -1;
    assert_int_equal(read(with->pipe[0], &value, sizeof value), sizeof value);
    return value;
}

static void send_numbers(const fixture *with, int first, int count)
{
    place at;
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_SEND);
    place_send_numbers(&at, session, "orders", first, count);
    at.transport_ops->close(session);
    place_close(&at);
}

/* ---- death with messages in hand ---------------------------------------------------------- */

static void hold_messages(void *argument)
{
    const fixture *with = argument;
    const wb_incoming *messages[5];
    place at;
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_RECEIVE);
    tell(with, (int64_t)place_receive(&at, session, messages, 5, 1000));
    for (;;)
        (void)pause();
}

typedef struct killing {
    pid_t victim;
    int64_t when;
} killing;

static void *kill_soon(void *argument)
{
    killing *planned = argument;
    (void)usleep(150000);
    planned->when = test_now();
    assert_int_equal(kill(planned->victim, SIGKILL), 0);
    return NULL;
}

static int64_t time_to_redelivery(fixture *with)
{
    const wb_incoming *messages[10];
    pthread_t thread;
    place at;
    send_numbers(with, 0, 8);
    killing planned = { .victim = test_child(hold_messages, with) };
    assert_int_equal(hear(with), 5);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, BOTH);
    assert_int_equal(place_receive(&at, session, messages, 10, 1000), 3);
    assert_int_equal(test_number(messages[0]), 5);
    assert_int_equal(messages[0]->delivery_count, 0);
    assert_int_equal(pthread_create(&thread, NULL, kill_soon, &planned), 0);
    assert_int_equal(place_receive(&at, session, messages, 10, 5000), 5);
    int64_t now = test_now();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(test_wait(planned.victim), -SIGKILL);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(test_number(messages[i]), i);
        assert_int_equal(messages[i]->delivery_count, 1);
    }
    at.transport_ops->close(session);
    place_close(&at);
    return now - planned.when;
}

/* At once, there is no lease to run out: on a machine that is busy, one time of five. */
static void the_dead_are_noticed_by_who_waits(void **state)
{
    int64_t best = WB_NEVER;
    for (int i = 0; i < 5 && best > 100 * WB_MILLISECOND; i++) {
        if (i) {
            (void)tear_down(state);
            (void)set_up(state);
        }
        int64_t spent = time_to_redelivery(*state);
        best = spent < best ? spent : best;
        print_message("# death to redelivery %lld us\n", (long long)spent / 1000);
    }
    assert_in_range(best, 0, 100 * WB_MILLISECOND);
}

static void a_restart_has_no_lease_to_wait_for(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[10];
    place at;
    send_numbers(with, 0, 8);
    pid_t dead = test_child(hold_messages, with);
    assert_int_equal(hear(with), 5);
    pid_t living = test_child(hold_messages, with);
    assert_int_equal(hear(with), 3);
    assert_int_equal(kill(dead, SIGKILL), 0);
    assert_int_equal(test_wait(dead), -SIGKILL);
    int64_t start = test_now();
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, BOTH);
    assert_int_equal(place_receive(&at, session, messages, 10, 1000), 5);
    assert_in_range(test_now() - start, 0, 500 * WB_MILLISECOND);
    assert_int_equal(messages[4]->delivery_count, 1);
    place_acknowledge(&at, session, messages, 5);
    at.transport_ops->close(session);
    assert_int_equal(test_messages(with->file, "orders"), 3);
    assert_int_equal(kill(living, SIGKILL), 0);
    assert_int_equal(test_wait(living), -SIGKILL);
    place_close(&at);
}

static void deaths_are_counted_one_by_one(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    place at;
    send_numbers(with, 0, 1);
    for (int i = 0; i < 4; i++) {
        pid_t child = test_child(hold_messages, with);
        assert_int_equal(hear(with), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(test_wait(child), -SIGKILL);
    }
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, BOTH);
    assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
    assert_int_equal(message->delivery_count, 4);
    at.transport_ops->close(session);
    place_close(&at);
}

/* ---- competing ------------------------------------------------------------------------------ */

enum { MESSAGES = 2000, BATCH = 20 };

/* Append each number to the log before it is acknowledged, until the queue stays empty. */
static void consume(void *argument)
{
    const fixture *with = argument;
    const wb_incoming *messages[BATCH];
    size_t count;
    place at;
    int log = open(with->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_RECEIVE);
    while ((count = place_receive(&at, session, messages, BATCH, 700)) > 0) {
        for (size_t i = 0; i < count; i++) {
            int number = test_number(messages[i]);
            assert_int_equal(write(log, &number, sizeof number), sizeof number);
        }
        (void)usleep(2000);
        place_acknowledge(&at, session, messages, count);
    }
    at.transport_ops->close(session);
    place_close(&at);
}

static void read_log(const fixture *with, unsigned char seen[MESSAGES])
{
    int number;
    int log = open(with->log, O_RDONLY);
    assert_true(log >= 0);
    while (read(log, &number, sizeof number) == sizeof number)
        seen[number]++;
    (void)close(log);
}

static void killed_consumers_lose_nothing(void **state)
{
    fixture *with = *state;
    enum { CONSUMERS = 3, KILLS = 6 };
    static unsigned char seen[MESSAGES];
    pid_t children[CONSUMERS];
    int again = 0;
    for (int i = 0; i < MESSAGES; i += 100)
        send_numbers(with, i, 100);
    for (int i = 0; i < CONSUMERS; i++)
        children[i] = test_child(consume, with);
    for (int i = 0; i < KILLS; i++) {
        (void)usleep(20000);
        assert_int_equal(kill(children[i % CONSUMERS], SIGKILL), 0);
        assert_int_equal(test_wait(children[i % CONSUMERS]), -SIGKILL);
        children[i % CONSUMERS] = test_child(consume, with);
    }
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(test_wait(children[i]), 0);
    memset(seen, 0, sizeof seen);
    read_log(with, seen);
    for (int i = 0; i < MESSAGES; i++) {
        assert_in_range(seen[i], 1, 1 + KILLS);
        again += seen[i] - 1;
    }
    assert_in_range(again, 0, KILLS * BATCH);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 0);
}

/* ---- installing --------------------------------------------------------------------------- */

static void install_another(void *argument)
{
    const fixture *with = argument;
    place at;
    char *file = test_file(with->directory, "new.db");
    place_open(&at, "orders", NULL, file, file);
    place_install(&at);
    place_close(&at);
    free(file);
}

static void processes_may_install_at_once(void **state)
{
    fixture *with = *state;
    enum { INSTALLERS = 4 };
    pid_t children[INSTALLERS];
    for (int i = 0; i < INSTALLERS; i++)
        children[i] = test_child(install_another, with);
    for (int i = 0; i < INSTALLERS; i++)
        assert_int_equal(test_wait(children[i]), 0);
}

/* ---- waking up ------------------------------------------------------------------------------- */

enum { SAMPLES = 41 };

static int64_t cpu_time(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * WB_SECOND +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

/* Tell how late the message is that place_receive() answers. */
static void tell_how_late(const fixture *with, place *at, wb_transport_session *session)
{
    const wb_incoming *message;
    int64_t sent;
    if (place_receive(at, session, &message, 1, 5000) != 1)
        _exit(1);
    memcpy(&sent, message->body, sizeof sent);
    tell(with, test_now() - sent);
    place_acknowledge(at, session, &message, 1);
}

/* Tell how late each message is that a word in a pipe tells of, and each that is waited for; then how much CPU two seconds of
 * waiting cost. */
static void measure_waking(void *argument)
{
    const fixture *with = argument;
    const wb_incoming *message;
    char word;
    place at;
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_RECEIVE);
    tell(with, 0);
    (void)close(with->to_child[1]); /* if the parent fails, there is an end of it */
    for (int i = 0; i < SAMPLES; i++) {
        if (read(with->to_child[0], &word, 1) != 1)
            _exit(1);
        tell_how_late(with, &at, session);
        tell_how_late(with, &at, session);
    }
    int64_t before = cpu_time();
    if (place_receive(&at, session, &message, 1, 2000) != 0)
        _exit(1);
    tell(with, cpu_time() - before);
    at.transport_ops->close(session);
    place_close(&at);
}

static void send_time(place *at, wb_transport_session *session)
{
    (void)usleep(8000); /* by then the other one waits */
    int64_t now = test_now();
    wb_operation operation = test_send("orders", "t", 1, &now, sizeof now);
    place_send(at, session, &operation, 1);
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static int64_t median(int64_t *values)
{
    qsort(values, SAMPLES, sizeof values[0], compare);
    return values[SAMPLES / 2];
}

/* Where others have the processors nobody wakes at once, and a transaction takes long: what is compared is the same message,
 * sent to a process that waits in read(). */
static void waiting_wakes_at_once_and_costs_nothing(void **state)
{
    fixture *with = *state;
    int64_t late[SAMPLES], plain[SAMPLES];
    place at;
    pid_t child = test_child(measure_waking, with);
    assert_int_equal(hear(with), 0);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_SEND);
    for (int i = 0; i < SAMPLES; i++) {
        send_time(&at, session);
        assert_int_equal(write(with->to_child[1], "", 1), 1);
        plain[i] = hear(with);
        send_time(&at, session);
        late[i] = hear(with);
    }
    int64_t idle = hear(with);
    assert_int_equal(test_wait(child), 0);
    int64_t usual = median(late), of_pipe = median(plain);
    print_message("# send to receive, median %lld us, worst %lld us, by a pipe %lld us; CPU of 2 s waiting %lld us\n",
                  (long long)usual / 1000, (long long)late[SAMPLES - 1] / 1000, (long long)of_pipe / 1000,
                  (long long)idle / 1000);
    assert_in_range(usual, 0, 10 * WB_MILLISECOND + 3 * of_pipe);
    assert_in_range(idle, 0, 20 * WB_MILLISECOND);
    at.transport_ops->close(session);
    place_close(&at);
}

/* ---- crash points ---------------------------------------------------------------------------- */

static void crash_while_sending(void *argument)
{
    const fixture *with = argument;
    (void)setenv("WAYBILL_CRASH", with->crash, 1);
    send_numbers(with, 0, 10);
}

static void crash_while_receiving(void *argument)
{
    const fixture *with = argument;
    const wb_incoming *messages[4];
    place at;
    (void)setenv("WAYBILL_CRASH", with->crash, 1);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, BOTH);
    size_t count = place_receive(&at, session, messages, 4, 1000);
    if (at.info.mode == WB_MODE_RECEIVE_ONLY)
        place_acknowledge(&at, session, messages, count);
    (void)place_receive(&at, session, messages, 4, 1000);
}

static void crash_in_a_transaction(void *argument)
{
    const fixture *with = argument;
    const wb_incoming *messages[4];
    place at;
    (void)setenv("WAYBILL_CRASH", with->crash, 1);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, BOTH);
    size_t count = place_receive(&at, session, messages, 4, 1000);
    (void)at.transport_ops->begin(session, NULL);
    place_send_numbers(&at, session, "error", 0, (int)count);
    place_acknowledge(&at, session, messages, count);
    (void)at.transport_ops->commit(session, NULL);
}

static void crash(fixture *with, void (*run)(void *argument), const char *point)
{
    with->crash = point;
    assert_int_equal(test_wait(test_child(run, with)), -SIGKILL);
}

/* Receive all; @return the highest delivery count, or -1 when there is nothing. */
static int redeliver(const fixture *with, size_t expected)
{
    const wb_incoming *messages[16];
    int highest = -1;
    place at;
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_RECEIVE);
    size_t count = place_receive(&at, session, messages, 16, expected ? 1000 : 0);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        if ((int)messages[i]->delivery_count > highest)
            highest = (int)messages[i]->delivery_count;
    place_acknowledge(&at, session, messages, count);
    at.transport_ops->close(session);
    place_close(&at);
    return highest;
}

static void a_crash_while_sending_sends_nothing(void **state)
{
    fixture *with = *state;
    crash(with, crash_while_sending, "half_dispatched");
    assert_int_equal(redeliver(with, 0), -1);
    crash(with, crash_while_sending, "dispatch_unconfirmed");
    assert_int_equal(redeliver(with, 0), -1);
}

static void a_crash_after_receiving_delivers_again(void **state)
{
    fixture *with = *state;
    send_numbers(with, 0, 4);
    crash(with, crash_while_receiving, "received_frame");
    assert_int_equal(redeliver(with, 4), 1);
}

static void a_crash_after_acknowledging_does_not(void **state)
{
    fixture *with = *state;
    send_numbers(with, 0, 6);
    crash(with, crash_while_receiving, "acknowledge_sent");
    /* four were acknowledged; two were claimed in the same transaction */
    assert_int_equal(redeliver(with, 2), 1);
}

static void a_crash_in_a_transaction_undoes_all_of_it(void **state)
{
    fixture *with = *state;
    static const char *const before[] = { "half_dispatched", "dispatch_unconfirmed" };
    send_numbers(with, 0, 4);
    for (size_t i = 0; i < 2; i++) {
        crash(with, crash_in_a_transaction, before[i]);
        assert_int_equal(test_messages(with->file, "error"), 0);
        assert_int_equal(test_messages(with->file, "orders"), 4);
    }
    crash(with, crash_in_a_transaction, "acknowledge_sent");
    assert_int_equal(test_messages(with->file, "error"), 4);
    assert_int_equal(test_messages(with->file, "orders"), 0);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

/* Send until the file may not grow, then tell how many sends were confirmed. */
static void fill(void *argument)
{
    const fixture *with = argument;
    static char body[20000];
    place at;
    int64_t confirmed = 0;
    struct rlimit limit = { .rlim_cur = 4 << 20, .rlim_max = RLIM_INFINITY };
    (void)signal(SIGXFSZ, SIG_IGN);
    open_place(with, &at);
    wb_transport_session *session = place_session(&at, WB_SESSION_SEND);
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 1000; i++) {
        wb_operation operation = test_send("orders", "f", 1, body, sizeof body);
        wb_operation *window[] = { &operation };
        int result = at.transport_ops->send(session, window, 1, WB_NEVER, &at.error);
        if (result != operation.result)
            _exit(1);
        confirmed += result == WB_OK;
        if (result == WB_REJECT || result == WB_FATAL || (i == 999 && result == WB_OK))
            _exit(2);
    }
    tell(with, confirmed);
    _exit(0);
}

static void a_full_disk_loses_nothing_confirmed(void **state)
{
    fixture *with = *state;
    assert_int_equal(test_wait(test_child(fill, with)), 0);
    int64_t confirmed = hear(with);
    int64_t there = test_messages(with->file, "orders");
    assert_in_range(confirmed, 10, 999);
    assert_in_range(there, confirmed, confirmed + 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_dead_are_noticed_by_who_waits),
        CASE(a_restart_has_no_lease_to_wait_for),
        CASE(deaths_are_counted_one_by_one),
        CASE(killed_consumers_lose_nothing),
        CASE(processes_may_install_at_once),
        CASE(waiting_wakes_at_once_and_costs_nothing),
        CASE(a_crash_while_sending_sends_nothing),
        CASE(a_crash_after_receiving_delivers_again),
        CASE(a_crash_after_acknowledging_does_not),
        CASE(a_crash_in_a_transaction_undoes_all_of_it),
        CASE(a_full_disk_loses_nothing_confirmed),
    };
    return cmocka_run_group_tests_name("sqlite processes", tests, NULL, NULL);
}

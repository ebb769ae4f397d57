/* SPDX-License-Identifier: Apache-2.0
 *
 * The write-ahead log: bounded whatever number of Waybill's own sessions read, and told
 * about when a reader that is not ours keeps it.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/sqlite_fixture.h"

#define MIB (1 << 20)
#define PROCESSES 2
/* The sessions of each process. */
#define SENDERS 2
#define RECEIVERS 3
#define WATCHERS 6
#define BODY 4000
/* 32 MiB are where writers insist; a commit is at most one window beyond. */
#define BOUND (128 * MIB) /* it stays near 32; without a bound it grows by 200 a second */

static int64_t log_size(const char *file)
{
    char path[4096];
    struct stat status;
    (void)snprintf(path, sizeof path, "%s-wal", file);
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* ---- our own readers ------------------------------------------------------------------ */

typedef struct load {
    place *at;
    wb_transport_session *session;
    atomic_int *stop;
} load;

static void send_window(place *at, wb_transport_session *session)
{
    static const char body[BODY];
    wb_operation operations[20];
    for (size_t i = 0; i < 20; i++)
        operations[i] = test_send("orders", "id", 2, body, sizeof body);
    place_send(at, session, operations, 20);
}

static void *keep_sending(void *argument)
{
    load *mine = argument;
    while (!atomic_load(mine->stop))
        send_window(mine->at, mine->session);
    return NULL;
}

static void *keep_receiving(void *argument)
{
    load *mine = argument;
    const wb_incoming *messages[20];
    while (!atomic_load(mine->stop)) {
        size_t count = 0;
        wb_error error;
        if (mine->at->transport_ops->receive(mine->session, test_now() + WB_MILLISECOND, messages,
                                             20, &count, &error) == WB_OK &&
            count > 0)
            (void)mine->at->transport_ops->acknowledge(mine->session, messages, count, &error);
    }
    return NULL;
}

static int64_t largest_log(const char *file, int64_t duration)
{
    int64_t largest = 0;
    for (int64_t until = test_now() + duration; test_now() < until;) {
        int64_t size = log_size(file);
        if (size > largest)
            largest = size;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return largest;
}

/* Sessions of one process at work until `until`. */
static void work(const char *file, int64_t until)
{
    enum { ALL = SENDERS + RECEIVERS + WATCHERS };
    place orders;
    place idle;
    load loads[ALL];
    pthread_t threads[ALL];
    atomic_int stop = 0;
    place_open(&orders, "orders", NULL, file, NULL);
    place_open(&idle, "idle", NULL, file, NULL);
    test_config_set(test_plugin("transport"), orders.transport_config, "synchronous", 1);
    for (size_t i = 0; i < ALL; i++) {
        place *at = i < SENDERS + RECEIVERS ? &orders : &idle;
        loads[i] = (load){ at, place_session(at, WB_SESSION_RECEIVE | WB_SESSION_SEND), &stop };
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < SENDERS ? keep_sending : keep_receiving, &loads[i]),
                         0);
    }
    while (test_now() < until)
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    atomic_store(&stop, 1);
    for (size_t i = 0; i < ALL; i++)
        (void)pthread_join(threads[i], NULL);
    for (size_t i = 0; i < ALL; i++)
        loads[i].at->transport_ops->close(loads[i].session);
    place_close(&orders);
    place_close(&idle);
}

static void work_for_a_while(void *argument)
{
    work(argument, test_now() + 8 * WB_SECOND);
}

static void install(const char *endpoint, const char *file)
{
    place at;
    place_open(&at, endpoint, NULL, file, NULL);
    place_install(&at);
    place_close(&at);
}

static void many_sessions_leave_the_log_bounded(void **state)
{
    const fixture *with = *state;
    pid_t children[PROCESSES];
    install("orders", with->queues);
    install("idle", with->queues);
    for (size_t i = 0; i < PROCESSES; i++)
        children[i] = test_child(work_for_a_while, with->queues);
    int64_t largest = largest_log(with->queues, 8 * WB_SECOND);
    for (size_t i = 0; i < PROCESSES; i++)
        assert_int_equal(test_wait(children[i]), 0);
    print_message("# largest log %lld KiB\n", (long long)largest >> 10);
    assert_in_range(largest, 1, BOUND);
}

/* ---- one that carries over and is slow ------------------------------------------------- */

/* Where SQLite's "WAL-index format" puts the lock of who carries over. */
#define CHECKPOINT_LOCK 121
#define COMMITS 10
#define WAITS (50 * WB_MILLISECOND) /* each of them */

static struct flock checkpoint_lock(void)
{
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = CHECKPOINT_LOCK, .l_len = 1
    };
}

static int open_shm(const char *file)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s-shm", file);
    int shm = open(path, O_RDWR | O_CLOEXEC);
    assert_true(shm >= 0);
    return shm;
}

/* As if its process waited for a processor, or for a slow disk, in the midst of it. Until killed. */
static void keep_carrying_over(void *file)
{
    struct flock lock = checkpoint_lock();
    assert_int_equal(fcntl(open_shm(file), F_SETLKW, &lock), 0);
    (void)alarm(60); /* should a check fail before */
    for (;;)
        (void)pause();
}

static int is_carried_over(int shm)
{
    struct flock lock = checkpoint_lock();
    assert_int_equal(fcntl(shm, F_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

static void writers_wait_for_who_carries_the_log_over(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->queues, NULL);
    place_install(&at);
    test_config_set(test_plugin("transport"), at.transport_config, "synchronous", 1);
    wb_transport_session *session = place_session(&at, WB_SESSION_SEND);
    send_window(&at, session);
    int shm = open_shm(with->queues); /* closed after the session, whose locks end with it */
    pid_t child = test_child(keep_carrying_over, with->queues);
    while (!is_carried_over(shm))
        (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    while (log_size(with->queues) < 36 * MIB)
        send_window(&at, session);
    int64_t start = test_now();
    for (int i = 0; i < COMMITS; i++)
        send_window(&at, session);
    int64_t took = test_now() - start;
    int was_kept = is_carried_over(shm);
    assert_int_equal(kill(child, SIGKILL), 0);
    (void)test_wait(child);
    assert_true(was_kept);
    assert_true(took >= COMMITS * WAITS);
    for (int i = 0; i < 2; i++)
        send_window(&at, session);
    assert_in_range(log_size(with->queues), 1, 17 * MIB);
    at.transport_ops->close(session);
    place_close(&at);
    assert_int_equal(close(shm), 0);
}

/* ---- a reader of others ---------------------------------------------------------------- */

static int64_t clock_skew;
static int lines;
static char told[512];

static int64_t skewed_now(void)
{
    return test_now() + clock_skew;
}

static void keep_line(const wb_host *host, int level, const char *text, const wb_field *fields,
                      size_t count)
{
    (void)host;
    if (level != WB_LOG_WARNING)
        return;
    lines++;
    size_t used = (size_t)snprintf(told, sizeof told, "%s", text);
    for (size_t i = 0; i < count && used < sizeof told; i++)
        used += (size_t)snprintf(told + used, sizeof told - used, " %s=%s", fields[i].name,
                                 fields[i].value);
}

static sqlite3 *read_and_stay(const char *file)
{
    sqlite3 *reader = NULL;
    assert_int_equal(sqlite3_open(file, &reader), SQLITE_OK);
    assert_int_equal(run(reader, "begin; select count(*) from waybill_queue"), SQLITE_OK);
    return reader;
}

static int number_behind(const char *text)
{
    const char *at = strstr(told, text);
    return at ? atoi(at + strlen(text)) : -1;
}

static void a_reader_of_others_is_told_once_a_minute(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->queues, NULL);
    place_install(&at);
    test_config_set(test_plugin("transport"), at.transport_config, "synchronous", 1);
    at.host.host.now = skewed_now;
    at.host.host.log = keep_line;
    wb_transport_session *session = place_session(&at, WB_SESSION_SEND);
    sqlite3 *reader = read_and_stay(with->queues);
    while (log_size(with->queues) < 40 * MIB)
        send_window(&at, session);
    assert_int_equal(lines, 0); /* one that leaves soon harms nobody */
    clock_skew += 6 * WB_SECOND;
    send_window(&at, session);
    assert_int_equal(lines, 1);
    assert_in_range(number_behind("size="), 39, 42);
    assert_in_range(number_behind("age="), 5, 40);
    assert_non_null(strstr(told, with->queues));
    for (int i = 0; i < 5; i++) {
        clock_skew += 10 * WB_SECOND;
        send_window(&at, session);
    }
    assert_int_equal(lines, 1);
    clock_skew += 10 * WB_SECOND;
    send_window(&at, session);
    assert_int_equal(lines, 2);
    assert_in_range(number_behind("age="), 65, 100);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    clock_skew += 5 * WB_SECOND;
    for (int i = 0; i < 2; i++)
        send_window(&at, session);
    assert_in_range(log_size(with->queues), 1, 17 * MIB);
    assert_int_equal(lines, 2);
    at.transport_ops->close(session);
    place_close(&at);
    clock_skew = 0;
}

static void *keep_for_a_while(void *writer)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    assert_int_equal(run(writer, "commit"), SQLITE_OK);
    return NULL;
}

/* Who insists waits a moment for it; for a file that others keep, as long as ever. */
static void a_busy_file_is_waited_for_after_insisting(void **state)
{
    const fixture *with = *state;
    sqlite3 *writer = NULL;
    pthread_t thread;
    uint64_t batch = 7;
    wb_storage_session *session = place_storage((place *)(uintptr_t)&with->at);
    sqlite3 *reader = NULL;
    assert_int_equal(sqlite3_open(with->data, &reader), SQLITE_OK);
    assert_int_equal(run(reader, "begin; select count(*) from business"), SQLITE_OK);
    for (; log_size(with->data) < 40 * MIB; batch++) {
        begin(with, session, batch, NULL, 0);
        assert_int_equal(run(handle(with, session), "create table if not exists blobs(b);"
                                                    "insert into blobs values(zeroblob(2000000))"),
                         SQLITE_OK);
        assert_int_equal(commit(with, session, batch, NULL), WB_OK);
    }
    assert_int_equal(sqlite3_open(with->data, &writer), SQLITE_OK);
    assert_int_equal(run(writer, "begin immediate"), SQLITE_OK);
    assert_int_equal(pthread_create(&thread, NULL, keep_for_a_while, writer), 0);
    begin(with, session, batch, NULL, 0);
    assert_int_equal(commit(with, session, batch, NULL), WB_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sqlite3_close(writer), SQLITE_OK);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    with->ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(many_sessions_leave_the_log_bounded),
        CASE(writers_wait_for_who_carries_the_log_over),
        CASE(a_reader_of_others_is_told_once_a_minute),
        CASE(a_busy_file_is_waited_for_after_insisting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

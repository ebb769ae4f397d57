/* SPDX-License-Identifier: Apache-2.0
 *
 * Whoever closes a descriptor of a database takes from the process the locks that SQLite has on it. Another process that
 * comes and goes then must not remove the log under the connections that are left, of the host or of its program.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/common/sqlite/guard.h"
#include "tests/integration/sqlite_support.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)

typedef struct fixture {
    char *directory;
    char *file;
    char *log;
    char *away; /* where the file is moved to */
    pid_t visitor; /* another process, forked while nothing was open here */
    int to_visitor[2];
    int from_visitor[2];
} fixture;

/* It opens the file, looks, and closes it. */
static void visit_when_told(void *argument)
{
    const fixture *with = argument;
    char is_away;
    (void)close(with->to_visitor[1]);
    while (read(with->to_visitor[0], &is_away, 1) == 1) {
        int64_t seen = test_query(is_away ? with->away : with->file, "select count(*) from waybill_message_1");
        assert_int_equal(write(with->from_visitor[1], &seen, sizeof seen), sizeof seen);
    }
}

/* @return how many messages it sees in the first queue. */
static int64_t visit_either(const fixture *with, char is_away)
{
    int64_t seen = -1;
    assert_int_equal(write(with->to_visitor[1], &is_away, 1), 1);
    assert_int_equal(read(with->from_visitor[0], &seen, sizeof seen), sizeof seen);
    return seen;
}

static int64_t visit(const fixture *with)
{
    return visit_either(with, 0);
}

static void install(const fixture *with)
{
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    place_install(&at);
    place_close(&at);
}

static int set_up(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    made->directory = test_directory();
    made->file = test_file(made->directory, "queues.db");
    made->log = test_file(made->directory, "queues.db-wal");
    made->away = test_file(made->directory, "away.db");
    assert_int_equal(pipe2(made->to_visitor, O_CLOEXEC), 0);
    assert_int_equal(pipe2(made->from_visitor, O_CLOEXEC), 0);
    made->visitor = test_child(visit_when_told, made);
    (void)close(made->to_visitor[0]);
    (void)close(made->from_visitor[1]);
    install(made);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    fixture *made = *state;
    (void)close(made->to_visitor[1]);
    assert_int_equal(test_wait(made->visitor), 0);
    (void)close(made->from_visitor[0]);
    free(made->away);
    free(made->log);
    free(made->file);
    test_remove(made->directory);
    free(made);
    return 0;
}

static ino_t log_inode(const fixture *with)
{
    struct stat status;
    return stat(with->log, &status) == 0 ? status.st_ino : 0;
}

/* Whoever comes and goes leaves it, and sees what is in it. */
static void check_log_stays(const fixture *with, ino_t log, int64_t messages)
{
    assert_int_equal(visit(with), messages);
    assert_true(log != 0 && log_inode(with) == log);
}

/* As a copy of it is made. */
static void read_file(const char *path)
{
    char data[512];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file > STDERR_FILENO);
    assert_int_equal(read(file, data, sizeof data), sizeof data);
    assert_int_equal(close(file), 0);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all))
        count++;
    (void)closedir(all);
    return count;
}

/* ---- what a program does ------------------------------------------------------------------------- */

static void the_log_outlives_a_copy(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *session = place_session(&at, BOTH);
    place_send_numbers(&at, session, "orders", 0, 1);
    const ino_t log = log_inode(with);
    at.transport_ops->close(place_session(&at, BOTH)); /* one that leaves leaves the guard to those that stay */
    read_file(with->file);
    check_log_stays(with, log, 1);
    place_send_numbers(&at, session, "orders", 1, 1);
    wb_transport_session *later = place_session(&at, BOTH); /* opens the log by its name */
    place_send_numbers(&at, later, "orders", 2, 1);
    assert_int_equal(visit(with), 3);
    at.transport_ops->close(later);
    at.transport_ops->close(session);
    place_close(&at);
}

/* Had the database got number 0, SQLite would have closed it, since whoever reads or prints would meet it: and have taken off the
 * locks of all connections of the process, its program's as well. */
static void the_log_outlives_a_stream_that_was_closed(void **state)
{
    const fixture *with = *state;
    char target[PATH_MAX] = "";
    sqlite3 *own = NULL;
    place at;
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    assert_int_equal(sqlite3_open(with->file, &own), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "select * from waybill_queue", NULL, NULL, NULL), SQLITE_OK);
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *session = place_session(&at, BOTH);
    place_send_numbers(&at, session, "orders", 0, 1);
    const ino_t log = log_inode(with);
    assert_int_equal(close(STDIN_FILENO), 0);
    wb_transport_session *later = place_session(&at, BOTH);
    const ssize_t size = readlink("/proc/self/fd/0", target, sizeof target - 1);
    assert_int_equal(size, strlen("/dev/null"));
    assert_string_equal(target, "/dev/null");
    check_log_stays(with, log, 1);
    at.transport_ops->close(later);
    at.transport_ops->close(session);
    place_close(&at);
    assert_int_equal(visit(with), 1);
    assert_true(log_inode(with) == log);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    (void)close(kept);
}

/* The guard's own descriptor is none of the standard three. */
static void the_guard_is_no_stream(void **state)
{
    const fixture *with = *state;
    wb_sqlite_guard guard = { .fd = -1 };
    const int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    assert_int_equal(close(STDIN_FILENO), 0);
    assert_int_equal(wb_sqlite_guard_take(&guard, with->file), SQLITE_OK);
    assert_true(guard.fd > STDERR_FILENO);
    wb_sqlite_guard_release(&guard);
    assert_true(wb_sqlite_guard_close(&guard));
    assert_int_equal(guard.fd, -1);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    (void)close(kept);
}

/* ---- what the guard must not do ------------------------------------------------------------------- */

static void the_last_that_closes_removes_the_log(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *first = place_session(&at, BOTH), *second = place_session(&at, BOTH);
    place_send_numbers(&at, first, "orders", 0, 1);
    at.transport_ops->close(first);
    assert_true(log_inode(with) != 0);
    at.transport_ops->close(second);
    assert_true(log_inode(with) == 0);
    place_close(&at);
}

/* Its program has the database open, too: the host's last connection takes nothing from it. */
static void the_log_outlives_the_host(void **state)
{
    const fixture *with = *state;
    sqlite3 *own = NULL;
    place at;
    assert_int_equal(sqlite3_open(with->file, &own), SQLITE_OK);
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *session = place_session(&at, BOTH);
    place_send_numbers(&at, session, "orders", 0, 1);
    assert_int_equal(sqlite3_exec(own, "update waybill_message_1 set key=null", NULL, NULL, NULL), SQLITE_OK);
    const ino_t log = log_inode(with);
    at.transport_ops->close(session);
    place_close(&at);
    check_log_stays(with, log, 1);
    assert_int_equal(sqlite3_exec(own, "delete from waybill_message_1", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(visit(with), 0);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
}

/* Who wants the file alone, and is refused, goes on with it as before. */
static void the_guard_outlives_a_refusal(void **state)
{
    const fixture *with = *state;
    sqlite3 *own = NULL, *other = NULL;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    at.transport_ops->close(place_session(&at, BOTH)); /* the VFS has come with it */
    assert_int_equal(sqlite3_open_v2(with->file, &own, SQLITE_OPEN_READWRITE, "waybill-4"), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "update waybill_queue set name=name", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open(with->file, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "select * from waybill_queue", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "pragma journal_mode=delete", NULL, NULL, NULL), SQLITE_BUSY);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    const ino_t log = log_inode(with);
    read_file(with->file);
    check_log_stays(with, log, 0);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
    place_close(&at);
}

static void descriptors_are_given_back(void **state)
{
    const fixture *with = *state;
    const size_t before = count_descriptors();
    char *another = test_file(with->directory, "another.db");
    place at;
    place_open(&at, "orders", NULL, another, NULL);
    place_install(&at);
    at.transport_ops->close(place_session(&at, BOTH));
    assert_int_equal(count_descriptors(), before);
    wb_transport_session *kept = place_session(&at, BOTH);
    const size_t of_one = count_descriptors();
    at.transport_ops->close(place_session(&at, BOTH));
    assert_true(count_descriptors() <= of_one + 1); /* SQLite keeps one for the next */
    at.transport_ops->close(kept);
    place_close(&at);
    free(another);
}

/* A guard that could not be closed is the next connection's, and not one more each time. */
static void a_guard_that_stays_is_used_again(void **state)
{
    const fixture *with = *state;
    sqlite3 *own = NULL;
    place at;
    assert_int_equal(sqlite3_open(with->file, &own), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "select * from waybill_queue", NULL, NULL, NULL), SQLITE_OK);
    place_open(&at, "orders", NULL, with->file, NULL);
    at.transport_ops->close(place_session(&at, BOTH));
    const size_t before = count_descriptors();
    for (int i = 0; i < 5; i++)
        at.transport_ops->close(place_session(&at, BOTH));
    assert_true(count_descriptors() <= before + 1);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
    place_close(&at);
}

/* A child that was forked meanwhile, and lives on, keeps nobody from the file. */
static void a_child_keeps_nobody_out(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *session = place_session(&at, BOTH);
    place_send_numbers(&at, session, "orders", 0, 1);
    const pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)pause();
    at.transport_ops->close(session);
    place_close(&at);
    assert_true(log_inode(with) == 0);
    assert_int_equal(visit(with), 1);
    assert_true(log_inode(with) == 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(test_wait(child), -SIGKILL);
}

/* Whatever could not be opened: who goes on with the connection is guarded. */
static void check_short_of(const fixture *with, rlim_t limit)
{
    struct rlimit before;
    sqlite3 *own = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit, before.rlim_max }), 0);
    int code = sqlite3_open_v2(with->file, &own, SQLITE_OPEN_READWRITE, "waybill-4");
    if (code == SQLITE_OK)
        code = sqlite3_exec(own, "update waybill_queue set name=name", NULL, NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (code != SQLITE_OK && sqlite3_exec(own, "update waybill_queue set name=name", NULL, NULL, NULL) == SQLITE_OK) {
        const ino_t log = log_inode(with);
        read_file(with->file);
        check_log_stays(with, log, 0);
    }
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
}

static void want_of_descriptors_leaves_nobody_unguarded(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    at.transport_ops->close(place_session(&at, BOTH)); /* the VFS has come with it */
    place_close(&at);
    const int next = dup(STDIN_FILENO);
    (void)close(next);
    for (int more = 0; more < 12; more++)
        check_short_of(with, (rlim_t)(next + more));
}

/* Whoever closes what is not its own gives the number away, and what is opened under it is left alone. */
static void a_number_that_was_given_away_is_left_alone(void **state)
{
    const fixture *with = *state;
    wb_sqlite_guard guard = { .fd = -1 };
    assert_int_equal(wb_sqlite_guard_take(&guard, with->file), SQLITE_OK);
    const int number = guard.fd;
    assert_int_equal(close(number), 0);
    assert_int_equal(open("/dev/null", O_RDWR | O_CLOEXEC), number);
    wb_sqlite_guard_release(&guard);
    assert_true(wb_sqlite_guard_close(&guard));
    assert_true(fcntl(number, F_GETFD) >= 0);
    const int same = open(with->file, O_RDWR | O_CLOEXEC);
    assert_int_equal(dup3(same, number, O_CLOEXEC), number); /* another descriptor of the same file */
    (void)close(same);
    guard.fd = number;
    assert_true(wb_sqlite_guard_close(&guard));
    assert_true(fcntl(number, F_GETFD) >= 0);
    guard.fd = number;
    assert_int_equal(wb_sqlite_guard_take(&guard, with->file), SQLITE_OK);
    assert_true(guard.fd != number && fcntl(number, F_GETFD) >= 0);
    assert_true(wb_sqlite_guard_close(&guard));
    (void)close(number);
}

/* The descriptor whose offset says that it is the guard's. */
static int find_guard(void)
{
    int fd = STDERR_FILENO + 1;
    while (fd < 1024 && lseek(fd, 0, SEEK_CUR) != 0x40000002)
        fd++;
    assert_true(fd < 1024);
    return fd;
}

/* By a handler that closed what is not its own. */
static void a_guard_that_was_lost_is_taken_again(void **state)
{
    const fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->file, NULL);
    wb_transport_session *session = place_session(&at, BOTH);
    place_send_numbers(&at, session, "orders", 0, 1);
    const ino_t log = log_inode(with);
    (void)close(find_guard());
    wb_transport_session *later = place_session(&at, BOTH);
    read_file(with->file);
    check_log_stays(with, log, 1);
    at.transport_ops->close(later);
    at.transport_ops->close(session);
    place_close(&at);
}

/* It goes with the next database that is closed. */
static void a_guard_that_stays_is_not_kept_for_ever(void **state)
{
    const fixture *with = *state;
    char *another = test_file(with->directory, "another.db");
    sqlite3 *own = NULL;
    place at;
    const size_t before = count_descriptors();
    assert_int_equal(sqlite3_open(with->file, &own), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "select * from waybill_queue", NULL, NULL, NULL), SQLITE_OK);
    install(with);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
    assert_int_equal(count_descriptors(), before + 1);
    place_open(&at, "orders", NULL, another, NULL);
    place_install(&at);
    place_close(&at);
    assert_int_equal(count_descriptors(), before);
    free(another);
}

static void move_away(const fixture *with, const char *name, const char *to)
{
    char *from_path = test_file(with->directory, name), *to_path = test_file(with->directory, to);
    assert_int_equal(rename(from_path, to_path), 0);
    free(from_path);
    free(to_path);
}

/* And that of a file which was replaced meanwhile is not taken for that of the new one. */
static void a_replaced_file_has_a_guard_of_its_own(void **state)
{
    const fixture *with = *state;
    sqlite3 *own = NULL;
    place at;
    assert_int_equal(sqlite3_open(with->file, &own), SQLITE_OK);
    assert_int_equal(sqlite3_exec(own, "select * from waybill_queue", NULL, NULL, NULL), SQLITE_OK);
    place_open(&at, "orders", NULL, with->file, NULL);
    at.transport_ops->close(place_session(&at, BOTH));
    place_close(&at);
    move_away(with, "queues.db", "away.db");
    move_away(with, "queues.db-wal", "away.db-wal");
    move_away(with, "queues.db-shm", "away.db-shm");
    move_away(with, "queues.db-sessions", "away.db-sessions");
    install(with);
    the_log_outlives_a_copy(state);
    char *log = test_file(with->directory, "away.db-wal");
    assert_int_equal(visit_either(with, 1), 0);
    assert_int_equal(access(log, F_OK), 0); /* nor was anything taken from who has the old one */
    free(log);
    assert_int_equal(sqlite3_close(own), SQLITE_OK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_log_outlives_a_copy),
        CASE(the_log_outlives_a_stream_that_was_closed),
        CASE(the_guard_is_no_stream),
        CASE(the_last_that_closes_removes_the_log),
        CASE(the_log_outlives_the_host),
        CASE(the_guard_outlives_a_refusal),
        CASE(descriptors_are_given_back),
        CASE(a_guard_that_stays_is_used_again),
        CASE(a_child_keeps_nobody_out),
        CASE(a_guard_that_was_lost_is_taken_again),
        CASE(a_guard_that_stays_is_not_kept_for_ever),
        CASE(want_of_descriptors_leaves_nobody_unguarded),
        CASE(a_number_that_was_given_away_is_left_alone),
        CASE(a_replaced_file_has_a_guard_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

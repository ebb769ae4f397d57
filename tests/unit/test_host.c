/* SPDX-License-Identifier: Apache-2.0
 *
 * The host of several endpoints, each case in a process of its own: how it starts, stops and
 * starts again what gave up, how long that takes, and what its exit code says.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/cli/drain.h"
#include "core/cli/host.h"
#include "core/cli/wait.h"
#include "tests/unit/fake_plugins.h"

#define PATIENCE (20 * WB_SECOND)
/* Milliseconds: far below the 30 s of an endpoint that was told nothing else, and enough for a busy
 * machine and a sanitizer. */
#define SOON 8000
#define ENDPOINTS 2

/* Waits until a condition holds, and fails when it never does. */
#define wait_until(condition)                                                                      \
    do {                                                                                           \
        int64_t end_ = wb_clock_monotonic() + PATIENCE;                                            \
        while (!(condition) && wb_clock_monotonic() < end_)                                        \
            wb_clock_pause(WB_MILLISECOND, NULL);                                                  \
        assert_true(condition);                                                                    \
    } while (0)

/* A module of each endpoint: what its hooks say, and how often they were asked. */
typedef struct module {
    atomic_int check, open; /* WB_x */
    atomic_int checked, opened, closed;
} module;

/* The process that is the host. What is shared with the test: */
static struct shared {
    fake fakes[ENDPOINTS];
    module modules[ENDPOINTS];
    atomic_int no_threads; /* for now */
    atomic_int is_overdue; /* a handler of each endpoint, and another one is at work as long as a session is open */
} *shared;
static fake *fakes;
static wb_endpoint_setup setups[ENDPOINTS];
static wb_config config = { .path = "orders.conf", .log_level = WB_LOG_INFO };
static wb_setup setup;
static pid_t host;
static int64_t drain_idle, drain_patience; /* 0: it does not drain */

/* ---- what endpoints say ------------------------------------------------------------------- */

static int64_t empty_since; /* of all; 0: as it is */

int64_t __real_wb_endpoint_empty_since(wb_endpoint *endpoint);
int64_t __wrap_wb_endpoint_empty_since(wb_endpoint *endpoint);
int64_t __wrap_wb_endpoint_empty_since(wb_endpoint *endpoint)
{
    return empty_since ? empty_since : __real_wb_endpoint_empty_since(endpoint);
}

unsigned __real_wb_endpoint_working(const wb_endpoint *endpoint, unsigned *ret_overdue);
unsigned __wrap_wb_endpoint_working(const wb_endpoint *endpoint, unsigned *ret_overdue);
unsigned __wrap_wb_endpoint_working(const wb_endpoint *endpoint, unsigned *ret_overdue)
{
    if (!shared->is_overdue)
        return __real_wb_endpoint_working(endpoint, ret_overdue);
    *ret_overdue = 1;
    return 1 + (fakes[0].sessions || fakes[1].sessions);
}

/* ---- the host ----------------------------------------------------------------------------- */

static void prepare(unsigned workers, int outbox)
{
    static const char *const names[ENDPOINTS] = { "orders", "billing" };
    for (size_t i = 0; i < ENDPOINTS; i++)
        fake_setup(&fakes[i], &setups[i], names[i], workers, outbox);
    setup = (wb_setup){ .config = &config, .endpoints = setups, .endpoint_count = ENDPOINTS };
}

static module *module_of(wb_context *ctx)
{
    return &shared->modules[strcmp(wb_endpoint_name(ctx), setups[0].config->name) != 0];
}

static int check(wb_context *ctx)
{
    module *m = module_of(ctx);
    m->checked++;
    return m->check == WB_OK ? WB_OK : wb_fail(ctx, m->check, "told to fail in check");
}

static int open_module(wb_context *ctx, void **ret_data)
{
    module *m = module_of(ctx);
    *ret_data = m;
    m->opened++;
    if (m->open == WB_FATAL)
        wb_clock_pause(300 * WB_MILLISECOND, NULL); /* whoever runs, and should not, may be seen */
    return m->open == WB_OK ? WB_OK : wb_fail(ctx, m->open, "told to fail in open");
}

static void close_module(wb_context *ctx, void *data)
{
    (void)data;
    module_of(ctx)->closed++;
}

static void prepare_modules(void)
{
    static wb_loaded_module loaded = { .path = "bank.so", .at = { .file = "orders.conf", .line = 7, .is_set = 1 },
                                       .check = check, .open = open_module, .close = close_module };
    static const wb_conf_origin by_default[100]; /* of each option */
    memset(shared->modules, 0, sizeof shared->modules);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        setups[i].handlers.modules = &loaded;
        setups[i].handlers.module_count = 1;
        setups[i].is_planned = 1; /* so that `run` begins with what `check` says */
        for (size_t section = 0; section < WB_SECTION_COUNT; section++)
            fakes[i].config.origins[section] = by_default;
    }
}

/* The child: what it leaves behind is wrong whatever its exit code. */
static _Noreturn void be_host(int install, int threads)
{
    cli_host hosted = { .drain = { .idle = drain_idle, .patience = drain_patience } };
    int file = open(conf_write("host.log", ""), O_WRONLY | O_APPEND);
    (void)dup2(file, STDERR_FILENO);
    cli_guard_block(&hosted.guard);
    fake_threads = threads;
    int code = cli_host_run(&hosted, &setup, NULL, install);
    for (size_t i = 0; i < ENDPOINTS; i++)
        if (fakes[i].instances || fakes[i].sessions)
            code = 99;
    exit(code);
}

static void run_with(int install, int threads)
{
    (void)remove(conf_write("host.log", ""));
    host = fork();
    if (host == 0)
        be_host(install, threads);
}

static void run(void)
{
    run_with(0, -1);
    for (size_t i = 0; i < ENDPOINTS; i++)
        wait_until(fakes[i].received);
}

/* How long from now on it took to end, in milliseconds. */
static int64_t assert_exit(int expected)
{
    int status = 0;
    int64_t start = wb_clock_monotonic(), deadline = start + PATIENCE;
    while (waitpid(host, &status, WNOHANG) == 0) {
        if (wb_clock_monotonic() > deadline)
            fail_msg("the host does not end");
        wb_clock_pause(WB_MILLISECOND, NULL);
    }
    host = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    return (wb_clock_monotonic() - start) / WB_MILLISECOND;
}

static int64_t assert_stop(int expected)
{
    (void)kill(host, SIGTERM);
    return assert_exit(expected);
}

static void assert_between(int64_t value, int64_t low, int64_t high)
{
    if (value < low || value > high)
        fail_msg("%lld ms are not %lld to %lld", (long long)value, (long long)low, (long long)high);
}

/* How many lines of the log hold a text. */
static int count_lines(const char *text)
{
    char path[512], line[5000];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/host.log", conf_directory);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, text) != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

static void assert_lines(const char *text, int count)
{
    int found = count_lines(text);
    if (found != count)
        fail_msg("%d lines hold \"%s\", not %d", found, text, count);
}

/* How many hold it with a number of seconds behind it: some, and not as many as that. */
static int count_seconds(const char *text, int low, int high)
{
    char whole[200];
    int count = 0;
    for (int seconds = low; seconds < high; seconds++) {
        (void)snprintf(whole, sizeof whole, "%s%d.", text, seconds);
        count += count_lines(whole);
    }
    return count;
}

static void wait_for_lines(const char *text, int count)
{
    int64_t end = wb_clock_monotonic() + PATIENCE;
    while (count_lines(text) < count && wb_clock_monotonic() < end)
        wb_clock_pause(5 * WB_MILLISECOND, NULL);
    assert_lines(text, count);
}

static void wait_for_work(fake *f)
{
    int looks = f->received;
    wait_until(f->received > looks);
}

/* ---- start -------------------------------------------------------------------------------- */

static void test_failed_start(void **state)
{
    static const unsigned calls[] = { FAKE_CREATE, FAKE_INSTALL, FAKE_VERIFY };
    (void)state;
    for (size_t i = 0; i < ENDPOINTS; i++) {
        for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
            prepare(2, 1);
            fakes[i].fatal = calls[call];
            run_with(1, -1);
            assert_exit(72);
            assert_lines("told to fail in", 1);
            assert_lines(i ? "waybill: endpoint \"billing\": " : "waybill: endpoint \"orders\": ", 1);
            assert_int_equal(fakes[0].opened + fakes[1].opened, 0);
        }
    }
}

/* What is wrong with each is said, whichever stands first; who could start does not. */
static void test_all_that_cannot_start(void **state)
{
    (void)state;
    prepare(2, 1);
    fakes[0].fatal = fakes[1].fatal = FAKE_VERIFY;
    fakes[1].cause = WB_CAUSE_CONFIG;
    run_with(0, -1);
    assert_exit(72);
    assert_lines("waybill: endpoint \"orders\": told to fail in verify", 1);
    assert_lines("waybill: endpoint \"billing\": told to fail in verify", 1);

    prepare(1, 0); /* also where one waits, and what it meets no waiting cures */
    fakes[0].config.start = WB_START_WAIT;
    fakes[0].fatal = fakes[1].fatal = FAKE_VERIFY;
    run_with(0, -1);
    assert_exit(72);
    assert_lines("waybill: endpoint \"orders\": told to fail in verify", 1);
    assert_lines("waybill: endpoint \"billing\": told to fail in verify", 1);
    assert_int_equal(fakes[0].opened + fakes[1].opened, 0);
}

/* Guard, and of each endpoint two workers and a housekeeper: seven threads. */
static void test_threads_that_cannot_start(void **state)
{
    (void)state;
    for (int threads = 0; threads < 7; threads++) {
        prepare(2, 1);
        run_with(0, threads);
        assert_exit(EX_SOFTWARE);
        assert_lines("could not start", 1);
    }
    prepare(2, 1);
    run_with(0, 7);
    wait_until(fakes[1].received);
    assert_stop(EX_OK);
}

static void test_limit_too_low(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[1].limit = 6;
    run_with(0, -1);
    assert_exit(72);
    assert_lines("endpoint \"billing\": queue \"billing\" drops a message", 1);
    prepare(1, 0);
    fakes[1].limit = WB_LIMIT_UNKNOWN;
    run();
    assert_stop(EX_OK);
    assert_lines("nobody can tell after how many deliveries", 1);
}

static void test_stop_while_starting(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[0].config.shutdown_timeout = fakes[1].config.shutdown_timeout = 400 * WB_MILLISECOND;
    fakes[1].hangs = FAKE_VERIFY;
    run_with(0, -1);
    wait_until(fakes[1].instances);
    assert_between(assert_stop(EX_TEMPFAIL), 300, SOON);

    prepare(1, 0); /* and this one ends by itself in time */
    fakes[0].hangs = FAKE_VERIFY;
    run_with(0, -1);
    wait_until(fakes[0].instances);
    (void)kill(host, SIGTERM);
    wb_clock_pause(200 * WB_MILLISECOND, NULL);
    fakes[0].hangs = 0;
    assert_exit(EX_OK);
    assert_int_equal(fakes[1].opened, 0);
}

/* ---- start = "wait" ------------------------------------------------------------------------- */

static void prepare_to_wait(size_t who, unsigned calls, int cause)
{
    prepare(1, 0);
    fakes[who].config.start = WB_START_WAIT;
    fakes[who].cause = cause;
    fakes[who].fatal = calls;
}

/* Its neighbour runs meanwhile; it starts by itself, on the instances that were verified. */
static void test_wait(void **state)
{
    (void)state;
    for (size_t who = 0; who < ENDPOINTS; who++) {
        prepare_to_wait(who, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
        run_with(0, -1);
        wait_until(fakes[1 - who].received);
        wait_for_lines("\"endpoint waits for its servers to start\"", 1);
        wb_clock_pause(2500 * WB_MILLISECOND, NULL);
        assert_int_equal(fakes[who].opened, 0);
        fakes[who].fatal = 0;
        wait_for_work(&fakes[who]);
        assert_lines("endpoint waits for its servers to start", 1); /* not one a try */
        assert_int_equal(fakes[who].instances, 1);
        wait_for_work(&fakes[1 - who]);
        assert_between(assert_stop(EX_OK), 0, SOON);
    }
}

/* A thread that cannot be had for a moment is waited for like a server, and ends nobody else. */
static void test_wait_for_a_thread(void **state)
{
    (void)state;
    prepare_to_wait(1, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    run_with(0, -1);
    wait_until(fakes[0].received);
    wait_for_lines("\"endpoint waits for its servers to start\"", 1);
    shared->no_threads = 1;
    fakes[1].fatal = 0;
    wb_clock_pause(2500 * WB_MILLISECOND, NULL); /* it tries once a second */
    assert_int_equal(fakes[1].opened, 0);
    shared->no_threads = 0;
    wait_for_work(&fakes[1]);
    wait_for_work(&fakes[0]);
    assert_stop(EX_OK);
}

/* All wait, and their servers come one after the other. */
static void test_all_wait(void **state)
{
    (void)state;
    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    fakes[1].config.start = WB_START_WAIT;
    fakes[1].cause = WB_CAUSE_SERVER;
    fakes[1].fatal = FAKE_LIMITS;
    run_with(0, -1);
    wait_for_lines("endpoint waits for its servers to start", 2);
    fakes[1].fatal = 0;
    wait_for_work(&fakes[1]);
    assert_int_equal(fakes[0].opened, 0);
    fakes[0].fatal = 0;
    wait_for_work(&fakes[0]);
    assert_stop(EX_OK);
}

/* `run --install` makes what they need when there is somebody to make it. */
static void test_wait_to_install(void **state)
{
    (void)state;
    prepare_to_wait(0, FAKE_INSTALL, WB_CAUSE_UNREACHABLE);
    run_with(1, -1);
    wait_for_lines("reason=\"told to fail in install\"", 1);
    fakes[0].fatal = 0;
    wait_for_work(&fakes[0]);
    assert_stop(EX_OK);
}

/* What waiting does not cure ends the program before anybody handles a message. */
static void test_wait_for_nothing(void **state)
{
    static const struct { int cause, code; } cases[] = {
        { WB_CAUSE_MISSING, 72 }, { WB_CAUSE_MISMATCH, 72 }, { WB_CAUSE_REFUSED, 77 },
        { WB_CAUSE_CONFIG, 78 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        prepare_to_wait(i % 2, i == 3 ? FAKE_CREATE : FAKE_VERIFY, cases[i].cause);
        run_with(0, -1);
        assert_exit(cases[i].code);
        assert_lines("told to fail in", 1);
        assert_int_equal(fakes[0].opened + fakes[1].opened, 0);
    }
}

/* A server that has just come may say so at first: after a wait that is doubted. */
static void test_wait_and_doubt(void **state)
{
    (void)state;
    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    run_with(0, -1);
    wait_for_lines("endpoint waits for its servers to start", 1);
    fakes[0].cause = WB_CAUSE_MISSING;
    wb_clock_pause(3 * WB_SECOND, NULL);
    assert_int_equal(waitpid(host, NULL, WNOHANG), 0);
    fakes[0].fatal = 0;
    wait_for_work(&fakes[0]);
    assert_stop(EX_OK);

    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    run_with(0, -1);
    wait_for_lines("endpoint waits for its servers to start", 1);
    fakes[0].cause = WB_CAUSE_MISSING;
    assert_between(assert_exit(72), 9000, 18000); /* and then it is believed */
    assert_lines("waybill: endpoint \"orders\": told to fail in verify", 1);
    assert_int_equal(fakes[1].sessions, 0);
}

/* What became of a trial at a time of the test's. */
static int try_at(cli_hosted *one, int64_t seconds)
{
    assert_int_equal(cli_wait_look(one, 0, seconds * WB_SECOND, &one->failure), WB_OK);
    assert_non_null(one->trial);
    wait_until(wb_trial_has_ended(one->trial));
    return cli_wait_look(one, 0, seconds * WB_SECOND, &one->failure);
}

/* The doubt is over when the server is away again, as one that restarts several times. */
static void test_doubt_begins_anew(void **state)
{
    cli_hosted one = { .setup = &setups[0] };
    (void)state;
    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    wb_log_set_level(WB_LOG_ERROR);
    assert_int_equal(try_at(&one, 100), WB_OK);
    fakes[0].cause = WB_CAUSE_MISSING;
    assert_int_equal(try_at(&one, 200), WB_OK);
    fakes[0].cause = WB_CAUSE_UNREACHABLE;
    assert_int_equal(try_at(&one, 205), WB_OK);
    fakes[0].cause = WB_CAUSE_MISSING;
    assert_int_equal(try_at(&one, 300), WB_OK);
    assert_int_equal(try_at(&one, 309), WB_OK);
    assert_int_equal(try_at(&one, 311), WB_FATAL);
    wb_log_set_level(WB_LOG_INFO);
    assert_null(one.endpoint);
    assert_int_equal(fakes[0].instances, 0);
}

/* A stop ends the wait at once: in a pause, and while a server does not answer. */
static void test_stop_while_waiting(void **state)
{
    (void)state;
    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    run_with(0, -1);
    wait_for_lines("endpoint waits for its servers to start", 1);
    assert_between(assert_stop(EX_OK), 0, SOON);
    assert_lines("waybill: ", 0);

    prepare_to_wait(0, 0, 0);
    fakes[0].hangs = FAKE_VERIFY;
    run_with(0, -1);
    wait_until(fakes[1].received); /* it keeps its neighbour waiting for a second, no longer */
    assert_int_equal(fakes[0].opened, 0);
    assert_between(assert_stop(EX_OK), 0, SOON);
    assert_int_equal(fakes[1].instances, 0); /* the neighbour ended as ever */
    assert_lines("shutdown_timeout", 0);
}

/* One that only sends is waited for, too, and then there is nothing left to run. */
static void test_wait_to_send(void **state)
{
    (void)state;
    prepare_to_wait(0, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    setups[0].plan.send_only = setups[1].plan.send_only = 1;
    run_with(0, -1);
    wait_for_lines("endpoint waits for its servers to start", 1);
    assert_int_equal(waitpid(host, NULL, WNOHANG), 0);
    fakes[0].fatal = 0;
    assert_exit(EX_OK);
}

/* ---- modules ------------------------------------------------------------------------------ */

/* What needs no server is known before anybody asks one, let alone waits for one or runs. */
static void test_settings_come_first(void **state)
{
    (void)state;
    for (size_t who = 0; who < ENDPOINTS; who++) {
        for (int start = WB_START_FAIL; start <= WB_START_WAIT; start++) {
            prepare_to_wait(who, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
            fakes[who].config.start = start;
            prepare_modules();
            shared->modules[who].check = WB_FATAL;
            run_with(0, -1);
            assert_exit(EX_CONFIG);
            assert_lines("handler module \"bank.so\": told to fail in check", 1);
            assert_lines("waits", 0);
            assert_int_equal(shared->modules[who].checked, 1);
            assert_int_equal(fakes[0].opened + fakes[1].opened, 0);
            assert_int_equal(shared->modules[0].opened + shared->modules[1].opened, 0);
        }
    }
}

/* Its servers came, but not what its module needs: it waits on, and its neighbour runs. */
static void test_wait_for_a_module(void **state)
{
    static const int results[] = { WB_NOT_CONNECTED, WB_RETRY };
    (void)state;
    for (size_t who = 0; who < ENDPOINTS; who++) {
        prepare_to_wait(who, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
        prepare_modules();
        shared->modules[who].open = results[who];
        run_with(0, -1);
        wait_for_lines("\"endpoint waits for its servers to start\"", 1);
        fakes[who].fatal = 0;
        wait_for_lines("\"endpoint waits for its modules to open\"", 1); /* at once, though it waits for long */
        wait_until(shared->modules[who].opened >= 2);
        assert_lines("endpoint waits for its modules to open", 1);
        assert_int_equal(fakes[who].opened, 0);
        wait_for_work(&fakes[1 - who]);
        shared->modules[who].open = WB_OK;
        wait_for_work(&fakes[who]);
        assert_int_equal(shared->modules[who].checked, 1);
        assert_between(assert_stop(EX_OK), 0, SOON);
        assert_int_equal(shared->modules[0].closed, 1);
        assert_int_equal(shared->modules[1].closed, 1);
    }
}

/* All wait: each is known to open before one of them handles a message. */
static void test_wait_for_no_module(void **state)
{
    (void)state;
    for (size_t who = 0; who < ENDPOINTS; who++) {
        prepare_to_wait(0, 0, 0);
        fakes[1].config.start = WB_START_WAIT;
        prepare_modules();
        shared->modules[who].open = WB_FATAL;
        run_with(0, -1);
        assert_exit(EX_CONFIG);
        assert_lines("told to fail in open", 1);
        assert_int_equal(fakes[0].opened + fakes[1].opened, 0);
        assert_int_equal(shared->modules[1 - who].closed, shared->modules[1 - who].opened);
    }
}

/* ---- stop --------------------------------------------------------------------------------- */

static void test_stop(void **state)
{
    (void)state;
    prepare(3, 1);
    run();
    assert_between(assert_stop(EX_OK), 0, SOON);
    assert_lines("shutdown_timeout", 0);
}

static void test_hanging_worker(void **state)
{
    (void)state;
    prepare(2, 1);
    fakes[1].config.shutdown_timeout = 500 * WB_MILLISECOND;
    run();
    fakes[1].hangs_in = 2;
    fakes[1].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    /* its own time counts, and not the 30 s of its neighbour, who has ended */
    assert_between(assert_stop(EX_TEMPFAIL), 450, SOON);
    assert_lines("reason=shutdown_timeout", 1);
}

/* The one with more time gets it. */
static void test_longest_time_counts(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[0].config.shutdown_timeout = 100 * WB_MILLISECOND;
    fakes[1].config.shutdown_timeout = 900 * WB_MILLISECOND;
    run();
    fakes[0].hangs = fakes[1].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    assert_between(assert_stop(EX_TEMPFAIL), 850, SOON);
}

static void test_second_signal(void **state)
{
    (void)state;
    prepare(1, 0);
    run();
    fakes[0].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    (void)kill(host, SIGTERM);
    wb_clock_pause(400 * WB_MILLISECOND, NULL);
    assert_int_equal(waitpid(host, NULL, WNOHANG), 0);
    (void)kill(host, SIGINT);
    assert_between(assert_exit(EX_TEMPFAIL), 0, SOON);
    assert_lines("reason=\"second signal\"", 1);
}

/* Nobody takes another message when the process is to end for a handler that hangs. */
static void test_overdue(void **state)
{
    (void)state;
    prepare(2, 0);
    run();
    shared->is_overdue = 1;
    assert_between(assert_exit(EX_SOFTWARE), 0, SOON);
    shared->is_overdue = 0;
    assert_int_equal(fakes[0].sessions + fakes[1].sessions, 0);
}

/* Nor does a stop take that for something to wait for until its own time is over. */
static void test_overdue_while_stopping(void **state)
{
    (void)state;
    prepare(1, 0);
    run();
    fakes[0].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    (void)kill(host, SIGTERM);
    wait_for_lines("stops: finishing what is in flight", 1);
    wb_clock_pause(100 * WB_MILLISECOND, NULL);
    assert_int_equal(waitpid(host, NULL, WNOHANG), 0);
    shared->is_overdue = 1;
    assert_between(assert_exit(EX_SOFTWARE), 0, SOON);
    shared->is_overdue = 0;
    assert_lines("ends for a handler that does not return", 1);
}

static void test_hanging_housekeeper(void **state)
{
    (void)state;
    prepare(1, 1);
    fakes[0].config.shutdown_timeout = fakes[1].config.shutdown_timeout = 500 * WB_MILLISECOND;
    run();
    fakes[1].storage_hangs = 1;
    int opened = fakes[1].storage_opened;
    wait_until(fakes[1].storage_opened != opened);
    assert_between(assert_stop(EX_TEMPFAIL), 450, SOON);
}

/* No work is in flight any more, but a plugin does not let go. */
static void test_hanging_destroy(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[0].config.shutdown_timeout = fakes[1].config.shutdown_timeout = 200 * WB_MILLISECOND;
    fakes[0].hangs = FAKE_DESTROY;
    run();
    assert_between(assert_stop(EX_TEMPFAIL), 900, SOON);
}

/* ---- endpoints that give up --------------------------------------------------------------- */

static void test_restart(void **state)
{
    (void)state;
    prepare(2, 1);
    run();
    fakes[0].fatal = FAKE_RECEIVE;
    int64_t start = wb_clock_monotonic();
    wait_for_lines("endpoint is started again", 2);
    assert_between((wb_clock_monotonic() - start) / WB_MILLISECOND, 2900, 6000); /* 1 s, 2 s */
    assert_lines("\"endpoint is started again\" endpoint=orders workers=2 reason=\"told to fail in receive\" pause=1s", 1);
    assert_lines("pause=1s", 2); /* one when it gave up, one when it was started again */
    assert_lines("pause=2s", 2);
    wait_for_work(&fakes[1]); /* goes on */
    fakes[0].fatal = 0;
    wait_for_work(&fakes[0]);
    assert_stop(72); /* it has not run for as long as it had paused */
    assert_lines("waybill: endpoint \"orders\": told to fail in receive", 1);
}

static void test_restart_made_good(void **state)
{
    (void)state;
    prepare(2, 0);
    run();
    fakes[0].fatal_in = 1;
    fakes[0].fatal = FAKE_RECEIVE;
    wait_for_lines("worker gives up", 1);
    wait_until(fakes[0].opened == 2); /* the second may have waited for the first */
    wait_for_lines("endpoint is started again", 1);
    assert_lines("workers=1 reason=\"told to fail in receive\" pause=1s", 2);
    wb_clock_pause(1500 * WB_MILLISECOND, NULL);
    assert_int_equal(fakes[0].opened, 3); /* the other one was left alone */
    assert_lines("endpoint is well again", 1);
    assert_stop(EX_OK);
}

/* What verify finds costs no message a delivery: no session is opened before it is content. */
static void test_restart_verifies_first(void **state)
{
    (void)state;
    prepare(2, 1);
    run();
    fakes[0].fatal = FAKE_RECEIVE | FAKE_VERIFY;
    wait_for_lines("\"endpoint gave up and is started again after a pause\" endpoint=orders workers=2 "
                   "reason=\"told to fail in verify\" pause=2s", 1);
    assert_int_equal(fakes[0].opened, 2);
    wait_for_work(&fakes[1]);
    fakes[0].fatal = 0;
    wait_for_lines("endpoint is started again\"", 2);
    wait_until(fakes[0].opened == 4);
    wb_clock_pause(2200 * WB_MILLISECOND, NULL);
    assert_stop(EX_OK);
}

/* One that gave up is tried, and its server does not answer. */
static void run_until_a_trial_hangs(void)
{
    run();
    fakes[0].hangs = FAKE_VERIFY;
    fakes[0].fatal = FAKE_RECEIVE;
    wait_for_lines("endpoint is started again\"", 1);
}

/* That keeps neither the neighbour nor a stop waiting: nothing is in flight there. What it failed with is told, and what is open
 * is closed. */
static void test_restart_hangs(void **state)
{
    (void)state;
    for (int outbox = 0; outbox < 2; outbox++) {
        prepare(1, outbox);
        prepare_modules();
        fakes[1].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
        run_until_a_trial_hangs();
        fakes[1].fatal = FAKE_RECEIVE;
        wait_for_lines("endpoint gave up and stays ended", 1);
        assert_between(assert_stop(72), 0, SOON);
        assert_lines("shutdown_timeout", 0);
        assert_lines("waybill: endpoint \"orders\": told to fail in receive", 1);
        for (size_t i = 0; i < ENDPOINTS; i++)
            assert_int_equal(shared->modules[i].closed, shared->modules[i].opened);
        assert_int_equal(fakes[1].instances, 0);
    }

    prepare(1, 0); /* who does have something in flight has its own time for that */
    fakes[1].config.shutdown_timeout = 900 * WB_MILLISECOND;
    run_until_a_trial_hangs();
    fakes[1].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    assert_between(assert_stop(EX_TEMPFAIL), 850, SOON);

    prepare(1, 0); /* and when it answers in time, nothing is started any more */
    run_until_a_trial_hangs();
    (void)kill(host, SIGTERM);
    wb_clock_pause(200 * WB_MILLISECOND, NULL);
    fakes[0].hangs = 0;
    assert_exit(72);
    assert_int_equal(fakes[0].opened, 1);
}

static void test_stop_in_a_pause(void **state)
{
    (void)state;
    prepare(1, 1);
    run();
    fakes[1].fatal = FAKE_RECEIVE;
    wait_for_lines("endpoint gave up", 1);
    assert_between(assert_stop(72), 0, SOON);
    assert_lines("endpoint is started again ", 0);
}

static void test_exit(void **state)
{
    (void)state;
    prepare(2, 1);
    fakes[0].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
    fakes[1].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
    run();
    fakes[0].fatal_in = 1;
    fakes[0].fatal = FAKE_RECEIVE;
    wait_for_lines("endpoint=orders workers=1 reason=\"told to fail in receive\"", 1);
    wb_clock_pause(1500 * WB_MILLISECOND, NULL);
    assert_int_equal(waitpid(host, NULL, WNOHANG), 0);
    assert_int_equal(fakes[0].sessions, 0); /* the rest of it was stopped, too */
    wait_for_work(&fakes[1]);
    fakes[1].fatal = FAKE_RECEIVE; /* nobody is left */
    assert_exit(72);
    assert_lines("waybill: endpoint \"orders\": told to fail in receive", 1);
    assert_lines("waybill: endpoint \"billing\": told to fail in receive", 1);
    assert_lines("started again", 0);
}

/* Whoever failed first says how it ends, whatever the order in the file. */
static void test_exit_of_the_first(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[0].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
    fakes[1].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
    fakes[1].cause = WB_CAUSE_CONFIG;
    run();
    fakes[1].fatal = FAKE_RECEIVE;
    wait_for_lines("endpoint gave up and stays ended", 1);
    fakes[0].fatal = FAKE_RECEIVE;
    assert_exit(EX_CONFIG);
}

/* A neighbour that was told to exit does not end one that is to be started again. */
static void test_exit_beside_restart(void **state)
{
    (void)state;
    prepare(1, 0);
    fakes[0].config.on_endpoint_failure = WB_ON_FAILURE_EXIT;
    run();
    fakes[0].fatal = fakes[1].fatal = FAKE_RECEIVE;
    wait_for_lines("endpoint gave up and stays ended", 1);
    wait_for_lines("endpoint is started again", 1);
    fakes[1].fatal = 0;
    wait_for_work(&fakes[1]);
    wb_clock_pause(1300 * WB_MILLISECOND, NULL);
    assert_stop(72); /* for the first one; the other one runs */
    assert_lines("waybill: endpoint \"orders\": ", 1);
    assert_lines("waybill: endpoint \"billing\": ", 0);
}

/* One whose handler hangs while the rest gave up: it is not waited for, the others are replaced. */
static void test_restart_beside_hanging(void **state)
{
    (void)state;
    prepare(2, 0);
    fakes[0].config.shutdown_timeout = 300 * WB_MILLISECOND;
    run();
    fakes[0].hangs_in = 1;
    fakes[0].hangs = FAKE_RECEIVE;
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    fakes[0].fatal_in = 2;
    fakes[0].fatal = FAKE_RECEIVE;
    wait_for_lines("worker gives up", 1);
    fakes[0].fatal = 0;
    int opened = fakes[0].opened;
    wait_for_lines("endpoint is started again", 1);
    wait_until(fakes[0].opened != opened);
    assert_between(assert_stop(EX_TEMPFAIL), 250, SOON);
}

/* After a test that failed. */
/* ---- drain ------------------------------------------------------------------------------------ */

static void test_drain(void **state)
{
    (void)state;
    for (int outbox = 0; outbox < 2; outbox++) {
        prepare(1, outbox);
        drain_idle = 400 * WB_MILLISECOND;
        run_with(0, -1);
        assert_between(assert_exit(EX_OK), 400, SOON);
        assert_lines("drained: nothing is left to handle", 1);
        assert_true(fakes[0].received && fakes[1].received);
    }
}

/* One that does not run may have messages. */
static void test_drain_in_time(void **state)
{
    (void)state;
    prepare_to_wait(1, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    drain_idle = 200 * WB_MILLISECOND;
    drain_patience = 1500 * WB_MILLISECOND;
    run_with(0, -1);
    assert_between(assert_exit(EX_TEMPFAIL), 1400, SOON);
    assert_lines("waybill: not drained in time: endpoint \"billing\": it does not run", 1);

    prepare(1, 1);
    drain_idle = 60 * WB_SECOND;
    drain_patience = 3500 * WB_MILLISECOND; /* so that a start may take 2.5 s of it */
    run_with(0, -1);
    assert_between(assert_exit(EX_TEMPFAIL), 3400, SOON);
    assert_int_equal(count_seconds("waybill: not drained in time: nothing was left to handle, for ", 1, SOON / 1000), 1);
    assert_lines(" s of 60.0 (--idle)", 1);

    drain_idle = 200 * WB_MILLISECOND;
    prepare_to_wait(1, FAKE_VERIFY, WB_CAUSE_UNREACHABLE); /* it comes */
    drain_patience = 0;
    run_with(0, -1);
    wait_for_lines("waits for its servers to start", 1);
    fakes[1].fatal = 0;
    assert_exit(EX_OK);
    assert_true(fakes[1].received);
}

/* The housekeeper's rounds hang, too, and a stop waits for those. */
static void run_and_ask(void)
{
    prepare(1, 1);
    run();
    for (size_t i = 0; i < ENDPOINTS; i++)
        wait_until(fakes[i].storage_opened >= 2); /* by its worker and its housekeeper */
    fakes[0].storage_hangs = 1;
    wb_clock_pause(2 * drain_idle, NULL);
}

/* Its answer is waited for beside the main thread, which has signals to answer, and a watchdog to feed. */
static void test_drain_of_a_database_that_hangs(void **state)
{
    (void)state;
    drain_idle = 600 * WB_MILLISECOND;
    drain_patience = 2500 * WB_MILLISECOND;
    run_and_ask();
    (void)kill(host, SIGUSR1);
    wait_for_lines("since the start", ENDPOINTS);
    wait_for_lines("waybill: not drained in time: endpoint \"orders\": its database does not tell what is left", 1);
    fakes[0].storage_hangs = 0;
    assert_exit(EX_TEMPFAIL);

    drain_patience = 0;
    run_and_ask();
    fakes[0].storage_hangs = 0; /* it answers again */
    assert_exit(EX_OK);
    assert_lines("drained: nothing is left to handle", 1);
}

/* What others receive from a queue is not handled as long as it is there. */
static void test_drain_of_a_queue_of_others(void **state)
{
    (void)state;
    prepare(1, 0);
    drain_idle = 200 * WB_MILLISECOND;
    fakes[1].waiting = 2;
    run_with(0, -1);
    wait_for_lines("msg=\"not drained yet\" reason=\"endpoint \\\"billing\\\": 2 messages wait in its queue, and this instance gets none of them\"", 1);
    wb_clock_pause(WB_SECOND, NULL);
    fakes[1].waiting = 0;
    assert_exit(EX_OK);
    assert_lines("not drained yet", 1);
}

/* At a time of the test's, until servers have answered. */
static int drain_at(cli_drain *drain, cli_hosted *one, int64_t seconds)
{
    char text[100];
    if (drain->question)
        wait_until(cli_question_is_answered(drain->question, text, sizeof text));
    return cli_drain_look(drain, one, 1, seconds * WB_SECOND);
}

/* What was counted before somebody was at work again says nothing of what he left. */
static void test_drain_counts_anew(void **state)
{
    cli_drain drain = { .idle = 5 * WB_SECOND };
    cli_hosted one = { .setup = &setups[0] };
    (void)state;
    prepare(1, 0);
    assert_int_equal(wb_endpoint_create(one.setup, &one.endpoint, &one.failure), WB_OK);
    wb_log_set_level(WB_LOG_ERROR);
    cli_drain_begin(&drain, 100 * WB_SECOND);
    empty_since = 101 * WB_SECOND;
    assert_int_equal(drain_at(&drain, &one, 110), -1); /* asks */
    empty_since = 111 * WB_SECOND;
    assert_int_equal(drain_at(&drain, &one, 120), -1);
    assert_null(drain.question);
    fakes[0].waiting = 1;
    assert_int_equal(drain_at(&drain, &one, 121), -1); /* asks again */
    assert_int_equal(drain_at(&drain, &one, 122), -1);
    assert_non_null(strstr(drain.left, "1 message waits in its queue"));
    fakes[0].waiting = 0;
    assert_int_equal(drain_at(&drain, &one, 130), -1);
    assert_int_equal(drain_at(&drain, &one, 131), EX_OK);
    wb_log_set_level(WB_LOG_INFO);
    empty_since = 0;
    wb_endpoint_destroy(one.endpoint);
    wb_endpoint_destroy(one.probe);
    assert_int_equal(fakes[0].instances, 0);
}

static void assert_stopped_drain(int code, const char *line)
{
    run_with(0, -1);
    for (size_t i = 0; i < ENDPOINTS; i++)
        wait_until(fakes[i].received);
    assert_between(assert_stop(code), 0, SOON);
    assert_lines(line, 1);
}

/* Whoever stops it learns whether anything is left. */
static void test_stop_of_a_drain(void **state)
{
    (void)state;
    drain_idle = 3600 * WB_SECOND;
    prepare(1, 1);
    assert_stopped_drain(EX_OK, "drained: nothing is left to handle");
    prepare(1, 0);
    fakes[0].waiting = 1;
    assert_stopped_drain(EX_TEMPFAIL, "waybill: stopped before all was drained: endpoint \"orders\": 1 message waits in its queue\n");
    prepare(1, 0);
    fakes[1].hangs = FAKE_DEPTH;
    assert_stopped_drain(EX_TEMPFAIL, "waybill: stopped before all was drained: endpoint \"billing\": its broker does not tell what waits");

    prepare_to_wait(1, FAKE_VERIFY, WB_CAUSE_UNREACHABLE);
    run_with(0, -1);
    wait_for_lines("waits for its servers to start", 1);
    assert_stop(EX_TEMPFAIL);
    assert_lines("waybill: stopped before all was drained: endpoint \"billing\": it waits for its servers", 1);
}

/* What is mended before it ends is no failure. */
static void test_drain_of_what_was_mended(void **state)
{
    (void)state;
    prepare(1, 0);
    drain_idle = 200 * WB_MILLISECOND;
    fakes[1].fatal = FAKE_RECEIVE;
    run_with(0, -1);
    wait_for_lines("endpoint gave up and is started again after a pause", 2);
    fakes[1].fatal = 0;
    assert_exit(EX_OK);
    assert_lines("endpoint is well again", 1);
    assert_lines("waybill: ", 0);
}

/* A session that cannot for now is kept for a while: what it holds would come back, counted. */
static void test_receive_later(void **state)
{
    (void)state;
    prepare(1, 0);
    drain_idle = 200 * WB_MILLISECOND;
    fakes[1].is_full = 1;
    run_with(0, -1);
    wait_for_lines("msg=\"cannot go on and tries again\" endpoint=billing worker=0 class=retry reason=\"told to be full\"", 1);
    fakes[1].is_full = 500; /* as long as a receive takes that hears nothing */
    wb_clock_pause(2 * WB_SECOND, NULL);
    assert_int_equal(fakes[1].opened, 1);
    assert_lines("drained", 0);
    wait_until(fakes[1].opened == 2);
    fakes[1].is_full = 0;
    assert_exit(EX_OK);
    assert_lines("msg=\"at work again\" endpoint=billing", 1);
}

static int kill_host(void **state)
{
    drain_idle = drain_patience = empty_since = 0;
    shared->is_overdue = 0;
    (void)state;
    if (host > 0 && kill(host, SIGKILL) == 0)
        (void)waitpid(host, NULL, 0);
    host = 0;
    return 0;
}

static int share(void **state)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -1;
    fakes = shared->fakes;
    fake_no_threads = &shared->no_threads;
    return conf_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_failed_start, kill_host),
        cmocka_unit_test_teardown(test_all_that_cannot_start, kill_host),
        cmocka_unit_test_teardown(test_threads_that_cannot_start, kill_host),
        cmocka_unit_test_teardown(test_limit_too_low, kill_host),
        cmocka_unit_test_teardown(test_stop_while_starting, kill_host),
        cmocka_unit_test_teardown(test_wait, kill_host),
        cmocka_unit_test_teardown(test_wait_for_a_thread, kill_host),
        cmocka_unit_test_teardown(test_all_wait, kill_host),
        cmocka_unit_test_teardown(test_wait_to_install, kill_host),
        cmocka_unit_test_teardown(test_wait_for_nothing, kill_host),
        cmocka_unit_test_teardown(test_wait_and_doubt, kill_host),
        cmocka_unit_test_teardown(test_doubt_begins_anew, kill_host),
        cmocka_unit_test_teardown(test_stop_while_waiting, kill_host),
        cmocka_unit_test_teardown(test_wait_to_send, kill_host),
        cmocka_unit_test_teardown(test_settings_come_first, kill_host),
        cmocka_unit_test_teardown(test_wait_for_a_module, kill_host),
        cmocka_unit_test_teardown(test_wait_for_no_module, kill_host),
        cmocka_unit_test_teardown(test_stop, kill_host),
        cmocka_unit_test_teardown(test_hanging_worker, kill_host),
        cmocka_unit_test_teardown(test_longest_time_counts, kill_host),
        cmocka_unit_test_teardown(test_second_signal, kill_host),
        cmocka_unit_test_teardown(test_overdue, kill_host),
        cmocka_unit_test_teardown(test_overdue_while_stopping, kill_host),
        cmocka_unit_test_teardown(test_hanging_housekeeper, kill_host),
        cmocka_unit_test_teardown(test_hanging_destroy, kill_host),
        cmocka_unit_test_teardown(test_restart, kill_host),
        cmocka_unit_test_teardown(test_restart_made_good, kill_host),
        cmocka_unit_test_teardown(test_restart_verifies_first, kill_host),
        cmocka_unit_test_teardown(test_restart_hangs, kill_host),
        cmocka_unit_test_teardown(test_stop_in_a_pause, kill_host),
        cmocka_unit_test_teardown(test_exit, kill_host),
        cmocka_unit_test_teardown(test_exit_of_the_first, kill_host),
        cmocka_unit_test_teardown(test_exit_beside_restart, kill_host),
        cmocka_unit_test_teardown(test_restart_beside_hanging, kill_host),
        cmocka_unit_test_teardown(test_drain, kill_host),
        cmocka_unit_test_teardown(test_drain_in_time, kill_host),
        cmocka_unit_test_teardown(test_drain_of_a_database_that_hangs, kill_host),
        cmocka_unit_test_teardown(test_drain_of_a_queue_of_others, kill_host),
        cmocka_unit_test_teardown(test_drain_counts_anew, kill_host),
        cmocka_unit_test_teardown(test_stop_of_a_drain, kill_host),
        cmocka_unit_test_teardown(test_drain_of_what_was_mended, kill_host),
        cmocka_unit_test_teardown(test_receive_later, kill_host),
    };
    return cmocka_run_group_tests_name("host", tests, share, conf_teardown);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * How an endpoint is, and what a service manager is told of it: the datagrams themselves, on
 * sockets of the test's own.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/cli/pulse.h"
#include "core/base/log.h"
#include "core/endpoint/gauge.h"
#include "core/endpoint/restart.h"
#include "core/message/ids.h"
#include "tests/unit/fake_plugins.h"

/* ---- judging ---------------------------------------------------------------------------- */

static void assert_judged(const wb_health_facts *facts, int state, const char *reason)
{
    const char *found = "unset";
    assert_int_equal(wb_health_judge(facts, &found), state);
    if (reason)
        assert_string_equal(found, reason);
    else
        assert_null(found);
    assert_int_equal(wb_health_judge(facts, NULL), state);
}

static void test_states(void **state)
{
    (void)state;
    assert_judged(&(wb_health_facts){ 0 }, WB_HEALTH_RUNNING, NULL);
    assert_judged(&(wb_health_facts){ .is_starting = 1, .broker_is_away = 1 }, WB_HEALTH_STARTING, NULL);
    assert_judged(&(wb_health_facts){ .is_stopping = 1, .is_starting = 1, .gave_up = 1 }, WB_HEALTH_STOPPING, NULL);
    assert_judged(&(wb_health_facts){ .broker_is_away = 1 }, WB_HEALTH_DEGRADED, "the broker is away");
    assert_judged(&(wb_health_facts){ .database_is_away = 1, .troubled = 2 }, WB_HEALTH_DEGRADED, "the database is away");
    assert_judged(&(wb_health_facts){ .store_is_away = 1, .troubled = 2 }, WB_HEALTH_DEGRADED,
                  "the deduplication store is away");
    assert_judged(&(wb_health_facts){ .broker_is_away = 1, .database_is_away = 1 }, WB_HEALTH_DEGRADED,
                  "the broker and the database are away");
    assert_judged(&(wb_health_facts){ .gave_up = 1, .broker_is_away = 1 }, WB_HEALTH_DEGRADED, "workers gave up");
    assert_judged(&(wb_health_facts){ .gave_up = 1, .stuck = 1 }, WB_HEALTH_DEGRADED, "workers gave up");
    assert_judged(&(wb_health_facts){ .database_is_away = 1, .stuck = 1 }, WB_HEALTH_DEGRADED,
                  "the database is away");
    assert_judged(&(wb_health_facts){ .is_limited = 1, .stuck = 1 }, WB_HEALTH_DEGRADED, "a handler takes too long");
    assert_judged(&(wb_health_facts){ .stuck = 1, .troubled = 1 }, WB_HEALTH_DEGRADED, "a handler takes too long");
    assert_judged(&(wb_health_facts){ .is_limited = 1, .troubled = 1 }, WB_HEALTH_DEGRADED,
                  "attempts fail in a row and are made one at a time");
    assert_judged(&(wb_health_facts){ .troubled = 1 }, WB_HEALTH_DEGRADED, "a worker cannot go on and tries again");
    assert_judged(&(wb_health_facts){ .late = "operations stay pending: 1 parked" }, WB_HEALTH_DEGRADED,
                  "operations stay pending: 1 parked");
    assert_judged(&(wb_health_facts){ .late = "operations stay pending", .broker_is_away = 1 }, WB_HEALTH_DEGRADED,
                  "the broker is away");
    assert_string_equal(wb_health_name(WB_HEALTH_RUNNING), "running");
    assert_string_equal(wb_health_name(WB_HEALTH_DEGRADED), "degraded");
    assert_string_equal(wb_health_name(WB_HEALTH_STARTING), "starting");
    assert_string_equal(wb_health_name(WB_HEALTH_STOPPING), "stopping");
}

/* ---- what stays pending ----------------------------------------------------------------- */

static char told[1000];
static unsigned lines;

static void write_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)size;
    (void)snprintf(told, sizeof told, "%d %s", level, line);
    lines++;
}

/* One parked row, of which a head is asked for. */
static int list_parked(wb_storage_session *session, const wb_pending_filter *filter, wb_pending_fn visit,
                       void *argument, wb_error *error)
{
    wb_buffer buffer = { 0 };
    const wb_parked parked = { 3, "no queue \"nowhere\"", "operations", 10 };
    (void)session, (void)error;
    wb_parked_encode(&buffer, &parked);
    const wb_pending row = { sizeof row, filter->after + 1, buffer.data, buffer.size < filter->head ? buffer.size : filter->head };
    int r = visit(argument, &row);
    wb_buffer_free(&buffer);
    return r;
}

static wb_backlog backlog_of(size_t rows, int64_t age, size_t parked, uint32_t tries)
{
    return (wb_backlog){ .rows = { rows, parked }, .tries = tries, .most_tried = parked ? 7 : 0,
                         .oldest = rows ? wb_batch_number_at(wb_clock_wall() - age) : 0 };
}

static void assert_gauged(wb_gauge *g, wb_backlog b, unsigned more_lines, const char *line, const char *words)
{
    const wb_persistence_ops ops = { .struct_size = sizeof ops, .list_pending = list_parked };
    const wb_pipeline p = { .endpoint = "shop", .sweep_after = 60 * WB_SECOND, .persistence_ops = &ops };
    char text[120];
    unsigned before = lines;
    wb_gauge_take(g, &p, NULL, &b, 60 * WB_SECOND, "the broker is away");
    assert_int_equal(lines - before, more_lines);
    if (line)
        assert_non_null(strstr(told, line));
    wb_gauge_describe(g, text, sizeof text);
    assert_string_equal(text, words);
}

static void test_backlog_is_late(void **state)
{
    wb_gauge g = { 0 };
    char text[40];
    (void)state;
    wb_log_set_writer(write_line, NULL);
    assert_false(atomic_load(&g.is_known));
    assert_gauged(&g, backlog_of(0, 0, 0, 0), 0, NULL, "");
    assert_true(atomic_load(&g.is_known));
    assert_gauged(&g, backlog_of(5, 230 * WB_SECOND, 1, 2), 0, NULL, "");
    assert_gauged(&g, backlog_of(5, 250 * WB_SECOND, 0, 0), 1, "reason=\"the broker is away\"",
                  "operations stay pending: 5 rows, the oldest for 4 min");
    assert_non_null(strstr(told, "endpoint=shop rows=5 oldest_seconds=250 parked=0"));
    assert_int_equal(told[0], '0' + WB_LOG_WARNING);
    assert_gauged(&g, backlog_of(6, 310 * WB_SECOND, 1, 3), 0, NULL,
                  "operations stay pending: 6 rows, the oldest for 5 min, and 1 parked");
    wb_gauge_describe(&g, text, sizeof text); /* cut, and not beyond */
    assert_string_equal(text, "operations stay pending: 6 rows, the ol");
    assert_gauged(&g, backlog_of(0, 0, 1, 1), 0, NULL, "operations stay pending: 1 parked");
    assert_gauged(&g, backlog_of(1, WB_SECOND, 0, 0), 1, "do not stay pending any more", "");
    assert_int_equal(told[0], '0' + WB_LOG_INFO);
    assert_gauged(&g, backlog_of(0, 0, 0, 0), 0, NULL, "");
    assert_gauged(&g, backlog_of(0, 0, 4, 3), 1, "reason=\"no queue \\\"nowhere\\\"\"", "operations stay pending: 4 parked");
    assert_gauged(&g, backlog_of(0, 0, 0, 0), 1, NULL, "");
    wb_log_set_writer(NULL, NULL);
}

static wb_pending_filter asked;

static int note_filter(wb_storage_session *session, const wb_pending_filter *filter, wb_pending_fn visit,
                       void *argument, wb_error *error)
{
    (void)session, (void)visit, (void)argument, (void)error;
    asked = *filter;
    return WB_OK;
}

/* Who counts up to a limit does not look through again what was dear to look through. */
static void test_backlog_passes_what_is_empty(void **state)
{
    const wb_persistence_ops ops = { .struct_size = sizeof ops, .list_pending = note_filter };
    const wb_pipeline p = { .endpoint = "shop", .persistence_ops = &ops };
    wb_backlog backlog;
    wb_error error;
    (void)state;
    assert_int_equal(wb_backlog_look(&p, NULL, 77, 1000, &backlog, &error), WB_OK);
    assert_int_equal(asked.flags, WB_PENDING_PASS_EMPTY);
    assert_int_equal(asked.limit, 1001);
    assert_int_equal(asked.before, 77);
    assert_int_equal(wb_backlog_look(&p, NULL, UINT64_MAX, 0, &backlog, &error), WB_OK);
    assert_int_equal(asked.flags, 0);
    assert_int_equal(asked.limit, 0);
}

/* ---- when it is started again --------------------------------------------------------------- */

static void test_pauses_of_restarts(void **state)
{
    wb_restart restart = { 0 };
    int64_t now = 1000 * WB_SECOND;
    (void)state;
    wb_restart_started(&restart, now);
    for (int64_t pause = WB_RESTART_PAUSE_MIN; pause < WB_RESTART_PAUSE_MAX; pause *= 2) {
        assert_int_equal(wb_restart_plan(&restart, now), pause);
        assert_true(wb_restart_is_planned(&restart));
        assert_false(wb_restart_is_due(&restart, now + pause - 1));
        assert_true(wb_restart_is_due(&restart, now + pause));
        assert_false(wb_restart_is_proven(&restart, now + 2 * pause));
        now += pause;
        wb_restart_started(&restart, now);
        assert_false(wb_restart_is_planned(&restart));
        assert_false(wb_restart_is_proven(&restart, now + pause - 1));
        assert_true(wb_restart_is_proven(&restart, now + pause));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(wb_restart_plan(&restart, now + i), WB_RESTART_PAUSE_MAX);
    /* it ran well for a while */
    wb_restart_started(&restart, now);
    assert_int_equal(wb_restart_plan(&restart, now + WB_RESTART_RAN_WELL - 1), WB_RESTART_PAUSE_MAX);
    wb_restart_started(&restart, now);
    now += WB_RESTART_RAN_WELL;
    assert_int_equal(wb_restart_plan(&restart, now), WB_RESTART_PAUSE_MIN);
    /* then it could not be started */
    for (int64_t pause = WB_RESTART_PAUSE_MIN; pause < WB_RESTART_PAUSE_MAX; pause *= 2) {
        now += pause;
        assert_true(wb_restart_is_due(&restart, now));
        assert_int_equal(wb_restart_plan(&restart, now), 2 * pause < WB_RESTART_PAUSE_MAX ? 2 * pause : WB_RESTART_PAUSE_MAX);
    }
    assert_int_equal(wb_restart_plan(&restart, now + WB_RESTART_PAUSE_MAX), WB_RESTART_PAUSE_MAX);
}

/* ---- the protocol ------------------------------------------------------------------------ */

static int manager = -1;

/* Listen there, and say so in the environment. */
static void listen_at(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t size = strlen(name);
    memcpy(address.sun_path, name, size);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else
        (void)unlink(name);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)), 0);
    (void)setenv("NOTIFY_SOCKET", name, 1);
}

static const char *path_of_socket(void)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/notify", conf_directory);
    return path;
}

static void listen_anywhere(void) { listen_at(path_of_socket()); }

/* The next datagram, or NULL when there is none. */
static const char *next(void)
{
    static char text[1000];
    ssize_t size = recv(manager, text, sizeof text - 1, MSG_DONTWAIT);
    text[size < 0 ? 0 : size] = '\0';
    return size < 0 ? NULL : text;
}

static void assert_told(const char *expected)
{
    const char *text = next();
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void assert_silent(void)
{
    const char *text = next();
    if (text)
        fail_msg("told \"%s\"", text);
}

static int forget_manager(void **state)
{
    (void)state;
    if (manager >= 0)
        (void)close(manager);
    manager = -1;
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return 0;
}

static void test_sockets(void **state)
{
    char abstract[64];
    cli_notify notify;
    (void)state;
    listen_anywhere();
    cli_notify_open(&notify);
    cli_notify_send(&notify, "READY=1");
    assert_told("READY=1");
    cli_notify_close(&notify);
    cli_notify_send(&notify, "READY=1");
    assert_silent();
    (void)forget_manager(NULL);

    (void)snprintf(abstract, sizeof abstract, "@waybill-test/%ld", (long)getpid());
    listen_at(abstract);
    cli_notify_open(&notify);
    cli_notify_send(&notify, "STATUS=abstract");
    assert_told("STATUS=abstract");
    cli_notify_close(&notify);
}

/* Nobody listens, or nobody can: no failure, and nobody waits. */
static void test_no_manager(void **state)
{
    static const char *const names[] = { "", "/", "relative", "vsock:2:1", "/nowhere/at/all" };
    char much[300];
    cli_notify notify;
    (void)state;
    cli_notify_open(&notify);
    assert_int_equal(notify.socket, -1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)setenv("NOTIFY_SOCKET", names[i], 1);
        cli_notify_open(&notify);
        assert_int_equal(notify.socket >= 0, i == 4);
        cli_notify_send(&notify, "READY=1");
        cli_notify_close(&notify);
    }
    memset(much, 'x', sizeof much - 1);
    much[0] = '/';
    much[sizeof much - 1] = '\0';
    (void)setenv("NOTIFY_SOCKET", much, 1);
    cli_notify_open(&notify);
    assert_int_equal(notify.socket, -1);
}

static int64_t watchdog_with(const char *microseconds, const char *pid)
{
    cli_notify notify;
    (void)setenv("WATCHDOG_USEC", microseconds, 1);
    if (pid)
        (void)setenv("WATCHDOG_PID", pid, 1);
    else
        (void)unsetenv("WATCHDOG_PID");
    cli_notify_open(&notify);
    cli_notify_close(&notify);
    return notify.watchdog;
}

static void test_whose_watchdog(void **state)
{
    char mine[24];
    (void)state;
    listen_anywhere();
    (void)snprintf(mine, sizeof mine, "%ld", (long)getpid());
    assert_int_equal(watchdog_with("30000000", NULL), 30 * WB_SECOND);
    assert_int_equal(watchdog_with("30000000", mine), 30 * WB_SECOND);
    assert_int_equal(watchdog_with("30000000", "1"), 0);
    assert_int_equal(watchdog_with("30000000", "x"), 0);
    assert_int_equal(watchdog_with("", NULL), 0);
    assert_int_equal(watchdog_with("0", NULL), 0);
    assert_int_equal(watchdog_with("-5", NULL), 0);
    assert_int_equal(watchdog_with("30s", NULL), 0);
    assert_int_equal(watchdog_with("99999999999999999999", NULL), 0);
    assert_int_equal(watchdog_with("18446744073709551", NULL), 0); /* too long for our clock */
}

/* ---- the pulse ---------------------------------------------------------------------------- */

static fake fakes[2];
static wb_endpoint_setup setups[2];
static cli_hosted hosted[2];
static unsigned stuck[2]; /* workers of theirs */

void __real_wb_endpoint_facts(wb_endpoint *endpoint, wb_health_facts *ret_facts);
void __wrap_wb_endpoint_facts(wb_endpoint *endpoint, wb_health_facts *ret_facts);
void __wrap_wb_endpoint_facts(wb_endpoint *endpoint, wb_health_facts *ret_facts)
{
    __real_wb_endpoint_facts(endpoint, ret_facts);
    for (size_t i = 0; i < 2; i++)
        if (hosted[i].endpoint == endpoint)
            ret_facts->stuck = stuck[i];
}

static void prepare(void)
{
    memset(hosted, 0, sizeof hosted);
    for (size_t i = 0; i < 2; i++) {
        wb_error error;
        fake_setup(&fakes[i], &setups[i], i ? "billing" : "orders", 1, 0);
        hosted[i].setup = &setups[i];
        assert_int_equal(wb_endpoint_create(&setups[i], &hosted[i].endpoint, &error), WB_OK);
    }
}

static void discard(void)
{
    for (size_t i = 0; i < 2; i++)
        wb_endpoint_destroy(hosted[i].endpoint);
}

static void test_status(void **state)
{
    cli_pulse pulse;
    (void)state;
    prepare();
    listen_anywhere();
    cli_pulse_begin(&pulse);
    cli_pulse_ready(&pulse);
    assert_told("READY=1");
    cli_pulse_look(&pulse, hosted, 2, 0, WB_SECOND);
    assert_told("STATUS=running: orders running, billing running");
    cli_pulse_look(&pulse, hosted, 2, 0, 2 * WB_SECOND); /* no news */
    assert_silent();

    hosted[1].failure = (wb_error){ .result = WB_FATAL };
    cli_pulse_look(&pulse, hosted, 2, 0, 3 * WB_SECOND);
    assert_told("STATUS=degraded: orders running, billing degraded (workers gave up)");
    wb_endpoint_destroy(hosted[0].endpoint);
    hosted[0].endpoint = NULL;
    cli_pulse_look(&pulse, hosted, 2, 0, 4 * WB_SECOND);
    assert_told("STATUS=starting: orders starting, billing degraded (workers gave up)");
    /* what a server says is no assignment of ours */
    hosted[0].wait = (cli_wait){ .tries = 1, .error = { .text = "no\nWATCHDOG=1" } };
    cli_pulse_look(&pulse, hosted, 2, 0, 5 * WB_SECOND);
    assert_told("STATUS=starting: orders starting (no\\nWATCHDOG=1), billing degraded (workers gave up)");

    cli_pulse_look(&pulse, hosted, 2, 1, 6 * WB_SECOND);
    assert_told("STOPPING=1\nSTATUS=stopping: orders stopping, billing stopping");
    cli_pulse_look(&pulse, hosted, 2, 1, 7 * WB_SECOND);
    assert_silent();
    cli_pulse_end(&pulse);
    discard();
}

/* Many endpoints, long reasons: it is cut, and goes out. */
static void test_long_status(void **state)
{
    static cli_hosted many[40];
    cli_pulse pulse;
    (void)state;
    prepare();
    listen_anywhere();
    for (size_t i = 0; i < 40; i++) {
        many[i] = (cli_hosted){ .setup = &setups[0], .wait.tries = 1 };
        memset(many[i].wait.error.text, 'x', 1000);
    }
    cli_pulse_begin(&pulse);
    cli_pulse_look(&pulse, many, 40, 0, WB_SECOND);
    const char *text = next();
    assert_non_null(text);
    assert_int_equal(strncmp(text, "STATUS=starting: orders starting (xxx", 37), 0);
    assert_true(strlen(text) < 620);
    cli_pulse_look(&pulse, many, 40, 0, 2 * WB_SECOND);
    assert_silent();
    cli_pulse_end(&pulse);
    discard();
}

static void test_watchdog(void **state)
{
    cli_pulse pulse;
    (void)state;
    prepare();
    listen_anywhere();
    (void)setenv("WATCHDOG_USEC", "10000000", 1);
    cli_pulse_begin(&pulse);
    cli_pulse_look(&pulse, hosted, 2, 0, 100 * WB_SECOND);
    assert_told("STATUS=running: orders running, billing running");
    assert_told("WATCHDOG=1");
    cli_pulse_look(&pulse, hosted, 2, 0, 104 * WB_SECOND);
    assert_silent();
    cli_pulse_look(&pulse, hosted, 2, 0, 105 * WB_SECOND); /* half of its time */
    assert_told("WATCHDOG=1");
    cli_pulse_look(&pulse, hosted, 2, 1, 109 * WB_SECOND);
    assert_told("STOPPING=1\nSTATUS=stopping: orders stopping, billing stopping");
    assert_silent();
    cli_pulse_look(&pulse, hosted, 2, 1, 110 * WB_SECOND); /* finishing what is in flight is progress */
    assert_told("WATCHDOG=1");
    cli_pulse_end(&pulse);
    discard();
}

/* Whichever endpoint it is: systemd is to start the process anew. */
static void test_hungry_watchdog(void **state)
{
    cli_pulse pulse;
    (void)state;
    prepare();
    listen_anywhere();
    (void)setenv("WATCHDOG_USEC", "10000000", 1);
    cli_pulse_begin(&pulse);
    for (size_t i = 0; i < 2; i++) {
        stuck[i] = 1;
        cli_pulse_look(&pulse, hosted, 2, 0, (100 + 20 * (int64_t)i) * WB_SECOND);
        assert_told(i ? "STATUS=degraded: orders running, billing degraded (a handler takes too long)"
                      : "STATUS=degraded: orders degraded (a handler takes too long), billing running");
        assert_silent();
        stuck[i] = 0;
        cli_pulse_look(&pulse, hosted, 2, 0, (110 + 20 * (int64_t)i) * WB_SECOND);
        assert_told("STATUS=running: orders running, billing running");
        assert_told("WATCHDOG=1");
    }
    cli_pulse_end(&pulse);
    discard();
}

#define CASE(name) cmocka_unit_test_teardown(name, forget_manager)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_states),
        CASE(test_backlog_is_late),
        CASE(test_backlog_passes_what_is_empty),
        CASE(test_pauses_of_restarts),
        CASE(test_sockets),
        CASE(test_no_manager),
        CASE(test_whose_watchdog),
        CASE(test_status),
        CASE(test_long_status),
        CASE(test_watchdog),
        CASE(test_hungry_watchdog),
    };
    return cmocka_run_group_tests_name("health", tests, conf_setup, conf_teardown);
}

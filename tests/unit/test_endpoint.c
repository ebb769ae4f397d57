/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint's life without servers: threads that cannot be started, workers that give up and
 * are replaced, what is waited for at the end; and when an endpoint is started again.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include "core/base/clock.h"
#include "core/base/host.h"
#include "core/endpoint/endpoint.h"
#include "core/endpoint/limits.h"
#include "core/endpoint/rest.h"
#include "core/endpoint/restart.h"
#include "tests/unit/fake_plugins.h"

#define PATIENCE (20 * WB_SECOND)

/* Waits until a condition holds, and fails when it never does. */
#define wait_until(condition)                                                                      \
    do {                                                                                           \
        int64_t end_ = wb_clock_monotonic() + PATIENCE;                                            \
        while (!(condition) && wb_clock_monotonic() < end_)                                        \
            wb_clock_pause(WB_MILLISECOND, NULL);                                                  \
        assert_true(condition);                                                                    \
    } while (0)

static fake f;
static wb_endpoint_setup setup;

static wb_endpoint *make(unsigned workers, int outbox)
{
    wb_endpoint *e = NULL;
    wb_error error;
    fake_setup(&f, &setup, "orders", workers, outbox);
    assert_int_equal(wb_endpoint_create(&setup, &e, &error), WB_OK);
    return e;
}

static wb_endpoint *running(unsigned workers, int outbox)
{
    wb_error error;
    wb_endpoint *e = make(workers, outbox);
    assert_int_equal(wb_endpoint_start(e, &error), WB_OK);
    wait_until(f.opened == (int)workers);
    return e;
}

static void end(wb_endpoint *e, int result)
{
    wb_error error = { 0 };
    wb_endpoint_stop(e);
    wait_until(wb_endpoint_has_ended(e));
    assert_int_equal(wb_endpoint_join(e, &error), result);
    if (result != WB_OK)
        assert_true(*error.text);
    wb_endpoint_destroy(e);
    assert_int_equal(f.sessions, 0);
    assert_int_equal(f.instances, 0);
}

static int64_t limit_with(int64_t timeout, int64_t limit, int is_set)
{
    static wb_conf_origin origins[100];
    wb_endpoint *e = NULL;
    wb_error error;
    for (size_t i = 0; i < 100; i++)
        origins[i] = (wb_conf_origin){ .is_set = is_set };
    fake_setup(&f, &setup, "orders", 1, 0);
    for (size_t section = 0; section < WB_SECTION_COUNT; section++)
        f.config.origins[section] = origins;
    f.config.handler_timeout = timeout;
    f.config.handler_time_limit = limit;
    assert_int_equal(wb_endpoint_create(&setup, &e, &error), WB_OK);
    int64_t result = wb_endpoint_pipeline(e)->handler_time_limit;
    wb_endpoint_destroy(e);
    return result;
}

/* Where the process ends for a handler the watchdog does not end it sooner, unless it is told to. */
static void test_time_limits(void **state)
{
    (void)state;
    assert_int_equal(limit_with(0, 300 * WB_SECOND, 0), 300 * WB_SECOND);
    assert_int_equal(limit_with(900 * WB_SECOND, 300 * WB_SECOND, 0), 900 * WB_SECOND);
    assert_int_equal(limit_with(900 * WB_SECOND, 300 * WB_SECOND, 1), 300 * WB_SECOND);
    assert_int_equal(limit_with(900 * WB_SECOND, 0, 1), 0);
}

static void test_stop(void **state)
{
    (void)state;
    wb_endpoint *e = running(3, 1);
    assert_false(wb_endpoint_has_ended(e));
    end(e, WB_OK);
    end(make(3, 1), WB_OK); /* was never started */
}

/* Whichever thread it is that cannot be started: those that run are stopped. */
static void test_threads_that_cannot_start(void **state)
{
    wb_error error;
    (void)state;
    for (int threads = 0; threads < 4; threads++) {
        wb_endpoint *e = make(3, 1);
        fake_threads = threads;
        assert_int_equal(wb_endpoint_start(e, &error), WB_FATAL);
        fake_threads = -1;
        assert_non_null(strstr(error.text, threads < 3 ? "a worker" : "the housekeeper"));
        end(e, WB_OK);
    }
}

/* A round may take long: nobody joins its thread before it is over. */
static void test_housekeeper_is_waited_for(void **state)
{
    (void)state;
    wb_endpoint *e = running(1, 1);
    wait_until(f.received); /* the worker has its sessions */
    f.storage_hangs = 1;
    int opened = f.storage_opened;
    wait_until(f.storage_opened > opened);
    wb_endpoint_stop(e);
    wait_until(f.sessions == 0); /* the worker has ended */
    wb_clock_pause(20 * WB_MILLISECOND, NULL);
    assert_false(wb_endpoint_has_ended(e));
    f.storage_hangs = 0;
    end(e, WB_OK);
}

/* Its next round may be far away: a stop does not wait for it. */
static void test_idle_housekeeper_is_woken(void **state)
{
    wb_error error;
    (void)state;
    wb_endpoint *e = make(1, 1);
    f.config.outbox.cleanup_interval = 3600 * WB_SECOND;
    assert_int_equal(wb_endpoint_start(e, &error), WB_OK);
    end(e, WB_OK);
}

/* The tables of a processor are the processor's, which makes them, and says how long its records are kept: a send-only
 * endpoint only sweeps there. */
static void test_tables_of_a_processor(void **state)
{
    static const int64_t retentions[] = { 1, WB_SECOND, 7 * 86400 * WB_SECOND };
    wb_error error = { 0 };
    (void)state;
    for (int i = 0; i < 6; i++) {
        const int is_own = i % 2 == 0;
        wb_endpoint *e = make(1, 1);
        setup.plan.send_only = !is_own;
        f.config.outbox.retention = retentions[i / 2];
        assert_int_equal(wb_endpoint_owns_tables(e), is_own);
        f.fatal = FAKE_TABLES;
        assert_int_equal(wb_endpoint_install(e, &error), is_own ? WB_FATAL : WB_OK);
        f.fatal = 0;
        assert_int_equal(wb_endpoint_keep(e, &error), WB_OK);
        wait_until(f.storage_opened >= 3); /* two rounds are over */
        assert_int_equal(f.cleaned > 0, is_own);
        end(e, WB_OK);
    }
}

static uint64_t counted(wb_endpoint *e, wb_tally_kind kind)
{
    wb_counts counts;
    wb_endpoint_counts(e, &counts);
    return counts.of[kind];
}

static void test_worker_gives_up(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = running(3, 1);
    assert_int_equal(wb_endpoint_look(e, &error), WB_OK);
    assert_int_equal(wb_endpoint_missing(e), 0);
    f.fatal_in = 2;
    f.fatal = FAKE_RECEIVE;
    wait_until(wb_endpoint_look(e, &error) == WB_FATAL);
    assert_string_equal(error.text, "told to fail in receive");
    assert_int_equal(error.cause, WB_CAUSE_MISSING);
    assert_int_equal(wb_endpoint_missing(e), 1);
    assert_false(wb_endpoint_has_ended(e));
    assert_int_equal(wb_endpoint_look(e, &error), WB_FATAL); /* until it is made good */

    int opened = f.opened;
    assert_int_equal(wb_endpoint_restart(e), WB_OK);
    assert_int_equal(wb_endpoint_missing(e), 0);
    wait_until(f.opened == opened + 1); /* the others have theirs still */
    wait_until(counted(e, WB_TALLY_OPENED_BROKER) == (uint64_t)f.opened); /* and those that ended have counted */
    assert_int_equal(wb_endpoint_look(e, &error), WB_OK);
    end(e, WB_OK);
}

/* The same where it cannot even open its sessions: somebody must act. */
static void test_open_is_fatal(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = make(2, 0);
    f.fatal = FAKE_OPEN;
    assert_int_equal(wb_endpoint_start(e, &error), WB_OK);
    wait_until(wb_endpoint_look(e, &error) == WB_FATAL && wb_endpoint_missing(e) == 2);
    assert_string_equal(error.text, "told to fail in open");
    f.fatal = 0;
    assert_int_equal(wb_endpoint_restart(e), WB_OK);
    wait_until(f.opened == 2);
    end(e, WB_OK);
}

static void test_gives_up_and_is_stopped(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = running(2, 0);
    f.fatal = FAKE_RECEIVE;
    wait_until(wb_endpoint_look(e, &error) == WB_FATAL && wb_endpoint_missing(e) == 2);
    assert_true(wb_endpoint_has_ended(e));
    end(e, WB_FATAL);

    e = running(2, 0);
    f.fatal = FAKE_RECEIVE;
    wait_until(wb_endpoint_has_ended(e)); /* and nobody looked */
    end(e, WB_FATAL);
}

static void test_restart_without_threads(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = running(2, 0);
    f.fatal = FAKE_RECEIVE;
    wait_until(wb_endpoint_look(e, &error) == WB_FATAL && wb_endpoint_missing(e) == 2);
    f.fatal = 0;
    fake_threads = 1;
    assert_int_equal(wb_endpoint_restart(e), WB_FATAL);
    fake_threads = -1;
    assert_int_equal(wb_endpoint_look(e, &error), WB_FATAL);
    assert_non_null(strstr(error.text, "could not start a worker"));
    assert_int_equal(wb_endpoint_missing(e), 1);
    assert_int_equal(wb_endpoint_restart(e), WB_OK);
    assert_int_equal(wb_endpoint_look(e, &error), WB_OK);
    end(e, WB_OK);
}

/* Somebody has acted: what opened a circuit breaker before says nothing any more. */
static void test_restart_is_no_longer_critical(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = running(1, 0);
    atomic_store(&wb_endpoint_pipeline(e)->is_critical, 1);
    wait_until(wb_endpoint_look(e, &error) == WB_FATAL);
    assert_non_null(strstr(error.text, "circuit breaker"));
    assert_int_equal(wb_endpoint_restart(e), WB_OK);
    assert_false(wb_endpoint_pipeline(e)->is_critical);
    assert_int_equal(wb_endpoint_look(e, &error), WB_OK);
    end(e, WB_OK);
}

/* ---- the broker's limits ---------------------------------------------------------------- */

static uint32_t told_flags; /* of limits() */

static int apply(uint32_t limit, int32_t mode, unsigned retries, wb_pipeline *p, wb_error *error)
{
    wb_endpoint *e = make(1, 0);
    wb_transport *transport = NULL;
    wb_host_instance host;
    wb_host_init(&host, "orders", "fake");
    assert_int_equal(setup.transport_ops->create(&host.host, &setup.info, &f, &transport, error), WB_OK);
    f.limit = limit;
    f.limit_flags = told_flags;
    memset(p, 0, sizeof *p);
    p->endpoint = "orders";
    p->mode = mode;
    p->transport_ops = setup.transport_ops;
    p->transport = transport;
    p->recoverability.immediate_retries = retries;
    int r = wb_limits_apply(p, error);
    setup.transport_ops->destroy(transport);
    wb_endpoint_destroy(e);
    return r;
}

static void assert_refused(uint32_t limit, unsigned retries, const char *text)
{
    wb_pipeline p;
    wb_error error = { 0 };
    assert_int_equal(apply(limit, WB_MODE_RECEIVE_ONLY, retries, &p, &error), WB_FATAL);
    assert_string_equal(error.text, text);
    assert_int_equal(wb_error_exit_code(&error), 72);
}

static void assert_limit(uint32_t limit, int32_t mode, unsigned retries, uint32_t expected)
{
    wb_pipeline p;
    wb_error error = { 0 };
    assert_int_equal(apply(limit, mode, retries, &p, &error), WB_OK);
    assert_int_equal(p.recoverability.delivery_limit, expected);
}

static void test_limits(void **state)
{
    (void)state;
    assert_refused(6, 5,
                   "queue \"orders\" drops a message that comes back more than 6 times (its delivery limit), and "
                   "immediate_retries = 5 needs at least 7: raise the queue's limit (x-delivery-limit, or the "
                   "policy that sets it), or set immediate_retries to 4 or less");
    assert_refused(1, 0,
                   "queue \"orders\" drops a message that comes back more than 1 times (its delivery limit), and "
                   "immediate_retries = 0 needs at least 2: raise the queue's limit (x-delivery-limit, or the "
                   "policy that sets it)");
    assert_limit(7, WB_MODE_RECEIVE_ONLY, 5, 7);
    assert_limit(2, WB_MODE_SENDS_ATOMIC, 0, 2);
    assert_limit(0, WB_MODE_RECEIVE_ONLY, 5, 0);
    assert_limit(1, WB_MODE_NONE, 0, 0);
    assert_limit(WB_LIMIT_UNKNOWN, WB_MODE_RECEIVE_ONLY, 5, 20);
    assert_limit(WB_LIMIT_UNKNOWN, WB_MODE_RECEIVE_ONLY, 100, 20);
}

static void test_limits_say_what_returns_first(void **state)
{
    wb_pipeline p;
    wb_error error = { 0 };
    (void)state;
    assert_int_equal(apply(0, WB_MODE_RECEIVE_ONLY, 5, &p, &error), WB_OK);
    assert_false(p.returns_first);
    told_flags = WB_LIMITS_RETURNS_FIRST;
    assert_int_equal(apply(7, WB_MODE_RECEIVE_ONLY, 5, &p, &error), WB_OK);
    assert_true(p.returns_first);
    assert_int_equal(p.recoverability.delivery_limit, 7);
    told_flags = 0;
}

/* A transport that was built before there were limits. */
static void test_no_limits(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = make(1, 0);
    wb_transport_ops old = *setup.transport_ops;
    old.struct_size = offsetof(wb_transport_ops, limits);
    wb_pipeline p = { .mode = WB_MODE_RECEIVE_ONLY, .transport_ops = &old };
    p.recoverability.immediate_retries = 5;
    assert_int_equal(wb_limits_apply(&p, &error), WB_OK);
    assert_int_equal(p.recoverability.delivery_limit, 0);
    end(e, WB_OK);
}

static void test_verify(void **state)
{
    wb_error error = { 0 };
    (void)state;
    wb_endpoint *e = make(1, 1);
    assert_int_equal(wb_endpoint_verify(e, &error), WB_OK);
    f.limit = 3;
    assert_int_equal(wb_endpoint_verify(e, &error), WB_FATAL);
    f.limit = 0;
    f.fatal = FAKE_LIMITS;
    assert_int_equal(wb_endpoint_verify(e, &error), WB_FATAL);
    assert_string_equal(error.text, "told to fail in limits");
    f.fatal = FAKE_TABLES;
    assert_int_equal(wb_endpoint_verify(e, &error), WB_FATAL);
    assert_string_equal(error.text, "told to fail in tables");
    f.fatal = FAKE_LIMITS;
    setup.plan.send_only = 1; /* has no queue whose limits could matter */
    assert_int_equal(wb_endpoint_verify(e, &error), WB_OK);
    end(e, WB_OK);
}

/* ---- when it is started again ------------------------------------------------------------ */

static void test_pauses_grow(void **state)
{
    static const int seconds[] = { 1, 2, 4, 8, 16, 32, 60, 60 };
    wb_restart restart = { 0 };
    int64_t now = 1000 * WB_SECOND;
    (void)state;
    wb_restart_started(&restart, now);
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        now += WB_SECOND / 2;
        assert_false(wb_restart_is_planned(&restart));
        assert_true(wb_restart_plan(&restart, now) == seconds[i] * WB_SECOND);
        assert_true(wb_restart_is_planned(&restart));
        assert_false(wb_restart_is_due(&restart, now + seconds[i] * WB_SECOND - 1));
        now += seconds[i] * WB_SECOND;
        assert_true(wb_restart_is_due(&restart, now));
        wb_restart_started(&restart, now);
        assert_false(wb_restart_is_due(&restart, now));
    }
    assert_true(wb_restart_plan(&restart, now + WB_RESTART_RAN_WELL) == WB_SECOND);
}

static void test_proven(void **state)
{
    wb_restart restart = { 0 };
    int64_t now = 1000 * WB_SECOND;
    (void)state;
    wb_restart_started(&restart, now);
    assert_true(wb_restart_is_proven(&restart, now));
    (void)wb_restart_plan(&restart, now);
    assert_false(wb_restart_is_proven(&restart, now + 100 * WB_SECOND)); /* it does not run */
    wb_restart_started(&restart, now);
    (void)wb_restart_plan(&restart, now);
    wb_restart_started(&restart, now);
    assert_false(wb_restart_is_proven(&restart, now + 2 * WB_SECOND - 1));
    assert_true(wb_restart_is_proven(&restart, now + 2 * WB_SECOND));
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int next_cause;

static int allow(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    (void)persistence, (void)mode, (void)error;
    return WB_OK;
}

static int next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    (void)session;
    *ret_due = *ret_now = 1;
    if (!next_cause)
        return WB_OK;
    *ret_due = WB_NEVER_DUE;
    return wb_error_set(error, WB_FATAL, next_cause, 0, "told to fail in next");
}

static int ask_rest(int cause, wb_rest *ret_rest)
{
    static const wb_delayed_ops delayed = { .struct_size = sizeof delayed, .initialize = allow, .next = next };
    static wb_persistence_ops ops;
    static wb_plugin plugin;
    wb_endpoint *e = NULL;
    wb_error error = { 0 };
    fake_setup(&f, &setup, "orders", 1, 1);
    ops = *setup.persistence_ops;
    ops.delayed = &delayed;
    plugin = *setup.persistence;
    plugin.ops = setup.persistence_ops = &ops;
    plugin.capabilities |= WB_CAP_DELAY_STORE;
    setup.persistence = &plugin;
    next_cause = cause;
    assert_int_equal(wb_endpoint_create(&setup, &e, &error), WB_OK);
    int r = wb_rest_ask(e, ret_rest, &error);
    wb_endpoint_destroy(e);
    return r;
}

/* A broker that delays leaves the store without a table, where nothing waits. */
static void test_rest_without_a_table(void **state)
{
    wb_rest rest;
    (void)state;
    assert_int_equal(ask_rest(0, &rest), WB_OK);
    assert_true(rest.is_delayed);
    assert_int_equal(ask_rest(WB_CAUSE_MISSING, &rest), WB_OK);
    assert_false(rest.is_delayed);
    assert_int_equal(ask_rest(WB_CAUSE_REFUSED, &rest), WB_FATAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_limits),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_threads_that_cannot_start),
        cmocka_unit_test(test_housekeeper_is_waited_for),
        cmocka_unit_test(test_idle_housekeeper_is_woken),
        cmocka_unit_test(test_tables_of_a_processor),
        cmocka_unit_test(test_worker_gives_up),
        cmocka_unit_test(test_open_is_fatal),
        cmocka_unit_test(test_gives_up_and_is_stopped),
        cmocka_unit_test(test_restart_without_threads),
        cmocka_unit_test(test_restart_is_no_longer_critical),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_limits_say_what_returns_first),
        cmocka_unit_test(test_no_limits),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_pauses_grow),
        cmocka_unit_test(test_proven),
        cmocka_unit_test(test_rest_without_a_table),
    };
    return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}

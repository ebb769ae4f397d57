/* SPDX-License-Identifier: Apache-2.0
 *
 * The doctor on plugins without servers: what they say in each way there is, what becomes of it, and the endpoint's own
 * times and clocks.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <pthread.h>

#include "core/base/clock.h"
#include "core/base/host.h"
#include "core/doctor/doctor.h"
#include "core/doctor/times.h"
#include "core/endpoint/limits.h"
#include "tests/unit/fake_plugins.h"

#define HOUR (3600 * WB_SECOND)
#define MANY 50000

static fake f;
static wb_endpoint_setup setup;
static wb_transport_ops transport_ops;
static wb_persistence_ops persistence_ops;
static wb_plugin transport, persistence;
static wb_doctor doctor;

/* What the plugins are told to do. */
static const wb_host *transport_host;
static const wb_finding *finding;
static wb_examination asked;
static int examined, verify_result, examine_result;
static int64_t clock_offset;

static int (*create_fake)(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                          wb_transport **ret_transport, wb_error *error);

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config, wb_transport **ret_transport,
                  wb_error *error)
{
    transport_host = host;
    host->log(host, WB_LOG_WARNING, "known by check already", NULL, 0);
    return create_fake(host, endpoint, config, ret_transport, error);
}

static int verify(wb_transport *instance, wb_error *error)
{
    const wb_field fields[] = { { "setting", "fsync" }, { "remedy", "set it on" }, { "absent", NULL } };
    (void)instance;
    transport_host->log(transport_host, WB_LOG_WARNING, "a setting is off", fields, 3);
    transport_host->log(transport_host, WB_LOG_INFO, "nothing to see", NULL, 0);
    if (verify_result != WB_OK)
        return wb_error_set(error, verify_result, verify_result == WB_FATAL ? WB_CAUSE_MISSING : WB_CAUSE_UNREACHABLE, 0,
                            "told so");
    return WB_OK;
}

static int examine(wb_transport *instance, const wb_examination *what, wb_error *error)
{
    (void)instance;
    examined++;
    asked = *what;
    if (finding)
        what->found(what->argument, finding);
    return examine_result == WB_OK ? WB_OK : wb_error_set(error, examine_result, WB_CAUSE_REFUSED, 0, "not allowed");
}

static int ask_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    (void)session, (void)error;
    *ret_wall = wb_clock_wall() + clock_offset;
    return WB_OK;
}

static int begin(void **state)
{
    (void)state;
    fake_setup(&f, &setup, "orders", 3, 1);
    transport_ops = *setup.transport_ops;
    persistence_ops = *setup.persistence_ops;
    transport = *setup.transport;
    persistence = *setup.persistence;
    transport.ops = &transport_ops;
    persistence.ops = &persistence_ops;
    setup.transport = &transport;
    setup.transport_ops = &transport_ops;
    setup.persistence = &persistence;
    setup.persistence_ops = &persistence_ops;
    setup.plan.by_id = 1;
    f.config.outbox.retention = 100 * HOUR;
    create_fake = transport_ops.create;
    doctor = (wb_doctor){ .outage = HOUR };
    finding = NULL;
    examined = verify_result = examine_result = 0;
    clock_offset = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(f.instances, 0);
    assert_int_equal(f.sessions, 0);
    wb_doctor_free(&doctor);
    return 0;
}

static const wb_finding_kept *find(const char *name)
{
    for (size_t i = 0; i < doctor.findings.count; i++)
        if (strcmp(doctor.findings.items[i].name, name) == 0)
            return &doctor.findings.items[i];
    return NULL;
}

static const wb_finding_kept *expect(const char *name, int severity, const char *text, const char *remedy)
{
    const wb_finding_kept *kept = find(name);
    assert_non_null(kept);
    assert_int_equal(kept->severity, severity);
    assert_non_null(strstr(kept->text, text));
    if (remedy)
        assert_non_null(strstr(kept->remedy, remedy));
    else
        assert_null(kept->remedy);
    return kept;
}

/* ---- what plugins say ------------------------------------------------------------------- */

static void test_fine(void **state)
{
    (void)state;
    wb_doctor_examine(&doctor, &setup);
    assert_int_equal(doctor.findings.biting, 0);
    assert_int_equal(doctor.failure.result, WB_OK);
    assert_int_equal(doctor.findings.count, 2); /* plugins of before */
    const wb_finding_kept *kept = expect("not-examined", WB_FINDING_NOTE, "only checks", NULL);
    assert_string_equal(kept->at.endpoint, "orders");
    assert_string_equal(kept->at.part, "transport");
    assert_string_equal(kept->at.plugin, "fake");
    assert_string_equal(doctor.findings.items[1].at.part, "persistence");
}

static void test_warnings_at_start(void **state)
{
    (void)state;
    transport_ops.create = create;
    transport_ops.verify = verify;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("warning-at-start", WB_FINDING_WARNING, "a setting is off (setting=\"fsync\")", "set it on");
    assert_int_equal(doctor.findings.biting, 1);
    assert_int_equal(doctor.findings.count, 3);
}

static void test_examination(void **state)
{
    static const wb_finding plain = { sizeof plain, WB_FINDING_DANGER, 0, "queue-length", "it is full", "empty it" };
    (void)state;
    transport_ops.examine = examine;
    finding = &plain;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("queue-length", WB_FINDING_DANGER, "it is full", "empty it");
    assert_int_equal(asked.struct_size, sizeof asked);
    assert_int_equal(asked.outage, HOUR);
    assert_int_equal(asked.sessions, 3 + 1); /* workers, housekeeper */
}

static pthread_barrier_t all_begin;

static void *find_many(void *argument)
{
    static const wb_finding_place at = { "orders", "transport", "fake" };
    (void)argument;
    (void)pthread_barrier_wait(&all_begin);
    for (int i = 0; i < MANY; i++)
        wb_findings_add(&doctor.findings, &at, WB_FINDING_WARNING, "late", NULL, "of a thread");
    return NULL;
}

/* A plugin's threads warn while others are asked. */
static void test_threads(void **state)
{
    pthread_t other;
    (void)state;
    assert_int_equal(pthread_barrier_init(&all_begin, NULL, 2), 0);
    assert_int_equal(pthread_create(&other, NULL, find_many, NULL), 0);
    (void)find_many(NULL);
    assert_int_equal(pthread_join(other, NULL), 0);
    (void)pthread_barrier_destroy(&all_begin);
    assert_int_equal(doctor.findings.count, 2 * MANY);
    assert_int_equal(doctor.findings.biting, 2 * MANY);
}

/* Of an unknown severity, and longer or shorter than ours. */
static void test_other_versions(void **state)
{
    static const struct {
        wb_finding known;
        void *more;
    } longer = { { sizeof longer, 9, 0, "later", "of a later version", "wait" }, (void *)1 };
    (void)state;
    transport_ops.examine = examine;
    finding = &longer.known;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("later", WB_FINDING_WARNING, "of a later version", "wait");
    wb_finding shorter = { offsetof(wb_finding, remedy), WB_FINDING_NOTE, 0, "earlier", "without a remedy", "none" };
    finding = &shorter;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("earlier", WB_FINDING_NOTE, "without a remedy", NULL);
}

static void test_verify_refuses(void **state)
{
    (void)state;
    transport_ops.create = create;
    transport_ops.verify = verify;
    transport_ops.examine = examine;
    verify_result = WB_FATAL;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("does-not-start", WB_FINDING_DANGER, "told so", "waybill install");
    assert_int_equal(examined, 1); /* all the same */
    assert_int_equal(doctor.failure.result, WB_OK);
}

static void test_unreachable(void **state)
{
    (void)state;
    transport_ops.create = create;
    transport_ops.verify = verify;
    transport_ops.examine = examine;
    verify_result = WB_NOT_CONNECTED;
    f.fatal = FAKE_TABLES;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("cannot-look", WB_FINDING_UNSEEN, "told so", NULL);
    assert_int_equal(examined, 0);
    assert_int_equal(doctor.findings.unseen, 1);
    assert_int_equal(doctor.findings.biting, 2); /* the warning before it, and the other's tables */
    assert_int_equal(wb_error_exit_code(&doctor.failure), 69);
    (void)expect("does-not-start", WB_FINDING_DANGER, "in tables", "waybill install"); /* the other one is looked at */
}

static void test_examination_fails(void **state)
{
    (void)state;
    transport_ops.examine = examine;
    examine_result = WB_FATAL;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("cannot-look", WB_FINDING_UNSEEN, "not allowed", NULL);
    assert_int_equal(wb_error_exit_code(&doctor.failure), 77);
}

/* ---- limits, clocks, times -------------------------------------------------------------- */

static void test_limits(void **state)
{
    (void)state;
    f.limit = 3;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("delivery-limit", WB_FINDING_DANGER, "comes back more than 3 times", NULL);
    f.limit = WB_LIMIT_UNKNOWN;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("delivery-limit-unknown", WB_FINDING_WARNING, "20 are assumed", "management");
}

static int lose_broker(wb_transport *instance, wb_transport_limits *limits, wb_error *error)
{
    (void)instance, (void)limits;
    return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0, "it is gone");
}

static void test_lost_between(void **state)
{
    (void)state;
    transport_ops.limits = lose_broker;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("cannot-look", WB_FINDING_UNSEEN, "it is gone", NULL);
    assert_int_equal(doctor.findings.biting, 0);
    assert_int_equal(wb_error_exit_code(&doctor.failure), 69);
}

static void test_clocks(void **state)
{
    (void)state;
    persistence_ops.clock = ask_clock;
    clock_offset = WB_SECOND;
    wb_doctor_examine(&doctor, &setup);
    assert_null(find("clocks-differ"));
    clock_offset = -90 * WB_SECOND;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("clocks-differ", WB_FINDING_WARNING, "is 90s behind this host's", "NTP");
    wb_findings_free(&doctor.findings);
    clock_offset = HOUR + WB_MILLISECOND;
    wb_doctor_examine(&doctor, &setup);
    (void)expect("clocks-differ", WB_FINDING_WARNING, "is 1h ahead of this host's", "NTP");
}

static void test_times(void **state)
{
    (void)state;
    setup.plan.delayed_retries = 3;
    f.config.recoverability.delay_increment = HOUR;
    f.config.recoverability.delay_jitter = 50;
    assert_int_equal(wb_times_of_retries(&setup), 9 * HOUR);

    f.config.outbox.retention = 10 * HOUR;
    wb_times_compare(&setup, HOUR, &doctor.findings);
    assert_int_equal(doctor.findings.count, 0);
    wb_times_compare(&setup, HOUR + 1, &doctor.findings);
    (void)expect("retention-too-short", WB_FINDING_DANGER, "an outage and all delayed retries", "\"36001s\"");
    wb_findings_free(&doctor.findings);
    f.config.outbox.retention = 9 * HOUR;
    wb_times_compare(&setup, 0, &doctor.findings);
    (void)expect("retention-too-short", WB_FINDING_DANGER, "behind all delayed retries", "\"9h\"");
    wb_findings_free(&doctor.findings);

    setup.plan.by_id = 0; /* positions are remembered for ever */
    wb_times_compare(&setup, HOUR, &doctor.findings);
    assert_int_equal(doctor.findings.count, 0);
    setup.plan.by_id = 1;
    f.config.recoverability.delay_increment = INT64_MAX / 2;
    assert_int_equal(wb_times_of_retries(&setup), INT64_MAX);
    wb_times_compare(&setup, INT64_MAX, &doctor.findings);
    assert_int_equal(doctor.findings.count, 1);
}

static void test_problems(void **state)
{
    wb_problems problems = { 0 };
    (void)state;
    wb_problems_add(&problems, WB_LOG_WARNING, (wb_conf_origin){ "/a.conf", 3, 1 }, "it is odd");
    wb_problems_add(&problems, WB_LOG_ERROR, (wb_conf_origin){ "/a.conf", 4, 1 }, "it is wrong");
    wb_doctor_read_problems(&doctor, &problems);
    assert_int_equal(doctor.findings.count, 1); /* errors end the program */
    (void)expect("warning-of-check", WB_FINDING_WARNING, "/a.conf:3: warning: it is odd", NULL);
    wb_problems_free(&problems);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fine, begin, end),
        cmocka_unit_test_setup_teardown(test_warnings_at_start, begin, end),
        cmocka_unit_test_setup_teardown(test_examination, begin, end),
        cmocka_unit_test_setup_teardown(test_threads, begin, end),
        cmocka_unit_test_setup_teardown(test_other_versions, begin, end),
        cmocka_unit_test_setup_teardown(test_verify_refuses, begin, end),
        cmocka_unit_test_setup_teardown(test_unreachable, begin, end),
        cmocka_unit_test_setup_teardown(test_examination_fails, begin, end),
        cmocka_unit_test_setup_teardown(test_limits, begin, end),
        cmocka_unit_test_setup_teardown(test_lost_between, begin, end),
        cmocka_unit_test_setup_teardown(test_clocks, begin, end),
        cmocka_unit_test_setup_teardown(test_times, begin, end),
        cmocka_unit_test_setup_teardown(test_problems, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

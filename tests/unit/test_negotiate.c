/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the negotiation, one test each. All combinations are in tests/contract.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/negotiate/negotiate.h"

#define AT(number) { "waybill.conf", number, 1 }
#define DEFAULT { "waybill.conf", 1, 0 }

#define BROKER_CAPS (WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_PUBLISH)
#define ALL_MODES (BROKER_CAPS | WB_CAP_MODE_SENDS_ATOMIC | WB_CAP_MODE_TRANSACTION_SCOPE)

/* An endpoint that works, with an outbox. */
static wb_negotiation_input sound(void)
{
    return (wb_negotiation_input){
        .at = AT(1),
        .mode = WB_MODE_RECEIVE_ONLY,
        .mode_at = DEFAULT,
        .outbox = 1,
        .outbox_at = AT(3),
        .immediate_retries = 5,
        .immediate_retries_at = DEFAULT,
        .delayed_retries = 3,
        .delayed_retries_at = DEFAULT,
        .send_only_at = DEFAULT,
        .handler_count = 1,
        .transport = { "broker", BROKER_CAPS, NULL, AT(4) },
        .persistence = { "table", WB_CAP_OUTBOX, NULL, AT(5) },
    };
}

static wb_negotiation_input with_mode(int32_t mode)
{
    wb_negotiation_input input = sound();
    input.mode = mode;
    input.mode_at = (wb_conf_origin)AT(7);
    input.outbox = 0;
    input.transport.capabilities = ALL_MODES;
    return input;
}

static wb_plan expect_plan(const wb_negotiation_input *input)
{
    wb_negotiation result;
    int got = wb_negotiate(input, &result);
    if (got != WB_OK)
        fail_msg("%s", result.conflicts[0].text);
    assert_int_equal(result.conflict_count, 0);
    return result.plan;
}

/* Exactly this conflict, at this line, with this in its text. */
static wb_conflict expect_conflict(const wb_negotiation_input *input, int kind, int line,
                                   const char *text)
{
    wb_negotiation result;
    assert_int_equal(wb_negotiate(input, &result), WB_FATAL);
    assert_int_equal(result.conflict_count, 1);
    assert_string_equal(wb_conflict_name(result.conflicts[0].kind), wb_conflict_name(kind));
    assert_int_equal(result.conflicts[0].at.line, line);
    if (!strstr(result.conflicts[0].text, text))
        fail_msg("expected \"%s\" in: %s", text, result.conflicts[0].text);
    return result.conflicts[0];
}

static void test_plan(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    wb_plan plan = expect_plan(&input);
    assert_int_equal(plan.mode, WB_MODE_RECEIVE_ONLY);
    assert_int_equal(plan.outbox, 1);
    assert_int_equal(plan.immediate_retries, 5);
    assert_int_equal(plan.delayed_retries, 0);
    assert_int_equal(plan.delay_by, WB_DELAYS_BY_NOBODY);
    assert_int_equal(plan.joined, 0);
    assert_int_equal(plan.send_only, 0);
    input.outbox = 0;
    input.persistence = (wb_party){ 0 };
    assert_int_equal(expect_plan(&input).outbox, 0);
}

static void test_mode_must_be_offered(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_TRANSACTION_SCOPE);
    (void)state;
    input.transport.capabilities = BROKER_CAPS;
    wb_conflict conflict =
        expect_conflict(&input, WB_CONFLICT_MODE_UNSUPPORTED, 7,
                        "transaction_mode = \"transaction_scope\" is not offered by transport "
                        "\"broker\"; use \"none\" or \"receive_only\"");
    assert_int_equal(conflict.modes, 1u << WB_MODE_NONE | 1u << WB_MODE_RECEIVE_ONLY);
    input = sound();
    input.transport.capabilities = WB_CAP_MODE_SENDS_ATOMIC;
    expect_conflict(&input, WB_CONFLICT_MODE_UNSUPPORTED, 1, "\"receive_only\", the default, is");
}

static void test_outbox_is_pointless_with_none(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_NONE);
    (void)state;
    input.outbox = 1;
    expect_conflict(&input, WB_CONFLICT_OUTBOX_POINTLESS, 7,
                    "does not go with the outbox enabled in line 3, which is pointless here");
    expect_conflict(&input, WB_CONFLICT_OUTBOX_POINTLESS, 7,
                    "use transaction_mode = \"receive_only\", or enabled = false");
}

static void test_outbox_requires_receive_only(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_SENDS_ATOMIC);
    (void)state;
    input.outbox = 1;
    wb_conflict conflict = expect_conflict(&input, WB_CONFLICT_OUTBOX_MODE, 7,
                                           "use transaction_mode = \"receive_only\", or");
    assert_int_equal(conflict.modes, 1u << WB_MODE_RECEIVE_ONLY);
    input.mode = WB_MODE_TRANSACTION_SCOPE;
    input.transport.shared_resource = input.persistence.shared_resource = "/file";
    input.persistence.capabilities |= WB_CAP_JOIN_TRANSPORT;
    expect_conflict(&input, WB_CONFLICT_OUTBOX_MODE, 7, "\"transaction_scope\" does not go with");
}

static void test_outbox_needs_persistence(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.persistence = (wb_party){ 0 };
    expect_conflict(&input, WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE, 3,
                    "needs a persistence and the endpoint has none");
}

static void test_outbox_needs_the_capability(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.persistence.capabilities = WB_CAP_DELAY_STORE;
    expect_conflict(&input, WB_CONFLICT_OUTBOX_UNSUPPORTED, 3,
                    "is not offered by persistence \"table\" (line 5)");
}

static void test_retries_with_none(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_NONE);
    (void)state;
    /* the default is lowered in silence, a request is refused */
    assert_int_equal(expect_plan(&input).immediate_retries, 0);
    input.immediate_retries_at = (wb_conf_origin)AT(9);
    expect_conflict(&input, WB_CONFLICT_IMMEDIATE_RETRIES, 9,
                    "immediate_retries = 5 cannot be honoured with transaction_mode = \"none\" "
                    "(line 7)");
    input.immediate_retries = 0;
    assert_int_equal(expect_plan(&input).immediate_retries, 0);
    input.delayed_retries = 3;
    input.delayed_retries_at = (wb_conf_origin)AT(10);
    input.transport.capabilities |= WB_CAP_DELAY;
    expect_conflict(&input, WB_CONFLICT_DELAYED_RETRIES, 10, "use delayed_retries = 0, or");
}

static void test_delayed_retries_need_somebody_who_delays(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.delayed_retries = 3;
    input.delayed_retries_at = (wb_conf_origin)AT(10);
    expect_conflict(&input, WB_CONFLICT_DELAY_UNAVAILABLE, 10,
                    "transport \"broker\" cannot delay messages, and persistence \"table\" cannot "
                    "store them");
    input.persistence.capabilities |= WB_CAP_DELAY_STORE;
    wb_plan plan = expect_plan(&input);
    assert_int_equal(plan.delay_by, WB_DELAYS_BY_STORE);
    assert_int_equal(plan.delayed_retries, 3);
    input.transport.capabilities |= WB_CAP_DELAY;
    assert_int_equal(expect_plan(&input).delay_by, WB_DELAYS_BY_TRANSPORT);
    input.outbox = 0;
    input.persistence = (wb_party){ 0 };
    input.transport.capabilities = BROKER_CAPS;
    expect_conflict(&input, WB_CONFLICT_DELAY_UNAVAILABLE, 10, "and there is no persistence;");
}

static void test_delayed_retries_by_default(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_NONE);
    (void)state;
    input.transport.capabilities |= WB_CAP_DELAY;
    assert_int_equal(expect_plan(&input).delayed_retries, 0);
    input.mode = WB_MODE_RECEIVE_ONLY;
    assert_int_equal(expect_plan(&input).delayed_retries, 3);
    input.transport.capabilities = ALL_MODES;
    assert_int_equal(expect_plan(&input).delayed_retries, 0);
}

static void test_delay_store_must_accept_the_mode(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_SENDS_ATOMIC);
    (void)state;
    input.delayed_retries = 3;
    input.delayed_retries_at = (wb_conf_origin)AT(10);
    input.persistence.capabilities = WB_CAP_DELAY_STORE;
    expect_conflict(&input, WB_CONFLICT_DELAY_MODE, 10,
                    "persistence \"table\" cannot store delayed messages as part of "
                    "transaction_mode = \"sends_atomic_with_receive\"");
    input.mode = WB_MODE_TRANSACTION_SCOPE;
    input.persistence.capabilities |= WB_CAP_JOIN_TRANSPORT;
    input.transport.shared_resource = input.persistence.shared_resource = "/file";
    assert_int_equal(expect_plan(&input).delay_by, WB_DELAYS_BY_STORE);
}

static void test_scope_needs_one_transaction(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_TRANSACTION_SCOPE);
    (void)state;
    expect_conflict(&input, WB_CONFLICT_SCOPE_NOT_SHARED, 7,
                    "persistence \"table\" cannot join a transport's transaction");
    input.persistence.capabilities |= WB_CAP_JOIN_TRANSPORT;
    input.transport.shared_resource = "/one";
    input.persistence.shared_resource = "/two";
    wb_conflict conflict =
        expect_conflict(&input, WB_CONFLICT_SCOPE_NOT_SHARED, 7,
                        "transport \"broker\" is on \"/one\" and persistence \"table\" on "
                        "\"/two\"");
    assert_false(conflict.modes & 1u << WB_MODE_TRANSACTION_SCOPE);
    input.persistence.shared_resource = "/one";
    assert_int_equal(expect_plan(&input).joined, 1);
    input.persistence = (wb_party){ 0 };
    expect_conflict(&input, WB_CONFLICT_SCOPE_NOT_SHARED, 7, "the endpoint has no persistence");
}

static void test_atomic_needs_two_resources(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_SENDS_ATOMIC);
    (void)state;
    input.transport.shared_resource = "/one";
    input.persistence.shared_resource = "/two";
    expect_plan(&input);
    input.persistence.shared_resource = "/one";
    input.persistence.capabilities |= WB_CAP_JOIN_TRANSPORT;
    wb_conflict conflict = expect_conflict(&input, WB_CONFLICT_ATOMIC_SHARED, 7,
                                           "but both are on \"/one\", where one would wait");
    assert_true(conflict.modes & 1u << WB_MODE_TRANSACTION_SCOPE);
}

static void test_handlers_are_needed(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.handler_count = 0;
    expect_conflict(&input, WB_CONFLICT_NO_HANDLERS, 1, "or use send_only = true");
    input.session_at = (wb_conf_origin)AT(3);
    input.persistence.capabilities |= WB_CAP_CLAIM_WITH_COMMIT;
    (void)expect_plan(&input); /* it is there for sessions */
}

static void test_send_only(void **state)
{
    const wb_input_setting settings[] = { { "concurrency", AT(11) }, { "error_queue", AT(12) } };
    wb_negotiation_input input = sound();
    wb_negotiation result;
    (void)state;
    input.send_only = 1;
    input.send_only_at = (wb_conf_origin)AT(2);
    input.handler_count = 0;
    expect_conflict(&input, WB_CONFLICT_SEND_ONLY_OUTBOX, 3, "use session = { processor_endpoint = ");
    input.outbox = 0;
    wb_plan plan = expect_plan(&input);
    assert_int_equal(plan.send_only, 1);
    input.persistence.capabilities |= WB_CAP_DELAY_STORE;
    assert_int_equal(expect_plan(&input).delay_by, WB_DELAYS_BY_NOBODY); /* nobody would poll the store */
    input.transport.capabilities |= WB_CAP_DELAY;
    assert_int_equal(expect_plan(&input).delay_by, WB_DELAYS_BY_TRANSPORT);
    assert_int_equal(plan.mode, WB_MODE_NONE);
    assert_int_equal(plan.immediate_retries, 0);
    input.input_settings = settings;
    input.input_setting_count = 2;
    assert_int_equal(wb_negotiate(&input, &result), WB_FATAL);
    assert_int_equal(result.conflict_count, 2);
    assert_int_equal(result.conflicts[1].kind, WB_CONFLICT_SEND_ONLY_SETTING);
    assert_int_equal(result.conflicts[1].at.line, 12);
    assert_non_null(strstr(result.conflicts[1].text, "\"error_queue\" is about an input queue, and "
                                                     "a send-only endpoint (line 2) has none"));
}

static void test_queues(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.queue_count = 1;
    input.queues_at = (wb_conf_origin)AT(9);
    (void)expect_plan(&input);
    input.queue_count = 2;
    wb_conflict conflict = expect_conflict(&input, WB_CONFLICT_QUEUES_UNSUPPORTED, 9,
                                           "failures.from names 2 queues, and transport \"broker\" (line 4) receives from one");
    assert_non_null(strstr(conflict.text, "write another endpoint for each queue, or use a transport that declares \"queues\""));
    input.persistence.capabilities |= WB_CAP_QUEUES; /* of somebody else */
    expect_conflict(&input, WB_CONFLICT_QUEUES_UNSUPPORTED, 9, "receives from one");
    input.transport.capabilities |= WB_CAP_QUEUES;
    (void)expect_plan(&input);
}

static void test_store(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.store = (wb_party){ "ids", WB_CAP_REMEMBER, NULL, AT(8) };
    expect_conflict(&input, WB_CONFLICT_STORE_PERSISTENCE, 8, "cannot hand its ids to a store");
    input.persistence.capabilities |= WB_CAP_FORGET;
    assert_true(expect_plan(&input).by_id);
    input.store.shared_resource = input.persistence.shared_resource = "/data/a.db";
    expect_conflict(&input, WB_CONFLICT_STORE_SHARED, 8, "use a file of its own");
    input.store.shared_resource = "/data/b.db";
    input.store.capabilities = WB_CAP_OUTBOX;
    expect_conflict(&input, WB_CONFLICT_STORE_UNSUITED, 8, "persistence \"ids\" cannot remember ids for another one");
    input.store.capabilities = WB_CAP_REMEMBER;
    input.by_at = (wb_conf_origin)AT(9);
    input.by_position = 1;
    input.transport.capabilities |= WB_CAP_POSITION;
    input.persistence.capabilities |= WB_CAP_POSITIONS;
    expect_conflict(&input, WB_CONFLICT_STORE_POSITION, 8, "use by = [\"id\", \"position\"]");
    input.by_id = 1;
    (void)expect_plan(&input);
    input.by_at.is_set = 0;
    input.outbox = 0;
    expect_conflict(&input, WB_CONFLICT_STORE_WITHOUT_OUTBOX, 8, "use outbox = { enabled = true; ... }");
    input.store.name = NULL;
    input.persistence.capabilities = WB_CAP_REMEMBER;
    expect_conflict(&input, WB_CONFLICT_PERSISTENCE_UNSUITED, input.persistence.at.line, "can only remember ids");
}

static void test_positions(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    wb_plan plan = expect_plan(&input);
    assert_true(plan.by_id && !plan.by_position);
    input.by_at = (wb_conf_origin)AT(8);
    input.by_position = 1;
    input.persistence.capabilities |= WB_CAP_POSITIONS;
    expect_conflict(&input, WB_CONFLICT_POSITION_TRANSPORT, 8, "whose messages have no position");
    input.transport.capabilities |= WB_CAP_POSITION;
    plan = expect_plan(&input);
    assert_true(!plan.by_id && plan.by_position);
    assert_int_equal(plan.delayed_retries, 0); /* those of the default */
    input.persistence.capabilities &= ~WB_CAP_POSITIONS;
    expect_conflict(&input, WB_CONFLICT_POSITION_PERSISTENCE, 8, "is not offered by persistence");
    input.persistence.capabilities |= WB_CAP_POSITIONS | WB_CAP_DELAY_STORE;
    input.delayed_retries = 3;
    input.delayed_retries_at = (wb_conf_origin)AT(9);
    expect_conflict(&input, WB_CONFLICT_POSITION_RETRIES, 9, "use by = [\"id\", \"position\"]");
    input.by_id = 1;
    plan = expect_plan(&input);
    assert_true(plan.by_id && plan.by_position);
    assert_int_equal(plan.delayed_retries, 3);
    input.outbox = 0;
    expect_conflict(&input, WB_CONFLICT_BY_WITHOUT_OUTBOX, 8, "use outbox = { enabled = true; ... }");
}

static void test_sessions(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    assert_int_equal(expect_plan(&input).sessions, 0); /* the persistence cannot */
    input.session_at = (wb_conf_origin)AT(8);
    expect_conflict(&input, WB_CONFLICT_SESSION_UNSUPPORTED, 8, "cannot claim an id with a commit");
    input.persistence.capabilities |= WB_CAP_CLAIM_WITH_COMMIT;
    assert_int_equal(expect_plan(&input).sessions, 1);
    input.processor_at = (wb_conf_origin)AT(9);
    expect_conflict(&input, WB_CONFLICT_SESSION_PROCESSOR, 9, "this one processes its own sessions");
    input.processor_at.is_set = 0;
    input.outbox = 0;
    expect_conflict(&input, WB_CONFLICT_SESSION_WITHOUT_OUTBOX, 8, "use outbox = { enabled = true; }");
    input.session_at.is_set = 0;
    assert_int_equal(expect_plan(&input).sessions, 0);
}

/* Its outbox is that of its processor. */
static void test_sessions_of_send_only(void **state)
{
    wb_negotiation_input input = sound();
    (void)state;
    input.persistence.capabilities |= WB_CAP_CLAIM_WITH_COMMIT;
    input.send_only = 1;
    input.send_only_at = (wb_conf_origin)AT(2);
    input.handler_count = 0;
    input.session_at = (wb_conf_origin)AT(8);
    expect_conflict(&input, WB_CONFLICT_SEND_ONLY_OUTBOX, 3, "is that of another");
    input.processor_at = (wb_conf_origin)AT(9);
    wb_plan plan = expect_plan(&input);
    assert_int_equal(plan.sessions, 1);
    assert_int_equal(plan.outbox, 1);
    assert_int_equal(plan.mode, WB_MODE_RECEIVE_ONLY);
    assert_int_equal(plan.send_only, 1);
    input.persistence.capabilities = WB_CAP_OUTBOX;
    expect_conflict(&input, WB_CONFLICT_SESSION_UNSUPPORTED, 8, "cannot claim an id with a commit");
    input.persistence.capabilities = WB_CAP_DELAY_STORE | WB_CAP_CLAIM_WITH_COMMIT;
    expect_conflict(&input, WB_CONFLICT_OUTBOX_UNSUPPORTED, 3, "is not offered by persistence \"table\" (line 5)");
    input.delays_by_at = (wb_conf_origin)AT(10);
    input.delays_by = WB_DELAYS_BY_STORE;
    input.persistence.capabilities |= WB_CAP_OUTBOX;
    expect_conflict(&input, WB_CONFLICT_DELAYS_BY, 10, "delayed_delivery by = \"store\"");
    input.delays_by_at.is_set = 0;
    (void)expect_plan(&input);
    input.outbox = 0;
    expect_conflict(&input, WB_CONFLICT_SESSION_WITHOUT_OUTBOX, 8, "use outbox = { enabled = true; }");
    input.session_at.is_set = 0;
    input.persistence.capabilities = WB_CAP_REMEMBER;
    expect_conflict(&input, WB_CONFLICT_PERSISTENCE_UNSUITED, 5, "can only remember ids");
    input.session_at.is_set = input.outbox = 1;
    input.persistence.name = NULL;
    input.persistence.capabilities = 0;
    expect_conflict(&input, WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE, 3, "needs a persistence");
}

static void test_all_conflicts_at_once(void **state)
{
    wb_negotiation_input input = with_mode(WB_MODE_NONE);
    wb_negotiation result;
    (void)state;
    input.transport.capabilities = WB_CAP_MODE_RECEIVE_ONLY;
    input.outbox = 1;
    input.persistence = (wb_party){ 0 };
    input.handler_count = 0;
    input.immediate_retries_at = (wb_conf_origin)AT(9);
    input.delayed_retries_at = (wb_conf_origin)AT(10);
    assert_int_equal(wb_negotiate(&input, &result), WB_FATAL);
    static const int kinds[] = { WB_CONFLICT_MODE_UNSUPPORTED,  WB_CONFLICT_OUTBOX_POINTLESS,
                                 WB_CONFLICT_OUTBOX_WITHOUT_PERSISTENCE,
                                 WB_CONFLICT_IMMEDIATE_RETRIES, WB_CONFLICT_DELAYED_RETRIES,
                                 WB_CONFLICT_DELAY_UNAVAILABLE, WB_CONFLICT_NO_HANDLERS };
    assert_int_equal(result.conflict_count, sizeof kinds / sizeof kinds[0]);
    for (size_t i = 0; i < result.conflict_count; i++)
        assert_int_equal(result.conflicts[i].kind, kinds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_mode_must_be_offered),
        cmocka_unit_test(test_outbox_is_pointless_with_none),
        cmocka_unit_test(test_outbox_requires_receive_only),
        cmocka_unit_test(test_outbox_needs_persistence),
        cmocka_unit_test(test_outbox_needs_the_capability),
        cmocka_unit_test(test_retries_with_none),
        cmocka_unit_test(test_delayed_retries_need_somebody_who_delays),
        cmocka_unit_test(test_delayed_retries_by_default),
        cmocka_unit_test(test_delay_store_must_accept_the_mode),
        cmocka_unit_test(test_scope_needs_one_transaction),
        cmocka_unit_test(test_atomic_needs_two_resources),
        cmocka_unit_test(test_handlers_are_needed),
        cmocka_unit_test(test_send_only),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_queues),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_sessions_of_send_only),
        cmocka_unit_test(test_all_conflicts_at_once),
    };
    return cmocka_run_group_tests_name("negotiate", tests, NULL, NULL);
}

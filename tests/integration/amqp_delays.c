/* SPDX-License-Identifier: Apache-2.0
 *
 * Delays by the broker, in both topologies: when delayed messages arrive and as what, who
 * they cannot be sent to, what survives, and what install makes for them.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/transport/amqp/amqp-delay.h"
#include "tests/integration/amqp-fixture.h"
#include "tests/support/text_header.h"

/* On a machine that is busy with other things. Early is never right. */
#define LATE_AT_MOST SECONDS(5)
#define SECONDS_HEADER "NServiceBus.Transport.RabbitMQ.DelayInSeconds"

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* ---- endpoints ------------------------------------------------------------------- */

static void prepare(fixture *f, int topology)
{
    fixture_prepare(f);
    f->config.topology = topology;
    f->endpoint.delays = WB_DELAYS_BY_TRANSPORT;
}

static void install(fixture *f)
{
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        fail_msg("install: %s", f->error.text);
}

static void begin(fixture *f, int topology)
{
    prepare(f, topology);
    fixture_create(f);
    install(f);
    fixture_open(f, 100);
}

/* ---- operations ------------------------------------------------------------------ */

static wb_operation delayed(const char *destination, const char *id, int64_t deliver_at)
{
    wb_operation operation = fixture_operation(destination, id, "a body");
    operation.deliver_at = deliver_at;
    return operation;
}

static void send_all(fixture *f, wb_operation *operations, size_t count)
{
    if (fixture_send(f, operations, count) != WB_OK)
        fail_msg("send: %s", f->error.text);
    for (size_t i = 0; i < count; i++)
        if (operations[i].result != WB_OK)
            fail_msg("%s: %s", operations[i].id, operations[i].reason ? operations[i].reason : "not sent");
}

static void expect_refused(fixture *f, wb_operation *operation, int cause, const char *reason)
{
    (void)fixture_send(f, operation, 1);
    assert_int_equal(operation->result, WB_REJECT);
    assert_int_equal(operation->cause, cause);
    if (!strstr(operation->reason, reason))
        fail_msg("not \"%s\": %s", reason, operation->reason);
}

static int is_for(const wb_incoming *message, const wb_operation *operation)
{
    return message->id_size == operation->id_size &&
           memcmp(message->id, operation->id, operation->id_size) == 0;
}

static const char *value_of(const wb_incoming *message, const char *name)
{
    for (size_t i = 0; i < message->header_count; i++)
        if (strcmp(message->headers[i].name, name) == 0)
            return message->headers[i].value;
    return NULL;
}

/* Whichever comes is in time, and one of them; each comes once. */
static void expect_in_time(fixture *f, wb_operation *operations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const wb_incoming *message;
        size_t at = 0;
        fixture_receive(f, &message, 1);
        int64_t now = wb_clock_wall();
        while (at < count && (operations[at].result != WB_OK || !is_for(message, &operations[at])))
            at++;
        if (at == count)
            fail_msg("\"%.*s\" was not to come", (int)message->id_size, message->id);
        if (now < operations[at].deliver_at)
            fail_msg("\"%s\" is early", operations[at].id);
        if (operations[at].deliver_at && now - operations[at].deliver_at > LATE_AT_MOST)
            fail_msg("\"%s\" is late", operations[at].id);
        operations[at].result = WB_REJECT; /* has come */
        acknowledge(f, &message, 1);
    }
    fixture_receive_none(f);
}

/* ---- what arrives ---------------------------------------------------------------- */

static void wait_in(int topology)
{
    fixture f;
    static const char *const ids[] = { "one", "two", "five" };
    static const int64_t seconds[] = { 1, 2, 5 };
    wb_operation operations[3];
    begin(&f, topology);
    int64_t now = wb_clock_wall();
    for (size_t i = 0; i < 3; i++)
        operations[i] = delayed(f.queue, ids[i], now + SECONDS(seconds[i]));
    send_all(&f, operations, 3);
    expect_in_time(&f, operations, 3);
    fixture_end(&f);
}

static void test_in_time(void **state)
{
    (void)state;
    wait_in(WB_AMQP_TOPOLOGY_CONVENTIONAL);
}

static void test_in_time_direct(void **state)
{
    (void)state;
    wait_in(WB_AMQP_TOPOLOGY_DIRECT);
}

/* With its id, headers, properties and body; and without what the road added. */
static void test_content(void **state)
{
    static const wb_header headers[] = {
        TEXT_HEADER("NServiceBus.ContentType", "application/json"),
        TEXT_HEADER("own", "v\xc3\xa4lue"),
        TEXT_HEADER(SECONDS_HEADER, "77"),
        TEXT_HEADER("NServiceBus.DeliverAt", "2026-11-22 04:09:18:397111 Z"),
    };
    char body[3000];
    fixture f;
    const wb_incoming *message;
    (void)state;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)i;
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    wb_operation operation = delayed(f.queue, "an id", wb_clock_wall() + SECONDS(1));
    operation.headers = headers;
    operation.header_count = sizeof headers / sizeof headers[0];
    operation.body = body;
    operation.body_size = sizeof body;
    send_all(&f, &operation, 1);
    fixture_receive(&f, &message, 1);
    assert_true(is_for(message, &operation));
    assert_int_equal(message->body_size, sizeof body);
    assert_memory_equal(message->body, body, sizeof body);
    assert_string_equal(value_of(message, "NServiceBus.ContentType"), "application/json");
    assert_string_equal(value_of(message, "own"), "v\xc3\xa4lue");
    assert_string_equal(value_of(message, "NServiceBus.DeliverAt"), headers[3].value);
    assert_int_equal(message->header_count, 3);
    assert_int_equal(message->delivery_count, 0);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static amqp_message_t client_get(amqp_connection_state_t client, const char *queue)
{
    amqp_message_t message;
    amqp_rpc_reply_t reply;
    for (int tries = 0; tries < 100; tries++) {
        reply = amqp_basic_get(client, 1, amqp_cstring_bytes(queue), 1);
        assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
        if (reply.reply.id == AMQP_BASIC_GET_OK_METHOD)
            break;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    }
    assert_int_equal(reply.reply.id, AMQP_BASIC_GET_OK_METHOD);
    assert_int_equal(amqp_read_message(client, 1, &message, 0).reply_type, AMQP_RESPONSE_NORMAL);
    return message;
}

/* What an endpoint of .NET finds: the seconds, as a number of 32 bits; persistent. The queue is not an
 * endpoint of ours: who sends binds it. */
static void test_as_dotnet(void **state)
{
    fixture f;
    char plain[80];
    int found = 0;
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_DIRECT);
    (void)snprintf(plain, sizeof plain, "%s.plain", f.queue);
    client_declare_classic(plain);
    wb_operation operation = delayed(plain, "to .NET", wb_clock_wall() + 2 * WB_SECOND - WB_SECOND / 2);
    send_all(&f, &operation, 1);
    amqp_connection_state_t client = client_open();
    amqp_message_t message = client_get(client, plain);
    const amqp_table_t *headers = &message.properties.headers;
    for (int i = 0; i < headers->num_entries; i++) {
        amqp_bytes_t name = headers->entries[i].key;
        if (name.len != strlen(SECONDS_HEADER) || memcmp(name.bytes, SECONDS_HEADER, name.len) != 0)
            continue;
        assert_int_equal(headers->entries[i].value.kind, AMQP_FIELD_KIND_I32);
        assert_int_equal(headers->entries[i].value.value.i32, 2);
        found++;
    }
    assert_int_equal(found, 1);
    assert_int_equal(message.properties.delivery_mode, AMQP_DELIVERY_PERSISTENT);
    amqp_destroy_message(&message);
    client_close(client);
    client_delete_queue(plain);
    fixture_end(&f);
}

/* The address may be a queue without an exchange in the conventional topology as well, and an
 * endpoint that was told of no delays. */
static void test_to_others(void **state)
{
    fixture f, other;
    char plain[80];
    (void)state;
    fixture_begin(&other, 10);
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    (void)snprintf(plain, sizeof plain, "queue:%s", other.queue);
    wb_operation operations[] = { delayed(other.queue, "by exchange", wb_clock_wall() + SECONDS(1)),
                                  delayed(plain, "by queue", wb_clock_wall() + SECONDS(1)) };
    send_all(&f, operations, 2);
    expect_in_time(&other, operations, 2);
    fixture_end(&f);
    fixture_end(&other);
}

/* Ten delays in one window, with others that have none, and some that are due already. */
static void test_one_window(void **state)
{
    enum { DELAYED = 10, ALL = 16 };
    fixture f;
    wb_operation operations[ALL];
    char ids[ALL][16];
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    int64_t now = wb_clock_wall();
    for (int i = 0; i < ALL; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "w-%d", i);
        operations[i] = delayed(f.queue, ids[i], 0);
        if (i < DELAYED)
            operations[i].deliver_at = now + (i + 1) * (WB_SECOND / 2) + 1;
        else if (i % 2)
            operations[i].deliver_at = now - i * WB_MILLISECOND;
    }
    send_all(&f, operations, ALL);
    expect_in_time(&f, operations, ALL);
    fixture_end(&f);
}

/* ---- what is refused ------------------------------------------------------------- */

static void test_too_long(void **state)
{
    fixture f;
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    int64_t now = wb_clock_wall();
    wb_operation operation = delayed(f.queue, "far", now + (WB_AMQP_DELAY_MAX + 60) * WB_SECOND);
    expect_refused(&f, &operation, WB_CAUSE_OTHER, "s; the broker delays for 268435455 s at most");
    operation = delayed(f.queue, "farthest", INT64_MAX);
    expect_refused(&f, &operation, WB_CAUSE_OTHER, "at most");
    fixture_fill(&f, 1); /* the session is fine */
    fixture_end(&f);
}

static void test_unknown_destination(int topology)
{
    fixture f;
    begin(&f, topology);
    int64_t at = wb_clock_wall() + SECONDS(1);
    wb_operation operations[] = { delayed("nobody-at-all", "lost", at), delayed(f.queue, "found", at) };
    assert_int_equal(fixture_send(&f, operations, 2), WB_OK);
    assert_int_equal(operations[0].result, WB_REJECT);
    assert_int_equal(operations[0].cause, WB_CAUSE_UNROUTABLE);
    assert_non_null(strstr(operations[0].reason, "there is no queue \"nobody-at-all\""));
    expect_in_time(&f, operations + 1, 1);
    fixture_end(&f);
}

static void test_unknown(void **state)
{
    (void)state;
    test_unknown_destination(WB_AMQP_TOPOLOGY_CONVENTIONAL);
}

static void test_unknown_direct(void **state)
{
    (void)state;
    test_unknown_destination(WB_AMQP_TOPOLOGY_DIRECT);
}

static void test_addresses(void **state)
{
    fixture f;
    char longest[201];
    (void)state;
    memset(longest, 'a', 200);
    longest[200] = '\0';
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    int64_t at = wb_clock_wall() + SECONDS(1);
    wb_operation operation = delayed(longest, "long", at);
    expect_refused(&f, &operation, WB_CAUSE_TOO_LARGE, "more than 199 bytes");
    operation = delayed("a.#", "all", at);
    expect_refused(&f, &operation, WB_CAUSE_UNROUTABLE, "patterns");
    operation = delayed(longest + 1, "fits", at);
    expect_refused(&f, &operation, WB_CAUSE_UNROUTABLE, "there is no queue");
    operation = delayed("Shop.Placed", "event", at);
    operation.kind = WB_OPERATION_PUBLISH;
    expect_refused(&f, &operation, WB_CAUSE_OTHER, "an event cannot be delayed");
    fixture_end(&f);
}

/* Nobody may be told that it waits where it would be lost. */
static void test_not_installed(void **state)
{
    fixture f;
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    client_delete_exchange("nsb.v2.delay-level-01");
    wb_operation operation = delayed(f.queue, "nowhere", wb_clock_wall() + SECONDS(2));
    expect_refused(&f, &operation, WB_CAUSE_UNROUTABLE,
                   "there is no exchange \"nsb.v2.delay-level-01\": run waybill install");
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(f.error.text, "\"nsb.v2.delay-level-01\" does not exist: run waybill install"));
    client_delete_queue("nsb.v2.delay-level-02");
    operation = delayed(f.queue, "unbound", wb_clock_wall() + SECONDS(4));
    expect_refused(&f, &operation, WB_CAUSE_UNROUTABLE,
                   "\"nsb.v2.delay-level-02\" leads to no queue: run waybill install");
    client_delete_exchange(WB_AMQP_DELIVERY);
    operation = delayed("somebody-else", "undelivered", wb_clock_wall() + SECONDS(1));
    expect_refused(&f, &operation, WB_CAUSE_UNROUTABLE,
                   "there is no exchange \"nsb.v2.delay-delivery\": run waybill install");
    install(&f);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    client_delete_queue("nsb.v2.delay-level-02"); /* found before anything is sent, too */
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(f.error.text, "\"nsb.v2.delay-level-02\" does not exist: run waybill install"));
    install(&f);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    operation = delayed(f.queue, "again", wb_clock_wall() + SECONDS(2));
    send_all(&f, &operation, 1);
    expect_in_time(&f, &operation, 1);
    fixture_end(&f);
}

/* ---- what survives --------------------------------------------------------------- */

/* RabbitMQ's Mnesia writes bindings late: one made in the last seconds before a kill may be gone. */
static void keep_bindings(void)
{
    fixture_broker("ctl", "eval 'mnesia:sync_log().'");
}

static void test_killed_broker(void **state)
{
    fixture f;
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    keep_bindings();
    int64_t now = wb_clock_wall();
    wb_operation operations[] = { delayed(f.queue, "meanwhile", now + SECONDS(1)),
                                  delayed(f.queue, "after", now + SECONDS(30)) };
    send_all(&f, operations, 2);
    fixture_close(&f);
    fixture_broker("kill", "");
    fixture_broker("start", "");
    fixture_open(&f, 10);
    const wb_incoming *message;
    for (size_t i = 0; i < 2; i++) {
        while (wb_clock_wall() < operations[i].deliver_at - SECONDS(5))
            fixture_receive_none(&f);
        fixture_receive(&f, &message, 1);
        assert_true(is_for(message, &operations[i]));
        assert_true(wb_clock_wall() >= operations[i].deliver_at);
        acknowledge(&f, &message, 1);
    }
    fixture_end(&f);
}

/* A destination made anew has lost its binding: found out within half a minute, and at once by a new
 * session. */
static void test_made_anew(void **state)
{
    fixture f;
    (void)state;
    begin(&f, WB_AMQP_TOPOLOGY_DIRECT);
    wb_operation operation = delayed(f.queue, "before", wb_clock_wall() + SECONDS(1));
    send_all(&f, &operation, 1);
    expect_in_time(&f, &operation, 1);
    fixture_close(&f);
    client_delete_queue(f.queue);
    client_declare_classic(f.queue);
    fixture_open(&f, 10);
    operation = delayed(f.queue, "anew", wb_clock_wall() + SECONDS(1));
    send_all(&f, &operation, 1);
    expect_in_time(&f, &operation, 1);
    fixture_end(&f);
}

/* ---- what install makes ---------------------------------------------------------- */

static int has_levels(void)
{
    amqp_connection_state_t client = client_open();
    int has = amqp_exchange_declare(client, 1, amqp_cstring_bytes(WB_AMQP_DELIVERY),
                                    amqp_cstring_bytes("topic"), 1, 1, 0, 0, amqp_empty_table) != NULL;
    client_close(client);
    return has;
}

/* First of all: nothing has made them yet. An older host says nothing of delays. */
static void test_by_others(void **state)
{
    static const int32_t others[] = { WB_DELAYS_BY_NOBODY, WB_DELAYS_BY_STORE };
    fixture f;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        prepare(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
        if (i < 2)
            f.endpoint.delays = others[i];
        else
            f.endpoint.struct_size = offsetof(wb_endpoint_info, delays);
        fixture_create(&f);
        install(&f);
        assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
        assert_int_equal(has_levels(), 0);
        fixture_end(&f);
    }
    prepare(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    f.endpoint.delays = WB_DELAYS_BY_STORE;
    fixture_create(&f);
    install(&f);
    fixture_end(&f);
    f.endpoint.delays = WB_DELAYS_BY_TRANSPORT;
    fixture_create(&f);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_FATAL);
    assert_int_equal(f.error.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(f.error.text, "exchange \"nsb.v2.delay-delivery\" does not exist: run waybill install"));
    install(&f);
    install(&f);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    fixture_end(&f);
}

/* All else works with it: it is warned of. */
static void test_long_name(void **state)
{
    static char name[300];
    fixture f;
    int warnings = fixture_warnings();
    (void)state;
    prepare(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    (void)snprintf(name, sizeof name, "%s%0210d", f.queue, 0);
    f.endpoint.name = name;
    fixture_create(&f);
    install(&f);
    assert_int_equal(fixture_warnings(), warnings + 1);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    fixture_end(&f);
}

/* Somebody who may use the levels and not make them. */
static void test_permissions(void **state)
{
    fixture f;
    (void)state;
    fixture_broker("ctl", "add_user clerk clerk");
    fixture_broker("ctl", "set_permissions clerk '^q' '^(q|nsb.v2.delay-level-)' '^(q|nsb.v2.delay-delivery)'");
    prepare(&f, WB_AMQP_TOPOLOGY_CONVENTIONAL);
    f.config.user = f.config.password = "clerk";
    fixture_create(&f);
    install(&f);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    wb_operation operation = delayed(f.queue, "permitted", wb_clock_wall() + SECONDS(1));
    send_all(&f, &operation, 1);
    expect_in_time(&f, &operation, 1);
    fixture_close(&f);
    fixture_broker("ctl", "set_permissions clerk '^q' '^(q|nsb.v2.delay-level-)' '^q'");
    fixture_open(&f, 10);
    operation = delayed(f.queue, "forbidden", wb_clock_wall() + SECONDS(1));
    expect_refused(&f, &operation, WB_CAUSE_REFUSED, "delayed messages cannot be led to");
    fixture_end(&f);
    fixture_broker("ctl", "delete_user clerk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_others),
        cmocka_unit_test(test_in_time),
        cmocka_unit_test(test_in_time_direct),
        cmocka_unit_test(test_content),
        cmocka_unit_test(test_as_dotnet),
        cmocka_unit_test(test_to_others),
        cmocka_unit_test(test_one_window),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_unknown_direct),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_made_anew),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_not_installed),
        cmocka_unit_test(test_killed_broker),
    };
    return cmocka_run_group_tests_name("amqp delays", tests, NULL, NULL);
}

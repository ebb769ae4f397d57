/* SPDX-License-Identifier: Apache-2.0
 *
 * What a real NServiceBus sent, without a broker: from the properties and the header table, as the
 * frames carry them, to the handlers of each message, and to the reply to it; and the exchange and
 * routing key that each was published with are those that Waybill chooses.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/pipeline/admit.h"
#include "core/pipeline/batch.h"
#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-options.h"
#include "plugins/transport/amqp/amqp-route.h"
#include "tests/integration/captures.h"

/* Lines of each file. */
#define CONVENTIONAL 40
#define DIRECT 36

static int handle(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_OK;
}

#define HANDLED(name) { .type = name, .one = handle, .module = "test" }

/* Sorted, as the loader leaves them: all types of the captures but Nobody.Knows. */
static wb_handler_entry entries[] = {
    HANDLED("Shop.Answer"),        HANDLED("Shop.Ask"),
    HANDLED("Shop.BaseEvent"),     HANDLED("Shop.DerivedEvent"),
    HANDLED("Shop.Fail"),          HANDLED("Shop.IThingHappened"),
    HANDLED("Shop.Order"),         HANDLED("Shop.OrderPlaced"),
    HANDLED("Shop.Outer+Inner"),   HANDLED("Shop.SagaAsk"),
    HANDLED("Shop.ShortLived"),    HANDLED("Shop.StartSaga"),
    HANDLED("Shop.StartTimeout"),  HANDLED("Shop.TimeoutState"),
    HANDLED("Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String]]]]"),
    HANDLED("Shop.Wrapper`1[[System.Int32]]"),
};
#define ENTRIES (sizeof entries / sizeof entries[0])
static const wb_handler_set handlers = { .entries = entries, .count = ENTRIES };

/* What the handlers of a message are: by the property `type`, which .NET cuts at the first comma. */
static const char *const several[][2] = {
    { "Shop.OrderPlaced", "Shop.OrderPlaced|Shop.IThingHappened|" },
    { "Shop.DerivedEvent", "Shop.DerivedEvent|Shop.IThingHappened|Shop.BaseEvent|" },
    { "Shop.Wrapper`1[[System.Int32", "Shop.Wrapper`1[[System.Int32]]|" },
    { "Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String",
      "Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String]]]]|" },
    { "Nobody.Knows", "" },
    { "", "" }, /* the control messages of a session */
};

/* ---- one message ------------------------------------------------------------------ */

static wb_pipeline pipeline;
static wb_worker worker;

static int is_equal(const wb_header *a, const wb_header *b)
{
    return a && b && a->value_size == b->value_size && memcmp(a->value, b->value, a->value_size) == 0;
}

/* What each reply has, beside what it carries over. */
#define OF_EACH_REPLY 12

/* The reply carries what NServiceBus' own does: the conversation, the saga that asked, the trace; and no
 * more than that. (amqp_rules.c compares two of them with .NET's.) */
static void check_reply(const wb_message *message)
{
    static const char *const carried[][2] = {
        { "NServiceBus.ConversationId", "NServiceBus.ConversationId" },
        { "NServiceBus.OriginatingSagaId", "NServiceBus.SagaId" },
        { "NServiceBus.OriginatingSagaType", "NServiceBus.SagaType" },
        { "traceparent", "traceparent" },
        { "tracestate", "tracestate" },
        { "baggage", "baggage" },
    };
    size_t count = OF_EACH_REPLY - 1; /* and the conversation, which all of them have */
    const wb_origin origin = wb_origin_make("way", 1, 1 << 20);
    const wb_outgoing outgoing = { .type = "Shop.Answer", .body = "{}", .body_size = 2 };
    const wb_header *reply_to = capture_header(message->headers, message->header_count, "NServiceBus.ReplyToAddress");
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    if (!reply_to)
        return;
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_REPLY, &outgoing, sizeof outgoing, message, 0,
                                     &worker.arena, &list, &error), WB_OK);
    const wb_operation *reply = &list.first->operation;
    assert_string_equal(reply->destination, reply_to->value);
    for (size_t i = 0; i < sizeof carried / sizeof carried[0]; i++) {
        const wb_header *asked = capture_header(message->headers, message->header_count, carried[i][0]);
        const wb_header *answered = capture_header(reply->headers, reply->header_count, carried[i][1]);
        assert_int_equal(asked != NULL, answered != NULL);
        assert_true(!asked || is_equal(asked, answered));
        count += asked != NULL;
    }
    assert_int_equal(reply->header_count, count);
    const wb_header *correlation =
        capture_header(message->headers, message->header_count, "NServiceBus.CorrelationId");
    const wb_header *answered = capture_header(reply->headers, reply->header_count, "NServiceBus.CorrelationId");
    assert_non_null(answered);
    assert_string_equal(answered->value, correlation ? correlation->value : message->id);
    const wb_header *related = capture_header(reply->headers, reply->header_count, "NServiceBus.RelatedTo");
    assert_non_null(related);
    assert_string_equal(related->value, message->id);
}

static const char *wanted_handlers(const char *type, char alone[300])
{
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++)
        if (strcmp(several[i][0], type) == 0)
            return several[i][1];
    (void)snprintf(alone, 300, "%.250s|", type);
    return alone;
}

static void check_item(const wb_item *item, const capture *message)
{
    char names[1000] = "", alone[300];
    for (size_t i = 0; i < item->handler_count; i++)
        strcat(strcat(names, item->handlers[i]->type), "|");
    assert_string_equal(names, wanted_handlers(message->type, alone));
    /* nobody's type fails; a control message is let through */
    assert_int_equal(item->verdict, message->type[0] && !names[0] ? WB_VERDICT_FAILED : WB_VERDICT_OPEN);
    assert_null(capture_header(item->message.headers, item->message.header_count, "x-dotnet-pub-seq-no"));
    if (names[0])
        check_reply(&item->message);
}

/* Of one topology. */
typedef struct {
    wb_amqp_config config;
    size_t events;
    size_t delayed;
} replay;

static int64_t seconds_of(const capture *message)
{
    const amqp_table_t *headers = &message->properties.headers;
    for (int i = 0; i < headers->num_entries; i++)
        if (IS(headers->entries[i].key, DELAY_SECONDS))
            return headers->entries[i].value.value.i64;
    fail_msg("%s says of no delay", message->scenario);
    return -1;
}

/* What waits first: for as long as .NET says in a header that no handler sees, and by the same road. */
static void check_delayed(const capture *message, replay *r)
{
    wb_amqp_route route;
    int64_t seconds = seconds_of(message);
    int cause;
    const char *address = message->key + 2 * WB_AMQP_LEVELS;
    assert_true(strlen(message->key) > 2 * WB_AMQP_LEVELS);
    assert_null(wb_amqp_delay_problem(address, &cause));
    wb_amqp_delay_route(seconds, address, &route);
    assert_string_equal(route.exchange, message->exchange);
    assert_string_equal(route.key, message->key);
    r->delayed++;
}

/* Where .NET published it: what Waybill sends as the same kind goes there, too. Not what a test put
 * into the queue by hand. */
static void check_route(const capture *message, replay *r)
{
    const wb_incoming *incoming = &message->incoming;
    const wb_header *intent =
        capture_header(incoming->headers, incoming->header_count, "NServiceBus.MessageIntent");
    const char *queue = r->config.topology == WB_AMQP_TOPOLOGY_DIRECT ? message->key : message->exchange;
    int is_event = intent && strcmp(intent->value, "Publish") == 0 && strcmp(queue, "audit") != 0;
    const wb_operation operation = { .struct_size = sizeof operation,
                                     .kind = is_event ? WB_OPERATION_PUBLISH : WB_OPERATION_SEND,
                                     .destination = is_event ? message->type : queue,
                                     .headers = incoming->headers,
                                     .header_count = incoming->header_count };
    wb_amqp_route route;
    if (!queue[0])
        return;
    if (strncmp(message->exchange, "nsb.v2.delay", 12) == 0) {
        check_delayed(message, r);
        return;
    }
    assert_null(wb_amqp_route_make(&r->config, &operation, &route));
    assert_string_equal(route.exchange, message->exchange);
    assert_string_equal(route.key, message->key);
    r->events += (size_t)is_event;
}

static void check_message(const capture *message, void *user)
{
    wb_worker_init(&worker, &pipeline, 0);
    wb_item *item = wb_batch_hold(&worker, &message->incoming, NULL);
    wb_admit(&worker, item);
    check_item(item, message);
    check_route(message, user);
    wb_batch_drop_all(&worker);
    wb_worker_free(&worker);
}

static void test_conventional(void **state)
{
    replay r = { .config.topology = WB_AMQP_TOPOLOGY_CONVENTIONAL };
    (void)state;
    assert_int_equal(captures_each("conventional", check_message, &r), CONVENTIONAL);
    assert_int_equal(r.events, 2);
    assert_int_equal(r.delayed, 7);
    assert_int_equal(atomic_load(&pipeline.control_messages), 4);
}

static void test_direct(void **state)
{
    replay r = { .config.topology = WB_AMQP_TOPOLOGY_DIRECT };
    (void)state;
    assert_int_equal(captures_each("direct", check_message, &r), DIRECT);
    assert_int_equal(r.events, 2);
    assert_int_equal(r.delayed, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conventional),
        cmocka_unit_test(test_direct),
    };
    pipeline = (wb_pipeline){ .endpoint = "way", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers,
                              .batch_max = 1, .batch_time = WB_SECOND, .body_max = 1 << 20,
                              .recoverability = { .immediate_retries = 5, .error_queue = "error" } };
    wb_pipeline_init(&pipeline);
    wb_log_set_level(-1);
    int failed = cmocka_run_group_tests_name("amqp captures", tests, NULL, NULL);
    wb_pipeline_free(&pipeline);
    return failed;
}

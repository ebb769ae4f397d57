/* SPDX-License-Identifier: Apache-2.0
 *
 * What a real NServiceBus sent, without a broker: from the properties and the header table, as the
 * frames carry them, to the handlers of each message, and to the reply to it.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/pipeline/admit.h"
#include "core/pipeline/batch.h"
#include "plugins/transport/amqp/amqp-headers.h"

#define HEADERS_MAX 64
#define LINE_SIZE 65536
/* Lines of each file. */
#define CONVENTIONAL 40
#define DIRECT 36

static int handle(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_OK;
}

/* Sorted, as the loader leaves them: all types of the captures but Nobody.Knows. */
static wb_handler_entry entries[] = {
    { "Shop.Answer", handle, NULL, "test" },        { "Shop.Ask", handle, NULL, "test" },
    { "Shop.BaseEvent", handle, NULL, "test" },     { "Shop.DerivedEvent", handle, NULL, "test" },
    { "Shop.Fail", handle, NULL, "test" },          { "Shop.IThingHappened", handle, NULL, "test" },
    { "Shop.Order", handle, NULL, "test" },         { "Shop.OrderPlaced", handle, NULL, "test" },
    { "Shop.Outer+Inner", handle, NULL, "test" },   { "Shop.SagaAsk", handle, NULL, "test" },
    { "Shop.ShortLived", handle, NULL, "test" },    { "Shop.StartSaga", handle, NULL, "test" },
    { "Shop.StartTimeout", handle, NULL, "test" },  { "Shop.TimeoutState", handle, NULL, "test" },
    { "Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String]]]]", handle, NULL, "test" },
    { "Shop.Wrapper`1[[System.Int32]]", handle, NULL, "test" },
};
#define ENTRIES (sizeof entries / sizeof entries[0])
static const wb_handler_set handlers = { entries, ENTRIES, NULL };

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

static amqp_bytes_t text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? amqp_cstring_bytes(text) : amqp_empty_bytes;
}

static int make_table(const json_t *headers, amqp_table_entry_t *table)
{
    const char *name;
    json_t *value;
    int count = 0;
    json_object_foreach((json_t *)(uintptr_t)headers, name, value) {
        assert_true(count < HEADERS_MAX);
        table[count].key = amqp_cstring_bytes(name);
        if (json_is_integer(value)) {
            table[count].value.kind = AMQP_FIELD_KIND_I64;
            table[count].value.value.i64 = json_integer_value(value);
        } else {
            table[count].value.kind = AMQP_FIELD_KIND_UTF8;
            table[count].value.value.bytes = amqp_cstring_bytes(json_string_value(value));
        }
        count++;
    }
    return count;
}

static amqp_basic_properties_t make_properties(const json_t *message, amqp_table_entry_t *table)
{
    const json_t *from = json_object_get(message, "properties");
    amqp_basic_properties_t p = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                  .message_id = text_of(from, "message_id"),
                                  .type = text_of(from, "type"),
                                  .reply_to = text_of(from, "reply_to"),
                                  .correlation_id = text_of(from, "correlation_id"),
                                  .content_type = text_of(from, "content_type") };
    p.headers.entries = table;
    p.headers.num_entries = make_table(json_object_get(message, "headers"), table);
    p._flags |= (p.message_id.len ? AMQP_BASIC_MESSAGE_ID_FLAG : 0) | (p.type.len ? AMQP_BASIC_TYPE_FLAG : 0) |
                (p.reply_to.len ? AMQP_BASIC_REPLY_TO_FLAG : 0) |
                (p.correlation_id.len ? AMQP_BASIC_CORRELATION_ID_FLAG : 0) |
                (p.content_type.len ? AMQP_BASIC_CONTENT_TYPE_FLAG : 0);
    return p;
}

static const wb_header *find(const wb_header *headers, size_t count, const char *name)
{
    return wb_headers_find(headers, count, name, strlen(name));
}

/* ---- one message ------------------------------------------------------------------ */

static wb_pipeline pipeline;
static wb_worker worker;

static int is_equal(const wb_header *a, const wb_header *b)
{
    return a && b && a->value_size == b->value_size && memcmp(a->value, b->value, a->value_size) == 0;
}

/* The reply carries what NServiceBus' own does: the conversation, the saga that asked, the trace. */
static void check_reply(const wb_message *message)
{
    static const char *const carried[][2] = {
        { "NServiceBus.ConversationId", "NServiceBus.ConversationId" },
        { "NServiceBus.OriginatingSagaId", "NServiceBus.SagaId" },
        { "NServiceBus.OriginatingSagaType", "NServiceBus.SagaType" },
        { "traceparent", "traceparent" },
    };
    const wb_origin origin = wb_origin_make("way", 1, 1 << 20);
    const wb_outgoing outgoing = { .type = "Shop.Answer", .body = "{}", .body_size = 2 };
    const wb_header *reply_to = find(message->headers, message->header_count, "NServiceBus.ReplyToAddress");
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    if (!reply_to)
        return;
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_REPLY, &outgoing, sizeof outgoing, message, 0,
                                     &worker.arena, &list, &error), WB_OK);
    const wb_operation *reply = &list.first->operation;
    assert_string_equal(reply->destination, reply_to->value);
    for (size_t i = 0; i < sizeof carried / sizeof carried[0]; i++) {
        const wb_header *asked = find(message->headers, message->header_count, carried[i][0]);
        const wb_header *answered = find(reply->headers, reply->header_count, carried[i][1]);
        assert_int_equal(asked != NULL, answered != NULL);
        assert_true(!asked || is_equal(asked, answered));
    }
    const wb_header *related = find(reply->headers, reply->header_count, "NServiceBus.RelatedTo");
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

static void check_item(const wb_item *item, const json_t *message)
{
    char names[1000] = "", alone[300];
    const char *type = json_string_value(json_object_get(json_object_get(message, "properties"), "type"));
    for (size_t i = 0; i < item->handler_count; i++)
        strcat(strcat(names, item->handlers[i]->type), "|");
    assert_string_equal(names, wanted_handlers(type ? type : "", alone));
    /* nobody's type fails; a control message is let through */
    assert_int_equal(item->verdict, type && !names[0] ? WB_VERDICT_FAILED : WB_VERDICT_OPEN);
    assert_null(find(item->message.headers, item->message.header_count, "x-dotnet-pub-seq-no"));
    if (names[0])
        check_reply(&item->message);
}

static void check_message(const json_t *message)
{
    const wb_amqp_limits any = { SIZE_MAX, SIZE_MAX };
    amqp_table_entry_t table[HEADERS_MAX];
    wb_incoming incoming = { .struct_size = sizeof incoming };
    const amqp_basic_properties_t properties = make_properties(message, table);
    wb_amqp_size size = wb_amqp_headers_measure(&properties, any);
    wb_header *headers = calloc(size.header_count + 1, sizeof *headers);
    char *text = malloc(size.text_size);
    assert_true(headers && text);
    (void)wb_amqp_headers_read(&properties, any, &incoming, headers, text);
    incoming.body = json_string_value(json_object_get(message, "body"));
    incoming.body_size = strlen(incoming.body);

    wb_worker_init(&worker, &pipeline, 0);
    wb_item *item = wb_batch_hold(&worker, &incoming, NULL);
    wb_admit(&worker, item);
    check_item(item, message);
    wb_batch_drop_all(&worker);
    wb_worker_free(&worker);
    free(text);
    free(headers);
}

/* ---- all of them ------------------------------------------------------------------ */

static size_t replay(const char *topology)
{
    static char line[LINE_SIZE];
    char path[4096];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/tests/captures/nservicebus-10.2.8-%s.jsonl",
                   getenv("top_srcdir") ? getenv("top_srcdir") : ".", topology);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *message = json_loads(line, 0, NULL);
        assert_non_null(message);
        check_message(message);
        json_decref(message);
        count++;
    }
    (void)fclose(file);
    return count;
}

static void test_conventional(void **state)
{
    (void)state;
    assert_int_equal(replay("conventional"), CONVENTIONAL);
    assert_int_equal(atomic_load(&pipeline.control_messages), 4);
}

static void test_direct(void **state)
{
    (void)state;
    assert_int_equal(replay("direct"), DIRECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conventional),
        cmocka_unit_test(test_direct),
    };
    pipeline = (wb_pipeline){ .endpoint = "way", .mode = WB_MODE_RECEIVE_ONLY, .handlers = &handlers,
                              .batch_max = 1, .batch_time = WB_SECOND, .body_max = 1 << 20,
                              .recoverability = { 5, "error", 0 } };
    wb_pipeline_init(&pipeline);
    wb_log_set_level(-1);
    int failed = cmocka_run_group_tests_name("amqp captures", tests, NULL, NULL);
    wb_pipeline_free(&pipeline);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the wire, without a broker: AMQP properties, what is read of them, and the headers of
 * each kind of message, beside what a real NServiceBus sent (tests/captures). README.md there has
 * the table of all rules.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/message/outgoing.h"
#include "core/recover/recoverability.h"
#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-properties.h"
#include "tests/integration/captures.h"
#include "tests/support/text_header.h"

#define CONVENTIONAL 40
#define DIRECT 36
#define N "NServiceBus."

static wb_arena arena;

/* ---- properties on send -------------------------------------------------------------- */

static void assert_same_bytes(amqp_bytes_t ours, amqp_bytes_t theirs)
{
    assert_int_equal(ours.len, theirs.len);
    if (ours.len)
        assert_memory_equal(ours.bytes, theirs.bytes, ours.len);
}

static void assert_texts(const amqp_table_t *headers)
{
    for (int i = 0; i < headers->num_entries; i++)
        assert_int_equal(headers->entries[i].value.kind, AMQP_FIELD_KIND_UTF8);
}

static void check_properties(const capture *message, void *user)
{
    const amqp_basic_properties_t *theirs = &message->properties;
    const wb_operation operation = {
        .struct_size = sizeof operation,
        .id = message->incoming.id,
        .id_size = message->incoming.id_size,
        .headers = message->incoming.headers,
        .header_count = message->incoming.header_count,
        .flags = theirs->delivery_mode == 1 ? WB_OPERATION_NON_PERSISTENT : 0,
    };
    amqp_table_entry_t entries[3 * CAPTURE_HEADERS_MAX + 1];
    amqp_basic_properties_t ours;
    char expiration[WB_AMQP_EXPIRATION_SIZE];
    size_t size;
    (void)user;
    assert_null(wb_amqp_properties_make(&operation, NULL, entries, &ours, &size));
    wb_amqp_properties_expire(&ours, &operation, expiration);
    assert_same_bytes(ours.expiration, theirs->expiration);
    assert_same_bytes(ours.message_id, theirs->message_id);
    assert_same_bytes(ours.correlation_id, theirs->correlation_id);
    assert_same_bytes(ours.type, theirs->type);
    assert_same_bytes(ours.content_type, theirs->content_type);
    assert_same_bytes(ours.reply_to, theirs->reply_to);
    assert_int_equal(ours.delivery_mode, theirs->delivery_mode);
    /* app-id, timestamp, priority and all others are not set */
    assert_int_equal(ours._flags, theirs->_flags);
    assert_int_equal(ours.headers.num_entries, (int)operation.header_count);
    assert_texts(&ours.headers);
}

static void test_properties(void **state)
{
    (void)state;
    assert_int_equal(captures_each("conventional", check_properties, NULL), CONVENTIONAL);
    assert_int_equal(captures_each("direct", check_properties, NULL), DIRECT);
}

static void test_defaults(void **state)
{
    static const wb_header non_persistent = TEXT_HEADER(N "Transport.RabbitMQ.UseNonPersistentDelivery", "");
    const wb_operation operation = { .struct_size = sizeof operation, .headers = &non_persistent, .header_count = 1 };
    amqp_table_entry_t entries[4];
    amqp_basic_properties_t ours;
    size_t size;
    (void)state;
    assert_null(wb_amqp_properties_make(&operation, NULL, entries, &ours, &size));
    assert_same_bytes(ours.content_type, amqp_cstring_bytes("application/octet-stream"));
    assert_int_equal(ours.delivery_mode, 1);
    assert_int_equal(ours.headers.num_entries, 0); /* the order is not sent */
}

/* Milliseconds from what the headers say; never less, and never where the message was received once. */
static void test_expiration(void **state)
{
    static const struct {
        const char *span, *beside, *expiration;
        int64_t due;
    } cases[] = {
        { "00:00:30", "x", "30000", 0 },
        { "00:00:00.0000001", "x", "1", 0 },
        { "00:00:01.0010001", "x", "1002", 0 },
        { "49.00:00:00", "x", "4233600000", 0 },
        { "49.00:00:00.0000001", "x", NULL, 0 }, /* nearly what the broker refuses the message for */
        { "10675199.02:48:05.4775807", "x", NULL, 0 },
        { "00:00:00", "x", NULL, 0 },
        { "soon", "x", NULL, 0 },
        { "00:00:30", "x", NULL, 1 },
        { "00:00:30", N "FailedQ", NULL, 0 },
        { "00:00:30", N "Retries", NULL, 0 },
        { "00:00:30", N "ProcessingEnded", NULL, 0 },
        { "00:00:30", "ServiceControl.Retry.UniqueMessageId", NULL, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const wb_header headers[] = { text_header(N "TimeToBeReceived", cases[i].span),
                                      text_header(cases[i].beside, "1") };
        const wb_operation operation = { .struct_size = sizeof operation, .headers = headers,
                                         .header_count = 2, .deliver_at = cases[i].due };
        amqp_basic_properties_t ours = { 0 };
        char text[WB_AMQP_EXPIRATION_SIZE];
        wb_amqp_properties_expire(&ours, &operation, text);
        assert_int_equal(ours._flags, cases[i].expiration ? AMQP_BASIC_EXPIRATION_FLAG : 0);
        if (cases[i].expiration)
            assert_same_bytes(ours.expiration, amqp_cstring_bytes(cases[i].expiration));
    }
}

/* ---- reading ------------------------------------------------------------------------- */

#define TEXT(name, text)                                                                           \
    { amqp_cstring_bytes(name), { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(text) } }

static const char *read_value(const amqp_basic_properties_t *properties, const char *name, size_t *ret_count)
{
    static wb_header headers[40];
    static char text[4096];
    const wb_amqp_limits any = { SIZE_MAX, SIZE_MAX };
    wb_incoming incoming = { .struct_size = sizeof incoming };
    const wb_amqp_size size = wb_amqp_headers_measure(properties, any);
    assert_true(size.header_count <= 40 && size.text_size <= sizeof text);
    (void)wb_amqp_headers_read(properties, any, &incoming, headers, text);
    *ret_count = incoming.header_count;
    const wb_header *found = capture_header(headers, incoming.header_count, name);
    return found ? found->value : NULL;
}

static void test_overrides(void **state)
{
    amqp_table_entry_t table[] = { TEXT(N "ReplyToAddress", "header"), TEXT(N "CorrelationId", "header"),
                                   TEXT(N "ContentType", "header"), TEXT(N "EnclosedMessageTypes", "header") };
    amqp_basic_properties_t p = { ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_REPLY_TO_FLAG |
                                            AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG |
                                            AMQP_BASIC_TYPE_FLAG,
                                  .reply_to = amqp_cstring_bytes("property"),
                                  .correlation_id = amqp_cstring_bytes("property"),
                                  .content_type = amqp_cstring_bytes("property"),
                                  .type = amqp_cstring_bytes("property"),
                                  .headers = { 4, table } };
    size_t count;
    (void)state;
    assert_string_equal(read_value(&p, N "ReplyToAddress", &count), "property");
    assert_string_equal(read_value(&p, N "CorrelationId", &count), "property");
    assert_string_equal(read_value(&p, N "ContentType", &count), "property");
    assert_string_equal(read_value(&p, N "EnclosedMessageTypes", &count), "header");
    assert_int_equal(count, 4);
    p.headers.num_entries = 3;
    assert_string_equal(read_value(&p, N "EnclosedMessageTypes", &count), "property");
    p._flags = AMQP_BASIC_HEADERS_FLAG;
    assert_string_equal(read_value(&p, N "ReplyToAddress", &count), "header");
    assert_null(read_value(&p, N "EnclosedMessageTypes", &count));
}

static void test_bookkeeping(void **state)
{
    amqp_table_entry_t table[] = {
        TEXT("x-death", "x"),           TEXT("x-first-death-exchange", "x"), TEXT("x-first-death-queue", "x"),
        TEXT("x-first-death-reason", "x"), TEXT("x-delivery-count", "x"),    TEXT("x-dotnet-pub-seq-no", "x"),
        TEXT(N "Transport.RabbitMQ.DelayInSeconds", "x"), TEXT(N "Transport.RabbitMQ.ConfirmationId", "x"),
        TEXT("stays", "x"),
    };
    const amqp_basic_properties_t p = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                        .headers = { sizeof table / sizeof table[0], table } };
    size_t count;
    (void)state;
    assert_non_null(read_value(&p, "stays", &count));
    assert_int_equal(count, 1);
}

static void test_values(void **state)
{
    amqp_table_entry_t inner[] = { TEXT("k", "v"), TEXT("l", "w") };
    amqp_field_value_t list[] = { inner[0].value, inner[1].value };
    amqp_table_entry_t table[] = {
        { amqp_cstring_bytes("bytes"), { .kind = AMQP_FIELD_KIND_BYTES, .value.bytes = amqp_cstring_bytes("gr\xc3\xbc\xc3\x9f") } },
        { amqp_cstring_bytes("time"), { .kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = 1700000000 } },
        { amqp_cstring_bytes("table"), { .kind = AMQP_FIELD_KIND_TABLE, .value.table = { 2, inner } } },
        { amqp_cstring_bytes("list"), { .kind = AMQP_FIELD_KIND_ARRAY, .value.array = { 2, list } } },
        { amqp_cstring_bytes("number"), { .kind = AMQP_FIELD_KIND_I32, .value.i32 = -7 } },
    };
    const amqp_basic_properties_t p = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                        .headers = { sizeof table / sizeof table[0], table } };
    size_t count;
    (void)state;
    assert_string_equal(read_value(&p, "bytes", &count), "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(read_value(&p, "time", &count), "2023-11-14 22:13:20:000000 Z");
    assert_string_equal(read_value(&p, "table", &count), "k=v,l=w");
    assert_string_equal(read_value(&p, "list", &count), "v;w");
    assert_string_equal(read_value(&p, "number", &count), "-7");
}

/* ---- sets of headers ----------------------------------------------------------------- */

/* Headers of an operation, kept while its cause goes. */
typedef struct {
    char names[CAPTURE_HEADERS_MAX][128], values[CAPTURE_HEADERS_MAX][2048];
    size_t count;
} kept;

static void keep(kept *to, const wb_operation *operation)
{
    to->count = operation->header_count;
    assert_true(to->count <= CAPTURE_HEADERS_MAX);
    for (size_t i = 0; i < to->count; i++) {
        const wb_header *from = &operation->headers[i];
        (void)snprintf(to->names[i], sizeof to->names[i], "%.*s", (int)from->name_size, from->name);
        (void)snprintf(to->values[i], sizeof to->values[i], "%.*s", (int)from->value_size, from->value);
    }
}

static const char *kept_value(const kept *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcmp(headers->names[i], name) == 0)
            return headers->values[i];
    return NULL;
}

/* What .NET has and we have not. Version: which NServiceBus wrote it, and none did. StartNewTrace: left out it
 * means what our traces do, they go on. The others: an exception's, or added when the copy was sent. */
static int is_theirs_alone(const char *name)
{
    static const char *const names[] = { N "Version", N "OpenTelemetry.StartNewTrace",
                                         N "ExceptionInfo.InnerExceptionType" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return strncmp(name, N "ExceptionInfo.Data.", sizeof N "ExceptionInfo.Data." - 1) == 0;
}

/* Ids and times: as long, with the same signs at the same places. */
static int is_shaped(const char *ours, const char *theirs)
{
    for (; *ours && *theirs; ours++, theirs++)
        if (isxdigit((unsigned char)*ours) ? !isxdigit((unsigned char)*theirs) : *ours != *theirs)
            return 0;
    return *ours == *theirs;
}

static int is_first_type(const char *ours, const char *theirs)
{
    char one[WB_TYPE_SIZE], other[WB_TYPE_SIZE];
    size_t size;
    while (wb_type_next(&ours, one, &size)) {
        if (!wb_type_next(&theirs, other, &size) || strcmp(one, other) != 0)
            return 0;
    }
    return !wb_type_next(&theirs, other, &size);
}

static int is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* What each side makes by itself; everything else is the same. */
static const char *const made_first[] = { N "MessageId", N "ConversationId", N "TimeSent",
                                          "$.diagnostics.originating.hostid", NULL };
static const char *const made_in_reply[] = { N "MessageId", N "TimeSent", "$.diagnostics.originating.hostid", NULL };
static const char *const made_in_copy[] = { N "TimeOfFailure", "$.diagnostics.hostid", NULL };

static int is_alike(const char *name, const char *ours, const char *theirs, const char *const *made)
{
    static const char *const said[] = { N "OriginatingMachine", N "ProcessingMachine",
                                        "$.diagnostics.hostdisplayname", N "ExceptionInfo.ExceptionType",
                                        N "ExceptionInfo.Message", N "ExceptionInfo.Source",
                                        N "ExceptionInfo.StackTrace", NULL };
    if (strcmp(name, N "EnclosedMessageTypes") == 0)
        return is_first_type(ours, theirs);
    if (strcmp(ours, theirs) == 0)
        return 1;
    return is_one_of(name, made) ? is_shaped(ours, theirs) : is_one_of(name, said) && ours[0] != '\0';
}

/* Ours has what theirs has, and nothing else. `own` is what .NET alone gave this one, or NULL. */
static void assert_headers(const kept *ours, const capture *theirs, const char *const *made, const char *own)
{
    size_t shared = 0;
    for (size_t i = 0; i < theirs->incoming.header_count; i++) {
        const wb_header *header = &theirs->incoming.headers[i];
        const char *value = kept_value(ours, header->name);
        if (!value && (is_theirs_alone(header->name) || (own && strcmp(header->name, own) == 0)))
            continue;
        if (!value || !is_alike(header->name, value, header->value, made))
            fail_msg("%s of \"%s\": %s, not %s", header->name, theirs->scenario, value ? value : "nothing",
                     header->value);
        shared++;
    }
    if (shared != ours->count)
        fail_msg("\"%s\" has %zu headers of %zu", theirs->scenario, shared, ours->count);
}

static void make(kept *ret_made, const char *endpoint, int kind, const char *type, const capture *cause)
{
    const wb_type_bases bases[] = { { "Shop.OrderPlaced", "Shop.OrderPlaced;Shop.IThingHappened" },
                                    { "Shop.DerivedEvent", "Shop.DerivedEvent;Shop.IThingHappened;Shop.BaseEvent" } };
    wb_origin origin = wb_origin_make(endpoint, 1, 1 << 20);
    const wb_outgoing outgoing = { .type = type, .destination = kind == WB_KIND_SEND ? "way" : NULL };
    wb_message message = { .struct_size = sizeof message };
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    origin.bases = bases;
    origin.base_count = 2;
    if (cause) {
        message.id = cause->incoming.id;
        message.id_size = cause->incoming.id_size;
        message.headers = cause->incoming.headers;
        message.header_count = cause->incoming.header_count;
    }
    assert_int_equal(wb_outgoing_add(&origin, kind, &outgoing, sizeof outgoing, cause ? &message : NULL, 0, &arena,
                                     &list, &error), WB_OK);
    keep(ret_made, &list.first->operation);
    wb_arena_reset(&arena);
}

static void fail_message(kept *ret_made, const char *endpoint, const capture *received)
{
    const wb_origin origin = wb_origin_make(endpoint, 1, 1 << 20);
    const wb_recoverability policy = { .immediate_retries = 1, .error_queue = "error" };
    char reason[] = "net refuses";
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .reason = reason, .attempts = 2 };
    const wb_failed_message failed = { &received->incoming, &failure, "Shop.Fail", WB_TRIM_NOTHING, NULL, 0 };
    wb_operation_list list = { 0 };
    const wb_operation *copy = wb_recover_error_operation(&policy, &origin, &failed, &arena, &list);
    assert_string_equal(copy->destination, "error");
    assert_ptr_equal(copy->body, received->incoming.body);
    keep(ret_made, copy);
    wb_arena_reset(&arena);
}

/* ---- one scenario after the other ---------------------------------------------------- */

typedef struct {
    const char *endpoint;
    int is_direct;
    kept reply;  /* to the request that was met last */
    kept failed; /* the copy of what was received last */
    size_t sends, publishes, replies, errors;
} walk;

static const char *queue_of(const walk *w, const capture *message)
{
    return w->is_direct || !message->exchange[0] ? message->key : message->exchange;
}

/* Of one that begins a conversation: its correlation is its own id, as theirs is. */
static void begin_conversation(kept *ours, const capture *message)
{
    if (strcmp(kept_value(ours, N "CorrelationId"), kept_value(ours, N "MessageId")) != 0)
        fail_msg("the correlation of \"%s\" is another's", message->scenario);
    for (size_t i = 0; i < ours->count; i++)
        if (strcmp(ours->names[i], N "CorrelationId") == 0)
            (void)snprintf(ours->values[i], sizeof ours->values[i], "%s", message->incoming.id);
}

static int check_first(const walk *w, const capture *message, int kind)
{
    kept ours;
    make(&ours, w->endpoint, kind, message->type, NULL);
    begin_conversation(&ours, message);
    assert_headers(&ours, message, made_first, NULL);
    return 1;
}

static void check_sent(walk *w, const capture *message, const char *intent)
{
    if (strcmp(message->scenario, "command") == 0 || strcmp(message->scenario, "nested type") == 0)
        w->sends += (size_t)check_first(w, message, WB_KIND_SEND);
    else if (strcmp(intent, "Publish") == 0 && strcmp(queue_of(w, message), "audit") != 0)
        w->publishes += (size_t)check_first(w, message, WB_KIND_PUBLISH);
}

static void check_scenario(const capture *message, void *user)
{
    walk *w = user;
    const wb_header *header = capture_header(message->incoming.headers, message->incoming.header_count, N "MessageIntent");
    const char *intent = header ? header->value : "";
    if (strcmp(intent, "Reply") == 0) {
        assert_headers(&w->reply, message, made_in_reply, NULL);
        w->replies++;
    } else if (strcmp(queue_of(w, message), "error") == 0) {
        /* .NET gives a copy a time if it had none */
        assert_headers(&w->failed, message, made_in_copy,
                       strcmp(message->type, "Nobody.Knows") == 0 ? N "TimeSent" : NULL);
        assert_null(kept_value(&w->failed, N "Retries"));
        w->errors++;
    } else {
        check_sent(w, message, intent);
        if (strncmp(message->scenario, "reply", 5) == 0 && strcmp(queue_of(w, message), "audit") != 0)
            make(&w->reply, w->endpoint, WB_KIND_REPLY, "Shop.Answer", message);
        fail_message(&w->failed, w->endpoint, message);
    }
}

static void check_all(const char *topology, const char *endpoint, int is_direct, size_t count)
{
    static walk w;
    w = (walk){ .endpoint = endpoint, .is_direct = is_direct };
    assert_int_equal(captures_each(topology, check_scenario, &w), count);
    assert_int_equal(w.sends, 2);
    assert_int_equal(w.publishes, 2);
    assert_int_equal(w.replies, 2);
    assert_int_equal(w.errors, 2);
}

static void test_headers(void **state)
{
    (void)state;
    check_all("conventional", "net", 0, CONVENTIONAL);
    check_all("direct", "netd", 1, DIRECT);
}

/* ServicePulse expects no more of a reason than NServiceBus gives it. */
static void test_reason(void **state)
{
    static char reason[20001];
    const wb_origin origin = wb_origin_make("net", 1, 1 << 20);
    const wb_recoverability policy = { .immediate_retries = 1, .error_queue = "error" };
    const wb_failure failure = { .kind = WB_FAILURE_HANDLER, .reason = reason, .attempts = 2 };
    const wb_incoming incoming = { .struct_size = sizeof incoming, .id = "a", .id_size = 1, .body = "" };
    const wb_failed_message failed = { &incoming, &failure, "Shop.Fail", WB_TRIM_NOTHING, NULL, 0 };
    wb_operation_list list = { 0 };
    (void)state;
    memset(reason, 'r', sizeof reason - 1);
    const wb_operation *copy = wb_recover_error_operation(&policy, &origin, &failed, &arena, &list);
    const wb_header *message = capture_header(copy->headers, copy->header_count, N "ExceptionInfo.Message");
    assert_non_null(message);
    assert_int_equal(message->value_size, 16384);
    wb_arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),  cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_expiration), cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_bookkeeping), cmocka_unit_test(test_values),   cmocka_unit_test(test_headers),
        cmocka_unit_test(test_reason),
    };
    wb_arena_init(&arena, 1 << 16);
    wb_log_set_level(-1);
    int failed = cmocka_run_group_tests_name("amqp rules", tests, NULL, NULL);
    wb_arena_free(&arena);
    return failed;
}

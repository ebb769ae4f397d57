/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs write in SQL: headers in JSON, and the message a row becomes.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/written/headers.h"
#include "core/message/text.h"
#include "core/pipeline/window.h"
#include "core/recover/suspicions.h"
#include "core/written/lot.h"
#include "core/written/message.h"
#include "core/written/relay.h"

typedef struct {
    wb_arena arena;
    wb_header headers[WB_WRITTEN_HEADERS_MAX];
    size_t count;
    wb_error error;
} parsed;

static int parse(parsed *p, const char *text, size_t size)
{
    wb_arena_init(&p->arena, 4096);
    memset(&p->error, 0, sizeof p->error);
    return wb_written_headers_parse(text, size, &p->arena, p->headers, &p->count, &p->error);
}

static void check_one(const char *text, const char *name, const char *value, size_t value_size)
{
    parsed p;
    if (parse(&p, text, strlen(text)) != WB_OK)
        fail_msg("%s: %s", text, p.error.text);
    assert_int_equal(p.count, 1);
    assert_string_equal(p.headers[0].name, name);
    assert_int_equal(p.headers[0].name_size, strlen(name));
    assert_int_equal(p.headers[0].value_size, value_size);
    assert_memory_equal(p.headers[0].value, value, value_size + 1);
    wb_arena_free(&p.arena);
}

#define CHECK_ONE(text, name, value) check_one(text, name, value, sizeof(value) - 1)

static void test_headers(void **state)
{
    parsed p;
    (void)state;
    assert_int_equal(parse(&p, NULL, 0), WB_OK);
    assert_int_equal(p.count, 0);
    wb_arena_free(&p.arena);
    assert_int_equal(parse(&p, " { } ", 5), WB_OK);
    assert_int_equal(p.count, 0);
    wb_arena_free(&p.arena);
    CHECK_ONE("{\"a\":\"b\"}", "a", "b");
    CHECK_ONE("\t{ \"a.b\" :\n\"\" }\r", "a.b", "");
    CHECK_ONE("{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"x\"}", "\"\\/\b\f\n\r\t", "x");
    CHECK_ONE("{\"a\":\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"}", "a", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK_ONE("{\"a\":\"\xc3\xa9 {[,:]}\"}", "a", "\xc3\xa9 {[,:]}");
    static const char two[] = "{\"a\":\"1\",\"b\":\"2\"}";
    assert_int_equal(parse(&p, two, sizeof two - 1), WB_OK);
    assert_int_equal(p.count, 2);
    assert_string_equal(p.headers[1].value, "2");
    wb_arena_free(&p.arena);
}

static void check_refused(const char *text, size_t size, const char *reason)
{
    parsed p;
    assert_int_equal(parse(&p, text, size), WB_REJECT);
    if (!strstr(p.error.text, reason))
        fail_msg("%s: %s", text, p.error.text);
    wb_arena_free(&p.arena);
}

#define CHECK_REFUSED(text, reason) check_refused(text, sizeof(text) - 1, reason)

static void test_headers_that_are_none(void **state)
{
    (void)state;
    CHECK_REFUSED("", "no JSON object (at byte 1)");
    CHECK_REFUSED("[]", "no JSON object");
    CHECK_REFUSED("null", "no JSON object");
    CHECK_REFUSED("{", "a string is expected");
    CHECK_REFUSED("{}x", "something follows");
    CHECK_REFUSED("{\"a\":1}", "no string (at byte 6)");
    CHECK_REFUSED("{\"a\":null}", "no string");
    CHECK_REFUSED("{\"a\":{}}", "no string");
    CHECK_REFUSED("{\"a\"}", "a colon");
    CHECK_REFUSED("{\"a\":\"b\"", "a comma or the end");
    CHECK_REFUSED("{\"a\":\"b\",}", "a string is expected");
    CHECK_REFUSED("{\"a\":\"b", "does not end");
    CHECK_REFUSED("{\"a\":\"b\\", "escape");
    CHECK_REFUSED("{\"a\":\"\\x\"}", "escape");
    CHECK_REFUSED("{\"a\":\"\\u12\"}", "escape");
    CHECK_REFUSED("{\"a\":\"\\u0000\"}", "NUL");
    CHECK_REFUSED("{\"a\":\"\\ud800\"}", "escape");
    CHECK_REFUSED("{\"a\":\"\\ud800\\u0041\"}", "escape");
    CHECK_REFUSED("{\"a\":\"\\udc00\"}", "escape");
    CHECK_REFUSED("{\"a\":\"\n\"}", "control character");
    CHECK_REFUSED("{\"a\":\"\0\"}", "control character");
    CHECK_REFUSED("{\"a\":\"1\",\"a\":\"2\"}", "twice");
}

/* One more than may be, and what is cut off at each byte. */
static void test_headers_at_their_limits(void **state)
{
    char text[16384] = "{";
    static const char whole[] = "{\"a\":\"\\ud83d\\ude00\",\"b\":\"c\"}";
    parsed p;
    (void)state;
    for (int i = 0; i <= WB_WRITTEN_HEADERS_MAX; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"%d\":\"\"", i ? "," : "", i);
    strcat(text, "}");
    check_refused(text, strlen(text), "more than 256");
    for (size_t size = 0; size < sizeof whole - 1; size++) {
        assert_int_equal(parse(&p, whole, size), WB_REJECT);
        wb_arena_free(&p.arena);
    }
}

/* ---- messages ------------------------------------------------------------------------------ */

#define TEXT(string) { (string), sizeof(string) - 1 }

static const wb_written whole = {
    .struct_size = sizeof whole, .number = 1, .form = WB_WRITTEN_FORM, .written = INT64_C(1700000000123456000),
    .id = TEXT("id-1"), .destination = TEXT("queue"), .type = TEXT("A.Type"), .headers = TEXT("{\"a\": \"b\"}"),
    .key = TEXT("key"), .body = TEXT("body"),
};

static const char *value_of(const wb_operation *operation, const char *name)
{
    const wb_header *found = wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
    return found ? found->value : "absent";
}

static wb_origin make_origin(const char *machine)
{
    wb_origin origin = wb_origin_make("desk", 1, 1024);
    origin.machine = (wb_text){ machine, strlen(machine) };
    return wb_written_origin(&origin);
}

/* Whoever sends it, and whenever. */
static void test_message_is_the_same(void **state)
{
    const wb_origin here = make_origin("here"), there = make_origin("there");
    wb_error error = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    const wb_operation *first = wb_written_message(&here, &whole, &arena, &error);
    const wb_operation *second = wb_written_message(&there, &whole, &arena, &error);
    assert_non_null(first);
    assert_non_null(second);
    assert_string_equal(first->destination, "queue");
    assert_int_equal(first->kind, WB_OPERATION_SEND);
    assert_memory_equal(first->id, "id-1", 4);
    assert_memory_equal(first->key, "key", 3);
    assert_memory_equal(first->body, "body", 4);
    assert_string_equal(value_of(first, "a"), "b");
    assert_string_equal(value_of(first, WB_HEADER_TYPES), "A.Type");
    assert_string_equal(value_of(first, WB_HEADER_ORIGINATING_ENDPOINT), "desk");
    assert_string_equal(value_of(first, WB_HEADER_TIME_SENT), "2023-11-14 22:13:20:123456 Z");
    assert_int_equal(first->header_count, second->header_count);
    for (size_t i = 0; i < first->header_count; i++) {
        assert_string_equal(first->headers[i].name, second->headers[i].name);
        assert_string_equal(first->headers[i].value, second->headers[i].value);
    }
    wb_arena_free(&arena);
}

static void check_no_message(const wb_written *row, const char *reason)
{
    const wb_origin origin = make_origin("here");
    wb_error error = { 0 };
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    assert_null(wb_written_message(&origin, row, &arena, &error));
    if (!strstr(error.text, reason))
        fail_msg("not \"%s\": %s", reason, error.text);
    wb_arena_free(&arena);
}

#define CHECK_NO_MESSAGE(member, text, reason)                                                     \
    do {                                                                                           \
        wb_written one = whole;                                                                    \
        one.member = (wb_written_text)TEXT(text);                                                  \
        check_no_message(&one, reason);                                                            \
    } while (0)

static void test_rows_that_are_no_message(void **state)
{
    static char large[2000];
    wb_written row = whole;
    (void)state;
    CHECK_NO_MESSAGE(id, "", "its id");
    CHECK_NO_MESSAGE(type, "", "no type");
    CHECK_NO_MESSAGE(type, "a\nb", "no text");
    CHECK_NO_MESSAGE(type, "a\0b", "NUL");
    CHECK_NO_MESSAGE(destination, "", "no destination");
    CHECK_NO_MESSAGE(destination, "q\xff", "no text");
    CHECK_NO_MESSAGE(headers, "[]", "cannot be read");
    CHECK_NO_MESSAGE(headers, "{\"\": \"b\"}", "name is empty");
    row.body = (wb_written_text){ large, sizeof large };
    check_no_message(&row, "over body_max");
    row = whole;
    row.id = (wb_written_text){ large, 256 };
    check_no_message(&row, "its id");
}

static void test_time_of_the_program(void **state)
{
    const wb_origin origin = make_origin("here");
    wb_written row = whole;
    wb_error error = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    row.headers = (wb_written_text)TEXT("{\"NServiceBus.TimeSent\": \"then\"}");
    row.destination = (wb_written_text){ NULL, 0 };
    const wb_operation *operation = wb_written_message(&origin, &row, &arena, &error);
    assert_non_null(operation);
    assert_string_equal(value_of(operation, WB_HEADER_TIME_SENT), "then");
    assert_int_equal(operation->kind, WB_OPERATION_PUBLISH);
    assert_string_equal(operation->destination, "A.Type");
    wb_arena_free(&arena);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void check_failed_queue(const wb_written_failed *failed, wb_arena *arena, const char *queue)
{
    wb_pipeline pipeline = { .origin = wb_origin_make("desk", 1, 1024), .recoverability = { .error_queue = "error" } };
    const wb_operation *copy = wb_written_copy(&pipeline, failed, arena);
    assert_non_null(copy);
    assert_string_equal(copy->destination, "error");
    assert_string_equal(value_of(copy, WB_HEADER_FAILED_QUEUE), queue);
    assert_string_equal(value_of(copy, WB_HEADER_TYPES), "A.Type");
    assert_memory_equal(copy->body, "body", 4);
}

/* A retry of it goes to where it was to go; of what has no such place, or cannot be read, to the endpoint's own queue. */
static void test_retry_of_what_is_refused(void **state)
{
    static const struct {
        wb_written_text destination;
        const char *failed;
    } rows[] = { { TEXT("queue"), "queue" }, { TEXT("A.Type"), "A.Type" }, { TEXT("desk"), "desk" }, { { NULL, 0 }, "desk" } };
    const wb_origin origin = make_origin("here");
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_written row = whole;
        wb_error error = { 0 };
        wb_arena arena;
        wb_arena_init(&arena, 4096);
        row.destination = rows[i].destination;
        wb_operation *operation = wb_written_message(&origin, &row, &arena, &error);
        assert_non_null(operation);
        operation->result = WB_REJECT;
        operation->cause = i % 2 ? WB_CAUSE_TOO_LARGE : WB_CAUSE_UNROUTABLE;
        check_failed_queue(wb_written_refused(operation, &arena), &arena, rows[i].failed);
        check_failed_queue(wb_written_unusable(&row, "no message", &arena), &arena, "desk");
        wb_arena_free(&arena);
    }
}

/* ---- reasons ------------------------------------------------------------------------------- */

static void check_mended(const char *is, const char *wanted)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s", is);
    assert_string_equal(wb_text_mend(text, strlen(text)), wanted);
}

static void test_text_is_mended(void **state)
{
    (void)state;
    check_mended("", "");
    check_mended("a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "a\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    check_mended("cut \xc3", "cut ?");
    check_mended("cut \xf0\x9f\x98", "cut ???");
    check_mended("\xff\xc0\x80z", "???z");
    check_mended("\xed\xa0\x80", "???");
}

/* A store that takes no reason. */
typedef struct {
    size_t removed, postponed, refused;
    int result;
} stubborn;

static int stubborn_settle(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                           const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    stubborn *s = (stubborn *)(void *)session;
    (void)removed;
    for (size_t i = 0; i < rest_count; i++)
        if (rests[i].reason) {
            s->refused++;
            return wb_error_set(error, s->result, WB_CAUSE_OTHER, 0, "no reasons");
        }
    s->removed += removed_count;
    s->postponed += rest_count;
    return WB_OK;
}

static void settle_stubbornly(stubborn *s, int wanted)
{
    static const wb_written_ops written = { .struct_size = sizeof written, .settle = stubborn_settle };
    static const wb_persistence_ops ops = { .struct_size = sizeof ops, .written = &written };
    uint64_t removed[] = { 1, 2 };
    wb_written_rest rests[] = { { .number = 3, .reason = "x" }, { .number = 4 } };
    wb_pipeline pipeline = { .persistence_ops = &ops };
    wb_written_lot lot = { .pipeline = &pipeline, .removed = removed, .removed_count = 2, .rests = rests, .rest_count = 2 };
    wb_error error = { 0 };
    assert_int_equal(wb_written_lot_settle(&lot, (wb_storage_session *)(void *)s, &error), wanted);
    assert_int_equal(wb_written_lot_is_open(&lot), wanted != WB_OK);
}

/* A reason that is refused for good keeps nothing; what may go another time is not told twice. */
static void test_reason_that_is_refused(void **state)
{
    stubborn fatal = { .result = WB_FATAL }, reject = { .result = WB_REJECT }, retry = { .result = WB_RETRY };
    (void)state;
    settle_stubbornly(&fatal, WB_OK);
    settle_stubbornly(&reject, WB_OK);
    settle_stubbornly(&retry, WB_RETRY);
    assert_int_equal(fatal.refused, 1);
    assert_int_equal(fatal.removed, 2);
    assert_int_equal(fatal.postponed, 2);
    assert_int_equal(reject.removed, 2);
    assert_int_equal(retry.removed + retry.postponed, 0);
}

/* ---- lots ---------------------------------------------------------------------------------- */

/* What a store without a database holds, and a transport without a broker was given. */
typedef struct {
    const wb_written *rows;
    size_t row_count;
    size_t headers_max; /* of a copy for the error queue; more is refused */
    int is_silent;      /* the error queue, and "deaf" */
    size_t windows;
    size_t sizes[64];   /* of each */
    size_t removed, postponed;
    uint64_t behind; /* as asked last */
    char reason[256];   /* of the last that was postponed */
} world;

static world now_is;

static int fetch_world(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument, wb_error *error)
{
    (void)session;
    (void)error;
    fetch->has_turn = 1;
    now_is.behind = fetch->behind;
    fetch->last = fetch->wants_last ? 99 : 0;
    for (size_t i = 0; i < now_is.row_count; i++)
        assert_int_equal(visit(argument, &now_is.rows[i]), WB_OK);
    return WB_OK;
}

static int settle_world(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                        const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    (void)session;
    (void)removed;
    (void)error;
    now_is.removed += removed_count;
    now_is.postponed += rest_count;
    for (size_t i = 0; i < rest_count; i++) {
        assert_true(rests[i].pause >= WB_SECOND);
        (void)snprintf(now_is.reason, sizeof now_is.reason, "%s", rests[i].reason);
    }
    return WB_OK;
}

static size_t headers_size(const wb_operation *operation)
{
    size_t size = 0;
    for (size_t i = 0; i < operation->header_count; i++)
        size += operation->headers[i].name_size + operation->headers[i].value_size;
    return size;
}

static int is_silent(const wb_operation *operation)
{
    return now_is.is_silent && (strcmp(operation->destination, "error") == 0 || strcmp(operation->destination, "deaf") == 0);
}

static int send_world(wb_transport_session *session, wb_operation *const *operations, size_t count, int64_t deadline,
                      wb_error *error)
{
    int r = WB_OK;
    (void)session;
    (void)deadline;
    assert_true(now_is.windows < 64);
    now_is.sizes[now_is.windows++] = count;
    for (size_t i = 0; i < count; i++) {
        wb_operation *operation = operations[i];
        if (is_silent(operation))
            r = operation->result = WB_IN_DOUBT;
        else if (strcmp(operation->destination, "error") == 0 && headers_size(operation) > now_is.headers_max) {
            operation->result = WB_REJECT;
            operation->cause = WB_CAUSE_TOO_LARGE;
            operation->reason = "its headers are too large";
        } else if (strcmp(operation->destination, "forbidden") == 0) {
            operation->result = WB_REJECT;
            operation->cause = WB_CAUSE_REFUSED;
            operation->reason = "no privilege";
        } else
            operation->result = WB_OK;
    }
    return r == WB_OK ? WB_OK : wb_error_set(error, r, WB_CAUSE_SENDING, 0, "nothing is confirmed");
}

typedef struct {
    wb_pipeline pipeline;
    wb_suspicions suspicions;
    wb_written_lot lot;
    wb_outlet outlet;
    wb_error error;
} sender;

static void open_sender(sender *s)
{
    static const wb_written_ops written = { .struct_size = sizeof written, .fetch = fetch_world, .settle = settle_world };
    static const wb_persistence_ops persistence = { .struct_size = sizeof persistence, .written = &written };
    static const wb_transport_ops transport = { .struct_size = sizeof transport, .send = send_world };
    memset(s, 0, sizeof *s);
    wb_suspicions_init(&s->suspicions);
    s->pipeline.endpoint = "desk";
    s->pipeline.mode = WB_MODE_RECEIVE_ONLY;
    s->pipeline.outbox = 1;
    s->pipeline.persistence_ops = &persistence;
    s->pipeline.transport_ops = &transport;
    s->pipeline.origin = wb_origin_make("desk", 1, 1024);
    s->pipeline.recoverability.error_queue = "error";
    s->pipeline.suspicions = &s->suspicions;
    s->outlet.pipeline = &s->pipeline;
    wb_written_lot_init(&s->lot, &s->pipeline, 3);
}

static void close_sender(sender *s)
{
    wb_written_lot_free(&s->lot);
    wb_suspicions_free(&s->suspicions);
}

static int send_rows(sender *s, const wb_written *rows, size_t count)
{
    int has_turn = 0;
    now_is.rows = rows;
    now_is.row_count = count;
    assert_int_equal(wb_written_lot_fetch(&s->lot, NULL, 0, 0, &has_turn, &s->error), WB_OK);
    assert_int_equal(has_turn, 1);
    s->outlet.until = wb_clock_monotonic() + 10 * WB_SECOND;
    int r = wb_written_lot_dispatch(&s->lot, &s->outlet, &s->error);
    assert_int_equal(wb_written_lot_settle(&s->lot, NULL, &s->error), WB_OK);
    return r;
}

/* A row whose headers are none, and large. */
static wb_written make_odd(char *headers, size_t size)
{
    wb_written row = whole;
    memset(headers, 'x', size);
    row.headers = (wb_written_text){ headers, size };
    return row;
}

static void test_copy_is_cut(void **state)
{
    static char headers[60000];
    const wb_written odd = make_odd(headers, sizeof headers);
    sender s;
    (void)state;
    now_is = (world){ .headers_max = 8 * 1024 };
    open_sender(&s);
    assert_int_equal(send_rows(&s, &odd, 1), WB_OK);
    assert_int_equal(now_is.removed, 1);
    assert_int_equal(now_is.postponed, 0);
    assert_true(now_is.windows > 1);

    now_is = (world){ .headers_max = 1 }; /* it ends, whatever is refused */
    assert_int_equal(send_rows(&s, &odd, 1), WB_OK);
    assert_int_equal(now_is.removed, 0);
    assert_int_equal(now_is.postponed, 1);
    assert_int_equal(now_is.windows, 1 + WB_TRIM_MAX);
    close_sender(&s);
}

/* Somebody has to grant it: what was written waits, however often that was tried. */
static void test_privilege_is_missing(void **state)
{
    wb_written row = whole;
    sender s;
    (void)state;
    now_is = (world){ .headers_max = 8 * 1024 };
    open_sender(&s);
    row.destination = (wb_written_text){ "forbidden", strlen("forbidden") };
    row.tries = 100;
    assert_int_equal(send_rows(&s, &row, 1), WB_OK);
    assert_int_equal(now_is.removed, 0);
    assert_int_equal(now_is.postponed, 1);
    assert_int_equal(now_is.windows, 1);
    close_sender(&s);
}

static void test_error_queue_is_silent(void **state)
{
    static char headers[16];
    const wb_written odd = make_odd(headers, sizeof headers);
    sender s;
    (void)state;
    now_is = (world){ .is_silent = 1 };
    open_sender(&s);
    assert_int_equal(send_rows(&s, &odd, 1), WB_IN_DOUBT);
    assert_int_equal(now_is.postponed, 1);
    assert_non_null(strstr(now_is.reason, "the error queue confirms nothing"));
    close_sender(&s);
}

/* A row that is for the error queue stands behind an earlier one of its key as any other does. */
static void test_copy_waits_for_its_key(void **state)
{
    static char headers[16];
    wb_written rows[] = { whole, make_odd(headers, sizeof headers) };
    sender s;
    (void)state;
    now_is = (world){ .headers_max = SIZE_MAX };
    open_sender(&s);
    rows[0].destination = (wb_written_text)TEXT("forbidden");
    rows[1].number = 2;
    assert_int_equal(send_rows(&s, rows, 2), WB_OK);
    assert_int_equal(now_is.removed, 0);
    assert_int_equal(now_is.postponed, 1);
    assert_int_equal(now_is.windows, 1);
    assert_true(wb_written_lot_has_left(&s.lot));
    close_sender(&s);
}

/* What a silent destination is to get waits, and no window waits for it. */
static void test_silent_destination_is_held(void **state)
{
    wb_written rows[] = { whole, whole };
    sender s;
    (void)state;
    open_sender(&s);
    rows[0].destination = (wb_written_text)TEXT("deaf");
    rows[0].key = rows[1].key = (wb_written_text){ NULL, 0 };
    rows[1].number = 2;
    for (int is_known = 0; is_known < 2; is_known++) {
        now_is = (world){ .is_silent = 1 };
        assert_int_equal(send_rows(&s, rows, 2), is_known ? WB_OK : WB_IN_DOUBT);
        assert_int_equal(now_is.removed, 1);
        assert_int_equal(now_is.postponed, 1);
        assert_int_equal(now_is.sizes[0], is_known ? 1 : 2);
    }
    assert_int_equal(now_is.windows, 1);
    close_sender(&s);
}

/* What tries whether a destination still is silent goes when all others are out. */
static void test_probe_is_apart(void **state)
{
    wb_written rows[] = { whole, whole, whole };
    sender s;
    (void)state;
    rows[0].destination = (wb_written_text)TEXT("deaf");
    rows[1].key = rows[2].key = (wb_written_text){ NULL, 0 };
    now_is = (world){ .is_silent = 1 };
    open_sender(&s);
    assert_int_equal(send_rows(&s, rows, 1), WB_IN_DOUBT);
    assert_int_equal(now_is.postponed, 1);
    assert_int_equal(s.lot.silences.count, 1);

    s.lot.silences.of[0].until = 0; /* its time is over */
    now_is = (world){ .is_silent = 0 };
    assert_int_equal(send_rows(&s, rows, 3), WB_OK);
    assert_int_equal(now_is.removed, 2);
    assert_int_equal(now_is.windows, 1);
    assert_int_equal(now_is.sizes[0], 2);
    assert_int_equal(wb_written_lot_has_probes(&s.lot), 1);
    assert_int_equal(wb_written_lot_probe(&s.lot, &s.outlet, &s.error), WB_OK);
    assert_int_equal(wb_written_lot_settle(&s.lot, NULL, &s.error), WB_OK);
    assert_int_equal(wb_written_lot_has_probes(&s.lot), 0);
    assert_int_equal(now_is.removed, 3);
    assert_int_equal(now_is.sizes[1], 1);
    assert_int_equal(s.lot.silences.count, 0);
    close_sender(&s);
}

/* ---- odd rows ------------------------------------------------------------------------------- */

#define ODD_ROWS 2000
#define ODD_TEXT_MAX 300

/* In memory of its own size, so that a sanitizer sees who reads on. */
static wb_written_text text_in_its_own_memory(const char *data, size_t size)
{
    char *copy = wb_alloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    return (wb_written_text){ copy, size };
}

static unsigned odd_state = 20261126;

static unsigned odd(unsigned below)
{
    odd_state = odd_state * 1103515245u + 12345u;
    return (odd_state >> 8) % below;
}

/* One of those, or what no checks have seen: NULs, bytes of no character, more than a database would take. */
static wb_written_text odd_text(const char *const *good, unsigned count, int may_be_none)
{
    char text[ODD_TEXT_MAX];
    unsigned kind = odd(8);
    size_t size = odd(4) ? odd(12) : odd(ODD_TEXT_MAX);
    if (kind == 0 && may_be_none)
        return (wb_written_text){ NULL, 0 };
    if (kind < 5) {
        const char *one = good[odd(count)];
        size = strlen(one);
        memcpy(text, one, size);
        if (kind == 1 && size) /* with a byte that is another */
            text[odd((unsigned)size)] = (char)odd(256);
        return text_in_its_own_memory(text, kind == 2 ? odd((unsigned)size + 1) : size);
    }
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(kind == 5 ? 0 : kind == 6 ? 'a' : odd(256));
    return text_in_its_own_memory(text, size);
}

static wb_written odd_row(uint64_t number)
{
    static const char *const ids[] = { "id-1", "0195-beef" }, *const types[] = { "A.Type", "B" }, *const queues[] = { "queue", "deaf" };
    static const char *const keys[] = { "k", "l", "m" }, *const bodies[] = { "", "body" };
    static const char *const headers[] = { "{}", "{\"a\": \"b\"}", "{\"\\ud83d\\ude00\":\"\\u0041\\n\"}",
                                           "{\"NServiceBus.TimeSent\": \"x\", \"NServiceBus.MessageId\": \"y\"}",
                                           "{\"a\": \"\xff\xc3\"}", "{\"a\": 1}" };
    return (wb_written){ .struct_size = sizeof(wb_written), .number = number, .form = WB_WRITTEN_FORM, .tries = odd(5),
                         .written = odd(3) ? INT64_C(1700000000123456000) : odd(2) ? INT64_MAX : INT64_MIN,
                         .id = odd_text(ids, 2, 0), .destination = odd_text(queues, 2, 1), .type = odd_text(types, 2, 0),
                         .headers = odd_text(headers, 6, 1), .key = odd_text(keys, 3, 1), .body = odd_text(bodies, 2, 0) };
}

static void free_row(const wb_written *row)
{
    const wb_written_text texts[] = { row->id, row->destination, row->type, row->headers, row->key, row->body };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free((void *)(uintptr_t)texts[i].data);
}

/* Whatever a row holds, it is sent or in the error queue; nothing of it is read when it is gone. */
static void test_odd_rows(void **state)
{
    static wb_written rows[WB_WRITTEN_LOT_MAX];
    int has_turn;
    sender s;
    (void)state;
    wb_log_set_level(-1);
    open_sender(&s);
    for (size_t done = 0; done < ODD_ROWS; done += 50) {
        now_is = (world){ .rows = rows, .row_count = 50, .headers_max = SIZE_MAX };
        for (size_t i = 0; i < 50; i++)
            rows[i] = odd_row(done + i + 1);
        assert_int_equal(wb_written_lot_fetch(&s.lot, NULL, 0, 0, &has_turn, &s.error), WB_OK);
        for (size_t i = 0; i < 50; i++)
            free_row(&rows[i]);
        s.outlet.until = wb_clock_monotonic() + 60 * WB_SECOND;
        assert_int_equal(wb_written_lot_dispatch(&s.lot, &s.outlet, &s.error), WB_OK);
        if (wb_written_lot_has_left(&s.lot)) /* behind what was moved, with its key */
            assert_true(wb_written_lot_is_followed(&s.lot));
        assert_int_equal(wb_written_lot_settle(&s.lot, NULL, &s.error), WB_OK);
        assert_true(now_is.removed >= 10);
        assert_int_equal(now_is.postponed, 0);
    }
    wb_log_set_level(WB_LOG_INFO);
    close_sender(&s);
}

/* ---- the relay ----------------------------------------------------------------------------- */

/* Two rows in a table, and a broker. Who is to see no more of it stops the relay. */
typedef struct {
    wb_pipeline pipeline;
    size_t rows, windows, removed;
    int send_breaks;   /* when the first row is out */
    int settle_answer; /* of the first time */
    int sessions;      /* open now */
} relayed;

static relayed there;

static int open_table(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    (void)persistence, (void)error;
    there.sessions++;
    *ret_session = (wb_storage_session *)&there;
    return WB_OK;
}

static void close_table(wb_storage_session *session)
{
    (void)session;
    there.sessions--;
}

static int table_is_installed(wb_storage_session *session, int *ret_is_installed, wb_error *error)
{
    (void)session, (void)error;
    *ret_is_installed = 1;
    return WB_OK;
}

static int fetch_table(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument, wb_error *error)
{
    wb_written row = whole;
    (void)session, (void)error;
    fetch->has_turn = 1;
    row.key = (wb_written_text){ NULL, 0 };
    for (row.number = 1 + there.removed; row.number <= there.rows; row.number++)
        assert_int_equal(visit(argument, &row), WB_OK);
    return WB_OK;
}

static int settle_table(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                        const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    int r = there.settle_answer;
    (void)session, (void)removed, (void)rests;
    assert_int_equal(rest_count, 0);
    there.settle_answer = WB_OK;
    if (r != WB_OK)
        return wb_error_set(error, r, WB_CAUSE_SERVER, 0, "not now");
    there.removed += removed_count;
    there.pipeline.stop |= there.removed == there.rows;
    return WB_OK;
}

static int open_broker(wb_transport *transport, uint32_t purpose, uint32_t prefetch, wb_transport_session **ret_session,
                       wb_error *error)
{
    (void)transport, (void)purpose, (void)prefetch, (void)error;
    there.sessions++;
    *ret_session = (wb_transport_session *)&there;
    return WB_OK;
}

static void close_broker(wb_transport_session *session)
{
    (void)session;
    there.sessions--;
}

static int send_broker(wb_transport_session *session, wb_operation *const *operations, size_t count, int64_t deadline,
                       wb_error *error)
{
    (void)session, (void)deadline;
    there.pipeline.stop |= ++there.windows == 3; /* something is wrong */
    for (size_t i = 0; i < count; i++) {
        operations[i]->result = WB_OK;
        if (!there.send_breaks)
            continue;
        there.pipeline.stop = 1;
        return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0, "it is gone");
    }
    return WB_OK;
}

static void relay_rows(size_t rows, int send_breaks, int settle_answer)
{
    static const wb_written_ops written = { .struct_size = sizeof written, .is_installed = table_is_installed,
                                            .fetch = fetch_table, .settle = settle_table };
    static const wb_persistence_ops persistence = { .struct_size = sizeof persistence, .open = open_table,
                                                    .close = close_table, .written = &written };
    static const wb_transport_ops transport = { .struct_size = sizeof transport, .open = open_broker,
                                                .close = close_broker, .send = send_broker };
    wb_written_relay relay = { .pipeline = &there.pipeline, .retries = 3 };
    there = (relayed){ .rows = rows, .send_breaks = send_breaks, .settle_answer = settle_answer,
                       .pipeline = { .endpoint = "desk", .mode = WB_MODE_RECEIVE_ONLY, .outbox = 1,
                                     .persistence_ops = &persistence, .transport_ops = &transport,
                                     .origin = wb_origin_make("desk", 1, 1024) } };
    wb_pipeline_init(&there.pipeline);
    wb_log_set_level(-1);
    assert_int_equal(wb_written_relay_start(&relay), 0);
    wb_written_relay_stop(&relay); /* when the broker or the table said so */
    wb_log_set_level(WB_LOG_INFO);
    wb_pipeline_free(&there.pipeline);
    assert_int_equal(there.sessions, 0);
}

/* That a row is out could not be told: that is told first, and the row is not fetched again. */
static void test_relay_tells_before_it_looks_again(void **state)
{
    (void)state;
    relay_rows(1, 0, WB_RETRY);
    assert_int_equal(there.removed, 1);
    assert_int_equal(there.windows, 1);
}

/* The broker is lost behind the first of two, and the endpoint stops: the first is not sent again by the next one. */
static void test_relay_tells_what_is_out(void **state)
{
    (void)state;
    relay_rows(2, 1, WB_OK);
    assert_int_equal(there.windows, 1);
    assert_int_equal(there.removed, 1);
}

/* ---- looks --------------------------------------------------------------------------------- */

#define MS WB_MILLISECOND

/* @return when it ended. */
static int64_t look_at(wb_written_looks *looks, int64_t now, int64_t took, uint64_t highest, uint64_t last, int has_keys)
{
    const wb_written_look look = { .behind = wb_written_looks_next(looks, now), .last = last, .highest = highest,
                                   .has_keys = has_keys, .count = highest ? 1 : 0, .took = took, .ended = now + took };
    wb_written_looks_note(looks, &look);
    return look.ended;
}

static void test_looks_that_are_cheap(void **state)
{
    wb_written_looks looks = { 0 };
    int64_t now = 1000 * MS;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(wb_written_looks_next(&looks, now), 0);
        now = look_at(&looks, now, i == 5 ? 500 * MS : MS, 10, 10, i & 1); /* one slow look is the machine's */
        assert_int_equal(wb_written_looks_pause(&looks, now), 20 * MS);
        assert_false(wb_written_looks_are_dear(&looks));
        now += 20 * MS;
    }
}

/* What is given may take time. */
static void test_looks_that_are_worth_it(void **state)
{
    wb_written_looks looks = { 0 };
    const wb_written_look look = { .highest = 1000, .count = 1000, .size = 4 << 20, .took = 30 * MS };
    (void)state;
    for (int i = 0; i < 3; i++)
        wb_written_looks_note(&looks, &look);
    assert_false(wb_written_looks_are_dear(&looks));
}

static void test_looks_that_are_dear(void **state)
{
    wb_written_looks looks = { 0 };
    int64_t now = 1000 * MS, ended;
    (void)state;
    now = look_at(&looks, now, 10 * MS, 0, 0, 0);
    now = ended = look_at(&looks, now, 10 * MS, 0, 0, 0);
    assert_true(wb_written_looks_are_dear(&looks));
    assert_int_equal(wb_written_looks_next(&looks, now), 0); /* nobody knows what they have read */
    assert_int_equal(wb_written_looks_pause(&looks, now), 90 * MS);
    now = ended = look_at(&looks, now + 90 * MS, 10 * MS, 0, 500, 0);
    assert_int_equal(wb_written_looks_pause(&looks, now), 20 * MS);
    assert_int_equal(wb_written_looks_next(&looks, now + 20 * MS), 500);

    now = look_at(&looks, now + 20 * MS, MS, 700, 0, 0);
    assert_int_equal(wb_written_looks_next(&looks, now), 700);
    assert_int_equal(wb_written_looks_next(&looks, ended + 189 * MS), 700);
    assert_int_equal(wb_written_looks_next(&looks, ended + 190 * MS), 0);

    now = look_at(&looks, now, MS, 0, 0, 1); /* with a key: all, and sooner */
    assert_int_equal(wb_written_looks_next(&looks, now), 0);
    assert_int_equal(now + wb_written_looks_pause(&looks, now), ended + 90 * MS);

    now = ended = look_at(&looks, ended + 90 * MS, 10 * WB_SECOND, 0, 800, 0);
    now = ended = look_at(&looks, now + 190 * MS, 10 * WB_SECOND, 0, 800, 0);
    assert_int_equal(wb_written_looks_next(&looks, ended + 4999 * MS), 800); /* never longer */
    assert_int_equal(wb_written_looks_next(&looks, ended + 5000 * MS), 0);
    looks.wants_all = 1;
    assert_int_equal(wb_written_looks_next(&looks, ended), 0);
}

/* Behind a number only what has no key leaves; the others are seen. */
static void test_lot_behind_a_number(void **state)
{
    wb_written rows[] = { whole, whole, whole };
    int has_turn = 0;
    sender s;
    (void)state;
    rows[0].number = 5;
    rows[1].number = 6;
    rows[2].number = 7;
    rows[0].key = rows[1].key = (wb_written_text){ NULL, 0 };
    now_is = (world){ .rows = rows, .row_count = 2 };
    open_sender(&s);
    assert_int_equal(wb_written_lot_fetch(&s.lot, NULL, 4, 0, &has_turn, &s.error), WB_OK);
    assert_int_equal(s.lot.count, 2);
    assert_int_equal(s.lot.look.highest, 6);
    assert_false(s.lot.look.has_keys);
    assert_int_equal(now_is.behind, 4);

    now_is.row_count = 3;
    assert_int_equal(wb_written_lot_fetch(&s.lot, NULL, 4, 0, &has_turn, &s.error), WB_OK);
    assert_int_equal(s.lot.count, 2);
    assert_int_equal(s.lot.look.highest, 6);
    assert_true(s.lot.look.has_keys);
    assert_true(wb_written_lot_has_left(&s.lot));
    assert_int_equal(wb_written_lot_fetch(&s.lot, NULL, 0, 1, &has_turn, &s.error), WB_OK);
    assert_int_equal(s.lot.count, 3);
    assert_int_equal(s.lot.look.last, 99);
    assert_int_equal(send_rows(&s, rows, 3), WB_OK);
    assert_false(wb_written_lot_has_left(&s.lot));
    close_sender(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_headers_that_are_none),
        cmocka_unit_test(test_headers_at_their_limits),
        cmocka_unit_test(test_message_is_the_same),
        cmocka_unit_test(test_rows_that_are_no_message),
        cmocka_unit_test(test_time_of_the_program),
        cmocka_unit_test(test_retry_of_what_is_refused),
        cmocka_unit_test(test_text_is_mended),
        cmocka_unit_test(test_reason_that_is_refused),
        cmocka_unit_test(test_copy_is_cut),
        cmocka_unit_test(test_privilege_is_missing),
        cmocka_unit_test(test_error_queue_is_silent),
        cmocka_unit_test(test_copy_waits_for_its_key),
        cmocka_unit_test(test_silent_destination_is_held),
        cmocka_unit_test(test_probe_is_apart),
        cmocka_unit_test(test_odd_rows),
        cmocka_unit_test(test_relay_tells_before_it_looks_again),
        cmocka_unit_test(test_relay_tells_what_is_out),
        cmocka_unit_test(test_looks_that_are_cheap),
        cmocka_unit_test(test_looks_that_are_worth_it),
        cmocka_unit_test(test_looks_that_are_dear),
        cmocka_unit_test(test_lot_behind_a_number),
    };
    return cmocka_run_group_tests_name("written", tests, NULL, NULL);
}

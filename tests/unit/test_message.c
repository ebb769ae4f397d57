/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/base/sha256.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"
#include "core/message/text.h"
#include "core/recover/attempts.h"
#include "core/recover/parked.h"
#include "core/recover/suspicions.h"
#include "core/recover/recoverability.h"

static const wb_origin origin = { .endpoint = { "orders", 6 },
                                  .reply_to = { "orders", 6 },
                                  .machine = { "machine", 7 },
                                  .host_id = { "0123", 4 },
                                  .body_max = 1000 };

static void hash_text(const char *text, size_t repeat, char hex[65])
{
    unsigned char digest[WB_SHA256_SIZE];
    wb_sha256 hash;
    wb_sha256_init(&hash);
    for (size_t i = 0; i < repeat; i++)
        wb_sha256_update(&hash, text, strlen(text));
    wb_sha256_final(&hash, digest);
    for (size_t i = 0; i < WB_SHA256_SIZE; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* The examples of FIPS 180-4. */
static void test_sha256(void **state)
{
    char hex[65];
    (void)state;
    hash_text("", 1, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_text("abc", 1, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash_text("a", 1000000, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static const wb_id_seed seed = { .endpoint = "orders", .kind = 1, .type = "T", .destination = "q",
                                 .cause = "m-1", .cause_size = 3 };

static void test_ids(void **state)
{
    char a[WB_GENERATED_ID_SIZE], b[WB_GENERATED_ID_SIZE];
    wb_id_seed other[] = { seed, seed, seed, seed, seed, seed, seed, seed, seed, seed };
    (void)state;
    wb_id_derive(&seed, a);
    wb_id_derive(&seed, b);
    assert_string_equal(a, b); /* every attempt sends the same id */
    assert_int_equal(a[14], '8');
    other[0].ordinal = 1;
    other[1].endpoint = "billing"; /* two endpoints handle the same event */
    other[2].cause = "m-1\0";      /* a NUL byte is part of an id */
    other[2].cause_size = 4;
    other[3].kind = 2;
    other[4].immediate = 1;
    other[5].type = "U";
    other[6].destination = "r";
    other[7].destination = NULL;
    other[8].ordinal = 256;
    other[9].ordinal = 65536;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        wb_id_derive(&other[i], b);
        assert_string_not_equal(a, b);
    }
    wb_id_generate(a);
    wb_id_generate(b);
    assert_string_not_equal(a, b);
    assert_int_equal(a[14], '7');
}

static void derive_twice(const wb_id_seed *from, char id[WB_GENERATED_ID_SIZE])
{
    char again[WB_GENERATED_ID_SIZE];
    wb_id_derive(from, id);
    wb_id_derive(from, again); /* now with what is kept */
    assert_string_equal(again, id);
}

/* What is kept from one derivation to the next changes nothing; nor does what is too long to keep. */
static void test_ids_again(void **state)
{
    static char longest[2000];
    static const char *const texts[] = { "A", "B", "C", "D", "E", "F", "AB", longest };
    enum { COUNT = sizeof texts / sizeof texts[0] };
    char ids[3 * COUNT][WB_GENERATED_ID_SIZE], id[WB_GENERATED_ID_SIZE];
    wb_id_seed seeds[3 * COUNT];
    (void)state;
    memset(longest, 'l', sizeof longest - 1);
    for (size_t i = 0; i < COUNT; i++) {
        seeds[3 * i] = seeds[3 * i + 1] = seeds[3 * i + 2] = seed;
        seeds[3 * i].type = texts[i];
        seeds[3 * i + 1].destination = texts[i];
        seeds[3 * i + 2].endpoint = texts[i];
    }
    for (size_t i = 0; i < 3 * COUNT; i++) {
        derive_twice(&seeds[i], ids[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(ids[k], ids[i]);
    }
    for (size_t i = 0; i < 3 * COUNT; i++) {
        derive_twice(&seeds[i], id);
        assert_string_equal(id, ids[i]);
    }
    /* Stored operations of a rolling upgrade are made again by another process: this never changes. */
    wb_id_derive(&seed, id);
    assert_string_equal(id, "08514540-1587-819f-9ab3-6957307de1a2");
}

/* A version 7 UUID keeps its time; what only looks like one does not. */
static void test_ordered_ids(void **state)
{
    static const char *const others[] = {
        "018f0e1e-7a00-4abc-8def-0123456789ab", "018f0e1e-7a00-7abc-cdef-0123456789ab",
        "018f0e1ex7a00-7abc-8def-0123456789ab", "018g0e1e-7a00-7abc-8def-0123456789ab",
    };
    char id[WB_GENERATED_ID_SIZE];
    wb_id_seed ordered = seed;
    (void)state;
    ordered.cause = "018F0e1e-7a00-7abc-8def-0123456789ab";
    ordered.cause_size = 36;
    wb_id_derive(&ordered, id);
    assert_memory_equal(id, "018f0e1e-7a00-7", 15);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ordered.cause = others[i];
        wb_id_derive(&ordered, id);
        assert_int_equal(id[14], '8');
    }
}

static void test_plain_text(void **state)
{
    (void)state;
    assert_true(wb_text_is_plain("", 0));
    assert_true(wb_text_is_plain("orders.\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 16));
    assert_false(wb_text_is_plain("\xff\xfe", 2));
    assert_false(wb_text_is_plain("a\0b", 3));
    assert_false(wb_text_is_plain("a\nb", 3));
    assert_false(wb_text_is_plain("\x7f", 1));
    assert_false(wb_text_is_plain("\xc0\x80", 2));         /* overlong */
    assert_false(wb_text_is_plain("\xe0\x80\x80", 3));     /* overlong */
    assert_false(wb_text_is_plain("\xed\xa0\x80", 3));     /* half of a pair */
    assert_false(wb_text_is_plain("\xf4\x90\x80\x80", 4)); /* beyond Unicode */
    assert_false(wb_text_is_plain("\xe2\x82", 2));         /* cut */
}

/* Many in a millisecond, by threads that share a clock: whoever is given one of somebody else's is refused. They draw for less
 * than the hundred milliseconds by which a clock was set back, and no thread was late. */
#define DRAWERS 4
#define DRAWN 45000

static void *draw_numbers(void *argument)
{
    static atomic_int drawn; /* of all: two thousand a millisecond */
    uint64_t *numbers = argument;
    for (size_t i = 0; i < DRAWN; i++)
        numbers[i] = wb_batch_number((INT64_C(1700000000000) + atomic_fetch_add(&drawn, 1) / 2000) * WB_MILLISECOND);
    return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void test_batch_numbers_differ(void **state)
{
    (void)state;
    uint64_t *numbers = wb_alloc_zero((size_t)DRAWERS * DRAWN, sizeof *numbers);
    pthread_t threads[DRAWERS];
    for (size_t i = 0; i < DRAWERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw_numbers, numbers + i * DRAWN), 0);
    for (size_t i = 0; i < DRAWERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    qsort(numbers, (size_t)DRAWERS * DRAWN, sizeof *numbers, compare_numbers);
    for (size_t i = 1; i < (size_t)DRAWERS * DRAWN; i++)
        assert_true(numbers[i] != numbers[i - 1] && !wb_batch_number_is_closed(numbers[i]));
    free(numbers);
}

static void test_batch_numbers(void **state)
{
    (void)state;
    uint64_t low = wb_batch_number_at(wb_clock_wall() - WB_SECOND);
    uint64_t high = wb_batch_number_at(wb_clock_wall() + WB_SECOND);
    uint64_t number = wb_batch_number(wb_clock_wall());
    assert_true(low < number && number < high);
    assert_true(number <= INT64_MAX); /* databases have signed integers */
    assert_int_equal(wb_batch_number_time(wb_batch_number(INT64_C(1700000000123456789))), INT64_C(1700000000123000000));
}

/* The names in a list of types, with a bar behind each. */
static void expect_types(const char *list, const char *wanted)
{
    char name[WB_TYPE_SIZE], all[1000] = "";
    size_t size = 0;
    while (wb_type_next(&list, name, &size)) {
        assert_int_equal(size, strlen(name));
        strcat(strcat(all, name), "|");
    }
    assert_string_equal(all, wanted);
}

#define LIBRARY "System.Private.CoreLib, Version=10.0.0.0, Culture=neutral, PublicKeyToken=7cec85d7bea7798e"

static void test_types(void **state)
{
    (void)state;
    expect_types("Sales.PlaceOrder, Sales, Version=1.0.0.0;Sales.Order ; Base",
                 "Sales.PlaceOrder|Sales.Order|Base|");
    expect_types("", "");
    expect_types(" ;, Assembly;; A;", "A|");
    expect_types("Shop.Outer+Inner, Peer, Version=1.0.0.0", "Shop.Outer+Inner|");
}

/* As captured, and what else .NET may write. */
static void test_generic_types(void **state)
{
    (void)state;
    expect_types("Shop.Wrapper`1[[System.Int32, " LIBRARY "]], Peer, Version=1.0.0.0",
                 "Shop.Wrapper`1[[System.Int32]]|");
    expect_types("Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String, " LIBRARY "]], " LIBRARY
                 "]], Peer, Version=1.0.0.0;Shop.Base, Peer",
                 "Shop.Wrapper`1[[System.Collections.Generic.List`1[[System.String]]]]|Shop.Base|");
    expect_types("Shop.Pair`2[[System.Int32[,], " LIBRARY "],[Shop.Key[], Peer]], Peer",
                 "Shop.Pair`2[[System.Int32[,]],[Shop.Key[]]]|");
    expect_types("Shop.Pair`2[ [ A , B ] , [ C ] ]", "Shop.Pair`2[[A],[C]]|");
    expect_types("Shop.Pair`2[[A],[C]]", "Shop.Pair`2[[A],[C]]|");
    expect_types("Shop.Pair`2[A,Shop.Wrapper`1[B]]", "Shop.Pair`2[A,Shop.Wrapper`1[B]]|");
    /* cut, as the property is, or broken: never more than the name, and the next one is read */
    expect_types("Shop.Wrapper`1[[System.Int32", "Shop.Wrapper`1[[System.Int32|");
    expect_types("A[[B, C;D]]];E", "A[[B|D]]]|E|");
}

static void test_types_too_long(void **state)
{
    char list[600], deep[200];
    (void)state;
    memset(list, 'x', 255);
    strcpy(list + 255, ";B");
    char wanted[260];
    memcpy(wanted, list, 255);
    strcpy(wanted + 255, "|B|");
    expect_types(list, wanted);
    memset(list, 'x', 256);
    strcpy(list + 256, " ;B");
    expect_types(list, "B|");
    memset(deep, '[', sizeof deep);
    deep[0] = 'A';
    strcpy(deep + 150, ";B");
    expect_types(deep, "B|");
}

static const wb_header *header_of(const wb_operation *operation, const char *name)
{
    for (size_t i = 0; i < operation->header_count; i++)
        if (strcmp(operation->headers[i].name, name) == 0)
            return &operation->headers[i];
    return NULL;
}

static wb_message make_cause(const wb_header *headers, size_t count)
{
    return (wb_message){ .struct_size = sizeof(wb_message), .id = "cause", .id_size = 5,
                         .type = "Sales.PlaceOrder", .body = "", .headers = headers, .header_count = count };
}

static void test_outgoing_headers(void **state)
{
    wb_arena arena;
    wb_operation_list list = { 0 };
    wb_error error;
    wb_header incoming[] = { { WB_HEADER_CONVERSATION_ID, "talk", 26, 4 },
                             { WB_HEADER_REPLY_TO, "client", strlen(WB_HEADER_REPLY_TO), 6 } };
    wb_header own[] = { WB_HEADER("Ünïcode", "värde"), WB_HEADER(WB_HEADER_CONTENT_TYPE, "text/plain") };
    incoming[0].name_size = strlen(WB_HEADER_CONVERSATION_ID);
    wb_message cause = make_cause(incoming, 2);
    wb_outgoing outgoing = { .type = "Sales.OrderPlaced", .body = "x", .body_size = 1, .headers = own,
                             .header_count = 2 };
    (void)state;
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, &cause, 0, &arena,
                                     &list, &error), WB_OK);
    const wb_operation *operation = &list.first->operation;
    assert_string_equal(operation->destination, "Sales.OrderPlaced");
    assert_string_equal(header_of(operation, WB_HEADER_INTENT)->value, "Publish");
    assert_string_equal(header_of(operation, WB_HEADER_CONVERSATION_ID)->value, "talk");
    assert_string_equal(header_of(operation, WB_HEADER_RELATED_TO)->value, "cause");
    assert_string_equal(header_of(operation, WB_HEADER_CONTENT_TYPE)->value, "text/plain");
    assert_string_equal(header_of(operation, "Ünïcode")->value, "värde");
    assert_int_equal(strlen(header_of(operation, WB_HEADER_TIME_SENT)->value), 28);
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_REPLY, &outgoing, sizeof outgoing, &cause, 1, &arena,
                                     &list, &error), WB_OK);
    assert_string_equal(list.last->operation.destination, "client");
    wb_arena_free(&arena);
}

/* Under the id of the one in hand it is that one: it has what its sender gave it, and nothing is made up. */
static void test_sent_on(void **state)
{
    const wb_header own[] = { WB_HEADER("Shop.User", "ada"), WB_HEADER(WB_HEADER_REPLY_TO, "client") };
    static const char *const ids[] = { "cause", "caus", "other" };
    wb_message cause = make_cause(NULL, 0);
    wb_error error;
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < 3; i++) {
        wb_operation_list list = { 0 };
        const wb_outgoing outgoing = { .type = "T", .destination = "q", .id = ids[i], .id_size = WB_TEXT,
                                       .headers = own, .header_count = 2 };
        assert_int_equal(wb_outgoing_add(&origin, WB_KIND_SEND, &outgoing, sizeof outgoing, &cause, 0, &arena,
                                         &list, &error), WB_OK);
        const wb_operation *operation = &list.first->operation;
        assert_string_equal(header_of(operation, WB_HEADER_MESSAGE_ID)->value, ids[i]);
        assert_string_equal(header_of(operation, WB_HEADER_TYPES)->value, "T");
        assert_string_equal(header_of(operation, WB_HEADER_REPLY_TO)->value, "client");
        assert_int_equal(operation->header_count == 4, i == 0);
        assert_int_equal(header_of(operation, WB_HEADER_TIME_SENT) == NULL, i == 0);
        assert_int_equal(header_of(operation, WB_HEADER_CONTENT_TYPE) == NULL, i == 0);
    }
    wb_arena_free(&arena);
}

#define HEADER(name, value) { name, value, sizeof name - 1, sizeof value - 1 }

/* What a saga of NServiceBus asks, as captured from one, and a trace. */
static const wb_header asked_by_saga[] = {
    HEADER("NServiceBus.ReplyToAddress", "net"),
    HEADER("NServiceBus.OriginatingSagaId", "107903c5-da9f-8edd-b929-6dd4aa3b748d"),
    HEADER("NServiceBus.OriginatingSagaType", "AskSaga, Peer, Version=1.0.0.0"),
    HEADER("traceparent", "00-45f7e53b7c2458eddb112b6e6ed457bf-3b31d146a19c8a94-01"),
    HEADER("tracestate", "vendor=1"),
    HEADER("baggage", "customer=7"),
};
#define ASKED_COUNT (sizeof asked_by_saga / sizeof asked_by_saga[0])

static void test_replies_to_sagas(void **state)
{
    static const int kinds[] = { WB_KIND_REPLY, WB_KIND_SEND };
    wb_message cause = make_cause(asked_by_saga, ASKED_COUNT);
    wb_outgoing outgoing = { .type = "Shop.Answer", .destination = "net" };
    wb_error error;
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < 2; i++) {
        wb_operation_list list = { 0 };
        assert_int_equal(wb_outgoing_add(&origin, kinds[i], &outgoing, sizeof outgoing, &cause, 0, &arena,
                                         &list, &error), WB_OK);
        const wb_header *id = header_of(&list.first->operation, "NServiceBus.SagaId");
        const wb_header *type = header_of(&list.first->operation, "NServiceBus.SagaType");
        assert_int_equal(id != NULL, kinds[i] == WB_KIND_REPLY);
        assert_int_equal(type != NULL, kinds[i] == WB_KIND_REPLY);
        if (id && type) {
            assert_string_equal(id->value, "107903c5-da9f-8edd-b929-6dd4aa3b748d");
            assert_string_equal(type->value, "AskSaga, Peer, Version=1.0.0.0");
        }
        assert_null(header_of(&list.first->operation, "NServiceBus.OriginatingSagaId"));
    }
    wb_arena_free(&arena);
}

/* What it is derived from stands behind it, with whatever assembly it is given. */
static void test_bases(void **state)
{
    static const wb_type_bases bases[] = { { "Sales.OrderPlaced", "Sales.OrderPlaced;Sales.IOrderEvent" } };
    static const char *const types[] = { "Sales.OrderPlaced, Sales, Version=1.0", "Sales.OrderPlaced", "Sales.Other" };
    wb_origin derived = origin;
    wb_error error;
    wb_arena arena;
    (void)state;
    derived.bases = bases;
    derived.base_count = 1;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < 3; i++) {
        wb_operation_list list = { 0 };
        wb_outgoing outgoing = { .type = types[i] };
        assert_int_equal(wb_outgoing_add(&derived, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, NULL, 0, &arena,
                                         &list, &error), WB_OK);
        assert_string_equal(list.first->operation.destination, i < 2 ? "Sales.OrderPlaced" : types[i]);
        assert_string_equal(header_of(&list.first->operation, WB_HEADER_TYPES)->value,
                            i < 2 ? bases[0].list : types[i]);
    }
    wb_arena_free(&arena);
}

static void test_traces(void **state)
{
    static char much[30 * 1024 + 1];
    wb_header own[] = { WB_HEADER("tracestate", "mine"), WB_HEADER("A", much), WB_HEADER("B", much) };
    wb_message cause = make_cause(asked_by_saga, ASKED_COUNT);
    wb_outgoing outgoing = { .type = "Shop.Answer", .headers = own, .header_count = 1 };
    wb_operation_list list = { 0 };
    wb_error error;
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, &cause, 0, &arena,
                                     &list, &error), WB_OK);
    const wb_operation *operation = &list.first->operation;
    assert_string_equal(header_of(operation, "traceparent")->value, asked_by_saga[3].value);
    assert_string_equal(header_of(operation, "tracestate")->value, "mine"); /* the handler's wins */
    assert_string_equal(header_of(operation, "baggage")->value, "customer=7");

    /* no room is left for what a peer wants carried on */
    memset(much, 'x', 30 * 1024 - 15);
    outgoing.header_count = 3;
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, &cause, 1, &arena,
                                     &list, &error), WB_OK);
    assert_null(header_of(&list.last->operation, "traceparent"));

    /* one of them is enough to take it */
    static char more[31 * 1024];
    memset(more, 'x', sizeof more);
    wb_header theirs[] = { { "tracestate", more, 10, sizeof more }, { "baggage", more, 7, sizeof more } };
    cause = make_cause(theirs, 2);
    outgoing.header_count = 0;
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, &cause, 2, &arena,
                                     &list, &error), WB_OK);
    assert_non_null(header_of(&list.last->operation, "tracestate"));
    assert_null(header_of(&list.last->operation, "baggage"));
    wb_arena_free(&arena);
}

/* 256 of a handler, and what the platform adds: whoever receives it takes it. */
static void test_platform_headers(void **state)
{
    static const wb_header theirs[] = { HEADER("NServiceBus.X", "1"), HEADER("$.diagnostics.x", "1"),
                                        HEADER("Waybill.Priority", "1"), HEADER("traceparent", "1"),
                                        HEADER("tracestate", "1"), HEADER("baggage", "1") };
    static const wb_header own[] = { HEADER("nservicebus", "1"), HEADER("traceparent2", "1") };
    (void)state;
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        assert_true(wb_header_is_platforms(&theirs[i]));
    for (size_t i = 0; i < 2; i++)
        assert_false(wb_header_is_platforms(&own[i]));
}

static void expect_key(wb_outgoing outgoing, const char *key)
{
    wb_operation_list list = { 0 };
    wb_arena arena;
    wb_error error;

    wb_arena_init(&arena, 4096);
    outgoing.type = "T";
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, NULL, 0, &arena,
                                     &list, &error), WB_OK);
    assert_int_equal(list.first->operation.key_size, strlen(key));
    if (*key)
        assert_memory_equal(list.first->operation.key, key, strlen(key));
    wb_arena_free(&arena);
}

static void test_outgoing_key(void **state)
{
    wb_header header = WB_HEADER("Waybill.Key", "h"), empty = WB_HEADER("Waybill.Key", "");
    (void)state;
    expect_key((wb_outgoing){ 0 }, "");
    expect_key((wb_outgoing){ .key = WB_STR("k") }, "k");
    expect_key((wb_outgoing){ .key = "kept-short", .key_size = 4 }, "kept");
    expect_key((wb_outgoing){ .headers = &header, .header_count = 1 }, "h");
    expect_key((wb_outgoing){ .headers = &empty, .header_count = 1 }, "");
    expect_key((wb_outgoing){ .key = "k", .key_size = WB_TEXT, .headers = &header, .header_count = 1 }, "k");
}

static void expect_refused(int kind, wb_outgoing outgoing, const char *reason)
{
    wb_arena arena;
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    wb_message cause = make_cause(NULL, 0);
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_outgoing_add(&origin, kind, &outgoing, sizeof outgoing, &cause, 0, &arena, &list,
                                     &error), WB_REJECT);
    assert_non_null(strstr(error.text, reason));
    assert_int_equal(list.count, 0);
    wb_arena_free(&arena);
}

static void test_outgoing_refused(void **state)
{
    char id[300];
    wb_header nameless = WB_HEADER("", "x");
    (void)state;
    memset(id, 'i', sizeof id);
    id[299] = '\0';
    expect_refused(WB_KIND_SEND, (wb_outgoing){ .destination = "q" }, "no type");
    expect_refused(WB_KIND_SEND, (wb_outgoing){ .type = "T" }, "no destination");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .destination = "q" }, "no destination");
    expect_refused(WB_KIND_REPLY, (wb_outgoing){ .type = "T" }, "no reply address");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .body_size = 1 }, "body has a size and is NULL");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .body = id, .body_size = 1001 }, "body_max");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .body = id, .body_size = SIZE_MAX - 1 }, "body_max");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .id = id, .id_size = WB_TEXT }, "255 bytes");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .headers = &nameless, .header_count = 1 },
                   "an outgoing header's name is empty");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .headers = &nameless, .header_count = 257 },
                   "256 headers");
    expect_refused(WB_KIND_SEND, (wb_outgoing){ .type = "T", .destination = "a\nb" }, "no text");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T\x1b" }, "no text");
}

/* A handler that sends in a loop does not fill the memory, whatever it sends. */
static void test_outgoing_of_a_message(void **state)
{
    static const int kinds[] = { WB_KIND_SEND, WB_KIND_PUBLISH, WB_KIND_REPLY };
    const wb_header reply_to = { WB_HEADER_REPLY_TO, "client", sizeof WB_HEADER_REPLY_TO - 1, 6 };
    const wb_outgoing event = { .type = "T" }, command = { .type = "T", .destination = "q" };
    wb_operation_list list = { 0 };
    wb_arena arena;
    const wb_message cause = make_cause(&reply_to, 1);
    (void)state;
    wb_arena_init(&arena, 1 << 20);
    for (uint32_t i = 0; i < WB_OUTGOING_PER_MESSAGE_MAX + 3; i++) {
        wb_error error = { 0 };
        const int kind = kinds[i % 3], is_one_more = i >= WB_OUTGOING_PER_MESSAGE_MAX;
        int r = wb_outgoing_add(&origin, kind, kind == WB_KIND_SEND ? &command : &event, sizeof event, &cause, i, &arena,
                                &list, &error);
        assert_int_equal(r, is_one_more ? WB_REJECT : WB_OK);
        assert_int_equal(error.cause == WB_CAUSE_TOO_LARGE, is_one_more);
        assert_int_equal(strcmp(error.text, "a message may cause at most 10000 outgoing messages") == 0, is_one_more);
    }
    assert_int_equal(list.count, WB_OUTGOING_PER_MESSAGE_MAX);
    wb_arena_free(&arena);
}

static void test_outgoing_headers_at_their_limit(void **state)
{
    wb_header headers[WB_OUTGOING_HEADERS_MAX];
    (void)state;
    for (size_t i = 0; i < WB_OUTGOING_HEADERS_MAX; i++)
        headers[i] = (wb_header){ "a", "v", 1, 1 };
    expect_key((wb_outgoing){ .type = "T", .headers = headers, .header_count = WB_OUTGOING_HEADERS_MAX }, "");
}

/* ---- sizes, flags, and what a later version may ask for ---- */

static wb_operation *add_well(wb_outgoing outgoing, wb_arena *arena)
{
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    outgoing.type = "T";
    if (wb_outgoing_add(&origin, WB_KIND_PUBLISH, &outgoing, sizeof outgoing, NULL, 0, arena, &list, &error) != WB_OK)
        fail_msg("%s", error.text);
    return &list.first->operation;
}

/* What lies behind an empty view is nobody's business. */
static void test_sizes_are_meant(void **state)
{
    static const char secret[] = "secret";
    const wb_header headers[] = { { "A", secret, 1, 0 }, { "Bsecret", secret, 1, 3 }, WB_HEADER("C", secret) };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    wb_operation *operation = add_well((wb_outgoing){ .body = secret, .id = "i\0x", .id_size = 3, .key = secret,
                                                      .key_size = WB_TEXT, .headers = headers, .header_count = 3 }, &arena);
    assert_int_equal(operation->body_size, 0);
    assert_memory_equal(operation->id, "i\0x", 3);
    assert_int_equal(operation->id_size, 3);
    assert_int_equal(operation->key_size, 6);
    assert_int_equal(header_of(operation, "A")->value_size, 0);
    assert_string_equal(header_of(operation, "A")->value, "");
    assert_string_equal(header_of(operation, "B")->value, "sec");
    assert_string_equal(header_of(operation, "C")->value, secret);
    operation = add_well((wb_outgoing){ .id = WB_STR("id"), .body = WB_STR("a\0b") }, &arena);
    assert_int_equal(operation->id_size, 2);
    assert_int_equal(operation->body_size, 3);
    assert_memory_equal(operation->body, "a\0b", 3);
    assert_int_equal(add_well((wb_outgoing){ .body = secret, .body_size = WB_TEXT }, &arena)->body_size, 6);
    wb_arena_free(&arena);
}

static void expect_header_refused(wb_header header, const char *reason)
{
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .headers = &header, .header_count = 1 }, reason);
}

static void test_sizes_refused(void **state)
{
    (void)state;
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .id = "id" }, "message's id is empty: its size is 0 (WB_TEXT ");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .id = "", .id_size = WB_TEXT }, "message's id is empty");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .key = "k" }, "message's key is empty: its size is 0 (WB_TEXT ");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .id_size = 2 }, "message's id has a size and is NULL");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .key_size = WB_TEXT }, "message's key has a size and is NULL");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .body_size = WB_TEXT }, "message's body has a size and is NULL");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .header_count = 1 }, "number of headers, and they are NULL");
    expect_header_refused((wb_header){ "A", "v", 0, 1 }, "header's name is empty: its size is 0 (WB_TEXT ");
    expect_header_refused((wb_header){ NULL, "v", 0, 1 }, "no name or no value");
    expect_header_refused((wb_header){ NULL, "v", 1, 1 }, "header's name has a size and is NULL");
    expect_header_refused((wb_header){ "A", NULL, 1, 0 }, "no name or no value");
    expect_header_refused((wb_header){ "A", NULL, 1, WB_TEXT }, "header's value has a size and is NULL");
}

static void test_flags_refused(void **state)
{
    (void)state;
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .flags = 12u | WB_IMMEDIATE }, "flags 0xc that this version");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .flags = 1u << 31 }, "WB_IMMEDIATE and WB_NON_PERSISTENT");
    expect_refused(WB_KIND_PUBLISH, (wb_outgoing){ .type = "T", .reserved = 1 }, "field reserved is not 0");
}

/* One that was built against a later header has more fields: what it sets there is not passed over. */
static void test_later_modules(void **state)
{
    struct {
        wb_outgoing outgoing;
        int64_t later;
    } more = { .outgoing = { .type = "T" } };
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &more.outgoing, sizeof more, NULL, 0, &arena, &list, &error),
                     WB_OK);
    more.later = 1;
    assert_int_equal(wb_outgoing_add(&origin, WB_KIND_PUBLISH, &more.outgoing, sizeof more, NULL, 0, &arena, &list, &error),
                     WB_REJECT);
    assert_non_null(strstr(error.text, "was built for a later one"));
    assert_int_equal(list.count, 1);
    wb_arena_free(&arena);
}

/* Where nobody can subscribe an event would be lost in silence. */
static void test_without_publish(void **state)
{
    const wb_outgoing outgoing = { .type = "T", .destination = "q" }, event = { .type = "T" };
    wb_origin origin_of_commands = origin;
    wb_operation_list list = { 0 };
    wb_error error = { 0 };
    wb_arena arena;
    (void)state;
    origin_of_commands.cannot_publish = 1;
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_outgoing_add(&origin_of_commands, WB_KIND_PUBLISH, &event, sizeof event, NULL, 0, &arena, &list,
                                     &error), WB_REJECT);
    assert_non_null(strstr(error.text, "the transport cannot publish"));
    assert_int_equal(wb_outgoing_add(&origin_of_commands, WB_KIND_SEND, &outgoing, sizeof outgoing, NULL, 0, &arena, &list,
                                     &error), WB_OK);
    assert_int_equal(list.count, 1);
    wb_arena_free(&arena);
}

/* Each header is within its limit, and they are not in all: with the platform's own a broker's limit
 * of 64 KiB would be near. */
static void test_outgoing_headers_in_all(void **state)
{
    static char value[20 * 1024 + 1];
    wb_header headers[3] = { WB_HEADER("a", value), WB_HEADER("b", value), WB_HEADER("c", value) };
    wb_outgoing outgoing = { .type = "T", .headers = headers, .header_count = 3 };
    (void)state;
    memset(value, 'v', sizeof value - 1);
    expect_refused(WB_KIND_PUBLISH, outgoing, "60 KiB");
    outgoing.header_count = 2;
    expect_key(outgoing, "");
}

static void add_operation(wb_operation_list *list, wb_arena *arena, const char *destination)
{
    static const wb_header header = { "name", "a\0b", 4, 3 };
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = destination;
    operation->id = "id\0x";
    operation->id_size = 4;
    operation->headers = &header;
    operation->header_count = 1;
    operation->body = "\0\1\2";
    operation->body_size = 3;
}

static void encode_sample(wb_buffer *buffer, wb_arena *arena)
{
    wb_operation_list one = { 0 }, two = { 0 }, none = { 0 };
    add_operation(&one, arena, "first");
    add_operation(&one, arena, "second");
    add_operation(&two, arena, "third");
    one.first->operation.result = WB_OK; /* done: not stored again */
    wb_operations_encode_start(buffer);
    assert_int_equal(wb_operations_encode_group(buffer, "m1", 2, &one), 1);
    assert_int_equal(wb_operations_encode_group(buffer, "m0", 2, &none), 0);
    assert_int_equal(wb_operations_encode_group(buffer, "m\0002", 3, &two), 1);
}

static void test_operations_round_trip(void **state)
{
    wb_arena arena;
    wb_buffer buffer = { 0 };
    int failed = 1;
    (void)state;
    wb_arena_init(&arena, 4096);
    encode_sample(&buffer, &arena);
    wb_operation_group *group = wb_operations_decode(buffer.data, buffer.size, &arena, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(group->cause_size, 2);
    assert_int_equal(group->operations.count, 1);
    const wb_operation *operation = &group->operations.first->operation;
    assert_string_equal(operation->destination, "second");
    assert_int_equal(operation->flags, WB_OPERATION_MANDATORY);
    assert_memory_equal(operation->id, "id\0x", 4);
    assert_memory_equal(operation->headers[0].value, "a\0b", 3);
    assert_memory_equal(operation->body, "\0\1\2", 3);
    group = group->next;
    assert_memory_equal(group->cause, "m\0002", 3);
    assert_null(group->next);
    wb_buffer_free(&buffer);
    wb_arena_free(&arena);
}

/* Whatever is not known to be there stays pending. */
static void test_what_remains_of_operations(void **state)
{
    static const int results[] = { WB_OK, WB_RETRY, WB_REJECT, WB_IN_DOUBT, WB_NOT_CONNECTED };
    static const char *const names[] = { "ok", "retry", "reject", "doubt", "lost" };
    wb_operation_list list = { 0 };
    wb_arena arena;
    wb_buffer buffer = { 0 };
    int failed = 1;
    (void)state;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < 5; i++) {
        add_operation(&list, &arena, names[i]);
        list.last->operation.result = results[i];
    }
    wb_operations_encode_start(&buffer);
    assert_int_equal(wb_operations_encode_group(&buffer, "m1", 2, &list), 4);
    const wb_operation_group *group = wb_operations_decode(buffer.data, buffer.size, &arena, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(group->operations.count, 4);
    const wb_operation_node *node = group->operations.first;
    for (size_t i = 1; i < 5; i++, node = node->next)
        assert_string_equal(node->operation.destination, names[i]);
    wb_buffer_free(&buffer);
    wb_arena_free(&arena);
}

/* Damaged bytes are refused or decode to something; they never read beyond the end. Copies
 * of the exact size let the sanitizer see it. */
static void test_operations_damaged(void **state)
{
    wb_arena arena;
    wb_buffer buffer = { 0 };
    int failed;
    (void)state;
    wb_arena_init(&arena, 4096);
    encode_sample(&buffer, &arena);
    for (size_t size = 0; size < buffer.size; size++) {
        unsigned char *part = malloc(size ? size : 1);
        memcpy(part, buffer.data, size);
        wb_operations_decode(part, size, &arena, &failed);
        free(part);
    }
    for (size_t at = 0; at < buffer.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            unsigned char *copy = malloc(buffer.size);
            memcpy(copy, buffer.data, buffer.size);
            copy[at] ^= (unsigned char)(1u << bit);
            wb_operations_decode(copy, buffer.size, &arena, &failed);
            wb_arena_reset(&arena);
            free(copy);
        }
    wb_operations_decode("WBO3", 4, &arena, &failed);
    assert_int_equal(failed, 1);
    wb_buffer_free(&buffer);
    wb_arena_free(&arena);
}

static void test_error_operation(void **state)
{
    wb_arena arena;
    wb_operation_list list = { 0 };
    wb_failure failure = { 0 };
    const wb_recoverability policy = { .immediate_retries = 5, .error_queue = "error" };
    const wb_header headers[] = { { "keep", "me", 4, 2 },
                                  { WB_HEADER_RETRIES, "3", strlen(WB_HEADER_RETRIES), 1 },
                                  { "NServiceBus.ExceptionInfo.Data.x", "old", 32, 3 },
                                  { WB_HEADER_TRIMMED, "of another copy", strlen(WB_HEADER_TRIMMED), 15 } };
    wb_incoming incoming = { .struct_size = sizeof incoming, .id = "m", .id_size = 1, .headers = headers,
                             .header_count = 4, .body = "body", .body_size = 4, .key = "k\0y", .key_size = 3 };
    (void)state;
    wb_arena_init(&arena, 4096);
    const wb_failed_message message = { &incoming, &failure, "T", WB_TRIM_NOTHING, NULL, 0 };
    wb_failure_set(&failure, WB_FAILURE_HANDLER, "because", 1);
    const wb_operation *operation =
        wb_recover_error_operation(&policy, &origin, &message, &arena, &list);
    assert_string_equal(operation->destination, "error");
    assert_int_equal(operation->flags, WB_OPERATION_MANDATORY);
    assert_ptr_equal(operation->body, incoming.body);
    assert_int_equal(operation->body_size, 4);
    assert_int_equal(operation->key_size, 3);
    assert_memory_equal(operation->key, "k\0y", 3);
    assert_string_equal(header_of(operation, "keep")->value, "me");
    assert_null(header_of(operation, WB_HEADER_RETRIES));
    assert_null(header_of(operation, "NServiceBus.ExceptionInfo.Data.x"));
    assert_null(header_of(operation, WB_HEADER_TRIMMED));
    assert_string_equal(header_of(operation, WB_HEADER_FAILED_QUEUE)->value, "orders");
    assert_string_equal(header_of(operation, WB_HEADER_EXCEPTION_MESSAGE)->value, "because");
    assert_string_equal(header_of(operation, WB_HEADER_EXCEPTION_TYPE)->value, WB_FAILURE_HANDLER);
    wb_failure_clear(&failure);
    wb_arena_free(&arena);
}

/* Tools group by the first line of the stack trace that is "at TYPE.METHOD()", without blanks in between. */
static void test_error_copy_is_grouped(void **state)
{
    static const struct {
        const char *kind, *type, *place;
    } cases[] = { { WB_FAILURE_HANDLER, "Sales.PlaceOrder", "   at Sales.PlaceOrder.Handle()" },
                  { WB_FAILURE_UNRECOVERABLE, "Sales.PlaceOrder", "   at Sales.PlaceOrder.Handle()" },
                  { WB_FAILURE_DISPATCH, "Sales.PlaceOrder", "   at Sales.PlaceOrder.Dispatch()" },
                  { WB_FAILURE_NO_HANDLER, NULL, "   at orders.Receive()" } };
    const wb_recoverability policy = { .immediate_retries = 5, .error_queue = "error" };
    const wb_incoming incoming = { .struct_size = sizeof incoming, .id = "m", .id_size = 1 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wb_failure failure = { 0 };
        wb_operation_list list = { 0 };
        wb_failure_set(&failure, cases[i].kind, "because", 1);
        const wb_failed_message message = { &incoming, &failure, cases[i].type, WB_TRIM_NOTHING, NULL, 0 };
        const wb_operation *copy = wb_recover_error_operation(&policy, &origin, &message, &arena, &list);
        assert_string_equal(header_of(copy, WB_HEADER_EXCEPTION_STACK_TRACE)->value, cases[i].place);
        wb_failure_clear(&failure);
    }
    wb_arena_free(&arena);
}

static size_t size_of_headers(const wb_operation *operation)
{
    size_t size = 0;
    for (size_t i = 0; i < operation->header_count; i++)
        size += operation->headers[i].name_size + operation->headers[i].value_size;
    return size;
}

/* Each step of trimming makes the copy smaller, says what it left out, and keeps why. */
/* The id by which tools know a failed message: the one it was received with, even if somebody else's
 * message carries it in no header; trimming does not take it. */
static void test_error_copy_has_an_id(void **state)
{
    static const struct {
        const char *id, *header, *wanted; /* NULL: a new one */
    } cases[] = { { "native", NULL, "native" }, { "native", "theirs", "theirs" }, { "native", "", "native" },
                  { NULL, NULL, NULL }, { NULL, "", NULL } };
    const wb_recoverability policy = { .immediate_retries = 5, .error_queue = "error" };
    wb_failure failure = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    wb_failure_set(&failure, WB_FAILURE_HANDLER, "because", 1);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const char *id = cases[i / 2].id, *value = cases[i / 2].header;
        wb_header header = { WB_HEADER_MESSAGE_ID, value, strlen(WB_HEADER_MESSAGE_ID), value ? strlen(value) : 0 };
        wb_incoming incoming = { .struct_size = sizeof incoming, .id = id, .id_size = id ? strlen(id) : 0,
                                 .headers = &header, .header_count = value != NULL };
        const wb_failed_message message = { &incoming, &failure, "T", i % 2 ? WB_TRIM_MAX : WB_TRIM_NOTHING, NULL, 0 };
        wb_operation_list list = { 0 };
        const wb_operation *copy = wb_recover_error_operation(&policy, &origin, &message, &arena, &list);
        const wb_header *found = header_of(copy, WB_HEADER_MESSAGE_ID);
        assert_non_null(found);
        assert_int_equal(found->value_size, cases[i / 2].wanted ? strlen(cases[i / 2].wanted)
                                                                 : WB_GENERATED_ID_SIZE - 1);
        if (cases[i / 2].wanted)
            assert_string_equal(found->value, cases[i / 2].wanted);
        for (size_t k = 0; k < copy->header_count; k++) /* and no second one */
            assert_true(&copy->headers[k] == found || strcmp(copy->headers[k].name, WB_HEADER_MESSAGE_ID) != 0);
        assert_int_equal(copy->id_size, incoming.id_size);
    }
    wb_failure_clear(&failure);
    wb_arena_free(&arena);
}

static void test_trimming(void **state)
{
    static char large[40000], reason[5000];
    wb_arena arena;
    wb_failure failure = { 0 };
    const wb_recoverability policy = { .immediate_retries = 5, .error_queue = "error" };
    const wb_header headers[] = { { "large", large, 5, sizeof large - 1 }, { "small", "s", 5, 1 } };
    wb_incoming incoming = { .struct_size = sizeof incoming, .id = "m", .id_size = 1, .headers = headers,
                             .header_count = 2, .body = "body", .body_size = 4 };
    size_t before = SIZE_MAX;
    (void)state;
    memset(large, 'x', sizeof large - 1);
    memset(reason, 'r', sizeof reason - 1);
    wb_arena_init(&arena, 4096);
    wb_failure_set(&failure, WB_FAILURE_HANDLER, reason, 1);
    for (unsigned trim = WB_TRIM_NOTHING; trim <= WB_TRIM_HEADERS; trim++) {
        wb_operation_list list = { 0 };
        const wb_failed_message message = { &incoming, &failure, "T", trim, NULL, 0 };
        const wb_operation *copy = wb_recover_error_operation(&policy, &origin, &message, &arena, &list);
        assert_true(size_of_headers(copy) < before);
        before = size_of_headers(copy);
        assert_int_equal(header_of(copy, WB_HEADER_TRIMMED) != NULL, trim > WB_TRIM_NOTHING);
        assert_int_equal(header_of(copy, "large") != NULL, trim < WB_TRIM_HEADERS);
        assert_int_equal(header_of(copy, WB_HEADER_EXCEPTION_STACK_TRACE) != NULL, trim < 1); /* first to go */
        assert_non_null(header_of(copy, "small"));
        assert_int_equal(header_of(copy, WB_HEADER_EXCEPTION_MESSAGE)->value_size,
                         trim < WB_TRIM_REASON ? sizeof reason - 1 : 256);
        assert_int_equal(copy->body_size, 4);
    }
    wb_failure_clear(&failure);
    wb_arena_free(&arena);
}

static void test_parked(void **state)
{
    wb_buffer buffer = { 0 };
    wb_parked parked = { 3, "no such queue", "WBO1xyz", 7 }, read;
    (void)state;
    wb_parked_encode(&buffer, &parked);
    assert_true(wb_parked_decode(buffer.data, buffer.size, &read));
    assert_int_equal(read.tries, 3);
    assert_string_equal(read.reason, "no such queue");
    assert_int_equal(read.operations_size, 7);
    assert_memory_equal(read.operations, "WBO1xyz", 7);
    for (size_t size = 0; size < buffer.size; size++)
        assert_false(wb_parked_decode(buffer.data, size, &read));
    assert_false(wb_parked_decode("WBO1xxxxxxxxxxxxxx", 18, &read));
    assert_int_equal(wb_parked_pause(60 * WB_SECOND, 1), 60 * WB_SECOND);
    assert_int_equal(wb_parked_pause(60 * WB_SECOND, 2), 120 * WB_SECOND);
    assert_int_equal(wb_parked_pause(60 * WB_SECOND, UINT32_MAX), 3600 * WB_SECOND);
    wb_buffer_free(&buffer);
}

static void test_suspicions(void **state)
{
    static wb_suspicions s;
    char id[16];
    (void)state;
    wb_suspicions_init(&s);
    assert_false(wb_suspicions_has(&s, "a", 1));
    wb_suspicions_add(&s, "a", 1);
    assert_true(wb_suspicions_has(&s, "a", 1));
    assert_false(wb_suspicions_has(&s, "b", 1));
    for (unsigned i = 1; i <= WB_DEATHS_MAX; i++) {
        assert_false(wb_suspicions_is_deadly(&s, "a", 1, 0));
        wb_suspicions_count_death(&s, "a", 1, 1);
        assert_int_equal(wb_suspicions_deaths(&s, "a", 1), i);
    }
    assert_true(wb_suspicions_is_deadly(&s, "a", 1, 0));
    for (unsigned i = 0; i < WB_DEATHS_UNPROVED_MAX; i++) {
        assert_false(wb_suspicions_is_deadly(&s, "b", 1, 0));
        wb_suspicions_count_death(&s, "b", 1, 0);
    }
    assert_true(wb_suspicions_is_deadly(&s, "b", 1, 0));
    wb_suspicions_forget(&s, "a", 1);
    assert_false(wb_suspicions_has(&s, "a", 1));
    for (unsigned i = 0; i < 3 * WB_SUSPICIONS_MAX; i++)
        wb_suspicions_add(&s, id, (size_t)snprintf(id, sizeof id, "%u", i));
    assert_int_equal(s.count, WB_SUSPICIONS_MAX); /* the oldest went */
    assert_true(wb_suspicions_has(&s, id, strlen(id)));
    wb_suspicions_free(&s);
}

/* What ends connections, proved or not, rests for twice as long with each further death, an hour at most; then it is tried
 * once more, unless each try costs a delivery. */
static void test_how_long_the_deadly_rest(void **state)
{
    static const struct {
        unsigned proved, unproved;
        int minutes; /* 0: it is not deadly */
    } rows[] = { { 2, 9, 0 },  { 3, 0, 1 },  { 4, 0, 2 },   { 5, 0, 4 },   { 8, 0, 32 },   { 9, 0, 60 },  { 100, 0, 60 },
                 { 0, 10, 1 }, { 0, 11, 2 }, { 2, 12, 4 },  { 0, 16, 60 }, { 0, 100, 60 }, { 3, 9, 1 },   { 4, 11, 4 },
                 { 5, 12, 16 } };
    static wb_suspicions s;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_suspicions_init(&s);
        for (unsigned k = 0; k < rows[i].proved + rows[i].unproved; k++)
            wb_suspicions_count_death(&s, "a", 1, k < rows[i].proved);
        assert_int_equal(s.count, 1);
        for (int is_over = 0; is_over < 2; is_over++) {
            s.table[0].died = wb_clock_monotonic() - rows[i].minutes * 60 * WB_SECOND + (is_over ? 0 : 30 * WB_SECOND);
            if (wb_suspicions_is_deadly(&s, "a", 1, 0) != (rows[i].minutes && !is_over) ||
                wb_suspicions_is_deadly(&s, "a", 1, 1) != (rows[i].minutes > 0))
                fail_msg("%u deaths and %u: %d", rows[i].proved, rows[i].unproved, is_over);
        }
        wb_suspicions_free(&s);
    }
}

static void test_recoverability(void **state)
{
    const wb_recoverability none = { .immediate_retries = 0, .error_queue = "error" }, five = { .immediate_retries = 5, .error_queue = "error" };
    wb_failure failure = { 0 };
    (void)state;
    for (unsigned attempt = 1; attempt <= 5; attempt++) {
        wb_failure_set(&failure, WB_FAILURE_HANDLER, "x", 1);
        assert_false(wb_recover_is_exhausted(&five, &failure));
        assert_true(wb_recover_is_exhausted(&none, &failure));
    }
    wb_failure_set(&failure, WB_FAILURE_HANDLER, "x", 1);
    assert_true(wb_recover_is_exhausted(&five, &failure));
    wb_failure_clear(&failure);
}

static void test_attempts(void **state)
{
    const wb_recoverability none = { .immediate_retries = 0, .error_queue = "error" }, five = { .immediate_retries = 5, .error_queue = "error" };
    wb_buffer buffer = { 0 };
    (void)state;
    assert_true(wb_attempts_number("m\0x", 3) != wb_attempts_number("m", 1));
    assert_true(wb_attempts_number("m", 1) < wb_batch_number_at(wb_clock_wall()));
    wb_attempts_encode(&buffer, "m\0x", 3, 7, UINT64_C(0x123456789a));
    assert_true(wb_attempts_is_older(buffer.data, buffer.size, UINT64_C(0x123456789b)));
    assert_false(wb_attempts_is_older(buffer.data, buffer.size, UINT64_C(0x123456789a)));
    assert_false(wb_attempts_is_older(buffer.data, 8, UINT64_MAX));
    assert_false(wb_attempts_is_older("WBO1xxxxyyyyyyyy", 16, UINT64_MAX));
    assert_int_equal(wb_attempts_decode(buffer.data, buffer.size, "m\0x", 3), 7);
    assert_int_equal(wb_attempts_decode(buffer.data, buffer.size, "m\0y", 3), -1);
    for (size_t size = 0; size < buffer.size; size++)
        assert_int_equal(wb_attempts_decode(buffer.data, size, "m\0x", 3), -1);
    assert_int_equal(wb_attempts_decode("WBO1", 4, "m", 1), -1);
    assert_false(wb_attempts_are_exhausted(&five, 2)); /* three deliveries before, six together */
    assert_true(wb_attempts_are_exhausted(&five, 3));
    assert_false(wb_attempts_are_exhausted(&none, 2)); /* the least, whatever is configured */
    assert_true(wb_attempts_are_exhausted(&none, 3));
    /* all of ours stay below the broker's, whatever it is */
    for (uint32_t limit = 2; limit < 40; limit++) {
        wb_recoverability limited = { .error_queue = "error", .delivery_limit = limit };
        uint32_t from = wb_attempts_suspect_from(&limited);
        assert_int_equal(from, limit < 2 * WB_SUSPECT_DELIVERIES ? limit / 2 : WB_SUSPECT_DELIVERIES);
        assert_true(wb_attempts_are_exhausted(&limited, limit - from));
        assert_true(wb_attempts_deliveries_are_exhausted(&limited, limit - 1));
        assert_false(wb_attempts_is_last_delivery(&limited, limit - 1, 0));
        assert_true(wb_attempts_is_last_delivery(&limited, limit, 0));
        assert_true(wb_attempts_is_last_delivery(&limited, limit - 1, 1));
    }
    assert_false(wb_attempts_deliveries_are_exhausted(&five, WB_DELIVERIES_MAX - 1));
    assert_true(wb_attempts_deliveries_are_exhausted(&five, WB_DELIVERIES_MAX));
    wb_buffer_free(&buffer);
}

static void test_wire_time(void **state)
{
    char text[WB_TIMESTAMP_SIZE];
    (void)state;
    wb_clock_format_wire(INT64_C(1767225600123456789), text);
    assert_string_equal(text, "2026-01-01 00:00:00:123456 Z");
    wb_clock_format_wire(INT64_C(1767225600000007000), text);
    assert_string_equal(text, "2026-01-01 00:00:00:000007 Z");
    wb_clock_format_wire(-WB_MILLISECOND, text);
    assert_string_equal(text, "1969-12-31 23:59:59:999000 Z");
}

static void test_wire_time_is_read(void **state)
{
    static const char *const not[] = { "2026-01-01 00:00:00:12345 Z", "2026-01-01 00:00:00:123456 Zz", "2026-02-31 00:00:00:123456 Z",
                                       "2026-01-01 24:00:00:123456 Z", "2026-01-01 00:00:00:-12345 Z",
                                       "2026- 1-01 00:00:00:123456 Z", "+202-01-01 00:00:00:123456 Z", "2026-01-01 00:00:00:123456", "" };
    int64_t time;
    (void)state;
    assert_true(wb_clock_parse_wire("2026-01-01 00:00:00:123456 Z", &time));
    assert_true(time == INT64_C(1767225600123456000));
    assert_true(wb_clock_parse_wire("9999-12-31 23:59:59:999999 Z", &time));
    assert_true(time == INT64_MAX);
    assert_true(wb_clock_parse_wire("0001-01-01 00:00:00:000000 Z", &time));
    assert_true(time == INT64_MIN);
    for (size_t i = 0; i < sizeof not / sizeof not[0]; i++)
        if (wb_clock_parse_wire(not[i], &time))
            fail_msg("\"%s\" is read", not[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_ids_again),
        cmocka_unit_test(test_ordered_ids),
        cmocka_unit_test(test_plain_text),
        cmocka_unit_test(test_batch_numbers),
        cmocka_unit_test(test_batch_numbers_differ),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_generic_types),
        cmocka_unit_test(test_types_too_long),
        cmocka_unit_test(test_outgoing_headers),
        cmocka_unit_test(test_replies_to_sagas),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_platform_headers),
        cmocka_unit_test(test_outgoing_key),
        cmocka_unit_test(test_sent_on),
        cmocka_unit_test(test_outgoing_refused),
        cmocka_unit_test(test_outgoing_of_a_message),
        cmocka_unit_test(test_outgoing_headers_at_their_limit),
        cmocka_unit_test(test_sizes_are_meant),
        cmocka_unit_test(test_sizes_refused),
        cmocka_unit_test(test_flags_refused),
        cmocka_unit_test(test_later_modules),
        cmocka_unit_test(test_without_publish),
        cmocka_unit_test(test_outgoing_headers_in_all),
        cmocka_unit_test(test_operations_round_trip),
        cmocka_unit_test(test_what_remains_of_operations),
        cmocka_unit_test(test_operations_damaged),
        cmocka_unit_test(test_error_operation),
        cmocka_unit_test(test_error_copy_is_grouped),
        cmocka_unit_test(test_error_copy_has_an_id),
        cmocka_unit_test(test_trimming),
        cmocka_unit_test(test_parked),
        cmocka_unit_test(test_suspicions),
        cmocka_unit_test(test_how_long_the_deadly_rest),
        cmocka_unit_test(test_recoverability),
        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_wire_time),
        cmocka_unit_test(test_wire_time_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

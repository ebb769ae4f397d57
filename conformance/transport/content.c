/* SPDX-License-Identifier: Apache-2.0
 *
 * Content: what arrives is what was sent, byte for byte.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/transport/same.h"
#include "core/base/arena.h"

#define HEADERS_MAX 128

/* Send, receive, compare, acknowledge. */
static void round_trip(wb_kit *kit, wb_tk_letter *letter)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!s || !wb_tk_send_letter(s, letter) || !wb_tk_collect(s, 1))
        return;
    wb_tk_expect_same(kit, s->in_hand[0], &letter->operation);
    wb_tk_finish(s);
}

/* `id`, unless NULL, instead of the letter's own. */
static void with_headers_and_id(wb_kit *kit, const wb_header *headers, size_t count, const char *id)
{
    wb_tk_letter letter;
    wb_header all[HEADERS_MAX + 2];
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    if (id) {
        letter.operation.id = id;
        letter.operation.id_size = strlen(id);
    }
    memcpy(all, letter.headers, sizeof letter.headers);
    memcpy(all + 2, headers, count * sizeof *headers);
    letter.operation.headers = all;
    letter.operation.header_count = count + 2;
    round_trip(kit, &letter);
}

static void with_headers(wb_kit *kit, const wb_header *headers, size_t count)
{
    with_headers_and_id(kit, headers, count, NULL);
}

/* ---- headers --------------------------------------------------------------------------- */

static void plain(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    round_trip(kit, &letter);
}

static void not_persistent(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    letter.operation.flags |= WB_OPERATION_NON_PERSISTENT;
    round_trip(kit, &letter);
}

/* Without WB_CAP_HEADER_ORDER any of a name's values will do. */
static void headers_in_order(wb_kit *kit)
{
    static const wb_header headers[] = { WB_TK_HEADER("b", "1"), WB_TK_HEADER("a", "2"),
                                         WB_TK_HEADER("B", "3"), WB_TK_HEADER("a", "4"),
                                         WB_TK_HEADER("a", "2"), WB_TK_HEADER("0", "5") };
    with_headers(kit, headers, sizeof headers / sizeof *headers);
}

static void headers_of_any_value(wb_kit *kit)
{
    static char large[32768];
    memset(large, 'x', sizeof large - 1);
    const wb_header headers[] = {
        { "empty", "nothing of it is sent", 5, 0 },
        WB_TK_HEADER("spaces", "  a\tb  "),
        WB_TK_HEADER("lines", "a\r\nb: c\n"),
        WB_TK_HEADER("quotes", "'; \"drop\" \\ %s $1 {}"),
        { "sized, not terminated", "onetwo", 21, 3 },
        { "bytes", "a\0b\xff\x80\x01", 5, 6 },
        { "large", large, 5, sizeof large - 1 },
    };
    with_headers(kit, headers, sizeof headers / sizeof *headers);
}

static void headers_beyond_ascii(wb_kit *kit)
{
    static const wb_header headers[] = {
        WB_TK_HEADER("gr\xc3\xb6\xc3\x9f" "e", "\xc3\xa4\xc3\xb6\xc3\xbc \xe2\x82\xac"),
        WB_TK_HEADER("\xe6\xbc\xa2\xe5\xad\x97", "\xe0\xae\xa4\xe0\xae\xae\xe0\xae\xbf\xe0\xae\xb4\xe0\xaf\x8d"),
        WB_TK_HEADER("smile-\xf0\x9f\x98\x80", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \xf0\x9d\x84\x9e"),
        WB_TK_HEADER("combining", "e\xcc\x81 is not \xc3\xa9"),
    };
    with_headers(kit, headers, sizeof headers / sizeof *headers);
}

static void headers_of_nservicebus(wb_kit *kit)
{
    static const wb_header headers[] = {
        WB_TK_HEADER("NServiceBus.MessageId", "the-id"),
        WB_TK_HEADER("NServiceBus.CorrelationId", "correlated"),
        WB_TK_HEADER("NServiceBus.ReplyToAddress", "somebody@somewhere"),
        WB_TK_HEADER("NServiceBus.EnclosedMessageTypes", "Sales.Placed, Sales;Sales.Any, Sales"),
        WB_TK_HEADER("NServiceBus.TimeSent", "2026-01-01 12:00:00:000000 Z"),
        WB_TK_HEADER("Waybill.ContentEncoding", "gzip"),
        WB_TK_HEADER("Waybill.AppId", "shop"),
        WB_TK_HEADER("Waybill.Priority", "7"),
        WB_TK_HEADER("Waybill.Timestamp", "1700000000"),
        WB_TK_HEADER("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    };
    with_headers_and_id(kit, headers, sizeof headers / sizeof *headers, "the-id");
}

/* Numbers that are none, or not in the form in which a property would come back. */
static void headers_almost_numbers(wb_kit *kit)
{
    static const char *const values[] = { "", "007", "256", "-1", "+1", "1e3", " 1", "99999999999999999999", "0" };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const wb_header headers[] = { wb_tk_header("Waybill.Priority", values[i]),
                                      wb_tk_header("Waybill.Timestamp", values[i]) };
        with_headers(kit, headers, 2);
    }
}

static void a_hundred_headers(wb_kit *kit)
{
    static char texts[100][16];
    wb_header headers[100];
    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "header-%zu", i);
        headers[i] = wb_tk_header(texts[i], texts[i]);
    }
    with_headers(kit, headers, 100);
}

/* ---- what may be absent ---------------------------------------------------------------- */

static void without_headers(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    letter.operation.headers = NULL;
    letter.operation.header_count = 0;
    round_trip(kit, &letter);
}

static void without_id(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    letter.operation.id = NULL;
    letter.operation.id_size = 0;
    round_trip(kit, &letter);
}

static void without_key(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], NULL, 1);
    round_trip(kit, &letter);
}

static void without_body(wb_kit *kit)
{
    wb_tk_letter letter;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    letter.operation.body = NULL;
    letter.operation.body_size = 0;
    round_trip(kit, &letter);
}

/* ---- ids and keys ---------------------------------------------------------------------- */

static void ids_of_any_value(wb_kit *kit)
{
    static const size_t sizes[] = { 1, 36, 200, 255 };
    char id[255];
    for (size_t i = 0; i < sizeof id; i++)
        id[i] = (char)(i * 7 + 200); /* NUL bytes and no UTF-8 among them */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        wb_tk_letter letter;
        wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
        letter.operation.id = id;
        letter.operation.id_size = sizes[i];
        round_trip(kit, &letter);
    }
}

/* In one window: what an id is may not matter to its neighbours. */
static void ids_of_one_byte(wb_kit *kit)
{
    enum { VALUES = 256 };
    wb_tk_letter *letters = wb_alloc_zero(VALUES, sizeof *letters);
    wb_operation *operations[VALUES];
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_kit_defer(kit, free, letters);
    for (size_t i = 0; i < VALUES; i++) {
        wb_tk_write(kit, &letters[i], wb_tk_of(kit)->queues[WB_TK_MAIN], "k", i);
        letters[i].id[0] = (char)i;
        letters[i].operation.id_size = 1;
        operations[i] = &letters[i].operation;
    }
    if (!s || !wb_tk_send(s, operations, VALUES) || !wb_tk_collect(s, VALUES))
        return;
    for (size_t i = 0; i < VALUES; i++)
        wb_tk_expect_same(kit, s->in_hand[i], operations[i]);
    wb_tk_finish(s);
}

/* Two messages with one id are two messages: duplicates are the host's affair. */
static void one_id_twice(wb_kit *kit)
{
    wb_tk_session *s = wb_tk_receiver(kit);
    const char *queue = wb_tk_of(kit)->queues[WB_TK_MAIN];
    if (!s || !wb_tk_send_numbers(s, queue, "k", 1, 1) ||
        !wb_tk_send_numbers(s, queue, "k", 1, 1) || !wb_tk_collect(s, 2))
        return;
    wb_kit_check(kit, wb_tk_number(s->in_hand[0]) == 1 && wb_tk_number(s->in_hand[1]) == 1,
                 "other messages came");
    wb_tk_finish(s);
}

static void keys_of_any_value(wb_kit *kit)
{
    static const struct {
        const char *key;
        size_t size;
    } keys[] = { { "x", 1 }, { "a\0b", 3 }, { "\xff\xfe\x01", 3 }, { "\xf0\x9f\x98\x80", 4 } };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        wb_tk_letter letter;
        wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], NULL, 1);
        letter.operation.key = keys[i].key;
        letter.operation.key_size = keys[i].size;
        round_trip(kit, &letter);
    }
}

/* ---- bodies ---------------------------------------------------------------------------- */

static void fill(unsigned char *body, size_t size)
{
    for (size_t i = 0; i < size; i++)
        body[i] = (unsigned char)(i + (i >> 8) * 7 + (i >> 16) * 13);
}

/* One over the endpoint's body_max may come with a reason. */
static void body_of(wb_kit *kit, size_t size)
{
    wb_tk_letter letter;
    wb_tk_session *s = wb_tk_receiver(kit);
    unsigned char *body = wb_alloc(size + 1);
    wb_kit_defer(kit, free, body);
    fill(body, size);
    wb_tk_write(kit, &letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", 1);
    letter.operation.body = body;
    letter.operation.body_size = size;
    if (!s || !wb_tk_send_large(s, &letter, "a body", size) || !wb_tk_collect(s, 1))
        return;
    const wb_incoming *got = s->in_hand[0];
    if ((int64_t)size > wb_tk_body_max(wb_tk_of(kit)) && got->problem)
        wb_tk_expect_bytes(kit, "the body", got->body, got->body_size, body, size);
    else
        wb_tk_expect_same(kit, got, &letter.operation);
    wb_tk_finish(s);
}

static void small_bodies(wb_kit *kit)
{
    body_of(kit, 0);
    body_of(kit, 1);
    body_of(kit, 255);
    body_of(kit, 256);
}

static void bodies_around_64_kib(wb_kit *kit)
{
    body_of(kit, WB_TK_BODY_SURE - 1);
    body_of(kit, WB_TK_BODY_SURE);
}

static void a_body_of_1_mib(wb_kit *kit)
{
    body_of(kit, (size_t)1 << 20);
}

static void a_body_of_16_mib(wb_kit *kit)
{
    body_of(kit, (size_t)16 << 20);
}

/* More than a buffer of 32 MiB holds: whole or refused, never what fitted. */
static void a_body_of_33_mib(wb_kit *kit)
{
    body_of(kit, (size_t)33 << 20);
}

/* A message that is refused harms none of its window. */
static void bodies_in_one_window(wb_kit *kit)
{
    static const size_t sizes[] = { 0, 200000, 1, 4096, 70000, 131072, 17 };
    enum { COUNT = sizeof sizes / sizeof *sizes };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_error error = { 0 };
    size_t sent = 0;
    unsigned char *body = wb_alloc(200000);
    wb_kit_defer(kit, free, body);
    fill(body, 200000);
    for (size_t i = 0; i < COUNT; i++) {
        wb_tk_write(kit, &letters[i], tk->queues[WB_TK_MAIN], "k", i);
        letters[i].operation.body = body;
        letters[i].operation.body_size = sizes[i];
        operations[i] = &letters[i].operation;
    }
    if (!s || !wb_tk_is_ok(kit, tk->ops->send(s->session, operations, COUNT,
                                              wb_tk_in(tk, tk->patience), &error),
                           &error, "send"))
        return;
    for (size_t i = 0; i < COUNT; i++)
        sent += operations[i]->result == WB_OK;
    if (!wb_tk_collect(s, sent))
        return;
    for (size_t i = 0, at = 0; i < COUNT && at < sent; i++)
        if (operations[i]->result == WB_OK)
            wb_tk_expect_same(kit, s->in_hand[at++], operations[i]);
        else
            wb_kit_check(kit, sizes[i] > WB_TK_BODY_SURE, "a body of %zu bytes was not sent",
                         sizes[i]);
    wb_tk_finish(s);
}

/* ---- how long it is valid -------------------------------------------------------------- */

static void valid_until_settled(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letter;
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_write(kit, &letter, tk->queues[WB_TK_MAIN], "k", 0);
    if (!s || !wb_tk_send_letter(s, &letter) || !wb_tk_collect(s, 1))
        return;
    for (size_t round = 0; round < 10; round++)
        if (!wb_tk_send_numbers(s, tk->queues[WB_TK_MAIN], "k", 1, 20) || !wb_tk_collect(s, 20) ||
            !wb_tk_acknowledge(s, 1, 20))
            return;
    wb_tk_expect_same(kit, s->in_hand[0], &letter.operation);
    wb_tk_finish(s);
}

static void redelivered_as_sent(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letter;
    wb_tk_session *s = wb_tk_receiver(kit);
    wb_tk_write(kit, &letter, tk->queues[WB_TK_MAIN], "k", 1);
    const wb_header headers[] = { letter.headers[0],       letter.headers[1],
                                  WB_TK_HEADER("twice", "one"), WB_TK_HEADER("empty", ""),
                                  WB_TK_HEADER("twice", "two"), WB_TK_HEADER("a", "\xf0\x9f\x98\x80") };
    letter.operation.headers = headers;
    letter.operation.header_count = sizeof headers / sizeof *headers;
    if (!s || !wb_tk_send_letter(s, &letter) || !wb_tk_collect(s, 1))
        return;
    const int has_key = s->in_hand[0]->key_size != 0; /* else it stays behind, as it may */
    if (!wb_tk_give_back(s, 0, 1) || !wb_tk_collect(s, 1))
        return;
    if (has_key)
        wb_tk_expect_string(kit, "the key", s->in_hand[0]->key, s->in_hand[0]->key_size, letter.operation.key,
                            letter.operation.key_size);
    wb_tk_expect_headers_again(kit, s->in_hand[0], &letter.operation);
    wb_tk_expect_string(kit, "the id", s->in_hand[0]->id, s->in_hand[0]->id_size, letter.operation.id,
                  letter.operation.id_size);
    wb_tk_expect_bytes(kit, "the body", s->in_hand[0]->body, s->in_hand[0]->body_size,
                 letter.operation.body, letter.operation.body_size);
    wb_tk_finish(s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_content_cases[] = {
    { "id, headers, body and key arrive as they were sent", RO, plain },
    { "a message that need not be persistent arrives, too", RO, not_persistent },
    { "headers keep their order, and doubles stay", RO | WB_CAP_HEADER_ORDER, headers_in_order },
    { "of several headers of one name one comes at least", RO, headers_in_order },
    { "values of headers may be empty, large, or any bytes", RO, headers_of_any_value },
    { "names and values of headers may be any UTF-8", RO, headers_beyond_ascii },
    { "headers of NServiceBus are headers", RO, headers_of_nservicebus },
    { "headers of properties that are no numbers stay as they are", RO, headers_almost_numbers },
    { "a hundred headers", RO, a_hundred_headers },
    { "a message without headers", RO, without_headers },
    { "a message without id", RO, without_id },
    { "a message without key", RO, without_key },
    { "a message without body", RO, without_body },
    { "ids are 1 to 255 bytes of any value", RO, ids_of_any_value },
    { "ids of one byte, every byte", RO, ids_of_one_byte },
    { "two messages with one id are two messages", RO, one_id_twice },
    { "keys are bytes of any value", RO, keys_of_any_value },
    { "bodies of 0, 1, 255 and 256 bytes", RO, small_bodies },
    { "bodies of 64 KiB, and one byte less", RO, bodies_around_64_kib },
    { "a body of 1 MiB", RO, a_body_of_1_mib },
    { "a body of 16 MiB", RO, a_body_of_16_mib },
    { "a body of 33 MiB", RO, a_body_of_33_mib },
    { "small and large bodies in one window", RO, bodies_in_one_window },
    { "a message is valid until it is settled", RO, valid_until_settled },
    { "what is delivered again is what was sent", RO, redelivered_as_sent },
};
WB_TK_CASES(content);

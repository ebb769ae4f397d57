/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: operations that mean harm. Each is refused by
 * itself, with a reason and a cause, or carried as it is; those beside it arrive, and the
 * session lives. With and without transactions.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/kafka-fixture.h"
#include "tests/support/text_header.h"

#define COUNT 5
#define POISON 2 /* its place in the window */

/* ---- one window, until its outcome is final ---------------------------------------- */

static void assert_none_taken_for_sent(const wb_operation *operations)
{
    for (int i = 0; i < COUNT; i++)
        assert_true(operations[i].result == WB_ABORT || operations[i].result == WB_REJECT ||
                    operations[i].result == WB_OK);
}

/* As the host does: what is aborted is rolled back and run again. @return how often. */
static int send_in_transaction(fixture *f, wb_operation *operations)
{
    for (int aborts = 0; aborts < 5; aborts++) {
        assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
        int result = fixture_send(f, operations, COUNT);
        if (result == WB_OK && f->ops->commit(f->session, &f->error) == WB_OK)
            return aborts;
        if (result != WB_OK && result != WB_ABORT)
            fail_msg("send: %d, %s", result, f->error.text);
        assert_none_taken_for_sent(operations);
        assert_int_equal(f->ops->rollback(f->session, &f->error), WB_OK);
    }
    fail_msg("it is aborted again and again: %s", f->error.text);
    return -1;
}

static void send_window(fixture *f, wb_operation *operations)
{
    if (f->endpoint.mode == WB_MODE_SENDS_ATOMIC)
        (void)send_in_transaction(f, operations);
    else if (fixture_send(f, operations, COUNT) != WB_OK)
        fail_msg("send: %s", f->error.text);
}

/* Exactly these are there; `left_out` is not, unless -1. */
static void receive_ids(fixture *f, char ids[COUNT][24], int left_out)
{
    const wb_incoming *messages[COUNT];
    size_t count = left_out < 0 ? COUNT : COUNT - 1;
    fixture_receive(f, messages, count);
    for (int i = 0, at = 0; i < COUNT; i++)
        if (i != left_out)
            assert_string_equal(messages[at++]->id, ids[i]);
    if (f->endpoint.mode == WB_MODE_SENDS_ATOMIC)
        assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
    fixture_acknowledge(f, messages, count);
    if (f->endpoint.mode == WB_MODE_SENDS_ATOMIC)
        assert_int_equal(f->ops->commit(f->session, &f->error), WB_OK);
}

/* The poison between good ones to the fixture's own queue, which all arrive. `cause` is that of
 * a refusal, or -1 where it is carried. */
static void try_with(fixture *f, wb_operation poison, int cause, const char *what)
{
    static int number;
    char ids[COUNT][24];
    wb_operation operations[COUNT];
    int is_there = cause < 0 && poison.destination == f->queue;
    number++;
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d-%d", number, i);
        operations[i] = fixture_operation(f->queue, ids[i], "good");
    }
    operations[POISON] = poison;
    operations[POISON].id = ids[POISON];
    operations[POISON].id_size = strlen(ids[POISON]);
    send_window(f, operations);
    for (int i = 0; i < COUNT; i++)
        if (operations[i].result != (i == POISON && cause >= 0 ? WB_REJECT : WB_OK))
            fail_msg("%s: result %d of %d: %s", what, operations[i].result, i,
                     operations[i].reason ? operations[i].reason : "");
    if (cause >= 0 && (operations[POISON].cause != cause || !operations[POISON].reason))
        fail_msg("%s: cause %d: %s", what, operations[POISON].cause, operations[POISON].reason);
    receive_ids(f, ids, is_there ? -1 : POISON);
}

static void begin_mode(fixture *f, int mode)
{
    fixture_prepare(f);
    f->endpoint.mode = mode;
    f->endpoint.body_max = 1 << 20;
    f->config.message_max = 2 << 20;
    fixture_start(f, 100);
}

/* ---- where to -------------------------------------------------------------------- */

static void try_destinations(int mode)
{
    char longest[250], longer[251], very_long[70000];
    const struct {
        const char *name;
        int kind;
    } poison[] = {
        { longest, WB_OPERATION_SEND }, /* could be there, and is not */
        { longer, WB_OPERATION_SEND },
        { very_long, WB_OPERATION_SEND },
        { very_long, WB_OPERATION_PUBLISH },
        { "", WB_OPERATION_SEND },
        { "", WB_OPERATION_PUBLISH },
        { NULL, WB_OPERATION_SEND },
        { NULL, WB_OPERATION_PUBLISH },
        { ", Assembly", WB_OPERATION_PUBLISH },
        { ".", WB_OPERATION_SEND },
        { "..", WB_OPERATION_PUBLISH },
        { "a/b", WB_OPERATION_SEND },
        { "a\nb", WB_OPERATION_SEND },
        { "\xff\xfe", WB_OPERATION_SEND },
        { "\xff\xfe", WB_OPERATION_PUBLISH },
    };
    /* The broker's own: nobody may write there, which transactions call by another name. */
    static const char *const internal[] = { "__consumer_offsets", "__transaction_state" };
    fixture f;
    begin_mode(&f, mode);
    memset(longest, 'n', sizeof longest);
    memset(longer, 'n', sizeof longer);
    memset(very_long, 'n', sizeof very_long);
    longest[249] = longer[250] = very_long[69999] = '\0';
    for (size_t i = 0; i < sizeof poison / sizeof *poison; i++) {
        wb_operation operation = fixture_operation(poison[i].name, "", "poison");
        operation.kind = poison[i].kind;
        try_with(&f, operation, WB_CAUSE_UNROUTABLE, poison[i].name ? poison[i].name : "NULL");
    }
    for (size_t i = 0; i < sizeof internal / sizeof *internal; i++)
        try_with(&f, fixture_operation(internal[i], "", "poison"),
                 mode == WB_MODE_SENDS_ATOMIC ? WB_CAUSE_REFUSED : WB_CAUSE_UNROUTABLE,
                 internal[i]);
    fixture_end(&f);
}

/* A name that only differs in '.' and '_' from one that is there cannot be made. */
static void try_collision(int mode)
{
    char there[160], not_there[160];
    fixture f;
    begin_mode(&f, mode);
    (void)snprintf(there, sizeof there, "%s.a_b", f.queue);
    (void)snprintf(not_there, sizeof not_there, "%s.a.b", f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic(client, there, 1);
    client_close(client);
    wb_operation operation = fixture_operation(not_there, "", "poison");
    operation.kind = WB_OPERATION_PUBLISH;
    try_with(&f, operation, WB_CAUSE_UNROUTABLE, "collision");
    fixture_end(&f);
}

static void test_destinations(void **state)
{
    (void)state;
    try_destinations(WB_MODE_RECEIVE_ONLY);
    try_collision(WB_MODE_RECEIVE_ONLY);
}

static void test_destinations_in_transactions(void **state)
{
    (void)state;
    try_destinations(WB_MODE_SENDS_ATOMIC);
    try_collision(WB_MODE_SENDS_ATOMIC);
}

/* ---- what ------------------------------------------------------------------------ */

static void try_headers(int mode)
{
    static const struct {
        wb_header header;
        int cause;
    } poison[] = {
        { { "a\0b", "v", 3, 1 }, WB_CAUSE_OTHER },
        { { "\0", "v", 1, 1 }, WB_CAUSE_OTHER },
        { { "", "v", 0, 1 }, -1 },
        { { NULL, "v", 0, 1 }, -1 },
        { { "name", NULL, 4, 0 }, -1 },
        { TEXT_HEADER("\xff\xfe\xc0", "\xff\xfe\xc0\x80"), -1 },
        { TEXT_HEADER("\r\n\x01", "\x01\x02\r\n"), -1 },
        { TEXT_HEADER("NServiceBus.MessageId", "not mine"), -1 },
    };
    static wb_header many[100000];
    fixture f;
    begin_mode(&f, mode);
    f.endpoint.headers_max = 0;
    for (size_t i = 0; i < sizeof poison / sizeof *poison; i++) {
        wb_operation operation = fixture_operation(f.queue, "", "poison");
        operation.headers = &poison[i].header;
        operation.header_count = 1;
        try_with(&f, operation, poison[i].cause, "header");
    }
    for (size_t i = 0; i < 100000; i++)
        many[i] = (wb_header){ "h", "", 1, 0 };
    wb_operation operation = fixture_operation(f.queue, "", "poison");
    operation.headers = many;
    operation.header_count = 99999;
    try_with(&f, operation, -1, "as many headers as can be read");
    operation.header_count = 100000;
    try_with(&f, operation, WB_CAUSE_TOO_LARGE, "too many headers");
    fixture_end(&f);
}

static void test_headers(void **state)
{
    (void)state;
    try_headers(WB_MODE_RECEIVE_ONLY);
}

static void test_headers_in_transactions(void **state)
{
    (void)state;
    try_headers(WB_MODE_SENDS_ATOMIC);
}

/* Bytes that are no UTF-8 arrive as they are. */
static void test_bytes(void **state)
{
    static const wb_header header = TEXT_HEADER("\xff\xfe", "\xc0\x80\xff");
    const wb_incoming *message;
    fixture f;
    (void)state;
    fixture_begin(&f, 1);
    wb_operation operation = fixture_operation(f.queue, "\xff\xfe", "\xff\xfe");
    operation.headers = &header;
    operation.header_count = 1;
    operation.key = "\xff\xfe";
    operation.key_size = 2;
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_string_equal(message->id, "\xff\xfe");
    assert_string_equal(message->headers[0].name, header.name);
    assert_string_equal(message->headers[0].value, header.value);
    assert_memory_equal(message->body, "\xff\xfe", 2);
    assert_memory_equal(message->key, "\xff\xfe", 3);
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* A topic that keeps the newest of each key takes none without; those with one arrive, in the
 * same request. */
static void try_compacted(int mode)
{
    char topic[160];
    int64_t low, high;
    fixture f;
    begin_mode(&f, mode);
    (void)snprintf(topic, sizeof topic, "%s.compacted", f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, topic, 1, "cleanup.policy", "compact");
    wb_operation operations[COUNT];
    char ids[COUNT][24];
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "c-%d", i);
        operations[i] = fixture_operation(topic, ids[i], "body");
        operations[i].key = i == POISON ? NULL : "key";
        operations[i].key_size = i == POISON ? 0 : 3;
    }
    send_window(&f, operations);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(operations[i].result, i == POISON ? WB_REJECT : WB_OK);
    assert_non_null(strstr(operations[POISON].reason, topic));
    assert_int_equal(rd_kafka_query_watermark_offsets(client, topic, 0, &low, &high, 10000),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_true(high >= COUNT - 1);
    client_close(client);
    fixture_end(&f);
}

static void test_compacted(void **state)
{
    (void)state;
    try_compacted(WB_MODE_RECEIVE_ONLY);
}

static void test_compacted_in_transactions(void **state)
{
    (void)state;
    try_compacted(WB_MODE_SENDS_ATOMIC);
}

/* ---- how much -------------------------------------------------------------------- */

/* The producer takes 3 MiB, `small` 100 000 bytes: around both limits, a message is refused or
 * arrives, and nothing else happens. */
static void try_sizes(int mode)
{
    static char body[4 << 20];
    char small[160];
    fixture f;
    begin_mode(&f, mode);
    (void)snprintf(small, sizeof small, "%s.small", f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, small, 1, "max.message.bytes", "100000");
    client_close(client);
    for (int i = 0; i < 5; i++) {
        wb_operation operation = fixture_operation(small, "", "");
        operation.body = body;
        operation.body_size = 99000 + (size_t)i * 500;
        try_with(&f, operation, i >= 2 ? WB_CAUSE_TOO_LARGE : -1, "small");
    }
    wb_operation operation = fixture_operation(f.queue, "", "");
    operation.body = body;
    operation.body_size = (2 << 20) - 1000;
    try_with(&f, operation, -1, "as large as the topic takes");
    operation.body_size = (2 << 20) + 1000;
    try_with(&f, operation, WB_CAUSE_TOO_LARGE, "larger than the topic takes");
    for (size_t size = (3 << 20) - 400; size < (3 << 20) + 200; size += 100) {
        operation.body_size = size;
        try_with(&f, operation, WB_CAUSE_TOO_LARGE, "larger than the producer takes");
    }
    operation.body_size = 0;
    operation.key = body;
    operation.key_size = sizeof body;
    try_with(&f, operation, WB_CAUSE_TOO_LARGE, "key");
    wb_header header = { "name", body, 4, sizeof body };
    operation.key_size = 0;
    operation.headers = &header;
    operation.header_count = 1;
    try_with(&f, operation, WB_CAUSE_TOO_LARGE, "header");
    header = (wb_header){ body, "", sizeof body, 0 };
    memset(body, 'n', sizeof body);
    try_with(&f, operation, WB_CAUSE_TOO_LARGE, "name of a header");
    fixture_end(&f);
}

static void test_sizes(void **state)
{
    (void)state;
    try_sizes(WB_MODE_RECEIVE_ONLY);
}

static void test_sizes_in_transactions(void **state)
{
    (void)state;
    try_sizes(WB_MODE_SENDS_ATOMIC);
}

/* All in one request, each small enough: the broker refuses the sum. */
static void try_sum(int mode)
{
    static char body[30000];
    char small[160], ids[COUNT][24];
    wb_operation operations[COUNT];
    fixture f;
    begin_mode(&f, mode);
    (void)snprintf(small, sizeof small, "%s.small", f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, small, 1, "max.message.bytes", "100000");
    client_close(client);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "s-%d", i);
        operations[i] = fixture_operation(small, ids[i], "");
        operations[i].body = body;
        operations[i].body_size = sizeof body;
    }
    send_window(&f, operations);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(operations[i].result, WB_OK);
    fixture_end(&f);
}

static void test_sum(void **state)
{
    (void)state;
    try_sum(WB_MODE_RECEIVE_ONLY);
}

static void test_sum_in_transactions(void **state)
{
    (void)state;
    try_sum(WB_MODE_SENDS_ATOMIC);
}

/* The second time it does not even end the transaction. */
static void test_refused_once(void **state)
{
    static char body[200000];
    char small[160];
    wb_operation operations[COUNT];
    fixture f;
    (void)state;
    begin_mode(&f, WB_MODE_SENDS_ATOMIC);
    (void)snprintf(small, sizeof small, "%s.small", f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, small, 1, "max.message.bytes", "100000");
    client_close(client);
    for (int i = 0; i < COUNT; i++)
        operations[i] = fixture_operation(small, "same", i == 0 ? "a" : "bb");
    operations[POISON].body = body;
    operations[POISON].body_size = sizeof body;
    int aborts = send_in_transaction(&f, operations);
    assert_true(aborts == 1 || aborts == 2);
    assert_int_equal(send_in_transaction(&f, operations), 0);
    assert_int_equal(operations[POISON].result, WB_REJECT);
    assert_int_equal(operations[POISON].cause, WB_CAUSE_TOO_LARGE);
    assert_int_equal(operations[POISON + 1].result, WB_OK);
    /* What was trimmed is another. */
    operations[POISON].body_size = 50000;
    assert_int_equal(send_in_transaction(&f, operations), 0);
    assert_int_equal(operations[POISON].result, WB_OK);
    fixture_end(&f);
}

/* ---- results --------------------------------------------------------------------- */

static void assert_not_sent(fixture *f, const char *text)
{
    wb_operation operations[2] = { fixture_operation(f->queue, "a", "a"),
                                   fixture_operation(f->queue, "b", "b") };
    operations[0].result = operations[1].result = WB_OK; /* as in memory that is all zero */
    int result = fixture_send(f, operations, 2);
    assert_int_not_equal(result, WB_OK);
    if (!strstr(f->error.text, text))
        fail_msg("%s", f->error.text);
    for (int i = 0; i < 2; i++)
        assert_int_not_equal(operations[i].result, WB_OK);
}

/* Whatever ends a send, nothing is taken for sent. */
static void test_results(void **state)
{
    fixture f, twin;
    (void)state;
    begin_mode(&f, WB_MODE_SENDS_ATOMIC);
    assert_not_sent(&f, "outside of a transaction");
    fixture_close(&f);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error), WB_OK);
    assert_not_sent(&f, "not opened to send");
    fixture_end(&f);
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    f.config.instance = "same";
    fixture_start(&f, 10);
    assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    twin = f;
    fixture_create(&twin);
    fixture_open(&twin, 10);
    assert_not_sent(&f, "same instance name");
    assert_not_sent(&f, "same instance name");
    fixture_end(&f);
    fixture_end(&twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destinations),
        cmocka_unit_test(test_destinations_in_transactions),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_headers_in_transactions),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_compacted),
        cmocka_unit_test(test_compacted_in_transactions),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_in_transactions),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_sum_in_transactions),
        cmocka_unit_test(test_refused_once),
        cmocka_unit_test(test_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

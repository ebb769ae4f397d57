/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport within one process: what goes in comes out, in order, byte for
 * byte, once.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/sqlite_support.h"
#include "tests/support/text_header.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)

typedef struct fixture {
    char *directory;
    char *file;
    place orders;
    place billing;
} fixture;

static const char *const order_types[] = { NULL };
static const char *const billing_types[] = { "Sales.OrderPlaced", NULL };

static int set_up(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    made->directory = test_directory();
    made->file = test_file(made->directory, "queues.db");
    place_open(&made->orders, "orders", order_types, made->file, NULL);
    place_open(&made->billing, "billing", billing_types, made->file, NULL);
    place_install(&made->orders);
    place_install(&made->billing);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    fixture *made = *state;
    place_close(&made->orders);
    place_close(&made->billing);
    free(made->file);
    test_remove(made->directory);
    free(made);
    return 0;
}

/* Whoever has sent to it before is told that it is gone, and finds the new one. */
static void a_queue_may_be_removed_and_made_anew(void **state)
{
    fixture *with = *state;
    place *orders = &with->orders, *billing = &with->billing;
    wb_transport_session *session = place_session(orders, BOTH);
    for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
        wb_operation operation = test_send("billing", "1", 1, "1", 1), *one = &operation;
        place_send_numbers(orders, session, "billing", 0, 1);
        assert_int_equal(billing->transport_ops->uninstall(billing->transport, WB_UNINSTALL_MESSAGES, &billing->error), WB_OK);
        if (in_transaction)
            assert_int_equal(orders->transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(orders->transport_ops->send(session, &one, 1, test_now() + WB_SECOND, &orders->error), WB_OK);
        assert_int_equal(operation.result, WB_REJECT);
        assert_int_equal(operation.cause, WB_CAUSE_UNROUTABLE);
        if (in_transaction)
            assert_int_equal(orders->transport_ops->commit(session, NULL), WB_OK);
        place_send_numbers(orders, session, "error", in_transaction, 1);
        place_install(billing);
        place_send_numbers(orders, session, "billing", 1, 2);
        assert_int_equal(test_messages(with->file, "billing"), 2);
        assert_int_equal(billing->transport_ops->uninstall(billing->transport, WB_UNINSTALL_MESSAGES, &billing->error), WB_OK);
        place_install(billing);
        place_send_numbers(orders, session, "billing", 3, 1); /* nothing was sent in between */
        assert_int_equal(test_messages(with->file, "billing"), 1);
    }
    orders->transport_ops->close(session);
}

/* ---- exactness ------------------------------------------------------------------------- */

static void order_is_that_of_sending(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[64];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 150);
    place_send_numbers(&with->orders, session, "orders", 150, 50);
    int expected = 0;
    while (expected < 200) {
        size_t count = place_receive(&with->orders, session, messages, 64, 1000);
        assert_in_range(count, 1, 64);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(test_number(messages[i]), expected++);
            assert_int_equal(messages[i]->delivery_count, 0);
        }
        place_acknowledge(&with->orders, session, messages, count);
    }
    assert_int_equal(place_receive(&with->orders, session, messages, 64, 0), 0);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    with->orders.transport_ops->close(session);
}

static void exact_body(fixture *with, wb_transport_session *session, size_t size)
{
    const wb_incoming *message;
    unsigned char *body = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        body[i] = (unsigned char)(i * 31 + (i >> 12));
    wb_operation operation = test_send("orders", "b", 1, size ? body : NULL, size);
    place_send(&with->orders, session, &operation, 1);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 1000), 1);
    assert_int_equal(message->body_size, size);
    assert_memory_equal(message->body, body, size);
    assert_int_equal(((const char *)message->body)[size], 0);
    place_acknowledge(&with->orders, session, &message, 1);
    free(body);
}

static void bodies_are_exact(void **state)
{
    fixture *with = *state;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    static const size_t sizes[] = { 0, 1, 4096, 65537, (16u << 20) + 1 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        exact_body(with, session, sizes[i]);
    with->orders.transport_ops->close(session);
}

static void ids_are_exact(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[4];
    unsigned char all[255];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (unsigned char)i; /* a NUL first, then every byte but 255 */
    wb_operation operations[] = { test_send("orders", all, 255, "x", 1),
                                  test_send("orders", "a\0b", 3, "x", 1),
                                  test_send("orders", "a\0c", 3, "x", 1),
                                  test_send("orders", NULL, 0, "x", 1) };
    operations[1].key = "k\0y";
    operations[1].key_size = 3;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send(&with->orders, session, operations, 4);
    assert_int_equal(place_receive(&with->orders, session, messages, 4, 1000), 4);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(messages[i]->id_size, operations[i].id_size);
        assert_memory_equal(messages[i]->id, operations[i].id, operations[i].id_size);
        assert_int_equal(messages[i]->id[messages[i]->id_size], 0);
    }
    assert_int_equal(messages[1]->key_size, 3);
    assert_memory_equal(messages[1]->key, "k\0y", 3);
    assert_null(messages[0]->key);
    assert_null(messages[3]->id);
    with->orders.transport_ops->close(session);
}

static void headers_are_exact(void **state)
{
    fixture *with = *state;
    enum { COUNT = 300 };
    wb_header headers[COUNT];
    char names[COUNT][24];
    const wb_incoming *message;
    static const char binary[] = "\xc3\xa9\0\n\"=";
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "Header.%zu", COUNT - i);
        headers[i] = (wb_header){ names[i], binary, strlen(names[i]), sizeof binary - 1 };
    }
    headers[7] = (wb_header){ "", "nothing of it is meant", 0, 0 };
    headers[8] = (wb_header)TEXT_HEADER("Same", "another");
    headers[9] = (wb_header)TEXT_HEADER("Same", "twice");
    wb_operation operation = test_send("orders", "h", 1, NULL, 0);
    operation.headers = headers;
    operation.header_count = COUNT;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send(&with->orders, session, &operation, 1);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 1000), 1);
    assert_int_equal(message->header_count, COUNT);
    assert_null(message->problem);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t size = headers[i].value_size;
        assert_string_equal(message->headers[i].name, headers[i].name);
        assert_int_equal(message->headers[i].name_size, strlen(headers[i].name));
        assert_int_equal(message->headers[i].value_size, size);
        assert_memory_equal(message->headers[i].value, headers[i].value, size);
        assert_int_equal(message->headers[i].value[size], '\0');
    }
    with->orders.transport_ops->close(session);
}

static void damaged_headers_are_delivered_with_the_reason(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[3];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    test_execute(with->file, "insert into waybill_message_1(seq,id,headers,body)"
                             " values(1,'a',x'','b'),(2,'a',x'ffffffff','b'),"
                             "(3,'a',x'01000000ffffff7f4100000000004100','b')");
    assert_int_equal(place_receive(&with->orders, session, messages, 3, 1000), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(messages[i]->problem);
        assert_int_equal(messages[i]->header_count, 0);
        assert_memory_equal(messages[i]->body, "b", 1);
    }
    with->orders.transport_ops->close(session);
}

/* ---- routing --------------------------------------------------------------------------- */

static void an_unroutable_send_is_refused_alone(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[4];
    wb_operation operations[] = { test_send("orders", "1", 1, "1", 1),
                                  test_send("Orders", "2", 1, "2", 1),
                                  test_send("nobody", "3", 1, "3", 1),
                                  test_send("orders", "4", 1, "4", 1) };
    wb_operation *window[] = { &operations[0], &operations[1], &operations[2], &operations[3] };
    wb_transport_session *session = place_session(&with->orders, BOTH);
    assert_int_equal(with->orders.transport_ops->send(session, window, 4, WB_NEVER, NULL), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    assert_int_equal(operations[3].result, WB_OK);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(operations[i].result, WB_REJECT);
        assert_int_equal(operations[i].cause, WB_CAUSE_UNROUTABLE);
        assert_non_null(strstr(operations[i].reason, operations[i].destination));
    }
    assert_int_equal(place_receive(&with->orders, session, messages, 4, 1000), 2);
    with->orders.transport_ops->close(session);
}

static void every_subscriber_gets_an_event(void **state)
{
    fixture *with = *state;
    place audit;
    const wb_incoming *messages[8];
    wb_operation operations[] = { test_send("Sales.OrderPlaced", "1", 1, "1", 1),
                                  test_send("Sales.Nobody", "2", 1, "2", 1),
                                  test_send("Sales.OrderPlaced", "3", 1, "3", 1) };
    for (size_t i = 0; i < 3; i++)
        operations[i].kind = WB_OPERATION_PUBLISH;
    wb_transport_session *sender = place_session(&with->orders, WB_SESSION_SEND);
    place_send(&with->orders, sender, operations, 1);
    place_open(&audit, "audit", billing_types, with->file, NULL);
    place_install(&audit);
    place_send(&with->orders, sender, operations + 1, 2);
    wb_transport_session *one = place_session(&with->billing, WB_SESSION_RECEIVE);
    wb_transport_session *two = place_session(&audit, WB_SESSION_RECEIVE);
    assert_int_equal(place_receive(&with->billing, one, messages, 8, 1000), 2);
    assert_int_equal(test_number(messages[1]), 3);
    assert_int_equal(place_receive(&audit, two, messages, 8, 1000), 1);
    assert_int_equal(test_number(messages[0]), 3);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    with->orders.transport_ops->close(sender);
    with->orders.transport_ops->close(one);
    with->orders.transport_ops->close(two);
    place_close(&audit);
}

/* A session remembers some of the types and queues it met: with more of them in one window, none
 * is taken for one that had its place. */
static void more_types_and_queues_than_are_remembered(void **state)
{
    fixture *with = *state;
    enum { COUNT = 70 };
    char names[COUNT][16];
    wb_operation events[COUNT], sends[COUNT];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 3);
    for (int i = 0; i < COUNT; i++) {
        place more;
        (void)snprintf(names[i], sizeof names[i], "More.%d", i);
        place_open(&more, names[i], order_types, with->file, NULL);
        place_install(&more);
        place_close(&more);
        events[i] = test_send(i ? names[i] : "Sales.OrderPlaced", "e", 1, "1", 1);
        events[i].kind = WB_OPERATION_PUBLISH;
        sends[i] = test_send(i < COUNT - 1 ? names[i] : "orders", "s", 1, "3", 1);
    }
    place_send(&with->orders, session, events, COUNT);
    assert_int_equal(test_messages(with->file, "billing"), 1);
    place_send(&with->orders, session, sends, COUNT);
    assert_int_equal(test_messages(with->file, "orders"), 4);
    with->orders.transport_ops->close(session);
}

/* ---- claims ---------------------------------------------------------------------------- */

static void a_message_in_hand_is_nobody_elses(void **state)
{
    fixture *with = *state;
    const wb_incoming *first[4];
    const wb_incoming *second[16];
    wb_transport_session *one = place_session(&with->orders, BOTH);
    wb_transport_session *two = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, one, "orders", 0, 10);
    assert_int_equal(place_receive(&with->orders, one, first, 4, 1000), 4);
    assert_int_equal(place_receive(&with->orders, two, second, 16, 1000), 6);
    assert_int_equal(test_number(second[0]), 4);
    assert_int_equal(place_receive(&with->orders, two, second, 16, 0), 0);
    /* out of order and one by one: the last first, so that its number is the free end */
    place_acknowledge(&with->orders, two, &second[5], 1);
    assert_int_equal(place_receive(&with->orders, two, second + 6, 1, 0), 0);
    place_send_numbers(&with->orders, one, "orders", 10, 1);
    assert_int_equal(place_receive(&with->orders, one, second + 6, 1, 1000), 1);
    assert_int_equal(test_number(second[6]), 10);
    place_acknowledge(&with->orders, two, second, 5);
    with->orders.transport_ops->close(two);
    assert_int_equal(test_messages(with->file, "orders"), 5);
    with->orders.transport_ops->close(one);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 0);
}

/* Of three that came together two are acknowledged, one after the other. */
static void what_stays_in_hand_stays_in_the_queue(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[3], *none;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 3);
    assert_int_equal(place_receive(&with->orders, session, messages, 3, 1000), 3);
    for (int i = 0; i < 2; i++) {
        place_acknowledge(&with->orders, session, &messages[i], 1);
        assert_int_equal(place_receive(&with->orders, session, &none, 1, 0), 0);
        assert_int_equal(test_messages(with->file, "orders"), 2 - i);
    }
    with->orders.transport_ops->close(session);
}

/* When the transaction fails that was to take their rows along, one of the next does: they never come again. */
static void what_is_acknowledged_goes_when_the_file_takes_it(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[3];
    size_t count = 0;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 3);
    assert_int_equal(place_receive(&with->orders, session, messages, 2, 1000), 2);
    place_acknowledge(&with->orders, session, messages, 2);
    test_execute(with->file, "create trigger never before insert on waybill_claim begin select raise(abort, 'not now'); end");
    for (int i = 0; i < 2; i++)
        assert_int_not_equal(with->orders.transport_ops->receive(session, test_now(), messages, 3, &count, &with->orders.error),
                             WB_OK);
    assert_int_equal(test_messages(with->file, "orders"), 3);
    test_execute(with->file, "drop trigger never");
    assert_int_equal(place_receive(&with->orders, session, messages, 3, 1000), 1);
    assert_int_equal(test_number(messages[0]), 2);
    assert_int_equal(test_messages(with->file, "orders"), 1);
    with->orders.transport_ops->close(session);
}

static void what_is_given_back_is_counted_and_comes_first(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[8];
    const wb_incoming *again[8];
    wb_transport_session *one = place_session(&with->orders, BOTH);
    wb_transport_session *two = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, one, "orders", 0, 6);
    assert_int_equal(place_receive(&with->orders, one, messages, 5, 1000), 5);
    const wb_incoming *returned[] = { messages[1], messages[3] };
    assert_int_equal(with->orders.transport_ops->give_back(one, returned, 2, NULL), WB_OK);
    assert_int_equal(place_receive(&with->orders, two, again, 8, 1000), 3);
    assert_int_equal(test_number(again[0]), 1);
    assert_int_equal(test_number(again[1]), 3);
    assert_int_equal(test_number(again[2]), 5);
    assert_int_equal(again[0]->delivery_count, 1);
    assert_int_equal(again[2]->delivery_count, 0);
    place_acknowledge(&with->orders, one, &messages[0], 1);
    place_acknowledge(&with->orders, one, &messages[2], 1);
    with->orders.transport_ops->close(one); /* gives 4 back */
    with->orders.transport_ops->close(two); /* gives 1, 3, 5 back */
    one = place_session(&with->orders, BOTH);
    assert_int_equal(place_receive(&with->orders, one, again, 8, 1000), 4);
    static const int numbers[] = { 1, 3, 4, 5 };
    static const uint32_t counts[] = { 2, 2, 1, 1 };
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(test_number(again[i]), numbers[i]);
        assert_int_equal(again[i]->delivery_count, counts[i]);
    }
    /* counts go with their messages: one alone, what stays when one goes back, and that one */
    place_acknowledge(&with->orders, one, again, 1);
    assert_int_equal(with->orders.transport_ops->give_back(one, again + 3, 1, NULL), WB_OK);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_redelivered"), 3);
    assert_int_equal(place_receive(&with->orders, one, again + 3, 1, 1000), 1);
    assert_int_equal(with->orders.transport_ops->give_back(one, again + 3, 1, NULL), WB_OK);
    assert_int_equal(place_receive(&with->orders, one, again + 3, 1, 1000), 1);
    assert_int_equal(again[3]->delivery_count, 3);
    place_acknowledge(&with->orders, one, again + 1, 3);
    with->orders.transport_ops->close(one);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_redelivered"), 0);
}

enum { WORKERS = 4, MESSAGES = 3000 };

typedef struct workshop {
    place *at;
    atomic_int *seen;
    atomic_int *left;
} workshop;

/* What stays in hand when another of its claim goes back has a claim of its own, which goes with it: each is looked at
 * by everybody who receives. */
static void claims_go_with_their_messages(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[3];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 3);
    assert_int_equal(place_receive(&with->orders, session, messages, 3, 1000), 3);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 1);
    assert_int_equal(with->orders.transport_ops->give_back(session, &messages[1], 1, NULL), WB_OK);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 2);
    place_acknowledge(&with->orders, session, &messages[0], 1);
    place_acknowledge(&with->orders, session, messages, 0); /* now */
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 1);
    /* and before a transaction commits the session looks whether its claims are there */
    assert_int_equal(with->orders.transport_ops->begin(session, NULL), WB_OK);
    place_acknowledge(&with->orders, session, &messages[2], 1);
    assert_int_equal(with->orders.transport_ops->commit(session, NULL), WB_OK);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 0);
    assert_int_equal(test_messages(with->file, "orders"), 1);
    with->orders.transport_ops->close(session);
}

static void *work(void *argument)
{
    const workshop *with = argument;
    const wb_incoming *messages[17];
    wb_transport_session *session = place_session(with->at, WB_SESSION_RECEIVE);
    while (atomic_load(with->left) > 0) {
        size_t count = place_receive(with->at, session, messages, 17, 20);
        for (size_t i = 0; i < count; i++)
            atomic_fetch_add(&with->seen[test_number(messages[i])], 1);
        place_acknowledge(with->at, session, messages, count);
        atomic_fetch_sub(with->left, (int)count);
    }
    with->at->transport_ops->close(session);
    return NULL;
}

static void threads_never_share_a_message(void **state)
{
    fixture *with = *state;
    static atomic_int seen[MESSAGES];
    static atomic_int left = MESSAGES;
    pthread_t threads[WORKERS];
    workshop shop = { &with->orders, seen, &left };
    wb_transport_session *sender = place_session(&with->orders, WB_SESSION_SEND);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &shop), 0);
    for (int i = 0; i < MESSAGES; i += 50)
        place_send_numbers(&with->orders, sender, "orders", i, 50);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(atomic_load(&seen[i]), 1);
    with->orders.transport_ops->close(sender);
    assert_int_equal(test_messages(with->file, "orders"), 0);
}

/* ---- waiting --------------------------------------------------------------------------- */

typedef struct interruption {
    place *at;
    wb_transport_session *session;
} interruption;

static void *interrupt_soon(void *argument)
{
    const interruption *with = argument;
    (void)usleep(50000);
    with->at->transport_ops->interrupt(with->session);
    return NULL;
}

static void interrupt_ends_a_wait_and_the_next_one(void **state)
{
    fixture *with = *state;
    pthread_t thread;
    const wb_incoming *message;
    wb_transport_session *session = place_session(&with->orders, WB_SESSION_RECEIVE);
    interruption soon = { &with->orders, session };
    int64_t start = test_now();
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &soon), 0);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 10000), 0);
    assert_in_range(test_now() - start, 40 * WB_MILLISECOND, 2 * WB_SECOND);
    assert_int_equal(pthread_join(thread, NULL), 0);
    with->orders.transport_ops->interrupt(session);
    start = test_now();
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 10000), 0);
    assert_in_range(test_now() - start, 0, WB_SECOND);
    start = test_now();
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 120), 0);
    assert_in_range(test_now() - start, 120 * WB_MILLISECOND, WB_SECOND);
    with->orders.transport_ops->close(session);
}

static void interrupt_ends_a_wait_for_the_file(void **state)
{
    fixture *with = *state;
    pthread_t thread;
    const wb_incoming *message;
    wb_transport_session *busy = place_session(&with->orders, BOTH);
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, busy, "orders", 0, 1);
    assert_int_equal(with->orders.transport_ops->begin(busy, NULL), WB_OK);
    interruption soon = { &with->orders, session };
    int64_t start = test_now();
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &soon), 0);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 8000), 0);
    assert_in_range(test_now() - start, 40 * WB_MILLISECOND, 2 * WB_SECOND);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(with->orders.transport_ops->rollback(busy, NULL), WB_OK);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 1000), 1);
    with->orders.transport_ops->close(session);
    with->orders.transport_ops->close(busy);
}

typedef struct taker {
    place *at;
    int64_t when;
} taker;

static void *take_one(void *argument)
{
    taker *with = argument;
    const wb_incoming *message;
    wb_transport_session *session = place_session(with->at, WB_SESSION_RECEIVE);
    if (place_receive(with->at, session, &message, 1, 3000) == 1) {
        with->when = test_now();
        (void)usleep(400000); /* a slow handler: the other message is not its business */
        place_acknowledge(with->at, session, &message, 1);
    }
    with->at->transport_ops->close(session);
    return NULL;
}

static void a_send_wakes_all_who_wait(void **state)
{
    fixture *with = *state;
    enum { TAKERS = 3 };
    pthread_t threads[TAKERS];
    taker takers[TAKERS];
    wb_transport_session *session = place_session(&with->orders, WB_SESSION_SEND);
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (taker){ &with->orders, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, take_one, &takers[i]), 0);
    }
    (void)usleep(200000);
    place_send_numbers(&with->orders, session, "orders", 0, TAKERS);
    int64_t sent = test_now();
    for (int i = 0; i < TAKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(takers[i].when > 0);
        assert_true(takers[i].when - sent < 200 * WB_MILLISECOND);
    }
    with->orders.transport_ops->close(session);
}

/* ---- modes ----------------------------------------------------------------------------- */

static void a_transaction_spans_receive_and_send(void **state)
{
    fixture *with = *state;
    const wb_transport_ops *ops = with->orders.transport_ops;
    const wb_incoming *messages[8];
    wb_operation event = test_send("billing", "e", 1, "7", 1);
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 3);
    assert_int_equal(place_receive(&with->orders, session, messages, 8, 1000), 3);

    assert_int_equal(ops->begin(session, NULL), WB_OK);
    place_send(&with->orders, session, &event, 1);
    place_acknowledge(&with->orders, session, messages, 2);
    place_acknowledge(&with->orders, session, messages + 2, 1);
    assert_int_equal(test_messages(with->file, "billing"), 0);
    assert_int_equal(ops->rollback(session, NULL), WB_OK);
    assert_int_equal(test_messages(with->file, "billing"), 0);
    assert_int_equal(test_messages(with->file, "orders"), 3);

    assert_int_equal(ops->begin(session, NULL), WB_OK);
    assert_int_equal(test_number(messages[0]), 0); /* still in hand */
    place_acknowledge(&with->orders, session, messages, 1);
    place_acknowledge(&with->orders, session, messages + 1, 2);
    place_send(&with->orders, session, &event, 1);
    assert_int_equal(ops->commit(session, NULL), WB_OK);
    assert_int_equal(test_messages(with->file, "billing"), 1);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    assert_int_equal(test_query(with->file, "select count(*) from waybill_claim"), 0);
    ops->close(session);
}

static void a_transaction_that_was_ended_does_not_commit(void **state)
{
    fixture *with = *state;
    const wb_transport_ops *ops = with->orders.transport_ops;
    const wb_incoming *message;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 1);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 1000), 1);
    assert_int_equal(ops->begin(session, NULL), WB_OK);
    place_acknowledge(&with->orders, session, &message, 1);
    /* somebody else's COMMIT is refused, and becomes a rollback */
    assert_int_not_equal(sqlite3_exec(ops->native(session), "commit", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(ops->commit(session, NULL), WB_ABORT);
    assert_int_equal(test_messages(with->file, "orders"), 1);
    assert_int_equal(ops->begin(session, NULL), WB_OK);
    place_acknowledge(&with->orders, session, &message, 1);
    assert_int_equal(ops->commit(session, NULL), WB_OK);
    assert_int_equal(test_messages(with->file, "orders"), 0);
    ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(order_is_that_of_sending),
        CASE(bodies_are_exact),
        CASE(ids_are_exact),
        CASE(headers_are_exact),
        CASE(damaged_headers_are_delivered_with_the_reason),
        CASE(an_unroutable_send_is_refused_alone),
        CASE(every_subscriber_gets_an_event),
        CASE(more_types_and_queues_than_are_remembered),
        CASE(a_message_in_hand_is_nobody_elses),
        CASE(what_stays_in_hand_stays_in_the_queue),
        CASE(what_is_acknowledged_goes_when_the_file_takes_it),
        CASE(claims_go_with_their_messages),
        CASE(what_is_given_back_is_counted_and_comes_first),
        CASE(threads_never_share_a_message),
        CASE(interrupt_ends_a_wait_and_the_next_one),
        CASE(interrupt_ends_a_wait_for_the_file),
        CASE(a_send_wakes_all_who_wait),
        CASE(a_queue_may_be_removed_and_made_anew),
        CASE(a_transaction_spans_receive_and_send),
        CASE(a_transaction_that_was_ended_does_not_commit),
    };
    return cmocka_run_group_tests_name("sqlite queue", tests, NULL, NULL);
}

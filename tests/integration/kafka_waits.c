/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: partitions that wait for a message nobody
 * acknowledges, or for their turn to hold one over the limits, while others go on; and the
 * end of receiving.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

/* As kafka-consumer.h says. */
#define GAP_MAX 1000

static size_t receive_some(fixture *f, const wb_incoming **messages, size_t max, int64_t wait)
{
    size_t count = 0;
    if (f->ops->receive(f->session, fixture_in(wait), messages, max, &count, &f->error) != WB_OK)
        fail_msg("receive: %s", f->error.text);
    return count;
}

static void fill(const fixture *f, int32_t partition, int count)
{
    char body[32];
    rd_kafka_t *client = client_open();
    for (int i = 0; i < count; i++) {
        (void)snprintf(body, sizeof body, "%d-%d", (int)partition, i);
        client_produce(client, f->queue, partition, body, strlen(body), NULL);
    }
    client_flush(client);
    client_close(client);
}

static void fixture_begin_with(fixture *f, int64_t partitions, uint32_t prefetch)
{
    fixture_prepare(f);
    f->config.partitions = partitions;
    fixture_start(f, prefetch);
}

static int is_of(const wb_incoming *message, int partition, int number)
{
    char body[32];
    (void)snprintf(body, sizeof body, "%d-%d", partition, number);
    return message->body_size == strlen(body) &&
           memcmp(message->body, body, message->body_size) == 0;
}

/* ---- behind a message that is not acknowledged ------------------------------------- */

/* Acknowledge all that comes but 0-0 until nothing comes. @return how many. */
static size_t handle_all_but_first(fixture *f, const wb_incoming **ret_kept, unsigned char *seen)
{
    const wb_incoming *messages[100];
    size_t total = 0, count;
    while ((count = receive_some(f, messages, 100, SECONDS(3))) > 0)
        for (size_t i = 0; i < count; i++) {
            int partition = 0, number = 0;
            assert_int_equal(sscanf(messages[i]->body, "%d-%d", &partition, &number), 2);
            if (partition == 0)
                assert_int_equal(seen[number]++, 0);
            if (is_of(messages[i], 0, 0))
                *ret_kept = messages[i];
            else
                fixture_acknowledge(f, messages + i, 1);
            total++;
        }
    return total;
}

/* The partition waits, the other goes on, nothing is committed over it and nothing is lost. */
static void test_gap(void **state)
{
    enum { COUNT = 3 * GAP_MAX };
    static unsigned char seen[COUNT];
    const wb_incoming *kept = NULL, *messages[100];
    fixture f;
    (void)state;
    fixture_begin_with(&f, 2, 200);
    fill(&f, 0, COUNT);
    fill(&f, 1, COUNT);
    size_t total = handle_all_but_first(&f, &kept, seen);
    assert_non_null(kept);
    assert_true(total > COUNT + GAP_MAX && total < COUNT + GAP_MAX + 300);
    assert_true(fixture_logged("a partition waits"));
    assert_int_equal(client_committed(f.queue, f.queue, 1, NULL, 0), COUNT);
    assert_true(client_committed(f.queue, f.queue, 0, NULL, 0) <= 0);
    fixture_acknowledge(&f, &kept, 1);
    while (total < (size_t)2 * COUNT) {
        size_t count = receive_some(&f, messages, 100, SECONDS(20));
        assert_true(count > 0);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(seen[atoi((const char *)messages[i]->body + 2)]++, 0);
        fixture_acknowledge(&f, messages, count);
        total += count;
    }
    fixture_receive_none(&f);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), COUNT);
}

/* A session that ends meanwhile delivers again at most what waited. */
static void test_gap_and_end(void **state)
{
    enum { COUNT = 2 * GAP_MAX };
    static unsigned char seen[COUNT];
    const wb_incoming *kept = NULL, *messages[100];
    fixture f;
    size_t total = 0, count;
    (void)state;
    fixture_begin_with(&f, 1, 200);
    fill(&f, 0, COUNT);
    (void)handle_all_but_first(&f, &kept, seen);
    fixture_close(&f);
    fixture_open(&f, 200);
    while (total < COUNT && (count = receive_some(&f, messages, 100, SECONDS(20))) > 0) {
        assert_true(total || is_of(messages[0], 0, 0));
        fixture_acknowledge(&f, messages, count);
        total += count;
    }
    assert_int_equal(total, COUNT);
    fixture_end(&f);
}

/* In a transaction the same. */
static void test_gap_in_transactions(void **state)
{
    enum { COUNT = 2 * GAP_MAX };
    const wb_incoming *kept = NULL, *messages[100];
    size_t total = 0, count;
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    fixture_start(&f, 200);
    fill(&f, 0, COUNT);
    while ((count = receive_some(&f, messages, 100, SECONDS(3))) > 0) {
        const wb_incoming **first = messages;
        assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
        if (!kept) {
            kept = *first++;
            count--;
        }
        fixture_acknowledge(&f, first, count);
        assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
        total += count;
    }
    assert_true(total > GAP_MAX && total < GAP_MAX + 300);
    assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    fixture_acknowledge(&f, &kept, 1);
    assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
    while (total < COUNT - 1 && (count = receive_some(&f, messages, 100, SECONDS(20))) > 0) {
        assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
        fixture_acknowledge(&f, messages, count);
        assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
        total += count;
    }
    assert_int_equal(total, COUNT - 1);
    fixture_end(&f);
    assert_true(client_committed(f.queue, f.queue, 0, NULL, 0) >= COUNT);
}

/* One that waited is read on by whoever gets it next, also when that is the same session. */
static void test_gap_and_rebalance(void **state)
{
    enum { COUNT = 2 * GAP_MAX };
    static unsigned char seen[COUNT];
    const wb_incoming *kept = NULL, *messages[100];
    size_t total = 0, count;
    fixture f, second;
    (void)state;
    fixture_begin_with(&f, 1, 200);
    fill(&f, 0, COUNT);
    (void)handle_all_but_first(&f, &kept, seen);
    assert_int_equal(f.ops->give_back(f.session, &kept, 1, &f.error), WB_OK);
    /* Another process comes and goes: all partitions are taken away and given out anew, twice. */
    second = f;
    fixture_create(&second);
    fixture_open(&second, 1);
    assert_int_equal(receive_some(&second, messages, 1, SECONDS(4)), 0);
    fixture_end(&second);
    while (total < COUNT && (count = receive_some(&f, messages, 100, SECONDS(20))) > 0) {
        fixture_acknowledge(&f, messages, count);
        total += count;
    }
    assert_int_equal(total, COUNT);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), COUNT);
}

/* Nobody waits for a message that is kept for long when partitions move. */
static void test_kept_and_rebalance(void **state)
{
    const wb_incoming *kept, *message;
    fixture f, second;
    (void)state;
    fixture_begin_with(&f, 2, 10);
    fill(&f, 0, 1);
    fixture_receive(&f, &kept, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(receive_some(&f, &message, 1, 0), 0);
    fill(&f, 1, 1);
    int64_t started = wb_clock_monotonic();
    second = f;
    fixture_create(&second);
    fixture_open(&second, 1);
    assert_int_equal(receive_some(&second, &message, 1, SECONDS(25)), 1);
    assert_true(wb_clock_monotonic() - started < SECONDS(15));
    fixture_end(&second);
    fixture_end(&f);
}

/* ---- messages over the limits ------------------------------------------------------ */

enum { LARGE = 1 << 20, LARGE_LIMIT = 64 << 10, PARTITIONS = 4, EACH = 30, LARGE_EACH = 5 };

/* In each partition, a good one and then every sixth over the limit. */
static void fill_with_large(const fixture *f)
{
    char *body = calloc(1, LARGE);
    rd_kafka_t *client = client_open();
    assert_non_null(body);
    for (int32_t partition = 0; partition < PARTITIONS; partition++)
        for (int i = 0; i < EACH; i++) {
            (void)snprintf(body, 32, "%d-%d", (int)partition, i);
            client_produce(client, f->queue, partition, body,
                           i % 6 == 1 ? LARGE : strlen(body), NULL);
        }
    client_flush(client);
    client_close(client);
    free(body);
}

typedef struct worker {
    fixture *f;
    wb_transport_session *session;
    atomic_int *large, *large_most, *left;
    atomic_int received;
    int failed;
} worker;

static void note_large(worker *w)
{
    int now = atomic_fetch_add(w->large, 1) + 1;
    if (now > atomic_load(w->large_most))
        atomic_store(w->large_most, now);
}

static void handle(worker *w, const wb_incoming *message)
{
    struct timespec pause = { 0, 1000000 };
    wb_error error;
    int is_large = message->body_size > LARGE_LIMIT, counts = message->body_size != 1;
    pause.tv_nsec *= is_large ? 30 : 1;
    (void)nanosleep(&pause, NULL);
    if (is_large)
        atomic_fetch_sub(w->large, 1);
    w->failed |= w->f->ops->acknowledge(w->session, &message, 1, &error) != WB_OK;
    if (counts)
        atomic_fetch_sub(w->left, 1);
}

static void *work(void *argument)
{
    worker *w = argument;
    const wb_incoming *messages[16];
    int64_t deadline = fixture_in(SECONDS(60));
    wb_error error;
    while (atomic_load(w->left) > 0 && !w->failed && wb_clock_monotonic() < deadline) {
        size_t count = 0;
        w->failed |= w->f->ops->receive(w->session, fixture_in(SECONDS(1) / 5), messages, 16,
                                        &count, &error) != WB_OK;
        atomic_fetch_add(&w->received, (int)count);
        for (size_t i = 0; i < count; i++)
            if (messages[i]->body_size > LARGE_LIMIT)
                note_large(w);
        for (size_t i = 0; i < count; i++)
            handle(w, messages[i]);
    }
    return NULL;
}

/* Until each of them has partitions. */
static void await_all(const fixture *f, worker *workers, int count)
{
    rd_kafka_t *client = client_open();
    int64_t deadline = fixture_in(SECONDS(30));
    for (int i = 0; i < count && wb_clock_monotonic() < deadline;) {
        for (int32_t partition = 0; partition < PARTITIONS; partition++)
            client_produce(client, f->queue, partition, "x", 1, NULL);
        client_flush(client);
        (void)usleep(100000);
        i += atomic_load(&workers[i].received) > 0;
    }
    client_close(client);
}

/* However many workers receive, one message over the limit is in hand at a time, and each
 * message comes once. */
static void test_large_one_at_a_time(void **state)
{
    enum { WORKERS = 3 };
    atomic_int large = 0, most = 0, left = PARTITIONS * EACH;
    pthread_t threads[WORKERS];
    worker workers[WORKERS];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.body_max = LARGE_LIMIT;
    f.endpoint.concurrency = WORKERS;
    f.config.message_max = 2 * LARGE;
    f.config.partitions = PARTITIONS;
    fixture_start(&f, 16);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){ .f = &f, .large = &large, .large_most = &most, .left = &left };
        if (i == 0)
            workers[i].session = f.session;
        else
            assert_int_equal(f.ops->open(f.transport, WB_SESSION_RECEIVE, 16, &workers[i].session,
                                         &f.error),
                             WB_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    await_all(&f, workers, WORKERS);
    fill_with_large(&f);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(workers[i].failed);
    }
    assert_int_equal(atomic_load(&left), 0);
    assert_int_equal(atomic_load(&most), 1);
    for (int i = 0; i < WORKERS; i++)
        assert_true(atomic_load(&workers[i].received) > 0);
    for (int i = 1; i < WORKERS; i++)
        f.ops->close(workers[i].session);
    fixture_end(&f);
}

/* While one is kept, what is behind another waits, and the partitions without one go on. */
static void test_large_kept(void **state)
{
    char *body = calloc(1, LARGE);
    const wb_incoming *kept, *messages[16];
    size_t total = 0, count;
    fixture f;
    (void)state;
    assert_non_null(body);
    fixture_prepare(&f);
    f.endpoint.body_max = LARGE_LIMIT;
    f.config.message_max = 2 * LARGE;
    f.config.partitions = 3;
    fixture_start(&f, 16);
    rd_kafka_t *client = client_open();
    client_produce(client, f.queue, 0, body, LARGE, NULL);
    client_flush(client);
    fixture_receive(&f, &kept, 1);
    assert_int_equal(kept->body_size, LARGE);
    client_produce(client, f.queue, 0, "behind", 6, NULL);
    client_produce(client, f.queue, 1, body, LARGE, NULL);
    client_produce(client, f.queue, 1, "behind", 6, NULL);
    for (int i = 0; i < 10; i++)
        client_produce(client, f.queue, 2, "beside", 6, NULL);
    client_flush(client);
    client_close(client);
    while ((count = receive_some(&f, messages, 16, SECONDS(2))) > 0) {
        for (size_t i = 0; i < count; i++)
            assert_int_equal(messages[i]->body_size, 6);
        fixture_acknowledge(&f, messages, count);
        total += count;
    }
    assert_int_equal(total, 11);
    fixture_acknowledge(&f, &kept, 1);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->body_size, LARGE);
    assert_int_equal(messages[1]->body_size, 6);
    fixture_acknowledge(&f, messages, 2);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 1, NULL, 0), 2);
    free(body);
}

/* ---- the end of receiving ---------------------------------------------------------- */

static void stop(fixture *f)
{
    assert_true(WB_HAS(f->ops, wb_transport_ops, stop_receiving));
    assert_int_equal(f->ops->stop_receiving(f->session, &f->error), WB_OK);
}

static void assert_nothing_at_once(fixture *f)
{
    const wb_incoming *message;
    int64_t started = wb_clock_monotonic();
    assert_int_equal(receive_some(f, &message, 1, SECONDS(30)), 0);
    assert_true(wb_clock_monotonic() - started < SECONDS(5));
}

/* What is in hand can be settled; what was fetched ahead counts nothing. */
static void test_stop(void **state)
{
    const wb_incoming *messages[10];
    char note[64];
    fixture f;
    (void)state;
    fixture_begin_with(&f, 1, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 3);
    stop(&f);
    assert_nothing_at_once(&f);
    fixture_acknowledge(&f, messages, 3);
    assert_nothing_at_once(&f);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 3);
    assert_string_equal(note, "");
    for (int i = 0; i < 4; i++) { /* as often as makes a message suspicious */
        fixture_open(&f, 10);
        fixture_receive(&f, messages, 1);
        assert_int_equal(messages[0]->delivery_count, 0);
        stop(&f);
        fixture_acknowledge(&f, messages, 1);
        fixture_close(&f);
    }
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(messages[i]->delivery_count, 0);
    assert_string_equal(messages[0]->id, "m-7");
    /* Given back after the stop: it counts for that one, and is not handed out again. */
    stop(&f);
    fixture_acknowledge(&f, messages, 1);
    assert_int_equal(f.ops->give_back(f.session, messages + 1, 1, &f.error), WB_OK);
    assert_nothing_at_once(&f);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, note, sizeof note), 8);
    assert_string_equal(note, "waybill/1 1 2");
    fixture_end(&f);
}

static void test_stop_in_transaction(void **state)
{
    const wb_incoming *messages[4];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    fixture_start(&f, 10);
    fill(&f, 0, 4);
    fixture_receive(&f, messages, 2);
    assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    stop(&f);
    fixture_acknowledge(&f, messages, 2);
    assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
    assert_nothing_at_once(&f);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 2);
}

/* Kafka drops nothing for being delivered often: it has nothing to say, and nobody begins slowly for it. */
static void test_no_delivery_limit(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 1);
    assert_false(WB_HAS(f.ops, wb_transport_ops, limits));
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_gap_and_end),
        cmocka_unit_test(test_gap_in_transactions),
        cmocka_unit_test(test_gap_and_rebalance),
        cmocka_unit_test(test_kept_and_rebalance),
        cmocka_unit_test(test_large_one_at_a_time),
        cmocka_unit_test(test_large_kept),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_in_transaction),
        cmocka_unit_test(test_no_delivery_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

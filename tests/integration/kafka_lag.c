/* SPDX-License-Identifier: Apache-2.0
 *
 * The group's lag, against a real broker: the end of a transaction takes an offset as a message
 * does. Where it stands last, the endpoint is done with it all the same, and whoever watches the
 * group sees no message that waits.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

/* ---- a producer with transactions -------------------------------------------------- */

static void check(rd_kafka_error_t *failed)
{
    if (failed)
        fail_msg("%s", rd_kafka_error_string(failed));
}

static rd_kafka_t *open_transactions(const fixture *f)
{
    char text[300];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", getenv("KAFKA_BROKERS"), text, sizeof text);
    (void)rd_kafka_conf_set(conf, "transactional.id", f->queue, text, sizeof text);
    (void)rd_kafka_conf_set(conf, "log_level", "0", text, sizeof text);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(client);
    check(rd_kafka_init_transactions(client, 20000));
    return client;
}

/* One message in each of the first partitions. */
static void send_in_transaction(rd_kafka_t *client, const fixture *f, int partitions, int commits)
{
    check(rd_kafka_begin_transaction(client));
    for (int32_t p = 0; p < partitions; p++)
        client_produce(client, f->queue, p, "body", 4, NULL);
    client_flush(client);
    check(commits ? rd_kafka_commit_transaction(client, 20000)
                  : rd_kafka_abort_transaction(client, 20000));
}

/* ---- what a monitor sees ----------------------------------------------------------- */

static int64_t end_of(rd_kafka_t *client, const fixture *f, int32_t partition)
{
    int64_t low, high = 0;
    assert_int_equal(rd_kafka_query_watermark_offsets(client, f->queue, partition, &low, &high,
                                                      20000),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    return high;
}

static int64_t lag_of(rd_kafka_t *client, const fixture *f, int32_t partition)
{
    int64_t committed = client_committed(f->queue, f->queue, partition, NULL, 0);
    return end_of(client, f, partition) - (committed < 0 ? 0 : committed);
}

/* A worker that has nothing to do asks all the same. */
static void await_no_lag(rd_kafka_t *client, fixture *f, int32_t partition)
{
    const wb_incoming *message;
    int64_t lag, deadline = fixture_in(SECONDS(15));
    while ((lag = lag_of(client, f, partition)) != 0 && wb_clock_monotonic() < deadline) {
        size_t count = 0;
        if (f->ops->receive(f->session, fixture_in(SECONDS(1) / 5), &message, 1, &count, &f->error))
            fail_msg("receive: %s", f->error.text);
        assert_int_equal(count, 0);
    }
    assert_int_equal(lag, 0);
}

/* ---- cases ------------------------------------------------------------------------- */

static void begin_transaction(fixture *f)
{
    if (f->endpoint.mode == WB_MODE_SENDS_ATOMIC)
        assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
}

static void commit_transaction(fixture *f)
{
    if (f->endpoint.mode == WB_MODE_SENDS_ATOMIC)
        assert_int_equal(f->ops->commit(f->session, &f->error), WB_OK);
}

static void handle(fixture *f, size_t count)
{
    const wb_incoming *messages[8];
    fixture_receive(f, messages, count);
    begin_transaction(f);
    fixture_acknowledge(f, messages, count);
    commit_transaction(f);
}

/* Ends of transactions, of committed and of aborted ones, are not left behind; and what comes
 * after them is received. */
static void lag_in_mode(int mode)
{
    fixture f;
    fixture_prepare(&f);
    f.endpoint.mode = mode;
    f.config.partitions = 2;
    fixture_start(&f, 10);
    rd_kafka_t *client = open_transactions(&f);
    for (int round = 0; round < 3; round++) {
        send_in_transaction(client, &f, 2, 1);
        handle(&f, 2);
        await_no_lag(client, &f, 0);
        await_no_lag(client, &f, 1);
        send_in_transaction(client, &f, 1, 0);
        await_no_lag(client, &f, 0);
    }
    assert_int_equal(end_of(client, &f, 0), 12);
    client_close(client);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 12);
}

static void test_lag(void **state)
{
    (void)state;
    lag_in_mode(WB_MODE_RECEIVE_ONLY);
}

static void test_lag_of_none(void **state)
{
    (void)state;
    lag_in_mode(WB_MODE_NONE);
}

static void test_lag_in_transactions(void **state)
{
    (void)state;
    lag_in_mode(WB_MODE_SENDS_ATOMIC);
}

/* The end of the partition is behind a message that is not done: it stays the one to begin with. */
static void test_lag_behind_a_message_in_hand(void **state)
{
    const wb_incoming *message;
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    rd_kafka_t *client = open_transactions(&f);
    send_in_transaction(client, &f, 1, 1);
    fixture_receive(&f, &message, 1);
    (void)sleep(2); /* until the end was met, which nothing shows */
    fixture_receive_none(&f);
    assert_int_equal(lag_of(client, &f, 0), 2);
    assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    handle(&f, 1);
    await_no_lag(client, &f, 0);
    client_close(client);
    fixture_end(&f);
}

/* Who begins behind the last message, and has nothing to handle, moves on as well. */
static void test_lag_after_a_start(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    rd_kafka_t *client = open_transactions(&f);
    send_in_transaction(client, &f, 1, 1);
    handle(&f, 1);
    fixture_close(&f);
    send_in_transaction(client, &f, 1, 0);
    fixture_open(&f, 10);
    await_no_lag(client, &f, 0);
    client_close(client);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lag),
        cmocka_unit_test(test_lag_of_none),
        cmocka_unit_test(test_lag_in_transactions),
        cmocka_unit_test(test_lag_behind_a_message_in_hand),
        cmocka_unit_test(test_lag_after_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

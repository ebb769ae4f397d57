/* SPDX-License-Identifier: Apache-2.0
 *
 * What a real broker does not do on demand: librdkafka's mock cluster answers with the error
 * that is asked for. Sending only: it knows no administration.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tests/integration/kafka-fixture.h"

#include <librdkafka/rdkafka_mock.h> /* wants rdkafka.h before it */

#define PRODUCE 0 /* the request's number in the protocol */

static rd_kafka_t *owner;
static rd_kafka_mock_cluster_t *cluster;

static int start_cluster(void **state)
{
    char text[200];
    (void)state;
    owner = rd_kafka_new(RD_KAFKA_PRODUCER, NULL, text, sizeof text);
    cluster = owner ? rd_kafka_mock_cluster_new(owner, 1) : NULL;
    if (!cluster)
        return -1;
    return setenv("KAFKA_BROKERS", rd_kafka_mock_cluster_bootstraps(cluster), 1) ||
           setenv("KAFKA_PREFIX", "mock", 1);
}

static int stop_cluster(void **state)
{
    (void)state;
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(owner);
    return 0;
}

/* A session that sends to a topic the cluster has. */
static void open_sender(fixture *f)
{
    fixture_prepare(f);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    if (f->ops->open(f->transport, WB_SESSION_SEND, 0, &f->session, &f->error) != WB_OK)
        fail_msg("%s", f->error.text);
}

static int send_with(fixture *f, wb_operation *operation, rd_kafka_resp_err_t code)
{
    open_sender(f);
    *operation = fixture_operation(f->queue, "m-1", "body");
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, code);
    return fixture_send(f, operation, 1);
}

/* What passes is tried again under the producer's idempotence, and the host hears nothing. */
static void test_passing_errors(void **state)
{
    static const rd_kafka_resp_err_t codes[] = {
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
    };
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        wb_operation operation;
        fixture f;
        int r = send_with(&f, &operation, codes[i]);
        if (r != WB_OK || operation.result != WB_OK)
            fail_msg("%s: %d, %s", rd_kafka_err2name(codes[i]), r, f.error.text);
        fixture_end(&f);
    }
}

/* What never passes is the message's own failure, with a reason. */
static void test_refusals(void **state)
{
    static const struct {
        rd_kafka_resp_err_t code;
        int cause;
    } refusals[] = {
        { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, WB_CAUSE_REFUSED },
        { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, WB_CAUSE_TOO_LARGE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        wb_operation operation;
        fixture f;
        assert_int_equal(send_with(&f, &operation, refusals[i].code), WB_OK);
        assert_int_equal(operation.result, WB_REJECT);
        assert_int_equal(operation.cause, refusals[i].cause);
        assert_non_null(strstr(operation.reason, f.queue));
        fixture_end(&f);
    }
}

/* The broker has it and does not answer in time: nobody knows, and nobody says more. */
static void test_no_answer(void **state)
{
    fixture f;
    (void)state;
    open_sender(&f);
    wb_operation operation = fixture_operation(f.queue, "m-1", "body"), *one = &operation;
    assert_int_equal(fixture_send(&f, one, 1), WB_OK);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 3000), RD_KAFKA_RESP_ERR_NO_ERROR);
    int r = f.ops->send(f.session, &one, 1, fixture_in(SECONDS(1)), &f.error);
    fixture_assert_failed(&f, r, WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, "");
    assert_int_not_equal(operation.result, WB_OK);
    assert_int_not_equal(operation.result, WB_REJECT);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing_errors),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_answer),
    };
    return cmocka_run_group_tests_name("kafka mock", tests, start_cluster, stop_cluster);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a real broker does not do on demand: librdkafka's mock cluster answers with the error
 * that is asked for. It knows no administration.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

#include <librdkafka/rdkafka_mock.h> /* wants rdkafka.h before it */

/* The numbers of requests in the protocol. */
#define PRODUCE 0
#define OFFSET_COMMIT 8
#define OFFSET_FETCH 9
#define HEARTBEAT 12
#define ADD_PARTITIONS_TO_TXN 24
#define END_TXN 26
#define TXN_OFFSET_COMMIT 28

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
        RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
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
        { RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, WB_CAUSE_TOO_LARGE },
        { RD_KAFKA_RESP_ERR_INVALID_RECORD, WB_CAUSE_OTHER },
        { RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, WB_CAUSE_OTHER },
        { RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, WB_CAUSE_UNROUTABLE },
        { RD_KAFKA_RESP_ERR_POLICY_VIOLATION, WB_CAUSE_UNROUTABLE },
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

/* What is wrong with the server, or with us, is nobody's refusal: nothing is taken for sent, and
 * the class says who must act. */
static void test_others_fault(void **state)
{
    static const struct {
        rd_kafka_resp_err_t code;
        int result, cause;
    } failures[] = {
        { RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, WB_NOT_CONNECTED, WB_CAUSE_SERVER },
        { RD_KAFKA_RESP_ERR_UNKNOWN, WB_NOT_CONNECTED, WB_CAUSE_SERVER },
        { RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, WB_FATAL, WB_CAUSE_REFUSED },
        { RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, WB_FATAL, WB_CAUSE_CONFIG },
    };
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        wb_operation operation;
        fixture f;
        int result = send_with(&f, &operation, failures[i].code);
        fixture_assert_failed(&f, result, failures[i].result, failures[i].cause, f.queue);
        assert_int_equal(operation.result, failures[i].result);
        fixture_end(&f);
    }
}

/* ---- in a transaction -------------------------------------------------------------- */

static void open_transactions(fixture *f)
{
    fixture_prepare(f);
    f->endpoint.mode = WB_MODE_SENDS_ATOMIC;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    fixture_open(f, 10);
    assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
}

static void assert_works(fixture *f)
{
    wb_operation operation = fixture_operation(f->queue, "m-2", "body");
    assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
    assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    assert_int_equal(operation.result, WB_OK);
    if (f->ops->commit(f->session, &f->error) != WB_OK)
        fail_msg("commit: %s", f->error.text);
}

/* A topic that may be seen and not be written to is the operation's fault; the session lives. */
static void test_refused_topic_in_transaction(void **state)
{
    fixture f;
    (void)state;
    open_transactions(&f);
    wb_operation operation = fixture_operation(f.queue, "m-1", "body");
    rd_kafka_mock_push_request_errors(cluster, ADD_PARTITIONS_TO_TXN, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    assert_int_equal(operation.result, WB_REJECT);
    assert_int_equal(operation.cause, WB_CAUSE_REFUSED);
    assert_int_equal(f.ops->rollback(f.session, &f.error), WB_OK);
    assert_works(&f);
    fixture_end(&f);
}

/* With others beside it nobody knows whose it is, until they are sent one by one. */
static void test_refused_topic_among_others(void **state)
{
    fixture f;
    wb_operation operations[3];
    (void)state;
    open_transactions(&f);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            operations[i] = fixture_operation(f.queue, i == 0 ? "a" : i == 1 ? "b" : "c", "body");
        rd_kafka_mock_push_request_errors(cluster, ADD_PARTITIONS_TO_TXN, 1,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        int result = fixture_send(&f, operations, 3);
        fixture_assert_failed(&f, result, WB_ABORT, WB_CAUSE_REFUSED, "cannot be committed");
        assert_int_equal(operations[0].result, round ? WB_REJECT : WB_ABORT);
        assert_int_equal(operations[1].result, WB_ABORT);
        assert_int_equal(operations[2].result, WB_ABORT);
        assert_int_equal(f.ops->rollback(f.session, &f.error), WB_OK);
        assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    }
    assert_int_equal(fixture_send(&f, operations, 3), WB_OK);
    assert_int_equal(operations[0].result, WB_REJECT);
    assert_int_equal(operations[1].result, WB_OK);
    assert_int_equal(operations[2].result, WB_OK);
    assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
    fixture_end(&f);
}

/* Who may not use transactions at all is told so, and does not try for ever. */
static void test_forbidden_transactions(void **state)
{
    fixture f;
    (void)state;
    open_transactions(&f);
    wb_operation operation = fixture_operation(f.queue, "m-1", "body");
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    rd_kafka_mock_push_request_errors(cluster, END_TXN, 1,
                                      RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    int result = f.ops->commit(f.session, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "commit the transaction");
    fixture_end(&f);
}

/* One message in hand, in a session that has transactions. */
static void receive_for_transaction(fixture *f, const wb_incoming **ret_message)
{
    fixture_prepare(f);
    f->endpoint.mode = WB_MODE_SENDS_ATOMIC;
    f->config.confirm_timeout = SECONDS(4);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    fixture sender = *f; /* one that only sends, sends at once */
    assert_int_equal(f->ops->open(f->transport, WB_SESSION_SEND, 1, &sender.session, &f->error), WB_OK);
    fixture_fill(&sender, 1);
    fixture_close(&sender);
    fixture_open(f, 10);
    fixture_receive(f, ret_message, 1);
}

/* Who may not commit for the group would try for ever, were each try rolled back and run again. */
static void test_forbidden_offsets(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    receive_for_transaction(&f, &message);
    rd_kafka_mock_push_request_errors(cluster, TXN_OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    int result = f.ops->begin(f.session, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "commit offsets");
    fixture_end(&f);
}

/* The coordinator ends the transaction, and its answer comes too late: what this session knows of offsets is older
 * then, and is not committed behind it, as in any other session that ends with a message in hand. (In a transaction
 * this cluster keeps no offsets.) */
static void test_transaction_in_doubt(void **state)
{
    fixture f;
    const wb_incoming *message;
    char before[64], after[64];
    (void)state;
    receive_for_transaction(&f, &message);
    assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    fixture_acknowledge(&f, &message, 1);
    int64_t offset = client_committed(f.queue, f.queue, 0, before, sizeof before);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 8000), RD_KAFKA_RESP_ERR_NO_ERROR);
    int result = f.ops->commit(f.session, &f.error);
    fixture_assert_failed(&f, result, WB_IN_DOUBT, WB_CAUSE_UNREACHABLE, "commit the transaction");
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    (void)f.ops->rollback(f.session, &f.error);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, after, sizeof after), offset);
    assert_string_equal(after, before);
}

/* ---- who receives -------------------------------------------------------------------- */

/* In front of librdkafka's, which the mock cluster has no answer for: what it says of a group, the last one for ever. */
static struct said {
    rd_kafka_resp_err_t code, group_code;
    int members;
} said[4];
static int said_last, said_now;

#define IN_FRONT __attribute__((visibility("default")))

IN_FRONT rd_kafka_resp_err_t rd_kafka_list_groups(rd_kafka_t *rk, const char *name,
                                                  const struct rd_kafka_group_list **ret_list, int timeout_ms)
{
    static struct rd_kafka_group_info group;
    static struct rd_kafka_group_list list = { &group, 1 };
    const struct said *one = &said[said_now];
    (void)rk, (void)name, (void)timeout_ms;
    said_now += said_now < said_last;
    group = (struct rd_kafka_group_info){ .err = one->group_code, .member_cnt = one->members };
    *ret_list = &list;
    return one->code;
}

IN_FRONT void rd_kafka_group_list_destroy(const struct rd_kafka_group_list *list)
{
    (void)list;
}

static int look(fixture *f, const struct said *all, int count, wb_transport_depth *ret_depth)
{
    memcpy(said, all, (size_t)count * sizeof *all);
    said_last = count - 1;
    said_now = 0;
    *ret_depth = (wb_transport_depth){ .struct_size = sizeof *ret_depth };
    return f->ops->depth(f->transport, ret_depth, &f->error);
}

/* A coordinator that is away, or still reads its log, is asked again: half an answer is not that nobody receives. */
static void test_members(void **state)
{
    static const struct said later[] = { { RD_KAFKA_RESP_ERR__PARTIAL, 0, 0 },
                                         { 0, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, 0 },
                                         { 0, 0, 2 } },
                             none[] = { { 0, RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND, 0 } },
                             never[] = { { RD_KAFKA_RESP_ERR__PARTIAL, 0, 0 } };
    wb_transport_depth depth;
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.connect_timeout = SECONDS(2);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    if (look(&f, later, 3, &depth) != WB_OK)
        fail_msg("depth: %s", f.error.text);
    assert_int_equal(depth.readers, 2);
    assert_int_equal(look(&f, none, 1, &depth), WB_OK);
    assert_int_equal(depth.readers, 0);
    int result = look(&f, never, 1, &depth);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "members of the group");
    result = f.ops->uninstall(f.transport, WB_UNINSTALL_MESSAGES, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "members of the group");
    fixture_end(&f);
}

/* ---- limits of topics --------------------------------------------------------------- */

/* Where nobody says how large messages may be, all goes on, with one line. */
static void test_unknown_limits(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.replication = 1;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.error_queue, 1, 1),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    int warnings = fixture_warnings();
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    assert_int_equal(fixture_warnings(), warnings);
    assert_true(fixture_logged("could not be found out"));
    fixture_end(&f);
}

/* Nothing more comes, and what was acknowledged is committed all the same. */
static void test_refused_commit(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_prepare(&f);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    fixture_open(&f, 1);
    wb_operation operation = fixture_operation(f.queue, "m-1", "body");
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    rd_kafka_mock_push_request_errors(cluster, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE);
    fixture_acknowledge(&f, &message, 1);
    for (int i = 0; i < 50 && client_committed(f.queue, f.queue, 0, NULL, 0) != 1; i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    assert_true(fixture_logged("offsets could not be committed"));
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 1);
    fixture_end(&f);
}

/* One message acknowledged, in a group that does not let it be committed, or whose member was fenced. */
static void open_with_one(fixture *f, const wb_incoming **ret_message)
{
    fixture_prepare(f);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    fixture_open(f, 1);
    wb_operation operation = fixture_operation(f->queue, "m-1", "body");
    assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    fixture_receive(f, ret_message, 1);
}

static void refuse_often(int16_t request, rd_kafka_resp_err_t code)
{
    static rd_kafka_resp_err_t codes[5000];
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        codes[i] = code;
    rd_kafka_mock_push_request_errors_array(cluster, request, sizeof codes / sizeof *codes, codes);
}

/* For three seconds: what the process computes, and what it logs of commits. */
static void assert_patient(const char *what)
{
    static const char line[] = "offsets could not be committed";
    struct timespec before, after;
    fixture_forget_lines();
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    wb_clock_pause(3 * WB_SECOND, NULL);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double spent = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    int lines = fixture_count_logged(line);
    printf("# %s: %d lines, %.2f s of CPU in 3 s\n", what, lines, spent);
    assert_true(lines <= 2);
    assert_true(spent < 0.5);
}

/* What is refused at once is not tried again at once. */
static void test_refused_commits(void **state)
{
    static const rd_kafka_resp_err_t codes[] = {
        RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE,
        RD_KAFKA_RESP_ERR_UNKNOWN,
    };
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fixture f;
        const wb_incoming *message;
        open_with_one(&f, &message);
        refuse_often(OFFSET_COMMIT, codes[i]);
        fixture_acknowledge(&f, &message, 1);
        assert_patient(rd_kafka_err2name(codes[i]));
        rd_kafka_mock_clear_request_errors(cluster, OFFSET_COMMIT);
        for (int j = 0; j < 50 && client_committed(f.queue, f.queue, 0, NULL, 0) != 1; j++)
            wb_clock_pause(WB_SECOND / 10, NULL);
        assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 1);
        fixture_end(&f);
    }
}

/* A member that was fenced knows it, and its worker hears of it when it comes back from its
 * handler; until then others acknowledge what they have. */
static void test_fenced_commits(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    open_with_one(&f, &message);
    refuse_often(HEARTBEAT, RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
    for (int i = 0; i < 100 && f.ops->receive(f.session, fixture_in(0), (const wb_incoming *[1]){ NULL }, 1,
                                              &(size_t){ 0 }, &f.error) == WB_OK; i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    fixture_assert_failed(&f, WB_NOT_CONNECTED, WB_NOT_CONNECTED, WB_CAUSE_OTHER, "");
    fixture_acknowledge(&f, &message, 1);
    assert_patient("fenced");
    rd_kafka_mock_clear_request_errors(cluster, HEARTBEAT);
    fixture_end(&f);
}

/* As a session leaves it that is at work when its process ends. */
static void commit_note(const char *queue, const char *note)
{
    char text[200];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", getenv("KAFKA_BROKERS"), text, sizeof text);
    (void)rd_kafka_conf_set(conf, "group.id", queue, text, sizeof text);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    assert_non_null(client);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *entry = rd_kafka_topic_partition_list_add(list, queue, 0);
    entry->offset = 0;
    entry->metadata = strdup(note);
    entry->metadata_size = strlen(note);
    assert_int_equal(rd_kafka_commit(client, list, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
}

/* @return how long acknowledging a message took, with a coordinator that takes so many milliseconds. */
static int64_t acknowledge_slowly(const char *note, int rtt)
{
    fixture f;
    const wb_incoming *message;
    fixture_prepare(&f);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    if (note)
        commit_note(f.queue, note);
    fixture_open(&f, 1);
    wb_operation operation = fixture_operation(f.queue, "m-1", "body");
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, rtt), RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t started = wb_clock_monotonic();
    fixture_acknowledge(&f, &message, 1);
    int64_t spent = wb_clock_monotonic() - started;
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_end(&f);
    return spent;
}

/* Behind a process that ended in the middle of its work each message is done for good when it is acknowledged: one
 * more that ends the process is then the first the next time, and counted. */
static void test_careful_behind_a_death(void **state)
{
    (void)state;
    assert_true(acknowledge_slowly("waybill/1 0 0", 400) >= 200 * WB_MILLISECOND);
    assert_true(acknowledge_slowly(NULL, 10000) < 5 * WB_SECOND); /* nobody ended */
    assert_true(acknowledge_slowly("waybill/1 0 0", 10000) < 5 * WB_SECOND); /* work goes on without an answer */
}

/* A broker far away: each answer takes longer than the first question's patience. */
static void verify_from_afar(int rtt, rd_kafka_resp_err_t refusal, int64_t most)
{
    fixture f;
    fixture_prepare(&f);
    f.config.replication = 1;
    f.config.connect_timeout = SECONDS(5);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.error_queue, 1, 1),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, rtt), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int i = 0; refusal && i < 100; i++)
        rd_kafka_mock_push_request_errors(cluster, OFFSET_FETCH, 1, refusal);
    int64_t started = wb_clock_monotonic();
    int result = f.ops->verify(f.transport, &f.error);
    int64_t spent = wb_clock_monotonic() - started;
    printf("# verified in %d ms with a round trip of %d ms\n", (int)(spent / WB_MILLISECOND), rtt);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_mock_clear_request_errors(cluster, OFFSET_FETCH);
    if (refusal)
        fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "grant READ on the group");
    else if (result != WB_OK)
        fail_msg("verify: %s", f.error.text);
    /* This cluster does not tell limits, for which connect_timeout is waited: once. */
    assert_true(spent < most);
    fixture_end(&f);
}

static void test_far_broker(void **state)
{
    static const int rtts[] = { 0, 60, 300 };
    (void)state;
    for (size_t i = 0; i < sizeof rtts / sizeof *rtts; i++) {
        int64_t most = rtts[i] < 100 ? SECONDS(9) : SECONDS(15); /* several questions, one by one */
        verify_from_afar(rtts[i], RD_KAFKA_RESP_ERR_NO_ERROR, most);
        verify_from_afar(rtts[i], RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, most);
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
    fixture_assert_failed(&f, r, WB_IN_DOUBT, WB_CAUSE_SENDING, f.queue);
    assert_int_not_equal(operation.result, WB_OK);
    assert_int_not_equal(operation.result, WB_REJECT);
    assert_int_equal(rd_kafka_mock_broker_set_rtt(cluster, 1, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_end(&f);
}

/* ---- several sessions of a process --------------------------------------------------- */

typedef struct sender {
    fixture *f;
    wb_transport_session *session;
    const char *topic;
    atomic_int *stop;
    atomic_int sent;
    int failed;
    int64_t longest;
    wb_error error;
} sender;

static int send_one(sender *s, const char *topic, int64_t patience)
{
    wb_operation operation = fixture_operation(topic, "id", "body"), *one = &operation;
    int64_t started = wb_clock_monotonic();
    int result = s->f->ops->send(s->session, &one, 1, fixture_in(patience), &s->error);
    int64_t spent = wb_clock_monotonic() - started;
    s->longest = spent > s->longest ? spent : s->longest;
    atomic_fetch_add(&s->sent, result == WB_OK && operation.result == WB_OK);
    return result;
}

static void reopen(sender *s)
{
    s->f->ops->close(s->session);
    if (s->f->ops->open(s->f->transport, WB_SESSION_SEND, 0, &s->session, &s->error))
        fail_msg("open: %s", s->error.text);
}

static void *send_main(void *argument)
{
    sender *s = argument;
    while (!atomic_load(s->stop)) {
        if (send_one(s, s->topic, SECONDS(20)) == WB_OK)
            continue;
        s->failed++;
        reopen(s);
    }
    return NULL;
}

/* A destination that confirms nothing holds up who sends there. The others go on; of what they have
 * on its way when that one gives up, nobody knows, and they begin anew once. */
static void test_unconfirmed_beside_others(void **state)
{
    fixture f;
    sender deaf = { .f = &f }, other = { .f = &f };
    pthread_t thread;
    atomic_int stop = 0;
    (void)state;
    char before[100];
    (void)snprintf(before, sizeof before, "%s", getenv("KAFKA_BROKERS"));
    rd_kafka_mock_cluster_t *two = rd_kafka_mock_cluster_new(owner, 2);
    assert_int_equal(setenv("KAFKA_BROKERS", rd_kafka_mock_cluster_bootstraps(two), 1), 0);
    fixture_prepare(&f);
    (void)rd_kafka_mock_topic_create(two, f.queue, 1, 1);
    (void)rd_kafka_mock_topic_create(two, f.error_queue, 1, 1);
    (void)rd_kafka_mock_partition_set_leader(two, f.queue, 0, 1);
    (void)rd_kafka_mock_partition_set_leader(two, f.error_queue, 0, 2);
    fixture_create(&f);
    for (int i = 0; i < 2; i++)
        assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 0, i ? &other.session : &deaf.session,
                                     &f.error),
                         WB_OK);
    assert_int_equal(send_one(&deaf, f.queue, SECONDS(20)), WB_OK);
    other.topic = f.error_queue;
    other.stop = &stop;
    assert_int_equal(pthread_create(&thread, NULL, send_main, &other), 0);
    (void)usleep(300000);
    (void)rd_kafka_mock_broker_set_rtt(two, 1, 60000);
    int sent = atomic_load(&other.sent);
    int result = send_one(&deaf, f.queue, SECONDS(3));
    assert_true(result == WB_IN_DOUBT || result == WB_NOT_CONNECTED);
    int beside = atomic_load(&other.sent) - sent;
    (void)rd_kafka_mock_broker_set_rtt(two, 1, 0);
    reopen(&deaf);
    assert_int_equal(send_one(&deaf, f.queue, SECONDS(20)), WB_OK);
    sent = atomic_load(&other.sent);
    (void)usleep(300000);
    atomic_store(&stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    printf("# beside it: %d sent in 3 s, longest window %lld ms, %d failed\n", beside,
           (long long)(other.longest / 1000000), other.failed);
    assert_true(beside > 300);
    assert_true(atomic_load(&other.sent) > sent);
    assert_true(other.failed <= 1);
    f.ops->close(deaf.session);
    f.ops->close(other.session);
    fixture_end(&f);
    assert_int_equal(setenv("KAFKA_BROKERS", before, 1), 0);
    rd_kafka_mock_cluster_destroy(two);
}

/* ---- partitions without a leader ---------------------------------------------------- */

static void produce(const char *topic, int32_t partition, const char *body)
{
    rd_kafka_t *client = client_open();
    client_produce(client, topic, partition, body, strlen(body), NULL);
    client_flush(client);
    client_close(client);
}

static void expect(fixture *f, const char *body, int32_t partition)
{
    const wb_incoming *message;
    char name[160];
    fixture_receive(f, &message, 1);
    assert_int_equal(message->body_size, strlen(body));
    assert_memory_equal(message->body, body, strlen(body));
    (void)snprintf(name, sizeof name, "%s/%d", f->queue, (int)partition);
    assert_int_equal(message->partition_size, strlen(name));
    assert_memory_equal(message->partition, name, strlen(name));
    fixture_acknowledge(f, &message, 1);
}

static void await_committed(const fixture *f, int32_t partition, int64_t offset)
{
    for (int i = 0; i < 100 && client_committed(f->queue, f->queue, partition, NULL, 0) != offset; i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    assert_int_equal(client_committed(f->queue, f->queue, partition, NULL, 0), offset);
}

static void prepare_two(fixture *f, rd_kafka_mock_cluster_t *of)
{
    fixture_prepare(f);
    f->config.connect_timeout = SECONDS(16);
    f->config.confirm_timeout = SECONDS(10);
    assert_int_equal(rd_kafka_mock_topic_create(of, f->queue, 2, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
}

static void set_leader(rd_kafka_mock_cluster_t *of, const fixture *f, int32_t broker)
{
    assert_int_equal(rd_kafka_mock_partition_set_leader(of, f->queue, 1, broker), RD_KAFKA_RESP_ERR_NO_ERROR);
}

/* It waits for one; the others go on, and nobody waits for it. Nothing is committed of it the first time. */
static void test_partition_without_leader(void **state)
{
    static const char *const bodies[2][2] = { { "first", "second" }, { "third", "fourth" } };
    fixture f;
    (void)state;
    prepare_two(&f, cluster);
    for (int round = 0; round < 2; round++) {
        for (int32_t p = 0; p < 2; p++)
            produce(f.queue, p, bodies[round][p]);
        set_leader(cluster, &f, -1);
        int64_t started = wb_clock_monotonic();
        fixture_open(&f, 10);
        expect(&f, bodies[round][0], 0);
        assert_true(wb_clock_monotonic() - started < SECONDS(9)); /* joining takes 3 s here */
        assert_true(fixture_logged("partitions wait for a leader"));
        set_leader(cluster, &f, 1);
        expect(&f, bodies[round][1], 1);
        for (int32_t p = 0; p < 2; p++)
            await_committed(&f, p, round + 1);
        fixture_close(&f);
        fixture_forget_lines();
    }
    fixture_end(&f);
}

/* Nothing is committed that the log does not hold: it begins with the first message, whatever that is. (This cluster
 * keeps 5 MB of a partition.) */
static void test_first_without_leader(void **state)
{
    static char body[500000];
    const wb_incoming *message;
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 2, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    memset(body, 'b', sizeof body - 1);
    for (int i = 0; i < 16; i++)
        produce(f.queue, 1, body);
    set_leader(cluster, &f, -1);
    fixture_open(&f, 1);
    for (int i = 0; i < 300 && !fixture_logged("partitions wait for a leader"); i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    set_leader(cluster, &f, 1);
    fixture_receive(&f, &message, 1);
    assert_true(message->position > 0);
    assert_int_equal(client_committed(f.queue, f.queue, 1, NULL, 0), message->position);
    fixture_end(&f);
}

/* The cluster takes it for a leader still. */
static void test_leader_without_answer(void **state)
{
    char before[100];
    fixture f;
    (void)state;
    (void)snprintf(before, sizeof before, "%s", getenv("KAFKA_BROKERS"));
    rd_kafka_mock_cluster_t *two = rd_kafka_mock_cluster_new(owner, 2);
    assert_int_equal(setenv("KAFKA_BROKERS", rd_kafka_mock_cluster_bootstraps(two), 1), 0);
    prepare_two(&f, two);
    (void)rd_kafka_mock_coordinator_set(two, "group", f.queue, 1);
    (void)rd_kafka_mock_partition_set_leader(two, f.queue, 0, 1);
    set_leader(two, &f, 2);
    fixture_forget_lines();
    produce(f.queue, 0, "first");
    produce(f.queue, 1, "second");
    (void)rd_kafka_mock_broker_set_rtt(two, 2, 60000);
    fixture_open(&f, 10);
    expect(&f, "first", 0);
    assert_true(fixture_logged("partition=1 partitions=1"));
    (void)rd_kafka_mock_broker_set_rtt(two, 2, 0);
    set_leader(two, &f, 1);
    expect(&f, "second", 1);
    fixture_end(&f);
    assert_int_equal(setenv("KAFKA_BROKERS", before, 1), 0);
    rd_kafka_mock_cluster_destroy(two);
}

/* Where it ends nobody can say, and that is said at once. */
static void test_end_without_leader(void **state)
{
    char name[160];
    uint64_t end = 0;
    fixture f;
    (void)state;
    prepare_two(&f, cluster);
    produce(f.queue, 1, "first");
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 0, &f.session, &f.error), WB_OK);
    (void)snprintf(name, sizeof name, "%s/1", f.queue);
    assert_int_equal(f.ops->position_end(f.session, name, strlen(name), &end, &f.error), WB_OK);
    assert_int_equal(end, 1);
    fixture_close(&f);
    set_leader(cluster, &f, -1);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error), WB_OK);
    int64_t started = wb_clock_monotonic();
    int result = f.ops->position_end(f.session, name, strlen(name), &end, &f.error);
    assert_true(wb_clock_monotonic() - started < SECONDS(5));
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_SERVER, "partition 1 of topic");
    fixture_end(&f);
}

/* ---- commits that never come --------------------------------------------------------- */

static atomic_int refuse_commits, commits_made;
static atomic_int withheld = -1; /* nothing is committed of that partition */

static rd_kafka_topic_partition_list_t *without_withheld(const rd_kafka_topic_partition_list_t *offsets)
{
    rd_kafka_topic_partition_list_t *some = rd_kafka_topic_partition_list_copy(offsets);
    for (int i = some->cnt; i-- > 0;)
        if (some->elems[i].partition == atomic_load(&withheld))
            (void)rd_kafka_topic_partition_list_del_by_idx(some, i);
    return some;
}

/* In front of librdkafka's. */
IN_FRONT rd_kafka_resp_err_t rd_kafka_commit_queue(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *offsets,
                                                   rd_kafka_queue_t *rkqu,
                                                   void (*cb)(rd_kafka_t *rk, rd_kafka_resp_err_t err,
                                                              rd_kafka_topic_partition_list_t *offsets, void *opaque),
                                                   void *opaque)
{
    union {
        void *object;
        rd_kafka_resp_err_t (*function)(rd_kafka_t *, const rd_kafka_topic_partition_list_t *, rd_kafka_queue_t *,
                                        void (*)(rd_kafka_t *, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t *,
                                                 void *),
                                        void *);
    } real = { dlsym(RTLD_NEXT, "rd_kafka_commit_queue") };
    atomic_fetch_add(&commits_made, 1);
    if (atomic_load(&refuse_commits))
        return RD_KAFKA_RESP_ERR__STATE;
    rd_kafka_topic_partition_list_t *some = without_withheld(offsets);
    rd_kafka_resp_err_t code = real.function(rk, some, rkqu, cb, opaque);
    rd_kafka_topic_partition_list_destroy(some);
    return code;
}

static void open_forgetful(fixture *f)
{
    const wb_incoming *message;
    fixture_prepare(f);
    f->endpoint.mode = WB_MODE_NONE;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    fixture_open(f, 10);
    produce(f->queue, 0, "first");
    fixture_receive(f, &message, 1);
    fixture_acknowledge(f, &message, 1);
    assert_int_equal(client_committed(f->queue, f->queue, 0, NULL, 0), 1);
}

static void assert_nothing_handed_out(fixture *f, const char *text)
{
    const wb_incoming *message;
    size_t count = 0;
    int result = f->ops->receive(f->session, fixture_in(SECONDS(25)), &message, 1, &count, &f->error);
    assert_int_equal(count, 0);
    fixture_assert_failed(f, result, WB_NOT_CONNECTED, WB_CAUSE_OTHER, text);
}

/* What the library does not even take is not committed. */
static void test_commit_not_taken(void **state)
{
    fixture f;
    (void)state;
    open_forgetful(&f);
    atomic_store(&refuse_commits, 1);
    produce(f.queue, 0, "second");
    assert_nothing_handed_out(&f, "offsets could not be committed");
    atomic_store(&refuse_commits, 0);
    fixture_end(&f);
}

static void produce_expired(const char *topic)
{
    rd_kafka_t *client = client_open();
    rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
    (void)rd_kafka_header_add(headers, "NServiceBus.TimeToBeReceived", -1, "00:00:00.0010000", -1);
    client_produce(client, topic, 0, "expired", 7, headers);
    client_flush(client);
    client_close(client);
}

/* A message is taken while the commit before it waits for its answer, and that comes when the partition is somebody
 * else's: who has it now hands the message out. */
static void test_lost_before_commit(void **state)
{
    fixture f;
    (void)state;
    open_forgetful(&f);
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 14000);
    produce_expired(f.queue);
    fixture_receive_none(&f);
    wb_clock_pause(WB_SECOND * 3 / 2, NULL); /* what is passed over is committed */
    produce(f.queue, 0, "second");
    assert_nothing_handed_out(&f, "offsets could not be committed");
    fixture_end(&f);
}

static void assert_body(const wb_incoming *message, const char *body)
{
    assert_int_equal(message->body_size, strlen(body));
    assert_memory_equal(message->body, body, strlen(body));
}

/* Of messages of two partitions that are taken together one is committed: it has left the queue and is handed out. The
 * other one is left to who gets its partition. */
static void test_committed_in_part(void **state)
{
    const wb_incoming *messages[4];
    size_t count = 0;
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_NONE;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 2, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(&f);
    fixture_open(&f, 10);
    for (int32_t p = 0; p < 2; p++)
        produce(f.queue, p, "before");
    fixture_receive(&f, messages, 2);
    fixture_acknowledge(&f, messages, 2);
    for (int32_t p = 0; p < 2; p++)
        produce(f.queue, p, p ? "second" : "first");
    wb_clock_pause(SECONDS(2), NULL); /* until both are here */
    atomic_store(&withheld, 1);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(10)), messages, 4, &count, &f.error), WB_OK);
    assert_int_equal(count, 1);
    assert_body(messages[0], "first");
    fixture_acknowledge(&f, messages, 1);
    assert_nothing_handed_out(&f, "offsets could not be committed");
    fixture_close(&f);
    atomic_store(&withheld, -1);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 1);
    assert_body(messages[0], "second");
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* ---- taken away while a transaction is committed -------------------------------------- */

static void handle_in_transaction(fixture *f)
{
    const wb_incoming *message;
    fixture_receive(f, &message, 1);
    assert_int_equal(f->ops->begin(f->session, &f->error), WB_OK);
    fixture_acknowledge(f, &message, 1);
    if (f->ops->commit(f->session, &f->error) != WB_OK)
        fail_msg("commit: %s", f->error.text);
}

typedef struct rival {
    const char *queue;
    atomic_int stop;
} rival;

/* Another member of the group, who comes a second later. */
static void *rival_main(void *argument)
{
    rival *r = argument;
    char text[200];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    wb_clock_pause(WB_SECOND, NULL);
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", getenv("KAFKA_BROKERS"), text, sizeof text);
    (void)rd_kafka_conf_set(conf, "group.id", r->queue, text, sizeof text);
    (void)rd_kafka_conf_set(conf, "enable.auto.commit", "false", text, sizeof text);
    (void)rd_kafka_conf_set(conf, "partition.assignment.strategy", "roundrobin", text, sizeof text);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    (void)rd_kafka_topic_partition_list_add(topics, r->queue, RD_KAFKA_PARTITION_UA);
    (void)rd_kafka_subscribe(client, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    while (!atomic_load(&r->stop)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
        if (message)
            rd_kafka_message_destroy(message);
    }
    rd_kafka_destroy(client);
    return NULL;
}

/* One transaction is done, and a message more is there. The workers' time is 3 s. */
static void open_for_rival(fixture *f, rival *r)
{
    static const char *const names[] = { "max.poll.interval.ms" }, *const values[] = { "6000" };
    static const wb_option_map properties = { 1, names, values };
    fixture_prepare(f);
    *r = (rival){ f->queue, 0 };
    f->endpoint.mode = WB_MODE_SENDS_ATOMIC;
    f->config.properties = &properties;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f->queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    fixture_create(f);
    fixture_open(f, 10);
    produce(f->queue, 0, "first");
    handle_in_transaction(f);
    produce(f->queue, 0, "second");
    fixture_forget_lines();
}

static void end_with_rival(fixture *f, rival *r, pthread_t thread)
{
    atomic_store(&r->stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fixture_end(f);
}

static const char taken_away[] = "partitions are taken away while messages are handled";

/* The workers' time is over and the partition goes: the offset that the transaction brings is the one that counts. */
static void test_taken_away_while_committing(void **state)
{
    fixture f;
    rival r;
    pthread_t thread;
    (void)state;
    open_for_rival(&f, &r);
    int commits = atomic_load(&commits_made);
    assert_int_equal(pthread_create(&thread, NULL, rival_main, &r), 0);
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, END_TXN, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 10000);
    handle_in_transaction(&f);
    assert_true(fixture_logged(taken_away));
    assert_int_equal(atomic_load(&commits_made), commits);
    end_with_rival(&f, &r, thread);
}

/* The other way round: what the partition is left with is on its way, and no transaction is committed behind it. */
static void test_committing_while_taken_away(void **state)
{
    fixture f;
    rival r;
    pthread_t thread;
    const wb_incoming *message;
    (void)state;
    open_for_rival(&f, &r);
    fixture_receive(&f, &message, 1);
    assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
    fixture_acknowledge(&f, &message, 1);
    rd_kafka_mock_broker_push_request_error_rtts(cluster, 1, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_NO_ERROR, 8000);
    assert_int_equal(pthread_create(&thread, NULL, rival_main, &r), 0);
    for (int i = 0; i < 200 && !fixture_logged(taken_away); i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    wb_clock_pause(WB_SECOND / 2, NULL);
    int result = f.ops->commit(f.session, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_OTHER, "partitions were taken away");
    (void)f.ops->rollback(f.session, &f.error);
    end_with_rival(&f, &r, thread);
}

/* ---- who begins -------------------------------------------------------------------- */

static const char *begun_topic; /* somebody begins partition 1 of it while its ends are asked for */

IN_FRONT rd_kafka_resp_err_t rd_kafka_offsets_for_times(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets,
                                                        int timeout_ms)
{
    union {
        void *object;
        rd_kafka_resp_err_t (*function)(rd_kafka_t *, rd_kafka_topic_partition_list_t *, int);
    } real = { dlsym(RTLD_NEXT, "rd_kafka_offsets_for_times") };
    const char *topic = begun_topic;
    begun_topic = NULL;
    if (topic) {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, 1)->offset = 1;
        (void)rd_kafka_commit(rk, list, 0);
        rd_kafka_topic_partition_list_destroy(list);
    }
    return real.function(rk, offsets, timeout_ms);
}

/* A member that waits no longer for the one with partition 0 begins by itself, and that one does not move it on. */
static void test_begun_meanwhile(void **state)
{
    char type[40];
    const char *types[] = { type };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    (void)snprintf(type, sizeof type, "Mock%d.Event", (int)getpid()); /* its topic has the same name */
    f.endpoint.types = types;
    f.endpoint.type_count = 1;
    f.config.event_start = WB_KAFKA_START_LATEST;
    assert_int_equal(rd_kafka_mock_topic_create(cluster, f.queue, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, type, 2, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int i = 0; i < 3; i++)
        produce(type, 0, "before");
    for (int i = 0; i < 2; i++)
        produce(type, 1, "before");
    fixture_create(&f);
    begun_topic = type;
    fixture_open(&f, 10);
    const wb_incoming *message;
    fixture_receive(&f, &message, 1); /* what came after that one began */
    assert_int_equal(message->position, 1);
    assert_int_equal(client_committed(f.queue, type, 0, NULL, 0), 3);
    assert_int_equal(client_committed(f.queue, type, 1, NULL, 0), 1);
    fixture_acknowledge(&f, &message, 1);
    fixture_receive_none(&f);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing_errors),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_others_fault),
        cmocka_unit_test(test_refused_topic_in_transaction),
        cmocka_unit_test(test_refused_topic_among_others),
        cmocka_unit_test(test_forbidden_transactions),
        cmocka_unit_test(test_forbidden_offsets),
        cmocka_unit_test(test_transaction_in_doubt),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_unknown_limits),
        cmocka_unit_test(test_refused_commit),
        cmocka_unit_test(test_refused_commits),
        cmocka_unit_test(test_fenced_commits),
        cmocka_unit_test(test_careful_behind_a_death),
        cmocka_unit_test(test_far_broker),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_unconfirmed_beside_others),
        cmocka_unit_test(test_partition_without_leader),
        cmocka_unit_test(test_first_without_leader),
        cmocka_unit_test(test_leader_without_answer),
        cmocka_unit_test(test_end_without_leader),
        cmocka_unit_test(test_commit_not_taken),
        cmocka_unit_test(test_lost_before_commit),
        cmocka_unit_test(test_committed_in_part),
        cmocka_unit_test(test_taken_away_while_committing),
        cmocka_unit_test(test_committing_while_taken_away),
        cmocka_unit_test(test_begun_meanwhile),
    };
    return cmocka_run_group_tests_name("kafka mock", tests, start_cluster, stop_cluster);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport in mode sends_atomic_with_receive, against a real broker: what is sent
 * and what was received become final together, or not at all.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

/* An endpoint with transactions, and one that reads what it sends. */
typedef struct pair {
    fixture in;
    fixture out;
} pair;

static void pair_begin(pair *p, size_t messages)
{
    fixture sender;
    fixture_begin(&p->out, 100);
    fixture_prepare(&p->in);
    p->in.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    fixture_create(&p->in);
    assert_int_equal(p->in.ops->install(p->in.transport, &p->in.error), WB_OK);
    /* A session that only sends, sends at once. */
    sender = p->in;
    assert_int_equal(sender.ops->open(sender.transport, WB_SESSION_SEND, 1, &sender.session,
                                      &sender.error),
                     WB_OK);
    fixture_fill(&sender, messages);
    fixture_close(&sender);
    fixture_open(&p->in, 100);
}

static void pair_end(pair *p)
{
    fixture_end(&p->in);
    fixture_end(&p->out);
}

static void begin(fixture *f)
{
    if (f->ops->begin(f->session, &f->error) != WB_OK)
        fail_msg("begin: %s", f->error.text);
}

static void commit(fixture *f)
{
    if (f->ops->commit(f->session, &f->error) != WB_OK)
        fail_msg("commit: %s", f->error.text);
}

static void rollback(fixture *f)
{
    if (f->ops->rollback(f->session, &f->error) != WB_OK)
        fail_msg("rollback: %s", f->error.text);
}

static void send_one(pair *p, const char *id)
{
    wb_operation operation = fixture_operation(p->out.queue, id, id);
    if (fixture_send(&p->in, &operation, 1) != WB_OK || operation.result != WB_OK)
        fail_msg("send: %s", p->in.error.text);
}

static void assert_sent(pair *p, const char *id)
{
    const wb_incoming *message;
    fixture_receive(&p->out, &message, 1);
    assert_string_equal(message->id, id);
    fixture_acknowledge(&p->out, &message, 1);
}

static void test_commit(void **state)
{
    const wb_incoming *messages[3];
    pair p;
    (void)state;
    pair_begin(&p, 3);
    fixture_receive(&p.in, messages, 3);
    begin(&p.in);
    send_one(&p, "a");
    send_one(&p, "b");
    fixture_acknowledge(&p.in, messages, 2);
    fixture_receive_none(&p.out);
    commit(&p.in);
    assert_sent(&p, "a");
    assert_sent(&p, "b");
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, NULL, 0), 2);
    /* Nothing sent, and nothing to acknowledge. */
    begin(&p.in);
    fixture_acknowledge(&p.in, messages + 2, 1);
    commit(&p.in);
    begin(&p.in);
    commit(&p.in);
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, NULL, 0), 3);
    assert_true(fixture_crash_points("offsets_sent") >= 3);
    assert_true(fixture_crash_points("transport_commit_sent") >= 3);
    pair_end(&p);
}

/* The messages stay in hand, and the second attempt is the only one anybody sees. */
static void test_rollback(void **state)
{
    const wb_incoming *messages[2];
    pair p;
    (void)state;
    pair_begin(&p, 2);
    fixture_receive(&p.in, messages, 2);
    begin(&p.in);
    send_one(&p, "first");
    fixture_acknowledge(&p.in, messages, 2);
    rollback(&p.in);
    rollback(&p.in);
    fixture_receive_none(&p.in);
    fixture_receive_none(&p.out);
    begin(&p.in);
    send_one(&p, "second");
    fixture_acknowledge(&p.in, messages, 1);
    commit(&p.in);
    assert_sent(&p, "second");
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, NULL, 0), 1);
    fixture_close(&p.in);
    fixture_open(&p.in, 10);
    fixture_receive(&p.in, messages, 1);
    assert_string_equal(messages[0]->id, "m-1");
    pair_end(&p);
}

static void reopen_and_expect(pair *p, const char *id, uint32_t deliveries)
{
    const wb_incoming *message;
    fixture_close(&p->in);
    fixture_open(&p->in, 10);
    fixture_receive(&p->in, &message, 1);
    assert_string_equal(message->id, id);
    assert_int_equal(message->delivery_count, deliveries);
}

/* Offsets are sent ahead, for all in hand: what becomes final is what was acknowledged. */
static void test_part_of_a_batch(void **state)
{
    const wb_incoming *messages[4];
    char note[64];
    pair p;
    (void)state;
    pair_begin(&p, 4);
    fixture_receive(&p.in, messages, 4);
    begin(&p.in);
    send_one(&p, "none");
    commit(&p.in);
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, note, sizeof note), 0);
    assert_string_equal(note, "waybill/1 1 4");
    begin(&p.in);
    send_one(&p, "one");
    fixture_acknowledge(&p.in, messages, 1);
    commit(&p.in);
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, note, sizeof note), 1);
    assert_string_equal(note, "waybill/1 1 3");
    reopen_and_expect(&p, "m-1", 1);
    fixture_receive(&p.in, messages, 2);
    /* A later one alone does not move the offset. */
    begin(&p.in);
    fixture_acknowledge(&p.in, messages + 1, 1);
    commit(&p.in);
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, note, sizeof note), 1);
    reopen_and_expect(&p, "m-1", 2);
    assert_sent(&p, "none");
    assert_sent(&p, "one");
    pair_end(&p);
}

static void test_refused_send(void **state)
{
    const wb_incoming *message;
    char missing[128];
    pair p;
    (void)state;
    pair_begin(&p, 1);
    fixture_name(missing, sizeof missing);
    fixture_receive(&p.in, &message, 1);
    begin(&p.in);
    wb_operation operations[] = { fixture_operation(missing, "a", "a"),
                                  fixture_operation(p.out.queue, "b", "b") };
    assert_int_equal(fixture_send(&p.in, operations, 2), WB_OK);
    assert_int_equal(operations[0].result, WB_REJECT);
    assert_int_equal(operations[1].result, WB_OK);
    rollback(&p.in);
    begin(&p.in);
    send_one(&p, "c");
    fixture_acknowledge(&p.in, &message, 1);
    commit(&p.in);
    assert_sent(&p, "c");
    fixture_receive_none(&p.out);
    int result = fixture_send(&p.in, operations, 1);
    fixture_assert_failed(&p.in, result, WB_FATAL, WB_CAUSE_OTHER, "outside of a transaction");
    pair_end(&p);
}

/* A session that ends with a transaction open leaves nothing of it. */
static void test_close(void **state)
{
    const wb_incoming *message;
    pair p;
    (void)state;
    pair_begin(&p, 1);
    fixture_receive(&p.in, &message, 1);
    begin(&p.in);
    send_one(&p, "ghost");
    fixture_acknowledge(&p.in, &message, 1);
    fixture_close(&p.in);
    fixture_open(&p.in, 10);
    fixture_receive(&p.in, &message, 1);
    assert_string_equal(message->id, "m-0");
    begin(&p.in);
    send_one(&p, "real");
    fixture_acknowledge(&p.in, &message, 1);
    commit(&p.in);
    assert_sent(&p, "real");
    pair_end(&p);
}

/* ---- processes that die ------------------------------------------------------------ */

static const char *death;

static void die_at(const char *name)
{
    if (strcmp(name, death) == 0)
        (void)raise(SIGKILL);
}

static void transact_and_die(pair *p)
{
    const wb_incoming *messages[2];
    fixture_at_point = die_at;
    fixture_create(&p->in);
    fixture_open(&p->in, 10);
    fixture_receive(&p->in, messages, 2);
    begin(&p->in);
    send_one(p, death);
    fixture_acknowledge(&p->in, messages, 2);
    commit(&p->in);
    _exit(0);
}

static void die(pair *p, const char *point)
{
    int status = 0;
    death = point;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        transact_and_die(p);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void test_death(void **state)
{
    const wb_incoming *messages[2];
    pair p;
    (void)state;
    pair_begin(&p, 2);
    fixture_end(&p.in);
    fixture_end(&p.out);
    die(&p, "dispatch_unconfirmed");
    die(&p, "offsets_sent");
    fixture_create(&p.in);
    fixture_open(&p.in, 10);
    fixture_receive(&p.in, messages, 2);
    assert_string_equal(messages[0]->id, "m-0");
    assert_int_equal(messages[0]->delivery_count, 2);
    fixture_end(&p.in);
    fixture_create(&p.out);
    fixture_open(&p.out, 10);
    fixture_receive_none(&p.out);
    fixture_end(&p.out);
    die(&p, "transport_commit_sent");
    fixture_create(&p.in);
    fixture_open(&p.in, 10);
    fixture_create(&p.out);
    fixture_open(&p.out, 10);
    assert_sent(&p, "transport_commit_sent");
    fixture_receive_none(&p.out);
    fixture_receive_none(&p.in);
    assert_int_equal(client_committed(p.in.queue, p.in.queue, 0, NULL, 0), 2);
    pair_end(&p);
}

static void begin_and_die(pair *p)
{
    const wb_incoming *message;
    fixture_create(&p->in);
    fixture_open(&p->in, 10);
    fixture_receive(&p->in, &message, 1);
    begin(&p->in);
    (void)raise(SIGKILL);
}

/* In a transaction of a process that does not come back, offsets are sent already. Whoever gets
 * its partitions waits for the broker to abort it, which takes longer than other questions. */
static void test_open_transaction_of_another(void **state)
{
    const wb_incoming *message;
    int status = 0;
    pair p;
    (void)state;
    pair_begin(&p, 1);
    fixture_end(&p.in);
    fixture_end(&p.out);
    p.in.config.instance = "gone";
    p.in.config.transaction_timeout = SECONDS(10);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        begin_and_die(&p);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    p.in.config.instance = "other";
    p.in.config.connect_timeout = SECONDS(3);
    fixture_create(&p.in);
    fixture_open(&p.in, 10);
    fixture_receive(&p.in, &message, 1);
    assert_string_equal(message->id, "m-0");
    fixture_end(&p.in);
}

/* A second process under the same name: the transaction of the first comes to nothing. */
static void test_fenced(void **state)
{
    const wb_incoming *message;
    pair p, twin;
    int result;
    (void)state;
    fixture_begin(&p.out, 100);
    fixture_prepare(&p.in);
    p.in.endpoint.mode = WB_MODE_SENDS_ATOMIC;
    p.in.config.instance = "same";
    fixture_start(&p.in, 10);
    begin(&p.in);
    wb_operation operation = fixture_operation(p.in.queue, "m-0", "x");
    assert_int_equal(fixture_send(&p.in, &operation, 1), WB_OK);
    commit(&p.in);
    fixture_receive(&p.in, &message, 1);
    begin(&p.in);
    send_one(&p, "of the first");
    fixture_acknowledge(&p.in, &message, 1);
    twin = p;
    fixture_create(&twin.in);
    fixture_open(&twin.in, 10);
    result = p.in.ops->commit(p.in.session, &p.in.error);
    fixture_assert_failed(&p.in, result, WB_IN_DOUBT, WB_CAUSE_OTHER, "same instance name");
    fixture_receive(&twin.in, &message, 1);
    begin(&twin.in);
    send_one(&twin, "of the second");
    fixture_acknowledge(&twin.in, &message, 1);
    commit(&twin.in);
    assert_sent(&p, "of the second");
    fixture_receive_none(&p.out);
    fixture_end(&twin.in);
    pair_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit), cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_part_of_a_batch),
        cmocka_unit_test(test_refused_send), cmocka_unit_test(test_close),
        cmocka_unit_test(test_death), cmocka_unit_test(test_open_transaction_of_another),
        cmocka_unit_test(test_fenced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

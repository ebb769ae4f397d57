/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport and messages that mean harm: over the limits, of odd types, with odd
 * numbers and names. Memory stays bounded, and the good ones among them are delivered.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/integration/sqlite_fixture.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)
#define MIB ((int64_t)1 << 20)

/* The fixture's place with limits. */
static int set_up_limits(void **state)
{
    (void)set_up(state);
    fixture *made = *state;
    made->at.info.body_max = MIB;
    made->at.info.headers_max = 320;
    made->at.info.headers_size_max = 64 << 10;
    return 0;
}

/* ---- bodies ------------------------------------------------------------------------ */

typedef struct filling {
    const char *file;
    const char *sql;
} filling;

static void run_filling(void *argument)
{
    const filling *with = argument;
    test_execute(with->file, with->sql);
}

/* In a process of its own: its memory is not ours. */
static void fill(const fixture *with, const char *sql)
{
    filling asked = { with->queues, sql };
    assert_int_equal(test_wait(test_child(run_filling, &asked)), 0);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

/* The most memory this process ever had; nothing under a sanitizer, which keeps what is
 * freed for a while. */
static int64_t peak(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#endif
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (int64_t)usage.ru_maxrss * 1024;
}

/* Twelve bodies far over the limit, for four sessions of one process and their neighbours. */
static void one_body_over_the_limit_is_in_memory(void **state)
{
    fixture *with = *state;
    enum { SESSIONS = 4, LARGE = 12, SIZE = 48 };
    wb_transport_session *sessions[SESSIONS];
    const wb_incoming *messages[SESSIONS][8];
    size_t counts[SESSIONS];
    int large = 0, small = 0;
    fill(with, "with recursive n(i) as (values(1) union all select i+1 from n where i<36)"
               " insert into waybill_message_1(seq,id,headers,body) select i, cast(i as blob),"
               " x'00000000', case i%3 when 1 then zeroblob(48<<20) else x'31' end from n");
    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = place_session(&with->at, WB_SESSION_RECEIVE);
    int64_t before = peak();
    for (int round = 0; round < 100 && large + small < 36; round++) {
        int in_hand = 0;
        for (int i = 0; i < SESSIONS; i++) {
            counts[i] = place_receive(&with->at, sessions[i], messages[i], 8, 0);
            for (size_t j = 0; j < counts[i]; j++) {
                if ((int64_t)messages[i][j]->body_size < SIZE * MIB)
                    continue;
                assert_int_equal(counts[i], 1); /* it comes alone */
                assert_int_equal(messages[i][j]->body_size, SIZE * MIB);
                assert_null(messages[i][j]->problem);
                in_hand++;
                large++;
            }
        }
        assert_in_range(in_hand, 0, 1);
        for (int i = 0; i < SESSIONS; i++) {
            place_acknowledge(&with->at, sessions[i], messages[i], counts[i]);
            small += counts[i] == 1 && (int64_t)messages[i][0]->body_size >= SIZE * MIB
                         ? 0
                         : (int)counts[i];
        }
    }
    assert_int_equal(large, LARGE);
    assert_int_equal(small, 24);
    if (peak() - before > (SIZE + 16) * MIB)
        fail_msg("%lld MiB of memory", (long long)((peak() - before) / MIB));
    for (int i = 0; i < SESSIONS; i++)
        with->at.transport_ops->close(sessions[i]);
    assert_int_equal(test_messages(with->queues, "orders"), 0);
}

/* The same for two endpoints of one process. */
static void the_gate_is_the_processes(void **state)
{
    fixture *with = *state;
    const wb_incoming *one;
    const wb_incoming *two;
    place other;
    char *path = test_file(with->directory, "other.db");
    place_open(&other, "orders", NULL, path, NULL);
    other.info.body_max = MIB;
    place_install(&other);
    const char *sql = "insert into waybill_message_1(seq,headers,body)"
                      " values(1,x'00000000',zeroblob(2<<20))";
    test_execute(with->queues, sql);
    test_execute(path, sql);
    wb_transport_session *mine = place_session(&with->at, BOTH);
    wb_transport_session *theirs = place_session(&other, BOTH);
    assert_int_equal(place_receive(&with->at, mine, &one, 1, 1000), 1);
    assert_int_equal(place_receive(&other, theirs, &two, 1, 100), 0);
    place_send_numbers(&other, theirs, "orders", 7, 1); /* the others go on */
    assert_int_equal(place_receive(&other, theirs, &two, 1, 1000), 1);
    assert_int_equal(test_number(two), 7);
    place_acknowledge(&other, theirs, &two, 1);
    place_acknowledge(&with->at, mine, &one, 1);
    assert_int_equal(place_receive(&other, theirs, &two, 1, 2000), 1);
    assert_int_equal(two->body_size, 2 * MIB);
    assert_int_equal(other.transport_ops->give_back(theirs, &two, 1, NULL), WB_OK);
    assert_int_equal(place_receive(&other, theirs, &two, 1, 2000), 1);
    assert_int_equal(two->delivery_count, 1);
    other.transport_ops->close(theirs); /* in hand: the gate opens all the same */
    theirs = place_session(&other, BOTH);
    assert_int_equal(place_receive(&other, theirs, &two, 1, 2000), 1);
    assert_int_equal(two->delivery_count, 2);
    other.transport_ops->close(theirs);
    with->at.transport_ops->close(mine);
    place_close(&other);
    free(path);
}

typedef struct waiter {
    place *at;
    wb_transport_session *session;
    int64_t when;
} waiter;

static void *wait_for_large(void *argument)
{
    waiter *with = argument;
    const wb_incoming *message;
    if (place_receive(with->at, with->session, &message, 1, 5000) == 1) {
        with->when = test_now();
        place_acknowledge(with->at, with->session, &message, 1);
    }
    return NULL;
}

/* Who left one in the queue sleeps, and is told when it may come. */
static void who_waits_for_the_gate_is_woken(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    pthread_t thread;
    struct rusage start, end;
    test_execute(with->queues, "insert into waybill_message_1 values"
                               "(1,'a',null,x'00000000',zeroblob(2<<20)),"
                               "(2,'b',null,x'00000000',zeroblob(2<<20))");
    wb_transport_session *session = place_session(&with->at, BOTH);
    waiter waits = { &with->at, place_session(&with->at, BOTH), 0 };
    assert_int_equal(place_receive(&with->at, session, &message, 1, 1000), 1);
    (void)getrusage(RUSAGE_SELF, &start);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_large, &waits), 0);
    (void)usleep(400000);
    (void)getrusage(RUSAGE_SELF, &end);
    int64_t left = test_now();
    place_acknowledge(&with->at, session, &message, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(waits.when > 0);
    assert_in_range(waits.when - left, 0, 500 * WB_MILLISECOND);
    int64_t spent = (end.ru_utime.tv_sec - start.ru_utime.tv_sec) * 1000000 +
                    end.ru_utime.tv_usec - start.ru_utime.tv_usec;
    assert_in_range(spent, 0, 200000); /* microseconds of 400 ms: it does not spin */
    with->at.transport_ops->close(waits.session);
    with->at.transport_ops->close(session);
}

/* ---- headers ----------------------------------------------------------------------- */

static void send_headers(fixture *with, wb_transport_session *session, const char *id, size_t count,
                         size_t size)
{
    wb_header *headers = calloc(count, sizeof *headers);
    char *value = calloc(1, size + 1);
    memset(value, 'v', size);
    for (size_t i = 0; i < count; i++)
        headers[i] = (wb_header){ "n", value, 1, size };
    wb_operation operation = test_send("orders", id, 1, "b", 1);
    operation.headers = headers;
    operation.header_count = count;
    place_send(&with->at, session, &operation, 1);
    free(headers);
    free(value);
}

static void headers_over_the_limits_are_cut_with_the_reason(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[8];
    wb_transport_session *session = place_session(&with->at, BOTH);
    static const struct {
        size_t count, size, kept;
        const char *says;
    } rows[] = {
        { 320, 100, 320, NULL },
        { 321, 100, 320, "321 headers of 32421 bytes" },
        { 5000, 1, 320, "5000 headers of 10000 bytes" },
        { 128, 511, 128, NULL },
        { 129, 511, 128, "129 headers of 66048 bytes" },
        { 1, 30 << 20, 0, "1 headers of 31457281 bytes" },
        { 9000, 3000, 21, "9000 headers of 27009000 bytes" },
    };
    for (size_t i = 0; i < 7; i++)
        send_headers(with, session, "x", rows[i].count, rows[i].size);
    int64_t before = peak();
    assert_int_equal(place_receive(&with->at, session, messages, 8, 1000), 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(messages[i]->header_count, rows[i].kept);
        assert_int_equal(messages[i]->body_size, 1);
        if (!rows[i].says)
            assert_null(messages[i]->problem);
        else if (!messages[i]->problem || !strstr(messages[i]->problem, rows[i].says))
            fail_msg("%s", messages[i]->problem ? messages[i]->problem : "no problem");
        for (size_t j = 0; j < messages[i]->header_count; j++) {
            assert_memory_equal(messages[i]->headers[j].name, "n", 2);
            assert_int_equal(messages[i]->headers[j].value_size, rows[i].size);
        }
    }
    assert_in_range(peak() - before, 0, 8 * MIB);
    with->at.transport_ops->close(session);
}

/* 2,000 messages of 45 KB, each with 4,500 empty headers. */
static void many_empty_headers_cost_no_memory(void **state)
{
    fixture *with = *state;
    static const wb_incoming *messages[2000];
    fill(with, "with recursive n(i) as (values(1) union all select i+1 from n where i<2000)"
               " insert into waybill_message_1(seq,id,headers,body) select i, x'61',"
               " cast(x'94110000'||zeroblob(45000) as blob), x'62' from n");
    wb_transport_session *session = place_session(&with->at, BOTH);
    int64_t before = peak();
    size_t seen = 0;
    while (seen < 2000) {
        size_t count = place_receive(&with->at, session, messages + seen, 2000 - seen, 1000);
        assert_in_range(count, 1, 2000);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(messages[seen + i]->header_count, 320);
            assert_non_null(messages[seen + i]->problem);
        }
        seen += count;
    }
    assert_in_range(peak() - before, 0, 120 * MIB);
    with->at.transport_ops->close(session);
}

/* ---- rows of others ---------------------------------------------------------------- */

static void values_of_any_type_are_delivered(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[16];
    test_execute(with->queues,
                 "insert into waybill_message_1(seq,id,key,headers,body) values"
                 "(1,'text',null,'not headers','text'),"
                 "(2,7,8,x'00000000',9),"
                 "(3,1.5,'key',3,2.5),"
                 "(4,x'',x'',x'00000000',x''),"
                 "(5,zeroblob(100000),'k',x'00000000','a'),"
                 "(6,'z','k',x'00000000',cast(zeroblob(3<<20) as text)),"
                 "(7,'good',null,x'00000000','1')");
    wb_transport_session *session = place_session(&with->at, BOTH);
    size_t count = 0;
    while (count < 7) {
        size_t more = place_receive(&with->at, session, messages + count, 16 - count, 1000);
        assert_in_range(more, 1, 4);
        if (messages[count]->id_size > 65536)
            assert_int_equal(messages[count]->id_size, 100000);
        if (messages[count]->body_size > (size_t)MIB)
            assert_int_equal(messages[count]->body_size, 3 * MIB);
        if (count == 0) {
            assert_memory_equal(messages[0]->id, "text", 5);
            assert_memory_equal(messages[0]->body, "text", 5);
            assert_non_null(messages[0]->problem);
            assert_memory_equal(messages[1]->id, "7", 2);
            assert_memory_equal(messages[1]->key, "8", 2);
            assert_null(messages[1]->problem);
            assert_memory_equal(messages[2]->body, "2.5", 4);
            assert_non_null(messages[2]->problem);
            assert_null(messages[3]->id);
            assert_null(messages[3]->key);
        }
        place_acknowledge(&with->at, session, messages + count, more);
        count += more;
    }
    assert_int_equal(test_number(messages[6]), 1);
    with->at.transport_ops->close(session);
    assert_int_equal(test_messages(with->queues, "orders"), 0);
}

/* The last number there is: nobody is given a message twice for it, and senders wait. */
static void the_last_number_harms_nobody(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[4];
    const wb_incoming *again[4];
    test_execute(with->queues, "insert into waybill_message_1(seq,id,headers,body) values"
                               "(5,'a',x'00000000','1'),(9223372036854775807,'b',x'00000000','2')");
    wb_transport_session *one = place_session(&with->at, BOTH);
    wb_transport_session *two = place_session(&with->at, BOTH);
    assert_int_equal(place_receive(&with->at, one, messages, 4, 1000), 2);
    assert_int_equal(place_receive(&with->at, two, again, 4, 0), 0);
    wb_operation operation = test_send("orders", "c", 1, "3", 1);
    wb_operation *window[] = { &operation };
    assert_int_equal(
        with->at.transport_ops->send(two, window, 1, WB_NEVER, &with->at.error), WB_RETRY);
    assert_int_equal(with->at.error.cause, WB_CAUSE_SERVER);
    place_acknowledge(&with->at, one, messages, 2);
    assert_int_equal(place_receive(&with->at, one, messages, 4, 0), 0);
    place_send(&with->at, two, &operation, 1);
    assert_int_equal(place_receive(&with->at, one, messages, 4, 1000), 1);
    assert_int_equal(test_number(messages[0]), 3);
    with->at.transport_ops->close(one);
    with->at.transport_ops->close(two);
}

/* ---- messages set aside ------------------------------------------------------------ */

/* Ten messages stay unacknowledged for long, while thousands behind them come and go. */
static void messages_set_aside_cost_a_claim_each(void **state)
{
    fixture *with = *state;
    enum { ASIDE = 10, ROUNDS = 200, BATCH = 20 };
    const wb_incoming *aside[ASIDE];
    const wb_incoming *messages[BATCH];
    size_t kept = 0;
    wb_transport_session *session = place_session(&with->at, BOTH);
    for (int round = 0; round < ROUNDS; round++) {
        place_send_numbers(&with->at, session, "orders", round * BATCH, BATCH);
        assert_int_equal(place_receive(&with->at, session, messages, BATCH, 1000), BATCH);
        for (int i = 0; i < BATCH; i++) {
            assert_int_equal(test_number(messages[i]), round * BATCH + i);
            if (kept < ASIDE && i == 7)
                aside[kept++] = messages[i];
            else
                place_acknowledge(&with->at, session, &messages[i], 1);
        }
        /* its own list, without a receive: it is no longer than what was received */
        assert_in_range(test_query(with->queues, "select count(*) from waybill_claim"), 0,
                        ASIDE + 1);
    }
    assert_int_equal(place_receive(&with->at, session, messages, BATCH, 0), 0);
    assert_int_equal(test_messages(with->queues, "orders"), ASIDE);
    for (int i = 0; i < ASIDE; i++)
        assert_int_equal(test_number(aside[i]), i * BATCH + 7);
    place_acknowledge(&with->at, session, aside + 3, 4);
    with->at.transport_ops->close(session); /* gives the others back, counted once */
    session = place_session(&with->at, BOTH);
    assert_int_equal(place_receive(&with->at, session, messages, BATCH, 1000), ASIDE - 4);
    for (int i = 0; i < ASIDE - 4; i++) {
        assert_int_equal(test_number(messages[i]), (i < 3 ? i : i + 4) * BATCH + 7);
        assert_int_equal(messages[i]->delivery_count, 1);
    }
    place_acknowledge(&with->at, session, messages, ASIDE - 4);
    with->at.transport_ops->close(session);
    assert_int_equal(test_messages(with->queues, "orders"), 0);
    assert_int_equal(test_query(with->queues, "select count(*) from waybill_claim"), 0);
    assert_int_equal(test_query(with->queues, "select count(*) from waybill_redelivered"), 0);
}

/* ---- stop -------------------------------------------------------------------------- */

static void a_stopped_session_receives_nothing(void **state)
{
    fixture *with = *state;
    const wb_transport_ops *ops = with->at.transport_ops;
    const wb_incoming *messages[8];
    wb_transport_session *session = place_session(&with->at, BOTH);
    place_send_numbers(&with->at, session, "orders", 0, 6);
    assert_int_equal(place_receive(&with->at, session, messages, 4, 1000), 4);
    assert_true(WB_HAS(ops, wb_transport_ops, stop_receiving));
    assert_int_equal(ops->stop_receiving(session, NULL), WB_OK);
    int64_t start = test_now();
    assert_int_equal(place_receive(&with->at, session, messages + 4, 4, 5000), 0);
    assert_in_range(test_now() - start, 0, WB_SECOND);
    assert_int_equal(test_number(messages[3]), 3); /* what is in hand is handled */
    place_send_numbers(&with->at, session, "error", 0, 1);
    place_acknowledge(&with->at, session, messages, 3);
    assert_int_equal(place_receive(&with->at, session, messages + 4, 4, 5000), 0);
    assert_int_equal(test_messages(with->queues, "orders"), 3);
    ops->close(session);
    session = place_session(&with->at, BOTH);
    assert_int_equal(place_receive(&with->at, session, messages, 8, 1000), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(test_number(messages[i]), 3 + i);
        assert_int_equal(messages[i]->delivery_count, i == 0);
    }
    ops->close(session);
}

/* And an endpoint does not wait for what the dead had in hand (core/pipeline/scout.h). */
static void nothing_is_ever_dropped_for_its_deliveries(void **state)
{
    fixture *with = *state;
    wb_transport_limits limits = { .struct_size = sizeof limits,
                                   .delivery_limit = WB_LIMIT_UNKNOWN };
    assert_int_equal(with->at.transport_ops->limits(with->at.transport, &limits, NULL), WB_OK);
    assert_int_equal(limits.delivery_limit, 0);
    assert_int_equal(limits.flags, WB_LIMITS_RETURNS_FIRST);
    limits = (wb_transport_limits){ .struct_size = offsetof(wb_transport_limits, flags) }; /* of an older host */
    assert_int_equal(with->at.transport_ops->limits(with->at.transport, &limits, NULL), WB_OK);
    assert_int_equal(limits.flags, 0);
}

/* ---- poison operations ------------------------------------------------------------- */

static void poison_operations_are_refused_alone(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[8];
    char name[5000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    static const struct {
        const char *destination, *shown;
    } rows[] = {
        { "\xff\xfe", "\\xff\\xfe" },
        { "a\nb\x1b[2J", "a\\x0ab\\x1b[2J" },
        { "b\xc3\xbc\x63her", "b\xc3\xbc\x63her" },
        { "\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xc0\\xaf\\xf4\\x90\\x80\\x80" },
        { "\xe2\x82", "\\xe2\\x82" },
        { "", "no destination" },
        { NULL, "no destination" },
        { "'; drop table waybill_queue; --", "'; drop table waybill_queue; --" },
        { NULL, "nnnn..." },
    };
    enum { BAD = sizeof rows / sizeof rows[0] };
    wb_operation operations[BAD + 2];
    wb_operation *window[BAD + 2];
    for (size_t i = 0; i < BAD; i++)
        operations[i] = test_send(rows[i].destination, "\xff\0\n", 3, "x", 1);
    operations[BAD - 1].destination = name;
    operations[BAD] = test_send("orders", "\xff\0\n", 3, "x", 1);
    operations[BAD + 1] = test_send("", "p", 1, "x", 1);
    operations[BAD + 1].kind = WB_OPERATION_PUBLISH;
    for (size_t i = 0; i < BAD + 2; i++)
        window[i] = &operations[i];
    wb_transport_session *session = place_session(&with->at, BOTH);
    for (int in_transaction = 0; in_transaction < 2; in_transaction++) {
        if (in_transaction)
            assert_int_equal(with->at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(
            with->at.transport_ops->send(session, window, BAD + 2, WB_NEVER, &with->at.error),
            WB_OK);
        for (size_t i = 0; i < BAD; i++) {
            assert_int_equal(operations[i].result, WB_REJECT);
            assert_int_equal(operations[i].cause, WB_CAUSE_UNROUTABLE);
            if (!strstr(operations[i].reason, rows[i].shown))
                fail_msg("%zu: %s", i, operations[i].reason);
        }
        assert_int_equal(operations[BAD].result, WB_OK);
        assert_int_equal(operations[BAD + 1].result, WB_REJECT);
        if (in_transaction)
            assert_int_equal(with->at.transport_ops->commit(session, NULL), WB_OK);
    }
    assert_int_equal(place_receive(&with->at, session, messages, 8, 1000), 2);
    assert_int_equal(messages[1]->id_size, 3);
    assert_memory_equal(messages[1]->id, "\xff\0\n", 3);
    with->at.transport_ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_limits, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_body_over_the_limit_is_in_memory),
        CASE(the_gate_is_the_processes),
        CASE(who_waits_for_the_gate_is_woken),
        CASE(headers_over_the_limits_are_cut_with_the_reason),
        CASE(many_empty_headers_cost_no_memory),
        CASE(values_of_any_type_are_delivered),
        CASE(the_last_number_harms_nobody),
        CASE(messages_set_aside_cost_a_claim_each),
        CASE(a_stopped_session_receives_nothing),
        CASE(nothing_is_ever_dropped_for_its_deliveries),
        CASE(poison_operations_are_refused_alone),
    };
    return cmocka_run_group_tests_name("sqlite limits", tests, NULL, NULL);
}

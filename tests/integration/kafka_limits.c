/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: limits that hold before memory is used, and the
 * limits of topics compared with one another.
 */
#include "config.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

#define MIB (INT64_C(1) << 20)

/* The sanitizer keeps what is freed, so how much is in use says nothing. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_MEASURED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_MEASURED 0
#endif
#endif
#ifndef IS_MEASURED
#define IS_MEASURED 1
#endif

/* ---- headers --------------------------------------------------------------------- */

/* `count` headers "hNNNN" with values of that size, and the id behind them. */
static rd_kafka_headers_t *make_headers(size_t count, size_t value_size, const char *id)
{
    static char value[100000];
    char name[32];
    rd_kafka_headers_t *headers = rd_kafka_headers_new(count + 1);
    memset(value, 'v', sizeof value);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "h%04zu", i);
        assert_int_equal(rd_kafka_header_add(headers, name, -1, value, (ssize_t)value_size), 0);
    }
    if (id)
        (void)rd_kafka_header_add(headers, "NServiceBus.MessageId", -1, id, -1);
    return headers;
}

static void assert_problem(const wb_incoming *message, const char *text)
{
    assert_non_null(message->problem);
    if (!strstr(message->problem, text))
        fail_msg("%s", message->problem);
}

static void assert_first_headers(const wb_incoming *message, size_t count)
{
    char name[32];
    assert_int_equal(message->header_count, count);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "h%04zu", i);
        assert_string_equal(message->headers[i].name, name);
        assert_int_equal(message->headers[i].name_size, 5);
        assert_int_equal(message->headers[i].value[message->headers[i].value_size], '\0');
    }
}

static void send_headers(const fixture *f, rd_kafka_headers_t *headers)
{
    rd_kafka_t *client = client_open();
    client_produce(client, f->queue, 0, "body", 4, headers);
    client_flush(client);
    client_close(client);
}

static void test_too_many_headers(void **state)
{
    const wb_incoming *messages[5];
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    send_headers(&f, make_headers(319, 1, "just as many"));
    send_headers(&f, make_headers(9000, 0, "behind them"));
    send_headers(&f, make_headers(320, 1, "one more"));
    send_headers(&f, make_headers(100001, 0, "more than librdkafka reads"));
    send_headers(&f, make_headers(0, 0, "good"));
    fixture_receive(&f, messages, 5);
    assert_null(messages[0]->problem);
    assert_int_equal(messages[0]->header_count, 320);
    assert_problem(messages[1], "the message has 9001 headers, more than 320");
    assert_first_headers(messages[1], 320);
    assert_string_equal(messages[1]->id, "behind them");
    assert_problem(messages[2], "321 headers");
    assert_first_headers(messages[2], 320);
    assert_string_equal(messages[2]->id, "one more");
    assert_problem(messages[3], "headers cannot be read");
    assert_int_equal(messages[3]->header_count, 0);
    assert_null(messages[4]->problem);
    assert_string_equal(messages[4]->id, "good");
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(messages[i]->body_size, 4);
        assert_memory_equal(messages[i]->body, "body", 4);
    }
    fixture_acknowledge(&f, messages, 5);
    fixture_end(&f);
}

static void test_headers_too_large(void **state)
{
    const wb_incoming *messages[3];
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    send_headers(&f, make_headers(8, 8192 - 5, NULL)); /* 65536 */
    send_headers(&f, make_headers(8, 8192 - 4, "x"));
    send_headers(&f, make_headers(1, 99999, "y"));
    fixture_receive(&f, messages, 1);
    assert_null(messages[0]->problem);
    assert_first_headers(messages[0], 8);
    fixture_acknowledge(&f, messages, 1);
    fixture_receive(&f, messages + 1, 1);
    assert_problem(messages[1], "the 9 headers of the message hold 65566 bytes, more than 65536");
    assert_first_headers(messages[1], 7);
    assert_string_equal(messages[1]->id, "x");
    fixture_acknowledge(&f, messages + 1, 1);
    fixture_receive(&f, messages + 2, 1);
    assert_problem(messages[2], "more than 65536");
    assert_first_headers(messages[2], 0);
    assert_string_equal(messages[2]->id, "y");
    fixture_acknowledge(&f, messages + 2, 1);
    fixture_end(&f);
}

static void test_large_key(void **state)
{
    static char key[70000];
    const wb_incoming *message;
    fixture f;
    (void)state;
    memset(key, 'k', sizeof key);
    fixture_begin(&f, 10);
    wb_operation operation = fixture_operation(f.queue, "id", "body");
    operation.key = key;
    operation.key_size = 65000;
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_null(message->problem);
    assert_int_equal(message->key_size, 65000);
    fixture_acknowledge(&f, &message, 1);
    operation.key_size = sizeof key;
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_problem(message, "the key of the message has 70000 bytes, more than 65536");
    assert_null(message->key);
    assert_string_equal(message->id, "id");
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* An older host has no limits: all is handed on. */
static void test_no_limits(void **state)
{
    const wb_incoming *message;
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.struct_size = offsetof(wb_endpoint_info, headers_max);
    fixture_start(&f, 10);
    send_headers(&f, make_headers(9000, 20, "id"));
    fixture_receive(&f, &message, 1);
    assert_null(message->problem);
    assert_int_equal(message->header_count, 9001);
    assert_string_equal(message->id, "id");
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* ---- memory ---------------------------------------------------------------------- */

/* In a process of its own: its memory is not ours. */
static void produce_in_process(void (*produce)(rd_kafka_t *client, const fixture *f),
                               const fixture *f)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        rd_kafka_t *client = client_open();
        produce(client, f);
        client_flush(client);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int64_t status_of(const char *name)
{
    char line[200];
    int64_t kilobytes = -1;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kilobytes = strtoll(line + strlen(name) + 1, NULL, 10);
    (void)fclose(file);
    return kilobytes * 1024;
}

/* What is in use now is the most that was. @return it */
static int64_t reset_peak(void)
{
    (void)malloc_trim(0);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    assert_non_null(file);
    assert_true(fputs("5", file) >= 0);
    assert_int_equal(fclose(file), 0);
    return status_of("VmRSS");
}

typedef struct worker {
    fixture *f;
    wb_transport_session *session;
    atomic_int *left;
    int failed;
} worker;

/* As many in hand as there may be, and then acknowledged. */
static void *work(void *argument)
{
    worker *w = argument;
    const wb_incoming *messages[500];
    wb_error error;
    int64_t deadline = fixture_in(SECONDS(100));
    while (atomic_load(w->left) > 0 && !w->failed && wb_clock_monotonic() < deadline) {
        size_t count = 0, got = 1;
        while (got && count < 500 && !w->failed) {
            w->failed |= w->f->ops->receive(w->session, fixture_in(SECONDS(1) / 2), messages + count,
                                            500 - count, &got, &error) != WB_OK;
            count += got;
        }
        w->failed |= w->f->ops->acknowledge(w->session, messages, count, &error) != WB_OK;
        atomic_fetch_sub(w->left, (int)count);
    }
    return NULL;
}

/* @return by how much memory grew at most; 0 where that cannot be measured. */
static int64_t receive_with(fixture *f, int count, int messages)
{
    worker workers[8];
    pthread_t threads[8];
    atomic_int left = messages;
    int64_t before = reset_peak();
    for (int i = 0; i < count; i++) {
        workers[i] = (worker){ .f = f, .left = &left };
        assert_int_equal(f->ops->open(f->transport, WB_SESSION_RECEIVE, 500, &workers[i].session,
                                      &f->error),
                         WB_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(workers[i].failed);
    }
    assert_int_equal(atomic_load(&left), 0);
    int64_t grown = status_of("VmHWM") - before;
    printf("# memory grew by %lld MiB\n", (long long)(grown / MIB));
    for (int i = 0; i < count; i++)
        f->ops->close(workers[i].session);
    return IS_MEASURED ? grown : 0;
}

static void prepare_topic(fixture *f, int partitions)
{
    char limit[24];
    fixture_prepare(f);
    f->endpoint.body_max = 64 << 10;
    f->config.partitions = partitions;
    f->endpoint.concurrency = (uint32_t)partitions;
    f->config.fetch_buffer = MIB;
    (void)snprintf(limit, sizeof limit, "%lld", (long long)(40 * MIB));
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, f->queue, partitions, "max.message.bytes", limit);
    client_close(client);
    fixture_create(f);
    assert_int_equal(f->ops->install(f->transport, &f->error), WB_OK);
}

static void produce_bodies(rd_kafka_t *client, const fixture *f)
{
    char *body = calloc(1, 8 * MIB);
    for (int i = 0; i < 12; i++)
        client_produce(client, f->queue, (int32_t)(i % f->config.partitions), body, 8 * MIB, NULL);
}

/* A fetch answer, what librdkafka holds ahead, and one in hand: not all twelve. */
static void test_memory_of_bodies(void **state)
{
    fixture f;
    (void)state;
    prepare_topic(&f, 1);
    produce_in_process(produce_bodies, &f);
    assert_true(receive_with(&f, 1, 12) < 40 * MIB);
    fixture_end(&f);
}

static void test_memory_of_bodies_and_workers(void **state)
{
    fixture f;
    (void)state;
    prepare_topic(&f, 4);
    produce_in_process(produce_bodies, &f);
    assert_true(receive_with(&f, 4, 12) < 90 * MIB);
    fixture_end(&f);
}

/* Larger than anything the endpoint was configured for, and read all the same. */
static void produce_huge(rd_kafka_t *client, const fixture *f)
{
    char *body = calloc(1, 30 * MIB);
    client_produce(client, f->queue, 0, body, 30 * MIB, NULL);
    client_produce(client, f->queue, 0, "behind", 6, NULL);
}

static void test_huge_body(void **state)
{
    const wb_incoming *messages[2];
    fixture f;
    (void)state;
    prepare_topic(&f, 1);
    produce_in_process(produce_huge, &f);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->body_size, 30 * MIB);
    assert_int_equal(messages[1]->body_size, 6);
    fixture_acknowledge(&f, messages, 2);
    fixture_end(&f);
}

/* Larger than an answer is asked to be, and than its partition's part of one: what stands first in an
 * answer always fits. Others go on meanwhile. */
static void test_over_fetch_limits(void **state)
{
    static const char *const names[] = { "fetch.max.bytes", "max.partition.fetch.bytes" };
    static const char *const values[] = { "1000000", "50000" };
    wb_option_map map = { 2, names, values };
    const wb_incoming *messages[3];
    size_t sizes = 0;
    fixture f;
    (void)state;
    prepare_topic(&f, 2);
    f.config.properties = &map;
    produce_in_process(produce_huge, &f);
    rd_kafka_t *client = client_open();
    client_produce(client, f.queue, 1, "other", 5, NULL);
    client_flush(client);
    client_close(client);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 3);
    for (int i = 0; i < 3; i++)
        sizes += messages[i]->body_size;
    assert_int_equal(sizes, 30 * MIB + 6 + 5);
    fixture_acknowledge(&f, messages, 3);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 2);
}

static void produce_around_huge(rd_kafka_t *client, const fixture *f)
{
    client_produce(client, f->queue, 0, "before", 6, NULL);
    client_flush(client);
    produce_huge(client, f);
    client_produce(client, f->queue, 1, "other", 5, NULL);
}

static void await_line(const char *text)
{
    int64_t deadline = fixture_in(SECONDS(30));
    while (!fixture_logged(text) && wb_clock_monotonic() < deadline)
        (void)usleep(50000);
    if (!fixture_logged(text))
        fail_msg("no line with \"%s\"", text);
}

/* Larger than can be received: the line says where, other partitions go on, and so does this
 * one when the record was deleted, or may be received. */
static void test_over_receive_limit(void **state)
{
    static const char *const names[] = { "receive.message.max.bytes" };
    static const char *const limits[] = { "5000000" }, *const raised[] = { "40000000" };
    wb_option_map map = { 1, names, limits };
    const wb_incoming *messages[2];
    char where[200];
    fixture f;
    (void)state;
    prepare_topic(&f, 2);
    f.config.properties = &map;
    produce_in_process(produce_around_huge, &f);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->body_size + messages[1]->body_size, 11);
    fixture_acknowledge(&f, messages, 2);
    (void)snprintf(where, sizeof where, "topic=%s partition=0 offset=1 bytes=3145", f.queue);
    await_line(where);
    assert_true(fixture_logged("limit=5000000"));
    fixture_receive_none(&f);
    fixture_close(&f);
    map.values = raised;
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_int_equal(messages[0]->body_size, 30 * MIB);
    assert_int_equal(messages[1]->body_size, 6);
    fixture_close(&f);
    map.values = limits;
    rd_kafka_t *client = client_open();
    client_delete_records(client, f.queue, 2);
    client_close(client);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 1);
    assert_int_equal(messages[0]->body_size, 6);
    fixture_acknowledge(&f, messages, 1);
    fixture_end(&f);
}

static void produce_headers(rd_kafka_t *client, const fixture *f)
{
    char name[8];
    rd_kafka_headers_t *headers = rd_kafka_headers_new(9000);
    for (int i = 0; i < 9000; i++) {
        (void)snprintf(name, sizeof name, "%03d", i % 1000);
        (void)rd_kafka_header_add(headers, name, 3, "", 0);
    }
    for (int i = 0; i < 2000; i++)
        client_produce(client, f->queue, (int32_t)(i % f->config.partitions), "x", 1,
                       rd_kafka_headers_copy(headers));
}

/* 45 KB each, of which librdkafka makes 0.7 MB, and an array of ours 0.3 MB. */
static void test_memory_of_headers(void **state)
{
    fixture f;
    (void)state;
    prepare_topic(&f, 4);
    produce_in_process(produce_headers, &f);
    assert_true(receive_with(&f, 4, 2000) < 250 * MIB);
    fixture_end(&f);
}

/* ---- limits of topics ------------------------------------------------------------- */

static void begin_with_topics(fixture *f, const char *limit, const char *error_limit)
{
    fixture_prepare(f);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, f->queue, 1, "max.message.bytes", limit);
    client_make_topic_with(client, f->error_queue, 1, "max.message.bytes", error_limit);
    client_close(client);
    fixture_create(f);
}

static void assert_warned(const fixture *f, int (*call)(wb_transport *, wb_error *),
                          const char *text)
{
    char line[600];
    wb_error error;
    int before = fixture_warnings();
    assert_int_equal(call(f->transport, &error), WB_OK);
    assert_int_equal(fixture_warnings(), before + (text ? 1 : 0));
    if (!text)
        return;
    (void)snprintf(line, sizeof line, "topic=%s %s", f->queue, text);
    if (!fixture_logged(line))
        fail_msg("no line holds %s", line);
}

static void test_smaller_error_topic(void **state)
{
    char text[400];
    fixture f;
    (void)state;
    begin_with_topics(&f, "3000000", "2000000");
    (void)snprintf(text, sizeof text,
                   "its_limit=3000000 error_topic=%s error_topic_limit=2000000", f.error_queue);
    assert_warned(&f, f.ops->install, text);
    assert_warned(&f, f.ops->verify, text);
    assert_true(fixture_logged("raise max.message.bytes of the error topic"));
    fixture_end(&f);
}

/* One that a type has for itself is as much in the way. */
static void test_smaller_error_topic_of_a_type(void **state)
{
    char text[400], name[300];
    const char *names[] = { name };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    (void)snprintf(name, sizeof name, "%s.type", f.error_queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, f.queue, 1, "max.message.bytes", "3000000");
    client_make_topic_with(client, f.error_queue, 1, "max.message.bytes", "3000000");
    client_make_topic_with(client, name, 1, "max.message.bytes", "2000000");
    client_close(client);
    f.endpoint.error_queues = names;
    f.endpoint.error_queue_count = 1;
    fixture_create(&f);
    (void)snprintf(text, sizeof text, "its_limit=3000000 error_topic=%s error_topic_limit=2000000", name);
    assert_warned(&f, f.ops->verify, text);
    fixture_end(&f);
}

static void test_sends_less_than_it_reads(void **state)
{
    char text[400];
    fixture f;
    (void)state;
    begin_with_topics(&f, "30000000", "40000000");
    (void)snprintf(text, sizeof text, "its_limit=30000000 error_topic=%s sends_up_to=%lld",
                   f.error_queue, (long long)(18 * MIB));
    assert_warned(&f, f.ops->install, text);
    assert_warned(&f, f.ops->verify, text);
    assert_true(fixture_logged("raise the option message_max"));
    fixture_end(&f);
}

/* Topics of our own making, and equal ones, are fine; without an error topic nothing is asked. */
static void test_fitting_topics(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    assert_warned(&f, f.ops->install, NULL);
    assert_warned(&f, f.ops->verify, NULL);
    fixture_end(&f);
    begin_with_topics(&f, "2000000", "2000000");
    assert_warned(&f, f.ops->verify, NULL);
    fixture_end(&f);
    begin_with_topics(&f, "2000000", "1000000");
    f.endpoint.error_queue = NULL;
    assert_warned(&f, f.ops->verify, NULL);
    fixture_end(&f);
}

/* ---- what would bite ------------------------------------------------------------- */

/* The finding of a name; of several, the last. */
typedef struct found {
    const char *wanted;
    int severity, count, others;
    char text[500], remedy[1000];
} found;

/* One broker has one replica of everything. */
static void note_finding(void *argument, const wb_finding *finding)
{
    found *it = argument;
    if (strcmp(finding->name, it->wanted) != 0) {
        it->others += strcmp(finding->name, "topic-replicas") != 0;
        return;
    }
    it->count++;
    it->severity = finding->severity;
    (void)snprintf(it->text, sizeof it->text, "%s", finding->text);
    (void)snprintf(it->remedy, sizeof it->remedy, "%s", finding->remedy);
}

static found examine(fixture *f, const char *name)
{
    found it = { .wanted = name };
    const wb_examination asked = {
        .struct_size = sizeof asked, .outage = 3 * 24 * 3600 * WB_SECOND, .found = note_finding, .argument = &it
    };
    if (f->ops->examine(f->transport, &asked, &f->error) != WB_OK)
        fail_msg("examine: %s", f->error.text);
    return it;
}

/* What stands behind --add-config. */
static void apply(const char *topic, const char *remedy)
{
    static const char option[] = "--add-config ";
    char property[200];
    const char *at = strstr(remedy, option);
    assert_non_null(at);
    (void)snprintf(property, sizeof property, "%s", at + sizeof option - 1);
    char *value = strchr(property, '=');
    *value++ = '\0';
    rd_kafka_t *client = client_open();
    client_configure_topic(client, topic, property, value);
    client_close(client);
}

static void test_findings(void **state)
{
    static const struct {
        int is_own;
        const char *property, *value, *name, *text;
    } topics[] = {
        { 1, "retention.ms", "3600000", "topic-retention", "has retention.ms = 3600000: what waits longer is deleted" },
        { 0, "retention.ms", "259199999", "topic-retention", "what failed is gone" },
        { 1, "retention.bytes", "1000000", "topic-size", "has retention.bytes = 1000000" },
        { 1, "cleanup.policy", "compact", "topic-compaction", "only the last one" },
        { 1, "unclean.leader.election.enable", "true", "topic-unclean-election", "they are lost" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        fixture f;
        fixture_prepare(&f);
        const char *topic = topics[i].is_own ? f.queue : f.error_queue;
        rd_kafka_t *client = client_open();
        client_make_topic_with(client, topic, 1, topics[i].property, topics[i].value);
        client_close(client);
        fixture_create(&f);
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        found it = examine(&f, topics[i].name);
        assert_int_equal(it.count, 1);
        assert_int_equal(it.others, 0);
        assert_int_equal(it.severity, topics[i].is_own ? WB_FINDING_DANGER : WB_FINDING_WARNING);
        if (!strstr(it.text, topics[i].text) || !strstr(it.text, topic))
            fail_msg("%s", it.text);
        apply(topic, it.remedy);
        it = examine(&f, topics[i].name);
        assert_int_equal(it.count, 0);
        assert_int_equal(examine(&f, "topic-replicas").count, 2);
        fixture_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_many_headers),
        cmocka_unit_test(test_headers_too_large),
        cmocka_unit_test(test_large_key),
        cmocka_unit_test(test_no_limits),
        cmocka_unit_test(test_memory_of_bodies),
        cmocka_unit_test(test_memory_of_bodies_and_workers),
        cmocka_unit_test(test_over_receive_limit), cmocka_unit_test(test_huge_body),
        cmocka_unit_test(test_over_fetch_limits),
        cmocka_unit_test(test_memory_of_headers),
        cmocka_unit_test(test_smaller_error_topic),
        cmocka_unit_test(test_smaller_error_topic_of_a_type),
        cmocka_unit_test(test_sends_less_than_it_reads),
        cmocka_unit_test(test_fitting_topics),
        cmocka_unit_test(test_findings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

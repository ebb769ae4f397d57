/* SPDX-License-Identifier: Apache-2.0
 *
 * The workers of one process, against a real broker: they receive by one member of the group and send
 * by one producer, and yet none of them holds up the others, whatever becomes of it.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

/* Without what a sanitizer needs for itself. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_MEASURED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_MEASURED 0
#endif
#endif
#ifndef IS_MEASURED
#define IS_MEASURED 1
#endif

/* ---- workers --------------------------------------------------------------------- */

enum { WORKERS_MAX = 8 };

typedef struct process {
    fixture f;
    int workers;
    wb_transport_session *sessions[WORKERS_MAX];
} process;

static void prepare(process *p, int workers)
{
    memset(p, 0, sizeof *p);
    fixture_prepare(&p->f);
    p->workers = workers;
    p->f.endpoint.concurrency = (uint32_t)workers;
    p->f.config.partitions = workers;
}

static void open_session(process *p, int i)
{
    if (p->f.ops->open(p->f.transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, 100, &p->sessions[i],
                       &p->f.error))
        fail_msg("open: %s", p->f.error.text);
}

static void close_session(process *p, int i)
{
    if (p->sessions[i])
        p->f.ops->close(p->sessions[i]);
    p->sessions[i] = NULL;
}

static void open_all(process *p)
{
    for (int i = 0; i < p->workers; i++)
        open_session(p, i);
}

static void begin(process *p, int workers)
{
    prepare(p, workers);
    fixture_create(&p->f);
    if (p->f.ops->install(p->f.transport, &p->f.error))
        fail_msg("install: %s", p->f.error.text);
    open_all(p);
}

static void end(process *p)
{
    for (int i = 0; i < p->workers; i++)
        close_session(p, i);
    p->f.ops->destroy(p->f.transport);
}

/* `count` messages "PARTITION NUMBER" in each partition. */
static void fill(const process *p, int count)
{
    char body[40];
    rd_kafka_t *client = client_open();
    for (int32_t partition = 0; partition < p->f.config.partitions; partition++)
        for (int i = 0; i < count; i++) {
            (void)snprintf(body, sizeof body, "%d %d", (int)partition, i);
            client_produce(client, p->f.queue, partition, body, strlen(body), NULL);
        }
    client_flush(client);
    client_close(client);
}

static int partition_of(const wb_incoming *message)
{
    return ((const char *)message->body)[0] - '0';
}

static size_t receive(process *p, int i, const wb_incoming **messages, size_t max, int64_t wait)
{
    size_t count = 0;
    if (p->f.ops->receive(p->sessions[i], fixture_in(wait), messages, max, &count, &p->f.error))
        fail_msg("receive: %s", p->f.error.text);
    return count;
}

static void acknowledge(process *p, int i, const wb_incoming *const *messages, size_t count)
{
    if (p->f.ops->acknowledge(p->sessions[i], messages, count, &p->f.error))
        fail_msg("acknowledge: %s", p->f.error.text);
}

/* All of these partitions (a mask), by worker `i` alone. */
static void expect_all(process *p, int i, unsigned partitions, size_t each)
{
    const wb_incoming *messages[50];
    size_t wanted = each * (size_t)__builtin_popcount(partitions), got = 0, count;
    while (got < wanted && (count = receive(p, i, messages, 50, SECONDS(20))) > 0) {
        for (size_t m = 0; m < count; m++)
            assert_true(partitions & 1u << partition_of(messages[m]));
        acknowledge(p, i, messages, count);
        got += count;
    }
    assert_int_equal(got, wanted);
}

static void expect_nothing(process *p, int i)
{
    const wb_incoming *message;
    assert_int_equal(receive(p, i, &message, 1, SECONDS(1) / 2), 0);
}

/* A message of each worker's partition, which says who has which. */
static void find_owners(process *p, const wb_incoming **ret_messages)
{
    unsigned seen = 0;
    for (int i = 0; i < p->workers; i++) {
        assert_int_equal(receive(p, i, &ret_messages[i], 1, SECONDS(20)), 1);
        seen |= 1u << partition_of(ret_messages[i]);
    }
    assert_int_equal(__builtin_popcount(seen), p->workers);
}

/* ---- receiving ------------------------------------------------------------------- */

/* Each worker has a partition; one that hangs with its first message holds up its own alone. */
static void test_one_hangs(void **state)
{
    enum { EACH = 30 };
    const wb_incoming *messages[4];
    process p;
    (void)state;
    begin(&p, 4);
    fill(&p, EACH);
    find_owners(&p, messages);
    for (int i = 1; i < 4; i++) {
        unsigned own = 1u << partition_of(messages[i]);
        acknowledge(&p, i, &messages[i], 1);
        expect_all(&p, i, own, EACH - 1);
        expect_nothing(&p, i);
    }
    unsigned hung = 1u << partition_of(messages[0]);
    acknowledge(&p, 0, &messages[0], 1);
    expect_all(&p, 0, hung, EACH - 1);
    end(&p);
    for (int32_t partition = 0; partition < 4; partition++)
        assert_int_equal(client_committed(p.f.queue, p.f.queue, partition, NULL, 0), EACH);
}

/* What a session had that ends is another's at once: what was in its hands, in order and counted,
 * and what was fetched for it. */
static void test_one_ends(void **state)
{
    enum { EACH = 30 };
    const wb_incoming *messages[EACH];
    process p;
    (void)state;
    begin(&p, 2);
    fill(&p, EACH);
    find_owners(&p, messages);
    int ended = partition_of(messages[0]), other = partition_of(messages[1]);
    acknowledge(&p, 1, &messages[1], 1);
    expect_all(&p, 1, 1u << other, EACH - 1);
    assert_int_equal(receive(&p, 0, messages + 1, 2, SECONDS(5)), 2);
    close_session(&p, 0);
    for (int i = 0; i < EACH;) {
        size_t count = receive(&p, 1, messages, EACH, SECONDS(5));
        assert_true(count > 0);
        for (size_t m = 0; m < count; m++, i++) {
            assert_int_equal(partition_of(messages[m]), ended);
            assert_int_equal(atoi((const char *)messages[m]->body + 2), i);
            assert_int_equal(messages[m]->delivery_count, i < 3);
        }
        acknowledge(&p, 1, messages, count);
    }
    /* And one that comes gets its share again. */
    open_session(&p, 0);
    fill(&p, 1);
    find_owners(&p, messages);
    for (int i = 0; i < 2; i++)
        acknowledge(&p, i, &messages[i], 1);
    end(&p);
    assert_int_equal(client_committed(p.f.queue, p.f.queue, ended, NULL, 0), EACH + 1);
}

/* Whoever comes while all is in others' hands gets a share when that is done. */
static void test_one_comes_late(void **state)
{
    const wb_incoming *messages[4], *one;
    size_t count, got = 0;
    process p;
    (void)state;
    prepare(&p, 2);
    fixture_create(&p.f);
    assert_int_equal(p.f.ops->install(p.f.transport, &p.f.error), WB_OK);
    open_session(&p, 0);
    fill(&p, 1);
    while (got < 2 && (count = receive(&p, 0, messages + got, 2 - got, SECONDS(20))) > 0)
        got += count;
    assert_int_equal(got, 2);
    open_session(&p, 1);
    fill(&p, 1);
    expect_nothing(&p, 1);
    acknowledge(&p, 0, messages, 2);
    assert_int_equal(receive(&p, 1, &one, 1, SECONDS(20)), 1);
    assert_int_equal(receive(&p, 0, messages, 4, SECONDS(20)), 1);
    assert_int_not_equal(partition_of(one), partition_of(messages[0]));
    end(&p);
}

/* A stopped worker's partitions wait, and go on when it has ended beside one that has not stopped. */
static void test_one_stops(void **state)
{
    enum { EACH = 10 };
    const wb_incoming *messages[2];
    process p;
    (void)state;
    begin(&p, 2);
    fill(&p, EACH);
    find_owners(&p, messages);
    unsigned stopped = 1u << partition_of(messages[0]), other = 1u << partition_of(messages[1]);
    assert_int_equal(p.f.ops->stop_receiving(p.sessions[0], &p.f.error), WB_OK);
    acknowledge(&p, 0, messages, 1);
    acknowledge(&p, 1, messages + 1, 1);
    expect_all(&p, 1, other, EACH - 1);
    expect_nothing(&p, 1);
    expect_nothing(&p, 0);
    close_session(&p, 0);
    expect_all(&p, 1, stopped, EACH - 1);
    end(&p);
}

/* When the member of the group is lost, whoever opens again first has a new one; one that hangs in
 * its handler meanwhile neither holds that up nor does harm when it comes back. */
static void test_lost_while_one_hangs(void **state)
{
    const wb_incoming *messages[2], *one;
    process p, twin;
    size_t count;
    int result;
    (void)state;
    prepare(&p, 2);
    p.f.config.instance = "same";
    fixture_create(&p.f);
    assert_int_equal(p.f.ops->install(p.f.transport, &p.f.error), WB_OK);
    open_all(&p);
    fill(&p, 1);
    find_owners(&p, messages);
    acknowledge(&p, 1, messages + 1, 1);
    twin = p;
    fixture_create(&twin.f);
    open_session(&twin, 0);
    do
        result = p.f.ops->receive(p.sessions[1], fixture_in(SECONDS(20)), &one, 1, &count, &p.f.error);
    while (result == WB_OK && count);
    fixture_assert_failed(&p.f, result, WB_NOT_CONNECTED, WB_CAUSE_OTHER, "same instance name");
    close_session(&twin, 0);
    twin.f.ops->destroy(twin.f.transport);
    int64_t started = wb_clock_monotonic();
    close_session(&p, 1);
    open_session(&p, 1);
    assert_int_equal(receive(&p, 1, &one, 1, SECONDS(20)), 1);
    assert_true(wb_clock_monotonic() - started < SECONDS(15));
    assert_int_equal(partition_of(one), partition_of(messages[0]));
    acknowledge(&p, 0, messages, 1); /* it is done here, too: that says nothing */
    assert_int_not_equal(p.f.ops->receive(p.sessions[0], fixture_in(SECONDS(1)), messages, 1, &count,
                                          &p.f.error),
                         WB_OK);
    acknowledge(&p, 1, &one, 1);
    close_session(&p, 0);
    open_session(&p, 0);
    fill(&p, 1);
    find_owners(&p, messages);
    end(&p);
}

/* ---- sessions that come and go ------------------------------------------------------ */

enum { RESTLESS = 4, RESTLESS_EACH = 4000 };

/* What was handed out of each partition and not given back; under the lock. */
typedef struct ledger {
    pthread_mutex_t lock;
    int handed[RESTLESS];
    atomic_int left;
} ledger;

typedef struct restless {
    process *process;
    ledger *ledger;
    int number;
    int sessions;
    pthread_t thread;
    wb_error error;
    const char *failed;
} restless;

/* Nothing is passed over, comes out of order, or comes again when it was acknowledged. */
static void note_taken(restless *r, const wb_incoming *const *messages, size_t count)
{
    (void)pthread_mutex_lock(&r->ledger->lock);
    for (size_t i = 0; i < count; i++)
        if (atoi((const char *)messages[i]->body + 2) != r->ledger->handed[partition_of(messages[i])]++)
            r->failed = "a message came out of its turn";
    (void)pthread_mutex_unlock(&r->ledger->lock);
}

static void note_given_back(restless *r, const wb_incoming *const *messages, size_t count)
{
    (void)pthread_mutex_lock(&r->ledger->lock);
    for (size_t i = 0; i < count; i++)
        r->ledger->handed[partition_of(messages[i])]--;
    (void)pthread_mutex_unlock(&r->ledger->lock);
}

/* One session: it ends with its last messages in hand. */
static void work_for_a_while(restless *r, int batches)
{
    const wb_transport_ops *ops = r->process->f.ops;
    const wb_incoming *messages[10];
    wb_transport_session *session = NULL;
    size_t count = 0;
    if (ops->open(r->process->f.transport, WB_SESSION_RECEIVE, 10, &session, &r->error)) {
        r->failed = r->error.text;
        return;
    }
    for (int i = 0; i < batches && !r->failed && atomic_load(&r->ledger->left) > 0; i++) {
        if (ops->receive(session, fixture_in(WB_SECOND / 50), messages, 10, &count, &r->error))
            r->failed = r->error.text;
        note_taken(r, messages, count);
        if (count == 0 || i == batches - 1)
            continue;
        if (ops->acknowledge(session, messages, count, &r->error))
            r->failed = r->error.text;
        atomic_fetch_sub(&r->ledger->left, (int)count);
        count = 0;
    }
    note_given_back(r, messages, count);
    ops->close(session);
    r->sessions++;
}

static void *be_restless(void *argument)
{
    restless *r = argument;
    unsigned seed = (unsigned)r->number;
    while (atomic_load(&r->ledger->left) > 0 && !r->failed)
        work_for_a_while(r, 1 + rand_r(&seed) % 20);
    return NULL;
}

static void test_sessions_come_and_go(void **state)
{
    static ledger l;
    static restless workers[RESTLESS];
    process p;
    int sessions = 0;
    (void)state;
    prepare(&p, RESTLESS);
    fixture_create(&p.f);
    assert_int_equal(p.f.ops->install(p.f.transport, &p.f.error), WB_OK);
    fill(&p, RESTLESS_EACH);
    (void)pthread_mutex_init(&l.lock, NULL);
    atomic_store(&l.left, RESTLESS * RESTLESS_EACH);
    open_session(&p, 0); /* it stays, and the member of the group with it */
    assert_int_equal(p.f.ops->stop_receiving(p.sessions[0], &p.f.error), WB_OK);
    for (int i = 0; i < RESTLESS; i++) {
        workers[i] = (restless){ .process = &p, .ledger = &l, .number = i };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, be_restless, &workers[i]), 0);
    }
    for (int i = 0; i < RESTLESS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        if (workers[i].failed)
            fail_msg("%s", workers[i].failed);
        sessions += workers[i].sessions;
    }
    printf("# %d sessions\n", sessions);
    assert_int_equal(atomic_load(&l.left), 0);
    end(&p);
    for (int32_t partition = 0; partition < RESTLESS; partition++)
        assert_int_equal(client_committed(p.f.queue, p.f.queue, partition, NULL, 0), RESTLESS_EACH);
}

/* ---- sending --------------------------------------------------------------------- */

typedef struct sender {
    process *process;
    wb_transport_session *session;
    const char *topic;
    atomic_int *stop;
    size_t size; /* of a body */
    size_t count; /* of a window */
    int sent, refused, failed;
    int64_t longest;
    wb_error error;
} sender;

enum { WINDOW = 20 };

static void *send_main(void *argument)
{
    sender *s = argument;
    const wb_transport_ops *ops = s->process->f.ops;
    char *body = calloc(1, s->size);
    assert_non_null(body);
    while (!atomic_load(s->stop) && !s->failed) {
        wb_operation operations[WINDOW], *all[WINDOW];
        for (size_t i = 0; i < s->count; i++) {
            operations[i] = fixture_operation(s->topic, "id", "");
            operations[i].body = body;
            operations[i].body_size = s->size;
            all[i] = &operations[i];
        }
        int64_t started = wb_clock_monotonic();
        s->failed = ops->send(s->session, all, s->count, fixture_in(SECONDS(20)), &s->error) != WB_OK;
        int64_t spent = wb_clock_monotonic() - started;
        s->longest = spent > s->longest ? spent : s->longest;
        for (size_t i = 0; i < s->count; i++) {
            s->sent += operations[i].result == WB_OK;
            s->refused += operations[i].result == WB_REJECT;
        }
    }
    free(body);
    return NULL;
}

/* Requests hold messages of several workers: when the broker refuses one for what one of them sent,
 * the others' arrive, also of one who sends one by one. */
static void test_refused_beside_others(void **state)
{
    enum { SENDERS = 4 };
    sender senders[SENDERS];
    pthread_t threads[SENDERS];
    atomic_int stop = 0;
    char topic[150];
    process p;
    (void)state;
    begin(&p, SENDERS);
    (void)snprintf(topic, sizeof topic, "%s.small", p.f.queue);
    rd_kafka_t *client = client_open();
    client_make_topic_with(client, topic, 1, "max.message.bytes", "20000");
    client_close(client);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (sender){ .process = &p, .session = p.sessions[i], .topic = topic, .stop = &stop,
                               .size = i ? 100 : 30000, .count = i == 1 ? 1 : WINDOW };
        assert_int_equal(pthread_create(&threads[i], NULL, send_main, &senders[i]), 0);
    }
    (void)sleep(5);
    atomic_store(&stop, 1);
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        printf("# sender %d: %d sent, %d refused, longest window %d ms\n", i, senders[i].sent,
               senders[i].refused, (int)(senders[i].longest / 1000000));
        if (senders[i].failed)
            fail_msg("%s", senders[i].error.text);
        assert_int_equal(i ? senders[i].refused : senders[i].sent, 0);
        assert_true((i ? senders[i].sent : senders[i].refused) > 0);
    }
    end(&p);
}

/* ---- what it costs --------------------------------------------------------------- */

static int64_t status_of(const char *name)
{
    char line[200];
    int64_t value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoll(line + strlen(name) + 1, NULL, 10);
    (void)fclose(file);
    return value;
}

typedef struct worker {
    process *process;
    int number;
    atomic_int *left;
    size_t batches, received;
    int failed;
    wb_error error;
} worker;

static void *work_main(void *argument)
{
    worker *w = argument;
    const wb_transport_ops *ops = w->process->f.ops;
    wb_transport_session *session = w->process->sessions[w->number];
    const wb_incoming *messages[100];
    int64_t deadline = fixture_in(SECONDS(60));
    while (atomic_load(w->left) > 0 && !w->failed && wb_clock_monotonic() < deadline) {
        wb_operation operations[100], *all[100];
        size_t count = 0;
        w->failed |= ops->receive(session, fixture_in(SECONDS(1) / 5), messages, 100, &count,
                                  &w->error) != WB_OK;
        for (size_t i = 0; i < count; i++) {
            operations[i] = fixture_operation(w->process->f.error_queue, "id", "");
            operations[i].body = messages[i]->body;
            operations[i].body_size = messages[i]->body_size;
            all[i] = &operations[i];
        }
        if (count && !w->failed)
            w->failed |= ops->send(session, all, count, fixture_in(SECONDS(20)), &w->error) ||
                         ops->acknowledge(session, messages, count, &w->error);
        w->batches += count > 0;
        w->received += count;
        atomic_fetch_sub(w->left, (int)count);
    }
    return NULL;
}

/* In a process of its own, whose memory is measured. */
static void work_and_measure(process *p, int messages)
{
    pthread_t threads[WORKERS_MAX];
    worker workers[WORKERS_MAX];
    atomic_int left = messages;
    size_t batches = 0;
    fixture_create(&p->f);
    open_all(p);
    (void)sleep(4); /* nothing to await: all that may be held ahead is */
    int64_t started = wb_clock_monotonic();
    for (int i = 0; i < p->workers; i++) {
        workers[i] = (worker){ .process = p, .number = i, .left = &left };
        assert_int_equal(pthread_create(&threads[i], NULL, work_main, &workers[i]), 0);
    }
    while (atomic_load(&left) > messages / 2 && wb_clock_monotonic() - started < SECONDS(60))
        (void)usleep(20000);
    int64_t count = status_of("Threads");
    for (int i = 0; i < p->workers; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        if (workers[i].failed)
            fail_msg("%s", workers[i].error.text);
        assert_true(workers[i].received > 0);
        batches += workers[i].batches;
    }
    int64_t spent = wb_clock_monotonic() - started, most = status_of("VmHWM") * 1024;
    printf("# %d workers: %d threads, %d MB, %d messages a second, %d a batch\n", p->workers, (int)count,
           (int)(most / 1000000), (int)(messages * WB_SECOND / spent), messages / (int)batches);
    assert_int_equal(atomic_load(&left), 0);
    assert_true(count <= 24);
    assert_true(!IS_MEASURED || most <= 64 * 1000000);
    end(p);
}

static void fill_with_kilobytes(const process *p, int messages)
{
    static char body[1024];
    rd_kafka_t *client = client_open();
    for (int i = 0; i < messages; i++) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(13);
        for (int h = 0; h < 13; h++)
            (void)rd_kafka_header_add(headers, "NServiceBus.SomeHeader", -1,
                                      "a value of some forty bytes, as they are", -1);
        client_produce(client, p->f.queue, i % p->workers, body, sizeof body, headers);
    }
    client_flush(client);
    client_close(client);
}

static void in_a_process(void (*work)(process *p, int messages), process *p, int messages)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        work(p, messages);
        (void)fflush(stdout);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void produce_in_child(process *p, int messages)
{
    fill_with_kilobytes(p, messages);
}

/* Eight workers with more to do than may be held ahead: threads, memory, and whether batches are
 * full. */
static void measure(int workers)
{
    enum { MESSAGES = 40000 };
    process p;
    prepare(&p, workers);
    p.f.config.fetch_buffer = fixture_default_size("fetch_buffer");
    fixture_create(&p.f);
    assert_int_equal(p.f.ops->install(p.f.transport, &p.f.error), WB_OK);
    p.f.ops->destroy(p.f.transport);
    in_a_process(produce_in_child, &p, MESSAGES);
    in_a_process(work_and_measure, &p, MESSAGES);
}

static void test_cost_of_eight(void **state)
{
    (void)state;
    measure(8);
}

static void test_cost_of_one(void **state)
{
    (void)state;
    measure(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost_of_eight), /* first: the process is small */
        cmocka_unit_test(test_cost_of_one),
        cmocka_unit_test(test_one_hangs),
        cmocka_unit_test(test_one_ends),
        cmocka_unit_test(test_one_comes_late),
        cmocka_unit_test(test_one_stops),
        cmocka_unit_test(test_lost_while_one_hangs),
        cmocka_unit_test(test_sessions_come_and_go),
        cmocka_unit_test(test_refused_beside_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

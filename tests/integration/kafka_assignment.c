/* SPDX-License-Identifier: Apache-2.0
 *
 * Who gets which partitions, against a real broker: all processes, and all workers of each, have
 * their share, and a process that is restarted under its name disturbs nobody else. A process is a
 * transport of its own here; to the broker that is all there is to one.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

#define MILLISECOND (WB_SECOND / 1000)

/* ---- what the group looks like --------------------------------------------------- */

#define MEMBERS_MAX 16

typedef struct member {
    char name[256];
    size_t partitions;
} member;

typedef struct group {
    size_t count;
    member members[MEMBERS_MAX];
    size_t partitions;
    int is_stable;
} group;

static void read_member(group *g, const rd_kafka_MemberDescription_t *description)
{
    const char *name = rd_kafka_MemberDescription_group_instance_id(description);
    const rd_kafka_topic_partition_list_t *list = rd_kafka_MemberAssignment_partitions(
        rd_kafka_MemberDescription_assignment(description));
    assert_true(g->count < MEMBERS_MAX);
    member *m = &g->members[g->count++];
    (void)snprintf(m->name, sizeof m->name, "%s", name ? name : "");
    m->partitions = list ? (size_t)list->cnt : 0;
    g->partitions += m->partitions;
}

static void look(rd_kafka_t *client, const char *name, group *g)
{
    size_t count = 0;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DescribeConsumerGroups(client, &name, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    assert_non_null(event);
    const rd_kafka_ConsumerGroupDescription_t **groups =
        rd_kafka_DescribeConsumerGroups_result_groups(
            rd_kafka_event_DescribeConsumerGroups_result(event), &count);
    assert_int_equal(count, 1);
    memset(g, 0, sizeof *g);
    g->is_stable = rd_kafka_ConsumerGroupDescription_state(groups[0]) ==
                   RD_KAFKA_CONSUMER_GROUP_STATE_STABLE;
    for (size_t i = 0; i < rd_kafka_ConsumerGroupDescription_member_count(groups[0]); i++)
        read_member(g, rd_kafka_ConsumerGroupDescription_member(groups[0], i));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
}

/* Until all members are there and nothing moves any more. */
static void await_group(rd_kafka_t *client, const char *name, size_t members, size_t partitions,
                        group *g)
{
    int64_t deadline = fixture_in(SECONDS(30));
    int quiet = 0;
    while (quiet < 5 && wb_clock_monotonic() < deadline) {
        (void)usleep(100000);
        look(client, name, g);
        quiet = g->is_stable && g->count == members && g->partitions == partitions ? quiet + 1 : 0;
    }
    if (quiet < 5)
        fail_msg("%zu members with %zu partitions, %zu with %zu expected", g->count, g->partitions,
                 members, partitions);
}

/* ---- processes ------------------------------------------------------------------- */

#define WORKERS_MAX 4
#define TYPES_MAX 5

typedef struct process {
    fixture f;
    wb_transport_session *sessions[WORKERS_MAX];
    int workers;
} process;

static char types[TYPES_MAX][160];
static const char *type_names[TYPES_MAX];

/* All of the endpoint that the first one is prepared for. `instance` may be NULL. */
static void prepare(process *p, const process *first, const char *instance, size_t type_count)
{
    fixture_prepare(&p->f);
    p->f.endpoint.name = first->f.queue;
    p->f.endpoint.error_queue = first->f.error_queue;
    p->f.endpoint.types = type_names;
    p->f.endpoint.type_count = type_count;
    p->f.config.instance = instance;
    p->f.config.partitions = -1;
}

static void start(process *p, int workers)
{
    p->f.endpoint.concurrency = (uint32_t)workers;
    fixture_create(&p->f);
    p->workers = workers;
    for (int i = 0; i < workers; i++)
        if (p->f.ops->open(p->f.transport, WB_SESSION_RECEIVE, 32, &p->sessions[i], &p->f.error))
            fail_msg("open: %s", p->f.error.text);
}

static void stop(process *p)
{
    for (int i = 0; i < p->workers; i++)
        p->f.ops->close(p->sessions[i]);
    p->f.ops->destroy(p->f.transport);
}

/* One message in each partition of a topic. */
static void fill(rd_kafka_t *client, const char *topic, int partitions)
{
    for (int32_t partition = 0; partition < partitions; partition++)
        client_produce(client, topic, partition, "x", 1, NULL);
    client_flush(client);
}

/* What each worker gets of one message a partition, as long as none is acknowledged. @return how many
 * all of them get. */
static size_t count_shares(process *p, size_t *least, size_t *most)
{
    const wb_incoming *messages[32];
    size_t total = 0;
    for (int i = 0; i < p->workers; i++) {
        size_t share = 0, count = 1;
        while (count) {
            if (p->f.ops->receive(p->sessions[i], fixture_in(SECONDS(1)), messages, 32, &count,
                                  &p->f.error))
                fail_msg("receive: %s", p->f.error.text);
            share += count;
        }
        printf("# worker %d: %zu partitions\n", i, share);
        *least = share < *least ? share : *least;
        *most = share > *most ? share : *most;
        total += share;
    }
    return total;
}

/* Twelve partitions in six topics, over two processes of four workers. */
static void test_all_have_a_share(void **state)
{
    static process a, b;
    group g;
    size_t least = 12, most = 0;
    (void)state;
    prepare(&a, &a, "first", TYPES_MAX);
    prepare(&b, &a, "second", TYPES_MAX);
    rd_kafka_t *client = client_open();
    client_make_topic(client, a.f.queue, 2);
    for (int i = 0; i < TYPES_MAX; i++) {
        (void)snprintf(types[i], sizeof types[i], "%s.Event%d", a.f.queue, i);
        type_names[i] = types[i];
        client_make_topic(client, types[i], 2);
    }
    start(&a, 4);
    start(&b, 4);
    await_group(client, a.f.queue, 2, 12, &g);
    fill(client, a.f.queue, 2);
    for (int i = 0; i < TYPES_MAX; i++)
        fill(client, types[i], 2);
    assert_int_equal(count_shares(&a, &least, &most), 6);
    assert_int_equal(count_shares(&b, &least, &most), 6);
    assert_int_equal(least, 1);
    assert_int_equal(most, 2);
    stop(&b);
    stop(&a);
    client_close(client);
}

/* A process that comes back under its name with a handler more gets the topic of that, too. */
static void test_restart_with_another_type(void **state)
{
    static process a, b;
    group g;
    (void)state;
    prepare(&a, &a, "first", 0);
    prepare(&b, &a, "second", 0);
    rd_kafka_t *client = client_open();
    client_make_topic(client, a.f.queue, 2);
    (void)snprintf(types[0], sizeof types[0], "%s.Later", a.f.queue);
    type_names[0] = types[0];
    client_make_topic(client, types[0], 3);
    start(&a, 1);
    start(&b, 1);
    await_group(client, a.f.queue, 2, 2, &g);
    stop(&b);
    b.f.endpoint.type_count = 1;
    start(&b, 1);
    await_group(client, a.f.queue, 2, 5, &g);
    stop(&b);
    stop(&a);
    client_close(client);
}

/* ---- a rolling restart ----------------------------------------------------------- */

enum { PROCESSES = 3, WORKERS = 2, PARTITIONS = 12, MESSAGES_MAX = 4096 };

/* One partition as those who receive from it see it; under the lock. */
typedef struct track {
    int owner; /* of the message before, -1: none yet */
    int64_t last;
    int64_t standstill;
    int moves;
    int64_t sent, seen, repeated;
    unsigned char got[MESSAGES_MAX];
} track;

typedef struct load {
    pthread_mutex_t lock;
    track tracks[PARTITIONS];
    atomic_int ends;
    const char *topic;
} load;

typedef struct hand {
    load *load;
    process *process;
    int number; /* of the process */
    wb_transport_session *session;
    atomic_int ends;
    pthread_t thread;
    wb_error error;
    int result;
} hand;

static void note(load *l, int owner, const wb_incoming *message)
{
    char text[40];
    int partition, number;
    assert_true(message->body_size < sizeof text);
    memcpy(text, message->body, message->body_size);
    text[message->body_size] = '\0';
    assert_int_equal(sscanf(text, "%d %d", &partition, &number), 2);
    int64_t now = wb_clock_monotonic();
    (void)pthread_mutex_lock(&l->lock);
    track *t = &l->tracks[partition];
    if (t->owner >= 0 && now - t->last > t->standstill)
        t->standstill = now - t->last;
    t->moves += t->owner >= 0 && t->owner != owner;
    t->owner = owner;
    t->last = now;
    t->repeated += t->got[number];
    t->seen += !t->got[number];
    t->got[number] = 1;
    (void)pthread_mutex_unlock(&l->lock);
}

static void *receive_main(void *argument)
{
    hand *h = argument;
    const wb_transport_ops *ops = h->process->f.ops;
    const wb_incoming *messages[32];
    while (!atomic_load(&h->ends) && h->result == WB_OK) {
        size_t count = 0;
        h->result = ops->receive(h->session, fixture_in(20 * MILLISECOND), messages, 32, &count,
                                 &h->error);
        for (size_t i = 0; i < count; i++)
            note(h->load, h->number, messages[i]);
        if (h->result == WB_OK && count)
            h->result = ops->acknowledge(h->session, messages, count, &h->error);
    }
    return NULL;
}

static void *send_main(void *argument)
{
    load *l = argument;
    rd_kafka_t *client = client_open();
    char body[40];
    for (int number = 0; number < MESSAGES_MAX && !atomic_load(&l->ends); number++) {
        for (int32_t p = 0; p < PARTITIONS; p++) {
            (void)snprintf(body, sizeof body, "%d %d", (int)p, number);
            client_produce(client, l->topic, p, body, strlen(body), NULL);
            l->tracks[p].sent++;
        }
        client_flush(client);
        (void)usleep(20000);
    }
    client_close(client);
    return NULL;
}

static void begin_work(hand hands[WORKERS], load *l, process *p, int number)
{
    start(p, WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        memset(&hands[i], 0, sizeof hands[i]);
        hands[i].load = l;
        hands[i].process = p;
        hands[i].number = number;
        hands[i].session = p->sessions[i];
        assert_int_equal(pthread_create(&hands[i].thread, NULL, receive_main, &hands[i]), 0);
    }
}

static void end_work(hand hands[WORKERS], process *p)
{
    for (int i = 0; i < WORKERS; i++)
        atomic_store(&hands[i].ends, 1);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(hands[i].thread, NULL), 0);
        if (hands[i].result != WB_OK)
            fail_msg("a worker: %s", hands[i].error.text);
    }
    stop(p);
}

/* What a restart cost: moves, and the longest standstill of what was the process's own and of
 * the rest. */
typedef struct cost {
    int moves;
    int64_t own, others;
} cost;

static void reset(load *l)
{
    (void)pthread_mutex_lock(&l->lock);
    for (int p = 0; p < PARTITIONS; p++) {
        l->tracks[p].moves = 0;
        l->tracks[p].standstill = 0;
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static void add_cost(load *l, const int owners[PARTITIONS], int restarted, cost *c)
{
    (void)pthread_mutex_lock(&l->lock);
    for (int p = 0; p < PARTITIONS; p++) {
        const track *t = &l->tracks[p];
        int64_t *longest = owners[p] == restarted ? &c->own : &c->others;
        c->moves += t->moves;
        if (t->standstill > *longest)
            *longest = t->standstill;
    }
    (void)pthread_mutex_unlock(&l->lock);
}

static void read_owners(load *l, int owners[PARTITIONS])
{
    (void)pthread_mutex_lock(&l->lock);
    for (int p = 0; p < PARTITIONS; p++)
        owners[p] = l->tracks[p].owner;
    (void)pthread_mutex_unlock(&l->lock);
}

static int64_t count_missing(load *l)
{
    int64_t missing = 0;
    (void)pthread_mutex_lock(&l->lock);
    for (int p = 0; p < PARTITIONS; p++)
        missing += l->tracks[p].sent - l->tracks[p].seen;
    (void)pthread_mutex_unlock(&l->lock);
    return missing;
}

static void roll(const char *const instances[PROCESSES], cost *c)
{
    static process processes[PROCESSES];
    static hand hands[PROCESSES][WORKERS];
    static load l;
    pthread_t sender;
    group g;
    int owners[PARTITIONS];
    memset(&l, 0, sizeof l);
    memset(c, 0, sizeof *c);
    (void)pthread_mutex_init(&l.lock, NULL);
    for (int i = 0; i < PROCESSES; i++)
        prepare(&processes[i], &processes[0], instances[i], 0);
    rd_kafka_t *client = client_open();
    l.topic = processes[0].f.queue;
    client_make_topic(client, l.topic, PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        l.tracks[p].owner = -1;
    for (int i = 0; i < PROCESSES; i++)
        begin_work(hands[i], &l, &processes[i], i);
    await_group(client, l.topic, PROCESSES, PARTITIONS, &g);
    assert_int_equal(pthread_create(&sender, NULL, send_main, &l), 0);
    (void)sleep(1);
    for (int i = 0; i < PROCESSES; i++) {
        read_owners(&l, owners);
        reset(&l);
        end_work(hands[i], &processes[i]);
        (void)usleep(2500000); /* less than the session timeout */
        begin_work(hands[i], &l, &processes[i], i);
        await_group(client, l.topic, PROCESSES, PARTITIONS, &g);
        (void)sleep(1);
        add_cost(&l, owners, i, c);
    }
    atomic_store(&l.ends, 1);
    assert_int_equal(pthread_join(sender, NULL), 0);
    for (int i = 0; i < 100 && count_missing(&l); i++)
        (void)usleep(100000);
    assert_int_equal(count_missing(&l), 0);
    for (int i = 0; i < PROCESSES; i++)
        end_work(hands[i], &processes[i]);
    client_close(client);
    printf("# %d processes of %d workers, %d partitions: %d moves, longest standstill %lld ms of the "
           "restarted process's partitions, %lld ms of the others'\n",
           PROCESSES, WORKERS, PARTITIONS, c->moves, (long long)(c->own / MILLISECOND),
           (long long)(c->others / MILLISECOND));
}

/* A machine that is busy with something else stands still, too, and for longer than the session timeout, so that partitions move:
 * not three times in a row. */
static int is_short(const char *const instances[PROCESSES], int64_t others, int may_move)
{
    for (int i = 0; i < 3; i++) {
        cost c;
        roll(instances, &c);
        if ((may_move || c.moves == 0) && c.others < others && c.own < SECONDS(5))
            return 1;
    }
    return 0;
}

/* Nothing moves; what others work on goes on as if nothing had happened. */
static void test_rolling_restart(void **state)
{
    static const char *const instances[PROCESSES] = { "first", "second", "third" };
    (void)state;
    assert_true(is_short(instances, SECONDS(1), 0));
}

/* Without a name of its own a process that ends gives its partitions to the others at once. */
static void test_rolling_restart_without_names(void **state)
{
    static const char *const instances[PROCESSES] = { NULL, NULL, NULL };
    (void)state;
    assert_true(is_short(instances, SECONDS(5), 1));
}

/* ---- a stop amid a rebalance -------------------------------------------------------- */

static atomic_int is_synchronising;

/* On librdkafka's own thread, which so stands still between the group's answer to who it is and the
 * one to what it gets, until the transport has asked to leave. */
static void log_and_hold(const wb_host *host, int level, const char *text, const wb_field *fields,
                         size_t count)
{
    (void)host, (void)level, (void)text;
    for (size_t i = 0; i < count; i++)
        if (strstr(fields[i].value, "-> wait-sync")) {
            atomic_store(&is_synchronising, 1);
            (void)usleep(500000);
        }
}

/* Who is given partitions while it leaves answers, or it would not leave before its patience is over. */
static void test_stop_while_partitions_come(void **state)
{
    static const char *const names[] = { "debug" }, *const values[] = { "cgrp" };
    static const wb_option_map properties = { 1, names, values };
    static process p;
    (void)state;
    memset(&p, 0, sizeof p);
    fixture_prepare(&p.f);
    p.f.config.properties = &properties;
    p.f.host.host.log = log_and_hold;
    atomic_store(&is_synchronising, 0);
    fixture_create(&p.f);
    assert_int_equal(p.f.ops->install(p.f.transport, &p.f.error), WB_OK);
    p.workers = 1;
    assert_int_equal(p.f.ops->open(p.f.transport, WB_SESSION_RECEIVE, 32, &p.sessions[0], &p.f.error),
                     WB_OK);
    while (!atomic_load(&is_synchronising))
        (void)usleep(1000);
    int64_t began = wb_clock_monotonic();
    stop(&p);
    int64_t took = (wb_clock_monotonic() - began) / MILLISECOND;
    printf("# left after %d ms\n", (int)took);
    assert_true(took < p.f.config.connect_timeout / MILLISECOND / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_have_a_share),
        cmocka_unit_test(test_restart_with_another_type),
        cmocka_unit_test(test_rolling_restart),
        cmocka_unit_test(test_rolling_restart_without_names),
        cmocka_unit_test(test_stop_while_partitions_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

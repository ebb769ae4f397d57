/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions: callers commit one row and one message each, as fast as they can, or one now and then.
 * Prints "<commits a second> <p50> <p99>", times in microseconds: of a commit, or with --idle from
 * the return of a commit to the arrival of its message.
 *
 * The rate counts until everything is out, so that a side which commits faster than it sends gains
 * nothing.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"
#include "tests/bench/sessions.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BODY_SIZE 1024
#define CALLERS_MAX 64
#define WARM_UP 20 /* sessions a caller */
#define PAUSE_NS 8000000
#define TIMEOUT_MS 10000

struct run {
    struct bench_sessions_settings settings;
    size_t count; /* sessions, without the warm-up */
    int is_idle;
    struct bench_sessions *sessions;
    uint64_t salt;
    pthread_barrier_t warm;
    int64_t *taken;
};

struct caller {
    struct run *run;
    unsigned number;
    pthread_t thread;
    struct bench_caller *caller;
};

static void commit(const struct caller *c, uint64_t number)
{
    char id[BENCH_ID_SIZE + 1], body[BODY_SIZE];
    bench_message_id(id, c->run->salt, number);
    bench_message_body(body, sizeof body, number);
    bench_caller_commit(c->caller, id, body, sizeof body);
}

static void warm_up(struct caller *c)
{
    c->caller = bench_caller_open(c->run->sessions);
    for (unsigned i = 0; i < WARM_UP; i++)
        commit(c, c->run->count + c->number * WARM_UP + i);
}

/* ---- as fast as they can ----------------------------------------------------- */

static void *call(void *argument)
{
    struct caller *c = argument;
    struct run *run = c->run;
    warm_up(c);
    pthread_barrier_wait(&run->warm);
    for (size_t i = c->number; i < run->count; i += run->settings.callers) {
        int64_t start = bench_now();
        commit(c, i);
        run->taken[i] = bench_now() - start;
    }
    return NULL;
}

static int64_t run_busy(struct run *run)
{
    static struct caller callers[CALLERS_MAX];
    pthread_barrier_init(&run->warm, NULL, run->settings.callers + 1);
    for (unsigned i = 0; i < run->settings.callers; i++) {
        callers[i] = (struct caller){ .run = run, .number = i };
        if (pthread_create(&callers[i].thread, NULL, call, &callers[i]))
            bench_die("cannot start a thread");
    }
    pthread_barrier_wait(&run->warm);
    int64_t start = bench_now();
    for (unsigned i = 0; i < run->settings.callers; i++) {
        pthread_join(callers[i].thread, NULL);
        bench_caller_close(callers[i].caller);
    }
    bench_sessions_close(run->sessions);
    return bench_now() - start;
}

/* ---- now and then -------------------------------------------------------------- */

static void await_message(amqp_connection_state_t consumer)
{
    struct bench_incoming message;
    if (bench_amqp_receive(consumer, &message, 1, TIMEOUT_MS) != 1)
        bench_die("no message within %d ms of its commit", TIMEOUT_MS);
    bench_amqp_release(consumer);
}

/* The pause is longer than what follows a message: its mark, and the next control message's way. */
static int64_t run_idle(struct run *run)
{
    struct caller c = { .run = run };
    amqp_connection_state_t consumer = bench_amqp_connect();
    bench_amqp_consume(consumer, run->settings.sink, 0);
    warm_up(&c);
    for (unsigned i = 0; i < WARM_UP; i++)
        await_message(consumer);
    int64_t start = bench_now();
    for (size_t i = 0; i < run->count; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        commit(&c, i);
        int64_t committed = bench_now();
        await_message(consumer);
        run->taken[i] = bench_now() - committed;
    }
    int64_t taken = bench_now() - start;
    bench_amqp_close(consumer);
    bench_caller_close(c.caller);
    bench_sessions_close(run->sessions);
    return taken;
}

/* ---- start ------------------------------------------------------------------------ */

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void usage(void)
{
    puts("usage: sessions-SIDE [--config FILE] [--control QUEUE] [--sink QUEUE] [--sql plain|deferred]\n"
         "           [--callers N] [--idle] [--record] [--send FUNCTION] [--key KEY] COUNT\n"
         "--control: a control message before each commit. --record: the loop keeps one of each session. Servers: AMQP_HOST, ..., PGHOST, ...");
    exit(0);
}

static void parse(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' },  { "control", required_argument, NULL, 'C' },
        { "sink", required_argument, NULL, 's' },    { "sql", required_argument, NULL, 'q' },
        { "callers", required_argument, NULL, 'n' }, { "idle", no_argument, NULL, 'i' },
        { "record", no_argument, NULL, 'r' },        { "help", no_argument, NULL, 'h' },
        { "send", required_argument, NULL, 'S' },    { "key", required_argument, NULL, 'k' },
        { NULL, 0, NULL, 0 }
    };
    struct bench_sessions_settings *s = &run->settings;
    for (int choice; (choice = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (choice) {
        case 'c': s->config = optarg; break;
        case 'C': s->sends_control = 1; s->control = optarg; break;
        case 's': s->sink = optarg; break;
        case 'q': s->is_deferred = strcmp(optarg, "deferred") == 0; break;
        case 'n': s->callers = (unsigned)bench_number("callers", optarg, 1); break;
        case 'i': run->is_idle = 1; break;
        case 'r': s->keeps_record = 1; break;
        case 'S': s->send = optarg; break;
        case 'k': s->key = optarg; break;
        case 'h': usage(); break;
        default: exit(64);
        }
    }
    if (optind + 1 != argc || s->callers > CALLERS_MAX)
        bench_die("a number of sessions, and at most %d callers", CALLERS_MAX);
    run->count = (size_t)bench_number("sessions", argv[optind], 1);
}

int main(int argc, char **argv)
{
    static struct run run = { .settings = { .callers = 1, .is_deferred = 1, .sink = "bench.sink" } };
    parse(&run, argc, argv);
    run.salt = bench_wall_ms();
    run.taken = bench_zeroed(run.count * sizeof *run.taken);
    run.sessions = bench_sessions_open(&run.settings);
    int64_t taken = run.is_idle ? run_idle(&run) : run_busy(&run);
    qsort(run.taken, run.count, sizeof *run.taken, compare);
    printf("%.0f %lld %lld\n", (double)run.count * 1e9 / (double)taken,
           (long long)run.taken[run.count / 2] / 1000,
           (long long)run.taken[run.count * 99 / 100] / 1000);
    free(run.taken);
    return 0;
}

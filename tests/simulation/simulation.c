/* SPDX-License-Identifier: Apache-2.0
 *
 * The real worker over a broker and a database in memory that fail, lie dead and lose
 * replies at every step a seed says; afterwards the world is audited. Usage:
 *     simulation [FIRST_SEED [COUNT]]
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/handler.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/pipeline/worker.h"
#include "core/recover/attempts.h"
#include "tests/simulation/world.h"

#define DEFAULT_SEEDS 400
/* Ends of the process besides those by its killers: many, or so few that no innocent message
 * can have used up its noted attempts. */
#define CRASHES_MANY 8
#define CRASHES_FEW (WB_NOTED_ATTEMPTS_MIN - 1)

/* Linked in place of the real one: time does not matter here. */
void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop);
void __wrap_wb_clock_pause(int64_t duration, const atomic_int *stop)
{
    (void)stop;
    the_world.now += duration;
}

int64_t __wrap_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_monotonic(void)
{
    return the_world.now += 1000;
}

/* Message numbers with a fate of their own. */
static int is_poison(unsigned number)
{
    return number % 37 == 5;
}

static int is_unroutable(unsigned number)
{
    return number % 41 == 7;
}

/* Its handler ends the process. */
static int is_killer(unsigned number)
{
    return number % 53 == 3;
}

static unsigned number_of(const wb_message *message)
{
    return (unsigned)atoi(message->body);
}

static int handle_one(wb_context *ctx, const wb_message *message)
{
    unsigned number = number_of(message);
    if (is_killer(number)) {
        world_die();
        return WB_RETRY;
    }
    if (world_random(40) == 0)
        return wb_fail(ctx, WB_RETRY, "fails now and then");
    the_world.new_effects[number]++;
    if (world_random(60) == 0) {
        the_world.failed = 1; /* a statement failed, and the handler does not care */
        return WB_OK;
    }
    if (is_poison(number))
        return wb_fail(ctx, WB_UNRECOVERABLE, "poison");
    wb_outgoing first = { .type = "Test.Done", .destination = "sink", .body = message->body,
                          .body_size = message->body_size, .cause = message };
    int r = wb_send(ctx, &first);
    if (r == WB_OK && is_unroutable(number)) {
        first.destination = "nowhere";
        r = wb_send(ctx, &first);
    }
    return r;
}

static int handle_batch(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        r = handle_one(ctx, messages[i]);
    return r;
}

static void run_worker(wb_pipeline *pipeline)
{
    wb_worker worker;
    atomic_store(&pipeline->stop, 0);
    the_world.stop = &pipeline->stop;
    wb_worker_init(&worker, pipeline, 0);
    if (wb_worker_start(&worker) != 0)
        abort();
    wb_worker_join(&worker);
    wb_worker_free(&worker);
    world_bury();
}

static unsigned crashes_of(uint64_t seed)
{
    return seed & 2 ? CRASHES_FEW : CRASHES_MANY;
}

static void run_seed(uint64_t seed)
{
    static wb_handler_entry entries[] = { { "Test.Order", handle_one, NULL, "simulation" },
                                          { "Test.Order", NULL, handle_batch, "simulation" } };
    wb_handler_set handlers = { &entries[seed & 1], 1, NULL };
    wb_pipeline pipeline = {
        .endpoint = "simulated", .mode = WB_MODE_RECEIVE_ONLY, .outbox = 1,
        .transport_ops = &world_transport, .persistence_ops = &world_persistence,
        .persistence = (wb_persistence *)&the_world, .handlers = &handlers,
        .origin = wb_origin_make("simulated", 1, 1 << 20),
        .recoverability = { 3, "error", 0 }, .batch_max = 1 + (unsigned)(seed % 23),
        .batch_time = seed % 5 ? 20 * WB_MILLISECOND : 0, .body_max = 1 << 20,
    };
    world_reset(seed);
    wb_pipeline_init(&pipeline);
    for (unsigned crashes = 0; crashes < crashes_of(seed) && !world_is_drained(); crashes++) {
        the_world.fault_percent = (int)(seed % 7);
        the_world.crash_after = 1 + (int)world_random(400);
        run_worker(&pipeline);
    }
    the_world.fault_percent = 0;
    while (!world_is_drained() && the_world.steps <= WORLD_STEPS_MAX)
        run_worker(&pipeline);
    wb_pipeline_free(&pipeline);
}

static unsigned count_sent(const char *cause, const char *id, const char *destination)
{
    unsigned count = 0;
    for (size_t i = 0; i < the_world.sent_count; i++) {
        const world_sent *sent = &the_world.sent[i];
        count += strcmp(sent->destination, destination) == 0 &&
                 (!cause || strcmp(sent->cause, cause) == 0) && (!id || strcmp(sent->id, id) == 0);
    }
    return count;
}

/* As one that ends the process. */
static int was_given_up(const char *id)
{
    for (size_t i = 0; i < the_world.sent_count; i++)
        if (the_world.sent[i].given_up && strcmp(the_world.sent[i].id, id) == 0)
            return 1;
    return 0;
}

static const char *audit_message(const world_message *m, unsigned number, uint64_t seed)
{
    int effect = the_world.effects[number];
    unsigned sent = count_sent(m->id, NULL, "sink"), failed = count_sent(NULL, m->id, "error");

    if (effect > 1)
        return "two effects";
    if (effect == 0 && !failed)
        return "lost";
    if (effect && !sent)
        return "effect without its message";
    if (!effect && sent)
        return "message without its effect";
    if ((is_poison(number) || is_killer(number)) && effect)
        return "poison was handled";
    if (!is_killer(number) && crashes_of(seed) == CRASHES_FEW && was_given_up(m->id))
        return "an innocent message was given up";
    if (is_unroutable(number) && effect && !failed)
        return "unroutable operation went unnoticed";
    return NULL;
}

static const char *audit_duplicates(void)
{
    for (size_t i = 0; i < the_world.sent_count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(the_world.sent[i].destination, "sink") == 0 &&
                strcmp(the_world.sent[i].id, the_world.sent[k].id) == 0 &&
                strcmp(the_world.sent[k].destination, "sink") == 0 &&
                the_world.sent[i].bytes_hash != the_world.sent[k].bytes_hash)
                return "duplicates differ";
    return NULL;
}

/* Only what nobody can dispatch may stay pending. */
static const char *audit_pending(void)
{
    unsigned unroutable = 0;
    for (unsigned i = 0; i < WORLD_MESSAGES; i++)
        unroutable += is_unroutable(i) && the_world.effects[i];
    return the_world.pending_count > unroutable ? "operations stay pending" : NULL;
}

static const char *audit(uint64_t seed, char *where, size_t size)
{
    const char *wrong = world_is_drained() ? audit_duplicates() : "messages never finish";
    where[0] = '\0';
    if (!wrong)
        wrong = audit_pending();
    for (unsigned i = 0; i < WORLD_MESSAGES && !wrong; i++) {
        if (i % 10 == 9)
            continue; /* a copy of the one before */
        (void)snprintf(where, size, "message-%u", i);
        wrong = audit_message(&the_world.messages[i], i, seed);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_SEEDS;
    unsigned failures = 0;
    char where[40];

    wb_log_set_level(argc > 1 ? WB_LOG_DEBUG : -1);
    printf("1..1\n");
    for (uint64_t seed = first; seed < first + count; seed++) {
        run_seed(seed);
        const char *wrong = audit(seed, where, sizeof where);
        if (!wrong)
            continue;
        failures++;
        printf("# seed %llu: %s %s; replay: simulation %llu 1\n", (unsigned long long)seed, wrong, where,
               (unsigned long long)seed);
    }
    printf("%s 1 - %llu seeds, %u with violations\n", failures ? "not ok" : "ok",
           (unsigned long long)count, failures);
    return failures != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crash.h"
#include "core/delayed/poller.h"
#include "core/endpoint/housekeeper.h"
#include "core/endpoint/restart.h"
#include "core/message/ids.h"
#include "core/pipeline/suspect.h"
#include "core/pipeline/worker.h"
#include "core/recover/parked.h"
#include "core/written/relay.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/handlers.h"
#include "tests/simulation/observer.h"
#include "tests/simulation/persistence.h"
#include "tests/simulation/programs.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/transport.h"
#include "tests/simulation/verdict.h"

#define WORKERS_MAX 5
/* The product's shutdown_timeout, and what the slowest call takes. */
#define STOP_TIMEOUT (30 * WB_SECOND)
#define PARK_TIME (60 * WB_SECOND)
#define BREAKER_AFTER (30 * WB_SECOND)
#define BODY_MAX 65536
/* The product's. */
#define MISSING_PATIENCE (10 * WB_SECOND)

typedef struct {
    char name[16];
    struct wb_transport transport;
    struct wb_persistence persistence, store;
    wb_transport_ops transport_ops;
    wb_persistence_ops persistence_ops, store_ops;
    wb_pipeline pipeline;
    wb_worker workers[WORKERS_MAX];
    wb_housekeeper keeper;
    wb_poller poller;
    wb_written_relay relay;
    sim_thread *keeper_thread;
    sim_programs programs;
    int seats[WORKERS_MAX]; /* whether there is such a worker */
    wb_restart restart;
} endpoint;

typedef struct {
    int number;
    endpoint endpoints[SIM_ENDPOINTS_MAX];
    atomic_int stop;
    unsigned hanging; /* handlers that do not hear of it */
} host;

/* The core has one lock for the suspects of a process; ours are several in one. */
static int suspect_locks[SIM_PROCESSES_MAX];
static int64_t taken_since[SIM_PROCESSES_MAX];
static unsigned others[SIM_PROCESSES_MAX];
static unsigned waiting[SIM_PROCESSES_MAX];
int __wrap_wb_suspect_try_lock(void);
void __wrap_wb_suspect_unlock(void);
void __wrap_wb_suspect_enter(void);
void __wrap_wb_suspect_exit(void);
unsigned __wrap_wb_suspect_others(void);

int __wrap_wb_suspect_try_lock(void)
{
    int *is_taken = &suspect_locks[sim_process()];
    if ((*is_taken || waiting[sim_process()]) && !wb_bug("suspect_across_endpoints"))
        return 0;
    taken_since[sim_process()] = sim_now();
    return *is_taken = 1;
}

void __wrap_wb_suspect_enter(void)
{
    int process = sim_process();
    waiting[process]++;
    while (taken_since[process] && sim_now() - taken_since[process] < WB_SECOND)
        wb_clock_pause(WB_MILLISECOND, NULL);
    waiting[process]--;
    others[process]++;
}

void __wrap_wb_suspect_exit(void)
{
    others[sim_process()]--;
}

unsigned __wrap_wb_suspect_others(void)
{
    return others[sim_process()];
}

void __wrap_wb_suspect_unlock(void)
{
    suspect_locks[sim_process()] = 0;
    taken_since[sim_process()] = 0;
}

static host *hosts[SIM_PROCESSES_MAX];
static unsigned incarnations, rounds;
static unsigned given_up, deaths;

static wb_handler_entry entries[] = {
    { .type = WB_EVERY_OTHER_TYPE, .one = sim_handle_other, .module = "simulation" },
    { .type = SIM_TYPE_BASE, .one = sim_handle_base, .module = "simulation" },
    { .type = SIM_TYPE_BATCH, .batch = sim_handle_batch, .module = "simulation" },
    { .type = SIM_TYPE_ONE, .one = sim_handle_one, .module = "simulation" },
};
static const wb_handler_set handlers = { .entries = entries + 1, .count = 3 };
static const wb_handler_set handlers_with_other = { .entries = entries, .count = 4, .other = entries };

/* ---- an endpoint ---- */

static void fill_pipeline(endpoint *e)
{
    const sim_shape *shape = &the_shape;
    e->transport_ops = sim_transport_ops();
    e->persistence_ops = sim_persistence_ops();
    e->store_ops = sim_store_ops();
    e->pipeline = (wb_pipeline){
        .endpoint = e->name,
        .mode = shape->mode,
        .outbox = shape->outbox,
        .positions = shape->positions,
        .returns_first = shape->returns_first,
        .ordered = shape->incoming_keys != 0,
        .transport_ops = &e->transport_ops,
        .transport = &e->transport,
        .persistence_ops = shape->persistence ? &e->persistence_ops : NULL,
        .persistence = shape->persistence ? &e->persistence : NULL,
        .apart_ops = shape->apart ? &e->store_ops : NULL,
        .apart = shape->apart ? &e->store : NULL,
        .origin = wb_origin_make(e->name, 1, BODY_MAX),
        .handlers = the_shape.has_other ? &handlers_with_other : &handlers,
        .recoverability = { .immediate_retries = shape->retries, 
                            .error_queue = SIM_ERROR_QUEUE,
                            .delayed_retries = shape->delayed_retries,
                            .delay_increment = SIM_DELAY_INCREMENT,
                            .delivery_limit = shape->tells_limit ? shape->delivery_limit : 0 },
        .audit_queue = shape->audits ? SIM_AUDIT_QUEUE : NULL,
        .batch_max = shape->batch_max,
        .batch_time = shape->batch_time,
        .body_max = BODY_MAX,
        .sweep_after = shape->sweep_after,
        .park_time = PARK_TIME,
        .drain_time = STOP_TIMEOUT / 2,
        .missing_patience = MISSING_PATIENCE,
        .rate = { .after = shape->rate_after, .wait = shape->rate_wait },
    };
    e->pipeline.origin.tracing = sim_observer_of(e->transport.endpoint);
    e->pipeline.stores_with_commit = shape->store && shape->with_commit && shape->mode != WB_MODE_NONE;
    e->pipeline.minds_sessions = shape->programs != 0;
    e->pipeline.origin.expires = shape->expires;
    e->pipeline.origin.delays = shape->store    ? WB_DELAYS_BY_STORE
                                : shape->native ? WB_DELAYS_BY_TRANSPORT
                                                : WB_DELAYS_BY_NOBODY;
    e->pipeline.store_breaker.after = e->pipeline.fetch_breaker.after = BREAKER_AFTER;
    e->pipeline.dispatch_breaker.after = BREAKER_AFTER;
    wb_pipeline_init(&e->pipeline);
    /* the core's follow from where it is in memory */
    e->pipeline.broker.seed = sim_random(1000);
    e->pipeline.database.seed = sim_random(1000);
    e->pipeline.apart_server.seed = shape->apart ? sim_random(1000) : 0;
}

static void make_endpoint(endpoint *e, unsigned number)
{
    (void)snprintf(e->name, sizeof e->name, "endpoint-%u", number);
    e->transport.endpoint = e->persistence.endpoint = number;
    e->store.endpoint = sim_apart(number);
    fill_pipeline(e);
}

static int is_wanted(void *argument)
{
    const endpoint *e = argument;
    return e->pipeline.stop || e->pipeline.sweep_parked;
}

static void *keep_house(void *argument)
{
    endpoint *e = argument;
    for (;;) {
        (void)sim_wait("housekeeper", sim_now() + the_shape.keeper_interval, is_wanted, e);
        if (e->pipeline.stop)
            break;
        wb_housekeeper_round(&e->keeper);
        rounds++;
    }
    wb_sweep_forget(&e->keeper.memory);
    return NULL;
}

static void start_worker(const host *h, endpoint *e, unsigned number)
{
    char name[24];
    (void)snprintf(name, sizeof name, "p%d.%u/e%c/w%u", h->number, incarnations,
                   e->name[strlen(e->name) - 1], number);
    sim_name_next(name);
    wb_worker_init(&e->workers[number], &e->pipeline, number);
    if (wb_worker_start(&e->workers[number]) != 0)
        abort();
    e->seats[number] = 1;
}

static void start_workers(const host *h, endpoint *e)
{
    for (unsigned i = 0; i < the_shape.workers; i++)
        if (!e->seats[i])
            start_worker(h, e, i);
    wb_restart_started(&e->restart, sim_now());
}

static void start_poller(const host *h, endpoint *e)
{
    char name[24];
    if (!the_shape.store && !the_shape.drains)
        return;
    (void)snprintf(name, sizeof name, "p%d.%u/e%c/poll", h->number, incarnations, e->name[strlen(e->name) - 1]);
    sim_name_next(name);
    e->poller = (wb_poller){ .pipeline = &e->pipeline,
                             .policy = { .retries = the_shape.retries,
                                         .failure_pause = WB_SECOND,
                                         .limit = the_shape.lot },
                             .only_drains = the_shape.drains };
    if (wb_poller_start(&e->poller) != 0)
        abort();
}

static void start_relay(const host *h, endpoint *e)
{
    char name[24];
    if (!the_shape.writers)
        return;
    (void)snprintf(name, sizeof name, "p%d.%u/e%c/relay", h->number, incarnations, e->name[strlen(e->name) - 1]);
    sim_name_next(name);
    e->relay = (wb_written_relay){ .pipeline = &e->pipeline, .retries = the_shape.retries };
    if (wb_written_relay_start(&e->relay) != 0)
        abort();
}

static void start_endpoint(const host *h, endpoint *e)
{
    char name[24];
    start_workers(h, e);
    start_poller(h, e);
    start_relay(h, e);
    (void)snprintf(name, sizeof name, "p%d.%u/e%c", h->number, incarnations, e->name[strlen(e->name) - 1]);
    sim_programs_start(&e->programs, h->number, e->transport.endpoint, name, &e->pipeline);
    if (!the_shape.keepers || !the_shape.outbox)
        return;
    wb_housekeeper_init(&e->keeper, &e->pipeline, the_shape.keeper_interval, the_shape.retention);
    (void)snprintf(name, sizeof name, "p%d.%u/e%c/hk", h->number, incarnations, e->name[strlen(e->name) - 1]);
    e->keeper_thread = sim_spawn(h->number, name, keep_house, e);
}

static unsigned count_workers(const endpoint *e)
{
    unsigned count = 0;
    for (unsigned i = 0; i < the_shape.workers; i++)
        count += e->seats[i] && !atomic_load(&e->workers[i].ended);
    return count;
}

static int workers_have_ended(void *argument)
{
    return !count_workers(argument);
}

/* Waits for those that have not ended yet. @return how many seats are empty. */
static unsigned free_workers(endpoint *e, int all)
{
    unsigned empty = 0;
    for (unsigned i = 0; i < the_shape.workers; i++) {
        if (e->seats[i] && (all || atomic_load(&e->workers[i].ended))) {
            wb_worker_join(&e->workers[i]);
            wb_worker_free(&e->workers[i]);
            e->seats[i] = 0;
        }
        empty += !e->seats[i];
    }
    return empty;
}

/* Workers that gave up are started again, after a growing pause. */
static void look_after(const host *h, endpoint *e)
{
    for (unsigned i = 0; i < the_shape.workers; i++)
        if (e->seats[i])
            wb_worker_look_after(&e->workers[i]);
    if (free_workers(e, 0) && !wb_restart_is_planned(&e->restart)) {
        sim_tell("workers of %s gave up", e->name);
        given_up++;
        (void)wb_restart_plan(&e->restart, sim_now());
    }
    if (wb_restart_is_due(&e->restart, sim_now()))
        start_workers(h, e);
}

static int keeper_has_ended(void *argument)
{
    const endpoint *e = argument;
    return !e->keeper_thread || sim_has_ended(e->keeper_thread);
}

static int poller_has_ended(void *argument)
{
    return wb_poller_has_ended(&((endpoint *)argument)->poller);
}

static void stop_poller(endpoint *e, int64_t deadline)
{
    wb_alarm_ring(&e->pipeline.alarm);
    if (!sim_wait("stop", deadline, poller_has_ended, e))
        sim_violation("the poller of %s does not end within %.0f s", e->name, (double)STOP_TIMEOUT / 1e9);
    wb_poller_stop(&e->poller);
}

static int relay_has_ended(void *argument)
{
    return wb_written_relay_has_ended(&((endpoint *)argument)->relay);
}

static void stop_relay(endpoint *e, int64_t deadline)
{
    wb_written_relay_wake(&e->relay);
    if (!sim_wait("stop", deadline, relay_has_ended, e))
        sim_violation("the relay of %s does not end within %.0f s", e->name, (double)STOP_TIMEOUT / 1e9);
    wb_written_relay_stop(&e->relay);
}

/* What the user's handlers do not let end, the host ends with the process. */
static void stop_endpoint(const host *h, endpoint *e, int64_t deadline)
{
    int have_ended = sim_wait("stop", deadline, workers_have_ended, e);
    if (count_workers(e) > h->hanging)
        sim_violation("a worker of %s does not end within %.0f s", e->name, (double)STOP_TIMEOUT / 1e9);
    if (!sim_wait("stop", deadline, keeper_has_ended, e))
        sim_violation("the housekeeper of %s does not end within %.0f s", e->name,
                      (double)STOP_TIMEOUT / 1e9);
    stop_poller(e, deadline);
    stop_relay(e, deadline);
    if (!have_ended)
        sim_kill(h->number);
    (void)free_workers(e, 1);
    wb_pipeline_free(&e->pipeline);
}

/* ---- the process ---- */

static int is_stopped(void *argument)
{
    return atomic_load(&((host *)argument)->stop);
}

static void stop_all(host *h)
{
    for (unsigned i = 0; i < the_shape.endpoints; i++)
        sim_programs_stop(&h->endpoints[i].programs);
    int64_t deadline = sim_now() + STOP_TIMEOUT;
    sim_broker_note_stop(h->number, 1);
    for (unsigned i = 0; i < the_shape.endpoints; i++) {
        endpoint *e = &h->endpoints[i];
        atomic_store(&e->pipeline.stop, 1);
        for (unsigned k = 0; k < the_shape.workers; k++)
            if (e->seats[k])
                wb_worker_interrupt(&e->workers[k]);
    }
    for (unsigned i = 0; i < the_shape.endpoints; i++)
        stop_endpoint(h, &h->endpoints[i], deadline);
}

static void *host_main(void *argument)
{
    host *h = argument;
    for (unsigned i = 0; i < the_shape.endpoints; i++)
        start_endpoint(h, &h->endpoints[i]);
    while (!sim_wait("host", sim_now() + 200 * WB_MILLISECOND, is_stopped, h))
        for (unsigned i = 0; i < the_shape.endpoints; i++)
            look_after(h, &h->endpoints[i]);
    sim_tell("process %d is told to stop", h->number);
    stop_all(h);
    hosts[h->number] = NULL;
    return NULL;
}

/* What a dead process leaves in memory stays there: its threads still point to it. */
static void bury(int process)
{
    deaths++;
    sim_broker_bury(process);
    sim_database_bury(process);
    sim_programs_bury(process);
    hosts[process] = NULL;
}

void sim_process_start(int process)
{
    char name[24];
    host *h = calloc(1, sizeof *h);
    if (!h)
        abort();
    incarnations++;
    suspect_locks[process] = 0;
    taken_since[process] = 0;
    others[process] = 0;
    waiting[process] = 0;
    sim_on_death(bury);
    sim_broker_note_stop(process, 0);
    h->number = process;
    for (unsigned i = 0; i < the_shape.endpoints; i++)
        make_endpoint(&h->endpoints[i], i);
    hosts[process] = h;
    (void)snprintf(name, sizeof name, "p%d.%u", process, incarnations);
    (void)sim_spawn(process, name, host_main, h);
}

static int is_gone(void *argument)
{
    return !hosts[*(const int *)argument];
}

void sim_process_stop(int process)
{
    if (!hosts[process])
        return;
    atomic_store(&hosts[process]->stop, 1);
    (void)sim_wait("await the stop", WB_NEVER, is_gone, &process);
}

int sim_process_is_alive(int process)
{
    return hosts[process] != NULL;
}

void sim_process_hang(int64_t until)
{
    host *h = hosts[sim_process()];
    h->hanging += the_shape.hangs_hard != 0;
    (void)sim_wait("a handler hangs", until, the_shape.hangs_hard ? NULL : is_stopped, h);
    h->hanging -= the_shape.hangs_hard != 0;
}

unsigned sim_process_deaths(void)
{
    return deaths;
}

unsigned sim_process_gave_up(void)
{
    return given_up;
}

unsigned sim_process_rounds(void)
{
    return rounds;
}

/* ---- rows of an earlier life ---- */

uint64_t sim_process_batch(int64_t wall, unsigned serial)
{
    return wb_batch_number_at(wall) + serial;
}

static void encode_row(wb_buffer *encoded, uint64_t batch, const char *destination, unsigned number)
{
    const sim_message *m = &sim_messages[number];
    char body[24], id[40];
    wb_arena arena;
    wb_operation_list list = { 0 };
    wb_arena_init(&arena, 4096);
    wb_operation *operation = wb_operation_append(&list, &arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = destination;
    operation->id_size = (size_t)snprintf(id, sizeof id, "earlier-%u-%llu", number, (unsigned long long)batch);
    operation->id = id;
    operation->body_size = (size_t)snprintf(body, sizeof body, "%u/%d/0", number,
                                            strcmp(destination, SIM_SINK) ? SIM_LABEL_BAD : SIM_LABEL_FIRST);
    operation->body = body;
    (void)wb_operations_encode_group(encoded, m->id, m->id_size, &list);
    wb_arena_free(&arena);
}

void sim_process_store_row(unsigned endpoint_number, uint64_t batch, const char *const *destinations,
                           unsigned first, unsigned count)
{
    wb_buffer encoded = { 0 };
    wb_operations_encode_start(&encoded);
    for (unsigned i = 0; i < count; i++)
        encode_row(&encoded, batch, destinations[i], first + i);
    (void)sim_database_store(endpoint_number, batch, encoded.data, encoded.size, 0);
    wb_buffer_free(&encoded);
}

typedef struct {
    char text[64]; /* an operation's id */
} held_id;

typedef struct {
    held_id *ids;
    size_t count, max;
} held_ids;

static void note_id(held_ids *held, const wb_operation *operation)
{
    if (strcmp(operation->destination, SIM_ERROR_QUEUE) == 0 || strcmp(operation->destination, SIM_REVIEW_QUEUE) == 0)
        return;
    if (held->count == held->max) {
        held->max = held->max ? held->max * 2 : 64;
        held->ids = realloc(held->ids, held->max * sizeof *held->ids);
        if (!held->ids)
            abort();
    }
    (void)snprintf(held->ids[held->count++].text, sizeof held->ids->text, "%s", operation->id);
}

static void note_ids(held_ids *held, const sim_row *row, wb_arena *arena)
{
    wb_parked parked = { .operations = row->bytes, .operations_size = row->size };
    int failed;
    (void)wb_parked_decode(row->bytes, row->size, &parked);
    const wb_operation_group *groups =
        wb_operations_decode(parked.operations, parked.operations_size, arena, &failed);
    for (; !failed && groups; groups = groups->next)
        for (const wb_operation_node *node = groups->operations.first; node; node = node->next)
            note_id(held, &node->operation);
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const held_id *)a)->text, ((const held_id *)b)->text);
}

unsigned sim_process_most_rows(unsigned endpoint_number)
{
    const sim_table *t = &sim_tables[endpoint_number];
    held_ids held = { 0 };
    unsigned most = 0, same = 0;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    for (size_t i = 0; i < t->row_count; i++)
        note_ids(&held, &t->rows[i], &arena);
    if (held.count)
        qsort(held.ids, held.count, sizeof *held.ids, by_id);
    for (size_t i = 0; i < held.count; i++) {
        same = i && by_id(&held.ids[i], &held.ids[i - 1]) == 0 ? same + 1 : 1;
        most = same > most ? same : most;
    }
    free(held.ids);
    wb_arena_free(&arena);
    return most;
}

void sim_process_want_parked(int process, unsigned number)
{
    atomic_store(&hosts[process]->endpoints[number].pipeline.sweep_parked, 1);
}

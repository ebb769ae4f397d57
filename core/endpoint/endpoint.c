/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/host.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/delayed/poller.h"
#include "core/endpoint/fill.h"
#include "core/endpoint/housekeeper.h"
#include "core/endpoint/limits.h"
#include "core/endpoint/notes.h"
#include "core/endpoint/subscribed.h"
#include "core/pipeline/defer.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/worker.h"
#include "core/plugin/instance.h"
#include "core/plugin/loader.h"
#include "core/written/relay.h"


/* A worker's place: empty before its thread was started and after it was joined. */
typedef struct {
    wb_worker worker;
    int is_taken;
} seat;

struct wb_endpoint {
    const wb_endpoint_setup *setup;
    wb_host_instance transport_host;
    wb_host_instance persistence_host;
    wb_host_instance store_host;
    wb_host_instance observer_host;
    wb_pipeline pipeline;
    seat *seats;
    unsigned seat_count; /* 0 until the endpoint was started */
    wb_housekeeper housekeeper;
    int has_housekeeper;
    int has_store; /* of delayed messages, which keeps them or may still hold some */
    wb_poller poller;
    wb_written_relay relay;
    wb_tracing tracing; /* its observer; all zero: it has none */
    void *owner;
    int result;      /* WB_OK, or the class of `failure` while seats are empty for it */
    wb_error failure; /* why the first of those who gave up did */
};

/* Which of two databases it is about. */
static int say_store(int result, wb_error *error)
{
    static const char whose[] = "deduplication store: ";
    const size_t size = sizeof whose - 1;
    if (result == WB_OK)
        return WB_OK;
    memmove(error->text + size, error->text, sizeof error->text - size - 1);
    memcpy(error->text, whose, size);
    error->text[sizeof error->text - 1] = '\0';
    return result;
}

/* Where the file says what a plugin refuses: as `waybill check` has it (rehearsal.h). */
static int say_place(int result, const char *group, const wb_plugin_choice *choice, wb_error *error)
{
    const wb_error why = *error;
    const wb_conf_origin at = wb_plugin_place(choice, why.text);
    if (result == WB_OK || !at.file)
        return result;
    return wb_error_set(error, result, why.cause, why.native_code, "%s:%d: %s \"%s\": %s", at.file, at.line, group,
                        choice->plugin, why.text);
}

static int create_transport(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_setup *setup = e->setup;
    wb_host_init(&e->transport_host, setup->config->name, setup->transport->name);
    int r = wb_transport_create(setup->transport, &e->transport_host.host, &setup->info, setup->transport_config,
                                &e->pipeline.transport, error);
    return say_place(r, "transport", &setup->config->transport, error);
}

/* A store that is used no longer may still hold something, if it can be asked in this mode. That is to be known
 * before there are sessions. */
static int can_drain(const wb_plugin *persistence, const wb_pipeline *p)
{
    wb_error ignored;
    return (persistence->capabilities & WB_CAP_DELAY_STORE) &&
           p->persistence_ops->delayed->initialize(p->persistence, p->mode, &ignored) == WB_OK;
}

static int create_persistence(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_setup *setup = e->setup;
    wb_pipeline *p = &e->pipeline;
    wb_host_init(&e->persistence_host, setup->config->name, setup->persistence->name);
    int r = wb_persistence_create(setup->persistence, &e->persistence_host.host, &setup->persistence_info,
                                  setup->persistence_config, &p->persistence, error);
    if (r == WB_OK && setup->plan.delay_by == WB_DELAYS_BY_STORE)
        r = wb_persistence_keep_delayed(setup->persistence, p->persistence, p->mode, error);
    e->has_store = r == WB_OK && (setup->plan.delay_by == WB_DELAYS_BY_STORE || can_drain(setup->persistence, p));
    return say_place(r, "persistence", &setup->config->persistence, error);
}

static int create_store(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_setup *setup = e->setup;
    wb_host_init(&e->store_host, setup->config->name, setup->store->name);
    int r = wb_persistence_create(setup->store, &e->store_host.host, &setup->store_info, setup->store_config,
                                  &e->pipeline.apart, error);
    return say_place(r, "outbox.deduplication.store", &setup->config->outbox.store, error);
}

static int create_observer(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_setup *setup = e->setup;
    wb_host_init(&e->observer_host, setup->config->name, setup->observer->name);
    e->tracing.ops = setup->observer_ops;
    int r = wb_observer_create(setup->observer, &e->observer_host.host, &setup->observer_info, setup->observer_config,
                               &e->tracing.observer, error);
    return say_place(r, "observer", &setup->config->observer, error);
}

static int create_instances(wb_endpoint *e, wb_error *error)
{
    int r = create_transport(e, error);
    if (r == WB_OK && e->setup->persistence)
        r = create_persistence(e, error);
    if (r == WB_OK && e->setup->store)
        r = create_store(e, error);
    if (r == WB_OK && e->setup->observer)
        r = create_observer(e, error);
    return r;
}

/* Before anything of it is open. */
static void release(void *endpoint)
{
    wb_endpoint *e = endpoint;
    wb_hooks_free(&e->pipeline.hooks);
    free(e);
}

int wb_endpoint_create(const wb_endpoint_setup *setup, wb_endpoint **ret_endpoint, wb_error *error)
{
    wb_endpoint *e = wb_alloc_zero(1, sizeof *e);
    wb_memory_held held;
    wb_memory_hold(&held, release, e); /* until plugins are called: these report by themselves */
    e->setup = setup;
    wb_fill_pipeline(&e->pipeline, setup);
    wb_memory_let_go(&held);
    int r = create_instances(e, error);
    if (r == WB_OK)
        *ret_endpoint = e;
    else
        wb_endpoint_destroy(e);
    return r;
}

void wb_endpoint_stop_observing(wb_endpoint *e, int64_t deadline)
{
    if (!e || !e->pipeline.origin.tracing)
        return;
    e->pipeline.origin.tracing = NULL;
    e->tracing.ops->stop(e->tracing.observer, deadline);
}

/* Not sooner: sessions of a program may outlive the workers. */
static void end_observer(wb_endpoint *e)
{
    wb_endpoint_stop_observing(e, wb_clock_monotonic() + WB_OBSERVER_PATIENCE);
    if (e->tracing.observer)
        e->tracing.ops->destroy(e->tracing.observer);
}

void wb_endpoint_destroy(wb_endpoint *e)
{
    if (!e)
        return;
    wb_pipeline *p = &e->pipeline;
    end_observer(e);
    if (p->apart)
        p->apart_ops->destroy(p->apart);
    if (p->persistence)
        p->persistence_ops->destroy(p->persistence);
    if (p->transport)
        p->transport_ops->destroy(p->transport);
    wb_host_end(&e->transport_host);
    wb_hooks_free(&p->hooks);
    wb_pipeline_free(p);
    free(e->seats);
    free(e);
}

/* Those of a processor are made by its own installation, which knows what else belongs into them. */
int wb_endpoint_owns_tables(const wb_endpoint *e)
{
    return e->pipeline.persistence_ops && !(e->setup->plan.send_only && e->setup->plan.outbox);
}

/* The tables first: in them is noted what is about to be subscribed to. */
int wb_endpoint_install(wb_endpoint *e, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    int r = wb_endpoint_owns_tables(e) ? p->persistence_ops->install(p->persistence, error) : WB_OK;
    if (r == WB_OK && p->apart_ops)
        r = say_store(p->apart_ops->install(p->apart, error), error);
    if (r == WB_OK)
        r = wb_subscribed_note(e->setup, p, error);
    if (r == WB_OK)
        r = p->transport_ops->install(p->transport, error);
    return r == WB_OK ? wb_notes_forget_uninstall(e, error) : r;
}

const char *wb_endpoint_schema(wb_endpoint *e)
{
    const wb_pipeline *p = &e->pipeline;
    return wb_endpoint_owns_tables(e) ? p->persistence_ops->schema(p->persistence) : NULL;
}

/* A partition whose messages would pass for such that came before is seen before any is received. */
int wb_endpoint_check_positions(wb_endpoint *e, int all, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    wb_storage_session *storage = NULL;
    wb_transport_session *transport = NULL;
    if (!p->positions)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &storage, error);
    if (r == WB_OK)
        r = wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &transport, error);
    if (r == WB_OK)
        r = wb_positions_check(p, storage, transport, all, error);
    if (transport)
        p->transport_ops->close(transport);
    if (storage)
        p->persistence_ops->close(storage);
    return r;
}

int wb_endpoint_open_dedup_store(wb_endpoint *e, wb_storage_session **ret_session, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    *ret_session = NULL;
    return say_store(wb_persistence_open(p->apart_ops, p->apart, ret_session, error), error);
}

const char *wb_endpoint_dedup_store_schema(wb_endpoint *e)
{
    const wb_pipeline *p = &e->pipeline;
    return p->apart_ops ? p->apart_ops->schema(p->apart) : NULL;
}

int wb_endpoint_reset_positions(wb_endpoint *e, size_t *ret_count, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    wb_storage_session *storage = NULL;
    *ret_count = 0;
    if (!p->positions)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &storage, error);
    if (r != WB_OK)
        return r;
    r = p->persistence_ops->forget_positions(storage, ret_count, error);
    p->persistence_ops->close(storage);
    return r;
}

int wb_endpoint_verify(wb_endpoint *e, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    int r = wb_notes_explain(e, p->transport_ops->verify(p->transport, error), error);
    if (r == WB_OK && p->persistence_ops)
        r = p->persistence_ops->verify(p->persistence, error);
    if (r == WB_OK && p->apart_ops)
        r = say_store(p->apart_ops->verify(p->apart, error), error);
    if (r == WB_OK)
        r = wb_endpoint_check_positions(e, 0, error);
    if (r == WB_OK && !e->setup->plan.send_only)
        r = wb_limits_apply(&e->pipeline, error);
    return r;
}

static void release_worker(void *worker)
{
    wb_worker_free(worker);
}

/* @return WB_OK, or WB_FATAL and the seat stays empty. */
static int fill_seat(wb_endpoint *e, unsigned number, wb_error *error)
{
    seat *place = &e->seats[number];
    wb_memory_held held;
    wb_memory_hold(&held, release_worker, &place->worker);
    wb_worker_init(&place->worker, &e->pipeline, number);
    wb_memory_let_go(&held);
    int code = wb_worker_start(&place->worker);
    if (code == 0) {
        place->is_taken = 1;
        return WB_OK;
    }
    wb_worker_free(&place->worker);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start a worker: %s",
                        strerror(code));
}

static int fill_seats(wb_endpoint *e, wb_error *error)
{
    int r = WB_OK;
    for (unsigned i = 0; i < e->seat_count && r == WB_OK; i++)
        if (!e->seats[i].is_taken)
            r = fill_seat(e, i, error);
    return r;
}

/* Joins a thread that is about to return, or that the caller waits for. */
static void clear_seat(wb_endpoint *e, seat *place)
{
    wb_worker_join(&place->worker);
    if (place->worker.gave_up && e->result == WB_OK) {
        e->result = WB_FATAL;
        e->failure = place->worker.error;
    }
    wb_tally_fold(&e->pipeline.tally, &place->worker.tally);
    wb_worker_free(&place->worker);
    place->is_taken = 0;
}

int wb_endpoint_keep(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_config *config = e->setup->config;
    if (!e->pipeline.outbox || e->has_housekeeper)
        return WB_OK;
    /* how long the records of a processor are kept is the processor's to say */
    wb_housekeeper_init(&e->housekeeper, &e->pipeline, config->outbox.cleanup_interval,
                        wb_endpoint_owns_tables(e) ? config->outbox.retention : 0);
    int code = wb_housekeeper_start(&e->housekeeper);
    if (code != 0)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start the housekeeper: %s",
                            strerror(code));
    e->has_housekeeper = 1;
    return WB_OK;
}

static int start_poller(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_config *config = e->setup->config;
    if (!e->has_store)
        return WB_OK;
    e->poller = (wb_poller){
        .pipeline = &e->pipeline,
        .policy = { .retries = (unsigned)config->delayed_delivery.number_of_retries,
                    .failure_pause = WB_SECOND / config->delayed_delivery.failures_per_second },
        .only_drains = e->pipeline.origin.delays != WB_DELAYS_BY_STORE,
    };
    int code = wb_poller_start(&e->poller);
    return code == 0 ? WB_OK
                     : wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code,
                                    "could not start the poller of delayed messages: %s", strerror(code));
}

/* What programs write is claimed, and sent, as what handlers do: it is part of the outbox. */
static int start_relay(wb_endpoint *e, wb_error *error)
{
    if (!e->pipeline.outbox || !(e->setup->persistence->capabilities & WB_CAP_WRITTEN))
        return WB_OK;
    e->relay.pipeline = &e->pipeline;
    e->relay.retries = (unsigned)e->setup->config->delayed_delivery.number_of_retries;
    int code = wb_written_relay_start(&e->relay);
    return code == 0 ? WB_OK
                     : wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code,
                                    "could not start the relay of what programs write: %s", strerror(code));
}

int wb_endpoint_check_modules(wb_endpoint *e, wb_error *error)
{
    return wb_hooks_approve(&e->pipeline.hooks, error);
}

int wb_endpoint_open_modules(wb_endpoint *e, wb_error *error)
{
    return wb_hooks_open(&e->pipeline.hooks, error);
}

int wb_endpoint_observe(wb_endpoint *e, wb_error *error)
{
    if (!e->tracing.observer || e->pipeline.origin.tracing)
        return WB_OK;
    int r = e->tracing.ops->start(e->tracing.observer, error);
    if (r == WB_OK)
        e->pipeline.origin.tracing = &e->tracing;
    return r;
}

int wb_endpoint_start(wb_endpoint *e, wb_error *error)
{
    char workers[12];
    int r = wb_endpoint_observe(e, error);
    if (r == WB_OK)
        r = wb_endpoint_open_modules(e, error);
    if (e->setup->plan.send_only || r != WB_OK)
        return r;
    (void)snprintf(workers, sizeof workers, "%u", (unsigned)e->setup->config->concurrency);
    wb_log_event(WB_LOG_INFO, "endpoint starts", { "endpoint", e->pipeline.endpoint },
                 { "transport", e->setup->transport->name },
                 { "persistence", e->setup->persistence ? e->setup->persistence->name : NULL },
                 { "deduplication_store", e->setup->store ? e->setup->store->name : NULL },
                 { "observer", e->setup->observer ? e->setup->observer->name : NULL },
                 { "mode", wb_mode_name(e->pipeline.mode) }, { "outbox", e->pipeline.outbox ? "on" : "off" },
                 { "workers", workers });
    e->seats = wb_alloc_zero((size_t)e->setup->config->concurrency, sizeof *e->seats);
    e->seat_count = (unsigned)e->setup->config->concurrency;
    r = fill_seats(e, error);
    if (r == WB_OK)
        r = wb_endpoint_keep(e, error);
    if (r == WB_OK)
        r = start_poller(e, error);
    return r == WB_OK ? start_relay(e, error) : r;
}

static void interrupt_workers(wb_endpoint *e)
{
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken)
            wb_worker_interrupt(&e->seats[i].worker);
}

/* Somebody must act, on the database perhaps: as long as no worker runs the poller closes, too. */
static void rest_poller(wb_endpoint *e)
{
    wb_pipeline *p = &e->pipeline;
    if (wb_endpoint_missing(e) == e->seat_count && !atomic_exchange(&p->is_down, 1))
        wb_alarm_ring(&p->alarm);
}

int wb_endpoint_look(wb_endpoint *e, wb_error *error)
{
    if (e->pipeline.is_critical)
        interrupt_workers(e);
    for (unsigned i = 0; i < e->seat_count; i++) {
        seat *place = &e->seats[i];
        if (place->is_taken && atomic_load(&place->worker.ended))
            clear_seat(e, place);
        else if (place->is_taken)
            wb_worker_look_after(&place->worker);
    }
    wb_dependency_tell(&e->pipeline.broker, e->pipeline.endpoint, wb_clock_monotonic());
    wb_dependency_tell(&e->pipeline.database, e->pipeline.endpoint, wb_clock_monotonic());
    wb_dependency_tell(&e->pipeline.apart_server, e->pipeline.endpoint, wb_clock_monotonic());
    if (e->result == WB_OK)
        return WB_OK;
    rest_poller(e);
    *error = e->failure;
    return e->result;
}

/* A worker that is at work. */
static const wb_worker *worker_in(const seat *place)
{
    return place->is_taken && !atomic_load(&place->worker.ended) ? &place->worker : NULL;
}

void wb_endpoint_facts(wb_endpoint *e, wb_health_facts *ret_facts)
{
    int64_t now = wb_clock_monotonic();
    wb_health_facts facts = { .is_limited = wb_rate_is_limited(&e->pipeline.rate),
                              .broker_is_away = wb_dependency_is_away(&e->pipeline.broker),
                              .database_is_away = wb_dependency_is_away(&e->pipeline.database),
                              .store_is_away = wb_dependency_is_away(&e->pipeline.apart_server) };
    for (unsigned i = 0; i < e->seat_count; i++) {
        const wb_worker *w = worker_in(&e->seats[i]);
        if (!w)
            continue;
        facts.stuck += !wb_worker_is_alive(w, now);
        facts.troubled += atomic_load(&w->complained) != 0;
    }
    if (e->has_housekeeper)
        wb_gauge_describe(&e->housekeeper.gauge, facts.late, sizeof facts.late);
    *ret_facts = facts;
}

unsigned wb_endpoint_working(const wb_endpoint *e, unsigned *ret_overdue)
{
    unsigned working = 0;
    *ret_overdue = 0;
    for (unsigned i = 0; i < e->seat_count; i++) {
        const wb_worker *w = worker_in(&e->seats[i]);
        working += w != NULL;
        *ret_overdue += w && wb_overtime_is_over(&w->overtime);
    }
    return working;
}

int64_t wb_endpoint_empty_since(wb_endpoint *e)
{
    int64_t latest = atomic_load(&e->relay.found);
    if (e->result != WB_OK || wb_dependency_is_away(&e->pipeline.broker) ||
        wb_dependency_is_away(&e->pipeline.database) || wb_dependency_is_away(&e->pipeline.apart_server))
        return 0;
    for (unsigned i = 0; i < e->seat_count; i++) {
        const wb_worker *w = worker_in(&e->seats[i]);
        int64_t since = w ? atomic_load(&w->empty_since) : 0;
        if (!since)
            return 0;
        latest = since > latest ? since : latest;
    }
    return latest ? latest : 1;
}

int wb_endpoint_keeps_delayed(const wb_endpoint *e)
{
    return e->has_store;
}

const wb_gauge *wb_endpoint_gauge(const wb_endpoint *e)
{
    return e->has_housekeeper ? &e->housekeeper.gauge : NULL;
}

void wb_endpoint_counts(wb_endpoint *e, wb_counts *ret_counts)
{
    wb_counts counts = { .expired = atomic_load(&e->transport_host.expired) };
    wb_tally_read(&e->pipeline.tally, &counts);
    for (unsigned i = 0; i < e->seat_count; i++) {
        const wb_worker *w = &e->seats[i].worker;
        if (!e->seats[i].is_taken)
            continue;
        wb_tally_read(&w->tally, &counts);
        counts.waiting += atomic_load_explicit(&w->in_hand, memory_order_relaxed);
    }
    *ret_counts = counts;
}

unsigned wb_endpoint_missing(const wb_endpoint *e)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < e->seat_count; i++)
        missing += !e->seats[i].is_taken;
    return missing;
}

int wb_endpoint_restart(wb_endpoint *e)
{
    wb_error_clear(&e->failure);
    atomic_store(&e->pipeline.missing_since, 0);
    atomic_store(&e->pipeline.apart_missing_since, 0);
    atomic_store(&e->pipeline.is_critical, 0);
    wb_breaker_reset(&e->pipeline.store_breaker);
    wb_breaker_reset(&e->pipeline.fetch_breaker);
    wb_breaker_reset(&e->pipeline.dispatch_breaker);
    e->result = fill_seats(e, &e->failure);
    atomic_store(&e->pipeline.is_down, 0);
    return e->result;
}

void wb_endpoint_stop(wb_endpoint *e)
{
    wb_pipeline *p = &e->pipeline;
    atomic_store(&p->stop, 1);
    interrupt_workers(e);
    if (e->has_housekeeper)
        wb_housekeeper_wake(&e->housekeeper);
    wb_alarm_ring(&p->alarm);
    wb_written_relay_wake(&e->relay);
}

int wb_endpoint_has_ended(const wb_endpoint *e)
{
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken && !atomic_load(&e->seats[i].worker.ended))
            return 0;
    return wb_housekeeper_has_ended(&e->housekeeper) && wb_poller_has_ended(&e->poller) && wb_written_relay_has_ended(&e->relay);
}

int wb_endpoint_join(wb_endpoint *e, wb_error *error)
{
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken)
            clear_seat(e, &e->seats[i]);
    if (e->has_housekeeper)
        wb_housekeeper_stop(&e->housekeeper);
    e->has_housekeeper = 0;
    wb_poller_stop(&e->poller);
    wb_written_relay_stop(&e->relay);
    wb_hooks_close(&e->pipeline.hooks);
    if (e->result != WB_OK)
        *error = e->failure;
    return e->result;
}

void wb_endpoint_set_owner(wb_endpoint *e, void *owner)
{
    e->owner = owner;
}

void *wb_endpoint_owner(const wb_endpoint *e)
{
    return e->owner;
}

wb_pipeline *wb_endpoint_pipeline(wb_endpoint *e)
{
    return &e->pipeline;
}

const wb_endpoint_setup *wb_endpoint_setup_of(const wb_endpoint *e)
{
    return e->setup;
}

const wb_endpoint_config *wb_endpoint_config_of(const wb_endpoint *e)
{
    return e->setup->config;
}

int wb_endpoint_has_handlers(const wb_endpoint *e)
{
    return !e->setup->plan.send_only && e->setup->handlers.count > 0;
}

const wb_origin *wb_endpoint_origin(const wb_endpoint *e)
{
    return &e->pipeline.origin;
}

int wb_endpoint_open_sender(wb_endpoint *e, wb_transport_session **ret_session, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    return wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, ret_session, error);
}

int wb_endpoint_open_storage(wb_endpoint *e, wb_storage_session **ret_storage, wb_error *error)
{
    wb_pipeline *p = &e->pipeline;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, ret_storage, error);
    return r == WB_OK ? wb_pipeline_ask_time(p, *ret_storage, error) : r;
}

int wb_endpoint_send(wb_endpoint *e, const wb_sender *sender, wb_window *window, int64_t deadline,
                     wb_error *error)
{
    wb_outlet outlet = { .pipeline = &e->pipeline,
                         .session = sender->transport,
                         .storage = sender->storage,
                         .until = deadline };
    int r = wb_defer(window, &outlet, error);
    wb_window_keep_undone(window);
    return r != WB_OK || !window->count
               ? r
               : wb_window_hand_over(&e->pipeline, sender->transport, window->operations, window->count, deadline, error);
}

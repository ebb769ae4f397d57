/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/written/relay.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/worker.h"
#include "core/plugin/instance.h"

/* Of who waits for the turn: so long nobody sends when the process that had it dies. */
#define TURN_EVERY (250 * WB_MILLISECOND)
/* Whether the SQL interface was installed meanwhile. */
#define INSTALLED_EVERY (60 * WB_SECOND)
/* Between two looks whether an endpoint that gave up was started again. */
#define REST (200 * WB_MILLISECOND)
/* After a round that failed. */
#define PAUSE_FIRST (50 * WB_MILLISECOND)
#define PAUSE_LONGEST (5 * WB_SECOND)
/* All windows of a lot. */
#define PATIENCE (10 * WB_SECOND)
/* Of the window for destinations that confirmed nothing before: who answers does so by then. */
#define PROBE_PATIENCE (1 * WB_SECOND)

/* ---- sessions ---------------------------------------------------------------------- */

static void close_storage(wb_written_relay *relay)
{
    if (relay->storage)
        relay->pipeline->persistence_ops->close(relay->storage);
    relay->storage = NULL;
    relay->has_turn = 0;
    relay->looks = (wb_written_looks){ 0 };
}

static void close_outlet(wb_written_relay *relay)
{
    if (relay->outlet.session)
        relay->pipeline->transport_ops->close(relay->outlet.session);
    relay->outlet.session = NULL;
}

static int open_storage(wb_written_relay *relay, wb_error *error)
{
    wb_pipeline *p = relay->pipeline;
    if (relay->storage)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &relay->storage, error);
    wb_waiter_note(&relay->database, r, error, wb_clock_monotonic());
    return r;
}

static int open_outlet(wb_written_relay *relay, wb_error *error)
{
    wb_pipeline *p = relay->pipeline;
    if (relay->outlet.session)
        return WB_OK;
    relay->outlet = (wb_outlet){ .pipeline = p, .patience = PATIENCE };
    int r = wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &relay->outlet.session, error);
    wb_waiter_note(&relay->broker, r, error, wb_clock_monotonic());
    return r;
}

/* ---- a round ----------------------------------------------------------------------- */

static int is_lost(int result)
{
    return result != WB_OK && result != WB_RETRY && result != WB_ABORT;
}

static int settle(wb_written_relay *relay, wb_error *error)
{
    int r = wb_written_lot_settle(&relay->lot, relay->storage, error);
    if (is_lost(r))
        close_storage(relay);
    return r;
}

static int fetch(wb_written_relay *relay, wb_error *error)
{
    wb_written_look *look = &relay->lot.look;
    int64_t began = wb_clock_monotonic();
    int r = wb_written_lot_fetch(&relay->lot, relay->storage, wb_written_looks_next(&relay->looks, began),
                                 wb_written_looks_are_dear(&relay->looks), &relay->has_turn, error);
    look->ended = wb_clock_monotonic();
    look->took = look->ended - began;
    if (relay->lot.count)
        atomic_store(&relay->found, look->ended);
    if (r == WB_OK && relay->has_turn)
        wb_written_looks_note(&relay->looks, look);
    if (is_lost(r))
        close_storage(relay);
    if (r == WB_FATAL && error->cause == WB_CAUSE_MISSING)
        relay->is_installed = 0;
    return r;
}

static int dispatch(wb_written_relay *relay, int64_t patience,
                    int (*send)(wb_written_lot *lot, wb_outlet *outlet, wb_error *error), wb_error *error)
{
    relay->outlet.patience = patience;
    relay->outlet.until = wb_clock_monotonic() + patience;
    int r = send(&relay->lot, &relay->outlet, error);
    if (r == WB_OK || r == WB_IN_DOUBT)
        wb_waiter_met(&relay->broker);
    else if (r != WB_RETRY && r != WB_ABORT)
        close_outlet(relay);
    return r == WB_IN_DOUBT ? WB_OK : r;
}

/* Built-in bug: what is removed first is lost with the process. */
static void misbehave(wb_written_relay *relay)
{
    wb_error ignored;
    for (size_t i = 0; i < relay->lot.count && wb_bug("written_settled_first"); i++)
        (void)relay->pipeline->persistence_ops->written->settle(relay->storage, &relay->lot.entries[i].number, 1, NULL, 0,
                                                                &ignored);
}

/* What was sent is settled whatever became of the rest: the first failure is told. */
static int send_lot(wb_written_relay *relay, wb_error *error)
{
    wb_error own = { 0 };
    wb_crash_point("written_fetched");
    misbehave(relay);
    int r = open_outlet(relay, error);
    if (r == WB_OK)
        r = dispatch(relay, PATIENCE, wb_written_lot_dispatch, error);
    if (r == WB_OK && wb_written_lot_has_probes(&relay->lot) && !relay->pipeline->stop)
        r = dispatch(relay, PROBE_PATIENCE, wb_written_lot_probe, error);
    int settled = settle(relay, r == WB_OK ? error : &own);
    return r != WB_OK ? r : settled;
}

static int run_lots(wb_written_relay *relay, wb_error *error)
{
    const wb_pipeline *p = relay->pipeline;
    int r = WB_OK;
    do {
        if (relay->failures) /* nothing is read that cannot be sent */
            r = open_outlet(relay, error);
        if (r == WB_OK)
            r = fetch(relay, error);
        if (r == WB_OK && relay->lot.count)
            r = send_lot(relay, error);
        if (r != WB_OK || wb_written_lot_has_left(&relay->lot))
            relay->looks.wants_all = 1;
    } while (r == WB_OK && relay->lot.count && wb_written_lot_is_followed(&relay->lot) && !p->stop && !p->is_down);
    return r;
}

static int look_for_interface(wb_written_relay *relay, wb_error *error)
{
    if (relay->is_installed)
        return WB_OK;
    int r = relay->pipeline->persistence_ops->written->is_installed(relay->storage, &relay->is_installed, error);
    if (r != WB_OK || !relay->is_installed)
        close_storage(relay);
    return r;
}

static int run_round(wb_written_relay *relay, wb_error *error)
{
    int r = open_storage(relay, error);
    if (r == WB_OK)
        r = look_for_interface(relay, error);
    if (r == WB_OK && wb_written_lot_is_open(&relay->lot)) /* it was sent, and is not fetched again */
        r = settle(relay, error);
    return r == WB_OK && relay->is_installed ? run_lots(relay, error) : r;
}

static int64_t fail(wb_written_relay *relay, int result, const wb_error *error)
{
    const wb_pipeline *p = relay->pipeline;
    int is_known = wb_dependency_is_away(&relay->pipeline->broker) || wb_dependency_is_away(&relay->pipeline->database);
    int is_news = !relay->failures++ && !is_known && result != WB_ABORT;
    wb_log_event(is_news ? WB_LOG_WARNING : WB_LOG_DEBUG, "sending what was written in SQL failed; it is tried again",
                 { "endpoint", p->endpoint }, { "class", wb_result_name(result) }, { "reason", error->text });
    return wb_clock_backoff(PAUSE_FIRST, relay->failures - 1, PAUSE_LONGEST);
}

static int64_t pace(const wb_written_relay *relay)
{
    if (!relay->is_installed)
        return INSTALLED_EVERY;
    return relay->has_turn ? wb_written_looks_pause(&relay->looks, wb_clock_monotonic()) : TURN_EVERY;
}

/* @return how long to sleep. */
static int64_t look(wb_written_relay *relay)
{
    wb_error error = { 0 };
    if (relay->pipeline->is_down) {
        close_storage(relay);
        close_outlet(relay);
        return REST;
    }
    int r = run_round(relay, &error);
    if (r != WB_OK)
        return fail(relay, r, &error);
    relay->failures = 0;
    return pace(relay);
}

/* ---- the thread -------------------------------------------------------------------- */

static void *relay_main(void *argument)
{
    wb_written_relay *relay = argument;
    wb_pipeline *p = relay->pipeline;
    relay->broker = (wb_waiter){ .dependency = &p->broker };
    relay->database = (wb_waiter){ .dependency = &p->database };
    wb_written_lot_init(&relay->lot, p, relay->retries);
    while (!p->stop) {
        int64_t pause = look(relay);
        if (!p->stop)
            wb_alarm_sleep(&relay->wake, INT64_MIN, pause);
    }
    close_outlet(relay);
    close_storage(relay);
    wb_waiter_leave(&relay->broker);
    wb_waiter_leave(&relay->database);
    wb_written_lot_free(&relay->lot);
    atomic_store(&relay->ended, 1);
    return NULL;
}

int wb_written_relay_start(wb_written_relay *relay)
{
    pthread_attr_t attributes;
    wb_alarm_init(&relay->wake);
    atomic_store(&relay->ended, 0);
    int code = pthread_attr_init(&attributes);
    if (code != 0)
        return code;
    (void)pthread_attr_setstacksize(&attributes, WB_WORKER_STACK); /* it opens a transport session */
    code = pthread_create(&relay->thread, &attributes, relay_main, relay);
    (void)pthread_attr_destroy(&attributes);
    relay->started = code == 0;
    return code;
}

void wb_written_relay_wake(wb_written_relay *relay)
{
    if (relay->started)
        wb_alarm_ring(&relay->wake);
}

int wb_written_relay_has_ended(const wb_written_relay *relay)
{
    return !relay->started || atomic_load(&relay->ended);
}

void wb_written_relay_stop(wb_written_relay *relay)
{
    if (!relay->started)
        return;
    wb_written_relay_wake(relay);
    pthread_join(relay->thread, NULL);
    relay->started = 0;
    wb_alarm_free(&relay->wake);
}

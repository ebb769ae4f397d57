/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/housekeeper.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/endpoint/cleaner.h"
#include "core/plugin/instance.h"

/* Between two looks whether somebody asks for parked operations. */
#define LOOK_EVERY (1 * WB_SECOND)
/* The clean-up gets at least so long in a round, however long the sweep took. */
#define CLEAN_UP_MIN (5 * WB_SECOND)
/* Between two looks whether the database is back. */
#define AWAY_PAUSE (5 * WB_SECOND)

/* While a server is known to be away, that it is away for the housekeeper, too, is no news. */
static void report(const wb_housekeeper *keeper, int result, const wb_error *error)
{
    wb_pipeline *p = keeper->pipeline;
    int is_known = wb_dependency_is_away(&p->broker) || wb_dependency_is_away(&p->database) ||
                   wb_dependency_is_away(&p->apart_server);
    if (result != WB_OK)
        wb_log_event(is_known ? WB_LOG_DEBUG : WB_LOG_WARNING, "housekeeping failed; it is tried again",
                     { "endpoint", keeper->pipeline->endpoint }, { "class", wb_result_name(result) },
                     { "reason", error->text });
}

/* Rows are counted no further: that there are so many is enough to know, and each is read, perhaps whole. */
#define GAUGED_MAX 1000

static int is_lost(int result)
{
    return result == WB_NOT_CONNECTED || result == WB_IN_DOUBT;
}

static int count_backlog(wb_housekeeper *keeper, wb_storage_session *storage, wb_backlog *ret_backlog)
{
    wb_error ignored = { 0 };
    return wb_backlog_look(keeper->pipeline, storage, UINT64_MAX, GAUGED_MAX, ret_backlog, &ignored) == WB_OK;
}

/* What the round met last is why something is left. */
static void look_at_backlog(wb_housekeeper *keeper, wb_storage_session *storage, const wb_error *met)
{
    wb_backlog backlog;
    if (count_backlog(keeper, storage, &backlog))
        wb_gauge_take(&keeper->gauge, keeper->pipeline, storage, &backlog, keeper->interval, met->text);
}

static int sweep(wb_housekeeper *keeper, wb_storage_session *storage, wb_error *error)
{
    wb_pipeline *p = keeper->pipeline;
    const wb_sweep_order order = { .until = wb_clock_monotonic() + keeper->interval, .older_than = p->sweep_after };
    wb_sweep_result result;
    int r = wb_sweep(p, storage, &keeper->memory, &order, &result, error);
    report(keeper, r, error);
    wb_tally_add(&p->tally, WB_TALLY_SWEPT, result.sent);
    wb_tally_add(&p->tally, WB_TALLY_SWEEP_PARKED, result.parked);
    if (!is_lost(r))
        look_at_backlog(keeper, storage, error);
    return r;
}

static int open_storage(wb_housekeeper *keeper, wb_storage_session **ret_storage, wb_error *error)
{
    wb_pipeline *p = keeper->pipeline;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, ret_storage, error);
    /* what is due, and what is old, is so by its clock; where nobody else works, nobody has asked it */
    if (r == WB_OK && (r = wb_pipeline_ask_time(p, *ret_storage, error)) != WB_OK) {
        p->persistence_ops->close(*ret_storage);
        *ret_storage = NULL;
    }
    error->result = r;
    if (r == WB_OK)
        wb_waiter_met(&keeper->database);
    else
        wb_waiter_missed(&keeper->database, error, wb_clock_monotonic());
    return r;
}

/* What else happens in the store no housekeeper minds: workers say when it is away. */
static int clean_up_store(wb_housekeeper *keeper, int64_t until, wb_error *error)
{
    wb_pipeline *p = keeper->pipeline;
    wb_records store = { p->apart_ops, NULL };
    int r = wb_persistence_open(store.ops, p->apart, &store.session, error);
    if (r == WB_OK)
        r = wb_clean_up_store(p, &store, keeper->retention, &keeper->cleaning, until, error);
    if (store.session)
        store.ops->close(store.session);
    return r;
}

static int clean_up(wb_housekeeper *keeper, wb_storage_session *storage, int64_t until, wb_error *error)
{
    wb_pipeline *p = keeper->pipeline;
    const wb_records own = { p->persistence_ops, storage };
    int r = wb_clean_up(p, &own, keeper->retention, &keeper->cleaning, until, error);
    if (r == WB_OK && p->failures && !keeper->cleaning.is_held_back)
        r = wb_clean_up_failures(p, storage, until, error);
    return r == WB_OK && p->apart_ops ? clean_up_store(keeper, until, error) : r;
}

/* The two share a connection to the database and nothing else: what stops the sweeper (a broker
 * that is down) does not stop the clean-up. */
void wb_housekeeper_round(wb_housekeeper *keeper)
{
    wb_pipeline *p = keeper->pipeline;
    wb_storage_session *storage = NULL;
    wb_error error = { 0 };
    int64_t started = wb_clock_monotonic(), until;

    int r = open_storage(keeper, &storage, &error);
    if (r == WB_OK)
        r = sweep(keeper, storage, &error);
    if (storage && !is_lost(r)) {
        until = started + keeper->interval;
        if (until < wb_clock_monotonic() + CLEAN_UP_MIN)
            until = wb_clock_monotonic() + CLEAN_UP_MIN;
        if (keeper->retention)
            report(keeper, clean_up(keeper, storage, until, &error), &error);
    } else if (!storage) {
        report(keeper, r, &error);
    }
    if (storage)
        p->persistence_ops->close(storage);
}

/* Whoever watches a process that is started again and again, before its first round, is to see what waits all the same. */
static void look_first(wb_housekeeper *keeper)
{
    wb_storage_session *storage = NULL;
    wb_error error = { 0 };
    wb_backlog backlog;
    if (open_storage(keeper, &storage, &error) != WB_OK)
        return;
    if (count_backlog(keeper, storage, &backlog))
        wb_gauge_note(&keeper->gauge, keeper->pipeline, &backlog);
    keeper->pipeline->persistence_ops->close(storage);
}

/* @return whether to go on. */
static int wait_for_round(wb_housekeeper *keeper, int64_t until)
{
    const wb_pipeline *p = keeper->pipeline;
    int64_t left;
    while (!p->stop && !p->sweep_parked && (left = until - wb_clock_monotonic()) > 0) {
        wb_log_sum_up(); /* in a program that only has sessions nobody else looks at the time */
        wb_alarm_sleep(&keeper->wake, INT64_MIN, left < LOOK_EVERY ? left : LOOK_EVERY);
    }
    return !p->stop;
}

/* `next`; sooner while the database is away. */
static int64_t or_sooner(const wb_housekeeper *keeper, int64_t next)
{
    return keeper->database.waits && keeper->interval > AWAY_PAUSE ? wb_clock_monotonic() + AWAY_PAUSE : next;
}

static void *housekeeper_main(void *argument)
{
    wb_housekeeper *keeper = argument;
    int64_t next = wb_clock_monotonic() + keeper->interval;
    look_first(keeper);
    while (wait_for_round(keeper, or_sooner(keeper, next))) {
        next = wb_clock_monotonic() + keeper->interval;
        wb_housekeeper_round(keeper);
    }
    wb_waiter_leave(&keeper->database);
    atomic_store(&keeper->gauge.is_known, 0);
    atomic_store(&keeper->ended, 1);
    return NULL;
}

void wb_housekeeper_init(wb_housekeeper *keeper, wb_pipeline *pipeline, int64_t interval, int64_t retention)
{
    *keeper = (wb_housekeeper){ .pipeline = pipeline,
                                .interval = interval,
                                .retention = retention,
                                .cleaning = { .pace = wb_cleaner_pace_init(),
                                              .store_pace = wb_cleaner_pace_init() },
                                .database = { .dependency = &pipeline->database } };
}

int wb_housekeeper_start(wb_housekeeper *keeper)
{
    wb_alarm_init(&keeper->wake);
    atomic_store(&keeper->ended, 0);
    int code = pthread_create(&keeper->thread, NULL, housekeeper_main, keeper);
    keeper->started = code == 0;
    return code;
}

void wb_housekeeper_wake(wb_housekeeper *keeper)
{
    if (keeper->started)
        wb_alarm_ring(&keeper->wake);
}

int wb_housekeeper_has_ended(const wb_housekeeper *keeper)
{
    return !keeper->started || atomic_load(&keeper->ended);
}

void wb_housekeeper_stop(wb_housekeeper *keeper)
{
    if (!keeper->started)
        return;
    wb_housekeeper_wake(keeper);
    pthread_join(keeper->thread, NULL);
    keeper->started = 0;
    wb_sweep_forget(&keeper->memory);
    wb_alarm_free(&keeper->wake);
}

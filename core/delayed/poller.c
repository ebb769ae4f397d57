/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/delayed/poller.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/plugin/instance.h"

/* Other processes of the endpoint store, too. */
#define LOOK_EVERY (1 * WB_SECOND)
/* A store that is only drained: by then, those that still use it have their own poller. */
#define DRAIN_EVERY (60 * WB_SECOND)
/* One that is not there: mostly nobody has ever stored anything here, and each look is an error in the server's log. */
#define ABSENT_LONGEST (3600 * WB_SECOND)
/* Between two looks whether an endpoint that gave up was started again. */
#define REST (200 * WB_MILLISECOND)
/* Between two looks at what somebody has locked. */
#define LOCKED_PAUSE (50 * WB_MILLISECOND)
/* Between two looks while several come due at a time: a lot costs nearly the same for one message and for
 * many. So often at most while the workers are busy: they handle so many in that time, and a quarter of the
 * lot, since what was sent may have come to them. */
#define GATHER (20 * WB_MILLISECOND)
#define GATHER_MOST 5
#define GATHER_BUSY 50
/* After a round that failed. */
#define PAUSE_FIRST (500 * WB_MILLISECOND)
#define PAUSE_LONGEST (30 * WB_SECOND)
/* One window, and all tries of it: over before the lease is. */
#define PATIENCE (10 * WB_SECOND)

static int64_t drain_every(void)
{
    return wb_test_period(DRAIN_EVERY);
}

/* ---- sessions ---------------------------------------------------------------------- */

static void close_storage(wb_poller *poller)
{
    if (poller->storage)
        poller->pipeline->persistence_ops->close(poller->storage);
    poller->storage = NULL;
    poller->lot.has_begun = 0; /* it ended with the session */
}

static void close_outlet(wb_poller *poller)
{
    if (poller->outlet.session)
        poller->pipeline->transport_ops->close(poller->outlet.session);
    poller->outlet.session = NULL;
}

static int open_storage(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    if (poller->storage)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &poller->storage, error);
    error->result = r;
    if (r != WB_OK && !poller->only_drains)
        wb_waiter_missed(&poller->database, error, wb_clock_monotonic());
    return r == WB_OK ? wb_pipeline_ask_time(p, poller->storage, error) : r;
}

static int open_outlet(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    if (poller->outlet.session)
        return WB_OK;
    poller->outlet = (wb_outlet){ .pipeline = p, .patience = PATIENCE };
    return wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &poller->outlet.session, error);
}

/* What was sent is gone; what is in hand, and was not, is the others' at once, not when the lease ends. */
static void give_back(wb_poller *poller)
{
    wb_error ignored;
    if (poller->storage && wb_lot_recall(&poller->lot, poller->storage, &ignored) != WB_OK)
        close_storage(poller);
    if (poller->storage && wb_lot_give_back(&poller->lot, poller->storage, &ignored) != WB_OK)
        close_storage(poller);
    if (poller->storage && wb_lot_settle(&poller->lot, poller->storage, &ignored) != WB_OK)
        close_storage(poller);
    poller->lot.count = 0;
}

/* ---- a transaction that is shared -------------------------------------------------- */

static int is_shared(const wb_poller *poller)
{
    return poller->pipeline->mode == WB_MODE_TRANSACTION_SCOPE && !wb_bug("poller_apart");
}

/* What says so is lost, or of no more use, though a rollback of nothing succeeds. */
static int close_lost(wb_poller *poller, int result)
{
    if (result == WB_NOT_CONNECTED || result == WB_IN_DOUBT || result == WB_FATAL)
        close_outlet(poller);
    return result;
}

static int begin(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    if (!is_shared(poller))
        return WB_OK;
    int r = close_lost(poller, p->transport_ops->begin(poller->outlet.session, error));
    return r == WB_OK ? p->persistence_ops->join(poller->storage, p->transport_ops->native(poller->outlet.session),
                                                 error)
                      : r;
}

static int commit(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    if (!is_shared(poller))
        return WB_OK;
    int r = p->persistence_ops->join(poller->storage, NULL, error);
    return r == WB_OK ? close_lost(poller, p->transport_ops->commit(poller->outlet.session, error)) : r;
}

static void roll_back(wb_poller *poller)
{
    wb_pipeline *p = poller->pipeline;
    wb_error ignored;
    if (!is_shared(poller))
        return;
    poller->lot.count = 0;
    if (poller->storage && p->persistence_ops->join(poller->storage, NULL, &ignored) != WB_OK)
        close_storage(poller);
    if (poller->outlet.session && p->transport_ops->rollback(poller->outlet.session, &ignored) != WB_OK)
        close_outlet(poller);
}

/* ---- a lot ------------------------------------------------------------------------- */

/* The session of the transport lives, and what has no outcome is its destination's affair. */
static int keeps_session(int result)
{
    return result == WB_OK || result == WB_IN_DOUBT;
}

/* What is only drained keeps nothing of the endpoint from working. */
static void tell_breaker(wb_poller *poller, wb_breaker *breaker, const wb_error *error)
{
    if (!poller->only_drains)
        wb_breaker_failed(breaker, poller->pipeline, error);
}

/* No error where nobody has ever stored anything here, or somebody removed what was empty. */
static int is_absent(const wb_poller *poller, const wb_error *error)
{
    return error->cause == WB_CAUSE_MISSING && !poller->has_rows;
}

/* A store that is used no longer is never given up: a migration may have renamed it, somebody may grant what is missing, and nobody
 * else sends what waits there. */
static void miss_store(wb_poller *poller, const wb_error *error)
{
    const int absent = is_absent(poller, error);
    if (!poller->has_rows) {
        poller->pause_first = drain_every();
        poller->pause_longest = absent ? ABSENT_LONGEST : drain_every();
    }
    if (absent || poller->is_told)
        return;
    poller->is_told = 1;
    wb_log_event(WB_LOG_WARNING, "what may wait in the delayed message store cannot be sent, and is looked for again",
                 { "endpoint", poller->pipeline->endpoint }, { "reason", error->text });
}

static void met_store(wb_poller *poller)
{
    if (poller->is_told)
        wb_log_event(WB_LOG_INFO, "what waits in the delayed message store can be sent again",
                     { "endpoint", poller->pipeline->endpoint });
    poller->is_told = 0;
}

static void store_failed(wb_poller *poller, wb_breaker *breaker, const wb_error *error)
{
    if (poller->only_drains && error->result == WB_FATAL)
        miss_store(poller, error);
    tell_breaker(poller, breaker, error);
}

static int reach_broker(wb_poller *poller, wb_error *error)
{
    int r = open_outlet(poller, error);
    error->result = r;
    if (r != WB_OK)
        tell_breaker(poller, &poller->pipeline->dispatch_breaker, error);
    return r;
}

static int dispatch(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    poller->outlet.until = wb_clock_monotonic() + PATIENCE;
    int r = wb_lot_dispatch(&poller->lot, &poller->outlet, error);
    error->result = r;
    if (keeps_session(r)) {
        wb_breaker_succeeded(&p->dispatch_breaker, p);
        return r;
    }
    tell_breaker(poller, &p->dispatch_breaker, error);
    if (r != WB_RETRY && r != WB_ABORT)
        close_outlet(poller);
    return r;
}

static int settle(wb_poller *poller, wb_error *error)
{
    int r = wb_lot_settle(&poller->lot, poller->storage, error);
    error->result = r;
    if (r != WB_OK)
        store_failed(poller, &poller->pipeline->dispatch_breaker, error);
    return r;
}

/* What was confirmed is removed whatever became of the rest. */
static int conclude(wb_poller *poller, int dispatched, wb_error *error)
{
    wb_error own;
    if (is_shared(poller) && !keeps_session(dispatched))
        return dispatched;
    int r = wb_lot_conclude(&poller->lot, poller->storage, &own);
    if (r != WB_OK) {
        *error = own;
        error->result = r;
    }
    if (poller->lot.is_stuck)
        store_failed(poller, &poller->pipeline->dispatch_breaker, error);
    return r != WB_OK ? r : keeps_session(dispatched) ? WB_OK : dispatched;
}

static void make_owner(wb_poller *poller)
{
    char id[WB_GENERATED_ID_SIZE];
    wb_id_generate(id);
    memcpy(poller->owner, id + 19, WB_DELAYED_OWNER_SIZE); /* the random digits */
}

static int fetch(wb_poller *poller, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    int r = wb_lot_fetch(&poller->lot, poller->storage, error);
    error->result = r;
    if (r == WB_OK)
        wb_breaker_succeeded(&p->fetch_breaker, p);
    else
        store_failed(poller, &p->fetch_breaker, error);
    return r;
}

static int begin_next(wb_poller *poller, wb_error *error)
{
    int r = wb_lot_begin_next(&poller->lot, poller->storage, error);
    error->result = r;
    if (r != WB_OK)
        store_failed(poller, &poller->pipeline->fetch_breaker, error);
    return r;
}

static int run_lot(wb_poller *poller, wb_error *error)
{
    int r = reach_broker(poller, error); /* before anything is ours */
    if (r == WB_OK)
        r = begin(poller, error);
    if (r == WB_OK)
        r = fetch(poller, error);
    if (r == WB_OK && poller->lot.count) {
        wb_crash_point("delayed_fetched");
        wb_lot_misbehave(&poller->lot, poller->storage);
        r = begin_next(poller, error);
        if (r == WB_OK)
            r = conclude(poller, dispatch(poller, error), error);
    }
    return r == WB_OK ? commit(poller, error) : r;
}

/* ---- a round ----------------------------------------------------------------------- */

static int is_lost(int result)
{
    return result != WB_RETRY && result != WB_ABORT;
}

static void fail(wb_poller *poller, int result, const wb_error *error)
{
    roll_back(poller);
    give_back(poller);
    if (is_lost(result))
        close_storage(poller);
    poller->failures++;
    poller->absences = poller->only_drains && is_absent(poller, error) ? poller->absences + 1 : 0;
    wb_log_event(WB_LOG_DEBUG, "a round of the poller failed", { "endpoint", poller->pipeline->endpoint },
                 { "class", wb_result_name(result) }, { "reason", error->text });
}

static int look(wb_poller *poller, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    int r = open_storage(poller, error);
    int64_t asked = wb_clock_steady();
    if (r == WB_OK && (r = settle(poller, error)) != WB_OK) /* what could not be removed before */
        return r;
    if (r == WB_OK)
        r = p->persistence_ops->delayed->next(poller->storage, ret_due, ret_now, error);
    error->result = r;
    if (r == WB_OK && wb_bug("due_by_host"))
        *ret_now = wb_clock_wall();
    if (r == WB_OK) {
        wb_waiter_met(&poller->database);
        poller->has_rows = *ret_due != WB_NEVER_DUE;
        wb_pipeline_set_time(p, *ret_now, asked);
        if (*ret_due > *ret_now) /* else it is the fetch that tells */
            wb_breaker_succeeded(&p->fetch_breaker, p);
    } else {
        store_failed(poller, &p->fetch_breaker, error);
    }
    return r;
}

static void gather(const wb_poller *poller)
{
    wb_pipeline *p = poller->pipeline;
    uint64_t before, handled = UINT64_MAX;
    for (int i = 0; i < GATHER_MOST && handled >= GATHER_BUSY + poller->lot.count / 4 && !p->stop; i++) {
        before = p->successes;
        wb_clock_pause(GATHER, &p->stop);
        handled = p->successes - before;
    }
}

/* Lots, until nothing is due. The failures of one keep the next waiting: that throttles what a
 * destination that is gone costs everybody. */
static int run_lots(wb_poller *poller, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    wb_pipeline *p = poller->pipeline;
    int r;
    while ((r = look(poller, ret_due, ret_now, error)) == WB_OK && *ret_due <= *ret_now && !p->stop &&
           !p->is_down) {
        do
            if ((r = run_lot(poller, error)) != WB_OK)
                return r;
        while (wb_lot_is_full(&poller->lot) && !poller->lot.refused && !p->stop);
        if ((r = settle(poller, error)) != WB_OK)
            return r;
        if (poller->lot.refused || !poller->lot.count) /* what is due and not to be had is locked by somebody */
            wb_clock_pause(poller->lot.refused ? poller->policy.failure_pause : LOCKED_PAUSE, &p->stop);
        else if (poller->lot.count > 1)
            gather(poller);
        poller->lot.count = 0;
    }
    return r;
}

static int64_t longest_sleep(const wb_poller *poller)
{
    return poller->only_drains ? drain_every() : LOOK_EVERY;
}

/* Not before somebody has acted. */
static void rest(wb_poller *poller, int64_t *ret_until, int64_t *ret_sleep)
{
    close_storage(poller);
    close_outlet(poller);
    *ret_until = INT64_MIN;
    *ret_sleep = REST;
}

void wb_poller_round(wb_poller *poller, int64_t *ret_until, int64_t *ret_sleep)
{
    wb_error error = { 0 };
    int64_t due = WB_NEVER_DUE, now = 0;

    if (poller->pipeline->is_down) {
        rest(poller, ret_until, ret_sleep);
        return;
    }
    wb_alarm_clear(&poller->pipeline->alarm);
    poller->pause_first = PAUSE_FIRST;
    poller->pause_longest = PAUSE_LONGEST;
    int r = run_lots(poller, &due, &now, &error);
    if (r != WB_OK) {
        fail(poller, r, &error);
        *ret_until = INT64_MIN; /* what is stored meanwhile waits as well */
        /* What kept it from looking before is no reason to look more seldom. */
        const unsigned times = poller->absences ? poller->absences : poller->failures;
        *ret_sleep = wb_clock_backoff(poller->pause_first, times - 1, poller->pause_longest);
        return;
    }
    poller->failures = poller->absences = 0;
    met_store(poller);
    *ret_until = due;
    *ret_sleep = due - now < longest_sleep(poller) ? due - now : longest_sleep(poller);
}

void wb_poller_init(wb_poller *poller)
{
    make_owner(poller);
    poller->database = (wb_waiter){ .dependency = &poller->pipeline->database };
    poller->policy.owner = poller->owner;
    wb_lot_init(&poller->lot, poller->pipeline, &poller->policy);
}

void wb_poller_finish(wb_poller *poller)
{
    give_back(poller);
    close_storage(poller);
    close_outlet(poller);
    wb_waiter_leave(&poller->database);
    wb_lot_free(&poller->lot);
}

/* ---- the thread -------------------------------------------------------------------- */

/* As one did that was broken on purpose. */
static int gives_up(const wb_poller *poller)
{
    return (poller->failures && wb_bug("poller_gives_up")) || (poller->only_drains && wb_bug("end_of_store"));
}

static void *poller_main(void *argument)
{
    wb_poller *poller = argument;
    wb_pipeline *p = poller->pipeline;
    int64_t until, sleep;

    wb_poller_init(poller);
    while (!p->stop && !gives_up(poller)) {
        wb_poller_round(poller, &until, &sleep);
        if (!p->stop && !gives_up(poller))
            wb_alarm_sleep(&p->alarm, until, sleep);
    }
    wb_poller_finish(poller);
    atomic_store(&poller->ended, 1);
    return NULL;
}

int wb_poller_start(wb_poller *poller)
{
    pthread_attr_t attributes;
    atomic_store(&poller->ended, 0);
    int code = pthread_attr_init(&attributes);
    if (code != 0)
        return code;
    (void)pthread_attr_setstacksize(&attributes, WB_WORKER_STACK); /* it opens a transport session */
    code = pthread_create(&poller->thread, &attributes, poller_main, poller);
    (void)pthread_attr_destroy(&attributes);
    poller->started = code == 0;
    return code;
}

int wb_poller_has_ended(const wb_poller *poller)
{
    return !poller->started || atomic_load(&poller->ended);
}

void wb_poller_stop(wb_poller *poller)
{
    if (!poller->started)
        return;
    wb_alarm_ring(&poller->pipeline->alarm);
    pthread_join(poller->thread, NULL);
    poller->started = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/cleaner.h"

#include <inttypes.h>
#include <stdio.h>
#include <waybill/sys/failed.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/ids.h"

/* How long another instance is waited for, twice as long each time, and how often. */
#define MEETING (50 * WB_MILLISECOND)
#define MEETINGS_MAX 6
/* Clocks that drift or are slewed do not move so far between two rounds. */
#define JUMP_MAX (60 * WB_SECOND)
/* Failed messages, which may be large, of one step, and the rest behind it. */
#define FAILURES_STEP 50
#define FAILURES_REST (50 * WB_MILLISECOND)

/* Whoever set the database's clock wrong may set it right before anything is lost. */
static int has_jumped(const wb_pipeline *p, int64_t jump)
{
    char seconds[24];
    if (jump < JUMP_MAX && jump > -JUMP_MAX)
        return 0;
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, jump / WB_SECOND);
    wb_log_event(WB_LOG_WARNING, "the database's clock jumped: nothing is cleaned up this time",
                 { "endpoint", p->endpoint }, { "seconds", seconds });
    return 1;
}

/* Whoever waits for the housekeeper waits no longer than for a round. */
static void rest(wb_pipeline *p, int64_t duration, int64_t until)
{
    const int64_t left = until - wb_clock_monotonic();
    wb_clock_pause(duration < left ? duration : left, &p->stop);
}

int wb_clean_up_step(wb_pipeline *p, const wb_records *records, uint64_t before, wb_cleaner_pace *pace, int64_t until,
                     size_t *ret_deleted, wb_error *error)
{
    const size_t limit = pace->step;
    int64_t started = wb_clock_monotonic();
    *ret_deleted = 0;
    int r = records->ops->clean_up(records->session, before, limit, ret_deleted, error);
    if (*ret_deleted)
        rest(p, wb_cleaner_pace_step(pace, wb_clock_monotonic() - started, *ret_deleted >= limit), until);
    return r;
}

/* Nothing was deleted: because another instance is at it? Where nobody can count that is as good as nothing left. */
static int is_kept_out(const wb_records *records, uint64_t before)
{
    wb_error ignored = { 0 };
    uint64_t left = 0;
    if (!WB_HAS(records->ops, wb_persistence_ops, count_records))
        return 0;
    return records->ops->count_records(records->session, 0, before, 1, &left, &ignored) == WB_OK && left;
}

/* Step by step, until one deletes nothing: a store may take fewer at once than it is asked to. An instance that meets
 * others at it, where there was more a moment ago, is behind like one that is too slow. */
static int delete_old(wb_pipeline *p, const wb_records *records, uint64_t before, wb_cleaner_pace *pace,
                      int64_t until, wb_error *error)
{
    int goes_on = 1, is_met = 0, was_full = 1, r = WB_OK;
    unsigned meetings = 0;
    while (r == WB_OK && goes_on && !p->stop && wb_clock_monotonic() < until) {
        const size_t limit = pace->step;
        size_t deleted;
        r = wb_clean_up_step(p, records, before, pace, until, &deleted, error);
        wb_tally_add(&p->tally, WB_TALLY_CLEANED, deleted);
        goes_on = deleted > 0;
        is_met = r == WB_OK && !deleted && was_full && is_kept_out(records, before);
        was_full = is_met || deleted >= limit;
        if (is_met && meetings < MEETINGS_MAX) {
            goes_on = 1;
            rest(p, MEETING << meetings++, until);
        }
    }
    if (r == WB_OK && !p->stop)
        wb_cleaner_pace_round(pace, (goes_on && was_full) || is_met);
    return r;
}

int wb_clean_up_store(wb_pipeline *p, const wb_records *store, int64_t retention, wb_cleaning *cleaning, int64_t until,
                      wb_error *error)
{
    if (cleaning->is_held_back)
        return WB_OK;
    return delete_old(p, store, wb_batch_number_at(wb_pipeline_now(p) - retention), &cleaning->store_pace, until, error);
}

int wb_clean_up(wb_pipeline *p, const wb_records *records, int64_t retention,
                wb_cleaning *cleaning, int64_t until, wb_error *error)
{
    int64_t before_that = cleaning->time_offset;
    int r = wb_pipeline_ask_time(p, records->session, error);
    cleaning->time_offset = atomic_load(&p->time_offset);
    cleaning->is_held_back = r == WB_OK && before_that && has_jumped(p, cleaning->time_offset - before_that);
    if (r != WB_OK || cleaning->is_held_back)
        return r;
    return delete_old(p, records, wb_batch_number_at(wb_pipeline_now(p) - retention),
                      &cleaning->pace, until, error);
}

int wb_clean_up_failures(wb_pipeline *p, wb_storage_session *session, int64_t until, wb_error *error)
{
    const wb_failed_ops *ops = p->persistence_ops->interface(session, WB_FAILED_INTERFACE);
    const int64_t before = wb_pipeline_now(p) - p->failures_retention;
    size_t deleted = 1;
    int r = WB_OK;
    while (ops && r == WB_OK && deleted && !p->stop && wb_clock_monotonic() < until) {
        deleted = 0;
        r = ops->clean_up(session, before, FAILURES_STEP, &deleted, error);
        if (deleted)
            rest(p, FAILURES_REST, until);
    }
    return r;
}

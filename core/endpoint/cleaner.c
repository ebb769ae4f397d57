/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/cleaner.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/ids.h"

/* Records a step deletes at most. */
#define STEP 1000
/* It works for a tenth of the time. */
#define PACE 9
/* Clocks that drift or are slewed do not move so far between two rounds. */
#define JUMP_MAX (60 * WB_SECOND)

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

int wb_clean_up(wb_pipeline *p, wb_storage_session *storage, int64_t retention, int64_t *offset,
                int64_t until, wb_error *error)
{
    size_t deleted = STEP;
    int64_t before_that = *offset;
    int r = wb_pipeline_ask_time(p, storage, error);
    *offset = atomic_load(&p->time_offset);
    if (r != WB_OK || (before_that && has_jumped(p, *offset - before_that)))
        return r;
    uint64_t before = wb_batch_number_at(wb_pipeline_now(p) - retention);
    while (r == WB_OK && deleted == STEP && !p->stop && wb_clock_monotonic() < until) {
        int64_t started = wb_clock_monotonic();
        r = p->persistence_ops->clean_up(storage, before, STEP, &deleted, error);
        if (deleted == STEP)
            wb_clock_pause(PACE * (wb_clock_monotonic() - started), &p->stop);
    }
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/gauge.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/ids.h"

/* A parked row's reason has at most so many bytes, and what is before it. */
#define HEAD 2048

/* Once it is, it is until nothing is parked, either: what is late is parked next, and tried. */
static int is_late(const wb_pipeline *p, const wb_backlog *b, int64_t age, int64_t interval, int was_late)
{
    return age > p->sweep_after + WB_GAUGE_ROUNDS * interval || b->tries >= WB_GAUGE_ROUNDS ||
           (was_late && b->rows[WB_ROW_PARKED]);
}

typedef struct {
    char *text;
    size_t size;
} reading;

static int read_reason(void *argument, const wb_pending *row)
{
    const reading *r = argument;
    wb_parked parked;
    if (wb_parked_decode_head(row->operations, row->operations_size, &parked))
        (void)snprintf(r->text, r->size, "%s", parked.reason);
    return WB_OK;
}

/* It may be gone meanwhile: then there is none. */
static void find_reason(const wb_pipeline *p, wb_storage_session *storage, uint64_t row, char *text, size_t size)
{
    wb_error ignored = { 0 };
    reading r = { text, size };
    const wb_pending_filter one = { .struct_size = sizeof one, .after = row - 1, .before = row + 1, .limit = 1,
                                    .head = HEAD };
    (void)p->persistence_ops->list_pending(storage, &one, read_reason, &r, &ignored);
}

static void tell(wb_gauge *g, const wb_pipeline *p, const char *reason)
{
    char rows[24], parked[24], age[24];
    int64_t now = wb_clock_monotonic();
    (void)snprintf(rows, sizeof rows, "%" PRIu64, atomic_load(&g->rows));
    (void)snprintf(parked, sizeof parked, "%" PRIu64, atomic_load(&g->parked));
    if (atomic_load(&g->is_late)) {
        (void)snprintf(age, sizeof age, "%" PRId64, atomic_load(&g->age) / WB_SECOND);
        g->late_since = now;
        wb_log_event(WB_LOG_WARNING, "operations stay pending: the sweeper cannot dispatch them",
                     { "endpoint", p->endpoint }, { "rows", rows }, { "oldest_seconds", age }, { "parked", parked },
                     { "reason", reason });
        return;
    }
    (void)snprintf(age, sizeof age, "%" PRId64, (now - g->late_since) / WB_SECOND);
    wb_log_event(WB_LOG_INFO, "operations do not stay pending any more", { "endpoint", p->endpoint },
                 { "rows", rows }, { "parked", parked }, { "after_seconds", age });
}

void wb_gauge_note(wb_gauge *g, const wb_pipeline *p, const wb_backlog *b)
{
    const int64_t age = b->oldest ? wb_pipeline_now(p) - wb_batch_number_time(b->oldest) : 0;
    atomic_store(&g->rows, b->rows[WB_ROW_OPERATIONS]);
    atomic_store(&g->parked, b->rows[WB_ROW_PARKED]);
    atomic_store(&g->age, age > 0 ? age : 0);
    atomic_store(&g->is_known, 1);
}

void wb_gauge_take(wb_gauge *g, const wb_pipeline *p, wb_storage_session *storage, const wb_backlog *b,
                   int64_t interval, const char *reason)
{
    char text[1300] = "";
    wb_gauge_note(g, p, b);
    int late = is_late(p, b, atomic_load(&g->age), interval, atomic_load(&g->is_late));
    if (atomic_exchange(&g->is_late, late) == late)
        return;
    if (late && b->most_tried && (b->tries >= WB_GAUGE_ROUNDS || !*reason))
        find_reason(p, storage, b->most_tried, text, sizeof text);
    if (!*text)
        (void)snprintf(text, sizeof text, "%s", *reason ? reason : "its rounds did not come to them in time");
    tell(g, p, text);
}

void wb_gauge_describe(const wb_gauge *g, char *text, size_t size)
{
    uint64_t rows = atomic_load(&g->rows), parked = atomic_load(&g->parked);
    int64_t seconds = atomic_load(&g->age) / WB_SECOND;
    char oldest[90] = "", apart[40] = "";
    *text = '\0';
    if (!atomic_load(&g->is_late))
        return;
    if (rows)
        (void)snprintf(oldest, sizeof oldest, "%" PRIu64 " rows, the oldest for %" PRId64 " %s%s", rows,
                       seconds < 120 ? seconds : seconds / 60, seconds < 120 ? "s" : "min", parked ? ", and " : "");
    if (parked)
        (void)snprintf(apart, sizeof apart, "%" PRIu64 " parked", parked);
    (void)snprintf(text, size, "operations stay pending: %s%s", oldest, apart);
}

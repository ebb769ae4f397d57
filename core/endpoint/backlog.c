/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/backlog.h"

#include "core/message/ids.h"
#include "core/message/operations.h"
#include "core/recover/attempts.h"
#include "core/recover/parked.h"

/* As much as tells the kinds from each other. */
#define HEAD 32

typedef struct {
    wb_backlog *backlog;
    uint64_t now;
    size_t seen, limit;
} look;

int wb_backlog_kind(const void *data, size_t size)
{
    if (wb_parked_is_row(data, size))
        return WB_ROW_PARKED;
    if (wb_attempts_is_record(data, size))
        return WB_ROW_ATTEMPTS;
    return wb_operations_are_known(data, size) ? WB_ROW_OPERATIONS : WB_ROW_UNKNOWN;
}

static void take_parked(wb_backlog *b, const wb_pending *row)
{
    wb_parked parked = { 0 };
    (void)wb_parked_decode_head(row->operations, row->operations_size, &parked);
    if (!b->due)
        b->due = row->batch;
    if (parked.tries > b->tries) {
        b->tries = parked.tries;
        b->most_tried = row->batch;
    }
}

static int take_row(void *argument, const wb_pending *row)
{
    look *l = argument;
    wb_backlog *b = l->backlog;
    if (l->seen++ == l->limit) {
        b->is_cut = 1;
        return WB_OK;
    }
    int kind = wb_backlog_kind(row->operations, row->operations_size);
    b->rows[kind]++;
    b->of_future += kind == WB_ROW_OPERATIONS && row->batch > l->now;
    if (kind == WB_ROW_OPERATIONS && !b->oldest)
        b->oldest = row->batch;
    if (kind == WB_ROW_PARKED)
        take_parked(b, row);
    return WB_OK;
}

int wb_backlog_look(const wb_pipeline *p, wb_storage_session *storage, uint64_t before, size_t limit,
                    wb_backlog *ret_backlog, wb_error *error)
{
    *ret_backlog = (wb_backlog){ .is_cut = 0 };
    look l = { .backlog = ret_backlog, .now = wb_batch_number_at(wb_pipeline_now(p) + WB_SECOND),
               .limit = limit ? limit : SIZE_MAX };
    const wb_pending_filter filter = { .struct_size = sizeof filter, .before = before,
                                       .limit = limit ? limit + 1 : 0, .head = HEAD,
                                       .flags = limit ? WB_PENDING_PASS_EMPTY : 0 };
    if (!WB_HAS(p->persistence_ops, wb_persistence_ops, list_pending))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0, "this persistence cannot list pending operations");
    return p->persistence_ops->list_pending(storage, &filter, take_row, &l, error);
}

int wb_backlog_count_work(const wb_pipeline *p, wb_storage_session *storage, size_t *ret_count, wb_error *error)
{
    wb_backlog all;
    int r = wb_backlog_look(p, storage, UINT64_MAX, 0, &all, error);
    *ret_count = all.rows[WB_ROW_OPERATIONS] + all.rows[WB_ROW_PARKED] + all.rows[WB_ROW_UNKNOWN];
    return r;
}

int wb_backlog_count_written(const wb_pipeline *p, wb_storage_session *storage, size_t limit, int64_t *ret_count,
                             wb_error *error)
{
    const wb_written_ops *ops = WB_HAS(p->persistence_ops, wb_persistence_ops, written) ? p->persistence_ops->written : NULL;
    uint64_t count = 0;
    int is_installed = 0;
    *ret_count = -1;
    if (!ops || !WB_HAS(ops, wb_written_ops, count))
        return WB_OK;
    int r = ops->is_installed(storage, &is_installed, error);
    if (r != WB_OK || !is_installed)
        return r;
    r = ops->count(storage, limit, &count, error);
    *ret_count = (int64_t)count;
    return r;
}

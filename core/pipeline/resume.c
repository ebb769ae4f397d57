/* SPDX-License-Identifier: Apache-2.0
 *
 * Resuming: a duplicate whose first copy was committed but not (fully) dispatched. The
 * process that committed it may have died, or may be dispatching right now; a pending row
 * lives milliseconds, so a young one is given a moment before its operations are sent again.
 * Whoever sends them twice sends the same ids and bytes.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/pipeline/stages.h"

/* How young a row is given a moment: ten looks, a tenth of a second together. */
#define YOUNG (1 * WB_SECOND)
#define LOOKS 10
#define LOOK_EVERY (10 * WB_MILLISECOND)

typedef struct pending_row {
    uint64_t batch;
    wb_operation_group *groups;
    struct pending_row *next;
} pending_row;

typedef struct {
    wb_worker *worker;
    pending_row *rows;
    int young;
} loading;

static size_t collect_batches(const wb_worker *w, uint64_t *batches)
{
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_item *item = &w->held[i];
        size_t at = 0;
        if (item->state != WB_ITEM_DUPLICATE)
            continue;
        while (at < count && batches[at] != item->duplicate_of)
            at++;
        if (at == count)
            batches[count++] = item->duplicate_of;
    }
    return count;
}

/* In the order in which they were committed, whatever the order of the rows. */
static void add_row(loading *load, pending_row *row)
{
    pending_row **at = &load->rows;
    while (*at && (*at)->batch < row->batch)
        at = &(*at)->next;
    row->next = *at;
    *at = row;
}

static int visit(void *argument, const wb_pending *pending)
{
    loading *load = argument;
    wb_arena *arena = &load->worker->recovered;
    const char *bytes = wb_arena_copy(arena, pending->operations, pending->operations_size);
    pending_row *row = wb_arena_alloc(arena, sizeof *row);
    int failed;

    row->batch = pending->batch;
    row->groups = wb_operations_decode(bytes, pending->operations_size, arena, &failed);
    if (failed)
        return wb_error_set(&load->worker->error, WB_FATAL, WB_CAUSE_OTHER, 0,
                            "a pending row holds bytes this version cannot read");
    add_row(load, row);
    load->young |= pending->batch > wb_batch_number_at(wb_clock_wall() - YOUNG);
    return WB_OK;
}

static int load_rows(wb_worker *w, const uint64_t *batches, size_t count, loading *load)
{
    const wb_persistence_ops *ops = w->pipeline->persistence_ops;
    int looks = 0, r;
    do {
        *load = (loading){ w, NULL, 0 };
        wb_arena_reset(&w->recovered);
        r = ops->pending(w->storage, batches, count, visit, load, &w->error);
        if (r != WB_OK || !load->young)
            break;
        wb_clock_pause(LOOK_EVERY, &w->pipeline->stop);
    } while (++looks < LOOKS);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}

static void fill_window(wb_worker *w, const pending_row *rows)
{
    w->window_count = 0;
    for (; rows; rows = rows->next)
        for (wb_operation_group *group = rows->groups; group; group = group->next)
            for (wb_operation_node *node = group->operations.first; node; node = node->next)
                wb_window_add(w, &node->operation);
}

static wb_item *find_duplicate(wb_worker *w, const wb_operation_group *group)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = &w->held[i];
        if (item->state == WB_ITEM_DUPLICATE && item->incoming->id_size == group->cause_size &&
            memcmp(item->incoming->id, group->cause, group->cause_size) == 0)
            return item;
    }
    return NULL;
}

/* A refused operation is the failure of the message that caused it, if we hold it; otherwise
 * it stays pending for that message, or for the sweeper. */
static void blame(wb_worker *w, const wb_operation_group *group)
{
    char reason[1200];
    wb_item *item = find_duplicate(w, group);
    for (const wb_operation_node *node = group->operations.first; node; node = node->next) {
        if (!item || node->operation.result != WB_REJECT)
            continue;
        (void)snprintf(reason, sizeof reason, "could not dispatch to \"%s\": %s",
                       node->operation.destination, node->operation.reason ? node->operation.reason : "");
        wb_item_fail(w, item, WB_FAILURE_DISPATCH, reason, 1);
        return;
    }
}

static void conclude_row(wb_worker *w, const pending_row *row)
{
    size_t remaining = 0;
    wb_operations_encode_start(&w->encoded);
    for (const wb_operation_group *group = row->groups; group; group = group->next) {
        size_t undone = wb_operations_encode_group(&w->encoded, group->cause, group->cause_size,
                                                   &group->operations);
        if (undone)
            blame(w, group);
        remaining += undone;
    }
    if (remaining)
        wb_settle_add_mark(w, row->batch, w->encoded.data, w->encoded.size);
    else
        wb_settle_add_mark(w, row->batch, NULL, 0);
}

static void conclude(wb_worker *w, const pending_row *rows)
{
    for (; rows; rows = rows->next)
        conclude_row(w, rows);
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_DUPLICATE)
            w->held[i].state = WB_ITEM_DONE;
}

int wb_stage_resume(wb_worker *w)
{
    uint64_t batches[w->batch_size + 1];
    size_t count = collect_batches(w, batches);
    loading load;
    int r;

    if (!count)
        return WB_OK;
    if ((r = load_rows(w, batches, count, &load)) != WB_OK)
        return r;
    if (load.rows) {
        wb_log_event(WB_LOG_INFO, "resuming: committed operations were not dispatched",
                     { "endpoint", w->pipeline->endpoint });
        fill_window(w, load.rows);
        if ((r = wb_dispatch_window(w)) != WB_OK)
            return r;
    }
    conclude(w, load.rows);
    return WB_OK;
}

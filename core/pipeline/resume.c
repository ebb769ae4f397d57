/* SPDX-License-Identifier: Apache-2.0
 *
 * Resuming: a duplicate whose first copy was committed but not (fully) dispatched. The
 * process that committed it may have died, or may be dispatching right now; a pending row
 * lives milliseconds, so a young one is given a moment before its operations are sent again.
 * Whoever sends them twice sends the same ids and bytes. What another worker of this process is about is known
 * (underway.h): for that the duplicate waits, also where only the mark is missing, for marks come before acknowledgements.
 */
#include "config.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/follow.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/unconfirmed.h"
#include "core/pipeline/verdict.h"

/* How young a row is given a moment: ten looks, a tenth of a second together. */
#define YOUNG (1 * WB_SECOND)
#define LOOKS 10
#define LOOK_EVERY (10 * WB_MILLISECOND)
/* How long a duplicate waits before it looks again whether another worker is done. */
#define WAIT_FOR_OTHER (100 * WB_MILLISECOND)

typedef struct pending_row {
    uint64_t batch;
    wb_operation_group *groups;
    struct pending_row *next;
} pending_row;

typedef struct {
    wb_worker *worker;
    pending_row *rows;
    size_t found;
    int young;
    int others; /* had some of it in hand before it was read: what they did since is not in it */
} loading;

static int is_anothers(const wb_worker *w, uint64_t batch)
{
    return wb_underway_has(&w->pipeline->underway, w, batch);
}

static size_t collect_batches(const wb_worker *w, uint64_t *batches)
{
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_item *item = w->batch[i];
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

/* What a later version wrote stays for one that can read it: its sweeper dispatches it. The
 * messages are duplicates all the same, and done here. */
static void leave_unreadable(const wb_worker *w)
{
    wb_log_event(WB_LOG_WARNING, "a pending row holds bytes this version cannot read: left alone",
                 { "endpoint", w->pipeline->endpoint });
}

static int visit(void *argument, const wb_pending *pending)
{
    loading *load = argument;
    wb_worker *w = load->worker;
    wb_arena *arena = &w->recovered;
    const char *bytes = wb_arena_copy(arena, pending->operations, pending->operations_size);
    pending_row *row = wb_arena_alloc(arena, sizeof *row);
    int failed;

    load->found++;
    row->batch = pending->batch;
    row->groups = wb_operations_decode(bytes, pending->operations_size, arena, &failed);
    if (failed) {
        leave_unreadable(w);
        return WB_OK;
    }
    add_row(load, row);
    load->young |= pending->batch > wb_batch_number_at(wb_pipeline_now(w->pipeline) - YOUNG);
    return WB_OK;
}

static int are_others_about(const wb_worker *w, const uint64_t *batches, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_anothers(w, batches[i]))
            return 1;
    return 0;
}

static int load_rows(wb_worker *w, const uint64_t *batches, size_t count, loading *load, wb_error *error)
{
    const wb_persistence_ops *ops = w->pipeline->persistence_ops;
    int looks = 0, r;
    do {
        *load = (loading){ .worker = w, .others = are_others_about(w, batches, count) };
        wb_arena_reset(&w->recovered);
        r = ops->pending(w->storage, batches, count, visit, load, error);
        if (r != WB_OK || !load->young || load->others)
            break;
        wb_clock_pause(LOOK_EVERY, &w->pipeline->stop);
    } while (++looks < LOOKS);
    r = wb_distrust(w, r, error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}

/* It keeps its claim's answer no longer: it asks anew. */
static void wait_for_other(wb_worker *w, uint64_t batch)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state != WB_ITEM_DUPLICATE || item->duplicate_of != batch)
            continue;
        wb_item_rerun(item);
        item->paused_until = wb_clock_monotonic() + WAIT_FOR_OTHER;
    }
}

/* What others have underway is theirs. */
static void leave_to_others(wb_worker *w, loading *load)
{
    for (pending_row **at = &load->rows; *at;) {
        if (load->others || is_anothers(w, (*at)->batch)) {
            wait_for_other(w, (*at)->batch);
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
}

static wb_item *find_duplicate(const wb_worker *w, const wb_operation_group *group)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state == WB_ITEM_DUPLICATE && item->id_size == group->cause_size &&
            memcmp(item->id, group->cause, group->cause_size) == 0)
            return item;
    }
    return NULL;
}

/* A refused operation is the failure of the message that caused it, if we hold it; otherwise
 * it stays pending for that message, or for the sweeper. What a session sent is nothing that its
 * control message could fail for: the sweeper parks it. */
static void blame(wb_worker *w, const wb_operation_group *group)
{
    wb_item *item = find_duplicate(w, group);
    const wb_operation *refused = wb_find_refused(&group->operations);
    if (item && refused && !item->is_control)
        wb_verdict_was_refused(w, item, refused);
}

/* The rows shrink to what remains, usually nothing. Also when the connection died in between:
 * what was confirmed need not go out again. */
static void keep_remains(wb_worker *w, const pending_row *rows)
{
    for (; rows; rows = rows->next)
        wb_marks_add(w, wb_groups_mark(rows->batch, rows->groups, &w->encoded));
}

/* It came back from the error queue, and what it sent is no longer in its batch's row: parked,
 * perhaps. Somebody has mended something. */
static void ask_for_parked(wb_worker *w, const wb_item *item)
{
    if (WB_HEADERS_FIND(item->incoming->headers, item->incoming->header_count, WB_HEADER_FAILED_QUEUE))
        atomic_store(&w->pipeline->sweep_parked, 1);
}

/* What holds an operation that is not confirmed waits; others need not. */
static void set_aside(wb_worker *w, const loading *load, const wb_error *error)
{
    for (const pending_row *row = load->rows; row; row = row->next)
        for (const wb_operation_group *group = row->groups; group; group = group->next) {
            wb_item *item = find_duplicate(w, group);
            if (item && wb_unconfirmed_find(&group->operations)) {
                wb_item_rerun(item);
                wb_unconfirmed_set_aside(w, item, error);
            }
        }
}

static void conclude(wb_worker *w, const loading *load)
{
    for (const pending_row *row = load->rows; row; row = row->next)
        for (const wb_operation_group *group = row->groups; group; group = group->next)
            blame(w, group);
    for (size_t i = 0; i < w->batch_size; i++) {
        if (w->batch[i]->state != WB_ITEM_DUPLICATE)
            continue;
        if (!load->found)
            ask_for_parked(w, w->batch[i]);
        int has_more = wb_follow_duplicate(w, w->batch[i]); /* it leaves with the batch's */
        wb_item_change(w->batch[i], has_more ? WB_ITEM_COMMITTED : WB_ITEM_SETTLED);
    }
}

/* Of what was set aside a line said why; it need not be told of each try. */
static int is_news(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_DUPLICATE && !w->batch[i]->pauses)
            return 1;
    return 0;
}

static int send_rows(wb_worker *w, const pending_row *rows, wb_error *error)
{
    if (!rows)
        return WB_OK;
    if (is_news(w))
        wb_log_event(WB_LOG_INFO, "resuming: committed operations were not dispatched",
                     { "endpoint", w->pipeline->endpoint },
                     { "reason", "they were refused, or whoever had them in hand has ended" });
    wb_window_clear(&w->window, &w->arena);
    for (const pending_row *row = rows; row; row = row->next)
        wb_window_add_groups(&w->window, row->groups);
    int r = wb_window_send(&w->window, &w->outlet, error);
    if (w->outlet.storage_failed)
        return wb_distrust_store(w, r, error);
    w->transport_broken |= r == WB_NOT_CONNECTED;
    keep_remains(w, rows);
    return r;
}

int wb_stage_resume(wb_worker *w, wb_error *error)
{
    uint64_t batches[w->batch_size + 1];
    size_t count = collect_batches(w, batches);
    loading load = { .worker = w };
    int r;

    if (count && (r = load_rows(w, batches, count, &load, error)) != WB_OK)
        return r;
    leave_to_others(w, &load);
    r = send_rows(w, load.rows, error);
    if (r != WB_OK && r != WB_IN_DOUBT)
        return r;
    set_aside(w, &load, error);
    conclude(w, &load);
    return WB_OK;
}

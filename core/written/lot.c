/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/written/lot.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/message/text.h"
#include "core/recover/parked.h"
#include "core/written/message.h"

#define NONE WB_WRITTEN_LOT_MAX
/* The result of an operation that no transport was given. */
#define UNTRIED (-1)
/* Before a refused message is tried again: doubled with each try, at most an hour. */
#define REFUSED_PAUSE (1 * WB_SECOND)
/* A privilege that is missing, an error queue that refuses. */
#define PRIVILEGE_PAUSE (30 * WB_SECOND)
#define ERROR_QUEUE_PAUSE (60 * WB_SECOND)

void wb_written_lot_init(wb_written_lot *lot, wb_pipeline *pipeline, unsigned retries)
{
    memset(lot, 0, sizeof *lot);
    lot->pipeline = pipeline;
    lot->origin = wb_written_origin(&pipeline->origin);
    lot->retries = retries;
    lot->entries = wb_alloc_zero(WB_WRITTEN_LOT_MAX, sizeof *lot->entries);
    lot->removed = wb_alloc_zero(WB_WRITTEN_LOT_MAX, sizeof *lot->removed);
    lot->rests = wb_alloc_zero(WB_WRITTEN_LOT_MAX, sizeof *lot->rests);
    wb_arena_init(&lot->arena, 256 * 1024);
}

void wb_written_lot_free(wb_written_lot *lot)
{
    free(lot->entries);
    free(lot->removed);
    free(lot->rests);
    wb_window_free(&lot->window);
    wb_arena_free(&lot->arena);
}

/* ---- fetch --------------------------------------------------------------------------- */

static void make_copy(wb_written_lot *lot, wb_written_entry *entry)
{
    entry->copy = wb_written_copy(lot->pipeline, entry->failed, &lot->arena);
    if (entry->copy)
        entry->copy->result = UNTRIED;
}

static void make_unusable(wb_written_lot *lot, wb_written_entry *entry, const wb_written *row, const wb_error *error)
{
    entry->failed = wb_written_unusable(row, error->text, &lot->arena);
    make_copy(lot, entry);
}

static int take(void *argument, const wb_written *row)
{
    wb_written_lot *lot = argument;
    wb_error error = { 0 };
    lot->look.has_keys |= row->key.size > 0;
    lot->look.count++;
    lot->look.size += row->headers.size + row->body.size;
    if (lot->count == WB_WRITTEN_LOT_MAX || (lot->look.behind && row->key.size && !wb_bug("written_keys_behind")))
        return WB_OK;
    lot->look.highest = row->number;
    wb_written_entry *entry = &lot->entries[lot->count++];
    *entry = (wb_written_entry){ .number = row->number, .tries = row->tries, .before = NONE };
    if (row->key.size)
        entry->key = (wb_written_text){ wb_arena_copy(&lot->arena, row->key.data, row->key.size), row->key.size };
    entry->operation = wb_written_message(&lot->origin, row, &lot->arena, &error);
    if (entry->operation)
        entry->operation->result = UNTRIED;
    else
        make_unusable(lot, entry, row, &error);
    return WB_OK;
}

static int compare_keys(const void *left, const void *right)
{
    const wb_written_entry *a = *(wb_written_entry *const *)left, *b = *(wb_written_entry *const *)right;
    size_t both = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = both ? memcmp(a->key.data, b->key.data, both) : 0;
    if (!order)
        order = (a->key.size > b->key.size) - (a->key.size < b->key.size);
    return order ? order : (a > b) - (a < b);
}

static int is_same_key(const wb_written_entry *a, const wb_written_entry *b)
{
    return a->key.size && a->key.size == b->key.size && memcmp(a->key.data, b->key.data, a->key.size) == 0;
}

/* Of each the one before with its key. */
static void link_keys(wb_written_lot *lot)
{
    wb_written_entry **sorted = wb_alloc((lot->count + 1) * sizeof(wb_written_entry *));
    for (size_t i = 0; i < lot->count; i++)
        sorted[i] = &lot->entries[i];
    qsort(sorted, lot->count, sizeof(wb_written_entry *), compare_keys);
    for (size_t i = 1; i < lot->count && !wb_bug("written_keys_ignored"); i++)
        if (is_same_key(sorted[i - 1], sorted[i]))
            sorted[i]->before = (size_t)(sorted[i - 1] - lot->entries);
    free(sorted);
}

int wb_written_lot_fetch(wb_written_lot *lot, wb_storage_session *storage, uint64_t behind, int wants_last,
                         int *ret_has_turn, wb_error *error)
{
    wb_written_fetch fetch = { .struct_size = sizeof fetch, .limit = WB_WRITTEN_LOT_MAX, .form = WB_WRITTEN_FORM,
                               .behind = behind, .wants_last = wants_last };
    lot->count = lot->removed_count = lot->rest_count = lot->done_count = 0;
    lot->look = (wb_written_look){ .behind = behind };
    wb_arena_reset(&lot->arena);
    int r = lot->pipeline->persistence_ops->written->fetch(storage, &fetch, take, lot, error);
    *ret_has_turn = fetch.has_turn;
    lot->look.last = fetch.last;
    if (r == WB_OK && lot->count)
        link_keys(lot);
    return r;
}

/* ---- dispatch -------------------------------------------------------------------------- */

static int is_untried(const wb_operation *operation)
{
    return operation && operation->result == UNTRIED;
}

static int is_refused(const wb_operation *operation)
{
    return operation && operation->result == WB_REJECT;
}

static int is_out(const wb_written_entry *entry)
{
    return (entry->operation && entry->operation->result == WB_OK) || (entry->copy && entry->copy->result == WB_OK);
}

static wb_delayed_key destination_of(const wb_operation *operation)
{
    return (wb_delayed_key){ .destination = operation->destination, .destination_size = strlen(operation->destination) };
}

/* Silences know destinations as long as a name may be. */
static void look_for_silence(wb_written_lot *lot, wb_written_entry *entry, int64_t now)
{
    const wb_delayed_key key = destination_of(entry->operation);
    if (!wb_silences_find(&lot->silences, &key))
        return;
    entry->is_held = wb_silences_hold(&lot->silences, &key, now);
    entry->is_probe = !entry->is_held;
}

static void hold_silent(wb_written_lot *lot)
{
    int64_t now = wb_clock_monotonic();
    wb_silences_start(&lot->silences);
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].operation)
            look_for_silence(lot, &lot->entries[i], now);
}

static int may_go(const wb_written_lot *lot, const wb_written_entry *entry)
{
    return entry->operation && entry->operation->result == UNTRIED && !entry->is_held &&
           (entry->before == NONE || is_out(&lot->entries[entry->before]));
}

static void fill_window(wb_written_lot *lot, int is_probe)
{
    wb_window_clear(&lot->window, &lot->arena);
    for (size_t i = 0; i < lot->count; i++)
        if (may_go(lot, &lot->entries[i]) && lot->entries[i].is_probe == is_probe)
            wb_window_add(&lot->window, lot->entries[i].operation);
}

/* The session lives, so it is the destination that is silent. */
static void listen(wb_written_lot *lot)
{
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < lot->count; i++) {
        const wb_operation *operation = lot->entries[i].operation;
        if (!operation || operation->result == UNTRIED)
            continue;
        const wb_delayed_key key = destination_of(operation);
        if (operation->result == WB_OK || operation->result == WB_REJECT)
            (void)wb_silences_forget(&lot->silences, &key);
        else if (wb_silences_note(&lot->silences, &key, now))
            wb_log_event(WB_LOG_WARNING, "a destination confirms nothing: what was written for it waits",
                         { "endpoint", lot->pipeline->endpoint }, { "destination", operation->destination });
    }
}

static int send_windows(wb_written_lot *lot, wb_outlet *outlet, wb_error *error)
{
    int r = WB_OK;
    for (fill_window(lot, 0); r == WB_OK && lot->window.count; fill_window(lot, 0)) {
        wb_crash_point("written_before_dispatch");
        wb_crash_scope("written_");
        r = wb_window_send(&lot->window, outlet, error);
        wb_crash_scope("");
        wb_crash_point("written_after_dispatch");
        if (lot->pipeline->stop || wb_clock_monotonic() >= outlet->until)
            break;
    }
    return r;
}

static int is_refused_for_good(const wb_written_lot *lot, const wb_written_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation && operation->result == WB_REJECT && operation->cause != WB_CAUSE_REFUSED &&
           (operation->cause == WB_CAUSE_UNROUTABLE || operation->cause == WB_CAUSE_TOO_LARGE ||
            entry->tries >= lot->retries);
}

static void log_moved(const wb_written_lot *lot, const wb_written_entry *entry)
{
    char type[WB_TYPE_SIZE];
    wb_tally_add(&lot->pipeline->tally, WB_TALLY_MOVED, 1);
    wb_log_event(WB_LOG_ERROR, "what was written in SQL is moved to the error queue",
                 { "endpoint", lot->pipeline->endpoint },
                 { "message_id", entry->operation ? entry->operation->id : entry->copy->id },
                 { "type", wb_headers_type(entry->copy->headers, entry->copy->header_count, type) },
                 { "destination", entry->operation ? entry->operation->destination : NULL },
                 { "error_queue", entry->copy->destination },
                 { "reason", entry->failed->reason });
}

static void make_copies(wb_written_lot *lot)
{
    for (size_t i = 0; i < lot->count; i++) {
        wb_written_entry *entry = &lot->entries[i];
        if (entry->failed || !is_refused_for_good(lot, entry))
            continue;
        entry->failed = wb_written_refused(entry->operation, &lot->arena);
        make_copy(lot, entry);
    }
}

/* What stands behind another with its key goes when that is out. */
static size_t fill_with_copies(wb_written_lot *lot)
{
    wb_window_clear(&lot->window, &lot->arena);
    for (size_t i = 0; i < lot->count; i++) {
        const wb_written_entry *entry = &lot->entries[i];
        if (is_untried(entry->copy) && (entry->before == NONE || is_out(&lot->entries[entry->before])))
            wb_window_add(&lot->window, entry->copy);
    }
    return lot->window.count;
}

static int can_be_cut(const wb_written_entry *entry)
{
    return is_refused(entry->copy) && entry->failed->trim < WB_TRIM_MAX && entry->copy->cause != WB_CAUSE_UNROUTABLE &&
           entry->copy->cause != WB_CAUSE_SERVER && entry->copy->cause != WB_CAUSE_REFUSED;
}

/* Rather a copy that says less than a key that stands still. */
static void cut_refused(wb_written_lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        if (can_be_cut(&lot->entries[i])) {
            lot->entries[i].failed->trim++;
            make_copy(lot, &lot->entries[i]);
        }
}

static int move_refused(wb_written_lot *lot, wb_outlet *outlet, wb_error *error)
{
    int r = WB_OK;
    make_copies(lot);
    while (r == WB_OK && fill_with_copies(lot)) {
        wb_crash_point("written_before_move");
        r = wb_window_send(&lot->window, outlet, error);
        wb_crash_point("written_after_move");
        if (r == WB_OK)
            cut_refused(lot);
    }
    lot->is_error_queue_silent = r == WB_IN_DOUBT;
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].copy && lot->entries[i].copy->result == WB_OK)
            log_moved(lot, &lot->entries[i]);
    return r;
}

/* ---- what became of each ----------------------------------------------------------------- */

/* A database may take nothing else, and a broker cuts its texts inside of a character. */
static const char *text_of(wb_written_lot *lot, const char *reason)
{
    size_t size = reason ? strlen(reason) : 0;
    return reason ? wb_text_mend(wb_arena_copy(&lot->arena, reason, size), size) : NULL;
}

static wb_written_rest rest_of(const wb_written_entry *entry, int64_t pause, int is_tried, const char *reason)
{
    return (wb_written_rest){ .struct_size = sizeof(wb_written_rest),
                              .number = entry->number,
                              .pause = pause > WB_SECOND ? pause : WB_SECOND,
                              .is_tried = is_tried,
                              .reason = reason };
}

static wb_written_rest rest_of_refused(const wb_written_entry *entry)
{
    const wb_operation *operation = entry->operation;
    if (is_refused(entry->copy))
        return rest_of(entry, ERROR_QUEUE_PAUSE, 1, entry->failed->reason);
    if (!operation)
        return rest_of(entry, ERROR_QUEUE_PAUSE, 1, entry->failed->reason);
    if (operation->cause == WB_CAUSE_REFUSED)
        return rest_of(entry, PRIVILEGE_PAUSE, 1, operation->reason);
    return rest_of(entry, wb_parked_pause(REFUSED_PAUSE, (uint32_t)entry->tries + 1), 1, operation->reason);
}

/* Nobody knows whether the broker has it, and the session lives: its destination is silent. */
static int64_t silence_of(wb_written_lot *lot, const wb_written_entry *entry)
{
    if (!entry->operation || (!entry->is_held && (entry->operation->result == UNTRIED || is_refused(entry->operation))))
        return 0;
    const wb_delayed_key key = destination_of(entry->operation);
    const wb_silence *silence = wb_silences_find(&lot->silences, &key);
    int64_t left = silence ? silence->until - wb_clock_monotonic() : 0;
    return left > 0 ? left : 0;
}

static int is_in_doubt(const wb_operation *operation)
{
    return operation && operation->result == WB_IN_DOUBT;
}

static int stays(const wb_written_entry *entry)
{
    return is_refused(entry->copy) || (is_refused(entry->operation) && !is_untried(entry->copy)) ||
           (!entry->operation && !entry->copy);
}

static void log_stays(const wb_written_lot *lot, const wb_written_entry *entry, const wb_written_rest *rest)
{
    char type[WB_TYPE_SIZE];
    const wb_operation *operation = entry->operation;
    wb_log_event(WB_LOG_WARNING, "what was written in SQL cannot be sent: it is tried again later",
                 { "endpoint", lot->pipeline->endpoint },
                 { "message_id", operation ? operation->id : NULL },
                 { "type", operation ? wb_headers_type(operation->headers, operation->header_count, type) : NULL },
                 { "destination", entry->operation ? entry->operation->destination : NULL },
                 { "reason", rest->reason });
}

static void sort_out(wb_written_lot *lot, wb_written_entry *entry)
{
    int64_t silent = silence_of(lot, entry);
    if (is_out(entry)) {
        lot->removed[lot->removed_count++] = entry->number;
        lot->done_count++;
        return;
    }
    wb_written_rest *rest = &lot->rests[lot->rest_count];
    if (silent)
        *rest = rest_of(entry, silent, 0, "no confirmation came in time");
    else if (lot->is_error_queue_silent && is_in_doubt(entry->copy))
        *rest = rest_of(entry, ERROR_QUEUE_PAUSE, 0, "the error queue confirms nothing");
    else if (stays(entry))
        *rest = rest_of_refused(entry);
    else
        return; /* not tried yet, or it is not known what became of it: at once */
    rest->reason = text_of(lot, rest->reason);
    lot->rest_count++;
    lot->done_count++;
    if (!silent)
        log_stays(lot, entry, rest);
}

/* None is there twice: what is done is told. */
static void sort_out_all(wb_written_lot *lot, int is_probe)
{
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].is_probe == is_probe)
            sort_out(lot, &lot->entries[i]);
}

int wb_written_lot_has_probes(const wb_written_lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].is_probe && may_go(lot, &lot->entries[i]))
            return 1;
    return 0;
}

int wb_written_lot_probe(wb_written_lot *lot, wb_outlet *outlet, wb_error *error)
{
    fill_window(lot, 1);
    int r = wb_window_send(&lot->window, outlet, error);
    if (r == WB_OK || r == WB_IN_DOUBT)
        listen(lot);
    sort_out_all(lot, 1);
    return r;
}

int wb_written_lot_dispatch(wb_written_lot *lot, wb_outlet *outlet, wb_error *error)
{
    lot->is_error_queue_silent = 0;
    hold_silent(lot);
    int r = send_windows(lot, outlet, error);
    if (r == WB_OK || r == WB_IN_DOUBT)
        listen(lot);
    if (r == WB_OK)
        r = move_refused(lot, outlet, error);
    sort_out_all(lot, 0);
    return r;
}

static int tell(wb_written_lot *lot, wb_storage_session *storage, size_t removed_count, size_t rest_count, wb_error *error)
{
    return lot->pipeline->persistence_ops->written->settle(storage, lot->removed, removed_count, lot->rests, rest_count, error);
}

/* The store does not take it, and would not the next time: one row's reason is not to keep all others. */
static int tell_apart(wb_written_lot *lot, wb_storage_session *storage, wb_error *error)
{
    int r = tell(lot, storage, lot->removed_count, 0, error);
    if (r != WB_OK)
        return r;
    lot->removed_count = 0;
    for (size_t i = 0; i < lot->rest_count; i++)
        lot->rests[i].reason = NULL;
    return tell(lot, storage, 0, lot->rest_count, error);
}

int wb_written_lot_settle(wb_written_lot *lot, wb_storage_session *storage, wb_error *error)
{
    size_t removed = lot->removed_count;
    if (removed)
        wb_crash_point("written_before_settle");
    int r = tell(lot, storage, lot->removed_count, lot->rest_count, error);
    if ((r == WB_FATAL || r == WB_REJECT) && lot->rest_count)
        r = tell_apart(lot, storage, error);
    if (r != WB_OK)
        return r;
    if (removed)
        wb_crash_point("written_after_settle");
    lot->removed_count = lot->rest_count = 0;
    return WB_OK;
}

int wb_written_lot_is_open(const wb_written_lot *lot)
{
    return lot->removed_count || lot->rest_count;
}

int wb_written_lot_has_left(const wb_written_lot *lot)
{
    return lot->done_count < lot->count;
}

/* One with a key may wait for what was moved just now. */
int wb_written_lot_is_followed(const wb_written_lot *lot)
{
    for (size_t i = 0; i < lot->count; i++)
        if (is_untried(lot->entries[i].operation) && !lot->entries[i].is_held &&
            lot->entries[i].before != NONE && is_out(&lot->entries[lot->entries[i].before]))
            return 1;
    return lot->count == WB_WRITTEN_LOT_MAX;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/delayed/lot.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/recover/recoverability.h"

/* A window takes ten seconds, and may be late by a few: what comes later than this would be in it when the
 * lease ends. */
#define LATEST_ANSWER (WB_LOT_LEASE / 2)

static void init_keys(wb_lot_keys *list)
{
    list->keys = wb_alloc_zero(WB_LOT_MAX, sizeof *list->keys);
    wb_arena_init(&list->arena, 32 * 1024);
}

static void free_keys(wb_lot_keys *list)
{
    free(list->keys);
    wb_arena_free(&list->arena);
}

void wb_lot_init(wb_lot *lot, wb_pipeline *pipeline, const wb_lot_policy *policy)
{
    memset(lot, 0, sizeof *lot);
    lot->pipeline = pipeline;
    lot->policy = policy;
    lot->entries = wb_alloc_zero(WB_LOT_MAX, sizeof *lot->entries);
    lot->keys = wb_alloc_zero(WB_LOT_MAX, sizeof *lot->keys);
    init_keys(&lot->riding);
    init_keys(&lot->leaving);
    init_keys(&lot->recalled);
    wb_arena_init(&lot->arena, 256 * 1024);
}

void wb_lot_free(wb_lot *lot)
{
    free(lot->entries);
    free(lot->keys);
    free_keys(&lot->riding);
    free_keys(&lot->leaving);
    free_keys(&lot->recalled);
    wb_window_free(&lot->window);
    wb_arena_free(&lot->arena);
}

static size_t limit_of(const wb_lot *lot)
{
    return wb_bug("lots_of_one") ? 1 : lot->policy->limit ? lot->policy->limit : WB_LOT_MAX;
}

int wb_lot_is_full(const wb_lot *lot)
{
    return lot->count == limit_of(lot);
}

/* ---- fetch ------------------------------------------------------------------------- */

static wb_operation *decode(wb_lot *lot, const wb_delayed *message)
{
    const char *bytes = wb_arena_copy(&lot->arena, message->operation, message->operation_size);
    int failed;
    wb_operation_group *group = wb_operations_decode(bytes, message->operation_size, &lot->arena, &failed);
    if (failed || !group || !group->operations.first)
        return NULL;
    group->operations.first->operation.result = WB_LOT_UNTRIED;
    return &group->operations.first->operation;
}

static wb_delayed_key key_of(const wb_delayed *message)
{
    return (wb_delayed_key){ .destination = message->destination,
                             .destination_size = message->destination_size,
                             .id = message->id,
                             .id_size = message->id_size,
                             .retries = message->retries,
                             .place = WB_HAS(message, wb_delayed, place) ? message->place : 0 };
}

static int take(void *argument, const wb_delayed *message)
{
    wb_lot *lot = argument;
    if (wb_lot_is_full(lot))
        return WB_OK;
    wb_lot_entry *entry = &lot->entries[lot->count++];
    *entry = (wb_lot_entry){
        .key = key_of(message),
        .failures = message->failures,
        .due = message->due,
        .operation = decode(lot, message),
    };
    entry->key.destination = wb_arena_copy(&lot->arena, message->destination, message->destination_size);
    entry->key.id = wb_arena_copy(&lot->arena, message->id, message->id_size);
    return WB_OK;
}

static wb_delayed_fetch make_fetch(wb_lot *lot)
{
    lot->asked = wb_clock_monotonic();
    return (wb_delayed_fetch){ .struct_size = sizeof(wb_delayed_fetch),
                               .at = wb_bug("due_by_host") ? wb_clock_wall() : 0,
                               .limit = limit_of(lot),
                               .owner = lot->policy->owner,
                               .lease = wb_bug("no_lease") ? 10 * WB_MILLISECOND : WB_LOT_LEASE };
}

static int begin_fetch(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    const wb_delayed_fetch fetch = make_fetch(lot);
    const wb_lot_keys empty = lot->leaving;
    lot->leaving = lot->riding;
    lot->riding = empty;
    if (lot->leaving.count)
        wb_crash_point("delayed_before_remove");
    int r = lot->pipeline->persistence_ops->delayed->begin_fetch(storage, lot->leaving.keys, lot->leaving.count,
                                                                 &fetch, error);
    lot->has_begun = r == WB_OK;
    return r;
}

static int end_fetch(wb_lot *lot, wb_storage_session *storage, wb_delayed_fn visit, wb_error *error)
{
    lot->has_begun = 0;
    int r = lot->pipeline->persistence_ops->delayed->end_fetch(storage, visit, lot, error);
    if (r != WB_OK)
        return r;
    if (lot->leaving.count)
        wb_crash_point("delayed_after_remove");
    lot->leaving.count = 0;
    return WB_OK;
}

static int fetch_lot(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    int r = WB_OK;
    if (!lot->has_begun && !lot->riding.count) {
        const wb_delayed_fetch fetch = make_fetch(lot);
        return lot->pipeline->persistence_ops->delayed->fetch(storage, &fetch, take, lot, error);
    }
    if (!lot->has_begun)
        r = begin_fetch(lot, storage, error);
    return r == WB_OK ? end_fetch(lot, storage, take, error) : r;
}

int wb_lot_fetch(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    lot->count = lot->refused = 0;
    lot->is_stuck = 0;
    wb_arena_reset(&lot->arena);
    int r = fetch_lot(lot, storage, error);
    if (r != WB_OK || !lot->count || wb_clock_monotonic() - lot->asked <= LATEST_ANSWER)
        return r;
    r = wb_lot_give_back(lot, storage, error);
    lot->count = 0;
    return r;
}

int wb_lot_begin_next(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    if (!lot->is_flowing || !wb_lot_is_full(lot) || lot->pipeline->stop)
        return wb_lot_settle(lot, storage, error);
    int r = begin_fetch(lot, storage, error);
    if (r == WB_OK)
        wb_crash_point("delayed_begun");
    return r;
}

/* ---- recall ------------------------------------------------------------------------ */

void wb_lot_keep(wb_lot_keys *list, const wb_delayed_key *key)
{
    if (list->count == WB_LOT_MAX)
        return;
    wb_delayed_key *kept = &list->keys[list->count++];
    *kept = *key;
    kept->destination = wb_arena_copy(&list->arena, key->destination, key->destination_size);
    kept->id = wb_arena_copy(&list->arena, key->id, key->id_size);
}

void wb_lot_forget(wb_lot_keys *list)
{
    list->count = 0;
    wb_arena_reset(&list->arena);
}

static int keep(void *argument, const wb_delayed *message)
{
    wb_lot *lot = argument;
    const wb_delayed_key key = key_of(message);
    wb_lot_keep(&lot->recalled, &key);
    return WB_OK;
}

int wb_lot_recall(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    if (!lot->has_begun || wb_bug("begun_forgotten"))
        return WB_OK;
    wb_lot_forget(&lot->recalled);
    int r = end_fetch(lot, storage, keep, error);
    return r == WB_OK && lot->recalled.count
               ? lot->pipeline->persistence_ops->delayed->release(storage, lot->policy->owner, lot->recalled.keys,
                                                                  lot->recalled.count, 0, error)
               : r;
}

/* ---- dispatch ---------------------------------------------------------------------- */

/* A further failure of what is partly sent cannot be counted: that would give it back as if it had not been. */
static int is_refused_for_good(const wb_lot *lot, const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation && operation->result == WB_REJECT && !wb_bug("drop_refused") &&
           (operation->cause == WB_CAUSE_UNROUTABLE || operation->cause == WB_CAUSE_TOO_LARGE ||
            entry->failures >= lot->policy->retries || operation->flags & WB_OPERATION_PARTLY_SENT) &&
           operation->cause != WB_CAUSE_REFUSED; /* a privilege is somebody else's to grant */
}

/* A retry of a failed message goes to where this one was to go. */
static wb_operation *make_copy(wb_lot *lot, const wb_operation *operation)
{
    wb_pipeline *p = lot->pipeline;
    char reason[1200];
    wb_operation_list list = { 0 };
    wb_describe_refusal(operation, reason, sizeof reason);
    const wb_incoming incoming = wb_recover_incoming(operation);
    const wb_failure failure = { .kind = WB_FAILURE_DISPATCH, .reason = reason, .attempts = 1 };
    const wb_failed_message message = {
        .incoming = &incoming,
        .failure = &failure,
        .failed_queue = operation->kind == WB_OPERATION_SEND ? operation->destination : NULL,
    };
    wb_operation *copy = wb_recover_error_operation(&p->recoverability, &p->origin, &message, &lot->arena, &list);
    copy->result = WB_LOT_UNTRIED;
    return copy;
}

static void log_moved(const wb_lot *lot, const wb_lot_entry *entry)
{
    char type[WB_TYPE_SIZE];
    wb_tally_add(&lot->pipeline->tally, WB_TALLY_MOVED, 1);
    wb_log_event(WB_LOG_ERROR, "delayed message moved to the error queue",
                 { "endpoint", lot->pipeline->endpoint }, { "message_id", entry->operation->id },
                 { "type", wb_headers_type(entry->operation->headers, entry->operation->header_count, type) },
                 { "destination", entry->operation->destination },
                 { "error_queue", lot->pipeline->recoverability.error_queue },
                 { "reason", entry->operation->reason });
}

static int move_refused(wb_lot *lot, wb_outlet *outlet, wb_error *error)
{
    wb_window_clear(&lot->window, &lot->arena);
    for (size_t i = 0; i < lot->count; i++) {
        wb_lot_entry *entry = &lot->entries[i];
        if (!is_refused_for_good(lot, entry))
            continue;
        entry->copy = make_copy(lot, entry->operation);
        lot->refused++;
        wb_window_add(&lot->window, entry->copy);
    }
    if (lot->refused)
        wb_crash_point("delayed_before_move");
    int r = wb_window_send(&lot->window, outlet, error);
    if (lot->refused)
        wb_crash_point("delayed_after_move");
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].copy && lot->entries[i].copy->result == WB_OK)
            log_moved(lot, &lot->entries[i]);
    return r;
}

/* What a silent destination is to get waits, and keeps nobody else. */
static void fill_window(wb_lot *lot)
{
    int64_t now = wb_clock_monotonic();
    wb_silences_start(&lot->silences);
    wb_window_clear(&lot->window, &lot->arena);
    for (size_t i = 0; i < lot->count; i++) {
        wb_lot_entry *entry = &lot->entries[i];
        if (!entry->operation)
            continue;
        entry->is_held = wb_silences_hold(&lot->silences, &entry->key, now);
        if (!entry->is_held)
            wb_window_add(&lot->window, entry->operation);
    }
}

static int send_window(wb_lot *lot, wb_outlet *outlet, wb_error *error)
{
    wb_crash_point("delayed_before_dispatch");
    wb_crash_scope("delayed_");
    int r = wb_window_send(&lot->window, outlet, error);
    wb_crash_scope("");
    wb_crash_point("delayed_after_dispatch");
    return r;
}

static void tell_silence(const wb_lot *lot, const wb_lot_entry *entry, int level, const char *what)
{
    wb_log_event(level, what, { "endpoint", lot->pipeline->endpoint },
                 { "destination", entry->operation->destination });
}

/* By the clock that knows best when something is due; nobody else counts this in the endpoint's numbers. */
static void tally_sent(wb_lot *lot)
{
    const int64_t now = wb_pipeline_due_now(lot->pipeline);
    for (size_t i = 0; i < lot->count; i++)
        if (lot->entries[i].operation && lot->entries[i].operation->result == WB_OK)
            wb_tally_observe(&lot->pipeline->tally, WB_HISTOGRAM_LATENESS, now - lot->entries[i].due);
}

/* The session lives, so it is the destination that is silent. */
static void listen(wb_lot *lot)
{
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < lot->count; i++) {
        const wb_lot_entry *entry = &lot->entries[i];
        int result = entry->operation && !entry->is_held ? entry->operation->result : WB_LOT_UNTRIED;
        if (result == WB_LOT_UNTRIED)
            continue;
        if (result != WB_OK && result != WB_REJECT) {
            if (wb_silences_note(&lot->silences, &entry->key, now))
                tell_silence(lot, entry, WB_LOG_WARNING,
                             "a destination confirms nothing: what is due for it waits");
        } else if (lot->silences.count && wb_silences_forget(&lot->silences, &entry->key)) {
            tell_silence(lot, entry, WB_LOG_INFO, "a destination confirms again");
        }
    }
}

int wb_lot_dispatch(wb_lot *lot, wb_outlet *outlet, wb_error *error)
{
    fill_window(lot);
    int r = send_window(lot, outlet, error);
    if (r != WB_OK && r != WB_IN_DOUBT)
        return r;
    tally_sent(lot);
    listen(lot);
    int is_late = outlet->until && wb_clock_monotonic() >= outlet->until;
    return is_late ? r : move_refused(lot, outlet, error);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/delayed/lot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/recover/recoverability.h"

/* A privilege that is missing; an error queue that refuses; what cannot be read here. */
#define PRIVILEGE_PAUSE (30 * WB_SECOND)
#define ERROR_QUEUE_PAUSE (60 * WB_SECOND)
#define UNREADABLE_PAUSE (3600 * WB_SECOND)
/* What was sent and cannot be removed: so long it is tried, a window of the broker and this are within a lease. */
#define REMOVE_TRIES (5 * WB_SECOND)
#define REMOVE_PAUSE (50 * WB_MILLISECOND)
/* The result of an operation that no transport was given. */
#define UNTRIED (-1)

void wb_lot_init(wb_lot *lot, wb_pipeline *pipeline, const wb_lot_policy *policy)
{
    memset(lot, 0, sizeof *lot);
    lot->pipeline = pipeline;
    lot->policy = policy;
    lot->entries = wb_alloc_zero(WB_LOT_MAX, sizeof *lot->entries);
    lot->keys = wb_alloc_zero(WB_LOT_MAX, sizeof *lot->keys);
    lot->riding = wb_alloc_zero(WB_LOT_MAX, sizeof *lot->riding);
    wb_arena_init(&lot->arena, 256 * 1024);
    wb_arena_init(&lot->riding_arena, 256 * 1024);
}

void wb_lot_free(wb_lot *lot)
{
    free(lot->entries);
    free(lot->keys);
    free(lot->riding);
    wb_window_free(&lot->window);
    wb_arena_free(&lot->arena);
    wb_arena_free(&lot->riding_arena);
}

static size_t limit_of(const wb_lot *lot)
{
    return lot->policy->limit ? lot->policy->limit : WB_LOT_MAX;
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
    group->operations.first->operation.result = UNTRIED;
    return &group->operations.first->operation;
}

static int take(void *argument, const wb_delayed *message)
{
    wb_lot *lot = argument;
    if (wb_lot_is_full(lot))
        return WB_OK;
    wb_lot_entry *entry = &lot->entries[lot->count++];
    *entry = (wb_lot_entry){
        .key = { .destination = wb_arena_copy(&lot->arena, message->destination, message->destination_size),
                 .destination_size = message->destination_size,
                 .id = wb_arena_copy(&lot->arena, message->id, message->id_size),
                 .id_size = message->id_size,
                 .retries = message->retries,
                 .place = WB_HAS(message, wb_delayed, place) ? message->place : 0 },
        .failures = message->failures,
        .operation = decode(lot, message),
    };
    return WB_OK;
}

/* The keys of what was sent stay where they are while the next lot comes. */
static void swap_arenas(wb_lot *lot)
{
    const wb_arena old = lot->arena;
    lot->arena = lot->riding_arena;
    lot->riding_arena = old;
    wb_arena_reset(&lot->arena);
}

static int fetch_behind(wb_lot *lot, wb_storage_session *storage, const wb_delayed_fetch *fetch, wb_error *error)
{
    const wb_delayed_ops *ops = lot->pipeline->persistence_ops->delayed;
    if (!lot->riding_count)
        return ops->fetch(storage, fetch, take, lot, error);
    wb_crash_point("delayed_before_remove");
    int r = ops->remove_and_fetch(storage, lot->riding, lot->riding_count, fetch, take, lot, error);
    if (r != WB_OK)
        return r;
    lot->riding_count = 0;
    wb_crash_point("delayed_after_remove");
    return WB_OK;
}

int wb_lot_fetch(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    const wb_delayed_fetch fetch = { .struct_size = sizeof fetch,
                                     .at = wb_bug("due_by_host") ? wb_clock_wall() : 0,
                                     .limit = limit_of(lot),
                                     .owner = lot->policy->owner,
                                     .lease = wb_bug("no_lease") ? 10 * WB_MILLISECOND : WB_LOT_LEASE };
    lot->count = lot->refused = 0;
    lot->is_stuck = 0;
    swap_arenas(lot);
    return fetch_behind(lot, storage, &fetch, error);
}

/* ---- dispatch ---------------------------------------------------------------------- */

static int is_refused_for_good(const wb_lot *lot, const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation && operation->result == WB_REJECT && !wb_bug("drop_refused") &&
           (operation->cause == WB_CAUSE_UNROUTABLE || operation->cause == WB_CAUSE_TOO_LARGE ||
            entry->failures >= lot->policy->retries) &&
           operation->cause != WB_CAUSE_REFUSED; /* a privilege is somebody else's to grant */
}

/* A retry of a failed message goes to where this one was to go. */
static wb_operation *make_copy(wb_lot *lot, const wb_operation *operation)
{
    wb_pipeline *p = lot->pipeline;
    char reason[1200];
    wb_operation_list list = { 0 };
    wb_describe_refusal(operation, reason, sizeof reason);
    const wb_incoming incoming = { .struct_size = sizeof incoming,
                                   .id = operation->id,
                                   .id_size = operation->id_size,
                                   .headers = operation->headers,
                                   .header_count = operation->header_count,
                                   .body = operation->body,
                                   .body_size = operation->body_size,
                                   .key = operation->key,
                                   .key_size = operation->key_size };
    const wb_failure failure = { .kind = WB_FAILURE_DISPATCH, .reason = reason, .attempts = 1 };
    const wb_failed_message message = {
        .incoming = &incoming,
        .failure = &failure,
        .failed_queue = operation->kind == WB_OPERATION_SEND ? operation->destination : NULL,
    };
    wb_operation *copy = wb_recover_error_operation(&p->recoverability, &p->origin, &message, &lot->arena, &list);
    copy->result = UNTRIED;
    return copy;
}

static void log_moved(const wb_lot *lot, const wb_lot_entry *entry)
{
    wb_log_event(WB_LOG_ERROR, "delayed message moved to the error queue",
                 { "endpoint", lot->pipeline->endpoint }, { "message_id", entry->operation->id },
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

/* The session lives, so it is the destination that is silent. */
static void listen(wb_lot *lot)
{
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < lot->count; i++) {
        const wb_lot_entry *entry = &lot->entries[i];
        int result = entry->operation && !entry->is_held ? entry->operation->result : UNTRIED;
        if (result == UNTRIED)
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
    listen(lot);
    int is_late = outlet->until && wb_clock_monotonic() >= outlet->until;
    return is_late ? r : move_refused(lot, outlet, error);
}

/* ---- conclude ---------------------------------------------------------------------- */

static int is_sent(const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation &&
           (operation->result == WB_OK || (entry->copy && entry->copy->result == WB_OK) ||
            wb_bug("remove_before_dispatch") || (operation->result == WB_REJECT && wb_bug("drop_refused")));
}

static int is_refused(const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return !operation || (!is_sent(entry) && operation->result == WB_REJECT &&
                          (!entry->copy || entry->copy->result == WB_REJECT));
}

/* Nobody knows whether the broker has it. */
static int is_unknown(int result)
{
    return result != WB_OK && result != WB_REJECT && result != UNTRIED;
}

/* It, or its copy, was not handed to the transport. */
static int is_untried(const wb_lot_entry *entry)
{
    const wb_operation *last = entry->copy ? entry->copy : entry->operation;
    return last && (last->result == UNTRIED || (is_unknown(last->result) && wb_bug("unknown_is_given_back")));
}

/* How long what was refused is left alone. */
static int64_t pause_of(const wb_lot *lot, const wb_lot_entry *entry)
{
    if (!entry->operation)
        return UNREADABLE_PAUSE;
    if (entry->copy)
        return ERROR_QUEUE_PAUSE;
    return entry->operation->cause == WB_CAUSE_REFUSED ? PRIVILEGE_PAUSE : lot->policy->failure_pause;
}

/* They were sent: what passes is waited for, within the lease. */
static int remove_patiently(wb_lot *lot, wb_storage_session *storage, wb_delayed_key *keys, size_t count,
                            wb_error *error)
{
    const wb_pipeline *p = lot->pipeline;
    const wb_delayed_ops *ops = p->persistence_ops->delayed;
    int64_t until = wb_clock_monotonic() + REMOVE_TRIES;
    int r;
    wb_crash_point("delayed_before_remove");
    while (((r = ops->remove(storage, lot->policy->owner, keys, count, error)) == WB_RETRY || r == WB_ABORT) &&
           p->mode != WB_MODE_TRANSACTION_SCOPE && wb_clock_monotonic() < until)
        wb_clock_pause(REMOVE_PAUSE, NULL);
    lot->is_stuck = r != WB_OK;
    if (r == WB_OK)
        wb_crash_point("delayed_after_remove");
    return r;
}

static size_t collect_sent(const wb_lot *lot, wb_delayed_key *keys)
{
    size_t count = 0;
    for (size_t i = 0; i < lot->count; i++)
        if (is_sent(&lot->entries[i]))
            keys[count++] = lot->entries[i].key;
    return count;
}

static int remove_sent(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    size_t count = collect_sent(lot, lot->keys);
    return count ? remove_patiently(lot, storage, lot->keys, count, error) : WB_OK;
}

static size_t count_refused(const wb_lot *lot)
{
    size_t count = 0;
    for (size_t i = 0; i < lot->count; i++)
        count += (size_t)is_refused(&lot->entries[i]);
    return count;
}

/* More is due, and nothing keeps the next fetch waiting. */
static int may_ride(const wb_lot *lot)
{
    const wb_pipeline *p = lot->pipeline;
    return wb_lot_is_full(lot) && !lot->refused && !count_refused(lot) && !p->stop &&
           p->mode != WB_MODE_TRANSACTION_SCOPE &&
           WB_HAS(p->persistence_ops->delayed, wb_delayed_ops, remove_and_fetch);
}

int wb_lot_settle(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    size_t count = lot->riding_count;
    lot->riding_count = 0;
    return count ? remove_patiently(lot, storage, lot->riding, count, error) : WB_OK;
}

/* Those with one pause go in one call. */
static int postpone(wb_lot *lot, wb_storage_session *storage, int64_t pause, wb_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < lot->count; i++)
        if (is_refused(&lot->entries[i]) && pause_of(lot, &lot->entries[i]) == pause)
            lot->keys[count++] = lot->entries[i].key;
    lot->refused += count;
    return count ? lot->pipeline->persistence_ops->delayed->increment_failure_count(
                       storage, lot->policy->owner, lot->keys, count,
                       wb_pipeline_now(lot->pipeline) + pause, error)
                 : WB_OK;
}

/* Those for one silent destination, due when that is tried again; NULL: those for all others, due as they were. */
static int release(wb_lot *lot, wb_storage_session *storage, const wb_silence *silence,
                   int (*is_chosen)(const wb_lot_entry *entry), wb_error *error)
{
    int64_t pause = silence ? silence->until - wb_clock_monotonic() : 0;
    size_t count = 0;
    for (size_t i = 0; i < lot->count; i++)
        if (is_chosen(&lot->entries[i]) && wb_silences_find(&lot->silences, &lot->entries[i].key) == silence)
            lot->keys[count++] = lot->entries[i].key;
    return count ? lot->pipeline->persistence_ops->delayed->release(
                       storage, lot->policy->owner, lot->keys, count,
                       pause > 0 ? wb_pipeline_now(lot->pipeline) + pause : 0, error)
                 : WB_OK;
}

static int give_back(wb_lot *lot, wb_storage_session *storage, int (*is_chosen)(const wb_lot_entry *entry),
                     wb_error *error)
{
    int r = release(lot, storage, NULL, is_chosen, error);
    for (size_t i = 0; i < lot->silences.count && r == WB_OK; i++)
        r = release(lot, storage, &lot->silences.of[i], is_chosen, error);
    return r;
}

static void tell_unreadable(const wb_lot *lot)
{
    char text[24];
    size_t count = 0;
    for (size_t i = 0; i < lot->count; i++)
        count += !lot->entries[i].operation;
    (void)snprintf(text, sizeof text, "%zu", count);
    if (count)
        wb_log_event(WB_LOG_WARNING, "delayed messages hold bytes this version cannot read: left alone",
                     { "endpoint", lot->pipeline->endpoint }, { "messages", text });
}

void wb_lot_misbehave(wb_lot *lot, wb_storage_session *storage)
{
    wb_error ignored;
    if (wb_bug("remove_before_dispatch"))
        (void)remove_sent(lot, storage, &ignored);
}

int wb_lot_conclude(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    const int64_t pauses[] = { lot->policy->failure_pause, PRIVILEGE_PAUSE, ERROR_QUEUE_PAUSE,
                               UNREADABLE_PAUSE };
    tell_unreadable(lot);
    lot->riding_count = may_ride(lot) ? collect_sent(lot, lot->riding) : 0;
    int r = lot->riding_count ? WB_OK : remove_sent(lot, storage, error);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0] && r == WB_OK; i++)
        r = postpone(lot, storage, pauses[i], error);
    return r == WB_OK ? give_back(lot, storage, is_untried, error) : r;
}

static int is_not_sent(const wb_lot_entry *entry)
{
    return is_untried(entry) || is_refused(entry);
}

int wb_lot_give_back(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    return give_back(lot, storage, is_not_sent, error);
}

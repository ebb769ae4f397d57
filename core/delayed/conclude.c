/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a lot: the store is told what became of each message.
 */
#include "config.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/delayed/lot.h"

/* A privilege that is missing; an error queue that refuses; what cannot be read here. */
#define PRIVILEGE_PAUSE (30 * WB_SECOND)
#define ERROR_QUEUE_PAUSE (60 * WB_SECOND)
#define UNREADABLE_PAUSE (3600 * WB_SECOND)
/* What was sent and cannot be removed: so long it is tried; two windows of the broker and this are within a lease. */
#define REMOVE_TRIES (5 * WB_SECOND)
#define REMOVE_PAUSE (50 * WB_MILLISECOND)

/* ---- what became of each -------------------------------------------------------------- */

static int is_sent(const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation &&
           (operation->result == WB_OK || (entry->copy && entry->copy->result == WB_OK) ||
            wb_bug("remove_before_dispatch") || (operation->result == WB_REJECT && wb_bug("drop_refused")));
}

/* Refused, and there all the same, in part: like what has no outcome it keeps its lease, and with that the store remembers
 * that it may have been sent. */
static int is_partly_sent(const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return operation && operation->result == WB_REJECT && operation->flags & WB_OPERATION_PARTLY_SENT;
}

static int is_refused(const wb_lot_entry *entry)
{
    const wb_operation *operation = entry->operation;
    return !operation || (!is_sent(entry) && !is_partly_sent(entry) && operation->result == WB_REJECT &&
                          (!entry->copy || entry->copy->result == WB_REJECT));
}

/* Nobody knows whether the broker has it. */
static int is_unknown(int result)
{
    return result != WB_OK && result != WB_REJECT && result != WB_LOT_UNTRIED;
}

/* It, or its copy, was not handed to the transport. */
static int is_untried(const wb_lot_entry *entry)
{
    const wb_operation *last = entry->copy ? entry->copy : entry->operation;
    return last && !is_partly_sent(entry) &&
           (last->result == WB_LOT_UNTRIED || (is_unknown(last->result) && wb_bug("unknown_is_given_back")));
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
    lot->is_stuck |= r != WB_OK;
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

/* What could not be removed is kept: as long as it stays nothing more is fetched, and sent in vain. */
static void keep_unremoved(wb_lot *lot, size_t count)
{
    if (lot->pipeline->mode == WB_MODE_TRANSACTION_SCOPE)
        return; /* it is rolled back, and was not sent */
    if (!lot->riding.count)
        wb_lot_forget(&lot->riding);
    for (size_t i = 0; i < count; i++)
        wb_lot_keep(&lot->riding, &lot->keys[i]);
}

static int remove_sent(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    size_t count = collect_sent(lot, lot->keys);
    int r = count ? remove_patiently(lot, storage, lot->keys, count, error) : WB_OK;
    if (r != WB_OK)
        keep_unremoved(lot, count);
    return r;
}

/* More is due, and nothing keeps the next fetch waiting: all of a full lot was sent. */
static int may_flow(const wb_lot *lot)
{
    const wb_pipeline *p = lot->pipeline;
    for (size_t i = 0; i < lot->count; i++)
        if (!is_sent(&lot->entries[i]))
            return 0;
    return wb_lot_is_full(lot) && !lot->refused && !p->stop && p->mode != WB_MODE_TRANSACTION_SCOPE &&
           WB_HAS(p->persistence_ops->delayed, wb_delayed_ops, begin_fetch);
}

static void keep_sent(wb_lot *lot)
{
    wb_lot_forget(&lot->riding);
    for (size_t i = 0; i < lot->count; i++)
        wb_lot_keep(&lot->riding, &lot->entries[i].key);
}

/* Who gave it its lease may remove it, on any session, and whenever that can be done. */
static int remove_kept(wb_lot *lot, wb_storage_session *storage, wb_lot_keys *sent, wb_error *error)
{
    int r = sent->count && !wb_bug("riding_forgotten") ? remove_patiently(lot, storage, sent->keys, sent->count, error) : WB_OK;
    if (r == WB_OK || lot->pipeline->mode == WB_MODE_TRANSACTION_SCOPE)
        wb_lot_forget(sent);
    return r;
}

/* What was sent is removed whatever becomes of the rest: the first failure is told. */
static void note_failure(int *result, wb_error *error, int own_result, const wb_error *own)
{
    if (*result != WB_OK || own_result == WB_OK)
        return;
    *result = own_result;
    *error = *own;
}

int wb_lot_settle(wb_lot *lot, wb_storage_session *storage, wb_error *error)
{
    wb_error own = { 0 };
    int r = wb_lot_recall(lot, storage, error);
    note_failure(&r, error, remove_kept(lot, storage, &lot->leaving, &own), &own);
    note_failure(&r, error, remove_kept(lot, storage, &lot->riding, &own), &own);
    lot->is_flowing = 0;
    return r;
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
    wb_error own = { 0 };
    tell_unreadable(lot);
    lot->is_flowing = may_flow(lot);
    if (lot->is_flowing) {
        keep_sent(lot);
        return WB_OK;
    }
    int r = wb_lot_settle(lot, storage, error);
    note_failure(&r, error, remove_sent(lot, storage, &own), &own);
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

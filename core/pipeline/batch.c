/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/batch.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/ids.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/observe.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/scout.h"
#include "core/pipeline/suspect.h"

/* ---- holding ----------------------------------------------------------------------- */

static void note_in_hand(wb_worker *w)
{
    atomic_store_explicit(&w->in_hand, w->held_count, memory_order_relaxed);
}

size_t wb_batch_room(const wb_worker *w)
{
    return w->free_count;
}

wb_item *wb_batch_hold(wb_worker *w, const wb_incoming *incoming, const wb_handler_entry *handler)
{
    wb_item *item = w->free_slots[--w->free_count];
    w->held[w->held_count++] = item;
    wb_item_init(item, incoming, handler);
    note_in_hand(w);
    return item;
}

static void let_go(wb_worker *w, wb_item *item)
{
    wb_item_clear(item);
    w->free_slots[w->free_count++] = item;
}

void wb_batch_note_empty(wb_worker *w)
{
    if (w->held_count || w->settled_count || w->mark_count || atomic_load(&w->complained))
        atomic_store_explicit(&w->empty_since, 0, memory_order_relaxed);
    else if (!atomic_load_explicit(&w->empty_since, memory_order_relaxed))
        atomic_store_explicit(&w->empty_since, atomic_load_explicit(&w->beat, memory_order_relaxed), memory_order_relaxed);
}

/* ---- choosing ---------------------------------------------------------------------- */

static int is_aside(const wb_item *item, int64_t now)
{
    return item->paused_until > now;
}

static int waits(const wb_item *item, wb_batch_choice choice, int64_t now)
{
    return choice == WB_BATCH_FRESH ? item->paused_until != 0 : is_aside(item, now);
}

/* With transports that keep the order of a key, nobody passes one that waits. */
static int is_behind_its_key(const wb_worker *w, size_t at, wb_batch_choice choice, int64_t now)
{
    for (size_t i = 0; w->pipeline->ordered && w->held[at]->message.key_size && i < at && !wb_bug("key_passes"); i++)
        if (waits(w->held[i], choice, now) && wb_item_has_key_of(w->held[i], w->held[at]))
            return 1;
    return 0;
}

static int is_free(const wb_worker *w, size_t at, wb_batch_choice choice, int64_t now)
{
    return !waits(w->held[at], choice, now) && !is_behind_its_key(w, at, choice, now);
}

static int can_run(const wb_worker *w, size_t at, wb_batch_choice choice, int64_t now)
{
    return is_free(w, at, choice, now) && wb_positions_is_first(w, at);
}

static int runs_alone(const wb_worker *w, const wb_item *item)
{
    return item->alone || wb_rate_is_limited(&w->pipeline->rate) || wb_item_is_suspect(w->pipeline, item) ||
           wb_suspect_leaves(w->pipeline, item) || wb_suspect_is_last_delivery(w->pipeline, item) ||
           wb_suspicions_has(w->pipeline->suspicions, item->id, item->id_size);
}

/* An unknown handler may take any time: it counts as a whole batch's. */
static int64_t cost_of(const wb_worker *w, const wb_item *item)
{
    int64_t all = 0;
    for (size_t i = 0; item->verdict == WB_VERDICT_OPEN && i < item->handler_count; i++) {
        int64_t cost = w->costs[item->handlers[i] - w->pipeline->handlers->entries];
        all += cost < 0 ? w->pipeline->batch_time : cost;
    }
    return all;
}

static void start(wb_worker *w)
{
    w->batch_number = w->pipeline->outbox ? wb_pipeline_batch_number(w->pipeline) : 0;
    w->may_have_ended = 0;
    w->transaction_ended = 0;
    w->storage_distrusted = 0;
    w->handler_said = 0;
    w->wish.kind = WB_WISH_NOTHING;
    w->turns = 0;
    w->grouped = 0;
    w->stored = 0;
    w->claim_count = 0;
    w->position_count = 0;
    w->handling_spent = 0;
    wb_arena_reset(&w->arena);
    wb_arena_reset(&w->recovered);
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        item->place = i;
        item->has_begun = 0;
        item->message.attempt =
            item->incoming->delivery_count + item->failure.attempts + item->failure.faults + 1;
    }
}

static int has_earlier_of_key(const wb_worker *w, size_t at)
{
    for (size_t i = 0; w->pipeline->ordered && i < at; i++)
        if (wb_item_has_key_of(w->held[i], w->held[at]))
            return 1;
    return 0;
}

/* What the broker drops next leaves before anything that may end the process. */
static int is_more_urgent(const wb_worker *w, const wb_item *item, const wb_item *than)
{
    int is_last = wb_suspect_is_last_delivery(w->pipeline, item);
    if (is_last != wb_suspect_is_last_delivery(w->pipeline, than))
        return is_last;
    return item->paused_until && (!than->paused_until || item->paused_until < than->paused_until);
}

/* The most urgent; of those that were set aside and are due, the one that has waited longest; else
 * the first. */
static size_t find_next(const wb_worker *w, wb_batch_choice choice, int64_t now)
{
    size_t found = w->held_count;
    for (size_t i = 0; i < w->held_count; i++)
        if (can_run(w, i, choice, now) &&
            (found == w->held_count ||
             (is_more_urgent(w, w->held[i], w->held[found]) && !has_earlier_of_key(w, i))))
            found = i;
    return found;
}

/* A suspect runs only when no other suspect runs in this process; and none begins while something
 * leaves that one death more would cost, or send once more. */
static int may_run(wb_worker *w, const wb_item *item)
{
    if (!wb_item_is_suspect(w->pipeline, item) && !wb_suspect_leaves(w->pipeline, item) &&
        !wb_suspect_is_last_delivery(w->pipeline, item))
        return 1;
    w->has_suspect_lock = wb_suspect_try_lock();
    return w->has_suspect_lock || !wb_suspect_needs_lock(w->pipeline, item);
}

static size_t find_first(wb_worker *w, wb_batch_choice choice, int64_t now)
{
    size_t found;
    while ((found = find_next(w, choice, now)) < w->held_count) {
        wb_item *item = w->held[found];
        if (may_run(w, item))
            return found;
        wb_suspect_wait(item);
    }
    return w->held_count;
}

/* With transports that keep the order of a key, nobody joins past an earlier one of its key that does not run with it,
 * whatever that waits for. Where nobody was left out there is nothing to look for. */
static int would_pass_its_key(const wb_worker *w, size_t at)
{
    if (!w->pipeline->ordered || !w->held[at]->message.key_size || w->batch_size == at || wb_bug("company_passes"))
        return 0;
    for (size_t i = 0, joined = 0; i < at; i++) {
        if (joined < w->batch_size && w->batch[joined] == w->held[i]) /* a batch is in the order of receipt */
            joined++;
        else if (wb_item_has_key_of(w->held[i], w->held[at]))
            return 1;
    }
    return 0;
}

static void add_company(wb_worker *w, size_t first, wb_batch_choice choice, int64_t now)
{
    int64_t left = w->pipeline->batch_time - cost_of(w, w->batch[0]);
    for (size_t i = first + 1; i < w->held_count && w->batch_size < w->take; i++) {
        wb_item *item = w->held[i];
        if (!is_free(w, i, choice, now) || wb_item_is_control(item) != wb_item_is_control(w->batch[0]) ||
            would_pass_its_key(w, i) || !wb_positions_may_join(w, i))
            continue;
        left -= cost_of(w, item);
        if (left < 0 || runs_alone(w, item))
            return;
        w->batch[w->batch_size++] = item;
    }
}

int wb_batch_choose(wb_worker *w, wb_batch_choice choice)
{
    int64_t now = wb_clock_monotonic();
    size_t first = find_first(w, choice, now);
    w->batch_size = 0;
    if (first == w->held_count)
        return 0;
    w->batch[w->batch_size++] = w->held[first];
    if (!runs_alone(w, w->batch[0]))
        add_company(w, first, choice, now);
    start(w);
    return 1;
}

int wb_batch_can_run(const wb_worker *w)
{
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < w->held_count; i++)
        if (can_run(w, i, WB_BATCH_ANY, now))
            return 1;
    return 0;
}

/* What is due, and stands behind another one that is not, has no time of its own: nobody is to turn in circles for it. */
int64_t wb_batch_next_time(const wb_worker *w)
{
    const int64_t now = wb_clock_monotonic();
    int64_t next = WB_NEVER;
    for (size_t i = 0; i < w->held_count; i++) {
        const int64_t until = w->held[i]->paused_until;
        if (until && until < next && (until > now || can_run(w, i, WB_BATCH_ANY, now)))
            next = until;
    }
    return next;
}

static size_t count_aside(const wb_worker *w, int is_control)
{
    size_t count = 0;
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < w->held_count; i++)
        count += is_aside(w->held[i], now) && w->held[i]->is_control == is_control;
    return count;
}

size_t wb_batch_count_aside(const wb_worker *w)
{
    return count_aside(w, 0);
}

size_t wb_batch_count_controls_aside(const wb_worker *w)
{
    return count_aside(w, 1);
}

/* ---- over -------------------------------------------------------------------------- */

int wb_batch_keeps_handled(const wb_worker *w)
{
    return w->pipeline->mode == WB_MODE_NONE && !w->pipeline->persistence_ops && !wb_bug("handled_again");
}

void wb_batch_rerun(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        wb_item_rerun(w->batch[i]);
}

void wb_batch_run_alone(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        w->batch[i]->alone = 1;
}

static int is_quick(const wb_worker *w)
{
    return w->handling_spent < w->pipeline->batch_time / 2;
}

/* A message that comes again may have ended a process: what is in hand beside it then counts a
 * delivery more. So nothing grows until such messages are done. */
static int are_first_deliveries(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->message.attempt > 1)
            return 0;
    return 1;
}

/* Grow while batches are full, quick and delivered for the first time; shrink to what a batch's
 * time allows. That time is the handlers' alone: what commit and confirmations take hardly
 * depends on how many messages there are, and where it is long, large batches are what helps. */
static void adapt(wb_worker *w)
{
    unsigned done = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        done += w->batch[i]->state != WB_ITEM_KEPT;
    if (w->handling_spent > w->pipeline->batch_time)
        w->take = done < w->take ? (done ? done : 1) : w->take;
    w->is_at_ease = w->batch_size >= w->take && is_quick(w) && are_first_deliveries(w) && wb_scout_lets_grow(w);
    if (w->is_at_ease)
        w->take = w->take * 2 < w->pipeline->batch_max ? w->take * 2 : w->pipeline->batch_max;
}

static void tally_done(wb_worker *w, wb_item *item)
{
    item->is_tallied = 1;
    wb_observe_handled(w->pipeline, &item, 1);
    wb_tally_note(&w->tally, item->is_discarded ? WB_TALLY_DISCARDED : WB_TALLY_HANDLED, 1);
}

/* What failed is counted when it has been moved. */
void wb_batch_tally(wb_worker *w, wb_item_state state)
{
    const int64_t now = wb_clock_wall();
    wb_item *done[w->batch_size + 1];
    uint64_t handled = 0, discarded = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state != state || item->verdict != WB_VERDICT_OPEN || item->is_tallied)
            continue;
        item->is_tallied = 1;
        done[handled + discarded] = item;
        handled += !item->is_discarded;
        discarded += item->is_discarded != 0;
        if (item->sent)
            wb_tally_observe(&w->tally, WB_HISTOGRAM_CRITICAL, now - item->sent);
    }
    wb_tally_note(&w->tally, WB_TALLY_HANDLED, handled);
    wb_tally_note(&w->tally, WB_TALLY_DISCARDED, discarded);
    wb_observe_handled(w->pipeline, done, handled + discarded);
}

/* By a batch of ours, whose commit was made after all. */
static int was_done_here(const wb_item *item)
{
    return item->doubted_in && item->duplicate_of == item->doubted_in;
}

/* Done, and nothing of it was done here. */
static int is_duplicate(const wb_item *item)
{
    return item->verdict == WB_VERDICT_OPEN && !item->is_tallied && !item->is_control;
}

static void settle(wb_worker *w, wb_item *item)
{
    const char *id = item->own_id ? item->id : item->message.id; /* `incoming` may be gone */
    wb_suspicions_forget(w->pipeline->suspicions, id, item->id_size);
    if (!wb_has_transport_transaction(w->pipeline) && !wb_bug("ack_before_commit"))
        wb_marks_add_message(w, item->incoming);
    wb_suspect_settled(w, item);
    wb_apart_add(w, item);
    let_go(w, item);
}

void wb_batch_finish(wb_worker *w)
{
    size_t kept = 0;
    uint64_t duplicates = 0;
    if (!w->batch_size || !w->batch[0]->is_control)
        adapt(w);
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state != WB_ITEM_SETTLED)
            wb_item_rerun(w->batch[i]);
    for (size_t i = 0; i < w->held_count; i++) {
        if (w->held[i]->state == WB_ITEM_SETTLED) {
            if (was_done_here(w->held[i]) && is_duplicate(w->held[i]))
                tally_done(w, w->held[i]);
            duplicates += (uint64_t)is_duplicate(w->held[i]);
            settle(w, w->held[i]);
        } else
            w->held[kept++] = w->held[i];
    }
    w->held_count = kept;
    w->batch_size = 0;
    note_in_hand(w);
    wb_tally_note(&w->tally, WB_TALLY_DUPLICATES, duplicates);
}

/* The attempt ended, and the process lives to know it; but the session may have been lost to it. */
static void note_end(wb_worker *w, const wb_item *item)
{
    if (w->transport_broken && w->batch_size && w->batch[0] == item)
        wb_suspect_lost_session(w, item);
    else
        wb_suspect_done(w, item);
}

void wb_batch_drop_all(wb_worker *w)
{
    for (size_t i = 0; i < w->held_count; i++) {
        if (w->held[i]->noted)
            note_end(w, w->held[i]);
        let_go(w, w->held[i]);
    }
    w->held_count = 0;
    w->batch_size = 0;
    w->settled_count = 0;
    w->is_loose = 0;
    w->record = 0; /* it comes again */
    note_in_hand(w);
}

size_t wb_batch_encode(wb_worker *w)
{
    size_t count = 0;
    wb_operations_encode_start(&w->encoded);
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_item *item = w->batch[i];
        if (item->state == WB_ITEM_HANDLED && item->operations.count)
            count += wb_operations_encode_group(&w->encoded, item->id, item->id_size, &item->operations);
    }
    return count;
}

/* ---- claims ------------------------------------------------------------------------ */

static int compare_ids(const wb_item *a, const wb_item *b)
{
    return wb_bytes_compare(a->id, a->id_size, b->id, b->id_size);
}

/* Ascending ids, so that two batches which share ids never deadlock; among equal ids the
 * order of receipt. */
static int compare_items(const void *a, const void *b)
{
    const wb_item *x = *(wb_item *const *)a, *y = *(wb_item *const *)b;
    int order = compare_ids(x, y);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

size_t wb_batch_collect_open(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        if (wb_item_is_open(w->batch[i]))
            w->claimed[count++] = w->batch[i];
    return count;
}

void wb_batch_prepare_claims(wb_worker *w, size_t open)
{
    size_t count = 0;
    qsort(w->claimed, open, sizeof *w->claimed, compare_items);
    for (size_t i = 0; i < open; i++) {
        wb_item *item = w->claimed[i];
        if (count && compare_ids(w->claimed[count - 1], item) == 0) {
            wb_item_change(item, WB_ITEM_COPY);
            item->leader = w->claimed[count - 1];
            continue;
        }
        w->claimed[count] = item;
        w->claims[count++] = (wb_claim){ item->id, item->id_size, 0 };
    }
    w->claim_count = count;
}

/* ---- pace -------------------------------------------------------------------------- */

/* Those that wait for one that is set aside: other partitions, and keys, go on meanwhile, as long as there is room. */
static size_t count_behind(const wb_worker *w)
{
    size_t count = 0;
    int64_t now = wb_clock_monotonic();
    for (size_t i = 0; i < w->held_count; i++)
        count += !is_aside(w->held[i], now) &&
                 (!wb_positions_is_first(w, i) ||
                  (is_behind_its_key(w, i, WB_BATCH_ANY, now) && !wb_bug("key_fills_hands")));
    return count;
}

/* While nothing is known, and where a message takes long, the one in hand is all; else what
 * comes next as well. What is set aside takes its place in the broker's count. */
unsigned wb_batch_prefetch(const wb_worker *w)
{
    unsigned wanted = w->take == 1 && !w->is_at_ease ? 1 : 2 * w->take;
    size_t aside = wb_batch_count_aside(w) + wb_batch_count_controls_aside(w);
    return wanted + (unsigned)(aside + (aside ? count_behind(w) : 0));
}

/* Quick to believe that a handler is fast, slow to believe that it is slow: a hiccup of the
 * machine must not split batches. */
void wb_batch_note_cost(wb_worker *w, const wb_handler_entry *handler, int64_t spent, size_t count)
{
    int64_t *cost = &w->costs[handler - w->pipeline->handlers->entries];
    int64_t one = spent / (int64_t)count;
    if (*cost < 0)
        *cost = one;
    else
        *cost = one < *cost ? (*cost + one) / 2 : (*cost * 7 + one) / 8;
}

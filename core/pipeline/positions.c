/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/positions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/crash.h"
#include "core/base/log.h"

/* ---- whose turn it is ---------------------------------------------------------------- */

static int is_in(const wb_incoming *message, const void *partition, size_t size)
{
    return message->partition_size == size && memcmp(message->partition, partition, size) == 0;
}

/* The nearest one in hand: the others are before that. */
static const wb_item *find_before(const wb_worker *w, size_t at)
{
    const wb_incoming *message = w->held[at]->incoming;
    while (at--)
        if (is_in(w->held[at]->incoming, message->partition, message->partition_size))
            return w->held[at];
    return NULL;
}

static int is_in_batch(const wb_worker *w, const wb_item *item)
{
    for (size_t i = w->batch_size; i--;)
        if (w->batch[i] == item)
            return 1;
    return 0;
}

int wb_positions_is_first(const wb_worker *w, size_t at)
{
    return !w->pipeline->positions || wb_bug("position_passes") || !find_before(w, at);
}

static int has_copy_in_batch(const wb_worker *w, const wb_item *item)
{
    for (size_t i = 0; i < w->batch_size && !wb_bug("position_copy"); i++)
        if (wb_item_is_same(w->batch[i], item))
            return 1;
    return 0;
}

int wb_positions_may_join(const wb_worker *w, size_t at)
{
    if (!w->pipeline->positions || wb_bug("position_passes"))
        return 1;
    const wb_item *item = w->held[at], *before = find_before(w, at);
    if (before && (!wb_item_is_open(before) || !is_in_batch(w, before)))
        return 0;
    if (before && before->incoming->position >= item->incoming->position)
        return 0;
    return !has_copy_in_batch(w, item);
}

/* ---- claiming ------------------------------------------------------------------------ */

static wb_position *find(wb_position *positions, size_t count, const wb_incoming *message)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(message, positions[i].partition, positions[i].partition_size))
            return &positions[i];
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const wb_position *x = a, *y = b;
    return wb_bytes_compare(x->partition, x->partition_size, y->partition, y->partition_size);
}

static void collect(wb_worker *w)
{
    w->position_count = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_incoming *message = w->batch[i]->incoming;
        if (!wb_item_is_open(w->batch[i]))
            continue;
        wb_position *position = find(w->positions, w->position_count, message);
        if (!position) {
            position = &w->positions[w->position_count++];
            *position = (wb_position){ message->partition, message->partition_size, 0, 0, 0 };
        }
        position->next = message->position + 1;
    }
    qsort(w->positions, w->position_count, sizeof *w->positions, compare);
}

/* Whoever is known by its id is a duplicate of what that says: it may be another batch. An id that was free
 * is ours now, and given back with the commit: of what failed and comes again, since its acknowledgement
 * was lost, the copy that somebody returns from the error queue must not find a record. */
static void apply(wb_worker *w, wb_position *positions)
{
    for (size_t i = 0; i < w->claim_count && !wb_bug("position_ignored"); i++) {
        const wb_incoming *message = w->claimed[i]->incoming;
        const wb_position *position = find(positions, w->position_count, message);
        if (!position || message->position >= position->found || w->claims[i].duplicate_of)
            continue;
        w->claims[i].duplicate_of = position->batch;
        w->claimed[i]->is_passed = 1;
    }
}

static int begin_with(wb_worker *w, wb_begin *begin, wb_position *positions, wb_error *error)
{
    begin->positions = positions;
    begin->position_count = w->position_count;
    if (w->pipeline->positions == WB_POSITIONS_ALONE)
        begin->claim_count = 0;
    return w->pipeline->persistence_ops->begin(w->storage, begin, error);
}

/* ---- a partition that was made anew ---------------------------------------------------- */

static int refuse(const wb_position *position, uint64_t end, wb_error *error)
{
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                        "partition \"%.*s\" ends at %" PRIu64 ", and its messages are known to be done with below %" PRIu64
                        ": it was made anew, and its messages would pass for such that came before; stop the endpoint "
                        "wherever it runs, and run \"waybill install --reset-positions\"",
                        (int)position->partition_size, (const char *)position->partition, end, position->found);
}

static int check_end(const wb_pipeline *p, wb_transport_session *transport, const wb_position *position,
                     wb_error *error)
{
    uint64_t end = 0;
    int r = p->transport_ops->position_end(transport, position->partition, position->partition_size, &end, error);
    if (r == WB_REJECT) /* nothing is received from it */
        return WB_OK;
    return r == WB_OK && end < position->found ? refuse(position, end, error) : r;
}

/* Messages that came before are seldom; before one is believed to be such the broker is asked. */
static int check_duplicates(wb_worker *w, wb_error *error)
{
    int r = WB_OK;
    for (size_t k = 0; k < w->position_count && r == WB_OK; k++) {
        const wb_position *position = &w->positions[k];
        int is_known = 0;
        for (size_t i = 0; i < w->batch_size && !is_known; i++)
            is_known = w->batch[i]->incoming->position < position->found &&
                       is_in(w->batch[i]->incoming, position->partition, position->partition_size);
        if (is_known && !wb_bug("made_anew"))
            r = check_end(w->pipeline, w->transport, position, error);
    }
    if (r != WB_NOT_CONNECTED && r != WB_IN_DOUBT)
        return r;
    if (error->cause == WB_CAUSE_SERVER) /* one partition may have no leader: what is in hand stays there */
        return WB_RETRY;
    w->transport_broken = 1;
    return WB_NOT_CONNECTED;
}

int wb_positions_begin(wb_worker *w, wb_begin *begin, wb_error *error)
{
    collect(w);
    int r = begin_with(w, begin, w->positions, error);
    if (r == WB_OK)
        apply(w, w->positions);
    return r;
}

int wb_positions_confirm(wb_worker *w, wb_error *error)
{
    return w->pipeline->positions ? check_duplicates(w, error) : WB_OK;
}

static int has_duplicates(const wb_worker *w, const wb_position *position)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->incoming->position < position->found &&
            is_in(w->batch[i]->incoming, position->partition, position->partition_size))
            return 1;
    return 0;
}

void wb_positions_keep_behind_duplicates(wb_worker *w)
{
    for (size_t k = 0; k < w->position_count && !wb_bug("position_hurries"); k++) {
        const wb_position *position = &w->positions[k];
        if (!has_duplicates(w, position))
            continue;
        for (size_t i = 0; i < w->batch_size; i++)
            if (wb_item_is_open(w->batch[i]) &&
                is_in(w->batch[i]->incoming, position->partition, position->partition_size))
                wb_item_change(w->batch[i], WB_ITEM_KEPT);
    }
}

/* What somebody else brought further tells nothing of this batch. */
static void believe_own(const wb_worker *w, wb_position *positions)
{
    for (size_t i = 0; i < w->position_count && !wb_bug("position_anybodys") && !wb_bug("repaired_by_position"); i++)
        if (positions[i].batch != w->batch_number)
            positions[i].found = 0;
}

/* Where ids were claimed, too, they tell what became of this very batch; somebody else may have passed it. */
int wb_positions_begin_again(wb_worker *w, wb_begin *begin, wb_error *error)
{
    wb_position again[w->position_count + 1];
    memcpy(again, w->positions, w->position_count * sizeof *again);
    int r = begin_with(w, begin, again, error);
    if (r == WB_OK && (w->pipeline->positions == WB_POSITIONS_ALONE || wb_bug("repaired_by_position"))) {
        believe_own(w, again);
        apply(w, again);
    }
    return r;
}

/* ---- the start of an endpoint ----------------------------------------------------------- */

typedef struct {
    const wb_pipeline *pipeline;
    wb_transport_session *transport;
    int all;
    wb_error *error;
} looking;

/* One partition without a leader is no reason for the others to wait. check_duplicates() asks again. */
static int pass_over(const looking *l, const wb_position *position)
{
    char name[300];
    (void)snprintf(name, sizeof name, "%.*s", (int)position->partition_size, (const char *)position->partition);
    wb_log_event(WB_LOG_WARNING,
                 "whether a partition was made anew cannot be found out now: it is asked again before any of its "
                 "messages is taken for a duplicate",
                 { "endpoint", l->pipeline->endpoint }, { "partition", name }, { "reason", l->error->text });
    wb_error_clear(l->error);
    return WB_OK;
}

static int look(void *argument, const wb_position *position)
{
    const looking *l = argument;
    int r = check_end(l->pipeline, l->transport, position, l->error);
    return r == WB_NOT_CONNECTED && l->error->cause == WB_CAUSE_SERVER && !l->all ? pass_over(l, position) : r;
}

int wb_positions_check(const wb_pipeline *p, wb_storage_session *storage, wb_transport_session *transport,
                       int all, wb_error *error)
{
    looking l = { p, transport, all, error };
    return p->persistence_ops->positions(storage, look, &l, error);
}

/* ---- committing -------------------------------------------------------------------------- */

/* The first of a partition that is left; those behind it are, too. What was there before is none. */
static const wb_incoming *find_left(const wb_worker *w, const wb_position *position,
                                    int (*is_left)(const wb_worker *w, const wb_item *item))
{
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_incoming *message = w->batch[i]->incoming;
        if (message->position >= position->found && is_left(w, w->batch[i]) &&
            is_in(message, position->partition, position->partition_size))
            return message;
    }
    return NULL;
}

/* Whether somebody of the batch was before it: then the row is the batch's all the same. */
static int has_passed(const wb_worker *w, const wb_position *position, uint64_t left)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_incoming *message = w->batch[i]->incoming;
        if (message->position >= position->found && message->position < left &&
            is_in(message, position->partition, position->partition_size))
            return 1;
    }
    return 0;
}

void wb_positions_set_back(wb_worker *w, wb_commit *commit, int (*is_left)(const wb_worker *w, const wb_item *item))
{
    if (!w->position_count || wb_bug("position_kept"))
        return;
    wb_position *back = wb_arena_alloc(&w->arena, w->position_count * sizeof *back);
    for (size_t i = 0; i < w->position_count; i++) {
        const wb_position *position = &w->positions[i];
        const wb_incoming *left = find_left(w, position, is_left);
        if (!left)
            continue;
        int has = has_passed(w, position, left->position);
        back[commit->position_count++] = (wb_position){
            .partition = position->partition,
            .partition_size = position->partition_size,
            .next = has ? left->position : position->found,
            .batch = has ? w->batch_number : position->batch,
        };
    }
    commit->positions = back;
}

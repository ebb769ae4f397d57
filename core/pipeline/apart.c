/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/apart.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/crash.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/pace.h"
#include "core/plugin/instance.h"

#define ARENA_BLOCK (16 * 1024)

/* ---- lists of ids ----------------------------------------------------------------------- */

static void clear(wb_apart_list *list)
{
    list->count = 0;
    wb_arena_reset(&list->ids);
}

static void add(wb_apart_list *list, const void *id, size_t size, uint64_t batch)
{
    if (list->count == list->max) {
        list->max = list->max ? list->max * 2 : 64;
        list->claims = wb_realloc(list->claims, list->max * sizeof *list->claims);
    }
    list->claims[list->count++] = (wb_claim){ wb_arena_copy(&list->ids, id, size), size, batch };
}

static int compare_ids(const void *a, const void *b)
{
    const wb_claim *x = a, *y = b;
    return wb_bytes_compare(x->id, x->id_size, y->id, y->id_size);
}

static int compare_batches(const void *a, const void *b)
{
    const wb_claim *x = a, *y = b;
    if (x->duplicate_of != y->duplicate_of)
        return x->duplicate_of < y->duplicate_of ? -1 : 1;
    return compare_ids(a, b);
}

static void move(wb_apart_list *from, wb_apart_list *to)
{
    for (size_t i = 0; i < from->count; i++)
        add(to, from->claims[i].id, from->claims[i].id_size, from->claims[i].duplicate_of);
    qsort(to->claims, to->count, sizeof *to->claims, compare_batches);
    clear(from);
}

/* ---- the session ------------------------------------------------------------------------ */

void wb_apart_init(wb_apart *apart, wb_dependency *server)
{
    memset(apart, 0, sizeof *apart);
    apart->server.dependency = server;
    wb_arena_init(&apart->done.ids, ARENA_BLOCK);
    wb_arena_init(&apart->remembered.ids, ARENA_BLOCK);
}

void wb_apart_free(wb_apart *apart)
{
    free(apart->done.claims);
    free(apart->remembered.claims);
    wb_arena_free(&apart->done.ids);
    wb_arena_free(&apart->remembered.ids);
}

void wb_apart_disconnect(wb_worker *w)
{
    if (w->apart.session)
        w->pipeline->apart_ops->close(w->apart.session);
    w->apart.session = NULL;
    w->apart.is_broken = 0;
}

int wb_apart_connect(wb_worker *w, wb_error *error)
{
    wb_pipeline *p = w->pipeline;
    if (w->apart.is_broken)
        wb_apart_disconnect(w);
    if (!p->apart_ops || w->apart.session)
        return WB_OK;
    wb_pace_take_turn(w, &w->apart.server);
    if (p->is_critical) { /* others may have its turn */
        wb_waiter_leave(&w->apart.server);
        return WB_NOT_CONNECTED;
    }
    int r = wb_persistence_open(p->apart_ops, p->apart, &w->apart.session, error);
    wb_tally_note(&w->tally, WB_TALLY_OPENED_STORE, r == WB_OK);
    if (wb_distrust_apart_waits(w, r, error))
        r = WB_NOT_CONNECTED;
    return wb_pace_wait_for_server(&w->apart.server, r, error);
}

/* What is in doubt is done again, which does no harm. A table that is not there any more is waited for. */
static int note(wb_worker *w, int result, const wb_error *error)
{
    const int is_lost = result == WB_NOT_CONNECTED || result == WB_IN_DOUBT;
    w->apart.is_broken |= is_lost;
    if (result == WB_OK)
        wb_distrust_apart_found(w);
    if (wb_distrust_apart_waits(w, result, error))
        return WB_RETRY;
    return is_lost ? WB_NOT_CONNECTED : result;
}

/* ---- what is done with ------------------------------------------------------------------ */

/* What failed keeps its record: its copy may come back from the error queue. So does a duplicate: whose it is looks
 * for the records of its own batch when a handler has ended the transaction (ended.c), and hands over its own. */
void wb_apart_add(wb_worker *w, const wb_item *item)
{
    if (!w->pipeline->apart_ops || item->verdict != WB_VERDICT_OPEN || item->is_control || item->is_passed ||
        item->leader || !item->id_size || (item->duplicate_of && !wb_bug("others_handed_over")))
        return;
    const uint64_t batch = item->duplicate_of ? item->duplicate_of : w->batch_number;
    add(&w->apart.done, item->id, item->id_size, batch);
    if (wb_bug("forgotten_before_remembered"))
        add(&w->apart.remembered, item->id, item->id_size, batch);
}

/* What the store or the outbox refuses here is the fault of no message that is in hand. */
static int blame_nobody(int result)
{
    return result == WB_REJECT ? WB_RETRY : result;
}

static int remember(wb_worker *w, wb_error *error)
{
    wb_apart_list *done = &w->apart.done;
    if (!done->count)
        return WB_OK;
    qsort(done->claims, done->count, sizeof *done->claims, compare_ids);
    wb_crash_point("before_remember");
    int r = note(w, w->pipeline->apart_ops->remember(w->apart.session, done->claims, done->count, error), error);
    if (r != WB_OK && !wb_bug("remember_failed"))
        return blame_nobody(r);
    wb_crash_point("after_remember");
    if (wb_bug("forgotten_before_remembered"))
        clear(done);
    else
        move(done, &w->apart.remembered);
    return WB_OK;
}

void wb_apart_fill(const wb_worker *w, wb_begin *begin)
{
    begin->forgotten = w->apart.remembered.claims;
    begin->forgotten_count = w->apart.remembered.count;
}

void wb_apart_forgotten(wb_worker *w)
{
    clear(&w->apart.remembered);
}

int wb_apart_settle(wb_worker *w, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    int r;
    if (!p->apart_ops || (!w->apart.done.count && !w->apart.remembered.count) || w->in_transaction ||
        !w->apart.session || !w->storage)
        return WB_OK;
    if ((r = remember(w, error)) != WB_OK || !w->apart.remembered.count)
        return r;
    r = wb_distrust(w, p->persistence_ops->forget(w->storage, w->apart.remembered.claims, w->apart.remembered.count, error),
                    error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    if (r == WB_OK)
        clear(&w->apart.remembered);
    return blame_nobody(r);
}

/* ---- whose id is known ------------------------------------------------------------------- */

/* Whose id the store has gives the claim back with the commit. */
static void apply(wb_worker *w, const wb_claim *asked, size_t count)
{
    for (size_t i = 0, next = 0; i < w->claim_count && next < count; i++) {
        if (w->claims[i].id != asked[next].id)
            continue;
        w->claims[i].duplicate_of = asked[next].duplicate_of;
        w->claimed[i]->is_passed = asked[next].duplicate_of != 0 && !wb_bug("known_recorded");
        next++;
    }
}

static int find(wb_worker *w, wb_error *error)
{
    wb_claim asked[w->claim_count + 1];
    size_t count = 0;
    for (size_t i = 0; i < w->claim_count; i++)
        if (!w->claims[i].duplicate_of)
            asked[count++] = w->claims[i];
    if (!count)
        return WB_OK;
    int r = note(w, w->pipeline->apart_ops->find(w->apart.session, asked, count, error), error);
    if (r == WB_OK)
        apply(w, asked, count);
    return blame_nobody(r);
}

int wb_apart_ask(wb_worker *w, wb_error *error)
{
    if (!w->pipeline->apart_ops)
        return WB_OK;
    int r = remember(w, error);
    return r == WB_OK ? find(w, error) : r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/pending.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugins/common/sql/transaction.h"

#define SWEEP "sweep"
#define CLEANUP "cleanup"

static wb_sql_value lock_for(const wb_sql_outbox *outbox, const char *purpose)
{
    return outbox->dialect->locks_by_purpose ? WB_SQL_BYTES(purpose, strlen(purpose))
                                             : WB_SQL_LOCK_FOR(purpose);
}

static int visit_rows(const wb_sql_driver *driver, wb_sql_answer *rows, wb_pending_fn visit,
                      void *argument)
{
    wb_sql_cell cells[2];
    int result = WB_OK;
    while (result == WB_OK && driver->fetch(rows, cells, 2)) {
        const wb_pending pending = {
            .struct_size = sizeof pending,
            .batch = driver->number(&cells[0]),
            .operations = cells[1].data,
            .operations_size = cells[1].size,
        };
        result = visit(argument, &pending);
    }
    return result;
}

int wb_sql_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                   wb_pending_fn visit, void *argument, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const wb_sql_value value = WB_SQL_LIST(WB_SQL_SOME_NUMBERS, batches, count);
    wb_sql_answer rows = { 0 };

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "read pending operations", error);
    if (!count)
        return WB_OK;
    driver->start(session);
    driver->queue(session, WB_SQL_PENDING, &value, 1, &rows);
    int result = wb_sql_run_outside(session, NULL);
    if (result != WB_OK)
        result = wb_sql_report(session, "read pending operations", error);
    else
        result = visit_rows(driver, &rows, visit, argument);
    driver->clear(&rows);
    return result;
}

/* ---- one instance at a time -------------------------------------------------------- */

static int is_ours(const wb_sql_driver *driver, wb_sql_answer *answer)
{
    wb_sql_cell cell;
    const int ours = driver->fetch(answer, &cell, 1) && driver->number(&cell) == 1;
    driver->clear(answer);
    return ours;
}

/* The connection's end would free it, too; a session whose lock is in doubt is given up. */
static int unlock(wb_storage_session *session, const char *purpose)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const wb_sql_value lock = lock_for(s->outbox, purpose);
    if (s->locks_in_transaction) {
        s->state = WB_SQL_OPEN;
        wb_sql_undo(session);
        return WB_OK;
    }
    driver->start(session);
    driver->queue(session, WB_SQL_UNLOCK, &lock, 1, NULL);
    return wb_sql_run_outside(session, NULL);
}

/* A walk along the pending rows, one in memory. */
typedef struct walk {
    uint64_t from;  /* the next row's number, at least */
    uint64_t found; /* the number of the row it came to, or `before` */
    uint64_t before;
    int is_ours; /* the lock */
    int ended;
    wb_pending_fn visit;
    void *argument;
} walk;

/* The walk goes on behind the row, whatever becomes of it. */
static int note_and_visit(void *argument, const wb_pending *pending)
{
    walk *w = argument;
    w->found = pending->batch;
    w->from = pending->batch + 1;
    w->ended = w->from == 0;
    return w->visit(w->argument, pending);
}

/* The first row comes in the round trip that takes the lock. */
static int ask_for_next(wb_storage_session *session, walk *w, uint64_t from, wb_sql_answer *ret_row)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_driver *driver = outbox->driver;
    const wb_sql_value lock = lock_for(outbox, SWEEP);
    const wb_sql_value range[] = { WB_SQL_NUMBER(from), WB_SQL_NUMBER(w->before) };
    wb_sql_answer locked = { 0 };

    driver->start(session);
    if (!w->is_ours)
        driver->queue(session, WB_SQL_LOCK, &lock, 1, &locked);
    driver->queue(session, WB_SQL_NEXT, range, 2, ret_row);
    int result = wb_sql_run_outside(session, NULL);
    w->is_ours = w->is_ours || is_ours(driver, &locked);
    return result;
}

static int step(wb_storage_session *session, walk *w, wb_error *error)
{
    wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    wb_sql_look look = wb_sql_gap_begin(&outbox->swept, w->from, outbox->host->now());
    wb_sql_answer row = { 0 };

    int result = ask_for_next(session, w, look.start, &row);
    look.ended = outbox->host->now();
    w->found = w->before;
    w->ended = 1;
    if (result != WB_OK)
        result = wb_sql_report(session, "sweep pending operations", error);
    else if (w->is_ours)
        result = visit_rows(outbox->driver, &row, note_and_visit, w);
    outbox->driver->clear(&row);
    look.reached = w->found;
    if (result == WB_OK && w->is_ours)
        wb_sql_gap_end(&outbox->swept, &look);
    return result;
}

static int walk_along(wb_storage_session *session, walk *w, size_t limit, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    int result = WB_OK;

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "sweep pending operations", error);
    if (w->from >= w->before)
        return WB_OK;
    for (size_t i = 0; i < limit && !w->ended && result == WB_OK; i++)
        result = step(session, w, error);
    if ((w->is_ours || s->locks_in_transaction) && s->state == WB_SQL_IDLE &&
        unlock(session, SWEEP) != WB_OK && result == WB_OK)
        result = wb_sql_report(session, "sweep pending operations", error);
    return result;
}

int wb_sql_sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                 void *argument, wb_error *error)
{
    walk w = { .before = before, .visit = visit, .argument = argument };
    return walk_along(session, &w, limit, error);
}

int wb_sql_next_pending(wb_storage_session *session, uint64_t after, uint64_t before,
                        wb_pending_fn visit, void *argument, wb_error *error)
{
    walk w = { .from = after + 1, .before = after < before ? before : 0, .visit = visit,
               .argument = argument };
    return walk_along(session, &w, 1, error);
}

/* ---- the row in hand -------------------------------------------------------------------- */

/* A lock of the session, of a name of its own: it lasts over what is done to the row, and keeps out
 * nobody but who asks for the same. */
static int can_lock_rows(const wb_sql_session *s)
{
    return !s->locks_in_transaction && s->outbox->statements[WB_SQL_LOCK];
}

/* Whoever had it before may have dispatched all of it: so the row is looked for behind the lock. */
static void queue_take(wb_storage_session *session, uint64_t batch, const char *released,
                       wb_sql_answer *ret_locked, wb_sql_answer *ret_row)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const wb_sql_value old = lock_for(s->outbox, released), new = lock_for(s->outbox, s->row_lock);
    const wb_sql_value row[] = { WB_SQL_NUMBER(batch), WB_SQL_NUMBER(batch + 1), WB_SQL_NUMBER(1),
                                 WB_SQL_NUMBER(1) };
    if (*released)
        driver->queue(session, WB_SQL_UNLOCK, &old, 1, NULL);
    if (*s->row_lock)
        driver->queue(session, WB_SQL_LOCK, &new, 1, ret_locked);
    if (batch)
        driver->queue(session, WB_SQL_HEADS, row, 4, ret_row);
}

int wb_sql_take_pending(wb_storage_session *session, uint64_t batch, int *ret_taken, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const int locks = can_lock_rows(s);
    wb_sql_answer locked = { 0 }, row = { 0 };
    char released[WB_SQL_ROW_LOCK_SIZE];
    wb_sql_cell cell;

    *ret_taken = WB_TAKEN_BY_OTHERS;
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "take a pending row", error);
    memcpy(released, s->row_lock, sizeof released);
    *s->row_lock = '\0';
    if (batch && locks)
        (void)snprintf(s->row_lock, sizeof s->row_lock, SWEEP " %" PRIu64, batch);
    driver->start(session);
    queue_take(session, batch, released, &locked, &row);
    int result = wb_sql_run_outside(session, NULL);
    const int ours = locks && is_ours(driver, &locked);
    if (result != WB_OK)
        result = wb_sql_report(session, "take a pending row", error);
    else if ((ours || !locks) && driver->fetch(&row, &cell, 1))
        *ret_taken = ours ? WB_TAKEN : WB_TAKEN_UNGUARDED;
    if (!ours)
        *s->row_lock = '\0';
    driver->clear(&row);
    return result;
}

/* ---- clean-up ------------------------------------------------------------------------ */

static int lock_clean_up(wb_storage_session *session, int *ret_ours)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_value lock = lock_for(outbox, CLEANUP);
    wb_sql_answer locked = { 0 };

    *ret_ours = 1;
    if (outbox->dialect->clean_up_locks)
        return WB_OK;
    outbox->driver->start(session);
    outbox->driver->queue(session, WB_SQL_LOCK, &lock, 1, &locked);
    int result = wb_sql_run_outside(session, NULL);
    *ret_ours = is_ours(outbox->driver, &locked);
    return result;
}

/* The highest of the batches that were answered, or 0; clears the answer. */
static uint64_t take_highest(const wb_sql_driver *driver, wb_sql_answer *batches)
{
    wb_sql_cell cell;
    uint64_t highest = 0;
    while (driver->fetch(batches, &cell, 1)) {
        const uint64_t batch = driver->number(&cell);
        highest = batch > highest ? batch : highest;
    }
    driver->clear(batches);
    return highest;
}

/* The records are deleted once the lock is known to be ours. */
static int delete_from(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit,
                       size_t *ret_deleted, uint64_t *ret_highest)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const int unlocks = !s->outbox->dialect->clean_up_locks;
    const wb_sql_value values[] = { WB_SQL_NUMBER(from), WB_SQL_NUMBER(before),
                                    WB_SQL_NUMBER(limit), lock_for(s->outbox, CLEANUP) };
    wb_sql_answer reach = { 0 };
    wb_sql_answer deleted = { 0 };

    driver->start(session);
    if (s->outbox->statements[WB_SQL_REACH])
        driver->queue(session, WB_SQL_REACH, values, 3, &reach);
    driver->queue(session, WB_SQL_CLEAN_UP, values, 4, &deleted);
    if (unlocks) {
        driver->queue_end(session);
        driver->queue(session, WB_SQL_UNLOCK, &values[3], 1, NULL);
    }
    int result = wb_sql_run_outside(session, NULL);
    *ret_deleted = (size_t)deleted.affected;
    *ret_highest = take_highest(driver, s->outbox->statements[WB_SQL_REACH] ? &reach : &deleted);
    driver->clear(&deleted);
    const wb_sql_failure failure = s->failure;
    if (result != WB_OK && unlocks && s->state == WB_SQL_IDLE)
        (void)unlock(session, CLEANUP);
    s->failure = failure;
    return result;
}

/* A full step ends among the records of its last batch. */
static int delete_old(wb_storage_session *session, uint64_t before, size_t limit,
                      size_t *ret_deleted)
{
    wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    wb_sql_look look = wb_sql_gap_begin(&outbox->cleaned, 0, outbox->host->now());
    uint64_t highest = 0;

    int result = delete_from(session, look.start, before, limit, ret_deleted, &highest);
    look.ended = outbox->host->now();
    look.goes_on = *ret_deleted == limit;
    look.reached = look.goes_on ? highest : before;
    if (result == WB_OK)
        wb_sql_gap_end(&outbox->cleaned, &look);
    return result;
}

int wb_sql_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                    size_t *ret_deleted, wb_error *error)
{
    int ours = 0;

    *ret_deleted = 0;
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "clean up", error);
    int result = wb_sql_look_ahead(session);
    if (result == WB_OK)
        result = lock_clean_up(session, &ours);
    if (result == WB_OK && ours)
        result = delete_old(session, before, limit, ret_deleted);
    return result == WB_OK ? WB_OK : wb_sql_report(session, "clean up", error);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: marks. What was dispatched goes, what was not stays, and the record
 * that the message was handled is not touched.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

static void deletes_the_row(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), "order-1", "one") ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "two"))
        return;
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
    wb_client_finds_pending(b, WB_BATCH(2), "two", 3);
    wb_client_finds_owner(b, "order-1", 7, WB_BATCH(1));
}

static void shrinks_the_row(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), "order-1", "one two three") ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "two"))
        return;
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), "t\0o", 3), WB_OK, "mark what remains");
    wb_client_finds_pending(b, WB_BATCH(1), "t\0o", 3);
    wb_client_finds_pending(b, WB_BATCH(2), "two", 3);
    wb_client_finds_owner(b, "order-1", 7, WB_BATCH(1));
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark the rest");
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
}

/* A row that was deleted must not come back because somebody knows less. */
static void twice_and_missing(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", "one"))
        return;
    for (int i = 0; i < 2; i++) {
        wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark again");
        wb_client_check(a, wb_client_mark(a, WB_BATCH(7), NULL, 0), WB_OK, "mark what is not there");
        wb_client_check(a, wb_client_mark(a, WB_BATCH(1), "x", 1), WB_OK, "shrink what is gone");
    }
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
    wb_client_finds_pending(a, WB_BATCH(7), NULL, 0);
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
}

static void several_at_once(wb_kit *kit)
{
    const wb_mark marks[] = { { WB_BATCH(2), NULL, 0 },
                              { WB_BATCH(9), NULL, 0 },
                              { WB_BATCH(1), "rest", 4 },
                              { WB_BATCH(8), "x", 1 },
                              { WB_BATCH(3), NULL, 0 } };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", "one") ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "two") ||
        !wb_client_stores(a, WB_BATCH(3), "order-3", "three"))
        return;
    int r = a->ops->mark(a->session, marks, 5, &a->error);
    wb_client_check(a, r, WB_OK, "mark several");
    wb_client_finds_pending(a, WB_BATCH(1), "rest", 4);
    for (uint64_t n = 2; n < 10; n++)
        wb_client_finds_pending(a, WB_BATCH(n), NULL, 0);
}

static void none_at_all(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", "one"))
        return;
    int r = a->ops->mark(a->session, NULL, 0, &a->error);
    wb_client_check(a, r, WB_OK, "mark nothing");
    wb_client_finds_pending(a, WB_BATCH(1), "one", 3);
}

/* ---- marks in begin() -------------------------------------------------------------------- */

static int roll_back(wb_client *a)
{
    return wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

static int close_session(wb_client *a)
{
    wb_client_close(a);
    return 1;
}

static int commit(wb_client *a)
{
    return wb_client_check(a, wb_client_commit(a, WB_BATCH(3), "three", 5), WB_OK, "commit");
}

/* Looked at from another session, when the transaction is over. */
static void stand(wb_kit *kit, int (*end)(wb_client *))
{
    const wb_mark marks[] = { { WB_BATCH(1), NULL, 0 }, { WB_BATCH(2), "rest", 4 } };
    wb_claim claim = WB_CLAIM("order-3");
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), "order-1", "one") ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "two"))
        return;
    int r = wb_client_begin_marking(a, WB_BATCH(3), &claim, 1, marks, 2);
    if (!wb_client_check(a, r, WB_OK, "mark and begin") || !end(a))
        return;
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
    wb_client_finds_pending(b, WB_BATCH(2), "rest", 4);
    wb_client_finds_owner(b, "order-3", 7, end == commit ? WB_BATCH(3) : 0);
}

static void stand_after_rollback(wb_kit *kit)
{
    stand(kit, roll_back);
}

static void stand_after_close(wb_kit *kit)
{
    stand(kit, close_session);
}

static void stand_after_commit(wb_kit *kit)
{
    stand(kit, commit);
}

static void begin_without_batch_marks(wb_kit *kit)
{
    const wb_mark mark = { WB_BATCH(1), NULL, 0 };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", "one"))
        return;
    wb_client_check(a, wb_client_begin_marking(a, 0, NULL, 0, &mark, 1), WB_OK, "mark and begin");
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
}

/* A batch is marked where the next one claims an id of it again. */
static void mark_and_duplicate(wb_kit *kit)
{
    const wb_mark mark = { WB_BATCH(1), NULL, 0 };
    wb_claim claim = WB_CLAIM("order-1");
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", "one"))
        return;
    int r = wb_client_begin_marking(a, WB_BATCH(2), &claim, 1, &mark, 1);
    wb_client_check(a, r, WB_OK, "mark and begin");
    wb_kit_check(kit, claim.duplicate_of == WB_BATCH(1), "a mark has taken the record along");
    wb_client_check(a, wb_client_commit(a, WB_BATCH(2), NULL, 0), WB_OK, "commit");
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
}

static void a_thousand(wb_kit *kit)
{
    enum { MANY = 1000 };
    wb_mark *marks = wb_alloc_zero(MANY, sizeof *marks);
    wb_claim claim = WB_CLAIM("order-3");
    wb_client *a = wb_client_open(kit, 0);
    wb_kit_defer(kit, free, marks);
    for (size_t i = 0; i < MANY; i++)
        marks[i].batch = WB_BATCH(i);
    if (!a || !wb_client_stores(a, WB_BATCH(MANY - 1), "order-1", "one") ||
        !wb_client_stores(a, WB_BATCH(MANY), "order-2", "two"))
        return;
    int r = wb_client_begin_marking(a, WB_BATCH(MANY + 1), &claim, 1, marks, MANY);
    wb_client_check(a, r, WB_OK, "mark a thousand and begin");
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
    wb_client_finds_pending(a, WB_BATCH(MANY - 1), NULL, 0);
    wb_client_finds_pending(a, WB_BATCH(MANY), "two", 3);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a mark deletes the pending row and keeps the record", OUTBOX, deletes_the_row },
    { "a mark with a rest shrinks the pending row", OUTBOX, shrinks_the_row },
    { "marking twice, or what is not there, changes nothing", OUTBOX, twice_and_missing },
    { "several marks, each as it is meant", OUTBOX, several_at_once },
    { "marking nothing is no error", OUTBOX, none_at_all },
    { "marks made in begin() stand after a rollback", OUTBOX, stand_after_rollback },
    { "marks made in begin() stand when the session is closed", OUTBOX, stand_after_close },
    { "marks made in begin() stand after a commit", OUTBOX, stand_after_commit },
    { "begin() makes marks without a batch, too", OUTBOX, begin_without_batch_marks },
    { "begin() may mark the batch of which it finds a duplicate", OUTBOX, mark_and_duplicate },
    { "begin() makes a thousand marks", OUTBOX, a_thousand },
};
const wb_kit_group wb_cases_marks = WB_KIT_GROUP(cases);

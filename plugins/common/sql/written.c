/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/written.h"

#include <string.h>

#include "plugins/common/sql/columns.h"
#include "plugins/common/sql/pending.h"
#include "plugins/common/sql/transaction.h"

#define FETCH "fetch what programs wrote"
#define SETTLE "remove what programs wrote and was sent"
#define WRITE "write a message"
#define CLAIM "claim a message"
#define COUNT "count what programs wrote"
#define TURN "written"
#define ROW_CELLS 10

static int is_one(const wb_sql_driver *driver, wb_sql_answer *answer)
{
    wb_sql_cell cell;
    const int is = driver->fetch(answer, &cell, 1) && driver->number(&cell) == 1;
    driver->clear(answer);
    return is;
}

/* A question that is answered with 1 or something else. */
static int ask(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values, size_t count,
               const char *action, int *ret_is, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    wb_sql_answer answer = { 0 };

    *ret_is = 0;
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, action, error);
    driver->start(session);
    const int answers_later = which == WB_SQL_WRITTEN_CLAIM && s->outbox->statements[WB_SQL_WRITTEN_CLAIMED];
    driver->queue(session, which, values, count, answers_later ? NULL : &answer);
    if (answers_later)
        driver->queue(session, WB_SQL_WRITTEN_CLAIMED, NULL, 0, &answer);
    const int result = wb_sql_run_outside(session, NULL);
    *ret_is = is_one(driver, &answer);
    return result == WB_OK ? WB_OK : wb_sql_report(session, action, error);
}

static int is_installed(wb_storage_session *session, int *ret_installed, wb_error *error)
{
    return ask(session, WB_SQL_WRITTEN_LOOK, NULL, 0, "look for the SQL interface", ret_installed, error);
}

/* ---- fetch ---------------------------------------------------------------------------- */

static wb_written_text text_of(const wb_sql_cell *cell)
{
    return (wb_written_text){ cell->data, cell->size };
}

static int visit_rows(const wb_sql_driver *driver, wb_sql_answer *rows, wb_written_fn visit, void *argument,
                      size_t *ret_count)
{
    wb_sql_cell cells[ROW_CELLS];
    int result = WB_OK;
    for (*ret_count = 0; result == WB_OK && driver->fetch(rows, cells, ROW_CELLS); (*ret_count)++) {
        const wb_written row = {
            .struct_size = sizeof row,
            .number = driver->number(&cells[0]),
            .form = driver->number(&cells[1]),
            .tries = driver->number(&cells[2]),
            .written = wb_sql_nanoseconds(driver->number(&cells[3])),
            .id = text_of(&cells[4]),
            .destination = text_of(&cells[5]),
            .type = text_of(&cells[6]),
            .headers = text_of(&cells[7]),
            .key = text_of(&cells[8]),
            .body = text_of(&cells[9]),
        };
        result = visit(argument, &row);
    }
    return result;
}

/* By itself: whoever waits for the turn is not to read what it would not be given. */
static int take_turn(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const wb_sql_value turn = WB_SQL_LOCK_FOR(TURN);
    wb_sql_answer locked = { 0 };

    if (s->has_turn)
        return WB_OK;
    driver->start(session);
    driver->queue(session, WB_SQL_LOCK, &turn, 1, &locked);
    const int result = wb_sql_run_outside(session, NULL);
    s->has_turn = is_one(driver, &locked) && result == WB_OK;
    return result;
}

static uint64_t take_number(const wb_sql_driver *driver, wb_sql_answer *answer)
{
    wb_sql_cell cell;
    const uint64_t number = driver->fetch(answer, &cell, 1) ? driver->number(&cell) : 0;
    driver->clear(answer);
    return number;
}

/* The last number first: what is committed between the two is above it. */
static int ask_for_rows(wb_storage_session *session, wb_written_fetch *fetch, wb_sql_answer *ret_rows)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const int wants_last = WB_HAS(fetch, wb_written_fetch, wants_last);
    const uint64_t behind = WB_HAS(fetch, wb_written_fetch, behind) ? fetch->behind : 0;
    const wb_sql_value values[] = { WB_SQL_NUMBER(fetch->limit), WB_SQL_NUMBER(WB_WRITTEN_FETCH_BYTES),
                                    WB_SQL_NUMBER(fetch->form), WB_SQL_NUMBER(behind) };
    wb_sql_answer last = { 0 };

    driver->start(session);
    if (s->outbox->statements[WB_SQL_PLAN])
        driver->queue(session, WB_SQL_PLAN, NULL, 0, NULL);
    if (wants_last)
        driver->queue(session, WB_SQL_WRITTEN_LAST, NULL, 0, &last);
    driver->queue(session, WB_SQL_WRITTEN_FETCH, values, 4, ret_rows);
    const int result = wb_sql_run_outside(session, NULL);
    s->has_turn = result == WB_OK;
    if (wants_last)
        fetch->last = take_number(driver, &last);
    return result;
}

/* The lock goes with the transaction. */
static void leave_transaction(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    if (!s->locks_in_transaction || s->state != WB_SQL_IDLE)
        return;
    s->state = WB_SQL_OPEN;
    s->has_turn = 0;
    wb_sql_undo(session);
}

static int fetch(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument,
                 wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    wb_sql_answer rows = { 0 };
    size_t count = 0;

    fetch->has_turn = 0;
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, FETCH, error);
    leave_transaction(session); /* of a fetch that was not settled */
    int result = take_turn(session);
    if (result == WB_OK && s->has_turn)
        result = ask_for_rows(session, fetch, &rows);
    fetch->has_turn = s->has_turn;
    if (result != WB_OK)
        result = wb_sql_report(session, FETCH, error);
    else if (s->has_turn)
        result = visit_rows(s->outbox->driver, &rows, visit, argument, &count);
    s->outbox->driver->clear(&rows);
    if (!count)
        leave_transaction(session);
    return result;
}

/* ---- settle ---------------------------------------------------------------------------- */

static void queue_rest(wb_storage_session *session, const wb_written_rest *rest)
{
    const wb_sql_value values[] = { WB_SQL_NUMBER(rest->number), WB_SQL_NUMBER(wb_sql_round_up(rest->pause)),
                                    WB_SQL_NUMBER(rest->is_tried != 0),
                                    WB_SQL_BYTES(rest->reason, rest->reason ? strlen(rest->reason) : 0) };
    wb_sql_of(session)->outbox->driver->queue(session, WB_SQL_WRITTEN_POSTPONE, values, 4, NULL);
}

static void queue_removed(wb_storage_session *session, const uint64_t *removed, size_t count)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    for (size_t i = 0; i < count; i += most < count - i ? most : count - i) {
        const wb_sql_value numbers =
            WB_SQL_LIST(WB_SQL_SOME_NUMBERS, removed + i, most < count - i ? most : count - i);
        outbox->driver->queue(session, WB_SQL_WRITTEN_REMOVE, &numbers, 1, NULL);
    }
}

/* The transaction of the fetch is open where the turn is the transaction's. */
static int run_settle(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    if (!s->locks_in_transaction || !s->has_turn)
        return wb_sql_run_outside(session, "settle_sent");
    s->has_turn = 0;
    s->state = WB_SQL_OPEN;
    driver->queue(session, WB_SQL_COMMIT, NULL, 0, NULL);
    const int result = driver->run(session, "settle_sent");
    if (result != WB_OK)
        wb_sql_undo(session);
    else if (s->state == WB_SQL_OPEN)
        s->state = WB_SQL_IDLE;
    return result;
}

static int settle(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                  const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, SETTLE, error);
    if (!removed_count && !rest_count) {
        if (s->has_turn)
            leave_transaction(session);
        return WB_OK;
    }
    s->outbox->driver->start(session);
    queue_removed(session, removed, removed_count);
    const char *rest = (const char *)rests; /* a newer host's may be larger than ours */
    for (size_t i = 0; i < rest_count; i++, rest += rests->struct_size)
        queue_rest(session, (const wb_written_rest *)(const void *)rest);
    return run_settle(session) == WB_OK ? WB_OK : wb_sql_report(session, SETTLE, error);
}

/* ---- as programs do ----------------------------------------------------------------------- */

static wb_sql_value value_of(wb_written_text text)
{
    return WB_SQL_BYTES(text.data, text.size);
}

static int write_row(wb_storage_session *session, const wb_written *row, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_value values[] = { value_of(row->destination), value_of(row->type), value_of(row->body),
                                    value_of(row->headers), value_of(row->key) };
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, WRITE, error);
    s->outbox->driver->start(session);
    s->outbox->driver->queue(session, row->destination.data ? WB_SQL_WRITTEN_SEND : WB_SQL_WRITTEN_PUBLISH,
                             row->destination.data ? values : values + 1, row->destination.data ? 5 : 4, NULL);
    return wb_sql_run_outside(session, NULL) == WB_OK ? WB_OK : wb_sql_report(session, WRITE, error);
}

static int claim(wb_storage_session *session, wb_written_text id, int *ret_is_new, wb_error *error)
{
    const wb_sql_value value = value_of(id);
    return ask(session, WB_SQL_WRITTEN_CLAIM, &value, 1, CLAIM, ret_is_new, error);
}

/* ---- for people --------------------------------------------------------------------------- */

static int count_rows(wb_storage_session *session, size_t limit, uint64_t *ret_count, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value most = WB_SQL_NUMBER(limit);
    wb_sql_answer row = { 0 };

    *ret_count = 0;
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, COUNT, error);
    driver->start(session);
    driver->queue(session, WB_SQL_WRITTEN_COUNT, &most, 1, &row);
    const int result = wb_sql_run_outside(session, NULL);
    *ret_count = take_number(driver, &row);
    return result == WB_OK ? WB_OK : wb_sql_report(session, COUNT, error);
}

const wb_written_ops wb_sql_written = {
    .struct_size = sizeof(wb_written_ops),
    .is_installed = is_installed,
    .fetch = fetch,
    .settle = settle,
    .write = write_row,
    .claim = claim,
    .count = count_rows,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/positions.h"

#include <stdlib.h>

#include "plugins/common/sql/transaction.h"

/* ---- moving on ---------------------------------------------------------------------- */

size_t wb_sql_count_positions(const wb_begin *begin)
{
    return WB_HAS(begin, wb_begin, position_count) ? begin->position_count : 0;
}

/* Locked before it is read: whoever had it before has committed or rolled back by then. */
static void queue_one(wb_storage_session *session, const wb_position *position, uint64_t batch, wb_sql_answer *row)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value values[] = { WB_SQL_BYTES(position->partition, position->partition_size),
                                    WB_SQL_NUMBER(position->next), WB_SQL_NUMBER(batch) };
    driver->queue(session, WB_SQL_POSITION_LOCK, values, 1, row);
    driver->queue(session, WB_SQL_POSITION_MOVE, values, 3, NULL);
}

int wb_sql_queue_positions(wb_storage_session *session, const wb_begin *begin, wb_sql_found_positions *found)
{
    found->count = wb_sql_count_positions(begin);
    found->rows = found->count ? calloc(found->count, sizeof *found->rows) : NULL;
    if (found->count && !found->rows) {
        found->count = 0;
        return -1;
    }
    for (size_t i = 0; i < found->count; i++)
        queue_one(session, &begin->positions[i], begin->batch, &found->rows[i]);
    return 0;
}

void wb_sql_clear_positions(wb_storage_session *session, wb_sql_found_positions *found)
{
    for (size_t i = 0; i < found->count; i++)
        wb_sql_of(session)->outbox->driver->clear(&found->rows[i]);
    free(found->rows);
    *found = (wb_sql_found_positions){ 0 };
}

/* @return 0 when there is no row. */
static int take(wb_storage_session *session, wb_sql_answer *row, wb_position *position)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_cell cells[2];
    position->found = position->batch = 0;
    if (!driver->fetch(row, cells, 2))
        return 0;
    position->found = driver->number(&cells[0]);
    position->batch = driver->number(&cells[1]);
    return 1;
}

/* Of two who make it one waits; then it is there for both. */
static int make(wb_storage_session *session, wb_position *position, uint64_t batch)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value key = WB_SQL_BYTES(position->partition, position->partition_size);
    wb_sql_answer row = { 0 };
    driver->start(session);
    driver->queue(session, WB_SQL_POSITION_MAKE, &key, 1, NULL);
    queue_one(session, position, batch, &row);
    int result = driver->run(session, NULL);
    if (result == WB_OK && !take(session, &row, position))
        result = wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM,
                             "the row of a partition was removed while it was made: were positions reset?");
    driver->clear(&row);
    return result;
}

int wb_sql_settle_positions(wb_storage_session *session, wb_begin *begin, wb_sql_found_positions *found)
{
    int result = WB_OK;
    for (size_t i = 0; i < found->count && result == WB_OK; i++)
        if (!take(session, &found->rows[i], &begin->positions[i]))
            result = make(session, &begin->positions[i], begin->batch);
    return result;
}

int wb_sql_claim_positions(wb_storage_session *session, wb_begin *begin)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_found_positions found;
    if (!wb_sql_count_positions(begin))
        return WB_OK;
    driver->start(session);
    if (wb_sql_queue_positions(session, begin, &found) != 0)
        return wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
    int result = driver->run(session, NULL);
    if (result == WB_OK)
        result = wb_sql_settle_positions(session, begin, &found);
    wb_sql_clear_positions(session, &found);
    return result;
}

/* ---- setting back ------------------------------------------------------------------- */

void wb_sql_queue_set_back(wb_storage_session *session, const wb_commit *commit)
{
    const size_t count = WB_HAS(commit, wb_commit, position_count) ? commit->position_count : 0;
    for (size_t i = 0; i < count; i++) {
        const wb_position *back = &commit->positions[i];
        const wb_sql_value values[] = { WB_SQL_BYTES(back->partition, back->partition_size), WB_SQL_NUMBER(back->next),
                                        WB_SQL_NUMBER(commit->batch), WB_SQL_NUMBER(back->batch) };
        wb_sql_of(session)->outbox->driver->queue(session, WB_SQL_POSITION_BACK, values, 4, NULL);
    }
}

/* ---- all of them -------------------------------------------------------------------- */

static int visit_all(const wb_sql_driver *driver, wb_sql_answer *rows, wb_position_fn visit, void *argument)
{
    wb_sql_cell cells[3];
    int result = WB_OK;
    while (result == WB_OK && driver->fetch(rows, cells, 3)) {
        const wb_position position = { .partition = cells[0].data, .partition_size = cells[0].size,
                                       .found = driver->number(&cells[1]), .batch = driver->number(&cells[2]) };
        result = visit(argument, &position);
    }
    return result;
}

int wb_sql_positions(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    wb_sql_answer rows = { 0 };
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "read positions", error);
    driver->start(session);
    driver->queue(session, WB_SQL_POSITIONS, NULL, 0, &rows);
    int result = wb_sql_run_outside(session, NULL);
    if (result != WB_OK)
        result = wb_sql_report(session, "read positions", error);
    else
        result = visit_all(driver, &rows, visit, argument);
    driver->clear(&rows);
    return result;
}

int wb_sql_forget_positions(wb_storage_session *session, size_t *ret_count, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    wb_sql_answer gone = { 0 };
    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "forget positions", error);
    s->outbox->driver->start(session);
    s->outbox->driver->queue(session, WB_SQL_POSITIONS_FORGET, NULL, 0, &gone);
    if (wb_sql_run_outside(session, NULL) != WB_OK)
        return wb_sql_report(session, "forget positions", error);
    *ret_count = (size_t)gone.affected;
    return WB_OK;
}

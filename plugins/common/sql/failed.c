/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/failed.h"

#include <string.h>

#include "plugins/common/sql/columns.h"
#include "plugins/common/sql/transaction.h"

#define PUT "keep a failed message"
#define TURN "change a failed message"
#define GET "read a failed message"
#define LIST "list failed messages"
#define CLEAN_UP "remove failed messages"

/* Rows of a page: their summaries are in memory together. */
#define PAGE 500
#define CELLS 7

/* A statement by itself, or in the transaction that is open. */
static int ask(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values, size_t count,
               wb_sql_answer *ret_answer)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    driver->start(session);
    if (s->state != WB_SQL_OPEN) {
        driver->queue(session, which, values, count, ret_answer);
        return wb_sql_run_outside(session, NULL);
    }
    wb_sql_queue_due_begin(session);
    driver->queue(session, which, values, count, ret_answer);
    const int result = driver->run(session, NULL);
    if (result == WB_OK)
        s->begin_is_due = 0; /* it went with this one */
    return result;
}

/* @return WB_OK with how many rows it affected. */
static int change(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values, size_t count,
                  const char *doing, uint64_t *ret_affected, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const int is_alone = s->state == WB_SQL_IDLE;
    wb_sql_answer answer = { 0 };
    *ret_affected = 0;
    if (s->state == WB_SQL_LOST)
        return wb_sql_unusable(session, doing, error);
    const int result = ask(session, which, values, count, &answer);
    *ret_affected = result == WB_OK ? answer.affected : 0;
    s->outbox->driver->clear(&answer);
    if (result == WB_OK)
        return WB_OK;
    return is_alone ? wb_sql_report_doubt(session, doing, error) : wb_sql_report(session, doing, error);
}

static int put(wb_storage_session *session, const wb_failed *failed, wb_error *error)
{
    uint64_t ignored;
    const wb_sql_value values[] = {
        WB_SQL_BYTES(failed->key, failed->key_size), WB_SQL_NUMBER(wb_sql_round_up(failed->failed_at)),
        WB_SQL_NUMBER(wb_sql_round_up(failed->changed_at)), WB_SQL_BYTES(failed->summary, failed->summary_size),
        WB_SQL_BYTES(failed->message, failed->message_size)
    };
    return change(session, WB_SQL_FAILED_PUT, values, 5, PUT, &ignored, error);
}

static int turn(wb_storage_session *session, const wb_failed_turn *turn, int *ret_was, wb_error *error)
{
    uint64_t affected;
    const wb_sql_value values[] = { WB_SQL_BYTES(turn->key, turn->key_size), WB_SQL_NUMBER((uint64_t)turn->from),
                                    WB_SQL_NUMBER((uint64_t)turn->to), WB_SQL_NUMBER(wb_sql_round_up(turn->now)) };
    const int result = change(session, WB_SQL_FAILED_TURN, values, 4, TURN, &affected, error);
    *ret_was = affected != 0;
    return result;
}

static int discard(wb_storage_session *session, const char *key, size_t key_size, int32_t status, int *ret_was,
                   wb_error *error)
{
    uint64_t affected;
    const wb_sql_value values[] = { WB_SQL_BYTES(key, key_size), WB_SQL_NUMBER((uint64_t)status) };
    const int result = change(session, WB_SQL_FAILED_DISCARD, values, 2, TURN, &affected, error);
    *ret_was = affected != 0;
    return result;
}

static int clean_up(wb_storage_session *session, int64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    uint64_t affected;
    const wb_sql_value values[] = { WB_SQL_NUMBER(wb_sql_round_up(before)), WB_SQL_NUMBER(limit) };
    const int result = change(session, WB_SQL_FAILED_CLEAN_UP, values, 2, CLEAN_UP, &affected, error);
    *ret_deleted = (size_t)affected;
    return result;
}

/* ---- what is there -------------------------------------------------------------------------- */

static wb_failed failed_of(const wb_sql_driver *driver, const wb_sql_cell cells[CELLS])
{
    return (wb_failed){ .struct_size = sizeof(wb_failed),
                        .key = cells[0].data,
                        .key_size = cells[0].size,
                        .status = (int32_t)driver->number(&cells[1]),
                        .attempts = (uint32_t)driver->number(&cells[2]),
                        .failed_at = wb_sql_nanoseconds(driver->number(&cells[3])),
                        .changed_at = wb_sql_nanoseconds(driver->number(&cells[4])),
                        .summary = cells[5].data,
                        .summary_size = cells[5].size,
                        .message = cells[6].data,
                        .message_size = cells[6].size };
}

static int get(wb_storage_session *session, const char *key, size_t key_size, wb_failed_fn visit, void *argument,
               wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value value = WB_SQL_BYTES(key, key_size);
    wb_sql_answer row = { 0 };
    wb_sql_cell cells[CELLS];
    if (wb_sql_of(session)->state == WB_SQL_LOST)
        return wb_sql_unusable(session, GET, error);
    int result = ask(session, WB_SQL_FAILED_GET, &value, 1, &row);
    if (result != WB_OK) {
        result = wb_sql_report(session, GET, error);
    } else if (driver->fetch(&row, cells, CELLS)) {
        const wb_failed failed = failed_of(driver, cells);
        result = visit(argument, &failed);
    }
    driver->clear(&row);
    return result;
}

/* Behind the last row that was visited. */
typedef struct place {
    uint64_t failed_at;
    char key[WB_FAILED_KEY_MAX];
    size_t key_size;
} place;

static int ask_page(wb_storage_session *session, const wb_failed_filter *filter, const place *at, wb_sql_answer *page)
{
    const wb_sql_value values[] = {
        WB_SQL_NUMBER((uint64_t)filter->status), WB_SQL_NUMBER(at->failed_at), WB_SQL_BYTES(at->key, at->key_size),
        WB_SQL_NUMBER(filter->before ? wb_sql_round_up(filter->before) : WB_SQL_NEVER), WB_SQL_NUMBER(PAGE)
    };
    return ask(session, WB_SQL_FAILED_LIST, values, 5, page);
}

static int visit_page(const wb_sql_driver *driver, wb_sql_answer *page, place *at, wb_failed_fn visit, void *argument,
                      size_t *ret_rows)
{
    wb_sql_cell cells[CELLS];
    int result = WB_OK;
    *ret_rows = 0;
    while (result == WB_OK && driver->fetch(page, cells, CELLS)) {
        wb_failed failed = failed_of(driver, cells);
        failed.message = NULL;
        failed.message_size = 0;
        at->failed_at = driver->number(&cells[3]);
        at->key_size = cells[0].size < sizeof at->key ? cells[0].size : sizeof at->key;
        memcpy(at->key, cells[0].data, at->key_size);
        ++*ret_rows;
        result = visit(argument, &failed);
    }
    return result;
}

static int list(wb_storage_session *session, const wb_failed_filter *filter, wb_failed_fn visit, void *argument,
                wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    place at = { .failed_at = wb_sql_round_up(filter->from) };
    size_t rows = PAGE;
    int result = WB_OK;
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, LIST, error);
    while (result == WB_OK && rows == PAGE) {
        wb_sql_answer page = { 0 };
        result = ask_page(session, filter, &at, &page);
        result = result == WB_OK ? visit_page(driver, &page, &at, visit, argument, &rows)
                                 : wb_sql_report(session, LIST, error);
        driver->clear(&page);
    }
    return result;
}

const wb_failed_ops wb_sql_failed = {
    .struct_size = sizeof(wb_failed_ops),
    .put = put,
    .turn = turn,
    .discard = discard,
    .get = get,
    .list = list,
    .clean_up = clean_up,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/delayed.h"

#include <stdlib.h>

#include "plugins/common/sql/transaction.h"

/* Bytes of one statement, as long as it has several rows: with hexadecimal digits and keys it
 * fits into 1 MiB. */
#define STATEMENT_BYTES ((size_t)256 * 1024)

#define STORE "store delayed messages"

static void queue_plan(wb_storage_session *session)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    if (outbox->statements[WB_SQL_PLAN])
        outbox->driver->queue(session, WB_SQL_PLAN, NULL, 0, NULL);
}

void wb_sql_delayed_start(wb_storage_session *session)
{
    wb_sql_of(session)->outbox->driver->start(session);
    queue_plan(session);
}

void wb_sql_delayed_begin(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    s->outbox->driver->start(session);
    s->state = WB_SQL_OPEN;
    s->outbox->driver->queue_begin(session, NULL);
    queue_plan(session);
}

int wb_sql_delayed_commit(wb_storage_session *session, const char *crash_point)
{
    wb_sql_session *s = wb_sql_of(session);
    s->outbox->driver->queue(session, WB_SQL_COMMIT, NULL, 0, NULL);
    const int result = s->outbox->driver->run(session, crash_point);
    if (result == WB_OK && s->state == WB_SQL_OPEN)
        s->state = WB_SQL_IDLE;
    else if (result != WB_OK)
        wb_sql_undo(session);
    return result;
}

int wb_sql_delayed_no_memory(wb_storage_session *session)
{
    return wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
}

/* What a transport sends in a transaction of its own could not be stored in it. */
static int initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    const wb_host *host = ((const wb_sql_outbox *)(void *)persistence)->host;
    if (mode == WB_MODE_NONE || mode == WB_MODE_RECEIVE_ONLY)
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                      "the delayed message store is no part of a transport's transaction: it works "
                      "with transaction modes \"none\" and \"receive_only\"");
}

/* ---- store ------------------------------------------------------------------------- */

static size_t bytes_of(const wb_sql_columns *columns, size_t i)
{
    return columns->ids[i].size + columns->destinations[i].size + columns->operations[i].size;
}

/* The rows from `first` that one statement holds: one at least. */
static size_t count_fitting(const wb_sql_outbox *outbox, const wb_sql_columns *columns,
                            size_t first)
{
    size_t bytes = bytes_of(columns, first);
    size_t count = 1;
    while (first + count < columns->count && count < outbox->dialect->keys_max &&
           (bytes += bytes_of(columns, first + count)) <= STATEMENT_BYTES)
        count++;
    return count;
}

void wb_sql_delayed_queue(wb_storage_session *session, const wb_sql_columns *columns)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    size_t count;
    for (size_t i = 0; i < columns->count; i += count) {
        wb_sql_value values[5];
        count = count_fitting(outbox, columns, i);
        wb_sql_columns_keys(columns, i, count, values);
        values[3] = WB_SQL_LIST(WB_SQL_SOME_NUMBERS, columns->due + i, count);
        values[4] = WB_SQL_LIST(WB_SQL_SOME_BYTES, columns->operations + i, count);
        outbox->driver->queue(session, WB_SQL_DELAY, values, 5, NULL);
    }
}

int wb_sql_delayed_fit(wb_storage_session *session, const wb_sql_columns *columns)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    for (size_t i = 0; i < columns->count; i++)
        if (columns->operations[i].size > outbox->dialect->operations_max)
            return wb_sql_note(session, WB_REJECT, WB_CAUSE_TOO_LARGE, WB_SQL_NO_ITEM,
                               "a row does not hold one of the messages that are due later");
    return WB_OK;
}

int wb_sql_delayed_columns(const wb_delayed *messages, size_t count, wb_sql_columns *columns)
{
    const char *message = (const char *)messages;
    if (wb_sql_columns_init(columns, count) != 0)
        return -1;
    for (size_t i = 0; i < count; i++, message += messages->struct_size)
        wb_sql_columns_add_message(columns, (const wb_delayed *)(const void *)message);
    return 0;
}

/* All of them are stored, or none. */
static int store_columns(wb_storage_session *session, const wb_sql_columns *columns)
{
    const int result = wb_sql_delayed_fit(session, columns);
    if (result != WB_OK)
        return result;
    wb_sql_delayed_start(session);
    wb_sql_delayed_queue(session, columns);
    return wb_sql_run_outside(session, "store_sent");
}

static int store(wb_storage_session *session, const wb_delayed *messages, size_t count,
                 wb_error *error)
{
    wb_sql_columns columns;
    int result;

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, STORE, error);
    if (!count)
        return WB_OK;
    result = wb_sql_delayed_columns(messages, count, &columns) == 0 ? store_columns(session, &columns)
                                                                     : wb_sql_delayed_no_memory(session);
    wb_sql_columns_free(&columns);
    return result == WB_OK ? WB_OK : wb_sql_report_doubt(session, STORE, error);
}

/* ---- when is the next due? ------------------------------------------------------------ */

static int next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer answer = { 0 };
    wb_sql_cell cells[2];

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "look for the next delayed message", error);
    wb_sql_delayed_start(session);
    driver->queue(session, WB_SQL_NEXT_DUE, NULL, 0, &answer);
    int result = wb_sql_run_outside(session, NULL);
    if (result == WB_OK && driver->fetch(&answer, cells, 2)) {
        *ret_due = wb_sql_nanoseconds(driver->number(&cells[0]));
        *ret_now = wb_sql_nanoseconds(driver->number(&cells[1]));
    }
    driver->clear(&answer);
    return result == WB_OK ? WB_OK
                           : wb_sql_report(session, "look for the next delayed message", error);
}

/* ---- rows ------------------------------------------------------------------------------ */

wb_delayed wb_sql_delayed_of(const wb_sql_driver *driver, const wb_sql_cell *cells)
{
    return (wb_delayed){
        .struct_size = sizeof(wb_delayed),
        .id = cells[0].data,
        .id_size = cells[0].size,
        .destination = cells[1].data,
        .destination_size = cells[1].size,
        .retries = (uint32_t)driver->number(&cells[2]),
        .failures = (uint32_t)driver->number(&cells[3]),
        .due = wb_sql_nanoseconds(driver->number(&cells[4])),
        .operation = cells[5].data,
        .operation_size = cells[5].size,
    };
}

const wb_delayed_ops wb_sql_delayed = {
    .struct_size = sizeof(wb_delayed_ops),
    .initialize = initialize,
    .store = store,
    .next = next,
    .fetch = wb_sql_delayed_fetch,
    .remove = wb_sql_delayed_remove,
    .increment_failure_count = wb_sql_delayed_increment,
    .release = wb_sql_delayed_release,
    .list = wb_sql_delayed_list,
    .cancel = wb_sql_delayed_cancel,
    .reschedule = wb_sql_delayed_reschedule,
    .begin_fetch = wb_sql_delayed_begin_fetch,
    .end_fetch = wb_sql_delayed_end_fetch,
};

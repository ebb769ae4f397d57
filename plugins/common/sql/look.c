/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/look.h"

#include "plugins/common/sql/transaction.h"

#define STATS "look at the outbox"
#define LIST "list pending operations"
/* Counted in milliseconds; what is more is estimated. */
#define COUNTED_MAX 100000
/* A page of heads, and of rows: the next page begins behind it, so that nothing is held on the
 * server while a row is visited. */
#define PAGE_BYTES ((size_t)1 << 20)
#define PAGE_ROWS 1000

/* ---- in numbers ------------------------------------------------------------------------ */

static int64_t bytes_of(const wb_sql_driver *driver, const wb_sql_cell *cell)
{
    return cell->data ? (int64_t)driver->number(cell) : -1;
}

/* An estimate below what was counted is one of an earlier time. */
static void take_records(const wb_sql_driver *driver, const wb_sql_cell *cells, wb_outbox_stats *stats)
{
    const uint64_t estimated = driver->number(&cells[1]);
    stats->records = driver->number(&cells[0]);
    stats->records_are = WB_COUNT_EXACT;
    if (stats->is_exact || stats->records <= COUNTED_MAX)
        return;
    stats->records_are = estimated > stats->records ? WB_COUNT_ESTIMATED : WB_COUNT_AT_LEAST;
    if (estimated > stats->records)
        stats->records = estimated;
}

static void take_stats(const wb_sql_driver *driver, wb_sql_answer *row, wb_outbox_stats *stats)
{
    wb_sql_cell cells[6];
    if (!driver->fetch(row, cells, 6))
        return;
    take_records(driver, cells, stats);
    stats->oldest_record = driver->number(&cells[2]);
    stats->newest_record = driver->number(&cells[3]);
    stats->record_bytes = bytes_of(driver, &cells[4]);
    stats->pending_bytes = bytes_of(driver, &cells[5]);
}

int wb_sql_stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value limit = WB_SQL_NUMBER(stats->is_exact ? INT64_MAX : COUNTED_MAX + 1);
    wb_sql_answer row = { 0 };

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, STATS, error);
    driver->start(session);
    driver->queue(session, WB_SQL_STATS, &limit, 1, &row);
    int result = wb_sql_run_outside(session, NULL);
    if (result == WB_OK)
        take_stats(driver, &row, stats);
    else
        result = wb_sql_report(session, STATS, error);
    driver->clear(&row);
    return result;
}

int wb_sql_count_records(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit,
                         uint64_t *ret_count, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value values[] = { WB_SQL_NUMBER(from), WB_SQL_NUMBER(before),
                                    WB_SQL_NUMBER(limit) };
    wb_sql_answer row = { 0 };
    wb_sql_cell count;

    *ret_count = 0;
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, STATS, error);
    driver->start(session);
    driver->queue(session, WB_SQL_COUNT_RECORDS, values, 3, &row);
    int result = wb_sql_run_outside(session, NULL);
    if (result != WB_OK)
        result = wb_sql_report(session, STATS, error);
    else if (driver->fetch(&row, &count, 1))
        *ret_count = driver->number(&count);
    driver->clear(&row);
    return result;
}

/* ---- rows ------------------------------------------------------------------------------- */

typedef struct listing {
    const wb_pending_filter *filter;
    uint64_t from;   /* the next number of interest; 0 behind the largest one there is */
    uint64_t before; /* the first that is of none */
    size_t page;   /* rows a page may have */
    size_t rest;   /* rows that may still be visited */
    wb_pending_fn visit;
    void *argument;
} listing;

static size_t page_of(const wb_pending_filter *filter)
{
    if (!filter->head)
        return 1;
    return filter->head < PAGE_BYTES / PAGE_ROWS ? PAGE_ROWS : PAGE_BYTES / filter->head + 1;
}

static void queue_page(wb_storage_session *session, const listing *l, size_t rows, wb_sql_answer *ret_rows)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value values[] = { WB_SQL_NUMBER(l->from), WB_SQL_NUMBER(l->before),
                                    WB_SQL_NUMBER(rows), WB_SQL_NUMBER(l->filter->head) };
    driver->start(session);
    if (l->filter->head)
        driver->queue(session, WB_SQL_HEADS, values, 4, ret_rows);
    else
        driver->queue(session, WB_SQL_NEXT, values, 2, ret_rows);
}

/* *ret_count: the rows of the page. */
static int visit_page(const wb_sql_driver *driver, listing *l, wb_sql_answer *rows, size_t *ret_count)
{
    wb_sql_cell cells[2];
    int result = WB_OK;
    *ret_count = 0;
    while (result == WB_OK && driver->fetch(rows, cells, 2)) {
        const wb_pending pending = { .struct_size = sizeof pending, .batch = driver->number(&cells[0]),
                                     .operations = cells[1].data, .operations_size = cells[1].size };
        ++*ret_count;
        l->from = pending.batch + 1;
        l->rest--;
        result = l->visit(l->argument, &pending);
    }
    return result;
}

static int list_page(wb_storage_session *session, listing *l, int *ret_goes_on, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const size_t rows = l->rest < l->page ? l->rest : l->page;
    wb_sql_answer answer = { 0 };
    size_t count = 0;

    queue_page(session, l, rows, &answer);
    int result = wb_sql_run_outside(session, NULL);
    if (result == WB_OK)
        result = visit_page(driver, l, &answer, &count);
    else
        result = wb_sql_report(session, LIST, error);
    driver->clear(&answer);
    *ret_goes_on = count == rows;
    return result;
}

static int list_range(wb_storage_session *session, listing *l, uint64_t before, wb_error *error)
{
    int goes_on = 1, result = WB_OK;
    l->before = before;
    while (result == WB_OK && goes_on && l->rest && l->from && l->from < before)
        result = list_page(session, l, &goes_on, error);
    return result;
}

/* What is in front of the sweeper's gap; the rest begins behind it. */
static int list_to_gap(wb_storage_session *session, listing *l, wb_error *error)
{
    wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    uint64_t low, high;
    if (!wb_sql_gap_holds(&outbox->swept, outbox->host->now(), &low, &high))
        return WB_OK;
    int result = list_range(session, l, low < l->filter->before ? low : l->filter->before, error);
    if (l->from && l->from < high)
        l->from = high;
    return result;
}

int wb_sql_list_pending(wb_storage_session *session, const wb_pending_filter *filter,
                        wb_pending_fn visit, void *argument, wb_error *error)
{
    listing l = { .filter = filter, .from = filter->after + 1, .page = page_of(filter),
                  .rest = filter->limit ? filter->limit : SIZE_MAX, .visit = visit, .argument = argument };
    const uint32_t flags = WB_HAS(filter, wb_pending_filter, flags) ? filter->flags : 0;
    int result = WB_OK;

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, LIST, error);
    if (flags & WB_PENDING_PASS_EMPTY)
        result = list_to_gap(session, &l, error);
    return result == WB_OK ? list_range(session, &l, filter->before, error) : result;
}

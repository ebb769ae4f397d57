/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits, for people: page by page, so that little is held in memory, and nothing on the
 * server while a message is visited. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/transaction.h"

#define LIST "list delayed messages"
/* Rows of a page; with operations, which may be large, of a page with one id. */
#define PAGE 1000
#define PAGE_OF_OPERATIONS 4

/* The place behind the last row that was visited. */
typedef struct place {
    uint64_t due;
    char id[WB_DELAYED_ID_MAX];
    size_t id_size;
    char destination[WB_DELAYED_DESTINATION_MAX];
    size_t destination_size;
    uint64_t rank;
} place;

typedef struct listing {
    const wb_delayed_filter *filter;
    wb_sql_which which;
    uint64_t page;  /* rows it may have */
    uint64_t rest;  /* rows that may still be visited */
    uint64_t before;
    place at;
    wb_delayed_fn visit;
    void *argument;
} listing;

/* Ids are not empty: this is before all that are due then. */
static listing begin(const wb_delayed_filter *filter, wb_delayed_fn visit, void *argument)
{
    return (listing){
        .filter = filter,
        .which = filter->id ? WB_SQL_SHOW : WB_SQL_LIST,
        .page = filter->id ? PAGE_OF_OPERATIONS : PAGE,
        .rest = filter->limit ? filter->limit : UINT64_MAX,
        .before = filter->due_before ? wb_sql_round_up(filter->due_before) : WB_SQL_NEVER,
        .at.due = wb_sql_round_up(filter->due_from),
        .visit = visit,
        .argument = argument,
    };
}

static wb_sql_value bytes_or_any(const char *data, size_t size)
{
    return WB_SQL_BYTES(data && size ? data : "", data ? size : 0);
}

static int ask_page(wb_storage_session *session, const listing *l, wb_sql_answer *ret_rows)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_delayed_filter *f = l->filter;
    const wb_sql_value values[] = { WB_SQL_NUMBER(l->at.due),
                                    WB_SQL_BYTES(l->at.id, l->at.id_size),
                                    WB_SQL_BYTES(l->at.destination, l->at.destination_size),
                                    WB_SQL_NUMBER(l->at.rank),
                                    WB_SQL_NUMBER(l->before),
                                    bytes_or_any(f->destination, f->destination_size),
                                    bytes_or_any(f->id, f->id_size),
                                    WB_SQL_NUMBER(l->rest < l->page ? l->rest : l->page) };
    wb_sql_delayed_start(session);
    driver->queue(session, l->which, values, 8, ret_rows);
    return wb_sql_run_outside(session, NULL);
}

static void copy(char *to, size_t capacity, const wb_sql_cell *cell, size_t *ret_size)
{
    *ret_size = cell->size < capacity ? cell->size : capacity;
    memcpy(to, cell->data, *ret_size);
}

static int visit_row(const wb_sql_driver *driver, listing *l, const wb_sql_cell *cells)
{
    wb_delayed message = wb_sql_delayed_of(driver, cells);
    message.leased_until = wb_sql_nanoseconds(driver->number(&cells[WB_SQL_ROW_CELLS]));
    if (l->which == WB_SQL_LIST) {
        message.operation = NULL;
        message.operation_size = 0;
    }
    l->at.due = driver->number(&cells[4]);
    l->at.rank = driver->number(&cells[WB_SQL_ROW_CELLS + 1]);
    copy(l->at.id, sizeof l->at.id, &cells[0], &l->at.id_size);
    copy(l->at.destination, sizeof l->at.destination, &cells[1], &l->at.destination_size);
    l->rest--;
    return l->visit(l->argument, &message);
}

/* @return the class of the visitor; *ret_rows: how many there were. */
static int visit_page(const wb_sql_driver *driver, listing *l, wb_sql_answer *page,
                      uint64_t *ret_rows)
{
    wb_sql_cell cells[WB_SQL_ROW_CELLS + 2];
    int result = WB_OK;
    *ret_rows = 0;
    while (result == WB_OK && driver->fetch(page, cells, WB_SQL_ROW_CELLS + 2)) {
        ++*ret_rows;
        result = visit_row(driver, l, cells);
    }
    return result;
}

int wb_sql_delayed_list(wb_storage_session *session, const wb_delayed_filter *filter,
                        wb_delayed_fn visit, void *argument, wb_error *error)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    listing l = begin(filter, visit, argument);
    uint64_t rows = l.page;
    int result = WB_OK;

    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, LIST, error);
    while (result == WB_OK && rows == l.page && l.rest) {
        wb_sql_answer page = { 0 };
        result = ask_page(session, &l, &page);
        if (result == WB_OK)
            result = visit_page(driver, &l, &page, &rows);
        else
            result = wb_sql_report(session, LIST, error);
        driver->clear(&page);
    }
    return result;
}

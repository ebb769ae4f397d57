/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking delayed messages that are due, for a time. In two halves: a driver that can sends what is asked
 * for with the first and reads the answer with the second; another does all of it with the first.
 */
#include "config.h"

#include <stdlib.h>

#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/transaction.h"

#define FETCH_ROWS 100000

#define FETCH "fetch delayed messages"

/* From the first half to the end of the second. What was taken is the answers of some statements. */
struct wb_sql_fetching {
    wb_sql_answer *rows;
    size_t count;
    wb_delayed *messages; /* as many as are asked for; they point into the answers */
    size_t limit;
    wb_sql_removal *removal; /* what goes before, in the same transaction; or NULL */
    int is_sent;             /* and the answer is still to be read */
};

static void free_fetching(wb_storage_session *session, wb_sql_fetching *f)
{
    for (size_t i = 0; f->rows && i < f->count; i++)
        wb_sql_of(session)->outbox->driver->clear(&f->rows[i]);
    if (f->removal)
        wb_sql_removal_free(session, f->removal);
    free(f->rows);
    free(f->messages);
    free(f);
}

static int make_answers(wb_sql_fetching *f, size_t rows, size_t most)
{
    f->count = rows / most + (rows % most != 0);
    f->rows = calloc(f->count ? f->count : 1, sizeof *f->rows);
    return f->rows ? 0 : -1;
}

/* What is due at a time that is before the first microsecond, is due at none: 0 means now. */
static uint64_t round_down(int64_t at)
{
    return at > 0 && at < 1000 ? 1 : (uint64_t)(at / 1000);
}

/* ---- by a server that answers with what it takes ------------------------------------------ */

static int take_at_once(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_sql_fetching *f)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value values[] = { WB_SQL_NUMBER(round_down(fetch->at)),
                                    WB_SQL_NUMBER(f->limit),
                                    WB_SQL_BYTES(fetch->owner, WB_DELAYED_OWNER_SIZE),
                                    WB_SQL_NUMBER(wb_sql_round_up(fetch->lease)),
                                    WB_SQL_NUMBER(WB_DELAYED_FETCH_BYTES) };
    if (make_answers(f, 1, 1) != 0)
        return wb_sql_delayed_no_memory(session);
    wb_sql_delayed_start(session);
    if (f->removal)
        wb_sql_removal_queue(session, f->removal);
    driver->queue(session, WB_SQL_TAKE, values, 5, &f->rows[0]);
    f->is_sent = driver->send != NULL;
    if (!f->is_sent)
        return wb_sql_run_outside(session, "fetch_sent");
    wb_sql_send_outside(session, "fetch_sent");
    if (wb_sql_of(session)->state != WB_SQL_LOST)
        return WB_OK; /* what else failed is known when the answer is read */
    f->is_sent = 0;
    return wb_sql_receive_outside(session);
}

/* ---- by one that first says what it locks for us ------------------------------------------- */

/* Those that fit into memory; the locks of the others end with the transaction. */
static size_t choose_numbers(const wb_sql_driver *driver, wb_sql_answer *found, uint64_t *numbers,
                             size_t limit)
{
    wb_sql_cell cells[2];
    uint64_t bytes = 0;
    size_t count = 0;
    while (bytes < WB_DELAYED_FETCH_BYTES && count < limit && driver->fetch(found, cells, 2)) {
        numbers[count++] = driver->number(&cells[0]);
        bytes += driver->number(&cells[1]);
    }
    return count;
}

static int take_numbers(wb_storage_session *session, const wb_delayed_fetch *fetch,
                        const uint64_t *numbers, size_t count, wb_sql_fetching *f)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;

    if (make_answers(f, count, most) != 0)
        return wb_sql_delayed_no_memory(session);
    outbox->driver->start(session);
    for (size_t i = 0; i < f->count; i++) {
        const size_t rest = count - i * most;
        const wb_sql_value values[] = {
            WB_SQL_LIST(WB_SQL_SOME_NUMBERS, numbers + i * most, rest < most ? rest : most),
            WB_SQL_BYTES(fetch->owner, WB_DELAYED_OWNER_SIZE),
            WB_SQL_NUMBER(wb_sql_round_up(fetch->lease))
        };
        outbox->driver->queue(session, WB_SQL_TAKE, values, 3, NULL);
        outbox->driver->queue(session, WB_SQL_TAKEN, values, 1, &f->rows[i]);
    }
    return wb_sql_delayed_commit(session, "fetch_sent");
}

static int find_and_take(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_sql_fetching *f)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value values[] = { WB_SQL_NUMBER(round_down(fetch->at)),
                                    WB_SQL_NUMBER(f->limit) };
    uint64_t *numbers = calloc(f->limit, sizeof *numbers);
    wb_sql_answer found = { 0 };

    if (!numbers)
        return wb_sql_delayed_no_memory(session);
    wb_sql_delayed_begin(session);
    if (f->removal)
        wb_sql_removal_queue(session, f->removal);
    driver->queue(session, WB_SQL_FIND_DUE, values, 2, &found);
    int result = driver->run(session, NULL);
    if (result == WB_OK) {
        const size_t count = choose_numbers(driver, &found, numbers, f->limit);
        result = take_numbers(session, fetch, numbers, count, f);
    }
    if (result != WB_OK)
        wb_sql_undo(session);
    driver->clear(&found);
    free(numbers);
    return result;
}

/* ---- what was taken -------------------------------------------------------------------------- */

static int compare_due(const void *left, const void *right)
{
    const wb_delayed *a = left, *b = right;
    return a->due != b->due ? (a->due > b->due) - (a->due < b->due) : (a->place > b->place) - (a->place < b->place);
}

static size_t collect_taken(const wb_sql_driver *driver, wb_sql_fetching *f)
{
    wb_sql_cell cells[WB_SQL_ROW_CELLS + 1];
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++)
        while (count < f->limit && driver->fetch(&f->rows[i], cells, WB_SQL_ROW_CELLS + 1)) {
            f->messages[count] = wb_sql_delayed_of(driver, cells);
            f->messages[count++].place = driver->number(&cells[WB_SQL_ROW_CELLS]);
        }
    return count;
}

/* Sorted here: a server would carry all that is dispatched through its sort. */
static int visit_taken(const wb_sql_driver *driver, wb_sql_fetching *f, wb_delayed_fn visit, void *argument)
{
    const size_t count = collect_taken(driver, f);
    int result = WB_OK;
    if (count)
        qsort(f->messages, count, sizeof *f->messages, compare_due);
    for (size_t i = 0; i < count && result == WB_OK; i++)
        if (!f->removal || !wb_sql_removal_took(f->removal, &f->messages[i]))
            result = visit(argument, &f->messages[i]);
    return result;
}

/* ---- the two halves -------------------------------------------------------------------------- */

static int take(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_sql_fetching *f)
{
    f->messages = calloc(f->limit, sizeof *f->messages); /* before anything is taken */
    if (!f->messages)
        return wb_sql_delayed_no_memory(session);
    return wb_sql_of(session)->outbox->statements[WB_SQL_FIND_DUE] ? find_and_take(session, fetch, f)
                                                                   : take_at_once(session, fetch, f);
}

/* A removal that cannot go in the same transaction goes before. */
static int begin(wb_storage_session *session, wb_sql_fetching *f, wb_delayed_key *keys, size_t count,
                 const wb_delayed_fetch *fetch, wb_error *error)
{
    f->limit = fetch->limit < FETCH_ROWS ? fetch->limit : FETCH_ROWS;
    f->removal = f->limit ? wb_sql_removal_make(session, fetch->owner, keys, count) : NULL;
    int result = f->removal ? WB_OK : wb_sql_delayed_remove(session, fetch->owner, keys, count, error);
    if (result != WB_OK || !f->limit)
        return result;
    result = take(session, fetch, f);
    return result == WB_OK ? WB_OK : wb_sql_report_doubt(session, FETCH, error);
}

int wb_sql_delayed_begin_fetch(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                               const wb_delayed_fetch *fetch, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    if (s->state != WB_SQL_IDLE || s->fetching)
        return wb_sql_unusable(session, FETCH, error);
    wb_sql_fetching *f = calloc(1, sizeof *f);
    if (!f) {
        (void)wb_sql_delayed_no_memory(session);
        return wb_sql_report(session, FETCH, error);
    }
    const int result = begin(session, f, keys, count, fetch, error);
    if (result == WB_OK)
        s->fetching = f;
    else
        free_fetching(session, f);
    return result;
}

static int end(wb_storage_session *session, wb_sql_fetching *f, wb_delayed_fn visit, void *argument,
               wb_error *error)
{
    int result = f->is_sent ? wb_sql_receive_outside(session) : WB_OK;
    if (result != WB_OK)
        return wb_sql_report_doubt(session, FETCH, error);
    if (f->removal)
        result = wb_sql_removal_complete(session, f->removal, error);
    return result == WB_OK ? visit_taken(wb_sql_of(session)->outbox->driver, f, visit, argument) : result;
}

static int fail_without_begin(wb_storage_session *session, wb_error *error)
{
    const wb_host *host = wb_sql_of(session)->outbox->host;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "could not " FETCH ": no fetch was begun");
}

int wb_sql_delayed_end_fetch(wb_storage_session *session, wb_delayed_fn visit, void *argument,
                             wb_error *error)
{
    wb_sql_fetching *f = wb_sql_of(session)->fetching;
    if (!f)
        return fail_without_begin(session, error);
    wb_sql_of(session)->fetching = NULL;
    const int result = end(session, f, visit, argument, error);
    free_fetching(session, f);
    return result;
}

int wb_sql_delayed_fetch(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit,
                         void *argument, wb_error *error)
{
    const int result = wb_sql_delayed_begin_fetch(session, NULL, 0, fetch, error);
    return result == WB_OK ? wb_sql_delayed_end_fetch(session, visit, argument, error) : result;
}

void wb_sql_delayed_forget(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    if (s->fetching)
        free_fetching(session, s->fetching);
    s->fetching = NULL;
}

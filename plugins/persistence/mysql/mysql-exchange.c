/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-session.h"

/* ---- composing ------------------------------------------------------------------ */

void mys_exchange_start(wb_storage_session *s)
{
    mys_exchange *x = &s->exchange;
    wb_sql_buffer_reset(&x->text);
    x->count = 0;
    x->commit_sent = x->committed = x->out_of_memory = 0;
    s->sql.failure.result = WB_OK;
    s->sql.failure.item = WB_SQL_NO_ITEM;
    mys_guard_queue_names(s);
}

static void end_step(wb_storage_session *s, mys_step step)
{
    mys_exchange *x = &s->exchange;
    if (x->count == x->capacity) {
        size_t capacity = x->capacity ? 2 * x->capacity : 128;
        mys_step *steps = realloc(x->steps, capacity * sizeof *steps);
        if (!steps) {
            x->out_of_memory = 1;
            return;
        }
        x->steps = steps;
        x->capacity = capacity;
    }
    wb_sql_buffer_put(&x->text, ";", 1);
    step.end = x->text.size;
    x->steps[x->count++] = step;
}

void mys_queue(wb_storage_session *s, wb_sql_which which, const wb_sql_value *values,
               size_t count, wb_sql_answer *ret_answer)
{
    const wb_sql_outbox *outbox = s->sql.outbox;
    mys_render(&outbox->names, outbox->statements[which], values, count, &s->exchange.text);
    end_step(s, (mys_step){ .kind = which == WB_SQL_COMMIT ? MYS_STEP_COMMIT : MYS_STEP_OWN,
                            .item = WB_SQL_NO_ITEM,
                            .ret_answer = ret_answer });
}

void mys_queue_text(wb_storage_session *s, const char *statement, wb_sql_answer *ret_answer)
{
    wb_sql_buffer_put_text(&s->exchange.text, statement);
    end_step(s, (mys_step){ .item = WB_SQL_NO_ITEM, .ret_answer = ret_answer });
}

void mys_queue_kind(wb_storage_session *s, mys_step_kind kind, const char *text)
{
    wb_sql_buffer_put_text(&s->exchange.text, text);
    end_step(s, (mys_step){ .kind = kind, .item = WB_SQL_NO_ITEM });
}

void mys_queue_end(wb_storage_session *s)
{
    mys_queue_text(s, s->sql.outbox->statements[WB_SQL_COMMIT], NULL);
}

void mys_queue_list(wb_storage_session *s, const mys_list *list, mys_step_kind kind)
{
    size_t start = 0;
    for (size_t i = 0; i < list->count; i++) {
        const mys_statement *statement = &list->statements[i];
        wb_sql_buffer_put(&s->exchange.text, list->text.data + start, statement->end - start);
        end_step(s, (mys_step){ .kind = kind, .item = statement->item });
        start = statement->end;
    }
}

void mys_exchange_keep(wb_storage_session *s, size_t first, mys_list *list)
{
    mys_exchange *x = &s->exchange;
    for (size_t i = first; i < x->count; i++) {
        const size_t start = i ? x->steps[i - 1].end : 0;
        wb_sql_buffer_put(&list->text, x->text.data + start, x->steps[i].end - 1 - start);
        if (mys_list_end(list, WB_SQL_NO_ITEM) != 0)
            x->out_of_memory = 1;
    }
}

/* ---- may the server take several statements in one text? --------------------------- */

/* COM_SET_OPTION without awaiting its answer, so that it costs no round trip. The function of
 * the library (mysql_set_server_option) waits; the table of methods behind it is in the
 * library's public header, and has been the same since 3.0. */
static int send_option(wb_storage_session *s, int on)
{
    const enum enum_mysql_set_option option =
        on ? MYSQL_OPTION_MULTI_STATEMENTS_ON : MYSQL_OPTION_MULTI_STATEMENTS_OFF;
    const char bytes[2] = { (char)option, 0 };
    MYSQL *c = s->connection;

    if (c->methods->db_command(c, COM_SET_OPTION, bytes, sizeof bytes, 1, NULL) != 0) {
        mys_failure_record(s, MYS_STEP_OWN, WB_SQL_NO_ITEM);
        mys_failure_lost(s, NULL);
        return -1;
    }
    s->is_multi = on;
    return 0;
}

static int read_option(wb_storage_session *s)
{
    if (mysql_net_read_packet(s->connection) != packet_error)
        return 0;
    mys_failure_lost(s, mysql_error(s->connection));
    return -1;
}

int mys_exchange_restrict(wb_storage_session *s)
{
    if (!s->is_restricted || !s->is_multi)
        return WB_OK;
    mys_exchange_start(s);
    if (send_option(s, 0) == 0)
        (void)read_option(s);
    return s->sql.failure.result;
}

/* ---- sending and reading ------------------------------------------------------------ */

/* The steps from `first` whose text fits into one packet: at least one. */
static size_t steps_that_fit(const wb_storage_session *s, size_t first)
{
    const mys_exchange *x = &s->exchange;
    const size_t start = first ? x->steps[first - 1].end : 0;
    size_t last = first + 1;
    while (last < x->count && x->steps[last].end - start <= s->packet_max)
        last++;
    return last;
}

/* A statement may fail among its rows. @return 0, or -1: it did. */
static int drop_rows(MYSQL *c, MYSQL_RES *rows)
{
    while (mysql_fetch_row(rows))
        ;
    const int failed = mysql_errno(c) != 0;
    mysql_free_result(rows);
    return failed ? -1 : 0;
}

static void take_result(wb_storage_session *s, const mys_step *step)
{
    MYSQL *c = s->connection;

    if (mysql_field_count(c) == 0) {
        if (step->ret_answer)
            step->ret_answer->affected += mysql_affected_rows(c);
        mys_guard_take(s, step->kind);
        if (step->kind == MYS_STEP_COMMIT)
            s->exchange.committed = !(c->server_status & SERVER_STATUS_IN_TRANS);
        return;
    }
    const int wanted = step->ret_answer && !step->ret_answer->rows;
    MYSQL_RES *rows = wanted ? mysql_store_result(c) : mysql_use_result(c);
    if (rows && wanted)
        step->ret_answer->rows = rows;
    else if (!rows || drop_rows(c, rows) != 0)
        mys_failure_record(s, step->kind, step->item);
}

/* Each statement has exactly one result; any other number would be taken for another's. */
static void read_results(wb_storage_session *s, size_t first, size_t last)
{
    MYSQL *c = s->connection;
    for (size_t i = first; i < last && s->sql.failure.result == WB_OK; i++) {
        const mys_step *step = &s->exchange.steps[i];
        s->watch.collects = step->kind == MYS_STEP_DEFERRED;
        int result = i == first ? mysql_read_query_result(c) : mysql_next_result(c);
        if (result < 0)
            mys_failure_lost(s, "the server answered less than it was asked");
        else if (result > 0)
            mys_failure_record(s, step->kind, step->item);
        else
            take_result(s, step);
    }
    if (s->sql.failure.result == WB_OK && mysql_more_results(c))
        mys_failure_lost(s, "the server answered more than it was asked");
}

static int refuse_too_large(wb_storage_session *s, const mys_step *step)
{
    char text[128];
    (void)snprintf(text, sizeof text,
                   "a statement is longer than the server's max_allowed_packet of %zu bytes",
                   s->packet_max);
    return wb_sql_note(s, WB_REJECT, WB_CAUSE_TOO_LARGE, step->item, text);
}

/* One round trip for the steps from `first` up to `last`. */
static void run_part(wb_storage_session *s, size_t first, size_t last, const char *crash_point)
{
    mys_exchange *x = &s->exchange;
    const size_t start = first ? x->steps[first - 1].end : 0;
    const size_t size = x->steps[last - 1].end - 1 - start;
    const int enable = !s->is_multi && last - first > 1;
    const int is_end = last == x->count;

    if (size > s->packet_max) {
        (void)refuse_too_large(s, &x->steps[first]);
        return;
    }
    if (enable && send_option(s, 1) != 0)
        return;
    /* from here on the server may see it, whatever the library answers */
    x->commit_sent |= x->steps[last - 1].kind == MYS_STEP_COMMIT;
    if (mysql_send_query(s->connection, x->text.data + start, size) != 0) {
        mys_failure_record(s, MYS_STEP_OWN, WB_SQL_NO_ITEM);
        mys_failure_lost(s, NULL);
        return;
    }
    const int disable = is_end && s->is_restricted && s->is_multi && !x->commit_sent;
    if (disable && send_option(s, 0) != 0)
        return;
    if (is_end && crash_point)
        s->host->crash_point(crash_point);
    if (enable && read_option(s) != 0)
        return;
    read_results(s, first, last);
    if (disable && s->sql.state != WB_SQL_LOST)
        (void)read_option(s);
}

int mys_exchange_run(wb_storage_session *s, const char *crash_point)
{
    mys_exchange *x = &s->exchange;

    if (x->text.failed || x->out_of_memory)
        return wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
    for (size_t first = 0; first < x->count && s->sql.failure.result == WB_OK;) {
        const size_t last = steps_that_fit(s, first);
        run_part(s, first, last, crash_point);
        first = last;
    }
    s->watch.collects = s->sql.handed_out;
    if (x->committed) /* what is lost after that answer is only the connection */
        return WB_OK;
    if (x->commit_sent && s->sql.failure.result == WB_OK)
        mys_failure_lost(s, "the server did not end the transaction at COMMIT");
    return s->sql.failure.result;
}

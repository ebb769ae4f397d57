/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-transaction.h"

static size_t put_gone(wb_sql_buffer *text, const wb_mark *marks, size_t count)
{
    size_t gone = 0;
    for (size_t i = 0; i < count; i++) {
        if (marks[i].remaining)
            continue;
        wb_sql_buffer_put(text, ",", gone++ > 0);
        wb_sql_buffer_put_number(text, marks[i].batch);
    }
    return gone;
}

/* One DELETE for all rows that go; an UPDATE for each that only shrinks, which is rare. */
static int compose(mys_list *list, char *const *sql, const wb_mark *marks, size_t count)
{
    int failed = 0;

    wb_sql_buffer_put_text(&list->text, sql[MYS_SQL_MARK]);
    if (put_gone(&list->text, marks, count)) {
        wb_sql_buffer_put_text(&list->text, sql[MYS_SQL_LIST_END]);
        failed |= mys_list_end(list, WB_SQL_NO_ITEM);
    } else {
        mys_list_drop(list);
    }
    for (size_t i = 0; i < count; i++) {
        if (!marks[i].remaining)
            continue;
        wb_sql_buffer_put_text(&list->text, sql[MYS_SQL_SHRINK]);
        mys_buffer_put_bytes(&list->text, marks[i].remaining, marks[i].remaining_size);
        wb_sql_buffer_put_text(&list->text, sql[MYS_SQL_SHRINK_BATCH]);
        wb_sql_buffer_put_number(&list->text, marks[i].batch);
        failed |= mys_list_end(list, WB_SQL_NO_ITEM);
    }
    return failed;
}

int mys_compose_marks(wb_storage_session *s, const wb_mark *marks, size_t count)
{
    mys_list_reset(&s->marks);
    if (count == 0 || compose(&s->marks, s->persistence->texts, marks, count) == 0)
        return WB_OK;
    mys_list_reset(&s->marks);
    return wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
}

int mys_mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "mark operations as dispatched", error);
    if (!count)
        return WB_OK;
    mys_exchange_start(s);
    int result = mys_compose_marks(s, marks, count);
    if (result == WB_OK) {
        s->sql.state = WB_SQL_OPEN;
        mys_queue_list(s, &s->marks, MYS_STEP_OWN);
        mys_queue_end(s);
        result = mys_exchange_run(s, "mark_sent");
    }
    mys_list_reset(&s->marks);
    if (result == WB_OK) {
        s->sql.state = WB_SQL_IDLE;
        return WB_OK;
    }
    mys_undo(s);
    return wb_sql_report(s, "mark operations as dispatched", error);
}

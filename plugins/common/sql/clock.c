/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/ages.h"
#include "plugins/common/sql/pending.h"
#include "plugins/common/sql/transaction.h"

static int ask_clock(wb_storage_session *session, int64_t *ret_wall)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer answer = { 0 };
    wb_sql_cell now;

    driver->start(session);
    driver->queue(session, WB_SQL_CLOCK, NULL, 0, &answer);
    int result = wb_sql_run_outside(session, NULL);
    if (result == WB_OK && driver->fetch(&answer, &now, 1))
        *ret_wall = (int64_t)driver->number(&now) * 1000;
    driver->clear(&answer);
    return result;
}

int wb_sql_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "ask for the server's time", error);
    if (ask_clock(session, ret_wall) != WB_OK)
        return wb_sql_report(session, "ask for the server's time", error);
    return WB_OK;
}

static void report(const wb_sql_outbox *outbox, wb_sql_answer *answer, int64_t now)
{
    const wb_sql_driver *driver = outbox->driver;
    wb_sql_cell cells[3];
    if (driver->fetch(answer, cells, 3))
        wb_sql_report_future(outbox->host, driver->number(&cells[0]),
                             driver->number(&cells[1]), driver->number(&cells[2]), now);
}

int wb_sql_look_ahead(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    wb_sql_answer answer = { 0 };
    int64_t now = 0;

    if (s->looked_ahead)
        return WB_OK;
    int result = ask_clock(session, &now);
    if (result != WB_OK)
        return result;
    const wb_sql_value from = WB_SQL_NUMBER(wb_sql_future(now));
    driver->start(session);
    driver->queue(session, WB_SQL_FUTURE, &from, 1, &answer);
    result = wb_sql_run_outside(session, NULL);
    if (result == WB_OK)
        report(s->outbox, &answer, now);
    s->looked_ahead = result == WB_OK;
    driver->clear(&answer);
    return result;
}

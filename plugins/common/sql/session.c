/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/session.h"

#include <stdio.h>

int wb_sql_unusable(wb_storage_session *session, const char *action, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_host *host = s->outbox->host;
    if (s->state == WB_SQL_LOST)
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                          "could not %s: %s", action,
                          s->failure.result != WB_OK ? s->failure.text
                                                     : "the connection was lost");
    return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "could not %s: a transaction is %s",
                      action, s->state == WB_SQL_OPEN ? "open" : "not open");
}

int wb_sql_report(wb_storage_session *session, const char *action, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_sql_failure *f = &s->failure;
    const wb_host *host = s->outbox->host;
    return host->fail(host, error, f->result, f->cause, f->native_code, "could not %s: %s%s",
                      action, f->text,
                      f->cause == WB_CAUSE_MISSING ? ": run \"waybill install\"" : "");
}

int wb_sql_report_doubt(wb_storage_session *session, const char *action, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    if (s->state == WB_SQL_LOST && s->failure.result == WB_NOT_CONNECTED)
        s->failure.result = WB_IN_DOUBT;
    return wb_sql_report(session, action, error);
}

int wb_sql_note(wb_storage_session *session, int result, int cause, size_t item, const char *text)
{
    wb_sql_session *s = wb_sql_of(session);
    s->failure = (wb_sql_failure){ .result = result, .cause = cause, .item = item };
    (void)snprintf(s->failure.text, sizeof s->failure.text, "%s", text);
    return result;
}

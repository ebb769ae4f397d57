/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>

#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-session.h"

/* A COMMIT that fails did nothing only where that is known of its error. */
static int class_of_commit(const mys_mapping *mapping)
{
    return mapping->commit ? mapping->commit : WB_IN_DOUBT;
}

void mys_failure_record(wb_storage_session *s, mys_step_kind kind, size_t item)
{
    mys_failure *failure = &s->failure;
    const unsigned code = mysql_errno(s->connection);
    const mys_mapping *mapping = mys_map(code);

    if (failure->result != WB_OK)
        return;
    if (code == 0 || mys_is_client_error(code)) { /* 0: an answer that is not ours */
        mys_failure_lost(s, code ? mysql_error(s->connection)
                                 : "the server's answer is not to what was asked");
        return;
    }
    switch (kind) {
    case MYS_STEP_DEFERRED: failure->result = mapping->handler; break;
    case MYS_STEP_COMMIT: failure->result = class_of_commit(mapping); break;
    default: failure->result = mapping->own; break;
    }
    failure->cause = kind == MYS_STEP_DEFERRED ? mapping->handler_cause : mapping->own_cause;
    failure->code = code;
    /* the server's trouble is no message's, whoever met it first */
    failure->item = failure->cause == WB_CAUSE_SERVER ? MYS_NO_ITEM : item;
    (void)snprintf(failure->text, sizeof failure->text, "%s (error %u, SQLSTATE %s)",
                   mysql_error(s->connection), code, mysql_sqlstate(s->connection));
    if (failure->result == WB_NOT_CONNECTED || failure->result == WB_IN_DOUBT) {
        failure->item = MYS_NO_ITEM;
        s->state = MYS_LOST;
    }
}

int mys_failure_note(wb_storage_session *s, int result, int cause, size_t item, const char *text)
{
    s->failure = (mys_failure){ .result = result, .cause = cause, .item = item };
    (void)snprintf(s->failure.text, sizeof s->failure.text, "%s", text);
    return result;
}

void mys_failure_lost(wb_storage_session *s, const char *reason)
{
    if (s->failure.result == WB_OK) {
        const unsigned code = mysql_errno(s->connection);
        (void)mys_failure_note(s, s->exchange.commit_sent ? WB_IN_DOUBT : WB_NOT_CONNECTED,
                               WB_CAUSE_UNREACHABLE, MYS_NO_ITEM,
                               reason && *reason ? reason : "the connection was lost");
        s->failure.code = code;
    }
    s->state = MYS_LOST;
}

int mys_report(wb_storage_session *s, const char *action, wb_error *error)
{
    const mys_failure *f = &s->failure;
    const char *remedy = "";
    if (f->cause == WB_CAUSE_MISSING)
        remedy = ": run \"waybill install\"";
    return s->host->fail(s->host, error, f->result, f->cause, f->code, "could not %s: %s%s", action,
                         f->text, remedy);
}

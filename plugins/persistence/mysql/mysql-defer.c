/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-defer.h"

#include <string.h>

#include "plugins/common/sql/failed.h"
#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-session.h"
#include "plugins/persistence/mysql/mysql-statement.h"

/* ---- deferred statements -------------------------------------------------------- */

static int refuse(const wb_storage_session *s, const char *reason)
{
    s->host->log(s->host, WB_LOG_ERROR, "deferred statement refused",
                 (const wb_field[]){ { "reason", reason } }, 1);
    return WB_REJECT;
}

/* Noted, so that a handler that overlooks it does not commit without its statement. Another
 * message would have met it, too. */
static int refuse_for_memory(wb_storage_session *s)
{
    if (s->sql.failure.result == WB_OK)
        (void)wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM,
                               "out of memory for a deferred statement");
    return WB_RETRY;
}

static int api_defer(void *session, size_t item, const char *statement,
                     const wb_mysql_params *params)
{
    wb_storage_session *s = session;

    if (s->sql.state == WB_SQL_LOST)
        return WB_NOT_CONNECTED;
    if (s->sql.state != WB_SQL_OPEN)
        return refuse(s, "no transaction is open");
    const char *refusal =
        mys_statement_render(statement ? statement : "", params, &s->deferred.text);
    if (refusal) {
        mys_list_drop(&s->deferred);
        return refuse(s, refusal);
    }
    return mys_list_end(&s->deferred, item) == 0 ? WB_OK : refuse_for_memory(s);
}

/* ---- the plain connection --------------------------------------------------------- */

/* And what has to be there before a handler gets the connection. */
static int send_deferred(wb_storage_session *s)
{
    if (!s->deferred.count && s->guard.has_savepoint)
        return WB_OK;
    mys_exchange_start(s);
    mys_queue_list(s, &s->deferred, MYS_STEP_DEFERRED);
    if (!s->guard.has_savepoint)
        mys_guard_queue_savepoint(s);
    s->sql.flush_failed = mys_exchange_run(s, NULL) != WB_OK;
    mys_list_reset(&s->deferred);
    return s->sql.failure.result;
}

static MYSQL *api_connection(void *session, size_t item)
{
    wb_storage_session *s = session;
    if (s->sql.state != WB_SQL_OPEN || mys_defer_inspect(s) != WB_OK)
        return NULL;
    s->is_restricted = !s->persistence->config->multi_statements; /* from now on */
    if (send_deferred(s) != WB_OK || mys_exchange_restrict(s) != WB_OK)
        return NULL;
    if (!s->sql.handed_out)
        mys_watch_reset(&s->watch, 1);
    mys_guard_hand_out(s, item);
    s->sql.handed_out = s->watch.collects = 1;
    s->sql.last_item = item;
    return s->connection;
}

static const wb_mysql_api mys_api = { sizeof(wb_mysql_api), api_connection, api_defer };

const void *mys_interface(wb_storage_session *s, const char *name)
{
    if (strcmp(name, WB_FAILED_INTERFACE) == 0)
        return s->sql.outbox->statements[WB_SQL_FAILED_PUT] ? &wb_sql_failed : NULL;
    return strcmp(name, WB_MYSQL_INTERFACE) == 0 ? &mys_api : NULL;
}

/* ---- the check after a handler ------------------------------------------------------ */

static int found(wb_storage_session *s, int result, const char *text)
{
    if (s->sql.failure.result == WB_OK)
        (void)wb_sql_note(s, result, WB_CAUSE_OTHER, s->sql.last_item, text);
    return s->sql.failure.result;
}

#define MYS_UNREAD "the handler left results unread"

static int has_unread_results(const MYSQL *c)
{
    return c->status != MYSQL_STATUS_READY || c->server_status & SERVER_MORE_RESULTS_EXIST;
}

/* Errors that leave the transaction as it must be are the handler's affair. Not those of which
 * another message could have been the victim, whatever the handler makes of it. */
static int is_of_the_message(unsigned code, const char *text)
{
    const mys_mapping *mapping = mys_map_error(code, text);
    return mapping->handler == WB_RETRY && mapping->handler_cause == WB_CAUSE_OTHER;
}

/* The number of the last error. Of errors that a handler overlooked and called on, only what
 * they did to the transaction is left to see. */
static int inspect_last_error(wb_storage_session *s)
{
    const unsigned code = mysql_errno(s->connection);

    if (!s->connection->net.pvio) {
        mys_failure_lost(s, mysql_error(s->connection));
        return s->sql.failure.result;
    }
    if (mys_guard_was_reset(&s->guard))
        return found(s, WB_REJECT, MYS_RESET);
    if (code == 0 || mys_is_client_error(code) || is_of_the_message(code, mysql_error(s->connection)))
        return WB_OK;
    mys_failure_record(s, MYS_STEP_DEFERRED, s->sql.last_item);
    return s->sql.failure.result;
}

static int inspect_connection(wb_storage_session *s)
{
    if (has_unread_results(s->connection))
        return found(s, WB_REJECT, MYS_UNREAD);
    if (inspect_last_error(s) != WB_OK)
        return s->sql.failure.result;
    if (s->watch.another)
        return found(s, WB_ABORT,
                     "the server rolled the transaction back, and the handler went on after that "
                     "error");
    if (s->guard.savepoints.seen.went_back)
        return found(s, WB_ABORT, WB_COMMON_WENT_BACK);
    return WB_OK;
}

/* Its statements know that a connection was closed, and outlive it. */
static void look_for_end(wb_storage_session *s)
{
    if (!s->sql.handed_out || !s->connection || !mys_guard_take_back(s))
        return;
    s->sql.failure.result = WB_OK; /* this outranks what failed before */
    (void)wb_sql_note(s, WB_REJECT, WB_CAUSE_OTHER, s->sql.last_item, "the handler closed the connection");
    s->sql.state = WB_SQL_LOST;
}

/* The library numbers the packets of a command and its answer from 0 on, and a command is one (of up to 16 MiB): so none has come for
 * what went out last. Two commands have no answer. */
static int is_unanswered(const MYSQL *c)
{
    enum { COMMAND_AT = 4 }; /* behind the packet's head */
    return c->net.pvio && c->net.pkt_nr == 1 && c->net.buff[COMMAND_AT] != COM_STMT_CLOSE &&
           c->net.buff[COMMAND_AT] != COM_STMT_SEND_LONG_DATA;
}

/* What a handler sent and did not wait for (mysql_send_query) is answered in the place of ours: it is heard here, where it is known
 * whose it is, and what it did to the transaction is seen. */
static int hear_answer(wb_storage_session *s)
{
    if (!s->sql.handed_out || s->sql.state != WB_SQL_OPEN || !s->connection || !is_unanswered(s->connection))
        return 0;
    (void)mysql_read_query_result(s->connection);
    return 1;
}

/* First whether a handler ended the transaction: what came after it, the end of the connection
 * too, hides it from the host. */
int mys_defer_inspect(wb_storage_session *s)
{
    look_for_end(s);
    const int was_unanswered = hear_answer(s);
    if (s->sql.handed_out && s->watch.ended)
        return wb_sql_note(s, WB_REJECT, WB_CAUSE_OTHER, s->sql.last_item,
                           mys_guard_was_reset(&s->guard) ? MYS_RESET : MYS_ENDED);
    if (s->sql.state != WB_SQL_OPEN || s->sql.flush_failed || s->sql.failure.result != WB_OK)
        return s->sql.failure.result;
    if (was_unanswered)
        return found(s, WB_REJECT, MYS_UNREAD);
    return s->sql.handed_out ? inspect_connection(s) : WB_OK;
}

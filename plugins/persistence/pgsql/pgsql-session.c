/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/schema.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"

/* What runs outside of a batch's transaction, a mark above all, is not to fail because a neighbour
 * deleted the row: its isolation is not what the operator chose for others. */
#define READ_COMMITTED                                                                             \
    ", pg_catalog.set_config('default_transaction_isolation', 'read committed', false)"

void pgsql_session_settings(const wb_storage_session *s, int transaction_only,
                            char ret_text[PGSQL_SETTINGS_SIZE])
{
    const pgsql_config *config = s->persistence->config;
    const char *local = transaction_only ? "true" : "false";
    int size = snprintf(ret_text, PGSQL_SETTINGS_SIZE,
                        "pg_catalog.set_config('lock_timeout', '%" PRId64 "', %s)%s",
                        config->lock_timeout / 1000000, local,
                        transaction_only ? "" : READ_COMMITTED);
    if (config->statement_timeout)
        (void)snprintf(ret_text + size, PGSQL_SETTINGS_SIZE - (size_t)size,
                       ", pg_catalog.set_config('statement_timeout', '%" PRId64 "', %s)",
                       config->statement_timeout / 1000000, local);
}

void pgsql_session_queue_settings(wb_storage_session *s, int transaction_only)
{
    char settings[PGSQL_SETTINGS_SIZE];
    char text[PGSQL_SETTINGS_SIZE + 16];
    pgsql_session_settings(s, transaction_only, settings);
    (void)snprintf(text, sizeof text, "SELECT %s", settings);
    pgsql_queue_text(s, text, NULL);
}

static void say_pooled(const wb_persistence *p)
{
    p->host->log(p->host, WB_LOG_INFO,
                 "a connection pooler is in front of PostgreSQL: no prepared statements, and "
                 "settings go with each transaction",
                 NULL, 0);
}

static int refuse_read_only(wb_storage_session *s)
{
    return wb_sql_note(s, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, WB_SQL_NO_ITEM,
                       "the server takes no writes: it is a standby, or "
                       "default_transaction_read_only is on");
}

/* Asked before anything is left in the server's session. If its process is not the one that the
 * connection was given the number of, a pooler answered, and may give each transaction another
 * session; poolers that pass on the number are not seen: for them there is the option. */
static int look_around(wb_storage_session *s)
{
    wb_persistence *p = s->persistence;
    wb_sql_answer answer = { 0 };
    wb_sql_cell cells[2] = { { "", 0 }, { "", 0 } };

    int result = wb_sql_schema_run(s, "SELECT pg_catalog.pg_backend_pid(), "
                                      "pg_catalog.current_setting('transaction_read_only')",
                                   &answer);
    if (result == WB_OK && pgsql_fetch(&answer, cells, 2)) {
        s->is_pooled = atoi(cells[0].data) != PQbackendPID(s->connection);
        if (strcmp(cells[1].data, "on") == 0)
            result = refuse_read_only(s);
    }
    pgsql_clear(&answer);
    if (s->is_pooled && !atomic_exchange(&p->said_pooled, 1))
        say_pooled(p);
    return result;
}

static int prepare(wb_storage_session *s)
{
    pgsql_exchange_start(s);
    pgsql_session_queue_settings(s, 0);
    pgsql_queue_preparations(s);
    const int result = pgsql_exchange_run(s, NULL);
    s->prepared = result == WB_OK;
    return result;
}

/* Behind a pooler nothing may be left in the server's session. */
static int set_up(wb_storage_session *s, wb_error *error)
{
    int result = look_around(s);
    s->is_pooled |= !s->persistence->config->prepare;
    s->sql.locks_in_transaction = s->is_pooled || !s->sql.outbox->statements[WB_SQL_LOCK];
    if (result == WB_OK && !s->is_pooled)
        result = prepare(s);
    return result == WB_OK ? wb_sql_check_version(s, error)
                           : wb_sql_report(s, "use the PostgreSQL server", error);
}

int pgsql_session_start(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error)
{
    int result = pgsql_session_connect(persistence, ret_session, error);
    if (result == WB_OK)
        (*ret_session)->sql.outbox = &persistence->sql;
    return result;
}

int pgsql_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                       wb_error *error)
{
    wb_storage_session *s = NULL;
    int result = pgsql_session_start(persistence, &s, error);
    if (result != WB_OK)
        return result;
    result = set_up(s, error);
    if (result == WB_OK)
        *ret_session = s;
    else
        pgsql_session_close(s);
    return result;
}

void pgsql_session_close(wb_storage_session *s)
{
    wb_sql_delayed_forget(s);
    PQfinish(s->connection);
    pgsql_defer_free(&s->defer);
    pgsql_guard_free(&s->guard);
    for (size_t i = 0; i < WB_SQL_VALUES_MAX; i++)
        wb_sql_buffer_free(&s->arrays[i]);
    free(s->exchange.steps);
    free(s);
}

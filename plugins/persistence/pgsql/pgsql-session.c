/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pgsql_session_queue_settings(wb_storage_session *s, int transaction_only)
{
    const pgsql_config *config = s->persistence->config;
    char lock[24];
    char statement[24];
    const int lock_size = snprintf(lock, sizeof lock, "%" PRId64, config->lock_timeout / 1000000);
    const int statement_size =
        snprintf(statement, sizeof statement, "%" PRId64, config->statement_timeout / 1000000);
    const char local = (char)transaction_only;
    const pgsql_value values[] = {
        { lock, (size_t)lock_size },
        { config->statement_timeout ? statement : NULL, (size_t)statement_size },
        { &local, 1 },
    };
    pgsql_queue(s, PGSQL_SQL_SETTINGS, values, 3, NULL);
}

/* Behind a pooler nothing may be left in the server's session. */
static int set_up(wb_storage_session *s, wb_error *error)
{
    if (!s->persistence->config->prepare)
        return WB_OK;
    pgsql_exchange_start(s);
    pgsql_session_queue_settings(s, 0);
    pgsql_queue_preparations(s);
    if (pgsql_exchange_run(s, NULL) != WB_OK)
        return wb_sql_report(s, "prepare the outbox statements", error);
    s->prepared = 1;
    return WB_OK;
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
    PQfinish(s->connection);
    pgsql_defer_free(&s->defer);
    wb_sql_buffer_free(&s->keys);
    wb_sql_buffer_free(&s->batches);
    free(s->exchange.steps);
    free(s);
}

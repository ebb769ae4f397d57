/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance (one endpoint's tables) and its sessions (one connection each).
 */
#ifndef PGSQL_SESSION_H
#define PGSQL_SESSION_H

#include <libpq-fe.h>
#include <stdatomic.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/session.h"
#include "plugins/persistence/pgsql/pgsql-defer.h"
#include "plugins/persistence/pgsql/pgsql-exchange.h"
#include "plugins/persistence/pgsql/pgsql-guard.h"
#include "plugins/persistence/pgsql/pgsql-params.h"

struct wb_persistence {
    wb_sql_outbox sql;
    const wb_host *host;
    const pgsql_config *config;
    const char *endpoint; /* its name */
    atomic_size_t server; /* where the last session found the one to use */
    atomic_int said_pooled;
    atomic_int said_unverified;
};

struct wb_storage_session {
    wb_sql_session sql;
    wb_persistence *persistence;
    const wb_host *host;
    PGconn *connection;
    int prepared;  /* the frequent statements are */
    int64_t answered; /* when it answered last, by host->now() */
    int is_pooled; /* a pooler is in between, or may be: who speaks is not always the server */

    pgsql_exchange exchange;

    pgsql_defer defer;
    int watched; /* our event procedure is registered */
    pgsql_guard guard;

    wb_sql_buffer arrays[WB_SQL_VALUES_MAX]; /* lists among parameters; kept for their memory */
};

/** Connect, and do nothing else. @return WB_OK, or the class and a filled error. */
int pgsql_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                          wb_error *error);
/** The same, and know its outbox. */
int pgsql_session_start(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error);
/** wb_persistence_ops.open and close. */
int pgsql_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                       wb_error *error);
void pgsql_session_close(wb_storage_session *session);

#define PGSQL_SETTINGS_SIZE 320
/** Expressions that set the session's timeouts, and more: for good, or for the transaction only. */
void pgsql_session_settings(const wb_storage_session *session, int transaction_only,
                            char ret_text[PGSQL_SETTINGS_SIZE]);
/** Queue that. */
void pgsql_session_queue_settings(wb_storage_session *session, int transaction_only);

#endif

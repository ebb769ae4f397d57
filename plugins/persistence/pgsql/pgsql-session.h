/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance (one endpoint's tables) and its sessions (one connection each).
 *
 * A session is used by one thread at a time. Its state says what the server was last
 * known to be in; whatever makes that unsure ends in PGSQL_LOST, from which only close
 * and open lead away: the server rolls back what a lost connection left open.
 */
#ifndef PGSQL_SESSION_H
#define PGSQL_SESSION_H

#include <libpq-fe.h>
#include <waybill/sys/persistence.h>

#include "plugins/persistence/pgsql/pgsql-defer.h"
#include "plugins/persistence/pgsql/pgsql-exchange.h"
#include "plugins/persistence/pgsql/pgsql-names.h"
#include "plugins/persistence/pgsql/pgsql-params.h"
#include "plugins/persistence/pgsql/pgsql-sql.h"

struct wb_persistence {
    const wb_host *host;
    const pgsql_config *config;
    pgsql_names names;
    pgsql_params params;
    char *sql[PGSQL_SQL_COUNT];
    char *schema; /* SQL text of an installation */
};

typedef enum pgsql_state {
    PGSQL_IDLE, /* connected, no transaction */
    PGSQL_OPEN, /* inside the framework's transaction, which may have failed */
    PGSQL_LOST  /* the connection is gone or cannot be trusted */
} pgsql_state;

struct wb_storage_session {
    wb_persistence *persistence;
    const wb_host *host;
    PGconn *connection;
    pgsql_state state;
    int prepared; /* the first PGSQL_SQL_PREPARED statements are */

    pgsql_exchange exchange;
    /** What went wrong first since the transaction began (or in the last exchange). */
    pgsql_failure failure;

    pgsql_defer defer;
    int flush_failed; /* a deferred statement failed before the connection was handed out, or
                         was not even taken */
    int handed_out;   /* a handler of this transaction has the connection */
    int watched;      /* our event procedure is registered */
    size_t last_item; /* whose handler has it */
    int looked_ahead; /* records from the future were looked for */

    /* kept between batches: encoded arrays and where claims stand */
    pgsql_buffer keys;
    pgsql_buffer batches;
};

/** Connect, and do nothing else. @return WB_OK, or the class and a filled error. */
int pgsql_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                          wb_error *error);
/** wb_persistence_ops.open and close. */
int pgsql_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                       wb_error *error);
void pgsql_session_close(wb_storage_session *session);

/** Queue the session's timeouts: for good, or for the transaction only. */
void pgsql_session_queue_settings(wb_storage_session *session, int transaction_only);

/** Report a session that cannot be used: WB_NOT_CONNECTED. */
int pgsql_session_unusable(wb_storage_session *session, const char *action, wb_error *error);

#endif

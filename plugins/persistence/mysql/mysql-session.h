/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance (one endpoint's tables) and its sessions (one connection each).
 *
 * A session is used by one thread at a time. Its state says what the server was last
 * known to be in; whatever makes that unsure ends in MYS_LOST, from which only close
 * and open lead away: the server rolls back what a lost connection left open.
 */
#ifndef MYSQL_SESSION_H
#define MYSQL_SESSION_H

#include <mysql.h>
#include <waybill/sys/persistence.h>

#include "plugins/persistence/mysql/mysql-defer.h"
#include "plugins/persistence/mysql/mysql-exchange.h"
#include "plugins/persistence/mysql/mysql-list.h"
#include "plugins/persistence/mysql/mysql-names.h"
#include "plugins/persistence/mysql/mysql-options.h"
#include "plugins/persistence/mysql/mysql-sql.h"
#include "plugins/persistence/mysql/mysql-watch.h"

struct wb_persistence {
    const wb_host *host;
    const mys_config *config;
    mys_names names;
    char *sql[MYS_SQL_COUNT];
    char *schema; /* SQL text of an installation */
};

typedef enum mys_state {
    MYS_IDLE, /* connected, no transaction */
    MYS_OPEN, /* inside the framework's transaction, which may have failed */
    MYS_LOST  /* the connection is gone or cannot be trusted */
} mys_state;

struct wb_storage_session {
    wb_persistence *persistence;
    const wb_host *host;
    MYSQL *connection;
    mys_state state;
    size_t packet_max; /* the longest text the server takes */
    int is_multi;      /* the server takes several statements in one text */
    int is_restricted; /* and must not outside of exchanges: handlers use the connection */

    mys_exchange exchange;
    /** What went wrong first since the transaction began (or in the last exchange). */
    mys_failure failure;

    mys_list deferred; /* handlers' statements for the next round trip */
    int flush_failed; /* a deferred statement failed before the connection was handed out */
    int handed_out;   /* a handler of this transaction has the connection */
    size_t last_item; /* whose handler has it */
    mys_watch watch;
    int looked_ahead; /* records from the future were looked for */

    /** The marks in the open transaction: if it is rolled back they are made again. */
    mys_list marks;
};

/** Connect, and do nothing else. @return WB_OK, or the class and a filled error. */
int mys_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error);
/** wb_persistence_ops.open and close. */
int mys_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                     wb_error *error);
void mys_session_close(wb_storage_session *session);

/** Report a session that cannot be used: WB_NOT_CONNECTED. */
int mys_session_unusable(wb_storage_session *session, const char *action, wb_error *error);

#endif

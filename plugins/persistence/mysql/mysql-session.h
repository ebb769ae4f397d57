/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance (one endpoint's tables) and its sessions (one connection each).
 */
#ifndef MYSQL_SESSION_H
#define MYSQL_SESSION_H

#include <mysql.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/session.h"
#include "plugins/persistence/mysql/mysql-defer.h"
#include "plugins/persistence/mysql/mysql-exchange.h"
#include "plugins/persistence/mysql/mysql-guard.h"
#include "plugins/persistence/mysql/mysql-list.h"
#include "plugins/persistence/mysql/mysql-options.h"
#include "plugins/persistence/mysql/mysql-watch.h"

struct wb_persistence {
    wb_sql_outbox sql;
    const wb_host *host;
    const mys_config *config;
};

struct wb_storage_session {
    wb_sql_session sql;
    wb_persistence *persistence;
    const wb_host *host;
    MYSQL *connection;
    size_t packet_max; /* the longest text the server takes */
    int is_multi;      /* the server takes several statements in one text */
    int is_restricted; /* and must not outside of exchanges: handlers use the connection */

    mys_exchange exchange;

    mys_list deferred; /* handlers' statements for the next round trip */
    mys_watch watch;
    mys_guard guard;

    /** The marks in the open transaction: if it is rolled back they are made again. */
    mys_list marks;
};

/** Connect, and do nothing else. @return WB_OK, or the class and a filled error. */
int mys_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error);
/** Queue what a session is set to. */
void mys_session_queue_settings(wb_storage_session *session);
/** One of them: seconds that a statement waits for a row. */
int64_t mys_session_row_lock_wait(const wb_storage_session *session);
/** A session for install and verify: the tables may not be there. */
int mys_session_start(wb_persistence *persistence, wb_storage_session **ret_session,
                      wb_error *error);
/** wb_persistence_ops.open and close. */
int mys_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                     wb_error *error);
void mys_session_close(wb_storage_session *session);

#endif

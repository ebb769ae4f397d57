/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of a connection. Asked for TLS without verification (ssl_mode "required"), the client
 * library goes on in plain text where the server offers none, and user, database and the
 * answer to the server's challenge are gone before anybody can ask. Asked to verify, it
 * refuses such a server before it says anything. So it is always asked to verify, and for
 * "required" a client authentication plugin of ours, which runs when the server's offer is
 * known and nothing was sent, takes the verification back once TLS was offered.
 *
 * The server does not know that plugin and names its own: one round trip more for each
 * connection of this mode. A server without authentication plugins (older than 2010) is
 * verified.
 */
#ifndef MYSQL_TLS_H
#define MYSQL_TLS_H

#include <mysql.h>

#include "plugins/persistence/mysql/mysql-options.h"

/** Name of that plugin, to be allowed in MARIADB_OPT_RESTRICTED_AUTH. */
#define MYS_TLS_GATE "waybill_tls"

/** Make it known to the client library, once. On the main thread. @return 0, or -1. */
int mys_tls_init(void);
/** Before connecting. */
void mys_tls_set(MYSQL *connection, const mys_config *config);

#endif

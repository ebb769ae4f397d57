/* SPDX-License-Identifier: Apache-2.0
 *
 * What is handed to libpq for a connection: the plugin's defaults, overridden by
 * conninfo, overridden by the single options.
 */
#ifndef PGSQL_PARAMS_H
#define PGSQL_PARAMS_H

#include <stdatomic.h>
#include <stddef.h>

#include "plugins/persistence/pgsql/pgsql-options.h"
#include "plugins/persistence/pgsql/pgsql-servers.h"

#define PGSQL_PARAMS_MAX 64

/** Parallel arrays that end with NULL, as PQconnectStartParams() wants them. */
typedef struct pgsql_params {
    char *keywords[PGSQL_PARAMS_MAX + 1];
    char *values[PGSQL_PARAMS_MAX + 1];
    size_t count;
    pgsql_servers servers;
    int tls_by_default; /* sslmode became verify-full although nobody asked for it */
} pgsql_params;

/** Build them for one connection; no network. A service file and the environment are looked at, to
 *  know whether the server is on this machine: it may move. If it is not, plain text that nobody
 *  allowed is refused, and TLS that verifies less than everything is warned of, unless `said` is
 *  set, which then is.
 *  @return WB_OK, or WB_FATAL with cause WB_CAUSE_CONFIG. */
int pgsql_params_build(const wb_host *host, const pgsql_config *config, const char *endpoint,
                       atomic_int *said, pgsql_params *ret_params, wb_error *error);
/** Whether the files of TLS that options or conninfo name can be read. For the start: later one may just be renewed. */
int pgsql_params_check_files(const wb_host *host, const pgsql_params *params, wb_error *error);
/** The same for one server, `address` (may be NULL) being its own; keywords and values want
 *  PGSQL_PARAMS_MAX + 4 places. Nothing is copied. */
void pgsql_params_for(const pgsql_params *params, const pgsql_server *server, const char *address,
                      const char **ret_keywords, const char **ret_values);
/** Also after a failed build. Overwrites the password. */
void pgsql_params_free(pgsql_params *params);

/** Whether every host of two comma-separated lists (either may be NULL) is this machine:
 *  a Unix socket or a loopback address. */
int pgsql_params_are_local(const char *hosts, const char *addresses);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What libpq makes of parameters, with service file and environment, without connecting: it judges all of
 * them before it opens a socket, and one that it cannot take stops it there.
 */
#ifndef PGSQL_PROBE_H
#define PGSQL_PROBE_H

#include <libpq-fe.h>

#include "plugins/persistence/pgsql/pgsql-params.h"

/** What it would use; free it with PQconninfoFree(). NULL: even the service cannot be resolved; the
 *  connecting will say why. */
PQconninfoOption *pgsql_probe_resolve(const pgsql_params *params);

/** Whether it would connect at all. For the start: a service file may just be written anew later.
 *  `conninfo`: whether the option is set, and so is what to mend.
 *  @return WB_OK, or WB_FATAL with WB_CAUSE_CONFIG and what libpq says; it quotes no secret once
 *  pgsql_params_build() has found the names of servers to be such. */
int pgsql_probe_check(const wb_host *host, const pgsql_params *params, int conninfo, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-driver.h"
#include "plugins/persistence/pgsql/pgsql-persistence.h"
#include "plugins/persistence/pgsql/pgsql-probe.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

static void destroy(wb_persistence *p)
{
    wb_sql_outbox_free(&p->sql);
    free(p);
}

static int check_config(const wb_host *host, const pgsql_config *config, wb_error *error)
{
    size_t size = strlen(config->schema);
    if (size == 0 || size > PGSQL_IDENTIFIER_MAX)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "option \"schema\" = \"%s\" is not a name of 1 to %d bytes",
                          config->schema, PGSQL_IDENTIFIER_MAX);
    return WB_OK;
}

/* What must not be connected to is refused now; it is judged again with each connection. */
static int check_params(wb_persistence *p, wb_error *error)
{
    pgsql_params params;
    int result = pgsql_params_build(p->host, p->config, p->endpoint, &p->said_unverified, &params, error);
    if (result == WB_OK)
        result = pgsql_probe_check(p->host, &params, p->config->conninfo != NULL, error);
    if (result == WB_OK)
        result = pgsql_params_check_files(p->host, &params, error);
    pgsql_params_free(&params);
    return result;
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    int result = check_config(host, config, error);
    if (result != WB_OK)
        return result;
    wb_persistence *p = calloc(1, sizeof *p);
    if (!p)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    p->host = host;
    p->config = config;
    p->endpoint = endpoint->name;
    result = check_params(p, error);
    if (result == WB_OK)
        result = wb_sql_outbox_init(&p->sql, host, &pgsql_dialect, &pgsql_driver, endpoint,
                                    p->config->schema, error);
    if (result == WB_OK)
        *ret_persistence = p;
    else
        destroy(p);
    return result;
}

const wb_persistence_ops pgsql_ops =
    WB_SQL_OPS(create, destroy, pgsql_session_open, pgsql_session_close, pgsql_interface);

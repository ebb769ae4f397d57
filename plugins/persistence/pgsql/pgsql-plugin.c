/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-clock.h"
#include "plugins/persistence/pgsql/pgsql-pending.h"
#include "plugins/persistence/pgsql/pgsql-schema.h"
#include "plugins/persistence/pgsql/pgsql-transaction.h"

static void destroy(wb_persistence *p)
{
    for (int i = 0; i < PGSQL_SQL_COUNT; i++)
        free(p->texts[i]);
    free(p->schema);
    pgsql_params_free(&p->params);
    free(p);
}

static int build_texts(wb_persistence *p, wb_error *error)
{
    int missing = 0;
    for (int i = 0; i < PGSQL_SQL_COUNT; i++) {
        p->texts[i] = pgsql_sql_text(&p->sql.names, (pgsql_sql)i);
        missing |= !p->texts[i];
    }
    p->schema = pgsql_schema_text(&p->sql.names);
    if (missing || !p->schema)
        return p->host->fail(p->host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    return WB_OK;
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

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    int result = check_config(host, config, error);
    if (result != WB_OK)
        return result;
    wb_persistence *p = calloc(1, sizeof *p);
    if (!p)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    p->host = p->sql.host = host;
    p->config = config;
    wb_sql_names_init(&p->sql.names, &pgsql_quoting, endpoint->name, p->config->schema);
    result = pgsql_params_build(host, config, endpoint->name, &p->params, error);
    if (result == WB_OK)
        result = build_texts(p, error);
    if (result == WB_OK)
        *ret_persistence = p;
    else
        destroy(p);
    return result;
}

static const char *schema(wb_persistence *p)
{
    return p->schema;
}

static const wb_persistence_ops ops = {
    .struct_size = sizeof(wb_persistence_ops),
    .create = create,
    .destroy = destroy,
    .schema = schema,
    .install = pgsql_install,
    .verify = pgsql_verify,
    .open = pgsql_session_open,
    .close = pgsql_session_close,
    .begin = pgsql_begin,
    .interface = pgsql_interface,
    .check = pgsql_check,
    .commit = pgsql_commit,
    .rollback = pgsql_rollback,
    .mark = pgsql_mark,
    .pending = pgsql_pending,
    .sweep = pgsql_sweep,
    .clean_up = pgsql_clean_up,
    .clock = pgsql_clock,
    .next_pending = pgsql_next_pending,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof(wb_plugin),
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_PERSISTENCE,
    .name = "pgsql",
    .version = PACKAGE_VERSION,
    .summary = "outbox in PostgreSQL",
    .capabilities = WB_CAP_OUTBOX,
    .options = pgsql_options,
    .option_count = PGSQL_OPTION_COUNT,
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(pgsql_config),
    .ops = &ops,
    .client_library = "libpq.so.5",
};
WB_PLUGIN(pgsql, descriptor)

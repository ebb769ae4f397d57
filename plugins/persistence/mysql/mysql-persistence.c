/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/common/certificate.h"
#include "plugins/common/servers.h"
#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-driver.h"
#include "plugins/persistence/mysql/mysql-persistence.h"
#include "plugins/persistence/mysql/mysql-session.h"
#include "plugins/persistence/mysql/mysql-tls.h"

static void destroy(wb_persistence *p)
{
    wb_sql_outbox_free(&p->sql);
    free(p);
}

static int check_config(const wb_host *host, const mys_config *config, wb_error *error)
{
    size_t size = strlen(config->database);
    if (size == 0 || size > MYS_IDENTIFIER_MAX)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "option \"database\" = \"%s\" is not a name of 1 to %d bytes",
                          config->database, MYS_IDENTIFIER_MAX);
    if (config->ssl_mode == MYS_SSL_DISABLED &&
        (config->ssl_ca || config->ssl_cert || config->ssl_key))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "option \"ssl_mode\" = \"disabled\" contradicts \"ssl_ca\", \"ssl_cert\" "
                          "and \"ssl_key\"");
    int result = wb_common_servers_check(host, "host", config->host, error);
    if (result != WB_OK)
        return result;
    if (strchr(config->host, ',')) /* some versions of the library try one after the other, which nobody verified */
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "host = \"%s\" is several names, and there is no \"hosts\" for this plugin: "
                          "name one that leads to the server that takes the writes",
                          config->host);
    return mys_config_check_tls(host, config, error);
}

static int check_files(const wb_host *host, const mys_config *config, wb_error *error)
{
    int result = wb_common_file_check(host, "ssl_ca", config->ssl_ca, error);
    if (result == WB_OK)
        result = wb_common_file_check(host, "ssl_cert", config->ssl_cert, error);
    return result == WB_OK ? wb_common_file_check(host, "ssl_key", config->ssl_key, error) : result;
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    int result = check_config(host, config, error);
    if (result == WB_OK)
        result = check_files(host, config, error);
    if (result != WB_OK)
        return result;
    /* on the main thread, before there are others: connecting would do it, not safely */
    if (mysql_library_init(0, NULL, NULL) != 0 || mys_tls_init() != 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0,
                          "could not initialize the MySQL client library");
    wb_persistence *p = calloc(1, sizeof *p);
    if (!p)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    p->host = host;
    p->config = config;
    result = wb_sql_outbox_init(&p->sql, host, &mys_dialect, &mys_driver, endpoint,
                                p->config->database, error);
    if (result == WB_OK)
        *ret_persistence = p;
    else
        destroy(p);
    return result;
}

const wb_persistence_ops mys_ops =
    WB_SQL_OPS(create, destroy, mys_session_open, mys_session_close, mys_interface);

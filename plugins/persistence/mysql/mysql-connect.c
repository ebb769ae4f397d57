/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mysql.h>
#include <errmsg.h>

#include "plugins/common/dial.h"
#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-refusal.h"
#include "plugins/persistence/mysql/mysql-session.h"
#include "plugins/persistence/mysql/mysql-tls.h"

#define SECOND INT64_C(1000000000)
/* What the client library is ready to receive, and to send: the server's limits count. */
#define CLIENT_PACKET_MAX 1073741824UL
/* What a server surely takes before it was asked. */
#define PACKET_MAX_UNKNOWN 16384
/* Of what the system says. */
#define REASON_SIZE 160

static void set_timeout(wb_storage_session *s, enum mysql_option option, int64_t duration)
{
    const unsigned seconds = (unsigned)((duration + SECOND - 1) / SECOND);
    if (seconds)
        mysql_optionsv(s->connection, option, &seconds);
}

static void set_options(wb_storage_session *s)
{
    const mys_config *config = s->persistence->config;
    const my_bool off = 0;
    const unsigned no_files = 0;
    const unsigned long packet_max = CLIENT_PACKET_MAX;

    mys_watch_connection(&s->watch, s->connection);
    set_timeout(s, MYSQL_OPT_CONNECT_TIMEOUT, config->connect_timeout);
    set_timeout(s, MYSQL_OPT_READ_TIMEOUT, config->reply_timeout);
    set_timeout(s, MYSQL_OPT_WRITE_TIMEOUT, config->reply_timeout);
    mysql_optionsv(s->connection, MYSQL_OPT_RECONNECT, &off);
    mysql_optionsv(s->connection, MYSQL_OPT_LOCAL_INFILE, &no_files);
    mysql_optionsv(s->connection, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet_max);
    mysql_optionsv(s->connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    /* not the one that sends the password as it is, nor one that asks a terminal for it */
    mysql_optionsv(s->connection, MARIADB_OPT_RESTRICTED_AUTH,
                   "mysql_native_password,client_ed25519,caching_sha2_password,"
                   "sha256_password,auth_gssapi_client,parsec," MYS_TLS_GATE);
    mysql_optionsv(s->connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "waybill");
    mysql_optionsv(s->connection, MYSQL_OPT_CONNECT_ATTR_ADD, "waybill_endpoint",
                   s->persistence->sql.names.endpoint);
    mys_tls_set(s->connection, config);
}

/* Of a Unix socket the library says the number; of a port one that is always the same ("in progress"). @return NULL: there
 * is nothing to add. */
static const char *find_reason(const mys_config *config, unsigned code, const char *said, char reason[REASON_SIZE])
{
    const char *number = strrchr(said, '(');
    if (code != CR_CONNECTION_ERROR && code != CR_CONN_HOST_ERROR && code != CR_UNKNOWN_HOST)
        return NULL;
    if (config->socket || strstr(said, "socket"))
        return number && atoi(number + 1) > 0 ? strerror_r(atoi(number + 1), reason, REASON_SIZE) : NULL;
    const int64_t timeout = config->connect_timeout;
    return wb_common_dial(config->host, (int)config->port, timeout < SECOND ? timeout : SECOND, reason, REASON_SIZE) ? reason
                                                                                                                     : NULL;
}

static int fail_connect(const wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    const mys_config *config = s->persistence->config;
    const unsigned code = mysql_errno(s->connection);
    const mys_mapping *mapping = mys_map(code);
    const mys_refusal refusal = mys_refusal_find(config, code, mysql_error(s->connection));
    const int is_unheard = mys_is_client_error(code) || code < 1000;
    const char *hint = "";
    char text[REASON_SIZE];

    if (is_unheard && config->ssl_mode == MYS_SSL_AUTO && !mys_config_is_local(config))
        hint = " (ssl_mode is verify_identity because the server is on another machine)";
    if (refusal.result != WB_OK)
        return host->fail(host, error, refusal.result, refusal.cause, code,
                          "could not connect to MySQL: %s (error %u)%s%s", mysql_error(s->connection),
                          code, refusal.remedy, hint);
    if (is_unheard) {
        const char *reason = find_reason(config, code, mysql_error(s->connection), text);
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, code,
                          "could not connect to MySQL: %s%s%s%s", mysql_error(s->connection), reason ? ": " : "",
                          reason ? reason : "", hint);
    }
    if (code == 1049)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISSING, code,
                          "could not connect to MySQL: database \"%s\" does not exist: create it",
                          config->database);
    return host->fail(host, error, mapping->own == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED,
                      mapping->own_cause, code, "could not connect to MySQL: %s (error %u)",
                      mysql_error(s->connection), code);
}

/* Belt and braces: mysql-tls.h keeps the client library from going on in plain text. */
static int check_encryption(const wb_storage_session *s, wb_error *error)
{
    if (mys_config_ssl_mode(s->persistence->config) == MYS_SSL_DISABLED ||
        mysql_get_ssl_cipher(s->connection))
        return WB_OK;
    return s->host->fail(s->host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                         "could not connect to MySQL: the server offers no TLS, and ssl_mode asks "
                         "for it");
}

/* Connector/C leaves it to programs that a handler starts, for which the server would keep the session, and its locks. */
static void keep_from_programs(const wb_storage_session *s)
{
    (void)fcntl(mysql_get_socket(s->connection), F_SETFD, FD_CLOEXEC);
}

static int connect_session(wb_storage_session *s, wb_error *error)
{
    const mys_config *config = s->persistence->config;

    s->connection = mysql_init(NULL);
    if (!s->connection)
        return s->host->fail(s->host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory");
    set_options(s);
    if (!mysql_real_connect(s->connection, config->socket ? NULL : config->host, config->user,
                            config->password, config->database, (unsigned)config->port,
                            config->socket, CLIENT_MULTI_STATEMENTS))
        return fail_connect(s, error);
    keep_from_programs(s);
    s->is_multi = 1;
    s->packet_max = PACKET_MAX_UNKNOWN;
    return check_encryption(s, error);
}

int mys_session_connect(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error)
{
    wb_storage_session *s = calloc(1, sizeof *s);
    if (!s)
        return persistence->host->fail(persistence->host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                       "out of memory");
    s->persistence = persistence;
    s->host = persistence->host;
    int result = connect_session(s, error);
    if (result == WB_OK)
        *ret_session = s;
    else
        mys_session_close(s);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-session.h"

#define SECOND INT64_C(1000000000)
/* What the client library is ready to receive, and to send: the server's limits count. */
#define CLIENT_PACKET_MAX 1073741824UL
/* What a server surely takes before it was asked. */
#define PACKET_MAX_UNKNOWN 16384

static int is_local(const mys_config *config)
{
    const char *host = config->host;
    if (config->socket || !host || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0)
        return 1;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host);
}

static int ssl_mode(const mys_config *config)
{
    if (config->ssl_mode != MYS_SSL_AUTO)
        return config->ssl_mode;
    return is_local(config) ? MYS_SSL_DISABLED : MYS_SSL_VERIFY;
}

/* Whom to trust without ssl_ca. Connector/C looks where OpenSSL does, but from 3.4 on takes a
 * certificate of anybody as well when the server knows the account's password, unless it was
 * told of a place. */
static void set_default_authorities(wb_storage_session *s)
{
#if MARIADB_PACKAGE_VERSION_ID >= 30400
    const char *place = getenv("SSL_CERT_DIR");
    mysql_optionsv(s->connection, MYSQL_OPT_SSL_CAPATH,
                   place && place[0] ? place : "/etc/ssl/certs");
#else
    (void)s;
#endif
}

static void set_tls(wb_storage_session *s)
{
    const mys_config *config = s->persistence->config;
    const int mode = ssl_mode(config);
    const my_bool on = 1;
    const my_bool verify = mode == MYS_SSL_VERIFY;

    if (mode == MYS_SSL_DISABLED)
        return;
    mysql_optionsv(s->connection, MYSQL_OPT_SSL_ENFORCE, &on);
    mysql_optionsv(s->connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    mysql_optionsv(s->connection, MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
    if (config->ssl_ca)
        mysql_optionsv(s->connection, MYSQL_OPT_SSL_CA, config->ssl_ca);
    else if (verify)
        set_default_authorities(s);
    if (config->ssl_cert)
        mysql_optionsv(s->connection, MYSQL_OPT_SSL_CERT, config->ssl_cert);
    if (config->ssl_key)
        mysql_optionsv(s->connection, MYSQL_OPT_SSL_KEY, config->ssl_key);
}

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
                   "sha256_password,auth_gssapi_client,parsec");
    mysql_optionsv(s->connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "waybill");
    mysql_optionsv(s->connection, MYSQL_OPT_CONNECT_ATTR_ADD, "waybill_endpoint",
                   s->persistence->names.endpoint);
    set_tls(s);
}

static int fail_connect(const wb_storage_session *s, wb_error *error)
{
    const wb_host *host = s->host;
    const mys_config *config = s->persistence->config;
    const unsigned code = mysql_errno(s->connection);
    const mys_mapping *mapping = mys_map(code);

    if (mys_is_client_error(code) || code < 1000) {
        const char *hint = "";
        if (config->ssl_mode == MYS_SSL_AUTO && !is_local(config))
            hint = " (ssl_mode is verify_identity because the server is on another machine)";
        return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, code,
                          "could not connect to MySQL: %s%s", mysql_error(s->connection), hint);
    }
    if (code == 1049)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISSING, code,
                          "could not connect to MySQL: database \"%s\" does not exist: create it",
                          config->database);
    return host->fail(host, error, mapping->own == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED,
                      mapping->own_cause, code, "could not connect to MySQL: %s (error %u)",
                      mysql_error(s->connection), code);
}

/* Some versions of the client library go on in plain text where the server offers no TLS. */
static int check_encryption(const wb_storage_session *s, wb_error *error)
{
    if (ssl_mode(s->persistence->config) == MYS_SSL_DISABLED || mysql_get_ssl_cipher(s->connection))
        return WB_OK;
    return s->host->fail(s->host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                         "could not connect to MySQL: the server offers no TLS, and ssl_mode asks "
                         "for it");
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

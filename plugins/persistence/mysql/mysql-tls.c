/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-tls.h"

#include <mysql/plugin_auth.h>
#include <stdlib.h>
#include <unistd.h>

/* <mysql/client_plugin.h> cannot be included: it needs files that Debian does not ship.
 * 1.1 appended the hash of a password, which is not asked for when it is NULL. */
#define AUTHENTICATION 2
#define INTERFACE_1_1 0x0101

typedef struct method {
    MYSQL_CLIENT_PLUGIN_HEADER
    int (*authenticate)(MYSQL_PLUGIN_VIO *vio, MYSQL *connection);
    int (*hash_password)(MYSQL *connection, unsigned char *hash, size_t *size);
} method;

static void verify_nobody(MYSQL *connection)
{
    const my_bool off = 0;
    mysql_optionsv(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &off);
    connection->client_flag &= ~CLIENT_SSL_VERIFY_SERVER_CERT;
}

/* The first packet starts TLS where it is offered; where it is not, the library refuses to
 * send it, since it is still to verify. It holds no answer: that waits for the server's own
 * method. */
static int pass_gate(MYSQL_PLUGIN_VIO *vio, MYSQL *connection)
{
    if (connection->server_capabilities & CLIENT_SSL)
        verify_nobody(connection);
    return vio->write_packet(vio, NULL, 0) ? CR_ERROR : CR_OK;
}

static method gate = {
    .type = AUTHENTICATION,
    .interface_version = INTERFACE_1_1,
    .name = MYS_TLS_GATE,
    .author = "Waybill",
    .desc = "says nothing to a server that offers no TLS",
    .version = { 1, 0, 0 },
    .license = "Apache-2.0",
    .authenticate = pass_gate,
};

int mys_tls_init(void)
{
    static int is_known;
    MYSQL *reporter = is_known ? NULL : mysql_init(NULL);
    if (reporter)
        is_known = mysql_client_register_plugin(
                       reporter, (struct st_mysql_client_plugin *)&gate) != NULL;
    if (reporter)
        mysql_close(reporter);
    return is_known ? 0 : -1;
}

/* Whom to trust without ssl_ca. Connector/C looks where OpenSSL does, but from 3.4 on takes a
 * certificate of anybody as well when the server knows the account's password, unless it was
 * told of a place; and then it looks there alone, so it is told of both that OpenSSL has. */
static void set_default_authorities(MYSQL *connection)
{
#if MARIADB_PACKAGE_VERSION_ID >= 30400
    const char *place = getenv("SSL_CERT_DIR"), *file = getenv("SSL_CERT_FILE");
    mysql_optionsv(connection, MYSQL_OPT_SSL_CAPATH, place && place[0] ? place : "/etc/ssl/certs");
    if (file && access(file, R_OK) == 0)
        mysql_optionsv(connection, MYSQL_OPT_SSL_CA, file);
#else
    (void)connection;
#endif
}

void mys_tls_set(MYSQL *connection, const mys_config *config)
{
    const int mode = mys_config_ssl_mode(config);
    const my_bool on = 1;

    if (mode == MYS_SSL_DISABLED)
        return;
    mysql_optionsv(connection, MYSQL_OPT_SSL_ENFORCE, &on);
    mysql_optionsv(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
    mysql_optionsv(connection, MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
    if (mode == MYS_SSL_REQUIRED)
        mysql_optionsv(connection, MYSQL_DEFAULT_AUTH, MYS_TLS_GATE);
    if (config->ssl_ca)
        mysql_optionsv(connection, MYSQL_OPT_SSL_CA, config->ssl_ca);
    else if (mode == MYS_SSL_VERIFY)
        set_default_authorities(connection);
    if (config->ssl_cert)
        mysql_optionsv(connection, MYSQL_OPT_SSL_CERT, config->ssl_cert);
    if (config->ssl_key)
        mysql_optionsv(connection, MYSQL_OPT_SSL_KEY, config->ssl_key);
}

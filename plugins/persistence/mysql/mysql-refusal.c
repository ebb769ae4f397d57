/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-refusal.h"

#include <mysql.h>
#include <errmsg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <waybill/sys/plugin.h>

#define LOGIN "; check user and password"
#define ACCESS_DENIED 1045
#define DATABASE_DENIED 1044

static int is_unreadable(const char *path)
{
    return path && access(path, R_OK) != 0;
}

static mys_refusal refusal_of_tls(const mys_config *config, const char *text)
{
    if (is_unreadable(config->ssl_ca) || is_unreadable(config->ssl_cert) ||
        is_unreadable(config->ssl_key))
        return (mys_refusal){ WB_FATAL, WB_CAUSE_CONFIG,
                              "; a file that ssl_ca, ssl_cert or ssl_key names cannot be read" };
    if (strstr(text, "server does not support it"))
        return (mys_refusal){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                              "; switch TLS on in the server, or see ssl_mode" };
    if (strstr(text, "alert unknown ca") || (strstr(text, "alert") && strstr(text, "certificate")))
        return (mys_refusal){ WB_FATAL, WB_CAUSE_REFUSED,
                              "; the server does not take the certificate ssl_cert" };
    /* "certificate has expired", "Validation of SSL server certificate failed", and from 3.4 on
     * "Hostname verification failed" */
    if (strcasestr(text, "certificate") || strcasestr(text, "hostname"))
        return (mys_refusal){ WB_FATAL, WB_CAUSE_REFUSED,
                              "; check ssl_ca, that the server's certificate has not expired, and "
                              "that option \"host\" is a name in it" };
    return (mys_refusal){ 0 };
}

/* The server does not say which of it: an account may ask for more than a password. */
static const char *remedy_of_login(const mys_config *config)
{
    if (mys_config_ssl_mode(config) == MYS_SSL_DISABLED)
        return LOGIN ", and whether the account requires TLS (ssl_mode)";
    return config->ssl_cert ? LOGIN : LOGIN ", and whether the account requires a certificate (ssl_cert)";
}

mys_refusal mys_refusal_find(const mys_config *config, unsigned code, const char *text)
{
    if (code == CR_SSL_CONNECTION_ERROR)
        return refusal_of_tls(config, text);
    if (code == ACCESS_DENIED)
        return (mys_refusal){ WB_FATAL, WB_CAUSE_REFUSED, remedy_of_login(config) };
    if (code == DATABASE_DENIED)
        return (mys_refusal){ WB_FATAL, WB_CAUSE_REFUSED,
                              "; grant the user the privileges that waybill.conf(5) lists" };
    if (code == CR_SERVER_LOST && config->ssl_cert && mys_config_ssl_mode(config) != MYS_SSL_DISABLED)
        return (mys_refusal){ WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
                              "; perhaps the server does not trust who signed ssl_cert" };
    return (mys_refusal){ 0 };
}

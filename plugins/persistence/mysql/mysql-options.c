/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/common/loopback.h"
#include "plugins/persistence/mysql/mysql-options.h"

#define AT(field) offsetof(mys_config, field)
#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static const char *const ssl_modes[] = { "auto", "disabled", "required", "verify_identity", NULL };

const wb_option mys_options[MYS_OPTION_COUNT] = {
    { "host", WB_OPTION_STRING, 0, AT(host), "localhost", 0, 0, NULL, "0.1",
      "server name or address",
      "\"localhost\" is the server's Unix socket, as everywhere with MySQL; 127.0.0.1 is not. "
      "One name: several are refused." },
    { "port", WB_OPTION_INTEGER, 0, AT(port), "3306", 1, 65535, NULL, "0.1", "server port", NULL },
    { "socket", WB_OPTION_STRING, 0, AT(socket), NULL, 0, 0, NULL, "0.1",
      "path of the server's Unix socket", "Wins over host and port." },
    { "database", WB_OPTION_STRING, WB_OPTION_REQUIRED, AT(database), NULL, 0, 0, NULL, "0.1",
      "database of the outbox tables, and of handlers' statements", NULL },
    { "user", WB_OPTION_STRING, 0, AT(user), NULL, 0, 0, NULL, "0.1", "user to connect as",
      "The account the program runs under when nobody says." },
    { "password", WB_OPTION_STRING, WB_OPTION_SECRET, AT(password), NULL, 0, 0, NULL, "0.1",
      "password of the user", NULL },
    { "connect_timeout", WB_OPTION_DURATION, 0, AT(connect_timeout), "10s", SECOND, DAY, NULL,
      "0.1", "longest wait for a connection, in whole seconds", NULL },
    { "reply_timeout", WB_OPTION_DURATION, 0, AT(reply_timeout), "5min", 0, DAY, NULL, "0.1",
      "give up a connection whose server answers nothing for so long, in whole seconds",
      "Counts for statements of handlers, too. Longer than lock_timeout. 0: never." },
    { "lock_timeout", WB_OPTION_DURATION, 0, AT(lock_timeout), "30s", 0, DAY, NULL, "0.1",
      "longest wait for a lock, also of a claim for the transaction that holds the same id, in "
      "whole seconds",
      "0: for ever." },
    { "ssl_mode", WB_OPTION_CHOICE, 0, AT(ssl_mode), "auto", 0, 0, ssl_modes, "0.1",
      "TLS and how much of it is verified",
      "auto: verify_identity, or disabled for a Unix socket or a loopback address. "
      "verify_identity: encrypted, and the certificate is one of the named host, from a trusted "
      "authority. required: encrypted, to whoever answers, which is warned of when the server is on "
      "another machine. A server that offers no TLS is refused by both, before it learns the user. "
      "disabled is refused for a server on another machine, unless allow_insecure is set." },
    { "ssl_ca", WB_OPTION_PATH, 0, AT(ssl_ca), NULL, 0, 0, NULL, "0.1",
      "file with the certificate authorities to trust", "Those of the system when nobody says." },
    { "ssl_cert", WB_OPTION_PATH, 0, AT(ssl_cert), NULL, 0, 0, NULL, "0.1",
      "file with the client's certificate", NULL },
    { "ssl_key", WB_OPTION_PATH, 0, AT(ssl_key), NULL, 0, 0, NULL, "0.1",
      "file with the key of the client's certificate", NULL },
    { "multi_statements", WB_OPTION_BOOLEAN, 0, AT(multi_statements), "false", 0, 0, NULL, "0.1",
      "let handlers send several statements in one text on the plain connection",
      "Off, a value that a handler pasted into a statement cannot add a statement of its own." },
    { "allow_insecure", WB_OPTION_BOOLEAN, 0, AT(allow_insecure), "false", 0, 0, NULL, "0.1",
      "permit ssl_mode = \"disabled\" with a server on another machine",
      "What is stored and read then crosses the network in clear text." },
};

/* ---- TLS ---------------------------------------------------------------------------- */

int mys_config_is_local(const mys_config *config)
{
    const char *host = config->host;
    return config->socket || !host || wb_common_is_loopback(host, strlen(host));
}

int mys_config_ssl_mode(const mys_config *config)
{
    if (config->ssl_mode != MYS_SSL_AUTO)
        return config->ssl_mode;
    return mys_config_is_local(config) ? MYS_SSL_DISABLED : MYS_SSL_VERIFY;
}

int mys_config_check_tls(const wb_host *host, const mys_config *config, wb_error *error)
{
    const int mode = mys_config_ssl_mode(config);
    if (mys_config_is_local(config))
        return WB_OK;
    if (mode == MYS_SSL_DISABLED && !config->allow_insecure)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "ssl_mode = \"disabled\" with server \"%s\", which is not on this "
                          "machine: use \"verify_identity\", or set allow_insecure = true",
                          config->host);
    if (mode != MYS_SSL_VERIFY)
        host->log(host, WB_LOG_WARNING,
                  "the server is on another machine, and nobody verifies that it is the right one: "
                  "use ssl_mode = \"verify_identity\"",
                  (const wb_field[]){ { "host", config->host },
                                      { "ssl_mode", ssl_modes[mode] } },
                  2);
    return WB_OK;
}

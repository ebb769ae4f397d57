/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the mysql persistence and the struct the host fills with them.
 */
#ifndef MYSQL_OPTIONS_H
#define MYSQL_OPTIONS_H

#include <waybill/sys/plugin.h>

/** Values of mys_config.ssl_mode. */
#define MYS_SSL_AUTO 0 /* verify unless the server is on this machine */
#define MYS_SSL_DISABLED 1
#define MYS_SSL_REQUIRED 2 /* encrypted, to whom is not verified */
#define MYS_SSL_VERIFY 3

typedef struct mys_config {
    const char *host;
    int64_t port;
    const char *socket;
    const char *database;
    const char *user;
    const char *password;
    int64_t connect_timeout; /* nanoseconds, as all durations */
    int64_t reply_timeout;   /* 0: none */
    int64_t lock_timeout;    /* 0: none */
    const char *ssl_ca;
    const char *ssl_cert;
    const char *ssl_key;
    int32_t ssl_mode; /* MYS_SSL_x */
    int32_t multi_statements;
    int32_t allow_insecure;
} mys_config;

#define MYS_OPTION_COUNT 15
extern const wb_option mys_options[MYS_OPTION_COUNT];

/** Whether the server is on this machine: a Unix socket or a loopback address. */
int mys_config_is_local(const mys_config *config);
/** MYS_SSL_x, but for auto what it means here. */
int mys_config_ssl_mode(const mys_config *config);
/** Refuse plain text between machines that nobody allowed, and warn of TLS that proves
 *  nothing. @return WB_OK, or WB_FATAL with cause WB_CAUSE_CONFIG. */
int mys_config_check_tls(const wb_host *host, const mys_config *config, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the pgsql persistence and the struct the host fills with them.
 */
#ifndef PGSQL_OPTIONS_H
#define PGSQL_OPTIONS_H

#include <waybill/sys/plugin.h>

/** Value of pgsql_config.sslmode: verify-full unless the server is on this machine. */
#define PGSQL_SSLMODE_AUTO 0

typedef struct pgsql_config {
    const char *conninfo;
    const char *host;
    int64_t port; /* 0: not given */
    const char *database;
    const char *user;
    const char *password;
    const char *schema;
    int64_t connect_timeout;   /* nanoseconds, as all durations */
    int64_t tcp_user_timeout;  /* 0: the system's */
    int64_t reply_timeout;     /* 0: none */
    int64_t lock_timeout;      /* 0: none */
    int64_t statement_timeout; /* 0: the server's */
    const char *sslrootcert;
    int32_t sslmode; /* index into pgsql_sslmodes */
    int32_t prepare;
    int32_t allow_insecure;
} pgsql_config;

extern const char *const pgsql_sslmodes[];
#define PGSQL_OPTION_COUNT 16
extern const wb_option pgsql_options[PGSQL_OPTION_COUNT];

#endif

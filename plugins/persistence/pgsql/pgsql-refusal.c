/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-refusal.h"

#include <stddef.h>
#include <string.h>

#include <waybill/sys/plugin.h>

#define UNTRUSTED WB_FATAL, WB_CAUSE_REFUSED
#define FILES WB_FATAL, WB_CAUSE_CONFIG
#define SHOW "; set sslcert and sslkey in option \"conninfo\""

static const pgsql_refusal refusals[] = {
    { "certificate verify failed", UNTRUSTED,
      "; check sslrootcert, and that the server's certificate has not expired" },
    { "does not match host name", UNTRUSTED,
      "; name the server in option \"host\" as its certificate does" },
    { "root certificate file", FILES, "; check sslrootcert" },
    { "private key file", FILES, "; check sslcert and sslkey" },
    { "could not read certificate file", FILES, "; check sslcert" },
    { "does not support SSL", WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE,
      "; switch TLS on in the server (ssl = on)" },
    /* what the server says of ours */
    { "alert unknown ca", UNTRUSTED, "; the server does not trust who signed sslcert" },
    { "alert bad certificate", UNTRUSTED, "; the server does not take the certificate sslcert" },
    { "alert certificate expired", UNTRUSTED, "; renew sslcert" },
    { "alert certificate", UNTRUSTED, SHOW },
    { "valid client certificate", UNTRUSTED, SHOW },
    { "permission denied for database", UNTRUSTED, "; grant CONNECT on it" },
};

static const char *find_last(const char *message)
{
    static const char begins[] = "connection to server";
    const char *last = message;
    for (const char *at = message; (at = strstr(at, begins)) != NULL; at++)
        last = at;
    return last;
}

const pgsql_refusal *pgsql_refusal_find(const char *message)
{
    const char *last = find_last(message);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (strstr(last, refusals[i].words))
            return &refusals[i];
    return NULL;
}

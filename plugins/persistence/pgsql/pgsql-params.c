/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-params.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/certificate.h"
#include "plugins/common/loopback.h"
#include "plugins/common/servers.h"
#include "plugins/persistence/pgsql/pgsql-probe.h"

static int find(const pgsql_params *params, const char *keyword, size_t *ret_at)
{
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->keywords[i], keyword) == 0) {
            *ret_at = i;
            return 1;
        }
    return 0;
}

static int has(const pgsql_params *params, const char *keyword)
{
    size_t at;
    return find(params, keyword, &at);
}

static void forget_value(char *value)
{
    if (value)
        explicit_bzero(value, strlen(value));
    free(value);
}

/* Set or replace; a NULL or empty value says nothing. @return 0, or -1: no memory. */
static int set(pgsql_params *params, const char *keyword, const char *value)
{
    size_t at = params->count;
    if (!value || !*value)
        return 0;
    char *copy = strdup(value);
    if (!copy)
        return -1;
    if (find(params, keyword, &at)) {
        forget_value(params->values[at]);
        params->values[at] = copy;
        return 0;
    }
    params->keywords[at] = at < PGSQL_PARAMS_MAX ? strdup(keyword) : NULL;
    if (!params->keywords[at]) {
        forget_value(copy);
        return -1;
    }
    params->values[at] = copy;
    params->count++;
    return 0;
}

static int set_number(pgsql_params *params, const char *keyword, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return set(params, keyword, text);
}

static int set_defaults(pgsql_params *params, const pgsql_config *config, const char *endpoint)
{
    char name[PGSQL_PARAMS_MAX]; /* the server keeps 63 bytes */
    (void)snprintf(name, sizeof name, "waybill/%s", endpoint);
    /* keepalives end the wait for a server whose machine is gone; tcp_user_timeout only
     * covers data that we sent and nobody acknowledged */
    return set(params, "application_name", name) || set(params, "keepalives_idle", "30") ||
           set(params, "keepalives_interval", "10") || set(params, "keepalives_count", "3") ||
           (config->tcp_user_timeout &&
            set_number(params, "tcp_user_timeout", config->tcp_user_timeout / 1000000));
}

static int set_conninfo(pgsql_params *params, const char *conninfo, int *ret_malformed)
{
    char *message = NULL;
    int failed = 0;
    PQconninfoOption *parsed = PQconninfoParse(conninfo, &message);

    /* the message may quote a part of the password, so that nobody sees it */
    PQfreemem(message);
    *ret_malformed = !parsed;
    for (PQconninfoOption *o = parsed; o && o->keyword; o++)
        failed |= set(params, o->keyword, o->val);
    PQconninfoFree(parsed);
    return failed ? -1 : 0;
}

static int set_options(pgsql_params *params, const pgsql_config *config)
{
    return set(params, "host", config->host) ||
           (config->port && set_number(params, "port", config->port)) ||
           set(params, "dbname", config->database) || set(params, "user", config->user) ||
           set(params, "password", config->password) ||
           set(params, "sslrootcert", config->sslrootcert) ||
           (config->sslmode != PGSQL_SSLMODE_AUTO &&
            set(params, "sslmode", pgsql_sslmodes[config->sslmode])) ||
           set(params, "client_encoding", "UTF8");
}

static int out_of_memory(const wb_host *host, wb_error *error)
{
    return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
}

static int is_local(const char *host, size_t size)
{
    return size == 0 || *host == '/' || *host == '@' || wb_common_is_loopback(host, size);
}

int pgsql_params_are_local(const char *hosts, const char *addresses)
{
    if (!hosts)
        hosts = "";
    if (!addresses)
        addresses = "";
    while (hosts || addresses) {
        size_t host_size = 0;
        size_t address_size = 0;
        const char *host = hosts;
        const char *address = addresses;
        hosts = hosts ? pgsql_next_in_list(hosts, &host_size) : NULL;
        addresses = addresses ? pgsql_next_in_list(addresses, &address_size) : NULL;
        if (address_size) /* the address is what is connected to; the host is its name then */
            host = address;
        if (!is_local(host ? host : "", address_size ? address_size : host_size))
            return 0;
    }
    return 1;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

/* ---- what libpq would quote ------------------------------------------------------- */

static const char *behind_scheme(const char *conninfo)
{
    static const char *const schemes[] = { "postgresql://", "postgres://" };
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(conninfo, schemes[i], strlen(schemes[i])) == 0)
            return conninfo + strlen(schemes[i]);
    return NULL;
}

/* Of a password with an "@" or a "/" in it libpq takes what is behind for the server's name, and what
 * is in front of it for the port, and quotes them when there is no such server. */
static int is_ambiguous(const char *conninfo)
{
    const char *at = behind_scheme(conninfo);
    if (!at)
        return 0;
    at += strcspn(at, "@/");
    if (*at == '@')
        at++;
    return memchr(at, '@', strcspn(at, "?")) != NULL;
}

static int check_conninfo(const wb_host *host, const char *conninfo, wb_error *error)
{
    if (!conninfo || !is_ambiguous(conninfo))
        return WB_OK;
    return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                      "option \"conninfo\" is a URI with an \"@\" that does not end the password, so that its parts are not "
                      "shown here: in user and password write @ as %%40 and / as %%2F, or use the option \"password\"");
}

/* Whoever said it: the options, the service file, the environment. */
static int check_servers(const wb_host *host, const PQconninfoOption *resolved, wb_error *error)
{
    const char *port = value_of(resolved, "port");
    int result = wb_common_servers_check(host, "the name of the server", value_of(resolved, "host"), error);
    if (result == WB_OK)
        result = wb_common_servers_check(host, "the address of the server", value_of(resolved, "hostaddr"), error);
    if (result == WB_OK && port && port[strspn(port, "0123456789, ")])
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "the port of the server is no number, and may be a part of a password, so it is not shown "
                          "here: in a URI, write : in a user and / in a password as %%3A and %%2F");
    return result;
}

/* ---- TLS -------------------------------------------------------------------------- */

/* What nobody but the environment may have said: neither the options, nor conninfo, nor a
 * service that conninfo names. A service that says the same as the environment cannot be
 * told from one that says nothing. */
static int is_environments(const pgsql_params *params, const char *value, const char *variable)
{
    const char *said = getenv(variable);
    return !has(params, "service") || (said && value && strcmp(said, value) == 0);
}

/* libpq's own defaults are not safe between machines: prefer falls back to plain text in
 * silence. And whoever sets an environment variable for psql does not mean this program. */
static int set_verified(pgsql_params *params, const PQconninfoOption *resolved)
{
    const char *mode = value_of(resolved, "sslmode");
    const char *version = value_of(resolved, "ssl_min_protocol_version");
    const char *legacy = getenv("PGREQUIRESSL");
    int is_require = mode && strcmp(mode, "require") == 0 && legacy && *legacy == '1';
    int failed = 0;
    if (!has(params, "sslmode") && (!mode || strcmp(mode, "prefer") == 0 || is_require ||
                                    is_environments(params, mode, "PGSSLMODE"))) {
        failed |= set(params, "sslmode", "verify-full");
        params->tls_by_default = 1;
    }
    if (!has(params, "ssl_min_protocol_version") &&
        (!version || is_environments(params, version, "PGSSLMINPROTOCOLVERSION")))
        failed |= set(params, "ssl_min_protocol_version", "TLSv1.2");
    return failed;
}

static int is_plain(const char *mode)
{
    return strcmp(mode, "disable") == 0 || strcmp(mode, "allow") == 0 ||
           strcmp(mode, "prefer") == 0;
}

/* Of what was asked for, by whomever. */
static int check_tls(const wb_host *host, const pgsql_config *config, const char *mode,
                     atomic_int *said, const PQconninfoOption *resolved, wb_error *error)
{
    const char *server = value_of(resolved, "host");
    if (!server)
        server = value_of(resolved, "hostaddr");
    if (is_plain(mode) && !config->allow_insecure)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "sslmode = \"%s\" with server \"%s\", which is not on this machine: use "
                          "\"verify-full\", or set allow_insecure = true",
                          mode, server);
    if (strcmp(mode, "verify-full") != 0 && !atomic_exchange(said, 1))
        host->log(host, WB_LOG_WARNING,
                  "the server is on another machine, and nobody verifies that it is the right one: "
                  "use sslmode = \"verify-full\"",
                  (const wb_field[]){ { "host", server }, { "sslmode", mode } }, 2);
    return WB_OK;
}

/* Defaults that depend on which server it is. */
static int set_safety(const wb_host *host, const pgsql_config *config, atomic_int *said,
                      pgsql_params *params, wb_error *error)
{
    size_t at;
    PQconninfoOption *resolved = pgsql_probe_resolve(params);
    const char *hosts = value_of(resolved, "host");
    const char *addresses = value_of(resolved, "hostaddr");
    if (check_servers(host, resolved, error) != WB_OK) {
        PQconninfoFree(resolved);
        return WB_FATAL;
    }
    const int is_away = !pgsql_params_are_local(hosts, addresses);
    int failed = is_away ? set_verified(params, resolved) : 0;
    const char *mode =
        find(params, "sslmode", &at) ? params->values[at] : value_of(resolved, "sslmode");

    /* what is judged is what is used, even if the service file changes before libpq reads it */
    if (is_away && !has(params, "sslmode"))
        failed |= set(params, "sslmode", mode);
    failed |= pgsql_servers_split(hosts, addresses, value_of(resolved, "port"), &params->servers);
    /* of several servers, the one that can write */
    if (params->servers.count > 1 && !has(params, "target_session_attrs"))
        failed |= set(params, "target_session_attrs", "read-write");
    if (!has(params, "gssencmode"))
        failed |= set(params, "gssencmode", "disable");
    int result = failed    ? out_of_memory(host, error)
                 : is_away ? check_tls(host, config, mode, said, resolved, error)
                           : WB_OK;
    PQconninfoFree(resolved);
    return result;
}

int pgsql_params_build(const wb_host *host, const pgsql_config *config, const char *endpoint,
                       atomic_int *said, pgsql_params *ret_params, wb_error *error)
{
    int malformed = 0;

    memset(ret_params, 0, sizeof *ret_params);
    if (check_conninfo(host, config->conninfo, error) != WB_OK)
        return WB_FATAL;
    int failed = set_defaults(ret_params, config, endpoint);
    if (!failed && config->conninfo)
        failed = set_conninfo(ret_params, config->conninfo, &malformed);
    if (malformed)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "option \"conninfo\" is not a connection string: write \"host=... "
                          "dbname=...\", \"service=...\" or a postgresql:// URI");
    if (failed || set_options(ret_params, config) != 0)
        return out_of_memory(host, error);
    return set_safety(host, config, said, ret_params, error);
}

/* "system" is libpq's word for the authorities of the system, "engine:key" names no file. */
static int check_file(const wb_host *host, const pgsql_params *params, const char *keyword, wb_error *error)
{
    size_t at;
    if (!find(params, keyword, &at) || strcmp(params->values[at], "system") == 0 || strchr(params->values[at], ':'))
        return WB_OK;
    return wb_common_file_check(host, keyword, params->values[at], error);
}

int pgsql_params_check_files(const wb_host *host, const pgsql_params *params, wb_error *error)
{
    size_t at;
    if (find(params, "sslmode", &at) && strcmp(params->values[at], "disable") == 0)
        return WB_OK;
    int result = check_file(host, params, "sslrootcert", error);
    if (result == WB_OK)
        result = check_file(host, params, "sslcert", error);
    return result == WB_OK ? check_file(host, params, "sslkey", error) : result;
}

static int names_the_server(const char *keyword)
{
    return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
           strcmp(keyword, "port") == 0;
}

/* libpq ignores what is NULL, so that an element without a value is not the whole list. */
void pgsql_params_for(const pgsql_params *params, const pgsql_server *server, const char *address,
                      const char **ret_keywords, const char **ret_values)
{
    size_t count = 0;
    for (size_t i = 0; i < params->count; i++)
        if (!names_the_server(params->keywords[i])) {
            ret_keywords[count] = params->keywords[i];
            ret_values[count++] = params->values[i];
        }
    const char *const keywords[] = { "host", "hostaddr", "port", NULL };
    const char *const values[] = { server->host, address ? address : server->address,
                                   server->port, NULL };
    memcpy(ret_keywords + count, keywords, sizeof keywords);
    memcpy(ret_values + count, values, sizeof values);
}

void pgsql_params_free(pgsql_params *params)
{
    for (size_t i = 0; i < params->count; i++) {
        free(params->keywords[i]);
        forget_value(params->values[i]);
    }
    pgsql_servers_free(&params->servers);
    memset(params, 0, sizeof *params);
}

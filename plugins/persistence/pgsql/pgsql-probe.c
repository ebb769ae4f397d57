/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-probe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* No value of anything. */
#define STOP "this-only-asks"

/* Not taken for a session attribute. Among the last that libpq judges, behind the numbers of hosts and ports. */
static PGconn *stop_at_attributes(const pgsql_params *params)
{
    pgsql_params probe = *params;
    char keyword[] = "target_session_attrs";
    char value[] = STOP;
    size_t at = 0;

    while (at < probe.count && strcmp(probe.keywords[at], keyword) != 0)
        at++;
    if (at == probe.count) {
        probe.keywords[at] = keyword;
        probe.keywords[at + 1] = NULL;
        probe.values[at + 1] = NULL;
    }
    probe.values[at] = value;
    return PQconnectStartParams((const char *const *)probe.keywords, (const char *const *)probe.values, 0);
}

/* Not taken for an address, which has to be a number: it is judged when all else was. */
static PGconn *stop_at_address(const pgsql_params *params)
{
    static char name[] = STOP, port[] = "1";
    const pgsql_server nowhere = { name, name, port };
    const char *keywords[PGSQL_PARAMS_MAX + 4];
    const char *values[PGSQL_PARAMS_MAX + 4];
    pgsql_params_for(params, &nowhere, NULL, keywords, values);
    return PQconnectStartParams(keywords, values, 0);
}

PQconninfoOption *pgsql_probe_resolve(const pgsql_params *params)
{
    PGconn *connection = stop_at_attributes(params);
    PQconninfoOption *options = connection ? PQconninfo(connection) : NULL;
    PQfinish(connection);
    return options;
}

static const char *whose(int conninfo)
{
    return conninfo ? "option \"conninfo\"" : "what the environment says for libpq";
}

static int judge(const wb_host *host, PGconn *connection, int conninfo, wb_error *error)
{
    const char *message = PQerrorMessage(connection);
    int result = WB_OK;
    if (!connection)
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    else if (!strstr(message, STOP))
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s cannot be used: %.*s",
                            whose(conninfo), (int)strcspn(message, "\n"), message);
    PQfinish(connection);
    return result;
}

static int is_number(const char *text, long least, long most)
{
    char *end = NULL;
    errno = 0;
    const long number = strtol(text, &end, 10);
    return end != text && !*end && errno == 0 && number >= least && number <= most;
}

/* What it judges once it has a socket. */
static const char *find_no_number(const PQconninfoOption *options)
{
    static const char *const numbers[] = { "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
                                           "tcp_user_timeout" };
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            if (strcmp(o->keyword, numbers[i]) == 0 && o->val && *o->val && !is_number(o->val, INT_MIN, INT_MAX))
                return numbers[i];
    return NULL;
}

static int has_wrong_port(const pgsql_servers *servers)
{
    for (size_t i = 0; i < servers->count; i++)
        if (servers->list[i].port && !is_number(servers->list[i].port, 1, 65535))
            return 1;
    return 0;
}

/* A port may be a part of a password (pgsql-params.c). */
static int check_numbers(const wb_host *host, const pgsql_params *params, int conninfo, wb_error *error)
{
    PQconninfoOption *options = pgsql_probe_resolve(params);
    const char *keyword = find_no_number(options);
    int result = WB_OK;
    if (has_wrong_port(&params->servers))
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s cannot be used: a port is a number from 1 to 65535",
                            whose(conninfo));
    else if (keyword)
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s cannot be used: %s is no number", whose(conninfo),
                            keyword);
    PQconninfoFree(options);
    return result;
}

int pgsql_probe_check(const wb_host *host, const pgsql_params *params, int conninfo, wb_error *error)
{
    int result = judge(host, stop_at_attributes(params), conninfo, error);
    if (result == WB_OK)
        result = judge(host, stop_at_address(params), conninfo, error);
    return result == WB_OK ? check_numbers(host, params, conninfo, error) : result;
}

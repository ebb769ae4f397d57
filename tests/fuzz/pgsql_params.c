/* SPDX-License-Identifier: Apache-2.0
 *
 * Where to connect to, as a configuration says it: connection strings, lists of hosts. What passes
 * for this machine is nothing but this machine, for from elsewhere nothing comes unencrypted that
 * nobody allowed; and a password is in no error.
 */
#include "config.h"

#include <libpq-fe.h>
#include <string.h>

#include "core/base/host.h"
#include "core/base/log.h"
#include "plugins/common/loopback.h"
#include "plugins/persistence/pgsql/pgsql-params.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "pgsql_params";

#define SECRET_BEGINS "Xq7"
#define SECRET " password=" SECRET_BEGINS "secret"

static int is_here(const pgsql_server *server)
{
    const char *where = server->address ? server->address : server->host;
    return !where || *where == '/' || *where == '@' || wb_common_is_loopback(where, strlen(where));
}

/* ---- lists -------------------------------------------------------------------------------- */

static void try_lists(const char *hosts, const char *addresses, const char *ports)
{
    pgsql_servers servers = { 0 };
    FUZZ_CHECK(pgsql_servers_split(hosts, addresses, ports, &servers) == 0);
    FUZZ_CHECK(servers.count >= 1);
    for (size_t i = 0; pgsql_params_are_local(hosts, addresses) && i < servers.count; i++)
        FUZZ_CHECK(is_here(&servers.list[i]));
    pgsql_servers_free(&servers);
}

/* ---- connection strings ------------------------------------------------------------------- */

static const char *value_of(const pgsql_params *params, const char *keyword)
{
    const char *value = NULL;
    for (size_t i = 0; i < params->count; i++) {
        if (strcmp(params->keywords[i], keyword) != 0)
            continue;
        FUZZ_CHECK(!value); /* one of a name */
        value = params->values[i];
    }
    return value;
}

static int is_plain(const char *mode)
{
    return mode && (strcmp(mode, "disable") == 0 || strcmp(mode, "allow") == 0 || strcmp(mode, "prefer") == 0);
}

static void check_params(const pgsql_params *params)
{
    const char *const names[] = { "host", "hostaddr", "sslmode", "password", "client_encoding" };
    FUZZ_CHECK(params->count <= PGSQL_PARAMS_MAX && !params->keywords[params->count]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)value_of(params, names[i]);
    for (size_t i = 0; i < params->servers.count; i++)
        FUZZ_CHECK(is_here(&params->servers.list[i]) || !is_plain(value_of(params, "sslmode")));
}

/* What is quoted or escaped may swallow what is appended here. */
static char *with_secret(const char *text)
{
    const size_t size = strlen(text);
    char *all = fuzz_alloc(size + sizeof SECRET);
    memcpy(all, text, size);
    if (strncmp(text, "postgres", 8) != 0 && !strpbrk(text, "'\\"))
        memcpy(all + size, SECRET, sizeof SECRET);
    return all;
}

/* A server may have the same name, and errors name it; but of two "@" libpq may take the wrong one. */
static int is_servers_name(const char *text)
{
    const char *at = strchr(text, '@');
    PQconninfoOption *parsed = at && strchr(at + 1, '@') ? NULL : PQconninfoParse(text, NULL);
    int is_name = 0;
    for (const PQconninfoOption *o = parsed; o && o->keyword; o++)
        is_name |= strncmp(o->keyword, "host", 4) == 0 && o->val && strstr(o->val, SECRET_BEGINS);
    PQconninfoFree(parsed);
    return is_name;
}

static void try_conninfo(const wb_host *host, const char *text)
{
    const pgsql_config config = { .conninfo = with_secret(text) };
    pgsql_params params;
    atomic_int said = 1;
    wb_error error = { 0 };
    if (pgsql_params_build(host, &config, "fuzz", &said, &params, &error) == WB_OK)
        check_params(&params);
    FUZZ_CHECK(!strstr(error.text, SECRET_BEGINS) || is_servers_name(config.conninfo));
    pgsql_params_free(&params);
}

void fuzz_one(const void *data, size_t size)
{
    static wb_host_instance host;
    fuzz_input input = fuzz_begin(data, size);
    const unsigned present = fuzz_byte(&input);
    const char *lists[3];
    size_t ignored;
    if (!host.endpoint_name)
        wb_host_init(&host, "fuzz", "pgsql");
    for (size_t i = 0; i < 3; i++) {
        lists[i] = fuzz_text(&input, &ignored);
        if (!(present >> i & 1))
            lists[i] = NULL;
    }
    try_lists(lists[0], lists[1], lists[2]);
    try_conninfo(&host.host, fuzz_rest(&input, &ignored));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/pgsql_fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"

const wb_plugin *plugin;
const wb_persistence_ops *ops;
const wb_pgsql_api *api;
wb_error failure;
void (*at_crash_point)(const char *name);
char warning[256];
int warnings;

static PGconn *observer;

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host;
    va_start(arguments, format);
    wb_error_set_v(error, result, cause, native_code, format, arguments);
    va_end(arguments);
    return result;
}

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    (void)host;
    if (level > WB_LOG_WARNING)
        return;
    warnings++;
    int size = snprintf(warning, sizeof warning, "%s:", text);
    for (size_t i = 0; i < count && (size_t)size < sizeof warning; i++)
        size += snprintf(warning + size, sizeof warning - (size_t)size, " %s=%s", fields[i].name,
                         fields[i].value);
}

static void host_crash_point(const char *name)
{
    if (at_crash_point)
        at_crash_point(name);
}

static const wb_host host = { sizeof(wb_host), host_fail, host_log, wb_clock_monotonic,
                              host_crash_point };

int load_plugin(void **state)
{
    char path[4096];
    const char *top = getenv("top_builddir");
    (void)state;
    (void)snprintf(path, sizeof path, "%s/plugins/persistence/pgsql/.libs/pgsql.so",
                   top ? top : ".");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        print_error("%s\n", dlerror());
        return -1;
    }
    const wb_plugin *(*entry)(void) = NULL;
    *(void **)&entry = dlsym(module, "pgsql_LTX_wb_plugin");
    if (!entry)
        return -1;
    plugin = entry();
    ops = plugin->ops;
    observer = PQconnectdb("");
    if (PQstatus(observer) != CONNECTION_OK)
        return -1;
    PQclear(PQexec(observer, "set client_min_messages = warning"));
    return 0;
}

void endpoint_init(endpoint *e, const char *name)
{
    memset(e, 0, sizeof *e);
    e->config = (pgsql_config){
        .schema = "public",
        .prepare = 1,
        .connect_timeout = 10 * WB_SECOND,
        .tcp_user_timeout = 30 * WB_SECOND,
        .reply_timeout = 300 * WB_SECOND,
        .lock_timeout = 30 * WB_SECOND,
    };
    e->info = (wb_endpoint_info){ .struct_size = sizeof(wb_endpoint_info),
                                  .name = name,
                                  .mode = WB_MODE_RECEIVE_ONLY,
                                  .outbox = 1,
                                  .concurrency = 1,
                                  .batch_max = 100 };
}

int endpoint_try(endpoint *e)
{
    return ops->create(&host, &e->info, &e->config, &e->persistence, &failure);
}

void endpoint_create(endpoint *e)
{
    if (endpoint_try(e) != WB_OK)
        fail_msg("%s", failure.text);
}

void endpoint_install(endpoint *e, const char *name)
{
    char statement[512];
    endpoint_init(e, name);
    endpoint_create(e);
    if (ops->install(e->persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    (void)snprintf(statement, sizeof statement, "truncate \"%s_dedup\", \"%s_pending\"", name,
                   name);
    observe(statement);
}

void endpoint_destroy(endpoint *e)
{
    ops->destroy(e->persistence);
    at_crash_point = NULL;
}

wb_storage_session *open_session(endpoint *e)
{
    wb_storage_session *session = NULL;
    if (ops->open(e->persistence, &session, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    api = ops->interface(session, WB_PGSQL_INTERFACE);
    assert_non_null(api);
    return session;
}

void begin_claims(wb_storage_session *session, uint64_t batch, wb_claim *claims, size_t count)
{
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = batch,
                       .claims = claims,
                       .claim_count = count };
    if (ops->begin(session, &begin, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

void begin_batch(wb_storage_session *session, uint64_t batch)
{
    begin_claims(session, batch, NULL, 0);
}

int commit_batch(wb_storage_session *session, uint64_t batch, const char *operations,
                 size_t *ret_failed_item)
{
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = batch,
                         .operations = operations,
                         .operations_size = operations ? strlen(operations) : 0 };
    int result = ops->commit(session, &commit, &failure);
    if (ret_failed_item)
        *ret_failed_item = commit.failed_item;
    return result;
}

wb_claim claim_of(const char *id)
{
    return (wb_claim){ .id = id, .id_size = strlen(id), .duplicate_of = 77 };
}

static PGresult *ask(const char *statement)
{
    PGresult *result = PQexec(observer, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", statement, PQresultErrorMessage(result));
    return result;
}

void observe(const char *statement)
{
    PQclear(ask(statement));
}

long long observe_number(const char *query)
{
    PGresult *result = ask(query);
    assert_int_equal(PQntuples(result), 1);
    long long number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

void await_number(const char *query, long long wanted)
{
    long long got = 0;
    for (int i = 0; i < 1000; i++) {
        got = observe_number(query);
        if (got == wanted)
            return;
        wb_clock_pause(10 * WB_MILLISECOND, NULL);
    }
    fail_msg("%s: %lld, wanted %lld", query, got, wanted);
}

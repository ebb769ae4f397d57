/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/mysql_fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"

const wb_plugin *plugin;
const wb_persistence_ops *ops;
const wb_mysql_api *api;
wb_error failure;
void (*at_crash_point)(const char *name);
char warning[256];
int warnings;

static MYSQL *observer;

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

void connect_observer(void)
{
    const char *port = getenv("MYSQL_PORT");
    if (observer)
        mysql_close(observer);
    observer = mysql_init(NULL);
    if (!port || !mysql_real_connect(observer, getenv("MYSQL_HOST"), getenv("MYSQL_USER"),
                                     getenv("MYSQL_PASSWORD"), getenv("MYSQL_DATABASE"),
                                     (unsigned)atoi(port), NULL, 0))
        fail_msg("%s", port ? mysql_error(observer) : "no server");
}

int load_plugin(void **state)
{
    char path[4096];
    const char *top = getenv("top_builddir");
    (void)state;
    (void)snprintf(path, sizeof path, "%s/plugins/persistence/mysql/.libs/mysql.so",
                   top ? top : ".");
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        print_error("%s\n", dlerror());
        return -1;
    }
    const wb_plugin *(*entry)(void) = NULL;
    *(void **)&entry = dlsym(module, "mysql_LTX_wb_plugin");
    if (!entry)
        return -1;
    plugin = entry();
    ops = plugin->ops;
    connect_observer();
    return 0;
}

void endpoint_init(endpoint *e, const char *name)
{
    memset(e, 0, sizeof *e);
    e->config = (mys_config){
        .host = getenv("MYSQL_HOST"),
        .port = atoi(getenv("MYSQL_PORT")),
        .database = getenv("MYSQL_DATABASE"),
        .user = getenv("MYSQL_USER"),
        .password = getenv("MYSQL_PASSWORD"),
        .connect_timeout = 10 * WB_SECOND,
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
    (void)snprintf(statement, sizeof statement, "delete from `%s_dedup`", name);
    observe(statement);
    (void)snprintf(statement, sizeof statement, "delete from `%s_pending`", name);
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
    api = ops->interface(session, WB_MYSQL_INTERFACE);
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

void observe(const char *statement)
{
    if (mysql_query(observer, statement) != 0)
        fail_msg("%s: %s", statement, mysql_error(observer));
    mysql_free_result(mysql_store_result(observer));
}

long long observe_number(const char *query)
{
    if (mysql_query(observer, query) != 0)
        fail_msg("%s: %s", query, mysql_error(observer));
    MYSQL_RES *rows = mysql_store_result(observer);
    assert_non_null(rows);
    assert_int_equal(mysql_num_rows(rows), 1);
    MYSQL_ROW row = mysql_fetch_row(rows);
    long long number = row[0] ? strtoll(row[0], NULL, 10) : -1;
    mysql_free_result(rows);
    return number;
}

static void await(const char *query, long long wanted, int64_t pause)
{
    long long got = 0;
    for (int64_t waited = 0; waited < 20 * WB_SECOND; waited += pause) {
        got = observe_number(query);
        if (got == wanted)
            return;
        wb_clock_pause(pause, NULL);
    }
    fail_msg("%s: %lld, wanted %lld", query, got, wanted);
}

void await_number(const char *query, long long wanted)
{
    await(query, wanted, 10 * WB_MILLISECOND);
}

/* What InnoDB tells of transactions is renewed only if nobody has asked for 0.1 s. */
void await_waiting(long long wanted)
{
    await("select count(*) from information_schema.innodb_trx join information_schema.processlist "
          "on id = trx_mysql_thread_id where trx_state = 'LOCK WAIT' and db = database()",
          wanted, 120 * WB_MILLISECOND);
}

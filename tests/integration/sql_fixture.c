/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/sql_server.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/clock.h"

const wb_plugin *plugin;
const wb_persistence_ops *ops;
const server_api *api;
wb_error failure;
void (*at_crash_point)(const char *name);
char warning[256];
int warnings;
int64_t clock_ahead;
int64_t clock_step;

endpoint orders;

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

static int64_t host_now(void)
{
    clock_ahead += clock_step;
    return wb_clock_monotonic() + clock_ahead;
}

static const wb_host host = { .struct_size = sizeof(wb_host),
                              .fail = host_fail,
                              .log = host_log,
                              .now = host_now,
                              .crash_point = host_crash_point };

int load_plugin(void **state)
{
    char path[4096];
    char symbol[64];
    const char *top = getenv("top_builddir");
    (void)state;
    (void)snprintf(path, sizeof path, "%s/%s/.libs/%s.so", top ? top : ".", words.directory,
                   words.name);
    (void)snprintf(symbol, sizeof symbol, "%s_LTX_wb_plugin", words.name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        print_error("%s\n", dlerror());
        return -1;
    }
    const wb_plugin *(*entry)(void) = NULL;
    *(void **)&entry = dlsym(module, symbol);
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
    server_defaults(&e->config);
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
    for (int i = 0; i < 2; i++) {
        (void)snprintf(statement, sizeof statement, "delete from %s_%s", name,
                       i ? "dedup" : "pending");
        observe(statement);
    }
}

void endpoint_destroy(endpoint *e)
{
    ops->destroy(e->persistence);
    e->persistence = NULL;
    at_crash_point = NULL;
    clock_step = 0;
}

wb_storage_session *open_session(endpoint *e)
{
    wb_storage_session *session = NULL;
    if (ops->open(e->persistence, &session, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    api = ops->interface(session, words.interface);
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

/* ---- tests --------------------------------------------------------------------------- */

int set_up_orders(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    return 0;
}

int tear_down_orders(void **state)
{
    (void)state;
    release_snapshot(); /* of a test that failed before it did: the clean-up of the next one would wait for it */
    endpoint_destroy(&orders);
    return 0;
}

proxy *between;

int set_up_proxied(void **state)
{
    (void)set_up_orders(state);
    observe("create table if not exists accounts (id int primary key, amount int)");
    observe("delete from accounts");
    observe("insert into accounts values (1, 0), (2, 0)");
    between = put_proxy(&orders.config);
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    return 0;
}

int tear_down_proxied(void **state)
{
    at_crash_point = NULL;
    proxy_stop(between);
    return tear_down_orders(state);
}

void go_straight(void)
{
    endpoint_destroy(&orders);
    server_defaults(&orders.config);
    endpoint_create(&orders);
}

static void *run_commit(void *argument)
{
    commit_thread *c = argument;
    wb_error error;
    wb_commit commit = { .struct_size = sizeof commit, .batch = c->batch, .operations = "x",
                         .operations_size = 1 };
    c->result = ops->commit(c->session, &commit, &error);
    return NULL;
}

void start_commit(commit_thread *commit)
{
    assert_int_equal(pthread_create(&commit->thread, NULL, run_commit, commit), 0);
}

int run_sql_tests(const char *subject, const struct CMUnitTest *tests, size_t count)
{
    struct CMUnitTest all[64];
    char name[64];
    const size_t own = &own_count ? own_count : 0;

    if (count + own > sizeof all / sizeof all[0])
        return -1;
    memcpy(all, tests, count * sizeof *tests);
    if (own)
        memcpy(all + count, own_tests, own * sizeof *tests);
    (void)snprintf(name, sizeof name, "%s %s", words.name, subject);
    return _cmocka_run_group_tests(name, all, count + own, load_plugin, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/sqlite_support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------- */

char *test_file(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);
    assert_non_null(path);
    (void)snprintf(path, size, "%s/%s", directory, name);
    return path;
}

char *test_directory(void)
{
    const char *parent = getenv("TMPDIR");
    char *path = test_file(parent ? parent : "/tmp", "waybill-sqlite-XXXXXX");
    assert_non_null(mkdtemp(path));
    return path;
}

void test_remove(char *directory)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char *path = test_file(directory, entry->d_name);
        (void)unlink(path);
        free(path);
    }
    (void)closedir(entries);
    (void)rmdir(directory);
    free(directory);
}

/* ---- plugins -------------------------------------------------------------------------- */

const wb_plugin *test_plugin(const char *kind)
{
    char path[PATH_MAX];
    const char *top = getenv("top_builddir");
    (void)snprintf(path, sizeof path, "%s/plugins/%s/sqlite/.libs/sqlite.so", top ? top : ".",
                   kind);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!object)
        fail_msg("%s", dlerror());
    union {
        void *object;
        const wb_plugin *(*function)(void);
    } entry = { dlsym(object, "sqlite_LTX_wb_plugin") };
    assert_non_null(entry.object);
    return entry.function();
}

static const wb_option *find_option(const wb_plugin *plugin, const char *name)
{
    for (size_t i = 0; i < plugin->option_count; i++)
        if (strcmp(plugin->options[i].name, name) == 0)
            return &plugin->options[i];
    fail_msg("no option %s", name);
    return NULL;
}

void test_config_set(const wb_plugin *plugin, void *config, const char *name, int64_t value)
{
    const wb_option *option = find_option(plugin, name);
    char *at = (char *)config + option->offset;
    if (option->type == WB_OPTION_CHOICE)
        *(int32_t *)at = (int32_t)value;
    else
        *(int64_t *)at = value;
}

void *test_config(const wb_plugin *plugin, const char *file)
{
    char *config = calloc(1, plugin->config_size);
    assert_non_null(config);
    *(const char **)(config + find_option(plugin, "file")->offset) = file;
    test_config_set(plugin, config, "busy_timeout", 10 * WB_SECOND);
    return config;
}

/* ---- a place -------------------------------------------------------------------------- */

#define CHECK(at, call)                                                                            \
    do {                                                                                           \
        if ((call) != WB_OK)                                                                       \
            fail_msg("%s", (at)->error.text);                                                      \
    } while (0)

void place_open(place *at, const char *endpoint, const char *const *types, const char *file,
                const char *data)
{
    memset(at, 0, sizeof *at);
    wb_host_init(&at->host, endpoint, "sqlite");
    at->info = (wb_endpoint_info){ .struct_size = sizeof at->info,
                                   .name = endpoint,
                                   .error_queue = "error",
                                   .mode = WB_MODE_RECEIVE_ONLY,
                                   .concurrency = 1,
                                   .batch_max = 100,
                                   .types = types };
    while (types && types[at->info.type_count])
        at->info.type_count++;
    const wb_plugin *plugin = test_plugin("transport");
    at->transport_ops = plugin->ops;
    at->transport_config = test_config(plugin, file);
    CHECK(at, at->transport_ops->create(&at->host.host, &at->info, at->transport_config,
                                        &at->transport, &at->error));
    if (data)
        place_add_persistence(at, data);
}

void place_add_persistence(place *at, const char *data)
{
    const wb_plugin *plugin = test_plugin("persistence");
    at->persistence_ops = plugin->ops;
    at->persistence_config = test_config(plugin, data);
    CHECK(at, at->persistence_ops->create(&at->host.host, &at->info, at->persistence_config,
                                          &at->persistence, &at->error));
}

void place_install(place *at)
{
    CHECK(at, at->transport_ops->install(at->transport, &at->error));
    CHECK(at, at->transport_ops->verify(at->transport, &at->error));
    if (!at->persistence)
        return;
    CHECK(at, at->persistence_ops->install(at->persistence, &at->error));
    CHECK(at, at->persistence_ops->verify(at->persistence, &at->error));
}

void place_close(place *at)
{
    at->transport_ops->destroy(at->transport);
    if (at->persistence)
        at->persistence_ops->destroy(at->persistence);
    free(at->transport_config);
    free(at->persistence_config);
}

wb_transport_session *place_session(place *at, uint32_t purpose)
{
    wb_transport_session *session = NULL;
    CHECK(at, at->transport_ops->open(at->transport, purpose, 100, &session, &at->error));
    return session;
}

wb_storage_session *place_storage(place *at)
{
    wb_storage_session *session = NULL;
    CHECK(at, at->persistence_ops->open(at->persistence, &session, &at->error));
    return session;
}

/* ---- messages ------------------------------------------------------------------------- */

wb_operation test_send(const char *queue, const void *id, size_t id_size, const void *body,
                       size_t body_size)
{
    return (wb_operation){ .struct_size = sizeof(wb_operation),
                           .kind = WB_OPERATION_SEND,
                           .flags = WB_OPERATION_MANDATORY,
                           .destination = queue,
                           .id = id,
                           .id_size = id_size,
                           .body = body,
                           .body_size = body_size };
}

void place_send(place *at, wb_transport_session *session, wb_operation *operations, size_t count)
{
    wb_operation **window = calloc(count, sizeof *window);
    assert_non_null(window);
    for (size_t i = 0; i < count; i++)
        window[i] = &operations[i];
    CHECK(at, at->transport_ops->send(session, window, count, test_now() + 10 * WB_SECOND,
                                      &at->error));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(operations[i].result, WB_OK);
    free(window);
}

void place_send_numbers(place *at, wb_transport_session *session, const char *queue, int first,
                        int count)
{
    wb_operation *operations = calloc((size_t)count, sizeof *operations);
    char(*numbers)[16] = calloc((size_t)count, sizeof *numbers);
    assert_non_null(operations);
    assert_non_null(numbers);
    for (int i = 0; i < count; i++) {
        int size = snprintf(numbers[i], sizeof numbers[i], "%d", first + i);
        operations[i] = test_send(queue, numbers[i], (size_t)size, numbers[i], (size_t)size);
    }
    place_send(at, session, operations, (size_t)count);
    free(operations);
    free(numbers);
}

size_t place_receive(place *at, wb_transport_session *session, const wb_incoming **messages,
                     size_t max, int milliseconds)
{
    size_t count = 0;
    int64_t deadline = test_now() + milliseconds * WB_MILLISECOND;
    CHECK(at, at->transport_ops->receive(session, deadline, messages, max, &count, &at->error));
    return count;
}

void place_acknowledge(place *at, wb_transport_session *session, const wb_incoming **messages,
                       size_t count)
{
    CHECK(at, at->transport_ops->acknowledge(session, messages, count, &at->error));
}

int test_number(const wb_incoming *message)
{
    return atoi(message->body);
}

/* ---- looking from outside -------------------------------------------------------------- */

int64_t test_query(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return value;
}

void test_execute(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

int64_t test_messages(const char *file, const char *queue)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "select number from waybill_queue where name='%s'", queue);
    int64_t number = test_query(file, sql);
    (void)snprintf(sql, sizeof sql, "select count(*) from waybill_message_%lld", (long long)number);
    return test_query(file, sql);
}

/* ---- processes ------------------------------------------------------------------------- */

pid_t test_child(void (*run)(void *argument), void *argument)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* else it would go on as the parent does */
        run(argument);
        _exit(0);
    }
    return child;
}

int test_wait(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int64_t test_now(void)
{
    return wb_clock_monotonic();
}

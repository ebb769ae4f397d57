/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/amqp-fixture.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVE_MAX 512

static atomic_int warnings;
static char last_line[1024];
static struct {
    const char *name;
    int passed;
} points[] = { { "received_frame", 0 },
               { "half_dispatched", 0 },
               { "dispatch_unconfirmed", 0 },
               { "half_confirmed", 0 },
               { "acknowledge_sent", 0 } };

/* ---- the host -------------------------------------------------------------------- */

static void count_line(const wb_host *host, int level, const char *text, const wb_field *fields,
                       size_t count)
{
    size_t at = 0;
    (void)host;
    at += (size_t)snprintf(last_line, sizeof last_line, "%s", text);
    for (size_t i = 0; i < count && at < sizeof last_line; i++)
        at += (size_t)snprintf(last_line + at, sizeof last_line - at, " %s=%s", fields[i].name,
                               fields[i].value);
    if (level <= WB_LOG_WARNING)
        atomic_fetch_add(&warnings, 1);
    printf("# log %d: %s\n", level, last_line);
}

static void count_point(const char *name)
{
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (strcmp(points[i].name, name) == 0) {
            points[i].passed++;
            return;
        }
    }
    fail_msg("unknown crash point %s", name);
}

int fixture_warnings(void)
{
    return atomic_load(&warnings);
}

const char *fixture_last_line(void)
{
    return last_line;
}

int fixture_crash_points(const char *name)
{
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (strcmp(points[i].name, name) == 0)
            return points[i].passed;
    }
    return -1;
}

/* ---- the broker ------------------------------------------------------------------ */

const char *fixture_directory(void)
{
    const char *directory = getenv("WB_AMQP_DIR");
    assert_non_null(directory);
    return directory;
}

void fixture_broker(const char *verb, const char *arguments)
{
    char command[1024];
    const char *source = getenv("top_srcdir");
    (void)snprintf(command, sizeof command, "%s/tests/integration/amqp-broker %s %s %s >&2",
                   source ? source : ".", verb, fixture_directory(), arguments);
    assert_int_equal(system(command), 0);
}

int fixture_port(const char *name)
{
    char path[512];
    char line[128];
    int port = 0;
    (void)snprintf(path, sizeof path, "%s/env", fixture_directory());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = strlen(name);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, name, size) == 0 && line[size] == '=')
            port = atoi(line + size + 1);
    }
    (void)fclose(file);
    assert_int_not_equal(port, 0);
    return port;
}

/* ---- the plugin ------------------------------------------------------------------ */

const wb_transport_ops *fixture_ops(void)
{
    static const wb_transport_ops *ops;
    char path[1024];
    const char *build = getenv("top_builddir");
    if (ops)
        return ops;
    (void)snprintf(path, sizeof path, "%s/plugins/transport/amqp/.libs/amqp.so",
                   build ? build : ".");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    union {
        void *object;
        const wb_plugin *(*function)(void);
    } entry = { dlsym(library, "amqp_LTX_wb_plugin") };
    assert_non_null(entry.object);
    const wb_plugin *plugin = entry.function();
    assert_int_equal(plugin->config_size, sizeof(wb_amqp_config));
    ops = plugin->ops;
    return ops;
}

void fixture_prepare(fixture *f)
{
    static int number;
    memset(f, 0, sizeof *f);
    (void)snprintf(f->queue, sizeof f->queue, "q%d-%d", (int)getpid(), ++number);
    (void)snprintf(f->error_queue, sizeof f->error_queue, "%s.error", f->queue);
    wb_host_init(&f->host, "test", "amqp");
    f->host.host.log = count_line;
    f->host.host.crash_point = count_point;
    f->ops = fixture_ops();
    f->endpoint = (wb_endpoint_info){ .struct_size = sizeof f->endpoint,
                                      .name = f->queue,
                                      .error_queue = f->error_queue,
                                      .mode = WB_MODE_RECEIVE_ONLY,
                                      .concurrency = 1,
                                      .batch_max = 100,
                                      .body_max = 4 << 20 };
    f->config = (wb_amqp_config){ .host = "localhost",
                                  .port = fixture_port("AMQP_PORT"),
                                  .vhost = "/",
                                  .user = "guest",
                                  .password = "guest",
                                  .heartbeat = SECONDS(10),
                                  .connect_timeout = SECONDS(10),
                                  .confirm_timeout = SECONDS(30),
                                  .tls_ca_file = "/etc/ssl/certs/ca-certificates.crt" };
}

void fixture_create(fixture *f)
{
    int result =
        f->ops->create(&f->host.host, &f->endpoint, &f->config, &f->transport, &f->error);
    if (result != WB_OK)
        fail_msg("create: %s", f->error.text);
}

void fixture_open(fixture *f, uint32_t prefetch)
{
    if (f->ops->open(f->transport, WB_SESSION_RECEIVE | WB_SESSION_SEND, prefetch, &f->session,
                     &f->error) != WB_OK)
        fail_msg("open: %s", f->error.text);
}

void fixture_begin(fixture *f, uint32_t prefetch)
{
    fixture_prepare(f);
    fixture_create(f);
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        fail_msg("install: %s", f->error.text);
    fixture_open(f, prefetch);
}

void fixture_close(fixture *f)
{
    if (f->session)
        f->ops->close(f->session);
    f->session = NULL;
}

void fixture_end(fixture *f)
{
    fixture_close(f);
    f->ops->destroy(f->transport);
}

int64_t fixture_in(int64_t duration)
{
    return wb_clock_monotonic() + duration;
}

void fixture_receive(fixture *f, const wb_incoming **messages, size_t count)
{
    int64_t deadline = fixture_in(SECONDS(20));
    size_t total = 0;
    while (total < count) {
        size_t got = 0;
        if (f->ops->receive(f->session, deadline, messages + total, count - total, &got,
                            &f->error) != WB_OK)
            fail_msg("receive: %s", f->error.text);
        total += got;
        if (got == 0)
            fail_msg("received %zu of %zu messages", total, count);
    }
}

void fixture_receive_none(fixture *f)
{
    const wb_incoming *message;
    size_t got = 99;
    assert_int_equal(f->ops->receive(f->session, fixture_in(WB_SECOND / 4), &message, 1, &got,
                                     &f->error),
                     WB_OK);
    assert_int_equal(got, 0);
}

int fixture_send(fixture *f, wb_operation *operations, size_t count)
{
    wb_operation *pointers[RECEIVE_MAX];
    assert_true(count <= RECEIVE_MAX);
    for (size_t i = 0; i < count; i++)
        pointers[i] = &operations[i];
    return f->ops->send(f->session, pointers, count, fixture_in(SECONDS(20)), &f->error);
}

wb_operation fixture_operation(const char *destination, const char *id, const char *body)
{
    return (wb_operation){ .struct_size = sizeof(wb_operation),
                           .kind = WB_OPERATION_SEND,
                           .flags = WB_OPERATION_MANDATORY,
                           .destination = destination,
                           .id = id,
                           .id_size = strlen(id),
                           .body = body,
                           .body_size = strlen(body),
                           .result = -1 };
}

void fixture_fill(fixture *f, size_t count)
{
    wb_operation operations[RECEIVE_MAX];
    char ids[RECEIVE_MAX][32];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "m-%zu", i);
        operations[i] = fixture_operation(f->queue, ids[i], ids[i]);
    }
    if (fixture_send(f, operations, count) != WB_OK)
        fail_msg("send: %s", f->error.text);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(operations[i].result, WB_OK);
}

/* ---- the plain client ------------------------------------------------------------ */

static void check(amqp_connection_state_t client)
{
    assert_int_equal(amqp_get_rpc_reply(client).reply_type, AMQP_RESPONSE_NORMAL);
}

amqp_connection_state_t client_open(void)
{
    amqp_connection_state_t client = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(client);
    assert_int_equal(amqp_socket_open(socket, "127.0.0.1", fixture_port("AMQP_PORT")), 0);
    assert_int_equal(amqp_login(client, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest")
                         .reply_type,
                     AMQP_RESPONSE_NORMAL);
    (void)amqp_channel_open(client, 1);
    check(client);
    return client;
}

void client_close(amqp_connection_state_t client)
{
    (void)amqp_connection_close(client, AMQP_REPLY_SUCCESS);
    (void)amqp_destroy_connection(client);
}

void client_delete_queue(const char *name)
{
    amqp_connection_state_t client = client_open();
    (void)amqp_queue_delete(client, 1, amqp_cstring_bytes(name), 0, 0);
    check(client);
    client_close(client);
}

void client_delete_exchange(const char *name)
{
    amqp_connection_state_t client = client_open();
    (void)amqp_exchange_delete(client, 1, amqp_cstring_bytes(name), 0);
    check(client);
    client_close(client);
}

void client_declare_classic(const char *name)
{
    amqp_connection_state_t client = client_open();
    (void)amqp_queue_declare(client, 1, amqp_cstring_bytes(name), 0, 1, 0, 0, amqp_empty_table);
    check(client);
    client_close(client);
}

void client_publish(const char *queue, const amqp_basic_properties_t *properties, const void *body,
                    size_t size)
{
    amqp_connection_state_t client = client_open();
    amqp_bytes_t bytes = { size, (void *)(uintptr_t)body };
    assert_int_equal(amqp_basic_publish(client, 1, amqp_empty_bytes, amqp_cstring_bytes(queue), 0,
                                        0, properties, bytes),
                     0);
    client_close(client);
}

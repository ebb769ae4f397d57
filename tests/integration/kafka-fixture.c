/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/kafka-fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEND_MAX 2048
#define LINES 256
#define LINE_SIZE 600

static atomic_int warnings;
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][LINE_SIZE];
static size_t line_count;
static struct {
    const char *name;
    atomic_int passed;
} points[] = {
    { "received_frame", 0 },   { "half_dispatched", 0 },  { "dispatch_unconfirmed", 0 },
    { "half_confirmed", 0 },   { "acknowledge_sent", 0 }, { "offsets_sent", 0 },
    { "transport_commit_sent", 0 }
};
void (*fixture_at_point)(const char *name);

/* ---- the host -------------------------------------------------------------------- */

static void count_line(const wb_host *host, int level, const char *text, const wb_field *fields,
                       size_t count)
{
    char line[LINE_SIZE];
    int size = snprintf(line, sizeof line, "%s", text);
    (void)host;
    for (size_t i = 0; i < count && size < (int)sizeof line; i++)
        size += snprintf(line + size, sizeof line - (size_t)size, " %s=%s", fields[i].name,
                         fields[i].value);
    if (level == WB_LOG_DEBUG)
        return;
    printf("# log %d: %s\n", level, line);
    if (level <= WB_LOG_WARNING)
        atomic_fetch_add(&warnings, 1);
    (void)pthread_mutex_lock(&lines_lock);
    memcpy(lines[line_count++ % LINES], line, sizeof line);
    (void)pthread_mutex_unlock(&lines_lock);
}

static void count_point(const char *name)
{
    if (fixture_at_point)
        fixture_at_point(name);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (strcmp(points[i].name, name) == 0) {
            atomic_fetch_add(&points[i].passed, 1);
            return;
        }
    }
    fail_msg("unknown crash point %s", name);
}

int fixture_warnings(void)
{
    return atomic_load(&warnings);
}

int fixture_count_logged(const char *text)
{
    int found = 0;
    (void)pthread_mutex_lock(&lines_lock);
    for (size_t i = 0; i < LINES && i < line_count; i++)
        found += strstr(lines[i], text) != NULL;
    (void)pthread_mutex_unlock(&lines_lock);
    return found;
}

void fixture_forget_lines(void)
{
    (void)pthread_mutex_lock(&lines_lock);
    line_count = 0;
    (void)pthread_mutex_unlock(&lines_lock);
}

int fixture_logged(const char *text)
{
    return fixture_count_logged(text) > 0;
}

int fixture_crash_points(const char *name)
{
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        if (strcmp(points[i].name, name) == 0)
            return atomic_load(&points[i].passed);
    }
    return -1;
}

/* ---- the plugin ------------------------------------------------------------------ */

static const wb_plugin *load(void)
{
    static const wb_plugin *plugin;
    char path[1024];
    const char *build = getenv("top_builddir");
    if (plugin)
        return plugin;
    (void)snprintf(path, sizeof path, "%s/plugins/transport/kafka/.libs/kafka.so",
                   build ? build : ".");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    union {
        void *object;
        const wb_plugin *(*function)(void);
    } entry = { dlsym(library, "kafka_LTX_wb_plugin") };
    assert_non_null(entry.object);
    plugin = entry.function();
    assert_int_equal(plugin->config_size, sizeof(wb_kafka_config));
    return plugin;
}

const wb_transport_ops *fixture_ops(void)
{
    return load()->ops;
}

int64_t fixture_default_size(const char *option)
{
    const wb_plugin *plugin = load();
    for (size_t i = 0; i < plugin->option_count; i++)
        if (strcmp(plugin->options[i].name, option) == 0) {
            assert_non_null(strstr(plugin->options[i].default_text, "MiB"));
            return strtoll(plugin->options[i].default_text, NULL, 10) << 20;
        }
    fail_msg("no option %s", option);
    return 0;
}

void fixture_name(char *name, size_t size)
{
    static atomic_int number;
    const char *prefix = getenv("KAFKA_PREFIX");
    (void)snprintf(name, size, "%sq%d-%d", prefix ? prefix : "", (int)getpid(),
                   atomic_fetch_add(&number, 1));
}

void fixture_prepare(fixture *f)
{
    memset(f, 0, sizeof *f);
    fixture_name(f->queue, sizeof f->queue);
    (void)snprintf(f->error_queue, sizeof f->error_queue, "%s.error", f->queue);
    wb_host_init(&f->host, "test", "kafka");
    f->host.host.log = count_line;
    f->host.host.crash_point = count_point;
    f->ops = fixture_ops();
    f->endpoint = (wb_endpoint_info){ .struct_size = sizeof f->endpoint,
                                      .name = f->queue,
                                      .error_queue = f->error_queue,
                                      .mode = WB_MODE_RECEIVE_ONLY,
                                      .concurrency = 1,
                                      .batch_max = 100,
                                      .body_max = 16 << 20,
                                      .headers_max = 320,
                                      .headers_size_max = 64 << 10 };
    f->config = (wb_kafka_config){ .brokers = getenv("KAFKA_BROKERS"),
                                   .tls_ca_file = "/etc/ssl/certs/ca-certificates.crt",
                                   .connect_timeout = SECONDS(10),
                                   .confirm_timeout = SECONDS(30),
                                   .session_timeout = SECONDS(6),
                                   .transaction_timeout = SECONDS(20),
                                   .partitions = 1,
                                   .replication = -1,
                                   .fetch_buffer = 16 << 20 };
    assert_non_null(f->config.brokers);
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

void fixture_start(fixture *f, uint32_t prefetch)
{
    fixture_create(f);
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        fail_msg("install: %s", f->error.text);
    fixture_open(f, prefetch);
}

void fixture_begin(fixture *f, uint32_t prefetch)
{
    fixture_prepare(f);
    fixture_start(f, prefetch);
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
    int64_t deadline = fixture_in(SECONDS(30));
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

void fixture_acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

int fixture_send(fixture *f, wb_operation *operations, size_t count)
{
    wb_operation *pointers[SEND_MAX];
    assert_true(count <= SEND_MAX);
    for (size_t i = 0; i < count; i++)
        pointers[i] = &operations[i];
    return f->ops->send(f->session, pointers, count, fixture_in(SECONDS(30)), &f->error);
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
    static wb_operation operations[SEND_MAX];
    static char ids[SEND_MAX][32];
    assert_true(count <= SEND_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "m-%zu", i);
        operations[i] = fixture_operation(f->queue, ids[i], ids[i]);
    }
    if (fixture_send(f, operations, count) != WB_OK)
        fail_msg("send: %s", f->error.text);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(operations[i].result, WB_OK);
}

void fixture_assert_failed(const fixture *f, int got, int result, int cause, const char *text)
{
    if (got != result || f->error.cause != cause || !strstr(f->error.text, text))
        fail_msg("result %d cause %d: %s", got, f->error.cause, f->error.text);
}

/* ---- the plain client ------------------------------------------------------------ */

static rd_kafka_t *start(rd_kafka_type_t type, const char *group)
{
    char text[300];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", getenv("KAFKA_BROKERS"), text,
                                       sizeof text),
                     RD_KAFKA_CONF_OK);
    (void)rd_kafka_conf_set(conf, "allow.auto.create.topics", "false", text, sizeof text);
    (void)rd_kafka_conf_set(conf, "log_level", "0", text, sizeof text);
    if (type == RD_KAFKA_PRODUCER)
        (void)rd_kafka_conf_set(conf, "message.max.bytes", "60000000", text, sizeof text);
    if (group)
        (void)rd_kafka_conf_set(conf, "group.id", group, text, sizeof text);
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
    assert_non_null(client);
    return client;
}

rd_kafka_t *client_open(void)
{
    return start(RD_KAFKA_PRODUCER, NULL);
}

void client_close(rd_kafka_t *client)
{
    rd_kafka_destroy(client);
}

/* Wait for the answer and let `check` look at it. */
static void await(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 20000);
    assert_non_null(event);
    if (rd_kafka_event_error(event))
        fail_msg("%s", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
}

void client_make_topic(rd_kafka_t *client, const char *topic, int partitions)
{
    client_make_topic_with(client, topic, partitions, NULL, NULL);
}

void client_make_topic_with(rd_kafka_t *client, const char *topic, int partitions,
                            const char *name, const char *value)
{
    char text[200];
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, text, sizeof text);
    if (name)
        (void)rd_kafka_NewTopic_set_config(wanted, name, value);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    await(queue);
    rd_kafka_NewTopic_destroy(wanted);
    while (client_count_partitions(client, topic) != partitions)
        (void)usleep(20000);
}

static int has_property(rd_kafka_t *client, const char *topic, const char *name, const char *value)
{
    size_t count = 0;
    int found = 0;
    rd_kafka_ConfigResource_t *wanted = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DescribeConfigs(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 10000);
    const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    assert_int_equal(count, 1);
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resources[0], &count);
    for (size_t i = 0; i < count; i++)
        found |= strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0 && rd_kafka_ConfigEntry_value(entries[i]) &&
                 strcmp(rd_kafka_ConfigEntry_value(entries[i]), value) == 0;
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_ConfigResource_destroy(wanted);
    return found;
}

void client_configure_topic(rd_kafka_t *client, const char *topic, const char *name, const char *value)
{
    rd_kafka_ConfigResource_t *wanted = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    (void)rd_kafka_ConfigResource_set_config(wanted, name, value);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_AlterConfigs(client, &wanted, 1, NULL, queue);
    await(queue);
    rd_kafka_ConfigResource_destroy(wanted);
    while (!has_property(client, topic, name, value))
        (void)usleep(20000);
}

void client_add_partitions(rd_kafka_t *client, const char *topic, int partitions)
{
    char text[200];
    rd_kafka_NewPartitions_t *wanted =
        rd_kafka_NewPartitions_new(topic, (size_t)partitions, text, sizeof text);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_CreatePartitions(client, &wanted, 1, NULL, queue);
    await(queue);
    rd_kafka_NewPartitions_destroy(wanted);
    while (client_count_partitions(client, topic) != partitions)
        (void)usleep(20000);
}

void client_produce(rd_kafka_t *client, const char *topic, int32_t partition, const void *body,
                    size_t size, rd_kafka_headers_t *headers)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__QUEUE_FULL;
    while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        const rd_kafka_vu_t fields[] = {
            { .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic },
            { .vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition },
            { .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
            { .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)(uintptr_t)body, size } },
            { .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
        };
        rd_kafka_error_t *failed =
            rd_kafka_produceva(client, fields, sizeof fields / sizeof *fields - (headers ? 0 : 1));
        code = rd_kafka_error_code(failed);
        if (failed)
            rd_kafka_error_destroy(failed);
        if (code)
            (void)rd_kafka_flush(client, 100);
    }
    assert_int_equal(code, RD_KAFKA_RESP_ERR_NO_ERROR);
}

void client_flush(rd_kafka_t *client)
{
    assert_int_equal(rd_kafka_flush(client, 60000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

void client_delete_topic(rd_kafka_t *client, const char *topic)
{
    rd_kafka_DeleteTopic_t *wanted = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteTopics(client, &wanted, 1, NULL, queue);
    await(queue);
    rd_kafka_DeleteTopic_destroy(wanted);
    while (client_count_partitions(client, topic))
        (void)usleep(20000);
}

void client_delete_records(rd_kafka_t *client, const char *topic, int64_t before)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = before;
    rd_kafka_DeleteRecords_t *wanted = rd_kafka_DeleteRecords_new(list);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteRecords(client, &wanted, 1, NULL, queue);
    await(queue);
    rd_kafka_DeleteRecords_destroy(wanted);
    rd_kafka_topic_partition_list_destroy(list);
}

int client_count_partitions(rd_kafka_t *client, const char *topic)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(client, topic, NULL);
    assert_int_equal(rd_kafka_metadata(client, 0, handle, &metadata, 10000),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    int count = metadata->topics[0].err ? 0 : metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
    return count;
}

int64_t client_committed(const char *group, const char *topic, int32_t partition, char *note,
                         size_t note_size)
{
    rd_kafka_t *client = start(RD_KAFKA_CONSUMER, group);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    const rd_kafka_topic_partition_t *entry =
        rd_kafka_topic_partition_list_add(list, topic, partition);
    assert_int_equal(rd_kafka_committed(client, list, 20000), RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t offset = entry->offset;
    if (note)
        (void)snprintf(note, note_size, "%.*s", (int)entry->metadata_size,
                       entry->metadata ? (const char *)entry->metadata : "");
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(client);
    return offset;
}

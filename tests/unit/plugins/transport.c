/* SPDX-License-Identifier: Apache-2.0
 *
 * Transport plugins that do nothing, to be loaded or refused. What is wrong with each
 * comes from the build rules: PLUGIN_NAME, and the other macros below.
 */
#include <string.h>
#include <waybill/sys/transport.h>

#ifndef PLUGIN_MAGIC
#define PLUGIN_MAGIC WB_PLUGIN_MAGIC
#endif
#ifndef PLUGIN_MAJOR
#define PLUGIN_MAJOR WB_PLUGIN_ABI_MAJOR
#endif
#ifndef PLUGIN_MINOR
#define PLUGIN_MINOR 0
#endif
#ifndef PLUGIN_KIND
#define PLUGIN_KIND WB_PLUGIN_TRANSPORT
#endif
#ifndef PLUGIN_CAPABILITIES
#define PLUGIN_CAPABILITIES                                                                        \
    (WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_DELIVERY_COUNT | WB_CAP_PUBLISH)
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(wb_plugin)
#endif
#ifndef PLUGIN_CONFIG_SIZE
#define PLUGIN_CONFIG_SIZE sizeof(queue_config)
#endif
#ifndef PLUGIN_TEXT
#define PLUGIN_TEXT TEXT_OF(PLUGIN_NAME)
#endif
#define TEXT_OF_(name) #name
#define TEXT_OF(name) TEXT_OF_(name)

typedef struct {
    const char *host;
    const char *password;
    const char *path;
    int64_t port;
    int64_t heartbeat;
    int64_t frame_max;
    int32_t tls;
    int32_t queue_type;
} queue_config;

static const char *const queue_types[] = { "quorum", "classic", NULL };

static const wb_option options[] = {
    { .name = "host",
      .type = WB_OPTION_STRING,
      .offset = offsetof(queue_config, host),
      .default_text = "localhost",
      .since = "0.1",
      .summary = "where the broker is",
      .help = "A name or an address." },
    { .name = "password",
      .type = WB_OPTION_STRING,
      .flags = WB_OPTION_SECRET,
      .offset = offsetof(queue_config, password),
      .since = "0.1",
      .summary = "the password" },
    { .name = "path",
      .type = WB_OPTION_STRING,
      .offset = offsetof(queue_config, path),
      .since = "0.1",
      .summary = "what a transaction could be shared on" },
    { .name = "port",
      .type = WB_OPTION_INTEGER,
      .offset = offsetof(queue_config, port),
      .default_text = "5672",
      .minimum = 1,
      .maximum = 65535,
      .since = "0.1",
      .summary = "its port" },
    { .name = "heartbeat",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(queue_config, heartbeat),
      .default_text = "60s",
      .since = "0.1",
      .summary = "time between signs of life" },
    { .name = "frame_max",
      .type = WB_OPTION_SIZE,
      .offset = offsetof(queue_config, frame_max),
      .default_text = "128KiB",
      .since = "0.1",
      .summary = "largest frame" },
    { .name = "tls",
      .type = WB_OPTION_BOOLEAN,
      .offset = offsetof(queue_config, tls),
      .default_text = "false",
      .since = "0.1",
      .summary = "encrypt the connection" },
    { .name = "queue_type",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(queue_config, queue_type),
      .default_text = "quorum",
      .choices = queue_types,
      .since = "0.1",
      .summary = "kind of queue" },
};

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    static char nothing;
    const queue_config *values = config;
    (void)endpoint;
    if (values->path && strcmp(values->path, "/refused") == 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "path is refused by the queue");
    if (values->path && strcmp(values->path, "/nameless") == 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "this queue is refused by itself");
    if (values->path && strcmp(values->path, "/warned") == 0)
        host->log(host, WB_LOG_WARNING, "path is one that nobody should take", (const wb_field[]){ { "path", values->path } }, 1);
    if (values->path && strcmp(values->path, "/silent") == 0)
        return WB_REJECT;
    if (values->path && strcmp(values->path, "/empty") == 0)
        return WB_OK;
    *ret_transport = (wb_transport *)&nothing;
    return WB_OK;
}

static void destroy(wb_transport *transport)
{
    (void)transport;
}

static int shared_resource(const void *config, char *buffer, size_t size)
{
    const queue_config *values = config;
    if (!values->path || strlen(values->path) >= size)
        return WB_REJECT;
    memcpy(buffer, values->path, strlen(values->path) + 1);
    return WB_OK;
}

static int prepare(wb_transport *transport, wb_error *error)
{
    (void)transport, (void)error;
    return WB_FATAL;
}

static int open_session(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                        wb_transport_session **ret_session, wb_error *error)
{
    (void)transport, (void)purpose, (void)prefetch, (void)ret_session, (void)error;
    return WB_FATAL;
}

static void end_session(wb_transport_session *session)
{
    (void)session;
}

static int receive(wb_transport_session *session, int64_t deadline,
                   const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                   wb_error *error)
{
    (void)session, (void)deadline, (void)ret_messages, (void)max, (void)ret_count, (void)error;
    return WB_FATAL;
}

static int settle(wb_transport_session *session, const wb_incoming *const *messages, size_t count,
                  wb_error *error)
{
    (void)session, (void)messages, (void)count, (void)error;
    return WB_FATAL;
}

static int send_all(wb_transport_session *session, wb_operation *const *operations, size_t count,
                    int64_t deadline, wb_error *error)
{
    (void)session, (void)operations, (void)count, (void)deadline, (void)error;
    return WB_FATAL;
}

#ifdef PLUGIN_WITH_TRANSACTION
static int transaction(wb_transport_session *session, wb_error *error)
{
    (void)session, (void)error;
    return WB_FATAL;
}

static void *native(wb_transport_session *session)
{
    return session;
}
#endif

static const wb_transport_ops operations = {
    .struct_size = sizeof operations,
    .create = create,
    .destroy = destroy,
    .shared_resource = shared_resource,
    .install = prepare,
    .verify = prepare,
    .open = open_session,
    .close = end_session,
    .receive = receive,
    .acknowledge = settle,
    .give_back = settle,
    .send = send_all,
#ifdef PLUGIN_WITH_TRANSACTION
    .begin = transaction,
    .commit = transaction,
    .rollback = transaction,
    .native = native,
#endif
    .interrupt = end_session,
};

#ifdef PLUGIN_UNDEFINED
extern int waybill_test_symbol_nobody_has(void);
#define PLUGIN_NEEDS waybill_test_symbol_nobody_has()
int wb_test_needs(void);
int wb_test_needs(void)
{
    return PLUGIN_NEEDS;
}
#endif

static const wb_plugin descriptor = {
    .struct_size = PLUGIN_SIZE,
    .magic = PLUGIN_MAGIC,
    .abi_major = PLUGIN_MAJOR,
    .abi_minor_needed = PLUGIN_MINOR,
    .kind = PLUGIN_KIND,
    .name = PLUGIN_TEXT,
    .version = "0.1.0",
    .summary = "test transport",
    .capabilities = PLUGIN_CAPABILITIES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .config_size = PLUGIN_CONFIG_SIZE,
    .ops = &operations,
};

#define DEFINE(name, descriptor) WB_PLUGIN(name, descriptor)
DEFINE(PLUGIN_NAME, descriptor)

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdlib.h>

#include "plugins/common/sqlite/examine.h"
#include "plugins/common/sqlite/lockfile.h"
#include "plugins/common/sqlite/path.h"
#include "plugins/common/sqlite/usable.h"
#include "plugins/transport/sqlite/transport.h"

static const char *const synchronous_choices[] = { "full", "normal", NULL };

static const wb_option options[] = {
    { .name = "file",
      .type = WB_OPTION_PATH,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(wb_sqlite_db_config, file),
      .since = "0.1",
      .summary = "the file that holds all queues of the system",
      .help = "All processes that send to each other name the same file, on a file system of "
              "their own machine. Beside it SQLite keeps FILE-wal and FILE-shm and the "
              "transport FILE-sessions; none of them may be deleted while a process runs." },
    { .name = "busy_timeout",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(wb_sqlite_db_config, busy_timeout),
      .default_text = "10s",
      .minimum = 1000000,
      .maximum = INT64_C(3600000000000),
      .since = "0.1",
      .summary = "how long to wait for other writers of the file",
      .help = "A file has one writer at a time. A transaction that cannot begin within this "
              "time is tried again later." },
    { .name = "synchronous",
      .type = WB_OPTION_CHOICE,
      .offset = offsetof(wb_sqlite_db_config, synchronous),
      .default_text = "full",
      .choices = synchronous_choices,
      .since = "0.1",
      .summary = "what a confirmed send survives: full = power loss, normal = a crash",
      .help = "With normal nothing is flushed to the disk at once: a power loss may take back "
              "the last sends. A process that is killed loses nothing in either case." },
};

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_transport **ret_transport, wb_error *error)
{
    char path[PATH_MAX];
    const wb_sqlite_db_config *options_set = config;
    wb_transport *transport = NULL;
    if (wb_sqlite_path_canonical(options_set->file, path, sizeof path) < 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "file = \"%s\" is not the path of a file",
                          options_set->file ? options_set->file : "");
    int result = wb_sqlite_usable(host, options_set->file, path, error);
    if (result != WB_OK)
        return result;
    transport = calloc(1, sizeof *transport);
    if (transport) {
        transport->host = host;
        transport->endpoint = endpoint;
        transport->config = options_set;
        transport->watch = -1;
        transport->path = wb_sqlite_path_join(path, "");
        transport->sessions_path = wb_sqlite_path_join(path, WB_SQLITE_LOCKFILE_SUFFIX);
    }
    if (!transport || !transport->path || !transport->sessions_path ||
        pthread_mutex_init(&transport->lock, NULL) != 0) {
        result = host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
        goto out;
    }
    *ret_transport = transport;
    transport = NULL;
out:
    if (transport) {
        free(transport->path);
        free(transport->sessions_path);
        free(transport);
    }
    return result;
}

static void destroy(wb_transport *transport)
{
    (void)pthread_mutex_destroy(&transport->lock);
    free(transport->path);
    free(transport->sessions_path);
    free(transport);
}

static int shared_resource(const void *config, char *buffer, size_t size)
{
    const wb_sqlite_db_config *options_set = config;
    return wb_sqlite_path_canonical(options_set->file, buffer, size) < 0 ? WB_REJECT : WB_OK;
}

static int examine(wb_transport *transport, const wb_examination *examination, wb_error *error)
{
    return wb_sqlite_examine(transport->host, transport->config, transport->path, "sends and acknowledgements", examination,
                             error);
}

/* No message is ever dropped for how often it was delivered. Who died is found out whenever somebody takes messages (take.c). */
static int limits(wb_transport *transport, wb_transport_limits *limits, wb_error *error)
{
    (void)transport;
    (void)error;
    limits->delivery_limit = 0;
    if (limits->struct_size >= offsetof(wb_transport_limits, flags) + sizeof limits->flags)
        limits->flags = WB_LIMITS_RETURNS_FIRST;
    return WB_OK;
}

static const wb_transport_ops ops = {
    .struct_size = sizeof ops,
    .create = create,
    .destroy = destroy,
    .shared_resource = shared_resource,
    .install = wb_sqlite_transport_install,
    .verify = wb_sqlite_transport_verify,
    .open = wb_sqlite_session_open,
    .close = wb_sqlite_session_close,
    .receive = wb_sqlite_session_receive,
    .acknowledge = wb_sqlite_session_acknowledge,
    .give_back = wb_sqlite_session_give_back,
    .send = wb_sqlite_session_send,
    .begin = wb_sqlite_session_begin,
    .commit = wb_sqlite_session_commit,
    .rollback = wb_sqlite_session_rollback,
    .native = wb_sqlite_session_native,
    .interrupt = wb_sqlite_session_interrupt,
    .limits = limits,
    .stop_receiving = wb_sqlite_session_stop_receiving,
    .depth = wb_sqlite_transport_depth,
    .uninstall = wb_sqlite_transport_uninstall,
    .unsubscribe = wb_sqlite_transport_unsubscribe,
    .subscriptions = wb_sqlite_transport_subscriptions,
    .examine = examine,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .abi_minor_needed = 0,
    .kind = WB_PLUGIN_TRANSPORT,
    .name = "sqlite",
    .version = PACKAGE_VERSION,
    .summary = "embedded durable queues in a SQLite file, shared by processes of one machine",
    .capabilities = WB_CAP_MODE_NONE | WB_CAP_MODE_RECEIVE_ONLY | WB_CAP_MODE_SENDS_ATOMIC |
                    WB_CAP_MODE_TRANSACTION_SCOPE | WB_CAP_DELIVERY_COUNT | WB_CAP_PUBLISH |
                    WB_CAP_HEADER_ORDER | WB_CAP_EXPIRY | WB_CAP_UNINSTALL | WB_CAP_UNSUBSCRIBE | WB_CAP_QUEUES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(wb_sqlite_db_config),
    .ops = &ops,
    .client_library = "libsqlite3.so.0",
};

WB_PLUGIN(sqlite, descriptor)

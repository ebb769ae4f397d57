/* SPDX-License-Identifier: Apache-2.0
 *
 * Persistence plugins that do nothing. Their "client library" is the mathematical one:
 * nothing else in the test programs needs it.
 */
#include <math.h>
#include <string.h>
#include <waybill/sys/persistence.h>

#ifndef PLUGIN_CAPABILITIES
#define PLUGIN_CAPABILITIES WB_CAP_OUTBOX
#endif
#define TEXT_OF_(name) #name
#define TEXT_OF(name) TEXT_OF_(name)

typedef struct {
    const char *path;
    const wb_option_map *parameters;
} table_config;

static const wb_option options[] = {
    { .name = "path",
      .type = WB_OPTION_STRING,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(table_config, path),
      .since = "0.1",
      .summary = "where the tables are" },
    { .name = "parameters",
      .type = WB_OPTION_MAP,
      .offset = offsetof(table_config, parameters),
      .since = "0.1",
      .summary = "passed on" },
};

#ifdef PLUGIN_WITH_DELAYED
static const wb_host *said_to;
#endif

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    static char nothing;
    const table_config *values = config;
    (void)endpoint;
    if (values->path && strcmp(values->path, "/refused") == 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "path is refused by the table");
    if (values->path && strcmp(values->path, "/silent") == 0)
        return WB_NOT_CONNECTED;
    if (values->path && strcmp(values->path, "/empty") == 0)
        return WB_OK;
#ifdef PLUGIN_WITH_DELAYED
    said_to = host;
#endif
    *ret_persistence = (wb_persistence *)&nothing;
    return WB_OK;
}

static void destroy(wb_persistence *persistence)
{
    (void)persistence;
}

static int shared_resource(const void *config, char *buffer, size_t size)
{
    const table_config *values = config;
    if (strlen(values->path) >= size)
        return WB_REJECT;
    memcpy(buffer, values->path, strlen(values->path) + 1);
    return WB_OK;
}

static const char *schema(wb_persistence *persistence)
{
    (void)persistence;
    return "";
}

static int prepare(wb_persistence *persistence, wb_error *error)
{
    (void)persistence, (void)error;
    return WB_FATAL;
}

static int open_session(wb_persistence *persistence, wb_storage_session **ret_session,
                        wb_error *error)
{
    (void)persistence, (void)ret_session, (void)error;
    return WB_FATAL;
}

static void end_session(wb_storage_session *session)
{
    (void)session;
}

static int begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    (void)session, (void)begin, (void)error;
    return WB_FATAL;
}

#ifdef PLUGIN_WITH_JOIN
static int join(wb_storage_session *session, void *native, wb_error *error)
{
    (void)session, (void)native, (void)error;
    return WB_FATAL;
}
#endif

static const void *find_interface(wb_storage_session *session, const char *name)
{
    (void)session, (void)name;
    return NULL;
}

/* keeps the library among the needed ones */
static int check(wb_storage_session *session, size_t item, wb_error *error)
{
    (void)session, (void)error;
    return cbrt((double)item) > 1e6 ? WB_RETRY : WB_OK;
}

static int commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    (void)session, (void)commit, (void)error;
    return WB_FATAL;
}

static int rollback(wb_storage_session *session, wb_error *error)
{
    (void)session, (void)error;
    return WB_FATAL;
}

static int mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)session, (void)marks, (void)count, (void)error;
    return WB_FATAL;
}

static int pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                   wb_pending_fn visit, void *argument, wb_error *error)
{
    (void)session, (void)batches, (void)count, (void)visit, (void)argument, (void)error;
    return WB_FATAL;
}

static int sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                 void *argument, wb_error *error)
{
    (void)session, (void)before, (void)limit, (void)visit, (void)argument, (void)error;
    return WB_FATAL;
}

static int clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                    size_t *ret_deleted, wb_error *error)
{
    (void)session, (void)before, (void)limit, (void)ret_deleted, (void)error;
    return WB_FATAL;
}

#ifdef PLUGIN_WITH_DELAYED
/* One that can keep messages with the mode none alone. */
static int initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    (void)persistence;
    if (mode == WB_MODE_NONE)
        return WB_OK;
    return said_to->fail(said_to, error, WB_FATAL, WB_CAUSE_CONFIG, mode, "path is kept with mode none alone");
}

static int keep(wb_storage_session *session, const wb_delayed *messages, size_t count, wb_error *error)
{
    (void)session, (void)messages, (void)count, (void)error;
    return WB_FATAL;
}

static int next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    (void)session, (void)ret_due, (void)ret_now, (void)error;
    return WB_FATAL;
}

static int fetch(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit, void *argument,
                 wb_error *error)
{
    (void)session, (void)fetch, (void)visit, (void)argument, (void)error;
    return WB_FATAL;
}

static int remove_keys(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count, wb_error *error)
{
    (void)session, (void)owner, (void)keys, (void)count, (void)error;
    return WB_FATAL;
}

static int give_back(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count, int64_t due,
                     wb_error *error)
{
    (void)session, (void)owner, (void)keys, (void)count, (void)due, (void)error;
    return WB_FATAL;
}

static int list(wb_storage_session *session, const wb_delayed_filter *filter, wb_delayed_fn visit, void *argument,
                wb_error *error)
{
    (void)session, (void)filter, (void)visit, (void)argument, (void)error;
    return WB_FATAL;
}

static int cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count, wb_error *error)
{
    (void)session, (void)keys, (void)count, (void)error;
    return WB_FATAL;
}

static int reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count, int64_t due, wb_error *error)
{
    (void)session, (void)keys, (void)count, (void)due, (void)error;
    return WB_FATAL;
}

static const wb_delayed_ops delayed = {
    .struct_size = sizeof delayed,
    .initialize = initialize,
    .store = keep,
    .next = next,
    .fetch = fetch,
    .remove = remove_keys,
    .increment_failure_count = give_back,
    .release = give_back,
    .list = list,
    .cancel = cancel,
    .reschedule = reschedule,
};
#endif

static const wb_persistence_ops operations = {
    .struct_size = sizeof operations,
    .create = create,
    .destroy = destroy,
    .shared_resource = shared_resource,
    .schema = schema,
    .install = prepare,
    .verify = prepare,
    .open = open_session,
    .close = end_session,
    .begin = begin,
#ifdef PLUGIN_WITH_JOIN
    .join = join,
#endif
    .interface = find_interface,
    .check = check,
    .commit = commit,
    .rollback = rollback,
    .mark = mark,
    .pending = pending,
    .sweep = sweep,
    .clean_up = clean_up,
#ifdef PLUGIN_WITH_DELAYED
    .delayed = &delayed,
#endif
};

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_PERSISTENCE,
    .name = TEXT_OF(PLUGIN_NAME),
    .version = "0.1.0",
    .summary = "test persistence",
    .capabilities = PLUGIN_CAPABILITIES,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .config_size = sizeof(table_config),
    .ops = &operations,
    .client_library = "libm.so.6",
};

#define DEFINE(name, descriptor) WB_PLUGIN(name, descriptor)
DEFINE(PLUGIN_NAME, descriptor)

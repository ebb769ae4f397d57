/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <stdlib.h>

#include "plugins/common/sqlite/examine.h"
#include "plugins/common/sqlite/lockfile.h"
#include "plugins/common/sqlite/path.h"
#include "plugins/common/sqlite/usable.h"
#include "plugins/persistence/sqlite/persistence.h"

static const char *const synchronous_choices[] = { "full", "normal", NULL };

static const wb_option options[] = {
    { .name = "file",
      .type = WB_OPTION_PATH,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(wb_sqlite_db_config, file),
      .since = "0.1",
      .summary = "the file that holds the business data and the outbox",
      .help = "It may be the file of the sqlite transport; handlers can then send nothing with "
              "WB_IMMEDIATE. It must be on a file system of the machine itself." },
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
      .summary = "what a commit survives: full = power loss, normal = a crash of the process",
      .help = "With normal a power loss may take back the last commits of business data "
              "although their messages were sent and acknowledged." },
};

static int is_complete(const wb_persistence *made)
{
    return made->path && made->sessions_path && made->part && made->delayed_part && made->positions_part &&
           made->tables && made->schema;
}

static void destroy(wb_persistence *persistence)
{
    free(persistence->path);
    free(persistence->sessions_path);
    free(persistence->part);
    free(persistence->delayed_part);
    free(persistence->positions_part);
    free(persistence->tables);
    sqlite3_free(persistence->schema);
    free(persistence);
}

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    char path[PATH_MAX];
    const wb_sqlite_db_config *options_set = config;
    if (wb_sqlite_path_canonical(options_set->file, path, sizeof path) < 0)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                          "file = \"%s\" is not the path of a file",
                          options_set->file ? options_set->file : "");
    const int result = wb_sqlite_usable(host, options_set->file, path, error);
    if (result != WB_OK)
        return result;
    wb_persistence *made = calloc(1, sizeof *made);
    if (made) {
        made->host = host;
        made->endpoint = endpoint;
        made->config = options_set;
        made->path = wb_sqlite_path_join(path, "");
        made->sessions_path = wb_sqlite_path_join(path, WB_SQLITE_LOCKFILE_SUFFIX);
        made->part = wb_sqlite_path_join("persistence:", endpoint->name);
        made->delayed_part = wb_sqlite_path_join("delayed:", endpoint->name);
        made->positions_part = wb_sqlite_path_join("positions:", endpoint->name);
        made->tables = wb_sqlite_names_encode(endpoint->name);
        if (made->part && made->delayed_part && made->positions_part && made->tables)
            made->schema = wb_sqlite_schema_text(made);
    }
    if (!made || !is_complete(made)) {
        if (made)
            destroy(made);
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, 0, "out of memory");
    }
    *ret_persistence = made;
    return WB_OK;
}

static int shared_resource(const void *config, char *buffer, size_t size)
{
    const wb_sqlite_db_config *options_set = config;
    return wb_sqlite_path_canonical(options_set->file, buffer, size) < 0 ? WB_REJECT : WB_OK;
}

static const char *schema(wb_persistence *persistence)
{
    return persistence->schema;
}

static int examine(wb_persistence *persistence, const wb_examination *examination, wb_error *error)
{
    return wb_sqlite_examine(persistence->host, persistence->config, persistence->path,
                             "commits of business data, whose messages were sent,", examination, error);
}

static const wb_persistence_ops ops = {
    .struct_size = sizeof ops,
    .create = create,
    .destroy = destroy,
    .shared_resource = shared_resource,
    .schema = schema,
    .install = wb_sqlite_schema_install,
    .verify = wb_sqlite_schema_verify,
    .open = wb_sqlite_storage_open,
    .close = wb_sqlite_storage_close,
    .begin = wb_sqlite_storage_begin,
    .join = wb_sqlite_storage_join,
    .interface = wb_sqlite_storage_interface,
    .check = wb_sqlite_storage_check,
    .commit = wb_sqlite_storage_commit,
    .rollback = wb_sqlite_storage_rollback,
    .mark = wb_sqlite_storage_mark,
    .pending = wb_sqlite_storage_pending,
    .sweep = wb_sqlite_storage_sweep,
    .clean_up = wb_sqlite_storage_clean_up,
    .clock = wb_sqlite_storage_clock,
    .next_pending = wb_sqlite_storage_next_pending,
    .delayed = &wb_sqlite_delayed_ops,
    .find = wb_sqlite_storage_find,
    .stats = wb_sqlite_storage_stats,
    .count_records = wb_sqlite_storage_count_records,
    .list_pending = wb_sqlite_storage_list_pending,
    .take_pending = wb_sqlite_storage_take_pending,
    .written = &wb_sqlite_written_ops,
    .positions = wb_sqlite_positions_visit,
    .forget_positions = wb_sqlite_positions_forget,
    .forget = wb_sqlite_apart_forget,
    .remember = wb_sqlite_apart_remember,
    .uninstall = wb_sqlite_removal_uninstall,
    .rename = wb_sqlite_removal_rename,
    .note_subscriptions = wb_sqlite_removal_note,
    .subscriptions = wb_sqlite_removal_subscriptions,
    .keep_note = wb_sqlite_removal_keep_note,
    .look_up_note = wb_sqlite_removal_look_up_note,
    .examine = examine,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .abi_minor_needed = 0,
    .kind = WB_PLUGIN_PERSISTENCE,
    .name = "sqlite",
    .version = PACKAGE_VERSION,
    .summary = "business data, outbox and delayed messages in a SQLite file",
    .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT |
                    WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_WRITTEN | WB_CAP_POSITIONS | WB_CAP_FORGET | WB_CAP_REMEMBER |
                    WB_CAP_REMOVE_TABLES | WB_CAP_SUBSCRIPTIONS | WB_CAP_FAILED | WB_CAP_JOIN_TRANSPORT,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(wb_sqlite_db_config),
    .ops = &ops,
    .client_library = "libsqlite3.so.0",
};

WB_PLUGIN(sqlite, descriptor)

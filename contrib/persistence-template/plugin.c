/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence over LMDB: what the plugin is called, can do and is told.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf() */
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

/* ---- options: the host fills store_config from this table ------------------------------------- */

static const wb_option options[] = {
    { .name = "file",
      .type = WB_OPTION_PATH,
      .flags = WB_OPTION_REQUIRED,
      .offset = offsetof(store_config, file),
      .since = "0.1",
      .summary = "the file that holds business data and outbox",
      .help = "It must be on a file system of the machine itself." },
    { .name = "map_size",
      .type = WB_OPTION_SIZE,
      .offset = offsetof(store_config, map_size),
      .default_text = "1GiB",
      .minimum = INT64_C(1) << 20,
      .maximum = INT64_C(1) << 46,
      .since = "0.1",
      .summary = "how large the file may become",
      .help = "The same for all processes that use it." },
    { .name = "busy_timeout",
      .type = WB_OPTION_DURATION,
      .offset = offsetof(store_config, busy_timeout),
      .default_text = "10s",
      .minimum = INT64_C(1000000),
      .maximum = INT64_C(3600000000000),
      .since = "0.1",
      .summary = "how long to wait for other writers of the file",
      .help = "A file has one writer at a time. What cannot begin within this time is tried again later." },
};

/* ---- instance ------------------------------------------------------------------------------------ */

static void store_destroy(wb_persistence *persistence)
{
    free(persistence->path);
    free(persistence->locks);
    free(persistence->database);
    free(persistence->schema);
    free(persistence);
}

/* asprintf() leaves nothing to free when it fails. */
static int fill(wb_persistence *persistence)
{
    const char *name = persistence->endpoint->name;
    if (!(persistence->path = strdup(persistence->config->file)))
        return ENOMEM;
    if (asprintf(&persistence->locks, "%s-waybill", persistence->path) < 0)
        persistence->locks = NULL;
    if (asprintf(&persistence->database, "outbox.1:%s", name) < 0) /* another layout gets another number */
        persistence->database = NULL;
    if (asprintf(&persistence->schema, "-- no SQL: the databases \"data\" and \"outbox.1:%s\" of the LMDB file \"%s\"", name,
                 persistence->path) < 0)
        persistence->schema = NULL;
    return persistence->locks && persistence->database && persistence->schema ? 0 : ENOMEM;
}

static int store_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                        wb_persistence **ret_persistence, wb_error *error)
{
    wb_persistence *persistence = (wb_persistence *)calloc(1, sizeof *persistence);
    if (persistence) {
        persistence->host = host;
        persistence->endpoint = endpoint;
        persistence->config = (const store_config *)config;
    }
    if (!persistence || fill(persistence) != 0) {
        if (persistence)
            store_destroy(persistence);
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    }
    *ret_persistence = persistence;
    return WB_OK;
}

static const char *store_schema(wb_persistence *persistence)
{
    return persistence->schema;
}

/* What a session needs is what there is. */
static int store_verify(wb_persistence *persistence, wb_error *error)
{
    wb_storage_session *session = NULL;
    int result = store_open(persistence, &session, error);
    if (result == WB_OK)
        store_close(session);
    return result;
}

/* ---- descriptor ----------------------------------------------------------------------------------- */

static const wb_persistence_ops ops = {
    .struct_size = sizeof ops,
    .create = store_create,
    .destroy = store_destroy,
    .schema = store_schema,
    .install = store_install,
    .verify = store_verify,
    .open = store_open,
    .close = store_close,
    .begin = store_begin,
    .interface = store_interface,
    .check = store_check,
    .commit = store_commit,
    .rollback = store_rollback,
    .mark = store_mark,
    .pending = store_pending,
    .sweep = store_sweep,
    .clean_up = store_clean_up,
    .next_pending = store_next_pending,
};

static const wb_plugin descriptor = {
    .struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_PERSISTENCE,
    .name = "lmdb",
    .version = "0.1",
    .summary = "business data and outbox in an LMDB file",
    .capabilities = WB_CAP_OUTBOX,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof(wb_option),
    .config_size = sizeof(store_config),
    .ops = &ops,
    .client_library = "liblmdb.so.0",
};

WB_PLUGIN(lmdb, descriptor)

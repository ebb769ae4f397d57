/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence, whatever its dialect.
 */
#ifndef PGSQL_PERSISTENCE_H
#define PGSQL_PERSISTENCE_H

#include <waybill/sys/persistence.h>

#include "plugins/persistence/pgsql/pgsql-options.h"

/** Over the pgsql_dialect that is linked with it. */
extern const wb_persistence_ops pgsql_ops;

/** The entry of a plugin, given its name (an identifier, and as a string) and a summary. */
#define PGSQL_PLUGIN(identifier, string, text)                                                     \
    static const wb_plugin descriptor = {                                                          \
        .struct_size = sizeof(wb_plugin),                                                          \
        .magic = WB_PLUGIN_MAGIC,                                                                  \
        .abi_major = WB_PLUGIN_ABI_MAJOR,                                                          \
        .kind = WB_PLUGIN_PERSISTENCE,                                                             \
        .name = (string),                                                                          \
        .version = PACKAGE_VERSION,                                                                \
        .summary = (text),                                                                         \
        .capabilities = WB_CAP_OUTBOX,                                                             \
        .options = pgsql_options,                                                                  \
        .option_count = PGSQL_OPTION_COUNT,                                                        \
        .option_stride = sizeof(wb_option),                                                        \
        .config_size = sizeof(pgsql_config),                                                       \
        .ops = &pgsql_ops,                                                                         \
        .client_library = "libpq.so.5",                                                            \
    };                                                                                             \
    WB_PLUGIN(identifier, descriptor)

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence, whatever its dialect.
 */
#ifndef MYSQL_PERSISTENCE_H
#define MYSQL_PERSISTENCE_H

#include <waybill/sys/persistence.h>

#include "plugins/persistence/mysql/mysql-options.h"

/** Over the mys_dialect that is linked with it. */
extern const wb_persistence_ops mys_ops;

/** The entry of a plugin, given its name (an identifier, and as a string) and a summary. */
#define MYS_PLUGIN(identifier, string, text)                                                       \
    static const wb_plugin descriptor = {                                                          \
        .struct_size = sizeof(wb_plugin),                                                          \
        .magic = WB_PLUGIN_MAGIC,                                                                  \
        .abi_major = WB_PLUGIN_ABI_MAJOR,                                                          \
        .kind = WB_PLUGIN_PERSISTENCE,                                                             \
        .name = (string),                                                                          \
        .version = PACKAGE_VERSION,                                                                \
        .summary = (text),                                                                         \
        .capabilities = WB_CAP_OUTBOX,                                                             \
        .options = mys_options,                                                                    \
        .option_count = MYS_OPTION_COUNT,                                                          \
        .option_stride = sizeof(wb_option),                                                        \
        .config_size = sizeof(mys_config),                                                         \
        .ops = &mys_ops,                                                                           \
        .client_library = "libmariadb.so.3",                                                       \
    };                                                                                             \
    WB_PLUGIN(identifier, descriptor)

#endif

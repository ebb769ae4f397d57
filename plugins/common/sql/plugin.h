/* SPDX-License-Identifier: Apache-2.0
 *
 * What a persistence of an SQL server shows the host: its operations, of which few are its client
 * library's, and its descriptor.
 */
#ifndef WB_COMMON_SQL_PLUGIN_H
#define WB_COMMON_SQL_PLUGIN_H

#include "plugins/common/sql/apart.h"
#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/examine.h"
#include "plugins/common/sql/look.h"
#include "plugins/common/sql/pending.h"
#include "plugins/common/sql/positions.h"
#include "plugins/common/sql/removal.h"
#include "plugins/common/sql/schema.h"
#include "plugins/common/sql/transaction.h"
#include "plugins/common/sql/written.h"

/** A wb_persistence_ops, given what is the client library's affair. */
#define WB_SQL_OPS(create_instance, destroy_instance, open_session, close_session, interface_of)   \
    {                                                                                              \
        .struct_size = sizeof(wb_persistence_ops),                                                 \
        .create = (create_instance),                                                               \
        .destroy = (destroy_instance),                                                             \
        .schema = wb_sql_schema,                                                                   \
        .install = wb_sql_install,                                                                 \
        .verify = wb_sql_verify,                                                                   \
        .open = (open_session),                                                                    \
        .close = (close_session),                                                                  \
        .begin = wb_sql_begin,                                                                     \
        .interface = (interface_of),                                                               \
        .check = wb_sql_check,                                                                     \
        .commit = wb_sql_commit,                                                                   \
        .rollback = wb_sql_rollback,                                                               \
        .mark = wb_sql_mark,                                                                       \
        .pending = wb_sql_pending,                                                                 \
        .sweep = wb_sql_sweep,                                                                     \
        .clean_up = wb_sql_clean_up,                                                               \
        .clock = wb_sql_clock,                                                                     \
        .next_pending = wb_sql_next_pending,                                                       \
        .delayed = &wb_sql_delayed,                                                                \
        .find = wb_sql_find,                                                                       \
        .stats = wb_sql_stats,                                                                     \
        .count_records = wb_sql_count_records,                                                     \
        .list_pending = wb_sql_list_pending,                                                       \
        .take_pending = wb_sql_take_pending,                                                       \
        .written = &wb_sql_written,                                                                \
        .positions = wb_sql_positions,                                                             \
        .forget_positions = wb_sql_forget_positions,                                               \
        .forget = wb_sql_forget,                                                                   \
        .remember = wb_sql_remember,                                                               \
        .uninstall = wb_sql_uninstall,                                                             \
        .rename = wb_sql_rename,                                                                   \
        .note_subscriptions = wb_sql_note_subscriptions,                                           \
        .subscriptions = wb_sql_subscriptions,                                                     \
        .keep_note = wb_sql_keep_note,                                                             \
        .look_up_note = wb_sql_look_up_note,                                                       \
        .examine = wb_sql_examine,                                                                 \
    }

/** The entry of a plugin: its name (an identifier, and as a string), a summary, capabilities that its
 *  dialect adds (WB_CAP_WRITTEN or 0), and the operations, options and library of its client library. */
#define WB_SQL_PLUGIN(identifier, string, text, more, operations, option_table, config, library)   \
    static const wb_plugin descriptor = {                                                          \
        .struct_size = sizeof(wb_plugin),                                                          \
        .magic = WB_PLUGIN_MAGIC,                                                                  \
        .abi_major = WB_PLUGIN_ABI_MAJOR,                                                          \
        .kind = WB_PLUGIN_PERSISTENCE,                                                             \
        .name = (string),                                                                          \
        .version = PACKAGE_VERSION,                                                                \
        .summary = (text),                                                                         \
        .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT |            \
                        WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_POSITIONS | WB_CAP_FORGET |              \
                        WB_CAP_REMEMBER | WB_CAP_REMOVE_TABLES | WB_CAP_SUBSCRIPTIONS | (more),    \
        .options = (option_table),                                                                 \
        .option_count = sizeof(option_table) / sizeof(option_table)[0],                            \
        .option_stride = sizeof(wb_option),                                                        \
        .config_size = sizeof(config),                                                             \
        .ops = (operations),                                                                       \
        .client_library = (library),                                                               \
    };                                                                                             \
    WB_PLUGIN(identifier, descriptor)

#endif

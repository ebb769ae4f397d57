/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: an endpoint's tables go, or become another name's; what was begun of that; and what its
 * transport was subscribed to. wb_persistence_ops.uninstall, rename, keep_note, look_up_note, note_subscriptions,
 * subscriptions; each on a connection of its own, all but look_up_note under the lock of installations.
 */
#ifndef WB_COMMON_SQL_REMOVAL_H
#define WB_COMMON_SQL_REMOVAL_H

#include "plugins/common/sql/driver.h"

int wb_sql_uninstall(wb_persistence *persistence, wb_error *error);
int wb_sql_rename(wb_persistence *persistence, const char *former, wb_error *error);
int wb_sql_keep_note(wb_persistence *persistence, const char *name, int32_t number, wb_error *error);
int wb_sql_look_up_note(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error);
int wb_sql_note_subscriptions(wb_persistence *persistence, const char *const *types, size_t count, int is_over,
                              wb_error *error);
int wb_sql_subscriptions(wb_persistence *persistence, wb_subscription_fn visit, void *argument, wb_error *error);

/** Run a template in which what stands between bars means the former names: "ALTER TABLE |{dedup}| RENAME ...". Rows
 *  as wb_sql_schema_run() has them. @return WB_OK, or the class in the session's failure. */
int wb_sql_rename_run(wb_storage_session *session, const wb_sql_names *former, const char *template, wb_sql_answer *ret_rows);

#endif

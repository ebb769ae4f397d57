/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence that remembers ids for the outboxes of others, and can do nothing else: of sqlite's
 * operations those that such a one needs.
 */
#include "config.h"

#include <waybill/sys/persistence.h>

const wb_plugin *sqlite_LTX_wb_plugin(void);
WB_PUBLIC const wb_plugin *ids_LTX_wb_plugin(void);

const wb_plugin *ids_LTX_wb_plugin(void)
{
    static wb_plugin plugin;
    static wb_persistence_ops ops;
    plugin = *sqlite_LTX_wb_plugin();
    const wb_persistence_ops *all = plugin.ops;
    ops = (wb_persistence_ops){ .struct_size = sizeof ops,
                                .create = all->create,
                                .destroy = all->destroy,
                                .schema = all->schema,
                                .install = all->install,
                                .verify = all->verify,
                                .open = all->open,
                                .close = all->close,
                                .find = all->find,
                                .remember = all->remember,
                                .clean_up = all->clean_up };
    plugin.name = "ids";
    plugin.summary = "ids in a SQLite file";
    plugin.capabilities = WB_CAP_REMEMBER;
    plugin.ops = &ops;
    return &plugin;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence, whatever its dialect.
 */
#ifndef MYSQL_PERSISTENCE_H
#define MYSQL_PERSISTENCE_H

#include "plugins/common/sql/plugin.h"
#include "plugins/persistence/mysql/mysql-options.h"

/** Over the mys_dialect that is linked with it. */
extern const wb_persistence_ops mys_ops;

/** The entry of a plugin, given its name (an identifier, and as a string) and a summary. */
#define MYS_PLUGIN(identifier, string, text, more)                                                 \
    WB_SQL_PLUGIN(identifier, string, text, more, &mys_ops, mys_options, mys_config, "libmariadb.so.3")

#endif

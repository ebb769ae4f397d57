/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence, whatever its dialect.
 */
#ifndef PGSQL_PERSISTENCE_H
#define PGSQL_PERSISTENCE_H

#include "plugins/common/sql/plugin.h"
#include "plugins/persistence/pgsql/pgsql-options.h"

/** Over the pgsql_dialect that is linked with it. */
extern const wb_persistence_ops pgsql_ops;

/** The entry of a plugin, given its name (an identifier, and as a string) and a summary. */
#define PGSQL_PLUGIN(identifier, string, text, more)                                               \
    WB_SQL_PLUGIN(identifier, string, text, more, &pgsql_ops, pgsql_options, pgsql_config, "libpq.so.5")

#endif

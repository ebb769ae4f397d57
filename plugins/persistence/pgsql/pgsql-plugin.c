/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-persistence.h"

PGSQL_PLUGIN(pgsql, "pgsql", "outbox in PostgreSQL", WB_CAP_WRITTEN | WB_CAP_FAILED)

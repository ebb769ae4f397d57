/* SPDX-License-Identifier: Apache-2.0
 *
 * An outbox: one endpoint's tables on one server.
 */
#ifndef WB_COMMON_SQL_OUTBOX_H
#define WB_COMMON_SQL_OUTBOX_H

#include <waybill/sys/persistence.h>

#include "plugins/common/sql/names.h"

/** The first member of each plugin's struct wb_persistence. */
typedef struct wb_sql_outbox {
    const wb_host *host;
    wb_sql_names names;
} wb_sql_outbox;

#endif

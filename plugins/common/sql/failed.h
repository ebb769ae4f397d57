/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages (waybill/sys/failed.h) in a table beside the outbox'.
 */
#ifndef WB_COMMON_SQL_FAILED_H
#define WB_COMMON_SQL_FAILED_H

#include <waybill/sys/failed.h>

#include "plugins/common/sql/driver.h"

extern const wb_failed_ops wb_sql_failed;

#endif

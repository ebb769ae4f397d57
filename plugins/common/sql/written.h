/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that programs write in SQL (waybill/sys/written.h), in a table beside the outbox'.
 *
 * The turn is a lock of the session. Where the server's locks end with the transaction that takes them
 * (wb_sql_session.locks_in_transaction) the transaction of the fetch stays open until settle().
 */
#ifndef WB_COMMON_SQL_WRITTEN_H
#define WB_COMMON_SQL_WRITTEN_H

#include "plugins/common/sql/driver.h"

extern const wb_written_ops wb_sql_written;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How old a record is: batch numbers carry the database's time (waybill/sys/persistence.h).
 *
 * A record from the future was written when a clock was wrong, that of a host or the
 * database's own. Nobody knows how old it is, so that it is left alone; once its time has come
 * it ages as any other.
 */
#ifndef WB_COMMON_SQL_AGES_H
#define WB_COMMON_SQL_AGES_H

#include <stdint.h>
#include <waybill/sys/plugin.h>

/** The first bytes of a pending row that is parked: its number is in the future because it is
 *  due then. */
#define WB_SQL_PARKED "WBK1"

/** Records are counted no further: the question must stay cheap. */
#define WB_SQL_FUTURE_MAX 10000

/** The lowest batch number of the future, `now` being the database's time in nanoseconds since
 *  1970. Some minutes are no matter: clocks of hosts differ, and where the database's is not
 *  asked they are what numbers are made of. */
uint64_t wb_sql_future(int64_t now);

/** Warn of so many deduplication records and pending rows of the future; `newest` is the highest
 *  number of a record. Nothing is said of none. */
void wb_sql_report_future(const wb_host *host, uint64_t records, uint64_t pending,
                          uint64_t newest, int64_t now);

#endif

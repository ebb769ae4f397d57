/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-sql.h"

#include "plugins/common/sql/ages.h"

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define LIMITED " LIMIT " TEXT_OF(WB_SQL_FUTURE_MAX) ")"

#define NOT_PENDING                                                                                \
    " AND NOT EXISTS (SELECT 1 FROM {pending} WHERE {pending}.batch = {dedup}.batch)"

static const char *const templates[MYS_SQL_COUNT] = {
    /* READ WRITE, so that a server that takes no writes says so now and not in a handler */
    [MYS_SQL_BEGIN] = "START TRANSACTION READ WRITE",
    [MYS_SQL_COMMIT] = "COMMIT",
    [MYS_SQL_ROLLBACK] = "ROLLBACK",
    /* not INSERT IGNORE, which would hide other errors; an assignment of what is there
     * already counts no affected row, so that their number says how many ids are new */
    [MYS_SQL_CLAIM] = "INSERT INTO {dedup} (id, batch) VALUES ",
    [MYS_SQL_CLAIM_END] = " ON DUPLICATE KEY UPDATE batch = batch",
    [MYS_SQL_LOOKUP] = "SELECT id, batch FROM {dedup} WHERE id IN (",
    [MYS_SQL_STORE] = "INSERT INTO {pending} (batch, operations) VALUES (",
    [MYS_SQL_RELEASE] = "DELETE FROM {dedup} WHERE batch = ",
    [MYS_SQL_RELEASE_IDS] = " AND id IN (",
    [MYS_SQL_MARK] = "DELETE FROM {pending} WHERE batch IN (",
    [MYS_SQL_SHRINK] = "UPDATE {pending} SET operations = ",
    [MYS_SQL_SHRINK_BATCH] = " WHERE batch = ",
    [MYS_SQL_PENDING] = "SELECT batch, operations FROM {pending} WHERE batch IN (",
    [MYS_SQL_NEXT] = "SELECT batch, operations FROM {pending} WHERE batch >= ",
    [MYS_SQL_NEXT_BEFORE] = " AND batch < ",
    [MYS_SQL_NEXT_END] = " ORDER BY batch LIMIT 1",
    [MYS_SQL_CLEAN_UP] = "DELETE FROM {dedup} WHERE batch < ",
    [MYS_SQL_CLEAN_UP_LIMIT] = NOT_PENDING " ORDER BY batch LIMIT ",
    /* in UTC, whatever the session's time zone, and without a hole or a double hour */
    [MYS_SQL_CLOCK] =
        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
    /* each by the right end of an index, and counted no further than the limit */
    [MYS_SQL_FUTURE] = "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM {dedup} WHERE batch >= ",
    [MYS_SQL_FUTURE_PENDING] =
        LIMITED " AS records), (SELECT COUNT(*) FROM (SELECT 1 FROM {pending} WHERE "
                "SUBSTRING(operations, 1, 4) <> _binary '" WB_SQL_PARKED "' AND batch >= ",
    [MYS_SQL_FUTURE_END] = LIMITED " AS pending), (SELECT MAX(batch) FROM {dedup})",
    [MYS_SQL_LIST_END] = ")",
};

char *mys_sql_text(const wb_sql_names *names, mys_sql which)
{
    return wb_sql_names_text(names, templates[which]);
}

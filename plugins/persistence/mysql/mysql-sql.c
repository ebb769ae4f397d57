/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-sql.h"

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
    [MYS_SQL_SWEEP] = "SELECT batch, operations FROM {pending} WHERE batch < ",
    [MYS_SQL_SWEEP_LIMIT] = " ORDER BY batch LIMIT ",
    [MYS_SQL_CLEAN_UP] = "DELETE FROM {dedup} WHERE batch < ",
    [MYS_SQL_CLEAN_UP_LIMIT] = NOT_PENDING " ORDER BY batch LIMIT ",
    [MYS_SQL_LIST_END] = ")",
};

char *mys_sql_text(const mys_names *names, mys_sql which)
{
    mys_buffer text = { 0 };
    mys_names_expand(names, templates[which], &text);
    mys_buffer_put(&text, "", 1);
    if (text.failed) {
        mys_buffer_free(&text);
        return NULL;
    }
    return text.data;
}

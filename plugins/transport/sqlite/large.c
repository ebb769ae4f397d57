/* SPDX-License-Identifier: Apache-2.0
 *
 * What is too large to be read as a column: SQLite would hold a second copy of it. And the
 * gate, through which messages over the limit go one at a time in the whole process.
 */
#include "config.h"

#include <stdatomic.h>

#include "plugins/transport/sqlite/transport.h"

/* ---- the gate --------------------------------------------------------------------------- */

/* One for all endpoints of the process. */
static atomic_int is_taken;

int wb_sqlite_large_enter(void)
{
    int expected = 0;
    return atomic_compare_exchange_strong(&is_taken, &expected, 1);
}

void wb_sqlite_large_leave(wb_transport_session *session)
{
    atomic_store(&is_taken, 0);
    wb_sqlite_wait_ring(session);
}

/* ---- values ----------------------------------------------------------------------------- */

int wb_sqlite_large_open(wb_transport_session *session, int64_t seq, const char *column,
                         sqlite3_blob **ret_blob, wb_error *error)
{
    char *table = sqlite3_mprintf("waybill_message_%lld", (long long)session->source->queue);
    if (!table)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    int code = sqlite3_blob_open(session->db.handle, "main", table, column, seq, 0, ret_blob);
    sqlite3_free(table);
    return code == SQLITE_OK ? WB_OK : wb_sqlite_db_fail(&session->db, code, "read a message",
                                                         error);
}

int wb_sqlite_large_read(wb_transport_session *session, sqlite3_blob *blob, void *to, size_t size,
                         wb_error *error)
{
    int code = sqlite3_blob_read(blob, to, (int)size, 0);
    return code == SQLITE_OK ? WB_OK : wb_sqlite_db_fail(&session->db, code, "read a message",
                                                         error);
}

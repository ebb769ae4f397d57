/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/apart.h"

#include "plugins/common/sql/transaction.h"

#define FORGET "forget deduplication records"
#define REMEMBER "remember ids"

/* ---- forgetting ----------------------------------------------------------------------- */

size_t wb_sql_count_forgotten(const wb_begin *begin)
{
    return WB_HAS(begin, wb_begin, forgotten_count) ? begin->forgotten_count : 0;
}

static size_t count_of_batch(const wb_claim *claims, size_t count)
{
    size_t size = 1;
    while (size < count && claims[size].duplicate_of == claims->duplicate_of)
        size++;
    return size;
}

void wb_sql_queue_forgotten(wb_storage_session *session, const wb_claim *claims, size_t count)
{
    size_t size;
    for (size_t i = 0; i < count; i += size) {
        size = count_of_batch(claims + i, count - i);
        wb_sql_queue_keys(session, WB_SQL_FORGET, claims + i, size, claims[i].duplicate_of);
    }
}

int wb_sql_forget(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, FORGET, error);
    if (!count)
        return WB_OK;
    s->outbox->driver->start(session);
    wb_sql_queue_forgotten(session, claims, count);
    if (wb_sql_run_outside(session, "forget_sent") != WB_OK)
        return wb_sql_report(session, FORGET, error);
    return WB_OK;
}

/* ---- remembering ---------------------------------------------------------------------- */

/* In the order of the claims, which is the same for all who remember: of two with the same ids one waits for
 * the other. */
static void queue_remembered(wb_storage_session *session, const wb_claim *claims, size_t count)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    for (size_t i = 0; i < count; i += most) {
        const size_t size = count - i < most ? count - i : most;
        const wb_sql_value values[] = { WB_SQL_KEYS(WB_SQL_SOME_KEYS, session, claims + i, size),
                                        WB_SQL_LIST(WB_SQL_OWNERS, claims + i, size) };
        outbox->driver->queue(session, WB_SQL_REMEMBER, values, 2, NULL);
    }
}

/* The numbers are those of the outbox's server, which may hold larger ones. */
static int are_too_large(const wb_sql_outbox *outbox, const wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (claims[i].duplicate_of > outbox->dialect->batch_max)
            return 1;
    return 0;
}

int wb_sql_remember(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_host *host = s->outbox->host;

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, REMEMBER, error);
    if (!count)
        return WB_OK;
    if (are_too_large(s->outbox, claims, count))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_TOO_LARGE, 0,
                          "could not " REMEMBER ": a batch number is too large");
    s->outbox->driver->start(session);
    queue_remembered(session, claims, count);
    if (wb_sql_run_outside(session, "remember_sent") != WB_OK)
        return wb_sql_report_doubt(session, REMEMBER, error);
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-transaction.h"

#define OID_INT8 20
#define OID_BYTEA 17

/* Each time round a record must have been cleaned up between two statements. */
#define ROUNDS_MAX 10

static void put_array_header(wb_sql_buffer *buffer, uint32_t type, size_t count)
{
    wb_sql_buffer_reset(buffer);
    pgsql_buffer_put_u32(buffer, count ? 1 : 0); /* dimensions */
    pgsql_buffer_put_u32(buffer, 0);             /* no NULLs */
    pgsql_buffer_put_u32(buffer, type);
    if (!count)
        return;
    pgsql_buffer_put_u32(buffer, (uint32_t)count);
    pgsql_buffer_put_u32(buffer, 1); /* lower bound */
}

static size_t count_unsettled(const wb_claim *claims, size_t count)
{
    size_t unsettled = 0;
    for (size_t i = 0; i < count; i++)
        unsettled += claims[i].duplicate_of == PGSQL_UNSETTLED;
    return unsettled;
}

void pgsql_encode_keys(wb_sql_buffer *buffer, const wb_claim *claims, size_t count,
                       int only_unsettled)
{
    put_array_header(buffer, OID_BYTEA, only_unsettled ? count_unsettled(claims, count) : count);
    for (size_t i = 0; i < count; i++) {
        if (only_unsettled && claims[i].duplicate_of != PGSQL_UNSETTLED)
            continue;
        pgsql_buffer_put_u32(buffer, (uint32_t)claims[i].id_size);
        wb_sql_buffer_put(buffer, claims[i].id, claims[i].id_size);
    }
}

void pgsql_encode_batches(wb_sql_buffer *buffer, const uint64_t *batches, size_t count)
{
    put_array_header(buffer, OID_INT8, count);
    for (size_t i = 0; i < count; i++) {
        pgsql_buffer_put_u32(buffer, 8);
        pgsql_buffer_put_u64(buffer, batches[i]);
    }
}

void pgsql_encode_gone(wb_sql_buffer *buffer, const wb_mark *marks, size_t count, size_t gone)
{
    put_array_header(buffer, OID_INT8, gone);
    for (size_t i = 0; i < count; i++) {
        if (marks[i].remaining)
            continue;
        pgsql_buffer_put_u32(buffer, 8);
        pgsql_buffer_put_u64(buffer, marks[i].batch);
    }
}

static void queue_keys(wb_storage_session *s, pgsql_sql which, const wb_begin *begin,
                       PGresult **ret_result)
{
    char batch[8];
    pgsql_write_u64(batch, begin->batch);
    pgsql_encode_keys(&s->keys, begin->claims, begin->claim_count, 1);
    if (s->keys.failed)
        s->exchange.broken = s->exchange.out_of_memory = 1;
    const pgsql_value values[] = { { s->keys.data, s->keys.size }, { batch, sizeof batch } };
    pgsql_queue(s, which, values, which == PGSQL_SQL_CLAIM ? 2 : 1, ret_result);
}

/* Mark as ours what the server returned: in the order of the claims, leaving out those
 * that were there before. */
static void take_claimed(wb_begin *begin, const PGresult *claimed)
{
    size_t at = 0;
    for (int row = 0; row < PQntuples(claimed); row++) {
        const size_t size = (size_t)PQgetlength(claimed, row, 0);
        const char *key = PQgetvalue(claimed, row, 0);
        for (; at < begin->claim_count; at++) {
            wb_claim *claim = &begin->claims[at];
            if (claim->duplicate_of == PGSQL_UNSETTLED && claim->id_size == size &&
                memcmp(claim->id, key, size) == 0) {
                claim->duplicate_of = 0;
                break;
            }
        }
    }
}

/* A row says: the n-th key that was asked for, and the batch of its record. They come in
 * ascending order. */
static void take_found(wb_begin *begin, const PGresult *found)
{
    uint64_t asked = 0;
    size_t at = 0;
    for (int row = 0; row < PQntuples(found); row++) {
        const uint64_t position = pgsql_read_u64(PQgetvalue(found, row, 0));
        while (at < begin->claim_count && asked < position) {
            wb_claim *claim = &begin->claims[at++];
            if (claim->duplicate_of == PGSQL_UNSETTLED && ++asked == position)
                claim->duplicate_of = pgsql_read_u64(PQgetvalue(found, row, 1));
        }
    }
}

void pgsql_queue_claims(wb_storage_session *s, const wb_begin *begin, PGresult **ret_claimed)
{
    queue_keys(s, PGSQL_SQL_CLAIM, begin, ret_claimed);
}

static void settle_claimed(wb_begin *begin, PGresult *claimed)
{
    if (PQntuples(claimed) == (int)begin->claim_count) /* nearly always: no need to compare */
        for (size_t i = 0; i < begin->claim_count; i++)
            begin->claims[i].duplicate_of = 0;
    else
        take_claimed(begin, claimed);
    PQclear(claimed);
}

int pgsql_settle_claims(wb_storage_session *s, wb_begin *begin, PGresult *claimed)
{
    settle_claimed(begin, claimed);
    for (int round = 0; count_unsettled(begin->claims, begin->claim_count); round++) {
        PGresult *found = NULL;
        if (round == ROUNDS_MAX) {
            s->sql.failure = (wb_sql_failure){ .result = WB_RETRY,
                                          .cause = WB_CAUSE_SERVER,
                                          .item = WB_SQL_NO_ITEM };
            (void)snprintf(s->sql.failure.text, sizeof s->sql.failure.text,
                           "records of duplicates come and go");
            return WB_RETRY;
        }
        pgsql_exchange_start(s);
        queue_keys(s, PGSQL_SQL_LOOKUP, begin, &found);
        int result = pgsql_exchange_run(s, NULL);
        if (found)
            take_found(begin, found);
        PQclear(found);
        if (result != WB_OK || !count_unsettled(begin->claims, begin->claim_count))
            return result;
        /* a record was there, kept us from claiming, and was cleaned up since */
        PGresult *again = NULL;
        pgsql_exchange_start(s);
        pgsql_queue_claims(s, begin, &again);
        result = pgsql_exchange_run(s, NULL);
        if (again)
            take_claimed(begin, again);
        PQclear(again);
        if (result != WB_OK)
            return result;
    }
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-transaction.h"

/* Each time round another transaction must have claimed or lost an id in between. */
#define ROUNDS_MAX 10

static size_t count_unsettled(const wb_claim *claims, size_t count)
{
    size_t unsettled = 0;
    for (size_t i = 0; i < count; i++)
        unsettled += claims[i].duplicate_of == MYS_UNSETTLED;
    return unsettled;
}

void mys_put_ids(wb_storage_session *s, const wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            mys_put_text(s, ",");
        mys_put_bytes(s, claims[i].id, claims[i].id_size);
    }
}

static void put_claim(wb_storage_session *s, const wb_claim *claim, uint64_t batch)
{
    mys_put_text(s, "(");
    mys_put_bytes(s, claim->id, claim->id_size);
    mys_put_text(s, ",");
    mys_put_number(s, batch);
    mys_put_text(s, ")");
}

void mys_queue_claims(wb_storage_session *s, const wb_begin *begin, uint64_t *ret_new)
{
    size_t put = 0;
    for (size_t i = 0; i < begin->claim_count; i++) {
        if (begin->claims[i].duplicate_of != MYS_UNSETTLED)
            continue;
        if (put == 0)
            mys_put(s, MYS_SQL_CLAIM);
        else
            mys_put_text(s, ",");
        put_claim(s, &begin->claims[i], begin->batch);
        if (++put == MYS_IDS_MAX) {
            mys_put(s, MYS_SQL_CLAIM_END);
            mys_exchange_end_affected(s, ret_new);
            put = 0;
        }
    }
    if (put) {
        mys_put(s, MYS_SQL_CLAIM_END);
        mys_exchange_end_affected(s, ret_new);
    }
}

/* ---- whose record is it? --------------------------------------------------------- */

/* Rows come in the order of the claims, which is that of their bytes. */
static void take_found(wb_claim *claims, size_t count, MYSQL_RES *found)
{
    size_t at = 0;
    MYSQL_ROW row;
    while ((row = mysql_fetch_row(found)) != NULL) {
        const unsigned long *sizes = mysql_fetch_lengths(found);
        while (at < count && (claims[at].id_size != sizes[0] ||
                              memcmp(claims[at].id, row[0], sizes[0]) != 0))
            at++;
        if (at < count)
            claims[at++].duplicate_of = strtoull(row[1], NULL, 10);
    }
}

static int look_up_some(wb_storage_session *s, wb_claim *claims, size_t count)
{
    MYSQL_RES *found = NULL;

    mys_exchange_start(s);
    mys_put(s, MYS_SQL_LOOKUP);
    mys_put_ids(s, claims, count);
    mys_put_text(s, ") ORDER BY id");
    mys_exchange_end_rows(s, &found);
    int result = mys_exchange_run(s, NULL);
    if (result == WB_OK)
        take_found(claims, count, found);
    mysql_free_result(found);
    return result;
}

/* duplicate_of becomes the batch of the record, or stays unsettled: there is none. */
static int look_up(wb_storage_session *s, wb_begin *begin)
{
    int result = WB_OK;
    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = MYS_UNSETTLED;
    for (size_t i = 0; i < begin->claim_count && result == WB_OK; i += MYS_IDS_MAX) {
        const size_t rest = begin->claim_count - i;
        result = look_up_some(s, begin->claims + i, rest < MYS_IDS_MAX ? rest : MYS_IDS_MAX);
    }
    return result;
}

/* Those with our number are ours, unless there are more of them than we made: the number was
 * used before, by a transaction whose outcome was in doubt. @return whether they are told. */
static int tell_apart(wb_begin *begin, uint64_t count_new)
{
    uint64_t numbered = 0;
    for (size_t i = 0; i < begin->claim_count; i++)
        numbered += begin->claims[i].duplicate_of == begin->batch;
    if (count_unsettled(begin->claims, begin->claim_count) ||
        (count_new && numbered != count_new))
        return 0;
    for (size_t i = 0; i < begin->claim_count && count_new; i++)
        if (begin->claims[i].duplicate_of == begin->batch)
            begin->claims[i].duplicate_of = 0;
    return 1;
}

/* Once more from the start of the transaction: without our records, what is there was there
 * before. */
static int start_over(wb_storage_session *s, wb_begin *begin, uint64_t *ret_missing)
{
    uint64_t count_new = 0;

    mys_exchange_start(s);
    mys_queue(s, MYS_SQL_ROLLBACK);
    mys_queue_begin(s);
    int result = mys_exchange_run(s, NULL);
    if (result == WB_OK)
        result = look_up(s, begin);
    if (result != WB_OK)
        return result;
    const uint64_t wanted = count_unsettled(begin->claims, begin->claim_count);
    mys_exchange_start(s);
    mys_queue_claims(s, begin, &count_new);
    result = mys_exchange_run(s, NULL);
    *ret_missing = wanted - count_new;
    return result;
}

static void settle_rest(wb_begin *begin)
{
    for (size_t i = 0; i < begin->claim_count; i++)
        if (begin->claims[i].duplicate_of == MYS_UNSETTLED)
            begin->claims[i].duplicate_of = 0;
}

int mys_settle_claims(wb_storage_session *s, wb_begin *begin, uint64_t count_new)
{
    uint64_t missing = 1;
    int result = WB_OK;

    if (count_new == begin->claim_count) { /* nearly always */
        settle_rest(begin);
        return WB_OK;
    }
    result = look_up(s, begin);
    if (result != WB_OK || tell_apart(begin, count_new))
        return result;
    for (int round = 0; round < ROUNDS_MAX && missing && result == WB_OK; round++)
        result = start_over(s, begin, &missing);
    if (result != WB_OK)
        return result;
    if (missing)
        return wb_sql_note(s, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM,
                                "records of duplicates come and go");
    settle_rest(begin);
    return WB_OK;
}

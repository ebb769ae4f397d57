/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/common/sql/positions.h"
#include "plugins/common/sql/transaction.h"

/* Each time round another transaction must have claimed or lost an id in between. */
#define ROUNDS_MAX 10

static size_t count_unsettled(const wb_begin *begin)
{
    const wb_sql_value all =
        WB_SQL_LIST(WB_SQL_UNSETTLED_KEYS, begin->claims, begin->claim_count);
    return wb_sql_count_listed(&all);
}

/* The claims from `first` that one statement holds. */
static wb_sql_value some_claims(wb_storage_session *session, const wb_claim *claims, size_t count,
                                size_t first)
{
    const size_t most = wb_sql_of(session)->outbox->dialect->keys_max;
    const size_t rest = count - first;
    return WB_SQL_KEYS(WB_SQL_UNSETTLED_KEYS, session, claims + first, rest < most ? rest : most);
}

void wb_sql_queue_claims(wb_storage_session *session, const wb_begin *begin,
                         wb_sql_answer *ret_new)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    size_t size;
    for (size_t i = 0; i < begin->claim_count; i += size) {
        const wb_sql_value values[] = { some_claims(session, begin->claims, begin->claim_count, i),
                                        WB_SQL_NUMBER(begin->batch) };
        size = values[0].size;
        if (wb_sql_count_listed(&values[0]))
            outbox->driver->queue(session, WB_SQL_CLAIM, values, 2, ret_new);
    }
}

/* ---- whose record is it? --------------------------------------------------------- */

static wb_sql_key id_of(wb_storage_session *session, const wb_sql_cell *key,
                        unsigned char room[WB_SQL_KEY_ROOM])
{
    return wb_sql_of(session)->has_compact_keys ? wb_sql_key_exchange(key->data, key->size, room)
                                                : (wb_sql_key){ key->data, key->size };
}

/* Rows come in the order of the keys, which mostly is that of the claims: whose the next one is, is
 * looked for from the last one on, once around. */
static void take_found(wb_storage_session *session, wb_claim *claims, size_t count,
                       wb_sql_answer *found)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    unsigned char room[WB_SQL_KEY_ROOM];
    wb_sql_cell cells[2];
    for (size_t at = 0; driver->fetch(found, cells, 2);) {
        const wb_sql_key id = id_of(session, &cells[0], room);
        size_t left = count;
        while (left && (claims[at].id_size != id.size || memcmp(claims[at].id, id.data, id.size) != 0)) {
            at = at + 1 < count ? at + 1 : 0;
            left--;
        }
        if (left)
            claims[at].duplicate_of = driver->number(&cells[1]);
    }
}

/* duplicate_of becomes the batch of the record, or stays unsettled: there is none. */
static int look_up(wb_storage_session *session, wb_claim *claims, size_t count,
                   int (*run)(wb_storage_session *session, const char *crash_point))
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_driver *driver = outbox->driver;
    int result = WB_OK;
    size_t size;

    for (size_t i = 0; i < count; i++)
        claims[i].duplicate_of = WB_SQL_UNSETTLED;
    for (size_t i = 0; i < count && result == WB_OK; i += size) {
        const wb_sql_value keys = some_claims(session, claims, count, i);
        wb_sql_answer found = { 0 };
        size = keys.size;
        driver->start(session);
        driver->queue(session, WB_SQL_LOOKUP, &keys, 1, &found);
        result = run(session, NULL);
        if (result == WB_OK)
            take_found(session, claims + i, size, &found);
        driver->clear(&found);
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
    if (count_unsettled(begin) || (count_new && numbered != count_new))
        return 0;
    for (size_t i = 0; i < begin->claim_count && count_new; i++)
        if (begin->claims[i].duplicate_of == begin->batch)
            begin->claims[i].duplicate_of = 0;
    return 1;
}

/* Nothing rests on the order of what CLAIM answers, but on its number. */
static int refuse_count(wb_storage_session *session)
{
    return wb_sql_note(session, WB_FATAL, WB_CAUSE_MISMATCH, WB_SQL_NO_ITEM,
                       "the server counts more new deduplication records than ids were claimed: "
                       "has the table a rule or a trigger?");
}

/* Once more from the start of the transaction: without our records, what is there was there
 * before. */
static int start_over(wb_storage_session *session, wb_begin *begin, uint64_t *ret_missing)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    wb_sql_answer claimed = { 0 };

    driver->start(session);
    driver->queue(session, WB_SQL_ROLLBACK, NULL, 0, NULL);
    driver->queue_begin(session, NULL);
    int result = driver->run(session, NULL);
    if (result == WB_OK)
        result = wb_sql_claim_positions(session, begin);
    if (result == WB_OK)
        result = look_up(session, begin->claims, begin->claim_count, driver->run);
    if (result != WB_OK)
        return result;
    const uint64_t wanted = count_unsettled(begin);
    driver->start(session);
    wb_sql_queue_claims(session, begin, &claimed);
    result = driver->run(session, NULL);
    if (result == WB_OK && claimed.affected > wanted)
        return refuse_count(session);
    *ret_missing = wanted - claimed.affected;
    return result;
}

static void settle_rest(wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (claims[i].duplicate_of == WB_SQL_UNSETTLED)
            claims[i].duplicate_of = 0;
}

int wb_sql_settle_claims(wb_storage_session *session, wb_begin *begin, uint64_t count_new)
{
    uint64_t missing = 1;
    int result = WB_OK;

    if (count_new == begin->claim_count) { /* nearly always */
        settle_rest(begin->claims, begin->claim_count);
        return WB_OK;
    }
    if (count_new > begin->claim_count)
        return refuse_count(session);
    result = look_up(session, begin->claims, begin->claim_count,
                     wb_sql_of(session)->outbox->driver->run);
    if (result != WB_OK || tell_apart(begin, count_new))
        return result;
    for (int round = 0; round < ROUNDS_MAX && missing && result == WB_OK; round++)
        result = start_over(session, begin, &missing);
    if (result != WB_OK)
        return result;
    if (missing) { /* the session may be to blame: a handler may have limited what it answers */
        wb_sql_of(session)->outbox->driver->lose(session, "records of duplicates come and go");
        return wb_sql_of(session)->failure.result;
    }
    settle_rest(begin->claims, begin->claim_count);
    return WB_OK;
}

/* ---- without a claim ---------------------------------------------------------------- */

int wb_sql_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    if (wb_sql_of(session)->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "look for deduplication records", error);
    if (look_up(session, claims, count, wb_sql_run_outside) != WB_OK)
        return wb_sql_report(session, "look for deduplication records", error);
    settle_rest(claims, count);
    return WB_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence that is broken in the way its option `bug` says: the whole of another one,
 * BASE, with a wrong turn here and there. Each bug is one that real databases and real
 * programs have. One instance's bug is that of the whole process.
 */
#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/keys.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

const wb_plugin *JOIN(BASE, _LTX_wb_plugin)(void);
WB_PUBLIC const wb_plugin *JOIN(broken_, JOIN(BASE, _LTX_wb_plugin))(void);

static const char *const bugs[] = { "none", "ids_ignore_case", "ids_lose_blanks", "ids_end_at_nul",
                                    "claims_by_looking", "forgets_released", "truncates_operations",
                                    "marks_roll_back", "rest_is_dropped", "clean_up_takes_pending",
                                    "sweeps_newest_first", "refused_commit_is_ok", "close_commits",
                                    "doubt_is_ok", "doubt_is_nothing", "loss_is_retry",
                                    "walks_on_the_spot", "walks_past_the_visitor",
                                    "walks_beside_others", "sweeps_what_is_not_due",
                                    "parks_nothing", "clock_is_a_year_off", "clock_stands_still",
                                    "locks_are_the_messages", "stores_as_begun",
                                    "late_claims_do_nothing", "finds_by_claiming", "finds_nothing",
                                    "uuids_in_any_case", "uuids_unescaped",
                                    "guesses_are_exact", "counts_what_is_pending",
                                    "lists_as_a_sweep", "heads_are_whole",
                                    "rows_are_everybodys", "takes_what_is_gone",
                                    "written_comes_again", "written_waits_for_nothing", "written_loses_keys",
                                    "written_in_pieces", "written_to_anybody", "written_of_any_form", "claims_are_always_new",
                                    "positions_unlocked", "positions_not_set_back",
                                    "forgets_nothing", "forget_takes_any_batch", "forgotten_rolls_back",
                                    "remember_overwrites", "remembers_late", "remembers_part",
                                    "remembers_by_looking", "written_from_the_start", "written_past_the_last",
                                    "written_counts_what_may_go",
                                    "uninstalls_nothing", "renames_nothing", "renames_over", "notes_for_ever",
                                    "begun_for_ever", "begun_by_all", "pools", "pools_and_lies",
                                    "gives_back_late", "cleans_up_by_the_first_number", "clean_up_takes_the_empty",
                                    "empty_rest_is_none", "stopped_sweep_stays", "busy_is_done", "endpoints_ignore_case",
                                    "endpoints_by_their_head", "refuses_names", "claims_as_begun", NULL };
enum { NONE, IDS_IGNORE_CASE, IDS_LOSE_BLANKS, IDS_END_AT_NUL, CLAIMS_BY_LOOKING, FORGETS_RELEASED,
       TRUNCATES_OPERATIONS, MARKS_ROLL_BACK, REST_IS_DROPPED, CLEAN_UP_TAKES_PENDING,
       SWEEPS_NEWEST_FIRST, REFUSED_COMMIT_IS_OK, CLOSE_COMMITS, DOUBT_IS_OK, DOUBT_IS_NOTHING,
       LOSS_IS_RETRY, WALKS_ON_THE_SPOT, WALKS_PAST_THE_VISITOR, WALKS_BESIDE_OTHERS,
       SWEEPS_WHAT_IS_NOT_DUE, PARKS_NOTHING, CLOCK_IS_A_YEAR_OFF, CLOCK_STANDS_STILL,
       LOCKS_ARE_THE_MESSAGES, STORES_AS_BEGUN, LATE_CLAIMS_DO_NOTHING, FINDS_BY_CLAIMING,
       FINDS_NOTHING, UUIDS_IN_ANY_CASE, UUIDS_UNESCAPED, GUESSES_ARE_EXACT,
       COUNTS_WHAT_IS_PENDING, LISTS_AS_A_SWEEP, HEADS_ARE_WHOLE, ROWS_ARE_EVERYBODYS, TAKES_WHAT_IS_GONE,
       WRITTEN_COMES_AGAIN, WRITTEN_WAITS_FOR_NOTHING, WRITTEN_LOSES_KEYS, WRITTEN_IN_PIECES, WRITTEN_TO_ANYBODY, WRITTEN_OF_ANY_FORM,
       CLAIMS_ARE_ALWAYS_NEW, POSITIONS_UNLOCKED, POSITIONS_NOT_SET_BACK,
       FORGETS_NOTHING, FORGET_TAKES_ANY_BATCH, FORGOTTEN_ROLLS_BACK,
       REMEMBER_OVERWRITES, REMEMBERS_LATE, REMEMBERS_PART, REMEMBERS_BY_LOOKING,
       WRITTEN_FROM_THE_START, WRITTEN_PAST_THE_LAST, WRITTEN_COUNTS_WHAT_MAY_GO,
       UNINSTALLS_NOTHING, RENAMES_NOTHING, RENAMES_OVER, NOTES_FOR_EVER, BEGUN_FOR_EVER, BEGUN_BY_ALL,
       POOLS, POOLS_AND_LIES, GIVES_BACK_LATE, CLEANS_UP_BY_THE_FIRST_NUMBER, CLEAN_UP_TAKES_THE_EMPTY, EMPTY_REST_IS_NONE,
       STOPPED_SWEEP_STAYS, BUSY_IS_DONE, ENDPOINTS_IGNORE_CASE, ENDPOINTS_BY_THEIR_HEAD, REFUSES_NAMES,
       CLAIMS_AS_BEGUN };

#define CLAIMS_MAX 2048
#define MARKS_MAX 1024
#define POSITIONS_MAX 8

static const wb_persistence_ops *base;
static int32_t bug;
static size_t bug_offset;
static wb_host some_host; /* a copy: instances come and go */

/* Copies of claims. */
typedef struct {
    wb_claim claims[CLAIMS_MAX];
    char texts[CLAIMS_MAX][256];
    size_t count;
} ids;

/* What a session's open transaction withholds from the base, and what the session does. */
typedef struct {
    wb_storage_session *session; /* NULL: a free place */
    wb_persistence *persistence;
    int is_open;
    int has_row; /* it has taken one, and keeps it to its end */
    int has_claims;
    int is_held; /* a sweep that was stopped has left its transaction open */
    uint64_t batch;
    wb_mark marks[MARKS_MAX];
    size_t mark_count;
    wb_claim claims[CLAIMS_MAX];
    size_t claim_count;
    wb_position positions[POSITIONS_MAX];
    size_t position_count;
    wb_position looked[POSITIONS_MAX];
    size_t looked_count;
    ids forgotten;
    ids remembered;
} withheld;

#define SESSIONS_MAX 64
static withheld places[SESSIONS_MAX];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a session; of NULL: a free one. */
static withheld *place_of(const wb_storage_session *session)
{
    withheld *found = places;
    pthread_mutex_lock(&places_lock);
    while (found->session != session)
        if (++found == places + SESSIONS_MAX)
            abort();
    pthread_mutex_unlock(&places_lock);
    return found;
}

/* ---- ids --------------------------------------------------------------------------------- */

static size_t mangled_size(const char *id, size_t size)
{
    if (bug == IDS_END_AT_NUL)
        return strnlen(id, size) ? strnlen(id, size) : 1;
    if (bug == IDS_LOSE_BLANKS)
        while (size > 1 && id[size - 1] == ' ')
            size--;
    return size;
}

/* A UUID in whatever case is one; or it becomes a tag and 16 bytes, which another id may be as well. */
static size_t mangle_uuid(char *text, size_t size)
{
    char lower[WB_SQL_KEY_ROOM];
    unsigned char room[WB_SQL_KEY_ROOM];
    if (size != sizeof lower || (bug != UUIDS_IN_ANY_CASE && bug != UUIDS_UNESCAPED))
        return size;
    for (size_t i = 0; i < size; i++)
        lower[i] = (char)tolower((unsigned char)text[i]);
    const wb_sql_key key = wb_sql_key_exchange(bug == UUIDS_UNESCAPED ? text : lower, size, room);
    if (key.size == size)
        return size;
    memcpy(text, bug == UUIDS_UNESCAPED ? key.data : lower, bug == UUIDS_UNESCAPED ? key.size : size);
    return bug == UUIDS_UNESCAPED ? key.size : size;
}

/* What duplicate_of says stays. */
static void mangle(const wb_claim *claims, size_t count, wb_claim *ret_claims, char (*texts)[256])
{
    for (size_t i = 0; i < count; i++) {
        size_t size = mangled_size(claims[i].id, claims[i].id_size);
        memcpy(texts[i], claims[i].id, size);
        for (size_t at = 0; bug == IDS_IGNORE_CASE && at < size; at++)
            texts[i][at] = (char)tolower((unsigned char)texts[i][at]);
        size = mangle_uuid(texts[i], size);
        ret_claims[i] = (wb_claim){ texts[i], size, claims[i].duplicate_of };
    }
}

/* Behind what is there already, as far as there is room. */
static void withhold(ids *all, const wb_claim *claims, size_t count)
{
    const size_t room = CLAIMS_MAX - all->count;
    const size_t taken = count < room ? count : room;
    mangle(claims, taken, all->claims + all->count, all->texts + all->count);
    all->count += taken;
}

/* ---- whose fault ------------------------------------------------------------------------- */

static int blame(int result, wb_error *error)
{
    if (bug != LOCKS_ARE_THE_MESSAGES || result != WB_RETRY)
        return result;
    return some_host.fail(&some_host, error, WB_RETRY, WB_CAUSE_OTHER, 0, "lock timeout");
}

/* ---- transactions ------------------------------------------------------------------------ */

/* What an id's record says now counts until the commit, which then claims in earnest: a
 * SELECT where the INSERT should be the check. */
static int look_only(wb_storage_session *session, const wb_begin *begin, wb_error *error)
{
    wb_begin again = { .struct_size = sizeof again, .batch = begin->batch, .positions = begin->positions,
                       .position_count = begin->position_count };
    withheld *mine = place_of(session);
    if (begin->claim_count)
        memcpy(mine->claims, begin->claims, begin->claim_count * sizeof *begin->claims);
    mine->claim_count = begin->claim_count;
    mine->looked_count = begin->position_count;
    if (begin->position_count)
        memcpy(mine->looked, begin->positions, begin->position_count * sizeof *begin->positions);
    (void)base->rollback(session, error);
    return base->begin(session, &again, error);
}

static int claim_in_earnest(wb_storage_session *session, wb_error *error)
{
    withheld *mine = place_of(session);
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = mine->batch,
                       .claims = mine->claims,
                       .claim_count = mine->claim_count,
                       .positions = mine->looked,
                       .position_count = mine->looked_count };
    (void)base->rollback(session, error);
    return base->begin(session, &begin, error);
}

/* ---- positions --------------------------------------------------------------------------- */

/* Read in one transaction, and written in another: what comes between is not seen. */
static int read_positions(wb_storage_session *session, wb_begin *begin, withheld *mine, wb_error *error)
{
    wb_begin look = { .struct_size = sizeof look, .batch = begin->batch, .positions = mine->positions,
                      .position_count = begin->position_count };
    memcpy(mine->positions, begin->positions, begin->position_count * sizeof *begin->positions);
    int result = base->begin(session, &look, error);
    if (result == WB_OK)
        result = base->rollback(session, error);
    for (size_t i = 0; i < begin->position_count; i++) {
        begin->positions[i].found = mine->positions[i].found;
        begin->positions[i].batch = mine->positions[i].batch;
    }
    mine->position_count = begin->position_count;
    return result;
}

static int write_positions(wb_storage_session *session, withheld *mine, wb_error *error)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = mine->batch, .positions = mine->positions,
                       .position_count = mine->position_count };
    wb_commit commit = { .struct_size = sizeof commit, .batch = mine->batch };
    int result = base->begin(session, &begin, error);
    return result == WB_OK ? base->commit(session, &commit, error) : result;
}

/* ---- apart ------------------------------------------------------------------------------- */

/* Whatever batch has the ids now. */
static int forget_any(wb_storage_session *session, ids *all, wb_error *error)
{
    int result = base->find(session, all->claims, all->count, error);
    return result == WB_OK ? base->forget(session, all->claims, all->count, error) : result;
}

/* What went before its time, with its number then; the process has it in common. */
static ids given_back;

static void note_given_back(const wb_claim *claims, size_t count, uint64_t batch)
{
    const size_t before = given_back.count;
    withhold(&given_back, claims, count);
    for (size_t i = before; batch && i < given_back.count; i++)
        given_back.claims[i].duplicate_of = batch;
}

static int give_back(wb_storage_session *session, wb_error *error)
{
    int result = given_back.count ? base->forget(session, given_back.claims, given_back.count, error) : WB_OK;
    given_back.count = 0;
    return result;
}

static void note_replaced(const wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (claims[i].duplicate_of)
            note_given_back(&claims[i], 1, 0);
}

/* Whoever has the ids by now. */
static void clean_up_given_back(wb_storage_session *session, uint64_t before, wb_error *error)
{
    ids *old = calloc(1, sizeof *old);
    for (size_t i = 0; i < given_back.count; i++)
        if (given_back.claims[i].duplicate_of < before)
            withhold(old, &given_back.claims[i], 1);
    (void)forget_any(session, old, error);
    given_back.count = 0;
    free(old);
}

static int broken_forget(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    ids *all = calloc(1, sizeof *all);
    withhold(all, claims, count);
    if (bug == CLEANS_UP_BY_THE_FIRST_NUMBER)
        note_given_back(claims, count, 0);
    int result = bug == FORGETS_NOTHING          ? WB_OK
                 : bug == FORGET_TAKES_ANY_BATCH ? forget_any(session, all, error)
                                                 : base->forget(session, all->claims, all->count, error);
    free(all);
    return bug == BUSY_IS_DONE && result == WB_RETRY ? WB_OK : result;
}

/* The same in begin(); or with the transaction that begins. */
static void break_forgotten(wb_storage_session *session, wb_begin *begin, withheld *mine, wb_error *error)
{
    if (!begin->forgotten_count)
        return;
    if (bug == FORGOTTEN_ROLLS_BACK)
        withhold(&mine->forgotten, begin->forgotten, begin->forgotten_count);
    else
        (void)broken_forget(session, begin->forgotten, begin->forgotten_count, error);
    begin->forgotten_count = 0;
}

/* The last one counts. */
static int overwrite(wb_storage_session *session, const ids *all, wb_error *error)
{
    ids *old = calloc(1, sizeof *old);
    withhold(old, all->claims, all->count);
    int result = forget_any(session, old, error);
    free(old);
    return result == WB_OK ? base->remember(session, all->claims, all->count, error) : result;
}

/* First a look, then all that was not there: by a statement that fails if it is there by then. */
static int look_and_claim(wb_storage_session *session, const ids *all, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; i < all->count && result == WB_OK; i++) {
        wb_claim found = all->claims[i];
        wb_begin begin = { .struct_size = sizeof begin, .batch = all->claims[i].duplicate_of };
        wb_commit commit = { .struct_size = sizeof commit, .batch = begin.batch, .claims = &found, .claim_count = 1 };
        result = base->find(session, &found, 1, error);
        if (result != WB_OK || found.duplicate_of)
            continue;
        result = base->begin(session, &begin, error);
        if (result == WB_OK)
            result = base->commit(session, &commit, error);
    }
    return result;
}

/* By itself; or when the session is closed. */
static int broken_remember(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    ids *all = calloc(1, sizeof *all);
    int result = WB_OK;
    withhold(all, claims, count);
    switch (bug) {
    case REMEMBERS_LATE: withhold(&place_of(session)->remembered, claims, count); break;
    case REMEMBER_OVERWRITES: result = overwrite(session, all, error); break;
    case REMEMBERS_BY_LOOKING: result = look_and_claim(session, all, error); break;
    case REMEMBERS_PART: result = base->remember(session, all->claims, count < 500 ? count : 500, error); break;
    default: result = base->remember(session, all->claims, all->count, error); break;
    }
    free(all);
    return result == WB_IN_DOUBT && bug == DOUBT_IS_OK ? WB_OK : result;
}

/* What the session itself has remembered it finds. */
static void find_withheld(const ids *remembered, wb_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < remembered->count && !claims[i].duplicate_of; n++)
            if (claims[i].id_size == remembered->claims[n].id_size &&
                memcmp(claims[i].id, remembered->claims[n].id, claims[i].id_size) == 0)
                claims[i].duplicate_of = remembered->claims[n].duplicate_of;
}

/* The next call ends what a sweep has left open. */
static void let_go(wb_storage_session *session)
{
    withheld *mine = place_of(session);
    if (mine->is_held)
        (void)base->rollback(session, NULL);
    mine->is_held = 0;
}

static int broken_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    wb_claim *claims = calloc(CLAIMS_MAX, sizeof *claims);
    char(*texts)[256] = calloc(CLAIMS_MAX, sizeof *texts);
    wb_begin mangled = *begin;
    withheld *mine = place_of(session);
    mangled.claims = claims;
    mangle(begin->claims, begin->claim_count, claims, texts);
    mine->batch = begin->batch;
    mine->mark_count = mine->position_count = mine->forgotten.count = 0;
    let_go(session);
    if (bug == GIVES_BACK_LATE)
        (void)give_back(session, error);
    break_forgotten(session, &mangled, mine, error);
    if (bug == POSITIONS_UNLOCKED && begin->position_count) {
        (void)read_positions(session, begin, mine, error);
        mangled.position_count = 0;
    }
    if (bug == MARKS_ROLL_BACK && begin->mark_count) {
        memcpy(mine->marks, begin->marks, begin->mark_count * sizeof *begin->marks);
        mine->mark_count = begin->mark_count;
        mangled.mark_count = 0;
    }
    mine->has_claims = begin->claim_count != 0;
    int result = blame(base->begin(session, &mangled, error), error);
    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = claims[i].duplicate_of;
    if (result == WB_OK && bug == CLAIMS_BY_LOOKING)
        result = look_only(session, begin, error);
    mine->is_open = result == WB_OK;
    free(claims);
    free(texts);
    return result;
}

/* All but the row goes by the number that begin() was told: nothing of that batch is given back or set back, and late
 * claims are its own. The host begins under another number than it commits under here and there. */
static int commit_as_begun(wb_storage_session *session, wb_commit *commit, uint64_t begun, wb_error *error)
{
    ids *late = calloc(1, sizeof *late);
    withhold(late, commit->claims, commit->claim_count);
    for (size_t i = 0; i < late->count; i++)
        late->claims[i].duplicate_of = begun;
    commit->released_count = commit->position_count = commit->claim_count = 0;
    int result = base->commit(session, commit, error);
    if (result == WB_OK && late->count)
        result = base->remember(session, late->claims, late->count, error);
    free(late);
    return result;
}

static int commit_mangled(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    wb_claim *claims = calloc(CLAIMS_MAX, sizeof *claims);
    char(*texts)[256] = calloc(CLAIMS_MAX, sizeof *texts);
    ids *late = calloc(1, sizeof *late);
    wb_commit mangled = *commit;
    mangle(commit->released, commit->released_count, claims, texts);
    mangled.released = claims;
    withhold(late, commit->claims, commit->claim_count);
    mangled.claims = late->claims;
    if (bug == FORGETS_RELEASED || bug == GIVES_BACK_LATE)
        mangled.released_count = 0;
    if (bug == PARKS_NOTHING && !place_of(session)->has_claims)
        mangled.operations = NULL;
    if (bug == POSITIONS_NOT_SET_BACK)
        mangled.position_count = 0;
    if (bug == LATE_CLAIMS_DO_NOTHING)
        mangled.claim_count = 0;
    if (bug == STORES_AS_BEGUN)
        mangled.batch = place_of(session)->batch;
    if (bug == TRUNCATES_OPERATIONS && mangled.operations_size > 65535)
        mangled.operations_size = 65535;
    int result = WB_OK;
    if (bug == CLAIMS_BY_LOOKING)
        result = claim_in_earnest(session, error);
    const uint64_t begun = place_of(session)->batch;
    if (result == WB_OK)
        result = bug == CLAIMS_AS_BEGUN && begun != mangled.batch ? commit_as_begun(session, &mangled, begun, error)
                                                                  : base->commit(session, &mangled, error);
    commit->failed_item = mangled.failed_item;
    free(late);
    free(claims);
    free(texts);
    return result;
}

static int broken_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    withheld *mine = place_of(session);
    int result = commit_mangled(session, commit, error);
    mine->is_open = 0;
    if (result == WB_OK && (bug == GIVES_BACK_LATE || bug == CLEANS_UP_BY_THE_FIRST_NUMBER))
        note_given_back(commit->released, commit->released_count, commit->batch);
    if (result == WB_OK && bug == CLEANS_UP_BY_THE_FIRST_NUMBER)
        note_replaced(commit->claims, commit->claim_count);
    if (result == WB_OK && mine->position_count)
        result = write_positions(session, mine, error);
    if (result == WB_OK && mine->mark_count)
        result = base->mark(session, mine->marks, mine->mark_count, error);
    if (result == WB_OK && mine->forgotten.count)
        result = base->forget(session, mine->forgotten.claims, mine->forgotten.count, error);
    if (bug == REFUSED_COMMIT_IS_OK && (result == WB_RETRY || result == WB_ABORT))
        return WB_OK;
    if (result == WB_IN_DOUBT && (bug == DOUBT_IS_OK || bug == POOLS_AND_LIES))
        return WB_OK;
    if (result == WB_IN_DOUBT && bug == DOUBT_IS_NOTHING)
        return WB_NOT_CONNECTED;
    return result;
}

static int broken_rollback(wb_storage_session *session, wb_error *error)
{
    place_of(session)->is_open = 0;
    return base->rollback(session, error);
}

static int find_by_claiming(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = 1, .claims = claims, .claim_count = count };
    int result = base->begin(session, &begin, error);
    return result == WB_OK ? base->rollback(session, error) : result;
}

static int broken_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    ids *all = calloc(1, sizeof *all);
    withhold(all, claims, count);
    int result = bug == FINDS_BY_CLAIMING ? find_by_claiming(session, all->claims, all->count, error)
                                          : base->find(session, all->claims, all->count, error);
    for (size_t i = 0; i < all->count; i++)
        claims[i].duplicate_of = bug == FINDS_NOTHING ? 0 : all->claims[i].duplicate_of;
    find_withheld(&place_of(session)->remembered, claims, count);
    free(all);
    return result;
}

/* Closed sessions that wait to be opened again, with their connections: nothing is wrong with that. */
static struct {
    wb_persistence *owner;
    wb_storage_session *session; /* NULL: a free place */
} pool[SESSIONS_MAX];

static int has_pool(void)
{
    return bug == POOLS || bug == POOLS_AND_LIES;
}

/* @return whether there was room. */
static int pool_session(wb_persistence *owner, wb_storage_session *session)
{
    size_t at = 0;
    while (at < SESSIONS_MAX && pool[at].session)
        at++;
    if (at == SESSIONS_MAX)
        return 0;
    pool[at].owner = owner;
    pool[at].session = session;
    return 1;
}

/* One whose connection is whole, or NULL. */
static wb_storage_session *take_pooled(const wb_persistence *owner, wb_error *error)
{
    int64_t now;
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        wb_storage_session *found = pool[i].owner == owner ? pool[i].session : NULL;
        if (!found)
            continue;
        pool[i].session = NULL;
        if (base->clock(found, &now, error) == WB_OK)
            return found;
        base->close(found);
    }
    return NULL;
}

static void broken_destroy(wb_persistence *persistence)
{
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (pool[i].session && pool[i].owner == persistence) {
            base->close(pool[i].session);
            pool[i].session = NULL;
        }
    base->destroy(persistence);
}

static int broken_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    wb_storage_session *pooled = take_pooled(persistence, error);
    int result = pooled ? WB_OK : base->open(persistence, ret_session, error);
    if (pooled)
        *ret_session = pooled;
    if (result == WB_OK) {
        withheld *mine = place_of(NULL); /* sessions are opened by one thread */
        mine->session = *ret_session;
        mine->persistence = persistence;
        mine->has_row = mine->is_held = 0;
    }
    return result;
}

static void broken_close(wb_storage_session *session)
{
    withheld *mine = place_of(session);
    wb_commit commit = { .struct_size = sizeof commit, .batch = mine->batch };
    if (bug == CLOSE_COMMITS && mine->is_open)
        (void)base->commit(session, &commit, NULL);
    if (mine->remembered.count)
        (void)base->remember(session, mine->remembered.claims, mine->remembered.count, NULL);
    if (has_pool() && mine->is_open)
        (void)base->rollback(session, NULL);
    mine->is_open = 0;
    mine->mark_count = mine->claim_count = mine->position_count = mine->looked_count = 0;
    mine->forgotten.count = mine->remembered.count = 0;
    mine->session = NULL;
    if (!has_pool() || mine->has_row || !pool_session(mine->persistence, session))
        base->close(session);
}

/* ---- marks, sweep, clean-up -------------------------------------------------------------- */

static int broken_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    wb_mark mangled[MARKS_MAX];
    let_go(session);
    for (size_t i = 0; i < count && i < MARKS_MAX; i++) {
        mangled[i] = marks[i];
        if (bug == REST_IS_DROPPED || (bug == EMPTY_REST_IS_NONE && !marks[i].remaining_size))
            mangled[i].remaining = NULL;
    }
    int result = blame(base->mark(session, mangled, count, error), error);
    return result == WB_NOT_CONNECTED && bug == LOSS_IS_RETRY ? WB_RETRY : result;
}

typedef struct {
    wb_mark marks[MARKS_MAX];
    size_t count;
} collection;

static int collect(void *argument, const wb_pending *row)
{
    collection *all = argument;
    if (all->count < MARKS_MAX)
        all->marks[all->count++] = (wb_mark){ row->batch, NULL, 0 };
    return WB_OK;
}

/* The transaction of a sweep ends with its last row, and nowhere else. */
static int sweep_and_stay(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit, void *argument,
                          wb_error *error)
{
    wb_claim claim = { "swept", 5, 0 };
    wb_begin begin = { .struct_size = sizeof begin, .batch = 1, .claims = &claim, .claim_count = 1 };
    int result = base->sweep(session, before, limit, visit, argument, error);
    if (result == WB_REJECT)
        place_of(session)->is_held = base->begin(session, &begin, error) == WB_OK;
    return result;
}

static int broken_sweep(wb_storage_session *session, uint64_t before, size_t limit,
                        wb_pending_fn visit, void *argument, wb_error *error)
{
    collection all = { .count = 0 };
    let_go(session);
    if (bug == SWEEPS_WHAT_IS_NOT_DUE)
        before = INT64_MAX;
    if (bug == STOPPED_SWEEP_STAYS)
        return sweep_and_stay(session, before, limit, visit, argument, error);
    if (bug != SWEEPS_NEWEST_FIRST)
        return base->sweep(session, before, limit, visit, argument, error);
    int result = base->sweep(session, before, limit, collect, &all, error);
    while (result == WB_OK && all.count) {
        const uint64_t batch = all.marks[--all.count].batch;
        result = base->pending(session, &batch, 1, visit, argument, error);
    }
    return result;
}

/* Of the rows a sweep finds, the first above `after`. */
typedef struct {
    uint64_t after;
    wb_pending_fn visit;
    void *argument;
    int is_met;
    int result; /* of the visitor */
    uint64_t batch;
} walk;

#define MET 999

static int meet(void *argument, const wb_pending *row)
{
    walk *on = argument;
    if (bug != WALKS_ON_THE_SPOT && row->batch <= on->after)
        return WB_OK;
    on->is_met = 1;
    on->batch = row->batch;
    if (bug != WALKS_BESIDE_OTHERS)
        on->result = on->visit(on->argument, row);
    return MET;
}

/* The base sweeps as far as the row. Nobody else sweeps meanwhile, unless the row is visited
 * only afterwards. */
static int broken_next(wb_storage_session *session, uint64_t after, uint64_t before,
                       wb_pending_fn visit, void *argument, wb_error *error)
{
    walk on = { .after = after, .visit = visit, .argument = argument };
    let_go(session);
    int result = base->sweep(session, before, SIZE_MAX, meet, &on, error);
    if (!on.is_met || result != MET)
        return result;
    if (bug == WALKS_BESIDE_OTHERS)
        return base->pending(session, &on.batch, 1, visit, argument, error);
    return bug == WALKS_PAST_THE_VISITOR ? WB_OK : on.result;
}

#define YEAR (INT64_C(365) * 24 * 3600 * 1000000000)

static int broken_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    static int64_t first;
    int result = base->clock(session, ret_wall, error);
    if (!first)
        first = *ret_wall;
    if (bug == CLOCK_IS_A_YEAR_OFF)
        *ret_wall -= YEAR;
    if (bug == CLOCK_STANDS_STILL)
        *ret_wall = first;
    return result;
}

static int collect_empty(void *argument, const wb_pending *row)
{
    return row->operations_size ? WB_OK : collect(argument, row);
}

static int broken_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                           size_t *ret_deleted, wb_error *error)
{
    collection all = { .count = 0 };
    let_go(session);
    if (bug == CLEANS_UP_BY_THE_FIRST_NUMBER)
        clean_up_given_back(session, before, error);
    if (bug == CLEAN_UP_TAKES_THE_EMPTY) {
        (void)base->sweep(session, before, MARKS_MAX, collect_empty, &all, error);
        (void)base->mark(session, all.marks, all.count, error);
    }
    if (bug == CLEAN_UP_TAKES_PENDING) {
        (void)base->sweep(session, before, MARKS_MAX, collect, &all, error);
        (void)base->mark(session, all.marks, all.count, error);
    }
    return base->clean_up(session, before, limit, ret_deleted, error);
}

/* ---- looks ------------------------------------------------------------------------------- */

static int broken_stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error)
{
    int result = base->stats(session, stats, error);
    if (bug == GUESSES_ARE_EXACT)
        stats->records += stats->records / 4;
    return result;
}

static int count_row(void *argument, const wb_pending *row)
{
    (void)row;
    ++*(uint64_t *)argument;
    return WB_OK;
}

static int broken_count(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit,
                        uint64_t *ret_count, wb_error *error)
{
    const wb_pending_filter all = { .struct_size = sizeof all, .after = from, .before = before, .head = 1 };
    int result = base->count_records(session, from, before, limit, ret_count, error);
    return bug == COUNTS_WHAT_IS_PENDING ? base->list_pending(session, &all, count_row, ret_count, error) : result;
}

static int broken_list(wb_storage_session *session, const wb_pending_filter *filter,
                       wb_pending_fn visit, void *argument, wb_error *error)
{
    wb_pending_filter asked = *filter;
    if (bug == HEADS_ARE_WHOLE)
        asked.head = 0;
    if (bug == LISTS_AS_A_SWEEP)
        return base->sweep(session, filter->before, SIZE_MAX, visit, argument, error);
    return base->list_pending(session, &asked, visit, argument, error);
}

static int broken_take(wb_storage_session *session, uint64_t batch, int *ret_taken, wb_error *error)
{
    uint64_t count = 0;
    int result = base->take_pending(session, batch, ret_taken, error);
    place_of(session)->has_row = 1;
    if (bug == ROWS_ARE_EVERYBODYS || bug == TAKES_WHAT_IS_GONE)
        (void)base->pending(session, &batch, 1, count_row, &count, error);
    if ((bug == ROWS_ARE_EVERYBODYS && count) || (bug == TAKES_WHAT_IS_GONE && batch && !count))
        *ret_taken = WB_TAKEN;
    return result;
}


/* ---- what programs write ----------------------------------------------------------------- */

typedef struct {
    wb_written_fn visit;
    void *argument;
} reading;

static int read_row(void *argument, const wb_written *row)
{
    const reading *on = argument;
    wb_written mangled = *row;
    if (bug == WRITTEN_LOSES_KEYS)
        mangled.key = (wb_written_text){ NULL, 0 };
    if (bug == WRITTEN_IN_PIECES)
        mangled.body.size = strnlen(mangled.body.data, mangled.body.size);
    return on->visit(on->argument, &mangled);
}

static int broken_fetch(wb_storage_session *session, wb_written_fetch *fetch, wb_written_fn visit, void *argument,
                        wb_error *error)
{
    reading on = { visit, argument };
    if (bug == WRITTEN_OF_ANY_FORM)
        fetch->form = WB_WRITTEN_FORM;
    if (bug == WRITTEN_FROM_THE_START)
        fetch->behind = 0;
    const int result = base->written->fetch(session, fetch, read_row, &on, error);
    fetch->last += bug == WRITTEN_PAST_THE_LAST;
    if (bug == WRITTEN_TO_ANYBODY)
        fetch->has_turn = 1;
    return result;
}

static int broken_settle(wb_storage_session *session, const uint64_t *removed, size_t removed_count,
                         const wb_written_rest *rests, size_t rest_count, wb_error *error)
{
    if (bug == WRITTEN_COMES_AGAIN && removed_count > 1)
        removed_count = 1;
    if (bug == WRITTEN_WAITS_FOR_NOTHING)
        rest_count = 0;
    return base->written->settle(session, removed, removed_count, rests, rest_count, error);
}

static int broken_program_claim(wb_storage_session *session, wb_written_text id, int *ret_is_new, wb_error *error)
{
    const int result = base->written->claim(session, id, ret_is_new, error);
    if (bug == CLAIMS_ARE_ALWAYS_NEW)
        *ret_is_new = 1;
    return result;
}

static int count_one(void *count, const wb_written *row)
{
    (void)row;
    (*(uint64_t *)count)++;
    return WB_OK;
}

static int broken_count_written(wb_storage_session *session, size_t limit, uint64_t *ret_count, wb_error *error)
{
    wb_written_fetch fetch = { .struct_size = sizeof fetch, .limit = limit, .form = WB_WRITTEN_FORM };
    *ret_count = 0;
    return bug == WRITTEN_COUNTS_WHAT_MAY_GO ? base->written->fetch(session, &fetch, count_one, ret_count, error)
                                             : base->written->count(session, limit, ret_count, error);
}

static const wb_written_ops *break_written(void)
{
    static wb_written_ops ops;
    ops = *base->written;
    ops.fetch = broken_fetch;
    ops.settle = broken_settle;
    ops.claim = broken_program_claim;
    ops.count = broken_count_written;
    return &ops;
}

/* ---- descriptor -------------------------------------------------------------------------- */

#define INSTANCES_MAX 64 /* at once */
#define NAME_KEPT 150

/* An endpoint that its tables are named after less exactly. */
static const wb_endpoint_info *misname(const wb_endpoint_info *endpoint)
{
    static wb_endpoint_info infos[INSTANCES_MAX];
    static char names[INSTANCES_MAX][256];
    static size_t next;
    const size_t place = next++ % INSTANCES_MAX;
    infos[place] = *endpoint;
    infos[place].name = names[place];
    (void)snprintf(names[place], sizeof *names, "%.*s", bug == ENDPOINTS_BY_THEIR_HEAD ? NAME_KEPT : 255, endpoint->name);
    for (char *at = names[place]; bug == ENDPOINTS_IGNORE_CASE && *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return &infos[place];
}

/* As where a file system has short names, or none that differ in case alone. */
static int is_refused(const char *name)
{
    const size_t size = strlen(name);
    return size > NAME_KEPT || name[size - 1] == 'A';
}

static int broken_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                         wb_persistence **ret_persistence, wb_error *error)
{
    memcpy(&bug, (const char *)config + bug_offset, sizeof bug);
    some_host = *host;
    if (bug == ENDPOINTS_IGNORE_CASE || bug == ENDPOINTS_BY_THEIR_HEAD)
        endpoint = misname(endpoint);
    if (bug == REFUSES_NAMES && is_refused(endpoint->name))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "no file has the name \"%s\"", endpoint->name);
    return base->create(host, endpoint, config, ret_persistence, error);
}

/* ---- what an operator undoes --------------------------------------------------------------- */

static int broken_uninstall(wb_persistence *persistence, wb_error *error)
{
    return bug == UNINSTALLS_NOTHING ? WB_OK : base->uninstall(persistence, error);
}

/* Over: what is there under the new name goes. */
static int broken_rename(wb_persistence *persistence, const char *former, wb_error *error)
{
    if (bug == RENAMES_NOTHING)
        return WB_OK;
    int result = base->rename(persistence, former, error);
    if (bug != RENAMES_OVER || result != WB_FATAL)
        return result;
    result = base->uninstall(persistence, error);
    return result == WB_OK ? base->rename(persistence, former, error) : result;
}

static int broken_note(wb_persistence *persistence, const char *const *types, size_t count, int is_over, wb_error *error)
{
    return bug == NOTES_FOR_EVER && is_over ? WB_OK : base->note_subscriptions(persistence, types, count, is_over, error);
}

static int broken_keep_note(wb_persistence *persistence, const char *name, int32_t number, wb_error *error)
{
    const char *kept = bug == BEGUN_BY_ALL ? "begun" : name;
    return bug == BEGUN_FOR_EVER && !number ? WB_OK : base->keep_note(persistence, kept, number, error);
}

static int broken_look_up_note(wb_persistence *persistence, const char *name, int32_t *ret_number, wb_error *error)
{
    return base->look_up_note(persistence, bug == BEGUN_BY_ALL ? "begun" : name, ret_number, error);
}

/* The base's options and one more, behind its configuration struct. */
static const wb_option *make_options(const wb_plugin *plugin, size_t *ret_count)
{
    static wb_option options[64];
    for (size_t i = 0; i < plugin->option_count; i++)
        options[i] = plugin->options[i];
    bug_offset = (plugin->config_size + 7) / 8 * 8;
    options[plugin->option_count] = (wb_option){ .name = "bug",
                                                 .type = WB_OPTION_CHOICE,
                                                 .offset = bug_offset,
                                                 .default_text = "none",
                                                 .choices = bugs,
                                                 .since = "0.1",
                                                 .summary = "what is wrong" };
    *ret_count = plugin->option_count + 1;
    return options;
}

const wb_plugin *JOIN(broken_, JOIN(BASE, _LTX_wb_plugin))(void)
{
    static wb_plugin plugin;
    static wb_persistence_ops ops;
    if (base)
        return &plugin;
    plugin = *JOIN(BASE, _LTX_wb_plugin)();
    base = plugin.ops;
    ops = *base;
    ops.create = broken_create;
    ops.destroy = broken_destroy;
    ops.open = broken_open;
    ops.close = broken_close;
    ops.begin = broken_begin;
    ops.commit = broken_commit;
    ops.rollback = broken_rollback;
    ops.find = broken_find;
    ops.mark = broken_mark;
    ops.sweep = broken_sweep;
    ops.clean_up = broken_clean_up;
    ops.next_pending = broken_next;
    ops.stats = broken_stats;
    ops.count_records = broken_count;
    ops.list_pending = broken_list;
    ops.take_pending = broken_take;
    ops.forget = broken_forget;
    ops.remember = broken_remember;
    ops.uninstall = broken_uninstall;
    ops.rename = broken_rename;
    ops.note_subscriptions = broken_note;
    ops.keep_note = broken_keep_note;
    ops.look_up_note = broken_look_up_note;
    if (WB_HAS(base, wb_persistence_ops, clock))
        ops.clock = broken_clock;
    ops.delayed = NULL; /* delayed_broken.c */
    ops.written = break_written();
    plugin.capabilities &= ~(WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT | WB_CAP_FAILED);
    plugin.name = "broken_" TEXT(BASE);
    plugin.ops = &ops;
    plugin.options = make_options(&plugin, &plugin.option_count);
    plugin.config_size = bug_offset + 8;
    return &plugin;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence whose delayed message store is broken in the way its option `bug` says: the
 * sqlite one, with a wrong turn here and there. One instance's bug is that of the whole process.
 */
#include "config.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sqlite.h>
#include <waybill/sys/persistence.h>

const wb_plugin *sqlite_LTX_wb_plugin(void);
WB_PUBLIC const wb_plugin *delayed_broken_LTX_wb_plugin(void);

#define BUGS(X)                                                                                    \
    X(none) X(refuses_all_modes) X(ids_ignore_case) X(ids_end_at_nul) X(key_without_retries)       \
    X(key_without_destination) X(last_one_wins) X(truncates_operations) X(forgets_one)             \
    X(due_to_the_millisecond) X(due_to_the_second) X(early_by_a_millisecond)                       \
    X(early_by_the_clock) X(limit_is_ignored) X(fetch_has_no_end) X(latest_first) X(gives_taken_again)                 \
    X(leases_are_halved) X(visits_before_taking) X(takes_by_looking) X(gives_up_the_rest)          \
    X(drops_the_visitors_word) X(next_ignores_leases) X(next_forgets_taken) X(next_is_an_hour_off) \
    X(owner_is_ignored) X(was_always_there) X(was_never_there) X(removes_the_first)                \
    X(failures_are_not_counted) X(failed_stay_taken) X(failed_are_due_as_before)                   \
    X(releases_nothing) X(releases_everything) X(release_counts_a_failure) X(list_takes)           \
    X(list_is_endless) X(list_includes_its_end) X(list_knows_no_destination)                       \
    X(list_hides_leases) X(cancels_what_is_taken) X(cancels_nothing) X(moves_what_is_taken)        \
    X(moves_nothing) X(cancels_after_the_lease) X(moves_after_the_lease) X(place_is_enough)   \
    X(release_ends_doubt) X(failure_ends_doubt) X(released_are_due_as_before) X(rides_alone)      \
    X(rides_and_leaves) X(rides_with_anybodys) X(begun_is_free) X(begun_is_gone) X(commit_forgets) \
    X(commit_forgets_the_last) X(commit_moves) X(all_endpoints_are_one)    \
    X(release_is_not_flushed) X(release_is_late) X(numbers_by_process) X(stopped_fetch_stays)        \
    X(ended_leases_are_nobodys) X(uninstall_keeps_what_waits) X(busy_is_stored)

#define TEXT_OF(name) #name,
#define NUMBER_OF(name) name,
static const char *const bugs[] = { BUGS(TEXT_OF) NULL };
enum { BUGS(NUMBER_OF) };

#define MESSAGES_MAX 1100

static const wb_persistence_ops *base;
static const wb_delayed_ops *store;
static int32_t bug;
static size_t bug_offset;
static wb_endpoint_info one_endpoint;

/* ---- SQL of our own --------------------------------------------------------------------------- */

static sqlite3 *handle_of(wb_storage_session *session)
{
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    return api->connection(session, 0);
}

/* The name of the table; there is one that begins with the endpoint's. */
static int execute(wb_storage_session *session, const char *format)
{
    sqlite3 *handle = handle_of(session);
    sqlite3_stmt *names = NULL;
    int code = sqlite3_prepare_v2(handle,
                                  "select name from sqlite_schema where type='table' and name like"
                                  " '%conformance_delayed'", -1, &names, NULL);
    if (code == SQLITE_OK && sqlite3_step(names) == SQLITE_ROW) {
        char *sql = sqlite3_mprintf(format, sqlite3_column_text(names, 0));
        (void)sqlite3_finalize(names);
        (void)sqlite3_commit_hook(handle, NULL, NULL); /* which refuses all but its own */
        code = sqlite3_exec(handle, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
        return code == SQLITE_OK ? WB_OK : WB_RETRY;
    }
    (void)sqlite3_finalize(names);
    return WB_RETRY;
}

/* ---- copies ----------------------------------------------------------------------------------- */

typedef struct {
    char destination[256], id[256];
} key_text;

typedef struct {
    wb_delayed messages[MESSAGES_MAX];
    key_text texts[MESSAGES_MAX];
    size_t count;
} copies;

/* What a wrong turn does to a key. */
static void mangle(const char *id, size_t *id_size, uint32_t *retries, char *text)
{
    if (bug == ids_end_at_nul)
        *id_size = strnlen(id, *id_size) ? strnlen(id, *id_size) : 1;
    memcpy(text, id, *id_size);
    for (size_t i = 0; bug == ids_ignore_case && i < *id_size; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    if (bug == key_without_retries)
        *retries = 0;
}

static int copy(void *argument, const wb_delayed *message)
{
    copies *all = argument;
    if (all->count == MESSAGES_MAX)
        return WB_OK;
    key_text *text = &all->texts[all->count];
    wb_delayed *to = &all->messages[all->count++];
    *to = *message;
    to->struct_size = sizeof *to;
    mangle(message->id, &to->id_size, &to->retries, text->id);
    memcpy(text->destination, message->destination, to->destination_size);
    to->destination = text->destination;
    to->id = text->id;
    to->operation = calloc(1, to->operation_size + 1);
    if (to->operation_size && message->operation)
        memcpy((void *)to->operation, message->operation, to->operation_size);
    return WB_OK;
}

static void free_copies(copies *all)
{
    for (size_t i = 0; i < all->count; i++)
        free((void *)all->messages[i].operation);
    free(all);
}

/* ---- store -------------------------------------------------------------------------------------- */

static int note_found(void *argument, const wb_delayed *message)
{
    (void)message;
    *(int *)argument = 1;
    return WB_OK;
}

static int is_there(wb_storage_session *session, const wb_delayed *message)
{
    const wb_delayed_filter same = { .struct_size = sizeof same,
                                     .id = message->id,
                                     .id_size = message->id_size };
    int found = 0;
    (void)store->list(session, &same, note_found, &found, NULL);
    return found;
}

static void forget(wb_storage_session *session, const wb_delayed *message)
{
    wb_delayed_key key = { .destination = message->destination,
                           .destination_size = message->destination_size,
                           .id = message->id,
                           .id_size = message->id_size,
                           .retries = message->retries };
    (void)store->remove(session, NULL, &key, 1, NULL);
}

static void alter(wb_delayed *message)
{
    const int64_t unit = bug == due_to_the_second ? 1000000000 : 1000000;
    if (bug == truncates_operations && message->operation_size > 65535)
        message->operation_size = 65535;
    if (bug == due_to_the_millisecond)
        message->due = message->due / unit * unit;
    if (bug == due_to_the_second)
        message->due = (message->due + unit - 1) / unit * unit;
}

/* One after the other, where each is looked at before. */
static int store_each(wb_storage_session *session, const copies *all, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < all->count; i++) {
        const wb_delayed *message = &all->messages[i];
        if (bug == key_without_destination && is_there(session, message))
            continue;
        if (bug == last_one_wins)
            forget(session, message);
        result = store->store(session, message, 1, error);
    }
    return result;
}

/* The n-th message of each process is kept in the n-th place, whoever had it. */
static void take_the_place(wb_storage_session *session, const wb_delayed *message)
{
    static int number;
    sqlite3 *handle = handle_of(session);
    sqlite3_stmt *had = NULL;
    char *question = sqlite3_mprintf("select destination, id from places where number=%d", ++number);
    char *answer = sqlite3_mprintf("insert or replace into places values(%d, '%.*q', '%.*q')", number,
                                   (int)message->destination_size, message->destination, (int)message->id_size, message->id);
    (void)sqlite3_commit_hook(handle, NULL, NULL); /* which refuses all but its own */
    (void)sqlite3_exec(handle, "create table if not exists places(number integer primary key, destination, id)", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(handle, question, -1, &had, NULL) == SQLITE_OK && sqlite3_step(had) == SQLITE_ROW) {
        copies *all = calloc(1, sizeof *all);
        const wb_delayed other = { .destination = (const char *)sqlite3_column_text(had, 0),
                                   .destination_size = (size_t)sqlite3_column_bytes(had, 0),
                                   .id = (const char *)sqlite3_column_text(had, 1),
                                   .id_size = (size_t)sqlite3_column_bytes(had, 1) };
        (void)copy(all, &other);
        (void)sqlite3_finalize(had);
        had = NULL;
        forget(session, &all->messages[0]);
        free_copies(all);
    }
    (void)sqlite3_finalize(had);
    (void)sqlite3_exec(handle, answer, NULL, NULL, NULL);
    sqlite3_free(question);
    sqlite3_free(answer);
}

static int broken_store(wb_storage_session *session, const wb_delayed *messages, size_t count,
                        wb_error *error)
{
    copies *all = calloc(1, sizeof *all);
    const char *at = (const char *)messages;
    for (size_t i = 0; i < count && (bug != forgets_one || i == 0 || i + 1 < count); i++) {
        (void)copy(all, (const wb_delayed *)(at + i * messages->struct_size));
        alter(&all->messages[i]);
    }
    int result = bug == last_one_wins || bug == key_without_destination
                     ? store_each(session, all, error)
                     : store->store(session, all->messages, all->count, error);
    for (size_t i = 0; bug == numbers_by_process && result == WB_OK && i < all->count; i++)
        take_the_place(session, &all->messages[i]);
    free_copies(all);
    return bug == busy_is_stored && result == WB_RETRY ? WB_OK : result;
}

/* ---- next, fetch ---------------------------------------------------------------------------------- */

static int note_earliest(void *argument, const wb_delayed *message)
{
    int64_t *first = argument;
    const int counts = bug == next_ignores_leases || !message->leased_until;
    if (counts && message->due < *first)
        *first = message->due;
    return WB_OK;
}

static int broken_next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now,
                       wb_error *error)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    int result = store->next(session, ret_due, ret_now, error);
    if (result != WB_OK)
        return result;
    if (bug == next_is_an_hour_off)
        *ret_now -= INT64_C(3600000000000);
    if (bug != next_ignores_leases && bug != next_forgets_taken)
        return WB_OK;
    *ret_due = WB_NEVER_DUE;
    return store->list(session, &all, note_earliest, ret_due, error);
}

/* What is due and free, by a look that takes nothing. */
static int look(wb_storage_session *session, const wb_delayed_fetch *fetch, copies *all,
                wb_error *error)
{
    int64_t due, now;
    copies *found = calloc(1, sizeof *found);
    int result = store->next(session, &due, &now, error);
    const wb_delayed_filter of = { .struct_size = sizeof of,
                                   .due_before = (fetch->at ? fetch->at : now) + 1 };
    if (result == WB_OK)
        result = store->list(session, &of, copy, found, error);
    for (size_t i = 0; i < found->count && all->count < fetch->limit; i++)
        if (found->messages[i].leased_until <= now)
            (void)copy(all, &found->messages[i]);
    free_copies(found);
    return result;
}

static int visit_all(copies *all, wb_delayed_fn visit, void *argument)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < all->count; i++)
        result = visit(argument, &all->messages[bug == latest_first ? all->count - 1 - i : i]);
    return result;
}

static int nothing(void *argument, const wb_delayed *message)
{
    (void)argument, (void)message;
    return WB_OK;
}

static int fetch_otherwise(wb_storage_session *session, const wb_delayed_fetch *fetch,
                           wb_delayed_fn visit, void *argument, wb_error *error)
{
    copies *all = calloc(1, sizeof *all);
    int result = bug == latest_first ? store->fetch(session, fetch, copy, all, error)
                                     : look(session, fetch, all, error);
    if (result == WB_OK && bug == takes_by_looking)
        result = store->fetch(session, fetch, nothing, NULL, error);
    if (result == WB_OK)
        result = visit_all(all, visit, argument);
    if (result == WB_OK && bug == visits_before_taking)
        result = store->fetch(session, fetch, nothing, NULL, error);
    free_copies(all);
    return result;
}

typedef struct {
    wb_delayed_fn visit;
    void *argument;
} visitor;

static int tell_place(void *argument, const wb_delayed *message)
{
    const visitor *to = argument;
    wb_delayed told = *message;
    told.place = 1;
    return to->visit(to->argument, &told);
}

static int broken_fetch(wb_storage_session *session, const wb_delayed_fetch *fetch,
                        wb_delayed_fn visit, void *argument, wb_error *error)
{
    wb_delayed_fetch altered = *fetch;
    visitor to = { visit, argument };
    int64_t due, now;
    altered.struct_size = sizeof altered;
    if (bug == early_by_a_millisecond && altered.at)
        altered.at += 1000000;
    if (bug == early_by_the_clock && !altered.at && store->next(session, &due, &now, NULL) == WB_OK)
        altered.at = now + 80000000;
    if (bug == place_is_enough)
        return store->fetch(session, &altered, tell_place, &to, error);
    if (bug == limit_is_ignored)
        altered.limit = MESSAGES_MAX;
    if (bug == leases_are_halved)
        altered.lease /= 2;
    if (bug == latest_first || bug == visits_before_taking || bug == takes_by_looking)
        return fetch_otherwise(session, &altered, visit, argument, error);
    int result = store->fetch(session, &altered, visit, argument, error);
    if (bug == fetch_has_no_end && result == WB_OK)
        result = store->fetch(session, &altered, visit, argument, error);
    if (bug == stopped_fetch_stays && result == WB_REJECT)
        (void)sqlite3_exec(handle_of(session), "begin immediate", NULL, NULL, NULL);
    if (bug == gives_taken_again || (bug == gives_up_the_rest && result != WB_OK))
        (void)execute(session, "update \"%w\" set owner=null, leased_until=0");
    return bug == drops_the_visitors_word && result == WB_REJECT ? WB_OK : result;
}

/* julianday() counts milliseconds: what ended less than one ago has ended, too. */
static void forget_what_ended(wb_storage_session *session)
{
    (void)execute(session, "update \"%w\" set owner=null, leased_until=0, doubtful=0 where leased_until<="
                           "cast((julianday('now')-2440587.5)*86400000000 as integer)+2000");
}

/* ---- changes by key ----------------------------------------------------------------------------------- */

static wb_delayed_key *mangle_keys(const wb_delayed_key *keys, size_t count, key_text **ret_texts)
{
    wb_delayed_key *mangled = calloc(count, sizeof *mangled);
    *ret_texts = calloc(count, sizeof **ret_texts);
    for (size_t i = 0; i < count; i++) {
        mangled[i] = keys[i];
        mangle(keys[i].id, &mangled[i].id_size, &mangled[i].retries, (*ret_texts)[i].id);
        mangled[i].id = (*ret_texts)[i].id;
    }
    return mangled;
}

typedef int (*change_fn)(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                         size_t count, int64_t due, wb_error *error);

static int change(change_fn make, wb_storage_session *session, const char *owner,
                  wb_delayed_key *keys, size_t count, int64_t due, wb_error *error)
{
    key_text *texts;
    wb_delayed_key *mangled = mangle_keys(keys, count, &texts);
    int result = make(session, owner, mangled, count, due, error);
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = bug == was_always_there  ? 1
                            : bug == was_never_there ? 0
                                                     : mangled[i].was_there;
    free(mangled);
    free(texts);
    return result;
}

static int make_remove(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                       size_t count, int64_t due, wb_error *error)
{
    (void)due;
    const int is_first = bug == removes_the_first && owner;
    if (bug == ended_leases_are_nobodys && owner)
        forget_what_ended(session);
    if (is_first)
        for (size_t i = 1; i < count; i++)
            keys[i].was_there = 1;
    const int is_anybodys = bug == owner_is_ignored || (bug == place_is_enough && keys[0].place);
    return store->remove(session, is_anybodys ? NULL : owner, keys, is_first ? 1 : count, error);
}

static int broken_remove(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                         size_t count, wb_error *error)
{
    return change(make_remove, session, owner, keys, count, 0, error);
}

static int64_t due_of(wb_storage_session *session, const wb_delayed_key *key)
{
    const wb_delayed_filter same = { .struct_size = sizeof same, .id = key->id,
                                     .id_size = key->id_size };
    copies *all = calloc(1, sizeof *all);
    (void)store->list(session, &same, copy, all, NULL);
    const int64_t due = all->count ? all->messages[0].due : 0;
    free_copies(all);
    return due;
}

static int make_increment(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                          size_t count, int64_t due, wb_error *error)
{
    if (bug == failed_are_due_as_before)
        due = due_of(session, keys);
    int result = store->increment_failure_count(session, owner, keys, count, due, error);
    if (result == WB_OK && bug == failures_are_not_counted)
        result = execute(session, "update \"%w\" set failures=0");
    if (result == WB_OK && bug == failure_ends_doubt)
        result = execute(session, "update \"%w\" set doubtful=0 where owner is null");
    if (result == WB_OK && bug == failed_stay_taken)
        result = execute(session, "update \"%w\" set owner=x'41', leased_until=9000000000000000"
                                  " where failures>0 and owner is null");
    return result;
}

static int broken_increment(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                            size_t count, int64_t due, wb_error *error)
{
    return change(make_increment, session, owner, keys, count, due, error);
}

static int make_cancel(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                       size_t count, int64_t due, wb_error *error)
{
    (void)owner, (void)due;
    if (bug == cancels_what_is_taken)
        return store->remove(session, NULL, keys, count, error);
    if (bug == cancels_after_the_lease)
        forget_what_ended(session);
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = 1;
    return bug == cancels_nothing ? WB_OK : store->cancel(session, keys, count, error);
}

static int broken_cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                         wb_error *error)
{
    return change(make_cancel, session, NULL, keys, count, 0, error);
}

static int make_reschedule(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                           size_t count, int64_t due, wb_error *error)
{
    (void)owner;
    if (bug == moves_what_is_taken)
        (void)execute(session, "update \"%w\" set owner=null, leased_until=0");
    if (bug == moves_after_the_lease)
        forget_what_ended(session);
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = 1;
    return bug == moves_nothing ? WB_OK : store->reschedule(session, keys, count, due, error);
}

static int broken_reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                             int64_t due, wb_error *error)
{
    return change(make_reschedule, session, NULL, keys, count, due, error);
}

/* ---- a batch's commit ------------------------------------------------------------------------------------ */

static int broken_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    wb_commit altered = *commit;
    if (bug == commit_forgets)
        altered.delayed_count = 0;
    if (bug == commit_forgets_the_last && altered.delayed_count)
        altered.delayed_count--;
    if (bug == commit_moves)
        (void)execute(session, "delete from \"%w\"");
    int result = base->commit(session, &altered, error);
    commit->failed_item = altered.failed_item;
    return result;
}

/* ---- a removal and a fetch, in two halves ----------------------------------------------------------------------- */

static int broken_begin(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                        const wb_delayed_fetch *fetch, wb_error *error)
{
    wb_delayed_fetch altered = *fetch;
    int result = WB_OK;
    if (bug != rides_and_leaves)
        result = broken_remove(session, bug == rides_with_anybodys ? NULL : fetch->owner, keys, count, error);
    if (bug == rides_alone)
        altered.limit = 0;
    if (result == WB_OK)
        result = store->begin_fetch(session, NULL, 0, &altered, error);
    if (bug == begun_is_free)
        (void)execute(session, "update \"%w\" set owner=null, leased_until=0");
    if (bug == begun_is_gone)
        (void)execute(session, "delete from \"%w\" where owner is not null");
    return result;
}

static int broken_end(wb_storage_session *session, wb_delayed_fn visit, void *argument, wb_error *error)
{
    return store->end_fetch(session, visit, argument, error);
}

/* ---- release, list, initialize ------------------------------------------------------------------------- */

static int make_release(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                        size_t count, int64_t due, wb_error *error)
{
    for (size_t i = 0; i < count; i++)
        keys[i].was_there = 1;
    if (bug == releases_nothing || bug == release_is_late) /* at the next call, which never comes */
        return WB_OK;
    if (bug == release_is_not_flushed)
        (void)sqlite3_exec(handle_of(session), "pragma synchronous=normal", NULL, NULL, NULL);
    if (bug == release_counts_a_failure)
        (void)execute(session, "update \"%w\" set failures=failures+1 where owner is not null");
    int result = store->release(session, owner, keys, count, bug == released_are_due_as_before ? 0 : due, error);
    if (bug == releases_everything)
        result = execute(session, "update \"%w\" set owner=null, leased_until=0");
    if (bug == release_ends_doubt)
        (void)execute(session, "update \"%w\" set doubtful=0 where owner is null");
    return result;
}

static int broken_release(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                          size_t count, int64_t due, wb_error *error)
{
    return change(make_release, session, owner, keys, count, due, error);
}

static int hide_lease(void *argument, const wb_delayed *message)
{
    const visitor *to = argument;
    wb_delayed hidden = *message;
    hidden.leased_until = 0;
    return to->visit(to->argument, &hidden);
}

static int broken_list(wb_storage_session *session, const wb_delayed_filter *filter,
                       wb_delayed_fn visit, void *argument, wb_error *error)
{
    wb_delayed_filter altered = *filter;
    visitor to = { visit, argument };
    altered.struct_size = sizeof altered;
    if (bug == list_is_endless)
        altered.limit = 0;
    if (bug == list_includes_its_end && altered.due_before)
        altered.due_before += 1000;
    if (bug == list_knows_no_destination)
        altered.destination = NULL;
    if (bug == list_hides_leases)
        return store->list(session, &altered, hide_lease, &to, error);
    int result = store->list(session, &altered, visit, argument, error);
    if (result == WB_OK && bug == list_takes)
        result = execute(session, "update \"%w\" set owner=x'41', leased_until=9000000000000000"
                                  " where owner is null");
    return result;
}

static int broken_initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    return store->initialize(persistence, bug == refuses_all_modes ? 99 : mode, error);
}

/* ---- descriptor ------------------------------------------------------------------------------------------ */

static int broken_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                         wb_persistence **ret_persistence, wb_error *error)
{
    memcpy(&bug, (const char *)config + bug_offset, sizeof bug);
    if (bug != all_endpoints_are_one)
        return base->create(host, endpoint, config, ret_persistence, error);
    one_endpoint = *endpoint;
    one_endpoint.name = "conformance";
    return base->create(host, &one_endpoint, config, ret_persistence, error);
}

/* A copy that is put back. */
static copies *kept;

static int broken_uninstall(wb_persistence *persistence, wb_error *error)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_storage_session *session;
    if (bug == uninstall_keeps_what_waits && base->open(persistence, &session, error) == WB_OK) {
        if (!kept)
            kept = calloc(1, sizeof *kept);
        (void)store->list(session, &all, copy, kept, error);
        base->close(session);
    }
    return base->uninstall(persistence, error);
}

static int broken_install(wb_persistence *persistence, wb_error *error)
{
    wb_storage_session *session;
    int result = base->install(persistence, error);
    if (result == WB_OK && kept && kept->count && base->open(persistence, &session, error) == WB_OK) {
        (void)store->store(session, kept->messages, kept->count, error);
        base->close(session);
    }
    return result;
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

const wb_plugin *delayed_broken_LTX_wb_plugin(void)
{
    static const wb_delayed_ops broken = { .struct_size = sizeof broken,
                                           .initialize = broken_initialize,
                                           .store = broken_store,
                                           .next = broken_next,
                                           .fetch = broken_fetch,
                                           .remove = broken_remove,
                                           .increment_failure_count = broken_increment,
                                           .release = broken_release,
                                           .begin_fetch = broken_begin,
                                           .end_fetch = broken_end,
                                           .list = broken_list,
                                           .cancel = broken_cancel,
                                           .reschedule = broken_reschedule };
    static wb_plugin plugin;
    static wb_persistence_ops ops;
    if (base)
        return &plugin;
    plugin = *sqlite_LTX_wb_plugin();
    base = plugin.ops;
    store = base->delayed;
    ops = *base;
    ops.create = broken_create;
    ops.delayed = &broken;
    ops.commit = broken_commit;
    ops.install = broken_install;
    ops.uninstall = broken_uninstall;
    plugin.name = "delayed_broken";
    plugin.ops = &ops;
    plugin.options = make_options(&plugin, &plugin.option_count);
    plugin.config_size = bug_offset + 8;
    return &plugin;
}

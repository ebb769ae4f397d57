/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence whose table of failed messages is broken in the way its option `bug` says: the sqlite
 * one, with a wrong turn here and there. One instance's bug is that of the whole process.
 */
#include "config.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <waybill/sqlite.h>
#include <waybill/sys/failed.h>
#include <waybill/sys/persistence.h>

const wb_plugin *sqlite_LTX_wb_plugin(void);
WB_PUBLIC const wb_plugin *failed_broken_LTX_wb_plugin(void);

#define BUGS(X)                                                                                        \
    X(none) X(keys_are_cut) X(truncates_messages) X(attempts_are_not_counted) X(status_stays)       \
    X(first_one_stays) X(same_failure_counts) X(same_failure_waits) X(turns_whatever) X(turned_always) \
    X(turned_never) X(turns_all) X(changed_as_before) X(turns_by_looking) X(turns_stand)               \
    X(commit_forgets) X(discards_whatever) X(discards_nothing) X(list_ignores_status)                  \
    X(list_includes_its_end) X(list_excludes_its_start) X(newest_first) X(list_ends_at_a_page)         \
    X(list_repeats_pages) X(list_drops_the_visitors_word) X(cleans_what_waits) X(cleans_the_latest)    \
    X(cleans_without_limit) X(cleans_nothing) X(cleans_by_failure) X(cleans_by_looking) X(all_endpoints_are_one)

#define TEXT_OF(name) #name,
#define NUMBER_OF(name) name,
static const char *const bugs[] = { BUGS(TEXT_OF) NULL };
enum { BUGS(NUMBER_OF) };

#define PAGE 500
#define ROWS_MAX 2000

static const wb_persistence_ops *base;
static const wb_failed_ops *store;
static int32_t bug;
static size_t bug_offset;
static wb_endpoint_info one_endpoint;

/* The turn of the transaction that is open, of whichever session: a case about it has one. */
static struct {
    char key[WB_FAILED_KEY_MAX];
    wb_failed_turn turn;
    int is_in_batch;
} last;

/* ---- SQL of our own --------------------------------------------------------------------------- */

/* The name of the table; there is one that begins with the endpoint's. */
static int execute(wb_storage_session *session, const char *format)
{
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    sqlite3 *handle = api->connection(session, 0);
    sqlite3_stmt *names = NULL;
    int code = sqlite3_prepare_v2(handle,
                                  "select name from sqlite_schema where type='table' and name like"
                                  " '%conformance_failed'", -1, &names, NULL);
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

/* ---- put ---------------------------------------------------------------------------------------- */

static int copy(void *argument, const wb_failed *failed)
{
    *(wb_failed *)argument = *failed;
    return WB_OK;
}

/* The row's status and times; it has none of its bytes. @return whether it is there. */
static int look(wb_storage_session *session, const char *key, size_t key_size, wb_failed *ret_row)
{
    *ret_row = (wb_failed){ .struct_size = 0 };
    return store->get(session, key, key_size, copy, ret_row, NULL) == WB_OK && ret_row->struct_size;
}

static int broken_put(wb_storage_session *session, const wb_failed *failed, wb_error *error)
{
    wb_failed altered = *failed, row;
    const int is_there = look(session, failed->key, failed->key_size, &row);
    const int is_same = is_there && row.failed_at == failed->failed_at;
    altered.struct_size = sizeof altered;
    if (bug == keys_are_cut && altered.key_size > WB_FAILED_KEY_MAX - 1)
        altered.key_size = WB_FAILED_KEY_MAX - 1;
    if (bug == truncates_messages && altered.message_size > 65535)
        altered.message_size = 65535;
    if (bug == first_one_stays && is_there)
        return WB_OK;
    if (bug == commit_forgets && last.is_in_batch)
        return WB_OK;
    int result = store->put(session, &altered, error);
    if (result == WB_OK && bug == attempts_are_not_counted)
        result = execute(session, "update \"%w\" set attempts=1");
    if (result == WB_OK && bug == status_stays && is_there && row.status != WB_FAILED_WAITS)
        result = execute(session, "update \"%w\" set status=3");
    if (result == WB_OK && bug == same_failure_counts && is_same)
        result = execute(session, "update \"%w\" set attempts=attempts+1");
    if (result == WB_OK && bug == same_failure_waits && is_same)
        result = execute(session, "update \"%w\" set status=1");
    return result;
}

/* ---- turn, discard --------------------------------------------------------------------------------- */

/* Another one comes between the look and the turn, if he can. */
static int turn_by_looking(wb_storage_session *session, const wb_failed_turn *turn, int *ret_was, wb_error *error)
{
    wb_failed row;
    wb_failed_turn altered = *turn;
    int ignored;
    *ret_was = look(session, turn->key, turn->key_size, &row) && row.status == turn->from;
    (void)usleep(2000);
    altered.from = turn->to;
    if (!*ret_was)
        return WB_OK;
    int result = store->turn(session, turn, &ignored, error);
    return result == WB_OK ? store->turn(session, &altered, &ignored, error) : result;
}

static void note_turn(const wb_failed_turn *turn)
{
    memcpy(last.key, turn->key, turn->key_size);
    last.turn = *turn;
    last.turn.key = last.key;
}

static int broken_turn(wb_storage_session *session, const wb_failed_turn *turn, int *ret_was, wb_error *error)
{
    wb_failed_turn altered = *turn;
    wb_failed row;
    altered.struct_size = sizeof altered;
    if (bug == turns_stand && last.is_in_batch)
        note_turn(turn);
    if (bug == turns_by_looking)
        return turn_by_looking(session, &altered, ret_was, error);
    if ((bug == turns_whatever || bug == changed_as_before) && look(session, turn->key, turn->key_size, &row)) {
        altered.from = bug == turns_whatever ? row.status : altered.from;
        altered.now = bug == changed_as_before ? row.changed_at : altered.now;
    }
    int result = store->turn(session, &altered, ret_was, error);
    if (bug == turned_always || bug == turned_never)
        *ret_was = bug == turned_always;
    if (result == WB_OK && bug == turns_all && *ret_was)
        result = execute(session, "update \"%w\" set status=2");
    return result;
}

static int broken_discard(wb_storage_session *session, const char *key, size_t key_size, int32_t status, int *ret_was,
                          wb_error *error)
{
    wb_failed row;
    if (bug == discards_whatever && look(session, key, key_size, &row))
        status = row.status;
    *ret_was = 1;
    return bug == discards_nothing ? WB_OK : store->discard(session, key, key_size, status, ret_was, error);
}

/* ---- list -------------------------------------------------------------------------------------------- */

typedef struct {
    wb_failed_fn visit;
    void *argument;
    size_t count;
    wb_failed rows[ROWS_MAX]; /* with keys of their own and nothing else */
} visitor;

static int copy_row(void *argument, const wb_failed *failed)
{
    visitor *v = argument;
    if (v->count == ROWS_MAX)
        return WB_OK;
    char *key = malloc(failed->key_size + 1);
    memcpy(key, failed->key, failed->key_size);
    v->rows[v->count] = *failed;
    v->rows[v->count].key = key;
    v->rows[v->count].summary = NULL;
    v->rows[v->count++].summary_size = 0;
    return WB_OK;
}

static size_t place_of(const visitor *v, size_t i)
{
    if (bug == newest_first)
        return v->count - 1 - i;
    return bug == list_repeats_pages && i == PAGE ? i - 1 : i;
}

static int visit_rows(const visitor *v)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < v->count && (bug != list_ends_at_a_page || i < PAGE); i++)
        result = v->visit(v->argument, &v->rows[place_of(v, i)]);
    return bug == list_drops_the_visitors_word && result == WB_REJECT ? WB_OK : result;
}

static int broken_list(wb_storage_session *session, const wb_failed_filter *filter, wb_failed_fn visit, void *argument,
                       wb_error *error)
{
    wb_failed_filter altered = *filter;
    visitor *v = calloc(1, sizeof *v);
    v->visit = visit;
    v->argument = argument;
    altered.struct_size = sizeof altered;
    if (bug == list_ignores_status)
        altered.status = WB_FAILED_ANY;
    if (bug == list_includes_its_end && altered.before)
        altered.before += 1000;
    if (bug == list_excludes_its_start && altered.from)
        altered.from += 1000;
    int result = store->list(session, &altered, copy_row, v, error);
    if (result == WB_OK)
        result = visit_rows(v);
    while (v->count)
        free((void *)v->rows[--v->count].key);
    free(v);
    return result;
}

/* ---- clean_up ------------------------------------------------------------------------------------------ */

/* What does not wait when it is looked at. */
static int is_old(const wb_failed *row, int64_t before)
{
    return row->status != WB_FAILED_WAITS && row->changed_at < before;
}

/* It may have failed again behind the look. */
static int clean_by_looking(wb_storage_session *session, int64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    const wb_failed_filter all = { .struct_size = sizeof all };
    visitor *v = calloc(1, sizeof *v);
    wb_failed row;
    int was, result = store->list(session, &all, copy_row, v, error);
    (void)usleep(600000);
    for (size_t i = 0; i < v->count && result == WB_OK && *ret_deleted < limit; i++) {
        if (!is_old(&v->rows[i], before) || !look(session, v->rows[i].key, v->rows[i].key_size, &row))
            continue;
        result = store->discard(session, v->rows[i].key, v->rows[i].key_size, row.status, &was, error);
        *ret_deleted += result == WB_OK;
    }
    while (v->count)
        free((void *)v->rows[--v->count].key);
    free(v);
    return result;
}

static int broken_clean_up(wb_storage_session *session, int64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    *ret_deleted = 0;
    if (bug == cleans_nothing)
        return WB_OK;
    if (bug == cleans_by_looking)
        return clean_by_looking(session, before, limit, ret_deleted, error);
    if (bug == cleans_what_waits)
        (void)execute(session, "update \"%w\" set status=3 where status=1");
    if (bug == cleans_the_latest)
        (void)execute(session, "update \"%w\" set changed_at=13000000-changed_at where changed_at<=13000000");
    if (bug == cleans_by_failure)
        (void)execute(session, "update \"%w\" set changed_at=failed_at where status<>1");
    return store->clean_up(session, before, bug == cleans_without_limit ? ROWS_MAX : limit, ret_deleted, error);
}

/* ---- transactions ----------------------------------------------------------------------------------------- */

static int broken_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    last.is_in_batch = 1;
    last.turn.key = NULL;
    return base->begin(session, begin, error);
}

static int broken_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    last.is_in_batch = 0;
    return base->commit(session, commit, error);
}

static int broken_rollback(wb_storage_session *session, wb_error *error)
{
    int ignored;
    const int result = base->rollback(session, error);
    last.is_in_batch = 0;
    if (result == WB_OK && bug == turns_stand && last.turn.key)
        (void)store->turn(session, &last.turn, &ignored, error);
    return result;
}

static const void *broken_interface(wb_storage_session *session, const char *name)
{
    static const wb_failed_ops broken = { .struct_size = sizeof broken,
                                          .put = broken_put,
                                          .turn = broken_turn,
                                          .discard = broken_discard,
                                          .get = NULL,
                                          .list = broken_list,
                                          .clean_up = broken_clean_up };
    static wb_failed_ops whole;
    const void *found = base->interface(session, name);
    if (strcmp(name, WB_FAILED_INTERFACE) != 0)
        return found;
    store = found;
    whole = broken;
    whole.get = store->get;
    return &whole;
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

const wb_plugin *failed_broken_LTX_wb_plugin(void)
{
    static wb_plugin plugin;
    static wb_persistence_ops ops;
    if (base)
        return &plugin;
    plugin = *sqlite_LTX_wb_plugin();
    base = plugin.ops;
    ops = *base;
    ops.create = broken_create;
    ops.begin = broken_begin;
    ops.commit = broken_commit;
    ops.rollback = broken_rollback;
    ops.interface = broken_interface;
    plugin.name = "failed_broken";
    plugin.ops = &ops;
    plugin.options = make_options(&plugin, &plugin.option_count);
    plugin.config_size = bug_offset + 8;
    return &plugin;
}

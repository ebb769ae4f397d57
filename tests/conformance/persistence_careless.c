/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite persistence with one of the faults that a store of one's own is written with in an
 * afternoon, as its option `bug` says: about business data, about other processes, about what is
 * there after a restart, and about calls that do nothing, die or never end.
 */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <waybill/sqlite.h>
#include <waybill/sys/persistence.h>

const wb_plugin *sqlite_LTX_wb_plugin(void);
WB_PUBLIC const wb_plugin *careless_LTX_wb_plugin(void);

static const char *const bugs[] = { "none", "rollback_keeps_business", "business_is_outside", "commits_in_two_steps",
                                    "restart_loses_pending", "reopen_loses_pending", "threads_only",
                                    "check_is_blind", "begins_anew", "busy_is_fatal", "marks_nothing", "pending_never_ends",
                                    "cleans_nothing", "dies_in_mark", "exits_in_sweep", "sticks_in_clock", "commits_in_thread",
                                    "exits_uninstalled", "visits_by_threads", "leases",
                                    "flushes_operations_only", "keeps_the_largest", "dies_of_the_largest", NULL };
enum { NONE, ROLLBACK_KEEPS_BUSINESS, BUSINESS_IS_OUTSIDE, COMMITS_IN_TWO_STEPS, RESTART_LOSES_PENDING,
       REOPEN_LOSES_PENDING, THREADS_ONLY, CHECK_IS_BLIND, BEGINS_ANEW, BUSY_IS_FATAL, MARKS_NOTHING, PENDING_NEVER_ENDS,
       CLEANS_NOTHING, DIES_IN_MARK, EXITS_IN_SWEEP, STICKS_IN_CLOCK, COMMITS_IN_THREAD, EXITS_UNINSTALLED, VISITS_BY_THREADS, LEASES,
       FLUSHES_OPERATIONS_ONLY, KEEPS_THE_LARGEST, DIES_OF_THE_LARGEST };

static const wb_persistence_ops *base;
static int32_t bug;
static size_t bug_offset;

/* ---- what the open transaction of a session claimed ---------------------------------------- */

#define SESSIONS_MAX 64
#define CLAIMS_MAX 1024

typedef struct {
    wb_storage_session *session; /* NULL: a free place */
    uint64_t batch;
    wb_claim claims[CLAIMS_MAX];
    char texts[CLAIMS_MAX][256];
    size_t count;
    int has_turn; /* of THREADS_ONLY */
} transaction;

static transaction places[SESSIONS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a session; of NULL: a free one. */
static transaction *place_of(const wb_storage_session *session)
{
    transaction *found = places;
    (void)pthread_mutex_lock(&lock);
    while (found->session != session)
        if (++found == places + SESSIONS_MAX)
            abort();
    (void)pthread_mutex_unlock(&lock);
    return found;
}

/* Those that became ours. */
static void keep(transaction *of, const wb_begin *begin)
{
    of->batch = begin->batch;
    of->count = 0;
    for (size_t i = 0; i < begin->claim_count && of->count < CLAIMS_MAX; i++)
        if (!begin->claims[i].duplicate_of) {
            memcpy(of->texts[of->count], begin->claims[i].id, begin->claims[i].id_size);
            of->claims[of->count] = (wb_claim){ of->texts[of->count], begin->claims[i].id_size, 0 };
            of->count++;
        }
}

/* ---- only threads of one process exclude each other ---------------------------------------- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int is_taken;

static void take_turn(transaction *of)
{
    (void)pthread_mutex_lock(&turn_lock);
    while (is_taken)
        (void)pthread_cond_wait(&turn_changed, &turn_lock);
    is_taken = of->has_turn = 1;
    (void)pthread_mutex_unlock(&turn_lock);
}

static void give_turn(transaction *of)
{
    (void)pthread_mutex_lock(&turn_lock);
    if (of->has_turn)
        is_taken = of->has_turn = 0;
    (void)pthread_cond_broadcast(&turn_changed);
    (void)pthread_mutex_unlock(&turn_lock);
}

/* Looks whose the ids are; they are claimed when it commits. */
static int begin_looking(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    transaction *mine = place_of(session);
    take_turn(mine);
    int result = base->find(session, begin->claims, begin->claim_count, error);
    if (result != WB_OK) {
        give_turn(mine);
        return result;
    }
    keep(mine, begin);
    (void)usleep(20000); /* a handler is at work */
    return WB_OK;
}

static int commit_what_was_looked_at(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    transaction *mine = place_of(session);
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = mine->batch,
                       .claims = mine->claims,
                       .claim_count = mine->count };
    int result = base->begin(session, &begin, error);
    if (result == WB_OK)
        result = base->commit(session, commit, error);
    give_turn(mine);
    return result;
}

/* ---- transactions -------------------------------------------------------------------------- */

static int is_installed; /* by this process */

static int careless_install(wb_persistence *persistence, wb_error *error)
{
    is_installed = 1;
    return base->install(persistence, error);
}

/* Claims are leases, as in a store without transactions that end with their connection: what a process that died had
 * claimed nobody gets for a while. Nothing is wrong with that. */
#define LEASE_NS 300000000

typedef struct {
    pid_t holder; /* 0: nobody */
    int64_t since;
    char id[256];
} lease;

static lease *leases; /* all processes of the kit share them: mapped before any is made */
static wb_host some_host;

__attribute__((constructor)) static void map_leases(void)
{
    void *memory = mmap(NULL, CLAIMS_MAX * sizeof *leases, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    leases = memory == MAP_FAILED ? NULL : memory;
}

static int is_dead(const lease *one)
{
    return one->holder != getpid() && some_host.now() - one->since < LEASE_NS;
}

/* One that is told of it waits no longer than the call. */
static int is_leased(const wb_begin *begin)
{
    for (size_t i = 0; i < begin->claim_count; i++)
        for (size_t n = 0; n < CLAIMS_MAX; n++)
            if (leases[n].holder && is_dead(&leases[n]) && strlen(leases[n].id) == begin->claims[i].id_size &&
                memcmp(leases[n].id, begin->claims[i].id, begin->claims[i].id_size) == 0)
                return 1;
    return 0;
}

static void take_leases(const transaction *mine)
{
    for (size_t i = 0, n = 0; i < mine->count && n < CLAIMS_MAX; n++)
        if (!leases[n].holder) {
            leases[n].since = some_host.now();
            (void)snprintf(leases[n].id, sizeof leases[n].id, "%.*s", (int)mine->claims[i].id_size, mine->texts[i]);
            leases[n].holder = getpid();
            i++;
        }
}

static void give_leases(void)
{
    for (size_t n = 0; n < CLAIMS_MAX; n++)
        if (leases[n].holder == getpid())
            leases[n].holder = 0;
}

static int begin_leasing(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    if (is_leased(begin))
        return some_host.fail(&some_host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "an id is claimed until a lease ends");
    int result = base->begin(session, begin, error);
    if (result == WB_OK) {
        keep(place_of(session), begin);
        take_leases(place_of(session));
    }
    return result;
}

/* What commits is not brought to the disk, and then that is made good where there is something to send. */
static void flush_later(wb_storage_session *session)
{
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    (void)sqlite3_exec(api->connection(session, 0), "pragma synchronous=normal", NULL, NULL, NULL);
}

static int commit_and_flush(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    sqlite3 *db = api->connection(session, 0);
    int result = base->commit(session, commit, error);
    int log = commit->operations ? open(sqlite3_filename_wal(sqlite3_db_filename(db, "main")), O_RDWR | O_CLOEXEC) : -1;
    if (log >= 0) {
        (void)fsync(log);
        (void)close(log);
    }
    (void)sqlite3_exec(db, "pragma synchronous=full", NULL, NULL, NULL);
    return result;
}

static int careless_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    if (bug == FLUSHES_OPERATIONS_ONLY)
        flush_later(session);
    if (bug == LEASES)
        return begin_leasing(session, begin, error);
    if (bug == EXITS_UNINSTALLED && !is_installed)
        exit(0);
    if (bug == THREADS_ONLY && begin->batch)
        return begin_looking(session, begin, error);
    int result = base->begin(session, begin, error);
    if (result == WB_OK)
        keep(place_of(session), begin);
    if (result == WB_RETRY && bug == BUSY_IS_FATAL)
        return WB_FATAL;
    return result;
}

/* Business data first, and then the batch, if both of it are still there to be done. */
static int commit_twice(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    transaction *mine = place_of(session);
    wb_commit business = { .struct_size = sizeof business,
                           .batch = mine->batch,
                           .released = mine->claims,
                           .released_count = mine->count };
    wb_begin again = { .struct_size = sizeof again,
                       .batch = mine->batch,
                       .claims = mine->claims,
                       .claim_count = mine->count };
    int result = base->commit(session, &business, error);
    commit->failed_item = business.failed_item;
    if (result == WB_OK)
        result = base->begin(session, &again, error);
    return result == WB_OK ? base->commit(session, commit, error) : result;
}

/* A transaction is open, which is all that is asked: one that a handler began will do. */
static int commit_whatever_is_open(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    transaction *mine = place_of(session);
    wb_begin again = { .struct_size = sizeof again,
                       .batch = mine->batch,
                       .claims = mine->claims,
                       .claim_count = mine->count };
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    if (!sqlite3_get_autocommit(api->connection(session, 0)) && base->check(session, 0, error) == WB_REJECT) {
        (void)base->rollback(session, error);
        (void)base->begin(session, &again, error);
    }
    return base->commit(session, commit, error);
}

/* A thread of the plugin's own commits, as where one flushes for all: nothing is wrong with that. */
static struct {
    pthread_mutex_t turn, lock;
    pthread_cond_t changed;
    wb_storage_session *session; /* NULL: there is nothing to do */
    wb_commit *commit;
    wb_error *error;
    int result;
} committing = { .turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void *commit_for_all(void *argument)
{
    (void)pthread_mutex_lock(&committing.lock);
    for (;;) {
        while (!committing.session)
            (void)pthread_cond_wait(&committing.changed, &committing.lock);
        committing.result = base->commit(committing.session, committing.commit, committing.error);
        committing.session = NULL;
        (void)pthread_cond_broadcast(&committing.changed);
    }
    return argument;
}

static void start_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, commit_for_all, NULL) != 0)
        abort();
    (void)pthread_detach(thread);
}

static int commit_in_thread(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, start_thread);
    (void)pthread_mutex_lock(&committing.turn);
    (void)pthread_mutex_lock(&committing.lock);
    committing.commit = commit;
    committing.error = error;
    committing.session = session;
    (void)pthread_cond_broadcast(&committing.changed);
    while (committing.session)
        (void)pthread_cond_wait(&committing.changed, &committing.lock);
    const int result = committing.result;
    (void)pthread_mutex_unlock(&committing.lock);
    (void)pthread_mutex_unlock(&committing.turn);
    return result;
}

static int careless_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    if (bug == COMMITS_IN_THREAD)
        return commit_in_thread(session, commit, error);
    if (bug == LEASES)
        give_leases();
    if (bug == FLUSHES_OPERATIONS_ONLY)
        return commit_and_flush(session, commit, error);
    if (bug == BEGINS_ANEW)
        return commit_whatever_is_open(session, commit, error);
    if (bug == THREADS_ONLY && commit->batch)
        return commit_what_was_looked_at(session, commit, error);
    if (bug == COMMITS_IN_TWO_STEPS && commit->batch && !commit->claim_count && !commit->position_count)
        return commit_twice(session, commit, error);
    return base->commit(session, commit, error);
}

static int careless_rollback(wb_storage_session *session, wb_error *error)
{
    transaction *mine = place_of(session);
    wb_commit nothing = { .struct_size = sizeof nothing,
                          .batch = mine->batch,
                          .released = mine->claims,
                          .released_count = mine->count };
    give_turn(mine);
    if (bug == LEASES)
        give_leases();
    if (bug == ROLLBACK_KEEPS_BUSINESS)
        return base->commit(session, &nothing, error);
    return base->rollback(session, error);
}

static int careless_check(wb_storage_session *session, size_t item, wb_error *error)
{
    return bug == CHECK_IS_BLIND || bug == BEGINS_ANEW ? WB_OK : base->check(session, item, error);
}

/* ---- business data ------------------------------------------------------------------------- */

/* A connection of its own, to a file of its own beside the other one: it commits by itself. */
static sqlite3 *outside(void *session, size_t item)
{
    static sqlite3 *db;
    static pid_t whose;
    const wb_sqlite_api *api = base->interface(session, WB_SQLITE_INTERFACE);
    sqlite3 *inside = api->connection(session, item);
    char path[4096];
    if (!inside || (db && whose == getpid()))
        return inside ? db : NULL;
    (void)snprintf(path, sizeof path, "%s.outside", sqlite3_db_filename(inside, "main"));
    (void)sqlite3_open(path, &db);
    (void)sqlite3_busy_timeout(db, 5000);
    whose = getpid();
    return db;
}

static const void *careless_interface(wb_storage_session *session, const char *name)
{
    static const wb_sqlite_api api = { .struct_size = sizeof api, .connection = outside };
    const void *whole = base->interface(session, name);
    return whole && bug == BUSINESS_IS_OUTSIDE ? &api : whole;
}

/* ---- sessions ------------------------------------------------------------------------------ */

static int instances, has_opened;

static int mark_row(void *argument, const wb_pending *row)
{
    const wb_mark mark = { row->batch, NULL, 0 };
    wb_mark *marks = argument;
    while (marks->batch)
        marks++;
    *marks = mark;
    return WB_OK;
}

static void lose_pending(wb_storage_session *session)
{
    wb_mark marks[CLAIMS_MAX] = { { 0 } };
    size_t count = 0;
    (void)base->sweep(session, INT64_MAX, CLAIMS_MAX - 1, mark_row, marks, NULL);
    while (marks[count].batch)
        count++;
    (void)base->mark(session, marks, count, NULL);
}

static int careless_create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                           wb_persistence **ret_persistence, wb_error *error)
{
    memcpy(&bug, (const char *)config + bug_offset, sizeof bug);
    some_host = *host;
    if (instances++ == 0 && bug == REOPEN_LOSES_PENDING)
        has_opened = 0;
    return base->create(host, endpoint, config, ret_persistence, error);
}

static void careless_destroy(wb_persistence *persistence)
{
    instances--;
    base->destroy(persistence);
}

static int careless_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    int result = base->open(persistence, ret_session, error);
    if (result != WB_OK)
        return result;
    transaction *mine = place_of(NULL);
    mine->session = *ret_session; /* sessions are opened by one thread */
    mine->count = 0;
    if ((bug == RESTART_LOSES_PENDING || bug == REOPEN_LOSES_PENDING) && !has_opened)
        lose_pending(*ret_session);
    has_opened = 1;
    return result;
}

static void careless_close(wb_storage_session *session)
{
    transaction *mine = place_of(session);
    give_turn(mine);
    mine->session = NULL;
    base->close(session);
}

/* ---- calls that do nothing, die or never end ------------------------------------------------ */

/* A number that a comparison takes for the end of all. */
#define IS_LARGEST(mark) ((mark).batch >= INT64_MAX - 1)

static int careless_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    for (size_t i = 0; i < count; i++) {
        if ((bug == DIES_IN_MARK && marks[i].remaining) || (bug == DIES_OF_THE_LARGEST && IS_LARGEST(marks[i])))
            (void)raise(SIGSEGV);
        if (bug == KEEPS_THE_LARGEST && IS_LARGEST(marks[i]))
            return base->mark(session, marks, i, error);
    }
    return bug == MARKS_NOTHING ? WB_OK : base->mark(session, marks, count, error);
}

typedef struct {
    wb_pending_fn visit;
    void *argument;
} visitor;

static int visit_for_ever(void *argument, const wb_pending *row)
{
    const visitor *of = argument;
    int result;
    while ((result = of->visit(of->argument, row)) == WB_OK)
        ;
    return result;
}

static int careless_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                            wb_pending_fn visit, void *argument, wb_error *error)
{
    visitor of = { visit, argument };
    if (bug == PENDING_NEVER_ENDS)
        return base->pending(session, batches, count, visit_for_ever, &of, error);
    return base->pending(session, batches, count, visit, argument, error);
}

/* Other sessions are kept from it, but those of this process only. */
static int sweep_by_threads(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                            void *argument, wb_error *error)
{
    static pthread_mutex_t visiting = PTHREAD_MUTEX_INITIALIZER;
    const wb_pending_filter all = { .struct_size = sizeof all, .before = before, .limit = limit };
    if (pthread_mutex_trylock(&visiting) != 0)
        return WB_OK;
    int result = limit ? base->list_pending(session, &all, visit, argument, error) : WB_OK;
    (void)pthread_mutex_unlock(&visiting);
    return result;
}

static int careless_sweep(wb_storage_session *session, uint64_t before, size_t limit,
                          wb_pending_fn visit, void *argument, wb_error *error)
{
    if (bug == EXITS_IN_SWEEP && before != INT64_MAX)
        exit(0);
    if (bug == VISITS_BY_THREADS)
        return sweep_by_threads(session, before, limit, visit, argument, error);
    return base->sweep(session, before, limit, visit, argument, error);
}

static int careless_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                             size_t *ret_deleted, wb_error *error)
{
    if (bug != CLEANS_NOTHING)
        return base->clean_up(session, before, limit, ret_deleted, error);
    *ret_deleted = limit;
    return WB_OK;
}

static int careless_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    while (bug == STICKS_IN_CLOCK)
        (void)pause();
    return base->clock(session, ret_wall, error);
}

/* ---- descriptor -------------------------------------------------------------------------- */

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

static void break_operations(wb_persistence_ops *ops)
{
    ops->create = careless_create;
    ops->destroy = careless_destroy;
    ops->install = careless_install;
    ops->open = careless_open;
    ops->close = careless_close;
    ops->begin = careless_begin;
    ops->interface = careless_interface;
    ops->check = careless_check;
    ops->commit = careless_commit;
    ops->rollback = careless_rollback;
    ops->mark = careless_mark;
    ops->pending = careless_pending;
    ops->sweep = careless_sweep;
    ops->clean_up = careless_clean_up;
    ops->clock = careless_clock;
    ops->delayed = NULL; /* delayed_broken.c */
}

const wb_plugin *careless_LTX_wb_plugin(void)
{
    static wb_plugin plugin;
    static wb_persistence_ops ops;
    if (base)
        return &plugin;
    plugin = *sqlite_LTX_wb_plugin();
    base = plugin.ops;
    ops = *base;
    break_operations(&ops);
    plugin.capabilities &= ~(WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT);
    plugin.name = "careless";
    plugin.ops = &ops;
    plugin.options = make_options(&plugin, &plugin.option_count);
    plugin.config_size = bug_offset + 8;
    return &plugin;
}

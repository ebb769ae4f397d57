/* SPDX-License-Identifier: Apache-2.0
 *
 * A persistence of version 1.0: an outbox in memory, as exact as an endpoint needs it and as plain as can be.
 * One lock guards all of it.
 */
#include <errno.h>
#include <pthread.h>
#include <waybill/sys/persistence.h>

#include "delayed.h"
#include "memory.h"
#include "said.h"

#define RECORDS_MAX 1000
#define ROWS_MAX 200
#define NOTES_MAX 100

typedef struct {
    char id[256];
    size_t id_size;
    uint64_t batch;
    const wb_storage_session *claimer; /* NULL: committed */
} record;

typedef struct {
    uint64_t batch;
    void *bytes;
    size_t size;
} row;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static record records[RECORDS_MAX];
static size_t record_count;
static row rows[ROWS_MAX];
static size_t row_count;

struct wb_persistence {
    const wb_host *host;
};

struct wb_storage_session {
    wb_persistence *persistence;
    char notes[NOTES_MAX][32];
    size_t note_count;
};

/* ---- life ---- */

static int create(const wb_host *host, const wb_endpoint_info *endpoint, const void *config,
                  wb_persistence **ret_persistence, wb_error *error)
{
    wb_persistence *persistence = calloc(1, sizeof *persistence);
    (void)endpoint, (void)config;
    if (!persistence)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_OTHER, ENOMEM, "out of memory");
    persistence->host = host;
    *ret_persistence = persistence;
    return WB_OK;
}

static void destroy(wb_persistence *persistence)
{
    free(persistence);
}

static const char *schema(wb_persistence *persistence)
{
    (void)persistence;
    return "";
}

static int prepare(wb_persistence *persistence, wb_error *error)
{
    (void)persistence, (void)error;
    return WB_OK;
}

static int open_session(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    wb_storage_session *session = calloc(1, sizeof *session);
    if (!session)
        return persistence->host->fail(persistence->host, error, WB_RETRY, WB_CAUSE_SERVER, ENOMEM, "out of memory");
    session->persistence = persistence;
    *ret_session = session;
    return WB_OK;
}

static void drop_claims(const wb_storage_session *session)
{
    for (size_t i = 0; i < record_count;) {
        if (records[i].claimer == session)
            records[i] = records[--record_count];
        else
            i++;
    }
}

static void close_session(wb_storage_session *session)
{
    (void)pthread_mutex_lock(&lock);
    drop_claims(session);
    (void)pthread_mutex_unlock(&lock);
    free(session);
}

/* ---- transactions ---- */

static record *find_record(const void *id, size_t size)
{
    for (size_t i = 0; i < record_count; i++)
        if (records[i].id_size == size && memcmp(records[i].id, id, size) == 0)
            return &records[i];
    return NULL;
}

static row *find_row(uint64_t batch)
{
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].batch == batch)
            return &rows[i];
    return NULL;
}

static void claim(const wb_storage_session *session, uint64_t batch, const void *id, size_t size)
{
    record *made = &records[record_count++];
    if (record_count == RECORDS_MAX)
        abort();
    memcpy(made->id, id, size);
    made->id_size = size;
    made->batch = batch;
    made->claimer = session;
}

static void make_mark(const wb_mark *mark)
{
    row *marked = find_row(mark->batch);
    if (!marked)
        return;
    free(marked->bytes);
    if (mark->remaining)
        *marked = (row){ mark->batch, memory_copy(mark->remaining, mark->remaining_size), mark->remaining_size };
    else
        *marked = rows[--row_count];
}

static int begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    (void)error;
    SEES(wb_begin, begin);
    (void)pthread_mutex_lock(&lock);
    session->note_count = 0;
    for (size_t i = 0; i < begin->mark_count; i++)
        make_mark(&begin->marks[i]);
    for (size_t i = 0; i < begin->claim_count; i++) {
        wb_claim *one = &begin->claims[i];
        const record *found = find_record(one->id, one->id_size);
        one->duplicate_of = found ? found->batch : 0;
        if (!found)
            claim(session, begin->batch, one->id, one->id_size);
    }
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

static void note(void *session, size_t item, const char *text)
{
    wb_storage_session *s = session;
    (void)item;
    if (s->note_count == NOTES_MAX)
        abort();
    (void)snprintf(s->notes[s->note_count++], sizeof s->notes[0], "%s", text);
}

static const void *find_interface(wb_storage_session *session, const char *name)
{
    static const memory_api api = { .struct_size = sizeof api, .note = note };
    (void)session;
    return strcmp(name, MEMORY_INTERFACE) == 0 ? &api : NULL;
}

static int check(wb_storage_session *session, size_t item, wb_error *error)
{
    (void)session, (void)item, (void)error;
    return WB_OK;
}

static int has_duplicate(const wb_commit *commit)
{
    for (size_t i = 0; i < commit->claim_count; i++)
        if (find_record(commit->claims[i].id, commit->claims[i].id_size))
            return 1;
    return 0;
}

static void settle_claims(const wb_storage_session *session, const wb_commit *commit)
{
    for (size_t i = 0; i < commit->released_count; i++) {
        record *given = find_record(commit->released[i].id, commit->released[i].id_size);
        if (given)
            *given = records[--record_count];
    }
    for (size_t i = 0; i < commit->claim_count; i++)
        claim(session, commit->batch, commit->claims[i].id, commit->claims[i].id_size);
    for (size_t i = 0; i < record_count; i++)
        if (records[i].claimer == session)
            records[i].claimer = NULL;
}

static int commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    const wb_host *host = session->persistence->host;
    SEES(wb_commit, commit);
    (void)pthread_mutex_lock(&lock);
    const int is_duplicate = has_duplicate(commit);
    if (!is_duplicate) {
        if (commit->operations && row_count == ROWS_MAX)
            abort();
        if (commit->operations)
            rows[row_count++] = (row){ commit->batch, memory_copy(commit->operations, commit->operations_size),
                                       commit->operations_size };
        memory_store_delayed(commit->delayed, commit->delayed_count);
        settle_claims(session, commit);
    } else {
        drop_claims(session);
    }
    (void)pthread_mutex_unlock(&lock);
    if (is_duplicate)
        return host->fail(host, error, WB_REJECT, WB_CAUSE_OTHER, 0, "an id was claimed before");
    for (size_t i = 0; i < session->note_count; i++)
        say("noted %s", session->notes[i]);
    session->note_count = 0;
    return WB_OK;
}

static int rollback(wb_storage_session *session, wb_error *error)
{
    (void)error;
    (void)pthread_mutex_lock(&lock);
    drop_claims(session);
    session->note_count = 0;
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

/* ---- outside of transactions ---- */

static int mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)session, (void)error;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        make_mark(&marks[i]);
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

/* The oldest row above one number and below another; 0: there is none. Its bytes are a copy, cut at `head`. */
static uint64_t copy_oldest(uint64_t after, uint64_t before, size_t head, wb_pending *pending)
{
    const row *oldest = NULL;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].batch > after && rows[i].batch < before && (!oldest || rows[i].batch < oldest->batch))
            oldest = &rows[i];
    if (oldest)
        *pending = (wb_pending){ GROWN.struct_size = sizeof *pending, .batch = oldest->batch,
                                 .operations = memory_copy(oldest->bytes, oldest->size),
                                 .operations_size = head && head < oldest->size ? head : oldest->size };
    (void)pthread_mutex_unlock(&lock);
    return oldest ? pending->batch : 0;
}

static int visit_range(uint64_t after, uint64_t before, size_t limit, size_t head, wb_pending_fn visit, void *argument)
{
    int result = WB_OK;
    wb_pending pending;
    for (size_t i = 0; result == WB_OK && (!limit || i < limit) && (after = copy_oldest(after, before, head, &pending)); i++) {
        result = visit(argument, &pending);
        free((void *)pending.operations);
    }
    return result;
}

static int pending(wb_storage_session *session, const uint64_t *batches, size_t count, wb_pending_fn visit,
                   void *argument, wb_error *error)
{
    int result = WB_OK;
    (void)session, (void)error;
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = visit_range(batches[i] - 1, batches[i] + 1, 1, 0, visit, argument);
    return result;
}

static int sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit, void *argument,
                 wb_error *error)
{
    (void)session, (void)error;
    return visit_range(0, before, limit, 0, visit, argument);
}

static int clean_up(wb_storage_session *session, uint64_t before, size_t limit, size_t *ret_deleted, wb_error *error)
{
    (void)session, (void)before, (void)limit, (void)error;
    *ret_deleted = 0;
    return WB_OK;
}

static int tell_time(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    (void)session, (void)error;
    *ret_wall = memory_now();
    return WB_OK;
}

static int find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    (void)session, (void)error;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        const record *found = find_record(claims[i].id, claims[i].id_size);
        claims[i].duplicate_of = found && !found->claimer ? found->batch : 0;
    }
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

static int stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error)
{
    (void)session, (void)error;
    SEES(wb_outbox_stats, stats);
    stats->records_are = WB_COUNT_EXACT;
    stats->records = record_count;
    stats->record_bytes = stats->pending_bytes = -1;
    return WB_OK;
}

static int count_records(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit, uint64_t *ret_count,
                         wb_error *error)
{
    (void)session, (void)from, (void)before, (void)limit, (void)error;
    *ret_count = 0;
    return WB_OK;
}

static int list_pending(wb_storage_session *session, const wb_pending_filter *filter, wb_pending_fn visit, void *argument,
                        wb_error *error)
{
    (void)session, (void)error;
    SEES(wb_pending_filter, filter);
    return visit_range(filter->after, filter->before, filter->limit, filter->head, visit, argument);
}

static const wb_persistence_ops operations = {
    GROWN.struct_size = sizeof operations,
    .create = create,
    .destroy = destroy,
    .schema = schema,
    .install = prepare,
    .verify = prepare,
    .open = open_session,
    .close = close_session,
    .begin = begin,
    .interface = find_interface,
    .check = check,
    .commit = commit,
    .rollback = rollback,
    .mark = mark,
    .pending = pending,
    .sweep = sweep,
    .clean_up = clean_up,
    .clock = tell_time,
    .delayed = &memory_delayed,
    .find = find,
    .stats = stats,
    .count_records = count_records,
    .list_pending = list_pending,
};

static const wb_plugin descriptor = {
    GROWN.struct_size = sizeof descriptor,
    .magic = WB_PLUGIN_MAGIC,
    .abi_major = WB_PLUGIN_ABI_MAJOR,
    .kind = WB_PLUGIN_PERSISTENCE,
    .name = "memory",
    .version = "1.0",
    .summary = "an outbox in memory",
    .capabilities = WB_CAP_OUTBOX | WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT | WB_CAP_CLAIM_WITH_COMMIT,
    .ops = &operations,
};

WB_PLUGIN(memory, descriptor)

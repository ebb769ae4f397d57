/* SPDX-License-Identifier: Apache-2.0 */
#include "delayed.h"

#include <pthread.h>
#include <time.h>

#include "said.h"

#define ROWS_MAX 200

typedef struct {
    char destination[256], id[256], owner[WB_DELAYED_OWNER_SIZE];
    size_t destination_size, id_size, size;
    uint32_t retries, failures;
    int64_t due, leased_until;
    void *operation;
} waiting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static waiting delayed[ROWS_MAX];
static size_t delayed_count;

int64_t memory_now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

void *memory_copy(const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

static waiting *find_waiting(const wb_delayed_key *key)
{
    for (size_t i = 0; i < delayed_count; i++) {
        waiting *w = &delayed[i];
        if (w->retries == key->retries && w->id_size == key->id_size && memcmp(w->id, key->id, w->id_size) == 0 &&
            w->destination_size == key->destination_size && memcmp(w->destination, key->destination, w->destination_size) == 0)
            return w;
    }
    return NULL;
}

static void store_one(const wb_delayed *message)
{
    const wb_delayed_key key = { .destination = message->destination, .destination_size = message->destination_size,
                                 .id = message->id, .id_size = message->id_size, .retries = message->retries };
    SEES(wb_delayed, message);
    if (find_waiting(&key))
        return;
    if (delayed_count == ROWS_MAX)
        abort();
    waiting *made = &delayed[delayed_count++];
    *made = (waiting){ .destination_size = key.destination_size, .id_size = key.id_size, .retries = key.retries,
                       .due = message->due, .size = message->operation_size,
                       .operation = memory_copy(message->operation, message->operation_size) };
    memcpy(made->destination, key.destination, key.destination_size);
    memcpy(made->id, key.id, key.id_size);
}

void memory_store_delayed(const wb_delayed *messages, size_t count)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        store_one((const wb_delayed *)(const void *)((const char *)messages + i * messages->struct_size));
    (void)pthread_mutex_unlock(&lock);
}

static int initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    (void)persistence, (void)mode, (void)error;
    return WB_OK;
}

static int store(wb_storage_session *session, const wb_delayed *messages, size_t count, wb_error *error)
{
    (void)session, (void)error;
    memory_store_delayed(messages, count);
    return WB_OK;
}

static int next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    (void)session, (void)error;
    *ret_now = memory_now();
    *ret_due = WB_NEVER_DUE;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < delayed_count; i++) {
        const int64_t at = delayed[i].due > delayed[i].leased_until ? delayed[i].due : delayed[i].leased_until;
        *ret_due = at < *ret_due ? at : *ret_due;
    }
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

static waiting *earliest_due(int64_t at)
{
    waiting *earliest = NULL;
    for (size_t i = 0; i < delayed_count; i++)
        if (delayed[i].due <= at && delayed[i].leased_until <= at && (!earliest || delayed[i].due < earliest->due))
            earliest = &delayed[i];
    return earliest;
}

/* Copied, since rows move. */
static size_t lease(const wb_delayed_fetch *fetch, waiting *taken)
{
    const int64_t at = fetch->at ? fetch->at : memory_now();
    size_t count = 0;
    waiting *one;
    (void)pthread_mutex_lock(&lock);
    while (count < fetch->limit && count < ROWS_MAX && (one = earliest_due(at))) {
        memcpy(one->owner, fetch->owner, sizeof one->owner);
        one->leased_until = at + fetch->lease;
        taken[count] = *one;
        taken[count++].operation = memory_copy(one->operation, one->size);
    }
    (void)pthread_mutex_unlock(&lock);
    return count;
}

static int visit_waiting(const waiting *w, wb_delayed_fn visit, void *argument)
{
    const wb_delayed message = { GROWN.struct_size = sizeof message, .destination = w->destination,
                                 .destination_size = w->destination_size, .id = w->id, .id_size = w->id_size,
                                 .retries = w->retries, .failures = w->failures, .due = w->due,
                                 .operation = w->operation, .operation_size = w->size,
                                 .leased_until = w->leased_until };
    return visit(argument, &message);
}

static int fetch(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit, void *argument,
                 wb_error *error)
{
    waiting *taken = calloc(ROWS_MAX, sizeof *taken);
    int result = WB_OK;
    (void)session, (void)error;
    if (!taken)
        abort();
    SEES(wb_delayed_fetch, fetch);
    const size_t count = lease(fetch, taken);
    for (size_t i = 0; i < count; i++) {
        if (result == WB_OK)
            result = visit_waiting(&taken[i], visit, argument);
        free(taken[i].operation);
    }
    free(taken);
    return result;
}

/* What is to be done to a row that is its owner's, or anybody's when nobody is named. */
typedef enum { REMOVE, RELEASE, COUNT_FAILURE, CANCEL, RESCHEDULE } change;

static void change_one(change what, const char *owner, wb_delayed_key *key, int64_t due)
{
    waiting *w = find_waiting(key);
    const int is_free = what == CANCEL || what == RESCHEDULE;
    key->was_there = w && (!owner || (w->leased_until && memcmp(w->owner, owner, sizeof w->owner) == 0)) &&
                     !(is_free && w->leased_until);
    if (!key->was_there)
        return;
    if (what == REMOVE || what == CANCEL) {
        free(w->operation);
        *w = delayed[--delayed_count];
        return;
    }
    w->failures += what == COUNT_FAILURE;
    w->leased_until = 0;
    w->due = due ? due : w->due;
}

static int change_all(change what, const char *owner, wb_delayed_key *keys, size_t count, int64_t due)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        change_one(what, owner, &keys[i], due);
    (void)pthread_mutex_unlock(&lock);
    return WB_OK;
}

static int remove_rows(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count, wb_error *error)
{
    (void)session, (void)error;
    return change_all(REMOVE, owner, keys, count, 0);
}

static int count_failure(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count, int64_t due,
                         wb_error *error)
{
    (void)session, (void)error;
    return change_all(COUNT_FAILURE, owner, keys, count, due);
}

static int release(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count, int64_t due,
                   wb_error *error)
{
    (void)session, (void)error;
    return change_all(RELEASE, owner, keys, count, due);
}

static int cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count, wb_error *error)
{
    (void)session, (void)error;
    return change_all(CANCEL, NULL, keys, count, 0);
}

static int reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count, int64_t due, wb_error *error)
{
    (void)session, (void)error;
    return change_all(RESCHEDULE, NULL, keys, count, due);
}

static int list(wb_storage_session *session, const wb_delayed_filter *filter, wb_delayed_fn visit, void *argument,
                wb_error *error)
{
    int result = WB_OK;
    (void)session, (void)filter, (void)error;
    SEES(wb_delayed_filter, filter);
    for (size_t i = 0; result == WB_OK && i < delayed_count; i++)
        result = visit_waiting(&delayed[i], visit, argument);
    return result;
}

const wb_delayed_ops memory_delayed = {
    GROWN.struct_size = sizeof memory_delayed,
    .initialize = initialize,
    .store = store,
    .next = next,
    .fetch = fetch,
    .remove = remove_rows,
    .increment_failure_count = count_failure,
    .release = release,
    .list = list,
    .cancel = cancel,
    .reschedule = reschedule,
};

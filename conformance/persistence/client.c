/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients: sessions on the stores of the persistence kit.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

/* No case stores more records than some of these delete. */
#define CLEAN_UP_STEP 10000
#define CLEAN_UP_TRIES 20
/* Nor more rows; who is asked for some and visits so many will not end. */
#define VISITS_MAX 1000000

/* ---- opening ---------------------------------------------------------------------------- */

/* What a case has left that died before it could empty anything is its failure and nobody else's. A plugin that cannot
 * remove it goes on with it. */
static void remove_what_is_left(wb_kit *kit, wb_store *store)
{
    wb_error ignored = { 0 };
    if (((wb_stores_kit *)kit)->is_behind_failure && (kit->plugin->capabilities & WB_CAP_REMOVE_TABLES))
        (void)store->ops->uninstall(store->instance, &ignored);
}

static wb_store *store_of(wb_kit *kit, size_t which)
{
    wb_store *store = &((wb_stores_kit *)kit)->stores[which];
    char name[sizeof store->name];
    wb_error error = { 0 };

    if (store->instance)
        return store;
    wb_store_name(kit, which, name, sizeof name);
    if (!wb_store_create(kit, store, name))
        return NULL;
    remove_what_is_left(kit, store);
    int r = store->ops->install(store->instance, &error);
    if (wb_kit_check(kit, r == WB_OK, "could not install \"%s\": %s", name, error.text))
        return store;
    store->ops->destroy(store->instance);
    store->instance = NULL;
    return NULL;
}

static void close_client(void *argument)
{
    wb_client_close(argument);
    free(argument);
}

void wb_client_close(wb_client *client)
{
    if (client->session)
        client->ops->close(client->session);
    client->session = NULL;
}

static wb_client *make_client(wb_kit *kit, wb_store *store)
{
    wb_client *client = wb_alloc_zero(1, sizeof *client);
    wb_kit_defer(kit, close_client, client);
    client->kit = kit;
    client->ops = store->ops;
    client->store = store;
    return client;
}

wb_client *wb_client_open_on(wb_kit *kit, wb_store *store)
{
    wb_client *client = make_client(kit, store);
    int r = client->ops->open(store->instance, &client->session, &client->error);
    return wb_client_check(client, r, WB_OK, "open a session") ? client : NULL;
}

static int open_until_deadline(wb_client *client)
{
    const int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    int r;
    while ((r = client->ops->open(client->store->instance, &client->session, &client->error)) != WB_OK &&
           wb_clock_monotonic() < deadline)
        wb_clock_pause(20 * WB_MILLISECOND, NULL);
    return r;
}

wb_client *wb_client_open_patiently(wb_kit *kit, wb_store *store)
{
    wb_client *client = make_client(kit, store);
    int r = open_until_deadline(client);
    return wb_client_check(client, r, WB_OK, "open a session again") ? client : NULL;
}

/* What cannot be emptied would be the failure of all cases to come. */
static void make_anew(wb_kit *kit, wb_store *store)
{
    wb_error error = { 0 };
    if (!(kit->plugin->capabilities & WB_CAP_REMOVE_TABLES))
        return;
    int r = store->ops->uninstall(store->instance, &error);
    if (r == WB_OK)
        r = store->ops->install(store->instance, &error);
    wb_kit_note(kit, "what is left is removed with its tables: %s", r == WB_OK ? "done" : error.text);
}

typedef struct leftovers {
    wb_kit *kit;
    wb_store *store;
} leftovers;

/* By the case that has left it, behind all else: whatever fails here is its failure. */
static void empty_behind(void *argument)
{
    leftovers *of = argument;
    wb_client client = { .kit = of->kit, .ops = of->store->ops, .store = of->store };
    int good = 1;
    if (of->store->instance && open_until_deadline(&client) == WB_OK) {
        good = wb_kit_check(of->kit, wb_client_empties(&client), "what the case has left cannot be removed");
        wb_client_close(&client);
    }
    if (!good)
        make_anew(of->kit, of->store);
    free(of);
}

static void empty_afterwards(wb_kit *kit, wb_store *store)
{
    leftovers *of = wb_alloc_zero(1, sizeof *of);
    *of = (leftovers){ kit, store };
    wb_kit_defer(kit, empty_behind, of);
}

wb_client *wb_client_open(wb_kit *kit, size_t which)
{
    wb_store *store = store_of(kit, which);
    const int is_first = store && store->emptied_for != kit->number;
    if (is_first)
        empty_afterwards(kit, store); /* before its clients: it is called when they are closed */
    wb_client *client = store ? wb_client_open_on(kit, store) : NULL;
    if (!client || !is_first)
        return client;
    store->emptied_for = kit->number;
    return wb_client_empties(client) ? client : NULL;
}

/* More than any case has had open at once, of those that are before it. */
#define KEPT_MAX 96

wb_client *wb_client_open_wired(wb_kit *kit, wb_wires *ret_before)
{
    const wb_wires *first = &((wb_stores_kit *)kit)->wires;
    for (int i = 0; i < KEPT_MAX; i++) {
        wb_wires_remember(ret_before);
        wb_client *client = wb_client_open(kit, 0);
        if (!client || wb_wires_find(ret_before, NULL, 0))
            return client;
        if (!wb_wires_find(first, NULL, 0)) {
            wb_kit_skip(kit, "%s has no connection to a server", kit->plugin->name);
            return NULL;
        }
    }
    wb_kit_skip(kit, "%s shares connections among sessions: which is whose cannot be told", kit->plugin->name);
    return NULL;
}

/* ---- calls ------------------------------------------------------------------------------ */

int wb_client_check(wb_client *client, int result, int wanted, const char *doing)
{
    return wb_kit_check(client->kit, result == wanted, "could not %s: %s instead of %s%s%s", doing,
                        wb_result_name(result), wb_result_name(wanted),
                        result == WB_OK ? "" : ": ", result == WB_OK ? "" : client->error.text);
}

int wb_client_begin_marking(wb_client *client, uint64_t batch, wb_claim *claims, size_t count,
                            const wb_mark *marks, size_t mark_count)
{
    wb_begin begin = { .struct_size = sizeof begin,
                       .marks = marks,
                       .mark_count = mark_count,
                       .batch = batch,
                       .claims = claims,
                       .claim_count = count };
    for (size_t i = 0; i < count; i++)
        claims[i].duplicate_of = WB_NOT_ANSWERED;
    wb_error_clear(&client->error);
    return client->ops->begin(client->session, &begin, &client->error);
}

int wb_client_begin(wb_client *client, uint64_t batch, wb_claim *claims, size_t count)
{
    return wb_client_begin_marking(client, batch, claims, count, NULL, 0);
}

int wb_client_commit_releasing(wb_client *client, uint64_t batch, const void *operations,
                               size_t size, const wb_claim *released, size_t released_count)
{
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = batch,
                         .operations = operations,
                         .operations_size = size,
                         .released = released,
                         .released_count = released_count,
                         .failed_item = 0 };
    wb_error_clear(&client->error);
    int r = client->ops->commit(client->session, &commit, &client->error);
    if (r != WB_OK)
        wb_kit_check(client->kit, commit.failed_item == SIZE_MAX,
                     "a commit that failed (%s) blames item %zu although nothing was deferred",
                     wb_result_name(r), commit.failed_item);
    return r;
}

int wb_client_commit(wb_client *client, uint64_t batch, const void *operations, size_t size)
{
    return wb_client_commit_releasing(client, batch, operations, size, NULL, 0);
}

int wb_client_rollback(wb_client *client)
{
    wb_error_clear(&client->error);
    return client->ops->rollback(client->session, &client->error);
}

int wb_client_mark(wb_client *client, uint64_t batch, const void *remaining, size_t size)
{
    const wb_mark mark = { batch, remaining, size };
    wb_error_clear(&client->error);
    return client->ops->mark(client->session, &mark, 1, &client->error);
}

int wb_client_clean_up(wb_client *client, uint64_t before, size_t limit, size_t *ret_deleted)
{
    *ret_deleted = 0;
    wb_error_clear(&client->error);
    return client->ops->clean_up(client->session, before, limit, ret_deleted, &client->error);
}

static int note_row(void *argument, const wb_pending *row)
{
    wb_found *found = argument;
    if (found->count == 0) {
        found->operations = wb_alloc(row->operations_size);
        if (row->operations_size)
            memcpy(found->operations, row->operations, row->operations_size);
        found->operations_size = row->operations_size;
    }
    if (found->count < WB_FOUND_MAX)
        found->batches[found->count++] = row->batch;
    return ++found->visits < VISITS_MAX ? WB_OK : WB_ABORT;
}

static void find_nothing(wb_found *found)
{
    found->count = found->visits = 0;
    found->operations = NULL;
}

int wb_client_sweep(wb_client *client, uint64_t before, size_t limit, wb_found *found)
{
    find_nothing(found);
    wb_error_clear(&client->error);
    return client->ops->sweep(client->session, before, limit, note_row, found, &client->error);
}

int wb_client_pending(wb_client *client, const uint64_t *batches, size_t count, wb_found *found)
{
    find_nothing(found);
    wb_error_clear(&client->error);
    return client->ops->pending(client->session, batches, count, note_row, found, &client->error);
}

int wb_client_next(wb_client *client, uint64_t after, uint64_t before, wb_found *found)
{
    find_nothing(found);
    wb_error_clear(&client->error);
    return client->ops->next_pending(client->session, after, before, note_row, found, &client->error);
}

/* ---- what cases do all the time ---------------------------------------------------------- */

int wb_client_takes(wb_client *client, uint64_t batch, wb_claim *claims, size_t count)
{
    if (!wb_client_check(client, wb_client_begin(client, batch, claims, count), WB_OK, "begin"))
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (wb_kit_check(client->kit, claims[i].duplicate_of == 0,
                         "id \"%.*s\" is said to belong to batch %" PRIu64 ", but nobody had it",
                         (int)claims[i].id_size, (const char *)claims[i].id, claims[i].duplicate_of))
            continue;
        (void)wb_client_rollback(client); /* or it would keep the others waiting */
        return 0;
    }
    return 1;
}

int wb_client_parks(wb_client *client, uint64_t batch, const char *operations)
{
    return wb_client_takes(client, batch, NULL, 0) &&
           wb_client_check(client, wb_client_commit(client, batch, operations, strlen(operations)),
                           WB_OK, "commit a row without a claim");
}

int wb_client_stores(wb_client *client, uint64_t batch, const char *id, const char *operations)
{
    wb_claim claim = { id, strlen(id), 0 };
    return wb_client_takes(client, batch, &claim, 1) &&
           wb_client_check(client,
                           wb_client_commit(client, batch, operations,
                                            operations ? strlen(operations) : 0),
                           WB_OK, "commit");
}

int wb_client_begin_patiently(wb_client *client, uint64_t batch, wb_claim *claims, size_t count)
{
    const int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    int r;
    while ((r = wb_client_begin(client, batch, claims, count)) == WB_RETRY && client->error.cause == WB_CAUSE_SERVER &&
           wb_clock_monotonic() < deadline)
        wb_clock_pause(20 * WB_MILLISECOND, NULL);
    return r;
}

/* What begin() answered of it is the owner. */
static int check_owner(wb_client *client, int r, const wb_claim *claim, uint64_t owner)
{
    if (!wb_client_check(client, r, WB_OK, "claim an id to see whose it is"))
        return 0;
    r = wb_client_rollback(client);
    return wb_client_check(client, r, WB_OK, "roll back") &&
           wb_kit_check(client->kit, claim->duplicate_of == owner,
                        "id \"%.*s\" belongs to batch %" PRIu64 ", not to %" PRIu64 " (0: to nobody)",
                        (int)claim->id_size, (const char *)claim->id, claim->duplicate_of, owner);
}

int wb_client_finds_owner(wb_client *client, const void *id, size_t size, uint64_t owner)
{
    wb_claim claim = { id, size, 0 };
    return check_owner(client, wb_client_begin(client, WB_BATCH_OF_LOOKS, &claim, 1), &claim, owner);
}

int wb_client_finds_owner_soon(wb_client *client, const void *id, size_t size, uint64_t owner)
{
    wb_claim claim = { id, size, 0 };
    return check_owner(client, wb_client_begin_patiently(client, WB_BATCH_OF_LOOKS, &claim, 1), &claim, owner);
}

int wb_client_finds_pending(wb_client *client, uint64_t batch, const void *operations, size_t size)
{
    wb_found found;
    int r = wb_client_pending(client, &batch, 1, &found), good = 0;
    if (!wb_client_check(client, r, WB_OK, "read a pending row"))
        good = 0;
    else if (!operations)
        good = wb_kit_check(client->kit, found.count == 0, "there is a pending row and should be none");
    else if (wb_kit_check(client->kit, found.count == 1, "%zu pending rows instead of 1", found.count))
        good = wb_kit_check(client->kit, found.batches[0] == batch, "the row says another batch") &&
               wb_kit_check(client->kit, found.operations_size == size,
                            "a pending row of %zu bytes instead of %zu", found.operations_size, size) &&
               wb_kit_check(client->kit, memcmp(found.operations, operations, size) == 0,
                            "the bytes of a pending row have changed");
    free(found.operations);
    return good;
}

static int mark_all(wb_client *client, const wb_found *found)
{
    wb_mark *marks = wb_alloc_zero(found->count, sizeof *marks);
    for (size_t i = 0; i < found->count; i++)
        marks[i].batch = found->batches[i];
    int r = client->ops->mark(client->session, marks, found->count, &client->error);
    free(marks);
    return wb_client_check(client, r, WB_OK, "mark what was swept");
}

/* The oldest are swept first: if the first is there again, it was not marked. */
static int marks_pending(wb_client *client)
{
    wb_found *found = wb_alloc(sizeof *found);
    uint64_t first = 0;
    int good;
    do {
        int r = wb_client_sweep(client, WB_BATCH_END, WB_FOUND_MAX, found);
        free(found->operations);
        good = wb_client_check(client, r, WB_OK, "sweep") &&
               wb_kit_check(client->kit, !found->count || found->batches[0] != first,
                            "the pending row of batch %" PRIu64 " was marked and is there", first) &&
               mark_all(client, found);
        first = found->count ? found->batches[0] : 0;
    } while (good && found->count);
    free(found);
    return good;
}

static int deletes_records(wb_client *client)
{
    size_t deleted = 1;
    int good = 1;
    for (int i = 0; good && deleted && i < CLEAN_UP_TRIES; i++) {
        int r = wb_client_clean_up(client, WB_BATCH_END, CLEAN_UP_STEP, &deleted);
        good = wb_client_check(client, r, WB_OK, "clean up");
    }
    return good && wb_kit_check(client->kit, deleted == 0, "the store cannot be emptied");
}

int wb_client_empties(wb_client *client)
{
    const uint64_t capabilities = client->kit->plugin->capabilities;
    return (!(capabilities & WB_CAP_OUTBOX) || marks_pending(client)) &&
           (!(capabilities & (WB_CAP_OUTBOX | WB_CAP_REMEMBER)) || deletes_records(client)) &&
           wb_client_forgets(client);
}

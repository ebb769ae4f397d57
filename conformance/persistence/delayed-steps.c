/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: calls of the delayed message store, as its cases make them.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"
#include "core/base/arena.h"

#define NOT_ANSWERED (-77)

const char wb_owner_a[WB_DELAYED_OWNER_SIZE] = "conformance\0\377'\\A";
const char wb_owner_b[WB_DELAYED_OWNER_SIZE] = "conformance\0\377'\\B";

static const wb_delayed_ops *ops_of(const wb_client *client)
{
    return client->ops->delayed;
}

wb_delayed wb_waiting(const char *id, int64_t due)
{
    return (wb_delayed){ .struct_size = sizeof(wb_delayed),
                         .destination = "billing",
                         .destination_size = 7,
                         .id = id,
                         .id_size = strlen(id),
                         .due = due,
                         .operation = id,
                         .operation_size = strlen(id) };
}

wb_delayed_key wb_waiting_key(const wb_delayed *message)
{
    return (wb_delayed_key){ .destination = message->destination,
                             .destination_size = message->destination_size,
                             .id = message->id,
                             .id_size = message->id_size,
                             .retries = message->retries,
                             .was_there = NOT_ANSWERED };
}

/* ---- what is visited --------------------------------------------------------------------- */

static int is_same(const void *left, size_t left_size, const void *right, size_t right_size)
{
    return left_size == right_size && (!left_size || memcmp(left, right, left_size) == 0);
}

/* A list need not show the operation. */
static void compare(const wb_seen *seen, const wb_delayed *row)
{
    wb_kit *kit = seen->kit;
    const size_t at = seen->count;
    if (!wb_kit_check(kit, at < seen->expected_count, "more than %zu rows", seen->expected_count))
        return;
    const wb_delayed *want = &seen->expected[at];
    wb_kit_check(kit, is_same(row->destination, row->destination_size, want->destination,
                              want->destination_size),
                 "row %zu has another destination: %zu bytes of %zu", at, row->destination_size,
                 want->destination_size);
    wb_kit_check(kit, is_same(row->id, row->id_size, want->id, want->id_size),
                 "row %zu has another id: %zu bytes of %zu", at, row->id_size, want->id_size);
    wb_kit_check(kit, row->retries == want->retries, "row %zu has %u retries of %u", at,
                 row->retries, want->retries);
    wb_kit_check(kit, row->failures == want->failures, "row %zu has %u failures of %u", at,
                 row->failures, want->failures);
    wb_kit_check(kit, row->due >= want->due && row->due - want->due < WB_ROUNDING,
                 "row %zu is due %" PRId64 " ns from when it should", at, row->due - want->due);
    wb_kit_check(kit, !row->operation || is_same(row->operation, row->operation_size,
                                                 want->operation, want->operation_size),
                 "row %zu has another operation: %zu bytes of %zu", at, row->operation_size,
                 want->operation_size);
}

/* Its place in the table; where the table is full, or the id long, none. */
static uint64_t *find_place(wb_places *places, const char *id, size_t size, int is_new)
{
    if (size >= sizeof places->of[0].id || memchr(id, '\0', size))
        return NULL;
    for (size_t i = 0; i < places->count; i++)
        if (strlen(places->of[i].id) == size && memcmp(places->of[i].id, id, size) == 0)
            return &places->of[i].place;
    if (!is_new || places->count == sizeof places->of / sizeof places->of[0])
        return NULL;
    memcpy(places->of[places->count].id, id, size);
    return &places->of[places->count++].place;
}

static void note_place(wb_places *places, const wb_delayed *row)
{
    uint64_t *place = find_place(places, row->id, row->id_size, 1);
    if (place)
        *place = WB_HAS(row, wb_delayed, place) ? row->place : 0;
}

static int note(void *argument, const wb_delayed *row)
{
    wb_seen *seen = argument;
    const size_t used = strlen(seen->ids);
    if (seen->places)
        note_place(seen->places, row);
    if (seen->expected)
        compare(seen, row);
    (void)snprintf(seen->ids + used, sizeof seen->ids - used, "%.*s ", (int)row->id_size, row->id);
    seen->last = *row;
    seen->count++;
    return seen->meanwhile ? seen->meanwhile(seen->argument) : WB_OK;
}

static void forget(wb_client *client, wb_seen *seen)
{
    wb_error_clear(&client->error);
    seen->kit = client->kit;
    seen->count = 0;
    seen->ids[0] = '\0';
    seen->places = NULL;
}

/* ---- calls ------------------------------------------------------------------------------- */

int wb_delayed_store(wb_client *client, const wb_delayed *messages, size_t count)
{
    wb_error_clear(&client->error);
    return ops_of(client)->store(client->session, messages, count, &client->error);
}

int wb_delayed_next(wb_client *client, int64_t *ret_due, int64_t *ret_now)
{
    *ret_due = *ret_now = NOT_ANSWERED;
    wb_error_clear(&client->error);
    return ops_of(client)->next(client->session, ret_due, ret_now, &client->error);
}

int wb_delayed_fetch_into(wb_client *client, const wb_delayed_fetch *what, wb_seen *seen)
{
    forget(client, seen);
    seen->places = &client->places;
    return ops_of(client)->fetch(client->session, what, note, seen, &client->error);
}

int wb_delayed_list_into(wb_client *client, const wb_delayed_filter *filter, wb_seen *seen)
{
    forget(client, seen);
    return ops_of(client)->list(client->session, filter, note, seen, &client->error);
}

static void set_places(wb_client *client, wb_delayed_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t *place = find_place(&client->places, keys[i].id, keys[i].id_size, 0);
        keys[i].was_there = NOT_ANSWERED;
        keys[i].place = place ? *place : 0;
    }
}

int wb_delayed_change(wb_client *client, wb_change change, const char *owner, wb_delayed_key *keys,
                      size_t count, int64_t due)
{
    const wb_delayed_ops *ops = ops_of(client);
    wb_storage_session *session = client->session;
    wb_error *error = &client->error;
    set_places(client, keys, count);
    wb_error_clear(error);
    switch (change) {
    case WB_REMOVE:
        return ops->remove(session, owner, keys, count, error);
    case WB_INCREMENT:
        return ops->increment_failure_count(session, owner, keys, count, due, error);
    case WB_RELEASE:
        return ops->release(session, owner, keys, count, due, error);
    case WB_CANCEL:
        return ops->cancel(session, keys, count, error);
    case WB_RESCHEDULE:
        break;
    }
    return ops->reschedule(session, keys, count, due, error);
}

int wb_delayed_ride(wb_client *client, wb_delayed_key *keys, size_t count, const wb_delayed_fetch *what,
                    wb_seen *seen)
{
    const wb_delayed_ops *ops = ops_of(client);
    if (!WB_HAS(ops, wb_delayed_ops, begin_fetch)) {
        int r = wb_delayed_change(client, WB_REMOVE, what->owner, keys, count, 0);
        return r == WB_OK ? wb_delayed_fetch_into(client, what, seen) : r;
    }
    int r = wb_delayed_begin(client, keys, count, what);
    return r == WB_OK ? wb_delayed_end(client, seen) : r;
}

int wb_delayed_begin(wb_client *client, wb_delayed_key *keys, size_t count, const wb_delayed_fetch *what)
{
    set_places(client, keys, count);
    wb_error_clear(&client->error);
    return ops_of(client)->begin_fetch(client->session, keys, count, what, &client->error);
}

int wb_delayed_end(wb_client *client, wb_seen *seen)
{
    forget(client, seen);
    seen->places = &client->places;
    return ops_of(client)->end_fetch(client->session, note, seen, &client->error);
}

/* ---- what cases do all the time ------------------------------------------------------------- */

wb_delayed_fetch wb_fetch_of(const char *owner, int64_t at)
{
    return (wb_delayed_fetch){ .struct_size = sizeof(wb_delayed_fetch),
                               .at = at,
                               .limit = 100,
                               .owner = owner,
                               .lease = WB_LONG_LEASE };
}

int wb_client_delays(wb_client *client, const wb_delayed *messages, size_t count)
{
    return wb_client_check(client, wb_delayed_store(client, messages, count), WB_OK,
                           "store delayed messages");
}

int wb_client_delay(wb_client *client, const char *id, int64_t due)
{
    const wb_delayed message = wb_waiting(id, due);
    return wb_client_delays(client, &message, 1);
}

int wb_client_fetches(wb_client *client, const wb_delayed_fetch *what, const char *ids)
{
    wb_seen seen = { .count = 0 };
    return wb_client_check(client, wb_delayed_fetch_into(client, what, &seen), WB_OK,
                           "fetch what is due") &&
           wb_kit_check(client->kit, strcmp(seen.ids, ids) == 0, "\"%s\" was fetched, not \"%s\"",
                        seen.ids, ids);
}

int wb_client_takes_due(wb_client *client, const char *owner, int64_t at, const char *ids)
{
    const wb_delayed_fetch what = wb_fetch_of(owner, at);
    return wb_client_fetches(client, &what, ids);
}

int wb_client_has_waiting(wb_client *client, const char *ids)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .count = 0 };
    return wb_client_check(client, wb_delayed_list_into(client, &all, &seen), WB_OK,
                           "list what waits") &&
           wb_kit_check(client->kit, strcmp(seen.ids, ids) == 0, "\"%s\" wait, not \"%s\"",
                        seen.ids, ids);
}

int wb_client_changes(wb_client *client, wb_change change, const char *owner, const char *id,
                      int64_t due, int was_there)
{
    static const char *const doing[] = { "remove", "count a failure of", "give back", "cancel",
                                         "reschedule" };
    const wb_delayed message = wb_waiting(id, 0);
    wb_delayed_key key = wb_waiting_key(&message);
    int r = wb_delayed_change(client, change, owner, &key, 1, due);
    return wb_client_check(client, r, WB_OK, doing[change]) &&
           wb_kit_check(client->kit, key.was_there == was_there,
                        "to %s \"%s\": was_there is %d and should be %d", doing[change], id,
                        key.was_there, was_there);
}

int wb_client_gives_back(wb_client *client, const char *owner, const char *ids)
{
    char id[WB_DELAYED_ID_MAX + 1];
    int length;
    for (; sscanf(ids, "%255s%n", id, &length) == 1; ids += length)
        if (!wb_client_changes(client, WB_RELEASE, owner, id, 0, 1))
            return 0;
    return 1;
}

int wb_client_asks_time(wb_client *client, int64_t *ret_now)
{
    int64_t due;
    return wb_client_check(client, wb_delayed_next(client, &due, ret_now), WB_OK,
                           "ask what is next");
}

int wb_client_is_next(wb_client *client, int64_t due)
{
    int64_t now, next;
    return wb_client_check(client, wb_delayed_next(client, &next, &now), WB_OK,
                           "ask what is next") &&
           wb_kit_check(client->kit, next >= due && (uint64_t)next - (uint64_t)due < WB_ROUNDING,
                        "next() says %" PRId64 " and should %" PRId64, next, due);
}

/* ---- an empty store --------------------------------------------------------------------- */

#define FORGOTTEN_AT_ONCE 500
#define FORGETTING_TRIES 1000

typedef struct {
    char text[FORGOTTEN_AT_ONCE][2][256];
    wb_delayed_key keys[FORGOTTEN_AT_ONCE];
    size_t count;
} found_keys;

static int note_key(void *argument, const wb_delayed *row)
{
    found_keys *found = argument;
    if (found->count == FORGOTTEN_AT_ONCE)
        return WB_OK; /* a limit that is ignored is another case's */
    char(*text)[256] = found->text[found->count];
    memcpy(text[0], row->destination, row->destination_size);
    memcpy(text[1], row->id, row->id_size);
    found->keys[found->count++] = (wb_delayed_key){ .destination = text[0],
                                                    .destination_size = row->destination_size,
                                                    .id = text[1],
                                                    .id_size = row->id_size,
                                                    .retries = row->retries };
    return WB_OK;
}

/* @return how many there were, or -1: it was noted. */
static int forget_some(wb_client *client, found_keys *found)
{
    const wb_delayed_filter some = { .struct_size = sizeof some, .limit = FORGOTTEN_AT_ONCE };
    found->count = 0;
    int r = ops_of(client)->list(client->session, &some, note_key, found, &client->error);
    if (!wb_client_check(client, r, WB_OK, "list what waits"))
        return -1;
    if (!found->count)
        return 0;
    r = wb_delayed_change(client, WB_REMOVE, NULL, found->keys, found->count, 0);
    return wb_client_check(client, r, WB_OK, "remove what waits") ? (int)found->count : -1;
}

/* What remove() says is not believed here; that is for the cases. */
int wb_client_forgets(wb_client *client)
{
    if (!(client->kit->plugin->capabilities & WB_CAP_DELAY_STORE))
        return 1;
    found_keys *found = wb_alloc_zero(1, sizeof *found);
    size_t tries = FORGETTING_TRIES;
    int some;
    while ((some = forget_some(client, found)) > 0 && --tries)
        ;
    free(found);
    return wb_kit_check(client->kit, tries > 0, "what waits cannot be removed") && some == 0;
}

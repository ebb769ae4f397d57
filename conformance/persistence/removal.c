/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: tables that go, or become another endpoint's; what was begun of that, and subscriptions, which are
 * noted. Endpoints are the case's own.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"
#include "core/message/ids.h"

/* How long the turn of a session that ended may stay where it was. */
#define SOON (20 * WB_SECOND)
#define POLL WB_MILLISECOND

static void destroy_store(void *argument)
{
    wb_store *store = argument;
    wb_error ignored;
    (void)store->ops->uninstall(store->instance, &ignored);
    store->ops->destroy(store->instance);
    free(store);
}

/* An endpoint that nobody has; NULL: it was noted. */
static wb_store *make(wb_kit *kit)
{
    wb_store *store = wb_alloc_zero(1, sizeof *store);
    char id[WB_GENERATED_ID_SIZE];
    wb_id_generate(id);
    if (!wb_store_create(kit, store, id)) {
        free(store);
        return NULL;
    }
    wb_kit_defer(kit, destroy_store, store);
    return store;
}

static int install(wb_kit *kit, wb_store *store)
{
    wb_error error = { 0 };
    int r = store->ops->install(store->instance, &error);
    return wb_kit_check(kit, r == WB_OK, "install: %s: %s", wb_result_name(r), error.text);
}

static wb_store *make_installed(wb_kit *kit)
{
    wb_store *store = make(kit);
    return store && install(kit, store) ? store : NULL;
}

static int verify(wb_kit *kit, wb_store *store, int is_there)
{
    wb_error error = { 0 };
    int r = store->ops->verify(store->instance, &error);
    return wb_kit_check(kit, is_there ? r == WB_OK : r != WB_OK && error.cause == WB_CAUSE_MISSING,
                        "verify of tables that are %s: %s, cause %d: %s", is_there ? "there" : "gone", wb_result_name(r),
                        error.cause, error.text);
}

static int uninstall(wb_kit *kit, wb_store *store)
{
    wb_error error = { 0 };
    int r = store->ops->uninstall(store->instance, &error);
    return wb_kit_check(kit, r == WB_OK, "uninstall: %s: %s", wb_result_name(r), error.text);
}

static int rename_it(wb_kit *kit, wb_store *store, const wb_store *former)
{
    wb_error error = { 0 };
    int r = store->ops->rename(store->instance, former->name, &error);
    return wb_kit_check(kit, r == WB_OK, "rename: %s: %s", wb_result_name(r), error.text);
}

/* Names that are two: in case, at their end, where one begins like the other, in what SQL has a meaning for; long ones, too. */
#define NAMES 7
#define NAME_MAX_SIZE 200

static int try_to_install(wb_kit *kit, wb_store *store, const char *name, wb_error *error)
{
    int r = wb_store_try(kit, store, name, wb_store_delays(kit), error);
    if (r != WB_OK || !store->instance) {
        free(store);
        return r == WB_OK ? WB_FATAL : r;
    }
    wb_kit_defer(kit, destroy_store, store);
    return store->ops->install(store->instance, error);
}

/* A store may have no place for such a name, or none beside the others: then create() or install() says so, and the case
 * is tried with the others and skipped. @return NULL: it is so, or it failed. */
static wb_store *make_named(wb_kit *kit, const char *id, size_t which)
{
    static const char *const ends[NAMES] = { "", "a", "A", ".", "_", "a", "b" };
    wb_store *store = wb_alloc_zero(1, sizeof *store);
    wb_error error = { 0 };
    char name[NAME_MAX_SIZE + 1] = "";
    const size_t size = strlen(id), kept = which < NAMES - 2 ? size : NAME_MAX_SIZE - 1;
    memset(name, 'n', kept);
    memcpy(name, id, size);
    memcpy(name + kept, ends[which], strlen(ends[which]));
    int r = try_to_install(kit, store, name, &error);
    if (!wb_store_refuses(kit, name, r, &error))
        wb_kit_check(kit, r == WB_OK, "a name of %zu bytes: %s: %s", strlen(name), wb_result_name(r), error.text);
    return r == WB_OK ? store : NULL;
}

/* A batch of one id with operations. */
static int fill(wb_kit *kit, wb_store *store)
{
    wb_client *client = wb_client_open_on(kit, store);
    const int is_filled = client && wb_client_stores(client, WB_BATCH(1), "order-1", "operations");
    if (client)
        wb_client_close(client);
    return is_filled;
}

/* Something is done on a session. @return whether it went as it should. */
typedef int step(wb_client *client);

static int does(wb_kit *kit, wb_store *store, step *what)
{
    wb_client *client = wb_client_open_on(kit, store);
    const int is_done = client && what(client);
    if (client)
        wb_client_close(client);
    return is_done;
}

static int delays(wb_client *client)
{
    int64_t now;
    return wb_client_asks_time(client, &now) && wb_client_delay(client, "late", now + WB_LONG_LEASE);
}

static int finds_none_delayed(wb_client *client)
{
    return wb_client_has_waiting(client, "");
}

/* ---- names ---------------------------------------------------------------------------- */

static int fill_named(wb_kit *kit, wb_store *store, size_t which)
{
    char operations[2] = { (char)('a' + which), '\0' };
    wb_client *client = wb_client_open_on(kit, store);
    const int is_filled = client && wb_client_stores(client, WB_BATCH(which + 1), "order-1", operations) &&
                          wb_client_parks(client, WB_PARKED(1), operations);
    if (client)
        wb_client_close(client);
    return is_filled;
}

static void check_named(wb_kit *kit, wb_store *store, size_t which)
{
    char operations[2] = { (char)('a' + which), '\0' };
    wb_client *client = wb_client_open_on(kit, store);
    if (!client)
        return;
    if (!wb_client_finds_owner(client, "order-1", 7, WB_BATCH(which + 1)) ||
        !wb_client_finds_pending(client, WB_PARKED(1), operations, 1))
        wb_kit_note(kit, "of the endpoint \"%s\"", store->name);
    wb_client_close(client); /* before its store goes */
}

/* Each has its own, and keeps it when the first of them goes. */
static void names_are_told_apart(wb_kit *kit)
{
    wb_store *stores[NAMES];
    char id[WB_GENERATED_ID_SIZE];
    wb_id_generate(id);
    for (size_t i = 0; i < NAMES; i++) {
        stores[i] = make_named(kit, id, i);
        if (kit->is_failed || (stores[i] && !fill_named(kit, stores[i], i)))
            return;
    }
    if (stores[0] && uninstall(kit, stores[0]))
        (void)verify(kit, stores[0], 0);
    for (size_t i = 1; i < NAMES; i++)
        if (stores[i])
            check_named(kit, stores[i], i);
}

/* ---- uninstall ------------------------------------------------------------------------ */

static void removes_its_own(wb_kit *kit)
{
    wb_store *store = make_installed(kit), *other = make_installed(kit);
    if (!store || !other || !fill(kit, store) || !fill(kit, other))
        return;
    for (int i = 0; i < 2; i++)
        if (!uninstall(kit, store) || !verify(kit, store, 0))
            return;
    (void)verify(kit, other, 1);
    wb_client *client = wb_client_open_on(kit, other);
    if (!client)
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, WB_BATCH(1));
    (void)wb_client_finds_pending(client, WB_BATCH(1), "operations", 10);
    wb_client_close(client); /* before its store goes */
}

static void installs_again_empty(wb_kit *kit)
{
    wb_store *store = make_installed(kit);
    if (!store || !fill(kit, store) || !uninstall(kit, store) || !install(kit, store) || !verify(kit, store, 1))
        return;
    wb_client *client = wb_client_open_on(kit, store);
    if (!client)
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, 0);
    (void)wb_client_finds_pending(client, WB_BATCH(1), NULL, 0);
    wb_client_close(client);
}

/* Of an endpoint whose messages a store delays no more: what was ever made goes, with what waits. */
static void removes_delayed(wb_kit *kit)
{
    wb_store *store = make_installed(kit);
    wb_store *later = wb_alloc_zero(1, sizeof *later);
    if (!store || !wb_store_create_with(kit, later, store->name, WB_DELAYS_BY_NOBODY)) {
        free(later);
        return;
    }
    wb_kit_defer(kit, destroy_store, later);
    if (!does(kit, store, delays) || !uninstall(kit, later) || !verify(kit, store, 0) || !install(kit, store) ||
        !does(kit, store, finds_none_delayed) || !does(kit, store, delays) || !uninstall(kit, store) || !install(kit, store))
        return;
    (void)does(kit, store, finds_none_delayed);
}

static void nothing_to_remove(wb_kit *kit)
{
    wb_store *store = make(kit);
    if (store && uninstall(kit, store))
        (void)verify(kit, store, 0);
}

/* ---- rename --------------------------------------------------------------------------- */

static void keeps_what_is_in_them(wb_kit *kit)
{
    wb_store *former = make_installed(kit), *store = make(kit);
    if (!former || !store || !fill(kit, former))
        return;
    for (int i = 0; i < 2; i++) /* the second time nothing is left to do */
        if (!rename_it(kit, store, former))
            return;
    if (!install(kit, store) || !verify(kit, store, 1) || !verify(kit, former, 0))
        return;
    wb_client *client = wb_client_open_on(kit, store);
    if (!client)
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, WB_BATCH(1));
    (void)wb_client_finds_pending(client, WB_BATCH(1), "operations", 10);
    wb_client_close(client);
}

static void keeps(wb_kit *kit, step *put, step *find)
{
    wb_store *former = make_installed(kit), *store = make(kit);
    if (former && store && does(kit, former, put) && rename_it(kit, store, former) && install(kit, store))
        (void)does(kit, store, find);
}

static int begin_at(wb_client *client, uint64_t batch, wb_position *position)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = batch, .positions = position, .position_count = 1 };
    wb_error_clear(&client->error);
    return wb_client_check(client, client->ops->begin(client->session, &begin, &client->error), WB_OK, "begin");
}

static wb_position partition(uint64_t next)
{
    return (wb_position){ "orders/0", 8, next, WB_NOT_ANSWERED, WB_NOT_ANSWERED };
}

static int moves_partition(wb_client *client)
{
    wb_position moved = partition(10);
    return begin_at(client, WB_BATCH(1), &moved) &&
           wb_client_check(client, wb_client_commit(client, WB_BATCH(1), NULL, 0), WB_OK, "commit");
}

static int finds_partition(wb_client *client)
{
    wb_position look = partition(0);
    return begin_at(client, WB_BATCH_OF_LOOKS, &look) &&
           wb_client_check(client, wb_client_rollback(client), WB_OK, "roll back") &&
           wb_kit_check(client->kit, look.found == 10 && look.batch == WB_BATCH(1), "the partition is at %" PRIu64, look.found);
}

static void keeps_positions(wb_kit *kit)
{
    keeps(kit, moves_partition, finds_partition);
}

static int finds_delayed(wb_client *client)
{
    return wb_client_has_waiting(client, "late ");
}

static void keeps_delayed(wb_kit *kit)
{
    keeps(kit, delays, finds_delayed);
}

static int writes(wb_client *client)
{
    const wb_written row = { .struct_size = sizeof row, .id = { "kit-renamed-00000001", 20 }, .destination = { "queue", 5 },
                             .type = { "Type", 4 }, .body = { "body", 4 } };
    wb_error_clear(&client->error);
    return wb_client_check(client, client->ops->written->write(client->session, &row, &client->error), WB_OK, "write a message");
}

static int count_row(void *count, const wb_written *row)
{
    (void)row;
    ++*(size_t *)count;
    return WB_OK;
}

static int finds_written(wb_client *client)
{
    wb_written_fetch fetch = { .has_turn = 0 };
    size_t count = 0;
    int r = WB_OK;
    for (int64_t until = wb_clock_monotonic() + SOON; r == WB_OK && !fetch.has_turn && wb_clock_monotonic() < until;) {
        count = 0;
        fetch = (wb_written_fetch){ .struct_size = sizeof fetch, .limit = 10, .form = WB_WRITTEN_FORM };
        wb_error_clear(&client->error);
        r = client->ops->written->fetch(client->session, &fetch, count_row, &count, &client->error);
        wb_clock_pause(POLL, NULL);
    }
    return wb_client_check(client, r, WB_OK, "fetch") && wb_kit_check(client->kit, count == 1, "%zu rows were fetched", count);
}

static void keeps_written(wb_kit *kit)
{
    keeps(kit, writes, finds_written);
}

static void the_former_name_is_free(wb_kit *kit)
{
    wb_store *former = make_installed(kit), *store = make(kit);
    if (!former || !store || !fill(kit, former) || !rename_it(kit, store, former) || !install(kit, store) ||
        !install(kit, former) || !verify(kit, former, 1))
        return;
    wb_client *client = wb_client_open_on(kit, former);
    if (!client)
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, 0);
    wb_client_close(client);
}

static void refuses_two(wb_kit *kit)
{
    wb_store *former = make_installed(kit), *store = make_installed(kit);
    wb_error error = { 0 };
    if (!former || !store || !fill(kit, former))
        return;
    int r = store->ops->rename(store->instance, former->name, &error);
    wb_kit_check(kit, r == WB_FATAL && error.cause == WB_CAUSE_MISMATCH, "rename to a name that has tables: %s, cause %d: %s",
                 wb_result_name(r), error.cause, error.text);
    wb_client *client = wb_client_open_on(kit, former);
    if (!client)
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, WB_BATCH(1));
    wb_client_close(client);
}

/* ---- notes ---------------------------------------------------------------------------- */

static int has_notes(wb_kit *kit, const wb_store *store)
{
    if (WB_HAS(store->ops, wb_persistence_ops, keep_note) && WB_HAS(store->ops, wb_persistence_ops, look_up_note))
        return 1;
    wb_kit_skip(kit, "%s keeps no notes", kit->plugin->name);
    return 0;
}

static void keep(wb_kit *kit, wb_store *store, const char *name, int32_t number)
{
    wb_error error = { 0 };
    int r = store->ops->keep_note(store->instance, name, number, &error);
    wb_kit_check(kit, r == WB_OK, "keep_note \"%s\": %s: %s", name, wb_result_name(r), error.text);
}

static void expect_note(wb_kit *kit, wb_store *store, const char *name, int32_t wanted)
{
    int32_t number = -1;
    wb_error error = { 0 };
    int r = store->ops->look_up_note(store->instance, name, &number, &error);
    wb_kit_check(kit, r == WB_OK, "look_up_note \"%s\": %s: %s", name, wb_result_name(r), error.text);
    wb_kit_check(kit, number == wanted, "under \"%s\" %d is kept, not %d", name, (int)number, (int)wanted);
}

/* As long as a name may be, and two that differ at their end. */
#define NOTE_NAME_MAX 255

static void keeps_long_notes(wb_kit *kit, wb_store *store)
{
    char name[NOTE_NAME_MAX + 1];
    memset(name, 'n', NOTE_NAME_MAX);
    name[NOTE_NAME_MAX] = '\0';
    for (int32_t number = 6; number < 8; number++) {
        name[NOTE_NAME_MAX - 1] = (char)('a' + number);
        keep(kit, store, name, number);
    }
    expect_note(kit, store, name, 7);
    name[NOTE_NAME_MAX - 1]--;
    expect_note(kit, store, name, 6);
}

/* Their names differ in case, and as a pattern of SQL has it. */
static void keeps_notes(wb_kit *kit)
{
    wb_store *store = make_installed(kit), *other = make(kit);
    if (!store || !other || !has_notes(kit, store))
        return;
    expect_note(kit, store, "from a_b", 0);
    for (int32_t number = 1; number < 3; number++)
        keep(kit, store, "from a_b", number);
    keep(kit, store, "From a_b", 3);
    keep(kit, store, "from axb", 4);
    keep(kit, other, "from a_b", 5); /* which has no tables */
    if (!install(kit, store))
        return;
    for (int i = 0; i < 2; i++)
        keep(kit, store, "From a_b", 0);
    expect_note(kit, store, "from a_b", 2);
    expect_note(kit, store, "From a_b", 0);
    expect_note(kit, store, "from axb", 4);
    expect_note(kit, other, "from a_b", 5);
    keeps_long_notes(kit, store);
}

static void notes_go(wb_kit *kit)
{
    wb_store *former = make_installed(kit), *store = make(kit);
    if (!former || !store || !has_notes(kit, store))
        return;
    keep(kit, former, "begun", 1);
    keep(kit, store, "begun", 2);
    if (!rename_it(kit, store, former))
        return;
    expect_note(kit, former, "begun", 0);
    expect_note(kit, store, "begun", 2);
    if (uninstall(kit, store))
        expect_note(kit, store, "begun", 0);
}

/* ---- subscriptions -------------------------------------------------------------------- */

typedef struct noted {
    char text[128];
} noted;

static int append(void *argument, const char *type)
{
    noted *n = argument;
    const size_t used = strlen(n->text);
    (void)snprintf(n->text + used, sizeof n->text - used, "%s%s", used ? ";" : "", type);
    return WB_OK;
}

static void expect_noted(wb_kit *kit, wb_store *store, const char *wanted)
{
    noted n = { "" };
    wb_error error = { 0 };
    int r = store->ops->subscriptions(store->instance, append, &n, &error);
    wb_kit_check(kit, r == WB_OK, "subscriptions: %s: %s", wb_result_name(r), error.text);
    wb_kit_check(kit, strcmp(n.text, wanted) == 0, "noted is \"%s\", not \"%s\"", n.text, wanted);
}

static void note(wb_kit *kit, wb_store *store, const char *const *types, size_t count, int is_over)
{
    wb_error error = { 0 };
    int r = store->ops->note_subscriptions(store->instance, types, count, is_over, &error);
    wb_kit_check(kit, r == WB_OK, "note_subscriptions: %s: %s", wb_result_name(r), error.text);
}

/* One is long, one has what SQL quotes; they differ in case. */
static void notes_subscriptions(wb_kit *kit)
{
    static const char *const types[] = { "Shop.It's", "Shop.Its", "shop.its", "{dedup}" };
    wb_store *store = make_installed(kit), *other = make_installed(kit);
    if (!store || !other)
        return;
    expect_noted(kit, store, "");
    note(kit, store, types, 1, 0);
    for (int i = 0; i < 2; i++)
        note(kit, store, types + 1, 2, 0);
    note(kit, store, types, 1, 1);
    note(kit, store, types + 3, 1, 1); /* which it never had */
    expect_noted(kit, other, "");
    expect_noted(kit, store, "Shop.Its;shop.its");
}

static const wb_kit_case cases[] = {
    { "endpoints whose names differ in case or at their end are two", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES, names_are_told_apart },
    { "uninstall() removes the endpoint's tables, twice, and nobody else's", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES,
      removes_its_own },
    { "what is installed again is empty", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES, installs_again_empty },
    { "delayed: uninstall() removes what waits, also where nothing is delayed any more",
      WB_CAP_DELAY_STORE | WB_CAP_REMOVE_TABLES, removes_delayed },
    { "uninstall() of what was never installed is no error", WB_CAP_REMOVE_TABLES, nothing_to_remove },
    { "rename() keeps records and operations, and may be repeated", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES,
      keeps_what_is_in_them },
    { "rename() keeps how far partitions are done with", WB_CAP_OUTBOX | WB_CAP_POSITIONS | WB_CAP_REMOVE_TABLES, keeps_positions },
    { "delayed: rename() keeps what waits", WB_CAP_DELAY_STORE | WB_CAP_REMOVE_TABLES, keeps_delayed },
    { "rename() keeps what programs wrote in SQL", WB_CAP_OUTBOX | WB_CAP_WRITTEN | WB_CAP_REMOVE_TABLES, keeps_written },
    { "after rename() the former name can be installed anew", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES,
      the_former_name_is_free },
    { "rename() to a name that has tables is refused", WB_CAP_OUTBOX | WB_CAP_REMOVE_TABLES, refuses_two },
    { "notes: under each name a number is kept", WB_CAP_REMOVE_TABLES, keeps_notes },
    { "notes: uninstall() forgets them, and rename() those of the former name", WB_CAP_REMOVE_TABLES, notes_go },
    { "subscriptions are noted, each once, and forgotten", WB_CAP_REMOVE_TABLES | WB_CAP_SUBSCRIPTIONS, notes_subscriptions },
};
const wb_kit_group wb_cases_removal = WB_KIT_GROUP(cases);

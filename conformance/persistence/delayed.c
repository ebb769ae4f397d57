/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store, what is stored and by which key.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/wires.h"
#include "core/base/arena.h"

/* ---- the table of functions, and the modes ------------------------------------------------- */

static void is_whole(wb_kit *kit)
{
    const wb_persistence_ops *ops = kit->plugin->ops;
    WB_KIT_REQUIRE(kit, WB_HAS(ops, wb_persistence_ops, delayed), "there is no delayed store");
    const wb_delayed_ops *store = ops->delayed;
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, initialize), "there is no initialize()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, store), "there is no store()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, next), "there is no next()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, fetch), "there is no fetch()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, remove), "there is no remove()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, increment_failure_count),
                 "there is no increment_failure_count()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, release), "there is no release()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, list), "there is no list()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, cancel), "there is no cancel()");
    wb_kit_check(kit, WB_HAS(store, wb_delayed_ops, reschedule), "there is no reschedule()");
}

/* Refused is a mode in words, and never for another reason. */
static int takes_mode(wb_kit *kit, const wb_store *store, int32_t mode)
{
    wb_error error = { 0 };
    int r = store->ops->delayed->initialize(store->instance, mode, &error);
    wb_kit_check(kit, r == WB_OK || (r == WB_FATAL && error.cause == WB_CAUSE_CONFIG && *error.text),
                 "mode %d: %s, cause %d: %s", (int)mode, wb_result_name(r), error.cause, error.text);
    return r == WB_OK;
}

static void says_its_modes(wb_kit *kit)
{
    wb_wires before;
    int wire, takes = 0;
    wb_wires_remember(&before);
    wb_store *store = wb_store_again(kit, 0);
    WB_KIT_REQUIRE(kit, store != NULL, "there is no instance");
    for (int32_t mode = WB_MODE_NONE; mode <= WB_MODE_TRANSACTION_SCOPE; mode++)
        takes += takes_mode(kit, store, mode);
    wb_kit_check(kit, takes, "it can be used with no mode");
    wb_kit_check(kit, !takes_mode(kit, store, WB_MODE_TRANSACTION_SCOPE) ||
                          (kit->plugin->capabilities & WB_CAP_JOIN_TRANSPORT),
                 "it takes transaction_scope and joins no transport");
    wb_kit_check(kit, wb_wires_find(&before, &wire, 1) == 0, "initialize() has connected");
}

/* ---- tables ------------------------------------------------------------------------------ */

static void destroy_store(void *argument)
{
    wb_store *store = argument;
    store->ops->destroy(store->instance);
    free(store);
}

/* A third endpoint, whose messages nobody delayed when it was installed. */
static wb_store *make_bare(wb_kit *kit, int32_t delays)
{
    char name[256];
    wb_store *store = wb_alloc_zero(1, sizeof *store);
    wb_store_name(kit, 0, name, sizeof name - 2);
    (void)strcat(name, ".3");
    if (!wb_store_create_with(kit, store, name, delays)) {
        free(store);
        return NULL;
    }
    wb_kit_defer(kit, destroy_store, store);
    return store;
}

static void check_missing(wb_kit *kit, int result, const wb_error *error, const char *doing)
{
    wb_kit_check(kit, result == WB_FATAL && error->cause == WB_CAUSE_MISSING,
                 "%s without the table is %s, cause %d: %s", doing, wb_result_name(result),
                 error->cause, error->text);
}

/* As of an earlier release, or where the transport delays. */
static void made_where_needed(wb_kit *kit)
{
    wb_error error = { 0 };
    const wb_delayed one = wb_waiting("order-1", 1);
    wb_store *without = make_bare(kit, WB_DELAYS_BY_NOBODY), *with = make_bare(kit, WB_DELAYS_BY_STORE);
    WB_KIT_REQUIRE(kit, without && with, "there is no instance");
    int r = without->ops->install(without->instance, &error);
    WB_KIT_REQUIRE(kit, r == WB_OK, "install() where nothing is delayed: %s", error.text);
    r = without->ops->verify(without->instance, &error);
    wb_kit_check(kit, r == WB_OK, "verify() where nothing is delayed: %s", error.text);
    check_missing(kit, with->ops->verify(with->instance, &error), &error, "verify()");
    wb_kit_check(kit, strstr(error.text, "waybill install") != NULL, "it does not say what to do: %s",
                 error.text);
    wb_client client = { .kit = kit, .ops = with->ops, .store = with };
    r = with->ops->open(with->instance, &client.session, &client.error);
    if (r == WB_OK) {
        r = wb_delayed_store(&client, &one, 1);
        wb_client_close(&client);
    }
    check_missing(kit, r, &client.error, "a store()");
}

/* ---- what comes back ------------------------------------------------------------------------ */

#define MIB ((size_t)1 << 20)

static char *make_bytes(size_t size, unsigned seed)
{
    char *bytes = wb_alloc(size ? size : 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(seed++ % 256);
    return bytes;
}

/* Fetched by another session, in the order they are due. */
static void come_back(wb_kit *kit, wb_delayed *messages, size_t count)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_seen seen = { .expected = messages, .expected_count = count };
    wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    what.limit = count + 1;
    for (size_t i = 0; i < count; i++)
        messages[i].due = (int64_t)(i + 1) * 1000;
    if (!a || !b || !wb_client_delays(a, messages, count))
        return;
    wb_client_check(b, wb_delayed_fetch_into(b, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, seen.count == count, "%zu messages of %zu were fetched", seen.count, count);
}

static void operations_come_back(wb_kit *kit)
{
    static const size_t sizes[] = { 0, 1, 255, 256, 65535, 65536, MIB };
    static const char *const ids[] = { "1", "2", "3", "4", "5", "6", "7" };
    enum { COUNT = sizeof sizes / sizeof *sizes };
    wb_delayed messages[COUNT];
    char *operations[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        messages[i] = wb_waiting(ids[i], 0);
        messages[i].operation = operations[i] = make_bytes(sizes[i], (unsigned)i);
        messages[i].operation_size = sizes[i];
    }
    come_back(kit, messages, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        free(operations[i]);
}

/* An id is any bytes, a destination any but NUL. */
static void keys_come_back(wb_kit *kit)
{
    char *low = make_bytes(255, 0), *high = make_bytes(255, 1);
    wb_delayed messages[] = { wb_waiting("a", 0), wb_waiting("b", 0), wb_waiting("c", 0),
                              wb_waiting("d", 0) };
    messages[0].id = low; /* from byte 0 on */
    messages[1].id = high;
    messages[0].id_size = messages[1].id_size = WB_DELAYED_ID_MAX;
    messages[2].destination = high;
    messages[2].destination_size = WB_DELAYED_DESTINATION_MAX;
    messages[3].destination = "q";
    messages[3].destination_size = 1;
    messages[3].retries = UINT32_MAX;
    come_back(kit, messages, sizeof messages / sizeof *messages);
    free(low);
    free(high);
}

/* ---- keys -------------------------------------------------------------------------------- */

static void stored_twice(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed messages[] = { wb_waiting("order-1", 1000), wb_waiting("order-1", 5000),
                              wb_waiting("order-2", 3000) };
    wb_delayed first[] = { messages[0], messages[2] };
    wb_seen seen = { .expected = first, .expected_count = 2 };
    messages[1].operation = "another";
    messages[1].operation_size = 7;
    if (!a || !b || !wb_client_delays(a, messages, 3) || !wb_client_delays(b, messages + 1, 1) ||
        !wb_client_has_waiting(b, "order-1 order-2 "))
        return;
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_client_check(b, wb_delayed_fetch_into(b, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, seen.count == 2, "%zu messages of 2 were fetched", seen.count);
}

/* It stays taken and keeps its count. */
static void stored_while_taken(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_delay(a, "order-1", 1000) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "order-1 ") ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "order-1", 2000, 1) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "order-1 ") || !wb_client_delay(a, "order-1", 3000) ||
        !wb_client_takes_due(a, wb_owner_b, 0, "") ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "order-1", 2000, 1))
        return;
    wb_delayed want = wb_waiting("order-1", 2000);
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .expected = &want, .expected_count = 1 };
    want.failures = 2;
    wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, seen.count == 1, "%zu messages of 1 were fetched", seen.count);
}

/* Each is another message: stored beside the others, and removed alone. */
static void are_all_different(wb_kit *kit, wb_delayed *messages, size_t count)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_client *a = wb_client_open(kit, 0);
    for (size_t i = 0; i < count; i++)
        messages[i].due = (int64_t)(i + 1) * 1000;
    if (!a || !wb_client_delays(a, messages, count))
        return;
    for (size_t i = 0; i < count; i++) {
        wb_delayed_key key = wb_waiting_key(&messages[i]);
        wb_seen seen = { .expected = messages + i, .expected_count = count - i };
        wb_client_check(a, wb_delayed_list_into(a, &all, &seen), WB_OK, "list what waits");
        WB_KIT_REQUIRE(kit, seen.count == count - i, "%zu messages wait of %zu", seen.count, count - i);
        wb_client_check(a, wb_delayed_change(a, WB_REMOVE, NULL, &key, 1, 0), WB_OK, "remove one");
        wb_kit_check(kit, key.was_there == 1, "message %zu was not there", i);
    }
}

static void keys_have_three_parts(wb_kit *kit)
{
    wb_delayed messages[] = { wb_waiting("order-1", 0), wb_waiting("order-1", 0),
                              wb_waiting("order-1", 0), wb_waiting("order-1", 0) };
    messages[1].retries = 1;
    messages[2].retries = UINT32_MAX;
    messages[3].destination = "billing-2";
    messages[3].destination_size = 9;
    are_all_different(kit, messages, sizeof messages / sizeof *messages);
}

/* Whatever a collation would take for the same. */
static void keys_are_bytes(wb_kit *kit)
{
    static const struct {
        const char *id;
        size_t size;
    } ids[] = { { "order", 5 },   { "ORDER", 5 },    { "order ", 6 },   { " order", 6 },
                { "order\0", 6 }, { "order\0a", 7 }, { "order\0b", 7 }, { "order\0\0", 7 },
                { "\303\251", 2 }, { "e\314\201", 3 }, { "e", 1 },       { "\377\376", 2 },
                { "1", 1 },       { "01", 2 },       { "1.0", 3 },      { "'; drop", 7 },
                { "%", 1 },       { "\\", 1 },       { "\\\\", 2 },     { "\0", 1 } };
    enum { COUNT = sizeof ids / sizeof *ids };
    wb_delayed messages[2 * COUNT];
    size_t count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        messages[count] = wb_waiting("x", 0);
        messages[count].id = ids[i].id;
        messages[count++].id_size = ids[i].size;
        if (memchr(ids[i].id, '\0', ids[i].size))
            continue;
        messages[count] = wb_waiting("x", 0);
        messages[count].destination = ids[i].id;
        messages[count++].destination_size = ids[i].size;
    }
    are_all_different(kit, messages, count);
}

static void two_endpoints(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !wb_client_delay(a, "order-1", 1000) || !wb_client_has_waiting(b, "") ||
        !wb_client_changes(b, WB_REMOVE, NULL, "order-1", 0, 0) ||
        !wb_client_delay(b, "order-1", 1000) || !wb_client_takes_due(b, wb_owner_a, 0, "order-1 ") ||
        !wb_client_takes_due(a, wb_owner_a, 0, "order-1 ") || !wb_client_gives_back(a, wb_owner_a, "order-1 ") ||
        !wb_client_changes(b, WB_REMOVE, wb_owner_a, "order-1", 0, 1))
        return;
    wb_client_has_waiting(a, "order-1 ");
}

/* ---- many, and larger tables ---------------------------------------------------------------- */

#define MANY 1000

typedef struct {
    char ids[MANY + 1][8];
    wb_delayed messages[MANY];
    wb_delayed_key keys[MANY + 1];
} many;

static void make_many(many *all)
{
    for (size_t i = 0; i <= MANY; i++)
        (void)snprintf(all->ids[i], sizeof all->ids[i], "n%zu", i);
    for (size_t i = 0; i < MANY; i++) /* the last is due first */
        all->messages[i] = wb_waiting(all->ids[i], (int64_t)(MANY - i) * 1000);
}

static void a_thousand_at_once(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    many *all = wb_alloc_zero(1, sizeof *all);
    wb_kit_defer(kit, free, all);
    make_many(all);
    wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .count = 0 };
    what.limit = MANY;
    if (!a || !wb_client_delays(a, all->messages, MANY))
        return;
    wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch a thousand");
    WB_KIT_REQUIRE(kit, seen.count == MANY, "%zu messages of a thousand were fetched", seen.count);
    for (size_t i = 0; i < MANY; i++)
        all->keys[i] = wb_waiting_key(&all->messages[i]);
    const wb_delayed absent = wb_waiting(all->ids[MANY], 0);
    all->keys[MANY] = all->keys[MANY / 2]; /* in the middle one that is not there */
    all->keys[MANY / 2] = wb_waiting_key(&absent);
    int r = wb_delayed_change(a, WB_REMOVE, wb_owner_a, all->keys, MANY + 1, 0);
    wb_client_check(a, r, WB_OK, "remove a thousand");
    for (size_t i = 0; i <= MANY; i++)
        wb_kit_check(kit, all->keys[i].was_there == (i != MANY / 2), "key %zu: was_there is %d", i,
                     all->keys[i].was_there);
    wb_client_has_waiting(a, "");
}

/* What was appended to the structs lies between the elements of an array. */
static void larger_tables(wb_kit *kit)
{
    struct {
        wb_delayed message;
        char appended[40];
    } messages[3];
    struct {
        wb_delayed_fetch fetch;
        char appended[40];
    } what = { .fetch = wb_fetch_of(wb_owner_a, 0) };
    struct {
        wb_delayed_filter filter;
        char appended[40];
    } all = { .filter.struct_size = sizeof all };
    static const char *const ids[] = { "a", "b", "c" };
    wb_client *a = wb_client_open(kit, 0);
    memset(messages, 0x5a, sizeof messages);
    for (size_t i = 0; i < 3; i++) {
        messages[i].message = wb_waiting(ids[i], (int64_t)(i + 1) * 1000);
        messages[i].message.struct_size = sizeof messages[i];
    }
    what.fetch.struct_size = sizeof what;
    if (!a || !wb_client_delays(a, &messages[0].message, 3))
        return;
    wb_seen seen = { .count = 0 };
    wb_client_check(a, wb_delayed_list_into(a, &all.filter, &seen), WB_OK, "list what waits");
    wb_kit_check(kit, strcmp(seen.ids, "a b c ") == 0, "\"%s\" wait, not \"a b c \"", seen.ids);
    wb_client_fetches(a, &what.fetch, "a b c ");
}

#define STORE WB_CAP_DELAY_STORE
static const wb_kit_case cases[] = {
    { "delayed: the store has all its functions", STORE, is_whole },
    { "delayed: initialize() says which modes it can honour, without a connection", STORE, says_its_modes },
    { "delayed: the table is made and missed only where the store delays", STORE, made_where_needed },
    { "delayed: operations of 0 bytes to 1 MiB come back", STORE, operations_come_back },
    { "delayed: destinations and ids of 1 to 255 bytes come back", STORE, keys_come_back },
    { "delayed: a key stored twice is one message, the first", STORE, stored_twice },
    { "delayed: a key stored again leaves a message taken, with its count", STORE, stored_while_taken },
    { "delayed: destination, id and retries make the key", STORE, keys_have_three_parts },
    { "delayed: keys are compared byte for byte", STORE, keys_are_bytes },
    { "delayed: two endpoints share no messages", STORE, two_endpoints },
    { "delayed: a thousand in one call", STORE, a_thousand_at_once },
    { "delayed: larger tables of a newer host are taken", STORE, larger_tables },
};
const wb_kit_group wb_cases_delayed = WB_KIT_GROUP(cases);

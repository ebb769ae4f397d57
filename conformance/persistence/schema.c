/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: tables, sessions, and the interface of handlers.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/findings.h"
#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"
#include "core/message/ids.h"

/* ---- tables ---------------------------------------------------------------------------- */

static void schema_is_stable(wb_kit *kit)
{
    wb_store *a = wb_store_again(kit, 0), *b = wb_store_again(kit, 0);
    WB_KIT_REQUIRE(kit, a && b, "there are no instances");
    const char *text = a->ops->schema(a->instance), *other = b->ops->schema(b->instance);
    WB_KIT_REQUIRE(kit, text && *text, "schema() says nothing");
    wb_kit_check(kit, a->ops->schema(a->instance) == text, "the text of schema() moves");
    wb_kit_check(kit, other && strcmp(text, other) == 0, "two instances have two schemas");
}

static void destroy_store(void *argument)
{
    wb_store *store = argument;
    store->ops->destroy(store->instance);
    free(store);
}

static wb_store *make_unknown(wb_kit *kit)
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

/* Twice: what verify() finds missing it must not make. */
static void missing_tables_are_missed(wb_kit *kit)
{
    wb_store *store = make_unknown(kit);
    WB_KIT_REQUIRE(kit, store != NULL, "there is no instance");
    for (int i = 0; i < 2; i++) {
        wb_error error = { 0 };
        int r = store->ops->verify(store->instance, &error);
        wb_kit_check(kit, r != WB_OK && error.cause == WB_CAUSE_MISSING,
                     "verify() without tables is %s, cause %d: %s", wb_result_name(r), error.cause,
                     error.text);
    }
}

/* Only a fault may be found: some plugins prepare statements in open(), some later. */
static void no_batch_without_tables(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM("order-1");
    wb_store *store = make_unknown(kit);
    WB_KIT_REQUIRE(kit, store != NULL, "there is no instance");
    wb_client client = { .kit = kit, .ops = store->ops, .store = store };
    int r = store->ops->open(store->instance, &client.session, &client.error);
    if (r == WB_OK) {
        r = wb_client_begin(&client, WB_BATCH(1), &claim, 1);
        wb_client_close(&client);
    }
    wb_kit_check(kit, r != WB_OK && client.error.cause == WB_CAUSE_MISSING,
                 "a batch without tables is %s, cause %d: %s", wb_result_name(r), client.error.cause,
                 client.error.text);
}

typedef struct {
    wb_store *store;
    wb_error error;
    int result;
} installing;

static void install(void *argument)
{
    installing *one = argument;
    one->result = one->store->ops->install(one->store->instance, &one->error);
}

/* The first run of the kit makes the tables of the second store here. */
static void installs_at_once(wb_kit *kit)
{
    installing each[3] = { 0 };
    wb_actor actors[3];
    for (int i = 0; i < 3; i++)
        WB_KIT_REQUIRE(kit, (each[i].store = wb_store_again(kit, 1)) != NULL, "there is no instance");
    for (int i = 0; i < 3; i++)
        wb_actor_start(&actors[i]);
    for (int i = 0; i < 3; i++)
        wb_actor_do(&actors[i], install, &each[i]);
    for (int i = 0; i < 3; i++) {
        wb_actor_await(kit, &actors[i]);
        wb_actor_stop(&actors[i]);
        wb_kit_check(kit, each[i].result == WB_OK, "an installation of three at once: %s: %s",
                     wb_result_name(each[i].result), each[i].error.text);
    }
    wb_error error = { 0 };
    int r = each[0].store->ops->verify(each[0].store->instance, &error);
    wb_kit_check(kit, r == WB_OK, "verify() after it: %s", error.text);
}

static void installing_again_keeps_records(wb_kit *kit)
{
    wb_client *client = wb_client_open(kit, 0);
    if (!client || !wb_client_stores(client, WB_BATCH(1), "order-1", "operations"))
        return;
    for (int i = 0; i < 2; i++) {
        int r = client->ops->install(client->store->instance, &client->error);
        wb_client_check(client, r, WB_OK, "install again");
    }
    int r = client->ops->verify(client->store->instance, &client->error);
    wb_client_check(client, r, WB_OK, "verify");
    wb_client_finds_owner(client, "order-1", 7, WB_BATCH(1));
    wb_client_finds_pending(client, WB_BATCH(1), "operations", 10);
}

/* ---- what a session offers ------------------------------------------------------------- */

static void unknown_interfaces(wb_kit *kit)
{
    static const char *const names[] = { "", "conformance.1", "pgsql", "pgsql.999", "sqlite.0" };
    if (WB_LACKS(kit, interface))
        return;
    wb_client *client = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "there is no session");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        wb_kit_check(kit, !client->ops->interface(client->session, names[i]),
                     "interface(\"%s\") is something", names[i]);
}

static void nothing_to_leave(wb_kit *kit)
{
    wb_client *client = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "there is no session");
    int r = client->ops->join(client->session, NULL, &client->error);
    wb_client_check(client, r, WB_OK, "leave a transaction that was not joined");
}

/* ---- what would bite ------------------------------------------------------------------- */

static int examine(wb_kit *kit, const wb_store *store)
{
    const wb_examination asked = wb_kit_examination(kit);
    wb_error error = { 0 };
    const int r = store->ops->examine(store->instance, &asked, &error);
    return wb_kit_check(kit, r == WB_OK, "examine: %s: %s", wb_result_name(r), error.text);
}

/* Without tables, and beside a session with what it has stored. */
static void findings_are_whole(wb_kit *kit)
{
    wb_error error = { 0 };
    if (WB_LACKS(kit, examine))
        return;
    wb_store *nobody = make_unknown(kit), *store = wb_store_again(kit, 0);
    WB_KIT_REQUIRE(kit, nobody && store, "there are no instances");
    if (!examine(kit, nobody))
        return;
    wb_kit_check(kit, nobody->ops->verify(nobody->instance, &error) != WB_OK && error.cause == WB_CAUSE_MISSING,
                 "after examine() verify() finds tables that were not there");
    wb_client *client = wb_client_open(kit, 0);
    if (!client || !wb_client_stores(client, WB_BATCH(1), "order-1", "operations") || !examine(kit, store))
        return;
    (void)wb_client_finds_owner(client, "order-1", 7, WB_BATCH(1));
    (void)wb_client_finds_pending(client, WB_BATCH(1), "operations", 10);
}

static const wb_kit_case cases[] = {
    { "schema() says what install() would run, and stays where it is", 0, schema_is_stable },
    { "verify() misses tables that are missing, and makes none", 0, missing_tables_are_missed },
    { "a batch without tables says that they are missing", WB_CAP_OUTBOX, no_batch_without_tables },
    { "three instances may install at once", 0, installs_at_once },
    { "examine() tells findings in full, and changes nothing", WB_CAP_OUTBOX, findings_are_whole },
    { "installing again keeps the records", WB_CAP_OUTBOX, installing_again_keeps_records },
    { "interface() knows no unknown name", 0, unknown_interfaces },
    { "join(NULL) leaves what was not joined", WB_CAP_JOIN_TRANSPORT, nothing_to_leave },
};
const wb_kit_group wb_cases_schema = WB_KIT_GROUP(cases);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: business data. What a handler writes belongs to the transaction of its
 * batch, whatever becomes of that; and a handler that ends the transaction is found out.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "conformance/persistence/persistence.h"

#define ITEM 0

/* ---- the module's calls ------------------------------------------------------------------ */

static const wb_business *module_of(const wb_client *client)
{
    return client->kit->options->business;
}

static const void *interface_of(wb_client *client)
{
    const void *interface = client->ops->interface(client->session, module_of(client)->interface_name);
    (void)wb_kit_check(client->kit, interface != NULL, "there is no interface \"%s\"",
                       module_of(client)->interface_name);
    return interface;
}

static int is_done(const wb_client *client, const char *problem, const char *doing)
{
    return wb_kit_check(client->kit, !problem, "could not %s: %s", doing, problem ? problem : "");
}

/* In a transaction without an outbox. */
static int remove_key(wb_client *client, const char *key)
{
    int is_there = 0;
    const wb_business *module = module_of(client);
    const void *interface = interface_of(client);
    return interface && is_done(client, module->read(interface, client->session, ITEM, key, &is_there), "read business data") &&
           (!is_there || is_done(client, module->remove(interface, client->session, ITEM, key), "remove business data"));
}

/* What a plugin that failed has left is not touched any more. */
static void remove_keys(void *argument)
{
    wb_stores_kit *stores = argument;
    wb_kit *kit = &stores->kit;
    const size_t count = stores->key_count;
    stores->key_count = 0;
    if (kit->is_failed || !kit->options->business || !kit->options->business->remove)
        return;
    wb_client *client = wb_client_open(kit, 0);
    if (!client || !wb_client_check(client, wb_client_begin(client, 0, NULL, 0), WB_OK, "begin to remove business data"))
        return;
    for (size_t i = 0; i < count; i++)
        if (!remove_key(client, stores->keys[i]))
            return;
    (void)wb_client_check(client, wb_client_commit(client, 0, NULL, 0), WB_OK, "commit that business data is removed");
}

void wb_business_key(wb_kit *kit, char key[WB_BUSINESS_KEY])
{
    wb_stores_kit *stores = (wb_stores_kit *)kit;
    uint64_t bits[2] = { (uint64_t)wb_clock_wall(), (uint64_t)wb_clock_monotonic() };
    (void)getrandom(bits, sizeof bits, 0);
    (void)snprintf(key, WB_BUSINESS_KEY, "%016" PRIx64 "-%016" PRIx64, bits[0], bits[1]);
    if (stores->key_count == 0)
        wb_kit_defer(kit, remove_keys, stores);
    if (stores->key_count < WB_BUSINESS_KEYS)
        memcpy(stores->keys[stores->key_count++], key, WB_BUSINESS_KEY);
}

int wb_business_writes(wb_client *client, const char *key)
{
    const void *interface = interface_of(client);
    return interface && is_done(client, module_of(client)->write(interface, client->session, ITEM, key),
                                "write business data");
}

/* In a transaction without an outbox. */
int wb_business_finds(wb_client *client, const char *key, int is_there)
{
    int found = -1;
    if (!wb_client_check(client, wb_client_begin(client, 0, NULL, 0), WB_OK, "begin to look"))
        return 0;
    const void *interface = interface_of(client);
    const int is_read = interface && is_done(client, module_of(client)->read(interface, client->session, ITEM, key, &found),
                                             "read business data");
    return wb_client_check(client, wb_client_rollback(client), WB_OK, "roll back") && is_read &&
           wb_kit_check(client->kit, found == is_there, "business data is %s",
                        is_there ? "not there" : "there, and should not be");
}

/* What makes the place may end the transaction: whatever is said of the commit then is right. */
static void make_place(wb_kit *kit)
{
    wb_commit commit = { .struct_size = sizeof commit };
    wb_client *client = wb_client_open(kit, 0);
    const wb_business *module = kit->options->business;
    if (!client || !wb_client_check(client, wb_client_begin(client, 0, NULL, 0), WB_OK, "begin"))
        return;
    const void *interface = interface_of(client);
    if (interface && is_done(client, module->prepare(interface, client->session, ITEM), "make the place for business data"))
        (void)client->ops->commit(client->session, &commit, &client->error);
    wb_client_close(client);
}

int wb_business_lacks(wb_kit *kit)
{
    wb_stores_kit *stores = (wb_stores_kit *)kit;
    if (!kit->options->business) {
        wb_kit_skip(kit, "no --business");
        return 1;
    }
    if (!stores->has_business && kit->options->business->prepare)
        make_place(kit);
    stores->has_business = !kit->is_failed;
    return kit->is_failed;
}

/* ---- with the batch ---------------------------------------------------------------------- */

typedef struct {
    wb_client *a, *look;
    char key[WB_BUSINESS_KEY];
} scene;

/* A batch is open, with business data. */
static int writes_in_batch(wb_kit *kit, scene *in)
{
    wb_claim claim = WB_CLAIM("order-1");
    if (wb_business_lacks(kit))
        return 0;
    wb_business_key(kit, in->key);
    in->a = wb_client_open(kit, 0);
    in->look = wb_client_open(kit, 0);
    return in->a && in->look && wb_client_takes(in->a, WB_BATCH(1), &claim, 1) && wb_business_writes(in->a, in->key);
}

static void finds_all(scene *in, int is_there)
{
    wb_client_finds_owner(in->look, "order-1", 7, is_there ? WB_BATCH(1) : 0);
    wb_client_finds_pending(in->look, WB_BATCH(1), is_there ? "operations" : NULL, 10);
    wb_business_finds(in->look, in->key, is_there);
    if (in->a->session)
        wb_business_finds(in->a, in->key, is_there);
}

static void with_commit(wb_kit *kit)
{
    scene in;
    if (writes_in_batch(kit, &in) &&
        wb_client_check(in.a, in.a->ops->check(in.a->session, ITEM, &in.a->error), WB_OK, "check") &&
        wb_client_check(in.a, wb_client_commit(in.a, WB_BATCH(1), "operations", 10), WB_OK, "commit"))
        finds_all(&in, 1);
}

static void with_rollback(wb_kit *kit)
{
    scene in;
    if (writes_in_batch(kit, &in) && wb_client_check(in.a, wb_client_rollback(in.a), WB_OK, "roll back"))
        finds_all(&in, 0);
}

static void with_close(wb_kit *kit)
{
    scene in;
    if (!writes_in_batch(kit, &in))
        return;
    wb_client_close(in.a);
    finds_all(&in, 0);
}

/* Another row has the batch's number: nothing of it can be committed. */
static void with_refused_commit(wb_kit *kit)
{
    scene in;
    wb_client *other = wb_client_open(kit, 0);
    if (!other || wb_business_lacks(kit) || !wb_client_parks(other, WB_BATCH(1), "first") || !writes_in_batch(kit, &in))
        return;
    int r = wb_client_commit(in.a, WB_BATCH(1), "second", 6);
    wb_kit_check(kit, r == WB_RETRY || r == WB_ABORT, "to store a second pending row under a number is %s",
                 wb_result_name(r));
    wb_client_finds_owner(in.look, "order-1", 7, 0);
    wb_client_finds_pending(in.look, WB_BATCH(1), "first", 5);
    wb_business_finds(in.look, in.key, 0);
}

static void without_outbox(wb_kit *kit)
{
    char keys[2][WB_BUSINESS_KEY];
    if (WB_LACKS(kit, begin) || wb_business_lacks(kit))
        return;
    wb_client *a = wb_client_open(kit, 0);
    for (int i = 0; a && i < 2; i++) {
        wb_business_key(kit, keys[i]);
        if (!wb_client_check(a, wb_client_begin(a, 0, NULL, 0), WB_OK, "begin") || !wb_business_writes(a, keys[i]) ||
            !wb_client_check(a, i ? wb_client_rollback(a) : wb_client_commit(a, 0, NULL, 0), WB_OK, "end it"))
            return;
    }
    if (a && wb_business_finds(a, keys[0], 1))
        wb_business_finds(a, keys[1], 0);
}

/* ---- processes that die ------------------------------------------------------------------- */

static char *key_of_victim(wb_kit *kit)
{
    return (char *)wb_board_of(kit)->told;
}

static void live_in_transaction(wb_client *victim)
{
    wb_claim claim = WB_CLAIM("order-1");
    if (wb_client_takes(victim, WB_BATCH(1), &claim, 1))
        (void)wb_business_writes(victim, key_of_victim(victim->kit));
}

static void live_past_commit(wb_client *victim)
{
    live_in_transaction(victim);
    (void)wb_client_check(victim, wb_client_commit(victim, WB_BATCH(1), "operations", 10), WB_OK, "commit");
}

static void with_death(wb_kit *kit, void (*live)(wb_client *victim), int is_there)
{
    if (wb_business_lacks(kit))
        return;
    wb_client *look = wb_client_open(kit, 0);
    wb_business_key(kit, key_of_victim(kit));
    if (!look || !wb_victim_run(kit, live))
        return;
    wb_client_finds_owner_soon(look, "order-1", 7, is_there ? WB_BATCH(1) : 0);
    wb_business_finds(look, key_of_victim(kit), is_there);
}

static void killed_in_transaction(wb_kit *kit)
{
    with_death(kit, live_in_transaction, 0);
}

static void killed_after_commit(wb_kit *kit)
{
    with_death(kit, live_past_commit, 1);
}

/* ---- handlers that end the transaction ----------------------------------------------------- */

typedef enum { FAILED, REFUSED, ENDED } ending;

static ending ends_it(wb_kit *kit, scene *in, int way)
{
    if (wb_business_lacks(kit))
        return FAILED;
    const wb_business *module = kit->options->business;
    if (!module->end) {
        wb_kit_skip(kit, "the module about business data ends no transaction");
        return FAILED;
    }
    const void *interface = writes_in_batch(kit, in) ? interface_of(in->a) : NULL;
    if (!interface)
        return FAILED;
    return module->end(interface, in->a->session, ITEM, way) ? REFUSED : ENDED;
}

static int commits(scene *in)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = WB_BATCH(1), .operations = "operations", .operations_size = 10 };
    wb_error_clear(&in->a->error);
    return in->a->ops->commit(in->a->session, &commit, &in->a->error); /* and may blame the item */
}

/* What the handler committed is committed; of what it rolled back nothing may be there. */
static void finds_what_it_left(scene *in, int way)
{
    if (way == WB_BUSINESS_ROLLBACK_BEGIN)
        finds_all(in, 0);
    else
        wb_client_finds_pending(in->look, WB_BATCH(1), NULL, 0);
}

/* Of one that began anew check() may not see it; then the commit does, and says whose doing it was. */
static void check_says_so(wb_kit *kit, int way)
{
    scene in;
    const ending how = ends_it(kit, &in, way);
    if (how == FAILED)
        return;
    int r = in.a->ops->check(in.a->session, ITEM, &in.a->error);
    if (how == REFUSED && r == WB_OK) { /* then it was not ended */
        if (wb_client_check(in.a, wb_client_commit(in.a, WB_BATCH(1), "operations", 10), WB_OK, "commit"))
            finds_all(&in, 1);
        return;
    }
    if (r == WB_OK && way != WB_BUSINESS_COMMIT)
        r = commits(&in);
    (void)wb_client_check(in.a, r, WB_REJECT, "be told that a handler ended the transaction");
    (void)wb_client_rollback(in.a);
    finds_what_it_left(&in, way);
    (void)wb_client_stores(in.look, WB_BATCH(2), "order-2", "operations");
}

/* Nobody asked check(): nothing may go on as if the batch were whole. Whose doing it was, check() says. */
static void commit_is_refused(wb_kit *kit, int way)
{
    scene in;
    const ending how = ends_it(kit, &in, way);
    if (how == FAILED)
        return;
    int r = commits(&in);
    if (how == REFUSED && r == WB_OK) {
        finds_all(&in, 1);
        return;
    }
    wb_kit_check(kit, r == WB_REJECT || r == WB_ABORT || r == WB_RETRY, "a commit of a transaction that a handler ended is %s",
                 wb_result_name(r));
    finds_what_it_left(&in, way);
}

static void check_sees_commit(wb_kit *kit)
{
    check_says_so(kit, WB_BUSINESS_COMMIT);
}

static void check_sees_commit_and_begin(wb_kit *kit)
{
    check_says_so(kit, WB_BUSINESS_COMMIT_BEGIN);
}

static void check_sees_rollback_and_begin(wb_kit *kit)
{
    check_says_so(kit, WB_BUSINESS_ROLLBACK_BEGIN);
}

static void commit_sees_commit(wb_kit *kit)
{
    commit_is_refused(kit, WB_BUSINESS_COMMIT);
}

static void commit_sees_commit_and_begin(wb_kit *kit)
{
    commit_is_refused(kit, WB_BUSINESS_COMMIT_BEGIN);
}

static void commit_sees_rollback_and_begin(wb_kit *kit)
{
    commit_is_refused(kit, WB_BUSINESS_ROLLBACK_BEGIN);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "business: what is written is there with the commit, and all of its batch", OUTBOX, with_commit },
    { "business: a rollback takes it back, and all of its batch", OUTBOX, with_rollback },
    { "business: it is gone when the session is closed", OUTBOX, with_close },
    { "business: it is gone when the commit is refused", OUTBOX, with_refused_commit },
    { "business: without an outbox it is kept by a commit and taken back by a rollback", 0, without_outbox },
    { "business: it is gone with a process that is killed in the transaction", OUTBOX, killed_in_transaction },
    { "business: it is there after a process that was killed behind the commit", OUTBOX, killed_after_commit },
    { "business: check() says that a handler ended the transaction", OUTBOX, check_sees_commit },
    { "business: a handler that committed and began anew is found out", OUTBOX, check_sees_commit_and_begin },
    { "business: a handler that rolled back and began anew is found out", OUTBOX, check_sees_rollback_and_begin },
    { "business: a commit of what a handler ended is refused, and stores nothing", OUTBOX, commit_sees_commit },
    { "business: a commit after a handler committed and began anew stores nothing", OUTBOX, commit_sees_commit_and_begin },
    { "business: a commit after a handler rolled back and began anew stores nothing", OUTBOX, commit_sees_rollback_and_begin },
};
const wb_kit_group wb_cases_business = WB_KIT_GROUP(cases);

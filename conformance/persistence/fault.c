/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: whose fault an error is. What any message would have met is the server's
 * fault by class and cause (the table in waybill/sys/plugin.h), or a host would count attempts
 * for it and give messages up that nothing is wrong with.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"
#include "conformance/relay.h"
#include "core/base/arena.h"

/* ---- locks of neighbours ----------------------------------------------------------------- */

/* Shorter than what a call may take at all; longer than the plugins' own timeouts. */
#define LOCK_PATIENCE (60 * WB_SECOND)

typedef struct {
    wb_client *client;
    wb_claim claim;
    int result;
} claiming;

static void claim_one(void *argument)
{
    claiming *one = argument;
    one->result = wb_client_begin(one->client, WB_BATCH(2), &one->claim, 1);
    if (one->result == WB_OK) /* it was not told anything: what it began ends here */
        (void)wb_client_rollback(one->client);
}

static void check_servers(wb_client *client, int result, const char *doing)
{
    wb_kit_check(client->kit, result != WB_OK && wb_kit_is_servers_fault(result, &client->error),
                 "%s: %s, cause %d, which is not the server's fault: %s", doing,
                 wb_result_name(result), client->error.cause, client->error.text);
}

/* The neighbour is none the worse for it, and the other session goes on. */
static void lock_of_a_neighbour(wb_kit *kit)
{
    wb_claim held = WB_CLAIM("order-1");
    wb_actor actor;
    wb_client *a = wb_client_open(kit, 0);
    claiming second = { wb_client_open(kit, 0), WB_CLAIM("order-1"), WB_OK };
    if (!a || !second.client || !wb_client_takes(a, WB_BATCH(1), &held, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, claim_one, &second);
    int is_told = wb_actor_is_idle(&actor, LOCK_PATIENCE);
    int r = wb_client_commit(a, WB_BATCH(1), "operations", 10);
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    if (!wb_client_check(a, r, WB_OK, "commit what another session waits for"))
        return;
    WB_KIT_REQUIRE(kit, is_told, "a lock is waited for longer than %d s, or for ever: the plugin has an option that limits it; "
                                 "give it a shorter timeout", (int)(LOCK_PATIENCE / WB_SECOND));
    check_servers(second.client, second.result, "a claim that a neighbour holds for too long");
    wb_kit_check(kit, second.client->error.cause == WB_CAUSE_SERVER, "cause %d, not the server",
                 second.client->error.cause);
    if (second.result == WB_RETRY) /* nothing is open, and the session is whole */
        wb_client_finds_owner(second.client, "order-1", 7, WB_BATCH(1));
}

typedef struct {
    const char *doing;
    uint64_t needs; /* WB_CAP_x, one of them; 0: nothing */
    int (*call)(wb_client *client);
} deed;

typedef struct {
    const deed *what;
    wb_client *client;
    wb_actor actor;
    int result;
} waiting;

static int call_mark(wb_client *client)
{
    return wb_client_mark(client, WB_BATCH(2), NULL, 0);
}

static int call_sweep(wb_client *client)
{
    wb_found found;
    int r = wb_client_sweep(client, WB_BATCH_END, 10, &found);
    free(found.operations);
    return r;
}

static int call_clean_up(wb_client *client)
{
    size_t deleted;
    return wb_client_clean_up(client, WB_BATCH(2), 10, &deleted);
}

static int call_find(wb_client *client)
{
    wb_claim claim = WB_CLAIM("order-2");
    wb_error_clear(&client->error);
    int r = client->ops->find(client->session, &claim, 1, &client->error);
    if (r == WB_OK)
        wb_kit_check(client->kit, claim.duplicate_of == WB_BATCH(2), "an id that has a record is not found");
    return r;
}

static int call_forget(wb_client *client)
{
    const wb_claim claim = { "order-3", 7, WB_BATCH(3) };
    wb_error_clear(&client->error);
    return client->ops->forget(client->session, &claim, 1, &client->error);
}

static int call_remember(wb_client *client)
{
    const wb_claim claim = { "order-4", 7, WB_BATCH(4) };
    wb_error_clear(&client->error);
    return client->ops->remember(client->session, &claim, 1, &client->error);
}

static const deed deeds[] = {
    { "mark", 0, call_mark },
    { "sweep", 0, call_sweep },
    { "clean up", 0, call_clean_up },
    { "find an id", WB_CAP_CLAIM_WITH_COMMIT | WB_CAP_REMEMBER, call_find },
    { "forget", WB_CAP_FORGET, call_forget },
    { "remember", WB_CAP_REMEMBER, call_remember },
};
#define DEEDS (sizeof deeds / sizeof *deeds)

static int can(const wb_kit *kit, const deed *what)
{
    return !what->needs || (what->needs & kit->plugin->capabilities);
}

/* Those that the plugin can do, on a session each. @return how many, or 0: it was noted. */
static size_t open_waiting(wb_kit *kit, waiting all[DEEDS])
{
    size_t count = 0;
    for (size_t i = 0; i < DEEDS; i++) {
        if (!can(kit, &deeds[i]))
            continue;
        all[count] = (waiting){ .what = &deeds[i], .client = wb_client_open(kit, 0) };
        if (!all[count++].client)
            return 0;
    }
    return count;
}

static void make_call(void *argument)
{
    waiting *one = argument;
    one->result = one->what->call(one->client);
}

/* All at once: one that waits keeps the others waiting no longer. */
static void call_all(wb_kit *kit, waiting *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wb_actor_start(&all[i].actor);
        wb_actor_do(&all[i].actor, make_call, &all[i]);
    }
    for (size_t i = 0; i < count; i++) {
        wb_actor_await(kit, &all[i].actor);
        wb_actor_stop(&all[i].actor);
    }
}

/* What was said to be done is; what was not is done now, and was lost by nobody. */
static void check_done(wb_client *look, waiting *all, size_t count)
{
    const uint64_t capabilities = look->kit->plugin->capabilities;
    for (size_t i = 0; i < count; i++) {
        if (all[i].result == WB_OK)
            continue;
        check_servers(all[i].client, all[i].result, all[i].what->doing);
        wb_client_check(all[i].client, all[i].what->call(all[i].client), WB_OK, all[i].what->doing);
    }
    wb_client_check(look, call_clean_up(look), WB_OK, "clean up again"); /* it may have been kept out */
    wb_client_finds_pending(look, WB_BATCH(2), NULL, 0);
    wb_client_finds_owner(look, "order-1", 7, 0);
    wb_client_finds_owner(look, "order-2", 7, WB_BATCH(2));
    wb_client_finds_owner(look, "order-3", 7, capabilities & WB_CAP_FORGET ? 0 : WB_BATCH(3));
    if (capabilities & WB_CAP_REMEMBER)
        wb_client_finds_owner(look, "order-4", 7, WB_BATCH(4));
}

/* Beside an open transaction each call is done, or could not be for the server's sake. */
static void beside_a_transaction(wb_kit *kit)
{
    wb_claim held = WB_CLAIM("order-5");
    waiting all[DEEDS];
    wb_client *a = wb_client_open(kit, 0);
    const size_t count = a ? open_waiting(kit, all) : 0;
    if (!count || !wb_client_stores(a, WB_BATCH(1), "order-1", NULL) ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "operations") || !wb_client_stores(a, WB_BATCH(3), "order-3", NULL) ||
        !wb_client_takes(a, WB_BATCH(5), &held, 1))
        return;
    call_all(kit, all, count);
    if (wb_client_check(a, wb_client_commit(a, WB_BATCH(5), NULL, 0), WB_OK, "commit"))
        check_done(a, all, count);
}

/* ---- a server of the kit's own ------------------------------------------------------------ */

static int needs_crash(wb_kit *kit)
{
    if (!kit->options->crash_server)
        wb_kit_skip(kit, "no --crash-server");
    return kit->options->crash_server != NULL;
}

#define CONNECTIONS_MAX 400

/* Only where the server is the kit's: others need its connections, too. */
static void too_many_connections(wb_kit *kit)
{
    wb_storage_session *sessions[CONNECTIONS_MAX];
    size_t count = 0;
    int r = WB_OK;
    if (!needs_crash(kit))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a)
        return;
    wb_error_clear(&a->error);
    while (count < CONNECTIONS_MAX && r == WB_OK) {
        r = a->ops->open(a->store->instance, &sessions[count], &a->error);
        count += r == WB_OK;
    }
    while (count)
        a->ops->close(sessions[--count]);
    if (r == WB_OK) {
        wb_kit_skip(kit, "%d sessions are not too many", CONNECTIONS_MAX);
        return;
    }
    check_servers(a, r, "a connection too many");
    wb_kit_check(kit, a->error.cause == WB_CAUSE_SERVER, "cause %d, not the server: %s",
                 a->error.cause, a->error.text);
    (void)wb_client_open_patiently(kit, a->store); /* until the server has noticed */
}

typedef struct {
    const char *command;
    int is_crashed;
} crash;

static void crash_server(void *argument)
{
    crash *server = argument;
    server->is_crashed = wb_relay_run(server->command);
}

/* @return whether the session goes on. */
static int expect_servers(wb_client *client, int result, const char *doing, size_t *failures)
{
    if (result == WB_OK)
        return 1;
    ++*failures;
    check_servers(client, result, doing);
    wb_kit_check(client->kit, client->error.cause == WB_CAUSE_UNREACHABLE ||
                                  client->error.cause == WB_CAUSE_SERVER,
                 "%s while the server is down: cause %d: %s", doing, client->error.cause,
                 client->error.text);
    return 0;
}

/* One round of what a worker does; what fails ends the session. */
static void work(wb_client *client, uint64_t n, size_t *failures)
{
    char id[24];
    wb_claim claim = { id, (size_t)snprintf(id, sizeof id, "order-%u", (unsigned)n), 0 };
    wb_error_clear(&client->error);
    if (!client->session) {
        int r = client->ops->open(client->store->instance, &client->session, &client->error);
        if (!expect_servers(client, r, "open", failures)) {
            client->session = NULL;
            return;
        }
    }
    if (expect_servers(client, wb_client_begin(client, WB_BATCH(n), &claim, 1), "begin", failures) &&
        expect_servers(client, wb_client_commit(client, WB_BATCH(n), "operations", 10), "commit",
                       failures) &&
        expect_servers(client, wb_client_mark(client, WB_BATCH(n), NULL, 0), "mark", failures))
        return;
    wb_client_close(client);
}

static void while_the_server_is_down(wb_kit *kit)
{
    wb_actor actor;
    crash server = { .command = kit->options->crash_server };
    size_t failures = 0;
    if (!needs_crash(kit))
        return;
    /* a pooler may hide it from whoever works between two transactions; not from this one */
    wb_claim claim = WB_CLAIM("interrupted");
    wb_client *interrupted = wb_client_open(kit, 0);
    wb_client *a = wb_client_open(kit, 0);
    if (!interrupted || !a ||
        !wb_client_check(interrupted, wb_client_begin(interrupted, WB_PARKED(2), &claim, 1), WB_OK,
                         "begin"))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, crash_server, &server);
    for (uint64_t n = 1; !wb_actor_is_idle(&actor, 10 * WB_MILLISECOND); n++)
        work(a, n, &failures);
    wb_actor_stop(&actor);
    wb_kit_check(kit, server.is_crashed, "the server could not be crashed");
    (void)expect_servers(interrupted, wb_client_commit(interrupted, WB_PARKED(2), "operations", 10),
                         "commit", &failures);
    wb_kit_check(kit, failures > 0, "nothing failed while the server was down");
    wb_client_close(interrupted);
    wb_client *again = wb_client_open_patiently(kit, a->store);
    if (again)
        wb_client_stores(again, WB_PARKED(1), "afterwards", NULL);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a lock that a neighbour holds for too long is the server's fault", OUTBOX,
      lock_of_a_neighbour },
    { "what fails beside an open transaction is the server's fault", OUTBOX, beside_a_transaction },
    { "a connection too many is the server's fault", OUTBOX, too_many_connections },
    { "crash: what fails while the server is down is its own fault", OUTBOX,
      while_the_server_is_down },
};
const wb_kit_group wb_cases_fault = WB_KIT_GROUP(cases);

/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: messages that programs write in SQL, from what a program calls to the row that is
 * removed, and ids that programs claim.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/lost.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

#define NUMBERS_MAX 64
#define MIB (1024 * 1024)
#define HOUR (3600 * WB_SECOND)
/* How long the turn of a session that ended may stay where it was, and what is due in a millisecond away. */
#define SOON (20 * WB_SECOND)

static const wb_written_ops *ops_of(const wb_client *client)
{
    return client->ops->written;
}

#define TEXT(string) ((wb_written_text){ (string), sizeof(string) - 1 })

/* ---- steps ---------------------------------------------------------------------------- */

/* What a fetch visited. */
typedef struct {
    size_t count;
    uint64_t numbers[NUMBERS_MAX];
    char bodies[1024]; /* those that are short, a blank after each */
    int has_turn;
    const wb_written *wanted; /* or NULL: the last must be as that, when a program wrote it now */
    wb_kit *kit;
    uint64_t tries; /* of the last */
} seen;

static void check_text(seen *s, const char *what, wb_written_text is, wb_written_text wanted)
{
    (void)wb_kit_check(s->kit, !is.data == !wanted.data && is.size == wanted.size &&
                                   (!is.size || memcmp(is.data, wanted.data, is.size) == 0),
                       "the %s is not what was written: %zu bytes, \"%.40s\"", what, is.size, is.data ? is.data : "");
}

/* Databases keep JSON with blanks of their own. */
static void check_headers(seen *s, wb_written_text is, wb_written_text wanted)
{
    size_t at = 0;
    for (size_t i = 0; i < is.size; i++)
        if (is.data[i] != ' ')
            at = at < wanted.size && is.data[i] == wanted.data[at] ? at + 1 : SIZE_MAX - 1;
    (void)wb_kit_check(s->kit, !is.data == !wanted.data && at == wanted.size, "the headers are \"%.*s\"", (int)is.size,
                       is.data ? is.data : "");
}

static void check_row(seen *s, const wb_written *row, const wb_written *wanted)
{
    int64_t age = wb_clock_wall() - row->written;
    check_text(s, "destination", row->destination, wanted->destination);
    check_text(s, "type", row->type, wanted->type);
    check_text(s, "key", row->key, wanted->key);
    check_text(s, "body", row->body, wanted->body);
    check_headers(s, row->headers, wanted->headers);
    (void)wb_kit_check(s->kit, row->id.size >= 16 && row->id.size <= 255, "the id has %zu bytes", row->id.size);
    (void)wb_kit_check(s->kit, row->form == WB_WRITTEN_FORM && !row->tries, "it has form %" PRIu64 ", tries %" PRIu64,
                       row->form, row->tries);
    (void)wb_kit_check(s->kit, age > -600 * WB_SECOND && age < 600 * WB_SECOND, "it was written %" PRId64 " s ago",
                       age / WB_SECOND);
}

static int note(void *argument, const wb_written *row)
{
    seen *s = argument;
    size_t used = strlen(s->bodies);
    if (s->wanted)
        check_row(s, row, s->wanted);
    if (row->body.size < 32)
        (void)snprintf(s->bodies + used, sizeof s->bodies - used, "%.*s ", (int)row->body.size,
                       row->body.size ? row->body.data : "");
    if (s->count < NUMBERS_MAX)
        s->numbers[s->count] = row->number;
    s->count++;
    s->tries = row->tries;
    return WB_OK;
}

static int fetch_behind(wb_client *client, uint64_t behind, uint64_t *ret_last, seen *s)
{
    wb_written_fetch fetch = { .struct_size = sizeof fetch, .limit = NUMBERS_MAX, .form = WB_WRITTEN_FORM,
                               .behind = behind, .wants_last = 1 };
    *s = (seen){ .kit = client->kit };
    wb_error_clear(&client->error);
    int r = ops_of(client)->fetch(client->session, &fetch, note, s, &client->error);
    *ret_last = fetch.last;
    return wb_client_check(client, r, WB_OK, "fetch");
}

static int fetch_form(wb_client *client, size_t limit, uint64_t form, const wb_written *wanted, seen *s)
{
    wb_written_fetch fetch = { .struct_size = sizeof fetch, .limit = limit, .form = form, .has_turn = 7 };
    *s = (seen){ .kit = client->kit, .wanted = wanted };
    wb_error_clear(&client->error);
    int r = ops_of(client)->fetch(client->session, &fetch, note, s, &client->error);
    s->has_turn = fetch.has_turn;
    return r;
}

static int fetch_into(wb_client *client, size_t limit, const wb_written *wanted, seen *s)
{
    return fetch_form(client, limit, WB_WRITTEN_FORM, wanted, s);
}

static int settle(wb_client *client, const uint64_t *removed, size_t count, const wb_written_rest *rests, size_t rest_count)
{
    wb_error_clear(&client->error);
    return ops_of(client)->settle(client->session, removed, count, rests, rest_count, &client->error);
}

/* @return whether that went as it should: so do those below. */
static int removes(wb_client *client, const seen *s)
{
    return wb_client_check(client, settle(client, s->numbers, s->count, NULL, 0), WB_OK, "remove what was fetched");
}

/* The session that had the turn may have ended a moment ago. */
static int sees(wb_client *client, size_t limit, const char *bodies, seen *s)
{
    int64_t until = wb_clock_monotonic() + SOON;
    int r;
    while ((r = fetch_into(client, limit, NULL, s)) == WB_OK && !s->has_turn && wb_clock_monotonic() < until)
        wb_clock_pause(WB_MILLISECOND, NULL);
    return wb_client_check(client, r, WB_OK, "fetch") &&
           wb_kit_check(client->kit, s->has_turn == 1, "the turn is not to be had") &&
           wb_kit_check(client->kit, strcmp(s->bodies, bodies) == 0, "\"%s\" was fetched, not \"%s\"", s->bodies, bodies);
}

static int writes_row(wb_client *client, const wb_written *row)
{
    wb_error_clear(&client->error);
    return wb_client_check(client, ops_of(client)->write(client->session, row, &client->error), WB_OK, "write a message");
}

/* A command whose body is a string. */
static int writes(wb_client *client, const char *key, const char *body)
{
    static unsigned number;
    char id[64];
    (void)snprintf(id, sizeof id, "kit-%016" PRIx64 "-%u", (uint64_t)wb_clock_wall(), number++);
    const wb_written row = { .struct_size = sizeof row,
                             .id = { id, strlen(id) },
                             .destination = TEXT("queue"),
                             .type = TEXT("Type"),
                             .key = { key, key ? strlen(key) : 0 },
                             .body = { body, strlen(body) } };
    return writes_row(client, &row);
}

/* A session with nothing left of earlier cases, and the turn. */
static wb_client *open_empty(wb_kit *kit, size_t which)
{
    wb_client *client = wb_client_open(kit, which);
    int64_t until = wb_clock_monotonic() + SOON;
    seen s = { .count = 1 };
    while (client && (s.count || !s.has_turn) && wb_clock_monotonic() < until) {
        if (!wb_client_check(client, fetch_into(client, NUMBERS_MAX, NULL, &s), WB_OK, "fetch") ||
            (s.count && !removes(client, &s)))
            return NULL;
    }
    return client;
}

/* ---- cases ------------------------------------------------------------------------------ */

/* An endpoint of its own, installed without the interface. */
static int install_without(wb_kit *kit, wb_store *store)
{
    wb_error error = { 0 };
    char name[sizeof store->name];
    (void)snprintf(name, sizeof name, "%.*s.plain", (int)sizeof name - 8, store->name);
    store->ops->destroy(store->instance);
    store->instance = NULL;
    (void)snprintf(store->name, sizeof store->name, "%s", name);
    store->info.sql_api = 0;
    int r = store->ops->create(&store->host.host, &store->info, kit->endpoint->persistence_config, &store->instance,
                               &error);
    if (r == WB_OK)
        r = store->ops->install(store->instance, &error);
    return wb_kit_check(kit, r == WB_OK, "could not install \"%s\": %s", name, error.text);
}

static void installed_where_asked(wb_kit *kit)
{
    wb_store *other = wb_store_again(kit, 0);
    wb_client *client = wb_client_open(kit, 0), *stranger;
    int is = 7;
    WB_KIT_REQUIRE(kit, client && other, "no session");
    int r = ops_of(client)->is_installed(client->session, &is, &client->error);
    (void)(wb_client_check(client, r, WB_OK, "look for the interface") &&
           wb_kit_check(kit, is == 1, "it was installed, and is not there"));
    WB_KIT_REQUIRE(kit, install_without(kit, other), "no instance");
    stranger = wb_client_open_on(kit, other);
    WB_KIT_REQUIRE(kit, stranger != NULL, "no session");
    r = ops_of(client)->is_installed(stranger->session, &is, &stranger->error);
    (void)(wb_client_check(stranger, r, WB_OK, "look for the interface") &&
           wb_kit_check(kit, is == 0, "it was not installed, and is there"));
    wb_client_close(stranger); /* before its instance goes */
}

static void fetched_as_written(wb_kit *kit)
{
    static const char every[] = "\0\1\t\n\r'\"\\\xff\x80 %$1[{?:x\x1a";
    const wb_written rows[] = {
        { .id = TEXT("kit-0000000000000001"), .destination = TEXT("queue"), .type = TEXT("A.Type"),
          .headers = TEXT("{\"a\":\"b'\\\\\"}"), .key = TEXT("key'\\\""), .body = TEXT("body") },
        { .id = TEXT("kit-0000000000000002"), .type = TEXT("An.Event"), .body = { every, sizeof every - 1 } },
        { .id = TEXT("kit-0000000000000003"), .destination = TEXT("q"), .type = TEXT("T"), .body = { "", 0 } },
    };
    wb_client *client = open_empty(kit, 0);
    seen s;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!writes_row(client, &rows[i]) ||
            !wb_client_check(client, fetch_into(client, 10, &rows[i], &s), WB_OK, "fetch") ||
            !wb_kit_check(kit, s.count == 1, "%zu rows were fetched, not one", s.count) || !removes(client, &s))
            return;
    }
}

static void large_ones(wb_kit *kit)
{
    char *body = wb_alloc(8 * MIB);
    const wb_written row = { .id = TEXT("kit-large-0000000000"), .destination = TEXT("queue"), .type = TEXT("T"),
                             .body = { body, 8 * MIB } };
    wb_client *client = open_empty(kit, 0);
    wb_written numbered = row;
    char id[32];
    seen s = { 0 };
    memset(body, 'x', 8 * MIB);
    for (int i = 0; client && i < 5; i++) {
        (void)snprintf(id, sizeof id, "kit-large-%010d", i);
        numbered.id = (wb_written_text){ id, strlen(id) };
        if (!writes_row(client, &numbered))
            client = NULL;
    }
    for (int i = 0; client && i < 2; i++) {
        size_t wanted = i ? 1 : 4;
        if (wb_client_check(client, fetch_into(client, 10, &row, &s), WB_OK, "fetch"))
            (void)wb_kit_check(kit, s.count == wanted, "%zu rows of 8 MiB were fetched, not %zu", s.count, wanted);
        (void)removes(client, &s);
    }
    free(body);
}

static void check_is_refused(wb_client *client, wb_written row, size_t headers_size, const char *what)
{
    static char headers[WB_WRITTEN_HEADERS_SIZE_MAX + 2];
    row.headers = (wb_written_text){ headers, headers_size };
    memset(headers, 'x', headers_size);
    memcpy(headers, "{\"a\":\"", 6);
    memcpy(headers + headers_size - 2, "\"}", 2);
    wb_error_clear(&client->error);
    int r = ops_of(client)->write(client->session, &row, &client->error);
    (void)wb_kit_check(client->kit, r != WB_OK && r != WB_NOT_CONNECTED, "%s: %s", what, wb_result_name(r));
}

/* A row that a fetch cannot hold would keep all others. */
static void too_large(wb_kit *kit)
{
    static char name[256];
    const wb_written row = { .id = TEXT("kit-0000000000000004"), .destination = TEXT("queue"), .type = TEXT("Type"),
                             .body = TEXT("x") };
    wb_client *client = open_empty(kit, 0);
    wb_written odd = row;
    seen s;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    memset(name, 'x', sizeof name);
    check_is_refused(client, row, WB_WRITTEN_HEADERS_SIZE_MAX + 1, "headers of more than 64 KiB");
    odd.key = (wb_written_text){ name, sizeof name };
    check_is_refused(client, odd, 16, "a key of 256 bytes");
    odd = row;
    odd.type = (wb_written_text){ name, sizeof name };
    check_is_refused(client, odd, 16, "a type of 256 bytes");
    (void)sees(client, 10, "", &s);
}

static void later_form(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    seen s;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!writes(client, "k", "a") || !writes(client, NULL, "b") ||
        !wb_client_check(client, fetch_form(client, 10, WB_WRITTEN_FORM - 1, NULL, &s), WB_OK, "fetch what an earlier version knows") ||
        !wb_kit_check(kit, !s.count, "%zu rows of a later form", s.count))
        return;
    if (sees(client, 10, "a b ", &s))
        (void)removes(client, &s);
}

static void by_number(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0), *other = wb_client_open(kit, 0);
    seen s;
    WB_KIT_REQUIRE(kit, client && other, "no session");
    if (!writes(other, NULL, "a") || !writes(other, "k", "b") || !writes(other, "k", "c") || !writes(other, NULL, "d") ||
        !sees(client, 3, "a b c ", &s))
        return;
    (void)wb_kit_check(kit, s.numbers[0] < s.numbers[1] && s.numbers[1] < s.numbers[2], "their numbers do not ascend");
    if (!wb_client_check(client, settle(client, NULL, 0, NULL, 0), WB_OK, "settle nothing") || !sees(client, 3, "a b c ", &s) ||
        !wb_client_check(client, settle(client, s.numbers, 2, NULL, 0), WB_OK, "remove two") || !sees(client, 10, "c d ", &s) ||
        !removes(client, &s) || !wb_client_check(client, settle(client, s.numbers, 2, NULL, 0), WB_OK, "remove them again"))
        return;
    (void)sees(client, 10, "", &s);
}

static wb_written_rest rest(uint64_t number, int64_t pause, int is_tried)
{
    return (wb_written_rest){ .struct_size = sizeof(wb_written_rest), .number = number, .pause = pause,
                              .is_tried = is_tried, .reason = "it's \"so\" \\" };
}

static void postponed(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    int64_t until = wb_clock_monotonic() + SOON;
    seen s;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!writes(client, "k", "a") || !writes(client, "k", "b") || !writes(client, "l", "c") || !writes(client, NULL, "d") ||
        !sees(client, 10, "a b c d ", &s))
        return;
    const wb_written_rest rests[] = { rest(s.numbers[0], HOUR, 1), rest(s.numbers[3], HOUR, 0) };
    if (!wb_client_check(client, settle(client, NULL, 0, rests, 2), WB_OK, "postpone two") || !sees(client, 10, "c ", &s) ||
        !wb_client_check(client, settle(client, NULL, 0, NULL, 0), WB_OK, "settle nothing") ||
        !writes(client, "k", "e") || !sees(client, 10, "c ", &s) || !removes(client, &s))
        return;
    const wb_written_rest again[] = { rest(rests[0].number, WB_MILLISECOND, 1), rest(rests[1].number, HOUR, 0) };
    if (!wb_client_check(client, settle(client, NULL, 0, again, 2), WB_OK, "postpone them again"))
        return;
    while (fetch_into(client, 10, NULL, &s) == WB_OK && !s.count && wb_clock_monotonic() < until)
        wb_clock_pause(WB_MILLISECOND, NULL);
    if (!sees(client, 1, "a ", &s) || !wb_kit_check(kit, s.tries == 2, "it was tried %" PRIu64 " times, not 2", s.tries) ||
        !sees(client, 10, "a b e ", &s))
        return;
    s.numbers[s.count++] = again[1].number;
    (void)removes(client, &s);
}

/* A number too high would have the host pass over what has yet to come. */
static void behind_a_number(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    uint64_t last = 7;
    seen s, rest_of;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!writes(client, "k", "a") || !writes(client, NULL, "b") || !writes(client, NULL, "c") || !sees(client, 10, "a b c ", &s))
        return;
    const wb_written_rest waits = rest(s.numbers[2], HOUR, 0);
    if (!wb_client_check(client, settle(client, NULL, 0, &waits, 1), WB_OK, "postpone one") ||
        !fetch_behind(client, s.numbers[0], &last, &rest_of))
        return;
    (void)(wb_kit_check(kit, strcmp(rest_of.bodies, "b ") == 0, "behind the first there is \"%s\"", rest_of.bodies) &&
           wb_kit_check(kit, last == s.numbers[2], "the last is number %" PRIu64 ", not %" PRIu64, last, s.numbers[2]) &&
           wb_client_check(client, settle(client, NULL, 0, NULL, 0), WB_OK, "settle nothing") &&
           fetch_behind(client, last, &last, &rest_of) &&
           wb_kit_check(kit, !rest_of.count, "behind the last there is \"%s\"", rest_of.bodies));
    (void)removes(client, &s);
    if (fetch_behind(client, 0, &last, &rest_of))
        (void)wb_kit_check(kit, last <= s.numbers[2], "where nothing is the last is %" PRIu64, last);
}

static void turn_is_ones(wb_kit *kit)
{
    wb_client *first = open_empty(kit, 0), *second = wb_client_open(kit, 0);
    seen s;
    WB_KIT_REQUIRE(kit, first && second, "no session");
    if (!writes(first, NULL, "a") || !sees(first, 10, "a ", &s) ||
        !wb_client_check(second, fetch_into(second, 10, NULL, &s), WB_OK, "fetch beside another"))
        return;
    (void)wb_kit_check(kit, s.has_turn == 0 && !s.count, "two sessions have the turn, or %zu rows without it", s.count);
    wb_client_close(first);
    if (sees(second, 10, "a ", &s))
        (void)removes(second, &s);
}

static int counts(wb_client *client, size_t limit, uint64_t wanted)
{
    uint64_t count = 77;
    wb_error_clear(&client->error);
    return wb_client_check(client, ops_of(client)->count(client->session, limit, &count, &client->error), WB_OK, "count") &&
           wb_kit_check(client->kit, count == wanted, "%" PRIu64 " rows are counted, not %" PRIu64, count, wanted);
}

/* One that waits, one behind it, one that may go: all are somebody's messages. */
static void counted_by_anybody(wb_kit *kit)
{
    if (wb_kit_lacks(kit, WB_HAS(((const wb_persistence_ops *)kit->plugin->ops)->written, wb_written_ops, count), "written.count"))
        return;
    wb_client *client = open_empty(kit, 0), *other = wb_client_open(kit, 0);
    seen s;
    WB_KIT_REQUIRE(kit, client && other, "no session");
    if (!counts(other, 10, 0) || !writes(other, "k", "a") || !writes(other, "k", "b") || !writes(other, NULL, "c") ||
        !sees(client, 10, "a b c ", &s))
        return;
    const wb_written_rest waits = rest(s.numbers[0], HOUR, 1);
    const int are_counted = wb_client_check(client, settle(client, NULL, 0, &waits, 1), WB_OK, "postpone one") &&
                            counts(other, 10, 3) && counts(other, 2, 2) && counts(other, SIZE_MAX, 3);
    if (removes(client, &s) && are_counted)
        (void)counts(other, 10, 0);
}

static void endpoints_are_apart(wb_kit *kit)
{
    wb_client *first = open_empty(kit, 0), *second = open_empty(kit, 1);
    seen s;
    WB_KIT_REQUIRE(kit, first && second, "no session");
    if (writes(first, "k", "a") && writes(second, "k", "b") && sees(first, 10, "a ", &s) && removes(first, &s) &&
        sees(second, 10, "b ", &s))
        (void)removes(second, &s);
}

static int claims(wb_client *client, wb_written_text id, int is_new)
{
    int is = 7;
    wb_error_clear(&client->error);
    return wb_client_check(client, ops_of(client)->claim(client->session, id, &is, &client->error), WB_OK, "claim an id") &&
           wb_kit_check(client->kit, is == is_new, "an id is %s", is ? "new, and was claimed before" : "not new");
}

static void claimed_once(wb_kit *kit)
{
    wb_client *client = wb_client_open(kit, 0), *other = wb_client_open(kit, 1);
    size_t deleted = 0;
    WB_KIT_REQUIRE(kit, client && other, "no session");
    if (claims(client, TEXT("id"), 1) && claims(client, TEXT("id"), 0) && claims(client, TEXT("ID"), 1) &&
        claims(client, TEXT("id "), 1) && claims(client, TEXT("i\xc3\xa9'\\"), 1) && claims(client, TEXT("i\xc3\xa9'\\"), 0) &&
        claims(other, TEXT("id"), 1) && wb_client_finds_owner(client, "id", 2, 0) &&
        wb_client_check(client, wb_client_clean_up(client, WB_BATCH_OF_LOOKS, 100, &deleted), WB_OK, "clean up") &&
        wb_kit_check(kit, deleted == 4, "%zu of 4 records are deleted when they are old", deleted))
        (void)claims(client, TEXT("id"), 1);
}

/* ---- connections that break ---------------------------------------------------------------- */

static seen before; /* what prepare_settle() saw */

static int prepare_fetch(wb_client *client)
{
    seen s;
    return sees(client, 10, "", &s) && writes(client, NULL, "a");
}

static int prepare_settle(wb_client *client)
{
    return writes(client, NULL, "a") && sees(client, 10, "a ", &before);
}

static int call_fetch(wb_client *client)
{
    seen s;
    return fetch_into(client, 10, NULL, &s);
}

static int call_settle(wb_client *client)
{
    return settle(client, before.numbers, before.count, NULL, 0);
}

static void check_fetch(wb_client *look, int result, int is_sent)
{
    seen s;
    (void)result;
    (void)is_sent;
    if (sees(look, 10, "a ", &s))
        (void)removes(look, &s);
}

static void check_settle(wb_client *look, int result, int is_sent)
{
    seen s;
    (void)result;
    if (!is_sent) {
        check_fetch(look, result, is_sent);
        return;
    }
    int r = settle(look, before.numbers, before.count, NULL, 0);
    if (wb_client_check(look, r, WB_OK, "remove once more"))
        (void)sees(look, 10, "", &s);
}

static const wb_lost_call of_fetch = { prepare_fetch, call_fetch, WB_GONE, check_fetch };
static const wb_lost_call of_settle = { prepare_settle, call_settle, WB_GONE_OR_UNKNOWN, check_settle };

static void lose(wb_kit *kit, const wb_lost_call *call, wb_loss loss)
{
    wb_client *client = open_empty(kit, 0);
    if (!client)
        return;
    wb_client_close(client); /* it has the turn */
    wb_lost_lose(kit, call, loss);
}

static void fetch_reply(wb_kit *kit)
{
    lose(kit, &of_fetch, WB_LOSE_REPLY);
}

static void settle_request(wb_kit *kit)
{
    lose(kit, &of_settle, WB_LOSE_REQUEST);
}

static void settle_reply(wb_kit *kit)
{
    lose(kit, &of_settle, WB_LOSE_REPLY);
}

#define WRITTEN (WB_CAP_OUTBOX | WB_CAP_WRITTEN)
static const wb_kit_case cases[] = {
    { "written: the interface is there where it was installed", WRITTEN, installed_where_asked },
    { "written: messages are fetched as they were written", WRITTEN, fetched_as_written },
    { "written: a fetch ends with the row that reaches 32 MiB", WRITTEN, large_ones },
    { "written: what is larger than may be is refused", WRITTEN, too_large },
    { "written: rows of a later form are left alone", WRITTEN, later_form },
    { "written: rows come by their numbers, until they are removed", WRITTEN, by_number },
    { "written: what is postponed waits, and what is behind it with its key", WRITTEN, postponed },
    { "written: behind a number, and which is the last", WRITTEN, behind_a_number },
    { "written: one session has the turn, until it is closed", WRITTEN, turn_is_ones },
    { "written: all are counted, whoever has the turn", WRITTEN, counted_by_anybody },
    { "written: two endpoints are apart", WRITTEN, endpoints_are_apart },
    { "written: an id is claimed once, until its record is old", WRITTEN, claimed_once },
    { "written: a fetch whose reply is lost can be made again", WRITTEN, fetch_reply },
    { "written: the request of a settle is lost", WRITTEN, settle_request },
    { "written: the reply of a settle is lost", WRITTEN, settle_reply },
};
const wb_kit_group wb_cases_written = WB_KIT_GROUP(cases);

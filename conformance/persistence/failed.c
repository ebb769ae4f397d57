/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: failed messages, kept, found, turned and cleaned up; alone and in the transaction
 * of a batch, by one session and by several at once.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/lost.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

#define AT(n) ((int64_t)(n) * WB_SECOND)
/* Times are kept to the microsecond. */
#define MICROSECOND (WB_MILLISECOND / 1000)
/* More than an implementation reads at once. */
#define MANY 1100
#define KEYS_MAX 64
#define WORKERS 4
#define RACES 24
/* Of calls that lose against others: WB_ABORT and WB_RETRY are calls that did nothing. */
#define TRIES_MAX 200
/* A visitor's own word. */
#define ENOUGH WB_REJECT

static const wb_failed_ops *ops_of(const wb_client *client)
{
    return client->ops->interface(client->session, WB_FAILED_INTERFACE);
}

/* ---- what is visited ---------------------------------------------------------------------- */

typedef struct {
    wb_kit *kit;
    const wb_failed *wanted; /* or NULL: the last must be as that */
    size_t enough;           /* the visitor ends it then; 0: never */
    size_t count;
    char keys[512]; /* those that are short, a blank after each */
    struct {
        char key[WB_FAILED_KEY_MAX];
        size_t key_size;
        int32_t status;
    } of[KEYS_MAX];
    wb_failed last; /* without its bytes */
} seen;

static int is_same(const void *left, size_t left_size, const void *right, size_t right_size)
{
    return left_size == right_size && (!left_size || memcmp(left, right, left_size) == 0);
}

static int is_time(int64_t is, int64_t wanted)
{
    return is >= wanted && is - wanted < MICROSECOND;
}

/* A list shows no messages. */
static void compare(const seen *s, const wb_failed *row)
{
    const wb_failed *want = s->wanted;
    wb_kit_check(s->kit, is_same(row->key, row->key_size, want->key, want->key_size), "the key has %zu bytes of %zu, or others",
                 row->key_size, want->key_size);
    wb_kit_check(s->kit, is_same(row->summary, row->summary_size, want->summary, want->summary_size),
                 "the summary has %zu bytes of %zu, or others", row->summary_size, want->summary_size);
    wb_kit_check(s->kit, !row->message || is_same(row->message, row->message_size, want->message, want->message_size),
                 "the message has %zu bytes of %zu, or others", row->message_size, want->message_size);
    wb_kit_check(s->kit, is_time(row->failed_at, want->failed_at) && is_time(row->changed_at, want->changed_at),
                 "it failed at %" PRId64 " and changed at %" PRId64, row->failed_at, row->changed_at);
    wb_kit_check(s->kit, row->status == want->status && row->attempts == want->attempts, "it has status %d and %u attempts",
                 (int)row->status, row->attempts);
}

static int note(void *argument, const wb_failed *row)
{
    seen *s = argument;
    const size_t used = strlen(s->keys);
    if (s->wanted)
        compare(s, row);
    if (row->key_size < 32)
        (void)snprintf(s->keys + used, sizeof s->keys - used, "%.*s ", (int)row->key_size, row->key);
    if (s->count < KEYS_MAX && row->key_size <= WB_FAILED_KEY_MAX) {
        memcpy(s->of[s->count].key, row->key, row->key_size);
        s->of[s->count].key_size = row->key_size;
        s->of[s->count].status = row->status;
    }
    s->count++;
    s->last = *row;
    return s->enough && s->count >= s->enough ? ENOUGH : WB_OK;
}

/* ---- calls -------------------------------------------------------------------------------- */

static wb_failed failure(const char *key, int64_t at)
{
    return (wb_failed){ .struct_size = sizeof(wb_failed), .key = key, .key_size = strlen(key), .failed_at = at,
                        .changed_at = at, .summary = "summary", .summary_size = 7, .message = "message",
                        .message_size = 7, .status = WB_FAILED_WAITS, .attempts = 1 };
}

static int put(wb_client *client, const wb_failed *failed)
{
    wb_error_clear(&client->error);
    return ops_of(client)->put(client->session, failed, &client->error);
}

static int turn_at(wb_client *client, const char *key, int32_t from, int32_t to, int64_t now, int *ret_was)
{
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = key, .key_size = strlen(key), .from = from, .to = to,
                                  .now = now };
    *ret_was = -1;
    wb_error_clear(&client->error);
    return ops_of(client)->turn(client->session, &turn, ret_was, &client->error);
}

static int discard(wb_client *client, const char *key, size_t size, int32_t status, int *ret_was)
{
    *ret_was = -1;
    wb_error_clear(&client->error);
    return ops_of(client)->discard(client->session, key, size, status, ret_was, &client->error);
}

static int list(wb_client *client, int32_t status, int64_t from, int64_t before, seen *s)
{
    const wb_failed_filter filter = { .struct_size = sizeof filter, .status = status, .from = from, .before = before };
    s->kit = client->kit;
    s->count = 0;
    s->keys[0] = '\0';
    wb_error_clear(&client->error);
    return ops_of(client)->list(client->session, &filter, note, s, &client->error);
}

/* ---- what cases do all the time: whether it went as it should -------------------------------- */

static int keeps(wb_client *client, const char *key, int64_t at)
{
    const wb_failed failed = failure(key, at);
    return wb_client_check(client, put(client, &failed), WB_OK, "keep a message");
}

static int turns(wb_client *client, const char *key, int32_t from, int32_t to, int wanted)
{
    int was;
    return wb_client_check(client, turn_at(client, key, from, to, AT(50), &was), WB_OK, "turn a message") &&
           wb_kit_check(client->kit, was == wanted, "a turn of \"%s\" from %d to %d says %d", key, (int)from, (int)to, was);
}

static int discards(wb_client *client, const char *key, int32_t status, int wanted)
{
    int was;
    return wb_client_check(client, discard(client, key, strlen(key), status, &was), WB_OK, "discard a message") &&
           wb_kit_check(client->kit, was == wanted, "to discard \"%s\" where it is %d says %d", key, (int)status, was);
}

static int lists(wb_client *client, int32_t status, int64_t from, int64_t before, const char *keys)
{
    seen s = { 0 };
    return wb_client_check(client, list(client, status, from, before, &s), WB_OK, "list") &&
           wb_kit_check(client->kit, strcmp(s.keys, keys) == 0, "\"%s\" are listed, not \"%s\"", s.keys, keys);
}

/* The row as that one is; NULL: there is none. */
static int finds(wb_client *client, const char *key, const wb_failed *wanted)
{
    seen s = { .kit = client->kit, .wanted = wanted };
    wb_error_clear(&client->error);
    const int r = ops_of(client)->get(client->session, key, wanted ? wanted->key_size : strlen(key), note, &s, &client->error);
    return wb_client_check(client, r, WB_OK, "read a message") &&
           wb_kit_check(client->kit, s.count == (wanted != NULL), "it was visited %zu times", s.count) &&
           wb_kit_check(client->kit, !wanted || s.last.message, "it was visited without its message");
}

static int has_status(wb_client *client, const char *key, int32_t status, int64_t changed_at)
{
    wb_failed wanted = failure(key, AT(1));
    wanted.status = status;
    wanted.changed_at = changed_at;
    return finds(client, key, &wanted);
}

/* A session with nothing left of earlier cases. */
static wb_client *open_empty(wb_kit *kit, size_t which)
{
    wb_client *client = wb_client_open(kit, which);
    seen s = { .count = 1 };
    for (int i = 0, was; client && s.count && i < MANY; i++) {
        if (!wb_client_check(client, list(client, WB_FAILED_ANY, 0, 0, &s), WB_OK, "list"))
            return NULL;
        for (size_t at = 0; at < s.count && at < KEYS_MAX; at++)
            (void)discard(client, s.of[at].key, s.of[at].key_size, s.of[at].status, &was);
    }
    return client;
}

/* ---- one session ------------------------------------------------------------------------------ */

static void is_whole(wb_kit *kit)
{
    wb_client *client = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    const wb_failed_ops *ops = ops_of(client);
    WB_KIT_REQUIRE(kit, ops != NULL, "interface(\"" WB_FAILED_INTERFACE "\") hands out nothing");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, put), "there is no put()");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, turn), "there is no turn()");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, discard), "there is no discard()");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, get), "there is no get()");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, list), "there is no list()");
    wb_kit_check(kit, WB_HAS(ops, wb_failed_ops, clean_up), "there is no clean_up()");
}

static int comes_back(wb_client *client, const char *key, size_t key_size, char *message, size_t size)
{
    wb_failed one = failure("", WB_SECOND * INT64_C(1700000000) + 123456789);
    one.key = key;
    one.key_size = key_size;
    one.message = message;
    one.message_size = size;
    one.summary = message;
    one.summary_size = size < 4096 ? size : 4096;
    for (size_t i = 0; i < size; i++)
        message[i] = (char)(i * 7 + key_size);
    return wb_client_check(client, put(client, &one), WB_OK, "keep a message") && finds(client, key, &one);
}

static void comes_back_whole(wb_kit *kit)
{
    static const size_t sizes[] = { 0, 1, 65535, 65536, 1 << 20 };
    static const char *const keys[] = { "\0\1\t\n\r'\"\\\xff\x80 %$1[{?:x\x1a", "\0", "\0\1", "a ", "a" };
    static const size_t key_sizes[] = { 21, 1, 2, 2, 1 };
    char longest[WB_FAILED_KEY_MAX];
    wb_client *client = open_empty(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    char *message = wb_alloc(1 << 20);
    memset(longest, 'k', sizeof longest);
    int good = comes_back(client, longest, sizeof longest, message, 255);
    for (size_t i = 0; good && i < sizeof sizes / sizeof *sizes; i++)
        good = comes_back(client, keys[i], key_sizes[i], message, sizes[i]);
    free(message);
    seen s = { 0 };
    if (good && wb_client_check(client, list(client, WB_FAILED_ANY, 0, 0, &s), WB_OK, "list"))
        (void)(wb_kit_check(kit, s.count == 6, "%zu keys are there of 6", s.count) && finds(client, "A", NULL));
}

/* From whatever status. */
static int fails_again(wb_client *client, int32_t status)
{
    wb_failed one = failure("again", AT(1));
    if (!wb_client_check(client, put(client, &one), WB_OK, "keep a message") ||
        (status != WB_FAILED_WAITS && !turns(client, "again", WB_FAILED_WAITS, status, 1)))
        return 0;
    one.message = "other bytes";
    one.message_size = 11;
    one.summary = "others";
    one.summary_size = 6;
    one.failed_at = one.changed_at = AT(2);
    one.attempts = 2;
    if (!wb_client_check(client, put(client, &one), WB_OK, "keep what fails again") || !finds(client, "again", &one))
        return 0;
    return discards(client, "again", WB_FAILED_WAITS, 1);
}

static void again_from_each(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    for (int32_t status = WB_FAILED_WAITS; client && status <= WB_FAILED_ARCHIVED; status++)
        if (!fails_again(client, status))
            return;
}

/* A copy, or one that comes after its claim was forgotten: the retry that is on its way stays so. */
static void same_failure(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    wb_failed one = failure("same", AT(1));
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!wb_client_check(client, put(client, &one), WB_OK, "keep a message") ||
        !turns(client, "same", WB_FAILED_WAITS, WB_FAILED_RETRYING, 1))
        return;
    one.changed_at = AT(9);
    one.message = "other bytes";
    one.message_size = 11;
    if (wb_client_check(client, put(client, &one), WB_OK, "keep the same failure again"))
        (void)has_status(client, "same", WB_FAILED_RETRYING, AT(50));
}

static void turned_where_it_is(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    (void)(keeps(client, "a", AT(1)) && keeps(client, "b", AT(1)) &&
           turns(client, "a", WB_FAILED_RETRYING, WB_FAILED_RESOLVED, 0) && has_status(client, "a", WB_FAILED_WAITS, AT(1)) &&
           turns(client, "a", WB_FAILED_WAITS, WB_FAILED_RETRYING, 1) && has_status(client, "a", WB_FAILED_RETRYING, AT(50)) &&
           turns(client, "a", WB_FAILED_WAITS, WB_FAILED_RETRYING, 0) &&
           turns(client, "a", WB_FAILED_RETRYING, WB_FAILED_RESOLVED, 1) && has_status(client, "a", WB_FAILED_RESOLVED, AT(50)) &&
           turns(client, "nobody", WB_FAILED_WAITS, WB_FAILED_RETRYING, 0) && has_status(client, "b", WB_FAILED_WAITS, AT(1)));
}

static void discarded_where_it_is(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    (void)(keeps(client, "a", AT(1)) && keeps(client, "b", AT(2)) && discards(client, "a", WB_FAILED_RETRYING, 0) &&
           lists(client, WB_FAILED_ANY, 0, 0, "a b ") && discards(client, "a", WB_FAILED_WAITS, 1) &&
           discards(client, "a", WB_FAILED_WAITS, 0) && lists(client, WB_FAILED_ANY, 0, 0, "b ") && finds(client, "a", NULL));
}

/* ---- lists ----------------------------------------------------------------------------------------- */

static void listed_in_order(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    seen s = { .enough = 2 };
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!keeps(client, "d", AT(3)) || !keeps(client, "c", AT(3)) || !keeps(client, "z", AT(1)) || !keeps(client, "a", AT(5)) ||
        !turns(client, "c", WB_FAILED_WAITS, WB_FAILED_ARCHIVED, 1) || !lists(client, WB_FAILED_ANY, 0, 0, "z c d a "))
        return;
    (void)(lists(client, WB_FAILED_WAITS, 0, 0, "z d a ") && lists(client, WB_FAILED_ARCHIVED, 0, 0, "c ") &&
           lists(client, WB_FAILED_RESOLVED, 0, 0, "") && lists(client, WB_FAILED_ANY, AT(3), 0, "c d a ") &&
           lists(client, WB_FAILED_ANY, AT(3) + MICROSECOND, 0, "a ") && lists(client, WB_FAILED_ANY, 0, AT(3), "z ") &&
           lists(client, WB_FAILED_WAITS, AT(1), AT(5), "z d ") && lists(client, WB_FAILED_ANY, 0, AT(5) + MICROSECOND, "z c d a "));
    (void)(wb_client_check(client, list(client, WB_FAILED_ANY, 0, 0, &s), ENOUGH, "end a list") &&
           wb_kit_check(kit, s.count == 2 && !s.last.message, "%zu were visited before that, or with messages", s.count) &&
           lists(client, WB_FAILED_WAITS, 0, 0, "z d a "));
}

/* In one transaction, which is quicker; resolved, so that one clean-up removes them. */
static int keeps_many(wb_client *client)
{
    char key[16];
    if (!wb_client_takes(client, WB_BATCH(7), NULL, 0))
        return 0;
    for (int i = 0; i < MANY; i++) { /* many at one time */
        (void)snprintf(key, sizeof key, "m%06d", i);
        if (!keeps(client, key, AT(1 + i / 400)) || !turns(client, key, WB_FAILED_WAITS, WB_FAILED_RESOLVED, 1))
            return 0;
    }
    return wb_client_check(client, wb_client_commit(client, WB_BATCH(7), NULL, 0), WB_OK, "commit");
}

/* Keys ascend, so that the order is known. */
static int note_in_order(void *argument, const wb_failed *row)
{
    unsigned *next = argument;
    char wanted[16];
    (void)snprintf(wanted, sizeof wanted, "m%06u", *next);
    if (!is_same(row->key, row->key_size, wanted, strlen(wanted)))
        return WB_FATAL;
    ++*next;
    return WB_OK;
}

static void listed_many(wb_kit *kit)
{
    const wb_failed_filter all = { .struct_size = sizeof all };
    wb_client *client = open_empty(kit, 0);
    unsigned next = 0;
    size_t deleted = 0;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!keeps_many(client))
        return;
    wb_error_clear(&client->error);
    wb_client_check(client, ops_of(client)->list(client->session, &all, note_in_order, &next, &client->error), WB_OK,
                    "list many");
    wb_kit_check(kit, next == MANY, "%u were listed in their order, not %d", next, MANY);
    if (wb_client_check(client, ops_of(client)->clean_up(client->session, AT(60), 2 * MANY, &deleted, &client->error), WB_OK,
                        "clean up"))
        wb_kit_check(kit, deleted == MANY, "%zu were removed, not %d", deleted, MANY);
}

/* ---- clean-up ---------------------------------------------------------------------------------------- */

static int cleans(wb_client *client, int64_t before, size_t limit, size_t wanted)
{
    size_t deleted = 777;
    wb_error_clear(&client->error);
    return wb_client_check(client, ops_of(client)->clean_up(client->session, before, limit, &deleted, &client->error), WB_OK,
                           "clean up") &&
           wb_kit_check(client->kit, deleted == wanted, "%zu are said to be removed, not %zu", deleted, wanted);
}

static int turns_at(wb_client *client, const char *key, int32_t to, int64_t now)
{
    int was;
    return keeps(client, key, AT(1)) &&
           wb_client_check(client, turn_at(client, key, WB_FAILED_WAITS, to, now, &was), WB_OK, "turn a message");
}

static void cleaned_up(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    (void)(keeps(client, "waits", AT(1)) && turns_at(client, "c", WB_FAILED_RESOLVED, AT(12)) &&
           turns_at(client, "b", WB_FAILED_RETRYING, AT(11)) && turns_at(client, "a", WB_FAILED_ARCHIVED, AT(13)) &&
           turns_at(client, "young", WB_FAILED_RESOLVED, AT(20)) && cleans(client, AT(11), 10, 0) &&
           cleans(client, AT(20), 2, 2) && lists(client, WB_FAILED_ANY, 0, 0, "a waits young ") && cleans(client, AT(20), 2, 1) &&
           cleans(client, AT(20), 2, 0) && lists(client, WB_FAILED_ANY, 0, 0, "waits young ") && keeps(client, "a", AT(2)) &&
           lists(client, WB_FAILED_WAITS, 0, 0, "waits a "));
}

/* ---- in a transaction ------------------------------------------------------------------------------------ */

/* One is kept, one is turned, one is discarded. */
static int changes_in_batch(wb_client *client, const char *id)
{
    wb_claim claim = { id, strlen(id), 0 };
    return wb_client_takes(client, WB_BATCH(1), &claim, 1) && keeps(client, "new", AT(3)) &&
           turns(client, "turned", WB_FAILED_WAITS, WB_FAILED_RETRYING, 1) &&
           discards(client, "discarded", WB_FAILED_WAITS, 1);
}

static wb_client *open_with_two(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0);
    return client && keeps(client, "turned", AT(1)) && keeps(client, "discarded", AT(2)) ? client : NULL;
}

static int is_untouched(wb_client *client)
{
    return lists(client, WB_FAILED_WAITS, 0, 0, "turned discarded ") && has_status(client, "turned", WB_FAILED_WAITS, AT(1));
}

/* The operation that sends a message back, and its mark: both or neither. */
static void committed(wb_kit *kit)
{
    wb_client *client = open_with_two(kit);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!changes_in_batch(client, "order-1") || !finds(client, "discarded", NULL) ||
        !wb_client_check(client, wb_client_commit(client, WB_BATCH(1), "operations", 10), WB_OK, "commit"))
        return;
    (void)(lists(client, WB_FAILED_ANY, 0, 0, "turned new ") && has_status(client, "turned", WB_FAILED_RETRYING, AT(50)) &&
           wb_client_finds_pending(client, WB_BATCH(1), "operations", 10));
}

static void rolled_back(wb_kit *kit)
{
    wb_client *client = open_with_two(kit);
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (changes_in_batch(client, "order-1") && wb_client_check(client, wb_client_rollback(client), WB_OK, "roll back"))
        (void)(is_untouched(client) && wb_client_finds_pending(client, WB_BATCH(1), NULL, 0) &&
               wb_client_finds_owner(client, "order-1", 7, 0));
}

static void closed(wb_kit *kit)
{
    wb_client *client = open_with_two(kit), *look;
    WB_KIT_REQUIRE(kit, client != NULL, "no session");
    if (!changes_in_batch(client, "order-1"))
        return;
    wb_client_close(client);
    look = wb_client_open(kit, 0);
    if (look)
        (void)is_untouched(look);
}

static void live_in_batch(wb_client *victim)
{
    (void)changes_in_batch(victim, "order-1");
}

static void killed(wb_kit *kit)
{
    wb_client *client = open_with_two(kit);
    if (!client || !wb_victim_run(kit, live_in_batch) || !wb_client_finds_owner_soon(client, "order-1", 7, 0))
        return;
    (void)is_untouched(client);
}

static void live_alone(wb_client *victim)
{
    (void)(keeps(victim, "new", AT(3)) && turns(victim, "turned", WB_FAILED_WAITS, WB_FAILED_RETRYING, 1) &&
           discards(victim, "discarded", WB_FAILED_WAITS, 1));
}

static void killed_behind(wb_kit *kit)
{
    wb_client *client = open_with_two(kit);
    if (client && wb_victim_run(kit, live_alone))
        (void)(lists(client, WB_FAILED_ANY, 0, 0, "turned new ") && lists(client, WB_FAILED_RETRYING, 0, 0, "turned "));
}

static void endpoints_are_apart(wb_kit *kit)
{
    wb_client *first = open_empty(kit, 0), *second = open_empty(kit, 1);
    WB_KIT_REQUIRE(kit, first && second, "no session");
    (void)(keeps(first, "a", AT(1)) && lists(second, WB_FAILED_ANY, 0, 0, "") && keeps(second, "a", AT(2)) &&
           turns(second, "a", WB_FAILED_WAITS, WB_FAILED_ARCHIVED, 1) && cleans(second, AT(60), 10, 1) &&
           has_status(first, "a", WB_FAILED_WAITS, AT(1)));
}

/* ---- several at once -------------------------------------------------------------------------------------- */

typedef struct {
    wb_client *client;
    unsigned number;
    int in_batch; /* else each turn by itself */
    unsigned told[RACES]; /* how often it was said that this one made the turn */
} worker;

static int happened(int result)
{
    return result != WB_RETRY && result != WB_ABORT;
}

static int turn_once(worker *w, unsigned at, int attempt, int *ret_was)
{
    char key[16];
    const uint64_t batch = WB_BATCH((at * TRIES_MAX + (unsigned)attempt) * WORKERS + w->number + 1);
    int r = WB_OK;
    (void)snprintf(key, sizeof key, "race-%02u", at);
    if (w->in_batch)
        r = wb_client_begin(w->client, batch, NULL, 0);
    if (r == WB_OK)
        r = turn_at(w->client, key, WB_FAILED_WAITS, WB_FAILED_RETRYING, AT(50), ret_was);
    if (w->in_batch && r == WB_OK)
        return wb_client_commit(w->client, batch, *ret_was == 1 ? "operations" : NULL, *ret_was == 1 ? 10 : 0);
    if (w->in_batch && r != WB_NOT_CONNECTED)
        (void)w->client->ops->rollback(w->client->session, NULL);
    return r;
}

static void turn_all(void *argument)
{
    worker *w = argument;
    for (unsigned at = 0; at < RACES; at++) {
        int r = WB_RETRY, was = 0;
        for (int i = 0; i < TRIES_MAX && !happened(r); i++)
            r = turn_once(w, at, i, &was);
        w->told[at] += r == WB_OK && was == 1;
        if (!wb_client_check(w->client, r, WB_OK, "turn what others turn, too"))
            return;
    }
}

/* @return 0: the case is over. */
static int prepare_race(wb_kit *kit, worker *workers, int in_batch)
{
    char key[16];
    wb_client *client = open_empty(kit, 0);
    for (unsigned at = 0; client && at < RACES; at++) {
        (void)snprintf(key, sizeof key, "race-%02u", at);
        if (!keeps(client, key, AT(1)))
            return 0;
    }
    for (unsigned i = 0; i < WORKERS; i++)
        workers[i] = (worker){ .client = i ? wb_client_open(kit, 0) : client, .number = i, .in_batch = in_batch };
    for (unsigned i = 0; i < WORKERS; i++)
        if (!wb_kit_check(kit, workers[i].client != NULL, "there is no session"))
            return 0;
    return 1;
}

static void race(wb_kit *kit, int in_batch)
{
    worker workers[WORKERS];
    wb_actor actors[WORKERS];
    if (!prepare_race(kit, workers, in_batch))
        return;
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_start(&actors[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_do(&actors[i], turn_all, &workers[i]);
    for (unsigned i = 0; i < WORKERS; i++) {
        wb_actor_await(kit, &actors[i]);
        wb_actor_stop(&actors[i]);
    }
    for (unsigned at = 0; at < RACES; at++) {
        unsigned times = 0;
        for (unsigned i = 0; i < WORKERS; i++)
            times += workers[i].told[at];
        wb_kit_check(kit, times == 1, "%u sessions were told that they turned message %u", times, at);
    }
}

static void race_alone(wb_kit *kit)
{
    race(kit, 0);
}

static void race_in_batches(wb_kit *kit)
{
    race(kit, 1);
}

/* What calls take to wait for a batch, or to be refused for it. */
#define BESIDE (300 * WB_MILLISECOND)

static void clean_up_beside(void *argument)
{
    wb_client *client = argument;
    size_t deleted;
    int r = WB_RETRY;
    for (int i = 0; i < TRIES_MAX && !happened(r); i++) {
        wb_error_clear(&client->error);
        r = ops_of(client)->clean_up(client->session, AT(60), 10, &deleted, &client->error);
        if (!happened(r))
            wb_clock_pause(10 * WB_MILLISECOND, NULL);
    }
    wb_client_check(client, r, WB_OK, "clean up beside a batch");
}

/* It fails again in a batch, which is committed when the clean-up has seen the message as it was. */
static int fail_again_beside(wb_client *client, wb_client *cleaner, wb_actor *actor)
{
    wb_claim claim = { "order-1", 7, 0 };
    if (!turns_at(client, "again", WB_FAILED_RESOLVED, AT(12)) || !wb_client_takes(client, WB_BATCH(1), &claim, 1) ||
        !keeps(client, "again", AT(70)))
        return 0;
    wb_actor_do(actor, clean_up_beside, cleaner);
    wb_clock_pause(BESIDE, NULL);
    return wb_client_check(client, wb_client_commit(client, WB_BATCH(1), NULL, 0), WB_OK, "commit");
}

static void cleaned_up_beside(wb_kit *kit)
{
    wb_client *client = open_empty(kit, 0), *cleaner = wb_client_open(kit, 0);
    wb_actor actor;
    WB_KIT_REQUIRE(kit, client && cleaner, "no session");
    wb_actor_start(&actor);
    const int is_kept = fail_again_beside(client, cleaner, &actor);
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    if (is_kept)
        (void)lists(client, WB_FAILED_WAITS, 0, 0, "again ");
}

/* ---- connections that break --------------------------------------------------------------------------------- */

static int prepare_turn(wb_client *client)
{
    int was;
    (void)discard(client, "lost", 4, WB_FAILED_RETRYING, &was);
    (void)discard(client, "lost", 4, WB_FAILED_WAITS, &was);
    return keeps(client, "lost", AT(1));
}

static int call_turn(wb_client *client)
{
    int was;
    return turn_at(client, "lost", WB_FAILED_WAITS, WB_FAILED_RETRYING, AT(50), &was);
}

/* It happened or not; made again it has. */
static void check_turn(wb_client *look, int result, int is_sent)
{
    int was;
    (void)result;
    if (!wb_client_check(look, turn_at(look, "lost", WB_FAILED_WAITS, WB_FAILED_RETRYING, AT(50), &was), WB_OK, "turn it again"))
        return;
    (void)(wb_kit_check(look->kit, is_sent || was == 1, "a turn that was never sent has happened") &&
           has_status(look, "lost", WB_FAILED_RETRYING, AT(50)));
}

static const wb_lost_call of_turn = { prepare_turn, call_turn, WB_GONE_OR_UNKNOWN, check_turn };

static void lose(wb_kit *kit, wb_loss loss)
{
    if (open_empty(kit, 0))
        wb_lost_lose(kit, &of_turn, loss);
}

static void turn_request(wb_kit *kit)
{
    lose(kit, WB_LOSE_REQUEST);
}

static void turn_reply(wb_kit *kit)
{
    lose(kit, WB_LOSE_REPLY);
}

#define FAILED (WB_CAP_OUTBOX | WB_CAP_FAILED)
static const wb_kit_case cases[] = {
    { "failed: the table of functions is whole", FAILED, is_whole },
    { "failed: what is kept comes back, whatever its bytes", FAILED, comes_back_whole },
    { "failed: what fails again is the same message, with an attempt more, and waits", FAILED, again_from_each },
    { "failed: the same failure again changes nothing", FAILED, same_failure },
    { "failed: a status is turned where it is as said, and told so", FAILED, turned_where_it_is },
    { "failed: a message is discarded where its status is as said", FAILED, discarded_where_it_is },
    { "failed: a list is of what was asked for, in the order in which it failed", FAILED, listed_in_order },
    { "failed: a list of many has each once", FAILED, listed_many },
    { "failed: a clean-up removes what does not wait, longest ago first, up to the limit", FAILED, cleaned_up },
    { "failed: changes of a batch are there with its commit", FAILED, committed },
    { "failed: a rollback leaves nothing of them", FAILED, rolled_back },
    { "failed: closing a session leaves nothing of them", FAILED, closed },
    { "failed: a process killed in a batch leaves nothing of them", FAILED, killed },
    { "failed: changes outside of a batch are there when their calls return", FAILED, killed_behind },
    { "failed: two endpoints share no messages", FAILED, endpoints_are_apart },
    { "failed: of four who turn one message one is told that he did", FAILED, race_alone },
    { "failed: of four batches that turn one message one does", FAILED, race_in_batches },
    { "failed: a clean-up beside a batch in which a message fails again leaves it", FAILED, cleaned_up_beside },
    { "failed: a turn whose request is lost", FAILED, turn_request },
    { "failed: a turn whose reply is lost", FAILED, turn_reply },
};
const wb_kit_group wb_cases_failed = WB_KIT_GROUP(cases);

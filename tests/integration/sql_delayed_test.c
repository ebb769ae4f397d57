/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store: what is due, who has taken it, and what becomes of it. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/sql_server.h"

#define MINUTE (60 * WB_SECOND)
#define HOUR (60 * MINUTE)
#define MANY 2500

static const wb_delayed_ops *store;
static const char alice[WB_DELAYED_OWNER_SIZE] = "alice\0'\\\xff";
static const char bob[WB_DELAYED_OWNER_SIZE] = "bob\0'\\\xff";

static int set_up(void **state)
{
    (void)state;
    endpoint_init(&orders, "orders");
    orders.info.delays = WB_DELAYS_BY_STORE;
    endpoint_create(&orders);
    if (ops->install(orders.persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
    observe("delete from orders_delayed");
    store = ops->delayed;
    return 0;
}
#define TEST_STORE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down_orders)

static void check(int result)
{
    if (result != WB_OK)
        fail_msg("%s", failure.text);
}

static int64_t now_of(wb_storage_session *s)
{
    int64_t due = 0;
    int64_t now = 0;
    check(store->next(s, &due, &now, &failure));
    return now;
}

static int64_t next_of(wb_storage_session *s)
{
    int64_t due = 0;
    int64_t now = 0;
    check(store->next(s, &due, &now, &failure));
    return due;
}

/* ---- messages and keys ------------------------------------------------------------------- */

static wb_delayed message(const char *id, int64_t due)
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

static wb_delayed_key key_of(const wb_delayed *m)
{
    return (wb_delayed_key){ .destination = m->destination,
                             .destination_size = m->destination_size,
                             .id = m->id,
                             .id_size = m->id_size,
                             .retries = m->retries,
                             .was_there = 77 };
}

static wb_delayed_key key(const char *id)
{
    const wb_delayed m = message(id, 0);
    return key_of(&m);
}

static void put(wb_storage_session *s, const char *id, int64_t due)
{
    const wb_delayed m = message(id, due);
    check(store->store(s, &m, 1, &failure));
}

static char (*many_ids(void))[16]
{
    static char ids[MANY][16];
    for (size_t i = 0; i < MANY; i++)
        (void)snprintf(ids[i], sizeof ids[i], "id-%zu", i * 7919 % MANY);
    return ids;
}

static void put_many(wb_storage_session *s, int64_t due, int64_t step)
{
    static wb_delayed messages[MANY];
    char(*ids)[16] = many_ids();
    for (size_t i = 0; i < MANY; i++)
        messages[i] = message(ids[i], due + (int64_t)i * step);
    check(store->store(s, messages, MANY, &failure));
}

/* ---- what was visited --------------------------------------------------------------------- */

typedef struct seen {
    size_t count;
    size_t stop_at; /* 0: never */
    char ids[16][32];
    wb_delayed messages[16]; /* without what they point to */
    int64_t last_due;
    size_t operations; /* bytes */
    size_t marked[MANY];
} seen;

static int see(void *argument, const wb_delayed *m)
{
    seen *s = argument;
    assert_int_equal(m->struct_size, sizeof(wb_delayed));
    assert_true(m->due >= s->last_due);
    s->last_due = m->due;
    if (s->count < 16) {
        (void)snprintf(s->ids[s->count], sizeof s->ids[0], "%.*s", (int)m->id_size, m->id);
        s->messages[s->count] = *m;
    }
    if (m->id_size > 3 && strncmp(m->id, "id-", 3) == 0) {
        char id[16] = { 0 };
        memcpy(id, m->id, m->id_size);
        s->marked[atoi(id + 3)]++;
    }
    s->operations += m->operation_size;
    s->count++;
    return s->count == s->stop_at ? WB_ABORT : WB_OK;
}

static size_t take_at(wb_storage_session *s, const char *owner, int64_t at, size_t limit,
                      int64_t lease, seen *ret)
{
    const wb_delayed_fetch what = { .struct_size = sizeof what, .at = at, .limit = limit,
                                    .owner = owner, .lease = lease };
    memset(ret, 0, sizeof *ret);
    check(store->fetch(s, &what, see, ret, &failure));
    return ret->count;
}

static size_t take(wb_storage_session *s, const char *owner, size_t limit)
{
    static seen all;
    return take_at(s, owner, 0, limit, MINUTE, &all);
}

static int remove_one(wb_storage_session *s, const char *owner, const char *id)
{
    wb_delayed_key k = key(id);
    check(store->remove(s, owner, &k, 1, &failure));
    return k.was_there;
}

static int cancel_one(wb_storage_session *s, const char *id)
{
    wb_delayed_key k = key(id);
    check(store->cancel(s, &k, 1, &failure));
    return k.was_there;
}

static long long count_rows(void)
{
    return observe_number("select count(*) from orders_delayed");
}

/* ---- storing ---------------------------------------------------------------------------------- */

static void test_modes(void **state)
{
    (void)state;
    assert_true((plugin->capabilities & WB_CAP_DELAY_STORE) != 0);
    assert_int_equal(store->struct_size, sizeof(wb_delayed_ops));
    check(store->initialize(orders.persistence, WB_MODE_NONE, &failure));
    check(store->initialize(orders.persistence, WB_MODE_RECEIVE_ONLY, &failure));
    for (int32_t mode = WB_MODE_SENDS_ATOMIC; mode <= WB_MODE_TRANSACTION_SCOPE + 1; mode++) {
        assert_int_equal(store->initialize(orders.persistence, mode, &failure), WB_FATAL);
        assert_int_equal(failure.cause, WB_CAUSE_CONFIG);
        assert_non_null(strstr(failure.text, "receive_only"));
    }
}

static void test_a_key_again_changes_nothing(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    wb_delayed messages[] = { message("a", 1000), message("a", 2000), message("a", 3000),
                              message("a", 4000) };
    (void)state;
    messages[1].retries = 1;
    messages[2].destination = "billinG";
    messages[3].operation = "another";
    messages[3].operation_size = 7;
    check(store->store(s, messages, 4, &failure));
    check(store->store(s, &messages[3], 1, &failure));
    assert_int_equal(count_rows(), 3);
    messages[0].retries = UINT32_MAX;
    check(store->store(s, messages, 1, &failure));
    check(store->store(s, messages, 0, &failure));
    assert_int_equal(take_at(s, alice, 0, 10, MINUTE, &all), 4);
    assert_int_equal(all.operations, 4); /* not the other one */
    assert_int_equal(all.messages[0].due, 1000);
    assert_int_equal(all.messages[1].retries, UINT32_MAX);
    assert_int_equal(all.messages[2].retries, 1);
    ops->close(s);
}

typedef struct bytes {
    size_t count;
    const wb_delayed *expected;
} bytes;

static int compare_bytes(void *argument, const wb_delayed *m)
{
    bytes *b = argument;
    const wb_delayed *expected = &b->expected[b->count++];
    assert_int_equal(m->id_size, expected->id_size);
    assert_memory_equal(m->id, expected->id, m->id_size);
    assert_int_equal(m->destination_size, expected->destination_size);
    assert_memory_equal(m->destination, expected->destination, m->destination_size);
    assert_int_equal(m->operation_size, expected->operation_size);
    if (m->operation_size)
        assert_memory_equal(m->operation, expected->operation, m->operation_size);
    return WB_OK;
}

#define STRANGE 256

/* Each byte, in ids and destinations of 255; operations of no byte and of a million. */
static void test_any_byte(void **state)
{
    static char ids[STRANGE][255];
    static char names[STRANGE][255];
    static char operation[1 << 20];
    static wb_delayed messages[STRANGE];
    static wb_delayed_key keys[STRANGE];
    wb_storage_session *s = open_session(&orders);
    bytes b = { .expected = messages };
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = STRANGE, .owner = alice,
                                    .lease = MINUTE };
    (void)state;
    for (size_t i = 0; i < sizeof operation; i++)
        operation[i] = (char)(i % 251);
    for (size_t i = 0; i < STRANGE; i++) {
        memset(ids[i], (int)i, sizeof ids[i]);
        memset(names[i], (int)(i ? i : 255), sizeof names[i]);
        messages[i] = message("", (int64_t)i * 1000);
        messages[i].id = ids[i];
        messages[i].id_size = i % 2 ? 255 : 1;
        messages[i].destination = names[i];
        messages[i].destination_size = i % 3 ? 255 : 1;
        messages[i].operation = i % 5 ? operation : NULL;
        messages[i].operation_size = i % 5 ? i * 100 : 0;
        keys[i] = key_of(&messages[i]);
    }
    messages[7].operation_size = sizeof operation;
    check(store->store(s, messages, STRANGE, &failure));
    check(store->store(s, messages, STRANGE, &failure));
    check(store->fetch(s, &what, compare_bytes, &b, &failure));
    assert_int_equal(b.count, STRANGE);
    check(store->remove(s, alice, keys, STRANGE, &failure));
    for (size_t i = 0; i < STRANGE; i++)
        assert_int_equal(keys[i].was_there, 1);
    assert_int_equal(count_rows(), 0);
    ops->close(s);
}

static int commit_with(wb_storage_session *s, const wb_delayed *messages, size_t count)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = 7, .delayed = messages, .delayed_count = count };
    begin_batch(s, 7);
    return ops->commit(s, &commit, &failure);
}

/* One that a row or a statement does not hold takes the others of the call along, or its batch. */
static void test_too_large(void **state)
{
    const size_t size = (size_t)65 * 1024 * 1024;
    wb_storage_session *s = open_session(&orders);
    wb_delayed messages[] = { message("a", 1), message("b", 1) };
    char *operation = malloc(size);
    (void)state;
    memset(operation, 'x', size);
    messages[1].operation = operation;
    /* PostgreSQL is not asked: nothing is read of what is that long */
    messages[1].operation_size = strcmp(words.name, "pgsql") == 0 ? (size_t)1100000000 : size;
    assert_int_equal(store->store(s, messages, 2, &failure), WB_REJECT);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    assert_int_equal(count_rows(), 0);
    check(store->store(s, messages, 1, &failure));
    assert_int_equal(commit_with(s, messages + 1, 1), WB_REJECT);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    assert_non_null(strstr(failure.text, "bytes of outgoing operations in one batch are more than the server takes"));
    assert_null(strstr(failure.text, " 0 bytes"));
    assert_int_equal(count_rows(), 1);
    free(operation);
    ops->close(s);
    s = open_session(&orders);
    messages[1] = message("b", 1);
    check(commit_with(s, messages, 2));
    assert_int_equal(count_rows(), 2);
    ops->close(s);
}

/* More than one statement holds are stored in one call; more than memory should hold come in several times, and
 * each is taken once. */
static void test_large_ones_in_parts(void **state)
{
    const size_t size = (size_t)7 * 1024 * 1024;
    wb_storage_session *s = open_session(&orders);
    char *operation = malloc(size);
    static char ids[10][4];
    wb_delayed messages[10];
    size_t taken = 0;
    int times = 0;
    (void)state;
    memset(operation, 'x', size);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d", i);
        messages[i] = message(ids[i], 1 + i);
        messages[i].operation = operation;
        messages[i].operation_size = size;
    }
    check(store->store(s, messages, 10, &failure));
    for (size_t got; (got = take(s, alice, 100)) > 0; times++) {
        assert_in_range(got, 1, 5);
        taken += got;
    }
    assert_int_equal(taken, 10);
    assert_in_range(times, 2, 10);
    free(operation);
    ops->close(s);
}

/* ---- due ----------------------------------------------------------------------------------------- */

static void test_earliest_first_and_never_early(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    (void)state;
    assert_int_equal(next_of(s), WB_NEVER_DUE);
    assert_int_equal(take(s, alice, 10), 0);
    const int64_t now = now_of(s);
    put(s, "c", now + HOUR + 1);
    assert_int_equal(next_of(s), (now + HOUR + 1 + 999) / 1000 * 1000); /* up */
    put(s, "b", 5);
    put(s, "a", 3001);
    put(s, "d", -5);
    assert_int_equal(next_of(s), 0);
    assert_int_equal(take_at(s, alice, 4000, 2, MINUTE, &all), 2);
    assert_string_equal(all.ids[0], "d");
    assert_string_equal(all.ids[1], "b");
    assert_int_equal(take_at(s, alice, 3999, 2, MINUTE, &all), 0);
    assert_int_equal(take_at(s, alice, 0, 2, MINUTE, &all), 1);
    assert_string_equal(all.ids[0], "a");
    assert_int_equal(take_at(s, alice, now + HOUR, 2, MINUTE, &all), 0);
    assert_int_equal(take_at(s, alice, now + 2 * HOUR, 2, MINUTE, &all), 1);
    put(s, "e", WB_NEVER_DUE);
    assert_true(next_of(s) < WB_NEVER_DUE);
    ops->close(s);
}

static void test_soon(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    const int64_t due = now_of(s) + 200 * WB_MILLISECOND;
    put(s, "a", due);
    while (take(s, alice, 10) == 0)
        assert_true(now_of(s) < due + 10 * WB_SECOND);
    assert_true(now_of(s) >= due);
    ops->close(s);
}

static void test_many(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    size_t total = 0;
    (void)state;
    put_many(s, 1000, 1000);
    for (size_t got; (got = take_at(s, alice, 0, 1000, MINUTE, &all)) > 0; total += got)
        assert_int_equal(got, total < 2000 ? 1000 : 500);
    assert_int_equal(total, MANY);
    ops->close(s);
}

/* ---- leases --------------------------------------------------------------------------------------- */

/* Alice has one row for so long, and Bob takes the other. @return when hers is free; 0: the machine was so busy that it is
 * already, and nothing was seen. */
static int64_t take_beside(wb_storage_session *s, wb_storage_session *t, int64_t lease, seen *all)
{
    put(s, "a", 1000);
    put(s, "b", 2000);
    const int64_t before = now_of(s);
    assert_int_equal(take_at(s, alice, 0, 1, lease, all), 1);
    const int64_t after = now_of(s), next = next_of(s);
    const size_t taken = take_at(t, bob, 0, 10, MINUTE, all);
    const int64_t ends = next_of(t);
    if (now_of(t) >= before + lease)
        return 0;
    assert_int_equal(next, 2000);
    assert_int_equal(taken, 1);
    assert_string_equal(all->ids[0], "b");
    assert_in_range(ends, before + lease, after + lease + 1000);
    return ends;
}

static void test_a_lease_ends(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    wb_storage_session *t = open_session(&orders);
    int64_t ends;
    (void)state;
    for (int64_t lease = 300 * WB_MILLISECOND; (ends = take_beside(s, t, lease, &all)) == 0; lease *= 4)
        observe("delete from orders_delayed");
    while (take_at(t, bob, 0, 10, MINUTE, &all) == 0)
        assert_true(now_of(t) < ends + 10 * WB_SECOND);
    assert_true(now_of(t) >= ends);
    assert_string_equal(all.ids[0], "a");
    assert_int_equal(remove_one(s, alice, "a"), 0);
    assert_int_equal(remove_one(s, bob, "a"), 1);
    ops->close(t);
    ops->close(s);
}

static void test_visiting_ends_early(void **state)
{
    seen all = { .stop_at = 1 };
    wb_storage_session *s = open_session(&orders);
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 10, .owner = alice,
                                    .lease = MINUTE };
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    assert_int_equal(store->fetch(s, &what, see, &all, &failure), WB_ABORT);
    assert_int_equal(all.count, 1);
    assert_int_equal(take(s, bob, 10), 0);
    assert_int_equal(remove_one(s, alice, "b"), 1);
    ops->close(s);
}

static void test_release(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    put(s, "c", 3000);
    assert_int_equal(take(s, alice, 2), 2);
    assert_int_equal(take(s, bob, 2), 1);
    wb_delayed_key keys[] = { key("a"), key("b"), key("c"), key("none") };
    check(store->release(s, alice, keys, 4, 0, &failure));
    assert_int_equal(keys[0].was_there && keys[1].was_there && !keys[2].was_there && !keys[3].was_there, 1);
    assert_int_equal(remove_one(s, alice, "a"), 0);
    assert_int_equal(take_at(s, bob, 0, 10, MINUTE, &all), 2);
    assert_int_equal(all.messages[0].failures, 0);
    assert_int_equal(all.messages[0].due, 1000);
    check(store->release(s, bob, keys, 1, 5000, &failure));
    assert_int_equal(take_at(s, alice, 0, 10, MINUTE, &all), 1);
    assert_int_equal(all.messages[0].failures, 0);
    assert_int_equal(all.messages[0].due, 5000);
    ops->close(s);
}

/* A row that somebody holds is passed over; nobody waits. */
static void test_nobody_waits(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    observe("begin");
    observe("select * from orders_delayed where id = 'a' for update");
    const int64_t start = wb_clock_monotonic();
    assert_int_equal(take_at(s, alice, 0, 10, MINUTE, &all), 1);
    assert_string_equal(all.ids[0], "b");
    put(s, "c", 3000);
    assert_int_equal(next_of(s), 1000);
    assert_int_equal(remove_one(s, alice, "b"), 1);
    assert_true(wb_clock_monotonic() - start < 10 * WB_SECOND);
    observe("commit");
    assert_int_equal(take(s, alice, 10), 2);
    ops->close(s);
}

typedef struct poller {
    char owner[WB_DELAYED_OWNER_SIZE];
    seen all;
    size_t removed;
    size_t aborted;
    int failed;
    pthread_t thread;
} poller;

static void *poll_some(void *argument)
{
    poller *p = argument;
    wb_error error;
    wb_storage_session *s = NULL;
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 50, .owner = p->owner,
                                    .lease = MINUTE };
    wb_delayed_key keys[50];
    char ids[50][16];
    if (ops->open(orders.persistence, &s, &error) != WB_OK) {
        p->failed = 1;
        return NULL;
    }
    for (int round = 0; round < 1000 && !p->failed; round++) {
        size_t before[MANY];
        size_t count = 0;
        memcpy(before, p->all.marked, sizeof before);
        p->all.last_due = 0;
        int result = store->fetch(s, &what, see, &p->all, &error);
        p->aborted += result == WB_ABORT;
        p->failed |= result != WB_OK && result != WB_ABORT;
        for (size_t i = 0; i < MANY && count < 50; i++)
            if (p->all.marked[i] > before[i]) {
                (void)snprintf(ids[count], sizeof ids[0], "id-%zu", i);
                keys[count] = key(ids[count]);
                count++;
            }
        if (!count && result == WB_OK)
            break;
        while ((result = store->remove(s, p->owner, keys, count, &error)) == WB_ABORT)
            p->aborted++;
        p->failed |= result != WB_OK;
        for (size_t i = 0; i < count; i++)
            p->removed += (size_t)keys[i].was_there;
    }
    ops->close(s);
    return NULL;
}

static void *store_some(void *argument)
{
    poller *p = argument;
    wb_error error;
    wb_storage_session *s = NULL;
    char(*ids)[16] = many_ids();
    if (ops->open(orders.persistence, &s, &error) != WB_OK) {
        p->failed = 1;
        return NULL;
    }
    for (size_t i = 0; i < MANY && !p->failed; i += 5) {
        wb_delayed messages[5];
        for (size_t n = 0; n < 5; n++)
            messages[n] = message(ids[i + n], HOUR + (int64_t)(i + n) * 1000);
        int result;
        while ((result = store->store(s, messages, 5, &error)) == WB_ABORT)
            p->aborted++;
        p->failed = result != WB_OK;
    }
    ops->close(s);
    return NULL;
}

/* Four that fetch and remove, two that store the same: each message is in one hand. */
static void test_all_at_once(void **state)
{
    static poller all[6];
    static poller last;
    size_t aborted = 0;
    size_t removed = 0;
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put_many(s, 1000, 1000);
    for (size_t i = 0; i < 6; i++) {
        memset(&all[i], 0, sizeof all[i]);
        all[i].owner[0] = (char)('a' + i);
        assert_int_equal(pthread_create(&all[i].thread, NULL, i < 4 ? poll_some : store_some,
                                        &all[i]),
                         0);
    }
    for (size_t i = 0; i < 6; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].failed, 0);
        aborted += all[i].aborted;
    }
    memset(&last, 0, sizeof last);
    (void)poll_some(&last);
    for (size_t i = 0; i < 4; i++) {
        removed += all[i].removed;
        for (size_t n = 0; n < MANY; n++)
            last.all.marked[n] += all[i].all.marked[n];
        assert_int_equal(all[i].removed, all[i].all.count);
    }
    for (size_t n = 0; n < MANY; n++) /* once, and again for each time it was stored after that */
        assert_in_range(last.all.marked[n], 1, 3);
    assert_int_equal(count_rows(), 0);
    print_message("# %zu were removed, %zu calls were deadlock victims\n", removed, aborted);
    ops->close(s);
}

/* ---- keys ----------------------------------------------------------------------------------------- */

static void test_remove_says_what_was_there(void **state)
{
    static wb_delayed_key keys[MANY + 100];
    char(*ids)[16] = many_ids();
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put_many(s, 1000, 1000);
    assert_int_equal(take(s, alice, 1500), 1500);
    assert_int_equal(take(s, bob, 10), 10);
    for (size_t i = 0; i < MANY + 100; i++)
        keys[i] = key(i < MANY ? ids[i] : "no such");
    keys[MANY].id = ids[3]; /* twice in a call */
    keys[MANY].id_size = strlen(ids[3]);
    keys[MANY + 1] = keys[0]; /* with another number of retries */
    keys[MANY + 1].retries = 1;
    check(store->remove(s, alice, keys, MANY + 100, &failure));
    for (size_t i = 0; i < MANY + 100; i++)
        if (i != 3 && i != MANY)
            assert_int_equal(keys[i].was_there, i < 1500);
    assert_int_equal(keys[3].was_there + keys[MANY].was_there, 1);
    assert_int_equal(count_rows(), MANY - 1500);
    check(store->remove(s, NULL, keys, MANY, &failure));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(keys[i].was_there, i >= 1500);
    assert_int_equal(count_rows(), 0);
    check(store->remove(s, NULL, keys, 0, &failure));
    ops->close(s);
}

typedef struct places {
    wb_delayed_key keys[2];
    size_t count;
} places;

static int keep_place(void *argument, const wb_delayed *m)
{
    places *all = argument;
    all->keys[all->count] = key(*m->id == 'a' ? "a" : "b");
    all->keys[all->count++].place = m->place;
    return WB_OK;
}

/* Where fetch() has said where they are: one that is gone meanwhile was not there. */
static void test_remove_by_places(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_delayed messages[] = { message("a", 1), message("b", 2) };
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 2, .owner = alice, .lease = MINUTE };
    places all = { .count = 0 };
    (void)state;
    check(store->store(s, messages, 2, &failure));
    check(store->fetch(s, &what, keep_place, &all, &failure));
    assert_int_equal(all.count, 2);
    assert_true(remove_one(s, NULL, "b"));
    check(store->remove(s, alice, all.keys, 2, &failure));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(all.keys[i].was_there, *all.keys[i].id == 'a');
    assert_int_equal(count_rows(), 0);
    ops->close(s);
}

/* What was removed with a fetch is gone, and not fetched, also where the server has moved the rows since they
 * were, and their lease is over. */
static void test_rows_that_moved_are_removed(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_delayed messages[] = { message("a", 1), message("b", 2) };
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 2, .owner = alice, .lease = 1000 };
    places all = { .count = 0 };
    static seen none;
    (void)state;
    check(store->store(s, messages, 2, &failure));
    check(store->fetch(s, &what, keep_place, &all, &failure));
    assert_int_equal(all.count, 2);
    observe("update orders_delayed set failures = failures + 1");
    check(store->begin_fetch(s, all.keys, 2, &what, &failure));
    check(store->end_fetch(s, see, &none, &failure));
    assert_int_equal(none.count, 0);
    assert_int_equal(count_rows(), 0);
    ops->close(s);
}

/* What is begun is sent; one at a time is, and is over when it is ended, or its session closed. */
static void test_fetch_in_two_halves(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_delayed messages[] = { message("a", 1), message("b", 2) };
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 9, .owner = alice, .lease = MINUTE };
    seen all = { .count = 0 };
    (void)state;
    check(store->store(s, messages, 2, &failure));
    check(store->begin_fetch(s, NULL, 0, &what, &failure));
    await_number("select count(*) from orders_delayed where taken_by is not null", 2);
    assert_int_equal(store->begin_fetch(s, NULL, 0, &what, &failure), WB_FATAL);
    check(store->end_fetch(s, see, &all, &failure));
    assert_int_equal(all.count, 2);
    assert_int_equal(store->end_fetch(s, see, &all, &failure), WB_FATAL);
    assert_non_null(strstr(failure.text, "no fetch was begun"));
    check(store->begin_fetch(s, NULL, 0, &what, &failure));
    ops->close(s);
    assert_int_equal(count_rows(), 2);
}

/* So many that a server might rather read the whole table: rows of others, locked ones, are in its way. */
enum { LOT = 500 };

static int keep_lot(void *argument, const wb_delayed *m)
{
    static char ids[LOT][16];
    wb_delayed_key *keys = argument;
    size_t i = 0;
    while (keys[i].id)
        i++;
    memcpy(ids[i], m->id, m->id_size);
    keys[i] = key(ids[i]);
    keys[i].place = m->place;
    return WB_OK;
}

static void test_removal_waits_for_nobody(void **state)
{
    static wb_delayed_key keys[LOT + 1];
    wb_storage_session *s = open_session(&orders);
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = LOT, .owner = alice, .lease = MINUTE };
    (void)state;
    memset(keys, 0, sizeof keys);
    put_many(s, 1000, 1000);
    observe("delete from orders_delayed where due >= 1100"); /* microseconds */
    put(s, "another's", WB_SECOND);
    check(store->fetch(s, &what, keep_lot, keys, &failure));
    observe("begin");
    observe("select * from orders_delayed where id = 'another''s' for update");
    const int64_t start = wb_clock_monotonic();
    check(store->release(s, alice, keys, LOT / 2, 0, &failure));
    check(store->remove(s, alice, keys + LOT / 2, LOT / 2, &failure));
    for (size_t i = 0; i < LOT; i++)
        assert_int_equal(keys[i].was_there, 1);
    assert_true(wb_clock_monotonic() - start < 10 * WB_SECOND);
    observe("commit");
    ops->close(s);
}

static void test_failures_are_counted(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    wb_delayed_key keys[] = { key("a"), key("b"), key("nobody") };
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    assert_int_equal(take(s, alice, 1), 1);
    assert_int_equal(take(s, bob, 1), 1);
    check(store->increment_failure_count(s, alice, keys, 3, 5000, &failure));
    assert_int_equal(keys[0].was_there, 1);
    assert_int_equal(keys[1].was_there, 0);
    assert_int_equal(keys[2].was_there, 0);
    check(store->increment_failure_count(s, alice, keys, 1, 6000, &failure)); /* not his any more */
    assert_int_equal(keys[0].was_there, 0);
    assert_int_equal(take_at(s, bob, 4999, 10, MINUTE, &all), 0);
    assert_int_equal(take_at(s, bob, 5000, 10, MINUTE, &all), 1);
    assert_int_equal(all.messages[0].failures, 1);
    assert_int_equal(all.messages[0].due, 5000);
    check(store->increment_failure_count(s, bob, keys, 2, now_of(s) + HOUR, &failure));
    assert_int_equal(keys[0].was_there + keys[1].was_there, 2);
    assert_int_equal(take(s, alice, 10), 0);
    assert_int_equal(observe_number("select sum(failures) from orders_delayed"), 3);
    ops->close(s);
}

static void test_cancel(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_delayed_key keys[] = { key("a"), key("b"), key("c") };
    static seen all;
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    assert_int_equal(take_at(s, alice, 0, 1, 300 * WB_MILLISECOND, &all), 1);
    check(store->cancel(s, keys, 3, &failure));
    assert_int_equal(keys[0].was_there, 0);
    assert_int_equal(keys[1].was_there, 1);
    assert_int_equal(keys[2].was_there, 0);
    assert_int_equal(count_rows(), 1);
    wb_clock_pause(400 * WB_MILLISECOND, NULL);
    assert_int_equal(cancel_one(s, "a"), 0); /* he may have sent it */
    assert_int_equal(take(s, bob, 10), 1);
    check(store->release(s, bob, keys, 1, 0, &failure));
    assert_int_equal(cancel_one(s, "a"), 0); /* and bob does not know */
    assert_int_equal(take(s, bob, 10), 1);
    assert_int_equal(remove_one(s, bob, "a"), 1);
    ops->close(s);
}

static void test_reschedule(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    wb_delayed_key keys[] = { key("a"), key("b"), key("c") };
    (void)state;
    put(s, "a", 1000);
    put(s, "b", 2000);
    assert_int_equal(take_at(s, alice, 0, 1, 300 * WB_MILLISECOND, &all), 1);
    check(store->reschedule(s, keys, 3, 2000, &failure));
    assert_int_equal(keys[0].was_there, 0);
    assert_int_equal(keys[1].was_there, 1); /* though nothing changed */
    assert_int_equal(keys[2].was_there, 0);
    wb_clock_pause(400 * WB_MILLISECOND, NULL);
    check(store->reschedule(s, keys, 1, 7000, &failure));
    assert_int_equal(keys[0].was_there, 0); /* he may have sent it */
    check(store->release(s, alice, keys, 1, 0, &failure));
    check(store->reschedule(s, keys, 1, 7000, &failure));
    assert_int_equal(keys[0].was_there, 1);
    assert_int_equal(remove_one(s, alice, "a"), 0); /* it is his no longer */
    assert_int_equal(take_at(s, bob, 0, 10, MINUTE, &all), 2);
    assert_string_equal(all.ids[1], "a");
    assert_int_equal(all.messages[1].due, 7000);
    assert_int_equal(all.messages[1].failures, 0);
    ops->close(s);
}

/* Who cancels waits for who takes, and is told. */
static void *cancel_a(void *argument)
{
    int *was_there = argument;
    wb_error error;
    wb_storage_session *s = NULL;
    wb_delayed_key k = key("a");
    *was_there = 77;
    if (ops->open(orders.persistence, &s, &error) != WB_OK)
        return NULL;
    if (store->cancel(s, &k, 1, &error) == WB_OK)
        *was_there = k.was_there;
    ops->close(s);
    return NULL;
}

static void test_cancel_while_it_is_taken(void **state)
{
    pthread_t thread;
    int was_there = 77;
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put(s, "a", 1000);
    observe("begin");
    observe("update orders_delayed set taken_by = 'somebody', taken_until = 9000000000000000 where id = 'a'");
    assert_int_equal(pthread_create(&thread, NULL, cancel_a, &was_there), 0);
    wb_clock_pause(300 * WB_MILLISECOND, NULL); /* in a transaction nobody sees who waits */
    observe("commit");
    pthread_join(thread, NULL);
    assert_int_equal(was_there, 0);
    assert_int_equal(count_rows(), 1);
    ops->close(s);
}

/* ---- list ------------------------------------------------------------------------------------------ */

static size_t list(wb_storage_session *s, wb_delayed_filter filter, seen *ret)
{
    filter.struct_size = sizeof filter;
    memset(ret, 0, sizeof *ret);
    check(store->list(s, &filter, see, ret, &failure));
    return ret->count;
}

static void test_list(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    wb_delayed messages[] = { message("a", 5000), message("b", 4000), message("a", 3000),
                              message("c", 4000) };
    (void)state;
    messages[1].destination = "shipping";
    messages[1].destination_size = 8;
    messages[2].retries = 2;
    check(store->store(s, messages, 4, &failure));
    assert_int_equal(take_at(s, alice, 0, 1, MINUTE, &all), 1);
    const int64_t now = now_of(s);
    assert_int_equal(list(s, (wb_delayed_filter){ 0 }, &all), 4);
    assert_string_equal(all.ids[0], "a");
    assert_int_equal(all.messages[0].retries, 2);
    assert_in_range(all.messages[0].leased_until, now, now + MINUTE + 1000);
    assert_int_equal(all.messages[1].leased_until, 0);
    assert_string_equal(all.ids[1], "b");
    assert_string_equal(all.ids[2], "c");
    assert_int_equal(all.messages[3].due, 5000);
    assert_int_equal(list(s, (wb_delayed_filter){ .limit = 2 }, &all), 2);
    assert_int_equal(list(s, (wb_delayed_filter){ .due_from = 4000 }, &all), 3);
    assert_int_equal(list(s, (wb_delayed_filter){ .due_from = 4001 }, &all), 1);
    assert_int_equal(list(s, (wb_delayed_filter){ .due_before = 4000 }, &all), 1);
    assert_int_equal(list(s, (wb_delayed_filter){ .due_before = 4001 }, &all), 3);
    assert_int_equal(list(s, (wb_delayed_filter){ .destination = "shipping",
                                                  .destination_size = 8 }, &all), 1);
    assert_int_equal(list(s, (wb_delayed_filter){ .destination = "ship",
                                                  .destination_size = 4 }, &all), 0);
    assert_int_equal(list(s, (wb_delayed_filter){ .id = "a", .id_size = 1 }, &all), 2);
    assert_int_equal(all.operations, 2);
    assert_int_equal(list(s, (wb_delayed_filter){ .id = "A", .id_size = 1 }, &all), 0);
    assert_int_equal(take(s, bob, 10), 3); /* none was taken by being looked at */
    ops->close(s);
}

/* Page by page, each once: all due at the same time, and one id at many destinations. */
static void test_long_lists(void **state)
{
    static seen all;
    static char names[30][16];
    wb_storage_session *s = open_session(&orders);
    (void)state;
    put_many(s, 1000, 0);
    assert_int_equal(list(s, (wb_delayed_filter){ 0 }, &all), MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(all.marked[i], 1);
    assert_int_equal(list(s, (wb_delayed_filter){ .limit = 1700 }, &all), 1700);
    for (size_t i = 0; i < 30; i++) {
        wb_delayed m = message("x", 500 + (int64_t)(i % 3) * 1000);
        (void)snprintf(names[i], sizeof names[i], "queue-%zu", i / 2);
        m.destination = names[i];
        m.destination_size = strlen(names[i]);
        m.retries = (uint32_t)(i % 2);
        check(store->store(s, &m, 1, &failure));
    }
    assert_int_equal(list(s, (wb_delayed_filter){ .id = "x", .id_size = 1 }, &all), 30);
    assert_int_equal(all.operations, 30);
    assert_int_equal(list(s, (wb_delayed_filter){ .id = "x", .id_size = 1, .limit = 9 }, &all), 9);
    ops->close(s);
}

/* ---- what goes wrong --------------------------------------------------------------------------------- */

static char passed[128];

static void note_point(const char *name)
{
    (void)snprintf(passed + strlen(passed), sizeof passed - strlen(passed), "%s ", name);
}

static void test_crash_points(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    passed[0] = '\0';
    at_crash_point = note_point;
    put(s, "a", 1000);
    assert_int_equal(take(s, alice, 1), 1);
    assert_int_equal(remove_one(s, alice, "a"), 1);
    assert_int_equal(remove_one(s, alice, "a"), 0);
    at_crash_point = NULL;
    assert_string_equal(passed, "store_sent fetch_sent remove_sent remove_sent ");
    ops->close(s);
}

static void end_all(const char *name)
{
    (void)name;
    at_crash_point = NULL;
    end_sessions();
}

/* Lost once it was sent: nobody knows, and it is done again. */
static void test_lost_connections(void **state)
{
    static seen all;
    const wb_delayed m = message("a", 1000);
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 1, .owner = alice,
                                    .lease = MINUTE };
    (void)state;
    for (int which = 0; which < 3; which++) {
        wb_storage_session *s = open_session(&orders);
        wb_delayed_key k = key("a");
        int64_t due = 0;
        int64_t now = 0;
        at_crash_point = end_all;
        const int result = which == 0   ? store->store(s, &m, 1, &failure)
                           : which == 1 ? store->fetch(s, &what, see, &all, &failure)
                                        : store->remove(s, NULL, &k, 1, &failure);
        if (result != WB_OK)
            assert_int_equal(result, WB_IN_DOUBT);
        assert_int_equal(store->next(s, &due, &now, &failure), WB_NOT_CONNECTED);
        assert_int_equal(store->store(s, &m, 1, &failure), WB_NOT_CONNECTED);
        ops->close(s);
        s = open_session(&orders);
        put(s, "a", 1000);
        assert_int_equal(count_rows(), 1);
        check(store->remove(s, NULL, &k, 1, &failure));
        assert_int_equal(k.was_there, 1);
        put(s, "a", 1000);
        ops->close(s);
    }
}

static void test_no_table(void **state)
{
    static seen all;
    wb_storage_session *s = open_session(&orders);
    const wb_delayed m = message("a", 1000);
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = 1, .owner = alice,
                                    .lease = MINUTE };
    wb_delayed_key k = key("a");
    int64_t due = 0;
    int64_t now = 0;
    (void)state;
    observe("drop table orders_delayed");
    const int results[] = {
        store->store(s, &m, 1, &failure),
        store->next(s, &due, &now, &failure),
        store->fetch(s, &what, see, &all, &failure),
        store->remove(s, alice, &k, 1, &failure),
        store->increment_failure_count(s, alice, &k, 1, 5, &failure),
        store->release(s, alice, &k, 1, 0, &failure),
        store->cancel(s, &k, 1, &failure),
        store->reschedule(s, &k, 1, 5, &failure),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        assert_int_equal(results[i], WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(failure.text, "waybill install"));
    assert_int_equal(ops->verify(orders.persistence, &failure), WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(failure.text, "orders_delayed"));
    check(ops->install(orders.persistence, &failure));
    put(s, "a", 1000); /* the session is as good as before */
    ops->close(s);
}

static void test_beside_a_batch(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_delayed m = message("a", 1000);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(store->store(s, &m, 1, &failure), WB_FATAL); /* outside of a batch only */
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    put(s, "a", 1000);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 10);
    assert_int_equal(query_plain(s, 0, words.time_zone), 0);
    assert_int_equal(commit_batch(s, 11, NULL, NULL), WB_OK);
    const int64_t now = now_of(s);
    assert_in_range(now, wb_clock_wall() - MINUTE, wb_clock_wall() + MINUTE);
    assert_int_equal(take(s, alice, 1), 1);
    assert_int_equal(remove_one(s, alice, "a"), 1);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_STORE(test_modes),
        TEST_STORE(test_a_key_again_changes_nothing),
        TEST_STORE(test_any_byte),
        TEST_STORE(test_too_large),
        TEST_STORE(test_large_ones_in_parts),
        TEST_STORE(test_earliest_first_and_never_early),
        TEST_STORE(test_soon),
        TEST_STORE(test_many),
        TEST_STORE(test_a_lease_ends),
        TEST_STORE(test_visiting_ends_early),
        TEST_STORE(test_release),
        TEST_STORE(test_nobody_waits),
        TEST_STORE(test_all_at_once),
        TEST_STORE(test_remove_says_what_was_there),
        TEST_STORE(test_remove_by_places),
        TEST_STORE(test_rows_that_moved_are_removed),
        TEST_STORE(test_fetch_in_two_halves),
        TEST_STORE(test_removal_waits_for_nobody),
        TEST_STORE(test_failures_are_counted),
        TEST_STORE(test_cancel),
        TEST_STORE(test_reschedule),
        TEST_STORE(test_cancel_while_it_is_taken),
        TEST_STORE(test_list),
        TEST_STORE(test_long_lists),
        TEST_STORE(test_crash_points),
        TEST_STORE(test_lost_connections),
        TEST_STORE(test_no_table),
        TEST_STORE(test_beside_a_batch),
    };
    return run_sql_tests("delayed messages", tests, sizeof tests / sizeof tests[0]);
}

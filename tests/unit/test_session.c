/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over a store and a broker in the test itself, which answer as the test wants: commits that are
 * refused, lost or in doubt, and who has the id then; connections that break; what the dispatcher does
 * with what it cannot send.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/message/ids.h"
#include "core/message/operations.h"
#include "core/message/session_control.h"
#include "core/session/dispatcher.h"
#include "core/session/sessions.h"

#define ANSWERS 8
#define OTHERS 4711

/* ---- the store ------------------------------------------------------------------------------ */

struct wb_storage_session {
    int is_open; /* a transaction */
    int has_claimed; /* in it */
};

static struct {
    int64_t takes; /* how long commit() does */
    int open_answers[ANSWERS], begin_answers[ANSWERS], commit_answers[ANSWERS], find_answers[ANSWERS];
    int opens, begins, commits, finds, rollbacks;
    atomic_int sessions; /* open ones */
    int check_answer;
    int commits_anyway;     /* what is in doubt was committed */
    uint64_t owner;         /* of the id; 0: nobody */
    uint64_t batch;         /* that was committed last */
    size_t claims, operations_size;
    char id[256];
    atomic_int rows, marks, shrunk;
    int mark_answers[ANSWERS], mark_calls;
} store;

static int answer(const int *answers, int *calls)
{
    int call = (*calls)++;
    return call < ANSWERS ? answers[call] : WB_OK;
}

static int said(int result, wb_error *error)
{
    return result == WB_OK ? WB_OK : wb_error_set(error, result, WB_CAUSE_OTHER, 0, "as the test asked");
}

static int store_open(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    (void)persistence;
    int r = answer(store.open_answers, &store.opens);
    if (r != WB_OK)
        return said(r, error);
    *ret_session = calloc(1, sizeof **ret_session);
    store.sessions++;
    return WB_OK;
}

static void store_close(wb_storage_session *session)
{
    store.sessions--;
    free(session);
}

static int store_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    assert_false(session->is_open);
    int r = answer(store.begin_answers, &store.begins);
    session->is_open = r == WB_OK;
    session->has_claimed = r == WB_OK && begin->claim_count && !store.owner;
    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = store.owner;
    return said(r, error);
}

static void make_durable(const wb_storage_session *session, const wb_commit *commit)
{
    if (session->has_claimed)
        store.owner = commit->batch;
    assert_int_equal(commit->released_count, 0); /* an id is nobody's at no time */
    if (session->has_claimed)
        return;
    store.batch = commit->batch;
    store.claims = commit->claim_count;
    store.operations_size = commit->operations_size;
    if (commit->claim_count) {
        store.owner = commit->batch;
        memcpy(store.id, commit->claims[0].id, commit->claims[0].id_size);
    }
    store.rows += commit->operations != NULL;
}

static int store_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    assert_true(session->is_open);
    session->is_open = 0;
    int r = answer(store.commit_answers, &store.commits);
    wb_clock_pause(store.takes, NULL);
    if (r == WB_OK && commit->claim_count && store.owner && store.owner != commit->claims[0].duplicate_of)
        r = WB_ABORT;
    if (r == WB_OK || (r == WB_IN_DOUBT && store.commits_anyway))
        make_durable(session, commit);
    return said(r, error);
}

static int store_rollback(wb_storage_session *session, wb_error *error)
{
    (void)error;
    session->is_open = 0;
    store.rollbacks++;
    return WB_OK;
}

static int store_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    assert_false(session->is_open);
    for (size_t i = 0; i < count; i++)
        claims[i].duplicate_of = store.owner;
    return said(answer(store.find_answers, &store.finds), error);
}

static int store_check(wb_storage_session *session, size_t item, wb_error *error)
{
    assert_true(session->is_open);
    assert_int_equal(item, 0);
    return said(store.check_answer, error);
}

static const void *store_interface(wb_storage_session *session, const char *name)
{
    (void)name;
    return session;
}

static int store_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)session;
    int r = answer(store.mark_answers, &store.mark_calls);
    for (size_t i = 0; r == WB_OK && i < count; i++) {
        store.marks += !marks[i].remaining;
        store.shrunk += marks[i].remaining != NULL;
    }
    return said(r, error);
}

static const wb_persistence_ops store_ops = {
    .struct_size = sizeof store_ops, .open = store_open,         .close = store_close, .begin = store_begin,
    .interface = store_interface,    .check = store_check,       .commit = store_commit, .rollback = store_rollback,
    .mark = store_mark,              .find = store_find,
};

/* ---- the broker ------------------------------------------------------------------------------- */

struct wb_transport_session {
    int unused;
};

static struct {
    int send_answers[ANSWERS]; /* of calls of send() */
    atomic_int hangs;          /* send() does not return */
    int64_t takes;             /* how long open() does */
    _Atomic int64_t time_left; /* of the last of them, to its deadline */
    atomic_int sends;
    atomic_int sent, controls;
    const char *refused; /* a destination */
    const char *breaks;  /* a destination whose operation ends the connection, while the others are confirmed */
    atomic_int is_away;  /* no connection can be had */
    atomic_int sessions;
    uint64_t replaces;  /* of the last control message */
} broker;

static int broker_open(wb_transport *transport, uint32_t purpose, unsigned prefetch, wb_transport_session **ret_session,
                       wb_error *error)
{
    (void)transport, (void)purpose, (void)prefetch;
    wb_clock_pause(broker.takes, NULL);
    if (broker.is_away)
        return said(WB_NOT_CONNECTED, error);
    *ret_session = calloc(1, sizeof **ret_session);
    broker.sessions++;
    return WB_OK;
}

static void broker_close(wb_transport_session *session)
{
    broker.sessions--;
    free(session);
}

static void note_control(const wb_operation *operation)
{
    wb_session_control control;
    if (wb_session_control_read(operation->headers, operation->header_count, &control) > 0)
        broker.replaces = control.replaces;
}

static int broker_send(wb_transport_session *session, wb_operation *const *operations, size_t count, int64_t deadline,
                       wb_error *error)
{
    (void)session;
    broker.time_left = deadline - wb_clock_monotonic();
    int call = atomic_fetch_add(&broker.sends, 1);
    while (broker.hangs)
        wb_clock_pause(WB_MILLISECOND, NULL);
    int r = call < ANSWERS ? broker.send_answers[call] : WB_OK;
    for (size_t i = 0; r == WB_OK && i < count; i++) {
        int is_refused = broker.refused && strcmp(operations[i]->destination, broker.refused) == 0;
        operations[i]->result = is_refused ? WB_REJECT : WB_OK;
        operations[i]->cause = is_refused ? WB_CAUSE_UNROUTABLE : WB_CAUSE_OTHER;
        operations[i]->reason = is_refused ? "there is no such queue" : NULL;
        broker.controls += !is_refused && operations[i]->body_size == 0;
        note_control(operations[i]);
        broker.sent += !is_refused && operations[i]->body_size != 0;
    }
    for (size_t i = 0; broker.breaks && i < count; i++)
        if (strcmp(operations[i]->destination, broker.breaks) == 0) {
            operations[i]->result = WB_IN_DOUBT;
            broker.is_away = 1;
            r = WB_NOT_CONNECTED;
        }
    return said(r, error);
}

static const wb_transport_ops broker_ops = { .struct_size = sizeof broker_ops, .open = broker_open,
                                             .close = broker_close, .send = broker_send };

/* ---- a session -------------------------------------------------------------------------------- */

static wb_pipeline pipeline;
static wb_sessions *sessions;
static wb_error error;

static void start(int sends_control, unsigned connections)
{
    const wb_sessions_policy policy = { .sends_control = sends_control, .processor = "processor",
                                        .commit_duration = WB_SECOND / 5, .delay_increment = WB_SECOND, .connections = connections };
    pipeline = (wb_pipeline){ .endpoint = "shop", .mode = WB_MODE_RECEIVE_ONLY, .outbox = 1, .sweep_after = 60 * WB_SECOND,
                              .transport_ops = &broker_ops, .persistence_ops = &store_ops,
                              .origin = wb_origin_make("shop", 1, 1000) };
    wb_pipeline_init(&pipeline);
    assert_int_equal(wb_sessions_start(&pipeline, &policy, &sessions, &error), WB_OK);
}

static int set_up(void **state)
{
    (void)state;
    memset(&store, 0, sizeof store);
    memset(&broker, 0, sizeof broker);
    wb_error_clear(&error);
    sessions = NULL;
    return 0;
}

static void stop(void)
{
    wb_sessions_stop(sessions, 5 * WB_SECOND);
    wb_pipeline_free(&pipeline);
    assert_int_equal(store.sessions, 0);
    assert_int_equal(broker.sessions, 0);
}

static wb_session *open_session(const char *id)
{
    wb_session *session = NULL;
    const wb_session_options options = { .id = id, .id_size = id ? WB_TEXT : 0 };
    assert_int_equal(wb_sessions_open(sessions, &options, &session, &error), WB_OK);
    return session;
}

static void send_to(wb_session *session, const char *queue)
{
    (void)wb_session_send(session, &(wb_outgoing){ .type = "T", .destination = queue, .body = "body", .body_size = 4 });
}

static void touch(wb_session *session)
{
    void *storage;
    size_t item;
    wb_context *ctx = wb_session_context(session);
    assert_non_null(ctx->api->storage(ctx, "any", &storage, &item));
}

/* Opens, writes, sends and commits. */
static int commit_one(const char *id)
{
    wb_session *session = open_session(id);
    touch(session);
    send_to(session, "sink");
    int r = wb_sessions_commit(session, &error);
    wb_session_close(session);
    return r;
}

static void await(atomic_int *counter, int wanted)
{
    int64_t until = wb_clock_monotonic() + 10 * WB_SECOND;
    while (atomic_load(counter) < wanted && wb_clock_monotonic() < until)
        wb_clock_pause(WB_MILLISECOND, NULL);
    assert_int_equal(atomic_load(counter), wanted);
}

/* ---- what becomes of a commit ------------------------------------------------------------------- */

static void test_commits(void **state)
{
    (void)state;
    start(1, 2);
    assert_int_equal(commit_one("key"), WB_OK);
    await(&store.marks, 1);
    assert_int_equal(broker.controls, 1);
    assert_int_equal(broker.sent, 1);
    assert_int_equal(store.rows, 1);
    assert_int_equal(store.begins, 1);
    assert_string_equal(store.id, "key");
    stop();
}

/* The first that has the id keeps it, and the caller learns who that is. */
static void test_whose_it_is(void **state)
{
    (void)state;
    start(0, 1);
    store.owner = OTHERS;
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_DUPLICATE);
    const uint64_t closed = store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one(NULL), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_EXPIRED);
    assert_int_equal(commit_one(NULL), WB_REJECT); /* a new id is closed for good; */
    assert_int_equal(commit_one("key"), WB_REJECT); /* who gives a key is told, */
    assert_int_equal(error.cause, WB_CAUSE_EXPIRED);
    assert_true(store.owner == closed);
    assert_int_equal(store.rows, 0);
    assert_int_equal(broker.sent, 0);
    assert_int_equal(commit_one("another"), WB_REJECT); /* each for itself, */
    assert_int_equal(commit_one("key"), WB_OK); /* and may use it again */
    assert_true(store.owner == store.batch);
    stop();
}

/* Somebody closed it anew in between: told once more. */
static void test_closed_again(void **state)
{
    (void)state;
    start(0, 1);
    const uint64_t first = store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one("key"), WB_REJECT);
    store.owner = wb_batch_number_closed(wb_clock_wall(), first);
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_EXPIRED);
    assert_true(store.owner > first);
    assert_int_equal(commit_one("key"), WB_OK);
    stop();
}

/* Who gets the control message knows whether the record that is there shuts its session out. */
static void test_control_says_what_is_replaced(void **state)
{
    (void)state;
    start(1, 1);
    const uint64_t closed = store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(broker.controls, 1);
    assert_true(broker.replaces == 0);
    assert_int_equal(commit_one("key"), WB_OK);
    assert_int_equal(broker.controls, 2);
    assert_true(broker.replaces == closed);
    stop();
}

/* In doubt again: what was to be replaced is closed under another number, so that it cannot be replaced late. */
static void test_in_doubt_over_a_closed_one(void **state)
{
    (void)state;
    start(0, 1);
    const uint64_t closed = store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one("key"), WB_REJECT);
    store.commit_answers[store.commits] = WB_IN_DOUBT;
    assert_int_equal(commit_one("key"), WB_NOT_CONNECTED);
    assert_true(store.owner > closed);
    assert_true(wb_batch_number_is_closed(store.owner));
    stop();
}

static void test_refused_for_itself(void **state)
{
    static const int answers[] = { WB_ABORT, WB_RETRY, WB_REJECT };
    (void)state;
    start(0, 1);
    for (int i = 0; i < 3; i++)
        store.commit_answers[i] = answers[i];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(commit_one("key"), answers[i]);
        assert_string_equal(error.text, "as the test asked");
    }
    assert_int_equal(store.opens, 1); /* the connection serves on */
    assert_int_equal(store.rows, 0);
    stop();
}

/* Business data that fail because the key was there before: that is what the caller wants to know. */
static void test_failed_because_of_the_key(void **state)
{
    (void)state;
    start(0, 1);
    store.owner = OTHERS;
    wb_session *session = open_session("key");
    touch(session);
    (void)wb_fail(wb_session_context(session), WB_RETRY, "unique violation");
    assert_int_equal(wb_sessions_commit(session, &error), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_DUPLICATE);
    wb_session_close(session);
    store.owner = 0;
    session = open_session("key");
    touch(session);
    (void)wb_fail(wb_session_context(session), WB_RETRY, "unique violation");
    assert_int_equal(wb_sessions_commit(session, &error), WB_RETRY);
    assert_string_equal(error.text, "unique violation");
    assert_int_equal(store.commits, 0);
    wb_session_close(session);
    stop();
}

static void test_in_doubt_and_committed(void **state)
{
    (void)state;
    start(1, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    store.commits_anyway = 1;
    store.open_answers[2] = WB_NOT_CONNECTED; /* the server is back at the second try */
    assert_int_equal(commit_one("key"), WB_OK);
    await(&store.marks, 1);
    assert_int_equal(broker.sent, 1);
    stop();
}

/* It may still be on its way: the id is closed, so that it fails when it comes. Its program knows, and may try the
 * key again. */
static void test_in_doubt_and_not_committed(void **state)
{
    (void)state;
    start(0, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    assert_int_equal(commit_one("key"), WB_NOT_CONNECTED);
    assert_non_null(strstr(error.text, "nothing was committed"));
    assert_int_equal(store.opens, 2); /* nobody knows what is open on the first */
    assert_true(wb_batch_number_is_closed(store.owner));
    assert_int_equal(commit_one("key"), WB_OK);
    assert_false(wb_batch_number_is_closed(store.owner));
    stop();
}

/* Who was open already when the key was closed is one of those it was closed for. */
static void test_closed_while_open(void **state)
{
    (void)state;
    start(0, 2);
    wb_session *early = open_session("key");
    touch(early);
    store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one("key"), WB_REJECT); /* its program is told, and goes another way */
    send_to(early, "sink");
    assert_int_equal(wb_sessions_commit(early, &error), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_EXPIRED);
    wb_session_close(early);
    stop();
}

/* A key that is known to be closed is no reason for what fails otherwise. */
static void test_failed_with_a_closed_key(void **state)
{
    (void)state;
    start(0, 1);
    store.owner = wb_batch_number_closed(wb_clock_wall(), 0);
    assert_int_equal(commit_one("key"), WB_REJECT);
    wb_session *session = open_session("key");
    touch(session);
    (void)wb_fail(wb_session_context(session), WB_RETRY, "check violation");
    assert_int_equal(wb_sessions_commit(session, &error), WB_RETRY);
    assert_string_equal(error.text, "check violation");
    wb_session_close(session);
    assert_int_equal(commit_one("key"), WB_OK);
    stop();
}

/* A new id is closed for good. */
static void test_in_doubt_with_a_new_id(void **state)
{
    (void)state;
    start(0, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    assert_int_equal(commit_one(NULL), WB_NOT_CONNECTED);
    assert_true(wb_batch_number_is_closed(store.owner));
    assert_int_equal(commit_one(NULL), WB_REJECT); /* the store has but one id */
    assert_true(wb_batch_number_is_closed(store.owner));
    stop();
}

/* Its own closing may be in doubt, too: then it finds that. */
static void test_in_doubt_twice(void **state)
{
    (void)state;
    start(0, 1);
    store.commit_answers[0] = store.commit_answers[1] = WB_IN_DOUBT;
    store.commits_anyway = 1;
    store.owner = 0;
    wb_session *session = open_session(NULL);
    touch(session);
    send_to(session, "sink");
    store.commits_anyway = 0;
    assert_int_equal(wb_sessions_commit(session, &error), WB_NOT_CONNECTED);
    assert_true(wb_batch_number_is_closed(store.owner));
    wb_session_close(session);
    stop();
}

/* A connection that was kept over a restart of the server; and one of the broker. */
static void test_stale_connections(void **state)
{
    (void)state;
    start(1, 1);
    assert_int_equal(commit_one(NULL), WB_OK);
    await(&store.marks, 1);
    store.owner = 0;
    store.begin_answers[store.begins] = WB_NOT_CONNECTED;
    broker.send_answers[broker.sends] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one(NULL), WB_OK);
    await(&store.marks, 2);
    stop();
}

static void test_in_doubt_and_somebody_elses(void **state)
{
    (void)state;
    start(0, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    store.owner = OTHERS;
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_DUPLICATE);
    stop();
}

static void test_doubt_stays(void **state)
{
    int64_t began = wb_clock_monotonic();
    (void)state;
    start(0, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    for (int i = 1; i < ANSWERS; i++)
        store.open_answers[i] = WB_NOT_CONNECTED;
    for (int i = 1; i < ANSWERS; i++)
        store.begin_answers[i] = WB_NOT_CONNECTED;
    store.commits_anyway = 1;
    pipeline.stop = 0;
    assert_int_equal(commit_one("key"), WB_IN_DOUBT);
    assert_true(wb_clock_monotonic() - began >= WB_SECOND / 5);
    stop();
}

/* Without messages and with a generated id there is no record that could tell. */
static void test_doubt_without_a_record(void **state)
{
    (void)state;
    start(1, 1);
    store.commit_answers[0] = WB_IN_DOUBT;
    wb_session *session = open_session(NULL);
    touch(session);
    assert_int_equal(wb_sessions_commit(session, &error), WB_IN_DOUBT);
    wb_session_close(session);
    session = open_session(NULL);
    touch(session);
    assert_int_equal(wb_sessions_commit(session, &error), WB_OK);
    assert_int_equal(store.claims, 0);
    assert_int_equal(broker.controls, 0);
    wb_session_close(session);
    stop();
}

/* ---- before the commit --------------------------------------------------------------------------- */

static void test_control_message_is_not_taken(void **state)
{
    (void)state;
    start(1, 1);
    broker.send_answers[0] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one("key"), WB_NOT_CONNECTED);
    assert_int_equal(store.commits, 0);
    broker.refused = "processor";
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_UNROUTABLE);
    assert_int_equal(store.commits, 0);
    assert_int_equal(store.rollbacks, 2);
    broker.refused = NULL;
    assert_int_equal(commit_one("key"), WB_OK);
    stop();
}

static void test_transaction_was_ended(void **state)
{
    (void)state;
    start(1, 1);
    store.check_answer = WB_REJECT;
    assert_int_equal(commit_one("key"), WB_REJECT);
    assert_int_equal(broker.controls, 0);
    assert_int_equal(store.commits, 0);
    assert_int_equal(store.rollbacks, 1);
    stop();
}

static void test_begin_fails(void **state)
{
    (void)state;
    start(0, 1);
    store.begin_answers[0] = store.begin_answers[1] = WB_NOT_CONNECTED;
    wb_session *session = open_session("key");
    wb_context *ctx = wb_session_context(session);
    void *storage;
    size_t item;
    assert_null(ctx->api->storage(ctx, "any", &storage, &item));
    send_to(session, "sink");
    assert_int_equal(wb_sessions_commit(session, &error), WB_NOT_CONNECTED);
    assert_int_equal(store.commits, 0);
    wb_session_close(session);
    assert_int_equal(commit_one("key"), WB_OK); /* on another connection */
    stop();
}

/* What serves handlers and sessions finds the settings in both; data of modules only handlers have. */
static void test_settings(void **state)
{
    static const wb_setting_entry settings[] = { { "rate", "5" }, { "unit", "" } };
    const wb_endpoint_config config = { .settings = settings, .setting_count = 2 };
    (void)state;
    start(0, 1);
    wb_session *session = open_session(NULL);
    wb_context *ctx = wb_session_context(session);
    assert_null(wb_setting(ctx, "rate"));
    pipeline.hooks.config = &config;
    assert_string_equal(wb_setting(ctx, "rate"), "5");
    assert_string_equal(wb_setting(ctx, "unit"), "");
    assert_null(wb_setting(ctx, "Rate"));
    assert_null(wb_module_data(ctx));
    assert_null(wb_worker_data(ctx));
    wb_session_close(session);
    stop();
}

static void test_closed_without_commit(void **state)
{
    (void)state;
    start(1, 1);
    wb_session *session = open_session("key");
    touch(session);
    send_to(session, "sink");
    wb_session_close(session);
    assert_int_equal(store.rollbacks, 1);
    assert_int_equal(store.commits, 0);
    stop();
}

static void test_ids(void **state)
{
    char longest[300];
    wb_session *session = NULL;
    (void)state;
    start(0, 1);
    memset(longest, 'x', sizeof longest);
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .id = "k" }, &session, &error), WB_REJECT);
    assert_non_null(strstr(error.text, "a session's id is empty: its size is 0 (WB_TEXT"));
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .id = "", .id_size = WB_TEXT }, &session, &error),
                     WB_REJECT);
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .id_size = WB_TEXT }, &session, &error), WB_REJECT);
    assert_non_null(strstr(error.text, "a session's id has a size and is NULL"));
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .id = longest, .id_size = 256 }, &session, &error),
                     WB_REJECT);
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .id = longest, .id_size = 255 }, &session, &error),
                     WB_OK);
    assert_int_equal(strlen(wb_session_id(session)), 255);
    wb_session_close(session);
    session = open_session(NULL);
    assert_int_equal(strlen(wb_session_id(session)), 36);
    wb_session_close(session);
    stop();
}

/* ---- the dispatcher ------------------------------------------------------------------------------- */

static void give_parcel(wb_dispatcher *d, const char *destination, size_t size)
{
    wb_parcel *parcel = wb_parcel_new();
    *wb_operation_append(&parcel->operations, &parcel->arena) = (wb_operation){
        .id = "o", .id_size = 1, .destination = destination, .body = "body", .body_size = 4, .result = WB_RETRY
    };
    parcel->size = size;
    parcel->numbered = wb_clock_monotonic();
    wb_dispatcher_give(d, parcel);
}

/* The broker is away for a moment: what was committed leaves when it is back, in order, once. */
static void test_sent_when_the_broker_is_back(void **state)
{
    (void)state;
    start(0, 1);
    broker.send_answers[0] = broker.send_answers[1] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one(NULL), WB_OK);
    store.owner = 0;
    assert_int_equal(commit_one(NULL), WB_OK);
    await(&store.marks, 2);
    assert_int_equal(broker.sent, 2);
    stop();
}

static void test_marks_are_made_again(void **state)
{
    (void)state;
    start(0, 1);
    store.mark_answers[0] = WB_RETRY;
    store.mark_answers[1] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one(NULL), WB_OK);
    await(&store.marks, 1);
    assert_int_equal(broker.sent, 1);
    stop();
}

/* What has left is marked also while no connection to the broker can be had. */
static void test_marks_wait_for_no_broker(void **state)
{
    wb_dispatcher d;
    (void)state;
    start(0, 1);
    assert_int_equal(wb_dispatcher_start(&d, &pipeline), 0);
    store.mark_answers[1] = WB_RETRY;
    broker.breaks = "away";
    broker.hangs = 1;
    give_parcel(&d, "sink", 1);
    await(&broker.sends, 1);
    give_parcel(&d, "sink", 1);
    give_parcel(&d, "away", 1);
    broker.hangs = 0;
    await(&store.marks, 2);
    assert_int_equal(broker.sent, 3); /* of which one is in doubt */
    wb_dispatcher_stop(&d, 0);
    stop();
}

/* What is refused stays in its row, and what was sent beside it leaves that. */
static void test_refused_stays(void **state)
{
    (void)state;
    start(0, 1);
    broker.refused = "nowhere";
    wb_session *session = open_session(NULL);
    send_to(session, "sink");
    send_to(session, "nowhere");
    assert_int_equal(wb_sessions_commit(session, &error), WB_OK);
    wb_session_close(session);
    await(&store.shrunk, 1);
    assert_int_equal(store.marks, 0);
    stop();
    assert_int_equal(broker.sent, 1);
}

/* What the sweeper has by then is the sweeper's. */
static void test_old_ones_are_left(void **state)
{
    (void)state;
    start(0, 1);
    pipeline.sweep_after = 2 * WB_MILLISECOND;
    for (int i = 0; i < ANSWERS; i++)
        broker.send_answers[i] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one(NULL), WB_OK);
    wb_clock_pause(300 * WB_MILLISECOND, NULL);
    stop();
    assert_int_equal(broker.sent, 0);
    assert_int_equal(store.marks, 0);
    assert_true(broker.sends <= 2);
}

/* A stop does not wait for a broker that is away. */
static void test_stops_without_the_broker(void **state)
{
    int64_t began = wb_clock_monotonic();
    (void)state;
    start(0, 1);
    for (int i = 0; i < ANSWERS; i++)
        broker.send_answers[i] = WB_NOT_CONNECTED;
    assert_int_equal(commit_one(NULL), WB_OK);
    wb_sessions_stop(sessions, 100 * WB_MILLISECOND);
    assert_true(wb_clock_monotonic() - began < 8 * WB_SECOND);
    wb_pipeline_free(&pipeline);
    assert_int_equal(store.sessions, 0);
    assert_int_equal(broker.sessions, 0);
}

/* What has no room is left to the sweeper: a program does not grow while its broker stands still. */
static void test_holds_so_many(void **state)
{
    const int window = 1000, more = WB_DISPATCHER_PARCELS_MAX + 3 * window;
    (void)state;
    start(0, 1);
    pipeline.sweep_after = 3600 * WB_SECOND;
    broker.hangs = 1;
    for (int i = 0; i < more; i++) {
        store.owner = 0;
        assert_int_equal(commit_one(NULL), WB_OK);
    }
    broker.hangs = 0;
    wb_sessions_stop(sessions, 60 * WB_SECOND);
    wb_pipeline_free(&pipeline);
    assert_int_equal(store.rows, more);
    assert_true(broker.sent >= WB_DISPATCHER_PARCELS_MAX);
    assert_true(broker.sent <= WB_DISPATCHER_PARCELS_MAX + window);
    assert_int_equal(store.marks, broker.sent);
}

/* So is what waits behind those that are tried, when the broker takes them at last. */
static void test_what_has_waited_is_left(void **state)
{
    wb_dispatcher d;
    (void)state;
    start(0, 1);
    pipeline.sweep_after = WB_SECOND;
    assert_int_equal(wb_dispatcher_start(&d, &pipeline), 0);
    broker.hangs = 1;
    give_parcel(&d, "sink", 1);
    await(&broker.sends, 1);
    for (int i = 0; i < 3; i++)
        give_parcel(&d, "sink", 1);
    wb_clock_pause(WB_SECOND, NULL);
    broker.hangs = 0;
    await(&store.marks, 1);
    give_parcel(&d, "sink", 1);
    await(&store.marks, 2);
    wb_dispatcher_stop(&d, 60 * WB_SECOND);
    stop();
    assert_int_equal(broker.sent, 2);
    assert_int_equal(broker.sends, 2);
}

/* Or when a connection to it is there at last. */
static void test_what_waited_for_a_connection_is_left(void **state)
{
    wb_dispatcher d;
    (void)state;
    start(0, 1);
    pipeline.sweep_after = WB_SECOND;
    broker.takes = WB_SECOND;
    assert_int_equal(wb_dispatcher_start(&d, &pipeline), 0);
    give_parcel(&d, "sink", 1);
    await(&broker.sessions, 1);
    give_parcel(&d, "sink", 1);
    await(&store.marks, 1);
    wb_dispatcher_stop(&d, 60 * WB_SECOND);
    stop();
    assert_int_equal(broker.sent, 1);
}

/* The sweeper counts from the row's number, which is drawn before the transaction. */
static void test_what_was_committed_slowly_is_left(void **state)
{
    (void)state;
    start(0, 1);
    pipeline.sweep_after = WB_SECOND / 5;
    store.takes = WB_SECOND / 4;
    assert_int_equal(commit_one(NULL), WB_OK);
    stop();
    assert_int_equal(store.rows, 1);
    assert_int_equal(broker.sends, 0);
}

/* Nor is a confirmation waited for when the sweeper may send it. */
static void test_waits_no_longer_than_the_sweeper(void **state)
{
    wb_dispatcher d;
    (void)state;
    start(0, 1);
    assert_int_equal(wb_dispatcher_start(&d, &pipeline), 0);
    give_parcel(&d, "sink", 1);
    await(&store.marks, 1);
    assert_true(broker.time_left > 5 * WB_SECOND && broker.time_left <= 10 * WB_SECOND);
    pipeline.sweep_after = 2 * WB_SECOND;
    give_parcel(&d, "sink", 1);
    await(&store.marks, 2);
    assert_true(broker.time_left > 0 && broker.time_left <= 2 * WB_SECOND);
    wb_dispatcher_stop(&d, 60 * WB_SECOND);
    stop();
}

/* One is in its hands, and so many wait, by their number or their size; what has left makes room, however much it was in all. */
static void test_what_has_left_makes_room(void **state)
{
    static const struct {
        size_t size;
        int held;
    } rows[] = { { (64 << 20) + 1, 0 }, { 64 << 20, 1 }, { 25 << 20, 2 }, { 1 << 20, 64 }, { 0, WB_DISPATCHER_PARCELS_MAX } };
    wb_dispatcher d;
    int sent = 0;
    (void)state;
    start(0, 1);
    pipeline.sweep_after = 3600 * WB_SECOND;
    assert_int_equal(wb_dispatcher_start(&d, &pipeline), 0);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        const int windows = broker.sends;
        broker.hangs = 1;
        give_parcel(&d, "sink", 1);
        await(&broker.sends, windows + 1);
        for (int k = 0; k < rows[i / 2].held + 3; k++)
            give_parcel(&d, "sink", rows[i / 2].size);
        broker.hangs = 0;
        sent += 1 + rows[i / 2].held;
        await(&store.marks, sent);
    }
    wb_dispatcher_stop(&d, 60 * WB_SECOND);
    stop();
    assert_int_equal(broker.sent, sent);
    assert_int_equal(store.marks, sent);
}

static void test_pool(void **state)
{
    wb_session *one, *two = NULL;
    (void)state;
    start(0, 1);
    one = open_session(NULL);
    assert_int_equal(wb_sessions_open(sessions, &(wb_session_options){ .patience = WB_MILLISECOND }, &two, &error), WB_RETRY);
    assert_int_equal(error.cause, WB_CAUSE_SERVER);
    wb_session_close(one);
    two = open_session(NULL);
    wb_session_close(two);
    assert_int_equal(store.opens, 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_commits, set_up),
        cmocka_unit_test_setup(test_whose_it_is, set_up),
        cmocka_unit_test_setup(test_refused_for_itself, set_up),
        cmocka_unit_test_setup(test_failed_because_of_the_key, set_up),
        cmocka_unit_test_setup(test_in_doubt_and_committed, set_up),
        cmocka_unit_test_setup(test_in_doubt_and_not_committed, set_up),
        cmocka_unit_test_setup(test_in_doubt_and_somebody_elses, set_up),
        cmocka_unit_test_setup(test_in_doubt_with_a_new_id, set_up),
        cmocka_unit_test_setup(test_in_doubt_twice, set_up),
        cmocka_unit_test_setup(test_stale_connections, set_up),
        cmocka_unit_test_setup(test_doubt_stays, set_up),
        cmocka_unit_test_setup(test_doubt_without_a_record, set_up),
        cmocka_unit_test_setup(test_control_message_is_not_taken, set_up),
        cmocka_unit_test_setup(test_transaction_was_ended, set_up),
        cmocka_unit_test_setup(test_begin_fails, set_up),
        cmocka_unit_test_setup(test_closed_while_open, set_up),
        cmocka_unit_test_setup(test_failed_with_a_closed_key, set_up),
        cmocka_unit_test_setup(test_closed_again, set_up),
        cmocka_unit_test_setup(test_control_says_what_is_replaced, set_up),
        cmocka_unit_test_setup(test_in_doubt_over_a_closed_one, set_up),
        cmocka_unit_test_setup(test_settings, set_up),
        cmocka_unit_test_setup(test_closed_without_commit, set_up),
        cmocka_unit_test_setup(test_ids, set_up),
        cmocka_unit_test_setup(test_sent_when_the_broker_is_back, set_up),
        cmocka_unit_test_setup(test_marks_are_made_again, set_up),
        cmocka_unit_test_setup(test_refused_stays, set_up),
        cmocka_unit_test_setup(test_old_ones_are_left, set_up),
        cmocka_unit_test_setup(test_stops_without_the_broker, set_up),
        cmocka_unit_test_setup(test_marks_wait_for_no_broker, set_up),
        cmocka_unit_test_setup(test_holds_so_many, set_up),
        cmocka_unit_test_setup(test_what_has_waited_is_left, set_up),
        cmocka_unit_test_setup(test_what_waited_for_a_connection_is_left, set_up),
        cmocka_unit_test_setup(test_what_was_committed_slowly_is_left, set_up),
        cmocka_unit_test_setup(test_waits_no_longer_than_the_sweeper, set_up),
        cmocka_unit_test_setup(test_what_has_left_makes_room, set_up),
        cmocka_unit_test_setup(test_pool, set_up),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}

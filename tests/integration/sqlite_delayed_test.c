/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store of the sqlite persistence: what is special to a file. What all
 * stores have in common is the persistence kit's.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/integration/sqlite_fixture.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)
#define OWNER "owner number one"
#define OTHER "owner number two"
#define ROWS "select count(*) from waybill_orders_delayed"
#define FREE_ROWS "select count(*) from waybill_orders_delayed where owner is null"

/* An endpoint whose messages the store delays; `data` may be the queues' file. */
static void open_place(place *at, const char *queues, const char *data)
{
    place_open(at, "orders", NULL, queues, NULL);
    at->info.delays = WB_DELAYS_BY_STORE;
    place_add_persistence(at, data);
}

static int set_up_store(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    made->directory = test_directory();
    made->queues = test_file(made->directory, "queues.db");
    made->data = test_file(made->directory, "data.db");
    open_place(&made->at, made->queues, made->data);
    place_install(&made->at);
    made->ops = made->at.persistence_ops;
    *state = made;
    return 0;
}

static const wb_delayed_ops *store_of(const fixture *with)
{
    assert_non_null(with->ops->delayed);
    return with->ops->delayed;
}

static int64_t wall(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * WB_SECOND + now.tv_nsec;
}

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

static wb_delayed_key key(const char *id)
{
    return (wb_delayed_key){
        .destination = "billing", .destination_size = 7, .id = id, .id_size = strlen(id)
    };
}

static void store(const fixture *with, wb_storage_session *session, const char *id, int64_t due)
{
    const wb_delayed one = message(id, due);
    assert_int_equal(store_of(with)->store(session, &one, 1, NULL), WB_OK);
}

static int removes(const fixture *with, wb_storage_session *session, const char *owner,
                   const char *id)
{
    wb_delayed_key one = key(id);
    assert_int_equal(store_of(with)->remove(session, owner, &one, 1, NULL), WB_OK);
    return one.was_there;
}

/* Ids in order, each followed by a blank; what the visitor does meanwhile. */
typedef struct visits {
    const fixture *with;
    wb_storage_session *session;
    void (*meanwhile)(struct visits *visits);
    char text[64];
} visits;

static int visit(void *argument, const wb_delayed *found)
{
    visits *made = argument;
    size_t used = strlen(made->text);
    (void)snprintf(made->text + used, sizeof made->text - used, "%.*s ", (int)found->id_size,
                   found->id);
    if (made->meanwhile)
        made->meanwhile(made);
    return WB_OK;
}

static int fetch(const fixture *with, wb_storage_session *session, const char *owner,
                 visits *made)
{
    const wb_delayed_fetch what = { .struct_size = sizeof what,
                                    .limit = 100,
                                    .owner = owner,
                                    .lease = 60 * WB_SECOND };
    made->text[0] = '\0';
    return store_of(with)->fetch(session, &what, visit, made, NULL);
}

static void assert_fetches(const fixture *with, wb_storage_session *session, const char *ids)
{
    visits made = { .with = with };
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_string_equal(made.text, ids);
}

/* ---- the table ------------------------------------------------------------------------- */

/* As of a release that had none; it goes on as long as no store is needed. */
static void an_earlier_installation_goes_on_without_a_store(void **state)
{
    fixture *with = *state;
    place earlier, now;
    wb_error error = { 0 };
    char *path = test_file(with->directory, "earlier.db");
    place_open(&earlier, "orders", NULL, with->queues, path);
    place_install(&earlier);
    assert_int_equal(test_query(path, "select count(*) from sqlite_schema where name like "
                                      "'%delayed%'"), 0);
    open_place(&now, with->queues, path);
    assert_int_equal(with->ops->verify(now.persistence, &error), WB_FATAL);
    assert_int_equal(error.cause, WB_CAUSE_MISSING);
    assert_non_null(strstr(error.text, "waybill install"));
    assert_non_null(strstr(error.text, "delayed messages of endpoint \"orders\""));
    place_install(&now);
    assert_int_equal(with->ops->verify(earlier.persistence, &error), WB_OK);
    place_close(&earlier);
    place_close(&now);
    free(path);
}

static void an_older_host_asks_for_no_store(void **state)
{
    fixture *with = *state;
    place old;
    place_open(&old, "orders", NULL, with->queues, NULL);
    old.info.delays = WB_DELAYS_BY_STORE; /* behind the end of its table: anything */
    old.info.struct_size = offsetof(wb_endpoint_info, delays);
    place_add_persistence(&old, with->data);
    assert_null(strstr(with->ops->schema(old.persistence), "delayed"));
    assert_int_equal(with->ops->verify(old.persistence, NULL), WB_OK);
    place_close(&old);
}

static void the_printed_schema_is_what_install_makes(void **state)
{
    fixture *with = *state;
    place other;
    wb_error error = { 0 };
    char *path = test_file(with->directory, "printed.db");
    test_execute(path, "pragma journal_mode=wal");
    test_execute(path, with->ops->schema(with->at.persistence));
    open_place(&other, with->queues, path);
    assert_int_equal(with->ops->verify(other.persistence, NULL), WB_OK);
    test_execute(path, "update waybill_schema set version=99 where part='delayed:orders'");
    assert_int_equal(with->ops->verify(other.persistence, &error), WB_FATAL);
    assert_int_equal(error.cause, WB_CAUSE_MISMATCH);
    assert_int_equal(with->ops->install(other.persistence, NULL), WB_FATAL);
    place_close(&other);
    free(path);
}

/* Each call, on a connection that never saw the table and on one that did. */
static void a_missing_table_is_fatal(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    int64_t due, now;
    const wb_delayed one = message("a", 1);
    wb_delayed_key of = key("a");
    visits made = { .with = with };
    const wb_delayed_ops *ops = store_of(with);
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1);
    test_execute(with->data, "drop table waybill_orders_delayed");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ops->store(session, &one, 1, &error), WB_FATAL);
        assert_int_equal(error.cause, WB_CAUSE_MISSING);
        assert_int_equal(ops->next(session, &due, &now, NULL), WB_FATAL);
        assert_int_equal(fetch(with, session, OWNER, &made), WB_FATAL);
        assert_int_equal(ops->remove(session, NULL, &of, 1, NULL), WB_FATAL);
        assert_int_equal(ops->increment_failure_count(session, OWNER, &of, 1, 1, NULL), WB_FATAL);
        assert_int_equal(ops->release(session, OWNER, &of, 1, 0, NULL), WB_FATAL);
        assert_int_equal(ops->list(session, &all, visit, &made, NULL), WB_FATAL);
        assert_int_equal(ops->cancel(session, &of, 1, NULL), WB_FATAL);
        assert_int_equal(ops->reschedule(session, &of, 1, 1, NULL), WB_FATAL);
        with->ops->close(session);
        session = place_storage(&with->at);
    }
    with->ops->close(session);
}

static void it_says_which_modes_it_can_honour(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    const wb_delayed_ops *ops = store_of(with);
    wb_persistence *at = with->at.persistence;
    assert_int_equal(ops->initialize(at, WB_MODE_NONE, NULL), WB_OK);
    assert_int_equal(ops->initialize(at, WB_MODE_RECEIVE_ONLY, NULL), WB_OK);
    assert_int_equal(ops->initialize(at, WB_MODE_TRANSACTION_SCOPE, NULL), WB_OK);
    assert_int_equal(ops->initialize(at, WB_MODE_SENDS_ATOMIC, &error), WB_FATAL);
    assert_int_equal(error.cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(error.text, "receive_only and transaction_scope"));
}

/* ---- rows ------------------------------------------------------------------------------ */

static void what_is_due_is_rounded_up(void **state)
{
    fixture *with = *state;
    int64_t due = 0, now = 0;
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1000001);
    assert_int_equal(test_query(with->data, "select due from waybill_orders_delayed"), 1001);
    assert_int_equal(store_of(with)->next(session, &due, &now, NULL), WB_OK);
    assert_int_equal(due, 1001000);
    store(with, session, "b", 1001000);
    store(with, session, "never", INT64_MAX);
    assert_int_equal(test_query(with->data, "select count(*) from waybill_orders_delayed where "
                                            "due=1001"), 2);
    assert_int_equal(removes(with, session, NULL, "a"), 1);
    assert_int_equal(removes(with, session, NULL, "b"), 1);
    assert_int_equal(store_of(with)->next(session, &due, &now, NULL), WB_OK);
    assert_true(due == WB_NEVER_DUE);
    with->ops->close(session);
}

static void a_message_too_large_for_a_row_is_rejected(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    const size_t size = 1000000001; /* one more than a row of SQLite may have; no page of it is ever there */
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    wb_delayed two[] = { message("a", 1), message("b", 1) };
    two[1].operation = bytes;
    two[1].operation_size = size;
    wb_storage_session *session = place_storage(&with->at);
    assert_int_equal(store_of(with)->store(session, two, 2, &error), WB_REJECT);
    assert_int_equal(error.cause, WB_CAUSE_TOO_LARGE);
    assert_int_equal(munmap(bytes, size), 0);
    assert_int_equal(test_query(with->data, ROWS), 0);
    store(with, session, "a", 1);
    with->ops->close(session);
}

/* The visitor stores, and asks the session it was called by. */
static void store_another(visits *made)
{
    int64_t due, now;
    made->meanwhile = NULL;
    store(made->with, made->session, "c", 3);
    assert_int_equal(store_of(made->with)->next(made->session, &due, &now, NULL), WB_OK);
    test_execute(made->with->data, "delete from waybill_orders_delayed where id=x'62'");
}

static void a_visitor_may_use_session_and_file(void **state)
{
    fixture *with = *state;
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_storage_session *session = place_storage(&with->at);
    visits made = { .with = with, .session = session, .meanwhile = store_another };
    store(with, session, "a", 1);
    store(with, session, "b", 2);
    assert_int_equal(store_of(with)->list(session, &all, visit, &made, NULL), WB_OK);
    assert_string_equal(made.text, "a c ");
    test_execute(with->data, "delete from waybill_orders_delayed where id=x'63'");
    store(with, session, "b", 2);
    made.meanwhile = store_another;
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_string_equal(made.text, "a b ");
    with->ops->close(session);
}

#define OPERATIONS "select count(*) from waybill_orders_delayed_operation"

static void operations_go_with_their_rows(void **state)
{
    fixture *with = *state;
    visits made = { .with = with };
    wb_delayed_key of = key("b");
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1);
    store(with, session, "a", 1);
    store(with, session, "b", 1);
    assert_int_equal(test_query(with->data, OPERATIONS), 2);
    assert_int_equal(store_of(with)->cancel(session, &of, 1, NULL), WB_OK);
    assert_int_equal(test_query(with->data, OPERATIONS), 1);
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_int_equal(removes(with, session, OWNER, "a"), 1);
    assert_int_equal(test_query(with->data, OPERATIONS), 0);
    with->ops->close(session);
}

/* A row is where it was fetched, or it is not the one that was: its number may be a later one's. */
static void a_place_is_no_key(void **state)
{
    fixture *with = *state;
    visits made = { .with = with };
    wb_delayed_key of = key("a");
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1);
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_int_equal(removes(with, session, OWNER, "a"), 1);
    store(with, session, "b", 1);
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    of.place = 1;
    assert_int_equal(store_of(with)->remove(session, OWNER, &of, 1, NULL), WB_OK);
    assert_int_equal(of.was_there, 0);
    of = key("b");
    of.place = 1;
    assert_int_equal(store_of(with)->remove(session, OTHER, &of, 1, NULL), WB_OK);
    assert_int_equal(of.was_there, 0);
    assert_int_equal(store_of(with)->remove(session, OWNER, &of, 1, NULL), WB_OK);
    assert_int_equal(of.was_there, 1);
    with->ops->close(session);
}

/* One table, as version 1 made it, with a message that somebody has taken. */
static const char version_1[] =
    "drop trigger waybill_orders_delayed_removed; drop table waybill_orders_delayed_operation;"
    "drop table waybill_orders_delayed;"
    "create table waybill_orders_delayed(row integer primary key, destination blob not null,"
    " id blob not null, retries integer not null, due integer not null,"
    " failures integer not null default 0, owner blob, leased_until integer not null default 0,"
    " doubtful integer not null default 0, operation blob not null, unique(id, destination, retries));"
    "create index waybill_orders_delayed_due on waybill_orders_delayed(due);"
    "insert into waybill_orders_delayed values(7, x'64', x'61', 0, 1, 2, null, 5, 0, x'61');"
    "update waybill_schema set version=1 where part='delayed:orders'";

/* Also once somebody has run the printed schema, which makes what is not there. */
static void what_an_earlier_version_stored_is_kept(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    visits made = { .with = with };
    test_execute(with->data, version_1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(with->ops->verify(with->at.persistence, &error), WB_FATAL);
        assert_int_equal(error.cause, WB_CAUSE_MISSING);
        assert_non_null(strstr(error.text, "an earlier version"));
        test_execute(with->data, with->ops->schema(with->at.persistence));
    }
    place_install(&with->at);
    place_install(&with->at);
    assert_int_equal(with->ops->verify(with->at.persistence, NULL), WB_OK);
    wb_storage_session *session = place_storage(&with->at);
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_string_equal(made.text, "a ");
    assert_int_equal(test_query(with->data, "select row=7 and failures=2 and doubtful"
                                            " from waybill_orders_delayed"), 1);
    assert_int_equal(test_query(with->data, OPERATIONS), 1);
    with->ops->close(session);
}

/* By an endpoint that delays in another way now, and only drains it. */
static void what_is_only_drained_is_kept(void **state)
{
    fixture *with = *state;
    place other;
    test_execute(with->data, version_1);
    place_open(&other, "orders", NULL, with->queues, with->data);
    assert_int_equal(with->ops->verify(other.persistence, &other.error), WB_FATAL);
    assert_int_equal(with->ops->install(other.persistence, &other.error), WB_OK);
    assert_int_equal(with->ops->verify(other.persistence, &other.error), WB_OK);
    assert_int_equal(test_query(with->data, OPERATIONS), 1);
    place_close(&other);
    assert_int_equal(with->ops->verify(with->at.persistence, NULL), WB_OK);
}

/* A row that was deleted by a tool that runs no trigger. */
static void an_operation_without_a_row_is_replaced(void **state)
{
    fixture *with = *state;
    visits made = { .with = with };
    wb_storage_session *session = place_storage(&with->at);
    test_execute(with->data, "insert into waybill_orders_delayed_operation values(1, x'00')");
    store(with, session, "a", 1);
    assert_int_equal(fetch(with, session, OWNER, &made), WB_OK);
    assert_string_equal(made.text, "a ");
    assert_int_equal(test_query(with->data, "select operation=x'61' from waybill_orders_delayed_operation"), 1);
    with->ops->close(session);
}

static int count_one(void *argument, const wb_delayed *found)
{
    size_t *count = argument;
    assert_int_equal(found->due, 1000);
    (*count)++;
    return WB_OK;
}

/* After an outage: a look at each must not be a look at all. */
static void many_that_are_due_at_once_are_listed(void **state)
{
    fixture *with = *state;
    size_t count = 0;
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_storage_session *session = place_storage(&with->at);
    test_execute(with->data, "with recursive n(i) as (select 1 union all select i+1 from n where "
                             "i<50000) insert into waybill_orders_delayed(destination,id,retries,"
                             "due) select x'41', cast(i as blob), 0, 1 from n");
    int64_t start = test_now();
    assert_int_equal(store_of(with)->list(session, &all, count_one, &count, NULL), WB_OK);
    assert_int_equal(count, 50000);
    assert_in_range(test_now() - start, 0, 10 * WB_SECOND);
    with->ops->close(session);
}

/* ---- whose fault, and what is flushed ----------------------------------------------------- */

static void a_busy_file_is_retried_later(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    const wb_delayed one = message("b", 1);
    test_config_set(test_plugin("persistence"), with->at.persistence_config, "busy_timeout",
                    50 * WB_MILLISECOND);
    wb_storage_session *session = place_storage(&with->at);
    wb_storage_session *holder = place_storage(&with->at);
    store(with, session, "a", 1);
    begin(with, holder, 0, NULL, 0);
    assert_int_equal(store_of(with)->store(session, &one, 1, &error), WB_RETRY);
    assert_int_equal(error.cause, WB_CAUSE_SERVER);
    int64_t due = 0, now = 0;
    assert_int_equal(store_of(with)->next(session, &due, &now, NULL), WB_OK); /* only reads */
    assert_int_equal(due, 1000);
    assert_int_equal(with->ops->rollback(holder, NULL), WB_OK);
    assert_fetches(with, session, "a ");
    with->ops->close(session);
    with->ops->close(holder);
}

/* All of a call is undone: of none is said that it was not sent. */
static void a_change_that_fails_says_nothing(void **state)
{
    fixture *with = *state;
    wb_error error = { 0 };
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1);
    store(with, session, "b", 1);
    test_execute(with->data, "create trigger kept before delete on waybill_orders_delayed when "
                             "old.id=x'62' begin select raise(abort, 'kept'); end");
    wb_delayed_key keys[] = { key("a"), key("b") };
    assert_int_not_equal(store_of(with)->cancel(session, keys, 2, &error), WB_OK);
    assert_int_equal(keys[0].was_there, 0);
    assert_int_equal(keys[1].was_there, 0);
    assert_int_equal(test_query(with->data, ROWS), 2);
    with->ops->close(session);
}

static int flushes;

/* for SQLite, too */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    flushes++;
    return (int)syscall(SYS_fdatasync, file);
}

static int was_flushed(void)
{
    int was = flushes != 0;
    flushes = 0;
    return was;
}

/* Leases, too: who forgot one would cancel what was sent. */
static void all_is_flushed(void **state)
{
    fixture *with = *state;
    const wb_delayed_ops *ops = store_of(with);
    wb_delayed_key of = key("b");
    wb_storage_session *session = place_storage(&with->at);
    store(with, session, "a", 1); /* begins the log */
    (void)was_flushed();
    store(with, session, "b", 1);
    assert_true(was_flushed());
    assert_fetches(with, session, "a b ");
    assert_true(was_flushed());
    assert_int_equal(removes(with, session, OWNER, "a"), 1);
    assert_true(was_flushed());
    assert_int_equal(ops->increment_failure_count(session, OWNER, &of, 1, 2, NULL), WB_OK);
    assert_true(of.was_there && was_flushed());
    assert_int_equal(ops->reschedule(session, &of, 1, 3, NULL), WB_OK);
    assert_true(of.was_there && was_flushed());
    assert_int_equal(ops->cancel(session, &of, 1, NULL), WB_OK);
    assert_true(of.was_there && was_flushed());
    with->ops->close(session);
}

/* ---- one transaction with the transport ----------------------------------------------------- */

typedef struct joined {
    place at;
    wb_transport_session *transport;
    wb_storage_session *storage;
} joined;

static void join(joined *made, const fixture *with)
{
    open_place(&made->at, with->data, with->data); /* one file */
    place_install(&made->at);
    made->transport = place_session(&made->at, BOTH);
    made->storage = place_storage(&made->at);
}

static void leave(joined *made)
{
    made->at.persistence_ops->close(made->storage);
    made->at.transport_ops->close(made->transport);
    place_close(&made->at);
}

/* As the poller does: fetch, dispatch, remove. */
static void dispatch_joined(joined *made, const fixture *with)
{
    const wb_transport_ops *ops = made->at.transport_ops;
    visits found = { .with = with };
    assert_int_equal(ops->begin(made->transport, NULL), WB_OK);
    assert_int_equal(with->ops->join(made->storage, ops->native(made->transport), NULL), WB_OK);
    assert_int_equal(fetch(with, made->storage, OWNER, &found), WB_OK);
    assert_string_equal(found.text, "a b ");
    place_send_numbers(&made->at, made->transport, "error", 1, 2);
    assert_int_equal(removes(with, made->storage, OWNER, "a"), 1);
    assert_int_equal(removes(with, made->storage, OWNER, "b"), 1);
    assert_int_equal(with->ops->check(made->storage, 0, NULL), WB_OK);
}

/* Nobody sees a part of it, and rolled back it has not happened. */
static void fetch_dispatch_and_remove_are_one(void **state)
{
    fixture *with = *state;
    joined made;
    join(&made, with);
    const wb_transport_ops *ops = made.at.transport_ops;
    store(with, made.storage, "a", 1);
    store(with, made.storage, "b", 2);
    for (int attempt = 0; attempt < 2; attempt++) {
        dispatch_joined(&made, with);
        assert_int_equal(test_query(with->data, FREE_ROWS), 2);
        assert_int_equal(test_messages(with->data, "error"), 0);
        assert_int_equal(attempt ? ops->commit(made.transport, NULL)
                                 : ops->rollback(made.transport, NULL), WB_OK);
        assert_int_equal(with->ops->join(made.storage, NULL, NULL), WB_OK);
        assert_int_equal(test_query(with->data, FREE_ROWS), attempt ? 0 : 2);
        assert_int_equal(test_query(with->data, ROWS), attempt ? 0 : 2);
        assert_int_equal(test_messages(with->data, "error"), attempt ? 2 : 0);
    }
    leave(&made);
}

/* Neither refused nor swallowed. */
static void what_a_joined_handler_leaves_meets_no_delayed_message(void **state)
{
    fixture *with = *state;
    joined made;
    char id[8];
    join(&made, with);
    const wb_transport_ops *ops = made.at.transport_ops;
    for (int i = 0; i < LEAVINGS; i++) {
        assert_int_equal(ops->begin(made.transport, NULL), WB_OK);
        assert_int_equal(with->ops->join(made.storage, ops->native(made.transport), NULL), WB_OK);
        leave_behind(handle(with, made.storage), i);
        assert_int_equal(with->ops->check(made.storage, 0, NULL), WB_OK);
        (void)snprintf(id, sizeof id, "%d", i);
        store(with, made.storage, id, 1);
        assert_int_equal(ops->commit(made.transport, NULL), WB_OK);
        assert_int_equal(with->ops->join(made.storage, NULL, NULL), WB_OK);
        assert_int_equal(test_query(with->data, ROWS), i + 1);
    }
    leave(&made);
}

static void every_call_is_part_of_a_joined_transaction(void **state)
{
    fixture *with = *state;
    joined made;
    join(&made, with);
    int64_t due = 0, now = 0;
    wb_delayed_key of = key("a");
    visits found = { .with = with };
    const wb_delayed_filter all = { .struct_size = sizeof all };
    const wb_delayed_ops *store_ops = store_of(with);
    const wb_transport_ops *ops = made.at.transport_ops;
    assert_int_equal(ops->begin(made.transport, NULL), WB_OK);
    assert_int_equal(with->ops->join(made.storage, ops->native(made.transport), NULL), WB_OK);
    store(with, made.storage, "a", 1);
    assert_int_equal(store_ops->next(made.storage, &due, &now, NULL), WB_OK);
    assert_int_equal(due, 1000);
    assert_int_equal(store_ops->list(made.storage, &all, visit, &found, NULL), WB_OK);
    assert_string_equal(found.text, "a ");
    assert_int_equal(store_ops->reschedule(made.storage, &of, 1, 1, NULL), WB_OK);
    assert_fetches(with, made.storage, "a ");
    assert_int_equal(store_ops->increment_failure_count(made.storage, OWNER, &of, 1, 1, NULL),
                     WB_OK);
    assert_int_equal(of.was_there, 1);
    assert_fetches(with, made.storage, "a ");
    assert_int_equal(store_ops->release(made.storage, OWNER, &of, 1, 0, NULL), WB_OK);
    assert_int_equal(store_ops->cancel(made.storage, &of, 1, NULL), WB_OK);
    assert_int_equal(of.was_there, 1);
    store(with, made.storage, "b", 1);
    assert_int_equal(test_query(with->data, ROWS), 0);
    assert_int_equal(ops->commit(made.transport, NULL), WB_OK);
    assert_int_equal(with->ops->join(made.storage, NULL, NULL), WB_OK);
    assert_int_equal(test_query(with->data, ROWS), 1);
    leave(&made);
}

/* The call must not take place in a transaction of its own. */
static void a_joined_transaction_that_was_ended_is_noticed(void **state)
{
    fixture *with = *state;
    joined made;
    join(&made, with);
    const wb_delayed one = message("a", 1);
    const wb_transport_ops *ops = made.at.transport_ops;
    assert_int_equal(ops->begin(made.transport, NULL), WB_OK);
    assert_int_equal(with->ops->join(made.storage, ops->native(made.transport), NULL), WB_OK);
    (void)run(handle(with, made.storage), "rollback");
    assert_int_equal(store_of(with)->store(made.storage, &one, 1, NULL), WB_ABORT);
    assert_int_equal(test_query(with->data, ROWS), 0);
    (void)ops->rollback(made.transport, NULL);
    leave(&made);
}

/* ---- crash points ------------------------------------------------------------------------- */

static void crash_in_a_round(void *argument)
{
    const fixture *with = argument;
    place at;
    visits made = { .with = with };
    (void)setenv("WAYBILL_CRASH", with->crash, 1);
    open_place(&at, with->queues, with->data);
    wb_storage_session *session = place_storage(&at);
    store(with, session, "a", wall());
    (void)fetch(with, session, OTHER, &made);
    (void)removes(with, session, OTHER, "a");
}

/* What is killed right before the commit of a step has not made it. */
static void a_crash_leaves_the_steps_before(void **state)
{
    fixture *with = *state;
    static const struct {
        const char *point;
        int rows, free_rows;
    } expected[] = { { "store_sent", 0, 0 }, { "fetch_sent", 1, 1 }, { "remove_sent", 1, 0 } };
    for (size_t i = 0; i < 3; i++) {
        with->crash = expected[i].point;
        assert_int_equal(test_wait(test_child(crash_in_a_round, with)), -SIGKILL);
        assert_int_equal(test_query(with->data, ROWS), expected[i].rows);
        assert_int_equal(test_query(with->data, FREE_ROWS), expected[i].free_rows);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_store, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_earlier_installation_goes_on_without_a_store),
        CASE(an_older_host_asks_for_no_store),
        CASE(the_printed_schema_is_what_install_makes),
        CASE(a_missing_table_is_fatal),
        CASE(it_says_which_modes_it_can_honour),
        CASE(what_is_due_is_rounded_up),
        CASE(a_message_too_large_for_a_row_is_rejected),
        CASE(a_visitor_may_use_session_and_file),
        CASE(operations_go_with_their_rows),
        CASE(a_place_is_no_key),
        CASE(what_an_earlier_version_stored_is_kept),
        CASE(what_is_only_drained_is_kept),
        CASE(an_operation_without_a_row_is_replaced),
        CASE(many_that_are_due_at_once_are_listed),
        CASE(a_busy_file_is_retried_later),
        CASE(a_change_that_fails_says_nothing),
        CASE(all_is_flushed),
        CASE(fetch_dispatch_and_remove_are_one),
        CASE(what_a_joined_handler_leaves_meets_no_delayed_message),
        CASE(every_call_is_part_of_a_joined_transaction),
        CASE(a_joined_transaction_that_was_ended_is_noticed),
        CASE(a_crash_leaves_the_steps_before),
    };
    return cmocka_run_group_tests_name("sqlite delayed", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the SQL persistences share: the plugin loaded as the host loads it, an
 * endpoint with its tables, an observer's connection, and what is asked of a server in its own
 * words. A test of one server includes that server's header, which defines server_config and
 * server_api and includes this; a test of all includes sql_server.h.
 */
#ifndef SQL_FIXTURE_H
#define SQL_FIXTURE_H

#include <pthread.h>

#include "tests/integration/proxy.h"

/** What differs from server to server. */
typedef struct sql_words {
    const char *name;      /* of the plugin */
    const char *directory; /* where it is built */
    const char *library;   /* its client library */
    const char *interface; /* of its handlers */
    const char *container; /* the option that names the schema or database of the tables */
    char quote;            /* around names */
    const char *make_container; /* statements, with a quoted name in the place of %s */
    const char *drop_container;
    const char *no_user;     /* what is said of one that does not exist */
    const char *no_database;
    const char *key;       /* the column of ids in the dedup table */
    const char *nothing;   /* a statement that may be deferred, and does nothing */
    const char *hundreds;  /* n divided by 100 */
    const char *time_zone; /* a statement that sets an odd one */
    const char *sleep;     /* one that takes a minute, and may be deferred */
    const char *suicide;   /* one that ends its own session */
    const char *connect_timeout; /* what is said when connecting takes too long */
    const char *silence;   /* what is said of a server that does not answer */
    size_t deferred;       /* so many make no further round trip */
    double session_trips;  /* of a session whose statement is deferred, from begin to commit */
    int tells_its_end;     /* a session that is ended in a statement always hears of it */
    uint64_t batch_max;    /* the highest batch number but one */
    size_t operations;     /* a batch can have so many bytes of them */
    int64_t lock_timeout;  /* native code of a wait for a lock that ended */
    int may_deadlock;      /* batches with the same sorted ids */
    int waits_for_deletion; /* a claim, of a record that another transaction deletes */
    int marks_wait;        /* for the commit of the transaction they ride in */
} sql_words;
extern const sql_words words;

extern const wb_plugin *plugin;
extern const wb_persistence_ops *ops;
extern const server_api *api;
/** The last error of a call. */
extern wb_error failure;
/** Called at crash points, until reset to NULL. */
extern void (*at_crash_point)(const char *name);
/** The last warning that was logged, and how many. */
extern char warning[256];
extern int warnings;
/** The host's clock, ahead of the machine's; and by how much more each time it is asked. */
extern int64_t clock_ahead;
extern int64_t clock_step;

/** An endpoint. Its host, configuration and info live as long as the test. */
typedef struct endpoint {
    server_config config;
    wb_endpoint_info info;
    wb_persistence *persistence;
} endpoint;

/** Load the plugin; once a program. */
int load_plugin(void **state);
/** Defaults, but the server of the environment. */
void endpoint_init(endpoint *e, const char *name);
void endpoint_create(endpoint *e);
/** Create it, and return the class. */
int endpoint_try(endpoint *e);
/** init, create, install, on empty tables. */
void endpoint_install(endpoint *e, const char *name);
void endpoint_destroy(endpoint *e);

wb_storage_session *open_session(endpoint *e);
/** Begin a batch that claims these ids, WB_OK expected. */
void begin_claims(wb_storage_session *session, uint64_t batch, wb_claim *claims, size_t count);
/** Begin a batch without claims. */
void begin_batch(wb_storage_session *session, uint64_t batch);
/** Commit with operations (NULL: none); returns the class, fills *ret_failed_item. */
int commit_batch(wb_storage_session *session, uint64_t batch, const char *operations,
                 size_t *ret_failed_item);
wb_claim claim_of(const char *id);

/** The observer: a connection of the test's own. */
void observe(const char *statement);
/** The one value a query yields, as a number. */
long long observe_number(const char *query);
/** Wait until the query yields this number, at most 10 s. */
void await_number(const char *query, long long wanted);
/** Wait until so many sessions of this test's database wait for a lock. */
void await_waiting(long long wanted);

/** The endpoint most tests have, on empty tables; as set-up and tear-down of a test. */
extern endpoint orders;
int set_up_orders(void **state);
int tear_down_orders(void **state);
#define TEST_ORDERS(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, set_up_orders, tear_down_orders)
/** The same, with a proxy between it and the server, and a table of accounts, 1 and 2. The proxy
 *  takes one connection at a time: go_straight() for more, which resets the configuration. */
extern proxy *between;
int set_up_proxied(void **state);
int tear_down_proxied(void **state);
void go_straight(void);
#define TEST_PROXIED(function)                                                                     \
    cmocka_unit_test_setup_teardown(function, set_up_proxied, tear_down_proxied)

/** A commit in a thread of its own, of operations "x". */
typedef struct commit_thread {
    wb_storage_session *session;
    uint64_t batch;
    int result;
    pthread_t thread;
} commit_thread;
void start_commit(commit_thread *commit);

/** Tests of this server beside those of all; a program need not have any. */
extern const struct CMUnitTest own_tests[] __attribute__((weak));
extern const size_t own_count __attribute__((weak));
/** Run both. `subject` is their name behind the server's. */
int run_sql_tests(const char *subject, const struct CMUnitTest *tests, size_t count);

/* ---- in the server's own words; in its fixture ------------------------------------ */

void connect_observer(void);
/** Defaults, but the server of the environment. */
void server_defaults(server_config *config);
/** Run a statement on the plain connection of a handler. @return 0, or else: it failed. */
int query_plain(wb_storage_session *session, size_t item, const char *statement);
/** The name of a container that tests may make and drop; other names begin with it. */
const char *spare_container(void);
/** `name` is kept, not copied. */
void use_container(server_config *config, const char *name);
const char *container_of(const server_config *config);
/** Connect as a user that may do nothing, but install nothing either. */
void make_clerk(server_config *config);
/** One after the other; each is needed, up to NULL, for the container in the place of %s. */
extern const char *const clerk_grants[];
/** End all sessions of this test's database but the observer's, and wait until they are gone. */
void end_sessions(void);
/** Wait until a session runs words.sleep. */
void await_sleeper(void);
/** A proxy to the server, and a configuration that goes through it, unencrypted. */
proxy *put_proxy(server_config *config);
/** The batch number of now and so many seconds, as an expression; three live at a time. */
const char *batch_at(int seconds);
/** Make records with the ids of n = 1 to `count`; `batch` is an expression with n. */
void fill_records(int count, const char *batch);
/** Whoever deletes the record of id 'a' waits until it is released. */
void hold_record(void);
/** Wait until somebody waits for it, and for nothing else. */
void await_deleter(void);
void release_record(void);
/** A transaction that could see all that is there now. */
void hold_snapshot(void);
void release_snapshot(void);
/** Pending rows with the numbers 1 to `count`. */
void fill_pending(int count);
/** Eight pending rows of 32 MiB. */
void make_large_rows(void);
void drop_large_rows(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What COMMIT answers: an error of the server's has rolled back for sure, and its class says whose
 * it is; the end of the session, and whatever a pooler says for itself, leaves it in doubt. */
#include "config.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"
#include "tests/integration/proxy.h"

/* ---- errors of every class ---------------------------------------------------------- */

#define MESSAGE WB_RETRY, WB_CAUSE_OTHER
#define SERVER WB_RETRY, WB_CAUSE_SERVER
#define NOBODY WB_ABORT, WB_CAUSE_OTHER

static const struct {
    const char *sqlstate;
    int result, cause;
} faults[] = {
    { "01000", MESSAGE }, { "02000", MESSAGE }, { "03000", MESSAGE }, { "08000", MESSAGE },
    { "08001", MESSAGE }, { "08006", MESSAGE }, { "08P01", MESSAGE }, { "09000", MESSAGE },
    { "0A000", MESSAGE }, { "0B000", MESSAGE }, { "0F000", MESSAGE }, { "0L000", MESSAGE },
    { "0P000", MESSAGE }, { "0Z000", MESSAGE }, { "20000", MESSAGE }, { "21000", MESSAGE },
    { "22000", MESSAGE }, { "22012", MESSAGE }, { "22P02", MESSAGE }, { "23000", MESSAGE },
    { "23502", MESSAGE }, { "23503", MESSAGE }, { "23505", MESSAGE }, { "23514", MESSAGE },
    { "24000", MESSAGE }, { "25000", MESSAGE }, { "25006", MESSAGE }, { "25P03", MESSAGE },
    { "26000", MESSAGE }, { "27000", MESSAGE }, { "28000", MESSAGE }, { "28P01", MESSAGE },
    { "2B000", MESSAGE }, { "2D000", MESSAGE }, { "2F000", MESSAGE }, { "34000", MESSAGE },
    { "38000", MESSAGE }, { "39000", MESSAGE }, { "3B000", MESSAGE }, { "3D000", MESSAGE },
    { "3F000", MESSAGE }, { "40000", NOBODY },  { "40001", NOBODY },  { "40002", NOBODY },
    { "40003", NOBODY },  { "40P01", NOBODY },  { "42000", MESSAGE }, { "42501", MESSAGE },
    { "42601", MESSAGE }, { "42P01", MESSAGE }, { "44000", MESSAGE }, { "53000", SERVER },
    { "53100", SERVER },  { "53200", SERVER },  { "53300", SERVER },  { "53400", SERVER },
    { "54000", MESSAGE }, { "55000", MESSAGE }, { "55006", MESSAGE }, { "55P03", SERVER },
    { "57000", SERVER },  { "57014", SERVER },  { "57P01", SERVER },  { "57P02", SERVER },
    { "57P03", SERVER },  { "57P04", SERVER },  { "57P05", SERVER },  { "58000", SERVER },
    { "58030", SERVER },  { "58P01", SERVER },  { "72000", MESSAGE }, { "F0000", MESSAGE },
    { "HV000", MESSAGE }, { "HV00N", MESSAGE }, { "P0001", MESSAGE }, { "P0004", MESSAGE },
    { "XX000", MESSAGE }, { "XX002", MESSAGE }, { "WB001", MESSAGE },
};

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    observe("create or replace function fail_later() returns trigger language plpgsql as $$ begin "
            "raise exception using errcode = new.code, message = 'as asked'; end $$");
    observe("create table later (code text)");
    observe("create constraint trigger later after insert on later deferrable initially deferred "
            "for each row execute function fail_later()");
    return 0;
}

static void drop_all(void)
{
    observe("select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name like 'waybill/%' and datname = current_database()");
    observe("drop table later");
    endpoint_destroy(&orders);
}

static int tear_down(void **state)
{
    (void)state;
    drop_all();
    return 0;
}

static void assert_fault_at_commit(wb_storage_session *s, size_t i)
{
    wb_claim claim = claim_of("a");
    char statement[64];
    size_t item;

    begin_claims(s, 10, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0); /* the one before was rolled back */
    (void)snprintf(statement, sizeof statement, "insert into later values ('%s')",
                   faults[i].sqlstate);
    assert_int_equal(api->defer(s, 3, statement, NULL), WB_OK);
    const int result = commit_batch(s, 10, "x", &item);
    if (result != faults[i].result || failure.cause != faults[i].cause || item != SIZE_MAX)
        fail_msg("%s: class %d, cause %d: %s", faults[i].sqlstate, result, failure.cause,
                 failure.text);
    assert_non_null(strstr(failure.text, faults[i].sqlstate));
}

static void test_errors_of_every_class(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        assert_fault_at_commit(s, i);
    begin_claims(s, 11, &claim, 1); /* the session lives */
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

/* A trigger at COMMIT that ends the session: nothing was committed, but who can know. */
static void test_end_of_the_session_at_commit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    observe("create or replace function fail_later() returns trigger language plpgsql as $$ begin "
            "perform pg_terminate_backend(pg_backend_pid()); return null; end $$");
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(api->defer(s, 3, "insert into later values ('x')", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_IN_DOUBT);
    assert_non_null(strstr(failure.text, "57P01"));
    ops->close(s);
    s = open_session(&orders);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    ops->close(s);
}

/* ---- other words -------------------------------------------------------------------- */

static proxy *between;

static int set_up_between(void **state)
{
    set_up(state);
    between = proxy_start(getenv("PGHOST"), atoi(getenv("PGPORT")));
    orders.config.port = proxy_port(between);
    orders.config.sslmode = 1; /* disable: the proxy speaks, too */
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    return 0;
}

static int tear_down_between(void **state)
{
    (void)state;
    at_crash_point = NULL;
    proxy_stop(between);
    drop_all();
    return 0;
}

/* A message of the protocol: a letter, its length, bytes. */
static size_t put_message(char *at, char letter, const char *body, size_t size)
{
    const size_t length = size + 4;
    at[0] = letter;
    for (int i = 0; i < 4; i++)
        at[1 + i] = (char)(length >> (24 - 8 * i));
    memcpy(at + 5, body, size);
    return 5 + size;
}

/* What a statement that was bound and executed is answered with. */
static size_t put_answer(char *at, const char *tag)
{
    size_t size = put_message(at, '2', "", 0);
    size += put_message(at + size, 'n', "", 0);
    return size + put_message(at + size, 'C', tag, strlen(tag) + 1);
}

#define TEXT(literal) (literal), sizeof(literal)
#define OWN_WORD(severity, code) TEXT("S" severity "\0C" code "\0Mgone\0")
#define SERVERS_WORD(severity, code) TEXT("SANDERS\0V" severity "\0C" code "\0Mgone\0")

typedef struct word {
    const char *error; /* fields of an ErrorResponse, or NULL: a command tag */
    size_t size;
    const char *tag;
    int defers; /* a statement in front of the COMMIT, which gets the answer */
    int result;
} word;

static const word *next_word;

/* What the server says is swallowed, when it has committed; the pooler speaks instead. */
static void speak_instead(const char *name)
{
    char text[256];
    size_t size = 0;
    if (strcmp(name, "commit_sent") != 0)
        return;
    await_number("select count(*) from orders_pending", 1);
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    if (!next_word->defers)
        size += put_answer(text, "INSERT 0 1"); /* of the operations */
    size += next_word->error
                ? put_message(text + size, 'E', next_word->error, next_word->size)
                : put_answer(text + size, next_word->tag);
    size += put_message(text + size, 'Z', "I", 1);
    proxy_to_client(between, PROXY_PASS);
    proxy_tell_client(between, text, size);
}

static void assert_word(const word *w, uint64_t batch)
{
    char id[16];
    wb_storage_session *s = open_session(&orders);
    (void)snprintf(id, sizeof id, "%d", (int)batch);
    wb_claim claim = claim_of(id);
    next_word = w;
    observe("delete from orders_pending");
    begin_claims(s, batch, &claim, 1);
    if (w->defers)
        assert_int_equal(api->defer(s, 3, "select 1", NULL), WB_OK);
    proxy_to_client(between, PROXY_SWALLOW);
    at_crash_point = speak_instead;
    const int result = commit_batch(s, batch, "x", NULL);
    at_crash_point = NULL;
    if (result != w->result)
        fail_msg("word %d: class %d, cause %d: %s", (int)batch - 10, result, failure.cause,
                 failure.text);
    ops->close(s);
    s = open_session(&orders);
    begin_claims(s, batch + 100, &claim, 1);
    assert_int_equal(claim.duplicate_of, batch); /* the record knows better than any answer */
    ops->close(s);
}

/* PgBouncer's "server conn crashed?" is fatal, and without the untranslated severity that each
 * server sends; other poolers call it an error, or keep the connection. Only what the server itself
 * answered to COMMIT is believed. */
static void test_words_of_a_pooler(void **state)
{
    static const word rows[] = {
        { OWN_WORD("FATAL", "08P01"), NULL, 0, WB_IN_DOUBT },
        { OWN_WORD("ERROR", "08006"), NULL, 0, WB_IN_DOUBT },
        { OWN_WORD("ERROR", "58000"), NULL, 0, WB_IN_DOUBT },
        { OWN_WORD("FATAL", "08P01"), NULL, 1, WB_IN_DOUBT },
        { SERVERS_WORD("FATAL", "57P01"), NULL, 0, WB_IN_DOUBT },
        { SERVERS_WORD("PANIC", "XX000"), NULL, 0, WB_IN_DOUBT },
        { SERVERS_WORD("FATAL", "57P01"), NULL, 1, WB_NOT_CONNECTED },
        { SERVERS_WORD("ERROR", "08006"), NULL, 0, WB_RETRY },
        { SERVERS_WORD("ERROR", "40001"), NULL, 0, WB_ABORT },
        { NULL, 0, "ROLLBACK", 0, WB_RETRY },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_word(&rows[i], 10 + i);
}

/* Told that a pooler is there, even a FATAL of the server's own, in front of the COMMIT, proves
 * nothing: the pooler may have lost the answers between. */
static void test_told_of_a_pooler(void **state)
{
    static const word row = { SERVERS_WORD("FATAL", "57P01"), NULL, 1, WB_IN_DOUBT };
    (void)state;
    endpoint_destroy(&orders);
    orders.config.prepare = 0;
    endpoint_create(&orders);
    assert_word(&row, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define BETWEEN(function) \
    cmocka_unit_test_setup_teardown(function, set_up_between, tear_down_between)
        TEST(test_errors_of_every_class),
        TEST(test_end_of_the_session_at_commit),
        BETWEEN(test_words_of_a_pooler),
        BETWEEN(test_told_of_a_pooler),
    };
    return cmocka_run_group_tests_name("pgsql: what COMMIT answers", tests, load_plugin, NULL);
}

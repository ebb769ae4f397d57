/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator sets for the database does not change what the outbox does. */
#include "config.h"

#include <pthread.h>

#include "tests/integration/pgsql_fixture.h"

static void set_database(const char *setting)
{
    char statement[256];
    (void)snprintf(statement, sizeof statement,
                   "do $$ begin execute format('alter database %%I %s', current_database()); end $$",
                   setting);
    observe(statement);
}

static int set_up(void **state)
{
    return set_up_orders(state);
}

static int tear_down(void **state)
{
    set_database("reset all");
    return tear_down_orders(state);
}

typedef struct marking {
    wb_storage_session *session;
    int rides; /* in front of the next batch */
    int result;
    wb_error error;
} marking;

static void *make_mark(void *argument)
{
    marking *m = argument;
    const wb_mark mark = { .batch = 10 };
    wb_begin begin = { .struct_size = sizeof begin, .marks = &mark, .mark_count = 1 };
    m->result = m->rides ? ops->begin(m->session, &begin, &m->error)
                         : ops->mark(m->session, &mark, 1, &m->error);
    return NULL;
}

/* A neighbour deletes the row meanwhile: marking what is gone is no error. */
static void assert_marks_beside_another(int prepare, int rides)
{
    pthread_t thread;
    endpoint_destroy(&orders);
    orders.config.prepare = prepare;
    endpoint_create(&orders);
    marking m = { .session = open_session(&orders), .rides = rides };
    begin_batch(m.session, 10);
    assert_int_equal(commit_batch(m.session, 10, "x", NULL), WB_OK);
    observe("begin");
    observe("delete from orders_pending");
    assert_int_equal(pthread_create(&thread, NULL, make_mark, &m), 0);
    await_waiting(1);
    observe("commit");
    pthread_join(thread, NULL);
    if (m.result != WB_OK)
        fail_msg("prepare %d, rides %d: class %d: %s", prepare, rides, m.result, m.error.text);
    ops->close(m.session);
}

static void test_isolation_of_marks(void **state)
{
    static const char *const levels[] = { "repeatable read", "serializable" };
    char setting[80];
    (void)state;
    for (int i = 0; i < 2; i++) {
        (void)snprintf(setting, sizeof setting, "set default_transaction_isolation = ''%s''",
                       levels[i]);
        set_database(setting);
        for (int kind = 0; kind < 4; kind++)
            assert_marks_beside_another(kind & 1, kind >> 1);
    }
}

/* Half of it would work: batches say what they want, marks did not, and the sweeper sent their
 * operations again and again. */
static void test_read_only_is_refused(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    set_database("set default_transaction_read_only = on");
    for (int prepare = 0; prepare < 2; prepare++) {
        endpoint_destroy(&orders);
        orders.config.prepare = prepare;
        endpoint_create(&orders);
        assert_int_equal(ops->open(orders.persistence, &s, &failure), WB_NOT_CONNECTED);
        assert_non_null(strstr(failure.text, "takes no writes"));
        assert_int_equal(ops->verify(orders.persistence, &failure), WB_NOT_CONNECTED);
        assert_non_null(strstr(failure.text, "default_transaction_read_only"));
    }
    set_database("reset all");
    s = open_session(&orders);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_isolation_of_marks),
        TEST(test_read_only_is_refused),
    };
    return cmocka_run_group_tests_name("pgsql settings", tests, load_plugin, NULL);
}

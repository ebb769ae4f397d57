/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use a handler's context: the call that it was handed to, on its thread, in its process. And what becomes of a
 * handler that leaves.
 */
#include "config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/pipeline/call.h"

static const wb_handler_api api = { .struct_size = sizeof api };
static wb_pipeline pipeline = { .endpoint = "orders" };
static wb_item item = { .message = { .id = "m-1", .id_size = 3, .type = "T.Out" } };
static wb_item *const items[] = { &item };
static wb_worker worker;

static char last_line[1024];
static unsigned line_count;

static void take_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level, (void)size;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
    line_count++;
}

/* @return whether there was one line more, and it holds the text. */
static int says(const char *text)
{
    const unsigned count = line_count;
    line_count = 0;
    return count == 1 && strstr(last_line, text);
}

static int set_up(void **state)
{
    (void)state;
    worker = (wb_worker){ .pipeline = &pipeline, .contexts = wb_contexts_take("orders") };
    wb_log_set_writer(take_line, NULL);
    line_count = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_contexts_give_back(worker.contexts);
    wb_log_set_writer(NULL, NULL);
    return 0;
}

static wb_call begin(void)
{
    return (wb_call){ .worker = &worker, .items = items, .count = 1 };
}

/* ---- contexts ------------------------------------------------------------------------- */

static void test_a_context_is_not_used_again_for_long(void **state)
{
    wb_call call = begin();
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    wb_context *first = call.context;
    wb_call_end(&call);
    for (int i = 0; i < 1000; i++) {
        wb_call_begin(&call, &api, "T.Next");
        assert_ptr_not_equal(call.context, first);
        wb_call_end(&call);
    }
    assert_null(wb_call_of(first, "wb_send"));
    assert_true(says("after the handler has returned: refused\" endpoint=orders type=T.First call=wb_send"));
    assert_null(wb_call_of(first, "wb_log"));
    assert_int_equal(line_count, 0); /* once is enough */
}

static void test_a_late_call_reaches_nobody_else(void **state)
{
    wb_call call = begin(), other = begin();
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    wb_call_end(&call);
    wb_call_begin(&other, &api, "T.Other");
    assert_null(wb_call_of(call.context, "wb_publish"));
    assert_true(says("type=T.First call=wb_publish"));
    assert_ptr_equal(wb_call_of(other.context, "wb_publish"), &other);
    wb_call_end(&other);
}

static void *use(void *context)
{
    return wb_call_of(context, "wb_fail");
}

static void test_another_thread_is_refused(void **state)
{
    pthread_t thread;
    void *got = &thread;
    wb_call call = begin();
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    assert_int_equal(pthread_create(&thread, NULL, use, call.context), 0);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_null(got);
    assert_true(says("by another thread than its own: refused\" endpoint=orders type=T.First call=wb_fail"));
    assert_ptr_equal(wb_call_of(call.context, "wb_fail"), &call);
    wb_call_end(&call);
}

/* The memory stays when the worker is gone; the next of that endpoint, and no other, goes on with it. */
static void test_a_ring_outlives_its_worker(void **state)
{
    wb_call call = begin();
    wb_contexts *own = worker.contexts;
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    wb_call_end(&call);
    wb_contexts_give_back(own);
    assert_null(wb_call_of(call.context, "wb_send"));
    assert_true(says("refused\" endpoint=orders call=wb_send")); /* the type may be gone */
    wb_contexts *strange = wb_contexts_take("billing");
    assert_ptr_not_equal(strange, own);
    wb_contexts_give_back(strange);
    worker.contexts = wb_contexts_take("orders");
    assert_ptr_equal(worker.contexts, own);
    wb_call_begin(&call, &api, "T.Second");
    wb_contexts *second = wb_contexts_take("orders"); /* a second worker beside it has one of its own */
    assert_ptr_not_equal(second, own);
    wb_contexts_give_back(second);
    wb_call_end(&call);
}

/* ---- children -------------------------------------------------------------------------- */

static int status_of(pid_t child)
{
    int status = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_child_is_refused_and_ends(void **state)
{
    wb_call call = begin();
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    pid_t child = fork();
    if (child == 0) {
        wb_log_event(WB_LOG_ERROR, "not to a writer, who may wait for a lock", { "endpoint", "orders" });
        if (line_count)
            _exit(3);
        wb_log_set_writer(take_line, NULL);
        if (wb_call_of(call.context, "wb_send") || !says("in a child process: refused") || wb_call_leaves("exit(0)"))
            _exit(1);
        wb_call_end(&call);
        _exit(2);
    }
    assert_int_equal(status_of(child), 70);
    assert_ptr_equal(wb_call_of(call.context, "wb_send"), &call);
    wb_call_end(&call);
}

/* A child that opens an endpoint of its own is no child of its own calls. */
static void test_a_child_has_calls_of_its_own(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        wb_call call = begin();
        wb_call_begin(&call, &api, "T.First");
        if (wb_call_of(call.context, "wb_send") != &call)
            _exit(1);
        wb_call_end(&call);
        _exit(3);
    }
    assert_int_equal(status_of(child), 3);
}

/* It shares the memory, and its end is not ours. */
static void test_a_child_of_vfork_leaves_alone(void **state)
{
    wb_call call = begin();
    (void)state;
    wb_call_begin(&call, &api, "T.First");
    pid_t child = vfork();
    if (child == 0)
        _exit(wb_call_leaves("_exit(4)") ? 1 : 4);
    assert_int_equal(status_of(child), 4);
    assert_int_equal(line_count, 0);
    assert_ptr_equal(wb_call_of(call.context, "wb_send"), &call);
    wb_call_end(&call);
}

/* ---- hooks ------------------------------------------------------------------------------ */

static void test_a_hook_is_called_as_a_handler_is(void **state)
{
    wb_hook hook = { "open", "/m/bank.so", "orders", worker.contexts };
    wb_call call = { .hook = &hook };
    (void)state;
    wb_call_begin(&call, &api, hook.name);
    assert_ptr_equal(wb_call_of(call.context, "wb_log"), &call);
    pid_t child = fork();
    if (child == 0) {
        wb_call_end(&call);
        _exit(2);
    }
    assert_int_equal(status_of(child), 70);
    assert_true(wb_call_leaves("exit(0)"));
    assert_true(says("a hook ends the process\" endpoint=orders module=/m/bank.so hook=open call=exit(0)"));
    wb_call_end(&call);
    assert_null(wb_call_of(call.context, "wb_log"));
    assert_true(says("a hook's context is used after the hook has returned: refused\" endpoint=orders hook=open call=wb_log"));
}

/* ---- leaving --------------------------------------------------------------------------- */

static void test_who_leaves_is_named_once(void **state)
{
    wb_call call = begin();
    (void)state;
    assert_false(wb_call_leaves("exit(0)")); /* nobody is in a handler */
    wb_call_begin(&call, &api, "T.First");
    assert_true(wb_call_leaves("exit(0)"));
    assert_true(says("a handler ends the process\" endpoint=orders message_id=m-1 type=T.Out call=exit(0)"));
    assert_false(wb_call_leaves("_exit(0)")); /* exit() goes on to it */
    wb_call_end(&call);
    assert_int_equal(line_count, 0);
}

static void leave(void *argument)
{
    (void)argument;
    pthread_exit(NULL);
}

static void *leave_in_a_call(void *argument)
{
    static wb_call call;
    (void)argument;
    call = begin();
    wb_call_begin(&call, &api, "T.First");
    wb_call_guard(leave, NULL);
    return NULL;
}

static void test_a_thread_that_is_ended_is_named(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, leave_in_a_call, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(says("a handler ends its thread\" endpoint=orders message_id=m-1 type=T.Out call=pthread_exit()"));
}

/* In a library the process's end is the program's; where it was asked for, exit() ends it with 70, also when it is the
 * C library that calls it. */
static void test_exit_is_the_programs_unless_it_says_otherwise(void **state)
{
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        (void)fflush(NULL); /* or the child writes it, too */
        pid_t child = fork();
        if (child == 0) {
            wb_call call = begin();
            if (ends)
                wb_call_ends_process();
            wb_call_begin(&call, &api, "T.First");
            exit(6);
        }
        assert_int_equal(status_of(child), ends ? 70 : 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_context_is_not_used_again_for_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_late_call_reaches_nobody_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_thread_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_ring_outlives_its_worker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_child_is_refused_and_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_child_has_calls_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_child_of_vfork_leaves_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_hook_is_called_as_a_handler_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_leaves_is_named_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_thread_that_is_ended_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exit_is_the_programs_unless_it_says_otherwise, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

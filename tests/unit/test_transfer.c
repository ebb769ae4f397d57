/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for one endpoint goes to another: what is unreadable or refused to its error queue, and nothing is acknowledged
 * that was not sent. The queues are the test's, and so is the time.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/endpoint/transfer.h"
#include "tests/unit/fake_plugins.h"

#define MOST 8
#define LOOK (10 * WB_SECOND) /* so long one for a message that does not come yet takes */
#define LOOKS_MOST 30

/* Says whether `operation` is refused: 0, or a cause. */
typedef int (*refusal)(const wb_operation *operation);

static fake fakes[2];
static wb_endpoint_setup setups[2];
static wb_transport_ops ops;
static wb_endpoint *from, *to;
static wb_transferred done;
static wb_error error;

static const wb_incoming *waiting[MOST];
static size_t waiting_count, acknowledged;
static int silent_looks, silences; /* before each batch so many looks find nothing; so many such batches are to come */
static int looks;
static refusal refuse;
static struct sent {
    char id[32], destination[32], reason[200], failed_queue[32], key[32];
} sent[MOST * 4];
static size_t sent_count;

/* ---- time ---------------------------------------------------------------------------------- */

static int64_t passed;

int64_t __real_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_monotonic(void);
int64_t __wrap_wb_clock_monotonic(void)
{
    return __real_wb_clock_monotonic() + passed;
}

/* ---- queues -------------------------------------------------------------------------------- */

/* Nothing came, though something is there. */
static int is_silent(void)
{
    if (looks++ % (silent_looks + 1) == silent_looks)
        return 0;
    assert_true(looks < LOOKS_MOST);
    passed += LOOK;
    return 1;
}

static int receive(wb_transport_session *session, int64_t deadline, const wb_incoming **ret_messages, size_t max,
                   size_t *ret_count, wb_error *ret_error)
{
    (void)session, (void)deadline, (void)max, (void)ret_error;
    *ret_count = silent_looks && is_silent() ? 0 : waiting_count;
    memcpy(ret_messages, waiting, *ret_count * sizeof *waiting);
    return WB_OK;
}

static int acknowledge(wb_transport_session *session, const wb_incoming *const *messages, size_t count, wb_error *ret_error)
{
    (void)session, (void)messages, (void)ret_error;
    acknowledged += count;
    if (silences)
        silences--;
    else
        waiting_count = 0;
    return WB_OK;
}

static void copy_header(const wb_operation *operation, const char *name, char *text, size_t size)
{
    for (size_t i = 0; i < operation->header_count; i++)
        if (strcmp(operation->headers[i].name, name) == 0)
            (void)snprintf(text, size, "%.*s", (int)operation->headers[i].value_size, operation->headers[i].value);
}

static int send_window(wb_transport_session *session, wb_operation *const *operations, size_t count, int64_t deadline,
                       wb_error *ret_error)
{
    (void)session, (void)deadline, (void)ret_error;
    for (size_t i = 0; i < count; i++) {
        wb_operation *operation = operations[i];
        operation->cause = refuse ? refuse(operation) : 0;
        operation->result = operation->cause ? WB_REJECT : WB_OK;
        operation->reason = operation->cause ? "as the test wants" : NULL;
        if (operation->cause)
            continue;
        struct sent *one = &sent[sent_count++];
        *one = (struct sent){ 0 };
        (void)snprintf(one->id, sizeof one->id, "%s", operation->id);
        (void)snprintf(one->destination, sizeof one->destination, "%s", operation->destination);
        (void)snprintf(one->key, sizeof one->key, "%.*s", (int)operation->key_size, operation->key ? operation->key : "");
        copy_header(operation, "NServiceBus.ExceptionInfo.Message", one->reason, sizeof one->reason);
        copy_header(operation, "NServiceBus.FailedQ", one->failed_queue, sizeof one->failed_queue);
    }
    return WB_OK;
}

static int depth(wb_transport *transport, wb_transport_depth *ret_depth, wb_error *ret_error)
{
    (void)transport, (void)ret_error;
    ret_depth->messages = waiting_count;
    return WB_OK;
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static wb_endpoint *make(size_t at, const char *name)
{
    wb_endpoint *endpoint = NULL;
    fake_setup(&fakes[at], &setups[at], name, 1, 0);
    ops = *setups[at].transport_ops;
    ops.receive = receive;
    ops.acknowledge = acknowledge;
    ops.send = send_window;
    ops.depth = depth;
    setups[at].transport_ops = &ops;
    assert_int_equal(wb_endpoint_create(&setups[at], &endpoint, &error), WB_OK);
    return endpoint;
}

static int begin(void **state)
{
    (void)state;
    from = make(0, "former");
    to = make(1, "later");
    waiting_count = acknowledged = sent_count = 0;
    silent_looks = silences = looks = 0;
    refuse = NULL;
    done = (wb_transferred){ 0 };
    return 0;
}

static int end(void **state)
{
    (void)state;
    wb_endpoint_destroy(to);
    wb_endpoint_destroy(from);
    return fakes[0].sessions || fakes[1].sessions || fakes[0].instances || fakes[1].instances;
}

static wb_incoming message(const char *id, const char *problem)
{
    return (wb_incoming){ .struct_size = sizeof(wb_incoming), .id = id, .id_size = id ? strlen(id) : 0, .body = "body",
                          .body_size = 4, .problem = problem };
}

static void add(const wb_incoming *one)
{
    waiting[waiting_count++] = one;
}

static void assert_sent(size_t at, const char *id, const char *destination, const char *reason)
{
    assert_true(at < sent_count);
    assert_string_equal(sent[at].id, id);
    assert_string_equal(sent[at].destination, destination);
    assert_non_null(strstr(sent[at].reason, reason));
    assert_string_equal(sent[at].failed_queue, *reason ? "later" : "");
}

static void assert_counts(uint64_t moved, uint64_t failed, size_t acknowledgements)
{
    assert_int_equal(done.moved, moved);
    assert_int_equal(done.failed, failed);
    assert_int_equal(acknowledged, acknowledgements);
}

/* ---- cases --------------------------------------------------------------------------------------- */

static void test_moves(void **state)
{
    wb_incoming one = message("one", NULL);
    const wb_incoming unreadable = message("unreadable", "602 headers"), nameless = message(NULL, NULL);
    (void)state;
    one.key = "customer";
    one.key_size = strlen(one.key);
    add(&one);
    add(&unreadable);
    add(&nameless);
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_OK);
    assert_int_equal(sent_count, 3);
    assert_sent(0, "one", "later", "");
    assert_string_equal(sent[0].key, "customer"); /* decides order and partition */
    assert_sent(1, "unreadable", "error", "602 headers");
    assert_sent(2, "", "later", "");
    assert_string_equal(sent[2].key, "");
    assert_counts(2, 1, 3);
}

static int is_large(const wb_operation *operation)
{
    return strcmp(operation->id, "large") == 0 && strcmp(operation->destination, "later") == 0 ? WB_CAUSE_TOO_LARGE : 0;
}

/* One that the new queue does not take harms no other. */
static void test_refused(void **state)
{
    const wb_incoming one = message("one", NULL), large = message("large", NULL);
    (void)state;
    refuse = is_large;
    add(&large);
    add(&one);
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_OK);
    assert_int_equal(sent_count, 2);
    assert_sent(0, "one", "later", "");
    assert_sent(1, "large", "error", "as the test wants");
    assert_counts(1, 1, 2);
}

static int is_whole(const wb_operation *operation)
{
    char stack[200] = "";
    copy_header(operation, "NServiceBus.ExceptionInfo.StackTrace", stack, sizeof stack);
    return *stack ? WB_CAUSE_TOO_LARGE : 0;
}

static void test_copy_is_cut(void **state)
{
    const wb_incoming unreadable = message("unreadable", "602 headers");
    (void)state;
    refuse = is_whole;
    add(&unreadable);
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_OK);
    assert_int_equal(sent_count, 1);
    assert_sent(0, "unreadable", "error", "602 headers");
    assert_counts(0, 1, 1);
}

static int has_no_queue(const wb_operation *operation)
{
    return strcmp(operation->destination, "error") == 0 ? WB_CAUSE_UNROUTABLE : 0;
}

static int is_refused_always(const wb_operation *operation)
{
    return strcmp(operation->id, "unreadable") == 0 ? WB_CAUSE_TOO_LARGE : 0;
}

static int is_full(const wb_operation *operation)
{
    (void)operation;
    return WB_CAUSE_SERVER;
}

static int is_denied(const wb_operation *operation)
{
    return strcmp(operation->destination, "later") == 0 ? WB_CAUSE_REFUSED : 0;
}

static int is_gone(const wb_operation *operation)
{
    return strcmp(operation->destination, "later") == 0 ? WB_CAUSE_UNROUTABLE : 0;
}

/* Nothing is acknowledged, and the same call goes on when somebody has acted. */
static void assert_ends(refusal why, int result, const char *text)
{
    const wb_incoming one = message("one", NULL), unreadable = message("unreadable", "602 headers");
    waiting_count = acknowledged = sent_count = 0;
    done = (wb_transferred){ 0 };
    add(&one);
    add(&unreadable);
    refuse = why;
    assert_int_equal(wb_transfer_run(from, to, &done, &error), result);
    assert_non_null(strstr(error.text, text));
    assert_counts(0, 0, 0);
    refuse = NULL;
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_OK);
    assert_counts(1, 1, 2);
}

static void test_ends(void **state)
{
    (void)state;
    assert_ends(has_no_queue, WB_FATAL, "message \"unreadable\" cannot leave queue \"former\": could not dispatch to \"error\"");
    assert_ends(is_refused_always, WB_FATAL, "message \"unreadable\" cannot leave");
    assert_ends(is_full, WB_RETRY, "could not dispatch to \"later\"");
    /* the message is not what is wrong: it is not for the error queue */
    assert_ends(is_denied, WB_FATAL, "message \"one\" cannot leave queue \"former\": could not dispatch to \"later\"");
    assert_ends(is_gone, WB_FATAL, "message \"one\" cannot leave queue \"former\": could not dispatch to \"later\"");
}

/* What is there and does not come is waited for, anew behind each that came; but not for ever. */
static void test_waits(void **state)
{
    const wb_incoming one = message("one", NULL);
    (void)state;
    silent_looks = 7;
    silences = 1;
    add(&one);
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_OK);
    assert_counts(2, 0, 2);

    silent_looks = LOOKS_MOST;
    looks = 0;
    add(&one);
    assert_int_equal(wb_transfer_run(from, to, &done, &error), WB_RETRY);
    assert_non_null(strstr(error.text, "what waits in queue \"former\" does not come"));
    assert_true(looks >= 7 && looks <= 10);
    assert_counts(2, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_moves, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_copy_is_cut, begin, end),
        cmocka_unit_test_setup_teardown(test_ends, begin, end),
        cmocka_unit_test_setup_teardown(test_waits, begin, end),
    };
    return cmocka_run_group_tests_name("transfer", tests, NULL, NULL);
}

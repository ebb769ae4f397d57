/* SPDX-License-Identifier: Apache-2.0
 *
 * Loss: connections that break, servers that die.
 *
 * The wires of a session are broken from this side; what a plugin reports then, or whether it
 * connects again by itself, is its own affair. After close and open again nothing that was
 * not acknowledged may be missing, and nothing that was confirmed.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/relay.h"
#include "conformance/transport/steps.h"

static const char *main_queue(wb_kit *kit)
{
    return wb_tk_of(kit)->queues[WB_TK_MAIN];
}

/* A session of MAIN whose wires are known. NULL: failed, or skipped for want of wires. */
static wb_tk_session *open_wired(wb_kit *kit, uint32_t prefetch, wb_wires *before)
{
    wb_tk_session *sender = wb_tk_sender(kit); /* before: it is to be spared */
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, wb_tk_of(kit)->mode);
    /* once: what a swept queue needs is opened and closed before */
    wb_tk_session *s =
        instance && sender ? wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, prefetch)
                           : NULL;
    if (!s)
        return NULL;
    wb_tk_close(s);
    wb_wires_remember(before);
    if (!wb_tk_reopen(s))
        return NULL;
    if (!wb_wires_settle(before, &wb_tk_of(kit)->wires)) {
        wb_kit_skip(kit, "%s has no connections that could break", kit->plugin->name);
        return NULL;
    }
    return s;
}

/* Where the plugin keeps connections, those of the shared sessions may be among them: they are opened anew. */
static void end_what_was_cut(wb_kit *kit, const wb_wires *before)
{
    if (memcmp(before, &wb_tk_of(kit)->wires, sizeof *before) == 0)
        wb_tk_end(wb_tk_of(kit));
}

static size_t cut(wb_kit *kit, const wb_wires *before)
{
    const size_t count = wb_wires_cut(before);
    end_what_was_cut(kit, before);
    return count;
}

static wb_tk_session *open_wired_with(wb_kit *kit, size_t count, wb_wires *before)
{
    wb_tk_session *s = open_wired(kit, (uint32_t)count, before);
    return s && wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, count) &&
                   wb_tk_collect(s, count)
               ? s
               : NULL;
}

static int is_loss(int result, const wb_error *error)
{
    return result == WB_OK || wb_kit_is_servers_fault(result, error);
}

/* ---- receiving ------------------------------------------------------------------------- */

static void lost_while_idle(wb_kit *kit)
{
    wb_wires before;
    wb_error error = { 0 };
    wb_tk_session *s = open_wired_with(kit, 10, &before);
    if (!s || !wb_tk_acknowledge(s, 0, 3))
        return;
    wb_kit_check(kit, cut(kit, &before) > 0, "there was nothing to cut");
    s->count = 0;
    int result = wb_tk_take(s, 10, wb_tk_in(s->tk, WB_TK_QUIET), &error);
    wb_kit_check(kit, is_loss(result, &error), "receive: %s: %s", wb_result_name(result),
                 error.text);
    if (wb_tk_reopen(s))
        wb_tk_expect_back(s, 10, 3, 0);
}

typedef struct cutter {
    const wb_wires *before;
    pthread_t thread;
} cutter;

static void *cut_later(void *argument)
{
    const cutter *self = argument;
    wb_clock_pause(200 * WB_MILLISECOND, NULL);
    (void)wb_wires_cut(self->before);
    return NULL;
}

static void lost_while_waiting(wb_kit *kit)
{
    wb_wires before;
    wb_error error = { 0 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = open_wired(kit, 10, &before);
    cutter other = { .before = &before };
    if (!s || !wb_kit_check(kit, pthread_create(&other.thread, NULL, cut_later, &other) == 0,
                            "could not start a thread"))
        return;
    int64_t start = wb_clock_monotonic();
    int result = wb_tk_take(s, 10, start + tk->patience / 4, &error);
    (void)pthread_join(other.thread, NULL);
    end_what_was_cut(kit, &before);
    wb_kit_check(kit, is_loss(result, &error), "receive: %s: %s", wb_result_name(result),
                 error.text);
    wb_kit_check(kit, wb_clock_monotonic() - start < tk->patience,
                 "receive did not return after its deadline");
    if (wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 1, 1) && wb_tk_reopen(s) &&
        wb_tk_collect(s, 1))
        wb_tk_finish(s);
}

/* Between receive and acknowledge: the acknowledgement cannot have arrived, or may have. Who says
 * that it has is right, but for a log, which may still be asked to note it. */
static void lost_before_acknowledge(wb_kit *kit)
{
    wb_wires before;
    wb_error error = { 0 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = open_wired_with(kit, 10, &before);
    if (!s)
        return;
    (void)cut(kit, &before);
    int result = tk->ops->acknowledge(s->session, s->in_hand, 5, &error);
    wb_kit_check(kit, is_loss(result, &error), "acknowledge: %s: %s", wb_result_name(result),
                 error.text);
    if (wb_tk_reopen(s))
        wb_tk_expect_back(s, 10, 5, result == WB_OK && !(kit->plugin->capabilities & WB_CAP_ORDER_PER_KEY) ? 5 : 0);
}

/* Whether the plugin noticed a loss is its own affair: it may count it, no more. */
static void counts_lost_connections(wb_kit *kit)
{
    wb_wires before;
    wb_tk_session *s = open_wired_with(kit, 1, &before);
    for (uint32_t count = 1; s && count <= 2; count++) {
        (void)cut(kit, &before);
        if (!wb_tk_reopen(s) || !wb_tk_collect(s, 1))
            return;
        wb_kit_check(kit, s->in_hand[0]->delivery_count <= count,
                     "a delivery count of %u after %u deliveries",
                     s->in_hand[0]->delivery_count, count);
    }
    if (s)
        wb_tk_finish(s);
}

/* ---- the death of a process ------------------------------------------------------------ */

/* Nobody but the victim may receive meanwhile. `behind` more wait when it dies. */
static int send_to_victim(wb_kit *kit, size_t count, size_t gone, size_t behind)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 1);
    if (!s || !wb_tk_sender(kit))
        return 0;
    wb_tk_close(s); /* it was opened to make sure that the queue is empty */
    return wb_tk_send_numbers(wb_tk_sender(kit), main_queue(kit), "k", 0, count + behind) &&
           wb_tk_victim_acknowledges(kit, count, gone);
}

/* Ahead of what nobody was given before, where the transport says so. */
static void lost_with_its_process(wb_kit *kit)
{
    const size_t behind = wb_tk_returns_first(kit) ? 3 : 0;
    wb_tk_session *s =
        send_to_victim(kit, 5, 0, behind) ? wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 10) : NULL;
    if (s && wb_tk_collect(s, 5 + behind) && wb_tk_expect_numbers(s, 0, 0, 5 + behind) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static void acknowledged_before_death(wb_kit *kit)
{
    wb_tk_session *s =
        send_to_victim(kit, 5, 2, 0) ? wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 10) : NULL;
    if (s && wb_tk_collect(s, 3) && wb_tk_expect_numbers(s, 0, 2, 3) && wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static void counts_deaths(wb_kit *kit)
{
    if (!send_to_victim(kit, 1, 0, 0) || !wb_tk_victim_dies(kit, 1))
        return;
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, 10);
    if (!s || !wb_tk_collect(s, 1))
        return;
    wb_kit_check(kit, s->in_hand[0]->delivery_count == 2, "a delivery count of %u, not 2",
                 s->in_hand[0]->delivery_count);
    wb_tk_finish(s);
}

/* ---- sending --------------------------------------------------------------------------- */

/* What was confirmed arrives, what was not is sent again: nothing is missing. */
static void lost_before_send(wb_kit *kit)
{
    enum { COUNT = 20 };
    wb_wires before;
    wb_error error = { 0 };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *again[COUNT];
    size_t left = 0;
    unsigned char seen[COUNT] = { 0 };
    wb_tk_session *s = open_wired(kit, 100, &before);
    if (!s)
        return;
    for (size_t i = 0; i < COUNT; i++) {
        wb_tk_write(kit, &letters[i], main_queue(kit), "k", i);
        again[i] = &letters[i].operation;
    }
    (void)cut(kit, &before);
    int result = tk->ops->send(s->session, again, COUNT, wb_tk_in(tk, tk->patience / 4), &error);
    wb_kit_check(kit, is_loss(result, &error), "send: %s: %s", wb_result_name(result), error.text);
    for (size_t i = 0; i < COUNT; i++)
        if (wb_kit_check(kit, again[i]->result == WB_RETRY || is_loss(again[i]->result, &error),
                         "operation %zu: %s", i, wb_result_name(again[i]->result)) &&
            again[i]->result != WB_OK)
            again[left++] = again[i];
    wb_kit_check(kit, (result == WB_OK) == (left == 0), "send returned %s, %zu were not sent",
                 wb_result_name(result), left);
    if (!wb_tk_reopen(s) || (left && !wb_tk_send(s, again, left)))
        return;
    for (size_t missing = COUNT; missing;) {
        if (!wb_tk_collect(s, 1))
            return;
        missing -= seen[wb_tk_number(s->in_hand[0]) % COUNT]++ == 0;
        if (!wb_tk_finish(s))
            return;
    }
}

/* ---- the server ------------------------------------------------------------------------ */

static void survives_a_crash(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    const char *command = kit->options->crash_server;
    if (!command) {
        wb_kit_skip(kit, "no --crash-server was given");
        return;
    }
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 10);
    if (!s || !wb_tk_send_numbers(s, main_queue(kit), "k", 0, 100) || !wb_tk_collect(s, 10) ||
        !wb_tk_acknowledge(s, 0, 5))
        return;
    wb_tk_end(tk); /* the shared sessions are lost, too */
    if (wb_kit_check(kit, system(command) == 0, "the command failed: %s", command) &&
        wb_tk_reopen(s))
        wb_tk_expect_back(s, 100, 5, 0);
}

typedef struct crash {
    const char *command;
    int is_crashed;
    atomic_int is_over;
    pthread_t thread;
} crash;

static void *crash_server(void *argument)
{
    crash *self = argument;
    self->is_crashed = wb_relay_run(self->command);
    atomic_store(&self->is_over, 1);
    return NULL;
}

/* @return whether the session goes on. `*failures` counts what was the server's fault. */
static int expect_servers_fault(wb_kit *kit, int result, const wb_error *error, const char *doing,
                                size_t *failures)
{
    if (result == WB_OK)
        return 1;
    ++*failures;
    wb_kit_check(kit, wb_kit_is_servers_fault(result, error),
                 "%s while the server is down: %s, cause %d: %s", doing, wb_result_name(result),
                 error->cause, error->text);
    wb_kit_check(kit, error->cause != WB_CAUSE_CONFIG && error->cause != WB_CAUSE_TOO_LARGE,
                 "%s while the server is down: cause %d: %s", doing, error->cause, error->text);
    return 0;
}

/* One round of what a worker does; what fails ends the session. */
static void work(wb_tk_session *s, size_t *failures)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    wb_tk_letter letter;
    wb_operation *operation = &letter.operation;
    if (!s->session) {
        int result = s->tk->ops->open(s->instance->transport, s->purpose, s->prefetch,
                                      &s->session, &error);
        if (!expect_servers_fault(kit, result, &error, "open", failures)) {
            s->session = NULL;
            return;
        }
    }
    wb_tk_write(kit, &letter, main_queue(kit), "k", 1);
    int result = s->tk->ops->send(s->session, &operation, 1, wb_tk_in(s->tk, 2 * WB_SECOND),
                                  &error);
    int is_ok = expect_servers_fault(kit, result, &error, "send", failures) &&
                wb_kit_check(kit, operation->result == WB_OK, "a message was refused: %s",
                             operation->reason ? operation->reason : "");
    if (is_ok) {
        result = wb_tk_take(s, 10, wb_tk_in(s->tk, WB_TK_QUIET / 3), &error);
        is_ok = expect_servers_fault(kit, result, &error, "receive", failures);
    }
    if (is_ok && s->count) {
        result = s->tk->ops->acknowledge(s->session, s->in_hand, s->count, &error);
        is_ok = expect_servers_fault(kit, result, &error, "acknowledge", failures);
        s->count = 0;
    }
    if (!is_ok)
        wb_tk_close(s);
}

/* Sessions work on and are opened again and again until the server is back. */
static void blames_the_server(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    crash server = { .command = kit->options->crash_server };
    size_t failures = 0;
    if (!server.command) {
        wb_kit_skip(kit, "no --crash-server was given");
        return;
    }
    wb_tk_session *s = wb_tk_open(kit, WB_TK_MAIN, tk->mode, 10);
    if (!s)
        return;
    wb_tk_end(tk);
    if (!wb_kit_check(kit, pthread_create(&server.thread, NULL, crash_server, &server) == 0,
                      "could not start a thread"))
        return;
    while (!atomic_load(&server.is_over)) {
        work(s, &failures);
        wb_clock_pause(20 * WB_MILLISECOND, NULL);
    }
    (void)pthread_join(server.thread, NULL);
    if (!wb_kit_check(kit, server.is_crashed, "the command failed: %s", server.command) ||
        !wb_kit_check(kit, failures > 0, "nothing failed while the server was down") ||
        !wb_tk_reopen(s) || !wb_tk_send_numbers(s, main_queue(kit), "k", 2, 1) ||
        !wb_tk_collect(s, 1) || !wb_tk_finish(s))
        return;
    wb_tk_close(s);
    wb_tk_sweep(kit); /* what was in doubt is in the queue, or is not */
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_loss_cases[] = {
    { "a connection lost while idle: unacknowledged messages come back", RO, lost_while_idle },
    { "a connection lost while receive waits", RO, lost_while_waiting },
    { "a connection lost before messages are acknowledged", RO, lost_before_acknowledge },
    { "lost connections are counted once at most", RO | WB_CAP_DELIVERY_COUNT,
      counts_lost_connections },
    { "messages in the hands of a process that is killed come back", RO, lost_with_its_process },
    { "what a process acknowledged for good before it was killed stays away", RO, acknowledged_before_death },
    { "deliveries are counted across the death of processes", RO | WB_CAP_DELIVERY_COUNT,
      counts_deaths },
    { "a connection lost before a window is sent: what is not confirmed is sent again", RO,
      lost_before_send },
    { "confirmed messages survive a crash of the server", RO, survives_a_crash },
    { "while the server is down and comes back, all that fails is the server's fault", RO,
      blames_the_server },
};
WB_TK_CASES(loss);

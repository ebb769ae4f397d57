/* SPDX-License-Identifier: Apache-2.0
 *
 * Endpoints that receive from further queues: MAIN is the one of the endpoint's name, FURTHER is beside it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conformance/transport/setting.h"

#define RO WB_CAP_MODE_RECEIVE_ONLY
#define POLL (20 * WB_MILLISECOND)
/* What keeps a queue full, and after how many of it the only one of another queue must have come. */
#define FULL 300
#define FULL_MAX 6000
#define LONELY 900000
#define AT_ONCE 10
/* Whoever reads ahead has more at hand than is taken at once. */
#define READ_AHEAD 100

/* One thread makes instances, one at a time. */
static const char *further[1];

static void with_further(wb_endpoint_info *info)
{
    info->queues = further;
    info->queue_count = 1;
}

/* Not installed. */
static wb_tk_instance *make(wb_kit *kit, const char *name, const char *queue, int mode)
{
    further[0] = queue;
    return wb_tk_instance_as(kit, name, mode, with_further);
}

static int install(wb_kit *kit, const wb_tk_instance *instance)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(kit, instance->tk->ops->install(instance->transport, &error), &error, "install");
}

static wb_tk_session *open_in(wb_kit *kit, int mode, uint32_t prefetch)
{
    const wb_tk *tk = wb_tk_of(kit);
    wb_tk_instance *instance = make(kit, tk->queues[WB_TK_MAIN], tk->queues[WB_TK_FURTHER], mode);
    return instance && install(kit, instance) && wb_tk_sender(kit)
               ? wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, prefetch)
               : NULL;
}

static wb_tk_session *open_both(wb_kit *kit)
{
    return open_in(kit, wb_tk_of(kit)->mode, AT_ONCE);
}

/* `first` to the endpoint's own queue, the next number to the further one; both are in hand. */
static int send_and_collect(wb_tk_session *s, size_t first)
{
    const wb_tk *tk = s->tk;
    const size_t numbers[] = { first, first + 1 };
    wb_tk_session *sender = wb_tk_sender(&s->tk->kit);
    return sender && wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", first, 1) &&
           wb_tk_send_numbers(sender, tk->queues[WB_TK_FURTHER], "k", first + 1, 1) && wb_tk_collect(s, 2) &&
           wb_tk_expect_set(s, numbers, 2);
}

static size_t place_of(const wb_tk_session *s, size_t number)
{
    size_t at = 0;
    while (at + 1 < s->count && wb_tk_number(s->in_hand[at]) != number)
        at++;
    return at;
}

/* ---- install, verify --------------------------------------------------------------------- */

static void expect_missing(wb_kit *kit, const wb_tk_instance *instance, const char *queue)
{
    wb_error error = { 0 };
    int result = instance->tk->ops->verify(instance->transport, &error);
    wb_kit_check(kit, result == WB_FATAL && error.cause == WB_CAUSE_MISSING && strstr(error.text, queue),
                 "without the queue \"%s\" verify() says: %s, cause %d: %s", queue, wb_result_name(result), error.cause,
                 error.text);
}

/* Where the plugin can. */
static void remove_queue(wb_kit *kit, const char *name)
{
    const wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    if (!(kit->plugin->capabilities & WB_CAP_UNINSTALL))
        return;
    wb_tk_instance *instance = wb_tk_instance_named(kit, name, tk->mode);
    if (instance)
        wb_tk_is_ok(kit, tk->ops->uninstall(instance->transport, WB_UNINSTALL_MESSAGES, &error), &error, "uninstall");
}

static void makes_and_verifies(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    const wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_instance *instance = make(kit, tk->queues[WB_TK_MAIN], wb_tk_own_name(kit, name), tk->mode);
    if (!instance)
        return;
    expect_missing(kit, instance, name);
    for (int i = 0; i < 2; i++)
        if (!install(kit, instance))
            return;
    wb_tk_is_ok(kit, tk->ops->verify(instance->transport, &error), &error, "verify");
    remove_queue(kit, name);
}

/* ---- received, settled ------------------------------------------------------------------- */

static void acknowledged_alone(wb_kit *kit)
{
    wb_tk_session *s = open_both(kit);
    for (size_t first = 1, gone = 0; s && gone < 2; first += 2, gone++) {
        if (!send_and_collect(s, first) || !wb_tk_acknowledge(s, place_of(s, first + gone), 1) || !wb_tk_reopen(s) ||
            !wb_tk_collect(s, 1) || !wb_tk_expect_numbers(s, 0, first + 1 - gone, 1) || !wb_tk_finish(s) ||
            !wb_tk_expect_empty(s))
            return;
    }
}

static void given_back(wb_kit *kit)
{
    const int counts = (kit->plugin->capabilities & WB_CAP_DELIVERY_COUNT) != 0;
    const size_t numbers[] = { 1, 2 };
    wb_tk_session *s = open_both(kit);
    if (!s || !send_and_collect(s, 1) || !wb_tk_give_back(s, 0, 2) || !wb_tk_collect(s, 2) ||
        !wb_tk_expect_set(s, numbers, 2))
        return;
    for (size_t i = 0; counts && i < 2; i++)
        wb_kit_check(kit, s->in_hand[i]->delivery_count > 0, "message %zu was given back and is said to be a first delivery",
                     wb_tk_number(s->in_hand[i]));
    if (wb_tk_finish(s))
        (void)wb_tk_expect_empty(s);
}

static void settled_after_stop(wb_kit *kit)
{
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, stop_receiving))
        return;
    wb_tk_session *s = open_both(kit);
    if (!s || !send_and_collect(s, 1) ||
        !wb_tk_is_ok(kit, s->tk->ops->stop_receiving(s->session, &error), &error, "stop_receiving") ||
        !wb_tk_expect_quiet(s, WB_TK_QUIET) || !wb_tk_finish(s) || !wb_tk_reopen(s))
        return;
    (void)wb_tk_expect_empty(s);
}

static void gone_with_mode_none(wb_kit *kit)
{
    wb_tk_session *s = open_in(kit, WB_MODE_NONE, AT_ONCE);
    if (s && send_and_collect(s, 1) && wb_tk_finish(s) && wb_tk_reopen(s))
        (void)wb_tk_expect_empty(s);
}

static int acknowledge_both(wb_kit *kit, wb_tk_session *s)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(kit, s->tk->ops->acknowledge(s->session, s->in_hand, 2, &error), &error, "acknowledge");
}

static void in_one_transaction(wb_kit *kit, int mode)
{
    wb_tk_setting in = { .kit = kit, .tk = wb_tk_of(kit), .mode = mode, .s = open_in(kit, mode, AT_ONCE) };
    if (!in.s || !send_and_collect(in.s, 1))
        return;
    if (!wb_tk_begin(&in) || !acknowledge_both(kit, in.s) || !wb_tk_roll_back(&in))
        return;
    if (wb_tk_begin(&in) && acknowledge_both(kit, in.s) && wb_tk_commit(&in) && wb_tk_reopen(in.s))
        (void)wb_tk_expect_empty(in.s);
}

WB_TK_IN_BOTH_MODES(in_one_transaction)

static void partitions_differ(wb_kit *kit)
{
    wb_tk_session *s = open_both(kit);
    if (!s || !send_and_collect(s, 1))
        return;
    const wb_incoming *one = s->in_hand[0], *other = s->in_hand[1];
    wb_kit_check(kit, one->partition_size != other->partition_size ||
                          memcmp(one->partition, other->partition, one->partition_size) != 0,
                 "messages of two queues are of one partition, \"%.*s\"", (int)one->partition_size, one->partition);
    (void)wb_tk_finish(s);
}

/* ---- fairness ---------------------------------------------------------------------------- */

/* As many as were taken are sent again. @return how many came, or SIZE_MAX: failed. */
static size_t take_and_fill(wb_tk_session *s, const char *full, int *ret_is_here)
{
    wb_kit *kit = &s->tk->kit;
    wb_error error = { 0 };
    int result = wb_tk_take(s, AT_ONCE, wb_tk_in(s->tk, WB_TK_QUIET), &error);
    const size_t count = s->count;
    *ret_is_here = count && wb_tk_number(s->in_hand[place_of(s, LONELY)]) == LONELY;
    if (!wb_tk_is_ok(kit, result, &error, "receive") || !wb_tk_finish(s))
        return SIZE_MAX;
    return !count || *ret_is_here || wb_tk_send_numbers(wb_tk_sender(kit), full, "k", 1, count) ? count : SIZE_MAX;
}

static void drain(wb_tk_session *s)
{
    wb_error error = { 0 };
    size_t count;
    do {
        int result = wb_tk_take(s, AT_ONCE, wb_tk_in(s->tk, WB_TK_QUIET), &error);
        count = s->count;
        if (!wb_tk_is_ok(&s->tk->kit, result, &error, "receive") || !wb_tk_finish(s))
            return;
    } while (count);
    (void)wb_tk_expect_empty(s);
}

static void is_not_starved(wb_kit *kit, int full, int lonely)
{
    const wb_tk *tk = wb_tk_of(kit);
    wb_tk_session *s = open_in(kit, tk->mode, READ_AHEAD), *sender = wb_tk_sender(kit);
    int64_t deadline = wb_tk_in(tk, tk->patience); /* of the next message */
    size_t taken = 0;
    int is_here = 0;
    for (int i = 0; i < 3; i++)
        if (!s || !sender || !wb_tk_send_numbers(sender, tk->queues[full], "k", 1, FULL / 3))
            return;
    if (!wb_tk_send_numbers(sender, tk->queues[lonely], "k", LONELY, 1))
        return;
    while (!is_here && taken < FULL_MAX && wb_clock_monotonic() < deadline) {
        const size_t count = take_and_fill(s, tk->queues[full], &is_here);
        if (count == SIZE_MAX)
            return;
        taken += count;
        deadline = count ? wb_tk_in(tk, tk->patience) : deadline;
    }
    wb_kit_check(kit, is_here, "%zu messages of a queue that is kept full came, and the one of another did not", taken);
    drain(s);
}

static void own_is_not_starved(wb_kit *kit)
{
    is_not_starved(kit, WB_TK_FURTHER, WB_TK_MAIN);
}

static void further_is_not_starved(wb_kit *kit)
{
    is_not_starved(kit, WB_TK_MAIN, WB_TK_FURTHER);
}

/* ---- depth, uninstall -------------------------------------------------------------------- */

/* A broker may count late. */
static int expect_depth(wb_kit *kit, const wb_tk_instance *instance, int is_installed, uint64_t messages)
{
    const int64_t end = wb_clock_monotonic() + instance->tk->patience;
    wb_transport_depth depth;
    wb_error error = { 0 };
    do {
        depth = (wb_transport_depth){ .struct_size = sizeof depth };
        if (!wb_tk_is_ok(kit, instance->tk->ops->depth(instance->transport, &depth, &error), &error, "depth"))
            return 0;
        if (depth.is_installed == is_installed && (!is_installed || depth.messages == messages))
            return 1;
        wb_clock_pause(POLL, NULL);
    } while (wb_clock_monotonic() < end);
    return wb_kit_check(kit, 0, "%" PRIu64 " messages wait, installed: %d; not %" PRIu64 ", %d", depth.messages,
                        depth.is_installed, messages, is_installed);
}

static int uninstall(wb_kit *kit, const wb_tk_instance *instance)
{
    wb_error error = { 0 };
    return wb_tk_is_ok(kit, instance->tk->ops->uninstall(instance->transport, WB_UNINSTALL_MESSAGES, &error), &error,
                       "uninstall");
}

static void counted_and_left(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE], other[WB_TK_OWN_SIZE + 2];
    const wb_tk *tk = wb_tk_of(kit);
    (void)snprintf(other, sizeof other, "%s.2", wb_tk_own_name(kit, name));
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_tk_instance *own = wb_tk_instance_named(kit, name, tk->mode), *alone = wb_tk_instance_named(kit, other, tk->mode);
    wb_tk_instance *both = make(kit, name, other, tk->mode);
    if (!sender || !own || !alone || !both || !install(kit, own) || !expect_depth(kit, both, 0, 0) || !install(kit, both) ||
        !expect_depth(kit, both, 1, 0) || !wb_tk_send_numbers(sender, name, "k", 1, 3) ||
        !wb_tk_send_numbers(sender, other, "k", 4, 2))
        return;
    if (expect_depth(kit, both, 1, 5) && uninstall(kit, both) && expect_depth(kit, both, 0, 0) && expect_depth(kit, own, 0, 0))
        (void)expect_depth(kit, alone, 1, 2);
    (void)uninstall(kit, alone);
}

const wb_kit_case wb_tk_queues_cases[] = {
    { "further queues: install() makes each, and verify() names the one that is missing", RO | WB_CAP_QUEUES,
      makes_and_verifies },
    { "further queues: messages of all come, and each is acknowledged alone", RO | WB_CAP_QUEUES, acknowledged_alone },
    { "further queues: what is given back comes again", RO | WB_CAP_QUEUES, given_back },
    { "further queues: after stop_receiving() what is in hand is settled", RO | WB_CAP_QUEUES, settled_after_stop },
    { "further queues: one that is kept full does not starve the endpoint's own", RO | WB_CAP_QUEUES, own_is_not_starved },
    { "further queues: the endpoint's own, kept full, does not starve another", RO | WB_CAP_QUEUES, further_is_not_starved },
    { "further queues: their partitions are others", RO | WB_CAP_QUEUES | WB_CAP_POSITION, partitions_differ },
    { "further queues: depth() counts all, and uninstall() leaves them", RO | WB_CAP_QUEUES | WB_CAP_UNINSTALL,
      counted_and_left },
    { "mode none: messages of further queues come once", WB_CAP_MODE_NONE | WB_CAP_QUEUES, gone_with_mode_none },
    { "sends_atomic_with_receive: messages of further queues in one transaction", WB_TK_ATOMIC | WB_CAP_QUEUES,
      in_one_transaction_atomic },
    { "transaction_scope: messages of further queues in one transaction", WB_TK_SCOPE | WB_CAP_QUEUES,
      in_one_transaction_scope },
};
WB_TK_CASES(queues);

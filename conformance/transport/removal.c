/* SPDX-License-Identifier: Apache-2.0
 *
 * What is undone: what waits is counted, a queue removed, a subscription ended. Queues are the case's own.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "conformance/transport/steps.h"

#define RO WB_CAP_MODE_RECEIVE_ONLY
#define POLL (20 * WB_MILLISECOND)

/* Installed, of a name that no other case has. NULL: it was noted. */
static wb_tk_instance *install_own(wb_kit *kit, char name[WB_TK_OWN_SIZE])
{
    const wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_instance *instance = wb_tk_instance_named(kit, wb_tk_own_name(kit, name), tk->mode);
    if (!instance)
        return NULL;
    int result = tk->ops->install(instance->transport, &error);
    return wb_tk_is_ok(kit, result, &error, "install") ? instance : NULL;
}

static int look(wb_kit *kit, const wb_tk_instance *instance, wb_transport_depth *ret_depth)
{
    wb_error error = { 0 };
    *ret_depth = (wb_transport_depth){ .struct_size = sizeof *ret_depth };
    return wb_tk_is_ok(kit, instance->tk->ops->depth(instance->transport, ret_depth, &error), &error, "depth");
}

/* A broker may count late. */
static int expect_depth(wb_kit *kit, const wb_tk_instance *instance, uint64_t messages)
{
    const int64_t end = wb_clock_monotonic() + instance->tk->patience;
    wb_transport_depth depth;
    do {
        if (!look(kit, instance, &depth))
            return 0;
        if (depth.is_installed == 1 && depth.messages == messages && !depth.readers)
            return 1;
        wb_clock_pause(POLL, NULL);
    } while (wb_clock_monotonic() < end);
    return wb_kit_check(kit, 0, "%" PRIu64 " messages wait, %" PRIu32 " sessions receive, installed: %d; not %" PRIu64
                                " messages and no session", depth.messages, depth.readers, depth.is_installed, messages);
}

static int uninstall(wb_kit *kit, const wb_tk_instance *instance, uint32_t flags, int wanted)
{
    wb_error error = { 0 };
    int result = instance->tk->ops->uninstall(instance->transport, flags, &error);
    return wb_kit_check(kit, result == wanted && (result == WB_OK || error.text[0]), "uninstall: %s, not %s: %s",
                        wb_result_name(result), wb_result_name(wanted), error.text);
}

static void depth_counts(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk_instance *instance = install_own(kit, name);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!instance || !sender || !expect_depth(kit, instance, 0) || !wb_tk_send_numbers(sender, name, "k", 1, 3) ||
        !expect_depth(kit, instance, 3))
        return;
    wb_tk_session *s = wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10);
    if (!s || !wb_tk_collect(s, 3) || !wb_tk_acknowledge(s, 0, 2) || !wb_tk_give_back(s, 0, 1))
        return;
    wb_tk_close(s); /* what was given back is one message still */
    (void)expect_depth(kit, instance, 1);
    (void)uninstall(kit, instance, WB_UNINSTALL_MESSAGES, WB_OK);
}

/* Names of 180 bytes that differ in the last one, as those of two stages of one service may. */
static void long_names(wb_kit *kit)
{
    enum { SIZE = 180 };
    const wb_tk *tk = wb_tk_of(kit);
    char names[2][SIZE + 1];
    wb_tk_instance *instances[2];
    wb_tk_session *sender = wb_tk_sender(kit);
    for (size_t i = 0; i < 2; i++) {
        int size = snprintf(names[i], sizeof names[i], "%.100s.%s.%zu.", tk->queues[WB_TK_MAIN], tk->token, kit->number);
        memset(names[i] + size, 'n', (size_t)(SIZE - size));
        names[i][SIZE - 1] = (char)('a' + i);
        names[i][SIZE] = '\0';
        instances[i] = wb_tk_instance_if_taken(kit, names[i], tk->mode);
        if (!instances[i])
            return;
    }
    if (sender && wb_tk_send_numbers(sender, names[0], "k", 1, 2) && wb_tk_send_numbers(sender, names[1], "k", 3, 1) &&
        expect_depth(kit, instances[0], 2) && expect_depth(kit, instances[1], 1) &&
        uninstall(kit, instances[0], WB_UNINSTALL_MESSAGES, WB_OK))
        (void)expect_depth(kit, instances[1], 1);
    for (size_t i = 0; i < 2; i++)
        (void)uninstall(kit, instances[i], WB_UNINSTALL_MESSAGES, WB_OK);
}

/* Whatever it is told; where it is known who receives. */
static int refuses_with_readers(wb_kit *kit, const wb_tk_instance *instance)
{
    wb_transport_depth depth;
    if (!look(kit, instance, &depth))
        return 0;
    return !depth.readers || uninstall(kit, instance, WB_UNINSTALL_MESSAGES, WB_REJECT);
}

static void refuses_with_messages(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk_instance *instance = install_own(kit, name);
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!instance || !sender || !wb_tk_send_numbers(sender, name, "k", 1, 2) || !expect_depth(kit, instance, 2) ||
        !uninstall(kit, instance, 0, WB_REJECT))
        return;
    wb_tk_session *s = wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10);
    if (!s || !wb_tk_collect(s, 2) || !wb_tk_expect_numbers(s, 0, 1, 2) || !refuses_with_readers(kit, instance) ||
        !wb_tk_finish(s))
        return;
    wb_tk_close(s);
    if (expect_depth(kit, instance, 0))
        (void)uninstall(kit, instance, 0, WB_OK);
}

static void expect_gone(wb_kit *kit, const wb_tk_instance *instance)
{
    wb_transport_depth depth;
    wb_error error = { 0 };
    const int64_t end = wb_clock_monotonic() + instance->tk->patience;
    int result;
    do /* a broker may forget late */
        result = instance->tk->ops->verify(instance->transport, &error);
    while (result == WB_OK && wb_clock_monotonic() < end);
    wb_kit_check(kit, result != WB_OK && error.cause == WB_CAUSE_MISSING, "verify: %s, cause %d: %s", wb_result_name(result),
                 error.cause, error.text);
    if (look(kit, instance, &depth))
        wb_kit_check(kit, !depth.is_installed && !depth.messages, "%" PRIu64 " messages wait in what is gone", depth.messages);
}

/* What others have stays: the queue of the other cases, and the error queue that both name. */
static void removes_its_own(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_instance *instance = install_own(kit, name);
    wb_tk_session *sender = wb_tk_sender(kit), *others = wb_tk_receiver(kit);
    if (!instance || !sender || !others)
        return;
    for (int i = 0; i < 2; i++)
        if (!uninstall(kit, instance, 0, WB_OK))
            return;
    expect_gone(kit, instance);
    if (wb_tk_send_numbers(sender, tk->queues[WB_TK_ERROR], "k", 1, 1) &&
        wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 2, 1) && wb_tk_collect(others, 1))
        (void)wb_tk_finish(others);
}

static void takes_what_waits_along(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk_instance *instance = install_own(kit, name);
    wb_tk_session *sender = wb_tk_sender(kit);
    wb_error error = { 0 };
    if (!instance || !sender || !wb_tk_send_numbers(sender, name, "k", 1, 2) ||
        !uninstall(kit, instance, WB_UNINSTALL_MESSAGES, WB_OK))
        return;
    expect_gone(kit, instance);
    int result = instance->tk->ops->install(instance->transport, &error);
    if (wb_tk_is_ok(kit, result, &error, "install again") && expect_depth(kit, instance, 0))
        (void)uninstall(kit, instance, 0, WB_OK);
}

/* ---- subscriptions ------------------------------------------------------------------------ */

static int publish(wb_kit *kit, size_t number)
{
    wb_tk_letter letter;
    wb_tk_session *sender = wb_tk_sender(kit);
    if (!sender)
        return 0;
    wb_tk_write(kit, &letter, wb_tk_of(kit)->event, "k", number);
    letter.operation.kind = WB_OPERATION_PUBLISH;
    letter.operation.flags = 0;
    return wb_tk_send_letter(sender, &letter);
}

static void ends_one_subscription(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    const char *const types[] = { tk->event, tk->unheard }; /* the second it never had */
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    wb_tk_session *other = wb_tk_open(kit, WB_TK_OTHER, tk->mode, 10), *s = wb_tk_receiver(kit);
    if (!instance || !other || !s)
        return;
    for (int i = 0; i < 2; i++)
        wb_tk_is_ok(kit, tk->ops->unsubscribe(instance->transport, types, 2, &error), &error, "unsubscribe");
    if (publish(kit, 1) && wb_tk_collect(other, 1))
        (void)wb_tk_finish(other);
    (void)wb_tk_expect_empty(s);
    int result = tk->ops->install(instance->transport, &error);
    if (wb_tk_is_ok(kit, result, &error, "install again") && publish(kit, 2) && wb_tk_collect(s, 1) && wb_tk_collect(other, 1)) {
        (void)wb_tk_finish(s);
        (void)wb_tk_finish(other);
    }
}

static void with_types(wb_endpoint_info *info)
{
    info->type_count = 1;
}

/* An endpoint that is no more: nobody who publishes hears of it, and the others get their events. */
static void a_subscriber_is_gone(wb_kit *kit)
{
    char name[WB_TK_OWN_SIZE];
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_instance *instance = wb_tk_instance_as(kit, wb_tk_own_name(kit, name), tk->mode, with_types);
    wb_tk_session *s = wb_tk_receiver(kit);
    if (!instance || !s || !wb_tk_is_ok(kit, tk->ops->install(instance->transport, &error), &error, "install") ||
        !publish(kit, 1) || !uninstall(kit, instance, WB_UNINSTALL_MESSAGES, WB_OK))
        return;
    for (size_t i = 2; i < 4; i++)
        if (!publish(kit, i))
            return;
    if (wb_tk_collect(s, 3) && wb_tk_expect_numbers(s, 0, 1, 3) && wb_tk_finish(s))
        expect_gone(kit, instance);
}

/* The other cases need it, whatever became of it. */
static void install_again(const wb_tk_instance *instance, wb_tk_session *s)
{
    wb_error error = { 0 };
    (void)instance->tk->ops->install(instance->transport, &error);
    (void)wb_tk_reopen(s);
}

/* Of an endpoint that is to live on: because a message waits, or because somebody receives. */
static void refusal_ends_nothing(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    wb_tk_session *sender = wb_tk_sender(kit), *s = wb_tk_receiver(kit);
    if (!instance || !sender || !s || !wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 1, 1) || !wb_tk_collect(s, 1))
        return;
    if (!uninstall(kit, instance, 0, WB_REJECT)) {
        install_again(instance, s);
        return;
    }
    if (wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 2, 1) && wb_tk_collect(s, 1) && publish(kit, 3) &&
        wb_tk_collect(s, 1))
        (void)wb_tk_finish(s);
}

typedef struct counted {
    const char *type;
    unsigned times;
} counted;

static int count_type(void *argument, const char *type)
{
    counted *c = argument;
    c->times += strcmp(type, c->type) == 0;
    return WB_OK;
}

static void expect_listed(wb_kit *kit, const wb_tk_instance *instance, unsigned times)
{
    const wb_tk *tk = wb_tk_of(kit);
    counted c = { tk->event, 0 };
    wb_error error = { 0 };
    if (wb_tk_is_ok(kit, tk->ops->subscriptions(instance->transport, count_type, &c, &error), &error, "subscriptions"))
        wb_kit_check(kit, c.times == times, "the subscription is listed %u times, not %u", c.times, times);
}

static void lists_subscriptions(wb_kit *kit)
{
    const wb_tk *tk = wb_tk_of(kit);
    const char *const types[] = { tk->event };
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, subscriptions))
        return;
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    if (!instance)
        return;
    expect_listed(kit, instance, 1);
    wb_tk_is_ok(kit, tk->ops->unsubscribe(instance->transport, types, 1, &error), &error, "unsubscribe");
    expect_listed(kit, instance, 0);
    wb_tk_is_ok(kit, tk->ops->install(instance->transport, &error), &error, "install again");
    expect_listed(kit, instance, 1);
}

const wb_kit_case wb_tk_removal_cases[] = {
    { "depth() counts what waits, and nothing else", RO | WB_CAP_UNINSTALL, depth_counts },
    { "long names that differ in their last byte are two queues", RO | WB_CAP_UNINSTALL, long_names },
    { "uninstall() refuses while messages wait or somebody receives, and they stay", RO | WB_CAP_UNINSTALL, refuses_with_messages },
    { "uninstall() removes the endpoint's queue, twice, and nobody else's", RO | WB_CAP_UNINSTALL, removes_its_own },
    { "uninstall() removes what waits when it is told to", RO | WB_CAP_UNINSTALL, takes_what_waits_along },
    { "an event whose subscriber is gone reaches the others", RO | WB_CAP_PUBLISH | WB_CAP_UNINSTALL, a_subscriber_is_gone },
    { "uninstall() that refuses leaves what leads to the queue", RO | WB_CAP_PUBLISH | WB_CAP_UNINSTALL, refusal_ends_nothing },
    { "unsubscribe() ends one subscription, and install() makes it again", RO | WB_CAP_PUBLISH | WB_CAP_UNSUBSCRIBE,
      ends_one_subscription },
    { "subscriptions() lists what install() subscribed to", WB_CAP_PUBLISH | WB_CAP_UNSUBSCRIBE, lists_subscriptions },
};
WB_TK_CASES(removal);

/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits: what the broker does to messages that come again and again, and what becomes of
 * messages with more headers or a larger body than the endpoint takes.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/findings.h"
#include "conformance/transport/same.h"
#include "core/base/arena.h"

/* ---- the broker's ---------------------------------------------------------------------- */

#define DELIVERIES_MAX 25

/* As the host does: without limits() nothing is ever dropped. */
static int ask(wb_tk_instance *instance, wb_transport_limits *ret_limits)
{
    wb_error error = { 0 };
    *ret_limits = (wb_transport_limits){ .struct_size = sizeof *ret_limits };
    if (!WB_HAS(instance->tk->ops, wb_transport_ops, limits))
        return 1;
    int result = instance->tk->ops->limits(instance->transport, ret_limits, &error);
    return wb_tk_is_ok(&instance->tk->kit, result, &error, "limits") &&
           wb_kit_check(&instance->tk->kit, ret_limits->struct_size == sizeof *ret_limits,
                        "limits has changed the size of the host's table");
}

/* A host that knows of no flags. */
static int keeps_to_an_older_table(wb_tk_instance *instance)
{
    wb_error error = { 0 };
    wb_transport_limits limits = { .struct_size = offsetof(wb_transport_limits, flags), .flags = UINT32_MAX };
    if (!WB_HAS(instance->tk->ops, wb_transport_ops, limits))
        return 1;
    int result = instance->tk->ops->limits(instance->transport, &limits, &error);
    return wb_tk_is_ok(&instance->tk->kit, result, &error, "limits") &&
           wb_kit_check(&instance->tk->kit, limits.flags == UINT32_MAX,
                        "limits wrote behind the table of an older host: struct_size says how long it is");
}

/* When the host asks: after verify(). */
static wb_tk_instance *make_verified(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    wb_error error = { 0 };
    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    return instance && wb_tk_is_ok(kit, tk->ops->verify(instance->transport, &error), &error,
                                   "verify")
               ? instance
               : NULL;
}

static void says_the_same_twice(wb_kit *kit)
{
    wb_transport_limits first, second;
    wb_tk_instance *instance = make_verified(kit);
    if (!instance || !keeps_to_an_older_table(instance) || !ask(instance, &first))
        return;
    wb_tk_session *s = wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, 1);
    if (!s || !ask(instance, &second)) /* beside a session, too */
        return;
    wb_kit_check(kit, first.delivery_limit == second.delivery_limit,
                 "a delivery limit of %u, then of %u", first.delivery_limit,
                 second.delivery_limit);
    wb_kit_check(kit, first.flags == second.flags && !(first.flags & ~WB_LIMITS_RETURNS_FIRST),
                 "flags of %u, then of %u", first.flags, second.flags);
    wb_kit_check(kit, first.delivery_limit == 0 || first.delivery_limit == WB_LIMIT_UNKNOWN ||
                          (kit->plugin->capabilities & WB_CAP_DELIVERY_COUNT),
                 "a delivery limit of %u, and no WB_CAP_DELIVERY_COUNT: the host cannot see it come near",
                 first.delivery_limit);
    if (first.delivery_limit == WB_LIMIT_UNKNOWN)
        wb_kit_note(kit, "the delivery limit is not known");
    else
        wb_kit_note(kit, "the delivery limit is %u (0: none)", first.delivery_limit);
}

int wb_tk_returns_first(wb_kit *kit)
{
    wb_transport_limits limits;
    wb_tk_instance *instance = make_verified(kit);
    return instance && ask(instance, &limits) && limits.flags & WB_LIMITS_RETURNS_FIRST;
}

static void delivers_as_often_as_it_says(wb_kit *kit)
{
    wb_transport_limits limits;
    wb_tk_instance *instance = make_verified(kit);
    if (!instance || !ask(instance, &limits))
        return;
    if (limits.delivery_limit == WB_LIMIT_UNKNOWN) {
        wb_kit_skip(kit, "nobody can say how often a message is delivered");
        return;
    }
    uint32_t times = limits.delivery_limit;
    if (times == 0 || times > DELIVERIES_MAX)
        times = DELIVERIES_MAX;
    wb_tk_session *s = wb_tk_open_for(instance, WB_SESSION_RECEIVE, 1);
    if (!s || !wb_tk_sender(kit) ||
        !wb_tk_send_numbers(wb_tk_sender(kit), instance->info.name, "k", 1, 1) ||
        !wb_tk_collect(s, 1))
        return;
    for (uint32_t i = 0; i < times; i++)
        if (!wb_tk_give_back(s, 0, 1) || !wb_tk_collect(s, 1))
            return;
    wb_tk_finish(s);
}

/* ---- headers --------------------------------------------------------------------------- */

#define FEW 20
#define LITTLE 4096
#define MANY 400

typedef struct pack {
    wb_tk_letter letter;
    char names[MANY][32];
    char value[1024];
    wb_header headers[MANY + 2];
} pack;

/* `count` headers beside the letter's own two, with values of that size. */
static pack *make_pack(wb_kit *kit, size_t number, size_t count, size_t value_size)
{
    pack *made = wb_alloc_zero(1, sizeof *made);
    wb_kit_defer(kit, free, made);
    wb_tk_write(kit, &made->letter, wb_tk_of(kit)->queues[WB_TK_MAIN], "k", number);
    memset(made->value, 'v', sizeof made->value);
    memcpy(made->headers, made->letter.headers, sizeof made->letter.headers);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(made->names[i], sizeof made->names[i], "header-%03zu", i);
        made->headers[i + 2] = (wb_header){ .name = made->names[i],
                                            .value = made->value,
                                            .name_size = strlen(made->names[i]),
                                            .value_size = value_size };
    }
    made->letter.operation.headers = made->headers;
    made->letter.operation.header_count = count + 2;
    return made;
}

/* Whether a number near `count` is in the text: a broker's properties are counted as well. */
static int says_how_many(const char *text, size_t count)
{
    while (text && *text) {
        size_t digits = strspn(text, "0123456789");
        unsigned long number = digits ? strtoul(text, NULL, 10) : 0;
        if (number >= count && number <= count + 8)
            return 1;
        text += digits ? digits : 1;
    }
    return 0;
}

static size_t size_of_headers(const wb_incoming *got)
{
    size_t size = 0;
    for (size_t i = 0; i < got->header_count; i++)
        size += got->headers[i].name_size + got->headers[i].value_size;
    return size;
}

/* @return how many of the headers sent came: the first, where they have an order. */
static size_t expect_first_headers(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    size_t next = 0;
    if (!(kit->plugin->capabilities & WB_CAP_HEADER_ORDER))
        return wb_tk_expect_only_sent(kit, got, sent);
    for (size_t i = 0; i < got->header_count; i++)
        if (next < sent->header_count &&
            wb_tk_is_same_header(&got->headers[i], &sent->headers[next]))
            next++;
        else
            wb_kit_check(kit, wb_tk_stands_for_a_property(&got->headers[i], sent),
                         "header \"%.40s\" came and is none of the first", got->headers[i].name);
    return next;
}

static void expect_cut(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    wb_tk_expect_string(kit, "the id", got->id, got->id_size, sent->id, sent->id_size);
    wb_tk_expect_bytes(kit, "the body", got->body, got->body_size, sent->body, sent->body_size);
    if (wb_kit_check(kit, got->problem && got->problem[0], "%zu headers came without a problem",
                     got->header_count))
        wb_kit_check(kit, says_how_many(got->problem, sent->header_count),
                     "the problem does not say that there were %zu headers: %s",
                     sent->header_count, got->problem);
}

/* A cut message between two whole ones, and once more after it was given back. */
static void send_between(wb_kit *kit, void (*change)(wb_endpoint_info *info), pack *large,
                         void (*check)(wb_kit *kit, const wb_incoming *got,
                                       const wb_operation *sent))
{
    wb_tk *tk = wb_tk_of(kit);
    pack *good[] = { make_pack(kit, 1, 10, 10), make_pack(kit, 3, 10, 10) };
    wb_operation *operations[] = { &good[0]->letter.operation, &large->letter.operation,
                                   &good[1]->letter.operation };
    wb_tk_instance *instance = wb_tk_instance_changed(kit, WB_TK_MAIN, tk->mode, change);
    wb_tk_session *s = instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10) : NULL;
    if (!s || !wb_tk_sender(kit) || !wb_tk_send(wb_tk_sender(kit), operations, 3) ||
        !wb_tk_collect(s, 3))
        return;
    wb_tk_expect_same(kit, s->in_hand[0], operations[0]);
    check(kit, s->in_hand[1], operations[1]);
    wb_tk_expect_same(kit, s->in_hand[2], operations[2]);
    if (!wb_tk_acknowledge(s, 2, 1) || !wb_tk_acknowledge(s, 0, 1) || !wb_tk_give_back(s, 0, 1) ||
        !wb_tk_collect(s, 1))
        return;
    expect_cut(kit, s->in_hand[0], operations[1]);
    if (wb_tk_finish(s))
        wb_tk_expect_empty(s);
}

static void few_headers(wb_endpoint_info *info)
{
    info->headers_max = FEW;
}

static void check_few(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    expect_cut(kit, got, sent);
    wb_kit_check(kit, got->header_count <= FEW, "%zu headers came, at most %d are taken",
                 got->header_count, FEW);
    size_t kept = expect_first_headers(kit, got, sent);
    wb_kit_check(kit, kept + 6 >= FEW, "only the first %zu headers came", kept);
}

static void too_many_headers(wb_kit *kit)
{
    send_between(kit, few_headers, make_pack(kit, 2, MANY, 10), check_few);
}

static void little_room(wb_endpoint_info *info)
{
    info->headers_size_max = LITTLE;
}

static void check_little(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    expect_cut(kit, got, sent);
    wb_kit_check(kit, size_of_headers(got) <= LITTLE,
                 "headers of %zu bytes came, at most %d are taken", size_of_headers(got), LITTLE);
    wb_kit_check(kit, size_of_headers(got) >= LITTLE / 2, "only headers of %zu bytes came",
                 size_of_headers(got));
    expect_first_headers(kit, got, sent);
}

static void too_large_headers(wb_kit *kit)
{
    send_between(kit, little_room, make_pack(kit, 2, 100, 100), check_little);
}

/* What an older host does not know of has no limit: the fields beyond its table say nothing. */
static void older_host(wb_endpoint_info *info)
{
    info->struct_size = offsetof(wb_endpoint_info, headers_max);
    info->headers_max = 1;
    info->headers_size_max = 1;
}

static void no_limits(wb_endpoint_info *info)
{
    info->headers_max = 0;
    info->headers_size_max = 0;
}

static void headers_without_limits(wb_kit *kit)
{
    static void (*const changes[])(wb_endpoint_info *) = { older_host, no_limits };
    wb_tk *tk = wb_tk_of(kit);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        pack *large = make_pack(kit, 1, MANY, 10);
        wb_tk_instance *instance = wb_tk_instance_changed(kit, WB_TK_MAIN, tk->mode, changes[i]);
        wb_tk_session *s = instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10) : NULL;
        if (!s || !wb_tk_sender(kit) || !wb_tk_send_letter(wb_tk_sender(kit), &large->letter) ||
            !wb_tk_collect(s, 1))
            return;
        wb_tk_expect_same(kit, s->in_hand[0], &large->letter.operation);
        if (!wb_tk_finish(s))
            return;
        wb_tk_close(s);
    }
}

/* 100 KiB and 200 KiB together: more than counters of 16 bits and frames of brokers hold. */
static void large_headers_without_limits(wb_kit *kit)
{
    static const size_t counts[] = { 100, 200 };
    wb_tk_instance *instance =
        wb_tk_instance_changed(kit, WB_TK_MAIN, wb_tk_of(kit)->mode, no_limits);
    wb_tk_session *s =
        instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE | WB_SESSION_SEND, 10) : NULL;
    for (size_t i = 0; s && i < sizeof counts / sizeof *counts; i++) {
        pack *large = make_pack(kit, i, counts[i], sizeof large->value);
        if (!wb_tk_send_large(s, &large->letter, "headers", counts[i] * sizeof large->value))
            continue;
        if (!wb_tk_collect(s, 1))
            return;
        wb_tk_expect_same(kit, s->in_hand[0], &large->letter.operation);
        if (!wb_tk_finish(s))
            return;
    }
}

/* ---- bodies ---------------------------------------------------------------------------- */

static void small_bodies(wb_endpoint_info *info)
{
    info->body_max = 1000;
}

/* Whole, so that it can be moved to the error queue as it is. A reason may come with it. */
static void bodies_over_body_max(wb_kit *kit)
{
    static const size_t sizes[] = { 1000, 1001, WB_TK_BODY_SURE, 1 };
    enum { COUNT = sizeof sizes / sizeof *sizes };
    wb_tk *tk = wb_tk_of(kit);
    wb_tk_letter letters[COUNT];
    wb_operation *operations[COUNT];
    unsigned char *body = wb_alloc(WB_TK_BODY_SURE);
    wb_kit_defer(kit, free, body);
    for (size_t i = 0; i < WB_TK_BODY_SURE; i++)
        body[i] = (unsigned char)(i + (i >> 8) * 7);
    for (size_t i = 0; i < COUNT; i++) {
        wb_tk_write(kit, &letters[i], tk->queues[WB_TK_MAIN], "k", i);
        letters[i].operation.body = body;
        letters[i].operation.body_size = sizes[i];
        operations[i] = &letters[i].operation;
    }
    wb_tk_instance *instance = wb_tk_instance_changed(kit, WB_TK_MAIN, tk->mode, small_bodies);
    wb_tk_session *s = instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, 1) : NULL;
    if (!s || !wb_tk_sender(kit) || !wb_tk_send(wb_tk_sender(kit), operations, COUNT))
        return;
    for (size_t i = 0; i < COUNT && wb_tk_collect(s, 1); i++) {
        const wb_incoming *got = s->in_hand[0];
        wb_tk_expect_bytes(kit, "the body", got->body, got->body_size, body, sizes[i]);
        wb_tk_expect_string(kit, "the id", got->id, got->id_size, letters[i].id, strlen(letters[i].id));
        wb_kit_check(kit, !got->problem || sizes[i] > 1000, "it came with a problem: %s",
                     got->problem ? got->problem : "");
        if (!wb_tk_finish(s))
            return;
    }
}

/* ---- what would bite ------------------------------------------------------------------- */

static int examine(wb_kit *kit, const wb_tk_instance *instance)
{
    const wb_examination asked = wb_kit_examination(kit);
    wb_error error = { 0 };
    return wb_tk_is_ok(kit, instance->tk->ops->examine(instance->transport, &asked, &error), &error, "examine");
}

/* Where nothing was installed, and beside a session whose messages wait. */
static void findings_are_whole(wb_kit *kit)
{
    wb_tk *tk = wb_tk_of(kit);
    char name[WB_TK_OWN_SIZE];
    wb_error error = { 0 };
    if (WB_TK_LACKS(kit, examine))
        return;
    wb_tk_instance *nobody = wb_tk_instance_named(kit, wb_tk_own_name(kit, name), tk->mode);
    if (!nobody || !examine(kit, nobody))
        return;
    const int result = tk->ops->verify(nobody->transport, &error);
    WB_KIT_REQUIRE(kit, result != WB_OK && error.cause == WB_CAUSE_MISSING, "after examine() verify() finds what was not installed");

    wb_tk_instance *instance = wb_tk_instance_make(kit, WB_TK_MAIN, tk->mode);
    wb_tk_session *s = instance ? wb_tk_open_for(instance, WB_SESSION_RECEIVE, 10) : NULL;
    wb_tk_session *sender = wb_tk_sender(kit);
    if (s && sender && wb_tk_send_numbers(sender, tk->queues[WB_TK_MAIN], "k", 1, 3) && examine(kit, instance) &&
        wb_tk_collect(s, 3))
        (void)wb_tk_finish(s);
}

#define RO WB_CAP_MODE_RECEIVE_ONLY

const wb_kit_case wb_tk_limits_cases[] = {
    { "limits() says the same twice", 0, says_the_same_twice },
    { "a message is delivered as often as limits() says", RO, delivers_as_often_as_it_says },
    { "of more headers than the endpoint takes the first come, and a problem", RO,
      too_many_headers },
    { "of larger headers than the endpoint takes the first come, and a problem", RO,
      too_large_headers },
    { "without limits on headers all come", RO, headers_without_limits },
    { "headers of more than 64 KiB together come whole, or are refused", RO,
      large_headers_without_limits },
    { "a body over the endpoint's limit comes whole", RO, bodies_over_body_max },
    { "examine() tells findings in full, and changes nothing", RO, findings_are_whole },
};
WB_TK_CASES(limits);

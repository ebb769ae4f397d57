/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/transport/same.h"

#include <string.h>

int wb_tk_expect_bytes(wb_kit *kit, const char *what, const void *got, size_t got_size,
                       const void *sent, size_t sent_size)
{
    return wb_kit_check(kit, got_size == sent_size, "%s of %zu bytes, %zu were sent", what,
                        got_size, sent_size) &&
           wb_kit_check(kit, sent_size == 0 || memcmp(got, sent, sent_size) == 0,
                        "%s has other bytes than were sent", what);
}

void wb_tk_expect_string(wb_kit *kit, const char *what, const char *got, size_t got_size,
                         const char *sent, size_t sent_size)
{
    if (wb_tk_expect_bytes(kit, what, got, got_size, sent, sent_size) && got)
        wb_kit_check(kit, got[got_size] == '\0', "%s is not followed by a NUL byte", what);
}

int wb_tk_stands_for_a_property(const wb_header *header, const wb_operation *sent)
{
    static const char *const names[] = { "NServiceBus.ContentType", "NServiceBus.ReplyToAddress",
                                         "NServiceBus.CorrelationId",
                                         "NServiceBus.EnclosedMessageTypes" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(header->name, names[i]) == 0)
            return 1;
    return strcmp(header->name, "NServiceBus.MessageId") == 0 &&
           header->value_size == sent->id_size &&
           memcmp(header->value, sent->id, sent->id_size) == 0;
}

int wb_tk_is_same_header(const wb_header *a, const wb_header *b)
{
    return strcmp(a->name, b->name) == 0 && a->value_size == b->value_size &&
           memcmp(a->value, b->value, a->value_size) == 0;
}

static void expect_headers_in_order(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    size_t at = 0;
    char what[96];
    for (size_t i = 0; i < sent->header_count; i++, at++) {
        const wb_header *wanted = &sent->headers[i];
        WB_KIT_REQUIRE(kit, at < got->header_count, "%zu headers, %zu were sent",
                       got->header_count, sent->header_count);
        (void)snprintf(what, sizeof what, "the name of header %zu", i + 1);
        wb_tk_expect_string(kit, what, got->headers[at].name, got->headers[at].name_size,
                            wanted->name, wanted->name_size);
        (void)snprintf(what, sizeof what, "the value of header %zu, \"%.40s\",", i + 1,
                       wanted->name);
        wb_tk_expect_string(kit, what, got->headers[at].value, got->headers[at].value_size,
                            wanted->value, wanted->value_size);
    }
    for (; at < got->header_count; at++)
        wb_kit_check(kit, wb_tk_stands_for_a_property(&got->headers[at], sent),
                     "header \"%.80s\" came and was not sent", got->headers[at].name);
}

static size_t count_same(const wb_header *headers, size_t count, const wb_header *like)
{
    size_t same = 0;
    for (size_t i = 0; i < count; i++)
        same += wb_tk_is_same_header(&headers[i], like);
    return same;
}

static size_t count_name(const wb_incoming *got, const char *name)
{
    size_t same = 0;
    for (size_t i = 0; i < got->header_count; i++)
        same += strcmp(got->headers[i].name, name) == 0;
    return same;
}

size_t wb_tk_expect_only_sent(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    size_t kept = 0;
    for (size_t i = 0; i < got->header_count; i++) {
        const wb_header *came = &got->headers[i];
        size_t allowed = count_same(sent->headers, sent->header_count, came);
        kept += allowed > 0;
        wb_kit_check(kit, came->value[came->value_size] == '\0',
                     "the value of \"%.80s\" is not followed by a NUL byte", came->name);
        if (allowed || !wb_tk_stands_for_a_property(came, sent))
            wb_kit_check(kit, count_same(got->headers, got->header_count, came) <= allowed,
                         "header \"%.80s\" came with a value that was not sent, or more often",
                         came->name);
    }
    return kept;
}

static void expect_header_set(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    for (size_t i = 0; i < sent->header_count; i++)
        wb_kit_check(kit, count_name(got, sent->headers[i].name) > 0,
                     "header \"%.40s\" is missing", sent->headers[i].name);
    wb_tk_expect_only_sent(kit, got, sent);
}

static void expect_headers(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    if (kit->plugin->capabilities & WB_CAP_HEADER_ORDER)
        expect_headers_in_order(kit, got, sent);
    else
        expect_header_set(kit, got, sent);
}

/* The n-th header of a name is the n-th that was sent. */
static const wb_header *find_header(const wb_incoming *got, const char *name, size_t skip)
{
    for (size_t i = 0; i < got->header_count; i++)
        if (strcmp(got->headers[i].name, name) == 0 && skip-- == 0)
            return &got->headers[i];
    return NULL;
}

static void expect_headers_by_name(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    for (size_t i = 0; i < sent->header_count; i++) {
        const wb_header *wanted = &sent->headers[i];
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += strcmp(sent->headers[k].name, wanted->name) == 0;
        const wb_header *found = find_header(got, wanted->name, before);
        if (wb_kit_check(kit, found != NULL, "header \"%.40s\" is missing", wanted->name))
            wb_tk_expect_string(kit, wanted->name, found->value, found->value_size, wanted->value,
                                wanted->value_size);
    }
}

void wb_tk_expect_headers_again(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    if (kit->plugin->capabilities & WB_CAP_HEADER_ORDER)
        expect_headers_by_name(kit, got, sent);
    else
        expect_header_set(kit, got, sent);
}

void wb_tk_expect_same(wb_kit *kit, const wb_incoming *got, const wb_operation *sent)
{
    wb_kit_check(kit, sent->id_size || !got->id, "an id came, none was sent");
    wb_tk_expect_string(kit, "the id", got->id, got->id_size, sent->id, sent->id_size);
    expect_headers(kit, got, sent);
    wb_tk_expect_bytes(kit, "the body", got->body, got->body_size, sent->body, sent->body_size);
    wb_kit_check(kit, got->problem == NULL, "it came with a problem: %s",
                 got->problem ? got->problem : "");
    wb_kit_check(kit, got->delivery_count == 0, "a first delivery with a count of %u",
                 got->delivery_count);
    /* the key is a hint: it may stay behind, it may not change */
    if (got->key && got->key_size)
        wb_tk_expect_string(kit, "the key", got->key, got->key_size, sent->key, sent->key_size);
}

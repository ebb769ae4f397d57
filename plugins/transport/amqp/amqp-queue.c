/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_TYPE "x-queue-type"
#define DELIVERY_LIMIT "x-delivery-limit"
#define DEAD_LETTER_EXCHANGE "x-dead-letter-exchange"
/* Of a quorum queue that says nothing, from RabbitMQ 4.0 on. */
#define LIMIT_BY_DEFAULT 20

/* ---- the broker ------------------------------------------------------------------ */

static amqp_bytes_t property(const amqp_table_t *properties, const char *name)
{
    for (int i = 0; i < properties->num_entries; i++) {
        const amqp_table_entry_t *entry = &properties->entries[i];
        if (entry->key.len == strlen(name) && memcmp(entry->key.bytes, name, entry->key.len) == 0 &&
            entry->value.kind == AMQP_FIELD_KIND_UTF8)
            return entry->value.value.bytes;
    }
    return amqp_empty_bytes;
}

int wb_amqp_major_of(const amqp_table_t *properties)
{
    static const char rabbit[] = "RabbitMQ";
    amqp_bytes_t product = property(properties, "product");
    amqp_bytes_t version = property(properties, "version");
    const char *digits = version.bytes;
    int major = 0;
    if (product.len != sizeof rabbit - 1 || memcmp(product.bytes, rabbit, product.len) != 0)
        return 0;
    for (size_t i = 0; i < version.len && i < 4 && digits[i] >= '0' && digits[i] <= '9'; i++)
        major = major * 10 + (digits[i] - '0');
    return major;
}

int wb_amqp_broker_major(const wb_amqp_connection *connection)
{
    const amqp_table_t *properties = amqp_get_server_properties(connection->state);
    return properties ? wb_amqp_major_of(properties) : 0;
}

/* ---- limits ---------------------------------------------------------------------- */

/* The last one, for the name of a queue may hold anything. */
static const char *find_last(const char *text, const char *words)
{
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        found = at;
    return found ? found + strlen(words) : NULL;
}

/* "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/':
 * received none but current is the value '3' of type 'signedint'", or with a limit on
 * both sides "received '-1' but current is '3'". The broker cuts its words off at 255
 * bytes. */
int wb_amqp_limit_read(const char *text, wb_amqp_limit *ret_limit)
{
    static const char refusal[] = "inequivalent arg '" DELIVERY_LIMIT "' for queue '";
    const char *current = find_last(text, "but current is ");
    char *end;
    if (!strstr(text, refusal))
        return 0;
    *ret_limit = (wb_amqp_limit){ .is = WB_AMQP_LIMIT_UNREADABLE };
    if (current && strcmp(current, "none") == 0)
        ret_limit->is = WB_AMQP_LIMIT_NONE;
    if (!current)
        return 1;
    if (strncmp(current, "the value ", 10) == 0)
        current += 10;
    long long value = strtoll(current + (*current == '\''), &end, 10);
    if (end != current + 1 && *current == '\'' && *end == '\'')
        *ret_limit = (wb_amqp_limit){ .is = WB_AMQP_LIMIT_SET, .value = value };
    return 1;
}

/* As the broker does it: the lower one counts, and one that is no limit not at all. */
static int64_t lower(int64_t one, int64_t other)
{
    if (one < 0 || other < 0)
        return one > other ? one : other;
    return one < other ? one : other;
}

static uint32_t as_count(int64_t limit)
{
    if (limit < 0)
        return 0;
    /* 0 drops what is delivered a second time; there is no way to say that, and the host
     * refuses 1 as well. */
    if (limit == 0)
        return 1;
    return limit < WB_LIMIT_UNKNOWN ? (uint32_t)limit : WB_LIMIT_UNKNOWN - 1;
}

uint32_t wb_amqp_limit_resolve(int major, wb_amqp_limit argument, wb_amqp_limit policy)
{
    if (argument.is == WB_AMQP_LIMIT_UNREADABLE || policy.is == WB_AMQP_LIMIT_UNREADABLE)
        return WB_LIMIT_UNKNOWN;
    if (argument.is == WB_AMQP_LIMIT_SET && policy.is == WB_AMQP_LIMIT_SET)
        return as_count(lower(argument.value, policy.value));
    if (argument.is == WB_AMQP_LIMIT_SET)
        return as_count(argument.value);
    /* "No limit" is honoured as an argument; by policy alone it is not reliably so. */
    if (policy.is == WB_AMQP_LIMIT_SET)
        return policy.value < 0 ? WB_LIMIT_UNKNOWN : as_count(policy.value);
    if (major == 0)
        return WB_LIMIT_UNKNOWN;
    return major < 4 ? 0 : LIMIT_BY_DEFAULT;
}

/* ---- declaring ------------------------------------------------------------------- */

static int declare(wb_amqp_connection *connection, amqp_queue_declare_t *declare)
{
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_QUEUE_DECLARE_METHOD, declare,
                             AMQP_QUEUE_DECLARE_OK_METHOD);
    return result;
}

int wb_amqp_queue_exists(wb_amqp_connection *connection, const char *name)
{
    amqp_queue_declare_t passive = { .queue = amqp_cstring_bytes(name),
                                     .passive = 1,
                                     .durable = 1 };
    return declare(connection, &passive);
}

static amqp_table_entry_t text_entry(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(name),
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) }
    };
}

/* A priority that is no number is refused, so there never is a consumer. */
int wb_amqp_queue_may_read(wb_amqp_connection *connection, const char *name)
{
    amqp_table_entry_t impossible = text_entry("x-priority", "none");
    amqp_basic_consume_t consume = { .queue = amqp_cstring_bytes(name),
                                     .arguments = { 1, &impossible } };
    if (!wb_amqp_broker_major(connection))
        return WB_OK;
    int result = wb_amqp_channel_ensure(connection, WB_AMQP_SCRATCH);
    if (result == WB_OK)
        result = wb_amqp_rpc(connection, WB_AMQP_SCRATCH, AMQP_BASIC_CONSUME_METHOD, &consume,
                         AMQP_BASIC_CONSUME_OK_METHOD);
    if (result == WB_REJECT && connection->channels[WB_AMQP_SCRATCH].code != AMQP_ACCESS_REFUSED)
        return WB_OK;
    return result;
}

/* A classic queue is one without the argument x-queue-type: with it, it would not be the
 * same as the queues that others declared. It counts nothing and has no limit. */
static int declare_as(wb_amqp_connection *connection, const char *name, int type,
                      const char *dead_letter, const wb_amqp_found *found)
{
    amqp_table_entry_t entries[WB_AMQP_ARGUMENTS_MAX + 3];
    int count = 0;
    if (type == WB_AMQP_QUEUE_QUORUM)
        entries[count++] = text_entry(QUEUE_TYPE, "quorum");
    if (found->limit.is == WB_AMQP_LIMIT_SET)
        entries[count++] = (amqp_table_entry_t){ amqp_cstring_bytes(DELIVERY_LIMIT),
                                                 { .kind = AMQP_FIELD_KIND_I64,
                                                   .value.i64 = found->limit.value } };
    if (dead_letter)
        entries[count++] = text_entry(DEAD_LETTER_EXCHANGE, dead_letter);
    count = wb_amqp_arguments_put(&found->arguments, entries, count);
    amqp_queue_declare_t queue = { .queue = amqp_cstring_bytes(name),
                                   .durable = 1,
                                   .arguments = { count, entries } };
    return declare(connection, &queue);
}

/* A type other than ours, or another dead-letter exchange than the one asked for. */
static int is_ours_to_say(const wb_amqp_argument *argument, int type, const char *dead_letter)
{
    if (strcmp(argument->name, QUEUE_TYPE) == 0)
        return type != WB_AMQP_QUEUE_CLASSIC || strcmp(argument->text, "classic") != 0;
    return dead_letter && strcmp(argument->name, DEAD_LETTER_EXCHANGE) == 0;
}

/* @return 1 when the refusal told something to try again with. */
static int learn(const char *text, int type, const char *dead_letter, wb_amqp_found *found,
                 int *limit_known)
{
    wb_amqp_argument argument;
    if (type == WB_AMQP_QUEUE_QUORUM && wb_amqp_limit_read(text, &found->limit)) {
        if (*limit_known)
            found->limit.is = WB_AMQP_LIMIT_UNREADABLE;
        found->incomplete = found->limit.is == WB_AMQP_LIMIT_UNREADABLE;
        *limit_known = 1;
        return !found->incomplete;
    }
    if (!wb_amqp_argument_read(text, &argument) || is_ours_to_say(&argument, type, dead_letter))
        return 0;
    int added = wb_amqp_arguments_add(&found->arguments, &argument);
    found->incomplete = !argument.kind || !added;
    return !found->incomplete;
}

int wb_amqp_queue_declare(wb_amqp_connection *connection, const char *name, int type, int without_limit,
                          const char *dead_letter, wb_amqp_found *ret_found)
{
    const wb_amqp_channel *channel = &connection->channels[WB_AMQP_SCRATCH];
    int limit_known = 0;
    int result;
    *ret_found = (wb_amqp_found){ .limit.is = WB_AMQP_LIMIT_NONE };
    if (without_limit && type == WB_AMQP_QUEUE_QUORUM && wb_amqp_broker_major(connection) >= 4)
        ret_found->limit = (wb_amqp_limit){ .is = WB_AMQP_LIMIT_SET, .value = -1 };
    do
        result = declare_as(connection, name, type, dead_letter, ret_found);
    while (result == WB_REJECT && channel->code == AMQP_PRECONDITION_FAILED &&
           learn(channel->text, type, dead_letter, ret_found, &limit_known));
    ret_found->differs = limit_known || ret_found->arguments.count || ret_found->incomplete;
    /* It is there, and of our type: what else it has the broker did not manage to say. */
    return ret_found->incomplete ? WB_OK : result;
}

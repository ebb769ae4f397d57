/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the broker's words ---------------------------------------------------------- */

/* "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/':
 * received none but current is the value '1000' of type 'signedint'". */
static int read_name(const char *text, char ret_name[64])
{
    static const char before[] = "inequivalent arg '";
    const char *at = strstr(text, before);
    size_t size = at ? strcspn(at + sizeof before - 1, "'") : 0;
    if (size < 3 || size >= 64 || memcmp(at + sizeof before - 1, "x-", 2) != 0)
        return 0;
    memcpy(ret_name, at + sizeof before - 1, size);
    ret_name[size] = '\0';
    return 1;
}

/* The last one: names of queues, and values, may hold anything. */
static const char *find_last(const char *text, const char *words)
{
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        found = at;
    return found;
}

static void read_value(const char *text, const char *type, wb_amqp_argument *argument)
{
    char *end;
    (void)snprintf(argument->text, sizeof argument->text, "%s", text);
    if (strcmp(type, "longstr'") == 0) {
        argument->kind = AMQP_FIELD_KIND_UTF8;
    } else if (strcmp(type, "bool'") == 0) {
        argument->kind = AMQP_FIELD_KIND_BOOLEAN;
        argument->number = strcmp(text, "true") == 0;
    } else {
        argument->number = strtoll(text, &end, 10);
        if (end != text && *end == '\0')
            argument->kind = AMQP_FIELD_KIND_I64;
    }
}

int wb_amqp_argument_read(const char *text, wb_amqp_argument *ret_argument)
{
    static const char before[] = "but current is the value '", between[] = "' of type '";
    char value[256];
    *ret_argument = (wb_amqp_argument){ .kind = 0 };
    if (!read_name(text, ret_argument->name))
        return 0;
    const char *at = find_last(text, before);
    const char *type = at ? find_last(at, between) : NULL;
    /* Cut off within the type, it has no quote at its end. */
    if (!type || text[strlen(text) - 1] != '\'' || (size_t)(type - at) < sizeof before - 1)
        return 1;
    size_t size = (size_t)(type - at) - (sizeof before - 1);
    if (size >= sizeof value)
        return 1;
    memcpy(value, at + sizeof before - 1, size);
    value[size] = '\0';
    read_value(value, type + sizeof between - 1, ret_argument);
    return 1;
}

/* ---- the list -------------------------------------------------------------------- */

const wb_amqp_argument *wb_amqp_arguments_find(const wb_amqp_arguments *arguments,
                                               const char *name)
{
    for (size_t i = 0; i < arguments->count; i++) {
        if (strcmp(arguments->list[i].name, name) == 0)
            return &arguments->list[i];
    }
    return NULL;
}

int wb_amqp_arguments_add(wb_amqp_arguments *arguments, const wb_amqp_argument *argument)
{
    if (arguments->count == WB_AMQP_ARGUMENTS_MAX ||
        wb_amqp_arguments_find(arguments, argument->name))
        return 0;
    arguments->list[arguments->count++] = *argument;
    return 1;
}

static amqp_field_value_t value_of(const wb_amqp_argument *argument)
{
    amqp_field_value_t value = { .kind = (uint8_t)argument->kind };
    if (argument->kind == AMQP_FIELD_KIND_UTF8)
        value.value.bytes = amqp_cstring_bytes(argument->text);
    else if (argument->kind == AMQP_FIELD_KIND_BOOLEAN)
        value.value.boolean = argument->number != 0;
    else
        value.value.i64 = argument->number;
    return value;
}

int wb_amqp_arguments_put(const wb_amqp_arguments *arguments, amqp_table_entry_t *entries,
                          int count)
{
    for (size_t i = 0; i < arguments->count; i++) {
        if (arguments->list[i].kind)
            entries[count++] = (amqp_table_entry_t){ amqp_cstring_bytes(arguments->list[i].name),
                                                     value_of(&arguments->list[i]) };
    }
    return count;
}

/* ---- what is promised ------------------------------------------------------------ */

/* One whose value is not known is taken for what a queue has by default. */
static int rejects_when_full(const wb_amqp_arguments *arguments)
{
    const wb_amqp_argument *overflow = wb_amqp_arguments_find(arguments, "x-overflow");
    return overflow && (strcmp(overflow->text, "reject-publish") == 0 ||
                        strcmp(overflow->text, "reject-publish-dlx") == 0);
}

const wb_amqp_argument *wb_amqp_arguments_broken(const wb_amqp_arguments *arguments, int own,
                                                 const char **ret_why)
{
    const struct {
        const char *name;
        int breaks;
        const char *why;
    } rules[] = {
        { "x-expires", 1, "it is deleted, with its messages, when nobody has used it for a while" },
        { "x-message-ttl", own, "messages that wait longer are dropped without being handled" },
        { "x-max-length", !rejects_when_full(arguments),
          "when it is full the oldest messages are dropped, unless x-overflow is reject-publish" },
        { "x-max-length-bytes", !rejects_when_full(arguments),
          "when it is full the oldest messages are dropped, unless x-overflow is reject-publish" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const wb_amqp_argument *found = wb_amqp_arguments_find(arguments, rules[i].name);
        if (found && rules[i].breaks) {
            *ret_why = rules[i].why;
            return found;
        }
    }
    return NULL;
}

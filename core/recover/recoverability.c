/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/recoverability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/message/header_names.h"

/* NServiceBus cuts ExceptionInfo.Message here; ServicePulse expects no more. */
#define REASON_MAX 16384
#define FAILURE_HEADERS_MAX 10

void wb_failure_set(wb_failure *failure, const char *kind, const char *reason, int counts)
{
    failure->kind = kind;
    free(failure->reason);
    failure->reason = wb_strdup(reason && *reason ? reason : "no reason given");
    failure->attempts += counts ? 1 : 0;
}

void wb_failure_clear(wb_failure *failure)
{
    free(failure->reason);
    memset(failure, 0, sizeof *failure);
}

int wb_recover_is_exhausted(const wb_recoverability *policy, const wb_failure *failure)
{
    return failure->attempts > policy->immediate_retries;
}

int wb_recover_is_breaking(const wb_recoverability *policy, const wb_failure *failure)
{
    unsigned forgiven = policy->immediate_retries < WB_LOSSES_MIN ? WB_LOSSES_MIN
                                                                  : policy->immediate_retries;
    return failure->losses > forgiven;
}

static int starts_with(const wb_header *header, const char *prefix)
{
    size_t size = strlen(prefix);
    return header->name_size >= size && memcmp(header->name, prefix, size) == 0;
}

static int is_name(const wb_header *header, const char *name)
{
    return header->name_size == strlen(name) && starts_with(header, name);
}

int wb_recover_is_failure_header(const wb_header *header)
{
    static const char *const names[] = {
        WB_HEADER_RETRIES,           WB_HEADER_FL_RETRIES,        WB_HEADER_FAILED_QUEUE,
        WB_HEADER_TIME_OF_FAILURE,   WB_HEADER_PROCESSING_MACHINE, WB_HEADER_PROCESSING_ENDPOINT,
        WB_HEADER_HOST_ID,           WB_HEADER_HOST_NAME,
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (is_name(header, names[i]))
            return 1;
    return starts_with(header, WB_HEADER_EXCEPTION_PREFIX);
}

typedef struct {
    wb_header *headers;
    size_t count;
    wb_arena *arena;
} header_list;

static void add(header_list *list, const char *name, const char *value)
{
    size_t size = strnlen(value, REASON_MAX);
    list->headers[list->count++] = (wb_header){ name, wb_arena_copy(list->arena, value, size),
                                                strlen(name), size };
}

static void add_failure_headers(header_list *list, const wb_origin *origin, const wb_failure *failure,
                                const char *type)
{
    char now[WB_TIMESTAMP_SIZE], place[600];
    wb_clock_format_wire(wb_clock_wall(), now);
    (void)snprintf(place, sizeof place, "at the handler of %.255s in endpoint %.255s",
                   type ? type : "(no type)", origin->endpoint.value);
    add(list, WB_HEADER_FAILED_QUEUE, origin->endpoint.value);
    add(list, WB_HEADER_TIME_OF_FAILURE, now);
    add(list, WB_HEADER_EXCEPTION_TYPE, failure->kind);
    add(list, WB_HEADER_EXCEPTION_MESSAGE, failure->reason);
    add(list, WB_HEADER_EXCEPTION_SOURCE, origin->endpoint.value);
    add(list, WB_HEADER_EXCEPTION_STACK_TRACE, place);
    add(list, WB_HEADER_PROCESSING_MACHINE, origin->machine.value);
    add(list, WB_HEADER_PROCESSING_ENDPOINT, origin->endpoint.value);
    add(list, WB_HEADER_HOST_ID, origin->host_id.value);
    add(list, WB_HEADER_HOST_NAME, origin->machine.value);
}

wb_operation *wb_recover_error_operation(const wb_recoverability *policy, const wb_origin *origin,
                                         const wb_incoming *incoming, const wb_failure *failure,
                                         const char *type, wb_arena *arena,
                                         wb_operation_list *list)
{
    wb_operation *operation = wb_operation_append(list, arena);
    header_list headers = { wb_arena_alloc(arena, (incoming->header_count + FAILURE_HEADERS_MAX) *
                                                      sizeof(wb_header)),
                            0, arena };
    for (size_t i = 0; i < incoming->header_count; i++)
        if (!wb_recover_is_failure_header(&incoming->headers[i]))
            headers.headers[headers.count++] = incoming->headers[i];
    add_failure_headers(&headers, origin, failure, type);

    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = policy->error_queue;
    operation->id = incoming->id;
    operation->id_size = incoming->id_size;
    operation->headers = headers.headers;
    operation->header_count = headers.count;
    operation->body = incoming->body;
    operation->body_size = incoming->body_size;
    operation->key = incoming->key;
    operation->key_size = incoming->key_size;
    return operation;
}

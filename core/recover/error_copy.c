/* SPDX-License-Identifier: Apache-2.0
 *
 * The copy of a failed message that goes to the error queue, and how it is cut down when a
 * broker refuses it: a copy that cannot be moved would stay in hand for ever.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/recover/recoverability.h"

/* NServiceBus cuts ExceptionInfo.Message here; ServicePulse expects no more. */
#define REASON_MAX 16384
#define REASON_TRIMMED 256
#define FAILURE_HEADERS_MAX 12
/* What is named as cut, at most. */
#define TRIMMED_NAMES_MAX 1024

typedef struct {
    wb_header *headers;
    size_t count;
    size_t bytes;
    unsigned trim;
    char trimmed[TRIMMED_NAMES_MAX]; /* names of what was cut, with commas between */
    wb_arena *arena;
} header_list;

static void add_header(header_list *list, wb_header header)
{
    list->headers[list->count++] = header;
    list->bytes += header.name_size + header.value_size;
}

static void add(header_list *list, const char *name, const char *value, size_t value_max)
{
    size_t size = strnlen(value, value_max);
    add_header(list, (wb_header){ name, wb_arena_copy(list->arena, value, size), strlen(name), size });
}

static void remove_header(header_list *list, size_t at)
{
    wb_header *header = &list->headers[at];
    list->bytes -= header->name_size + header->value_size;
    memmove(header, header + 1, (--list->count - at) * sizeof *header);
}

static void note_trimmed(header_list *list, const char *name)
{
    size_t used = strlen(list->trimmed);
    (void)snprintf(list->trimmed + used, sizeof list->trimmed - used, "%s%.200s", used ? ", " : "", name);
}

/* Tools know a failed message by this header. One that had no id gets a new one: when it is sent
 * back it can be handled. */
static void add_id(header_list *list, const wb_incoming *incoming)
{
    char generated[WB_GENERATED_ID_SIZE];
    const wb_header *found;
    while ((found = WB_HEADERS_FIND(list->headers, list->count, WB_HEADER_MESSAGE_ID))) {
        if (found->value_size)
            return;
        remove_header(list, (size_t)(found - list->headers)); /* empty: two would leave it to each reader which one counts */
    }
    wb_header added = { WB_HEADER_MESSAGE_ID, incoming->id, sizeof WB_HEADER_MESSAGE_ID - 1,
                        incoming->id_size };
    if (!incoming->id || !incoming->id_size) {
        wb_id_generate(generated);
        added.value_size = sizeof generated - 1;
        added.value = wb_arena_copy(list->arena, generated, added.value_size);
    }
    add_header(list, added);
}

/* ServicePulse groups by the kind and the first frame it can read, "at TYPE.METHOD()" without blanks:
 * here what a message failed in. Where no handler is known that is the endpoint. */
static void describe_place(const wb_origin *origin, const wb_failed_message *message, char *place, size_t size)
{
    const char *kind = message->failure->kind;
    const char *type = message->type && *message->type ? message->type : origin->endpoint.value;
    const char *method = !message->type                          ? "Receive"
                         : strcmp(kind, WB_FAILURE_DISPATCH) == 0 ? "Dispatch"
                                                                  : "Handle";
    (void)snprintf(place, size, "   at %.255s.%s()", type, method);
}

static void add_failure(header_list *list, const wb_origin *origin, const wb_failed_message *message)
{
    const wb_failure *failure = message->failure;
    char now[WB_TIMESTAMP_SIZE], place[300];
    wb_clock_format_wire(wb_clock_wall(), now);
    describe_place(origin, message, place, sizeof place);
    size_t reason_max = list->trim >= WB_TRIM_REASON ? REASON_TRIMMED : REASON_MAX;
    if (strlen(failure->reason) > REASON_TRIMMED && list->trim >= WB_TRIM_REASON)
        note_trimmed(list, WB_HEADER_EXCEPTION_MESSAGE);
    if (list->trim >= WB_TRIM_STACK_TRACE)
        note_trimmed(list, WB_HEADER_EXCEPTION_STACK_TRACE);
    else
        add(list, WB_HEADER_EXCEPTION_STACK_TRACE, place, sizeof place);
    if (!wb_bug("copy_expires")) /* it tells transports that its time to be received counts no more */
        add(list, WB_HEADER_FAILED_QUEUE, message->failed_queue ? message->failed_queue : wb_origin_queue(origin), SIZE_MAX);
    add(list, WB_HEADER_TIME_OF_FAILURE, now, SIZE_MAX);
    add(list, WB_HEADER_EXCEPTION_TYPE, failure->kind, SIZE_MAX);
    add(list, WB_HEADER_EXCEPTION_MESSAGE, failure->reason, reason_max);
    add(list, WB_HEADER_EXCEPTION_SOURCE, origin->endpoint.value, SIZE_MAX);
    add(list, WB_HEADER_PROCESSING_MACHINE, origin->machine.value, SIZE_MAX);
    add(list, WB_HEADER_PROCESSING_ENDPOINT, origin->endpoint.value, SIZE_MAX);
    add(list, WB_HEADER_HOST_ID, origin->host_id.value, SIZE_MAX);
    add(list, WB_HEADER_HOST_NAME, origin->machine.value, SIZE_MAX);
}

static int is_named(const wb_header *header, const char *name)
{
    return header->name_size == strlen(name) && memcmp(header->name, name, header->name_size) == 0;
}

/* What it says of its failure, cut down as this one's would be. */
static void keep_failure_header(header_list *list, const wb_header *header)
{
    const int is_stack_trace = is_named(header, WB_HEADER_EXCEPTION_STACK_TRACE) && list->trim >= WB_TRIM_STACK_TRACE;
    const int is_reason = is_named(header, WB_HEADER_EXCEPTION_MESSAGE) && list->trim >= WB_TRIM_REASON;
    if (is_named(header, WB_HEADER_TRIMMED))
        note_trimmed(list, header->value);
    else if (is_stack_trace || (is_reason && header->value_size > REASON_TRIMMED))
        note_trimmed(list, header->name);
    if (is_reason)
        add(list, WB_HEADER_EXCEPTION_MESSAGE, header->value, REASON_TRIMMED);
    else if (!is_stack_trace && !is_named(header, WB_HEADER_TRIMMED) && !is_named(header, WB_HEADER_NOT_KEPT))
        add_header(list, *header);
}

static void keep_failure(header_list *list, const wb_failed_message *message)
{
    const wb_incoming *incoming = message->incoming;
    for (size_t i = 0; i < incoming->header_count; i++)
        if (wb_recover_is_failure_header(&incoming->headers[i]))
            keep_failure_header(list, &incoming->headers[i]);
    add(list, WB_HEADER_NOT_KEPT, message->failure->reason, list->trim >= WB_TRIM_REASON ? REASON_TRIMMED : REASON_MAX);
}

static size_t find_largest(const header_list *list)
{
    size_t found = 0, size = 0;
    for (size_t i = 0; i < list->count; i++) {
        size_t own = list->headers[i].name_size + list->headers[i].value_size;
        if (own > size) {
            size = own;
            found = i;
        }
    }
    return found;
}

/* So many bytes of the message's own headers stay. */
static size_t room_for_headers(unsigned trim)
{
    return trim < WB_TRIM_HEADERS ? SIZE_MAX : (size_t)(32 * 1024) >> (trim - WB_TRIM_HEADERS);
}

static void drop_largest(header_list *list)
{
    size_t at = find_largest(list);
    note_trimmed(list, list->headers[at].name);
    remove_header(list, at);
}

/* A header of each kind costs the broker something, however short it is. */
static void add_originals(header_list *list, const wb_incoming *incoming)
{
    for (size_t i = 0; i < incoming->header_count; i++)
        if (!wb_recover_is_failure_header(&incoming->headers[i]))
            add_header(list, incoming->headers[i]);
    while (list->count && list->bytes > room_for_headers(list->trim))
        drop_largest(list);
    size_t most = list->trim < WB_TRIM_MAX ? SIZE_MAX : WB_PLATFORM_HEADERS_MAX;
    while (list->count > most)
        drop_largest(list);
}

wb_incoming wb_recover_incoming(const wb_operation *operation)
{
    return (wb_incoming){ .struct_size = sizeof(wb_incoming),
                          .id = operation->id,
                          .id_size = operation->id_size,
                          .headers = operation->headers,
                          .header_count = operation->header_count,
                          .body = operation->body,
                          .body_size = operation->body_size,
                          .key = operation->key,
                          .key_size = operation->key_size };
}

wb_operation *wb_recover_error_operation(const wb_recoverability *policy, const wb_origin *origin,
                                         const wb_failed_message *message, wb_arena *arena,
                                         wb_operation_list *list)
{
    const wb_incoming *incoming = message->incoming;
    wb_operation *operation = wb_operation_append(list, arena);
    size_t most = incoming->header_count + FAILURE_HEADERS_MAX;
    header_list headers = { .headers = wb_arena_alloc(arena, most * sizeof(wb_header)),
                            .trim = message->trim, .arena = arena };
    add_originals(&headers, incoming);
    add_id(&headers, incoming);
    if (message->keeps_failure)
        keep_failure(&headers, message);
    else
        add_failure(&headers, origin, message);
    if (headers.trimmed[0])
        add(&headers, WB_HEADER_TRIMMED, headers.trimmed, sizeof headers.trimmed);

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

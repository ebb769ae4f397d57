/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/retried.h"

#include "core/base/clock.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/message/text.h"

#define ACKNOWLEDGEMENT_HEADERS 4

#define TEXT_HEADER(name, value, size) ((wb_header){ (name), (value), sizeof(name) - 1, (size) })

/* A peer wrote it, and it becomes an argument of a protocol. */
static int is_address(const wb_header *queue)
{
    return queue->value_size > 0 && queue->value_size <= WB_OUTGOING_NAME_MAX &&
           wb_text_is_plain(queue->value, queue->value_size);
}

/* The same on every attempt; another for each retry of the message. */
static void derive_id(const wb_origin *origin, const wb_incoming *incoming, const char *destination,
                      const wb_header *unique_id, char id[WB_GENERATED_ID_SIZE])
{
    wb_id_seed seed = { origin->endpoint.value, WB_KIND_SEND, 0, unique_id->value, destination, 0,
                        incoming->id, incoming->id_size };
    wb_id_derive(&seed, id);
}

static void set_headers(wb_operation *operation, const wb_header *unique_id, int64_t started, wb_arena *arena)
{
    char time[WB_TIMESTAMP_SIZE];
    wb_header *headers = wb_arena_alloc(arena, ACKNOWLEDGEMENT_HEADERS * sizeof *headers);
    wb_clock_format_wire(started, time);
    headers[0] = TEXT_HEADER(WB_HEADER_MESSAGE_ID, operation->id, operation->id_size);
    headers[1] = TEXT_HEADER(WB_HEADER_RETRY_SUCCESSFUL, wb_arena_copy(arena, time, sizeof time - 1), sizeof time - 1);
    headers[2] = *unique_id;
    headers[3] = TEXT_HEADER(WB_HEADER_CONTROL_MESSAGE, "True", 4);
    operation->headers = headers;
    operation->header_count = ACKNOWLEDGEMENT_HEADERS;
}

/* `origin` is NULL where the id follows from nothing. */
static int acknowledge(const wb_origin *origin, const wb_incoming *incoming, int64_t when, wb_arena *arena,
                       wb_operation_list *list)
{
    const wb_header *queue =
        WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_RETRY_ACKNOWLEDGEMENT_QUEUE);
    const wb_header *unique_id =
        queue ? WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_RETRY_UNIQUE_ID) : NULL;
    char id[WB_GENERATED_ID_SIZE];
    if (!unique_id || !is_address(queue))
        return 0;
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = wb_arena_copy(arena, queue->value, queue->value_size);
    operation->body = "";
    if (origin)
        derive_id(origin, incoming, operation->destination, unique_id, id);
    else
        wb_id_generate(id);
    operation->id = wb_arena_copy(arena, id, sizeof id - 1);
    operation->id_size = sizeof id - 1;
    set_headers(operation, unique_id, when, arena);
    return 1;
}

int wb_recover_acknowledge(const wb_origin *origin, const wb_incoming *incoming, int64_t started,
                           wb_arena *arena, wb_operation_list *list)
{
    return acknowledge(origin, incoming, started, arena, list);
}

int wb_recover_acknowledge_duplicate(const wb_incoming *incoming, int64_t now, wb_arena *arena,
                                     wb_operation_list *list)
{
    return acknowledge(NULL, incoming, now, arena, list);
}

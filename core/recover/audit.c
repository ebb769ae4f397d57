/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/audit.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

/* What the copy adds, at most: the last two where they are missing and where they apply. */
#define AUDIT_HEADERS_MAX 8

static const char *const names[] = {
    WB_HEADER_PROCESSING_STARTED, WB_HEADER_PROCESSING_ENDED, WB_HEADER_PROCESSING_MACHINE,
    WB_HEADER_PROCESSING_ENDPOINT, WB_HEADER_HOST_ID,          WB_HEADER_HOST_NAME,
    WB_HEADER_RETRY_ACKNOWLEDGED,
};

/* A message that was in an error queue, or was audited elsewhere, has some of them. */
static int is_replaced(const wb_header *header)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (header->name_size == strlen(names[i]) && memcmp(header->name, names[i], header->name_size) == 0)
            return 1;
    return 0;
}

static void add(wb_operation *operation, wb_header *headers, const char *name, wb_text value)
{
    headers[operation->header_count++] = (wb_header){ name, value.value, strlen(name), value.size };
}

static wb_text time_text(int64_t wall, wb_arena *arena)
{
    char text[WB_TIMESTAMP_SIZE];
    wb_clock_format_wire(wall, text);
    return (wb_text){ wb_arena_copy(arena, text, sizeof text - 1), sizeof text - 1 };
}

static void add_headers(wb_operation *operation, const wb_origin *origin, const wb_handled_message *handled,
                        wb_arena *arena)
{
    const wb_incoming *incoming = handled->incoming;
    wb_header *headers = wb_arena_alloc(arena, (incoming->header_count + AUDIT_HEADERS_MAX) * sizeof *headers);
    operation->headers = headers;
    for (size_t i = 0; i < incoming->header_count; i++)
        if (!is_replaced(&incoming->headers[i]))
            headers[operation->header_count++] = incoming->headers[i];
    if (!WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_MESSAGE_ID))
        add(operation, headers, WB_HEADER_MESSAGE_ID, (wb_text){ incoming->id, incoming->id_size });
    add(operation, headers, WB_HEADER_PROCESSING_STARTED, time_text(handled->started, arena));
    if (!wb_bug("audit_expires"))
        add(operation, headers, WB_HEADER_PROCESSING_ENDED, time_text(handled->ended, arena));
    add(operation, headers, WB_HEADER_HOST_ID, origin->host_id);
    add(operation, headers, WB_HEADER_HOST_NAME, origin->machine);
    add(operation, headers, WB_HEADER_PROCESSING_MACHINE, origin->machine);
    add(operation, headers, WB_HEADER_PROCESSING_ENDPOINT, origin->endpoint);
    if (handled->is_acknowledged)
        add(operation, headers, WB_HEADER_RETRY_ACKNOWLEDGED, (wb_text){ "true", 4 });
}

wb_operation *wb_recover_audit_operation(const char *queue, const wb_origin *origin,
                                         const wb_handled_message *handled, wb_arena *arena,
                                         wb_operation_list *list)
{
    const wb_incoming *incoming = handled->incoming;
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = queue;
    operation->id = incoming->id;
    operation->id_size = incoming->id_size;
    add_headers(operation, origin, handled, arena);
    operation->body = incoming->body;
    operation->body_size = incoming->body_size;
    operation->key = incoming->key;
    operation->key_size = incoming->key_size;
    return operation;
}

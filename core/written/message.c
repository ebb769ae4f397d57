/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/written/message.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/pipeline/window.h"
#include "core/recover/recoverability.h"
#include "core/written/headers.h"

/* For the headers that name a machine. */
#define MACHINE "sql"
#define HOST_ID "77617962696c6c2d73716c0000000000"

wb_origin wb_written_origin(const wb_origin *endpoint)
{
    wb_origin origin = *endpoint;
    origin.machine = (wb_text){ MACHINE, sizeof MACHINE - 1 };
    origin.host_id = (wb_text){ HOST_ID, sizeof HOST_ID - 1 };
    return origin;
}

/* Names end with a NUL, so that one with a NUL in it would be another name. */
static int take_name(wb_written_text text, const char *what, wb_arena *arena, const char **ret_name, wb_error *error)
{
    *ret_name = text.data ? wb_arena_copy(arena, text.data, text.size) : NULL;
    if (!text.data || !memchr(text.data, '\0', text.size))
        return WB_OK;
    return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "its %s holds a NUL byte", what);
}

/* When it was written, not when it leaves: every dispatch of it has the same bytes. */
static void add_time(const wb_written *row, wb_arena *arena, wb_header *headers, size_t *count)
{
    char time[WB_TIMESTAMP_SIZE];
    for (size_t i = 0; i < *count; i++)
        if (headers[i].name_size == sizeof WB_HEADER_TIME_SENT - 1 &&
            memcmp(headers[i].name, WB_HEADER_TIME_SENT, headers[i].name_size) == 0)
            return;
    wb_clock_format_wire(row->written, time);
    headers[(*count)++] = (wb_header){ WB_HEADER_TIME_SENT, wb_arena_copy(arena, time, strlen(time)),
                                       sizeof WB_HEADER_TIME_SENT - 1, strlen(time) };
}

static wb_operation *add(const wb_origin *origin, const wb_outgoing *outgoing, const wb_written *row, wb_arena *arena,
                         wb_error *error)
{
    wb_operation_list list = { 0 };
    const int kind = row->destination.data ? WB_KIND_SEND : WB_KIND_PUBLISH;
    if (wb_outgoing_add(origin, kind, outgoing, sizeof *outgoing, NULL, 0, arena, &list, error) != WB_OK)
        return NULL;
    return &list.first->operation;
}

wb_operation *wb_written_message(const wb_origin *origin, const wb_written *row, wb_arena *arena, wb_error *error)
{
    wb_header headers[WB_WRITTEN_HEADERS_MAX + 1];
    size_t count = 0;
    wb_outgoing outgoing = { 0 };

    if (!row->id.size || row->id.size > WB_ID_MAX) {
        (void)wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "its id has no byte, or more than 255");
        return NULL;
    }
    if (take_name(row->type, "type", arena, &outgoing.type, error) != WB_OK ||
        take_name(row->destination, "destination", arena, &outgoing.destination, error) != WB_OK ||
        wb_written_headers_parse(row->headers.data, row->headers.size, arena, headers, &count, error) != WB_OK)
        return NULL;
    add_time(row, arena, headers, &count);
    if (!wb_bug("written_new_ids")) {
        outgoing.id = row->id.data;
        outgoing.id_size = row->id.size;
    }
    outgoing.headers = headers;
    outgoing.header_count = count;
    outgoing.key = row->key.size ? row->key.data : NULL; /* without a size it would be a text that ends somewhere */
    outgoing.key_size = row->key.size;
    outgoing.body = row->body.data;
    outgoing.body_size = row->body.size;
    return add(origin, &outgoing, row, arena, error);
}

/* ---- for the error queue ------------------------------------------------------------------ */

wb_operation *wb_written_copy(wb_pipeline *p, const wb_written_failed *failed, wb_arena *arena)
{
    wb_operation_list list = { 0 };
    const wb_recoverability *policy = &p->recoverability;
    const wb_failure failure = { .kind = WB_FAILURE_DISPATCH, .reason = failed->reason, .attempts = 1 };
    const wb_failed_message message = { .incoming = &failed->incoming, .failure = &failure, .failed_queue = failed->queue,
                                        .trim = failed->trim };
    return policy->error_queue ? wb_recover_error_operation(policy, &p->origin, &message, arena, &list) : NULL;
}

static wb_written_failed *make_failed(const wb_incoming *incoming, const char *queue, const char *reason, wb_arena *arena)
{
    wb_written_failed *failed = wb_arena_alloc(arena, sizeof *failed);
    *failed = (wb_written_failed){ .incoming = *incoming, .queue = queue,
                                   .reason = wb_arena_copy(arena, reason, strlen(reason)) };
    return failed;
}

wb_written_failed *wb_written_refused(const wb_operation *operation, wb_arena *arena)
{
    char reason[1200];
    wb_describe_refusal(operation, reason, sizeof reason);
    const wb_incoming incoming = wb_recover_incoming(operation);
    /* a retry of a send goes to where it was to go */
    return make_failed(&incoming, operation->kind == WB_OPERATION_SEND ? operation->destination : NULL, reason, arena);
}

static void add_text(wb_header *headers, size_t *count, const char *name, wb_written_text text, wb_arena *arena)
{
    if (text.size)
        headers[(*count)++] = (wb_header){ name, wb_arena_copy(arena, text.data, text.size), strlen(name), text.size };
}

wb_written_failed *wb_written_unusable(const wb_written *row, const char *reason, wb_arena *arena)
{
    wb_header *headers = wb_arena_alloc(arena, 3 * sizeof *headers);
    size_t count = 0;
    add_text(headers, &count, WB_HEADER_TYPES, row->type, arena);
    add_text(headers, &count, WB_HEADER_WRITTEN_HEADERS, row->headers, arena);
    add_text(headers, &count, WB_HEADER_WRITTEN_DESTINATION, row->destination, arena);
    const wb_incoming incoming = { .struct_size = sizeof incoming,
                                   .id = wb_arena_copy(arena, row->id.data ? row->id.data : "", row->id.size),
                                   .id_size = row->id.size <= WB_ID_MAX ? row->id.size : 0,
                                   .headers = headers,
                                   .header_count = count,
                                   .body = wb_arena_copy(arena, row->body.data ? row->body.data : "", row->body.size),
                                   .body_size = row->body.size };
    return make_failed(&incoming, NULL, reason, arena);
}

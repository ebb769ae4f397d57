/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/outbox_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/cli/waiting.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"

/* ---- reading --------------------------------------------------------------------------------- */

static void decode(cli_outbox_row *r, const void *data, size_t size, wb_arena *arena)
{
    int failed;
    r->groups = wb_operations_decode(data, size, arena, &failed);
    if (failed)
        r->kind = WB_ROW_UNKNOWN;
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        r->operations += g->operations.count;
}

cli_outbox_row cli_outbox_row_read(const wb_pending *pending, wb_arena *arena)
{
    cli_outbox_row r = { .pending = pending, .kind = wb_backlog_kind(pending->operations, pending->operations_size) };
    if (r.kind == WB_ROW_PARKED && !wb_parked_decode(pending->operations, pending->operations_size, &r.parked))
        r.kind = WB_ROW_UNKNOWN;
    if (r.kind == WB_ROW_OPERATIONS)
        decode(&r, pending->operations, pending->operations_size, arena);
    else if (r.kind == WB_ROW_PARKED)
        decode(&r, r.parked.operations, r.parked.operations_size, arena);
    return r;
}

int64_t cli_outbox_row_time(const cli_outbox *o, const cli_outbox_row *r)
{
    return wb_batch_number_time(r->pending->batch) + (r->kind == WB_ROW_PARKED ? o->pipeline->sweep_after : 0);
}

const char *cli_outbox_kind_of(const wb_operation *operation)
{
    return operation->kind == WB_OPERATION_PUBLISH ? "publish" : "send";
}

const wb_header *cli_outbox_type_of(const wb_operation *operation)
{
    return WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_TYPES);
}

/* ---- for programs ------------------------------------------------------------------------------- */

static json_t *operation_json(const wb_operation_group *group, const wb_operation *operation)
{
    json_t *object = json_object();
    const wb_header *type = cli_outbox_type_of(operation);
    json_object_set_new(object, "kind", json_string(cli_outbox_kind_of(operation)));
    cli_waiting_set_bytes(object, "destination", "destination_hex", operation->destination,
                          strlen(operation->destination));
    cli_waiting_set_bytes(object, "type", "type_hex", type ? type->value : "", type ? type->value_size : 0);
    cli_waiting_set_bytes(object, "id", "id_hex", operation->id, operation->id_size);
    cli_waiting_set_bytes(object, "cause", "cause_hex", group->cause, group->cause_size);
    json_object_set_new(object, "body_size", json_integer((json_int_t)operation->body_size));
    json_object_set_new(object, "due", operation->deliver_at ? cli_waiting_time_json(operation->deliver_at) : json_null());
    return object;
}

static json_t *operations_json(const cli_outbox_row *r)
{
    json_t *array = json_array();
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        for (const wb_operation_node *node = g->operations.first; node; node = node->next)
            json_array_append_new(array, operation_json(g, &node->operation));
    return array;
}

/* Batch numbers are larger than what a double holds exactly, so they are strings. */
json_t *cli_outbox_row_json(const cli_outbox *o, const cli_outbox_row *r)
{
    static const char *const kinds[] = { "operations", "parked", "attempts", "unreadable" };
    char batch[24];
    json_t *object = json_object();
    (void)snprintf(batch, sizeof batch, "%" PRIu64, r->pending->batch);
    json_object_set_new(object, "batch", json_string(batch));
    json_object_set_new(object, "state", json_string(kinds[r->kind]));
    json_object_set_new(object, "bytes", json_integer((json_int_t)r->pending->operations_size));
    if (r->kind == WB_ROW_PARKED) {
        json_object_set_new(object, "due", cli_waiting_time_json(cli_outbox_row_time(o, r)));
        json_object_set_new(object, "tries", json_integer(r->parked.tries));
        cli_waiting_set_bytes(object, "reason", "reason_hex", r->parked.reason, strlen(r->parked.reason));
    } else if (r->kind != WB_ROW_ATTEMPTS) {
        json_object_set_new(object, "stored", cli_waiting_time_json(cli_outbox_row_time(o, r)));
        json_object_set_new(object, "age_seconds", json_real((double)(o->now - cli_outbox_row_time(o, r)) / 1e9));
    }
    json_object_set_new(object, "operations", operations_json(r));
    return object;
}

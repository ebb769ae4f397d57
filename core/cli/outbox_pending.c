/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox pending: the rows with what was not dispatched yet, one in memory at a time, and how many messages programs wrote in
 * SQL that are not sent.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/describe.h"
#include "core/cli/outbox.h"
#include "core/cli/waiting.h"
#include "core/cli/when.h"
#include "core/endpoint/backlog.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/message/operations.h"
#include "core/recover/parked.h"

/* A row, read as far as this version can. */
typedef struct row {
    const wb_pending *pending;
    int kind;         /* WB_ROW_x */
    wb_parked parked; /* of WB_ROW_PARKED */
    wb_operation_group *groups;
    size_t operations;
} row;

typedef struct listing {
    cli_outbox *o;
    wb_arena arena;
    size_t shown;
} listing;

/* ---- reading --------------------------------------------------------------------------------- */

static void decode(row *r, const void *data, size_t size, wb_arena *arena)
{
    int failed;
    r->groups = wb_operations_decode(data, size, arena, &failed);
    if (failed)
        r->kind = WB_ROW_UNKNOWN;
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        r->operations += g->operations.count;
}

static row read_row(const wb_pending *pending, wb_arena *arena)
{
    row r = { .pending = pending, .kind = wb_backlog_kind(pending->operations, pending->operations_size) };
    if (r.kind == WB_ROW_PARKED && !wb_parked_decode(pending->operations, pending->operations_size, &r.parked))
        r.kind = WB_ROW_UNKNOWN;
    if (r.kind == WB_ROW_OPERATIONS)
        decode(&r, pending->operations, pending->operations_size, arena);
    else if (r.kind == WB_ROW_PARKED)
        decode(&r, r.parked.operations, r.parked.operations_size, arena);
    return r;
}

/* When a parked row is due, when any other was stored. */
static int64_t time_of(const cli_outbox *o, const row *r)
{
    return wb_batch_number_time(r->pending->batch) + (r->kind == WB_ROW_PARKED ? o->pipeline->sweep_after : 0);
}

static const char *kind_of(const wb_operation *operation)
{
    return operation->kind == WB_OPERATION_PUBLISH ? "publish" : "send";
}

static const wb_header *type_of(const wb_operation *operation)
{
    return WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_TYPES);
}

/* ---- for people -------------------------------------------------------------------------------- */

static void print_operation(const wb_operation *operation)
{
    const wb_header *type = type_of(operation);
    (void)printf("  %-7s  ", kind_of(operation));
    cli_waiting_print_bytes(operation->destination, strlen(operation->destination));
    (void)printf("  ");
    cli_waiting_print_bytes(type ? type->value : "-", type ? type->value_size : 1);
    (void)printf("  ");
    cli_waiting_print_bytes(operation->id, operation->id_size);
    (void)putchar('\n');
}

static void print_state(const cli_outbox *o, const row *r)
{
    static const char *const kinds[] = { "operations", "parked", "note of attempts", "of a later version" };
    char span[CLI_SPAN_SIZE];
    int64_t age = o->now - time_of(o, r);
    (void)cli_format_span(age < 0 ? -age : age, span);
    (void)printf("batch %" PRIu64 "  %s", r->pending->batch, kinds[r->kind]);
    if (r->kind == WB_ROW_PARKED)
        (void)printf(", %s%s%s, tried %" PRIu32 " times: ", age < 0 ? "due in " : "due for ", span, "",
                     r->parked.tries);
    if (r->kind == WB_ROW_PARKED)
        cli_waiting_print_bytes(r->parked.reason, strlen(r->parked.reason));
    if (r->kind == WB_ROW_OPERATIONS)
        (void)printf(age < 0 ? ", of the future: in %s" : ", %s old", span);
    (void)putchar('\n');
}

static void print_row(const cli_outbox *o, const row *r)
{
    print_state(o, r);
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        for (const wb_operation_node *node = g->operations.first; node; node = node->next)
            print_operation(&node->operation);
}

/* ---- for programs ------------------------------------------------------------------------------- */

static json_t *operation_json(const wb_operation_group *group, const wb_operation *operation)
{
    json_t *object = json_object();
    const wb_header *type = type_of(operation);
    json_object_set_new(object, "kind", json_string(kind_of(operation)));
    cli_waiting_set_bytes(object, "destination", "destination_hex", operation->destination,
                          strlen(operation->destination));
    cli_waiting_set_bytes(object, "type", "type_hex", type ? type->value : "", type ? type->value_size : 0);
    cli_waiting_set_bytes(object, "id", "id_hex", operation->id, operation->id_size);
    cli_waiting_set_bytes(object, "cause", "cause_hex", group->cause, group->cause_size);
    json_object_set_new(object, "body_size", json_integer((json_int_t)operation->body_size));
    json_object_set_new(object, "due", operation->deliver_at ? cli_waiting_time_json(operation->deliver_at) : json_null());
    return object;
}

static json_t *operations_json(const row *r)
{
    json_t *array = json_array();
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        for (const wb_operation_node *node = g->operations.first; node; node = node->next)
            json_array_append_new(array, operation_json(g, &node->operation));
    return array;
}

/* Batch numbers are larger than what a double holds exactly, so they are strings. */
static json_t *row_json(const cli_outbox *o, const row *r)
{
    static const char *const kinds[] = { "operations", "parked", "attempts", "unreadable" };
    char batch[24];
    json_t *object = json_object();
    (void)snprintf(batch, sizeof batch, "%" PRIu64, r->pending->batch);
    json_object_set_new(object, "batch", json_string(batch));
    json_object_set_new(object, "state", json_string(kinds[r->kind]));
    json_object_set_new(object, "bytes", json_integer((json_int_t)r->pending->operations_size));
    if (r->kind == WB_ROW_PARKED) {
        json_object_set_new(object, "due", cli_waiting_time_json(time_of(o, r)));
        json_object_set_new(object, "tries", json_integer(r->parked.tries));
        cli_waiting_set_bytes(object, "reason", "reason_hex", r->parked.reason, strlen(r->parked.reason));
    } else if (r->kind != WB_ROW_ATTEMPTS) {
        json_object_set_new(object, "stored", cli_waiting_time_json(time_of(o, r)));
        json_object_set_new(object, "age_seconds", json_real((double)(o->now - time_of(o, r)) / 1e9));
    }
    json_object_set_new(object, "operations", operations_json(r));
    return object;
}

/* An array of which one element is in memory. */
static void print_element(listing *l, json_t *element)
{
    (void)fputs(l->shown ? ",\n" : "[\n", stdout);
    (void)json_dumpf(element, stdout, CLI_JSON);
    json_decref(element);
}

/* ---- the list ------------------------------------------------------------------------------------ */

static int is_full(const listing *l)
{
    return l->o->limit && l->shown == l->o->limit;
}

static int show(void *argument, const wb_pending *pending)
{
    listing *l = argument;
    wb_arena_reset(&l->arena);
    const row r = read_row(pending, &l->arena);
    if (l->o->is_parked && r.kind != WB_ROW_PARKED)
        return WB_OK;
    if (l->o->is_json)
        print_element(l, row_json(l->o, &r));
    else
        print_row(l->o, &r);
    l->shown++;
    return is_full(l) ? WB_REJECT : WB_OK;
}

/* They are no rows of the outbox: who asks for some of these is not told, and who asks for the first, at their end. */
static int show_written(listing *l)
{
    cli_outbox *o = l->o;
    int64_t count = 0;
    int r = o->is_parked || o->older_than >= 0 ? WB_OK
                                               : wb_backlog_count_written(o->pipeline, o->session, SIZE_MAX, &count, &o->error);
    if (r != WB_OK || count <= 0)
        return r;
    if (o->is_json)
        print_element(l, json_pack("{s:s, s:I}", "state", "written", "messages", (json_int_t)count));
    else
        (void)printf("written in SQL, not sent: %" PRId64 " message%s\n", count, count == 1 ? "" : "s");
    l->shown++;
    return WB_OK;
}

int cli_outbox_pending(cli_outbox *o)
{
    listing l = { .o = o };
    const wb_pending_filter filter = {
        .struct_size = sizeof filter,
        .after = o->after,
        .before = o->older_than < 0 ? UINT64_MAX : wb_batch_number_at(o->now - o->older_than),
        .limit = o->is_parked ? 0 : o->limit,
    };
    if (!WB_HAS(o->ops, wb_persistence_ops, list_pending))
        return cli_fail(EX_UNAVAILABLE, "endpoint \"%s\": its persistence cannot list pending operations",
                        o->setup->config->name);
    wb_arena_init(&l.arena, 64 * 1024);
    int r = o->ops->list_pending(o->session, &filter, show, &l, &o->error);
    wb_arena_free(&l.arena);
    const int is_cut = r != WB_OK && is_full(&l);
    if (r == WB_OK)
        r = show_written(&l);
    if (o->is_json)
        (void)puts(l.shown ? "\n]" : "[]");
    return r == WB_OK || is_cut ? EX_OK : cli_outbox_fail(o);
}

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
#include "core/cli/outbox_row.h"
#include "core/cli/waiting.h"
#include "core/cli/when.h"
#include "core/endpoint/backlog.h"
#include "core/message/ids.h"

typedef struct listing {
    cli_outbox *o;
    wb_arena arena;
    size_t shown;
} listing;

/* ---- for people -------------------------------------------------------------------------------- */

static void print_operation(const wb_operation *operation)
{
    const wb_header *type = cli_outbox_type_of(operation);
    (void)printf("  %-7s  ", cli_outbox_kind_of(operation));
    cli_waiting_print_bytes(operation->destination, strlen(operation->destination));
    (void)printf("  ");
    cli_waiting_print_bytes(type ? type->value : "-", type ? type->value_size : 1);
    (void)printf("  ");
    cli_waiting_print_bytes(operation->id, operation->id_size);
    (void)putchar('\n');
}

static void print_state(const cli_outbox *o, const cli_outbox_row *r)
{
    static const char *const kinds[] = { "operations", "parked", "note of attempts", "of a later version" };
    char span[CLI_SPAN_SIZE];
    int64_t age = o->now - cli_outbox_row_time(o, r);
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

static void print_row(const cli_outbox *o, const cli_outbox_row *r)
{
    print_state(o, r);
    for (const wb_operation_group *g = r->groups; g; g = g->next)
        for (const wb_operation_node *node = g->operations.first; node; node = node->next)
            print_operation(&node->operation);
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
    const cli_outbox_row r = cli_outbox_row_read(pending, &l->arena);
    if (l->o->is_parked && r.kind != WB_ROW_PARKED)
        return WB_OK;
    if (l->o->is_json)
        cli_print_element(l->shown, cli_outbox_row_json(l->o, &r));
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
        cli_print_element(l->shown, json_pack("{s:s, s:I}", "state", "written", "messages", (json_int_t)count));
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
        cli_print_end(l.shown);
    return r == WB_OK || is_cut ? EX_OK : cli_outbox_fail(o);
}

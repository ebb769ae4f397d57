/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: what stays pending in an outbox, as `waybill outbox pending` shows it.
 */
#include "config.h"

#include "core/cli/asked.h"
#include "core/cli/outbox_row.h"

#define WHAT "pending rows"

typedef struct {
    cli_outbox o;
    wb_arena arena;
    int has_more;
    json_t *found;
} search;

static int look_at(void *argument, const wb_pending *pending)
{
    search *s = argument;
    wb_arena_reset(&s->arena);
    const cli_outbox_row row = cli_outbox_row_read(pending, &s->arena);
    s->has_more = json_array_size(s->found) >= s->o.limit;
    if (!s->has_more)
        json_array_append_new(s->found, cli_outbox_row_json(&s->o, &row));
    return s->has_more ? WB_REJECT : WB_OK;
}

void cli_asked_pending(void *owner, const json_t *given, wb_answer *answer)
{
    const wb_endpoint_setup *setup = cli_asked_choose(owner, given, cli_keeps_pending, WHAT, answer);
    cli_asked_tables tables;
    search s = { .has_more = 0 };
    if (!setup || !cli_asked_open(owner, setup, &tables, answer))
        return;
    s.o = (cli_outbox){ .setup = setup, .pipeline = wb_endpoint_pipeline(tables.endpoint),
                        .limit = cli_asked_number(given, "limit", CLI_ASKED_LIMIT, CLI_ASKED_LIMIT_MAX) };
    s.o.now = wb_pipeline_now(s.o.pipeline);
    const wb_pending_filter filter = { .struct_size = sizeof filter, .before = UINT64_MAX, .limit = s.o.limit + 1 };
    wb_arena_init(&s.arena, 64 * 1024);
    s.found = json_array();
    if (setup->persistence_ops->list_pending(tables.session, &filter, look_at, &s, &tables.error) == WB_OK || s.has_more) {
        cli_asked_answer(answer, setup, "rows", s.found, s.has_more);
    } else {
        json_decref(s.found);
        cli_asked_fail(&tables, answer);
    }
    wb_arena_free(&s.arena);
    cli_asked_close(&tables);
}

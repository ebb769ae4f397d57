/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox sweep: two rounds of the sweeper, a moment apart: a row that the first one saw and the
 * second one still sees is nobody's who is about to dispatch it.
 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/outbox.h"
#include "core/cli/progress.h"
#include "core/endpoint/backlog.h"
#include "core/endpoint/sweeper.h"
#include "core/message/ids.h"

/* A row lives milliseconds between its commit and its mark, more where a broker is slow. */
#define BETWEEN_LOOKS (2 * WB_SECOND)
/* What one round may take. */
#define PATIENCE (24 * 3600 * WB_SECOND)

/* The first round sends what is parked and due, and looks at the rest. */
static int sweep(cli_outbox *o, int64_t older_than, wb_sweep_result *ret_sum)
{
    wb_sweep_memory memory = { 0 };
    wb_sweep_result each = { 0 };
    const wb_sweep_order order = { .until = wb_clock_monotonic() + PATIENCE, .older_than = older_than,
                                   .passed = cli_progress_set };
    atomic_store(&o->pipeline->sweep_parked, o->is_parked);
    int r = wb_sweep(o->pipeline, o->session, &memory, &order, ret_sum, &o->error);
    if (r == WB_OK && memory.count) {
        wb_clock_pause(BETWEEN_LOOKS, NULL);
        r = wb_sweep(o->pipeline, o->session, &memory, &order, &each, &o->error);
        ret_sum->sent += each.sent;
        ret_sum->parked += each.parked;
        ret_sum->unreadable = each.unreadable;
    }
    wb_sweep_forget(&memory);
    return r;
}

static void print(const cli_outbox *o, const wb_sweep_result *done, size_t left, size_t parked)
{
    if (!o->is_json)
        (void)printf("sent: %zu rows\nparked: %zu\nof a later version, left alone: %zu\n"
                     "left: %zu\nparked in all: %zu\n", done->sent, done->parked, done->unreadable, left, parked);
    else
        cli_outbox_print_json(json_pack("{s:I, s:I, s:I, s:I, s:I}", "sent", (json_int_t)done->sent, "parked",
                                        (json_int_t)done->parked, "unreadable", (json_int_t)done->unreadable,
                                        "left", (json_int_t)left, "parked_in_all", (json_int_t)parked));
}

int cli_outbox_sweep(cli_outbox *o)
{
    wb_sweep_result done = { 0 };
    wb_backlog old, all;
    wb_error error = { 0 };
    int64_t older_than = o->older_than < 0 ? o->pipeline->sweep_after : o->older_than;
    cli_progress_begin("sweeping", "pending rows", 0, 0);
    int swept = sweep(o, older_than, &done);
    cli_progress_end();
    int r = wb_backlog_look(o->pipeline, o->session, wb_batch_number_at(o->now - older_than), 0, &old, &error);
    if (r == WB_OK)
        r = wb_backlog_look(o->pipeline, o->session, UINT64_MAX, 0, &all, &error);
    if (r == WB_OK)
        print(o, &done, old.rows[WB_ROW_OPERATIONS], all.rows[WB_ROW_PARKED]);
    if (swept != WB_OK)
        return cli_outbox_fail(o);
    if (r != WB_OK) {
        o->error = error;
        return cli_outbox_fail(o);
    }
    return done.parked || old.rows[WB_ROW_OPERATIONS] || old.rows[WB_ROW_UNKNOWN] ? EX_TEMPFAIL : EX_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/console.h"

#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/cli/plan.h"

/* So long a question that is being asked is waited for when the program stops. */
#define LAST_ANSWER (300 * WB_MILLISECOND)

static json_t *plan_of(const wb_endpoint_setup *setup)
{
    json_t *plan = cli_plan_json(setup);
    json_object_set_new(plan, "keeps", json_pack("{s:b, s:b, s:b}", "failures", cli_keeps_failures(setup), "delayed",
                                                 cli_keeps_delayed(setup), "pending", cli_keeps_pending(setup)));
    return plan;
}

static void discard(cli_console *console)
{
    cli_asked_free(console->asked);
    wb_history_free(console->console.history);
    json_decref(console->console.plan);
    free(console);
}

cli_console *cli_console_make(const wb_console_config *config, const cli_hosted *hosted, size_t count)
{
    cli_console *console = wb_alloc_zero(1, sizeof *console);
    json_t *plan = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(plan, plan_of(hosted[i].setup));
    console->asked = cli_asked_make(hosted, count);
    console->console = (wb_console){ .config = config,
                                     .assets = wb_assets,
                                     .asset_count = wb_asset_count,
                                     .plan = plan,
                                     .deeds = cli_asked_deeds(console->asked),
                                     .history = wb_history_make(count) };
    console->console.desk = wb_desk_open(&console->console.deeds);
    if (console->console.desk)
        return console;
    discard(console);
    return NULL;
}

int cli_console_free(cli_console *console)
{
    if (!console)
        return 1;
    if (!wb_desk_end(console->console.desk, LAST_ANSWER))
        return 0;
    discard(console);
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/overdue.h"

#include <sysexits.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/pipeline/call.h"

#define LOOK_EVERY (10 * WB_MILLISECOND)

/* Of all endpoints; *ret_overdue: of those, beyond their time. */
static unsigned count_working(const cli_hosted *hosted, size_t count, unsigned *ret_overdue)
{
    unsigned working = 0;
    *ret_overdue = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned overdue = 0;
        if (hosted[i].endpoint)
            working += wb_endpoint_working(hosted[i].endpoint, &overdue);
        *ret_overdue += overdue;
    }
    return working;
}

int cli_overdue_is_there(const cli_hosted *hosted, size_t count)
{
    unsigned overdue;
    (void)count_working(hosted, count, &overdue);
    return overdue != 0;
}

static int do_others_work(const cli_hosted *hosted, size_t count)
{
    unsigned overdue, working = count_working(hosted, count, &overdue);
    return working > overdue;
}

void cli_overdue_end(const cli_hosted *hosted, size_t count, cli_guard *guard)
{
    const int64_t until = wb_clock_monotonic() + CLI_OVERDUE_GRACE;
    wb_log_write(WB_LOG_ERROR, "ends for a handler that does not return: finishing what else is in flight", NULL, 0);
    for (size_t i = 0; i < count; i++)
        if (hosted[i].endpoint)
            wb_endpoint_stop(hosted[i].endpoint);
    while (do_others_work(hosted, count) && wb_clock_monotonic() < until)
        cli_guard_sleep(guard, LOOK_EVERY);
    wb_call_end_process(EX_SOFTWARE);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/cli.h"
#include "core/config/units.h"
#include "core/message/outgoing.h"

int cli_read_when(const char *delay, const char *at, cli_when *ret_when)
{
    *ret_when = (cli_when){ 0, 0 };
    if (delay && at)
        return cli_fail(EX_USAGE, "only one of --delay and --at can be given");
    if (delay && (wb_duration_parse(delay, &ret_when->delay) != WB_UNIT_OK || ret_when->delay < 0))
        return cli_fail(EX_USAGE, "--delay \"%s\" is not a duration like 10s, 2h or 7d", delay);
    if (at && wb_time_parse(at, &ret_when->at) != WB_UNIT_OK)
        return cli_fail(EX_USAGE, "--at \"%s\" is not a time like 2026-12-31T08:00:00Z (UTC)", at);
    if (ret_when->delay > WB_OUTGOING_DELAY_MAX || ret_when->at > wb_clock_wall() + WB_OUTGOING_DELAY_MAX)
        return cli_fail(EX_USAGE, "%s \"%s\" is more than 3650 days away", delay ? "--delay" : "--at", delay ? delay : at);
    return EX_OK;
}

const char *cli_format_span(int64_t span, char text[CLI_SPAN_SIZE])
{
    static const struct {
        int64_t size;
        const char *name;
    } units[] = { { WB_DAYS, "d" }, { WB_HOURS, "h" }, { WB_MINUTES, "min" }, { WB_SECOND, "s" } };
    size_t at = 0;
    while (units[at].size > WB_SECOND && span < 2 * units[at].size)
        at++;
    (void)snprintf(text, CLI_SPAN_SIZE, "%" PRId64 " %s", span / units[at].size, units[at].name);
    return text;
}

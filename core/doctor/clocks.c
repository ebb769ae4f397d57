/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/doctor/clocks.h"

#include "core/base/clock.h"
#include "core/config/units.h"
#include "core/plugin/instance.h"

#define REMEDY "have both keep time by NTP: timedatectl set-ntp true (systemd-timesyncd, or chrony), on the host that is wrong"

/* By how much it is ahead at least; below 0: behind. */
static int64_t ahead(int64_t before, int64_t wall, int64_t after)
{
    return wall > after ? wall - after : wall < before ? wall - before : 0;
}

static void judge(int64_t difference, const wb_finding_place *at, wb_findings *findings)
{
    char span[WB_UNIT_TEXT_SIZE];
    const int64_t size = difference < 0 ? -difference : difference;
    if (size <= WB_CLOCKS_DIFFER)
        return;
    (void)wb_duration_format((size + WB_SECOND / 2) / WB_SECOND * WB_SECOND, span);
    wb_findings_add(findings, at, WB_FINDING_WARNING, "clocks-differ", REMEDY,
                    "the database's clock is %s %s this host's: ages of ids and due times go by the database, times in "
                    "messages by this host, so what expires, or is delayed by others, does so early or late",
                    span, difference < 0 ? "behind" : "ahead of");
}

int wb_clocks_compare(const wb_persistence_ops *ops, wb_persistence *persistence, const wb_finding_place *at,
                      wb_findings *findings, wb_error *error)
{
    wb_storage_session *session = NULL;
    int64_t wall = 0;
    if (!WB_HAS(ops, wb_persistence_ops, clock))
        return WB_OK;
    int r = wb_persistence_open(ops, persistence, &session, error);
    if (r != WB_OK)
        return r;
    const int64_t before = wb_clock_wall();
    r = ops->clock(session, &wall, error);
    if (r == WB_OK)
        judge(ahead(before, wall, wb_clock_wall()), at, findings);
    ops->close(session);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/ages.h"

#include <inttypes.h>
#include <stdio.h>

#define MILLISECOND INT64_C(1000000)
/* 2020-01-01 UTC, where batch numbers begin; milliseconds stand above the lowest 22 bits. */
#define EPOCH (INT64_C(1577836800000) * MILLISECOND)
#define TIME_SHIFT 22

#define TOLERANCE (5 * 60 * 1000 * MILLISECOND)

static int64_t time_of(uint64_t batch)
{
    return (int64_t)(batch >> TIME_SHIFT) * MILLISECOND + EPOCH;
}

uint64_t wb_sql_future(int64_t now)
{
    const int64_t since = now + TOLERANCE - EPOCH;
    return since > 0 ? (uint64_t)(since / MILLISECOND) << TIME_SHIFT : 0;
}

/* "17", or "10000 or more". */
static void describe(char *text, size_t size, uint64_t count)
{
    (void)snprintf(text, size, "%" PRIu64 "%s", count,
                   count >= WB_SQL_FUTURE_MAX ? " or more" : "");
}

void wb_sql_report_future(const wb_host *host, uint64_t records, uint64_t pending,
                          uint64_t newest, int64_t now)
{
    char records_text[40], pending_text[40], ahead[32];
    const wb_field fields[] = { { "records", records_text },
                                { "pending", pending_text },
                                { "seconds_ahead", ahead } };

    if (!records && !pending)
        return;
    describe(records_text, sizeof records_text, records);
    describe(pending_text, sizeof pending_text, pending);
    (void)snprintf(ahead, sizeof ahead, "%" PRId64,
                   newest ? (time_of(newest) - now) / (1000 * MILLISECOND) : 0);
    host->log(host, WB_LOG_WARNING,
              "outbox records from the future are left alone: a clock was wrong when they were "
              "written",
              fields, records ? 3 : 2);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"

#define PERIOD (60 * WB_SECOND)
#define NUMBER_SIZE 24
/* The first four kinds are on every line. */
#define SHOWN_ALWAYS (WB_TALLY_DUPLICATES + 1)

/* A line with its fields' texts. */
typedef struct {
    wb_field fields[WB_TALLY_TOLD + 3];
    char texts[WB_TALLY_TOLD + 2][NUMBER_SIZE];
    size_t count, numbers;
} line;

static void add_number(line *l, const char *name, uint64_t number)
{
    char *text = l->texts[l->numbers++];
    (void)snprintf(text, NUMBER_SIZE, "%" PRIu64, number);
    l->fields[l->count++] = (wb_field){ name, text };
}

static void make(line *l, const char *endpoint, const wb_counts *counts)
{
    l->numbers = l->count = 0;
    l->fields[l->count++] = (wb_field){ "endpoint", endpoint };
    for (int kind = 0; kind < WB_TALLY_TOLD; kind++)
        if (kind < SHOWN_ALWAYS || counts->of[kind])
            add_number(l, wb_tally_name((wb_tally_kind)kind), counts->of[kind]);
    if (counts->expired)
        add_number(l, "expired", counts->expired);
    add_number(l, "waiting", counts->waiting);
}

/* One that waits for its servers has done nothing. */
static wb_counts counts_of(const cli_hosted *one)
{
    wb_counts counts = { 0 };
    if (one->endpoint)
        wb_endpoint_counts(one->endpoint, &counts);
    return counts;
}

/* @return whether there are any. */
static int subtract(const wb_counts *now, const wb_counts *before, wb_counts *ret_difference)
{
    uint64_t any = now->expired - before->expired;
    *ret_difference = (wb_counts){ .expired = any, .waiting = now->waiting };
    for (int kind = 0; kind < WB_TALLY_TOLD; kind++)
        any |= ret_difference->of[kind] = now->of[kind] - before->of[kind];
    return any != 0;
}

static void tell_minute(cli_hosted *one)
{
    const wb_counts now = counts_of(one);
    wb_counts difference;
    line l;
    if (!subtract(&now, &one->told, &difference))
        return;
    one->told = now;
    make(&l, one->setup->config->name, &difference);
    wb_log_write(WB_LOG_INFO, "in the last minute", l.fields, l.count);
}

void cli_counts_look(cli_counts *counts, cli_hosted *hosted, size_t count, int64_t now)
{
    if (now < counts->due)
        return;
    for (size_t i = 0; counts->due && i < count; i++)
        tell_minute(&hosted[i]);
    counts->due = now + wb_test_period(PERIOD);
}

void cli_counts_tell(const cli_hosted *hosted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const wb_counts now = counts_of(&hosted[i]);
        line l;
        make(&l, hosted[i].setup->config->name, &now);
        wb_log_answer(WB_LOG_INFO, "since the start", l.fields, l.count);
    }
}

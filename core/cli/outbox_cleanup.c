/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox cleanup: remove what is older than the retention, in the steps and at the pace of the
 * cleaner, beside which it may run: the persistence lets one step be made at a time.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/outbox.h"
#include "core/cli/progress.h"
#include "core/config/units.h"
#include "core/message/ids.h"

/* A dry run counts no further unless it is told to. */
#define COUNTED_MAX 1000000
/* Another's step takes milliseconds; who is kept out for so long is kept out by something else. */
#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)

static int check(const cli_outbox *o)
{
    char retention[WB_UNIT_TEXT_SIZE];
    const wb_endpoint_config *config = o->setup->config;
    if (!wb_endpoint_owns_tables(o->endpoint))
        return cli_fail(EX_CONFIG, "endpoint \"%s\": its records are those of \"%s\", whose retention counts: clean up there",
                        config->name, config->session.processor_endpoint);
    if (!WB_HAS(o->ops, wb_persistence_ops, count_records) ||
        (o->store.ops && !WB_HAS(o->store.ops, wb_persistence_ops, count_records)))
        return cli_fail(EX_UNAVAILABLE, "endpoint \"%s\": its persistence, or deduplication store, cannot count records", config->name);
    if (o->older_than >= 0 && o->older_than < config->outbox.retention && !o->is_forced)
        return cli_fail(EX_USAGE,
                        "--older-than is less than the retention of endpoint \"%s\", %s: a message that comes back "
                        "would be handled twice; --force removes its id all the same",
                        config->name, wb_duration_format(config->outbox.retention, retention));
    return EX_OK;
}

static int count(cli_outbox *o, const wb_records *records, uint64_t before, size_t limit, uint64_t *count)
{
    uint64_t more = 0;
    int r = records->ops->count_records(records->session, 0, before, limit, &more, &o->error);
    *count += more;
    return r;
}

static int print_count(cli_outbox *o, const wb_records *own, uint64_t before)
{
    uint64_t count_of_all = 0;
    size_t limit = o->is_exact ? SIZE_MAX : COUNTED_MAX;
    if (count(o, own, before, limit, &count_of_all) != WB_OK ||
        (o->store.ops && count(o, &o->store, before, limit, &count_of_all) != WB_OK))
        return cli_outbox_fail(o);
    if (o->is_json)
        cli_outbox_print_json(json_pack("{s:I, s:s}", "would_remove", (json_int_t)count_of_all, "is",
                                        count_of_all >= limit ? "at least" : "exact"));
    else
        (void)printf("would remove: %" PRIu64 "%s records\n", count_of_all, count_of_all >= limit ? " or more" : "");
    return EX_OK;
}

/* A step that removes nothing while there is something has met another's. */
static int wait_or_end(cli_outbox *o, const wb_records *records, uint64_t before, int64_t *since, uint64_t *ret_left)
{
    int r = records->ops->count_records(records->session, 0, before, 1, ret_left, &o->error);
    if (r == WB_OK && *ret_left && !*since)
        *since = wb_clock_monotonic();
    if (r == WB_OK && *ret_left)
        wb_clock_pause(PAUSE, NULL);
    return r;
}

static int remove_all(cli_outbox *o, const wb_records *records, uint64_t before, uint64_t *removed, uint64_t *left)
{
    int64_t since = 0; /* when another was met */
    wb_cleaner_pace pace = wb_cleaner_pace_init();
    size_t step;
    int r = WB_OK;
    *left = 1;
    while (r == WB_OK && *left && (!since || wb_clock_monotonic() - since < PATIENCE)) {
        r = wb_clean_up_step(o->pipeline, records, before, &pace, WB_NEVER, &step, &o->error);
        *removed += step;
        cli_progress_set(*removed);
        if (step)
            since = 0;
        else if (r == WB_OK)
            r = wait_or_end(o, records, before, &since, left);
    }
    return r;
}

static void print(const cli_outbox *o, uint64_t removed, int is_kept_out)
{
    if (o->is_json)
        cli_outbox_print_json(json_pack("{s:I, s:b}", "removed", (json_int_t)removed, "another_cleans_up", is_kept_out));
    else
        (void)printf("removed: %" PRIu64 " records\n", removed);
}

int cli_outbox_cleanup(cli_outbox *o)
{
    const wb_records own = { o->ops, o->session };
    uint64_t removed = 0, left = 0, left_in_store = 0;
    int64_t age = o->older_than < 0 ? o->setup->config->outbox.retention : o->older_than;
    uint64_t before = wb_batch_number_at(o->now - age);
    int code = check(o);
    if (code != EX_OK)
        return code;
    if (o->is_dry)
        return print_count(o, &own, before);
    cli_progress_begin("removing", "records", 0, 0);
    int r = remove_all(o, &own, before, &removed, &left);
    if (r == WB_OK && o->store.ops)
        r = remove_all(o, &o->store, before, &removed, &left_in_store);
    cli_progress_end();
    left += left_in_store;
    print(o, removed, r == WB_OK && left);
    if (r != WB_OK)
        return cli_outbox_fail(o);
    return left ? cli_fail(EX_TEMPFAIL, "endpoint \"%s\": another instance is cleaning up, and the rest is left to it",
                           o->setup->config->name)
                : EX_OK;
}

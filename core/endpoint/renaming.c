/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/renaming.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/endpoint/subscribed.h"

/* While senders fill the queue anew, and until the server has heard that our own receiver is gone: ten seconds in all. */
#define ROUNDS 24
#define PAUSE_FIRST (10 * WB_MILLISECOND)
#define PAUSE_LONGEST (500 * WB_MILLISECOND)

/* An endpoint's setup under one of its names. It must not be copied: parts of it point to others. */
typedef struct alias {
    wb_endpoint_config config;
    wb_endpoint_setup setup;
    char store_name[512];
    wb_endpoint *endpoint;
} alias;

/* ---- one endpoint, two names ---------------------------------------------------------------- */

static void fill_alias(alias *a, const wb_endpoint_setup *setup, const char *name)
{
    a->config = *setup->config;
    a->config.name = name;
    a->setup = *setup;
    a->setup.config = &a->config;
    a->setup.info.name = name;
    a->setup.persistence_info.name = name;
    (void)snprintf(a->store_name, sizeof a->store_name, "%s dedup", name);
    a->setup.store_info.name = a->store_name;
    a->endpoint = NULL;
}

/* The former one is emptied: its queue alone, not the topics of events, and message by message. */
static void fill_former(alias *a, const wb_endpoint_setup *setup, const char *name)
{
    fill_alias(a, setup, name);
    a->setup.info.type_count = 0;
    a->setup.info.mode = WB_MODE_RECEIVE_ONLY;
    a->setup.info.concurrency = 1;
}

static const wb_pipeline *pipeline_of(const alias *a)
{
    return wb_endpoint_pipeline(a->endpoint);
}

/* ---- 5 and 6 ---------------------------------------------------------------------------------- */

/* Senders that have not heard of the new name may still fill the queue. A receiver is opened only for what is there: it
 * would itself be a reader of which the server hears late that it is gone. */
static int empty_and_remove(const alias *former, const alias *later, wb_renaming *renaming, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(former);
    wb_transport_depth depth = { .struct_size = sizeof depth };
    int r = p->transport_ops->depth(p->transport, &depth, error);
    for (int round = 0; r == WB_OK && depth.is_installed; round++) {
        if (round == 0 || depth.messages)
            r = wb_transfer_run(former->endpoint, later->endpoint, &renaming->transferred, error);
        if (r == WB_OK)
            r = p->transport_ops->uninstall(p->transport, 0, error);
        wb_crash_point("rename_removed");
        if (r != WB_REJECT || round == ROUNDS)
            return r;
        wb_clock_pause(wb_clock_backoff(PAUSE_FIRST, (unsigned)round, PAUSE_LONGEST), NULL);
        depth = (wb_transport_depth){ .struct_size = sizeof depth };
        r = p->transport_ops->depth(p->transport, &depth, error);
    }
    return r;
}

/* ---- a name that was installed again -------------------------------------------------------------- */

static int has_store(const alias *a, int *ret_has, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(a);
    int r = p->apart_ops->verify(p->apart, error);
    *ret_has = r == WB_OK;
    return r != WB_OK && error->cause == WB_CAUSE_MISSING ? WB_OK : r;
}

/* Its store was renamed after its tables, so what it has may still be the first one's. */
static int remove_second_store(const alias *former, const alias *later, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(former);
    int has = 0;
    int r = p->apart_ops ? has_store(later, &has, error) : WB_OK;
    return r == WB_OK && has ? p->apart_ops->uninstall(p->apart, error) : r;
}

/* The tables last: as long as they are there it can be told what is to be removed. */
static int remove_second(const alias *former, const alias *later, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(former);
    int r = remove_second_store(former, later, error);
    wb_crash_point("rename_second_store");
    return r == WB_OK ? p->persistence_ops->uninstall(p->persistence, error) : r;
}

/* ---- 1 to 4 ------------------------------------------------------------------------------------ */

static int rename_tables(const alias *former, const alias *later, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(later);
    int r = wb_endpoint_owns_tables(later->endpoint)
                ? p->persistence_ops->rename(p->persistence, former->config.name, error)
                : WB_OK;
    wb_crash_point("rename_tables");
    if (r == WB_OK && p->apart_ops)
        r = p->apart_ops->rename(p->apart, former->store_name, error);
    return r;
}

/* Of the former one: what is handled now, which it may have bound before there was a record, and all of the record, which is
 * the new one's by now. */
static int end_subscriptions(const alias *former, const alias *later, wb_arena *arena, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(former);
    wb_subscribed all, unhandled;
    if (!wb_subscribed_can_end(&former->setup))
        return WB_OK;
    const alias *recorded = wb_subscribed_is_recorded(&later->setup) ? later : former;
    int r = p->transport_ops->unsubscribe(p->transport, later->setup.info.types, later->setup.info.type_count, error);
    if (r == WB_OK)
        r = wb_subscribed_find(&recorded->setup, pipeline_of(recorded), 1, arena, &all, error);
    if (r == WB_OK && all.count)
        r = p->transport_ops->unsubscribe(p->transport, all.types, all.count, error);
    if (r == WB_OK)
        r = wb_subscribed_find(&recorded->setup, pipeline_of(recorded), 0, arena, &unhandled, error);
    return r == WB_OK ? wb_subscribed_forget(&later->setup, pipeline_of(later), &unhandled, error) : r;
}

static int take_over(const alias *later, const char *former, wb_error *error)
{
    const wb_pipeline *p = pipeline_of(later);
    return WB_HAS(p->transport_ops, wb_transport_ops, take_over) ? p->transport_ops->take_over(p->transport, former, error)
                                                                : WB_OK;
}

/* The former name was installed again, after its tables had got the other one. */
static int are_both(const wb_renaming *renaming)
{
    return renaming->remains.has_tables && renaming->arrived.has_tables;
}

static int run_steps(const alias *former, const alias *later, wb_renaming *renaming, wb_arena *arena, wb_error *error)
{
    int r = wb_notes_keep_rename(later->endpoint, renaming->former, WB_RENAME_BEGUN, error);
    if (r != WB_OK)
        return r;
    renaming->is_begun = 1;
    if (are_both(renaming))
        r = remove_second(former, later, error);
    if (r == WB_OK)
        r = rename_tables(former, later, error);
    if (r == WB_OK)
        r = wb_endpoint_install(later->endpoint, error);
    wb_crash_point("rename_installed");
    if (r == WB_OK) /* it may have had that name before: what is moved would pass for what was handled then */
        r = wb_endpoint_check_positions(later->endpoint, 1, error);
    if (r == WB_OK)
        r = take_over(later, renaming->former, error);
    wb_crash_point("rename_taken_over");
    if (r == WB_OK)
        r = end_subscriptions(former, later, arena, error);
    wb_crash_point("rename_unsubscribed");
    if (r == WB_OK)
        r = empty_and_remove(former, later, renaming, error);
    return r == WB_OK ? wb_notes_keep_rename(later->endpoint, renaming->former, WB_RENAME_OVER, error) : r;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static int runs(const wb_renaming *renaming)
{
    return renaming->remains.queue.readers || renaming->arrived.queue.readers;
}

/* What it keeps of others' failures goes along: it is sent by nobody's doing, and not to the former queue. */
static int waits(const wb_remains *remains)
{
    return wb_removal_rows(remains) != remains->failed;
}

static int must_refuse(const wb_renaming *renaming)
{
    return runs(renaming) || (waits(&renaming->remains) && !renaming->is_forced);
}

static int is_nowhere(const wb_remains *remains)
{
    return !remains->queue.is_installed && !remains->has_tables;
}

/* Its second tables can go, but not with what waits in them. */
static int refuse_both(const wb_renaming *renaming, wb_error *error)
{
    if (wb_removal_rows(&renaming->remains))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_MISMATCH, 0,
                            "\"%s\" and \"%s\" both have tables, and in those of \"%s\" something waits: run it under that "
                            "name until nothing does (waybill run --drain), and repeat this with --force",
                            renaming->former, renaming->name, renaming->former);
    if (renaming->is_forced)
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISMATCH, 0,
                        "\"%s\" and \"%s\" both have tables, as when the first was installed again after it had been renamed: "
                        "--force removes the tables of \"%s\", with the ids that it handled since, and moves what waits in its "
                        "queue to \"%s\"; if they are two endpoints, uninstall one of them",
                        renaming->former, renaming->name, renaming->former, renaming->name);
}

/* Its tables are the new name's, then, and it is another call's that died; or it is no endpoint of ours, whatever there is. */
static int check_former(const alias *later, const wb_renaming *renaming, wb_error *error)
{
    const wb_remains *former = &renaming->remains;
    if (former->has_tables || renaming->state == WB_RENAME_BEGUN || renaming->is_done)
        return WB_OK;
    if (is_nowhere(former))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0,
                            "nothing is installed under the name \"%s\", and no rename of it to \"%s\" is left to complete: is "
                            "it misspelt?", renaming->former, renaming->name);
    if (!wb_notes_are_kept(later->endpoint) || renaming->is_forced)
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0,
                        "\"%s\" has a queue and no tables, and no rename of it to \"%s\" is left to complete, so it may be "
                        "somebody else's: --force moves what is in it all the same, and removes it", renaming->former, renaming->name);
}

/* What is in the former queue would be somebody else's then, who is down just now. Where it is the new one's, which a call
 * before made, the tables had that name first. */
static int check_arrived(const alias *later, const wb_renaming *renaming, wb_error *error)
{
    if (!wb_removal_is_foreign(later->endpoint, &renaming->arrived) || renaming->state == WB_RENAME_BEGUN ||
        renaming->is_forced)
        return WB_OK;
    return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0,
                        "\"%s\" has a queue and no tables, so it may be somebody else's, who would get what is for \"%s\": "
                        "choose another name; --force takes that queue, with what is in it", renaming->name, renaming->former);
}

/* One of the names is misspelt; or it is a queue of somebody else, which would be emptied, or filled. */
static int check_names(const alias *later, const wb_renaming *renaming, wb_error *error)
{
    const wb_remains *former = &renaming->remains, *arrived = &renaming->arrived;
    if (is_nowhere(former) && is_nowhere(arrived))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0, "nothing is installed under the name \"%s\", nor under \"%s\"",
                            renaming->former, renaming->name);
    if (wb_endpoint_owns_tables(later->endpoint) && !former->has_tables && !arrived->has_tables && !renaming->is_forced)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_MISSING, 0,
                            "neither \"%s\" nor \"%s\" has tables, so the queue may be somebody else's: --force renames it "
                            "all the same", renaming->former, renaming->name);
    if (are_both(renaming))
        return runs(renaming) ? WB_OK : refuse_both(renaming, error);
    int r = check_former(later, renaming, error);
    return r == WB_OK ? check_arrived(later, renaming, error) : r;
}

static int look(const alias *former, const alias *later, wb_renaming *renaming, wb_error *error)
{
    int r = wb_removal_look(&former->setup, former->endpoint, &renaming->remains, error);
    if (r == WB_OK)
        r = wb_removal_look(&later->setup, later->endpoint, &renaming->arrived, error);
    if (r == WB_OK)
        r = wb_notes_find_rename(later->endpoint, renaming->former, &renaming->state, error);
    renaming->is_done = renaming->state == WB_RENAME_OVER && is_nowhere(&renaming->remains);
    if (r == WB_OK)
        r = check_names(later, renaming, error);
    renaming->is_refused = r == WB_OK && must_refuse(renaming);
    return r;
}

static int look_and_rename(const alias *former, const alias *later, wb_renaming *renaming, int is_dry, wb_error *error)
{
    wb_arena arena;
    int r = look(former, later, renaming, error);
    if (r != WB_OK || is_dry || renaming->is_refused || renaming->is_done)
        return r;
    wb_arena_init(&arena, 4096);
    r = run_steps(former, later, renaming, &arena, error);
    wb_arena_free(&arena);
    return r;
}

static int run(const wb_endpoint_setup *setup, wb_renaming *renaming, int is_dry, wb_error *error)
{
    alias former, later;
    fill_former(&former, setup, renaming->former);
    fill_alias(&later, setup, renaming->name);
    int r = wb_endpoint_create(&former.setup, &former.endpoint, error);
    if (r == WB_OK)
        r = wb_endpoint_create(&later.setup, &later.endpoint, error);
    if (r == WB_OK)
        r = look_and_rename(&former, &later, renaming, is_dry, error);
    wb_endpoint_destroy(later.endpoint);
    wb_endpoint_destroy(former.endpoint);
    return r;
}

int wb_renaming_run(const wb_endpoint_setup *setup, wb_renaming *renaming, wb_error *error)
{
    return run(setup, renaming, 0, error);
}

int wb_renaming_look(const wb_endpoint_setup *setup, wb_renaming *renaming, wb_error *error)
{
    return run(setup, renaming, 1, error);
}

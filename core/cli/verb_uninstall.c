/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "core/base/arena.h"
#include "core/cli/cli.h"
#include "core/cli/remains.h"
#include "core/endpoint/removal.h"

#define DRY_RUN CLI_LONG_OPTION(1)
#define FORCE CLI_LONG_OPTION(2)
#define ERROR_QUEUES CLI_LONG_OPTION(3)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { DRY_RUN, "dry-run", NULL, "say what would be removed, and change nothing" },
    { FORCE, "force", NULL, "even with what waits: it is lost; even a queue without the endpoint's tables" },
    { ERROR_QUEUES, "error-queues", NULL, "also its error queues, each if it is empty and no other endpoint of the file has it" },
    CLI_OPTION_END,
};

/* ---- error queues ------------------------------------------------------------------------- */

typedef struct {
    const wb_setup *setup;
    const wb_endpoint_setup *one;
    const cli_values *values;
    wb_endpoint_setup own; /* the endpoint's, with those error queues alone that go with it */
    const char **types;    /* of types, in `own` */
} removing;

/* Who stays, and has a use for it. Of all that are removed the last one's goes; another plugin's queue is another one. */
static const wb_endpoint_setup *user_of(const removing *r, const char *queue)
{
    const int is_alone = r->values->value['e'] != NULL;
    for (size_t i = 0; i < r->setup->endpoint_count; i++) {
        const wb_endpoint_setup *other = &r->setup->endpoints[i];
        if (other != r->one && (is_alone || other > r->one) && other->transport == r->one->transport &&
            wb_config_uses(other->config, queue))
            return other;
    }
    return NULL;
}

static int goes(const removing *r, const char *queue)
{
    return r->values->value[ERROR_QUEUES] && !user_of(r, queue);
}

static void choose_error_queues(removing *r)
{
    const wb_endpoint_info *all = &r->one->info;
    wb_endpoint_info *info = &r->own.info;
    r->own = *r->one;
    info->name = r->one->config->name; /* of who keeps failures that is not its queue, which stays */
    info->queues = NULL;
    info->queue_count = 0;
    r->types = wb_alloc((all->error_queue_count + 1) * sizeof *r->types);
    info->error_queue = all->error_queue && goes(r, all->error_queue) ? all->error_queue : NULL;
    info->error_queue_count = 0;
    for (size_t i = 0; i < all->error_queue_count; i++)
        if (goes(r, all->error_queues[i]))
            r->types[info->error_queue_count++] = all->error_queues[i];
    info->error_queues = r->types;
}

static void tell_user(const removing *r, const char *queue)
{
    const wb_endpoint_setup *user = queue ? user_of(r, queue) : NULL;
    if (user)
        (void)printf("queue \"%s\" stays: endpoint \"%s\" has a use for it\n", queue, user->config->name);
}

/* Of those that stay for another one that is removed behind it nobody needs to know. */
static void tell_users(const removing *r)
{
    const wb_endpoint_info *all = &r->one->info;
    if (!r->values->value[ERROR_QUEUES] || !r->values->value['e'])
        return;
    tell_user(r, all->error_queue);
    for (size_t i = 0; i < all->error_queue_count; i++)
        tell_user(r, all->error_queues[i]);
}

/* ---- the endpoint ------------------------------------------------------------------------- */

static void print_plan(const removing *removal, const wb_remains *remains)
{
    const wb_endpoint_setup *setup = removal->one;
    const wb_endpoint_info *own = &removal->own.info;
    char text[CLI_REMAINS_SIZE];
    const char *name = setup->config->name;
    (void)printf("endpoint \"%s\": %s\n", name, cli_remains_text(remains, text));
    if (remains->queue.is_installed)
        (void)printf("would remove: queue \"%s\" (transport %s), and its subscriptions\n", name, setup->transport->name);
    if (remains->queue.is_installed && setup->info.error_queue && setup->info.delays == WB_DELAYS_BY_TRANSPORT)
        (void)printf("what the transport still delays to it is not counted, and would go to queue \"%s\" when it is due\n",
                     setup->info.error_queue);
    if (own->error_queue)
        (void)printf("would remove, if empty: queue \"%s\"\n", own->error_queue);
    for (size_t i = 0; i < own->error_queue_count; i++)
        (void)printf("would remove, if empty: queue \"%s\"\n", own->error_queues[i]);
    tell_users(removal);
    if (remains->has_tables)
        (void)printf("would remove: the tables of \"%s\" (persistence %s), its deduplication records with them\n", name,
                     setup->persistence->name);
    if (setup->store)
        (void)printf("would remove: its records in the deduplication store (persistence %s)\n", setup->store->name);
}

static int is_refused(const wb_remains *remains, const cli_values *values)
{
    return remains->queue.readers || ((remains->queue.messages || wb_removal_rows(remains)) && !values->value[FORCE]);
}

static int refuse_foreign(const wb_endpoint_setup *setup)
{
    return cli_fail(EX_OSFILE, "endpoint \"%s\": there is a queue of that name and none of the endpoint's tables, so it may be "
                               "somebody else's: --force removes it all the same, with what waits in it", setup->config->name);
}

/* @return an exit code. */
static int check_remains(const removing *removal, const wb_endpoint *endpoint, const wb_remains *remains)
{
    if (wb_removal_is_foreign(endpoint, remains) && !removal->values->value[FORCE])
        return refuse_foreign(removal->one);
    if (is_refused(remains, removal->values))
        return cli_remains_refuse(removal->one->config->name, remains, "removes it with what waits, which is lost");
    return EX_OK;
}

static int remove_all(const removing *removal, wb_endpoint *endpoint, const wb_remains *remains, wb_error *error)
{
    const wb_endpoint_info *own = &removal->own.info;
    const uint32_t flags = removal->values->value[FORCE] ? WB_UNINSTALL_MESSAGES : 0;
    int r = wb_removal_run(removal->one, endpoint, remains, flags, error);
    if (r == WB_OK && (own->error_queue || own->error_queue_count))
        r = wb_removal_run_error_queues(&removal->own, error);
    if (r != WB_OK)
        return r;
    tell_users(removal);
    (void)printf("endpoint \"%s\": uninstalled\n", own->name);
    return WB_OK;
}

static int look_and_remove(const removing *removal, wb_endpoint *endpoint, int *ret_code, wb_error *error)
{
    const wb_endpoint_setup *setup = removal->one;
    const cli_values *values = removal->values;
    wb_remains remains;
    int r = wb_removal_look(setup, endpoint, &remains, error);
    if (r != WB_OK)
        return r;
    if (values->value[DRY_RUN])
        print_plan(removal, &remains);
    *ret_code = check_remains(removal, endpoint, &remains);
    if (*ret_code != EX_OK || values->value[DRY_RUN])
        return WB_OK;
    return remove_all(removal, endpoint, &remains, error);
}

static int uninstall(const wb_setup *all, const wb_endpoint_setup *setup, const cli_values *values)
{
    removing removal = { .setup = all, .one = setup, .values = values };
    wb_endpoint *endpoint = NULL;
    wb_error error = { 0 };
    int code = cli_remains_check(setup);
    if (code != EX_OK)
        return code;
    choose_error_queues(&removal);
    int r = wb_endpoint_create(setup, &endpoint, &error);
    if (r == WB_OK)
        r = look_and_remove(&removal, endpoint, &code, &error);
    wb_endpoint_destroy(endpoint);
    free(removal.types);
    if (r == WB_OK)
        return code;
    return cli_fail(r == WB_REJECT ? EX_TEMPFAIL : wb_error_exit_code(&error), "endpoint \"%s\": %s", setup->config->name,
                    error.text);
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    int code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    if (values->value['e']) {
        const wb_endpoint_setup *one = cli_endpoint(setup, values->value['e']);
        code = one ? uninstall(setup, one, values) : EX_USAGE;
    } else {
        for (size_t i = 0; i < setup->endpoint_count && code == EX_OK; i++)
            code = uninstall(setup, &setup->endpoints[i], values);
    }
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_uninstall = {
    .name = "uninstall",
    .summary = "remove the queues, subscriptions and tables of the endpoints",
    .help = "Stop the instances first. Refuses while anything waits: messages in the queue, delayed,\n"
            "written or pending ones, failed ones that are kept and unresolved. What others use stays: error and audit queues, exchanges and\n"
            "topics of events. May be run again at any time.\n"
            "Exit code 75: something waits, or an instance runs; 72: a queue of the endpoint's name is\n"
            "there and none of its tables, so that it may be somebody else's.",
    .options = options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/subscribed.h"

#include <string.h>

#include "core/base/crash.h"

typedef struct finding {
    const wb_endpoint_setup *setup;
    int all;
    wb_arena *arena;
    wb_subscribed *found;
    size_t capacity;
} finding;

/* The transport's own list, which needs no record. */
static int is_listed(const wb_endpoint_setup *setup)
{
    return WB_HAS(setup->transport_ops, wb_transport_ops, subscriptions);
}

int wb_subscribed_can_end(const wb_endpoint_setup *setup)
{
    return setup->transport && !setup->plan.send_only && (setup->transport->capabilities & WB_CAP_UNSUBSCRIBE) != 0;
}

int wb_subscribed_is_recorded(const wb_endpoint_setup *setup)
{
    return wb_subscribed_can_end(setup) && !is_listed(setup) && setup->persistence &&
           (setup->persistence->capabilities & WB_CAP_SUBSCRIPTIONS) != 0;
}

int wb_subscribed_is_known(const wb_endpoint_setup *setup)
{
    return wb_subscribed_can_end(setup) && (is_listed(setup) || wb_subscribed_is_recorded(setup));
}

int wb_subscribed_note(const wb_endpoint_setup *setup, const wb_pipeline *p, wb_error *error)
{
    if (!wb_subscribed_is_recorded(setup) || !setup->info.type_count)
        return WB_OK;
    int r = p->persistence_ops->note_subscriptions(p->persistence, setup->info.types, setup->info.type_count, 0, error);
    wb_crash_point("subscriptions_noted");
    return r;
}

static int is_handled(const wb_handler_set *handlers, const char *type)
{
    return handlers->other || wb_handlers_find(handlers, type, strlen(type));
}

static int take_type(void *argument, const char *type)
{
    finding *f = argument;
    wb_subscribed *found = f->found;
    if (!f->all && is_handled(&f->setup->handlers, type))
        return WB_OK;
    if (found->count == f->capacity) {
        const char **grown = wb_arena_alloc(f->arena, (f->capacity = 2 * f->capacity + 16) * sizeof *grown);
        if (found->count)
            memcpy(grown, found->types, found->count * sizeof *grown);
        found->types = grown;
    }
    found->types[found->count++] = wb_arena_copy(f->arena, type, strlen(type) + 1);
    return WB_OK;
}

int wb_subscribed_find(const wb_endpoint_setup *setup, const wb_pipeline *p, int all, wb_arena *arena,
                       wb_subscribed *ret_subscribed, wb_error *error)
{
    finding f = { .setup = setup, .all = all, .arena = arena, .found = ret_subscribed };
    *ret_subscribed = (wb_subscribed){ .count = 0 };
    if (!wb_subscribed_is_known(setup))
        return WB_OK;
    if (is_listed(setup))
        return p->transport_ops->subscriptions(p->transport, take_type, &f, error);
    return p->persistence_ops->subscriptions(p->persistence, take_type, &f, error);
}

int wb_subscribed_forget(const wb_endpoint_setup *setup, const wb_pipeline *p, const wb_subscribed *subscribed,
                         wb_error *error)
{
    if (!wb_subscribed_is_recorded(setup) || !subscribed->count)
        return WB_OK;
    return p->persistence_ops->note_subscriptions(p->persistence, subscribed->types, subscribed->count, 1, error);
}

int wb_subscribed_end(const wb_endpoint_setup *setup, const wb_pipeline *p, const wb_subscribed *subscribed, wb_error *error)
{
    if (!subscribed->count)
        return WB_OK;
    int r = p->transport_ops->unsubscribe(p->transport, subscribed->types, subscribed->count, error);
    wb_crash_point("unsubscribed");
    return r == WB_OK ? wb_subscribed_forget(setup, p, subscribed, error) : r;
}

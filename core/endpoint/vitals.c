/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/vitals.h"

static void take_servers(wb_pipeline *p, wb_vitals *v)
{
    wb_dependency *const servers[WB_VITALS_SERVERS] = { [WB_DEPENDENCY_BROKER] = &p->broker,
                                                        [WB_DEPENDENCY_DATABASE] = &p->database,
                                                        [WB_DEPENDENCY_APART] = &p->apart_server };
    v->has_server[WB_DEPENDENCY_BROKER] = 1;
    v->has_server[WB_DEPENDENCY_DATABASE] = p->persistence_ops != NULL;
    v->has_server[WB_DEPENDENCY_APART] = p->apart_ops != NULL;
    for (size_t i = 0; i < WB_VITALS_SERVERS; i++)
        v->is_away[i] = wb_dependency_is_away(servers[i]);
}

static void take_breakers(const wb_pipeline *p, wb_vitals *v)
{
    v->is_open[WB_BREAKER_STORE] = atomic_load(&p->store_breaker.is_open);
    v->is_open[WB_BREAKER_FETCH] = atomic_load(&p->fetch_breaker.is_open);
    v->is_open[WB_BREAKER_DISPATCH] = atomic_load(&p->dispatch_breaker.is_open);
}

static void take_backlog(const wb_gauge *gauge, wb_vitals *v)
{
    v->has_backlog = gauge && atomic_load(&gauge->is_known);
    if (!v->has_backlog)
        return;
    v->pending_rows = atomic_load(&gauge->rows);
    v->parked_rows = atomic_load(&gauge->parked);
    v->oldest_age = atomic_load(&gauge->age);
}

void wb_vitals_take(wb_endpoint *e, wb_vitals *ret_vitals)
{
    wb_pipeline *p = wb_endpoint_pipeline(e);
    unsigned overdue, working = wb_endpoint_working(e, &overdue);
    wb_health_facts facts;
    wb_endpoint_facts(e, &facts);
    *ret_vitals = (wb_vitals){ .working = working,
                               .stuck = facts.stuck,
                               .workers = working + wb_endpoint_missing(e),
                               .is_limited = facts.is_limited,
                               .limitings = atomic_load(&p->rate.times),
                               .has_store = wb_endpoint_keeps_delayed(e) };
    wb_endpoint_counts(e, &ret_vitals->counts);
    take_servers(p, ret_vitals);
    take_breakers(p, ret_vitals);
    take_backlog(wb_endpoint_gauge(e), ret_vitals);
}

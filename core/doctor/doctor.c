/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/doctor/doctor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/doctor/clocks.h"
#include "core/doctor/times.h"
#include "core/endpoint/fill.h"
#include "core/endpoint/limits.h"
#include "core/pipeline/positions.h"
#include "core/plugin/instance.h"

#define FIELDS_SIZE 1024
#define REMEDY "remedy" /* a field of a warning that says what to do */

/* One plugin of the endpoint. */
typedef struct {
    wb_host_instance host; /* first: what the plugin takes for its host is ours */
    wb_doctor *doctor;
    wb_finding_place at;
    atomic_int is_made; /* what create() warns of is known by the rehearsal */
} patient;

typedef struct {
    wb_doctor *doctor;
    const wb_endpoint_setup *setup;
    wb_pipeline pipeline;
    patient transport, persistence, store;
    int is_verified; /* transport and persistence are as they must be */
} visit;

/* ---- what plugins say ------------------------------------------------------------------- */

static const char *remedy_among(const wb_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, REMEDY) == 0)
            return fields[i].value;
    return NULL;
}

/* A plugin may have threads, which may warn. */
static void note_warning(const wb_host *host, int level, const char *text, const wb_field *fields, size_t count)
{
    patient *p = (patient *)(uintptr_t)host;
    char values[FIELDS_SIZE];
    if (level > WB_LOG_WARNING || !p->is_made)
        return;
    wb_fields_describe(fields, count, REMEDY, values, sizeof values);
    wb_findings_add(&p->doctor->findings, &p->at, WB_FINDING_WARNING, "warning-at-start", remedy_among(fields, count),
                    "%s%s", text, values);
}

/* Shorter and longer ones than ours are right. */
static void note_finding(void *argument, const wb_finding *theirs)
{
    patient *p = argument;
    wb_finding finding;
    WB_COPY(&finding, theirs);
    wb_findings_add(&p->doctor->findings, &p->at, finding.severity, finding.name, finding.remedy, "%s", finding.text);
}

static void note_error(patient *p, const char *name, const char *remedy, const wb_error *error)
{
    wb_findings_add(&p->doctor->findings, &p->at, WB_FINDING_DANGER, name, remedy, "%s", error->text);
}

static int is_away(const wb_error *error)
{
    return error->result == WB_NOT_CONNECTED || error->cause == WB_CAUSE_UNREACHABLE;
}

static void note_failure(patient *p, const wb_error *error)
{
    if (p->doctor->failure.result == WB_OK)
        p->doctor->failure = *error;
    wb_findings_add_unseen(&p->doctor->findings, &p->at, "cannot-look", error->text);
}

/* What no start would survive; of a server that is not there nothing is known. */
static void note_refusal(patient *p, const char *name, const char *remedy, const wb_error *error)
{
    if (is_away(error))
        note_failure(p, error);
    else
        note_error(p, name, remedy, error);
}

/* ---- one plugin --------------------------------------------------------------------------- */

static void meet(visit *v, patient *p, const char *part, const wb_plugin *plugin)
{
    p->doctor = v->doctor;
    p->at = (wb_finding_place){ v->setup->config->name, part, plugin->name };
    wb_host_init(&p->host, v->setup->config->name, plugin->name);
    p->host.host.log = note_warning;
}

static uint32_t count_sessions(const wb_endpoint_setup *setup)
{
    const wb_plan *plan = &setup->plan;
    int64_t count = plan->send_only ? 0 : setup->config->concurrency;
    count += plan->outbox;                           /* the housekeeper */
    count += plan->delay_by == WB_DELAYS_BY_STORE;   /* the poller */
    count += plan->outbox && (setup->persistence->capabilities & WB_CAP_WRITTEN) != 0; /* the relay */
    if (setup->config->session.at.is_set) /* a program's pool */
        count += setup->config->session.connections;
    return (uint32_t)count;
}

static wb_examination ask_for(const visit *v, patient *p)
{
    return (wb_examination){ .struct_size = sizeof(wb_examination),
                             .outage = v->doctor->outage,
                             .sessions = count_sessions(v->setup),
                             .found = note_finding,
                             .argument = p };
}

/* What verify() refuses. @return whether it is worth asking that server more. */
static int judge(patient *p, int result, const wb_error *error)
{
    if (result == WB_OK)
        return 1;
    note_refusal(p, "does-not-start", error->cause == WB_CAUSE_MISSING ? "waybill install" : NULL, error);
    return !is_away(error);
}

static void note_unexamined(patient *p)
{
    wb_findings_add(&p->doctor->findings, &p->at, WB_FINDING_NOTE, "not-examined", NULL,
                    "the plugin only checks what the endpoint needs to start: it knows no more to look for");
}

static void examine_transport(visit *v)
{
    const wb_pipeline *w = &v->pipeline;
    patient *p = &v->transport;
    const wb_examination asked = ask_for(v, p);
    wb_error error = { 0 };
    if (!WB_HAS(w->transport_ops, wb_transport_ops, examine))
        note_unexamined(p);
    else if (w->transport_ops->examine(w->transport, &asked, &error) != WB_OK)
        note_failure(p, &error);
}

static void examine_persistence(visit *v, patient *p, const wb_persistence_ops *ops, wb_persistence *persistence)
{
    const wb_examination asked = ask_for(v, p);
    wb_error error = { 0 };
    if (!WB_HAS(ops, wb_persistence_ops, examine))
        note_unexamined(p);
    else if (ops->examine(persistence, &asked, &error) != WB_OK)
        note_failure(p, &error);
}

/* ---- the transport ----------------------------------------------------------------------- */

static void look_at_limit(visit *v)
{
    patient *p = &v->transport;
    wb_transport_limits limits;
    wb_error error = { 0 };
    if (v->setup->plan.send_only)
        return;
    if (wb_limits_ask(&v->pipeline, &limits, &error) != WB_OK)
        note_refusal(p, "delivery-limit", NULL, &error);
    else if (limits.delivery_limit == WB_LIMIT_UNKNOWN)
        wb_findings_add(&v->doctor->findings, &p->at, WB_FINDING_WARNING, "delivery-limit-unknown",
                        "transport = { management = \"http://HOST:15672\"; }, or whatever has the broker tell it",
                        "nobody can tell after how many deliveries the broker drops a message: %d are assumed, and with a "
                        "lower one messages that end their process are lost",
                        WB_DELIVERY_LIMIT_ASSUMED);
}

static int make_transport(visit *v)
{
    const wb_endpoint_setup *setup = v->setup;
    wb_error error = { 0 };
    meet(v, &v->transport, "transport", setup->transport);
    const int r = wb_transport_create(setup->transport, &v->transport.host.host, &setup->info, setup->transport_config,
                                      &v->pipeline.transport, &error);
    v->transport.is_made = r == WB_OK;
    if (r != WB_OK)
        note_failure(&v->transport, &error);
    return r;
}

static void look_at_transport(visit *v)
{
    const wb_pipeline *w = &v->pipeline;
    wb_error error = { 0 };
    if (make_transport(v) != WB_OK)
        return;
    const int r = w->transport_ops->verify(w->transport, &error);
    if (!judge(&v->transport, r, &error))
        return;
    if (r == WB_OK)
        look_at_limit(v);
    v->is_verified = r == WB_OK;
    examine_transport(v);
}

/* ---- the persistence, and the store of ids ----------------------------------------------- */

static void look_at_storage(visit *v, patient *p, const wb_persistence_ops *ops, wb_persistence *persistence)
{
    wb_error error = { 0 };
    const int r = ops->verify(persistence, &error);
    v->is_verified = v->is_verified && r == WB_OK;
    if (!judge(p, r, &error))
        return;
    examine_persistence(v, p, ops, persistence);
    if (r == WB_OK && wb_clocks_compare(ops, persistence, &p->at, &v->doctor->findings, &error) != WB_OK)
        note_failure(p, &error);
}

static int make_storage(visit *v, patient *p, const wb_plugin *plugin, const wb_endpoint_info *info, const void *config,
                        wb_persistence **ret_persistence)
{
    wb_error error = { 0 };
    int r = wb_persistence_create(plugin, &p->host.host, info, config, ret_persistence, &error);
    if (r == WB_OK && p == &v->persistence && v->setup->plan.delay_by == WB_DELAYS_BY_STORE)
        r = wb_persistence_keep_delayed(plugin, *ret_persistence, v->setup->plan.mode, &error);
    p->is_made = r == WB_OK;
    if (r != WB_OK)
        note_failure(p, &error);
    return r;
}

static void look_at_persistence(visit *v)
{
    const wb_endpoint_setup *setup = v->setup;
    wb_pipeline *w = &v->pipeline;
    if (!setup->persistence)
        return;
    meet(v, &v->persistence, "persistence", setup->persistence);
    if (make_storage(v, &v->persistence, setup->persistence, &setup->persistence_info, setup->persistence_config,
                     &w->persistence) == WB_OK)
        look_at_storage(v, &v->persistence, w->persistence_ops, w->persistence);
}

static void look_at_store(visit *v)
{
    const wb_endpoint_setup *setup = v->setup;
    wb_pipeline *w = &v->pipeline;
    if (!setup->store)
        return;
    meet(v, &v->store, "deduplication store", setup->store);
    if (make_storage(v, &v->store, setup->store, &setup->store_info, setup->store_config, &w->apart) == WB_OK)
        look_at_storage(v, &v->store, w->apart_ops, w->apart);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Topics that were made anew: as wb_endpoint_verify() has it, and those whose ends nobody can say. */
static void look_at_positions(visit *v)
{
    const wb_pipeline *w = &v->pipeline;
    wb_storage_session *storage = NULL;
    wb_transport_session *transport = NULL;
    wb_error error = { 0 };
    if (!w->positions || !v->is_verified)
        return;
    int r = wb_persistence_open(w->persistence_ops, w->persistence, &storage, &error);
    if (r == WB_OK)
        r = wb_transport_open(w->transport_ops, w->transport, WB_SESSION_SEND, 0, &transport, &error);
    if (r == WB_OK)
        r = wb_positions_check(w, storage, transport, 1, &error);
    if (r != WB_OK)
        note_refusal(&v->persistence, "positions", NULL, &error);
    if (transport)
        w->transport_ops->close(transport);
    if (storage)
        w->persistence_ops->close(storage);
}

static void end(visit *v)
{
    wb_pipeline *w = &v->pipeline;
    if (w->apart)
        w->apart_ops->destroy(w->apart);
    if (w->persistence)
        w->persistence_ops->destroy(w->persistence);
    if (w->transport)
        w->transport_ops->destroy(w->transport);
    wb_hooks_free(&w->hooks);
    wb_pipeline_free(w);
}

void wb_doctor_examine(wb_doctor *doctor, const wb_endpoint_setup *setup)
{
    visit v = { .doctor = doctor, .setup = setup };
    wb_fill_pipeline(&v.pipeline, setup);
    look_at_transport(&v);
    look_at_persistence(&v);
    look_at_store(&v);
    look_at_positions(&v);
    wb_times_compare(setup, doctor->outage, &doctor->findings);
    end(&v);
}

void wb_doctor_read_problems(wb_doctor *doctor, const wb_problems *problems)
{
    const wb_finding_place at = { NULL, "configuration", NULL };
    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].level != WB_LOG_ERROR)
            wb_findings_add(&doctor->findings, &at, WB_FINDING_WARNING, "warning-of-check", NULL, "%s",
                            problems->items[i].text);
}

void wb_doctor_free(wb_doctor *doctor)
{
    wb_findings_free(&doctor->findings);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/metrics/status.h"

#include "core/base/clock.h"
#include "core/base/json_text.h"

/* ---- judged ------------------------------------------------------------------------------ */

int wb_status_worst(const wb_overview *overview)
{
    int worst = WB_HEALTH_RUNNING;
    for (size_t i = 0; i < overview->count; i++)
        if (overview->endpoints[i].vitals.state > worst)
            worst = overview->endpoints[i].vitals.state;
    return worst;
}

/* Nobody knows how the endpoints are now. */
static int is_of_old(const wb_overview *overview)
{
    return overview->age > WB_STATUS_OLDEST;
}

int wb_status_is_alive(const wb_overview *overview)
{
    if (is_of_old(overview))
        return 0;
    for (size_t i = 0; i < overview->count; i++)
        if (overview->endpoints[i].vitals.stuck)
            return 0;
    return 1;
}

static int is_ready(const wb_observed *one)
{
    const wb_vitals *v = &one->vitals;
    if (v->state != WB_HEALTH_RUNNING && v->state != WB_HEALTH_DEGRADED)
        return 0;
    for (size_t i = 0; i < WB_VITALS_SERVERS; i++)
        if (v->is_away[i])
            return 0;
    return one->send_only || v->working > 0;
}

int wb_status_is_ready(const wb_overview *overview)
{
    if (is_of_old(overview))
        return 0;
    for (size_t i = 0; i < overview->count; i++)
        if (!is_ready(&overview->endpoints[i]))
            return 0;
    return 1;
}

/* ---- as JSON ----------------------------------------------------------------------------- */

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *text(const char *value)
{
    return value && *value ? wb_json_text(value) : json_null();
}

static json_t *time_text(int64_t wall)
{
    char stamp[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(wall, stamp);
    return json_string(stamp);
}

static json_t *messages(const wb_vitals *v)
{
    json_t *object = json_object();
    for (int kind = 0; kind < WB_TALLY_TOLD; kind++)
        json_object_set_new(object, wb_tally_name((wb_tally_kind)kind), number(v->counts.of[kind]));
    json_object_set_new(object, "expired", number(v->counts.expired));
    json_object_set_new(object, "in_hand", number(v->counts.waiting));
    return object;
}

/* Of a histogram how many, and what they are together. */
static json_t *sum(const wb_vitals *v, wb_histogram histogram, double one)
{
    const uint64_t *numbers = &v->counts.of[wb_histogram_first(histogram)];
    uint64_t count = 0;
    for (unsigned i = 0; i <= WB_HISTOGRAM_BOUNDS; i++)
        count += numbers[i];
    return json_pack("{s:o, s:f}", "count", number(count), "sum", (double)numbers[WB_HISTOGRAM_SIZE - 1] / one);
}

static json_t *seconds(const wb_vitals *v, wb_histogram histogram)
{
    return sum(v, histogram, (double)(WB_SECOND / wb_histogram_unit(histogram)));
}

static json_t *servers(const wb_vitals *v)
{
    static const char *const names[WB_VITALS_SERVERS] = { "broker", "database", "deduplication_store" };
    json_t *object = json_object();
    for (unsigned i = 0; i < WB_VITALS_SERVERS; i++)
        if (v->has_server[i])
            json_object_set_new(object, names[i], json_string(v->is_away[i] ? "away" : "there"));
    return object;
}

static json_t *pending(const wb_vitals *v)
{
    return v->has_backlog ? json_pack("{s:o, s:f, s:o}", "rows", number(v->pending_rows), "oldest_seconds",
                                      (double)v->oldest_age / (double)WB_SECOND, "parked", number(v->parked_rows))
                          : json_null();
}

static json_t *endpoint_json(const wb_observed *one)
{
    const wb_vitals *v = &one->vitals;
    json_t *object = json_pack("{s:o, s:s, s:o, s:o, s:o, s:s, s:b, s:b}", "name", wb_json_text(one->endpoint), "state",
                               wb_health_name(v->state), "reason", text(v->reason), "transport", wb_json_text(one->transport),
                               "persistence", text(one->persistence), "transaction_mode", one->mode, "outbox",
                               one->outbox, "send_only", one->send_only);
    json_object_set_new(object, "workers", json_pack("{s:i, s:i, s:i}", "working", (int)v->working, "missing",
                                                     (int)(v->workers - v->working), "stuck", (int)v->stuck));
    json_object_set_new(object, "servers", servers(v));
    json_object_set_new(object, "messages", messages(v));
    json_object_set_new(object, "operations_sent", number(v->counts.of[WB_TALLY_SENT]));
    json_object_set_new(object, "batch_messages", sum(v, WB_HISTOGRAM_BATCH, 1));
    json_object_set_new(object, "handler_seconds", seconds(v, WB_HISTOGRAM_HANDLER));
    json_object_set_new(object, "critical_time_seconds", seconds(v, WB_HISTOGRAM_CRITICAL));
    json_object_set_new(object, "attempts_limited", json_boolean(v->is_limited));
    json_object_set_new(object, "queue_messages", v->has_depth ? number(v->queue_messages) : json_null());
    json_object_set_new(object, "pending", pending(v));
    return object;
}

json_t *wb_status_json(const wb_overview *overview)
{
    json_t *endpoints = json_array();
    for (size_t i = 0; i < overview->count; i++)
        json_array_append_new(endpoints, endpoint_json(&overview->endpoints[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:b, s:o}", "version", PACKAGE_VERSION, "state",
                     wb_health_name(wb_status_worst(overview)), "started", time_text(overview->started), "seen",
                     time_text(overview->seen), "age_seconds", (int)(overview->age / WB_SECOND), "stale",
                     is_of_old(overview), "endpoints", endpoints);
}

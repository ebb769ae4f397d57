/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/console/history.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/crash.h"

/* Of an endpoint. */
typedef struct {
    uint64_t before[WB_TALLY_KINDS]; /* its counts when the last step was over */
    wb_sample samples[WB_HISTORY_SAMPLES];
} line;

struct wb_history {
    pthread_mutex_t lock; /* guards the rest */
    size_t next, filled;  /* of samples */
    int64_t noted;        /* when the last one was, monotonic; 0: never */
    size_t count;
    line lines[];
};

wb_history *wb_history_make(size_t count)
{
    wb_history *history = wb_alloc_zero(1, sizeof *history + count * sizeof *history->lines);
    pthread_mutex_init(&history->lock, NULL);
    history->count = count;
    return history;
}

void wb_history_free(wb_history *history)
{
    if (!history)
        return;
    pthread_mutex_destroy(&history->lock);
    free(history);
}

/* ---- a sample ---------------------------------------------------------------------------- */

/* An endpoint that was made anew counts from 0. */
static uint64_t grown(const line *l, const wb_counts *counts, unsigned kind)
{
    return counts->of[kind] >= l->before[kind] ? counts->of[kind] - l->before[kind] : counts->of[kind];
}

static void take_critical(const line *l, const wb_counts *counts, wb_sample *sample)
{
    const unsigned first = wb_histogram_first(WB_HISTOGRAM_CRITICAL);
    unsigned bounds, at = 0;
    uint64_t all = 0, so_far = 0;
    const int64_t *bound = wb_histogram_bounds(WB_HISTOGRAM_CRITICAL, &bounds);
    for (unsigned i = 0; i <= bounds; i++)
        all += grown(l, counts, first + i);
    sample->critical_mean = sample->critical_high = -1;
    if (!all)
        return;
    while (at < bounds && (so_far += grown(l, counts, first + at)) * 100 < all * 95)
        at++;
    const double sum = (double)grown(l, counts, first + WB_HISTOGRAM_SIZE - 1) * (double)wb_histogram_unit(WB_HISTOGRAM_CRITICAL);
    sample->critical_mean = (float)(sum / (double)WB_SECOND / (double)all);
    sample->critical_high = (float)((double)bound[at < bounds ? at : bounds - 1] / (double)WB_SECOND);
}

static wb_sample take(const line *l, const wb_vitals *v, double seconds)
{
    wb_sample sample = { .handled = (float)((double)grown(l, &v->counts, WB_TALLY_HANDLED) / seconds),
                         .failed = (float)((double)grown(l, &v->counts, WB_TALLY_FAILED) / seconds),
                         .lag = v->has_backlog ? (float)((double)v->oldest_age / (double)WB_SECOND) : 0,
                         .pending = v->has_backlog ? (float)v->pending_rows : 0 };
    take_critical(l, &v->counts, &sample);
    return sample;
}

void wb_history_look(wb_history *history, const wb_overview *overview, int64_t now)
{
    const int64_t since = now - history->noted;
    if (history->noted && since < wb_test_period(WB_HISTORY_STEP))
        return;
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->count; i++) {
        line *l = &history->lines[i];
        const wb_vitals *v = &overview->endpoints[i].vitals;
        if (history->noted)
            l->samples[history->next] = take(l, v, (double)since / (double)WB_SECOND);
        memcpy(l->before, v->counts.of, sizeof l->before);
    }
    if (history->noted) {
        history->next = (history->next + 1) % WB_HISTORY_SAMPLES;
        history->filled += history->filled < WB_HISTORY_SAMPLES;
    }
    history->noted = now;
    pthread_mutex_unlock(&history->lock);
}

/* ---- as JSON ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
} series[] = { { "handled", offsetof(wb_sample, handled) },
               { "failed", offsetof(wb_sample, failed) },
               { "critical_mean", offsetof(wb_sample, critical_mean) },
               { "critical_high", offsetof(wb_sample, critical_high) },
               { "lag", offsetof(wb_sample, lag) },
               { "pending", offsetof(wb_sample, pending) } };

/* Three digits are enough to draw. */
static json_t *number(float value)
{
    return value < 0 ? json_null() : json_real((double)(int64_t)((double)value * 1000 + 0.5) / 1000);
}

static const wb_sample *sample_at(const wb_history *history, const line *l, size_t at)
{
    return &l->samples[(history->next + WB_HISTORY_SAMPLES - history->filled + at) % WB_HISTORY_SAMPLES];
}

static json_t *line_json(const wb_history *history, const line *l, const char *name)
{
    json_t *object = json_pack("{s:s}", "name", name);
    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++) {
        json_t *array = json_array();
        for (size_t at = 0; at < history->filled; at++)
            json_array_append_new(array, number(*(const float *)(const void *)((const char *)sample_at(history, l, at) +
                                                                              series[i].offset)));
        json_object_set_new(object, series[i].name, array);
    }
    return object;
}

json_t *wb_history_json(wb_history *history, const wb_overview *overview)
{
    json_t *endpoints = json_array();
    pthread_mutex_lock(&history->lock);
    for (size_t i = 0; i < history->count; i++)
        json_array_append_new(endpoints, line_json(history, &history->lines[i], overview->endpoints[i].endpoint));
    const size_t filled = history->filled;
    pthread_mutex_unlock(&history->lock);
    return json_pack("{s:f, s:i, s:i, s:o}", "step_seconds", (double)wb_test_period(WB_HISTORY_STEP) / (double)WB_SECOND,
                     "samples", (int)filled, "samples_max", WB_HISTORY_SAMPLES, "endpoints", endpoints);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/metrics/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"

#define NUMBER_SIZE 48

struct wb_samples {
    wb_buffer *text;
    const wb_overview *overview;
    const wb_metric *metric;
    const char *endpoint; /* NULL: it is the process's */
};

static void put(wb_buffer *text, const char *what)
{
    wb_buffer_put(text, what, strlen(what));
}

/* What stands between quotes, or behind HELP. */
static void put_escaped(wb_buffer *text, const char *what)
{
    for (; *what; what++) {
        const char *escape = *what == '\\' ? "\\\\" : *what == '"' ? "\\\"" : *what == '\n' ? "\\n" : NULL;
        if (escape)
            put(text, escape);
        else
            wb_buffer_put(text, what, 1);
    }
}

/* ---- a sample ---------------------------------------------------------------------------- */

static void put_label(wb_buffer *text, const char *name, const char *value, int *is_first)
{
    if (!value)
        return;
    put(text, *is_first ? "{" : ",");
    put(text, name);
    put(text, "=\"");
    put_escaped(text, value);
    put(text, "\"");
    *is_first = 0;
}

static void put_sample(wb_samples *s, const char *suffix, const char *value, const char *bound, const char *number)
{
    int is_first = 1;
    put(s->text, s->metric->name);
    put(s->text, suffix);
    put_label(s->text, "endpoint", s->endpoint, &is_first);
    put_label(s->text, s->metric->label, value, &is_first);
    put_label(s->text, "le", bound, &is_first);
    put(s->text, is_first ? " " : "} ");
    put(s->text, number);
    put(s->text, "\n");
}

static const char *format_number(uint64_t number, char text[NUMBER_SIZE])
{
    (void)snprintf(text, NUMBER_SIZE, "%" PRIu64, number);
    return text;
}

/* Of a number that counts so many ns each. */
static const char *format_seconds(uint64_t number, int64_t unit, char text[NUMBER_SIZE])
{
    const uint64_t second = (uint64_t)(WB_SECOND / unit);
    (void)snprintf(text, NUMBER_SIZE, "%" PRIu64 ".%09" PRIu64, number / second, number % second * (uint64_t)unit);
    return text;
}

void wb_sample_number(wb_samples *s, const char *value, uint64_t number)
{
    char text[NUMBER_SIZE];
    put_sample(s, wb_metric_suffix(s->metric->type), value, NULL, format_number(number, text));
}

void wb_sample_seconds(wb_samples *s, const char *value, int64_t ns)
{
    char text[NUMBER_SIZE];
    put_sample(s, wb_metric_suffix(s->metric->type), value, NULL, format_seconds(ns > 0 ? (uint64_t)ns : 0, 1, text));
}

void wb_sample_summary(wb_samples *s, const char *value, uint64_t ns, uint64_t count)
{
    char text[NUMBER_SIZE];
    put_sample(s, "_count", value, NULL, format_number(count, text));
    put_sample(s, "_sum", value, NULL, format_seconds(ns, 1, text));
}

/* ---- a histogram ------------------------------------------------------------------------- */

/* As the format wants a number that is a label: never without a point or an exponent. */
static const char *format_bound(int64_t bound, int is_time, char text[NUMBER_SIZE])
{
    const double value = is_time ? (double)bound / (double)WB_SECOND : (double)bound;
    int size = snprintf(text, NUMBER_SIZE, "%g", value);
    if (!strpbrk(text, ".e"))
        (void)snprintf(text + size, NUMBER_SIZE - (size_t)size, ".0");
    return text;
}

/* Each bucket has what those before it have. What is counted meanwhile may be in one and not yet in the sum. */
void wb_sample_histogram(wb_samples *s, wb_histogram histogram, const uint64_t *numbers)
{
    char bound[NUMBER_SIZE], text[NUMBER_SIZE];
    const int is_time = s->metric->unit && strcmp(s->metric->unit, "seconds") == 0;
    const uint64_t sum = numbers[WB_HISTOGRAM_SIZE - 1];
    unsigned count;
    const int64_t *bounds = wb_histogram_bounds(histogram, &count);
    uint64_t within = 0;
    for (unsigned i = 0; i <= count; i++) {
        within += numbers[i];
        put_sample(s, "_bucket", NULL, i < count ? format_bound(bounds[i], is_time, bound) : "+Inf",
                   format_number(within, text));
    }
    put_sample(s, "_count", NULL, NULL, format_number(within, text));
    put_sample(s, "_sum", NULL, NULL,
               is_time ? format_seconds(sum, wb_histogram_unit(histogram), text) : format_number(sum, text));
}

const wb_overview *wb_samples_of(const wb_samples *samples)
{
    return samples->overview;
}

/* ---- all of it --------------------------------------------------------------------------- */

static void put_line(wb_buffer *text, const char *what, const char *name, const char *value)
{
    put(text, "# ");
    put(text, what);
    put(text, " ");
    put(text, name);
    put(text, " ");
    put_escaped(text, value);
    put(text, "\n");
}

static void write_metric(wb_samples *s)
{
    const wb_metric *metric = s->metric;
    put_line(s->text, "TYPE", metric->name, wb_metric_type_name(metric->type));
    if (metric->unit)
        put_line(s->text, "UNIT", metric->name, metric->unit);
    put_line(s->text, "HELP", metric->name, metric->help);
    const size_t count = metric->is_of_process && s->overview->count ? 1 : s->overview->count;
    for (size_t i = 0; i < count; i++) {
        const wb_observed *one = &s->overview->endpoints[i];
        s->endpoint = metric->is_of_process ? NULL : one->endpoint;
        metric->write(metric, one, s);
    }
}

void wb_exposition_write(const wb_overview *overview, wb_buffer *text)
{
    wb_samples samples = { .text = text, .overview = overview };
    for (size_t i = 0; i < wb_metric_count; i++) {
        samples.metric = &wb_metrics[i];
        write_metric(&samples);
    }
    put(text, "# EOF\n");
}

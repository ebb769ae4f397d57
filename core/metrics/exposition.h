/* SPDX-License-Identifier: Apache-2.0
 *
 * The text that /metrics answers: OpenMetrics 1.0, every metric of the table with the samples of all endpoints.
 */
#ifndef WB_METRICS_EXPOSITION_H
#define WB_METRICS_EXPOSITION_H

#include "core/base/buffer.h"
#include "core/metrics/metrics.h"

#define WB_EXPOSITION_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/** Behind what is in the buffer. */
void wb_exposition_write(const wb_overview *overview, wb_buffer *text);

/* ---- for the table's functions ---- */

/** A sample of the endpoint; `value` of the metric's label, NULL: it has none. */
void wb_sample_number(wb_samples *samples, const char *value, uint64_t number);
/** The same in seconds, of ns. */
void wb_sample_seconds(wb_samples *samples, const char *value, int64_t ns);
/** A summary's two. */
void wb_sample_summary(wb_samples *samples, const char *value, uint64_t ns, uint64_t count);
/** All of a histogram, of its numbers (core/pipeline/tally.h). */
void wb_sample_histogram(wb_samples *samples, wb_histogram histogram, const uint64_t *numbers);
/** When it was all seen, and when the process began. */
const wb_overview *wb_samples_of(const wb_samples *samples);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of metrics: what each is called, in which unit, of which type, and what it says. Everything else is made from it: what
 * /metrics answers (exposition.h), and by `waybill help metrics --json` the list in waybill(1), the Grafana dashboard and the
 * alert rules of contrib/grafana.
 *
 * Names are those that Prometheus asks for: the prefix waybill_, base units, the unit behind. Types are those of OpenMetrics.
 * To add one: a row in metrics.c, and `make doc-metrics`.
 *
 * Threads: the table is constant; an overview is its reader's.
 */
#ifndef WB_METRICS_METRICS_H
#define WB_METRICS_METRICS_H

#include "core/endpoint/vitals.h"

typedef enum {
    WB_METRIC_COUNTER,   /* its samples end in _total */
    WB_METRIC_GAUGE,
    WB_METRIC_HISTOGRAM,
    WB_METRIC_SUMMARY,   /* sum and count alone */
    WB_METRIC_STATESET,
    WB_METRIC_INFO
} wb_metric_type;

/** An endpoint, as seen at a moment. */
typedef struct wb_observed {
    const char *endpoint; /* the strings are the configuration's, constant */
    const char *transport;
    const char *persistence; /* NULL: none */
    const char *mode;
    int outbox;
    int send_only;
    wb_vitals vitals;
} wb_observed;

/** All endpoints of the process. */
typedef struct wb_overview {
    const wb_observed *endpoints;
    size_t count;
    int64_t started; /* wall clock: the process did */
    int64_t seen;    /* wall clock: it was taken then */
    int64_t age;     /* ns since then, whoever sets the clock; 0: the main thread has not looked yet */
} wb_overview;

/** Where samples are written to (exposition.h). */
typedef struct wb_samples wb_samples;

/** When somebody is to look. $metric is the name of the metric's samples. */
typedef struct wb_metric_alert {
    const char *name; /* NULL: there is none */
    const char *expression;
    const char *lasts; /* "5m" */
    const char *says;
} wb_metric_alert;

typedef struct wb_metric {
    const char *name; /* of the family */
    const char *unit; /* the name ends with it; NULL: none */
    wb_metric_type type;
    const char *label; /* beside endpoint; NULL: none */
    const char *help;
    const char *panel; /* its title on the dashboard; NULL: it has none there */
    wb_metric_alert alert;
    /** Write the samples of an endpoint; of what is the process's, the endpoint is the first. */
    void (*write)(const struct wb_metric *metric, const wb_observed *one, wb_samples *samples);
    unsigned number; /* for `write`: a count or a histogram */
    int is_of_process;
} wb_metric;

extern const wb_metric wb_metrics[];
extern const size_t wb_metric_count;

/** "counter", ... */
const char *wb_metric_type_name(wb_metric_type type);
/** What the name of its samples has behind the family's: "_total", "_info", or "". */
const char *wb_metric_suffix(wb_metric_type type);

#endif

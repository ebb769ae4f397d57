/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/metrics/metrics.h"

#include <string.h>

#include "core/metrics/exposition.h"

/* ---- how each is read -------------------------------------------------------------------- */

static void write_info(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric, (void)one;
    wb_sample_number(samples, PACKAGE_VERSION, 1);
}

static void write_start(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric, (void)one;
    wb_sample_seconds(samples, NULL, wb_samples_of(samples)->started);
}

static void write_look(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric, (void)one;
    wb_sample_seconds(samples, NULL, wb_samples_of(samples)->age);
}

static void write_state(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    for (int state = WB_HEALTH_RUNNING; state <= WB_HEALTH_STOPPING; state++)
        wb_sample_number(samples, wb_health_name(state), one->vitals.state == state);
}

static void write_count(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    wb_sample_number(samples, NULL, one->vitals.counts.of[metric->number]);
}

static void write_failed(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    static const char *const classes[] = { "handler", "unrecoverable", "dispatch", "crash" };
    for (unsigned i = 0; i < sizeof classes / sizeof classes[0]; i++)
        wb_sample_number(samples, classes[i], one->vitals.counts.of[metric->number + i]);
}

static void write_expired(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    wb_sample_number(samples, NULL, one->vitals.counts.expired);
}

static void write_in_hand(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    wb_sample_number(samples, NULL, one->vitals.counts.waiting);
}

static void write_histogram(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    const wb_histogram histogram = (wb_histogram)metric->number;
    wb_sample_histogram(samples, histogram, &one->vitals.counts.of[wb_histogram_first(histogram)]);
}

/* An endpoint that delays by its broker has nothing that could be late here. */
static void write_lateness(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    if (one->vitals.has_store)
        write_histogram(metric, one, samples);
}

static void write_stages(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    static const char *const names[WB_TIMES] = { "receive", "claim", "handle", "commit", "dispatch", "acknowledge" };
    const uint64_t *of = one->vitals.counts.of;
    (void)metric;
    for (unsigned i = 0; i < WB_TIMES; i++)
        wb_sample_summary(samples, names[i], of[WB_TALLY_TIME + i], of[WB_TALLY_LAPS + i]);
}

static const char *const servers[WB_VITALS_SERVERS] = { "broker", "database", "deduplication_store" };

static void write_opened(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    for (unsigned i = 0; i < WB_VITALS_SERVERS; i++)
        if (one->vitals.has_server[i])
            wb_sample_number(samples, servers[i], one->vitals.counts.of[metric->number + i]);
}

static void write_away(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    for (unsigned i = 0; i < WB_VITALS_SERVERS; i++)
        if (one->vitals.has_server[i])
            wb_sample_number(samples, servers[i], (uint64_t)one->vitals.is_away[i]);
}

static void write_workers(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    const wb_vitals *v = &one->vitals;
    (void)metric;
    wb_sample_number(samples, "working", v->working);
    wb_sample_number(samples, "missing", v->workers - v->working);
    wb_sample_number(samples, "stuck", v->stuck);
}

static void write_limited(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    wb_sample_number(samples, NULL, (uint64_t)one->vitals.is_limited);
}

static void write_limitings(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    wb_sample_number(samples, NULL, one->vitals.limitings);
}

static void write_breakers(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    static const char *const names[WB_VITALS_BREAKERS] = { "store", "fetch", "dispatch" };
    (void)metric;
    for (unsigned i = 0; one->vitals.has_store && i < WB_VITALS_BREAKERS; i++)
        wb_sample_number(samples, names[i], (uint64_t)one->vitals.is_open[i]);
}

static void write_pending(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    if (one->vitals.has_backlog)
        wb_sample_number(samples, NULL, one->vitals.pending_rows);
}

static void write_parked(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    if (one->vitals.has_backlog)
        wb_sample_number(samples, NULL, one->vitals.parked_rows);
}

/* Where the broker cannot tell, or does not answer, there is no number. */
static void write_depth(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    if (one->vitals.has_depth)
        wb_sample_number(samples, NULL, one->vitals.queue_messages);
}

static void write_age(const wb_metric *metric, const wb_observed *one, wb_samples *samples)
{
    (void)metric;
    if (one->vitals.has_backlog)
        wb_sample_seconds(samples, NULL, one->vitals.oldest_age);
}

/* ---- the table --------------------------------------------------------------------------- */

const wb_metric wb_metrics[] = {
    { .name = "waybill_build",
      .type = WB_METRIC_INFO,
      .label = "version",
      .help = "The version that runs.",
      .alert = { "WaybillIsNotThere", "absent($metric) or up{job=\"waybill\"} == 0", "5m", "nothing is scraped: no process answers" },
      .write = write_info,
      .is_of_process = 1 },
    { .name = "waybill_start_time_seconds",
      .unit = "seconds",
      .type = WB_METRIC_GAUGE,
      .help = "When the process began, since 1970.",
      .alert = { "WaybillRestarts", "changes($metric[15m]) > 3", "0m",
                 "the process begins again and again: its log says why it ends" },
      .write = write_start,
      .is_of_process = 1 },
    { .name = "waybill_look_age_seconds",
      .unit = "seconds",
      .type = WB_METRIC_GAUGE,
      .help = "Time since the main thread looked at the endpoints, as it does ten times a second once they are begun; all other numbers "
              "are as old. After 30 s the process is not alive.",
      .alert = { "WaybillHangs", "$metric > 10", "1m", "the main thread hangs: nothing is looked at, and the numbers stand" },
      .write = write_look,
      .is_of_process = 1 },
    { .name = "waybill_endpoint_state",
      .type = WB_METRIC_STATESET,
      .label = "waybill_endpoint_state",
      .help = "How the endpoint is; /status says why.",
      .panel = "State",
      .alert = { "WaybillEndpointDegraded", "$metric{waybill_endpoint_state=\"running\"} == 0", "5m",
                 "the endpoint does not run as it should: waybill status says why" },
      .write = write_state },
    { .name = "waybill_messages_handled",
      .type = WB_METRIC_COUNTER,
      .help = "Messages whose effect is durable, each once.",
      .panel = "Messages handled",
      .write = write_count,
      .number = WB_TALLY_HANDLED },
    { .name = "waybill_attempts_failed",
      .type = WB_METRIC_COUNTER,
      .label = "class",
      .help = "Attempts that failed: because the handler said so (handler, unrecoverable), what it sent was refused (dispatch), "
              "or it ended the process too often (crash).",
      .panel = "Attempts failed",
      .write = write_failed,
      .number = WB_TALLY_FAILED_HANDLER },
    { .name = "waybill_messages_moved",
      .type = WB_METRIC_COUNTER,
      .help = "Messages moved to the error queue.",
      .panel = "Moved to the error queue",
      .alert = { "WaybillMessagesMoved", "increase($metric[15m]) > 0", "0m",
                 "messages failed for good and are in the error queue" },
      .write = write_count,
      .number = WB_TALLY_MOVED },
    { .name = "waybill_messages_duplicate",
      .type = WB_METRIC_COUNTER,
      .help = "Messages that came again and were known.",
      .panel = "Duplicates",
      .write = write_count,
      .number = WB_TALLY_DUPLICATES },
    { .name = "waybill_messages_retried_later",
      .type = WB_METRIC_COUNTER,
      .help = "Delayed retries that were sent.",
      .panel = "Delayed retries",
      .write = write_count,
      .number = WB_TALLY_RETRIED_LATER },
    { .name = "waybill_messages_discarded",
      .type = WB_METRIC_COUNTER,
      .help = "Messages discarded, as a handler wished.",
      .write = write_count,
      .number = WB_TALLY_DISCARDED },
    { .name = "waybill_messages_parked",
      .type = WB_METRIC_COUNTER,
      .help = "Failed messages that the error queue did not take, kept in the database.",
      .write = write_count,
      .number = WB_TALLY_PARKED },
    { .name = "waybill_messages_expired",
      .type = WB_METRIC_COUNTER,
      .help = "Messages that expired before they were received, where the transport tells.",
      .write = write_expired },
    { .name = "waybill_messages_in_hand",
      .type = WB_METRIC_GAUGE,
      .help = "Messages received by workers and not done, those set aside too.",
      .panel = "In hand",
      .write = write_in_hand },
    { .name = "waybill_operations_sent",
      .type = WB_METRIC_COUNTER,
      .help = "Outgoing operations that a transport took, copies for the error queue too.",
      .panel = "Operations sent",
      .write = write_count,
      .number = WB_TALLY_SENT },
    { .name = "waybill_batch_messages",
      .unit = "messages",
      .type = WB_METRIC_HISTOGRAM,
      .help = "Messages of a batch that was committed.",
      .panel = "Batch size",
      .write = write_histogram,
      .number = WB_HISTOGRAM_BATCH },
    { .name = "waybill_batches_rolled_back",
      .type = WB_METRIC_COUNTER,
      .help = "Batches rolled back: a message failed, or a server.",
      .panel = "Batches rolled back",
      .write = write_count,
      .number = WB_TALLY_ROLLED_BACK },
    { .name = "waybill_stage_seconds",
      .unit = "seconds",
      .type = WB_METRIC_SUMMARY,
      .label = "stage",
      .help = "What workers spend their time with: receive is waiting for messages, and for servers that are away.",
      .panel = "Time of workers",
      .write = write_stages },
    { .name = "waybill_handler_seconds",
      .unit = "seconds",
      .type = WB_METRIC_HISTOGRAM,
      .help = "Time of a call of a handler; a batch handler's is one.",
      .panel = "Handler time",
      .write = write_histogram,
      .number = WB_HISTOGRAM_HANDLER },
    { .name = "waybill_critical_time_seconds",
      .unit = "seconds",
      .type = WB_METRIC_HISTOGRAM,
      .help = "Time from when a message was sent, by its sender's clock, or due, by its database's, to the commit of its "
              "effect. Of more than seven days seven are in the sum.",
      .panel = "Critical time",
      .alert = { "WaybillCriticalTime",
                 "histogram_quantile(0.95, sum by (endpoint, le) (rate($metric_bucket[5m]))) > 60", "10m",
                 "messages are handled more than a minute after they were sent" },
      .write = write_histogram,
      .number = WB_HISTOGRAM_CRITICAL },
    { .name = "waybill_workers",
      .type = WB_METRIC_GAUGE,
      .label = "state",
      .help = "Workers: working, idle ones too; missing, as they gave up; and of the working ones those that are stuck.",
      .panel = "Workers",
      .alert = { "WaybillWorkersMissing", "max by (endpoint, state) ($metric{state=~\"missing|stuck\"}) > 0", "5m",
                 "workers gave up, or hang in a handler" },
      .write = write_workers },
    { .name = "waybill_connections_opened",
      .type = WB_METRIC_COUNTER,
      .label = "server",
      .help = "Connections that workers opened: one each at the start, the others anew.",
      .panel = "Connections opened",
      .write = write_opened,
      .number = WB_TALLY_OPENED_BROKER },
    { .name = "waybill_server_away",
      .type = WB_METRIC_GAUGE,
      .label = "server",
      .help = "Whether the endpoint waits for it (1).",
      .panel = "Servers away",
      .alert = { "WaybillServerAway", "$metric > 0", "2m", "the endpoint waits for a server that is away" },
      .write = write_away },
    { .name = "waybill_attempts_limited",
      .type = WB_METRIC_GAUGE,
      .help = "Whether attempts fail in a row and are made one at a time (1); see recoverability.rate_limit_after.",
      .alert = { "WaybillAttemptsLimited", "$metric > 0", "5m",
                 "attempts fail in a row: something that handlers need is out of order" },
      .write = write_limited },
    { .name = "waybill_rate_limits",
      .type = WB_METRIC_COUNTER,
      .help = "How often that began.",
      .write = write_limitings },
    { .name = "waybill_breaker_open",
      .type = WB_METRIC_GAUGE,
      .label = "breaker",
      .help = "Whether the circuit breaker of the delayed message store is open (1).",
      .alert = { "WaybillBreakerOpen", "$metric > 0", "0m", "delayed messages cannot be stored, fetched or sent" },
      .write = write_breakers },
    { .name = "waybill_queue_messages",
      .type = WB_METRIC_GAUGE,
      .help = "Messages in the endpoint's queue that nobody has acknowledged, those in hand too, as its broker told when it was asked last: "
              "four times a minute, by this process. For all instances of the endpoint.",
      .panel = "Messages in the queue",
      .write = write_depth },
    { .name = "waybill_pending_rows",
      .type = WB_METRIC_GAUGE,
      .help = "Rows of the outbox with operations to dispatch, as of the housekeeper's start or last round; counted to 1000.",
      .panel = "Pending rows",
      .write = write_pending },
    { .name = "waybill_pending_oldest_seconds",
      .unit = "seconds",
      .type = WB_METRIC_GAUGE,
      .help = "Age of the oldest of them; 0: there is none.",
      .panel = "Oldest pending row",
      .alert = { "WaybillOperationsStayPending", "$metric > 600", "5m",
                 "operations were committed and are not sent: waybill outbox pending says why" },
      .write = write_age },
    { .name = "waybill_parked_rows",
      .type = WB_METRIC_GAUGE,
      .help = "Rows whose operations could not be sent and are tried again seldom; counted to 1000.",
      .panel = "Parked rows",
      .alert = { "WaybillOperationsParked", "$metric > 0", "10m",
                 "operations cannot be sent: waybill outbox pending says why" },
      .write = write_parked },
    { .name = "waybill_rows_swept",
      .type = WB_METRIC_COUNTER,
      .help = "Pending rows that the sweeper dispatched: their message never came back.",
      .panel = "Rows swept",
      .write = write_count,
      .number = WB_TALLY_SWEPT },
    { .name = "waybill_rows_parked",
      .type = WB_METRIC_COUNTER,
      .help = "Pending rows that the sweeper could not dispatch, each time.",
      .write = write_count,
      .number = WB_TALLY_SWEEP_PARKED },
    { .name = "waybill_records_cleaned",
      .type = WB_METRIC_COUNTER,
      .help = "Deduplication records deleted, older than the retention.",
      .panel = "Records cleaned",
      .write = write_count,
      .number = WB_TALLY_CLEANED },
    { .name = "waybill_delayed_lateness_seconds",
      .unit = "seconds",
      .type = WB_METRIC_HISTOGRAM,
      .help = "Time from when a message in the delayed message store was due to when it was sent.",
      .panel = "Lateness of delayed messages",
      .write = write_lateness,
      .number = WB_HISTOGRAM_LATENESS },
};
const size_t wb_metric_count = sizeof wb_metrics / sizeof wb_metrics[0];

const char *wb_metric_type_name(wb_metric_type type)
{
    static const char *const names[] = { "counter", "gauge", "histogram", "summary", "stateset", "info" };
    return names[type];
}

const char *wb_metric_suffix(wb_metric_type type)
{
    return type == WB_METRIC_COUNTER ? "_total" : type == WB_METRIC_INFO ? "_info" : "";
}

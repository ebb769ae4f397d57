/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator reads from outside: numbers and their histograms, the text of /metrics by a small reader of
 * OpenMetrics, /status, and what is answered to whom.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <ctype.h>
#include <jansson.h>

#include "core/base/clock.h"
#include "core/config/config_http.h"
#include "core/http/answers.h"
#include "core/message/header_names.h"
#include "core/message/sent.h"
#include "core/metrics/exposition.h"
#include "core/metrics/status.h"

static wb_observed observed[2];
static wb_overview overview = { observed, 2, 1000 * WB_SECOND, 1060 * WB_SECOND, 100 * WB_MILLISECOND };

static int set_up(void **state)
{
    (void)state;
    memset(observed, 0, sizeof observed);
    observed[0] = (wb_observed){ .endpoint = "orders", .transport = "sqlite", .persistence = "sqlite", .mode = "receive_only", .outbox = 1 };
    observed[1] = (wb_observed){ .endpoint = "bil\"li\\ng\n", .transport = "sqlite", .mode = "none" };
    observed[0].vitals = (wb_vitals){ .workers = 4, .working = 3, .has_server = { 1, 1, 0 }, .has_backlog = 1, .has_store = 1,
                                      .pending_rows = 5, .oldest_age = 1500 * WB_MILLISECOND, .has_depth = 1, .queue_messages = 17 };
    observed[1].vitals = (wb_vitals){ .workers = 1, .working = 1, .has_server = { 1, 0, 0 } };
    return 0;
}

/* ---- numbers ----------------------------------------------------------------------------- */

static void test_histograms(void **state)
{
    wb_tally tally = { 0 };
    wb_counts counts = { 0 };
    unsigned count;
    const unsigned first = wb_histogram_first(WB_HISTOGRAM_BATCH);
    (void)state;
    (void)wb_histogram_bounds(WB_HISTOGRAM_BATCH, &count);
    wb_tally_observe(&tally, WB_HISTOGRAM_BATCH, 1);
    wb_tally_observe(&tally, WB_HISTOGRAM_BATCH, 5);
    wb_tally_observe(&tally, WB_HISTOGRAM_BATCH, 6);
    wb_tally_observe(&tally, WB_HISTOGRAM_BATCH, 1000000);
    wb_tally_observe(&tally, WB_HISTOGRAM_BATCH, -7);
    wb_tally_read(&tally, &counts);
    assert_int_equal(counts.of[first], 2); /* what is negative is nothing */
    assert_int_equal(counts.of[first + 2], 1); /* a bound is in it */
    assert_int_equal(counts.of[first + 3], 1);
    assert_int_equal(counts.of[first + count], 1);
    assert_int_equal(counts.of[first + WB_HISTOGRAM_SIZE - 1], 1000012);
    assert_int_equal(counts.of[wb_histogram_first(WB_HISTOGRAM_BATCH) - 1], 0);
}

/* A clock that is wrong, or somebody's header, makes a sum neither useless nor smaller. */
static void test_times_that_cannot_be(void **state)
{
    wb_tally tally = { 0 };
    wb_counts counts = { 0 };
    const uint64_t *critical = &counts.of[wb_histogram_first(WB_HISTOGRAM_CRITICAL)];
    unsigned count;
    (void)state;
    (void)wb_histogram_bounds(WB_HISTOGRAM_CRITICAL, &count);
    wb_tally_observe(&tally, WB_HISTOGRAM_CRITICAL, 1500 * WB_MILLISECOND);
    wb_tally_observe(&tally, WB_HISTOGRAM_CRITICAL, 2 * WB_TALLY_LONGEST);
    wb_tally_observe(&tally, WB_HISTOGRAM_CRITICAL, INT64_MAX);
    wb_tally_observe(&tally, WB_HISTOGRAM_CRITICAL, INT64_MIN);
    wb_tally_read(&tally, &counts);
    assert_int_equal(critical[count], 2);
    assert_int_equal(critical[0], 1);
    assert_int_equal(critical[WB_HISTOGRAM_SIZE - 1], 2 * INT64_C(604800000000) + 1500000);
}

/* Ascending, and none beyond its place. */
static void test_bounds(void **state)
{
    (void)state;
    for (int histogram = 0; histogram < WB_HISTOGRAMS; histogram++) {
        unsigned count;
        const int64_t *bounds = wb_histogram_bounds((wb_histogram)histogram, &count);
        assert_true(count && count <= WB_HISTOGRAM_BOUNDS);
        for (unsigned i = 1; i < count; i++)
            assert_true(bounds[i - 1] < bounds[i]);
    }
}

/* A worker that ended counts on, and the next in its place begins at 0. */
static void test_workers_that_end(void **state)
{
    wb_tally endpoint = { 0 }, worker = { 0 };
    wb_counts counts = { 0 };
    (void)state;
    wb_tally_note(&worker, WB_TALLY_HANDLED, 3);
    wb_tally_fold(&endpoint, &worker);
    wb_tally_add(&endpoint, WB_TALLY_HANDLED, 2);
    worker = (wb_tally){ 0 };
    wb_tally_note(&worker, WB_TALLY_HANDLED, 4);
    wb_tally_read(&endpoint, &counts);
    wb_tally_read(&worker, &counts);
    assert_int_equal(counts.of[WB_TALLY_HANDLED], 9);
}

static int64_t sent_at(wb_sent *sent, const char *time, const char *due)
{
    const wb_header headers[] = { { "NServiceBus.MessageId", "x", sizeof "NServiceBus.MessageId" - 1, 1 },
                                  { WB_HEADER_TIME_SENT, time, sizeof WB_HEADER_TIME_SENT - 1, strlen(time) },
                                  { WB_HEADER_DELIVER_AT, due, sizeof WB_HEADER_DELIVER_AT - 1, strlen(due) } };
    return wb_sent_read(sent, headers, *due ? 3 : 2);
}

/* As a reader that keeps nothing has it, whatever was read before. */
static void test_when_it_was_sent(void **state)
{
    static const char *const times[] = { "2026-11-28 14:35:05:123456 Z", "2026-11-28 14:35:59:999999 Z",
                                         "2026-11-28 14:36:00:000000 Z", "2000-01-01 00:00:00:000000 Z", "2199-12-31 23:59:59:999999 Z",
                                         "2026-11-28 14:36:60:000000 Z", "2026-11-28 14:36:0x:000000 Z",
                                         "2026-11-28 14:36:01:00000a Z", "2026-11-28 14:36:01.000000 Z",
                                         "2026-11-28 14:36:01:000000+Z", "2026-11-28 14:36:01:000000 z",
                                         "2026-11-31 14:36:01:000000 Z", "2026-13-28 14:36:01:000000 Z",
                                         "2026-11-28 14:36:02:000000 Z", "2026-11-28 14:36:02:000000 Z ", "", "now" };
    wb_sent sent = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        int64_t wall = 0;
        if (!wb_clock_parse_wire(times[i], &wall))
            wall = 0;
        assert_int_equal(sent_at(&sent, times[i], ""), wall);
        assert_int_equal(sent_at(&sent, times[i], ""), wall);
    }
    assert_int_equal(wb_sent_read(&sent, NULL, 0), 0);
    assert_true(sent_at(&sent, times[0], times[1]) > sent_at(&sent, times[0], ""));
}

/* Anybody may send them, and the difference to now does not fit. */
static void test_when_nothing_was_sent(void **state)
{
    static const char *const times[] = { "0000-01-01 00:00:00:000000 Z", "0001-01-01 00:00:01:000000 Z",
                                         "0001-01-01 00:00:59:999999 Z", "1677-09-21 00:12:44:000000 Z",
                                         "1733-12-31 23:59:59:999999 Z", "1969-12-31 23:59:59:000001 Z",
                                         "1999-12-31 23:59:59:999999 Z", "2200-01-01 00:00:00:000000 Z",
                                         "2262-04-11 23:47:17:000000 Z", "9999-12-31 23:59:59:999999 Z" };
    wb_sent sent = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        assert_int_equal(sent_at(&sent, times[i], ""), 0);
        assert_int_equal(sent_at(&sent, times[i], ""), 0);
        assert_int_equal(sent_at(&sent, "2026-11-28 14:35:05:000000 Z", times[i]), 0);
    }
}

/* ---- a reader of OpenMetrics --------------------------------------------------------------- */

typedef struct {
    char family[100], type[20], unit[20];
    int has_help;
    size_t samples;
    char last[400]; /* labels of the last bucket, without le; and what it and its bound were */
    double bound, bucket;
} family;

static int is_name(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isalpha((unsigned char)text[i]) && text[i] != '_' && !(i && isdigit((unsigned char)text[i])))
            return 0;
    return size > 0;
}

/* Behind the labels; `le` gets its value, `rest` the others as they are. */
static const char *read_labels(const char *at, char le[40], char *rest)
{
    *le = *rest = '\0';
    if (*at != '{')
        return at;
    do {
        const char *name = ++at;
        at += strcspn(at, "=");
        const size_t size = (size_t)(at - name);
        assert_true(is_name(name, size));
        assert_memory_equal(at, "=\"", 2);
        const char *value = at += 2;
        for (; *at != '"'; at++) {
            assert_true(*at != '\n' && *at != '\0');
            if (*at == '\\')
                assert_non_null(strchr("\\n\"", *++at));
        }
        if (size == 2 && memcmp(name, "le", 2) == 0)
            (void)snprintf(le, 40, "%.*s", (int)(at - value), value);
        else
            (void)sprintf(rest + strlen(rest), "%.*s,", (int)(at - name), name);
        at++;
    } while (*at == ',');
    assert_int_equal(*at, '}');
    return at + 1;
}

static void check_suffix(const family *f, const char *suffix)
{
    static const struct {
        const char *type, *suffixes;
    } allowed[] = { { "counter", "|_total|" }, { "gauge", "||" }, { "stateset", "||" }, { "info", "|_info|" },
                    { "histogram", "|_bucket|_count|_sum|" }, { "summary", "|_count|_sum|" } };
    char wanted[40];
    (void)snprintf(wanted, sizeof wanted, "|%s|", suffix);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        if (strcmp(allowed[i].type, f->type) == 0) {
            assert_non_null(strstr(allowed[i].suffixes, wanted));
            return;
        }
    fail_msg("no type \"%s\"", f->type);
}

/* Bounds ascend to +Inf, and so do their counts, which end at _count. */
static void check_bucket(family *f, const char *suffix, const char *le, const char *labels, double value)
{
    if (strcmp(suffix, "_bucket") == 0) {
        double bound = strcmp(le, "+Inf") == 0 ? 1e300 : strtod(le, NULL);
        assert_true(strcmp(le, "+Inf") == 0 || strpbrk(le, ".e") != NULL);
        if (strcmp(f->last, labels) == 0 && f->bound < 1e300)
            assert_true(bound > f->bound && value >= f->bucket);
        (void)snprintf(f->last, sizeof f->last, "%s", labels);
        f->bound = bound;
        f->bucket = value;
    } else if (strcmp(suffix, "_count") == 0 && strcmp(f->type, "histogram") == 0) {
        assert_true(f->bound == 1e300 && value == f->bucket);
        assert_string_equal(f->last, labels);
    }
}

static void read_sample(family *f, const char *line)
{
    char le[40], labels[400], *end;
    const char *at = line + strcspn(line, "{ ");
    const size_t size = strlen(f->family);
    assert_true(is_name(line, (size_t)(at - line)));
    assert_memory_equal(line, f->family, size); /* of one family, one after the other */
    char suffix[20] = "";
    const size_t suffix_size = (size_t)(at - line) - size;
    assert_true(suffix_size < sizeof suffix);
    memcpy(suffix, line + size, suffix_size);
    check_suffix(f, suffix);
    at = read_labels(at, le, labels);
    assert_int_equal(*at, ' ');
    double value = strtod(at + 1, &end);
    assert_int_equal(*end, '\n');
    assert_true(value >= 0);
    check_bucket(f, suffix, le, labels, value);
    f->samples++;
}

static void read_comment(family *f, const char *line)
{
    char what[8], name[100], text[400];
    assert_int_equal(sscanf(line, "# %7s %99s %399[^\n]", what, name, text), 3);
    if (strcmp(what, "TYPE") == 0) {
        *f = (family){ 0 };
        (void)snprintf(f->family, sizeof f->family, "%s", name);
        (void)snprintf(f->type, sizeof f->type, "%.19s", text);
    }
    assert_string_equal(f->family, name);
    if (strcmp(what, "UNIT") == 0) {
        const size_t unit = strlen(text), size = strlen(name);
        assert_true(size > unit + 1 && strcmp(name + size - unit, text) == 0 && name[size - unit - 1] == '_');
    } else if (strcmp(what, "HELP") == 0)
        f->has_help = 1;
    else
        assert_string_equal(what, "TYPE");
    assert_int_equal(f->samples, 0);
}

/* @return how many samples there are. */
static size_t read_all(const wb_buffer *text)
{
    family f = { 0 };
    size_t samples = 0;
    const char *line = (const char *)text->data, *end = line + text->size;
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        assert_non_null(next);
        if (strncmp(line, "# EOF\n", 6) == 0) {
            assert_ptr_equal(next + 1, end); /* nothing is behind it */
            return samples;
        }
        if (*line == '#') {
            read_comment(&f, line);
        } else {
            assert_true(f.has_help);
            read_sample(&f, line);
            samples++;
        }
        line = next + 1;
    }
    fail_msg("there is no end");
    return 0;
}

static void write_text(wb_buffer *text)
{
    wb_exposition_write(&overview, text);
    wb_buffer_put(text, "", 1);
    text->size--;
}

static void assert_line(const wb_buffer *text, const char *line)
{
    if (!strstr((const char *)text->data, line))
        fail_msg("no line \"%s\" in\n%s", line, (const char *)text->data);
}

static void test_exposition(void **state)
{
    wb_buffer text = { 0 };
    wb_tally tally = { 0 };
    (void)state;
    wb_tally_note(&tally, WB_TALLY_HANDLED, 1423);
    wb_tally_note(&tally, WB_TALLY_FAILED_CRASH, 2);
    wb_tally_observe(&tally, WB_HISTOGRAM_HANDLER, 20000);
    wb_tally_observe(&tally, WB_HISTOGRAM_HANDLER, 7 * WB_SECOND);
    wb_tally_observe(&tally, WB_HISTOGRAM_HANDLER, INT64_C(100000) * WB_SECOND);
    wb_tally_lap(&tally, WB_TIME_COMMIT, 250 * WB_MILLISECOND);
    wb_tally_read(&tally, &observed[0].vitals.counts);
    write_text(&text);
    assert_true(read_all(&text) > 150);
    assert_line(&text, "\nwaybill_messages_handled_total{endpoint=\"orders\"} 1423\n");
    assert_line(&text, "\nwaybill_messages_handled_total{endpoint=\"bil\\\"li\\\\ng\\n\"} 0\n");
    assert_line(&text, "\nwaybill_attempts_failed_total{endpoint=\"orders\",class=\"crash\"} 2\n");
    assert_line(&text, "\nwaybill_handler_seconds_bucket{endpoint=\"orders\",le=\"1e-05\"} 0\n");
    assert_line(&text, "\nwaybill_handler_seconds_bucket{endpoint=\"orders\",le=\"3e-05\"} 1\n");
    assert_line(&text, "\nwaybill_handler_seconds_bucket{endpoint=\"orders\",le=\"10.0\"} 2\n");
    assert_line(&text, "\nwaybill_handler_seconds_bucket{endpoint=\"orders\",le=\"86400.0\"} 2\n");
    assert_line(&text, "\nwaybill_handler_seconds_bucket{endpoint=\"orders\",le=\"+Inf\"} 3\n");
    assert_line(&text, "\nwaybill_handler_seconds_sum{endpoint=\"orders\"} 100007.000020000\n");
    assert_line(&text, "\nwaybill_batch_messages_bucket{endpoint=\"orders\",le=\"100.0\"} 0\n");
    assert_line(&text, "\nwaybill_stage_seconds_sum{endpoint=\"orders\",stage=\"commit\"} 0.250000000\n");
    assert_line(&text, "\nwaybill_stage_seconds_count{endpoint=\"orders\",stage=\"commit\"} 1\n");
    assert_line(&text, "\nwaybill_workers{endpoint=\"orders\",state=\"missing\"} 1\n");
    assert_line(&text, "\nwaybill_pending_oldest_seconds{endpoint=\"orders\"} 1.500000000\n");
    assert_line(&text, "\nwaybill_queue_messages{endpoint=\"orders\"} 17\n");
    assert_line(&text, "\nwaybill_endpoint_state{endpoint=\"orders\",waybill_endpoint_state=\"running\"} 1\n");
    assert_line(&text, "\nwaybill_endpoint_state{endpoint=\"orders\",waybill_endpoint_state=\"starting\"} 0\n");
    assert_line(&text, "\nwaybill_start_time_seconds 1000.000000000\n");
    assert_line(&text, "\nwaybill_look_age_seconds 0.100000000\n");
    assert_line(&text, "\nwaybill_build_info{version=\"" PACKAGE_VERSION "\"} 1\n");
    /* what an endpoint has not is not 0 */
    assert_null(strstr((const char *)text.data, "waybill_server_away{endpoint=\"bil\\\"li\\\\ng\\n\",server=\"database\"}"));
    assert_null(strstr((const char *)text.data, "waybill_pending_rows{endpoint=\"bil"));
    assert_null(strstr((const char *)text.data, "waybill_queue_messages{endpoint=\"bil"));
    wb_buffer_free(&text);
}

/* No number is told in the place of another. */
static void test_which_number_is_told(void **state)
{
    static const struct {
        const char *name, *labels;
        wb_tally_kind kind;
    } rows[] = { { "messages_handled", "", WB_TALLY_HANDLED },
                 { "attempts_failed", ",class=\"handler\"", WB_TALLY_FAILED_HANDLER },
                 { "attempts_failed", ",class=\"unrecoverable\"", WB_TALLY_FAILED_UNRECOVERABLE },
                 { "attempts_failed", ",class=\"dispatch\"", WB_TALLY_FAILED_DISPATCH },
                 { "attempts_failed", ",class=\"crash\"", WB_TALLY_FAILED_CRASH },
                 { "messages_moved", "", WB_TALLY_MOVED },
                 { "messages_duplicate", "", WB_TALLY_DUPLICATES },
                 { "messages_retried_later", "", WB_TALLY_RETRIED_LATER },
                 { "messages_discarded", "", WB_TALLY_DISCARDED },
                 { "messages_parked", "", WB_TALLY_PARKED },
                 { "operations_sent", "", WB_TALLY_SENT },
                 { "batches_rolled_back", "", WB_TALLY_ROLLED_BACK },
                 { "connections_opened", ",server=\"broker\"", WB_TALLY_OPENED_BROKER },
                 { "connections_opened", ",server=\"database\"", WB_TALLY_OPENED_DATABASE },
                 { "connections_opened", ",server=\"deduplication_store\"", WB_TALLY_OPENED_STORE },
                 { "rows_swept", "", WB_TALLY_SWEPT },
                 { "rows_parked", "", WB_TALLY_SWEEP_PARKED },
                 { "records_cleaned", "", WB_TALLY_CLEANED } };
    wb_buffer text = { 0 };
    char line[200];
    (void)state;
    observed[0].vitals.has_server[2] = 1;
    for (unsigned kind = 0; kind < WB_TALLY_TIME; kind++)
        observed[0].vitals.counts.of[kind] = 1000 + kind;
    write_text(&text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(line, sizeof line, "\nwaybill_%s_total{endpoint=\"orders\"%s} %u\n", rows[i].name, rows[i].labels,
                       1000 + (unsigned)rows[i].kind);
        assert_line(&text, line);
    }
    wb_buffer_free(&text);
}

/* Of a hundred million messages that are a day old each, and of more time than a signed number of ns holds. */
static void test_sums_that_are_large(void **state)
{
    wb_buffer text = { 0 };
    uint64_t *of = observed[0].vitals.counts.of;
    (void)state;
    of[wb_histogram_first(WB_HISTOGRAM_CRITICAL)] = 100000000;
    of[wb_histogram_first(WB_HISTOGRAM_CRITICAL) + WB_HISTOGRAM_SIZE - 1] = UINT64_C(8640000000000000001);
    of[wb_histogram_first(WB_HISTOGRAM_HANDLER) + WB_HISTOGRAM_SIZE - 1] = UINT64_C(10000000000000000001);
    of[WB_TALLY_TIME + WB_TIME_RECEIVE] = UINT64_C(10000000000000000001);
    write_text(&text);
    assert_line(&text, "\nwaybill_critical_time_seconds_sum{endpoint=\"orders\"} 8640000000000.000001000\n");
    assert_line(&text, "\nwaybill_handler_seconds_sum{endpoint=\"orders\"} 10000000000.000000001\n");
    assert_line(&text, "\nwaybill_stage_seconds_sum{endpoint=\"orders\",stage=\"receive\"} 10000000000.000000001\n");
    wb_buffer_free(&text);
    json_t *status = wb_status_json(&overview);
    const json_t *critical =
        json_object_get(json_array_get(json_object_get(status, "endpoints"), 0), "critical_time_seconds");
    assert_true(json_real_value(json_object_get(critical, "sum")) == 8640000000000.000001);
    json_decref(status);
}

/* ---- status ------------------------------------------------------------------------------ */

static void test_status(void **state)
{
    (void)state;
    observed[1].vitals.state = WB_HEALTH_DEGRADED;
    (void)snprintf(observed[1].vitals.reason, sizeof observed[1].vitals.reason, "the \"broker\" is away");
    observed[0].vitals.counts.of[WB_TALLY_MOVED] = 3;
    json_t *status = wb_status_json(&overview);
    const json_t *endpoints = json_object_get(status, "endpoints"), *first = json_array_get(endpoints, 0);
    assert_int_equal(json_array_size(endpoints), 2);
    assert_string_equal(json_string_value(json_object_get(status, "state")), "degraded");
    assert_string_equal(json_string_value(json_object_get(json_array_get(endpoints, 1), "reason")), "the \"broker\" is away");
    assert_true(json_is_null(json_object_get(first, "reason")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "messages"), "moved")), 3);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "workers"), "missing")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "pending"), "rows")), 5);
    assert_true(json_is_null(json_object_get(json_array_get(endpoints, 1), "pending")));
    assert_true(json_is_false(json_object_get(status, "stale")));
    json_decref(status);
}

/* The state is that of back then. */
static void test_status_of_old(void **state)
{
    (void)state;
    const int64_t age = overview.age;
    overview.age = WB_STATUS_OLDEST + WB_SECOND;
    json_t *status = wb_status_json(&overview);
    overview.age = age;
    assert_true(json_is_true(json_object_get(status, "stale")));
    assert_int_equal(json_integer_value(json_object_get(status, "age_seconds")), 31);
    json_decref(status);
}

/* The words of a library, in another encoding, and cut within a character: no endpoint is left out for them. */
static void test_reasons_that_are_no_text(void **state)
{
    (void)state;
    (void)snprintf(observed[0].vitals.reason, sizeof observed[0].vitals.reason, "Verbindung zur\xfc" "ckgewiesen \xe2\x82");
    json_t *status = wb_status_json(&overview);
    const json_t *endpoints = json_object_get(status, "endpoints");
    assert_int_equal(json_array_size(endpoints), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(endpoints, 0), "reason")),
                        "Verbindung zur\xef\xbf\xbd" "ckgewiesen \xef\xbf\xbd\xef\xbf\xbd");
    json_decref(status);
}

static void test_alive_and_ready(void **state)
{
    wb_vitals *v = &observed[1].vitals;
    (void)state;
    assert_true(wb_status_is_alive(&overview) && wb_status_is_ready(&overview));
    v->state = WB_HEALTH_DEGRADED;
    assert_true(wb_status_is_ready(&overview));
    v->is_away[0] = 1;
    assert_true(wb_status_is_alive(&overview) && !wb_status_is_ready(&overview));
    v->is_away[0] = 0;
    v->working = 0;
    assert_false(wb_status_is_ready(&overview));
    observed[1].send_only = 1;
    assert_true(wb_status_is_ready(&overview));
    v->state = WB_HEALTH_STOPPING;
    assert_false(wb_status_is_ready(&overview));
    v->state = WB_HEALTH_STARTING;
    assert_false(wb_status_is_ready(&overview));
    v->stuck = 1;
    assert_false(wb_status_is_alive(&overview));
}

/* ---- answers ----------------------------------------------------------------------------- */

static wb_board board;

static unsigned answered(const wb_question *question, const char *text)
{
    wb_answer answer;
    wb_answer_make(question, &board, NULL, &answer);
    wb_buffer_put(&answer.text, "", 1);
    if (text && !strstr((const char *)answer.text.data, text))
        fail_msg("not \"%s\": %s", text, (const char *)answer.text.data);
    wb_buffer_free(&answer.text);
    return answer.status;
}

static void test_answers(void **state)
{
    static const char token[] = "0123456789abcdef";
    (void)state;
    wb_board_init(&board, observed, 2);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/metrics" }, "# EOF"), 200);
    assert_int_equal(answered(&(wb_question){ .method = "HEAD", .path = "/status" }, "\"endpoints\""), 200);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/health/live" }, "alive\n"), 200);
    assert_int_equal(answered(&(wb_question){ .method = "POST", .path = "/status" }, NULL), 405);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/" }, "/metrics"), 404);
    wb_vitals stopping = { .state = WB_HEALTH_STOPPING };
    wb_board_put(&board, 1, &stopping);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/health/ready" }, "not ready"), 503);
    static const char *const wrong[] = { NULL, "", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Bearer 0123456789abcdeg",
                                         "Bearer 0123456789abcdef0", "Basic 0123456789abcdef" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        wb_question question = { .method = "GET", .path = "/status", .token = token, .authorization = wrong[i] };
        assert_int_equal(answered(&question, "a token is needed"), 401);
        question.path = "/health/live";
        assert_int_equal(answered(&question, NULL), 200);
    }
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/status", .token = token, .host = "metrics.example.com",
                                              .authorization = "bearer 0123456789abcdef" }, NULL), 200);
    wb_board_free(&board);
}

/* What is on the board stays there when nobody renews it. Before the first look nothing is known to be wrong. */
static void test_a_main_thread_that_hangs(void **state)
{
    const wb_vitals vitals = { .workers = 1, .working = 1 };
    const wb_question live = { .method = "GET", .path = "/health/live" }, ready = { .method = "GET", .path = "/health/ready" };
    (void)state;
    wb_board_init(&board, observed, 2);
    assert_int_equal(answered(&live, NULL), 200);
    wb_board_put(&board, 0, &vitals);
    board.put -= WB_STATUS_OLDEST - 10 * WB_SECOND;
    assert_int_equal(answered(&live, NULL), 200);
    assert_int_equal(answered(&ready, NULL), 200);
    board.put -= 11 * WB_SECOND;
    assert_int_equal(answered(&live, "stuck"), 503);
    assert_int_equal(answered(&ready, NULL), 503);
    assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/metrics" }, "\nwaybill_look_age_seconds 3"), 200);
    wb_board_put(&board, 0, &vitals);
    assert_int_equal(answered(&live, NULL), 200);
    wb_board_free(&board);
}

/* A page in somebody's browser has the name by which it came here. */
static void test_names_that_lead_here(void **state)
{
    static const char *const ours[] = { NULL, "127.0.0.1:9464", "localhost", "LocalHost:9464", "[::1]:9464", "10.0.0.7:80" };
    static const char *const others[] = { "evil.example:9464", "127.0.0.1.evil.example", "", "localhost.evil.example" };
    (void)state;
    wb_board_init(&board, observed, 2);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/status", .host = ours[i] }, NULL), 200);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(answered(&(wb_question){ .method = "GET", .path = "/status", .host = others[i] }, NULL), 421);
    wb_board_free(&board);
}

/* ---- addresses --------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
    static const struct {
        const char *text;
        int is_right, is_loopback;
    } rows[] = { { "127.0.0.1:9464", 1, 1 }, { "localhost:1", 1, 1 }, { "[::1]:65535", 1, 1 }, { "127.9.9.9:80", 1, 1 },
                 { "0.0.0.0:80", 1, 0 }, { "[::]:80", 1, 0 }, { "10.0.0.1:80", 1, 0 }, { "[::ffff:127.0.0.1]:80", 1, 0 },
                 { "128.0.0.1:80", 1, 0 }, { "127.0.0.1", 0, 0 }, { "127.0.0.1:", 0, 0 }, { "127.0.0.1:0", 0, 0 },
                 { "127.0.0.1:65536", 0, 0 }, { "127.0.0.1:80x", 0, 0 }, { "127.0.0.1:-1", 0, 0 }, { "::1:80", 0, 0 },
                 { "[::1:80", 0, 0 }, { ":80", 0, 0 }, { "", 0, 0 }, { "host:80", 0, 0 }, { "[]:80", 0, 0 },
                 { "127.0.0.1:99999999999999999999", 0, 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sockaddr_storage address;
        socklen_t size;
        const int is_right = wb_http_parse_address(rows[i].text, &address, &size);
        if (is_right != rows[i].is_right || (is_right && wb_http_is_loopback(&address) != rows[i].is_loopback))
            fail_msg("%s", rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_times_that_cannot_be),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_workers_that_end),
        cmocka_unit_test(test_when_it_was_sent),
        cmocka_unit_test(test_when_nothing_was_sent),
        cmocka_unit_test_setup(test_exposition, set_up),
        cmocka_unit_test_setup(test_which_number_is_told, set_up),
        cmocka_unit_test_setup(test_sums_that_are_large, set_up),
        cmocka_unit_test_setup(test_status, set_up),
        cmocka_unit_test_setup(test_status_of_old, set_up),
        cmocka_unit_test_setup(test_reasons_that_are_no_text, set_up),
        cmocka_unit_test_setup(test_alive_and_ready, set_up),
        cmocka_unit_test_setup(test_answers, set_up),
        cmocka_unit_test_setup(test_a_main_thread_that_hangs, set_up),
        cmocka_unit_test_setup(test_names_that_lead_here, set_up),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

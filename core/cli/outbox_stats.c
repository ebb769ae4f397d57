/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox stats: how much is kept, how old it is, what is pending. Numbers that are dear to know are
 * estimated, or counted up to a limit, and say so.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "core/base/json_text.h"
#include "core/cli/outbox.h"
#include "core/cli/waiting.h"
#include "core/cli/when.h"
#include "core/config/units.h"
#include "core/endpoint/backlog.h"
#include "core/message/ids.h"

/* What is looked through row by row is counted no further. */
#define COUNTED_MAX 10000
/* Clocks of hosts differ. */
#define FUTURE_FROM (5 * 60 * WB_SECOND)
/* The clean-up comes by each interval; only what was there for two of them is late. */
#define ROUNDS_LATE 2

typedef struct number {
    uint64_t value;
    int is; /* WB_COUNT_x */
} number;

typedef struct record_findings {
    int are_known; /* the persistence can tell */
    wb_outbox_stats stats;
    number of_future, past_retention;
    int is_late; /* the clean-up is */
} record_findings;

typedef struct findings {
    record_findings own, store;
    wb_backlog pending;
    int64_t written; /* in SQL; -1: there is no such interface, or nobody counts */
} findings;

/* ---- gathering ----------------------------------------------------------------------------- */

static size_t limit_of(const cli_outbox *o)
{
    return o->is_exact ? SIZE_MAX : COUNTED_MAX;
}

static int count(cli_outbox *o, const wb_records *records, uint64_t from, uint64_t before, size_t limit, number *ret_number)
{
    int r = records->ops->count_records(records->session, from, before, limit, &ret_number->value, &o->error);
    ret_number->is = ret_number->value >= limit ? WB_COUNT_AT_LEAST : WB_COUNT_EXACT;
    return r;
}

static int gather_records(cli_outbox *o, const wb_records *records, record_findings *f)
{
    const wb_endpoint_config *config = o->setup->config;
    int64_t late = config->outbox.retention + ROUNDS_LATE * config->outbox.cleanup_interval;
    number some = { 0, 0 };
    f->are_known = WB_HAS(records->ops, wb_persistence_ops, stats) &&
                   WB_HAS(records->ops, wb_persistence_ops, count_records);
    if (!f->are_known)
        return WB_OK;
    f->stats = (wb_outbox_stats){ .struct_size = sizeof f->stats, .is_exact = o->is_exact };
    int r = records->ops->stats(records->session, &f->stats, &o->error);
    if (r == WB_OK)
        r = count(o, records, wb_batch_number_at(o->now + FUTURE_FROM), UINT64_MAX, limit_of(o), &f->of_future);
    if (r == WB_OK)
        r = count(o, records, 0, wb_batch_number_at(o->now - config->outbox.retention), limit_of(o), &f->past_retention);
    if (r == WB_OK)
        r = count(o, records, 0, wb_batch_number_at(o->now - late), 1, &some);
    f->is_late = some.value != 0;
    return r;
}

/* ---- for programs ---------------------------------------------------------------------------- */

static const char *how(int is)
{
    return is == WB_COUNT_EXACT ? "exact" : is == WB_COUNT_ESTIMATED ? "estimated" : "at least";
}

static json_t *number_json(number n)
{
    return json_pack("{s:I, s:s}", "count", (json_int_t)n.value, "is", how(n.is));
}

static json_t *bytes_json(int64_t bytes)
{
    return bytes < 0 ? json_null() : json_integer(bytes);
}

static json_t *seconds_json(int64_t duration)
{
    return json_real((double)duration / 1e9);
}

static json_t *records_json(const record_findings *f)
{
    const wb_outbox_stats *r = &f->stats;
    if (!f->are_known)
        return json_null();
    json_t *object = number_json((number){ r->records, r->records_are });
    json_object_set_new(object, "bytes", bytes_json(r->record_bytes));
    json_object_set_new(object, "oldest", cli_outbox_batch_json(r->oldest_record));
    json_object_set_new(object, "newest", cli_outbox_batch_json(r->newest_record));
    json_object_set_new(object, "past_retention", number_json(f->past_retention));
    json_object_set_new(object, "of_the_future", number_json(f->of_future));
    json_object_set_new(object, "cleanup_is_late", json_boolean(f->is_late));
    return object;
}

static json_t *pending_json(const cli_outbox *o, const findings *f)
{
    const wb_backlog *b = &f->pending;
    json_t *object = json_object();
    json_object_set_new(object, "is", json_string(how(b->is_cut ? WB_COUNT_AT_LEAST : WB_COUNT_EXACT)));
    json_object_set_new(object, "operations", json_integer((json_int_t)b->rows[WB_ROW_OPERATIONS]));
    json_object_set_new(object, "parked", json_integer((json_int_t)b->rows[WB_ROW_PARKED]));
    json_object_set_new(object, "attempts", json_integer((json_int_t)b->rows[WB_ROW_ATTEMPTS]));
    json_object_set_new(object, "unreadable", json_integer((json_int_t)b->rows[WB_ROW_UNKNOWN]));
    json_object_set_new(object, "of_the_future", json_integer((json_int_t)b->of_future));
    json_object_set_new(object, "oldest", cli_outbox_batch_json(b->oldest));
    json_object_set_new(object, "oldest_age_seconds",
                        b->oldest ? seconds_json(o->now - wb_batch_number_time(b->oldest)) : json_null());
    json_object_set_new(object, "parked_due",
                        b->due ? cli_waiting_time_json(wb_batch_number_time(b->due) + o->pipeline->sweep_after)
                               : json_null());
    json_object_set_new(object, "bytes", f->own.are_known ? bytes_json(f->own.stats.pending_bytes) : json_null());
    return object;
}

static number written_number(const cli_outbox *o, const findings *f)
{
    const uint64_t count = (uint64_t)f->written;
    return (number){ count, count >= limit_of(o) ? WB_COUNT_AT_LEAST : WB_COUNT_EXACT };
}

static void print_json(const cli_outbox *o, const findings *f)
{
    const wb_endpoint_config *config = o->setup->config;
    json_t *object = json_object();
    json_object_set_new(object, "endpoint", wb_json_text(config->name));
    json_object_set_new(object, "persistence", wb_json_text(o->setup->persistence->name));
    json_object_set_new(object, "outbox", json_boolean(o->setup->plan.outbox));
    json_object_set_new(object, "now", cli_waiting_time_json(o->now));
    json_object_set_new(object, "retention_seconds", seconds_json(config->outbox.retention));
    json_object_set_new(object, "cleanup_interval_seconds", seconds_json(config->outbox.cleanup_interval));
    json_object_set_new(object, "sweep_after_seconds", seconds_json(config->outbox.sweep_after));
    json_object_set_new(object, "records", records_json(&f->own));
    if (o->store.ops)
        json_object_set_new(object, "records_in_store", records_json(&f->store));
    json_object_set_new(object, "pending", pending_json(o, f));
    json_object_set_new(object, "written", f->written < 0 ? json_null() : number_json(written_number(o, f)));
    cli_outbox_print_json(object);
}

/* ---- for people -------------------------------------------------------------------------------- */

#define LABEL "  %-20s "

static void print_number(const char *label, number n)
{
    (void)printf(LABEL "%" PRIu64 "%s", label, n.value,
                 n.is == WB_COUNT_EXACT ? "" : n.is == WB_COUNT_ESTIMATED ? " (estimated)" : " or more");
}

static void print_bytes(int64_t bytes, uint64_t records)
{
    if (bytes < 0)
        (void)printf(LABEL "not known", "bytes");
    else
        (void)printf(LABEL "%" PRId64 " with indexes", "bytes", bytes);
    if (bytes > 0 && records)
        (void)printf(", %" PRIu64 " a record", (uint64_t)bytes / records);
    (void)putchar('\n');
}

static void print_time(const char *label, int64_t time, int64_t now)
{
    char text[WB_LOG_TIMESTAMP_SIZE], span[CLI_SPAN_SIZE];
    wb_clock_format_log(time, text);
    (void)cli_format_span(time > now ? time - now : now - time, span);
    (void)printf(LABEL "%s (%s%s%s)\n", label, text, time > now ? "in " : "", span, time > now ? "" : " ago");
}

static void print_records(const cli_outbox *o, const char *where, const record_findings *f)
{
    const wb_outbox_stats *r = &f->stats;
    char retention[WB_UNIT_TEXT_SIZE], interval[WB_UNIT_TEXT_SIZE];
    (void)printf("deduplication records%s\n", where);
    print_number("kept", (number){ r->records, r->records_are });
    (void)putchar('\n');
    /* an average over a count that ends early would be wrong by any factor */
    print_bytes(r->record_bytes, r->records_are == WB_COUNT_AT_LEAST ? 0 : r->records);
    if (r->oldest_record) {
        print_time("oldest", wb_batch_number_time(r->oldest_record), o->now);
        print_time("newest", wb_batch_number_time(r->newest_record), o->now);
    }
    print_number("past the retention", f->past_retention);
    (void)printf(" (kept for %s, removed each %s)%s\n",
                 wb_duration_format(o->setup->config->outbox.retention, retention),
                 wb_duration_format(o->setup->config->outbox.cleanup_interval, interval),
                 f->is_late ? ": the clean-up does not keep up, or does not run" : "");
    print_number("of the future", f->of_future);
    (void)putchar('\n');
}

static void print_pending(const cli_outbox *o, const findings *f)
{
    const wb_backlog *b = &f->pending;
    char sweep_after[WB_UNIT_TEXT_SIZE];
    (void)printf("pending rows%s\n", b->is_cut ? ", the first of them" : "");
    (void)printf(LABEL "%zu (swept when older than %s)\n", "operations", b->rows[WB_ROW_OPERATIONS],
                 wb_duration_format(o->setup->config->outbox.sweep_after, sweep_after));
    if (b->oldest)
        print_time("oldest", wb_batch_number_time(b->oldest), o->now);
    (void)printf(LABEL "%zu\n", "parked", b->rows[WB_ROW_PARKED]);
    if (b->due)
        print_time("due next", wb_batch_number_time(b->due) + o->pipeline->sweep_after, o->now);
    (void)printf(LABEL "%zu\n" LABEL "%zu\n" LABEL "%zu\n", "notes of attempts", b->rows[WB_ROW_ATTEMPTS],
                 "of a later version", b->rows[WB_ROW_UNKNOWN], "of the future", b->of_future);
    if (f->own.are_known)
        print_bytes(f->own.stats.pending_bytes, 0);
}

static void print_written(const cli_outbox *o, const findings *f)
{
    (void)printf("messages that programs wrote in SQL\n");
    print_number("not sent", written_number(o, f));
    (void)putchar('\n');
}

static void print_text(const cli_outbox *o, const findings *f)
{
    (void)printf("endpoint %s, persistence %s, outbox %s\n", o->setup->config->name, o->setup->persistence->name,
                 o->setup->plan.outbox ? "on" : "off");
    if (f->own.are_known)
        print_records(o, o->store.ops ? ", until they are in the store" : "", &f->own);
    if (f->store.are_known)
        print_records(o, " in the store", &f->store);
    print_pending(o, f);
    if (f->written >= 0)
        print_written(o, f);
}

int cli_outbox_stats(cli_outbox *o)
{
    const wb_records own = { o->ops, o->session };
    findings f = { .own = { .are_known = 0 } };
    int r = gather_records(o, &own, &f.own);
    if (r == WB_OK && o->store.ops)
        r = gather_records(o, &o->store, &f.store);
    if (r == WB_OK)
        r = wb_backlog_look(o->pipeline, o->session, UINT64_MAX, o->is_exact ? 0 : COUNTED_MAX, &f.pending, &o->error);
    if (r == WB_OK)
        r = wb_backlog_count_written(o->pipeline, o->session, limit_of(o), &f.written, &o->error);
    if (r != WB_OK)
        return cli_outbox_fail(o);
    (o->is_json ? print_json : print_text)(o, &f);
    return EX_OK;
}

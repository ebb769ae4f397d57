/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: failed messages, as `waybill failures` shows them.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/cli/asked.h"
#include "core/cli/failed.h"
#include "core/cli/waiting.h"
#include "core/config/units.h"

#define WHAT "failed messages"
/* So much of a body is shown, as text or in hexadecimal digits; all of it can be had as a file. */
#define TEXT_MAX ((size_t)256 * 1024)
#define BYTES_MAX ((size_t)16 * 1024)
#define GROUPS_MAX 1000

typedef struct {
    cli_asked_tables tables;
    const wb_failed_ops *ops;
    cli_failed_filter filter;
    size_t seen, unreadable;
    int has_more;
    json_t *found;      /* an array; of groups an object */
    uint64_t counts[5]; /* by status */
    wb_answer *answer;
} search;

static int open_tables(void *owner, const json_t *given, search *s, wb_answer *answer)
{
    const wb_endpoint_setup *setup = cli_asked_choose(owner, given, cli_keeps_failures, WHAT, answer);
    s->answer = answer;
    if (!setup || !cli_asked_open(owner, setup, &s->tables, answer))
        return 0;
    s->ops = setup->persistence_ops->interface(s->tables.session, WB_FAILED_INTERFACE);
    return 1;
}

/* 0 is no time at all: what is not later than 1970 is the first moment after. */
static int read_time(const json_t *given, const char *name, int64_t *ret_time, wb_answer *answer)
{
    const char *text = cli_asked_text(given, name);
    if (text && wb_time_parse(text, ret_time) != WB_UNIT_OK) {
        wb_answer_refuse(answer, 400, "from and before are times like 2026-12-31T08:00:00Z (UTC)");
        return 0;
    }
    if (text && *ret_time < 1)
        *ret_time = 1;
    return 1;
}

static int read_filter(const json_t *given, cli_failed_filter *f, wb_answer *answer)
{
    const char *status = cli_asked_text(given, "status");
    *f = (cli_failed_filter){ .key = cli_asked_text(given, "failure"),
                              .id = cli_asked_text(given, "id"),
                              .type = cli_asked_text(given, "type"),
                              .endpoint = cli_asked_text(given, "of"),
                              .queue = cli_asked_text(given, "queue"),
                              .reason = cli_asked_text(given, "reason"),
                              .group = cli_asked_text(given, "group"),
                              .status = status ? cli_failed_status(status) : WB_FAILED_WAITS,
                              .skip = cli_asked_number(given, "skip", 0, SIZE_MAX),
                              .limit = cli_asked_number(given, "limit", CLI_ASKED_LIMIT, CLI_ASKED_LIMIT_MAX) };
    if (f->status < 0)
        wb_answer_refuse(answer, 400, "status is failed, retrying, resolved, archived or any");
    return f->status >= 0 && read_time(given, "from", &f->from, answer) && read_time(given, "before", &f->before, answer);
}

static int visit(search *s, int32_t status, wb_failed_fn look)
{
    const wb_failed_filter filter = { .struct_size = sizeof filter, .status = status, .from = s->filter.from, .before = s->filter.before };
    return s->ops->list(s->tables.session, &filter, look, s, &s->tables.error);
}

/* ---- a page of them ---------------------------------------------------------------------- */

static int take(search *s, const wb_failed *failed, const wb_failed_record *record)
{
    if (!cli_failed_matches(&s->filter, failed, record) || s->seen++ < s->filter.skip)
        return WB_OK;
    s->has_more = json_array_size(s->found) >= s->filter.limit;
    if (!s->has_more)
        json_array_append_new(s->found, cli_failed_json(failed, record));
    return s->has_more ? WB_REJECT : WB_OK;
}

static int look_at(void *argument, const wb_failed *failed)
{
    wb_failed_record record;
    wb_arena arena;
    int r = WB_OK;
    wb_arena_init(&arena, 4096);
    if (wb_failed_decode(failed->summary, failed->summary_size, &arena, &record) == 0)
        r = take(argument, failed, &record);
    wb_arena_free(&arena);
    return r;
}

void cli_asked_failures(void *owner, const json_t *given, wb_answer *answer)
{
    search s = { .has_more = 0 };
    if (!read_filter(given, &s.filter, answer) || !open_tables(owner, given, &s, answer))
        return;
    s.found = json_array();
    if (visit(&s, s.filter.status, look_at) == WB_OK || s.has_more) {
        cli_asked_answer(answer, s.tables.setup, "messages", s.found, s.has_more);
    } else {
        json_decref(s.found);
        cli_asked_fail(&s.tables, answer);
    }
    cli_asked_close(&s.tables);
}

/* ---- groups ------------------------------------------------------------------------------- */

/* They come in the order in which they failed: the last has what the group shows. Where each has a reason of its own nobody reads
 * them all, and who asks is answered by the process that handles messages. */
static void count(search *s, const wb_failed *failed, const wb_failed_record *record)
{
    json_t *groups = s->found, *known = json_object_get(groups, record->group);
    if (!known && json_object_size(groups) >= GROUPS_MAX) {
        s->has_more = 1;
        return;
    }
    json_t *group = cli_failed_json(failed, record);
    const json_int_t before = json_integer_value(json_object_get(known, "count"));
    json_t *first = known ? json_incref(json_object_get(known, "first")) : cli_waiting_time_json(failed->failed_at);
    json_object_set_new(group, "count", json_integer(before + 1));
    json_object_set_new(group, "first", first);
    json_object_set_new(group, "last", cli_waiting_time_json(failed->failed_at));
    json_object_set_new(groups, record->group, group);
}

static int count_one(void *argument, const wb_failed *failed)
{
    search *s = argument;
    wb_failed_record record;
    wb_arena arena;
    if (failed->status > 0 && failed->status < (int32_t)(sizeof s->counts / sizeof s->counts[0]))
        s->counts[failed->status]++;
    if (s->filter.status && failed->status != s->filter.status)
        return WB_OK;
    wb_arena_init(&arena, 4096);
    if (wb_failed_decode(failed->summary, failed->summary_size, &arena, &record) != 0)
        s->unreadable++;
    else if (cli_failed_matches(&s->filter, failed, &record))
        count(s, failed, &record);
    wb_arena_free(&arena);
    return WB_OK;
}

static json_t *values_of(const json_t *object)
{
    json_t *array = json_array(), *value;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        json_array_append(array, value);
    return array;
}

static json_t *counts_json(const search *s)
{
    json_t *counts = json_object();
    for (int32_t status = WB_FAILED_WAITS; status <= WB_FAILED_ARCHIVED; status++)
        json_object_set_new(counts, cli_failed_status_name(status), json_integer((json_int_t)s->counts[status]));
    return counts;
}

void cli_asked_groups(void *owner, const json_t *given, wb_answer *answer)
{
    search s = { .has_more = 0 };
    if (!read_filter(given, &s.filter, answer) || !open_tables(owner, given, &s, answer))
        return;
    s.found = json_object();
    if (visit(&s, WB_FAILED_ANY, count_one) == WB_OK)
        wb_answer_json(answer, 200, json_pack("{s:s, s:o, s:I, s:o, s:b}", "endpoint", s.tables.setup->config->name, "counts", counts_json(&s),
                                              "unreadable", (json_int_t)s.unreadable, "groups", values_of(s.found), "more", s.has_more));
    else
        cli_asked_fail(&s.tables, answer);
    json_decref(s.found);
    cli_asked_close(&s.tables);
}

/* ---- one ---------------------------------------------------------------------------------- */

/* UTF-8 is cut between characters. */
static size_t cut(const char *body, size_t size)
{
    if (size <= TEXT_MAX)
        return size;
    size = TEXT_MAX;
    while (size > TEXT_MAX - 4 && ((unsigned char)body[size] & 0xc0) == 0x80)
        size--;
    return size;
}

static json_t *hex(const char *bytes, size_t size)
{
    char *text = wb_alloc(2 * size + 1);
    for (size_t i = 0; i < size; i++)
        (void)snprintf(&text[2 * i], 3, "%02x", (unsigned char)bytes[i]);
    json_t *value = json_stringn(text, 2 * size);
    free(text);
    return value;
}

static void add_body(json_t *object, const char *body, size_t size)
{
    const size_t text_size = cut(body, size), byte_size = size < BYTES_MAX ? size : BYTES_MAX;
    json_t *text = json_stringn(size ? body : "", text_size); /* NULL: that is no UTF-8 */
    json_object_set_new(object, "body_is_cut", json_boolean((text ? text_size : byte_size) < size));
    if (text)
        json_object_set_new(object, "body", text);
    json_object_set_new(object, "body_hex", hex(body, byte_size));
}

static int read_whole(const search *s, const wb_failed *failed, wb_arena *arena, wb_failed_record *ret_record)
{
    const int64_t body_max = s->tables.setup->config->body_max;
    return wb_failed_decode_whole(failed->message, failed->message_size, body_max, arena, ret_record);
}

static int show(void *argument, const wb_failed *failed)
{
    search *s = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int why = read_whole(s, failed, &arena, &record);
    if (!why) {
        json_t *object = cli_failed_whole_json(failed, &record);
        add_body(object, record.operation->body, record.operation->body_size);
        wb_answer_json(s->answer, 200, object);
    } else {
        wb_answer_refuse(s->answer, 500, wb_failed_fault(why));
    }
    wb_arena_free(&arena);
    return WB_OK;
}

static int take_body(void *argument, const wb_failed *failed)
{
    search *s = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int why = read_whole(s, failed, &arena, &record);
    if (!why) {
        *s->answer = (wb_answer){ .status = 200, .type = "application/octet-stream", .is_page = 1, .is_file = 1 };
        wb_buffer_put(&s->answer->text, record.operation->body, record.operation->body_size);
    } else {
        wb_answer_refuse(s->answer, 500, wb_failed_fault(why));
    }
    wb_arena_free(&arena);
    return WB_OK;
}

static void ask_for_one(void *owner, const json_t *given, wb_failed_fn look, wb_answer *answer)
{
    search s = { .has_more = 0 };
    const char *key = cli_asked_text(given, "failure");
    if (!key) {
        wb_answer_refuse(answer, 400, "say which: failure=ID");
        return;
    }
    if (!open_tables(owner, given, &s, answer))
        return;
    if (s.ops->get(s.tables.session, key, strlen(key), look, &s, &s.tables.error) != WB_OK)
        cli_asked_fail(&s.tables, answer);
    else if (!answer->status)
        wb_answer_refuse(answer, 404, "there is no such failed message, or none any more");
    cli_asked_close(&s.tables);
}

void cli_asked_failure(void *owner, const json_t *given, wb_answer *answer)
{
    ask_for_one(owner, given, show, answer);
}

void cli_asked_body(void *owner, const json_t *given, wb_answer *answer)
{
    ask_for_one(owner, given, take_body, answer);
}

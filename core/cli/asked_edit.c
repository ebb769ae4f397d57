/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: what of a failed message may be edited; and that it is sent back so, as `waybill failures edit-retry` does it: of
 * two who do it at once one does, in the transaction that marks it (core/failures/retry.h).
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/cli/asked.h"
#include "core/cli/content.h"
#include "core/cli/failed.h"
#include "core/cli/waiting.h"

typedef struct {
    cli_asked_tables tables;
    const wb_failed_ops *ops;
    const char *key;
    wb_failed_edit edit; /* it points to what was sent */
    wb_header headers[CLI_HEADERS_MAX], removed[CLI_HEADERS_MAX];
    int32_t status; /* found; WB_FAILED_ANY: there is none */
    wb_answer *answer;
} edits;

static int64_t body_max(const edits *e)
{
    const int64_t most = e->tables.setup->config->body_max;
    return most < CLI_ASKED_BODY_MAX ? most : CLI_ASKED_BODY_MAX;
}

static int open_tables(void *owner, const json_t *given, edits *e)
{
    const wb_endpoint_setup *setup;
    e->key = cli_asked_text(given, "failure");
    if (!e->key || strlen(e->key) > WB_FAILED_KEY_MAX) {
        wb_answer_refuse(e->answer, 400, "say which: failure=ID");
        return 0;
    }
    setup = cli_asked_choose(owner, given, cli_keeps_failures, "failed messages", e->answer);
    if (!setup || !cli_asked_open(owner, setup, &e->tables, e->answer))
        return 0;
    e->ops = setup->persistence_ops->interface(e->tables.session, WB_FAILED_INTERFACE);
    return 1;
}

/* ---- what may be edited ---------------------------------------------------------------------- */

static int is_fixed(const wb_header *header)
{
    wb_error ignored = { 0 };
    return wb_failed_edit_check(&(wb_failed_edit){ .removed = header, .removed_count = 1 }, &ignored) != WB_OK;
}

/* All of them in their order, those of one name, too. */
static json_t *headers_json(const wb_operation *operation)
{
    json_t *array = json_array();
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        json_t *one = json_object();
        cli_waiting_set_bytes(one, "name", "name_hex", header->name, header->name_size);
        cli_waiting_set_bytes(one, "value", "value_hex", header->value, header->value_size);
        json_object_set_new(one, "fixed", json_boolean(is_fixed(header)));
        json_array_append_new(array, one);
    }
    return array;
}

static int show(void *argument, const wb_failed *failed)
{
    edits *e = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    e->status = failed->status;
    const int why = wb_failed_decode(failed->message, failed->message_size, &arena, &record);
    if (!why) {
        json_t *object = cli_failed_json(failed, &record);
        json_object_set_new(object, "headers", headers_json(record.operation));
        json_object_set_new(object, "body_size", json_integer((json_int_t)record.operation->body_size));
        json_object_set_new(object, "body_max", json_integer((json_int_t)body_max(e)));
        wb_answer_json(e->answer, 200, object);
    } else {
        wb_answer_refuse(e->answer, 500, wb_failed_fault(why));
    }
    wb_arena_free(&arena);
    return WB_OK;
}

/* In the answer, unless there is none. */
static void look(edits *e, wb_failed_fn look_at)
{
    if (e->ops->get(e->tables.session, e->key, strlen(e->key), look_at, e, &e->tables.error) != WB_OK)
        cli_asked_fail(&e->tables, e->answer);
    else if (e->status == WB_FAILED_ANY)
        wb_answer_refuse(e->answer, 404, "there is no such failed message, or none any more");
}

void cli_asked_editable(void *owner, const json_t *given, wb_answer *answer)
{
    edits e = { .status = WB_FAILED_ANY, .answer = answer };
    if (!open_tables(owner, given, &e))
        return;
    look(&e, show);
    cli_asked_close(&e.tables);
}

/* ---- what is edited ---------------------------------------------------------------------------- */

static int take_text(const json_t *value, const char **ret_text, size_t *ret_size)
{
    *ret_text = json_string_value(value);
    *ret_size = json_string_length(value);
    return *ret_text != NULL;
}

/* @return 0: that is no array of them. */
static int take_headers(const json_t *given, edits *e)
{
    size_t i;
    json_t *one;
    const json_t *headers = json_object_get(given, "headers");
    if (headers && (!json_is_array(headers) || json_array_size(headers) > CLI_HEADERS_MAX))
        return 0;
    json_array_foreach((json_t *)(uintptr_t)headers, i, one) {
        wb_header *header = &e->headers[e->edit.header_count++];
        if (!take_text(json_object_get(one, "name"), &header->name, &header->name_size) ||
            !take_text(json_object_get(one, "value"), &header->value, &header->value_size))
            return 0;
    }
    return 1;
}

static int take_removed(const json_t *given, edits *e)
{
    size_t i;
    json_t *one;
    const json_t *removed = json_object_get(given, "removed");
    if (removed && (!json_is_array(removed) || json_array_size(removed) > CLI_HEADERS_MAX))
        return 0;
    json_array_foreach((json_t *)(uintptr_t)removed, i, one) {
        wb_header *header = &e->removed[e->edit.removed_count++];
        if (!take_text(one, &header->name, &header->name_size))
            return 0;
    }
    return 1;
}

static int take_body(const json_t *given, edits *e)
{
    const json_t *body = json_object_get(given, "body");
    const char *text = NULL;
    e->edit.has_body = body != NULL;
    if (body && !take_text(body, &text, &e->edit.body_size))
        return 0;
    e->edit.body = text;
    return 1;
}

static int read_edit(const json_t *given, edits *e)
{
    wb_error error = { 0 };
    char text[160];
    e->edit = (wb_failed_edit){ .headers = e->headers, .removed = e->removed };
    if (!take_headers(given, e) || !take_removed(given, e) || !take_body(given, e)) {
        wb_answer_refuse(e->answer, 400, "\"body\" is a string, \"headers\" are objects with \"name\" and \"value\", \"removed\" are names, of each at most 256");
    } else if (!e->edit.has_body && !e->edit.header_count && !e->edit.removed_count) {
        wb_answer_refuse(e->answer, 400, "say what is edited: \"body\", \"headers\", \"removed\"");
    } else if (wb_failed_edit_check(&e->edit, &error) != WB_OK) {
        wb_answer_refuse(e->answer, 400, error.text);
    } else if (e->edit.body_size > (size_t)body_max(e)) {
        (void)snprintf(text, sizeof text, "the body has %zu bytes, and at most %" PRId64 " are edited here; waybill failures edit-retry takes larger ones",
                       e->edit.body_size, body_max(e));
        wb_answer_refuse(e->answer, 413, text);
    } else {
        return 1;
    }
    return 0;
}

/* ---- and sent back ------------------------------------------------------------------------------- */

/* Which was not waiting any more when it was to be marked. */
static int tell_status(void *argument, const wb_failed *failed)
{
    static const char *const texts[] = { [WB_FAILED_WAITS] = "it was left alone: it has been retried meanwhile, and failed again",
                                         [WB_FAILED_RETRYING] = "it was left alone: it has been retried already, and nothing was heard of it yet",
                                         [WB_FAILED_RESOLVED] = "it was left alone: it has been retried already, and handled",
                                         [WB_FAILED_ARCHIVED] = "it was left alone: it has been archived" };
    edits *e = argument;
    const int is_known = failed->status > 0 && failed->status < (int32_t)(sizeof texts / sizeof *texts);
    e->status = failed->status;
    wb_answer_refuse(e->answer, 409, is_known ? texts[failed->status] : "it was left alone: a later version has seen to it");
    return WB_OK;
}

static void log_edit(const edits *e, const json_t *given, const char *done)
{
    char set[24], removed[24];
    (void)snprintf(set, sizeof set, "%zu", e->edit.header_count);
    (void)snprintf(removed, sizeof removed, "%zu", e->edit.removed_count);
    wb_log_event(WB_LOG_INFO, "failed message edited and retried in the console", { "endpoint", e->tables.setup->config->name },
                 { "done", done }, { "failure", e->key }, { "body", e->edit.has_body ? "edited" : "kept" }, { "headers", set },
                 { "removed", removed }, { "who", cli_asked_text(given, "who") });
}

static void edit_it(edits *e, const json_t *given)
{
    wb_failed_retry one = { .key = e->key, .key_size = strlen(e->key), .edit = &e->edit };
    size_t count;
    const int r = cli_asked_send_back(&e->tables, &one, 1, &count);
    log_edit(e, given, r == WB_IN_DOUBT ? "unknown" : r == WB_OK && one.was_waiting ? "yes" : "no");
    if (r == WB_IN_DOUBT)
        wb_answer_refuse(e->answer, 503, "whether it was done is not known: look again, nothing is done twice");
    else if (r != WB_OK)
        cli_asked_fail(&e->tables, e->answer);
    else if (one.unread)
        wb_answer_refuse(e->answer, 500, wb_failed_fault(one.unread));
    else if (one.was_waiting)
        wb_answer_json(e->answer, 200, json_pack("{s:i, s:i, s:b}", "done", 1, "left_alone", 0, "more", 0));
    else
        look(e, tell_status);
}

void cli_asked_to_edit(void *owner, const json_t *given, wb_answer *answer)
{
    edits *e = wb_alloc_zero(1, sizeof *e);
    e->status = WB_FAILED_ANY;
    e->answer = answer;
    if (open_tables(owner, given, e)) {
        if (read_edit(given, e))
            edit_it(e, given);
        cli_asked_close(&e->tables);
    }
    free(e);
}

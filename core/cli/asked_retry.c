/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: failed messages are retried or archived, those that are named or of a group, as `waybill failures` does it
 * (core/failures/retry.h): of two who do it at once each message is one's.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cli/asked.h"
#include "core/cli/failed.h"
#include "core/endpoint/endpoint.h"
#include "core/failures/retry.h"
#include "core/session/sessions.h"

/* So many in one answer: who asked does so again for the rest. */
#define LOT_MAX 500
/* What meets another operator's transaction is tried again, for so long. */
#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)
/* So long it is waited for what was committed to leave; what has not is swept. */
#define LEAVING (2 * WB_SECOND)

typedef struct {
    cli_asked_tables tables;
    const wb_failed_ops *ops;
    const char *group; /* NULL: keys were given */
    int32_t status;    /* that they have to have */
    size_t until;      /* of a group: what changed since (ns of the database's clock) is not meant; 0: it is asked for first */
    size_t asked;      /* when this was asked */
    wb_failed_retry keys[LOT_MAX];
    size_t count, done, unread;
    int has_more;
    wb_arena arena;
} change;

/* Rows say by the database's when they were changed. */
static int64_t now_of(const change *c)
{
    return wb_pipeline_now(wb_endpoint_pipeline(c->tables.endpoint));
}

/* ---- which -------------------------------------------------------------------------------- */

static void add_key(change *c, const char *key, size_t size)
{
    if (c->count < LOT_MAX && size && size <= WB_FAILED_KEY_MAX)
        c->keys[c->count++] = (wb_failed_retry){ .key = wb_arena_copy(&c->arena, key, size), .key_size = size };
    else
        c->has_more = 1;
}

static int look_at(void *argument, const wb_failed *failed)
{
    change *c = argument;
    const cli_failed_filter filter = { .group = c->group };
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    if ((!c->until || failed->changed_at < (int64_t)c->until) && wb_failed_decode(failed->summary, failed->summary_size, &arena, &record) == 0 &&
        cli_failed_matches(&filter, failed, &record))
        add_key(c, failed->key, failed->key_size);
    wb_arena_free(&arena);
    return c->has_more ? WB_REJECT : WB_OK;
}

static int find_group(change *c)
{
    const wb_failed_filter filter = { .struct_size = sizeof filter, .status = c->status };
    const int r = c->ops->list(c->tables.session, &filter, look_at, c, &c->tables.error);
    return c->has_more ? WB_OK : r;
}

/* A key that comes twice is one. */
static void take_named(change *c, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)(uintptr_t)names, i, name) {
        int is_known = 0;
        for (size_t k = 0; k < c->count; k++)
            is_known |= c->keys[k].key_size == json_string_length(name) && memcmp(c->keys[k].key, json_string_value(name), c->keys[k].key_size) == 0;
        if (!is_known)
            add_key(c, json_string_value(name), json_string_length(name));
    }
}

/* ---- retry, archive ----------------------------------------------------------------------- */

static int is_met(int r, int64_t until)
{
    return (r == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until;
}

static int retry_lot(cli_asked_tables *tables, wb_sessions *sessions, wb_failed_retry *lot, size_t count, size_t *ret_taken)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    int r;
    while (is_met(r = wb_failed_retry_some(sessions, tables->setup->info.name, lot, count, ret_taken, &tables->error), until))
        wb_clock_pause(PAUSE, NULL);
    return r;
}

int cli_asked_send_back(cli_asked_tables *tables, wb_failed_retry *which, size_t count, size_t *ret_count)
{
    const wb_endpoint_config *config = tables->setup->config;
    const wb_sessions_policy policy = { .processor = config->name, .commit_duration = config->session.maximum_commit_duration, .connections = 1 };
    wb_sessions *sessions = NULL;
    size_t taken;
    int r = wb_sessions_start(wb_endpoint_pipeline(tables->endpoint), &policy, &sessions, &tables->error);
    *ret_count = 0;
    while (r == WB_OK && *ret_count < count) {
        r = retry_lot(tables, sessions, which + *ret_count, count - *ret_count, &taken);
        *ret_count += r == WB_OK ? taken : 0;
    }
    wb_sessions_stop(sessions, LEAVING);
    return r;
}

static int retry(change *c)
{
    size_t count;
    const int r = cli_asked_send_back(&c->tables, c->keys, c->count, &count);
    for (size_t i = 0; i < count; i++) {
        c->done += c->keys[i].was_waiting != 0;
        c->unread += c->keys[i].unread != 0;
    }
    return r;
}

static int archive(change *c)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    int r = WB_OK, was;
    for (size_t i = 0; r == WB_OK && i < c->count; i++) {
        const wb_failed_turn turn = { .struct_size = sizeof turn, .key = c->keys[i].key, .key_size = c->keys[i].key_size,
                                      .from = c->status, .to = WB_FAILED_ARCHIVED, .now = now_of(c) };
        while (is_met(r = c->ops->turn(c->tables.session, &turn, &was, &c->tables.error), until))
            wb_clock_pause(PAUSE, NULL);
        c->done += r == WB_OK && was;
    }
    return r;
}

/* ---- what is said of it -------------------------------------------------------------------- */

static void log_change(const change *c, const json_t *given, const char *text)
{
    char done[24], asked[24], unread[24];
    (void)snprintf(done, sizeof done, "%zu", c->done);
    (void)snprintf(asked, sizeof asked, "%zu", c->count);
    (void)snprintf(unread, sizeof unread, "%zu", c->unread);
    wb_log_event(WB_LOG_INFO, text, { "endpoint", c->tables.setup->config->name }, { "messages", done }, { "asked", asked },
                 { "unreadable", c->unread ? unread : NULL }, { "group", c->group },
                 { "failure", c->count == 1 ? c->keys[0].key : NULL }, { "who", cli_asked_text(given, "who") });
}

static json_t *unread_of(const change *c)
{
    json_t *keys = json_array();
    for (size_t i = 0; i < c->count; i++)
        if (c->keys[i].unread)
            json_array_append_new(keys, json_stringn(c->keys[i].key, c->keys[i].key_size));
    return keys;
}

/* Who asks for the rest of a group says until when it was as it was asked for first. A text: a page's numbers are not as exact. */
static void say_done(const change *c, wb_answer *answer)
{
    char until[24];
    (void)snprintf(until, sizeof until, "%zu", c->until ? c->until : c->asked);
    wb_answer_json(answer, 200, json_pack("{s:I, s:I, s:o, s:b, s:s}", "done", (json_int_t)c->done, "left_alone",
                                          (json_int_t)(c->count - c->done - c->unread), "unreadable", unread_of(c), "more", c->has_more,
                                          "until", until));
}

static void answer_change(const change *c, int r, wb_answer *answer)
{
    if (r == WB_IN_DOUBT)
        wb_answer_refuse(answer, 503, "whether it was done is not known: look again, nothing is done twice");
    else if (r != WB_OK)
        cli_asked_fail(&c->tables, answer);
    else
        say_done(c, answer);
}

static void change_them(void *owner, const json_t *given, int (*deed)(change *c), const char *text, wb_answer *answer)
{
    const wb_endpoint_setup *setup = cli_asked_choose(owner, given, cli_keeps_failures, "failed messages", answer);
    const char *status = cli_asked_text(given, "status");
    change *c = wb_alloc_zero(1, sizeof *c);
    c->group = cli_asked_text(given, "group");
    c->status = status && deed == archive ? cli_failed_status(status) : WB_FAILED_WAITS;
    wb_arena_init(&c->arena, 4096);
    if (setup && c->status != WB_FAILED_WAITS && c->status != WB_FAILED_RETRYING) {
        wb_answer_refuse(answer, 400, "only what is failed or retrying is archived");
    } else if (setup && cli_asked_open(owner, setup, &c->tables, answer)) {
        c->asked = (size_t)now_of(c);
        c->until = cli_asked_number(given, "until", 0, INT64_MAX);
        c->ops = setup->persistence_ops->interface(c->tables.session, WB_FAILED_INTERFACE);
        take_named(c, json_object_get(given, "failures"));
        int r = c->group ? find_group(c) : WB_OK;
        if (r == WB_OK && c->count)
            r = deed(c);
        log_change(c, given, text);
        answer_change(c, r, answer);
        cli_asked_close(&c->tables);
    }
    wb_arena_free(&c->arena);
    free(c);
}

void cli_asked_to_retry(void *owner, const json_t *given, wb_answer *answer)
{
    change_them(owner, given, retry, "failed messages retried in the console", answer);
}

void cli_asked_to_archive(void *owner, const json_t *given, wb_answer *answer)
{
    change_them(owner, given, archive, "failed messages archived in the console", answer);
}

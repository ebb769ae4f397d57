/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: what waits in a delayed message store, as `waybill delayed` shows it.
 */
#include "config.h"

#include <string.h>

#include "core/cli/asked.h"
#include "core/cli/waiting.h"

#define WHAT "delayed messages in a store"

typedef struct {
    cli_asked_tables tables;
    const wb_delayed_ops *ops;
    size_t skip, limit, seen;
    size_t retries; /* SIZE_MAX: any */
    int has_more;
    json_t *found;
} search;

static int open_tables(void *owner, const json_t *given, search *s, wb_answer *answer)
{
    const wb_endpoint_setup *setup = cli_asked_choose(owner, given, cli_keeps_delayed, WHAT, answer);
    if (!setup || !cli_asked_open(owner, setup, &s->tables, answer))
        return 0;
    s->ops = setup->persistence_ops->delayed;
    return 1;
}

static int look_at(void *argument, const wb_delayed *message)
{
    search *s = argument;
    if (s->seen++ < s->skip)
        return WB_OK;
    s->has_more = json_array_size(s->found) >= s->limit;
    if (!s->has_more)
        json_array_append_new(s->found, cli_waiting_json(message));
    return s->has_more ? WB_REJECT : WB_OK;
}

void cli_asked_delayed(void *owner, const json_t *given, wb_answer *answer)
{
    search s = { .skip = cli_asked_number(given, "skip", 0, SIZE_MAX / 2),
                 .limit = cli_asked_number(given, "limit", CLI_ASKED_LIMIT, CLI_ASKED_LIMIT_MAX) };
    if (!open_tables(owner, given, &s, answer))
        return;
    const wb_delayed_filter filter = { .struct_size = sizeof filter, .limit = s.skip + s.limit + 1 };
    s.found = json_array();
    if (s.ops->list(s.tables.session, &filter, look_at, &s, &s.tables.error) == WB_OK || s.has_more) {
        cli_asked_answer(answer, s.tables.setup, "messages", s.found, s.has_more);
    } else {
        json_decref(s.found);
        cli_asked_fail(&s.tables, answer);
    }
    cli_asked_close(&s.tables);
}

static int show(void *argument, const wb_delayed *message)
{
    search *s = argument;
    if (!s->found && (s->retries == SIZE_MAX || s->retries == message->retries))
        s->found = cli_waiting_whole_json(message);
    return WB_OK;
}

void cli_asked_delayed_one(void *owner, const json_t *given, wb_answer *answer)
{
    search s = { .retries = cli_asked_number(given, "retries", SIZE_MAX, SIZE_MAX - 1) };
    const char *id = cli_asked_text(given, "id"), *destination = cli_asked_text(given, "destination");
    if (!id) {
        wb_answer_refuse(answer, 400, "say which: id=ID");
        return;
    }
    if (!open_tables(owner, given, &s, answer))
        return;
    const wb_delayed_filter filter = { .struct_size = sizeof filter, .id = id, .id_size = strlen(id), .destination = destination,
                                       .destination_size = destination ? strlen(destination) : 0 };
    if (s.ops->list(s.tables.session, &filter, show, &s, &s.tables.error) != WB_OK)
        cli_asked_fail(&s.tables, answer);
    else if (s.found)
        wb_answer_json(answer, 200, json_incref(s.found));
    else
        wb_answer_refuse(answer, 404, "no such message waits: it was sent, or cancelled, or there never was one");
    json_decref(s.found);
    cli_asked_close(&s.tables);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Asked by the console: a delayed message is cancelled, or due at another time, as `waybill delayed` does it: one that somebody has
 * taken to send it is left alone.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cli/asked.h"
#include "core/config/units.h"

#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)

typedef struct {
    cli_asked_tables tables;
    const wb_delayed_ops *ops;
    wb_delayed_key key;
    int64_t due; /* 0: cancel it */
} change;

static int64_t number_of(const json_t *given, const char *name)
{
    const json_t *number = json_object_get(given, name);
    return json_is_integer(number) ? json_integer_value(number) : -1;
}

/* @return 0: not all of it is there. */
static int read_key(const json_t *given, wb_delayed_key *key)
{
    const int64_t retries = number_of(given, "retries");
    key->id = cli_asked_text(given, "id");
    key->destination = cli_asked_text(given, "destination");
    if (!key->id || !key->destination || retries < 0 || retries > INT32_MAX)
        return 0;
    key->id_size = strlen(key->id);
    key->destination_size = strlen(key->destination);
    key->retries = (uint32_t)retries;
    return key->id_size <= WB_DELAYED_ID_MAX && key->destination_size <= WB_DELAYED_DESTINATION_MAX;
}

/* By the database's clock. */
static int read_due(change *c, const json_t *given)
{
    int64_t next, now, delay = number_of(given, "delay_seconds");
    const char *text = cli_asked_text(given, "due");
    if (text)
        return wb_time_parse(text, &c->due) == WB_UNIT_OK && c->due > 0;
    if (delay < 0 || delay > INT64_C(100) * 366 * 86400 || c->ops->next(c->tables.session, &next, &now, &c->tables.error) != WB_OK)
        return 0;
    c->due = now + delay * WB_SECOND;
    return 1;
}

static int change_once(change *c)
{
    return c->due ? c->ops->reschedule(c->tables.session, &c->key, 1, c->due, &c->tables.error)
                  : c->ops->cancel(c->tables.session, &c->key, 1, &c->tables.error);
}

static int change_patiently(change *c)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    int r;
    while (((r = change_once(c)) == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until)
        wb_clock_pause(PAUSE, NULL);
    return r;
}

static void log_change(const change *c, const json_t *given)
{
    wb_log_event(WB_LOG_INFO, c->due ? "delayed message rescheduled in the console" : "delayed message cancelled in the console",
                 { "endpoint", c->tables.setup->config->name }, { "message_id", c->key.id }, { "destination", c->key.destination },
                 { "done", c->key.was_there ? "yes" : "no" }, { "who", cli_asked_text(given, "who") });
}

static void do_and_tell(change *c, const json_t *given, wb_answer *answer)
{
    const int r = change_patiently(c);
    if (r == WB_OK)
        log_change(c, given);
    if (r == WB_IN_DOUBT)
        wb_answer_refuse(answer, 503, "whether it was done is not known: look again, nothing is done twice");
    else if (r != WB_OK)
        cli_asked_fail(&c->tables, answer);
    else
        wb_answer_json(answer, 200, json_pack("{s:i, s:i, s:b}", "done", c->key.was_there ? 1 : 0, "left_alone", c->key.was_there ? 0 : 1, "more", 0));
}

static void change_one(void *owner, const json_t *given, int is_cancel, wb_answer *answer)
{
    const wb_endpoint_setup *setup = cli_asked_choose(owner, given, cli_keeps_delayed, "delayed messages in a store", answer);
    change c = { .due = 0 };
    if (!setup)
        return;
    if (!read_key(given, &c.key)) {
        wb_answer_refuse(answer, 400, "say which: id, destination and retries");
        return;
    }
    if (!cli_asked_open(owner, setup, &c.tables, answer))
        return;
    c.ops = setup->persistence_ops->delayed;
    if (is_cancel || read_due(&c, given))
        do_and_tell(&c, given, answer);
    else
        wb_answer_refuse(answer, 400, "say when: due, a time like 2026-12-31T08:00:00Z, or delay_seconds");
    cli_asked_close(&c.tables);
}

void cli_asked_to_cancel(void *owner, const json_t *given, wb_answer *answer)
{
    change_one(owner, given, 1, answer);
}

void cli_asked_to_reschedule(void *owner, const json_t *given, wb_answer *answer)
{
    change_one(owner, given, 0, answer);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * How another thread reads of a message that may be done with any moment: it raises a flag, and looks whether the call
 * still runs. The worker says first that the call has ended, and looks for the flag then. So either the one sees
 * that nothing runs, or the other sees the flag and waits for the lock: what it has in hand stays until it was read.
 */
#include "config.h"

#include "core/pipeline/overtime.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/log.h"

/* What a line says of a call, copied. */
typedef struct {
    char id[256];
    char type[256];
    char messages[24];
} call_facts;

void wb_overtime_init(wb_overtime *o)
{
    pthread_mutex_init(&o->looking, NULL);
}

void wb_overtime_free(wb_overtime *o)
{
    pthread_mutex_destroy(&o->looking);
}

/* ---- the worker ----------------------------------------------------------------------- */

void wb_overtime_begin(wb_overtime *o, wb_item *const *items, size_t count, int64_t now)
{
    o->first = items[0];
    o->type = wb_item_type_for(items[0], wb_item_handler(items[0]));
    o->count = count;
    atomic_store(&o->since, now);
}

void wb_overtime_end(wb_overtime *o)
{
    atomic_store(&o->since, 0);
    if (!atomic_load(&o->is_looked_at))
        return;
    pthread_mutex_lock(&o->looking);
    pthread_mutex_unlock(&o->looking);
}

/* ---- who looks ------------------------------------------------------------------------ */

static void copy_facts(const wb_overtime *o, call_facts *facts)
{
    const char *id = o->first->message.id;
    (void)snprintf(facts->id, sizeof facts->id, "%s", id ? id : "");
    (void)snprintf(facts->type, sizeof facts->type, "%s", o->type ? o->type : "");
    (void)snprintf(facts->messages, sizeof facts->messages, "%zu", o->count);
    if (o->count == 1)
        facts->messages[0] = '\0';
}

/* @return whether the call that began then still runs: the facts are its. */
static int read_facts(wb_overtime *o, int64_t since, call_facts *facts)
{
    pthread_mutex_lock(&o->looking);
    atomic_store(&o->is_looked_at, 1);
    int runs = atomic_load(&o->since) == since;
    if (runs)
        copy_facts(o, facts);
    atomic_store(&o->is_looked_at, 0);
    pthread_mutex_unlock(&o->looking);
    return runs;
}

static void tell(const wb_pipeline *p, unsigned number, const call_facts *facts, int64_t spent, int level, const char *text)
{
    char worker[12], seconds[24];
    (void)snprintf(worker, sizeof worker, "%u", number);
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, spent / WB_SECOND);
    wb_log_event(level, text, { "endpoint", p->endpoint }, { "worker", worker },
                 { "message_id", facts->id[0] ? facts->id : NULL }, { "type", facts->type },
                 { "messages", facts->messages[0] ? facts->messages : NULL }, { "seconds", seconds });
}

static int exceeds(int64_t limit, int64_t since, int64_t now)
{
    return limit && since && now - since >= limit;
}

int wb_overtime_is_beyond(const wb_overtime *o, const wb_pipeline *p, int64_t now)
{
    return exceeds(p->handler_time_limit, wb_overtime_since(o), now);
}

int wb_overtime_is_over(const wb_overtime *o)
{
    return o->is_over && wb_overtime_since(o) == o->seen;
}

/* Whoever was told of the one before is told that it came back. */
static void turn_to(wb_overtime *o, const wb_pipeline *p, int64_t since)
{
    if (o->is_told)
        wb_log_event(WB_LOG_INFO, "the handler that took too long has returned", { "endpoint", p->endpoint });
    o->seen = since;
    o->next = p->slow_handler;
    o->is_told = o->is_beyond = o->is_over = 0;
}

static int is_slow(const wb_overtime *o, int64_t spent)
{
    return o->next && spent >= o->next;
}

/* A limit that is over; once. */
static int is_passed(int64_t limit, int is_told, int64_t spent)
{
    return limit && !is_told && spent >= limit;
}

/* Nothing is done to it here: what it holds would come back, and be handled beside it. Of several lines that are due
 * the most serious one is enough. */
void wb_overtime_look(wb_overtime *o, const wb_pipeline *p, unsigned number, int64_t now)
{
    int64_t since = wb_overtime_since(o), spent = now - since;
    call_facts facts;
    if (since != o->seen)
        turn_to(o, p, since);
    int is_over = is_passed(p->handler_timeout, o->is_over, spent);
    int is_beyond = is_passed(p->handler_time_limit, o->is_beyond, spent);
    if (!since || !(is_over || is_beyond || is_slow(o, spent)) || !read_facts(o, since, &facts))
        return;
    o->is_told = 1;
    o->is_over |= is_over;
    o->is_beyond |= is_beyond || is_over;
    while (is_slow(o, spent))
        o->next *= 2;
    tell(p, number, &facts, spent, is_over || is_beyond ? WB_LOG_ERROR : WB_LOG_WARNING,
         is_over     ? "a handler takes longer than handler_timeout"
         : is_beyond ? "a handler takes longer than handler_time_limit"
                     : "a handler takes long");
}

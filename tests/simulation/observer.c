/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/observer.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/process.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

#define BUCKETS 4096

struct wb_observer {
    unsigned endpoint;
};

/* A span that was told of. */
typedef struct {
    size_t next; /* of its bucket; 0: it is the last */
    unsigned endpoint;
    char id[320];
    size_t id_size;
    char destination[256]; /* "": it was handled */
    unsigned count;
    unsigned char span[WB_SPAN_ID_SIZE];
} told;

static wb_observer observers[SIM_ENDPOINTS_MAX];
static wb_tracing tracings[SIM_ENDPOINTS_MAX];
static int is_attached;
static told *all;
static size_t all_count, all_max;
static size_t heads[BUCKETS]; /* of a chain: its number, from 1 */

static size_t *bucket_of(unsigned endpoint, const char *id, size_t id_size, const char *destination)
{
    uint32_t hash = 2166136261u ^ endpoint;
    for (size_t i = 0; i < id_size; i++)
        hash = (hash ^ (unsigned char)id[i]) * 16777619u;
    for (; *destination; destination++)
        hash = (hash ^ (unsigned char)*destination) * 16777619u;
    return &heads[hash % BUCKETS];
}

static told *find(unsigned endpoint, const char *id, size_t id_size, const char *destination)
{
    for (size_t i = *bucket_of(endpoint, id, id_size, destination); i; i = all[i - 1].next) {
        told *t = &all[i - 1];
        if (t->endpoint == endpoint && t->id_size == id_size && memcmp(t->id, id, id_size) == 0 &&
            strcmp(t->destination, destination) == 0)
            return t;
    }
    return NULL;
}

static told *add(unsigned endpoint, const wb_observation *one, const char *destination)
{
    if (all_count == all_max) {
        all_max = all_max ? all_max * 2 : 256;
        all = realloc(all, all_max * sizeof *all);
        if (!all)
            abort();
    }
    size_t *head = bucket_of(endpoint, one->id, one->id_size, destination);
    told *t = &all[all_count++];
    *t = (told){ .endpoint = endpoint, .id_size = one->id_size, .next = *head };
    *head = all_count;
    memcpy(t->id, one->id, one->id_size);
    memcpy(t->destination, destination, strlen(destination) + 1);
    memcpy(t->span, one->trace.span_id, WB_SPAN_ID_SIZE);
    return t;
}

/* Whoever tells, and however often: the same span. */
static void note(unsigned endpoint, const wb_observation *one, const char *destination)
{
    if (!one->id_size)
        return; /* nothing tells it from others */
    told *t = find(endpoint, one->id, one->id_size, destination);
    if (!t)
        t = add(endpoint, one, destination);
    t->count++;
    if (memcmp(t->span, one->trace.span_id, WB_SPAN_ID_SIZE) != 0)
        sim_violation("an observer is told of two spans of message %s", one->id);
}

/* ---- what is told ------------------------------------------------------------------- */

static int is_of(const sim_message *m, unsigned endpoint, const char *id, size_t id_size)
{
    return m->endpoint == endpoint && m->id_size == id_size && memcmp(m->id, id, id_size) == 0;
}

/* Its effect is there, or there is to be none. */
static int is_done(const sim_message *m)
{
    return (the_shape.persistence ? m->commits : m->returned) || sim_fates[m->fate].flags & SIM_IGNORED;
}

static int took_effect(unsigned endpoint, const wb_observation *one)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (is_of(&sim_messages[i], endpoint, one->id, one->id_size) && is_done(&sim_messages[i]))
            return 1;
    return 0;
}

static void started(wb_observer *o, const wb_observation *const *observations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (observations[i]->end || !observations[i]->begin)
            sim_violation("endpoint %u: an attempt that begins has ended, or has no beginning", o->endpoint);
}

static void handled(wb_observer *o, const wb_observation *const *observations, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const wb_observation *one = observations[i];
        if (!took_effect(o->endpoint, one))
            sim_violation("an observer is told that message %s took effect, and it did not", one->id);
        if (one->end < one->begin || !one->begin)
            sim_violation("an observer is told that message %s ended before it began", one->id);
        note(o->endpoint, one, "");
    }
}

static void failed(wb_observer *o, const wb_observation *const *observations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!observations[i]->reason || !observations[i]->attempt)
            sim_violation("endpoint %u: an attempt that failed has no reason, or no number", o->endpoint);
}

static void sent(wb_observer *o, const wb_observation *const *observations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note(o->endpoint, observations[i], observations[i]->destination);
}

static const wb_observer_ops operations = {
    .struct_size = sizeof operations, .started = started, .handled = handled, .failed = failed, .sent = sent,
};

void sim_observer_attach(int is_there)
{
    is_attached = is_there;
}

const wb_tracing *sim_observer_of(unsigned endpoint)
{
    observers[endpoint].endpoint = endpoint;
    tracings[endpoint] = (wb_tracing){ &operations, &observers[endpoint] };
    return is_attached ? &tracings[endpoint] : NULL;
}

/* ---- in the end ---------------------------------------------------------------------- */

/* A process that died, or a session that was lost, may have taken along what nobody was told of. */
static int is_calm(void)
{
    return !the_shape.fault_permille && !the_shape.outages && !the_shape.deaths && !sim_process_deaths();
}

static void audit_handled(const sim_message *m)
{
    if (m->fate == SIM_SESSION)
        return; /* no handler's doing */
    const told *t = m->id_size && m->batch ? find(m->endpoint, m->id, m->id_size, "") : NULL;
    if (is_calm() && m->id_size && m->batch && !t)
        sim_violation("message %u (%s) took effect, and no observer was told", m->number, sim_fates[m->fate].name);
    if (t && the_shape.outbox && is_calm() && t->count > 1)
        sim_violation("message %u (%s) took effect once, and an observer was told of it %u times", m->number,
                      sim_fates[m->fate].name, t->count);
}

/* Inside a transport's transaction it is told before that is committed, and what waits at a broker may wait still. */
static void audit_sent(const told *t)
{
    if (the_shape.mode >= WB_MODE_SENDS_ATOMIC || the_shape.native || strncmp(t->destination, "endpoint-", 9) == 0)
        return; /* nor does the ledger keep control messages */
    for (size_t i = 0; i < sim_sent_count; i++)
        if (sim_sents[i].id_size == t->id_size && memcmp(sim_sents[i].id, t->id, t->id_size) == 0 &&
            strcmp(sim_sents[i].destination, t->destination) == 0)
            return;
    sim_violation("an observer is told that message %s was sent to %s, and it was not", t->id, t->destination);
}

/* Where all is calm, what arrived and says so was told of. */
static void audit_arrived(const sim_sent *sent)
{
    if (strcmp(sent->destination, SIM_ERROR_QUEUE) == 0 || strcmp(sent->destination, SIM_REVIEW_QUEUE) == 0)
        return; /* a copy, which nobody is told of */
    for (unsigned e = 0; e < the_shape.endpoints; e++)
        if (find(e, sent->id, sent->id_size, sent->destination))
            return;
    sim_violation("message %s was sent to %s, and no observer was told", sent->id, sent->destination);
}

void sim_observer_audit(void)
{
    if (!is_attached)
        return;
    for (size_t i = 0; i < all_count; i++)
        if (*all[i].destination)
            audit_sent(&all[i]);
    for (size_t i = 0; i < sim_sent_count; i++)
        if (is_calm() && sim_sents[i].is_traced && sim_sents[i].label >= 0 && sim_sents[i].label != SIM_LABEL_AUDIT)
            audit_arrived(&sim_sents[i]);
    for (unsigned i = 0; i < sim_message_count; i++)
        audit_handled(&sim_messages[i]);
}

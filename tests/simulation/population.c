/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/population.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/message/header_names.h"
#include "core/recover/retry_copy.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/handlers.h"
#include "tests/simulation/programs.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"

#define MANY_HEADERS 300
#define HEADERS_MAX (MANY_HEADERS + 5)
#define LARGE_HEADER (70 * 1024)
#define BULKY_HEADER 5600
#define LARGE_BODY (65536 + 1)
#define LONG_ID 300

static void *fresh(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

static void add_header(sim_message *m, const char *name, const char *value, size_t size)
{
    char *name_copy = fresh(strlen(name) + 1), *value_copy = fresh(size + 1);
    memcpy(name_copy, name, strlen(name));
    memcpy(value_copy, value, size);
    m->headers[m->header_count++] = (wb_header){ name_copy, value_copy, strlen(name), size };
}

static void add_text(sim_message *m, const char *name, const char *value)
{
    add_header(m, name, value, strlen(value));
}

static void add_bulk(sim_message *m, size_t size)
{
    char *bulk = fresh(size);
    memset(bulk, 'x', size);
    add_header(m, "Sim.Bulk", bulk, size);
    free(bulk);
}

static void add_many(sim_message *m)
{
    char name[24];
    for (unsigned i = 0; i < MANY_HEADERS; i++) {
        (void)snprintf(name, sizeof name, "Sim.Header-%u", i);
        add_text(m, name, "value");
    }
}

/* Some say that they are of a type and of its base, with all that .NET says of types. */
static void add_types(sim_message *m, int batch_handler)
{
    static const char rest[] = ", Sim, Version=1.0.0.0;Sim.Unknown, Sim;" SIM_TYPE_BASE ", Sim;" SIM_TYPE_BASE;
    char types[200];
    if (m->fate == SIM_NO_TYPE)
        return;
    if (m->fate == SIM_SESSION || m->fate == SIM_SESSION_CONTROL || m->fate == SIM_WRITTEN)
        return;
    if (m->fate == SIM_CONTROL) {
        add_text(m, WB_HEADER_CONTROL_MESSAGE, "True");
        return;
    }
    m->is_other = the_shape.has_other && m->number % 4 == 1;
    if (m->is_other && m->number % 8 == 1)
        return;
    m->has_base = !m->is_other && m->number % 3 == 0 && m->fate != SIM_ENDS && m->fate != SIM_NO_HANDLER;
    (void)snprintf(types, sizeof types, "%s%s",
                   m->fate == SIM_NO_HANDLER ? SIM_TYPE_UNKNOWN
                   : m->is_other             ? SIM_TYPE_OTHER ", Sim;Sim.Unknown"
                   : batch_handler           ? SIM_TYPE_BATCH
                                             : SIM_TYPE_ONE,
                   m->has_base ? rest : "");
    add_text(m, WB_HEADER_TYPES, types);
}

static void add_time_to_be_received(sim_message *m)
{
    char span[WB_SPAN_SIZE];
    wb_clock_format_span(sim_random_between(WB_MILLISECOND, 10 * WB_SECOND), span);
    add_text(m, WB_HEADER_TIME_TO_BE_RECEIVED, span);
}

static void make_headers(sim_message *m, int batch_handler)
{
    m->headers = fresh(HEADERS_MAX * sizeof *m->headers);
    if (the_shape.expires && sim_chance(the_shape.expire_percent))
        add_time_to_be_received(m);
    add_types(m, batch_handler);
    switch (m->fate) {
    case SIM_REPLIES: add_text(m, WB_HEADER_REPLY_TO, SIM_REPLIES_QUEUE); break;
    case SIM_BAD_REPLY: add_text(m, WB_HEADER_REPLY_TO, SIM_BAD_BYTES); break;
    case SIM_MANY_HEADERS: add_many(m); break;
    case SIM_LARGE_HEADERS: add_bulk(m, LARGE_HEADER); break;
    case SIM_BULKY: add_bulk(m, BULKY_HEADER); break;
    case SIM_UNREADABLE: m->problem = "its headers are of a kind nobody knows"; break;
    default: break;
    }
}

/* Half of the ids are such as others generate, with the time in front. */
static void make_id(sim_message *m)
{
    int size;
    if (m->fate == SIM_NO_ID)
        return;
    if (m->number % 2)
        size = snprintf(m->id, sizeof m->id, "0195%04x-beef-7000-8000-%012x", m->number, m->number);
    else
        size = snprintf(m->id, sizeof m->id, "message-%u-%u", m->endpoint, m->number);
    m->id_size = (size_t)size;
    if (m->fate != SIM_LONG_ID)
        return;
    memset(m->id + size, 'z', LONG_ID - (size_t)size);
    m->id_size = LONG_ID;
}

static void make_body(sim_message *m)
{
    m->body_size = m->fate == SIM_LARGE_BODY ? LARGE_BODY : 16;
    m->body = fresh(m->body_size + 1);
    memset(m->body, ' ', m->body_size);
    m->body[sprintf(m->body, "%u", m->number)] = ' ';
}

sim_message *sim_populate_one(unsigned endpoint, sim_fate fate, int batch_handler)
{
    if (sim_message_count == SIM_MESSAGES_MAX)
        abort();
    sim_message *m = &sim_messages[sim_message_count];
    m->number = m->twin = sim_message_count++;
    m->endpoint = endpoint;
    m->fate = fate;
    make_headers(m, batch_handler);
    make_id(m);
    make_body(m);
    sim_sessions_left[endpoint] += fate == SIM_SESSION;
    return m;
}

static void copy_id(sim_message *m, const sim_message *of)
{
    memcpy(m->id, of->id, sizeof m->id);
    m->id_size = of->id_size;
}

sim_message *sim_populate_copy(const sim_message *of, int fate)
{
    sim_message *m = sim_populate_one(of->endpoint, fate < 0 ? of->fate : (sim_fate)fate, 0);
    copy_id(m, of);
    if (fate >= 0)
        return m;
    m->twin = of->twin;
    m->has_base = of->has_base;
    m->is_other = of->is_other;
    m->headers = of->headers;
    m->header_count = of->header_count;
    memcpy(m->body, of->body, of->body_size);
    return m;
}

static void take_headers(sim_message *m, const wb_operation *operation)
{
    m->headers = fresh((operation->header_count + 1) * sizeof *m->headers);
    m->header_count = 0;
    for (size_t i = 0; i < operation->header_count; i++)
        add_header(m, operation->headers[i].name, operation->headers[i].value, operation->headers[i].value_size);
}

sim_message *sim_populate_control(const sim_message *session, const wb_operation *operation)
{
    sim_message *m = sim_populate_one(session->endpoint, SIM_SESSION_CONTROL, 0);
    copy_id(m, session);
    take_headers(m, operation);
    m->body_size = 0;
    return m;
}

sim_message *sim_populate_retry(const sim_message *of, const wb_operation *operation)
{
    sim_message *m = sim_populate_copy(of, -1);
    take_headers(m, operation);
    m->level = wb_recover_retries(operation->headers, operation->header_count);
    return m;
}

/* Without deduplication two bodies under one id are two messages that send the same ids: their
 * sender's fault. And what a handler sends at once cannot be taken back. What is ignored is
 * done once its id is recorded, so that another body under that id would never be handled. Two
 * that fail are one delayed retry, the first; and what a handler ends by itself records the ids of
 * its batch for a moment, so that another body of one is a duplicate. */
static int draw_copy_fate(const sim_message *of)
{
    static const sim_fate fates[] = { SIM_GOOD, SIM_GOOD, SIM_POISON, SIM_FAILING };
    if (!the_shape.outbox || the_shape.delayed_retries || sim_shape_has(SIM_ENDS) || of->fate == SIM_IMMEDIATE ||
        of->fate == SIM_BAD_IMMEDIATE || of->fate == SIM_DEADLY_IMMEDIATE || of->fate == SIM_LATE_IMMEDIATE || sim_fates[of->fate].flags & SIM_IGNORED || sim_chance(50))
        return -1;
    return (int)fates[sim_random(4)];
}

static int can_be_copied(const sim_message *m)
{
    return m->id_size && !(sim_fates[m->fate].flags & (SIM_ENDS_PROCESS | SIM_HARMS_OTHERS)) &&
           m->fate != SIM_LONG_ID && m->fate != SIM_LARGE_BODY && m->fate != SIM_HANGS;
}

/* Of some there are only a few: each ends a process, occupies a worker, or may stay in hand for
 * ever, and a worker that has ten of those takes no more. */
static int is_rare(sim_fate fate, unsigned number)
{
    return fate == SIM_HANGS || fate == SIM_QUOTA ||
           (fate == SIM_ENDS && sim_then_of(number) == SIM_THEN_SERVER) ||
           sim_fates[fate].flags & (SIM_STAYS | SIM_ENDS_PROCESS | SIM_CUTS_BROKER);
}

/* Where nothing is written down, or a broker counts, the number of deliveries tells who kills: one
 * that does is all it can tell from its neighbours. */
static unsigned rare_max(void)
{
    int is_written = the_shape.outbox && !the_shape.delivery_limit;
    return is_written || !the_shape.rare_max ? the_shape.rare_max : 1;
}

/* A second killer that is not yet a suspect may kill while an innocent suspect is handled; of
 * more than one chance could make a case against that. */
static int is_one_too_many(unsigned endpoint, sim_fate fate)
{
    unsigned rare = 0, killers = 0;
    for (unsigned i = 0; i < sim_message_count; i++) {
        rare += sim_messages[i].endpoint == endpoint && is_rare(sim_messages[i].fate, i);
        killers += sim_messages[i].fate == SIM_KILLER;
    }
    return is_rare(fate, sim_message_count) && (rare >= rare_max() || (fate == SIM_KILLER && killers));
}

static sim_fate draw_fate(unsigned endpoint)
{
    if (!the_shape.fate_count || !sim_chance(the_shape.fate_percent))
        return SIM_GOOD;
    sim_fate fate = the_shape.fates[sim_random(the_shape.fate_count)];
    return is_one_too_many(endpoint, fate) ? SIM_GOOD : fate;
}

static void populate_next(unsigned endpoint)
{
    if (sim_message_count && sim_chance(the_shape.copies_percent)) {
        unsigned back = sim_chance(60) ? 1 : 1 + sim_random(sim_message_count);
        const sim_message *of = &sim_messages[sim_message_count - back];
        if (of->endpoint == endpoint && can_be_copied(of)) {
            (void)sim_populate_copy(of, draw_copy_fate(of));
            return;
        }
    }
    /* who ends a transaction does it to all that are in its own call */
    sim_fate fate = draw_fate(endpoint);
    (void)sim_populate_one(endpoint, fate, sim_chance(the_shape.batch_percent) && fate != SIM_ENDS);
}

/* Some have a key that is given twice. */
static void populate_session(unsigned endpoint)
{
    const sim_message *m = sim_populate_one(endpoint, SIM_SESSION, 0);
    if (sim_session_has_key(m) && sim_chance(20))
        (void)sim_populate_copy(m, -1);
}

void sim_populate(void)
{
    for (unsigned i = 0; i < the_shape.messages; i++)
        for (unsigned endpoint = 0; endpoint < the_shape.endpoints; endpoint++)
            populate_next(endpoint);
    for (unsigned i = 0; i < the_shape.sessions; i++)
        for (unsigned endpoint = 0; endpoint < the_shape.endpoints; endpoint++)
            populate_session(endpoint);
    for (unsigned i = 0; i < the_shape.rows; i++)
        for (unsigned endpoint = 0; endpoint < the_shape.endpoints; endpoint++)
            (void)sim_populate_one(endpoint, SIM_WRITTEN, 0);
}

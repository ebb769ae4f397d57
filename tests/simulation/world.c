/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/message/header_names.h"
#include "core/recover/recoverability.h"
#include "tests/simulation/world.h"

world the_world;

unsigned world_random(unsigned limit)
{
    the_world.random = the_world.random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(the_world.random >> 33) % limit;
}

void world_die(void)
{
    the_world.dead = 1;
    atomic_store(the_world.stop, 1);
}

int world_fault(void)
{
    the_world.steps++;
    if (the_world.crash_after && --the_world.crash_after == 0)
        world_die();
    return the_world.dead || (int)world_random(100) < the_world.fault_percent;
}

/* Every tenth message has the id of the one before: a duplicate. */
static void make_message(size_t i)
{
    world_message *m = &the_world.messages[i];
    size_t number = i % 10 == 9 ? i - 1 : i;
    (void)snprintf(m->id, sizeof m->id, "message-%zu", number);
    (void)snprintf(m->body, sizeof m->body, "%zu", number);
    m->headers[0] = (wb_header){ WB_HEADER_TYPES, "Test.Order", strlen(WB_HEADER_TYPES), 10 };
    m->incoming = (wb_incoming){ .struct_size = sizeof m->incoming,
                                 .id = m->id,
                                 .id_size = strlen(m->id),
                                 .headers = m->headers,
                                 .header_count = 1,
                                 .body = m->body,
                                 .body_size = strlen(m->body) };
    m->queued = 1;
}

void world_reset(uint64_t seed)
{
    for (size_t i = 0; i < the_world.pending_count; i++)
        free(the_world.pending[i].bytes);
    memset(&the_world, 0, sizeof the_world);
    the_world.random = seed * 2 + 1;
    for (size_t i = 0; i < WORLD_MESSAGES; i++)
        make_message(i);
}

int world_is_drained(void)
{
    for (size_t i = 0; i < WORLD_MESSAGES; i++)
        if (!the_world.messages[i].gone)
            return 0;
    return 1;
}

static void roll_back(void)
{
    the_world.open = 0;
    the_world.failed = 0;
    the_world.claimed_count = 0;
    memset(the_world.new_effects, 0, sizeof the_world.new_effects);
}

static void redeliver(void)
{
    for (size_t i = 0; i < WORLD_MESSAGES; i++) {
        world_message *m = &the_world.messages[i];
        if (m->unacknowledged) {
            m->incoming.delivery_count++;
            m->unacknowledged = 0;
            m->queued = 1;
        }
    }
}

void world_bury(void)
{
    roll_back();
    redeliver();
    the_world.dead = 0;
    the_world.crash_after = 0;
}

static int lost(wb_error *error, int result)
{
    return wb_error_set(error, result, WB_CAUSE_UNREACHABLE, 0, "simulated loss");
}

/* ---- transport ---- */

static int transport_open(wb_transport *t, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret, wb_error *error)
{
    (void)t, (void)purpose, (void)prefetch;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    *ret = (wb_transport_session *)&the_world;
    return WB_OK;
}

static void transport_close(wb_transport_session *s)
{
    (void)s;
    redeliver();
}

static int transport_receive(wb_transport_session *s, int64_t deadline, const wb_incoming **messages,
                             size_t max, size_t *ret_count, wb_error *error)
{
    (void)s;
    *ret_count = 0;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    for (size_t i = 0; i < WORLD_MESSAGES && *ret_count < max; i++) {
        world_message *m = &the_world.messages[i];
        if (!m->queued)
            continue;
        m->queued = 0;
        m->unacknowledged = 1;
        messages[(*ret_count)++] = &m->incoming;
    }
    if (!*ret_count && deadline > the_world.now)
        the_world.now = deadline;
    if (world_is_drained() || the_world.steps > WORLD_STEPS_MAX)
        atomic_store(the_world.stop, 1);
    return WB_OK;
}

static int transport_acknowledge(wb_transport_session *s, const wb_incoming *const *messages,
                                 size_t count, wb_error *error)
{
    (void)s;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    for (size_t i = 0; i < count; i++) {
        world_message *m = (world_message *)(uintptr_t)messages[i];
        m->gone = 1;
        m->unacknowledged = 0;
    }
    return world_fault() ? lost(error, WB_NOT_CONNECTED) : WB_OK;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static void record_sent(const wb_operation *operation)
{
    world_sent *sent = &the_world.sent[the_world.sent_count++];
    uint64_t hash = hash_bytes(14695981039346656037u, operation->body, operation->body_size);
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        hash = hash_bytes(hash, header->name, header->name_size);
        hash = hash_bytes(hash, header->value, header->value_size);
        if (strcmp(header->name, WB_HEADER_EXCEPTION_TYPE) == 0)
            sent->given_up = strcmp(header->value, WB_FAILURE_CRASHES) == 0;
        if (strcmp(header->name, WB_HEADER_RELATED_TO) == 0)
            (void)snprintf(sent->cause, sizeof sent->cause, "%s", header->value);
    }
    (void)snprintf(sent->id, sizeof sent->id, "%s", operation->id);
    (void)snprintf(sent->destination, sizeof sent->destination, "%s", operation->destination);
    sent->bytes_hash = hash;
}

static int transport_send(wb_transport_session *s, wb_operation *const *operations, size_t count,
                          int64_t deadline, wb_error *error)
{
    (void)s, (void)deadline;
    for (size_t i = 0; i < count; i++) {
        if (world_fault())
            return lost(error, world_random(2) || the_world.dead ? WB_NOT_CONNECTED : WB_RETRY);
        if (strcmp(operations[i]->destination, "nowhere") == 0) {
            operations[i]->result = WB_REJECT;
            operations[i]->cause = WB_CAUSE_UNROUTABLE;
            operations[i]->reason = "no such queue";
            continue;
        }
        record_sent(operations[i]);
        if (world_fault()) /* sent, but its confirmation is lost */
            return lost(error, WB_IN_DOUBT);
        operations[i]->result = WB_OK;
    }
    return WB_OK;
}

static void transport_interrupt(wb_transport_session *s)
{
    (void)s;
}

const wb_transport_ops world_transport = {
    .struct_size = sizeof world_transport,
    .open = transport_open,
    .close = transport_close,
    .receive = transport_receive,
    .acknowledge = transport_acknowledge,
    .send = transport_send,
    .interrupt = transport_interrupt,
};

/* ---- persistence ---- */

static int persistence_open(wb_persistence *p, wb_storage_session **ret, wb_error *error)
{
    (void)p;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    *ret = (wb_storage_session *)&the_world;
    return WB_OK;
}

static void persistence_close(wb_storage_session *s)
{
    (void)s;
    roll_back();
}

static uint64_t find_record(const wb_claim *claim)
{
    for (size_t i = 0; i < the_world.record_count; i++)
        if (strlen(the_world.records[i].id) == claim->id_size &&
            memcmp(the_world.records[i].id, claim->id, claim->id_size) == 0)
            return the_world.records[i].batch;
    return 0;
}

static void delete_pending(size_t at)
{
    free(the_world.pending[at].bytes);
    the_world.pending[at] = the_world.pending[--the_world.pending_count];
}

static void apply_mark(const wb_mark *mark)
{
    for (size_t i = 0; i < the_world.pending_count; i++) {
        world_pending *row = &the_world.pending[i];
        if (row->batch != mark->batch)
            continue;
        if (!mark->remaining) {
            delete_pending(i);
            return;
        }
        row->bytes = realloc(row->bytes, mark->remaining_size);
        memcpy(row->bytes, mark->remaining, mark->remaining_size);
        row->size = mark->remaining_size;
        return;
    }
}

static int persistence_mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    (void)s;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    for (size_t i = 0; i < count; i++)
        apply_mark(&marks[i]);
    return world_fault() ? lost(error, WB_NOT_CONNECTED) : WB_OK;
}

static void claim(wb_begin *begin, size_t i)
{
    wb_claim *wanted = &begin->claims[i];
    wanted->duplicate_of = find_record(wanted);
    if (wanted->duplicate_of)
        return;
    world_record *record = &the_world.claimed[the_world.claimed_count++];
    memcpy(record->id, wanted->id, wanted->id_size);
    record->id[wanted->id_size] = '\0';
    record->batch = begin->batch;
}

static int persistence_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    int r = persistence_mark(s, begin->marks, begin->mark_count, error);
    if (r != WB_OK)
        return r;
    if (world_fault())
        return lost(error, the_world.dead ? WB_NOT_CONNECTED : world_random(2) ? WB_ABORT : WB_RETRY);
    the_world.open = 1;
    the_world.batch = begin->batch;
    for (size_t i = 0; i < begin->claim_count; i++)
        claim(begin, i);
    return WB_OK;
}

static int persistence_check(wb_storage_session *s, size_t item, wb_error *error)
{
    (void)s, (void)item;
    return the_world.failed ? lost(error, WB_RETRY) : WB_OK;
}

static int is_released(const wb_commit *commit, const world_record *record)
{
    for (size_t i = 0; i < commit->released_count; i++)
        if (commit->released[i].id_size == strlen(record->id) &&
            memcmp(commit->released[i].id, record->id, strlen(record->id)) == 0)
            return 1;
    return 0;
}

static void make_durable(const wb_commit *commit)
{
    for (size_t i = 0; i < the_world.claimed_count; i++)
        if (!is_released(commit, &the_world.claimed[i]))
            the_world.records[the_world.record_count++] = the_world.claimed[i];
    for (size_t i = 0; i < WORLD_MESSAGES; i++)
        the_world.effects[i] += the_world.new_effects[i];
    if (commit->operations) {
        world_pending *row = &the_world.pending[the_world.pending_count++];
        row->batch = commit->batch;
        row->size = commit->operations_size;
        row->bytes = malloc(row->size);
        memcpy(row->bytes, commit->operations, row->size);
    }
}

static int persistence_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    (void)s;
    int r = WB_OK;
    if (world_fault()) {
        static const int classes[] = { WB_NOT_CONNECTED, WB_ABORT, WB_RETRY, WB_IN_DOUBT, WB_IN_DOUBT };
        r = the_world.dead ? WB_IN_DOUBT : classes[world_random(5)];
    }
    if (r == WB_OK || (r == WB_IN_DOUBT && world_random(2)))
        make_durable(commit);
    roll_back();
    return r == WB_OK ? WB_OK : lost(error, r);
}

static int persistence_rollback(wb_storage_session *s, wb_error *error)
{
    (void)s;
    roll_back();
    return world_fault() ? lost(error, WB_NOT_CONNECTED) : WB_OK;
}

static int persistence_pending(wb_storage_session *s, const uint64_t *batches, size_t count,
                               wb_pending_fn visit, void *argument, wb_error *error)
{
    (void)s;
    if (world_fault())
        return lost(error, WB_NOT_CONNECTED);
    for (size_t i = 0; i < the_world.pending_count; i++)
        for (size_t k = 0; k < count; k++)
            if (the_world.pending[i].batch == batches[k]) {
                wb_pending row = { batches[k], the_world.pending[i].bytes, the_world.pending[i].size };
                int r = visit(argument, &row);
                if (r != WB_OK)
                    return r;
            }
    return WB_OK;
}

static const void *persistence_interface(wb_storage_session *s, const char *name)
{
    (void)s, (void)name;
    return &the_world;
}

const wb_persistence_ops world_persistence = {
    .struct_size = sizeof world_persistence,
    .open = persistence_open,
    .close = persistence_close,
    .begin = persistence_begin,
    .interface = persistence_interface,
    .check = persistence_check,
    .commit = persistence_commit,
    .rollback = persistence_rollback,
    .mark = persistence_mark,
    .pending = persistence_pending,
};

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/expiry.h>

#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/session_control.h"
#include "core/recover/recoverability.h"
#include "core/recover/retry_copy.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/written.h"

sim_message sim_messages[SIM_MESSAGES_MAX];
unsigned sim_message_count;
sim_sent *sim_sents;
size_t sim_sent_count;

static size_t sent_max;
static sim_run **runs;
static size_t run_count, run_max;

sim_message *sim_ledger_find(const void *body)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].body == body)
            return &sim_messages[i];
    sim_violation("a handler gets a body that no message has");
}

/* The ways of ending go by the number, modulo eight: of 48 that are three apart each is another case. */
sim_then sim_then_of(unsigned number)
{
    return (sim_then)((number / 24 + number / 3 * 2) % SIM_THENS);
}

sim_message *sim_ledger_parse(const void *body, size_t size)
{
    char text[24] = "";
    unsigned number;
    memcpy(text, body, size < sizeof text - 1 ? size : sizeof text - 1);
    if (sscanf(text, "%u", &number) != 1 || number >= sim_message_count)
        return NULL;
    return &sim_messages[number];
}

sim_message *sim_ledger_session(const void *id, size_t size)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].fate == SIM_SESSION && sim_messages[i].id_size == size &&
            memcmp(sim_messages[i].id, id, size) == 0)
            return &sim_messages[i];
    return NULL;
}

sim_message *sim_ledger_cause(const wb_operation *operation)
{
    sim_message *m = sim_ledger_parse(operation->body, operation->body_size);
    if (!m)
        m = sim_ledger_session(operation->id, operation->id_size);
    if (!m)
        sim_violation("nobody's message is sent to \"%s\"", operation->destination);
    return m;
}

/* ---- runs ---- */

sim_run *sim_run_begin(sim_message *message)
{
    sim_run *run = calloc(1, sizeof *run);
    if (run_count == run_max) {
        run_max = run_max ? run_max * 2 : 1024;
        runs = realloc(runs, run_max * sizeof *runs);
    }
    if (!run || !runs)
        abort();
    run->message = message;
    runs[run_count++] = run;
    run->serial = run_count;
    run->asked = the_shape.audits && message->fate != SIM_SESSION && message->fate != SIM_WRITTEN ? 1u << SIM_LABEL_AUDIT : 0;
    if (!message->runs++)
        message->first_run_at = sim_database_wall();
    message->run = run;
    return run;
}

void sim_run_end(sim_run *run, int result, int own)
{
    sim_message *m = run->message;
    run->failed = result != WB_OK;
    if (result == WB_OK) {
        m->returned++;
        if (!the_shape.persistence)
            m->asked |= run->asked;
    } else {
        m->failures += own != 0;
        m->excuses += !own;
    }
}

void sim_run_end_base(sim_run *run, int result, int own)
{
    if (run->failed || run->based)
        sim_violation("message %u: the handler of its base runs, but not after its own", run->message->number);
    run->based = 1;
    run->message->returned--;
    sim_run_end(run, result, own);
}

void sim_run_commit(sim_run *run)
{
    sim_message *m = run->message;
    if (m->has_base && !run->based)
        sim_violation("message %u is committed without what the handler of its base does", m->number);
    if (run->failed && m->fate != SIM_ENDS)
        sim_violation("an effect of a handler that failed was committed: message %u", m->number);
    if (run->is_refused)
        sim_violation("session %u is committed, and its program was told that nothing is", m->number);
    run->committed = 1;
    m->commits++;
    sim_partition_check_order(m);
    m->asked |= run->asked;
}

const sim_run *sim_run_find(size_t serial)
{
    return serial && serial <= run_count ? runs[serial - 1] : NULL;
}

/* ---- what was sent ---- */

/* Eight bytes at a time: some headers have 70,000. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (; size >= sizeof hash; size -= sizeof hash, bytes += sizeof hash) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        hash = (hash ^ word) * UINT64_C(1099511628211);
        hash ^= hash >> 32;
    }
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

static int differs_each_time(const char *name)
{
    return strcmp(name, WB_HEADER_TIME_SENT) == 0 || strcmp(name, WB_HEADER_PROCESSING_STARTED) == 0 ||
           strcmp(name, WB_HEADER_PROCESSING_ENDED) == 0 || strcmp(name, "Sim.Run") == 0 ||
           strcmp(name, SIM_HEADER_DUE) == 0 || strcmp(name, WB_HEADER_DELIVER_AT) == 0 ||
           strcmp(name, WB_HEADER_RETRIES) == 0 || strcmp(name, WB_HEADER_RETRIES_TIMESTAMP) == 0;
}

static void hash_header(sim_sent *sent, const wb_header *header)
{
    sent->hash = hash_bytes(sent->hash, header->name, header->name_size);
    sent->hash = hash_bytes(sent->hash, header->value, header->value_size);
    if (differs_each_time(header->name))
        return;
    sent->hash_steady = hash_bytes(sent->hash_steady, header->name, header->name_size);
    sent->hash_steady = hash_bytes(sent->hash_steady, header->value, header->value_size);
}

static void read_headers(sim_sent *sent, const wb_operation *operation)
{
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        hash_header(sent, header);
        if (strcmp(header->name, "Sim.Run") == 0)
            sent->run = strtoul(header->value, NULL, 10);
        if (strcmp(header->name, SIM_HEADER_DUE) == 0)
            sent->due = strtoll(header->value, NULL, 10);
        if (strcmp(header->name, WB_HEADER_EXCEPTION_TYPE) == 0)
            sent->given_up = strcmp(header->value, WB_FAILURE_CRASHES) == 0;
    }
}

/* What a handler sends has a body "number/label/ordinal"; what came in has none of these. */
static void read_body(sim_sent *sent, const wb_operation *operation)
{
    char text[48] = "";
    size_t size = operation->body_size < sizeof text - 1 ? operation->body_size : sizeof text - 1;
    memcpy(text, operation->body, size);
    sent->label = -1;
    if (sscanf(text, "%u/%d/%u", &sent->number, &sent->label, &sent->ordinal) < 1)
        sim_violation("a message without a known body arrives at \"%s\"", operation->destination);
    if (strcmp(operation->destination, SIM_AUDIT_QUEUE) == 0)
        sent->label = SIM_LABEL_AUDIT;
}

static sim_sent *add_sent(void)
{
    if (sim_sent_count == sent_max) {
        sent_max = sent_max ? sent_max * 2 : 1024;
        sim_sents = realloc(sim_sents, sent_max * sizeof *sim_sents);
    }
    if (!sim_sents)
        abort();
    memset(&sim_sents[sim_sent_count], 0, sizeof *sim_sents);
    return &sim_sents[sim_sent_count++];
}

/* A copy is the message, whatever was said about it. */
static void check_copy(const sim_message *m, const wb_operation *operation)
{
    if (operation->body_size != m->body_size || memcmp(operation->body, m->body, m->body_size) != 0)
        sim_violation("the copy of message %u in the queue %s has another body", m->number, operation->destination);
}

/* It waits for as many increments, after what it is a copy of has run, and failed somehow; of
 * several it may be any. */
static int is_early(const sim_message *m, uint32_t number)
{
    const int64_t now = sim_database_wall() + sim_database_jumped(), delay = number * SIM_DELAY_INCREMENT;
    int some = 0;
    for (unsigned i = 0; i < sim_message_count; i++) {
        const sim_message *one = &sim_messages[i];
        if (one->twin != m->number || one->level + 1 != number || !one->first_run_at)
            continue;
        if (one->first_run_at + delay <= now)
            return 0;
        some = 1;
    }
    return some;
}

/* The original, and how often it has been here: not too often, and not too early. */
static void check_retry(const sim_message *m, const wb_operation *operation)
{
    const uint32_t number = wb_recover_retries(operation->headers, operation->header_count);
    check_copy(m, operation);
    if (!number || number > the_shape.delayed_retries)
        sim_violation("message %u: delayed retry %u of %u", m->number, number, the_shape.delayed_retries);
    if (operation->header_count != m->header_count + 2)
        sim_violation("message %u: a delayed retry has %zu headers of %zu", m->number, operation->header_count,
                      m->header_count);
    for (size_t i = 0; i < m->header_count; i++)
        if (strcmp(operation->headers[i].name, m->headers[i].name) != 0 ||
            strcmp(operation->headers[i].value, m->headers[i].value) != 0)
            sim_violation("message %u: a delayed retry has another header %s", m->number, m->headers[i].name);
    if (is_early(m, number))
        sim_violation("message %u: a delayed retry comes early", m->number);
}

static int is_retry(const sim_sent *sent)
{
    return sent->label < 0 && strncmp(sent->destination, "endpoint-", 9) == 0;
}

/* By the database's clock, and by what that has jumped. */
static void check_due(const sim_sent *sent)
{
    int64_t late = sim_database_wall() - sent->due;
    if (!sent->due)
        return;
    if (late < -sim_database_jumped())
        sim_violation("message %u: what it delayed arrives %.3f s early", sent->number, (double)-late / 1e9);
    if (the_shape.late_max && late > the_shape.late_max)
        sim_violation("message %u: what it delayed arrives %.3f s late", sent->number, (double)late / 1e9);
}

/* What was received once expires no more, in whichever queue it lies; what is sent does when it was
 * asked to. */
static void check_expiry(const sim_sent *sent, const wb_operation *operation)
{
    const int64_t span = wb_time_to_be_received(operation->headers, operation->header_count);
    const int64_t asked = the_shape.expires && sent->label == SIM_LABEL_SECOND && sent->run ? SIM_SPAN : 0;
    if (span != asked)
        sim_violation("message %u: what arrives at %s (%d) expires after %.3f s and not %.3f s", sent->number,
                      operation->destination, sent->label, (double)span / 1e9, (double)asked / 1e9);
}

/* Of a session: it comes to its endpoint, at once or after a while; or it was forwarded in vain too often. */
static void receive_control(const wb_operation *operation)
{
    sim_message *session = sim_ledger_cause(operation);
    if (strcmp(operation->destination, SIM_ERROR_QUEUE) == 0) {
        session->control_is_lost = 1;
        return;
    }
    const sim_message *m = sim_populate_control(session, operation);
    sim_tell("a control message of session %u arrives as %u", session->number, m->number);
    sim_broker_publish(m->number);
}

void sim_ledger_send(const wb_operation *operation)
{
    wb_session_control control;
    if (wb_session_control_read(operation->headers, operation->header_count, &control) > 0) {
        receive_control(operation);
        return;
    }
    sim_sent *sent = add_sent();
    sent->kind = operation->kind;
    sent->id_size = operation->id_size < sizeof sent->id ? operation->id_size : sizeof sent->id - 1;
    if (sent->id_size)
        memcpy(sent->id, operation->id, sent->id_size);
    (void)snprintf(sent->destination, sizeof sent->destination, "%s", operation->destination);
    sent->hash = sent->hash_steady =
        hash_bytes(UINT64_C(14695981039346656037), operation->body, operation->body_size);
    read_headers(sent, operation);
    sent->is_traced = WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_TRACE_PARENT) != NULL;
    read_body(sent, operation);
    if (sent->number >= sim_message_count)
        sim_violation("a message of nobody arrives at \"%s\"", sent->destination);
    sim_message *m = &sim_messages[sent->number];
    check_expiry(sent, operation);
    if (is_retry(sent)) {
        const sim_message *retry = sim_populate_retry(m, operation);
        check_retry(m, operation);
        sim_tell("message %u comes back as %u", m->number, retry->number);
        sim_broker_publish(retry->number);
        return;
    }
    if (sent->label < 0 || sent->label == SIM_LABEL_AUDIT)
        check_copy(m, operation);
    check_due(sent);
    if (m->fate == SIM_WRITTEN)
        sim_written_arrives(m, sent);
    if (sent->label < 0)
        m->moved++;
    else
        m->sent |= 1u << sent->label;
    sim_tell("arrives at %s: %u label %d", sent->destination, sent->number, sent->label);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/database.h"

#include <stdlib.h>
#include <string.h>

#include "core/message/ids.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/written.h"

/* Between the birth of a batch's number and its claims. */
#define AGE_TOLERANCE (60 * WB_SECOND)

sim_table sim_tables[SIM_TABLES];
static wb_storage_session *sessions;

static void *grow(void *array, size_t count, size_t *max, size_t size)
{
    if (count < *max)
        return array;
    *max = *max ? *max * 2 : 64;
    array = realloc(array, *max * size);
    if (!array)
        abort();
    return array;
}

/* ---- sessions ---- */

wb_storage_session *sim_database_open(unsigned endpoint)
{
    wb_storage_session *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->endpoint = endpoint;
    s->process = sim_process();
    s->thread = sim_current();
    s->next = sessions;
    sessions = s;
    return s;
}

static void release_sweeper(const void *session)
{
    sim_written_leave(session);
    for (unsigned i = 0; i < SIM_TABLES; i++)
        if (sim_tables[i].sweeper == session)
            sim_tables[i].sweeper = NULL;
}

void sim_database_close(wb_storage_session *s)
{
    wb_storage_session **at = &sessions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    release_sweeper(s);
    sim_transaction_roll_back(&s->own);
    free(s->own.runs);
    free(s->own.claims);
    free(s->own.ended);
    free(s->taken);
    memset(s, 0xdd, sizeof *s);
    free(s);
}

void sim_database_bury(int process)
{
    for (wb_storage_session **at = &sessions; *at;) {
        wb_storage_session *s = *at;
        if (s->process != process) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        release_sweeper(s);
        sim_transaction_roll_back(&s->own);
    }
}

int sim_database_take(wb_storage_session *session, uint64_t batch)
{
    session->row = 0;
    if (!batch || !sim_database_row(session->endpoint, batch))
        return WB_TAKEN_BY_OTHERS;
    for (const wb_storage_session *s = sessions; s; s = s->next)
        if (s->endpoint == session->endpoint && s->row == batch && !s->is_dead)
            return WB_TAKEN_BY_OTHERS;
    session->row = batch;
    return WB_TAKEN;
}

/* ---- deduplication records ---- */

/* Most ids that are looked for were never recorded: this says so at once. Bits are never cleared. */
#define SEEN_BITS (1u << 22)
static unsigned char seen[SIM_TABLES][SEEN_BITS / 8];

static unsigned hash_of(const void *id, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)id)[i]) * UINT64_C(1099511628211);
    return (unsigned)(hash >> 20) % SEEN_BITS;
}

static int is_new(unsigned endpoint, const void *id, size_t size)
{
    unsigned hash = hash_of(id, size);
    return !(seen[endpoint][hash / 8] & 1u << hash % 8);
}

static void note_seen(unsigned endpoint, const void *id, size_t size)
{
    unsigned hash = hash_of(id, size);
    seen[endpoint][hash / 8] |= (unsigned char)(1u << hash % 8);
}

uint64_t sim_database_find(unsigned endpoint, const void *id, size_t id_size)
{
    const sim_table *t = &sim_tables[endpoint];
    if (is_new(endpoint, id, id_size))
        return 0;
    for (size_t i = 0; i < t->record_count; i++)
        if (t->records[i].id_size == id_size && memcmp(t->records[i].id, id, id_size) == 0)
            return t->records[i].batch;
    return 0;
}

int sim_database_is_claimed(const wb_storage_session *session, const void *id, size_t id_size)
{
    for (const wb_storage_session *s = sessions; s; s = s->next)
        for (size_t i = 0; s != session && s->endpoint == session->endpoint && i < s->own.claim_count; i++)
            if (s->own.claims[i].id_size == id_size && memcmp(s->own.claims[i].id, id, id_size) == 0)
                return 1;
    return 0;
}

void sim_database_claim(wb_storage_session *s, uint64_t batch, const wb_claim *claim)
{
    sim_transaction *t = &s->own;
    t->claims = grow(t->claims, t->claim_count, &t->claim_max, sizeof *t->claims);
    sim_record *record = &t->claims[t->claim_count++];
    memset(record, 0, sizeof *record);
    memcpy(record->id, claim->id, claim->id_size);
    record->id_size = claim->id_size;
    record->batch = batch;
    record->born = sim_true_wall();
}

/* ---- positions ---- */

int sim_database_has_place(const wb_storage_session *session, unsigned place)
{
    for (const wb_storage_session *s = sessions; s; s = s->next)
        if (s != session && s->endpoint == session->endpoint && s->own.has_place[place])
            return 1;
    return 0;
}

void sim_database_move_on(wb_storage_session *s, unsigned place, wb_position *position, uint64_t batch)
{
    const sim_place_row *row = &sim_tables[s->endpoint].places[place];
    position->found = row->position;
    position->batch = row->batch;
    s->own.has_place[place] = 1;
    s->own.places[place] = position->next > row->position ? (sim_place_row){ position->next, batch } : *row;
}

uint64_t sim_database_passed(unsigned endpoint, unsigned place, uint64_t position)
{
    const sim_place_row *row = &sim_tables[endpoint].places[place];
    return position < row->position ? row->batch : 0;
}

void sim_database_forget_positions(unsigned endpoint)
{
    memset(sim_tables[endpoint].places, 0, sizeof sim_tables[endpoint].places);
}

static void write_places(const sim_transaction *t, sim_table *table, const wb_commit *commit)
{
    for (unsigned i = 0; i < SIM_PLACES; i++)
        if (t->has_place[i]) {
            table->places[i] = t->places[i];
            sim_tell("partition %u is done with below %llu", i, (unsigned long long)table->places[i].position);
        }
    for (size_t i = 0; commit && i < commit->position_count; i++) {
        const wb_position *back = &commit->positions[i];
        sim_place_row *row = &table->places[sim_partition_find(back->partition, back->partition_size)];
        if (row->batch == commit->batch)
            *row = (sim_place_row){ back->next, back->batch };
    }
}

static int is_released(const wb_commit *commit, const sim_record *record)
{
    for (size_t i = 0; commit && i < commit->released_count; i++)
        if (commit->released[i].id_size == record->id_size &&
            memcmp(commit->released[i].id, record->id, record->id_size) == 0)
            return 1;
    return 0;
}

/* Of that batch, if one is told. */
static void remove_record(sim_table *t, const wb_claim *claim)
{
    for (size_t i = 0; i < t->record_count; i++)
        if (t->records[i].id_size == claim->id_size &&
            (!claim->duplicate_of || t->records[i].batch == claim->duplicate_of) &&
            memcmp(t->records[i].id, claim->id, claim->id_size) == 0)
            t->records[i--] = t->records[--t->record_count];
}

/* Of a host whose clock is wrong the database's own time tells the age, if it is asked. */
static void check_age(const sim_record *record)
{
    int64_t age = sim_true_wall() - record->born;
    if (the_shape.has_clock && age + AGE_TOLERANCE < the_shape.retention)
        sim_violation("a record is removed after %.0f s, retention is %.0f s", (double)age / 1e9,
                      (double)the_shape.retention / 1e9);
}

size_t sim_database_clean_up(unsigned endpoint, uint64_t before, size_t limit)
{
    sim_table *t = &sim_tables[endpoint];
    size_t deleted = 0;
    for (size_t i = 0; i < t->record_count && deleted < limit; i++) {
        sim_record *record = &t->records[i];
        if (record->batch >= before || sim_database_row(endpoint, record->batch))
            continue;
        check_age(record);
        t->records[i--] = t->records[--t->record_count];
        deleted++;
    }
    return deleted;
}

/* ---- pending rows ---- */

/* The place of the first row of that batch or a later one. Some have 11,000, and ask for each. */
static size_t place_of(const sim_table *t, uint64_t batch)
{
    size_t low = 0, high = t->row_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->rows[middle].batch < batch)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

sim_row *sim_database_row(unsigned endpoint, uint64_t batch)
{
    sim_table *t = &sim_tables[endpoint];
    const size_t at = place_of(t, batch);
    return at < t->row_count && t->rows[at].batch == batch ? &t->rows[at] : NULL;
}

uint64_t sim_database_next_row(unsigned endpoint, uint64_t after, uint64_t before)
{
    const sim_table *t = &sim_tables[endpoint];
    const size_t at = place_of(t, after + 1);
    return at < t->row_count && t->rows[at].batch < before ? t->rows[at].batch : 0;
}

static void set_bytes(sim_row *row, const void *bytes, size_t size)
{
    void *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, bytes, size);
    free(row->bytes);
    row->bytes = copy;
    row->size = size;
}

static sim_row *insert_row(sim_table *t, size_t at)
{
    sim_row *all = t->rows ? t->rows - t->row_room : NULL;
    if (t->row_room > t->row_max / 2) {
        memmove(all, t->rows, t->row_count * sizeof *all);
        t->row_room = 0;
    }
    all = grow(all, t->row_room + t->row_count, &t->row_max, sizeof *all);
    t->rows = all + t->row_room;
    memmove(&t->rows[at + 1], &t->rows[at], (t->row_count++ - at) * sizeof *all);
    return &t->rows[at];
}

static void remove_row(sim_table *t, size_t at)
{
    memmove(t->rows + 1, t->rows, at * sizeof *t->rows);
    t->rows++;
    t->row_room++;
    t->row_count--;
}

int sim_database_store(unsigned endpoint, uint64_t batch, const void *bytes, size_t size, int is_foreign)
{
    sim_table *t = &sim_tables[endpoint];
    if (sim_database_row(endpoint, batch))
        return 0;
    sim_row *row = insert_row(t, place_of(t, batch));
    *row = (sim_row){ .batch = batch, .is_foreign = is_foreign, .born = sim_true_wall() };
    set_bytes(row, bytes, size);
    return 1;
}

void sim_database_mark(unsigned endpoint, const wb_mark *mark)
{
    sim_table *t = &sim_tables[endpoint];
    sim_row *row = sim_database_row(endpoint, mark->batch);
    if (!row)
        return;
    if (row->is_foreign)
        sim_violation("a row that only a later version can read is changed");
    row->is_marked = 1;
    if (mark->remaining) {
        set_bytes(row, mark->remaining, mark->remaining_size);
        return;
    }
    free(row->bytes);
    remove_row(t, (size_t)(row - t->rows));
}

/* ---- transactions ---- */

sim_transaction *sim_database_transaction(wb_storage_session *s)
{
    return s->joined ? s->joined : &s->own;
}

void sim_transaction_start(sim_transaction *t)
{
    sim_transaction_roll_back(t);
    t->is_open = 1;
}

void sim_transaction_add(sim_transaction *t, sim_run *run)
{
    t->runs = grow(t->runs, t->run_count, &t->run_max, sizeof *t->runs);
    t->runs[t->run_count++] = run;
}

static void add_record(sim_table *table, const sim_record *record)
{
    note_seen((unsigned)(table - sim_tables), record->id, record->id_size);
    table->records = grow(table->records, table->record_count, &table->record_max, sizeof *record);
    table->records[table->record_count++] = *record;
}

void sim_database_forget(unsigned endpoint, const wb_claim *claim)
{
    if (!sim_database_find(sim_apart(endpoint), claim->id, claim->id_size) &&
        sim_database_find(endpoint, claim->id, claim->id_size) == claim->duplicate_of)
        sim_violation("a record goes, and no store has its id");
    remove_record(&sim_tables[endpoint], claim);
}

void sim_database_remember(unsigned store, const wb_claim *claim)
{
    const sim_table *own = &sim_tables[store - SIM_ENDPOINTS_MAX];
    sim_record record = { .id_size = claim->id_size, .batch = claim->duplicate_of, .born = sim_true_wall() };
    if (sim_database_find(store, claim->id, claim->id_size))
        return;
    memcpy(record.id, claim->id, claim->id_size);
    for (size_t i = 0; i < own->record_count; i++)
        if (own->records[i].id_size == claim->id_size && memcmp(own->records[i].id, claim->id, claim->id_size) == 0)
            record.born = own->records[i].born;
    add_record(&sim_tables[store], &record);
}

void sim_transaction_commit(sim_transaction *t, unsigned endpoint, const wb_commit *commit)
{
    sim_table *table = &sim_tables[endpoint];
    for (size_t i = 0; commit && i < commit->claim_count; i++)
        if (commit->claims[i].duplicate_of)
            remove_record(table, &commit->claims[i]); /* it is replaced */
    for (size_t i = 0; i < t->claim_count; i++)
        if (!is_released(commit, &t->claims[i]))
            add_record(table, &t->claims[i]);
    /* what this transaction did not claim itself it may give back, too */
    for (size_t i = 0; commit && i < commit->released_count; i++)
        remove_record(table, &commit->released[i]);
    write_places(t, table, commit);
    for (size_t i = 0; i < t->run_count; i++)
        sim_run_commit(t->runs[i]);
    sim_delayed_end(t, 1);
    sim_transaction_roll_back(t);
}

void sim_transaction_roll_back(sim_transaction *t)
{
    sim_run **runs = t->runs;
    sim_record *claims = t->claims;
    sim_run **ended = t->ended;
    size_t run_max = t->run_max, claim_max = t->claim_max, ended_max = t->ended_max;
    sim_delayed_end(t, 0);
    *t = (sim_transaction){ .runs = runs,
                            .run_max = run_max,
                            .ended = ended,
                            .ended_max = ended_max,
                            .claims = claims,
                            .claim_max = claim_max,
                            .broken_by = SIM_ITEM_NOBODY,
                            .ended_by = SIM_ITEM_NOBODY,
                            .deferred_by = SIM_ITEM_NOBODY };
}

void sim_transaction_end(sim_transaction *t, unsigned endpoint)
{
    const size_t count = t->run_count;
    for (size_t i = 0; i < count; i++) {
        t->ended = grow(t->ended, i, &t->ended_max, sizeof *t->ended);
        t->ended[i] = t->runs[i];
        t->runs[i]->message->doubts++;
    }
    sim_transaction_commit(t, endpoint, NULL);
    t->ended_count = count;
}

void sim_transaction_name(sim_transaction *t)
{
    for (size_t i = 0; i < t->ended_count; i++)
        t->ended[i]->message->doubts--;
    t->ended_count = 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What is committed beside an offset, and the offsets themselves: a note is read as it was written,
 * and the low-water mark is that of a list that does the obvious.
 */
#include "config.h"

#include <string.h>

#include "plugins/transport/kafka/kafka-offsets.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "kafka_notes";

static int is_same(wb_kafka_note a, wb_kafka_note b)
{
    return a.deliveries == b.deliveries && a.span == b.span && a.is_there == b.is_there;
}

static void check_note(wb_kafka_note note)
{
    char text[WB_KAFKA_NOTE_SIZE];
    wb_kafka_note_write(text, note);
    const size_t size = strlen(text);
    FUZZ_CHECK(is_same(wb_kafka_note_read(fuzz_copy(text, size), size), note));
}

static void try_note(const void *data, size_t size)
{
    const wb_kafka_note note = wb_kafka_note_read(data, size), none = { 0 };
    FUZZ_CHECK(note.is_there || is_same(note, none));
    if (note.is_there)
        check_note(note);
}

/* ---- offsets ------------------------------------------------------------------------------ */

#define MARKS_MAX 300

typedef struct {
    int64_t offsets[MARKS_MAX];
    unsigned char done[MARKS_MAX];
    size_t first, count; /* of those that are not trimmed; all there were */
    int64_t next;
} model;

static int64_t low_of(const model *m)
{
    for (size_t i = m->first; i < m->count; i++)
        if (!m->done[i])
            return m->offsets[i];
    return m->next;
}

static void add(model *m, wb_kafka_offsets *offsets, unsigned gap)
{
    if (m->count == MARKS_MAX)
        return;
    m->offsets[m->count] = m->next + gap;
    m->done[m->count] = 0;
    m->next += gap + 1;
    FUZZ_CHECK(wb_kafka_offsets_add(offsets, m->offsets[m->count], gap));
    m->count++;
}

static void set(model *m, wb_kafka_offsets *offsets, unsigned which, int done)
{
    if (!m->count)
        return;
    const size_t at = which % m->count;
    wb_kafka_offsets_set(offsets, m->offsets[at], done);
    if (at >= m->first)
        m->done[at] = (unsigned char)done;
}

static void trim(model *m, wb_kafka_offsets *offsets)
{
    wb_kafka_offsets_trim(offsets);
    while (m->first < m->count && m->done[m->first])
        m->first++;
}

static void skip(model *m, wb_kafka_offsets *offsets, unsigned by)
{
    FUZZ_CHECK(wb_kafka_offsets_skip(offsets, m->next + by) == (by > 0));
    m->next += by;
}

static void check(const model *m, const wb_kafka_offsets *offsets)
{
    FUZZ_CHECK(wb_kafka_offsets_low(offsets) == low_of(m));
    FUZZ_CHECK(offsets->count == m->count - m->first && offsets->next == m->next);
    const wb_kafka_note note = wb_kafka_offsets_low_note(offsets);
    FUZZ_CHECK(note.is_there == (low_of(m) != m->next));
    FUZZ_CHECK(!note.is_there || (int64_t)note.span == m->next - low_of(m));
}

/* A step is two bytes. */
static void walk(fuzz_input *input)
{
    model *m = fuzz_alloc(sizeof *m);
    wb_kafka_offsets offsets;
    m->next = (int64_t)fuzz_number(input);
    wb_kafka_offsets_init(&offsets, m->next);
    while (input->at < input->end) {
        const unsigned step = fuzz_byte(input), value = fuzz_byte(input);
        switch (step % 5) {
        case 0: add(m, &offsets, value % 4); break;
        case 1: set(m, &offsets, value, 1); break;
        case 2: set(m, &offsets, value, 0); break;
        case 3: trim(m, &offsets); break;
        default: skip(m, &offsets, value % 3);
        }
        check(m, &offsets);
    }
    wb_kafka_offsets_free(&offsets);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    try_note(data, size);
    check_note((wb_kafka_note){ fuzz_number(&input), fuzz_number(&input), 1 });
    walk(&input);
}

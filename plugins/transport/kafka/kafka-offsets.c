/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-offsets.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wb_kafka_offsets_init(wb_kafka_offsets *offsets, int64_t start)
{
    *offsets = (wb_kafka_offsets){ .next = start };
}

void wb_kafka_offsets_free(wb_kafka_offsets *offsets)
{
    free(offsets->ring);
    offsets->ring = NULL;
}

static wb_kafka_mark *mark_at(const wb_kafka_offsets *offsets, size_t index)
{
    return &offsets->ring[(offsets->first + index) & (offsets->capacity - 1)];
}

static int grow(wb_kafka_offsets *offsets)
{
    size_t capacity = offsets->capacity ? offsets->capacity * 2 : 64;
    wb_kafka_mark *ring = malloc(capacity * sizeof *ring);
    if (!ring)
        return 0;
    for (size_t i = 0; i < offsets->count; i++)
        ring[i] = *mark_at(offsets, i);
    free(offsets->ring);
    offsets->ring = ring;
    offsets->capacity = capacity;
    offsets->first = 0;
    return 1;
}

int wb_kafka_offsets_add(wb_kafka_offsets *offsets, int64_t offset, uint32_t deliveries)
{
    if (offsets->count == offsets->capacity && !grow(offsets))
        return 0;
    *mark_at(offsets, offsets->count++) =
        (wb_kafka_mark){ .offset = offset, .deliveries = deliveries };
    offsets->next = offset + 1;
    return 1;
}

int wb_kafka_offsets_skip(wb_kafka_offsets *offsets, int64_t offset)
{
    if (offset <= offsets->next)
        return 0;
    offsets->next = offset;
    return 1;
}

static wb_kafka_mark *find(const wb_kafka_offsets *offsets, int64_t offset)
{
    size_t low = 0, high = offsets->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mark_at(offsets, middle)->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < offsets->count && mark_at(offsets, low)->offset == offset ? mark_at(offsets, low)
                                                                           : NULL;
}

void wb_kafka_offsets_set(wb_kafka_offsets *offsets, int64_t offset, int done)
{
    wb_kafka_mark *mark = find(offsets, offset);
    if (!mark || mark->done == done)
        return;
    mark->done = done;
    if (done)
        offsets->done++;
    else
        offsets->done--;
}

void wb_kafka_offsets_recount(wb_kafka_offsets *offsets, int64_t offset, uint32_t deliveries)
{
    wb_kafka_mark *mark = find(offsets, offset);
    if (mark)
        mark->deliveries = deliveries;
}

/* Of the oldest not done; `count` when all are. */
static size_t low_index(const wb_kafka_offsets *offsets)
{
    size_t index = 0;
    while (index < offsets->count && mark_at(offsets, index)->done)
        index++;
    return index;
}

int64_t wb_kafka_offsets_low(const wb_kafka_offsets *offsets)
{
    size_t index = low_index(offsets);
    return index < offsets->count ? mark_at(offsets, index)->offset : offsets->next;
}

void wb_kafka_offsets_trim(wb_kafka_offsets *offsets)
{
    while (offsets->count && mark_at(offsets, 0)->done) {
        offsets->first = (offsets->first + 1) & (offsets->capacity - 1);
        offsets->count--;
        offsets->done--;
    }
}

/* ---- the note -------------------------------------------------------------------- */

#define NOTE_PREFIX "waybill/1 "

static wb_kafka_note note_at(const wb_kafka_offsets *offsets, size_t index)
{
    if (index == offsets->count)
        return (wb_kafka_note){ 0 };
    const wb_kafka_mark *mark = mark_at(offsets, index);
    int64_t span = offsets->next - mark->offset;
    return (wb_kafka_note){ mark->deliveries, span < UINT32_MAX ? (uint32_t)span : UINT32_MAX, 1 };
}

wb_kafka_note wb_kafka_offsets_note(const wb_kafka_offsets *offsets)
{
    return note_at(offsets, 0);
}

wb_kafka_note wb_kafka_offsets_low_note(const wb_kafka_offsets *offsets)
{
    return note_at(offsets, low_index(offsets));
}

void wb_kafka_note_write(char ret_text[WB_KAFKA_NOTE_SIZE], wb_kafka_note note)
{
    (void)snprintf(ret_text, WB_KAFKA_NOTE_SIZE, NOTE_PREFIX "%" PRIu32 " %" PRIu32,
                   note.deliveries, note.span);
}

/* A number up to `end`, a byte or the end of the text. @return 0 when there is none. */
static int read_number(const char **at, const char *end, char stop, uint32_t *ret_number)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (uint64_t)(**at - '0');
        if (value > UINT32_MAX)
            return 0;
    }
    if (*at == start || (stop ? *at == end || **at != stop : *at != end))
        return 0;
    *at += stop != '\0';
    *ret_number = (uint32_t)value;
    return 1;
}

wb_kafka_note wb_kafka_note_read(const void *text, size_t size)
{
    const char *at = text;
    size_t prefix = sizeof NOTE_PREFIX - 1;
    wb_kafka_note note = { 0 };
    if (size <= prefix || memcmp(at, NOTE_PREFIX, prefix) != 0)
        return note;
    const char *end = at + size;
    at += prefix;
    if (!read_number(&at, end, ' ', &note.deliveries) || !read_number(&at, end, '\0', &note.span))
        return (wb_kafka_note){ 0 };
    note.is_there = 1;
    return note;
}

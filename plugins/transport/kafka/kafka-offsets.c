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

int wb_kafka_offsets_add(wb_kafka_offsets *offsets, int64_t offset)
{
    if (offsets->count == offsets->capacity && !grow(offsets))
        return 0;
    *mark_at(offsets, offsets->count++) = (wb_kafka_mark){ offset, 0 };
    offsets->next = offset + 1;
    return 1;
}

void wb_kafka_offsets_set(wb_kafka_offsets *offsets, int64_t offset, int done)
{
    size_t low = 0, high = offsets->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mark_at(offsets, middle)->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < offsets->count && mark_at(offsets, low)->offset == offset)
        mark_at(offsets, low)->done = done;
}

int64_t wb_kafka_offsets_low(const wb_kafka_offsets *offsets)
{
    for (size_t i = 0; i < offsets->count; i++)
        if (!mark_at(offsets, i)->done)
            return mark_at(offsets, i)->offset;
    return offsets->next;
}

void wb_kafka_offsets_trim(wb_kafka_offsets *offsets)
{
    while (offsets->count && mark_at(offsets, 0)->done) {
        offsets->first = (offsets->first + 1) & (offsets->capacity - 1);
        offsets->count--;
    }
}

/* ---- the note -------------------------------------------------------------------- */

#define NOTE_PREFIX "waybill/1 "

void wb_kafka_note_write(char ret_note[WB_KAFKA_NOTE_SIZE], uint32_t deliveries)
{
    (void)snprintf(ret_note, WB_KAFKA_NOTE_SIZE, NOTE_PREFIX "%" PRIu32, deliveries);
}

uint32_t wb_kafka_note_read(const void *note, size_t size)
{
    const char *text = note;
    size_t prefix = sizeof NOTE_PREFIX - 1;
    uint64_t value = 0;
    if (size <= prefix || memcmp(text, NOTE_PREFIX, prefix) != 0)
        return 0;
    for (size_t i = prefix; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > UINT32_MAX)
            return 0;
    }
    return (uint32_t)value;
}

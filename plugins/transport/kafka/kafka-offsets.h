/* SPDX-License-Identifier: Apache-2.0
 *
 * What of one partition is done: the low-water mark under messages that are acknowledged in
 * any order, and the little note that is committed beside it. Pure.
 *
 * A committed offset says "everything before it is done". So it is the offset of the oldest
 * message handed out and not done, or the one after the last when all are.
 */
#ifndef WB_KAFKA_OFFSETS_H
#define WB_KAFKA_OFFSETS_H

#include <stddef.h>
#include <stdint.h>

typedef struct wb_kafka_mark {
    int64_t offset;
    int done;
    uint32_t deliveries; /* that came to nothing, if nothing more is heard of it */
} wb_kafka_mark;

/** The note beside a committed offset: how often the message there, and those handed out
 *  behind it, were delivered without being acknowledged. It is what lets a message that ends
 *  each process be found out. */
typedef struct wb_kafka_note {
    uint32_t deliveries;
    uint32_t span; /* offsets from the committed one on that it is true of */
    int is_there;  /* there is one, if only to say that a session is at work: when it ends in
                    order it takes that back */
} wb_kafka_note;

/** Those handed out, ascending, from the oldest not done (a ring). */
typedef struct wb_kafka_offsets {
    wb_kafka_mark *ring;
    size_t capacity; /* a power of two */
    size_t first;
    size_t count;
    size_t done;  /* of these */
    int64_t next; /* one after the last handed out, and what is no message behind it */
} wb_kafka_offsets;

void wb_kafka_offsets_init(wb_kafka_offsets *offsets, int64_t start);
void wb_kafka_offsets_free(wb_kafka_offsets *offsets);

/** A message is handed out; ascending, gaps are usual. @return 0 when memory is out. */
int wb_kafka_offsets_add(wb_kafka_offsets *offsets, int64_t offset, uint32_t deliveries);
/** There is no message up to `offset`: what stands there is no message at all. @return whether
 *  that was news. */
int wb_kafka_offsets_skip(wb_kafka_offsets *offsets, int64_t offset);
/** How often it was delivered is known better now. */
void wb_kafka_offsets_recount(wb_kafka_offsets *offsets, int64_t offset, uint32_t deliveries);
/** A message is done, or after all it is not. */
void wb_kafka_offsets_set(wb_kafka_offsets *offsets, int64_t offset, int done);
/** The offset to commit. */
int64_t wb_kafka_offsets_low(const wb_kafka_offsets *offsets);
/** Forget what is below the low-water mark: it cannot be undone any more. */
void wb_kafka_offsets_trim(wb_kafka_offsets *offsets);

/** The note of the oldest message not trimmed; all zero when there is none. */
wb_kafka_note wb_kafka_offsets_note(const wb_kafka_offsets *offsets);
/** The note of the oldest message not done; all zero when all are. */
wb_kafka_note wb_kafka_offsets_low_note(const wb_kafka_offsets *offsets);

/** Size of a note as text, with its NUL byte. */
#define WB_KAFKA_NOTE_SIZE 40

void wb_kafka_note_write(char ret_text[WB_KAFKA_NOTE_SIZE], wb_kafka_note note);
/** Whatever somebody else wrote there is all zero. */
wb_kafka_note wb_kafka_note_read(const void *text, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Message ids and batch numbers.
 */
#ifndef WB_MESSAGE_IDS_H
#define WB_MESSAGE_IDS_H

#include <stddef.h>
#include <stdint.h>

/** Longest message id, in bytes. */
#define WB_ID_MAX 255

/** Size of a generated id with its NUL byte: 8-4-4-4-12 hexadecimal digits. */
#define WB_GENERATED_ID_SIZE 37

/** What an outgoing message's id follows from. */
typedef struct wb_id_seed {
    const char *endpoint;
    int kind;      /* WB_KIND_x */
    int immediate; /* immediate sends have ordinals of their own */
    const char *type;
    const char *destination; /* or NULL */
    uint32_t ordinal;        /* the nth, from 0, that `cause` asks for */
    const void *cause;       /* the incoming message's id */
    size_t cause_size;
} wb_id_seed;

/** The id of a message that an endpoint sends because of another: the same on every attempt,
 *  with or without outbox, as long as the handler asks for the same in the same order;
 *  different for two endpoints that handle the same event, and for an attempt that asks for
 *  something else. A version 8 UUID (RFC 9562); version 7, with the cause's time, when the
 *  cause is one, so that what is ordered by time stays so. */
void wb_id_derive(const wb_id_seed *seed, char id[WB_GENERATED_ID_SIZE]);

/** The version 8 UUID of a hash, of which 16 bytes are taken. */
void wb_id_of_hash(const unsigned char *digest, char id[WB_GENERATED_ID_SIZE]);

/** A new id, ordered by time: a version 7 UUID (RFC 9562). Any thread. */
void wb_id_generate(char id[WB_GENERATED_ID_SIZE]);

/** A new batch number: milliseconds since 2020 in the upper 42 bits, then 22 random bits; never
 *  0. As a signed number it stays positive until 2089. Those that a process asks for
 *  one after the other, by one clock, differ. Two of different processes may be the same, one pair in four million of the same
 *  millisecond: the pending table's primary key refuses the later one, whose batch runs again under another
 *  number; a session is aborted, and its program runs it again. `wall` is now, by the clock that records are aged by. Any thread. */
uint64_t wb_batch_number(int64_t wall);

/** The same, of a time that is not now: it may be the same as one before. */
uint64_t wb_batch_number_drawn(int64_t wall);

/** The smallest batch number of a wall-clock time. */
uint64_t wb_batch_number_at(int64_t wall);
/** The wall-clock time in a batch number, to the millisecond. */
int64_t wb_batch_number_time(uint64_t number);

/** The number of records without a batch: they close the id of a session that did not commit in time.
 *  It is the smallest of its millisecond, which wb_batch_number() never gives; and above `after`. */
uint64_t wb_batch_number_closed(int64_t wall, uint64_t after);
int wb_batch_number_is_closed(uint64_t number);

#endif

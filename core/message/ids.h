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

/** The id of the nth (from 0) message that `endpoint` sends because of the incoming
 *  message `cause`. The same on every attempt, with or without outbox; different for
 *  two endpoints that handle the same event. A version 8 UUID (RFC 9562). */
void wb_id_derive(const char *endpoint, const void *cause, size_t cause_size, uint32_t ordinal,
                  char id[WB_GENERATED_ID_SIZE]);

/** A new id, ordered by time: a version 7 UUID (RFC 9562). Any thread. */
void wb_id_generate(char id[WB_GENERATED_ID_SIZE]);

/** A new batch number: milliseconds since 2020 in the upper 42 bits, then 22 random
 *  bits; never 0. As a signed number it stays positive until 2089. Two batches with the same number would be refused by the pending
 *  table's primary key, and the later one runs again under another number. */
uint64_t wb_batch_number(void);

/** The smallest batch number of a wall-clock time. */
uint64_t wb_batch_number_at(int64_t wall);

#endif

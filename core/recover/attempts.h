/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempt records: how often a suspect was handled without anybody hearing of it again.
 *
 * A message whose handler ends the process comes back with a higher delivery count each
 * time, and so does everything that was prefetched beside it: deliveries alone cannot tell
 * them apart. So a message delivered WB_SUSPECT_DELIVERIES times is a suspect: it is handled
 * by itself, one at a time in a process, and that it is about to be is written down first. The
 * record goes when the message is done; it stays when the process ends, and counts. It stays, and
 * counts no attempt, when the session with the broker is lost: then the deliveries decide. They do so
 * for whatever the broker would drop next, too: what was in hand beside others that died is moved
 * then, unhandled, for a message in the error queue is not lost; what was handled by itself before,
 * one delivery earlier, for that reserve is what it is moved with.
 *
 * A record is a row among the pending operations, under a number that follows from the id
 * and is far below every batch number (it would be of the first minutes of 2020).
 */
#ifndef WB_RECOVER_ATTEMPTS_H
#define WB_RECOVER_ATTEMPTS_H

#include "core/base/buffer.h"
#include "core/recover/recoverability.h"

/** Deliveries without acknowledgement that make a message a suspect: more than one or two
 *  restarts of servers and processes explain. Fewer where the broker gives up early. */
#define WB_SUSPECT_DELIVERIES 3

/** At least so many attempts are written down before a suspect is given up, whatever
 *  immediate_retries says: a process may be killed for other reasons than its message. Fewer
 *  where the broker gives up early. */
#define WB_NOTED_ATTEMPTS_MIN 3

/** Where nothing can be written down (no outbox), or what is written down is that the session with the
 *  broker was lost, so many deliveries end the tries, or one less
 *  than the broker allows. 20 is what RabbitMQ 4 allows unless told otherwise. */
#define WB_DELIVERIES_MAX 19

/** Added to the attempts of a record: the session with the broker was lost while it was handled. */
#define WB_ATTEMPTS_LOST_SESSION UINT32_C(0x80000000)

/** How many deliveries make a message a suspect. */
uint32_t wb_attempts_suspect_from(const wb_recoverability *policy);

/** Whether a message delivered so often is given up where nothing can be written down. */
int wb_attempts_deliveries_are_exhausted(const wb_recoverability *policy, uint32_t deliveries);

/** Whether the broker drops a message delivered so often when it comes back once more, or
 *  `spare` times more. */
int wb_attempts_is_last_delivery(const wb_recoverability *policy, uint32_t deliveries, uint32_t spare);

/** The number of the record of an id. */
uint64_t wb_attempts_number(const void *id, size_t id_size);

/** Encode into `buffer`, which is emptied. `now` is a batch number: when it is written. */
void wb_attempts_encode(wb_buffer *buffer, const void *id, size_t id_size, uint32_t attempts, uint64_t now);

/** @return the attempts in a row's bytes, or -1 when the row is not this id's record. */
int64_t wb_attempts_decode(const void *data, size_t size, const void *id, size_t id_size);

/** Whether a row is a record, anybody's, written before `before` (a batch number). Records
 *  outlive their message when the process dies, or the database, just as it is done. */
int wb_attempts_is_older(const void *data, size_t size, uint64_t before);

/** Whether a row is a record, anybody's. */
int wb_attempts_is_record(const void *data, size_t size);

/** Whether that many unfinished attempts, after the deliveries that made it a suspect, are as
 *  many as a message gets. */
int wb_attempts_are_exhausted(const wb_recoverability *policy, uint32_t attempts);

#endif

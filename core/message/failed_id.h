/* SPDX-License-Identifier: Apache-2.0
 *
 * What a message from an error queue is known by. One that fails again has its id again, so that
 * the id alone tells neither which failure it is, nor, of an event that several endpoints handle,
 * whose.
 *
 * Headers come from anywhere: what an answer names is looked for, and nothing else is taken from it.
 */
#ifndef WB_MESSAGE_FAILED_ID_H
#define WB_MESSAGE_FAILED_ID_H

#include <waybill/sys/transport.h>

#include "core/message/ids.h"

/** The key of the message: the same however often it fails in that endpoint. A version 8 UUID. */
void wb_failed_key(const wb_header *headers, size_t count, const void *id, size_t id_size, char key[WB_GENERATED_ID_SIZE]);

/** What is claimed of it: message, queue, endpoint and time of its failure; likewise. Of an answer, which has its id again when
 *  the message is retried again, the time when that was handled. A message without a time is never
 *  known again: it is rather counted twice than lost. */
void wb_failed_claim(const wb_header *headers, size_t count, const void *id, size_t id_size, char claim[WB_GENERATED_ID_SIZE]);

/** The key that an answer names: a retried message was handled (ServiceControl.Retry.Successful). NULL: it is none. */
const wb_header *wb_failed_answer(const wb_header *headers, size_t count);

#endif

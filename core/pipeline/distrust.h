/* SPDX-License-Identifier: Apache-2.0
 *
 * A storage session that handlers had may be what they made of it: another user, read only, without
 * a table. So WB_FATAL of it is not believed at first: it ends the session, not the worker.
 * A new session, which no handler has had, and the witness (witness.c) tell whose it is.
 *
 * Nor is a table that is not there any more believed at once: a migration may have renamed it for some seconds. It is
 * waited for, as a server is, for wb_pipeline.missing_patience.
 */
#ifndef WB_PIPELINE_DISTRUST_H
#define WB_PIPELINE_DISTRUST_H

#include "core/pipeline/worker.h"

/** What a function of the storage session returned. @return WB_NOT_CONNECTED, with
 *  w->storage_broken, for a WB_FATAL of a session that handlers had; WB_RETRY for a table that is waited for; else `result`. */
int wb_distrust(wb_worker *w, int result, wb_error *error);

/** What the transport, or the store of delayed messages, returned inside a transaction whose connection handlers have
 *  (transaction_scope on one file): WB_FATAL may be what one of them made of it. @return WB_RETRY for it where a handler ran in this transaction, which is rolled back: it is the
 *  message's that runs alone, unless others meet it before a handler runs; else `result`. */
int wb_distrust_shared(wb_worker *w, int result, wb_error *error);

/** What wb_window_send() over w->outlet returned when the store failed (outlet.storage_failed): the
 *  storage session is broken if it is lost. @return as above. */
int wb_distrust_store(wb_worker *w, int result, wb_error *error);

/** Whether it is a table that is waited for, still. For who opens a session. */
int wb_distrust_waits(wb_worker *w, int result, const wb_error *error);
/** The tables are there, as a batch shows, or a new session after one that could not be opened without them. */
void wb_distrust_found(wb_worker *w);

/** The same of the deduplication store (apart.h), whose sessions no handler has. */
int wb_distrust_apart_waits(wb_worker *w, int result, const wb_error *error);
/** Its table is there: it answered what was asked of it. */
void wb_distrust_apart_found(wb_worker *w);

#endif

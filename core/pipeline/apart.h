/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication apart from the outbox: a record stays with the outbox until its operations are
 * dispatched; then its id goes to another store, which may be another database, and the record goes. At
 * every moment one of the two has the id, for three orders never change:
 *
 *   an id is claimed before the store is asked for it: whoever is asked first may learn nothing, while
 *       another worker finishes the message and removes its record, which the claim then does not find;
 *   its operations are dispatched before the store has it: a record that goes takes along what is told of them;
 *   the store has it, for everybody to see, before its record is removed.
 *
 * So two lists are kept: what is done with, which the store is to get, and what it has, whose records are
 * to go. What is lost with a process are records that stay until they are as old as any.
 */
#ifndef WB_PIPELINE_APART_H
#define WB_PIPELINE_APART_H

#include "core/pipeline/worker.h"

void wb_apart_init(wb_apart *apart, wb_dependency *server);
void wb_apart_free(wb_apart *apart);

/** Connect to the store, if the endpoint has one and it is not connected. A table of it that is not there any more is
 *  waited for (distrust.h), here and wherever it is asked. */
int wb_apart_connect(wb_worker *w, wb_error *error);
void wb_apart_disconnect(wb_worker *w);

/** The item is settled: if it has a record, its id is for the store. */
void wb_apart_add(wb_worker *w, const wb_item *item);
/** Of the batch's claims that are ours now: those the store knows came before, and become duplicates. Before that
 *  it gets what is done with. The transaction is open. */
int wb_apart_ask(wb_worker *w, wb_error *error);
/** The records that begin() is to remove with the marks, and that it did. */
void wb_apart_fill(const wb_worker *w, wb_begin *begin);
void wb_apart_forgotten(wb_worker *w);
/** The same in round trips of their own, where there is no batch to ride with. No transaction is open. */
int wb_apart_settle(wb_worker *w, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What an endpoint leaves behind, counted and removed: its queue and what leads to it, then its tables. In this order,
 * because what still comes in may find a duplicate as long as there is a queue. Whoever died in the middle calls again.
 * The endpoint's instances do not run.
 */
#ifndef WB_ENDPOINT_REMOVAL_H
#define WB_ENDPOINT_REMOVAL_H

#include "core/endpoint/endpoint.h"

/** What would be lost. */
typedef struct wb_remains {
    wb_transport_depth queue; /* what waits in its queue, and whether anybody receives from it */
    uint64_t pending;         /* rows with operations that were not dispatched; notes of attempts are none */
    uint64_t delayed;         /* messages that wait until they are due */
    uint64_t written;         /* messages that programs wrote in SQL; 1: or more, where the persistence does not count them */
    uint64_t failed;          /* of those it keeps, failed or retrying: neither resolved nor archived; to WB_REMAINS_FAILED_MAX */
    int has_tables;
    const char *error_queue;  /* that it keeps the messages of: others', too, and stays, so nothing but `readers` is in `queue`;
                               * as long as the setup. NULL: it keeps none */
} wb_remains;

#define WB_REMAINS_FAILED_MAX 1000

/** Whether plugins can do it. @return NULL, or what cannot: "transport \"x\"". */
const char *wb_removal_lacks(const wb_endpoint_setup *setup, char *text, size_t size);

/** Count. What is not there holds nothing. */
int wb_removal_look(const wb_endpoint_setup *setup, wb_endpoint *endpoint, wb_remains *ret_remains, wb_error *error);
/** Rows that wait in its tables. */
uint64_t wb_removal_rows(const wb_remains *remains);

/** Whether its queue may be somebody else's of that name: it has none of the tables that `install` makes first, and an
 *  uninstall removes last. Never of an endpoint that has no tables: nobody can tell there. */
int wb_removal_is_foreign(const wb_endpoint *endpoint, const wb_remains *remains);

/** Remove, error queues apart; `remains` as seen just before, `flags` is 0 or WB_UNINSTALL_MESSAGES. A note that it was begun
 *  is kept with the tables (notes.h). Rows are looked for again when the queue is gone: without WB_UNINSTALL_MESSAGES the
 *  tables stay then, with the note. What is committed between that look and the end of the tables goes with them: whoever
 *  writes is to be stopped before.
 *  @return as wb_transport_ops.uninstall; WB_REJECT also for such rows. */
int wb_removal_run(const wb_endpoint_setup *setup, wb_endpoint *endpoint, const wb_remains *remains, uint32_t flags,
                   wb_error *error);

/** Of an endpoint that was removed: remove its error queues, each if it is empty. `setup` is the endpoint's, but for those
 *  of its `info` that stay. @return as wb_transport_ops.uninstall. */
int wb_removal_run_error_queues(const wb_endpoint_setup *setup, wb_error *error);

#endif

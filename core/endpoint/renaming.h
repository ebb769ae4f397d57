/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint gets another name, and loses nothing. In steps, of which each leaves what the same call completes, since the
 * tables say that it was begun (notes.h): a queue without tables is emptied only by that:
 *
 *   1  its tables become those of the new name: deduplication goes on from here
 *   2  the new name is installed: what is sent to it, and published, waits there; where messages are known by their
 *      positions, too, nothing goes on while some are known of a queue of that name that was removed
 *   3  it takes over what would reach the former one by other ways than its queue
 *   4  the former one's subscriptions end
 *   5  what waits in the former queue is moved, with its ids: what was moved twice is a duplicate (transfer.h)
 *   6  the former queue is removed
 *
 * Between 2 and 4 an event goes to both, under one id. The endpoint's instances do not run, under either name.
 */
#ifndef WB_ENDPOINT_RENAMING_H
#define WB_ENDPOINT_RENAMING_H

#include "core/endpoint/notes.h"
#include "core/endpoint/removal.h"
#include "core/endpoint/transfer.h"

typedef struct wb_renaming {
    const char *former;
    const char *name;
    int is_forced; /* also with rows that wait: what they send may name the former queue; also where there is a queue,
                    * under either name, and no tables, though the endpoint has some; also where both names have tables:
                    * those of the former one, which was installed again, are removed */
    /* filled */
    wb_remains remains;        /* under the former name, before anything was done */
    wb_remains arrived;        /* the same under the new one: not nothing where a call before died */
    wb_rename_state state;     /* what is noted of an earlier call */
    wb_transferred transferred;
    int is_done;               /* nothing was left to do: an earlier call did it all */
    int is_refused;            /* nothing was done, for what remains, or for whoever receives under either name */
    int is_begun;              /* something may have been done */
} wb_renaming;

/** Rename; `setup` is the endpoint's under either name, with handlers. */
int wb_renaming_run(const wb_endpoint_setup *setup, wb_renaming *renaming, wb_error *error);
/** Only look at what remains. */
int wb_renaming_look(const wb_endpoint_setup *setup, wb_renaming *renaming, wb_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What installations subscribed to, and no handler is for any more. Where the transport cannot tell its own
 * subscriptions, the persistence keeps a record of them: it is written before anything is bound, so that whatever
 * dies in between, all that was bound is in it. What somebody else bound never is.
 */
#ifndef WB_ENDPOINT_SUBSCRIBED_H
#define WB_ENDPOINT_SUBSCRIBED_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/endpoint/setup.h"
#include "core/pipeline/pipeline.h"

/** Types, in the arena's memory. */
typedef struct wb_subscribed {
    const char **types;
    size_t count;
} wb_subscribed;

/** Whether subscriptions of this endpoint stay until they are ended. */
int wb_subscribed_can_end(const wb_endpoint_setup *setup);
/** Whether it is known what was subscribed to. */
int wb_subscribed_is_known(const wb_endpoint_setup *setup);
/** Whether its persistence keeps the record: what wb_endpoint_info.subscriptions is. */
int wb_subscribed_is_recorded(const wb_endpoint_setup *setup);

/** Note what is about to be subscribed to, where that is recorded. The tables are there. */
int wb_subscribed_note(const wb_endpoint_setup *setup, const wb_pipeline *p, wb_error *error);

/** Find what was subscribed to: all of it, or only what no handler is for (with a handler of all other types there
 *  is none). Nothing where it is not known. */
int wb_subscribed_find(const wb_endpoint_setup *setup, const wb_pipeline *p, int all, wb_arena *arena,
                       wb_subscribed *ret_subscribed, wb_error *error);

/** End these subscriptions, and forget them. May be called again. */
int wb_subscribed_end(const wb_endpoint_setup *setup, const wb_pipeline *p, const wb_subscribed *subscribed, wb_error *error);
/** Forget those, which are at an end. */
int wb_subscribed_forget(const wb_endpoint_setup *setup, const wb_pipeline *p, const wb_subscribed *subscribed,
                         wb_error *error);

#endif

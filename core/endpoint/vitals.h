/* SPDX-License-Identifier: Apache-2.0
 *
 * An endpoint's vital signs: all that is known of it at a moment, for who looks from outside. A copy in plain numbers that any
 * thread may keep: the endpoint may end meanwhile. Nothing is asked of a server for it; what is pending is as of the
 * housekeeper's last round, and what waits in the queue as of when somebody asked the broker (core/cli/depths.h).
 */
#ifndef WB_ENDPOINT_VITALS_H
#define WB_ENDPOINT_VITALS_H

#include "core/endpoint/endpoint.h"

/** Its servers, WB_DEPENDENCY_x. */
#define WB_VITALS_SERVERS 3
/* Its circuit breakers. */
#define WB_BREAKER_STORE 0
#define WB_BREAKER_FETCH 1
#define WB_BREAKER_DISPATCH 2
#define WB_VITALS_BREAKERS 3

typedef struct wb_vitals {
    int state;        /* WB_HEALTH_x */
    char reason[200]; /* why it does not run as it should; "": it does */
    wb_counts counts;
    unsigned workers; /* that are to run; 0 before it was started, and of a send-only endpoint */
    unsigned working, stuck;
    int has_server[WB_VITALS_SERVERS];
    int is_away[WB_VITALS_SERVERS];
    int is_limited;        /* attempts fail in a row, and are made one at a time */
    uint64_t limitings;    /* how often that began */
    int is_open[WB_VITALS_BREAKERS];
    int has_backlog;       /* it has an outbox, its housekeeper is at work and has looked: the next three are known */
    uint64_t pending_rows, parked_rows;
    int64_t oldest_age;    /* ns: of the oldest pending row; 0: there is none */
    int has_store;         /* of delayed messages */
    int has_depth;         /* its broker said how many messages wait in its queue, when it was asked last */
    uint64_t queue_messages;
} wb_vitals;

/** All but state and reason, which the host judges, and what waits in the queue, which it asks for. Main thread. */
void wb_vitals_take(wb_endpoint *endpoint, wb_vitals *ret_vitals);

#endif

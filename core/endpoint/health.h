/* SPDX-License-Identifier: Apache-2.0
 *
 * How an endpoint is, in one word for those who look from outside, and why: judged from facts that
 * others gather. Nothing here decides what the endpoint does.
 */
#ifndef WB_ENDPOINT_HEALTH_H
#define WB_ENDPOINT_HEALTH_H

/* In the order of what is told of a program with several endpoints: the last one that any has. */
#define WB_HEALTH_RUNNING 0
#define WB_HEALTH_DEGRADED 1 /* it runs, and something keeps it from handling as it should */
#define WB_HEALTH_STARTING 2 /* it waits for its servers, or is not begun */
#define WB_HEALTH_STOPPING 3

typedef struct wb_health_facts {
    int is_stopping;
    int is_starting;
    int gave_up; /* workers did; they are to be started again, or not */
    int broker_is_away, database_is_away, store_is_away;
    int is_limited;    /* attempts fail in a row, and are made one at a time */
    unsigned stuck;    /* workers in a handler beyond its limit, or in no handler and not coming round */
    unsigned troubled; /* workers that try again and again, with a line in the log */
    char late[120];    /* what stays pending (gauge.h), in words; "": nothing */
} wb_health_facts;

/** The state, WB_HEALTH_x. `ret_reason` (may be NULL): why it does not run, or NULL when it does; it may
 *  point into the facts. */
int wb_health_judge(const wb_health_facts *facts, const char **ret_reason);
/** "running", ... */
const char *wb_health_name(int state);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that are traced in a call, with all threads of the plugin, and killed in it: at the n-th time
 * they turn to the system. So a store
 * that has no connection to lose is interrupted at each place that another process, or the next
 * start, could see.
 */
#ifndef WB_CONFORMANCE_TRACE_H
#define WB_CONFORMANCE_TRACE_H

#include "conformance/persistence/persistence.h"

typedef struct wb_tracer {
    void (*prepare)(wb_client *victim);
    int (*call)(wb_client *victim);
    unsigned kill_at; /* system call of `call` that is not made any more, from 1 on; 0: none */
    /* filled */
    unsigned made;     /* system calls that were seen to begin in the call, by any thread */
    int is_flushed;    /* one of them brings data to the disk: also a write to a file opened with O_DSYNC */
    int is_connected;  /* the plugin has connections: it is another process that writes */
    int is_killed, is_done; /* what became of it */
    int is_untraced;   /* and why nothing */
} wb_tracer;

/** In `call`: what comes now is not part of it any more. */
void wb_tracer_next_stage(void);

/** Have a stranger make an instance of the first store and a session, prepare, and call. What is to be
 *  told to them goes over the board.
 *  @return whether it came as far as it should; if not, it is noted, or the case is skipped, since
 *  processes cannot be traced here. */
int wb_tracer_run(wb_kit *kit, wb_tracer *trace);

#endif

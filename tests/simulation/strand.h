/* SPDX-License-Identifier: Apache-2.0
 *
 * What the threads of a simulation are made of. Only one runs at a time, so they need not be the
 * system's: each is a stack, and to hand over is to change stacks, which takes a tenth of what
 * two threads take to wake each other. What the program has for each thread (_Thread_local) and
 * errno are exchanged with it. Only the thread sanitizer gets threads: it is about them.
 */
#ifndef WB_SIMULATION_STRAND_H
#define WB_SIMULATION_STRAND_H

typedef struct sim_strand sim_strand;

/** It calls `function` when it is switched to first. That must not return, but leave. */
sim_strand *sim_strand_new(void (*function)(void *argument), void *argument);
/** The one that runs when there is no other: that of main(). */
sim_strand *sim_strand_main(void);
/** `to` runs. @return when somebody switches back to `from`, which is who calls. */
void sim_strand_switch(sim_strand *from, sim_strand *to);
/** The same, but `from` has ended: nobody may switch to it again. Does not return. */
void sim_strand_leave(sim_strand *from, sim_strand *to);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads with a baton and a clock that is nobody's: only the thread that holds the baton
 * runs; it hands it on at scheduling points, to whom the random generator says. When all wait,
 * the clock moves to the first who need not. So a run is the same each time, takes no real
 * time to wait, and a process may die at each of its scheduling points.
 */
#ifndef WB_SIMULATION_SCHEDULER_H
#define WB_SIMULATION_SCHEDULER_H

#include <stdint.h>

/** The process of a thread that cannot die: the driver of the run. */
#define SIM_NO_PROCESS 0
#define SIM_PROCESSES_MAX 4

typedef struct sim_thread sim_thread;
typedef int (*sim_ready_fn)(void *argument);

/** Run `driver` as the first thread until it returns. `switching`: so many times in a hundred a
 *  scheduling point hands the baton on. */
void sim_scheduler_run(void (*driver)(void), unsigned switching);
/** A run that takes more scheduling points is a violation: it does not end by itself. */
void sim_scheduler_limit(long steps);

/** A thread of a process (1 to SIM_PROCESSES_MAX - 1, or SIM_NO_PROCESS). */
sim_thread *sim_spawn(int process, const char *name, void *(*function)(void *), void *argument);
/** What the next thread that the core makes is called. */
void sim_name_next(const char *name);
int sim_has_ended(const sim_thread *thread);

/** A scheduling point: a little time passes, others may run, the process may die. */
void sim_step(const char *where);
/** Until `ready` says so (NULL: never) or the clock says `until`. @return what `ready` says. */
int sim_wait(const char *where, int64_t until, sim_ready_fn ready, void *argument);
void sim_sleep(int64_t duration);

/** The monotonic clock. */
int64_t sim_now(void);
/** Nanoseconds since 1970 where clocks are right. */
int64_t sim_true_wall(void);
/** How far the wall clock of a process is from that. */
void sim_set_wall_offset(int process, int64_t offset);
int64_t sim_wall_offset(int process);
/** Time passes for everybody. */
void sim_advance(int64_t duration);

/** Of the thread that runs. */
int sim_process(void);
sim_thread *sim_current(void);
const char *sim_thread_name(void);
long sim_steps_taken(void);

/** The process dies, its threads never run again; `bury` clears up in the world. Does not
 *  return to a thread of it. */
void sim_kill(int process);
void sim_on_death(void (*bury)(int process));
/** It dies after so many scheduling points of its own; 0: not. */
void sim_arm_death(int process, long steps);

#endif

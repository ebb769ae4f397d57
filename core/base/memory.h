/* SPDX-License-Identifier: Apache-2.0
 *
 * Where memory that is out is an error and not the end of the process: in a library (core/library).
 */
#ifndef WB_BASE_MEMORY_H
#define WB_BASE_MEMORY_H

/** Call `work`; if it asks for memory (arena.h) that is not there, it is left where it is, and what it
 *  holds stays as it was then: so it may hold nothing that is not known elsewhere or held (below), and no
 *  lock. No function of a plugin may be between the two.
 *  @return 0, or -1: it was left. */
int wb_memory_try(void (*work)(void *argument), void *argument);

/** Something that a function has for the time being, and that is to be freed if it is left. */
typedef struct wb_memory_held {
    void (*release)(void *thing);
    void *thing;
    struct wb_memory_held *before;
} wb_memory_held;

/** From here to wb_memory_let_go(), in the same function and last held first let go, `release(thing)` is
 *  called if the function is left. It is not called otherwise. */
void wb_memory_hold(wb_memory_held *held, void (*release)(void *thing), void *thing);
void wb_memory_let_go(const wb_memory_held *held);

/** Memory is out: leaves to the wb_memory_try() that is nearest, or ends the process. */
_Noreturn void wb_memory_is_out(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Where memory that is out is an error and not the end of the process: in a library (core/library).
 */
#ifndef WB_BASE_MEMORY_H
#define WB_BASE_MEMORY_H

/** Call `work`; if it asks for memory (arena.h) that is not there, it is left where it is, and what it
 *  holds stays as it was then: so it may hold nothing that is not known elsewhere, and no lock. No
 *  function of a plugin may be between the two.
 *  @return 0, or -1: it was left. */
int wb_memory_try(void (*work)(void *argument), void *argument);

/** Memory is out: leaves to the wb_memory_try() that is nearest, or ends the process. */
_Noreturn void wb_memory_is_out(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of work that takes long, for who waits: on a terminal a bar, elsewhere a line now and then, both on standard error; of work
 * that is done within a second nothing. Where it prints what becomes of each on the same terminal, that is its progress.
 *
 * One work at a time. Main thread.
 */
#ifndef WB_CLI_PROGRESS_H
#define WB_CLI_PROGRESS_H

#include <stdint.h>

/** It begins: "exporting", "failed messages"; so many of them are to be done, 0: nobody knows. `prints`: a line for each goes to standard output.
 *  The texts are kept, not copied. */
void cli_progress_begin(const char *what, const char *unit, uint64_t total, int prints);
/** So many are done, all told. Nothing where none has begun. */
void cli_progress_set(uint64_t done);
/** The same, and how many there are: as wb_host.progress tells. */
void cli_progress_tell(uint64_t done, uint64_t total);
/** It is done, or failed: what is printed next stands on a line of its own. cli_fail() does it, too. */
void cli_progress_end(void);

#endif

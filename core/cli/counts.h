/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters of endpoints (core/pipeline/tally.h) in the log: a line an endpoint once a minute, when something happened, and
 * when SIGUSR1 asks for it.
 *
 *   level=info msg="in the last minute" endpoint=orders handled=1423 failed=2 moved=0 duplicates=1 waiting=8
 *   level=info msg="since the start" endpoint=orders handled=93120 failed=17 moved=1 duplicates=40 waiting=8
 *
 * Other counts (retried_later, discarded, parked, expired) are there where they are not 0.
 *
 * Main thread only.
 */
#ifndef WB_CLI_COUNTS_H
#define WB_CLI_COUNTS_H

#include "core/cli/hosted.h"

typedef struct cli_counts {
    int64_t due; /* when the next minute is over; 0: the first has not begun */
} cli_counts;

/** To be called some ten times a second, with the time (monotonic): write what is due. */
void cli_counts_look(cli_counts *counts, cli_hosted *hosted, size_t count, int64_t now);
/** Write what there is since the start, whatever the log's level. */
void cli_counts_tell(const cli_hosted *hosted, size_t count);

#endif

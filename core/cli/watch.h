/* SPDX-License-Identifier: Apache-2.0
 *
 * Who looks at the running program from outside: where the configuration has a group `http`, a listener (core/http) with the console, and a board
 * that the main thread keeps up to date for it.
 *
 * Main thread only.
 */
#ifndef WB_CLI_WATCH_H
#define WB_CLI_WATCH_H

#include "core/cli/console.h"
#include "core/cli/depths.h"
#include "core/cli/hosted.h"
#include "core/http/listener.h"

typedef struct cli_watch {
    wb_board board;
    wb_listener *listener; /* NULL: nobody looks */
    cli_console *console;  /* NULL: there is none */
    cli_depths *depths;    /* NULL: nobody can tell */
} cli_watch;

/** Listen, if the configuration says so, before the first endpoint is tried. @return the exit code; a message says why. */
int cli_watch_begin(cli_watch *watch, const wb_config *config, const cli_hosted *hosted, size_t count);
/** Put up what there is to see, some ten times a second, at this time (monotonic). */
void cli_watch_look(cli_watch *watch, const cli_hosted *hosted, size_t count, int is_stopping, int64_t now);
/** What cli_watch_end() may take. */
#define CLI_WATCH_ENDING (1500 * WB_MILLISECOND)

/** @return 0: a thread of the console, or who asks for depths, waits for a server, and all that it uses has to stay. */
int cli_watch_end(cli_watch *watch);

#endif
